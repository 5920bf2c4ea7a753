"""Lanes whose rows are solved alone, by the newton of a single robot: it has all that differs between lanes, and all
that a lane carries from step to step. Every lane is the single run, whichever of its steps are solved so.

Beside each robot two boxes meet, of which a spring pulls one along the other's face, so hard that only a large
coefficient of friction holds it. The solver of these packs leaves lanes in which it does to newton (lone_lanes.py) from
when the boxes touch, which differs from lane to lane. Samples differ in velocities, controls, and all that can be
varied.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.io.runs.prepare import held_controls, prepare
from artsim.sim.constraints.kinds import AT_LOWER, FRICTION_ROW, POSITION_ROW, VELOCITY_ROW
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import disabled
from artsim.sim.run_data.run_records import LASTING_ROWS, STEP_NUMBER, Rows
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.pack import PacksInTurn
from artsim.sim.runs.sampled_runs import PackRoller, Results, SingleRoller
from artsim.sim.runs.varied import VARIED, Variations
from tests.runs import lone_lanes
from tests.runs import test_packed_equipment as equipment
from tests.runs import test_packed_options as options_of_packs
from tests.runs import test_packed_rows as rows

STEPS = 60
BOXES = """<body pos="3 0 .2"><joint name="plate" type="slide" axis="0 0 1" stiffness="300" damping=".5"/>
<geom type="box" size=".05 .05 .05" mass="1" friction="99" contype="1" conaffinity="1"/></body>
<body pos="3 0 .302" euler="0 0 45">
<joint name="side" type="slide" axis="1 0 0" stiffness="100" springref="1.2" damping="1000"/>
<joint name="load" type="slide" axis="0 0 1"/>
<geom type="box" size=".05 .05 .05" mass=".5" friction="99" contype="1" conaffinity="1"/></body>"""

BALLS = "".join(
    f'''<body pos="{0.5 + 0.1005 * k + (0.2 if k else 0)} 5 0"><joint name="x{k}" type="slide" axis="1 0 0"/>
    <geom size=".05" mass="{1 if k == 0 else 0.01}" contype="1" conaffinity="1" condim="1"/></body>'''
    for k in range(4)
)
"""A row of balls of which the first meets more than its margin lets foresee."""

SERVOS = equipment.SERVOS.format(
    '<position joint="a" kp="20" kv="1.5"/><position joint="b" kp="30" kv=".8" forcerange="-2 2"/>'
    '<velocity joint="c" kv=".2"/>'
)
HAND = rows.arm(
    actuators='<position joint="a" kp="20" kv="1.5"/><position joint="b" kp="9" dampratio=".4"/><motor joint="c"/>'
)
GEARED = rows.arm(
    u='armature=".5"',
    equality='<joint joint1="b" joint2="a" polycoef="0 .5 .2 0 0" solref=".02 1" solimp=".5 .9 .01 .5 2"/>',
)
MODELS = {
    **equipment.MODELS,
    **rows.MODELS,
    **options_of_packs.MODELS,
    "servos": SERVOS,
    "hand": HAND,
    "geared": GEARED,
}
DRIVES: dict[str, Any] = {"stiffness": {"hip": 900.0, "knee": 2500.0}, "damping": {"hip": 40.0, "knee": 40.0}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "damped servos": ("servos", {}),
    "damped servos beside rows of their own": ("hand", {}),
    "a coupling that yields by the inertia of a tendon": ("geared", {}),
    "damping ratios": ("damping ratios", {}),
    "varying gains": ("varying gains", {}),
    "servos of rotations": ("servos of rotations", {}),
    "muscle": ("muscle", {}),
    "filters": ("filters", {}),
    "medium": ("drone", {}),
    "springs": ("springs", {}),
    "curved coupling": ("tree", {}),
    "hard loop": ("hard loop", {}),
    "soft loop": ("soft loop", {}),
    "weld": ("weld", {}),
    "hard tendon equality": ("hard tendon equality", {}),
    "soft tendon equality": ("soft tendon equality", {}),
    "tendon friction and inertia": ("tendon friction and inertia", {}),
    "actuator on a tendon": ("actuator on a tendon", {}),
    "delays": ("delays", {}),
    "stiff springs of tendons": ("stiff springs of tendons", {}),
    "bounded drives": ("leg", {**DRIVES, "drive_limit": {"hip": 6.0, "knee": 3.0}}),
    "acceleration drives": ("leg", {**DRIVES, "drive_mode": "acceleration"}),
    "joint friction": ("leg", {"joint_friction": {"hip": 0.3, "knee": 0.2}}),
    "friction by the load": ("leg", {"friction_coefficient": {"hip": 0.03, "knee": 0.02}}),
    "wrench": ("leg", {"wrench": {"*": (1.0, 0.0, -0.5, 0.0, 0.1, 0.0)}, "wrench_frame": "link"}),
    "scheme-beta": ("leg", {**DRIVES, "scheme_beta": 0.6}),
    "damped links": ("leg", {"link_damping": {"*": (2.0, 0.1)}}),
    "bounded links": ("hard loop", {"link_velocity_limit": {"*": (1.0, 2.0)}}),
    "bounces": ("leg", {"restitution": 0.3}),
    "continuous": ("leg", {"continuous": True}),
    "sleep": ("servos", {"sleep_threshold": 0.3, "sleep_time": 0.028}),
}
RANDOM = dict.fromkeys(VARIED, (0.5, 2.0))


@pytest.fixture
def lone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have newton solve the rows of lanes in which much friction holds the boxes."""
    monkeypatch.setattr("artsim.sim.runs.pack_arrays.SOLVE_PACK", lone_lanes.ENTRY)


def load(text: str, folder: Path) -> artsim.Robot:
    """The robot with the boxes beside it; its own shapes touch something only where the text has a ground."""
    text = text.replace('<flag contact="disable"/>', "")
    if 'type="plane"' not in text:
        text = text.replace("<worldbody>", '<default><geom contype="0" conaffinity="0"/></default><worldbody>', 1)
    path = folder / "model.xml"
    path.write_text(text.replace("</worldbody>", BOXES + "</worldbody>", 1))
    return artsim.load(path)


def drawn(robot: artsim.Robot, samples: int, **options: Any) -> MemoryRollout:
    """A rollout of samples that differ in all that may vary, with inputs of their own, new ones every 20 steps."""
    rng = np.random.default_rng(5)
    size = prepare(robot.articulation, RunConfig()).control.size
    start = np.arange(0, STEPS, 20)
    zero = np.zeros((len(start), robot.nv))

    def controls() -> Controls:
        torque, target = rng.uniform(-0.1, 0.1, zero.shape), rng.uniform(-0.3, 0.3, zero.shape)
        return Controls(start, torque, target, zero, rng.uniform(0, 1, (len(start), size)))

    each = [controls() for _ in range(samples)]
    given = {"samples": samples, "steps": STEPS, "seed": 2, "velocity_spread": 0.3, "randomise": RANDOM, "check": False}
    made = artsim.rollout(robot, controls=each, **{**given, **options})
    assert isinstance(made, MemoryRollout)
    return made


def one_by_one(robot: artsim.Robot, monkeypatch: pytest.MonkeyPatch, samples: int, **options: Any) -> MemoryRollout:
    """The same samples as single runs."""
    with monkeypatch.context() as patched:
        patched.setattr("artsim.sim.runs.sampled_runs.reason_against_packs", lambda plan: "no reason")
        return drawn(robot, samples, **options)


@pytest.mark.usefixtures("lone")
@pytest.mark.parametrize("case", CASES)
def test_every_lane_is_the_single_run(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, options = CASES[case]
    robot = load(MODELS[name], tmp_path)
    made = drawn(robot, 9, **options)
    assert made.outcome.packed
    assert made.outcome.solved_alone > 0.1 * made.outcome.steps
    single = one_by_one(robot, monkeypatch, 9, **options)
    assert np.abs(made["qpos"] - single["qpos"]).max() < 1e-11
    assert np.abs(made["qvel"] - single["qvel"]).max() < 1e-9
    assert np.ptp(single["qpos"][..., :-3], axis=1).max() > 0.02


@pytest.mark.small
@pytest.mark.usefixtures("lone")
def test_damped_servos_stay_damped(tmp_path: Path) -> None:
    """A servo turns a rotor as I q̈ + k_v q̇ + k_p q = 0 has it."""
    text = """<mujoco><option timestep="0.0005" gravity="0 0 0"/><worldbody><body><joint name="a" axis="0 0 1"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".2 .2 .2"/></body></worldbody>
    <actuator><position joint="a" kp="3" kv="1.6"/></actuator></mujoco>"""
    robot = load(text, tmp_path)
    made = artsim.rollout(robot, samples=2, steps=400, q0={"a": 0.5}, v0={"load": -0.5})
    assert isinstance(made, MemoryRollout)
    assert made.outcome.solved_alone > 0.5 * made.outcome.steps
    slow, fast = np.roots([0.2, 1.6, 3.0])
    time = 0.0005 * np.arange(400)
    truth = 0.5 * (fast * np.exp(slow * time) - slow * np.exp(fast * time)) / (fast - slow)
    np.testing.assert_allclose(made["qpos"][0, :, robot.labels.coords.index("a")], truth, rtol=0, atol=5e-4)


SQUEEZED = """<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody>
<geom type="box" size=".1 .5 .5" pos="-.115 0 0"/><geom type="box" size=".1 .5 .5" pos=".115 0 0"/>
<body><joint name="x" type="slide" axis="1 0 0"/><geom type="box" size=".02 .05 .05" mass="1"/></body></worldbody>
</mujoco>"""
"""A box between two walls that are 1 cm too near: its contacts contradict each other, and yield."""


@pytest.mark.small
def test_contacts_yield_from_where_the_lane_itself_began(tmp_path: Path) -> None:
    """How far a contact may give way counts from the depth at the start of its own run, not from that of others."""
    (tmp_path / "model.xml").write_text(SQUEEZED)
    plan = prepare(artsim.load(tmp_path / "model.xml").articulation, RunConfig(steps=4, record=()))
    results = Results.of(plan, 1)
    roller = PackRoller(plan, held_controls(plan), results)
    for x in (0.004, 0.0, 0.001):
        assert roller.run(Variations(np.array([[x]]), np.zeros((1, 1))), lambda: False)
        assert results.start_depth[0] == pytest.approx(0.005 + x, abs=1e-12)
        assert results.sunk[0, 1] <= 1e-3  # beside that
    assert roller.solved_alone >= 9


SUNK = "".join(
    f'<body pos="0 {-0.25 * k} 0"><freejoint/>'
    f'<geom type="capsule" fromto="-.5 0 0 .5 0 0" size="0.0125" condim="{condim}"/></body>'
    for k, condim in enumerate((1, 3, 6, 3))
)
"""Rods that lie half in the ground: contacts at their ends give way to each other in some starts."""


def test_newton_settles_the_rows_of_lanes_whose_contacts_yield(tmp_path: Path) -> None:
    """In one of these starts newton takes another share of what gives way than the packs' solver, as a single run."""
    path = tmp_path / "model.xml"
    path.write_text(f'<mujoco><worldbody><geom type="plane" size="2 2 .1"/>{SUNK}</worldbody></mujoco>')
    robot = artsim.load(path)
    plan = prepare(robot.articulation, RunConfig(steps=6, record=("qpos", "qvel")))
    draw = np.random.default_rng(0)
    qvel = 0.5 * draw.normal(size=(64, robot.nv))[38:39]
    mass = draw.uniform(0.8, 1.25, (64, len(robot.links)))[38:39]
    found = []
    for make in (PackRoller, SingleRoller):
        roller = make(plan, held_controls(plan), Results.of(plan, 1))
        assert roller.run(Variations(plan.qpos[None], qvel, {"mass": mass}), lambda: False)
        found.append(roller.results.rows["qpos"][0].copy())
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-10)


@pytest.mark.usefixtures("lone")
@pytest.mark.skipif(disabled(), reason="of lanes beside each other")
def test_room_grows_within_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of balls meets more than its margins let foresee, so that a lane whose contacts are detected again lacks
    room; the step is taken again, by all lanes from where it began.
    """
    text = MODELS["leg"].replace("</worldbody>", f"{BALLS}</worldbody>")
    robot = load(text, tmp_path)
    options: dict[str, Any] = {"friction_coefficient": {"hip": 0.03, "knee": 0.02}, "v0": {"x0": 9.0}, "seed": 4}
    wide = drawn(robot, 8, **options)
    rooms: list[int] = []
    make_room = PacksInTurn.make_room

    def note(turns: PacksInTurn, *, listed: bool) -> None:
        make_room(turns, listed=listed)
        rooms.append(turns.scratch.simulation.room)

    monkeypatch.setattr(PacksInTurn, "make_room", note)
    monkeypatch.setattr("artsim.sim.runs.simulate.first_room", lambda touching: 15)
    narrow = drawn(robot, 8, **options)
    assert rooms[-1] > 15
    assert narrow["qvel"].tobytes() == wide["qvel"].tobytes()
    assert narrow.outcome.solved_alone == wide.outcome.solved_alone


# ------------------------------------------------------------------ what lanes hand over

LINK = """<body pos="0 0 -.1"><joint name="j{k}" axis="{x} {y} 0" range="-{low} {high}" frictionloss="{friction}"/>
<geom type="capsule" fromto="0 0 0 0 0 -.1" size=".02" mass=".3"/>"""
LINKS = "".join(
    LINK.format(
        k=k, x=1 - k % 2, y=k % 2, low=4 + 3 * (k % 4), high=5 + 2 * (k % 3), friction=0.05 + 0.11 * (7 * k % 5)
    )
    for k in range(10)
)
CHAIN = f"""<mujoco><option timestep="0.002"><flag contact="disable"/></option><worldbody><body pos="0 0 2">
<joint name="base" axis="0 1 0"/><geom size=".05" mass="1"/>{LINKS}{"</body>" * 10}</body></worldbody></mujoco>"""
MODELS["chain"] = CHAIN
KEPT: dict[str, tuple[str, dict[str, Any]]] = {
    "much friction, many limits": ("chain", {"v0": {"base": 3.0, "j0": -2.0, "j3": 4.0, "j5": -6.0}}),
    "joint friction and limits": ("leg", {"joint_friction": {"hip": 0.3, "knee": 0.2}, "v0": {"hip": 9.0}}),
    "friction by the load": ("leg", {"friction_coefficient": {"hip": 0.03, "knee": 0.02}}),
    "bounded drives": CASES["bounded drives"],
    "forces at their bounds": ("servos", {"control": {"actuator_1": 9.0}}),
    "hard loop": ("hard loop", {"joint_friction": {"*": 0.005}, "v0": {"c": 4.0}}),
    "soft coupling": ("soft coupling", {}),
    "ball's angle": ("ball's angle", {"v0": {"ball.wx": 3.0}}),
    "tendon friction and inertia": ("tendon friction and inertia", {}),
    "tendon equality": ("soft tendon equality", {}),
    "actuator on a tendon": ("actuator on a tendon", {}),
    "bounded links": CASES["bounded links"],
}
"""The plate throws the load, which leaves it and falls back: lanes take steps alone, then together, then alone."""
MOVES = 110


@pytest.mark.usefixtures("lone")
@pytest.mark.parametrize("case", KEPT)
def test_lanes_hand_over_what_rows_start_from(case: str, tmp_path: Path) -> None:
    """After every step, solved alone or not, a lane keeps the impulses that its single run keeps, and the drives held
    at their bounds, and holds the forces of actuators that the single run holds. Friction and limit share the load of
    a joint that rests at the limit in any way: of such joints the sum counts.
    """
    name, options = KEPT[case]
    robot = load(MODELS[name], tmp_path)
    options = options | {"q0": {"load": 0.01}, "v0": {"plate": 0.6, **options.get("v0", {})}, "steps": MOVES}
    plan = prepare(robot.articulation, RunConfig(record=(), **options))
    single, steps, places = simulation_of(plan, held_controls(plan)), list[Any](), dict[tuple[int, int, int], int]()
    for _ in range(MOVES):
        list(single.blocks(1))
        places |= _places(single._rows)
        steps.append(
            (
                single._state.impulse.copy(),
                _held(single._equipment),
                single._state.drive_held.copy(),
            )
        )
    roller = PackRoller(plan, held_controls(plan), Results.of(plan, 1))
    alone, worst = [0], 0.0

    def look() -> bool:
        nonlocal worst
        alone.append(int(roller.pack.lanes.data.by_newton[0]))
        impulse, held, driven = steps[len(alone) - 2]
        kept = _first_lane(roller.pack.robot.state.impulse)
        worst = max(worst, np.abs(_by_joint(places, kept - impulse)).max(initial=0.0))
        assert np.array_equal(_first_lane(roller.pack.robot.state.drive_held), driven)
        assert np.array_equal(_held(roller.pack.equipment), held)
        return False

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("artsim.sim.runs.sampled_runs._STEPS_PER_CALL", 1)
        assert roller.run(Variations(plan.qpos[None], plan.qvel[None]), look)
    turns = np.diff(np.diff(alone))
    assert np.sum(turns > 0) >= 2 and np.sum(turns < 0) >= 1  # alone, together, alone
    largest = max(np.abs(impulse).max(initial=0.0) for impulse, *_ in steps)
    assert largest > 1e-4 or any(held.any() or driven.any() for *_, held, driven in steps)
    assert worst <= 1e-8 * largest


def _places(rows: Rows) -> dict[tuple[int, int, int], int]:
    """The places of the rows, by kind, owner and part."""
    lasting = range(int(rows.number[LASTING_ROWS]))
    return {(int(rows.kind[n]), int(rows.dof[n]), int(rows.part[n])): int(rows.place[n]) for n in lasting}


def _by_joint(places: dict[tuple[int, int, int], int], impulse: Any) -> Any:
    """Impulses by row, those of limits added to those of friction at the same joint."""
    summed = np.array(impulse)
    for (kind, dof, part), place in places.items():
        if kind in (POSITION_ROW, VELOCITY_ROW) and (FRICTION_ROW, dof, 0) in places:
            summed[places[FRICTION_ROW, dof, 0]] += (1.0 if part == AT_LOWER else -1.0) * impulse[place]
            summed[place] = 0.0
    return summed


def _first_lane(values: Any) -> Any:
    return values if values.ndim == 1 else values[:, 0]


def _held(equipment: EquipmentBundle | None) -> Any:
    """-1 and 1 for the forces of actuators, then sums of joints, that a single run, or the first lane, holds at their
    bounds."""
    if equipment is None:
        return np.zeros(0)
    data = equipment.data
    return np.concatenate([_first_lane(data.held), _first_lane(data.dof_held)])


@pytest.mark.usefixtures("lone")
@pytest.mark.skipif(disabled(), reason="of lanes beside each other")
def test_steps_taken_again_for_want_of_room_begin_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step in which forces of one lane reach their bounds is taken again, since another lane lacks room: with the
    bytes and the held forces that it has where there is room.
    """
    robot = load(SERVOS.replace("</worldbody>", f"{BALLS}</worldbody>"), tmp_path)
    plan = prepare(robot.articulation, RunConfig(steps=STEPS, record=()))
    zero, coords, dofs = np.zeros((2, robot.nv)), robot.labels.coords, robot.dofs
    qpos, qvel = np.stack([plan.qpos] * 2), np.stack([plan.qvel] * 2)
    qpos[0, coords.index("load")], qvel[1, dofs.index("x0")] = 0.5, 9.0
    monkeypatch.setattr("artsim.sim.runs.sampled_runs._STEPS_PER_CALL", 1)
    monkeypatch.setattr("artsim.sim.runs.simulate.first_room", lambda touching: 10)
    crowded: list[int] = []
    make_room = PacksInTurn.make_room

    def note(turns: PacksInTurn, *, listed: bool) -> None:
        crowded.append(int(turns.tallies.counters[0, STEP_NUMBER]))
        make_room(turns, listed=listed)

    monkeypatch.setattr(PacksInTurn, "make_room", note)

    def ends(step: int) -> list[tuple[bytes, ...]]:
        """State and held forces of the first lane after each step; the servos' targets jump at this one."""
        controls = Controls(np.array([0, step]), zero, zero, zero, np.array([[0.0, 0.0, 0.0], [0.0, 9.0, 0.0]]))
        roller, found = PackRoller(plan, controls, Results.of(plan, 1)), dict[int, tuple[bytes, ...]]()

        def look() -> bool:
            state = roller.pack.robot.state
            first = _first_lane(state.qpos), _first_lane(state.qvel), _held(roller.pack.equipment)
            # not anew where the step that follows lacks room and ends none
            found.setdefault(int(roller.pack.step.counters[STEP_NUMBER]), tuple(values.tobytes() for values in first))
            return False

        assert roller.run(Variations(qpos, qvel), look)
        assert np.any(_held(roller.pack.equipment))
        return [found[step] for step in range(1, STEPS + 1)]

    ends(STEPS - 1)
    step, times = crowded[0], len(crowded)
    narrow = ends(step)
    assert crowded == [step] * 2 * times
    monkeypatch.setattr("artsim.sim.runs.simulate.first_room", lambda touching: 60)
    assert narrow == ends(step)
    assert len(crowded) == 2 * times and narrow[step][2] != narrow[step - 1][2]
