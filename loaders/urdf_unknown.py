"""Elements and attributes of a URDF that are not read: one warning for each kind, with its first line and the count.

Content of other programs (<gazebo>, <transmission>, <ros2_control>, <sensor>, <mujoco>) and looks are not searched:
they have readers of their own, or none.
"""

from __future__ import annotations

from artsim.loaders.elements import Element, Reading, convert, describe, tag

SHAPES = ("box", "sphere", "cylinder", "capsule", "drake:capsule", "ellipsoid", "drake:ellipsoid", "plane", "mesh")
# Drake's constraints between bodies, beside joints: refused, or left out with a warning of their own
DRAKE_TIES = frozenset(
    f"drake:{name}"
    for name in (
        "ball_constraint",
        "distance_constraint",
        "linear_bushing_rpy",
        "linear_spring_damper",
        "tendon_constraint",
    )
)
# by tag, the tags of an element's children; elements without a line here have no children, or are not searched
CHILDREN: dict[str, tuple[str, ...]] = {
    "robot": (
        *("link", "joint", "loop_joint", "material", "transmission", "gazebo", "mujoco", "ros2_control", "sensor"),
        *DRAKE_TIES,
    ),
    "link": ("inertial", "visual", "collision", "contact", "sensor"),
    "inertial": ("origin", "mass", "inertia"),
    "visual": ("origin", "geometry", "material"),
    "collision": ("origin", "geometry", "material"),
    "geometry": SHAPES,
    "joint": (
        *("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "safety_controller", "calibration"),
    ),
    **dict.fromkeys(
        ("origin", "mass", "inertia", *SHAPES, "parent", "child", "axis", "limit", "dynamics", "mimic"), ()
    ),
}
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "robot": ("name", "version"),
    "link": ("name",),
    "joint": ("name", "type"),
    "visual": ("name",),
    "collision": ("name",),
    "inertial": (),
    "geometry": ("name",),
    "origin": ("xyz", "rpy", "quat_xyzw"),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "box": ("size",),
    "sphere": ("radius",),
    **dict.fromkeys(("cylinder", "capsule", "drake:capsule"), ("radius", "length")),
    **dict.fromkeys(("ellipsoid", "drake:ellipsoid"), ("a", "b", "c")),
    "plane": ("normal",),
    "mesh": ("filename", "scale", "name"),
    "parent": ("link",),
    "child": ("link",),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity"),
    "dynamics": ("damping", "friction"),
    "mimic": ("joint", "multiplier", "offset", "axis"),
}
BALL_LIMITS = ("swing1", "swing2", "twist_lower", "twist_upper", "effort", "velocity")
TRANSPOSED = {"iyx": "ixy", "izx": "ixz", "izy": "iyz"}
MOST_KINDS = 50
Kind = tuple[str, str, bool]  # the tag of the element, the name in it, True for an attribute's name


def note_unknown(reading: Reading, root: Element) -> None:
    """Warn of every kind of element and attribute that is not read. An unknown name that resembles a known one, which
    is missing beside it, may be a misspelling: the warning is then a guess.
    """
    found: dict[Kind, list[Element]] = {}
    search(reading, root, found)
    if len(found) > MOST_KINDS:
        reading.note(root, f"{len(found)} kinds of elements and attributes are not part of URDF; the first of them:")
    for (where, name, is_attribute), elements in list(found.items())[:MOST_KINDS]:
        first, others = elements[0], len(elements) - 1
        near = misspelt(first, name, is_attribute)
        of_ball = is_attribute and known_attributes(first) is BALL_LIMITS  # the attribute would bound the cone
        what = f"{describe(first)}: attribute {name!r}" if is_attribute else describe(first)
        more = f" (and {others} more in <{where}>)" if others else ""
        hint = f"; did you mean {near!r}?" if near else ""
        reading.note(first, f"{what} is not part of URDF and is ignored{more}{hint}", guess=bool(near) or of_ball)


def search(reading: Reading, element: Element, found: dict[Kind, list[Element]]) -> None:
    """Collect the unknown attributes and elements in the element, by kind."""
    name = tag(element)
    known, read = known_attributes(element), CHILDREN[name]
    for attribute in element.attrib:
        if attribute not in known and not repeats(reading, element, str(attribute)):
            found.setdefault((name, plain(element, str(attribute)), True), []).append(element)
    for item in element:
        inner = str(item.tag)
        inner = tag(item) if inner[0] == "{" else inner
        if inner not in read:
            if not is_macro(item):  # macros are refused, or warned of, as macros
                found.setdefault((name, inner, False), []).append(item)
        elif inner in CHILDREN:
            search(reading, item, found)


def known_attributes(element: Element) -> tuple[str, ...]:
    """The attributes of the element that are read."""
    name, above = tag(element), element.getparent()
    if name == "limit" and above is not None and above.get("type") == "spherical":
        return BALL_LIMITS
    return ATTRIBUTES[name]


def repeats(reading: Reading, element: Element, attribute: str) -> bool:
    """True if an inertia repeats one of its products with the axes in the other order."""
    twin = TRANSPOSED.get(attribute) if tag(element) == "inertia" else None
    if twin is None or element.get(twin) is None:
        return False
    values = [convert(reading, element, name, element.get(name, ""), 1) for name in (attribute, twin)]
    return values[0] == values[1]


def misspelt(element: Element, name: str, is_attribute: bool) -> str:
    """The known name that resembles `name` and is missing beside it; '' if there is none."""
    if is_attribute:
        known, present = known_attributes(element), set(map(str, element.attrib))
    else:
        above = element.getparent()
        assert above is not None
        known, present = CHILDREN[tag(above)], {tag(item) for item in above}
        if tag(above) in ("robot", "link"):  # these may hold several elements of a kind
            present = set()
    from difflib import get_close_matches  # costs 5 ms

    close = get_close_matches(name, [one for one in known if one not in present], n=1, cutoff=0.6)
    return close[0] if close else ""


def plain(element: Element, attribute: str) -> str:
    """The name of an attribute, with the prefix in the file."""
    if not attribute.startswith("{"):
        return attribute
    space, _, local = attribute[1:].rpartition("}")
    prefix = next((key for key, value in element.nsmap.items() if value == space and key), "")
    return f"{prefix}:{local}" if prefix else local


def is_macro(element: Element) -> bool:
    """True if the element is one of xacro's, with or without its namespace."""
    name = str(element.tag)
    return name.startswith("xacro:") or (name.startswith("{") and "xacro" in name.partition("}")[0])
