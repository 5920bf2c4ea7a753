"""The quantities that `compute` and `artsim batch` offer: their dimensions and the inputs that each needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from artsim.sim.foundation.errors import UsageError, nearest


class Quantity(NamedTuple):
    """Dimensions of a quantity for one configuration, in full coordinates, and the inputs needed besides qpos."""

    dims: tuple[str, ...]
    inputs: tuple[str, ...] = ()


INPUTS: Mapping[str, tuple[str, ...]] = {
    "qpos": ("coord",),
    "qvel": ("dof",),
    "qacc": ("dof",),
    "tau": ("dof",),
    "wrench": ("link", "wrench"),
}
"""Inputs and their dimensions. `wrench` acts on each link at the point that `at` names, in world axes."""

QUANTITIES: Mapping[str, Quantity] = {
    "gravity": Quantity(("dof",)),
    "coriolis": Quantity(("dof",), ("qvel",)),
    "bias": Quantity(("dof",), ("qvel",)),
    "mass_matrix": Quantity(("dof", "dof2")),
    "inverse_mass_matrix": Quantity(("dof", "dof2")),
    "inverse_dynamics": Quantity(("dof",), ("qvel", "qacc")),
    "forward_dynamics": Quantity(("dof",), ("qvel", "tau")),
    "external_force": Quantity(("dof",), ("wrench",)),
    "jacobian": Quantity(("link", "twist", "dof")),
    "jacobian_dot": Quantity(("link", "twist", "dof"), ("qvel",)),
    "link_position": Quantity(("link", "xyz")),
    "link_quaternion": Quantity(("link", "quat")),
    "link_velocity": Quantity(("link", "twist"), ("qvel",)),
    "link_acceleration": Quantity(("link", "twist"), ("qvel", "qacc")),
    "com": Quantity(("xyz",)),
    "com_jacobian": Quantity(("xyz", "dof")),
    "momentum": Quantity(("twist",), ("qvel",)),
    "centroidal_momentum_matrix": Quantity(("twist", "dof")),
    "centroidal_bias": Quantity(("twist",), ("qvel",)),
    "kinetic_energy": Quantity((), ("qvel",)),
    "potential_energy": Quantity(()),
    "coupling_matrix": Quantity(("dof", "independent_dof")),
    "constraint_jacobian": Quantity(("constraint", "dof")),
    "delassus": Quantity(("constraint", "constraint2")),
    "gravity_derivative": Quantity(("dof", "dof2")),
    "inverse_dynamics_dq": Quantity(("dof", "dof2"), ("qvel", "qacc")),
    "inverse_dynamics_dv": Quantity(("dof", "dof2"), ("qvel",)),
    "forward_dynamics_dq": Quantity(("dof", "dof2"), ("qvel", "tau")),
    "forward_dynamics_dv": Quantity(("dof", "dof2"), ("qvel",)),
    "forward_dynamics_dtau": Quantity(("dof", "dof2")),
    "link_velocity_dq": Quantity(("link", "twist", "dof"), ("qvel",)),
    "link_acceleration_dq": Quantity(("link", "twist", "dof"), ("qvel", "qacc")),
    "link_acceleration_dv": Quantity(("link", "twist", "dof"), ("qvel",)),
    "momentum_dq": Quantity(("twist", "dof"), ("qvel",)),
    "momentum_rate_dq": Quantity(("twist", "dof"), ("qvel", "qacc")),
    "momentum_rate_dv": Quantity(("twist", "dof"), ("qvel",)),
}
"""Meanings of fields are in io/format/sample_variables.py (batch/…). Quantities of the robot's dofs become those of its
independent dofs when reduced."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "link_pose": ("link_position", "link_quaternion"),
    "inverse_dynamics_derivatives": ("inverse_dynamics_dq", "inverse_dynamics_dv"),
    "forward_dynamics_derivatives": ("forward_dynamics_dq", "forward_dynamics_dv", "forward_dynamics_dtau"),
    "link_velocity_derivatives": ("link_velocity_dq",),
    "link_acceleration_derivatives": ("link_acceleration_dq", "link_acceleration_dv"),
    "centroidal_derivatives": ("momentum_dq", "momentum_rate_dq", "momentum_rate_dv"),
}
"""Names that stand for several quantities."""

JOINT_FORCES = frozenset({"gravity", "coriolis", "bias", "inverse_dynamics"})
"""Quantities computed in body axes, which do not need the poses of the bodies in the world."""

WITH_WRENCH = frozenset(
    {"external_force", "inverse_dynamics", "forward_dynamics", "inverse_dynamics_dq", "forward_dynamics_dq"}
)
"""Quantities that depend on wrenches on links if these are given."""

WITH_INERTIA = frozenset(
    "coriolis bias mass_matrix inverse_mass_matrix inverse_dynamics forward_dynamics kinetic_energy".split()
)
"""Quantities that depend on the robot's inertia, to which tendons with armature contribute."""

OF_DYNAMICS = frozenset(name for name in QUANTITIES if name.startswith(("inverse_dynamics_d", "forward_dynamics_d")))
"""Derivatives to which tendons with armature contribute."""

DERIVATIVES = frozenset(name for name in QUANTITIES if name.endswith(("_derivative", "_dq", "_dv", "_dtau")))
"""Quantities of the kernel of derivatives (derivative_rows.py)."""

OF_CONSTRAINTS = frozenset({"constraint_jacobian", "delassus"})
"""Quantities of the constraint rows that a pose has (pose_constraints.py), for robots with such rows."""

REDUCED_DIMS = {"dof": "independent_dof", "dof2": "independent_dof2"}
SYMMETRIC = ("mass_matrix", "inverse_mass_matrix", "delassus")  # of which `packed` keeps the lower triangles

OK, BAD_INPUT, BAD_RESULT = range(3)
STATUS_MEANING = {
    OK: "computed",
    BAD_INPUT: "an input is not finite, above 1e15, or a quaternion of length 0",
    BAD_RESULT: "the mass matrix is singular there, or a result is not finite",
}


def resolve(names: Sequence[str]) -> tuple[str, ...]:
    """Expand groups and return the quantities by name, in the order asked for, each once.

    Raises:
        UsageError: an unknown name, or none at all.
    """
    if isinstance(names, str):
        raise UsageError(f"quantities: want a list of names, not the text {names!r}")
    found: dict[str, None] = {}
    for name in names:
        if name not in QUANTITIES and name not in GROUPS:
            raise UsageError(f"quantity {name!r} is not known{nearest(name, [*QUANTITIES, *GROUPS])}")
        found.update(dict.fromkeys(GROUPS.get(name, (name,))))
    if not found:
        raise UsageError(f"no quantity is asked for; known: {', '.join([*QUANTITIES, *GROUPS])}")
    return tuple(found)


def needed_inputs(names: Sequence[str]) -> tuple[str, ...]:
    """The inputs from which these quantities are computed, in the order of INPUTS."""
    wanted = {"qpos", *(given for name in names for given in QUANTITIES[name].inputs)}
    return tuple(name for name in INPUTS if name in wanted)


def dims_of(name: str, *, reduced: bool = False, packed: bool = False) -> tuple[str, ...]:
    """Dimensions of a quantity as computed: with independent dofs if reduced, pairs of dofs if packed."""
    dims = QUANTITIES[name].dims
    if packed and name in SYMMETRIC:
        return ("constraint_pair",) if name == "delassus" else ("independent_pair",) if reduced else ("dof_pair",)
    if reduced and name != "coupling_matrix":
        dims = tuple(REDUCED_DIMS.get(dim, dim) for dim in dims)
    return dims
