"""The schema of artsim's files: one table of all datasets with their dimensions, units and meanings.

Writers, readers, `artsim info` and the documentation use this table; a test compares it with real files. Names of a
robot's parts are labels stored in datasets and never HDF5 paths; the paths are the constants below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple  # 5 times as fast to define as a dataclass, and every run imports these

SCHEMA_VERSION = "1.0"
CONVENTIONS = "CF-1.11 artsim-1"

RUNNING, COMPLETE, NON_FINITE, INTERRUPTED = 0, 1, 2, 3
STATUS_MEANING = {
    RUNNING: "running, or left by a writer that was killed",
    COMPLETE: "complete",
    NON_FINITE: "stopped: non-finite state",
    INTERRUPTED: "interrupted",
}


class Labels(NamedTuple):
    """The names by which a run's arrays are addressed, in the model's order, and the unit of each entry.

    `coord`, `coord_units`: nq · `dof`, `dof_units` (of velocities), `force_units`: nv · `link`: nlink
    · `independent_dof`: the dofs that remain when hard couplings are eliminated (all dofs without couplings)
    · `actuator`, `actuator_state`, `tendon`, `sensor` (with the units of its outputs): of robots that have any
    · `geom`: the collision geometries · `constraint`: the constraint rows that the run can have, if recorded, or those
    of a batch's poses
    · `jacobian_link`, `jacobian_dof`: link and dof indices of each stored column of the link Jacobians.
    """

    coord: tuple[str, ...]
    dof: tuple[str, ...]
    link: tuple[str, ...]
    independent_dof: tuple[str, ...]
    coord_units: tuple[str, ...]  # "rad", "m", "1" (quaternion entries)
    dof_units: tuple[str, ...]  # "rad/s", "m/s"
    force_units: tuple[str, ...]  # "N m", "N"
    actuator: tuple[str, ...] = ()
    actuator_state: tuple[str, ...] = ()
    tendon: tuple[str, ...] = ()
    loop: tuple[str, ...] = ()
    sensor: tuple[str, ...] = ()
    sensor_units: tuple[str, ...] = ()
    geom: tuple[str, ...] = ()
    constraint: tuple[str, ...] = ()
    jacobian_link: tuple[int, ...] = ()
    jacobian_dof: tuple[int, ...] = ()
    control: tuple[str, ...] | None = None  # controls of the actuators; None: one per actuator

    @property
    def controls(self) -> tuple[str, ...]:
        """Names of the actuators' controls; a PID servo or a DC motor can have several, or none."""
        return self.actuator if self.control is None else self.control

    def with_controls(self, names: tuple[str, ...]) -> Labels:
        """The labels with these names of controls."""
        return self._replace(control=None if names == self.actuator else names)

    @property
    def of_controls(self) -> Labels:
        """The labels of /controls, where the dimension `actuator` counts controls."""
        return self._replace(actuator=self.controls)

    @property
    def jacobian_column(self) -> tuple[str, ...]:
        """The names of the stored columns: "link,dof"."""
        pairs = zip(self.jacobian_link, self.jacobian_dof, strict=True)
        return tuple(f"{self.link[i]},{self.dof[k]}" for i, k in pairs)

    @property
    def touching_link(self) -> tuple[str, ...]:
        """The links that `link_a` and `link_b` of contacts index: all links, and the world unless it is one of them."""
        return self.link if "world" in self.link else (*self.link, "world")


class Variable(NamedTuple):
    """One dataset: the names of its dimensions, unit, meaning and storage type.

    `unit` is a text; where the entries of a dimension may differ, it contains the name of a coordinate variable in
    braces: `{dof_units}` becomes "rad/s" if all dofs agree and "see dof_units" otherwise; text after the brace is kept.
    """

    dims: tuple[str, ...]
    unit: str
    meaning: str
    dtype: str = "f8"  # numpy's name, or "str" (variable-length UTF-8)
    on_request: bool = False  # trajectory only: written if requested by name
    comment: str = ""  # what does not fit on a plot's axis


class Dimension(NamedTuple):
    """A labelled dimension: its meaning, and its labels where they are fixed."""

    meaning: str
    labels: tuple[str, ...] | None = None  # None: from the robot


FIXED_LABELS = {
    "xyz": ("x", "y", "z"),
    "quat": ("w", "x", "y", "z"),
    "twist": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "wrench": ("fx", "fy", "fz", "tx", "ty", "tz"),
    "energy_kind": ("kinetic", "potential"),
}
FIXED_LABELS["work_source"] = (
    *("applied", "drive", "weight", "medium"),
    *("passive", "coupling", "limit", "loop", "tendon", "contact"),
)
FIXED_LABELS["plane_entry"] = ("x", "y", "z", "distance")
FIXED_LABELS["direction"] = ("normal", "tangent_1", "tangent_2")
FIXED_LABELS["contact_entry"] = (
    *("shape_a", "shape_b", "feature"),
    *FIXED_LABELS["direction"],
    *("torsion", "rolling_1", "rolling_2", "steps_eased", "depth_at_start"),
)
FIXED_LABELS["extreme"] = (
    *("coupling_error", "tendon_error", "worst_residual", "energy_at_start", "energy"),
    *("most_contacts", "deepest_contact", "eased_steps", "left_inside_steps", "joint_gap", "joint_gap_angle"),
    *("energy_excess_step", "energy_excess_dof", "energy_excess_source", "energy_excess", "energy_available"),
    *("start_depth", "gave_way", "gave_way_share", "gave_way_link_a", "gave_way_link_b", "unsolved_steps"),
    *("loop_gap", "loop_gap_angle"),
    *(f"{what}_{source}" for what in ("work", "stored", "ceiling", "credit") for source in FIXED_LABELS["work_source"]),
    *("account_energy", "account_lowest", "account_created", "account_step", "account_opened", "account_lag"),
    *("held_inside_steps", "held_inside", "held_inside_link_a", "held_inside_link_b", "held_inside_by_loop"),
    *("least_loop_gap", "least_loop_gap_angle", "loop_opened", "loop_opened_angle", "opened_loop", "opened_loop_angle"),
)
FIXED_LABELS["wrench_entry"] = FIXED_LABELS["wrench"]  # of the variable that is itself called wrench

DIMENSIONS: Mapping[str, Dimension] = {
    "coord": Dimension("coordinate"),
    "dof": Dimension("degree of freedom"),
    "dof2": Dimension("degree of freedom (second index)"),
    "independent_dof": Dimension("independent degree of freedom"),
    "independent_dof2": Dimension("independent degree of freedom (second index)"),
    "dof_pair": Dimension("pair of degrees of freedom, row by row of the lower triangle"),
    "independent_pair": Dimension("pair of independent degrees of freedom, row by row of the lower triangle"),
    "link": Dimension("link"),
    "jacobian_column": Dimension("link, and degree of freedom that moves it"),
    "joint": Dimension("joint"),
    "actuator": Dimension("actuator"),
    "actuator_state": Dimension("actuator state"),
    "tendon": Dimension("tendon"),
    "loop": Dimension("loop joint"),
    "sensor": Dimension("output of a sensor"),
    "xyz": Dimension("axis", FIXED_LABELS["xyz"]),
    "quat": Dimension("quaternion entry", FIXED_LABELS["quat"]),
    "twist": Dimension("twist entry", FIXED_LABELS["twist"]),
    "wrench": Dimension("wrench entry", FIXED_LABELS["wrench"]),
    "wrench_entry": Dimension("wrench entry", FIXED_LABELS["wrench_entry"]),
    "energy_kind": Dimension("kind", FIXED_LABELS["energy_kind"]),
    "geom": Dimension("collision geometry"),
    "constraint": Dimension("constraint row"),
    "constraint2": Dimension("constraint row (second index)"),
    "constraint_pair": Dimension("pair of constraint rows, row by row of the lower triangle"),
    "plane_entry": Dimension("entry of a plane", FIXED_LABELS["plane_entry"]),
    "direction": Dimension("direction of a contact", FIXED_LABELS["direction"]),
    "contact_entry": Dimension("entry of a contact's warm-start record", FIXED_LABELS["contact_entry"]),
    "extreme": Dimension("figure of the run's summary", FIXED_LABELS["extreme"]),
}
"""Dimensions with string labels. `time` [s] is numeric and grows, NUMBERED ones are numbered, and `sample`, `shard` and
PIECE_DIMENSIONS have no labels."""

NUMBERED = {
    "row": "constraint row",
    "input": "input",
    "kept": "entry of kept samples",
    "body": "body",
    "mesh": "mesh",
    "checkpoint": "checkpoint",
    "contact_row": "contact row",
}
"""Numbered dimensions, and what they number. In the groups of RAGGED `row` numbers the rows of the table, and grows."""

PIECE_DIMENSIONS = ("piece_use", "piece", "vertex", "face", "corner", "convex_face", "height_point")
"""Dimensions of the pieces as which meshes and height fields collide."""

EQUIPMENT = ("actuator", "actuator_state", "tendon", "loop", "sensor")
"""Dimensions that are absent for robots without such parts."""

LABELS_OF_ENTRIES = {
    "coord_units": ("coord",),
    "dof_units": ("dof",),
    "force_units": ("dof",),
    "sensor_units": ("sensor",),
    "twist_units": ("twist",),
    "wrench_units": ("wrench",),
    "independent_dof_units": ("independent_dof",),
    "independent_force_units": ("independent_dof",),
    "jacobian_link": ("jacobian_column",),
    "jacobian_dof": ("jacobian_column",),
}
"""Coordinate variables with the unit of each entry of a dimension, or with an index into another dimension."""

TWIST_UNITS = ("m/s",) * 3 + ("rad/s",) * 3
WRENCH_UNITS = ("N",) * 3 + ("N m",) * 3

_TIME = Variable(("time",), "s", "time", comment="since the start of the run; row k is step k * every")

TABLE: dict[str, Variable] = {
    # the run, row by row
    "trajectory/time": _TIME,
    "trajectory/qpos": Variable(
        ("time", "coord"), "{coord_units}", "position", comment="coordinates before the step, in the model's order"
    ),
    "trajectory/qvel": Variable(("time", "dof"), "{dof_units}", "velocity", comment="before the step"),
    "trajectory/qacc": Variable(("time", "dof"), "{dof_units}/s", "acceleration", comment="over the step"),
    "trajectory/tau_applied": Variable(
        ("time", "dof"),
        "{force_units}",
        "applied joint force",
        comment="of controllers and external wrenches, acting over the step",
    ),
    "trajectory/tau_drive": Variable(
        ("time", "dof"),
        "{force_units}",
        "drive force",
        comment="of drives and actuators, acting over the step: weighted between its start and end",
    ),
    "trajectory/tau_passive": Variable(
        ("time", "dof"),
        "{force_units}",
        "passive joint force",
        comment="of damping, springs and friction, acting over the step; where a step is evaluated again (spin, taut "
        "bodies), including the difference of its inertial forces from M qacc + bias at the start",
    ),
    "trajectory/tau_coupling": Variable(
        ("time", "dof"),
        "{force_units}",
        "coupling force",
        comment="of mimic joints and joint equalities, acting over the step",
    ),
    "trajectory/tau_limit": Variable(
        ("time", "dof"), "{force_units}", "limit force", comment="of position and velocity limits, acting over the step"
    ),
    "trajectory/tau_loop": Variable(
        ("time", "dof"),
        "{force_units}",
        "loop force",
        comment="of joints that close loops, acting over the step",
    ),
    "trajectory/tau_tendon": Variable(
        ("time", "dof"),
        "{force_units}",
        "tendon force",
        comment="of tendons' springs, dampers, friction, limits and equalities, acting over the step",
    ),
    "trajectory/tau_contact": Variable(
        ("time", "dof"), "{force_units}", "contact force", comment="of contacts, friction too, acting over the step"
    ),
    "trajectory/link_position": Variable(
        ("time", "link", "xyz"),
        "m",
        "link position",
        comment="origin of the link's frame in the world, before the step",
    ),
    "trajectory/link_quaternion": Variable(
        ("time", "link", "quat"),
        "1",
        "link rotation",
        comment="of the link's frame to the world (w, x, y, z), before the step",
    ),
    "trajectory/incoming_wrench": Variable(
        ("time", "link", "wrench"),
        "{wrench_units}",
        "incoming joint wrench",
        comment="of the parent on the link through its joint, at the link frame's origin, world axes; it "
        "excludes wrenches of contacts, loop joints, spatial tendons and actuators at sites",
    ),
    "trajectory/contact_wrench": Variable(
        ("time", "link", "wrench"),
        "{wrench_units}",
        "contact wrench",
        on_request=True,
        comment="of all contacts on the link, acting over the step, at the link frame's origin, world axes",
    ),
    "trajectory/external_wrench": Variable(
        ("time", "link", "wrench"),
        "{wrench_units}",
        "external wrench",
        on_request=True,
        comment="of contacts, loop joints, spatial tendons and actuators at sites on the link, acting over the step, "
        "at the link frame's origin, world axes; the link accelerates under it, its joints' wrenches and its weight",
    ),
    "trajectory/activation": Variable(
        ("time", "actuator_state"), "1", "activation", comment="states of actuators with dynamics, before the step"
    ),
    "trajectory/actuator_force": Variable(
        ("time", "actuator"), "N or N m", "actuator force", comment="acting over the step"
    ),
    "trajectory/actuator_length": Variable(
        ("time", "actuator"), "m or rad", "actuator length", on_request=True, comment="before the step"
    ),
    "trajectory/actuator_velocity": Variable(
        ("time", "actuator"), "m/s or rad/s", "actuator velocity", on_request=True, comment="before the step"
    ),
    "trajectory/tendon_length": Variable(
        ("time", "tendon"), "m or rad", "tendon length", on_request=True, comment="before the step"
    ),
    "trajectory/tendon_velocity": Variable(
        ("time", "tendon"), "m/s or rad/s", "tendon velocity", on_request=True, comment="before the step"
    ),
    "trajectory/tendon_force": Variable(
        ("time", "tendon"),
        "N or N m",
        "tendon force",
        on_request=True,
        comment="of springs, dampers, actuators, limits, friction and inertia along the tendon, acting over the step; "
        "positive: lengthening",
    ),
    "trajectory/loop_wrench": Variable(
        ("time", "loop", "wrench"),
        "{wrench_units}",
        "wrench of loop joint",
        on_request=True,
        comment="on the first link of the loop, at its point there, world axes, acting over the step; the second link "
        "receives the opposite; forces along and about its free axes are in tendon_force",
    ),
    "trajectory/sensors": Variable(
        ("time", "sensor"),
        "{sensor_units}",
        "sensors",
        on_request=True,
        comment="outputs of the file's sensors, for the state before the step and the acceleration over it",
    ),
    "trajectory/jacobian": Variable(
        ("time", "jacobian_column", "twist"),
        "{twist_units} per dof_units",
        "link Jacobian",
        on_request=True,
        comment="velocity of the link per joint velocity, at its centre of mass, world axes; only the dofs that move "
        "the link: dense[:, jacobian_link, :, jacobian_dof] = jacobian.swapaxes(0, 1)",
    ),
    "trajectory/gravity": Variable(
        ("time", "dof"),
        "{force_units}",
        "gravity compensation",
        on_request=True,
        comment="joint forces that hold the robot against gravity",
    ),
    "trajectory/mass_matrix": Variable(
        ("time", "dof", "dof2"),
        "{force_units} s per dof_units",
        "mass matrix",
        on_request=True,
        comment="joint-space inertia with armature, full coordinates",
    ),
    "trajectory/bias": Variable(
        ("time", "dof"),
        "{force_units}",
        "bias force",
        on_request=True,
        comment="Coriolis, centrifugal and gravity joint forces",
    ),
    "trajectory/com": Variable(
        ("time", "xyz"), "m", "centre of mass", on_request=True, comment="of all links in the world"
    ),
    "trajectory/momentum": Variable(
        ("time", "twist"),
        "kg m/s (linear), kg m^2/s (angular)",
        "momentum",
        on_request=True,
        comment="linear, then angular about the centre of mass, world axes",
    ),
    "trajectory/energy": Variable(
        ("time", "energy_kind"),
        "J",
        "energy",
        on_request=True,
        comment="kinetic, and potential of gravity and springs, before the step",
    ),
    "trajectory/solver_iterations": Variable(
        ("time",),
        "1",
        "solver iterations",
        "i4",
        on_request=True,
        comment="sweeps or solves of the constraint solver in the step",
    ),
    "trajectory/solver_residual": Variable(
        ("time",),
        "1",
        "solver residual",
        on_request=True,
        comment="largest velocity residual of the constraint solver [rad/s or m/s]",
    ),
    "trajectory/asleep": Variable(("time",), "1", "asleep", "i1", on_request=True, comment="1: the robot sleeps"),
    "trajectory/friction_constant": Variable(
        ("time", "dof"),
        "{force_units}",
        "load-independent joint friction",
        on_request=True,
        comment="its share of tau_passive; sticking friction is divided in the ratio of the two bounds",
    ),
    "trajectory/friction_by_load": Variable(
        ("time", "dof"),
        "{force_units}",
        "load-dependent joint friction",
        on_request=True,
        comment="its share of tau_passive: at most friction_coefficient times the load of the previous step",
    ),
    "trajectory/coord_units": Variable(("coord",), "1", "unit of each position coordinate", "str"),
    "trajectory/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "trajectory/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    "trajectory/sensor_units": Variable(("sensor",), "1", "unit of each output of a sensor", "str"),
    "trajectory/twist_units": Variable(("twist",), "1", "unit of each entry of a twist", "str"),
    "trajectory/wrench_units": Variable(("wrench",), "1", "unit of each entry of a wrench", "str"),
    "trajectory/jacobian_link": Variable(
        ("jacobian_column",), "1", "link of each column", "i4", comment="index into link"
    ),
    "trajectory/jacobian_dof": Variable(
        ("jacobian_column",), "1", "degree of freedom of each column", "i4", comment="index into dof"
    ),
    "trajectory/n_valid": Variable((), "1", "rows written in full; later rows are undefined", "i8"),
    "trajectory/status": Variable(
        (), "1", "0 running (or killed), 1 complete, 2 stopped at a non-finite state, 3 interrupted", "i1"
    ),
    # the contacts of the recorded rows, one after the other; link and geom are indices into these labels
    "contact/time": _TIME,
    "contact/contact_count": Variable(
        ("time",), "1", "contacts in the step", "i8", comment="their rows follow those of earlier steps"
    ),
    "contact/step": Variable(("row",), "1", "step of the contact", "i8"),
    "contact/link_a": Variable(("row",), "1", "first link", "i4", comment="index into link"),
    "contact/link_b": Variable(("row",), "1", "second link", "i4", comment="index into link"),
    "contact/geom_a": Variable(("row",), "1", "first geometry", "i4", comment="index into geom"),
    "contact/geom_b": Variable(("row",), "1", "second geometry", "i4", comment="index into geom"),
    "contact/point": Variable(
        ("row", "xyz"), "m", "point", comment="half way between the surfaces, in the world, before the step"
    ),
    "contact/normal": Variable(("row", "xyz"), "1", "normal", comment="from a to b, world axes"),
    "contact/tangent": Variable(
        ("row", "xyz"), "1", "first tangent", comment="world axes; the second is normal x first tangent"
    ),
    "contact/depth": Variable(
        ("row",), "m", "depth", comment="before the step; negative: a gap, within a margin or closed by the step"
    ),
    "contact/force": Variable(
        ("row", "direction"), "N", "contact force", comment="on b, acting over the step, along normal and tangents"
    ),
    "contact/torque": Variable(
        ("row", "direction"), "N m", "contact torque", comment="on b at the point, about normal and tangents"
    ),
    "contact/n_valid": Variable((), "1", "rows of contacts written in full", "i8"),
    # the constraint rows of the recorded steps, one after the other, and the lower triangles of their K
    "constraint/time": _TIME,
    "constraint/constraint_count": Variable(
        ("time",), "1", "constraint rows in the step", "i8", comment="their rows follow those of earlier steps"
    ),
    "constraint/step": Variable(("row",), "1", "step of the constraint row", "i8"),
    "constraint/name": Variable(("row",), "1", "name of the row", "i4", comment="index into constraint"),
    "constraint/contact": Variable(
        ("row",), "1", "contact of the row", "i4", comment="its number in the step; -1: the row is not a contact's"
    ),
    "constraint/cfm": Variable(
        ("row",),
        "1/kg or 1/(kg m^2)",
        "compliance of the row",
        comment="velocity per impulse by which it gives way; with tgs that of a sub-step",
    ),
    "constraint/impulse": Variable(("row",), "N s or N m s", "impulse of the row", comment="over the step"),
    "constraint/n_valid": Variable((), "1", "rows written in full", "i8"),
    "delassus/time": _TIME,
    "delassus/entry_count": Variable(
        ("time",), "1", "entries in the step", "i8", comment="their rows follow those of earlier steps"
    ),
    "delassus/step": Variable(("row",), "1", "step of the entry", "i8"),
    "delassus/row_a": Variable(
        ("row",), "1", "constraint row of the entry", "i4", comment="its number in the step, from 0"
    ),
    "delassus/row_b": Variable(
        ("row",), "1", "constraint column of the entry", "i4", comment="its number in the step, at most row_a"
    ),
    "delassus/value": Variable(
        ("row",),
        "1/kg or 1/(kg m^2)",
        "entry of K = J M^-1 J^T + cfm",
        comment="velocity of row a per impulse of row b; M with armature, implicit springs, dampers and drives; K is "
        "symmetric, of which the lower triangle is stored, without zeros off the diagonal",
    ),
    "delassus/n_valid": Variable((), "1", "rows written in full", "i8"),
    # the inputs as applied: each row holds until the next takes effect
    "controls/time": Variable(("time",), "s", "when the row takes effect"),
    "controls/start_step": Variable(("time",), "1", "first step of the row; it holds until the next row's", "i8"),
    "controls/torque": Variable(("time", "dof"), "{force_units}", "joint forces applied by the controller"),
    "controls/target": Variable(("time", "dof"), "{dof_units} s", "position targets of the drives"),
    "controls/target_velocity": Variable(("time", "dof"), "{dof_units}", "velocity targets of the drives"),
    "controls/target_acceleration": Variable(("time", "dof"), "{dof_units}/s", "accelerations for computed torque"),
    "controls/control": Variable(
        ("time", "actuator"),
        "1",
        "controls of the actuators",
        comment="a servo or motor with several has one entry each; LINK.fx … LINK.tz: wrenches on links [N, N m]",
    ),
    "controls/changes": Variable(
        ("changes",),
        "1",
        "changes of state and settings between steps, as text",
        "i1",
        comment="UTF-8; a line of JSON each: the step that they precede, settings as in /provenance, state",
    ),
    "controls/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "controls/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    "controls/n_valid": Variable((), "1", "rows written in full", "i8"),
    # the whole state after the last step, and (checkpoint/…) every so many steps: to resume a run or to continue it
    "final/qpos": Variable(("coord",), "{coord_units}", "position coordinates"),
    "final/qvel": Variable(("dof",), "{dof_units}", "velocities"),
    "final/activation": Variable(("actuator_state",), "1", "states of actuators with dynamics"),
    "final/history": Variable(
        ("kept",),
        "1",
        "samples of delayed controls and sensors",
        comment="of each delayed one: slot of the newest, ticks so far, steps of its samples, the samples",
    ),
    "final/impulse": Variable(
        ("row",), "N s or N m s", "impulses of the constraint rows in the last step", comment="warm start of the solver"
    ),
    "final/load": Variable(
        ("dof",),
        "{force_units}",
        "load in the joints in the last step",
        comment="|F| of the force through slides, √(|F|² + |T|²) of force and torque through hinges; bounds "
        "load-dependent friction",
    ),
    "final/change": Variable(
        ("dof",),
        "{dof_units}",
        "change of the velocities in the last step",
        comment="the next step expects it to go on, unless the step before had a smaller one",
    ),
    "final/earlier_change": Variable(("dof",), "{dof_units}", "change of the velocities in the step before the last"),
    "final/still": Variable((), "1", "steps that the robot has been at rest, as sleeping counts them", "i8"),
    "final/last_input": Variable(
        ("input",),
        "N or N m, m or rad, m/s or rad/s, 1",
        "inputs of the last step",
        comment="torque, target, target velocity of every dof, controls of the actuators; a change wakes the robot",
    ),
    "final/body_centre": Variable(("body", "xyz"), "m", "centres of mass of the bodies (maximal coordinates)"),
    "final/body_turn": Variable(("body", "quat"), "1", "rotations of the bodies"),
    "final/body_velocity": Variable(("body", "twist"), "{twist_units}", "velocities of the bodies"),
    "final/limit_steps": Variable(("dof",), "1", "steps at a limit since the start"),
    "final/extremes": Variable(
        ("extreme",), "J (energy), 1 (contacts), m or rad, m/s or rad/s", "figures of the run's summary"
    ),
    "final/step": Variable((), "1", "steps taken", "i8"),
    "final/time": Variable((), "s", "time after these steps"),
    "final/contact": Variable(
        ("contact_row", "contact_entry"),
        "1 (shapes, feature), N s (normal, tangents), N m s",
        "contacts of the last step",
        comment="warm start of the solver",
    ),
    "final/coord_units": Variable(("coord",), "1", "unit of each position coordinate", "str"),
    "final/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    "final/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "final/twist_units": Variable(("twist",), "1", "unit of each entry of a twist", "str"),
    # many configurations: inputs, results and status; `batch_variable` tells how a line reads when results are reduced
    # or packed
    "batch/qpos": Variable(("sample", "coord"), "{coord_units}", "position", comment="given"),
    "batch/qvel": Variable(("sample", "dof"), "{dof_units}", "velocity", comment="given"),
    "batch/qacc": Variable(("sample", "dof"), "{dof_units}/s", "acceleration", comment="given"),
    "batch/tau": Variable(("sample", "dof"), "{force_units}", "joint force", comment="given"),
    "batch/wrench": Variable(
        ("sample", "link", "wrench_entry"),
        "N (force), N m (torque)",
        "external wrench",
        comment="given; on the link, at the point named by the group's attribute `at`, world axes",
    ),
    "batch/gravity": Variable(
        ("sample", "dof"),
        "{force_units}",
        "gravity compensation",
        comment="joint forces that hold the robot against gravity",
    ),
    "batch/coriolis": Variable(
        ("sample", "dof"), "{force_units}", "Coriolis force", comment="Coriolis and centrifugal joint forces C(q, v) v"
    ),
    "batch/bias": Variable(
        ("sample", "dof"), "{force_units}", "bias force", comment="Coriolis, centrifugal and gravity joint forces"
    ),
    "batch/mass_matrix": Variable(
        ("sample", "dof", "dof2"),
        "{force_units} s per dof_units",
        "mass matrix",
        comment="joint-space inertia with armature",
    ),
    "batch/inverse_mass_matrix": Variable(
        ("sample", "dof", "dof2"), "{dof_units}/s per force_units", "inverse mass matrix"
    ),
    "batch/inverse_dynamics": Variable(
        ("sample", "dof"), "{force_units}", "inverse dynamics", comment="joint forces for the acceleration qacc"
    ),
    "batch/forward_dynamics": Variable(
        ("sample", "dof"), "{dof_units}/s", "forward dynamics", comment="acceleration under the joint forces tau"
    ),
    "batch/external_force": Variable(
        ("sample", "dof"), "{force_units}", "external force compensation", comment="joint forces that balance `wrench`"
    ),
    "batch/jacobian": Variable(
        ("sample", "link", "twist", "dof"),
        "{twist_units} per dof_units",
        "link Jacobian",
        comment="velocity of the link per joint velocity, at the point that `at` names, world axes",
    ),
    "batch/jacobian_dot": Variable(
        ("sample", "link", "twist", "dof"),
        "{twist_units}/s per dof_units",
        "rate of the link Jacobian",
        comment="its time derivative at the velocity qvel",
    ),
    "batch/link_position": Variable(
        ("sample", "link", "xyz"), "m", "link position", comment="origin of the link's frame in the world"
    ),
    "batch/link_quaternion": Variable(
        ("sample", "link", "quat"), "1", "link rotation", comment="of the link's frame to the world (w, x, y, z)"
    ),
    "batch/link_velocity": Variable(
        ("sample", "link", "twist"),
        "{twist_units}",
        "link velocity",
        comment="linear, angular, at the point that `at` names, world axes",
    ),
    "batch/link_acceleration": Variable(
        ("sample", "link", "twist"),
        "{twist_units}/s",
        "link acceleration",
        comment="linear, angular, at the point that `at` names, world axes; gravity is not included",
    ),
    "batch/com": Variable(("sample", "xyz"), "m", "centre of mass", comment="of all links in the world"),
    "batch/com_jacobian": Variable(
        ("sample", "xyz", "dof"),
        "m/s per dof_units",
        "centre of mass Jacobian",
        comment="velocity of the centre of mass per joint velocity",
    ),
    "batch/momentum": Variable(
        ("sample", "twist"),
        "kg m/s (linear), kg m^2/s (angular)",
        "momentum",
        comment="linear, then angular about the centre of mass, world axes",
    ),
    "batch/centroidal_momentum_matrix": Variable(
        ("sample", "twist", "dof"),
        "kg m/s (linear), kg m^2/s (angular), per dof_units",
        "centroidal momentum matrix",
        comment="momentum per joint velocity",
    ),
    "batch/centroidal_bias": Variable(
        ("sample", "twist"),
        "N (linear), N m (angular)",
        "centroidal bias",
        comment="rate of the momentum at zero joint acceleration",
    ),
    "batch/kinetic_energy": Variable(("sample",), "J", "kinetic energy", comment="armature included"),
    "batch/potential_energy": Variable(
        ("sample",), "J", "potential energy", comment="of gravity (0 at the origin) and springs"
    ),
    "batch/coupling_matrix": Variable(
        ("sample", "dof", "independent_dof"),
        "{dof_units} per independent_dof_units",
        "coupling matrix",
        comment="velocity of each degree of freedom per independent one",
    ),
    "batch/constraint_jacobian": Variable(
        ("sample", "constraint", "dof"),
        "m/s or rad/s, per dof_units",
        "constraint Jacobian",
        comment="velocity of each constraint row per joint velocity: couplings, loop joints, equalities of tendons, "
        "hard ones and ones that give way; rotations of welds in their torque scale (m per rad)",
    ),
    "batch/delassus": Variable(
        ("sample", "constraint", "constraint2"),
        "1/kg or 1/(kg m^2)",
        "Delassus matrix",
        comment="K = J M^-1 J^T: velocity of a constraint row per impulse of another; J is constraint_jacobian, M "
        "mass_matrix; the compliance (cfm) of rows that give way is not included, other than in /delassus of runs",
    ),
    "batch/status": Variable(
        ("sample",),
        "1",
        "whether the row could be computed",
        "i1",
        comment="0 computed, 1 an input is invalid, 2 a result is not finite or M is singular, -1 shard missing; "
        "results are NaN where it is not 0",
    ),
    "batch/coord_units": Variable(("coord",), "1", "unit of each position coordinate", "str"),
    "batch/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "batch/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    "batch/twist_units": Variable(("twist",), "1", "unit of each entry of a twist", "str"),
    "batch/independent_dof_units": Variable(
        ("independent_dof",), "1", "unit of each independent degree of freedom's velocity", "str"
    ),
    "batch/independent_force_units": Variable(
        ("independent_dof",), "1", "unit of each independent degree of freedom's force", "str"
    ),
    # many runs of one robot that differ in their start, inputs or parameters
    "rollout/time": _TIME,
    "rollout/qpos": Variable(
        ("sample", "time", "coord"),
        "{coord_units}",
        "position",
        comment="coordinates before the step; NaN from row n_valid of a sample on",
    ),
    "rollout/qvel": Variable(
        ("sample", "time", "dof"),
        "{dof_units}",
        "velocity",
        comment="before the step; NaN from row n_valid of a sample on",
    ),
    "rollout/final_qpos": Variable(("sample", "coord"), "{coord_units}", "position after the last step"),
    "rollout/final_qvel": Variable(("sample", "dof"), "{dof_units}", "velocity after the last step"),
    "rollout/mass_factor": Variable(("sample", "link"), "1", "factor of the link's mass and inertia"),
    "rollout/armature_factor": Variable(("sample", "dof"), "1", "factor of the armature"),
    "rollout/damping_factor": Variable(("sample", "dof"), "1", "factor of the joint's damping"),
    "rollout/stiffness_factor": Variable(("sample", "dof"), "1", "factor of the joint's spring stiffness"),
    "rollout/joint_friction_factor": Variable(("sample", "dof"), "1", "factor of the joint's friction"),
    "rollout/friction_factor": Variable(("sample",), "1", "factor of the friction of contacts"),
    "rollout/drive_stiffness_factor": Variable(("sample", "dof"), "1", "factor of the drive's stiffness"),
    "rollout/drive_damping_factor": Variable(("sample", "dof"), "1", "factor of the drive's damping"),
    "rollout/start_depth": Variable(
        ("sample",), "m", "depth of the deepest contact at the start; 0: nothing is inside anything", "f8"
    ),
    "rollout/sunk": Variable(
        ("sample",), "m", "depth beside that at the start of the hard contact that got deepest, for its shapes", "f8"
    ),
    "rollout/n_valid": Variable(("sample",), "1", "rows before the sample ended", "i8"),
    "rollout/status": Variable(("sample",), "1", "1 complete, 2 stopped at a non-finite state, 3 stopped", "i1"),
    "rollout/coord_units": Variable(("coord",), "1", "unit of each position coordinate", "str"),
    "rollout/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "rollout/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    # the index of a batch in several files: row k of each is row first_row + k of the whole
    "shards/name": Variable(("shard",), "1", "file, in the folder of the index", "str"),
    "shards/first_row": Variable(("shard",), "1", "first row of the batch in the file", "i8"),
    "shards/rows": Variable(("shard",), "1", "rows in the file", "i8"),
    "shards/bytes": Variable(("shard",), "1", "size of the file", "i8"),
    "shards/sha256": Variable(("shard",), "1", "SHA-256 of the file", "str"),
    "shards/failed": Variable(("shard",), "1", "rows in the file whose status is not 0", "i8"),
    # the robot
    "model/source": Variable((), "1", "the robot's file, expanded, as simulated", "str"),
    "model/link_parent": Variable(("link",), "1", "parent link; empty for a root", "str"),
    "model/link_mass": Variable(("link",), "kg", "mass"),
    "model/joint_type": Variable(("joint",), "1", "kind of joint", "str"),
    "model/joint_parent": Variable(("joint",), "1", "parent link", "str"),
    "model/joint_child": Variable(("joint",), "1", "child link", "str"),
    "model/joint_lower": Variable(("joint",), "rad or m", "lower position limit; -inf without one"),
    "model/joint_upper": Variable(("joint",), "rad or m", "upper position limit; inf without one"),
    "model/joint_effort": Variable(("joint",), "N m or N", "bound of drives and controllers; inf without one"),
    "model/joint_velocity": Variable(("joint",), "rad/s or m/s", "velocity limit; inf without one"),
    "model/mesh_uri": Variable(("mesh",), "1", "mesh as written in the robot's file", "str"),
    "model/mesh_path": Variable(("mesh",), "1", "file it was resolved to; empty when it was not found", "str"),
    "model/mesh_link": Variable(("mesh",), "1", "link it belongs to", "str"),
    # the pieces as which meshes and height fields collide and are seen: convex, triangles, heights, each once
    "model/use_geom": Variable(
        ("piece_use",), "1", "geometry", "i4", comment="of the piece, numbered over all links in order, from 0"
    ),
    "model/use_piece": Variable(("piece_use",), "1", "piece", "i4", comment="that is the geometry or a part of it"),
    "model/use_seen": Variable(
        ("piece_use",),
        "1",
        "purpose of the use",
        "i1",
        comment="0: collision, 1: seen by rangefinders; absent: collision",
    ),
    "model/piece_kind": Variable(("piece",), "1", "0 convex polyhedron, 1 triangles, 2 height field", "i1"),
    "model/piece_vertices": Variable(("piece",), "1", "vertices", "i4", comment="of a height field: rows, along y"),
    "model/piece_faces": Variable(("piece",), "1", "faces", "i4", comment="of a height field: columns, along x"),
    "model/vertex_position": Variable(
        ("vertex", "xyz"), "m", "vertex", comment="of each piece in turn, in the geometry's frame"
    ),
    "model/face_corners": Variable(("face",), "1", "corners of a face", "i4"),
    "model/corner_vertex": Variable(
        ("corner",),
        "1",
        "vertex",
        "i4",
        comment="of a face's corner, within its piece, from 0; counter-clockwise seen from outside",
    ),
    "model/plane": Variable(
        ("convex_face", "plane_entry"),
        "1 (normal), m (distance)",
        "plane of a face",
        comment="of the convex pieces' faces: outward normal, distance from the frame's origin",
    ),
    "model/height": Variable(
        ("height_point",), "m", "height", comment="of height fields, row by row, above their frame"
    ),
}
TABLE |= {
    **{
        path.replace("final/", "checkpoint/"): variable
        if variable.dtype == "str" or path == "final/contact"
        else variable._replace(dims=("checkpoint", *variable.dims))
        for path, variable in TABLE.items()
        if path.startswith("final/")
    },
    "checkpoint/contact_count": Variable(
        ("checkpoint",), "1", "contacts", "i8", comment="their rows follow those of earlier checkpoints"
    ),
    "checkpoint/n_valid": Variable((), "1", "checkpoints written in full", "i8"),
}
"""Path -> variable. A label dataset `<group>/<dimension>` exists for every dimension a group uses (DIMENSIONS)."""

STATE = tuple(
    path.removeprefix("final/")
    for path, variable in TABLE.items()
    if path.startswith("final/") and variable.dtype != "str"
)
"""The variables of a state, in the order of the file."""

RECORDED = tuple(
    path.removeprefix("trajectory/")
    for path, variable in TABLE.items()
    if path.startswith("trajectory/") and variable.dims[:1] == ("time",) and path != "trajectory/time"
)
"""Every per-step variable that a run can record, in the order of the file, but for those of RAGGED_BY_NAME."""


def _table_of(group: str) -> tuple[str, ...]:
    return tuple(
        path.removeprefix(f"{group}/")
        for path, variable in TABLE.items()
        if path.startswith(f"{group}/") and variable.dims[:1] == ("row",)
    )


CONTACT_TABLE = _table_of("contact")
"""The recorded variables of a contact."""


class Ragged(NamedTuple):
    """A group that holds a table with another number of rows in every step."""

    counted_by: str  # the variable that counts the rows of a step
    table: tuple[str, ...]
    labels: tuple[str, ...]  # dimensions with labels
    bytes: int  # of a row of the table


RAGGED = {
    "contact": Ragged("contact_count", CONTACT_TABLE, ("link", "geom", "xyz", "direction"), 160),
    "constraint": Ragged("constraint_count", _table_of("constraint"), ("constraint",), 40),
    "delassus": Ragged("entry_count", _table_of("delassus"), (), 32),
}
RAGGED_BY_NAME = {"contacts": ("contact",), "delassus": ("constraint", "delassus")}
"""The groups of RAGGED by the name in --record that asks for them."""

DEFAULT_RECORDED = tuple(name for name in RECORDED if not TABLE[f"trajectory/{name}"].on_request)
"""The variables that a run records by default."""

CONTROL_VALUES = ("torque", "target", "target_velocity", "target_acceleration", "control")


BATCHED = tuple(
    path.removeprefix("batch/")
    for path, variable in TABLE.items()
    if path.startswith("batch/") and variable.dims[:1] == ("sample",)
)
"""Every variable of many configurations, in the order of the file."""


ROLLED = tuple(
    path.removeprefix("rollout/")
    for path, variable in TABLE.items()
    if path.startswith("rollout/") and variable.dims[:1] == ("sample",)
)
"""Every variable of a rollout, in the order of the file."""


def dense_variable(name: str) -> Variable:
    """TABLE's entry of a recorded variable as returned in Python: Jacobians are dense."""
    variable = TABLE[f"trajectory/{name}"]
    return variable._replace(dims=("time", "link", "twist", "dof")) if name == "jacobian" else variable


def batch_variable(name: str, dims: Sequence[str]) -> Variable:
    """TABLE's entry of a batch variable whose rows have the dimensions `dims` (reduced, packed)."""
    variable = TABLE[f"batch/{name}"]
    reduced = any(dim.startswith("independent") and dim not in variable.dims for dim in dims)
    unit = re.sub(r"\b(dof|force)_units", r"independent_\1_units", variable.unit) if reduced else variable.unit
    return variable._replace(dims=("sample", *dims), unit=unit)


def sample_input(name: str) -> Variable:
    """TABLE's entry of an input that differs between the samples of a rollout."""
    variable = TABLE[f"controls/{name}"]
    return variable._replace(dims=("sample", *variable.dims))


def entry_names(labels: Iterable[Sequence[str]], *first: str) -> list[str]:
    """The names of a variable's entries, in order: `first`, and the labels of an entry's place, joined by dots."""
    return [".".join((*first, *words)) for words in product(*labels)]


def labels_of(dim: str, labels: Labels) -> tuple[str, ...]:
    """The labels of a dimension; pairs are labelled "a,b"."""
    if dim in FIXED_LABELS:
        return FIXED_LABELS[dim]
    if dim in ("dof_pair", "independent_pair", "constraint_pair"):
        names = labels_of({"independent_pair": "independent_dof"}.get(dim, dim.removesuffix("_pair")), labels)
        return tuple(f"{a},{b}" for i, a in enumerate(names) for b in names[: i + 1])
    values: tuple[str, ...] = getattr(labels, dim.removesuffix("2"))
    return values


def entry_units(labels: Labels) -> dict[str, tuple[str, ...]]:
    """The unit variables of LABELS_OF_ENTRIES with their values for this robot."""
    velocity = dict(zip(labels.dof, labels.dof_units, strict=False))
    force = dict(zip(labels.dof, labels.force_units, strict=False))
    return {
        "coord_units": labels.coord_units,
        "dof_units": labels.dof_units,
        "force_units": labels.force_units,
        "sensor_units": labels.sensor_units,
        "twist_units": TWIST_UNITS,
        "wrench_units": WRENCH_UNITS,
        "independent_dof_units": tuple(velocity.get(name, "") for name in labels.independent_dof),
        "independent_force_units": tuple(force.get(name, "") for name in labels.independent_dof),
    }


def unit_of(variable: Variable, units: Mapping[str, Sequence[str]]) -> str:
    """The `units` attribute: "rad/s" if all entries agree, "see dof_units" otherwise."""
    text = variable.unit
    for name, values in units.items():
        brace = f"{{{name}}}"
        if brace in text:
            text = text.replace(brace, _common(name, values))
    short = _SHORT.get(text.replace("independent_", ""), text)
    return short if short == text or "independent_" not in text else short.replace("dof_units", "independent_dof_units")


def _common(name: str, values: Sequence[str]) -> str:
    return values[0] if len(set(values)) == 1 else f"see {name}"


_SHORT = {
    "rad/s/s": "rad/s^2",
    "m/s/s": "m/s^2",
    "rad/s s": "rad",
    "m/s s": "m",
    "N m s per dof_units": "kg m^2",
    "N s per dof_units": "kg",
    "rad/s/s per force_units": "1/(kg m^2)",
    "m/s/s per force_units": "1/kg",
    "see dof_units/s": "see dof_units, per s",
    "see twist_units/s": "see twist_units, per s",
    "see twist_units/s per dof_units": "see twist_units, per s and dof_units",
    "see dof_units/s per force_units": "see dof_units, per s and force_units",
    "see dof_units s": "see dof_units, times s",
}
