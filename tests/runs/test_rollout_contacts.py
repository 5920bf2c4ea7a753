"""Contacts that rollouts record: those of each sample as a run, whose wrenches add up; in files, shards and exports."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.io.format import schema
from artsim.io.readers.differences import Difference
from artsim.io.readers.recording import Recording
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.rollouts.draws import RolloutConfig
from artsim.io.rollouts.roll import roll
from artsim.io.rollouts.rollout import MemoryRollout, verify_rollout
from artsim.io.rollouts.samples import opened_runs
from artsim.io.runs.prepare import prepare
from artsim.loaders.stored import load_stored
from artsim.sim.foundation.errors import ModelError
from artsim.sim.runs.configuration import RunConfig
from tests.conftest import ROOT
from tests.contact.robot_contacts import quadruped, quadruped_options

QUADRUPED = ROOT / "robots" / "quadruped.urdf"
STEPS, EVERY, SAMPLES = 75, 3, 11
START: dict[str, Any] = {**quadruped_options(), "steps": STEPS, "every": EVERY}
SPREAD = {"root.z": (-0.05, 0.1), "*knee*": 0.1}
OPTIONS: dict[str, Any] = {**START, "samples": SAMPLES, "seed": 3, "spread": SPREAD, "velocity_spread": 0.2}
FREE: dict[str, Any] = {"ground": True, "q0": {"root.z": 0.4}, "steps": STEPS, "every": EVERY, "seed": 3}
FREE |= {"samples": SAMPLES, "spread": {"root.z": (-0.05, 0.02)}}
WORDS = (QUADRUPED, "--base", "floating", "--samples", SAMPLES, "--steps", STEPS, "--every", EVERY, "--seed", 3)
WORDS = (*WORDS, "--ground", "--q0", "root.z=0.4", "--spread", "root.z=-0.05:0.02")
RECORD = ("--record", "+contacts")
BALLS = """<mujoco><option timestep="0.004"/><worldbody><geom type="plane" size="1 1 1"/>
{}</worldbody></mujoco>"""
BALL = '<body pos="{} 0 0.0999"><freejoint/><geom size="0.1"/></body>'


def rolled(robot: Any, **options: Any) -> MemoryRollout:
    made = artsim.rollout(robot, **options)
    assert isinstance(made, MemoryRollout)
    return made


def command(*words: object) -> Any:
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def verified(path: Path) -> Difference | None:
    return verify_rollout(path, load_stored, threads=2)


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert values.tobytes() == other[name].tobytes(), name


def assert_contacts_of_run(made: MemoryRollout, sample: int, run: Any, most: float = 1e-9) -> None:
    """The same contacts, their numbers to rounding."""
    own = made.read_contacts(sample, sample + 1)
    assert (own.pop("sample") == sample).all()
    count = own.pop("contact_count")[0]
    np.testing.assert_array_equal(count, run.contacts["contact_count"])
    for name, values in own.items():
        scale = max(1.0, np.abs(run.contacts[name]).max(initial=0.0))
        np.testing.assert_allclose(values, run.contacts[name], rtol=0, atol=most * scale, err_msg=name)


def test_contacts_are_those_of_each_sample_as_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than wait at once, two packs, friction and ground of each sample's own."""
    monkeypatch.setattr("artsim.sim.runs.sampled_runs._SLOT_BYTES", 1 << 19)  # 3 rows
    robot, own = quadruped(), {"friction": (0.3, 1.0), "ground_height": (0.0, 0.02)}
    made = rolled(robot, **OPTIONS, record=("+contacts",), randomise=own)
    found = made.contacts
    assert len(found["sample"]) > 10 * SAMPLES and (np.diff(found["sample"]) >= 0).all()
    assert found["contact_count"].sum() == len(found["sample"]) and len(set(found["contact_count"].ravel())) > 3
    made = rolled(robot, **OPTIONS, record=("+contacts",))
    for sample in (0, 5, 10):
        start = {"q0": made["qpos"][sample, 0], "v0": made["qvel"][sample, 0]}
        run = artsim.simulate(robot, **{**START, **start}, record=("contacts",))
        assert_contacts_of_run(made, sample, run)


@pytest.mark.parametrize("solver", ["newton", "pgs"])
def test_contact_wrench_is_the_sum_of_contacts(solver: str) -> None:
    """Of packs, and of samples that run one after the other: about the links' origins, found by numpy."""
    record = ("contacts", "contact_wrench", "link_position")
    made = rolled(quadruped(), **{**OPTIONS, "samples": 3}, record=record, solver=solver)
    assert made.outcome.packed == (solver == "newton")
    found, links = made.contacts, made.labels.touching_link
    summed = np.zeros((*made["contact_wrench"].shape[:2], len(links), 6))
    across = np.cross(found["normal"], found["tangent"])
    axes = np.stack([found["normal"], found["tangent"], across], axis=1)
    force, torque = (np.einsum("ki,kij->kj", found[name], axes) for name in ("force", "torque"))
    row = found["step"] // EVERY
    for side, sign in (("link_a", -1.0), ("link_b", 1.0)):
        link = found[side]
        origins = np.zeros((len(link), 3))
        own = link < made["link_position"].shape[2]
        origins[own] = made["link_position"][found["sample"][own], row[own], link[own]]
        turned = torque + np.cross(found["point"] - origins, force)
        np.add.at(summed, (found["sample"], row, link), sign * np.concatenate([force, turned], axis=1))
    of_links = summed[:, :, : len(made.labels.link)]
    assert np.abs(of_links).max() > 10.0
    np.testing.assert_allclose(of_links, made["contact_wrench"], rtol=0, atol=1e-9 * np.abs(of_links).max())


def test_contacts_grow_beyond_the_room_for_them(tmp_path: Path) -> None:
    """More contacts than arrays have room for at first: none is lost, none is counted twice."""
    path = tmp_path / "balls.xml"
    path.write_text(BALLS.format("".join(BALL.format(0.3 * k) for k in range(9))))
    made = rolled(path, samples=9, steps=40, record=("contacts",), velocity_spread=0.01, seed=1)
    assert made.outcome.packed
    found = made.contacts
    assert (found["contact_count"] == 9).all()
    shares = found["force"][:, 0].reshape(9, 40, 9)
    weight = 4 / 3 * np.pi * 0.1**3 * 1000 * 9.81
    np.testing.assert_allclose(shares[:, -1], weight, rtol=1e-3)


def test_samples_that_end_keep_the_contacts_of_their_rows() -> None:
    """Where --until ends them, rows are those of the steps before."""
    record = ("+contacts", "contact_wrench")
    robot = quadruped()
    whole = rolled(robot, **OPTIONS, record=record)
    made = rolled(robot, **OPTIONS, record=record, until="time > 0.1 or root.z < 0.3", threads=2)
    valid, rows = made["n_valid"], len(made.time)
    assert (made["status"] == 4).all() and len({*valid.tolist()}) > 1
    for sample, count in enumerate(valid.tolist()):
        assert count < rows
        one, other = whole.read_contacts(sample, sample + 1), made.read_contacts(sample, sample + 1)
        np.testing.assert_array_equal(
            other["contact_count"][0], [*one["contact_count"][0, :count], *[-1] * (rows - count)]
        )
        kept = one["step"] < count * EVERY
        for name in schema.SAMPLE_CONTACT_TABLE:
            assert other[name].tobytes() == one[name][kept].tobytes(), name
        np.testing.assert_array_equal(made["contact_wrench"][sample, :count], whole["contact_wrench"][sample, :count])


def test_rows_after_an_early_stop_have_no_contacts() -> None:
    """A sample whose velocities overflow; a roller that runs again keeps nothing of it."""
    robot = quadruped()
    torque = np.zeros((SAMPLES, STEPS, robot.nv))
    torque[4, 60:] = 1e150
    plain = rolled(robot, **OPTIONS, record=("+contacts",))
    made = rolled(robot, **OPTIONS, record=("+contacts",), torque=torque)
    assert made["status"].tolist() == [1] * 4 + [2] + [1] * 6
    assert made["n_valid"][4] <= 21 and (made["contact_count"][4, made["n_valid"][4] :] == -1).all()
    one = made.read_contacts(4, 5)
    assert len(one["step"]) == np.maximum(one["contact_count"], 0).sum() and one["step"].max() <= 60
    assert_same(rolled(robot, **OPTIONS, record=("+contacts",)).contacts, plain.contacts)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rollout with contacts."""
    path = tmp_path_factory.mktemp("contacts") / "rollout.h5"
    command("rollout", *WORDS, *RECORD, "-o", path, "--threads", 1)
    return path


def test_files_hold_the_contacts_of_memory_with_any_threads_and_shards(stored: Path, tmp_path: Path) -> None:
    memory = rolled(artsim.load(QUADRUPED, base="floating"), **FREE, record=("+contacts",))
    whole, many = memory.contacts, tmp_path / "many.h5"
    shards = ("--shards", 3, "-o", many)
    command("rollout", *WORDS, *RECORD, *shards)
    two = tmp_path / "two.h5"
    command("rollout", *WORDS, *RECORD, "-o", two, "--threads", 2)
    for path in (stored, many, two):
        with artsim.open(path) as found:
            assert isinstance(found, RolloutRecording)
            assert_same(found.contacts, whole)
            assert_same(found.read_contacts(4, 9), memory.read_contacts(4, 9))
            assert found.labels.geom == memory.labels.geom
            assert found.summary()["variables"]["contact/point"]["shape"] == [len(whole["sample"]), 3]
    (tmp_path / "many.shard-0002-of-0003.h5").unlink()
    command("rollout", *WORDS, *RECORD, *shards, "--resume")
    with artsim.open(many) as found:
        assert isinstance(found, RolloutRecording)
        assert_same(found.contacts, whole)
    assert verified(many) is None and verified(tmp_path / "many.shard-0002-of-0003.h5") is None
    command("rollout", *WORDS, *RECORD, "-o", tmp_path / "out.npz")
    arrays = np.load(tmp_path / "out.npz")
    for name in schema.SAMPLE_CONTACT_TABLE:
        np.testing.assert_array_equal(arrays[f"contact/{name}"], whole[name])
    assert tuple(arrays["contact/geom"]) == memory.labels.geom


def test_xarray_opens_the_contacts_of_a_rollout(stored: Path) -> None:
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(stored, group="contact", engine="h5netcdf") as found, artsim.open(stored) as rollout:
        assert isinstance(rollout, RolloutRecording)
        assert found.force.dims == ("row", "direction") and list(found.geom.values) == list(rollout.labels.geom)
        for name in schema.SAMPLE_CONTACT_TABLE:
            assert found[name].values.tobytes() == rollout.contacts[name].tobytes(), name
            assert found[name].attrs["units"] and found[name].attrs["long_name"]


def test_replay_finds_a_contact_that_was_changed(stored: Path, tmp_path: Path) -> None:
    """And what is damaged is refused with its place."""
    assert verified(stored) is None
    path = tmp_path / "changed.h5"
    path.write_bytes(stored.read_bytes())
    with h5py.File(path, "r+") as file:
        row = int(np.flatnonzero(file["contact/sample"][:] == 7)[2])
        file["contact/force"][row, 0] += 1e-9
    found = verified(path)
    assert found is not None and (found.dataset, found.step) == ("contact/force", 7)
    with h5py.File(path, "r+") as file:
        file["contact/link_a"][row] = 1000
    with artsim.open(path) as output, pytest.raises(ModelError, match="/contact/link_a has numbers beyond its"):
        assert isinstance(output, RolloutRecording)
        output.read_contacts(7, 8)
    with h5py.File(path, "r+") as file:
        file["rollout/contact_count"][3, 1] += 1
    with artsim.open(path) as output, pytest.raises(ModelError, match="contact_count does not fit the contacts"):
        assert isinstance(output, RolloutRecording)
        output.read_contacts(0, 1)


def test_an_index_that_maps_other_contacts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.h5"
    command("rollout", *WORDS, *RECORD, "--shards", 2, "-o", path)
    with h5py.File(path, "r+") as file:
        file["shards/contacts"][...] = file["shards/contacts"][...] + np.array([1, -1])
    with pytest.raises(ModelError, match="is a virtual dataset, and not of the shards"):
        artsim.open(path)


def test_a_sample_is_a_run_with_its_contacts(stored: Path, tmp_path: Path) -> None:
    """For replay and exports: a line for each contact."""
    with artsim.open(stored) as rollout, opened_runs([stored], [6], load_stored) as (run,):
        assert isinstance(rollout, RolloutRecording) and isinstance(run, Recording)
        own = rollout.read_contacts(6, 7)
        np.testing.assert_array_equal(run.contacts["contact_count"], own["contact_count"][0])
        for name in schema.CONTACT_TABLE:
            assert run.contacts[name].tobytes() == own[name].tobytes(), name
    command("export", stored, "--sample", 6, "--contacts-csv", tmp_path / "contacts.csv")
    with (tmp_path / "contacts.csv").open() as lines:
        table = list(csv.DictReader(lines))
    assert len(table) == len(own["step"])
    np.testing.assert_array_equal([float(line["point.z"]) for line in table], own["point"][:, 2])


def test_samples_that_were_not_simulated_have_no_contacts(tmp_path: Path) -> None:
    """An interrupted rollout keeps those that are done."""
    robot, record = artsim.load(QUADRUPED, base="floating"), ("qpos", "qvel", "contacts")
    config = RunConfig(
        base="floating", steps=STEPS, every=EVERY, ground=True, seed=3, q0={"root.z": 0.4}, record=record
    )
    plan, path, done = prepare(robot.articulation, config), tmp_path / "half.h5", list[int]()
    many = RolloutConfig(samples=4000, spread=FREE["spread"])
    stopped = roll(plan, many, output=path, threads=1, progress=done.append, stop=lambda: bool(done and done[-1] >= 64))
    assert not stopped.complete
    whole = rolled(robot, **FREE, record=("+contacts",))
    with artsim.open(path) as found:
        assert isinstance(found, RolloutRecording)
        assert found.missing and (found["contact_count"][-1] == -1).all()
        assert not len(found.read_contacts(3999)["sample"])
        assert_same(found.read_contacts(0, SAMPLES), whole.contacts)
    assert verified(path) is None
