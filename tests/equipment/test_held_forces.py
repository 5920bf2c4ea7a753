"""Stiff servos and drives of a light arm that push each other to their bounds and back within a step: a force that is
held at a bound is beyond it by its own law, and drives that do not settle become rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from artsim.loaders.load import load_text
from artsim.sim.foundation.jit import disabled
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDED, PackRoller, Results, SingleRoller
from artsim.sim.runs.varied import Variations
from tests.simulation import Array, Run, simulate

HELD, STEPS = 25, 75


class Arm(NamedTuple):
    """Six links in a row, turned by servos."""

    stiffness: float = 400.0  # [N m/rad]
    damping: float = 40.0  # [N m s/rad]
    bound: float = 300.0  # [N m]
    dt: float = 0.002  # [s]
    axes: str = "zyzyzy"
    masses: tuple[float, ...] = (4.0, 4.0, 3.0, 2.5, 1.5, 0.3)  # [kg]

    def text(self, of_sums: bool) -> str:
        """The model as MJCF, bounded by the joints' sums or by the actuators."""
        bound = f'"-{self.bound} {self.bound}"'
        joint, actuator = (f"actuatorfrcrange={bound}", "") if of_sums else ("", f"forcerange={bound}")
        servo = f'biastype="affine" gainprm="{self.stiffness}" biasprm="0 {-self.stiffness} {-self.damping}" {actuator}'
        servos = "".join(f'<general joint="j{n}" {servo}/>' for n in range(len(self.axes)))
        return f"<mujoco>{self.tree(joint)}<actuator>{servos}</actuator></mujoco>"

    def tree(self, joint: str) -> str:
        """The links, whose joints have these attributes."""
        turn = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}
        links = "".join(
            f'<body pos="0 0 {0.18 * (n > 0)}"><joint name="j{n}" axis="{turn[axis]}" {joint}/>'
            f'<geom type="capsule" fromto="0 0 0 .02 .01 .18" size=".04" mass="{mass}"/>'
            for n, (axis, mass) in enumerate(zip(self.axes, self.masses, strict=True))
        )
        return f"<worldbody>{links}{'</body>' * len(self.axes)}</worldbody>"


HEAVY = Arm()
# in some step of these, forces that all change sides at once go round in circles
CIRCLING = [
    (Arm(8450, 348, 14.7, 0.00727, "xxxxzx", (0.255, 0.0127, 7.36, 0.0138, 0.0421, 0.0354)), 172),
    (Arm(482, 10.0, 25.7, 0.00401, "yyyyxx", (0.124, 0.0728, 0.0211, 4.25, 0.666, 8.92)), 178),
    (Arm(1290, 49.7, 62.7, 0.00456, "yzyxxy", (0.539, 0.0102, 0.335, 0.0118, 0.0213, 3.46)), 396),
]


def drawn(seed: int) -> Array:
    """(STEPS, 6) setpoints that jump every HELD steps."""
    draw = np.random.default_rng(seed).uniform(-3, 3, (STEPS // HELD, 6))
    return np.repeat(draw, HELD, axis=0)


def controls_of(setpoint: Array) -> Controls:
    """A row of controls for each step."""
    nothing = np.zeros((STEPS, 6))
    return Controls(np.arange(STEPS), nothing, nothing, nothing, setpoint)


def run_arm(arm: Arm, of_sums: bool, setpoint: Array) -> Run:
    """Follow the setpoints."""
    return simulate(
        load_text(arm.text(of_sums), name="arm.xml"),
        dt=arm.dt,
        steps=STEPS,
        contacts=False,
        controls=lambda _: controls_of(setpoint),
        record=("qpos", "qvel", "tau_drive", "solver_residual"),
    )


@pytest.mark.small
@pytest.mark.parametrize(
    ("arm", "of_sums", "seed"),
    [(HEAVY, False, seed) for seed in (6, 7, 10)]
    + [(HEAVY, True, seed) for seed in (69, 84)]
    + [(arm, of_sums, seed) for arm, seed in CIRCLING for of_sums in (False, True)],
)
def test_what_is_held_at_its_bound_is_beyond_it(arm: Arm, of_sums: bool, seed: int) -> None:
    """A force that another one's bound has brought back within its own is not held any longer."""
    setpoint = drawn(seed)
    run = run_arm(arm, of_sums, setpoint)
    q, v = np.vstack([run["qpos"], run.simulation.qpos]), np.vstack([run["qvel"], run.simulation.qvel])
    law = arm.stiffness * (setpoint - q[1:]) - arm.damping * v[1:]
    moved = arm.stiffness * arm.dt * (np.abs(v[:-1]) + np.abs(v[1:]))  # by where in the step a spring acts
    force = run["tau_drive"]
    held = np.abs(np.abs(force) - arm.bound) < 1e-9 * arm.bound
    assert held.sum() > 20
    assert run["solver_residual"].max() <= 1e-9
    assert np.abs(force).max() <= arm.bound * (1 + 1e-9)
    assert np.all((law * np.sign(force) + moved)[held] >= arm.bound)
    assert np.all((np.abs(force - law) <= moved)[~held])


@pytest.mark.small
@pytest.mark.parametrize("of_sums", [False, True])
@pytest.mark.parametrize(("arm", "seed"), CIRCLING)
def test_lanes_settle_in_their_pack(arm: Arm, seed: int, of_sums: bool) -> None:
    """Lanes, of which one is the run above, are single runs."""
    packs, singles = side_by_side(arm, of_sums, [drawn(seed + n) for n in range(3)])
    assert not packs.unsolved.any() and not singles.unsolved.any()


@pytest.mark.small
@pytest.mark.skipif(not disabled(), reason="compiled kernels do not see that there are fewer rounds")
@pytest.mark.parametrize("of_sums", [False, True])
@pytest.mark.parametrize(("arm", "seed"), CIRCLING[:2])
def test_the_excess_over_bounds_is_told_in_lanes(
    arm: Arm, seed: int, of_sums: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forces that go round in circles up to the last round: what they exceed their bounds by is the step's residual."""
    monkeypatch.setattr("artsim.sim.stepping.retries._ROUNDS_PER_FORCE", 0)
    packs, singles = side_by_side(arm, of_sums, [drawn(seed)], 2)
    assert packs.unsolved[0] == singles.unsolved[0] > 0
    assert packs.residual[0] == pytest.approx(singles.residual[0], rel=1e-6)


def side_by_side(arm: Arm, of_sums: bool, setpoints: list[Array], steps: int = STEPS) -> tuple[Results, Results]:
    """The results of a pack whose lanes follow the setpoints, and of single runs, which take the same ways."""
    count, config = len(setpoints), RunConfig(steps=steps, dt=arm.dt, contacts=False, record=ROLLOUT_RECORDED)
    plan = plan_run(load_text(arm.text(of_sums), name="arm.xml"), config)
    rest, controls = np.zeros((count, 6)), [controls_of(setpoint) for setpoint in setpoints]
    rollers = [make(plan, controls[0], Results.of(plan, count)) for make in (PackRoller, SingleRoller)]
    for roller in rollers:
        assert roller.run(Variations(rest, rest, {}, controls), lambda: False)
    packs, singles = (roller.results for roller in rollers)
    for name in ROLLOUT_RECORDED:
        one = singles.rows[name][:count]
        np.testing.assert_allclose(packs.rows[name][:count], one, rtol=0, atol=1e-9 * np.abs(one).max())
    return packs, singles


# in some step of these, drives beside friction do not settle; with the friction of joints [N m]
UNSETTLED = [
    (
        Arm(
            1580,
            200,
            106,
            0.00383,
            "zyyxxzxzxy",
            (0.0634, 0.275, 0.169, 0.0324, 1.17, 0.0351, 0.0121, 0.0383, 3.31, 2.8),
        ),
        0.11,
        3330,
    ),
    (
        Arm(
            581,
            33.7,
            30.8,
            0.00846,
            "yyyzxyyzyxyz",
            (1.83, 0.115, 0.233, 0.0246, 0.06, 0.0132, 0.0148, 0.0179, 4.93, 1.57, 0.571, 2.48),
        ),
        0.15,
        6015,
    ),
]


@pytest.mark.small
@pytest.mark.parametrize(("arm", "friction", "seed"), UNSETTLED)
def test_drives_become_rows_in_the_lanes_where_they_do_not_settle(
    arm: Arm, friction: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other lanes keep them in the matrix, and all lanes are single runs."""
    steps, held, lanes, nv = 60, 15, 8, len(arm.axes)
    start = np.arange(0, steps, held)
    nothing, none = np.zeros((len(start), nv)), np.zeros((len(start), 0))
    targets = [np.random.default_rng(seed + n).uniform(-3, 3, nothing.shape) for n in range(lanes)]
    controls = [Controls(start, nothing, target, nothing, none) for target in targets]
    drives = {"stiffness": {"*": arm.stiffness}, "damping": {"*": arm.damping}, "drive_limit": {"*": arm.bound}}
    config = RunConfig(steps=steps, dt=arm.dt, contacts=False, record=ROLLOUT_RECORDED, **drives)
    tree = arm.tree(f'frictionloss="{friction}"')
    plan = plan_run(load_text(f"<mujoco>{tree}</mujoco>", name="arm.xml"), config)
    starts = Variations(np.zeros((lanes, nv)), np.zeros((lanes, nv)), {}, controls)
    monkeypatch.setattr("artsim.sim.runs.sampled_runs._STEPS_PER_CALL", 1)
    packs, singles = (make(plan, controls[0], Results.of(plan, lanes)) for make in (PackRoller, SingleRoller))
    by_row = []

    def look() -> bool:
        by_row.append(np.array(packs.pack.step.drive_rows[0]))
        return False

    assert packs.run(starts, look)
    assert singles.run(starts, lambda: False)
    assert 0 < np.sum(by_row) < 0.1 * np.size(by_row)
    for name in ROLLOUT_RECORDED:
        one = singles.results.rows[name]
        np.testing.assert_allclose(packs.results.rows[name], one, rtol=0, atol=1e-9 * np.abs(one).max())
