"""Records of the equipment of packs: actuators whose force is affine, by lane. Does not import numba."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.foundation.records import ConstInts1, ConstReals1, ConstReals2, Lanes1


class PackActuators(NamedTuple):
    """The na actuators of one-dof joints and of fixed tendons, whose force is constant - stiffness · length -
    damping · velocity, and the tendons' limits. The length is the sum of the moment arms times the coordinates; the
    constant is gain · input + bias unless the force varies, the input a control or an activation.
    """

    number: ConstInts1  # (na,) as in Equipment
    entry: ConstInts1  # (na + 1,) first entry of each; one where it is on a joint
    dof: ConstInts1  # (entries,) dof of each entry
    moment: ConstReals1  # (entries,) moment arm
    control: ConstInts1  # (na,) index of its control
    implicit: ConstInts1  # (na,) EXPLICIT, IN_MATRIX or BY_ROW
    has_row: ConstInts1  # (na,) 1: it has a row, which is idle if it is explicit
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
    tendon_entry: ConstInts1  # (nt + 1,) these five as in Equipment
    tendon_dof: ConstInts1
    tendon_lower: ConstReals1
    tendon_upper: ConstReals1
    tendon_limit_spring: ConstReals2


class PackActuation(NamedTuple):
    """The equipment's effect by dof, as in EquipmentWork."""

    constant: Lanes1  # (na,) force at length 0 and velocity 0
    slope: Lanes1  # (na,) stiffness along the length
    resistance: Lanes1  # (na,) damping along the length
    acts: Lanes1  # (na,) 0: it is not part of M̂ in this step, but a force in `exerted`
    share: Lanes1  # (na,) weight of the spring of an actuator that is a row, as in EquipmentWork
    held: Lanes1  # (na,) -1: an implicit force is held at its lower bound, 1: at its upper bound
    dof_held: Lanes1  # (nv,) the same for the sum of a dof's forces
    was_held: Lanes1  # (na,) these two at the end of the last step
    dof_was_held: Lanes1  # (nv,)
    exerted: Lanes1  # (nv,) explicit forces of the actuators that are not PackActuators
    sum_total: Lanes1  # (nv,) sums where the dof's is not held: of the explicit forces, and the next four
    sum_offset: Lanes1
    sum_stiffness: Lanes1
    sum_damping: Lanes1
    actuator_total: Lanes1  # (nv,) of the explicit ones
    offset: Lanes1
    stiffness: Lanes1
    damping: Lanes1
    passive: Lanes1
    tendon: Lanes1
    tendon_length: Lanes1  # (nt,)
    tendon_moment: Lanes1  # (entries,)


class PackEquipment(NamedTuple):
    """Actuators of a pack, in place of an EquipmentBundle."""

    model: PackActuators
    data: PackActuation
