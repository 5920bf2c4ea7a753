"""<equality>: joints that follow polynomials, points and frames that coincide."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.body import WORLD, Bodies
from artsim.loaders.mjcf.joint import MOVING, SCALAR
from artsim.loaders.mjcf.orientation import compose, inverse, unit_quaternion
from artsim.loaders.mjcf.reading import Item
from artsim.sim.description import Coupling, Joint, Loop, Pose
from artsim.sim.errors import nearest


def read_equalities(bodies: Bodies, root: Element) -> tuple[list[Coupling], list[Loop]]:
    """Every <equality>: couplings of joints, and loops."""
    couplings: list[Coupling] = []
    loops: list[Loop] = []
    for section in children(root, "equality"):
        for element in section:
            item = bodies.defaults.item(element)
            kind = tag(element)
            active = item.flag("active", True) and not {"equality", "constraint"} & bodies.options.off
            if kind == "joint" and active:
                couplings.append(read_joint_equality(bodies, item))
            elif kind in ("connect", "weld"):
                loops.append(read_loop(bodies, item, len(loops), active))
                if active:
                    bodies.reading.idle(element, f"an equality of kind {kind!r}", f"equality {kind}")
            elif active:
                bodies.reading.later(element, f"an equality of kind {kind!r}")
            else:
                bodies.reading.note(element, "an equality that is not active is left out", once="inactive equality")
    refuse_twice(bodies, couplings)
    return couplings, loops


def read_joint_equality(bodies: Bodies, item: Item) -> Coupling:
    """<joint joint1 joint2 polycoef>: joint1 = ref1 + polynomial(joint2 - ref2), or a constant without joint2."""
    follower = joint_named(bodies, item, "joint1")
    leader = joint_named(bodies, item, "joint2") if item.has("joint2") else None
    about = item.filled("polycoef", (0.0, 1.0, 0.0, 0.0, 0.0))
    if leader is None:
        coefficients: tuple[float, ...] = (follower.reference + about[0],)
    else:
        if leader is follower:
            item.refuse(f"joint {leader.name!r} follows itself")
        moved = about_zero(about, leader.reference)
        coefficients = (moved[0] + follower.reference, *moved[1:])
    return Coupling(
        follower.name, None if leader is None else leader.name, coefficients, source=bodies.reading.at(item.element)
    )


def about_zero(coefficients: Sequence[float], centre: float) -> tuple[float, ...]:
    """Σ c_k (x - centre)^k as Σ d_k x^k, by the binomial theorem."""
    return tuple(
        sum(c * comb(k, i) * (-centre) ** (k - i) for k, c in enumerate(coefficients) if k >= i)
        for i in range(len(coefficients))
    )


def joint_named(bodies: Bodies, item: Item, attribute: str) -> Joint:
    """The hinge or slide that the attribute names."""
    name = item.text(attribute)
    found = bodies.names(*MOVING)
    if name not in found:
        item.refuse(f"{attribute} {name[:80]!r} does not exist{nearest(name[:80], found)}")
    joint = bodies.joints[found[name]]
    if joint.kind not in SCALAR:
        item.refuse(f"{attribute} {name!r} is a {joint.kind} joint, want a hinge or a slide")
    return joint


def refuse_twice(bodies: Bodies, couplings: list[Coupling]) -> None:
    """A joint can be eliminated once."""
    seen: dict[str, Coupling] = {}
    for coupling in couplings:
        if coupling.follower in seen:
            line = seen[coupling.follower].source.line
            bodies.reading.refuse(
                coupling.source,
                f"joint {coupling.follower!r} already follows by the equality at line {line}: "
                "a second one is not supported yet",
            )
        seen[coupling.follower] = coupling


def read_loop(bodies: Bodies, item: Item, count: int, active: bool) -> Loop:
    """<connect> and <weld>: by two sites, or by bodies with an anchor (and, of a weld, the relative pose)."""
    kind = "weld" if tag(item.element) == "weld" else "connect"
    if item.has("site1") or item.has("site2"):
        a, b = site_named(bodies, item, "site1"), site_named(bodies, item, "site2")
    else:
        first, second = body_named(bodies, item, "body1"), body_named(bodies, item, "body2")
        between = compose(inverse(bodies.poses[first]), bodies.poses[second])  # the second in the first's frame
        if kind == "connect":
            frame = Pose(item.vector("anchor"))
            a, b = (first, frame), (second, compose(inverse(between), frame))
        else:
            frame = Pose(item.vector("anchor", (0.0, 0.0, 0.0)))
            a, b = (first, compose(relative(item, between), frame)), (second, frame)
    name = item.text("name") or f"{kind}_{count}"
    return Loop(name, kind, a[0], b[0], a[1], b[1], active, bodies.reading.at(item.element))  # type: ignore[arg-type]


def relative(item: Item, between: Pose) -> Pose:
    """relpose: the second body's pose in the first; a rotation of zeros means that of the file."""
    x, y, z, *q = item.numbers("relpose", 7, 7, (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    if not any(q):
        return between
    return Pose((x, y, z), unit_quaternion(item, (q[0], q[1], q[2], q[3])))


def body_named(bodies: Bodies, item: Item, attribute: str) -> str:
    """A body's name; the second body may be left out, which means the world."""
    name = item.text(attribute, WORLD if attribute == "body2" else "")
    if name not in bodies.poses:
        item.refuse(f"{attribute} {name[:80]!r} does not exist{nearest(name, bodies.poses)}")
    return name


def site_named(bodies: Bodies, item: Item, attribute: str) -> tuple[str, Pose]:
    """The link and the pose in it of a site."""
    name = item.text(attribute)
    if name not in bodies.sites:
        item.refuse(f"{attribute} {name[:80]!r} does not exist{nearest(name, bodies.sites)}")
    return bodies.sites[name].link, bodies.sites[name].pose
