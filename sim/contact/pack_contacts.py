"""Records of packs with constraint rows: joint friction, limits, and contacts.

Each pair of shapes has a few slots: the rows of a pack are those of all slots at which some robot is in contact, and
have no effect on the others. The elimination order does not depend on the contacts (solvers/elimination.py). If there
are more pairs of moving shapes than slots, a robot in which a pair without a slot touches takes its step alone.

This file does not import numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artsim.collision.shapes import CAPSULE, SPHERE
from artsim.sim.articulation.chains import chain_length
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import CONTACT_MEMORY
from artsim.sim.equipment.arrays import TENDON_LOWER, Equipment
from artsim.sim.foundation.records import (
    Array,
    ConstInts1,
    ConstInts2,
    ConstReals1,
    ConstReals2,
    Ints1,
    Ints2,
    Lanes1,
    Lanes2,
    Lanes3,
    Reals1,
    Reals2,
    Reals3,
    Reals4,
    allocate,
    with_lanes,
)
from artsim.sim.geometry.contacts import CONTACT_BEFORE, DIRECTIONS, ContactBundle, Contacts, Touching, most_rows
from artsim.sim.run_data.run_records import Rows
from artsim.sim.run_data.scratch import MOST_OF_LANE, MOST_TOGETHER, NewtonWork, newton_shapes, whole_strips

_FEW_PAIRS = 16  # of shapes, up to which all lanes compare boxes before any lane detects its contacts
MOST_PAIRS = 512  # of shapes of which one is static, each with memory for all its slots: beyond 1000 packs gain no time
_MOST_ROWS = 3000  # up to which pairs of moving shapes have slots
_USUAL = 8  # contacts of a pair; spheres and capsules have fewer
_BETWEEN = 4  # contacts of a pair of moving shapes


class PackSolver(NamedTuple):
    """State shared by the rows of a pack and their solver."""

    entry: Ints1  # (2,) addresses of solvers/pack_newton.py and of its table
    rubbing: ConstInts1  # (nr,) dofs with joint friction
    rubbing_place: ConstInts1  # (nr,) places of their rows in State.impulse
    limited: ConstInts2  # (nl, 2) sides of limits: dof or tendon, side
    pressed: Lanes1  # (nl,) 1: the lane has the side's row in this step
    limit_row: Ints1  # (nl,) its row
    limit_place: ConstInts1  # (nl,) its place in State.impulse
    # (nl + k,) owners of the rows after those of joint friction, in the order of the rows: sides of limits, and
    # nl + slot; owners added while the step is solved again come last, so that rows keep their places
    listed: Ints1
    # (3,) number of owners listed; number of rows of the step's previous solution; 1: these rows and M̂ are those of
    # that solution, but for biases
    listing: Ints1
    done: Lanes1  # (1,) 1: the step's previous solution stands
    warm: Lanes1  # (1,) 1: that solution has impulses
    kept: Lanes1  # (nu,) its velocities
    bound: Lanes1  # (1,) 1: the lane has rows
    touching: ConstInts1  # (1,) 1: there may be contacts
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


class PackContacts(NamedTuple):
    """The contacts of a pack in a step; k slots, n shapes. A field with the name of a field of ContactWork has that
    field's meaning, for the shapes of all lanes, and for a slot in place of a contact.
    """

    first: ConstInts2  # (n, n) first slot of a pair of shapes, -1: has none
    room: ConstInts2  # (n, n) number of slots of a pair
    listed_pairs: ConstInts2  # (pairs, 2) all pairs of shapes that may touch; none where there are many, or planes
    detector: Ints1  # (2,) addresses of the compiled detection and of its table
    half: Ints1  # (1,) index of the half of `memory` that is of the last step
    memory: Reals4  # (2, lanes, contacts, CONTACT_MEMORY) contacts as State has them, of the last step and of this
    before: Reals3  # (lanes, contacts, CONTACT_BEFORE) contacts of this step, as ContactWork has them
    slot: Ints2  # (lanes, contacts) slot of a contact; -1: the contact has no row
    contact_count: Ints1  # (lanes,) number of contacts
    deepest: Reals1  # (lanes,) depth of the deepest contact [m]; 0: no penetration
    start_depth: Reals1  # (lanes,) `deepest` at the start of the run [m]
    sunk: Reals2  # (lanes, 4) SHARE, DEPTH, LINK_A and LINK_B of Step.yielded, in this order
    touching: Lanes1  # (1,) 1: there are contacts, touching or speculative
    away: Lanes1  # (1,) 1: one of them has no slot
    outrun: Lanes1  # (1,) 1: the step leaves a shape's margin, and more contacts are there than there is room for
    other: Lanes1  # (1,) 1: the step leaves a shape's margin, and other contacts are there, now in the slots
    factor: Lanes1  # (1,) factor on friction
    # per shape
    common: Lanes1  # (3,)
    position: Lanes2  # (n, 3)
    rotation: Lanes3  # (n, 3, 3)
    margin: Lanes1  # (n,)
    # per slot, the same in all lanes
    active: Ints1  # (k,) 1: some lane is in contact
    listed: Ints1  # (k,) 1: the slot is listed in PackSolver
    shape: Ints2  # (k, 2)
    row: Ints1  # (k,)
    rows: Ints1  # (k,)
    dimension: Ints1  # (k,)
    friction: Lanes2  # (k, 5) times `factor`
    grip: Lanes2  # (k, 5)
    most_grip: Reals1  # (k,)
    soft: Ints1  # (k,)
    reference: Reals2  # (k, 2)
    friction_reference: Reals2  # (k, 2)
    impedance: Reals2  # (k, 5)
    scale: Lanes2  # (k, DIRECTIONS)
    belt: ConstReals2  # (k, 3) 0: moving surfaces have no slots
    regularised: ConstInts1  # (k,) 0: nor have contacts that yield
    # per slot and lane; zeros where there is no contact, so that its rows have no effect
    present: Lanes1  # (k,) 1: the lane has this contact
    gap: Lanes1  # (k,)
    distance: Lanes1  # (k,)
    arm: Lanes3  # (k, 2, 3)
    frame: Lanes3  # (k, 3, 3)
    hardness: Lanes1  # (k,)
    tilt: Lanes1  # (k,)
    lag: Lanes2  # (k, 3)
    drift: Lanes1  # (k,)
    overtaken: Lanes1  # (k,)
    turning: Lanes2  # (nb, 3)
    bend: Lanes2  # (k, 2)
    swerve: Lanes2  # (k, 2)
    start: Lanes2  # (k, DIRECTIONS)
    restitution: Lanes1  # (k,)
    # several impacts in one step
    hit: Lanes1  # (k,)
    lightness: Lanes1  # (k,)
    opening: Lanes1  # (k,)
    wish: Lanes1  # (k,)
    blow: Lanes1  # (k,)


class PackBounces(NamedTuple):
    """State of the solutions after a step's first one that treat bounces (pack_bounces.py); k slots."""

    phase: Lanes1  # (1,) REBOUNDING …
    tries: Lanes1  # (1,) solutions in this phase
    aimed: Lanes1  # (k,) 1: the contact opens at -`aim` at least, instead of at its own rebound
    aim: Lanes1  # (k,) [m/s]
    inside: Lanes1  # (k,) 1: the contact is only kept from getting deeper
    speed: Lanes1  # (nu,) velocities after impacts
    half: Lanes1  # (nu,) half of the velocity change by the step's forces


class PackSweep(NamedTuple):
    """Constants of the continuous check for the shapes of a pack."""

    straight: ConstReals1  # (n,) rotation up to which a shape's points count as moving straight [rad]


class PackAdhesion(NamedTuple):
    """Adhesion of the contacts of a pack, by surfaces and by na actuators of bodies; k slots."""

    number: ConstInts1  # (na,) number of the actuator in Equipment
    body: ConstInts1  # (na,) the body that it makes adhere
    force: Lanes1  # (na,) [N]
    near: Lanes1  # (k,) 1: the contact is near enough to adhere
    surface: Lanes1  # (k,) adhesion of the two surfaces [N]
    pull: Lanes1  # (k,) adhesion of surfaces and actuators [N]


class PackContactBundle(NamedTuple):
    """Shapes that may touch, the contacts of all lanes, and those that detection found for one lane."""

    model: Contacts
    data: PackContacts
    detected: ContactBundle
    bounces: PackBounces | Any = None  # None without restitution; the next two: without continuous check, adhesion
    sweep: PackSweep | Any = None
    adhesion: PackAdhesion | Any = None


class Slots(NamedTuple):
    """PackContacts.first and room, the number of slots, and the most rows that they can have."""

    first: Array
    room: Array
    number: int
    rows: int
    entries: int
    between: int  # pairs of moving shapes that have slots


def world_pairs(touching: Touching) -> Array:
    """(pairs, 2) shapes that may touch, of which one is static."""
    g = touching.contacts
    moves = g.body > 0
    pairs: Array = np.argwhere(np.triu((g.allowed >= 0) & (moves[:, None] != moves)))
    return pairs


def moving_pairs(touching: Touching) -> Array:
    """(pairs, 2) shapes that may touch, of which both move."""
    g = touching.contacts
    moves = g.body > 0
    apart = g.body[:, None] != g.body
    pairs: Array = np.argwhere(np.triu((g.allowed >= 0) & moves[:, None] & moves & apart))
    return pairs


def make_slots(model: Model, touching: Touching) -> Slots:
    """Allot slots to the pairs with static shapes, and to pairs of moving shapes while there is room."""
    g, kind = touching.contacts, touching.shapes.kind
    n = len(g.body)
    first, room = np.full((n, n), -1), np.zeros((n, n), np.int64)
    count = rows = entries = between = 0
    for a, b in (*world_pairs(touching), *moving_pairs(touching)):
        size = min(_most(int(kind[a])), _most(int(kind[b])))
        if g.body[a] > 0 and g.body[b] > 0:
            size = min(size, _BETWEEN)
            if rows + size * most_rows(g, _widest(g, a, b)) > _MOST_ROWS:
                break
            between += 1
        first[a, b] = first[b, a] = count
        room[a, b] = room[b, a] = size
        width = most_rows(g, _widest(g, a, b))
        count += size
        rows += size * width
        chains = chain_length(model, int(g.body[a])) + chain_length(model, int(g.body[b]))
        entries += size * width * chains
    return Slots(first, room, count, rows, entries, between)


def _most(kind: int) -> int:
    return {SPHERE: 1, CAPSULE: 2}.get(kind, _USUAL)


def _widest(g: Contacts, a: int, b: int) -> int:
    """Most dimensions of a contact of two shapes."""
    pair = int(g.allowed[a, b]) - 1
    return int(g.pair_dimension[pair]) if pair >= 0 else int(max(g.dimension[a], g.dimension[b]))


def make_pack_contacts(touching: Touching, slots: Slots, contacts: int, width: int) -> PackContacts:
    """Allocate room for `contacts` contacts in each lane."""
    n, k = len(touching.contacts.body), slots.number
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(PackContacts._fields, (k,)),
        **dict.fromkeys(("first", "room"), (n, n)),
        "listed_pairs": (0, 2),
        "detector": (2,),
        **dict.fromkeys(("half", "touching", "away", "outrun", "other", "factor"), (1,)),
        "memory": (2, width, contacts, CONTACT_MEMORY),
        "slot": (width, contacts),
        "before": (width, contacts, CONTACT_BEFORE),
        **dict.fromkeys(("contact_count", "deepest", "start_depth"), (width,)),
        "sunk": (width, 4),
        "turning": (touching.bodies, 3),
        "common": (3,),
        "position": (n, 3),
        "rotation": (n, 3, 3),
        "margin": (n,),
        **dict.fromkeys(("shape", "reference", "friction_reference", "swerve", "bend"), (k, 2)),
        **dict.fromkeys(("friction", "grip", "impedance"), (k, 5)),
        **dict.fromkeys(("scale", "start"), (k, DIRECTIONS)),
        **dict.fromkeys(("belt", "lag"), (k, 3)),
        "arm": (k, 2, 3),
        "frame": (k, 3, 3),
    }
    made: PackContacts = allocate(PackContacts, shapes, width)
    made.factor[...] = 1.0
    return made._replace(first=slots.first, room=slots.room, listed_pairs=_listed_pairs(touching))


def _listed_pairs(touching: Touching) -> Array:
    """(pairs, 2) the shapes that may touch, if these are so few that all lanes' boxes are compared before contacts are
    detected lane by lane.
    """
    g = touching.contacts
    pairs: Array = np.ascontiguousarray(np.argwhere(np.triu(g.allowed >= 0, 1)))
    return pairs if len(pairs) <= _FEW_PAIRS and len(g.plane) == 0 else pairs[:0]


def make_pack_bounces(model: Model, touching: Touching, slots: Slots, width: int) -> PackBounces | None:
    """Allocate the state of bounces; None without restitution."""
    if not bounces(touching):
        return None
    nu = len(model.independent_dof)
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(PackBounces._fields, (slots.number,)),
        **dict.fromkeys(("phase", "tries"), (1,)),
        **dict.fromkeys(("speed", "half"), (nu,)),
    }
    made: PackBounces = allocate(PackBounces, shapes, width)
    return made


def bounces(touching: Touching) -> bool:
    """True if any shape has restitution."""
    return bool(np.any(touching.contacts.restitution > 0))


def make_pack_rows(
    model: Model, equipment: Equipment | None, slots: Slots | None, rubbing: Array, own: int, width: int
) -> tuple[Rows, NewtonWork, PackSolver]:
    """Allocate the rows of friction in the dofs `rubbing`, of limits and of contacts in all slots, `own` rows that are
    found lane by lane, and their solver's scratch.
    """
    nv, nu = len(model.dof_body), len(model.independent_dof)
    limited = limited_sides(model, equipment)
    n = len(rubbing) + len(limited)
    entries = n + _entries_of_tendons(equipment, limited) + nv * own
    n += own
    if slots is not None:
        n, entries = n + slots.rows, entries + slots.entries
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
        "limited": (len(limited), 2),
        **dict.fromkeys(("pressed", "limit_row", "limit_place"), (len(limited),)),
        "listed": (len(limited) + (0 if slots is None else slots.number),),
        "listing": (4,),
        **dict.fromkeys(("free", "change", "kept"), (nu,)),
        "impulse": (n,),
    }
    solver: PackSolver = allocate(PackSolver, of_solver, width)
    rows: Rows = allocate(Rows, shapes, width)
    if len(model.coupling_follower) == 0:
        rows = rows._replace(entry_dof=rows.column, entry_value=rows.value)
    whole = (slots is not None and slots.between > 0) or bool(np.any(limited[:, 1] >= TENDON_LOWER))
    whole = whole or own > 0
    flags = {"whole": whole, "touching": slots is not None, "exacting": own > 0}
    solver = solver._replace(rubbing=np.array(rubbing, np.int64), limited=limited)
    solver = solver._replace(**{name: np.array([flag], np.int64) for name, flag in flags.items()})
    return rows, work, solver


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
    """(nl, 2) dof and side of every limit of positions and velocities, then tendon and side of every limit of lengths;
    see constraints/limit_rows.py and tendon_rows.py.
    """
    of_side = (np.isfinite(model.lower), np.isfinite(model.upper), *[np.isfinite(model.velocity_limit)] * 2)
    has = np.stack(of_side, axis=1)
    has[model.dof_coord < 0, :2] = False
    sides = np.argwhere(has)
    if equipment is not None:
        has = np.stack([np.isfinite(equipment.tendon_lower), np.isfinite(equipment.tendon_upper)], axis=1)
        sides = np.concatenate([sides, np.argwhere(has) + np.array([0, TENDON_LOWER])])
    return np.ascontiguousarray(sides, np.int64)


def _entries_of_tendons(equipment: Equipment | None, limited: Array) -> int:
    """The number of entries of the rows of tendons' limits beyond one for each row."""
    if equipment is None:
        return 0
    return int(sum(np.diff(equipment.tendon_entry)[index] - 1 for index, side in limited if side >= TENDON_LOWER))


def enlarged(slots: PackContacts, contacts: int) -> PackContacts:
    """Enlarge each lane's room for contacts, keeping those present."""
    _, width, known, size = slots.memory.shape
    memory, slot = np.zeros((2, width, contacts, size)), np.zeros((width, contacts), np.int64)
    memory[:, :, :known] = slots.memory
    return slots._replace(memory=memory, slot=slot, before=np.zeros((width, contacts, CONTACT_BEFORE)))
