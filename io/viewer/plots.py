"""Plots of recorded variables over time, in the viewer's panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from artsim.io.reader import Recording
from artsim.sim.foundation.errors import ModelError

if TYPE_CHECKING:
    import viser

MOST_POINTS = 1500  # of a line: about the width of a screen
MOST_LINES = 12
ALL = "(all)"
NOTHING = "(none)"
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")


class Plot:
    """A plot of one variable of the runs: one entry or all of them, up to MOST_LINES lines."""

    def __init__(self, server: viser.ViserServer, runs: Sequence[tuple[str, Recording]]) -> None:
        self._gui, self._runs = server.gui, runs
        self._entries = _plotted(runs[0][1])
        self._values: tuple[np.ndarray[Any, Any], ...] = ()
        self._chart: Any = None
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
            lines = self._lines(name, str(self._entry.value))
        except ModelError as error:
            with self._folder:
                told = str(error).replace("`", "'")
                self._chart = self._gui.add_markdown(f"`{told}`")
            return
        times = np.unique(np.concatenate([time for _, time, _ in lines]))
        self._values = (times, *(np.interp(times, time, y, right=np.nan) for _, time, y in lines))
        series = [{"label": "t [s]"}]
        series += [
            {"label": label, "stroke": COLOURS[k % len(COLOURS)], "width": 1.5}  # type: ignore[dict-item]
            for k, (label, _, _) in enumerate(lines)
        ]
        units = self._runs[0][1].meaning(name)["units"]
        with self._folder:
            self._chart = self._gui.add_uplot(
                self._values,
                tuple(series),  # type: ignore[arg-type]
                title=f"{name} [{units}]",
                scales={"x": {"time": False}},
                legend={"show": True},
                height=260,
            )

    def _lines(self, name: str, entry: str) -> list[tuple[str, Any, Any]]:
        """Label, times and values of every line, thinned to MOST_POINTS."""
        lines = []
        for run, recording in self._runs:
            if name not in recording:
                continue
            labels = _plotted(recording).get(name, ())
            thin = max(1, -(-recording.n_valid // MOST_POINTS))
            times, values = _thinned(recording, "time", thin)[:, 0], _thinned(recording, name, thin)
            for column, label in enumerate(labels or (name,)):
                if entry in (ALL, label):
                    told = label if len(self._runs) == 1 else f"{run}: {label}"
                    lines.append((told, times, np.ascontiguousarray(values[:, column])))
        return lines[:MOST_LINES]


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
            found[name] = recording.names_of(dims[0]) if dims else ()
    return found
