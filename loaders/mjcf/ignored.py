"""What an MJCF file may hold and artsim does not use, and why: told by `check`, since none of it moves the robot."""

from __future__ import annotations

from artsim.loaders.elements import Element, tag
from artsim.sim.description import Ignored

LOOKS = "looks"
MEMORY = "MuJoCo's own memory and statistics"
OTHERS = "data for other programs"
SOLVER = "tuning of MuJoCo's solver; artsim has its own"
ELEMENTS = {
    **dict.fromkeys(("visual", "texture", "light", "camera", "skin"), LOOKS),
    **dict.fromkeys(("size", "statistic"), MEMORY),
    "custom": OTHERS,
}
OPTIONS = frozenset(
    "tolerance ls_tolerance noslip_tolerance ccd_tolerance sleep_tolerance iterations ls_iterations "
    "noslip_iterations ccd_iterations sdf_iterations sdf_initpoints cone jacobian solver".split()
)


def ignored_parts(root: Element) -> list[Ignored]:
    """Each kind of element and option that is there, once."""
    found: dict[str, str] = {}
    for element in root.iter(*ELEMENTS):
        found.setdefault(f"<{tag(element)}>", ELEMENTS[tag(element)])
    for option in root.iter("option"):
        found.update({f"option {name}": SOLVER for name in map(str, option.attrib) if name in OPTIONS})
    if any("user" in element.attrib for element in root.iter()):
        found["user"] = OTHERS
    return [Ignored(what, why) for what, why in found.items()]
