"""The <mujoco> element that MuJoCo reads in a URDF: options of the physics, and the folder of meshes."""

from __future__ import annotations

import dataclasses
from dataclasses import field

from artsim.loaders.elements import Element, Reading, children, describe, read_number, read_vector, tag
from artsim.loaders.inertia import balanced, breaks_triangle, is_negative, principal_moments
from artsim.sim.articulation.description import FileOptions, Inertial, Link
from artsim.sim.foundation.dataclass import dataclass

# fusestatic merges links that artsim keeps apart; discardvisual drops visual geoms; angles of a URDF are radians
NO_MEANING = frozenset(("fusestatic", "discardvisual", "angle", "autolimits", "coordinate", "eulerseq", "usethread"))


@dataclass(frozen=True, slots=True)
class MujocoExtension:
    """The settings in the <mujoco> element of a URDF."""

    balance_inertia: bool = False
    bound_mass: float = 0.0  # [kg] least mass of every moving link
    bound_inertia: float = 0.0  # [kg m²] least diagonal inertia of every moving link
    mesh_dir: str = ""
    strip_path: bool = False
    options: FileOptions = field(default_factory=FileOptions)


def read_extension(reading: Reading, root: Element) -> MujocoExtension:
    """The settings of every <mujoco> of the robot; later elements override earlier ones."""
    extension = MujocoExtension()
    for element in children(root, "mujoco"):
        extension = dataclasses.replace(extension, strip_path=True)  # MuJoCo's default for a URDF
        for item in element:
            if tag(item) == "compiler":
                extension = read_compiler(reading, item, extension)
            elif tag(item) == "option":
                extension = dataclasses.replace(extension, options=read_option(reading, item))
            elif tag(item) not in ("size", "visual", "statistic"):
                reading.note(item, f"{describe(item)} is ignored", once=f"<mujoco><{tag(item)}>")
    return extension


def read_compiler(reading: Reading, element: Element, extension: MujocoExtension) -> MujocoExtension:
    """<compiler>."""
    for name in map(str, element.attrib):
        if name == "balanceinertia":
            extension = dataclasses.replace(extension, balance_inertia=element.get(name) == "true")
        elif name == "boundmass":
            extension = dataclasses.replace(extension, bound_mass=read_number(reading, element, name))
        elif name == "boundinertia":
            extension = dataclasses.replace(extension, bound_inertia=read_number(reading, element, name))
        elif name in ("meshdir", "assetdir"):
            extension = dataclasses.replace(extension, mesh_dir=element.get(name, ""))
        elif name == "strippath":
            extension = dataclasses.replace(extension, strip_path=element.get(name) == "true")
        elif name not in NO_MEANING:
            reading.note(element, f"{describe(element)}: {name!r} is ignored", once=f"compiler {name!r}")
    return extension


def read_option(reading: Reading, element: Element) -> FileOptions:
    """<option timestep gravity integrator> and its flags; solver settings are artsim's own."""
    options = FileOptions()
    for name in map(str, element.attrib):
        if name == "timestep":
            step = read_number(reading, element, "timestep")
            if step <= 0:
                reading.refuse(element, f"{describe(element)}: timestep {step:g} s, want more than 0")
            options = dataclasses.replace(options, timestep=step)
        elif name == "gravity":
            options = dataclasses.replace(options, gravity=read_vector(reading, element, "gravity"))
        elif name == "integrator":
            options = dataclasses.replace(options, integrator=element.get(name))
        else:
            reading.note(element, f"{describe(element)}: {name!r} is ignored", once=f"option {name!r}")
    for flag in children(element, "flag"):
        options = read_flag(reading, flag, options)
    return options


def read_flag(reading: Reading, element: Element, options: FileOptions) -> FileOptions:
    """The options with <flag gravity>; the other switches are for MJCF files."""
    for name in map(str, element.attrib):
        if name == "gravity":
            if element.get(name) not in ("enable", "disable"):
                reading.refuse(element, f"{describe(element)}: gravity {element.get(name)!r}, want enable or disable")
            if element.get(name) == "disable":
                options = dataclasses.replace(options, gravity=(0.0, 0.0, 0.0))
        else:
            reading.note(element, f"{describe(element)}: {name!r} is ignored", once=f"flag {name!r}")
    return options


def corrected_inertials(reading: Reading, extension: MujocoExtension, links: list[Link]) -> list[Link]:
    """The links after boundmass and boundinertia (for each link that has or needs an inertial) and balanceinertia."""
    if extension.bound_mass > 0 or extension.bound_inertia > 0:
        links = [dataclasses.replace(link, inertial=bounded(extension, link)) for link in links]
    return [with_ball(reading, link) for link in links] if extension.balance_inertia else links


def with_ball(reading: Reading, link: Link) -> Link:
    """The link, with the inertia of a ball if its own breaks the triangle inequality, as in MuJoCo."""
    if link.inertial is None:
        return link
    moments = principal_moments(link.inertial.inertia)
    if is_negative(moments) or not breaks_triangle(moments):
        return link
    what = f"link {link.name!r}: principal moments {', '.join(f'{moment:.4g}' for moment in moments)}"
    reading.note(link.inertial.source, f"{what} replaced by their mean (balanceinertia)")
    return dataclasses.replace(link, inertial=dataclasses.replace(link.inertial, inertia=balanced(moments)))


def bounded(extension: MujocoExtension, link: Link) -> Inertial:
    """One link's inertial with mass and principal moments raised to the bounds."""
    inertial = link.inertial or Inertial(0.0, source=link.source)
    inertial = dataclasses.replace(inertial, mass=max(inertial.mass, extension.bound_mass))
    low = extension.bound_inertia
    if principal_moments(inertial.inertia)[0] >= low:
        return inertial
    from artsim.loaders.mjcf.mass import along_axes  # imported late: it loads the inertia of geoms, too

    inertial = along_axes(inertial)
    x, _, _, y, _, z = (max(moment, low) for moment in inertial.inertia)
    return dataclasses.replace(inertial, inertia=(x, 0.0, 0.0, y, 0.0, z))
