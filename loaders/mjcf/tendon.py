"""<tendon>: fixed ones, sums of joint coordinates, and spatial ones, paths through sites and around geoms."""

from __future__ import annotations

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.joint import LIMITED, SCALAR
from artsim.loaders.mjcf.reading import Item, describe
from artsim.sim.description import Tendon, TendonPoint
from artsim.sim.errors import nearest


def read_tendons(bodies: Bodies, root: Element) -> list[Tendon]:
    """Every <tendon>."""
    tendons: list[Tendon] = []
    for section in children(root, "tendon"):
        for element in section:
            tendons.append(read_tendon(bodies, bodies.defaults.item(element), len(tendons)))
    return tendons


def read_tendon(bodies: Bodies, item: Item, count: int) -> Tendon:
    """<fixed> or <spatial>."""
    refuse_unsupported(item)
    low, high = item.numbers("range", 2, 2, (0.0, 0.0))
    limited = item.word("limited", LIMITED, "auto")
    bounded = limited == "true" or (limited == "auto" and bodies.compiler_at(item.element).autolimits and low < high)
    tendon = Tendon(
        name=item.text("name") or f"tendon_{count}",
        kind="fixed" if tag(item.element) == "fixed" else "spatial",
        path=tuple(read_point(bodies, point) for point in item.element),
        lower=low if bounded else None,
        upper=high if bounded else None,
        stiffness=item.numbers("stiffness", 1, 3, (0.0,))[0],
        damping=item.numbers("damping", 1, 3, (0.0,))[0],
        friction=item.number("frictionloss", least=0.0),
        source=item.reading.at(item.element),
    )
    if not tendon.path:
        item.refuse("is empty")
    if bounded or tendon.stiffness or tendon.damping or tendon.friction:
        item.reading.idle(item.element, "the force of a tendon", "tendon")
    return tendon


def refuse_unsupported(item: Item) -> None:
    """A tendon with inertia changes the mass matrix."""
    if item.number("armature", least=0.0):
        item.reading.later(item.element, "armature of a tendon")
    if item.has("springyield"):
        item.reading.later(item.element, "springyield")
    for name in ("stiffness", "damping"):
        if any(item.numbers(name, 1, 3, (0.0,))[1:]):
            item.reading.later(item.element, f"a {name} that is a polynomial")


def read_point(bodies: Bodies, element: Element) -> TendonPoint:
    """<joint coef>, <site>, <geom sidesite> or <pulley divisor>."""
    kind = tag(element)
    item = Item(bodies.reading, element, {str(key): str(value) for key, value in element.attrib.items()})
    if kind == "pulley":
        return TendonPoint("pulley", "", item.number("divisor", 1.0))
    name = item.text(kind)
    known = {
        "joint": bodies.names(*SCALAR).keys(),
        "site": bodies.sites.keys(),
        "geom": bodies.shapes.keys(),
    }[kind]
    if name not in known:
        where = f"{describe(element)}: {kind} {name[:80]!r}"
        bodies.reading.refuse(element, f"{where} does not exist{nearest(name, sorted(known))}")
    side = item.text("sidesite")
    if side and side not in bodies.sites:
        bodies.reading.refuse(element, f"sidesite {side[:80]!r} does not exist{nearest(side, sorted(bodies.sites))}")
    return TendonPoint(kind, name, item.number("coef"), side)  # type: ignore[arg-type]
