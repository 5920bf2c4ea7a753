"""Words of `--control` that name variables of an output: FILE.h5:target=qpos,torque=gravity."""

from __future__ import annotations

import re
from pathlib import Path

from artsim.sim.foundation.errors import UsageError, nearest

INPUTS = ("torque", "target", "velocity", "acceleration", "control")
_WORD = re.compile(r"(?P<file>.+\.(?:h5|hdf5)):(?P<pairs>[^/]*)", re.IGNORECASE | re.DOTALL)


def variables_named(word: str) -> tuple[str, dict[str, str]] | None:
    """The file of FILE.h5:INPUT=VARIABLE,… and the variable of each input; None for any other word.

    Raises UsageError for what is no INPUT=VARIABLE.
    """
    match = _WORD.fullmatch(word)
    if match is None or Path(word).exists():
        return None
    pairs = {}
    for pair in match["pairs"].split(","):
        name, equals, variable = (part.strip() for part in pair.partition("="))
        if not equals or not variable:
            raise UsageError(f"--control {word}: {pair!r} is not INPUT=VARIABLE, as target=qpos")
        if name not in INPUTS:
            raise UsageError(f"--control {word}: {name!r} is no input{nearest(name, INPUTS)}")
        pairs[name] = variable
    return match["file"], pairs
