"""Fills a recorded row of a step in maximal coordinates; joint wrenches are the multipliers themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from artsim.sim.articulation.chains import jacobian_columns
from artsim.sim.articulation.model import WORLD, Model
from artsim.sim.equipment.arrays import Equipment
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real, quaternion, symmetric
from artsim.sim.maximal.bodies import BodyStates, Masses, explicit_forces, inertias, origins
from artsim.sim.maximal.conversion import in_joints, joint_loads, joint_twists
from artsim.sim.maximal.joints import joint_lines
from artsim.sim.maximal.lines import Lines, wrenches_on_bodies
from artsim.sim.maximal.loops import loop_sizes
from artsim.sim.run_data.run_records import ITERATIONS, RESIDUAL


@dataclass(frozen=True)
class Taken:
    """The result of a step."""

    model: Model
    equipment: Equipment | None
    masses: Masses
    state: BodyStates  # before the step
    after: BodyStates
    velocity: Real  # (nv,) before the step
    acceleration: Real  # (nb, 6) of the bodies
    lines: Lines
    dof_line: Array  # (nv,)
    line_force: Real  # (lines,) total force along each line [N, N m]
    contacts: slice  # the lines of contacts
    loops: slice  # of loops
    forces: dict[str, Real]  # (nv,) by source
    dt: float
    report: tuple[float, float]  # pivots, residual


def energies_of_bodies(model: Model, masses: Masses, state: BodyStates, velocity: Real) -> tuple[float, float]:
    """Kinetic and potential energy [J]; velocity (nv,) is that of the rotors."""
    M = inertias(masses, state.rotation)
    u = state.velocity[1:]
    kinetic = 0.5 * np.einsum("bi,bij,bj->", u, M[1:], u) + 0.5 * float(model.armature @ velocity**2)
    weight = -float(masses.mass @ (state.centre @ model.gravity)) - _still_weight(model)
    k = np.flatnonzero((model.stiffness > 0) & (model.dof_coord >= 0))
    stretch = state.qpos[model.dof_coord[k]] - model.spring_reference[k]
    return float(kinetic), weight + 0.5 * float(model.stiffness[k] @ stretch**2)


def _still_weight(model: Model) -> float:
    """Potential energy of the links that are fixed to the world [J]."""
    return float(model.gravity @ model.body_moment[WORLD])


def recorded_row(taken: Taken, block: dict[str, Array], row: int) -> None:
    """Fill one row of all fields in `block`."""
    for name, values in block.items():
        if name in _FIELDS and values.shape[1:] != (0,):
            values[row] = _FIELDS[name](taken)


# ------------------------------------------------------------------ links


def _link_frames(taken: Taken) -> tuple[Real, Real]:
    """Rotations (nl, 3, 3) and origins (nl, 3) of all links in the world."""
    model, state = taken.model, taken.state
    rotation = state.rotation
    turned, origin = rotation[model.link_body], origins(taken.masses, state, rotation)[model.link_body]
    return turned @ model.link_rotation, origin + np.einsum("lij,lj->li", turned, model.link_position)


def _link_quaternions(taken: Taken) -> Real:
    rotation, _ = _link_frames(taken)
    return np.array([quaternion(matrix) for matrix in rotation])


def _incoming_wrench(taken: Taken) -> Real:
    """Wrench that each link receives through its joint (nl, 6), about its frame's origin.

    A moving joint transmits the multipliers of its lines; a fixed joint the wrench that its link's own motion and the
    links beyond need. Wrenches of loops do not count as those of a joint.
    """
    model, state = taken.model, taken.state
    _, place = _link_frames(taken)
    wrench = _own_need(taken, place)
    for link in range(len(model.link_body) - 1, -1, -1):
        above, body = model.link_parent[link], model.link_body[link]
        if body != (model.link_body[above] if above >= 0 else 0):
            line = slice(6 * body - 6, 6 * body)
            at_centre = taken.lines.value[line, :6].T @ taken.line_force[line]
            wrench[link] = _shifted(at_centre, state.centre[body] - place[link])
        if above >= 0:
            wrench[above] += _shifted(wrench[link], place[link] - place[above])
    return wrench


def _own_need(taken: Taken, place: Real) -> Real:
    """Rates of momentum of the links minus their weights and loop forces (nl, 6), about their frames' origins."""
    model, state = taken.model, taken.state
    rotation, _ = _link_frames(taken)
    need = np.zeros((len(place), 6))
    for link, body in enumerate(model.link_body):
        linear, angular = taken.acceleration[body, :3], taken.acceleration[body, 3:]
        spin = state.velocity[body, 3:]
        centre = place[link] + rotation[link] @ model.link_com[link]
        arm = centre - state.centre[body]
        moved = linear + np.cross(angular, arm) + np.cross(spin, np.cross(spin, arm))
        force = model.link_mass[link] * (moved - model.gravity)
        I = rotation[link] @ symmetric(model.link_inertia[link]) @ rotation[link].T
        torque = I @ angular + np.cross(spin, I @ spin)
        need[link] = _shifted(np.concatenate([force, torque]), centre - place[link])
    need -= wrenches_on_links(taken, slice(0, len(taken.line_force)))
    return need


def wrenches_on_links(taken: Taken, which: slice) -> Real:
    """Wrenches (nl, 6), about the links' origins, of lines that act on links as on free bodies: of loops, inputs,
    contacts."""
    lines, state = taken.lines, taken.state
    _, place = _link_frames(taken)
    found = np.zeros((len(place), 6))
    for end in range(2):
        link = lines.link[which, end]
        there = link >= 0
        link = link[there]
        wrench = (taken.line_force[which, None] * lines.value[which, 6 * end : 6 * end + 6])[there]
        arm = state.centre[lines.body[which, end][there]] - place[link]
        wrench[:, 3:] += np.cross(arm, wrench[:, :3])
        np.add.at(found, link, wrench)
    return found


def _loop_wrenches(taken: Taken, e: Equipment) -> list[tuple[int, Real]]:
    """Body and wrench about its centre of mass for the first end of each loop."""
    found = []
    first = taken.loops.start
    for n, size in enumerate(loop_sizes(e)):
        lines = slice(first, first + int(size))
        found.append((int(e.loop_body[n, 0]), taken.line_force[lines] @ taken.lines.value[lines, :6]))
        first = lines.stop
    return found


def _wrenches_of_loops(taken: Taken) -> Real:
    """The wrench of each loop on its first link, at its point there (nloop, 6)."""
    if taken.equipment is None:
        return np.zeros((0, 6))
    state, e = taken.state, taken.equipment
    origin = origins(taken.masses, state, state.rotation)
    found = []
    for n, (body, wrench) in enumerate(_loop_wrenches(taken, e)):
        point = origin[body] + state.rotation[body] @ e.loop_position[2 * n]
        found.append(_shifted(wrench, state.centre[body] - point))
    return np.array(found).reshape(-1, 6)


def _shifted(wrench: Real, arm: Real) -> Real:
    """The wrench about the point from which its own point is `arm` away."""
    return np.concatenate([wrench[:3], wrench[3:] + np.cross(arm, wrench[:3])])


# ------------------------------------------------------------------ in joint coordinates


def _joint_acceleration(taken: Taken) -> Real:
    """Accelerations of the dofs' lines at the pose before the step; the forces by source add up to M qacc + bias."""
    lines, a = taken.lines, taken.acceleration
    pair = np.hstack([a[lines.body[:, 0]], a[lines.body[:, 1]]])
    moved: Real = np.einsum("nk,nk->n", lines.value, pair)
    return (moved + lines.drift)[taken.dof_line]


def forces_in_joints(lines: Lines, dof_line: Array, line_force: Real, bodies: int) -> Real:
    """Joint forces (nv,) of forces along all lines (lines,)."""
    every = np.arange(len(line_force))
    return in_joints(lines, wrenches_on_bodies(lines, every, line_force, bodies), dof_line)


def _loop_forces(taken: Taken) -> Real:
    force = np.zeros(len(taken.line_force))
    force[taken.loops] = taken.line_force[taken.loops]
    return forces_in_joints(taken.lines, taken.dof_line, force, len(taken.masses.mass))


def _columns(taken: Taken) -> Real:
    """H (nb, 6, nv) of all bodies; see joint_twists."""
    H = joint_twists(taken.lines, taken.dof_line)
    H = H.reshape(len(taken.masses.mass) - 1, 6, len(taken.dof_line))
    columns: Real = np.concatenate([np.zeros((1, *H.shape[1:])), H])
    return columns


def _mass_matrix(taken: Taken) -> Real:
    H = _columns(taken)
    M = inertias(taken.masses, taken.state.rotation)
    of_bodies: Real = np.einsum("bik,bij,bjl->kl", H, M, H)
    of_rotors: Real = np.diag(taken.model.armature)
    return of_bodies + of_rotors


def _bias(taken: Taken, *, moving: bool = True) -> Real:
    """Joint forces at zero joint acceleration (nv,): those of gravity and, if `moving`, of the velocities."""
    state, lines = taken.state, taken.lines
    if not moving:
        state = replace(state, velocity=np.zeros_like(state.velocity))
        lines = joint_lines(taken.model, taken.masses, state)
    M = inertias(taken.masses, state.rotation)
    force = explicit_forces(taken.model, state, M)
    zero = np.zeros(len(taken.dof_line))
    return joint_loads(lines, M, force, taken.dof_line, zero)[taken.dof_line]


def _jacobian(taken: Taken) -> Real:
    """Jacobians of all links at their centres of mass, in the columns of jacobian_columns (columns, 6)."""
    model, state = taken.model, taken.state
    rotation, place = _link_frames(taken)
    centre = place + np.einsum("lij,lj->li", rotation, model.link_com)
    J: Real = _columns(taken)[model.link_body]
    J[:, :3] += np.cross(J[:, 3:], (centre - state.centre[model.link_body])[:, :, None], axis=1)
    link, dof = jacobian_columns(model)
    columns: Real = J[link, :, dof]
    return columns


def _com(taken: Taken) -> Real:
    """Centre of mass of all links, including those fixed to the world (3,) [m]."""
    model, masses = taken.model, taken.masses
    moment = masses.mass @ taken.state.centre + model.body_moment[WORLD]
    centre: Real = moment / max(model.carried_mass[WORLD], 1e-300)
    return centre


def _momentum(taken: Taken) -> Real:
    """Linear momentum, and angular momentum about the centre of mass (6,)."""
    M = inertias(taken.masses, taken.state.rotation)
    parts = np.einsum("bij,bj->bi", M[1:], taken.state.velocity[1:])
    arms = taken.state.centre[1:] - _com(taken)
    return np.concatenate([parts[:, :3].sum(axis=0), (parts[:, 3:] + np.cross(arms, parts[:, :3])).sum(axis=0)])


def _force(name: str) -> Callable[[Taken], Real]:
    return lambda taken: taken.forces[name]


SOURCES = ("applied", "drive", "passive", "coupling", "limit", "tendon", "contact")
"""The sources of joint forces, as they are recorded."""


_FIELDS: dict[str, Callable[[Taken], Array | float]] = {
    "qpos": lambda t: t.state.qpos,
    "qvel": lambda t: t.velocity,
    "qacc": _joint_acceleration,
    **{f"tau_{name}": _force(name) for name in SOURCES},
    **{name: _force(name) for name in ("friction_constant", "friction_by_load")},
    "tau_loop": _loop_forces,
    "contact_wrench": lambda t: wrenches_on_links(t, t.contacts),
    "external_wrench": lambda t: wrenches_on_links(t, slice(0, len(t.line_force))),
    "loop_wrench": _wrenches_of_loops,
    "link_position": lambda t: _link_frames(t)[1],
    "link_quaternion": _link_quaternions,
    "incoming_wrench": _incoming_wrench,
    "jacobian": _jacobian,
    "gravity": lambda t: _bias(t, moving=False),
    "mass_matrix": _mass_matrix,
    "bias": _bias,
    "com": _com,
    "momentum": _momentum,
    "energy": lambda t: np.array(energies_of_bodies(t.model, t.masses, t.state, t.velocity)),
    "solver_iterations": lambda t: t.report[ITERATIONS],
    "solver_residual": lambda t: t.report[RESIDUAL],
}
