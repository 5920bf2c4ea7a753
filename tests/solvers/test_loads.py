"""One answer where rows leave loads open: for all solvers, for lanes, for any order of bodies, scale and warm start.

The truth is that of loads.py: among impulses that hold, the least sum of squares, by numpy; where pads slip, loads that
are equal by symmetry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import load_text
from artsim.sim.foundation.records import WIDTH
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import Plan, plan_run
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDED, Results, SingleRoller, make_roller
from artsim.sim.runs.simulate import Simulation
from artsim.sim.runs.varied import Variations
from tests.simulation import Run, constant_controls, simulate

G = 9.81
H = 0.004
SIZE, ASIDE = 0.04, 0.008  # half a box's edge, its centre of mass from the middle along y [m]
PRESS = 2500.0 * 0.02  # of a pad at the start [N]


def numbers(*values: float) -> str:
    return " ".join(repr(float(value)) for value in values)


def hand(
    mass: float = 1.0, length: float = 1.0, *, order: tuple[int, ...] = (0, 1, 2), pad: str = "box", grip: float = 0.5
) -> str:
    """Two pads on a lift, and a free box between them whose centre of mass is aside; the bodies in this order.

    Masses are in units of `mass` kg, lengths in `length` m. Pads are boxes, or three balls each.
    """
    inertia = mass * length**2
    shapes = {
        "box": f'<geom type="box" size="{numbers(0.01 * length, 0.015 * length, 0.015 * length)}" mass="0"/>',
        "balls": "".join(
            f'<geom type="sphere" size="{0.01 * length!r}" pos="{numbers(0, y * length, z * length)}" mass="0"/>'
            for y, z in ((0.014, -0.01), (-0.014, -0.01), (0.0, 0.015))
        ),
    }
    pads = [
        f"""<body name="pad{n}" pos="{numbers(side * 0.05 * length, 0, 0)}">
        <joint name="pad{n}" type="slide" axis="{-side} 0 0"/>
        <inertial pos="0 0 0" mass="{0.1 * mass!r}" diaginertia="{numbers(*3 * (1e-4 * inertia,))}"/>
        {shapes[pad]}</body>"""
        for n, side in enumerate((1, -1))
    ]
    palm = f"""<body pos="{numbers(0, 0, 0.04 * length)}"><joint name="lift" type="slide" axis="0 0 1"/>
        <inertial pos="0 0 0" mass="{mass!r}" diaginertia="{numbers(*3 * (0.01 * inertia,))}"/>%s</body>"""
    size = numbers(*3 * (SIZE * length,))
    box = f"""<body name="box" pos="{numbers(0, 0, 0.04 * length)}"><freejoint name="box"/>
        <inertial pos="{numbers(0, ASIDE * length, 0.02 * length)}" mass="{grip * mass!r}"
        diaginertia="{numbers(*3 * (5e-4 * inertia,))}"/><geom type="box" size="{size}" mass="0"/></body>"""
    hands = palm % "".join(pads[n] for n in order if n < 2)
    bodies = box + hands if order[0] == 2 else hands + box
    return f"""<mujoco><compiler angle="radian"/><option cone="elliptic" gravity="0 0 {-G * length!r}"/>
        <default><geom friction="1 0 0" condim="3"/></default><worldbody>{bodies}</worldbody></mujoco>"""


def drives(mass: float = 1.0, length: float = 1.0, lifted: float = 0.05) -> dict[str, Any]:
    """Pads that press, and a lift so stiff that the box slips when it starts."""
    return {
        "stiffness": {"pad0": 2500.0 * mass, "pad1": 2500.0 * mass, "lift": 1e6 * mass},
        "damping": {"pad0": 50.0 * mass, "pad1": 50.0 * mass, "lift": 2e4 * mass},
        "target": {"pad0": 0.02 * length, "pad1": 0.02 * length, "lift": lifted * length},
    }


def lifted(text: str, solver: str = "newton", steps: int = 25, **options: Any) -> Run:
    given = {"contacts": True, "dt": H, "steps": steps, "solver": solver, "record": ("qpos", "qvel", "contacts")}
    return simulate(load_text(text, name="hand.xml"), **{**given, **drives(), **options})


def ending(run: Run) -> dict[str, float]:
    """Coordinates at the end, by name."""
    return dict(zip(run.robot.labels.coords, run.simulation.qpos.tolist(), strict=True))


# ---------------------------------------------------------------------------------------------------------- solvers


@pytest.mark.parametrize("solver", ["newton", "propagation", "direct", "brute"])
def test_pads_that_slip_bear_alike(solver: str) -> None:
    """The first step lifts faster than friction can: of the loads that the pads may have, and about which the box would
    then turn, all are equal: a quarter of what presses, which is known to a thousandth."""
    run = lifted(hand(), solver, steps=1)
    normals = run.simulation.final["contact"][:8, 3]
    assert normals == pytest.approx(np.full(8, normals.mean()), rel=1e-6)
    assert normals.mean() == pytest.approx(PRESS * H / 4, rel=0.01)


@pytest.mark.parametrize("pad", ["box", "balls"])
@pytest.mark.parametrize("solver", ["propagation", "direct", "brute"])
def test_solvers_slip_alike(solver: str, pad: str) -> None:
    """The box slips for two steps, tilts, and is held as it then is."""
    truth, found = (lifted(hand(pad=pad), name) for name in ("newton", solver))
    assert np.abs(truth.simulation.qpos[-4:] - [1, 0, 0, 0]).max() > 1e-2
    assert found.simulation.qpos == pytest.approx(truth.simulation.qpos, abs=1e-9)
    assert found["qvel"] == pytest.approx(truth["qvel"], rel=1e-8, abs=1e-8)


def test_pads_hold_by_the_least_squares() -> None:
    """At rest all eight points stick: λ is the shortest that balances the box and both pads, by numpy."""
    run = lifted(hand(), steps=300, target=drives(lifted=0.0)["target"])
    impulses = run.simulation.final["contact"][:8, 3:6]
    assert len(impulses) == 8 and np.abs(run.simulation.qvel).max() <= 1e-9
    assert np.linalg.norm(impulses) == pytest.approx(least(ending(run)), rel=1e-6)


def least(q: dict[str, float]) -> float:
    """The norm of the least impulses at rest [N s]: forces on the box that carry its weight, each pad pressing."""
    up = 0.04 + q["lift"] - (q["box.z"] + 0.02)
    corners = [(x, y - ASIDE, up + z) for x in (0.04, -0.04) for y in (-0.015, 0.015) for z in (-0.015, 0.015)]
    turns = [[[0, -z, y], [z, 0, -x], [-y, x, 0]] for x, y, z in corners]
    balance = np.concatenate([np.vstack([np.eye(3), turn]) for turn in turns], axis=1)
    presses = [np.concatenate([np.tile([-1.0, 0, 0], 4), np.zeros(12)]), np.tile([0.0], 24)]
    presses[1][12::3] = 1.0
    want = [0, 0, 0.5 * G, 0, 0, 0, 2500.0 * (0.02 - q["pad0"]), 2500.0 * (0.02 - q["pad1"])]
    return H * float(np.linalg.norm(np.linalg.lstsq(np.vstack([balance, *presses]), want, rcond=None)[0]))


# ------------------------------------------------------------------------------------- order, scale, what was before


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (2, 1, 0)])
def test_the_order_of_bodies_changes_nothing(order: tuple[int, ...]) -> None:
    truth = ending(lifted(hand()))
    assert abs(truth["box.qx"]) > 0.01
    assert ending(lifted(hand(order=order))) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize(("mass", "length"), [(1e6, 1.0), (1e-6, 1.0), (1.0, 1e3), (1.0, 1e-3), (1e-3, 1e-2)])
def test_units_change_nothing(mass: float, length: float) -> None:
    """Masses and lengths, with all that follows from them, in the same time steps."""
    truth, found = lifted(hand()), lifted(hand(mass, length), **drives(mass, length))
    units = [length if unit == "m" else 1.0 for unit in found.robot.labels.coord_units]
    assert found.rows["qpos"] / units == pytest.approx(truth.rows["qpos"], abs=1e-9)


@pytest.mark.parametrize("factor", [0.0, 3.0])
def test_what_was_before_changes_nothing(factor: float) -> None:
    """Other impulses to start from lead to the same velocities, where the box slips and where it is held."""
    for steps in (1, 5):
        ends = []
        for scale in (1.0, factor):
            simulation = Simulation(plan_of(hand()), constant_controls(plan_of(hand())))
            simulation.take(steps)
            snapshot = simulation.save()
            snapshot["contact"][:, 3:9] *= scale
            simulation.restore(snapshot)
            simulation.take(1)
            ends.append(np.array(simulation.qvel))
        assert ends[1] == pytest.approx(ends[0], rel=1e-7, abs=1e-7)


def plan_of(text: str, **options: Any) -> Plan:
    return plan_run(load_text(text, name="hand.xml"), RunConfig(contacts=True, dt=H, **{**drives(), **options}))


# ------------------------------------------------------------------------------------------------------------ lanes


@pytest.mark.parametrize("pad", ["box", "balls"])
def test_lanes_slip_as_single_runs(pad: str) -> None:
    """Eight boxes of different speeds at the start."""
    plan = plan_of(hand(pad=pad), steps=25, record=ROLLOUT_RECORDED)
    speeds = 0.02 * np.random.default_rng(3).normal(size=(WIDTH, plan.robot.nv))
    samples = Variations(np.repeat(plan.qpos[None], WIDTH, 0), speeds, {}, [constant_controls(plan)] * WIDTH)
    found = []
    for make in (make_roller, SingleRoller):
        roller = make(plan, samples.controls[0], Results.of(plan, WIDTH))
        roller.run(samples, lambda: False)
        found.append(roller.results.rows["qpos"][:WIDTH])
    assert np.abs(found[1][:, -1, -3]).max() > 0.01
    assert found[0] == pytest.approx(found[1], abs=1e-9)
