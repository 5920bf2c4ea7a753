"""Links and joints to an ordered tree; links and joints that do not form a tree are refused.

No function is recursive: a chain of 5000 joints is a legal robot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artsim.sim.articulation.description import Joint, Link
from artsim.sim.foundation.errors import ModelError, nearest


def order_tree(links: Sequence[Link], joints: Sequence[Joint]) -> tuple[tuple[Link, ...], tuple[Joint, ...]]:
    """The links depth first, children in file order, and the joints in the order of their child links.

    Raises ModelError unless the joints make the links one tree.
    """
    by_name = {link.name: link for link in links}
    for joint in joints:
        check_ends(joint, by_name)
    joint_to = parent_joints(joints)
    check_roots(links, joint_to)
    outgoing: dict[str, list[Joint]] = {}
    for joint in joints:
        outgoing.setdefault(joint.parent, []).append(joint)
    root = next(link for link in links if link.name not in joint_to)
    ordered: list[Link] = []
    stack = [root.name]
    while stack:
        name = stack.pop()
        ordered.append(by_name[name])
        stack.extend(joint.child for joint in reversed(outgoing.get(name, ())))
    if len(ordered) < len(links):
        refuse_cycle(links, joint_to, {link.name for link in ordered})
    return tuple(ordered), tuple(joint_to[link.name] for link in ordered[1:])


def check_ends(joint: Joint, links: Mapping[str, Link]) -> None:
    """Refuse a joint whose parent and child do not exist or do not differ."""
    for role, name in (("parent", joint.parent), ("child", joint.child)):
        if name not in links:
            raise ModelError(
                f"{joint.source}: joint {joint.name!r} has {role} link {name!r}, which does not exist"
                f"{nearest(name, links)}"
            )
    if joint.parent == joint.child:
        raise ModelError(f"{joint.source}: joint {joint.name!r} connects link {joint.parent!r} to itself")


def parent_joints(joints: Sequence[Joint]) -> dict[str, Joint]:
    """The joint above each link; a second joint to the same link is refused, since it would close a loop."""
    joint_to: dict[str, Joint] = {}
    for joint in joints:
        first = joint_to.setdefault(joint.child, joint)
        if first is not joint:
            raise ModelError(
                f"{joint.source}: link {joint.child!r} has two parent joints, {first.name!r} (line "
                f"{first.source.line}) and {joint.name!r}: a closed loop; say it as <loop_joint> or in a --loops file"
            )
    return joint_to


def check_roots(links: Sequence[Link], joint_to: Mapping[str, Joint]) -> None:
    """Refuse links unless exactly one of them has no parent."""
    roots = [link for link in links if link.name not in joint_to]
    if not roots:
        refuse_cycle(links, joint_to, set())
    if len(roots) > 1:
        names = ", ".join(repr(link.name) for link in roots[:8]) + (", …" if len(roots) > 8 else "")
        raise ModelError(
            f"{roots[1].source}: {len(roots)} root links ({names}); a robot has one: joints must connect them"
        )


def refuse_cycle(links: Sequence[Link], joint_to: Mapping[str, Joint], reached: set[str]) -> None:
    """Find a cycle among the links that no root reaches, and print it."""
    name = next(link.name for link in links if link.name not in reached)
    seen: dict[str, int] = {}
    path: list[str] = []
    while name not in seen:  # the walk up from an unreached link never ends, so it enters a cycle
        seen[name] = len(path)
        path.append(name)
        name = joint_to[name].parent
    cycle = path[seen[name] :][::-1]
    cycle = [cycle[-1], *cycle]
    names = list(map(repr, cycle))
    shown = " -> ".join(names if len(names) <= 12 else [*names[:6], "…", *names[-5:]])
    raise ModelError(f"{joint_to[cycle[0]].source}: the joints form a cycle: {shown}")
