"""Text from files, made harmless for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with control characters, right-to-left overrides and the like written as escapes, on one line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
