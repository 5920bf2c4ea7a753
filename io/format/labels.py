"""The labels of a robot's parts by which arrays are addressed, and the dimensions that they label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple  # 5 times as fast to define as a dataclass, and every run imports these


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
    target_link: tuple[str, ...] = ()  # links whose poses are wanted in an inverse kinematics
    point_target: tuple[str, ...] = ()  # links that look at points, and com: the place of the centre of mass
    push: tuple[str, ...] = ()  # pushes of the samples of a rollout
    delayed_control: tuple[str, ...] = ()  # controls whose delay differs between samples
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
    *("account_impact", "account_struck"),
    *("held_inside_steps", "held_inside", "held_inside_link_a", "held_inside_link_b", "held_inside_by_loop"),
    *("least_loop_gap", "least_loop_gap_angle", "loop_opened", "loop_opened_angle", "opened_loop", "opened_loop_angle"),
)
FIXED_LABELS["course_entry"] = (
    *("steps_taken", "steps_refused", "steps_cut", "steps_coarse", "smallest_step", "largest_step", "error_estimate"),
    *("next_step", "next_smooth_step", "acts", "last_share"),
)
FIXED_LABELS["wrench_entry"] = FIXED_LABELS["wrench"]  # of the variable that is itself called wrench

DIMENSIONS = {
    "coord": "coordinate",
    "dof": "degree of freedom",
    "dof2": "degree of freedom (second index)",
    "independent_dof": "independent degree of freedom",
    "independent_dof2": "independent degree of freedom (second index)",
    "dof_pair": "pair of degrees of freedom, row by row of the lower triangle",
    "independent_pair": "pair of independent degrees of freedom, row by row of the lower triangle",
    "link": "link",
    "jacobian_column": "link, and degree of freedom that moves it",
    "joint": "joint",
    "actuator": "actuator",
    "actuator_state": "actuator state",
    "tendon": "tendon",
    "loop": "loop joint",
    "sensor": "output of a sensor",
    "xyz": "axis",
    "quat": "quaternion entry",
    "twist": "twist entry",
    "wrench": "wrench entry",
    "wrench_entry": "wrench entry",
    "energy_kind": "kind",
    "geom": "collision geometry",
    "constraint": "constraint row",
    "constraint2": "constraint row (second index)",
    "constraint_pair": "pair of constraint rows, row by row of the lower triangle",
    "plane_entry": "entry of a plane",
    "direction": "direction of a contact",
    "contact_entry": "entry of a contact's warm-start record",
    "extreme": "figure of the run's summary",
    "course_entry": "figure of the steps that an accuracy chose",
    "target_link": "link whose pose is wanted",
    "point_target": "link that looks at a point, or com, the centre of mass",
    "push": "push",
    "delayed_control": "delayed control",
}
"""Dimensions with string labels, and their meanings. `time` [s] is numeric and grows, NUMBERED ones are numbered, and
`sample`, `shard` and PIECE_DIMENSIONS have no labels."""

NUMBERED = {
    "row": "constraint row",
    "input": "input",
    "kept": "entry of kept samples",
    "body": "body",
    "mesh": "mesh",
    "checkpoint": "checkpoint",
    "contact_row": "contact row",
}
"""Numbered dimensions, and the things that they number. In groups of RAGGED `row` numbers the table, and grows."""

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
