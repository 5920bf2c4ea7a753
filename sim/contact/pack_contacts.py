"""Records of packs with constraint rows: joint friction, limits, and contacts.

A pack lists the contacts that any of its lanes has, as a single robot lists its own; the rows of a contact have no
effect in lanes without it. The elimination order does not depend on the contacts (solvers/elimination.py).

This file does not import numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artsim.collision.shapes import CAPSULE, SPHERE
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import CONTACT_MEMORY
from artsim.sim.equipment.arrays import TENDON_LOWER, Equipment
from artsim.sim.foundation.records import (
    Array,
    ConstInts1,
    ConstInts2,
    ConstReals1,
    Ints1,
    Ints2,
    Lanes1,
    Reals1,
    Reals2,
    Reals3,
    Reals4,
    allocate,
    with_lanes,
)
from artsim.sim.geometry.contacts import (
    CONTACT_BEFORE,
    Bounces,
    ContactBundle,
    Contacts,
    ContactWork,
    Touching,
    contact_room,
    contact_shapes,
    most_rows,
)
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import MOST_OF_LANE, MOST_TOGETHER, NewtonWork, newton_shapes, whole_strips

_USUAL = 8  # contacts of a pair; spheres and capsules have fewer
_BETWEEN = 4  # contacts of a pair of moving shapes


class PackSolver(NamedTuple):
    """State shared by the rows of a pack and their solver."""

    entry: Ints1  # (2,) addresses of solvers/pack_newton.py and of its table
    rubbing: ConstInts1  # (nr,) dofs with joint friction
    rubbing_place: ConstInts1  # (nr,) places of their rows in State.impulse
    limited: ConstInts2  # (nl, 4) sides of limits: dof or tendon, side; row and column in Step.pressed
    limit_row: Ints1  # (nl,) its row; -1: none yet in this step
    limit_place: ConstInts1  # (nl,) its place in State.impulse
    # (2,) number of rows of the step's previous solution; 1: these rows and M̂ are those of that solution, but for
    # biases
    listing: Ints1
    done: Lanes1  # (1,) 1: the step's previous solution stands
    warm: Lanes1  # (1,) 1: that solution has impulses
    kept: Lanes1  # (nu,) its velocities
    bound: Lanes1  # (1,) 1: the lane has rows
    unlike: ConstInts1  # (1,) 1: lanes may have so many contacts that their rows are quite different
    whole: ConstInts1  # (1,) 1: rows may tie branches of trees, or trees
    always: ConstInts1  # (1,) 1: all lanes are solved with M̂ as a matrix even where they have no rows
    exacting: ConstInts1  # (1,) 1: rows may be so stiff that the solver's first step loses digits
    skip: Lanes1  # (1,) 1: the solver ignores the lane
    solved: Lanes1  # (1,) 1: the rows are solved
    in_impulses: Lanes1  # (1,) 1: the lane is solved in impulses, with a W that it shares with others
    settled: Lanes1  # (1,) 1: the lane's impulses are found, by itself
    free: Lanes1  # (nu,) velocities without rows
    change: Lanes1  # (nu,) velocity change found by the solver
    impulse: Lanes1  # (rows,)


LaneRows = with_lanes(Rows, "LaneRows", ())
LaneWork = with_lanes(NewtonWork, "LaneWork", ())


class LaneSolver(NamedTuple):
    """The few rows of one lane, without dofs, and their solver's scratch (solvers/lane_coulomb.py)."""

    rows: LaneRows  # type: ignore[valid-type]
    work: LaneWork  # type: ignore[valid-type]


PackContactWork = with_lanes(
    ContactWork,
    "PackContactWork",
    (
        *("common", "position", "rotation", "margin", "low", "high", "turning"),
        *("distance", "gap", "frame", "friction", "grip", "most_grip", "hardness", "restitution", "adhesion"),
        *("pull", "belt"),
        *("arm", "tilt", "lag", "drift", "overtaken", "bend", "swerve", "scale", "start"),
        *("inside", "phase", "tries"),
    ),
)


class LaneContacts(NamedTuple):
    """The state of each lane's contacts, beside the list of all in PackContactWork; k contacts listed."""

    half: Ints1  # (1,) index of the half of `memory` that is of the last step
    memory: Reals4  # (2, lanes, contacts, CONTACT_MEMORY) contacts as State has them, of the last step and of this
    before: Reals3  # (lanes, contacts, CONTACT_BEFORE) contacts of this step, as ContactWork has them
    place: Ints2  # (lanes, contacts) number of a contact in the list; -1: the contact has no row
    number: Ints1  # (lanes,) of contacts
    deepest: Reals1  # (lanes,) depth of the deepest contact [m]; 0: no penetration
    start_depth: Reals1  # (lanes,) `deepest` at the start of the run [m]
    sunk: Reals2  # (lanes, 4) SHARE, DEPTH, LINK_A and LINK_B of Step.yielded, in this order
    touching: Lanes1  # (1,) 1: there are contacts, touching or speculative
    yielding: Lanes1  # (1,) 1: one of them yields
    outrun: Lanes1  # (1,) 1: the step leaves a shape's margin
    other: Lanes1  # (1,) 1: and other contacts are there, now in the list
    chosen: Lanes1  # (1,) 1: the lane that is looked at
    factor: Lanes1  # (1,) factor on friction
    key: Ints1  # (k,) place in the order of the list: by shapes, number among the contacts of the two, dimension
    present: Lanes1  # (k,) 1: the lane has this contact; elsewhere zeros stand for it, so that its rows have no effect


class PackSweep(NamedTuple):
    """Constants of the continuous check for the shapes of a pack."""

    straight: ConstReals1  # (n,) rotation up to which a shape's points count as moving straight [rad]


class PackAdhesion(NamedTuple):
    """Adhesion of the contacts of a pack, by surfaces and by na actuators of bodies; k contacts."""

    number: ConstInts1  # (na,) number of the actuator in Equipment
    body: ConstInts1  # (na,) the body that it makes adhere
    force: Lanes1  # (na,) [N]
    near: Lanes1  # (k,) 1: the contact is near enough to adhere
    loose: Lanes1  # (k,) 1: the contact acts only while it adheres


class PackContactBundle(NamedTuple):
    """Shapes that may touch, the contacts of all lanes, and those that detection found for one lane."""

    model: Contacts
    data: ContactWork  # with lanes, a PackContactWork
    lanes: LaneContacts
    detected: ContactBundle
    bounces: Bounces | Any = None  # None without restitution; the next two: without continuous check, adhesion
    sweep: PackSweep | Any = None
    adhesion: PackAdhesion | Any = None


def make_pack_contacts(touching: Touching, room: int, width: int) -> Any:
    """Allocate the list of a pack's contacts, with room for `room`."""
    return allocate(PackContactWork, contact_shapes(touching, room), width)


def make_lane_contacts(contacts: int, room: int, width: int) -> LaneContacts:
    """Allocate the state of the lanes' contacts: `contacts` in each, `room` in the list of all."""
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(LaneContacts._fields, (1,)),
        "memory": (2, width, contacts, CONTACT_MEMORY),
        "before": (width, contacts, CONTACT_BEFORE),
        "place": (width, contacts),
        **dict.fromkeys(("number", "deepest", "start_depth"), (width,)),
        "sunk": (width, 4),
        **dict.fromkeys(("key", "present"), (room,)),
    }
    made: LaneContacts = allocate(LaneContacts, shapes, width)
    made.factor[...] = 1.0
    return made


def enlarged(old: LaneContacts, new: LaneContacts) -> LaneContacts:
    """`new`, which has more room, with the contacts of `old`."""
    new.memory[:, :, : old.memory.shape[2]] = old.memory
    return new._replace(half=old.half, start_depth=old.start_depth, sunk=old.sunk, factor=old.factor)


def bounces(touching: Touching) -> bool:
    """True if any shape has restitution."""
    return bool(np.any(touching.contacts.restitution > 0))


def make_pack_rows(
    model: Model,
    equipment: Equipment | None,
    touching: Touching | None,
    room: int,
    fixed: tuple[Array, int],
    width: int,
) -> tuple[Rows, NewtonWork, PackSolver]:
    """Allocate the rows of limits and of `room` contacts, of friction in the dofs `fixed[0]` and `fixed[1]` own rows
    (OwnRows), and their solver's scratch.
    """
    rubbing, own = fixed
    nv, nu = len(model.dof_body), len(model.independent_dof)
    limited = limited_sides(model, equipment)
    n = len(rubbing) + len(limited)
    entries = n + _entries_of_tendons(equipment, limited) + nv * own
    n += own
    few = n
    if touching is not None:
        rows_of_contacts, entries_of_contacts = contact_room(model, touching, room)
        n, entries = n + rows_of_contacts, entries + entries_of_contacts
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(Rows._fields, (n,)),
        **dict.fromkeys(("column", "value", "entry_dof", "entry_value"), (entries,)),
        "number": (3,),
        "start": (n + 1,),
        "implicit": (nv,),
        "report": (3,),
    }
    of_work = newton_shapes(model.independent_parent, n, nv, entries)
    work = allocate(NewtonWork, of_work | {"inverse_mass_jacobian": (0,)} | lane_solver_shapes(nu), width)
    of_solver: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(PackSolver._fields, (1,)),
        "entry": (2,),
        **dict.fromkeys(("rubbing", "rubbing_place"), (len(rubbing),)),
        "limited": limited.shape,
        **dict.fromkeys(("limit_row", "limit_place"), (len(limited),)),
        "listing": (2,),
        **dict.fromkeys(("free", "change", "kept"), (nu,)),
        "impulse": (n,),
    }
    solver: PackSolver = allocate(PackSolver, of_solver, width)
    rows: Rows = allocate(Rows, shapes, width)
    if len(model.coupling_follower) == 0:
        rows = rows._replace(entry_dof=rows.column, entry_value=rows.value)
    whole = bool(np.any(limited[:, 1] >= TENDON_LOWER)) or own > 0
    unlike = False
    if touching is not None:
        whole = whole or _has_moving_pairs(touching)
        unlike = few + _most_rows(touching, MOST_TOGETHER) > MOST_TOGETHER
    flags = {"whole": whole, "unlike": unlike, "exacting": own > 0}
    solver = solver._replace(rubbing=np.array(rubbing, np.int64), limited=limited)
    solver = solver._replace(**{name: np.array([flag], np.int64) for name, flag in flags.items()})
    return rows, work, solver


def _has_moving_pairs(touching: Touching) -> bool:
    """True if two shapes may touch of which both move."""
    g = touching.contacts
    moves = g.body > 0
    return bool(np.any((g.allowed >= 0) & moves[:, None] & moves & (g.body[:, None] != g.body)))


def _most_rows(touching: Touching, enough: int) -> int:
    """The number of rows if all shapes that may touch do, or any number above `enough` if there are more."""
    g, kind, rows = touching.contacts, touching.shapes.kind, 0
    for a, b in np.argwhere(np.triu((g.allowed >= 0) & (g.body[:, None] != g.body))):
        contacts = min(_most_contacts(int(kind[a])), _most_contacts(int(kind[b])))
        if g.body[a] > 0 and g.body[b] > 0:
            contacts = min(contacts, _BETWEEN)
        rows += contacts * most_rows(g, _widest(g, a, b))
        if rows > enough:
            break
    return rows


def _most_contacts(kind: int) -> int:
    return {SPHERE: 1, CAPSULE: 2}.get(kind, _USUAL)


def _widest(g: Contacts, a: int, b: int) -> int:
    """Most dimensions of a contact of two shapes."""
    pair = int(g.allowed[a, b]) - 1
    return int(g.pair_dimension[pair]) if pair >= 0 else int(max(g.dimension[a], g.dimension[b]))


def lane_solver_shapes(nu: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the fields of NewtonWork with which packs find W."""
    n = MOST_TOGETHER
    return {
        **dict.fromkeys(("half", "reach"), (n, nu)),
        "delassus": (n, n),
        **dict.fromkeys(("stepping_unit", "delassus_row", "unit_stop"), (n,)),
    }


def make_lane_solver() -> LaneSolver:
    """Allocate room for the few rows of a lane."""
    n = MOST_OF_LANE
    rows = allocate(LaneRows, {**dict.fromkeys(Rows._fields, (n,)), "start": (n + 1,), "implicit": (1,)})
    shapes = newton_shapes(np.array([-1]), n, 1, 1) | {
        "factors": (n,),
        **dict.fromkeys(("system", "delassus"), (n, whole_strips(n))),
        **dict.fromkeys(("system_pivot", "impulse_change"), (n,)),
        **dict.fromkeys(("stepping_unit", "delassus_row", "unit_stop", "unit_idle"), (n,)),
    }
    return LaneSolver(rows, allocate(LaneWork, shapes))


def limited_sides(model: Model, equipment: Equipment | None) -> Array:
    """(nl, 4) dof and side of every limit of positions and velocities, then tendon and side of every limit of lengths
    (constraints/limit_rows.py, tendon_rows.py), with row and column of each in Step.pressed.
    """
    of_side = (np.isfinite(model.lower), np.isfinite(model.upper), *[np.isfinite(model.velocity_limit)] * 2)
    has = np.stack(of_side, axis=1)
    has[model.dof_coord < 0, :2] = False
    sides = np.tile(np.argwhere(has), 2)
    if equipment is not None:
        has = np.stack([np.isfinite(equipment.tendon_lower), np.isfinite(equipment.tendon_upper)], axis=1)
        of_tendons = np.tile(np.argwhere(has), 2) + np.array([0, TENDON_LOWER, len(model.dof_body), 0])
        sides = np.concatenate([sides, of_tendons])
    return np.ascontiguousarray(sides, np.int64)


def _entries_of_tendons(equipment: Equipment | None, limited: Array) -> int:
    """The number of entries of the rows of tendons' limits beyond one for each row."""
    if equipment is None:
        return 0
    return int(sum(np.diff(equipment.tendon_entry)[index] - 1 for index, side, *_ in limited if side >= TENDON_LOWER))
