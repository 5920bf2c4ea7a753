"""Decides which geoms may touch, and with which contact parameters. Plain numpy, at compile time.

The rules are MuJoCo's (Computation chapter, "Collision detection", "Contact"), and for a URDF those that its users
expect: links connected by a joint do not touch, and a robot touches itself only on request. SDFormat's rules are those
for a URDF, except that links held together by a fixed joint do not count as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.description import (
    IMPEDANCE,
    REFERENCE,
    Articulation,
    ContactOverride,
    ContactPair,
    Conventions,
    Geom,
    Part,
    Softness,
)
from artsim.sim.articulation.model import FREE, Compiled, Model
from artsim.sim.foundation.budget import refuse_beyond_memory
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.records import Array, ConstInts1, ConstInts2, ConstReals1, ConstReals2
from artsim.sim.foundation.rotations import Real

_OF_WORLD = Conventions(parents="listed", surfaces=False)  # for geoms that belong to no model

FRICTION = (1.0, 0.005, 0.0001)  # sliding, torsional, rolling; the default of a geom
LEAST_FRICTION = 1e-5  # of a contact, as in MuJoCo
_BYTES_PER_PAIR = 18  # of the table while it is built
_MIXED = 1e-15  # a smaller weight counts as none
_OPEN = ("plane", "heightfield")  # never touch each other


class Tangible(NamedTuple):
    """A geom that may touch others, and the number of its link; -1: the world."""

    link: int
    geom: Geom


class Surfaces(NamedTuple):
    """Contact properties of n geoms, with MJCF's defaults filled in (description.Surface)."""

    dimension: ConstInts1  # (n,) 1, 3, 4 or 6
    priority: ConstInts1  # (n,)
    mix: ConstReals1  # (n,)
    soft: ConstInts1  # (n,) 1: the file sets solref or solimp
    reference: ConstReals2  # (n, 2) solref
    impedance: ConstReals2  # (n, 5) solimp
    margin: ConstReals1  # (n,) [m]
    gap: ConstReals1  # (n,) [m]
    friction: ConstReals2  # (n, 5) two sliding, torsional, two rolling
    adhesion: ConstReals1  # (n,) [N]


class ExplicitPairs(NamedTuple):
    """The p pairs of MJCF's <pair>, in order of their geoms, with MuJoCo's defaults."""

    geoms: ConstInts2  # (p, 2) numbers of geoms, the smaller first
    dimension: ConstInts1  # (p,)
    soft: ConstInts1  # (p,)
    reference: ConstReals2  # (p, 2)
    friction_reference: ConstReals2  # (p, 2) solref along the surface; 0 0: `reference`
    impedance: ConstReals2  # (p, 5)
    margin: ConstReals1  # (p,)
    gap: ConstReals1  # (p,)
    friction: ConstReals2  # (p, 5)
    adhesion: ConstReals1  # (p,)


@dataclass(frozen=True)
class CollisionPairs:
    """The table of geoms that may touch: geoms in the order of the links, then those added to the world."""

    geoms: tuple[Tangible, ...]
    allowed: Array  # (n, n) symmetric, True where two may touch
    surfaces: Surfaces
    explicit: ExplicitPairs


class ContactParameters(NamedTuple):
    """Parameters of a contact of two geoms, which begins to act at a distance of `margin` and is detected `gap`
    earlier."""

    dimension: int
    soft: bool
    reference: tuple[float, ...]
    friction_reference: tuple[float, ...]
    impedance: tuple[float, ...]
    friction: tuple[float, ...]
    margin: float
    gap: float
    adhesion: float


def collision_pairs(
    articulation: Articulation, compiled: Compiled, *, world: Sequence[Geom] = (), self_collide: bool = False
) -> CollisionPairs:
    """Build the table of an articulation.

    Args:
        world: additional static geoms, such as a ground; they come last.
        self_collide: the robots of a URDF and the models of an SDF also touch themselves.

    Raises:
        ModelError: a <pair> names a geom that does not exist.
        MemoryShortageError: the table of pairs exceeds the memory limit.
    """
    geoms = (*tangible_geoms(articulation), *(Tangible(-1, geom) for geom in world))
    override = articulation.options.contact_override
    refuse_beyond_memory(_BYTES_PER_PAIR * len(geoms) ** 2, f"the table of which of {len(geoms)} geoms may touch")
    surfaces = _surfaces([geom for _, geom in geoms], override)
    number = {geom.name: n for n, (_, geom) in enumerate(geoms) if geom.name}
    pairs = _located(articulation.contact_pairs, number)
    allowed = _allowed(articulation, compiled, geoms, self_collide=self_collide)
    for a, b, _ in pairs:
        allowed[a, b] = allowed[b, a] = articulation.options.contact and _can_act(compiled, geoms[a], geoms[b])
    allowed.setflags(write=False)
    pairs = [pair for pair in pairs if allowed[pair[0], pair[1]]]
    return CollisionPairs(geoms, allowed, surfaces, _explicit(pairs, override))


def tangible_geoms(articulation: Articulation) -> Iterator[Tangible]:
    """Collision geoms in the order of the links, and those that a <pair> names."""
    paired = {name for pair in articulation.contact_pairs for name in (pair.geom_a, pair.geom_b)}
    for n, link in enumerate(articulation.links):
        for geom in link.geoms:
            if geom.role == "collision" or (geom.name and geom.name in paired):
                yield Tangible(n, geom)


# ------------------------------------------------------------------ the table


def _allowed(articulation: Articulation, compiled: Compiled, geoms: Sequence[Tangible], *, self_collide: bool) -> Array:
    """(n, n) by all rules except <pair>."""
    n = len(geoms)
    if not articulation.options.contact:
        return np.zeros((n, n), bool)
    kind = np.array([geom.surface.type_bits for _, geom in geoms], np.int64)
    affinity = np.array([geom.surface.affinity_bits for _, geom in geoms], np.int64)
    link = np.array([link for link, _ in geoms], np.int64)
    open_ = np.array([geom.kind in _OPEN for _, geom in geoms], bool)
    body = np.append(compiled.model.link_body, 0)[link]
    allowed = (kind[:, None] & affinity) != 0
    allowed |= allowed.T
    allowed &= body[:, None] != body
    allowed &= ~(open_[:, None] & open_)
    allowed &= ~joined(articulation, compiled, link)
    allowed &= ~_of_one_robot(articulation, link, self_collide=self_collide)
    _exclude(articulation, link, allowed)
    result: Array = allowed
    return result


def joined(articulation: Articulation, compiled: Compiled, link: Array) -> Array:
    """(n, n) True for geoms of links that a joint connects, by the conventions of their model:

    - "apart" (URDF): links that move as one count as one; the world, and a link called so, holds nothing together;
    - "filtered" (MJCF): as "apart" if the option filter_parent is set, but a link that does not move is no parent;
    - "listed" (SDF): no_contact lists the pairs, link by link.
    """
    rules = np.array([conventions.parents for conventions in conventions_of_links(articulation)])[link]
    filtered = (rules == "filtered") & articulation.options.filter_parent
    groups, groups_above = _groups(articulation, compiled)
    group, above = np.append(groups, -1)[link], np.append(groups_above, -2)[link]
    part = _part_of_links(articulation)[link]
    moves = np.append(compiled.model.link_body, 0)[link] != 0
    child = above[:, None] == group
    child &= (part[:, None] == part) & ((rules == "apart") | (filtered & moves))
    result: Array = child | child.T
    return result


def _groups(articulation: Articulation, compiled: Compiled) -> tuple[list[int], list[int]]:
    """For each link, the first link of those that move as one with it, and that of the link above them; -2: the world.

    Massless links between several joints of one link are passed over, since they are no links.
    """
    body, parent = compiled.model.link_body.tolist(), compiled.model.link_parent.tolist()
    group: list[int] = []
    above: list[int] = []
    for n, up in enumerate(parent):
        together = up >= 0 and body[n] == body[up] and not _is_world(articulation, compiled, up)
        group.append(group[up] if together else n)
        above.append(above[up] if together else (group[up] if up >= 0 else -2))
    return group, above


def _is_world(articulation: Articulation, compiled: Compiled, n: int) -> bool:
    """True for a root that does not move and is called world: things fixed to it do not belong together."""
    still = compiled.model.link_parent[n] < 0 and compiled.model.link_body[n] == 0
    return bool(still and articulation.links[n].name.rpartition("/")[2] == "world")


def robots_of_links(articulation: Articulation, compiled: Compiled) -> list[int]:
    """For each link, the first link of its robot: the links below the world that joints connect, free joints left out;
    -1 for the world itself."""
    model = compiled.model
    first: list[int] = []
    for n, up in enumerate(model.link_parent.tolist()):
        if _is_world(articulation, compiled, n):
            first.append(-1)
        else:
            alone = up < 0 or first[up] < 0 or _is_freed(model, int(model.link_body[n]), int(model.link_body[up]))
            first.append(n if alone else first[up])
    return first


def _is_freed(model: Model, body: int, above: int) -> bool:
    """True if one of the joints between a body and one above it is free."""
    while body != above:
        if model.joint_type[body] == FREE:
            return True
        body = int(model.body_parent[body])
    return False


def _of_one_robot(articulation: Articulation, link: Array, *, self_collide: bool) -> Array:
    """(n, n) True for two geoms of a robot, or of a model of a world, that does not touch itself."""
    numbs = np.array([not (part.self_collide or self_collide) for part in _parts(articulation)] + [False], bool)
    part = _part_of_links(articulation)[link]
    numbers: dict[str, int] = {}
    models = [numbers.setdefault(link.model, len(numbers)) for link in articulation.links]
    model = np.array([*models, -1])[link]
    touching = np.array([bool(link.self_collide) for link in articulation.links] + [False])[link]
    one = (part[:, None] == part) & (model[:, None] == model)
    result: Array = one & numbs[part] & ~(touching[:, None] | touching)
    return result


def _parts(articulation: Articulation) -> tuple[Part, ...]:
    """The models of a scene; for a single model, itself."""
    if articulation.parts:
        return articulation.parts
    a = articulation
    assert a.format != "scene"
    return (Part(a.name, a.format, len(a.links), a.self_collide, a.conventions),)


def conventions_of_links(articulation: Articulation) -> list[Conventions]:
    """(nlink + 1,) the conventions of each link's model; at the end the world's."""
    of_parts = [part.conventions for part in _parts(articulation)]
    return [*(of_parts[part] for part in _part_of_links(articulation)[:-1]), _OF_WORLD]


def _part_of_links(articulation: Articulation) -> Array:
    """(nlink + 1,) index of each link's model; at the end that of the world, one more."""
    parts = _parts(articulation)
    return np.append(np.repeat(np.arange(len(parts)), [part.links for part in parts]), len(parts))


def _exclude(articulation: Articulation, link: Array, allowed: Array) -> None:
    """Remove the excluded pairs of links."""
    index = {item.name: n for n, item in enumerate(articulation.links)}
    of_link: dict[int, list[int]] = {}
    for n, number in enumerate(link.tolist()):
        of_link.setdefault(number, []).append(n)
    for first, second in articulation.no_contact:
        for a in of_link.get(index.get(first, -2), ()):
            for b in of_link.get(index.get(second, -2), ()):
                allowed[a, b] = allowed[b, a] = False


def _can_act(compiled: Compiled, a: Tangible, b: Tangible) -> bool:
    """True if a force between two geoms could have an effect, and they can meet."""
    first, second = (compiled.model.link_body[link] if link >= 0 else 0 for link in (a.link, b.link))
    return bool(first != second) and not (a.geom.kind in _OPEN and b.geom.kind in _OPEN)


def _located(pairs: Sequence[ContactPair], number: dict[str, int]) -> list[tuple[int, int, ContactPair]]:
    """The <pair>s with their geoms' numbers, in order; of two for the same geoms, the first."""
    located: dict[tuple[int, int], ContactPair] = {}
    for pair in pairs:
        for name in (pair.geom_a, pair.geom_b):
            if name not in number:
                raise ModelError(f"{pair.source}: pair of geom {name!r}, which does not exist")
        a, b = sorted((number[pair.geom_a], number[pair.geom_b]))
        located.setdefault((a, b), pair)
    return [(a, b, pair) for (a, b), pair in sorted(located.items(), key=lambda item: item[0])]


# ------------------------------------------------------------------ parameters


def _surfaces(geoms: Sequence[Geom], override: ContactOverride | None) -> Surfaces:
    """The geoms' own parameters, or the override in their place, so that every combination equals the override."""
    n = len(geoms)
    friction = [geom.friction or FRICTION for geom in geoms]
    columns: dict[str, Sequence[object]] = {
        "dimension": [geom.surface.dimension for geom in geoms],
        "priority": [geom.surface.priority for geom in geoms],
        "mix": [geom.surface.mix for geom in geoms],
        "soft": [_is_soft(geom.surface.softness) for geom in geoms],
        "reference": [geom.surface.softness.reference or REFERENCE for geom in geoms],
        "impedance": [geom.surface.softness.impedance or IMPEDANCE for geom in geoms],
        "margin": [geom.surface.margin for geom in geoms],
        "gap": [geom.surface.gap for geom in geoms],
        "friction": [(slide, slide, torsion, roll, roll) for slide, torsion, roll in friction],
        "adhesion": [geom.surface.adhesion for geom in geoms],
    }
    if override is not None:
        columns |= {"soft": [1] * n, "reference": [override.reference] * n, "impedance": [override.impedance] * n}
        columns |= {"margin": [override.margin / 2] * n, "friction": [override.friction] * n}
    return Surfaces(**{name: _column(name, values, n) for name, values in columns.items()})


def _explicit(pairs: Sequence[tuple[int, int, ContactPair]], override: ContactOverride | None) -> ExplicitPairs:
    """The parameters of <pair>s."""
    rows = [_pair_parameters(pair, override) for _, _, pair in pairs]
    columns: dict[str, list[object]] = {
        name: [getattr(row, name) for row in rows] for name in ContactParameters._fields
    }
    columns["geoms"] = [(a, b) for a, b, _ in pairs]
    return ExplicitPairs(**{name: _column(name, columns[name], len(rows)) for name in ExplicitPairs._fields})


_WIDTHS = {"reference": 2, "friction_reference": 2, "impedance": 5, "friction": 5, "geoms": 2}
_WHOLE = ("dimension", "priority", "soft", "geoms")


def _column(name: str, values: Sequence[object], n: int) -> Array:
    shape = (n, _WIDTHS[name]) if name in _WIDTHS else (n,)
    array = np.array(values, np.int64 if name in _WHOLE else float).reshape(shape)
    array.setflags(write=False)
    return array


def _is_soft(softness: Softness) -> int:
    return int(softness.reference is not None or softness.impedance is not None)


def _pair_parameters(pair: ContactPair, override: ContactOverride | None) -> ContactParameters:
    """The parameters of a <pair>, with MuJoCo's defaults: nothing is inherited from its geoms."""
    slide, torsion, roll = FRICTION
    friction = pair.friction or (slide, slide, torsion, roll, roll)
    made = ContactParameters(
        dimension=pair.dimension or 3,
        soft=bool(_is_soft(pair.softness)),
        reference=pair.softness.reference or REFERENCE,
        friction_reference=pair.friction_reference or (0.0, 0.0),
        impedance=pair.softness.impedance or IMPEDANCE,
        friction=_tuple(np.maximum(friction, LEAST_FRICTION)),
        margin=pair.margin or 0.0,
        gap=pair.gap or 0.0,
        adhesion=pair.adhesion or 0.0,
    )
    if override is None:
        return made
    return made._replace(
        soft=True,
        reference=override.reference,
        friction_reference=(0.0, 0.0),
        impedance=override.impedance,
        friction=_tuple(np.maximum(override.friction, LEAST_FRICTION)),
        margin=override.margin,
    )


def contact_parameters(surfaces: Surfaces, a: int, b: int) -> ContactParameters:
    """Combine the parameters of two geoms without a <pair>.

    The parameters of higher priority apply. At equal priority: the larger dimension and friction; softness weighted by
    `mix`, or the smaller reference if one of them is a stiffness (negative). Margins, gaps and adhesions add up.
    """
    s = surfaces
    weight = _weight(s, a, b)
    if s.priority[a] == s.priority[b]:
        dimension = max(s.dimension[a], s.dimension[b])
        friction = np.maximum(s.friction[a], s.friction[b])
        adhesion = s.adhesion[a] + s.adhesion[b]
    else:
        n = a if s.priority[a] > s.priority[b] else b
        dimension, friction, adhesion = s.dimension[n], s.friction[n], s.adhesion[n]
    soft = (s.soft[a] and weight > 0) or (s.soft[b] and weight < 1)
    reference = weight * s.reference[a] + (1 - weight) * s.reference[b]
    if s.priority[a] == s.priority[b] and min(s.reference[a, 0], s.reference[b, 0]) <= 0:
        reference = np.minimum(s.reference[a], s.reference[b])
        soft = True
    return ContactParameters(
        dimension=int(dimension),
        soft=bool(soft),
        reference=_tuple(reference),
        friction_reference=(0.0, 0.0),
        impedance=_tuple(weight * s.impedance[a] + (1 - weight) * s.impedance[b]),
        friction=_tuple(np.maximum(friction, LEAST_FRICTION)),
        margin=float(s.margin[a] + s.margin[b]),
        gap=float(s.gap[a] + s.gap[b]),
        adhesion=float(adhesion),
    )


def _weight(s: Surfaces, a: int, b: int) -> float:
    """Weight of a's softness in the mix with b's: 0 to 1."""
    if s.priority[a] != s.priority[b]:
        return float(s.priority[a] > s.priority[b])
    first, second = (float(s.mix[n]) if s.mix[n] >= _MIXED else 0.0 for n in (a, b))
    return first / (first + second) if first + second else 0.5


def _tuple(values: Real) -> tuple[float, ...]:
    return tuple(values.tolist())
