"""The step, and the loop over a block of steps.

Semi-implicit Euler: kinematics → M̂ and bias → constraint rows → solver → positions. A robot that nothing but limits
bounds takes the step without rows first, in O(n), and is done when it breaks none.
"""

from __future__ import annotations

import math
from typing import Any

from artsim.sim.actuation import (
    actuator_force,
    applied_forces,
    coordinate,
    drive_force,
    driven_at,
    felt_at,
    find_places,
    implicit_system,
    passive_forces,
    weigh_springs,
)
from artsim.sim.clock import mark, start
from artsim.sim.constraints.actuator import has_actuator_rows
from artsim.sim.constraints.contact import may_bounce, note_contact_forces, tame
from artsim.sim.constraints.coupling import coupling_slope
from artsim.sim.constraints.impacts import pass_on_blows, take_blows, weaken
from artsim.sim.constraints.limit import limits_hold
from artsim.sim.constraints.link_velocity import ROUNDS, aim_bounds, loosen, note_excess
from artsim.sim.constraints.loop import (
    clear_loop_forces,
    find_loop_misses,
    has_hard_loops,
    note_loop_forces,
    note_loop_gaps,
    relax_loops,
    tighten_loops,
)
from artsim.sim.constraints.row import TOLD, UNSOLVED
from artsim.sim.constraints.rows import build, count_limits, joint_forces
from artsim.sim.constraints.tendon import (
    find_tendon_misses,
    has_hard_equalities,
    has_sprung_tendons,
    needs_rows,
    note_tendon_errors,
    note_tendon_forces,
    sprung_mobilities,
    tendons_hold,
)
from artsim.sim.coupling import expand, expand_velocity, reduce_matrix, reduce_vector, secant_drift
from artsim.sim.detection import (
    are_as_before,
    detected,
    find_contacts,
    find_drifts,
    note_found,
    outrun,
    place_static,
    remember,
)
from artsim.sim.dynamics import (
    articulated_dynamics,
    composites,
    coupled_bias,
    factorise,
    inverse_dynamics,
    mass_matrix,
    solve,
)
from artsim.sim.energy_watch import EVERY, energies, note_work, watch_energy
from artsim.sim.equipment.actuators import advance_activations, clamp_actuators
from artsim.sim.equipment.forces import calibrate, equipment_forces
from artsim.sim.equipment.tendons import tendon_paths
from artsim.sim.integrators import move
from artsim.sim.jit import inlined, njit
from artsim.sim.kinematics import accelerations, kinematics, motion_columns, velocities, world_inertia
from artsim.sim.link_damping import add_link_damping, link_damping_forces
from artsim.sim.midpoint import (
    ROUNDS as EVALUATIONS,
)
from artsim.sim.midpoint import (
    SETTLED,
    add_stiffened_bias,
    book_midpoint,
    clear_stiffening,
    foresee_spin,
    go_back,
    go_midway,
    loops_pull,
    misled,
    note_struck,
    stiffen,
    stiffen_composites,
    turning_and_tautness,
)
from artsim.sim.phases import BROAD_PHASE, FORCES, INTEGRATION, RECORDING, ROWS, SOLVER, SYSTEM
from artsim.sim.recording import is_full, record
from artsim.sim.recordtype import run_entry
from artsim.sim.run import (
    BLOCK_GS,
    CROWDED,
    NON_FINITE,
    PGS,
    TGS,
    UNSOLVED_STEPS,
)
from artsim.sim.sleeping import count_still, is_asleep, note_commands
from artsim.sim.solvers.alone import run_newton
from artsim.sim.solvers.block_gs import block_gs
from artsim.sim.solvers.direct import factorise_graph, solve_graph
from artsim.sim.solvers.full_coordinates import note_couplings, note_diagonal
from artsim.sim.solvers.newton import newton, newton_again
from artsim.sim.solvers.pgs import pgs
from artsim.sim.solvers.propagation import factorise_tree, solve_tree
from artsim.sim.solvers.tgs import tgs

_SEARCHES = 4  # for contacts, where the step moves shapes farther than they were looked for
_SEARCHES_OF_BLOWS = 40  # the same where they bounce, each of what the last ones struck
_AIMS = 12  # at closed loops and tendon equalities, at most
_MISSED = 1e-6  # [m or rad] after which they are aimed once more
_CLOSED = 1e-9  # [m or rad] that needs no further aim
_FASTER = 1.5  # than before, at most, an aim may make the fastest dof
_NEARER = 0.5  # of the miss before, else an aim has not helped
_TAMINGS = 6  # of contacts that make energy; of a bounce each time by half


@njit
def simulate(
    m: Any,
    s: Any,
    w: Any,
    i: Any,
    r: Any,
    f: Any,
    b: Any,
    e: Any,
    x: Any,
    g: Any,
    t: Any,
    d: Any,
    o: Any,
    y: Any,
    c: Any,
    p: Any,
    q: Any,
    k: Any,
) -> None:
    """Take b.plan[0] steps from s, recording every b.plan[1]-th, or stop early with the reason in f.counters[2].

    None are: e and x of a robot without equipment, g and t of a run without contact, d and o of one without damping
    or limits of links, and of the solvers' scratch what is not used: y of newton's loop, c of sweeps, p of propagation
    and q of direct, which go with y; k unless the phases of the step are timed. What asks for them is then not
    compiled.
    """
    z = (y, c, p, q, k)
    start(k)
    begin(m, s, w, i, f, e, x, d, z)
    if g is not None:
        b.contacts[0] = 0
        place_static(m, w, g, t)
    for _ in range(b.plan[0]):
        if t is not None and is_full(f, b, t):
            break
        mark(k, INTEGRATION)
        if f.counters[0] % EVERY == 0:
            watch_energy(m, s, w, f, e, x, t)
        choose_controls(i, f)
        asleep = is_asleep(s, i, f)
        if not asleep or f.counters[6] == 0:
            _euler(m, s, w, i, r, f, e, x, g, t, d, o, z)
            if asleep:
                _rest(m, s, w, f)
            elif f.counters[2] != 0 or not is_finite(m, f):
                break
        if x is not None and x.feeler[0] != 0:
            run_entry(x.feeler)
        if f.counters[0] % b.plan[1] == 0:
            mark(k, INTEGRATION)
            if f.counters[7] == 1:
                book_midpoint(m, s.qvel, w, f)
            record(m, s, w, i, r, f, b, e, x, g, t)
            mark(k, RECORDING)
        if not asleep:
            note_work(i, f, x, s.qvel, f.velocity)
            _finish_euler(m, s, w, i, r, f, e, x, g, t, c)
        if x is not None and x.keeper[0] != 0:
            run_entry(x.keeper)
        f.counters[0] += 1
    f.energy[1] = total_energy(m, s, w, f, e, x)
    if e is not None:
        note_loop_gaps(m, w, f, e, x)
    mark(k, INTEGRATION)


@njit
def begin(m: Any, s: Any, w: Any, i: Any, f: Any, e: Any, x: Any, d: Any, z: Any) -> None:
    """What a block of steps starts with: followers in place; before the first step energy and load."""
    f.counters[1] = 0
    for c in range(m.row_follower.shape[0]):
        if m.row_impedance[c, 0] >= 0.0 and f.effective_coupling[c] == 0.0:
            f.effective_coupling[c] = m.row_mobility[c]
    if e is not None:
        calibrate(m, w, e, x, f)
    else:
        weigh_springs(m, i, f, x)
    expand(m, s.qpos, s.qvel, w)
    f.counters[5] = 1 if _is_free(m, i, drives_are_rows(z)) else 0
    if e is not None and (needs_rows(e) or has_actuator_rows(e)):
        f.counters[5] = 0
    if d is not None:
        f.counters[5] = 0
    if f.counters[0] == 0:
        f.energy[0] = total_energy(m, s, w, f, e, x)
        for k in range(f.qacc.shape[0]):
            f.qacc[k] = 0.0
        for k in range(f.watch.shape[0]):
            f.watch[k] = 0.0
        note_load(m, s, w, f)  # what the joints carry before anything moves: friction acts from the first step


@njit
def total_energy(m: Any, s: Any, w: Any, f: Any, e: Any, x: Any) -> Any:
    """Kinetic plus potential energy at the state [J]."""
    moving, stored = energies(m, s, w, f, e, x)
    return moving + stored


@njit
def choose_controls(i: Any, f: Any) -> None:
    """f.counters[4]: the control row that acts on this step."""
    row = f.counters[4]
    while row + 1 < i.start_step.shape[0] and i.start_step[row + 1] <= f.counters[0]:
        row += 1
    f.counters[4] = row


@njit
def is_finite(m: Any, f: Any) -> bool:
    """False when a velocity at the end of the step is not finite; then the reason and its dof are in f.counters."""
    for a in range(f.next.shape[0]):
        if not math.isfinite(f.next[a]):
            f.counters[2] = NON_FINITE
            f.counters[3] = m.independent_dof[a]
            return False
    return True


# ------------------------------------------------------------------ semi-implicit Euler


@njit
def _euler(
    m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, g: Any, t: Any, d: Any, o: Any, z: Any
) -> None:
    """f.next = u at the end of the step, and the forces that lead there."""
    kinematics(m, s.qpos, w)
    world_inertia(m, w)
    applied_forces(m, s.qpos, s.qvel, w, i, f, e, x)
    find_places(m, s.qpos, i, f, f.counters[4])
    if e is not None:
        equipment_forces(m, s.qpos, s.qvel, w, i, e, x, f, s.activation, 0)
    mark(z[4], FORCES)
    if g is not None:
        if not find_contacts(m, s, w, i, g, t):
            f.counters[2] = CROWDED
            return
        mark(z[4], BROAD_PHASE)
    searches = 1
    if g is not None:
        searches = _SEARCHES_OF_BLOWS if may_bounce(g) else _SEARCHES
    for search in range(searches):
        _velocities_found(m, s, w, i, r, f, e, x, g, t, d, o, z)
        if g is None or search == searches - 1 or not outrun(m, w, i, f, g, t):
            break
        velocities(m, s.qvel, w)
        count = t.number[0]
        note_found(t)
        if not detected(m, s, w, g, t):
            f.counters[2] = CROWDED
            return
        mark(z[4], BROAD_PHASE)
        if are_as_before(t, count):
            break
    if g is not None:
        velocities(m, s.qvel, w)
    f.worst_residual[0] = max(f.worst_residual[0], r.report[1])
    f.yielded[UNSOLVED_STEPS] += 1.0 if r.report[1] > TOLD else 0.0
    _collect_forces(m, s, w, i, r, f, e, x, g, t, d, o)


@njit
def _velocities_found(
    m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, g: Any, t: Any, d: Any, o: Any, z: Any
) -> None:
    """f.next and f.velocity at the end of the step with the contacts found, evaluated as often as it needs."""
    h = i.time_step[0]
    for k in range(f.middle.shape[0]):
        f.middle[k] = s.qvel[k]
    for a in range(f.next.shape[0]):
        f.next[a] = s.qvel[m.independent_dof[a]]
    if f.counters[7] == 2:
        clear_stiffening(w)
    f.counters[7] = 0
    if g is not None:
        note_struck(w, g, t)
    if not drives_are_rows(z):
        foresee_spin(m, s.qvel, w, h, f.middle)
        for k in range(f.middle.shape[0]):
            if f.middle[k] != s.qvel[k]:
                f.counters[7] = 1
    bent = secant_drift(m, s, w, h, f)
    _evaluate(m, s, w, i, r, f, e, x, g, t, d, o, z)
    if drives_are_rows(z):  # the sweeping solvers' steps are the recipe's, as written
        return
    fast = _turns_fast_or_is_taut(m, s, w, i, r, f, e, x, t)
    if f.counters[7] == 2:  # where unstiffened bodies go is nowhere
        _evaluate(m, s, w, i, r, f, e, x, g, t, d, o, z)
    if not fast and not bent:
        return
    f.counters[7] = max(f.counters[7], 1)
    nearest = math.inf
    for _ in range(EVALUATIONS):
        change, most = misled(m, s, w, f)
        away = nearest < math.inf and (change > nearest or r.report[1] > UNSOLVED)
        if away:
            go_back(f)
        elif change <= SETTLED * most:
            break
        else:
            go_midway(m, s, w, f)
        secant_drift(m, s, w, h, f)
        _evaluate(m, s, w, i, r, f, e, x, g, t, d, o, z)
        if away:
            break
        nearest = change


@njit
def _turns_fast_or_is_taut(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, t: Any) -> bool:
    """Whether bodies turn too fast for one evaluation; taut ones are stiffened, and f.counters[7] is then 2."""
    h = i.time_step[0]
    if r.number[0] > 0 or f.counters[5] == 0 or _touches(t):  # without rows they are there
        for k in range(f.qacc.shape[0]):
            f.qacc[k] = (f.velocity[k] - s.qvel[k]) / h
        accelerations(m, s.qvel, f.qacc, w)
    turning, tautness = turning_and_tautness(m, w, h)
    fast: bool = turning > 0.0
    taut: bool = tautness > 0.0
    if e is not None:
        clear_loop_forces(x)
        note_loop_forces(r, e, x, 1.0 / h)
        taut = taut or loops_pull(m, w, h, e, x)
    if taut and stiffen(m, s.qvel, w, h, f, e, x):
        f.counters[7] = 2
    return fast


@njit
def _evaluate(
    m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, g: Any, t: Any, d: Any, o: Any, z: Any
) -> None:
    """f.next and f.velocity with bias at f.middle, without rows where that holds."""
    for k in range(f.velocity.shape[0]):
        f.stiffness[k] = i.drive_stiffness[k]
        f.damping[k] = i.drive_damping[k]
        r.implicit[k] = 1 if f.stiffness[k] + f.damping[k] > 0.0 else 0
    r.number[0] = 0
    r.number[1] = 0
    r.report[0] = 0.0
    r.report[1] = 0.0
    if f.counters[5] == 1 and not _touches(t) and not _springs_are_rows(x):
        free_step(m, s, w, i, r, f, x)
        mark(z[4], SYSTEM)
        if _holds(m, s, i, f, e, x) and not _clamped(m, s, i, f, e, x):
            return
    for k in range(f.velocity.shape[0]):
        if drives_are_rows(z) or i.drive_limit[k] < math.inf:
            r.implicit[k] = 0
    bare_system(m, s.qpos, f.middle, w, i, f, e, x, z[2], z[3])
    if g is not None:
        find_drifts(m, w, i, g, t)
    if d is not None:
        loosen(d, o)
        for k in range(f.velocity.shape[0]):
            f.velocity[k] = s.qvel[k] + i.time_step[0] * w.drift[k]
        add_link_damping(m, w, i.time_step[0], d, o)
        link_damping_forces(m, f.velocity, w, d, o)
    rounds = 1 if d is None else ROUNDS
    for _ in range(rounds):
        _solve_in_bounds(m, s, w, i, r, f, e, x, g, t, d, o, z)
        if d is not None and not aim_bounds(m, s, w, i, f, d, o):
            break
    if d is not None:
        note_excess(m, w, r, f, d, o)


@inlined
def _springs_are_rows(x: Any) -> bool:
    """Whether tendons' springs are too fast for this step to be explicit."""
    if x is not None:
        rows: bool = x.tendon_by_row[0] == 1.0
        return rows
    return False


@inlined
def _touches(t: Any) -> bool:
    """Whether there are contacts, near or far."""
    if t is not None:
        touches: bool = t.number[0] > 0
        return touches
    return False


@njit
def _solve_in_bounds(
    m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, g: Any, t: Any, d: Any, o: Any, z: Any
) -> None:
    """The velocities at the end of the step, with actuators within their bounds and loops closed."""
    most = 1
    if e is not None:
        most += 2 * (f.velocity.shape[0] + e.actuator_target.shape[0])
    for _ in range(most):  # every round takes a guess back or makes an actuator explicit; one or two are the rule
        _solve_with_rows(m, s, w, i, r, f, e, x, g, t, d, o, z)
        if not _clamped(m, s, i, f, e, x):
            break
    if e is not None and (has_hard_loops(e) or has_hard_equalities(e)) and not drives_are_rows(z):
        _close_loops(m, s, w, i, r, f, e, x, z)
    if g is not None and not drives_are_rows(z):
        _tame_contacts(m, s, w, i, r, f, g, t, z)


@njit
def _tame_contacts(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, g: Any, t: Any, z: Any) -> None:
    """Solve again where impacts follow each other, and while contacts make energy, each time with less of a bounce."""
    if pass_on_blows(s, i, r, t):
        for _ in range(_TAMINGS):
            reduce_system(m, w, f, z[2], z[3])
            factorise_system(m, w, z[2], z[3])
            several = take_blows(m, s, w, i, r, f, t, z[2], z[3])
            reduce_system(m, w, f, z[2], z[3])
            if not several:
                break
            solve_again(m, w, r, f, z[0], z[2], z[3])
            _found(m, w, i, f)
            mark(z[4], SOLVER)
            if not weaken(s, r, f, g, t):
                break
    for _ in range(_TAMINGS):
        if not tame(m, s, w, i, r, f, g, t):
            break
        solve_again(m, w, r, f, z[0], z[2], z[3])
        _found(m, w, i, f)
        mark(z[4], SOLVER)


@njit
def _rest(m: Any, s: Any, w: Any, f: Any) -> None:
    """Of a robot asleep: forces that balance, out of those of a step from rest, of which the remainder is passive."""
    f.counters[6] = 1
    f.counters[7] = 0
    for n in range(s.impulse.shape[0]):
        s.impulse[n] = 0.0
    for k in range(f.qacc.shape[0]):
        f.qacc[k] = 0.0
    inverse_dynamics(m, s.qvel, f.qacc, w, f.force)
    for k in range(f.force.shape[0]):
        f.force[k] -= f.applied[k] + f.drive[k] + f.passive[k] + f.coupling[k]
        f.force[k] -= f.limit[k] + f.loop[k] + f.tendon[k] + f.contact[k]
    reduce_vector(m, f.force, w, f.free)
    for a in range(f.free.shape[0]):
        f.passive[m.independent_dof[a]] += f.free[a]


@inlined
def drives_are_rows(z: Any) -> bool:
    """Whether the solver wants every drive as a row, as the PhysX guide has them."""
    return z[1] is not None


@njit
def _is_free(m: Any, i: Any, rows: Any) -> bool:
    """True when a step needs no matrix unless a limit is met: no couplings, no friction, drives all in M̂."""
    if m.coupling_follower.shape[0] + m.row_follower.shape[0] > 0:
        return False
    for k in range(m.dof_body.shape[0]):
        if m.friction[k] > 0.0 or m.friction_coefficient[k] > 0.0 or i.drive_acceleration[k] == 1:
            return False
        if rows and i.drive_stiffness[k] + i.drive_damping[k] > 0.0:
            return False
    return True


@njit
def free_step(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, x: Any) -> None:
    """The step without rows, by the articulated-body algorithm in O(n)."""
    h = i.time_step[0]
    implicit_system(m, s, w, i, r, f, x)
    for k in range(f.diagonal.shape[0]):
        f.diagonal[k] += m.armature[k]
    articulated_dynamics(m, f.middle, f.force, f.diagonal, w, f.qacc)
    for k in range(f.qacc.shape[0]):
        f.velocity[k] = s.qvel[k] + h * f.qacc[k]
        f.next[k] = f.velocity[k]


@njit
def _holds(m: Any, s: Any, i: Any, f: Any, e: Any, x: Any) -> bool:
    """True when the velocities found break no limit of a joint, a drive or a tendon."""
    if not limits_hold(m, s, i, f):
        return False
    for k in range(f.velocity.shape[0]):
        if f.stiffness[k] + f.damping[k] > 0.0:
            force = drive_force(i, f, f.counters[4], k, driven_at(s, i, f, k), f.velocity[k])
            if abs(force) > i.drive_limit[k] * (1.0 + 1e-12):
                return False
    if e is not None:
        return tendons_hold(i, e, x, f)
    return True


@njit
def _clamped(m: Any, s: Any, i: Any, f: Any, e: Any, x: Any) -> bool:
    """Actuators beyond their bounds leave M̂ and the rows. True when there are any."""
    if e is not None:
        return clamp_actuators(m, s, i, e, x, f)
    return False


@njit
def bare_system(m: Any, q: Any, v: Any, w: Any, i: Any, f: Any, e: Any, x: Any, p: Any, d: Any) -> None:
    """Bias, M, and what is defined on the bare M: acceleration drives' gains (scaled in place), soft rows' r.

    With the scratch p of propagation or d of direct there is no M.
    """
    coupled_bias(m, v, w)
    composites(m, w)
    if f.counters[7] == 2:
        add_stiffened_bias(m, w, w.bias, f.force)
        stiffen_composites(m, w)
    if p is None and d is None:
        mass_matrix(m, w)
    else:
        motion_columns(m, w)
    needed = _has_springs(m)
    if e is not None and has_sprung_tendons(e):
        needed = True
    for k in range(f.diagonal.shape[0]):
        f.diagonal[k] = 0.0
        if i.drive_acceleration[k] == 1:
            needed = True
    if not needed:
        return
    reduce_system(m, w, f, p, d)
    factorise_system(m, w, p, d)
    for c in range(m.row_follower.shape[0]):
        if m.row_impedance[c, 0] >= 0.0:
            continue
        leader = m.row_leader[c]
        _, slope, _ = coupling_slope(m, c, coordinate(m, q, leader) if leader >= 0 else 0.0)
        f.effective_coupling[c] = _effective(m, w, m.row_follower[c], leader, slope, p, d)
    if e is not None and has_sprung_tendons(e):
        if p is not None or d is not None:  # these have no M of their own
            mass_matrix(m, w)
            reduce_matrix(m, w, f.diagonal)
            factorise(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run)
        sprung_mobilities(m, w, e, x)
    for k in range(f.diagonal.shape[0]):
        if i.drive_acceleration[k] == 1:
            mobility = _effective(m, w, k, -1, 0.0, p, d)
            inertia = 1.0 / mobility if mobility > 0.0 else 0.0  # of a dof that nothing moves: no force
            f.stiffness[k] *= inertia
            f.damping[k] *= inertia


@njit
def _has_springs(m: Any) -> bool:
    """True when a coupling row is weighed by J M⁻¹ Jᵀ as it is: not by the file's pose, as those with solimp are."""
    for c in range(m.row_follower.shape[0]):
        if m.row_impedance[c, 0] < 0.0:
            return True
    return False


@njit
def reduce_system(m: Any, w: Any, f: Any, p: Any, d: Any) -> None:
    """M̂ = M + f.diagonal, reduced to the independent dofs, in w.factor or by its parts."""
    if p is not None:
        note_diagonal(m, w, f.diagonal, p)
    elif d is not None:
        note_diagonal(m, w, f.diagonal, d)
    else:
        reduce_matrix(m, w, f.diagonal)


@njit
def factorise_system(m: Any, w: Any, p: Any, d: Any) -> None:
    """That matrix alone, without rows."""
    if p is not None:
        note_couplings(m, w, p)
        factorise_tree(m, w, p)
    elif d is not None:
        note_couplings(m, w, d)
        factorise_graph(m, w, d)
    else:
        factorise(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run)


@njit
def _effective(m: Any, w: Any, k: Any, leader: Any, slope: Any, p: Any, d: Any) -> Any:
    """J M⁻¹ Jᵀ for J = e_k - slope e_leader (no leader: -1), with the bare M factorised."""
    x = w.reduced
    for a in range(x.shape[0]):
        x[a] = 0.0
    a = m.dof_independent[k]
    b = m.dof_independent[leader] if leader >= 0 else -1
    if a >= 0:
        x[a] += w.gain[k]
    if b >= 0:
        x[b] -= slope * w.gain[leader]
    if p is not None:
        solve_tree(m, w, p, x)
    elif d is not None:
        solve_graph(m, w, d, x)
    else:
        solve(w.factor, w.inverse_pivot, m.independent_parent, m.independent_run, x)
    value = 0.0
    if a >= 0:
        value += w.gain[k] * x[a]
    if b >= 0:
        value -= slope * w.gain[leader] * x[b]
    return value


@njit
def _solve_with_rows(
    m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, g: Any, t: Any, d: Any, o: Any, z: Any
) -> None:
    """Velocities at the end of the step: f.next (nu,), f.velocity (nv,)."""
    h = i.time_step[0]
    implicit_system(m, s, w, i, r, f, x)
    for k in range(f.force.shape[0]):
        f.force[k] -= w.bias[k] + f.diagonal[k] * w.drift[k]
        if d is not None:
            f.force[k] += o.force[k]
    reduce_system(m, w, f, z[2], z[3])
    mark(z[4], SYSTEM)
    reduce_vector(m, f.force, w, f.free)
    for a in range(f.free.shape[0]):
        f.free[a] *= h
        f.next[a] = s.qvel[m.independent_dof[a]]
    build(m, s, w, i, r, f, e, x, g, t, d, o)
    mark(z[4], ROWS)
    solve_rows(m, w, i, r, f, z[0], z[1], z[2], z[3])
    _found(m, w, i, f)
    mark(z[4], SOLVER)


@njit
def _close_loops(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, z: Any) -> None:
    """Solve once more, hard loops and tendon equalities aimed by where the velocities found lead.

    What bends is then right to third order; where a step turns so far that this is too little, again, as long as that
    brings them nearer. What no aim brings nearer (a row that others hold, one too many) would pull without end: it is
    taken back, and all aims where rows that are aimed contradict each other, or nearly: an aim mends what is of second
    order in the step, and to do so turns no velocity into a much larger one.
    """
    if r.report[1] > UNSOLVED:
        return
    before = math.inf
    for n in range(r.number[1]):
        r.unaimed[n] = r.bias[n]
    most = _FASTER * _fastest(f)
    for aims in range(_AIMS):
        miss = _find_misses(m, s, w, i, r, f, e, x)
        if aims > 0 and miss <= _CLOSED:
            break
        share = 1.0 if miss <= _NEARER * before else -float(aims)
        for n in range(r.number[1]):
            r.bias[n] += share * r.miss[n] / i.time_step[0]
        solve_again(m, w, r, f, z[0], z[2], z[3])
        absurd = r.report[1] > UNSOLVED or _fastest(f) > most
        if absurd:
            _take_aims_back(r)
            solve_again(m, w, r, f, z[0], z[2], z[3])
        _found(m, w, i, f)
        mark(z[4], SOLVER)
        if absurd or share < 0.0 or miss <= _MISSED:
            break
        before = miss
    if relax_loops(i, r, e):
        solve_again(m, w, r, f, z[0], z[2], z[3])
        if tighten_loops(i, r):
            solve_again(m, w, r, f, z[0], z[2], z[3])
        _found(m, w, i, f)
        mark(z[4], SOLVER)


@inlined
def _fastest(f: Any) -> Any:
    """The largest velocity found."""
    fastest = 0.0
    for a in range(f.next.shape[0]):
        fastest = max(fastest, abs(f.next[a]))
    return fastest


@njit
def _take_aims_back(r: Any) -> None:
    """Biases as before all aims; impulses that the aims called for are forgotten."""
    for n in range(r.number[1]):
        if r.bias[n] != r.unaimed[n]:
            r.bias[n] = r.unaimed[n]
            r.impulse[n] = 0.0


@njit
def _find_misses(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any) -> Any:
    """r.miss of all rows but contacts' where f.velocity leads, and the largest; w and x are left as they are."""
    for n in range(r.number[1]):
        r.miss[n] = 0.0
    for k in range(f.tangent.shape[0]):
        f.tangent[k] = w.drift[k]
    for n in range(f.stage_qpos.shape[0]):
        f.stage_qpos[n] = s.qpos[n]
    move(m, f.stage_qpos, f.velocity, i.time_step[0])
    expand(m, f.stage_qpos, f.stage_qvel, w)
    kinematics(m, f.stage_qpos, w)
    worst = find_loop_misses(m, w, r, e, x)
    if e.tendon_row_follower.shape[0] > 0:
        tendon_paths(m, f.stage_qpos, f.stage_qvel, w, e, x)
        worst = max(worst, find_tendon_misses(i, r, e, x))
    expand(m, s.qpos, s.qvel, w)
    kinematics(m, s.qpos, w)
    for k in range(f.tangent.shape[0]):
        w.drift[k] = f.tangent[k]
    if e.tendon_row_follower.shape[0] > 0:
        tendon_paths(m, s.qpos, s.qvel, w, e, x)
    return worst


@njit
def _found(m: Any, w: Any, i: Any, f: Any) -> None:
    """f.velocity (nv,) of the solver's f.next."""
    expand_velocity(m, f.next, w, f.velocity)
    for k in range(f.velocity.shape[0]):
        f.velocity[k] += i.time_step[0] * w.drift[k]


@njit
def solve_rows(m: Any, w: Any, i: Any, r: Any, f: Any, y: Any, g: Any, p: Any, d: Any) -> None:
    """Impulses of the rows and what they make of f.next (nu,), by the solver whose scratch is there; see `newton`."""
    force = f.free
    u = f.next
    if y is not None:
        if p is None and d is None:
            run_newton(y, 0)
        else:
            newton(m, w, i, r, force, u, y, p, d)
            _solve_with_mass_matrix(m, w, r, f, y)
    if g is not None:
        if i.solver[0] == PGS:
            pgs(m, w, i, r, force, u, g)
        elif i.solver[0] == TGS:
            tgs(m, w, i, r, force, u, g)
        elif i.solver[0] == BLOCK_GS:
            block_gs(m, w, i, r, force, u, g)


@njit
def solve_again(m: Any, w: Any, r: Any, f: Any, y: Any, p: Any, d: Any) -> None:
    """Go on with another bias; see `newton_again`."""
    if y is not None:
        if p is None and d is None:
            run_newton(y, 1)
        else:
            newton_again(m, w, r, f.free, f.next, y, p, d)
            _solve_with_mass_matrix(m, w, r, f, y)


@njit
def _solve_with_mass_matrix(m: Any, w: Any, r: Any, f: Any, y: Any) -> None:
    """What propagation and direct leave of contacts: convex steps do not bring all of them together, and the rest of
    newton needs M̂."""
    if r.number[0] == r.number[1] or r.report[1] <= UNSOLVED:
        return
    for a in range(f.next.shape[0]):
        f.next[a] -= y.change[a]
    for n in range(r.number[0]):
        r.impulse[n] = y.first[n]
    mass_matrix(m, w)
    reduce_matrix(m, w, f.diagonal)
    run_newton(y, 0)


@njit
def _collect_forces(
    m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, g: Any, t: Any, d: Any, o: Any
) -> None:
    """Joint forces by source and qacc, from the velocities found."""
    h = i.time_step[0]
    passive_forces(m, s, i, f)
    if d is not None:
        link_damping_forces(m, f.velocity, w, d, o)
        velocities(m, s.qvel, w)
    for k in range(f.velocity.shape[0]):
        v = f.velocity[k]
        f.drive[k] = 0.0
        f.limit[k] = 0.0
        f.coupling[k] = 0.0
        f.loop[k] = 0.0
        f.tendon[k] = 0.0
        f.contact[k] = 0.0
        q = felt_at(m, s, i, f, k)
        if r.implicit[k]:
            f.drive[k] = drive_force(i, f, f.counters[4], k, driven_at(s, i, f, k), v)
        if x is not None:
            f.drive[k] += actuator_force(x, k, q, v)
            f.passive[k] += x.passive[k]
            f.tendon[k] = x.tendon[k]
        if d is not None:
            f.passive[k] += o.force[k]
        f.qacc[k] = (v - s.qvel[k]) / h
    joint_forces(r, f, 1.0 / h)
    if f.counters[7] == 2:
        book_midpoint(m, s.qvel, w, f)
    elif f.counters[7] == 1:  # booked where it is recorded
        velocities(m, s.qvel, w)
    if e is not None:
        clear_loop_forces(x)
        note_loop_forces(r, e, x, 1.0 / h)
        note_tendon_forces(r, e, x, 1.0 / h, False)
    if t is not None:
        note_contact_forces(r, f, g, t, 1.0 / h)


@njit
def _finish_euler(m: Any, s: Any, w: Any, i: Any, r: Any, f: Any, e: Any, x: Any, g: Any, t: Any, c: Any) -> None:
    """The state at the end of the step."""
    _hand_on(s, r, g, t)
    count_limits(r, f)
    note_load(m, s, w, f)
    for a in range(f.next.shape[0]):
        s.qvel[m.independent_dof[a]] = f.next[a]
    if c is None:
        _move_on(m, s, w, i, f, t, s.qvel)
    else:
        _move_on(m, s, w, i, f, t, c.mean if i.solver[0] == TGS and r.number[0] > 0 else s.qvel)
    settle(m, s, w, f)
    if x is not None:
        for n in range(s.activation.shape[0]):
            x.start_activation[n] = s.activation[n]
    if e is not None:
        advance_activations(e, x, i.time_step[0], s.activation)
    if i.sleep[0] > 0.0:
        note_commands(s, i, f)
        count_still(m, s, w, i, f, x)
    if e is not None:
        note_tendon_errors(m, s, w, f, e, x)  # moves w on to where the step ends


@njit
def _move_on(m: Any, s: Any, w: Any, i: Any, f: Any, t: Any, v: Any) -> None:
    """Positions at the end of the step, or where trees stop if passages are looked for."""
    if t is not None and t.advancement[0] != 0:
        for k in range(v.shape[0]):
            f.tangent[k] = v[k]
        run_entry(t.advancement)
        kinematics(m, s.qpos, w)
        velocities(m, s.qvel, w)
        move(m, s.qpos, f.tangent, i.time_step[0])
    else:
        move(m, s.qpos, v, i.time_step[0])


@njit
def _hand_on(s: Any, r: Any, g: Any, t: Any) -> None:
    """s.impulse, s.contact: where the solver starts in the next step.

    What rows that contradict each other do to their impulses is not handed on: it would grow from step to step.
    """
    agreed = r.report[1] <= UNSOLVED
    for n in range(s.impulse.shape[0]):
        s.impulse[n] = r.impulse[n] if agreed and n < r.number[1] else 0.0
    if t is not None:
        remember(s, r, g, t, agreed)


@njit
def note_load(m: Any, s: Any, w: Any, f: Any) -> None:
    """s.load of this step, where friction depends on it: |F| (linear dofs) or √(|F|² + |T|²) (angular) in the joint."""
    wanted = False
    for k in range(s.load.shape[0]):
        if m.friction_coefficient[k] > 0.0:
            wanted = True
    if not wanted:
        return
    inverse_dynamics(m, s.qvel, f.qacc, w, f.force)
    for k in range(s.load.shape[0]):
        body = m.dof_body[k]
        F = w.force[body]
        square = F[0] * F[0] + F[1] * F[1] + F[2] * F[2]
        if not m.dof_linear[k]:
            T = w.torque[body]
            square += T[0] * T[0] + T[1] * T[1] + T[2] * T[2]
        s.load[k] = math.sqrt(square)


@njit
def settle(m: Any, s: Any, w: Any, f: Any) -> None:
    """Followers from their leaders, and what is left of the couplings."""
    expand(m, s.qpos, s.qvel, w)
    for c in range(m.row_follower.shape[0]):
        leader = m.row_leader[c]
        value, _, _ = coupling_slope(m, c, s.qpos[m.dof_coord[leader]] if leader >= 0 else 0.0)
        f.coupling_error[0] = max(f.coupling_error[0], abs(s.qpos[m.dof_coord[m.row_follower[c]]] - value))
