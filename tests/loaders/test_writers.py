"""Written robots: the proof of every way between formats, MuJoCo and Pinocchio on the files, losses, refusals."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

import artsim
from artsim.loaders.load import load_articulation, load_text
from artsim.loaders.writers import mjcf_text, sdf_text, urdf_text
from artsim.loaders.writers.differences import differences
from artsim.loaders.writers.elements_out import number
from artsim.loaders.writers.frames_out import chain, rpy_of
from artsim.loaders.writers.losses import ITEMS, OF_READING, Losses, default_of, unsaid_fields
from artsim.loaders.writers.proof import prove
from artsim.loaders.writers.write import Written, check_written, write_articulation
from artsim.sim.articulation import description
from artsim.sim.articulation.description import Actuator, Articulation, Coupling, Joint, Loop, Pose, Tendon, TendonPoint
from artsim.sim.articulation.pose_algebra import compose, quaternion_from_rpy
from artsim.sim.foundation.errors import ModelError, OutputError, UsageError
from artsim.sim.foundation.rotations import rotation_matrix
from artsim.sim.quantities.robot import Robot
from tests.conftest import ROOT
from tests.loaders.sdf_models import MODELS
from tests.random_models.random_mjcf import random_mjcf
from tests.random_models.random_sdf import random_sdf
from tests.random_models.random_urdf import random_urdf

ROBOTS = sorted(path for path in (ROOT / "robots").iterdir() if path.suffix in (".urdf", ".xml"))
SUFFIXES = (".urdf", ".xml", ".sdf")
MOTION = ("mass matrix", "gravity forces", "bias forces", "link positions", "link rotations")
WRITERS = (mjcf_text, urdf_text, sdf_text)


def written(robot: Articulation, folder: Path, suffix: str, **options: Any) -> tuple[Articulation, Written]:
    """The robot that the written file is read as, and the result of writing it."""
    made = write_articulation(robot, folder / f"robot{suffix}", **options)
    return load_articulation(made.path, base=robot.base), made


def model(content: str, **options: Any) -> Articulation:
    """An MJCF model of this content."""
    return load_text(f"<mujoco>{content}</mujoco>", name="m.xml", **options)


# --- every way -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.name)
def test_robots_move_as_before_in_every_format(path: Path, suffix: str, tmp_path: Path) -> None:
    _, made = written(load_articulation(path), tmp_path, suffix)
    assert made.proof is not None
    assert made.proof.untold == []
    assert made.proof.holds
    rows = {row.subject: row for row in made.proof.rows}
    assert all(rows[name].equal for name in MOTION)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", MODELS)
def test_sdf_models_move_as_before_in_every_format(name: str, suffix: str, tmp_path: Path) -> None:
    robot = load_text(MODELS[name], name="m.sdf")
    _, made = written(robot, tmp_path, suffix)
    assert made.proof is not None
    assert made.proof.untold == []
    assert made.proof.holds


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.name)
def test_a_file_of_its_own_format_loses_nothing(path: Path, tmp_path: Path) -> None:
    robot = load_articulation(path)
    after, made = written(robot, tmp_path, path.suffix)
    assert [loss for loss in made.losses.entries if loss.kind != "reading" and loss.outcome != "added"] == []
    assert differences(robot, after, Losses()) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", ["mjcf", "urdf", "sdf"])
def test_random_models_differ_only_as_told(kind: str, suffix: str, tmp_path: Path) -> None:
    loaded = 0
    for count in range(12):
        folder = tmp_path / str(count)
        folder.mkdir()
        if kind == "mjcf":
            path = random_mjcf(1, count).write(folder)
        elif kind == "urdf":
            path = folder / "model.urdf"
            path.write_text(random_urdf(1, count))
        else:
            for name, text in random_sdf(1, count).files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
            path = folder / "model.sdf"
        try:
            robot = load_articulation(path)
        except ModelError:
            continue
        loaded += 1
        made = write_articulation(robot, folder / f"written{suffix}")
        assert made.proof is not None
        assert made.proof.untold == []
        assert made.proof.holds
        if path.suffix == suffix != ".sdf":  # of SDF, models within models become one, whose links do not touch
            assert [row.subject for row in made.proof.rows if not row.equal] == []
    assert loaded > 6


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_free_base_stays_free(suffix: str, tmp_path: Path) -> None:
    robot = load_articulation(ROOT / "robots" / "quadruped.urdf", base="floating")
    made = write_articulation(robot, tmp_path / f"robot{suffix}")
    assert made.proof is not None and made.proof.holds
    rows = {row.subject: row for row in made.proof.rows}
    assert rows["mass matrix"].compared == 8 * 18**2
    assert all(rows[name].equal for name in MOTION)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_loops_of_a_file_beside_the_model_are_written(suffix: str, tmp_path: Path) -> None:
    loops = tmp_path / "loops.toml"
    robot = load_articulation(ROOT / "robots" / "double_pendulum.urdf")
    first, last = robot.links[0].name, robot.links[-1].name
    loops.write_text(f'[[loop]]\nname = "shut"\nkind = "connect"\nlink_a = "{first}"\nlink_b = "{last}"\n')
    robot = load_articulation(ROOT / "robots" / "double_pendulum.urdf", loops=loops)
    made = write_articulation(robot, tmp_path / f"robot{suffix}")
    assert made.proof is not None and made.proof.holds
    after = load_articulation(made.path)
    assert [(loop.name, loop.kind) for loop in after.loops] == [("shut", "connect")]


# --- others' reading of the files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.name)
def test_mujoco_finds_the_same_mass_matrix_in_mjcf(path: Path, tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    robot = artsim.load(path)
    made = write_articulation(robot.articulation, tmp_path / "robot.xml")
    other = mujoco.MjModel.from_xml_path(str(made.path))
    data = mujoco.MjData(other)
    random = np.random.default_rng(0)
    qpos = random.uniform(-0.5, 0.5, robot.nq)
    for name, place in robot.labels.joint_coords.items():
        if place.stop - place.start == 7:
            qpos[place.start + 3 : place.stop] /= np.linalg.norm(qpos[place.start + 3 : place.stop])
        parts = [f"{name}.{part}" for part in ("x", "y", "angle")]  # joints of a planar one
        names = parts if place.stop - place.start == 3 else [name]
        for n, joint in enumerate(names):
            start = other.joint(joint).qposadr[0]
            values = qpos[place] if names == [name] else qpos[place][n : n + 1]
            data.qpos[start : start + len(values)] = values
    mujoco.mj_forward(other, data)
    M = np.zeros((other.nv, other.nv))
    mujoco.mj_fullM(other, data, M)
    order = [dof_of(other, name) for name in robot.dofs]
    expected = robot.compute(qpos, quantities=["mass_matrix"])["mass_matrix"]
    np.testing.assert_allclose(M[np.ix_(order, order)], expected, rtol=1e-9, atol=1e-12)
    for n, name in enumerate(robot.links):
        if name != "world":
            position = robot.compute(qpos, quantities=["link_position"])["link_position"][n]
            np.testing.assert_allclose(data.body(name).xpos, position, atol=1e-12)


def dof_of(other: Any, name: str) -> int:
    """The number of a degree of freedom of MuJoCo's model, of six of a free joint by its suffix."""
    joint, _, part = name.rpartition(".")
    if part in ("vx", "vy", "vz", "wx", "wy", "wz"):
        return int(other.joint(joint).dofadr[0]) + ("vx", "vy", "vz", "wx", "wy", "wz").index(part)
    return int(other.joint(name).dofadr[0])


def test_pinocchio_finds_the_same_mass_matrix_in_a_urdf_of_an_mjcf(tmp_path: Path) -> None:
    pinocchio = pytest.importorskip("pinocchio")
    robot = artsim.load(ROOT / "robots" / "leg.xml")
    fixed = dataclasses.replace(
        robot.articulation,
        links=tuple(dataclasses.replace(link, geoms=()) for link in robot.articulation.links),  # urdfdom has no planes
    )
    made = write_articulation(fixed, tmp_path / "leg.urdf")
    other = pinocchio.buildModelFromUrdf(str(made.path))
    data = other.createData()
    random = np.random.default_rng(1)
    q = pinocchio.neutral(other)
    qpos = np.zeros(robot.nq)
    qpos[3] = 1.0  # the free joint stays at the origin
    scalar = [name for name in robot.coords if not name.startswith("root.")]
    for name in scalar:
        joint = other.joints[other.getJointId(name)]
        qpos[robot.coords.index(name)] = angle = random.uniform(-0.5, 0.5)
        q[joint.idx_q : joint.idx_q + joint.nq] = [angle] if joint.nq == 1 else [math.cos(angle), math.sin(angle)]
    M = pinocchio.crba(other, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    root = other.joints[other.getJointId("root")].idx_v
    order = [*range(root, root + 6), *(other.joints[other.getJointId(name)].idx_v for name in scalar)]
    rotors = np.zeros(robot.nv)
    rotors[6:] = [joint.armature for joint in robot.articulation.joints if joint.kind not in ("fixed", "free")]
    expected = robot.compute(qpos, quantities=["mass_matrix"])["mass_matrix"] - np.diag(rotors)  # not of its URDF
    np.testing.assert_allclose(M[np.ix_(order, order)], expected, rtol=1e-9, atol=1e-12)


# --- what is carried over --------------------------------------------------------------------------------------------


def test_a_polynomial_about_references_is_kept_in_mjcf_and_told_in_urdf(tmp_path: Path) -> None:
    robot = model(
        """<compiler angle="radian"/><worldbody><body name="a"><joint name="x" ref="0.3" axis="0 1 0" pos="0.1 0 0"/>
        <geom size="0.1"/><body name="b" pos="0 0 1"><joint name="y" ref="-0.2" axis="1 0 0"/><geom size="0.1"/></body>
        </body></worldbody><equality><joint joint1="y" joint2="x" polycoef="0.1 2 0.5 0.25 0.1"/></equality>"""
    )
    after, made = written(robot, tmp_path, ".xml")
    np.testing.assert_allclose(after.couplings[0].coefficients, robot.couplings[0].coefficients, rtol=1e-14, atol=1e-15)
    assert made.losses.entries == []
    _, made = written(robot, tmp_path, ".urdf")
    assert "<mimic> has lines" in "; ".join(map(str, made.losses.physical))
    assert made.proof is not None and made.proof.holds
    rows = {row.subject: row.verdict for row in made.proof.rows}
    assert rows["couplings"] == "told"
    assert rows["link positions"] == "equal"  # with references and anchors, in links that were added


def test_velocity_limits_pass_through_mjcf(tmp_path: Path) -> None:
    robot = load_articulation(ROOT / "robots" / "parallel_gripper.urdf")
    after, _ = written(robot, tmp_path, ".xml")
    assert {joint.velocity for joint in after.joints if joint.kind != "fixed"} == {0.15}


def test_a_loop_of_a_urdf_goes_to_both_other_formats(tmp_path: Path) -> None:
    robot = loop_of("connect", Pose((0.0, 0.0, 0.5)), Pose((0.0, 0.3, 0.5)))
    for suffix in (".xml", ".urdf"):
        after, made = written(robot, tmp_path, suffix)
        assert (after.loops[0].kind, after.loops[0].link_a, after.loops[0].link_b) == ("connect", "base", "tip")
        assert made.proof is not None and made.proof.holds
    _, made = written(robot, tmp_path, ".sdf")
    assert any(loss.kind == "loop" and "is open by" in loss.told for loss in made.losses.entries)


def loop_of(kind: Any, a: Pose, b: Pose) -> Articulation:
    """The double pendulum with a loop between its base and its tip."""
    robot = load_articulation(ROOT / "robots" / "double_pendulum.urdf")
    first, last = robot.links[0].name, robot.links[-1].name
    links = {first: "base", last: "tip"}
    named = dataclasses.replace(
        robot,
        links=tuple(dataclasses.replace(link, name=links.get(link.name, link.name)) for link in robot.links),
        joints=tuple(
            dataclasses.replace(
                joint, parent=links.get(joint.parent, joint.parent), child=links.get(joint.child, joint.child)
            )
            for joint in robot.joints
        ),
    )
    return dataclasses.replace(named, loops=(Loop("shut", kind, "base", "tip", a, b),))


def test_a_hinge_becomes_two_points_on_its_axis(tmp_path: Path) -> None:
    after, made = written(loop_of("hinge", Pose((0.0, 0.0, 0.5)), Pose((0.0, 0.3, 0.5))), tmp_path, ".xml")
    assert [loop.kind for loop in after.loops] == ["connect", "connect"]
    first, second = (np.array(loop.frame_a.position) for loop in after.loops)
    np.testing.assert_allclose(second - first, [0.0, 0.0, 1.0], atol=1e-15)
    assert made.proof is not None and made.proof.holds


@given(st.tuples(*(st.floats(-4.0, 4.0) for _ in range(3))), st.sampled_from((None, math.pi / 2, -math.pi / 2)))
def test_roll_pitch_and_yaw_say_any_rotation(angles: tuple[float, float, float], pitch: float | None) -> None:
    q = quaternion_from_rpy(angles[0], angles[1] if pitch is None else pitch, angles[2])
    found = quaternion_from_rpy(*rpy_of(q))
    np.testing.assert_allclose(rotation_matrix(found), rotation_matrix(q), atol=2e-15)


@pytest.mark.parametrize("angles", [(0.0, 1.5708, -0.3), (0.1, -1.57, 0.0), (3.1416, 0.0, 1.2), (1.0, 2.0, -0.5)])
def test_angles_keep_the_digits_of_the_source(angles: tuple[float, float, float]) -> None:
    """Of the two triples of angles that say a rotation, the one with the fewest digits is written."""
    assert len(str(rpy_of(quaternion_from_rpy(*angles)))) <= len(str(angles))


def test_chains_of_joints_keep_the_frame_of_the_link() -> None:
    """The product of the frames of a chain, at coordinates 0, is the pose that the description gives there."""
    above = [
        Joint(
            "a", "revolute", "up", "down", Pose((1.0, 0.0, 0.0), quaternion_from_rpy(0.1, 0.2, 0.3)), anchor=(0, 0, 0.5)
        ),
        Joint("b", "prismatic", "up", "down", axis=(1.0, 0.0, 0.0), anchor=(0.1, 0.0, 0.0), reference=0.25),
    ]
    pose = Pose()
    for step in chain(above, {"up", "down"}):
        pose = compose(pose, step.joint.pose)
    expected = compose(above[0].pose, Pose((-0.25, 0.0, 0.0)))
    np.testing.assert_allclose(pose.position, expected.position, atol=1e-15)
    np.testing.assert_allclose(pose.rotation, expected.rotation, atol=1e-15)


# --- what is told ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__.rpartition(".")[2])
def test_every_field_is_said_or_told(writer: Any) -> None:
    """A field that a writer does not know of is told as soon as it has not its default."""
    for name, said in writer.SAID.items():
        if name == "Articulation":
            continue
        kind = getattr(description, name)
        known = {field.name for field in dataclasses.fields(kind)}
        assert said <= known, f"{name}: {said - known} do not exist"
        required = {f.name: "x" for f in dataclasses.fields(kind) if default_of(f) is None and f.default is not None}
        for field in dataclasses.fields(kind):
            if field.name in OF_READING or field.name in said or field.name in required:
                continue
            item = kind(**{**required, field.name: "something"})
            assert field.name in [path for path, _ in unsaid_fields(item, writer.SAID)]


def test_every_part_of_a_robot_is_an_item_or_of_its_reading() -> None:
    known = {*ITEMS, *OF_READING, "options", "self_collide"}
    assert {field.name for field in dataclasses.fields(Articulation)} == known & {
        field.name for field in dataclasses.fields(Articulation)
    }


def test_losses_are_told_by_name(tmp_path: Path) -> None:
    robot = model(
        """<worldbody><body name="a"><joint name="x" axis="0 1 0"/><geom name="g" size="0.1" solref="0.01 1"/>
        <site name="s"/></body></worldbody><tendon><fixed name="t"><joint joint="x" coef="2"/></fixed></tendon>
        <actuator><muscle name="m" joint="x" lengthrange="0 1"/></actuator>
        <keyframe><key name="k" qpos="0.1"/></keyframe>"""
    )
    for suffix in (".urdf", ".sdf"):
        _, made = written(robot, tmp_path, suffix)
        told = {(loss.kind, loss.name) for loss in made.losses.physical}
        assert {("tendon", "t"), ("actuator", "m"), ("keyframe", "k"), ("geom", "a/g"), ("site", "s")} <= told
        assert made.proof is not None and made.proof.holds
        with pytest.raises(UsageError, match=r"not written.*actuator 'm'"):
            written(robot, tmp_path, suffix, force=True, strict=True)
    _, made = written(robot, tmp_path, ".xml", strict=True)
    assert made.losses.entries == []


def test_meshes_of_the_world_collide_by_the_rules_of_the_format(tmp_path: Path) -> None:
    """A capsule inside of a static box of triangles touches its hull, and not the surface around it."""
    box = "-1 -1 -1 1 -1 -1 1 1 -1 1 1 1 1 -1 1 -1 1 -1 -1 1 1 -1 -1 1"
    robot = model(
        f"""<asset><mesh name="box" vertex="{box}"/></asset><worldbody><geom name="g" type="mesh" mesh="box"/>
        <body name="a"><joint name="x" type="slide" range="-0.1 0.1"/><geom size="0.1" contype="0" conaffinity="0"/>
        <body name="b" pos="0.3 0.2 0.4"><joint name="y" axis="0 1 0"/><geom type="capsule" size="0.05 0.2"/></body>
        </body></worldbody>"""
    )
    for suffix in (".sdf", ".xml"):  # there, and back to MJCF
        with pytest.raises(UsageError, match=r"geom '.*g': its mesh is fixed to the world and collides as it"):
            written(robot, tmp_path, suffix, force=True, strict=True)
        robot, made = written(robot, tmp_path, suffix)
        assert made.proof is not None and made.proof.holds
        rows = {row.subject: row for row in made.proof.rows}
        assert rows["contact depths"].verdict == "told" and (rows["contact depths"].distance or 0.0) > 0.5
        assert [loss.field for loss in made.losses.physical] == ["solid"]
    _, made = written(robot, tmp_path, ".xml", force=True, strict=True)
    assert not made.losses.physical


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_flexes_are_told_by_name(suffix: str, tmp_path: Path) -> None:
    """Contacts of flexes, and flexes that a reading left out, are losses; one without contacts keeps its motion."""
    grid = 'type="grid" dim="1" count="3 1 1" spacing="0.1 0.1 0.1"'
    quiet = '<contact contype="0" conaffinity="0"/>'
    content = f'<worldbody><body name="b"><flexcomp name="{{}}" {grid}><pin id="0"/>{{}}</flexcomp></body></worldbody>'
    cases = (
        ("soft", "", "flexcomp 'soft': its points and elements touch nothing"),
        ("bent", '<elasticity young="1"/>' + quiet, "flexcomp 'bent': elasticity is not supported yet and is left out"),
    )
    for name, more, told in cases:
        robot = model(content.format(name, more), ignore_unsupported=True)
        with pytest.raises(UsageError, match=told):
            written(robot, tmp_path, suffix, force=True, strict=True)
        made = written(robot, tmp_path, suffix, force=True)[1]
        assert any(told in str(loss) for loss in made.losses.physical)
        assert made.proof is not None and made.proof.holds
    made = written(model(content.format("still", quiet)), tmp_path, suffix, force=True, strict=suffix == ".xml")[1]
    assert any("flexcomp 'still' is not kept: its points are bodies" in str(loss) for loss in made.losses.entries)


def test_a_proof_finds_what_a_writer_forgets(tmp_path: Path) -> None:
    robot = load_articulation(ROOT / "robots" / "arm7.urdf")
    _, made = written(robot, tmp_path, ".xml")
    text = made.path.read_text()
    for old, new, subject in (
        ('damping="', 'damping="1', "joints"),
        ('mass="', 'mass="1', "mass matrix"),
        ('axis="', 'axis="0.1', "link rotations"),
        ('size="', 'size="1', "geoms"),
    ):
        first, _, last = text.rpartition(old)
        made.path.write_text(first + new + last)
        proof = check_written(robot, made.path, made.losses)
        assert not proof.holds, old
        assert {row.subject: row.verdict for row in proof.rows}[subject] == "not told"


def test_a_lost_coupling_is_not_taken_for_a_lost_mass(tmp_path: Path) -> None:
    robot = load_articulation(ROOT / "robots" / "arm7.urdf")
    heavy = dataclasses.replace(
        robot,
        links=(
            *robot.links[:-2],
            dataclasses.replace(robot.links[-2], inertial=dataclasses.replace(robot.links[-2].inertial, mass=9.0)),  # type: ignore[type-var]
            robot.links[-1],
        ),
    )
    losses = Losses()
    losses.lost("coupling", "a <- b", "*", "is not said")
    assert not prove(robot, heavy, losses, contacts=False).holds


def test_self_collisions_are_said_by_bits_and_exclusions(tmp_path: Path) -> None:
    text = (ROOT / "robots" / "quadruped.urdf").read_text()
    touching = text.replace("</robot>", "<gazebo><selfCollide>true</selfCollide></gazebo></robot>")
    for source in (text, touching):
        robot = load_text(source, name="q.urdf", path=ROOT / "robots" / "quadruped.urdf")
        _, made = written(robot, tmp_path, ".xml", force=True)
        assert made.proof is not None
        assert {row.subject: row.verdict for row in made.proof.rows}["contact pairs"] == "equal"


# --- how files look --------------------------------------------------------------------------------------------------


def test_shared_attributes_are_defaults_that_change_nothing(tmp_path: Path) -> None:
    text = """<worldbody><body name="b"><freejoint name="f"/><geom name="v" size="0.1" contype="0" conaffinity="0"/>
    <geom name="w" size="0.1" contype="0" conaffinity="0" rgba="1 0 0 1"/>
    <geom name="x" size="0.1" contype="0" conaffinity="0"/><geom name="o" size="0.1" friction="0.5"/>{}</body>
    </worldbody>"""
    arms = "".join(
        f'<body name="b{n}"><joint name="j{n}" {own}/><geom name="g{n}" size="0.1" friction="0.8"/></body>'
        for n, own in enumerate(('damping="2" armature="0.1"', 'damping="2"', 'damping="2" armature="0.1"', ""))
    )
    robot = model(text.format(arms))
    after, made = written(robot, tmp_path, ".xml")
    assert differences(robot, after, Losses()) == []
    root = etree.parse(str(made.path)).getroot()
    assert [dict(item.attrib) for item in root.iterfind("default/joint")] == [{"damping": "2"}]
    assert {geom.get("name") for geom in root.iter("geom") if geom.get("class") == "visual"} == {"v", "w", "x"}
    assert next(joint for joint in root.iter("joint") if joint.get("name") == "j3").get("damping") == "0"
    assert next(geom for geom in root.iter("geom") if geom.get("name") == "o").get("friction") == "0.5 0.005 0.0001"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_comments_stand_before_what_they_stood_before(suffix: str, tmp_path: Path) -> None:
    text = (ROOT / "robots" / "double_pendulum.urdf").read_text()
    robot = load_text(text, name="d.urdf")
    name = robot.joints[-1].name
    head, tail = text.split(f'<joint name="{name}"')
    robot = load_text(f'{head}<!-- the last one --><joint name="{name}"{tail}', name="d.urdf")
    _, made = written(robot, tmp_path, suffix)
    comment = next(
        item for item in etree.parse(str(made.path)).getroot().iter(etree.Comment) if item.text == " the last one "
    )
    assert next(comment.itersiblings("*")).get("name") == name


def test_numbers_are_as_short_as_they_can_be() -> None:
    values = (0.1, 1.0, -0.0, 1e-7, 1 / 3, 12345678.0, 2.5e300)
    assert [number(x) for x in values] == ["0.1", "1", "0", "1e-7", "0.3333333333333333", "12345678", "2.5e300"]
    assert [float(number(x)) for x in values] == list(values)


# --- files -----------------------------------------------------------------------------------------------------------


def test_meshes_are_copied_below_the_file(tmp_path: Path) -> None:
    robot = load_articulation(ROOT / "robots" / "arm7.urdf")
    meshes = [geom.mesh for link in robot.links for geom in link.geoms if geom.mesh is not None]
    for suffix in SUFFIXES:
        folder = tmp_path / suffix[1:]
        folder.mkdir()
        after, made = written(robot, folder, suffix)
        copies = [geom.mesh for link in after.links for geom in link.geoms if geom.mesh is not None]
        assert len(copies) == len(meshes)
        assert all(copy.is_relative_to(folder.resolve() / "meshes") for copy in copies)
        assert sorted(made.files) == sorted({copy.relative_to(folder.resolve()).as_posix() for copy in copies})
    write_articulation(robot, tmp_path / "urdf" / "again.urdf")
    assert len(list((tmp_path / "urdf" / "meshes").iterdir())) == len(set(meshes))


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    robot = load_articulation(ROOT / "robots" / "finger.urdf")
    place = tmp_path / "f.xml"
    place.write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        write_articulation(robot, place)
    assert place.read_text() == "mine"
    write_articulation(robot, place, force=True)
    link = tmp_path / "l.xml"
    link.symlink_to(tmp_path / "elsewhere.xml")
    with pytest.raises(OutputError, match="is a link"):
        write_articulation(robot, link, force=True)
    with pytest.raises(OutputError, match="no such folder"):
        write_articulation(robot, tmp_path / "none" / "f.xml")
    with pytest.raises(UsageError, match=r"suffix '\.obj' names no format"):
        write_articulation(robot, tmp_path / "f.obj")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.xml", "l.xml"]


def test_meshes_do_not_leave_the_folder_by_a_link(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "meshes").symlink_to(outside)
    with pytest.raises(UsageError, match="leads out of the output's folder"):
        write_articulation(load_articulation(ROOT / "robots" / "arm7.urdf"), inside / "g.urdf")
    assert list(outside.iterdir()) == []


# --- Python ----------------------------------------------------------------------------------------------------------


def test_values_can_be_changed(tmp_path: Path) -> None:
    text = (ROOT / "robots" / "leg.xml").read_text()
    source = tmp_path / "source.xml"
    source.write_text(text.replace("</actuator>", '<position name="servo" joint="knee" kp="9"/></actuator>'))
    made = artsim.write(
        source,
        tmp_path / "leg.xml",
        mass={"foot": 0.5},
        limits={"knee": (-1.0, 0.5)},
        damping={"knee": 0.25},
        gains={"servo": (30.0, 2.0)},
    )
    assert made.proof is not None and made.proof.holds
    after = artsim.load(made.path).articulation
    foot = next(link for link in after.links if link.name == "foot")
    knee = next(joint for joint in after.joints if joint.name == "knee")
    motor = next(actuator for actuator in after.actuators if actuator.name == "servo")
    assert foot.inertial is not None and foot.inertial.mass == 0.5
    assert (knee.lower, knee.upper, knee.damping) == (-1.0, 0.5, 0.25)
    assert (motor.gain_parameters[0], motor.bias_parameters[1:3]) == (30.0, (-30.0, -2.0))


def test_changes_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    robot = artsim.load(ROOT / "robots" / "arm7.urdf")
    place = tmp_path / "a.xml"
    for changes, told in (
        ({"mass": {"nobody": 1.0}}, "no link 'nobody'"),
        ({"mass": {robot.links[1]: -1.0}}, "want a finite number from 0"),
        ({"limits": {robot.dofs[0]: (1.0, -1.0)}}, "greater than the upper"),
        ({"colour": {}}, "'colour' cannot be changed"),
    ):
        with pytest.raises(UsageError, match=told):
            artsim.write(robot, place, **changes)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="array 'damping' was changed"):
        artsim.write(robot.with_model({"damping": robot.model.damping + 1.0}), place)
    assert not place.exists()


def test_items_of_kinds_that_no_other_format_has(tmp_path: Path) -> None:
    """Loops' axes with drives go to a URDF and back; an MJCF file tells of them."""
    robot = loop_of("joint", Pose((0.0, 0.0, 0.5)), Pose((0.0, 0.3, 0.5)))
    robot = dataclasses.replace(
        robot,
        loops=(dataclasses.replace(robot.loops[0], free=("x", "rz")),),
        tendons=(Tendon("shut.x", "loop", (TendonPoint("loop", "shut", 0.0),), lower=-0.1, upper=0.2, friction=0.3),),
        actuators=(
            Actuator(
                "shut.x", "shut.x", transmission="tendon", gain="pid", gain_parameters=(0.0,), bias="affine",
                bias_parameters=(0.0, -50.0, -2.0), inputs=("target", "velocity"), control_ranges=(None, None),
                held_inputs=(0.3, 0.0), force_range=(-10.0, 10.0),
            ),
        ),
        couplings=(Coupling(robot.joints[-1].name, robot.joints[0].name, (0.1, 2.0)),),
    )  # fmt: skip
    after, made = written(robot, tmp_path, ".urdf")
    assert made.losses.physical == []
    assert differences(robot, after, Losses()) == []
    _, made = written(robot, tmp_path, ".xml")
    assert {loss.kind for loss in made.losses.physical} == {"loop", "tendon", "actuator"}
    assert Robot.of(robot).nv == 2


# --- inertials that MuJoCo refuses -----------------------------------------------------------------------------------

IMPOSSIBLE = """<robot name="r"><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0.1" ixz="0" iyy="1" iyz="0" izz="3"/></inertial></link><link name="b"/><link name="c">
<inertial><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><mass value="2"/>
<inertia ixx="1" ixy="0.1" ixz="0" iyy="1" iyz="0.2" izz="3"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
<joint name="k" type="continuous"><parent link="b"/><child link="c"/></joint></robot>"""


def test_inertials_that_mujoco_refuses_are_kept_beside_those_that_it_takes(tmp_path: Path) -> None:
    robot = load_text(IMPOSSIBLE, name="r.urdf")
    after, made = written(robot, tmp_path, ".xml")
    assert made.proof is not None
    assert made.proof.holds
    assert {row.subject: row.verdict for row in made.proof.rows}["mass matrix"] == "equal"
    found = {link.name: link for link in after.links}
    for before in robot.links:
        link = found[before.name]
        assert (before.inertial is None) == (link.inertial is None)
        if before.inertial is not None and link.inertial is not None:
            assert before.inertial.inertia == link.inertial.inertia
            assert before.inertial.pose == link.inertial.pose
    assert [loss.name for loss in made.losses.physical] == ["a", "b", "c"]  # other programs take the raised ones
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(made.path))
    assert model.body("c").mass == 2.0
    assert max(model.body("c").inertia) == pytest.approx(sum(sorted(model.body("c").inertia)[:2]), rel=1e-9)


def test_an_inertial_that_was_changed_counts_in_place_of_the_kept_one(tmp_path: Path) -> None:
    _, made = written(load_text(IMPOSSIBLE, name="r.urdf"), tmp_path, ".xml")
    text = made.path.read_text()
    robot = load_text(text.replace('mass="1"', 'mass="1.5"', 1), name="m.xml")
    inertials = {link.name: link.inertial for link in robot.links}
    assert inertials["a"] is not None and inertials["a"].mass == 1.5
    assert sum("inertial of body 'a' in <custom> is not that of" in note.message for note in robot.notes) == 1
    assert inertials["b"] is None
    nearest = load_text(text, name="m.xml", balance_inertia=True)
    assert nearest.links[2].inertial is not None
    assert not any("triangle" in note.message for note in nearest.notes)


@pytest.mark.parametrize("data", ["1 2", "-1 0 0 0 1 0 0 0 1 0 0 1 0 3", "1 0 0 0 2 0 0 0 1 0 0 1 0 3", "1"])
def test_numbers_that_are_no_inertial_are_refused(data: str, tmp_path: Path) -> None:
    _, made = written(load_text(IMPOSSIBLE, name="r.urdf"), tmp_path, ".xml")
    text = made.path.read_text().replace("1 0 0 0 1 0 0 0 1 0.1 0 1 0 3", data, 1)
    with pytest.raises(ModelError, match=r"m\.xml:5: .* want mass, position, unit quaternion and six moments"):
        load_text(text, name="m.xml")


def test_sites_are_frames_of_sdf(tmp_path: Path) -> None:
    robot = model(
        """<worldbody><site name="w" pos="1 0 0"/><body name="b"><freejoint/><geom size=".1"/>
        <site name="s" pos="0 0 1" quat="0.6 0 0.8 0"/></body></worldbody>"""
    )
    _, made = written(robot, tmp_path, ".sdf")
    assert made.proof is not None
    assert made.proof.holds
    (frame,) = etree.parse(made.path).findall(".//frame")
    assert (frame.get("name"), frame.get("attached_to")) == ("s", "b")
    x, y, z, *rpy = map(float, str(frame.findtext("pose")).split())
    assert (x, y, z) == (0.0, 0.0, 1.0)
    assert np.abs(rotation_matrix(quaternion_from_rpy(*rpy)) - rotation_matrix((0.6, 0.0, 0.8, 0.0))).max() < 1e-15
    assert {(loss.outcome, loss.name) for loss in made.losses.entries if loss.kind == "site"} == {
        ("lost", "w"),
        ("changed", "s"),
    }
