"""Rules of the doctor on joints, motors and names: bounds, limits, followers, gains, what nothing depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from artsim.loaders.doctor.finding import Finding
from artsim.loaders.doctor.forms import Body
from artsim.loaders.follower_limits import follower_notes
from artsim.sim.articulation.description import Actuator, Articulation, Joint, Note
from artsim.sim.articulation.model import Compiled
from artsim.sim.articulation.regularity import dof_mobilities

SINGLE = ("revolute", "continuous", "prismatic")
DEFAULT_STEP = 0.002  # [s] of MuJoCo, where the file gives none
ROUNDING = 1e-9


def joint_findings(robot: Articulation, compiled: Compiled, bodies: Sequence[Body]) -> Iterator[Finding]:
    """The findings on joints and motors."""
    yield from bound_findings(robot)
    yield from limit_findings(robot)
    yield from follower_findings(robot)
    yield from gain_findings(robot, compiled)
    yield from idle_findings(robot, bodies)
    yield from name_findings(robot)


def coded_notes(robot: Articulation) -> dict[Note, str]:
    """The warnings of the readers that a rule of the doctor gives, too, with its code."""
    codes = {note: _code_of_follower(note) for note in follower_notes(robot)}
    for note in robot.notes:
        for name in ("effort", "velocity"):
            if note.message.endswith(f": {name} 0 means unlimited"):
                codes[note] = f"{name}-zero"
        if note.message.endswith("the joint is locked"):
            codes[note] = "joint-idle"
    return codes


def _code_of_follower(note: Note) -> str:
    return "limits-empty" if note.message.endswith("no position") else "mimic-unreachable"


def bound_findings(robot: Articulation) -> Iterator[Finding]:
    """Bounds that are 0 in the file, of which the reader has told; several joints in one sentence."""
    for name in ("effort", "velocity"):
        notes = [note for note in robot.notes if note.message.endswith(f": {name} 0 means unlimited")]
        found = [joint for note in notes if (joint := _joint_at(robot, note)) is not None]
        if found:
            more = f", as {len(notes) - 1} more have" if len(notes) > 1 else ""
            told = f"joint {found[0].name!r}: {name} 0 means unlimited{more}"
            links = tuple(joint.child for joint in found)
            yield Finding(f"{name}-zero", notes[0].source, told, (f"--{name}", f"{found[0].name}=VALUE"), links)


def _joint_at(robot: Articulation, note: Note) -> Joint | None:
    """The joint that a warning of the reader names."""
    return next((joint for joint in robot.joints if f"joint {joint.name!r}:" in note.message), None)


def limit_findings(robot: Articulation) -> Iterator[Finding]:
    """Limits that exclude 0, at which files other than MJCF draw their robots; all joints in one sentence."""
    led = {coupling.follower for coupling in robot.couplings}
    away = [joint for joint in robot.joints if _excludes_zero(joint) and joint.name not in led]
    if not away or robot.format == "mjcf":
        return
    first = away[0]
    unit = "m" if first.kind == "prismatic" else "rad"
    low, high = (
        end if limit is None else format(limit, ".6g") for end, limit in (("-inf", first.lower), ("inf", first.upper))
    )
    told = f"joint {first.name!r}: 0 is not within its limits {low} … {high} {unit}"
    told += f", nor within those of {len(away) - 1} more" if len(away) > 1 else ""
    ends = min(0.0, first.lower or 0.0), max(0.0, first.upper or 0.0)
    mend = ("--limits", f"{first.name}={ends[0]:.6g},{ends[1]:.6g}")
    yield Finding("limits-exclude-zero", first.source, told, mend, tuple(joint.child for joint in away))


def _excludes_zero(joint: Joint) -> bool:
    if joint.kind not in SINGLE:
        return False
    return bool((joint.lower or 0.0) > ROUNDING or (joint.upper or 0.0) < -ROUNDING)


def follower_findings(robot: Articulation) -> Iterator[Finding]:
    """Limits of followers that narrow, or leave nothing of, the range of their leader."""
    joints = {joint.name: joint for joint in robot.joints}
    for note in follower_notes(robot):
        coupling = next((c for c in robot.couplings if c.source == note.source), None)
        mend: tuple[str, ...] = ()
        if coupling is not None and coupling.leader is not None:
            leader = joints[coupling.leader]
            ends = [leader.lower, leader.upper]
            if None not in ends:
                x = np.linspace(leader.lower or 0.0, leader.upper or 0.0, 65)
                y = sum(c * x**k for k, c in enumerate(coupling.coefficients)) + 0.0 * x
                mend = ("--limits", f"{coupling.follower}={y.min():.6g},{y.max():.6g}")
        links = () if coupling is None else (joints[coupling.follower].child,)
        yield Finding(_code_of_follower(note), note.source, note.message, mend, links)


# --- motors ----------------------------------------------------------------------------------------------------------


def gain_findings(robot: Articulation, compiled: Compiled) -> Iterator[Finding]:
    """Servos whose gains an explicit integrator cannot follow at the step of the file: ω dt or kv dt / M above 2."""
    servos = [actuator for actuator in robot.actuators if _is_servo(actuator)]
    if not servos or (robot.options.integrator or "Euler").lower().startswith("implicit"):
        return
    mobility, children = dof_mobilities(compiled), {joint.name: joint.child for joint in robot.joints}
    step = robot.options.timestep or DEFAULT_STEP
    for actuator in servos:
        dofs = compiled.labels.joint_dofs.get(actuator.target)
        if dofs is None or dofs.stop - dofs.start != 1:
            continue
        kp, kv = _gains(actuator)
        inverse = float(mobility[dofs.start]) * actuator.gear[0] ** 2
        position, velocity = (kp * inverse) ** 0.5 * step, kv * inverse * step
        if max(position, velocity) > 2.0:
            why = (
                f"kp {kp:.4g}: ω dt = {position:.3g}" if position > 2.0 else f"kv {kv:.4g}: kv dt / M = {velocity:.3g}"
            )
            told = f"actuator {actuator.name!r}, {why} at steps of {step:g} s; above 2 it shakes"
            new = kp * min(1.0, (0.5 / max(position, 0.5)) ** 2), kv * min(1.0, 0.5 / max(velocity, 0.5))
            mend = ("--gains", f"{actuator.name}={new[0]:.3g},{new[1]:.3g}")
            yield Finding("gains-shake", actuator.source, told, mend, (children[actuator.target],))


def _is_servo(actuator: Actuator) -> bool:
    return (
        actuator.acts
        and actuator.transmission in ("joint", "jointinparent")
        and actuator.gain == "fixed"
        and actuator.bias == "affine"
        and actuator.dynamics == "none"
        and not actuator.by_inertia
    )


def _gains(actuator: Actuator) -> tuple[float, float]:
    _, kp, kv = (*actuator.bias_parameters, 0.0, 0.0, 0.0)[:3]
    return max(0.0, -kp), max(0.0, -kv)


# --- the tree --------------------------------------------------------------------------------------------------------


def idle_findings(robot: Articulation, bodies: Sequence[Body]) -> Iterator[Finding]:
    """Joints that cannot move, and joints that carry nothing: no mass, no shape, nothing that acts on them."""
    used, loads = _used(robot), _loads(bodies)
    locked = [joint for joint in robot.joints if joint.kind in SINGLE and _is_locked(joint)]
    if locked:
        first = locked[0]
        others = f", as are {len(locked) - 1} more" if len(locked) > 1 else ""
        told = f"joint {first.name!r}: lower = upper = {first.lower:g}, the joint is locked{others}"
        links = tuple(joint.child for joint in locked)
        yield Finding("joint-idle", first.source, told, ("--fix", f"{first.name}={first.lower:.6g}"), links)
    for body in bodies:
        joint = body.joint
        if joint is None or joint.kind not in SINGLE or _is_locked(joint):
            continue
        if not loads[body.links[0].name] and not {joint.name, *(link.name for link in body.links)} & used:
            told = f"joint {joint.name!r} moves neither mass nor shapes"
            yield Finding("joint-idle", joint.source, told, ("--fix", joint.name), (joint.child,))


def _is_locked(joint: Joint) -> bool:
    return joint.lower is not None and joint.lower == joint.upper


def _used(robot: Articulation) -> set[str]:
    """Names of joints and links that couplings, loops, tendons, actuators, sensors or sites refer to."""
    names = {end.name for tendon in robot.tendons for end in tendon.path}
    names |= {name for c in robot.couplings for name in (c.follower, c.leader or "")}
    names |= {name for loop in robot.loops for name in (loop.link_a, loop.link_b)}
    names |= {actuator.target for actuator in robot.actuators} | {site.link for site in robot.sites}
    return names | {name for sensor in robot.sensors for name in (sensor.object, sensor.reference)}


def _loads(bodies: Sequence[Body]) -> Mapping[str, bool]:
    """True for each body, by the name of its first link, that has mass or shapes, or carries a body that has."""
    by_link = {link.name: body.links[0].name for body in bodies for link in body.links}
    loaded = {body.links[0].name: body.mass > 0 or any(link.geoms for link in body.links) for body in bodies}
    for body in reversed(bodies):
        above = by_link.get(body.joint.parent) if body.joint is not None else None
        if above is not None and loaded[body.links[0].name]:
            loaded[above] = True
    return loaded


def name_findings(robot: Articulation) -> Iterator[Finding]:
    """Names that a link and a joint of a URDF share."""
    if robot.format != "urdf":
        return
    links = {link.name: link for link in robot.links}
    both = [joint for joint in robot.joints if joint.name in links]
    if both:
        more = f" and {len(both) - 1} more" if len(both) > 1 else ""
        told = f"{both[0].name!r}{more}: the name of a link and of a joint"
        yield Finding(
            "duplicate-name",
            both[0].source,
            told,
            ("--rename", f"joint:{both[0].name}={both[0].name}_joint"),
            (both[0].child,),
        )
