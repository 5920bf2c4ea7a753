"""More of MJCF on top of a random model: rarer actuators, sensors and equalities, copies, and what moves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

if TYPE_CHECKING:
    from tests.random_models.random_mjcf import Maker

COLOURS = "fog haze force inertia joint actuator com camera light connect constraint contactpoint contactforce frustum"
STILL: dict[str, dict[str, str]] = {  # what only a viewer reads, by its path: attribute → a value
    "visual/global": dict.fromkeys("azimuth elevation fovy ipd glow linewidth realtime".split(), "1"),
    "visual/quality": dict.fromkeys("numslices numstacks numquads offsamples shadowsize".split(), "8"),
    "visual/headlight": {"active": "0", **dict.fromkeys("ambient diffuse specular".split(), ".1 .2 .3")},
    "visual/map": dict.fromkeys(
        "stiffness stiffnessrot force torque alpha fogstart fogend znear zfar haze shadowclip shadowscale".split(),
        "0.5",
    ),
    "visual/scale": dict.fromkeys(
        "forcewidth contactwidth contactheight connect com camera light selectpoint jointlength jointwidth "
        "actuatorlength actuatorwidth framelength framewidth constraint slidercrank frustum".split(),
        "0.3",
    ),
    "visual/rgba": dict.fromkeys(COLOURS.split(), ".1 .2 .3 1"),
    "statistic": {"meaninertia": "2", "meanmass": "3", "meansize": "4", "extent": "5", "center": "1 2 3"},
    "size": dict.fromkeys("nuser_body nuser_jnt nuser_geom nuser_site nuser_tendon nuser_actuator".split(), "3"),
    "custom/numeric": {"name": "n", "size": "3", "data": "1 2"},
    "custom/text": {"name": "t", "data": "words"},
    "asset/texture": {"name": "x", "type": "2d", "builtin": "checker", "rgb1": "1 0 0", "width": "8", "height": "8"},
    "asset/material": {"name": "m", "specular": "1", "shininess": ".3", "reflectance": ".2", "rgba": "1 1 0 1"},
    "worldbody/light": {"name": "l", "pos": "1 2 3", "dir": "0 1 -1", "diffuse": "1 1 1", "castshadow": "false"},
    "worldbody/camera": {"name": "c", "pos": "1 2 3", "euler": "10 20 30", "fovy": "50", "mode": "fixed"},
}
QUIET = {"noise": "0.3", "user": "1 2"}
SEEN = {"group": "2", "rgba": ".1 .2 .3 .5", "user": "1"}
MARKED = {"geom": SEEN, "site": SEEN, "joint": {"group": "1", "user": "1 2"}, "spatial": {**SEEN, "width": ".1"}}


def widen(maker: Maker) -> None:
    """Add to a model, after all of it has been made."""
    actuators(maker)
    sensors(maker)
    equalities(maker)
    bodies(maker)
    switches(maker)
    stills(maker)


def section(maker: Maker, name: str) -> Element:
    """The model's section of that name, made where there is none."""
    found = maker.root.find(name)
    return maker.add(maker.root, name) if found is None else found


def acting(maker: Maker) -> bool:
    """Whether the model's actuators are switched on."""
    flag = maker.root.find("option/flag")
    return flag is None or flag.get("actuation") is None


def actuators(maker: Maker) -> None:
    """Muscles, DC motors, slider cranks; limits and ratios of those that are there."""
    if not maker.actuators:  # a model without any stays so
        return
    parent = section(maker, "actuator")
    for actuator in list(parent):
        if actuator.get("joint") and maker.chance(0.1) and actuator.tag in ("position", "intvelocity"):
            actuator.attrib.pop("kv", None)
            actuator.set("dampratio", maker.number(0.3, 2))
        if (actuator.tag == "intvelocity" or actuator.get("dyntype")) and maker.chance(0.2):
            actuator.set("actlimited", "true")
            actuator.set("actrange", "-0.6 0.5")
        if actuator.tag == "cylinder" and maker.chance(0.3):
            actuator.set("diameter" if maker.chance(0.5) else "area", maker.number(0.1, 2))
        if maker.chance(0.2):
            actuator.set("group", "1")
        if maker.chance(0.1):
            actuator.set("user", "1 2")
    name = f"a{len(maker.actuators)}"
    kind = maker.pick(("muscle", "dcmotor", "crank", "orientation", ""))
    if kind == "muscle" and (maker.scalars or maker.tendons):
        muscle = maker.add(parent, "muscle", name=name, lengthrange="-2 3", force=maker.number(5, 50))
        target = ("tendon", maker.tendons) if maker.tendons else ("joint", maker.scalars)
        muscle.set(target[0], maker.pick(target[1]))
        for attribute, low, high in (("scale", 50, 300), ("vmax", 1, 3), ("fpmax", 1, 2), ("fvmax", 1, 2)):
            if maker.chance(0.4):
                muscle.set(attribute, maker.number(low, high))
        if maker.chance(0.4):
            muscle.set("range", "0.7 1.1")
            muscle.set("lmin", "0.4")
            muscle.set("lmax", "1.7")
        if maker.chance(0.4):
            muscle.set("timeconst", "0.02 0.05")
            muscle.set("tausmooth", maker.number(0, 0.1))
    elif kind == "dcmotor" and maker.scalars:
        motor = maker.add(parent, "dcmotor", name=name, joint=maker.pick(maker.scalars))
        motor.set("motorconst", maker.number(0.05, 1))
        motor.set("resistance", maker.number(0.5, 3))
        for attribute, value in (
            ("inductance", "0 0.05"),
            ("saturation", "0.05 0 40"),
            ("cogging", "0.02 6 0.4"),
            ("lugre", "20 0.3 0.02 0.03 0.4"),
        ):
            if maker.chance(0.3):
                motor.set(attribute, value)
        if maker.chance(0.4):
            motor.set("input", "pos vel")
            motor.set("controller", "10 0 3")
    elif kind == "crank" and len(maker.sites) > 1:
        first, second = (str(site) for site in maker.rng.permutation(maker.sites)[:2])
        maker.add(parent, "motor", name=name, cranksite=first, slidersite=second, cranklength=maker.number(3, 5))
        maker.pushes = True
    elif kind == "orientation":
        servo = maker.add(parent, "orientation", name=name, kp=maker.number(1, 20))
        if maker.balls and maker.chance(0.6):
            servo.set("joint", maker.pick(maker.balls))
        else:
            servo.set("site", maker.pick(maker.sites))
            servo.set("refsite", maker.pick(maker.sites))
            maker.pushes = True
        servo.set(maker.pick(("kv", "dampratio")), maker.number(0, 1))
        for attribute, value in (("input", "quat"), ("ctrlrange", "-0.5 0.7"), ("forcerange", "0 1.5")):
            if maker.chance(0.4):
                servo.set(attribute, value)
        maker.actuators.append(name)


def sensors(maker: Maker) -> None:
    """Sensors of actuators and balls; cut off, noisy, named."""
    parent = section(maker, "sensor")
    for number, sensor in enumerate(list(parent)):
        if maker.chance(0.1) and sensor.tag not in ("clock",) and not sensor.tag.endswith(("axis", "quat")):
            sensor.set("cutoff", maker.number(0.5, 2))
        if maker.chance(0.3):
            sensor.set("name", f"x{number}")
        for attribute, value in QUIET.items():
            if maker.chance(0.1):
                sensor.set(attribute, value)
    if maker.balls and maker.chance(0.5):
        maker.add(parent, maker.pick(("ballquat", "ballangvel")), joint=maker.pick(maker.balls))
    if maker.actuators and acting(maker) and maker.chance(0.5):  # MuJoCo's speeds are 0 where actuators do not act
        kind = maker.pick(("actuatorpos", "actuatorvel", "actuatorfrc"))
        maker.add(parent, kind, actuator=maker.pick(maker.actuators))


def equalities(maker: Maker) -> None:
    """Loops between sites, welds with a pose of their own and another weight, equalities that are off."""
    parent = section(maker, "equality")
    soft = {"solref": "0.05 1", "solimp": "0.8 0.9 0.2"}
    inner = maker.sites[2:]
    if len(inner) > 1 and maker.chance(0.15):
        first, second = (str(site) for site in maker.rng.permutation(inner)[:2])
        maker.add(parent, maker.pick(("connect", "weld")), site1=first, site2=second, **soft)
    for equality in parent:
        if equality.tag == "weld" and equality.get("body1") and maker.chance(0.4):
            equality.set("relpose", maker.text(3) + " " + maker.text(4))
            maker.pushes = True  # MuJoCo's free hinges then carry torques about their own axes
        if equality.tag == "weld" and maker.chance(0.3):
            equality.set("torquescale", maker.number(0.3, 2))
        if maker.chance(0.15):
            equality.set("active", "false")
        if maker.chance(0.2):
            equality.set("name", f"e{list(parent).index(equality)}")


def bodies(maker: Maker) -> None:
    """Copies of a body, classes of whole bodies, meshes that MuJoCo makes itself, fluid coefficients."""
    world = section(maker, "worldbody")
    if maker.chance(0.15) and maker.root.find("sensor/clock") is None:  # MuJoCo copies clocks too
        copies = maker.add(world, "replicate", count="2", sep="_", offset=maker.text(3), euler=maker.text(3, -90, 90))
        body = maker.add(copies, "body", name="copy", pos=maker.text(3))
        maker.add(body, "joint", type=maker.pick(("hinge", "slide")), axis=maker.text(3))
        maker.add(body, "geom", type="box", size=maker.text(3, 0.05, 0.2))
    if maker.chance(0.2):
        kind = maker.pick(("sphere", "hemisphere", "cone"))
        params = {"sphere": "1", "hemisphere": "3", "cone": "6 0.5"}[kind]
        maker.add(
            section(maker, "asset"), "mesh", name="made", builtin=kind, params=params, scale=maker.text(3, 0.1, 0.4)
        )
        body = maker.add(world, "body", name="meshed", pos=maker.text(3))
        maker.add(body, "joint", type="ball")
        maker.add(body, "geom", type="mesh", mesh="made", pos=maker.text(3, -0.2, 0.2))
    for body in maker.root.iter("body"):
        if maker.classes and maker.chance(0.1):
            body.set("childclass", maker.pick(maker.classes))
    for geom in maker.root.iter("geom"):
        if geom.get("fluidshape") and maker.chance(0.5):
            geom.set("fluidcoef", maker.text(5, 0, 2))
    for joint in maker.root.iter("freejoint"):
        if maker.chance(0.3):
            joint.set("align", maker.pick(("true", "false", "auto")))


def switches(maker: Maker) -> None:
    """Settings that change how a file is read, or nothing."""
    compiler = section(maker, "compiler")
    if maker.chance(0.2):
        compiler.set("angle", "radian")
    if maker.chance(0.2):
        compiler.set("alignfree", maker.pick(("true", "false")))
    if maker.chance(0.1):
        compiler.set("inertiagrouprange", "0 3")
    if maker.chance(0.1):
        compiler.set("fusestatic", "false")
    option = section(maker, "option")
    for name, value in {"iterations": "77", "tolerance": "1e-12", "ls_iterations": "60", "jacobian": "dense"}.items():
        if maker.chance(0.2):
            option.set(name, value)
    flag = option.find("flag")
    assert flag is not None
    for name in ("warmstart", "filterparent", "refsafe", "midphase", "eulerdamp", "sensor", "equality"):
        if maker.chance(0.03) and name != "sensor":
            flag.set(name, "disable")


def stills(maker: Maker) -> None:
    """What moves nothing."""
    for path, attributes in STILL.items():
        if maker.chance(0.1):
            parent = maker.root
            for name in path.split("/")[:-1]:
                parent = section(maker, name)
            chosen = {
                k: v for k, v in attributes.items() if maker.chance(0.5) or k in ("name", "type", "builtin", "data")
            }
            if "texture" in path:
                chosen = attributes
            maker.add(parent, path.split("/")[-1], **chosen)
    for kind, attributes in MARKED.items():
        for element in maker.root.iter(kind):
            if element.get("type" if kind == "joint" else "name") and maker.chance(0.1):
                name = maker.pick(tuple(attributes))
                element.set(name, attributes[name])
