"""TOML from strangers: keys and values nested a few levels at most, numbers of 64 bits.

Python's reader takes a time and memory that grow with the square of a key's depth: 60 kB of `a.a.a…=1` took 3.5 GB.
"""

from __future__ import annotations

import re
from typing import Any

MOST_LEVELS = 8  # of a dotted key or header, and of arrays and tables in each other
_LARGE = "a whole number of more than 64 bits"
_ONE_LINE = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_TOKENS = re.compile(
    r"""\#[^\n]*+|\"{3}(?:[^"\\]|\\[\s\S]|"(?!""))*+\"{3,5}+|'{3}(?:[^']|'(?!''))*+'{3,5}+"""
    rf"""|(?P<key>{_ONE_LINE}(?:[ \t]*+\.[ \t]*+{_ONE_LINE})*+)|[^#"'A-Za-z0-9_-]++|."""
)
_PART = re.compile(_ONE_LINE)


def read_toml(text: str) -> dict[str, Any]:
    """The content of a TOML text. Raises ValueError with the reason: tomllib.TOMLDecodeError if the text is no TOML."""
    import tomllib

    for token in _TOKENS.finditer(text):
        key = token["key"]
        if key and len(key) > 2 * MOST_LEVELS and len(_PART.findall(key)) > MOST_LEVELS:
            line = text.count("\n", 0, token.start()) + 1
            raise ValueError(f"line {line}: a key of more than {MOST_LEVELS} parts: {key[:40]!r}")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise ValueError("nested too deep") from None
    except ValueError:  # Python converts no more digits than this
        raise ValueError(_LARGE) from None
    _check(values)
    return values


def _check(values: Any) -> None:
    """Raise ValueError for values nested too deep, and for numbers beyond 64 bits, which TOML does not have."""
    level = [values]
    for _ in range(MOST_LEVELS + 1):
        if not level:
            return
        inner: list[Any] = []
        for item in level:
            if isinstance(item, int) and not -(2**63) <= item < 2**63:
                raise ValueError(_LARGE)
            if isinstance(item, dict | list):
                inner += item.values() if isinstance(item, dict) else item
        level = inner
    if level:
        raise ValueError("nested too deep")
