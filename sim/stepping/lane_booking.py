"""The end of a step in each lane of a pack: memories of contacts, stops of trees, lanes that sleep."""

from __future__ import annotations

from artsim.sim.articulation.coupling import expand
from artsim.sim.articulation.state import ALLOWED, FIRST_IMPULSE, REGULARISED, RobotBundle, State, Workspace
from artsim.sim.constraints.row import if_agreed
from artsim.sim.contact.contact_rows import THROUGH, impulse_along, note_held, per_thickness
from artsim.sim.contact.pack_contacts import PackContactBundle
from artsim.sim.contact.pack_detection import place_planes
from artsim.sim.foundation.jit import njit
from artsim.sim.foundation.lanes import any_positive, lane_count, lane_get, lane_set, zero_like
from artsim.sim.foundation.records import Ints1
from artsim.sim.foundation.recordtype import run_entry
from artsim.sim.foundation.scalars import largest
from artsim.sim.geometry.contacts import CONTACTS, DIRECTIONS
from artsim.sim.run_data.run_records import GAVE_WAY, Rows, RunBundle
from artsim.sim.stepping.lane_ends import end
from artsim.sim.stepping.sleeping import note_places


@njit
def remember_in_lanes(robot: RobotBundle, run: RunBundle, rows: Rows, contact: PackContactBundle) -> None:
    """Store the contacts and their rows' impulses in the lanes' memories, as detection.remember does, note those that
    hard loops hold inside, and end lanes in which contacts have given way."""
    _take_impulses(rows, contact)
    _note_held_in_lanes(run, contact)
    _stop_where_contacts_gave_way(robot.state, run, contact)
    _note_impulses(robot.data, contact, run.lanes.data.alive)
    contact.lanes.half[0] = 1 - contact.lanes.half[0]


@njit
def _take_impulses(rows: Rows, contact: PackContactBundle) -> None:
    """Set contact.data.start to the impulses that the solver found, along the contacts' directions, and
    contact.data.regularised to the numbers of steps in which contacts have yielded."""
    for n in range(contact.data.number[CONTACTS]):
        if contact.data.row[n] >= 0:
            contact.data.regularised[n] = rows.regularised[contact.data.row[n]]
            for k in range(contact.data.dimension[n]):
                contact.data.start[n, k] = if_agreed(rows, impulse_along(rows, contact, n, k))


@njit
def _note_held_in_lanes(run: RunBundle, contact: PackContactBundle) -> None:
    """Note in contact.lanes.held the contacts that hard loops hold inside."""
    inside = zero_like(run.step.asleep[0])
    for n in range(contact.data.number[CONTACTS]):
        inside = largest(inside, contact.data.held[n])
    if any_positive(inside):
        for lane in range(contact.lanes.held.shape[0]):
            if run.lanes.data.alive[lane]:
                note_held(contact.lanes.held[lane], run.step, contact, lane)


@njit
def _goes_through(contact: PackContactBundle, lane: int) -> bool:
    """True if a contact of the lane that gives way has passed half of a shape's thickness; see `_take_impulses`."""
    memory = contact.lanes.memory[1 - contact.lanes.half[0], lane]
    for n in range(contact.lanes.number[lane]):
        place = contact.lanes.place[lane, n]
        if place >= 0 and lane_get(contact.data.regularised, place, lane) > 0.0:
            depth = -lane_get(contact.data.distance, place, lane) - memory[n, ALLOWED]
            if depth * per_thickness(contact, place) > THROUGH:
                return True
    return False


@njit
def _note_impulses(data: Workspace, contact: PackContactBundle, alive: Ints1) -> None:
    """Store contact.data.start and contact.data.regularised in the memories of the lanes whose rows these are."""
    for lane in range(lane_count(data.rotation)):
        if not alive[lane]:
            continue
        memory = contact.lanes.memory[1 - contact.lanes.half[0], lane]
        for n in range(contact.lanes.number[lane]):
            place = contact.lanes.place[lane, n]
            if place >= 0 and lane_get(contact.lanes.present, place, lane) > 0.0:
                memory[n, REGULARISED] = lane_get(contact.data.regularised, place, lane)
                for k in range(contact.data.dimension[place]):
                    memory[n, FIRST_IMPULSE + k] = lane_get(contact.data.start, DIRECTIONS * place + k, lane)


@njit
def _stop_where_contacts_gave_way(state: State, run: RunBundle, contact: PackContactBundle) -> None:
    """End the lanes in which a contact that gives way has passed half of a shape's thickness, as
    contact_rows.note_contact_forces does."""
    lanes = run.lanes
    if not any_positive(contact.lanes.yielding[0]):
        return
    for lane in range(lane_count(state.qpos)):
        if lanes.data.alive[lane] and _goes_through(contact, lane):
            end(state, run, lane, GAVE_WAY, 0)


@njit
def stop_trees_in_lanes(robot: RobotBundle, run: RunBundle, contact: PackContactBundle) -> None:
    """Set step.tangent of each lane so that its trees stop where the continuous check has them stop."""
    lanes = run.lanes
    for lane in range(lane_count(robot.state.qpos)):
        if lanes.data.alive[lane]:
            for n in range(robot.state.qpos.shape[0]):
                lanes.alone.state.qpos[n] = lane_get(robot.state.qpos, n, lane)
            for k in range(robot.state.qvel.shape[0]):
                lanes.alone.state.qvel[k] = lane_get(robot.state.qvel, k, lane)
            place_planes(contact, lane)
            for k in range(run.step.tangent.shape[0]):
                lanes.alone.step.tangent[k] = lane_get(run.step.tangent, k, lane)
            run_entry(contact.detected.data.advancement)
            for k in range(run.step.tangent.shape[0]):
                lane_set(run.step.tangent, k, lane, lanes.alone.step.tangent[k])


@njit
def begin_step_in_lanes(robot: RobotBundle, run: RunBundle) -> None:
    """Note the places of lanes that sleep through the step."""
    if any_positive(run.step.asleep[0]):
        note_places(robot.state, run)


@njit
def end_step_in_lanes(robot: RobotBundle, run: RunBundle) -> None:
    """Set the followers in lanes that sleep through the step."""
    if any_positive(run.step.asleep[0]):
        expand(robot.model, robot.state.qpos, robot.state.qvel, robot.data)
