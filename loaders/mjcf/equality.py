"""<equality>: joints and tendons that follow polynomials; points and frames that coincide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from math import comb

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.body import WORLD, Bodies
from artsim.loaders.mjcf.joint import MOVING, SCALAR
from artsim.loaders.mjcf.orientation import unit_quaternion
from artsim.loaders.mjcf.reading import Item
from artsim.loaders.mjcf.softness import read_softness
from artsim.sim.articulation.description import (
    IMPEDANCE,
    Coupling,
    Joint,
    Loop,
    Pose,
    Tendon,
    TendonCoupling,
    reference_of_softness,
)
from artsim.sim.articulation.pose_algebra import compose, inverse
from artsim.sim.foundation.errors import nearest


def read_equalities(
    bodies: Bodies, tendons: Sequence[Tendon], root: Element
) -> tuple[list[Coupling], list[Loop], list[TendonCoupling]]:
    """Every <equality>: couplings of joints, loops, couplings of tendons."""
    couplings: list[Coupling] = []
    loops: list[Loop] = []
    tendon_couplings: list[TendonCoupling] = []
    for section in children(root, "equality"):
        for element in section:
            item = bodies.defaults.item(element)
            kind = tag(element)
            active = item.flag("active", True) and not {"equality", "constraint"} & bodies.options.off
            if kind == "joint" and active:
                couplings.append(read_joint_equality(bodies, item))
            elif kind in ("connect", "weld"):
                loops.append(read_loop(bodies, item, len(loops), active))
            elif kind == "tendon" and active:
                tendon_couplings.append(read_tendon_equality(item, tendons, len(tendon_couplings)))
            elif active:
                bodies.reading.later(element, f"an equality of kind {kind!r}")
            else:
                bodies.reading.note(element, "an equality that is not active is left out", once="inactive equality")
    return couplings, loops, tendon_couplings


def read_joint_equality(bodies: Bodies, item: Item) -> Coupling:
    """<joint joint1 joint2 polycoef>: joint1 = ref1 + polynomial(joint2 - ref2), a constant without joint2."""
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
    softness = read_softness(item, "solref", "solimp")
    K, B, time_constant = reference_of_softness(softness)
    name = None if leader is None else leader.name
    coupling = Coupling(follower.name, name, coefficients, source=bodies.reading.at(item.element))
    if K <= 0:
        return replace(coupling, impedance=softness.impedance)
    return replace(
        coupling,
        frequency=math.sqrt(K) / (2.0 * math.pi),
        damping_ratio=B / (2.0 * math.sqrt(K)),
        impedance=softness.impedance or IMPEDANCE,
        time_constant=time_constant,
    )


def read_tendon_equality(item: Item, tendons: Sequence[Tendon], count: int) -> TendonCoupling:
    """<tendon tendon1 tendon2 polycoef>: tendon1 follows a polynomial of tendon2; alone it keeps its length."""
    names = [item.text("tendon1"), *([item.text("tendon2")] if item.has("tendon2") else [])]
    known = [tendon.name for tendon in tendons]
    for attribute, name in zip(("tendon1", "tendon2"), names, strict=False):
        if name not in known:
            item.refuse(f"{attribute} {name[:80]!r} does not exist{nearest(name[:80], known)}")
    if len(set(names)) < len(names):
        item.refuse(f"tendon {names[0]!r} follows itself")
    about = item.filled("polycoef", (0.0, 1.0, 0.0, 0.0, 0.0))
    leader = names[1] if len(names) > 1 else None
    return TendonCoupling(
        item.text("name") or f"equality_tendon_{count}",
        names[0],
        leader,
        about if leader else about[:1],
        read_softness(item, "solref", "solimp"),
        source=item.reading.at(item.element),
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


def read_loop(bodies: Bodies, item: Item, count: int, active: bool) -> Loop:
    """<connect> and <weld>: by two sites, or by bodies with an anchor (and, of a weld, the relative pose).

    MuJoCo takes relpose of a weld as the pose of the anchor, a point of the second body, in the first body.
    """
    kind = tag(item.element)
    if item.has("site1") or item.has("site2"):
        a, b = site_named(bodies, item, "site1"), site_named(bodies, item, "site2")
    else:
        first, second = body_named(bodies, item, "body1"), body_named(bodies, item, "body2")
        if first == second:
            item.refuse(f"joins body {first!r} to itself")
        between = compose(inverse(bodies.poses[first]), bodies.poses[second])  # pose of the second body in the first
        if kind == "connect":
            frame = Pose(item.vector("anchor"))
            a, b = (first, frame), (second, compose(inverse(between), frame))
        else:
            frame = Pose(item.vector("anchor", (0.0, 0.0, 0.0)))
            a, b = (first, relative(item) or compose(between, frame)), (second, frame)
    return Loop(
        item.text("name") or bodies.free_name("equality", f"{kind}_{count}"),
        "weld" if kind == "weld" else "connect",
        a[0],
        b[0],
        a[1],
        b[1],
        item.number("torquescale", 1.0),
        active,
        read_softness(item, "solref", "solimp"),
        bodies.reading.at(item.element),
    )


def relative(item: Item) -> Pose | None:
    """The pose in relpose; None, the file's pose, for a rotation of zeros."""
    x, y, z, *q = item.numbers("relpose", 7, 7, (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    if not any(q):
        return None
    return Pose((x, y, z), unit_quaternion(item, (q[0], q[1], q[2], q[3])))


def body_named(bodies: Bodies, item: Item, attribute: str) -> str:
    """The body that the attribute names; the world if the second body is left out."""
    name = item.text(attribute, WORLD if attribute == "body2" else "")
    if name not in bodies.poses:
        item.refuse(f"{attribute} {name[:80]!r} does not exist{nearest(name, bodies.poses)}")
    return name


def site_named(bodies: Bodies, item: Item, attribute: str) -> tuple[str, Pose]:
    """The link of a site, and the site's pose in it."""
    name = item.text(attribute)
    if name not in bodies.sites:
        item.refuse(f"{attribute} {name[:80]!r} does not exist{nearest(name, bodies.sites)}")
    return bodies.sites[name].link, bodies.sites[name].pose
