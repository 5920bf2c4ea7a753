"""Limits of followers that restrict their leader to less than its own range.

Each joint keeps its own limits, and the limits of a follower also bound its leader: if the follower may only close, a
drive cannot open the leader. The positions of a joint that its own limits and those of its followers allow are
intervals. The intervals of a leader are the preimage of those of its follower under the polynomial of the coupling.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from artsim.sim.articulation.description import Articulation, Coupling, Joint, Note
from artsim.sim.foundation.dataclass import dataclass

Interval = tuple[float, float]
LEAST_LOSS = 1e-3  # share of a range; a smaller loss is rounding of printed limits
ROUNDING = 1e-9  # relative to the numbers that are compared
SCALAR = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True, slots=True)
class Room:
    """Positions of a joint within its own limits, the part of them that followers allow, and the followers' names."""

    own: Interval
    left: tuple[Interval, ...]
    by: tuple[str, ...] = ()


def with_follower_notes(articulation: Articulation) -> Articulation:
    """The articulation with a warning for each drive that followers' limits restrict, unless it has one already."""
    notes = [note for note in follower_notes(articulation) if note not in articulation.notes]
    return replace(articulation, notes=(*articulation.notes, *notes)) if notes else articulation


def follower_notes(articulation: Articulation) -> list[Note]:
    """One warning for each leader that is no follower and whose followers allow it less than its own limits do."""
    joints = {joint.name: joint for joint in articulation.joints}
    couplings = [c for c in articulation.couplings if not c.axis and joints[c.follower].kind in SCALAR]
    followers: dict[str, list[Coupling]] = defaultdict(list)
    for coupling in couplings:
        if coupling.leader is not None:
            followers[coupling.leader].append(coupling)
    led = {coupling.follower for coupling in couplings}
    rooms: dict[str, Room] = {}
    for name in leaders_last(followers, joints):
        rooms[name] = room_of(joints[name], followers.get(name, []), rooms)
    notes = [note_of_held(joints[c.follower], c) for c in couplings if c.leader is None]
    for name, room in rooms.items():
        if room.by and name not in led:
            source = next(c.source for c in couplings if c.follower == room.by[0])
            notes.append(Note(source, told(joints[name], room)))
    return [note for note in notes if note is not None]


def leaders_last(followers: dict[str, list[Coupling]], joints: dict[str, Joint]) -> list[str]:
    """All one-coordinate joints of couplings, each after its followers; joints in or above a cycle are left out."""
    waiting = {name: len(led) for name, led in followers.items()}
    leaders: dict[str, list[str]] = defaultdict(list)
    for leader, led in followers.items():
        for coupling in led:
            leaders[coupling.follower].append(leader)
    order = [name for name in leaders if name not in waiting]
    for name in order:
        for leader in leaders[name]:
            waiting[leader] -= 1
            if not waiting[leader]:
                order.append(leader)
    return [name for name in order if joints[name].kind in SCALAR]


def room_of(joint: Joint, followers: Sequence[Coupling], rooms: dict[str, Room]) -> Room:
    """Positions of the joint within its limits and those of its followers, whose `rooms` are given."""
    low, high = joint.lower, joint.upper
    own = (-math.inf if low is None else low, math.inf if high is None else high)
    left: tuple[Interval, ...] = (own,)
    by: list[str] = []
    for coupling in followers:
        follower = rooms[coupling.follower]
        alone = common(preimage(coupling.coefficients, (follower.own,)), own)
        deeper = common(preimage(coupling.coefficients, follower.left), own)
        by += [coupling.follower] if is_less(alone, own) else []
        by += follower.by if follower.by and is_less(deeper, own) else []
        left = tuple(part for piece in deeper for part in common(left, piece))
    return Room(own, left, tuple(dict.fromkeys(by)))


def preimage(coefficients: Sequence[float], wanted: Iterable[Interval]) -> tuple[Interval, ...]:
    """All x for which the polynomial is in one of the intervals, as disjoint intervals in ascending order."""
    c = list(coefficients)
    while len(c) > 1 and c[-1] == 0:
        c.pop()
    if len(c) == 1:
        return ((-math.inf, math.inf),) if any(low <= c[0] <= high for low, high in wanted) else ()
    if len(c) == 2:
        return tuple(sorted(ordered((low - c[0]) / c[1], (high - c[0]) / c[1]) for low, high in wanted))
    intervals = list(wanted)
    ends = {end for pair in intervals for end in pair if math.isfinite(end)}
    breaks = sorted({x for end in ends for x in real_roots([c[0] - end, *c[1:]])})
    between = [middle(a, b) for a, b in zip([-math.inf, *breaks], [*breaks, math.inf], strict=True)]
    pieces: list[Interval] = []  # the breaks, and the intervals between them, where the polynomial is in `wanted`
    places = [-math.inf, *breaks, math.inf]
    for k, x in enumerate(between):
        if is_in(value(c, x), intervals):
            pieces.append((places[k], places[k + 1]))
        elif k + 1 < len(between) and is_in(value(c, breaks[k]), intervals):
            pieces.append((breaks[k], breaks[k]))
    return merged(pieces)


def ordered(a: float, b: float) -> Interval:
    return (a, b) if a <= b else (b, a)


def middle(a: float, b: float) -> float:
    """The midpoint of a and b; if one is infinite, a number beyond the other in that direction; 0 if both are."""
    if math.isinf(a) and math.isinf(b):
        return 0.0
    if math.isinf(a) or math.isinf(b):
        return b - 1.0 - abs(b) if math.isinf(a) else a + 1.0 + abs(a)
    return 0.5 * (a + b)


def value(c: Sequence[float], x: float) -> float:
    """The polynomial at x."""
    total = 0.0
    for factor in reversed(c):
        total = total * x + factor
    return total


def is_in(y: float, intervals: Iterable[Interval]) -> bool:
    """True if a value is in one of the intervals, up to rounding."""
    room = ROUNDING * (1.0 + abs(y))
    return any(low - room <= y <= high + room for low, high in intervals)


def real_roots(c: Sequence[float]) -> list[float]:
    """The real roots of a polynomial; a double root is returned twice, or not at all."""
    import numpy as np  # only for couplings that are curved

    roots = np.roots(np.array(c[::-1], float))
    return [float(root.real) for root in roots if abs(root.imag) <= 1e-7 * (1.0 + abs(root))]


def merged(pieces: Iterable[Interval]) -> tuple[Interval, ...]:
    """The union of the intervals as disjoint intervals in ascending order."""
    found: list[Interval] = []
    for low, high in sorted(pieces):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def common(intervals: Iterable[Interval], with_: Interval) -> tuple[Interval, ...]:
    """The parts of intervals that lie in the interval `with_`, ends included; ends that differ by rounding touch."""
    parts = []
    for low, high in intervals:
        a, b = max(low, with_[0]), min(high, with_[1])
        if a <= b:
            parts.append((a, b))
        elif a - b <= ROUNDING * (1.0 + abs(a)):
            parts.append((b, b))
    return merged(parts)


def is_less(left: Sequence[Interval], own: Interval) -> bool:
    """True if the intervals `left` cover less than the range `own`, by more than the rounding of its printed limits."""
    if not left:
        return True
    if math.isinf(own[0]) or math.isinf(own[1]):
        width = max((abs(end) for pair in left for end in pair if math.isfinite(end)), default=0.0)
        cut = left[0][0] > own[0] + LEAST_LOSS * width or left[-1][1] < own[1] - LEAST_LOSS * width
        return cut or len(left) > 1
    return sum(high - low for low, high in left) < (own[1] - own[0]) * (1.0 - LEAST_LOSS)


def told(joint: Joint, room: Room) -> str:
    """The warning's text."""
    unit = "m" if joint.kind == "prismatic" else "rad"
    names = ", ".join(map(repr, room.by[:4])) + (f" and {len(room.by) - 4} more" if len(room.by) > 4 else "")
    limits = f"limits of follower{'s' * (len(room.by) > 1)} {names}"
    if not room.left:
        return f"{limits} leave joint {joint.name!r} no position"
    left = " or ".join(f"{low + 0.0:.6g} … {high + 0.0:.6g}" for low, high in room.left)
    whole = "" if room.own == (-math.inf, math.inf) else f" of its {room.own[0]:.6g} … {room.own[1]:.6g}"
    return f"{limits} leave joint {joint.name!r} only {left} {unit}{whole}"


def note_of_held(joint: Joint, coupling: Coupling) -> Note | None:
    """A warning if a coupling holds a joint at a position beyond its limits, else None."""
    at = coupling.coefficients[0]
    low, high = (-math.inf if joint.lower is None else joint.lower), (math.inf if joint.upper is None else joint.upper)
    if is_in(at, [(low, high)]):
        return None
    unit = "m" if joint.kind == "prismatic" else "rad"
    return Note(
        coupling.source, f"joint {joint.name!r} is held at {at:.6g} {unit}, beyond its limits {low:.6g} … {high:.6g}"
    )
