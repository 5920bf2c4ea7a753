"""The states and properties with which robots of an environment begin, drawn by a generator of each robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np

from artsim.io.environments.task import Draw, Task
from artsim.sim.articulation.model import following_dofs
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.varied import shape_of


class Starts:
    """Draws of initial states and properties.

    A robot takes even numbers first, then normal ones, in the order of the model's entries, qpos before qvel before
    activation before properties, so that its draws depend on its generator alone.
    """

    def __init__(self, plan: Plan, task: Task) -> None:
        """Raises UsageError for a name that is none of an entry."""
        labels = plan.robot.labels
        activations = () if plan.equipped is None else plan.equipped.labels.activations
        entries = {"qpos": labels.coords, "qvel": labels.dofs, "activation": activations}
        follows = {labels.dofs[k] for k in following_dofs(plan.robot.model)}
        self._states = {
            name: _by_entry(f"reset.{name}", draws, entries[name], follows) for name, draws in task.start.items()
        }
        self._begin = {name: dict(zip(entries[name], getattr(plan, name), strict=True)) for name in entries}
        self._gravity = plan.robot.model.gravity
        self._vary = {
            name: (draw, () if name == "gravity" else shape_of(plan, name)) for name, draw in task.vary.items()
        }
        draws = [draw for found in self._states.values() for draw in found.values()]
        self._normal = sum(1 for draw in draws if draw.kind == "normal")
        varied = sum(int(np.prod(shape)) for _, shape in self._vary.values())
        self._even = len(draws) - self._normal + varied

    def draw(self, generators: Sequence[np.random.Generator]) -> tuple[dict[str, dict[str, Array]], dict[str, Array]]:
        """States by variable and entry, and properties by name, for robots with these generators, (robots, …)."""
        even, normal = np.zeros((len(generators), self._even)), np.zeros((len(generators), self._normal))
        for k, generator in enumerate(generators):
            if self._even:
                generator.random(out=even[k])
            if self._normal:
                generator.standard_normal(out=normal[k])
        next_even, next_normal = 0, 0
        states: dict[str, dict[str, Array]] = {}
        for name, draws in self._states.items():
            states[name] = {}
            for entry, draw in draws.items():
                begin = 0.0 if draw.kind == "uniform" else self._begin[name][entry]
                if draw.kind == "normal":
                    states[name][entry] = begin + draw.low * normal[:, next_normal]
                    next_normal += 1
                else:
                    states[name][entry] = begin + draw.low + (draw.high - draw.low) * even[:, next_even]
                    next_even += 1
        varied = {}
        for name, (draw, shape) in self._vary.items():
            size = int(np.prod(shape))
            found = draw.low + (draw.high - draw.low) * even[:, next_even : next_even + size]
            varied[name] = found.reshape(len(generators), *shape)
            next_even += size
        if "gravity" in varied:
            varied["gravity"] = self._gravity * varied["gravity"][:, None]
        return {name: found for name, found in states.items() if found}, varied


def _by_entry(title: str, draws: Mapping[str, Draw], names: Sequence[str], follows: set[str]) -> dict[str, Draw]:
    """The draw of each entry; of several patterns the last one holds. Raises UsageError for one that names none.

    A pattern does not mean followers, which their leaders set.
    """
    found = {}
    for pattern, draw in draws.items():
        matching = [name for name in names if fnmatchcase(name, pattern) and name not in follows]
        if pattern in names:
            matching = [pattern]
        if not matching:
            raise UsageError(f"{title}: {pattern!r} is not known{nearest(pattern, names)}")
        found.update(dict.fromkeys(matching, draw))
    return {name: found[name] for name in names if name in found}
