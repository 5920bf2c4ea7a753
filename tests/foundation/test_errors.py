"""Names in messages."""

from __future__ import annotations

import pytest

from artsim.sim.foundation.errors import LISTED, nearest


@pytest.mark.parametrize("count", [1, 8, 9, 40])
def test_known_names_are_all_listed(count: int) -> None:
    """As many as a line has room for; the others are counted."""
    names = [f"name{k}" for k in range(count)]
    assert nearest("zzz", names) == f"; known: {', '.join(names)}"
    many = [f"name{k}" for k in range(1000)]
    told = nearest("zzz", many)
    listed = told.removeprefix("; known: ").partition(" and ")[0].split(", ")
    assert listed == many[: len(listed)] and told.endswith(f" and {1000 - len(listed)} more")
    assert LISTED - 10 <= len(", ".join(listed)) <= LISTED
    assert nearest("zzz", ["x" * 1000, "y"]) == f"; known: {'x' * 1000} and 1 more"
    assert nearest("nam3", names[:4]) == ("; did you mean 'name3'?" if count > 3 else "; did you mean 'name0'?")
