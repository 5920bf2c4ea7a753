"""Elements that few models have: files, fitted meshes, height fields, attached models, flexcomps, pairs, keyframes …"""

from __future__ import annotations

import functools
import struct
import zlib
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, tostring

import mujoco
import numpy as np

if TYPE_CHECKING:
    from tests.random_models.random_mjcf import Maker

CUBE = "0 0 0 1 0 0 0 1 0 1 1 0 0 0 1 1 0 1 0 1 1 1 1 1"
CUBE_FACES = "0 2 1 1 2 3 4 5 6 5 7 6 0 1 5 0 5 4 2 6 3 3 6 7 0 4 2 2 4 6 1 3 5 3 7 5"
CHILD = """<mujoco model="child"><compiler angle="radian"/><option timestep="0.004"/>
<default><joint damping="0.4"/><default class="inner"><geom density="700"/></default></default>
<worldbody><frame name="f" pos="0.1 0.2 0.3" euler="0.4 0.5 0.6"><body name="b" pos="1 0 0" childclass="inner">
<joint name="j" axis="1 2 3" range="-9 9"/><geom name="g" type="capsule" size="0.1 0.2"/><site name="s" pos="0.1 0 0"/>
</body></frame></worldbody>
<actuator><position name="a" joint="j" kp="3"/></actuator><sensor><gyro name="x" site="s"/></sensor></mujoco>"""
CONTACT_DATA = "found force torque dist pos normal tangent".split()
RAY_DATA = "dist dir origin point normal depth".split()


@functools.cache
def files() -> dict[str, bytes]:
    """What models name: a mesh, heights, a picture, another model."""
    corners = np.array(CUBE.split(), dtype=float).reshape(-1, 3) * (0.3, 0.2, 0.1)
    faces = corners[np.array(CUBE_FACES.split(), dtype=int).reshape(-1, 3)]
    stl = b" " * 80 + struct.pack("<I", len(faces))
    for face in faces:
        stl += struct.pack("<12fH", 0.0, 0.0, 0.0, *face.ravel(), 0)
    heights = struct.pack("<ii6f", 2, 3, 0.0, 0.5, 0.2, 1.0, 0.3, 0.7)
    return {"cube.stl": stl, "heights.bin": heights, "t.png": picture(), "child.xml": CHILD.encode()}


def picture() -> bytes:
    """A PNG of 6 by 6 grey pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 6, 6, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + b"\x30\x60\x90" * 6 for _ in range(6))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def part(maker: Maker, path: str) -> Element:
    """The section of the model at a path, made where there is none."""
    parent = maker.root
    for name in path.split("/"):
        found = parent.find(name)
        parent = maker.add(parent, name) if found is None else found
    return parent


def add_rare(maker: Maker) -> None:
    """Some of them, before tendons and actuators."""
    for add in (assets, grounds, fitted, attached, flexes, held):
        if maker.chance(0.2):
            add(maker)


def add_late(maker: Maker) -> None:
    """Some of what refers to the rest."""
    for add in (cranks, pulls, pairs, sensors, tied, looks, sides, copies):
        if maker.chance(0.3):
            add(maker)


def assets(maker: Maker) -> None:
    """Meshes of every source, on bodies of their own; textures and materials."""
    parent = part(maker, "asset")
    kinds = [
        {"vertex": CUBE},
        {"vertex": CUBE, "face": CUBE_FACES},
        {"file": "cube.stl"},
        {"builtin": "sphere", "params": "1"},
    ]
    for given in kinds:
        if maker.chance(0.5):
            name = f"m{len(maker.meshes)}"
            mesh = maker.add(parent, "mesh", name=name, scale=maker.text(3, 0.1, 0.4), **given)
            if maker.chance(0.4):
                mesh.set("inertia", maker.pick(("convex", "exact", "legacy", "shell")))
            if "builtin" not in given and maker.chance(0.3):
                mesh.set("refpos", maker.text(3, -0.2, 0.2))
                mesh.set("refquat", maker.text(4))
            if maker.chance(0.2):
                mesh.set("maxhullvert", maker.pick(("8", "6")))
            maker.meshes.append(name)
            body = maker.add(part(maker, "worldbody"), "body", name=f"of_{name}", pos=maker.text(3))
            maker.add(body, "joint", type=maker.pick(("ball", "hinge")))
            maker.add(body, "geom", type="mesh", mesh=name, pos=maker.text(3, -0.2, 0.2))
    maker.add(parent, "texture", name="tx", type="2d", file="t.png")
    maker.add(parent, "texture", name="ty", type="cube", builtin="flat", width="4", height="4")
    for name in ("p0", "p1"):
        material = maker.add(parent, "material", name=name)
        if maker.chance(0.5):
            material.set("texture", "tx")
        elif maker.chance(0.5):
            maker.add(material, "layer", role="rgb", texture="tx")
        if maker.chance(0.5):
            material.set("rgba", maker.pick(("1 1 0 1", "1 0 0 0")))
        maker.materials.append(name)


def grounds(maker: Maker) -> None:
    """A plane and a height field, for rangefinders to see."""
    parent = part(maker, "asset")
    size = maker.text(4, 0.5, 2)
    if maker.chance(0.5):
        maker.add(parent, "hfield", name="h", nrow="2", ncol="3", size=size, elevation=maker.text(6, 0, 1))
    else:
        maker.add(parent, "hfield", name="h", file="heights.bin", size=size)
    world = part(maker, "worldbody")
    maker.add(world, "geom", type="hfield", hfield="h", pos=maker.text(3, -2, -1))
    maker.add(world, "geom", type="plane", size="3 3 1", pos="0 0 -4", zaxis=maker.text(2, -0.2, 0.2) + " 1")
    for _ in range(2):
        maker.add(part(maker, "sensor"), "rangefinder", site=maker.pick(maker.sites))


def fitted(maker: Maker) -> None:
    """Primitive shapes fitted to a mesh."""
    if not maker.meshes:
        maker.add(part(maker, "asset"), "mesh", name="fit", vertex=CUBE, scale=maker.text(3, 0.1, 0.4))
        maker.meshes.append("fit")
    body = maker.add(part(maker, "worldbody"), "body", name="fitted", pos=maker.text(3))
    maker.add(body, "joint", type=maker.pick(("ball", "hinge")))
    kind = maker.pick(("sphere", "capsule", "cylinder", "ellipsoid", "box"))
    geom = maker.add(body, "geom", type=kind, mesh=maker.pick(maker.meshes), pos=maker.text(3, -0.2, 0.2))
    if maker.chance(0.5):
        geom.set("fitscale", maker.number(0.5, 1.5))
    if maker.chance(0.3):
        geom.set("fluidshape", "ellipsoid")


def attached(maker: Maker) -> None:
    """Another model, whole or a body or a frame of it."""
    maker.add(part(maker, "asset"), "model", name="child", file="child.xml")
    frame = maker.add(part(maker, "worldbody"), "frame", pos=maker.text(3))
    if maker.chance(0.3):
        frame.set("name", maker.fresh())
    attach = maker.add(frame, "attach", model="child", prefix="c_")
    kind = maker.pick(("", "body", "frame"))
    if kind:
        attach.set(kind, kind[0])


def flexes(maker: Maker) -> None:
    """Points tied by edges."""
    if maker.root.find("default/joint[@damping]") is not None:
        return  # MuJoCo wants points without
    kind = maker.pick(("line", "sheet", "block", "direct", "file"))
    given: dict[str, dict[str, str]] = {
        "line": {"type": "grid", "dim": "1", "count": "3 1 1", "spacing": ".2 .2 .2"},
        "sheet": {"type": "grid", "dim": "2", "count": "2 3 1", "spacing": ".2 .3 .2"},
        "block": {"type": maker.pick(("grid", "box")), "dim": "3", "count": "2 2 2", "spacing": ".2 .2 .3"},
        "direct": {"type": "direct", "dim": "1", "point": "0 0 0 1 0 0 0 1 0", "element": "0 1 1 2"},
        "file": {"type": "mesh", "dim": "2", "file": "cube.stl"},
    }
    body = maker.add(part(maker, "worldbody"), "body", name="flexible", pos=maker.text(3))
    flex = maker.add(body, "flexcomp", name="flex", mass=maker.number(0.3, 2), **given[kind])
    if maker.chance(0.6):  # of unit length: MuJoCo bends points by others
        turn = maker.rng.normal(size=4)
        flex.set("quat", " ".join(repr(float(x)) for x in turn / np.linalg.norm(turn)))
    elif maker.chance(0.5):
        flex.set("euler", maker.text(3, -90, 90))
    maker.add(body, "geom", size=".1")  # MuJoCo puts the least mass of empty bodies (boundmass) at twice their place
    for name, value in (
        ("pos", maker.text(3)),
        ("inertiabox", ".1"),
        ("scale", maker.text(3, 0.5, 1.5)),
        ("radius", ".01"),
    ):
        if maker.chance(0.3):
            flex.set(name, value)
    if kind == "file" and maker.chance(0.3):
        flex.set("origin", maker.text(3, 1, 2))
    if kind == "sheet" and maker.chance(0.3):
        flex.set("dof", "2d")
    maker.add(flex, "contact", contype="0", conaffinity="0", selfcollide="none")
    edge = maker.add(flex, "edge")
    if kind in ("line", "direct"):
        edge.set("stiffness", maker.number(0, 30))
    if maker.chance(0.6):
        edge.set("damping", maker.number(0, 2))
    elif maker.chance(0.3):
        edge.set("equality", "true")
        edge.set("solref", "0.05 1")
        edge.set("solimp", "0.8 0.9 0.2")
    if maker.chance(0.4):
        maker.add(body, "freejoint", name=maker.fresh(), align=maker.pick(("false", "auto")))
        maker.add(flex, "pin", **({"id": "0"} if maker.chance(0.5) else {"range": "0 1"}))
    if maker.chance(0.15):
        flex.set("rigid", "true")


def held(maker: Maker) -> None:
    """A mocap body, frames with a class, geoms that stand still."""
    world = part(maker, "worldbody")
    body = maker.add(world, "body", name="mocap", mocap="true", pos=maker.text(3))
    maker.add(body, "geom", size=".1", contype="0", conaffinity="0")
    frame = maker.add(world, "frame", pos=maker.text(3), name=maker.fresh())
    if maker.classes:
        frame.set("childclass", maker.pick(maker.classes))
    inner = maker.add(frame, "body", name="framed", pos=maker.text(3))
    maker.add(inner, "joint", axis=maker.text(3))
    maker.add(inner, "geom", type="box", size=maker.text(3, 0.05, 0.2))
    maker.rotated(frame)


def copies(maker: Maker) -> None:
    """Nested copies."""
    if maker.root.find("sensor/clock") is not None:
        return  # MuJoCo copies those, too
    outer = maker.add(part(maker, "worldbody"), "replicate", count="2", offset=maker.text(3), sep="-")
    inner = maker.add(outer, "replicate", count="2", euler=maker.text(3, -90, 90), sep="x", prefix="q")
    body = maker.add(inner, "body", name="twice", pos=maker.text(3))
    maker.add(body, "joint", type=maker.pick(("hinge", "slide")), axis=maker.text(3))
    maker.add(body, "geom", type="box", size=maker.text(3, 0.05, 0.2))


# ------------------------------------------------------------------ what refers to the rest


def cranks(maker: Maker) -> None:
    """Any actuator on a slider crank, a site or a tendon."""
    if len(maker.sites) < 2:
        return
    targets = ("joint", "jointinparent", "tendon", "site", "refsite", "cranksite", "slidersite")
    for actuator in part(maker, "actuator"):
        if maker.chance(0.4) and actuator.tag not in ("adhesion",):
            for name in (*targets, "cranklength", "armature", "damping", "lengthrange"):
                actuator.attrib.pop(name, None)
            kind = maker.pick(("crank", "site", "tendon", "parent"))
            first, second = (str(site) for site in maker.rng.permutation(maker.sites)[:2])
            if kind == "tendon" and maker.tendons:
                actuator.set("tendon", maker.pick(maker.tendons))
            elif kind == "parent" and (maker.balls or maker.scalars):
                actuator.set("jointinparent", maker.pick(maker.balls or maker.scalars))
            elif kind == "site" and actuator.tag != "muscle":
                actuator.set("site", first)
                maker.pushes = True
            else:
                actuator.set("cranksite", first)
                actuator.set("slidersite", second)
                actuator.set("cranklength", maker.number(3, 5))
                maker.pushes = True
            if actuator.tag == "muscle":
                actuator.set("lengthrange", "-2 3")


def pulls(maker: Maker) -> None:
    """Adhesion of a body; other kinds that are rare."""
    parent = part(maker, "actuator")
    kind = maker.pick(("adhesion", "nominal", "general", "muscle"))
    name = f"r{len(maker.actuators)}"
    if kind == "adhesion":
        maker.add(
            parent, "adhesion", name=name, body=maker.pick(maker.bodies), ctrlrange="0 1", gain=maker.number(1, 9)
        )
    elif kind == "nominal" and maker.scalars:
        maker.add(parent, "dcmotor", name=name, joint=maker.pick(maker.scalars), nominal="12 2 300")
    elif kind == "muscle" and maker.scalars:
        maker.add(parent, "muscle", name=name, joint=maker.pick(maker.scalars), lengthrange="-2 3")
    elif kind == "general":
        maker.add(parent, "general", name=name, body=maker.pick(maker.bodies))
    else:
        return
    maker.actuators.append(name)


def pairs(maker: Maker) -> None:
    """Pairs of geoms with figures of their own, bodies that do not touch."""
    parent = part(maker, "contact")
    if len(maker.geoms) > 1:
        first, second = (str(name) for name in maker.rng.permutation(maker.geoms)[:2])
        pair = maker.add(parent, "pair", geom1=first, geom2=second)
        for name, value in (
            ("condim", maker.pick("1346")),
            ("friction", maker.text(5, 0.05, 1)),
            ("solref", "0.03 0.9"),
            ("solimp", "0.8 0.9 0.01"),
            ("solreffriction", maker.pick(("0 0", "0.04 1", "-200 -10"))),
            ("margin", maker.number(0, 0.02)),
            ("gap", maker.number(0, 0.01)),
            ("name", maker.fresh()),
            ("adhesion", maker.number(0, 2)),
        ):
            if maker.chance(0.4):
                pair.set(name, value)
    if len(maker.bodies) > 1:
        first, second = (str(name) for name in maker.rng.permutation(maker.bodies)[:2])
        maker.add(parent, "exclude", body1=first, body2=second)


def sensors(maker: Maker) -> None:
    """Of touch, contacts, sight, limits."""
    parent = part(maker, "sensor")
    maker.add(parent, "touch", site=maker.pick(maker.sites))
    words = [word for word in RAY_DATA if maker.chance(0.5)]
    maker.add(parent, "rangefinder", site=maker.pick(maker.sites), data=" ".join(words or ["dist"]))
    if maker.scalars:
        for kind in ("jointlimitpos", "jointlimitvel", "jointlimitfrc"):
            if maker.chance(0.5):
                name = maker.pick(maker.scalars)
                next(joint for joint in maker.root.iter("joint") if joint.get("name") == name).set("range", "-500 500")
                maker.add(parent, kind, joint=name)
    if maker.tendons:
        for kind in ("tendonlimitpos", "tendonlimitvel", "tendonlimitfrc"):
            if maker.chance(0.5):
                name = maker.pick(maker.tendons)
                tendons = (part for part in maker.root.iter() if part.tag in ("spatial", "fixed"))
                next(tendon for tendon in tendons if tendon.get("name") == name).set("range", "-500 500")
                maker.add(parent, kind, tendon=name)
    sensor = maker.add(parent, "contact", num=maker.pick("123"))
    words = [word for word in CONTACT_DATA if maker.chance(0.5)]
    sensor.set("data", " ".join(words or ["found"]))
    sensor.set("reduce", maker.pick(("none", "mindist", "maxforce", "netforce")))
    for side in "12":
        kind = maker.pick(("geom", "body", "subtree"))
        sensor.set(kind + side, maker.pick(maker.geoms if kind == "geom" else maker.bodies))
    if maker.chance(0.3):
        for kind in ("geom1", "body1", "subtree1"):
            sensor.attrib.pop(kind, None)
        sensor.set("site", maker.pick(maker.sites))


def tied(maker: Maker) -> None:
    """An equality of two tendons, equalities of a class."""
    parent = part(maker, "equality")
    if len(maker.tendons) > 1:
        soft = {"solref": "0.05 1", "solimp": "0.8 0.9 0.2"}
        coefficients = maker.text(5, -0.5, 0.5)
        maker.add(parent, "tendon", tendon1=maker.tendons[0], tendon2=maker.tendons[1], polycoef=coefficients, **soft)
    for equality in parent:
        if maker.classes and maker.chance(0.3):
            equality.set("class", maker.pick(maker.classes))


def looks(maker: Maker) -> None:
    """Skins, cameras, lights, tuples, visual settings that take more than one word."""
    body = maker.pick(maker.bodies)
    skin = maker.add(
        part(maker, maker.pick(("asset", "deformable"))),
        "skin",
        name=maker.fresh(),
        vertex="0 0 0 1 0 0 0 1 0",
        face="0 1 2",
    )
    maker.add(skin, "bone", body=body, bindpos="0 0 0", bindquat="1 0 0 0", vertid="0 1 2", vertweight="1 1 1")
    camera = maker.add(part(maker, "worldbody"), "camera", name=maker.fresh(), pos="0 0 1")
    if maker.chance(0.5):
        camera.set("mode", "targetbody")
        camera.set("target", body)
    if maker.chance(0.5):
        light = maker.add(part(maker, "worldbody"), "light", pos="0 0 3")
        light.set("mode", "targetbody")
        light.set("target", body)
    numbers = maker.add(part(maker, "custom"), "tuple", name=maker.fresh())
    maker.add(numbers, "element", objtype="body", objname=body, prm="2")
    part(maker, "compiler/lengthrange")
    part(maker, "extension")
    lists = {"visual/global": {"offwidth": "640", "offheight": "480"}, "visual/map": {"actuatortendon": "2"}}
    for path, given in lists.items():
        section = part(maker, path)
        for name, value in given.items():
            section.set(name, value)


def sides(maker: Maker) -> None:
    """On which side tendons pass geoms."""
    for geom in maker.root.iterfind("tendon/spatial/geom"):
        geom.set("sidesite", maker.pick(maker.sites))


def keyframe(maker: Maker) -> None:
    """A state of the whole model, after all else."""
    try:
        model = mujoco.MjModel.from_xml_string(tostring(maker.root, encoding="unicode"), maker.files)
    except ValueError:
        return
    key = maker.add(part(maker, "keyframe"), "key")
    if maker.chance(0.7):
        key.set("name", maker.fresh())
    q = np.array(model.qpos0)
    mujoco.mj_integratePos(model, q, maker.rng.normal(size=model.nv), 0.3)
    if maker.chance(0.7):
        key.set("qpos", " ".join(repr(float(x)) for x in q))
    for name, count in (("qvel", model.nv), ("ctrl", model.nu), ("act", model.na)):
        if count and maker.chance(0.6):
            key.set(name, maker.text(count))
    if maker.chance(0.3):
        key.set("time", "3")
    if model.nmocap and maker.chance(0.6):
        key.set("mpos", maker.text(3 * model.nmocap))
        key.set("mquat", " ".join(["1 0 0 0"] * model.nmocap))
