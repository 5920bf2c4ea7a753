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
    from typing import Any, Unpack

    import numpy as np

    from artsim.io.batch_reader import BatchRecording
    from artsim.io.reader import Recording
    from artsim.io.rollout_reader import RolloutRecording
    from artsim.io.rollouts import MemoryRollout
    from artsim.io.runs import MemoryRecording
    from artsim.io.settings import RolloutOptions, SimulateOptions
    from artsim.sim.quantities.robot import Robot

__version__ = "0.1.0"

_LAZY = {
    "ArtsimError": "artsim.sim.foundation.errors",
    "BatchRecording": "artsim.io.batch_reader",
    "MissingInputError": "artsim.sim.foundation.errors",
    "ModelError": "artsim.sim.foundation.errors",
    "ModelWarning": "artsim.loaders.load_robot",
    "Recording": "artsim.io.reader",
    "Robot": "artsim.sim.quantities.robot",
    "RolloutRecording": "artsim.io.rollout_reader",
    "Simulation": "artsim.io.stepping",
    "StoppedError": "artsim.sim.foundation.errors",
    "UsageError": "artsim.sim.foundation.errors",
}

__all__ = ["__version__", "compute", "load", "open", "rollout", "simulate", *_LAZY]


def load(path: str | PathLike[str], **options: Any) -> Robot:
    """Load a robot file; options as artsim.loaders.load_robot.load_robot has them (base, packages, coupling, gravity,
    …)."""
    from artsim.loaders.load_robot import load_robot

    return load_robot(path, **options)


def simulate(robot: Robot | str | PathLike[str], **options: Unpack[SimulateOptions]) -> MemoryRecording | Recording:
    """Simulate a robot, or the robot of a file.

    Args:
        robot: what `load` returned, or a file.
        options: all by name. Numbers by joint are mappings ("*": every joint), or sequences in the model's order.

            Output: output, force, compress, checkpoint, check, record, every.
            Time: steps, dt, integrator, seed.
            Model: base, gravity, density, balance_inertia, ignore_unsupported, coordinates, scheme, scheme_alpha,
            scheme_beta.
            Start: q0, v0 [rad, m, rad/s, m/s], activation, keyframe.
            Inputs: torque [N m, N], target, target_velocity, control, controls, controller, stiffness [N m/rad, N/m],
            damping, drive_limit, drive_mode, drive_limit_kind.
            Couplings and limits: coupling, coupling_frequency [Hz], coupling_damping, coupling_erp, velocity_limits,
            link_damping, link_velocity_limit, com_velocity_limit, friction_coefficient.
            Contact: contacts, ground, ground_height [m], ground_friction, self_collide, decompose, continuous,
            restitution, cone, max_contacts.
            Solver: solver, iterations. Sleep: sleep_threshold [m²/s²], sleep_time [s].

            artsim.io.settings.SimulateOptions tells the type, unit and meaning of each.

    Returns:
        The run in memory, by names of variables: recording["qpos"] (rows, nq); with `output` the file, opened.

    Raises:
        UsageError: an unknown option or name, a value out of bounds. ModelError: the model cannot be simulated.
        StoppedError: the run stopped early, unless check=False.
    """
    from artsim.io import runs

    return runs.simulate(_robot(robot), **options)


def rollout(robot: Robot | str | PathLike[str], **options: Unpack[RolloutOptions]) -> MemoryRollout | RolloutRecording:
    """Simulate many variations of a run.

    Args:
        robot: what `load` returned, or a file.
        options: samples (how many, needed), start, spread, velocity_spread, randomise, threads, and those of
            `simulate` but compress and checkpoint; artsim.io.settings.RolloutOptions tells the type of each.

    Returns:
        The results in memory, by names: rollout["qpos"] (samples, rows, nq); with `output` the file, opened.

    Raises:
        UsageError, ModelError, StoppedError: as `simulate`.
    """
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
    from artsim.sim.quantities.robot import Robot

    return robot if isinstance(robot, Robot) else load(robot)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'artsim' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
