"""Records of packs with constraint rows and contacts.

A pack lists the contacts that any of its lanes has, as a single robot lists its own; the rows of a contact have no
effect in lanes without it. The elimination order does not depend on the contacts (solvers/elimination.py).

This file does not import numba.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from artsim.collision.shapes import CAPSULE, SPHERE
from artsim.sim.articulation.state import CONTACT_MEMORY, Workspace
from artsim.sim.constraints.kinds import RowOrigins, total_room
from artsim.sim.foundation.records import (
    ConstInts1,
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
    contact_shapes,
    most_rows,
)
from artsim.sim.run_data.run_records import Rows, Step
from artsim.sim.run_data.scratch import (
    MOST_TOGETHER,
    NewtonWork,
    SolverCall,
    newton_shapes,
    whole_strips,
)

_USUAL = 8  # contacts of a pair; spheres and capsules have fewer
_BETWEEN = 4  # contacts of a pair of moving shapes


class PackSolver(NamedTuple):
    """State shared by the rows of a pack and their solver."""

    entry: Ints1  # (2,) addresses of solvers/pack_newton.py and of its table
    same: Ints1  # (1,) 1: the rows and M̂ are those of the step's previous solution, but for biases
    done: Lanes1  # (1,) 1: the step's previous solution stands
    warm: Lanes1  # (1,) 1: that solution has impulses
    kept: Lanes1  # (nu,) its velocities
    unlike: ConstInts1  # (1,) 1: lanes may have so many contacts that their rows are quite different
    whole: ConstInts1  # (1,) 1: rows may tie branches of trees, or trees
    exacting: ConstInts1  # (1,) 1: rows may be so stiff that the solver's first step loses digits
    skip: Lanes1  # (1,) 1: the solver ignores the lane
    yields: Lanes1  # (1,) 1: contacts of the lane yield, and newton itself settles its rows
    by_newton: Lanes1  # (1,) 1: newton itself has solved rows of the lane in this step
    in_impulses: Lanes1  # (1,) 1: the lane is solved in impulses, its own rows beside those of others
    placed: Lanes1  # (rows,) 1: the unit that begins with the row is among the lane's own
    apart: Lanes1  # (1,) 1: the lane has so many rows that it takes its steps by itself
    alike: Ints1  # (1,) 1: the rows of all lanes together are taken for the own rows of each
    own_row: Ints2  # (MOST_TOGETHER, lanes) the row in a place of the lane's own rows; -1: none
    own_line: Ints2  # (MOST_TOGETHER, lanes) its line of NewtonWork.half
    own_unit: Ints2  # (MOST_TOGETHER, lanes) the unit's number in stepping_unit, in a place of the lane's units
    own_end: Ints1  # (lanes,) the end of the lane's own rows
    own_lines: Ints1  # (1,) the end of all of them
    free: Lanes1  # (nu,) velocities without rows
    change: Lanes1  # (nu,) velocity change found by the solver
    impulse: Lanes1  # (rows,)


LaneRows = with_lanes(Rows, "LaneRows", ())
LaneWork = with_lanes(NewtonWork, "LaneWork", ())
LaneData = with_lanes(Workspace, "LaneData", ())


class LaneSolver(NamedTuple):
    """The few rows of one lane, without dofs, and their solver's scratch (solvers/lane_coulomb.py)."""

    rows: LaneRows  # type: ignore[valid-type]
    work: LaneWork  # type: ignore[valid-type]


class OwnRows(NamedTuple):
    """Each lane's own rows side by side, without dofs, and their solver's scratch (solvers/own_rows.py)."""

    rows: Rows
    work: NewtonWork


class LaneOrder(NamedTuple):
    """The order of the contacts of each lane, arrays of LaneContacts and of the list; empty without contacts."""

    number: Ints1  # (lanes,) of contacts
    place: Ints2  # (lanes, contacts) number of a contact in the list; -1: the contact has no row
    first_row: Ints1  # (k,) ContactWork.row of the list
    row_count: Ints1  # (k,) ContactWork.rows


class SingleSolver(NamedTuple):
    """The solver of a single robot with its arrays, for lanes whose rows the solver of packs leaves to it."""

    call: SolverCall
    order: LaneOrder
    rows: LaneRows  # type: ignore[valid-type]
    data: LaneData  # type: ignore[valid-type]
    step: Step


PackContactWork = with_lanes(
    ContactWork,
    "PackContactWork",
    (
        *("common", "position", "rotation", "margin", "low", "high", "turning", "regularised"),
        *("distance", "gap", "frame", "friction", "grip", "most_grip", "hardness", "restitution", "adhesion"),
        *("pull", "belt"),
        *("arm", "roll", "span", "carried", "carriers", "drift", "overtaken", "bend", "swerve", "scale", "start"),
        *("inside", "phase", "tries", "held", "stays", "apart"),
        *("aimed", "ahead", "ahead_point", "curve", "change", "unaimed", "foreseen", "aiming"),
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
    held: Reals2  # (lanes, 5) as Step.held: steps with contacts that hard loops hold inside, and the deepest
    touching: Lanes1  # (1,) 1: there are contacts, touching or speculative
    yielding: Lanes1  # (1,) 1: one of them yields
    outrun: Lanes1  # (1,) 1: the step leaves a shape's margin
    other: Lanes1  # (1,) 1: and other contacts are there, now in the list
    chosen: Lanes1  # (1,) 1: the lane that is looked at
    factor: Lanes1  # (1,) factor on friction
    raised: Lanes1  # (1,) by how much planes of the world are above their places [m]
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
        "held": (width, 5),
        **dict.fromkeys(("key", "present"), (room,)),
    }
    made: LaneContacts = allocate(LaneContacts, shapes, width)
    made.factor[...] = 1.0
    return made


def enlarged(old: LaneContacts, new: LaneContacts) -> LaneContacts:
    """`new`, which has more room, with the contacts of `old`."""
    new.memory[:, :, : old.memory.shape[2]] = old.memory
    kept = ("half", "start_depth", "sunk", "held", "factor", "raised")
    return new._replace(**{name: getattr(old, name) for name in kept})


def bounces(touching: Touching) -> bool:
    """True if any shape has restitution."""
    return bool(np.any(touching.contacts.restitution > 0))


def make_pack_rows(of: RowOrigins, tied: bool, width: int) -> tuple[Rows, NewtonWork, PackSolver]:
    """Allocate the rows of a run's parts, and their solver's scratch. `tied`: some rows beside those of contacts act on
    several dofs."""
    model, touching = of.model, of.touching
    nv, nu = len(model.dof_body), len(model.independent_dof)
    (n, entries, _), few = total_room(of), total_room(of, lasting=True).rows
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(Rows._fields, (n,)),
        **dict.fromkeys(("column", "value", "entry_dof", "entry_value"), (entries,)),
        "number": (4,),
        "start": (n + 1,),
        "implicit": (nv,),
        "report": (3,),
    }
    of_work = newton_shapes(model.independent_parent, n, nv, entries)
    work = allocate(NewtonWork, of_work | {"inverse_mass_jacobian": (0,)} | lane_solver_shapes(nu), width)
    of_solver: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(PackSolver._fields, (1,)),
        "entry": (2,),
        **dict.fromkeys(("free", "change", "kept"), (nu,)),
        **dict.fromkeys(("impulse", "placed"), (n,)),
        **own_shapes(width),
    }
    solver: PackSolver = allocate(PackSolver, of_solver, width)
    rows: Rows = allocate(Rows, shapes, width)
    if len(model.coupling_follower) == 0:
        rows = rows._replace(entry_dof=rows.column, entry_value=rows.value)
    whole, unlike = tied, False
    if touching is not None:
        whole = whole or _has_moving_pairs(touching)
        unlike = few + _most_rows(touching, MOST_TOGETHER) > MOST_TOGETHER
    flags = {"whole": whole, "unlike": unlike, "exacting": tied}
    return rows, work, solver._replace(**{name: np.array([flag], np.int64) for name, flag in flags.items()})


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
        "system": (0, 0),  # the steps of own rows have theirs
        **dict.fromkeys(("system_pivot", "impulse_change", "unit_idle"), (0,)),
    }


def own_shapes(lanes: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the fields of PackSolver that tell the rows of this number of lanes."""
    return {**dict.fromkeys(("own_row", "own_line", "own_unit"), (MOST_TOGETHER, lanes)), "own_end": (lanes,)}


def make_own_rows(work: NewtonWork, width: int) -> OwnRows:
    """Allocate room for the own rows of lanes, whose W and units are those that `work` holds."""
    of_rows, of_work = _own_problem_shapes(MOST_TOGETHER)
    own: NewtonWork = allocate(NewtonWork, of_work | {"delassus": (0, 0), "unit_stop": (0,)}, width)
    return OwnRows(allocate(Rows, of_rows, width), own._replace(delassus=work.delassus, unit_stop=work.unit_stop))


def make_lane_solver() -> LaneSolver:
    """Allocate room for the few rows of a lane."""
    of_rows, of_work = _own_problem_shapes(whole_strips(MOST_TOGETHER))
    return LaneSolver(allocate(LaneRows, of_rows), allocate(LaneWork, of_work))


def _own_problem_shapes(columns: int) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Shapes of rows without dofs and of their solver's scratch, whose matrices have so many columns."""
    n = MOST_TOGETHER
    fields = ("system_pivot", "impulse_change", "stepping_unit", "delassus_row", "unit_stop", "unit_idle")
    shapes = newton_shapes(np.array([-1]), n, 1, 1) | {
        "factors": (n,),
        **dict.fromkeys(("system", "delassus"), (n, columns)),
        **dict.fromkeys(fields, (n,)),
    }
    return {**dict.fromkeys(Rows._fields, (n,)), "start": (n + 1,), "implicit": (1,)}, shapes


def lane_order(contact: PackContactBundle | None) -> LaneOrder:
    """The order of the lanes' contacts."""
    if contact is None:
        none = np.zeros(0, np.int64)
        return LaneOrder(none, np.zeros((0, 0), np.int64), none, none)
    return LaneOrder(contact.lanes.number, contact.lanes.place, contact.data.row, contact.data.rows)
