"""artsim: articulated robots simulated from a shell; exact couplings, audited joint forces, bit-for-bit replay.

    robot = artsim.load("robot.urdf")
    out = robot.compute(qpos, quantities=["mass_matrix", "jacobian"])
    recording = artsim.simulate(robot, steps=1000, dt=0.002)
    recording["qpos"], recording.labels.coord, recording.time

Importing the package is cheap: submodules are imported on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import Any, Literal, Unpack

    import numpy as np
    from numpy.typing import ArrayLike

    from artsim.io.environments.vector_env import Environment, VectorEnvironment
    from artsim.io.readers.batch_recording import BatchRecording
    from artsim.io.readers.ik_recording import IkRecording
    from artsim.io.readers.recording import Recording
    from artsim.io.readers.rollout_recording import RolloutRecording
    from artsim.io.rollouts.rollout import MemoryRollout
    from artsim.io.runs.simulate import MemoryRecording
    from artsim.io.settings import ComputeOptions, LoadOptions, RolloutOptions, SimulateOptions
    from artsim.loaders.writers.changes import Changes
    from artsim.loaders.writers.write import Written
    from artsim.sim.quantities.robot import Robot
    from artsim.sim.runs.linearization import LinearModel
    from artsim.sim.runs.settings import RunSettings

__version__ = "0.1.0"

_LAZY = {
    "ArtsimError": "artsim.sim.foundation.errors",
    "BatchRecording": "artsim.io.readers.batch_recording",
    "Clearance": "artsim.sim.runs.clear_poses",
    "ContactPoint": "artsim.sim.quantities.inverse_dynamics",
    "IkRecording": "artsim.io.readers.ik_recording",
    "MissingInputError": "artsim.sim.foundation.errors",
    "ModelError": "artsim.sim.foundation.errors",
    "ModelWarning": "artsim.loaders.load_robot",
    "Recording": "artsim.io.readers.recording",
    "Robot": "artsim.sim.quantities.robot",
    "RolloutRecording": "artsim.io.readers.rollout_recording",
    "Simulation": "artsim.io.runs.stepping",
    "Target": "artsim.sim.ik.wanted_poses",
    "StoppedError": "artsim.sim.foundation.errors",
    "UsageError": "artsim.sim.foundation.errors",
    "VectorSimulation": "artsim.io.rollouts.vector",
    "gradient": "artsim.io.runs.gradient",
}

__all__ = ["__version__", "compute", "linearize", "load", "make_env", "open", "rollout", "simulate", "write", *_LAZY]


def load(path: str | PathLike[str], **options: Unpack[LoadOptions]) -> Robot:
    """Load a robot file; artsim.loaders.load_robot.load_robot describes the options (base, packages, coupling, …)."""
    from artsim.loaders.load_robot import load_robot

    return load_robot(path, **options)


def write(
    robot: Robot | str | PathLike[str],
    path: str | PathLike[str],
    *,
    force: bool = False,
    strict: bool = False,
    meshes: Literal["copy", "path"] = "copy",
    **changes: Unpack[Changes],
) -> Written:
    """Write a robot to a file in another format, load the file, and compare.

    Args:
        robot: a Robot, as returned by `load`, or the path of a robot file.
        path: the file; its suffix is the format: .urdf, .xml or .mjcf, .sdf, .usda.
        force: replace a file that exists.
        strict: refuse what the format cannot say.
        meshes: "copy" puts mesh files into a folder meshes beside the file, "path" names them where they are.
        changes: new values by names: mass (inertias grow with it), limits, effort, velocity, damping, friction,
            armature, stiffness, spring_reference, and gains (kp, kv) of servos.

    Returns:
        The path, the files of meshes, the losses (`losses.entries`), and the proof: `proof.holds` is True if nothing
        differs that was not told, `proof.rows` is the table.

    Raises:
        UsageError: a suffix that is no format, an unknown name, a robot that the format cannot say.
        OutputError: the file exists, or cannot be written.
    """
    from artsim.loaders.writers.write_robot import write_robot

    return write_robot(_robot(robot), path, force=force, strict=strict, meshes=meshes, **changes)


def simulate(robot: Robot | str | PathLike[str], **options: Unpack[SimulateOptions]) -> MemoryRecording | Recording:
    """Simulate a robot.

    Args:
        robot: a Robot, as returned by `load`, or the path of a robot file.
        options: keyword arguments: the settings of a run (steps, dt, q0, torque, stiffness, record, …), of which
            `help(artsim.io.settings.RunSettings)` tells unit and meaning, and controller, controls, output, force,
            compress, checkpoint, check, progress, threads, of which artsim.io.settings.SimulateOptions tells them.
            Values per joint are mappings from joint names or patterns ("*_knee"), or sequences in the model's order.

    Returns:
        The run in memory, indexed by the names of its variables: recording["qpos"] (rows, nq); with `output`, the
        opened file.

    Raises:
        UsageError: an unknown option or name, a value out of bounds.
        ModelError: the model cannot be simulated.
        StoppedError: the run stopped early, unless check=False.
    """
    from artsim.io.runs import simulate as from_python

    return from_python.simulate(_robot(robot, options), **options)


def rollout(robot: Robot | str | PathLike[str], **options: Unpack[RolloutOptions]) -> MemoryRollout | RolloutRecording:
    """Simulate many variations of one run.

    Args:
        robot: a Robot, as returned by `load`, or the path of a robot file.
        options: samples (their number, required), start, spread, velocity_spread, randomise, until, cost, policy, hold,
            derivatives, threads, and those of `simulate` except compress and checkpoint;
            artsim.io.settings.RolloutOptions gives the type and meaning of each. Inputs may be arrays (samples, rows,
            n).

    Returns:
        The results in memory, indexed by name: rollout["qpos"] (samples, rows, nq); with `output`, the opened file.

    Raises:
        UsageError, ModelError: as `simulate`.
        StoppedError: a sample stopped early, with check=True; a cost or a policy's input is not finite.
    """
    from artsim.io.rollouts import rollout as from_python

    return from_python.rollout(_robot(robot, options), **options)


def linearize(
    robot: Robot | str | PathLike[str],
    inputs: Sequence[str] | None = None,
    *,
    trim: bool = False,
    hold_contacts: bool = True,
    step: float = 1e-5,
    **settings: Unpack[RunSettings],
) -> LinearModel:
    """Find linear models of a robot about the state in which `simulate` with these settings would start.

    Args:
        robot: a Robot, as returned by `load`, or the path of a robot file.
        inputs: "torque", "target", "target_velocity", "target_acceleration", "control"; by default controls of
            actuators, else targets of drives with gains, else torques; "torque:*_knee" names some of them, and those of
            a base are only there if named.
        trim: look for a state at rest nearby first, and the inputs that keep it there.
        hold_contacts: in the continuous model, contacts that press at the state stay where they are; otherwise there
            are none.
        step: of differences [rad, m, rad/s, m/s].
        settings: those of `simulate`.

    Returns:
        `continuous` and `discrete` (of one step), each with A, B, C, D, names, poles and `lqr(Q, R)`; the state.

    Raises:
        UsageError: an unknown name, or no state at rest is near; ModelError: the model cannot be simulated.
    """
    from artsim.io.runs import linear_models as from_python

    options: Any = settings
    made = _robot(robot, options)
    return from_python.linearize(made, inputs, trim=trim, hold_contacts=hold_contacts, step=step, **options)


def make_env(
    task: str | PathLike[str] | Mapping[str, Any],
    num_envs: int | None = None,
    *,
    autoreset_mode: str = "NextStep",
    threads: int | None = None,
) -> VectorEnvironment | Environment:
    """Make environments for learning, of gymnasium.

    Args:
        task: a TOML file that describes the task, or a mapping with its keys; docs/howto/learn.md tells them.
        num_envs: number of robots of a gymnasium.vector.VectorEnv; None: a gymnasium.Env of one.
        autoreset_mode: "NextStep", "SameStep" or "Disabled", gymnasium's names of when ended episodes begin anew.
        threads: number of threads; None: one per core. Results do not depend on it.

    Raises:
        UsageError: gymnasium is missing, or the task is wrong; ModelError, MissingInputError: so is its model.
    """
    from artsim.io.environments.make import environment, vector_environment
    from artsim.io.environments.task import read_task

    described = read_task(task)
    robot = _robot(described.model, described.settings)
    if num_envs is None:
        return environment(robot, described)
    return vector_environment(robot, described, num_envs, autoreset_mode=autoreset_mode, threads=threads)


def open(path: str | PathLike[str]) -> Recording | BatchRecording | IkRecording | RolloutRecording:
    """Open an output of `artsim run`, `batch`, `ik` or `rollout` for reading; malformed files are refused."""
    from artsim.io.readers.open_output import open_output

    return open_output(path)


def compute(
    robot: Robot | str | PathLike[str], qpos: ArrayLike, **options: Unpack[ComputeOptions]
) -> dict[str, np.ndarray[Any, Any]]:
    """Compute rigid-body quantities of one or many configurations.

    Args:
        robot: a Robot, as returned by `load`, or the path of a robot file.
        qpos: configurations, (nq,) or (N, nq).
        options: the remaining arguments of `Robot.compute` (qvel, qacc, tau, wrench, quantities, reduced, at, links,
            packed, threads, out), which describes them.

    Returns:
        The results by name, (N, …), or (…) for a single configuration.

    Raises:
        UsageError: an unknown quantity or link, a wrong shape.
    """
    return _robot(robot).compute(qpos, **options)


def _robot(robot: Robot | str | PathLike[str], settings: Mapping[str, Any] | None = None) -> Robot:
    """The robot, or that of a file, read as the settings of a run ask."""
    from artsim.sim.quantities.robot import Robot
    from artsim.sim.runs.reading import OF_MODEL

    if isinstance(robot, Robot):
        return robot
    options: Any = {name: value for name, value in (settings or {}).items() if name in OF_MODEL}
    return load(robot, **options)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'artsim' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
