"""<tendon>: fixed tendons, sums of joint coordinates; spatial tendons, paths through sites and around geoms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.joint import LIMITED, MOVING, SCALAR, written_range
from artsim.loaders.mjcf.reading import Item, dict_of
from artsim.loaders.mjcf.softness import read_softness
from artsim.sim.articulation.description import Tendon, TendonPoint, WrapGeom
from artsim.sim.foundation.errors import nearest


def read_tendons(bodies: Bodies, root: Element) -> list[Tendon]:
    """The tendons of every <tendon>, before flags switch anything off."""
    tendons: list[Tendon] = []
    for section in children(root, "tendon"):
        for element in section:
            tendons.append(read_tendon(bodies, bodies.defaults.item(element), len(tendons)))
    return tendons


def read_tendon(bodies: Bodies, item: Item, count: int) -> Tendon:
    """The tendon of a <fixed> or <spatial>."""
    if item.has("springyield"):
        item.reading.later(item.element, "springyield")
    stiffness = item.filled("stiffness", (0.0, 0.0, 0.0))
    damping = item.filled("damping", (0.0, 0.0, 0.0))
    limits = read_limits(bodies, item, "range", "limited")
    tendon = Tendon(
        name=item.text("name") or bodies.free_name("tendon", f"tendon_{count}"),
        kind="fixed" if tag(item.element) == "fixed" else "spatial",
        path=tuple(read_point(bodies, point) for point in item.element),
        lower=limits[0] if limits else None,
        upper=limits[1] if limits else None,
        stiffness=stiffness[0],
        stiffness_polynomial=stiffness[1:],  # type: ignore[arg-type]
        damping=damping[0],
        damping_polynomial=damping[1:],  # type: ignore[arg-type]
        spring_length=read_spring_length(item),
        friction=item.number("frictionloss", least=0.0),
        armature=item.number("armature", least=0.0),
        actuator_range=read_limits(bodies, item, "actuatorfrcrange", "actuatorfrclimited"),
        softness=read_softness(item, "solreflimit", "solimplimit"),
        limit_margin=item.number("margin"),
        friction_softness=read_softness(item, "solreffriction", "solimpfriction"),
        source=item.reading.at(item.element),
    )
    if tendon.actuator_range and not tendon.actuator_range[0] <= 0 <= tendon.actuator_range[1]:
        item.refuse("actuatorfrcrange does not hold 0")
    check_path(item, tendon)
    written = written_range(item)
    if written is not None:
        bodies.ranges["tendon", tendon.name] = written
    return tendon


def read_limits(bodies: Bodies, item: Item, name: str, switch: str) -> tuple[float, float] | None:
    """A range, or None if it does not limit; with `auto` every range but 0 0 limits."""
    low, high = item.numbers(name, 2, 2, (0.0, 0.0))
    limited = item.word(switch, LIMITED, "auto")
    given = (low, high) != (0.0, 0.0)
    if limited == "auto" and given and not bodies.compiler_at(item.element).autolimits:
        item.refuse(f"has a {name}, but {switch} is not set and the compiler's autolimits is false")
    if limited == "false" or (limited == "auto" and not given):
        return None
    if low >= high:
        item.refuse(f"{name} is {low:g} to {high:g}: the first must be smaller")
    return low, high


def read_spring_length(item: Item) -> tuple[float, float] | None:
    """springlength, one number or two; -1 stands for the length in the joints' spring pose."""
    given = item.numbers("springlength", 1, 2, (-1.0,))
    low, high = given[0], given[-1]
    if low > high:
        item.refuse(f"springlength is {low:g} to {high:g}: the first must not be larger")
    return None if low == high == -1.0 else (low, high)


def read_point(bodies: Bodies, element: Element) -> TendonPoint:
    """The point of a path from <joint coef>, <site>, <geom sidesite> or <pulley divisor>."""
    kind = tag(element)
    item = Item(bodies.reading, element, dict_of(element))
    if kind == "pulley":
        divisor = item.numbers("divisor", 1, 1)[0]
        if divisor <= 0:
            item.refuse(f"divisor is {divisor:g}, want more than 0")
        return TendonPoint("pulley", "", divisor)
    name = item.text(kind)
    known = {"joint": bodies.names(*MOVING).keys(), "site": bodies.sites.keys(), "geom": bodies.shapes.keys()}[kind]
    if name not in known:
        item.refuse(f"{kind} {name[:80]!r} does not exist{nearest(name[:80], sorted(known))}")
    if kind == "joint" and name not in bodies.names(*SCALAR):
        item.refuse(f"joint {name!r} is neither a hinge nor a slide")
    if kind == "geom" and bodies.shapes[name].kind not in ("sphere", "cylinder"):
        item.refuse(f"geom {name!r} is a {bodies.shapes[name].kind}, want a sphere or a cylinder")
    side = item.text("sidesite")
    if side and side not in bodies.sites:
        item.refuse(f"sidesite {side[:80]!r} does not exist{nearest(side[:80], sorted(bodies.sites))}")
    return TendonPoint(kind, name, item.numbers("coef", 1, 1)[0] if kind == "joint" else 0.0, side)  # type: ignore[arg-type]


def check_path(item: Item, tendon: Tendon) -> None:
    """Refuse an invalid path: a branch consists of sites, with geoms between two of them; pulleys start branches."""
    kinds = [point.kind for point in tendon.path]
    if not kinds:
        item.refuse("is empty")
    if tendon.kind == "fixed":
        return
    if kinds[-1] == "pulley":
        item.refuse("ends with a pulley")
    branches: list[list[TendonPoint]] = [[]]
    for point in tendon.path:
        if point.kind == "pulley":
            branches.append([])
        else:
            branches[-1].append(point)
    for branch in branches[not branches[0] :]:  # a pulley may come first
        check_branch(item, branch, tendon.armature > 0)


def check_branch(item: Item, branch: Sequence[TendonPoint], inert: bool) -> None:
    """Refuse a branch with fewer than two sites, or with a geom that is not between two sites."""
    if len(branch) < 2:
        item.refuse("has a branch of fewer than two sites")
    if branch[0].kind != "site" or branch[-1].kind != "site":
        item.refuse("has a branch that does not start and end with a site")
    for before, after in pairwise(branch):
        if before.kind == after.kind == "geom":
            item.refuse(f"geoms {before.name!r} and {after.name!r} have no site between them")
        if before.kind == after.kind and before.name == after.name:
            item.refuse(f"site {before.name!r} is repeated")
    if inert and any(point.kind == "geom" for point in branch):
        item.refuse("has armature, which does not go with wrapping around geoms")


def read_wrap_geoms(bodies: Bodies, tendons: Sequence[Tendon]) -> tuple[WrapGeom, ...]:
    """The geoms that tendons wrap around, in the order in which they are first named."""
    names = dict.fromkeys(point.name for tendon in tendons for point in tendon.path if point.kind == "geom")
    found: list[WrapGeom] = []
    for name in names:
        shape = bodies.shapes[name]
        if shape.mesh is not None:
            shape.item.refuse("is fitted to a mesh: tendons around it are not supported yet")
        kind, link = shape.kind, bodies.carriers[name]
        found.append(WrapGeom(name, link, kind, shape.size[0], shape.pose))  # type: ignore[arg-type]
    return tuple(found)
