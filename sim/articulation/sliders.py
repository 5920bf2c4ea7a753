"""Bodies that only slide, whose soft equalities MuJoCo weights by their mass alone. Does not need kernels."""

from __future__ import annotations

from collections.abc import Sequence, Set

from artsim.sim.articulation.description import Articulation, Joint, Link

_NULL_FRAME = 1e-6  # MuJoCo's kFrameEps
_NULL_AXIS = 1e-14  # MuJoCo's mjEPS


def sliding_masses_of(articulation: Articulation) -> dict[str, float]:
    """The sliding masses [kg] of an articulation by link; links to which tendons with armature attach do not slide."""
    return sliding_masses(articulation.links, articulation.joints, _dragged(articulation))


def sliding_masses(links: Sequence[Link], joints: Sequence[Joint], dragged: Set[str] = frozenset()) -> dict[str, float]:
    """Mass [kg] of each link that MuJoCo counts as simple and without rotation (`body_simple` 2).

    A simple link hangs on the world, has no children, has slides along axes of its frame through its origin, its centre
    of mass there and principal axes along those of the frame, and is none of the `dragged`, whose sites and geoms carry
    tendons with armature.
    """
    above: dict[str, list[Joint]] = {}
    for joint in joints:
        above.setdefault(joint.child, []).append(joint)
    busy = dragged | {joint.parent for joint in joints}
    roots = {"world"} | {name for name, own in above.items() if _stands(own)}
    return {
        link.name: link.inertial.mass
        for link in links
        if link.inertial is not None
        and link.inertial.mass > 0.0
        and link.name not in busy
        and link.name in above
        and above[link.name][0].parent in roots
        and all(_is_plain_slide(joint) for joint in above[link.name])
        and _is_centred(link)
    }


def _stands(joints: list[Joint]) -> bool:
    """True if a link is fixed to the world."""
    return joints[0].kind == "fixed" and joints[0].parent == "world"


def _is_plain_slide(joint: Joint) -> bool:
    along = sum(abs(part) > _NULL_AXIS for part in joint.axis)
    return joint.kind == "prismatic" and along == 1 and max(map(abs, joint.anchor)) < _NULL_FRAME


def _is_centred(link: Link) -> bool:
    assert link.inertial is not None
    pose = link.inertial.pose
    turned = max(map(abs, pose.rotation[1:]))
    return max(map(abs, pose.position)) < _NULL_FRAME and turned < _NULL_FRAME


def _dragged(articulation: Articulation) -> set[str]:
    """Links with a site or geom on the path of a tendon that has armature."""
    at = {site.name: site.link for site in articulation.sites}
    around = {geom.name: geom.link for geom in articulation.wrap_geoms}
    found: set[str] = set()
    for tendon in articulation.tendons:
        for point in tendon.path if tendon.armature > 0 else ():
            carrier = {"site": at, "geom": around}.get(point.kind, {}).get(point.name)
            if carrier is not None:
                found.add(carrier)
    return found
