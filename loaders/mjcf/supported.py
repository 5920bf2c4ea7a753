"""Parts of MJCF that are refused or have no effect here, and the reasons; all else in mjcf_schema.py is read.

docs/mjcf.md is made from these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

LOOKS = "looks"
MEMORY = "MuJoCo's own memory, statistics and speed"
OTHERS = "data for other programs"
OF_CUSTOM = "data for other programs; of it artsim reads the velocity limits that `artsim convert` writes"
SOLVER = "tuning of MuJoCo's solver; artsim has its own"
FILES = "how MuJoCo writes and finds files"
UNNAMED = "nothing refers to it"
UNTOUCHED = "points and elements of flexcomps touch nothing yet, which a warning says"

ELEMENTS = {
    **dict.fromkeys(("visual", "texture", "light", "camera", "skin", "layer"), LOOKS),
    **dict.fromkeys(("size", "statistic"), MEMORY),
    "custom": OF_CUSTOM,
}
"""Elements that change nothing, with all that is in them."""

ATTRIBUTES: dict[str, dict[str, str]] = {
    "compiler": {
        "usethread": MEMORY,
        "texturedir": LOOKS,
        **dict.fromkeys(("passthrough", "savecanonical", "savecompiled", "saveinertial"), FILES),
    },
    "option": dict.fromkeys(
        "tolerance ls_tolerance noslip_tolerance ccd_tolerance sleep_tolerance iterations ls_iterations "
        "noslip_iterations ccd_iterations sdf_iterations sdf_initpoints jacobian solver".split(),
        SOLVER,
    ),
    "flag": {
        "diagexact": "soft constraints are weighed by the inertias in the file's pose",
        **dict.fromkeys(
            "autoreset energy fwdinv invdiscrete ipc island midphase multiccd nativeccd refsafe sensor "
            "sleep speculative warmstart".split(),
            SOLVER,
        ),
    },
    "body": dict.fromkeys(("fuse", "simple", "sleep"), MEMORY),
    "geom": {"castshadow": LOOKS},
    "material": dict.fromkeys(
        "emission metallic reflectance roughness shininess specular texrepeat texuniform".split(), LOOKS
    ),
    "mesh": {"content_type": FILES, **dict.fromkeys(("material", "normal", "smoothnormal", "texcoord"), LOOKS)},
    "hfield": {"content_type": FILES},
    "model": {"content_type": FILES},
    "replicate": {"prefix": "it has none in MuJoCo either: sep does what it would"},
    "joint": {
        "group": LOOKS,
    },
    "freejoint": {"group": LOOKS},
    "site": dict.fromkeys(("group", "material", "mesh", "rgba"), LOOKS),
    "flexcomp": {
        **dict.fromkeys(("flatskin", "texcoord", "rgba", "material", "group"), LOOKS),
        "radius": UNTOUCHED,
        "cellcount": "of interpolation, which is refused",
    },
    "flexcomp/contact": dict.fromkeys(
        "activelayers condim friction gap margin passive priority selfcollide solimp solmix solref".split(), UNTOUCHED
    ),
    "tendon": {
        **dict.fromkeys(("group", "material", "rgba", "width"), LOOKS),
    },
    **{
        name: {"lengthrange": "only of muscles"}
        for name in "motor position velocity intvelocity pid damper cylinder dcmotor".split()
    },
    "contact/exclude": {"name": UNNAMED},
    "equality/joint": {"name": UNNAMED},
    "sensor/contact": {"cutoff": "none in MuJoCo either", "noise": "MuJoCo adds none either"},
    "key": dict.fromkeys(("mpos", "mquat", "plastic", "time"), "mocap bodies stand still, and runs start at 0 s"),
    "*": {"user": OTHERS},
}
"""Attributes that change nothing, by element, by `section/element`, or by section."""

REFUSED = {
    "composite": "MuJoCo's macros of 2.x; MuJoCo 4 reads only cables, by a plugin",
    "flex": "elements that bend or stretch",
    "flexstrain": "elements that bend or stretch",
    "elasticity": "elements that bend or stretch",
    "plugin": "code; mujoco.pid is read as <pid>",
}
"""Elements that are refused, with all that is in them. --ignore-unsupported leaves them out, with a warning."""

REFUSED_ATTRIBUTES: dict[str, dict[str, str]] = {
    "joint": {"springyield": "springs are elastic"},
    "tendon": {"springyield": "springs are elastic"},
    "flexcomp": {"mesh": "points come from a file, not from a mesh of <asset>"},
    "pin": dict.fromkeys(("grid", "gridrange"), "points are pinned by number"),
}
"""Attributes that are refused, by section, and the reasons."""

SENSORS = {
    "tactile": "contact is at points, not over surfaces",
    **dict.fromkeys(("distance", "normal", "fromto", "insidesite"), "distances are not measured"),
    "camprojection": "cameras are not kept",
    "user": "its values come from a program",
    "plugin": "plugins are not run",
    **dict.fromkeys(("e_potential", "e_kinetic"), "--record energy has it"),
}
"""Kinds of sensors that are left out, with a warning, since a run lacks the data for them."""

VALUES = (
    ("general", "dyntype, gaintype, biastype", "user", "code"),
    ("general", "dyntype, gaintype, biastype", "so3, pid, dcmotor", "they have elements of their own"),
    ("general", "class", "with an <orientation>", "it would be one; <orientation> has an element of its own"),
    ("equality", "(element)", "flex, flexvert, flexstrain", "elements that bend or stretch"),
    ("flexcomp", "dof", "trilinear, quadratic", "interpolation"),
    ("edge", "equality", "vert, strain", "elements that bend or stretch"),
    ("actuator, sensor", "nsample", "beyond 1000000", "every checkpoint of a run holds a copy of the samples"),
    ("actuator", "delay", "below 0, with nsample below 0", "MuJoCo reads samples that do not exist"),
    (
        "geom, pair, option, joint, tendon, equality",
        "solref, solreflimit, o_solref",
        "0 and a number below 0",
        "damping alone holds nothing in place; solreffriction has it",
    ),
    ("compiler", "coordinate", "global", "taken out of MJCF; MuJoCo 2.3.3 converts such files"),
)
"""Values that are refused: element, attribute, values, reason."""


class Support(NamedTuple):
    """The use of an attribute: read, without effect or refused; and the reason."""

    kind: Literal["read", "without effect", "refused"]
    why: str = ""


def support(path: Sequence[str], attribute: str) -> Support:
    """The use of an attribute of the element at the end of a path of tags."""
    if any(tag in REFUSED for tag in path):
        return Support("refused", next(REFUSED[tag] for tag in path if tag in REFUSED))
    if path[:1] == ("sensor",) and path[-1] in SENSORS:
        return Support("refused", SENSORS[path[-1]])
    for section in path:
        if attribute in REFUSED_ATTRIBUTES.get(section, {}):
            return Support("refused", REFUSED_ATTRIBUTES[section][attribute])
    hidden = next((tag for tag in path if tag in ELEMENTS), None)
    if hidden is not None:
        return Support("without effect", ELEMENTS[hidden])
    why = without_effect(path, attribute)
    return Support("without effect", why) if why else Support("read")


def without_effect(path: Sequence[str], attribute: str) -> str:
    """The reason why an attribute changes nothing; "" if it may. Of the path the element and its parent are enough."""
    known = (*path[-1:], "/".join(path[-2:]), *path[:-1], "*")
    return next((ATTRIBUTES[name][attribute] for name in known if attribute in ATTRIBUTES.get(name, {})), "")
