"""<joint> and <freejoint>: the motion of a body in its parent."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from artsim.loaders.elements import tag
from artsim.loaders.mjcf.compiler import Compiler
from artsim.loaders.mjcf.orientation import unit
from artsim.loaders.mjcf.reading import Item
from artsim.loaders.mjcf.softness import read_softness
from artsim.sim.articulation.description import Joint, JointKind, Pose, Quaternion
from artsim.sim.articulation.pose_algebra import rotate
from artsim.sim.foundation.dataclass import dataclass

KINDS: dict[str, JointKind] = {"hinge": "revolute", "slide": "prismatic", "ball": "ball", "free": "free"}
SCALAR = ("revolute", "prismatic")
MOVING = (*SCALAR, "ball", "free")
LIMITED = ("false", "true", "auto")


@dataclass(frozen=True, slots=True)
class Spot:
    """The place of a joint: its links, the body's pose in the parent (identity for a further joint), and its frame."""

    parent: str
    child: str
    pose: Pose
    frame: Pose = field(default_factory=Pose)


def read_joint(item: Item, compiler: Compiler, name: str, spot: Spot) -> Joint:
    """One joint of a body."""
    source = item.reading.at(item.element)
    if tag(item.element) == "freejoint":
        return Joint(name, "free", spot.parent, spot.child, pose=spot.pose, source=source)
    kind = KINDS[item.word("type", tuple(KINDS), "hinge")]
    refuse_unsupported(item)
    unit_of_angle = compiler.angles.unit if kind in ("revolute", "ball") else 1.0
    x, y, z = rotate(spot.frame.rotation, item.vector("pos", (0.0, 0.0, 0.0)))
    px, py, pz = spot.frame.position
    bounds = read_actuator_range(item, compiler.autolimits) if kind in ("revolute", "prismatic") else None
    stiffness, stiffness_polynomial = read_polynomial(item, "stiffness")
    damping, damping_polynomial = read_polynomial(item, "damping")
    return Joint(
        name,
        kind,
        spot.parent,
        spot.child,
        pose=spot.pose,
        anchor=(0.0, 0.0, 0.0) if kind == "free" else (px + x, py + y, pz + z),
        effort=bounds[1] if bounds is not None and bounds[0] == -bounds[1] else None,  # for drives, too
        actuator_range=bounds,
        actuator_gravity_compensation=item.flag("actuatorgravcomp"),
        damping=damping,
        damping_polynomial=damping_polynomial,
        friction=item.number("frictionloss", least=0.0),
        stiffness=stiffness,
        stiffness_polynomial=stiffness_polynomial,
        armature=item.number("armature", least=0.0),
        limit_softness=read_softness(item, "solreflimit", "solimplimit"),
        limit_margin=item.number("margin"),  # of hinges in radians, whatever the unit of angles
        friction_softness=read_softness(item, "solreffriction", "solimpfriction"),
        source=source,
        **read_own(item, compiler, kind, spot.frame.rotation, unit_of_angle),
    )


def read_own(
    item: Item, compiler: Compiler, kind: JointKind, frame: Quaternion, unit_of_angle: float
) -> dict[str, Any]:
    """The fields of a joint that only some kinds have, angles in radians: axis, range, reference and spring of a hinge
    or slide, the range of a ball."""
    if kind == "free":
        return {}
    if kind == "ball":
        return {"upper": read_cone(item, compiler.autolimits, unit_of_angle)}
    lower, upper = read_range(item, compiler.autolimits, unit_of_angle)
    return {
        "axis": rotate(frame, unit(item, "axis", item.vector("axis", (0.0, 0.0, 1.0)))),
        "lower": lower,
        "upper": upper,
        "reference": item.number("ref") * unit_of_angle,
        "spring_reference": item.number("springref") * unit_of_angle,
    }


def is_limited(item: Item, autolimits: bool) -> bool:
    """True if the range limits; with `auto` a range limits unless it is 0 0."""
    low, high = item.numbers("range", 2, 2, (0.0, 0.0))
    limited = item.word("limited", LIMITED, "auto")
    if limited == "auto" and not autolimits and low < high:
        item.refuse("has a range, but limited is not set and the compiler's autolimits is false")
    return limited == "true" or (limited == "auto" and low < high)


def read_range(item: Item, autolimits: bool, unit_of_angle: float) -> tuple[float | None, float | None]:
    """The position limits [m or rad], None without them."""
    if not is_limited(item, autolimits):
        return None, None
    low, high = item.numbers("range", 2, 2, (0.0, 0.0))
    if low >= high:
        item.refuse(f"range is {low:g} to {high:g}: the first must be smaller")
    return low * unit_of_angle, high * unit_of_angle


def written_range(item: Item, unit: float = 1.0) -> tuple[float, float] | None:
    """The range as written, limiting or not; None if its ends are equal."""
    low, high = (end * unit for end in item.numbers("range", 2, 2, (0.0, 0.0)))
    return None if low == high else (low, high)


def read_cone(item: Item, autolimits: bool, unit_of_angle: float) -> float | None:
    """The largest angle [rad] of a ball joint, None if unlimited; 0 locks the joint."""
    if not is_limited(item, autolimits):
        return None
    low, high = item.numbers("range", 2, 2, (0.0, 0.0))
    if low != 0 or high < 0:
        item.refuse(f"range is {low:g} to {high:g}: that of a ball joint begins at 0")
    return high * unit_of_angle


def read_actuator_range(item: Item, autolimits: bool) -> tuple[float, float] | None:
    """actuatorfrcrange, which bounds the sum of all actuators' forces on the joint; None without one."""
    low, high = item.numbers("actuatorfrcrange", 2, 2, (0.0, 0.0))
    limited = item.word("actuatorfrclimited", LIMITED, "auto")
    if limited == "auto" and not autolimits and (low or high):
        item.refuse("has an actuatorfrcrange, but actuatorfrclimited is not set and the compiler's autolimits is false")
    if limited == "false" or (limited == "auto" and not (low or high)):
        return None
    if low >= high:
        item.refuse(f"actuatorfrcrange is {low:g} to {high:g}: the first must be smaller")
    return low, high


def refuse_unsupported(item: Item) -> None:
    """Refuse attributes that would change the joint's forces in ways that are not modelled."""
    if item.has("springyield"):
        item.reading.later(item.element, "springyield")


def kind_of(item: Item) -> str:
    """The joint's type: hinge, slide, ball or free."""
    return "free" if tag(item.element) == "freejoint" else item.text("type", "hinge")


def is_aligned(item: Item, compiler: Compiler) -> bool:
    """True if the frame of a free body is moved to its centre of mass and principal axes."""
    align = item.word("align", LIMITED, "auto")
    return kind_of(item) == "free" and (align == "true" or (align == "auto" and compiler.align_free))


def read_spring_damper(item: Item) -> tuple[float, float] | None:
    """springdamper: time constant [s] and damping ratio, instead of stiffness and damping."""
    time, ratio = item.numbers("springdamper", 2, 2, (0.0, 0.0))
    if not (time or ratio):
        return None
    if min(time, ratio) <= 0:
        item.refuse(f"springdamper is {time:g} {ratio:g}, want two numbers above 0")
    return time, ratio


def read_polynomial(item: Item, name: str) -> tuple[float, tuple[float, float]]:
    """Stiffness or damping: the linear coefficient, and the coefficients of the second and third power."""
    linear, second, third = item.filled(name, (0.0, 0.0, 0.0))
    return linear, (second, third)
