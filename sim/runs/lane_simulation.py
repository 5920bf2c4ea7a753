"""The single robot inside a pack: it takes steps that a lane cannot, and finds rows and forces for lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from artsim.sim.articulation.model import D_MIN
from artsim.sim.contact.continuous import connect_advancement
from artsim.sim.equipment.arrays import (
    EquipmentBundle,
)
from artsim.sim.foundation.jit import bind, point_at
from artsim.sim.foundation.records import (
    Array,
)
from artsim.sim.geometry.contacts import ContactWork
from artsim.sim.run_data.run_records import (
    Rows,
)
from artsim.sim.run_data.scratch import SolverBundle
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.packable import is_bounded
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.simulate import Simulation
from artsim.sim.runs.varied import rubbing
from artsim.sim.stepping.packs import (
    BOUND,
    CLAMP,
    EXERT,
    LANE_CONTROLS,
    LANE_GAINS,
    LANE_PROPERTIES,
    Exerted,
    Helpers,
    Single,
    find_entry,
    miss_entry,
)

CALIBRATED = ("acceleration0", "actuator_damping", "loop_mobility", "tendon_mobility")  # by a robot's masses
_BOUNDED = ("actuator_implicit", "actuator_force", "actuator_total", "dof_held")  # arrays about forces at their bounds
# fields of a helper's records that are in Helpers
_OF_STATE, _OF_STEP = ("qpos", "qvel", "activation", "history"), ("counters", "retries", "velocity", "middle")
_OF_WORK = (
    *("gain", "drift", "rotation", "offset", "arm", "axis"),
    *("angular_velocity", "acceleration", "angular_acceleration", "stiffening"),
)
_ENTRIES = ("exerter", "finder", "clamper", "misser", "bounder", "keeper")  # of Helpers
_ALWAYS = 1 << 62  # a step number that is never reached


class LaneSimulation(Simulation):
    """The step of a single robot, into whose arrays packs write."""

    _calibrator: Callable[[], None] | None = None

    def reblock(self) -> None:
        """See Simulation."""
        super().reblock()
        self._calibrator = None

    def arrays(self) -> Single:
        """The arrays of the single robot."""
        model, inputs, state = self.plan.robot.model, self._inputs, self._state
        from_model = {name: getattr(model, name) for name in LANE_PROPERTIES}
        from_inputs = {name: getattr(inputs, name) for name in (*LANE_GAINS, *LANE_CONTROLS)}
        from_state = {
            name: getattr(state, name)
            for name in (*_OF_STATE, "still", "load", "change", "earlier_change", "impulse", "contact")
        }
        touching = self.plan.touching
        frictions = [np.zeros((0, 5))] * 2
        if touching is not None:
            frictions = [touching.contacts.friction, touching.contacts.pair_friction]
        of_contacts = dict(zip(("contact_friction", "pair_friction"), frictions, strict=True))
        return Single(
            counters=self._step.counters,
            tangent=self._step.tangent,
            effective_coupling=self._step.effective_coupling,
            yielded=self._step.yielded,
            **from_model,
            **from_inputs,
            **from_state,
            **self._of_equipment((*CALIBRATED, *_BOUNDED)),
            **of_contacts,
        )

    def _of_equipment(self, names: Sequence[str]) -> dict[str, Array]:
        """Arrays of the robot's equipment, by name."""
        if self._equipment is None:
            return dict.fromkeys(names, np.zeros(0)) | {"loop_mobility": np.zeros((0, 2))}
        return {name: getattr(self._equipment.data, name) for name in names}

    def as_helpers(self) -> Helpers:
        """The robot's arrays as Helpers with a single row, for one helper that serves all lanes."""
        state, step, work, calibrated = self._state, self._step, self._work, self._of_equipment(CALIBRATED)
        arrays = {
            **{name: getattr(state, name) for name in _OF_STATE},
            **calibrated,
            "control": self._inputs.control[0],
            **{name: getattr(step, name) for name in _OF_STEP},
            **{name: getattr(work, name) for name in _OF_WORK},
        }
        pointers = {name: np.zeros((1, 2), np.int64) for name in _ENTRIES}
        return Helpers(**pointers, **{name: values[None] for name, values in arrays.items()})

    def become_helper(self, helpers: Helpers, lane: int) -> None:
        """Replace the robot's own arrays by row `lane` of the helpers' arrays."""
        mine = {name: getattr(helpers, name)[lane] for name in helpers._fields}
        for name, values in self.as_helpers()._asdict().items():
            mine[name][...] = values[0]

        def of(record: Any, names: Sequence[str]) -> Any:
            return record._replace(**{name: mine[name] for name in names})

        self._state, self._step = of(self._state, _OF_STATE), of(self._step, _OF_STEP)
        self._work = of(self._work, _OF_WORK)
        self._inputs = self._inputs._replace(control=mine["control"][None])
        if self._equipment is not None:
            self._equipment = EquipmentBundle(self._equipment.model, of(self._equipment.data, CALIBRATED))
        model = self.plan.robot.model
        soft = model.row_impedance[:, D_MIN] >= 0.0
        self._step.effective_coupling[soft] = model.row_mobility[soft]
        self.reblock()
        if self._equipment is not None:
            helpers.keeper[lane] = self._equipment.data.keeper

    def make_room(self) -> None:
        """Enlarge the room for contacts. Raises StoppedError at the largest allowed number."""
        self._enlarge()
        if self._failure is not None:
            raise self._failure

    def take_masses(self, of: Single) -> None:
        """Take over another single robot's arrays of the model."""
        model = self.plan.robot.model
        for name in LANE_PROPERTIES:
            getattr(model, name)[...] = getattr(of, name)

    def calibrate(self, exerted: Exerted) -> None:
        """Compute the constants of actuators that depend on the robot's masses, in the pose of the file."""
        if self._equipment is None:
            return
        self._equipment.data.calibrated[0] = 0.0
        if self._calibrator is None:
            self._calibrator = bind(EXERT, 1, self._robot, self._run, self._equipment, exerted)
        self._calibrator()

    def exert_at(self, pointers: Array, exerted: Exerted) -> object:
        """Let kernels that receive `pointers` find the forces of the robot's equipment, while the returned object is
        kept."""
        return point_at(EXERT, 1, pointers, self._robot, self._run, self._equipment, exerted)

    def clamp_at(self, pointers: Array, exerted: Exerted) -> object:
        """Let kernels that receive `pointers` hold actuators that are rows at their bounds, while the returned object
        is kept."""
        return point_at(CLAMP, 1, pointers, self._run, self._equipment, exerted)

    def bound_at(self, pointers: Array, exerted: Exerted) -> object:
        """Let kernels that receive `pointers` direct the rows that bound velocities of links, while the returned object
        is kept."""
        return point_at(BOUND, 1, pointers, self._robot, self._run, self._rules, exerted)

    def find_at(self, pointers: Array, found: Rows) -> object:
        """Let kernels that receive `pointers` find the robot's rows, while the returned object is kept."""
        rules = self._rules if is_bounded(self.plan) else None
        entry = find_entry(self._equipment is not None, rules is not None)
        return point_at(entry, 1, pointers, self._robot, self._run, found, self._equipment, rules, SolverBundle())

    def miss_at(self, pointers: Array, found: Rows) -> object:
        """Let kernels that receive `pointers` find the misses of the rows' targets, while the returned object is
        kept."""
        bundles = self._robot, self._run, found, self._equipment
        return point_at(miss_entry(self._equipment is not None), 1, pointers, *bundles)

    def sweep_in(self, work: ContactWork) -> object:
        """Let kernels that receive `work` run the continuous check over the robot's motion, by connect_advancement."""
        plan = self.plan
        assert plan.touching is not None
        return connect_advancement(plan.touching, plan.equipped, self._robot, self._run, work)

    def point_at(self, pointers: Array) -> object:
        """Let kernels that receive `pointers` take its steps, for as long as the returned object is kept."""
        self._block.plan[:] = 1, _ALWAYS
        return point_at(self.plan.entry, 1, pointers, *self._bundles())


def with_own_arrays(plan: Plan) -> Plan:
    """A plan that records nothing, with copies of the arrays that packs write into."""
    model = plan.robot.model
    own = {name: np.array(getattr(model, name)) for name in LANE_PROPERTIES}
    compiled = replace(plan.robot.compiled, model=model._replace(**own))
    inputs = {name: np.array(values) for name, values in plan.inputs.items()}
    config = replace(plan.config, record=(), steps=1, every=1)
    if plan.touching is not None:
        plan = replace(plan, touching=rubbing(plan.touching, 1.0))
    return replace(plan, robot=replace(plan.robot, compiled=compiled), inputs=inputs, config=config)


def one_row(controls: Controls) -> Controls:
    """Controls with the first row only, in whose place packs write the others."""
    return Controls(np.zeros(1, np.int64), **{name: getattr(controls, name)[:1] for name in LANE_CONTROLS})
