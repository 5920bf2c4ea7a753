"""The keyword arguments of artsim.simulate, artsim.Simulation and artsim.rollout, typed, for editors and type checkers.

A setting has the name and meaning of RunConfig's field (sim/runs/configuration.py), which checks it. SI units.
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
"""Numbers by name ("*": every joint of one dof that is no follower), or in the model's order; of gains one for all."""
Pair = tuple[float | None, float | None]
"""Of the linear and of the angular motion; None: none."""


class RunSettings(TypedDict, total=False):
    """What a run does."""

    steps: int  # steps to take
    dt: float | None  # time step [s]; None: the file's, else 0.002
    every: int  # a row is recorded every so many steps
    base: Literal["fixed", "floating"]  # whether a URDF's root link is fixed to the world or free
    balance_inertia: bool  # inertias that no body can have are replaced by the nearest that one can
    ignore_unsupported: bool  # what artsim lacks is left out, with a note
    density: float | None  # of links without mass in a URDF, from their shapes [kg/m³]
    gravity: Sequence[float] | None  # (3,) [m/s²]; None: the file's
    keyframe: str  # of the file, to start from
    q0: Values  # coordinates at the start, by coordinate [rad or m]
    v0: Values  # velocities at the start, by dof [rad/s or m/s]
    activation: Mapping[str, float]  # of actuators with dynamics, at the start
    control: Values  # controls of actuators, by name
    target: Values  # what drives aim at [rad or m]
    target_velocity: Values  # what drives aim at [rad/s or m/s]
    torque: Values  # joint forces [N m or N]
    stiffness: Values  # of drives [N m/rad or N/m]; of acceleration drives [1/s²]
    damping: Values  # of drives [N m s/rad or N s/m]; of acceleration drives [1/s]
    drive_limit: Values  # largest force of a drive [N m or N]
    drive_mode: Literal["force", "acceleration"]  # whether gains make forces or accelerations
    drive_limit_kind: Literal["force", "impulse"]  # whether limits hold for the force or for the impulse of a step
    friction_coefficient: Values  # of joints whose friction follows the load that they carry
    solver: Literal["newton", "pgs", "tgs", "block-gs", "propagation", "direct"]  # of constraint rows
    iterations: int  # sweeps of pgs, tgs and block-gs
    coupling_erp: float  # share of a hard row's error that a step takes back; 0: all of it over a tenth of a second
    integrator: Literal["auto", "semi-implicit-euler", "rk4"]  # "auto": the file's where it can serve the robot
    coordinates: Literal["reduced", "maximal"]  # "maximal": six for every body, joints as constraints
    scheme: str  # of maximal coordinates: "auto", "baumgarte" or "implicit"
    scheme_alpha: float | None  # Baumgarte: [1/s]; implicit: the share of the force that is the step's end
    scheme_beta: float | None  # Baumgarte: [1/s²]; implicit: the share of the velocity that is the step's end
    coupling: Literal["auto", "exact", "rows", "compliant"]  # how mimic joints and equalities are held
    coupling_frequency: float | None  # natural frequency of compliant couplings [Hz]
    coupling_damping: float  # damping ratio of compliant couplings
    velocity_limits: bool  # whether the file's velocity limits of joints hold
    contacts: bool  # whether anything touches
    self_collide: bool  # whether robots of a URDF touch themselves
    decompose: bool  # whether meshes much smaller than their hulls collide as convex parts
    continuous: bool  # whether what turns far in a step stops where it would pass through something thin
    restitution: float  # of all contacts, at least
    cone: Literal["elliptic", "pyramidal"]  # the shape of friction cones
    max_contacts: int  # contacts at once that stop the run
    ground: bool  # whether there is level ground
    ground_friction: float  # friction coefficient of the ground; of it and a geom's the larger counts
    ground_height: float  # [m]
    link_damping: Mapping[str, Pair]  # by link or pattern, of linear and angular motion [1/s]
    link_velocity_limit: Mapping[str, Pair]  # by link or pattern [m/s, rad/s]
    com_velocity_limit: Pair | None  # of the whole robot, by its centre of mass [m/s, rad/s]
    sleep_threshold: float  # kinetic energy per mass below which links are still [m²/s²]; 0: nothing sleeps
    sleep_time: float  # how long links are still before the robot sleeps [s]
    record: Sequence[str]  # the variables to record
    seed: int  # of what is random


class RolloutSettings(RunSettings, total=False):
    """What a rollout does: many variations of a run."""

    start: str  # "given", or a distribution that starts are drawn from
    spread: float  # starts are drawn so far about the given one [rad, m]
    velocity_spread: float  # likewise of velocities [rad/s, m/s]
    randomise: Mapping[str, tuple[float, float]]  # factors from … to, by what they multiply


class SimulateOptions(RunSettings, total=False):
    """What artsim.simulate takes beside the robot."""

    controller: ControllerFunction | str  # a built-in one's name, or function(t, qpos, qvel) -> joint forces (nv,)
    controls: Controls | str | PathLike[str] | None  # inputs over time
    output: str | PathLike[str] | None  # HDF5 file to write
    force: bool  # whether the output may overwrite a file
    compress: str | None  # "gzip" or "zstd"
    checkpoint: int | None  # steps between states in the output to go on from; 0: none
    check: bool  # whether a run that stops early is an error


class RolloutOptions(RolloutSettings, total=False):
    """What artsim.rollout takes beside the robot."""

    samples: Required[int]  # how many
    controller: str  # a built-in one's name
    controls: Controls | Sequence[Controls] | str | PathLike[str] | None  # inputs of all samples, or one for each
    output: str | PathLike[str] | None  # HDF5 or .npz file to write
    threads: int | None  # cores to compute on; None: all
    force: bool  # whether the output may overwrite a file
    check: bool  # whether samples that stop early are an error
