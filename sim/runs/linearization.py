"""Linear models of a robot about a state: of its motion in continuous time, and of one step of the engine.

In continuous time the motion is that of rigid_accelerations.py: loops are closed, and contacts held or left out,
rigidly. The states that are left are those of joints that these do not determine: the columns of J are taken in the
order in which a pivoted QR factorisation (Golub and Van Loan 2013, 5.4.2) finds them independent, and the joints of the
others are free. A step has the engine's own law, with all its rows, by the derivatives of steps (step_derivatives.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from artsim.sim.articulation.tangent import difference, follow_leaders, moved
from artsim.sim.constraints.kinds import CONTACT_ROW
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.rotations import Real, rotation_matrix
from artsim.sim.runs.controls import VALUES
from artsim.sim.runs.copied_steps import CopiedSteps, Starts
from artsim.sim.runs.linear_system import LinearSystem
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.rigid_accelerations import Accelerations, Held
from artsim.sim.runs.row_states import HOLDS, row_states
from artsim.sim.runs.step_derivatives import STEP, StepDerivatives, input_columns, step_derivatives

_DETERMINED = 1e-8  # share of the largest pivot below which rows determine no further joint
_REST = 1e-9  # [rad/s², m/s²] of a trimmed state
_STAYS = 1e-3  # [rad/s², m/s²] up to which the engine counts as staying there


@dataclass(frozen=True)
class LinearModel:
    """The linear models about a state, and that state."""

    continuous: LinearSystem
    discrete: LinearSystem
    qpos: Real  # (nq,)
    qvel: Real  # (nv,)
    activation: Real  # (nact,)
    u: Real  # (nu,) the inputs there
    acceleration: Real  # (n,) of the independent dofs there [rad/s², m/s²]; 0 at rest
    step: StepDerivatives
    notes: tuple[str, ...]


def linearised(
    plan: Plan, inputs: Sequence[str], *, hold_contacts: bool = True, step: float = STEP, trim: bool = False
) -> LinearModel:
    """The linear models of a plan's robot about the state in which it starts.

    Args:
        inputs: names of VALUES, or of their entries: "torque", "torque:*_knee".
        hold_contacts: in the continuous model, contacts that press in the first step stay where they are; otherwise
            there are none.
        step: of differences [rad, m, rad/s, m/s].
        trim: look for a state at rest nearby first, and the inputs that keep it there.

    Raises UsageError: an unknown name, or a state at rest that is not found.
    """
    if plan.config.is_maximal:
        raise UsageError("linearize: maximal coordinates have no linear model")
    if not plan.robot.nv:
        raise UsageError(f"linearize: {plan.robot.articulation.name!r} has no degrees of freedom")
    held = _held_contacts(plan) if hold_contacts else ()
    forces = Accelerations(plan, held)
    columns = input_columns(plan, inputs, reduced=True)
    entries = [(column.of, column.entry[0]) for column in columns]
    motion = _Motion(plan, forces, entries)
    if trim:
        plan = motion.trimmed()
        motion = _Motion(plan, Accelerations(plan, held), entries)
    notes = _told_of_rest(plan) if trim else []
    names = tuple(column.name for column in columns)
    copies = CopiedSteps(plan, outputs=("sensors",) if "sensors" in plan.config.record else ())
    copies.begin(simulation_of(plan, plan.held))
    found = step_derivatives(copies, inputs, (), reduced=True, step=step)
    continuous, kept = motion.linear(step, names)
    C, D, outputs = found.C, found.D, found.outputs
    if not outputs:
        C, D, outputs = np.eye(len(found.states)), np.zeros((len(found.states), len(names))), found.states
    discrete = LinearSystem(found.A, found.B, C, D, found.states, names, outputs, plan.dt)
    ours = LinearSystem(*continuous, C @ motion.told(kept), D, motion.states, names, outputs)
    if not found.outputs:
        ours = replace(ours, C=np.eye(len(motion.states)), D=np.zeros(ours.B.shape), outputs=motion.states)
    notes += _notes(plan, motion, found)
    inputs_there = np.array([getattr(plan, name)[k] for name, k in entries])
    return LinearModel(
        ours, discrete, plan.qpos, plan.qvel, plan.activation, inputs_there, motion.there, found, tuple(notes)
    )


def _told_of_rest(plan: Plan) -> list[str]:
    """A warning about a state at rest that the engine leaves, since contacts that were held would have to pull."""
    run = simulation_of(plan, plan.held)
    if not run.take(1):
        list(run.left_blocks())
        run.check()
    fastest = int(np.abs(run.qvel).argmax())
    found = abs(float(run.qvel[fastest])) / plan.dt
    if found <= _STAYS:
        return []
    return [
        f"the state at rest does not last: {plan.robot.dofs[fastest]} accelerates by {found:.3g} in the first step; "
        "contacts that hold it there would have to pull or to grip more, or soft ones to be deeper"
    ]


def _notes(plan: Plan, motion: _Motion, found: StepDerivatives) -> list[str]:
    model, notes = plan.robot.model, list[str]()
    if (model.friction > 0).any() or (model.friction_coefficient > 0).any():
        notes.append("dry friction is no part of the continuous model")
    largest = float(np.abs(motion.there).max(initial=0.0))
    if largest > 1e-6:
        worst = motion.dofs[int(np.abs(motion.there).argmax())]
        notes.append(f"the state is not at rest: {worst} accelerates by {largest:.4g}; --trim looks for one that is")
    if motion.bound and plan.qvel.any():
        notes.append("loops and contacts hold a robot that moves: all its states are kept, of which they allow some")
    if found.kinks:
        some = ", ".join([*found.kinks][:3]) + (", …" if len(found.kinks) > 3 else "")
        notes.append(
            f"the step has a kink in {len(found.kinks)} of {len(found.columns)} columns ({some}): the discrete model "
            "has the slopes of one side"
        )
    return notes


def _held_contacts(plan: Plan) -> tuple[Held, ...]:
    """The contacts that press in the first step of a plan."""
    if plan.touching is None:
        return ()
    run = simulation_of(plan, plan.held)
    if not run.take(1):
        list(run.left_blocks())
        run.check()
    _, contact = run.found_rows
    states = {(row.owner, row.part, row.number): row.state for row in row_states(run) if row.kind == CONTACT_ROW}
    if contact is None or not states:
        return ()
    poses = plan.robot.compute(plan.qpos, quantities=["link_pose"])
    turns = rotation_matrix(poses["link_quaternion"].T)
    held, seen = [], dict[tuple[int, int], int]()
    for n in range(int(contact.data.number[0])):
        pair = int(contact.data.shape[n, 0]), int(contact.data.shape[n, 1])
        number = seen[pair] = seen.get(pair, -1) + 1
        state = states.get((*pair, number), "")
        if not state:
            continue
        a, b = (int(plan.touching.contacts.link[shape]) for shape in pair)
        point, frame = contact.data.point[n], contact.data.frame[n]
        sticks = state == HOLDS and contact.data.dimension[n] > 1
        points = [point if link < 0 else turns[link].T @ (point - poses["link_position"][link]) for link in (a, b)]
        directions = (frame if sticks else frame[:1]).copy()
        held.append(Held((a, b), np.array(points), directions if a < 0 else directions @ turns[a]))
    return tuple(held)


class _Motion:
    """The motion of a plan's robot in continuous time about its state."""

    def __init__(self, plan: Plan, forces: Accelerations, entries: Sequence[tuple[str, int]]) -> None:
        self._plan, self._forces, self._entries = plan, forces, entries
        robot = forces.robot
        self.independent = robot.model.independent_dof
        self.dofs = tuple(robot.dofs[k] for k in self.independent)
        self._activations = () if plan.equipped is None else plan.equipped.labels.activations
        self.bound = forces.constrained
        found, rates = forces.of(self._starts(np.zeros((1, self.size))))
        self.there, self._rates = found[0], rates[0]
        self._free, self._basis = self._allowed()
        chosen = [*range(len(self.dofs))] if plan.qvel.any() else self._free
        self._kept = chosen
        self.states = (
            *(f"q:{self.dofs[k]}" for k in chosen),
            *(f"v:{self.dofs[k]}" for k in chosen),
            *(f"a:{name}" for name in self._activations),
        )

    @property
    def size(self) -> int:
        """Number of states and inputs together, before rows take some."""
        return 2 * len(self.dofs) + len(self._activations) + len(self._entries)

    def _starts(self, changes: Real) -> Starts:
        """States and inputs with changes (n, size) of independent coordinates, velocities, activations and inputs."""
        plan, nu, n = self._plan, len(self.dofs), len(changes)
        along = np.zeros((n, plan.robot.nv))
        along[:, self.independent] = changes[:, :nu]
        qpos, qvel = moved(self._forces.robot.model, plan.qpos, along), np.tile(plan.qvel, (n, 1))
        qvel[:, self.independent] += changes[:, nu : 2 * nu]
        follow_leaders(self._forces.robot.model, qpos, qvel)
        first = 2 * nu + len(self._activations)
        activation = plan.activation + changes[:, 2 * nu : first]
        inputs = {name: np.tile(getattr(plan, name), (n, 1)) for name in VALUES}
        for place, (name, entry) in enumerate(self._entries):
            inputs[name][:, entry] += changes[:, first + place]
        return Starts(qpos, qvel, activation, inputs, {})

    def _allowed(self) -> tuple[list[int], Real]:
        """The independent dofs that rows leave free, and the motions (nu, free) of all per unit of each of them."""
        nu = len(self.dofs)
        if not self.bound:
            return [*range(nu)], np.eye(nu)
        from scipy.linalg import qr

        J = self._forces.rows(self._plan.qpos[None])[0]
        _, R, order = qr(J, pivoting=True, mode="economic")
        pivots = np.abs(np.diag(R))
        rank = int(np.count_nonzero(pivots > _DETERMINED * pivots.max(initial=1e-300)))
        determined, free = order[:rank], sorted(order[rank:].tolist())
        basis = np.zeros((nu, len(free)))
        basis[free] = np.eye(len(free))
        if rank:
            basis[determined] = -np.linalg.lstsq(J[:, determined], J[:, free], rcond=None)[0]
        return free, basis

    def linear(self, step: float, inputs: tuple[str, ...]) -> tuple[tuple[Real, Real], Real]:
        """A and B, and the change of all states (2 nu + nact) per unit of each that is kept."""
        changes = step * np.eye(self.size)
        up, down = (self._forces.of(self._starts(sign * changes)) for sign in (1.0, -1.0))
        slopes = [(a - b).T / (2.0 * step) for a, b in zip(up, down, strict=True)]
        nu, activations = len(self.dofs), len(self._activations)
        whole = np.zeros((2 * nu + activations, self.size))
        whole[:nu, nu : 2 * nu] = np.eye(nu)
        whole[:nu, :nu] = self._turning()
        whole[nu : 2 * nu], whole[2 * nu :] = slopes
        nx = 2 * nu + activations
        if len(self._kept) == nu:
            return (whole[:, :nx], whole[:, nx:]), np.eye(nx)
        T = np.zeros((nx, 2 * len(self._kept) + activations))
        T[:nu, : len(self._kept)] = T[nu : 2 * nu, len(self._kept) : 2 * len(self._kept)] = self._basis
        T[2 * nu :, 2 * len(self._kept) :] = np.eye(activations)
        rows = [*self._kept, *(nu + k for k in self._kept), *range(2 * nu, nx)]
        return (whole[rows, :nx] @ T, whole[rows, nx:]), T

    def told(self, kept: Real) -> Real:
        """Changes of independent states here as those of the states of a step: with the followers of couplings that the
        run does not eliminate."""
        G = self._forces.gains(self._plan.qpos)[self._plan.robot.model.independent_dof]
        nu, activations = len(self.dofs), len(self._activations)
        return np.concatenate([G @ kept[:nu], G @ kept[nu : 2 * nu], kept[len(kept) - activations :]])

    def _turning(self) -> Real:
        """∂(q̇)/∂q (nu, nu) in the tangent: that of a rotation that is perturbed turns with the body, by -ω ×."""
        model, v = self._forces.robot.model, self._plan.qvel
        if not v.any():
            return np.zeros((len(self.dofs), len(self.dofs)))
        nv, h = len(v), 1e-4
        steps = STEP * np.eye(nv)
        found = np.zeros((nv, nv))
        for time in (h, -h):
            base = moved(model, self._plan.qpos, time * v)
            for sign in (1.0, -1.0):
                there = moved(model, moved(model, self._plan.qpos, sign * steps), np.tile(time * v, (nv, 1)))
                found += sign * np.sign(time) * difference(model, there, base).T / (4.0 * h * STEP)
        return found[np.ix_(self.independent, self.independent)]

    # -------------------------------------------------------------- rest

    def trimmed(self) -> Plan:
        """The plan at the state at rest that is nearest, with the inputs that keep it. Raises UsageError."""
        from scipy.optimize import least_squares

        plan, nu, activations = self._plan, len(self.dofs), len(self._activations)
        at_rest = replace(plan, qvel=np.zeros_like(plan.qvel))
        motion = _Motion(at_rest, self._forces, self._entries)
        free, first = len(motion._free), 2 * nu + activations
        scale = np.array([self._scale(name, k) for name, k in self._entries])

        def change(x: Real) -> Real:
            whole = np.zeros((len(x), self.size))
            whole[:, :nu] = x[:, :free] @ motion._basis.T
            whole[:, 2 * nu : first] = x[:, free : free + activations]
            whole[:, first:] = scale * x[:, free + activations :]
            return whole

        def residual(x: Real) -> Real:
            found, rates = self._forces.of(motion._starts(change(x[None])))
            return np.concatenate([found[0], rates[0]])

        def slopes(x: Real) -> Real:
            steps = STEP * np.eye(len(x))
            up, down = (self._forces.of(motion._starts(change(x + sign * steps))) for sign in (1.0, -1.0))
            return np.concatenate([(a - b).T / (2.0 * STEP) for a, b in zip(up, down, strict=True)])

        x = np.zeros(free + activations + len(self._entries))
        for _ in range(50):
            wrong = residual(x)
            if np.abs(wrong).max(initial=0.0) <= _REST:
                break
            step = -np.linalg.lstsq(slopes(x), wrong, rcond=1e-9)[0]
            shares = [0.5**k for k in range(12)]
            better = next((s for s in shares if np.linalg.norm(residual(x + s * step)) < np.linalg.norm(wrong)), 0.0)
            if not better:
                break
            x = x + better * step
        left = np.abs(residual(x))
        if left.max(initial=0.0) > 1e3 * _REST:
            found = least_squares(residual, x, slopes, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=200)
            x, left = found.x, np.abs(found.fun)
        if left.max(initial=0.0) > 1e3 * _REST:
            names = (*self.dofs, *self._activations)
            raise UsageError(
                f"trim: no state at rest is near: {names[int(left.argmax())]} still accelerates by {left.max():.3g}; "
                "start nearer, or with other inputs"
            )
        starts = motion._starts(change(x[None]))
        return replace(
            at_rest,
            qpos=starts.qpos[0],
            activation=starts.activation[0],
            **{name: starts.inputs[name][0] for name in VALUES},
        )

    def _scale(self, name: str, k: int) -> float:
        """The change of an input that counts as much as one of 1 rad or m in the choice of the nearest state."""
        mobility = float(self._plan.inputs["mobility"][k]) if name == "torque" else 0.0
        return 10.0 / mobility if mobility > 0.0 else 1.0
