"""Pairs of shapes against coal, and their time beside MuJoCo's: `python tests/benchmarks/narrow_phase.py [A-B …]`.

Random pairs in four families: apart to deep, nearly touching, sizes from 1e-3 to 10 m, aligned to axes and a grid.
`proof` is how far the gap found is from what its own normal says (tests/collision/pair_scenes.py), `place` how far its
two surface points are from the surfaces, `missed` how much larger the gap along coal's normal is. With all of these
small the gap is right, whatever coal says; `coal` is the plain difference. All relative to the reach of the smaller
shape: the worst, and behind it how many are above 1e-6 and above 1e-3. Needs coal and mujoco (the extra `test`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coal
import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from artsim.collision import shapes as of

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.collision.pair_kernels import Array, contacts_of, prepare
from tests.collision.pair_scenes import (
    FAMILIES,
    Scene,
    deepest,
    gap_along,
    hull_points,
    misplaced,
    pick,
    scene,
    smaller_reach,
)

KINDS = {
    "plane": of.PLANE,
    "sphere": of.SPHERE,
    "capsule": of.CAPSULE,
    "ellipsoid": of.ELLIPSOID,
    "cylinder": of.CYLINDER,
    "box": of.BOX,
    "convex": of.CONVEX,
}
PAIRS = (
    *("plane-sphere", "plane-capsule", "plane-ellipsoid", "plane-cylinder", "plane-box", "plane-convex"),
    *("sphere-sphere", "sphere-capsule", "sphere-cylinder", "sphere-box"),
    *("capsule-capsule", "capsule-box", "box-box"),
    *("sphere-ellipsoid", "capsule-ellipsoid", "ellipsoid-ellipsoid", "ellipsoid-cylinder", "ellipsoid-box"),
    *("capsule-cylinder", "cylinder-cylinder", "cylinder-box"),
    *(f"{kind}-convex" for kind in ("sphere", "capsule", "ellipsoid", "cylinder", "box", "convex")),
)
FAR = 1e9  # [m]
POSED = 50  # different poses of the two shapes that MuJoCo is timed at


def coal_shape(kind: int, size: Array) -> Any:
    """coal's shape of a kind; `size` as in Shapes."""
    if kind == of.PLANE:
        return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)
    if kind == of.SPHERE:
        return coal.Sphere(size[0])
    if kind == of.CAPSULE:
        return coal.Capsule(size[0], 2 * size[1])
    if kind == of.CYLINDER:
        return coal.Cylinder(size[0], 2 * size[1])
    if kind == of.ELLIPSOID:
        return coal.Ellipsoid(*size)
    if kind == of.BOX:
        return coal.Box(*(2 * size))
    points = coal.StdVec_Vec3s()
    for p in hull_points():
        points.append(p)
    return coal.Convex.convexHull(points, False, "")


def coal_pairs(s: Scene, n: int) -> Iterator[list[Any]]:
    """The first n pairs for coal: shape, place, shape, place."""
    kept = coal_shape(of.CONVEX, s.shapes.size[0]) if of.CONVEX in s.shapes.kind[:2] else None
    for i in range(n):
        sides = []
        for k in (2 * i, 2 * i + 1):
            kind = int(s.shapes.kind[k])
            shape = kept if kind == of.CONVEX else coal_shape(kind, s.shapes.size[k])
            sides += [shape, coal.Transform3s(s.rotation[k], s.position[k])]
        yield sides


def by_coal(s: Scene) -> tuple[Array, Array]:
    """coal's signed distances (n,) and normals (n, 3)."""
    n = len(s.shapes.kind) // 2
    gap, normal = np.empty(n), np.empty((n, 3))
    request = coal.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = 1e-10
    request.gjk_max_iterations = request.epa_max_iterations = 500
    result = coal.DistanceResult()
    for i, sides in enumerate(coal_pairs(s, n)):
        result.clear()
        gap[i] = coal.distance(*sides, request, result)
        normal[i] = result.normal
    return gap, normal


# ------------------------------------------------------------------ tables


def errors(s: Scene, general: bool) -> dict[str, str]:
    """Each kind over all pairs, and how much is not a number."""
    found = contacts_of(*s, general=general)
    k = deepest(found)
    gap, normal = pick(found.gap, k), pick(found.normal, k)
    used = np.arange(found.gap.shape[1]) < found.number[:, None]
    bad = int((~np.isfinite(found.gap[used])).sum() + (~np.isfinite(found.normal[used])).sum())
    bad += int((~np.isfinite(found.point[used])).sum() + (found.number == 0).sum())
    theirs, direction = by_coal(s)
    scale = smaller_reach(s)
    length = np.linalg.norm(direction, axis=1)
    usable = (np.abs(length - 1.0) < 1e-9) & (s.shapes.kind[0] != of.PLANE)
    better = np.where(usable, gap_along(s, np.where(usable[:, None], direction, normal)) - gap, 0.0)
    kinds = {
        "proof": np.abs(gap_along(s, normal) - gap),
        "place": misplaced(s, gap, pick(found.point, k), normal),
        "missed": better,
        "coal": np.abs(gap - np.clip(theirs, -FAR, FAR)),  # where it fails it says 1e308
    }
    shares = {name: values / scale for name, values in kinds.items()}
    return {n: f"{x.max():8.2g} {(x > 1e-6).sum():5d} {(x > 1e-3).sum():4d}" for n, x in shares.items()} | {
        "bad": str(bad)
    }


def nanoseconds(s: Scene, margin: float, general: bool) -> float:
    """Per pair, least of some rounds over the first 500, which fit the cache."""
    n = min(1000, len(s.shapes.kind))
    few = {name: getattr(s.shapes, name)[:n] for name in ("kind", "size", "reach", "mesh")}
    for array in few.values():
        array.setflags(write=False)
    _, call = prepare(s.shapes._replace(**few), s.position[:n], s.rotation[:n], margin, general)
    best = np.inf
    for _ in range(200):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return 2e9 * best / n


def coal_nanoseconds(s: Scene) -> float:
    """coal.distance with its own tolerances over the first 500 pairs, less that of two spheres."""
    size = np.ones(3)
    spheres = [coal_shape(of.SPHERE, size), coal.Transform3s(), coal_shape(of.SPHERE, size), coal.Transform3s()]
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    means = []
    for pairs in (list(coal_pairs(s, min(500, len(s.shapes.kind) // 2))), [spheres] * 500):
        best = np.inf
        for _ in range(20):
            start = time.perf_counter()
            for sides in pairs:
                result.clear()  # else what was deep once is deep enough for all
                coal.distance(*sides, request, result)
            best = min(best, time.perf_counter() - start)
        means.append(best / len(pairs))
    return 1e9 * (means[0] - means[1])


MUJOCO = {of.PLANE: "plane", of.SPHERE: "sphere", of.CAPSULE: "capsule", of.ELLIPSOID: "ellipsoid"} | {
    of.CYLINDER: "cylinder",
    of.BOX: "box",
    of.CONVEX: "mesh",
}


def mujoco_nanoseconds(s: Scene, margin: float) -> float:
    """mj_collision of a model of the two shapes, less that of two spheres out of reach; mean over some poses."""
    far = mujoco_times(["sphere", "sphere"], np.ones((2, 3)), np.array([[0, 0, 0], [1e3, 0, 0]]), s.rotation[:2], 0.0)
    names = [MUJOCO[int(kind)] for kind in s.shapes.kind[:2]]
    times = []
    for i in range(min(POSED, len(s.shapes.kind) // 2)):
        pair = slice(2 * i, 2 * i + 2)
        times.append(mujoco_times(names, s.shapes.size[pair], s.position[pair], s.rotation[pair], margin))
    return float(np.mean(times) - far)


def mujoco_times(names: list[str], size: Array, position: Array, rotation: Array, margin: float) -> float:
    """Nanoseconds of mj_collision, of two shapes on bodies with free joints."""
    mesh = " ".join(f"{x:.9g}" for x in hull_points().ravel())
    bodies = ""
    for k, name in enumerate(names):
        x, y, z, w = Rotation.from_matrix(rotation[k]).as_quat()
        place = f'pos="{" ".join(map(str, position[k]))}" quat="{w} {x} {y} {z}"'
        shape = 'mesh="m"' if name == "mesh" else f'size="{" ".join(map(str, np.maximum(size[k], 1e-6)))}"'
        geom = f'<geom type="{name}" {shape} margin="{margin}"/>'
        bodies += f"<body {place}><freejoint/>{geom}</body>" if name != "plane" else geom.replace("/>", f" {place}/>")
    text = f'<mujoco><asset><mesh name="m" vertex="{mesh}"/></asset><worldbody>{bodies}</worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(200):
            mujoco.mj_collision(model, data)
        best = min(best, (time.perf_counter() - start) / 200)
    return 1e9 * best


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", metavar="A-B", help=f"of {' '.join(KINDS)}; default: all with a kernel")
    parser.add_argument("--number", type=int, default=100_000, help="pairs of each two kinds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--margin", type=float, default=0.01, help="of the pairs that are timed [m]")
    parser.add_argument("--general", action="store_true", help="closed forms too by the kernel of convex pairs")
    parser.add_argument("--no-times", action="store_true")
    arguments = parser.parse_args()
    for pair in arguments.pairs or PAIRS:
        one, two = sorted(KINDS[name] for name in pair.split("-"))
        for family in FAMILIES:
            s = scene(one, two, family, arguments.number // len(FAMILIES), arguments.seed)
            line = "  ".join(f"{name} {value}" for name, value in errors(s, arguments.general).items())
            if not arguments.no_times and family in ("random", "touching"):
                line += f"  {nanoseconds(s, arguments.margin, arguments.general):6.0f} ns"
                line += f", coal {coal_nanoseconds(s):6.0f} ns"
                line += f", MuJoCo {mujoco_nanoseconds(s, arguments.margin):6.0f} ns"
            print(f"{pair:18s} {family:9s} {line}", flush=True)


if __name__ == "__main__":
    main()
