"""Searches for other contacts, where the velocities found move shapes beyond their speculative margins."""

from __future__ import annotations

from artsim.sim.articulation.kinematics import velocities
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.contact.contact_rows import may_bounce
from artsim.sim.contact.detection import are_as_before, detected, note_found, outrun
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.pack_detection import lacks_room, search_again
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import any_positive, where_greater, zero_like
from artsim.sim.foundation.records import Pack, Real
from artsim.sim.geometry.contacts import CONTACTS, AnyContacts, ContactBundle, EitherContacts
from artsim.sim.run_data.clock import mark
from artsim.sim.run_data.phases import BROAD_PHASE
from artsim.sim.run_data.run_records import CROWDED, SEARCHES, STOP_REASON, Rows, RunBundle
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.stepping.lane_calls import keep_others, start_of_next

_SEARCHES = 3  # per step at most, besides the first
_SEARCHES_OF_BLOWS = 39  # of contacts that bounce: each search finds contacts of the bodies just struck


@njit
def outruns_contacts(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: EitherContacts, solver: SolverBundle, chosen: Real
) -> Real:
    """1 where `chosen` is 1 and shapes leave their speculative margins and meet other contacts, with which the step
    begins anew; none, noted in the counters, where these exceed the room. Bodies then have their velocities from before
    the step, if none is 1 those at its end. The lanes of a pack are all solved by now.
    """
    if run.lanes is not None:
        return _outrun_in_lanes(robot, run, rows, contact, solver, chosen)
    return _outruns(robot, run, contact) if chosen > 0.0 else 0.0


@inlined
def _most(contact: AnyContacts) -> int:
    """The largest number of searches in a step."""
    return _SEARCHES_OF_BLOWS if may_bounce(contact) else _SEARCHES


@njit
def _outruns(robot: RobotBundle, run: RunBundle, contact: ContactBundle) -> float:
    """1 if the contacts of a single robot are now others."""
    model, state, data = robot.model, robot.state, robot.data
    step = run.step
    step.retries[SEARCHES] += 1
    if step.retries[SEARCHES] > _most(contact):
        velocities(model, step.velocity, data)
    elif outrun(model, data, run, contact):
        velocities(model, state.qvel, data)
        count = contact.data.number[CONTACTS]
        note_found(contact.data.before, contact)
        if not detected(robot, contact):
            step.counters[STOP_REASON] = CROWDED
            return 0.0
        mark(run.clock, BROAD_PHASE)
        if not are_as_before(contact.data.before, contact, count):
            return 1.0
        velocities(model, step.velocity, data)
    return 0.0


@njit
def _outrun_in_lanes(
    robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle, solver: SolverBundle, chosen: Pack
) -> Pack:
    """1 in chosen lanes of a pack whose contacts are now others; the other lanes keep their velocities."""
    lanes, zero = run.lanes, zero_like(chosen)
    chosen = where_greater(lanes.data.searches[0], zero + (_most(contact) - 0.5), zero, chosen)
    other = search_again(robot, run, contact, chosen)
    if lacks_room(contact):
        run.step.counters[STOP_REASON] = CROWDED
        return zero
    lanes.data.searches[0] = lanes.data.searches[0] + other
    if any_positive(other):
        solver.pack.warm[0] = where_greater(other, zero, zero, start_of_next(rows, run.step.bound[0]))
        solver.pack.same[0] = 0
        keep_others(run.step, solver.pack, other)
    return other
