"""The step, and the loop over a block of steps.

Semi-implicit Euler: kinematics → M̂ and bias → constraint rows → solver → positions. A robot that nothing but limits
bounds takes the step without rows first, in O(n), and is done when it breaks none.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from artsim.sim.actuation import (
    actuator_force,
    applied_forces,
    control_row,
    coordinate,
    drive_force,
    driven_at,
    felt_at,
    find_places,
    implicit_system,
    is_beyond_drive,
    passive_forces,
    weigh_springs,
)
from artsim.sim.clock import mark, start
from artsim.sim.constraints.actuator import has_actuator_rows
from artsim.sim.constraints.contact import limit_energy, may_bounce, note_contact_forces
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


class SolverWork(NamedTuple):
    """The scratch of the solvers, None of what the chosen one does not use, and the clock, None unless phases are
    timed."""

    solver: Any  # newton's
    sweeps: Any
    tree: Any  # propagation's
    graph: Any  # direct's
    clock: Any


@njit
def simulate(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, rules: Any, solver: Any) -> None:
    """Take block.plan[0] steps from the state, recording every block.plan[1]-th, or stop early with the reason in
    step.counters[2].

    None are: `equipment` of a robot that has none, `contact_model` of a run without contact, `rules` where links have
    no damping and no limits, each with its data; of the solvers' scratch what the chosen one does not use (newton
    `solver`, the sweeping ones `sweeps`, propagation `solver` and `tree`, direct `solver` and `graph`); `clock` unless
    the phases of the step are timed. What asks for them is then not compiled.
    """
    model, state, data = robot.model, robot.state, robot.data
    step, block = run.step, run.block
    work = SolverWork(solver.newton, solver.sweeps, solver.tree, solver.graph, run.clock)
    start(run.clock)
    begin(robot, run, equipment, rules, work)
    if contact is not None:
        block.contacts[0] = 0
        place_static(model, data, contact)
    for _ in range(block.plan[0]):
        if contact is not None and is_full(run, contact):
            break
        mark(run.clock, INTEGRATION)
        if step.counters[0] % EVERY == 0:
            watch_energy(robot, step, equipment, contact)
        choose_controls(run)
        asleep = is_asleep(state, run)
        if not asleep or step.counters[6] == 0:
            _euler(robot, run, rows, equipment, contact, rules, work)
            if asleep:
                _rest(robot, step)
            elif step.counters[2] != 0 or not is_finite(model, step):
                break
        if equipment is not None and equipment.data.feeler[0] != 0:
            run_entry(equipment.data.feeler)
        if step.counters[0] % block.plan[1] == 0:
            mark(run.clock, INTEGRATION)
            if step.counters[7] == 1:
                book_midpoint(model, state.qvel, data, step)
            record(robot, run, rows, equipment, contact)
            mark(run.clock, RECORDING)
        if not asleep:
            note_work(run, equipment, state.qvel, step.velocity)
            _finish_euler(robot, run, rows, equipment, contact, solver.sweeps)
        if equipment is not None and equipment.data.keeper[0] != 0:
            run_entry(equipment.data.keeper)
        step.counters[0] += 1
    step.energy[1] = total_energy(robot, step, equipment)
    if equipment is not None:
        note_loop_gaps(model, data, step, equipment)
    mark(run.clock, INTEGRATION)


@njit
def begin(robot: Any, run: Any, equipment: Any, rules: Any, work: Any) -> None:
    """What a block of steps starts with: followers in place; before the first step energy and load."""
    model, state = robot.model, robot.state
    step = run.step
    step.counters[1] = 0
    for c in range(model.row_follower.shape[0]):
        if model.row_impedance[c, 0] >= 0.0 and step.effective_coupling[c] == 0.0:
            step.effective_coupling[c] = model.row_mobility[c]
    if equipment is not None:
        calibrate(robot, equipment, step)
    else:
        weigh_springs(model, run, equipment)
    expand(model, state.qpos, state.qvel, robot.data)
    step.counters[5] = 1 if _is_free(model, run.inputs, drives_are_rows(work)) else 0
    if equipment is not None and (needs_rows(equipment) or has_actuator_rows(equipment)):
        step.counters[5] = 0
    if rules is not None:
        step.counters[5] = 0
    if step.counters[0] == 0:
        step.energy[0] = total_energy(robot, step, equipment)
        for k in range(step.qacc.shape[0]):
            step.qacc[k] = 0.0
        for k in range(step.watch.shape[0]):
            step.watch[k] = 0.0
        note_load(robot, step)  # what the joints carry before anything moves: friction acts from the first step


@njit
def total_energy(robot: Any, step: Any, equipment: Any) -> Any:
    """Kinetic plus potential energy at the state [J]."""
    moving, stored = energies(robot, step, equipment)
    return moving + stored


@njit
def choose_controls(run: Any) -> None:
    """step.counters[4]: the control row that acts on this step."""
    step = run.step
    step.counters[4] = control_row(run.inputs.start_step, step.counters[4], step.counters[0])


@njit
def is_finite(model: Any, step: Any) -> bool:
    """False when a velocity at the end of the step is not finite; then the reason and its dof are in step.counters."""
    for a in range(step.next.shape[0]):
        if not math.isfinite(step.next[a]):
            step.counters[2] = NON_FINITE
            step.counters[3] = model.independent_dof[a]
            return False
    return True


# ------------------------------------------------------------------ semi-implicit Euler


@njit
def _euler(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, rules: Any, work: Any) -> None:
    """step.next = u at the end of the step, and the forces that lead there."""
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    kinematics(model, state.qpos, data)
    world_inertia(model, data)
    applied_forces(robot, state.qpos, state.qvel, run, equipment)
    find_places(model, state.qpos, run, step.counters[4])
    if equipment is not None:
        equipment_forces(robot, state.qpos, state.qvel, run, equipment, state.activation, 0)
    mark(work.clock, FORCES)
    if contact is not None:
        if not find_contacts(robot, run.inputs, contact):
            step.counters[2] = CROWDED
            return
        mark(work.clock, BROAD_PHASE)
    searches = 1
    if contact is not None:
        searches = _SEARCHES_OF_BLOWS if may_bounce(contact) else _SEARCHES
    for search in range(searches):
        _velocities_found(robot, run, rows, equipment, contact, rules, work)
        if contact is None or search == searches - 1 or not outrun(model, data, run, contact):
            break
        velocities(model, state.qvel, data)
        count = contact.data.number[0]
        note_found(contact.data.before, contact)
        if not detected(robot, contact):
            step.counters[2] = CROWDED
            return
        mark(work.clock, BROAD_PHASE)
        if are_as_before(contact.data.before, contact, count):
            break
    if contact is not None:
        velocities(model, state.qvel, data)
    step.worst_residual[0] = max(step.worst_residual[0], rows.report[1])
    step.yielded[UNSOLVED_STEPS] += 1.0 if rows.report[1] > TOLD else 0.0
    _collect_forces(robot, run, rows, equipment, contact, rules)


@njit
def _velocities_found(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, rules: Any, work: Any) -> None:
    """step.next and step.velocity at the end of the step with the contacts found, evaluated as often as it needs."""
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    h = run.inputs.time_step[0]
    for k in range(step.middle.shape[0]):
        step.middle[k] = state.qvel[k]
    for a in range(step.next.shape[0]):
        step.next[a] = state.qvel[model.independent_dof[a]]
    if step.counters[7] == 2:
        clear_stiffening(data)
    step.counters[7] = 0
    if contact is not None:
        note_struck(data, contact)
    if not drives_are_rows(work):
        foresee_spin(model, state.qvel, data, h, step.middle)
        for k in range(step.middle.shape[0]):
            if step.middle[k] != state.qvel[k]:
                step.counters[7] = 1
    bent = secant_drift(robot, h, step)
    _evaluate(robot, run, rows, equipment, contact, rules, work)
    if drives_are_rows(work):  # the sweeping solvers' steps are the recipe's, as written
        return
    fast = _turns_fast_or_is_taut(robot, run, rows, equipment, contact)
    if step.counters[7] == 2:  # where unstiffened bodies go is nowhere
        _evaluate(robot, run, rows, equipment, contact, rules, work)
    if not fast and not bent:
        return
    step.counters[7] = max(step.counters[7], 1)
    nearest = math.inf
    for _ in range(EVALUATIONS):
        change, most = misled(robot, step)
        away = nearest < math.inf and (change > nearest or rows.report[1] > UNSOLVED)
        if away:
            go_back(step)
        elif change <= SETTLED * most:
            break
        else:
            go_midway(robot, step)
        secant_drift(robot, h, step)
        _evaluate(robot, run, rows, equipment, contact, rules, work)
        if away:
            break
        nearest = change


@njit
def _turns_fast_or_is_taut(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any) -> bool:
    """Whether bodies turn too fast for one evaluation; taut ones are stiffened, and step.counters[7] is then 2."""
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    h = run.inputs.time_step[0]
    if rows.number[0] > 0 or step.counters[5] == 0 or _touches(contact):  # without rows they are there
        for k in range(step.qacc.shape[0]):
            step.qacc[k] = (step.velocity[k] - state.qvel[k]) / h
        accelerations(model, state.qvel, step.qacc, data)
    turning, tautness = turning_and_tautness(model, data, h)
    fast: bool = turning > 0.0
    taut: bool = tautness > 0.0
    if equipment is not None:
        clear_loop_forces(equipment)
        note_loop_forces(rows, equipment, 1.0 / h)
        taut = taut or loops_pull(model, data, h, equipment)
    if taut and stiffen(model, state.qvel, data, h, step, equipment):
        step.counters[7] = 2
    return fast


@njit
def _evaluate(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, rules: Any, work: Any) -> None:
    """step.next and step.velocity with bias at step.middle, without rows where that holds."""
    model, state, data = robot.model, robot.state, robot.data
    inputs, step = run.inputs, run.step
    for k in range(step.velocity.shape[0]):
        step.stiffness[k] = inputs.drive_stiffness[k]
        step.damping[k] = inputs.drive_damping[k]
        rows.implicit[k] = 1 if step.stiffness[k] + step.damping[k] > 0.0 else 0
    rows.number[0] = 0
    rows.number[1] = 0
    rows.report[0] = 0.0
    rows.report[1] = 0.0
    if step.counters[5] == 1 and not _touches(contact) and not _springs_are_rows(equipment):
        free_step(robot, run, rows, equipment)
        mark(work.clock, SYSTEM)
        if _holds(robot, run, equipment) and not _clamped(robot, run, equipment):
            return
    for k in range(step.velocity.shape[0]):
        if drives_are_rows(work) or inputs.drive_limit[k] < math.inf:
            rows.implicit[k] = 0
    bare_system(model, state.qpos, step.middle, data, run, equipment, work)
    if contact is not None:
        find_drifts(model, data, inputs, contact)
    if rules is not None:
        loosen(rules)
        for k in range(step.velocity.shape[0]):
            step.velocity[k] = state.qvel[k] + inputs.time_step[0] * data.drift[k]
        add_link_damping(model, data, inputs.time_step[0], rules)
        link_damping_forces(model, step.velocity, data, rules)
    rounds = 1 if rules is None else ROUNDS
    for _ in range(rounds):
        _solve_in_bounds(robot, run, rows, equipment, contact, rules, work)
        if rules is not None and not aim_bounds(robot, run, rules):
            break
    if rules is not None:
        note_excess(model, data, rows, step, rules)


@inlined
def _springs_are_rows(equipment: Any) -> bool:
    """Whether tendons' springs are too fast for this step to be explicit."""
    if equipment is not None:
        rows: bool = equipment.data.tendon_by_row[0] == 1.0
        return rows
    return False


@inlined
def _touches(contact: Any) -> bool:
    """Whether there are contacts, near or far."""
    if contact is not None:
        touches: bool = contact.data.number[0] > 0
        return touches
    return False


@njit
def _solve_in_bounds(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, rules: Any, work: Any) -> None:
    """The velocities at the end of the step, with actuators within their bounds and loops closed."""
    most = 1
    if equipment is not None:
        most += 2 * (run.step.velocity.shape[0] + equipment.model.actuator_target.shape[0])
    for _ in range(most):  # every round takes a guess back or makes an actuator explicit; one or two are the rule
        _solve_with_rows(robot, run, rows, equipment, contact, rules, work)
        if not _clamped(robot, run, equipment):
            break
    if (
        equipment is not None
        and (has_hard_loops(equipment) or has_hard_equalities(equipment))
        and not drives_are_rows(work)
    ):
        _close_loops(robot, run, rows, equipment, work)
    if contact is not None and not drives_are_rows(work):
        _tame_contacts(robot, run, rows, contact, work)


@njit
def _tame_contacts(robot: Any, run: Any, rows: Any, contact: Any, work: Any) -> None:
    """Solve again where impacts follow each other, and while contacts make energy, each time with less of a bounce."""
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    if pass_on_blows(state, run.inputs, rows, contact):
        for _ in range(_TAMINGS):
            reduce_system(model, data, step, work)
            factorise_system(model, data, work)
            several = take_blows(robot, run, rows, contact, work)
            reduce_system(model, data, step, work)
            if not several:
                break
            solve_again(robot, rows, step, work)
            _found(model, data, run)
            mark(work.clock, SOLVER)
            if not weaken(state, rows, step, contact):
                break
    for _ in range(_TAMINGS):
        if not limit_energy(robot, run, rows, contact):
            break
        solve_again(robot, rows, step, work)
        _found(model, data, run)
        mark(work.clock, SOLVER)


@njit
def _rest(robot: Any, step: Any) -> None:
    """Of a robot asleep: forces that balance, out of those of a step from rest, of which the remainder is passive."""
    model, state, data = robot.model, robot.state, robot.data
    step.counters[6] = 1
    step.counters[7] = 0
    for n in range(state.impulse.shape[0]):
        state.impulse[n] = 0.0
    for k in range(step.qacc.shape[0]):
        step.qacc[k] = 0.0
    inverse_dynamics(model, state.qvel, step.qacc, data, step.force)
    for k in range(step.force.shape[0]):
        step.force[k] -= step.applied[k] + step.drive[k] + step.passive[k] + step.coupling[k]
        step.force[k] -= step.limit[k] + step.loop[k] + step.tendon[k] + step.contact[k]
    reduce_vector(model, step.force, data, step.free)
    for a in range(step.free.shape[0]):
        step.passive[model.independent_dof[a]] += step.free[a]


@inlined
def drives_are_rows(work: Any) -> bool:
    """Whether the solver wants every drive as a row, as the PhysX guide has them."""
    return work.sweeps is not None


@njit
def _is_free(model: Any, inputs: Any, rows: Any) -> bool:
    """True when a step needs no matrix unless a limit is met: no couplings, no friction, drives all in M̂."""
    if model.coupling_follower.shape[0] + model.row_follower.shape[0] > 0:
        return False
    for k in range(model.dof_body.shape[0]):
        if model.friction[k] > 0.0 or model.friction_coefficient[k] > 0.0 or inputs.drive_acceleration[k] == 1:
            return False
        if rows and inputs.drive_stiffness[k] + inputs.drive_damping[k] > 0.0:
            return False
    return True


@njit
def free_step(robot: Any, run: Any, rows: Any, equipment: Any) -> None:
    """The step without rows, by the articulated-body algorithm in O(n)."""
    model = robot.model
    step = run.step
    h = run.inputs.time_step[0]
    implicit_system(robot, run, rows, equipment)
    for k in range(step.diagonal.shape[0]):
        step.diagonal[k] += model.armature[k]
    articulated_dynamics(model, step.middle, step.force, step.diagonal, robot.data, step.qacc)
    for k in range(step.qacc.shape[0]):
        step.velocity[k] = robot.state.qvel[k] + h * step.qacc[k]
        step.next[k] = step.velocity[k]


@njit
def _holds(robot: Any, run: Any, equipment: Any) -> bool:
    """True when the velocities found break no limit of a joint, a drive or a tendon."""
    step = run.step
    if not limits_hold(robot, run):
        return False
    for k in range(step.velocity.shape[0]):
        driven = step.stiffness[k] + step.damping[k] > 0.0
        if driven and is_beyond_drive(robot.state, run, step.counters[4], k) > 0.0:
            return False
    if equipment is not None:
        return tendons_hold(run, equipment)
    return True


@njit
def _clamped(robot: Any, run: Any, equipment: Any) -> bool:
    """Actuators beyond their bounds leave M̂ and the rows. True when there are any."""
    if equipment is not None:
        return clamp_actuators(robot, run, equipment)
    return False


@njit
def bare_system(model: Any, q: Any, v: Any, data: Any, run: Any, equipment: Any, solver: Any) -> None:
    """Bias, M, and what is defined on the bare M: acceleration drives' gains (scaled in place), soft rows' r.

    With the scratch of propagation (tree) or direct (graph) there is no M.
    """
    inputs, step = run.inputs, run.step
    coupled_bias(model, v, data)
    composites(model, data)
    if step.counters[7] == 2:
        add_stiffened_bias(model, data, data.bias, step.force)
        stiffen_composites(model, data)
    if solver.tree is None and solver.graph is None:
        mass_matrix(model, data)
    else:
        motion_columns(model, data)
    needed = _has_springs(model)
    if equipment is not None and has_sprung_tendons(equipment):
        needed = True
    for k in range(step.diagonal.shape[0]):
        step.diagonal[k] = 0.0
        if inputs.drive_acceleration[k] == 1:
            needed = True
    if not needed:
        return
    reduce_system(model, data, step, solver)
    factorise_system(model, data, solver)
    for c in range(model.row_follower.shape[0]):
        if model.row_impedance[c, 0] >= 0.0:
            continue
        leader = model.row_leader[c]
        _, slope, _ = coupling_slope(model, c, coordinate(model, q, leader) if leader >= 0 else 0.0)
        step.effective_coupling[c] = _effective(model, data, model.row_follower[c], leader, slope, solver)
    if equipment is not None and has_sprung_tendons(equipment):
        if solver.tree is not None or solver.graph is not None:  # these have no M of their own
            mass_matrix(model, data)
            reduce_matrix(model, data, step.diagonal)
            factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)
        sprung_mobilities(model, data, equipment)
    for k in range(step.diagonal.shape[0]):
        if inputs.drive_acceleration[k] == 1:
            mobility = _effective(model, data, k, -1, 0.0, solver)
            inertia = 1.0 / mobility if mobility > 0.0 else 0.0  # of a dof that nothing moves: no force
            step.stiffness[k] *= inertia
            step.damping[k] *= inertia


@njit
def _has_springs(model: Any) -> bool:
    """True when a coupling row is weighed by J M⁻¹ Jᵀ as it is: not by the file's pose, as those with solimp are."""
    for c in range(model.row_follower.shape[0]):
        if model.row_impedance[c, 0] < 0.0:
            return True
    return False


@njit
def reduce_system(model: Any, data: Any, step: Any, solver: Any) -> None:
    """M̂ = M + step.diagonal, reduced to the independent dofs, in data.factor or by its parts."""
    if solver.tree is not None:
        note_diagonal(model, data, step.diagonal, solver.tree)
    elif solver.graph is not None:
        note_diagonal(model, data, step.diagonal, solver.graph)
    else:
        reduce_matrix(model, data, step.diagonal)


@njit
def factorise_system(model: Any, data: Any, solver: Any) -> None:
    """That matrix alone, without rows."""
    if solver.tree is not None:
        note_couplings(model, data, solver.tree)
        factorise_tree(model, data, solver.tree)
    elif solver.graph is not None:
        note_couplings(model, data, solver.graph)
        factorise_graph(model, data, solver.graph)
    else:
        factorise(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run)


@njit
def _effective(model: Any, data: Any, k: Any, leader: Any, slope: Any, solver: Any) -> Any:
    """J M⁻¹ Jᵀ for J = e_k - slope e_leader (no leader: -1), with the bare M factorised."""
    x = data.reduced
    for a in range(x.shape[0]):
        x[a] = 0.0
    a = model.dof_independent[k]
    b = model.dof_independent[leader] if leader >= 0 else -1
    if a >= 0:
        x[a] += data.gain[k]
    if b >= 0:
        x[b] -= slope * data.gain[leader]
    if solver.tree is not None:
        solve_tree(model, data, solver.tree, x)
    elif solver.graph is not None:
        solve_graph(model, data, solver.graph, x)
    else:
        solve(data.factor, data.inverse_pivot, model.independent_parent, model.independent_run, x)
    value = 0.0
    if a >= 0:
        value += data.gain[k] * x[a]
    if b >= 0:
        value -= slope * data.gain[leader] * x[b]
    return value


@njit
def _solve_with_rows(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, rules: Any, work: Any) -> None:
    """Velocities at the end of the step: step.next (nu,), step.velocity (nv,)."""
    model, data = robot.model, robot.data
    step = run.step
    h = run.inputs.time_step[0]
    implicit_system(robot, run, rows, equipment)
    for k in range(step.force.shape[0]):
        step.force[k] -= data.bias[k] + step.diagonal[k] * data.drift[k]
        if rules is not None:
            step.force[k] += rules.data.force[k]
    reduce_system(model, data, step, work)
    mark(work.clock, SYSTEM)
    reduce_vector(model, step.force, data, step.free)
    for a in range(step.free.shape[0]):
        step.free[a] *= h
        step.next[a] = robot.state.qvel[model.independent_dof[a]]
    build(robot, run, rows, equipment, contact, rules)
    mark(work.clock, ROWS)
    solve_rows(robot, run, rows, work)
    _found(model, data, run)
    mark(work.clock, SOLVER)


@njit
def _close_loops(robot: Any, run: Any, rows: Any, equipment: Any, work: Any) -> None:
    """Solve once more, hard loops and tendon equalities aimed by where the velocities found lead.

    What bends is then right to third order; where a step turns so far that this is too little, again, as long as that
    brings them nearer. What no aim brings nearer (a row that others hold, one too many) would pull without end: it is
    taken back, and all aims where rows that are aimed contradict each other, or nearly: an aim mends what is of second
    order in the step, and to do so turns no velocity into a much larger one.
    """
    model, data = robot.model, robot.data
    inputs, step = run.inputs, run.step
    if rows.report[1] > UNSOLVED:
        return
    before = math.inf
    for n in range(rows.number[1]):
        rows.unaimed[n] = rows.bias[n]
    most = _FASTER * _fastest(step)
    for aims in range(_AIMS):
        miss = _find_misses(robot, run, rows, equipment)
        if aims > 0 and miss <= _CLOSED:
            break
        share = 1.0 if miss <= _NEARER * before else -float(aims)
        for n in range(rows.number[1]):
            rows.bias[n] += share * rows.miss[n] / inputs.time_step[0]
        solve_again(robot, rows, step, work)
        absurd = rows.report[1] > UNSOLVED or _fastest(step) > most
        if absurd:
            _take_aims_back(rows)
            solve_again(robot, rows, step, work)
        _found(model, data, run)
        mark(work.clock, SOLVER)
        if absurd or share < 0.0 or miss <= _MISSED:
            break
        before = miss
    if relax_loops(inputs, rows, equipment):
        solve_again(robot, rows, step, work)
        if tighten_loops(inputs, rows):
            solve_again(robot, rows, step, work)
        _found(model, data, run)
        mark(work.clock, SOLVER)


@inlined
def _fastest(step: Any) -> Any:
    """The largest velocity found."""
    fastest = 0.0
    for a in range(step.next.shape[0]):
        fastest = max(fastest, abs(step.next[a]))
    return fastest


@njit
def _take_aims_back(rows: Any) -> None:
    """Biases as before all aims; impulses that the aims called for are forgotten."""
    for n in range(rows.number[1]):
        if rows.bias[n] != rows.unaimed[n]:
            rows.bias[n] = rows.unaimed[n]
            rows.impulse[n] = 0.0


@njit
def _find_misses(robot: Any, run: Any, rows: Any, equipment: Any) -> Any:
    """rows.miss of all rows but contacts' where step.velocity leads, and the largest; data and equipment_data stay as
    they are."""
    model, state, data = robot.model, robot.state, robot.data
    inputs, step = run.inputs, run.step
    for n in range(rows.number[1]):
        rows.miss[n] = 0.0
    for k in range(step.tangent.shape[0]):
        step.tangent[k] = data.drift[k]
    for n in range(step.stage_qpos.shape[0]):
        step.stage_qpos[n] = state.qpos[n]
    move(model, step.stage_qpos, step.velocity, inputs.time_step[0])
    expand(model, step.stage_qpos, step.stage_qvel, data)
    kinematics(model, step.stage_qpos, data)
    worst = find_loop_misses(model, data, rows, equipment)
    if equipment.model.tendon_row_follower.shape[0] > 0:
        tendon_paths(robot, step.stage_qpos, step.stage_qvel, equipment)
        worst = max(worst, find_tendon_misses(inputs, rows, equipment))
    expand(model, state.qpos, state.qvel, data)
    kinematics(model, state.qpos, data)
    for k in range(step.tangent.shape[0]):
        data.drift[k] = step.tangent[k]
    if equipment.model.tendon_row_follower.shape[0] > 0:
        tendon_paths(robot, state.qpos, state.qvel, equipment)
    return worst


@njit
def _found(model: Any, data: Any, run: Any) -> None:
    """step.velocity (nv,) of the solver's step.next."""
    step = run.step
    expand_velocity(model, step.next, data, step.velocity)
    for k in range(step.velocity.shape[0]):
        step.velocity[k] += run.inputs.time_step[0] * data.drift[k]


@njit
def solve_rows(robot: Any, run: Any, rows: Any, solver: Any) -> None:
    """Impulses of the rows and what they make of step.next (nu,), by the solver whose scratch is there; see
    `newton`."""
    model, data = robot.model, robot.data
    inputs, step = run.inputs, run.step
    work = solver.newton
    force = step.free
    u = step.next
    if solver.newton is not None:
        if solver.tree is None and solver.graph is None:
            run_newton(work, 0)
        else:
            newton(robot, inputs, rows, force, u, solver)
            _solve_with_mass_matrix(model, data, rows, step, work)
    if solver.sweeps is not None:
        if inputs.solver[0] == PGS:
            pgs(model, data, inputs, rows, force, u, solver.sweeps)
        elif inputs.solver[0] == TGS:
            tgs(model, data, inputs, rows, force, u, solver.sweeps)
        elif inputs.solver[0] == BLOCK_GS:
            block_gs(model, data, inputs, rows, force, u, solver.sweeps)


@njit
def solve_again(robot: Any, rows: Any, step: Any, solver: Any) -> None:
    """Go on with another bias; see `newton_again`."""
    work = solver.newton
    if solver.newton is not None:
        if solver.tree is None and solver.graph is None:
            run_newton(work, 1)
        else:
            newton_again(robot, rows, step.free, step.next, solver)
            _solve_with_mass_matrix(robot.model, robot.data, rows, step, work)


@njit
def _solve_with_mass_matrix(model: Any, data: Any, rows: Any, step: Any, work: Any) -> None:
    """What propagation and direct leave of contacts: convex steps do not bring all of them together, and the rest of
    newton needs M̂."""
    if rows.number[0] == rows.number[1] or rows.report[1] <= UNSOLVED:
        return
    for a in range(step.next.shape[0]):
        step.next[a] -= work.change[a]
    for n in range(rows.number[0]):
        rows.impulse[n] = work.first[n]
    mass_matrix(model, data)
    reduce_matrix(model, data, step.diagonal)
    run_newton(work, 0)


@njit
def _collect_forces(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, rules: Any) -> None:
    """Joint forces by source and qacc, from the velocities found."""
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    h = run.inputs.time_step[0]
    passive_forces(robot, run)
    if rules is not None:
        link_damping_forces(model, step.velocity, data, rules)
        velocities(model, state.qvel, data)
    for k in range(step.velocity.shape[0]):
        v = step.velocity[k]
        step.drive[k] = 0.0
        step.limit[k] = 0.0
        step.coupling[k] = 0.0
        step.loop[k] = 0.0
        step.tendon[k] = 0.0
        step.contact[k] = 0.0
        q = felt_at(robot, run, k)
        if rows.implicit[k]:
            step.drive[k] = drive_force(run, step.counters[4], k, driven_at(state, run, k), v)
        if equipment is not None:
            step.drive[k] += actuator_force(equipment, k, q, v)
            step.passive[k] += equipment.data.passive[k]
            step.tendon[k] = equipment.data.tendon[k]
        if rules is not None:
            step.passive[k] += rules.data.force[k]
        step.qacc[k] = (v - state.qvel[k]) / h
    joint_forces(rows, step, 1.0 / h)
    if step.counters[7] == 2:
        book_midpoint(model, state.qvel, data, step)
    elif step.counters[7] == 1:  # booked where it is recorded
        velocities(model, state.qvel, data)
    if equipment is not None:
        clear_loop_forces(equipment)
        note_loop_forces(rows, equipment, 1.0 / h)
        note_tendon_forces(rows, equipment, 1.0 / h, False)
    if contact is not None:
        note_contact_forces(rows, step, contact, 1.0 / h)


@njit
def _finish_euler(robot: Any, run: Any, rows: Any, equipment: Any, contact: Any, sweeps: Any) -> None:
    """The state at the end of the step."""
    state = robot.state
    inputs, step = run.inputs, run.step
    _hand_on(state, rows, contact)
    count_limits(rows, step)
    note_load(robot, step)
    for a in range(step.next.shape[0]):
        state.qvel[robot.model.independent_dof[a]] = step.next[a]
    if sweeps is None:
        _move_on(robot, run, contact, state.qvel)
    else:
        _move_on(robot, run, contact, sweeps.mean if inputs.solver[0] == TGS and rows.number[0] > 0 else state.qvel)
    settle(robot, step)
    if equipment is not None:
        for n in range(state.activation.shape[0]):
            equipment.data.start_activation[n] = state.activation[n]
    if equipment is not None:
        advance_activations(equipment, inputs.time_step[0], state.activation)
    if inputs.sleep[0] > 0.0:
        note_commands(state, run)
        count_still(robot, run, equipment)
    if equipment is not None:
        note_tendon_errors(robot, step, equipment)  # moves w on to where the step ends


@njit
def _move_on(robot: Any, run: Any, contact: Any, v: Any) -> None:
    """Positions at the end of the step, or where trees stop if passages are looked for."""
    model, state, data = robot.model, robot.state, robot.data
    inputs, step = run.inputs, run.step
    if contact is not None and contact.data.advancement[0] != 0:
        for k in range(v.shape[0]):
            step.tangent[k] = v[k]
        run_entry(contact.data.advancement)
        kinematics(model, state.qpos, data)
        velocities(model, state.qvel, data)
        move(model, state.qpos, step.tangent, inputs.time_step[0])
    else:
        move(model, state.qpos, v, inputs.time_step[0])


@njit
def _hand_on(state: Any, rows: Any, contact: Any) -> None:
    """state.impulse, state.contact: where the solver starts in the next step.

    What rows that contradict each other do to their impulses is not handed on: it would grow from step to step.
    """
    agreed = rows.report[1] <= UNSOLVED
    for n in range(state.impulse.shape[0]):
        state.impulse[n] = rows.impulse[n] if agreed and n < rows.number[1] else 0.0
    if contact is not None:
        remember(state, rows, contact, agreed)


@njit
def note_load(robot: Any, step: Any) -> None:
    """state.load of this step, where friction depends on it: |F| (linear dofs) or √(|F|² + |T|²) (angular) in the
    joint."""
    model, state, data = robot.model, robot.state, robot.data
    wanted = False
    for k in range(state.load.shape[0]):
        if model.friction_coefficient[k] > 0.0:
            wanted = True
    if not wanted:
        return
    inverse_dynamics(model, state.qvel, step.qacc, data, step.force)
    for k in range(state.load.shape[0]):
        body = model.dof_body[k]
        F = data.force[body]
        square = F[0] * F[0] + F[1] * F[1] + F[2] * F[2]
        if not model.dof_linear[k]:
            T = data.torque[body]
            square += T[0] * T[0] + T[1] * T[1] + T[2] * T[2]
        state.load[k] = math.sqrt(square)


@njit
def settle(robot: Any, step: Any) -> None:
    """Followers from their leaders, and what is left of the couplings."""
    model, state = robot.model, robot.state
    expand(model, state.qpos, state.qvel, robot.data)
    for c in range(model.row_follower.shape[0]):
        leader = model.row_leader[c]
        value, _, _ = coupling_slope(model, c, state.qpos[model.dof_coord[leader]] if leader >= 0 else 0.0)
        step.coupling_error[0] = max(
            step.coupling_error[0], abs(state.qpos[model.dof_coord[model.row_follower[c]]] - value)
        )
