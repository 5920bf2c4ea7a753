"""The keyword arguments of artsim.simulate, artsim.Simulation and artsim.rollout, typed, for editors and type checkers.

A setting has the name and meaning of the field of RunConfig (sim/runs/configuration.py), which checks it. SI units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from artsim.sim.runs.controls import Controls
    from artsim.sim.runs.simulate import ControllerFunction

Values = float | Mapping[str, float] | Sequence[float] | NDArray[np.floating[Any]]
"""Numbers by name ("*": every independent joint of one dof) or in the model's order; for gains also one for all."""
Pair = tuple[float | None, float | None]
"""Values for the linear and for the angular motion; None: no limit or damping."""


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
    activation: Mapping[str, float]  # initial activations, by actuator
    control: Values  # controls of actuators, by name
    target: Values  # position targets of drives [rad or m]
    target_velocity: Values  # velocity targets of drives [rad/s or m/s]
    torque: Values  # joint forces [N m or N]
    stiffness: Values  # stiffness of drives [N m/rad or N/m]; of acceleration drives [1/s²]
    damping: Values  # damping of drives [N m s/rad or N s/m]; of acceleration drives [1/s]
    drive_limit: Values  # largest force of a drive [N m or N]
    drive_mode: Literal["force", "acceleration"]  # whether gains produce forces or accelerations
    drive_limit_kind: Literal["force", "impulse"]  # whether limits bound the force or the impulse per step
    friction_coefficient: Values  # joint friction per load that the joint transmits
    solver: Literal["newton", "pgs", "tgs", "block-gs", "propagation", "direct"]  # constraint solver
    iterations: int  # sweeps of pgs, tgs and block-gs
    coupling_erp: float  # share of a hard row's error removed per step; 0: initial errors over 0.1 s
    integrator: Literal["auto", "semi-implicit-euler", "rk4"]  # "auto": that of the file if it serves the robot
    coordinates: Literal["reduced", "maximal"]  # "maximal": six coordinates per body, joints as constraints
    scheme: str  # of maximal coordinates: "auto", "baumgarte" or "implicit"
    scheme_alpha: float | None  # Baumgarte: [1/s]; implicit: weight of the force at the end of the step
    scheme_beta: float | None  # Baumgarte: [1/s²]; implicit: weight of the velocity at the end of the step
    coupling: Literal["auto", "exact", "rows", "compliant"]  # how mimic joints and equalities are enforced
    coupling_frequency: float | None  # natural frequency of compliant couplings [Hz]
    coupling_damping: float  # damping ratio of compliant couplings
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
    record: Sequence[str]  # variables to record
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


class RolloutOptions(RolloutSettings, total=False):
    """The options of artsim.rollout besides the robot."""

    samples: Required[int]  # number of samples
    controller: str  # name of a built-in controller
    controls: Controls | Sequence[Controls] | str | PathLike[str] | None  # inputs for all samples or one per sample
    output: str | PathLike[str] | None  # HDF5 or .npz file to write
    threads: int | None  # number of threads; None: one per core
    force: bool  # whether the output may overwrite a file
    check: bool  # whether samples that stop early are an error
