"""MJCF to an Articulation: the sections in the order in which they need each other."""

from __future__ import annotations

from artsim.loaders.assets import Assets
from artsim.loaders.elements import Element, Reading, tag
from artsim.loaders.mjcf.actuator import read_actuators
from artsim.loaders.mjcf.asset import read_meshes
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.compiler import read_compiler
from artsim.loaders.mjcf.defaults import Defaults
from artsim.loaders.mjcf.equality import read_equalities
from artsim.loaders.mjcf.include import expand_includes, expanded_text
from artsim.loaders.mjcf.keyframe import read_keyframes
from artsim.loaders.mjcf.option import read_options
from artsim.loaders.mjcf.reading import MjcfReading, describe
from artsim.loaders.mjcf.references import check_references
from artsim.loaders.mjcf.replicate import expand_replicates
from artsim.loaders.mjcf.schema import check_names
from artsim.loaders.mjcf.tendon import read_tendons
from artsim.sim.description import Articulation

NOT_YET = frozenset(("deformable",))
# what does not change how the robot moves: looks, statistics, what MuJoCo sizes its arrays by, what it would measure
SENSORS = "sensors are not evaluated yet"


def read_mjcf(
    root: Element, plain: Reading, folders: Assets, *, max_mb: float, ignore_unsupported: bool = False
) -> Articulation:
    """<mujoco>: the whole model. Raises ModelError with file and line."""
    reading = MjcfReading(
        plain.file,
        assets=plain.assets,
        strict=plain.strict,
        balance_inertia=plain.balance_inertia,
        notes=plain.notes,
        folders=folders,
        ignore_unsupported=ignore_unsupported,
    )
    found = expand_includes(reading, root, max_mb)
    check_names(reading, root)
    refuse_unsupported(reading, root)
    text = expanded_text(root) if found else ""  # as written, but in one file
    compiler = read_compiler(reading, root)
    expand_replicates(reading, root, compiler.angles)
    options = read_options(reading, root)
    defaults = Defaults(reading, root)
    meshes = read_meshes(reading, root, defaults, compiler)
    bodies = Bodies(reading, compiler, defaults, meshes, options)
    bodies.read(root)
    couplings, loops = read_equalities(bodies, root)
    tendons = read_tendons(bodies, root)
    actuators = read_actuators(bodies, tendons, root)
    known = {
        "body": bodies.poses,
        "joint": {joint.name for joint in bodies.joints},
        "geom": bodies.shapes,
        "site": bodies.sites,
        "tendon": {tendon.name for tendon in tendons},
        "actuator": {actuator.name for actuator in actuators},
        "camera": {camera.get("name", "") for camera in root.iter("camera")},
    }
    check_references(reading, root, known)
    reading.note_missing_meshes()
    return Articulation(
        name=root.get("model", "MuJoCo Model"),
        format="mjcf",
        links=tuple(bodies.links),
        joints=tuple(bodies.joints),
        couplings=tuple(couplings),
        loops=tuple(loops),
        tendons=tuple(tendons),
        actuators=tuple(actuators),
        sites=tuple(bodies.sites.values()),
        keyframes=tuple(read_keyframes(bodies, root, len(actuators))),
        options=options.file,
        notes=tuple(reading.notes),
        text=text,
        path=reading.file,
    )


def refuse_unsupported(reading: MjcfReading, root: Element) -> None:
    """Sections that would be missing from the robot; a note for those that only measure it."""
    for section in root:
        if tag(section) in NOT_YET and len(section):
            reading.later(section, f"<{tag(section[0])}>")
        elif tag(section) == "sensor" and len(section):
            reading.note(section, SENSORS, once="sensor")
        elif tag(section) == "body":
            reading.note(section, f"{describe(section)} stands outside of <worldbody> and is ignored", once="body")
