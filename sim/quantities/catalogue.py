"""What `compute` and `artsim batch` can be asked for: every quantity's dimensions and the inputs it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from artsim.sim.foundation.errors import UsageError, nearest


class Quantity(NamedTuple):
    """Dimensions of one configuration's value, in full coordinates, and the inputs needed besides qpos."""

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
}
"""Field meanings are in io/schema.py (batch/…); those of the robot's dofs become independent ones when reduced."""

GROUPS: Mapping[str, tuple[str, ...]] = {"link_pose": ("link_position", "link_quaternion")}
"""Names that stand for several quantities."""

JOINT_FORCES = frozenset({"gravity", "coriolis", "bias", "inverse_dynamics"})
"""What is computed in body axes, where bodies are in the world not being needed."""

WITH_WRENCH = frozenset({"external_force", "inverse_dynamics", "forward_dynamics"})
"""What wrenches on links enter, where they are given."""

WITH_INERTIA = frozenset(
    "coriolis bias mass_matrix inverse_mass_matrix inverse_dynamics forward_dynamics kinetic_energy".split()
)
"""What a robot's inertia enters: tendons with armature change it."""

REDUCED_DIMS = {"dof": "independent_dof", "dof2": "independent_dof2"}
SYMMETRIC = ("mass_matrix", "inverse_mass_matrix")  # symmetric: `packed` keeps their lower triangles

OK, BAD_INPUT, BAD_RESULT = range(3)
STATUS_MEANING = {
    OK: "computed",
    BAD_INPUT: "an input is not finite, above 1e15, or a quaternion of length 0",
    BAD_RESULT: "the mass matrix is singular there, or a result is not finite",
}


def resolve(names: Sequence[str]) -> tuple[str, ...]:
    """Quantities by name, groups spelled out, in the order asked for, each once.

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
    """The inputs that these quantities are computed from, in the order of INPUTS."""
    wanted = {"qpos", *(given for name in names for given in QUANTITIES[name].inputs)}
    return tuple(name for name in INPUTS if name in wanted)


def dims_of(name: str, *, reduced: bool = False, packed: bool = False) -> tuple[str, ...]:
    """Dimensions of a quantity as computed: independent dofs when reduced, pairs of dofs when packed."""
    dims = QUANTITIES[name].dims
    if packed and name in SYMMETRIC:
        return ("independent_pair",) if reduced else ("dof_pair",)
    if reduced and name != "coupling_matrix":
        dims = tuple(REDUCED_DIMS.get(dim, dim) for dim in dims)
    return dims
