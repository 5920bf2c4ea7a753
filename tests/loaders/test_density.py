"""--density: links without mass weigh what their shapes do, and outputs keep it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

from artsim.cli.main import cli
from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation, Geom, Inertial
from artsim.sim.foundation.errors import ModelError, UsageError
from artsim.sim.foundation.rotations import Real, rotation_matrix, symmetric
from tests.conftest import corpus_entries

LIMIT = '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="2"/>'


def urdf(*shapes: str, role: str = "collision") -> str:
    """Link a is fixed, b moves and has these shapes."""
    geoms = "".join(f"<{role}>{shape}</{role}>" for shape in shapes)
    return (
        f'<robot name="r"><link name="a"/><link name="b">{geoms}</link>'
        f'<joint name="j" type="revolute"><parent link="a"/><child link="b"/>{LIMIT}</joint></robot>'
    )


def inertial_of(robot: Articulation, name: str = "b") -> Inertial:
    """The inertial of a link."""
    found = next(link.inertial for link in robot.links if link.name == name)
    assert found is not None
    return found


def about_link(inertial: Inertial) -> tuple[Real, Real]:
    """Centre of mass and inertia about it, in the link's axes."""
    R = rotation_matrix(inertial.pose.rotation)
    return np.array(inertial.pose.position), R @ symmetric(inertial.inertia) @ R.T


def test_shapes_together_weigh_what_trimesh_says() -> None:
    """A box and a cylinder, placed and turned, as meshes fine enough for six digits."""
    box = '<origin xyz=".1 0 .2" rpy=".3 .4 .5"/><geometry><box size=".2 .3 .1"/></geometry>'
    ball = '<origin xyz="-.2 .1 0"/><geometry><sphere radius=".05"/></geometry>'
    inertial = inertial_of(load_text(urdf(box, ball), name="r", density=800.0))
    turned = trimesh.creation.box((0.2, 0.3, 0.1))
    turned.apply_transform(trimesh.transformations.euler_matrix(0.3, 0.4, 0.5, "sxyz"))
    turned.apply_translation((0.1, 0, 0.2))
    round_ = trimesh.creation.icosphere(6, 0.05)
    round_.apply_translation((-0.2, 0.1, 0))
    both = trimesh.util.concatenate([turned, round_])
    both.density = 800.0
    centre, inertia = about_link(inertial)
    assert inertial.mass == pytest.approx(both.mass, rel=1e-3)
    np.testing.assert_allclose(centre, both.center_mass, atol=1e-4)
    np.testing.assert_allclose(inertia, both.moment_inertia, rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("scale", ["1 1 1", "0.5 2 -1"])
def test_meshes_weigh_what_trimesh_says(tmp_path: Path, scale: str) -> None:
    mesh = trimesh.creation.annulus(0.1, 0.2, 0.3)
    mesh.apply_translation((0.3, 0.1, 0.2))
    mesh.export(tmp_path / "ring.stl")
    open_mesh = mesh.copy()
    open_mesh.update_faces(np.arange(len(mesh.faces)) > 3)
    open_mesh.export(tmp_path / "open.stl")
    for name, convex in (("ring", False), ("open", True)):
        path = tmp_path / f"{name}.urdf"
        path.write_text(urdf(f'<geometry><mesh filename="{name}.stl" scale="{scale}"/></geometry>'))
        robot = load_articulation(path, density=1000.0)
        truth = trimesh.load_mesh(tmp_path / f"{name}.stl")
        truth.apply_transform(np.diag([*map(float, scale.split()), 1.0]))
        truth = truth.convex_hull if convex else truth
        truth.density = 1000.0
        centre, inertia = about_link(inertial_of(robot))
        assert inertial_of(robot).mass == pytest.approx(truth.mass, rel=1e-9)
        np.testing.assert_allclose(centre, truth.center_mass, atol=1e-9)
        np.testing.assert_allclose(inertia, truth.moment_inertia, atol=1e-9 * truth.mass)
        assert any("convex hull" in note.message for note in robot.notes) == convex


def test_what_has_mass_keeps_it_and_visuals_serve_where_nothing_collides() -> None:
    heavy = '<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    text = urdf('<geometry><box size="1 1 1"/></geometry>', role="visual").replace(
        '<link name="a"/>', f'<link name="a">{heavy}<visual><geometry><box size="1 1 1"/></geometry></visual></link>'
    )
    robot = load_text(text, name="r", density=10.0)
    assert (inertial_of(robot, "a").mass, inertial_of(robot).mass) == (2, 10)
    assert "--density" in robot.notes[-1].message
    assert "'b' 10 kg" in robot.notes[-1].message
    assert load_text(text, name="r").links[1].inertial is None


def test_a_stored_text_has_the_masses() -> None:
    shape = '<origin xyz=".1 .2 .3" rpy=".4 .5 .6"/><geometry><cylinder radius=".1" length=".3"/></geometry>'
    robot = load_text(urdf(shape), name="r", density=1234.5)
    again = load_text(robot.text, name="r", meshes=False)
    first, second = inertial_of(robot), inertial_of(again)
    assert (first.mass, first.pose, first.inertia) == (second.mass, second.pose, second.inertia)


def test_a_run_of_what_is_refused_without(tmp_path: Path) -> None:
    path, output = tmp_path / "r.urdf", tmp_path / "out.h5"
    path.write_text(urdf('<origin xyz=".1 0 0"/><geometry><box size=".2 .1 .1"/></geometry>'))

    def artsim(*words: object) -> tuple[int, str]:
        result = CliRunner().invoke(cli, [str(word) for word in words])
        return result.exit_code, result.output

    code, told = artsim("run", path, "--steps", 5)
    assert (code, "--density 1000" in told) == (65, True)
    assert artsim("run", path, "--steps", 5, "--density", 1000, "-o", output)[0] == 0
    assert artsim("replay", "--verify", output)[0] == 0
    for wrong in ("0", "-1", "nan", "x"):
        assert artsim("run", path, "--density", wrong)[0] == 2


def test_how_links_get_mass_is_said_as_it_is_for_them(tmp_path: Path) -> None:
    """By their shapes; by those whose meshes are absent, once they are there; links without shapes by hand alone."""
    path = tmp_path / "r.urdf"
    mesh = '<geometry><mesh filename="package://p/x.stl"/></geometry>'
    for text, told in (
        (urdf('<geometry><box size="1 1 1"/></geometry>'), " (--density 1000: those of its shapes), or fix"),
        (urdf(mesh), " (--density 1000 with --package NAME=DIR or --mesh-root DIR: those"),
        (urdf(), "give it mass and inertia, or fix its joint"),
    ):
        path.write_text(text)
        refused = CliRunner().invoke(cli, ["run", str(path), "--steps", "1"])
        assert refused.exit_code == 65
        assert told in str(refused.exception or "") + refused.output


def test_what_is_not_for_density() -> None:
    from artsim.sim.runs.configuration import RunConfig

    model = "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
    assert "--density is for a URDF" in load_text(model, name="m", density=1.0).notes[0].message
    with pytest.raises(UsageError, match="density"):
        RunConfig(density=-1.0)
    damaged = urdf('<geometry><mesh filename="m.stl"/></geometry>')
    with pytest.raises(ModelError):
        load_text(damaged.replace("m.stl", ""), name="r", density=1.0)


@pytest.mark.corpus
def test_industrial_arms_weigh_what_trimesh_says() -> None:
    """Public arms of ROS-Industrial whose links have no mass: the mesh's volume, or its hull's, by trimesh."""
    entries = [entry for entry in corpus_entries("urdf") if "ros-industrial" in entry["id"]]
    if not entries:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    compared = 0
    for entry in entries:
        robot = load_articulation(entry["path"])
        if any(link.inertial for link in robot.links) or not all(geom.mesh for geom in collisions(robot)):
            continue
        heavy = load_articulation(entry["path"], density=1000.0)
        for geom, link in zip(collisions(robot), [link for link in heavy.links if link.geoms], strict=True):
            truth = trimesh.load_mesh(geom.mesh)
            truth.apply_transform(np.diag([*geom.scale, 1.0]))
            volume = truth.volume if truth.is_volume else truth.convex_hull.volume
            assert inertial_of(heavy, link.name).mass == pytest.approx(1000 * abs(volume), rel=1e-9)
            compared += 1
    assert compared >= 70


def collisions(robot: Articulation) -> list[Geom]:
    """The shapes that collide."""
    return [geom for link in robot.links for geom in link.geoms if geom.role == "collision"]
