"""Random MJCF models: trees of bodies with joints, geoms, classes, tendons, actuators, equalities, sensors, media."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np

from tests.random_models.rare import add_late, add_rare, files, keyframe
from tests.random_models.sprinkle import sprinkle
from tests.random_models.wider import widen

ANGLES = ("quat", "euler", "axisangle", "zaxis", "xyaxes")
FRAMES = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
FREE_FRAMES = ("framelinacc", "frameangacc")
ON_SITE = ("accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer")
SUBTREE = ("subtreecom", "subtreelinvel", "subtreeangmom")
SOLID = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}


class Maker:
    """One model. Everything random comes from `rng`, in one order."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.root = Element("mujoco", model="random")
        self.scalars: list[str] = []  # hinges and slides
        self.balls: list[str] = []
        self.joints: list[str] = []
        self.sites: list[str] = []
        self.bodies: list[str] = []
        self.geoms: list[str] = []
        self.wraps: list[str] = []
        self.tendons: list[str] = []
        self.spatial: set[str] = set()
        self.actuators: list[str] = []
        self.classes: list[str] = []
        self.meshes: list[str] = []
        self.materials: list[str] = []
        self.files: dict[str, bytes] = files()
        self.names = 0  # given out by `fresh`
        self.pushes = False  # MuJoCo's wrenches say nothing: an actuator at a site counts as acting in the joints

    # random values

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, items: Sequence[str]) -> str:
        return items[int(self.rng.integers(len(items)))]

    def text(self, count: int, low: float = -1.0, high: float = 1.0) -> str:
        return " ".join(f"{x:.6g}" for x in self.rng.uniform(low, high, count))

    def number(self, low: float = -1.0, high: float = 1.0) -> str:
        return self.text(1, low, high)

    def fresh(self) -> str:
        """A name that nothing else has."""
        self.names += 1
        return f"n{self.names}"

    def add(self, parent: Element, kind: str, **attributes: str) -> Element:
        return SubElement(parent, kind, {name.rstrip("_"): value for name, value in attributes.items()})

    def rotated(self, element: Element) -> None:
        """Any form of rotation, or none."""
        if self.chance(0.5):
            form = self.pick(ANGLES)
            count = {"quat": 4, "euler": 3, "axisangle": 4, "zaxis": 3, "xyaxes": 6}[form]
            scale = 90.0 if form == "euler" else 1.0
            element.set(form, self.text(count, -scale, scale))

    # the parts

    def make(self) -> str:
        self.compiler()
        self.option()
        self.defaults()
        self.world()
        add_rare(self)
        self.make_tendons()
        self.make_actuators()
        self.equalities()
        self.sensors()
        widen(self)
        add_late(self)
        sprinkle(self, int(self.rng.integers(0, 12)))
        if self.root.find("actuator/*") is None:  # MuJoCo drops what its motors carry in a model without any
            for joint in self.root.iter("joint"):
                joint.attrib.pop("actuatorgravcomp", None)
        if self.chance(0.3):
            keyframe(self)
        return tostring(self.root, encoding="unicode")

    def compiler(self) -> None:
        element = self.add(self.root, "compiler")
        if self.chance(0.3):
            element.set("inertiafromgeom", self.pick(("auto", "true", "auto")))
        if self.chance(0.2):
            element.set("eulerseq", self.pick(("xyz", "ZYX", "zxz", "XyZ")))
        if self.chance(0.15):
            element.set("settotalmass", self.number(1, 20))
        if self.chance(0.15):
            element.set("boundinertia", "0.01")
        if self.chance(0.15):
            element.set("boundmass", "0.3")
        if self.chance(0.3):
            element.set("balanceinertia", "true")

    def option(self) -> None:
        element = self.add(self.root, "option", integrator="RK4", timestep="0.002")
        if self.chance(0.3):
            element.set("gravity", self.text(3, -10, 10))
        if self.chance(0.2):
            element.set("magnetic", self.text(3))
        if self.chance(0.25):
            element.set("density", self.number(1, 1000))
            element.set("viscosity", self.number(0, 2))
            element.set("wind", self.text(3))
        flag = self.add(element, "flag", contact="disable")
        for name in ("gravity", "spring", "damper", "clampctrl", "actuation"):
            if self.chance(0.05):
                flag.set(name, "disable")

    def defaults(self) -> None:
        top = self.add(self.root, "default")
        self.fill_class(top)
        for count in range(int(self.rng.integers(0, 3))):
            name = f"c{count}"
            inner = self.add(top, "default", class_=name)
            self.fill_class(inner)
            self.classes.append(name)

    def fill_class(self, element: Element) -> None:
        if self.chance(0.6):
            self.passive(self.add(element, "joint"))
        if self.chance(0.4):
            geom = self.add(element, "geom", density=self.number(100, 2000))
            self.rotated(geom)
        if self.chance(0.4):
            self.rotated(self.add(element, "site"))
        if self.chance(0.4):
            self.polynomials(self.add(element, "tendon"))
        if self.chance(0.3):
            self.add(element, "general", gear=self.text(6))
        if self.chance(0.3):
            self.add(element, "position", kp=self.number(1, 20), kv=self.number(0, 2))

    def classed(self, element: Element) -> Element:
        if self.classes and self.chance(0.3):
            element.set("class", self.pick(self.classes))
        return element

    def polynomials(self, element: Element) -> None:
        for name in ("damping", "stiffness"):
            if self.chance(0.4):
                element.set(name, self.text(int(self.rng.integers(1, 4)), 0, 3))

    def passive(self, element: Element) -> None:
        self.polynomials(element)
        if self.chance(0.4):
            element.set("armature", self.number(0, 0.3))

    def world(self) -> None:
        world = self.add(self.root, "worldbody")
        self.site(world)
        self.site(world)
        for _ in range(int(self.rng.integers(1, 3))):
            self.body(world, 0)

    def body(self, parent: Element, depth: int) -> None:
        name = f"b{len(self.bodies)}"
        self.bodies.append(name)
        holder = parent
        if depth and self.chance(0.15):
            holder = self.add(parent, "frame", pos=self.text(3))
            self.rotated(holder)
        element = self.add(holder, "body", name=name, pos=self.text(3))
        self.rotated(element)
        if self.chance(0.15):
            element.set("gravcomp", self.number(0.1, 1.2))
        self.body_joints(element, depth)
        if self.chance(0.25):
            self.inertial(element)
        for _ in range(int(self.rng.integers(1, 3))):
            self.geom(element)
        if self.chance(0.8):
            self.site(element)
        for _ in range(int(self.rng.choice([0, 1, 1, 2])) if depth < 3 else 0):
            self.body(element, depth + 1)

    def body_joints(self, element: Element, depth: int) -> None:
        if depth == 0 and self.chance(0.25):
            free = self.add(element, "joint", type="free", name=f"j{len(self.joints)}")
            self.joints.append(free.get("name", ""))
            if self.chance(0.3):
                free.set("stiffness", self.text(3, 0, 3))
            return
        if depth and self.chance(0.15):
            return
        kinds = [
            ["hinge"],
            ["slide"],
            ["ball"],
            ["hinge", "hinge"],
            ["slide", "hinge"],
            ["slide", "ball"],
            ["slide"] * 2,
        ]
        for kind in kinds[int(self.rng.integers(len(kinds)))]:
            name = f"j{len(self.joints)}"
            joint = self.classed(self.add(element, "joint", name=name, type=kind))
            if kind != "slide":
                joint.set("pos", self.text(3, -0.3, 0.3))
            if kind != "ball":
                joint.set("axis", self.text(3))
                self.scalars.append(name)
                for attribute in ("ref", "springref"):
                    if self.chance(0.2):
                        joint.set(attribute, self.number(-0.5, 0.5))
                if self.chance(0.1):
                    joint.set("springdamper", self.text(2, 0.1, 1))
                if self.chance(0.2):
                    joint.set("actuatorfrcrange", "-2 3")
            else:
                self.balls.append(name)
            if self.chance(0.2):
                joint.set("actuatorgravcomp", "true")
            self.passive(joint)
            self.joints.append(name)

    def inertial(self, element: Element) -> None:
        moments = self.rng.uniform(0.02, 0.05, 3)
        inertial = self.add(element, "inertial", pos=self.text(3, -0.2, 0.2), mass=self.number(0.5, 3))
        if self.chance(0.5):
            inertial.set("fullinertia", " ".join(f"{x:.6g}" for x in moments) + " " + self.text(3, -0.004, 0.004))
        else:
            inertial.set("diaginertia", " ".join(f"{x:.6g}" for x in moments))
            self.rotated(inertial)

    def geom(self, element: Element) -> None:
        kind = self.pick(tuple(SOLID))
        name = f"g{len(self.geoms)}"
        self.geoms.append(name)
        geom = self.classed(self.add(element, "geom", name=name, type=kind, size=self.text(SOLID[kind], 0.05, 0.2)))
        if kind in ("capsule", "cylinder") and self.chance(0.3):
            geom.set("fromto", self.text(6, -0.3, 0.3))
            geom.set("size", self.number(0.03, 0.1))
        else:
            geom.set("pos", self.text(3, -0.2, 0.2))
            self.rotated(geom)
        if kind in ("sphere", "cylinder"):
            self.wraps.append(name)
        if self.chance(0.3):
            geom.set("mass", self.number(0.3, 3))
        if self.chance(0.15):
            geom.set("shellinertia", "true")
        if self.chance(0.2):
            geom.set("fluidshape", "ellipsoid")

    def site(self, element: Element) -> None:
        name = f"s{len(self.sites)}"
        self.sites.append(name)
        site = self.classed(self.add(element, "site", name=name, pos=self.text(3, -0.3, 0.3)))
        self.rotated(site)

    def make_tendons(self) -> None:
        section = self.add(self.root, "tendon")
        for _ in range(int(self.rng.integers(0, 3))):
            name = f"t{len(self.tendons)}"
            if self.chance(0.5) and self.scalars:
                tendon = self.add(section, "fixed", name=name)
                for joint in dict.fromkeys(self.pick(self.scalars) for _ in range(2)):
                    self.add(tendon, "joint", joint=joint, coef=self.number(-2, 2))
            else:
                tendon = self.add(section, "spatial", name=name)
                self.path(tendon)
                self.spatial.add(name)
            self.classed(tendon)
            self.polynomials(tendon)
            if self.chance(0.3):
                tendon.set("springlength", " ".join(f"{x:.6g}" for x in np.sort(self.rng.uniform(0, 1, 2))))
            if self.chance(0.2):
                tendon.set("actuatorfrcrange", "-3 2")
            self.tendons.append(name)

    def path(self, tendon: Element) -> None:
        names = [str(name) for name in self.rng.permutation(self.sites)[:3]]
        for count, name in enumerate(names):
            if count and self.wraps and self.chance(0.4):
                self.add(tendon, "geom", geom=self.pick(self.wraps))
            self.add(tendon, "site", site=name)
        if self.chance(0.2):
            self.add(tendon, "pulley", divisor=self.number(1, 3))
            for name in self.rng.permutation(self.sites)[:2]:
                self.add(tendon, "site", site=str(name))

    def make_actuators(self) -> None:
        section = self.add(self.root, "actuator")
        for count in range(int(self.rng.integers(0, 4))):
            kind = self.pick(("motor", "position", "velocity", "general", "intvelocity", "damper", "cylinder", "pid"))
            actuator = self.classed(self.add(section, kind, name=f"a{count}"))
            self.transmission(actuator, kind)
            self.gains(actuator, kind)
            self.actuators.append(f"a{count}")

    def transmission(self, actuator: Element, kind: str) -> None:
        options = ["joint"] * 3 * bool(self.scalars) + ["tendon"] * 2 * bool(self.tendons) + ["site"]
        options += ["ball"] * bool(self.balls)
        where = self.pick(options)
        if where == "joint":
            actuator.set("joint", self.pick(self.scalars))
            if self.chance(0.2):
                actuator.set("armature", self.number(0, 0.2))
            if self.chance(0.2):
                actuator.set("damping", self.text(int(self.rng.integers(1, 4)), 0, 1))
        elif where == "ball":
            actuator.set(self.pick(("joint", "jointinparent")), self.pick(self.balls))
        elif where == "tendon":
            actuator.set("tendon", self.pick(self.tendons))
        else:
            actuator.set("site", self.pick(self.sites))
            self.pushes = True
            if self.chance(0.6):
                actuator.set("refsite", self.pick(self.sites))
        if self.chance(0.6):
            actuator.set("gear", self.text(6))

    def gains(self, actuator: Element, kind: str) -> None:
        if kind in ("position", "intvelocity", "pid") and self.chance(0.7):
            actuator.set("kp", self.number(1, 20))
        if kind in ("position", "velocity", "intvelocity", "pid", "damper") and self.chance(0.7):
            actuator.set("kv", self.number(0, 3))
        if kind == "position" and self.chance(0.3):
            actuator.set("timeconst", self.number(0.1, 1))
        if kind == "pid" and self.chance(0.5):
            actuator.set("ki", self.number(0, 2))
        if kind == "damper":
            actuator.set("ctrlrange", "0 2")
        elif self.chance(0.3) and kind != "pid":
            actuator.set("ctrlrange", "-0.5 0.7")
        if kind == "cylinder":
            actuator.set("bias", self.text(3))
        if kind == "general":
            actuator.set("gainprm", self.text(3))
            actuator.set("gaintype", self.pick(("fixed", "affine")))
            actuator.set("biasprm", self.text(3))
            actuator.set("biastype", self.pick(("none", "affine")))
            if self.chance(0.5):
                actuator.set("dyntype", self.pick(("integrator", "filter", "filterexact")))
                if self.chance(0.3):
                    actuator.set("actearly", "true")
        if self.chance(0.2):
            actuator.set("forcerange", "-2 1.5")

    def equalities(self) -> None:
        section = self.add(self.root, "equality")
        soft = {"solref": "0.05 1", "solimp": f"0.8 0.9 0.2 0.5 {self.number(1, 3)}"}
        if len(self.scalars) > 1 and self.chance(0.3):
            first, second = (str(name) for name in self.rng.permutation(self.scalars)[:2])
            joint = self.add(section, "joint", joint1=first, polycoef=self.text(5, -0.5, 0.5), **soft)
            if self.chance(0.7):
                joint.set("joint2", second)
        if self.chance(0.25):
            loop = self.add(section, self.pick(("connect", "weld")), anchor=self.text(3, -0.3, 0.3), **soft)
            names = [str(name) for name in self.rng.permutation(self.bodies)[:2]]
            loop.set("body1", names[0])
            if len(names) > 1 and self.chance(0.6):
                loop.set("body2", names[1])
        if self.tendons and self.chance(0.2):
            self.add(section, "tendon", tendon1=self.tendons[0], polycoef=self.text(5, -0.5, 0.5), **soft)

    def sensors(self) -> None:
        section = self.add(self.root, "sensor")
        for _ in range(int(self.rng.integers(2, 7))):
            self.sensor(section)

    def sensor(self, section: Element) -> None:
        group = int(self.rng.integers(5))
        if group == 0:
            kind = self.pick(ON_SITE)
            on_bodies = self.sites[2:] or self.sites  # MuJoCo's wrenches on the world leave out all trees but one
            wrench = kind in ("force", "torque")
            if not wrench or len(self.sites) > 2:
                self.add(section, kind, site=self.pick(on_bodies if wrench else self.sites))
        elif group == 1:
            kind = self.pick((*FRAMES, *FREE_FRAMES))
            where = self.pick(("body", "xbody", "geom", "site"))
            names = {"body": self.bodies, "xbody": self.bodies, "geom": self.geoms, "site": self.sites}
            sensor = self.add(section, kind, objtype=where, objname=self.pick(names[where]))
            if kind in FRAMES and self.chance(0.3):
                sensor.set("reftype", "site")
                sensor.set("refname", self.pick(self.sites))
        elif group == 2:
            self.add(section, self.pick(SUBTREE), body=self.pick(self.bodies))
        elif group == 3 and self.tendons:
            self.add(
                section, self.pick(("tendonpos", "tendonvel", "tendonactuatorfrc")), tendon=self.pick(self.tendons)
            )
        elif self.scalars:
            self.add(section, self.pick(("jointpos", "jointvel", "jointactuatorfrc")), joint=self.pick(self.scalars))
        else:
            self.add(section, "clock")


class Drawn(NamedTuple):
    """A model, the files that it names, and whether actuators push at sites."""

    text: str
    pushes: bool
    files: dict[str, bytes]

    def write(self, folder: Path) -> Path:
        """The model's file, beside what it names."""
        for name, content in self.files.items():
            if name in self.text:
                (folder / name).write_bytes(content)
        path = folder / "model.xml"
        path.write_text(self.text)
        return path


def random_mjcf(seed: int, number: int) -> Drawn:
    """A model, the same for the same seed and number."""
    maker = Maker(np.random.default_rng([seed, number]))
    return Drawn(maker.make(), maker.pushes, maker.files)
