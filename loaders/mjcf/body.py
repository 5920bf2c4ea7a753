"""<worldbody> and <body>: the tree of links with their joints, geoms, sites and inertias."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.asset import Meshes
from artsim.loaders.mjcf.compiler import Compiler
from artsim.loaders.mjcf.defaults import Defaults
from artsim.loaders.mjcf.geom import Shape, describe_geom, fromto, mass_of, read_shape
from artsim.loaders.mjcf.joint import (
    Spot,
    is_aligned,
    is_limited,
    kind_of,
    read_joint,
    read_spring_damper,
    written_range,
)
from artsim.loaders.mjcf.mass import (
    along_axes,
    corrected,
    fixed_to_world,
    inertial_of_geoms,
    read_inertial,
    refuse_massless,
    scaled_to,
)
from artsim.loaders.mjcf.option import Options, switched
from artsim.loaders.mjcf.orientation import read_frame
from artsim.loaders.mjcf.reading import Item, MjcfReading, States, describe, dict_of
from artsim.loaders.mjcf.scope import Scope
from artsim.loaders.mjcf.spring_damper import with_springs
from artsim.sim.articulation.description import Inertial, Joint, Link, Pose, Site, Source, Tendon
from artsim.sim.articulation.pose_algebra import compose, inverse
from artsim.sim.foundation.dataclass import dataclass

WORLD = "world"
SECTIONS = {"tendon": "tendon", "actuator": "actuator", "sensor": "sensor", "equality": "equality", "keyframe": "key"}
NOT_YET = frozenset(("composite", "plugin"))
SITE_KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box")
SITE_SIZE = (0.005, 0.005, 0.005)


@dataclass(slots=True)
class Content:
    """The contents of a body, with <frame> elements dissolved."""

    joints: list[tuple[Item, Pose]] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    sites: list[tuple[Item, Pose]] = field(default_factory=list)
    inertials: list[tuple[Item, Pose]] = field(default_factory=list)
    bodies: list[tuple[Element, Pose, str | None]] = field(default_factory=list)
    geom_left_out: bool = False  # on request, a geom was left out with its plugin


def aligned(content: Content, pose: Pose, inertial: Inertial) -> tuple[Pose, Inertial]:
    """The body's frame at its centre of mass, along its principal axes; its contents keep their place in space."""
    inertial = along_axes(inertial)
    back = inverse(inertial.pose)
    content.shapes = [replace(shape, pose=compose(back, shape.pose)) for shape in content.shapes]
    content.sites = [(item, compose(back, frame)) for item, frame in content.sites]
    return compose(pose, inertial.pose), replace(inertial, pose=Pose())


@dataclass(slots=True)
class Bodies:
    """The tree as far as it is read. `poses` are those of bodies in the world with every joint at its reference."""

    scope: Scope
    meshes: Meshes
    options: Options
    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    sites: dict[str, Site] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)
    carriers: dict[str, str] = field(default_factory=dict)  # the link of each shape
    poses: dict[str, Pose] = field(default_factory=dict)
    by_kind: dict[tuple[str, ...], dict[str, int]] = field(default_factory=dict)
    states: dict[str, States] = field(default_factory=dict)  # in keyframes of attached models, by joint
    actuator_states: dict[str, States] = field(default_factory=dict)  # likewise, by actuator
    spring_dampers: dict[str, tuple[float, float]] = field(default_factory=dict)  # time [s] and ratio, by joint
    left_out: set[str] = field(default_factory=set)  # joints of bodies that stand still because a plugin was left out
    drags: list[tuple[int, tuple[float, ...], float]] = field(default_factory=list)  # joint, drag of its rotors, gear²
    # range of a joint or tendon, by ("joint", name), if its ends differ, limiting or not
    ranges: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    taken: dict[str, Element | None] = field(
        default_factory=lambda: {f"body {WORLD}": None}
    )  # by "kind name": the file's element, None for a name that is made up

    @property
    def reading(self) -> MjcfReading:
        """The reading of the whole model."""
        return self.scope.reading

    @property
    def defaults(self) -> Defaults:
        """The default classes of the model, and those of models attached to it."""
        return self.scope.defaults

    def compiler_at(self, element: Element) -> Compiler:
        """The compiler settings that hold for an element."""
        return self.scope.compiler_at(element)

    def read(self, root: Element) -> None:
        """Read every <worldbody>, depth first, in the order of MuJoCo's body ids. Without recursion."""
        worlds = list(children(root, "worldbody"))
        self.claim_names(root, worlds)
        stack = [(WORLD, item, frame, name) for item, frame, name in reversed(self.read_world(worlds))]
        while stack:
            parent, element, frame, childclass = stack.pop()
            name, inner = self.read_body(parent, element, frame, childclass)
            stack.extend((name, item, pose, cls) for item, pose, cls in reversed(inner))
        refuse_massless(self.reading, self.links, self.joints)
        compiler = self.scope.compiler
        still = fixed_to_world(self.joints) if compiler.fuse_static else set()
        self.links = scaled_to(self.links, compiler.total_mass, still)

    def set_springs(self, tendons: Sequence[Tendon]) -> None:
        """Apply springdamper, after actuators have added the inertias of their rotors."""
        self.joints = with_springs(self.links, self.joints, self.poses, self.spring_dampers, tendons)

    def switch_off(self) -> None:
        """Remove properties of joints that flags switch off."""
        self.joints = [switched(joint, self.options.off) for joint in self.joints]

    def claim_names(self, root: Element, worlds: list[Element]) -> None:
        """Record the names in the file, unique within a kind, so that made-up names avoid them."""
        for kind in ("body", "joint", "geom", "site"):
            tags = ("joint", "freejoint") if kind == "joint" else (kind,)
            self.claim(kind, (element for world in worlds for element in world.iter(*tags)))
        for section, kind in SECTIONS.items():
            self.claim(kind, (element for part in children(root, section) for element in part))

    def claim(self, kind: str, elements: Iterable[Element]) -> None:
        """Record the names of one kind. Raises ModelError for a name given twice."""
        for element in elements:
            name = element.get("name", "")
            key = f"{kind} {name}"
            if key in self.taken:
                before = self.taken[key]
                line = 0 if before is None else self.reading.at(before).line
                self.reading.refuse(element, f"{kind} {name[:80]!r} is already defined at line {line}")
            if name:
                self.taken[key] = element

    def free_name(self, kind: str, wanted: str) -> str:
        """A name for an element without one: `wanted`, with underscores appended while it is taken."""
        while f"{kind} {wanted}" in self.taken:
            wanted += "_"
        self.taken[f"{kind} {wanted}"] = None
        return wanted

    def read_world(self, worlds: list[Element]) -> list[tuple[Element, Pose, str | None]]:
        """The world's own contents: geoms, without mass, and sites; returns the bodies in the world."""
        content = Content()
        for world in worlds:
            self.gather(world, None, content)
        for item, _ in (*content.joints, *content.inertials):
            item.refuse("the world has neither joints nor mass")
        self.poses[WORLD] = Pose()
        geoms = tuple(describe_geom(shape, self.meshes) for shape in content.shapes)
        self.links.append(Link(WORLD, geoms=geoms, source=self.reading.at(worlds[0]) if worlds else Source()))
        self.add_named(WORLD, content)
        return content.bodies

    def read_body(
        self, parent: str, element: Element, frame: Pose, childclass: str | None
    ) -> tuple[str, list[tuple[Element, Pose, str | None]]]:
        """One body; returns its name and the bodies in it."""
        item = Item(self.reading, element, dict_of(element))
        name = item.text("name") or self.free_name("body", f"body_{len(self.links)}")
        compiler = self.compiler_at(element)
        pose = compose(frame, read_frame(item, compiler.angles))
        content = Content()
        self.gather(element, item.text("childclass") or childclass, content)
        inertial = self.inertial(item, content)
        inertial = corrected(item, along_axes(inertial) if inertial else None, compiler)
        if inertial and [is_aligned(joint, compiler) for joint, _ in content.joints] == [True] and not content.bodies:
            pose, inertial = aligned(content, pose, inertial)
        self.poses[name] = compose(self.poses[parent], pose)
        self.links.append(
            Link(
                name,
                inertial,
                tuple(describe_geom(shape, self.meshes) for shape in content.shapes),
                gravity_compensation=self.gravity_compensation(item),
                source=self.reading.at(element),
            )
        )
        if inertial is None and content.geom_left_out and content.joints:
            self.reading.note(element, f"{describe(element)} stands still: its mass came from a plugin, left out")
            self.left_out.update(joint.text("name") for joint, _ in content.joints)
            content.joints = []
        self.add_joints(item, content, Spot(parent, name, pose))
        self.add_named(name, content)
        if item.flag("mocap"):
            if content.joints or parent != WORLD:
                item.refuse("a mocap body stands in the world, without joints")
            self.reading.note(element, f"{describe(element)}: mocap bodies stand still", once="mocap")
        return name, content.bodies

    def gravity_compensation(self, item: Item) -> float:
        """gravcomp: the share of the body's weight that is compensated."""
        return 0.0 if self.options.passive_off else item.number("gravcomp")

    def gather(self, element: Element, childclass: str | None, content: Content) -> None:
        """Sort the contents of a body by kind."""
        for item, frame, name in self.flattened(element, childclass):
            kind = tag(item)
            if kind in NOT_YET:
                self.reading.later(item, f"<{kind}>")
            elif kind == "body":
                content.bodies.append((item, frame, name))
            elif kind in ("joint", "freejoint"):
                content.joints.append((self.defaults.item(item, name), frame))
            elif kind == "geom" and len(item):
                self.reading.later(item[0], "a plugin")
                content.geom_left_out = True
            elif kind == "geom":
                shape = read_shape(self.defaults.item(item, name), self.compiler_at(item), self.meshes, frame)
                if shape.mesh is None or not shape.mesh.by_plugin:
                    content.shapes.append(shape)
                content.geom_left_out |= shape.mesh is not None and shape.mesh.by_plugin
            elif kind == "site":
                content.sites.append((self.defaults.item(item, name), frame))
            elif kind == "inertial":
                content.inertials.append((self.defaults.item(item), frame))
            # cameras and lights are for the viewer

    def flattened(self, element: Element, childclass: str | None) -> Iterator[tuple[Element, Pose, str | None]]:
        """The body's children and those of its <frame> elements, each with the pose and class of its frame."""
        stack = [(item, Pose(), childclass) for item in reversed(element)]
        while stack:
            item, frame, name = stack.pop()
            if item in self.reading.scopes:  # another model, with classes of its own
                name = None
            if tag(item) != "frame":
                yield item, frame, name
                continue
            attributes = dict_of(item)
            inner = compose(frame, read_frame(Item(self.reading, item, attributes), self.compiler_at(item).angles))
            stack.extend((below, inner, item.get("childclass") or name) for below in reversed(item))

    def inertial(self, item: Item, content: Content) -> Inertial | None:
        """The body's inertial, from <inertial> or from geoms, as inertiafromgeom selects."""
        if len(content.inertials) > 1:
            content.inertials[1][0].refuse("is the second inertial of its body")
        compiler = self.compiler_at(item.element)
        where = compiler.inertia_from_geom
        given = next((read_inertial(*pair, compiler) for pair in content.inertials), None)
        if where == "false" or (where == "auto" and given):
            return given
        low, high = compiler.inertia_groups
        parts = [mass_of(shape, self.meshes) for shape in content.shapes if low <= shape.item.whole("group") <= high]
        return inertial_of_geoms(item, parts) or given

    def add_joints(self, item: Item, content: Content, spot: Spot) -> None:
        """Add the body's joints in order, or a fixed joint if there are none."""
        kinds = [kind_of(joint) for joint, _ in content.joints]
        if "free" in kinds and (spot.parent != WORLD or len(kinds) > 1):
            item.refuse("a free joint stands alone, in a body of the world")
        if "ball" in kinds and any(kind in ("ball", "hinge") for kind in kinds[kinds.index("ball") + 1 :]):
            item.refuse("a ball joint is followed by another rotation")
        if not kinds:
            name = self.free_name("joint", spot.child)
            self.joints.append(
                Joint(name, "fixed", spot.parent, spot.child, spot.pose, source=self.reading.at(item.element))
            )
        for count, (joint, frame) in enumerate(content.joints):
            unnamed = spot.child if len(kinds) == 1 else f"{spot.child}_{count}"
            name = joint.text("name") or self.free_name("joint", unnamed)
            place = Spot(spot.parent, spot.child, Pose() if count else spot.pose, frame)
            compiler = self.compiler_at(joint.element)
            self.joints.append(read_joint(joint, compiler, name, place))
            is_angle = kind_of(joint) == "hinge" and is_limited(
                joint, compiler.autolimits
            )  # MuJoCo leaves other ranges in degrees
            written = written_range(joint, compiler.angles.unit if is_angle else 1.0)
            if written is not None:
                self.ranges["joint", name] = written
            if joint.element in self.reading.states:
                self.states[name] = self.reading.states[joint.element]
            wanted = read_spring_damper(joint)
            if wanted is not None:
                self.spring_dampers[name] = wanted

    def names(self, *kinds: str) -> dict[str, int]:
        """Joints of these kinds, by name, with their indices in `joints`; computed once, when all bodies are read."""
        if kinds not in self.by_kind:
            found = {joint.name: i for i, joint in enumerate(self.joints) if joint.kind in kinds}
            self.by_kind[kinds] = found
        return self.by_kind[kinds]

    def add_named(self, link: str, content: Content) -> None:
        """Record sites, and the geoms that tendons may wrap around, by name."""
        for item, frame in content.sites:
            pose, size = read_frame(item, self.compiler_at(item.element).angles), item.filled("size", SITE_SIZE)
            kind = item.word("type", SITE_KINDS, "sphere")
            if item.has("fromto"):
                size, pose = fromto(item, kind)
            a, b, c = (*size, 0.0)[:3]
            name = item.text("name") or self.free_name("site", f"site_{len(self.sites)}")
            self.sites[name] = Site(name, link, compose(frame, pose), self.reading.at(item.element), kind, (a, b, c))
        named = {shape.item.text("name"): shape for shape in content.shapes if shape.item.text("name")}
        self.shapes.update(named)
        self.carriers.update(dict.fromkeys(named, link))
