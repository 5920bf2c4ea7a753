"""Robots in a viser scene: pieces under one frame per link; sets poses, draws axes and force arrows.

Nodes are named by numbers instead of link names, because a slash in a name would create a subtree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artsim.io.viewer.drawables import Piece
from artsim.io.viewer.motion import FORCES, Motion
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    import viser

LAYERS = ("visual", "collision", "frames", *FORCES)
ARROW = 0.8  # length of an arrow for a contact force equal to the robot's weight [robot's size]
ARROW_COLOURS = {"contacts": (220, 30, 40), "joint forces": (40, 90, 220), "joint torques": (225, 140, 0)}
WITHIN = ("joint forces", "joint torques")  # arrows that begin inside links, which are drawn see-through for them
SEE_THROUGH = 0.5
SHORTEST = 0.005  # length of an arrow that is drawn [robot's size]


class Extent(NamedTuple):
    """Centre and size of the robot [m], without scenery."""

    centre: Array  # (3,)
    size: float


class RobotStage:
    """One robot of a scene, drawn displaced by `offset` [m]."""

    def __init__(
        self, server: viser.ViserServer, name: str, links: Sequence[str], pieces: Sequence[Piece], offset: Array
    ) -> None:
        self._server, self._name, self._offset = server, name, offset
        self._links = list(links)
        self._pieces = [piece for piece in pieces if piece.link in self._links]
        self._frames: dict[tuple[str, int], Any] = {}
        self._last: dict[int, Array] = {}
        self._visible = {"visual": True, "contacts": True}
        self._size = 1.0
        self._added: dict[str, Any] = {}
        self._meshes: list[tuple[Any, float]] = []  # those drawn as the robot looks, and how opaque they are
        self._is_clear = False

    def build(self, positions: Array, quaternions: Array, *, layers: Sequence[str]) -> None:
        """Add the nodes at these poses, (nlink, 3) [m] and (nlink, 4)."""
        self._size = self.extent(positions, quaternions).size
        for layer in layers:
            visible = self._visible.get(layer, False)
            path = f"/{self._name}/{layer}"
            self._added[layer] = self._server.scene.add_frame(
                path, show_axes=False, position=self._offset, visible=visible
            )
        for number, piece in enumerate(self._pieces):
            if piece.layer in layers:
                self._build_piece(number, piece)
        if "frames" in layers:
            self._added["axes"] = self._server.scene.add_batched_axes(
                f"/{self._name}/frames/axes",
                quaternions,
                positions,
                axes_length=0.08 * self._size,
                axes_radius=0.004 * self._size,
            )
        for layer, colour in ARROW_COLOURS.items():
            if layer in layers:
                self._build_arrows(layer, colour)
        self.pose(positions, quaternions)

    def _build_piece(self, number: int, piece: Piece) -> None:
        link = self._links.index(piece.link)
        path = f"/{self._name}/{piece.layer}/link {link}"
        if (piece.layer, link) not in self._frames:
            self._frames[piece.layer, link] = self._server.scene.add_frame(path, show_axes=False)
        red, green, blue, alpha = piece.colour
        mesh = self._server.scene.add_mesh_simple(
            f"{path}/{number}",
            piece.points,
            piece.faces,
            color=(round(255 * red), round(255 * green), round(255 * blue)),
            opacity=alpha if alpha < 1 else None,
            flat_shading=piece.flat,
            side="double",
            cast_shadow=piece.layer == "visual" and not piece.scenery,
        )
        if piece.layer == "visual" and not piece.scenery:
            self._meshes.append((mesh, alpha))

    def _build_arrows(self, layer: str, colour: tuple[int, int, int]) -> None:
        self._added[f"{layer} arrows"] = self._server.scene.add_arrows(
            f"/{self._name}/{layer}/arrows",
            np.zeros((0, 2, 3), np.float32),
            colour,
            shaft_radius=0.005 * self._size,
            head_radius=0.012 * self._size,
            head_length=0.03 * self._size,
        )

    def extent(self, positions: Array, quaternions: Array) -> Extent:
        """The extent of the robot's pieces in these poses, or of its links' origins if nothing is drawn."""
        from artsim.sim.foundation.rotations import rotation_matrix

        clouds = []
        for piece in self._pieces:
            if not piece.scenery:
                link = self._links.index(piece.link)
                corners = _corners(piece.points)
                clouds.append(corners @ rotation_matrix(quaternions[link]).T + positions[link])
        points = np.concatenate(clouds or [positions])
        points = points[np.isfinite(points).all(axis=1)]
        if not len(points):
            return Extent(self._offset, 1.0)
        lower, upper = points.min(axis=0), points.max(axis=0)
        return Extent((lower + upper) / 2 + self._offset, max(float(np.linalg.norm(upper - lower)), 1e-3))

    def pose(self, positions: Array, quaternions: Array) -> None:
        """Set the links' poses; unchanged poses are not sent again, and non-finite ones are ignored."""
        poses = np.concatenate([positions, quaternions], axis=1)
        for (_, link), frame in self._frames.items():
            row = poses[link]
            if np.isfinite(row).all() and (link not in self._last or not np.array_equal(self._last[link], row)):
                frame.position, frame.wxyz = row[:3], row[3:]
        self._last = dict(enumerate(poses))
        axes = self._added.get("axes")
        if axes is not None and np.isfinite(poses).all():
            axes.batched_positions = positions.astype(np.float32)
            axes.batched_wxyzs = quaternions.astype(np.float32)

    def arrows(self, layer: str, points: Array, vectors: Array) -> None:
        """Set the arrows of a layer: vectors (n, 3) from points (n, 3), both in metres; those that are too short to be
        seen are left out, since their heads would be."""
        node = self._added.get(f"{layer} arrows")
        if node is not None:
            seen = np.linalg.norm(vectors, axis=1) > SHORTEST * self._size
            points, vectors = points[seen], vectors[seen]
            ends = np.stack([points, points + vectors], axis=1).astype(np.float32)
            if ends.shape != node.points.shape or not np.array_equal(ends, node.points):
                node.points = ends

    def show(self, visible: Mapping[str, bool]) -> None:
        """Show or hide layers; the robot is see-through while arrows within it are shown."""
        clear = any(visible.get(layer) for layer in WITHIN)
        if clear != self._is_clear:
            self._is_clear = clear
            for mesh, alpha in self._meshes:
                opacity = alpha * (SEE_THROUGH if clear else 1.0)
                mesh.opacity = opacity if opacity < 1 else None
        for layer, shown in visible.items():
            if layer in self._added:
                self._added[layer].visible = shown


def _corners(points: Array) -> Array:
    """The corners (8, 3) of the points' bounding box."""
    low, high = points.min(axis=0), points.max(axis=0)
    return np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])


def legend(motion: Motion, scales: Mapping[str, float]) -> list[tuple[str, str]]:
    """A line about the arrows of each kind and its colour #rrggbb; `scales` [m/N, m/(N m)]."""
    unit = {kind: "N m" if kind == "joint torques" else "N" for kind in scales}
    return [
        (f"{motion.told(kind)}: an arrow of 0.1 m is {0.1 / scale:.3g} {unit[kind]}", colour_of(kind))
        for kind, scale in scales.items()
    ]


def colour_of(kind: str) -> str:
    """The colour of arrows, #rrggbb."""
    return "#{:02x}{:02x}{:02x}".format(*ARROW_COLOURS[kind])


def look_at(server: viser.ViserServer, extents: Sequence[Extent]) -> None:
    """Point the initial camera at all extents."""
    centre = np.mean([extent.centre for extent in extents], axis=0)
    away = max(float(np.linalg.norm(extent.centre - centre)) + extent.size for extent in extents)
    server.initial_camera.position = tuple(centre + away * np.array([0.8, -0.8, 0.5]))
    server.initial_camera.look_at = tuple(centre)


def add_grid(server: viser.ViserServer, height: float, size: float, *, solid: bool) -> None:
    """Add a grid at the height of the ground; `solid` also draws the ground plane."""
    cell = 10.0 ** round(math.log10(max(size, 1e-3) / 3))
    server.scene.add_grid(
        "/grid",
        width=40 * cell,
        height=40 * cell,
        plane="xy",
        cell_size=cell,
        section_size=5 * cell,
        position=(0.0, 0.0, height),
        shadow_opacity=0.3 if solid else 0.1,
        plane_opacity=0.6 if solid else 0.0,
    )
