"""Records of the equipment of packs: actuators whose force is affine, by lane. Does not import numba."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.foundation.records import ConstInts1, ConstReals1, ConstReals2, Lanes1

KNOWN, COUNTED, VARYING = range(3)  # of PackActuators.counted


class PackActuators(NamedTuple):
    """The na actuators of one-dof joints and of fixed tendons, whose force is constant - stiffness · length -
    damping · velocity, and the tendons' limits. The length is the sum of the moment arms times the coordinates; the
    constant is gain · input + bias unless the force varies, the input a control or an activation.
    """

    # of all actuators of Equipment: KNOWN to packs; COUNTED lane by lane; VARYING: part of M̂, or counted where explicit
    counted: ConstInts1
    number: ConstInts1  # (na,) number of the actuator in Equipment
    entry: ConstInts1  # (na + 1,) first entry of each; an actuator on a joint has one
    dof: ConstInts1  # (entries,) dof of each entry
    moment: ConstReals1  # (entries,) moment arm
    control: ConstInts1  # (na,) index of its control
    implicit: ConstInts1  # (na,) EXPLICIT, IN_MATRIX or BY_ROW
    has_row: ConstInts1  # (na,) 1: the actuator has a row, which is idle if the force is explicit
    varying: ConstInts1  # (na,) 1: constant, stiffness and damping are found at every step, lane by lane
    gain: ConstReals1
    bias: ConstReals1
    control_lower: ConstReals1  # (na,)
    control_upper: ConstReals1
    force_lower: ConstReals1
    force_upper: ConstReals1
    dof_lower: ConstReals1  # (nv,) bound of the sum of a joint's actuators
    dof_upper: ConstReals1
    dof_implicit: ConstInts1  # (nv,) 1: one of the dof's actuators is part of M̂
    tendon_entry: ConstInts1  # (nt + 1,) first entry of each tendon
    tendon_dof: ConstInts1  # (entries,) dof of each entry
    tendon_lower: ConstReals1  # (nt,) length limits, ∓inf: none [m or rad]
    tendon_upper: ConstReals1  # (nt,)
    tendon_limit_spring: ConstReals2  # (nt, 2) stiffness and damping of the limits; stiffness 0: hard


class PackActuation(NamedTuple):
    """Scratch of a pack's equipment: forces by actuator, and their sums by dof.

    The fields down to `pending` are found lane by lane (stepping/lane_equipment.py) where the robot has more than
    actuators that packs know.
    """

    exerted: Lanes1  # (nv,) explicit forces of counted actuators, and of gravity compensation by motors [N m or N]
    passive: Lanes1  # (nv,) explicit passive forces and wrenches on links [N m or N]
    resisted: Lanes1  # (nv,) forces by which computed torque makes up for passive forces and tendons [N m or N]
    tendon: Lanes1  # (nv,) explicit forces of the springs and dampers of tendons [N m or N]
    tendon_length: Lanes1  # (nt,) [m or rad]
    tendon_moment: Lanes1  # (entries,) dL/dq of tendon_dof
    stiff: Lanes1  # (1,) 1: springs of tendons are too stiff to be explicit
    exerted_by: Lanes1  # (all actuators,) [N or N m]
    activation: Lanes1  # (nact,) at the end of the step
    start_activation: Lanes1  # (nact,) at its start
    pending: Lanes1  # (1,) 1: a delayed control has yet to change
    constant: Lanes1  # (na,) force at length 0 and velocity 0
    slope: Lanes1  # (na,) stiffness along the length
    resistance: Lanes1  # (na,) damping along the length
    acts: Lanes1  # (na,) 0: the actuator is not part of M̂ in this step, but a force in `exerted`
    share: Lanes1  # (na,) weight of the spring of an actuator that is a row (actuation.py)
    held: Lanes1  # (na,) -1: an implicit force is held at its lower bound, 1: at its upper bound
    dof_held: Lanes1  # (nv,) -1: the sum of a dof's forces is held at its lower bound, 1: at its upper bound
    was_held: Lanes1  # (na,) `held` at the end of the last step
    dof_was_held: Lanes1  # (nv,) `dof_held` at the end of the last step
    sum_total: Lanes1  # (nv,) actuator_total, offset, stiffness and damping as if no sum of a dof were held
    sum_offset: Lanes1  # (nv,)
    sum_stiffness: Lanes1  # (nv,)
    sum_damping: Lanes1  # (nv,)
    actuator_total: Lanes1  # (nv,) sum of the explicit actuator forces [N m or N]
    offset: Lanes1  # (nv,) of the actuators in M̂: summed force at q = 0, v = 0
    stiffness: Lanes1  # (nv,) of the actuators in M̂: summed stiffness
    damping: Lanes1  # (nv,) of the actuators in M̂: summed damping


class PackEquipment(NamedTuple):
    """Actuators of a pack, in place of an EquipmentBundle."""

    model: PackActuators
    data: PackActuation
