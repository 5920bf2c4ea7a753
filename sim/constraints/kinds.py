"""Declares each kind of constraint row once: the joint force that books its impulse, its turn in sweeps, and its room.

Each kind is built in a file of its own in this folder, which assembly.py calls. Kernels read the declarations as tuples
of integers by kind (TAU, TURN …). This file does not import numba, since the process that starts with warm kernels
imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import Equipment, actuator_room, loop_room, tendon_room
from artsim.sim.geometry.contacts import Touching, contact_room
from artsim.sim.run_data.link_rules import LinkRules

(
    COUPLING_ROW,
    FRICTION_ROW,
    DRIVE_ROW,
    POSITION_ROW,
    VELOCITY_ROW,
    LOOP_ROW,
    TENDON_ROW,
    ACTUATOR_ROW,
    CONTACT_ROW,
    LINK_ROW,
    AXIS_ROW,
) = range(11)

# the joint forces of Step as which impulses are booked, recorded under these names
TAU_DRIVE, TAU_PASSIVE, TAU_COUPLING, TAU_LIMIT, TAU_LOOP, TAU_TENDON, TAU_CONTACT = range(7)

# the turns of a link's rows in the sweeping solvers; see solvers/published/sweep.py
LINK_TURN, CONTACT_TURN, TIE_TURN, JOINT_TURN, STATIC_LINK_TURN, STATIC_CONTACT_TURN = range(6)

# Rows.part of the kinds with several rows for one owner, which RowKind.parts names
AT_LOWER, AT_UPPER, AT_ANGLE, AT_TWIST, _, AT_SWING = range(6)  # POSITION_ROW, the first two also VELOCITY_ROW
TENDON_EQUALITY, TENDON_INERTIA, TENDON_FRICTION, AT_SHORTEST, AT_LONGEST, TENDON_SPRING = range(6)  # TENDON_ROW
EDGES = 6  # CONTACT_ROW: directions, then from here the edges of a pyramid

# True: the softness of a kind is that of a spring and damper, which tgs distributes over its sub-steps
NO_SPRING, SPRING_WITH_RATE, SPRING = range(3)


class RowOrigins(NamedTuple):
    """The parts of a run that may add constraint rows."""

    model: Model
    driven: int = 0  # dofs with a drive
    equipment: Equipment | None = None
    touching: Touching | None = None
    contacts: int = 0  # room for contacts
    rules: LinkRules | None = None


class Room(NamedTuple):
    """The most rows of a kind that a step can have, and their entries; `narrow` of them surely act on one dof."""

    rows: int
    entries: int
    narrow: int = 0


class RowKind(NamedTuple):
    """Properties of a kind of row that the engine must know, besides its builder."""

    tau: int  # the joint force as which its impulse is booked: TAU_…
    turn: int  # its turn in the sweeping solvers: …_TURN
    room: Callable[[RowOrigins], Room]
    static_turn: int = -1  # turn of rows that act against the world; -1: `turn`
    place: int = 0  # order among the rows of one joint, from 1, where the turn is the joint's
    first_link: bool = False  # its turn comes with the first link that it moves, not with the last
    spring: int = NO_SPRING
    limits: bool = False  # a step in which the row pushes counts as one that its dof spent at a limit
    lasting: bool = True  # every step has the same rows of this kind, in the same places
    word: str = ""  # name of a row in files, before its owner
    parts: tuple[str, ...] = ("",)  # name of a row in files, after its owner, by Rows.part


# ------------------------------------------------------------------ room


def _coupling_room(of: RowOrigins) -> Room:
    rows = len(of.model.row_follower)
    return Room(rows, 2 * rows)


def _axis_room(of: RowOrigins) -> Room:
    rows = len(of.model.axis_dof)
    return Room(rows, 4 * rows)


def _friction_room(of: RowOrigins) -> Room:
    model = of.model
    rows = int(np.count_nonzero((model.friction > 0) | (model.friction_coefficient > 0)))
    return Room(rows, 2 * rows, rows)


def _drive_room(of: RowOrigins) -> Room:
    return Room(of.driven, 2 * of.driven, of.driven)


def _position_room(of: RowOrigins) -> Room:
    """Room for both sides of every limit; limits of a ball's angle, swing and twist act on three dofs."""
    model = of.model
    limited = np.isfinite(model.lower) | np.isfinite(model.upper)
    rows = 2 * int(np.count_nonzero(limited)) + 3 * len(model.turn_range)
    return Room(rows, 3 * rows, 2 * int(np.count_nonzero(limited & (model.dof_coord >= 0))))


def _velocity_room(of: RowOrigins) -> Room:
    rows = 2 * int(np.count_nonzero(np.isfinite(of.model.velocity_limit)))
    return Room(rows, 2 * rows, rows)


def _loop_room(of: RowOrigins) -> Room:
    return Room(0, 0) if of.equipment is None else Room(*loop_room(of.model, of.equipment))


def _tendon_room(of: RowOrigins) -> Room:
    return Room(0, 0) if of.equipment is None else Room(*tendon_room(of.model, of.equipment))


def _actuator_room(of: RowOrigins) -> Room:
    return Room(0, 0) if of.equipment is None else Room(*actuator_room(of.model, of.equipment))


def _contact_room(of: RowOrigins) -> Room:
    return Room(0, 0) if of.touching is None else Room(*contact_room(of.model, of.touching, of.contacts))


def _link_room(of: RowOrigins) -> Room:
    rows = 0 if of.rules is None else len(of.rules.bound)
    return Room(rows, rows * len(of.model.dof_body))


# ------------------------------------------------------------------ declarations


KINDS: dict[int, RowKind] = {
    COUPLING_ROW: RowKind(
        TAU_COUPLING, JOINT_TURN, _coupling_room, place=1, first_link=True, spring=SPRING_WITH_RATE, word="coupling"
    ),
    FRICTION_ROW: RowKind(TAU_PASSIVE, JOINT_TURN, _friction_room, place=3, word="friction"),
    DRIVE_ROW: RowKind(TAU_DRIVE, JOINT_TURN, _drive_room, place=4, spring=SPRING, word="drive"),
    POSITION_ROW: RowKind(
        TAU_LIMIT,
        JOINT_TURN,
        _position_room,
        place=5,
        limits=True,
        word="limit",
        parts=("lower", "upper", "angle", "twist_lower", "twist_upper", "swing"),
    ),
    VELOCITY_ROW: RowKind(
        TAU_LIMIT, JOINT_TURN, _velocity_room, place=6, limits=True, word="velocity", parts=("lower", "upper")
    ),
    LOOP_ROW: RowKind(
        TAU_LOOP,
        LINK_TURN,
        _loop_room,
        static_turn=STATIC_LINK_TURN,
        word="loop",
        parts=("x", "y", "z", "turn_x", "turn_y", "turn_z"),
    ),
    TENDON_ROW: RowKind(
        TAU_TENDON,
        TIE_TURN,
        _tendon_room,
        spring=SPRING_WITH_RATE,
        word="tendon",
        parts=("equality", "inertia", "friction", "lower", "upper", "spring"),
    ),
    ACTUATOR_ROW: RowKind(TAU_DRIVE, TIE_TURN, _actuator_room, spring=SPRING, word="actuator"),
    CONTACT_ROW: RowKind(
        TAU_CONTACT,
        CONTACT_TURN,
        _contact_room,
        static_turn=STATIC_CONTACT_TURN,
        lasting=False,
        word="contact",
        parts=(
            *("normal", "tangent_1", "tangent_2", "torsion", "rolling_1", "rolling_2"),
            *(f"edge_{n}" for n in range(1, 11)),
        ),
    ),
    LINK_ROW: RowKind(TAU_LIMIT, CONTACT_TURN, _link_room, word="link", parts=("speed", "spin")),
    AXIS_ROW: RowKind(TAU_COUPLING, JOINT_TURN, _axis_room, place=2, first_link=True, word="axis"),
}

_IN_ORDER = tuple(KINDS[number] for number in range(len(KINDS)))
TAU = tuple(kind.tau for kind in _IN_ORDER)
TURN = tuple(kind.turn for kind in _IN_ORDER)
STATIC_TURN = tuple(kind.turn if kind.static_turn < 0 else kind.static_turn for kind in _IN_ORDER)
FIRST_LINK = tuple(kind.first_link for kind in _IN_ORDER)
PLACE = tuple(kind.place for kind in _IN_ORDER)
SPRINGINESS = tuple(kind.spring for kind in _IN_ORDER)
LIMITS = tuple(kind.limits for kind in _IN_ORDER)


def total_room(of: RowOrigins, *, lasting: bool = False) -> Room:
    """Room for all kinds together, or for the lasting ones."""
    rooms = [kind.room(of) for kind in _IN_ORDER if kind.lasting or not lasting]
    rows, entries, narrow = (sum(counts) for counts in zip(*rooms, strict=True))
    return Room(rows, entries, narrow)
