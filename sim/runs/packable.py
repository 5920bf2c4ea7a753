"""The part of a run that packs of 8 robots take: features, kernels, rows, and how forces of equipment are found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artsim.sim.constraints.kinds import KINDS, RowOrigins, total_room
from artsim.sim.contact.pack_contacts import bounces
from artsim.sim.equipment.arrays import (
    AFFINE,
    BODY,
    BY_ROW,
    CONTACT,
    FILTER,
    FILTER_EXACT,
    FIXED,
    INTEGRATOR,
    JOINT,
    NO_BIAS,
    NO_DYNAMICS,
    PATH_JOINT,
    PID,
    TENDON,
    Equipment,
)
from artsim.sim.foundation.jit import Entry, disabled
from artsim.sim.foundation.records import (
    WIDTH,
    Array,
)
from artsim.sim.run_data.integration import INTEGRATORS
from artsim.sim.run_data.registry import SOLVERS
from artsim.sim.run_data.run_records import NOT_CONVEX
from artsim.sim.runs.limit_choice import leaves_limits
from artsim.sim.runs.plan import Plan
from artsim.sim.stepping.packs import (
    CAST_OF_LANE,
    DELAY_OF_LANE,
    EXERT,
    KEEP_OF_LANE,
    PATHS,
    SOLVE_PACK,
    TAKE_TURNS,
    PackFeatures,
    integrator_of_packs,
    recorder_of_lanes,
    roll_entry,
)

_FILTERS = (NO_DYNAMICS, INTEGRATOR, FILTER, FILTER_EXACT)
_MOST_DOFS = 100  # since packs hold 8 mass matrices: beyond 110 a robot alone is as fast


def reason_against_packs(plan: Plan) -> str:
    """The first feature of a run that packs lack, or an empty string."""
    config = plan.config
    solver = SOLVERS[config.solver]
    reasons = {
        f"integrator {config.integrator} with limits of balls, couplings that are rows, or equipment other than affine "
        "actuators of joints": not _serves_rows(plan) and (has_ties(plan) or is_laden(plan)),
        f"solver {config.solver}": not (solver.packs or (solver.exact and not has_rows(plan))),
        "maximal coordinates": config.is_maximal,
        f"integrator {config.integrator}": INTEGRATORS[config.integrator].implicit,
        f"integrator {config.integrator} with limits": leaves_limits(config, plan.robot.model, plan.equipped),
        "steps chosen by accuracy": config.accuracy is not None,
        "recorded contact sensors of shapes with a gap": "sensors" in config.record and _senses_in_gaps(plan),
        "recorded sensors that are delayed": plan.delayed is not None and len(plan.delayed.arrays.sensor) > 0,
        f"contact of more than {_MOST_DOFS} dofs": plan.touching is not None and plan.robot.nv > _MOST_DOFS,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _senses_in_gaps(plan: Plan) -> bool:
    """True if sensors of contacts see contacts that are near but do not act, which packs do not list."""
    e, touching = equipment_of(plan), plan.touching
    if e is None or touching is None or not np.any(e.sensor_kind == CONTACT):
        return False
    return bool(np.any(touching.contacts.gap > 0) or np.any(touching.contacts.pair_gap > 0))


def _serves_rows(plan: Plan) -> bool:
    """True if the integrator has rows in packs, and forces that are found lane by lane."""
    return INTEGRATORS[plan.config.integrator].rows_in_packs


def has_rows(plan: Plan) -> bool:
    """True if the steps of packs may have constraint rows, or have couplings, or gains or damping that need M: their
    solver then reduces M̂. Drives that have a largest force may become rows."""
    if not _serves_rows(plan):
        return False
    if plan.touching is not None or plan.rules is not None or np.any(plan.inputs["drive_acceleration"]):
        return True
    of = origins_of(plan)
    return total_room(of).rows > 0 or len(plan.robot.model.coupling_follower) > 0


def has_ties(plan: Plan) -> bool:
    """True if rows beside those of contacts may act on several dofs."""
    rooms = [kind.room(origins_of(plan)) for kind in KINDS.values() if kind.lasting]
    return any(room.rows > room.narrow for room in rooms)


def origins_of(plan: Plan, contacts: int = 0) -> RowOrigins:
    """The parts of a run from which the rows of packs come, with room for `contacts`. Drives that have a largest force
    have places, since they may become rows."""
    driven = plan.inputs["drive_stiffness"] + plan.inputs["drive_damping"] > 0
    bounded = int(np.sum(driven & np.isfinite(plan.inputs["drive_limit"])))
    return RowOrigins(plan.robot.model, bounded, equipment_of(plan), plan.touching, contacts, plan.rules)


def equipment_of(plan: Plan) -> Equipment | None:
    return None if plan.equipped is None else plan.equipped.arrays


def has_helpers(plan: Plan) -> bool:
    """True if each lane has a single robot of its own, which finds delayed samples for the lane."""
    return plan.delayed is not None


def has_equalities(plan: Plan) -> bool:
    """True if lengths of tendons are tied to each other or to values."""
    e = equipment_of(plan)
    return e is not None and len(e.tendon_row_follower) > 0


def is_laden(plan: Plan) -> bool:
    """True if forces of the equipment are found lane by lane: it has more than the actuators that packs know,
    activations, or helpers of lanes.
    """
    e = equipment_of(plan)
    if e is None:
        return False
    if has_helpers(plan) or _has_acting_tendons(e):
        return True
    if plan.inputs["convex"][0] != NOT_CONVEX and np.any(e.actuator_linear == BY_ROW):  # then explicit
        return True
    parts = ("compensated_mass", "damper_dof", "spring_body", "box_body", "ellipsoid_body", "link_wrench_link")
    if any(len(getattr(e, part)) > 0 for part in parts):
        return True
    assert plan.equipped is not None
    return plan.equipped.activations > 0 or not all(_is_constant(e, a) for a in _actuators(plan)[1])


def _has_acting_tendons(e: Equipment | None) -> bool:
    """True if tendons do more than pass on forces of actuators."""
    if e is None:
        return False
    limited = np.isfinite(e.tendon_lower) | np.isfinite(e.tendon_upper)
    acting = limited | (e.tendon_armature > 0.0) | (e.tendon_friction > 0.0)
    acting |= e.tendon_stiffness.any(axis=1) | e.tendon_damping.any(axis=1)
    return bool(acting.any()) or len(e.tendon_row_follower) > 0


def is_calibrated(plan: Plan) -> bool:
    """True if constants of the equipment depend on the robot's masses, or a single robot, which has such constants,
    finds the forces."""
    e = equipment_of(plan)
    if e is None:
        return False
    return is_laden(plan) or len(e.loop_kind) > 0 or any(_is_ratio(e, a) for a in _actuators(plan)[1])


def _actuators(plan: Plan) -> tuple[Sequence[Equipment], Sequence[int]]:
    """The equipment and the number of each active actuator."""
    e = equipment_of(plan)
    if e is None:
        return (), ()
    active = [int(a) for a in np.flatnonzero(e.actuator_active)]
    return [e] * len(active), active


def _is_affine(e: Equipment, a: int) -> bool:
    """True if actuator a acts on a joint of one dof, by constant slopes that never make its force explicit."""
    single = e.actuator_transmission[a] == JOINT and e.actuator_entry[a + 1] - e.actuator_entry[a] == 1
    return bool(single) and _has_constant_slopes(e, a)


def _is_on_fixed_tendon(e: Equipment, a: int) -> bool:
    """True if actuator a acts on a fixed tendon, by constant slopes that never make its force explicit."""
    if e.actuator_transmission[a] != TENDON or e.actuator_by_inertia[a]:
        return False
    t = e.actuator_target[a]
    alone = not np.isfinite([e.tendon_force_lower[t], e.tendon_force_upper[t]]).any()
    fixed = e.path_kind[e.tendon_path[t]] == PATH_JOINT
    slopes = e.actuator_bias[a] == AFFINE and bool(e.bias_parameters[a, 1:3].any())
    explicit = e.actuator_linear[a] != BY_ROW
    return bool(alone and fixed and not (slopes and explicit)) and _has_constant_slopes(e, a)


def _is_constant(e: Equipment, a: int) -> bool:
    """True if packs know the moment arms and the slopes of actuator a, which is all but its input."""
    return _is_affine(e, a) or _is_on_fixed_tendon(e, a)


def _has_constant_slopes(e: Equipment, a: int) -> bool:
    """True if the force of actuator a has constant slopes that never make it explicit."""
    gain, bias, (_, stiffness, damping) = e.actuator_gain[a], e.actuator_bias[a], -e.bias_parameters[a, :3]
    straight = gain == FIXED or (gain == AFFINE and not e.gain_parameters[a, 1:3].any())
    falling = bias != AFFINE or (stiffness >= 0.0 and (damping >= 0.0 or _is_ratio(e, a)))
    plain = e.actuator_dynamics[a] in _FILTERS and e.actuator_period[a] == 0.0
    return bool(straight and falling and plain and bias in (NO_BIAS, AFFINE))


def _is_ratio(e: Equipment, a: int) -> bool:
    """True if the damping of actuator a is given by its ratio (stepping/calibration.py)."""
    servo = e.gain_parameters[a, 0] == -e.bias_parameters[a, 1] or e.actuator_gain[a] == PID
    return bool(servo and e.actuator_bias[a] == AFFINE and e.bias_parameters[a, 2] > 0.0)


def moment_arms(e: Equipment) -> Array:
    """(entries,) the moment arms of actuators on joints of one dof and on fixed tendons, as in actuator_moment; 0 for
    others."""
    arms = np.zeros(len(e.actuator_dof))
    for a, first in enumerate(e.actuator_entry[:-1]):
        gear, t, last = e.actuator_gear[a, 0], e.actuator_target[a], e.actuator_entry[a + 1]
        if e.actuator_transmission[a] == JOINT and last - first == 1:
            arms[first] = gear
        elif e.actuator_transmission[a] == TENDON and e.path_kind[e.tendon_path[t]] == PATH_JOINT:
            path = slice(e.tendon_path[t], e.tendon_path[t + 1])
            of_dofs = [e.path_value[path][e.path_index[path] == k].sum() for k in e.actuator_dof[first:last]]
            arms[first:last] = gear * np.array(of_dofs)
    return arms


def kernels(plan: Plan) -> list[tuple[Entry, int]]:
    """The kernels that the samples of a plan need, with their widths."""
    if plan.config.is_maximal:
        return []
    if reason_against_packs(plan):
        return [(entry, 1) for entry in plan.entries]
    integrator = integrator_of(plan)
    packed = [entry_of_packs(plan), *([SOLVE_PACK] if has_rows(plan) else [])]
    packed += [] if integrator is None else [integrator]
    of_lanes = [*plan.shared_entries, TAKE_TURNS] + [EXERT] * is_calibrated(plan)
    if not {"qpos", "qvel"}.issuperset(plan.config.record):
        of_lanes += [recorder_of_lanes(pack_features(plan))] + [CAST_OF_LANE] * (plan.seen is not None)
    if plan.delayed is not None:
        of_lanes += [DELAY_OF_LANE, KEEP_OF_LANE]
    of_lanes += [PATHS] * has_equalities(plan)
    return [(entry, 1) for entry in of_lanes] + [(entry, pack_width()) for entry in packed]


def entry_of_packs(plan: Plan) -> Entry:
    """The packs' kernel for this plan."""
    return roll_entry(pack_features(plan))


def integrator_of(plan: Plan) -> Entry | None:
    """The packs' kernel of an integrator with steps of its own, or None."""
    return integrator_of_packs(INTEGRATORS[plan.config.integrator], pack_features(plan))


def pack_features(plan: Plan) -> PackFeatures:
    """The features that the packs of this plan need."""
    e, touching = equipment_of(plan), plan.touching
    return PackFeatures(
        equipped=e is not None,
        rows=has_rows(plan),
        touching=touching is not None,
        damped=plan.rules is not None,
        bouncing=touching is not None and bounces(touching),
        swept=touching is not None and plan.config.continuous,
        sticky=_sticks(plan),
    )


def attractors(plan: Plan) -> Array:
    """The active actuators that make a body adhere to bodies that it touches."""
    of_bodies = [a for e, a in zip(*_actuators(plan), strict=True) if e.actuator_transmission[a] == BODY]
    return np.array(of_bodies, np.int64)


def _sticks(plan: Plan) -> bool:
    """True if contacts may adhere."""
    if plan.touching is None:
        return False
    g = plan.touching.contacts
    return bool(np.any(g.adhesion > 0.0) or np.any(g.pair_adhesion > 0.0)) or len(attractors(plan)) > 0


def pack_width() -> int:
    """Number of robots in a pack; 1 if kernels run as plain Python."""
    return 1 if disabled() else WIDTH
