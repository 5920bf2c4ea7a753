"""Contact where it is hard: the finger on a box, thousands of contacts, stiff jaws, deep overlap, bad meshes, throws.

`python -m pytest tests/contact/test_contact_hard.py -s` prints the figures.
"""

from __future__ import annotations

import math
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.loaders.load import SceneEntry, load_articulation, load_scene
from artsim.sim.articulation.description import Pose
from artsim.sim.foundation.errors import StoppedError
from artsim.sim.runs.simulate import Simulation
from tests.contact.robot_contacts import check_forces, growth
from tests.contact.test_contact_closed_forms import DT, FLOOR, RECORD, G, free, history, mjcf, play
from tests.contact.test_finger import DRIVES, HEIGHT, LENGTH, RADIUS, REST, SECONDS, TARGET, height, tip_jacobian
from tests.simulation import FORCES, Array, Run, constant_controls, relative, simulate

# --- the finger ------------------------------------------------------------------------------------------------------

LINK = '<inertial pos=".05 0 0" mass=".1" diaginertia="1.66666666666667e-6 8.41666666666667e-5 8.41666666666667e-5"/>'
SPHERE_TIP = f'<geom pos="{LENGTH} 0 0" size="{RADIUS}"/>'
BOX_TIP = f'<geom type="box" pos="{LENGTH} 0 0" size="{RADIUS} {RADIUS} {RADIUS}"/>'


def finger(tip: str, friction: float) -> str:
    """The guide's finger above a box whose top is at z = 0."""
    return mjcf(
        f"""<geom type="box" size=".2 .1 .05" pos=".2 0 -.05"/>
        <body pos="0 0 {HEIGHT}"><joint name="proximal" axis="0 1 0"/>{LINK}<body pos="{LENGTH} 0 0">
        <joint name="distal" axis="0 1 0" range="0 3" limited="true"/>{LINK}{tip}</body></body>""",
        geom=f'friction="{friction}"',
    )


def near(tip: str) -> float:
    """The angle at which the tip is 0.1 mm above the box, by bisection."""
    low, high = 0.0, REST
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = lowest(np.array([[middle, 0.0]]), tip)[0] > 1e-4
        low, high = (middle, high) if above else (low, middle)
    return low


def pressed(drive: str, start: str, dt: float, tip: str, friction: float) -> Run:
    stiffness, damping, limit = DRIVES[drive]
    given: dict[str, Any] = {
        "q0": {"proximal": near(tip) if start == "near" else 0.0},
        "target": {"proximal": TARGET},
        "stiffness": {"proximal": stiffness},
        "damping": {"proximal": damping},
        "record": ("qpos", "qvel", "qacc", "mass_matrix", "bias", *FORCES, "tau_contact"),
    }
    if limit < math.inf:
        given["drive_limit"] = {"proximal": limit}
    return play(finger(tip, friction), SECONDS, dt, **given)


def lowest(q: Array, tip: str) -> Array:
    """Height of the tip's lowest point, by the geometry alone [m]."""
    if tip == SPHERE_TIP:
        return height(q)
    both = q[:, 0] + q[:, 1]
    centre = height(q) + RADIUS
    corner: Array = centre - RADIUS * (np.abs(np.sin(both)) + np.abs(np.cos(both)))
    return corner


@pytest.mark.parametrize("friction", [0.5, 0.0])
@pytest.mark.parametrize("tip", [SPHERE_TIP, BOX_TIP], ids=["sphere", "box"])
@pytest.mark.parametrize("dt", [1 / 240, 1e-3], ids=["240 Hz", "1 kHz"])
@pytest.mark.parametrize("start", ["near", "high"])
@pytest.mark.parametrize("drive", DRIVES)
def test_finger_on_a_box(drive: str, start: str, dt: float, tip: str, friction: float) -> None:
    """|q2| within 1e-6 rad, the tip no deeper than 1e-3 mm at any step, at rest without chatter, forces in balance."""
    run = pressed(drive, start, dt, tip, friction)
    _, q, _ = history(run)
    last = q[-round(1 / dt) :]
    broken, depth = max(0.0, -q[:, 1].min()), max(0.0, -lowest(q, tip).min())
    chatter = max(np.ptp(last[:, 1]), np.ptp(last[:, 0]))
    print(
        f"\n{drive:13} {start} {dt:.4f} {friction} limit {broken:.0e} depth {1e3 * depth:.0e} mm chatter {chatter:.0e}",
        end="",
    )
    assert broken <= 1e-6
    assert depth <= 1e-6
    assert chatter <= 1e-9
    assert last[:, 1] == pytest.approx(0, abs=1e-6)
    assert lowest(last, tip) == pytest.approx(0, abs=1e-6)
    if tip == SPHERE_TIP:
        assert last[:, 0] == pytest.approx(REST, abs=1e-6)
        within_its_cone(run, friction)
    adds_up(run)


def adds_up(run: Run) -> None:
    left = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"]) + run["bias"]
    right = sum(run[name] for name in (*FORCES, "tau_contact"))
    assert relative(left - right, run["tau_contact"]) <= 1e-9


def within_its_cone(run: Run, friction: float) -> None:
    force = np.linalg.solve(tip_jacobian(run["qpos"][-1]).T, run["tau_contact"][-1])
    assert force[1] > 0
    assert abs(force[0]) <= (friction * (1 + 1e-6) + 1e-12) * force[1]


# --- many ------------------------------------------------------------------------------------------------------------


def test_two_thousand_contacts() -> None:
    """A floor of 15 by 15 boxes with a box on each: 1800 contacts, and what else the second layer has."""
    n, half = 15, 0.05
    boxes = "".join(
        free(
            f'type="box" size="{half} {half} {half}" mass="1"',
            f"{0.12 * i} {0.12 * j} {half * (2 * k + 1)}",
            name=f"b{i}.{j}.{k}",
        )
        for i in range(n)
        for j in range(n)
        for k in range(2)
    )
    steps = 20
    began = time.perf_counter()
    run = play(mjcf(FLOOR + boxes), steps * DT, record=("qpos", "tau_contact"))
    took = time.perf_counter() - began
    q = np.vstack([run["qpos"], run.simulation.qpos])
    print(f"\n{run.simulation.effort[1]} contacts, {steps} steps and all before them in {took:.1f} s")
    assert run.simulation.effort[1] == 4 * 2 * n * n
    assert run.simulation.room >= 4 * 2 * n * n
    assert np.abs(q - q[0]).max() <= 1e-6
    on_each = run["tau_contact"][2:, 2::6]
    assert on_each == pytest.approx(np.full(on_each.shape, G), rel=1e-5)


@pytest.mark.parametrize("shape", ["cylinder", "box", "capsule"])
def test_what_falls_on_a_heightfield_is_pushed(shape: str, tmp_path: Path) -> None:
    """Contacts of many triangles with one plane say the same many times: none pulls, and none makes energy."""
    field = f'<asset><hfield name="h" nrow="21" ncol="21" size="1 1 .05 .1" elevation="{"0 " * 441}"/></asset>'
    size = {"cylinder": ".1 .05", "box": ".1 .08 .06", "capsule": ".06 .08"}[shape]
    geom = f'type="{shape}" size="{size}" density="1000"'
    body = f'<body pos=".01 .02 .3" euler="20 15 10"><freejoint/><geom {geom}/></body>'
    text = mjcf('<geom type="hfield" hfield="h"/>' + body).replace("<worldbody>", f"{field}<worldbody>", 1)
    (tmp_path / "field.xml").write_text(text)
    run = artsim.simulate(
        artsim.load(tmp_path / "field.xml"), steps=1250, dt=2e-3, record=("qvel", "energy", "contacts")
    )
    energy = run["energy"].sum(axis=1)
    force = run.contacts["force"][:, 0]
    deepest = 1e3 * run.contacts["depth"].max()
    print(f"{shape}: energy gained {growth(energy):.1e} of {energy[0]:.1f} J, normal forces from {force.min():.1e} N")
    print(f"at most {deepest:.1e} mm deep")
    check_forces(run.contacts)
    assert deepest <= 1e-3
    assert growth(energy) <= 2e-3 * energy[0]
    assert np.abs(run["qvel"][-1]).max() <= 1e-3


def test_a_wall_of_bricks_stands() -> None:
    """A gable, all in one: each brick lies on two."""
    rows, long, brick = 12, 12, 'type="box" size=".1 .05 .03" mass="1"'
    bricks = "".join(
        free(brick, f"{0.201 * (n + 0.5 * k)} 0 {0.03 * (2 * k + 1)}", name=f"b{k}.{n}")
        for k in range(rows)
        for n in range(long - k)
    )
    run = play(mjcf(FLOOR + bricks), 0.5, record=("qpos", "tau_contact", "solver_iterations"))
    q = np.vstack([run["qpos"], run.simulation.qpos])
    print(f"\n{run.simulation.effort[1]} contacts, {run['solver_iterations'].mean():.1f} iterations a step", end="")
    assert np.abs(q - q[0]).max() <= 1e-6
    on_each = run["tau_contact"][2:, 2::6]
    assert on_each == pytest.approx(np.full(on_each.shape, G), rel=1e-5)


def test_more_contacts_than_there_may_be_stop_the_run() -> None:
    boxes = "".join(free('type="box" size=".1 .1 .1"', f"{0.3 * n} 0 .1", name=f"b{n}") for n in range(30))
    with pytest.raises(StoppedError, match="more than 100 contacts"):
        play(mjcf(FLOOR + boxes), 0.1, max_contacts=100)


# --- squeezed --------------------------------------------------------------------------------------------------------


def squeezed(skew: float, dt: float, **config: Any) -> Run:
    """A cube between two jaws that both want to be where the other one is, K = 1e6, for a second."""
    jaw = """<body pos="{x} 0 .5"><joint name="{name}" type="slide" axis="1 0 0"/>
      <geom type="box" size=".02 .1 .1" mass=".5"/></body>"""
    world = (
        jaw.format(x=-0.1, name="left")
        + jaw.format(x=0.1, name="right")
        + free('type="box" size=".05 .05 .05" mass=".5"', "0 0 .5", turned=f"0 0 {skew}")
    )
    return play(
        mjcf(world, geom='friction=".8"'),
        1.0,
        dt,
        target={"left": 0.1, "right": -0.1},
        stiffness={"*": 1e6},
        damping={"*": 1e4},
        **config,
    )


@pytest.mark.parametrize("dt", [1 / 240, 1e-3])
@pytest.mark.parametrize("skew", [0.0, 0.03])
def test_a_cube_between_two_stiff_jaws(skew: float, dt: float) -> None:
    """The cube stays and the jaws do not enter it."""
    run = squeezed(skew, dt)
    _, q, v = history(run)
    depth = 0.1 - (0.2 + q[:, 1] - q[:, 0] - 0.04)
    if skew == 0:
        assert depth.max() <= 1e-6
    assert np.isfinite(q).all()
    assert np.abs(v[-50:]).max() <= 1e-6
    assert depth[-1] == pytest.approx(0, abs=1e-6)
    assert q[-1, 4] == pytest.approx(0.5, abs=2e-3 if skew else 2e-4)  # less what it falls until they are there
    assert run["energy"].sum(axis=1).max() - run["energy"].sum(axis=1)[0] < 1e6 * 0.1**2


# --- inside ----------------------------------------------------------------------------------------------------------

CORNERS = " ".join(f"{x} {y} {z}" for x in (-0.2, 0.2) for y in (-0.2, 0.2) for z in (-0.2, 0.2))
MESH = f'<asset><mesh name="lump" vertex="{CORNERS}"/></asset>'
DEEP = {
    "half in the ground": mjcf(FLOOR + free('type="box" size=".1 .1 .1" mass="1"', "0 0 0")),
    "tilted in the ground": mjcf(FLOOR + free('type="box" size=".1 .1 .1" mass="1"', "0 0 0", turned=".5 .4 .3")),
    "two boxes concentric": mjcf(
        FLOOR
        + free('type="box" size=".1 .1 .1" mass="1"', "0 0 .1", name="a")
        + free('type="box" size=".1 .1 .1" mass="1"', "0 0 .1", name="b")
    ),
    "two balls concentric": mjcf(
        FLOOR + free('size=".1" mass="1"', "0 0 .1", name="a") + free('size=".1" mass="1"', "0 0 .1", name="b")
    ),
    "a ball in a mesh": mjcf(
        FLOOR + '<geom type="mesh" mesh="lump" pos="0 0 .2"/>' + free('size=".1" mass="1"', "0.01 0 .3"), more=MESH
    ),
    "a capsule through a box": mjcf(
        FLOOR
        + '<geom type="box" size=".2 .2 .2" pos="0 0 .2"/>'
        + free('type="capsule" size=".05 .4" mass="1"', "0 0 .3", turned="0 1.3 0")
    ),
}


def deepest(run: Run) -> Array:
    """The deepest contact of each step [m], 0 without one; the run is simulated again."""
    simulation = Simulation(run.plan, constant_controls(run.plan))
    depth = np.zeros(run.plan.config.steps)
    for block in simulation.blocks():
        np.maximum.at(depth, block.tables["contact_step"].astype(int), block.tables["contact_depth"])
    return depth


JOINTED = {  # links that overlap a ball of the world where they are hinged, .1 m deep
    "a link": """<body><joint axis="0 1 0" damping=".01"/><geom type="sphere" size=".08" pos=".01 0 0" mass="1"/>
      <geom type="capsule" size=".03" fromto="0 0 0 0 0 -.4" mass="2" contype="0" conaffinity="0"/></body>""",
    "a hip": """<body><joint axis="1 0 0" range="-30 30" damping=".1"/><joint axis="0 1 0" range="-30 30" damping=".1"/>
      <joint axis="0 0 1" range="-10 10" damping=".1"/><geom type="sphere" size=".08" pos=".01 .02 -.02" mass="1"/>
      <geom type="capsule" size=".05" fromto=".02 0 -.05 .02 0 -.4" mass="5"/></body>""",
    "at a limit": """<body pos="0 0 -.1"><joint axis="0 1 0" range="-1 1"/>
      <geom type="sphere" size=".08" pos=".05 0 0" mass="1"/></body>""",
    "two links": """<body><joint axis="0 1 0" range="-40 40" damping=".1"/>
      <geom type="sphere" size=".08" pos=".01 0 0" mass="1"/>
      <body pos="0 0 -.3"><joint axis="0 1 0" range="-100 1" damping=".1"/>
      <geom type="capsule" size=".05" fromto="0 0 .25 0 0 -.3" mass="2"/></body></body>""",
}


def jointed(case: str, condim: int) -> Run:
    """One of JOINTED for six seconds."""
    ball = '<geom type="sphere" size=".1" pos="0 0 .012"/>'
    text = mjcf(ball + JOINTED[case]).replace(
        "<worldbody>", f'<default><geom condim="{condim}"/></default><worldbody>', 1
    )
    text = text.replace("radian", "degree")
    return play(text, 6.0, record=("qvel", "energy", "solver_residual"))


@pytest.mark.parametrize("condim", [1, 3])
@pytest.mark.parametrize("case", JOINTED)
def test_what_no_joint_can_part_is_left_inside(case: str, condim: int) -> None:
    """Parting it would take hundreds of rad/s, or go against a limit: it goes no deeper instead, and comes to rest."""
    run = jointed(case, condim)
    kinetic = run["energy"][:, 0]
    fastest = np.abs(run["qvel"]).max()
    print(f"\n{case}: fastest {fastest:.2f} rad/s, most kinetic {kinetic.max():.3f} J, at last {kinetic[-1]:.1e} J")
    assert fastest <= 20.0
    assert kinetic[-1] <= 1e-6
    assert run.simulation.left_inside_steps > 0 or case == "at a limit"  # where friction may hold it
    assert run["solver_residual"].max() <= 1e-9


@pytest.mark.parametrize("dt", [1 / 240, 1e-3])
@pytest.mark.parametrize("case", DEEP)
def test_deep_overlap_is_left_without_a_jump(case: str, dt: float) -> None:
    """It is out within some tenths of a second, no faster than ten times its depth per second asks for."""
    run = play(DEEP[case], 1.5, dt, record=(*RECORD, "contacts"))
    _, q, v = history(run)
    depth = deepest(run)
    kinetic = run["energy"][:, 0]
    print(
        f"\n{case}: {depth[0]:.3f} m deep, fastest {np.abs(v).max():.2f}, most kinetic {kinetic.max():.2f} J, "
        f"residual {run.simulation.worst_residual:.0e}",
        end="",
    )
    assert np.isfinite(q).all()
    assert depth[0] > 0.05
    assert depth[round(0.8 / dt) :].max() <= 0.01 * depth[0]
    assert kinetic.max() <= 5.0
    assert kinetic[-1] <= 0.5 * kinetic.max() + 1e-6


# --- meshes ----------------------------------------------------------------------------------------------------------


def cube(side: float) -> tuple[Array, Array]:
    points = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float) * side / 2
    faces = np.array(
        [
            [0, 1, 3],
            [0, 3, 2],
            [4, 6, 7],
            [4, 7, 5],
            [0, 4, 5],
            [0, 5, 1],
            [2, 3, 7],
            [2, 7, 6],
            [0, 2, 6],
            [0, 6, 4],
            [1, 5, 7],
            [1, 7, 3],
        ]
    )
    return points, faces


def stl(points: Array, faces: Array) -> bytes:
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *points[face].ravel(), 0) for face in faces)
    return bytes(80) + struct.pack("<I", len(faces)) + body


def damaged() -> dict[str, bytes]:
    points, faces = cube(0.2)
    needle = np.vstack([points, points[0] + [1e-9, 0, 0], points[7] + [0, 1e-12, 0]])
    return {
        "whole": stl(points, faces),
        "duplicate": stl(points, np.vstack([faces, faces, faces[:3]])),
        "inverted": stl(points, np.vstack([faces[:6, ::-1], faces[6:]])),
        "inside out": stl(points, faces[:, ::-1]),
        "open": stl(points, faces[:-3]),
        "needles": stl(needle, np.vstack([faces, [[0, 8, 1], [7, 9, 3], [0, 0, 1], [2, 2, 2]]])),
    }


URDF = (
    '<robot name="r"><link name="l"><inertial><mass value="1"/><inertia ixx=".00667" iyy=".00667" izz=".00667" '
    'ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry><mesh filename="m.stl"/></geometry></collision>'
    "</link></robot>"
)


@pytest.mark.parametrize("case", damaged())
def test_a_damaged_mesh_lies_on_the_ground(case: str, tmp_path: Path) -> None:
    """What moves collides as a convex hull, which none of this changes."""
    (tmp_path / "m.stl").write_bytes(damaged()[case])
    (tmp_path / "r.urdf").write_text(URDF)
    run = simulate(
        load_articulation(tmp_path / "r.urdf", base="floating"),
        base="floating",
        ground=True,
        dt=DT,
        steps=240,
        q0={"root.z": 0.15},
        record=("qpos", "qvel"),
    )
    _, q, v = history(run)
    assert q[-1, 2] == pytest.approx(0.1, abs=1e-6)
    assert np.abs(v[-1]).max() <= 1e-6


TABLE = (
    '<robot name="t"><link name="t"><collision><geometry><mesh filename="m.stl" scale="5 5 1"/></geometry></collision>'
    "</link></robot>"
)


@pytest.mark.parametrize("case", damaged())
def test_things_lie_on_a_damaged_mesh_that_stands(case: str, tmp_path: Path) -> None:
    """What stands collides face by face, from outside alone; one is told where that may surprise."""
    (tmp_path / "m.stl").write_bytes(damaged()[case])
    (tmp_path / "t.urdf").write_text(TABLE)
    (tmp_path / "b.urdf").write_text(URDF.replace('<mesh filename="m.stl"/>', '<box size=".2 .2 .2"/>'))
    places = {"b": Pose((0.05, 0.02, 0.25)), "c": Pose((-0.3, 0.2, 0.25))}
    entries = [SceneEntry("t", str(tmp_path / "t.urdf"))]
    entries += [SceneEntry(name, str(tmp_path / "b.urdf"), "floating", place) for name, place in places.items()]
    run = simulate(load_scene(entries), contacts=True, dt=DT, steps=360, record=("qpos", "qvel", "energy"))
    _, q, v = history(run)
    assert np.isfinite(q).all()
    told = "\n".join(run.plan.notes)
    assert ("is not closed, or its faces look both ways" in told) == (case in ("open", "inverted"))
    assert ("is inside out" in told) == (case == "inside out")
    if case in ("whole", "duplicate", "inverted", "needles"):  # the top is as it should be
        assert q[-1, [2, 9]] == pytest.approx(0.2, abs=1e-5)
        assert np.abs(v[-1]).max() <= 1e-5


# --- energy ----------------------------------------------------------------------------------------------------------

KINDS = ["sphere", "capsule", "cylinder", "ellipsoid", "box", "mesh"]
SIZES = {
    "sphere": ".1",
    "capsule": ".06 .1",
    "cylinder": ".1 .06",
    "ellipsoid": ".12 .08 .06",
    "box": ".1 .07 .05",
    "mesh": "1",
}


def throws(seed: int, friction: float) -> str:
    rng = np.random.default_rng(seed)
    text = ""
    for n in range(20):
        kind = KINDS[n % len(KINDS)]
        shape = 'type="mesh" mesh="lump"' if kind == "mesh" else f'type="{kind}" size="{SIZES[kind]}"'
        place = f"{0.5 * (n % 5):.3f} {0.5 * (n // 5):.3f} {0.3 + 0.4 * rng.random():.3f}"
        turned = " ".join(f"{x:.3f}" for x in rng.uniform(-3, 3, 3))
        text += free(f'{shape} mass="1"', place, name=f"t{n}", turned=turned)
    points = rng.normal(size=(12, 3))
    points *= 0.1 / np.linalg.norm(points, axis=1)[:, None]
    asset = f'<asset><mesh name="lump" vertex="{" ".join(f"{x:.4f}" for x in points.ravel())}"/></asset>'
    return mjcf(FLOOR + text, geom=f'friction="{friction}"', more=asset)


def thrown(seed: int, friction: float, dt: float, **config: Any) -> Run:
    rng = np.random.default_rng(100 + seed)
    v0 = {
        f"t{n}.{axis}": float(rng.normal()) * (2.0 if axis[0] == "v" else 6.0)
        for n in range(20)
        for axis in ("vx", "vy", "vz", "wx", "wy", "wz")
    }
    return play(throws(seed, friction), 1.0, dt, v0=v0, **config)


def contact_work(run: Run) -> Array:
    """What contact did in each step [J]: an impulse times the mean of the velocities before and after it."""
    _, _, v = history(run)
    work: Array = run.plan.dt * (run["tau_contact"] * (v[:-1] + v[1:])).sum(axis=1) / 2
    return work


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_contact_makes_no_energy(restitution: float, friction: float, seed: int) -> None:
    """20 shapes thrown: what contact does to their energy is next to nothing, or less than nothing.

    A contact that is aimed keeps the positions at the step's end apart, along which the surfaces have closed as they
    open afterwards. So its work appears partly in the step after: single steps may gain what a thousandth of the speed
    of the fastest corners is worth, all of them together no more than before.
    """
    run = thrown(seed, friction, 1 / 960, restitution=restitution)
    energy = run["energy"].sum(axis=1)
    work = contact_work(run)
    print(
        f"\ne {restitution} friction {friction} seed {seed}: most work {work.max():.1e} J, all of it "
        f"{work[work > 0].sum():.1e} J of {energy[0]:.0f} J, left {energy[-1]:.0f} J, "
        f"residual {run.simulation.worst_residual:.0e}",
        end="",
    )
    assert np.isfinite(energy).all()
    assert work.max() <= 2e-4 * energy[0]
    assert work[work > 0].sum() <= 5e-4 * energy[0]


def test_energy_strays_by_the_integrator_s_error_alone() -> None:
    """Bounces without friction and loss: how far the totals of three throws stray falls with the step."""
    strays = []
    for dt in (1 / 480, 1 / 1920):
        energy = [
            thrown(seed, 0.0, dt, restitution=1.0, steps=round(0.5 / dt))["energy"].sum(axis=1) for seed in (3, 4, 5)
        ]
        strays.append(np.mean([np.abs(total - total[0]).max() / total[0] for total in energy]))
    print(f"\n{strays}", end="")
    assert strays[1] <= 0.4 * strays[0]
    assert strays[1] <= 0.001


# --- wedged and crowded ----------------------------------------------------------------------------------------------


def inner_corner(size: float) -> str:
    """A floor and two walls whose faces are the planes x = 0 and y = 0."""
    wall = f'type="box" size="{size} {size} {size}"'
    return f'{FLOOR}<geom {wall} pos="-{size} 0 {size}"/><geom {wall} pos="0 -{size} {size}"/>'


@pytest.mark.parametrize("dt", [DT, 1e-3], ids=["240 Hz", "1 kHz"])
def test_a_ball_wedged_into_a_corner(dt: float) -> None:
    """Two walls that it overlaps, friction 1, pressed in along their bisector: what friction holds cannot be mended.

    With λ_n = λ_t on both walls friction alone holds any load along the bisector, so no impulses at Coulomb's law part
    them; the ball must stay where it is, without a kick and with finite forces.
    """
    ball = free('type="sphere" size="0.1" mass="1"', "0.0999 0.0999 0.1")
    text = mjcf(inner_corner(0.5) + ball, geom='friction="1"').replace("0 0 -9.81", "-7 -7 -9.81")
    run = play(text, 2.0, dt, record=("qpos", "qvel", "solver_residual", "tau_contact"))
    _, q, v = history(run)
    assert run["solver_residual"].max() <= 1e-9
    assert np.abs(v).max() <= 0.05
    assert np.abs(v[-10:]).max() <= 1e-3
    assert np.all(q[:, :2] >= 0.0995)
    assert np.all(np.abs(q[:, :2] - 0.0999) <= 3e-4)
    assert np.abs(run["tau_contact"]).max() <= 500.0


def test_a_crowded_box_of_balls() -> None:
    """36 balls of 1 kg with friction thrown into a shaft three balls wide: every step solved, nothing sinks in."""
    wall = 'type="box" size=".05 .5 1"'
    walls = "".join(
        f'<geom {wall} pos="{x} {y} 1" euler="0 0 {turn}"/>'
        for x, y, turn in ((0.36, 0, 0), (-0.36, 0, 0), (0, 0.36, math.pi / 2), (0, -0.36, math.pi / 2))
    )
    rng = np.random.default_rng(5)
    balls = "".join(
        free(
            'type="sphere" size="0.1" mass="1"',
            f"{x + rng.normal(0, 1e-3)} {y + rng.normal(0, 1e-3)} {0.11 + 0.21 * layer}",
            name=f"b{layer}.{x}.{y}",
        )
        for layer in range(4)
        for x in (-0.203, 0.0, 0.203)
        for y in (-0.203, 0.0, 0.203)
    )
    run = play(
        mjcf(FLOOR + walls + balls, geom='friction="0.5"'),
        1.6,
        2e-3,
        record=("qpos", "energy", "solver_residual", "solver_iterations"),
    )
    energy = run["energy"].sum(axis=1)
    depth = run.simulation.contact_extremes[1]
    eased = run.simulation.eased_steps
    print(f"\n{depth:.2g} m deep, {eased} steps eased, {run['solver_iterations'].mean():.1f} iterations", end="")
    assert run["solver_residual"].max() <= 1e-9
    assert depth <= 1e-3
    assert np.all(np.diff(energy) <= 0.05)
    assert energy[-1] < energy[0]


@pytest.mark.parametrize("case", ["slide", "pivot"])
def test_a_contact_that_moves_only_along_its_surface(case: str) -> None:
    """A slide along the surface, or a ball joint in the contact's point: the run is that without contact."""
    slide = """<geom type="box" size=".1 .1 .1" pos=".15 0 0"/><body><joint name="j" type="slide" axis="0 0 1"/>
        <geom type="box" size=".1 .1 .1" mass="1"/></body>"""
    pivot = """<geom type="capsule" size=".01" fromto="0 0 0 0 0 .1"/><body pos="0 0 .1"><joint name="j" type="ball"/>
        <geom type="capsule" size=".01" fromto="0 0 0 0 .1 .1" mass="1"/></body>"""
    text = mjcf({"slide": slide, "pivot": pivot}[case])
    with_contact = play(text, 0.25, record=("qpos", "qvel", "tau_contact"))
    without = play(text, 0.25, contacts=False, record=("qpos", "qvel"))
    assert with_contact.simulation.contact_extremes[0] >= 1
    assert with_contact["qvel"] == pytest.approx(without["qvel"], rel=1e-9, abs=1e-9)
    assert np.abs(without["qvel"][-1]).max() > 0.5
    assert np.all(with_contact["tau_contact"] == 0.0)


def test_contacts_that_contradict_each_other() -> None:
    """A hinge with balls deep in the floor on both sides: no impulses part all of them; it stays, and that is told."""
    balls = "".join(f'<geom size=".1" pos="{x} 0 0" mass="1"/>' for x in (-0.2, -0.1, 0.1, 0.3))
    text = mjcf(FLOOR + f'<body><joint axis="0 -1 0"/>{balls}</body>')
    run = play(text, 0.5, 2e-3, record=("qpos", "qvel", "solver_residual", "tau_contact"))
    speed = np.abs(run["qvel"][:, 0])
    print(f"contradictory hinge: |v| after 50 steps {speed[50]:.3f}, at the end {speed[-1]:.4f} rad/s")
    assert run["solver_residual"].max() <= 1e-9
    assert np.abs(run["qpos"]).max() <= 0.05
    assert speed.max() <= 1e-9
    assert run.simulation.eased_steps == 250
