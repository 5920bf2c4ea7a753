"""Warnings about a suspicious start: penetration, a fixed base with feet, joints several turns from zero."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping

import numpy as np

from artsim.io.runs.named import named_contacts, run_labels
from artsim.io.runs.prepare import held_controls
from artsim.sim.articulation.model import FREE
from artsim.sim.foundation.records import Array
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.settings import CONVEX
from artsim.sim.runs.simulate import Simulation

DEEP = 1e-3  # m of initial penetration above which the user is warned
_TURNS = 4 * math.pi  # rad of a hinge that are hardly intended
_FEET = re.compile(
    r"(?:^|[_\W])(?:foot|feet|toe|toes|sole|hoof|paw)(?:$|[_\W\d])|(?<=[a-z])(?:Foot|Toe|Sole)", re.ASCII
)
_SHOWN = 3


def start_notes(plan: Plan, controls: Controls | None = None) -> list[str]:
    """Warnings about the start of a run that has not begun."""
    return [*_inside(plan, controls), *_on_fixed_feet(plan), *_far_turned(plan)]


def _inside(plan: Plan, controls: Controls | None) -> list[str]:
    """Warn of pairs of links that start more than 1 mm in each other, found by a discarded trial step."""
    if plan.touching is None or plan.config.is_maximal:
        return []
    config = dataclasses.replace(plan.config, steps=1, every=1, record=("qpos", "contacts"))
    probe = Simulation(dataclasses.replace(plan, config=config), controls or held_controls(plan))
    depths: dict[tuple[str, str], float] = {}
    for block in probe.blocks():
        for pair, depth in _depths(probe.plan, named_contacts(probe.plan, block.tables)):
            depths[pair] = max(depth, depths.get(pair, 0.0))
    deep = sorted(((depth, pair) for pair, depth in depths.items() if depth > DEEP), reverse=True)
    if not deep:
        return []
    told = ", ".join(f"{a} in {b} ({1e3 * depth:.3g} mm)" for depth, (a, b) in deep[:_SHOWN])
    more = f" and {len(deep) - _SHOWN} pairs more" if len(deep) > _SHOWN else ""
    free = any(int(kind) == FREE for kind in plan.robot.model.joint_type[1:])
    hint = " (--on-ground starts a free base above the ground)" if free and deep[0][1][1] == "world" else ""
    held = probe.held_inside
    if plan.config.contact_law == CONVEX:
        after = "the springs of the convex contact law push the links apart"
    elif held is None:
        after = "this penetration is removed over 0.1 s, which moves the links"
    else:
        _, _, link_a, link_b, loop = held
        rest = "; the rest is removed over 0.1 s, which moves the links" if len(deep) > 1 else ""
        after = f"{link_a} in {link_b} is held there by loop {loop!r} and stays, without contact{rest}"
    return [f"the run starts inside something: {told}{more}{hint}; {after}"]


def _depths(plan: Plan, contacts: Mapping[str, Array]) -> list[tuple[tuple[str, str], float]]:
    """The two links of each contact, the world last, and its depth [m]."""
    if not contacts:
        return []
    names = run_labels(plan).touching_link
    columns = (contacts["link_a"], contacts["link_b"], contacts["depth"])
    return [
        ((names[int(b)], names[int(a)]) if names[int(a)] == "world" else (names[int(a)], names[int(b)]), float(depth))
        for a, b, depth in zip(*columns, strict=True)
    ]


def _on_fixed_feet(plan: Plan) -> list[str]:
    """Warn of a URDF whose base is fixed in the air although the robot has feet."""
    articulation = plan.robot.articulation
    parents = {joint.parent for joint in articulation.joints}
    feet = [link.name for link in articulation.links if link.name not in parents and _FEET.search(link.name)]
    if not articulation.conventions.base_chosen or articulation.base != "fixed" or len(feet) < 2:
        return []
    return [
        f"the base is fixed in mid-air, though the robot has feet ({', '.join(map(repr, feet[:_SHOWN]))}); "
        "--base floating lets it stand on them"
    ]


def _far_turned(plan: Plan) -> list[str]:
    """Warn of hinges whose start or target exceeds two turns: the value may be meant in degrees."""
    model, labels = plan.robot.model, plan.robot.labels
    hinges = np.flatnonzero((model.dof_linear == 0) & (model.dof_coord >= 0))
    starts = [(labels.dofs[k], float(plan.qpos[model.dof_coord[k]]), "starts at") for k in hinges]
    driven = hinges[plan.inputs["drive_stiffness"][hinges] > 0]
    aims = [(labels.dofs[k], float(plan.target[k]), "is driven to") for k in driven]
    odd = [(name, value, does) for name, value, does in (*starts, *aims) if abs(value) > _TURNS]
    if not odd:
        return []
    name, value, does = odd[0]
    more = f" (and {len(odd) - 1} more)" if len(odd) > 1 else ""
    return [
        f"joint {name!r}{more} {does} {value:.6g} rad, {abs(value) / (2 * math.pi):.1f} turns; "
        f"if degrees are meant, that is {math.radians(value):.6g} rad"
    ]
