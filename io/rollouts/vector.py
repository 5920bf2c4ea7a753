"""Many robots that are stepped together from Python, each with its own state, inputs and properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from artsim.io.rollouts.roll import why_stopped
from artsim.io.rollouts.states import properties_of, quantities_of, settle, states_of
from artsim.io.runs.held_inputs import action_of, pushed_places
from artsim.io.runs.named import named_contacts
from artsim.io.runs.prepare import held_controls, prepared
from artsim.io.runs.progress import warm
from artsim.io.runs.step_rows import read_only
from artsim.io.runs.stepped import Numbers, Stepped
from artsim.sim.foundation.apart import available_cores
from artsim.sim.foundation.errors import StoppedError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.robot import Robot
from artsim.sim.run_data.run_records import RUNNING
from artsim.sim.runs.copied_packs import CopiedPacks
from artsim.sim.runs.fleet import Fleet
from artsim.sim.runs.packable import kernels, reason_against_packs
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.setting import MAX_STEPS
from artsim.sim.runs.settings import RunSettings
from artsim.sim.runs.step_derivatives import STEP, StepDerivatives, step_derivatives
from artsim.sim.runs.varied import PLACED, PUSHES, VARIED

_VARIED = tuple(name for name in (*VARIED, *PLACED) if name not in PUSHES)
_STATES = ("qpos", "qvel", "activation", "time")
_NOT_HERE = {
    "steps": "steps are taken by step(action, steps)",
    "every": "the last step of every call is recorded",
    "push": "pushes are given by push(link, impulse)",
    "interpolate": "inputs hold until they are given anew",
}


class VectorSimulation(Stepped):
    """n simulations of a robot that are stepped together: 8 in the lanes of a pack, and packs in threads.

    Args:
        n: number of robots.
        controller: name of a built-in controller.
        action: the input that `step` takes first: "control", "target" or "torque"; by default that of the actuators,
            else of drives with gains, else torques.
        threads: number of threads; None: one per core. Results do not depend on it.
        settings: those of a run, as in artsim.simulate; `record` names variables of the trajectory.

    Arrays (n, …) are written in place by steps, so that a reference to one is always up to date: `qpos` [rad or m],
    `qvel`, `activation`, `time` [s], `steps`, `status`, and variables of `record` by name, `simulation["sensors"]`.
    A robot that stops raises nothing: its status is no longer 0, `why_stopped` tells the reason, and its state stays
    the last one before that, until it is reset.

    Raises:
        UsageError, ModelError: as artsim.simulate; UsageError also for features that packs lack.
    """

    def __init__(
        self,
        robot: Robot,
        n: int,
        *,
        controller: str = "none",
        action: str | None = None,
        threads: int | None = None,
        **settings: Unpack[RunSettings],
    ) -> None:
        if not 1 <= n <= MAX_STEPS:
            raise UsageError(f"n is {n}, want 1 to {MAX_STEPS} robots")
        for name, instead in _NOT_HERE.items():
            if name in settings:
                raise UsageError(f"VectorSimulation: {name} has no meaning here: {instead}")
        given: dict[str, Any] = {"record": (), **settings, "steps": MAX_STEPS}
        self._plan, _, _ = prepared(robot, controller, None, given)
        _refuse(self._plan)
        warm(kernels(self._plan))
        self._threads = threads or available_cores()
        self._fleet = Fleet(self._plan, held_controls(self._plan), n, self._threads)
        self._copies: CopiedPacks | None = None
        self._varied: set[str] = set()
        self._action = _action(self._plan, action)
        self.count, self.variables = n, tuple(self._fleet.rows)
        self._pushed = {link: self._fleet.inputs["control"][:, at] for link, at in pushed_places(self._plan).items()}
        fleet = self._fleet
        self._rows = {name: read_only(values) for name, values in fleet.rows.items()}
        self._qpos, self._qvel, self._activation = map(read_only, (fleet.qpos, fleet.qvel, fleet.activation))
        self._time, self._steps, self._status = map(read_only, (fleet.time, fleet.steps, fleet.reason))
        self._unsolved, self._worst_residual = map(read_only, (fleet.unsolved, fleet.worst_residual))

    # ------------------------------------------------------------------ state

    def __len__(self) -> int:
        return self._fleet.n

    @property
    def _run(self) -> Plan:
        return self._plan

    @property
    def qpos(self) -> Array:
        """Coordinates (n, nq) now [rad or m]."""
        return self._qpos

    @property
    def qvel(self) -> Array:
        """Velocities (n, nv) now [rad/s or m/s]."""
        return self._qvel

    @property
    def activation(self) -> Array:
        """Activations (n, nact) of actuators now."""
        return self._activation

    @property
    def time(self) -> Array:
        """Simulated time (n,) of each robot since its reset [s]."""
        return self._time

    @property
    def steps(self) -> Array:
        """Number of steps (n,) of each robot since its reset."""
        return self._steps

    @property
    def status(self) -> Array:
        """(n,) 0: runs; 1: stopped at a velocity that is not finite; 2: at a limit that rk4 has no rows for; 3: at more
        than `max_contacts`; 4: beyond a bound of velocity; 5: since contacts gave way."""
        return self._status

    @property
    def unsolved_steps(self) -> Array:
        """Number of steps (n,) since the reset in which the solver left rows unsolved."""
        return self._unsolved

    @property
    def worst_residual(self) -> Array:
        """The largest velocity (n,) that it left in any of them [rad/s or m/s]."""
        return self._worst_residual

    @property
    def sunk(self) -> Array:
        """(n,) by how much hard contacts got deeper than they were at the first step [m]; computed when asked for."""
        return self._fleet.sunk

    def why_stopped(self, k: int) -> str:
        """The time and the reason of the stop of a robot, an empty string while it runs."""
        if self._status[k] == RUNNING:
            return ""
        reason, dof = int(self._status[k]), int(self._fleet.stopped_dof[k])
        return why_stopped(self._plan, int(self._steps[k]), reason, dof)

    def __getitem__(self, name: str) -> Array:
        """The recorded variable (n, …) of the last step of the last call: at the state before that step, and over it;
        NaN from a reset to the next step, or to `forward`. Raises UsageError for one that is not recorded."""
        if name in _STATES:
            raise UsageError(f"{name!r} is the state now: simulation.{name}")
        if name not in self._rows:
            raise UsageError(f"{name!r} is not recorded{nearest(name, self.variables)}; see `record`")
        return self._rows[name]

    @property
    def sensors(self) -> Array:
        """The sensors' values (n, nsensors), if `record` names "sensors"."""
        return self["sensors"]

    @property
    def contacts(self) -> dict[str, Array]:
        """The contacts of the last step of the last call, if `record` names "contacts": of all robots, one after the
        other, arrays (contacts, …) by the names of a run's, and `robot`, the number of each. `contact_count` (n,): how
        many each robot has. link_a and link_b are indices into labels.touching_link, geom_a and geom_b into
        labels.geom. Raises UsageError if they are not recorded."""
        if "contacts" not in self._plan.config.record:
            raise UsageError("contacts are not recorded; see `record`")
        found = self._fleet.contacts()
        return {"robot": found["robot"], **named_contacts(self._plan, found)}

    def computed(self, quantities: Sequence[str]) -> tuple[dict[str, Array], Callable[[], None]]:
        """Quantities of `robot.compute`, links at their origins, as arrays (n, …) by name; and the call that sets
        them to those of the present state."""
        found, renew = quantities_of(self.robot, self._fleet, quantities)
        return {name: read_only(values) for name, values in found.items()}, renew

    # ------------------------------------------------------------------ steps

    def step(
        self,
        action: Numbers | None = None,
        steps: int = 1,
        *,
        torque: Numbers | None = None,
        target: Numbers | None = None,
        target_velocity: Numbers | None = None,
        target_acceleration: Numbers | None = None,
        control: Numbers | None = None,
        wrench: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Take steps with all robots that have not stopped.

        Inputs act from these steps on until they are given anew, as in artsim.Simulation.step; each is (n, entries), or
        (entries,) for all robots alike, or given by name, (n,) or one number for all. A wrench (6,) or a force (3,) on
        a link acts on all, (n, 6) or (n, 3) on each; its links are those of the setting `wrench`.

        Raises UsageError for inputs of a wrong shape.
        """
        if steps < 1:
            raise UsageError(f"step: got {steps}, want a number of steps from 1")
        if action is not None:
            self.give(self._action, action)
        self._give(torque, target, target_velocity, target_acceleration, control, wrench)
        self._fleet.step(steps)

    def forward(self, robots: ArrayLike | None = None) -> None:
        """Set the recorded variables of some robots, as in `reset`, to those of the present state, as mj_forward does:
        with the forces that the inputs at hand exert. Nothing else changes; robots that have stopped keep their
        recorded values."""
        self._fleet.look(self._chosen(robots))

    def push(self, link: str, impulse: ArrayLike) -> None:
        """Take a step in which an impulse (3,) [N s], or (6,) with an angular one [N m s], acts on a link of all
        robots, or (n, 3) or (n, 6) on that of each."""
        place = self._place(link)
        before = place.copy()
        place += self._wrench(f"push of {link!r}", impulse) / self._plan.dt
        self._fleet.step(1)
        place[:] = before

    def _put(self, name: str, entries: list[int] | slice, numbers: Array) -> None:
        self._fleet.inputs[name][:, entries] = numbers

    def _put_wrench(self, link: str, numbers: Array) -> None:
        self._place(link)[:] = numbers

    def _place(self, link: str) -> Array:
        """The inputs (n, 6) of the wrench on a link. Raises UsageError for one that has none."""
        if link not in self._pushed:
            known = "" if link in self.robot.links else nearest(link, self.robot.links)
            raise UsageError(
                f"wrench: there is no place for {link!r}{known}; start with wrench={{{link!r}: (0, 0, 0)}}"
            )
        return self._pushed[link]

    # ------------------------------------------------------------------ single robots

    def reset(
        self,
        robots: ArrayLike | None = None,
        *,
        qpos: Numbers | None = None,
        qvel: Numbers | None = None,
        activation: Numbers | None = None,
    ) -> None:
        """Begin anew with some robots: a mask (n,) or numbers of robots; None: all. Nothing of the others changes.

        Each begins at the state given, (robots, entries) or (entries,) for all of them, or by name; the others of its
        entries are those of the start. Inputs and properties stay as they are.

        Raises UsageError: a robot that is not there; a state of a wrong shape, not finite, or that breaks a coupling.
        """
        chosen = self._chosen(robots)
        labels, start = self.robot.labels, self._fleet.start
        equipped = self._plan.equipped
        activations = () if equipped is None else equipped.labels.activations
        names = {"qpos": labels.coords, "qvel": labels.dofs, "activation": activations}
        made = [
            states_of(what, values, names[what], of_start, len(chosen))
            for (what, values), of_start in zip(
                {"qpos": qpos, "qvel": qvel, "activation": activation}.items(), start, strict=True
            )
        ]
        if qpos is not None or qvel is not None:
            settle(self._plan, made[0], made[1], qpos, qvel)
        self._fleet.reset(chosen, *made)

    def vary(self, robots: ArrayLike | None = None, **factors: ArrayLike) -> None:
        """Set properties of some robots, as in `reset`, to factors of those of the model: mass (links,), armature,
        damping, stiffness, joint_friction, drive_stiffness, drive_damping (nv,), friction, of all contacts. Beside
        factors: centre (links, 3), the offsets of the links' centres of mass in link axes [m]; gravity (3,) [m/s²];
        ground_height, by how much the planes of the world are raised [m]; delay (delayed controls,) [s].

        A factor is a number, (parts,) for all of these robots, or (robots, parts), in the model's order. Properties
        that are not named stay as they are.

        Raises UsageError: an unknown property, a wrong shape, a factor that is negative, a mass of none, or a delay
        that is shorter than a step or longer than the samples that the model keeps.
        """
        chosen = self._chosen(robots)
        self._varied |= {*factors}
        self._fleet.vary(chosen, properties_of(self._plan, factors, len(chosen), "vary", _VARIED))

    def _chosen(self, robots: ArrayLike | None) -> Array:
        """The numbers of robots. Raises UsageError for other than a mask (n,) or different numbers below n."""
        if robots is None:
            return np.arange(len(self))
        given = np.asarray(robots)
        if given.dtype == bool and given.shape == (len(self),):
            return np.flatnonzero(given)
        if given.size == 0:
            return np.zeros(0, np.int64)
        given = np.atleast_1d(given)
        right = given.dtype.kind in "iu" and given.ndim == 1 and given.min() >= 0 and given.max() < len(self)
        if not right or len(np.unique(given)) != len(given):
            raise UsageError(f"robots: want a mask ({len(self)},), or different numbers from 0 to {len(self) - 1}")
        return given.astype(np.int64)

    # ------------------------------------------------------------------ derivatives

    def derivatives(
        self,
        robots: ArrayLike | None = None,
        inputs: Sequence[str] | None = None,
        parameters: Sequence[str] = (),
        *,
        reduced: bool = False,
        step: float = STEP,
    ) -> list[StepDerivatives]:
        """Derivatives of the step that each of some robots, as in `reset`, would take now, as
        artsim.Simulation.derivatives gives them; `inputs` are by default the action. Nothing changes.

        Raises UsageError: an unknown name, a parameter that was varied; StoppedError: a robot that has stopped, or
        whose step stops.
        """
        chosen = self._chosen(robots)
        for name in parameters:
            if name.partition(":")[0] in self._varied:
                raise UsageError(f"parameters: {name!r} was varied: derivatives are by the model's own values")
        if stopped := [int(k) for k in chosen if self._status[k] != RUNNING]:
            raise StoppedError(f"derivatives: robot {stopped[0]} has stopped: {self.why_stopped(stopped[0])}")
        if self._copies is None:
            self._copies = CopiedPacks(self._plan)
        wanted = (self._action,) if inputs is None else inputs
        found = []
        for robot in chosen.tolist():
            self._copies.begin_in(self._fleet, robot)
            found.append(step_derivatives(self._copies, wanted, parameters, reduced=reduced, step=step))
        return found

    # ------------------------------------------------------------------ snapshots

    def save(self) -> dict[str, Array]:
        """The current state of all robots as plain arrays by name, for numpy.savez; `restore` continues from it byte
        for byte. The inputs that steps were given belong to it, and the properties that were varied."""
        return self._fleet.save()

    def restore(self, snapshot: Mapping[str, Array]) -> None:
        """Continue from a snapshot of as many robots that began with the same settings, in this process or another.

        Raises UsageError if it does not fit; nothing has changed then.
        """
        self._fleet.forget_contacts(slice(None))
        self._fleet.restore(snapshot)

    def close(self) -> None:
        """End the threads."""
        self._fleet.close()

    def __repr__(self) -> str:
        return f"<VectorSimulation: {len(self)} of {self.robot.articulation.name}>"


def _refuse(plan: Plan) -> None:
    """Raise UsageError for what packs lack, and for variables that have no place here."""
    if reason := reason_against_packs(plan):
        raise UsageError(f"VectorSimulation: packs lack {reason}; use artsim.Simulation or artsim.rollout")
    for name in plan.config.record:
        if name == "delassus":
            raise UsageError("record: there is no place for 'delassus', of which a step has any number")


def _action(plan: Plan, asked: str | None) -> str:
    """The input that is the action. Raises UsageError for one that is none."""
    known = ("control", "target", "torque")
    if asked is not None:
        if asked not in known:
            raise UsageError(f"action: {asked!r} is not known{nearest(asked, known)}; known: {', '.join(known)}")
        return asked
    return action_of(plan)
