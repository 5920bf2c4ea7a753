"""The options of reading a model, with their defaults in one table."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Literal, TypedDict


class ReadOptions(TypedDict, total=False):
    """Options of reading a model; those left out are as in DEFAULTS."""

    base: Literal["fixed", "floating"]  # of the root link
    packages: Mapping[str, str | PathLike[str]]  # folders by the names of packages
    mesh_root: str | PathLike[str] | None  # a further folder that meshes may come from
    meshes: bool  # False: meshes are not looked for
    max_xml_mb: float  # largest file that is read [MB]
    strict: bool  # a file for which artsim would have to guess is refused
    balance_inertia: bool  # inertias that no body can have are replaced by the nearest that one can
    xacro: bool  # macros are expanded first
    # unsupported parts of an MJCF file are left out with a warning, as are reversed limits and mimics of missing
    # leaders in a URDF
    ignore_unsupported: bool
    max_faces: int | None  # largest number of triangles of a mesh; None: 2 million
    density: float | None  # links of a URDF without mass get that of their shapes [kg/m³]
    arguments: Mapping[str, str] | None  # of macros, by name


DEFAULTS: ReadOptions = {
    "base": "fixed",
    "packages": {},
    "mesh_root": None,
    "meshes": True,
    "max_xml_mb": 64.0,
    "strict": False,
    "balance_inertia": False,
    "xacro": False,
    "ignore_unsupported": False,
    "max_faces": None,
    "density": None,
    "arguments": None,
}


def whole(options: ReadOptions) -> ReadOptions:
    """The options with the defaults of those left out. Raises TypeError for an unknown one."""
    if odd := options.keys() - DEFAULTS.keys():
        raise TypeError(f"{min(odd)!r} is no option of reading a model; options: {', '.join(DEFAULTS)}")
    return DEFAULTS | options
