"""What MuJoCo 4 takes besides: meshes that it makes itself, mixed signs of solref, the plugin mujoco.pid."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_articulation, load_text
from artsim.loaders.mjcf.builtin import make_mesh
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.rotations import rotation_matrix, symmetric

SHAPES = [
    *(("sphere", str(n)) for n in range(4)),
    *(("hemisphere", str(n)) for n in (0, 1, 4)),
    *(("cone", params) for params in ("3 0", "8 0.5", "20 1")),
    *(("supersphere", params) for params in ("4 1 1", "9 0.5 0.7", "8 2.5 0.2")),
    *(("supertorus", params) for params in ("8 0.3 1 1", "5 1 0.5 2")),
    *(("wedge", params) for params in ("8 6 90 60 0", "5 7 120 45 0.6")),
]
mujoco.set_mju_user_warning(lambda _: None)


def model(kind: str, params: str, attributes: str = "") -> str:
    mesh = f'<mesh name="m" builtin="{kind}" params="{params}" {attributes}/>'
    body = '<body><freejoint/><geom type="mesh" mesh="m"/></body>'
    return f"<mujoco><asset>{mesh}</asset><worldbody>{body}</worldbody></mujoco>"


@pytest.mark.parametrize(("kind", "params"), SHAPES)
def test_a_builtin_mesh_is_mujoco_s(kind: str, params: str) -> None:
    theirs = mujoco.MjModel.from_xml_string(model(kind, params))
    made = make_mesh(kind, [float(x) for x in params.split()])
    assert len(made.vertices) == theirs.nmeshvert
    points = (made.vertices - theirs.mesh_pos[0]) @ rotation_matrix(theirs.mesh_quat[0])
    np.testing.assert_allclose(points, theirs.mesh_vert, atol=1e-6)
    if len(made.faces):
        np.testing.assert_array_equal(made.faces, theirs.mesh_face)
    inertial = load_text(model(kind, params), name="m").links[1].inertial
    assert inertial is not None
    R, T = rotation_matrix(inertial.pose.rotation), rotation_matrix(theirs.body_iquat[1])
    assert inertial.mass == pytest.approx(theirs.body_mass[1], rel=1e-7)
    np.testing.assert_allclose(inertial.pose.position, theirs.body_ipos[1], atol=1e-7)
    expected = T @ np.diag(theirs.body_inertia[1]) @ T.T
    np.testing.assert_allclose(R @ symmetric(inertial.inertia) @ R.T, expected, atol=1e-6 * expected.max())


@pytest.mark.parametrize(("kind", "params"), SHAPES)
def test_a_builtin_mesh_has_mujoco_s_numbers_to_the_last_digit(kind: str, params: str) -> None:
    """Of corners that lie alike, that digit decides which a hull of few vertices has."""
    spec = mujoco.MjSpec.from_string(model(kind, params))
    theirs = np.array(spec.meshes[0].uservert, np.float32)
    (geom,) = load_text(model(kind, params), name="m", meshes=False).links[1].geoms
    np.testing.assert_array_equal(np.array(geom.vertices), theirs)


def test_a_scale_and_a_convex_inertia_act_on_it() -> None:
    text = model("supertorus", "8 0.4 1 1", 'scale=".1 .2 -.3" inertia="convex"')
    inertial = load_text(text, name="m").links[1].inertial
    assert inertial is not None
    assert inertial.mass == pytest.approx(mujoco.MjModel.from_xml_string(text).body_mass[1], rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "params", "words"),
    [
        ("torus", "8", "'torus'"),
        ("sphere", "", "want 1"),
        ("sphere", "9", "9, want 0 to 4"),
        ("supertorus", "8 2 1 1", "radius"),
        ("cone", "1e9 1", "edges"),
        ("wedge", "4 4 0 90 0", "field of view"),
        ("plate", "4 4", "coplanar|plane|volume|hull"),
    ],
)
def test_what_mujoco_refuses_is_refused(kind: str, params: str, words: str) -> None:
    if kind == "cone":  # MuJoCo would take the memory
        with pytest.raises(ValueError, match=words):
            make_mesh(kind, [float(x) for x in params.split()])
        return
    with pytest.raises(ValueError, match=r"."):
        mujoco.MjModel.from_xml_string(model(kind, params))
    if kind != "plate":  # flat: only what touches with it needs a hull
        with pytest.raises(ModelError, match=words):
            load_text(model(kind, params), name="m")


def test_a_plate_is_a_shell_of_mujoco_s_points() -> None:
    text = (
        '<mujoco><asset><mesh name="m" builtin="plate" params="3 4"/></asset><worldbody>'
        '<body><geom type="mesh" mesh="m" contype="0" conaffinity="0"/><geom size="1"/></body></worldbody></mujoco>'
    )
    geom = load_text(text, name="m").links[1].geoms[0]
    assert len(geom.vertices) == 36
    assert set(geom.vertices[2::3]) == {-1.0}


def reference(text: str) -> Articulation:
    return load_text(f"<mujoco><worldbody>{text}</mujoco>", name="m")


@pytest.mark.parametrize("signs", ["-100 1", "100 -1", "0 1", "1 0"])
def test_mixed_signs_of_solref_are_mujoco_s_default(signs: str) -> None:
    """What MuJoCo's constraints become, from the stiffness and damping it computes: those of the default."""
    geoms = (
        '<geom name="a" type="plane" size="1 1 1" {0}/><body pos="0 0 .09"><freejoint/><geom name="b" size=".1" {0}/>'
    )
    plain = geoms.format(f'solref="{signs}"') + "</body></worldbody>"
    pair = (
        f'{geoms.format("")}</body></worldbody><contact><pair geom1="a" geom2="b" solreffriction="{signs}"/></contact>'
    )
    for text in (plain, pair):
        stiffness = []
        for words in (text, text.replace(f'"{signs}"', '"0.02 1"')):
            theirs = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{words}</mujoco>")
            data = mujoco.MjData(theirs)
            mujoco.mj_forward(theirs, data)
            stiffness.append(data.efc_KBIP[:, :2])
        np.testing.assert_array_equal(*stiffness)
    assert reference(plain).links[0].geoms[0].surface.softness.reference == (0.02, 1.0)
    assert reference(pair).contact_pairs[0].friction_reference is None
    assert "mixed signs" in reference(pair).notes[0].message
    with pytest.raises(ModelError, match="mixed signs"):
        load_text(f"<mujoco><worldbody>{pair}</mujoco>", name="m", strict=True)


def test_friction_may_have_damping_alone() -> None:
    """MuJoCo's own spin_recoil.xml has it: what slides has no place that it is drawn to. Elsewhere it is refused."""
    text = """<geom name="a" type="plane" size="1 1 1"/><body><freejoint/><geom name="b" size=".1"/></body></worldbody>
    <contact><pair geom1="a" geom2="b" {}="0 -10000"/></contact>"""
    mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{text.format('solreffriction')}</mujoco>")
    assert reference(text.format("solreffriction")).contact_pairs[0].friction_reference == (0.0, -10000.0)
    with pytest.raises(ModelError, match="want two positive or two negative numbers"):
        reference(text.format("solref"))


def test_replicate_has_a_prefix_without_effect() -> None:
    text = (
        '<mujoco><worldbody><replicate count="2" prefix="p" sep="-" offset="1 0 0">'
        '<body name="x"><geom size=".1"/></body></replicate></worldbody></mujoco>'
    )
    theirs = mujoco.MjModel.from_xml_string(text)
    assert [link.name for link in load_text(text, name="m").links[1:]] == [theirs.body(i).name for i in (1, 2)]


PID = """<mujoco><option timestep=".001"/>{}<worldbody>
<body><joint name="j" damping=".1"/><geom size=".1" pos=".2 0 0"/></body></worldbody><actuator>{}</actuator></mujoco>"""
CASES = [{"kp": 40, "kd": 2}, {"kp": 40, "ki": 60, "kd": 2, "imax": 3}, {"kp": 40, "kd": 2, "slewmax": 2}]


@pytest.mark.parametrize("gains", CASES, ids=["pd", "pid", "slew"])
@pytest.mark.parametrize("instance", [False, True])
def test_the_plugin_pid_is_the_servo_of_its_name(gains: dict[str, float], instance: bool) -> None:
    """Of what the reader makes of it MuJoCo computes what it does with the plugin, to the first order in the step."""
    config = "".join(f'<config key="{key}" value="{value}"/>' for key, value in gains.items())
    states = ("ki" in gains) + ("slewmax" in gains)
    head = f'<instance name="i">{config}</instance>' if instance else ""
    own = 'instance="i"/>' if instance else f'plugin="mujoco.pid">{config}</plugin>'
    text = PID.format(
        f'<extension><plugin plugin="mujoco.pid">{head}</plugin></extension>',
        f'<plugin name="a" joint="j" actdim="{states}" forcerange="-30 30" {own}',
    )
    actuator = load_text(text, name="m").actuators[0]
    assert (actuator.name, actuator.gain, actuator.force_range) == ("a", "pid", (-30, 30))
    _, kp, kv = actuator.bias_parameters[:3]
    limit, slew = actuator.dynamics_parameters[:2]
    servo = f'<pid joint="j" input="pos" kp="{-kp}" kv="{-kv}" ki="{actuator.gain_parameters[0]}" forcerange="-30 30"'
    again = PID.format("", f'{servo} imax="{limit}" slewmax="{slew}"/>')
    paths = []
    for model_text in (text, again):
        theirs = mujoco.MjModel.from_xml_string(model_text)
        data = mujoco.MjData(theirs)
        path = []
        for step in range(1000):
            data.ctrl[0] = (0.0 if step == 0 else 0.7) if step < 500 else -0.3
            mujoco.mj_step(theirs, data)
            path.append(data.qpos[0])
        paths.append(path)
    np.testing.assert_allclose(paths[0], paths[1], atol=0.005 if "ki" in gains else 1e-9)


def test_other_plugins_stay_refused() -> None:
    text = PID.format("", '<plugin joint="j" plugin="mujoco.pid"><config key="{}" value="1"/></plugin>')
    with pytest.raises(ModelError, match="--ignore-unsupported"):
        load_text(text.replace("mujoco.pid", "mine.pid").format("kp"), name="m")
    with pytest.raises(ModelError, match="'kq' is not one of kp, ki"):
        load_text(text.format("kq"), name="m")


def test_a_mesh_outside_the_roots_is_not_opened(tmp_path: Path) -> None:
    """A geom that only shows it is a warning, which --strict refuses; to collide or to weigh it needs the file."""
    (tmp_path / "secret.stl").write_text("not a mesh")
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    shown = '<body><geom size="1"/><geom type="mesh" mesh="m" contype="0" conaffinity="0" {}/></body>'
    for body, fine in (
        (shown.format('mass="0"'), True),
        (shown.format(""), False),
        ('<geom type="mesh" mesh="m"/>', False),
        ("", True),
    ):
        path = folder / "m.xml"
        mesh = f'<asset><mesh name="m" file="{tmp_path / "secret.stl"}"/></asset>'
        path.write_text(f"<mujoco>{mesh}<worldbody>{body}</worldbody></mujoco>")
        if fine:
            assert ["not opened" in note.message for note in load_articulation(path).notes] == [True]
        for options in ({"strict": True}, *([] if fine else [{}])):
            with pytest.raises(ModelError, match="outside the allowed roots"):
                load_articulation(path, **options)
