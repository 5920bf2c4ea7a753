"""The rating of samples in their packs: a program of expressions that ends samples and sums up their costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.articulation.state import State
from artsim.sim.foundation.errors import StoppedError
from artsim.sim.foundation.jit import Entry, point_at
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.evaluation import Evaluation
from artsim.sim.quantities.program import EVALUATE, Instructions, ProgramRun
from artsim.sim.run_data.run_records import RunBundle
from artsim.sim.runs.packable import pack_width
from artsim.sim.runs.plan import Plan
from artsim.sim.stepping.packs import BY_CONTROL, BY_TARGET, BY_TORQUE, Rating, rater_of_packs

_BY = {"control": BY_CONTROL, "target": BY_TARGET, "torque": BY_TORQUE}


class Criteria(NamedTuple):
    """The expressions by which samples are rated, compiled."""

    instructions: Instructions  # with the outputs UNTIL and COST
    links: Mapping[str, str]  # quantities of links at their origins from which it loads: the table of each
    action: str  # the input that is the action, and the number of its entries
    actions: int
    why_unknown: Callable[[Array, int], str]  # tells why a sample has no rating, from the registers


class Rater:
    """Rates the samples of packs of one thread. `ended` and `cost` (samples,) as in Rating."""

    def __init__(self, plan: Plan, criteria: Criteria, ended: Array, cost: Array) -> None:
        lanes, robot, samples = pack_width(), plan.robot, len(ended)
        self._why_unknown = criteria.why_unknown
        sizes = {"qpos": robot.nq, "qvel": robot.nv, "activation": len(plan.activation)}
        tables = {name: np.zeros((lanes, size)) for name, size in sizes.items()}
        tables |= {"action": np.zeros((lanes, criteria.actions)), "time": np.zeros((lanes, 1))}
        self._kept: list[object] = []  # objects that kernels call through addresses
        of_links, finder = dict[str, Array](), np.zeros(2, np.int64)
        if criteria.links:
            evaluation = Evaluation(robot.model, robot.labels, [*criteria.links], at="origin")
            _, outputs = evaluation.allocate(lanes)
            states = {name: tables[name] for name in evaluation.inputs}
            self._kept.append(evaluation.connect(finder, {**states, **outputs}))
            of_links = {criteria.links[name]: outputs[name].reshape(lanes, -1) for name in evaluation.quantities}
        program = ProgramRun(criteria.instructions, tables | of_links, lanes)
        evaluator, work = np.zeros(2, np.int64), program.work
        self._kept += [program, program.connect(evaluator)]
        self.rating = Rating(
            evaluator=evaluator,
            finder=finder,
            **tables,
            output=work.output,
            memory=work.memory,
            always=work.always,
            register=work.register,
            by=np.array([_BY[criteria.action]]),
            time_step=np.array([plan.dt]),
            rated=np.full(samples, -1),
            ended=ended,
            cost=cost,
            kept=np.zeros((samples, len(criteria.instructions.kept))),
            unknown=np.full(1, -1),
            found=np.zeros(len(work.register)),
        )
        self.begin()

    def begin(self) -> None:
        """Begin with other samples."""
        rating = self.rating
        rating.rated[:] = rating.ended[:] = rating.unknown[:] = -1
        rating.cost[:] = 0.0

    def connect(self, pointers: Array, state: State, run: RunBundle) -> object:
        """Have a pack call it by `pointers` (2,), as long as the returned object is kept."""
        plain = run._replace(lanes=run.lanes._replace(adhesion=None))
        return point_at(rater_of_packs(), pack_width(), pointers, state, plain, self.rating)

    def check(self, first: int) -> None:
        """Raise StoppedError if a sample has no rating. `first`: the number of the first one."""
        sample = int(self.rating.unknown[0])
        if sample >= 0:
            raise StoppedError(self._why_unknown(self.rating.found, first + sample))


def rating_kernels(criteria: Criteria) -> list[tuple[Entry, int]]:
    """The kernels that rate, with their widths."""
    from artsim.sim.quantities.compute_records import COMPUTE

    of_links: list[Any] = [(COMPUTE, pack_width())] if criteria.links else []
    return [(rater_of_packs(), pack_width()), (EVALUATE, 1), *of_links]
