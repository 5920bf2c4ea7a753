"""Draws maps over the workspace: of the poses that are reached, and of joint forces as shares of effort limits.

Positions on a grid give a line, a coloured plane or planes side by side; others are drawn as points in three views. Of
several rows at one position, such as rotations, a map of reach has the share that is reached, one of forces the
largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artsim.io.exports.figures import check_figure, save_figure
from artsim.io.output_file.hdf5 import storable
from artsim.io.readers.batch_recording import BatchRecording
from artsim.io.readers.ik_recording import IkRecording
from artsim.sim.foundation.errors import UsageError, listed, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORCES = ("inverse_dynamics", "gravity", "bias", "external_force", "coriolis")
"""The quantities that are drawn, the first that a file has unless one is asked for."""
_MOST_PLANES = 6
_TOGETHER = 1e-4  # share of an axis's length up to which positions are of one value there
_UNREACHED, _EDGE = "0.85", "#d62728"
_VIEWS = ((0, 1), (0, 2), (1, 2))


class WorkspaceMap(NamedTuple):
    """Values at positions."""

    place: Real  # (n, 3) [m]
    value: Real  # (n,) [%]; NaN: not reached
    title: str
    label: str
    edge: bool  # True: 100 % is a limit, and marked


def draw_map(
    output: BatchRecording | IkRecording, picture: Path, names: Sequence[str] = (), entries: Sequence[str] = ()
) -> list[str]:
    """Draw the map of an ik, or of a batch that has link_position of one link and joint forces; returns notes.

    `names`: a quantity of FORCES; `entries`: joints whose shares count, names or patterns.

    Raises UsageError: no matplotlib, a file that has no positions, forces or effort limits, an unknown name.
    """
    check_figure(picture)
    from matplotlib.figure import Figure

    notes: list[str] = []
    made = map_of(output, names, entries, notes)
    figure = Figure(layout="constrained")
    _draw(figure, made)
    figure.suptitle(f"{storable(output.path.name)}\n{made.title}", fontsize=10, parse_math=False)
    save_figure(figure, picture)
    return notes


# ---- what is drawn


def map_of(
    output: BatchRecording | IkRecording, names: Sequence[str], entries: Sequence[str], notes: list[str]
) -> WorkspaceMap:
    """The map of a file; see draw_map."""
    if isinstance(output, BatchRecording):
        return _loaded(output, names, entries, notes)
    if names or entries:
        raise UsageError(f"{output.path}: a map of an ik is of the poses that are reached; it takes no names")
    return _reached(output)


def _reached(found: IkRecording) -> WorkspaceMap:
    if "target_position" not in found:
        raise UsageError(f"{found.path}: has no positions of a link, of which a map could be drawn")
    place, number = _same(found.read("target_position")[:, 0])
    reached = found.read("status") == 0
    if "depth" in found:
        reached &= found.read("depth") <= 0
    share = 100.0 * np.bincount(number, reached) / np.bincount(number)
    link = found.labels.target_link[0]
    many = len(place) < found.rows
    title = f"{reached.sum()} of {found.rows} poses of {link} are reached"
    share[share == 0] = np.nan
    return WorkspaceMap(place, share, title, "poses reached [%]" if many else "reached [%]", edge=False)


def _loaded(batch: BatchRecording, names: Sequence[str], entries: Sequence[str], notes: list[str]) -> WorkspaceMap:
    if "link_position" not in batch or len(batch.labels.link) != 1:
        raise UsageError(
            f"{batch.path}: a map needs positions of one link: artsim batch --compute …,link_position --links"
        )
    for name in names:
        if name not in FORCES:
            raise UsageError(f"{name!r} is no joint force of a batch{nearest(name, FORCES)}")
    quantity = next((name for name in names or FORCES if name in batch), None)
    if quantity is None or len(names) > 1:
        want = names[0] if len(names) == 1 else f"one of {', '.join(FORCES)}"
        raise UsageError(f"{batch.path}: a map needs {want}; the batch has {listed(batch.variables, 8)}")
    dofs, efforts = _efforts(batch, entries, notes)
    columns = [n for n, _ in dofs]
    shares = 100.0 * np.abs(batch.read(quantity)[:, columns]) / efforts
    good = batch.read("status") == 0
    place, number = _same(batch.read("link_position")[good][:, 0])
    largest, value = shares[good].max(axis=1), np.full(len(place), -np.inf)
    np.maximum.at(value, number, largest)
    if not len(value):
        raise UsageError(f"{batch.path}: no row is computed")
    row, column = (int(n) for n in np.unravel_index(int(np.argmax(shares[good])), shares[good].shape))
    where = ", ".join(f"{x:.3g}" for x in batch.read("link_position")[good][row, 0])
    title = f"{quantity}: at most {largest.max():.3g} % of an effort limit, of {dofs[column][1]} at {where} m"
    return WorkspaceMap(place, value, title, "largest share of an effort limit [%]", edge=True)


def _efforts(batch: BatchRecording, entries: Sequence[str], notes: list[str]) -> tuple[list[tuple[int, str]], Real]:
    """The columns with the names of their joints, and their effort limits. Raises UsageError."""
    labels = batch.labels.independent_dof if batch.reduced else batch.labels.dof
    if not batch.reduced and len(batch.labels.independent_dof) < len(labels):
        raise UsageError(f"{batch.path}: leaders bear the forces of followers: give artsim batch --reduced")
    for entry in entries:
        if not any(fnmatchcase(name, entry) for name in labels):
            raise UsageError(f"--entries: no joint {entry!r}{nearest(entry, labels)}")
    bounds = batch.joint_bounds
    wanted = [
        (n, name) for n, name in enumerate(labels) if not entries or any(fnmatchcase(name, entry) for entry in entries)
    ]
    found = [(n, name) for n, name in wanted if 0.0 < bounds.get(name, {}).get("effort", np.inf) < np.inf]
    without = [name for pair in wanted if pair not in found for name in pair[1:]]
    if not found:
        raise UsageError(f"{batch.path}: no joint among {listed([name for _, name in wanted], 8)} has an effort limit")
    if without:
        notes.append(f"without an effort limit, left out: {listed(without, 8)}")
    return found, np.array([bounds[name]["effort"] for _, name in found])


def _same(places: Real) -> tuple[Real, Array]:
    """The different positions (n, 3) among the rows, on the values of their grid, and the number of each row's."""
    on_grid = np.stack([_merged(column) for column in places.T], axis=1)
    found, number = np.unique(on_grid, axis=0, return_inverse=True)
    return found, number.reshape(-1)


def _merged(values: Real) -> Real:
    """Values of an axis, those that lie together as one."""
    if not len(values):
        return values
    order = np.argsort(values)
    ranked = values[order]
    new = np.diff(ranked, prepend=ranked[0]) > max(_TOGETHER * (ranked[-1] - ranked[0]), 1e-5)
    group = np.cumsum(new)
    mean = (np.bincount(group, ranked) / np.bincount(group)).round(6) + 0.0
    made = np.empty_like(values)
    made[order] = mean[group]
    return made


# ---- how it is drawn


def _draw(figure: Figure, made: WorkspaceMap) -> None:
    axes = [np.unique(column) for column in made.place.T]
    varied = [k for k in range(3) if len(axes[k]) > 1]
    if not varied:
        raise UsageError("all rows are of one position; a map needs several")
    if np.prod([float(len(axis)) for axis in axes]) > 4.0 * len(made.place) and len(varied) > 1:
        _draw_points(figure, made)
    elif len(varied) == 1:
        _draw_line(figure, made, varied[0])
    else:
        _draw_planes(figure, made, axes, varied)


def _draw_line(figure: Figure, made: WorkspaceMap, axis: int) -> None:
    figure.set_size_inches(7, 4)
    place = figure.subplots()
    place.plot(made.place[:, axis], np.nan_to_num(made.value) if not made.edge else made.value, ".-")
    place.set_xlabel(f"{'xyz'[axis]} [m]")
    place.set_ylabel(made.label)
    place.set_ylim(bottom=0.0)
    place.grid(alpha=0.3)
    if made.edge:
        place.axhline(100.0, color=_EDGE, linestyle="--", linewidth=0.8)


def _draw_planes(figure: Figure, made: WorkspaceMap, axes: Sequence[Real], varied: Sequence[int]) -> None:
    """Coloured planes across the two axes of most values, side by side along the third."""
    along = min(range(3), key=lambda k: len(axes[k]))
    a, b = (k for k in range(3) if k != along)
    index = [np.searchsorted(axis, column) for axis, column in zip(axes, made.place.T, strict=True)]
    table = np.full([len(axis) for axis in axes], np.nan)
    table[tuple(index)] = made.value
    count = len(axes[along])
    shown = np.unique(np.linspace(0, count - 1, min(count, _MOST_PLANES)).round().astype(int)).tolist()
    columns = min(len(shown), 3)
    lines = -(-len(shown) // columns)
    tall = (np.ptp(axes[b]) or 1.0) / (np.ptp(axes[a]) or 1.0)
    figure.set_size_inches(4.2 * columns + 1.6 + (columns == 1), 3.9 * lines * float(np.clip(tall, 0.6, 1.4)) + 1.0)
    places = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    colours = _colours(made)
    for place, n in zip(places.flat, shown, strict=False):
        plane = np.take(table, n, axis=along).T
        drawn = place.pcolormesh(axes[a], axes[b], plane, shading="nearest", **colours)
        place.set_facecolor(_UNREACHED)
        if made.edge and np.nanmax(plane, initial=0.0) > 100.0 and min(plane.shape) > 1:
            place.contour(axes[a], axes[b], plane, levels=[100.0], colors=_EDGE, linewidths=1.2)
        if count > 1:
            place.set_title(f"{'xyz'[along]} = {axes[along][n]:.3g} m", fontsize=9)
        _name(place, a, b)
    for place in places.flat[len(shown) :]:
        place.remove()
    _legend(figure, drawn, made, list(places.flat[: len(shown)]))


def _draw_points(figure: Figure, made: WorkspaceMap) -> None:
    """Three views of points, those of large values in front."""
    figure.set_size_inches(14, 4.6)
    places = figure.subplots(1, 3)
    order = np.argsort(np.nan_to_num(made.value, nan=-1.0))
    there = np.isfinite(made.value[order])
    for place, (a, b) in zip(places, _VIEWS, strict=True):
        x, y = made.place[order, a], made.place[order, b]
        place.scatter(x[~there], y[~there], s=4, color=_UNREACHED, linewidths=0)
        drawn = place.scatter(x[there], y[there], s=6, c=made.value[order][there], linewidths=0, **_colours(made))
        _name(place, a, b)
    _legend(figure, drawn, made, list(places))


def _colours(made: WorkspaceMap) -> dict[str, Any]:
    most = 100.0 if not made.edge else float(np.nanmax(made.value, initial=0.0)) or 1.0
    return {"cmap": "viridis", "vmin": 0.0, "vmax": most}


def _name(place: Axes, a: int, b: int) -> None:
    place.set_xlabel(f"{'xyz'[a]} [m]")
    place.set_ylabel(f"{'xyz'[b]} [m]")
    place.set_aspect("equal")


def _legend(figure: Figure, drawn: Any, made: WorkspaceMap, places: list[Axes]) -> None:
    bar = figure.colorbar(drawn, ax=places, label=made.label, shrink=0.9)
    if made.edge and np.nanmax(made.value, initial=0.0) > 100.0:
        bar.ax.axhline(100.0, color=_EDGE, linewidth=1.5)
