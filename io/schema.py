"""What an artsim file holds: the one table of every dataset, its dimensions, unit and meaning.

Writer, reader, `artsim info` and the documentation all read this table; a test walks it against a real file.
Names of a robot's parts are labels inside datasets, never HDF5 paths: the paths are the constants below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple  # made 5 times as fast as a dataclass, and every run imports these

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
    """The names a run's arrays are addressed by, in the model's order, and the unit of each entry.

    `coord`, `coord_units`: nq · `dof`, `dof_units` (of a velocity), `force_units`: nv · `link`: nlink
    · `independent_dof`: the dofs left when hard couplings are eliminated (all of them without couplings).
    """

    coord: tuple[str, ...]
    dof: tuple[str, ...]
    link: tuple[str, ...]
    independent_dof: tuple[str, ...]
    coord_units: tuple[str, ...]  # "rad", "m", "1" (quaternion entries)
    dof_units: tuple[str, ...]  # "rad/s", "m/s"
    force_units: tuple[str, ...]  # "N m", "N"


class Variable(NamedTuple):
    """One dataset: its dimensions by name, unit, meaning, and how it is stored.

    `unit` is a text, or the name of a coordinate variable in braces where the entries of a dimension differ:
    `{dof_units}` becomes "rad/s" when all dofs agree, else "see dof_units"; what follows the brace is kept.
    """

    dims: tuple[str, ...]
    unit: str
    meaning: str
    dtype: str = "f8"  # numpy's name, or "str" (variable-length UTF-8)
    on_request: bool = False  # trajectory only: written when asked for by name
    comment: str = ""  # more than fits on a plot's axis


class Dimension(NamedTuple):
    """A labelled dimension: where its labels come from and what they are."""

    meaning: str
    labels: tuple[str, ...] | None = None  # None: from the robot


FIXED_LABELS = {
    "xyz": ("x", "y", "z"),
    "quat": ("w", "x", "y", "z"),
    "twist": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "wrench": ("fx", "fy", "fz", "tx", "ty", "tz"),
    "energy_kind": ("kinetic", "potential"),
}

DIMENSIONS: Mapping[str, Dimension] = {
    "coord": Dimension("coordinate"),
    "dof": Dimension("degree of freedom"),
    "dof2": Dimension("degree of freedom (second index)"),
    "independent_dof": Dimension("independent degree of freedom"),
    "link": Dimension("link"),
    "joint": Dimension("joint"),
    "xyz": Dimension("axis", FIXED_LABELS["xyz"]),
    "quat": Dimension("quaternion entry", FIXED_LABELS["quat"]),
    "twist": Dimension("twist entry", FIXED_LABELS["twist"]),
    "wrench": Dimension("wrench entry", FIXED_LABELS["wrench"]),
    "energy_kind": Dimension("kind", FIXED_LABELS["energy_kind"]),
}
"""Dimensions with string labels. `time` [s] has numbers and grows; `mesh` has no labels (a mesh may repeat)."""

LABELS_OF_ENTRIES = {
    "coord_units": ("coord",),
    "dof_units": ("dof",),
    "force_units": ("dof",),
    "twist_units": ("twist",),
    "wrench_units": ("wrench",),
}
"""Coordinate variables that hold the unit of each entry of a dimension."""

TWIST_UNITS = ("m/s",) * 3 + ("rad/s",) * 3
WRENCH_UNITS = ("N",) * 3 + ("N m",) * 3

_TIME = Variable(("time",), "s", "time", comment="since the start of the run; row k is step k * every")

TABLE: Mapping[str, Variable] = {
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
        ("time", "dof"), "{force_units}", "drive force", comment="of drives and actuators, acting over the step"
    ),
    "trajectory/tau_passive": Variable(
        ("time", "dof"),
        "{force_units}",
        "passive joint force",
        comment="of damping, springs and friction, acting over the step",
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
        comment="of the parent on the link through its joint, at the link frame's origin, world axes",
    ),
    "trajectory/jacobian": Variable(
        ("time", "link", "twist", "dof"),
        "{twist_units} per dof_units",
        "link Jacobian",
        on_request=True,
        comment="velocity of the link per joint velocity, at its centre of mass, world axes",
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
        ("time", "energy_kind"), "J", "energy", on_request=True, comment="kinetic and potential, before the step"
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
        comment="largest velocity the constraint solver left unsolved [rad/s or m/s]",
    ),
    "trajectory/coord_units": Variable(("coord",), "1", "unit of each position coordinate", "str"),
    "trajectory/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "trajectory/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    "trajectory/twist_units": Variable(("twist",), "1", "unit of each entry of a twist", "str"),
    "trajectory/wrench_units": Variable(("wrench",), "1", "unit of each entry of a wrench", "str"),
    "trajectory/n_valid": Variable((), "1", "rows written in full; the rows after them mean nothing", "i8"),
    "trajectory/status": Variable(
        (), "1", "0 running (or killed), 1 complete, 2 stopped at a non-finite state, 3 interrupted", "i1"
    ),
    # the inputs as they acted: each row holds until the next begins
    "controls/time": Variable(("time",), "s", "when the row begins to act"),
    "controls/start_step": Variable(("time",), "1", "first step the row acts on; it holds until the next row's", "i8"),
    "controls/torque": Variable(("time", "dof"), "{force_units}", "joint forces applied by the controller"),
    "controls/target": Variable(("time", "dof"), "{dof_units} s", "position targets of the drives"),
    "controls/target_velocity": Variable(("time", "dof"), "{dof_units}", "velocity targets of the drives"),
    "controls/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "controls/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    "controls/n_valid": Variable((), "1", "rows written in full", "i8"),
    # the state after the last step: to resume or to chain
    "final/qpos": Variable(("coord",), "{coord_units}", "position coordinates after the last step"),
    "final/qvel": Variable(("dof",), "{dof_units}", "velocities after the last step"),
    "final/step": Variable((), "1", "steps taken", "i8"),
    "final/time": Variable((), "s", "time after the last step"),
    "final/coord_units": Variable(("coord",), "1", "unit of each position coordinate", "str"),
    "final/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    # the robot
    "model/source": Variable((), "1", "the robot's file, expanded, as it was simulated", "str"),
    "model/link_parent": Variable(("link",), "1", "the link it hangs from; empty for a root", "str"),
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
}
"""Path -> variable. A label dataset `<group>/<dimension>` exists for every dimension a group uses (DIMENSIONS)."""

RECORDED = tuple(
    path.removeprefix("trajectory/")
    for path, variable in TABLE.items()
    if path.startswith("trajectory/") and variable.dims[:1] == ("time",) and path != "trajectory/time"
)
"""Every per-step variable a run can record, in the order of the file."""

DEFAULT_RECORDED = tuple(name for name in RECORDED if not TABLE[f"trajectory/{name}"].on_request)
"""What a run records when nothing is asked for."""

CONTROL_VALUES = ("torque", "target", "target_velocity")


def entry_units(labels: Labels) -> dict[str, tuple[str, ...]]:
    """The coordinate variables of LABELS_OF_ENTRIES with their values for this robot."""
    return {
        "coord_units": labels.coord_units,
        "dof_units": labels.dof_units,
        "force_units": labels.force_units,
        "twist_units": TWIST_UNITS,
        "wrench_units": WRENCH_UNITS,
    }


def unit_of(variable: Variable, units: Mapping[str, Sequence[str]]) -> str:
    """The `units` attribute: "rad/s" where all entries agree, else "see dof_units"."""
    text = variable.unit
    for name, values in units.items():
        brace = f"{{{name}}}"
        if brace in text:
            text = text.replace(brace, _common(name, values))
    return _SHORT.get(text, text)


def _common(name: str, values: Sequence[str]) -> str:
    return values[0] if len(set(values)) == 1 else f"see {name}"


_SHORT = {
    "rad/s/s": "rad/s^2",
    "m/s/s": "m/s^2",
    "rad/s s": "rad",
    "m/s s": "m",
    "N m s per dof_units": "kg m^2",
    "N s per dof_units": "kg",
    "see dof_units/s": "see dof_units, per s",
    "see dof_units s": "see dof_units, times s",
}
