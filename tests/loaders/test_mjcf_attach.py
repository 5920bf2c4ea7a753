"""Attached models against MuJoCo: names, settings, classes and what refers to them; and what outputs hold of them."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from artsim.sim.quantities.robot import Robot
from tests.loaders.test_mjcf import against

CHILD = """<mujoco model="c"><compiler angle="radian" autolimits="false" eulerseq="ZYX" meshdir="m"/>
<option timestep="0.01"/>
<asset><mesh name="tetra" file="t.obj"/><material name="red"/></asset>
<default><geom density="500" material="red"/><default class="k"><joint armature=".3"/></default></default>
<worldbody><geom name="floor" type="plane" size="1 1 1"/>
 <body name="u" childclass="k"><joint name="j0"/><geom size=".1"/>
  <frame name="fr" pos="1 0 0"><body name="b" pos="0 1 0" euler="1 .2 .3">
   <joint name="j" axis="1 0 0" range="-1 1" limited="true"/>
   <geom name="g" type="mesh" mesh="tetra"/><site name="s"/></body></frame></body></worldbody>
<contact><exclude body1="world" body2="b"/><exclude body1="u" body2="b"/></contact>
<equality><weld body1="b" body2="world"/><connect body1="b" body2="u" anchor="0 0 0"/><joint joint1="j"/></equality>
<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed>
 <fixed name="t2"><joint joint="j0" coef="1"/><joint joint="j" coef="1"/></fixed></tendon>
<actuator><motor name="m" joint="j"/><motor name="mt" tendon="t"/><motor name="m0" joint="j0"/></actuator>
<sensor><jointpos joint="j"/><clock/></sensor></mujoco>"""
TETRA = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def parent(*attached: str, more: str = "", model: str = '<model name="c" file="sub/c.xml"/>') -> str:
    return f"""<mujoco><compiler angle="degree"/><asset>{model}</asset>
<default><geom density="7"/><joint armature="5"/></default><worldbody>
<frame name="x" pos="0 0 3" euler="10 20 30">{"".join(attached)}</frame>
<body name="own" euler="10 20 30"><joint name="oj" range="-90 90"/><geom size=".1"/></body></worldbody>
<actuator><motor name="own" joint="oj"/></actuator>{more}</mujoco>"""


def files(folder: Path, text: str, child: str = CHILD) -> Path:
    """The model, its child in a folder beside it, and the child's mesh in its own."""
    (folder / "sub" / "m").mkdir(parents=True)
    (folder / "sub" / "c.xml").write_text(child)
    (folder / "sub" / "m" / "t.obj").write_text(TETRA)
    (folder / "model.xml").write_text(text)
    return folder / "model.xml"


def assert_same(articulation: Articulation, model: mujoco.MjModel) -> None:
    """Names, limits and numbers of everything are MuJoCo's."""
    against(Robot.of(articulation), model)
    assert [link.name for link in articulation.links] == [model.body(i).name for i in range(model.nbody)]
    joints = [joint for joint in articulation.joints if joint.kind != "fixed"]
    assert [joint.name for joint in joints] == [model.joint(i).name for i in range(model.njnt)]
    assert [joint.lower is not None for joint in joints] == [bool(limited) for limited in model.jnt_limited]
    assert [tendon.name for tendon in articulation.tendons] == [model.tendon(i).name for i in range(model.ntendon)]
    assert [actuator.name for actuator in articulation.actuators] == [model.actuator(i).name for i in range(model.nu)]
    assert len(articulation.couplings) + len(articulation.loops) == model.neq


ATTACHED = {
    "body": '<attach model="c" body="b" prefix="p_"/>',
    "body with all below": '<attach model="c" body="u" prefix="p_"/>',
    "frame": '<attach model="c" frame="fr" prefix="p_"/>',
    "world": '<attach model="c" prefix="p_"/>',
    "twice": '<attach model="c" body="u" prefix="p_"/><attach model="c" body="b" prefix="q/"/>',
    "of this model": '<attach body="own" prefix="p_"/>',
}


@pytest.mark.parametrize("name", ATTACHED)
def test_attached(name: str, tmp_path: Path) -> None:
    text = parent(ATTACHED[name])
    if name == "of this model":  # MuJoCo finds what stands before
        start, own = text.index('<body name="own"'), text.index("</worldbody>")
        frame = text.index('<frame name="x"')
        text = text[:frame] + text[start:own] + text[frame:start] + text[own:]
    path = files(tmp_path, text)
    model = mujoco.MjModel.from_xml_path(str(path))
    articulation = load_articulation(path)
    assert_same(articulation, model)
    (tmp_path / "sub").rename(tmp_path / "gone")
    assert_same(load_text(articulation.text, name="stored"), model)


def test_attached_of_attached(tmp_path: Path) -> None:
    middle = parent('<attach model="c" body="u" prefix="p_"/>', model='<model name="c" file="c.xml"/>')
    middle = middle.replace("<mujoco>", '<mujoco model="middle">').replace('angle="degree"', 'angle="radian"')
    path = files(tmp_path, parent('<attach model="middle" prefix="z_"/>', model='<model file="sub/middle.xml"/>'))
    (tmp_path / "sub" / "middle.xml").write_text(middle)
    articulation = load_articulation(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    assert_same(articulation, model)
    assert_same(load_text(articulation.text, name="stored"), model)
    assert {joint.source.file for joint in articulation.joints} == {
        str(tmp_path / name) for name in ("model.xml", "sub/middle.xml", "sub/c.xml")
    }


@pytest.mark.parametrize(("policy", "step"), [("warning", 0.004), ("merge", 0.004), ("error", None)])
def test_options_in_conflict(policy: str, step: float | None, tmp_path: Path) -> None:
    more = f'<compiler conflict="{policy}"/><option timestep=".004"/>'
    child = CHILD.replace('timestep="0.01"', 'timestep="0.01" gravity="0 0 -1"')
    path = files(tmp_path, parent(ATTACHED["body"], more=more), child)
    if step is None:
        with pytest.raises(ModelError, match=r"option timestep is '.004' here and '0.01' in the attached model"):
            load_articulation(path)
        with pytest.raises(ValueError, match="onflict"):
            mujoco.MjModel.from_xml_path(str(path))
        return
    options = load_articulation(path).options
    model = mujoco.MjModel.from_xml_path(str(path))
    assert options.timestep == model.opt.timestep == step
    assert np.array_equal(options.gravity or (0, 0, -9.81), model.opt.gravity)


@pytest.mark.parametrize("name", ["body", "body with all below", "frame", "world", "twice"])
def test_keyframes_come_along(name: str, tmp_path: Path) -> None:
    keys = """<keyframe><key name="k" qpos=".5 .25" qvel="1 2" ctrl="3 4 5"/><key name="l" qpos=".1 .2"/></keyframe>"""
    own = "" if name == "twice" else '<keyframe><key name="own" qvel="7"/></keyframe>'
    path = files(tmp_path, parent(ATTACHED[name], more=own), CHILD.replace("</mujoco>", keys + "</mujoco>"))
    articulation = load_articulation(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    found = {key.name: key for key in articulation.keyframes}
    names = [model.key(i).name for i in range(model.nkey)]
    assert names == list(found)[: len(names)]
    for number, key_name in enumerate(names):
        key = found[key_name]
        assert np.allclose(key.qpos or model.qpos0, model.key_qpos[number])
        assert np.allclose(key.qvel or 0, model.key_qvel[number])
        assert np.allclose(key.control or 0, model.key_ctrl[number])
    assert load_text(articulation.text, name="stored").keyframes == articulation.keyframes


def test_keyframes_of_models_with_actuators_left_out(tmp_path: Path) -> None:
    """A keyframe holds the controls of those actuators that are read."""
    keys = '<keyframe><key name="k" qpos=".5 .25" ctrl="3 4 5"/></keyframe></mujoco>'
    child = CHILD.replace("</mujoco>", keys).replace('<motor name="mt" ', '<general dyntype="user" name="mt" ')
    path = files(tmp_path, parent(ATTACHED["world"]), child)
    articulation = load_articulation(path, ignore_unsupported=True)
    given = {"p_m": 3.0, "p_m0": 5.0}
    names = [actuator.name for actuator in articulation.actuators]
    key = next(key for key in articulation.keyframes if key.name.endswith("k"))
    assert set(names) == {"own", *given}
    assert key.control == tuple(given.get(name, 0.0) for name in names)


REFUSED = {
    '<attach model="d" prefix="p_"/>': "model 'd' does not exist; known: c",
    '<attach model="c" body="v" prefix="p_"/>': "body 'v' does not exist",
    '<attach model="c" body="u"/>': "has no 'prefix' attribute",
    '<attach prefix="p_"/>': "names neither model, body nor frame",
    '<attach model="c" body="u" frame="fr" prefix="p_"/>': "a body and a frame",
    '<attach model="c" prefix="p_"/><attach model="c" prefix="p_"/>': "'p_tetra' is already defined",
}


@pytest.mark.parametrize("attach", REFUSED)
def test_refused(attach: str, tmp_path: Path) -> None:
    path = files(tmp_path, parent(attach))
    with pytest.raises(ModelError) as caught:
        load_articulation(path)
    assert REFUSED[attach] in str(caught.value)


def test_models_that_hold_themselves_or_lie_elsewhere(tmp_path: Path) -> None:
    path = files(tmp_path / "a" / "b", parent(), child=parent(model='<model file="../model.xml"/>'))
    with pytest.raises(ModelError, match=r"'model.xml' holds itself: 'model.xml' -> 'c.xml' -> 'model.xml'"):
        load_articulation(path)
    path.write_text(parent(model='<model file="../../../../../../etc/passwd"/>'))
    with pytest.raises(ModelError, match="outside the allowed roots"):
        load_articulation(path)
    with pytest.raises(ModelError, match="the model is not in a file"):
        load_text(parent(), name="text")


def test_models_that_multiply_are_stopped(tmp_path: Path) -> None:
    """Twenty files that each attach the next one twice are a million bodies."""
    body = "<body><geom size='1'/></body>"
    for number in range(20):
        inner = f'<asset><model name="n" file="{number + 1}.xml"/></asset>'
        twice = "".join(f'<attach model="n" prefix="{letter}"/>' for letter in "ab")
        (tmp_path / f"{number}.xml").write_text(f"<mujoco>{inner}<worldbody>{body}{twice}</worldbody></mujoco>")
    (tmp_path / "20.xml").write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    with pytest.raises(ModelError, match="beyond the limit of 60000 elements that copies may add"):
        load_articulation(tmp_path / "0.xml")
