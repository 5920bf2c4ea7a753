"""Entries that look ahead of a step: foresight of gaps (foresight.py) and the continuous check (advancement.py).

The constants and the scratch of the check are here, too. Does not import numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.collision.shapes import (
    BOX,
    CAPSULE,
    CONVEX,
    CYLINDER,
    ELLIPSOID,
    SPHERE,
    Shapes,
)
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import Equipped
from artsim.sim.foundation.jit import Entry, point_at
from artsim.sim.foundation.records import (
    Array,
    ConstInts1,
    ConstInts2,
    ConstReals1,
    Ints1,
    Reals1,
    Reals2,
    allocate,
)
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import ContactBundle, Contacts, ContactWork, NarrowBundle, Touching, make_narrow
from artsim.sim.run_data.run_records import RunBundle

SLACK = 0.25  # share of the thinner shape's thickness that may be lost in penetration


class ContinuousWork(NamedTuple):
    """Constants and scratch of the check: n shapes, np pairs that may touch, nb bodies."""

    tree: ConstInts1  # (nb,) bodies that move together, or are tied by loops and couplings; 0: the world
    thickness: ConstReals1  # (n,) least radius or half width; inf: a shape without another side [m]
    beside: ConstReals1  # (n,) distance from its body's origin [m]
    pair: ConstInts2  # (np, 2) shapes, the smaller kind first
    stop: Reals1  # (nb,) share of the step after which a tree stops
    turning: Reals1  # (nb,) bound of a body's angular velocity while its tree moves [rad/s]
    arm: Reals1  # (nb,) path length from the root of its tree, along the bodies' origins [m]
    start: Reals2  # (n, 3) positions of shapes at the start [m]
    bent: Reals1  # (n,) largest distance of its points from their straight lines [m]
    way: Reals1  # (n,) largest distance that its points move [m]
    number: Ints1  # (1,) of candidates
    chosen: Ints1  # (np,) their pairs
    next: Reals1  # (np,) share of the step when a candidate is looked at again
    depth: Reals1  # (np,) largest allowed depth of the pair [m]


ADVANCE = Entry(
    "advance",
    "artsim.sim.contact.advancement",
    (RobotBundle, RunBundle, ContactBundle, NarrowBundle, ContinuousWork),
)

FORESEE = Entry("measure", "artsim.sim.contact.foresight", (ContactBundle, NarrowBundle))


def connect_foresight(touching: Touching, work: ContactWork) -> object:
    """Let the step, which receives `work`, foresee the gaps of its contacts while the returned object is kept."""
    return point_at(FORESEE, 1, work.foresight, ContactBundle(touching.contacts, work), make_narrow(touching))


def connect_advancement(
    touching: Touching, equipped: Equipped | None, robot: RobotBundle, run: RunBundle, work: ContactWork
) -> object:
    """Let the step, which receives `work`, call the continuous check while the returned object is kept."""
    continuous = make_continuous_work(touching, equipped, robot.model)
    work.straight[:] = _straight_angles(touching.contacts, continuous)
    contact = ContactBundle(touching.contacts, work)
    found = (contact, make_narrow(touching), continuous)
    return point_at(ADVANCE, 1, work.advancement, robot, RunBundle(run.inputs, run.step), *found)


def make_continuous_work(touching: Touching, equipped: Equipped | None, model: Model) -> ContinuousWork:
    """Return the constants of a run, and zeroed scratch."""
    g, kind = touching.contacts, touching.shapes.kind
    n, nb = len(g.body), len(model.body_parent)
    pairs = np.argwhere(np.triu(g.allowed >= 0, 1))
    swapped = kind[pairs[:, 0]] > kind[pairs[:, 1]]
    pairs[swapped] = pairs[swapped, ::-1]
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("tree", "stop", "turning", "arm"), (nb,)),
        **dict.fromkeys(("thickness", "beside", "bent", "way"), (n,)),
        **dict.fromkeys(("chosen", "next", "depth"), (len(pairs),)),
        "pair": (len(pairs), 2),
        "start": (n, 3),
        "number": (1,),
    }
    made: ContinuousWork = allocate(ContinuousWork, shapes)
    constants: dict[str, Array] = {
        "tree": _trees(model, equipped),
        "thickness": _thicknesses(touching.shapes),
        "beside": np.linalg.norm(g.place, axis=1),
        "pair": np.ascontiguousarray(pairs, np.int64),
    }
    for array in constants.values():
        array.setflags(write=False)
    return made._replace(**constants)


def _straight_angles(g: Contacts, work: ContinuousWork) -> Real:
    """(n,) the rotation at which a shape's points leave their straight lines by the shape's allowed depth [rad]."""
    least = np.full(len(g.body), np.inf)  # over the pairs that it is in
    thickness = work.thickness[work.pair].min(axis=1)
    for end in range(2):
        np.minimum.at(least, work.pair[:, end], thickness)
    arm = np.maximum(g.swing + work.beside, 1e-12)
    angle: Real = np.minimum(np.sqrt(2 * SLACK * least / arm), 10.0)
    return angle


def _trees(model: Model, equipped: Equipped | None) -> Array:
    """(nb,) a number for each group of bodies that move together."""
    tree = np.arange(len(model.body_parent))
    for b in range(1, len(tree)):
        if model.body_parent[b] > 0:
            tree[b] = tree[model.body_parent[b]]
    body = model.dof_body
    ties = [(body[a], body[b]) for a, b in zip(model.coupling_follower, model.coupling_leader, strict=True) if b >= 0]
    ties += [(body[a], body[b]) for a, b in zip(model.row_follower, model.row_leader, strict=True) if b >= 0]
    ties += [(body[a], body[b]) for a, b in zip(model.axis_turn, model.axis_dof, strict=True)]
    if equipped is not None:
        ties += [(a, b) for a, b in equipped.arrays.loop_body if a > 0 and b > 0]
    for a, b in ties:
        tree[tree == tree[a]] = tree[b]
    return tree.astype(np.int64)


def _thicknesses(shapes: Shapes) -> Real:
    """(n,) thickness of shapes that have an inside on all sides; inf for planes, height fields and surfaces."""
    result = np.full(len(shapes.kind), np.inf)
    for n, kind in enumerate(shapes.kind):
        size = shapes.size[n]
        if kind in (SPHERE, CAPSULE):
            result[n] = size[0]
        elif kind == CYLINDER:
            result[n] = size[:2].min()
        elif kind in (ELLIPSOID, BOX, CONVEX):
            result[n] = size.min()
    return result
