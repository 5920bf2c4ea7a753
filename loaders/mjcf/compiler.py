"""<compiler>: settings for the interpretation of the rest of the file."""

from __future__ import annotations

import math
from dataclasses import field, replace

from artsim.loaders.elements import Element, children
from artsim.loaders.mjcf.orientation import Angles
from artsim.loaders.mjcf.reading import Item, MjcfReading, dict_of
from artsim.sim.foundation.dataclass import dataclass

AUTO = ("false", "true", "auto")


@dataclass(frozen=True, slots=True)
class Compiler:
    """The settings; later <compiler> elements override earlier ones, attribute by attribute."""

    angles: Angles = field(default_factory=Angles)
    autolimits: bool = True
    mesh_dir: str = ""
    strip_path: bool = False
    bound_mass: float = 0.0  # [kg] least mass of every body
    bound_inertia: float = 0.0  # [kg m²] least principal moment
    balance_inertia: bool = False
    inertia_from_geom: str = "auto"
    inertia_groups: tuple[int, int] = (0, 5)  # geoms outside these groups have no mass
    total_mass: float = -1.0  # [kg], where positive the whole model is scaled to it
    fuse_static: bool = False  # links that stand still are not part of the total mass
    fit_aabb: bool = False
    mesh_inertia: str = "legacy"  # of meshes that do not give one; exactmeshinertia of older files
    align_free: bool = False


def read_compiler(reading: MjcfReading, root: Element) -> Compiler:
    """The settings of every <compiler> of the root."""
    compiler = Compiler()
    for element in children(root, "compiler"):
        item = Item(reading, element, dict_of(element))
        compiler = read_one(item, compiler)
    return compiler


def read_one(item: Item, known: Compiler) -> Compiler:
    """The settings of one <compiler>; attributes that it leaves out are as in `known`."""
    refuse_unsupported(item)
    low, high = (int(x) for x in item.numbers("inertiagrouprange", 2, 2, known.inertia_groups))
    return replace(
        known,
        angles=read_angles(item, known.angles),
        autolimits=item.flag("autolimits", known.autolimits),
        mesh_dir=item.text("meshdir", item.text("assetdir", known.mesh_dir)),
        strip_path=item.flag("strippath", known.strip_path),
        bound_mass=item.number("boundmass", known.bound_mass, least=0.0),
        bound_inertia=item.number("boundinertia", known.bound_inertia, least=0.0),
        balance_inertia=item.flag("balanceinertia", known.balance_inertia),
        inertia_from_geom=item.word("inertiafromgeom", AUTO, known.inertia_from_geom),
        inertia_groups=(low, high),
        total_mass=item.number("settotalmass", known.total_mass),
        fuse_static=item.flag("fusestatic", known.fuse_static),
        fit_aabb=item.flag("fitaabb", known.fit_aabb),
        mesh_inertia="exact" if item.flag("exactmeshinertia", known.mesh_inertia == "exact") else "legacy",
        align_free=item.flag("alignfree", known.align_free),
    )


def refuse_unsupported(item: Item) -> None:
    """Refuse unsupported settings that change the model; all others only change MuJoCo's arrays, not the robot."""
    if item.word("coordinate", ("local", "global"), "local") == "global":
        item.refuse("coordinate 'global' was taken out of MJCF; MuJoCo 2.3.3 converts such files")
    if item.flag("fusestatic") or item.flag("discardvisual"):
        item.reading.note(
            item.element, "fusestatic and discardvisual are ignored: every body and geom is kept", once="fusestatic"
        )


def read_angles(item: Item, known: Angles) -> Angles:
    """angle and eulerseq."""
    unit = known.unit
    if item.has("angle"):
        unit = math.pi / 180.0 if item.word("angle", ("degree", "radian"), "degree") == "degree" else 1.0
    sequence = item.text("eulerseq", known.sequence)
    if len(sequence) != 3 or any(letter not in "xyzXYZ" for letter in sequence):
        item.refuse(f"eulerseq is {sequence[:20]!r}, want three letters of x, y, z, X, Y, Z")
    return Angles(unit, sequence)
