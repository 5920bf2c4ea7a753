"""Contact parameters of geoms, <pair> and <exclude>, kept for the collision engine, which combines and uses them."""

from __future__ import annotations

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.defaults import Defaults
from artsim.loaders.mjcf.reading import Item
from artsim.loaders.mjcf.softness import read_softness
from artsim.sim.articulation.description import ContactPair, Surface

DIMENSIONS = (1, 3, 4, 6)
SPEED = (0.0,) * 6
ATTRIBUTES = frozenset(
    "contype conaffinity condim priority solmix solref solimp margin gap adhesion surfacevel".split()
)
PLAIN = Surface()


def read_surface(item: Item) -> Surface:
    """The contact attributes of a geom. Most geoms have none."""
    if item.attributes.keys().isdisjoint(ATTRIBUTES):
        return PLAIN
    return Surface(
        type_bits=item.whole("contype", 1),
        affinity_bits=item.whole("conaffinity", 1),
        dimension=read_dimension(item, 3),
        priority=item.whole("priority"),
        mix=item.number("solmix", 1.0),
        softness=read_softness(item, "solref", "solimp"),
        margin=item.number("margin"),
        gap=item.number("gap"),
        adhesion=item.number("adhesion"),
        velocity=item.filled("surfacevel", SPEED),
    )


def read_dimension(item: Item, default: int) -> int:
    """condim: 1 without friction, 3 sliding, 4 torsional too, 6 rolling too."""
    value = item.whole("condim", default)
    if value not in DIMENSIONS:
        item.refuse(f"condim is {value}, want 1, 3, 4 or 6")
    return value


def read_contacts(defaults: Defaults, root: Element) -> tuple[list[ContactPair], list[tuple[str, str]]]:
    """Every <contact>: pairs of geoms, and pairs of bodies that do not touch."""
    pairs: list[ContactPair] = []
    excluded: list[tuple[str, str]] = []
    for section in children(root, "contact"):
        for element in section:
            item = defaults.item(element)
            if tag(element) == "exclude":
                excluded.append((named(item, "body1"), named(item, "body2")))
            else:
                pairs.append(read_pair(item))
    return pairs, excluded


def read_pair(item: Item) -> ContactPair:
    """<pair>: attributes that it leaves out follow from its geoms."""
    friction = None
    if item.has("friction"):
        first, second, torsion, roll, other_roll = item.filled("friction", (1.0, 1.0, 0.005, 0.0001, 0.0001))
        friction = (first, second, torsion, roll, other_roll)
    along = None  # 0 0: the same softness as along the normal
    if any(item.numbers("solreffriction", 1, 2, (0.0, 0.0))):
        along = read_softness(item, "solreffriction", "").reference
    return ContactPair(
        name=item.text("name"),
        geom_a=named(item, "geom1"),
        geom_b=named(item, "geom2"),
        dimension=read_dimension(item, 3) if item.has("condim") else None,
        friction=friction,
        softness=read_softness(item, "solref", "solimp"),
        friction_reference=along,
        margin=item.number("margin") if item.has("margin") else None,
        gap=item.number("gap") if item.has("gap") else None,
        adhesion=item.number("adhesion") if item.has("adhesion") else None,
        source=item.reading.at(item.element),
    )


def named(item: Item, attribute: str) -> str:
    """The name in a required attribute; its existence is checked with all other references."""
    if not item.text(attribute):
        item.refuse(f"has no {attribute!r} attribute")
    return item.text(attribute)
