"""The joints of an SDF model as trees, and the joints that close loops: every joint graph is legal in SDFormat.

No function is recursive: a chain of 5000 joints is a legal robot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from artsim.loaders.sdf.frames import WORLD
from artsim.loaders.sdf.joint import Hinge
from artsim.sim.foundation.dataclass import dataclass


@dataclass(slots=True)
class Trees:
    """Links, parents first, each with the hinge above it (None: a root) and a flag (True: that hinge is reversed); and
    the hinges that are left over.
    """

    order: list[str]
    above: dict[str, tuple[Hinge | None, bool]]
    left: list[Hinge]


def grow(links: Sequence[str], hinges: Sequence[Hinge], held: frozenset[str]) -> Trees:
    """Trees from the world, children in the order of the file; `held` are links that stand still with the world.

    Of several joints that lead to a link, the first in the file holds it if its parent can be reached otherwise. A link
    that no joint leads to is the root of another tree, unless a joint leads from it to a link that is already in a
    tree: then the link is added there, and the joint is reversed. Gearboxes hold no link.
    """
    outgoing: dict[str, list[Hinge]] = {}
    incoming: dict[str, list[Hinge]] = {}
    usable = [hinge for hinge in hinges if hinge.kind != "gearbox"]
    for hinge in sorted(usable, key=lambda hinge: hinge.must_close):  # stable: joints that must close a loop come last
        outgoing.setdefault(hinge.parent, []).append(hinge)
        incoming.setdefault(hinge.child, []).append(hinge)
    trees = Trees([], {}, [])
    used: set[str] = set()
    reached = {WORLD}
    first = {name: leading[0].name for name, leading in incoming.items()}
    second: deque[Hinge] = deque()  # joints from a reached link to one that another joint should hold
    backward: deque[Hinge] = deque()  # joints from a link not yet reached to a reached one

    def visit(starts: Sequence[str]) -> None:
        reached.update(starts)
        stack: list[tuple[str, Hinge | None, bool]] = [(name, None, False) for name in reversed(starts)]
        while stack or second or backward:
            if stack:
                name, hinge, turned = stack.pop()
            else:
                turned = not second
                hinge = (second or backward).popleft()
                name = hinge.parent if turned else hinge.child
            if hinge is not None:
                if name in reached:
                    continue
                used.add(hinge.name)
                reached.add(name)
            if name != WORLD:
                trees.order.append(name)
                trees.above[name] = (hinge, turned)
            backward.extend(incoming.get(name, ()))
            for item in reversed(outgoing.get(name, ())):
                if item.name == first[item.child]:
                    stack.append((item.child, item, False))
                else:
                    second.append(item)

    visit([WORLD, *(name for name in links if name in held)])
    led_to = {hinge.child for hinge in usable if not hinge.must_close}
    for name in (*(name for name in links if name not in led_to), *links):
        if name not in reached:
            visit([name])
    trees.left = [hinge for hinge in usable if hinge.name not in used]
    return trees


def depth_first(links: Sequence[str], parents: Mapping[str, str]) -> list[str]:
    """The links tree by tree, parents first, siblings in the given order."""
    below: dict[str, list[str]] = {}
    for name in links:
        below.setdefault(parents[name], []).append(name)
    order: list[str] = []
    stack = list(reversed(below.get(WORLD, [])))
    while stack:
        name = stack.pop()
        order.append(name)
        stack.extend(reversed(below.get(name, ())))
    return order
