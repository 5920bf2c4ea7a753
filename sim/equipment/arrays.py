"""Arrays of a robot's equipment: sites, tendons, actuators, loops, sensors and the passive forces of its file.

Kernels receive the constants as equipment.model and the scratch as equipment.data; a robot without equipment runs
kernels compiled with `equipment` None. This module must not import numba: processes with warm kernels import it too.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

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
PATH_JOINT, PATH_SITE, PATH_SPHERE, PATH_CYLINDER, PATH_PULLEY, PATH_LOOP = range(6)
STIFF_TENDONS = 0.25  # sum of h² K J M⁻¹ Jᵀ + h D J M⁻¹ Jᵀ above which springs of tendons are rows
# transmissions
JOINT, JOINT_IN_PARENT, TENDON, SITE, BODY, SLIDER_CRANK = range(6)
# activation dynamics
NO_DYNAMICS, INTEGRATOR, FILTER, FILTER_EXACT, MUSCLE_DYNAMICS, DC_MOTOR_DYNAMICS, PID_DYNAMICS = range(7)
# gains and biases
NO_BIAS, FIXED, AFFINE, MUSCLE, DC_MOTOR, PID = range(6)
# indices of the parameters of affine gains and biases, named after their factors
CONSTANT, PER_LENGTH, PER_VELOCITY = range(3)
# ways in which an actuator's force enters a semi-implicit step: at its start, or at its end through M̂ or a row
EXPLICIT, IN_MATRIX, BY_ROW = range(3)
ROUNDS_TOGETHER = 8  # solutions of a step after which all forces on the wrong side of their bounds change sides
# columns of activation_slot
SLEW, INTEGRAL, TEMPERATURE, BRISTLE, CURRENT = range(5)
# loops
CONNECT, WELD, HINGE, LOOP_JOINT = range(4)
# entries of loop_sprung: hard or soft as in MuJoCo, a spring by its stiffness, by its natural frequency
RIGID, BY_STIFFNESS, BY_FREQUENCY = range(3)
# columns of references, of softness -B Ċ - K d C; springs have the first two
REFERENCE_K, REFERENCE_B, REFERENCE_TIME = range(3)
# columns of ranges of lengths
SHORTEST, LONGEST = range(2)
TENDON_LOWER, TENDON_UPPER = range(4, 6)  # sides of limits, after those of dofs (constraints/limit_rows.py)
# entries of medium
DENSITY, VISCOSITY, WIND_X, WIND_Y, WIND_Z = range(5)
# columns of damper_terms, the coefficients of |v| v and v³
QUADRATIC, CUBIC = range(2)
# columns of control_role of PID servos and DC motors
ROLE_POSITION, ROLE_VELOCITY, ROLE_FEEDFORWARD, ROLE_VOLTAGE = range(4)
ROLE_FOURTH = 3  # of rotation servos: the fourth component of a quaternion
# columns of scaling
INVERSE_SCALE, INVERSE_NORM, SOLUTIONS = range(3)
# numbers of a wrench, each a control of its own: force, then torque
WRENCH = 6
# entries of link_wrench_axes
WORLD_AXES, LINK_AXES = range(2)
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
    TENDON_LIMIT_POSITION,
    TENDON_LIMIT_VELOCITY,
    TENDON_LIMIT_FORCE,
    ACTUATOR_POSITION,
    ACTUATOR_VELOCITY,
    ACTUATOR_FORCE,
) = range(39)
# requirements of a contact sensor for one side of a contact
ANYTHING, OF_GEOM, OF_LINK, OF_SUBTREE = range(4)
# values that noise leaves possible for a sensor
ANY_VALUE, AT_LEAST_ZERO, OF_UNIT_LENGTH = range(3)
# choices of the contacts that a contact sensor outputs
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
    "tendonlimitpos": TENDON_LIMIT_POSITION,
    "tendonlimitvel": TENDON_LIMIT_VELOCITY,
    "tendonlimitfrc": TENDON_LIMIT_FORCE,
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
    tendon_path: ConstInts1  # (nt + 1,) start of each path
    path_kind: ConstInts1  # (np,)
    path_index: ConstInts1  # (np,) dof, site, wrapping geom or loop
    path_value: ConstReals1  # (np,) coefficient of a joint, divisor of a pulley, axis of a loop
    path_side: ConstInts1  # (np,) side site of a wrapping geom, -1: none
    wrap_body: ConstInts1  # (nw,) of the wrapping geoms
    wrap_link: ConstInts1  # (nw,) -1: the world
    wrap_rotation: ConstReals3  # (nw, 3, 3)
    wrap_position: ConstReals2  # (nw, 3) [m]
    wrap_radius: ConstReals1  # (nw,) [m]
    tendon_entry: ConstInts1  # (nt + 1,) first entry of each tendon
    tendon_dof: ConstInts1  # (entries,) dof of each entry
    tendon_lower: ConstReals1  # (nt,) length limits, ∓inf: none [m or rad]
    tendon_upper: ConstReals1  # (nt,)
    tendon_stiffness: ConstReals2  # (nt, 3) coefficients of x, x², x³
    tendon_damping: ConstReals2  # (nt, 3) coefficients of v, |v| v, v³
    tendon_spring: ConstReals2  # (nt, 2) dead band of the spring [m or rad]; both NaN: the length in the relaxed pose
    tendon_friction: ConstReals1  # (nt,) [N]
    tendon_armature: ConstReals1  # (nt,) [kg]
    tendon_force_lower: ConstReals1  # (nt,) bounds of the sum of its actuators' forces [N]
    tendon_force_upper: ConstReals1  # (nt,)
    tendon_limit_spring: ConstReals2  # (nt, 2) stiffness and damping of its limits; stiffness 0: hard
    # tendon equalities
    tendon_row_follower: ConstInts1  # (nte,) tendon
    tendon_row_leader: ConstInts1  # (nte,) tendon, -1: none
    tendon_row_polynomial: ConstReals2  # (nte, 5) coefficients of the leader's powers 0 … 4
    # (nte, 3) K [1/s²], B [1/s], time constant [s] that gives them or 0; K -1: hard; springs have K and B
    tendon_row_reference: ConstReals2
    tendon_row_compliance: ConstReals1  # (nte,) [m/N], -1: none; then K is 1 and B a time [s]
    tendon_row_erp: ConstReals1  # (nte,) share of a hard equality's error that a step corrects, -1: that of the run
    tendon_row_impedance: ConstReals2  # (nte, 5) MuJoCo's solimp; -1: a plain spring
    # loops
    loop_kind: ConstInts1  # (nloop,) CONNECT, WELD, HINGE or LOOP_JOINT
    loop_held: ConstInts2  # (nloop, 6) 1: the line of C is a row
    loop_body: ConstInts2  # (nloop, 2) bodies a and b
    loop_link: ConstInts2  # (nloop, 2) links a and b; -1: the world, where it is no link
    loop_rotation: ConstReals3  # (2 nloop, 3, 3) frames of a and b, loop by loop
    loop_position: ConstReals2  # (2 nloop, 3) [m]
    loop_torque_scale: ConstReals1  # (nloop,) [m] per radian of a weld's rotation
    loop_reference: ConstReals2  # (nloop, 3) K [1/s²], B [1/s], time constant [s] that gives them or 0; K -1: hard
    loop_sprung: ConstInts1  # (nloop,) RIGID (or soft as MuJoCo's), BY_STIFFNESS (or compliance), BY_FREQUENCY
    loop_compliance: ConstReals2  # (nloop, 2) divisor of K and B: 1 for a stiffness, or a compliance per C
    loop_erp: ConstReals1  # (nloop,) share of a hard loop's gap that a step closes, -1: that of the run
    loop_spring: ConstReals3  # (nloop, 2, 2) of translation and rotation: K and B of loops that are springs, per C
    loop_impedance: ConstReals2  # (nloop, 5) MuJoCo's solimp
    loop_centre: ConstReals2  # (2 nloop, 3) the links' centres of mass [m]
    loop_sliding: ConstReals1  # (2 nloop,) mass of a link that only slides (sliders.py) [kg]; 0 for others
    dof_sliding: ConstReals1  # (nv,) mass of the sliding link that the dof moves [kg]; 0 for others
    # passive forces
    compensated_mass: ConstReals1  # (nb,) or empty: mass of each body carried by gravity compensation [kg]
    compensated_moment: ConstReals2  # (nb, 3) first moment of that mass in the body's own frame [kg m]
    gravity_by_actuator: ConstInts1  # (nv,) 1: gravity compensation counts as actuator force
    damper_dof: ConstInts1  # (nd,) dofs with polynomial damping
    damper_terms: ConstReals2  # (nd, 2) coefficients of |v| v and v³
    spring_body: ConstInts1  # (nk,) bodies with a polynomial joint spring, or with a spring of a ball or free joint
    spring_terms: ConstReals2  # (nk, 3) coefficients of x, |x| x (single coordinates: x²) and x³
    medium: ConstReals1  # (5,) density [kg/m³], viscosity [Pa s], wind [m/s]
    box_body: ConstInts1  # (nbox,) links in the medium, as their equivalent inertia boxes
    box_rotation: ConstReals3  # (nbox, 3, 3) principal axes at the centre of mass
    box_position: ConstReals2  # (nbox, 3) [m]
    box_size: ConstReals2  # (nbox, 3) [m]
    ellipsoid_body: ConstInts1  # (nel,) geoms in the medium as ellipsoids
    ellipsoid_rotation: ConstReals3  # (nel, 3, 3)
    ellipsoid_position: ConstReals2  # (nel, 3) [m]
    ellipsoid_axes: ConstReals2  # (nel, 3) semi-axes [m]
    ellipsoid_coefficients: ConstReals2  # (nel, 5) drag: blunt, slender, angular; lift: Kutta, Magnus
    ellipsoid_added: ConstReals2  # (nel, 6) added mass and inertia per density [m³, m⁵]
    # actuators: na forces, nu controls, nact activation states
    actuator_active: ConstInts1  # (na,) 0: disabled, exerts no force
    actuator_frozen: ConstInts1  # (na,) 1: its states are constant
    actuator_linear: ConstInts1  # (na,) EXPLICIT, or for an affine force IN_MATRIX or BY_ROW
    actuator_by_inertia: ConstInts1  # (na,) 1: its gains are accelerations
    actuator_period: ConstReals1  # (na,) period of a setpoint on a circle [rad], 0: none
    actuator_transmission: ConstInts1  # (na,) JOINT … SLIDER_CRANK
    actuator_target: ConstInts1  # (na,) first dof, tendon, site or body
    actuator_reference: ConstInts1  # (na,) reference or slider site, -1: none
    actuator_axis: ConstInts1  # (na,) axis of each of the three forces of a rotation servo; -1: another actuator
    actuator_gear: ConstReals2  # (na, 6)
    actuator_crank: ConstReals1  # (na,) length of the rod of a slider-crank [m]
    actuator_entry: ConstInts1  # (na + 1,) first entry of each actuator
    actuator_dof: ConstInts1  # (entries,) dof of each entry
    actuator_dynamics: ConstInts1  # (na,) NO_DYNAMICS … PID_DYNAMICS
    actuator_gain: ConstInts1  # (na,) NO_BIAS … PID
    actuator_bias: ConstInts1  # (na,) NO_BIAS … PID
    dynamics_parameters: ConstReals2  # (na, 10)
    gain_parameters: ConstReals2  # (na, 10)
    bias_parameters: ConstReals2  # (na, 10)
    control_first: ConstInts1  # (na,) first control of the actuator
    control_role: ConstInts2  # (na, 4) controls for position, velocity, feedforward, voltage, or a quaternion; -1: none
    control_lower: ConstReals1  # (nu,)
    control_upper: ConstReals1  # (nu,)
    force_lower: ConstReals1  # (na,) [N or N m]
    force_upper: ConstReals1  # (na,)
    force_norm: ConstReals1  # (na,) bound of the norm of a rotation servo's torque [N m], inf: none
    activation_lower: ConstReals1
    activation_upper: ConstReals1
    activation_first: ConstInts1  # (na,) first entry of the actuator in State.activation, -1: none
    activation_last: ConstInts1  # (na,) its last entry, which determines the force; -2: none
    activation_slot: ConstInts2  # (na, 5) entries SLEW … CURRENT of PID servos and DC motors; -1: none
    activation_early: ConstInts1  # (na,)
    actuator_length_range: ConstReals2  # (na, 2)
    dof_force_lower: ConstReals1  # (nv,) bounds of the sum of a dof's actuator forces [N or N m]
    dof_force_upper: ConstReals1  # (nv,)
    # wrenches on links that are inputs of the run: the last WRENCH nw controls
    link_wrench_link: ConstInts1  # (nw,)
    link_wrench_point: ConstReals2  # (nw, 3) where the force acts, in the body's own frame [m]
    link_wrench_axes: ConstInts1  # (nw,) axes of force and torque: WORLD_AXES or LINK_AXES
    # sensors
    sensor_kind: ConstInts1  # (nsensor,) ACCELEROMETER … ACTUATOR_FORCE
    sensor_first: ConstInts1  # (nsensor + 1,) first output of each
    sensor_index: ConstInts1  # (nsensor,) first dof, tendon, actuator, or link of its object
    sensor_body: ConstInts2  # (2, nsensor) bodies of object and reference
    sensor_referred: ConstInts1  # (nsensor,) 1: the sensor has a reference
    sensor_rotation: ConstReals3  # (2 nsensor, 3, 3) frames of the objects, then of the references
    sensor_position: ConstReals2  # (2 nsensor, 3) [m]
    sensor_cutoff: ConstReals1  # (nsensor,) bound of the outputs' magnitudes, inf: none
    sensor_noise: ConstReals1  # (nsensor,) standard deviation of the noise of its outputs, in their units
    sensor_range: ConstInts1  # (nsensor,) values that noise leaves possible: ANY_VALUE, AT_LEAST_ZERO, OF_UNIT_LENGTH
    sensor_zone: ConstInts1  # (nsensor,) shape of the site's volume, as in collision's Shapes; -1: none
    sensor_size: ConstReals2  # (nsensor, 3) size of that shape [m]
    sensor_side: ConstInts2  # (2, nsensor) of a contact sensor: ANYTHING, OF_GEOM, OF_LINK, OF_SUBTREE
    sensor_number: ConstInts2  # (2, nsensor) index of that geom (Contacts.geom; -1: a geom that cannot touch) or link
    sensor_reduction: ConstInts1  # (nsensor,) AS_FOUND, LEAST_DISTANCE, MOST_FORCE, NET_FORCE
    sensor_slots: ConstInts1  # (nsensor,) number of contacts
    sensor_data: ConstInts1  # (nsensor,) bit mask over description.SENSOR_DATA, in order
    sensor_ray: ConstInts1  # (nsensor,) the ray of a rangefinder
    ray_sensor: ConstInts1  # (nray,) its rangefinder
    ray_link: ConstInts1  # (nray,) the link that the ray ignores
    magnetic: ConstReals1  # (3,) magnetic field, world axes


class EquipmentWork(NamedTuple):
    """Scratch of the equipment for one configuration and one step; sizes as in Equipment."""

    calibrated: Reals1  # (1,) 1: lengths and inertias in the file's pose have been computed
    tendon_length0: Reals1  # (nt,) length in the file's pose [m or rad]
    spring_length: Reals2  # (nt, 2) tendon_spring with NaN resolved [m or rad]
    acceleration0: Reals1  # (na,) |M⁻¹ moment| in the file's pose, for muscles
    tendon_length: Reals1  # (nt,) [m or rad]
    tendon_velocity: Reals1  # (nt,) [m/s or rad/s]
    tendon_pull: Reals1  # (nt,) force of the spring and damper, positive: lengthening [N]
    tendon_force: Reals1  # (nt,) total force along it over the step, including actuators, limits, friction, inertia
    tendon_limit_force: Reals1  # (nt,) force of its limits, of either side at least 0 [N]
    tendon_moment: Reals1  # (entries,) dL/dq of tendon_dof
    tendon_drift: Reals1  # (nt,) J̇ v of tendons with inertia: L̈ at zero generalised acceleration [m/s² or rad/s²]
    tendon_share: Reals1  # (nt,) Step.share of springs by rows
    tendon_by_row: Reals1  # (1,) 1: springs and dampers of tendons are constraint rows in this step
    tendon_mobility: Reals1  # (nte + nt,) J M⁻¹ Jᵀ summed over an equality's tendons, in the file's pose; springs: now;
    # then of each tendon
    actuator_length: Reals1  # (na,) [m or rad]
    actuator_velocity: Reals1  # (na,) [m/s or rad/s]
    actuator_moment: Reals1  # (entries,) generalised force per unit force, of actuator_dof
    actuator_force: Reals1  # (na,) over the step [N or N m]
    actuator_input: Reals1  # (na,) the input that the gain multiplies
    constant: Reals1  # (na,) of affine forces, without actuator_scale: force at length 0 and velocity 0 [N or N m]
    slope: Reals1  # (na,) stiffness along the length
    resistance: Reals1  # (na,) damping along the length
    acts: Reals1  # (na,) 1: the force is implicit in this step, as actuator_linear says
    held: Reals1  # (na,) -1: the implicit force is held at its lower bound in this step, 1: at its upper bound
    actuator_share: Reals1  # (na,) Step.share of actuators by rows
    actuator_damping: Reals1  # (na,) velocity coefficient of an affine bias, damping ratios resolved
    actuator_scale: Reals1  # (na,) factor on gains: bounds a rotation servo's norm, makes accelerations forces
    scaling: Reals2  # (na, 3) secant method for actuator_scale: previous 1 / scale and 1 / norm; number of solutions
    control: Reals1  # (nu,) clamped to their ranges
    dof_held: Reals1  # (nv,) -1: the sum of the dof's actuators is held at its lower bound, 1: at its upper bound
    dof_force: Reals1  # (nv,) sum of the dof's actuators over the step, without the bounds of the sum [N or N m]
    activation_rate: Reals1  # (nact,) per second
    start_activation: Reals1  # (nact,) at the start of the step
    next_activation: Reals1  # (nact,) in packs: at the end of the step
    start_length: Reals1  # (na,) RK4: at the start of the step
    start_velocity: Reals1  # (na,) RK4: at the start of the step
    sum_activation: Reals1  # (nact,) RK4: weighted sum of the stages' rates
    link_wrench: Reals2  # (nw, 6) force [N] and torque [N m] of this step, world axes
    loop_error: Reals2  # (nloop, 6) C of each loop: translation [m]; rotation times torque scale [m]; 0 where free
    loop_force: Reals2  # (nloop, 6) multipliers of C over the step [N, N m per m of torque scale]
    loop_drift: Reals1  # (6,) C̈ of the loop being assembled, at zero independent acceleration
    loop_mobility: Reals2  # (nloop, 2) response of the links to unit force and unit torque, in the file's pose
    loop_response: Reals2  # (6, nv) M⁻¹ Lᵀ of the lines L that a loop holds, or (0, nv) without acceleration drives
    row: Reals1  # (nv,) dense scratch
    row2: Reals1  # (nv,)
    sensor: Reals1  # (outputs,) values of the sensors
    noise_key: Ints1  # (2,) seed of the noise of sensors, and number of the robot
    felt: Reals1  # (outputs,) values measured in this step, for delayed sensors to output later
    ray: Reals2  # (nray, 6) origin [m] and unit direction, world axes
    ray_hit: Reals2  # (nray, 4) distance [m], -1: no hit; normal of the surface hit
    ray_caster: Ints1  # (2,) addresses of the compiled ray caster and of its table
    delayer: Ints1  # (2,) addresses of the kernel for delayed controls (delays.py); zeros: nothing is delayed
    feeler: Ints1  # (2,) addresses of the kernel that measures for delayed sensors
    keeper: Ints1  # (2,) addresses of the kernel that stores samples
    stage: Reals1  # (1,) RK4: time within the step [steps]
    pending: Reals1  # (1,) 1: a changed control has yet to act
    actuator_total: Reals1  # (nv,) sum of the forces that are constant in this step: explicit, or held at a bound
    stiffness: Reals1  # (nv,) summed stiffness of the actuators that act in M̂
    damping: Reals1  # (nv,) their summed damping
    offset: Reals1  # (nv,) their summed force at q = 0, v = 0
    compensation: Reals1  # (nv,) gravity compensation by the joints' actuators; part of actuator_total
    carried: Reals1  # (nv,) the part of `passive` that compensates gravity
    drag: Reals1  # (nv,) the part of `passive` that is the medium's
    passive: Reals1  # (nv,) explicit passive forces: gravity compensation, medium, ball springs, polynomials
    tendon: Reals1  # (nv,) explicit forces of the springs and dampers of tendons
    resisted: Reals1  # (nv,) in packs: forces by which computed torque makes up for passive forces and tendons


class EquipmentBundle(NamedTuple):
    """The equipment of a robot in a step: constants (model) and scratch (data); None replaces it without equipment."""

    model: Equipment
    data: EquipmentWork


EitherEquipment: TypeAlias = EquipmentBundle | None  # of a robot or of a pack, in functions that pass it on


def loop_room(model: Model, equipment: Equipment) -> tuple[int, int]:
    """Number of constraint rows that loops need in a step, and of their entries."""
    rows = int(equipment.loop_held.sum())
    return rows, rows * len(model.dof_body)


def actuator_room(model: Model, equipment: Equipment) -> tuple[int, int]:
    """Number of constraint rows that actuators need in a step, and of their entries."""
    rows = int(np.count_nonzero(equipment.actuator_linear == BY_ROW))
    return rows, rows * len(model.dof_body)


def tendon_room(model: Model, equipment: Equipment) -> tuple[int, int]:
    """Largest number of constraint rows that tendons need in a step, and of their entries; an equality may have two
    tendons."""
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
    actuators: tuple[str, ...] = ()  # one per force
    controls: tuple[str, ...] = ()
    activations: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    sensors: tuple[str, ...] = ()  # one per output
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


def make_equipment_work(
    model: Model, equipment: Equipment, activations: int, record: type[Any] = EquipmentWork, width: int = 1
) -> Any:
    """Allocate the scratch of a robot's equipment, or of a pack's as this record."""
    nv = len(model.dof_body)
    nt, na = len(equipment.tendon_lower), len(equipment.actuator_target)
    tendons = dict.fromkeys(
        "tendon_length0 tendon_length tendon_velocity tendon_pull tendon_force tendon_limit_force tendon_drift "
        "tendon_share".split(),
        (nt,),
    )
    actuators = dict.fromkeys(
        "acceleration0 actuator_length actuator_velocity actuator_force actuator_input constant slope resistance acts "
        "held actuator_damping actuator_share actuator_scale start_length start_velocity".split(),
        (na,),
    )
    dofs = dict.fromkeys(
        "row row2 actuator_total stiffness damping offset compensation passive carried drag tendon resisted dof_held "
        "dof_force".split(),
        (nv,),
    )
    return allocate(
        record,
        {
            **tendons,
            **actuators,
            **dofs,
            "calibrated": (1,),
            "noise_key": (2,),
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
            "tendon_mobility": (len(equipment.tendon_row_follower) + len(equipment.tendon_lower),),
            "actuator_moment": (len(equipment.actuator_dof),),
            **dict.fromkeys(
                ("activation_rate", "start_activation", "next_activation", "sum_activation"), (activations,)
            ),
            **dict.fromkeys(("loop_error", "loop_force"), (len(equipment.loop_kind), 6)),
            "link_wrench": (len(equipment.link_wrench_link), WRENCH),
            "loop_drift": (6,),
            "loop_mobility": (len(equipment.loop_kind), 2),
            "loop_response": (6 * int(equipment.actuator_by_inertia.any()), nv),
        },
        width,
    )
