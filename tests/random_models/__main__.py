"""`python -m tests.random_models --count 20000 --seed 0`: agreement by quantity; --show N prints a model."""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import mujoco

from tests.random_models.compare import COMPARISONS, Table
from tests.random_models.least import least
from tests.random_models.random_mjcf import random_mjcf
from tests.random_models.random_urdf import random_urdf
from tests.random_models.share import Place, shares, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="models")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first model")
    parser.add_argument("--kind", choices=sorted(COMPARISONS), default="mjcf")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print one model and end")
    parser.add_argument("--least", type=int, metavar="NUMBER", help="make one MJCF model that differs small, and end")
    arguments = parser.parse_args()
    if arguments.show is not None:
        make = random_urdf if arguments.kind == "urdf" else lambda *at: random_mjcf(*at).text
        print(make(arguments.seed, arguments.show))
        return
    warnings.simplefilter("ignore")
    mujoco.set_mju_user_warning(lambda _: None)
    if arguments.least is not None:
        print(least(random_mjcf(arguments.seed, arguments.least), [arguments.seed, arguments.least, 2]))
        return
    table, reached = Table(), set[Place]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.first, arguments.first + arguments.count):
            table.take(arguments.kind, arguments.seed, number, Path(folder))
            if arguments.kind == "mjcf":
                reached |= used(random_mjcf(arguments.seed, number).text)
    print(f"{table.compared} models compared, {table.skipped} skipped, {len(table.beyond)} findings")
    if reached:
        for group, (have, total) in shares(reached).items():
            print(f"{group}: {have} of {total} elements and attributes reached")
    for name, (value, number) in sorted(table.worst.items()):
        print(f"{name:20} {value:9.2e}  (model {number})")
    print(*table.beyond, sep="\n")


if __name__ == "__main__":
    main()
