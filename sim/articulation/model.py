"""Model: the constant, read-only arrays of a robot, and the names along them.

A *body* moves as one: links joined by fixed joints are merged into it; massless bodies stand between the joints of a
link with several. Body 0 is the world. Each body's internal frame has its origin at the joint's anchor (in URDF the
link frame's origin) and, for revolute, prismatic and planar joints, its z axis along the joint's axis, so that a
joint's rotation is about z. Only merged_links.py makes internal frames; results leave the engine through
`link_rotation` and `link_position`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.records import ConstInts1, ConstReals1, ConstReals2, ConstReals3
from artsim.sim.foundation.rotations import Real

REVOLUTE, PRISMATIC, BALL, PLANAR, FREE = range(5)
LINEAR, ANGULAR = range(2)  # the two parts of a motion, in arrays with a number for each
WORLD = 0  # the root body of all others
D_MIN, D_MAX = range(2)  # columns of impedances (MuJoCo's solimp); -1 where there is none
D_POWER = 4
TWIST_LOWER, TWIST_UPPER, SWING_Y, SWING_Z, FLATNESS_Y, FLATNESS_Z = range(6)  # columns of Model.turn_range
BY_TURN, BY_PLACE, CONSTANT = range(3)  # columns of Model.axis_terms


class Model(NamedTuple):
    """Constant arrays. nb bodies (the world is body 0), nv dofs, nu independent dofs, nc couplings, nl links."""

    gravity: ConstReals1  # (3,) [m/s²]
    # bodies, parents first
    body_parent: ConstInts1  # (nb,)
    body_root: ConstInts1  # (nb,) the free body whose origin is the tree's reference point; 0: the world's origin
    body_alone: ConstInts1  # (nb,) 1: the body has no descendants, and is free or on a ball joint in the world
    joint_type: ConstInts1  # (nb,)
    body_dof: ConstInts1  # (nb + 1,) first dof of each body
    body_coord: ConstInts1  # (nb + 1,) first coordinate of each body
    tree_rotation: ConstReals3  # (nb, 3, 3) joint frame in the parent's internal frame
    tree_position: ConstReals2  # (nb, 3) [m]
    body_mass: ConstReals1  # (nb,) [kg]
    carried_mass: ConstReals1  # (nb,) of the body and all its descendants [kg]
    body_moment: ConstReals2  # (nb, 3) mass times centre of mass, internal frame [kg m]
    body_inertia: ConstReals2  # (nb, 6) about the body's origin, internal frame, xx xy xz yy yz zz [kg m²]
    # dofs
    dof_body: ConstInts1  # (nv,)
    dof_linear: ConstInts1  # (nv,) 1: translates along its axis, 0: rotates about it
    dof_coord: ConstInts1  # (nv,) its coordinate; -1 for the rotations of ball and free joints
    dof_parent: ConstInts1  # (nv,) the previous dof on the way to the root, -1 at the root
    dof_run: ConstInts1  # (nv,) first of the contiguous run of ancestors k, k-1, … that ends in k
    armature: ConstReals1  # (nv,) [kg m² or kg]
    damping: ConstReals1  # (nv,) [N m s/rad or N s/m]
    stiffness: ConstReals1  # (nv,) [N m/rad or N/m]
    spring_reference: ConstReals1  # (nv,) [rad or m]; 0 for the rotations of ball and free joints
    friction: ConstReals1  # (nv,) [N m or N]
    friction_coefficient: ConstReals1  # (nv,) times the load in the joint (PhysX)
    lower: ConstReals1  # (nv,) position limits, ∓inf where there are none [rad or m]
    upper: ConstReals1  # for a ball's first dof: bound of its angle
    limit_stiffness: ConstReals1  # (nv,) of position limits that give way [N m/rad or N/m]; 0: hard
    limit_damping: ConstReals1  # (nv,) of these [N m s/rad or N s/m]
    velocity_limit: ConstReals1  # (nv,) inf where not enforced [rad/s or m/s]
    # limits of swing and twist of nt ball and free joints
    dof_turn: ConstInts1  # (nv,) the limits of the joint whose first rotation this is; -1: none
    turn_range: ConstReals2  # (nt, 6) twist, half angles of the swing (∓inf: none) [rad]; 1 / tan²(a quarter of these)
    turn_frame: ConstReals3  # (nt, 3, 3) the frame of swing and twist in the joint's
    effort: ConstReals1  # (nv,) inf where there is none [N m or N]
    # hard couplings, leaders first; a follower has exactly one (without a leader: constant)
    coupling_follower: ConstInts1  # (nc,) dof
    coupling_leader: ConstInts1  # (nc,) dof, itself perhaps a follower; -1: constant
    coupling_polynomial: ConstReals2  # (nc, 5) q_follower = Σ c_i q_leader^i
    independent_dof: ConstInts1  # (nu,) the remaining dofs
    dof_independent: ConstInts1  # (nv,) index among these of the one that moves this dof; -1: none
    independent_parent: ConstInts1  # (nu,) elimination tree of GᵀMG (the tree's own without couplings)
    independent_run: ConstInts1  # (nu,) as dof_run
    # couplings kept as rows, ordered by the first of their two dofs
    row_follower: ConstInts1  # (ns,) dof
    row_leader: ConstInts1  # (ns,) dof
    row_polynomial: ConstReals2  # (ns, 5)
    row_frequency: ConstReals1  # (ns,) [Hz], -1: hard, 0: by its compliance
    row_damping_ratio: ConstReals1  # (ns,)
    row_compliance: ConstReals1  # (ns,) [rad/(N m) or m/N], -1: none
    row_relaxation: ConstReals1  # (ns,) damping of the compliance [s]
    row_erp: ConstReals1  # (ns,) share of a hard row's error that a step corrects, -1: that of the run
    row_time: ConstReals1  # (ns,) [s] time constant of a solref; 0 where that gives stiffness and damping
    row_impedance: ConstReals2  # (ns, 5) MuJoCo's solimp; -1 for a plain spring
    row_mobility: ConstReals1  # (ns,) for rows with solimp: M⁻¹ of both joints in the file's pose, summed
    # na couplings of the twist t about an axis of a ball and a coordinate q: a t + b q + c = 0; by their first dof
    axis_turn: ConstInts1  # (na,) rotation of the ball
    axis_dof: ConstInts1  # (na,) dof of the coordinate
    axis_terms: ConstReals2  # (na, 3) a, b, c
    axis_follower: ConstInts1  # (na,) which of the two dofs follows the other
    axis_erp: ConstReals1  # (na,) share of the error that a step corrects, -1: that of the run
    # links, merged ones included
    link_body: ConstInts1  # (nl,)
    link_parent: ConstInts1  # (nl,) parent link, -1: the world
    link_rotation: ConstReals3  # (nl, 3, 3) link frame in its body's internal frame
    link_position: ConstReals2  # (nl, 3) [m]
    link_mass: ConstReals1  # (nl,) [kg]
    link_com: ConstReals2  # (nl, 3) in the link frame [m]
    link_inertia: ConstReals2  # (nl, 6) about the centre of mass, link axes [kg m²]


@dataclass(frozen=True)
class Labels:
    """Names along the arrays' axes, and the positions of each joint's coordinates and dofs."""

    links: tuple[str, ...]
    coords: tuple[str, ...]
    dofs: tuple[str, ...]
    independent_dofs: tuple[str, ...]
    coord_units: tuple[str, ...]
    dof_units: tuple[str, ...]
    force_units: tuple[str, ...]
    joint_coords: Mapping[str, slice] = field(repr=False)
    joint_dofs: Mapping[str, slice] = field(repr=False)


@dataclass(frozen=True)
class Compiled:
    """A model, its labels, and the coordinates at which the file draws the robot."""

    model: Model
    labels: Labels
    reference: Real  # (nq,)


def following_dofs(model: Model) -> set[int]:
    """The dofs that follow others, by elimination or by rows; of a ball whose axis follows, that rotation."""
    return {*model.coupling_follower.tolist(), *model.row_follower.tolist(), *model.axis_follower.tolist()}
