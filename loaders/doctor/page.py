"""Findings as a page of HTML, whole in one file: each with a picture of the robot in which its links stand out."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np

from artsim.collision.hull import outline
from artsim.loaders.doctor.examine import Examination
from artsim.loaders.doctor.finding import Finding
from artsim.loaders.doctor.forms import Form, corners_of
from artsim.loaders.writers.write import put_whole, refuse_place
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import OutputError

SIZE, EDGE = 300, 10  # of a picture and its edge [px]
VIEWS = {
    "from the front, right": (-0.6, 0.75, 0.0, -0.3, -0.25, 0.92),
    "from the side": (-1.0, 0.0, 0.0, 0.0, 0.0, 1.0),
}
"""Pictures of a robot: the directions in the world that point right and up, by their titles."""
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222 }
section { border-top: 1px solid #ddd; padding: 1rem 0; display: flex; gap: 1rem; flex-wrap: wrap }
section > div { flex: 1 1 22rem } code { background: #f3f3f3; padding: .1em .3em } h2 { margin: 0; font-size: 1rem }
.warning { color: #a40000 } .hint { color: #5a5a00 } svg { background: #fafafa }
.link { fill: #c8ccd0; stroke: #8a9096; stroke-width: .5; fill-opacity: .55 }
.found { fill: #e0452b; stroke: #8f1d0b; stroke-width: 1; fill-opacity: .8 }
"""


def write_page(robot: Articulation, examination: Examination, place: Path, *, force: bool) -> None:
    """Write the page. Raises OutputError for a place that is taken or cannot be written."""
    refuse_place(place, force=force)
    try:
        put_whole(place, page_of(robot, examination))
    except OSError as error:
        raise OutputError(f"{place}: {os.strerror(error.errno or 0)}") from None


def page_of(robot: Articulation, examination: Examination) -> str:
    """The text of the page."""
    findings = examination.findings
    told = [finding for finding in findings if not finding.is_hint]
    head = f"{len(told)} warnings, {len(findings) - len(told)} hints" if findings else "nothing was found"
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        f"<title>artsim check {escape(robot.name)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{escape(robot.name)}</h1><p>{escape(robot.path)}: {head}</p>",
        *(section(finding, examination.placed) for finding in findings),
    ]
    other = [note for note in robot.notes if note not in examination.codes]
    if other:
        parts.append("<h2>Warnings of the reader</h2><ul>")
        parts += [f"<li>{escape(str(note))}</li>" for note in other]
        parts.append("</ul>")
    return "\n".join([*parts, "</body></html>\n"])


def section(finding: Finding, placed: Mapping[int, tuple[str, Form]]) -> str:
    """A finding with its pictures."""
    mend = f"<p>Mend: <code>artsim edit … {escape(shlex.join(finding.mend))}</code></p>" if finding.mend else ""
    text = (
        f'<div><h2 class="{finding.grade}">{finding.grade}: {finding.code}</h2><p>{escape(str(finding.source))}</p>'
        f"<p>{escape(finding.told)}</p><p>Why it matters: {escape(finding.why)}.</p>{mend}</div>"
    )
    shown = finding.links if placed and finding.links else ()
    pictures = [picture(placed, shown, title, axes) for title, axes in VIEWS.items()] if shown else []
    return f"<section>{text}{''.join(pictures)}</section>"


def picture(placed: Mapping[int, tuple[str, Form]], links: Sequence[str], title: str, axes: Sequence[float]) -> str:
    """The robot as an SVG: the outline of the hull of each shape, the farthest first, those of these links coloured."""
    right, up = (np.array(axes[k : k + 3]) / np.linalg.norm(axes[k : k + 3]) for k in (0, 3))
    outlines = []
    for name, form in placed.values():
        corners = corners_of(form)
        flat = np.column_stack([corners @ right, corners @ up])
        outlines.append((name in links, float(np.mean(corners @ np.cross(right, up))), flat[outline(flat)]))
    everything = np.concatenate([points for _, _, points in outlines])
    low, span = everything.min(axis=0), max(float(np.ptp(everything, axis=0).max()), 1e-9)
    scale = (SIZE - 2 * EDGE) / span
    shapes = []
    for found, _, points in sorted(outlines, key=lambda one: (one[0], one[1])):
        at = EDGE + (points - low) * scale
        text = " ".join(f"{x:.1f},{SIZE - y:.1f}" for x, y in at.tolist())
        shapes.append(f'<polygon class="{"found" if found else "link"}" points="{text}"/>')
    return (
        f'<svg width="{SIZE}" height="{SIZE}" role="img" aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f"{''.join(shapes)}</svg>"
    )
