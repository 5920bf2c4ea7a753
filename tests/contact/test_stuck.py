"""What friction holds: stiff fingers that jam, grasps by pads, contacts that share; and what is said where it does not.

`python -m pytest tests/contact/test_stuck.py -s` prints the figures.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import load_text
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from tests.benchmarks.structures import arch, moved
from tests.cli.test_cli_run import good, refused
from tests.contact.test_contact_closed_forms import FLOOR, mjcf
from tests.simulation import FORCES, Array, Run, constant_controls, robot_file, simulate, source_text

SOLVERS = ("newton", "propagation", "direct")
RADIUS = 0.01
BALANCE = ("qacc", "mass_matrix", "bias", *FORCES, "tau_contact")


def finger(lengths: tuple[float, ...], friction: float) -> str:
    """Links that lie level 0.05 m above where the last one's ball can reach, none but the first bends back."""
    parts = ['<link name="base"/>']
    for n, length in enumerate(lengths):
        before = "base" if n == 0 else f"l{n - 1}"
        place = f"0 0 {0.75 * sum(lengths[1:])}" if n == 0 else f"{lengths[n - 1]} 0 0"
        lower = -1000.0 if n == 0 else 0.0
        parts.append(
            f'<joint name="j{n}" type="revolute"><parent link="{before}"/><child link="l{n}"/>'
            f'<origin xyz="{place}"/><axis xyz="0 1 0"/><limit lower="{lower}" upper="3" effort="1e12" velocity="1e6"/>'
            "</joint>"
        )
        ball = f'<collision><origin xyz="{length} 0 0"/><geometry><sphere radius="{RADIUS}"/></geometry></collision>'
        size = length**2 * 0.1 / 12
        parts.append(
            f'<link name="l{n}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="0.1"/>'
            f'<inertia ixx="1e-6" iyy="{size}" izz="{size}" ixy="0" ixz="0" iyz="0"/></inertial>'
            f"{ball if n == len(lengths) - 1 else ''}</link>"
        )
    last = len(lengths) - 1
    return f'<robot name="f">{"".join(parts)}<gazebo reference="l{last}"><mu1>{friction}</mu1></gazebo></robot>'


def pressed(lengths: tuple[float, ...], friction: float, stiffness: float, damping: float, **options: Any) -> Run:
    """The first joint's drive presses the ball onto the ground for half a second."""
    return simulate(
        finger(lengths, friction),
        ground=True,
        ground_friction=friction,
        target={"j0": 1.5},
        stiffness={"j0": stiffness},
        damping={"j0": damping},
        record=("qpos", "qvel", "contacts", *BALANCE),
        **options,
    )


def imbalance(run: Run) -> float:
    """max |M qacc + bias - sum tau| over the largest single force of the run."""
    forces = [run[name] for name in (*FORCES, "tau_contact")]
    left = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"]) + run["bias"] - sum(forces)
    return float(np.abs(left).max() / max(np.abs(force).max() for force in (*forces, run["bias"])))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("lengths", [(0.1, 0.1), (0.1, 0.08, 0.06)], ids=["two", "three"])
def test_fingers_that_jam_go_nowhere(lengths: tuple[float, ...], solver: str) -> None:
    """Drives of up to 1e8 N m/rad against light links, friction up to 5: limits hold, nothing goes into the ground."""
    worst_limit = worst_depth = worst_balance = 0.0
    for friction in (0.0, 0.5, 1.2, 5.0):
        for stiffness in (1e1, 1e2, 1e6, 1e7, 1e8):
            for damping, dt in ((0.0, 1 / 60), (1e-2, 1 / 240), (1e-3, 1e-3)):
                options: dict[str, Any] = {"dt": dt, "steps": round(0.5 / dt), "solver": solver}
                run = pressed(lengths, friction, stiffness, stiffness * damping, **options)
                worst_limit = max(worst_limit, -float(run["qpos"][:, 1:].min()))
                worst_depth = max(worst_depth, run.simulation.contact_extremes[1])
                worst_balance = max(worst_balance, imbalance(run))
                assert np.isfinite(run["qpos"]).all()
    print(f"\n{solver}: limits to {worst_limit:.1e} rad, {worst_depth:.1e} m deep, {worst_balance:.1e} off", end="")
    assert worst_balance <= 1e-9
    assert worst_limit <= (1e-9 if solver == "newton" else 1e-7)
    assert worst_depth <= (1e-9 if solver == "newton" else 1e-8)


@pytest.mark.parametrize("friction", [1.95, 2.0, 2.05, 2.1])
def test_a_finger_at_the_edge_of_wedging_stays_above_the_ground(friction: float) -> None:
    """Straight, it points 0.4668 rad down: friction above cot 0.4668 = 1.98 holds any force. The drive presses with
    1e7 N s, in whose last digits a slide of 1e-8 m/s is lost where velocities are not weighed by that."""
    text = source_text(robot_file("finger")).replace("<mu1>0.5</mu1>", f"<mu1>{friction}</mu1>")
    for stiffness in (1e7, 1e8):
        for hertz in range(54, 64):
            run = simulate(
                text,
                ground=True,
                ground_friction=friction,
                target={"proximal_joint": 1.5},
                stiffness={"proximal_joint": stiffness},
                damping={"proximal_joint": stiffness / 100},
                dt=1 / hertz,
                steps=hertz // 4,
                record=("qpos", "contacts", *BALANCE),
            )
            assert run.simulation.worst_residual <= 1e-9
            assert run["qpos"][:, 1].min() >= -1e-9
            assert run.simulation.contact_extremes[1] <= 1e-9
            assert imbalance(run) <= 1e-9


# ---------------------------------------------------------------------------------------------------------- grasps


def gripper(pad: str, mass: float, friction: float) -> str:
    """Two pads on slides in a hand that goes up, a box between them."""
    inertia = '<inertial pos="0 0 0" mass=".1" diaginertia="1e-4 1e-4 1e-4"/>'
    pads = "".join(
        f'<body pos="{x} 0 0"><joint name="{name}" type="slide" axis="1 0 0"/>{inertia}{pad}</body>'
        for name, x in (("l", -0.05), ("r", 0.05))
    )
    return mjcf(
        f"""<body pos="0 0 .04"><joint name="lift" type="slide" axis="0 0 1"/>
        <inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>{pads}</body>
        <body name="box" pos="0 0 .04"><freejoint name="box"/>
        <geom type="box" size=".04 .04 .04" mass="{mass}" condim="3"/></body>""",
        geom=f'friction="{friction} 0 0"',
    )


PADS = {
    "one point": '<geom type="sphere" size=".01"/>',
    "a flat pad": '<geom type="box" size=".01 .015 .015"/>',
    "sixteen points": "".join(
        f'<geom type="sphere" size=".01" pos="0 {y} {z}"/>'
        for y in (-0.015, -0.005, 0.005, 0.015)
        for z in (-0.015, -0.005, 0.005, 0.015)
    ),
}


SQUEEZE = 100.0  # N of each pad


def grasp(pad: str, margin: float, *, shaken: bool, seconds: float = 0.25) -> float:
    """How far a box slips for which pads squeeze so many times as hard as friction needs [m].

    Shaken, the hand goes up and down at 10 Hz, as fast as the margin allows.
    """
    friction, dt = 0.8, 1e-3
    shake = 0.5 * (margin - 1.0) * 9.81 if shaken else 0.0
    mass = 2.0 * friction * SQUEEZE / (9.81 * margin)
    angle = 2.0 * math.pi * 10.0
    times = dt * np.arange(round(seconds / dt))

    def controls(plan: Plan) -> Controls:
        constant = constant_controls(plan)
        target = np.repeat(constant.target, len(times), axis=0)
        target[:, plan.robot.dofs.index("lift")] = shake / angle**2 * (1.0 - np.cos(angle * times))
        rows = [np.repeat(values, len(times), axis=0) for values in (constant.torque, constant.target_velocity)]
        return Controls(np.arange(len(times)), rows[0], target, rows[1])

    run = simulate(
        load_text(gripper(PADS[pad], mass, friction), name="grasp.xml"),
        controls=controls,
        contacts=True,
        steps=len(times),
        dt=dt,
        torque={"l": SQUEEZE, "r": -SQUEEZE},
        stiffness={"lift": 1e7},
        damping={"lift": 1e5},
        target={"lift": 0.0},
        record=("qpos", "contacts"),
    )
    q = run["qpos"]
    fall = q[:, run.plan.robot.coords.index("box.z")] - q[:, run.plan.robot.coords.index("lift")]
    return float(np.abs(fall - fall[0]).max())


@pytest.mark.parametrize("pad", PADS)
def test_grasps_hold_what_friction_holds(pad: str) -> None:
    """However many points a pad has: a held box does not slip, shaken or not; 1 % less than enough is too little."""
    for margin in (1.2, 2.0, 5.0):
        for shaken in (False, True):
            assert grasp(pad, margin, shaken=shaken) <= 1e-6
    assert grasp(pad, 1.01, shaken=False) <= 1e-6
    assert grasp(pad, 0.99, shaken=False) >= 1e-3


# ---------------------------------------------------------------------------------------------------------- arches


@pytest.mark.parametrize("count", [9, 15])
def test_arches_stand_by_the_friction_they_need(count: int) -> None:
    """Semicircles of 39 and 63 contacts; statics asks for 0.30899 (tests/benchmarks/structures.py)."""
    model, _, _ = arch(count, 0.4, 0.5)
    assert moved(model(0.312)) <= 1e-6
    assert moved(model(0.306)) >= 1e-3


# --------------------------------------------------------------------------------------------------------- sharing


def feet(points: Array, friction: float) -> str:
    """A body on balls, its centre of mass aside."""
    balls = "".join(
        f'<geom type="sphere" size=".005" pos="{x!r} {y!r} 0" mass="0" condim="3"/>' for x, y in points.tolist()
    )
    return mjcf(
        f"""{FLOOR}<body pos="0 0 .005"><freejoint name="b"/>
        <inertial pos=".003 .006 .05" mass="1.3" diaginertia="2e-3 3e-3 2.5e-3"/>{balls}</body>""",
        geom=f'friction="{friction} 0 0"',
    )


@pytest.mark.parametrize("count", [4, 7, 8, 30])
def test_contacts_share_what_they_hold(count: int) -> None:
    """At rest after a fall the impulses are the least that hold, in the sum of squares, by numpy; in any order."""
    rng = np.random.default_rng(count)
    angles = 2 * np.pi * np.arange(count) / count
    points = np.stack([0.06 * np.cos(angles), 0.05 * np.sin(angles)], axis=1) * rng.uniform(0.7, 1.0, (count, 1))
    arms = np.column_stack([points, np.full(count, -0.005)]) - [0.003, 0.006, 0.05]
    balance = np.concatenate([np.concatenate([np.eye(3), cross(arm)]) for arm in arms], axis=1)
    want = np.linalg.lstsq(balance, [0, 0, 1.3 * 9.81, 0, 0, 0], rcond=None)[0].reshape(-1, 3)
    assert (np.hypot(*want[:, :2].T) <= 0.8 * want[:, 2]).all()
    for order in (np.arange(count), rng.permutation(count)):
        run = simulate(
            load_text(feet(points[order], 0.8), name="feet.xml"),
            contacts=True,
            steps=150,
            dt=2e-3,
            q0={"b.z": 0.006},
            record=("qpos", "tau_contact", "contacts"),
        )
        forces = run.simulation.final["contact"][:count, 3] / run.plan.dt
        assert np.sort(forces) == pytest.approx(np.sort(want[:, 2]), rel=1e-5)  # the proximal term is 1e-6


def cross(arm: Array) -> Array:
    """arm × as a matrix."""
    x, y, z = arm
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


# ------------------------------------------------------------------------------------------------ what is said of it


def test_unsolved_steps_are_told_and_refused(tmp_path: Path) -> None:
    """Sweeps that are too few leave a residual: a warning, a number in --json, exit code 3 under --strict."""
    model = tmp_path / "stack.xml"
    boxes = "".join(
        f'<body pos="0 0 {0.05 + 0.1 * k}"><freejoint/><geom type="box" size=".05 .05 .05" mass="{10.0**k}"/></body>'
        for k in range(4)
    )
    model.write_text(mjcf(FLOOR + boxes))
    options = (model, "--steps", "50", "--solver", "pgs", "--iterations", "2")
    told = good("run", *options, "--json")
    summary = json.loads(told.stdout)
    assert summary["unsolved_steps"] > 0
    assert summary["worst_solver_residual"] > 1e-6
    assert "unsolved in" in good("run", *options).stderr
    refused(3, "run", *options, "--strict", words=("--strict", "unsolved"))
    run = tmp_path / "run.h5"
    good("run", model, "--steps", "3", "--solver", "pgs", "--iterations", "2", "-o", run)
    refused(3, "run", "--resume", run, "--steps", "50", "--strict", words=("--strict", "unsolved"))
