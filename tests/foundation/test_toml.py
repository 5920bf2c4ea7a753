"""TOML from strangers: depth is bounded before Python's reader, whose cost is the square of it."""

from __future__ import annotations

import tomllib

import pytest

from artsim.sim.foundation.toml import MOST_LEVELS, read_toml

DEEP = ".".join("a" * 100)
REFUSED = {
    "a dotted key": f"{DEEP} = 1",
    "a header": f"[{DEEP}]",
    "a header of an array": f"[[ {DEEP} ]]",
    "a quoted key": " . ".join(['"a"'] * 50) + " = 1",
    "a literal key": ".".join(["'a.b'"] * 50) + " = 1",
    "a key in an inline table": f"x = {{ b = 1, {DEEP} = 2 }}",
    "inline tables": "x = " + "{a = " * 50 + "1" + "}" * 50,
    "arrays": "x = " + "[" * 50 + "]" * 50,
    "arrays without end": "x = " + "[" * 100_000,
    "after a string of lines that ends in quotes": f'x = """a"""""\n{DEEP} = 1',
    "after a literal of lines that ends in quotes": f"x = '''a'''''\n{DEEP} = 1",
    "after an escaped backslash": f'x = "\\\\"\n{DEEP} = 1',
    "after an escaped quote of lines": f'x = """\\""" """\n{DEEP} = 1',
    "after a literal backslash": f"x = '\\'\n{DEEP} = 1",
    "after a comment with a quote": f'# "\n{DEEP} = 1',
    "after a quote in a string": f'x = "\'"\n{DEEP} = 1',
    "digits": "x = " + "9" * 5000,
    "more than 64 bits": "x = 9223372036854775808",
    "hexadecimal digits": "x = 0x" + "f" * 5000,
    "in an array": "x = [1, [2, 99999999999999999999]]",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_deep_or_large_is_refused(what: str) -> None:
    with pytest.raises(ValueError, match=r"parts|nested|64 bits"):
        read_toml(REFUSED[what])


@pytest.mark.parametrize(
    "text",
    [
        f"# {DEEP}\nx = 1",
        f"x = \"{DEEP}\"\ny = '{DEEP}'",
        f'x = """\n{DEEP}\n"""\ny = 2',
        f"x = '''\n{DEEP} \"\"\" '''",
        f"x = [{', '.join(['1.5'] * 200)}]",
        ".".join("a" * MOST_LEVELS) + " = 1",
        '["a.b.c.d.e.f.g.h.i.j"]\n"slab.x" = 1979-05-27T07:32:00Z',
        f"x = {2**63 - 1}\ny = {-(2**63)}\nz = [1e999, -inf, nan, true]",
    ],
)
def test_what_toml_allows_is_read(text: str) -> None:
    """Depth counts in keys only, not in what looks like one in strings, comments and numbers."""
    assert str(read_toml(text)) == str(tomllib.loads(text))


def test_errors_of_toml_stay_what_they_are() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="line 2, column"):
        read_toml("x = 1\ny = = 2")
