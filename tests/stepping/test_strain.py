"""What strains hard loops: contacts that push apart what they hold, loads on light links, change points of linkages.

The truth is MuJoCo with both bodies as one, the conservation of energy, and statics.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import mujoco
import numpy as np
import pytest

from artsim.io.format.labels import FIXED_LABELS
from artsim.loaders.load import load_text
from tests.cli.test_cli_run import run
from tests.simulation import Array, Run, simulate

# ------------------------------------------------------------------ contacts of what a loop holds

BAR = '<geom type="capsule" size=".02" fromto="0 0 0 .4 0 0"/>'
BLOCK = '<geom type="box" size=".04 .03 .05" pos="{x} 0 0"/>'
HELD = """<mujoco><worldbody><body name="bar"><joint name="j" axis="0 1 0"/>{bar}</body>
<body name="block"><freejoint/>{block}</body>{third}</worldbody><equality>{equality}</equality></mujoco>"""
WELD = '<weld body1="bar" body2="block" anchor="{}"/>'
CONNECT = '<connect body1="bar" body2="block" anchor="{}"/>'


def held(equality: str = WELD.format("0 0 0"), inside: float = 0.01, third: str = "") -> str:
    """A bar on a hinge, whose tip is so far [m] inside a block that a loop ties to it."""
    block = BLOCK.format(x=0.46 - inside)
    return HELD.format(bar=BAR, block=block, equality=equality, third=third)


def fall(text: str, dt: float = 0.002, seconds: float = 0.2, **config: Any) -> Run:
    """A run with its contacts."""
    steps = round(seconds / dt)
    record = ("qpos", "energy", "loop_wrench")
    return simulate(load_text(text, name="m.xml"), steps=steps, dt=dt, contacts=True, record=record, **config)


def gained(run: Run) -> float:
    """The most energy there is beyond that of the start [J]."""
    energy = run["energy"].sum(axis=1)
    return float(energy.max() - energy[0])


def angle_as_one(inside: float, seconds: float) -> float:
    """The hinge's angle by MuJoCo where the bar and the block are one body."""
    block = BLOCK.format(x=0.46 - inside)
    text = f'<mujoco><worldbody><body><joint axis="0 1 0"/>{BAR}{block}</body></worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = 1e-4
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)
    for _ in range(round(seconds / model.opt.timestep)):
        mujoco.mj_step(model, data)
    return float(data.qpos[0])


BALL = '<body name="ball"><freejoint/><geom type="sphere" size=".05" pos=".53 0 0"/></body>'


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "dt"),
    [
        (held(), 0.002),
        (held(inside=0.001), 0.004),
        (held(inside=0.05), 0.001),
        (held(WELD.format(".2 .1 .3")), 0.002),
        (held(WELD.format("0 0 0") + '<weld body1="block" body2="ball"/>', third=BALL), 0.002),
    ],
    ids=["weld", "1 mm", "50 mm", "lever arm", "three bodies"],
)
def test_what_a_weld_holds_inside_moves_as_one_body(text: str, dt: float) -> None:
    """The contact asks for what the weld forbids, by its yield alone: tons of force, and energy from nothing."""
    run = fall(text, dt)
    found = run.simulation.held_inside
    assert found is not None
    assert found[0] == len(run["qpos"])
    assert found[2] in {"bar", "block", "ball"}
    assert found[4].startswith("weld")
    assert gained(run) <= 1e-6
    assert run.simulation.loop_gap is not None
    assert max(run.simulation.loop_gap) <= 1e-7
    assert np.abs(run["loop_wrench"]).max() <= 100
    if "ball" not in text:
        depth = found[1]
        assert abs(run.simulation.qpos[0] - angle_as_one(depth, 0.2)) <= 0.01  # of first order in the step


@pytest.mark.small
@pytest.mark.parametrize("anchor", [".42 0 0", ".40 0 0", "0 0 .2"], ids=["tip", "along the normal", "wedged"])
def test_what_a_ball_joint_holds_inside_gains_nothing(anchor: str) -> None:
    """The contact's normal passes through the loop's point, or nearly; or friction wedges the two."""
    run = fall(held(CONNECT.format(anchor)))
    assert gained(run) <= 0.01
    assert run.simulation.loop_gap is not None
    assert run.simulation.loop_gap[0] <= 1e-4, "a hundredth of the depth"
    assert run.simulation.left_inside_steps > 0


@pytest.mark.small
def test_what_a_loop_does_not_hold_is_removed() -> None:
    """The block turns about a point well off the contact's normal, and leaves the bar."""
    run = fall(held(CONNECT.format(".44 0 .1")))
    assert run.simulation.held_inside is None
    assert run.simulation.left_inside_steps == 0
    assert gained(run) <= 0.02


@pytest.mark.small
@pytest.mark.parametrize("inside", [0.0, 1e-8, 1e-6])
def test_what_is_welded_as_it_touches_moves_as_one_body(inside: float) -> None:
    run = fall(held(inside=inside))
    assert gained(run) <= 1e-6
    assert abs(run.simulation.qpos[0] - angle_as_one(inside, 0.2)) <= 0.01
    assert np.abs(run["loop_wrench"]).max() <= 100


@pytest.mark.small
@pytest.mark.parametrize("solver", ["propagation", "direct", "brute"])
def test_other_solvers_leave_out_the_same_contacts(solver: str) -> None:
    ours, theirs = fall(held(), seconds=0.05), fall(held(), seconds=0.05, solver=solver)
    assert theirs.simulation.held_inside == pytest.approx(ours.simulation.held_inside)
    assert np.abs(ours["qpos"] - theirs["qpos"]).max() <= 1e-9


def test_what_is_held_inside_is_named(tmp_path: Path) -> None:
    """In the summary, in --json and in the file; --strict refuses it, and what a loop pulls into a body."""
    path, output = tmp_path / "m.xml", tmp_path / "m.h5"
    path.write_text(held())
    told = run("run", path, "--steps", 20, "-o", output)
    assert told.returncode == 0
    assert "inside each other: their contact was left out in 20 steps" in told.stderr
    with h5py.File(output) as file:
        extremes = dict(zip(FIXED_LABELS["extreme"], file["final/extremes"][:], strict=True))
    assert extremes["held_inside_steps"] == 20
    assert extremes["held_inside"] == pytest.approx(0.01, abs=1e-6)
    found = json.loads(run("run", path, "--steps", 20, "--json").stdout)["contacts"]["held_inside"]
    assert {found["link_a"], found["link_b"]} == {"bar", "block"}
    assert found["loop"].startswith("weld")
    weld = WELD.format("0 0 0").replace("/>", ' relpose="0 0 0 1 0 0 0"/>')
    path.write_text(held(weld).replace('<body name="block">', '<body name="block" pos=".05 0 0">'))
    refused = run("run", path, "--steps", 100, "--strict")
    assert refused.returncode == 3
    assert "inside each other" in refused.stderr


# ------------------------------------------------------------------ change points


def parallelograms(n: int, turn: str = "1 0 0 0") -> str:
    """So many four-bar linkages of rods of 1 m and 1 kg in a row, which fold flat; the whole turned by a quaternion."""
    parts = [f'<mujoco><default><joint axis="0 1 0"/></default><worldbody><body quat="{turn}">']
    rod = '<inertial pos="{}" mass="1" diaginertia="{}"/>'
    for i in range(n + 1):
        coupler = (
            f'<body name="coupler{i}" pos="0 0 1"><joint name="k{i}"/>{rod.format(".5 0 0", "1e-9 .0833 .0833")}</body>'
        )
        parts.append(
            f'<body name="crank{i}" pos="{i} 0 0"><joint name="c{i}"/>{rod.format("0 0 .5", ".0833 .0833 1e-9")}'
            f"{coupler if i < n else ''}</body>"
        )
    parts.append("</body></worldbody><equality>")
    parts += [f'<connect body1="coupler{i}" body2="crank{i + 1}" anchor="1 0 0"/>' for i in range(n)]
    return "".join([*parts, "</equality></mujoco>"])


def through_flat(n: int, dt: float, off: float, speed: float = 5.0, turn: str = "1 0 0 0", **config: Any) -> Run:
    """Twelve steps in which all rods get into one line and go on; the third step begins `off` of a step before."""
    crank = np.pi / 2 - speed * dt * (2 + off)
    q0 = {f"c{i}": crank for i in range(n + 1)} | {f"k{i}": -crank for i in range(n)}
    v0 = {f"c{i}": speed for i in range(n + 1)} | {f"k{i}": -speed for i in range(n)}
    record = ("qpos", "energy")
    text = parallelograms(n, turn)
    return simulate(load_text(text, name="m.xml"), steps=12, dt=dt, q0=q0, v0=v0, record=record, **config)


TURNED = "0.8 0.3 -0.4 0.3316624790355400"


@pytest.mark.small
@pytest.mark.parametrize("turn", ["1 0 0 0", TURNED], ids=["planar", "tilted"])
@pytest.mark.parametrize(
    ("n", "dt", "off"),
    [(1, 0.01, 0.05), (1, 0.01, 0.9), (2, 0.005, 0.9), (3, 0.005, 0.02), (3, 0.005, 0.05), (3, 0.01, 0.0)],
)
def test_linkages_pass_their_change_points(n: int, dt: float, off: float, turn: str) -> None:
    """J loses rank where all rods are in one line, and its size and sign change within the step."""
    run = through_flat(n, dt, off, turn=turn)
    qpos, energy = run["qpos"], run["energy"].sum(axis=1)
    bent = max(float(np.abs(qpos[:, 2 * i] - qpos[:, 0]).max()) for i in range(n + 1))
    assert bent <= 2e-3, "the parallelograms stay parallelograms"
    assert run.simulation.loop_gap is not None
    assert run.simulation.loop_gap[0] <= 5e-5
    assert np.abs(energy - energy[0]).max() <= 40 * n * dt, "of first order in the step"


@pytest.mark.parametrize("dt", [0.005, 0.007, 0.009, 0.01])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_chains_of_parallelograms_keep_their_energy(n: int, dt: float) -> None:
    """Ten seconds from upright, 1 rad/s: the semi-implicit step lets energy swing by 0.045 J per linkage and ms."""
    v0 = {f"c{i}": 1.0 for i in range(n + 1)} | {f"k{i}": -1.0 for i in range(n)}
    text = parallelograms(n)
    run = simulate(load_text(text, name="m.xml"), steps=round(10 / dt), dt=dt, v0=v0, record=("energy",))
    energy = run["energy"].sum(axis=1)
    assert np.abs(energy - energy[0]).max() <= 60 * (n + 0.5) * dt
    assert run.simulation.loop_gap is not None
    assert run.simulation.loop_gap[0] <= 1e-4


SLIDER_CRANK = """<mujoco><default><joint axis="0 1 0"/></default><worldbody>
<body><joint name="crank"/><inertial pos=".5 0 0" mass="1" diaginertia="1e-4 .0833 .0833"/>
<body name="rod" pos="1 0 0"><joint name="rod"/>
<inertial pos=".5 0 0" mass="1" diaginertia="1e-4 .0833 .0833"/></body></body>
<body name="block" pos="2 0 0"><joint name="block" type="slide" axis="1 0 0"/>
<inertial pos="0 0 0" mass=".1" diaginertia="1e-3 1e-3 1e-3"/></body></worldbody>
<equality><connect body1="rod" body2="block" anchor="1 0 0"/></equality></mujoco>"""


@pytest.mark.parametrize("dt", [0.005, 0.007, 0.01])
def test_a_slider_crank_of_equal_rods_passes_its_change_points(dt: float) -> None:
    """From dead centre; where the crank is upright the block may stay at its pivot, or pass."""
    v0 = {"crank": 3.0, "rod": -6.0}
    text = SLIDER_CRANK
    run = simulate(load_text(text, name="m.xml"), steps=round(5 / dt), dt=dt, v0=v0, record=("energy",))
    energy = run["energy"].sum(axis=1)
    assert np.abs(energy - energy[0]).max() <= 100 * dt
    assert run.simulation.loop_gap is not None
    assert run.simulation.loop_gap[0] <= 5e-5


# ------------------------------------------------------------------ light links

LEG = """<body pos="{x} 0 0"><joint name="u{n}" axis="1 0 0"/><joint name="w{n}" axis="0 1 0"/>
<inertial pos="0 0 0" mass="{m}" diaginertia="{i} {i} {i}"/><body><joint name="s{n}" type="slide" axis="{d}"/>
<inertial pos="0 0 {com}" mass="{m}" diaginertia="{i} {i} {i}"/><site name="l{n}" pos="{reach}"/></body></body>"""


def table(mass: float, com: float = 0.0) -> str:
    """A plate of 10 kg on six driven legs of this mass each, three pairs that cross."""
    legs, sites, ties = "", "", ""
    for n in range(6):
        low, high = (n + (0.2 if n % 2 else -0.2)) * np.pi / 3, (n + (-0.3 if n % 2 else 0.3)) * np.pi / 3
        foot = np.array([0.5 * np.cos(low), 0.5 * np.sin(low), 0.0])
        head = np.array([0.3 * np.cos(high), 0.3 * np.sin(high), 0.6])
        way = [repr(float(x)) for x in head - foot]
        sites += f'<site name="p{n}" pos="{float(head[0])!r} {float(head[1])!r} 0"/>'
        ties += f'<connect site1="l{n}" site2="p{n}"/>'
        leg = LEG.format(x=float(foot[0]), n=n, m=mass, i=mass * 0.01, com=com, d=" ".join(way), reach=" ".join(way))
        legs += leg.replace(f'pos="{float(foot[0])} 0 0"', f'pos="{float(foot[0])!r} {float(foot[1])!r} 0"')
    plate = f'<body pos="0 0 .6"><freejoint/><inertial pos=".05 0 0" mass="10" diaginertia=".3 .3 .5"/>{sites}</body>'
    return f"<mujoco><worldbody>{legs}{plate}</worldbody><equality>{ties}</equality></mujoco>"


def stand(mass: float, dt: float, stiffness: float = 1e6, com: float = 0.0, steps: int = 60) -> Run:
    gains: dict[str, Any] = {
        "stiffness": {f"s{n}": stiffness for n in range(6)},
        "damping": {f"s{n}": 0.02 * stiffness for n in range(6)},
    }
    record = ("qpos", "qvel", "loop_wrench")
    return simulate(load_text(table(mass, com), name="m.xml"), steps=steps, dt=dt, record=record, **gains)


@pytest.mark.small
@pytest.mark.parametrize(
    ("mass", "dt", "stiffness", "com"),
    [(1e-6, 0.001, 1e6, 0.0), (1e-6, 0.01, 1e7, 0.0), (1e-5, 0.004, 1e6, 0.3)],
    ids=["1 ms", "10 ms", "masses in mid-air"],
)
def test_light_legs_carry_as_heavier_ones_do(mass: float, dt: float, stiffness: float, com: float) -> None:
    """The yield of a loop's rows goes by its links' mobility, which is no measure of what a light leg carries."""
    run, heavier = stand(mass, dt, stiffness, com), stand(1e-3, dt, stiffness, com)
    assert run.simulation.loop_gap is not None
    assert run.simulation.loop_gap[0] <= 1e-7
    force, same = (np.linalg.norm(made["loop_wrench"][-1, :, :3], axis=1) for made in (run, heavier))
    assert np.abs(force - same).max() <= 0.05
    assert np.abs(run["qvel"][-1] - heavier["qvel"][-1]).max() <= 1e-3


def still(run: Run) -> Array:
    """The largest velocity in the last tenth of a run."""
    return np.abs(run["qvel"][-len(run["qvel"]) // 10 :]).max()


def test_a_plate_on_light_legs_comes_to_rest() -> None:
    run = stand(1e-6, 0.001, steps=1000)
    assert still(run) <= 1e-6
    assert run.simulation.loop_gap is not None
    assert run.simulation.loop_gap[0] <= 1e-7
    assert np.ptp(run["loop_wrench"][-100:], axis=0).max() <= 1e-3
