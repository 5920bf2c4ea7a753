"""Convergence of a run: its error by runs with half and a quarter of its step (Richardson), and what spoils the order.

The three runs are compared in the tangent space of the first one's configurations, so that rotations of balls and free
bases count as angles. An error that shrinks by 2^p with each halving is of order p, and that of the run itself is
|q_h - q_h/2| / (1 - 2^-p) (Hairer, Nørsett, Wanner: Solving Ordinary Differential Equations I, II.4).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from artsim.io.runs.run import run
from artsim.sim.articulation.tangent import difference
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.simulate import ControllerFunction

HALVINGS = 2
_ROWS = 1000  # compared, about
_ACTS = {"tau_limit": "meets a limit", "tau_contact": "feels a contact"}
_RECORDED = ("qpos", *_ACTS)
_MOST_EVENTS = 10_000
_ROUNDING = 1e-11  # difference of two runs, beside the largest coordinate, that is no error of the step
_LEAST_ORDER, _MOST_ORDER = 0.5, 6.0  # of errors that are extrapolated
_SPOILED = 0.5  # order below which something spoils it

Inputs = tuple[Controls | None, ControllerFunction | None]  # over time, and the Python controller


class Event(NamedTuple):
    """Something that begins within a run and may change its order."""

    time: float  # [s]
    what: str


@dataclass(frozen=True)
class Convergence:
    """The error of a run at its own step, coordinate by coordinate of the tangent space (nv,), in rad or m.

    `end`, `largest`: estimates at the end and of the largest error, at the times `when` [s]; `order` (nv,): by which
    errors shrink, NaN where there is none but rounding. `spoiled` (nv,): times from which errors no longer shrink by
    2^½ with a halving, to the end [s], NaN where they do; `events`: limits and contacts that begin to act, in the order
    of time.
    """

    dofs: tuple[str, ...]
    units: tuple[str, ...]
    dt: tuple[float, ...]
    end: Array
    largest: Array
    when: Array
    order: Array
    spoiled: Array
    events: tuple[Event, ...]

    @property
    def overall(self) -> float:
        """The order of the coordinate with the largest error; NaN where there is none but rounding."""
        known = np.flatnonzero(np.isfinite(self.order))
        return float(self.order[known[np.argmax(self.largest[known])]]) if known.size else float("nan")

    def cause(self, k: int) -> Event | None:
        """The last event before the order of a coordinate is spoiled, None without any."""
        before = [event for event in self.events if event.time <= self.spoiled[k]]
        return before[-1] if before else None


def converge(plan: Plan, make: Callable[[RunConfig], tuple[Plan, Inputs]]) -> Convergence:
    """The convergence of the run of a plan. `make`: plans the run with another step, its inputs at the same times.

    Raises UsageError for a run in maximal coordinates and for inputs that follow step by step, StoppedError for a run
    that stops early.
    """
    if plan.config.is_maximal:
        raise UsageError("convergence is found in reduced coordinates")
    stride = max(1, plan.config.steps // _ROWS)
    times = np.append(np.arange(0, plan.config.steps, stride), plan.config.steps) * plan.dt
    ends, configurations, events = [], [], list[Event]()
    for halving in range(HALVINGS + 1):
        finer = 2**halving
        own = {"dt": plan.dt / finer, "steps": plan.config.steps * finer, "every": 1, "record": _RECORDED}
        made, (controls, controller) = make(replace(plan.config, **own))
        ends.append(0.0 if controls is None or not controls.rows else float(controls.start_step[-1]) * made.dt)
        qpos, events = _run(made, controls, controller, stride * finer)
        configurations.append(qpos)
    if np.ptp(ends) > plan.dt:
        raise UsageError("inputs that follow step by step have no meaning at other steps; give them a time")
    return _compared(plan, times, configurations, events)


def _run(
    plan: Plan, controls: Controls | None, controller: ControllerFunction | None, stride: int
) -> tuple[Array, list[Event]]:
    """The coordinates before every `stride`-th step of a run and at its end, and the times from which limits and
    contacts act."""
    kept: list[Array] = []
    found: list[Event] = []
    acted = dict.fromkeys(_ACTS, np.zeros(plan.robot.nv, bool))
    step = 0

    def look(rows: dict[str, Array], tables: object) -> None:
        nonlocal step
        kept.append(rows["qpos"][-step % stride :: stride].copy())
        for name, what in _ACTS.items():
            if name in rows:
                acts = rows[name] != 0.0
                begins = acts & ~np.vstack([acted[name], acts[:-1]])
                found.extend(
                    Event((step + int(row)) * plan.dt, f"{plan.robot.labels.dofs[k]} {what}")
                    for row, k in np.argwhere(begins)[: _MOST_EVENTS - len(found)]
                )
                acted[name] = acts[-1]
        step += len(rows["qpos"])

    simulation = run(plan, controls=controls, controller=controller, on_block=look).simulation
    simulation.check()
    return np.concatenate([*kept, simulation.qpos[None]]), sorted(found)


def _compared(plan: Plan, times: Array, configurations: list[Array], events: list[Event]) -> Convergence:
    model, labels = plan.robot.model, plan.robot.labels
    coarse, fine = (np.abs(difference(model, b, a)) for a, b in itertools.pairwise(configurations))
    noise = _ROUNDING * (1.0 + np.abs(configurations[0]).max(initial=0.0))
    first, second = coarse.max(axis=0), fine.max(axis=0)
    told = (first > noise) & (second > 0.0)
    order = np.full(len(first), np.nan)
    order[told] = np.log2(first[told] / second[told])
    shrink = 1.0 - 2.0 ** -np.clip(np.nan_to_num(order, nan=_MOST_ORDER), _LEAST_ORDER, _MOST_ORDER)
    return Convergence(
        dofs=tuple(labels.dofs),
        units=tuple(unit.removesuffix("/s") for unit in labels.dof_units),
        dt=tuple(plan.dt / 2**n for n in range(HALVINGS + 1)),
        end=coarse[-1] / shrink,
        largest=first / shrink,
        when=times[np.argmax(coarse, axis=0)],
        order=order,
        spoiled=_spoiled(times, coarse, fine, noise),
        events=tuple(events),
    )


def _spoiled(times: Array, coarse: Array, fine: Array, noise: float) -> Array:
    """The times (nv,) from which the largest differences so far no longer shrink by 2^_SPOILED with a halving, to the
    end; NaN where they do."""
    first, second = (np.maximum.accumulate(differences, axis=0) for differences in (coarse, fine))
    good = (first <= noise) | (second * 2.0**_SPOILED <= first)
    last = len(good) - np.argmax(good[::-1], axis=0)  # the row after the last good one
    last[~good.any(axis=0)] = 0
    return np.where(good[-1], np.nan, times[np.minimum(last, len(times) - 1)])
