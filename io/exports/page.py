"""Exports a run as one HTML file that plays offline in any browser: viser's client with the scene and its motion."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

import numpy as np

from artsim.io.exports.request import Export
from artsim.io.output_file.whole_file import write_whole
from artsim.io.viewer.drawables import pieces_of
from artsim.io.viewer.motion import Motion
from artsim.io.viewer.server import start_server, stop_server
from artsim.io.viewer.stage import ARROW, RobotStage, add_grid, legend, look_at
from artsim.sim.runs.configuration import RunConfig

MOST_FRAMES = 2000  # longer runs are thinned; a frame of 20 moving links takes about 1 kB


def write_page(export: Export) -> list[str]:
    """Write the page and return notes for the user. Raises UsageError: no viser, nothing to show; OSError."""
    notes: list[str] = []
    articulation = export.robot()
    motion = Motion(export.recording, articulation)
    times = frame_times(motion, export.fps, notes)
    server = start_server("")
    try:
        ground = RunConfig.from_mapping(export.recording.config)
        stage = RobotStage(server, "robot", motion.links, pieces_of(articulation, notes), np.zeros(3))
        first = motion.poses(motion.row_at(times[0]))
        kinds = export.kinds_of_forces(motion)
        stage.build(*first, layers=["visual", "collision", *kinds])
        stage.show(dict.fromkeys(kinds, True))
        extent = stage.extent(*first)
        look_at(server, [extent])
        add_grid(server, ground.ground_height, extent.size, solid=ground.ground)
        recorder = server.get_scene_serializer()
        scales = {kind: export.force_scale * ARROW * motion.metres(kind, extent.size) for kind in kinds}
        for number, time in enumerate(times):
            row = motion.row_at(time)
            stage.pose(*motion.poses(row))
            for kind, scale in scales.items():
                found = motion.forces(kind, row)
                stage.arrows(kind, found.points, scale * found.vectors)
            following = times[number + 1] if number + 1 < len(times) else time + 1.0 / export.fps
            recorder.insert_sleep(following - time)
        page = recorder.as_html()
    finally:
        stop_server(server)
    title = html.escape(f"artsim: {export.recording.path.name}")
    page = re.sub(r"<title>.*?</title>", lambda _: f"<title>{title}</title>", page, count=1, flags=re.S)
    page = page.replace("</body>", f"{_legend(motion, scales)}</body>", 1)
    write_whole(export.output, page.encode("utf-8", "backslashreplace"), export.written)
    return notes


def _legend(motion: Motion, scales: Mapping[str, float]) -> str:
    """The kinds of arrows that are drawn, over the corner of the page."""
    lines = [
        f'<div><b style="color:{colour}">➞</b> {html.escape(text)}</div>' for text, colour in legend(motion, scales)
    ]
    style = "position:fixed;left:16px;bottom:60px;font:13px sans-serif;color:#333;pointer-events:none;z-index:9"
    return f'<div style="{style}">{"".join(lines)}</div>' if lines else ""


def frame_times(motion: Motion, fps: float, notes: list[str]) -> list[float]:
    """Times of the frames [s]: every 1/fps, or every row where rows are further apart; thinned for long runs."""
    step = max(1.0 / fps, motion.interval)
    count = int(motion.duration / step + 1e-6) + 1
    if count > MOST_FRAMES:
        step *= count / MOST_FRAMES
        notes.append(f"{count} frames are many for a page: {MOST_FRAMES} are in it, one every {step:.3g} s")
        count = MOST_FRAMES
    return [k * step for k in range(count)]
