"""Xacro macros to plain URDF, only when the user asks: macros can read files of this machine."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from artsim.loaders.assets import Assets
from artsim.loaders.xml import clean
from artsim.sim.description import Source
from artsim.sim.errors import ModelError


def expand_xacro(
    text: str, *, file: str, path: Path | None, assets: Assets, arguments: Mapping[str, str] | None = None
) -> str:
    """The text after xacro; `path` is where it came from, for includes, `arguments` are those of its <xacro:arg>.

    Raises ModelError where xacro does not help.
    """
    source = Source(file)
    try:
        import xacro
    except ImportError:
        raise ModelError(f"{source}: --xacro needs the xacro package: install artsim[xacro]") from None
    log = io.StringIO()
    try:
        with contextlib.redirect_stderr(log), package_lookup(xacro, assets):
            document = xacro.parse(text)
            xacro.init_stacks(str(path) if path else None)
            xacro.process_doc(document, mappings=dict(arguments or {}))
            return str(document.toprettyxml(indent="  "))
    except Exception as error:  # macros are programs: they fail in any way a Python expression can
        inner = getattr(error, "exc", None) or error  # xacro repeats what it wraps
        raise ModelError(f"{source}: xacro: {clean(str(inner)) or type(inner).__name__}") from error


@contextlib.contextmanager
def package_lookup(xacro: object, assets: Assets) -> Iterator[None]:
    """`$(find NAME)` looks where package:// looks; xacro itself knows only ROS 2's index and has no hook for it."""
    from xacro import substitution_args

    original = substitution_args._eval_find

    def find(name: str) -> str:
        root = assets.package_root(name)
        if root is None:
            raise ValueError(f"package {name!r} not found; give --package {name}=DIR or set ROS_PACKAGE_PATH")
        return str(root)

    substitution_args._eval_find = find
    try:
        yield
    finally:
        substitution_args._eval_find = original
