"""Plots of recorded variables over time, in the viewer's panel."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artsim.io.format.labels import LABELS_OF_ENTRIES, entry_units
from artsim.io.format.variable import unit_of
from artsim.io.readers.recording import Recording
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    import viser

MOST_POINTS = 1500  # of a line: about the width of a screen
MOST_LINES = 12
ALL = "(all)"
NOTHING = "(none)"
COLOURS = tuple(
    "#1f77b4 #ff7f0e #2ca02c #d62728 #9467bd #8c564b #e377c2 #7f7f7f #bcbd22 #17becf #000000 #b8860b".split()
)
"""A colour for each of MOST_LINES entries; the same entry of another run has its colour, dashed."""

DASHES = ((), (8, 4), (2, 3), (8, 3, 2, 3))
CURSOR = "#444444"
FOLLOWS = " (follows)"
FINEST, COARSEST = 1e-2, 1e6  # values between which an axis shows as they are
_PAUSE = 0.2  # s between two moves of the cursor while a run plays


class PlottedLine(NamedTuple):
    """A line: its label, its entry's number and that of its run, times and values (n,)."""

    label: str
    entry: int
    run: int
    time: Array
    values: Array


class Plot:
    """A plot of one variable of the runs: one entry or all of them, up to MOST_LINES lines."""

    def __init__(self, server: viser.ViserServer, runs: Sequence[tuple[str, Recording]]) -> None:
        self._gui, self._runs = server.gui, runs
        self._entries = _plotted(runs[0][1])
        self._values: tuple[np.ndarray[Any, Any], ...] = ()
        self._chart: Any = None
        self._time = self._drawn_at = self._moved = 0.0
        with self._gui.add_folder("Plot") as self._folder:
            self._variable = self._gui.add_dropdown("variable", (NOTHING, *self._entries))
            self._entry: Any = self._gui.add_dropdown("entry", (ALL,))
        self._variable.on_update(lambda _: self._choose())
        self._entry.on_update(lambda _: self._draw())

    def _choose(self) -> None:
        """Offer the entries of the newly chosen variable and plot it."""
        self._entry.options = (ALL, *self._entries.get(str(self._variable.value), ()))
        self._entry.value = ALL
        self._draw()

    def _draw(self) -> None:
        if self._chart is not None:
            self._chart.remove()
            self._chart = None
        name = str(self._variable.value)
        if name == NOTHING:
            return
        try:
            lines, told = self._lines(name, str(self._entry.value))
        except ModelError as error:
            with self._folder:
                told = str(error).replace("`", "'")
                self._chart = self._gui.add_markdown(f"`{told}`")
            return
        times = np.unique(np.concatenate([line.time for line in lines]))
        power = power_of(lines)
        told += f", × 1e{power}" if power else ""
        curves = (np.interp(times, line.time, line.values / 10.0**power, right=np.nan) for line in lines)
        self._values = (times, *curves)
        series: list[dict[str, Any]] = [{"label": "t [s]"}]
        for line in lines:
            style = {"stroke": COLOURS[line.entry % len(COLOURS)], "width": 1.5, "dash": DASHES[line.run % len(DASHES)]}
            series.append({"label": line.label, **style})
        series.append({"label": "now", "stroke": CURSOR, "width": 1.0})
        with self._folder:
            self._chart = self._gui.add_uplot(
                with_cursor(self._values, self._time),
                tuple(series),  # type: ignore[arg-type]
                title=told,
                scales={"x": {"time": False}, "y": {"range": span(self._values[1:])}},
                legend={"show": True},
                height=260,
            )
        self._drawn_at, self._moved = self._time, time.monotonic()

    def show_time(self, at: float) -> None:
        """Move the cursor to a time [s], at most every 0.2 s, since the page takes all values with it."""
        self._time = at
        moved = self._chart is not None and hasattr(self._chart, "data") and at != self._drawn_at
        if moved and time.monotonic() - self._moved > _PAUSE:
            self._chart.data = with_cursor(self._values, at)
            self._drawn_at, self._moved = at, time.monotonic()

    def _lines(self, name: str, entry: str) -> tuple[list[PlottedLine], str]:
        """The lines, thinned to MOST_POINTS, and what is plotted, with its unit where the entries share one."""
        lines: list[PlottedLine] = []
        units: list[str] = []
        for number, (run, recording) in enumerate(self._runs):
            if name not in recording:
                continue
            labels = _plotted(recording).get(name, ()) or (name,)
            own = _units(recording, name, len(labels))
            thin = max(1, -(-recording.n_valid // MOST_POINTS))
            times, values = _thinned(recording, "time", thin)[:, 0], _thinned(recording, name, thin)
            chosen = [k for k, label in enumerate(labels) if entry in (ALL, label)]
            units += [own[k] for k in chosen]
            for place, k in enumerate(chosen):
                column = np.ascontiguousarray(values[:, k])
                told = labels[k] if len(self._runs) == 1 else f"{run}: {labels[k]}"
                lines.append(PlottedLine(f"{told} [{own[k]}]", place, number, times, column))
        shared = len(set(units)) == 1
        if shared:
            lines = [line._replace(label=line.label.removesuffix(f" [{units[0]}]")) for line in lines]
        lines.sort(
            key=lambda line: (line.entry, line.run)
        )  # runs beside each other, even where not all entries are drawn
        some = f", {MOST_LINES} of {len(lines)} lines" if len(lines) > MOST_LINES else ""
        return lines[:MOST_LINES], f"{name}{f' [{units[0]}]' if shared else ''}{some}"


def with_cursor(values: Sequence[Array], at: float) -> tuple[Array, ...]:
    """Times and lines with two more points at a time, and one more line that is upright there."""
    times, lines = values[0], values[1:]
    place = int(np.searchsorted(times, at))
    both = np.array([at, at])
    upright = np.full(len(times) + 2, np.nan)
    upright[place : place + 2] = span(lines)
    return (
        np.insert(times, place, both),
        *(np.insert(line, place, np.interp(both, times, line)) for line in lines),
        upright,
    )


def power_of(lines: Sequence[PlottedLine]) -> int:
    """The power of ten, a multiple of 3, by which values are divided that the page's axis has no digits for."""
    sizes = np.abs(np.concatenate([line.values for line in lines] or [np.zeros(0)]))
    largest = float(sizes[np.isfinite(sizes)].max(initial=0.0))
    if largest == 0.0 or FINEST <= largest < COARSEST:
        return 0
    return 3 * math.floor(math.log10(largest) / 3)


def span(lines: Sequence[Array]) -> tuple[float, float]:
    """The ends of the axis of values. The page is told them, since it finds none among lines that begin with NaN."""
    known = np.concatenate([line[np.isfinite(line)] for line in lines] or [np.zeros(0)])
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _units(recording: Recording, name: str, count: int) -> list[str]:
    """The unit of each entry."""
    variable = recording.variable(name)
    units = entry_units(recording.labels)
    found = []
    for k in range(count):
        own = {
            key: (of[k],) if variable.dims[1:] == LABELS_OF_ENTRIES[key][:1] and k < len(of) else of
            for key, of in units.items()
        }
        found.append(unit_of(variable, own))
    return found


def _thinned(recording: Recording, name: str, thin: int) -> np.ndarray[Any, Any]:
    """Every `thin`-th row, (n, entries), without reading the rows between."""
    recording.check_packing(name, -(-recording.n_valid // thin))
    if thin == 1:
        rows = recording[name]
    else:
        rows = np.concatenate([recording.read(name, k, k + 1) for k in range(0, recording.n_valid, thin)])
    return rows.reshape(len(rows), -1)


def _plotted(recording: Recording) -> dict[str, tuple[str, ...]]:
    """The variables with at most one dimension besides time, each with the names of its entries."""
    found = {}
    for name in recording.variables:
        dims = recording.variable(name).dims[1:]
        if len(dims) <= 1:
            found[name] = _marked(recording, dims[0]) if dims else ()
    return found


def _marked(recording: Recording, dim: str) -> tuple[str, ...]:
    """The names of a dimension's entries; joints that follow others are marked."""
    names, labels = recording.names_of(dim), recording.labels
    if dim not in ("dof", "coord"):
        return names
    followers = set(labels.dof) - set(labels.independent_dof)
    return tuple(name + FOLLOWS if name in followers else name for name in names)
