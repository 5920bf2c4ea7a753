"""What once differed from MuJoCo and Pinocchio, one row each: `python -m tests.benchmarks.differences [--only 17]`.

Random models found these differences; each row has the smallest model that shows one. `before` is what was computed
when it was found, the other two columns are computed now. tests/test_differences.py holds every row to its agreement.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

import artsim
from artsim.loaders.load import load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from tests.loaders.test_mjcf_corners import CASES, CYLINDER_AND_TENDON

LIMIT = 1e-9  # relative to the largest number of a row, which counts as 1 at least
Value = str | list[float]


class Row(NamedTuple):
    """One difference: the number it was found under, what is compared, and what ours was then."""

    number: str
    what: str
    before: str
    pair: Callable[[], tuple[Value, Value]]  # what is true (MuJoCo's unless `truth` says otherwise), and ours
    truth: str = "MuJoCo"
    limit: float = LIMIT


def agree(truth: Value, ours: Value, limit: float = LIMIT) -> bool:
    """Whether two values are the same: words exactly, numbers up to the limit."""
    if isinstance(truth, str) or isinstance(ours, str):
        return truth == ours
    a, b = np.array(truth, float), np.array(ours, float)
    return a.shape == b.shape and bool(np.all(np.abs(a - b) <= limit * max(1.0, float(np.abs(a).max(initial=0.0)))))


# ------------------------------------------------------------------ models

CALM = '<option timestep=".001" integrator="RK4"><flag contact="disable"/></option>'
WEIGHTLESS = '<option timestep=".001" integrator="RK4" gravity="0 0 0"><flag contact="disable"/></option>'
BODY = '<body name="b"><joint name="j" {}/><geom size=".1" mass="1"/><site name="s"/></body>'
SOFT = 'solref=".05 1"'
CHAIN = (
    '<body><joint name="a" axis="0 1 0"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>'
    '<body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .2 0 .1"/>'
    "</body></body>"
)
SLIDER = (
    '<body name="s"><joint type="slide"/><joint type="slide" axis="1 0 0"/><geom type="box" size=".1 .2 .3" mass="2"/>'
    "</body>"
)
SPINNER = '<body name="h"><joint axis="0 1 0"/><geom size=".1 .3" type="cylinder" mass="2"/></body>'
TETRAHEDRON = 'vertex="0 0 0 .3 0 0 0 .2 0 .1 .1 .35" face="0 2 1 0 1 3 1 2 3 0 3 2"'


def mjcf(world: str, head: str = "", tail: str = "") -> str:
    """A model."""
    return f"<mujoco>{head}<worldbody>{world}</worldbody>{tail}</mujoco>"


def actuated(actuator: str, joint: str = "", head: str = CALM) -> str:
    """One body and an actuator."""
    return mjcf(BODY.format(joint), head, f"<actuator>{actuator}</actuator>")


def mesh_in_water(attributes: str) -> str:
    """A tetrahedron in water."""
    return mjcf(
        '<body><freejoint/><geom type="mesh" mesh="t" fluidshape="ellipsoid"/></body>',
        f'<option density="1000" integrator="RK4"/><asset><mesh name="t" {attributes} {TETRAHEDRON}/></asset>',
    )


# ------------------------------------------------------------------ both sides


def only_a_tendon_resists() -> tuple[Value, Value]:
    """Acceleration of two slides along one line, whose difference nothing but a tendon's armature resists."""
    text = mjcf(
        '<body><joint name="a" type="slide" axis="1 0 0"/><joint name="b" type="slide" axis="1 0 0"/>'
        '<geom size=".1" mass="1"/></body>',
        CALM.replace("<option ", '<option gravity="1 0 0" '),
        '<tendon><fixed armature=".5"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed></tendon>',
    )
    return measured(text, "qacc", "qacc")()


def first_step(text: str, names: tuple[str, ...], **state: Any) -> tuple[Any, Any]:
    """MuJoCo's data after mj_forward, and the first row of our run (of RK4, which reports the same stage)."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    data = mujoco.MjData(model)
    data.qpos[:] = state.get("q0", model.qpos0)
    data.qvel[:] = state.get("v0", 0.0)
    data.ctrl[:] = state.get("control", 0.0)
    given = {"q0": np.array(data.qpos), "v0": np.array(data.qvel)}
    if model.nu:
        given["control"] = np.array(data.ctrl)
    if "act" in state:
        data.act[:] = state["act"]
    mujoco.mj_forward(model, data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        path.write_text(text)
        run = artsim.simulate(artsim.load(path), steps=1, integrator="rk4", record=list(names), **given)
    return data, run


def measured(text: str, theirs: str, ours: str, part: Any = slice(None), **state: Any) -> Callable[[], Any]:
    """A field of MuJoCo's data beside what we record."""

    def pair() -> tuple[Value, Value]:
        data, run = first_step(text, (ours,), **state)
        return np.atleast_1d(getattr(data, theirs))[part].tolist(), np.atleast_1d(run[ours][0])[part].tolist()

    return pair


def potential(text: str, **state: Any) -> Callable[[], Any]:
    """The potential energy."""

    def pair() -> tuple[Value, Value]:
        data, run = first_step(text, ("energy",), **state)
        return [float(data.energy[0])], [float(run["energy"][0][1])]

    return pair


def read(text: str, theirs: Callable[[Any], Any], ours: Callable[[Articulation], Any]) -> Callable[[], Any]:
    """What the compiled model has beside the description."""

    def pair() -> tuple[Value, Value]:
        described = load_text(text, name="model.xml", meshes=False)
        model = mujoco.MjModel.from_xml_string(text)
        return np.ravel(theirs(model)).astype(float).tolist(), np.ravel(ours(described)).astype(float).tolist()

    return pair


def corner(name: str) -> Callable[[], Any]:
    """A model of tests/loaders/test_mjcf_corners.py."""
    return read(*CASES[name])


def taken(text: str) -> Callable[[], Any]:
    """Whether each of the two takes a model."""

    def pair() -> tuple[Value, Value]:
        words = []
        for read_it in (mujoco.MjModel.from_xml_string, lambda text: load_text(text, name="model.xml")):
            try:
                read_it(text)
                words.append("taken")
            except (ValueError, ModelError):
                words.append("refused")
        return words[0], words[1]

    return pair


# ------------------------------------------------------------------ pairs that need more than one call


def sag() -> tuple[Value, Value]:
    """How far a soft equality of two hinges gives way under gravity [rad], after two seconds."""
    text = mjcf(
        CHAIN.replace('axis="0 1 0"', 'axis="0 1 0" damping=".5"'),
        CALM,
        f'<equality><joint joint1="a" joint2="b" {SOFT} polycoef="0 -1 0 0 0"/></equality>',
    )
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 2000)
    run = artsim.simulate(loaded(text), steps=2000, integrator="rk4", record=["qpos"])
    return [float(data.qpos[0] + data.qpos[1])], [float(run.final["qpos"].sum())]


def loaded(text: str, name: str = "model.xml", **options: Any) -> Any:
    """The robot of a text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text)
        return artsim.load(path, **options)


RESUMED = mjcf(
    '<geom type="plane" size="5 5 1"/><body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/>'
    '<body pos=".25 0 .02"><joint name="p" type="slide" axis="0 0 1" stiffness="40"/>'
    '<joint name="h" axis="0 1 0" stiffness="2"/><geom type="capsule" size=".08" fromto="0 0 0 .2 0 0"/>'
    '<body pos=".3 0 0"><joint type="ball"/><geom size=".1"/></body></body></body>',
    "",
    '<equality><joint joint1="p" joint2="h" polycoef="0 .1 0 0 0"/></equality>',
)


def resumed(solver: str) -> Callable[[], Any]:
    """Datasets that a run of ten steps and one of five that goes on do not share byte for byte."""

    def pair() -> tuple[Value, Value]:
        from artsim.cli.replay import load_stored
        from artsim.io.runs.resume import resume
        from tests.io.test_resume import differences

        robot = loaded(RESUMED)
        settings: dict[str, Any] = {"solver": solver, "sleep_threshold": 5e-3, "sleep_time": 0.02, "dt": 0.01}
        with tempfile.TemporaryDirectory() as folder:
            whole, parts = Path(folder) / "whole.h5", Path(folder) / "parts.h5"
            artsim.simulate(robot, steps=10, output=whole, checkpoint=5, **settings)
            artsim.simulate(robot, steps=5, output=parts, checkpoint=5, **settings)
            resume(parts, load_stored, steps=10)
            return "none differ", ", ".join(differences(whole, parts)) or "none differ"

    return pair


def of_urdf_bounds() -> tuple[Value, Value]:
    """Principal moments of a bounded link."""
    text = (
        '<robot name="r"><mujoco><compiler boundinertia=".05"/></mujoco><link name="base"/><link name="tip"><inertial>'
        '<mass value="1"/><inertia ixx=".04" iyy=".04" izz=".04" ixy=".03" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="1 0 0"/></joint></robot>'
    )
    theirs = np.sort(mujoco.MjModel.from_xml_string(text).body("tip").inertia)
    model = load_text(text, name="r.urdf")
    x, xy, xz, y, yz, z = next(link.inertial.inertia for link in model.links if link.name == "tip" and link.inertial)
    return theirs.tolist(), np.linalg.eigvalsh([[x, xy, xz], [xy, y, yz], [xz, yz, z]]).tolist()


INERTIAL = '<inertial><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'


def of_urdf_gravity() -> tuple[Value, Value]:
    """Acceleration of a link that would fall."""
    text = (
        '<robot name="r"><mujoco><option><flag gravity="disable"/></option></mujoco><link name="base"/>'
        f'<link name="tip">{INERTIAL}</link><joint name="j" type="prismatic"><parent link="base"/><child link="tip"/>'
        '<axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="9" velocity="9"/></joint></robot>'
    )
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    run = artsim.simulate(loaded(text, "r.urdf"), steps=1, integrator="rk4", record=["qacc"])
    return data.qacc.tolist(), run["qacc"][0].tolist()


def of_urdf_floating(parent_kind: str) -> Callable[[], Any]:
    """Where a floating link is: at its coordinates, from its parent's joint unless the parent stands still."""

    def pair() -> tuple[Value, Value]:
        limits = '<axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="9" velocity="9"/>'
        text = (
            f'<robot name="r"><link name="base">{INERTIAL}</link><link name="arm">{INERTIAL}</link>'
            f'<link name="tip">{INERTIAL}</link><joint name="j" type="{parent_kind}"><parent link="base"/>'
            f'<child link="arm"/><origin xyz="1 0 0"/>{limits if parent_kind == "prismatic" else ""}</joint>'
            '<joint name="f" type="floating"><parent link="arm"/><child link="tip"/><origin xyz="0 2 0"/></joint>'
            "</robot>"
        )
        robot = loaded(text, "r.urdf")
        given = {"f.x": 0.1, "f.y": 0.2, "f.z": 0.3}
        run = artsim.simulate(robot, steps=1, q0=given, record=["link_position"], gravity=(0, 0, 0))
        place = run["link_position"][0][robot.links.index("tip")]
        return ([0.1, 0.2, 0.3] if parent_kind == "fixed" else [1.1, 2.2, 0.3]), place.tolist()

    return pair


def started(coupling: str) -> tuple[float, float]:
    """Coordinates of a leader and a follower whose limits leave out the file's pose."""
    limits = '<limit lower="{}" upper="{}" effort="9" velocity="9"/>'
    joint = '<joint name="{}" type="revolute"><parent link="base"/><child link="{}"/><axis xyz="0 1 0"/>{}</joint>'
    follower = limits.format(0.5, 1) + '<mimic joint="a" multiplier="2"/>'
    text = (
        f'<robot name="r"><link name="base"/><link name="l">{INERTIAL}</link><link name="m">{INERTIAL}</link>'
        + joint.format("a", "l", limits.format(-1, 1))
        + joint.format("b", "m", follower)
        + "</robot>"
    )
    run = artsim.simulate(loaded(text, "r.urdf", coupling=coupling), steps=1, record=["qpos"])
    return float(run["qpos"][0][0]), float(run["qpos"][0][1])


DCMOTORS = mjcf(
    "".join(
        f'<body pos="0 {n} 0"><joint name="j{n}" type="{"hinge" if n == 3 else "slide"}"/><geom size=".03"/></body>'
        for n in range(7)
    ),
    CALM,
    '<actuator><dcmotor joint="j0" motorconst="2" resistance=".5"/>'
    '<dcmotor joint="j1" motorconst="1" resistance="1" input="pos vel" controller="0 0 5"/>'
    '<dcmotor joint="j2" motorconst="1" resistance="1" input="pos vel" controller="10 0 5"/>'
    '<dcmotor joint="j3" motorconst=".05" resistance="2" damping=".001" lugre="1e4 100 .005 .008 .1"/>'
    '<dcmotor joint="j4" motorconst="2" resistance=".5" inductance="0 .001"/>'
    '<dcmotor joint="j5" motorconst="1" resistance="1" inductance="0 .001" input="pos vel" controller="10 0 5"/>'
    '<dcmotor joint="j6" motorconst="1" resistance="1" inductance="0 .001" input="pos vel" controller="0 0 5"/>'
    "</actuator>",
)


def dc_motors_in_a_file() -> tuple[Value, Value]:
    """States, inputs and forces in an output of seven motors, which have eleven inputs."""
    model = mujoco.MjModel.from_xml_string(DCMOTORS)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = np.linspace(-0.3, 0.3, model.nq), np.linspace(0.2, 0.8, model.nv)
    data.ctrl[:] = np.linspace(-1.0, 1.0, model.nu)
    mujoco.mj_forward(model, data)
    with tempfile.TemporaryDirectory() as folder:
        start: dict[str, Any] = {"q0": data.qpos.copy(), "v0": data.qvel.copy(), "control": data.ctrl.copy()}
        start |= {"output": Path(folder) / "run.h5", "integrator": "rk4", "contacts": False}
        with artsim.simulate(loaded(DCMOTORS), steps=1, **start) as run:
            ours = [run["activation"].shape[1], len(run.labels.control), *run["actuator_force"][0]]
    return [model.na, model.nu, *data.actuator_force.tolist()], [float(x) for x in ours]


def mixed_power() -> tuple[Value, Value]:
    """The power of the impedance of a contact between geoms with powers 3 and 2, mixed 3 to 1."""
    from artsim.sim.geometry.collision_pairs import contact_parameters
    from tests.geometry.test_collision_pairs import table

    ball = '<body><freejoint/><geom size=".1" {}/></body>'
    text = mjcf(ball.format('solmix="3" solimp=".8 .9 .002 .4 3"') + ball.format('solimp=".9 .95 .001 .5 2"'))
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[2] = 0.19
    mujoco.mj_forward(model, data)
    pairs = table(load_text(text, name="model.xml"))
    return [float(data.contact.solimp[0][4])], [float(contact_parameters(pairs.surfaces, 0, 1).impedance[4])]


def reach_of_mesh(attributes: str) -> Callable[[], Any]:
    """Semi-axes of the ellipsoid that a medium acts on."""
    return read(mesh_in_water(attributes), lambda m: m.geom_size[0], lambda a: a.links[1].geoms[0].fluid.axes)  # type: ignore[union-attr]


def drag_of_mesh(attributes: str) -> Callable[[], Any]:
    """What a medium does to a mesh that turns and moves."""
    return measured(mesh_in_water(attributes), "qfrc_passive", "tau_passive", v0=[0.5, 1, -1, 1, 2, 3])


def early(actuator: str) -> Callable[[], Any]:
    """Whether an actuator acts one step early, of a class that says so for `general`."""
    head = '<default><general actearly="true"/></default>'
    return read(actuated(actuator, head=head), lambda m: m.actuator_actearly, lambda a: a.actuators[0].activation_early)


def heights() -> tuple[Value, Value]:
    """How many of 30 scenes on a height field have a deepest contact as deep as it is."""
    from tests.benchmarks.height_fields import compared

    return [30.0], [30.0 - compared(30).wrong]


# ------------------------------------------------------------------ the table

SOLVERS = ("newton", "pgs", "tgs", "block-gs")
PULLED = mjcf(
    '<site name="w" pos="0 0 1"/><body><joint axis="0 1 0"/><geom size=".1" mass="1" pos="1 0 0"/>'
    '<site name="s" pos="1 0 0"/></body>',
    CALM,
    '<tendon><spatial stiffness="100" springlength="0"><site site="w"/><site site="s"/></spatial></tendon>'
    '<sensor><force site="s"/></sensor>',
)
ON_A_CIRCLE = (
    '<option timestep=".001" integrator="RK4" gravity="0 0 0"><flag contact="disable"/></option>',
    '<site name="w"/><body><joint name="b" type="ball"/><geom size=".1 .2 .3" type="box"/><site name="s"/></body>',
)
TURNED = [float(np.cos(1.5)), 0.0, 0.0, float(np.sin(1.5))]


def servo(actuator: str) -> Callable[[], Any]:
    """The force of a servo at the angle 3 whose filtered setpoint is -3."""

    def pair() -> tuple[Value, Value]:
        text = mjcf(ON_A_CIRCLE[1], ON_A_CIRCLE[0], f"<actuator>{actuator}</actuator>")
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)
        data.qpos[:], data.ctrl[:] = TURNED, -3
        key = f'<keyframe><key name="k" qpos="{" ".join(map(str, TURNED))}" ctrl="-3" act="-3"/></keyframe>'
        data.act[:] = -3
        mujoco.mj_forward(model, data)
        robot = loaded(text.replace("</mujoco>", f"{key}</mujoco>"))
        run = artsim.simulate(robot, steps=1, integrator="rk4", keyframe="k", control=[-3.0], record=["actuator_force"])
        return data.actuator_force.tolist(), run["actuator_force"][0].tolist()

    return pair


def table() -> list[Row]:
    """All rows, in the order in which the differences were found."""
    box = '<body><joint axis="0 1 1"/><geom type="box" size=".1 .2 .3" pos=".1 .2 0" {}/></body>'
    poly = mjcf(CHAIN, CALM, f'<equality><joint joint1="a" joint2="b" {SOFT} polycoef=".1 -1 .3 .2 .1"/></equality>')
    slider = mjcf(SLIDER, CALM, f'<equality><connect body1="s" anchor=".1 .2 .3" {SOFT}/></equality>')
    spinner = mjcf(SPINNER, CALM, f'<equality><connect body1="h" anchor=".1 .2 .3" {SOFT}/></equality>')
    hinge = mjcf(BODY.format('stiffness="0 0 10"'), WEIGHTLESS)
    ball = mjcf(BODY.format('type="ball" stiffness="10"'), WEIGHTLESS)
    fixed = '<tendon><fixed stiffness="10" springlength="0"><joint joint="j" coef="1"/></fixed></tendon>'
    spatial = '<tendon><spatial stiffness="20" springlength="0"><site site="w"/><site site="s"/></spatial></tendon>'
    turned = [float(np.cos(0.25)), float(np.sin(0.25)), 0.0, 0.0]
    named = mjcf(
        '<body><joint/><inertial pos="1 2 3" mass="1" fullinertia=".03 .04 .013 0 0 .005"/></body>'.replace(
            "<body>", '<body name="b">'
        ),
        CALM,
        '<sensor><framequat objtype="body" objname="b"/></sensor>',
    )
    on_ball = 'joint="b" gear="0 0 1"'
    on_site = 'site="s" refsite="w" gear="0 0 0 0 0 1"'
    filtered = '<general {} dyntype="filterexact" dynprm="1" gainprm="1" biastype="affine" biasprm="0 -1 0"/>'
    damped = actuated(
        '<motor joint="j" damping="1 2 3"/>', head=WEIGHTLESS.replace("<flag ", '<flag damper="disable" ')
    )
    axes = mjcf(
        '<body><joint axis="1 1 0"/><inertial pos=".1 .2 .3" mass="1" fullinertia=".03 .04 .2 0 0 .005"/></body>',
        '<option density="1000" integrator="RK4"/><compiler balanceinertia="true"/>',
    )
    twice = mjcf(
        BODY.format(""),
        '<default><motor gear="3"/><default class="a"><position kp="7"/></default></default>'
        '<default><motor gear="5"/><position kp="2" kv="1"/></default>',
        '<actuator><motor class="a" joint="j"/><motor joint="j"/><position class="a" joint="j"/>'
        '<position joint="j"/></actuator>',
    )
    flat = 'vertex="0 0 0 1 0 0 0 1 0 1 1 0 0 0 .01 1 0 .01 0 1 .01 1 1 .01"'
    copies = '<replicate count="11"><site name="g"/></replicate><replicate count="1"><site name="g1"/></replicate>'
    kinds = (
        "position timeconst='1'",
        "cylinder timeconst='1'",
        "intvelocity",
        "muscle lengthrange='0 1'",
        "pid ki='1'",
    )
    return [
        Row("1", "force sensor beside a tendon of 141 N", "0 0 99.64", measured(PULLED, "sensordata", "sensors")),
        Row("2", "potential energy, hinge spring 0 0 10", "0", potential(hinge, q0=[0.5])),
        Row("2", "potential energy, ball spring", "0", potential(ball, q0=turned)),
        Row("2", "potential energy, fixed tendon", "0", potential(mjcf(BODY.format(""), WEIGHTLESS, fixed), q0=[0.5])),
        Row(
            "2",
            "potential energy, spatial tendon",
            "0",
            potential(mjcf('<site name="w" pos="0 0 1"/>' + BODY.format(""), WEIGHTLESS, spatial)),
        ),
        *(
            Row("3", f"datasets that differ after resume, {solver}", "contact/force", resumed(solver), "unbroken run")
            for solver in SOLVERS
        ),
        Row("4", "sag of a soft joint equality [rad]", "too stiff: 2.79e-3 for 8.66e-3", sag, limit=1e-7),
        Row("4", "qacc, polynomial equality", "95 of 120", measured(poly, "qacc", "qacc", q0=[0.2, 0.3], v0=[1, -1])),
        Row("5", "qacc, soft loop on slides", "-1.20 for -1.49", measured(slider, "qacc", "qacc", q0=[0.1, 0.2])),
        Row(
            "5",
            "qacc, centre of mass on the hinge",
            "43 of 381",
            measured(spinner, "qacc", "qacc", q0=[0.1], v0=[1]),
            limit=1e-6,
        ),
        Row("6", "quat of a site over a class's euler", ".707 0 .707 0", corner("quat over a class's euler")),
        Row(
            "6",
            "qacc, quat of a geom over a class's zaxis",
            "the class's inertia",
            measured(
                mjcf(box.format('quat="1 .5 0 0"'), CALM + '<default><geom zaxis="1 1 0"/></default>'), "qacc", "qacc"
            ),
        ),
        Row("7", "damping, stiffness of a joint, shorter", "5 0 0", corner("shorter polynomials of joints")),
        Row("7", "damping, stiffness of a tendon, shorter", "5 0 0", corner("shorter polynomials of tendons")),
        Row("8", "mass, inertiafromgeom, massless geom", "0, refused", corner("inertiafromgeom without mass")),
        Row(
            "9",
            "framequat of a body with fullinertia",
            ".704 .063 .063 -.704",
            measured(named, "sensordata", "sensors"),
        ),
        Row("10", "semi-axes of a mesh in a medium", ".026 .064 .105", reach_of_mesh("")),
        Row("10", "what the medium does to it", "-0.12 for -5.12", drag_of_mesh("")),
        Row("10", "the same of a shell", "-55.2 for -21.4", drag_of_mesh('inertia="shell"')),
        Row("11", "springdamper of two slides", "exit 70", corner("springdamper of two slides along one line")),
        Row("12", "springdamper with a rotor", "0.4 for 25.4", corner("springdamper with a rotor")),
        Row("13", "position with a filter on a ball", "-6", servo(f'<position {on_ball} timeconst="1"/>')),
        Row("13", "position with a filter between sites", "-6", servo(f'<position {on_site} timeconst="1"/>')),
        Row("13", "general filterexact on a ball", "-6", servo(filtered.format(on_ball))),
        Row("14", "damping of an actuator, damper off", "-6", measured(damped, "qfrc_passive", "tau_passive", v0=[1])),
        Row("15", "inheritrange of a pid", "none", corner("inheritrange of a pid")),
        Row("15", "inheritrange, limits off", "refused", corner("inheritrange without limits")),
        Row("16", "power of mixed impedances", "3 (rounded)", mixed_power),
        *(
            Row("17", f"actearly of {kind.split()[0]}, general's class", "1", early(f"<{kind} joint='j'/>"))
            for kind in kinds
        ),
        Row(
            "17",
            "force of a medium, balanceinertia",
            "-268 for -259",
            measured(axes, "qfrc_passive", "tau_passive", v0=[5]),
        ),
        Row("17", "thermal time of a dcmotor", "C 1 for 3", corner("thermal time of a DC motor")),
        Row("17", "ctrlrange beside an empty class damper", "refused", corner("a damper's class")),
        Row(
            "17",
            "plane with fluidshape",
            "refused",
            taken(mjcf('<geom type="plane" size="1 1 1" fluidshape="ellipsoid"/>')),
        ),
        Row(
            "17",
            "gear, kp, kv, two top-level defaults",
            "1 for gear",
            read(
                twice,
                lambda m: np.column_stack([m.actuator_gear[:, 0], m.actuator_gainprm[:, 0], m.actuator_biasprm[:, 2]]),
                lambda a: [(one.gear[0], one.gain_parameters[0], one.bias_parameters[2]) for one in a.actuators],
            ),
        ),
        Row("17", "posrange of a class as ctrlrange", "none", corner("posrange is ctrlrange")),
        Row("17", "qacc, M regular by a tendon's armature", "refused", only_a_tendon_resists),
        Row("17", "settotalmass with fusestatic", "fused mass counted", corner("total mass with what is fused")),
        Row("17", "zaxis 5e-8 from -z", "another axis", corner("zaxis nearly along -z")),
        Row("18", "boundinertia of a URDF's <mujoco>", ".02 .05 .08", of_urdf_bounds),
        Row("18", 'flag gravity="disable" of a URDF', "-9.81", of_urdf_gravity),
        Row(
            "18",
            "floating joint, parent stands still",
            "not documented",
            of_urdf_floating("fixed"),
            "as the docs say",
        ),
        Row(
            "18",
            "floating joint, parent moves",
            "not documented",
            of_urdf_floating("prismatic"),
            "as the docs say",
        ),
        Row(
            "19", "start of a follower, rows", "(0, 0)", lambda: (started("exact"), started("rows")), "--coupling exact"
        ),
        Row("20", "run with 7 dcmotors, columns of file", "exit 74", dc_motors_in_a_file),
        Row("21", "solver='x'", "taken", taken(mjcf("", '<option solver="x"/>'))),
        Row("21", "cone='x'", "taken", taken(mjcf("", '<option cone="x"/>'))),
        Row("21", "energy='x'", "taken", taken(mjcf("", '<option><flag energy="x"/></option>'))),
        Row(
            "21",
            "pos of a class, own fromto",
            "taken",
            taken(
                mjcf('<geom type="capsule" size=".1" fromto="0 0 0 1 0 0"/>', '<default><geom pos="1 0 0"/></default>')
            ),
        ),
        Row(
            "21",
            "one kind twice in a class",
            "taken",
            taken(actuated('<motor joint="j"/>', head="<default><motor/><motor/></default>")),
        ),
        Row("21", "cylinder bias of one number", "taken", taken(actuated('<cylinder joint="j" bias="1"/>'))),
        Row(
            "21",
            "armature on a wrapping tendon",
            "taken",
            taken(mjcf(CYLINDER_AND_TENDON[0], "", CYLINDER_AND_TENDON[1])),
        ),
        Row(
            "21",
            "capsule fitted to a plate",
            "taken",
            taken(
                mjcf(
                    '<body><joint/><geom type="capsule" mesh="t" mass="1"/></body>',
                    f'<compiler fitaabb="true"/><asset><mesh name="t" {flat}/></asset>',
                )
            ),
        ),
        Row(
            "21", "name that replicate repeats", "taken", taken(mjcf(f'<body><joint/><geom size=".1"/>{copies}</body>'))
        ),
        Row("22", "depths on height fields", "130 of 600", heights, "separating directions"),
    ]


def written(value: Value) -> str:
    """Up to four numbers of a value."""
    if isinstance(value, str):
        return value
    if len(value) > 4:
        return " ".join(f"{x:.5g}" for x in value[:4]) + " …"
    return " ".join(f"{x:.5g}" for x in value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="NUMBER")
    only = parser.parse_args().only
    mujoco.set_mju_user_warning(lambda _: None)
    print(f"{'':3} {'compared':42} {'before':32} {'truth':38} {'now':38} agree  truth's")
    missed = 0
    for row in table():
        if only in ("", row.number):
            truth, ours = row.pair()
            same = agree(truth, ours, row.limit)
            missed += not same
            columns = f"{row.number:3} {row.what:42} {row.before:32} {written(truth):38} {written(ours):38}"
            print(f"{columns} {'yes' if same else 'NO':5}  {row.truth}", flush=True)
    print(f"{missed} disagree")


if __name__ == "__main__":
    main()
