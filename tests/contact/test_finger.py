"""The finger of the PhysX guide: a stiff drive, a joint limit and the ground, with friction, that compete.

Two links lie level above the ground, the distal joint cannot bend back, the drive of the proximal one wants 1.5 rad and
presses the tip onto the ground, where it is at 0.4668 rad. The rigid answer: the limit holds at 0, the tip touches.
`python -m pytest tests/contact/test_finger.py -s` prints the figures.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.simulation import FORCES, Array, Run, relative, robot_file, simulate, source_text

FINGER = robot_file("finger")
LENGTH, HEIGHT, RADIUS = 0.1, 0.1, 0.01  # of a link; of the proximal joint; of the tip
REST = math.asin((HEIGHT - RADIUS) / (2 * LENGTH))
TARGET = 1.5
DRIVES = {
    "K 10": (10.0, 1.0, math.inf),
    "K 1e4, 10 N m": (1e4, 1e2, 10.0),
    "K 1e4": (1e4, 1e2, math.inf),
    "K 1e6": (1e6, 1e4, math.inf),
}
STARTS = {"near": math.asin((HEIGHT - RADIUS - 1e-4) / (2 * LENGTH)), "high": 0.0}  # 0.1 mm and 90 mm above the ground
SECONDS = 3.0


def finger(drive: str, start: str, dt: float, friction: float, **config: Any) -> Run:
    """Three seconds; the tip and the ground have this friction."""
    stiffness, damping, limit = DRIVES[drive]
    text = source_text(FINGER).replace("<mu1>0.5</mu1>", f"<mu1>{friction}</mu1>")
    joint = "proximal_joint"
    given: dict[str, Any] = {
        "steps": round(SECONDS / dt),
        "ground": True,
        "ground_friction": friction,
        "q0": {joint: STARTS[start]},
        "target": {joint: TARGET},
        "stiffness": {joint: stiffness},
        "damping": {joint: damping},
        "record": ("qpos", "qvel", "qacc", "mass_matrix", "bias", *FORCES, "tau_contact"),
    }
    if limit < math.inf:
        given["drive_limit"] = {joint: limit}
    return simulate(text, dt=dt, **(given | config))


def height(q: Array) -> Array:
    """Of the tip's lowest point, by the geometry alone [m]."""
    tip: Array = HEIGHT - LENGTH * (np.sin(q[:, 0]) + np.sin(q[:, 0] + q[:, 1])) - RADIUS
    return tip


def tip_jacobian(q: Array) -> Array:
    """Velocity (x, z) of the tip's lowest point by the joints' (2, 2)."""
    first, both = q[0], q[0] + q[1]
    distal = np.array([-LENGTH * math.sin(both) - RADIUS, -LENGTH * math.cos(both)])
    return np.column_stack([distal + LENGTH * np.array([-math.sin(first), -math.cos(first)]), distal])


@pytest.mark.parametrize("friction", [0.5, 0.0])
@pytest.mark.parametrize("dt", [1 / 240, 1e-3], ids=["240 Hz", "1 kHz"])
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("drive", DRIVES)
def test_finger(drive: str, start: str, dt: float, friction: float) -> None:
    run = finger(drive, start, dt, friction)
    q = np.vstack([run["qpos"][1:], run.simulation.qpos])
    last = q[-round(1 / dt) :]
    broken, depth = max(0.0, -q[:, 1].min()), max(0.0, -height(q).min())
    chatter = max(np.ptp(last[:, 1]), np.ptp(last[:, 0]))
    print(
        f"\n{drive:13} {start} dt {dt:.4f} mu {friction}  q1 {last[:, 0].mean():.4f}  limit broken {broken:.0e} rad  "
        f"penetration {1e3 * depth:.0e} mm  peak to peak {chatter:.0e} rad",
        end="",
    )
    assert broken <= 1e-6
    assert depth <= 1e-6
    assert chatter <= 1e-9
    assert last[:, 0] == pytest.approx(REST, abs=1e-6)
    assert last[:, 1] == pytest.approx(0, abs=1e-6)
    forces_hold(run, drive, friction)


def forces_hold(run: Run, drive: str, friction: float) -> None:
    """All forces add up in every step; at rest the contact's are within their cone and carry drive and weight."""
    left = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"]) + run["bias"]
    right = sum(run[name] for name in (*FORCES, "tau_contact"))
    assert relative(left - right, run["tau_contact"]) <= 1e-9
    stiffness, damping, limit = DRIVES[drive]
    q = run["qpos"][-1]
    asked = stiffness * (TARGET - run.simulation.qpos[0]) - damping * run.simulation.qvel[0]
    assert run["tau_drive"][-1, 0] == pytest.approx(min(asked, limit), rel=1e-9)
    force = np.linalg.solve(tip_jacobian(q).T, run["tau_contact"][-1])
    assert force[1] > 0
    assert abs(force[0]) <= (friction * (1 + 1e-6) + 1e-12) * force[1]
    limit_force = run["tau_limit"][-1]
    assert limit_force[0] == 0
    assert limit_force[1] >= 0
    assert run["tau_drive"][-1] + run["tau_contact"][-1] + limit_force == pytest.approx(
        run["bias"][-1], rel=1e-9, abs=1e-9 * np.abs(run["tau_drive"][-1]).max()
    )


@pytest.mark.small
def test_the_first_steps() -> None:
    """The stiffest drive from above: the tip is at the surface after two steps of this, and never below it."""
    run = finger("K 1e6", "high", 1 / 240, 0.5, steps=12)
    q = np.vstack([run["qpos"][1:], run.simulation.qpos])
    assert height(q).min() >= -1e-6
    assert q[:, 1].min() >= -1e-6
    assert height(q)[-1] <= 1e-6
