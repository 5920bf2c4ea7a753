"""Wrenches on links from outside, which are inputs: lines along which they act."""

from __future__ import annotations

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import LINK_AXES, WRENCH, Equipment
from artsim.sim.foundation.rotations import Real
from artsim.sim.maximal.bodies import BodyStates, Masses, origins
from artsim.sim.maximal.lines import Lines

OnLink = tuple[int, int, Real]  # a body, a link of it, and a wrench (6,) about the body's centre of mass


def wrench_lines(wrenches: list[OnLink], state: BodyStates) -> Lines:
    """Lines along which a unit force is the wrench."""
    n = len(wrenches)
    body = np.array([(body, 0) for body, _, _ in wrenches], np.int64).reshape(-1, 2)
    link = np.array([(link, -1) for _, link, _ in wrenches], np.int64).reshape(-1, 2)
    value = np.zeros((n, 12))
    for row, (_, _, wrench) in enumerate(wrenches):
        value[row, :6] = wrench
    rate = np.einsum("nk,nk->n", value[:, :6], state.velocity[body[:, 0]])
    return Lines(body, value, rate, np.zeros(n), np.zeros(n), np.zeros(n, bool), link)


def link_wrenches_of_bodies(
    e: Equipment, model: Model, masses: Masses, state: BodyStates, control: Real
) -> list[OnLink]:
    """The wrenches on links that are inputs, the last controls."""
    count = len(e.link_wrench_link)
    rotation, found = state.rotation, []
    origin = origins(masses, state, rotation)
    for link, point, axes, given in zip(
        e.link_wrench_link,
        e.link_wrench_point,
        e.link_wrench_axes,
        control[len(control) - WRENCH * count :].reshape(-1, WRENCH),
        strict=True,
    ):
        body = int(model.link_body[link])
        turn = rotation[body] @ model.link_rotation[link] if axes == LINK_AXES else np.eye(3)
        force, torque = turn @ given[:3], turn @ given[3:]
        arm = origin[body] + rotation[body] @ point - state.centre[body]
        found.append((body, int(link), np.concatenate([force, np.cross(arm, force) + torque])))
    return found
