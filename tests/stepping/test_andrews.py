"""Andrews' squeezing mechanism (IFToMM's A03): seven bodies, three loops, a spring and a motor, 2.5 turns in 0.03 s.

Data and the solution at the end: Mazzia and Magherini, Test Set for IVP Solvers, release 2.4 (2008), II-13.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import artsim
from artsim.loaders.load import load_text
from tests.simulation import simulate

SECONDS = 0.03
MOMENT = 0.033  # [N m] on the crank

START = {
    "beta": -0.0617138900142764496,
    "Theta": 0.0,
    "gamma": 0.4552798191630703803,
    "Phi": 0.2226683901658858847,
    "delta": 0.4873649795438425502,
    "Omega": -0.2226683901658858847,
    "epsilon": 1.2305474445498211925,
}
END = {
    "beta": 15.81077119629904,
    "Theta": -15.75637105984298,
    "gamma": 0.04082224013073101,
    "Phi": -0.5347301163226948,
    "delta": 0.5244099658805304,
    "Omega": 0.5347301163226948,
    "epsilon": 1.048080741042263,
}
Point = tuple[float, float]


def body(angle: str, at: Point, mass: float, centre: Point, inertia: float, inside: str) -> str:
    """A body that turns by this angle about a point of what holds it."""
    return f"""<body pos="{at[0]} {at[1]} 0"><joint name="{angle}" axis="0 0 1"/>
      <inertial pos="{centre[0]} {centre[1]} 0" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/>
      {inside}</body>"""


def site(name: str, at: Point) -> str:
    return f'<site name="{name}" pos="{at[0]} {at[1]} 0"/>'


def mechanism() -> str:
    """Rods from the crank, from B, and two pairs from A, whose ends are tied together at F."""
    at_a, at_b = (-0.06934, -0.00227), (-0.03635, 0.03273)
    rod = body("Theta", (0.007, 0.0), 0.00365, (-0.0115, 0.0), 4.410e-7, site("F", (-0.028, 0.0)))
    crank = body("beta", (0.0, 0.0), 0.04325, (0.00092, 0.0), 2.194e-6, rod)
    ends = site("F3", (0.0, -0.035)) + site("D", (0.02, -0.018))
    plate = body("gamma", at_b, 0.02373, (0.01874, 0.01043), 5.255e-6, ends)
    first = body("Phi", (0.04, 0.0), 0.00706, (0.0, -0.00579), 5.667e-7, site("F4", (0.0, -0.02)))
    second = body("Omega", (0.0, -0.04), 0.00706, (0.00579, 0.0), 5.667e-7, site("F6", (0.02, 0.0)))
    arms = body("delta", at_a, 0.0705, (0.02308, 0.00916), 1.169e-5, first)
    arms += body("epsilon", at_a, 0.05498, (0.01228, 0.00449), 1.912e-5, second)
    loops = "".join(f'<connect site1="F" site2="{name}"/>' for name in ("F3", "F4", "F6"))
    return f"""<mujoco><option gravity="0 0 0"/>
      <worldbody>{site("C", (0.014, 0.072))}{crank}{plate}{arms}</worldbody>
      <tendon><spatial stiffness="4530" springlength=".07785"><site site="D"/><site site="C"/></spatial></tendon>
      <equality>{loops}</equality></mujoco>"""


def error(integrator: str, dt: float) -> float:
    """The largest error of an angle at the end [rad]."""
    options = {"dt": dt, "steps": round(SECONDS / dt), "integrator": integrator}
    run = simulate(load_text(mechanism(), name="andrews.xml"), q0=START, torque={"beta": MOMENT}, **options)
    angles = dict(zip(run.robot.labels.coords, run.simulation.qpos.tolist(), strict=True))
    return max(abs(angles[name] - value) for name, value in END.items())


@pytest.mark.parametrize(("integrator", "largest"), [("midpoint", 0.06), ("semi-implicit-euler", 0.01)])
def test_half_the_step_halves_the_error(integrator: str, largest: float) -> None:
    errors = [error(integrator, dt) for dt in (8e-5, 4e-5, 2e-5, 1e-5)]
    assert errors[0] <= largest
    assert all(after <= 0.52 * before for before, after in itertools.pairwise(errors)), errors


def test_half_the_step_leaves_a_sixteenth_of_the_error_of_rk4() -> None:
    """Of fourth order, with its three loops."""
    errors = [error("rk4", dt) for dt in (8e-5, 4e-5, 2e-5)]
    assert errors[0] <= 2e-5
    assert all(after <= before / 12.0 for before, after in itertools.pairwise(errors)), errors


@pytest.mark.parametrize("asked", [1e-2, 1e-4, 1e-6])
def test_the_accuracy_asked_for_is_reached(asked: float, tmp_path: Path) -> None:
    """A second of motion may add the error asked for; this is 0.03 s of a mechanism that multiplies errors."""
    (tmp_path / "andrews.xml").write_text(mechanism())
    robot = artsim.load(tmp_path / "andrews.xml")
    run = artsim.simulate(robot, q0=START, torque={"beta": MOMENT}, dt=1e-3, steps=30, accuracy=asked)
    angles = dict(zip(robot.coords, run.final["qpos"].tolist(), strict=True))
    assert max(abs(angles[name] - value) for name, value in END.items()) <= asked
