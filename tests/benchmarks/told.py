"""What runs print of energy from nowhere, starts in the ground and bases in mid-air: `python -m tests.benchmarks.told`.

Each of nine models is run as it is, with --strict and with --json; command, exit code and every line are printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ZERO_G = '<option gravity="0 0 0" timestep="0.002"/>'
INERTIA = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
FEET = ("left_foot", "right_foot")
WALKER = (
    f'<robot name="walker"><link name="trunk">{INERTIA}</link>'
    + "".join(
        f'<link name="{foot}">{INERTIA}</link><joint name="{foot}_joint" type="continuous"><parent link="trunk"/>'
        f'<child link="{foot}"/><origin xyz="0 {side} -.5"/><axis xyz="0 1 0"/></joint>'
        for foot, side in zip(FEET, (-0.2, 0.2), strict=True)
    )
    + "</robot>"
)


def mjcf(world: str, head: str = "") -> str:
    """A model."""
    return f"<mujoco>{head}<worldbody>{world}</worldbody></mujoco>"


def on_the_floor(height: float, geom: str) -> str:
    """A body whose middle is so high above a floor."""
    floor = '<geom type="plane" size="5 5 1"/>'
    return mjcf(f'{floor}<body name="crate" pos="0 0 {height}"><freejoint name="crate"/><geom {geom}/></body>')


class Case(NamedTuple):
    """A model, its file's name and the options of its run."""

    what: str
    name: str
    text: str
    options: tuple[str, ...]


TOP = '<body><freejoint name="top"/><inertial pos="0 0 0" mass="1" diaginertia="{}"/></body>'
ROD = (
    '<body><joint name="a" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 1 0 0" mass="1"/>'
    '<body pos="1 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .1 0 0" mass=".01"/>'
    "</body></body>"
)
CASES = (
    Case(
        "a top about its middle axis at 200 rad/s, by a solver that knows its spin at the step's start alone",
        "top.xml",
        mjcf(TOP.format(".001 .002 .0029"), ZERO_G),
        ("--v0", "top.wy=200", "--v0", "top.wx=1", "--v0", "top.wz=1", "--solver", "pgs"),
    ),
    Case(
        "a plate that tumbles at 400 rad/s, by the same",
        "plate.xml",
        mjcf(TOP.format(".001 .0011 .002"), ZERO_G),
        ("--v0", "top.wx=400", "--v0", "top.wz=40", "--solver", "pgs"),
    ),
    Case("a whip of two rods, 20 ms steps", "whip.xml", mjcf(ROD), ("--dt", "0.02", "--v0", "a=60", "--v0", "b=-400")),
    Case(
        "a spring of x³ hit at 100 m/s, rk4",
        "spring.xml",
        mjcf('<body><joint name="s" type="slide" stiffness="1 0 1e9"/><geom size=".1" mass="1"/></body>', ZERO_G),
        ("--v0", "s=100", "--integrator", "rk4"),
    ),
    Case(
        "a beam on a ball joint at 300 rad/s, 10 ms steps",
        "beam.xml",
        mjcf('<body><joint name="b" type="ball"/><geom type="box" size=".4 .05 .01" mass="1"/></body>', ZERO_G),
        ("--v0", "b.wy=300", "--v0", "b.wx=3", "--dt", "0.01"),
    ),
    Case("a box 50 mm in the floor", "box.xml", on_the_floor(0.05, 'type="box" size=".1 .1 .1"'), ()),
    Case("a ball 2 mm in the floor", "ball.xml", on_the_floor(0.098, 'size=".1"'), ()),
    Case(
        "a capsule halfway in the floor",
        "pill.xml",
        on_the_floor(0.0, 'type="capsule" size=".05 .2" euler="0 90 0"'),
        (),
    ),
    Case("a walker whose base is fixed", "walker.urdf", WALKER, ()),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="NAME", help="of a model's file")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if only in ("", case.name):
                (Path(folder) / case.name).write_text(case.text)
                tell(case, Path(folder))


def tell(case: Case, folder: Path) -> None:
    """Run a case three ways."""
    print(f"--- {case.what}")
    for more in ((), ("--strict",), ("--json",)):
        words = ["run", case.name, "--duration", "1", *case.options, *more]
        done = subprocess.run([sys.executable, "-m", "artsim", *words], capture_output=True, text=True, cwd=folder)
        print(f"$ artsim {' '.join(words)}  -> exit {done.returncode}")
        for line in done.stderr.splitlines():
            print(f"  err: {line}")
        for line in done.stdout.splitlines() if not more or more == ("--strict",) else ():
            print(f"  out: {line}")
        if more == ("--json",) and done.stdout:
            found = json.loads(done.stdout)
            kept = ("status", "steps", "energy", "energy_excess", "start")
            print(f"  out: {json.dumps({name: found.get(name) for name in kept})}")
    print(flush=True)


if __name__ == "__main__":
    main()
