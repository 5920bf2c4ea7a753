"""Arches, card houses, towers, dominoes and a capstan: what stands by friction, and at which it no longer does.

    python -m tests.benchmarks.structures

What is critical comes from a linear programme over the contacts' points and normals (planar statics: forces within
their cones that balance every body), or from a closed form. A structure stands when nothing has moved by more than
1e-6 m in half a second; the table says by how little more and less friction the engine tells the two apart.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

import artsim
from tests.contact.test_contact_closed_forms import FLOOR, G, free, mjcf

Array = np.ndarray[Any, Any]
STANDS = 1e-6  # [m]
MARGINS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
SOON = 0.5  # [s]


def run(text: str, seconds: float, dt: float, **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "structure.xml"
        path.write_text(text)
        options.setdefault("record", ("qpos", "qvel", "contacts", "link_position", "solver_residual"))
        return artsim.simulate(str(path), dt=dt, steps=round(seconds / dt), **options)


# ------------------------------------------------------------------------------------------------- planar statics


class Statics(NamedTuple):
    """Bodies in the plane y = 0 with their weights, the contacts between them (-1: the ground), and their hinges."""

    masses: Array  # (n,) [kg]
    centres: Array  # (n, 2) x and z [m]
    contacts: list[tuple[int, int, Array, Array]]  # bodies a and b, point, normal from a to b
    hinges: list[tuple[int, int, Array]]  # bodies and point


def balances(statics: Statics, friction: float) -> bool:
    """Whether forces within cones of that friction hold every body."""
    n, columns, edges = len(statics.masses), [], []
    for a, b, point, normal in statics.contacts:
        tangent = np.array([-normal[1], normal[0]])
        for sign in (1.0, -1.0):  # along the two edges of the cone
            columns.append(loads(statics, n, a, b, point, normal + sign * friction * tangent))
            edges.append((0.0, None))
    for a, b, point in statics.hinges:
        for axis in np.eye(2):
            columns.append(loads(statics, n, a, b, point, axis))
            edges.append((None, None))
    weight = np.zeros((n, 3))
    weight[:, 1] = statics.masses * G
    matrix = np.array(columns).T
    found = linprog(np.zeros(matrix.shape[1]), A_eq=matrix, b_eq=weight.reshape(-1), bounds=edges, method="highs")
    return bool(found.status == 0)


def loads(statics: Statics, n: int, a: int, b: int, point: Array, force: Array) -> Array:
    """Force and moment on all bodies of a force on b at a point, and its opposite on a."""
    load = np.zeros((n, 3))
    for body, sign in ((a, -1.0), (b, 1.0)):
        if body >= 0:
            arm = point - statics.centres[body]
            load[body] += sign * np.array([*force, arm[0] * force[1] - arm[1] * force[0]])
    return load.reshape(-1)


def critical_friction(statics: Statics) -> float:
    low, high = 0.0, 2.0
    while high - low > 1e-8:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if balances(statics, middle) else (middle, high)
    return high


def statics_of(text: str, names: list[str], masses: list[float], centres: Array) -> Statics:
    """The contacts that the engine finds at the start, as statics."""
    found = run(text, 0.001, 0.001)
    links = [found.labels.link.index(name) for name in names]
    of_link = {link: body for body, link in enumerate(links)}
    c = found.contacts
    contacts = [
        (of_link.get(int(a), -1), of_link.get(int(b), -1), np.asarray(p)[[0, 2]], np.asarray(normal)[[0, 2]])
        for a, b, p, normal in zip(c["link_a"], c["link_b"], c["point"], c["normal"], strict=True)
    ]
    return Statics(np.array(masses), centres, contacts, [])


def moved(text: str, dt: float = 1e-3, seconds: float = SOON) -> float:
    """The farthest that any link goes [m]."""
    place = run(text, seconds, dt)["link_position"]
    return float(np.abs(place - place[0]).max())


def told_apart(model: Callable[[float], str], critical: float) -> float:
    """The least margin at which it stands with that much more friction and slips with that much less."""
    least = math.inf
    for margin in MARGINS:
        if moved(model(critical * (1 + margin))) > STANDS or moved(model(critical * (1 - margin))) <= STANDS:
            break
        least = margin
    return least


# ----------------------------------------------------------------------------------------------------- structures


def arch(count: int, inner: float, outer: float) -> tuple[Callable[[float], str], list[str], Array]:
    """A semicircle of so many voussoirs, each a mesh, on the ground."""
    angles = np.linspace(0.0, math.pi, count + 1)
    names, centres, assets, bodies = [], [], [], []
    for k in range(count):
        corners = np.array([(r * math.cos(a), r * math.sin(a)) for a in angles[k : k + 2] for r in (inner, outer)])
        polygon = corners[[0, 1, 3, 2]]
        area, centre = 0.0, np.zeros(2)
        for p, q in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            cross = p[0] * q[1] - p[1] * q[0]
            area += cross / 2
            centre += (p + q) * cross / 6
        centre /= area
        vertices = " ".join(f"{x!r} {y} {z!r}" for x, z in (corners - centre).tolist() for y in (-0.05, 0.05))
        assets.append(f'<mesh name="m{k}" vertex="{vertices}"/>')
        bodies.append(
            f'<body name="v{k}" pos="{float(centre[0])!r} 0 {float(centre[1])!r}"><freejoint/>'
            f'<geom type="mesh" mesh="m{k}" density="1000"/></body>'
        )
        names.append(f"v{k}")
        centres.append((*centre, area * 0.1 * 1000))
    more = f"<asset>{''.join(assets)}</asset>"

    def model(friction: float) -> str:
        return mjcf(FLOOR + "".join(bodies), geom=f'friction="{friction!r} 0 0" condim="3"', more=more)

    return model, names, np.array(centres)


def house(floors: int, lean: float) -> tuple[Callable[[float], str], list[str], Array]:
    """A house of cards whose edges are round: on every floor one pair of leaning cards less, slabs in between."""
    length, edge, thick = 0.1, 0.002, 0.004
    half = length / 2
    width, rise = length * math.sin(lean), length * math.cos(lean)
    names, centres, bodies = [], [], []
    edges = "".join(
        f'<geom type="capsule" size="{edge} .03" pos="0 0 {z}" euler="1.5707963267948966 0 0" mass="0"/>'
        for z in (-half, half)
    )
    for floor in range(floors):
        level = edge + floor * (rise + 2 * edge + thick)
        for k in range(floors - floor):
            ridge = (k - (floors - floor - 1) / 2) * (2 * width + 2 * edge + 0.01)
            for sign in (-1, 1):
                x, z = ridge + sign * (edge + width / 2), level + rise / 2
                name = f"c{len(names)}"
                bodies.append(
                    f'<body name="{name}" pos="{x!r} 0 {z!r}" euler="0 {-sign * lean!r} 0"><freejoint/>'
                    f'<inertial pos="0 0 0" mass="0.01" diaginertia="9.8e-6 8.4e-6 1.5e-6"/>{edges}</body>'
                )
                names.append(name)
                centres.append((x, z, 0.01))
        if floor < floors - 1:
            wide = (floors - floor - 1) / 2 * (2 * width + 2 * edge + 0.01) + 0.01
            z = level + rise + edge + thick / 2
            name = f"c{len(names)}"
            bodies.append(
                f'<body name="{name}" pos="0 0 {z!r}"><freejoint/>'
                f'<geom type="box" size="{wide!r} .03 {thick / 2}" mass="0.02"/></body>'
            )
            names.append(name)
            centres.append((0.0, z, 0.02))

    def model(friction: float) -> str:
        return mjcf(FLOOR + "".join(bodies), geom=f'friction="{friction!r} 0 0" condim="3"')

    return model, names, np.array(centres)


def at_its_limit(name: str, built: tuple[Callable[[float], str], list[str], Array]) -> None:
    start = time.perf_counter()
    model, names, centres = built
    critical = critical_friction(statics_of(model(0.8), names, centres[:, 2].tolist(), centres[:, :2]))
    rest = moved(model(1.5 * critical), seconds=2.0)
    margin = told_apart(model, critical)
    figures = f"critical {critical:.5f}, told apart at +-{margin:.0e}, moves {rest:.1e} m in 2 s at 1.5 of it"
    tell(name, figures, start)


def tell(name: str, figures: str, start: float) -> None:
    """A row of the table, with the seconds since its start."""
    print(f"{name:34} {figures}; {time.perf_counter() - start:.1f} s", flush=True)


def tower(count: int, ratio: float, *, heavy_above: bool) -> None:
    """Boxes whose masses grow to so many times the least, over two seconds."""
    start, half = time.perf_counter(), 0.05
    masses = np.geomspace(1.0, ratio, count) if heavy_above else np.geomspace(ratio, 1.0, count)
    boxes = "".join(
        free(f'type="box" size="{half} {half} {half}" mass="{mass!r}"', f"0 0 {half * (2 * k + 1)}", name=f"b{k}")
        for k, mass in enumerate(masses.tolist())
    )
    found = run(mjcf(FLOOR + boxes), 2.0, 1e-3)
    far = np.abs(found["link_position"] - found["link_position"][0]).max()
    name = f"tower of {count}, 1:{ratio:.0e} {'upward' if heavy_above else 'downward'}"
    tell(name, f"moves {far:.1e} m, residual {found['solver_residual'].max():.1e}", start)


def dominoes(dt: float) -> None:
    """Ten in a row; when the last is tilted by 0.1 rad [s]. It goes to a limit with the step."""
    start = time.perf_counter()
    line = "".join(
        free('type="box" size=".005 .02 .025" mass=".02"', f"{0.04 * k} 0 .025", name=f"d{k}") for k in range(10)
    )
    found = run(mjcf(FLOOR + line, geom='friction=".4"'), 1.6, dt, v0={"d0.wy": 4.0, "d0.vx": 0.1})
    tilt = 2 * np.arcsin(np.clip(np.abs(found["qpos"][:, 7 * 9 + 5]), 0, 1))
    depth = found.contacts["depth"].max()
    fallen = found.time[np.argmax(tilt > 0.1)]
    figures = f"the last is past 0.1 rad at {fallen:.4f} s, at most {depth:.1e} m deep"
    tell(f"ten dominoes, dt {dt * 1e3:.2f} ms", figures, start)


def capstan(friction: float) -> None:
    """A chain over a drum with a weight at either end: the ratio at which it slips, beside statics' and Euler's."""
    start = time.perf_counter()
    count, drum, ball = 19, 0.1, 0.004
    angles = np.linspace(0.0, math.pi, count)
    joints = (drum + ball) * np.column_stack([np.cos(angles), np.sin(angles)])
    hang = 0.05
    points = np.vstack([joints[0] - [0, hang], joints, joints[-1] - [0, hang]])

    def model(ratio: float) -> str:
        text, closing = "", ""
        for k in range(count + 1):
            at = (points[k] - (points[k - 1] if k else 0.0)).tolist()
            reach = points[k + 1] - points[k]
            root = '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>' if k == 0 else ""
            mass = ratio if k == 0 else 1.0 if k == count else 1e-4
            place = (reach * (0.0 if k == 0 else 1.0 if k == count else 0.5)).tolist()
            end = reach.tolist()
            knot = f'<geom type="sphere" size="{ball}" pos="{end[0]!r} 0 {end[1]!r}" mass="0"/>' if k < count else ""
            text += (
                f'<body name="k{k}" pos="{at[0]!r} 0 {at[1]!r}">{root}<joint type="hinge" axis="0 1 0"/>'
                f'<inertial pos="{place[0]!r} 0 {place[1]!r}" mass="{mass!r}" diaginertia="1e-7 1e-7 1e-7"/>{knot}'
            )
            closing += "</body>"
        world = f'<geom type="cylinder" size="{drum} .05" euler="1.5707963267948966 0 0"/>{text}{closing}'
        return mjcf(world, geom=f'friction="{friction!r} 0 0" condim="3"')

    def stands(ratio: float) -> bool:
        masses = np.array([ratio, *([1e-4] * (count - 1)), 1.0])
        middles = 0.5 * (points[:-1] + points[1:])
        middles[0], middles[-1] = points[0], points[-1]
        contacts = [
            (-1, k, drum / (drum + ball) * joint, joint / np.linalg.norm(joint)) for k, joint in enumerate(joints)
        ]
        hinges = [(k, k + 1, joints[k]) for k in range(count)]
        return balances(Statics(masses, middles, contacts, hinges), friction)

    def bisect(holds: Callable[[float], bool], low: float, high: float, close: float) -> float:
        while high / low > 1 + close:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if holds(middle) else (low, middle)
        return math.sqrt(low * high)

    euler = math.exp(friction * math.pi)
    truth = bisect(stands, 1.0, 3 * euler, 1e-9)
    found = bisect(lambda ratio: moved(model(ratio), seconds=0.1) <= STANDS, 0.5 * truth, 2 * truth, 1e-3)
    figures = f"slips at {found:.4f}, statics {truth:.4f} ({found / truth - 1:+.1e}), Euler's rope {euler:.4f}"
    tell(f"capstan, friction {friction}", figures, start)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    at_its_limit("arch of 7 voussoirs", arch(7, 0.4, 0.5))
    at_its_limit("arch of 15 voussoirs", arch(15, 0.4, 0.5))
    at_its_limit("two cards, 25 degrees", house(1, math.radians(25)))
    at_its_limit("card house of two floors", house(2, math.radians(25)))
    for ratio in (1e1, 1e2, 1e3, 1e4):
        tower(5, ratio, heavy_above=True)
    tower(10, 1e4, heavy_above=True)
    tower(10, 1e4, heavy_above=False)
    for dt in (1 / 240, 1 / 480, 1e-3, 5e-4, 2.5e-4, 1.25e-4):
        dominoes(dt)
    for friction in (0.2, 0.5):
        capstan(friction)


if __name__ == "__main__":
    main()
