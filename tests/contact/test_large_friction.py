"""Coefficients of friction beyond what can slide change nothing; what needs them has them.

Truth: the same scene with a coefficient that suffices, and the balance of forces at a wall.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import load_text
from tests.simulation import Run, simulate

Array = np.ndarray[Any, Any]
G = 9.81
CART = """<robot name="cart"><link name="cart"><inertial><mass value="1"/>
<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
<gazebo reference="wheel"><mu1>{mu}</mu1><mu2>{mu}</mu2></gazebo>
<link name="wheel"><inertial><mass value="0.1"/>
<inertia ixx="6e-5" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="6e-5"/></inertial>
<collision><origin rpy="1.5685 0 0"/><geometry><cylinder radius="0.03" length="0.02"/></geometry></collision></link>
<joint name="axle" type="continuous"><parent link="cart"/><child link="wheel"/><axis xyz="0 1 0"/></joint>
{casters}</robot>"""
CASTER = """<link name="c{n}"><inertial><mass value="0.1"/>
<inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="1e-4"/></inertial>
<collision><geometry><sphere radius="0.03"/></geometry></collision></link>
<joint name="f{n}" type="fixed"><parent link="cart"/><child link="c{n}"/><origin xyz="-0.1 {y} 0"/></joint>"""


def driven(mu: str, cone: str) -> Run:
    """A cart on a driven wheel, which rolls on an edge since it leans a little, and two casters that slide."""
    casters = "".join(CASTER.format(n=n, y=y) for n, y in enumerate((0.1, -0.1)))
    return simulate(
        CART.format(mu=mu, casters=casters),
        base="floating",
        ground=True,
        dt=0.002,
        steps=60,
        base_pose={"root": (0, 0, 0.0301)},
        damping={"axle": 0.02},
        target_velocity={"axle": 6.0},
        cone=cone,
        record=("qpos", "qvel", "solver_residual"),
    )


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_a_wheel_that_grips_rolls_alike_at_any_coefficient(cone: str) -> None:
    usual = driven("5", cone)
    for mu in ("1e5", "1e9", "1e30"):
        run = driven(mu, cone)
        off = np.abs(run.simulation.qpos - usual.simulation.qpos).max()
        print(f"\n{cone} {mu}: {off:.1e} off, {run.simulation.eased_steps} steps gave way", end="")
        assert off <= (1e-9 if cone == "elliptic" else 0.02)  # before it touches, a pyramid rises by μ times its slip
        assert run.simulation.eased_steps == 0
        assert run["solver_residual"].max() <= 1e-9


def wall(friction: str) -> str:
    """A block of 1 kg that an actuator presses against a wall with 0.1 N."""
    return (
        f'<mujoco><option cone="elliptic" gravity="0 0 {-G}"/>'
        f'<default><geom friction="{friction}"/></default><worldbody>'
        '<geom type="box" size=".1 2 2" pos="-.1 0 0"/><body pos=".05 0 0"><joint name="x" type="slide" axis="1 0 0"/>'
        '<joint name="z" type="slide" axis="0 0 1"/><geom type="box" size=".05 .05 .05" mass="1"/></body></worldbody>'
        '<actuator><motor name="press" joint="x" ctrlrange="-1 1"/></actuator></mujoco>'
    )


@pytest.mark.parametrize(
    ("friction", "condim"), [("50 .005 .0001", 3), ("97 .005 .0001", 3), ("99 .005 .0001", 3), ("1e7 1e7 1e7", 6)]
)
def test_what_needs_a_large_coefficient_has_it(friction: str, condim: int) -> None:
    """It falls with g - μ N / m where that is more than 0, else it stays."""
    model = load_text(wall(friction).replace("<geom friction", f'<geom condim="{condim}" friction'), name="wall.xml")
    run = simulate(model, contacts=True, dt=0.002, steps=50, control={"press": -0.1}, record=("qvel",))
    falls = max(G - float(friction.split()[0]) * 0.1, 0.0)
    v = np.concatenate([run["qvel"][:, 1], [run.simulation.qvel[1]]])
    print(f"\n{friction}: falls with {-v[-1] / 0.1:.4f} m/s², want {falls:.4f}", end="")
    assert v == pytest.approx(-falls * 0.002 * np.arange(51), abs=1e-7)
