"""The depth of contacts in words, for commands that tell of it."""

from __future__ import annotations


def describe_depth(depth: float, share: float, link_a: str, link_b: str) -> str:
    """The depth of a contact and its links, in words."""
    return f"{depth:.3g} m between {link_a!r} and {link_b!r}, {100 * share:.3g} % of the thinner shape's thickness"
