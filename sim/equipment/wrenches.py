"""Wrenches of tendons, actuators and inputs on the links as free bodies, which no joint of the tree carries.

A spatial tendon pulls at the points of its path; an actuator at a site or a slider-crank pushes there; a run may push
links. All other forces on the dofs (fixed tendons, actuators of joints, springs, compensated weights, the medium) act
in the joints.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import link_frame, origin_of
from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import (
    PATH_JOINT,
    PATH_LOOP,
    PATH_PULLEY,
    PATH_SITE,
    SITE,
    SLIDER_CRANK,
    EquipmentBundle,
)
from artsim.sim.equipment.link_wrenches import wrench_point
from artsim.sim.equipment.loop_axes import loop_wrench
from artsim.sim.equipment.tendons import site_point, way_around
from artsim.sim.equipment.transmissions import crank, turned_gear, wrench_frame
from artsim.sim.equipment.wrapping import unit3
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.records import Vec3
from artsim.sim.foundation.vec3 import cross, minus, negative, plus, row_of, set_row, times, triple, triple_at
from artsim.sim.run_data.run_records import Step

_NONE = (0.0, 0.0, 0.0)


@njit
def take_off_tendons(robot: RobotBundle, step: Step, equipment: EquipmentBundle) -> None:
    """Subtract the wrenches of spatial tendons, and of those of loops' axes, from step.link_force and step.link_torque
    (about the links' origins).
    """
    for t in range(equipment.data.tendon_force.shape[0]):
        force = equipment.data.tendon_force[t]
        kind = equipment.model.path_kind[equipment.model.tendon_path[t]]
        if force == 0.0 or kind == PATH_JOINT:
            continue
        if kind == PATH_LOOP:
            _take_off_loop_axis(robot, step, equipment, equipment.model.tendon_path[t], force)
        else:
            _take_off_path(robot, step, equipment, t, force)


@njit
def take_off_actuators(robot: RobotBundle, step: Step, equipment: EquipmentBundle) -> None:
    """Subtract the wrenches of actuators at sites and slider-cranks from step.link_force and step.link_torque."""
    for a in range(equipment.model.actuator_target.shape[0]):
        kind = equipment.model.actuator_transmission[a]
        if kind == SITE:
            _take_off_site(robot, step, equipment, a, equipment.data.actuator_force[a])
        elif kind == SLIDER_CRANK:
            _take_off_crank(robot, step, equipment, a, equipment.data.actuator_force[a])


@njit
def take_off_inputs(robot: RobotBundle, step: Step, equipment: EquipmentBundle) -> None:
    """Subtract the wrenches that are inputs of the run from step.link_force and step.link_torque."""
    for n in range(equipment.model.link_wrench_link.shape[0]):
        w = equipment.data.link_wrench[n]
        p = wrench_point(robot, equipment, n)
        _take_off(robot, step, equipment.model.link_wrench_link[n], p, triple(w), triple_at(w, 3))


@inlined
def _take_off(robot: RobotBundle, step: Step, link: int, point: Vec3, force: Vec3, torque: Vec3) -> None:
    """Subtract a force at a world point and a torque from the wrench that link `link` receives (-1: the world)."""
    model, data = robot.model, robot.data
    if link >= 0:
        _, d = link_frame(model, data, link)
        o = origin_of(model, data, model.link_body[link])
        c = cross(minus(minus(point, o), d), force)
        set_row(step.link_force, link, minus(row_of(step.link_force, link), force))
        set_row(step.link_torque, link, minus(row_of(step.link_torque, link), plus(c, torque)))


# ------------------------------------------------------------------ tendons


@njit
def _take_off_loop_axis(robot: RobotBundle, step: Step, equipment: EquipmentBundle, p: int, force: float) -> None:
    """Subtract a force along or about the axis of a loop, which is path element p."""
    n, axis = equipment.model.path_index[p], int(equipment.model.path_value[p])
    _, point, w = loop_wrench(robot.model, robot.data, equipment, n, axis)
    for end in range(2):
        f = force if end == 1 else -force
        link = equipment.model.loop_link[n, end]
        _take_off(robot, step, link, point, times(f, w[0]), times(f, w[1]))


@njit
def _take_off_path(robot: RobotBundle, step: Step, equipment: EquipmentBundle, t: int, force: float) -> None:
    """Subtract the force of tendon t, piece by piece; the pieces are those of equipment/tendons.py."""
    share = 1.0
    p = equipment.model.tendon_path[t]
    while p < equipment.model.tendon_path[t + 1] - 1:
        if equipment.model.path_kind[p] == PATH_PULLEY:
            share = 1.0 / equipment.model.path_value[p]
            p += 1
        elif equipment.model.path_kind[p + 1] == PATH_PULLEY:
            p += 1
        elif equipment.model.path_kind[p + 1] == PATH_SITE:
            _take_off_straight(
                robot, step, equipment, equipment.model.path_index[p], equipment.model.path_index[p + 1], share * force
            )
            p += 1
        else:
            _take_off_wrapped(robot, step, equipment, p, share * force)
            p += 2


@njit
def _take_off_straight(
    robot: RobotBundle, step: Step, equipment: EquipmentBundle, first: int, second: int, force: float
) -> None:
    """Subtract a straight piece between two sites."""
    a = site_point(robot.model, robot.data, equipment, first)
    b = site_point(robot.model, robot.data, equipment, second)
    _take_off_piece(robot, step, equipment.model.site_link[first], equipment.model.site_link[second], a, b, force)


@njit
def _take_off_wrapped(robot: RobotBundle, step: Step, equipment: EquipmentBundle, p: int, force: float) -> None:
    """Subtract the pieces to and from the geom at path element p + 1, or the single piece that passes it."""
    model, data = robot.model, robot.data
    first, second = equipment.model.path_index[p], equipment.model.path_index[p + 2]
    on_geom, meets, leaves = way_around(model, data, equipment, p)
    if on_geom < 0.0:
        _take_off_straight(robot, step, equipment, first, second, force)
        return
    link = equipment.model.wrap_link[equipment.model.path_index[p + 1]]
    a = site_point(model, data, equipment, first)
    b = site_point(model, data, equipment, second)
    _take_off_piece(robot, step, equipment.model.site_link[first], link, a, meets, force)
    _take_off_piece(robot, step, link, equipment.model.site_link[second], leaves, b, force)


@njit
def _take_off_piece(robot: RobotBundle, step: Step, link_a: int, link_b: int, a: Vec3, b: Vec3, force: float) -> None:
    """Subtract a straight piece from point a of one link to b of another; a positive force pushes them apart."""
    u, _ = unit3(minus(b, a))
    if link_a != link_b:
        _take_off(robot, step, link_a, a, times(-force, u), _NONE)
        _take_off(robot, step, link_b, b, times(force, u), _NONE)


# ------------------------------------------------------------------ actuators


@njit
def _take_off_site(robot: RobotBundle, step: Step, equipment: EquipmentBundle, a: int, force: float) -> None:
    """Subtract a wrench at a site and its reaction at a reference site.

    Force and reaction form a couple if the sites are apart and the force is not along their line. MuJoCo's transmission
    passes none of this couple to dofs that move both sites, so the couple is taken up where the sites' chains meet.
    """
    model, data = robot.model, robot.data
    site, reference = equipment.model.actuator_target[a], equipment.model.actuator_reference[a]
    frame = wrench_frame(equipment, a)
    gear = equipment.model.actuator_gear[a]
    f = turned_gear(data, equipment, frame, times(force, gear))
    t = turned_gear(data, equipment, frame, times(force, triple_at(gear, 3)))
    p = site_point(model, data, equipment, site)
    link = equipment.model.site_link[site]
    _take_off(robot, step, link, p, f, t)
    if reference < 0:
        return
    r = site_point(model, data, equipment, reference)
    base = equipment.model.site_link[reference]
    _take_off(robot, step, base, r, negative(f), negative(t))
    while link != base:
        if link > base:
            link = model.link_parent[link]
        else:
            base = model.link_parent[base]
    c = cross(minus(r, p), f)
    _take_off(robot, step, link, p, _NONE, c)


@njit
def _take_off_crank(robot: RobotBundle, step: Step, equipment: EquipmentBundle, a: int, force: float) -> None:
    """Subtract the force of a slider-crank at the pin and its reaction on the slider's link."""
    model, data = robot.model, robot.data
    pin, slider = equipment.model.actuator_target[a], equipment.model.actuator_reference[a]
    _, f, n = crank(model, data, equipment, a)
    f = times(force, f)
    p = site_point(model, data, equipment, pin)
    s = site_point(model, data, equipment, slider)
    _take_off(robot, step, equipment.model.site_link[pin], p, f, _NONE)
    _take_off(robot, step, equipment.model.site_link[slider], s, negative(f), times(force, n))
