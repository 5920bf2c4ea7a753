"""artsim.VectorSimulation: robots in persistent packs take the steps of rollouts, byte for byte, whatever happens to
the others, in however many threads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.io.runs.prepare import prepared
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.jit import disabled
from artsim.sim.run_data.run_records import CROWDED, GAVE_WAY, NON_FINITE
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.packable import pack_width
from tests.benchmarks.vector_fuzz import history, options_of
from tests.conftest import ROOT
from tests.contact.robot_contacts import quadruped, quadruped_options
from tests.runs.test_packed_alone import MODELS
from tests.runs.test_packed_equipment import CLAW
from tests.runs.test_rollout_records import CASES, SENSORS

ARM = ROOT / "robots" / "arm7.urdf"
BOX = """<mujoco><worldbody><geom type="plane" size="9 9 .1"/><body name="box" pos="0 0 .5"><freejoint name="root"/>
<geom type="box" size=".1 .1 .1" mass="2"/></body></worldbody></mujoco>"""
LOW_CLAW = CLAW.replace('pos="0 0 .4"', 'pos="0 0 .19"')
N = 2 * pack_width() + 1  # the last pack is filled up
T = 9
STATES = ("qpos", "qvel")


def load(text: str, folder: Path) -> artsim.Robot:
    path = folder / "model.xml"
    path.write_text(text)
    return artsim.load(path)


def rolled(robot: artsim.Robot, **options: Any) -> MemoryRollout:
    given: dict[str, Any] = {"samples": N, "steps": T, "every": 1, "seed": 5, "check": False, "threads": 1}
    made = artsim.rollout(robot, **{**given, **options})
    assert isinstance(made, MemoryRollout)
    return made


def inputs(robot: artsim.Robot, rows: int, options: dict[str, Any]) -> list[dict[str, np.ndarray[Any, Any]]]:
    """Inputs of all robots in each of some calls, by name, (N, ·)."""
    plan, _, _ = prepared(robot, "none", None, {**options, "steps": 1})
    rng = np.random.default_rng(1)
    actuated = len(plan.control) - len(plan.pushed.held)
    sizes = {"torque": plan.robot.nv, "control": actuated}
    return [{name: 0.3 * rng.normal(size=(N, size)) for name, size in sizes.items()} for _ in range(rows)]


def as_controls(given: list[dict[str, np.ndarray[Any, Any]]], at: list[int]) -> list[Controls]:
    """The inputs of each robot over time, which begin at these steps."""
    made = []
    for k in range(N):
        values = {name: np.array([row[name][k] for row in given]) for name in ("torque", "control")}
        zero = np.zeros_like(values["torque"])
        made.append(Controls(np.array(at), target=zero, target_velocity=zero, **values))
    return made


def same(simulation: artsim.VectorSimulation, truth: MemoryRollout, row: int, robots: Any = slice(None)) -> bool:
    """True if some robots have the state of a row of the rollout, to the byte; that after the last is final."""
    at = {name: truth[f"final_{name}"] if row == T else truth[name][:, row] for name in STATES}
    return all(getattr(simulation, name)[robots].tobytes() == at[name][robots].tobytes() for name in STATES)


@pytest.mark.small
@pytest.mark.parametrize("case", [*CASES, "claw"])
def test_steps_are_those_of_rollouts(case: str, tmp_path: Path) -> None:
    """With masses and inputs of each robot's own, for one and two threads; robots that begin anew on the way do not
    touch the others. Packs take turns, so that nothing in their scratch may outlast a call."""
    name, options = ("claw", {}) if case == "claw" else CASES[case]
    text = LOW_CLAW if case == "claw" else MODELS[name]
    if name == "leg":
        options = {**options, "q0": {"z": -0.12}}  # in contact
    robot = load(text.replace("</mujoco>", SENSORS) if name == "servos" else text, tmp_path)
    given = inputs(robot, 1, options)
    varied = {"mass": (0.7, 1.4), "damping": (0.5, 2.0)}
    truth = rolled(robot, controls=as_controls(given, [0]), randomise=varied, velocity_spread=0.3, **options)
    for threads in (1, 2):
        made = artsim.VectorSimulation(robot, N, threads=threads, **options)
        made.vary(mass=truth["mass_factor"], damping=truth["damping_factor"])
        start = {"qpos": truth["qpos"][:, 0], "qvel": truth["qvel"][:, 0]}
        made.reset(**start)
        assert same(made, truth, 0)
        made.step(**given[0])
        assert same(made, truth, 1)
        made.step(steps=4)
        assert same(made, truth, 5)
        some = np.array([N - 1, 0])
        made.reset(some, **{name: values[some] for name, values in start.items()})
        others = np.setdiff1d(np.arange(N), some)
        assert same(made, truth, 5, others)
        assert same(made, truth, 0, some)
        made.step(steps=3)
        assert same(made, truth, 8, others)
        assert same(made, truth, 3, some)
        assert made.steps.tolist() == [8 if k in others else 3 for k in range(N)]
        np.testing.assert_array_equal(made.time, made.steps * made._plan.dt)
        assert not made.status.any()
        snapshot = made.save()
        made.step()
        assert same(made, truth, 9, others)
        after = made.save()
        made.restore(snapshot)
        made.step()
        other = artsim.VectorSimulation(robot, N, threads=3 - threads, **options)
        other.restore(dict(np.load(stored(tmp_path, snapshot))))
        other.step()
        for again in (made.save(), other.save()):
            assert {name: values.tobytes() for name, values in again.items()} == {
                name: values.tobytes() for name, values in after.items()
            }


def stored(folder: Path, snapshot: dict[str, np.ndarray[Any, Any]]) -> Path:
    np.savez(folder / "snapshot.npz", **snapshot)  # type: ignore[arg-type]
    return folder / "snapshot.npz"


@pytest.mark.small
def test_inputs_act_from_the_step_on_for_which_they_are_given() -> None:
    robot, options = artsim.load(ARM), {"stiffness": 30.0, "damping": 1.0}
    given = inputs(robot, 3, options)
    truth = rolled(robot, controls=as_controls(given, [0, 1, 5]), **options)
    made = artsim.VectorSimulation(robot, N, threads=1, action="torque", **options)
    made.step(given[0]["torque"], target=np.zeros(7))
    for row, steps, at in ((1, 4, 5), (2, 4, 9)):
        made.step(given[row]["torque"].tolist(), steps)
        assert same(made, truth, at)
    held = made.qpos
    by_name = artsim.VectorSimulation(robot, N, threads=1, **options)  # target is its action
    by_name.step(np.zeros(7), torque={dof: given[0]["torque"][:, k] for k, dof in enumerate(robot.dofs)})
    assert same(by_name, truth, 1)
    by_name.step(torque={"joint_1": 2.0})
    assert made.qpos is held


@pytest.mark.small
def test_robots_are_single_runs() -> None:
    options: dict[str, Any] = {"stiffness": 30.0, "damping": 1.0, "record": ("tau_drive", "link_position", "energy")}
    robot = artsim.load(ARM)
    made = artsim.VectorSimulation(robot, 3, **options)
    made.reset(1, qpos={"joint_2": 0.4}, qvel=np.full(7, 0.2))
    made.reset([2], qpos=made.qpos[1], qvel=made.qvel[1])
    assert np.isnan(made["energy"]).all()
    target = np.full(7, 0.3)
    for steps in (5, 1, 7):
        made.step(target, steps)
    one = artsim.Simulation(robot, **options)
    one.qpos, one.qvel = {"joint_2": 0.4}, np.full(7, 0.2)
    rows = one.step(13, target=target)
    for k in (1, 2):
        np.testing.assert_allclose(made.qpos[k], one.qpos, rtol=0, atol=1e-13)
        np.testing.assert_allclose(made.qvel[k], one.qvel, rtol=0, atol=1e-12)
        for name in made.variables:
            size = np.abs(rows[name][-1]).max()
            np.testing.assert_allclose(made[name][k], rows[name][-1], rtol=0, atol=1e-11 * size)


@pytest.mark.small
def test_recorded_variables_are_those_of_rollouts(tmp_path: Path) -> None:
    robot = load(MODELS["leg"], tmp_path)
    names = ("tau_contact", "contact_wrench", "qacc", "sensors", "energy", "mass_matrix")
    truth = rolled(robot, record=("qpos", "qvel", *names), q0={"z": -0.12}, velocity_spread=0.3)
    made = artsim.VectorSimulation(robot, N, record=names, q0={"z": -0.12}, threads=2)
    made.reset(qvel=truth["qvel"][:, 0])
    kept = {name: made[name] for name in made.variables}
    for row in range(T):
        made.step()
        for name in made.variables:
            assert made[name] is kept[name]
            assert made[name].tobytes() == np.ascontiguousarray(truth[name][:, row]).tobytes(), (name, row)
    assert same(made, truth, T)
    assert np.abs(made["tau_contact"]).max() > 1.0


def test_recorded_jacobians_move_the_links(tmp_path: Path) -> None:
    robot = load(MODELS["leg"], tmp_path)
    made = artsim.VectorSimulation(robot, N, record=("jacobian",))
    made.reset(qvel=np.random.default_rng(0).normal(size=(N, robot.nv)))
    qpos, qvel = made.qpos.copy(), made.qvel.copy()
    made.step()
    want = robot.compute(qpos, qvel, quantities=["link_velocity"])["link_velocity"]
    found = np.zeros((N, len(robot.links), 6))
    for c, (link, dof) in enumerate(zip(made.labels.jacobian_link, made.labels.jacobian_dof, strict=True)):
        found[:, link] += made["jacobian"][:, c] * qvel[:, dof, None]
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)


@pytest.mark.small
def test_forward_shows_the_next_step_and_takes_none(tmp_path: Path) -> None:
    robot = load(MODELS["leg"], tmp_path)
    made = artsim.VectorSimulation(robot, N, record=("contact_wrench", "qacc"), q0={"z": -0.12}, threads=2)
    made.step(steps=3)
    made.reset([0])
    before = made.save()
    made.forward()
    seen = {name: made[name].copy() for name in made.variables}
    after = made.save()
    assert all(after[name].tobytes() == before[name].tobytes() for name in before if not name.startswith("row."))
    assert np.isfinite(seen["qacc"]).all() and np.abs(seen["contact_wrench"][0]).max() > 1.0
    made.step()
    assert all(made[name].tobytes() == seen[name].tobytes() for name in seen)
    assert made.steps.tolist() == [1, *[4] * (N - 1)]


@pytest.mark.skipif(disabled(), reason="numpy warns of overflow where machine code does not")
def test_a_robot_that_stops_raises_nothing_and_can_begin_anew() -> None:
    robot = artsim.load(ARM)
    calm, wild = artsim.VectorSimulation(robot, 9), artsim.VectorSimulation(robot, 9)
    torque = np.zeros((9, 7))
    calm.step(steps=20)
    torque[3, 4] = 1e150
    wild.step(torque=torque, steps=20)
    others = [k for k in range(9) if k != 3]
    assert wild.status.tolist() == [NON_FINITE if k == 3 else 0 for k in range(9)]
    assert 0 < wild.steps[3] < 20
    assert "is not finite" in wild.why_stopped(3) and wild.why_stopped(2) == ""
    assert np.isfinite(wild.qpos).all()
    assert wild.qpos[others].tobytes() == calm.qpos[others].tobytes()
    at = wild.qpos[3].copy()
    torque[3, 4] = 0.0
    wild.step(torque=torque, steps=2)
    assert wild.qpos[3].tobytes() == at.tobytes() and wild.status[3] == NON_FINITE
    wild.reset(wild.status != 0)
    wild.step(steps=20)
    assert wild.qpos[3].tobytes() == calm.qpos[3].tobytes() and not wild.status.any()


SERVO = """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom type="capsule" size=".02 .2" mass="1"/></body>
</worldbody><tendon><fixed name="cord"><joint joint="a" coef="1"/></fixed></tendon>
<actuator><position joint="a" kp="20" dampratio="1"/><motor tendon="cord"/></actuator></mujoco>"""


@pytest.mark.skipif(disabled(), reason="numpy warns of overflow where machine code does not")
def test_constants_that_follow_from_masses_bear_nothing_of_a_stopped_robot(tmp_path: Path) -> None:
    """The damping of a servo that is given by its ratio is found anew in a lane where another robot was not finite."""
    robot = load(SERVO, tmp_path)
    made, calm = (artsim.VectorSimulation(robot, 16, threads=1) for _ in range(2))
    made.step(torque=np.where(np.arange(16)[:, None] == 8, 1e200, 0.0), steps=3)
    calm.step(steps=3)
    for each in (made, calm):
        each.vary([0, 8], mass=1.5)  # which are in one lane of two packs
        each.step(torque=np.zeros((16, 1)), control=[0.4, 0.0], steps=5)
    assert made.status.tolist() == [NON_FINITE if k == 8 else 0 for k in range(16)]
    assert np.delete(made.qpos, 8, 0).tobytes() == np.delete(calm.qpos, 8, 0).tobytes()
    assert made.qpos[0] != made.qpos[1]


@pytest.mark.small
def test_wrenches_and_pushes_of_each_robot(tmp_path: Path) -> None:
    """A force moves a mass as Newton says; a push changes its momentum by the impulse."""
    robot = load(BOX, tmp_path)
    made = artsim.VectorSimulation(robot, N, wrench={"box": (0, 0, 0)}, gravity=(0, 0, 0), dt=0.01)
    force = np.zeros((N, 3))
    force[:, 0] = np.arange(N)
    made.step(wrench={"box": force}, steps=5)
    np.testing.assert_allclose(made.qvel[:, 0], force[:, 0] / 2.0 * 0.05, rtol=1e-12)
    before = made.qvel.copy()
    made.push("box", (0.0, 3.0, 0.0))
    np.testing.assert_allclose(made.qvel[:, 1] - before[:, 1], 1.5, rtol=1e-12)
    np.testing.assert_allclose(made.qvel[:, 0] - before[:, 0], force[:, 0] / 2.0 * 0.01, rtol=1e-9, atol=1e-15)
    made.step(wrench={"box": np.zeros(6)})
    np.testing.assert_allclose(made.qvel[:, 1], 1.5, rtol=1e-12)


@pytest.mark.small
def test_friction_of_each_robot(tmp_path: Path) -> None:
    """Boxes that slide are slowed down by μ g, whose change acts from the next step on."""
    robot = load(BOX.replace('pos="0 0 .5"', 'pos="0 0 .1"'), tmp_path)
    made = artsim.VectorSimulation(robot, N, v0={"root.vx": 2.0}, dt=0.002)
    factor = np.linspace(0.2, 0.6, N)
    made.vary(friction=factor)
    made.step(steps=20)
    np.testing.assert_allclose(2.0 - made.qvel[:, 0], 0.04 * 9.81 * factor, rtol=1e-6)
    before = made.qvel[:, 0].copy()
    made.vary([0], friction=0.0)
    made.step(steps=5)
    np.testing.assert_allclose(made.qvel[0, 0], before[0], rtol=1e-9)
    np.testing.assert_allclose(before[1:] - made.qvel[1:, 0], 0.01 * 9.81 * factor[1:], rtol=1e-6)


SWINGING = """<mujoco><option timestep="0.002"/><worldbody>
<body name="one"><joint name="a" axis="0 1 0" damping="0.1"/>
<inertial pos="{a}" mass="1" fullinertia=".03 .02 .025 .001 .002 .003"/>
<body name="two" pos="0 0 -.4" euler="10 20 30"><joint name="b" type="ball"/>
<inertial pos="{b}" mass=".5" diaginertia=".01 .02 .015"/></body></body></worldbody></mujoco>"""


@pytest.mark.small
def test_centres_and_gravity_of_each_robot(tmp_path: Path) -> None:
    """A robot whose centres of mass are moved is that of a file which has them there; weights follow gravity."""
    names = ("com", "momentum", "energy", "bias")
    sleepless = {"sleep_threshold": 1e-9}  # the velocities of the centres are looked at
    start = {"v0": {"a": 0.5}, "q0": {"a": 0.3}, "record": names, **sleepless}
    robot = load(SWINGING.format(a="0 0 -.2", b=".01 0 -.1"), tmp_path)
    other = load(SWINGING.format(a=".03 .02 -.25", b="-.04 0 -.15"), tmp_path)
    moon = (0.3, 0.0, -1.62)
    made = artsim.VectorSimulation(robot, N, **start)
    made.vary([1], centre=[[0, 0, 0], [0.03, 0.02, -0.05], [-0.05, 0, -0.05]], gravity=moon)
    made.vary([1, 2], mass=1.3)
    made.step(steps=20)
    for k, model, options in (
        (0, robot, {}),
        (1, other, {"gravity": moon}),
        (2, robot, {}),
    ):
        truth = artsim.VectorSimulation(model, 1, **start, **options)
        if k:
            truth.vary(mass=1.3)
        truth.step(steps=20)
        for name in STATES:
            np.testing.assert_allclose(getattr(made, name)[k], getattr(truth, name)[0], rtol=0, atol=1e-13)
        for name in names:
            np.testing.assert_allclose(made[name][k], truth[name][0], rtol=0, atol=1e-12)
    assert np.abs(made.qpos[1] - made.qpos[0]).max() > 1e-3
    snapshot = made.save()
    made.vary([1], mass=1.0, centre=np.zeros((3, 3)), gravity=(0, 0, -9.81))
    made.reset()
    made.step(steps=20)
    np.testing.assert_array_equal(made.qpos[1], made.qpos[0])
    made.restore(snapshot)
    made.vary([2], centre=np.zeros((3, 3)))
    made.step()
    again = artsim.VectorSimulation(robot, N, **start)
    again.restore(snapshot)
    again.step()
    assert again.qpos.tobytes() == made.qpos.tobytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_contacts_of_all_robots_are_those_of_single_runs(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By robot, link, place and force, also where the room for them grows in the last step of a call; those of a robot
    that was reset are forgotten, and those of the present state are told where it is asked for."""
    monkeypatch.setattr("artsim.sim.runs.simulate.first_room", lambda touching: 4)
    robot, options = quadruped(), quadruped_options()
    heights, record, steps = 0.31 + np.linspace(0.0, 0.2, N), ["contacts"], 60
    fleet = artsim.VectorSimulation(robot, N, threads=threads, record=record, **options)
    fleet.reset(qpos={"root.z": heights})
    fleet.step(steps=steps)
    found = fleet.contacts
    assert found["contact_count"].min() == 0 and found["contact_count"].max() >= 4
    np.testing.assert_array_equal(np.bincount(found["robot"], minlength=N), found["contact_count"])
    assert (np.diff(found["robot"]) >= 0).all()
    for k in {0, 3 % N, N - 1}:
        start = {**options["q0"], "root.z": heights[k]}
        alone = artsim.simulate(robot, steps=steps, record=record, **{**options, "q0": start}).contacts
        first, own = int(alone["contact_count"][:-1].sum()), found["robot"] == k
        assert found["contact_count"][k] == alone["contact_count"][-1]
        for name in set(found) - {"robot", "contact_count", "step"}:
            np.testing.assert_allclose(found[name][own], alone[name][first:], atol=1e-7, err_msg=name)
    assert fleet.labels.touching_link[found["link_a"][0]] in (*robot.links, "world")
    fleet.reset([N - 1])
    assert (fleet.contacts["robot"] != N - 1).all() and fleet.contacts["contact_count"][N - 1] == 0
    fleet.forward([0])
    assert (fleet.contacts["contact_count"][1:-1] == found["contact_count"][1:-1]).all()
    fleet.forward()
    told = fleet.contacts
    fleet.step()
    assert all(values.tobytes() == told[name].tobytes() for name, values in fleet.contacts.items() if name != "step")
    with pytest.raises(UsageError, match="not recorded"):
        print(artsim.VectorSimulation(robot, 1, **options).contacts)


HEIGHTS = (-0.05, 0.0, 0.03, 0.11)
LOW_BOX = BOX.replace('pos="0 0 .5"', 'pos="0 0 .25"')


@pytest.mark.small
@pytest.mark.parametrize("record", [(), ("contact_wrench",)])
def test_ground_of_each_robot(record: tuple[str, ...], tmp_path: Path) -> None:
    """Boxes that are thrown at grounds of other heights are single runs of files with such a plane."""
    start = {"root.vx": 1.0, "root.vz": -2.0, "root.wy": 3.0}
    robot = load(LOW_BOX, tmp_path)
    boxes = artsim.VectorSimulation(robot, len(HEIGHTS), v0=start, record=list(record), continuous=True)
    boxes.vary(ground_height=HEIGHTS)
    for _ in range(4):
        boxes.step(steps=20)
    assert np.ptp(boxes.qpos[:, 2]) > 0.1
    for k, height in enumerate(HEIGHTS):
        file = LOW_BOX.replace('type="plane"', f'type="plane" pos="0 0 {height}"')
        alone = artsim.simulate(load(file, tmp_path), steps=81, v0=start, record=["qpos", *record], continuous=True)
        np.testing.assert_allclose(boxes.qpos[k], alone["qpos"][80], atol=1e-11)
        if record:
            np.testing.assert_allclose(boxes["contact_wrench"][k], alone["contact_wrench"][79], atol=1e-8)
    rolled = artsim.rollout(
        robot,
        samples=len(HEIGHTS),
        steps=80,
        v0=start,
        continuous=True,
        record=record or "none",
        randomise={"ground_height": np.array(HEIGHTS)},
    )
    off = 1e-11 if record else 0.0  # recorded steps are those of single robots
    np.testing.assert_allclose(rolled["final_qpos"], boxes.qpos, rtol=0, atol=off)
    with pytest.raises(UsageError, match="touches none"):
        artsim.VectorSimulation(artsim.load(ARM), 2).vary(ground_height=0.1)


@pytest.mark.small
@pytest.mark.parametrize("record", [(), ("actuator_force",)])
def test_delays_of_each_robot(record: tuple[str, ...], tmp_path: Path) -> None:
    """Motors whose inputs come late by times of each robot's own are single runs of files with these delays."""
    delays = (0.004, 0.006, 0.011, 0.02, *np.linspace(0.005, 0.019, 8))  # in two packs
    text = """<mujoco><option timestep="0.002"/><worldbody><body><joint name="a" axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02"/></body></worldbody><actuator>
    <motor name="m" joint="a" delay="0.006" nsample="10" interp="linear"/></actuator></mujoco>"""
    pushes = np.random.default_rng(3).normal(size=12)
    arms = artsim.VectorSimulation(load(text, tmp_path), len(delays), record=list(record))
    arms.vary(delay=np.array(delays)[:, None])
    for push in pushes[:6]:
        arms.step([push], 5)
    kept = arms.save()
    for push in pushes[6:]:
        arms.step([push], 5)
    late = arms.qpos.copy()
    arms.vary(delay=0.008)
    arms.restore(kept)
    for push in pushes[6:]:
        arms.step([push], 5)
    assert arms.qpos.tobytes() == late.tobytes()
    given = Controls(5 * np.arange(12), *(np.zeros((12, 1)) for _ in range(3)), control=pushes[:, None])
    for k, delay in enumerate(delays):
        robot = load(text.replace('delay="0.006"', f'delay="{delay}"'), tmp_path)
        alone = artsim.simulate(robot, steps=61, controls=given, record=["qpos", *record])
        np.testing.assert_allclose(arms.qpos[k], alone["qpos"][60], atol=1e-12)
        if record:
            np.testing.assert_allclose(arms["actuator_force"][k], alone["actuator_force"][59], atol=1e-12)
    for wrong in (0.0019, 0.021, -1.0):
        with pytest.raises(UsageError, match="nsample"):
            arms.vary(delay=wrong)
    with pytest.raises(UsageError, match="no control is delayed"):
        artsim.VectorSimulation(artsim.load(ARM), 2).vary(delay=0.01)


def test_room_for_contacts_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the same bytes in all packs of a thread, and where a snapshot has more room."""
    robot = load(LOW_CLAW, tmp_path)
    wide = artsim.VectorSimulation(robot, N, threads=1)
    wide.vary(mass=np.linspace(0.8, 1.2, N)[:, None] * np.ones(len(robot.links)))
    wide.step(steps=30)
    snapshot = wide.save()
    monkeypatch.setattr("artsim.sim.runs.simulate.first_room", lambda touching: 1)
    narrow = artsim.VectorSimulation(robot, N, threads=1)
    room = narrow._fleet._turns[0].scratch.simulation.room
    narrow.vary(mass=np.linspace(0.8, 1.2, N)[:, None] * np.ones(len(robot.links)))
    narrow.step(steps=30)
    assert narrow._fleet._turns[0].scratch.simulation.room > room
    assert narrow.qvel.tobytes() == wide.qvel.tobytes()
    other = artsim.VectorSimulation(robot, N, threads=1)
    other.restore(snapshot)
    for each in (wide, narrow, other):
        each.step(steps=10)
        assert each.qvel.tobytes() == wide.qvel.tobytes()


@pytest.mark.small
@pytest.mark.parametrize("record", [(), ("tau_contact",)])
def test_a_robot_of_too_many_contacts_stops(record: tuple[str, ...], tmp_path: Path) -> None:
    """It alone; by `record` it takes its steps by itself, or in its pack."""
    robot = load(BOX, tmp_path)
    options: dict[str, Any] = {"max_contacts": 3, "record": record, "threads": 1}
    made, calm = (artsim.VectorSimulation(robot, N, **options) for _ in range(2))
    made.reset([1], qpos={"root.z": 0.11}, qvel={"root.vz": -1.0})
    for each in (made, calm):
        for _ in range(4):
            each.step(steps=5)
    others = [k for k in range(N) if k != 1]
    assert made.status.tolist() == [CROWDED if k == 1 else 0 for k in range(N)]
    assert "more than 3 contacts; see --max-contacts" in made.why_stopped(1)
    assert 0 < made.steps[1] < 20 and made.qpos[1, 2] < 0.11
    assert made.qpos[others].tobytes() == calm.qpos[others].tobytes()
    truth = rolled(robot, steps=20, q0={"root.z": 0.11}, v0={"root.vz": -1.0}, max_contacts=3)
    assert (truth["n_valid"] == made.steps[1]).all() and truth.outcome.stopped == N
    assert truth["final_qpos"][0].tobytes() == made.qpos[1].tobytes()


@pytest.mark.small
def test_followers_and_quaternions_of_a_reset_are_settled() -> None:
    gripper = artsim.load(ROOT / "robots" / "parallel_gripper.urdf")
    made = artsim.VectorSimulation(gripper, 3)
    first = gripper.independent_dofs[0]
    made.reset(qpos={first: [0.0, 0.01, 0.02]}, qvel={first: 0.1})
    before = made.qpos.copy(), made.qvel.copy()
    one = artsim.Simulation(gripper)
    one.qpos, one.qvel = {first: 0.02}, {first: 0.1}
    np.testing.assert_array_equal(before[0][2], one.qpos)
    np.testing.assert_array_equal(before[1][2], one.qvel)
    with pytest.raises(UsageError, match="follows another joint"):
        made.reset(qpos=np.linspace(0.0, 0.01, gripper.nq))
    assert made.qpos.tobytes() == before[0].tobytes()


@pytest.mark.small
def test_refusals() -> None:
    robot = artsim.load(ARM)
    made = artsim.VectorSimulation(robot, 3, action="torque", record=("energy",))
    for call, told in (
        (lambda: made.step(steps=0), "number of steps from 1"),
        (lambda: made.step(np.zeros(6)), r"torque has shape \(6,\), want \(3, 7\), or \(7,\) for all"),
        (lambda: made.step(torque={"joint_9": 1.0}), "'joint_9' is not a joint"),
        (lambda: made.step(wrench={"link_1": np.zeros(6)}), "start with wrench="),
        (lambda: made.reset([3]), "different numbers from 0 to 2"),
        (lambda: made.reset([1, 1]), "different numbers"),
        (lambda: made.reset(np.ones(2, bool)), r"want a mask \(3,\)"),
        (lambda: made.reset(qpos=np.zeros((2, 7))), r"qpos has shape \(2, 7\), want \(3, 7\)"),
        (lambda: made.reset(qpos=np.full(7, np.nan)), "qpos is not finite"),
        (lambda: made.vary(weight=2.0), "'weight' is not known.*mass"),
        (lambda: made.vary(mass=0.0), "factors from 0"),
        (lambda: made.vary(gravity=-9.81), r"gravity has shape \(\), want \(3, 3\), or \(3,\) for all"),
        (lambda: made.vary(friction=1.5), "nothing may touch"),
        (lambda: made["qacc"], "'qacc' is not recorded"),
        (lambda: made["qpos"], "simulation.qpos"),
        (lambda: made.restore({}), "snapshot: "),
        (lambda: artsim.VectorSimulation(robot, 0), "want 1 to"),
        (lambda: artsim.VectorSimulation(robot, 2, action="push"), "action: 'push' is not known"),
        (lambda: artsim.VectorSimulation(robot, 2, every=2), "every has no meaning here"),
        (lambda: artsim.VectorSimulation(robot, 2, solver="pgs"), "packs lack solver"),
    ):
        with pytest.raises(UsageError, match=told):
            call()
    assert set(VALUES) == set(made._names)
    assert GAVE_WAY == 5  # as status says


@pytest.mark.skipif(disabled(), reason="of lanes beside each other")
@pytest.mark.parametrize("seed", [0, 1])
def test_no_robot_touches_another(seed: int) -> None:
    """Robots that fall, are reset, varied, or stop at velocities that are not finite: each is, to the byte, a robot for
    itself that is given the same."""
    rng, n = np.random.default_rng(seed), 12
    options = quadruped_options()
    made, *ones = (artsim.VectorSimulation(quadruped(), k, threads=2, **options) for k in (n, *[1] * n))
    stance, nv = made._fleet.inputs["target"][0].copy(), made.robot.nv
    for _ in range(60):
        what = rng.choice(["step", "step", "step", "wild", "reset", "vary"])
        if what == "reset":
            some = np.flatnonzero(rng.random(n) < 0.4)
            speed = 0.5 * rng.normal(size=(n, nv))
            made.reset(some, qvel=speed[some])
            for k in some:
                ones[k].reset(qvel=speed[k])
        elif what == "vary":
            given = {"mass": rng.uniform(0.6, 1.4, (n, len(made.robot.links))), "friction": rng.uniform(0.2, 1.5, n)}
            given["gravity"] = np.array([0, 0, -9.81]) * rng.uniform(0.5, 1.2, (n, 1))
            made.vary(**given)
            for k, one in enumerate(ones):
                one.vary(**{name: values[k : k + 1] for name, values in given.items()})
        else:
            target = stance + rng.choice([0.1, 1.0]) * rng.normal(size=(n, nv))
            torque = np.zeros((n, nv))
            torque[:, -1] = 1e190 * (rng.random(n) < 0.2) * (what == "wild")
            steps = int(rng.integers(1, 9))
            made.step(target, steps, torque=torque)
            for k, one in enumerate(ones):
                one.step(target[k], steps, torque=torque[k])
        for k, one in enumerate(ones):
            for name in (*STATES, "status", "steps"):
                assert getattr(made, name)[k].tobytes() == getattr(one, name)[0].tobytes(), (k, name)
    assert 0 < np.count_nonzero(made.status) < n


# each found a robot that the others changed: by beginning the step's evaluations anew, by impulses and rounding of rows
# that are not its own, by activations that went on after its stop
OWN = [
    ("quadruped.urdf", "", 2, 46),
    ("quadruped.urdf", "convex", 1, 4),
    ("leg.xml", "convex", 1, 2),
    ("clamp.xml", "", 1, 12),
]


@pytest.mark.parametrize(("model", "law", "seed", "calls"), OWN)
def test_histories_are_those_of_robots_for_themselves(model: str, law: str, seed: int, calls: int) -> None:
    path = ROOT / "robots" / model
    robot = artsim.load(path)
    assert history(robot, options_of(robot, path, law), seed, 12, calls).startswith("ok")


def test_quantities_of_all_robots_are_those_of_compute() -> None:
    """Through arrays that live as long as they are used."""
    arms = artsim.VectorSimulation(artsim.load(ARM), N, threads=1)
    found, renew = arms.computed(["link_position", "link_velocity", "gravity_derivative", "bias"])
    rng = np.random.default_rng(0)
    arms.reset(qpos=rng.normal(size=(N, arms.robot.nv)), qvel=rng.normal(size=(N, arms.robot.nv)))
    for _ in range(3):
        renew()
        wanted = arms.robot.compute(arms.qpos, arms.qvel, quantities=[*found], at="origin")
        assert all(found[name].tobytes() == wanted[name].tobytes() for name in found)
        arms.step(steps=2)
    with pytest.raises(UsageError, match="inverse_dynamics: needs qacc, which a state has not"):
        arms.computed(["inverse_dynamics"])


@pytest.mark.small
def test_delayed_controls_are_each_robot_s_own(tmp_path: Path) -> None:
    """Those of the robots in another pack are others; a robot by itself is the truth."""
    path = tmp_path / "late.xml"
    path.write_text(MODELS["late"])
    control = np.random.default_rng(6).normal(size=(17, 2))
    robot, states = artsim.load(path), []
    many = artsim.VectorSimulation(robot, 17, threads=1)
    for k in (0, 3, 8, 16):
        one = artsim.VectorSimulation(robot, 1)
        for _ in range(30):
            one.step(control[k])
        states.append(one.qpos[0].copy())
    for _ in range(30):
        many.step(control)
    assert many.qpos[[0, 3, 8, 16]].tobytes() == np.array(states).tobytes()
    assert np.ptp(many.qpos[:, 0]) > 1e-4


def test_forward_of_some_robots_leaves_the_others() -> None:
    robot = quadruped()
    whole, some = (
        artsim.VectorSimulation(robot, N, threads=1, record=["contact_wrench", "tau_contact"], **quadruped_options())
        for _ in range(2)
    )
    chosen = np.unique([0, 3 % N, N - 1])
    for fleet in (whole, some):
        fleet.step(steps=5)
        fleet.reset(chosen)
    before = {name: some[name].copy() for name in some.variables}
    whole.forward()
    some.forward(chosen)
    rest = np.setdiff1d(np.arange(N), chosen)
    for name, values in before.items():
        assert some[name][chosen].tobytes() == whole[name][chosen].tobytes()
        assert some[name][rest].tobytes() == values[rest].tobytes()
        assert np.isfinite(some[name]).all()
    for fleet in (whole, some):
        fleet.step(steps=3)
    assert all(getattr(some, name).tobytes() == getattr(whole, name).tobytes() for name in ("qpos", "qvel", "steps"))
    assert all(some[name].tobytes() == whole[name].tobytes() for name in before)
