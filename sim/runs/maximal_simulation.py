"""A run in maximal coordinates: the same plan and the same recorded rows as a run in joint coordinates.

It is slow on purpose: numpy and a sparse LU factorisation per step, sharing nothing with the kernels but the model's
arrays, so that each can be checked against the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from artsim.sim.foundation.errors import StoppedError, UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.spatial import Real
from artsim.sim.maximal.bodies import BodyStates, Masses, explicit_forces, inertias, moved
from artsim.sim.maximal.conversion import body_states, joint_coordinates, joint_loads
from artsim.sim.maximal.joints import dof_lines, held_lines, joint_lines
from artsim.sim.maximal.lines import (
    COUPLING,
    DRIVE,
    HELD_DOF,
    LIMIT,
    LOOP,
    PASSIVE,
    BodyRows,
    Lines,
    by_line,
    joined_rows,
    wrenches_on_bodies,
)
from artsim.sim.maximal.loops import loop_lines
from artsim.sim.maximal.recorded_row import Taken, energies_of_bodies, recorded_row
from artsim.sim.maximal.scheme import Factor, Pattern, Scheme, Solution, solve_bodies
from artsim.sim.maximal.table import Mobility, Now, boxed_rows, rigid_rows, soft_rows
from artsim.sim.run_data.run_records import (
    AT_START,
    CONTROL_ROW,
    NON_FINITE,
    NOW,
    ROWS_RECORDED,
    RUNNING,
    STEP_NUMBER,
    STEPS_PER_ROW,
    STEPS_TO_TAKE,
    STOP_DOF,
    STOP_REASON,
)
from artsim.sim.runs.simulate import Simulation

_FORCES = {PASSIVE: "passive", DRIVE: "drive", COUPLING: "coupling", LIMIT: "limit"}


class MaximalSimulation(Simulation):
    """A run in progress in maximal coordinates; see Simulation."""

    def __post_init__(self) -> None:
        config = self.plan.config
        assert config.scheme_alpha is not None and config.scheme_beta is not None
        self.scheme = Scheme(self.plan.dt, config.scheme == "baumgarte", config.scheme_alpha, config.scheme_beta)
        self._model = self.plan.robot.model
        self._fittings = None if self.plan.equipped is None else self.plan.equipped.arrays
        self._masses = Masses.of(self._model)
        self._dof_line, self._held = dof_lines(self._model), held_lines(self._model)
        self._patterns: dict[str, Pattern] = {}
        super().__post_init__()
        self.bodies = body_states(self._model, self._masses, self.plan.qpos, self.plan.qvel)
        self._state.load[:] = self._load_at_rest()
        self._gap = 0.0, 0.0

    def reblock(self) -> None:
        """Allocate the block again after `block_rows` was changed."""
        self._block = self._make_block()
        self._wanted = {name: getattr(self._block, name) for name in self.plan.config.record}
        self._call = self._take_steps

    @property
    def bodies(self) -> BodyStates:
        """The current poses and velocities of all bodies; they may be set, for example from conversion.body_states."""
        return self._bodies

    @bodies.setter
    def bodies(self, bodies: BodyStates) -> None:
        self._bodies, self._lines = bodies, self._lines_of(bodies)
        self._state.qpos[:] = bodies.qpos
        self._state.qvel[:] = self._lines.rate[self._dof_line]

    def set_state(self, **values: Array) -> None:
        """Set qpos or qvel as in Simulation, and the bodies by them."""
        super().set_state(**values)
        self._place_bodies()

    def go_on_from(self, other: Simulation) -> None:
        """Take over the state of another run as in Simulation, and the bodies by it."""
        super().go_on_from(other)
        self._place_bodies()

    def _place_bodies(self) -> None:
        self.bodies = body_states(self._model, self._masses, self._state.qpos, self._state.qvel)

    def _own(self) -> dict[str, Array]:
        """The entries of a snapshot besides those of Simulation."""
        b = self._bodies
        return {
            "body_centre": np.array(b.centre),
            "body_turn": np.array(b.turn),
            "body_velocity": np.array(b.velocity),
            "joint_gap": np.array(self._gap),
        }

    def save(self) -> dict[str, Array]:
        """A snapshot as in Simulation, with the poses and velocities of the bodies."""
        return super().save() | self._own()

    def restore(self, snapshot: Mapping[str, Array]) -> None:
        """Continue from a snapshot as in Simulation; a snapshot of joint coordinates is refused."""
        shapes = {name: values.shape for name, values in self._own().items()}
        own = {name: np.array(snapshot[name]) for name in shapes if name in snapshot}
        for name, shape in shapes.items():
            if name not in own or own[name].shape != shape:
                raise UsageError(f"snapshot: {name} is missing or of another robot")
        super().restore({name: values for name, values in snapshot.items() if name not in own})
        qpos = np.array(snapshot["qpos"])
        self.bodies = BodyStates(own["body_centre"], own["body_turn"], own["body_velocity"], qpos)
        self._gap = float(own["joint_gap"][0]), float(own["joint_gap"][1])

    @property
    def joint_gap(self) -> tuple[float, float]:
        """The largest gaps of joints and loops so far [m], [rad]."""
        return self._gap

    @property
    def loop_gap(self) -> None:
        """None, since `joint_gap` includes loops: a loop is a joint like any other."""
        return None

    # ------------------------------------------------------------------ the loop

    def _take_steps(self) -> None:
        """Take and record the steps of a block, as a kernel does in joint coordinates."""
        counters, block = self._step.counters, self._block
        counters[ROWS_RECORDED] = 0
        with np.errstate(all="ignore"):
            if self.step == 0 or np.isnan(self._step.energy[AT_START]):
                self._step.energy[AT_START] = self._energy()
            for _ in range(int(block.plan[STEPS_TO_TAKE])):
                self._choose_controls()
                taken = self._take_step()
                if counters[STOP_REASON] != RUNNING:
                    break
                if counters[STEP_NUMBER] % block.plan[STEPS_PER_ROW] == 0:
                    recorded_row(taken, self._wanted, int(counters[ROWS_RECORDED]))
                    counters[ROWS_RECORDED] += 1
                self.bodies = taken.after
                counters[STEP_NUMBER] += 1
            self._step.energy[NOW] = self._energy()

    def _choose_controls(self) -> None:
        counters, start = self._step.counters, self._inputs.start_step
        counters[CONTROL_ROW] = max(int(np.searchsorted(start, counters[STEP_NUMBER], side="right")) - 1, 0)

    def _take_step(self) -> Taken:
        """Take one step: lines at this pose, rows, the linear system, poses at the end."""
        model, state, h = self._model, self._bodies, self.scheme.h
        lines, inertia = self._lines, inertias(self._masses, state.rotation)
        control = int(self._step.counters[CONTROL_ROW])
        now = Now(model, self._inputs, control, self.scheme, lines, state.qpos, self._dof_line)
        torque = self._inputs.torque[now.control]
        known = explicit_forces(model, state, inertia) + wrenches_on_bodies(lines, self._dof_line, torque, len(inertia))
        rigid = rigid_rows(now, self._held)
        mobility = self._mobility_of(inertia, lines, rigid)
        held = joined_rows([rigid, *soft_rows(now, mobility)])
        boxed = boxed_rows(now, mobility, self._state.load, self._fittings)
        solution = solve_bodies(self._factor("all", inertia, lines, held), h * known.ravel(), lines, held, boxed)
        self._note(now, joined_rows([held, boxed]), solution)
        return self._taken(now, joined_rows([held, boxed]), solution)

    def _taken(self, now: Now, rows: BodyRows, solution: Solution) -> Taken:
        """Store the state after the step and return the step with its forces."""
        state, scheme, change = self._bodies, self.scheme, solution.change.reshape(-1, 6)
        after = moved(state, scheme.h * (state.velocity + scheme.ahead * change))
        after = replace(after, velocity=state.velocity + change)
        if self._step.counters[STOP_REASON] == RUNNING:
            after = replace(after, qpos=joint_coordinates(self._model, self._masses, after))
        force = np.concatenate([solution.held, solution.boxed]) / scheme.h
        torque = self._inputs.torque[now.control]
        by_source = {
            name: by_line(rows, np.where(rows.source == source, force, 0.0), now.lines)[self._dof_line]
            for source, name in _FORCES.items()
        }
        by_source |= self._frictions(rows, force, len(solution.held), now.lines)
        line_force = by_line(rows, force, now.lines)
        line_force[self._dof_line] += torque
        self._state.load[:] = self._loads(line_force)
        return Taken(
            model=self._model,
            equipment=self._fittings,
            masses=self._masses,
            state=state,
            after=after,
            velocity=now.lines.rate[self._dof_line],
            acceleration=change / scheme.h,
            lines=now.lines,
            dof_line=self._dof_line,
            line_force=line_force,
            forces=by_source | {"applied": np.array(torque)},
            dt=scheme.h,
            report=(float(solution.pivots), solution.residual),
        )

    def _frictions(self, rows: BodyRows, force: Real, held: int, lines: Lines) -> dict[str, Real]:
        """Split the force of joint friction, the bounded passive rows, in proportion to its constant parts."""
        model = self._model
        rubbing = (rows.source == PASSIVE) & (np.arange(len(force)) >= held)
        friction = by_line(rows, np.where(rubbing, force, 0.0), lines)[self._dof_line]
        most = model.friction + model.friction_coefficient * self._state.load
        share = np.divide(model.friction, most, out=np.zeros_like(most), where=most > 0)
        return {"friction_constant": share * friction, "friction_by_load": (1.0 - share) * friction}

    def _lines_of(self, state: BodyStates) -> Lines:
        """The lines of all joints, then those of all loops."""
        lines = joint_lines(self._model, self._masses, state)
        if self._fittings is None or not len(self._fittings.loop_kind):
            return lines
        more = loop_lines(self._fittings, self._masses, state)
        return Lines(*(np.concatenate(pair) for pair in zip(lines, more, strict=True)))

    # ------------------------------------------------------------------ the matrix

    def _factor(self, name: str, inertia: Real, lines: Lines, rows: BodyRows) -> Factor:
        if name not in self._patterns:
            self._patterns[name] = Pattern(len(inertia), lines, rows)
        try:
            return Factor(self._patterns[name], inertia, lines, rows)
        except RuntimeError as error:
            raise StoppedError(f"stopped at t = {self.time:.6g} s: the constraints are singular ({error})") from None

    def _mobility_of(self, inertia: Real, lines: Lines, rigid: BodyRows) -> Mobility:
        """J M⁻¹ Jᵀ (n,) of rows, without springs, dampers and drives; M is factorised on first use."""
        return lambda rows: self._factor("bare", inertia, lines, rigid).mobility(rows, lines)

    # ------------------------------------------------------------------ what is told

    def _note(self, now: Now, rows: BodyRows, solution: Solution) -> None:
        """Note non-finite velocities, active limits, gaps and residuals of the step."""
        f = self._step
        wrong = ~np.isfinite(solution.change.reshape(-1, 6)).all(axis=1)
        if wrong.any():
            f.counters[STOP_REASON] = NON_FINITE
            f.counters[STOP_DOF] = self._model.body_dof[max(int(np.argmax(wrong)), 1)]
        impulse = np.concatenate([solution.held, solution.boxed])
        pushed = rows.line[(rows.source == LIMIT) & (impulse > 0), 0]
        f.limit_steps[np.isin(self._dof_line, pushed)] += 1
        f.worst_residual[0] = max(f.worst_residual[0], solution.residual)
        error = np.abs(rows.error)
        f.coupling_error[0] = max(f.coupling_error[0], float(error[rows.source == COUPLING].max(initial=0.0)))
        joints = (rows.source == HELD_DOF) | (rows.source == LOOP)
        turning = now.lines.turning[rows.line[:, 0]]
        gap, tilt = (float(error[joints & (turning == angular)].max(initial=0.0)) for angular in (False, True))
        self._gap = max(self._gap[0], gap), max(self._gap[1], tilt)

    def _energy(self) -> float:
        return sum(energies_of_bodies(self._model, self._masses, self._bodies, self._lines.rate[self._dof_line]))

    # ------------------------------------------------------------------ loads, for the friction that goes by them

    def _load_at_rest(self) -> Real:
        """The loads of the joints at rest, since friction acts from the first step."""
        M = inertias(self._masses, self._bodies.rotation)
        force = explicit_forces(self._model, self._bodies, M)
        return self._loads(joint_loads(self._lines, M, force, self._dof_line, np.zeros(len(self._dof_line))))

    def _loads(self, line_force: Real) -> Real:
        """Load of each dof's joint (nv,) from the forces along its lines: |F| (linear) or √(|F|² + |T|²) (angular)."""
        squares = np.sum(line_force[: 6 * (len(self._masses.mass) - 1)].reshape(-1, 3) ** 2, axis=1)
        own = squares[self._dof_line // 3]
        found: Real = np.sqrt(np.where(self._model.dof_linear == 1, own, squares[self._dof_line // 6 * 2] + own))
        return found
