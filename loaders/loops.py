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
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Literal, NoReturn

from artsim.loaders.elements import Reading
from artsim.loaders.loop_motion import FREE, MODES, Drive, Motion, parts_of
from artsim.loaders.xml import check_size, decode
from artsim.sim.articulation.description import (
    LOOP_AXES,
    Actuator,
    Articulation,
    Compliance,
    Coupling,
    Loop,
    LoopSpring,
    Pose,
    Quaternion,
    Site,
    Source,
    Tendon,
    TendonCoupling,
    TendonPoint,
    Vector3,
)
from artsim.sim.articulation.pose_algebra import compose, inverse, quaternion_from_rpy, quaternion_from_z
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError, nearest
from artsim.sim.foundation.toml import read_toml

MAX_MB = 1.0
MOST = 10_000  # loops
WORLD = "world"
HEADER = re.compile(r"^[ \t]*\[\[[ \t]*loop[ \t]*\]\]", re.MULTILINE)
SINGLE = ("revolute", "continuous", "prismatic")
ENDS = ("link_a", "link_b", "point_a", "point_b")
COMPLIANCE = ("compliance", "compliance_damping")
SPRING = ("frequency", "damping_ratio", "k", "d", *COMPLIANCE)
TURN = ("k_rotation", "d_rotation")
SOFT = ("limit_stiffness", "limit_damping")
FRAMES = ("rpy_a", "rpy_b")
AXES = ("axis_a", "axis_b")
KEYS = {
    "connect": (*ENDS, *FRAMES, *SPRING, *FREE["connect"]),
    "weld": (*ENDS, *FRAMES, *SPRING, *TURN),
    "hinge": (*ENDS, *AXES, *SPRING, *TURN, *FREE["hinge"]),
    "slider": (*ENDS, *AXES, *SPRING, *TURN, *FREE["slider"]),
    "cylindrical": (*ENDS, *AXES, *SPRING, *TURN, *FREE["cylindrical"]),
    "planar": (*ENDS, *AXES, *SPRING, *TURN, *FREE["planar"]),
    "joint": (*ENDS, *FRAMES, "free", *SPRING, *TURN, *LOOP_AXES),
    "distance": (*ENDS, "length", *SPRING, "lower", "upper", *SOFT),
    "gear": ("follower", "leader", "ratio", "offset", *SPRING),
    "tendon": ("joints", "offset", "rest_length", "k", "d", "lower", "upper", *SOFT, "friction"),
}
COMMON = ("name", "kind")
MOTION = ("lower", "upper", *SOFT, "friction", "damping", "stiffness", "rest", "drive")
DRIVE = ("stiffness", "damping", "target", "velocity", "max_force", "mode")


@dataclass(slots=True)
class Made:
    """The parts of the model that the loops of a file have become so far."""

    loops: list[Loop] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    tendons: list[Tendon] = field(default_factory=list)
    equalities: list[TendonCoupling] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    actuators: list[Actuator] = field(default_factory=list)


@dataclass(slots=True)
class Entry:
    """A [[loop]]: its values, its place in the file, and the model."""

    values: Mapping[str, Any]
    source: Source
    name: str
    kind: str
    poses: Poses

    def refuse(self, message: str) -> NoReturn:
        """Raise one line that names the loop."""
        raise ModelError(f"{self.source}: loop {self.name!r}: {message}")

    def has(self, key: str) -> bool:
        """True if the key is given."""
        return key in self.values

    def number(self, key: str, default: float | None = None, *, least: float | None = None) -> float:
        """The finite number of a key, refused below `least`; the key is required without a default."""
        value = self.values.get(key, default)
        if value is None:
            self.refuse(f"has no {key!r}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e30:
            self.refuse(f"{key} is {shown(value)}, want a number")
        if least is not None and value < least:
            self.refuse(f"{key} is {value:g}, want at least {least:g}")
        return float(value)

    def vector(self, key: str, default: Vector3 | None = None) -> Vector3:
        """Three finite numbers."""
        value = self.values.get(key, default)
        if value is None:
            self.refuse(f"has no {key!r}")
        if not isinstance(value, list | tuple) or len(value) != 3:
            self.refuse(f"{key} is {shown(value)}, want three numbers")
        for item in value:
            if isinstance(item, bool) or not isinstance(item, int | float) or not abs(item) < 1e30:
                self.refuse(f"{key} holds {shown(item)}, want three numbers")
        return (float(value[0]), float(value[1]), float(value[2]))

    def direction(self, key: str) -> Vector3:
        """The unit vector along three numbers."""
        x, y, z = self.vector(key)
        length = math.hypot(x, y, z)
        if length < 1e-12:
            self.refuse(f"{key} is zero, want a direction")
        return (x / length, y / length, z / length)

    def named(self, key: str, known: Iterable[str], what: str) -> str:
        """The name of a link or a joint."""
        value = self.values.get(key)
        if value is None:
            self.refuse(f"has no {key!r}")
        names = list(known)
        if not isinstance(value, str) or value not in names:
            self.refuse(f"{key} is {shown(value)}, which is no {what}{nearest(str(value)[:80], names)}")
        return value


class Poses:
    """Poses of links in the pose of the file, computed at the first request."""

    def __init__(self, articulation: Articulation) -> None:
        self.articulation = articulation
        self.links = {link.name: n for n, link in enumerate(articulation.links)}
        self.found: dict[str, tuple[int, Pose]] | None = None

    def known(self) -> list[str]:
        """The names of links, and of the world."""
        return [*self.links, *(() if WORLD in self.links else (WORLD,))]

    def of(self, link: str) -> Pose:
        """The link's pose in the world."""
        return self._all().get(link, (0, Pose()))[1]

    def body(self, link: str) -> int:
        """The number of the body that the link is part of; 0: the world."""
        return self._all().get(link, (0, Pose()))[0]

    def _all(self) -> dict[str, tuple[int, Pose]]:
        if self.found is None:
            self.found = self._find()
        return self.found

    def _find(self) -> dict[str, tuple[int, Pose]]:
        from artsim.sim.articulation.compile_model import compile_model
        from artsim.sim.articulation.poses import body_poses
        from artsim.sim.foundation.spatial import quaternion

        compiled = compile_model(self.articulation, coupling="rows")
        model = compiled.model
        rotation, origin = body_poses(model, compiled.reference)
        found: dict[str, tuple[int, Pose]] = {}
        for name, n in self.links.items():
            body = int(model.link_body[n])
            x, y, z = (origin[body] + rotation[body] @ model.link_position[n]).tolist()
            w, i, j, k = (float(part) for part in quaternion(rotation[body] @ model.link_rotation[n]))
            found[name] = body, Pose((x, y, z), (w, i, j, k))
        return found


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
    refuse_cycles(file, [*articulation.couplings, *made.couplings])
    return replace(
        articulation,
        loops=(*articulation.loops, *made.loops),
        couplings=(*articulation.couplings, *made.couplings),
        tendons=(*articulation.tendons, *made.tendons),
        tendon_couplings=(*articulation.tendon_couplings, *made.equalities),
        sites=(*articulation.sites, *made.sites),
        actuators=(*articulation.actuators, *made.actuators),
    )


def refuse_cycles(file: str, couplings: list[Coupling]) -> None:
    """Raise ModelError where gears, mimics and equalities of joints form a cycle."""
    from artsim.loaders.urdf import refuse_mimic_cycles

    refuse_mimic_cycles(Reading(file), couplings)


def read_entries(text: bytes | str, file: str, poses: Poses) -> list[Entry]:
    """Every [[loop]] of the file, with its line. Raises ModelError."""
    check_size(len(text), file=file, max_mb=MAX_MB)
    content = decode(text, file) if isinstance(text, bytes) else text
    try:
        values = read_toml(content)
    except ValueError as error:
        raise ModelError(f"{file}: not TOML: {str(error)[:200]}") from None
    for key in values:
        if key != "loop":
            raise ModelError(f"{file}: {key[:80]!r} is not known; a file of loops holds [[loop]] tables")
    loops = values.get("loop", [])
    if not isinstance(loops, list) or not loops or not all(isinstance(item, dict) for item in loops):
        raise ModelError(f"{file}: holds no [[loop]] tables")
    if len(loops) > MOST:
        raise ModelError(f"{file}: {len(loops)} loops, above the cap of {MOST}")
    lines = [content.count("\n", 0, found.start()) + 1 for found in HEADER.finditer(content)]
    if len(lines) != len(loops):
        lines = [0] * len(loops)
    sources = [Source(file, line) for line in lines]
    return [read_entry(*pair, n, poses) for n, pair in enumerate(zip(loops, sources, strict=True))]


def read_entry(values: Mapping[str, Any], source: Source, number: int, poses: Poses) -> Entry:
    """One [[loop]], its keys and its kind checked."""
    name = values.get("name", f"loop_{number}")
    if not isinstance(name, str) or not name.strip() or len(name) > 256 or "\0" in name:
        raise ModelError(f"{source}: loop {number}: name is {shown(name)}, want a text")
    kind = values.get("kind")
    entry = Entry(values, source, name, str(kind), poses)
    if not isinstance(kind, str) or kind not in KEYS:
        entry.refuse("has no 'kind'" if kind is None else f"kind is {shown(kind)}{nearest(str(kind)[:80], KEYS)}")
    known = (*COMMON, *KEYS[kind])
    for key in values:
        if key not in known:
            entry.refuse(f"a {kind} has no {key[:80]!r}{nearest(key[:80], known)}")
    check_spring(entry)
    return entry


def check_spring(entry: Entry) -> None:
    """Refuse a loop with springs of more than one kind."""
    if entry.has("frequency") and any(entry.has(key) for key in ("k", "d", *TURN)):
        entry.refuse("has both a frequency and a stiffness k or damping d")
    if entry.has("compliance") and any(entry.has(key) for key in ("frequency", "k", "d", *TURN)):
        entry.refuse("has both a compliance and a frequency, a stiffness or a damping d")
    if entry.has("compliance_damping") and not entry.has("compliance"):
        entry.refuse("has a compliance_damping and no compliance")
    for key in COMPLIANCE:
        if entry.has(key):
            entry.number(key, least=0.0)
    if entry.has("damping_ratio") and not entry.has("frequency"):
        entry.refuse("has a damping_ratio and no frequency")
    if entry.has("frequency") and entry.number("frequency") <= 0:
        entry.refuse(f"frequency is {entry.number('frequency'):g} Hz, want more than 0")
    if any(entry.has(key) for key in ("d", *TURN)) and not entry.has("k"):
        entry.refuse("has a damping or a rotation's stiffness and no stiffness k")
    for key in ("k", "k_rotation"):
        if entry.has(key) and entry.number(key) <= 0:
            entry.refuse(f"{key} is {entry.number(key):g}, want more than 0")


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


def framed(entry: Entry) -> tuple[Pose, Pose]:
    """The frames at the points, turned by rpy_a and rpy_b; the second is by default at the first in the file's pose."""
    point_a, point_b = points_of(entry)
    turn_a = quaternion_from_rpy(*entry.vector("rpy_a", (0.0, 0.0, 0.0)))
    turn_b = quaternion_from_rpy(*entry.vector("rpy_b")) if entry.has("rpy_b") else carried(entry, turn_a)
    return Pose(point_a, turn_a), Pose(point_b, turn_b)


def along_axis(entry: Entry) -> tuple[Pose, Pose]:
    """The frames at the points whose z axes are axis_a and axis_b."""
    point_a, point_b = points_of(entry)
    turn_a = quaternion_from_z(entry.direction("axis_a"))
    turn_b = quaternion_from_z(entry.direction("axis_b")) if entry.has("axis_b") else carried(entry, turn_a)
    return Pose(point_a, turn_a), Pose(point_b, turn_b)


def table_of(entry: Entry, values: object, name: str, keys: tuple[str, ...]) -> Entry:
    """A table within an entry, its keys checked."""
    if not isinstance(values, dict):
        entry.refuse(f"{name} is {shown(values)}, want a table of {', '.join(keys)}")
    for key in values:
        if key not in keys:
            entry.refuse(f"{name} has no {key[:80]!r}{nearest(key[:80], keys)}")
    return replace(entry, values=values)


def motion_of(entry: Entry, axis: str, free: tuple[str, ...]) -> Motion:
    """[loop.AXIS]: the motion of the loop along or about a free axis."""
    if axis not in free:
        entry.refuse(f"{axis} is held; its free axes are {', '.join(free)}")
    own = table_of(entry, entry.values[axis], axis, MOTION)
    motion = Motion(
        lower=own.number("lower") if own.has("lower") else None,
        upper=own.number("upper") if own.has("upper") else None,
        limit_spring=limit_spring_of(own, axis),
        friction=own.number("friction", 0.0, least=0.0),
        damping=own.number("damping", 0.0, least=0.0),
        stiffness=own.number("stiffness", 0.0, least=0.0),
        rest=own.number("rest", 0.0),
        drive=drive_of(own, f"{axis}.drive") if own.has("drive") else None,
    )
    if motion.flaw(axis):
        entry.refuse(f"{axis}: {motion.flaw(axis)}")
    return motion


def limit_spring_of(entry: Entry, what: str) -> tuple[float, float] | None:
    """Stiffness and damping of limits; None: hard limits."""
    if entry.has("limit_stiffness"):
        if entry.number("limit_stiffness") <= 0:
            entry.refuse(f"limit_stiffness is {entry.number('limit_stiffness'):g}, want more than 0")
        return entry.number("limit_stiffness"), entry.number("limit_damping", 0.0, least=0.0)
    if entry.has("limit_damping"):
        entry.refuse(f"{what} has a limit_damping and no limit_stiffness")
    return None


def drive_of(entry: Entry, name: str) -> Drive:
    """[loop.AXIS.drive]: a motor."""
    own = table_of(entry, entry.values["drive"], name, DRIVE)
    mode = own.values.get("mode", "force")
    if mode not in MODES:
        entry.refuse(f"{name}: mode is {shown(mode)}, want {' or '.join(MODES)}")
    drive = Drive(
        own.number("stiffness", 0.0, least=0.0),
        own.number("damping", 0.0, least=0.0),
        own.number("target", 0.0),
        own.number("velocity", 0.0),
        own.number("max_force", least=0.0) if own.has("max_force") else None,
        mode,
    )
    if drive.stiffness + drive.damping <= 0:
        entry.refuse(f"{name} has neither stiffness nor damping")
    return drive


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


# --- shared by kinds -------------------------------------------------------------------------------------------------


def links_of(entry: Entry) -> tuple[str, str]:
    """The two links; one of them may be the world."""
    known = entry.poses.known()
    a, b = (entry.named(key, known, "link") for key in ("link_a", "link_b"))
    if a == b:
        entry.refuse(f"joins link {a!r} to itself")
    if entry.poses.body(a) == entry.poses.body(b):
        entry.refuse(f"links {a!r} and {b!r} do not move against each other")
    return a, b


def points_of(entry: Entry, default: Vector3 | None = None) -> tuple[Vector3, Vector3]:
    """Points in the links [m]; the second is by default at the first in the file's pose, or at `default`."""
    point = entry.vector("point_a", (0.0, 0.0, 0.0))
    if entry.has("point_b") or default is not None:
        return point, entry.vector("point_b", default)
    return point, compose(between(entry), Pose(point)).position


def carried(entry: Entry, turn: Quaternion) -> Quaternion:
    """A rotation in link_a as one in link_b, in the file's pose."""
    return compose(between(entry), Pose(rotation=turn)).rotation


def between(entry: Entry) -> Pose:
    """link_a in link_b's frame, in the file's pose."""
    a, b = links_of(entry)
    return compose(inverse(entry.poses.of(b)), entry.poses.of(a))


def spring_of(entry: Entry, *, turns: bool) -> LoopSpring | None:
    """The spring of a loop between frames; `turns`: it holds rotations too; None: rigid."""
    if entry.has("frequency"):
        return LoopSpring(entry.number("frequency"), entry.number("damping_ratio", 1.0, least=0.0))
    if (compliance := compliance_of(entry)) is not None:
        return LoopSpring(compliance=compliance)
    if not entry.has("k"):
        return None
    damping = entry.number("d", 0.0, least=0.0)
    if not turns:
        return LoopSpring(stiffness=(entry.number("k"), 0.0), damping=(damping, 0.0))
    turn = (entry.number("k_rotation"), entry.number("d_rotation", 0.0, least=0.0))
    return LoopSpring(stiffness=(entry.number("k"), turn[0]), damping=(damping, turn[1]))


def compliance_of(entry: Entry) -> Compliance | None:
    """The compliance of a loop; None if the file gives none."""
    if not entry.has("compliance"):
        return None
    return Compliance(entry.number("compliance"), entry.number("compliance_damping", 0.0))


def shown(value: object) -> str:
    """A value of the file for a message."""
    return repr(value)[:60]
