"""Odd starts are told, velocity limits hold or stop the run, signals do not wait for a step."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artsim.sim.foundation.errors import StoppedError
from artsim.sim.run_data.run_records import TOO_FAST
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.pace import MOST_STEPS, Pace, call_watched
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation
from tests.cli.test_cli_run import good, refused
from tests.simulation import constant_controls, load, simulate

CRATE = """
<mujoco><worldbody><geom type="plane" size="5 5 1"/><body name="crate" pos="0 0 .05"><freejoint/>
<geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>
"""
INERTIA = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
LINK = f'<link name="{{}}">{INERTIA}</link>'
JOINT = '<joint name="{1}_joint" type="continuous"><parent link="{0}"/><child link="{1}"/><axis xyz="0 1 0"/></joint>'


def written(tmp_path: Path, text: str, name: str = "model.xml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def quadruped(tmp_path: Path) -> Path:
    feet = ("FL_foot", "FR_foot")
    parts = [LINK.format("trunk"), *(LINK.format(foot) + JOINT.format("trunk", foot) for foot in feet)]
    return written(tmp_path, f'<robot name="q">{"".join(parts)}</robot>', "dog.urdf")


# ------------------------------------------------------------------ starts


def test_a_start_inside_something_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, CRATE)
    done = good("run", path, "--steps", 5, "--json")
    assert "starts inside something: crate in world (50 mm)" in done.stderr
    assert "crate" in json.loads(done.stdout)["start"][0]
    refused(3, "run", path, "--steps", 5, "--strict", words=("starts inside",))
    assert "inside" not in good("run", path, "--steps", 5, "--q0", "crate.z=0.11").stderr


def test_what_a_loop_holds_inside_is_not_said_to_be_removed(tmp_path: Path) -> None:
    """Two welded boxes overlap by 10 mm; a third one, free, is 20 mm deep in the floor."""
    box = '<body name="{}" pos="{} 0 {}"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    alone = box.format("a", 0, 1) + box.format("b", 0.19, 1)
    worlds = {"held": alone, "both": alone + box.format("c", 1, 0.08)}
    texts = {
        name: f"""<mujoco><worldbody><geom type="plane" size="5 5 .1"/>{bodies}</worldbody>
          <equality><weld name="glue" body1="a" body2="b"/></equality></mujoco>"""
        for name, bodies in worlds.items()
    }
    held = good("run", written(tmp_path, texts["held"]), "--steps", 5).stderr
    assert "a in b (10 mm); a in b is held there by loop 'glue' and stays, without contact\n" in held
    both = good("run", written(tmp_path, texts["both"]), "--steps", 5, "--force").stderr
    assert "c in world (20 mm), a in b (10 mm)" in both
    assert "stays, without contact; the rest is removed over 0.1 s" in both


def test_a_base_in_mid_air_is_told(tmp_path: Path) -> None:
    path = quadruped(tmp_path)
    assert "fixed in mid-air" in good("run", path, "--steps", 5).stderr
    assert "mid-air" not in good("run", path, "--steps", 5, "--base", "floating").stderr


def test_degrees_for_radians_are_told(tmp_path: Path) -> None:
    done = good("run", quadruped(tmp_path), "--steps", 5, "--base", "floating", "--q0", "FL_foot_joint=45")
    assert "45 rad" in done.stderr and "0.785398 rad" in done.stderr


# ------------------------------------------------------------------ velocity limits


def test_a_velocity_limit_that_cannot_hold_stops_the_run(tmp_path: Path) -> None:
    """What a hard loop drags along is not to be held: the run says so, and does not go on beyond the limit."""
    path = quadruped(tmp_path)
    options: dict[str, Any] = {"base": "floating", "steps": 50, "v0": {"root.wy": 5.0}}
    run = simulate(load(path, "floating"), link_velocity_limit={"*": (1.0, 2.0)}, **options)
    assert np.abs(run["qvel"][1:]).max() < 2 + 1e-6
    kept = Simulation._why
    stuck = simulate(load(path, "floating"), link_velocity_limit={"*": (1.0, 2.0)}, check=False, **options).simulation
    stuck.stop_reason, stuck._step.counters[3] = TOO_FAST, 1
    assert "the limit 2 of the angular velocity of link" in kept(stuck)


# ------------------------------------------------------------------ signals


def test_a_pace_is_found_from_what_steps_cost() -> None:
    pace = Pace()
    assert pace.slow
    pace.note(16, 16 * 1e-6)
    assert pace.steps() == 64 and not pace.slow
    for _ in range(8):
        pace.note(pace.steps(), pace.steps() * 1e-6)
    assert pace.steps() == MOST_STEPS
    pace.note(4, 8.0)
    assert pace.steps() == 1 and pace.slow


def test_a_call_that_does_not_end_is_left_alone_after_a_signal() -> None:
    end = threading.Event()
    began = time.perf_counter()
    assert not call_watched(lambda: end.wait(20) and None, lambda: True)
    assert time.perf_counter() - began < 1
    end.set()
    assert call_watched(lambda: None, lambda: True)
    with pytest.raises(StoppedError):
        call_watched(failing, lambda: False)


def failing() -> None:
    raise StoppedError("as it is")


def test_a_run_is_as_before_the_call_that_was_left_alone(tmp_path: Path) -> None:
    plan = plan_run(load(quadruped(tmp_path)), RunConfig(steps=100))
    simulation = Simulation(plan, constant_controls(plan))
    simulation.signalled = lambda: True
    for _ in simulation.blocks(10):
        pass
    state = simulation.save()
    simulation._call = lambda: time.sleep(2)
    began = time.perf_counter()
    blocks = [len(block.rows["qpos"]) for block in simulation.blocks(10)]
    assert time.perf_counter() - began < 1 and blocks == [0] and simulation.left_alone
    kept = simulation.save()
    assert all(np.array_equal(state[name], kept[name]) for name in state)
    assert simulation.step == 10
