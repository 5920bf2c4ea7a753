"""Expansion of xacro macros to plain URDF, on request only: macros are programs and run in a limited child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artsim.loaders.assets import Assets
from artsim.sim.articulation.description import Source
from artsim.sim.foundation.apart import life_line
from artsim.sim.foundation.budget import MORE, allowed
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError

CPU_SECONDS = 3.0
WALL_SECONDS = 10.0  # a limit beside that of processor time, since waiting for a pipe takes none
MEMORY = 1 << 30  # bytes of address space


def expand_xacro(
    text: str,
    *,
    file: str,
    path: Path | None,
    assets: Assets,
    max_mb: float = 64.0,
    arguments: Mapping[str, str] | None = None,
) -> tuple[str, list[Place | None]]:
    """The text after xacro, and the places of its elements in the sources, in the elements' order.

    `path` is the file of the text, which includes are relative to; `arguments` are the values of its <xacro:arg>.
    Raises ModelError if xacro fails.
    """
    source = Source(file)
    from importlib.util import find_spec

    if find_spec("xacro") is None:
        raise ModelError(f"{source}: --xacro needs the xacro package: install artsim[xacro]")
    request = {
        "text": text,
        "arguments": dict(arguments or {}),
        "path": str(path) if path else None,
        "folder": str(assets.folder) if assets.folder else None,
        "packages": {name: str(place) for name, place in assets.packages.items()},
        "mesh_root": str(assets.mesh_root) if assets.mesh_root else None,
        "seconds": allowed(CPU_SECONDS),
        "memory": allowed(MEMORY),
        "sys_path": [entry for entry in sys.path if entry],
    }
    answer = asked_of_child(request, source, int(max_mb * 1e6))
    if "text" not in answer:
        place = place_of(answer.get("place"), file) or Place(source)
        words = " ".join(str(answer.get("error", ""))[:2000].split())[:400]
        raise ModelError(f"{place.source}: xacro: {words}{place.words}")
    listed = answer.get("places")
    return str(answer["text"]), [place_of(item, file) for item in listed] if isinstance(listed, list) else []


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a source, and the macro whose definition holds it."""

    source: Source
    macro: str = ""

    @property
    def words(self) -> str:
        """The macro, for the end of a message."""
        return f" (in macro {self.macro[:80]!r})" if self.macro else ""


def place_of(answered: object, file: str) -> Place | None:
    """The place in the child's answer, None if it holds none; '' stands there for the model's own file."""
    if not (isinstance(answered, list) and len(answered) == 3):
        return None
    name, line, macro = answered
    if not (isinstance(name, str) and isinstance(line, int) and isinstance(macro, str)):
        return None
    return Place(Source(name or file, line), macro)


def asked_of_child(request: dict[str, Any], source: Source, most: int) -> dict[str, Any]:
    """The child's answer, of at most a few times `most` bytes. Raises ModelError if there is none."""
    script = Path(__file__).with_name("xacro_child.py")
    line = life_line()
    child = subprocess.Popen(
        [sys.executable, "-P", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=(line,) if line >= 0 else (),
    )
    asked = json.dumps({**request, "parent": [os.getpid(), line]}).encode()
    try:
        told, _ = child.communicate(asked, timeout=allowed(WALL_SECONDS))
    except subprocess.TimeoutExpired:
        told = b""
    finally:
        child.kill()
        child.wait()
    if len(told) > 6 * most:  # JSON escapes
        raise ModelError(f"{source}: xacro: expands to more than {most / 1e6:g} MB (--max-xml-mb)")
    try:
        answer = json.loads(told)
    except (ValueError, RecursionError):
        limits = f"{allowed(CPU_SECONDS):g} s and {allowed(MEMORY) / 1e9:.2g} GB; {MORE}"
        raise ModelError(f"{source}: xacro: its macros did not come to an end within {limits}") from None
    return answer if isinstance(answer, dict) else {}
