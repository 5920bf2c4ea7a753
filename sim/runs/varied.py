"""The values that differ between samples of one robot, and the arrays that factors of its properties change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.delays import NEARLY
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import (
    Array,
)
from artsim.sim.foundation.rotations import point_inertia, six, symmetric
from artsim.sim.geometry.contacts import (
    Touching,
)
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.stepping.packs import (
    LANE_GAINS,
)

VARIED = {
    "mass": "link",
    "armature": "dof",
    "damping": "dof",
    "stiffness": "dof",
    "joint_friction": "dof",
    "drive_stiffness": "dof",
    "drive_damping": "dof",
    "friction": "",
}
"""Properties that samples vary by factors, and the parts that each has a factor for ("": one for all contacts)."""

PLACED = {
    "centre": ("link", 3),
    "gravity": ("", 3),
    "ground_height": ("", 0),
    "delay": ("delayed_control", 0),
    "push": ("push", 6),
    "push_time": ("push", 0),
}
"""Properties of robots that are no factors, with the components of each, 0: a number. Offsets of links' centres of mass
in link axes [m]; gravity [m/s²]; by how much planes of the world are raised [m]; delays of the delayed controls [s];
impulses of pushes [N s, N m s] and their times [s]."""

PUSHES = ("push", "push_time")
"""Properties of a sample from its start to its end, which cannot change on the way."""


@dataclass(frozen=True)
class Variations:
    """The properties of n samples that differ; a factor of 1 leaves the robot's value."""

    qpos: Array  # (n, nq) at the start
    qvel: Array  # (n, nv)
    # of VARIED: (n, links), (n, nv) or (n, 1); of PLACED: (n, parts, components), (n, parts) or (n, 1)
    factors: Mapping[str, Array] = field(default_factory=dict)
    controls: Sequence[Controls] = ()  # one per sample; empty: those of the plan
    first: int = 0  # number of the first sample

    def __post_init__(self) -> None:
        for name in self.factors:
            if name not in VARIED and name not in PLACED:
                raise UsageError(f"{name!r} cannot be varied{nearest(name, VARIED)}")

    def __len__(self) -> int:
        return len(self.qpos)

    def part(self, start: int, stop: int) -> Variations:
        """The samples from `start` to before `stop`."""
        factors = {name: values[start:stop] for name, values in self.factors.items()}
        return Variations(
            self.qpos[start:stop], self.qvel[start:stop], factors, self.controls[start:stop], self.first + start
        )


def shape_of(plan: Plan, name: str) -> tuple[int, ...]:
    """The shape of a robot's values of a property; () for a number."""
    labels, components = part_labels(plan, name), components_of(name)
    return (*(() if labels is None else (len(labels),)), *((components,) if components else ()))


def components_of(name: str) -> int:
    """The number of components that a property of one part has; 0 for a number."""
    return PLACED[name][1] if name in PLACED else 0


def part_labels(plan: Plan, name: str) -> Sequence[str] | None:
    """The names of the parts for which a robot has values of a property; None: for the whole."""
    part = PLACED[name][0] if name in PLACED else VARIED[name]
    labels: dict[str, Sequence[str]] = {"link": plan.robot.links, "dof": plan.robot.dofs}
    labels |= {"push": plan.pushed.push_names, "delayed_control": ()}
    if plan.delayed is not None and plan.equipped is not None:
        labels["delayed_control"] = [plan.equipped.labels.controls[n] for n in plan.delayed.arrays.control]
    return labels.get(part)


def unvaried(plan: Plan, name: str) -> Array | float:
    """The values of a property that leave it as it is in the plan."""
    if name == "delay" and plan.delayed is not None:
        arrays = plan.delayed.arrays
        return arrays.delay[: len(arrays.control)] * plan.dt
    known = {"gravity": plan.robot.model.gravity, "push": plan.pushed.impulses, "push_time": plan.pushed.times}
    return known.get(name, 0.0 if name in PLACED else 1.0)


def least_of(name: str) -> float:
    """The smallest value of a property."""
    if name == "mass":
        return float(np.nextafter(0.0, 1.0))
    return -np.inf if name in PLACED and name != "push_time" else 0.0


def own_pushes(plan: Plan, factors: Mapping[str, Array], samples: int) -> tuple[Array, Array] | None:
    """The impulses (n, pushes, 6) [N s, N m s] and times (n, pushes) [s] of the pushes of n samples; None unless some
    are their own."""
    if not any(name in factors for name in PUSHES):
        return None
    impulses, times = (
        factors[name] if name in factors else np.broadcast_to(values, (samples, *values.shape))
        for name, values in zip(PUSHES, (plan.pushed.impulses, plan.pushed.times), strict=True)
    )
    return impulses, times


def with_pushes_by_sample(plan: Plan, varied: Iterable[str]) -> Plan:
    """The plan of samples that vary these properties: its controls hold no pushes where each sample has its own."""
    return plan.pushed_by_sample if {*varied} & {*PUSHES} else plan


def refuse_varied(plan: Plan, given: Mapping[str, Array]) -> None:
    """Raise UsageError for properties of VARIED and PLACED, of values (…, parts), that this plan does not let vary."""
    refuse_fixed(plan, given)
    if "delay" in given:
        _refuse_delays(plan, given["delay"])
    if "push_time" in given and (late := float(np.max(given["push_time"]))) >= (end := plan.config.steps * plan.dt):
        raise UsageError(f"push_time {late:g} s: the run ends at {end:g} s")


def refuse_fixed(plan: Plan, names: Iterable[str]) -> None:
    """Raise UsageError for properties of which this plan has none that could vary."""
    for name in names:
        if name == "friction" and plan.touching is None:
            raise UsageError("friction is that of contacts, nothing may touch; joints have joint_friction")
        if name == "centre" and (reason := _fixes_centres(plan)):
            raise UsageError(f"centre cannot be varied: {reason}")
        if name == "ground_height" and not _has_plane(plan):
            raise UsageError("ground_height raises planes of the world, and the robot touches none")
        if name == "delay" and not part_labels(plan, name):
            raise UsageError("delay: no control is delayed: an <actuator> has a delay and nsample for that")
        if name in PUSHES and not plan.pushed.pushes:
            raise UsageError(f"{name} is of pushes, and there are none: give --push LINK=JX,JY,JZ@TIME, in Python push")


def _has_plane(plan: Plan) -> bool:
    """True if a plane is fixed in the world."""
    if plan.touching is None:
        return False
    contacts = plan.touching.contacts
    return bool((contacts.body[contacts.plane] == 0).any())


def _refuse_delays(plan: Plan, delays: Array) -> None:
    """Raise UsageError for delays (…, delayed controls) [s] that cannot act."""
    assert plan.delayed is not None
    arrays, names = plan.delayed.arrays, part_labels(plan, "delay")
    longest = arrays.samples[: len(arrays.control)] * plan.dt
    delays = np.broadcast_to(delays, (*delays.shape[:-1], len(longest)))
    wrong = np.argwhere((delays < plan.dt * (1.0 - NEARLY)) | (delays > longest * (1.0 + NEARLY)))
    if len(wrong):
        assert names is not None
        place = tuple(wrong[0])
        raise UsageError(
            f"delay {delays[place]:g} s of {names[place[-1]]!r}: want {plan.dt:g} s, a step, to "
            f"{longest[place[-1]]:g} s, for which samples are kept (nsample)"
        )


def _fixes_centres(plan: Plan) -> str:
    """The reason why centres of mass must stay where they are, or an empty string."""
    if plan.equipped is not None and len(plan.equipped.arrays.compensated_mass):
        return "the actuators' or the file's compensation of weight is that of the model"
    at_centre = next((wrench.link for wrench in plan.pushed.wrenches if wrench.point is None), None)
    return "" if at_centre is None else f"the wrench on {at_centre!r} acts at the model's"


class VariedArrays:
    """Computes the arrays of the model and of the drives that factors, offsets and gravity change."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        model = plan.robot.model
        self._shares = np.array([_link_share(model, link) for link in range(len(model.link_mass))]).reshape(-1, 10)

    def of(self, factors: Mapping[str, Array]) -> dict[str, Array]:
        """The arrays that the factors of n samples change, by name, each (n, …). The masses and the centres of links
        follow from both: one that is not given is as in the plan."""
        model, changed = self._plan.robot.model, dict[str, Array]()
        if "mass" in factors or "centre" in factors:
            ones = np.ones((len(next(iter(factors.values()))), len(model.link_mass)))
            changed |= self._masses(factors.get("mass", ones), factors.get("centre"))
        if "gravity" in factors:
            changed["gravity"] = factors["gravity"]
        for name in ("armature", "damping", "stiffness"):
            if name in factors:
                changed[name] = getattr(model, name) * factors[name]
        if "joint_friction" in factors:
            for name in ("friction", "friction_coefficient"):
                changed[name] = getattr(model, name) * factors["joint_friction"]
        for name in LANE_GAINS:
            if name in factors:
                changed[name] = self._plan.inputs[name] * factors[name]
        return changed

    def _masses(self, factor: Array, offset: Array | None) -> dict[str, Array]:
        model = self._plan.robot.model
        bodies = np.zeros((len(factor), len(model.body_mass), 10))
        for link, share in enumerate(self._shares):
            own = share if offset is None else share + _shifted_share(model, link, offset[:, link])
            bodies[:, model.link_body[link]] += factor[:, link, None] * own
        carried = bodies[:, :, 0].copy()
        for body in range(carried.shape[1] - 1, 0, -1):
            carried[:, model.body_parent[body]] += carried[:, body]
        return {
            "body_mass": bodies[:, :, 0],
            "carried_mass": carried,
            "body_moment": bodies[:, :, 1:4],
            "body_inertia": bodies[:, :, 4:],
            "link_mass": model.link_mass * factor,
            "link_inertia": model.link_inertia * factor[:, :, None],
            **({} if offset is None else {"link_com": model.link_com + offset}),
        }


def with_own_contacts(touching: Touching, friction: float = 1.0, raised: float = 0.0) -> Touching:
    """The contact parameters with copies of those that differ between lanes: coefficients of friction, times a factor,
    and places of shapes, with the planes of the world raised [m]."""
    g = touching.contacts
    place = g.place.copy()
    place[g.plane[g.body[g.plane] == 0], 2] += raised
    own = g._replace(friction=friction * g.friction, pair_friction=friction * g.pair_friction, place=place)
    return touching._replace(contacts=own)


def _link_share(model: Model, link: int) -> Array:
    """Contribution of a link to its body (10,): mass, first moment, inertia about the body's origin."""
    mass, turn = model.link_mass[link], model.link_rotation[link]
    centre = model.link_position[link] + turn @ model.link_com[link]
    inertia = turn @ symmetric(model.link_inertia[link]) @ turn.T + point_inertia(float(mass), centre)
    return np.concatenate([[mass], mass * centre, six(inertia)])


def _shifted_share(model: Model, link: int, offset: Array) -> Array:
    """The change of a link's contribution (n, 10) by offsets (n, 3) of its centre of mass; 0 where these are 0."""
    mass, turn = model.link_mass[link], model.link_rotation[link]
    before = model.link_position[link] + turn @ model.link_com[link]
    after = before + sum(offset[:, k, None] * turn[:, k] for k in range(3))
    moved = mass * (_squares(after) - _squares(before[None]))
    return np.concatenate([np.zeros((len(offset), 1)), mass * (after - before), moved], axis=1)


def _squares(place: Array) -> Array:
    """The inertia (n, 6) about the origin of unit masses at places (n, 3)."""
    x, y, z = place.T
    return np.stack([y * y + z * z, -x * y, -x * z, x * x + z * z, -y * z, x * x + y * y], axis=1)
