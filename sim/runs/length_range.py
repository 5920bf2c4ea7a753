"""Finds the length range of a muscle whose file gives none by pulling at it, as MuJoCo does.

MuJoCo's reference, compiler/lengthrange: in a robot without gravity, springs, friction, damping or other forces the
actuator pulls, then pushes, from the file's pose until limits stop it; the two lengths at which it settles bound the
range. Limits are hard here. MuJoCo's are soft, so that its ranges are mostly wider by a few thousandths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from artsim.sim.articulation.description import Actuator, Articulation, FileOptions, LengthSearch
from artsim.sim.foundation.budget import MORE, allowed
from artsim.sim.foundation.errors import ModelError
from artsim.sim.run_data.integration import SEMI_IMPLICIT_EULER
from artsim.sim.run_data.run_records import STEPS_TO_TAKE, STOP_REASON
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan, plan_run
from artsim.sim.runs.simulate import Simulation

_TINY = 1e-15  # least divisor
_MOST_STEPS = 100_000  # of all searches together: 50 muscles with MuJoCo's defaults
_IDLE: dict[str, Any] = {
    "actuator_range": None,
    "damping": 0.0,
    "damping_polynomial": (0.0, 0.0),
    "friction": 0.0,
    "stiffness": 0.0,
    "stiffness_polynomial": (0.0, 0.0),
}


def with_length_ranges(robot: Articulation, notes: list[str]) -> Articulation:
    """The robot with the length range found for every muscle whose file gives none; deterministic.

    Raises ModelError: a length that does not settle.
    """
    pulls = [actuator for actuator in robot.actuators if actuator.length_search is not None]
    if not pulls:
        return robot
    _refuse_many(pulls)
    found = dict(zip((pull.name for pull in pulls), length_ranges(robot, pulls), strict=True))
    told = [f"{name!r} {low:.4g} to {high:.4g}" for name, (low, high) in found.items()]
    more = f" and {len(told) - 3} more" if len(told) > 3 else ""
    notes.append(f"no lengthrange in the file, found by simulation: {', '.join(told[:3])}{more}")
    actuators = tuple(
        replace(actuator, length_range=found[actuator.name], length_search=None) if actuator.name in found else actuator
        for actuator in robot.actuators
    )
    return replace(robot, actuators=actuators)


def _refuse_many(pulls: Sequence[Actuator]) -> None:
    """Raise ModelError if the search would take minutes."""
    steps = [2.0 * s.duration / s.time_step for pull in pulls if (s := pull.length_search) is not None]
    if sum(steps) > allowed(_MOST_STEPS):
        raise ModelError(
            f"{pulls[0].source}: {len(pulls)} actuators without lengthrange, which would be found by {sum(steps):.3g} "
            f"steps of simulation, above {allowed(_MOST_STEPS):.3g}; give them a lengthrange, or {MORE}"
        )


def length_ranges(robot: Articulation, pulls: Sequence[Actuator]) -> list[tuple[float, float]]:
    """The smallest and the largest length of each of these actuators [m or rad]. Raises ModelError."""
    bare = replace(
        robot,
        joints=tuple(replace(joint, friction_coefficient=0.0, **_IDLE) for joint in robot.joints),
        tendons=tuple(replace(tendon, **_IDLE) for tendon in robot.tendons),
        actuators=tuple(_as_force(pull) for pull in pulls),
        sensors=(),
        keyframes=(),
        options=FileOptions(),
    )
    found = []
    plans: dict[float, Plan] = {}
    for number, pull in enumerate(pulls):
        search = pull.length_search
        assert search is not None
        if search.time_step not in plans:
            plans[search.time_step] = plan_run(bare, _config(search))
        ends = [_Pull(plans[search.time_step], number, search, sign).settled() for sign in (-1.0, 1.0)]
        found.append(_checked(pull, search, *ends))
    return found


def _as_force(pull: Actuator) -> Actuator:
    """An actuator with the same transmission whose control is its force."""
    return Actuator(
        pull.name,
        pull.target,
        pull.gear,
        pull.source,
        pull.transmission,
        pull.reference,
        pull.crank_length,
        gain_parameters=(1.0,),
    )


def _config(search: LengthSearch) -> RunConfig:
    return RunConfig(
        contacts=False,
        dt=search.time_step,
        gravity=(0.0, 0.0, 0.0),
        integrator=SEMI_IMPLICIT_EULER.name,
        record=("actuator_length", "mass_matrix"),
    )


def _checked(
    pull: Actuator, search: LengthSearch, low: tuple[float, float], high: tuple[float, float]
) -> tuple[float, float]:
    """The outermost lengths. Raises ModelError if one of the ends has not settled."""
    least, greatest = low[0], high[1]
    spread = max(low[1] - low[0], high[1] - high[0])
    if not greatest > least:
        problem = f"has no range of lengths: it is {least:.6g} pulled, {greatest:.6g} pushed"
    elif not spread <= search.tolerance * (greatest - least):
        problem = f"does not settle in {search.duration:g} s: its length is {low[0]:.6g} to {low[1]:.6g} pulled"
        problem += f", {high[0]:.6g} to {high[1]:.6g} pushed"
    else:
        return least, greatest
    raise ModelError(
        f"{pull.source}: actuator {pull.name!r}: {problem}; give it a lengthrange, or what it moves a range"
    )


class _Pull(Simulation):
    """A simulation in which one actuator pulls (sign -1) or pushes (1), its force scaled as in MuJoCo's evalAct."""

    def __init__(self, plan: Plan, actuator: int, search: LengthSearch, sign: float) -> None:
        zero = np.zeros(plan.robot.nv)
        controls = Controls.held(torque=zero, target=zero, target_velocity=zero, control=np.zeros(plan.control.size))
        super().__init__(plan, controls, block_rows=1)
        self._actuator, self._search, self._sign = actuator, search, sign

    def settled(self) -> tuple[float, float]:
        """Smallest and largest length over the last interval; NaN if the simulation diverges."""
        search = self._search
        kept = math.exp(-search.time_step / max(0.01, search.time_constant))
        steps = math.ceil(search.duration / search.time_step)
        watched = min(math.ceil(search.interval / search.time_step), steps)
        lengths = np.empty(watched)
        for step in range(steps):
            self._state.qvel[:] *= kept
            if not self._step_on():
                return math.nan, math.nan
            lengths[step % watched] = self._block.actuator_length[0, self._actuator]
        return float(lengths.min()), float(lengths.max())

    def _step_on(self) -> bool:
        """Take one step twice from the same state, first to find the moment arms; False if the simulation diverges."""
        start = self.qpos, self.qvel
        self._block.plan[STEPS_TO_TAKE] = 1
        for pulls in (False, True):
            self._inputs.control[0, self._actuator] = self._force() if pulls else 0.0
            self._state.qpos[:], self._state.qvel[:] = start
            self._call()
        return not self._step.counters[STOP_REASON]

    def _force(self) -> float:
        """The force that gives the joints an acceleration of the wanted norm in the pose of the last step."""
        assert self._equipment is not None
        equipment, work = self._equipment
        entries = slice(*equipment.actuator_entry[self._actuator : self._actuator + 2])
        moment = np.zeros(self.plan.robot.nv)
        moment[equipment.actuator_dof[entries]] = work.actuator_moment[entries]
        acceleration = np.linalg.norm(np.linalg.solve(self._block.mass_matrix[0], moment))
        force = self._search.acceleration / max(_TINY, float(acceleration))
        if self._search.most_force > 0:
            force = min(force, self._search.most_force / max(_TINY, float(np.linalg.norm(moment))))
        return self._sign * force
