"""Write meshes/forearm.stl, always with the same bytes: `python robots/make_meshes.py`."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# The outline of arm7's forearm: (radius, height) [m] from the bottom of the axis to its top; convex.
FOREARM = ((0.0, 0.0), (0.055, 0.0), (0.060, 0.008), (0.060, 0.060), (0.040, 0.150), (0.030, 0.160), (0.0, 0.160))


def solid_of_revolution(outline: tuple[tuple[float, float], ...], sides: int) -> NDArray[np.float32]:
    """The outline turned about z: triangles, shape (n, 3, 3) [m], counter-clockwise from outside."""
    angle = 2 * np.pi * np.arange(sides) / sides
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = [np.column_stack([radius * circle, np.full(sides, height)]) for radius, height in outline]
    triangles = []
    for (low_radius, _), (high_radius, _), low, high in zip(outline, outline[1:], rings, rings[1:], strict=False):
        for i in range(sides):
            k = (i + 1) % sides
            if low_radius > 0:
                triangles.append((low[i], low[k], high[i]))
            if high_radius > 0:
                triangles.append((low[k], high[k], high[i]))
    # To the micrometre: the last bits of sine and cosine differ between machines.
    return np.round(np.array(triangles), 6).astype(np.float32)


def binary_stl(triangles: NDArray[np.float32], title: str) -> bytes:
    """80 bytes of title, the count, then normal, three corners and a spare 16 bits per triangle."""
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("spare", "<u2")])
    corners = triangles.astype(np.float64)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    records = np.zeros(len(triangles), record)
    records["normal"] = np.round(normals, 6)
    records["corners"] = triangles
    return title.encode("ascii").ljust(80) + np.array(len(triangles), "<u4").tobytes() + records.tobytes()


def meshes() -> dict[str, bytes]:
    """File name in meshes/ and content."""
    return {"forearm.stl": binary_stl(solid_of_revolution(FOREARM, sides=32), "artsim: forearm of arm7")}


if __name__ == "__main__":
    for name, content in meshes().items():
        (Path(__file__).parent / "meshes" / name).write_bytes(content)
