"""Edits of shapes, bases and names, and the mirror: against closed forms, and against the robot as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.collision.hull import volume
from artsim.loaders.fitting import ball, fitted
from artsim.loaders.mirror import other_side
from artsim.sim.foundation.rotations import rotation_matrix
from tests.conftest import ROOT
from tests.loaders.test_doctor import written

ARM, LEG = ROOT / "robots" / "arm7.urdf", ROOT / "robots" / "leg.xml"
REFLECTION = np.array([1.0, -1.0, 1.0])


def edit(model: Path, out: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["edit", str(model), *words, "-o", str(out)])


def edited(model: Path, out: Path, *words: str) -> artsim.Robot:
    done = edit(model, out, *words)
    assert done.exit_code == 0, done.output
    return artsim.load(out)


def turned(points: np.ndarray, seed: int) -> np.ndarray:
    q = np.random.default_rng(seed).normal(size=4)
    moved: np.ndarray = points @ rotation_matrix(q / np.linalg.norm(q)).T + np.array([0.3, -0.2, 0.1])
    return moved


@pytest.mark.parametrize("seed", range(5))
def test_primitives_around_points_of_primitives_are_these(seed: int) -> None:
    corners = np.array([[x, y, z] for x in (-0.3, 0.3) for y in (-0.1, 0.1) for z in (-0.05, 0.05)])
    size, pose = fitted("box", turned(corners, seed))
    np.testing.assert_allclose(sorted(size), [0.05, 0.1, 0.3], rtol=1e-9)
    np.testing.assert_allclose(pose.position, [0.3, -0.2, 0.1], atol=1e-9)
    angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    ring = np.column_stack([0.1 * np.cos(angle), 0.1 * np.sin(angle)])
    rod = np.concatenate([np.column_stack([ring, np.full(64, z)]) for z in (-0.4, 0.4)])
    size, pose = fitted("cylinder", turned(rod, seed))
    np.testing.assert_allclose(size, [0.1, 0.4], rtol=1e-6)
    size, pose = fitted("sphere", turned(corners, seed))
    np.testing.assert_allclose(size, [np.linalg.norm([0.3, 0.1, 0.05])], rtol=1e-9)
    size, pose = fitted("capsule", turned(rod, seed))
    assert size[0] == pytest.approx(0.1, rel=1e-6) and size[1] == pytest.approx(0.4, rel=1e-6)


def test_the_smallest_ball_holds_all_and_is_that_of_its_support() -> None:
    random = np.random.default_rng(1)
    for d in (2, 3):
        points = random.normal(size=(200, d))
        centre, radius = ball(points)
        away = np.linalg.norm(points - centre, axis=1)
        assert away.max() <= radius * (1 + 1e-9)
        on = points[away > radius * (1 - 1e-9)]  # its centre is in the hull of the points that it touches
        weights, *_ = np.linalg.lstsq(np.vstack([on.T, np.ones(len(on))]), [*centre, 1.0], rcond=None)
        assert 2 <= len(on) <= d + 1 and weights.min() > -1e-9


@pytest.mark.small
@pytest.mark.parametrize("model", [ARM, LEG], ids=["urdf", "mjcf"])
def test_a_mirrored_robot_moves_as_its_reflection(model: Path, tmp_path: Path) -> None:
    """M and gravity forces are equal at the same coordinates, and links are where a mirror at y = 0 shows them."""
    robot, made = artsim.load(model), edited(model, tmp_path / f"m{model.suffix}", "--mirror")
    q = np.random.default_rng(5).uniform(-0.5, 0.5, (4, robot.nq))
    if robot.nq != robot.nv:
        q[:, 3:7] = [1.0, 0.0, 0.0, 0.0]
    other = q.copy()
    if robot.nq != robot.nv:
        other[:, :3] *= REFLECTION
    asked = {"quantities": ["mass_matrix", "gravity", "link_position"]}
    want, found = robot.compute(q, **asked), made.compute(other, **asked)  # type: ignore[arg-type]
    np.testing.assert_allclose(found["link_position"], want["link_position"] * REFLECTION, atol=1e-12)
    if robot.nq == robot.nv:
        np.testing.assert_allclose(found["mass_matrix"], want["mass_matrix"], atol=1e-12)
        np.testing.assert_allclose(found["gravity"], want["gravity"], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("left_knee", "right_knee"),
        ("LeftFoot", "RightFoot"),
        ("FL_hip", "FR_hip"),
        ("arm_r", "arm_l"),
        ("l_wrist", "r_wrist"),
        ("lf_haa", "lf_haa"),
        ("link_1", "link_1"),
        ("r2d2", "r2d2"),
        ("roller", "roller"),
    ],
)
def test_names_of_sides(name: str, other: str) -> None:
    assert other_side(name) == other
    assert other_side(other) == name


@pytest.mark.small
def test_hulls_and_parts_of_a_hollow_mesh(tmp_path: Path) -> None:
    """Parts fill what the mesh fills, the hull its hull: 6 by 1.5 cm less its channel, by 2 cm."""
    pytest.importorskip("manifold3d")
    path = written(tmp_path, None)
    path.write_text(path.read_text().replace("finger.obj", "hook.obj"))
    full, hollow = 0.06 * 0.015 * 0.02, (0.06 * 0.015 - 0.054 * 0.01425) * 0.02
    for option, want in (("--hull", full), ("--convex", hollow)):
        made = edited(path, tmp_path / f"{option[2:]}.xml", option, "right")
        link = next(link for link in made.articulation.links if link.name == "right")
        geoms = [geom for geom in link.geoms if geom.role == "collision"]
        found = 0.0
        for geom in geoms:
            points = np.array(geom.vertices).reshape(-1, 3)
            faces = np.array(geom.faces, int).reshape(-1, 3)
            if not len(points):
                from artsim.collision.mesh import read_mesh

                assert geom.mesh is not None
                points, faces = read_mesh(geom.mesh)[:2]
            found += abs(volume(points, faces))
        assert found == pytest.approx(want, rel=0.02), option


@pytest.mark.small
@pytest.mark.parametrize("kind", ["box", "sphere", "cylinder", "capsule"])
def test_a_fitted_primitive_replaces_the_mesh(kind: str, tmp_path: Path) -> None:
    made = edited(written(tmp_path, None), tmp_path / "fit.urdf", "--fit", f"right={kind}")
    link = next(link for link in made.articulation.links if link.name == "right")
    (geom,) = [geom for geom in link.geoms if geom.role == "collision"]
    assert geom.kind == kind
    if kind == "box":
        np.testing.assert_allclose(sorted(geom.size), [0.0075, 0.0075, 0.03], rtol=1e-9)


@pytest.mark.small
def test_inertias_of_shapes_are_those_of_the_closed_form(tmp_path: Path) -> None:
    made = edited(written(tmp_path, None), tmp_path / "d.urdf", "--solid", "upper=2700", "--inertia", "fore")
    upper, fore = (next(one for one in made.articulation.links if one.name == name) for name in ("upper", "fore"))
    assert upper.inertial is not None and fore.inertial is not None
    mass = 2700 * np.pi * 0.04**2 * 0.4
    assert upper.inertial.mass == pytest.approx(mass)
    assert upper.inertial.inertia[0] == pytest.approx(mass * (3 * 0.04**2 + 0.4**2) / 12)
    assert upper.inertial.inertia[5] == pytest.approx(mass * 0.04**2 / 2)
    assert fore.inertial.mass == 1.2
    assert fore.inertial.inertia[0] == pytest.approx(1.2 * 0.03**2 / 2)


@pytest.mark.small
def test_bases_ground_and_names(tmp_path: Path) -> None:
    words = ["--base-joint", "planar", "--lift", "0.2", "--ground", "0"]
    refused = edit(ARM, tmp_path / "x.xml", *words)
    assert refused.exit_code == 2 and "does not place" in refused.output
    made = edited(ARM, tmp_path / "free.xml", "--base-joint", "floating", "--lift", "0.2", "--ground", "-0.1")
    assert made.nv == 13
    world = next(link for link in made.articulation.links if link.name == "world")
    (plane,) = world.geoms
    assert (plane.kind, plane.pose.position[2]) == ("plane", -0.1)
    at = made.compute(made.compiled.reference, quantities=["link_position"])["link_position"]
    assert at[made.links.index("link_0")][2] == pytest.approx(0.2)
    renamed = edited(ARM, tmp_path / "n.urdf", "--rename", "joint:joint_1=waist", "--rename", "link_7=flange_link")
    assert renamed.dofs[0] == "waist" and "flange_link" in renamed.links
    refused = edit(ARM, tmp_path / "y.urdf", "--rename", "joint_9=a")
    assert refused.exit_code == 2 and "did you mean 'joint_" in refused.output
    slide = edited(ARM, tmp_path / "p.urdf", "--base-joint", "planar")
    assert slide.nv == 10


@pytest.mark.small
def test_simpler_meshes(tmp_path: Path) -> None:
    pytest.importorskip("fast_simplification")
    made = edited(ARM, tmp_path / "s.urdf", "--simplify", "link_5=60")
    link = next(link for link in made.articulation.links if link.name == "link_5")
    from artsim.collision.mesh import read_mesh

    (geom,) = [geom for geom in link.geoms if geom.role == "collision"]
    assert geom.mesh is not None and len(read_mesh(geom.mesh).faces) <= 60


@pytest.mark.small
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fit", "link_5=torus"), "want one of box, sphere"),
        (("--fit", "link_1=box"), "link 'link_1' has no collision mesh"),
        (("--hull", "link_1"), "link 'link_1' has no collision mesh"),
        (("--scale-mesh", "link_1=0.1"), "has no mesh"),
        (("--scale-mesh", "link_5=0"), "want a factor above 0"),
        (("--solid", "link_1=-5"), "want a density above 0"),
        (("--inertia", "tool0"), "has no mass"),
        (("--exclude", "link_1"), "want LINK,LINK"),
        (("--gains", "joint_1=3"), "want ACTUATOR=KP,KV"),
        (("--contact-friction", "link_1=-1"), "want a coefficient from 0"),
        (("--rename", "link_1=link_2"), "'link_2' is taken"),
        (("--lift", "1"), "--base-joint adds a joint"),
    ],
)
def test_wrong_edits_of_shapes_are_refused(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    refused = edit(ARM, tmp_path / "x.urdf", *words)
    assert refused.exit_code == 2, refused.output
    assert said in refused.output and refused.output.count("\n") == 1
    assert not (tmp_path / "x.urdf").exists()
