"""Exports a run as a video, rendered off-screen by VTK and encoded by ffmpeg. The only file that imports pyvista."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from artsim.io.exports.request import Export, Look
from artsim.io.output_file.whole_file import written_whole
from artsim.io.viewer.drawables import Piece, pieces_of
from artsim.io.viewer.motion import Motion, Poses
from artsim.io.viewer.stage import ARROW, SEE_THROUGH, WITHIN, colour_of, legend
from artsim.sim.foundation.apart import life_line
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import rotation_matrix
from artsim.sim.runs.configuration import RunConfig

SIZE = (1280, 720)  # [pixels] multiples of 16, as video codecs require
_SLENDER = {"shaft_radius": 0.025, "tip_radius": 0.06, "tip_length": 0.18}  # of an arrow's length
_VIEW = 30.0  # [deg] height of the picture, as seen by VTK's camera
_HORIZON, _SKY = (0.93, 0.95, 0.97), (0.66, 0.76, 0.88)  # colours of the background, below and above
_TEXT = 14  # [pixels] of the legend
_PROBE = """
import sys
from artsim.sim.foundation.apart import end_with
end_with(int(sys.argv[1]), int(sys.argv[2]))
import pyvista
plotter = pyvista.Plotter(off_screen=True, window_size=(32, 32))
plotter.add_mesh(pyvista.Sphere())
assert plotter.screenshot(return_img=True).std() > 0
"""


def write_video(export: Export) -> list[str]:
    """Write an .mp4 that plays in real time, with arrows for forces, and return notes for the user.

    Raises UsageError: no pyvista or imageio-ffmpeg, no OpenGL, nothing to show, forces that are not recorded.
    """
    try:
        import imageio_ffmpeg
        import pyvista
    except ImportError:
        raise UsageError('videos need pyvista and imageio-ffmpeg: pip install "artsim[video]"') from None
    if export.output.suffix.lower() != ".mp4":
        raise UsageError(f"{export.output}: a video is an .mp4")
    notes: list[str] = []
    articulation = export.robot()
    motion = Motion(export.recording, articulation)
    kinds = export.kinds_of_forces(motion)
    pieces = [
        piece for piece in pieces_of(articulation, notes) if piece.layer == "visual" and piece.link in motion.links
    ]
    if not pieces:
        raise UsageError(f"{export.recording.path}: the robot has no shape to show")
    _check_graphics()
    times = [k / export.fps for k in range(int(motion.duration * export.fps + 1e-6) + 1)]
    plotter: Any = pyvista.Plotter(off_screen=True, window_size=list(SIZE))
    clear = SEE_THROUGH if set(kinds) & set(WITHIN) else 1.0
    actors = [_add(plotter, pyvista, piece, 1.0 if piece.scenery else clear) for piece in pieces]
    look = export.look
    if look.follow and look.follow not in motion.links:
        raise UsageError(f"--follow: no link is called {look.follow!r}{nearest(look.follow, motion.links)}")
    outline = _outline(motion, pieces, times, look.follow)
    low, high = outline.min(axis=0), outline.max(axis=0)
    _add_ground(plotter, pyvista, RunConfig.from_mapping(export.recording.config), low, high, floor=look.floor)
    _set_background(plotter, look.background)
    size, middle = float(np.linalg.norm(high - low)), 0.5 * (low + high)
    own_size = float(np.linalg.norm(np.ptp(_outline(motion, pieces, times[:1]), axis=0)))
    scales = {kind: export.force_scale * ARROW * motion.metres(kind, own_size) for kind in kinds}
    _add_legend(plotter, motion, scales)
    away = _towards_camera(look)
    away *= look.distance or _distance(outline - middle, away)
    still = _place_of(motion, look.follow, times[0])
    with written_whole(export.output, written=export.written) as path:
        packer: Any = imageio_ffmpeg.write_frames(str(path), SIZE, fps=export.fps, macro_block_size=16)
        packer.send(None)
        try:
            for time in times:
                row = motion.row_at(time)
                _place(actors, pieces, motion, motion.poses(row))
                _add_arrows(plotter, pyvista, motion, row, scales)
                centre = middle + _place_of(motion, look.follow, time) - still
                plotter.camera_position = [centre + away, centre, (0.0, 0.0, 1.0)]
                plotter.camera.clipping_range = (0.01 * size, 100.0 * size)
                plotter.render()
                packer.send(np.ascontiguousarray(plotter.screenshot(return_img=True)))
        finally:
            packer.close()
            plotter.close()
    return notes


def _check_graphics() -> None:
    """Render once in another process: without an OpenGL library VTK crashes instead of raising. Raises UsageError."""
    line = life_line()
    probe = [sys.executable, "-P", "-c", _PROBE, str(os.getpid()), str(line)]
    done = subprocess.run(probe, capture_output=True, check=False, pass_fds=(line,) if line >= 0 else ())
    if done.returncode:
        raise UsageError(
            "videos need OpenGL, and this system has no library that draws without a screen; "
            "on Debian and Ubuntu: apt install libegl1 libgl1 libgl1-mesa-dri"
        )
    from vtkmodules.vtkCommonCore import vtkLogger

    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)  # VTK logs every rendering back end that it tries


def _add(plotter: Any, pyvista: Any, piece: Piece, clear: float = 1.0) -> Any:
    """Add a piece as an actor, in its link's frame."""
    faces = np.column_stack([np.full(len(piece.faces), 3), piece.faces]).astype(np.int64)
    shape = pyvista.PolyData(piece.points, faces.reshape(-1))
    return plotter.add_mesh(
        shape,
        color=piece.colour[:3],
        opacity=clear * piece.colour[3],
        smooth_shading=not piece.flat,
        split_sharp_edges=True,
    )


def _set_background(plotter: Any, colour: str) -> None:
    """Set the background: a colour, or a pale sky, before which white robots and black ones can be seen."""
    try:
        if colour:
            plotter.set_background(colour)
        else:
            plotter.set_background(_HORIZON, top=_SKY)
    except ValueError:
        raise UsageError(f"--background: {colour!r} is no colour; give a name or #RRGGBB") from None


def _towards_camera(look: Look) -> Array:
    """The direction from the middle to the camera, of length 1."""
    about, above = math.radians(look.azimuth), math.radians(look.elevation)
    return np.array([math.cos(above) * math.cos(about), math.cos(above) * math.sin(about), math.sin(above)])


def _distance(points: Array, away: Array) -> float:
    """The least distance [m] from which all points (n, 3) about the middle are in sight in the direction `away`."""
    right = np.cross([0.0, 0.0, 1.0], away)
    right /= np.linalg.norm(right)
    up = np.cross(away, right)
    half = math.tan(math.radians(_VIEW / 2.0))
    high = np.abs(points @ up) / half
    wide = np.abs(points @ right) / (half * SIZE[0] / SIZE[1])
    return 1.1 * float((points @ away + np.maximum(high, wide)).max())


def _place_of(motion: Motion, link: str, time: float) -> Array:
    """The position of a link that the camera follows, level with the ground; 0 for none."""
    if not link:
        return np.zeros(3)
    place = motion.poses(motion.row_at(time)).positions[motion.links.index(link)]
    return np.array([place[0], place[1], 0.0])


def _add_ground(plotter: Any, pyvista: Any, config: RunConfig, low: Array, high: Array, *, floor: bool) -> None:
    if config.ground or floor:
        x, y = 0.5 * (low + high)[:2]
        size = 4.0 * float(np.linalg.norm(high - low))
        floor = pyvista.Plane(center=(x, y, config.ground_height), i_size=size, j_size=size)
        plotter.add_mesh(floor, color=(0.85, 0.87, 0.9), show_edges=True, edge_color=(0.75, 0.77, 0.8))


def _place(actors: Sequence[Any], pieces: Sequence[Piece], motion: Motion, poses: Poses) -> None:
    for actor, piece in zip(actors, pieces, strict=True):
        link = motion.links.index(piece.link)
        frame = np.eye(4)
        frame[:3, :3] = rotation_matrix(poses.quaternions[link])
        frame[:3, 3] = poses.positions[link]
        actor.user_matrix = frame


def _add_legend(plotter: Any, motion: Motion, scales: Mapping[str, float]) -> None:
    for number, (text, colour) in enumerate(reversed(legend(motion, scales))):
        plotter.add_text(text, position=(16, 12 + 2 * _TEXT * number), font_size=_TEXT // 2 + 3, color=colour)


def _add_arrows(plotter: Any, pyvista: Any, motion: Motion, row: int, scales: Mapping[str, float]) -> None:
    """Draw the forces of a row as arrows in place of those before; `scales` [m/N, m/(N m)] by kind."""
    for kind, scale in scales.items():
        plotter.remove_actor(kind, render=False)
        found = motion.forces(kind, row)
        if len(found.points) and np.any(found.vectors):
            cloud = pyvista.PolyData(np.asarray(found.points, float))
            cloud["force"] = scale * found.vectors
            arrows = cloud.glyph(orient="force", scale="force", factor=1.0, geom=pyvista.Arrow(**_SLENDER))
            plotter.add_mesh(arrows, name=kind, color=colour_of(kind), render=False)


def _outline(motion: Motion, pieces: Sequence[Piece], times: Sequence[float], follow: str = "") -> Array:
    """Corners (n, 3) [m] of the boxes of all pieces except scenery over the whole run, seen from the followed link."""
    own = [piece for piece in pieces if not piece.scenery] or list(pieces)
    boxes = [(motion.links.index(piece.link), _corners(piece.points)) for piece in own if len(piece.points)]
    found = []
    for time in times[:: math.ceil(len(times) / 100)]:
        poses = motion.poses(motion.row_at(time))
        moved = _place_of(motion, follow, time) - _place_of(motion, follow, times[0])
        turns = {link: rotation_matrix(poses.quaternions[link]) for link, _ in boxes}
        found += [corners @ turns[link].T + poses.positions[link] - moved for link, corners in boxes]
    points = np.concatenate(found) if found else np.zeros((0, 3))
    points = points[np.isfinite(points).all(axis=1)]
    return points if len(points) else _corners(np.array([-np.ones(3), np.ones(3)]))


def _corners(points: Array) -> Array:
    """The corners (8, 3) of the box around points."""
    ends = np.stack([points.min(axis=0), points.max(axis=0)])
    return np.array([[ends[i, 0], ends[j, 1], ends[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
