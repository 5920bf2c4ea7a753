"""Any attribute on any element of a model, classes included: each of what MuJoCo knows has the same chance.

What MuJoCo refuses there is taken back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, tostring

import mujoco

from artsim.loaders.mjcf.mjcf_schema import Kind
from tests.random_models.share import OURS, elements, group_of, kinds, paths
from tests.random_models.values import PAIRS, drawn

if TYPE_CHECKING:
    from tests.random_models.random_mjcf import Maker

NEEDED = {"dcmotor": {"motorconst": "0.3", "resistance": "1"}}  # by a class, too
FIXED = {"name", "class", "file", "model"}  # of what is there: others refer to it
KEPT = {
    ("option", "integrator"),
    ("mujoco", "model"),
    ("edge", "equality"),
    ("flexcomp", "quat"),  # MuJoCo bends points by quaternions that are not of unit length
    ("flexcomp", "point"),  # MuJoCo ties others of a grid's points then
    ("size", "nkey"),  # which makes keyframes of nothing
    *(("mesh", name) for name in "file vertex face builtin params".split()),
    *(("inertial", name) for name in "diaginertia fullinertia quat euler axisangle zaxis xyaxes".split()),
    *(("hfield", name) for name in "file nrow ncol elevation".split()),
}
TARGETS = set("joint jointinparent tendon site refsite cranksite slidersite body".split())  # of an actuator: one
Spot = tuple[Element, Kind]


def sprinkle(maker: Maker, count: int) -> None:
    """So many attributes that the model does not have yet."""
    for _ in range(count):
        spots: dict[tuple[str, ...], list[Spot]] = {}
        for element, kind in elements(maker.root):
            spots.setdefault(paths()[id(kind)], []).append((element, kind))
        if maker.chance(0.4):
            open_class(maker)
            continue
        path = list(spots)[int(maker.rng.integers(len(spots)))]
        element, kind = spots[path][int(maker.rng.integers(len(spots[path])))]
        put(maker, element, kind, path)


def open_class(maker: Maker) -> None:
    """An element in one of the classes, with one attribute more."""
    classes = list(maker.root.iter("default"))
    parent = classes[int(maker.rng.integers(len(classes)))]
    named = [path[1] for path in kinds() if len(path) == 2 and path[0] == "default" and readable(path)]
    name = maker.pick(named)
    if name == "muscle" and maker.root.find("actuator/general") is not None:
        return  # a muscle then, whose lengths MuJoCo looks for, of some models without end
    found = parent.find(name)
    element = maker.add(parent, name, **NEEDED.get(name, {})) if found is None else found
    put(maker, element, kinds()["default", name], ("default", name))
    if found is None and (len(element.attrib) == len(NEEDED.get(name, {})) or not taken(maker)):
        parent.remove(element)


def readable(path: tuple[str, ...]) -> bool:
    """Whether an element is not refused as a whole."""
    return group_of(path, "") != "refused"


def put(maker: Maker, element: Element, kind: Kind, path: tuple[str, ...]) -> None:
    """One attribute more, where MuJoCo takes it."""
    free = [
        name
        for name in sorted(kind.attributes - OURS - element.attrib.keys())
        if group_of(path, name) != "refused"
        and (element.tag, name) not in KEPT
        and not (path[0] == "actuator" and name in TARGETS)
    ]
    if not free:
        return
    name = maker.pick(free)
    before = dict(element.attrib)
    for value in drawn(maker, element.tag, name):
        element.set(name, value)
        for other, needed in PAIRS.get(name, {}).items():
            if other in kind.attributes:
                element.attrib.setdefault(other, needed)
        if taken(maker):
            return
        element.attrib.clear()
        element.attrib.update(before)


def taken(maker: Maker) -> bool:
    """Whether MuJoCo compiles the model as it is, and it still falls apart into the same trees."""
    try:
        model = mujoco.MjModel.from_xml_string(tostring(maker.root, encoding="unicode"), maker.files)
    except (ValueError, RuntimeError):  # it has a few messages for what it should refuse
        return False
    return bool(model.nv)
