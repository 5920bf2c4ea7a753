"""Robots that stand, fall, lift and stick: how still, how exactly balanced, and that contact makes no energy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_text
from tests.conftest import corpus
from tests.contact.robot_contacts import (
    BOX_MASS,
    HEIGHT,
    JAWS,
    RECORD,
    G,
    carried,
    check_forces,
    forces_on,
    growth,
    hard_humanoid,
    mujoco_lift,
    quadruped,
    quadruped_options,
    robotiq,
    run_adhesion,
    run_lift,
    slip,
    standing,
    thrown,
    total_energy,
)
from tests.simulation import ROBOTS, joint_limits, robot_file

QUADRUPED_MASS = 19.6


@pytest.fixture
def public() -> Path:
    """The folder of public models."""
    folder = corpus()
    if folder is None:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    return folder


# --- standing --------------------------------------------------------------------------------------------------------


def test_quadruped_stands_still() -> None:
    """Under drives, on four feet; after three seconds to settle nothing moves, and the feet carry its weight."""
    run = artsim.simulate(quadruped(), steps=4000, record=RECORD, **quadruped_options())
    still = standing(run.time, run["qpos"], run["qvel"], after=3.0)
    assert still.drift <= 1e-10
    assert still.turning <= 1e-10
    assert still.sinking <= 1e-10
    assert still.fastest <= 1e-9
    assert run["qpos"][-1, 2] == pytest.approx(0.295, abs=0.005)
    settled = carried(run)[2000:]
    assert np.abs(settled + QUADRUPED_MASS * G).max() <= 1e-8
    assert set(run.contacts["contact_count"][2000:].astype(int)) == {4}
    assert run.contacts["depth"].max() <= 1e-9


def test_quadruped_of_the_tutorial_is_reproduced(tmp_path: Path) -> None:
    """The command that a user copies, and its file simulated again, byte for byte."""
    page = (ROBOTS.parent / "docs" / "tutorials" / "quadruped.md").read_text()
    line = next(line for line in page.splitlines() if "stand.h5" in line and line.startswith("artsim run"))
    words = line.replace("robots/", f"{ROBOTS}/").replace("stand.h5", str(tmp_path / "stand.h5")).split()
    for command in (words, ["artsim", "replay", "--verify", str(tmp_path / "stand.h5")]):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "reproduced, every byte equal" in done.stdout
    with artsim.open(tmp_path / "stand.h5") as run:
        weight = carried(run)[-1]
    assert np.abs(weight + QUADRUPED_MASS * G).max() <= 1e-8


@pytest.mark.corpus
def test_go2_stands_for_a_minute(public: Path) -> None:
    path = public.parent / "peers" / "bench" / "models" / "step_go2.xml"
    robot = artsim.load(path)
    run = artsim.simulate(robot, steps=30_000, keyframe="k", record=RECORD)
    still = standing(run.time, run["qpos"], run["qvel"], after=15.0)
    assert max(still.drift, still.turning, still.sinking) <= 1e-12
    assert still.fastest <= 1e-9
    assert run["solver_residual"].max() <= 1e-9
    weight = carried(run)[10_000:]
    assert np.abs(weight + float(robot.model.link_mass.sum()) * G).max() <= 1e-8
    assert np.abs(np.diff(weight, axis=0)).max() <= 1e-9  # no chatter


# --- falling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["quadruped", "arm7", "rack_and_pinion", "two_finger_gripper"])
def test_contact_makes_no_energy(name: str) -> None:
    """Thrown on the ground: what the energy ever gains is the integrator's, by the step or next to nothing."""
    robot = artsim.load(robot_file(name), base="floating")
    options = thrown(robot, joint_limits(robot_file(name)), seed=5)
    gained = []
    for dt in (1e-3, 2.5e-4):
        run = artsim.simulate(robot, steps=round(1.5 / dt), dt=dt, record=("qpos", "energy", "contacts"), **options)
        energy = total_energy(run)
        assert run.contacts["contact_count"].max() >= 2
        assert energy[-1] < 0.7 * energy[0]
        check_forces(run.contacts)
        gained.append(growth(energy) / energy[0])
    assert gained[0] <= 1e-3
    assert gained[1] <= max(0.4 * gained[0], 1e-4)


@pytest.mark.corpus
def test_humanoid_falls_and_lies_still(public: Path, tmp_path: Path) -> None:
    """With hard skin: never deeper than 0.01 mm, no energy from contact, at rest within twelve seconds.

    It starts with a turn: falling straight it lies on its symmetry, no stable rest, and rolls off from rounding.
    """
    robot = artsim.load(hard_humanoid(public, tmp_path))
    run = artsim.simulate(robot, steps=6500, record=RECORD, v0={"root.wx": 0.3})
    assert run.contacts["contact_count"].max() >= 8
    assert run.contacts["depth"].max() <= 1e-5
    assert growth(total_energy(run)) <= 1e-9
    assert run["qpos"][-1, 2] < 0.4
    assert np.abs(run["qvel"][6000:]).max() <= 1e-9
    assert run["solver_residual"].max() <= 1e-9


# --- lifting ---------------------------------------------------------------------------------------------------------


def check_lifted(run: artsim.MemoryRecording, pad: str, slow: float, hold: float) -> float:
    """The box hangs in the jaws: its balance is exact in every step, slip stays below `slow`; the slip [m/s]."""
    links = run.labels.link
    box, held = links.index("box"), links.index(pad)
    first = run.labels.dof.index("box.vx")
    acceleration = run["qacc"][:, first : first + 3]
    balance = forces_on(run, "box") + BOX_MASS * (G - acceleration)
    assert np.abs(balance).max() <= 1e-8
    place, turns = run["link_position"], run["link_quaternion"]
    slipped = slip(place[:, box], place[:, held], turns[:, held], run.time, 2 + hold / 5)
    assert slipped <= slow
    assert place[-1, box, 2] == pytest.approx(0.02 + HEIGHT, abs=0.01)
    assert run["solver_residual"].max() <= 1e-9
    return slipped


def test_two_jaws_lift_a_box(tmp_path: Path) -> None:
    """Half a kilogram between two jaws, by friction: lifted, held, without slip."""
    path = tmp_path / "jaws.xml"
    path.write_text(JAWS)
    run = run_lift(path, 1.0, 2.0)
    check_lifted(run, "left", 1e-9, 2.0)
    assert run.contacts["depth"].max() <= 1e-9


@pytest.mark.corpus
def test_robotiq_lifts_a_box(public: Path, tmp_path: Path) -> None:
    """The public 2F-85, whose loops close on the box, with hard pads: ten seconds without slip."""
    run = run_lift(robotiq(public, tmp_path / "gripper", hard=True), 255.0, 10.0)
    check_lifted(run, "g_right_pad", 1e-9, 10.0)
    depth = run.contacts["depth"]
    landed = int(run.contacts["contact_count"][: round(0.25 / (run.time[1] - run.time[0]))].sum())
    assert depth.max() <= 1e-8  # where pads land in the midst of a step, their arc's third order
    assert depth[landed:].max() <= 1e-9


@pytest.mark.corpus
def test_soft_pads_slip_as_slowly_as_mujoco_s(public: Path, tmp_path: Path) -> None:
    """As the file has its pads: friction gives way, ten times less than the normal, as its impratio wants."""
    path = robotiq(public, tmp_path / "gripper", hard=False)
    mine = check_lifted(run_lift(path, 255.0, 1.0), "g_right_pad", 2e-4, 1.0)
    times, boxes, pads, turns = mujoco_lift(str(path), "g_right_pad", 255.0, 1.0)
    assert mine <= slip(boxes, pads, turns, times, 2.2)


# --- soft friction ---------------------------------------------------------------------------------------------------

PULLED = """<mujoco><option timestep="0.002" gravity="3 0 -9.81" impratio="{}" cone="elliptic"/><worldbody>
  <geom type="plane" size="0 0 1" solref=".01 1" solimp=".9 .95 .001"/>
  <body pos="0 0 .0999"><freejoint name="b"/><geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("ratio", [1, 10, 100])
def test_friction_of_soft_contacts_creeps_as_mujoco_s(ratio: int, tmp_path: Path) -> None:
    """A box pulled along by less than friction holds: MuJoCo 4.0 lets it creep by 5.9106e-4 m/s over impratio."""
    path = tmp_path / "pulled.xml"
    path.write_text(PULLED.format(ratio))
    run = artsim.simulate(artsim.load(path), steps=400, record=("qvel",))
    assert run["qvel"][-1, 0] == pytest.approx(5.9106e-4 / ratio, rel=0.03)


def test_friction_no_softer_than_the_normal_is_told() -> None:
    articulation = load_text(PULLED.format(0.5), name="pulled.xml")
    assert "impratio below 1 counts as 1" in str(articulation.notes[-1])
    assert not load_text(PULLED.format(10), name="pulled.xml").notes


# --- sticking --------------------------------------------------------------------------------------------------------


@pytest.mark.corpus
def test_adhesion_lifts_a_box(public: Path) -> None:
    """An arm that sticks to a box of 0.1 kg by 5 N takes it along; without adhesion the box stays where it is."""
    run = run_adhesion(public, 1.0)
    box, hand = run.labels.link.index("box"), run.labels.link.index("4boxes")
    place, turns = run["link_position"], run["link_quaternion"]
    assert place[-1, box, 2] == pytest.approx(0.15, abs=0.002)
    assert slip(place[:, box], place[:, hand], turns[:, hand], run.time, 4.5) <= 1e-9
    left = run_adhesion(public, 0.0)["link_position"]
    assert left[-1, box, 2] == pytest.approx(0.05, abs=0.001)
    assert left[-1, hand, 2] > 0.2
