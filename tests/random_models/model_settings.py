"""What a model says that one step without contacts does not show: limits, friction, figures of contact, keyframes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from artsim.sim.articulation.description import IMPEDANCE, Articulation, Geom, Softness

Array = npt.NDArray[Any]
KINDS = ("plane", "heightfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")  # as mjtGeom counts
SITE_KINDS = {name: n for n, name in enumerate(KINDS)}
FRICTION = (1.0, 0.005, 0.0001)
PAIR_FRICTION = (1.0, 1.0, 0.005, 0.0001, 0.0001)
INTERPOLATIONS = ("zoh", "linear", "cubic")


def compare_settings(robot: Articulation, model: Any) -> dict[str, float]:
    """The largest difference of each part. Absolute: the figures are those of the file."""
    parts = {
        "joint settings": joints(robot, model),
        "geom settings": geoms(robot, model),
        "pair settings": pairs(robot, model),
        "tendon settings": tendons(robot, model),
        "site settings": sites(robot, model),
        "actuator settings": actuators(robot, model),
        "sensor settings": sensors(robot, model),
        "keyframes": keyframes(robot, model),
        "options": options(robot, model),
    }
    return {name: max(map(difference, both), default=0.0) for name, both in parts.items()}


def difference(both: tuple[Any, Any]) -> float:
    """max|Δ|, infinite where shapes differ."""
    ours, theirs = (np.asarray(one, dtype=float) for one in both)
    if ours.size == theirs.size == 0:
        return 0.0
    return float(np.abs(ours - theirs).max()) if ours.shape == theirs.shape else np.inf


def softness(given: Softness) -> tuple[float, ...]:
    """solref and solimp, MuJoCo's defaults where there are none."""
    return (*(given.reference or (0.02, 1.0)), *(given.impedance or IMPEDANCE))


def theirs_of(model: Any, kind: str, ids: Iterable[int]) -> Array:
    """The same of MuJoCo's geoms, pairs …"""
    rows = list(ids)
    reference, impedance = getattr(model, f"{kind}_solref")[rows], getattr(model, f"{kind}_solimp")[rows]
    return np.column_stack([reference, impedance])


def bounds(lower: float | None, upper: float | None) -> tuple[float, float]:
    """Infinite where there are none."""
    return (-1e300 if lower is None else lower, 1e300 if upper is None else upper)


def joints(robot: Articulation, model: Any) -> Iterable[tuple[Any, Any]]:
    """Ranges, friction, range of the actuators' forces; joints in MuJoCo's order."""
    moving = [joint for joint in robot.joints if joint.kind != "fixed"]
    if len(moving) != model.njnt:
        yield 0.0, np.inf
        return
    ball = model.jnt_type == mujoco.mjtJoint.mjJNT_BALL
    low = np.where(model.jnt_limited, np.where(ball, -1e300, model.jnt_range[:, 0]), -1e300)
    high = np.where(model.jnt_limited, model.jnt_range[:, 1], 1e300)
    if not off(model, "LIMIT"):
        yield [bounds(joint.lower, joint.upper) for joint in moving], np.column_stack([low, high])
    first = model.jnt_dofadr
    if not off(model, "FRICTIONLOSS"):
        yield [joint.friction for joint in moving], model.dof_frictionloss[first]
    if off(model, "ACTUATION"):
        return
    scalar = [n for n, joint in enumerate(moving) if joint.kind in ("revolute", "continuous", "prismatic")]
    limited = model.jnt_actfrclimited[scalar, None] != 0
    theirs = np.where(limited, model.jnt_actfrcrange[scalar], [-1e300, 1e300])
    yield [moving[n].actuator_range or (-1e300, 1e300) for n in scalar], theirs


def geoms(robot: Articulation, model: Any) -> Iterable[tuple[Any, Any]]:
    """Figures of contact, shapes and places; geoms of the links in MuJoCo's order."""
    ours = [geom for link in robot.links for geom in link.geoms]
    if any("fusestatic and discardvisual are ignored" in note.message for note in robot.notes):
        return
    if len(ours) != model.ngeom:
        yield 0.0, np.inf
        return
    yield [KINDS.index(geom.kind) for geom in ours], np.array([kind_of(model, n) for n in range(model.ngeom)])
    yield (
        [figures(geom) for geom in ours],
        np.column_stack(
            [
                model.geom_contype,
                model.geom_conaffinity,
                model.geom_condim,
                model.geom_priority,
                model.geom_solmix,
                model.geom_margin,
                model.geom_gap,
                model.geom_adhesion,
                model.geom_group,
                model.geom_friction,
                theirs_of(model, "geom", range(model.ngeom)),
            ]
        ),
    )
    for geom, n in zip(ours, range(model.ngeom), strict=True):
        if geom.kind not in ("plane", "heightfield", "mesh"):
            yield geom.surface.velocity, model.geom_surfacevel[n]  # of meshes MuJoCo moves the frame
            yield geom.size, model.geom_size[n, : len(geom.size)]
            yield geom.pose.position, model.geom_pos[n]
            yield [abs(np.dot(geom.pose.rotation, model.geom_quat[n]))], [1.0]


def kind_of(model: Any, n: int) -> int:
    """A geom's kind as KINDS counts."""
    return int(model.geom_type[n])


def figures(geom: Geom) -> tuple[float, ...]:
    """As the columns above."""
    s = geom.surface
    first = (s.type_bits, s.affinity_bits, s.dimension, s.priority, s.mix, s.margin, s.gap, s.adhesion, geom.group)
    return (*first, *(geom.friction or FRICTION), *softness(s.softness))


def pairs(robot: Articulation, model: Any) -> Iterable[tuple[Any, Any]]:
    """Pairs by their geoms, and how many bodies do not touch."""
    if len(robot.contact_pairs) != model.npair:
        yield 0.0, np.inf
        return
    order = {}
    for n in range(model.npair):
        order[frozenset((model.geom(model.pair_geom1[n]).name, model.geom(model.pair_geom2[n]).name))] = n
    for pair in robot.contact_pairs:
        n = order[frozenset((pair.geom_a, pair.geom_b))]
        along = pair.friction_reference or (0.0, 0.0)
        if along[0] > 0:  # nothing depends on a damping ratio there
            along = (along[0], model.pair_solreffriction[n, 1])
        yield (
            (pair.dimension or 3, pair.margin or 0.0, pair.gap or 0.0, pair.adhesion or 0.0),
            (
                model.pair_dim[n],
                model.pair_margin[n],
                model.pair_gap[n],
                model.pair_adhesion[n],
            ),
        )
        yield pair.friction or PAIR_FRICTION, model.pair_friction[n]
        yield along, model.pair_solreffriction[n]
        yield softness(pair.softness), theirs_of(model, "pair", [n])[0]
    yield len(set(map(frozenset, robot.no_contact))), len(set(model.exclude_signature.tolist()))


def tendons(robot: Articulation, model: Any) -> Iterable[tuple[Any, Any]]:
    """Ranges, friction, armature, springs."""
    ours = robot.tendons[: model.ntendon]  # after them come the edges of flexcomps
    if len(ours) != model.ntendon:
        yield 0.0, np.inf
        return
    limited = model.tendon_limited[:, None] != 0
    none = [-1e300, 1e300]
    if not off(model, "LIMIT"):
        ranges = np.array([bounds(tendon.lower, tendon.upper) for tendon in ours]).reshape(-1, 2)
        yield ranges, np.where(limited, model.tendon_range, none)
    if not off(model, "FRICTIONLOSS"):
        yield [t.friction for t in ours], model.tendon_frictionloss
    if not off(model, "SPRING"):
        yield [(t.stiffness, *t.stiffness_polynomial) for t in ours], stiffness(model, "stiffness")
    if not off(model, "DAMPER") and not model.actuator_damping.any():  # which counts as the tendon's here
        yield [(t.damping, *t.damping_polynomial) for t in ours], stiffness(model, "damping")
    if off(model, "ACTUATION"):
        return
    forces = np.where(model.tendon_actfrclimited[:, None] != 0, model.tendon_actfrcrange, none)
    yield [t.actuator_range or none for t in ours], forces
    for tendon, reference, impedance, is_limited in zip(
        ours, model.tendon_solref_lim, model.tendon_solimp_lim, model.tendon_limited, strict=True
    ):
        if is_limited:
            yield softness(tendon.softness), (*reference, *impedance)


def stiffness(model: Any, name: str) -> Array:
    """The figures of MuJoCo's tendons, polynomial included."""
    return np.column_stack([getattr(model, f"tendon_{name}"), getattr(model, f"tendon_{name}poly")])


def off(model: Any, flag: str) -> bool:
    """Whether a flag disables something: artsim then does not read its figures."""
    return bool(model.opt.disableflags & (bit(flag) | bit("CONSTRAINT") * (flag in ("LIMIT", "FRICTIONLOSS"))))


def bit(flag: str) -> int:
    """As MuJoCo numbers it."""
    return int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))


def sites(robot: Articulation, model: Any) -> Iterable[tuple[Any, Any]]:
    """Shapes and places of sites that have names."""
    if any("fusestatic" in note.message for note in robot.notes):
        return  # MuJoCo moves those of what it fuses
    for n in range(model.nsite):
        found = [site for site in robot.sites if site.name == model.site(n).name]
        if found:
            site = found[0]
            yield SITE_KINDS[site.kind], model.site_type[n]
            yield site.size, model.site_size[n]
            yield site.pose.position, model.site_pos[n]


def actuators(robot: Articulation, model: Any) -> Iterable[tuple[Any, Any]]:
    """Ranges, delays; controls one after the other."""
    if len(robot.actuators) != len(model.actuator_trntype):
        yield 0.0, np.inf
        return
    none = (-1e300, 1e300)
    ranges = [one or none for actuator in robot.actuators for one in actuator.control_ranges]
    theirs = np.where(model.actuator_ctrllimited.reshape(-1, 1) != 0, model.actuator_ctrlrange, none)
    if not off(model, "CLAMPCTRL"):
        yield np.array(ranges).reshape(-1, 2), theirs
    yield sum(len(actuator.inputs) for actuator in robot.actuators), model.nu
    yield [actuator.activation_size for actuator in robot.actuators], model.actuator_actnum
    for n, actuator in enumerate(robot.actuators):
        delay = actuator.delay
        if delay is not None:
            yield (delay.time, delay.samples), (model.actuator_delay[n], model.actuator_history[n, 0])
            yield INTERPOLATIONS.index(delay.interpolation), model.actuator_history[n, 1]
        if model.actuator_forcelimited[n] or actuator.force_range:
            yield actuator.force_range or none, model.actuator_forcerange[n]


def sensors(robot: Articulation, model: Any) -> Iterable[tuple[Any, Any]]:
    """Cutoffs, delays, periods."""
    if len(robot.sensors) != model.nsensor:
        return  # some are not evaluated, which is told
    for n, sensor in enumerate(robot.sensors):
        delay = sensor.delay
        if sensor.kind != "contact":
            yield sensor.cutoff, model.sensor_cutoff[n]
        yield len(sensor.outputs), model.sensor_dim[n]
        if delay is not None:
            ours = (delay.time, delay.samples, delay.period, delay.phase)
            yield ours, (model.sensor_delay[n], model.sensor_history[n, 0], *model.sensor_interval[n])


def keyframes(robot: Articulation, model: Any) -> Iterable[tuple[Any, Any]]:
    """States to start from."""
    if len(robot.keyframes) != model.nkey:
        yield 0.0, np.inf
        return
    for n, key in enumerate(robot.keyframes):
        yield key.qpos or model.key_qpos[n], model.key_qpos[n]
        if not key.qpos:
            yield model.key_qpos[n], model.qpos0
        for ours, theirs in (
            (key.qvel, model.key_qvel[n]),
            (key.control, model.key_ctrl[n]),
            (key.activation, model.key_act[n]),
        ):
            yield ours or np.zeros(len(theirs)), theirs


def options(robot: Articulation, model: Any) -> Iterable[tuple[Any, Any]]:
    """Medium, field, step, and what overrides contacts."""
    ours, theirs = robot.options, model.opt
    yield ours.timestep or 0.002, theirs.timestep
    gravity = (0.0, 0.0, -9.81) if ours.gravity is None else ours.gravity
    yield gravity, np.zeros(3) if off(model, "GRAVITY") else theirs.gravity
    if not (off(model, "SPRING") and off(model, "DAMPER")):  # then no medium acts
        yield (ours.density, ours.viscosity, *ours.wind), (theirs.density, theirs.viscosity, *theirs.wind)
    yield ours.magnetic, theirs.magnetic
    over = ours.contact_override
    yield over is not None, bool(theirs.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    if over is not None:
        yield (over.margin, *over.reference, *over.impedance), (theirs.o_margin, *theirs.o_solref, *theirs.o_solimp)
        yield over.friction, theirs.o_friction
