"""The places of a robot's lasting rows in State.impulse, as assembly.build_rows numbers them, for packs.

This file does not import numba.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import SWING_Y, TWIST_UPPER, Model
from artsim.sim.equipment.arrays import BY_ROW, Equipment
from artsim.sim.foundation.records import Array
from artsim.sim.run_data.link_rules import LinkRules


class Places(NamedTuple):
    """Places of rows, -1: there is none. `own`: in the order of rows_of_lane.find_rows, without springs of tendons,
    which come last and from `end` on.
    """

    friction: Array  # (nv,) of joint friction
    drive: Array  # (nv,) of drives
    sides: Array  # (nl,) of the sides of limits, in the order of pack_contacts.limited_sides
    own: Array
    end: int


def lasting_places(model: Model, driven: Array, equipment: Equipment | None, rules: LinkRules | None) -> Places:
    """The places of all rows; driven (nv,): True for dofs whose drive is a row."""
    nv = len(model.dof_body)
    friction, drive, sides = np.full(nv, -1), np.full(nv, -1), list[int]()
    couplings, axes, balls, others = list[int](), list[int](), list[int](), list[int]()
    leaders = np.where(model.row_leader >= 0, model.row_leader, nv)
    count = 0

    def take(rows: int = 1) -> range:
        nonlocal count
        count += rows
        return range(count - rows, count)

    for k in range(nv):
        couplings += take(int(np.sum(np.minimum(model.row_follower, leaders) == k)))
        axes += take(int(np.sum(np.minimum(model.axis_turn, model.axis_dof) == k)))
        if model.friction[k] > 0.0 or model.friction_coefficient[k] > 0.0:
            friction[k] = take()[0]
        if driven[k]:
            drive[k] = take()[0]
        if model.dof_coord[k] < 0:
            balls += take(int(np.isfinite(model.upper[k])))
        if model.dof_turn[k] >= 0:
            turn = np.isfinite(model.turn_range[model.dof_turn[k]])
            balls += take(2 * int(turn[TWIST_UPPER]) + int(turn[SWING_Y]))
        if model.dof_coord[k] >= 0:
            sides += take(int(np.isfinite(model.lower[k])) + int(np.isfinite(model.upper[k])))
        sides += take(2 * int(np.isfinite(model.velocity_limit[k])))
    if equipment is not None:
        e = equipment
        others += take(int(np.sum(e.actuator_linear == BY_ROW)) + len(e.tendon_row_follower))
        for t in range(len(e.tendon_lower)):
            others += take(int(e.tendon_armature[t] > 0.0) + int(e.tendon_friction[t] > 0.0))
            sides += take(int(np.isfinite(e.tendon_lower[t])) + int(np.isfinite(e.tendon_upper[t])))
        others += take(int(e.loop_held.sum()))
    if rules is not None:
        others += take(len(rules.bound))
    own = np.array([*couplings, *axes, *balls, *others], np.int64)
    return Places(friction, drive, np.array(sides, np.int64), own, count)
