"""Inertials that MuJoCo refuses: raised to those that it takes, and kept as they are in <custom>, which artsim reads.

`artsim convert` writes <numeric name="inertial:BODY" data="…"> beside an <inertial> that it had to raise: mass [kg],
position [m] and rotation of the centre of mass's frame, and xx, xy, xz, yy, yz, zz [kg m²]; a single 0 for a body
without inertial. It counts while the <inertial> is the one that was made of it, and is told as outdated otherwise.
"""

from __future__ import annotations

from dataclasses import replace

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.impossible import judge_inertias
from artsim.loaders.inertia import breaks_triangle, nearest_possible, principal_moments
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.mass import LEAST, Six
from artsim.loaders.mjcf.reading import Item, dict_of
from artsim.sim.articulation.description import Inertial, Pose

OWN_INERTIAL = "inertial:"  # before the name of a body
SAME = 1e-9  # share by which the numbers of an inertial may differ that is the one written beside it
GHOST = 2 * LEAST  # [kg, kg m²] of a moving body without inertia, which MuJoCo refuses
ROUNDING = 1e-12  # share of the largest moment by which an inertia is inside what bodies can have
NOTICED = 1e-10  # share of the largest moment by which an inertia may be raised without a word
NONE = Inertial(0.0)


def is_own_inertial(element: Element) -> bool:
    """True for numbers that say the inertial of a body."""
    return tag(element) == "numeric" and element.get("name", "").startswith(OWN_INERTIAL)


def numbers_of(inertial: Inertial | None) -> tuple[float, ...]:
    """An inertial as the numbers of <numeric>."""
    if inertial is None:
        return (0.0,)
    return (inertial.mass, *inertial.pose.position, *inertial.pose.rotation, *inertial.inertia)


def read_own_inertials(bodies: Bodies, root: Element) -> None:
    """<numeric name="inertial:BODY">: inertials in place of those raised for MuJoCo. Raises ModelError."""
    reading = bodies.reading
    if reading.balance_inertia:
        return  # the nearest possible ones stand in <inertial>
    place = {link.name: n for n, link in enumerate(bodies.links)}
    elements = dict.fromkeys(place, root)
    for section in children(root, "custom"):
        for element in filter(is_own_inertial, section):
            name = element.get("name", "").removeprefix(OWN_INERTIAL)
            if name not in place:
                continue
            own, link = read_numbers(Item(reading, element, dict_of(element))), bodies.links[place[name]]
            if link.inertial is None or not is_made_of(link.inertial, own):
                told = f"the inertial of body {name!r} in <custom> is not that of its <inertial>, which counts"
                reading.note(element, told)
                continue
            bodies.links[place[name]] = replace(link, inertial=own)
            elements[name] = element
    if any(element is not root for element in elements.values()):
        bodies.links[:] = judge_inertias(reading, elements, tuple(bodies.links), bodies.joints)


def read_numbers(item: Item) -> Inertial | None:
    """The inertial in <numeric data>."""
    values = item.numbers("data", 1, 14)
    if values == (0.0,):
        return None
    if len(values) != 14 or values[0] < 0.0 or abs(sum(x * x for x in values[4:8]) - 1.0) > SAME:
        item.refuse("want mass, position, unit quaternion and six moments as data, or 0")
    (mass, x, y, z), (w, i, j, k), six = values[:4], values[4:8], values[8:]
    return Inertial(mass, Pose((x, y, z), (w, i, j, k)), six, item.reading.at(item.element))  # type: ignore[arg-type]


def is_made_of(written: Inertial, own: Inertial | None) -> bool:
    """True if an <inertial> is the one written for this inertial."""
    ghost = with_ghost(own or NONE)[0]
    return any(is_same(written, possible(made)[0]) for made in (own or NONE, ghost))


def is_same(a: Inertial, b: Inertial) -> bool:
    """True if masses, centres and inertias of two inertials agree but for rounding."""
    from artsim.sim.foundation.rotations import rotation_matrix, symmetric  # numpy

    first, second = (
        rotation_matrix(one.pose.rotation) @ symmetric(one.inertia) @ rotation_matrix(one.pose.rotation).T
        for one in (a, b)
    )
    large = float(abs(second).max())
    near = max((abs(x - y) for x, y in zip(a.pose.position, b.pose.position, strict=True)), default=0.0)
    return abs(a.mass - b.mass) <= SAME * b.mass and near <= SAME and float(abs(first - second).max()) <= SAME * large


# --- inertials that MuJoCo takes -------------------------------------------------------------------------------------


def with_ghost(inertial: Inertial) -> tuple[Inertial, str]:
    """The inertial raised to what MuJoCo asks of a body that moves, and the words that tell so."""
    least = principal_moments(inertial.inertia)[0]
    raised = inertial.inertia if least >= LEAST else raised_by(inertial, GHOST - min(least, 0.0))
    told = f"moves without inertia, which MuJoCo refuses: it has {GHOST:g} kg and kg m²"
    return replace(inertial, mass=max(inertial.mass, GHOST), inertia=raised), told


def raised_by(inertial: Inertial, amount: float) -> Six:
    """The inertia with all three principal moments greater by an amount [kg m²]."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    return (xx + amount, xy, xz, yy + amount, yz, zz + amount)


def possible(inertial: Inertial) -> tuple[Inertial, str]:
    """The inertial that MuJoCo takes, for which A + B >= C without any tolerance, and the words if it differs much."""
    xx, xy, xz, yy, yz, zz = inertial.inertia
    if (xy, xz, yz) == (0.0, 0.0, 0.0) and min(xx, yy, zz) >= 0.0 and xx + yy >= zz and xx + zz >= yy and yy + zz >= xx:
        return inertial, ""
    told = ""
    moments = principal_moments(inertial.inertia)
    if moments[0] < -1e-14 * abs(moments[2]) or breaks_triangle(moments):
        inertia, _ = nearest_possible(inertial.inertia)
        inertial = replace(inertial, inertia=inertia)
        moments = principal_moments(inertia)
        told = "no body can have its inertia, which MuJoCo refuses: the nearest possible one stands in its place"
    missing = moments[2] - moments[0] - moments[1] + ROUNDING * moments[2]
    if missing > 0:
        inertial = replace(inertial, inertia=raised_by(inertial, missing))
        if missing > NOTICED * moments[2] and not told:
            told = (
                f"A + B >= C holds but for rounding, which MuJoCo refuses: its moments are {missing:.2g} kg m² greater"
            )
    return inertial, told
