"""The variations of a rollout, drawn from a seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase

import numpy as np

from artsim.io.inputs.sampling import DISTRIBUTIONS, Stream, open_samples
from artsim.io.rollouts.given import Given, refuse_unknown
from artsim.sim.articulation.model import following_dofs
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.patterns import is_of_base
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.setting import MAX_STEPS
from artsim.sim.runs.varied import PLACED, VARIED, Variations, least_of, refuse_varied, shape_of

GIVEN = "given"
JOINTS = ""  # in RolloutConfig.spread: all joints of one dof that do not carry a base
STARTS = (GIVEN, *DISTRIBUTIONS)
_STREAMS = ("spread", "velocity_spread", *VARIED, *PLACED)  # random streams of the seed, whose order must not change
_FIRST_STREAM = 64  # `artsim batch` uses the streams before


@dataclass(frozen=True)
class RolloutConfig:
    """The number of samples and the variations between them. Raises UsageError for invalid values."""

    samples: int
    start: str = GIVEN
    # largest offset of the joints' coordinates [rad, m]; or by coordinate or pattern (JOINTS: all joints) the largest
    # offset or the ends of its range
    spread: float | Mapping[str, float | Sequence[float]] = 0.0
    velocity_spread: float = 0.0  # [rad/s, m/s]
    # range of factors by name in VARIED, of those of gravity and of each number of the pushes' impulses, of the offsets
    # of centres of mass [m] along each axis, of heights [m], delays [s] and times of pushes [s]
    randomise: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    until: str = ""  # expression of the state that ends a sample where it is not 0
    cost: str = ""  # expression of the state before each step that is summed over the steps
    given: tuple[str, ...] = ()  # what is given for each sample: qpos, qvel, properties

    def offsets(self) -> dict[str, tuple[float, float]]:
        """The ends of initial offsets by coordinate or pattern. Raises UsageError for invalid ones."""
        given = self.spread if isinstance(self.spread, Mapping) else {JOINTS: self.spread}
        ends = {}
        for name, reach in given.items():
            low, high = (-reach, reach) if isinstance(reach, int | float) else (float(end) for end in reach)
            if not -math.inf < low <= high < math.inf:
                of = f" of {name!r}" if name else ""
                raise UsageError(f"spread{of} is {reach}, want a finite number from 0, or LOW:HIGH")
            ends[name] = (low, high)
        return ends

    def __post_init__(self) -> None:
        if not 1 <= self.samples <= MAX_STEPS:
            raise UsageError(f"samples is {self.samples}, want 1 to {MAX_STEPS}")
        if self.start not in STARTS:
            raise UsageError(f"start {self.start!r} is not known{nearest(self.start, STARTS)}")
        if not 0.0 <= self.velocity_spread < math.inf:
            raise UsageError(f"velocity_spread is {self.velocity_spread}, want a finite number from 0")
        self.offsets()
        if self.spread and self.start != GIVEN:
            raise UsageError(f"spread is about the given start, and start is {self.start!r}")
        for name, bounds in self.randomise.items():
            refuse_unknown("randomise", name)
            low, high = bounds
            if not (least_of(name) <= low <= high < math.inf and -math.inf < low):
                want = "finite numbers LOW:HIGH, LOW ≤ HIGH" if name in PLACED else "factors LOW:HIGH, 0 < LOW ≤ HIGH"
                want = "times LOW:HIGH [s], 0 ≤ LOW ≤ HIGH" if name == "push_time" else want
                raise UsageError(f"randomise: {name}={low:g}:{high:g}: want {want}")
            if name in self.given:
                raise UsageError(f"randomise: {name} is given for each sample, and drawn")
        if "qpos" in self.given and self.start != GIVEN:
            raise UsageError(f"start is given for each sample, and drawn: {self.start!r}")


class Draws:
    """Draws the variations of a rollout by sample."""

    def __init__(self, plan: Plan, config: RolloutConfig, given: Given) -> None:
        """Raises UsageError for a negative seed."""
        self._plan, self._given = plan, given
        seed, model = _seed(plan.config.seed), plan.robot.model
        self._samples = None
        if config.start != GIVEN:
            self._samples = open_samples(
                model, plan.robot.labels, (), (), rows=config.samples, seed=seed, distribution=config.start
            )
        refuse_varied(plan, {name: np.array(bounds)[:, None] for name, bounds in config.randomise.items()})
        reach: dict[str, tuple[Array, Array]] = {}
        if config.spread:
            reach["spread"] = spread_ends(plan, config.offsets())
        if config.velocity_spread:
            fast = _velocity_spread(plan, config)
            reach["velocity_spread"] = -fast, fast
        ends = {name: (low, high) for name, (low, high) in reach.items() if low.any() or high.any()}
        for name, (low, high) in config.randomise.items():
            size = 1 if name == "gravity" else int(np.prod(shape_of(plan, name)))
            ends[name] = np.full(size, low), np.full(size, high)
        self.starts = tuple(given.starts)
        self.properties = tuple(name for name in (*VARIED, *PLACED) if name in ends or name in given.properties)
        self._streams = {
            name: Stream(seed, _FIRST_STREAM + _STREAMS.index(name), False, *bounds) for name, bounds in ends.items()
        }

    def read(self, start: int, stop: int, controls: Sequence[Controls] = ()) -> Variations:
        """The properties and states of samples start … stop, drawn or given, with these controls."""
        plan, n = self._plan, stop - start
        drawn = dict[str, Array]()
        for name, stream in self._streams.items():
            drawn[name] = np.empty((n, stream.width))
            stream.read(start, stop, drawn[name])
        if "gravity" in drawn:
            drawn["gravity"] = plan.robot.model.gravity * drawn["gravity"]
        for name in ("centre", "push"):
            if name in drawn:
                drawn[name] = drawn[name].reshape(n, *shape_of(plan, name))
        if "push" in drawn:
            drawn["push"] = plan.pushed.impulses * drawn["push"]
        starts = self.given_starts(start, stop)
        qpos = starts.get("qpos", np.tile(plan.qpos, (n, 1)))
        if self._samples is not None:
            self._samples.read(start, stop, {"qpos": qpos})
        if "spread" in drawn:
            qpos = _within_limits(plan, qpos + drawn.pop("spread"), qpos)
        qvel = starts.get("qvel", plan.qvel) + drawn.pop("velocity_spread", np.zeros((n, plan.robot.nv)))
        drawn |= {name: self._given.rows(name, start, stop) for name in self._given.properties}
        return Variations(qpos, qvel, {name: drawn[name] for name in self.properties}, controls, start)

    def given_starts(self, start: int, stop: int) -> dict[str, Array]:
        """The states that are given of samples start … stop, by name."""
        return {name: self._given.rows(name, start, stop) for name in self.starts}


def _seed(seed: int) -> int:
    if not 0 <= seed < 2**63:
        raise UsageError(f"seed {seed}: want 0 … 2^63 - 1")
    return seed


def spread_ends(plan: Plan, offsets: Mapping[str, tuple[float, float]]) -> tuple[Array, Array]:
    """The ends of the offsets of each coordinate (nq,). Rotations of ball and free joints and followers have none, the
    places of bases only where they are named.

    Raises UsageError for a name that no coordinate with an offset has.
    """
    model, coords = plan.robot.model, plan.robot.coords
    followers = following_dofs(model)
    movable = {int(coord): dof for dof, coord in enumerate(model.dof_coord) if coord >= 0 and dof not in followers}
    low, high = np.zeros(plan.robot.nq), np.zeros(plan.robot.nq)
    for name, ends in offsets.items():
        if name == JOINTS:
            found = [coord for coord, dof in movable.items() if not is_of_base(model, dof)]
        else:
            found = [coord for coord in movable if fnmatchcase(coords[coord], name)]
            if not found:
                known = [coords[coord] for coord in movable]
                raise UsageError(f"spread: {name!r} is no coordinate that can be spread{nearest(name, known)}")
        low[found], high[found] = ends
    return low, high


def _velocity_spread(plan: Plan, config: RolloutConfig) -> Array:
    model, values = plan.robot.model, np.zeros(plan.robot.nv)
    values[model.independent_dof] = config.velocity_spread
    return values


def _within_limits(plan: Plan, moved: Array, given: Array) -> Array:
    """Clamp moved coordinates to their limits; those given beyond a limit keep their values."""
    model = plan.robot.model
    for dof, coord in enumerate(model.dof_coord):
        if coord >= 0:
            lower = np.minimum(model.lower[dof], given[:, coord])
            moved[:, coord] = np.clip(moved[:, coord], lower, np.maximum(model.upper[dof], given[:, coord]))
    return moved
