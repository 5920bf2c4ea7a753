"""Loops from a file beside a model of any format (--loops FILE, TOML), in the model's own names.

```toml
[[loop]]
name = "shut"            # by default loop_0, loop_1, …
kind = "hinge"           # connect, weld, hinge, slider, cylindrical, planar, joint, distance, gear, tendon
link_a = "crank"         # or "world"
link_b = "rod"
point_a = [0.1, 0, 0]    # in link_a [m]; by default its origin
point_b = [0.3, 0, 0]    # in link_b; by default where point_a is in the file's pose
axis_a = [0, 0, 1]       # hinge, slider …: in link_a; axis_b by default where axis_a is in the file's pose
frequency = 20.0         # a spring with this natural frequency [Hz] …
damping_ratio = 1.0
# k = 1e5                # … or with this stiffness [N/m, of a gear N m/rad or N/m] and damping; without any: rigid
# d = 10.0
# k_rotation = 100.0     # where it holds rotations [N m/rad]
# d_rotation = 0.1
# compliance = 1e-5      # … or with this compliance [m/N, rad/(N m)], of turns too; 0: hard
# compliance_damping = 0.01  # and this time [s]: force -(C + compliance_damping Ċ) / compliance at an error C

[loop.rz]                # about its axis: the free axes are rz of a hinge, z of a slider, z and rz of a cylindrical …
lower = -1.0             # limits [rad, m]; hard, or with limit_stiffness and limit_damping
upper = 1.0
friction = 0.1           # [N m, N]
damping = 0.05           # [N m s/rad, N s/m]
stiffness = 1.0          # of a spring [N m/rad, N/m] …
rest = 0.2               # … about this coordinate, by default 0

[loop.rz.drive]
stiffness = 50.0         # [N m/rad, N/m]; with mode = "acceleration" [1/s²]
damping = 2.0
target = 0.3             # and velocity: the controls shut.target and shut.velocity
max_force = 10.0         # [N m, N]

[[loop]]
kind = "gear"            # follower = ratio leader + offset
follower = "wheel_2"
leader = "wheel_1"
ratio = -2.0

[[loop]]
kind = "tendon"          # PhysX's fixed tendon: length = offset + Σ coefficient · coordinate
joints = { finger_1 = 0.01, finger_2 = 0.008 }
offset = 0.02
rest_length = 0.02       # of its spring k, d; by default the length in the file's pose
k = 200.0
lower = 0.0              # limits of the length, hard or with limit_stiffness
upper = 0.04
friction = 0.5           # [N]
```

The free axes of a planar loop are x, y and rz (its axis is the normal), of a connect rx, ry and rz, each the twist
about an axis of frame a. In a `joint` the axes named by `free = ["x", "rz"]` are free, in frames with rpy_a and rpy_b
[rad], as for a weld. The properties of an axis become a tendon, and its drive an actuator; both have the loop's name,
or LOOP.AXIS if several axes are free. A distance has `length` [m], by default that in the file's pose, or lower and
upper between which it is free (a rope). A gear is a coupling of joints, a distance the length of a tendon between two
sites, a tendon one whose recorded length leaves out the offset: their forces are recorded as those of couplings and
tendons.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Literal

from artsim.loaders.elements import Reading
from artsim.loaders.loop_entry import (
    FRAMES,
    Entry,
    Poses,
    along_axis,
    compliance_of,
    framed,
    limit_spring_of,
    links_of,
    motion_of,
    points_of,
    read_entries,
    shown,
    spring_of,
)
from artsim.loaders.loop_motion import FREE, parts_of
from artsim.loaders.urdf_joint import refuse_mimic_cycles
from artsim.sim.articulation.description import (
    LOOP_AXES,
    Actuator,
    Articulation,
    Coupling,
    Loop,
    Pose,
    Site,
    Tendon,
    TendonCoupling,
    TendonPoint,
)
from artsim.sim.articulation.pose_algebra import compose
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import nearest

SINGLE = ("revolute", "continuous", "prismatic")


@dataclass(slots=True)
class Made:
    """The parts of the model that the loops of a file have become so far."""

    loops: list[Loop] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    tendons: list[Tendon] = field(default_factory=list)
    equalities: list[TendonCoupling] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    actuators: list[Actuator] = field(default_factory=list)


def with_loops(articulation: Articulation, text: bytes | str, *, file: str) -> Articulation:
    """The robot with the loops of a TOML text, called `file` in messages.

    Raises ModelError: no TOML, a key or a kind that does not exist, a link or joint that the robot does not have.
    """
    made, poses = Made(), Poses(articulation)
    taken = {item.name for items in (articulation.loops, articulation.tendons) for item in items}
    acting = {actuator.name for actuator in articulation.actuators}
    for entry in read_entries(text, file, poses):
        before = len(made.tendons), len(made.actuators)
        MAKERS[entry.kind](entry, articulation, made)
        names = {entry.name, *(tendon.name for tendon in made.tendons[before[0] :])}
        if names & taken:
            entry.refuse(f"the name is taken by another loop or tendon: {min(names & taken)!r}")
        taken |= names
        for actuator in made.actuators[before[1] :]:
            if actuator.name in acting:
                entry.refuse(f"the name {actuator.name!r} of its drive is taken by another actuator")
            acting.add(actuator.name)
    refuse_mimic_cycles(Reading(file), [*articulation.couplings, *made.couplings])
    return replace(
        articulation,
        loops=(*articulation.loops, *made.loops),
        couplings=(*articulation.couplings, *made.couplings),
        tendons=(*articulation.tendons, *made.tendons),
        tendon_couplings=(*articulation.tendon_couplings, *made.equalities),
        sites=(*articulation.sites, *made.sites),
        actuators=(*articulation.actuators, *made.actuators),
    )


# --- kinds -----------------------------------------------------------------------------------------------------------


def add_connect(entry: Entry, articulation: Articulation, made: Made) -> None:
    """kind = "connect": two points coincide."""
    turned = any(entry.has(key) for key in (*FRAMES, *FREE["connect"]))
    if turned:
        frames = framed(entry)
    else:
        point_a, point_b = points_of(entry)
        frames = Pose(point_a), Pose(point_b)
    add_loop(entry, "connect", frames, made)


def add_weld(entry: Entry, articulation: Articulation, made: Made) -> None:
    """kind = "weld": two frames coincide."""
    add_loop(entry, "weld", framed(entry), made)


def add_hinge(entry: Entry, articulation: Articulation, made: Made) -> None:
    """kind = "hinge": two points and two directions coincide."""
    add_loop(entry, "hinge", along_axis(entry), made)


def add_axis_joint(entry: Entry, articulation: Articulation, made: Made) -> None:
    """kind = "slider", "cylindrical" or "planar": free along or about the axis, or across it."""
    add_loop(entry, "joint", along_axis(entry), made, FREE[entry.kind])


def add_joint(entry: Entry, articulation: Articulation, made: Made) -> None:
    """kind = "joint": the axes of `free` move, all others are held."""
    free = entry.values.get("free")
    if not isinstance(free, list) or not free or not all(axis in LOOP_AXES for axis in free):
        entry.refuse(f"free is {shown(free)}, want a list of some of {', '.join(LOOP_AXES)}")
    if len(set(free)) != len(free) or len(free) == len(LOOP_AXES):
        entry.refuse(f"free is {shown(free)}, want each axis once and not all of them")
    add_loop(entry, "joint", framed(entry), made, tuple(axis for axis in LOOP_AXES if axis in free))


def add_loop(
    entry: Entry,
    kind: Literal["connect", "weld", "hinge", "joint"],
    frames: tuple[Pose, Pose],
    made: Made,
    free: tuple[str, ...] | None = None,
) -> None:
    """A loop between two links, with the motions of its free axes."""
    a, b = links_of(entry)
    axes = FREE[kind] if free is None else free
    loop = Loop(entry.name, kind, a, b, *frames, source=entry.source, free=free or ())
    made.loops.append(replace(loop, spring=spring_of(entry, turns=any(loop.held[3:]))))
    motions = {axis: motion_of(entry, axis, axes) for axis in LOOP_AXES if entry.has(axis)}
    tendons, actuators = parts_of(entry.name, axes, motions, entry.source)
    made.tendons += tendons
    made.actuators += actuators


def add_distance(entry: Entry, articulation: Articulation, made: Made) -> None:
    """kind = "distance": two points at a fixed distance, or a spring between them; as a tendon between two sites."""
    links, points = links_of(entry), points_of(entry, default=(0.0, 0.0, 0.0))
    ends = [compose(entry.poses.of(link), Pose(point)).position for link, point in zip(links, points, strict=True)]
    now = math.dist(*ends)
    if now < 1e-9:
        entry.refuse("the points coincide in the file's pose, so that their distance has no direction; use connect")
    length = entry.number("length", now)
    if length <= 0:
        entry.refuse(f"length is {length:g} m, want more than 0; connect makes points coincide")
    sites = [f"{entry.name}_{end}" for end in "ab"]
    for site, link, point in zip(sites, links, points, strict=True):
        if any(site == other.name for other in (*articulation.sites, *made.sites)):
            entry.refuse(f"its site {site!r} has the name of another; give the loop another name")
        made.sites.append(Site(site, link, Pose(point), entry.source))
    tendon = Tendon(entry.name, "spatial", tuple(TendonPoint("site", site) for site in sites), source=entry.source)
    if entry.has("lower") or entry.has("upper"):
        if entry.has("frequency") or (entry.has("length") and not entry.has("k")):
            entry.refuse("has limits, between which it is free, and a length that it keeps")
        low, high = (entry.number(key, least=0.0) if entry.has(key) else None for key in ("lower", "upper"))
        if low is not None and high is not None and low > high:
            entry.refuse(f"the lower limit {low:g} is greater than the upper one {high:g}")
        tendon = replace(tendon, lower=low, upper=high, limit_spring=limit_spring_of(entry, "a distance"))
        if not entry.has("k"):
            made.tendons.append(tendon)
            return
    add_length(entry, tendon, length, now, made)


def add_length(entry: Entry, tendon: Tendon, length: float, now: float, made: Made) -> None:
    """The tendon with a spring, or with an equality of its length; `now` is its length in the file's pose."""
    if entry.has("k"):
        damping = entry.number("d", 0.0, least=0.0)
        sprung = replace(tendon, stiffness=entry.number("k"), damping=damping, spring_length=(length, length))
        made.tendons.append(sprung)
        return
    made.tendons.append(tendon)
    made.equalities.append(
        TendonCoupling(
            entry.name,
            tendon.name,
            None,
            (length - now,),
            frequency=entry.number("frequency") if entry.has("frequency") else None,
            damping_ratio=entry.number("damping_ratio", 1.0, least=0.0),
            source=entry.source,
            compliance=compliance_of(entry),
        )
    )


def add_gear(entry: Entry, articulation: Articulation, made: Made) -> None:
    """kind = "gear": a joint follows another one, or a spring pulls it there; as a coupling, or a fixed tendon."""
    joints = {joint.name: joint for joint in articulation.joints}
    moving = [name for name, joint in joints.items() if joint.kind in SINGLE]
    follower, leader = (entry.named(key, moving, "joint with one coordinate") for key in ("follower", "leader"))
    if follower == leader:
        entry.refuse(f"joint {follower!r} follows itself")
    ratio, offset = entry.number("ratio", 1.0), entry.number("offset", 0.0)
    if entry.has("k"):
        path = (TendonPoint("joint", follower, 1.0), TendonPoint("joint", leader, -ratio))
        add_length(entry, Tendon(entry.name, "fixed", path, source=entry.source), offset, offset, made)
        return
    first = next((c for c in (*articulation.couplings, *made.couplings) if c.follower == follower), None)
    if first is not None:
        entry.refuse(f"joint {follower!r} already follows {first.leader!r} ({first.source})")
    made.couplings.append(
        Coupling(
            follower,
            leader,
            (offset, ratio),
            frequency=entry.number("frequency") if entry.has("frequency") else None,
            damping_ratio=entry.number("damping_ratio", 1.0, least=0.0) if entry.has("frequency") else None,
            source=entry.source,
            compliance=compliance_of(entry),
        )
    )


def add_tendon(entry: Entry, articulation: Articulation, made: Made) -> None:
    """kind = "tendon": a sum of coordinates with a spring, limits and friction."""
    moving = [joint.name for joint in articulation.joints if joint.kind in SINGLE]
    joints = entry.values.get("joints")
    if not isinstance(joints, dict) or not joints:
        entry.refuse(f"joints is {shown(joints)}, want a table of coefficients by joint")
    named = replace(entry, values=joints)
    for name in joints:
        if name not in moving:
            entry.refuse(f"joints names {name[:80]!r}, no joint with one coordinate{nearest(name[:80], moving)}")
    offset = entry.number("offset", 0.0)
    low, high = (entry.number(key) - offset if entry.has(key) else None for key in ("lower", "upper"))
    if low is not None and high is not None and low > high:
        entry.refuse(f"the lower limit {low + offset:g} is greater than the upper one {high + offset:g}")
    if (entry.has("rest_length") or entry.has("d")) and not entry.has("k"):
        entry.refuse("has a rest_length or damping and no stiffness k")
    if entry.has("limit_stiffness") and low is None and high is None:
        entry.refuse("has a limit_stiffness and no lower or upper")
    rest = entry.number("rest_length") - offset if entry.has("rest_length") else None
    made.tendons.append(
        Tendon(
            entry.name,
            "fixed",
            tuple(TendonPoint("joint", name, named.number(name)) for name in joints),
            lower=low,
            upper=high,
            stiffness=entry.number("k") if entry.has("k") else 0.0,
            damping=entry.number("d", 0.0, least=0.0),
            spring_length=None if rest is None else (rest, rest),
            friction=entry.number("friction", 0.0, least=0.0),
            limit_spring=limit_spring_of(entry, "a tendon"),
            source=entry.source,
        )
    )


MAKERS = {
    "connect": add_connect,
    "weld": add_weld,
    "hinge": add_hinge,
    "slider": add_axis_joint,
    "cylindrical": add_axis_joint,
    "planar": add_axis_joint,
    "joint": add_joint,
    "distance": add_distance,
    "gear": add_gear,
    "tendon": add_tendon,
}
