"""Builds the Equipment arrays (arrays.py) of loop joints, and measures open loops at a configuration. Kernel-free."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from artsim.sim.articulation.description import IMPEDANCE, Articulation, reference_of_softness
from artsim.sim.articulation.model import Model
from artsim.sim.articulation.poses import body_poses
from artsim.sim.articulation.sliders import sliding_masses_of
from artsim.sim.equipment.arrays import CONNECT, WELD, Equipped
from artsim.sim.equipment.places import Places
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.spatial import Real, quaternion


def loop_arrays(articulation: Articulation, places: Places) -> dict[str, Array]:
    """The arrays of the active loops."""
    loops = [loop for loop in articulation.loops if loop.active]
    ends = [places.frame(*end) for loop in loops for end in ((loop.link_a, loop.frame_a), (loop.link_b, loop.frame_b))]
    links = [places.links[name] for loop in loops for name in (loop.link_a, loop.link_b)]
    sliding = sliding_masses_of(articulation)
    return {
        "loop_kind": np.array([CONNECT if loop.kind == "connect" else WELD for loop in loops], np.int64),
        "loop_body": np.array([body for body, _, _ in ends], np.int64).reshape(-1, 2),
        "loop_link": np.array(links, np.int64).reshape(-1, 2),
        "loop_rotation": np.array([turn for _, turn, _ in ends]).reshape(-1, 3, 3),
        "loop_position": np.array([place for _, _, place in ends]).reshape(-1, 3),
        "loop_torque_scale": np.array([loop.torque_scale for loop in loops]),
        "loop_reference": np.array([reference_of_softness(loop.softness) for loop in loops]).reshape(-1, 2),
        "loop_impedance": np.array([loop.softness.impedance or IMPEDANCE for loop in loops]).reshape(-1, 5),
        "loop_centre": np.array([places.centre(link) for loop in loops for link in (loop.link_a, loop.link_b)]).reshape(
            -1, 3
        ),
        "loop_sliding": np.array(
            [sliding.get(name, 0.0) for loop in loops for name in (loop.link_a, loop.link_b)], np.float64
        ),
        "dof_sliding": _dof_sliding(articulation, places, sliding),
    }


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
        gap = float(np.linalg.norm(place[0] - place[1]))
        if e.loop_kind[n] == WELD and e.loop_torque_scale[n] > 0:
            turn = (rotation[b] @ e.loop_rotation[2 * n + 1]).T @ (rotation[a] @ e.loop_rotation[2 * n])
            gap = max(gap, 2.0 * float(np.arccos(min(1.0, quaternion(turn)[0]))))
        if gap > more_than:
            found[name] = gap
    return found
