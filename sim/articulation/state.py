"""State (the variables that change) and Workspace (scratch of the recursions), and their allocation."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.articulation.model import WORLD, Model
from artsim.sim.foundation.records import Lanes1, Lanes2, Lanes3, allocate

CONTACT_MEMORY = 11  # numbers per contact kept for the next step
# columns of State.contact: six impulses from FIRST_IMPULSE, along the contact's directions
SHAPE_A, SHAPE_B, FEATURE, FIRST_IMPULSE, REGULARISED, ALLOWED = 0, 1, 2, 3, 9, 10


class State(NamedTuple):
    """The variables that change from step to step, in full coordinates."""

    qpos: Lanes1  # (nq,)
    qvel: Lanes1  # (nv,)
    activation: Lanes1  # (nact,) of actuators
    impulse: Lanes1  # (rows,) of the last step's constraint rows, the solver's warm start [N s or N m s]
    contact: (
        Lanes2  # (k, 10) of the last step's contacts: two shapes, feature, impulses, Rows.regularised; two zeros: none
    )
    still: Lanes1  # (1,) number of consecutive steps in which every link was slow, for sleeping
    command: Lanes1  # (4 nv + ncontrol,) the inputs of the last step, a change of which wakes the robot
    history: Lanes1  # (…,) samples of delayed controls and sensors (equipment/delays.py)
    load: Lanes1  # (nv,) through each dof's joint in the last step [N or N m], for load-dependent friction
    change: Lanes1  # (nv,) of the velocities in the last step, which the next one expects to go on
    earlier_change: Lanes1  # (nv,) of the velocities in the step before the last one
    drive_held: Lanes1  # (nv,) -1: the drive ended the last step at its largest force backwards, 1: forwards


class Workspace(NamedTuple):
    """Scratch of the tree recursions; world axes throughout, each body about its own origin. T is float64 or pack.

    nb bodies (0: the world), nv dofs, nu independent dofs.
    """

    rotation: Lanes3  # (nb, 3, 3) internal frame to world
    offset: Lanes2  # (nb, 3) from the parent's origin to the body's [m]
    arm: Lanes2  # (nb, 3) the origin, from the tree's reference point: no digits lost far from the world's origin [m]
    axis: Lanes2  # (nv, 3) direction of each dof's translation, or axis of its rotation
    motion: Lanes2  # (6, nv) motion of the tree's reference point per unit velocity of each dof: linear, angular
    inertia: Lanes2  # (nb, 6) about the origin [kg m²]
    moment: Lanes2  # (nb, 3) mass times centre of mass from the origin [kg m]
    composite_moment: Lanes2  # (nb, 3) of the body and all below it
    composite_inertia: Lanes2  # (nb, 6)
    velocity: Lanes2  # (nb, 3) of the origin [m/s]
    angular_velocity: Lanes2  # (nb, 3) [rad/s]
    acceleration: Lanes2  # (nb, 3) of the origin, minus gravity [m/s²]
    angular_acceleration: Lanes2  # (nb, 3) [rad/s²]
    force: Lanes2  # (nb, 3) through the joint, parent on child [N]
    torque: Lanes2  # (nb, 3) about the body's origin [N m]
    articulated: Lanes2  # (nb, 21) articulated-body inertia: linear 6, coupling 9, angular 6
    projected: Lanes2  # (nv, 6) ABA: U = I S, linear then angular
    diagonal: Lanes1  # (nv,) ABA: the part of D that is armature and implicit terms
    pivot: Lanes1  # (nv,) ABA: 1 / D
    surplus: Lanes1  # (nv,) ABA: u
    gain: Lanes1  # (nv,) dof velocity per velocity of the independent dof that moves it (G)
    drift: Lanes1  # (nv,) dof acceleration at zero independent acceleration (Ġ u)
    mass_matrix: Lanes2  # (nv, nv) M with armature: lower triangle, entries of ancestors only
    factor: Lanes2  # (nu, nu) LᵀDL of GᵀM̂G, in place
    inverse_pivot: Lanes1  # (nu,) 1 / D
    bias: Lanes1  # (nv,) C(q, v) v + g (+ M Ġ u)
    reduced: Lanes1  # (nu,) scratch in independent coordinates
    stiffening: Lanes2  # (nb, 6) inertia added to taut bodies in M̂ (midpoint.py) [kg m²]
    slack: Lanes1  # (nv,) damping of taut bodies' joints [N m s/rad]
    struck: Lanes1  # (nb,) 1: the body has contacts, touching or speculative
    force_sum: Lanes1  # (nb,) scratch


def workspace_shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """Shapes of the Workspace fields for a model."""
    nb, nv, nu = len(model.body_parent), len(model.dof_body), len(model.independent_dof)
    vectors = dict.fromkeys(
        "offset arm moment composite_moment velocity angular_velocity acceleration "
        "angular_acceleration force torque".split(),
        (nb, 3),
    )
    return {
        **vectors,
        **dict.fromkeys(("diagonal", "pivot", "surplus", "gain", "drift", "bias", "slack"), (nv,)),
        "rotation": (nb, 3, 3),
        "axis": (nv, 3),
        "motion": (6, nv),
        "inertia": (nb, 6),
        "composite_inertia": (nb, 6),
        "stiffening": (nb, 6),
        "struck": (nb,),
        "force_sum": (nb,),
        "articulated": (nb, 21),
        "projected": (nv, 6),
        "mass_matrix": (nv, nv),
        "factor": (nu, nu),
        "inverse_pivot": (nu,),
        "reduced": (nu,),
    }


def make_workspace(model: Model, width: int = 1) -> Workspace:
    """Allocate a workspace with the world row (body 0) set: unit rotation, at rest, accelerating at -gravity."""
    work: Workspace = allocate(Workspace, workspace_shapes(model), width)
    for k in range(3):
        work.rotation[WORLD, k, k] = 1.0
        work.acceleration[WORLD, k] = -model.gravity[k]
    work.gain[:] = 1.0
    return work


class RobotBundle(NamedTuple):
    """The robot in a step. Functions that need no state take model and data alone."""

    model: Model
    state: State
    data: Workspace


def make_state(
    model: Model,
    width: int = 1,
    activations: int = 0,
    rows: int = 0,
    controls: int = 0,
    contacts: int = 0,
    history: int = 0,
) -> State:
    """Allocate a zeroed state (quaternions too: set them before use)."""
    shapes: dict[str, tuple[int, ...]] = {
        "qpos": (int(model.body_coord[-1]),),
        "qvel": (len(model.dof_body),),
        "activation": (activations,),
        "impulse": (rows,),
        "contact": (contacts, CONTACT_MEMORY),
        "still": (1,),
        "command": (4 * len(model.dof_body) + controls,),
        "history": (history,),
        **dict.fromkeys(("load", "change", "earlier_change", "drive_held"), (len(model.dof_body),)),
    }
    state: State = allocate(State, shapes, width)
    return state


class Joints(NamedTuple):
    """Scratch of joint_forces.py for nb bodies: motion in each body's own axes, rotation and displacement of joints."""

    sine: Lanes1  # (nb,) of a revolute or planar joint's angle
    cosine: Lanes1  # (nb,)
    turn: Lanes2  # (nb, 9) rotation of a ball or free joint: child's axes to the joint's
    reach: Lanes2  # (nb, 3) from the parent's origin to the body's in the parent's axes, if not constant [m]
    angular_velocity: Lanes2  # (nb, 3)
    angular_acceleration: Lanes2  # (nb, 3)
    acceleration: Lanes2  # (nb, 3) of the origin, minus gravity
    force: Lanes2  # (nb, 3)
    torque: Lanes2  # (nb, 3) about the origin


def make_joints(model: Model, width: int) -> Joints:
    """Allocate the scratch for a model."""
    nb = len(model.body_parent)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(Joints._fields, (nb, 3))
    shapes |= {"sine": (nb,), "cosine": (nb,), "turn": (nb, 9)}
    joints: Joints = allocate(Joints, shapes, width)
    return joints
