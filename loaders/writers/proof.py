"""The proof of a written file: it is loaded, and compared with the robot that was written, at random states.

Fields are compared one by one (differences.py). Where links are, M, gravity and bias are compared at states drawn
within the limits, as are the pairs of geoms that may touch and the depths of their contacts. A difference that the
writer did not tell is a fault of the writer, and is shown as one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from artsim.loaders.writers.differences import TOLERANCE, Difference, by_kind, differences, role_of
from artsim.loaders.writers.losses import WHOLE, Losses, geom_name
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation, Geom
from artsim.sim.articulation.model import Compiled
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.foundation.rotations import Real
from artsim.sim.geometry.collision_pairs import collision_pairs
from artsim.sim.quantities.robot import Robot

STATES = 8
NEARLY = "equal but for names and looks"
QUANTITIES = {
    "mass_matrix": "mass matrix",
    "gravity": "gravity forces",
    "bias": "bias forces",
    "link_position": "link positions",
    "link_quaternion": "link rotations",
}
_TREE = {"joint": {WHOLE, "parent", "kind", "name"}, "link": {WHOLE, "name"}}
_POSES = {"joint": {WHOLE, "parent", "kind"}, "link": {WHOLE, "name"}}
_FORCES = {
    "joint": {*_POSES["joint"], "armature"},
    "link": {*_POSES["link"], "inertial", "gravity_compensation"},
    "tendon": {WHOLE, "armature"},
    "option": {"gravity"},
}
_CONTACTS = {
    **_POSES,
    "link": {*_POSES["link"], "self_collide", "model", "contacts"},
    "geom": {WHOLE, "surface", "role", "size", "pose", "kind", "mesh", "solid"},
    "contact": {WHOLE},
    "contact pair": {WHOLE},
    "excluded pair": {WHOLE},
    "option": {"contact", "filter_parent", "contact_override"},
}
REASONS: Mapping[str, Mapping[str, Collection[str]]] = {
    "tree": _TREE,
    "mass_matrix": _FORCES,
    "gravity": _FORCES,
    "bias": _FORCES,
    "link_position": _POSES,
    "link_quaternion": _POSES,
    "contacts": _CONTACTS,
}
"""The kinds and fields of losses that explain a difference of a quantity."""
SMALL = {"mass_matrix": 1e-3, "gravity": 1e-3, "bias": 1e-3, "link_position": 1e-3, "link_quaternion": 1.0}
"""Sizes of quantities in SI units, to which differences of smaller ones are relative: they are rounding, or the inertia
of bodies that have next to none."""
FREELY = 1.0  # [m] by which slides without limits move, either way
Pair = tuple[str, str]


class Row(NamedTuple):
    """A line of the table: subject, count of the numbers or items compared, distance between them, verdict."""

    subject: str
    compared: int
    distance: float | None  # relative to the larger of 1 and the numbers; None: items, or not compared
    verdict: str  # "equal", "told", "not told", or why nothing was compared

    @property
    def equal(self) -> bool:
        """True if both files say the same."""
        return self.verdict in ("equal", "none", NEARLY)


class Proof(NamedTuple):
    """The table, and the differences of fields behind it."""

    rows: list[Row]
    differences: list[Difference]

    @property
    def untold(self) -> list[Difference]:
        """The differences of fields that the writer did not tell."""
        return [difference for difference in self.differences if not difference.told]

    @property
    def holds(self) -> bool:
        """True if nothing differs that was not told."""
        return not self.untold and all(row.verdict != "not told" for row in self.rows)


def prove(before: Articulation, after: Articulation, losses: Losses, *, contacts: bool = True, seed: int = 0) -> Proof:
    """Compare a robot with the one that its written file is read as."""
    after = with_own_names(after, losses)
    found = differences(before, after, losses)
    rows = field_rows(before, found)
    try:
        first, second = compile_model(before), compile_model(after)
    except ArtsimError as error:
        return Proof([*rows, Row("quantities", 0, None, f"not computed: {error}")], found)
    robots = Robot(before, first), Robot(after, second)
    order = matched(first.labels.coords, second.labels.coords)
    if order is None:
        return Proof([*rows, Row("coordinates", len(first.labels.coords), None, verdict(losses))], found)
    states = drawn(first, STATES, seed)
    rows += quantity_rows(robots, states, order, losses, found)
    if contacts:
        rows += contact_rows(robots, states, order, losses)
    return Proof(rows, found)


def with_own_names(after: Articulation, losses: Losses) -> Articulation:
    """The robot with the names that its links and joints had before they were written."""
    if not losses.names:
        return after

    def own(kind: str, name: str) -> str:
        return losses.names.get((kind, name), name)

    return replace(
        after,
        links=tuple(replace(link, name=own("link", link.name)) for link in after.links),
        joints=tuple(
            replace(
                joint,
                name=own("joint", joint.name),
                parent=own("link", joint.parent),
                child=own("link", joint.child),
            )
            for joint in after.joints
            if own("link", joint.parent) != own("link", joint.child)  # holds the link that carries the world's shapes
        ),
        couplings=tuple(
            replace(
                coupling,
                follower=own("joint", coupling.follower),
                leader=None if coupling.leader is None else own("joint", coupling.leader),
            )
            for coupling in after.couplings
        ),
        loops=tuple(
            replace(
                loop,
                name=own("loop", loop.name),
                link_a=own("link", loop.link_a),
                link_b=own("link", loop.link_b),
            )
            for loop in after.loops
        ),
        no_contact=tuple((own("link", a), own("link", b)) for a, b in after.no_contact),
    )


def verdict(losses: Losses, quantity: str = "tree") -> str:
    """The verdict on a quantity that differs: told if a loss of a kind and field that it depends on was told."""
    reasons = REASONS[quantity]
    told = any(loss.field.partition(".")[0] in reasons.get(loss.kind, ()) for loss in losses.entries)
    return "told" if told else "not told"


# --- fields ----------------------------------------------------------------------------------------------------------


def field_rows(before: Articulation, found: Sequence[Difference]) -> list[Row]:
    """A row for each kind of item that the robot has, or that differs."""
    counts = {
        "link": len(before.links),
        "joint": sum(joint.kind != "fixed" for joint in before.joints),
        "geom": sum(len(link.geoms) for link in before.links),
        "coupling": len(before.couplings),
        "loop": len(before.loops),
        "tendon": len(before.tendons),
        "tendon coupling": len(before.tendon_couplings),
        "actuator": len(before.actuators),
        "site": len(before.sites),
        "sensor": len(before.sensors),
        "contact pair": len(before.contact_pairs),
        "excluded pair": len(before.no_contact),
        "keyframe": len(before.keyframes),
        "option": 1,
    }
    kinds = by_kind(found)
    rows = []
    for kind, count in counts.items():
        of_kind = kinds.get(kind, [])
        if count or of_kind:
            word = "equal" if not of_kind else "told" if all(d.told for d in of_kind) else "not told"
            word = NEARLY if word == "told" and not any(d.physical for d in of_kind) else word
            rows.append(Row(f"{kind}s", count, None, word))
    return rows


# --- quantities ------------------------------------------------------------------------------------------------------


def matched(first: Sequence[str], second: Sequence[str]) -> Any:
    """For each coordinate of the second robot its place in the first; None unless both have the same."""
    places = {name: n for n, name in enumerate(first)}
    if len(first) != len(second) or set(first) != set(second):
        return None
    return np.array([places[name] for name in second], int)


def drawn(compiled: Compiled, count: int, seed: int) -> tuple[Real, Real]:
    """Configurations (count, nq) within the limits, and velocities (count, nv)."""
    random = np.random.default_rng(seed)
    model = compiled.model
    table = random.normal(size=(count, len(compiled.labels.coords)))
    for k in range(len(compiled.labels.dofs)):
        coord, lower, upper = int(model.dof_coord[k]), float(model.lower[k]), float(model.upper[k])
        if coord < 0 or compiled.labels.dofs[k] not in compiled.labels.coords:
            continue
        far = FREELY if model.dof_linear[k] else np.pi
        low, high = max(lower, -1e6), min(upper, 1e6)
        low, high = (low if np.isfinite(lower) else min(-far, high)), (high if np.isfinite(upper) else max(far, low))
        table[:, coord] = random.uniform(low, high, count)
    for name, place in compiled.labels.joint_coords.items():
        names = compiled.labels.coords[place]
        if f"{name}.qw" in names:
            start = place.start + names.index(f"{name}.qw")
            table[:, start : start + 4] /= np.linalg.norm(table[:, start : start + 4], axis=1)[:, None]
    return table, random.normal(size=(count, len(compiled.labels.dofs)))


def quantity_rows(
    robots: tuple[Robot, Robot], states: tuple[Real, Real], order: Any, losses: Losses, found: Sequence[Difference]
) -> list[Row]:
    """M, gravity, bias and the poses of the links that both have."""
    first, second = robots
    dofs = matched(first.dofs, second.dofs)
    links = [name for name in first.links if name in set(second.links)]
    if dofs is None or not len(order):
        qpos, qvel = np.zeros((1, first.nq)), np.zeros((1, first.nv))
    else:
        qpos, qvel = states
    if dofs is None:
        return [Row("degrees of freedom", first.nv, None, verdict(losses))]
    asked = {"quantities": tuple(QUANTITIES), "links": links}
    a = first.compute(qpos, qvel, **asked)  # type: ignore[arg-type]
    b = second.compute(qpos[:, order] if len(order) else np.zeros((len(qpos), 0)), qvel[:, dofs], **asked)  # type: ignore[arg-type]
    back = np.argsort(dofs)
    rows = []
    for name, subject in QUANTITIES.items():
        value, other = a[name], b[name]
        if name == "mass_matrix":
            other = other[:, back][:, :, back]
        elif name in ("gravity", "bias"):
            other = other[:, back]
        elif name == "link_quaternion":
            other = np.where((value * other).sum(axis=-1, keepdims=True) < 0, -other, other)
        heavy = float(np.abs(a["mass_matrix"]).max(initial=0.0)) if name in ("gravity", "bias") else 0.0
        rows.append(numbers_row(subject, value, other, losses, name, least=max(heavy, SMALL[name])))
    return rows


def numbers_row(subject: str, value: Real, other: Real, losses: Losses, quantity: str, *, least: float) -> Row:
    """The row of a table of numbers, whose differences count relative to the largest one, or to `least`: forces that
    cancel, as those of gravity about upright axes do, are no more exact than the masses that they come from.
    """
    if not value.size:
        return Row(subject, 0, None, "none")
    both = np.isfinite(value) & np.isfinite(other)
    if (np.isfinite(value) != np.isfinite(other)).any():
        return Row(subject, value.size, None, verdict(losses, quantity))
    scale = max(least, float(np.abs(value[both]).max(initial=0.0)))
    distance = float(np.abs(value - other)[both].max(initial=0.0)) / scale
    return Row(subject, value.size, distance, "equal" if distance <= TOLERANCE else verdict(losses, quantity))


# --- contacts --------------------------------------------------------------------------------------------------------


def contact_rows(robots: tuple[Robot, Robot], states: tuple[Real, Real], order: Any, losses: Losses) -> list[Row]:
    """The pairs of geoms that may touch, with a ground, and how deep they do at random states."""
    qpos = states[0]
    names = geom_names(robots[0].articulation, robots[1].articulation, losses)
    first, second = (without_lost(robot, of, losses) for robot, of in zip(robots, names, strict=True))
    try:
        pairs = [touching_pairs(robot, of) for robot, of in zip((first, second), names, strict=True)]
    except ArtsimError as error:
        return [Row("contact pairs", 0, None, f"not compared: {error}")]
    word = "equal" if pairs[0] == pairs[1] else verdict(losses, "contacts")
    rows = [Row("contact pairs", len(pairs[0]), None, word if pairs[0] or pairs[1] else "none")]
    if not pairs[0] and not pairs[1]:
        return rows
    try:
        a = depths(first, qpos, names[0], pairs[0] & pairs[1])
        b = depths(second, qpos[:, order], names[1], pairs[0] & pairs[1])
    except ArtsimError as error:
        return [*rows, Row("contact depths", 0, None, f"not compared: {error}")]
    keys = sorted(a.keys() | b.keys())
    value, other = (np.array([min(0.0, *depth.get(key, ()), 0.0) for key in keys]) for depth in (a, b))
    return [*rows, numbers_row("contact depths", value, other, losses, "contacts", least=1.0)]  # [m] iterated


def without_lost(robot: Robot, names: Mapping[int, str], losses: Losses) -> Robot:
    """The robot without the geoms that the file lacks."""
    links = tuple(
        replace(
            link,
            geoms=tuple(g for g in link.geoms if at_hand(g) and not losses.covers("geom", names.get(id(g), ""), WHOLE)),
        )
        for link in robot.articulation.links
    )
    return replace(robot, articulation=replace(robot.articulation, links=links))


def at_hand(geom: Geom) -> bool:
    """False for a mesh without points."""
    return geom.kind != "mesh" or geom.mesh is not None or bool(geom.vertices)


def geom_names(
    before: Articulation, after: Articulation, losses: Losses
) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """A name for each geom of both robots, by its id, the same for a geom and the one it is read as."""
    first: dict[int, str] = {}
    second: dict[int, str] = {}
    written = {link.name: link for link in after.links}
    for link in before.links:
        for role in ("visual", "collision"):
            kept = []
            for count, geom in enumerate(link.geoms):
                if role_of(geom) == role:
                    called = geom_name(link.name, geom, count)
                    first[id(geom)] = called
                    if not losses.covers("geom", called, WHOLE):
                        kept.append(called)
            own = [geom for geom in (written[link.name].geoms if link.name in written else ()) if role_of(geom) == role]
            second |= {id(geom): name for name, geom in zip(kept, own, strict=False)}
    return first, second


def touching_pairs(robot: Robot, names: Mapping[int, str]) -> set[Pair]:
    """The pairs of geoms that may touch, those with a ground among them, by their names."""
    table = collision_pairs(robot.articulation, robot.compiled, world=[ground()])
    called = [names.get(id(geom), geom.name or "?") for _, geom in table.geoms]
    found = np.argwhere(np.triu(table.allowed))
    return {tuple(sorted((called[a], called[b]))) for a, b in found.tolist()}  # type: ignore[misc]


def ground() -> Any:
    """The ground of a run, as `--ground` has it."""
    from artsim.sim.runs.configuration import RunConfig
    from artsim.sim.runs.contact_model import ground_plane

    return ground_plane(RunConfig(ground=True))


def depths(robot: Robot, qpos: Real, names: Mapping[int, str], among: set[Pair]) -> dict[tuple[int, Pair], list[float]]:
    """The distances of contacts [m], below 0 for depths, by state and pair."""
    from artsim.sim.articulation.poses import body_poses
    from artsim.sim.runs.configuration import RunConfig
    from artsim.sim.runs.contact_model import touching_shapes
    from artsim.sim.runs.overlap_probe import Probe

    config = RunConfig(ground=True, keep_overlaps=True)
    touching = touching_shapes(robot.articulation, robot, config, [])
    if touching is None:
        return {}
    table = collision_pairs(robot.articulation, robot.compiled, world=[ground()])
    called = [names.get(id(geom), geom.name or "?") for _, geom in table.geoms]
    probe = Probe(touching, np.array(touching.contacts.allowed))
    found: dict[tuple[int, Pair], list[float]] = {}
    for state, (rotation, origin) in enumerate(zip(*body_poses(robot.model, qpos), strict=True)):
        shapes, distance = probe.distances(rotation, origin)
        for (a, b), gap in zip(touching.contacts.geom[shapes].tolist(), distance.tolist(), strict=True):
            first, second = sorted((called[a], called[b]))
            if (first, second) in among:
                found.setdefault((state, (first, second)), []).append(gap)
    return found
