"""The arrays of a Model built from an Articulation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from artsim.sim.articulation.description import Articulation, Coupling
from artsim.sim.articulation.merged_links import COORDS, DOFS, Body, Tree
from artsim.sim.articulation.model import (
    BALL,
    D_MIN,
    FLATNESS_Y,
    FREE,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
    SWING_Y,
    Compiled,
    Labels,
    Model,
)
from artsim.sim.articulation.sliders import sliding_masses_of
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.records import Array, kinds
from artsim.sim.foundation.rotations import Real, frame_with_x, quaternion

_QUATERNION = ("qw", "qx", "qy", "qz")
_COORD_SUFFIX = ((), (), _QUATERNION, ("x", "y", "angle"), ("x", "y", "z", *_QUATERNION))
_DOF_SUFFIX = ((), (), ("wx", "wy", "wz"), ("x", "y", "angle"), ("vx", "vy", "vz", "wx", "wy", "wz"))


def compile_model(
    articulation: Articulation, *, coupling: str = "auto", locks: bool = False, gravity: Sequence[float] | None = None
) -> Compiled:
    """Build the arrays of an articulation.

    Args:
        coupling: "auto" eliminates couplings without a frequency and makes the others soft constraint rows; "exact"
        eliminates all, "rows" makes all hard rows, "compliant" rows with each coupling's own softness. A joint can be
        eliminated once: a second coupling of it is a row.
        locks: hold a joint whose limits are equal there exactly, by elimination.
        gravity: (3,) [m/s²]; None: the file's, else (0, 0, -9.81).

    Raises:
        ModelError: a joint or coupling that the engine does not support.
    """
    tree = Tree(articulation)
    bodies = tree.bodies
    dofs = _dofs(bodies)
    first_dof = {body.joint.name: body.dof for body in bodies if body.joint}
    of_axes = [c for c in articulation.couplings if c.axis]
    couplings, rows = _sorted_out([c for c in articulation.couplings if not c.axis], coupling)
    soft = _in_row_order(rows, first_dof)
    if locks:
        couplings += _locks(bodies, couplings)
    eliminated = _Elimination(couplings, soft, first_dof, dofs)
    if gravity is None:
        gravity = articulation.options.gravity or (0.0, 0.0, -9.81)
    arrays = {
        "gravity": np.asarray(gravity, float),
        **_body_arrays(tree),
        **dofs,
        **eliminated.arrays,
        **_row_arrays(soft, first_dof),
        **_turn_arrays(bodies),
        **_axis_arrays(of_axes, bodies),
        **_link_arrays(tree),
    }
    model = Model(**{name: _frozen(arrays[name], kind.dtype) for name, kind in kinds(Model).items()})
    labels = _labels(tree, [int(k) for k in model.independent_dof])
    reference = _reference(bodies)
    if (model.row_impedance[:, D_MIN] >= 0).any():
        model = model._replace(
            row_mobility=_frozen(_row_mobilities(articulation, model, labels, reference), np.float64)
        )
    return Compiled(model, labels, reference)


def _frozen(array: object, dtype: type[np.generic]) -> Real:
    made = np.ascontiguousarray(array, dtype)
    if made is array:
        made = made.copy()
    made.setflags(write=False)
    return made


def _body_arrays(tree: Tree) -> dict[str, object]:
    bodies = tree.bodies
    last = bodies[-1]
    ends = (last.dof + DOFS[last.type], last.coord + COORDS[last.type]) if len(bodies) > 1 else (0, 0)
    return {
        "body_parent": [b.parent for b in bodies],
        "body_root": _roots(bodies),
        "body_alone": _alone(bodies),
        "joint_type": [b.type for b in bodies],
        "body_dof": [*(b.dof for b in bodies), ends[0]],
        "body_coord": [*(b.coord for b in bodies), ends[1]],
        "tree_rotation": np.array([b.rotation for b in bodies]),
        "tree_position": np.array([b.position for b in bodies]),
        "body_mass": tree.mass,
        "carried_mass": _carried_masses(tree),
        "body_moment": tree.moment,
        "body_inertia": tree.inertia[:, *np.triu_indices(3)],
    }


def _alone(bodies: list[Body]) -> list[int]:
    above = {body.parent for body in bodies[1:]}
    return [int(b.parent == 0 and b.type in (BALL, FREE) and b.index not in above) for b in bodies]


def _carried_masses(tree: Tree) -> list[float]:
    carried: list[float] = tree.mass.tolist()
    for body in reversed(tree.bodies[1:]):
        carried[body.parent] += carried[body.index]
    return carried


def _roots(bodies: list[Body]) -> list[int]:
    roots = [0]
    for body in bodies[1:]:
        free = body.type == FREE and body.parent == 0
        roots.append(body.index if free else roots[body.parent])
    return roots


def _dofs(bodies: list[Body]) -> dict[str, Real]:
    columns: dict[str, list[float]] = {
        name: []
        for name in (
            "dof_body dof_linear dof_coord dof_parent dof_run armature damping stiffness spring_reference friction "
            "friction_coefficient lower upper limit_stiffness limit_damping velocity_limit effort"
        ).split()
    }
    last_dof = {0: -1}
    for body in bodies[1:]:
        joint = body.joint
        assert joint is not None
        linear = {REVOLUTE: 0, PRISMATIC: 1, BALL: 0, PLANAR: 2, FREE: 3}[body.type]
        count = DOFS[body.type]
        above = last_dof[body.parent]
        rest = body.zero[1] if body.type == FREE else np.full(3, joint.spring_reference)
        for k in range(count):
            dof = body.dof + k
            scalar = body.type in (REVOLUTE, PRISMATIC, PLANAR) or k < linear
            run = columns["dof_run"][above] if above == dof - 1 and above >= 0 else dof
            limited = count == 1
            infinite = np.inf
            values = (
                body.index,
                int(k < linear),
                body.coord + k if scalar else -1,
                above,
                run,
                joint.armature,
                joint.damping,
                joint.stiffness,
                rest[k] if scalar else 0.0,
                joint.friction,
                joint.friction_coefficient,
                -infinite if joint.lower is None or not limited else joint.lower,
                infinite if joint.upper is None or not (limited or (body.type == BALL and k == 0)) else joint.upper,
                0.0,
                0.0,
                infinite if joint.velocity is None else joint.velocity,
                infinite if joint.effort is None else joint.effort,
            )
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
            above = dof
        last_dof[body.index] = above
    integer = ("dof_body", "dof_linear", "dof_coord", "dof_parent", "dof_run")
    return {name: np.array(column, np.int64 if name in integer else float) for name, column in columns.items()}


def _turn_arrays(bodies: list[Body]) -> dict[str, object]:
    """The limits of swing and twist; see description.TurnLimits."""
    limited = [body for body in bodies[1:] if body.joint and body.type in (BALL, FREE) and body.joint.turning.given]
    last = bodies[-1]
    dof_turn = np.full(last.dof + DOFS[last.type] if len(bodies) > 1 else 0, -1)
    ranges, frames = np.empty((len(limited), 6)), np.empty((len(limited), 3, 3))
    for t, body in enumerate(limited):
        assert body.joint is not None
        turning = body.joint.turning
        dof_turn[body.dof + DOFS[body.type] - 3] = t
        ranges[t, :FLATNESS_Y] = (*(turning.twist or (-np.inf, np.inf)), *(turning.swing or (np.inf, np.inf)))
        ranges[t, FLATNESS_Y:] = np.tan(ranges[t, SWING_Y:FLATNESS_Y] / 4) ** -2 if turning.swing else 0.0
        frames[t] = frame_with_x(turning.axis)
    return {"dof_turn": dof_turn, "turn_range": ranges, "turn_frame": frames}


def _axis_arrays(couplings: list[Coupling], bodies: list[Body]) -> dict[str, object]:
    """The couplings of axes of balls, ordered by the first of their dofs, as stepping/assembly.py builds their rows."""
    by_name = {body.joint.name: body for body in bodies if body.joint}
    rows: list[tuple[int, int, tuple[float, float, float], int, float]] = []
    for c in couplings:
        constant, factor = c.coefficients
        follower, leader = by_name[c.follower], by_name[c.leader or ""]
        leads = leader.type == BALL
        ball, other = (leader, follower) if leads else (follower, leader)
        terms = (-factor, 1.0, -constant) if leads else (1.0, -factor, -constant)
        turn = ball.dof + "xyz".index(c.axis)
        rows.append((turn, other.dof, terms, other.dof if leads else turn, -1.0 if c.erp is None else c.erp))
    rows.sort(key=lambda row: min(row[:2]))
    return {
        "axis_turn": np.array([turn for turn, *_ in rows], np.int64),
        "axis_dof": np.array([dof for _, dof, *_ in rows], np.int64),
        "axis_terms": np.array([terms for _, _, terms, *_ in rows]).reshape(-1, 3),
        "axis_follower": np.array([follower for *_, follower, _ in rows], np.int64),
        "axis_erp": np.array([erp for *_, erp in rows], np.float64),
    }


def _locks(bodies: list[Body], couplings: list[Coupling]) -> list[Coupling]:
    followers = {c.follower for c in couplings}
    return [
        Coupling(body.joint.name, None, (body.joint.lower,), source=body.joint.source)
        for body in bodies
        if body.joint
        and DOFS[body.type] == 1
        and body.joint.lower is not None
        and body.joint.lower == body.joint.upper
        and body.joint.name not in followers
    ]


class _Elimination:
    """Independent dofs, and the couplings in an order with leaders first."""

    def __init__(
        self, couplings: list[Coupling], soft: list[Coupling], first_dof: Mapping[str, int], dofs: dict[str, Real]
    ) -> None:
        by_follower = {c.follower: c for c in couplings}
        ordered: list[Coupling] = []
        done: set[str] = set()
        for coupling in couplings:
            chain: list[Coupling] = []
            current: Coupling | None = coupling
            while current is not None and current.follower not in done:
                if len(chain) > len(couplings):
                    raise ModelError(f"{coupling.source}: joint {coupling.follower!r} follows itself")
                chain.append(current)
                current = by_follower.get(current.leader or "")
            for link in reversed(chain):
                ordered.append(link)
                done.add(link.follower)
        nv = len(dofs["dof_body"])
        followers = {first_dof[c.follower] for c in ordered}
        independent = [k for k in range(nv) if k not in followers]
        moved_by = np.full(nv, -1, np.int64)
        moved_by[independent] = np.arange(len(independent))
        for c in ordered:
            moved_by[first_dof[c.follower]] = moved_by[first_dof[c.leader]] if c.leader else -1
        if followers:
            parent = _elimination_tree(dofs["dof_parent"], moved_by, len(independent))
        else:
            parent = [int(k) for k in dofs["dof_parent"]]
        run: list[int] = []
        for k, above in enumerate(parent):
            run.append(run[above] if above == k - 1 and k > 0 else k)
        self.arrays = {
            "coupling_follower": np.array([first_dof[c.follower] for c in ordered], np.int64),
            "coupling_leader": np.array([first_dof[c.leader] if c.leader else -1 for c in ordered], np.int64),
            "coupling_polynomial": _polynomials(ordered),
            "independent_dof": np.array(independent, np.int64),
            "dof_independent": moved_by,
            "independent_parent": np.array(parent, np.int64),
            "independent_run": np.array(run, np.int64),
        }


def _elimination_tree(dof_parent: Array, moved_by: Array, count: int) -> list[int]:
    """Parents in the elimination tree of GᵀMG, eliminated from the last row to the first (Liu 1990).

    All ancestors in that tree are a superset of the filled pattern of a row, so the tree factorisation of a robot
    without couplings (Featherstone 2008, sec. 6.5) applies unchanged.
    """
    after: list[list[int]] = [[] for _ in range(count)]  # rows joined with each, of those that are eliminated before it
    for a, b in _joined(dof_parent.tolist(), moved_by.tolist()):
        after[a].append(b)
    parent, top = [-1] * count, [-1] * count
    for k in range(count - 1, -1, -1):
        for row in after[k]:
            while row >= 0 and top[row] != k:  # paths are shortened as they are walked
                above = top[row]
                top[row] = k
                if above < 0:
                    parent[row] = k
                row = above
    return parent


def _joined(dof_parent: list[int], moved_by: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs a < b of rows of GᵀMG that have the elimination tree of all its entries.

    The rows of all dofs between a dof and its root are coupled with each other. Each such set in order, neighbours
    joined, has the tree of the whole set (Gilbert, Ng and Peyton 1994).
    """
    below: list[list[int]] = [[] for _ in range(len(dof_parent) + 1)]
    for k, above in enumerate(dof_parent):
        below[above].append(k)
    path: list[int] = []  # rows of the dofs above, in order
    to_do = [(k, False) for k in below[-1]]
    while to_do:
        k, leaving = to_do.pop()
        a = moved_by[k]
        place = bisect_left(path, a)
        if leaving:
            del path[place]
            continue
        if a >= 0 and (place == len(path) or path[place] != a):
            if place > 0:
                yield path[place - 1], a
            if place < len(path):
                yield a, path[place]
            path.insert(place, a)
            to_do.append((k, True))
        to_do += [(j, False) for j in below[k]]


def _polynomials(couplings: list[Coupling]) -> Real:
    table = np.zeros((len(couplings), 5))
    for row, coupling in zip(table, couplings, strict=True):
        row[: len(coupling.coefficients)] = coupling.coefficients
    return table


def _sorted_out(couplings: Sequence[Coupling], coupling: str) -> tuple[list[Coupling], list[Coupling]]:
    """The couplings to eliminate, and those that become rows; see compile_model."""
    eliminated: dict[str, Coupling] = {}
    rows: list[Coupling] = []
    for c in couplings:
        if coupling in ("exact", "rows"):
            c = replace(c, frequency=None)
        hard = coupling == "exact" or (coupling == "auto" and c.frequency is None)
        hard = hard and c.compliance is None and c.erp is None
        if hard and c.follower not in eliminated:
            eliminated[c.follower] = c
        else:
            rows.append(c)
    return list(eliminated.values()), rows


def _in_row_order(soft: list[Coupling], first_dof: Mapping[str, int]) -> list[Coupling]:
    """Order by the first of the two joints, where stepping/assembly.py builds the row, before that joint's drive."""
    return sorted(soft, key=lambda c: min(first_dof[name] for name in (c.follower, c.leader) if name))


def _row_arrays(soft: list[Coupling], first_dof: Mapping[str, int]) -> dict[str, object]:
    return {
        "row_follower": np.array([first_dof[c.follower] for c in soft], np.int64),
        "row_leader": np.array([first_dof[c.leader] if c.leader else -1 for c in soft], np.int64),
        "row_polynomial": _polynomials(soft),
        "row_frequency": np.array([_frequency(c) for c in soft]),
        "row_compliance": np.array([-1.0 if c.compliance is None else c.compliance.compliance for c in soft]),
        "row_relaxation": np.array([0.0 if c.compliance is None else c.compliance.damping for c in soft]),
        "row_erp": np.array([-1.0 if c.erp is None else c.erp for c in soft]),
        "row_time": np.array([c.time_constant for c in soft]),
        "row_impedance": np.array([_impedance(c) for c in soft]).reshape(-1, 5),
        "row_mobility": np.zeros(len(soft)),
        "row_damping_ratio": np.array([1.0 if c.damping_ratio is None else c.damping_ratio for c in soft]),
    }


def _frequency(coupling: Coupling) -> float:
    """The entry of row_frequency."""
    if coupling.compliance is not None:
        return 0.0
    return -1.0 if coupling.frequency is None else coupling.frequency


def _impedance(coupling: Coupling) -> tuple[float, ...]:
    """The entry of row_impedance."""
    return (-1.0,) * 5 if coupling.impedance is None or coupling.compliance is not None else coupling.impedance


def _row_mobilities(articulation: Articulation, model: Model, labels: Labels, reference: Real) -> Real:
    """(ns,) MuJoCo's weight of joint equalities: its dof_invweight0 summed over both joints (rows with solimp only).

    Tendons' inertias are left to equipment/forces.py.
    """
    inverse = np.zeros(len(model.dof_body) + 1)  # the last entry, for rows without a leader, stays 0
    ends = np.concatenate([model.row_follower, model.row_leader])
    joints = [name for name, dofs in labels.joint_dofs.items() if dofs.start in ends]
    first = [labels.joint_dofs[name].start for name in joints]
    inverse[first] = joint_mobilities(articulation, model, labels, reference, joints)
    mobility: Real = inverse[model.row_follower] + inverse[model.row_leader]
    return np.where(model.row_impedance[:, D_MIN] >= 0, mobility, 0.0)


def joint_mobilities(
    articulation: Articulation, model: Model, labels: Labels, reference: Real, joints: Sequence[str]
) -> Real:
    """MuJoCo's dof_invweight0 of joints of one dof: their entries of M⁻¹ at `reference`, or 1 / mass (sliders.py)."""
    from artsim.sim.articulation.regularity import inverse_inertias

    found = inverse_inertias(model, reference, [labels.joint_dofs[name].start for name in joints])
    sliding, child = sliding_masses_of(articulation), {joint.name: joint.child for joint in articulation.joints}
    for k, name in enumerate(joints):
        if child[name] in sliding:
            found[k] = 1.0 / sliding[child[name]]
    return found


def _link_arrays(tree: Tree) -> dict[str, object]:
    n = len(tree.links)
    return {
        "link_body": [body.index for body in tree.body],
        "link_parent": tree.parent,
        "link_rotation": np.array(tree.rotation).reshape(n, 3, 3),
        "link_position": np.array(tree.position).reshape(n, 3),
        "link_mass": tree.link_mass,
        "link_com": tree.link_com,
        "link_inertia": tree.link_inertia[:, *np.triu_indices(3)],
    }


def _labels(tree: Tree, independent: list[int]) -> Labels:
    coords: list[str] = []
    dofs: list[str] = []
    coord_units: list[str] = []
    dof_units: list[str] = []
    force_units: list[str] = []
    joint_coords: dict[str, slice] = {}
    joint_dofs: dict[str, slice] = {}
    for body in tree.bodies[1:]:
        assert body.joint is not None
        name = body.joint.name
        joint_coords[name] = slice(body.coord, body.coord + COORDS[body.type])
        joint_dofs[name] = slice(body.dof, body.dof + DOFS[body.type])
        coords += [f"{name}.{s}" for s in _COORD_SUFFIX[body.type]] or [name]
        dofs += [f"{name}.{s}" for s in _DOF_SUFFIX[body.type]] or [name]
        linear = {REVOLUTE: 0, PRISMATIC: 1, BALL: 0, PLANAR: 2, FREE: 3}[body.type]
        quaternions = body.type in (BALL, FREE)
        coord_units += ["m"] * linear + (["1"] * 4 if quaternions else ["rad"] * (DOFS[body.type] - linear))
        dof_units += ["m/s"] * linear + ["rad/s"] * (DOFS[body.type] - linear)
        force_units += ["N"] * linear + ["N m"] * (DOFS[body.type] - linear)
    return Labels(
        tuple(link.name for link in tree.links),
        tuple(coords),
        tuple(dofs),
        tuple(dofs[k] for k in independent),
        tuple(coord_units),
        tuple(dof_units),
        tuple(force_units),
        joint_coords,
        joint_dofs,
    )


def _reference(bodies: list[Body]) -> Real:
    """Coordinates of the pose that the file draws: references, unit quaternions, free bodies where the file places
    them."""
    parts: list[Real] = []
    for body in bodies[1:]:
        if body.type == BALL:
            parts.append(np.array([1.0, 0, 0, 0]))
        elif body.type == FREE:
            assert body.joint is not None
            turn = quaternion(body.zero[0])
            as_written = np.array(body.joint.pose.rotation)  # the file's choice of the two equivalent quaternions
            parts.append(np.concatenate([body.zero[1], -turn if turn @ as_written < 0 else turn]))
        else:
            assert body.joint is not None
            parts.append(np.full(COORDS[body.type], body.joint.reference))
    return np.concatenate(parts) if parts else np.zeros(0)
