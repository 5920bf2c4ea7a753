"""States, properties and quantities of some robots, given for each, for all of them or by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from artsim.io.runs.held_inputs import numbers_of
from artsim.io.runs.progress import warm
from artsim.io.runs.stepped import Numbers
from artsim.sim.articulation.turn_limits import axis_couplings
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.fleet import Fleet
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.start import follow_velocities, settle_coordinates
from artsim.sim.runs.varied import (
    PLACED,
    VARIED,
    components_of,
    least_of,
    refuse_fixed,
    refuse_varied,
    shape_of,
)


def quantities_of(robot: Robot, fleet: Fleet, quantities: Sequence[str]) -> tuple[dict[str, Array], Callable[[], None]]:
    """Quantities of `robot.compute`, links at their origins, of all robots of a fleet as arrays (n, …) by name; and the
    call that sets them to those of the present state.

    Raises UsageError: an unknown quantity, or one that needs more than a state.
    """
    evaluation = robot.evaluation(quantities, at="origin")
    states = dict(zip(("qpos", "qvel"), fleet.in_packs, strict=True))
    for name in evaluation.inputs:
        if name not in states:
            raise UsageError(f"{', '.join(quantities)}: needs {name}, which a state has not; robot.compute takes it")
    warm(evaluation.entries)
    rows = len(states["qpos"])
    _, outputs = evaluation.allocate(rows)
    call = evaluation.bound({name: states[name] for name in evaluation.inputs}, outputs)
    return {name: outputs[name][: fleet.n] for name in evaluation.quantities}, lambda: call(rows)


def properties_of(
    plan: Plan, given: Mapping[str, Any], robots: int, who: str, known: Sequence[str] = (*VARIED, *PLACED)
) -> dict[str, Array]:
    """Properties of VARIED and PLACED of some robots as Variations has them, from a number, an array for all robots or
    one for each; `who` takes those that are `known`. Raises UsageError: an unknown property, a wrong shape, a factor or
    a time that is negative, a mass of none, or a property that this plan does not let vary."""
    made = dict[str, Array]()
    for name, values in given.items():
        if name not in known:
            raise UsageError(f"{who}: {name!r} is not known{nearest(name, known)}; known: {', '.join(known)}")
        refuse_fixed(plan, [name])
        shape, numbers = shape_of(plan, name), numbers_of(name, values)
        if numbers.shape not in ((), shape, (robots, *shape)) or (components_of(name) and not numbers.shape):
            raise UsageError(f"{name} has shape {numbers.shape}, want {(robots, *shape)}, or {shape} for all")
        if not (np.isfinite(numbers) & (numbers >= least_of(name))).all():
            more = ", times from 0 [s]" if name == "push_time" else "" if name in PLACED else ", factors from 0"
            raise UsageError(f"{name}: want finite numbers{more}")
        whole = np.array(np.broadcast_to(numbers, (robots, *shape)))
        made[name] = whole if shape else whole[:, None]
    refuse_varied(plan, made)
    return made


def states_of(what: str, values: Numbers | None, names: tuple[str, ...], start: Array, robots: int) -> Array:
    """States (robots, entries) of some robots. Raises UsageError."""
    whole = np.tile(start, (robots, 1))
    if isinstance(values, Mapping):
        for name, numbers in values.items():
            if name not in names:
                raise UsageError(f"{what}: {name!r} is not known{nearest(name, names)}")
            given = numbers_of(f"{what} of {name!r}", numbers)
            if given.shape not in ((), (robots,)):
                raise UsageError(f"{what} of {name!r} has shape {given.shape}, want {(robots,)}, or a number")
            whole[:, names.index(name)] = given
    elif values is not None:
        given = numbers_of(what, values)
        if given.shape not in ((len(names),), whole.shape):
            raise UsageError(f"{what} has shape {given.shape}, want {whole.shape}, or {(len(names),)} for all")
        whole[:] = given
    if not np.isfinite(whole).all():
        raise UsageError(f"{what} is not finite")
    return whole


def settle(plan: Plan, qpos: Array, qvel: Array, *given: Numbers | None) -> None:
    """Normalise quaternions and set followers from their leaders. Raises UsageError for those that are given
    otherwise."""
    model, labels = plan.robot.model, plan.robot.labels
    coupled = len(model.coupling_follower) + len(model.row_follower) > 0 or axis_couplings(model)
    if not coupled and len(labels.coords) == len(labels.dofs):  # and no quaternions
        return
    named = [[*values] if isinstance(values, Mapping) else None for values in given]
    for q, v in zip(qpos, qvel, strict=True):
        places, rates = (
            dict(zip(names, values.tolist(), strict=True)) for names, values in ((labels.coords, q), (labels.dofs, v))
        )
        kept = [
            {name: values[name] for name in (values if own is None else own)} if there is not None else {}
            for own, values, there in zip(named, (places, rates), given, strict=True)
        ]
        settle_coordinates(model, labels, q, kept[0])
        follow_velocities(model, labels, q, v, kept[1])
