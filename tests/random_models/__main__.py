"""`python -m tests.random_models --count 20000 --seed 0`: agreement by quantity; --show N prints a model."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import mujoco

from tests.random_models.compare import COMPARISONS, Table
from tests.random_models.mjcf import known, random_mjcf, used
from tests.random_models.urdf import random_urdf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="models")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first model")
    parser.add_argument("--kind", choices=sorted(COMPARISONS), default="mjcf")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print one model and end")
    arguments = parser.parse_args()
    if arguments.show is not None:
        make = random_urdf if arguments.kind == "urdf" else lambda *at: random_mjcf(*at)[0]
        print(make(arguments.seed, arguments.show))
        return
    mujoco.set_mju_user_warning(lambda _: None)
    table, reached = Table(), set[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.first, arguments.first + arguments.count):
            table.take(arguments.kind, arguments.seed, number, Path(folder))
            if arguments.kind == "mjcf":
                reached |= used(random_mjcf(arguments.seed, number)[0])
    print(f"{table.compared} models compared, {table.skipped} skipped, {len(table.beyond)} findings")
    if reached:
        print(f"{len(reached & known())} of {len(known())} elements and attributes reached")
    for name, (value, number) in sorted(table.worst.items()):
        print(f"{name:20} {value:9.2e}  (model {number})")
    print(*table.beyond, sep="\n")


if __name__ == "__main__":
    main()
