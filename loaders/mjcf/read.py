"""MJCF to an Articulation: the sections, in the order of their dependencies."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from artsim.loaders.assets import Assets
from artsim.loaders.elements import Element, Reading, tag
from artsim.loaders.mjcf.actuator import add_drags, read_actuators
from artsim.loaders.mjcf.asset import read_meshes
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.contact import read_contacts
from artsim.loaders.mjcf.equality import read_equalities
from artsim.loaders.mjcf.ignored import ignored_parts
from artsim.loaders.mjcf.keyframe import read_keyframes
from artsim.loaders.mjcf.models import Family, expand, stored_text
from artsim.loaders.mjcf.option import read_options, switched
from artsim.loaders.mjcf.own_inertials import read_own_inertials
from artsim.loaders.mjcf.reading import MjcfReading, describe
from artsim.loaders.mjcf.references import check_references
from artsim.loaders.mjcf.sensor import read_sensors
from artsim.loaders.mjcf.tendon import read_tendons, read_wrap_geoms
from artsim.loaders.mjcf.velocity_limits import read_velocity_limits
from artsim.sim.articulation.description import Actuator, Articulation, Conventions, Ignored, Note, Tendon

OF_FLEX = "its points are bodies and sites, its edges tendons, without its looks"
CONVENTIONS = Conventions(
    pose_drawn=True,
    base_chosen=False,
    how_to_free="a <freejoint> frees a body",
    parents="filtered",
    surfaces=False,
    seen_by_shapes=False,
    shown_by_group=True,
    own_densities=True,
)


def read_mjcf(root: Element, plain: Reading, folders: Assets, *, max_mb: float) -> Articulation:
    """<mujoco>: the whole model. Raises ModelError with file and line."""
    reading = MjcfReading.of(plain, folders)
    tree = expand(reading, root, Family(max_mb, [] if folders.folder is None else [Path(plain.file).resolve()]))
    note_misplaced(reading, root)
    options = read_options(reading, root)
    meshes = read_meshes(reading, root, tree.scope)
    bodies = Bodies(tree.scope, meshes, options)
    bodies.read(root)
    tendons = read_tendons(bodies, root)
    couplings, loops, tendon_couplings = read_equalities(bodies, tendons, root)
    actuators = read_actuators(bodies, tendons, root)
    bodies.set_springs(tendons)
    add_drags(bodies)
    bodies.switch_off()
    read_velocity_limits(bodies, root)
    read_own_inertials(bodies, root)
    tendons = [switched(tendon, options.off) for tendon in tendons]
    note_springs(bodies, tendons)
    pairs, excluded = read_contacts(bodies.defaults, root)
    check_references(reading, root, names_of(bodies, tendons, actuators, root))
    sensors = read_sensors(bodies, root, actuators)
    reading.note_missing_meshes()
    return Articulation(
        name=root.get("model", "MuJoCo Model"),
        format="mjcf",
        conventions=CONVENTIONS,
        self_collide=True,
        links=tuple(bodies.links),
        joints=tuple(bodies.joints),
        couplings=tuple(couplings),
        loops=tuple(loops),
        tendons=tuple(tendons),
        tendon_couplings=tuple(tendon_couplings),
        wrap_geoms=read_wrap_geoms(bodies, tendons),
        actuators=tuple(actuators),
        sites=tuple(bodies.sites.values()),
        contact_pairs=tuple(pairs),
        no_contact=tuple(excluded),
        sensors=tuple(sensors),
        keyframes=tuple(read_keyframes(bodies, root, actuators)),
        options=options.file,
        notes=tuple(reading.notes),
        ignored=(*ignored_parts(root), *(Ignored(f"flexcomp {name!r}", OF_FLEX) for name in reading.flexes)),
        text=stored_text(tree, meshes.read_from_files()),
        path=reading.file,
    )


def names_of(
    bodies: Bodies, tendons: Sequence[Tendon], actuators: Sequence[Actuator], root: Element
) -> dict[str, Collection[str]]:
    """The names that attributes may refer to, by the kind of what bears them."""
    return {
        "body": bodies.poses,
        "joint": {joint.name for joint in bodies.joints},
        "geom": bodies.shapes,
        "site": bodies.sites,
        "tendon": {tendon.name for tendon in tendons},
        "actuator": {actuator.name for actuator in actuators},
        "camera": {camera.get("name", "") for camera in root.iter("camera")},
    }


def note_springs(bodies: Bodies, tendons: Sequence[Tendon]) -> None:
    """Warn of springdamper beside spatial tendons with armature, which MuJoCo counts in it and artsim does not."""
    heavy = next((tendon for tendon in tendons if tendon.armature and tendon.kind == "spatial"), None)
    if bodies.spring_dampers and heavy:
        what = f"springdamper of joint {next(iter(bodies.spring_dampers))!r} leaves out the armature of spatial tendons"
        bodies.reading.notes.append(Note(heavy.source, what))


def note_misplaced(reading: MjcfReading, root: Element) -> None:
    """Warn of sections in places that MuJoCo does not read."""
    for section in root:
        if tag(section) == "body":
            reading.note(section, f"{describe(section)} stands outside of <worldbody> and is ignored", once="body")
