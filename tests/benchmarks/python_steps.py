"""`Simulation.step` from Python with a torque that changes, beside MuJoCo's mj_step: `python -m
tests.benchmarks.python_steps`.

Microseconds of CPU time per call on arm7, contacts off in both: least of several rounds in turns. `engine`: the
kernel's call alone, so that the difference is what Python adds; `kept`: the rows of all steps are kept.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import artsim
from artsim.sim.run_data.run_records import STEPS_TO_TAKE

CALLS = 1000
RECORDED: dict[str, dict[str, Any]] = {
    "default record": {},
    "qpos, qvel": {"record": ("qpos", "qvel")},
    "nothing recorded": {"record": ()},
}


def peer(path: Path) -> tuple[Any, Any]:
    """The same URDF in MuJoCo, with the time step of ours."""
    os.chdir(path.parent)  # where its meshes are
    settings = '<mujoco><compiler strippath="false" balanceinertia="true"/></mujoco></robot>'
    model = mujoco.MjModel.from_xml_string(path.read_text().replace("</robot>", settings))
    model.opt.timestep = 0.002
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return model, mujoco.MjData(model)


def stepped(simulation: artsim.Simulation, torques: Any) -> None:
    """A loop as users write it who look at the state."""
    for torque in torques:
        simulation.step(torque=torque)


def kept(simulation: artsim.Simulation, torques: Any) -> None:
    """A loop that keeps all rows."""
    rows = [simulation.step(torque=torque) for torque in torques]
    assert len(rows) == CALLS


def called(call: Callable[[], None]) -> None:
    """The engine alone."""
    for _ in range(CALLS):
        call()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    robot = artsim.load("arm7")
    model, data = peer(Path(robot.articulation.path))
    torques = 0.1 * np.random.default_rng(0).normal(size=(CALLS, 7))

    def theirs() -> None:
        for torque in torques:
            data.qfrc_applied[:] = torque
            mujoco.mj_step(model, data)

    timed: dict[str, Callable[[], None]] = {"mj_step": theirs}
    for name, settings in RECORDED.items():
        simulation = artsim.Simulation(robot, **settings)
        simulation.step()
        timed[f"step(1), {name}"] = partial(stepped, simulation, torques)
        timed[f"kept, {name}"] = partial(kept, simulation, torques)
        engine = simulation._simulation
        engine._block.plan[STEPS_TO_TAKE] = 1
        timed[f"engine, {name}"] = partial(called, engine._call)
    least = dict.fromkeys(timed, np.inf)
    for _ in range(rounds):
        for name, call in timed.items():
            began = time.process_time()
            call()
            least[name] = min(least[name], time.process_time() - began)
    for name, seconds in least.items():
        microseconds = 1e6 * seconds / CALLS
        print(f"{name:26} {microseconds:6.2f} us   {seconds / least['mj_step']:5.2f} of mj_step")


if __name__ == "__main__":
    main()
