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
from tests.random_models.random_sdf import random_sdf
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
        print(text_of(arguments.kind, arguments.seed, arguments.show))
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


def text_of(kind: str, seed: int, number: int) -> str:
    """A model as its files have it; of an SDF, the same robot as a URDF too."""
    if kind == "urdf":
        return random_urdf(seed, number)
    if kind == "sdf":
        drawn = random_sdf(seed, number)
        return "\n\n".join((*(f"<!-- {name} -->\n{text}" for name, text in drawn.files.items()), drawn.urdf))
    return random_mjcf(seed, number).text


if __name__ == "__main__":
    main()
