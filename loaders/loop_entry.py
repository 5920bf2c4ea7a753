"""[[loop]] tables of a file of loops: their keys checked, their values typed, links and frames found."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from artsim.loaders.loop_motion import FREE, MODES, Drive, Motion
from artsim.loaders.xml import check_size, decode
from artsim.sim.articulation.description import (
    LOOP_AXES,
    Articulation,
    Compliance,
    LoopSpring,
    Pose,
    Quaternion,
    Source,
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
        from artsim.sim.foundation.rotations import quaternion

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
