"""Values of a robot that are changed before it is written: masses, limits and dynamics of joints, gains of servos."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, TypedDict

from artsim.loaders.mjcf.mass import times
from artsim.sim.articulation.description import Actuator, Articulation, Inertial, Joint, Link
from artsim.sim.foundation.errors import UsageError, nearest

OF_JOINTS = ("effort", "velocity", "damping", "friction", "armature", "stiffness", "spring_reference")


class Changes(TypedDict, total=False):
    """New values by the names of links, joints and actuators."""

    mass: Mapping[str, float]  # of links [kg]; inertias grow with them
    limits: Mapping[str, tuple[float, float]]  # of joints [rad or m]
    effort: Mapping[str, float]  # [N m or N]
    velocity: Mapping[str, float]  # [rad/s or m/s]
    damping: Mapping[str, float]  # [N m s/rad or N s/m]
    friction: Mapping[str, float]  # dry friction of joints [N m or N]
    armature: Mapping[str, float]  # [kg m² or kg]
    stiffness: Mapping[str, float]  # [N m/rad or N/m]
    spring_reference: Mapping[str, float]  # [rad or m]
    gains: Mapping[str, tuple[float, float]]  # kp and kv of servos


def with_changes(robot: Articulation, changes: Changes) -> Articulation:
    """The robot with new values. Raises UsageError for an unknown name, and for a value that no robot can have."""
    unknown = changes.keys() - Changes.__annotations__.keys()
    if unknown:
        raise UsageError(f"{min(unknown)!r} cannot be changed; values: {', '.join(Changes.__annotations__)}")
    check_names("mass", changes.get("mass", {}), [link.name for link in robot.links], "link")
    joints = [joint.name for joint in robot.joints]
    for name in ("limits", *OF_JOINTS):
        check_names(name, changes.get(name, {}), joints, "joint")  # type: ignore[arg-type]
    check_names("gains", changes.get("gains", {}), [actuator.name for actuator in robot.actuators], "actuator")
    return replace(
        robot,
        links=tuple(with_mass(link, changes.get("mass", {})) for link in robot.links),
        joints=tuple(with_joint(joint, changes) for joint in robot.joints),
        actuators=tuple(with_gains(actuator, changes.get("gains", {})) for actuator in robot.actuators),
    )


def check_names(what: str, given: Mapping[str, Any], known: Collection[str], kind: str) -> None:
    """Refuse a name that no item has."""
    for name in given:
        if name not in known:
            raise UsageError(f"{what}: no {kind} {str(name)[:80]!r}{nearest(str(name)[:80], known)}")


def with_mass(link: Link, masses: Mapping[str, float]) -> Link:
    """The link with another mass; its inertia grows with it."""
    if link.name not in masses:
        return link
    mass = at_least("mass", link.name, masses[link.name], 0.0)
    inertial = link.inertial
    if inertial is None or not inertial.mass:
        return replace(link, inertial=replace(inertial or Inertial(0.0), mass=mass))
    return replace(link, inertial=replace(times(inertial, mass / inertial.mass), mass=mass))


def with_joint(joint: Joint, changes: Changes) -> Joint:
    """The joint with new limits and dynamics."""
    new: dict[str, Any] = {}
    limits = changes.get("limits", {}).get(joint.name)
    if limits is not None:
        lower, upper = map(float, limits)
        if not lower <= upper:
            raise UsageError(f"limits: of joint {joint.name!r} the lower {lower:g} is greater than the upper {upper:g}")
        new = {"lower": lower, "upper": upper}
    for name in OF_JOINTS:
        given: Mapping[str, float] = changes.get(name, {})  # type: ignore[assignment]
        if joint.name in given:
            least = None if name == "spring_reference" else 0.0
            new[name] = at_least(name, joint.name, given[joint.name], least)
    if "effort" in new and joint.actuator_range is not None:
        new["actuator_range"] = (-new["effort"], new["effort"])
    return replace(joint, **new) if new else joint


def with_gains(actuator: Actuator, gains: Mapping[str, tuple[float, float]]) -> Actuator:
    """The servo with other gains."""
    if actuator.name not in gains:
        return actuator
    kp, kv = (at_least("gains", actuator.name, value, 0.0) for value in gains[actuator.name])
    servo = actuator.bias == "affine" and actuator.gain in ("fixed", "pid") and actuator.bias_parameters[1] < 0
    if not servo:
        raise UsageError(f"gains: actuator {actuator.name!r} is no servo of positions")
    bias = (actuator.bias_parameters[0], -kp, -kv, *actuator.bias_parameters[3:])
    gain = (kp, *actuator.gain_parameters[1:]) if actuator.gain == "fixed" else actuator.gain_parameters
    return replace(actuator, bias_parameters=bias, gain_parameters=gain)


def at_least(what: str, name: str, value: float, least: float | None) -> float:
    """The number, refused below `least` and if it is not finite."""
    number = float(value)
    if number - number != 0.0 or (least is not None and number < least):
        raise UsageError(f"{what}: {name!r} has {number:g}, want a finite number{'' if least is None else ' from 0'}")
    return number
