"""Stiff servos of a light arm that push each other to their bounds and back within a step: what is held at a bound is
beyond it by its own law.
"""

from __future__ import annotations

import numpy as np
import pytest

from artsim.loaders.load import load_text
from artsim.sim.runs.controls import Controls
from tests.simulation import Array, simulate

STIFFNESS, DAMPING, BOUND, DT, HELD, STEPS = 400.0, 40.0, 300.0, 0.002, 25, 75
AXES = ("0 0 1", "0 1 0", "0 0 1", "0 1 0", "0 0 1", "0 1 0")
MASSES = (4.0, 4.0, 3.0, 2.5, 1.5, 0.3)


def arm(joint: str, actuator: str) -> str:
    """Six links in a row; the attributes are those of each joint and actuator."""
    links = "".join(
        f'<body pos="0 0 {0.18 * (n > 0)}"><joint name="j{n}" axis="{axis}" {joint}/>'
        f'<geom type="capsule" fromto="0 0 0 .02 .01 .18" size=".04" mass="{mass}"/>'
        for n, (axis, mass) in enumerate(zip(AXES, MASSES, strict=True))
    )
    servo = f'biastype="affine" gainprm="{STIFFNESS}" biasprm="0 {-STIFFNESS} {-DAMPING}" {actuator}'
    servos = "".join(f'<general joint="j{n}" {servo}/>' for n in range(len(AXES)))
    return f"<mujoco><worldbody>{links}{'</body>' * len(AXES)}</worldbody><actuator>{servos}</actuator></mujoco>"


def drawn(seed: int) -> Array:
    """(STEPS, 6) setpoints that jump every HELD steps."""
    draw = np.random.default_rng(seed).uniform(-3, 3, (STEPS // HELD, len(AXES)))
    return np.repeat(draw, HELD, axis=0)


@pytest.mark.small
@pytest.mark.parametrize(
    ("joint", "actuator", "seed"),
    [("", f'forcerange="-{BOUND} {BOUND}"', seed) for seed in (6, 7, 10)]
    + [(f'actuatorfrcrange="-{BOUND} {BOUND}"', "", seed) for seed in (69, 84)],
)
def test_what_is_held_at_its_bound_is_beyond_it(joint: str, actuator: str, seed: int) -> None:
    """A force that another one's bound has brought back within its own is not held any longer."""
    setpoint, nothing = drawn(seed), np.zeros((STEPS, len(AXES)))
    run = simulate(
        load_text(arm(joint, actuator), name="arm.xml"),
        dt=DT,
        steps=STEPS,
        contacts=False,
        controls=lambda _: Controls(np.arange(STEPS), nothing, nothing, nothing, setpoint),
        record=("qpos", "qvel", "tau_drive"),
    )
    q, v = np.vstack([run["qpos"], run.simulation.qpos]), np.vstack([run["qvel"], run.simulation.qvel])
    law = STIFFNESS * (setpoint - q[1:]) - DAMPING * v[1:]
    moved = STIFFNESS * DT * (np.abs(v[:-1]) + np.abs(v[1:]))  # by where in the step a spring acts
    force = run["tau_drive"]
    held = np.abs(np.abs(force) - BOUND) < 1e-9 * BOUND
    assert held.sum() > 20
    assert np.abs(force).max() <= BOUND * (1 + 1e-9)
    assert np.all((law * np.sign(force) + moved)[held] >= BOUND)
    assert np.all((np.abs(force - law) <= moved)[~held])
