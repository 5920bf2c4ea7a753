"""Wrenches and pushes on links: resolved from a configuration, and pushes as rows of the inputs.

A push is a wrench that acts for one step, J / h, so that the momentum changes by J.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeVar

import numpy as np

from artsim.sim.articulation.description import Vector3
from artsim.sim.articulation.model import Labels, Model
from artsim.sim.equipment.arrays import WRENCH
from artsim.sim.equipment.build_link_wrenches import LinkWrench
from artsim.sim.foundation.angles import plain_number
from artsim.sim.foundation.errors import SettingError, nearest
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.patterns import meant_by
from artsim.sim.runs.setting import MAX_STEPS

T = TypeVar("T")

CENTRE = "com"
ORIGIN = "origin"
FRAMES = ("world", "link")


class Push(NamedTuple):
    """An impulse on a link."""

    link: str
    impulse: tuple[float, ...]  # (6,) force [N s] and torque [N m s]
    time: float  # [s]


class LinkWrenches(NamedTuple):
    """The wrenches of a run: links and points at which they act, their values without a control file, and pushes."""

    wrenches: tuple[LinkWrench, ...] = ()
    held: Real = np.zeros(0)  # (6 nw,) [N, N m]
    pushes: tuple[Push, ...] = ()
    by_sample: bool = False  # whether each sample has impulses or times of its own, so that controls hold no pushes

    @property
    def impulses(self) -> Real:
        """The impulses of the pushes (pushes, 6) [N s, N m s]."""
        return np.array([push.impulse for push in self.pushes], float).reshape(-1, WRENCH)

    @property
    def times(self) -> Real:
        """The times of the pushes (pushes,) [s]."""
        return np.array([push.time for push in self.pushes], float)

    @property
    def push_names(self) -> tuple[str, ...]:
        """The names of the pushes: their links, from the second push of a link on with its number (trunk.2)."""
        links = [push.link for push in self.pushes]
        numbers = [links[:k].count(link) + 1 for k, link in enumerate(links)]
        return tuple(f"{link}.{n}" if n > 1 else link for link, n in zip(links, numbers, strict=True))

    def by_link(self) -> dict[str, tuple[float, ...]]:
        """The held wrenches by link."""
        rows = self.held.reshape(-1, WRENCH).tolist()
        return {wrench.link: tuple(row) for wrench, row in zip(self.wrenches, rows, strict=True)}


def link_wrenches(links: Sequence[str], config: RunConfig) -> LinkWrenches:
    """The wrenches that a configuration names, in the order of the links.

    Raises SettingError: an unknown link or a pattern that matches none; numbers that are not finite; a point or frame
    that is none.
    """
    pushes = tuple(read_push(text) for text in config.push)
    for push in pushes:
        if push.link not in links:
            raise SettingError(f"push: {push.link!r} is not a link of this robot{nearest(push.link, links)}", "push")
    by_link: dict[str, tuple[float, ...]] = {push.link: (0.0,) * WRENCH for push in pushes}
    by_link |= {name: (*w, *(0.0,) * (WRENCH - len(w))) for name, w in _by_link("wrench", config.wrench, links).items()}
    chosen = [name for name in links if name in by_link]
    points, frames = (
        {"": value} if isinstance(value, str) else value for value in (config.wrench_at, config.wrench_frame)
    )
    at, axes = _by_link("wrench_at", points, links), _by_link("wrench_frame", frames, links)
    wrenches = tuple(
        LinkWrench(
            name,
            _point(at.get(name, points.get("", ORIGIN)), name),
            _is_of_link(axes.get(name, frames.get("", FRAMES[0])), name),
        )
        for name in chosen
    )
    return LinkWrenches(wrenches, np.array([by_link[name] for name in chosen], float).ravel(), pushes)


def idle_wrenches(model: Model, labels: Labels, acting: LinkWrenches, duration: float) -> list[str]:
    """Warnings about pushes after the end of the run, and about links that cannot move."""
    notes = late_pushes(acting, duration)
    for wrench in acting.wrenches:
        body = int(model.link_body[labels.links.index(wrench.link)])
        while body > 0 and model.body_dof[body + 1] == model.body_dof[body]:
            body = int(model.body_parent[body])
        if body == 0:
            notes.append(f"the wrench on {wrench.link!r} moves nothing: the link is fixed to the world")
    return notes


def late_pushes(acting: LinkWrenches, duration: float) -> list[str]:
    """Warnings about pushes after the end of the run."""
    return [
        f"push of {push.link!r} at {push.time:g} s is after the end of the run ({duration:g} s)"
        for push in acting.pushes
        if push.time >= duration
    ]


def _by_link(setting: str, given: Mapping[str, T], links: Sequence[str]) -> dict[str, T]:
    """The values by link, those of exact names before those of patterns; "" stands for all and is left out."""
    found: dict[str, T] = {}
    for pattern in sorted((name for name in given if name), key=lambda name: name in links):
        matches = meant_by(pattern, links)
        if not matches:
            raise SettingError(
                f"{setting}: {pattern!r} is not a link of this robot{nearest(pattern, links)}", setting, pattern
            )
        found |= dict.fromkeys(matches, given[pattern])
    return found


def _point(text: str, link: str) -> Vector3 | None:
    """The point of a text: origin, com, or X,Y,Z in link axes [m]; None: the centre of mass."""
    if text in (ORIGIN, CENTRE):
        return (0.0, 0.0, 0.0) if text == ORIGIN else None
    try:
        x, y, z = map(plain_number, text.split(","))
    except ValueError:
        x = y = z = math.nan
    if not math.isfinite(x + y + z):
        raise SettingError(f"wrench_at of {link!r} is {text!r}, want origin, com or X,Y,Z", "wrench_at", link)
    return x, y, z


def _is_of_link(text: str, link: str) -> bool:
    if text not in FRAMES:
        raise SettingError(f"wrench_frame of {link!r} is {text!r}, want world or link", "wrench_frame", link)
    return text == FRAMES[1]


def read_push(text: str) -> Push:
    """Read LINK=JX,JY,JZ[,LX,LY,LZ]@TIME. Raises SettingError."""
    link, _, rest = text.rpartition("=")
    numbers, _, time = rest.partition("@")
    try:
        impulse, at = tuple(map(plain_number, numbers.split(","))), plain_number(time)
    except ValueError:
        impulse, at = (), math.nan
    if not link or len(impulse) not in (3, WRENCH) or not all(map(math.isfinite, impulse)) or not 0 <= at < math.inf:
        raise SettingError(
            f"push {text!r}: want LINK=JX,JY,JZ@TIME or LINK=JX,JY,JZ,LX,LY,LZ@TIME [N s, N m s], time from 0 [s]",
            "push",
        )
    return Push(link, (*impulse, *(0.0,) * (WRENCH - len(impulse))), at)


def with_links(config: RunConfig, links: Iterable[str]) -> RunConfig:
    """The configuration with zero wrenches on further links: those that a control file pushes."""
    more = [link for link in links if not any(link == name or fnmatchcase(link, name) for name in config.wrench)]
    return replace(config, wrench={**config.wrench, **dict.fromkeys(more, (0.0,) * WRENCH)}) if more else config


def with_pushes(controls: Controls, acting: LinkWrenches, dt: float) -> Controls:
    """The controls with the pushes, unless each sample has its own."""
    if not acting.pushes or acting.by_sample:
        return controls
    return with_own_pushes([controls], acting, acting.impulses[None], acting.times[None], dt)[0]


def with_own_pushes(
    controls: Sequence[Controls], acting: LinkWrenches, impulses: Real, times: Real, dt: float, rows: int = 0
) -> list[Controls]:
    """The controls of samples, whose rows begin at the same steps, each with its pushes.

    Args:
        impulses: of each sample and push (n, pushes, 6) [N s, N m s].
        times: of each sample and push (n, pushes) [s].
        rows: the least number of rows; more than are needed begin after the last push, and at steps that no run has.
    """
    steps, old = push_steps(times, dt), controls[0].start_step
    start = np.unique(np.concatenate([old, steps.ravel(), steps.ravel() + 1])).astype(np.int64)
    start = np.concatenate([start, 2 * MAX_STEPS + np.arange(max(0, rows - len(start)))])
    row = np.maximum(np.searchsorted(old, start, side="right") - 1, 0)
    names, made = [wrench.link for wrench in acting.wrenches], list[Controls]()
    for one, own, when in zip(controls, impulses, steps, strict=True):
        values = {name: getattr(one, name)[row] for name in VALUES}
        first = values["control"].shape[1] - WRENCH * len(names)
        for push, impulse, step in zip(acting.pushes, own, when, strict=True):
            at = first + WRENCH * names.index(push.link)
            values["control"][np.searchsorted(start, step), at : at + WRENCH] += impulse / dt
        made.append(Controls(start, **values).beginning_at(one.begin))
    return made


def push_steps(times: Real, dt: float) -> Real:
    """The step in which each push acts: the first that does not begin before its time."""
    begins = np.minimum(times / dt, MAX_STEPS)
    return np.ceil(begins - 1e-9 - 1e-15 * begins).astype(np.int64)
