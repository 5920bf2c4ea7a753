"""Random URDF models: trees of links with joints of every type, inertias, damping, mimics."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
SHARES = (0.3, 0.2, 0.2, 0.15, 0.05, 0.1)


def random_urdf(seed: int, number: int) -> str:
    """A model's text, the same for the same seed and number."""
    rng = np.random.default_rng([seed, number, 1])
    robot = Element("robot", name="random")
    scalars: list[str] = []
    links = int(rng.integers(2, 9))
    _link(rng, robot, 0)
    for count in range(1, links):
        _link(rng, robot, count)
        kind = str(rng.choice(KINDS, p=SHARES))
        joint = SubElement(robot, "joint", name=f"j{count}", type=kind)
        above, place, turn = int(rng.integers(0, count)), _text(rng, 3, 0.5), _text(rng, 3, 3)
        axis = _text(rng, 3, 1)
        if kind == "floating":  # its coordinates are then the same for both readers
            above, place, turn = 0, "0 0 0", "0 0 0"
        SubElement(joint, "parent", link=f"l{above}")
        SubElement(joint, "child", link=f"l{count}")
        SubElement(joint, "origin", xyz=place, rpy=turn)
        if kind not in ("fixed", "floating"):
            SubElement(joint, "axis", xyz="0 0 1" if kind == "planar" else axis)
        if kind in ("revolute", "continuous", "prismatic"):
            SubElement(joint, "limit", lower="-9", upper="9", effort="100", velocity="100")
            SubElement(joint, "dynamics", damping=f"{rng.uniform(0, 1):.6g}")
            if scalars and rng.random() < 0.2:
                multiplier, offset = rng.uniform(-2, 2, 2)
                leader = scalars[int(rng.integers(len(scalars)))]
                SubElement(joint, "mimic", joint=leader, multiplier=f"{multiplier:.6g}", offset=f"{offset:.6g}")
            scalars.append(f"j{count}")
    return tostring(robot, encoding="unicode")


def _link(rng: np.random.Generator, robot: Element, count: int) -> None:
    link = SubElement(robot, "link", name=f"l{count}")
    inertial = SubElement(link, "inertial")
    SubElement(inertial, "origin", xyz=_text(rng, 3, 0.2), rpy=_text(rng, 3, 3))
    SubElement(inertial, "mass", value=f"{rng.uniform(0.2, 3):.6g}")
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    values = (*rng.uniform(0.02, 0.03, 3), *rng.uniform(-0.004, 0.004, 3))
    SubElement(inertial, "inertia", {name: f"{value:.6g}" for name, value in zip(names, values, strict=True)})


def _text(rng: np.random.Generator, count: int, size: float) -> str:
    return " ".join(f"{x:.6g}" for x in rng.uniform(-size, size, count))
