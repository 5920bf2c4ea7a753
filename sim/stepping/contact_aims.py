"""Aims contacts of bodies that turn far at where the velocities found lead, by further solutions.

Each aim measures the gaps at the end of the step (contact/foresight.py) and corrects the biases by them, as SHAKE does.
With each aim the remaining miss shrinks by a factor of about the angle [rad] turned in a step.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import velocities
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.constraints.row import FASTER, UNSOLVED
from artsim.sim.contact.foresight import aim, choose_aimed, foresee, take_aims_back
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, lane_set, where_greater, zero_like
from artsim.sim.foundation.records import Real
from artsim.sim.foundation.scalars import largest
from artsim.sim.geometry.contacts import CONTACTS, AnyContacts, EitherContacts
from artsim.sim.run_data.run_records import BETA, RESIDUAL, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.solvers.calls import sweeps_rows
from artsim.sim.stepping.aims import fastest_of

# of the sequence of aims: none yet; the last solution follows an aim, or the return from one; the sequence is over
_BEFORE, _AIMED, _TAKEN_BACK, _OVER = range(4)
_PHASE, _AIMS, _MOST_SPEED, _SOLVED = range(4)  # entries of ContactWork.aiming

_MOST_AIMS = 6  # per step
_MANY = 200  # contacts above which at most _FEW_AIMS are taken: each aim takes as long as the step
_FEW_AIMS = 2


@njit
def begin_contact_aims(contact: AnyContacts, chosen: Real) -> None:
    """Let contacts close as their rows foresee where `chosen` is 1."""
    zero, aiming = zero_like(chosen), contact.data.aiming
    aiming[_PHASE] = where_greater(chosen, zero, zero + _BEFORE, aiming[_PHASE])
    for n in range(contact.data.number[CONTACTS]):
        contact.data.aimed[n] = where_greater(chosen, zero, zero, contact.data.aimed[n])


@inlined
def has_contact_aims(contact: AnyContacts) -> Real:
    """1 where contacts have been aimed, or were looked at for that, since rows were last built."""
    zero = zero_like(contact.data.aiming[_PHASE])
    return where_greater(contact.data.aiming[_PHASE], zero + (_BEFORE + 0.5), zero + 1.0, zero)


@inlined
def is_aiming_contacts(contact: AnyContacts) -> Real:
    """1 in the midst of the sequence of aims."""
    zero = zero_like(contact.data.aiming[_PHASE])
    return has_contact_aims(contact) * where_greater(
        zero + (_OVER - 0.5), contact.data.aiming[_PHASE], zero + 1.0, zero
    )


@njit
def aim_contacts(robot: RobotBundle, run: RunBundle, rows: Rows, contact: AnyContacts, chosen: Real) -> Real:
    """Take the next step in the sequence of aims where `chosen` is 1; 1 where the rows are to be solved again, with
    other biases. The sequence ends where a further aim would change too little to matter. An aim is taken back where
    aimed rows contradict each other, or turn velocities into much larger ones. Leaves the bodies' velocities from
    before the step.
    """
    zero, step, aiming = zero_like(chosen), run.step, contact.data.aiming
    one = zero + 1.0
    velocities(robot.model, step.velocity, robot.data)
    midst = chosen * is_aiming_contacts(contact)
    fresh = chosen * (1.0 - has_contact_aims(contact))
    unsolved = where_greater(rows.report[RESIDUAL], zero + UNSOLVED, one, zero)
    absurd = zero
    if any_positive(midst):
        fast = where_greater(fastest_of(step, zero), aiming[_MOST_SPEED], one, zero)
        absurd = where_greater(zero + (_AIMED + 0.5), aiming[_PHASE], midst, zero)
        absurd = absurd * largest(fast, unsolved * aiming[_SOLVED])
        take_aims_back(rows, contact, absurd)
    ended = where_greater(aiming[_PHASE], zero + (_TAKEN_BACK - 0.5), midst, zero)
    sinking = zero
    if any_positive(fresh):
        sinking = choose_aimed(robot, run, rows, contact, fresh)
        aiming[_AIMS] = where_greater(fresh, zero, zero, aiming[_AIMS])
        aiming[_SOLVED] = where_greater(fresh, zero, one - unsolved, aiming[_SOLVED])
        aiming[_MOST_SPEED] = where_greater(fresh, zero, FASTER * fastest_of(step, zero), aiming[_MOST_SPEED])
    on = where_greater(_most_aims(contact, zero), aiming[_AIMS] + 0.5, sinking + midst - absurd - ended, zero)
    again = zero
    if any_positive(on):
        foresee(robot, run, contact, on)
        again = aim(robot, run, rows, contact, on)
    velocities(robot.model, robot.state.qvel, robot.data)
    phase = where_greater(again, zero, zero + _AIMED, zero + _OVER)
    phase = where_greater(absurd, zero, zero + _TAKEN_BACK, phase)
    aiming[_PHASE] = where_greater(chosen, zero, phase, aiming[_PHASE])
    aiming[_AIMS] = aiming[_AIMS] + again
    return again + absurd


@inlined
def _most_aims(contact: AnyContacts, zero: Real) -> Real:
    """The largest number of aims in a step."""
    if contact.lanes is None:
        return zero + (_MOST_AIMS if contact.data.number[CONTACTS] <= _MANY else _FEW_AIMS)
    most = contact.lanes.chosen
    for lane in range(contact.lanes.number.shape[0]):
        lane_set(most, 0, lane, _MOST_AIMS if contact.lanes.number[lane] <= _MANY else _FEW_AIMS)
    return most[0]


@inlined
def aims_contacts(run: RunBundle, contact: EitherContacts, solver: SolverBundle) -> bool:
    """True if contacts are aimed: impulses act through the velocities at the step's end, and the continuous check,
    which has contacts of times before that end, is off."""
    if contact.lanes is not None:
        return run.inputs.scheme[BETA] == 1.0 and contact.sweep is None
    exact = run.inputs.scheme[BETA] == 1.0 and not sweeps_rows(solver)
    return exact and contact.data.advancement[0] == 0
