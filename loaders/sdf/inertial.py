"""<inertial> of SDFormat: as written, or from the link's collision shapes."""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from artsim.loaders.elements import Element, child, children, describe
from artsim.loaders.sdf.reading import SdfReading, attribute_flag, listed, number_of, read_pose
from artsim.sim.articulation.description import Geom, Inertial, Pose

DENSITY = 1000.0  # [kg/m³], SDFormat's default


def read_inertial(
    reading: SdfReading, link: Element, name: str, geoms: Sequence[Geom], *, static: bool
) -> Inertial | None:
    """<inertial> of a <link>, `name` in the whole model: mass [kg], centre of mass frame, inertia in it [kg m²].

    Missing values have SDFormat's defaults: 1 kg, 1 kg m² about each axis. A static model needs no inertia.
    """
    element = child(reading, link, "inertial")
    if element is None:
        if static:
            return None
        reading.bare[link] = name
        return Inertial(1.0, Pose(), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0), reading.at(link))
    if child(reading, element, "fluid_added_mass") is not None:
        reading.leave_out(element, f"{describe(element)}: <fluid_added_mass> is not supported", "it")
    if attribute_flag(reading, element, "auto"):
        return read_automatic(reading, link, element, geoms)
    mass = number_of(reading, element, "mass", 1.0, least=0.0)
    item = child(reading, element, "pose")
    frame = "" if item is None else item.get("relative_to", "")
    if item is not None and frame not in ("", link.get("name")):
        told = f"{describe(item)} is relative_to {frame[:80]!r}; SDFormat has inertials in their links alone"
        reading.leave_out(item, told, "relative_to")
    return Inertial(mass, read_pose(reading, item), read_inertia(reading, element), reading.at(element))


def note_bare(reading: SdfReading) -> None:
    """One warning for all links without <inertial>."""
    if reading.bare:
        names = list(reading.bare.values())
        told = f"link {listed(names)} has" if len(names) == 1 else f"{len(names)} links ({listed(names)}) have"
        weighs = "1 kg and 1 kg m² about each axis, SDFormat's default"
        reading.note(next(iter(reading.bare)), f"{told} no <inertial>: {weighs}", guess=True)


def read_inertia(reading: SdfReading, element: Element) -> tuple[float, float, float, float, float, float]:
    """<inertia><ixx>…<izz> [kg m²]; judge_inertias refuses those that no body can have."""
    item = child(reading, element, "inertia")
    names = {"ixx": 1.0, "ixy": 0.0, "ixz": 0.0, "iyy": 1.0, "iyz": 0.0, "izz": 1.0}
    xx, xy, xz, yy, yz, zz = (number_of(reading, item, name, default) for name, default in names.items())
    return (xx, xy, xz, yy, yz, zz)


def read_automatic(reading: SdfReading, link: Element, element: Element, geoms: Sequence[Geom]) -> Inertial:
    """<inertial auto="true">: the inertial of the collision shapes at their densities, scaled to <mass> if given."""
    from artsim.loaders.density import solid_of_geom, together  # numpy
    from artsim.sim.foundation.rotations import six

    density = number_of(reading, element, "density", DENSITY, least=0.0)
    densities = {
        item.get("name", ""): number_of(reading, item, "density", density, least=0.0)
        for item in children(link, "collision")
    }
    solids = [
        solid_of_geom(reading, geom, densities[geom.name.rpartition("::")[2]], 'auto="true"')
        for geom in geoms
        if geom.role == "collision"
    ]
    parts = [solid for solid in solids if solid is not None and solid.mass > 0]
    if not parts:
        reading.refuse(element, f"{describe(element)} is to be found from collision shapes, and none has a volume")
    whole = together(parts)
    given = child(reading, element, "mass")
    mass = whole.mass if given is None else number_of(reading, element, "mass", 1.0, least=0.0)
    x, y, z = whole.centre.tolist()
    xx, xy, xz, yy, yz, zz = (six((whole.inertia + whole.inertia.T) / 2) * (mass / whole.mass)).tolist()
    made = Inertial(mass, Pose((x, y, z)), (xx, xy, xz, yy, yz, zz), reading.at(element))
    write(element, made)
    reading.written = True
    return made


def write(element: Element, inertial: Inertial) -> None:
    """Write the numbers into the element, which then needs no meshes."""
    for old in list(element):
        element.remove(old)
    element.attrib.pop("auto")
    etree.SubElement(element, "mass").text = repr(inertial.mass)
    etree.SubElement(element, "pose").text = " ".join(map(repr, (*inertial.pose.position, 0.0, 0.0, 0.0)))
    tensor = etree.SubElement(element, "inertia")
    for name, value in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), inertial.inertia, strict=True):
        etree.SubElement(tensor, name).text = repr(value)
