"""Simulation from Python: inputs and changes between steps against runs that have them from the start, and files."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.readers.recording import open_recording
from artsim.io.runs.held_inputs import input_names
from artsim.sim.foundation.errors import StoppedError, UsageError
from artsim.sim.runs.controls import Controls
from tests.conftest import ROOT

Q0 = {f"joint_{k}": 0.1 * k for k in range(1, 8)}


@pytest.fixture(scope="module")
def arm() -> artsim.Robot:
    return artsim.load("arm7")


def test_torques_of_steps_are_those_of_controls(arm: artsim.Robot) -> None:
    """A torque that changes from step to step acts as the same rows of a control file, to the byte."""
    torque = np.random.default_rng(1).normal(size=(50, 7))
    zero = np.zeros((50, 7))
    held = np.tile([Q0[name] for name in arm.dofs], (50, 1))
    run = artsim.simulate(arm, steps=50, q0=Q0, controls=Controls(np.arange(50), torque, held, zero))
    simulation = artsim.Simulation(arm, q0=Q0)
    rows = [simulation.step(torque=values) for values in torque]
    for name in run.variables:
        np.testing.assert_array_equal(np.concatenate([row[name] for row in rows]), run[name], err_msg=name)


def test_rows_stay_as_they_were(arm: artsim.Robot) -> None:
    """Rows looked at only after further steps, a change or a snapshot are those of their own steps."""
    simulation = artsim.Simulation(arm, q0=Q0)
    first = simulation.step(3)
    simulation.step(3)
    third = simulation.step(2)
    simulation.qvel = np.zeros(7)
    fourth = simulation.step()
    simulation.restore(simulation.save())
    run = artsim.simulate(arm, steps=8, q0=Q0)
    np.testing.assert_array_equal(first["qpos"], run["qpos"][:3])
    np.testing.assert_array_equal(third["qvel"], run["qvel"][6:8])
    assert not fourth["qvel"].any()
    assert dict(third).keys() == {*third}


def test_the_state_is_a_view_that_cannot_be_written(arm: artsim.Robot) -> None:
    """qpos and qvel change with the steps; they are set whole or by name, never entry by entry in a copy."""
    simulation = artsim.Simulation(arm, q0=Q0)
    qpos, before = simulation.qpos, simulation.qpos.copy()
    simulation.step(10)
    assert qpos is simulation.qpos
    assert np.any(qpos != before)
    with pytest.raises(ValueError, match="read-only"):
        qpos[0] = 1.0
    simulation.qpos = {"joint_2": 0.7}
    simulation.set_gravity((0.0, 0.0, -1.0))
    assert qpos is not None
    assert simulation.qpos[1] == 0.7
    simulation.step()
    np.testing.assert_array_equal(qpos, simulation.qpos)


CHANGES: dict[str, tuple[str, dict[str, Any], Callable[[artsim.Simulation], None]]] = {
    "gravity": ("arm7", {"gravity": (1.0, 0.0, -3.0)}, lambda s: s.set_gravity((1.0, 0.0, -3.0))),
    "drive": (
        "arm7",
        {"stiffness": {"joint_3": 80.0}, "damping": {"joint_3": 4.0}, "drive_limit": {"joint_3": 6.0}},
        lambda s: s.set_drive("joint_3", stiffness=80.0, damping=4.0, limit=6.0),
    ),
    "friction": (
        "arm7",
        {"joint_friction": {"joint_*": 0.4}},
        lambda s: s.set_friction("joint_*", force=0.4),
    ),
    "coupling": (
        "parallel_gripper",
        {"coupling_ratio": {"right_finger_joint": -0.5}},
        lambda s: s.set_coupling("right_finger_joint", ratio=-0.5),
    ),
    "compliance": (
        "parallel_gripper",
        {
            "coupling": "compliant",
            "coupling_frequency": {"right_finger_joint": 8.0},
            "coupling_damping": {"right_finger_joint": 0.4},
        },
        lambda s: s.set_coupling("right_finger_joint", frequency=8.0, damping=0.4),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_a_run_that_starts_with_it(what: str) -> None:
    """After a change, the motion is that of a simulation which starts there with the setting."""
    name, settings, change = CHANGES[what]
    robot = artsim.load(name)
    simulation = artsim.Simulation(robot)
    simulation.step(30, torque={robot.dofs[0]: 0.3})
    change(simulation)
    labels = simulation.robot.labels
    start = {
        "q0": dict(zip(labels.coords, simulation.qpos.tolist(), strict=True)),
        "v0": dict(zip(labels.dofs, simulation.qvel.tolist(), strict=True)),
    }
    begun = artsim.Simulation(robot, **start, **settings)
    target = np.zeros(robot.nv)
    rows = simulation.step(60, target=target)
    others = begun.step(60, torque={robot.dofs[0]: 0.3}, target=target)
    for variable in ("qpos", "qvel", "tau_drive", "tau_coupling"):
        scale = max(1.0, np.abs(others[variable]).max())
        np.testing.assert_allclose(rows[variable], others[variable], rtol=0, atol=1e-11 * scale, err_msg=variable)
    assert np.abs(rows["qvel"]).max() > 1e-3


def test_followers_follow_a_state_that_is_set() -> None:
    """A leader set by name takes its followers along; a whole state that breaks a coupling is refused."""
    robot = artsim.load("parallel_gripper")
    simulation = artsim.Simulation(robot)
    leader = robot.independent_dofs[0]
    simulation.qpos = {leader: 0.01}
    np.testing.assert_allclose(np.abs(simulation.qpos), 0.01)
    simulation.qvel = {leader: 0.2}
    np.testing.assert_allclose(np.abs(simulation.qvel), 0.2)
    broken = simulation.qpos.copy()
    broken[-1] += 0.005
    with pytest.raises(UsageError, match="follows another joint and must be"):
        simulation.qpos = broken


def test_a_stepped_run_replays_from_its_file(tmp_path: Path) -> None:
    """A file with inputs, pushes and changes of every kind is simulated again to the byte; it is no configuration."""
    path = tmp_path / "stepped.h5"
    robot = artsim.load("quadruped", base="floating")
    link = robot.links[-1]
    settings: dict[str, Any] = {"ground": True, "on_ground": 0.0, "wrench": {link: (0, 0, 0)}, "stiffness": 60.0}
    with artsim.Simulation(robot, output=path, record=["+contact_wrench"], damping=2.0, **settings) as simulation:
        for k in range(20):
            simulation.step(2, target={robot.independent_dofs[-1]: 0.01 * k})
        simulation.push(link, (0.3, 0.0, 0.1))
        simulation.set_friction(ground=0.3)
        simulation.step(20, wrench={link: (0.0, 1.0, 0.0)})
        simulation.qvel = simulation.qvel * 0.5
        simulation.set_drive("*", stiffness=30.0)
        simulation.step(30)
        last = simulation.qpos.copy()
    with open_recording(path) as recording:
        assert recording.n_valid == 91
        assert [change.step for change in recording.changes] == [41, 61, 61]
        np.testing.assert_array_equal(recording.final["qpos"], last)
    done = CliRunner().invoke(cli, ["replay", str(path), "--verify"])
    assert done.exit_code == 0, done.output
    for words in (["run", "--config", str(path)], ["run", "--resume", str(path), "--steps", "200"]):
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 2
        assert "Python" in done.output


def test_contacts_and_their_room(tmp_path: Path) -> None:
    """A robot that lands, so that more contacts than expected need room, is stepped as `simulate` does it."""
    settings: dict[str, Any] = {"ground": True, "on_ground": 0.05, "record": ["+contact_wrench"]}
    robot = artsim.load("quadruped", base="floating")
    run = artsim.simulate(robot, steps=200, **settings)
    simulation = artsim.Simulation(robot, **settings)
    parts = [simulation.step(5) for _ in range(40)]
    for name in ("qpos", "contact_wrench", "tau_contact"):
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), run[name])
    forces = np.concatenate([part["contact/force"] for part in parts])
    np.testing.assert_array_equal(forces, run.contacts["force"])


def test_states_in_maximal_coordinates(arm: artsim.Robot) -> None:
    """The bodies of maximal coordinates are where the joints are set."""
    simulation = artsim.Simulation(arm, coordinates="maximal", q0=Q0)
    simulation.step(2)
    simulation.qpos = {"joint_1": 1.0}
    begun = artsim.Simulation(
        arm,
        coordinates="maximal",
        q0=dict(zip(arm.labels.coords, simulation.qpos.tolist(), strict=True)),
        v0=dict(zip(arm.dofs, simulation.qvel.tolist(), strict=True)),
    )
    np.testing.assert_allclose(simulation.step(5)["qpos"], begun.step(5)["qpos"], atol=1e-12)


def test_a_push_and_a_wrench_act_for_their_steps() -> None:
    """A push of a free box changes its momentum by J and its height accordingly; wrenches stay until given anew."""
    robot = artsim.load("floating_box")
    box = robot.links[-1]
    mass = sum(link.inertial.mass for link in robot.articulation.links if link.inertial)
    simulation = artsim.Simulation(robot, gravity=(0, 0, 0))
    before = simulation.qvel.copy()
    simulation.push(box, (0.0, 0.0, 2.0))
    np.testing.assert_allclose((simulation.qvel - before)[2], 2.0 / mass, rtol=1e-12)
    simulation.step(10)
    np.testing.assert_allclose(simulation.qvel[2], 2.0 / mass, rtol=1e-12)
    simulation.step(5, wrench={box: (3.0, 0, 0)})
    simulation.step(5)
    np.testing.assert_allclose(simulation.qvel[0], 3.0 * 10 * 0.002 / mass, rtol=1e-12)


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda s: s.step(torque=np.zeros(3)), "torque has shape (3,), want (7,)"),
        (lambda s: s.step(torque={"joint_9": 1.0}), "'joint_9' is not a joint of this robot; did you mean"),
        (lambda s: s.step(torque="a"), "torque is 'a', want numbers"),
        (lambda s: s.step(torque=np.full(7, np.nan)), "torque of 'joint_1' is not finite"),
        (lambda s: s.step(0), "want a number of steps from 1"),
        (lambda s: s.step(wrench={"link_9": (0, 0, 1)}), "'link_9' is not a link"),
        (lambda s: s.step(wrench={"link_7": (0, 1)}), "want (3,) or (6,)"),
        (lambda s: s.push("linc_7", (0, 0, 1)), "'linc_7' is not a link"),
        (lambda s: setattr(s, "qpos", np.zeros(6)), "qpos has shape (6,), want (7,)"),
        (lambda s: setattr(s, "qvel", np.full(7, np.inf)), "qvel is not finite"),
        (lambda s: setattr(s, "qpos", {"joint_x": 1}), "qpos: 'joint_x' is not known; did you mean"),
        (lambda s: s.change(solver="pgs"), "'solver' does not change during a run"),
        (lambda s: s.change(gravity=(1, 2)), "three finite numbers"),
        (lambda s: s.set_drive("joint_0", stiffness=1.0), "'joint_0' is not a joint of this robot"),
        (lambda s: s.set_coupling("joint_1", ratio=2.0), "joint_1"),
        (lambda s: s.set_friction(force=1.0), "give its name"),
    ],
)
def test_odd_inputs_and_changes_are_refused(arm: artsim.Robot, act: Callable[[Any], None], says: str) -> None:
    """Wrong shapes, unknown names and numbers that are not finite get a line, and the state stays as it was."""
    simulation = artsim.Simulation(arm, q0=Q0)
    simulation.step(2)
    before = simulation.qpos.copy()
    with pytest.raises(UsageError) as error:
        act(simulation)
    assert says in str(error.value)
    np.testing.assert_array_equal(simulation.qpos, before)


def test_a_run_that_stops_says_where() -> None:
    """A torque that overflows stops the run with the joint's name, and the state before it is kept."""
    simulation = artsim.Simulation(artsim.load("arm7"))
    simulation.step()
    with pytest.raises(StoppedError, match="is not finite"):
        simulation.step(5, torque=np.full(7, 1e300))


# every way to change a simulation, by the name of the method, property or input
MUTATORS: dict[str, tuple[str, Callable[[artsim.Simulation], object]]] = {
    "torque": ("arm7", lambda s: s.step(torque=np.linspace(-3.0, 3.0, 7))),
    "torque by name": ("arm7", lambda s: s.step(torque={"joint_2": 3.0})),
    "target": ("arm7", lambda s: s.step(target=np.full(7, 0.3))),
    "target_velocity": ("arm7", lambda s: s.step(target_velocity={"joint_4": 0.5})),
    "target_acceleration": ("arm7", lambda s: s.step(target_acceleration={"joint_4": 2.0})),
    "control": ("clamp.xml", lambda s: s.step(control=np.full(len(input_names(s._simulation.plan, "control")), 0.4))),
    "wrench": ("arm7", lambda s: s.step(wrench={"link_7": (1.0, 2.0, 3.0)})),
    "wrench again": ("arm7", lambda s: (s.step(wrench={"link_7": (1, 2, 3)}), s.change(wrench={"link_7": (9, 0, 0)}))),
    "push": ("arm7", lambda s: s.push("link_5", (0.5, 0.0, 0.1))),
    "qpos": ("arm7", lambda s: setattr(s, "qpos", {"joint_3": 0.7})),
    "qvel": ("arm7", lambda s: setattr(s, "qvel", np.linspace(0.0, 0.6, 7))),
    "activation": ("clamp.xml", lambda s: setattr(s, "activation", s.activation + 0.1)),
    "change": ("arm7", lambda s: s.change(armature={"joint_1": 0.3}, link_damping={"link_4": (1.0, 2.0)})),
    "set_drive": ("arm7", lambda s: s.set_drive("joint_3", stiffness=90.0, damping=3.0, limit=8.0)),
    "set_coupling": ("parallel_gripper", lambda s: s.set_coupling("right_finger_joint", ratio=-0.5)),
    "set_compliance": ("parallel_gripper", lambda s: s.set_compliance("right_finger_joint", 1e-3, damping=0.01)),
    "set_friction": ("arm7", lambda s: s.set_friction("joint_*", force=0.4)),
    "set_gravity": ("arm7", lambda s: s.set_gravity((1.0, 0.0, -3.0))),
}


def _after(simulation: artsim.Simulation) -> bytes:
    rows = simulation.step(4)
    return b"".join(np.ascontiguousarray(rows[name]).tobytes() for name in rows) + simulation.qpos.tobytes()


def _disturb(simulation: artsim.Simulation) -> None:
    """Give inputs and change settings and state, so that only a snapshot brings back what was there."""
    robot = simulation.robot
    simulation.step(torque=np.ones(robot.nv))
    simulation.step(2, wrench={robot.links[-1]: (0.0, 4.0, 1.0), robot.links[1]: (1.0, 1.0, 1.0)})
    simulation.set_gravity((0.0, 2.0, 0.0))
    simulation.set_friction("*", force=0.2)


@pytest.mark.parametrize("what", MUTATORS)
def test_a_snapshot_holds_what_was_given_and_changed(what: str, tmp_path: Path) -> None:
    """After any change or input, what follows a restored snapshot has the bytes of what followed it: in the same
    simulation after other inputs and changes, in a fresh one, and in a fresh one from a file."""
    name, act = MUTATORS[what]
    robot = artsim.load(ROOT / "robots" / name if name.endswith(".xml") else name)
    gains: dict[str, Any] = {"controller": "computed-torque"} if what == "target_acceleration" else {}
    settings = {"stiffness": 20.0, "damping": 2.0, **gains} if name == "arm7" else {}
    simulation = artsim.Simulation(robot, **settings)
    simulation.step(2)
    begun = simulation.save()
    untouched = _after(simulation)
    simulation.restore(begun)
    act(simulation)
    snapshot = simulation.save()
    follows = _after(simulation)
    if not what.startswith("set_"):  # other settings can have other constraint rows
        assert {key: values.shape for key, values in snapshot.items()} == {k: v.shape for k, v in begun.items()}
    _disturb(simulation)
    simulation.restore(snapshot)
    assert _after(simulation) == follows
    np.savez(tmp_path / "snapshot.npz", **snapshot)
    with np.load(tmp_path / "snapshot.npz", allow_pickle=False) as kept:
        for given in (snapshot, dict(kept)):
            fresh = artsim.Simulation(robot, **settings)
            fresh.restore(given)
            assert _after(fresh) == follows
    simulation.restore(begun)
    assert _after(simulation) == untouched


def test_every_mutator_is_in_the_table() -> None:
    """Methods and properties of Simulation that change it, and the inputs of `step`."""
    public = {name: value for name, value in vars(artsim.Simulation).items() if not name.startswith("_")}
    setters = {name for name, value in public.items() if isinstance(value, property) and value.fset}
    methods = {name for name, value in public.items() if callable(value)}
    methods -= {"step", "save", "restore", "close", "derivatives"}
    inputs = set(inspect.signature(artsim.Simulation.step).parameters) - {"self", "steps"}
    assert setters | methods | inputs <= {name.partition(" ")[0] for name in MUTATORS}


def test_inputs_over_time_act_again_after_a_restore(arm: artsim.Robot) -> None:
    """The rows of a control file that an input of a step overrode are back, and a push leaves later rows alone."""
    torque = np.random.default_rng(2).normal(size=(30, 7))
    held, zero = np.tile([Q0[name] for name in arm.dofs], (30, 1)), np.zeros((30, 7))
    controls = Controls(np.arange(30), torque, held, zero)
    simulation = artsim.Simulation(arm, q0=Q0, controls=controls)
    simulation.step(3)
    snapshot = simulation.save()
    follows = _after(simulation)
    simulation.step(2, torque={"joint_1": 4.0})
    simulation.restore(snapshot)
    assert _after(simulation) == follows
    simulation.step(2, torque={"joint_1": 4.0})
    overridden = simulation.save()
    later = _after(simulation)
    simulation.restore(snapshot)
    simulation.restore(overridden)
    assert _after(simulation) == later


@pytest.mark.parametrize(
    "change",
    [
        {"changed_settings": np.array("{")},
        {"changed_settings": np.array('{"dt": 1.0}')},
        {"changed_settings": np.array('{"gravity": "down"}')},
        {"held_torque": np.zeros(3)},
        {"held_wrench": np.array("x")},
        {"command_wrench": np.zeros(0)},
        {"command": np.zeros((2, 2))},
    ],
)
def test_odd_snapshots_are_refused(arm: artsim.Robot, change: dict[str, Any]) -> None:
    """A snapshot that does not fit leaves the simulation as it was."""
    simulation, other = artsim.Simulation(arm, q0=Q0), artsim.Simulation(arm, q0=Q0)
    for each in (simulation, other):
        each.step(torque=np.ones(7))
    with pytest.raises(UsageError, match="snapshot"):
        simulation.restore(simulation.save() | change)
    assert _after(simulation) == _after(other)
