"""Bodies that turn far in a step, or are struck in it, stay outside of each other, and gain no energy for it.

Truth: hard surfaces do not enter each other; energy is that at the start at most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.io.runs.prepare import held_controls
from artsim.loaders.load import load_text
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.sampled_runs import PackRoller, Results
from artsim.sim.runs.varied import Variations
from tests.contact.test_contact_closed_forms import FLOOR
from tests.simulation import Run, simulate

Array = np.ndarray[Any, Any]
RECORD = ("qpos", "qvel", "energy", "solver_residual")
SIZE = 0.03  # [m] the least half extent of the bodies below
SOLIDS = {
    "box": 'type="box" size=".05 .04 .03"',
    "sphere": 'type="sphere" size=".04"',
    "capsule": 'type="capsule" size=".03 .05"',
    "cylinder": 'type="cylinder" size=".04 .03"',
    "ellipsoid": 'type="ellipsoid" size=".05 .04 .03"',
}
TETRAHEDRON = (
    '<asset><mesh name="solid" vertex=".06 0 -.03 -.03 .05 -.03 -.03 -.05 -.03 0 0 .05"/></asset>',
    'type="mesh" mesh="solid"',
)


def scaled(geom: str, scale: float) -> str:
    """A geom whose sizes are `scale` times as large."""
    before, _, rest = geom.partition('size="')
    sizes, _, after = rest.partition('"')
    return before + 'size="' + " ".join(f"{scale * float(size):.9g}" for size in sizes.split()) + '"' + after


def pair(first: str, second: str, scale: float, friction: float, *, ground: bool, more: str = "") -> str:
    """The first body spins below the second, which falls on it."""
    floor = FLOOR.replace("5 5 1", f"{50 * scale} {50 * scale} 1") if ground else ""
    bodies = "".join(
        f'<body name="{name}" pos="{scale * x} {scale * y} {scale * z}" quat="{turned}"><freejoint name="{name}"/>'
        f"<geom {geom} mass='1'/></body>"
        for name, geom, (x, y, z), turned in (
            ("one", first, (0.01, 0, 0.11), ".9 .3 -.2 .1"),
            ("two", second, (-0.01, 0.01, 0.23), ".6 -.2 .5 .3"),
        )
    )
    return (
        f'<mujoco><option cone="elliptic" gravity="0 0 {-9.81 * scale}"/>'
        f'<default><geom friction="{friction} 0 0" condim="{3 if friction else 1}"/></default>{more}'
        f"<worldbody>{floor}{bodies}</worldbody></mujoco>"
    )


def spun(text: str, scale: float, dt: float, seconds: float = 0.4, **config: Any) -> Run:
    v0 = {"one.wx": -22.0, "one.wy": -11.0, "one.wz": 6.0, "one.vz": scale, "two.vz": -1.5 * scale}
    model = load_text(text, name="scene.xml")
    given: dict[str, Any] = {"dt": dt, "steps": round(seconds / dt), "contacts": True, "record": RECORD, "v0": v0}
    return simulate(model, **(given | config))


def judge(run: Run, scale: float) -> None:
    """No deeper than a thousandth of the least half extent; no energy is gained but what an Euler step of free fall
    makes.
    """
    found = run.simulation.gave_way
    depth = 0.0 if found is None else found[2] / scale
    energy = run["energy"].sum(axis=1)
    gain = float(np.diff(energy).max(initial=0.0) / energy[0])
    print(f"\n{depth:.1e} m deep, gain {gain:.1e}, met {run.simulation.contact_extremes[0]}", end="")
    assert run.simulation.contact_extremes[0] > 0
    assert depth <= 1e-3 * SIZE
    assert gain <= 2e-3
    assert energy[-1] <= energy[0]


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("dt", [0.004, 0.001])
@pytest.mark.parametrize("second", ["sphere", "capsule", "cylinder"])
def test_what_falls_on_a_spinning_box_stays_outside(second: str, dt: float, friction: float) -> None:
    judge(spun(pair(SOLIDS["box"], SOLIDS[second], 1.0, friction, ground=False), 1.0, dt), 1.0)


@pytest.mark.parametrize("first", SOLIDS)
def test_spinning_bodies_between_ground_and_box_stay_outside(first: str) -> None:
    judge(spun(pair(SOLIDS[first], SOLIDS["box"], 1.0, 0.5, ground=True), 1.0, 0.004), 1.0)


def test_a_spinning_mesh_stays_outside() -> None:
    more, mesh = TETRAHEDRON
    judge(spun(pair(mesh, SOLIDS["sphere"], 1.0, 0.5, ground=True, more=more), 1.0, 0.002), 1.0)


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_the_size_of_the_scene_does_not_matter(scale: float) -> None:
    """Lengths and gravity grow together: every time stays as it is."""
    first, second = scaled(SOLIDS["box"], scale), scaled(SOLIDS["sphere"], scale)
    judge(spun(pair(first, second, scale, 0.5, ground=True), scale, 0.004), scale)


def test_a_wheel_that_rolls_fast_stays_outside() -> None:
    """From a URDF, upon the ground: 40 rad/s, a sixth of a radian in a step."""
    text = """<robot name="wheel"><link name="wheel"><inertial><mass value="1"/>
    <inertia ixx=".0006" ixy="0" ixz="0" iyy=".0008" iyz="0" izz=".0006"/></inertial>
    <collision><origin rpy="1.5707963 0 0"/><geometry><cylinder radius=".04" length=".03"/></geometry></collision>
    </link></robot>"""
    run = simulate(
        text,
        base="floating",
        ground=True,
        dt=0.004,
        steps=150,
        record=RECORD,
        base_pose={"root": (0, 0, 0.0415, 0.05, 0, 0)},
        v0={"root.vx": 1.6, "root.wy": 40.0, "root.wz": 3.0},
    )
    judge(run, 1.0)


PLANKS = (
    """<mujoco><option cone="elliptic"/><worldbody><geom type="plane" size="5 5 1"/>{bodies}</worldbody></mujoco>"""
)


def stacked(overlap: float) -> str:
    """A heavy box on light ones, and beside it two boxes on a common hinge that overlap by that much."""
    bodies = [
        f'<body name="b{k}" pos="0 0 {0.05 + 0.1 * k}"><joint type="slide" axis="0 0 1"/>'
        f'<geom type="box" size=".05 .05 .05" mass="{100.0 if k == 5 else 1.0}"/></body>'
        for k in range(6)
    ]
    if overlap:
        bodies.append(
            f'<body name="left" pos="2 0 .5"><geom type="sphere" size=".1" mass="1"/>'
            f'<body name="right" pos="{0.2 - overlap} 0 0"><joint type="hinge" axis="0 0 1" pos="{overlap - 0.2} 0 0"/>'
            '<geom type="sphere" size=".1" mass="1"/></body></body>'
        )
    return PLANKS.format(bodies="".join(bodies))


@pytest.mark.parametrize("overlap", [0.0, 0.05])
def test_depth_is_measured_by_positions_whatever_the_reason(overlap: float) -> None:
    """Sweeps that are too few let a stack sink: that is told with names and amounts, and not hidden by what overlapped
    at the start.
    """
    steps, dt = 200, 0.002
    model = load_text(stacked(overlap), name="stack.xml")
    few: dict[str, Any] = {"solver": "pgs", "iterations": 2}
    run = simulate(model, contacts=True, keep_overlaps=True, dt=dt, steps=steps, record=("qpos",), **few)
    found = run.simulation.gave_way
    assert found is not None
    one, two, depth, share = found
    q = np.vstack([run["qpos"], run.simulation.qpos])
    heights = q[:, :6] + 0.05 + 0.1 * np.arange(6)
    depths = np.column_stack([0.05 - heights[:, 0], 0.1 - np.diff(heights, axis=1)])
    print(f"\n{depth:.3e} m between {one} and {two}, {100 * share:.3g} %; {depths.max():.3e}", end="")
    assert depth == pytest.approx(depths.max(), rel=0.02)
    assert share == pytest.approx(depth / 0.1)
    worst = int(np.unravel_index(depths.argmax(), depths.shape)[1])
    assert {one, two} == ({"world", "b0"} if worst == 0 else {f"b{worst - 1}", f"b{worst}"})


def test_the_overlap_at_the_start_is_no_depth_beside_it() -> None:
    model = load_text(stacked(0.05), name="stack.xml")
    run = simulate(model, contacts=True, keep_overlaps=True, dt=0.002, steps=50, record=("qpos",))
    found = run.simulation.gave_way
    assert run.simulation.contact_extremes[1] == pytest.approx(0.05, abs=0.01)
    assert found is None or found[3] <= 1e-4


def test_packs_take_such_steps_as_single_robots_do() -> None:
    """Contacts of bodies that turn far are aimed in lanes, too; how deep contacts get is told by sample."""
    text = pair(SOLIDS["box"], SOLIDS["sphere"], 1.0, 0.5, ground=False)
    steps, dt = 60, 0.004
    config: dict[str, Any] = {"dt": dt, "steps": steps, "contacts": True, "record": ("qpos", "qvel")}
    v0 = {"one.wx": -22.0, "one.wy": -11.0, "one.wz": 6.0, "one.vz": 1.0, "two.vz": -1.5}
    plan = plan_run(load_text(text, name="scene.xml"), RunConfig(**config, v0=v0))
    results = Results.of(plan, 1)
    roller = PackRoller(plan, held_controls(plan), results)
    assert roller.run(Variations(plan.qpos[None], plan.qvel[None]), lambda: False)
    alone = spun(text, 1.0, dt, steps * dt)
    assert alone.simulation.contact_extremes[0] > 0
    assert results.final_qpos[0] == pytest.approx(alone.simulation.qpos, abs=1e-9)
    assert results.sunk[0, 1] <= 1e-5


def test_lanes_are_aimed_as_single_runs() -> None:
    """Lanes that touch with different numbers of contacts are aimed together, each as its single run, in the room that
    they have from the start."""
    text = pair(SOLIDS["box"], SOLIDS["box"], 1.0, 0.0, ground=True)
    steps, dt, lanes = 100, 0.002, 5
    plan = plan_run(load_text(text, name="scene.xml"), RunConfig(dt=dt, steps=steps, contacts=True, record=("qpos",)))
    qvel = np.zeros((lanes, 12))
    qvel[:, 3:6] = np.random.default_rng(4).uniform(-25.0, 25.0, (lanes, 3))
    qvel[:, 8] = -1.5
    results = Results.of(plan, lanes)
    roller = PackRoller(plan, held_controls(plan), results)
    room = roller._turns.scratch.simulation.room
    assert roller.run(Variations(np.stack([plan.qpos] * lanes), qvel), lambda: False)
    assert roller._turns.scratch.simulation.room == room
    for lane in range(lanes):
        v0 = dict(zip(plan.robot.dofs, qvel[lane].tolist(), strict=True))
        one = simulate(load_text(text, name="scene.xml"), dt=dt, steps=steps, contacts=True, record=("qpos",), v0=v0)
        assert one.simulation.contact_extremes[0] > 0
        assert np.abs(results.rows["qpos"][lane] - one["qpos"]).max() <= 1e-9
