"""Allocates the arrays of a pack: robots, rows, equipment and contacts of all lanes, from the plan of one run.

Parts that the run lacks are None, as its kernel has them (packs.PackFeatures). No numba here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from artsim.sim.articulation.model import D_MIN
from artsim.sim.articulation.state import RobotBundle, State, make_workspace
from artsim.sim.contact.pack_contacts import (
    PackAdhesion,
    PackContactBundle,
    PackSolver,
    PackSweep,
    SingleSolver,
    enlarged,
    make_lane_contacts,
    make_lane_solver,
    make_own_rows,
    make_pack_contacts,
    make_pack_rows,
)
from artsim.sim.equipment.arrays import PER_VELOCITY, EquipmentBundle, make_equipment_work
from artsim.sim.foundation.jit import point_at
from artsim.sim.foundation.records import Array, allocate, kinds, zeros
from artsim.sim.geometry.contacts import ContactBundle, make_bounces, make_contact_work
from artsim.sim.run_data.link_rules import RuleBundle, make_link_rule_work
from artsim.sim.run_data.run_records import Inputs, Rows
from artsim.sim.run_data.scratch import NewtonWork, SolverBundle
from artsim.sim.runs.lane_simulation import make_helpers
from artsim.sim.runs.packable import (
    attractors,
    equipment_of,
    has_ties,
    moment_arms,
    origins_of,
)
from artsim.sim.runs.plan import Plan
from artsim.sim.stepping.allocation import make_step
from artsim.sim.stepping.packs import (
    LANE_CONTROLS,
    SOLVE_PACK,
    Alone,
    LaneBundle,
    PackControls,
    PackEquipmentWork,
    PackFeatures,
    PackInputs,
    PackModel,
    PackRules,
    PackState,
    PackStep,
    PackWork,
)


def in_lanes(record: type[Any], values: Any, width: int) -> Any:
    """A record with lanes that all hold `values`."""
    arrays = {}
    for name, kind in kinds(record).items():
        value = getattr(values, name)
        if kind.lanes:
            lanes = zeros(value.shape, kind, width)
            lanes[...] = value[..., None] if width > 1 else value
            value = lanes
        arrays[name] = value
    return record(**arrays)


def as_lanes(values: Array) -> Array:
    """Move the lanes of (n, …) to the last axis."""
    return np.moveaxis(values, 0, -1) if len(values) > 1 else values[0]


# ------------------------------------------------------------------ the robots and their steps


def make_robots(plan: Plan, state: State, width: int) -> RobotBundle:
    """The robots of all lanes, with the masses of the plan, and states like that of a single robot."""
    model = plan.robot.model
    return RobotBundle(
        in_lanes(PackModel, model, width), make_states(PackState, state, width), make_workspace(model, width)
    )


def make_states(record: type[Any], state: State, width: int) -> State:
    """Allocate the states of all lanes, like that of a single robot."""
    made: State = allocate(record, {name: values.shape for name, values in state._asdict().items()}, width)
    return made


def make_pack_inputs(plan: Plan, width: int) -> Any:
    """The inputs of a step, with the gains of the plan."""
    given: dict[str, Array] = {name: np.ascontiguousarray(values) for name, values in plan.inputs.items()}
    given |= dict.fromkeys(LANE_CONTROLS, np.zeros((1, plan.robot.nv)))
    given |= {"start_step": np.zeros(1, np.int64), "control": np.zeros((1, plan.control.size))}
    return in_lanes(PackInputs, Inputs(**given), width)


def make_pack_step(plan: Plan, width: int) -> Any:
    """Allocate the scratch of a step of all lanes."""
    model = plan.robot.model
    step = make_step(model, equipment_of(plan))
    made = PackStep(**{name: zeros(getattr(step, name).shape, kind, width) for name, kind in kinds(PackStep).items()})
    made.drive_inertia[:] = 1.0
    soft = model.row_impedance[:, D_MIN] >= 0.0
    made.effective_coupling[soft] = model.row_mobility[soft, None] if width > 1 else model.row_mobility[soft]
    return made


def make_lane_bundle(plan: Plan, alone: Alone, controls: PackControls, width: int) -> LaneBundle:
    """The records of a run that only packs have."""
    return LaneBundle(
        _make_pack_work(plan, width),
        alone,
        controls,
        make_helpers(width, alone.step, plan.config.seed),
    )


def _make_pack_work(plan: Plan, width: int) -> PackWork:
    robot = plan.robot
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(PackWork._fields, (1,)),
        **dict.fromkeys(("alive", "began", "stopped", "stopped_dof", "reason", "number"), (width,)),
        **dict.fromkeys(("unsolved", "worst_residual"), (width,)),
        "stiffening": (len(robot.model.body_parent), 6),
        "rater": (2,),
        "slack": (robot.nv,),
        "delay": (width, 0 if plan.delayed is None else len(plan.delayed.arrays.delay)),
    }
    work: PackWork = allocate(PackWork, shapes, width)
    if plan.delayed is not None:
        work.delay[:] = plan.delayed.arrays.delay
    return work


# ------------------------------------------------------------------ rows


def make_rows_and_solver(plan: Plan, room: int, width: int) -> tuple[Rows, NewtonWork, PackSolver]:
    """The rows of a step with room for those of `room` contacts, and their solver's scratch."""
    return make_pack_rows(origins_of(plan, room), has_ties(plan), width)


def connect_solver(
    robot: RobotBundle,
    rows: Rows,
    step: Any,
    newton: NewtonWork,
    pack: PackSolver,
    single: SingleSolver,
    width: int,
) -> object:
    """Let the pack's kernel call the solver, for as long as the returned object is kept."""
    solver = SolverBundle(newton, pack=pack, own=make_own_rows(newton, width), lane=make_lane_solver(), single=single)
    return point_at(SOLVE_PACK, width, pack.entry, robot, rows, step, solver)


# ------------------------------------------------------------------ equipment of robots, and forces on them


def make_pack_equipment(plan: Plan, width: int) -> EquipmentBundle | None:
    """The equipment of all lanes, None without any, with the moment arms and dampings that are constant."""
    if plan.equipped is None:
        return None
    e = plan.equipped.arrays
    work = make_equipment_work(plan.robot.model, e, plan.equipped.activations, PackEquipmentWork, width)
    known = {"actuator_moment": moment_arms(e), "actuator_damping": -e.bias_parameters[:, PER_VELOCITY]}
    for name, values in known.items():
        getattr(work, name)[...] = values[:, None] if width > 1 else values
    return EquipmentBundle(e, work)


def make_pack_rules(plan: Plan, width: int) -> Any:
    """The record of the pack's damping of links; None where links have no rules."""
    if plan.rules is None:
        return None
    work = make_link_rule_work(plan.robot.model, plan.rules)
    shapes = {name: values.shape for name, values in work._asdict().items()}
    return RuleBundle(plan.rules, allocate(PackRules, shapes, width))


# ------------------------------------------------------------------ contacts


def make_contact_bundle(plan: Plan, needs: PackFeatures, room: int, listed: int, width: int) -> PackContactBundle:
    """The contacts of all lanes, with room for `room` in each and `listed` in their list, and those that detection
    finds for one lane."""
    touching = plan.touching
    assert touching is not None
    found = make_contact_work(touching, room)
    return PackContactBundle(
        touching.contacts,
        make_pack_contacts(touching, listed, width),
        make_lane_contacts(room, listed, width),
        ContactBundle(touching.contacts, found),
        bounces=make_bounces(listed, width) if needs.bouncing else None,
        sweep=PackSweep(found.straight) if needs.swept else None,
        adhesion=_make_adhesion(plan, listed, width) if needs.sticky else None,
    )


def with_contacts_of(old: PackContactBundle, new: PackContactBundle) -> PackContactBundle:
    """`new`, which has more room, with the lanes' contacts of `old`."""
    return new._replace(lanes=enlarged(old.lanes, new.lanes))


def _make_adhesion(plan: Plan, listed: int, width: int) -> PackAdhesion:
    e, number = equipment_of(plan), attractors(plan)
    of_contacts = dict.fromkeys(("near", "loose"), (listed,))
    of_actuators = dict.fromkeys(("number", "body", "force"), number.shape)
    made: PackAdhesion = allocate(PackAdhesion, {**of_contacts, **of_actuators}, width)
    return made._replace(number=number, body=number if e is None else e.actuator_target[number])
