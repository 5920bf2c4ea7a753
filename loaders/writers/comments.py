"""Comments of a source, set before the elements of the written file that have the names of those they stood before."""

from __future__ import annotations

from lxml import etree

from artsim.loaders.elements import Element

KINDS = {"body": "link", "freejoint": "joint", "collision": "geom", "visual": "geom"}
"""Words of formats for one kind of item."""
MOST = 2000  # comments that are carried over


def carry_comments(source: str, root: Element) -> None:
    """Copy the comments of an XML text into a tree: before the named element that follows, else at the file's head."""
    given = parsed(source)
    if given is None:
        return
    written: dict[tuple[str, str], Element] = {}
    for element in root.iter("*"):
        name = element.get("name")
        if name:
            written.setdefault((kind_of(element), name), element)
    head = 0
    for count, comment in enumerate(given.iter(etree.Comment)):
        if count >= MOST or not (comment.text or "").strip():
            continue
        copy = etree.Comment(comment.text)
        after = next(comment.itersiblings("*"), None)
        place = None if after is None else written.get((kind_of(after), after.get("name", "")))
        if place is not None and place.getparent() is not None:
            place.addprevious(copy)
        elif comment.getparent() is given or comment.getparent() is None:
            root.insert(head, copy)
            head += 1


def parsed(source: str) -> Element | None:
    """The root of a text that a reader has accepted before; None for one that is no XML, such as that of a scene."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_pis=True, huge_tree=False)
    try:
        return etree.fromstring(source.encode(), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


def kind_of(element: Element) -> str:
    """The kind of item that an element stands for."""
    tag = etree.QName(element).localname
    return KINDS.get(tag, tag)
