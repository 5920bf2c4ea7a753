"""Flexcomps made of points and edges, against MuJoCo: bodies, masses, edges and their lengths."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh

import artsim
from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Articulation
from artsim.sim.quantities.robot import Robot
from tests.loaders.test_mjcf import BOX, against, assert_refused, read, world

GRID = 'type="grid" spacing=".1 .2 .3" radius=".01"'
FLEXES = {
    "line": f'<flexcomp name="f" {GRID} dim="1" count="4 1 1" mass="2" inertiabox=".1">{{}}</flexcomp>',
    "grid": f'<flexcomp name="f" {GRID} dim="2" count="3 4 1" pos="1 2 3" euler="9 8 7">{{}}<pin id="0 3"/></flexcomp>',
    "block": f'<flexcomp name="f" {GRID} dim="3" count="3 2 4">{{}}<pin range="1 4"/></flexcomp>',
    "circle": '<flexcomp name="f" type="circle" count="9 1 1" spacing=".1 1 1" dim="1">{}</flexcomp>',
    "disc": '<flexcomp name="f" type="disc" count="5 5 1" spacing=".1 .2 .1">{}</flexcomp>',
    "square": '<flexcomp name="f" type="square" count="3 3 1" spacing=".1 .1 .1">{}</flexcomp>',
    "direct": '<flexcomp name="f" type="direct" dim="1" point="0 0 0 1 0 0 5 5 5 1 1 0" element="0 1 1 3" '
    'scale="1 2 3">{}</flexcomp>',
    "box": f'<flexcomp name="f" {GRID.replace("grid", "box")} dim="3" count="3 4 5">{{}}</flexcomp>',
    "tray": f'<flexcomp name="f" {GRID.replace("grid", "box")} dim="2" count="3 4 5">{{}}</flexcomp>',
    "cylinder": f'<flexcomp name="f" {GRID.replace("grid", "cylinder")} dim="3" count="4 5 2">{{}}</flexcomp>',
    "can": f'<flexcomp name="f" {GRID.replace("grid", "cylinder")} dim="2" count="3 3 3">{{}}</flexcomp>',
    "ellipsoid": f'<flexcomp name="f" {GRID.replace("grid", "ellipsoid")} dim="3" count="3 3 4">{{}}</flexcomp>',
    "balloon": f'<flexcomp name="f" {GRID.replace("grid", "ellipsoid")} dim="3" dof="radial" count="3 3 4">'
    '{}<pin id="0"/></flexcomp>',
    "in the plane": f'<flexcomp name="f" {GRID} dim="2" dof="2d" count="3 3 1">{{}}</flexcomp>',
}
BODY = '<body name="b" pos="0 0 1" euler="30 0 0">{}</body>'


def read_both(flex: str) -> tuple[Articulation, mujoco.MjModel]:
    """A flex on a body, which falls where points are pinned to it: MuJoCo refuses that otherwise."""
    flex += "<freejoint/>" if "<pin" in flex else ""
    text = world(BODY.format(BOX + flex), '<default><joint armature=".2"/></default>')
    return read(text), mujoco.MjModel.from_xml_string(text)


@pytest.mark.parametrize("name", FLEXES)
def test_points_are_bodies(name: str) -> None:
    articulation, model = read_both(FLEXES[name].format(""))
    against(Robot.of(articulation), model)
    assert [link.name for link in articulation.links] == [model.body(i).name for i in range(model.nbody)]
    assert articulation.tendons == ()


@pytest.mark.parametrize("name", FLEXES)
def test_edges_are_tendons(name: str) -> None:
    stiffness = 3 if 'dim="1"' in FLEXES[name] else 0
    articulation, model = read_both(FLEXES[name].format(f'<edge stiffness="{stiffness}" damping=".5"/>'))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    robot = Robot.of(articulation)
    positions = robot.compute(robot.reference, quantities=["link_position"])["link_position"]
    links = {link: positions[index] for index, link in enumerate(robot.links)}
    sites = {site.name: site for site in articulation.sites}
    world_from_body = data.xmat[1].reshape(3, 3)

    def place(name: str) -> np.ndarray:
        site = sites[name]
        return np.asarray(links[site.link] + world_from_body @ np.array(site.pose.position))

    lengths = []
    for tendon in articulation.tendons:
        assert (tendon.stiffness, tendon.damping) == (stiffness, 0.5)
        lengths.append(np.linalg.norm(place(tendon.path[0].name) - place(tendon.path[1].name)))
    wanted = model.flexedge_length0[model.flexedge_rigid == 0]
    assert np.allclose(np.sort(lengths), np.sort(wanted))


def test_edges_whose_length_is_held() -> None:
    text = world(FLEXES["grid"].format('<edge equality="true" solref=".1 .2"/>'))
    model = mujoco.MjModel.from_xml_string(text)
    articulation = read(text, ignore_unsupported=True)
    assert len(articulation.tendons) == np.count_nonzero(model.flexedge_rigid == 0)


def test_a_rigid_flex_adds_nothing() -> None:
    flex = '<flexcomp name="f" type="mesh" file="no.obj" rigid="true"/>'
    assert [link.name for link in read(world(BODY.format(BOX + flex))).links] == ["world", "b"]


UNSUPPORTED = {
    '<flexcomp name="f" type="grid"><elasticity young="1"/></flexcomp>': "elasticity is not supported yet",
    '<flexcomp name="f" type="grid" dof="trilinear"/>': "dof 'trilinear' is not supported yet",
    '<flexcomp name="f" type="box" dim="1"/>': "type 'box' of dim 1 is not supported yet",
    '<flexcomp name="f" type="gmsh" file="x.msh"><elasticity young="1"/></flexcomp>': "elasticity is not supported yet",
    '<flexcomp name="f" type="grid"><edge equality="strain"/></flexcomp>': "edge equality 'strain' is not supported",
}


@pytest.mark.parametrize("flex", UNSUPPORTED)
def test_what_bends_is_refused_by_name(flex: str) -> None:
    assert_refused(world(flex), "flexcomp 'f'", UNSUPPORTED[flex])
    notes = [note.message for note in read(world(flex), ignore_unsupported=True).notes]
    assert len([note for note in notes if "touch nothing yet" not in note]) == 1


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("suffix", ["obj", "stl"])
def test_points_of_a_mesh_file(tmp_path: Path, dim: int, suffix: str) -> None:
    """Names, places and masses of MuJoCo's bodies; the edges of the surface, and those to `origin`."""
    mesh = trimesh.creation.icosphere(1, 0.3)
    mesh.export(tmp_path / f"ball.{suffix}")
    flex = (
        f'<flexcomp name="f" type="mesh" file="ball.{suffix}" dim="{dim}" scale="1 2 1.5" radius=".001" '
        'origin="0 0 .1" mass="3"><edge damping="1"/></flexcomp>'
    )
    path = tmp_path / "m.xml"
    path.write_text(world(BODY.format(BOX + flex)))
    model, articulation = mujoco.MjModel.from_xml_path(str(path)), load_articulation(path)
    against(Robot.of(articulation), model)
    assert [link.name for link in articulation.links] == [model.body(i).name for i in range(model.nbody)]
    assert len(articulation.tendons) == np.count_nonzero(model.flexedge_rigid == 0)
    assert load_articulation(path, ignore_unsupported=True).text == articulation.text
    assert "ball" not in articulation.text


WRONG = {
    '<flexcomp name="f" type="mesh"/>': "has no 'file' attribute",
    '<flexcomp name="f" type="box" count="1 3 3" dim="3"/>': "count is too small",
    '<flexcomp name="f" type="grid" count="1000 1000 1000" dim="3"/>': "beyond the limit",
    '<flexcomp name="f" type="grid" count="0 1 1"/>': "must be positive",
    '<flexcomp name="f" type="grid" count="1 1 1"/>': "makes no elements",
    '<flexcomp name="f" type="grid" dim="4"/>': "dim is 4",
    '<flexcomp name="f" type="direct" dim="1" point="0 0 0" element="0 7"/>': "a point that does not exist",
    '<flexcomp name="f" type="direct" dim="1" point="0 0" element="0 1"/>': "holds 2 numbers",
    '<flexcomp name="f" type="direct" dim="1" point="0 0 0 1 1 1" element="0 0"/>': "an element has a point twice",
    '<flexcomp name="f" type="grid" count="3 3 1"><pin id="99"/></flexcomp>': "a point that does not exist",
    '<flexcomp type="grid" count="3 3 1"/>': "has no 'name'",
    '<flexcomp name="f" type="gmsh"/>': "has no 'file' attribute",
    '<body><joint/><flexcomp name="f" type="grid" count="3 3 1"/></body>': "its body moves",
}


@pytest.mark.parametrize("flex", WRONG)
def test_refused(flex: str) -> None:
    assert_refused(world(flex), WRONG[flex])


def test_edges_pull_as_in_mujoco(tmp_path: Path) -> None:
    """Accelerations of a hanging rope with springs and dampers along its edges, away from rest."""
    flex = (
        f'<flexcomp name="f" {GRID} dim="1" count="5 1 1"><edge stiffness="30" damping=".5"/><pin id="0"/></flexcomp>'
    )
    text = world(flex)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    data.qpos[:], data.qvel[:] = rng.normal(size=(2, model.nv)) * 0.05
    mujoco.mj_forward(model, data)
    (tmp_path / "rope.xml").write_text(text)
    robot = artsim.load(tmp_path / "rope.xml")
    run = artsim.simulate(robot, steps=1, integrator="rk4", q0=data.qpos.copy(), v0=data.qvel.copy())
    np.testing.assert_allclose(run["qacc"][0], data.qacc, rtol=1e-9, atol=1e-9)


def test_contact_of_its_elements_is_said_to_be_missing() -> None:
    quiet = '<contact contype="0" conaffinity="0"/>'
    for name in ("line", "grid"):
        loud, still = (read_both(FLEXES[name].format(more))[0] for more in ("", quiet))
        assert any("touch nothing yet" in str(note) for note in loud.notes)
        assert not any("touch nothing yet" in str(note) for note in still.notes)
