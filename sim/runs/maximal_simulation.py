"""A run in maximal coordinates: the same plan and the same recorded rows as a run in joint coordinates.

This engine is slow on purpose: numpy and a sparse LU factorisation per step. Engine and kernels share nothing but the
model's arrays, so that each can be checked against the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from artsim.sim.foundation.errors import StoppedError, UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.contacts import CONTACTS, DIRECTIONS, FOUND_CONTACTS
from artsim.sim.maximal.bodies import BodyStates, Masses, explicit_forces, inertias, moved
from artsim.sim.maximal.body_contacts import ContactFinder, ContactRows, contact_lines, name_contacts
from artsim.sim.maximal.body_wrenches import link_wrenches_of_bodies, wrench_lines
from artsim.sim.maximal.conversion import body_states, joint_coordinates, joint_loads, line_matrix
from artsim.sim.maximal.joints import carried_by_leaders, dof_lines, held_lines, joint_lines
from artsim.sim.maximal.lines import (
    CONTACT,
    COUPLING,
    DRIVE,
    HELD_DOF,
    LIMIT,
    LOOP,
    PASSIVE,
    BodyRows,
    Lines,
    by_line,
    joined_lines,
    joined_rows,
    wrenches_on_bodies,
)
from artsim.sim.maximal.loops import loop_lines
from artsim.sim.maximal.recorded_row import SOURCES, Taken, energies_of_bodies, forces_in_joints, recorded_row
from artsim.sim.maximal.scheme import Factor, Pattern, Scheme, Solution, solve_bodies
from artsim.sim.maximal.table import Mobility, Now, boxed_rows, rigid_rows, soft_rows
from artsim.sim.run_data.run_records import (
    AT_START,
    CONTROL_ROW,
    CROWDED,
    DEEPEST,
    MOST_AT_ONCE,
    NO_CONTROLLER,
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
from artsim.sim.runs.maximal_choice import tuning_of
from artsim.sim.runs.simulate import Simulation

_SEARCHES = 10  # for contacts in a step at most
_UNSOLVED = 1e-9  # [rad/s or m/s] residual above which rows contradict each other
_PARTING = 10.0  # [rad/s or m/s] fastest dof while penetration is removed, as in contact/contact_law.py


class MaximalSimulation(Simulation):
    """A run in progress in maximal coordinates; see Simulation."""

    along_dofs: ClassVar = {PASSIVE: "passive", DRIVE: "drive", COUPLING: "coupling", LIMIT: "limit"}
    on_bodies: ClassVar = {CONTACT: "contact"}
    """The names under which forces of rows are recorded, by source: of rows along dofs alone, and of others."""

    def __post_init__(self) -> None:
        config = self.plan.config
        assert config.scheme_alpha is not None and config.scheme_beta is not None
        self.scheme = Scheme(self.plan.dt, config.scheme == "baumgarte", config.scheme_alpha, config.scheme_beta)
        self._model = self.plan.robot.model
        self._fittings = None if self.plan.equipped is None else self.plan.equipped.arrays
        self._masses = Masses.of(self._model)
        self._dof_line, self._held = dof_lines(self._model), held_lines(self._model)
        self._tuning = tuning_of(self.plan.robot, config, self.plan.equipped, self._held)
        self._patterns: dict[str, Pattern] = {}
        super().__post_init__()
        self.bodies = body_states(self._model, self._masses, self.plan.qpos, self.plan.qvel)
        self._state.load[:] = self._load_at_rest()
        self._gap = 0.0, 0.0

    def reblock(self) -> None:
        """Allocate the block again after `block_rows` was changed."""
        self._block = self._make_block()
        fields = [name for name in self.plan.config.record if name != "contacts"]
        self._wanted = {name: getattr(self._block, name) for name in fields}
        self._finder: ContactFinder | None = None
        if self.plan.touching is not None and self._contact is not None:
            self._finder = ContactFinder(self.plan.touching, self._contact)
        self._call = self._take_steps

    @property
    def bodies(self) -> BodyStates:
        """The current poses and velocities of all bodies; they may be set, for example from conversion.body_states."""
        return self._bodies

    @bodies.setter
    def bodies(self, bodies: BodyStates) -> None:
        self._bodies = bodies
        self._lines, self._loops = self._lines_of(bodies)
        self._state.qpos[:] = bodies.qpos
        self._state.qvel[:] = self._lines.rate[self._dof_line]

    def _lines_of(self, bodies: BodyStates) -> tuple[Lines, slice]:
        """All lines of the robot but for inputs and contacts; which are those of loops."""
        e, joints = self._fittings, joint_lines(self._model, self._masses, bodies)
        parts = [joints] if e is None or not len(e.loop_kind) else [joints, loop_lines(e, self._masses, bodies)]
        lines = joined_lines(parts)
        return lines, slice(len(joints.rate), len(lines.rate))

    def _look(self) -> None:
        """Do nothing: this engine keeps no account of energy."""

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
        block.contacts[0] = 0
        with np.errstate(all="ignore"):
            if self.step == 0 or np.isnan(self._step.energy[AT_START]):
                self._step.energy[AT_START] = self._energy()
            for _ in range(int(block.plan[STEPS_TO_TAKE])):
                if self._is_full():
                    break
                self._choose_controls()
                taken = self._take_step()
                if taken is None or counters[STOP_REASON] != RUNNING:
                    break
                if counters[STEP_NUMBER] % block.plan[STEPS_PER_ROW] == 0:
                    self._record(taken, int(counters[ROWS_RECORDED]))
                    self._record_contacts(int(counters[ROWS_RECORDED]))
                    counters[ROWS_RECORDED] += 1
                self._move_on(taken)
                counters[STEP_NUMBER] += 1
            self._step.energy[NOW] = self._energy()

    def _choose_controls(self) -> None:
        counters, start = self._step.counters, self._inputs.start_step
        counters[CONTROL_ROW] = max(int(np.searchsorted(start, counters[STEP_NUMBER], side="right")) - 1, 0)

    def _record(self, taken: Taken, row: int) -> None:
        recorded_row(taken, self._wanted, row)

    def _move_on(self, taken: Taken) -> None:
        self.bodies = taken.after

    def _take_step(self) -> Taken | None:
        """Take one step; contacts are detected again, and the step taken anew, where velocities outrun the margins in
        which they were looked for. None where contacts exceed their room."""
        if self._finder is None or self._contact is None:
            return self._solve_step()
        if not self._finder.find(self._masses, self._bodies, self.scheme.h):
            self._step.counters[STOP_REASON] = CROWDED
            return None
        left: frozenset[int] = frozenset()
        for _ in range(_SEARCHES):
            taken = self._solve_step(left)
            if (stuck := self._stuck(taken)) != left:
                left = stuck
                continue
            number = self._contact.data.number
            if self._step.counters[STOP_REASON] != RUNNING or not self._finder.outrun(
                self._bodies, taken.after, self.scheme.h
            ):
                break
            left = frozenset()
            if number[FOUND_CONTACTS] > number[CONTACTS]:
                self._step.counters[STOP_REASON] = CROWDED
                return None
        self._note_contacts(taken)
        return taken

    def _solve_step(self, left: frozenset[int] = frozenset()) -> Taken:
        """One step: lines at this pose, rows, the linear system, poses at the end."""
        model, state, h = self._model, self._bodies, self.scheme.h
        inertia = inertias(self._masses, state.rotation)
        control = int(self._step.counters[CONTROL_ROW])
        lines, contacts = self._with_contacts(self._with_inputs(control), left)
        now = Now(model, self._inputs, control, self.scheme, lines, state.qpos, self._dof_line, self._tuning)
        given = self._given(now, contacts)
        known = explicit_forces(model, state, inertia)
        along = np.sum(list(given.values()), axis=0)
        known += wrenches_on_bodies(lines, np.arange(len(lines.rate)), along, len(inertia))
        rigid = rigid_rows(now, self._held)
        mobility = self._mobility_of(inertia, lines, rigid)
        held = joined_rows([rigid, *soft_rows(now, mobility)])
        parts = [boxed_rows(now, mobility, self._state.load, self._fittings), *self._further_rows(now)]
        self._contact_rows = contacts
        boxed = joined_rows(parts if contacts is None else [*parts, contacts.rows])
        solution = solve_bodies(self._factor("all", inertia, lines, held), h * known.ravel(), lines, held, boxed)
        rows = joined_rows([held, boxed])
        self._note(now, rows, solution)
        return self._taken(now, rows, solution, given)

    def _taken(self, now: Now, rows: BodyRows, solution: Solution, given: dict[str, Real]) -> Taken:
        """The step with its forces, and the bodies after it; given: forces along the lines that are not of rows."""
        state, scheme, change = self._bodies, self.scheme, solution.change.reshape(-1, 6)
        after = moved(state, scheme.h * (state.velocity + scheme.ahead * change))
        after = replace(after, velocity=state.velocity + change)
        if self._step.counters[STOP_REASON] == RUNNING:
            after = replace(after, qpos=joint_coordinates(self._model, self._masses, after))
        force = np.concatenate([solution.held, solution.boxed]) / scheme.h
        forces = {name: np.zeros(len(self._dof_line)) for name in SOURCES}
        for source, name in {**self.along_dofs, **self.on_bodies}.items():
            along = by_line(rows, np.where(rows.source == source, force, 0.0), now.lines)
            forces[name] += self._in_joints(now.lines, along, direct=source in self.along_dofs)
        for name, values in given.items():
            forces[name] += self._in_joints(now.lines, values)
        line_force = by_line(rows, force, now.lines) + np.sum(list(given.values()), axis=0)
        self._state.load[:] = self._loads(line_force)
        contacts = slice(len(now.lines.rate) - self._contact_lines, len(now.lines.rate))
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
            contacts=contacts,
            loops=self._loops,
            forces=forces | self._frictions(rows, force, len(solution.held), now.lines),
            dt=scheme.h,
            report=(float(solution.pivots), solution.residual),
        )

    def _in_joints(self, lines: Lines, line_force: Real, *, direct: bool = False) -> Real:
        """Joint forces (nv,) of forces along lines; `direct`: of those along dofs only."""
        if direct or not np.any(line_force):
            return line_force[self._dof_line]
        return forces_in_joints(lines, self._dof_line, line_force, len(self._masses.mass))

    def _frictions(self, rows: BodyRows, force: Real, held: int, lines: Lines) -> dict[str, Real]:
        """Split the force of joint friction, the bounded passive rows, in proportion to its constant parts."""
        model = self._model
        rubbing = (rows.source == PASSIVE) & (np.arange(len(force)) >= held)
        friction = by_line(rows, np.where(rubbing, force, 0.0), lines)[self._dof_line]
        most = model.friction + model.friction_coefficient * self._state.load
        share = np.divide(model.friction, most, out=np.zeros_like(most), where=most > 0)
        return {"friction_constant": share * friction, "friction_by_load": (1.0 - share) * friction}

    # ------------------------------------------------------------------ forces that a robot carries

    def _with_inputs(self, control: int) -> Lines:
        """The robot's lines, and one for each wrench on a link that is an input."""
        e = self._fittings
        self._input_lines = 0
        if e is None or not len(e.link_wrench_link):
            return self._lines
        wrenches = link_wrenches_of_bodies(e, self._model, self._masses, self._bodies, self._inputs.control[control])
        self._input_lines = len(wrenches)
        return joined_lines([self._lines, wrench_lines(wrenches, self._bodies)])

    def _given(self, now: Now, contacts: ContactRows | None) -> dict[str, Real]:
        """Forces along all lines that are known at the start of the step, by source."""
        given = {name: np.zeros(len(now.lines.rate)) for name in ("applied", "contact")}
        joints = len(self._lines.rate)
        given["applied"][joints : joints + self._input_lines] = 1.0
        if contacts is not None:
            given["contact"][len(now.lines.rate) - self._contact_lines :] = contacts.pulls()
        given |= self._further_forces(now)
        given["applied"][self._dof_line] += self._torque(now, given)
        return given

    def _further_forces(self, now: Now) -> dict[str, Real]:
        """Other such forces: none."""
        return {}

    def _further_rows(self, now: Now) -> list[BodyRows]:
        """Other rows with bounds: none."""
        return []

    def _torque(self, now: Now, given: dict[str, Real]) -> Real:
        """The torques that are inputs and those of the built-in controller (nv,)."""
        model = self._model
        torque = np.array(self._inputs.torque[now.control])
        if self.plan.config.built_in.law != NO_CONTROLLER:
            torque += carried_by_leaders(model, now.qpos, self._wanted_torque(now, given))
            torque = np.clip(torque, -model.effort, model.effort)
        return torque

    def _wanted_torque(self, now: Now, given: dict[str, Real]) -> Real:
        """The torques that the built-in controller wants (nv,)."""
        return self._held_weight()

    def _held_weight(self) -> Real:
        """The joint forces (nv,) that carry the robot's weight at rest."""
        model, still = self._model, replace(self._bodies, velocity=np.zeros_like(self._bodies.velocity))
        M = inertias(self._masses, still.rotation)
        lines = joint_lines(model, self._masses, still)
        zero = np.zeros(len(self._dof_line))
        return joint_loads(lines, M, explicit_forces(model, still, M), self._dof_line, zero)[self._dof_line]

    # ------------------------------------------------------------------ contacts

    def _with_contacts(self, lines: Lines, left: frozenset[int]) -> tuple[Lines, ContactRows | None]:
        """The lines with those of this step's contacts, and the contacts' rows."""
        self._contact_lines = 0
        if self._contact is None or self._contact.data.number[CONTACTS] == 0:
            return lines, None
        model, state = self._model, self._bodies
        own = contact_lines(self._contact, state)
        bodies, L = len(self._masses.mass), line_matrix(self._lines)
        free = self._dof_line[model.dof_independent >= 0]
        wanted = np.zeros((len(L), len(free) + 1))
        wanted[free, np.arange(len(free))] = 1.0
        wanted[:, -1] = -self._lines.drift[: len(L)]
        moves: Real = np.zeros((bodies, 6, len(free) + 1))
        moves[1:] = np.linalg.solve(L, wanted).reshape(bodies - 1, 6, -1)
        self._contact_lines = len(own.rate)
        first = len(lines.rate)
        motion = moves[..., :-1], moves[..., -1]
        rows = ContactRows(self.scheme, self._contact, own, first, *motion, model.gravity, left)
        return joined_lines([lines, own]), rows

    def _stuck(self, taken: Taken) -> frozenset[int]:
        """The contacts whose penetration is left as it is."""
        if self._contact_rows is None or self._step.counters[STOP_REASON] != RUNNING:
            return frozenset()
        lines = taken.lines
        pair = np.hstack([taken.after.velocity[lines.body[:, 0]], taken.after.velocity[lines.body[:, 1]]])
        after = np.einsum("nk,nk->n", lines.value, pair)
        solved = taken.report[1] <= _UNSOLVED and np.max(np.abs(after[self._dof_line]), initial=0.0) <= _PARTING
        at = taken.contacts
        return self._contact_rows.stuck(bool(solved), taken.line_force[at], lines.rate[at], after[at])

    def _note_contacts(self, taken: Taken) -> None:
        """Store the contacts' forces, and their extremes for the account."""
        assert self._contact is not None
        d, step = self._contact.data, self._step
        count = int(d.number[CONTACTS])
        d.force[:count] = taken.line_force[taken.contacts].reshape(-1, DIRECTIONS)
        name_contacts(self._state.contact, d)
        felt = self._felt()
        step.contact_extremes[MOST_AT_ONCE] = max(step.contact_extremes[MOST_AT_ONCE], len(felt))
        step.contact_extremes[DEEPEST] = max(step.contact_extremes[DEEPEST], -d.distance[felt].min(initial=0.0))

    def _felt(self) -> Array:
        """The contacts that touch or carry a force."""
        assert self._contact is not None
        d = self._contact.data
        count = int(d.number[CONTACTS])
        return np.flatnonzero((d.gap[:count] <= 0.0) | (d.force[:count, 0] != 0.0))

    def _is_full(self) -> bool:
        """True if the block lacks room for the contacts of one more step."""
        block, contact = self._block, self._contact
        if contact is None or not len(block.contact_count):
            return False
        return bool(block.contacts[0] + len(contact.data.gap) > len(block.contact_step))

    def _record_contacts(self, row: int) -> None:
        block, contact = self._block, self._contact
        if contact is None or not len(block.contact_count):
            return
        d, felt = contact.data, self._felt()
        rows = slice(int(block.contacts[0]), int(block.contacts[0]) + len(felt))
        block.contact_step[rows] = self._step.counters[STEP_NUMBER]
        block.contact_depth[rows] = -d.distance[felt]
        block.contact_shapes[rows] = d.shape[felt]
        block.contact_point[rows] = d.point[felt]
        block.contact_normal[rows], block.contact_tangent[rows] = d.frame[felt, 0], d.frame[felt, 1]
        block.contact_force[rows], block.contact_torque[rows] = d.force[felt, :3], d.force[felt, 3:]
        block.contacts[0] = rows.stop
        block.contact_count[row] = len(felt)

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

    # ------------------------------------------------------------------ checks of the step

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
        own = energies_of_bodies(self._model, self._masses, self._bodies, self._lines.rate[self._dof_line])
        return sum(own)

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
