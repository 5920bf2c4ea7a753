"""The keyword arguments of artsim.load, compute, simulate, Simulation and rollout, typed, for type checkers.

The settings of a run among them, with their meanings, are in sim/runs/settings.py. SI units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

from artsim.sim.run_data.link_rules import Pair
from artsim.sim.runs.settings import RunSettings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from artsim.sim.runs.controls import Controls
    from artsim.sim.runs.simulate import ControllerFunction

    Policy = Callable[[NDArray[Any], NDArray[Any], float], Any]
    StartOfSamples = str | PathLike[str] | ArrayLike | Mapping[str, ArrayLike | Mapping[str, ArrayLike]]
    ControlsOfSamples = (
        Controls
        | Sequence[Controls]
        | NDArray[Any]
        | Mapping[str, ArrayLike]
        | str
        | PathLike[str]
        | Sequence[str]
        | Sequence[PathLike[str]]
        | None
    )


class RolloutSettings(RunSettings, total=False):
    """The settings of a rollout, which simulates many variations of a run."""

    start: StartOfSamples  # "given", a distribution, qpos (samples, nq), or `qpos` and `qvel` by name or in a file
    spread: float | Mapping[str, float | Pair]  # largest random offsets of initial coordinates [rad, m], or their ends
    velocity_spread: float  # largest random offset of the initial velocities [rad/s, m/s]
    randomise: Mapping[str, tuple[float, float] | ArrayLike]  # ranges of factors by property, or (samples, parts)
    until: str  # expression that ends a sample where it is not 0: "trunk.z < 0.2"
    cost: str  # expression that is summed over the steps, at the state before each: `cost` (samples,)


class SimulateOptions(RunSettings, total=False):
    """The options of artsim.simulate besides the robot."""

    controller: ControllerFunction | str  # name of a built-in one, or function(t, qpos, qvel) -> joint forces (nv,)
    controls: Controls | str | PathLike[str] | None  # inputs over time
    output: str | PathLike[str] | None  # HDF5 file to write
    force: bool  # whether the output may overwrite a file
    compress: str | None  # "gzip" or "zstd"
    checkpoint: int | None  # steps between checkpoints in the output; 0: none
    check: bool  # whether a run that stops early is an error
    progress: bool  # whether a bar shows the progress on a terminal or in a notebook
    threads: int  # number of threads that solve groups of bodies in contact side by side; 1 by default


class RolloutOptions(RolloutSettings, total=False):
    """The options of artsim.rollout besides the robot."""

    samples: Required[int]  # number of samples
    controller: str  # name of a built-in controller
    controls: ControlsOfSamples  # inputs over time; arrays (samples, rows, n), as `control`, `torque`, … may be; files
    output: str | PathLike[str] | None  # HDF5 or .npz file to write
    threads: int | None  # number of threads; None: one per core
    force: bool  # whether the output may overwrite a file
    policy: Policy | str | PathLike[str] | None  # function(qpos, qvel, time) -> inputs of all samples; an ONNX file
    hold: int  # steps for which the inputs act that it gives
    derivatives: bool | Sequence[str]  # of each step from a recorded row, by the action or by inputs of these names
    check: bool  # whether samples that stop early are an error; False by default: `status` and `n_valid` tell of them
    progress: bool  # whether a bar shows the progress on a terminal or in a notebook


class LoadOptions(TypedDict, total=False):
    """The options of artsim.load besides the file; those without a comment are settings of a run."""

    base: Literal["fixed", "floating"]
    packages: Mapping[str, str | PathLike[str]]  # folders that package://NAME/ stands for
    coupling: Literal["auto", "exact", "rows", "compliant"]
    coupling_frequency: float | None
    coupling_damping: float
    gravity: Sequence[float] | None
    keyframe: str
    mesh_root: str | PathLike[str] | None  # further folder that meshes may come from
    balance_inertia: bool
    ignore_unsupported: bool
    meshes: bool  # False: mesh files are not looked for
    strict: bool  # whether an incomplete or ambiguous model is refused
    xacro: bool  # whether macros are expanded; they can run code
    max_xml_mb: float  # largest model file that is read [MB]
    max_faces: int | None  # largest number of triangles of a mesh
    density: float | None
    arguments: Mapping[str, str] | None  # arguments of macros
    loops: str | PathLike[str] | None  # TOML file of loops that close the model's tree


class ComputeOptions(TypedDict, total=False):
    """The options of artsim.compute besides robot and configurations."""

    qvel: ArrayLike | None  # (nv,) or (N, nv) [rad/s or m/s]
    qacc: ArrayLike | None  # (nv,) or (N, nv) [rad/s² or m/s²]
    tau: ArrayLike | None  # (nv,) or (N, nv) [N m or N]
    wrench: ArrayLike | None  # (links, 6) or (N, links, 6) [N, N m]
    quantities: Sequence[str]  # names of the results
    reduced: bool  # whether results are in independent coordinates
    at: Literal["com", "origin"]  # reference point of Jacobians, velocities and wrenches
    links: Sequence[str] | None  # links of link quantities; None: all
    packed: bool  # whether symmetric matrices are returned as lower triangles
    threads: int | None  # number of threads; None: all cores
    out: Mapping[str, NDArray[Any]] | None  # arrays for results, by name; None: new ones
