"""Rows that solref and solimp make soft, beside MuJoCo step by step; springs that are rows, by their energy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.sim.articulation.compile_model import joint_mobilities
from artsim.sim.articulation.regularity import is_singular
from artsim.sim.runs.contact_model import link_mobilities
from tests.conftest import corpus, corpus_entries
from tests.simulation import Array

SOFT = 'solref="0.02 1" solimp="0.9 0.95 0.001"'
SCENE = """<mujoco><compiler angle="radian"/><option cone="{cone}" timestep="{h}"/><worldbody>
<geom type="plane" size="0 0 1" {plane}/>{bodies}</worldbody>{rest}</mujoco>"""
ARM = """<body name="a" pos="0 0 1"><joint name="j0" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" contype="0" conaffinity="0"/>
<body name="b" pos=".3 0 0"><joint name="j1" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" contype="0" conaffinity="0"/></body></body>"""
TENDON = '<tendon><fixed name="t"><joint joint="j0" coef="1"/><joint joint="j1" coef="-.5"/></fixed></tendon>'


def scene(bodies: str, rest: str = "", *, cone: str = "elliptic", h: float = 1e-3, plane: str = "") -> str:
    return SCENE.format(bodies=bodies, rest=rest, cone=cone, h=h, plane=plane)


def free(geom: str, place: str = 'pos="0 0 .0999"', soft: str = SOFT) -> str:
    """A body that nothing holds."""
    return f'<body name="f" {place}><freejoint/><geom {geom} mass="1.5" {soft}/></body>'


def lean(angle: float, depth: float) -> str:
    """Place of a box of half height 0.1 on a plane leaned about y."""
    x, z = math.sin(angle) * (0.1 - depth), math.cos(angle) * (0.1 - depth)
    return f'pos="{x!r} 0 {z!r}" euler="0 {angle} 0"'


def beside_mujoco(text: str, folder: Path, steps: int, wrench: Any = None) -> tuple[Array, Array]:
    """Coordinates (steps, nq) before each step, of artsim and of MuJoCo; wrench (6,) on body f."""
    path = folder / "model.xml"
    path.write_text(text)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.iterations, model.opt.tolerance = 200, 1e-15
    data = mujoco.MjData(model)
    if wrench is not None:
        data.xfrc_applied[model.body("f").id] = wrench
    truth = np.zeros((steps, model.nq))
    for row in truth:
        row[:] = data.qpos
        mujoco.mj_step(model, data)
    options: dict[str, Any] = {"integrator": "semi-implicit-euler"}
    if 'cone="pyramidal"' in text:
        options["cone"] = "pyramidal"
    if wrench is not None:
        options |= {"wrench": {"f": wrench}, "wrench_at": "com"}
    return artsim.simulate(path, steps=steps, **options)["qpos"], truth


# ------------------------------------------------------------------ beside MuJoCo


CONTACTS = {
    "a sphere falls": scene(free('type="sphere" size=".1"', 'pos="0 0 .11"')),
    "a box rests": scene(free('type="box" size=".1 .2 .1"')),
    "a box rests, pyramids": scene(free('type="box" size=".1 .2 .1"'), cone="pyramidal"),
    "a capsule lies": scene(free('type="capsule" size=".1 .2"', 'pos="0 0 .0999" euler="0 1.57 0"')),
    "a box creeps": scene(free('type="box" size=".1 .1 .1"', lean(0.3, 1e-4)), plane='euler="0 .3 0"'),
    "a box creeps, pyramids": scene(
        free('type="box" size=".1 .1 .1"', lean(0.3, 1e-4)), plane='euler="0 .3 0"', cone="pyramidal"
    ),
    "a box slides, pyramids": scene(
        free('type="box" size=".1 .1 .1"', lean(0.9, 1e-4)), plane='euler="0 .9 0" friction=".3"', cone="pyramidal"
    ),
    "a box tumbles without friction": scene(
        free('type="box" size=".1 .2 .1" condim="1"', 'pos="0 0 .17" euler=".3 .2 .1"'), plane='condim="1"'
    ),
    "a softer, undamped sphere": scene(
        free('type="sphere" size=".1"', 'pos="0 0 .11"', 'solref="-4000 0" solimp=".5 .9 .01 .3 3"'), h=2e-3
    ),
    "a slide": scene(
        f'<body pos="0 0 .0999"><joint type="slide" axis="0 0 1"/><geom type="sphere" size=".1" {SOFT}/></body>'
    ),
    "three slides": scene(
        '<body pos="0 0 .0999"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>'
        f'<joint type="slide" axis="0 0 1"/><geom type="sphere" size=".1" {SOFT}/></body>'
    ),
    "a leaning slide with armature": scene(
        '<body pos="0 0 .0999"><joint type="slide" axis=".6 0 .8" armature=".3"/>'
        f'<geom type="sphere" size=".1" condim="1" {SOFT}/></body>',
        plane='condim="1"',
    ),
    "a foot fixed to a slide": scene(
        '<body pos="0 0 .2"><joint type="slide" axis="0 0 1"/><geom type="sphere" size=".05"/>'
        f'<body pos="0 0 -.101"><geom type="sphere" size=".1" {SOFT}/></body></body>'
    ),
    "two links": scene(
        f'<body pos="0 0 .3"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 -.2" size=".05" {SOFT}/>'
        f'<body pos=".3 0 -.2"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".05" {SOFT} '
        'condim="1"/></body></body>',
        plane='condim="1"',
    ),
}


@pytest.mark.parametrize("name", CONTACTS)
@pytest.mark.small
def test_soft_contacts_are_those_of_mujoco(name: str, tmp_path: Path) -> None:
    """Depth, load, creep and impact of soft contacts that roll, rest or stick are MuJoCo's to rounding; with pyramids
    also of those that slide.
    """
    ours, truth = beside_mujoco(CONTACTS[name], tmp_path, 80)
    np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-12)
    assert np.abs(truth - truth[0]).max() > 1e-6


@pytest.mark.small
def test_a_pressed_box_is_as_deep_and_creeps_as_in_mujoco(tmp_path: Path) -> None:
    push = (2.0, -1.0, -40.0, 0.0, 0.0, 0.3)
    ours, truth = beside_mujoco(CONTACTS["a box rests"], tmp_path, 120, push)
    np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-12)
    assert truth[-1, 0] - truth[-40, 0] > 1e-6  # it creeps


PAIR = """<contact><pair geom1="floor" geom2="box" {}/></contact>"""


@pytest.mark.small
@pytest.mark.parametrize("along", ["0.1 1", "0 -400", "0.01 1"])
def test_friction_of_pairs_creeps_by_its_own_reference(along: str, tmp_path: Path) -> None:
    """A pair's solreffriction: what sticks on a slope creeps by R λ / B of that B."""
    box = free('name="box" type="box" size=".1 .1 .1"', lean(0.3, 1e-4), "")
    pair = PAIR.format(f'{SOFT} solreffriction="{along}" condim="3"')
    ours, truth = beside_mujoco(scene(box, pair, plane='name="floor" euler="0 .3 0"'), tmp_path, 100)
    np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-12)
    assert truth[-1, 0] - truth[-40, 0] > 1e-6


LEG = """<body pos="{x} {y} 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 {x} 0 -.2" size=".03" {soft}/>
<body pos="{x} 0 -.2"><joint axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".03" {soft}/></body></body>"""


@pytest.mark.small
def test_a_free_robot_without_friction_moves_as_in_mujoco(tmp_path: Path) -> None:
    soft = f'condim="1" {SOFT}'
    legs = "".join(LEG.format(x=x, y=y, soft=soft) for x, y in ((0.2, 0.15), (-0.2, 0.15), (-0.2, -0.15)))
    body = f'<body pos="0 0 .45" euler=".1 .2 0"><freejoint/><geom type="box" size=".2 .1 .05" {soft}/>{legs}</body>'
    ours, truth = beside_mujoco(scene(body, plane='condim="1"'), tmp_path, 150)
    np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-9)
    assert np.abs(truth[-1] - truth[0]).max() > 0.1


EQUALITIES = {
    "connect": '<connect body1="b" anchor=".3 0 0" {}/>',
    "weld": '<weld body1="b" torquescale=".4" {}/>',
    "joints": '<joint joint1="j1" joint2="j0" polycoef="0 .5 .3 0 0" {}/>',
    "tendon": '<tendon tendon1="t" {}/>',
}
SOLREFS = ("0.02 1", "-3000 0", "-3000 -20", "0.0015 1")
"""The last is shorter than two steps: MuJoCo's refsafe makes it longer."""


@pytest.mark.parametrize("solref", SOLREFS)
@pytest.mark.parametrize("kind", EQUALITIES)
@pytest.mark.small
def test_soft_equalities_are_those_of_mujoco(kind: str, solref: str, tmp_path: Path) -> None:
    soft = f'solref="{solref}" solimp=".9 .95 .001"'
    rest = (TENDON if kind == "tendon" else "") + f"<equality>{EQUALITIES[kind].format(soft)}</equality>"
    ours, truth = beside_mujoco(scene(ARM, rest), tmp_path, 80)
    np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-11)


@pytest.mark.small
def test_a_connect_of_a_slider_weighs_as_in_mujoco(tmp_path: Path) -> None:
    bodies = (
        '<body name="s" pos="0 0 1"><joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 0 0"/>'
        '<geom size=".05" mass="2" contype="0" conaffinity="0"/></body>' + ARM
    )
    rest = '<equality><connect body1="s" body2="b" anchor="0 0 0" solref=".02 1"/></equality>'
    ours, truth = beside_mujoco(scene(bodies, rest), tmp_path, 80)
    np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-11)


# ------------------------------------------------------------------ energy


BOUNCE = """<mujoco><option timestep="{h}" cone="elliptic"/><worldbody>
<geom type="plane" size="0 0 1" solref="{solref}" solimp="0.95 0.99 0.001" priority="1" condim="1"/>
<body pos="0 0 {z}"><freejoint/><geom type="{shape}" mass="1"/></body></worldbody></mujoco>"""
SPHERE, CAPSULE = 'sphere" size=".1', 'capsule" size=".1 .2" euler="0 90 0'


@pytest.mark.parametrize(("shape", "h", "k"), [(SPHERE, 2e-3, 1e4), (SPHERE, 1e-3, 6e4), (CAPSULE, 1e-3, 2e4)])
@pytest.mark.small
def test_undamped_contacts_give_back_what_they_took(shape: str, h: float, k: float, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(BOUNCE.format(h=h, solref=f"-{k} 0", z=0.6, shape=shape))
    height = artsim.simulate(path, steps=round(0.75 / h))["qpos"][:, 2] - 0.1
    turned = int(np.argmin(height))
    assert 0.97 * 0.5 < height[turned:].max() < 1.02 * 0.5


SLIDER = """<mujoco><option gravity="0 0 0"/><worldbody><body name="a"><joint name="x" type="slide" axis="1 0 0"/>
<geom type="box" size=".1 .1 .1" mass="1" contype="0" conaffinity="0"/></body></worldbody>
<tendon><fixed name="t"><joint joint="x" coef="1"/></fixed></tendon><equality>{}</equality></mujoco>"""
HELD = {
    "connect": '<connect name="e" body1="a" anchor="0 0 0" {}/>',
    "weld": '<weld name="e" body1="a" {}/>',
    "joint": '<joint name="e" joint1="x" polycoef="0" {}/>',
    "tendon": '<tendon name="e" tendon1="t" polycoef="0" {}/>',
}
PERIOD = 31 * 2e-3


def swing(folder: Path, held: str, loops: str = "", **options: Any) -> Array:
    """Coordinate of a mass of 1 kg that starts 0.01 m from where it is held."""
    path = folder / "model.xml"
    path.write_text(SLIDER.format(held))
    if loops:
        (folder / "loops.toml").write_text(loops)
    robot = artsim.load(path, **({"loops": folder / "loops.toml"} if loops else {}))
    options = {"dt": 2e-3, "steps": 550, "q0": {"x": 0.01}, **options}
    found: Array = artsim.simulate(robot, **options)["qpos"][:, 0]
    return found


def keeps_its_amplitude(x: Array) -> bool:
    """Whether a swing with 31 steps a period has after a second the amplitude with which it began."""
    return bool(np.abs(x[480:]).max() > 0.98 * 0.01 and np.abs(x).max() < 1.02 * 0.01)


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.small
def test_undamped_equalities_keep_their_energy(kind: str, tmp_path: Path) -> None:
    x = swing(tmp_path, HELD[kind].format(f'solref="-{(2 * math.pi / PERIOD) ** 2} 0"'))
    assert keeps_its_amplitude(x)


STIFF = ("-1e12 0", "-1e12 -1e6", "-1 -1e9", "-2.4e5 -10", "-2.6e5 0", "1e-9 1", ".003 1e-3", ".02 1e4")


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.small
def test_no_gain_is_too_large_for_an_equality(kind: str, tmp_path: Path) -> None:
    for solref in STIFF:
        for h in (2e-3, 0.05):
            x = swing(tmp_path, HELD[kind].format(f'solref="{solref}"'), dt=h, steps=40)
            assert np.abs(x).max() < 1.06 * 0.01, (solref, h)


@pytest.mark.parametrize("solimp", ["0.9 0.95 0.001", "0.001 0.999 0.01 0.5 6"])
@pytest.mark.small
def test_no_gain_is_too_large_for_a_contact(solimp: str, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    for solref in STIFF:
        for h in (2e-3, 0.02):
            text = BOUNCE.format(h=h, solref=solref, z=0.3, shape='box" size=".1 .1 .1')
            path.write_text(text.replace("0.95 0.99 0.001", solimp))
            z = artsim.simulate(path, steps=round(0.4 / h))["qpos"][:, 2]
            assert z.max() <= 0.3 + 1e-9, (solref, h)
            assert z.min() > 0.0 or solref in ("-1 -1e9", ".02 1e4"), (solref, h)


# ------------------------------------------------------------------ springs


K = (2 * math.pi / PERIOD) ** 2
LOOP = '[[loop]]\nname = "l"\nkind = "{}"\nlink_a = "a"\nlink_b = "world"\naxis_a = [0, 0, 1]\n'
SPRINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "connect": (LOOP.format("connect").replace("axis_a = [0, 0, 1]\n", "") + "k = {k}\n", {}),
    "slider": (LOOP.format("slider") + "k = {k}\nk_rotation = 1.0\n", {}),
    "compliance": (LOOP.format("slider"), {"compliance": "l"}),
    "joint": ("", {"compliance": "x"}),
    "joint by frequency": ("", {"coupling_frequency": "x"}),
    "tendon": ("", {"compliance": "t"}),
}


@pytest.mark.parametrize("name", SPRINGS)
@pytest.mark.small
def test_springs_that_are_rows_keep_their_energy(name: str, tmp_path: Path) -> None:
    """What a step resolves swings on, and is the two-step form of Newmark's scheme; what it does not comes to rest."""
    loops, given = SPRINGS[name]
    held = HELD.get(name.split()[0], "").format("") if not loops else ""
    for k, h, resolved in ((K, 2e-3, True), (1e12, 2e-3, False), (1e9, 0.05, False)):
        options: dict[str, Any] = {"compliance": {given["compliance"]: 1.0 / k}} if "compliance" in given else {}
        if "coupling_frequency" in given:
            options = {
                "coupling": "compliant",
                "coupling_frequency": math.sqrt(k) / 2 / math.pi,
                "coupling_damping": 0.0,
            }
        x = swing(tmp_path, held, loops.replace("{k}", repr(k)), dt=h, **options)
        if resolved:
            assert keeps_its_amplitude(x)
            mean = 0.25 * x[2:] + 0.5 * x[1:-1] + 0.25 * x[:-2]
            np.testing.assert_allclose(x[2:] - 2 * x[1:-1] + x[:-2], -h * h * k * mean, rtol=0, atol=1e-12)
        else:
            assert np.abs(x).max() <= 0.01 and abs(x[-1]) < 1e-6


LIMITED = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="x" type="slide" axis="1 0 0"/>
<geom size=".1" mass="2" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("side", ["lower_limit", "upper_limit"])
@pytest.mark.small
def test_limits_with_a_stiffness_give_back_what_they_took(side: str, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(LIMITED)
    sign = 1.0 if side == "lower_limit" else -1.0
    for k, most in ((2 * K, 1.02), (1e8, 1.0), (1e14, 1.0)):
        given: dict[str, Any] = {side: {"x": 0.0}, "limit_stiffness": {"x": k}}
        run = artsim.simulate(path, dt=2e-3, steps=400, q0={"x": 0.1 * sign}, v0={"x": -0.5 * sign}, **given)
        v = sign * run["qvel"][:, 0]
        assert v[-1] <= 0.5 * most
        if k == 2 * K:
            assert v[-1] > 0.49
    limits = {side: {"x": 0.0}, "limit_stiffness": {"x": 2 * K}}
    inside = artsim.simulate(path, dt=2e-3, steps=100, q0={"x": -0.01 * sign}, **limits)
    assert 0.98 < sign * inside["qvel"][-1, 0] / (0.01 * math.sqrt(K)) < 1.02


# ------------------------------------------------------------------ weights


@pytest.mark.corpus
def test_links_and_joints_weigh_as_in_mujoco() -> None:
    """body_invweight0 and dof_invweight0 of the links and joints of public models, in the pose of the file."""
    compared = 0
    for entry in corpus_entries("mjcf"):
        path = (corpus() or Path()) / entry["path"]
        if entry["expect"] != "load" or not 0 < entry["nv"] <= 60 or entry["nmesh"] or "offtree" in entry["id"]:
            continue  # MuJoCo's sparse M leaves out what tendons with armature do off the tree
        try:
            model, robot = mujoco.MjModel.from_xml_path(str(path)), artsim.load(path)
        except (ValueError, artsim.ArtsimError):
            continue
        if is_singular(robot.model):
            continue
        names = robot.labels.links
        found = link_mobilities(robot, np.arange(len(names)))
        for body in range(1, model.nbody):
            name, mass = model.body(body).name, model.body_mass[body]
            if name in names and mass > 0:
                assert found[names.index(name)] == pytest.approx(model.body_invweight0[body, 0], rel=1e-7, abs=1e-12)
                compared += 1
        if any(tendon.armature > 0 for tendon in robot.articulation.tendons):
            continue
        joints = [name for name, dofs in robot.labels.joint_dofs.items() if dofs.stop - dofs.start == 1]
        own = joint_mobilities(robot.articulation, robot.model, robot.labels, robot.reference, joints)
        for name, value in zip(joints, own, strict=True):
            found_joint = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
            if found_joint >= 0:
                dof = model.jnt_dofadr[found_joint]
                assert value == pytest.approx(model.dof_invweight0[dof], rel=1e-7, abs=1e-12)
                compared += 1
    assert compared > 1000
