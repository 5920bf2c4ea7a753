"""The names of constraint rows: `limit:elbow.lower`, `loop:crank.x`."""

from __future__ import annotations

from artsim.sim.constraints.kinds import KINDS


def row_name(kind: int, owner: str, part: int) -> str:
    """The name of a row by its kind, the name of its owner, and its part (Rows.part)."""
    declared = KINDS[kind]
    return ".".join(word for word in (f"{declared.word}:{owner}".rstrip(":"), declared.parts[part]) if word)
