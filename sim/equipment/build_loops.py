"""Loop joints as arrays (record.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from artsim.sim.description import Articulation, spring_of_softness
from artsim.sim.equipment.record import CONNECT, WELD
from artsim.sim.records import Array

if TYPE_CHECKING:
    from artsim.sim.equipment.build import Places


def loop_arrays(articulation: Articulation, places: Places) -> dict[str, Array]:
    """The arrays of the active loops."""
    loops = [loop for loop in articulation.loops if loop.active]
    ends = [places.frame(*end) for loop in loops for end in ((loop.link_a, loop.frame_a), (loop.link_b, loop.frame_b))]
    return {
        "loop_kind": np.array([CONNECT if loop.kind == "connect" else WELD for loop in loops], np.int64),
        "loop_body": np.array([body for body, _, _ in ends], np.int64).reshape(-1, 2),
        "loop_rotation": np.array([turn for _, turn, _ in ends]).reshape(-1, 3, 3),
        "loop_position": np.array([place for _, _, place in ends]).reshape(-1, 3),
        "loop_torque_scale": np.array([loop.torque_scale for loop in loops]),
        "loop_soft": np.array([spring_of_softness(loop.softness) for loop in loops]).reshape(-1, 2),
    }
