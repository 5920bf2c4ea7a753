"""A run in maximal coordinates with all that the product's refuses: tendons, actuators, ranges of balls, springs that
are not linear, carried weights and computed torque. It checks the engine in joint coordinates and nothing else.
"""

from __future__ import annotations

from typing import ClassVar
from unittest.mock import patch

import numpy as np

from artsim.io.runs.prepare import held_controls
from artsim.sim.articulation.description import Articulation
from artsim.sim.equipment.arrays import TENDON as BY_TENDON
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.bodies import BodyStates
from artsim.sim.maximal.conversion import in_joints, line_matrix
from artsim.sim.maximal.lines import BodyRows, Lines
from artsim.sim.maximal.recorded_row import Taken
from artsim.sim.maximal.scheme import Solution
from artsim.sim.maximal.table import Now
from artsim.sim.run_data.run_records import COMPUTED_TORQUE
from artsim.sim.runs import maximal_choice
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.maximal_simulation import MaximalSimulation
from artsim.sim.runs.plan import Plan, plan_run
from tests.maximal.oracle.body_actuators import actuator_laws, actuator_rows_of_bodies, advanced
from tests.maximal.oracle.body_tendons import (
    equality_errors,
    spring_energy_of_tendons,
    spring_forces,
    tendon_rows_of_bodies,
)
from tests.maximal.oracle.carried import Lengths, carried, reference_lengths
from tests.maximal.oracle.computed_torque import torque_for_targets
from tests.maximal.oracle.joint_ranges import range_rows
from tests.maximal.oracle.passive_forces import carried_weights, energy_of_springs, passive_forces_of_joints
from tests.maximal.oracle.refusals import refuse_what_the_oracle_lacks
from tests.maximal.oracle.sums import ACTUATOR, TENDON, summed


def oracle_of(articulation: Articulation, config: RunConfig) -> OracleSimulation:
    """A simulation by the oracle; RunConfig of --coordinates maximal."""
    with patch.object(maximal_choice, "_of_robot", lambda *_: ""):
        plan: Plan = plan_run(articulation, config)
    refuse_what_the_oracle_lacks(plan, articulation)
    return OracleSimulation(plan, held_controls(plan))


class OracleSimulation(MaximalSimulation):
    """A run in progress; see MaximalSimulation."""

    on_bodies: ClassVar = {TENDON: "tendon", ACTUATOR: "drive", **MaximalSimulation.on_bodies}
    _lengths: Lengths | None = None

    def _lines_of(self, bodies: BodyStates) -> tuple[Lines, slice]:
        lines, loops = super()._lines_of(bodies)
        e = self._fittings
        if e is None:
            return lines, loops
        if self._lengths is None:
            self._lengths = reference_lengths(e, self._model, self._masses, self._dof_line)
        self._carried = carried(e, self._model, self._masses, bodies, lines, self._dof_line, self._lengths)
        return self._carried.lines, loops

    def _further_forces(self, now: Now) -> dict[str, Real]:
        """Passive forces, carried weights, and the forces of actuators that have no row."""
        e, model = self._fittings, self._model
        given = {name: np.zeros(len(now.lines.rate)) for name in ("passive", "drive")}
        self._weight = np.zeros((len(self._masses.mass), 6))
        if e is None:
            return given
        given["passive"][self._dof_line] += passive_forces_of_joints(e, model, now.qpos, now.lines.rate[self._dof_line])
        self._weight = carried_weights(e, model, self._masses, self._bodies)
        if self._weight.any():  # as forces in the joints, that is where it is carried
            size = 6 * (len(self._weight) - 1)
            given["passive"][:size] += np.linalg.solve(line_matrix(now.lines).T, self._weight[1:].ravel())
            k = np.flatnonzero(e.gravity_by_actuator)
            own = given["passive"][self._dof_line[k]]
            given["drive"][self._dof_line[k]] += own
            given["passive"][self._dof_line[k]] -= own
        transmissions = self._carried.transmissions
        given_controls = self._inputs.control[now.control]
        self._laws = actuator_laws(e, transmissions.length, given_controls, self._state.activation, self.scheme.h)
        rate = summed(transmissions.line, transmissions.factor, self._lines.rate)
        self._acting, self._actuators, self._explicit = actuator_rows_of_bodies(
            self.scheme, e, transmissions, self._laws, rate
        )
        there = transmissions.line >= 0
        amounts = (transmissions.factor * self._explicit[:, None])[there]
        np.add.at(given["drive"], transmissions.line[there], amounts)
        return given

    def _wanted_torque(self, now: Now, given: dict[str, Real]) -> Real:
        if self.plan.config.built_in.law != COMPUTED_TORQUE:
            return super()._wanted_torque(now, given)
        e = self._fittings
        passive = self._in_joints(now.lines, given["passive"])
        if e is not None:
            borne = in_joints(self._lines, self._weight, self._dof_line)
            passive = passive + np.where(e.gravity_by_actuator == 1, borne, 0.0)
            tendons = self._carried.tendons
            pull, _, _ = spring_forces(e, tendons)
            along = np.zeros(len(self._lines.rate))
            there = tendons.line >= 0
            np.add.at(along, tendons.line[there], (tendons.factor * pull[:, None])[there])
            passive = passive + self._in_joints(self._lines, along)
        return torque_for_targets(now, self._masses, self._bodies, self._state.load, passive)

    def _further_rows(self, now: Now) -> list[BodyRows]:
        """The rows of ranges of rotations, tendons and actuators."""
        ranges = range_rows(self.scheme, self._model, now.lines, now.qpos, self._dof_line)
        e = self._fittings
        if e is None:
            return [ranges]
        tuning = np.tile([self.scheme.alpha, self.scheme.beta], (len(e.tendon_row_follower), 1))
        pulled, self._shares = tendon_rows_of_bodies(self.scheme, e, self._carried.tendons, tuning)
        return [ranges, *pulled, self._acting]

    def _taken(self, now: Now, rows: BodyRows, solution: Solution, given: dict[str, Real]) -> Taken:
        self._fitted = self._fitted_in(rows, solution)
        return super()._taken(now, rows, solution, given)

    def _fitted_in(self, rows: BodyRows, solution: Solution) -> dict[str, Real]:
        """Lengths, velocities and forces of tendons and actuators over the step."""
        e = self._fittings
        if e is None:
            return {}
        transmissions, tendons = self._carried.transmissions, self._carried.tendons
        force = np.concatenate([solution.held, solution.boxed]) / self.scheme.h
        acting = np.array(self._explicit)
        acting[self._actuators] = force[rows.source == ACTUATOR]
        pull = force[rows.source == TENDON] @ self._shares
        by_tendon = np.flatnonzero(e.actuator_transmission == BY_TENDON)
        np.add.at(pull, e.actuator_target[by_tendon], e.actuator_gear[by_tendon, 0] * acting[by_tendon])
        error, _ = equality_errors(e, tendons)
        if self.step > 0:
            self._step.tendon_error[0] = max(self._step.tendon_error[0], float(np.max(np.abs(error), initial=0.0)))
        return {
            "activation": np.array(self._state.activation),
            "actuator_force": acting,
            "actuator_length": transmissions.length,
            "actuator_velocity": summed(transmissions.line, transmissions.factor, self._lines.rate),
            "tendon_length": tendons.length,
            "tendon_velocity": tendons.rate,
            "tendon_force": pull,
        }

    def _record(self, taken: Taken, row: int) -> None:
        super()._record(taken, row)
        for name in self._wanted.keys() & self._fitted.keys():
            self._wanted[name][row] = self._fitted[name]
        if "energy" in self._wanted:
            self._wanted["energy"][row] += 0.0, self._stored()

    def _move_on(self, taken: Taken) -> None:
        e = self._fittings
        if e is not None and len(self._state.activation):
            length, rates = self._carried.transmissions.length, self._laws.activation_rate
            self._state.activation[:] = advanced(e, self._state.activation, rates, length, self.scheme.h)
        super()._move_on(taken)

    def _energy(self) -> float:
        return super()._energy() + self._stored()

    def _stored(self) -> float:
        """Energy of springs beside those of joints with one coordinate [J]."""
        e = self._fittings
        if e is None:
            return 0.0
        return spring_energy_of_tendons(e, self._carried.tendons) + energy_of_springs(e, self._model, self._bodies.qpos)
