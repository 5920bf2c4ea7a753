"""The keyword arguments of artsim.load, compute, simulate, Simulation and rollout, typed, for type checkers.

A setting has the name and meaning of the field of RunConfig (sim/runs/configuration.py), which checks it. SI units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from artsim.sim.runs.controls import Controls
    from artsim.sim.runs.simulate import ControllerFunction

Values = float | Mapping[str, float] | Sequence[float] | NDArray[np.floating[Any]]
"""Numbers by name or pattern ("*_knee"), or in the model's order; for gains also one for all."""
Place = Sequence[float]
"""X, Y, Z [m], or these and roll, pitch, yaw [rad]."""
Pair = tuple[float | None, float | None]
"""Values for the linear and for the angular motion; None: no limit or damping."""

DriveMode = Literal["force", "acceleration"]
LimitKind = Literal["force", "impulse"]


class RunSettings(TypedDict, total=False):
    """The settings of a run."""

    steps: int  # number of time steps
    dt: float | None  # time step [s]; None: that of the file, else 0.002
    every: int  # steps between two recorded rows
    base: Literal["fixed", "floating"]  # whether a URDF's root link is fixed to the world or floating
    balance_inertia: bool  # whether inertias that no rigid body can have are replaced by the nearest valid ones
    ignore_unsupported: bool  # whether unsupported elements are left out, with a note
    density: float | None  # from which links of a URDF without mass get that of their shapes [kg/m³]
    gravity: Sequence[float] | None  # gravitational acceleration (3,) [m/s²]; None: that of the file
    keyframe: str  # keyframe of the file to start from
    q0: Values  # initial coordinates, by coordinate [rad or m]
    v0: Values  # initial velocities, by dof [rad/s or m/s]
    base_pose: Place | Mapping[str, Place]  # pose of the only free base, or poses by joint or link
    on_ground: float | None  # gap between the lowest shape of a free base and the ground at the start [m]
    activation: Mapping[str, float]  # initial activations, by actuator
    control: Values  # controls of actuators, by name
    target: Values  # position targets of drives [rad or m]
    target_velocity: Values  # velocity targets of drives [rad/s or m/s]
    target_acceleration: Values  # accelerations for computed torque, beside its feedback [rad/s² or m/s²]
    interpolate: Literal["hold", "linear", "cubic"]  # how inputs over time go from row to row
    torque: Values  # joint forces [N m or N]
    stiffness: Values  # stiffness of drives [N m/rad or N/m]; of acceleration drives [1/s²]
    damping: Values  # damping of drives [N m s/rad or N s/m]; of acceleration drives [1/s]
    drive_limit: Values  # largest force of a drive [N m or N]
    drive_mode: DriveMode | Mapping[str, DriveMode]  # whether gains produce forces or accelerations
    drive_limit_kind: LimitKind | Mapping[str, LimitKind]  # whether limits bound the force or the impulse per step
    joint_friction: float | Mapping[str, float]  # Coulomb friction of joints instead of the file's [N m or N]
    armature: float | Mapping[str, float]  # armature of joints instead of the file's [kg m² or kg]
    wrench: Mapping[str, Sequence[float]]  # force [N], and torque [N m], on links, by link or pattern
    wrench_at: str | Sequence[float] | Mapping[str, str | Sequence[float]]  # "origin", "com" or a point [m]; by link
    wrench_frame: str | Mapping[str, str]  # axes of wrenches: "world" or "link"; also by link
    push: Sequence[str | tuple[str, Sequence[float], float]]  # link, impulse (3,) or (6,) [N s, N m s], time [s]
    friction_coefficient: Values  # joint friction per load that the joint transmits
    lower_limit: Values  # position limits instead of the file's, of any axis with a coordinate [rad or m]
    upper_limit: Values
    limit_stiffness: Values  # of position limits that give way [N m/rad or N/m]
    limit_damping: Values  # of these [N m s/rad or N s/m]
    swing_limit: Mapping[str, float | tuple[float, float]]  # half angles about y and z of a ball's cone [rad]
    twist_limit: Mapping[str, tuple[float, float]]  # lower and upper limit of a ball's twist about its axis [rad]
    twist_axis: Mapping[str, Literal["x", "y", "z"] | Sequence[float]]  # in the joint's frame; default: x
    solver: Literal["newton", "pgs", "tgs", "block-gs", "propagation", "direct", "jacobi", "brute"]
    iterations: int  # sweeps of pgs, tgs, block-gs and jacobi
    velocity_iterations: int  # pgs, tgs: sweeps after those that positions move by, without correcting errors
    error_step: Literal["step", "sub-step"]  # tgs: the time over which each sub-step corrects an error
    relaxation: float  # jacobi: share of its turn that a row takes
    mass_splitting: bool  # jacobi: whether rows that share bodies see shards of their mass
    coupling_erp: float | Mapping[str, float]  # share of a hard row's error removed per step; 0: errors over 0.1 s
    # "auto": that of the file if it serves the robot, else "midpoint", which sweeping solvers and bodies do not have
    integrator: Literal["auto", "midpoint", "semi-implicit-euler", "rk4"]
    coordinates: Literal["reduced", "maximal"]  # "maximal": six coordinates per body, joints as constraints
    scheme: Literal["auto", "baumgarte", "implicit"]  # how constraints are enforced; "auto": implicit
    scheme_alpha: float | None  # Baumgarte: [1/s]; implicit: weight of the force at the end of the step
    scheme_beta: float | None  # Baumgarte: [1/s²]; implicit: weight of the velocity at the end of the step
    constraint_alpha: Mapping[str, float]  # Baumgarte's α of single constraints [1/s], by joint, loop or tendon
    constraint_beta: Mapping[str, float]  # and their β [1/s²]
    coupling: Literal["auto", "exact", "rows", "compliant"]  # how mimic joints and equalities are enforced
    coupling_frequency: float | Mapping[str, float] | None  # natural frequency of compliant couplings [Hz]
    coupling_damping: float | Mapping[str, float]  # damping ratio of compliant couplings
    compliance: Mapping[str, float]  # of couplings, tendons, loops [rad/(N m) or m/N]; 0: hard, inf: no constraint
    compliance_damping: Mapping[str, float]  # D [s] of these: force -(C + D Ċ) / compliance at an error C
    coupling_ratio: Mapping[str, float]  # ratio of a linear coupling instead of the file's, by following joint
    coupling_offset: Mapping[str, float]  # its offset [rad or m]
    velocity_limits: bool  # whether the joints' velocity limits are enforced
    contacts: bool  # whether contacts are simulated
    self_collide: bool  # whether links of a URDF collide with each other
    decompose: bool  # whether meshes much smaller than their convex hulls collide as convex parts
    continuous: bool  # continuous collision detection for bodies that turn far in a step
    restitution: float  # smallest coefficient of restitution of all contacts
    cone: Literal["elliptic", "pyramidal"]  # shape of the friction cone
    max_contacts: int  # largest number of simultaneous contacts; more stop the run
    ground: bool  # whether there is level ground
    ground_friction: float  # friction coefficient of the ground; a contact uses the larger of it and the geom's
    ground_height: float  # height of the ground [m]
    link_damping: Mapping[str, Pair]  # damping of linear and angular motion [1/s], by link or pattern
    link_velocity_limit: Mapping[str, Pair]  # largest velocities [m/s, rad/s], by link or pattern
    com_velocity_limit: Pair | None  # largest velocities of the whole robot at its centre of mass [m/s, rad/s]
    sleep_threshold: float  # kinetic energy per mass of a link at rest [m²/s²]; 0: no sleeping
    sleep_time: float  # time that all links are at rest before the robot sleeps [s]
    record: Sequence[str]  # variables to record; "+NAME" adds to the default
    seed: int  # seed of random numbers


class RolloutSettings(RunSettings, total=False):
    """The settings of a rollout, which simulates many variations of a run."""

    start: str  # "given", or a distribution from which initial states are drawn
    spread: float | Mapping[str, float | Pair]  # largest random offsets of initial coordinates [rad, m], or their ends
    velocity_spread: float  # largest random offset of the initial velocities [rad/s, m/s]
    randomise: Mapping[str, tuple[float, float]]  # ranges of random factors, by the property that they multiply


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
    controls: Controls | Sequence[Controls] | str | PathLike[str] | None  # inputs for all samples or one per sample
    output: str | PathLike[str] | None  # HDF5 or .npz file to write
    threads: int | None  # number of threads; None: one per core
    force: bool  # whether the output may overwrite a file
    check: bool  # whether samples that stop early are an error
    progress: bool  # whether a bar shows the progress on a terminal or in a notebook


class LoadOptions(TypedDict, total=False):
    """The options of artsim.load besides the file."""

    base: Literal["fixed", "floating"]  # whether a URDF's root link is fixed to the world or floating
    packages: Mapping[str, str | PathLike[str]]  # folders that package://NAME/ stands for
    coupling: Literal["auto", "exact", "rows", "compliant"]  # how mimic joints and equalities are enforced
    coupling_frequency: float | None  # natural frequency of compliant couplings [Hz]
    coupling_damping: float  # damping ratio of compliant couplings
    gravity: Sequence[float] | None  # gravitational acceleration (3,) [m/s²]; None: that of the file
    keyframe: str  # keyframe of the file where runs start
    mesh_root: str | PathLike[str] | None  # further folder that meshes may come from
    balance_inertia: bool  # whether inertias that no rigid body can have are replaced by the nearest valid ones
    ignore_unsupported: bool  # whether unsupported elements are left out, with a warning
    meshes: bool  # False: mesh files are not looked for
    strict: bool  # whether an incomplete or ambiguous model is refused
    xacro: bool  # whether macros are expanded; they can run code
    max_xml_mb: float  # largest model file that is read [MB]
    max_faces: int | None  # largest number of triangles of a mesh
    density: float | None  # from which links of a URDF without mass get that of their shapes [kg/m³]
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
