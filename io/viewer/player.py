"""Plays recorded runs in the viewer: a time slider, playback controls, layers and plots of recorded variables."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from artsim.io.viewer.drawables import pieces_of
from artsim.io.viewer.motion import FORCES, Motion
from artsim.io.viewer.plots import Plot
from artsim.io.viewer.stage import ARROW, LAYERS, Extent, RobotStage, add_grid, legend, look_at
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.runs.configuration import RunConfig

if TYPE_CHECKING:
    import viser

FRAMES = 30  # largest number of frames sent per second


@dataclass(frozen=True)
class Playback:
    """Initial settings. `rate`: simulated seconds per second; `step`: rows per frame, 0: from the rate."""

    rate: float = 1.0
    loop: bool = False
    start: float = 0.0  # [s]
    step: int = 0
    spacing: float | None = None  # [m] between runs; None: side by side, 0: overlaid
    playing: bool = True


class Player:
    """Shows runs on a server's page. Only `advance` changes the scene, in the thread that calls it."""

    def __init__(
        self, server: viser.ViserServer, runs: Sequence[tuple[str, Motion, Articulation]], how: Playback
    ) -> None:
        self.notes: list[str] = []
        self._server, self._how = server, how
        self._motions = [motion for _, motion, _ in runs]
        self._longest = max(self._motions, key=lambda motion: motion.duration)
        self._time = min(max(how.start, 0.0), self._longest.duration)
        self._shown: tuple[Any, ...] = ()
        self._stages = self._build(runs)
        self._add_time()
        self._add_layers()
        self._plot = Plot(server, [(name, motion.recording) for name, motion, _ in runs])
        for note in self.notes:
            server.gui.add_markdown(f"**Note:** {plain(note)}")
        self._show()

    # building

    def _build(self, runs: Sequence[tuple[str, Motion, Articulation]]) -> list[RobotStage]:
        """Build the robots side by side, each in its initial pose."""
        stages: list[RobotStage] = []
        extents: list[Extent] = []
        for number, (name, motion, articulation) in enumerate(runs):
            notes: list[str] = []
            pieces = [piece for piece in pieces_of(articulation, notes) if not (number and piece.scenery)]
            self.notes += [note if len(runs) == 1 else f"{name}: {note}" for note in notes]
            poses = motion.poses(motion.row_at(self._time))
            offset = np.zeros(3)
            if number:
                spacing = self._how.spacing
                offset[1] = number * (extents[0].size if spacing is None else spacing)
            stage = RobotStage(self._server, f"run {number}", motion.links, pieces, offset)
            stage.build(*poses, layers=["visual", "collision", "frames", *motion.forces_known])
            stages.append(stage)
            extents.append(stage.extent(*poses))
            if len(runs) > 1:
                self._server.scene.add_label(f"/run {number}/name", name, position=label_place(extents[-1]))
        self._size = max(extent.size for extent in extents)
        look_at(self._server, extents)
        config = RunConfig.from_mapping(self._longest.recording.config)
        add_grid(self._server, config.ground_height, self._size, solid=config.ground)
        return stages

    def _add_time(self) -> None:
        gui, interval = self._server.gui, self._longest.interval
        longest = max(self._longest.duration, interval)
        with gui.add_folder("Time"):
            self._slider: Any = gui.add_slider("time [s]", 0.0, longest, interval, self._time)
            self._play: Any = gui.add_checkbox("play", self._how.playing)
            self._rate = gui.add_number("rate", self._how.rate, min=0.001, max=1000.0, step=0.1, hint="s per second")
            self._loop = gui.add_checkbox("loop", self._how.loop)
            rows = gui.add_button_group("row", ("first", "back", "on", "last"))
        self._set = float(self._slider.value)

        @rows.on_click
        def _(event: Any) -> None:
            self._play.value = False
            ends = {"first": 0.0, "last": self._longest.duration}
            by = {"back": -interval, "on": interval}
            self._slider.value = ends.get(rows.value, min(max(self._time + by.get(rows.value, 0.0), 0.0), longest))

    def _add_layers(self) -> None:
        known = {name for motion in self._motions for name in motion.forces_known}
        layers = [name for name in LAYERS if name not in FORCES or name in known]
        gui = self._server.gui
        with gui.add_folder("Show"):
            self._layers = {name: gui.add_checkbox(name, name in ("visual", "contacts")) for name in layers}
            self._scale = gui.add_slider("force arrows", 0.1, 10.0, 0.1, 1.0, visible=bool(known))
            self._legend = gui.add_html("")

    # playing

    def advance(self, seconds: float) -> None:
        """Advance the playback by `seconds` and show the state at the new time."""
        if abs(self._slider.value - self._set) > self._longest.interval / 2:  # the user has moved it
            self._time = float(self._slider.value)
        elif self._play.value and seconds > 0:
            frame = self._how.step * self._longest.interval
            self._time += frame if frame else seconds * float(self._rate.value)
            if self._time > self._longest.duration:
                self._time = 0.0 if self._loop.value else self._longest.duration
                self._play.value = self._loop.value
        self._show()

    def _show(self) -> None:
        """Send what has changed to the page."""
        rows = [motion.row_at(self._time) for motion in self._motions]
        visible = {name: bool(box.value) for name, box in self._layers.items()}
        state = (rows, visible, self._scale.value)
        self._set = self._time
        if abs(self._slider.value - self._time) > self._longest.interval / 2:
            self._slider.value = self._time
        self._set = float(self._slider.value)
        self._plot.show_time(self._time)
        if state == self._shown:
            return
        self._shown = state
        self._show_legend(visible)
        with self._server.atomic():
            for motion, stage, row in zip(self._motions, self._stages, rows, strict=True):
                poses = motion.poses(row)
                stage.show(visible)
                stage.pose(*poses)
                self._show_forces(motion, stage, row, visible)

    def _show_forces(self, motion: Motion, stage: RobotStage, row: int, visible: dict[str, bool]) -> None:
        for kind in motion.forces_known:
            if visible[kind]:
                found = motion.forces(kind, row)
                stage.arrows(kind, found.points, self._length(motion, kind) * found.vectors)

    def _length(self, motion: Motion, kind: str) -> float:
        """Of arrows [m/N, m/(N m)]."""
        return float(self._scale.value) * ARROW * motion.metres(kind, self._size)

    def _show_legend(self, visible: dict[str, bool]) -> None:
        """Say in the panel what the arrows are, of the first run that has them."""
        lines = []
        for kind in FORCES:
            motion = next((motion for motion in self._motions if kind in motion.forces_known), None)
            if motion is not None and visible[kind]:
                lines += legend(motion, {kind: self._length(motion, kind)})
        self._legend.content = "".join(
            f'<div style="margin:0 1em;font-size:0.8em"><b style="color:{colour}">➞</b> {html.escape(text)}</div>'
            for text, colour in lines
        )

    def run(self, stop: Callable[[], bool]) -> None:
        """Play until `stop` returns True."""
        before = time.perf_counter()
        while not stop():
            time.sleep(1.0 / FRAMES)
            now = time.perf_counter()
            self.advance(now - before)
            before = now


def plain(text: str) -> str:
    """Escape text of a file for markdown."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()<>#+-.!|&$" else c for c in text if c.isprintable())


def label_place(extent: Extent) -> tuple[float, float, float]:
    """Position of a label above the robot."""
    x, y, z = (float(value) for value in extent.centre)
    return x, y, z + 0.6 * extent.size
