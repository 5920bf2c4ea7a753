"""Robots as USD: read back by usd-core's own parser of physics, by the frames of joints in the world, by the proof."""

from __future__ import annotations

import builtins
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_articulation, load_text
from artsim.loaders.writers.write import Written, write_articulation
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import OutputError, UsageError
from tests.conftest import ROOT

ROBOTS = sorted(path for path in (ROOT / "robots").iterdir() if path.suffix in (".urdf", ".xml"))
LINKS = '<link name="a"/><link name="b"><inertial><origin xyz="0.1 0 0.2" rpy="0.1 0.2 0.3"/><mass value="2"/>' + (
    '<inertia ixx="1" ixy="0.1" ixz="0.2" iyy="2" iyz="0.3" izz="2.5"/></inertial></link>'
)


def stage_of(path: Path) -> Any:
    """The stage in a file."""
    layer = pytest.importorskip("pxr.Sdf").Layer.OpenAsAnonymous(str(path))
    return pytest.importorskip("pxr.Usd").Stage.Open(layer)


def written(robot: Articulation, folder: Path, **options: Any) -> Written:
    """The robot as a file of USD."""
    pytest.importorskip("pxr")
    return write_articulation(robot, folder / "robot.usda", **options)


def one_joint(folder: Path, kind: str, inside: str, *more: str) -> tuple[Any, Any, Written]:
    """The stage of a robot with one joint, the prim of the joint, and the result."""
    text = f'<joint name="j" type="{kind}"><origin xyz="0 1 0" rpy="0.3 0 0"/><parent link="a"/><child link="b"/>'
    robot = load_text(f'<robot name="r">{LINKS}{text}{inside}</joint>{"".join(more)}</robot>', name="r.urdf")
    made = written(robot, folder)
    stage = stage_of(made.path)
    return stage, stage.GetPrimAtPath("/r/joints/j"), made


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.name)
def test_robots_move_as_before(path: Path, tmp_path: Path) -> None:
    made = written(load_articulation(path), tmp_path)
    assert made.proof is not None
    assert made.proof.holds
    rows = {row.subject: row for row in made.proof.rows}
    for name in ("mass matrix", "gravity forces", "bias forces", "link positions", "link rotations"):
        assert rows[name].verdict in ("equal", "none"), rows[name]


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.name)
def test_frames_of_joints_meet(path: Path, tmp_path: Path) -> None:
    from_usd = pytest.importorskip("pxr.UsdPhysics")
    usd_geom, gf = pytest.importorskip("pxr.UsdGeom"), pytest.importorskip("pxr.Gf")
    robot = load_articulation(path)
    stage = stage_of(written(robot, tmp_path).path)
    cache = usd_geom.XformCache()
    met = 0
    for prim in stage.Traverse():
        if not prim.IsA(from_usd.Joint):
            continue
        joint = from_usd.Joint(prim)
        places = []
        for body, position, rotation in (
            (joint.GetBody0Rel(), joint.GetLocalPos0Attr(), joint.GetLocalRot0Attr()),
            (joint.GetBody1Rel(), joint.GetLocalPos1Attr(), joint.GetLocalRot1Attr()),
        ):
            local = gf.Matrix4d(gf.Rotation(gf.Quatd(rotation.Get())), gf.Vec3d(position.Get()))
            above = [cache.GetLocalToWorldTransform(stage.GetPrimAtPath(target)) for target in body.GetTargets()]
            places.append(np.array(local * above[0] if above else local))
        assert np.abs(places[0] - places[1]).max() < 2e-6, prim
        met += 1
    assert met >= sum(joint.kind != "free" for joint in robot.joints)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the name before 26, which has another since
def test_the_parser_of_usd_finds_the_articulation(tmp_path: Path) -> None:
    physics, sdf = pytest.importorskip("pxr.UsdPhysics"), pytest.importorskip("pxr.Sdf")
    robot = load_articulation(ROOT / "robots" / "arm7.urdf")
    stage = stage_of(written(robot, tmp_path).path)
    found = physics.LoadUsdPhysicsFromRange(stage, [sdf.Path("/")])
    (root, articulations) = found[physics.ObjectType.Articulation]
    assert [str(path) for path in root] == ["/arm7"]
    assert len({str(path) for path in articulations[0].articulatedBodies} - {""}) == len(robot.links)
    names, joints = found[physics.ObjectType.RevoluteJoint]
    limits = {path.name: desc.limit for path, desc in zip(names, joints, strict=True)}
    for joint in robot.joints:
        if joint.kind == "revolute":
            assert joint.lower is not None and joint.upper is not None
            assert limits[joint.name].lower == pytest.approx(math.degrees(joint.lower), rel=1e-6)
            assert limits[joint.name].upper == pytest.approx(math.degrees(joint.upper), rel=1e-6)
    (_, bodies) = found[physics.ObjectType.RigidBody]
    assert len(bodies) == len(robot.links)
    assert sum(len(body.collisions) for body in bodies) == sum(
        geom.role == "collision" for link in robot.links for geom in link.geoms
    )


def test_masses_and_inertias(tmp_path: Path) -> None:
    physics, gf = pytest.importorskip("pxr.UsdPhysics"), pytest.importorskip("pxr.Gf")
    stage, _, _ = one_joint(tmp_path, "fixed", "")
    mass = physics.MassAPI(stage.GetPrimAtPath("/r/links/b"))
    assert mass.GetMassAttr().Get() == 2.0
    assert tuple(mass.GetCenterOfMassAttr().Get()) == pytest.approx((0.1, 0.0, 0.2))
    turn = np.array(gf.Matrix3d(gf.Rotation(gf.Quatd(mass.GetPrincipalAxesAttr().Get())))).T
    whole = turn @ np.diag(mass.GetDiagonalInertiaAttr().Get()) @ turn.T
    own = np.array([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]])
    rotation = np.array(  # Rz(0.3) Ry(0.2) Rx(0.1)
        gf.Matrix3d(
            gf.Rotation(gf.Vec3d(1, 0, 0), math.degrees(0.1))
            * gf.Rotation(gf.Vec3d(0, 1, 0), math.degrees(0.2))
            * gf.Rotation(gf.Vec3d(0, 0, 1), math.degrees(0.3))
        )
    ).T
    expected = rotation @ own @ rotation.T
    assert np.abs(whole - expected).max() < 1e-6
    xx, yy, zz, xy, xz, yz = stage.GetPrimAtPath("/r/links/b").GetAttribute("newton:inertia").Get()
    assert np.abs(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - expected).max() < 1e-14


def test_values_of_joints_are_in_degrees(tmp_path: Path) -> None:
    limit = '<axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="3" velocity="4"/>'
    inside = f'{limit}<dynamics damping="0.5" friction="0.6"/>'
    stage, prim, made = one_joint(tmp_path, "revolute", inside)
    degree = math.pi / 180

    def read(name: str) -> float:
        return float(prim.GetAttribute(name).Get())

    assert stage and prim.GetTypeName() == "PhysicsRevoluteJoint"
    assert prim.GetAttribute("physics:axis").Get() == "Y"
    assert (read("physics:lowerLimit"), read("physics:upperLimit")) == pytest.approx((-1 / degree, 2 / degree))
    assert read("newton:damping") == pytest.approx(0.5 * degree)
    assert read("newton:friction") == pytest.approx(0.6)
    assert read("newton:velocityLimit") == pytest.approx(4 / degree)
    assert read("physxJoint:maxJointVelocity") == pytest.approx(4 / degree)
    assert read("drive:angular:physics:maxForce") == 3.0
    assert not [loss for loss in made.losses.physical if loss.kind == "joint"]


def test_springs_are_drives(tmp_path: Path) -> None:
    spring = '<gazebo reference="j"><springStiffness>5</springStiffness><springReference>0.5</springReference></gazebo>'
    stage, prim, _ = one_joint(tmp_path, "continuous", '<axis xyz="1 0 0"/>', spring)
    assert stage and prim.GetAttribute("drive:angular:physics:stiffness").Get() == pytest.approx(5 * math.pi / 180)
    assert prim.GetAttribute("drive:angular:physics:targetPosition").Get() == pytest.approx(math.degrees(0.5))
    assert prim.GetAttribute("physics:upperLimit").Get() == math.inf


def test_slides_and_axes_beside_the_frame(tmp_path: Path) -> None:
    stage, prim, _ = one_joint(
        tmp_path, "prismatic", '<axis xyz="0.6 0 0.8"/><limit lower="-1" upper="2" effort="0" velocity="0"/>'
    )
    gf = pytest.importorskip("pxr.Gf")
    assert stage and prim.GetTypeName() == "PhysicsPrismaticJoint"
    turn = gf.Rotation(gf.Quatd(prim.GetAttribute("physics:localRot1").Get()))
    assert tuple(turn.TransformDir(gf.Vec3d(0, 0, 1))) == pytest.approx((0.6, 0, 0.8), abs=1e-6)
    assert (prim.GetAttribute("physics:lowerLimit").Get(), prim.GetAttribute("physics:upperLimit").Get()) == (-1, 2)


def test_mimics_for_newton_and_physx(tmp_path: Path) -> None:
    robot = load_articulation(ROOT / "robots" / "parallel_gripper.urdf")
    stage = stage_of(written(robot, tmp_path).path)
    (coupling,) = robot.couplings
    prim = stage.GetPrimAtPath(f"/parallel_gripper/joints/{coupling.follower}")
    leader = f"/parallel_gripper/joints/{coupling.leader}"
    offset, ratio = coupling.coefficients
    assert [str(path) for path in prim.GetRelationship("newton:mimicJoint").GetTargets()] == [leader]
    assert prim.GetAttribute("newton:mimicCoef1").Get() == pytest.approx(ratio)
    assert prim.GetAttribute("physxMimicJoint:transX:gearing").Get() == pytest.approx(-ratio)
    assert prim.GetAttribute("physxMimicJoint:transX:offset").Get() == pytest.approx(-offset)


def test_links_that_do_not_touch_are_filtered(tmp_path: Path) -> None:
    text = (ROOT / "robots" / "quadruped.urdf").read_text()
    touching = text.replace("</robot>", "<gazebo><selfCollide>true</selfCollide></gazebo></robot>")
    for source, flag in ((text, False), (touching, True)):
        robot = load_text(source, name="q.urdf", path=ROOT / "robots" / "quadruped.urdf")
        stage = stage_of(written(robot, tmp_path, force=True).path)
        assert stage.GetDefaultPrim().GetAttribute("newton:selfCollisionEnabled").Get() is flag


def test_what_usd_does_not_say_is_told(tmp_path: Path) -> None:
    made = written(load_articulation(ROOT / "robots" / "clamp.xml"), tmp_path)
    assert {loss.kind for loss in made.losses.physical} >= {"actuator", "tendon"}
    with pytest.raises(UsageError, match="not written, since the format does not say all"):
        written(load_articulation(ROOT / "robots" / "clamp.xml"), tmp_path, force=True, strict=True)
    with pytest.raises(OutputError, match="exists; --force replaces it"):
        written(load_articulation(ROOT / "robots" / "clamp.xml"), tmp_path)


def test_a_changed_file_is_not_proved(tmp_path: Path) -> None:
    pytest.importorskip("pxr")
    from artsim.loaders.writers.usd_proof import prove_usd

    robot = load_articulation(ROOT / "robots" / "arm7.urdf")
    made = written(robot, tmp_path)
    text = made.path.read_text()
    for old, new, subject in (
        ("physics:mass = ", "physics:mass = 1", "links"),
        ("upperLimit = ", "upperLimit = 1", "joints"),
    ):
        assert old in text
        made.path.write_text(text.replace(old, new))
        proof = prove_usd(robot, made.path, made.losses)
        assert {row.subject: row.verdict for row in proof.rows}[subject] == "not told", subject


def test_without_usd_core_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "pxr":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(UsageError, match=r"USD needs usd-core: `pip install artsim\[usd\]`"):
        artsim.write(artsim.load(ROOT / "robots" / "finger.urdf"), tmp_path / "f.usda")
