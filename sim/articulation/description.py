"""Contents of a robot file, in one form for URDF and MJCF: frozen dataclasses, SI units, radians.

Nothing is computed here: `compile_model` (model.py) turns an Articulation into the arrays of the engine. Every named
item carries its source line, so that an error found late still names file and line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from artsim.sim.foundation.dataclass import dataclass

if TYPE_CHECKING:
    from artsim.collision.build import Solid

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]  # (w, x, y, z), unit, child to parent

JointKind = Literal["fixed", "revolute", "continuous", "prismatic", "ball", "free", "planar"]
GeomKind = Literal["box", "sphere", "cylinder", "capsule", "ellipsoid", "plane", "mesh", "heightfield"]
GeomRole = Literal["visual", "collision"]


@dataclass(frozen=True, slots=True)
class Source:
    """A place in the input: file name as given, line counted from 1."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Note:
    """A warning of the reader: the file is accepted; `message` describes the oddity and its treatment.

    `left_out`: the file says what the robot does not have, and would move or touch otherwise with it.
    """

    source: Source
    message: str
    left_out: bool = False

    def __str__(self) -> str:
        return f"{self.source}: {self.message}"


@dataclass(frozen=True, slots=True)
class Ignored:
    """An item of the file that artsim does not use and that does not affect motion."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Pose:
    """A frame in its parent: position [m] and rotation (w, x, y, z)."""

    position: Vector3 = (0.0, 0.0, 0.0)
    rotation: Quaternion = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass [kg], the centre of mass frame in the link frame, and the inertia about it in that frame's axes [kg m²]."""

    mass: float
    pose: Pose = Pose()
    inertia: tuple[float, float, float, float, float, float] = (0.0,) * 6  # xx, xy, xz, yy, yz, zz
    source: Source = Source()


@dataclass(frozen=True, slots=True)
class Softness:
    """Compliance of a constraint in an MJCF file: `reference` is solref (time constant [s] and damping ratio, or
    negative stiffness and damping), `impedance` is solimp. None where the file leaves MuJoCo's default.
    """

    reference: tuple[float, float] | None = None
    impedance: tuple[float, float, float, float, float] | None = None


REFERENCE = (0.02, 1.0)  # MuJoCo's default solref
IMPEDANCE = (0.9, 0.95, 0.001, 0.5, 2.0)  # MuJoCo's default solimp


def reference_of_softness(softness: Softness) -> tuple[float, float, float]:
    """MuJoCo's K [1/s²] and B [1/s] of a constraint's reference acceleration -B Ċ - K d C, and the time constant [s] by
    which they are given, 0 where they are given themselves; (-1, 0, 0) where the constraint is hard.
    """
    if softness.reference is None:
        return -1.0, 0.0, 0.0
    first, second = softness.reference
    most = min(max((softness.impedance or IMPEDANCE)[1], 1e-4), 0.9999)
    if first > 0:
        return 1.0 / (most * first * second) ** 2, 2.0 / (most * first), first
    return -first / most**2, -second / most, 0.0


@dataclass(frozen=True, slots=True)
class Material:
    """Visual appearance only, kept for the viewer."""

    name: str = ""
    rgba: tuple[float, float, float, float] | None = None
    texture: str | None = None


@dataclass(frozen=True, slots=True)
class Surface:
    """Contact properties of a geom, with MuJoCo's defaults. Two geoms may touch where the type bits of one meet the
    affinity bits of the other. Friction and softness are those of the higher `priority`; at equal priority the softness
    is weighted by `mix`, and of everything else the larger value counts (Computation chapter, "Contact").
    """

    type_bits: int = 1
    affinity_bits: int = 1
    dimension: int = 3  # 1: no friction, 3: sliding, 4: also torsional, 6: also rolling
    priority: int = 0
    mix: float = 1.0
    softness: Softness = Softness()
    margin: float = 0.0  # [m] distance at which forces begin
    gap: float = 0.0  # [m] additional distance within which contacts are detected but inactive
    adhesion: float = 0.0  # [N]
    restitution: float = 0.0  # speed after a bounce over speed before it
    velocity: tuple[float, ...] = (0.0,) * 6  # of a belt: linear [m/s] and angular [rad/s], in the geom's frame


@dataclass(frozen=True, slots=True)
class FluidShape:
    """An ellipsoid that represents a geom in a medium (MJCF fluidshape, fluidcoef)."""

    axes: Vector3  # semi-axes [m]
    pose: Pose  # in the link frame
    blunt_drag: float = 0.5
    slender_drag: float = 0.25
    angular_drag: float = 1.5
    kutta_lift: float = 1.0
    magnus_lift: float = 1.0


@dataclass(frozen=True, slots=True)
class Geom:
    """A shape on a link. `size` [m]: box half sizes · sphere (radius,) · cylinder and capsule (radius, half length)
    · ellipsoid semi-axes · plane half sizes · mesh () · heightfield half lengths along x and y, depth of its base.

    A point v of a mesh file is at `pose` · (scale · (`mesh_pose`⁻¹ · v)) in the link frame.
    """

    name: str
    kind: GeomKind
    role: GeomRole
    size: tuple[float, ...] = ()
    pose: Pose = Pose()  # in the link frame
    mesh: Path | None = None  # resolved file, None when it was not found
    mesh_uri: str = ""  # as written in the file
    mesh_absent: str = ""  # reason for a missing mesh
    vertices: tuple[float, ...] = ()  # of a mesh given in the model itself, in threes
    faces: tuple[int, ...] = ()  # triples of these vertices; (): those of their hull
    most_hull_vertices: int = -1  # of a mesh; -1: no bound
    heights: tuple[Sequence[float], ...] = ()  # of a heightfield above its frame [m]: rows along y, in them along x
    pieces: tuple[Solid, ...] = ()  # solids it collided as in a run, stored in outputs; no file is then needed
    sights: tuple[Solid, ...] = ()  # solids that rangefinders saw of it in a run, stored in outputs, too
    mesh_pose: Pose = Pose()  # MJCF refpos, refquat
    scale: Vector3 = (1.0, 1.0, 1.0)
    material: Material | None = None
    hidden: bool = False  # fully transparent: rangefinders do not see it
    group: int = 0  # unit of showing and hiding in a viewer
    friction: tuple[float, float, float] | None = None  # sliding, torsional, rolling; None: the default
    surface: Surface = Surface()
    fluid: FluidShape | None = None
    source: Source = Source()


@dataclass(frozen=True, slots=True)
class ContactPair:
    """Two geoms that may touch regardless of their bits. None stands for MuJoCo's default; nothing is inherited from
    the geoms. `friction`: two sliding, torsional, two rolling; `friction_reference`: solref along the surface (None:
    solref across the surface).
    """

    geom_a: str
    geom_b: str
    name: str = ""
    dimension: int | None = None
    friction: tuple[float, float, float, float, float] | None = None
    softness: Softness = Softness()
    friction_reference: tuple[float, float] | None = None
    margin: float | None = None
    gap: float | None = None
    adhesion: float | None = None
    source: Source = Source()


@dataclass(frozen=True, slots=True)
class Link:
    """A rigid body. `inertial` is None where the file gives none."""

    name: str
    inertial: Inertial | None = None
    geoms: tuple[Geom, ...] = ()
    self_collide: bool | None = None
    model: str = ""  # of several in one file (SDF): links of different models touch each other
    gravity_compensation: float = 0.0  # MJCF gravcomp: share of the weight that is compensated
    source: Source = Source()


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Limits of the swing and of the twist into which the rotation of a ball or free joint is decomposed, as PhysX has
    them: q = q_swing q_twist, the twist about `axis`.

    `swing`: half angles of an elliptic cone about the axes y and z, which are the joint's own turned with x onto `axis`
    by the shortest way; `twist`: lower and upper angle [rad]. None: unlimited.
    """

    swing: tuple[float, float] | None = None
    twist: tuple[float, float] | None = None
    axis: Vector3 = (1.0, 0.0, 0.0)  # unit vector in the joint's frame

    @property
    def given(self) -> bool:
        """True if swing or twist is limited."""
        return self.swing is not None or self.twist is not None

    @property
    def flaw(self) -> str:
        """The flaw of the limits and the numbers wanted, in words; an empty string for limits without a flaw."""
        if self.swing is not None and not all(0.0 < angle <= math.pi for angle in self.swing):
            return f"swing {_angles(self.swing)}: want half angles above 0 and up to pi rad (180deg)"
        if self.twist is None:
            return ""
        lower, upper = self.twist
        if not lower <= upper:
            return f"twist {_angles(self.twist)}: the lower limit is greater than the upper one"
        if not (lower >= -2 * math.pi and upper <= 2 * math.pi and upper - lower < 2 * math.pi):
            return f"twist {_angles(self.twist)}: want less than a turn, within ±2 pi rad (±360deg)"
        return ""


def _angles(angles: tuple[float, float]) -> str:
    return ", ".join(f"{angle:.6g}" for angle in angles)


@dataclass(frozen=True, slots=True)
class Joint:
    """Connects `parent` to `child`. Per-dof values are in N m (revolute, ball) or N (prismatic); N, m, s, rad.

    `pose` is the child frame at zero displacement, in the parent frame; `axis` is a unit vector in the child's axes
    (for planar: the plane's normal); rotation is about `anchor`, a point of the child frame. A child may have several
    joints, applied in order (MJCF bodies): `pose` and `anchor` of a further joint are in the frame moved by the one
    before it.
    """

    name: str
    kind: JointKind
    parent: str  # link name, or "world"
    child: str
    pose: Pose = Pose()
    axis: Vector3 = (0.0, 0.0, 1.0)
    anchor: Vector3 = (0.0, 0.0, 0.0)
    lower: float | None = None  # position limits; None: unlimited on that side
    upper: float | None = None
    turning: TurnLimits = TurnLimits()  # of a ball or free joint's rotation
    effort: float | None = None  # bounds drives and controllers; None: unlimited
    velocity: float | None = None  # enforced on request only
    actuator_range: tuple[float, float] | None = None  # of the sum of its actuators' forces (MJCF)
    actuator_gravity_compensation: bool = False  # gravity compensation counts as an actuator's force (MJCF)
    damping: float = 0.0
    damping_polynomial: tuple[float, float] = (0.0, 0.0)  # of |v| v and v³
    friction: float = 0.0  # constant Coulomb friction
    friction_coefficient: float = 0.0  # PhysX form: times the load in the joint
    stiffness: float = 0.0  # spring towards spring_reference (ball, free: towards the pose of the file)
    stiffness_polynomial: tuple[float, float] = (0.0, 0.0)  # of x² and x³; ball, free: of |x| x and |x|² x, x a vector
    spring_reference: float = 0.0
    reference: float = 0.0  # MJCF ref: the coordinate's value in the pose of the file
    armature: float = 0.0  # rotor inertia added to the dof's diagonal [kg m² or kg]
    limit_softness: Softness = Softness()  # of the convex contact law, as are the next two
    limit_margin: float = 0.0  # distance from a limit from which it acts [rad or m]
    friction_softness: Softness = Softness()
    source: Source = Source()


@dataclass(frozen=True, slots=True)
class Compliance:
    """The law λ = -(C + D Ċ) / c of a constraint with error C and force λ (Faure, Compliant plugin, 2012, eq. 3).

    c = 0 is hard: C + D Ċ = 0.
    """

    compliance: float  # c [m/N or rad/(N m)]
    damping: float = 0.0  # D [s]


@dataclass(frozen=True, slots=True)
class Coupling:
    """One joint's coordinate as a polynomial of another's: y = c0 + c1 x + c2 x² + c3 x³ + c4 x⁴ (constant: no leader).

    URDF mimic: (offset, multiplier). MJCF joint equality: expanded about zero by its reader. `frequency` [Hz] and
    `damping_ratio` make it compliant (notes on mimic joints, eq. 24-29), or `compliance`; without: hard, and eliminated
    exactly unless it has an `erp` of its own.
    """

    follower: str
    leader: str | None
    coefficients: tuple[float, ...]
    frequency: float | None = None
    damping_ratio: float | None = None
    axis: Literal["", "x", "y", "z"] = ""  # one of the two is a ball joint: its twist about this axis of its frame
    impedance: tuple[float, float, float, float, float] | None = None  # softness of MuJoCo's constraints (solimp)
    time_constant: float = 0.0  # [s] of its solref; 0 where that gives stiffness and damping
    source: Source = Source()
    compliance: Compliance | None = None
    erp: float | None = None  # share of its error that a step corrects; None: that of the run


@dataclass(frozen=True, slots=True)
class LoopSpring:
    """The spring by which a loop yields, in translation and rotation: natural frequency [Hz] and damping ratio (with
    the mean of the mobilities of its rows in the file's pose), or stiffness [N/m, N m/rad] and damping [N s/m, N m
    s/rad], or one compliance for both.
    """

    frequency: float | None = None
    damping_ratio: float = 1.0
    stiffness: tuple[float, float] = (0.0, 0.0)
    damping: tuple[float, float] = (0.0, 0.0)
    compliance: Compliance | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """A joint that closes a loop: `connect` makes two points coincide, `weld` two frames, `hinge` two points and the
    z axes of their frames; a `joint` leaves free the `free` ones of LOOP_AXES, along and about the axes of frame a.
    `spring` makes the loop a spring, regardless of `softness`.
    """

    name: str
    kind: Literal["connect", "weld", "hinge", "joint"]
    link_a: str
    link_b: str
    frame_a: Pose = Pose()
    frame_b: Pose = Pose()
    torque_scale: float = 1.0  # weld: weight of the rotation, in m (MJCF torquescale)
    active: bool = True
    softness: Softness = Softness()
    source: Source = Source()
    spring: LoopSpring | None = None
    free: tuple[str, ...] = ()
    erp: float | None = None  # share of its gap that a step closes; None: that of the run

    @property
    def held(self) -> tuple[bool, ...]:
        """True for the axes among LOOP_AXES that the loop holds."""
        free = {"connect": LOOP_AXES[3:], "weld": (), "hinge": ("rz",), "joint": self.free}[self.kind]
        return tuple(axis not in free for axis in LOOP_AXES)


LOOP_AXES = ("x", "y", "z", "rx", "ry", "rz")  # translations along and rotations about the axes of a loop's frame a


@dataclass(frozen=True, slots=True)
class TendonPoint:
    """An element of a tendon's path: a joint with its coefficient, a site, a geom to wrap around, a pulley's divisor,
    or a loop's coordinate along or about the axis LOOP_AXES[value]."""

    kind: Literal["joint", "site", "geom", "pulley", "loop"]
    name: str = ""
    value: float = 0.0
    side_site: str = ""  # marks the side of the geom on which to pass


@dataclass(frozen=True, slots=True)
class WrapGeom:
    """A sphere or a cylinder (along its z axis) that spatial tendons wrap around."""

    name: str
    link: str
    kind: Literal["sphere", "cylinder"]
    radius: float  # [m]
    pose: Pose = Pose()  # in the link frame


@dataclass(frozen=True, slots=True)
class Tendon:
    """A path whose length constrains or drives: fixed = weighted joint coordinates, spatial = through sites, loop = a
    coordinate of a loop joint.
    """

    name: str
    kind: Literal["fixed", "spatial", "loop"]
    path: tuple[TendonPoint, ...]
    lower: float | None = None
    upper: float | None = None
    stiffness: float = 0.0
    stiffness_polynomial: tuple[float, float] = (0.0, 0.0)
    damping: float = 0.0
    damping_polynomial: tuple[float, float] = (0.0, 0.0)
    spring_length: tuple[float, float] | None = None  # no force between; None: the length in the file's pose
    friction: float = 0.0
    armature: float = 0.0  # inertia of the tendon's own motion [kg]
    actuator_range: tuple[float, float] | None = None  # of the sum of its actuators' forces
    softness: Softness = Softness()  # of its limits, under the convex contact law, as are the next two
    limit_margin: float = 0.0  # distance from a limit from which it acts [m]
    friction_softness: Softness = Softness()
    limit_spring: tuple[float, float] | None = None  # stiffness and damping of its limits; None: hard
    source: Source = Source()


@dataclass(frozen=True, slots=True)
class TendonCoupling:
    """A tendon's length as a polynomial of another's, about their lengths in the file's pose (MJCF equality/tendon):
    L_a - L_a0 = c0 + c1 x + … + c4 x⁴, x = L_b - L_b0 (0 without a leader).

    `frequency` [Hz] and `damping_ratio` (notes on mimic joints, eq. 17 to 29) make the coupling a spring, regardless of
    its softness, and so does `compliance`.
    """

    name: str
    follower: str
    leader: str | None
    coefficients: tuple[float, ...]
    softness: Softness = Softness()
    frequency: float | None = None
    damping_ratio: float = 1.0
    source: Source = Source()
    compliance: Compliance | None = None
    erp: float | None = None  # share of its error that a step corrects; None: that of the run


Interpolation = Literal["zoh", "linear", "cubic"]
Transmission = Literal["joint", "jointinparent", "tendon", "site", "body", "slidercrank"]
ActivationDynamics = Literal["none", "integrator", "filter", "filterexact", "muscle", "dcmotor", "pid"]
Gain = Literal["fixed", "affine", "muscle", "dcmotor", "pid", "rotation"]
Bias = Literal["none", "affine", "muscle", "dcmotor"]


@dataclass(frozen=True, slots=True)
class LengthSearch:
    """Settings of the simulation that finds the range of an actuator's length (MJCF compiler/lengthrange)."""

    acceleration: float = 20.0  # norm of the joint accelerations by its force [rad/s² and m/s²]
    most_force: float = 0.0  # bound of the norm of the joint forces [N m and N]; 0: none
    time_constant: float = 1.0  # with which the joints lose their velocity [s]
    time_step: float = 0.01  # [s]
    duration: float = 10.0  # [s]
    interval: float = 2.0  # at the end, within which the length must have settled [s]
    tolerance: float = 0.05  # largest motion of a length that has settled, as a share of the range


_XYZ = (".x", ".y", ".z")


@dataclass(frozen=True, slots=True)
class Delay:
    """The samples stored of an actuator's controls or of a sensor's outputs, and the delay with which they are read
    (MJCF's "Delays").

    A sensor with a period measures only at its ticks, phase + k period, and holds the value between them.
    """

    time: float = 0.0  # [s] delay
    samples: int = 0  # number of stored samples; older ones are lost
    interpolation: Interpolation = "zoh"
    period: float = 0.0  # [s] of a sensor, 0: every step
    phase: float = 0.0  # [s] of its ticks, -period < phase <= 0


@dataclass(frozen=True, slots=True)
class Actuator:
    """Converts a control into a force: URDF transmissions (reduction kept) and MJCF actuators (Computation chapter,
    "Actuation model", which defines these parameter vectors).
    """

    name: str
    target: str  # joint, tendon, site or body; slidercrank: the crank's site
    gear: tuple[float, ...] = (1.0,)
    source: Source = Source()
    transmission: Transmission = "joint"
    reference: str = ""  # refsite of a site transmission, slidersite of a slidercrank
    crank_length: float = 0.0  # [m]
    dynamics: ActivationDynamics = "none"
    dynamics_parameters: tuple[float, ...] = ()
    gain: Gain = "fixed"
    gain_parameters: tuple[float, ...] = ()
    bias: Bias = "none"
    bias_parameters: tuple[float, ...] = ()
    inputs: tuple[str, ...] = ("",)  # its controls; several are called position, velocity, feedforward, voltage, or of
    # a rotation's servo x, y, z (a rotation vector [rad]) or qw, qx, qy, qz (a quaternion of any length)
    control_ranges: tuple[tuple[float, float] | None, ...] = (None,)  # of each input
    force_range: tuple[float, float] | None = None  # of a rotation's servo: of the norm of its three forces
    activation_range: tuple[float, float] | None = None
    activation_size: int = 0  # entries it has in the state
    activation_early: bool = False  # the force uses the activation at the step's end
    length_range: tuple[float, float] | None = None  # muscle
    length_search: LengthSearch | None = None  # how to find the range before a run
    disabled: bool = False  # by group, or with all actuators by a flag
    frozen: bool = False  # by a flag, which also stops the states of bristles
    delay: Delay | None = None  # of its controls
    acts: bool = True  # False: the actuator only states a reduction (transmissions of a URDF)
    held_inputs: tuple[float, ...] = ()  # its controls where none are given; (): 0, of a quaternion 1
    by_inertia: bool = False  # its gains are accelerations, times 1 / J M⁻¹ Jᵀ (PhysX's acceleration drives)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Suffix of each of its forces: three for a rotation servo, along the axes of the body that it turns."""
        return _XYZ if self.gain == "rotation" else ("",)

    @property
    def idle(self) -> tuple[float, ...]:
        """The actuator's controls in a run that gives none."""
        return self.held_inputs or tuple(float(name == "qw") for name in self.inputs)

    @property
    def states(self) -> tuple[bool, bool, bool, bool, bool]:
        """The states that a PID servo or DC motor has: slew, integral, temperature, bristle, current."""
        d, g = self.dynamics_parameters, self.gain_parameters
        if self.dynamics == "pid":
            return d[1] > 0, g[0] > 0, False, False, False
        if self.dynamics == "dcmotor":
            return d[7] > 0, g[5] > 0, d[2] > 0, d[5] > 0, d[0] > 0
        return False, False, False, False, False


class SensorKind(NamedTuple):
    """A kind of sensor: the kind of object that it measures, and its outputs' suffixes and unit."""

    object: str  # attribute that names it; "frame": objtype and objname
    outputs: tuple[str, ...] = ("",)
    unit: str = "1"
    clamped: bool = True  # a cutoff bounds it


_WXYZ = (".qw", ".qx", ".qy", ".qz")
SENSOR_KINDS = {
    "accelerometer": SensorKind("site", _XYZ, "m/s^2"),
    "velocimeter": SensorKind("site", _XYZ, "m/s"),
    "gyro": SensorKind("site", _XYZ, "rad/s"),
    "force": SensorKind("site", _XYZ, "N"),
    "torque": SensorKind("site", _XYZ, "N m"),
    "magnetometer": SensorKind("site", _XYZ),
    "jointpos": SensorKind("joint", unit="{position}"),
    "jointvel": SensorKind("joint", unit="{velocity}"),
    "jointactuatorfrc": SensorKind("joint", unit="{force}"),
    "jointlimitpos": SensorKind("joint", unit="{position}"),
    "jointlimitvel": SensorKind("joint", unit="{velocity}"),
    "jointlimitfrc": SensorKind("joint", unit="{force}"),
    "ballquat": SensorKind("joint", _WXYZ, clamped=False),
    "ballangvel": SensorKind("joint", _XYZ, "rad/s"),
    "tendonpos": SensorKind("tendon", unit="m or rad"),
    "tendonvel": SensorKind("tendon", unit="m/s or rad/s"),
    "tendonactuatorfrc": SensorKind("tendon", unit="N or N m"),
    "tendonlimitpos": SensorKind("tendon", unit="m or rad"),
    "tendonlimitvel": SensorKind("tendon", unit="m/s or rad/s"),
    "tendonlimitfrc": SensorKind("tendon", unit="N or N m"),
    "actuatorpos": SensorKind("actuator", unit="m or rad"),
    "actuatorvel": SensorKind("actuator", unit="m/s or rad/s"),
    "actuatorfrc": SensorKind("actuator", unit="N or N m"),
    "framepos": SensorKind("frame", _XYZ, "m"),
    "framequat": SensorKind("frame", _WXYZ, clamped=False),
    "framexaxis": SensorKind("frame", _XYZ, clamped=False),
    "frameyaxis": SensorKind("frame", _XYZ, clamped=False),
    "framezaxis": SensorKind("frame", _XYZ, clamped=False),
    "framelinvel": SensorKind("frame", _XYZ, "m/s"),
    "frameangvel": SensorKind("frame", _XYZ, "rad/s"),
    "framelinacc": SensorKind("frame", _XYZ, "m/s^2"),
    "frameangacc": SensorKind("frame", _XYZ, "rad/s^2"),
    "subtreecom": SensorKind("body", _XYZ, "m"),
    "subtreelinvel": SensorKind("body", _XYZ, "m/s"),
    "subtreeangmom": SensorKind("body", _XYZ, "kg m^2/s"),
    "clock": SensorKind("", unit="s"),
    "touch": SensorKind("site", unit="N"),
    "rangefinder": SensorKind("site"),
    "contact": SensorKind("", clamped=False),
}
"""The kinds of MJCF sensors that are evaluated; the outputs of the last two are in SENSOR_DATA."""

SENSOR_DATA: dict[str, dict[str, SensorKind]] = {
    "rangefinder": {
        "dist": SensorKind("", unit="m"),
        "dir": SensorKind("", _XYZ),
        "origin": SensorKind("", _XYZ, "m"),
        "point": SensorKind("", _XYZ, "m"),
        "normal": SensorKind("", _XYZ),
        "depth": SensorKind("", unit="m"),
    },
    "contact": {
        "found": SensorKind(""),
        "force": SensorKind("", _XYZ, "N"),
        "torque": SensorKind("", _XYZ, "N m"),
        "dist": SensorKind("", unit="m"),
        "pos": SensorKind("", _XYZ, "m"),
        "normal": SensorKind("", _XYZ),
        "tangent": SensorKind("", _XYZ),
    },
}
"""Selectable outputs of these kinds of sensors, in MJCF's words and order; the first is the default."""
REDUCTIONS = ("none", "mindist", "maxforce", "netforce")  # which of the matching contacts are output


@dataclass(frozen=True, slots=True)
class Sensor:
    """A sensor of the file: its kind in MJCF's words, the object it is attached to, and its reference frame."""

    name: str
    kind: str
    object_kind: str = ""  # joint, tendon, actuator, site, body, xbody, geom; for a contact also subtree
    object: str = ""
    reference_kind: str = ""
    reference: str = ""
    cutoff: float = 0.0  # 0: none
    data: tuple[str, ...] = ()  # names in SENSOR_DATA
    slots: int = 1  # number of contacts output, one after the other
    reduction: str = "none"
    source: Source = Source()
    delay: Delay | None = None
    components: tuple[str, ...] = ("",)  # suffixes of the forces of the actuator it measures
    noise: float = 0.0  # standard deviation, in the unit of its outputs

    @property
    def outputs(self) -> tuple[tuple[str, str], ...]:
        """Suffix and unit of each of its outputs."""
        kind = SENSOR_KINDS[self.kind]
        if not self.data:
            return tuple((part + suffix, kind.unit) for part in self.components for suffix in kind.outputs)
        known, plain = SENSOR_DATA[self.kind], len(self.data) == 1
        return tuple(
            (f".{slot}" * (self.slots > 1) + f".{name}" * (not plain) + suffix, known[name].unit)
            for slot in range(self.slots)
            for name in self.data
            for suffix in known[name].outputs
        )


@dataclass(frozen=True, slots=True)
class Site:
    """A named frame on a link, and a volume about it: sphere, capsule, ellipsoid, cylinder or box; `size` as for geoms
    [m], padded to three numbers.
    """

    name: str
    link: str
    pose: Pose = Pose()
    source: Source = Source()
    kind: str = "sphere"
    size: Vector3 = (0.005, 0.005, 0.005)


@dataclass(frozen=True, slots=True)
class Keyframe:
    """A named state to start from; coordinates in the model's order. Empty fields are not given."""

    name: str
    qpos: tuple[float, ...] = ()
    qvel: tuple[float, ...] = ()
    control: tuple[float, ...] = ()
    activation: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ContactOverride:
    """Contact parameters that MJCF's flag `override` substitutes for every contact's own: margin [m], solref, solimp,
    friction (two sliding, torsional, two rolling).
    """

    margin: float = 0.0
    reference: tuple[float, float] = (0.02, 1.0)
    impedance: tuple[float, float, float, float, float] = IMPEDANCE
    friction: tuple[float, float, float, float, float] = (1.0, 1.0, 0.005, 0.0001, 0.0001)


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Simulation options a file sets; None: artsim's default."""

    timestep: float | None = None  # [s]
    gravity: Vector3 | None = None  # [m/s²]
    integrator: str | None = None
    density: float = 0.0  # of the medium [kg/m³]
    viscosity: float = 0.0  # [Pa s]
    wind: Vector3 = (0.0, 0.0, 0.0)  # velocity of the medium [m/s]
    magnetic: Vector3 = (0.0, -0.5, 0.0)  # global flux, for magnetometers
    contact: bool = True  # False: no contacts at all
    filter_parent: bool = True  # False: a body also touches its parent
    contact_override: ContactOverride | None = None
    euler_damping: bool = True  # False: dampers act at the start of steps of MuJoCo's Euler
    cone: str | None = None  # "elliptic" or "pyramidal"
    friction_stiffness: float = 1.0  # of soft contacts: ratio of the stiffness of friction to that of the normal


@dataclass(frozen=True, slots=True)
class Conventions:
    """Conventions of a file format that no file states; readers set them. The defaults are those of URDF."""

    pose_drawn: bool = False  # the file draws the robot in a pose that can be checked against limits; False: zeros
    base_chosen: bool = True  # True: the user may free or fix the root (--base); False: the file decides
    how_to_free: str = "--base floating frees its root"
    parents: Literal["apart", "filtered", "listed"] = "apart"  # see collision_pairs.joined
    surfaces: bool = True  # static meshes collide as they are; False: as their hulls
    seen_by_shapes: bool = True  # rangefinders see the collision geoms of a link, not its visual ones
    shown_by_group: bool = False  # viewers show geoms by their group, even those whose role is to collide
    own_densities: bool = False  # geoms give their own densities: --density does not apply


@dataclass(frozen=True, slots=True)
class Part:
    """One of the models of a scene: its name and its number of links."""

    name: str
    format: Literal["urdf", "mjcf", "sdf", "scene"]
    links: int
    self_collide: bool = False  # as the articulation's
    conventions: Conventions = Conventions()


@dataclass(frozen=True, slots=True)
class Articulation:
    """A robot, or a scene of several: links depth first, the joints that make them a forest, and all forces on them."""

    name: str
    format: Literal["urdf", "mjcf", "sdf", "scene"]
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    couplings: tuple[Coupling, ...] = ()
    loops: tuple[Loop, ...] = ()
    tendons: tuple[Tendon, ...] = ()
    tendon_couplings: tuple[TendonCoupling, ...] = ()
    wrap_geoms: tuple[WrapGeom, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    sites: tuple[Site, ...] = ()
    contact_pairs: tuple[ContactPair, ...] = ()
    no_contact: tuple[tuple[str, str], ...] = ()  # pairs of links that never touch
    sensors: tuple[Sensor, ...] = ()
    keyframes: tuple[Keyframe, ...] = ()
    options: FileOptions = FileOptions()
    notes: tuple[Note, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    text: str = field(default="", repr=False)  # the expanded source, stored in every output
    path: str = ""  # as the user gave it
    base: Literal["fixed", "floating"] = "fixed"
    self_collide: bool = False  # links touch each other
    max_faces: int | None = None  # of a mesh read for contact; None: the default cap
    parts: tuple[Part, ...] = ()  # of a scene of several models, in the order of the links
    conventions: Conventions = Conventions()

    @property
    def source(self) -> Source:
        return Source(self.path)
