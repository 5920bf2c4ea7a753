"""Builds the Equipment arrays (arrays.py) of loop joints, and measures open loops at a configuration. Kernel-free."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from artsim.sim.articulation.description import IMPEDANCE, Articulation, Loop, LoopSpring, reference_of_softness
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.poses import body_poses
from artsim.sim.articulation.sliders import sliding_masses_of
from artsim.sim.equipment.arrays import (
    BY_FREQUENCY,
    BY_STIFFNESS,
    CONNECT,
    HINGE,
    LOOP_JOINT,
    RIGID,
    WELD,
    Equipped,
)
from artsim.sim.equipment.places import Places
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real, quaternion

_KINDS = {"connect": CONNECT, "weld": WELD, "hinge": HINGE, "joint": LOOP_JOINT}
_SPRUNG = (0.0, 0.0, 0.0)  # the softness of a loop that is a spring: not hard


def loop_arrays(articulation: Articulation, places: Places) -> dict[str, Array]:
    """The arrays of the active loops."""
    loops = [loop for loop in articulation.loops if loop.active]
    ends = [places.frame(*end) for loop in loops for end in ((loop.link_a, loop.frame_a), (loop.link_b, loop.frame_b))]
    links = [places.links.get(name, -1) for loop in loops for name in (loop.link_a, loop.link_b)]
    sliding = sliding_masses_of(articulation)
    return {
        "loop_kind": np.array([_KINDS[loop.kind] for loop in loops], np.int64),
        "loop_held": np.array([loop.held for loop in loops], np.int64).reshape(-1, 6),
        "loop_body": np.array([body for body, _, _ in ends], np.int64).reshape(-1, 2),
        "loop_link": np.array(links, np.int64).reshape(-1, 2),
        "loop_rotation": np.array([turn for _, turn, _ in ends]).reshape(-1, 3, 3),
        "loop_position": np.array([place for _, _, place in ends]).reshape(-1, 3),
        "loop_torque_scale": np.array([loop.torque_scale for loop in loops]),
        "loop_reference": np.array(
            [_SPRUNG if loop.spring else reference_of_softness(loop.softness) for loop in loops]
        ).reshape(-1, 3),
        "loop_sprung": np.array([_sprung(loop.spring) for loop in loops], np.int64),
        "loop_compliance": np.array([_compliance(loop) for loop in loops]).reshape(-1, 2),
        "loop_erp": np.array([-1.0 if loop.erp is None else loop.erp for loop in loops]),
        "loop_spring": np.array([_spring(loop) for loop in loops]).reshape(-1, 2, 2),
        "loop_impedance": np.array([loop.softness.impedance or IMPEDANCE for loop in loops]).reshape(-1, 5),
        "loop_centre": np.array([places.centre(link) for loop in loops for link in (loop.link_a, loop.link_b)]).reshape(
            -1, 3
        ),
        "loop_sliding": np.array(
            [sliding.get(name, 0.0) for loop in loops for name in (loop.link_a, loop.link_b)], np.float64
        ),
        "dof_sliding": _dof_sliding(articulation, places, sliding),
    }


def _sprung(spring: LoopSpring | None) -> int:
    """The entry of loop_sprung: RIGID, BY_STIFFNESS or BY_FREQUENCY."""
    if spring is None:
        return RIGID
    return BY_STIFFNESS if spring.frequency is None else BY_FREQUENCY


def _spring(loop: Loop) -> tuple[tuple[float, float], tuple[float, float]]:
    """K and B of translation and rotation: μ² and 2 ζ μ, or stiffness and damping of C, or 1 and that of a compliance.

    A rotation's C is its torque scale times the sine of half its angle: a stiffness of the angle counts 4 / scale².
    """
    spring = loop.spring
    if spring is None:
        return ((0.0, 0.0), (0.0, 0.0))
    if spring.compliance is not None:
        return ((1.0, spring.compliance.damping),) * 2
    if spring.frequency is not None:
        mu = 2.0 * math.pi * spring.frequency
        both = (mu * mu, 2.0 * spring.damping_ratio * mu)
        return (both, both)
    turn = 1.0 / _turn_compliance(loop)
    (k, k_turn), (d, d_turn) = spring.stiffness, spring.damping
    return ((k, d), (turn * k_turn, turn * d_turn))


def _compliance(loop: Loop) -> tuple[float, float]:
    """The divisors of K and B of translation and rotation: compliances of C."""
    if loop.spring is None or loop.spring.compliance is None:
        return (1.0, 1.0)
    c = loop.spring.compliance.compliance
    return (c, _turn_compliance(loop) * c)


def _turn_compliance(loop: Loop) -> float:
    """The compliance of a rotation's C per compliance of its angle."""
    return float(max(loop.torque_scale, 1e-150) ** 2 / 4.0)


def _dof_sliding(articulation: Articulation, places: Places, sliding: Mapping[str, float]) -> Real:
    """Mass of the sliding link that each dof moves, 0 for other dofs (nv,) [kg]."""
    mass = np.zeros(len(places.compiled.model.dof_body))
    for joint in articulation.joints:
        if joint.child in sliding:
            mass[places.first_dof(joint.name)] = sliding[joint.child]
    return mass


def open_loops(model: Model, equipped: Equipped, q: Real, more_than: float) -> dict[str, float]:
    """The loops that are open at q (nq,) by more than `more_than` [m; a weld's rotation: rad], and their gaps."""
    e = equipped.arrays
    if len(e.loop_kind) == 0:
        return {}
    rotation, origin = body_poses(model, q)
    found = {}
    for n, name in enumerate(equipped.labels.loops):
        a, b = e.loop_body[n]
        place = [origin[body] + rotation[body] @ e.loop_position[2 * n + k] for k, body in enumerate((a, b))]
        frame_a = rotation[a] @ e.loop_rotation[2 * n]
        apart = frame_a.T @ (place[0] - place[1]) if e.loop_kind[n] == LOOP_JOINT else place[0] - place[1]
        gap = float(np.linalg.norm(apart * e.loop_held[n, :3]))
        if e.loop_held[n, 3:].any() and e.loop_torque_scale[n] > 0:
            turn = (rotation[b] @ e.loop_rotation[2 * n + 1]).T @ frame_a
            half = np.linalg.norm(quaternion(turn)[1:] * e.loop_held[n, 3:])
            gap = max(gap, 2.0 * math.asin(min(1.0, float(half))))
        if gap > more_than:
            found[name] = gap
    return found
