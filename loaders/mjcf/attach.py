"""<attach>: a subtree of another model, or of this one, under new names, with all elements that refer to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lxml import etree

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.asset import asset_name
from artsim.loaders.mjcf.conflict import settle_options
from artsim.loaders.mjcf.reading import LONG_NAME, Item, MjcfReading, dict_of, weight
from artsim.loaders.mjcf.references import kind_of
from artsim.loaders.mjcf.replicate import NAMED, Names, names_in
from artsim.loaders.mjcf.scope import Scope
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import nearest

SECTIONS = ("contact", "tendon", "equality", "actuator", "sensor")  # tendons before the sections that may refer to them
ASSETS = ("mesh", "hfield", "texture", "material")


@dataclass(frozen=True, slots=True)
class Child:
    """A model that may be attached, with its own attachments and copies in place."""

    root: Element
    scope: Scope


def expand_attachments(reading: MjcfReading, root: Element, models: Mapping[str, Child]) -> None:
    """Replace every <attach> by its subtree."""
    for world in children(root, "worldbody"):
        for element in list(world.iter("attach")):
            attach(Item(reading, element, dict_of(element)), root, models)


def attach(item: Item, root: Element, models: Mapping[str, Child]) -> None:
    """Replace one <attach> by its subtree, and add the sections that refer to it."""
    if not item.has("prefix"):
        item.refuse("has no 'prefix' attribute")
    if len(item.text("prefix")) > LONG_NAME:
        item.refuse(f"prefix has {len(item.text('prefix'))} characters; at most {LONG_NAME} are read")
    child = None
    if item.has("model"):
        name = item.text("model")
        if name not in models:
            item.refuse(f"model {name[:80]!r} does not exist{nearest(name[:80], sorted(models))}")
        child = models[name]
    source = root if child is None else child.root
    graft = chosen(item, source)
    names = names_in(graft)
    prefix = item.text("prefix")
    sections = list(copied_sections(item.reading, source, names, prefix, with_assets=child is not None))
    for below in graft.iter(*NAMED):
        prepend(below, "name", prefix)
    refer(graft, names, prefix)
    for section in sections:
        root.append(section)
    parent = item.element.getparent()
    assert parent is not None
    parent.replace(item.element, graft)
    if child is not None:
        settle_options(item.reading, root, child.root, item.element)
        for top in (graft, *sections):
            settle(item.reading, top, child, prefix)


def settle(reading: MjcfReading, top: Element, child: Child, prefix: str) -> None:
    """Record the settings of elements below `top`: the child's, or those of a model attached to the child."""
    reading.scopes.setdefault(top, child.scope)
    reading.included.setdefault(top, child.scope.reading.file)
    for element in top.iter():
        if element in reading.scopes:
            reading.scopes[element] = reading.scopes[element].prefixed(prefix, ASSETS)
        if element in reading.states:
            reading.states[element] = {prefix + key: state for key, state in reading.states[element].items()}


def chosen(item: Item, source: Element) -> Element:
    """A copy of the body or frame that <attach> names, or a frame that holds all of the child's world."""
    kinds = [kind for kind in ("body", "frame") if item.has(kind)]
    if len(kinds) == 2:
        item.refuse("names a body and a frame, want one of them")
    worlds = list(children(source, "worldbody"))
    if not kinds:
        if not item.has("model"):
            item.refuse("names neither model, body nor frame")
        item.reading.claim(item.element, weight(*worlds))
        frame = etree.Element("frame")
        frame.sourceline = item.element.sourceline
        frame.extend(item.reading.copy(below) for world in worlds for below in world)
        return frame
    kind, wanted = kinds[0], item.text(kinds[0])
    named = {element.get("name", ""): element for world in worlds for element in world.iter(kind)}
    if wanted not in named:
        item.refuse(f"{kind} {wanted[:80]!r} does not exist{nearest(wanted[:80], sorted(filter(None, named)))}")
    found = named[wanted]
    if found in item.element.iterancestors():
        item.refuse(f"{kind} {wanted[:80]!r} would hold itself")
    item.reading.claim(item.element, weight(found))
    graft = item.reading.copy(found)
    inherited = next((name for above in found.iterancestors() if (name := above.get("childclass"))), None)
    if inherited and graft.get("childclass") is None:
        graft.set("childclass", inherited)
    return graft


def copied_sections(
    reading: MjcfReading, source: Element, names: Names, prefix: str, *, with_assets: bool
) -> Iterator[Element]:
    """Copies of the assets, and of elements that refer to the subtree only, section by section."""
    for section in children(source, "asset") if with_assets else ():
        assets = [element for element in section if tag(element) in ASSETS]
        reading.claim(section, weight(*assets))
        copies = [reading.copy(element) for element in assets]
        for copy in copies:
            name = asset_name(copy)
            names.setdefault(tag(copy), set()).add(name)
            copy.set("name", name)
        yield from finished(reading, section, copies, names, prefix)
    for name in SECTIONS:
        for section in children(source, name):
            kept = [element for element in section if is_inside(element, names)]
            if name in ("tendon", "actuator"):
                names.setdefault(name, set()).update(element.get("name", "") for element in kept)
            for element in kept:
                reading.claim(element, weight(element))
            yield from finished(reading, section, [reading.copy(element) for element in kept], names, prefix)


def finished(
    reading: MjcfReading, source: Element, copies: list[Element], names: Names, prefix: str
) -> Iterator[Element]:
    """A section of the renamed copies, if there are any, with the file and settings of the source."""
    if not copies:
        return
    section = etree.Element(tag(source))
    section.extend(copies)
    if source in reading.scopes:
        reading.scopes[section], reading.included[section] = reading.scopes[source], reading.included[source]
    for copy in copies:
        refer(copy, names, prefix)
        prepend(copy, "name", prefix)
    yield section


def is_inside(element: Element, names: Names) -> bool:
    """True if all that the element refers to is in the subtree; <exclude>, <connect> and <weld> may name the world."""
    for below in element.iter():
        for attribute, value in below.attrib.items():
            kind = kind_of(below, str(attribute))
            if kind in ASSETS or not kind or value in names.get(kind, ()):
                continue
            if not (kind == "body" and value == "world" and tag(element) in ("exclude", "connect", "weld")):
                return False
    return True


def refer(top: Element, names: Names, prefix: str) -> None:
    """Put the prefix before every reference to a name that was copied."""
    for element in top.iter():
        for attribute, value in element.attrib.items():
            if value in names.get(kind_of(element, str(attribute)), ()):
                prepend(element, str(attribute), prefix)


def prepend(element: Element, attribute: str, prefix: str) -> None:
    """Put the prefix before the name in an attribute, if there is one."""
    name = element.get(attribute)
    if name:
        element.set(attribute, prefix + name)
