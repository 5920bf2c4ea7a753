"""Variables that rollouts record beside positions and velocities: all variables of a run whose rows have a fixed size.

The truth is the single run of each sample, and the balance of forces.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.format import schema
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.io.rollouts.samples import opened_runs
from artsim.io.runs.prepare import prepare
from artsim.loaders.stored import load_stored
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.jit import disabled
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.packable import pack_width, reason_against_packs
from artsim.sim.runs.sampled_runs import ROLLOUT_RECORDABLE, PackRoller, Results
from artsim.sim.runs.varied import Variations
from tests.conftest import ROOT
from tests.runs.test_packed_alone import MODELS

ARM = ROOT / "robots" / "arm7.urdf"
STEPS, EVERY = 42, 4
FORCES = tuple(name for name in ROLLOUT_RECORDABLE if name.startswith("tau_"))
SENSORS = """<sensor><jointpos joint="a"/><jointvel joint="b"/><clock/><actuatorfrc actuator="actuator_0"/></sensor>
</mujoco>"""
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "servos and sensors": ("servos", {}),
    "muscle": ("muscle", {}),
    "hard loop": ("hard loop", {}),
    "tendon friction and inertia": ("tendon friction and inertia", {}),
    "sleep with delays": ("late", {"sleep_threshold": 0.3, "sleep_time": 0.004}),
    "contacts and friction by the load": ("leg", {"friction_coefficient": {"hip": 0.03, "knee": 0.02}}),
    "rk4": ("unlimited tree", {"integrator": "rk4"}),
}
MASSES = {"mass": (0.7, 1.4), "damping": (0.5, 2.0)}


def load(name: str, folder: Path) -> artsim.Robot:
    path = folder / "model.xml"
    path.write_text(MODELS[name].replace("</mujoco>", SENSORS) if name == "servos" else MODELS[name])
    return artsim.load(path)


def rolled(robot: artsim.Robot | str | Path, **options: Any) -> MemoryRollout:
    given = {
        "samples": 9,
        "steps": STEPS,
        "every": EVERY,
        "seed": 2,
        "velocity_spread": 0.3,
        "check": False,
        "threads": 1,
    }
    made = artsim.rollout(robot, **{**given, **options})
    assert isinstance(made, MemoryRollout)
    return made


def stepped_controls(robot: artsim.Robot) -> Controls:
    """Inputs that change in the midst, between two recorded rows."""
    size = prepare(robot.articulation, RunConfig()).control.size
    zero = np.zeros((2, robot.nv))
    return Controls(np.array([0, 34]), zero + 0.01, zero, zero, np.array([[0.3], [0.6]]) * np.ones((2, size)))


def assert_alike(made: MemoryRollout, truth: MemoryRollout, most: float, names: tuple[str, ...] = ()) -> None:
    """All variables agree, relative to the largest entry of each."""
    assert made.variables == truth.variables
    for name in names or made.variables:
        assert made[name].shape == truth[name].shape
        assert made[name].dtype == truth[name].dtype
        if name != "solver_iterations":
            scale = max(1.0, float(np.nanmax(np.abs(truth[name]), initial=0.0)))
            np.testing.assert_allclose(made[name], truth[name], rtol=0, atol=most * scale, err_msg=name)


@pytest.mark.small
def test_rollouts_record_all_but_tables() -> None:
    """A new variable of Block is one of rollouts, in memory and in files, without a line for them."""
    assert set(ROLLOUT_RECORDABLE) == {*schema.RECORDED, "contacts"}
    assert set(schema.RECORDED) <= set(schema.ROLLED)
    for name in schema.RECORDED:
        of_run, of_rollout = schema.TABLE[f"trajectory/{name}"], schema.TABLE[f"rollout/{name}"]
        assert of_rollout.dims == ("sample", *of_run.dims)
        assert (of_rollout.unit, of_rollout.dtype) == (of_run.unit, of_run.dtype)


@pytest.mark.small
@pytest.mark.parametrize("case", CASES)
def test_every_variable_of_a_sample_is_that_of_its_run(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, options = CASES[case]
    robot = load(name, tmp_path)
    options = {"record": ROLLOUT_RECORDABLE, "randomise": MASSES, "controls": stepped_controls(robot), **options}
    made, plain = rolled(robot, **options), rolled(robot, **{**options, "record": ("qpos", "qvel")})
    assert made.outcome.packed
    monkeypatch.setattr("artsim.sim.runs.sampled_runs.reason_against_packs", lambda plan: "no reason")
    truth = rolled(robot, **options)
    assert {"tau_passive", "incoming_wrench", "jacobian", "mass_matrix"} <= set(made.variables)
    assert_alike(made, truth, 1e-12 if case not in ("contacts and friction by the load", "hard loop") else 1e-11)
    for variable in ("qpos", "qvel", "final_qpos", "final_qvel"):
        assert made[variable].tobytes() == plain[variable].tobytes(), variable
    if "sleep" in case:
        assert 0 < made["asleep"].sum() < made["asleep"].size
    if "contacts" in case:
        assert np.abs(made["tau_contact"]).max() > 1.0


def test_a_sample_is_the_run_that_starts_where_it_does() -> None:
    """By artsim.simulate, whose blocks hold many rows."""
    given: dict[str, Any] = {"stiffness": 30.0, "damping": 1.0, "target": np.full(7, 0.2), "drive_limit": 4.0}
    made = rolled(ARM, spread=0.8, record=ROLLOUT_RECORDABLE, **given)
    for k in (0, 8):
        start = {"q0": made["qpos"][k, 0], "v0": made["qvel"][k, 0]}
        one = artsim.simulate(ARM, steps=STEPS, every=EVERY, record=ROLLOUT_RECORDABLE, **start, **given)
        for name in one.variables:
            size = max(1.0, np.abs(one[name]).max())
            np.testing.assert_allclose(made[name][k], one[name], rtol=0, atol=1e-12 * size, err_msg=name)
            assert made.meaning(name)["units"] == one.meaning(name)["units"]
            assert made.variable(name).dims == ("sample", *one.variable(name).dims)
    assert np.isclose(np.abs(made["tau_drive"]), 4.0).sum() > 5


def test_recorded_forces_are_those_that_move_each_sample(tmp_path: Path) -> None:
    """M qacc + bias is the sum of all forces by source, of each sample with its own masses; and the step that follows
    a row is made with its acceleration."""
    robot, dt = load("leg", tmp_path), 0.002
    options: dict[str, Any] = {"stiffness": {"knee": 90.0}, "damping": {"knee": 4.0}, "randomise": MASSES}
    names = (*FORCES, "qpos", "qvel", "qacc", "mass_matrix", "bias")
    made = rolled(robot, steps=160, every=8, record=names, q0={"z": -0.1}, **options)
    inertial = np.einsum("srij,srj->sri", made["mass_matrix"], made["qacc"]) + made["bias"]
    np.testing.assert_allclose(sum(made[name] for name in FORCES if name in made.variables), inertial, atol=1e-9)
    assert np.abs(made["tau_contact"]).max() > 10.0
    after = rolled(robot, steps=160, every=1, q0={"z": -0.1}, **options)["qvel"]
    np.testing.assert_allclose(made["qvel"] + dt * made["qacc"], after[:, 1::8], rtol=0, atol=1e-8)


@pytest.mark.parametrize("every", [1, 3])
def test_bytes_depend_on_nobody_else(every: int, tmp_path: Path) -> None:
    robot = load("leg", tmp_path)
    options = {"record": ROLLOUT_RECORDABLE, "every": every, "q0": {"z": -0.1}, "steps": 60, "randomise": MASSES}
    whole = rolled(robot, samples=16, threads=1, **options)
    for other in (rolled(robot, samples=16, threads=2, **options), rolled(robot, samples=3, threads=1, **options)):
        for name in whole.variables:
            assert whole[name][: len(other["qpos"])].tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize("packed", [True, False])
def test_what_is_told_of_depths_does_not_depend_on_what_is_recorded(packed: bool, tmp_path: Path) -> None:
    """Also by a roller that has run other samples before: start depths, and how much deeper contacts got since."""
    path = tmp_path / "ball.xml"
    path.write_text("""<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body name="ball" pos="0 0 .1">
    <freejoint name="root"/><geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>""")
    given: dict[str, Any] = {"samples": 40, "spread": {"root.z": 0.08}, "v0": {"root.vz": -9.0}, "every": 1, "steps": 4}
    given["solver"] = "newton" if packed else "pgs"
    made, plain = rolled(path, record=("+tau_contact",), **given), rolled(path, **given)
    assert made.outcome.packed == packed
    np.testing.assert_allclose(made["start_depth"], plain["start_depth"], rtol=0, atol=1e-15)
    np.testing.assert_allclose(made["sunk"], plain["sunk"], rtol=0, atol=1e-12)
    assert made["start_depth"].max() > 0.05


def test_room_for_contacts_grows_in_recorded_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load("leg", tmp_path)
    options: dict[str, Any] = {"record": ("+tau_contact",), "steps": 60, "every": 1, "q0": {"z": -0.1}}
    wide = rolled(robot, **options)
    monkeypatch.setattr("artsim.sim.runs.simulate.first_room", lambda touching: 1)
    narrow = rolled(robot, **options)
    for name in wide.variables:
        np.testing.assert_allclose(narrow[name], wide[name], rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.skipif(disabled(), reason="numpy warns of overflow where machine code does not")
def test_rows_after_the_end_of_a_sample_are_nan(tmp_path: Path) -> None:
    robot = load("tree", tmp_path)
    push = np.zeros((1, robot.nv))
    push[0, -1] = 1e150
    control = np.zeros((1, prepare(robot.articulation, RunConfig()).control.size))
    calm, wild = (Controls(np.zeros(1, np.int64), x * push, 0 * push, 0 * push, control) for x in (0.0, 1.0))
    made = rolled(robot, steps=100, controls=[calm, wild] + 7 * [calm], record=("+qacc", "+asleep", "+jacobian"))
    count = int(made["n_valid"][1])
    assert made["status"].tolist() == [1, 2] + 7 * [1]
    assert 0 < count < 25
    assert np.isnan(made["qacc"][1, count:]).all() and np.isfinite(made["qacc"][1, :count]).all()
    assert (made["asleep"][1, count:] == -1).all() and (made["asleep"][0] == 0).all()
    assert np.isnan(made["jacobian"][1, count:]).any() and np.isfinite(made["jacobian"][0]).all()


# ------------------------------------------------------------------ the file, and refusals


def test_a_file_holds_what_python_returns(tmp_path: Path) -> None:
    path = tmp_path / "out.h5"
    words = [
        "--samples",
        3,
        "--steps",
        6,
        "--every",
        2,
        "--spread",
        0.1,
        "--record",
        "+tau_drive,jacobian,energy,asleep",
    ]
    done = CliRunner().invoke(cli, ["rollout", *map(str, [ARM, *words, "-o", path])])
    assert done.exit_code == 0, done.output
    made = rolled(
        ARM,
        samples=3,
        steps=6,
        every=2,
        spread=0.1,
        seed=0,
        velocity_spread=0.0,
        record=("+tau_drive", "jacobian", "energy", "asleep"),
    )
    with artsim.open(path) as stored:
        assert isinstance(stored, RolloutRecording)
        assert stored.variables == made.variables
        assert {"qpos", "qvel", "tau_drive", "jacobian", "energy", "asleep"} <= set(stored.variables)
        for name in made.variables:
            assert stored[name].tobytes() == made[name].tobytes(), name
            assert stored.meaning(name) == made.meaning(name)
        jacobian, rate = stored["jacobian"][2], stored["qvel"][2]
    assert jacobian.shape == (3, 9, 6, 7) and rate.shape == (3, 7)
    assert CliRunner().invoke(cli, ["replay", "--verify", str(path)]).exit_code == 0
    with opened_runs([path], [2], load_stored) as (run,):
        np.testing.assert_array_equal(run["tau_drive"], made["tau_drive"][2])
        np.testing.assert_array_equal(run["jacobian"], jacobian)
    told = CliRunner().invoke(cli, ["info", str(path)])
    assert "tau_drive" in told.output and told.exit_code == 0
    shown = CliRunner().invoke(cli, ["export", str(path), "--sample", "1", "--csv", str(tmp_path / "one.csv")])
    assert shown.exit_code == 0, shown.output
    assert "tau_drive.joint_3" in (tmp_path / "one.csv").read_text().splitlines()[0]


def test_an_archive_holds_the_same(tmp_path: Path) -> None:
    options: dict[str, Any] = {"samples": 2, "steps": 3, "every": 1, "record": ("tau_drive", "solver_iterations")}
    made = rolled(ARM, **options)
    done = CliRunner().invoke(
        cli,
        [
            "rollout",
            str(ARM),
            "--samples",
            "2",
            "--steps",
            "3",
            "--seed",
            "2",
            "--velocity-spread",
            "0.3",
            "--record",
            "tau_drive,solver_iterations",
            "-o",
            str(tmp_path / "out.npz"),
        ],
    )
    assert done.exit_code == 0, done.output
    arrays = np.load(tmp_path / "out.npz")
    for name in options["record"]:
        np.testing.assert_array_equal(arrays[name], made[name])


@pytest.mark.small
def test_constraint_rows_are_refused() -> None:
    with pytest.raises(UsageError, match="a rollout does not record 'delassus': take the sample as a run"):
        rolled(ROOT / "robots" / "quadruped.urdf", samples=2, ground=True, record=("+delassus",))


def test_recorded_sensors_with_delays_run_sample_by_sample(tmp_path: Path) -> None:
    """They measure in every step, recorded or not."""
    path = tmp_path / "felt.xml"
    path.write_text(
        MODELS["servos"].replace("</mujoco>", '<sensor><jointpos joint="a" delay=".01" nsample="9"/></sensor></mujoco>')
    )
    robot = artsim.load(path)
    plan = prepare(robot.articulation, RunConfig(record=("qpos", "sensors")))
    assert reason_against_packs(plan) == "recorded sensors that are delayed"
    assert reason_against_packs(prepare(robot.articulation, RunConfig(record=("qpos",)))) == ""
    made = rolled(robot, samples=2, record=("+sensors",))
    one = artsim.simulate(
        robot, steps=STEPS, every=EVERY, record=("sensors",), q0=made["qpos"][1, 0], v0=made["qvel"][1, 0]
    )
    np.testing.assert_array_equal(made["sensors"][1], one["sensors"])


# ------------------------------------------------------------------ packs that sleep


def test_a_pack_that_sleeps_takes_no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """All lanes fall asleep; from then on no velocities are found, until inputs change."""
    robot = artsim.load(ARM)
    zero = np.zeros((2, robot.nv))
    wake = Controls(np.array([0, 250]), zero, np.array([[0.0], [0.02]]) + zero, zero)
    gains: dict[str, Any] = {"stiffness": {"*": 2000.0}, "damping": {"*": 200.0}, "gravity": (0.0, 0.0, 0.0)}
    config = RunConfig(steps=300, dt=0.002, sleep_threshold=1e-3, sleep_time=0.02, record=(), **gains)
    plan, n = prepare(robot.articulation, config), pack_width()
    roller, found = PackRoller(plan, wake, Results.of(plan, n)), list[bool]()
    monkeypatch.setattr("artsim.sim.runs.sampled_runs._STEPS_PER_CALL", 1)

    def look() -> bool:
        found.append(bool(roller.pack.step.next.any()))
        roller.pack.step.next[...] = 0.0
        return False

    starts = Variations(np.linspace(0.0, 0.05, n)[:, None] + np.zeros((n, robot.nq)), np.full((n, robot.nv), 0.1))
    assert roller.run(starts, look)
    assert all(found[:10]) and not any(found[200:250]) and all(found[250:260])


SPHERES = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 .1"/>
<body pos="0 0 .11"><joint name="lift" type="slide" axis="0 0 1"/><joint name="tilt" axis="0 -1 0"/>
<geom size=".1" pos="-.1 0 0" mass="3"/><geom size=".1" pos=".3 0 0" mass="1"/></body></worldbody>
<sensor><contact num="2" data="found dist"/><contact num="2" data="force pos" reduce="maxforce"/>
<contact num="1" data="dist normal" reduce="mindist"/></sensor></mujoco>"""


@pytest.mark.small
@pytest.mark.parametrize("gap", [0.0, 0.003])
def test_contact_sensors_of_samples_are_those_of_their_runs(gap: float, tmp_path: Path) -> None:
    """Of spheres that land one after the other; with a gap they see contacts that packs do not list."""
    path = tmp_path / "model.xml"
    path.write_text(
        SPHERES.replace("<worldbody>", f'<default><geom condim="1" margin="{gap}" gap="{gap}"/></default><worldbody>')
    )
    robot, record = artsim.load(path), ("qpos", "sensors")
    made = artsim.rollout(robot, samples=9, steps=60, seed=3, spread=0.02, record=record)
    assert isinstance(made, MemoryRollout) and made.outcome.packed == (gap == 0.0)
    for k in range(9):
        truth = artsim.simulate(robot, steps=60, q0=made["qpos"][k, 0], record=record)
        np.testing.assert_allclose(made["sensors"][k], truth["sensors"], rtol=1e-8, atol=1e-8)
    assert len(np.unique(made["sensors"][:, :, 0])) > 1
