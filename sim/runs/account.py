"""Account, the read-only half of Simulation: its progress, its worst errors so far, and why it stopped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import ANGULAR, LINEAR
from artsim.sim.articulation.state import SHAPE_A, SHAPE_B, State
from artsim.sim.foundation.errors import StoppedError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.run_data.integration import DEFAULT
from artsim.sim.run_data.run_records import (
    ALL_ROWS,
    AT_START,
    AVAILABLE,
    DEEPEST,
    DEPTH,
    EXCESS,
    EXCESS_DOF,
    EXCESS_SOURCE,
    EXCESS_STEP,
    GAVE_WAY,
    HELD_A,
    HELD_B,
    HELD_BY,
    HELD_DEPTH,
    HELD_STEPS,
    ITERATIONS,
    LEFT_INSIDE_STEPS,
    LINK_A,
    LINK_B,
    MOST_AT_ONCE,
    NON_FINITE,
    NOW,
    OPENED,
    OPENED_LOOP,
    REGULARISED_STEPS,
    SHARE,
    STEP_NUMBER,
    STOP_DOF,
    TOO_FAST,
    UNSOLVED_STEPS,
    Rows,
    Step,
)
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.settings import CONVEX

# names of the sources of work, for messages about a source that gave more energy than it can have had
GIVERS = (
    *("applied forces", "drives and actuators", "compensated weights", "the medium"),
    *("springs, dampers and friction of joints", "couplings", "limits", "loops", "tendons", "contacts"),
    "the motion itself",
)


class Excess(NamedTuple):
    """Energy that no source can have given: the time at which it was found [s], the joint with most of the kinetic
    energy, the source that gave it, the energy created, and the energy that was there besides [J]."""

    time: float
    joint: str
    source: str
    created: float
    available: float


class Course(NamedTuple):
    """The steps that an accuracy chose."""

    taken: int
    refused: int  # steps that were taken again, smaller, since their error was too large
    cut: int  # steps that were cut since a limit, friction or a contact began or ended to act in them
    coarse: int  # steps of the least length, with larger errors than asked for
    smallest: float  # [s]
    largest: float  # [s]
    estimate: float  # sum of the estimated errors [rad or m]


SUNK_FAR = 0.01  # share of a shape's thickness: hard contacts that got deeper by more are told, and end strict runs


class Account:
    """The part of Simulation that only reads: the plan, and the current content of the run's records."""

    plan: Plan
    stop_reason: int
    _odd: str  # the part of the recorded rows or of the state that is not finite
    _room: int
    _state: State
    _step: Step
    _rows: Rows

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return int(self._step.counters[STEP_NUMBER])

    @property
    def time(self) -> float:
        """Simulated time so far [s]."""
        return self.step * self.plan.dt

    @property
    def qpos(self) -> Real:
        """Coordinates (nq,) now."""
        return self._state.qpos.copy()

    @property
    def qvel(self) -> Real:
        """Velocities (nv,) now."""
        return self._state.qvel.copy()

    @property
    def activation(self) -> Real:
        """Activation states (nact,) now."""
        return self._state.activation.copy()

    @property
    def effort(self) -> tuple[int, int, float]:
        """Number of constraint rows, contacts and solver iterations of the last step."""
        return int(self._rows.number[ALL_ROWS]), self._known_contacts, float(self._rows.report[ITERATIONS])

    @property
    def room(self) -> int:
        """The number of contacts for which there is room at present."""
        return self._room

    @property
    def constraint_rows(self) -> int:
        """The largest number of constraint rows of a step."""
        return len(self._state.impulse)

    @property
    def final(self) -> dict[str, Array]:
        """The state as stored in /final of a file, from which a run can continue."""
        state = {name: np.array(values) for name, values in self._state._asdict().items() if name != "command"}
        state["contact"] = state["contact"][: self._known_contacts]
        state["still"] = np.array(state["still"][0], np.int64)
        return state | {"step": np.asarray(self.step), "time": np.asarray(self.time)}

    @property
    def coupling_error(self) -> float:
        """Largest |q_follower - g(q_leader)| of coupling rows so far [rad or m]; exact couplings have no rows."""
        return float(self._step.coupling_error[0])

    @property
    def tendon_error(self) -> float:
        """Largest |L_a - L_a0 - p(L_b - L_b0)| of tendon equalities at the end of any step so far [m or rad]."""
        return float(self._step.tendon_error[0])

    @property
    def loop_gap(self) -> tuple[float, float] | None:
        """The largest gaps of loops so far [m], [rad]; None without loops."""
        equipped = self.plan.equipped
        if equipped is None or len(equipped.arrays.loop_kind) == 0:
            return None
        return float(self._step.loop_gap[LINEAR]), float(self._step.loop_gap[ANGULAR])

    @property
    def loops_opened(self) -> tuple[tuple[float, str], tuple[float, str]] | None:
        """The largest opening of hard loops beyond their smallest gap, and the loop, for gaps [m] and for angles [rad];
        None without loops.
        """
        if self.loop_gap is None or self.plan.equipped is None:
            return None
        opened, names = self._step.opened, self.plan.equipped.labels.loops
        parts = [(float(opened[OPENED + part]), names[int(opened[OPENED_LOOP + part])]) for part in (LINEAR, ANGULAR)]
        return parts[0], parts[1]

    @property
    def worst_residual(self) -> float:
        """Largest constraint residual that the solver left in any step so far [rad/s or m/s]."""
        return float(self._step.worst_residual[0])

    @property
    def energy(self) -> tuple[float, float]:
        """Kinetic plus potential energy at the start and now [J]."""
        return float(self._step.energy[AT_START]), float(self._step.energy[NOW])

    @property
    def watches_energy(self) -> bool:
        """True if energy that no source can have given is told."""
        return self.plan.config.contact_law != CONVEX

    @property
    def energy_excess(self) -> Excess | None:
        """Energy that no source can have given, at the first time that it exceeded the tolerance of
        stepping/energy_account.py; None if it never did, and under the convex law, whose springs are as stiff as the
        inertia that they meet at the time, and so give energy by themselves."""
        if not self.watches_energy:
            return None
        watch = self._step.watch
        if not watch[EXCESS_STEP]:
            self._look()
            watch = self._step.last_watch
        if not watch[EXCESS_STEP]:
            return None
        return Excess(
            time=(float(watch[EXCESS_STEP]) - 1.0) * self.plan.dt,
            joint=self.plan.robot.dofs[int(watch[EXCESS_DOF])],
            source=GIVERS[int(watch[EXCESS_SOURCE])],
            created=float(watch[EXCESS]),
            available=float(watch[AVAILABLE]),
        )

    def _look(self) -> None:
        """Bring step.last_watch up to date with the account of energy; this class keeps no account."""

    @property
    def contact_extremes(self) -> tuple[int, float]:
        """The largest number of contacts in any step so far, and the largest penetration [m]."""
        return int(self._step.contact_extremes[MOST_AT_ONCE]), float(self._step.contact_extremes[DEEPEST])

    @property
    def eased_steps(self) -> int:
        """Number of steps so far in which hard contacts were regularised (solvers/newton.py)."""
        return int(self._step.contact_extremes[REGULARISED_STEPS])

    @property
    def left_inside_steps(self) -> int:
        """Number of steps so far with penetrations that no joint can remove (contact/contact_rows.py)."""
        return int(self._step.contact_extremes[LEFT_INSIDE_STEPS])

    @property
    def held_inside(self) -> tuple[int, float, str, str, str] | None:
        """Contacts that hard loops hold inside (stepping/strain.py): the number of steps with any so far, and depth
        [m], links and loop of the deepest; None if there were none.
        """
        return held_by_name(self.plan, self.held)

    @property
    def held(self) -> Array:
        """The numbers of `held_inside`, as in Step.held (5,): steps, depth [m], and the indices of links and loop; 0
        for all if there were none."""
        return self._step.held

    @property
    def unsolved_steps(self) -> int:
        """Number of steps so far in which the solver left a residual above 1e-6 rad/s or m/s."""
        return int(self._step.yielded[UNSOLVED_STEPS])

    @property
    def gave_way(self) -> tuple[str, str, float, float] | None:
        """The hard contact that got deepest, for any reason: its two links, the depth beyond that at the start [m], and
        this depth as a share of the thickness of the thinner shape. None if no hard contact got deeper.
        """
        yielded = self._step.yielded
        if not yielded[DEPTH] > 0.0:
            return None
        one, two = (link_name(self.plan, int(yielded[entry])) for entry in (LINK_A, LINK_B))
        return one, two, float(yielded[DEPTH]), float(yielded[SHARE])

    @property
    def sunk(self) -> tuple[float, float, int, int]:
        """The hard contact that got deepest: depth beyond that at the start as a share of the thinner shape's
        thickness, that depth [m], and the indices of its two links; -1: the scene."""
        yielded = self._step.yielded
        return float(yielded[SHARE]), float(yielded[DEPTH]), int(yielded[LINK_A]), int(yielded[LINK_B])

    @property
    def course(self) -> Course | None:
        """The steps that an accuracy chose so far; None in runs of equal steps."""
        return None

    @property
    def joint_gap(self) -> tuple[float, float] | None:
        """The largest gaps of joints so far [m], [rad]; None in joint coordinates."""
        return None

    @property
    def limit_steps(self) -> dict[str, int]:
        """The number of steps that each dof spent at a limit, for those that did; a joint, where swing and twist have
        limits."""
        model = self.plan.robot.model
        joints = {
            k: name for name, dofs in self.plan.robot.labels.joint_dofs.items() for k in range(dofs.start, dofs.stop)
        }
        names = [joints[k] if model.dof_turn[k] >= 0 else name for k, name in enumerate(self.plan.robot.dofs)]
        return {name: int(n) for name, n in zip(names, self._step.limit_steps, strict=True) if n > 0}

    @property
    def _known_contacts(self) -> int:
        """The number of contacts in the last step."""
        return int(np.count_nonzero(self._state.contact[:, SHAPE_A] != self._state.contact[:, SHAPE_B]))

    def check(self) -> None:
        """Raise StoppedError when the run stopped early, naming joint and time."""
        if self.stop_reason:
            raise StoppedError(f"stopped at t = {self.time:.6g} s (step {self.step}): {self._why()}")

    @property
    def stop_dof(self) -> int:
        """The dof at which the run stopped; nv + t stands for tendon t."""
        return int(self._step.counters[STOP_DOF])

    def _why(self) -> str:
        if self._odd:
            return f"{self._odd} is not finite; are masses, lengths and limits of the model plausible?"
        if self.stop_reason == TOO_FAST:
            return bound_of_link(self.plan, self.stop_dof)
        if self.stop_reason == GAVE_WAY:
            first, second, depth, _ = self.gave_way or ("", "", 0.0, 0.0)
            return f"contacts of {first!r} and {second!r} gave way by {depth:.3g} m, half of a shape's thickness"
        k, nv = int(self._step.counters[STOP_DOF]), self.plan.robot.nv
        what = f"joint {self.plan.robot.dofs[k]!r}" if k < nv else f"tendon {self._tendon(k - nv)!r}"
        if self.stop_reason == NON_FINITE:
            return f"the velocity of {what} is not finite; a smaller --dt or softer gains may help"
        return f"{what} reached its limit, and {self.plan.config.integrator} has no rows for it; use {DEFAULT.name}"

    def _tendon(self, t: int) -> str:
        assert self.plan.equipped is not None
        return self.plan.equipped.labels.tendons[t]


def link_name(plan: Plan, link: int) -> str:
    """The name of a link by its index; -1: a shape that belongs to none."""
    return plan.robot.links[link] if link >= 0 else "the scene"


def held_by_name(plan: Plan, held: Array) -> tuple[int, float, str, str, str] | None:
    """Steps, depth [m], links and loop of contacts that hard loops hold inside, from the numbers of Step.held; None if
    there are none."""
    if not held[HELD_STEPS] or plan.equipped is None:
        return None
    first, second = (link_name(plan, int(held[entry])) for entry in (HELD_A, HELD_B))
    return int(held[HELD_STEPS]), float(held[HELD_DEPTH]), first, second, plan.equipped.labels.loops[int(held[HELD_BY])]


def bound_of_link(plan: Plan, n: int) -> str:
    """The reason, in words, for which a run stops at velocity limit n of the links."""
    rules = plan.rules
    assert rules is not None
    kind = "angular" if rules.bound_angular[n] else "linear"
    link = int(rules.bound_link[n])
    whose = f"link {plan.robot.links[link]!r}" if link >= 0 else "the whole robot"
    limit = f"the limit {rules.bound[n]:.6g} of the {kind} velocity of {whose}"
    return f"{limit} does not hold: no forces within the other constraints reach it"
