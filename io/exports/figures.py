"""Draws figures of runs: panels over time with one unit each, runs overlaid."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artsim.io.format import schema
from artsim.io.format.labels import LABELS_OF_ENTRIES, entry_units
from artsim.io.format.variable import unit_of
from artsim.io.output_file.hdf5 import storable
from artsim.io.output_file.whole_file import write_whole
from artsim.io.readers.recording import Recording
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LINES = 8  # lines per panel; a note names the others
MOST_FORCES = 4  # panels of forces in a default figure
BINS = 2000  # number of pieces by whose extreme values a longer run is drawn
_BLOCK_BYTES = 1 << 26  # of rows read at a time
_ROUNDING = 1e-12  # relative to the largest force: smaller forces count as zero
_STILL = 1e-9  # relative to the largest span of a panel: lines of smaller spans do not move
_FLAT = 1e-9  # span of a panel that is drawn as flat
_COLOURS = 10
_STYLES = ("-", "--", ":", "-.")
_BOUNDED = {
    "qpos": ((1.0, "lower"), "upper"),
    "qvel": ((-1.0, "velocity"), "velocity"),
    "tau_drive": ((-1.0, "effort"), "effort"),
    "tau_applied": ((-1.0, "effort"), "effort"),
}
"""The limits that bound a variable: the lower end by its sign and name, the upper one by its name."""
_NEAR = 0.4  # share of half a range within which a line is near its limit
_BESIDE = 0.15  # share of a panel's height by which limits beside it are shown, too
GROUPS = {
    "states": "positions and velocities",
    "forces": "joint forces by source, a panel per degree of freedom",
    "energy": "kinetic, potential and their sum",
    "contacts": "how many, and the sum of their normal forces",
}
SUFFIXES = (".png", ".svg", ".pdf")


class Line(NamedTuple):
    """One entry of one run."""

    run: int
    label: str
    time: Array  # (n,) [s]
    values: Array  # (n,)


class Panel(NamedTuple):
    """Lines of one unit."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    bounds: Mapping[str, tuple[float, float]] = {}  # of what a label names


def draw(
    recordings: Sequence[Recording], output: Path, names: Sequence[str] = (), entries: Sequence[str] = ()
) -> list[str]:
    """Draw variables, or GROUPS of them, over time into a .png, .svg or .pdf file; returns notes.

    names: empty for the default figure. entries: draw only the coordinates, dofs, links … of these names.

    Raises UsageError: no matplotlib, unknown names, nothing to draw.
    """
    check_figure(output)
    from matplotlib.figure import Figure

    _check_entries(recordings, entries)
    notes: list[str] = []
    all_lines = bool(names or entries)
    panels = [
        panel
        for name in _asked(recordings, names)
        for panel in _panels(recordings, name, entries, notes, all_lines=all_lines)
    ]
    if not all_lines:
        panels = _most_telling(panels)
    if not panels:
        raise UsageError(f"{recordings[0].path}: nothing to draw")
    figure = Figure(figsize=(14.0 if len(panels) > 3 else 8.0, 2.6 * _lines_of(panels) + 0.4), layout="constrained")
    names_of_files = [storable(recording.path.name) for recording in recordings]
    _draw(figure, panels, names_of_files)
    save_figure(figure, output)
    return notes


def check_figure(output: Path) -> None:
    """Refuse a file whose suffix is not that of a figure, and any without matplotlib."""
    if output.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{output}: a figure is {', '.join(SUFFIXES)}")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UsageError('plots need matplotlib: pip install "artsim[plot]"') from None


def save_figure(figure: Figure, output: Path) -> None:
    """Write a figure in the format of the file's suffix."""
    picture = io.BytesIO()
    figure.savefig(picture, format=output.suffix[1:].lower(), dpi=110)
    write_whole(output, picture.getvalue())


# ---- panels and lines


def _asked(recordings: Sequence[Recording], names: Sequence[str]) -> list[str]:
    """The requested names, or all groups that exist. Raises UsageError for a name that no run has."""
    there = {name for recording in recordings for name in recording.variables}
    if any(recording.has_contacts for recording in recordings):
        there.add("contacts")
    groups = {
        "states": {"qpos", "qvel"} & there,
        "forces": {name for name in there if name.startswith("tau_")},
        **{name: {name} & there for name in ("energy", "contacts")},
    }
    for name in names:
        if not groups.get(name, {name} & there):
            more = f": record it with --record +{name}" if name in (*schema.RECORDED, "energy") else ""
            raise UsageError(f"no run has {name!r}{more or nearest(name, (*groups, *there))}")
    asked = names or [name for name, members in groups.items() if members]
    return [part for name in asked for part in (("qpos", "qvel") if name == "states" else (name,))]


def _panels(
    recordings: Sequence[Recording], name: str, entries: Sequence[str], notes: list[str], *, all_lines: bool = True
) -> list[Panel]:
    """The panels of a variable or group; with `all_lines` also lines of dofs that follow others or stand still."""
    if name == "forces":
        return _force_panels(recordings, entries)
    if name == "contacts":
        return _contact_panels(recordings)
    by_unit: dict[str, list[Line]] = {}
    for number, recording in enumerate(recordings):
        if name in recording:
            for unit, line in _lines(recording, number, name, entries):
                by_unit.setdefault(unit, []).append(line)
    title = schema.TABLE[f"trajectory/{name}"].meaning
    if name == "energy":
        title = "energy"
        by_unit = {unit: [*lines, *_sums(lines)] for unit, lines in by_unit.items()}
    bounds = _bounds(recordings, name)
    panels = []
    for unit, lines in by_unit.items():
        told = lines if all_lines or name not in ("qpos", "qvel") else _moving(recordings, lines)
        left_out = len({line.label for line in lines}) - len({line.label for line in told})
        more = f" ({left_out} that follow others or stand still left out)" if left_out else ""
        panels.append(Panel(title + more, unit, _liveliest(name, told, entries, notes), bounds))
    return panels


def _moving(recordings: Sequence[Recording], lines: Sequence[Line]) -> list[Line]:
    """The lines that change and are of no dof that follows another; all lines if there are none."""
    labels = [recording.labels for recording in recordings]
    following = {dof for own in labels for dof in own.dof} - {dof for own in labels for dof in own.independent_dof}
    spans: dict[str, float] = {}
    for line in lines:
        spans[line.label] = max(spans.get(line.label, 0.0), _span(line.values))
    least = _STILL * max(spans.values(), default=0.0)
    moving = {label for label, span in spans.items() if span > least and label not in following}
    return [line for line in lines if line.label in moving] or [*lines]


def _bounds(recordings: Sequence[Recording], name: str) -> dict[str, tuple[float, float]]:
    """The limits of joints of one dof that bound a variable, where all runs have the same ones."""
    if name not in _BOUNDED:
        return {}
    low, high = _BOUNDED[name]
    found = [
        {joint: (low[0] * own[low[1]], own[high]) for joint, own in recording.joint_bounds.items()}
        for recording in recordings
    ]
    return {joint: ends for joint, ends in found[0].items() if all(other.get(joint) == ends for other in found)}


def _lines(recording: Recording, number: int, name: str, entries: Sequence[str]) -> Iterator[tuple[str, Line]]:
    """Unit and line of every requested entry of a variable."""
    variable = schema.TABLE[f"trajectory/{name}"]
    labels = [recording.names_of(dim) for dim in variable.dims[1:]]
    units = entry_units(recording.labels)
    time, values = _thinned(recording, name)
    for index in np.ndindex(*values.shape[1:]):
        words = [names[k] for names, k in zip(labels, index, strict=True)]
        if entries and not any(fnmatchcase(word, entry) for word in (*words, " ".join(words)) for entry in entries):
            continue
        place = dict(zip(variable.dims[1:], index, strict=True))
        own = {
            key: (of[place[LABELS_OF_ENTRIES[key][0]]],) if LABELS_OF_ENTRIES[key][0] in place else of
            for key, of in units.items()
        }
        yield unit_of(variable, own), Line(number, " ".join(words) or name, time, values[:, *index])


def _thinned(recording: Recording, name: str) -> tuple[Array, Array]:
    """Times and rows of a variable; for a long run the extreme values of BINS pieces, read block by block."""
    recording.check_packing(name)
    step = math.ceil(recording.n_valid / BINS)
    interval = recording.dt * recording.every
    if step <= 2:
        return np.arange(recording.n_valid) * interval, recording.read_stored(name).astype(float)
    blocks, times = [], []
    width = recording.read_stored(name, 0, 1).astype(float).nbytes
    block = step * max(1, _BLOCK_BYTES // (step * width))  # whole bins
    for start in range(0, recording.n_valid, block):
        rows = recording.read_stored(name, start, start + block).astype(float)
        firsts = np.arange(0, len(rows), step)
        both = np.stack([np.minimum.reduceat(rows, firsts), np.maximum.reduceat(rows, firsts)], axis=1)
        blocks.append(both.reshape(-1, *rows.shape[1:]))
        times.append(((start + firsts)[:, None] + [0.0, 0.5 * step]).reshape(-1) * interval)
    return np.concatenate(times), np.concatenate(blocks)


def _sums(lines: Sequence[Line]) -> list[Line]:
    """The sum of the lines of each run."""
    found = []
    for run in dict.fromkeys(line.run for line in lines):
        parts = [line for line in lines if line.run == run]
        if len(parts) > 1:
            found.append(Line(run, "total", parts[0].time, np.sum([part.values for part in parts], axis=0)))
    return found


def _liveliest(name: str, lines: Sequence[Line], entries: Sequence[str], notes: list[str]) -> tuple[Line, ...]:
    """The entries that vary most, if there are many and none was requested by name."""
    spans: dict[str, float] = {}
    for line in lines:
        spans[line.label] = max(spans.get(line.label, 0.0), _span(line.values))
    if entries or len(spans) <= MOST_LINES:
        return tuple(lines)
    chosen = sorted(spans, key=lambda label: -spans[label])[:MOST_LINES]
    notes.append(f"{name}: the {MOST_LINES} entries of {len(spans)} that vary most are drawn; --entries picks others")
    return tuple(line for line in lines if line.label in chosen)


def _span(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max() - finite.min()) if len(finite) else 0.0


def _force_panels(recordings: Sequence[Recording], entries: Sequence[str]) -> list[Panel]:
    """A panel per dof, with a line for each source that ever acts on it; the largest forces come first."""
    panels: dict[str, tuple[str, list[Line]]] = {}
    for number, recording in enumerate(recordings):
        for name in (name for name in recording.variables if name.startswith("tau_")):
            for unit, line in _lines(recording, number, name, entries):
                if np.any(line.values != 0):
                    _, lines = panels.setdefault(line.label, (unit, []))
                    lines.append(line._replace(label=name.removeprefix("tau_")))
    peaks = {dof: max(_peak(line.values) for line in lines) for dof, (_, lines) in panels.items()}
    least = _ROUNDING * max(peaks.values(), default=0.0)
    found = [
        Panel(f"forces on {dof}", unit, tuple(line for line in lines if _peak(line.values) > least))
        for dof, (unit, lines) in sorted(panels.items(), key=lambda panel: -peaks[panel[0]])
        if peaks[dof] > least
    ]
    return found if entries else found[:MOST_LINES]


def _peak(values: Array) -> float:
    return float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))


def _most_telling(panels: Sequence[Panel]) -> list[Panel]:
    """The panels without those of forces on less loaded dofs, and without those that are zero throughout unless all
    are."""
    loaded = [panel for panel in panels if panel.title.startswith("forces on ")][:MOST_FORCES]
    kept = [panel for panel in panels if not panel.title.startswith("forces on ") or panel in loaded]
    return [panel for panel in kept if any(_peak(line.values) > 0 for line in panel.lines)] or kept


def _contact_panels(recordings: Sequence[Recording]) -> list[Panel]:
    counts, forces = [], []
    for number, recording in enumerate(recordings):
        if not recording.has_contacts:
            continue
        parts = [_loads(recording, start) for start in range(0, recording.n_valid, 4096)]
        count, load = (np.concatenate(part) for part in zip(*parts, strict=True))
        time = np.arange(len(count)) * recording.dt * recording.every
        counts.append(Line(number, "contacts", time, count))
        forces.append(Line(number, "sum of normal forces", time, load))
    return [Panel("contacts", "1", tuple(counts)), Panel("contact force", "N", tuple(forces))] if counts else []


def _loads(recording: Recording, start: int) -> tuple[Array, Array]:
    """Number of contacts and sum of their normal forces in 4096 rows."""
    found = recording.read_contacts(start, start + 4096)
    count = found["contact_count"]
    row = np.repeat(np.arange(len(count)), count)
    return count, np.bincount(row, found["force"][:, 0], minlength=len(count))


def _check_entries(recordings: Sequence[Recording], entries: Sequence[str]) -> None:
    """Raise UsageError for a name or pattern that no entry of any run has; one of two words counts by both."""
    known: dict[str, None] = {}
    for recording in recordings:
        dims = {dim for name in recording.variables for dim in recording.variable(name).dims[1:]}
        known |= dict.fromkeys(name for dim in sorted(dims) for name in recording.names_of(dim))
    for entry in entries:
        words = [entry] if any(fnmatchcase(name, entry) for name in known) else entry.split(" ")
        for word in words:
            if not any(fnmatchcase(name, word) for name in known):
                raise UsageError(f"--entries: no entry {word!r}{nearest(word, known)}")


# ---- how it is drawn


def _lines_of(panels: Sequence[Panel]) -> int:
    return math.ceil(len(panels) / (2 if len(panels) > 3 else 1))


def _draw(figure: Figure, panels: Sequence[Panel], runs: Sequence[str]) -> None:
    places = figure.subplots(_lines_of(panels), 2 if len(panels) > 3 else 1, squeeze=False, sharex=True)
    axes: list[Axes] = list(places.T.reshape(-1)) if len(panels) > 3 else list(places[:, 0])
    known: dict[str, int] = {}
    for place, panel in zip(axes, panels, strict=False):
        _draw_panel(place, panel, known)
    for place in axes[len(panels) :]:
        place.remove()
    for column in places.T:
        last = [place for place in column if place in axes[: len(panels)]]
        if last:
            last[-1].set_xlabel("time [s]")
            last[-1].tick_params(labelbottom=True)
    title = " · ".join(f"{name} ({_dash(k)})" for k, name in enumerate(runs)) if len(runs) > 1 else runs[0]
    figure.suptitle(title, fontsize=10, parse_math=False)


def _dash(run: int) -> str:
    return {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dash-dotted"}[_STYLES[run % len(_STYLES)]]


def _draw_panel(place: Axes, panel: Panel, known: dict[str, int]) -> None:
    colours = _colours(dict.fromkeys(line.label for line in panel.lines), known)
    handles: dict[str, Any] = {}
    for line in panel.lines:
        style, colour = _STYLES[line.run % len(_STYLES)], f"C{colours[line.label]}"
        (drawn,) = place.plot(line.time, line.values, style, color=colour, linewidth=1.1)
        handles.setdefault(line.label, drawn)
    place.set_title(panel.title, fontsize=10, parse_math=False)
    place.set_ylabel(f"[{panel.unit}]", parse_math=False)
    place.grid(alpha=0.3)
    place.margins(x=0.01)
    _scale(place, panel)
    _draw_bounds(place, panel, handles)
    if len(handles) > 1 or panel.title not in handles:
        words = [f" {label}" for label in handles]  # a leading underscore would hide it
        legend = place.legend(
            list(handles.values()), words, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False
        )
        for text in legend.get_texts():
            text.set_parse_math(False)


def _draw_bounds(place: Axes, panel: Panel, handles: Mapping[str, Any]) -> None:
    """Draw the limits that lines come near as thin dashed lines, where they are in sight or next to it."""
    if place.get_yscale() != "linear" or not any(len(line.values) and _span(line.values) > 0 for line in panel.lines):
        return
    low, high = place.get_ylim()
    beside = _BESIDE * (high - low)
    shown = [(label, end) for label in handles for end in _near(panel, label) if low - beside <= end <= high + beside]
    for label, end in shown:
        place.axhline(end, color=handles[label].get_color(), linestyle=(0, (6, 5)), linewidth=0.7, alpha=0.7)
    if shown:
        ends = [end for _, end in shown]
        margin = 0.03 * (high - low)
        place.set_ylim(min(low, min(ends) - margin), max(high, max(ends) + margin))


def _near(panel: Panel, label: str) -> list[float]:
    """The limits of a label to which its lines come near, or that they exceed."""
    low, high = panel.bounds.get(label, (-math.inf, math.inf))
    values = np.concatenate([line.values for line in panel.lines if line.label == label])
    values = values[np.isfinite(values)]
    if not len(values):
        return []
    half = 0.5 * (high - low)
    near = [_NEAR * (half if math.isfinite(half) else abs(end)) for end in (low, high)]
    found = [low] if math.isfinite(low) and values.min() <= low + near[0] else []
    return found + ([high] if math.isfinite(high) and values.max() >= high - near[1] else [])


def _scale(place: Axes, panel: Panel) -> None:
    """Scale a panel: logarithmic beyond the usual range if few values are far larger (impacts), flat for rounding."""
    sizes = np.abs(np.concatenate([line.values for line in panel.lines]))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    if not len(sizes):
        place.set_ylim(-1.0, 1.0)
        place.set_yticks([0.0])
        place.text(0.5, 0.6, "zero throughout", transform=place.transAxes, ha="center", color="0.4", fontsize=9)
        return
    usual = float(np.percentile(sizes, 95))
    if panel.unit in ("N", "N m") and sizes.max() > 20.0 * usual:
        _scale_by_decades(place, usual)
    low, high = place.get_ylim()
    if high - low < _FLAT:
        place.set_ylim(0.5 * (low + high) - 1e-3, 0.5 * (low + high) + 1e-3)


def _scale_by_decades(place: Axes, usual: float) -> None:
    """Linear up to the decade of the usual values, logarithmic beyond, with plain numbers at decades and at 0."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    low, high = place.get_ylim()
    straight = 10.0 ** math.ceil(math.log10(usual))
    place.set_yscale("symlog", linthresh=straight, linscale=2.0)
    decades = range(round(math.log10(straight)), math.ceil(math.log10(max(-low, high))) + 1)
    ticks = [0.5 * straight, *(10.0**decade for decade in decades)]
    both = sorted([*(-tick for tick in ticks), 0.0, *ticks])
    place.yaxis.set_major_locator(FixedLocator([tick for tick in both if low <= tick <= high]))
    place.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    place.yaxis.set_minor_formatter(NullFormatter())
    place.set_ylim(low if low > -straight else 1.3 * low, high if high < straight else 1.3 * high)
    place.set_ylabel(f"[{place.get_ylabel()[1:-1]}], log beyond ±{straight:g}", parse_math=False)


def _colours(labels: Iterable[str], known: dict[str, int]) -> Mapping[str, int]:
    """Colours of labels: equal names have equal colours in all panels; lines of a panel differ while colours last."""
    taken: dict[str, int] = {}
    for label in labels:
        colour = known.setdefault(label, len(known) % _COLOURS)
        for _ in range(_COLOURS):
            if colour not in taken.values():
                break
            colour = (colour + 1) % _COLOURS
        taken[label] = colour
    return taken
