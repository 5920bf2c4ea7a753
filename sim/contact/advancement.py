"""Optional continuous check: finds the share of a step's motion before penetration exceeds a share of the thickness.

Contacts are detected speculatively, and the approach to them is left open along a straight line (detection.py), which
is exact for bodies that do not turn. Bodies that turn far in one step move along arcs, which may carry one thin body
through another. After the solver, this check therefore examines the poses between the start and the end of the step,
for all pairs at once, by conservative advancement (Mirtich 1996; Zhang, Lee, Kim 2006): from each pose as far as the
distances and speeds of the pairs allow. Trees whose shapes would penetrate too deeply stop there with the velocities
that the step gave them, and lose the rest of the step's motion (as in Box2D); the next step finds the contact there.

`advance` is an entry of its own, compiled only for runs that ask for it.
"""

from __future__ import annotations

import math

from artsim.collision.narrow_phase import collide
from artsim.sim.articulation.integrators import move
from artsim.sim.articulation.kinematics import kinematics, velocities
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.contact.continuous import SLACK, ContinuousWork
from artsim.sim.contact.detection import place_moving, velocity_of
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Reals1
from artsim.sim.foundation.vec3 import length, minus, row_of
from artsim.sim.geometry.contacts import ContactBundle, NarrowBundle
from artsim.sim.run_data.run_records import Inputs, RunBundle, Step

_MOVING = 2.0  # above all shares of the step, at most 1: a tree moves to the end, a candidate is not looked at again
_CLOSE = 0.1  # share of the slack that is left when a tree stops
_TURN = 0.1  # [rad] per advance, by which velocities turn before they are recomputed
_MOST = 20_000  # distance queries per step; then every unfinished tree stops


@njit
def advance(
    robot: RobotBundle, run: RunBundle, contact: ContactBundle, narrow: NarrowBundle, continuous: ContinuousWork
) -> None:
    """Replace step.tangent (nv,), the velocities to move with over the step, by those to the places where trees stop.

    data and contact.data are left at the last pose examined.
    """
    model, data = robot.model, robot.data
    inputs, step = run.inputs, run.step
    for n in range(continuous.stop.shape[0]):
        continuous.stop[n] = _MOVING
    kinematics(model, robot.state.qpos, data)
    _reaches(model, step, data, continuous)
    place_moving(model, data, contact)
    for n in range(contact.model.body.shape[0]):
        for axis in range(3):
            continuous.start[n, axis] = contact.data.position[n, axis]
    _pose(robot, run, contact, continuous, 1.0)
    if not _choose(inputs, contact, narrow, continuous):
        return
    time = 0.0
    looked = 0
    while time < 1.0:
        _pose(robot, run, contact, continuous, time)
        later = 1.0
        for n in range(continuous.number[0]):
            if continuous.next[n] <= time:
                looked += 1
                _look(robot, inputs, contact, narrow, continuous, n, time, looked > _MOST)
            later = min(later, continuous.next[n])
        time = later
    for v in range(step.tangent.shape[0]):
        step.tangent[v] *= min(continuous.stop[continuous.tree[model.dof_body[v]]], 1.0)


@njit
def _reaches(model: Model, step: Step, data: Workspace, continuous: ContinuousWork) -> None:
    """Set, for every body, continuous.turning, a bound of its angular speed while its tree moves, and continuous.arm,
    its distance from the tree's root along the links.

    Angular velocities of joints that turn against each other add up here: links that stay parallel move on circles.
    """
    velocities(model, step.tangent, data)
    o = data.angular_velocity
    for b in range(1, model.body_parent.shape[0]):
        above = model.body_parent[b]
        continuous.turning[b] = continuous.turning[above] + length(minus(row_of(o, b), row_of(o, above)))
        continuous.arm[b] = 0.0
        if above > 0:
            continuous.arm[b] = continuous.arm[above] + length(row_of(data.offset, b))


@njit
def _pose(robot: RobotBundle, run: RunBundle, contact: ContactBundle, continuous: ContinuousWork, time: float) -> None:
    """Place shapes at share `time` of the step, and compute the velocities of trees that still move."""
    model, data = robot.model, robot.data
    step = run.step
    for n in range(step.stage_qpos.shape[0]):
        step.stage_qpos[n] = robot.state.qpos[n]
    for v in range(step.tangent.shape[0]):
        step.stage_qvel[v] = step.tangent[v] * min(time, continuous.stop[continuous.tree[model.dof_body[v]]])
    move(model, step.stage_qpos, step.stage_qvel, run.inputs.time_step[0])
    kinematics(model, step.stage_qpos, data)
    for v in range(step.tangent.shape[0]):
        step.stage_qvel[v] = step.tangent[v] if continuous.stop[continuous.tree[model.dof_body[v]]] == _MOVING else 0.0
    velocities(model, step.stage_qvel, data)
    place_moving(model, data, contact)


@njit
def _choose(inputs: Inputs, contact: ContactBundle, narrow: NarrowBundle, continuous: ContinuousWork) -> bool:
    """Choose the pairs to examine: those that may meet and whose arcs leave the straight lines by more than their
    slack. False when there are none. Shapes are at the end of the step.
    """
    h = inputs.time_step[0]
    for n in range(contact.model.body.shape[0]):
        b = contact.model.body[n]
        angle = h * continuous.turning[b]
        arm = continuous.arm[b] + continuous.beside[n]
        continuous.bent[n] = 0.5 * angle * angle * (contact.model.swing[n] + arm)
        chord = _length(contact.data.position[n], continuous.start[n])
        continuous.way[n] = chord + min(angle, 2.0) * contact.model.swing[n] + min(0.5 * angle * angle, 2.0) * arm
    continuous.number[0] = 0
    for p in range(continuous.pair.shape[0]):
        one = continuous.pair[p, 0]
        two = continuous.pair[p, 1]
        slack = SLACK * min(continuous.thickness[one], continuous.thickness[two])
        if (
            continuous.bent[one] + continuous.bent[two] <= slack
            and not _turns(inputs, contact, continuous, one)
            and not _turns(inputs, contact, continuous, two)
        ):
            continue
        if (
            _length(continuous.start[one], continuous.start[two]) - narrow.shapes.reach[one] - narrow.shapes.reach[two]
            > continuous.way[one] + continuous.way[two]
        ):
            continue
        n = continuous.number[0]
        continuous.number[0] = n + 1
        continuous.chosen[n] = p
        continuous.next[n] = 0.0
        continuous.depth[n] = slack
    return bool(continuous.number[0] > 0)


@inlined
def _turns(inputs: Inputs, contact: ContactBundle, continuous: ContinuousWork, n: int) -> bool:
    """True if detection.py treats shape n as straight for less than the whole step."""
    return inputs.time_step[0] * continuous.turning[contact.model.body[n]] > contact.data.straight[n]


@inlined
def _length(p: Reals1, q: Reals1) -> float:
    return length(minus(p, q))


@njit
def _look(
    robot: RobotBundle,
    inputs: Inputs,
    contact: ContactBundle,
    narrow: NarrowBundle,
    continuous: ContinuousWork,
    n: int,
    time: float,
    enough: bool,
) -> None:
    """Set continuous.next of candidate n, the share of the step up to which it cannot exceed its allowed depth. Its
    trees stop there if this share is `time`, or once `enough` queries have been made.
    """
    h = inputs.time_step[0]
    one = continuous.pair[continuous.chosen[n], 0]
    two = continuous.pair[continuous.chosen[n], 1]
    b = contact.model.body[one]
    d = contact.model.body[two]
    if not _moves(continuous, b) and not _moves(continuous, d):
        continuous.next[n] = _MOVING
        return
    turning = max(_turning(continuous, b), _turning(continuous, d))
    speed = _closing(robot.model, robot.data, contact, continuous, one, two)
    margin = h * (1.0 - time) * speed
    narrow.manifold.number[0] = 0
    collide(narrow.shapes, contact.data, narrow.gjk, one, two, margin, narrow.manifold)
    gap = margin
    for found in range(narrow.manifold.number[0]):
        gap = min(gap, narrow.manifold.gap[found])
    slack = SLACK * min(continuous.thickness[one], continuous.thickness[two])
    if time == 0.0:  # a pair that starts deep may stay so, and move a little
        continuous.depth[n] = max(slack, 0.5 * slack - gap)
    room = gap + continuous.depth[n]
    if room < _CLOSE * slack or enough:
        for body in (b, d):
            if _moves(continuous, body):
                continuous.stop[continuous.tree[body]] = time
        continuous.next[n] = _MOVING
        return
    advance = room / (h * speed) if room < h * speed else 1.0
    if turning * h * advance > _TURN:
        advance = _TURN / (h * turning)
    continuous.next[n] = time + advance


@inlined
def _moves(continuous: ContinuousWork, b: int) -> bool:
    """True if body b has not stopped."""
    return b > 0 and continuous.stop[continuous.tree[b]] == _MOVING


@inlined
def _turning(continuous: ContinuousWork, b: int) -> float:
    """Bound of the angular speed of body b [rad/s]."""
    return continuous.turning[b] if _moves(continuous, b) else 0.0


@inlined
def _closing(
    model: Model, data: Workspace, contact: ContactBundle, continuous: ContinuousWork, one: int, two: int
) -> float:
    """A bound of the speed at which two shapes approach, until one of them has turned by _TURN [m/s]."""
    u0, u1, u2 = velocity_of(model, data, contact, one)
    v0, v1, v2 = velocity_of(model, data, contact, two)
    apart = math.sqrt((u0 - v0) * (u0 - v0) + (u1 - v1) * (u1 - v1) + (u2 - v2) * (u2 - v2))
    return apart + _swinging(contact, continuous, one) + _swinging(contact, continuous, two)


@inlined
def _swinging(contact: ContactBundle, continuous: ContinuousWork, n: int) -> float:
    """The part of the bound `_closing` that comes from the rotation of shape n [m/s]."""
    b = contact.model.body[n]
    return _turning(continuous, b) * (contact.model.swing[n] + _TURN * (continuous.arm[b] + continuous.beside[n]))
