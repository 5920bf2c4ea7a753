"""Contacts that once went wrong, each with two variants: what holds, what goes through, what passes impacts on.

    python -m tests.benchmarks.cases [--only pile12]

Models are made here. Depths come from the geometry: support functions, separating axes in a plane, or MuJoCo's distance
of two geoms at the recorded poses. One row per run: figure, truth, and what the run itself says gave way.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mujoco
import numpy as np

from artsim.loaders.load import load_text
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from tests.contact.test_contact_closed_forms import FLOOR, mjcf
from tests.contact.test_crossings import HALF, depth, rocked
from tests.contact.test_impacts import RADIUS, in_sequence, play, row_of_balls
from tests.contact.test_rolling import rolled
from tests.contact.test_stuck import RADIUS as TIP
from tests.contact.test_stuck import finger
from tests.simulation import Array, Run, constant_controls, simulate


class Figure(NamedTuple):
    """What a run gives beside what is true, and in how many of its steps contacts gave way."""

    value: str
    truth: str
    run: Run


def smooth(times: Array, start: float, stop: float, height: float) -> Array:
    """From 0 to a height between two times, without a jump of the acceleration."""
    x = np.clip((times - start) / (stop - start), 0.0, 1.0)
    rise: Array = height * x**3 * (10 - 15 * x + 6 * x**2)
    return rise


def following(joint: str, targets: Array) -> Callable[[Plan], Controls]:
    """Controls in which one joint has a target for each step."""

    def controls(plan: Plan) -> Controls:
        constant = constant_controls(plan)
        target = np.repeat(constant.target, len(targets), axis=0)
        target[:, plan.robot.dofs.index(joint)] = targets
        rest = [np.repeat(values, len(targets), axis=0) for values in (constant.torque, constant.target_velocity)]
        return Controls(np.arange(len(targets)), rest[0], target, rest[1])

    return controls


def overlap(text: str, run: Run) -> float:
    """The deepest overlap of any two geoms at the recorded poses, by MuJoCo's distances [m]."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    places, turns = run["link_position"], run["link_quaternion"]
    names = run.robot.links
    of_body = [
        names.index(model.body(b).name) if b > 0 and model.body(b).name in names else -1 for b in range(model.nbody)
    ]
    deepest, local = 0.0, np.zeros(9)
    pairs = [
        (a, b)
        for a in range(model.ngeom)
        for b in range(a + 1, model.ngeom)
        if model.geom_bodyid[a] != model.geom_bodyid[b]
    ]
    for place, turn in zip(places, turns, strict=True):
        for g in range(model.ngeom):
            body = of_body[model.geom_bodyid[g]]
            mujoco.mju_quat2Mat(local, model.geom_quat[g])
            frame, origin = local.reshape(3, 3), model.geom_pos[g]
            if body >= 0:
                outer = np.zeros(9)
                mujoco.mju_quat2Mat(outer, turn[body])
                R = outer.reshape(3, 3)
                frame, origin = R @ frame, place[body] + R @ origin
            data.geom_xpos[g], data.geom_xmat[g] = origin, frame.reshape(-1)
        centres, reach = data.geom_xpos, model.geom_rbound
        for a, b in pairs:
            far = np.linalg.norm(centres[a] - centres[b]) - reach[a] - reach[b]
            if min(reach[a], reach[b]) > 0 and far > 0:
                continue
            deepest = max(deepest, -mujoco.mj_geomDistance(model, data, a, b, 0.01, None))
    return deepest


# ---------------------------------------------------------------------------------------------------------- pinch


def pinched(pad: str, mass: float, stiffness: float, dt: float) -> Figure:
    """A box in pads that are pressed by drives, lifted by a tenth of a metre: how far it slips."""
    inertia = '<inertial pos="0 0 0" mass=".1" diaginertia="1e-4 1e-4 1e-4"/>'
    pads = "".join(
        f'<body pos="{x} 0 0"><joint name="{name}" type="slide" axis="1 0 0"/>{inertia}{pad}</body>'
        for name, x in (("l", -0.05), ("r", 0.05))
    )
    text = mjcf(
        f"""<body pos="0 0 .04"><joint name="lift" type="slide" axis="0 0 1"/>
        <inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>{pads}</body><body name="box" pos="0 0 .04">
        <freejoint name="box"/><geom type="box" size=".04 .04 .04" mass="{mass}" condim="3"/></body>""",
        geom='friction="1 0 0"',
    )
    times = dt * np.arange(round(2 / dt))
    run = simulate(
        load_text(text, name="pinch.xml"),
        controls=following("lift", smooth(times, 0.3, 1.3, 0.1)),
        contacts=True,
        dt=dt,
        steps=len(times),
        stiffness={"l": stiffness, "r": stiffness, "lift": 1e6},
        damping={"l": 0.02 * stiffness, "r": 0.02 * stiffness, "lift": 2e4},
        target={"l": 0.01, "r": -0.01},
        record=("qpos",),
    )
    coords = run.plan.robot.coords
    slip = run["qpos"][:, coords.index("box.z")] - run["qpos"][:, coords.index("lift")]
    return Figure(f"slip {np.abs(slip - slip[0]).max():.1e} m", "0", run)


def pinches() -> Iterator[tuple[str, Figure]]:
    capsule = '<geom type="capsule" size=".01" fromto="0 -.015 0 0 .015 0"/>'
    nine = "".join(
        f'<geom type="sphere" size=".01" pos="0 {y} {z}"/>' for y in (-0.02, 0, 0.02) for z in (-0.02, 0, 0.02)
    )
    yield "flat pads", pinched('<geom type="box" size=".01 .015 .015"/>', 1.0, 2500.0, 0.001)
    yield "capsules, .2 kg, 4 ms", pinched(capsule, 0.2, 600.0, 0.004)
    yield "nine balls, 5 kg, 0.5 ms", pinched(nine, 5.0, 12500.0, 0.0005)


# -------------------------------------------------------------------------------------------------------- fingers


def jammed(lengths: tuple[float, ...], friction: float, stiffness: float, damping: float, dt: float) -> Figure:
    """A finger whose drive presses it onto the ground: how deep it goes, where its first joint rests."""
    run = simulate(
        finger(lengths, friction),
        ground=True,
        ground_friction=friction,
        target={"j0": 1.5},
        stiffness={"j0": stiffness},
        damping={"j0": damping},
        dt=dt,
        steps=round(3 / dt),
        record=("qpos",),
    )
    q = np.vstack([run["qpos"], run.simulation.qpos])
    height = 0.75 * sum(lengths[1:])
    deep = -(height - np.sin(np.cumsum(q, axis=1)) @ np.array(lengths) - TIP).min()
    rest = math.asin((height - TIP) / sum(lengths))
    return Figure(f"{max(deep, 0):.1e} m deep, q0 {q[-1, 0]:.6f}", f"<= 1e-9 m, q0 {rest:.6f}", run)


def fingers() -> Iterator[tuple[str, Figure]]:
    yield "mu 1.2, K 1e7, 240 Hz", jammed((0.1, 0.08, 0.06), 1.2, 1e7, 1e4, 1 / 240)
    yield "mu 2, K 3e6, 120 Hz", jammed((0.12, 0.07, 0.05), 2.0, 3e6, 3e4, 1 / 120)
    yield "four joints, K 5e7, 1 kHz", jammed((0.1, 0.08, 0.06, 0.04), 0.8, 5e7, 5e5, 0.001)


# ------------------------------------------------------------------------------------------------- cylinders, pegs


def tips() -> Iterator[tuple[str, Figure]]:
    for name, ground, half, dt, speed in (
        ("block of 40 mm", "box", 0.02, 0.004, -6.0),
        ("block of 24 mm, 1 ms", "turned box", 0.012, 0.001, -10.0),
        ("on a disc of 36 mm, 2 ms", "disc", 0.018, 0.002, -4.0),
    ):
        assert half < HALF
        run = rocked("cylinder", ground, half, dt, speed)
        yield name, Figure(f"{max(depth(run['qpos'], half), 0):.1e} m deep", "<= 1e-5 m", run)


def inserted(radius: float, room: float, dt: float, aside: float, friction: float) -> Figure:
    """A peg that a slide pushes into a square hole from aside: how deep it is in the walls."""
    wall, far = 0.02, radius + room + 0.02
    walls = "".join(
        f'<geom type="box" size="{wall if x else 0.05} {wall if y else 0.05} .03" pos="{x * far} {y * far} -.03"/>'
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    text = mjcf(
        f"""{walls}<body name="peg" pos="{aside} 0 .031"><joint name="x" type="slide" axis="1 0 0" stiffness="500"
        damping="5"/><joint name="y" type="slide" axis="0 1 0" stiffness="500" damping="5"/>
        <joint name="z" type="slide" axis="0 0 1"/><joint name="a" axis="1 0 0" stiffness="5" damping=".05"/>
        <joint name="b" axis="0 1 0" stiffness="5" damping=".05"/>
        <geom type="cylinder" size="{radius} .03" mass=".2"/></body>""",
        geom=f'friction="{friction} 0 0"',
    )
    times = dt * np.arange(round(1.5 / dt))
    run = simulate(
        load_text(text, name="peg.xml"),
        controls=following("z", -np.minimum(times / 30, 0.045)),
        contacts=True,
        dt=dt,
        steps=len(times),
        stiffness={"z": 1e4},
        damping={"z": 100.0},
        record=("qpos", "link_position", "link_quaternion"),
    )
    lowest = run["qpos"][:, run.plan.robot.coords.index("z")].min()
    return Figure(f"{overlap(text, run):.1e} m deep at z {lowest:.3f}", "<= 1e-5 m", run)


def pegs() -> Iterator[tuple[str, Figure]]:
    yield "as given, 1 ms", inserted(0.01, 1e-4, 0.001, 0.003, 0.3)
    yield "as given, 4 ms", inserted(0.01, 1e-4, 0.004, 0.003, 0.3)
    yield "15 mm, 2 ms, rough", inserted(0.015, 3e-4, 0.002, 0.004, 0.6)
    yield "6 mm, 0.5 ms", inserted(0.006, 5e-5, 0.0005, 0.001, 0.1)


# ---------------------------------------------------------------------------------------------------------- discs


def discs() -> Iterator[tuple[str, Figure]]:
    for name, radius, tilt, dt in (("40 mm, 1 ms", 0.04, 0.5, 0.001), ("100 mm, tilt .3, 2 ms", 0.1, 0.3, 0.002)):
        rate = math.sqrt(4 * 9.81 / (radius * math.sin(tilt)))
        spin = np.array([-rate * math.sin(tilt), 0, 0])
        gap, energy, run = rolled("cylinder", (radius, 0.0125 * radius), np.array([0, tilt, 0]), spin, dt, 1.0)
        yield name, rolling(gap, energy, run)
    egg = rolled("ellipsoid", (0.05, 0.03, 0.04), np.array([0.4, 0.2, 0]), np.array([3.0, 20.0, 4.0]), 0.001, 1.0)
    yield "ellipsoid, 1 ms", rolling(*egg)


def rolling(gap: Array, energy: Array, run: Run) -> Figure:
    lost = (energy - energy[0])[np.argmax(np.abs(energy - energy[0]))] / energy[0]
    return Figure(f"{max(-gap.min(), 0):.1e} m deep, energy {lost:+.1e}", "0", run)


# -------------------------------------------------------------------------------------------------------- cradles


def cradles() -> Iterator[tuple[str, Figure]]:
    for name, masses, gap, dt, e, speeds in (
        ("five, gap 0.1 mm, 1 ms", [0.1] * 5, 1e-4, 0.001, 1.0, {"x0": 1.0}),
        ("seven, two come, 2 ms", [0.2] * 7, 3e-4, 0.002, 1.0, {"x0": 1.5, "x1": 1.5}),
        ("six lighter, e .9, 4 ms", [0.1 * 0.7**k for k in range(6)], 2e-4, 0.004, 0.9, {"x0": 1.0}),
    ):
        run = play(row_of_balls(masses, gap), 0.5, dt, e, speeds)
        first = np.array([speeds.get(f"x{k}", 0.0) for k in range(len(masses))])
        places = np.array([0.0, *(2 * RADIUS + 0.1 + np.arange(len(masses) - 1) * (2 * RADIUS + gap))])
        truth = in_sequence(masses, places, first, e, 0.5)
        speed = run.simulation.qvel
        yield name, Figure(f"off by {np.abs(speed - truth).max():.1e} m/s: {said(speed)}", said(truth), run)


def said(speeds: Array) -> str:
    return " ".join(f"{v + 0.0:.2f}" for v in np.where(np.abs(speeds) < 1e-9, 0, speeds))


# ---------------------------------------------------------------------------------------------------------- piles

# of pile12.xml: x, y and the orientation of its boxes, which are let go 0.12 m apart
PILE = (
    (0.0024, 0.0901, 0.1966, -0.7751, 0.5385, 0.2655),
    (0.0655, -0.0182, 0.5060, 0.4082, 0.0394, 0.7588),
    (-0.0341, 0.0577, -0.5854, 0.7272, 0.0482, -0.3551),
    (-0.0593, -0.0475, 0.0049, -0.1658, 0.7784, 0.6055),
    (0.0923, 0.0450, -0.3182, -0.7687, 0.3890, 0.3957),
    (-0.0768, 0.0247, -0.1660, 0.8981, 0.2843, 0.2915),
    (0.0057, -0.0081, 0.1180, 0.0768, -0.8650, -0.4815),
    (-0.0480, 0.0680, -0.1869, 0.1816, 0.0677, -0.9631),
    (0.0639, 0.0367, 0.2570, -0.6553, 0.5859, -0.4016),
    (-0.0837, 0.0710, 0.5790, -0.0127, -0.7906, -0.1987),
    (-0.0986, 0.0291, -0.6277, -0.7077, 0.1275, -0.2983),
    (0.0279, 0.0610, -0.7886, 0.1217, 0.5857, -0.1423),
)


def drawn(count: int, seed: int) -> list[tuple[float, ...]]:
    """Such places, drawn at random."""
    draw = np.random.default_rng(seed)
    return [(*draw.uniform(-0.08, 0.08, 2).tolist(), *draw.normal(size=4).tolist()) for _ in range(count)]


def piled(places: list[tuple[float, ...]], geoms: tuple[str, ...], dt: float, more: str = "") -> Figure:
    """Bodies let go one above the other: how deep any of them is in what it falls on, over three seconds."""
    bodies = "".join(
        f'<body name="p{k}" pos="{x} {y} {0.1 + 0.12 * k}" quat="{w} {a} {b} {c}"><freejoint name="p{k}"/>'
        f'<geom {geoms[k % len(geoms)]} mass="1" condim="3"/></body>'
        for k, (x, y, w, a, b, c) in enumerate(places)
    )
    text = mjcf(FLOOR + bodies, geom='friction=".5 0 0"', more=more)
    run = simulate(
        load_text(text, name="pile.xml"),
        contacts=True,
        dt=dt,
        steps=round(3 / dt),
        record=("link_position", "link_quaternion", "energy"),
    )
    deep = run.simulation.contact_extremes[1]
    energy = run["energy"].sum(axis=1)
    gained = np.diff(energy).max() / energy[0]
    value = f"{overlap(text, run):.1e} m deep ({deep:.1e} recorded), energy up {max(gained, 0):.0e} a step"
    return Figure(value, "0", run)


def piles() -> Iterator[tuple[str, Figure]]:
    prism = " ".join(
        f"{0.04 * math.cos(k * math.pi / 3):.6f} {0.04 * math.sin(k * math.pi / 3):.6f} {z}"
        for k in range(6)
        for z in (-0.03, 0.03)
    )
    mesh = f'<asset><mesh name="prism" vertex="{prism}"/></asset>'
    yield "twelve boxes, 4 ms", piled(list(PILE), ('type="box" size=".05 .04 .03"',), 0.004)
    yield "twelve boxes, 2 ms", piled(list(PILE), ('type="box" size=".05 .04 .03"',), 0.002)
    yield "sixteen rods, 2 ms", piled(drawn(16, 1), ('type="box" size=".08 .02 .015"',), 0.002)
    mixed = ('type="box" size=".04 .04 .04"', 'type="capsule" size=".02 .04"')
    yield "cubes and capsules, 4 ms", piled(drawn(14, 2), mixed, 0.004)
    yield "prisms (meshes), 4 ms", piled(drawn(12, 3), ('type="mesh" mesh="prism"',), 0.004, mesh)


CASES: dict[str, Callable[[], Iterator[tuple[str, Figure]]]] = {
    "pinch": pinches,
    "finger3_k1e7": fingers,
    "cylinder_tips": tips,
    "peg": pegs,
    "disk_sinks": discs,
    "cradle": cradles,
    "pile12": piles,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES, nargs="+", default=list(CASES))
    given: Any = parser.parse_args()
    for case in given.only:
        started = time.perf_counter()
        for name, figure in CASES[case]():
            seconds, started = time.perf_counter() - started, time.perf_counter()
            told = figure.run.simulation
            print(f"{case:14} {name:26} {figure.value} | {figure.truth} | ", end="")
            print(f"gave way in {told.eased_steps} steps, unsolved {told.unsolved_steps}; {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
