"""Robots as CAD programs export them: many meshes on each link, which run into those of links one and two joints on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial import ConvexHull

HOUSING, TUBE = 0.07, 0.03  # radii [m]
SHORT, LONG = 0.05, 0.3  # lengths of links in turn [m]; housings at the ends of a short one overlap for ever


def cad_arm(folder: Path, *, links: int = 16, shells: int = 3, fins: int = 0) -> Path:
    """An arm of links in turn long and short, as a URDF with meshes beside it: 1 + 2 `shells` on each link.

    `shells` meshes of a housing stand about each end of a link, all within a few mm, with a tube between them. From the
    first `fins` links a fin stands out, which runs 2 mm into the housings two joints on as the arm is drawn, and no
    longer when the arm bends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(shells):
        _write(folder / f"housing_{n}.obj", _ball(HOUSING - 0.002 * n, 40, n))
    _write(folder / "tube.obj", _prism(TUBE, 1.0))
    _write(folder / "fin.obj", np.array([(x, y, z) for x in (0.068, 0.1) for y in (-0.01, 0.01) for z in (0, 1)]))
    parts = [_link(k, _length(k), shells, k < fins) for k in range(links)]
    parts += [_joint(k, _length(k - 1)) for k in range(1, links)]
    path = folder / "arm.urdf"
    path.write_text(f'<robot name="cad">{"".join(parts)}</robot>')
    return path


def _length(k: int) -> float:
    return SHORT if k % 2 else LONG


def _link(k: int, length: float, shells: int, fin: bool) -> str:
    ends = [(f"housing_{n}", z, 1.0) for n in range(shells) for z in (0.0, length)]
    meshes = [*ends, ("tube", 0.0, length), *([("fin", 0.0, length + SHORT)] if fin else [])]
    shapes = "".join(
        f'<collision><origin xyz="0 0 {z}"/><geometry><mesh filename="{name}.obj" scale="1 1 {scale}"/></geometry>'
        "</collision>"
        for name, z, scale in meshes
    )
    inertia = '<mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    return f'<link name="l{k}"><inertial><origin xyz="0 0 {length / 2}"/>{inertia}</inertial>{shapes}</link>'


def _joint(k: int, before: float) -> str:
    axis = "0 1 0" if k % 2 else "1 0 0"
    ends = f'<parent link="l{k - 1}"/><child link="l{k}"/><origin xyz="0 0 {before}"/><axis xyz="{axis}"/>'
    return f'<joint name="j{k}" type="revolute">{ends}<limit lower="-2" upper="2" effort="100" velocity="9"/></joint>'


def _ball(radius: float, points: int, seed: int) -> np.ndarray:
    """Points on a sphere."""
    directions = np.random.default_rng(seed).normal(size=(points, 3))
    return radius * directions / np.linalg.norm(directions, axis=1, keepdims=True)


def _prism(radius: float, length: float) -> np.ndarray:
    turn = np.linspace(0.0, 2 * np.pi, 12, endpoint=False)
    return np.array([(radius * np.cos(a), radius * np.sin(a), z) for a in turn for z in (0.0, length)])


def _write(path: Path, points: np.ndarray) -> None:
    """The hull of points as an OBJ file."""
    hull = ConvexHull(points)
    middle = points.mean(axis=0)
    lines = [f"v {x:.9f} {y:.9f} {z:.9f}" for x, y, z in points]
    for corners in hull.simplices:
        a, b, c = points[corners]
        outward = np.dot(np.cross(b - a, c - a), a - middle) > 0
        i, j, k = corners + 1 if outward else corners[::-1] + 1
        lines.append(f"f {i} {j} {k}")
    path.write_text("\n".join(lines) + "\n")
