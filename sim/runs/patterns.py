"""Names and patterns in a configuration, replaced by the names of a robot's joints, coordinates, actuators.

The name of an object stands for that object, even if it contains * or ?; any other text may contain * and ? as in a
shell. A pattern stands for joints of one degree of freedom that follow no other, "*" not for those that place a base.
Names given exactly win over patterns, a later pattern over an earlier one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeVar

import numpy as np

from artsim.sim.articulation.description import Articulation, Coupling
from artsim.sim.articulation.model import Labels, Model, following_dofs
from artsim.sim.equipment.arrays import EquipmentLabels
from artsim.sim.foundation.errors import SettingError, UsageError, nearest
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.settings import SETTINGS

T = TypeVar("T")

ALL = "*"
_WILD = frozenset("*?[")
KINDS = {name: setting.kind.of for name, setting in SETTINGS.items() if setting.kind.of}
"""What the entries of a setting are named after; of gains and joints, "*" or one value alone means all."""


class Names(NamedTuple):
    """The names of a kind: all, those of objects that follow no other, those that patterns match, those that "*" does.

    `units` [m, rad, m/s, rad/s] are those of coordinates or of their velocities.
    """

    known: tuple[str, ...]
    independent: tuple[str, ...]
    matched: tuple[str, ...]
    all: tuple[str, ...]
    noun: str
    units: Mapping[str, str] = {}


def names_of(articulation: Articulation, model: Model, labels: Labels, equipment: EquipmentLabels) -> dict[str, Names]:
    """The names of each kind."""
    followers = following_dofs(model)
    free = [k for k, coord in enumerate(model.dof_coord) if coord >= 0 and k not in followers]
    joints = [k for k in free if not is_of_base(model, k)]
    coord, dof = model.dof_coord, labels.dofs
    single = tuple(joint.name for joint in articulation.joints if joint.kind in ("revolute", "continuous", "prismatic"))
    turning = tuple(joint.name for joint in articulation.joints if joint.kind == "ball")
    turned = tuple(joint.name for joint in articulation.joints if joint.kind in ("ball", "free"))
    own_coords = {int(coord[k]) for k in followers}
    coords = (
        tuple(name for n, name in enumerate(labels.coords) if n not in own_coords),
        tuple(labels.coords[coord[k]] for k in free),
        tuple(labels.coords[coord[k]] for k in joints),
    )
    dofs = (
        tuple(name for k, name in enumerate(dof) if k not in followers),
        tuple(dof[k] for k in free),
        tuple(dof[k] for k in joints),
    )
    units = dict(zip(dof, labels.dof_units, strict=True))
    joint = (*single, *turning)
    driven = tuple(name[: -len(".target")] for name in equipment.controls if name.endswith(".target"))  # loops' axes
    held = tuple(dict.fromkeys((*labels.joint_dofs, *equipment.loops)))
    found = {
        "coord": Names(labels.coords, *coords, "a joint", dict(zip(labels.coords, labels.coord_units, strict=True))),
        "dof": Names(dof, *dofs, "a joint", units),
        "aim": Names((*dof, *driven), (*dofs[0], *driven), *dofs[1:], "a joint", units),
        "gain": Names(dof, *dofs, "a joint", units),
        "joint": Names(joint, joint, single, single, "a joint"),
        "constraint": Names(held, held, held, held, "a joint or loop"),
        "turned": Names(turned, turned, turned, turned, "a ball or free joint"),
    }
    for kind, known, noun in (
        ("actuator", equipment.controls, "an actuator"),
        ("state", equipment.activations, "an actuator state"),
    ):
        found[kind] = Names(known, known, known, known, noun)
    return found


def has_patterns(config: RunConfig) -> bool:
    """True if names in a configuration may have to be replaced by `expanded`."""
    unchecked: tuple[object, ...] = (config.armature, config.joint_friction, config.drive_mode, config.drive_limit_kind)
    unchecked += (config.constraint_alpha, config.constraint_beta)
    unchecked += (config.swing_limit, config.twist_limit, config.twist_axis)
    if any(isinstance(values, Mapping) and values for values in unchecked):  # whose names nobody else looks up
        return True
    given = {setting: getattr(config, setting) for setting in KINDS}
    return any(
        not _WILD.isdisjoint(name) and not (name == ALL and KINDS[setting] == "gain")
        for setting, values in given.items()
        if isinstance(values, Mapping)
        for name in values
    )


def expanded(config: RunConfig, names: Mapping[str, Names]) -> RunConfig:
    """The configuration with names in place of patterns. Raises SettingError for one that matches nothing.

    The "*" of gains stays: the drives of a robot are known when its couplings are compiled.
    """
    changes: dict[str, Any] = {}
    for setting, kind in KINDS.items():
        given = getattr(config, setting)
        if isinstance(given, Mapping) and not given.keys() <= set(names[kind].known):
            changes[setting] = by_name(setting, given, names[kind], keep={ALL} if kind == "gain" else ())
    return replace(config, **changes) if changes else config


def by_name(setting: str, given: Mapping[str, T], names: Names, *, keep: Collection[str] = ()) -> dict[str, T]:
    """The values by name; patterns in `keep` stay. Raises SettingError for an unknown name, with the nearest, and for a
    pattern that matches nothing."""
    exact = {name: value for name, value in given.items() if name in names.known}
    found: dict[str, T] = {}
    for name, value in given.items():
        if name in exact:
            continue
        if name in keep:
            found[name] = value
            continue
        matches = matching(name, names)
        if not matches:
            raise SettingError(f"{setting}: {unmatched(name, names)}", setting, name)
        found |= dict.fromkeys(matches, value)
    return found | exact


def matching(pattern: str, names: Names) -> list[str]:
    """The names that a pattern matches."""
    if pattern == ALL:
        return list(names.all)
    return [name for name in names.matched if fnmatchcase(name, pattern)]


def meant_by(word: str, known: Collection[str], matched: Iterable[str] | None = None) -> list[str]:
    """The names that a word means: the known one that equals it, or those that it matches as a pattern, in their order;
    `matched`: the names among which a pattern looks, by default all."""
    if word in known:
        return [word]
    return [name for name in (known if matched is None else matched) if fnmatchcase(name, word)]


def matching_links(given: Sequence[str], known: Sequence[str], option: str = "--links") -> tuple[str, ...]:
    """Links by name or pattern, each once, those of a pattern in the robot's order. Raises UsageError for a name that
    none has, with the nearest, and for a pattern that matches none."""
    found: dict[str, None] = {}
    for word in given:
        matches = meant_by(word, known)
        if not matches:
            what = "is not a link of this robot" if _WILD.isdisjoint(word) else "matches no link of this robot"
            raise UsageError(f"{option}: {word!r} {what}{nearest(word, known)}")
        found |= dict.fromkeys(matches)
    return tuple(found)


def unmatched(name: str, names: Names) -> str:
    """The words about a name that is none, or a pattern that matches nothing."""
    if _WILD.isdisjoint(name):
        return f"{name!r} is not {names.noun} of this robot{nearest(name, names.known)}"
    return f"{name!r} matches nothing that can be set by a pattern{nearest(name, names.matched)}"


def is_of_base(model: Model, dof: int) -> bool:
    """True if a dof belongs to a joint of several dofs between a body and the world."""
    body = int(model.dof_body[dof])
    return bool(model.body_parent[body] == 0 and model.body_dof[body + 1] - model.body_dof[body] > 1)


def with_joint_settings(articulation: Articulation, config: RunConfig) -> Articulation:
    """The articulation with the armature, the friction and the limits of swing and twist of joints and the ratio and
    offset of couplings that the configuration gives by name.

    Raises SettingError: a negative or infinite number, a flawed limit, or a ratio or offset of a coupling that is not
    linear.
    """
    return _with_couplings(_with_joints(_with_turn_limits(articulation, config), config), config)


def _with_joints(articulation: Articulation, config: RunConfig) -> Articulation:
    if not (config.armature or config.joint_friction):
        return articulation
    fields = {"armature": config.armature, "friction": config.joint_friction}
    for setting, given in (("armature", config.armature), ("joint_friction", config.joint_friction)):
        for name, value in given.items():
            if not 0 <= value < np.inf:
                raise SettingError(f"{setting}: {name} is {value}, want a finite number from 0", setting, name)
    joints = []
    for joint in articulation.joints:
        changes: dict[str, Any] = {field: given[joint.name] for field, given in fields.items() if joint.name in given}
        joints.append(replace(joint, **changes))
    return replace(articulation, joints=tuple(joints))


def _with_couplings(articulation: Articulation, config: RunConfig) -> Articulation:
    if not (config.coupling_ratio or config.coupling_offset):
        return articulation
    couplings = tuple(_with_terms(coupling, config) for coupling in articulation.couplings)
    return replace(articulation, couplings=couplings)


def _with_terms(coupling: Coupling, config: RunConfig) -> Coupling:
    """The coupling y = offset + ratio x with the configuration's numbers."""
    name, terms = coupling.follower, [*coupling.coefficients, 0.0, 0.0]
    for place, setting, given in (
        (0, "coupling_offset", config.coupling_offset),
        (1, "coupling_ratio", config.coupling_ratio),
    ):
        if name not in given:
            continue
        if any(terms[2:]) or (place == 1 and coupling.leader is None):
            raise SettingError(f"{setting}: the coupling of {name!r} is not linear in another joint", setting, name)
        if not np.isfinite(given[name]):
            raise SettingError(f"{setting}: {name} is {given[name]}, want a finite number", setting, name)
        terms[place] = given[name]
    return replace(coupling, coefficients=tuple(terms[: max(2, len(coupling.coefficients))]))


def _with_turn_limits(articulation: Articulation, config: RunConfig) -> Articulation:
    if not (config.swing_limit or config.twist_limit or config.twist_axis):
        return articulation
    joints = []
    for joint in articulation.joints:
        limits, name = joint.turning, joint.name
        if name in config.twist_axis:
            x, y, z = config.twist_axis[name]
            length = math.hypot(x, y, z)
            if not 1e-9 < length < 1e9:
                raise SettingError(f"twist_axis: {name} has an axis of length {length:g}", "twist_axis", name)
            limits = replace(limits, axis=(x / length, y / length, z / length))
        for setting, field in (("swing_limit", "swing"), ("twist_limit", "twist")):
            if name in getattr(config, setting):
                limits = replace(limits, **{field: getattr(config, setting)[name]})
                if limits.flaw:
                    raise SettingError(f"{setting}: {name}: {limits.flaw}", setting, name)
        if name in config.twist_axis and not limits.given:
            raise SettingError(f"twist_axis: {name} has no limit of swing or twist", "twist_axis", name)
        joints.append(replace(joint, turning=limits))
    return replace(articulation, joints=tuple(joints))


def of_followers(setting: str, given: Mapping[str, float], followers: Sequence[str]) -> dict[str, float]:
    """Values by the joint or tendon that follows; "*" stands for every one without a value of its own."""
    known = tuple(followers)
    names = Names(known, known, known, known, "a joint or tendon that follows another")
    return by_name(setting, given, names)
