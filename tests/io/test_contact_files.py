"""Contacts in memory and in files: forces that add up, labels, blocks, killed and crafted files, runs again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

import artsim
from artsim.cli.replay import load_stored
from artsim.io.format import schema
from artsim.io.readers.recording import Recording, open_recording
from artsim.io.runs import run_layout
from artsim.io.runs.prepare import held_controls, prepare, prepared
from artsim.io.runs.replay import verify
from artsim.io.runs.run import run as run_into
from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import ModelError
from artsim.sim.runs import simulate as simulate_module
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.simulate import Simulation
from tests.simulation import ROBOTS, Array

SCENE = """<mujoco><option timestep="0.004"/><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <geom name="kerb" type="box" size=".1 1 .1" pos="1 0 .1"/>
  <body name="slab" pos="0 0 .1"><freejoint/><geom name="slab" type="box" size=".3 .2 .1" mass="4"/>
    <site pos="0 0 0"/></body>
  <body name="crate" pos=".05 .02 .301"><freejoint/><geom name="crate" type="box" size=".1 .1 .1" mass="2"/></body>
  <body name="ball" pos=".75 .3 .1"><freejoint/>
    <geom name="ball" size=".1" mass="1.5" condim="6" friction=".8 .02 .01"/></body>
</worldbody></mujoco>"""
MASS = {"slab": 4.0, "crate": 2.0, "ball": 1.5}
ROLLING = {"ball.vx": 2.0, "ball.vy": -0.5, "ball.wz": 8.0}
STEPS = 60
RECORD = ("qpos", "qvel", "qacc", "link_position", "incoming_wrench", "contact_wrench", "contacts")
G = np.array([0, 0, -9.81])


def scene_robot(folder: Path) -> artsim.Robot:
    path = folder / "scene.xml"
    path.write_text(SCENE)
    return artsim.load(path)


def named(robot: artsim.Robot, speeds: dict[str, float]) -> dict[str, float]:
    """`body.vx` by the dofs' names."""
    return {next(dof for dof in robot.dofs if dof.endswith(name)): value for name, value in speeds.items()}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stack that settles, a ball that spins, rolls and meets a kerb."""
    folder = tmp_path_factory.mktemp("contacts")
    robot = scene_robot(folder)
    artsim.simulate(robot, steps=STEPS, record=RECORD, v0=named(robot, ROLLING), output=folder / "run.h5").close()
    return folder / "run.h5"


@pytest.fixture
def recording(path: Path) -> Iterator[Recording]:
    with open_recording(path) as opened:
        yield opened


# --- forces ----------------------------------------------------------------------------------------------------------


def wrenches(recording: Recording) -> Array:
    """What the table says that contacts do to each link (rows, links, 6), at its frame's origin, world axes."""
    c, place = recording.contacts, recording["link_position"]
    links = [*recording.labels.link]
    total = np.zeros((recording.n_valid, len(links), 6))
    frame = np.stack([c["normal"], c["tangent"], np.cross(c["normal"], c["tangent"])], axis=1)
    force = np.einsum("nkx,nk->nx", frame, c["force"])
    torque = np.einsum("nkx,nk->nx", frame, c["torque"])
    row = np.repeat(np.arange(recording.n_valid), c["contact_count"])
    for side, sign in (("link_a", -1), ("link_b", 1)):
        for n, label in enumerate(c[side]):
            name = recording.labels.touching_link[label]
            if name in links:
                link = links.index(name)
                arm = c["point"][n] - place[row[n], link]
                total[row[n], link, :3] += sign * force[n]
                total[row[n], link, 3:] += sign * (torque[n] + np.cross(arm, force[n]))
    return total


def test_forces_in_the_file_move_the_bodies(recording: Recording) -> None:
    """m a = m g + Σ forces of every free body in every step, rolling, sliding, striking or at rest."""
    total = wrenches(recording)
    for name, mass in MASS.items():
        first = next(n for n, dof in enumerate(recording.labels.dof) if dof.endswith(f"{name}.vx"))
        acceleration = recording["qacc"][:, first : first + 3]
        link = recording.labels.link.index(name)
        assert np.abs(mass * (acceleration - G) - total[:, link, :3]).max() <= 1e-8
    assert np.abs(recording.contacts["torque"]).max() > 1e-3  # the ball's spin and rolling are braked


def test_wrenches_of_links_are_those_of_the_table(recording: Recording) -> None:
    assert np.abs(recording["contact_wrench"] - wrenches(recording)).max() <= 1e-9


def test_weights_rest_on_what_is_below(recording: Recording) -> None:
    """At the end the slab carries the crate and the floor both, within 1e-8 N."""
    c = recording.contacts
    last = c["step"] == STEPS - 1
    geoms = np.array(recording.labels.geom)
    lifted = {}
    for lower, upper in (("slab", "crate"), ("floor", "slab")):
        pair = {lower, upper}
        found = [n for n in np.flatnonzero(last) if {geoms[c["geom_a"][n]], geoms[c["geom_b"][n]]} == pair]
        assert len(found) == 4
        up = [np.sign(c["normal"][n, 2]) * c["force"][n, 0] for n in found]
        sign = 1 if geoms[c["geom_b"][found[0]]] == upper else -1
        lifted[upper] = sign * sum(up)
    assert lifted["crate"] == pytest.approx(2 * 9.81, abs=1e-8)
    assert lifted["slab"] == pytest.approx(6 * 9.81, abs=1e-8)


def test_frames_points_and_depths(recording: Recording) -> None:
    c = recording.contacts
    assert np.einsum("nk,nk->n", c["normal"], c["normal"]) == pytest.approx(1)
    assert np.einsum("nk,nk->n", c["tangent"], c["tangent"]) == pytest.approx(1)
    assert np.abs(np.einsum("nk,nk->n", c["normal"], c["tangent"])).max() <= 1e-12
    assert c["force"][:, 0].min() >= -1e-9  # nothing sticks
    assert np.all((c["depth"] >= 0) | (c["force"][:, 0] != 0))  # what is only near is left out
    floor = recording.labels.geom.index("floor")
    on_floor = (c["geom_a"] == floor) | (c["geom_b"] == floor)
    assert c["point"][on_floor, 2] == pytest.approx(-c["depth"][on_floor] / 2, abs=1e-12)  # half way
    assert "kerb" in {recording.labels.geom[n] for side in "ab" for n in c[f"geom_{side}"]}


# --- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compress", [None, "gzip"])
def test_xarray_opens_contacts_labelled_and_without_a_warning(tmp_path: Path, compress: str | None) -> None:
    robot = scene_robot(tmp_path)
    artsim.simulate(robot, steps=7, output=tmp_path / "run.h5", compress=compress).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with (
            xarray.open_dataset(tmp_path / "run.h5", group="contact", engine="h5netcdf") as found,
            xarray.open_dataset(tmp_path / "run.h5", group="final", engine="h5netcdf") as final,
            open_recording(tmp_path / "run.h5") as run,
        ):
            assert set(found.variables) == {
                *(schema.RAGGED["contact"].counted_by, *schema.CONTACT_TABLE, "time", "n_valid"),
                *("row", "link", "geom", "xyz", "direction"),
            }
            assert set(found.coords) == {"time", "row", "link", "geom", "xyz", "direction"}
            assert list(found.direction.values) == ["normal", "tangent_1", "tangent_2"]
            assert found.contact_count.dims == ("time",)
            assert found.force.dims == ("row", "direction")
            for name, variable in found.data_vars.items():
                assert variable.attrs["units"], name
                assert variable.attrs["long_name"], name
            assert int(found.contact_count.sum()) == found.sizes["row"] == int(found.n_valid) > 0
            for name, values in run.contacts.items():
                assert found[name].values.tobytes() == values.tobytes(), name
            pair = found.geom[found.geom_a].values[0], found.geom[found.geom_b].values[0]
            assert set(pair) == {"floor", "slab"}
            assert final.contact.dims == ("contact_row", "contact_entry")
            assert final.contact.sizes["contact_row"] == run.contacts["contact_count"][-1]


def test_the_ground_is_of_the_world(tmp_path: Path) -> None:
    """A URDF has no link for it: the label `world` comes after the links."""
    recording = artsim.simulate(ROBOTS / "finger.urdf", steps=300, dt=1 / 240, ground=True, record=("contacts",))
    assert recording.variables == ()
    c = recording.contacts
    assert recording.labels.touching_link == (*recording.robot.links, "world")
    assert c["step"].size > 0
    assert {recording.labels.touching_link[n] for n in (*c["link_a"], *c["link_b"])} == {"tip", "world"}
    assert {recording.labels.geom[n] for n in (*c["geom_a"], *c["geom_b"])} >= {"ground"}


# --- blocks ----------------------------------------------------------------------------------------------------------


def test_memory_and_file_hold_the_same(path: Path, recording: Recording, tmp_path: Path) -> None:
    robot = scene_robot(tmp_path)
    in_memory = artsim.simulate(robot, steps=STEPS, record=RECORD, v0=named(robot, ROLLING))
    assert in_memory.labels == recording.labels
    assert {*in_memory.contacts} == {*recording.contacts}
    for name, values in recording.contacts.items():
        assert in_memory.contacts[name].dtype == values.dtype
        assert in_memory.contacts[name].tobytes() == values.tobytes(), name


def step_by_step(robot: artsim.Robot, **settings: Any) -> dict[str, Array]:
    simulation = artsim.Simulation(robot, **settings)
    parts = [simulation.step(n) for n in (1, 9, STEPS - 10)]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name.removeprefix("contact/"): rows for name, rows in joined.items() if name.startswith("contact/")}


def by_controller(robot: artsim.Robot, **settings: Any) -> dict[str, Array]:
    found: dict[str, Array] = artsim.simulate(
        robot, steps=STEPS, controller=lambda t, qpos, qvel: np.zeros(robot.nv), **settings
    ).contacts
    return found


@pytest.mark.parametrize("run", [step_by_step, by_controller])
def test_however_the_steps_are_taken(
    run: Callable[..., dict[str, Array]], recording: Recording, tmp_path: Path
) -> None:
    robot = scene_robot(tmp_path)
    found = run(robot, record=("contacts",), v0=named(robot, ROLLING))
    assert {*found} == {*recording.contacts}
    assert [name for name, rows in found.items() if rows.tobytes() != recording.contacts[name].tobytes()] == []


def test_every_other_step(recording: Recording, tmp_path: Path) -> None:
    robot = scene_robot(tmp_path)
    found = artsim.simulate(robot, steps=STEPS, every=7, record=("qpos", "contacts"), v0=named(robot, ROLLING)).contacts
    all_of_them = recording.contacts
    kept = all_of_them["step"] % 7 == 0
    assert found["contact_count"].tobytes() == all_of_them["contact_count"][::7].tobytes()
    for name in schema.CONTACT_TABLE:
        assert found[name].tobytes() == all_of_them[name][kept].tobytes(), name


def test_rows_can_be_read_in_parts(recording: Recording) -> None:
    parts = [recording.read_contacts(start, start + 11) for start in range(0, STEPS, 11)]
    for name, values in recording.contacts.items():
        assert np.concatenate([part[name] for part in parts]).tobytes() == values.tobytes(), name


def test_nothing_is_recorded_where_nothing_can_touch(tmp_path: Path) -> None:
    robot = artsim.load(ROBOTS / "finger.urdf")
    plan = prepared(robot, "none", None, {"record": ("qpos", "contacts", "contact_wrench", "tau_contact")})[0]
    assert plan.config.record == ("qpos",)
    assert [note for note in plan.notes if "not recorded" in note] == [
        "contact_wrench is not recorded: nothing can touch anything"
    ]
    with artsim.simulate(robot, steps=3, output=tmp_path / "run.h5") as run:
        assert run.contacts == {}
    with h5py.File(tmp_path / "run.h5") as file:
        assert "contact" not in file
        assert "contact" not in file["final"]


# --- room ------------------------------------------------------------------------------------------------------------


def simulation_in(folder: Path, **settings: Any) -> Simulation:
    robot = scene_robot(folder)
    plan = prepared(robot, "none", None, {"steps": STEPS, "record": RECORD, "v0": named(robot, ROLLING)} | settings)
    return simulation_of(plan[0], held_controls(plan[0]))


def rows_of(simulation: Simulation, steps: int) -> dict[str, Array]:
    parts = [{k: v.copy() for k, v in (block.rows | block.tables).items()} for block in simulation.blocks(steps)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_room_grows_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same bytes with room for one contact at first; restored in a run that has not grown yet, too."""
    wide = rows_of(simulation_in(tmp_path), STEPS)
    monkeypatch.setattr(simulate_module, "first_room", lambda touching: 1)
    narrow = simulation_in(tmp_path)
    rows = rows_of(narrow, 20)
    assert narrow.room > 1
    snapshot = narrow.save()
    assert len(snapshot["contact"]) > 1
    fresh = simulation_in(tmp_path)
    assert fresh.room == 1
    fresh.restore(snapshot)
    for name, rest in rows_of(narrow, STEPS - 20).items():
        assert np.concatenate([rows[name], rest]).tobytes() == wide[name].tobytes(), name
    again = rows_of(fresh, STEPS - 20)
    for name, whole in wide.items():
        assert again[name].tobytes() == whole[len(whole) - len(again[name]) :].tobytes(), name
    for name, values in narrow.final.items():
        assert fresh.final[name].tobytes() == values.tobytes(), name
    most, deepest = narrow.contact_extremes
    assert (most, deepest) == fresh.contact_extremes
    assert most == wide["contact_count"].max()
    assert deepest >= wide["contact_depth"].max()  # or at the end, after the last row


# --- files that are not whole ----------------------------------------------------------------------------------------


def test_a_killed_run_keeps_its_contacts(
    monkeypatch: pytest.MonkeyPatch, recording: Recording, path: Path, tmp_path: Path
) -> None:
    """The file as it is between two blocks is what a killed writer leaves; a reader may follow meanwhile."""
    monkeypatch.setattr(run_layout, "CHUNK_BYTES", 2048)
    simulated = simulation_in(tmp_path).plan
    followed: list[int] = []

    def look(simulation: Simulation) -> bool:
        if simulation.step < STEPS // 2 or followed:
            return False
        shutil.copy(tmp_path / "whole.h5", tmp_path / "killed.h5")
        told = subprocess.run(
            [sys.executable, "-c", FOLLOW, tmp_path / "whole.h5"], capture_output=True, text=True, check=True
        )
        followed.extend(json.loads(told.stdout))
        return False

    run_into(simulated, output=tmp_path / "whole.h5", progress=look)
    with open_recording(tmp_path / "killed.h5") as killed:
        assert killed.state == "killed"
        assert 0 < killed.n_valid < STEPS
        want = recording.read_contacts(0, killed.n_valid)
        assert followed == [killed.n_valid, len(want["step"])]
        for name, values in killed.contacts.items():
            assert values.tobytes() == want[name].tobytes(), name
    assert verify(tmp_path / "killed.h5", load_stored) is None
    assert verify(tmp_path / "whole.h5", load_stored) is None


FOLLOW = """
import sys
from artsim.io.readers.recording import open_recording
with open_recording(sys.argv[1]) as run:
    assert run.state == "running"
    print([run.n_valid, len(run.contacts["step"])])
"""


def crafted(path: Path, folder: Path, change: Callable[[h5py.File], None]) -> Path:
    copy = folder / "crafted.h5"
    shutil.copy(path, copy)
    with h5py.File(copy, "r+") as file:
        change(file)
    return copy


def huge_count(file: h5py.File) -> None:
    file["contact/contact_count"][3] = 2**40


def negative_count(file: h5py.File) -> None:
    file["contact/contact_count"][3] = -1


def unknown_link(file: h5py.File) -> None:
    file["contact/link_b"][5] = 77


def negative_geom(file: h5py.File) -> None:
    file["contact/geom_a"][5] = -2


def wrong_shape(file: h5py.File) -> None:
    del file["contact/point"]
    file["contact"].create_dataset("point", data=np.zeros((4, 2)))


@pytest.mark.parametrize("change", [huge_count, negative_count, unknown_link, negative_geom, wrong_shape])
def test_crafted_contacts_are_refused(path: Path, tmp_path: Path, change: Callable[[h5py.File], None]) -> None:
    copy = crafted(path, tmp_path, change)
    with pytest.raises(ModelError, match="/contact/"), open_recording(copy) as run:
        _ = run.contacts


# --- again -----------------------------------------------------------------------------------------------------------

TREE = """<robot name="flail">
  <link name="base">
    <inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size=".2 .2 .2"/></geometry></collision></link>
  {}
</robot>"""
ARM = """<link name="{0}"><inertial><origin xyz=".15 0 0"/><mass value=".5"/>
    <inertia ixx=".001" iyy=".003" izz=".003" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz=".15 0 0"/><geometry><box size=".3 .05 .05"/></geometry></collision></link>
  <joint name="{0}" type="revolute"><parent link="{1}"/><child link="{0}"/><origin xyz="{2} 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="10" velocity="10"/></joint>"""
FLAIL = TREE.format(ARM.format("a", "base", ".12") + ARM.format("b", "a", ".31") + ARM.format("c", "b", ".31"))
VARIANTS: dict[str, dict[str, Any]] = {
    "ground": {"ground": True},
    "self": {"ground": True, "self_collide": True, "restitution": 0.4},
    "pgs": {"ground": True, "solver": "pgs", "every": 3},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_replay_reproduces_contacts(variant: str, tmp_path: Path) -> None:
    articulation = load_text(FLAIL, name="flail.urdf", base="floating")
    config = RunConfig(
        steps=90, dt=1 / 240, base="floating", q0={"b": -2.0, "c": -2.9, "root.z": 0.4}, **VARIANTS[variant]
    )
    output = tmp_path / "run.h5"
    run_into(prepare(articulation, config), output=output)
    with open_recording(output) as run:
        c = run.contacts
        assert len(c["step"]) > 20
        own = (c["link_a"] != run.labels.link.index("base")) & (c["link_b"] != len(run.labels.link))
        assert variant != "self" or own.any()
    assert verify(output, load_stored) is None


def shallower(file: h5py.File) -> None:
    file["contact/depth"][40] += 1e-15


def lost(file: h5py.File) -> None:
    file["contact/contact_count"][12] -= 1


def forgotten(file: h5py.File) -> None:
    file["final/contact"][0, 3] += 1e-15


@pytest.mark.parametrize(
    ("change", "dataset"),
    [(shallower, "contact/depth"), (lost, "contact/contact_count"), (forgotten, "final/contact")],
)
def test_replay_finds_a_changed_contact(
    path: Path, recording: Recording, tmp_path: Path, change: Callable[[h5py.File], None], dataset: str
) -> None:
    difference = verify(crafted(path, tmp_path, change), load_stored)
    assert difference is not None
    assert difference.dataset == dataset
    if dataset == "contact/depth":
        c = recording.contacts
        assert difference.step == c["step"][40]
        assert difference.name == ", ".join(recording.labels.geom[c[f"geom_{side}"][40]] for side in "ab")
    if dataset == "contact/contact_count":
        assert difference.step == 12


MARGIN = """<mujoco><worldbody><geom type="plane" size="0 0 1" margin=".003"/>
  <body pos="0 0 {}"><freejoint/><geom size=".1" margin=".002"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("gap", [0.004, -0.001])
def test_depths_are_of_the_surfaces_whatever_the_margin(gap: float) -> None:
    """A contact is held by its margins' sum, 5 mm; its depth in files and summaries is that of the shapes."""
    plan = prepare(load_text(MARGIN.format(0.1 + gap), name="scene.xml"), RunConfig(steps=1))
    simulation = simulation_of(plan, held_controls(plan))
    (block,) = (block.tables["contact_depth"].tolist() for block in simulation.blocks())
    assert block == pytest.approx([-gap], abs=1e-15)
    assert simulation.contact_extremes == (1, max(block[0], 0.0))


# --- what commands tell ----------------------------------------------------------------------------------------------


def artsim_cli(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "artsim", *map(str, words)], capture_output=True, text=True, check=True
    )


def test_summary_and_info(tmp_path: Path) -> None:
    scene_robot(tmp_path)
    output = tmp_path / "run.h5"
    told = artsim_cli("run", tmp_path / "scene.xml", "--steps", 20, "--record", "contacts", "-o", output).stderr
    with open_recording(output) as run:
        c = run.contacts
        deep = c["depth"].max() if c["depth"].max() > 1e-12 else 0.0  # less is rounding
        line = f"contacts: {c['contact_count'].max()} at once, at most {deep:.3g} m deep\n"
        assert run.variables == ()
        count = len(c["step"])
    assert line in told
    assert "enlarged" not in told
    assert f"contact/force          row {count}, direction 3" in artsim_cli("info", output).stdout
    assert artsim_cli("replay", output, "--verify").stdout.endswith("every byte equal\n")


def test_check_counts_what_may_touch(tmp_path: Path) -> None:
    (tmp_path / "flail.urdf").write_text(FLAIL)
    scene_robot(tmp_path)
    assert (
        "contact: 4 box; 0 pairs may touch (3 with --self-collide), 3 the ground (--ground)\n"
        in artsim_cli("check", tmp_path / "flail.urdf").stdout
    )
    told = json.loads(artsim_cli("check", tmp_path / "scene.xml", "--json").stdout)["contact"]
    assert told["geoms"] == {"plane": 1, "box": 3, "sphere": 1}
    assert told["pairs"] == told["pairs_with_self_collide"] == 9
    assert told["touch_ground"] == 3
