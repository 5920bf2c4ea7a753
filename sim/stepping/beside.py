"""The tasks of a run beside its steps: an entry of its own, compiled once for all integrators and solvers."""

from __future__ import annotations

import math

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.kinematics import velocities, weigh_down
from artsim.sim.articulation.model import D_MIN
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.actuation import weigh_springs
from artsim.sim.equipment.arrays import EquipmentBundle
from artsim.sim.foundation.jit import njit
from artsim.sim.geometry.contacts import ContactBundle
from artsim.sim.run_data.run_records import (
    AGAIN,
    AT_START,
    BEGIN,
    ENERGY,
    EVALUATION,
    EXCESS_STEP,
    FIRST_ROW,
    LOOK,
    NOW,
    RECORD,
    ROWS_RECORDED,
    STEP_NUMBER,
    TASK,
    WATCH,
    Rows,
    RunBundle,
    Step,
)
from artsim.sim.stepping.booking import note_load
from artsim.sim.stepping.calibration import calibrate
from artsim.sim.stepping.energy_account import compare_energy, energies, look
from artsim.sim.stepping.midpoint import book_midpoint
from artsim.sim.stepping.recorded_constraints import record_constraints
from artsim.sim.stepping.recording import record


@njit
def take_task(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, contact: ContactBundle | None
) -> None:
    """Do the task step.beside[TASK]: prepare a block of steps, compare energies, record a row, compare copies of the
    account with the present state, or note the last energy.
    """
    step = run.step
    task = step.beside[TASK]
    if task == BEGIN:
        _begin(robot, run, equipment)
    elif task == WATCH:
        compare_energy(robot, run, equipment, step.account, step.watch)
    elif task == RECORD:
        record_row(robot, run, rows, equipment, contact)
    elif task == LOOK:
        look(robot, run, equipment)
    else:
        step.energy[NOW] = _total_energy(robot, step, equipment)


@njit
def _begin(robot: RobotBundle, run: RunBundle, equipment: EquipmentBundle | None) -> None:
    """Prepare a block of steps: set followers from their leaders; before the first step, note energy and load."""
    model, state = robot.model, robot.state
    step = run.step
    step.counters[ROWS_RECORDED] = run.block.plan[FIRST_ROW]
    weigh_down(model, robot.data)
    for c in range(model.row_follower.shape[0]):
        if model.row_impedance[c, D_MIN] >= 0.0 and step.effective_coupling[c] == 0.0:
            step.effective_coupling[c] = model.row_mobility[c]
    if equipment is not None:
        calibrate(robot, equipment, step, run.inputs.limit_impedance.shape[0] > 0)
    else:
        weigh_springs(model, run, equipment)
    expand(model, state.qpos, state.qvel, robot.data)
    if step.counters[STEP_NUMBER] == 0 or math.isnan(step.energy[AT_START]):  # where the state or settings were changed
        step.energy[AT_START] = _total_energy(robot, step, equipment)
        step.account[ENERGY] = math.nan
    if step.counters[STEP_NUMBER] == 0:
        step.watch[EXCESS_STEP] = 0.0
        for k in range(step.qacc.shape[0]):
            step.qacc[k] = 0.0
        step.asleep[0] = 0.0
        note_load(robot, run)  # the load on the joints at rest, since friction acts from the first step


@njit
def _total_energy(robot: RobotBundle, step: Step, equipment: EquipmentBundle | None) -> float:
    """Kinetic plus potential energy at the state [J]."""
    moving, heights, springs, tendons, loops = energies(robot, robot.state.qpos, robot.state.qvel, step, equipment)
    return moving + heights + springs + tendons + loops


@njit
def record_row(
    robot: RobotBundle, run: RunBundle, rows: Rows, equipment: EquipmentBundle | None, contact: ContactBundle | None
) -> None:
    """Record the state before the step and the forces in it as the next row of the block."""
    if run.block.constraint_count.shape[0] > 0:  # first: the other records overwrite M
        record_constraints(robot, run, rows)
    if run.step.counters[EVALUATION] == AGAIN:
        if run.block.tau_passive.shape[0] + run.block.tau_coupling.shape[0] > 0:
            book_midpoint(robot.model, robot.state.qvel, robot.data, run.step)
        else:
            velocities(robot.model, robot.state.qvel, robot.data)
    record(robot, run, rows, equipment, contact)
