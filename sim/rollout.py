"""Many runs of one robot that differ in start, inputs, masses and the like: in packs of 8 where that can be.

A pack takes the step without rows in all lanes at once; see pack_step.py. A robot with what packs do not know
(`reason_against_packs`) runs sample after sample through Simulation. Samples do not depend on each other: their bytes
are the same however many there are, and in how many threads.

No numba here: a process with warm kernels imports this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from artsim.sim.configuration import INTEGRATORS, SOLVERS
from artsim.sim.controls import Controls
from artsim.sim.errors import UsageError, nearest
from artsim.sim.jit import Entry, address, bind, machine_code
from artsim.sim.model import Model
from artsim.sim.plan import Plan
from artsim.sim.records import (
    WIDTH,
    Array,
    ConstInts1,
    ConstReals3,
    Ints1,
    Lanes1,
    Reals1,
    Reals2,
    Reals3,
    allocate,
    kinds,
    with_lanes,
    zeros,
)
from artsim.sim.run import (
    DIRECT,
    NEWTON,
    NO_CONTROLLER,
    PROPAGATION,
    RUNNING,
    SEMI_IMPLICIT_EULER,
    Inputs,
    Rows,
    Step,
    make_step,
)
from artsim.sim.simulate import Simulation, simulation_of
from artsim.sim.spatial import point_inertia, six, symmetric
from artsim.sim.state import State, Workspace, make_state, make_workspace

VARIED = {
    "mass": "link",
    "armature": "dof",
    "damping": "dof",
    "stiffness": "dof",
    "friction": "dof",
    "drive_stiffness": "dof",
    "drive_damping": "dof",
}
"""What a sample may have of its own, as factors of the robot's; by what they are counted."""

STEP, INPUT_ROW, HELD, ALONE = range(4)  # of PackWork.counters
_ALWAYS = 1 << 62  # steps: never again
_STEPS_PER_CALL = 2048  # a signal is looked at between calls only

_BODY_ARRAYS = ("body_mass", "carried_mass", "body_moment", "body_inertia")
_DOF_ARRAYS = ("armature", "damping", "stiffness")
_DRIVE_ARRAYS = ("drive_stiffness", "drive_damping")
_INPUT_ARRAYS = ("torque", "target", "target_velocity")

PackModel = with_lanes(Model, "PackModel", (*_BODY_ARRAYS, *_DOF_ARRAYS))
PackInputs = with_lanes(Inputs, "PackInputs", (*_DRIVE_ARRAYS, *_INPUT_ARRAYS))
PackStep = with_lanes(
    Step, "PackStep", ("applied", "qacc", "diagonal", "stiffness", "damping", "force", "velocity", "next")
)


class PackControls(NamedTuple):
    """Inputs over time: of all lanes alike (1, rows, nv), or of each (WIDTH, rows, nv)."""

    start_step: ConstInts1  # (rows,)
    torque: ConstReals3
    target: ConstReals3
    target_velocity: ConstReals3


class PackWork(NamedTuple):
    """What is known of the lanes."""

    counters: Ints1  # (4,) STEP, INPUT_ROW, HELD: whether `impulse` holds any, ALONE: steps that lanes took alone
    address: ConstInts1  # (2,) of the entry of a single robot's step, and of its table
    alive: Ints1  # (lanes,) 0: a copy that fills up the pack, or stopped at a state that is not finite
    stopped: Ints1  # (lanes,) at which step; -1: not
    stopped_dof: Ints1  # (lanes,)
    beyond: Lanes1  # (1,) more than 0: the step without rows breaks a bound
    dead: Lanes1  # (1,) more than 0: it is not finite
    qpos: Lanes1  # (nq,) of lanes that took the step alone
    qvel: Lanes1  # (nv,)
    impulse: Lanes1  # (rows,)


class Single(NamedTuple):
    """The arrays of a single robot's step that a lane's numbers are put into and taken from."""

    counters: Ints1  # Step's
    qpos: Reals1
    qvel: Reals1
    impulse: Reals1
    body_mass: Reals1
    carried_mass: Reals1
    body_moment: Reals2
    body_inertia: Reals2
    armature: Reals1
    damping: Reals1
    stiffness: Reals1
    drive_stiffness: Reals1
    drive_damping: Reals1
    torque: Reals2
    target: Reals2
    target_velocity: Reals2


class RolloutBlock(NamedTuple):
    """What is recorded of some samples. A field whose second extent is 0 is not recorded."""

    plan: Ints1  # (3,) steps to take now, every how many a row is recorded, first sample of the pack
    qpos: Reals3  # (samples, rows, nq)
    qvel: Reals3  # (samples, rows, nv)
    final_qpos: Reals2  # (samples, nq)
    final_qvel: Reals2  # (samples, nv)


ROLL = Entry(
    "roll",
    "artsim.sim.pack_step",
    (PackModel, State, Workspace, PackInputs, Rows, PackStep, PackControls, PackWork, Single, RolloutBlock),
)
RECORDED = ("qpos", "qvel")


@dataclass(frozen=True)
class Variations:
    """What samples have of their own. n of them; a factor of 1 leaves the robot's value."""

    qpos: Array  # (n, nq) at the start
    qvel: Array  # (n, nv)
    factors: Mapping[str, Array] = field(default_factory=dict)  # of VARIED: (n, links) or (n, nv)
    controls: Sequence[Controls] = ()  # one for each; none: those of all

    def __post_init__(self) -> None:
        for name in self.factors:
            if name not in VARIED:
                raise UsageError(f"{name!r} cannot be varied{nearest(name, VARIED)}")

    def __len__(self) -> int:
        return len(self.qpos)

    def part(self, start: int, stop: int) -> Variations:
        """Samples start … stop."""
        factors = {name: values[start:stop] for name, values in self.factors.items()}
        return Variations(self.qpos[start:stop], self.qvel[start:stop], factors, self.controls[start:stop])


@dataclass
class Results:
    """Arrays for n samples: recorded rows, final states, and how far each came.

    `stopped`: at which step a state was not finite, -1: it was not; `stopped_dof`: whose velocity it was.
    """

    rows: dict[str, Array]  # of RECORDED: (n, rows, ·); without rows where not recorded
    final_qpos: Array
    final_qvel: Array
    stopped: Array
    stopped_dof: Array

    @classmethod
    def of(cls, plan: Plan, samples: int) -> Results:
        """Zeroed, for so many samples (rounded up to whole packs)."""
        n, config, robot = -(-samples // WIDTH) * WIDTH, plan.config, plan.robot
        count = -(-config.steps // config.every)
        sizes = {"qpos": robot.nq, "qvel": robot.nv}
        rows = {name: np.zeros((n, count if name in config.record else 0, size)) for name, size in sizes.items()}
        return cls(rows, np.zeros((n, robot.nq)), np.zeros((n, robot.nv)), np.full(n, -1), np.full(n, -1))


def reason_against_packs(plan: Plan) -> str:
    """What of a run packs do not know; empty when nothing is."""
    model, inputs, config = plan.robot.model, plan.inputs, plan.config
    reasons = {
        f"integrator {config.integrator}": INTEGRATORS[config.integrator] != SEMI_IMPLICIT_EULER,
        f"solver {config.solver}": SOLVERS[config.solver] not in (NEWTON, PROPAGATION, DIRECT),
        "maximal coordinates": config.coordinates != "reduced",
        "tendons, actuators, loops or forces of a medium": plan.equipped is not None,
        "contact": plan.touching is not None,
        "rules of links": plan.rules is not None,
        "sleeping": inputs["sleep"][0] > 0,
        "a controller": inputs["controller"][0] != NO_CONTROLLER,
        "couplings": len(model.coupling_follower) + len(model.row_follower) > 0,
        "joint friction": bool(np.any(model.friction > 0) or np.any(model.friction_coefficient > 0)),
        "limits of a ball's angle": bool(np.any((model.dof_coord < 0) & np.isfinite(model.upper))),
        "acceleration drives": bool(np.any(inputs["drive_acceleration"])),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def kernels(plan: Plan) -> list[tuple[Entry, int]]:
    """The entries that its samples need, with their widths."""
    if plan.config.coordinates == "maximal":
        return []
    packed = machine_code() and not reason_against_packs(plan)
    return [(plan.entry, 1), *([(ROLL, WIDTH)] if packed else [])]


# ------------------------------------------------------------------ what is varied, as arrays


class VariedArrays:
    """Arrays of the model and of the drives as factors make them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        model = plan.robot.model
        self._shares = np.array([_link_share(model, link) for link in range(len(model.link_mass))]).reshape(-1, 10)

    def of(self, factors: Mapping[str, Array]) -> dict[str, Array]:
        """The arrays that the factors of n samples change, by name, one for each sample: (n, …)."""
        model, changed = self._plan.robot.model, dict[str, Array]()
        if "mass" in factors:
            changed |= self._masses(factors["mass"])
        for name in ("armature", "damping", "stiffness", "friction"):
            if name in factors:
                changed[name] = getattr(model, name) * factors[name]
        if "friction" in factors:
            changed["friction_coefficient"] = model.friction_coefficient * factors["friction"]
        for name in _DRIVE_ARRAYS:
            if name in factors:
                changed[name] = self._plan.inputs[name] * factors[name]
        return changed

    def _masses(self, factor: Array) -> dict[str, Array]:
        model = self._plan.robot.model
        bodies = np.zeros((len(factor), len(model.body_mass), 10))
        for link, share in enumerate(self._shares):
            bodies[:, model.link_body[link]] += factor[:, link, None] * share
        carried = bodies[:, :, 0].copy()
        for body in range(carried.shape[1] - 1, 0, -1):
            carried[:, model.body_parent[body]] += carried[:, body]
        return {
            "body_mass": bodies[:, :, 0],
            "carried_mass": carried,
            "body_moment": bodies[:, :, 1:4],
            "body_inertia": bodies[:, :, 4:],
            "link_mass": model.link_mass * factor,
            "link_inertia": model.link_inertia * factor[:, :, None],
        }


def _link_share(model: Model, link: int) -> Array:
    """(10,) what a link adds to its body: mass, first moment, inertia about the body's origin."""
    mass, turn = model.link_mass[link], model.link_rotation[link]
    centre = model.link_position[link] + turn @ model.link_com[link]
    inertia = turn @ symmetric(model.link_inertia[link]) @ turn.T + point_inertia(float(mass), centre)
    return np.concatenate([[mass], mass * centre, six(inertia)])


# ------------------------------------------------------------------ running samples


Stop = Callable[[], bool]


class Roller(Protocol):
    """Runs samples into its results, in one thread. `alone`: steps that lanes of packs took by themselves, so far."""

    results: Results
    alone: int

    def run(self, variations: Variations, stop: Stop) -> bool:
        """The samples of `variations` into the first entries of the results; False when it was asked to stop."""


def make_roller(plan: Plan, controls: Controls, results: Results) -> Roller:
    """What runs samples into these results: packs where they can."""
    if machine_code() and not reason_against_packs(plan):
        return PackRoller(plan, controls, results)
    return SingleRoller(plan, controls, results)


class SingleRoller:
    """One sample after the other."""

    def __init__(self, plan: Plan, controls: Controls, results: Results) -> None:
        self.results, self.alone = results, 0
        self._plan, self._controls = plan, controls
        self._arrays = VariedArrays(plan)

    def run(self, variations: Variations, stop: Stop) -> bool:
        """See Roller."""
        return all(self._run_one(k, variations.part(k, k + 1), stop) for k in range(len(variations)))

    def _run_one(self, k: int, own: Variations, stop: Stop) -> bool:
        results, count = self.results, 0
        simulation = simulation_of(self._plan_of(own), own.controls[0] if own.controls else self._controls)
        for block in simulation.blocks():
            rows = len(next(iter(block.rows.values()), ()))
            for name, values in block.rows.items():
                results.rows[name][k, count : count + rows] = values
            count += rows
            if stop():
                return False
        results.final_qpos[k], results.final_qvel[k] = simulation.qpos, simulation.qvel
        stopped = simulation.stop_reason != RUNNING
        results.stopped[k] = simulation.step if stopped else -1
        results.stopped_dof[k] = simulation.stop_dof if stopped else -1
        return True

    def _plan_of(self, own: Variations) -> Plan:
        """The plan of one sample."""
        plan = replace(self._plan, qpos=own.qpos[0], qvel=own.qvel[0])
        changed = {name: values[0] for name, values in self._arrays.of(own.factors).items()}
        if not changed:
            return plan
        drives = {name: changed.pop(name) for name in _DRIVE_ARRAYS if name in changed}
        return replace(plan, robot=plan.robot.with_model(changed), inputs={**plan.inputs, **drives})


class _LaneSimulation(Simulation):
    """A single robot's step whose arrays packs write into."""

    def arrays(self) -> Single:
        """Them."""
        model, inputs, state = self.plan.robot.model, self._inputs, self._state
        from_model = {name: getattr(model, name) for name in (*_BODY_ARRAYS, *_DOF_ARRAYS)}
        from_inputs = {name: getattr(inputs, name) for name in (*_DRIVE_ARRAYS, *_INPUT_ARRAYS)}
        from_state = {"qpos": state.qpos, "qvel": state.qvel, "impulse": state.impulse}
        return Single(counters=self._step.counters, **from_model, **from_inputs, **from_state)

    def address(self) -> tuple[int, Array]:
        """Of its entry, and the entry's table."""
        self._block.plan[:] = 1, _ALWAYS
        return address(self.plan.entry, 1, *self._records(self.plan.entry))


class PackRoller(Roller):
    """Packs of 8 samples, the last one filled up with copies of the last sample."""

    def __init__(self, plan: Plan, controls: Controls, results: Results) -> None:
        self.results, self.alone = results, 0
        self._plan = plan
        self._varied = VariedArrays(plan)
        model = plan.robot.model
        self._single = _LaneSimulation(_with_own_arrays(plan), _one_row(controls))
        self._places = self._single.arrays()
        function, self._table = self._single.address()
        self._model = _in_lanes(PackModel, model)
        self._state = make_state(model, WIDTH)
        self._work = make_workspace(model, WIDTH)
        self._inputs = self._make_inputs()
        rows = allocate(Rows, {**dict.fromkeys(Rows._fields, (0,)), "implicit": (plan.robot.nv,)}, WIDTH)
        rows.implicit[:] = (plan.inputs["drive_stiffness"] + plan.inputs["drive_damping"]) > 0
        step = make_step(model)
        step = PackStep(**{n: zeros(getattr(step, n).shape, kind, WIDTH) for n, kind in kinds(PackStep).items()})
        self._pack = self._make_pack(function, self._table.ctypes.data)
        self._block = RolloutBlock(
            np.zeros(3, np.int64), results.rows["qpos"], results.rows["qvel"], results.final_qpos, results.final_qvel
        )
        self._block.plan[1] = plan.config.every
        self._per_lane: PackControls | None = None
        self._records = (self._model, self._state, self._work, self._inputs, rows, step)
        self._bind(_pack_controls([controls]))

    def run(self, variations: Variations, stop: Stop) -> bool:
        """See Roller."""
        for start in range(0, len(variations), WIDTH):
            if not self._run_pack(start, variations.part(start, start + WIDTH), stop):
                return False
            lanes = slice(start, start + WIDTH)
            self.results.stopped[lanes] = self._pack.stopped
            self.results.stopped_dof[lanes] = self._pack.stopped_dof
        self.alone = int(self._pack.counters[ALONE])
        return True

    def _run_pack(self, first: int, part: Variations, stop: Stop) -> bool:
        self._fill(part)
        block, pack, steps = self._block, self._pack, self._plan.config.steps
        block.plan[2] = first
        pack.counters[[STEP, INPUT_ROW, HELD]] = 0, -1, 0
        pack.alive[:] = np.arange(WIDTH) < len(part)
        pack.stopped[:], pack.stopped_dof[:] = -1, -1
        pack.impulse[:] = 0.0
        while (done := int(pack.counters[STEP])) < steps:
            block.plan[0] = min(steps - done, _STEPS_PER_CALL)
            self._call()
            if stop():
                return False
        return True

    def _fill(self, part: Variations) -> None:
        """The lanes' own numbers."""
        own = np.minimum(np.arange(WIDTH), len(part) - 1)
        self._state.qpos[...], self._state.qvel[...] = part.qpos[own].T, part.qvel[own].T
        for name, values in self._varied.of(part.factors).items():
            if name in (*_BODY_ARRAYS, *_DOF_ARRAYS, *_DRIVE_ARRAYS):
                record = self._inputs if name in _DRIVE_ARRAYS else self._model
                getattr(record, name)[...] = np.moveaxis(values[own], 0, -1)
        if part.controls:
            self._set_controls([part.controls[k] for k in own])

    def _set_controls(self, controls: Sequence[Controls]) -> None:
        wanted = _pack_controls(controls)
        held = self._per_lane
        if held is None or held.torque.shape != wanted.torque.shape:
            self._per_lane = wanted
            self._bind(wanted)
        else:
            for place, values in zip(held, wanted, strict=True):
                place[...] = values

    def _bind(self, controls: PackControls) -> None:
        self._call = bind(ROLL, WIDTH, *self._records, controls, self._pack, self._places, self._block)

    def _make_inputs(self) -> Any:
        plan, nv = self._plan, self._plan.robot.nv
        given: dict[str, Array] = {name: np.ascontiguousarray(values) for name, values in plan.inputs.items()}
        given |= dict.fromkeys(_INPUT_ARRAYS, np.zeros((1, nv)))
        given |= {"start_step": np.zeros(1, np.int64), "control": np.zeros((1, 0))}
        return _in_lanes(PackInputs, Inputs(**given))

    def _make_pack(self, function: int, table: int) -> PackWork:
        robot, place = self._plan.robot, np.array([function, table], np.int64)
        shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(("alive", "stopped", "stopped_dof"), (WIDTH,)),
            **dict.fromkeys(("beyond", "dead"), (1,)),
            "counters": (4,),
            "address": (2,),
            "qpos": (robot.nq,),
            "qvel": (robot.nv,),
            "impulse": (len(self._places.impulse),),
        }
        pack: PackWork = allocate(PackWork, shapes, WIDTH)
        return pack._replace(address=place)


def _in_lanes(record: type[Any], values: Any) -> Any:
    """A record with lanes, all of which hold the same values."""
    arrays = {}
    for name, kind in kinds(record).items():
        value = getattr(values, name)
        if kind.lanes:
            lanes = zeros(value.shape, kind, WIDTH)
            lanes[...] = value[..., None]
            value = lanes
        arrays[name] = value
    return record(**arrays)


def _with_own_arrays(plan: Plan) -> Plan:
    """A plan that records nothing, with copies of the arrays that packs write into."""
    model = plan.robot.model
    own = {name: np.array(getattr(model, name)) for name in (*_BODY_ARRAYS, *_DOF_ARRAYS)}
    compiled = replace(plan.robot.compiled, model=model._replace(**own))
    inputs = {name: np.array(values) for name, values in plan.inputs.items()}
    config = replace(plan.config, record=(), steps=1, every=1)
    return replace(plan, robot=replace(plan.robot, compiled=compiled), inputs=inputs, config=config)


def _one_row(controls: Controls) -> Controls:
    """The first row for all time: packs write others into its place."""
    rows = {name: getattr(controls, name)[0] for name in _INPUT_ARRAYS}
    return Controls.held(**rows)


def _pack_controls(controls: Sequence[Controls]) -> PackControls:
    """The inputs of all lanes, or of each. They begin at the same steps."""
    tables = {name: np.stack([getattr(c, name) for c in controls]) for name in _INPUT_ARRAYS}
    return PackControls(np.array(controls[0].start_step), **tables)
