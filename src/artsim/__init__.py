"""artsim: articulated robots simulated from a shell; exact couplings, audited joint forces, bit-for-bit replay.

    robot = artsim.load("robot.urdf")
    out = robot.compute(qpos, quantities=["mass_matrix", "jacobian"])
    recording = artsim.simulate(robot, steps=1000, dt=0.002)
    recording["qpos"], recording.labels.coord, recording.time

Importing this costs nothing: everything is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    import numpy as np

    from artsim.io.batch_reader import BatchRecording
    from artsim.io.reader import Recording
    from artsim.io.rollout_reader import RolloutRecording
    from artsim.io.rollouts import MemoryRollout
    from artsim.io.runs import MemoryRecording
    from artsim.sim.robot import Robot

__version__ = "0.1.0"

_LAZY = {
    "ArtsimError": "artsim.sim.errors",
    "BatchRecording": "artsim.io.batch_reader",
    "MissingInputError": "artsim.sim.errors",
    "ModelError": "artsim.sim.errors",
    "ModelWarning": "artsim.loaders.robot",
    "Recording": "artsim.io.reader",
    "Robot": "artsim.sim.robot",
    "RolloutRecording": "artsim.io.rollout_reader",
    "Simulation": "artsim.io.stepping",
    "StoppedError": "artsim.sim.errors",
    "UsageError": "artsim.sim.errors",
}

__all__ = ["__version__", "compute", "load", "open", "rollout", "simulate", *_LAZY]


def load(path: str | PathLike[str], **options: Any) -> Robot:
    """Load a robot file; options as artsim.loaders.robot.load_robot has them (base, packages, coupling, gravity, …)."""
    from artsim.loaders.robot import load_robot

    return load_robot(path, **options)


def simulate(robot: Robot | str | PathLike[str], **options: Any) -> MemoryRecording | Recording:
    """Simulate a robot, or the robot of a file; options as artsim.io.runs.simulate has them (steps, dt, output, …)."""
    from artsim.io import runs

    return runs.simulate(_robot(robot), **options)


def rollout(robot: Robot | str | PathLike[str], **options: Any) -> MemoryRollout | RolloutRecording:
    """Simulate many variations of a run; options as artsim.io.rollouts.rollout has them (samples, steps, …)."""
    from artsim.io import rollouts

    return rollouts.rollout(_robot(robot), **options)


def open(path: str | PathLike[str]) -> Recording | BatchRecording | RolloutRecording:
    """Open an output of `artsim run`, `batch` or `rollout` for reading, through the gate that refuses harmful files."""
    from artsim.io.batch_reader import open_output

    return open_output(path)


def compute(robot: Robot | str | PathLike[str], qpos: Any, **options: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Rigid-body quantities of one or many configurations; options as Robot.compute has them."""
    return _robot(robot).compute(qpos, **options)


def _robot(robot: Robot | str | PathLike[str]) -> Robot:
    from artsim.sim.robot import Robot

    return robot if isinstance(robot, Robot) else load(robot)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'artsim' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
