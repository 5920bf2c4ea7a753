"""Equipment as arrays: what a robot carries besides its tree, that is sites, tendons, actuators, loops and sensors.

Kernels receive the constants as equipment.model and the scratch as equipment.data. Robots without equipment run kernels
compiled without it (`equipment` is None there). No numba here: a process with warm kernels imports this module.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.records import (
    ConstInts1,
    ConstInts2,
    ConstReals1,
    ConstReals2,
    ConstReals3,
    Ints1,
    Reals1,
    Reals2,
    allocate,
)

# elements of a tendon's path
PATH_JOINT, PATH_SITE, PATH_SPHERE, PATH_CYLINDER, PATH_PULLEY = range(5)
# transmissions
JOINT, JOINT_IN_PARENT, TENDON, SITE, BODY, SLIDER_CRANK = range(6)
# activation dynamics
NO_DYNAMICS, INTEGRATOR, FILTER, FILTER_EXACT, MUSCLE_DYNAMICS, DC_MOTOR_DYNAMICS, PID_DYNAMICS = range(7)
# gains and biases
NO_BIAS, FIXED, AFFINE, MUSCLE, DC_MOTOR, PID = range(6)
# what the first parameters of affine gains and biases multiply
CONSTANT, PER_LENGTH, PER_VELOCITY = range(3)
# how an actuator's force enters a semi-implicit step: at its start, or at its end as a part of M̂ or as a row
EXPLICIT, IN_MATRIX, BY_ROW, GUESSED = range(4)  # GUESSED: held at its bound until the solution confirms it
# columns of activation_slot
SLEW, INTEGRAL, TEMPERATURE, BRISTLE, CURRENT = range(5)
# loops
CONNECT, WELD = range(2)
# columns of references, of softness -B Ċ - K d C
REFERENCE_K, REFERENCE_B = range(2)
# columns of ranges of lengths
SHORTEST, LONGEST = range(2)
# entries of medium
DENSITY, VISCOSITY, WIND_X, WIND_Y, WIND_Z = range(5)
# columns of damper_terms, the coefficients of |v| v and v³
QUADRATIC, CUBIC = range(2)
# columns of control_role of PID servos and DC motors
ROLE_POSITION, ROLE_VELOCITY, ROLE_FEEDFORWARD, ROLE_VOLTAGE = range(4)
ROLE_FOURTH = 3  # of rotation servos: the fourth component of a quaternion
# columns of scaling
INVERSE_SCALE, INVERSE_NORM, SOLUTIONS = range(3)
# columns of ray_hit; the normal follows
RAY_DISTANCE = 0

# sensors: at sites, of frames, of subtrees, the clock, touch, of joints, tendons and actuators
(
    ACCELEROMETER,
    VELOCIMETER,
    GYRO,
    FORCE,
    TORQUE,
    MAGNETOMETER,
    FRAME_POSITION,
    FRAME_QUATERNION,
    FRAME_X_AXIS,
    FRAME_Y_AXIS,
    FRAME_Z_AXIS,
    FRAME_LINEAR_VELOCITY,
    FRAME_ANGULAR_VELOCITY,
    FRAME_LINEAR_ACCELERATION,
    FRAME_ANGULAR_ACCELERATION,
    SUBTREE_COM,
    SUBTREE_VELOCITY,
    SUBTREE_ANGULAR_MOMENTUM,
    CLOCK,
    TOUCH,
    RANGEFINDER,
    CONTACT,
    JOINT_POSITION,
    JOINT_VELOCITY,
    JOINT_ACTUATOR_FORCE,
    JOINT_LIMIT_POSITION,
    JOINT_LIMIT_VELOCITY,
    JOINT_LIMIT_FORCE,
    BALL_QUATERNION,
    BALL_ANGULAR_VELOCITY,
    TENDON_POSITION,
    TENDON_VELOCITY,
    TENDON_ACTUATOR_FORCE,
    ACTUATOR_POSITION,
    ACTUATOR_VELOCITY,
    ACTUATOR_FORCE,
) = range(36)
# what a contact sensor asks of one side of a contact
ANYTHING, OF_GEOM, OF_LINK, OF_SUBTREE = range(4)
# which contacts a contact sensor outputs
AS_FOUND, LEAST_DISTANCE, MOST_FORCE, NET_FORCE = range(4)
SENSORS = {
    "accelerometer": ACCELEROMETER,
    "velocimeter": VELOCIMETER,
    "gyro": GYRO,
    "force": FORCE,
    "torque": TORQUE,
    "magnetometer": MAGNETOMETER,
    "framepos": FRAME_POSITION,
    "framequat": FRAME_QUATERNION,
    "framexaxis": FRAME_X_AXIS,
    "frameyaxis": FRAME_Y_AXIS,
    "framezaxis": FRAME_Z_AXIS,
    "framelinvel": FRAME_LINEAR_VELOCITY,
    "frameangvel": FRAME_ANGULAR_VELOCITY,
    "framelinacc": FRAME_LINEAR_ACCELERATION,
    "frameangacc": FRAME_ANGULAR_ACCELERATION,
    "subtreecom": SUBTREE_COM,
    "subtreelinvel": SUBTREE_VELOCITY,
    "subtreeangmom": SUBTREE_ANGULAR_MOMENTUM,
    "clock": CLOCK,
    "touch": TOUCH,
    "rangefinder": RANGEFINDER,
    "contact": CONTACT,
    "jointpos": JOINT_POSITION,
    "jointvel": JOINT_VELOCITY,
    "jointactuatorfrc": JOINT_ACTUATOR_FORCE,
    "jointlimitpos": JOINT_LIMIT_POSITION,
    "jointlimitvel": JOINT_LIMIT_VELOCITY,
    "jointlimitfrc": JOINT_LIMIT_FORCE,
    "ballquat": BALL_QUATERNION,
    "ballangvel": BALL_ANGULAR_VELOCITY,
    "tendonpos": TENDON_POSITION,
    "tendonvel": TENDON_VELOCITY,
    "tendonactuatorfrc": TENDON_ACTUATOR_FORCE,
    "actuatorpos": ACTUATOR_POSITION,
    "actuatorvel": ACTUATOR_VELOCITY,
    "actuatorfrc": ACTUATOR_FORCE,
}


class Equipment(NamedTuple):
    """Constant arrays of ns sites, nt tendons, na actuators, nloop loops. Frames are relative to a body's own frame."""

    reference: ConstReals1  # (nq,) coordinates in the file's pose
    relaxed: ConstReals1  # (nq,) coordinates in the pose of the joints' spring references
    site_body: ConstInts1  # (ns,)
    site_link: ConstInts1  # (ns,) -1: the world
    site_rotation: ConstReals3  # (ns, 3, 3)
    site_position: ConstReals2  # (ns, 3) [m]
    # tendons: path elements start[t] ≤ p < start[t + 1]; entries are the dofs that can change a length, in order
    tendon_path: ConstInts1  # (nt + 1,)
    path_kind: ConstInts1  # (np,)
    path_index: ConstInts1  # (np,) dof, site or wrap geom
    path_value: ConstReals1  # (np,) a joint's coefficient, a pulley's divisor
    path_side: ConstInts1  # (np,) side site of a wrap geom, -1: none
    wrap_body: ConstInts1  # (nw,)
    wrap_link: ConstInts1  # (nw,) -1: the world
    wrap_rotation: ConstReals3  # (nw, 3, 3)
    wrap_position: ConstReals2  # (nw, 3)
    wrap_radius: ConstReals1  # (nw,)
    tendon_entry: ConstInts1  # (nt + 1,)
    tendon_dof: ConstInts1  # (entries,)
    tendon_lower: ConstReals1  # (nt,) ∓inf where there are none [m or rad]
    tendon_upper: ConstReals1
    tendon_stiffness: ConstReals2  # (nt, 3) of x, x², x³
    tendon_damping: ConstReals2  # (nt, 3) of v, |v| v, v³
    tendon_spring: ConstReals2  # (nt, 2) the force is zero between; both NaN: the length in the relaxed pose
    tendon_friction: ConstReals1  # (nt,) [N]
    tendon_armature: ConstReals1  # (nt,) [kg]
    tendon_force_lower: ConstReals1  # (nt,) bound of the sum of its actuators
    tendon_force_upper: ConstReals1
    # tendon equalities
    tendon_row_follower: ConstInts1  # (nte,)
    tendon_row_leader: ConstInts1  # (nte,) -1: none
    tendon_row_polynomial: ConstReals2  # (nte, 5)
    tendon_row_reference: ConstReals2  # (nte, 2) K and B of soft ones; K -1: hard
    tendon_row_impedance: ConstReals2  # (nte, 5) MuJoCo's solimp; -1 for a plain spring
    # loops
    loop_kind: ConstInts1  # (nloop,)
    loop_body: ConstInts2  # (nloop, 2) bodies a and b
    loop_link: ConstInts2  # (nloop, 2) links a and b
    loop_rotation: ConstReals3  # (2 nloop, 3, 3) frames of a and b, one after the other
    loop_position: ConstReals2  # (2 nloop, 3)
    loop_torque_scale: ConstReals1  # (nloop,)
    loop_reference: ConstReals2  # (nloop, 2) MuJoCo's K [1/s²] and B [1/s]; K -1: hard
    loop_impedance: ConstReals2  # (nloop, 5) solimp
    loop_centre: ConstReals2  # (2 nloop, 3) the links' centres of mass
    loop_sliding: ConstReals1  # (2 nloop,) mass of a link that only slides (sliders.py); 0 of others [kg]
    dof_sliding: ConstReals1  # (nv,) mass of such a link, whose dof it is; 0 of others [kg]
    # passive forces
    compensated_mass: ConstReals1  # (nb,) or empty: mass of each body that gravity compensation carries [kg]
    compensated_moment: ConstReals2  # (nb, 3) first moment of that mass in the body's own frame [kg m]
    gravity_by_actuator: ConstInts1  # (nv,) 1: gravity compensation counts as an actuator's force
    damper_dof: ConstInts1  # (nd,) dofs whose damping is a polynomial
    damper_terms: ConstReals2  # (nd, 2) of |v| v and v³
    spring_body: ConstInts1  # (nk,) bodies whose joint's spring is a polynomial, or one of a ball or free joint
    spring_terms: ConstReals2  # (nk, 3) of x, |x| x (single coordinates: x²) and x³
    medium: ConstReals1  # (5,) density [kg/m³], viscosity [Pa s], wind [m/s]
    box_body: ConstInts1  # (nbox,) links in the medium, each as the box of its inertia
    box_rotation: ConstReals3  # (nbox, 3, 3) principal axes at the centre of mass
    box_position: ConstReals2  # (nbox, 3)
    box_size: ConstReals2  # (nbox, 3) [m]
    ellipsoid_body: ConstInts1  # (nel,) geoms in the medium as ellipsoids
    ellipsoid_rotation: ConstReals3  # (nel, 3, 3)
    ellipsoid_position: ConstReals2  # (nel, 3)
    ellipsoid_axes: ConstReals2  # (nel, 3) semi-axes [m]
    ellipsoid_coefficients: ConstReals2  # (nel, 5) drag: blunt, slender, angular; lift: Kutta, Magnus
    ellipsoid_added: ConstReals2  # (nel, 6) added mass and inertia per density [m³, m⁵]
    # actuators: na forces of theirs, nu controls, nact activations
    actuator_active: ConstInts1  # (na,) 0: disabled, exerts no force
    actuator_frozen: ConstInts1  # (na,) 1: its states stay as they are
    actuator_linear: ConstInts1  # (na,) EXPLICIT, or how it may enter a step where it is affine
    actuator_period: ConstReals1  # (na,) of a setpoint on a circle [rad], 0: none
    actuator_transmission: ConstInts1  # (na,)
    actuator_target: ConstInts1  # (na,) first dof, tendon, site or body
    actuator_reference: ConstInts1  # (na,) reference or slider site, -1: none
    actuator_axis: ConstInts1  # (na,) of the three forces of a rotation's servo, which follow each other; -1: no such
    actuator_gear: ConstReals2  # (na, 6)
    actuator_crank: ConstReals1  # (na,) [m]
    actuator_entry: ConstInts1  # (na + 1,)
    actuator_dof: ConstInts1  # (entries,)
    actuator_dynamics: ConstInts1  # (na,)
    actuator_gain: ConstInts1  # (na,)
    actuator_bias: ConstInts1  # (na,)
    dynamics_parameters: ConstReals2  # (na, 10)
    gain_parameters: ConstReals2  # (na, 10)
    bias_parameters: ConstReals2  # (na, 10)
    control_first: ConstInts1  # (na,) its first control
    control_role: ConstInts2  # (na, 4) for position, velocity, feedforward, voltage; or of a rotation; -1: none
    control_lower: ConstReals1  # (nu,)
    control_upper: ConstReals1
    force_lower: ConstReals1  # (na,)
    force_upper: ConstReals1
    force_norm: ConstReals1  # (na,) bound of the norm of a rotation's servo [N m], inf: none
    activation_lower: ConstReals1
    activation_upper: ConstReals1
    activation_first: ConstInts1  # (na,) its first entry in State.activation, -1: none
    activation_last: ConstInts1  # (na,) its last one, which determines the force; -2: none
    activation_slot: ConstInts2  # (na, 5) its states by name, of PID servos and DC motors; -1: none
    activation_early: ConstInts1  # (na,)
    actuator_length_range: ConstReals2  # (na, 2)
    dof_force_lower: ConstReals1  # (nv,) bound of the sum of a joint's actuators
    dof_force_upper: ConstReals1
    # sensors
    sensor_kind: ConstInts1  # (nsensor,)
    sensor_first: ConstInts1  # (nsensor + 1,) first output of each
    sensor_index: ConstInts1  # (nsensor,) first dof, tendon, actuator, or link of its object
    sensor_body: ConstInts2  # (2, nsensor) bodies of object and reference
    sensor_referred: ConstInts1  # (nsensor,) 1: it has a reference
    sensor_rotation: ConstReals3  # (2 nsensor, 3, 3) frames of the objects, then of the references
    sensor_position: ConstReals2  # (2 nsensor, 3)
    sensor_cutoff: ConstReals1  # (nsensor,) bound of the outputs, inf: none
    sensor_zone: ConstInts1  # (nsensor,) shape of its site's volume, as in collision's Shapes; -1: it has none
    sensor_size: ConstReals2  # (nsensor, 3) of that shape [m]
    sensor_side: ConstInts2  # (2, nsensor) of a contact sensor: ANYTHING, OF_GEOM, OF_LINK, OF_SUBTREE
    sensor_number: ConstInts2  # (2, nsensor) of that geom (Contacts.geom), -1: none that touches; or of the link
    sensor_reduction: ConstInts1  # (nsensor,) AS_FOUND, LEAST_DISTANCE, MOST_FORCE, NET_FORCE
    sensor_slots: ConstInts1  # (nsensor,) number of contacts
    sensor_data: ConstInts1  # (nsensor,) bits of the names of description.SENSOR_DATA, in order
    sensor_ray: ConstInts1  # (nsensor,) which ray is a rangefinder's
    ray_sensor: ConstInts1  # (nray,) its rangefinder
    ray_link: ConstInts1  # (nray,) the link that the ray ignores
    magnetic: ConstReals1  # (3,)


class EquipmentWork(NamedTuple):
    """Scratch of the equipment for one configuration and one step."""

    calibrated: Reals1  # (1,) 1: the lengths and inertias in the file's pose are known
    tendon_length0: Reals1  # (nt,) in the file's pose
    spring_length: Reals2  # (nt, 2) resolved
    acceleration0: Reals1  # (na,) |M⁻¹ moment| in the file's pose, for muscles
    tendon_length: Reals1  # (nt,)
    tendon_velocity: Reals1  # (nt,)
    tendon_pull: Reals1  # (nt,) force of its spring and damper, positive: lengthening [N]
    tendon_force: Reals1  # (nt,) total force along it over the step, including actuators, limits, friction, inertia
    tendon_moment: Reals1  # (entries,) dL/dq
    tendon_share: Reals1  # (nt,) Step.share of springs that are rows
    tendon_by_row: Reals1  # (1,) 1: springs and dampers of tendons are rows in this step
    tendon_mobility: Reals1  # (nte,) J M⁻¹ Jᵀ of an equality's two tendons, added, in the file's pose; springs: now
    actuator_length: Reals1  # (na,)
    actuator_velocity: Reals1  # (na,)
    actuator_moment: Reals1  # (entries,)
    actuator_force: Reals1  # (na,) over the step
    actuator_input: Reals1  # (na,) which the gain multiplies
    actuator_implicit: Reals1  # (na,) EXPLICIT, IN_MATRIX, BY_ROW or GUESSED in this step
    actuator_share: Reals1  # (na,) Step.share of those by rows
    actuator_damping: Reals1  # (na,) velocity coefficient of an affine bias, damping ratios resolved
    actuator_scale: Reals1  # (na,) factor of a rotation servo's gains that keeps its norm within the bound
    scaling: Reals2  # (na, 3) secant method: 1 / scale and 1 / norm of the previous solution; number of solutions
    control: Reals1  # (nu,) within their ranges
    dof_held: Reals1  # (nv,) 1: the sum of its actuators is at its bound; 2: assumed to be
    activation_rate: Reals1  # (nact,)
    start_activation: Reals1  # (nact,) RK4
    start_length: Reals1  # (na,) RK4
    start_velocity: Reals1  # (na,) RK4
    sum_activation: Reals1  # (nact,) RK4
    loop_error: Reals2  # (nloop, 6) C of each loop: translation [m], and of a weld rotation times its torque scale
    loop_aim: Reals2  # (nloop, 6) C at the end of the step
    loop_force: Reals2  # (nloop, 6) multipliers of C over the step [N, N m per m of torque scale]
    loop_drift: Reals1  # (6,) C̈ of the loop at hand, at zero independent acceleration
    loop_mobility: Reals2  # (nloop, 2) response of its links to unit force and unit torque, in the file's pose
    row: Reals1  # (nv,) dense scratch
    row2: Reals1  # (nv,)
    sensor: Reals1  # (outputs,) values of the sensors
    felt: Reals1  # (outputs,) values measured in this step, which delayed sensors output later
    ray: Reals2  # (nray, 6) origin [m] and unit direction, world axes
    ray_hit: Reals2  # (nray, 4) distance [m], -1: no hit; the normal there
    ray_caster: Ints1  # (2,) addresses of the compiled ray caster and of its table
    delayer: Ints1  # (2,) likewise of the kernel for delayed controls (delays.py); zeros: nothing is delayed
    feeler: Ints1  # (2,) likewise of the kernel that measures for delayed sensors
    keeper: Ints1  # (2,) likewise of the kernel that keeps samples
    stage: Reals1  # (1,) time within the step [steps], RK4
    pending: Reals1  # (1,) 1: a changed control has yet to act
    actuator_total: Reals1  # (nv,) sum of actuator forces per dof, explicit part
    stiffness: Reals1  # (nv,) contribution of the implicit ones to the system
    damping: Reals1  # (nv,)
    offset: Reals1  # (nv,) force of the implicit ones at q = 0, v = 0
    compensation: Reals1  # (nv,) gravity compensation by the joints' motors; part of actuator_total
    given: Reals1  # (nv,) of the passive forces those of the medium and compensated weights, which may supply energy
    passive: Reals1  # (nv,) explicit passive forces: gravity compensation, fluid, springs of balls, polynomials
    tendon: Reals1  # (nv,) explicit forces of tendons' springs and dampers


class EquipmentBundle(NamedTuple):
    """Equipment of a robot in a step: constants (model) and scratch (data); None for a robot without equipment."""

    model: Equipment
    data: EquipmentWork


def loop_room(model: Model, equipment: Equipment) -> tuple[int, int]:
    """Number of constraint rows of a step that loops need, and of their entries."""
    rows = sum(3 if kind == CONNECT else 6 for kind in equipment.loop_kind)
    return rows, rows * len(model.dof_body)


def actuator_room(model: Model, equipment: Equipment) -> tuple[int, int]:
    """Number of constraint rows of a step that actuators need, and of their entries."""
    rows = int(np.count_nonzero(equipment.actuator_linear == BY_ROW))
    return rows, rows * len(model.dof_body)


def tendon_room(model: Model, equipment: Equipment) -> tuple[int, int]:
    """Largest number of rows of a step that tendons need, and of their entries; an equality can have two tendons."""
    equalities = len(equipment.tendon_row_follower)
    inert = np.count_nonzero(equipment.tendon_armature > 0)
    rubbing = np.count_nonzero(equipment.tendon_friction > 0)
    limited = np.count_nonzero(np.isfinite(equipment.tendon_lower) | np.isfinite(equipment.tendon_upper))
    sprung = np.count_nonzero(equipment.tendon_stiffness.any(axis=1) | equipment.tendon_damping.any(axis=1))
    rows = equalities + int(inert + rubbing + 2 * limited + sprung)
    return rows, (rows + equalities) * len(model.dof_body)


@dataclass(frozen=True)
class EquipmentLabels:
    """Names of the entries of the equipment's arrays."""

    tendons: tuple[str, ...] = ()
    actuators: tuple[str, ...] = ()  # every force
    controls: tuple[str, ...] = ()
    activations: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    sensors: tuple[str, ...] = ()  # every output
    sensor_units: tuple[str, ...] = ()


@dataclass(frozen=True)
class Equipped:
    """The equipment of a robot with its labels."""

    arrays: Equipment
    labels: EquipmentLabels

    @property
    def activations(self) -> int:
        """Number of activation states."""
        return len(self.labels.activations)


def make_equipment_work(model: Model, equipment: Equipment, activations: int) -> EquipmentWork:
    """Allocate the scratch of a robot's equipment."""
    nv = len(model.dof_body)
    nt, na = len(equipment.tendon_lower), len(equipment.actuator_target)
    names = "tendon_length0 tendon_length tendon_velocity tendon_pull tendon_force tendon_share"
    tendons = dict.fromkeys(names.split(), (nt,))
    actuators = dict.fromkeys(
        "acceleration0 actuator_length actuator_velocity actuator_force actuator_input actuator_implicit "
        "actuator_damping actuator_share actuator_scale start_length start_velocity".split(),
        (na,),
    )
    dofs = dict.fromkeys(
        "row row2 actuator_total stiffness damping offset compensation passive given tendon dof_held".split(),
        (nv,),
    )
    work: EquipmentWork = allocate(
        EquipmentWork,
        {
            **tendons,
            **actuators,
            **dofs,
            "calibrated": (1,),
            "tendon_by_row": (1,),
            **dict.fromkeys(("sensor", "felt"), (int(equipment.sensor_first[-1]),)),
            "ray": (len(equipment.ray_link), 6),
            "ray_hit": (len(equipment.ray_link), 4),
            **dict.fromkeys(("ray_caster", "delayer", "feeler", "keeper"), (2,)),
            **dict.fromkeys(("stage", "pending"), (1,)),
            "control": (len(equipment.control_lower),),
            "scaling": (na, 3),
            "spring_length": (nt, 2),
            "tendon_moment": (len(equipment.tendon_dof),),
            "tendon_mobility": (len(equipment.tendon_row_follower),),
            "actuator_moment": (len(equipment.actuator_dof),),
            **dict.fromkeys(("activation_rate", "start_activation", "sum_activation"), (activations,)),
            **dict.fromkeys(("loop_error", "loop_aim", "loop_force"), (len(equipment.loop_kind), 6)),
            "loop_drift": (6,),
            "loop_mobility": (len(equipment.loop_kind), 2),
        },
    )
    return work
