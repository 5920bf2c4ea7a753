"""Corners of MJCF that random models found, each against MuJoCo: classes, inertias, flags, weights of equalities."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import ModelError

JOINT = '<body><joint name="j" {}/><geom size=".1" mass="1"/><site name="s"/></body>'
CYLINDER_AND_TENDON = (
    '<geom name="g" size=".2"/><site name="w"/>' + JOINT.format(""),
    '<tendon><spatial name="t"><site site="w"/><geom geom="g"/><site site="s"/></spatial></tendon>'
    '<actuator><motor tendon="t" armature="1"/></actuator>',
)


def mjcf(world: str, head: str = "", tail: str = "") -> str:
    return f"<mujoco>{head}<worldbody>{world}</worldbody>{tail}</mujoco>"


def actuated(head: str, actuator: str, joint: str = "") -> str:
    return mjcf(JOINT.format(joint), head, f"<actuator>{actuator}</actuator>")


FLEX = '<body name="b"><flexcomp name="f" dim="1" count="2 1 1" spacing=".1 .1 .1">{}</flexcomp></body>'
RANGE = 'range="-1 2"'
MOTOR = 'motorconst="1" resistance="1"'
Found = Callable[[Any], Any]
CASES: dict[str, tuple[str, Found, Found]] = {
    "quat over a class's euler": (
        mjcf('<site quat="1 1 0 0"/>', '<default><site euler="0 90 0"/></default>'),
        lambda m: m.site_quat[0],
        lambda a: a.sites[0].pose.rotation,
    ),
    "a class's quat over its parent's zaxis": (
        mjcf(
            '<geom size="1" class="a"/>',
            '<default><geom zaxis="0 1 0"/><default class="a"><geom quat="1 1 0 0"/></default></default>',
        ),
        lambda m: m.geom_quat[0],
        lambda a: a.links[0].geoms[0].pose.rotation,
    ),
    "a class's euler over its parent's quat": (
        mjcf(
            '<geom size="1" class="a"/>',
            '<default><geom quat="1 1 0 0"/><default class="a"><geom euler="0 90 0"/></default></default>',
        ),
        lambda m: m.geom_quat[0],
        lambda a: a.links[0].geoms[0].pose.rotation,
    ),
    "shorter polynomials of joints": (
        mjcf(
            JOINT.format('damping="5" stiffness="7 8"'),
            '<default><joint damping="1 2 3" stiffness="4 5 6"/></default>',
        ),
        lambda m: [*m.dof_damping, *m.dof_dampingpoly[0], *m.jnt_stiffness, *m.jnt_stiffnesspoly[0]],
        lambda a: [
            a.joints[0].damping,
            *a.joints[0].damping_polynomial,
            a.joints[0].stiffness,
            *a.joints[0].stiffness_polynomial,
        ],
    ),
    "shorter polynomials of tendons": (
        mjcf(
            JOINT.format(""),
            '<default><tendon damping="1 2 3" stiffness="4 5 6"/></default>',
            '<tendon><fixed damping="5" stiffness="7 8"><joint joint="j" coef="1"/></fixed></tendon>',
        ),
        lambda m: [*m.tendon_dampingpoly[0], *m.tendon_stiffnesspoly[0]],
        lambda a: [*a.tendons[0].damping_polynomial, *a.tendons[0].stiffness_polynomial],
    ),
    "shorter damping of actuators": (
        actuated('<default><general damping="1 2 3"/></default>', '<motor joint="j" damping="5"/>'),
        lambda m: [*m.actuator_damping, *m.actuator_dampingpoly[0]],
        lambda a: [a.joints[0].damping, *a.joints[0].damping_polynomial],
    ),
    "inertiafromgeom without mass": (
        mjcf(
            '<body><joint/><inertial pos="1 2 3" mass="1" diaginertia="1 1 1"/><geom size=".1" mass="0"/></body>',
            '<compiler inertiafromgeom="true"/>',
        ),
        lambda m: [m.body_mass[1], *m.body_ipos[1]],
        lambda a: [a.links[1].inertial.mass, *a.links[1].inertial.pose.position],
    ),
    "axes of a full inertia": (
        mjcf('<body><joint/><inertial pos="1 2 3" mass="1" fullinertia=".03 .04 .013 0 0 .005"/></body>'),
        lambda m: [*m.body_iquat[1], *m.body_inertia[1]],
        lambda a: [*a.links[1].inertial.pose.rotation, *np.array(a.links[1].inertial.inertia)[[0, 3, 5]]],
    ),
    "axes of a balanced inertia": (
        mjcf(
            '<body><joint/><inertial pos="1 2 3" mass="1" fullinertia=".03 .04 .2 0 0 .005"/></body>',
            '<option density="1000"/><compiler balanceinertia="true"/>',
        ),
        lambda m: [*m.body_iquat[1], *m.body_inertia[1]],
        lambda a: [*a.links[1].inertial.pose.rotation, *np.array(a.links[1].inertial.inertia)[[0, 3, 5]]],
    ),
    "springdamper of two slides along one line": (
        mjcf('<body><joint type="slide"/><joint type="slide" springdamper="1 1"/><geom size=".1"/></body>'),
        lambda m: m.jnt_stiffness,
        lambda a: [joint.stiffness for joint in a.joints],
    ),
    "springdamper with a rotor": (
        actuated("", '<motor joint="j" gear="5" armature=".01"/>', 'springdamper="1 1"'),
        lambda m: [*m.jnt_stiffness, *m.dof_damping],
        lambda a: [a.joints[0].stiffness, a.joints[0].damping],
    ),
    "inheritrange of a pid": (
        actuated("", '<pid joint="j" inheritrange="1"/>', 'range="-60 60"'),
        lambda m: m.actuator_ctrlrange[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "inheritrange without limits": (
        actuated(
            '<option><flag limit="disable"/></option>', '<position joint="j" inheritrange="1"/>', 'range="-60 60"'
        ),
        lambda m: m.actuator_ctrlrange[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "inheritrange of a joint that its range does not limit": (
        actuated("", '<position joint="j" inheritrange=".5"/>', 'range="-60 30" limited="false"'),
        lambda m: m.actuator_ctrlrange[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "inheritrange of a tendon that its range does not limit": (
        mjcf(
            JOINT.format(""),
            '<tendon><fixed name="t" range="-1 3" limited="false"><joint joint="j" coef="2"/></fixed></tendon>',
            '<actuator><position tendon="t" inheritrange=".5"/></actuator>',
        ),
        lambda m: m.actuator_ctrlrange[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "actearly of a class": (
        actuated('<default><general actearly="true"/></default>', '<position timeconst="1" joint="j"/>'),
        lambda m: m.actuator_actearly,
        lambda a: [a.actuators[0].activation_early],
    ),
    "actearly of a general actuator's class": (
        actuated('<default><general actearly="true"/></default>', '<general dyntype="filter" joint="j"/>'),
        lambda m: m.actuator_actearly,
        lambda a: [a.actuators[0].activation_early],
    ),
    "input of a general actuator in a class of <pid>": (
        actuated(
            '<default><pid posrange="-1 1" velrange="-2 2" ffrange="-3 3"/></default>',
            '<general joint="j" input="pos ff"/>',
        ),
        lambda m: m.actuator_ctrlrange,
        lambda a: a.actuators[0].control_ranges,
    ),
    "input of a general actuator in a class of <dcmotor>": (
        actuated(f"<default><dcmotor {MOTOR}/></default>", '<general joint="j" input="pos ff"/>'),
        lambda m: [m.nu],
        lambda a: [len(a.actuators[0].inputs)],
    ),
    "inheritrange that does not limit": (
        actuated("", '<position joint="j" inheritrange="1" ctrllimited="false"/>', 'range="-60 60"'),
        lambda m: m.actuator_ctrllimited,
        lambda a: [a.actuators[0].control_ranges[0] is not None],
    ),
    "inheritrange of a general actuator's class beside its ctrlrange": (
        actuated('<default><general inheritrange="1" ctrlrange="0 1"/></default>', '<motor joint="j"/>'),
        lambda m: m.actuator_ctrlrange[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "actlimited of a class": (
        actuated(
            '<default><general actlimited="false" actrange="0 1"/></default>', '<cylinder joint="j" timeconst=".1"/>'
        ),
        lambda m: m.actuator_actrange[0] * m.actuator_actlimited[0],
        lambda a: a.actuators[0].activation_range,
    ),
    "ctrllimited after a damper": (
        actuated('<default><motor ctrllimited="false"/><damper ctrlrange="0 1"/></default>', '<motor joint="j"/>'),
        lambda m: m.actuator_ctrlrange[0] * m.actuator_ctrllimited[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "timeconst 0 of a class": (
        actuated('<default><position timeconst="0"/></default>', '<general joint="j" dyntype="filter"/>'),
        lambda m: m.actuator_dynprm[0],
        lambda a: a.actuators[0].dynamics_parameters,
    ),
    "imax of a class without ki": (
        actuated('<default><pid imax="2"/></default>', '<pid joint="j" ki="1"/>'),
        lambda m: m.actuator_dynprm[0],
        lambda a: a.actuators[0].dynamics_parameters,
    ),
    "thermal time of a DC motor": (
        actuated("", '<dcmotor joint="j" motorconst="1" resistance="1" thermal="1 1 3"/>'),
        lambda m: m.actuator_dynprm[0],
        lambda a: a.actuators[0].dynamics_parameters,
    ),
    "a damper's class": (
        actuated("<default><damper/></default>", '<general joint="j" ctrlrange="-1 0"/>'),
        lambda m: m.actuator_ctrlrange[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "posrange is ctrlrange": (
        actuated('<default><pid posrange="-1 1"/></default>', '<position joint="j"/>'),
        lambda m: m.actuator_ctrlrange[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "ctrlrange of a class over posrange of its parent": (
        actuated(
            '<default><pid posrange="-1 1"/><default class="b"><motor ctrlrange="-2 2"/></default></default>',
            '<pid class="b" joint="j"/>',
        ),
        lambda m: m.actuator_ctrlrange[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "zaxis nearly along -z": (
        mjcf('<body zaxis="0 5e-8 -1"><joint/><geom size=".1"/></body>'),
        lambda m: m.body_quat[1],
        lambda a: a.joints[0].pose.rotation,
    ),
    "zaxis not quite along -z": (
        mjcf('<body zaxis="0 2e-7 -1"><joint/><geom size=".1"/></body>'),
        lambda m: m.body_quat[1],
        lambda a: a.joints[0].pose.rotation,
    ),
    "total mass with what is fused": (
        mjcf(
            JOINT.format("") + '<body><geom size=".1" mass="4"/></body>',
            '<compiler settotalmass="10" fusestatic="true"/>',
        ),
        lambda m: [m.body_mass[1]],
        lambda a: [a.links[1].inertial.mass],
    ),
    "total mass": (
        mjcf(JOINT.format("") + '<body><geom size=".1" mass="4"/></body>', '<compiler settotalmass="10"/>'),
        lambda m: m.body_mass[1:],
        lambda a: [link.inertial.mass for link in a.links[1:]],
    ),
    "springdamper counts the inertia of fixed tendons": (
        mjcf(
            JOINT.format('springdamper=".5 .1"'),
            "",
            '<tendon><fixed armature=".02"><joint joint="j" coef=".9"/></fixed></tendon>',
        ),
        lambda m: [m.jnt_stiffness[0], m.dof_damping[0]],
        lambda a: [a.joints[0].stiffness, a.joints[0].damping],
    ),
    "one control after a class's pid": (
        actuated('<default><pid posrange="-1 1"/></default>', '<general joint="j" gaintype="fixed"/>'),
        lambda m: [m.nu, *m.actuator_biasprm[0]],
        lambda a: [len(a.actuators[0].inputs), *a.actuators[0].bias_parameters],
    ),
    "inputs at the motor, the controller in its class": (
        actuated(f'<default><dcmotor {MOTOR} controller="9 0 3"/></default>', '<dcmotor joint="j" input="pos vel"/>'),
        lambda m: [m.nu, *m.actuator_gainprm[0]],
        lambda a: [len(a.actuators[0].inputs), *a.actuators[0].gain_parameters],
    ),
    "ki in a class without pos": (
        actuated('<default><pid ki="2" input="vel"/></default>', '<pid joint="j" input="pos"/>'),
        lambda m: [m.nu, *m.actuator_gainprm[0]],
        lambda a: [len(a.actuators[0].inputs), *a.actuators[0].gain_parameters],
    ),
    "a class's saturation bounds motors": (
        actuated(f'<default><dcmotor {MOTOR} saturation=".05 0 40"/></default>', '<motor joint="j"/>'),
        lambda m: m.actuator_forcerange[0],
        lambda a: a.actuators[0].force_range,
    ),
    "a class's saturation over its parent's forcerange": (
        actuated(
            f'<default><general forcerange="-4 4"/><default class="c"><dcmotor {MOTOR} saturation=".05"/></default>'
            "</default>",
            '<motor joint="j" class="c"/>',
        ),
        lambda m: m.actuator_forcerange[0],
        lambda a: a.actuators[0].force_range,
    ),
    "a class's forcerange over its parent's saturation": (
        actuated(
            f'<default><dcmotor {MOTOR} saturation=".05"/><default class="c"><general forcerange="-4 4"/></default>'
            "</default>",
            '<motor joint="j" class="c"/>',
        ),
        lambda m: m.actuator_forcerange[0],
        lambda a: a.actuators[0].force_range,
    ),
    "inheritrange of a general over its ctrlrange": (
        actuated(
            "",
            '<general joint="j" gainprm="5" biasprm="0 -5" biastype="affine" ctrlrange="0 2" inheritrange=".5"/>',
            RANGE,
        ),
        lambda m: m.actuator_ctrlrange[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "inheritrange of a general that is no servo": (
        actuated("", '<general joint="j" ctrlrange="0 2" inheritrange=".5"/>', RANGE),
        lambda m: m.actuator_ctrlrange[0],
        lambda a: a.actuators[0].control_ranges[0],
    ),
    "own ctrlrange over a class's inheritrange": (
        actuated('<default><position inheritrange=".5"/></default>', '<position joint="j" ctrlrange="0 2"/>', RANGE),
        lambda m: m.actuator_ctrlrange,
        lambda a: a.actuators[0].control_ranges,
    ),
    "a class's inheritrange over its parent's ctrlrange": (
        actuated(
            '<default><general ctrlrange="0 2"/><default class="c"><position inheritrange=".5"/></default></default>',
            '<motor joint="j" class="c"/>',
            RANGE,
        ),
        lambda m: m.actuator_ctrllimited,
        lambda a: [one is not None for one in a.actuators[0].control_ranges],
    ),
    "a class's actdim is of general alone": (
        actuated('<default><general actdim="2"/></default>', '<position joint="j" timeconst=".2"/>'),
        lambda m: m.actuator_actnum,
        lambda a: [actuator.activation_size for actuator in a.actuators],
    ),
    "which a kind after it takes back": (
        actuated(
            '<default><general actdim="2"/><position/></default>',
            '<general joint="j" dyntype="integrator" gaintype="fixed" biastype="none"/>',
        ),
        lambda m: m.actuator_actnum,
        lambda a: [actuator.activation_size for actuator in a.actuators],
    ),
    "a class's tendons and equalities are no edges of flexcomps": (
        mjcf(
            FLEX.format('<edge stiffness="2"/>'),
            '<default><tendon stiffness="1 2 3" springlength=".5" frictionloss="3"/><joint springref=".3"/>'
            '<site pos="1 2 3"/></default>',
        ),
        lambda m: [*m.flex_edgestiffness, 0, 0, m.flexedge_length0[0], 0, 0, 0, 0],
        lambda a: [
            a.tendons[0].stiffness,
            *a.tendons[0].stiffness_polynomial,
            a.tendons[0].spring_length[0],
            a.tendons[0].friction,
            *a.sites[0].pose.position,
        ],
    ),
    "nor are they switched off by a class": (
        mjcf(
            FLEX.format('<edge equality="true"/>'),
            '<default><equality active="false" solref=".3 1"/></default>',
        ),
        lambda m: [*m.eq_active0, 1],
        lambda a: [len(a.tendon_couplings), a.tendon_couplings[0].softness.reference is None],
    ),
    "a belt on a shape fitted to a mesh": (
        mjcf(
            '<body><joint/><geom type="box" mesh="m" pos=".1 .2 .3" euler="20 30 40" surfacevel=".4 -.4 .3 .1 .5 .7"/>'
            "</body>",
            '<asset><mesh name="m" vertex="0 0 0 .3 0 0 0 .2 0 .3 .2 0 0 0 .1 .3 0 .1 0 .2 .1 .3 .2 .1"/></asset>',
        ),
        lambda m: m.geom_surfacevel[0],
        lambda a: a.links[1].geoms[0].surface.velocity,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_read_as_mujoco_reads_it(name: str) -> None:
    text, theirs, ours = CASES[name]
    model = mujoco.MjModel.from_xml_string(text)
    articulation = load_text(text, name="model.xml", meshes=False)
    assert np.array(ours(articulation), float) == pytest.approx(np.array(theirs(model), float), rel=1e-9, abs=1e-14)


MOTORS = """<mujoco><default>{}<default class="b">{}</default></default>
<worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody><actuator>{}</actuator></mujoco>"""
SATURATED, SATURATED_NEVER = (f'<dcmotor {MOTOR} saturation="{most}"/>' for most in ("3", "0"))
ORDERS = [
    *("", '<general actearly="true"/>', '<motor forcerange="-1 2" forcelimited="true"/>', "<position/>"),
    *('<motor forcelimited="false"/>', SATURATED, '<velocity forcelimited="false"/>' + SATURATED),
    *('<motor forcerange="-1 2"/>' + SATURATED_NEVER, SATURATED + '<motor forcelimited="false"/>'),
]
UNDER = [
    *("", "<motor/>", "<general/>", "<cylinder/>", '<general actearly="true"/>', '<general actearly="false"/>'),
    *('<motor forcerange="-5 6"/>', SATURATED, f"<dcmotor {MOTOR}/>"),
]
ACTING = [
    '<general class="b" joint="j" dyntype="integrator" gaintype="fixed" biastype="none"/>',
    *('<intvelocity class="b" joint="j" actrange="0 1"/>', f'<dcmotor class="b" joint="j" {MOTOR}/>'),
    *('<motor class="b" joint="j" forcerange="-7 8"/>', '<motor class="b" joint="j" forcelimited="auto"/>'),
]


@pytest.mark.parametrize("actuator", ACTING)
def test_what_a_class_hands_on_whose_elements_are_of_several_kinds(actuator: str) -> None:
    """actearly and the range of forces, by every class and class below it that MuJoCo takes."""
    compared = 0
    for above, below in itertools.product(ORDERS, UNDER):
        text = MOTORS.format(above, below, actuator)
        try:
            theirs = mujoco.MjModel.from_xml_string(text)
        except ValueError:
            continue
        if actuator.startswith("<general") and "dcmotor" in above + below:
            continue  # not supported yet
        (ours,) = load_text(text, name="model.xml", meshes=False).actuators
        bounds = tuple(theirs.actuator_forcerange[0]) if theirs.actuator_forcelimited[0] else None
        assert (ours.activation_early, ours.force_range) == (theirs.actuator_actearly[0], bounds), text
        compared += 1
    assert compared > 25


REFUSED = {
    "solver is 'x'": mjcf(JOINT.format(""), '<option solver="x"/>'),
    "cone is 'x'": mjcf(JOINT.format(""), '<option cone="x"/>'),
    "energy is 'x'": mjcf(JOINT.format(""), '<option><flag energy="x"/></option>'),
    "both pos and fromto": mjcf(
        '<geom type="capsule" size=".1" fromto="0 0 0 1 0 0"/>', '<default><geom pos="1 0 0"/></default>'
    ),
    "second of its kind": actuated("<default><motor/><motor/></default>", '<motor joint="j"/>'),
    "bias '1' holds 1 number": actuated("", '<cylinder joint="j" bias="1"/>'),
    "ctrlrange and inheritrange": actuated(
        "", '<position joint="j" ctrlrange="0 1" inheritrange=".5"/>', 'range="-1 2"'
    ),
    "which wraps around geoms": mjcf(CYLINDER_AND_TENDON[0], "", CYLINDER_AND_TENDON[1]),
}


@pytest.mark.parametrize("why", REFUSED)
def test_it_is_refused_as_mujoco_refuses_it(why: str) -> None:
    with pytest.raises(ValueError):
        mujoco.MjModel.from_xml_string(REFUSED[why])
    with pytest.raises(ModelError, match=re.escape(why)):
        load_text(REFUSED[why], name="model.xml", meshes=False)


STRICTER = {
    "types beside those of a class's <dcmotor>": "is not supported yet",
    "points of a grid": "point is for type direct",
}


@pytest.mark.parametrize("what", STRICTER)
def test_it_is_refused_though_mujoco_makes_something_of_it(what: str) -> None:
    """MuJoCo ties others of a grid's points where more are given; a general's gain is none that a servo has."""
    texts = {
        "points of a grid": mjcf(
            '<body name="b"><flexcomp name="f" dim="1" count="2 1 1" spacing=".1 .1 .1" point="1 2 3"/></body>'
        ),
        "types beside those of a class's <dcmotor>": actuated(
            f"<default><dcmotor {MOTOR}/></default>", '<general joint="j" biastype="none"/>'
        ),
    }
    mujoco.MjModel.from_xml_string(texts[what])
    with pytest.raises(ModelError, match=STRICTER[what]):
        load_text(texts[what], name="model.xml", meshes=False)


def test_exact_weights_of_soft_constraints_are_told_to_be_ignored() -> None:
    text = mjcf(JOINT.format(""), '<option><flag diagexact="enable" refsafe="disable"/></option>')
    notes = [note.message for note in load_text(text, name="model.xml", meshes=False).notes]
    assert any("refsafe is not switched off" in note for note in notes)
    assert any("diagexact" in note for note in notes)


def test_a_fluidshape_on_a_plane_says_nothing() -> None:
    text = mjcf(
        '<geom type="plane" size="1 1 1" fluidshape="ellipsoid"/>' + JOINT.format(""), '<option density="1000"/>'
    )
    assert load_text(text, name="model.xml", meshes=False).links[0].geoms[0].fluid is None


def test_pos_of_zeros_goes_with_fromto() -> None:
    text = mjcf('<geom type="capsule" size=".1" pos="0 0 0" fromto="0 0 0 1 0 0"/>')
    mujoco.MjModel.from_xml_string(text)
    assert load_text(text, name="model.xml", meshes=False).links[0].geoms[0].pose.position == (0.5, 0, 0)


@pytest.mark.parametrize("inertia", ["", 'inertia="shell"', 'inertia="exact"'])
def test_a_mesh_in_a_medium_reaches_as_far_as_its_vertices(inertia: str) -> None:
    text = mjcf(
        '<body><freejoint/><geom type="mesh" mesh="t" fluidshape="ellipsoid"/></body>',
        f'<option density="1000"/><asset><mesh name="t" {inertia} vertex="0 0 0 .3 0 0 0 .2 0 .1 .1 .35" '
        'face="0 2 1 0 1 3 1 2 3 0 3 2"/></asset>',
    )
    shape = load_text(text, name="model.xml").links[1].geoms[0].fluid
    assert shape is not None
    assert shape.axes == pytest.approx(tuple(mujoco.MjModel.from_xml_string(text).geom_size[0]), rel=1e-9)


def test_dampers_that_are_switched_off_take_those_of_actuators_along(tmp_path: Path) -> None:
    text = actuated('<option><flag damper="disable"/></option>', '<motor joint="j" damping="1 2 3"/>')
    joint = load_text(text, name="model.xml", meshes=False).joints[0]
    assert (joint.damping, joint.damping_polynomial) == (0.0, (0.0, 0.0))


# ------------------------------------------------------------------ what acts


def compared(tmp_path: Path, text: str, seed: int = 0) -> tuple[Any, Any, Any]:
    """A first RK4 step and MuJoCo's at a random state: (model, data, run)."""
    path = tmp_path / "model.xml"
    path.write_text(text)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    q = np.array(model.qpos0)
    mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 0.3)
    data.qpos[:], data.qvel[:] = q, rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    run = artsim.simulate(
        artsim.load(path), steps=1, q0=q, v0=data.qvel, integrator="rk4", record=["qacc", "energy", "qpos"]
    )
    return model, data, run


CALM = '<option timestep=".001" integrator="RK4"><flag contact="disable"/></option>'
CHAIN = (
    '<body><joint name="a" axis="0 1 0" armature=".02"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>'
    '<body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 .1"/>'
    "</body></body>"
    '<body name="s" pos="0 0 .1" euler="10 20 30"><joint name="c" type="slide" armature=".3"/>'
    '<joint name="d" type="slide" axis="1 0 0"/><geom size=".1 .2 .3" type="box" mass="2"/></body>'
    '<body pos="1 0 0" name="h"><joint name="e" axis="0 1 0"/><geom size=".1 .3" type="cylinder" mass="2"/></body>'
)
HEAVY = '<tendon><fixed armature=".1"><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed></tendon>'
SOFT = 'solref=".05 1"'
EQUALITIES = {
    "two joints": f'<joint joint1="a" joint2="b" {SOFT} polycoef="0 -1 0 0 0"/>',
    "a polynomial": f'<joint joint1="a" joint2="b" {SOFT} polycoef=".1 -1 .3 .2 .1"/>',
    "one joint": f'<joint joint1="b" {SOFT} polycoef=".1 0 0 0 0"/>',
    "a slide": f'<joint joint1="c" joint2="a" {SOFT}/>',
    "a body that slides": f'<connect body1="s" anchor=".1 .2 .3" {SOFT}/>',
    "a body that slides, welded": f'<weld body1="s" anchor=".1 .2 .3" {SOFT}/>',
    "a body that slides and one that turns": f'<connect body1="s" body2="h" anchor=".1 .2 .3" {SOFT}/>',
    "a broken power": '<joint joint1="a" joint2="b" solref="-100 -3" solimp=".3 .9 .2 .4 1.7"/>',
}


@pytest.mark.parametrize("tendons", ["", HEAVY], ids=["", "heavy tendon"])
@pytest.mark.parametrize("name", EQUALITIES)
def test_soft_equalities_are_weighed_as_mujoco_weighs_them(tmp_path: Path, name: str, tendons: str) -> None:
    text = mjcf(CHAIN, CALM, f"{tendons}<equality>{EQUALITIES[name]}</equality>")
    _, data, run = compared(tmp_path, text)
    assert run["qacc"][0] == pytest.approx(np.array(data.qacc), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("loop", ["connect", "weld"])
def test_a_soft_loop_about_a_centre_of_mass_on_the_axis(tmp_path: Path, loop: str) -> None:
    """MuJoCo has nothing to weigh it by: its rows then count alike, and nearly hard."""
    text = mjcf(CHAIN, CALM, f'<equality><{loop} body1="h" anchor=".1 .2 .3" {SOFT}/></equality>')
    _, data, run = compared(tmp_path, text)
    assert run["qacc"][0] == pytest.approx(np.array(data.qacc), rel=1e-6)


SPRINGS = {
    "hinge": '<body><joint axis="0 1 0" stiffness="1 2 10"/><geom size=".1" pos="1 0 0"/></body>',
    "slide": '<body><joint type="slide" stiffness="0 0 10" ref=".3" springref=".1"/><geom size=".1"/></body>',
    "ball": '<body><joint type="ball" stiffness="1 2 3"/><geom size=".1 .2 .3" type="box"/></body>',
    "free": '<body pos="1 2 3"><joint type="free" stiffness="1 2 3"/><geom size=".1 .2 .3" type="box"/></body>',
}
TENDONS = (
    '<tendon><fixed stiffness="5 4 3" springlength=".1"><joint joint="j" coef="2"/></fixed>'
    '<spatial stiffness="7 3 2"><site site="w"/><site site="s"/></spatial></tendon>'
)


@pytest.mark.parametrize("name", [*SPRINGS, "tendons"])
def test_potential_energy_holds_the_springs(tmp_path: Path, name: str) -> None:
    text = mjcf(SPRINGS.get(name, '<site name="w" pos="1 2 3"/>' + JOINT.format('pos=".4 0 0"')), CALM)
    if name == "tendons":
        text = text.replace("</worldbody>", "</worldbody>" + TENDONS)
    _, data, run = compared(tmp_path, text)
    assert run["energy"][0] == pytest.approx(np.array(data.energy)[::-1], rel=1e-12)
    robot = artsim.load(tmp_path / "model.xml")
    table = np.repeat(run["qpos"], 3, axis=0)
    stored = robot.compute(table, quantities=["potential_energy"])["potential_energy"]
    assert stored == pytest.approx(np.full(3, data.energy[0]), rel=1e-12)


ENERGETIC = (
    SPRINGS["ball"]
    + SPRINGS["free"]
    + '<site name="w" pos="1 2 3"/>'
    + '<body name="arm"><joint name="j" axis="0 1 0" stiffness="1 2 10"/><geom size=".1" pos="1 0 0" mass="1"/>'
    + '<site name="s" pos="1 0 0"/></body>'
)


def test_energy_is_kept_to_the_order_of_the_step(tmp_path: Path) -> None:
    """Kinetic, weights and springs of joints and tendons, nothing dissipates: halving RK4's step divides the error."""
    path = tmp_path / "model.xml"
    path.write_text(mjcf(ENERGETIC, CALM, TENDONS))
    robot = artsim.load(path)
    drift = []
    for dt in (4e-3, 2e-3):
        run = artsim.simulate(
            robot,
            steps=round(0.4 / dt),
            dt=dt,
            v0=np.full(robot.nv, 0.5),
            integrator="rk4",
            record=["energy"],
        )
        total = np.asarray(run["energy"]).sum(axis=1)
        drift.append(np.abs(total - total[0]).max())
    assert drift[1] < drift[0] / 8 < 1e-3


@pytest.mark.parametrize("dynamics", ["filter", "filterexact", "integrator", "none"])
@pytest.mark.parametrize("transmission", ['joint="b" gear="0 0 1"', 'site="s" refsite="w" gear="0 0 0 0 0 2"'])
def test_servos_on_a_circle_go_the_short_way(tmp_path: Path, dynamics: str, transmission: str) -> None:
    """The setpoint -3 of an angle 3 is 0.28 ahead, and stays so while it is filtered."""
    text = mjcf(
        '<site name="w"/><body><joint name="b" type="ball"/><geom size=".1 .2 .3" type="box" mass="2000"/>'
        '<site name="s"/></body>',
        '<option gravity="0 0 0" timestep=".01" integrator="RK4"><flag contact="disable"/></option>',
        f'<actuator><general {transmission} dyntype="{dynamics}" dynprm="1" gainprm="5" biastype="affine" '
        'biasprm="0 -5 0"/></actuator>',
    )
    path = tmp_path / "model.xml"
    path.write_text(text)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mju_axisAngle2Quat(data.qpos, np.array([0, 0, 1.0]), 3.0)
    data.ctrl[:] = -3.0
    start = np.array(data.qpos)
    names = ["actuator_force", *(["activation"] if model.na else [])]
    run = artsim.simulate(artsim.load(path), steps=4, q0=start, control=[-3.0], integrator="rk4", record=names, dt=0.01)
    for row in range(4):
        mujoco.mj_forward(model, data)
        assert run["actuator_force"][row] == pytest.approx(np.array(data.actuator_force), rel=1e-9)
        if model.na:
            assert run["activation"][row] == pytest.approx(np.array(data.act), rel=1e-9, abs=1e-12)
        mujoco.mj_step(model, data)


def test_boundinertia_of_a_urdf_bounds_principal_moments() -> None:
    """MuJoCo raises the principal moments of a URDF's link, so those of ours have to be the same."""
    text = (
        '<robot name="r"><mujoco><compiler boundinertia=".05"/></mujoco><link name="base"/><link name="tip"><inertial>'
        '<mass value="1"/><inertia ixx=".04" iyy=".04" izz=".04" ixy=".03" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="1 0 0"/></joint></robot>'
    )
    expected = np.sort(mujoco.MjModel.from_xml_string(text).body("tip").inertia)
    model = load_text(text, name="r.urdf")
    tensor = next(link.inertial.inertia for link in model.links if link.name == "tip" and link.inertial)
    x, xy, xz, y, yz, z = tensor
    np.testing.assert_allclose(np.linalg.eigvalsh([[x, xy, xz], [xy, y, yz], [xz, yz, z]]), expected, rtol=1e-12)


@pytest.mark.parametrize("off", ['<flag actuation="disable"/>', "group"])
def test_bristles_of_a_motor_that_is_off(off: str) -> None:
    """Switched off by its group a motor still rubs its bristles along; by the flag they stay as they are."""
    head = (
        '<option integrator="RK4" actuatorgroupdisable="1"/>'
        if off == "group"
        else f'<option integrator="RK4">{off}</option>'
    )
    motor = f'<dcmotor name="m" joint="j" {MOTOR} lugre="20 0.3 0.02 0.03 0.4" group="1"/>'
    text = actuated(head, motor)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.3
    mujoco.mj_step(model, data, 10)
    robot = artsim.Robot.of(load_text(text, name="model.xml"))
    run = artsim.simulate(robot, steps=11, v0={"j": 0.3}, record=("activation",))
    assert (abs(data.act[0]) > 1e-3) == (off == "group")
    assert np.abs(run["activation"][10] - data.act).max() <= 1e-12
