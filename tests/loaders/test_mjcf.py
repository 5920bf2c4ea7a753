"""MJCF, element by element: small models against MuJoCo, and the words with which wrong ones are refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from artsim.sim.quantities.robot import Robot
from tests.conftest import ROOT

mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run

LEG = ROOT / "robots" / "leg.xml"


def read(text: str, **options: Any) -> Articulation:
    return load_text(text, name="model.xml", **options)


def world(content: str, more: str = "") -> str:
    return f"<mujoco>{more}<worldbody>{content}</worldbody></mujoco>"


def assert_agrees(text: str, count: int = 3) -> Articulation:
    """Poses, reference, mass matrix and forces are MuJoCo's at random configurations, entry for entry."""
    articulation = read(text)
    against(Robot.of(articulation), mujoco.MjModel.from_xml_string(text), count)
    return articulation


def against(robot: Robot, model: mujoco.MjModel, count: int = 3) -> None:
    """The same of a robot and a model that are read."""
    data = mujoco.MjData(model)
    rng = np.random.default_rng(7)
    assert (robot.nq, robot.nv, len(robot.links)) == (model.nq, model.nv, model.nbody)
    np.testing.assert_allclose(robot.reference, model.qpos0, atol=1e-12)
    for _ in range(count):
        q, v = model.qpos0 + rng.normal(size=model.nq), rng.normal(size=model.nv)
        mujoco.mj_normalizeQuat(model, q)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        out = robot.compute(q, v, quantities=["mass_matrix", "bias", "link_position"])
        np.testing.assert_allclose(out["link_position"], data.xpos, atol=1e-12)
        np.testing.assert_allclose(out["mass_matrix"], M, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(out["bias"], data.qfrc_bias, rtol=1e-10, atol=1e-10)


def assert_refused(text: str, *words: str, **options: Any) -> None:
    with pytest.raises(ModelError) as caught:
        read(text, **options)
    assert str(caught.value).startswith("model.xml"), caught.value
    for word in words:
        assert word in str(caught.value), caught.value


# --- frames ----------------------------------------------------------------------------------------------------------

ROTATIONS = [
    'quat="1 2 3 4"',
    'axisangle="1 2 3 40"',
    'euler="10 20 30"',
    'xyaxes="1 1 0 0 1 2"',
    'zaxis="1 -2 .5"',
    'zaxis="0 0 -1"',
    'zaxis="1e-12 0 -1"',
]


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_every_form_of_rotation(rotation: str) -> None:
    body = f'<body pos="1 2 3" {rotation}><joint axis="1 1 0" pos=".1 .2 .3"/><geom size=".1 .2 .3" type="box"/></body>'
    assert_agrees(world(body))
    geom = f'<body><joint/><geom size=".1 .2 .3" type="box" pos=".1 .2 .3" {rotation}/></body>'
    assert_agrees(world(geom))


@pytest.mark.parametrize("sequence", ["xyz", "XYZ", "zyx", "ZXZ", "xYz"])
@pytest.mark.parametrize("unit", ["degree", "radian"])
def test_euler_sequences(sequence: str, unit: str) -> None:
    more = f'<compiler angle="{unit}" eulerseq="{sequence}"/>'
    body = '<body euler=".3 .5 .7"><joint axis="1 2 3" ref=".4"/><geom size=".1 .2 .3" type="box"/></body>'
    assert_agrees(world(body, more))


def test_frames_move_what_is_in_them() -> None:
    inner = '<joint pos=".1 0 0" axis="1 0 0"/><inertial pos="1 0 0" mass="2" diaginertia="1 2 2.5"/>'
    body = f'<body><frame pos="1 2 3" euler="0 0 40"><frame euler="5 0 0">{inner}</frame></frame></body>'
    assert_agrees(world(f'<frame pos="0 1 0" euler="0 90 0">{body}</frame>'))


# --- joints ----------------------------------------------------------------------------------------------------------

BOX = '<geom type="box" size=".1 .2 .3" pos=".1 .2 .3" euler="10 20 30"/>'
AXES = ("1 0 0", "0 1 0", "0 0 1")
JOINTS = {
    "hinges in one body": '<joint pos=".1 0 0" axis="1 0 0"/><joint pos="0 .2 0" axis="0 1 1" ref="30"/>',
    "slide then hinge": '<joint type="slide" axis="1 1 0" ref=".3"/><joint axis="0 0 1" pos="1 0 0" ref="-20"/>',
    "hinge then slide": '<joint axis="0 1 0" pos="1 0 0"/><joint type="slide" axis="1 1 0" ref=".3"/>',
    "hinge then ball": '<joint axis="0 1 0" pos="1 0 0" ref="50"/><joint type="ball" pos=".1 .2 .3"/>',
    "ball then slide": '<joint type="ball" pos=".1 .2 .3"/><joint type="slide" axis="1 0 0"/>',
    "six": "".join(
        f'<joint type="{kind}" axis="{axis}"/>' for kind in ("slide", "hinge") for axis in ("1 0 0", "0 1 0", "0 0 1")
    ),
    "free": "<freejoint/>",
    "free, turned": '<joint type="free" pos="1 2 3" armature=".2"/>',
    "armature": '<joint armature=".3"/>',
}


@pytest.mark.parametrize("name", JOINTS)
def test_joints_of_a_body(name: str) -> None:
    below = f'<body pos="0 0 1" euler="0 30 0"><joint axis="1 0 0" ref="10"/>{BOX}</body>'
    assert_agrees(world(f'<body pos="1 2 3" euler="40 50 60">{JOINTS[name]}{BOX}{below}</body>'))


ALIGNED = {
    "asked for": ('<freejoint align="true"/>', "", f'{BOX}<geom size=".1" pos="1 0 0"/><site name="s" pos="1 2 3"/>'),
    "by the compiler": ('<joint type="free"/>', 'alignfree="true"', f"<frame euler='1 2 3' pos='0 1 0'>{BOX}</frame>"),
    "with an inertial": (
        '<freejoint align="true"/>',
        "",
        '<inertial pos="1 2 3" mass="2" fullinertia="2 3 4 .1 .2 .3"/><site name="s" pos="1 2 3"/>',
    ),
    "not with a body below": ('<freejoint align="true"/>', "", f"{BOX}<body>{BOX}</body>"),
    "not against its will": ('<freejoint align="false"/>', 'alignfree="true"', BOX),
}


@pytest.mark.parametrize("name", ALIGNED)
def test_free_bodies_are_aligned_with_their_inertia(name: str) -> None:
    joint, compiler, content = ALIGNED[name]
    text = world(f'<body pos="1 2 3" euler="40 50 60">{joint}{content}</body>', f"<compiler {compiler}/>")
    articulation = assert_agrees(text)
    model = mujoco.MjModel.from_xml_string(text)
    for site in articulation.sites:
        np.testing.assert_allclose(site.pose.position, model.site(site.name).pos, atol=1e-14)
    for geom, position in zip(articulation.links[1].geoms, model.geom_pos, strict=False):
        np.testing.assert_allclose(geom.pose.position, position, atol=1e-14)


SPRINGS = {
    "hinges": f'<joint springdamper=".1 .7"/>{BOX}<body><joint axis="1 0 0" springdamper=".2 1"/>{BOX}</body>',
    "ball": f'<joint type="ball" springdamper=".1 1" pos=".3 0 0"/>{BOX}',
    "free above": f'<freejoint/>{BOX}<body><joint type="slide" armature=".2" springdamper=".2 1"/>{BOX}</body>',
    "two in a body": f'<joint axis="1 0 0" pos="0 0 1" springdamper=".2 1"/><joint pos="1 0 0"/>{BOX}',
}


@pytest.mark.parametrize("name", SPRINGS)
def test_springs_by_time_constant_and_damping_ratio(name: str) -> None:
    text = world(
        f'<body pos="1 2 3" euler="40 50 60">{SPRINGS[name]}</body>', '<compiler angle="radian" settotalmass="7"/>'
    )
    articulation = read(text)
    model = mujoco.MjModel.from_xml_string(text)
    joints = [joint for joint in articulation.joints if joint.kind != "fixed"]
    assert [joint.stiffness for joint in joints] == pytest.approx(model.jnt_stiffness.tolist(), rel=1e-12)
    damping = [model.dof_damping[address] for address in model.jnt_dofadr]
    assert [joint.damping for joint in joints] == pytest.approx(damping, rel=1e-12)
    assert_refused(world(f'<body><joint springdamper="1 -1"/>{BOX}</body>'), "springdamper is 1 -1")


def test_names_of_what_has_none() -> None:
    text = world(
        f'<body>{BOX}<joint/><body name="a">{BOX}<joint/><joint axis="1 0 0"/><joint name="j" axis="0 1 0"/></body>'
        "</body>"
        f'<body name="body_4">{BOX}</body><body>{BOX}<body>{BOX}</body></body>'
    )
    robot = Robot.of(read(text))
    assert robot.links == ("world", "body_1", "a", "body_4", "body_4_", "body_5")
    assert robot.dofs == ("body_1", "a_0", "a_1", "j")
    free = Robot.of(read(world(f'<body name="b"><freejoint/>{BOX}</body>')))
    assert free.coords == ("b.x", "b.y", "b.z", "b.qw", "b.qx", "b.qy", "b.qz")


def test_ranges_and_their_units() -> None:
    joints = (
        '<joint name="a" range="-90 90"/><joint name="b" type="slide" range="-90 90"/>'
        '<joint name="c" axis="1 0 0" range="-90 90" limited="false"/><joint name="d" axis="0 1 0" range="0 0"/>'
    )
    by_name = {joint.name: joint for joint in read(world(f"<body>{joints}{BOX}</body>")).joints}
    assert (by_name["a"].lower, by_name["a"].upper) == pytest.approx((-math.pi / 2, math.pi / 2))
    assert (by_name["b"].lower, by_name["b"].upper) == (-90, 90)
    assert by_name["c"].lower is by_name["d"].lower is None
    assert_refused(world(f'<body><joint range="1 2"/>{BOX}</body>', '<compiler autolimits="false"/>'), "autolimits")
    assert_refused(world(f'<body><joint range="2 1" limited="true"/>{BOX}</body>'), "range is 2 to 1")


# --- defaults, inertias ----------------------------------------------------------------------------------------------


def test_classes_inherit() -> None:
    more = """<default><geom density="500" size=".1 .3"/><joint armature=".1" axis="1 0 0"/>
      <default class="a"><geom type="capsule"/><joint damping="2"/>
        <default class="b"><geom size=".2"/><joint armature=".7" type="slide"/></default></default></default>"""
    body = """<body childclass="a"><joint/><geom/><body pos="0 0 1"><joint class="b"/><geom class="b"/>
      <frame childclass="b"><geom pos="1 0 0"/></frame></body><body childclass="main"><joint/><geom/></body></body>"""
    articulation = assert_agrees(world(body, more))
    assert [joint.damping for joint in articulation.joints] == [2, 2, 0]


INERTIALS = {
    "diagonal": '<inertial pos="1 2 3" mass="2" diaginertia="1 2 2.5" euler="10 20 30"/>',
    "full": '<inertial pos="1 2 3" mass="2" fullinertia="2 3 4 .1 .2 .3"/>',
    "geoms": '<geom size=".1"/><geom size=".2 .3" type="capsule" pos="1 0 0" mass="3"/>'
    '<geom type="ellipsoid" size=".1 .2 .3" pos="0 1 0" group="3" euler="20 0 0"/>',
    "both": '<inertial pos="1 2 3" mass="2" diaginertia="1 2 2.5"/><geom size=".1"/>',
}
COMPILERS = [
    "",
    'boundmass="4" boundinertia="2.2"',
    'settotalmass="7"',
    'inertiafromgeom="true"',
    'inertiagrouprange="0 2"',
]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", INERTIALS)
def test_inertia(name: str, compiler: str) -> None:
    below = f'<body pos="0 0 1"><joint axis="1 0 0"/><geom size=".3"/>{INERTIALS[name]}</body>'
    if name in ("diagonal", "full") and "fromgeom" in compiler:
        below = below.replace("<inertial", '<geom size=".1"/><inertial')
    assert_agrees(
        world(f'<geom size="1"/><body pos="1 0 0"><joint/><geom size=".2"/>{below}</body>', f"<compiler {compiler}/>")
    )


def test_a_body_of_the_least_mass_weighs_at_its_origin() -> None:
    """Its inertia about its own joint is the least one, wherever it is. (MuJoCo puts the mass at twice its place.)"""
    for place in ("0 0 0", "1 2 3"):
        text = world(f'<body pos="{place}"><joint/></body>', '<compiler boundmass=".3" boundinertia=".01"/>')
        robot = Robot.of(read(text))
        M = robot.compute(np.zeros(robot.nq), quantities=["mass_matrix"])["mass_matrix"]
        assert M.item() == pytest.approx(0.01, rel=1e-15)


def test_an_inertia_that_no_body_has() -> None:
    body = '<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/></body>'
    assert_refused(world(body), ":1: <body>", "A + B >= C", "balanceinertia")
    assert_agrees(world(body, '<compiler balanceinertia="true"/>'))
    assert read(world(body), balance_inertia=True).links[1].inertial


def test_meshes_of_older_files_are_exact_for_all(tmp_path: Path) -> None:
    """A tetrahedron with a dent: pyramids of negative volume make the difference."""
    (tmp_path / "m.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv .1 .1 .1\n" + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 5\nf 3 4 5\nf 4 2 5\n"
    )
    path = tmp_path / "model.xml"
    masses = []
    for compiler, mesh in (("", 'inertia="exact"'), ('exactmeshinertia="true"', ""), ("", "")):
        asset = f'<compiler {compiler}/><asset><mesh name="m" file="m.obj" {mesh}/></asset>'
        path.write_text(world('<body><joint/><geom type="mesh" mesh="m"/></body>', asset))
        inertial = load_articulation(path).links[1].inertial
        assert inertial
        masses.append(inertial.mass)
    assert masses[0] == pytest.approx(50)
    assert masses[1] == masses[0] != masses[2]


# --- equalities ------------------------------------------------------------------------------------------------------


def test_a_joint_equality_is_a_polynomial_about_the_references() -> None:
    bodies = f'<body><joint name="a" ref="20"/>{BOX}</body><body><joint name="b" ref="-40"/>{BOX}</body>'
    text = f"""<mujoco><worldbody>{bodies}</worldbody><equality>
      <joint joint1="a" joint2="b" polycoef=".1 .2 .3 -.4 .5"/></equality></mujoco>"""
    robot = Robot.of(read(text))
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for x in (-1.3, 0.2, 0.9):
        y = np.polynomial.polynomial.polyval(x, robot.articulation.couplings[0].coefficients)
        data.qpos[:] = y, x
        mujoco.mj_forward(model, data)
        assert abs(data.efc_pos[0]) < 1e-12
    assert robot.independent_dofs == ("b",)
    fixed = text.replace('joint2="b"', "").replace("polycoef", "polycoef")
    coupling = read(fixed).couplings[0]
    assert (coupling.leader, coupling.coefficients) == (None, pytest.approx((math.radians(20) + 0.1,)))


def test_equalities_of_what_is_not_there() -> None:
    bodies = f'<body name="x"><joint name="knee"/>{BOX}</body>'
    for equality, word in (
        ('<joint joint1="kne"/>', "did you mean 'knee'"),
        ('<joint joint1="knee" joint2="knee"/>', "follows itself"),
        ('<connect body1="y" anchor="0 0 0"/>', "body1 'y' does not exist"),
        ('<weld site1="s" site2="t"/>', "site1 's' does not exist"),
    ):
        assert_refused(f"<mujoco><worldbody>{bodies}</worldbody><equality>{equality}</equality></mujoco>", word)


# --- what is made of the text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 10, 11])
def test_replicas_have_mujoco_s_names_and_places(count: int) -> None:
    text = world(
        f"""<replicate count="{count}" offset="1 .5 .25" euler="10 20 30" sep="-"><replicate count="2" offset="0 0 2">
        <body name="b"><joint name="j"/>{BOX}<site name="s"/></body></replicate></replicate>"""
    )
    articulation = assert_agrees(text, 1)
    model = mujoco.MjModel.from_xml_string(text)
    assert [link.name for link in articulation.links] == [model.body(i).name for i in range(model.nbody)]
    assert [joint.name for joint in articulation.joints] == [model.joint(i).name for i in range(model.njnt)]


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "model.xml").write_text('<mujoco>\n<include file="parts/a.xml"/></mujoco>')
    (tmp_path / "parts" / "a.xml").write_text(
        '<mujoco><worldbody>\n<include file="parts/b.xml"/>\n</worldbody></mujoco>'
    )
    part = tmp_path / "parts" / "b.xml"
    part.write_text(f"<mujocoinclude>\n\n<body><joint/>{BOX}</body></mujocoinclude>")
    articulation = load_articulation(tmp_path / "model.xml")
    assert (articulation.links[1].source.file, articulation.links[1].source.line) == (str(part), 3)
    assert Robot.of(load_text(articulation.text, name="stored")).nv == 1, "outputs hold the model in one file"
    part.write_text('<mujoco><body><joint/><geom size="1" typo="2"/></body></mujoco>')
    with pytest.raises(ModelError, match=r"b\.xml:1: <geom> of <body>: attribute 'typo'"):
        load_articulation(tmp_path / "model.xml")
    part.write_text('<mujoco><include file="parts/a.xml"/></mujoco>')
    with pytest.raises(
        ModelError, match=r"b\.xml:1: .*'a\.xml' is already included.*model\.xml -> .*a\.xml -> .*b\.xml"
    ):
        load_articulation(tmp_path / "model.xml")
    for name, word in (("../../../../etc/passwd", "outside the allowed roots"), ("gone.xml", "not found: tried")):
        part.write_text(f'<mujoco><include file="{name}"/></mujoco>')
        with pytest.raises(ModelError, match=word):
            load_articulation(tmp_path / "model.xml")


def test_keyframes_and_options() -> None:
    articulation = load_articulation(LEG)
    key = articulation.keyframes[0]
    assert (key.name, len(key.qpos), key.qvel, key.control) == ("crouched", 11, (), ())
    assert articulation.options.timestep == 0.002
    off = '<option gravity="0 0 -1"><flag gravity="disable" limit="disable"/></option>'
    articulation = read(world(f'<body><joint range="0 1"/>{BOX}</body>', off))
    assert articulation.options.gravity == (0, 0, 0)
    assert articulation.joints[0].lower is None


def test_a_keyframe_holds_activations_and_says_what_it_does_not_start() -> None:
    actuators = '<actuator><cylinder joint="j"/><motor joint="j"/><cylinder joint="j"/></actuator>'
    articulation = read(beside(f'{actuators}<keyframe><key name="k" act=".5 -2" time="3"/></keyframe>'))
    assert articulation.keyframes[0].activation == (0.5, -2.0)
    assert [note.message for note in articulation.notes if "key 'k': time" in note.message]


def test_made_up_names_avoid_those_of_the_file() -> None:
    motors = '<motor name="actuator_1" joint="j"/><motor joint="j"/>'
    sensors = '<jointpos name="jointvel_1" joint="j"/><jointvel joint="j"/>'
    articulation = read(beside(f"<actuator>{motors}</actuator><sensor>{sensors}</sensor>"))
    assert [actuator.name for actuator in articulation.actuators] == ["actuator_1", "actuator_1_"]
    assert [sensor.name for sensor in articulation.sensors] == ["jointvel_1", "jointvel_1_"]


def test_the_leg_of_the_robots_folder() -> None:
    articulation = assert_agrees(LEG.read_text())
    robot = Robot.of(articulation)
    assert (robot.nv, len(robot.independent_dofs)) == (10, 9)
    assert [actuator.target for actuator in articulation.actuators] == ["hip_roll", "hip_pitch", "knee"]


# --- what is refused -------------------------------------------------------------------------------------------------

BODY = f'<body name="b"><joint name="j"/>{BOX}</body>'


def beside(section: str) -> str:
    return f"<mujoco><worldbody>{BODY}</worldbody>{section}</mujoco>"


FIELD = '<mujoco><asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset></mujoco>'
REFUSED = {
    "91 unknown attribute": (world('<body poss="1 2 3"/>'), (":1: <body> of", "'poss'", "did you mean 'pos'")),
    "93 replicate": (world(f'<replicate count="100000000">{BODY}</replicate>'), ("limit",)),
    "94 height field": (FIELD, ("limit",)),
    "95 no time": ('<mujoco><option timestep="0"/></mujoco>', ("timestep is 0 s",)),
    "95 nan": ('<mujoco><option timestep="nan"/></mujoco>', ("not a finite number",)),
    "95 back": ('<mujoco><option timestep="-1"/></mujoco>', ("timestep is -1 s",)),
    "96 quaternion": (world(f'<body quat="0 0 0 0">{BOX}</body>'), ("quat has length 0",)),
    "97 two free": (world(f"<body><freejoint/><freejoint/>{BOX}</body>"), ("free joint stands alone",)),
    "97 free below": (world(f"<body>{BOX}<body><freejoint/>{BOX}</body></body>"), ("free joint stands alone",)),
    "98 massless": (world('<body name="b"><joint/></body>'), ("body 'b' moves and has no mass",)),
    "99 keyframe": (beside('<keyframe><key qpos="1 2"/></keyframe>'), ("qpos", "2 numbers", "want 0 to 1")),
    "100 element": (world("<boddy/>"), ("<boddy>", "did you mean 'body'")),
    "100 class": (world(f'<body childclass="x">{BOX}</body>'), ("default class 'x' does not exist",)),
    "101 flex": (world('<flexcomp name="f"><elasticity young="1"/></flexcomp>'), ("flexcomp 'f'", "not supported yet")),
    "101 composite": (
        world('<body><composite type="cable" count="3"><joint kind="main"/><geom size="1"/></composite></body>'),
        ("<composite>", "not supported yet"),
    ),
    "mocap": (world(f'<body mocap="true">{BOX}<joint/></body>'), ("a mocap body stands in the world",)),
    "101 plugin": (world('<body><plugin plugin="x"/></body>'), ("<plugin>", "not supported yet")),
    "global": ('<mujoco><compiler coordinate="global"/></mujoco>', ("coordinate 'global'",)),
    "two names": (world(f'{BODY}\n<body name="b">{BOX}</body>'), (":2:", "body 'b' is already defined at line 1")),
    **{
        f"two {kind}s": (beside(f"<{section}>{one}{one}</{section}>"), (f"{kind} 'x' is already defined at line 1",))
        for kind, section, one in (
            ("actuator", "actuator", '<motor name="x" joint="j"/>'),
            ("tendon", "tendon", '<fixed name="x"><joint joint="j" coef="1"/></fixed>'),
            ("sensor", "sensor", '<jointpos name="x" joint="j"/>'),
            ("key", "keyframe", '<key name="x"/>'),
        )
    },
    "99 activations": (
        beside('<actuator><cylinder joint="j"/></actuator><keyframe><key act="1 2"/></keyframe>'),
        ("act", "2 numbers", "want 0 to 1"),
    ),
    "class twice": (beside('<default><default class="a"/><default class="a"/></default>'), ("'a' is already",)),
    "numbers": (world('<body pos="1 2"/>'), ("pos '1 2' holds 2 numbers, want 3",)),
    "overflow": (world('<body><joint/><geom size="1e308"/></body>'), ("a number beyond 1e+30",)),
    "axis": (world(f'<body><joint axis="0 0 0"/>{BOX}</body>'), ("axis has length 0",)),
    "size": (world('<geom type="box" size="1 2"/>'), ("size is 1 2 0, want 3 positive",)),
    "mesh": (world('<geom type="mesh" mesh="m"/>'), ("mesh 'm' does not exist",)),
    "fromto": (world('<geom type="capsule" size="1" fromto="0 0 0 0 0 0"/>'), ("coincide",)),
    "world joint": (world("<joint/>"), ("joint",)),
    "tendon inertia": (
        beside('<tendon><fixed armature="-1"><joint joint="j" coef="1"/></fixed></tendon>'),
        ("armature is -1, want at least 0",),
    ),
    "actuator": (
        beside('<actuator><motor joint="k"/></actuator>'),
        ("joint 'k' does not exist",),
    ),
    "sensor": (
        beside('<sensor><jointpos joint="k"/></sensor>'),
        ("joint 'k' does not exist",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, words = REFUSED[name]
    assert_refused(text, *words)


def test_what_is_not_supported_can_be_left_out() -> None:
    text = world(f'<flexcomp name="f"><elasticity young="1"/></flexcomp>{BODY}')
    articulation = read(text, ignore_unsupported=True)
    assert [link.name for link in articulation.links] == ["world", "b"]
    assert any("flexcomp 'f'" in str(note) and "left out" in str(note) for note in articulation.notes)


def test_a_body_whose_mass_came_from_a_plugin_stands_still() -> None:
    asset = '<asset><mesh name="t"><plugin instance="i"/></mesh></asset>'
    text = world(f'<body name="b"><joint/><geom type="sdf" mesh="t"/></body>{BODY}', asset).replace(
        '"b"><joint n', '"c"><joint n'
    )
    assert_refused(text, "<plugin> of mesh 't'", "not supported yet")
    articulation = read(text, ignore_unsupported=True)
    assert [joint.kind for joint in articulation.joints] == ["fixed", "revolute"]
    assert any("body 'b' stands still" in str(note) for note in articulation.notes)


def test_102_sizes_are_of_no_concern() -> None:
    assert read('<mujoco><size memory="900G"/></mujoco>').links[0].name == "world"


def test_deep_ropes_and_frames_are_read() -> None:
    rope = f"<body>{BOX}<joint/>" * 400 + "</body>" * 400
    assert len(read(world(rope)).links) == 401
    frames = "<frame>" * 900 + BODY + "</frame>" * 900
    assert len(read(world(frames)).links) == 2


def test_a_floating_base_is_the_file_s_business() -> None:
    assert_refused(world(BODY), "freejoint", base="floating")


def test_springs_that_a_spatial_tendon_s_inertia_would_change_are_told() -> None:
    """That of fixed ones counts (test_mjcf_corners.py)."""
    text = world(
        f'<site name="w"/><body><joint name="j" springdamper=".1 1"/>{BOX}<site name="s" pos="0 0 1"/></body>',
        '<tendon><spatial armature="1"><site site="w"/><site site="s"/></spatial></tendon>',
    )
    assert any("springdamper of joint 'j' leaves out" in str(note) for note in read(text).notes)


def test_joints_that_do_the_same_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(
        """<mujoco><worldbody><body name="box"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
        <joint type="slide" axis="1 1 0"/><geom size="0.1"/></body></worldbody></mujoco>"""
    )
    with pytest.raises(ModelError, match=r"'box' moves without any inertia.*where several do the same"):
        artsim.simulate(artsim.load(path), steps=1)
