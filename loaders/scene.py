"""Several models as one: placed in the world, names under `<name>/`, joined at the level of the description.

`SceneModel` is one model as read; `merge` makes the Articulation, whose text holds the texts of all models and is read
again by `parse_scene`. A single model that is placed, or has an SRDF or a file of loops, is a scene of one without a
name: its names stay.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, Literal

from artsim.sim.articulation.description import (
    Actuator,
    Articulation,
    Conventions,
    FileOptions,
    Joint,
    Keyframe,
    Link,
    Note,
    Part,
    Pose,
    Sensor,
    Tendon,
)
from artsim.sim.articulation.pose_algebra import compose, rotate
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError, UsageError

Base = Literal["fixed", "floating"]
MARK = '{"artsim_scene": 1,'  # first characters of a scene's text
CONVENTIONS = Conventions(
    pose_drawn=True, base_chosen=False, how_to_free="--base NAME=floating frees the root of a URDF"
)  # of several models together
ROOT = "root"  # the joint of a model's first link, as in a model alone


@dataclass(frozen=True, slots=True)
class SceneModel:
    """A model of a scene: its name ('': alone, names as in the file), its pose in the world, and its texts."""

    name: str
    articulation: Articulation
    place: Pose = field(default_factory=Pose)
    srdf: str = ""  # text; its pairs are in the articulation already
    srdf_file: str = ""
    loops: str = ""  # text of a file of loops; they are in the articulation already
    loops_file: str = ""


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model of a stored scene, with all that reading it again requires."""

    name: str
    file: str
    text: str
    base: Base
    place: Pose
    srdf: str
    srdf_file: str
    loops: str = ""
    loops_file: str = ""


# ------------------------------------------------------------------ names


def scene_names(words: Sequence[str], is_file: Callable[[str], bool]) -> list[tuple[str, str]]:
    """Name and file of each model: NAME=FILE, or the file's stem, numbered from the second of a name on.

    A single model has no name unless one is given. Raises UsageError for a name that is given twice or is not valid.
    """
    pairs = [("", word) if is_file(word) or "=" not in word else _split(word) for word in words]
    given = [name for name, _ in pairs if name]
    double = next((name for name, count in Counter(given).items() if count > 1), None)
    if double is not None:
        raise UsageError(f"two models are called {double!r}")
    if len(pairs) == 1:
        return pairs
    taken = set(given)
    named: list[tuple[str, str]] = []
    for name, file in pairs:
        if not name:
            stem = "stdin" if file == "-" else Path(file).name.partition(".")[0].replace("=", "_") or "model"
            name, count = stem, 1
            while name in taken:
                count += 1
                name = f"{stem}_{count}"
            taken.add(name)
        named.append((name, file))
    return named


def _split(word: str) -> tuple[str, str]:
    name, _, file = word.partition("=")
    if not name or not file or set(name) & set("/,*") or name != name.strip():
        raise UsageError(f"{word!r} is neither a file nor NAME=FILE")
    return name, file


# ------------------------------------------------------------------ one of several


def base_of(articulation: Articulation, wanted: Base | None, *, alone: bool) -> Base:
    """The base of a URDF in a scene: `wanted`; else floating for one link with mass, an object, that is not alone."""
    if not articulation.conventions.base_chosen or (wanted is None and alone):
        return "fixed"
    if wanted is not None:
        return wanted
    inertial = articulation.links[0].inertial if len(articulation.links) == 1 else None
    return "floating" if inertial is not None and inertial.mass > 0 else "fixed"


def placed(articulation: Articulation, place: Pose) -> Articulation:
    """The model at `place`: its root has a joint to the world, and the free bodies of its keyframes move along."""
    children = {joint.child for joint in articulation.joints}
    names = {link.name for link in articulation.links}
    world = "world" if "world" not in names else ""  # the root of a single model may have the name "world"
    kind: Literal["free", "fixed"] = "free" if articulation.base == "floating" else "fixed"
    roots = [
        Joint(ROOT, kind, world, link.name, place, source=link.source)
        for link in articulation.links
        if link.name not in children
    ]
    keyframes = articulation.keyframes
    if keyframes and place != Pose():
        keyframes = tuple(_key_at(articulation, key, place) for key in keyframes)
    if world and place != Pose():
        articulation = _on_moved_world(articulation, place)
    return replace(articulation, joints=(*roots, *articulation.joints), keyframes=keyframes)


def _on_moved_world(articulation: Articulation, place: Pose) -> Articulation:
    """The model whose own ties to the world (SDF's roots, ends of loops, sites) are moved to `place`."""

    def moved(link: str, pose: Pose) -> Pose:
        return compose(place, pose) if link == "world" else pose

    seen: set[str] = set()
    joints = []
    for joint in articulation.joints:  # of several joints of a link, only the first has its pose in the parent
        joints.append(joint if joint.child in seen else replace(joint, pose=moved(joint.parent, joint.pose)))
        seen.add(joint.child)
    loops = [
        replace(loop, frame_a=moved(loop.link_a, loop.frame_a), frame_b=moved(loop.link_b, loop.frame_b))
        for loop in articulation.loops
    ]
    sites = [replace(site, pose=moved(site.link, site.pose)) for site in articulation.sites]
    return replace(articulation, joints=tuple(joints), loops=tuple(loops), sites=tuple(sites))


def _key_at(articulation: Articulation, key: Keyframe, place: Pose) -> Keyframe:
    """The keyframe for the model at `place`: the poses of free bodies, which are in the world, are moved along."""
    from artsim.sim.articulation.compile_model import compile_model

    labels = compile_model(articulation).labels
    qpos, qvel = list(key.qpos), list(key.qvel)
    for joint in articulation.joints:
        if joint.kind != "free":
            continue
        if qpos:
            x, y, z, *turn = qpos[labels.joint_coords[joint.name]]
            pose = compose(place, Pose((x, y, z), (turn[0], turn[1], turn[2], turn[3])))
            qpos[labels.joint_coords[joint.name]] = [*pose.position, *pose.rotation]
        if qvel:
            start = labels.joint_dofs[joint.name].start
            x, y, z = qvel[start : start + 3]
            qvel[start : start + 3] = rotate(place.rotation, (x, y, z))
    return replace(key, qpos=tuple(qpos), qvel=tuple(qvel))


def prefixed(articulation: Articulation, prefix: str) -> Articulation:
    """The model with every name under `prefix`; the world, where the model has no link of that name, is the world."""
    return renamed_by(articulation, lambda name: prefix + name)


def renamed_by(articulation: Articulation, rename: Callable[[str], str]) -> Articulation:
    """The model with every name as `rename` makes it of the old one; the world stays, where no link has its name."""
    links = {link.name for link in articulation.links}

    def named(name: str) -> str:
        return rename(name) if name else ""

    def link_named(name: str) -> str:
        return name if name == "world" and name not in links else named(name)

    def renamed(items: Sequence[Any], *names: str, links: tuple[str, ...] = ()) -> tuple[Any, ...]:
        changes = dict.fromkeys(names, named) | dict.fromkeys(links, link_named)
        return tuple(
            replace(item, **{key: change(getattr(item, key)) for key, change in changes.items()}) for item in items
        )

    a = articulation
    return replace(
        a,
        links=tuple(_renamed_link(link, named) for link in a.links),
        joints=renamed(a.joints, "name", links=("parent", "child")),
        couplings=tuple(replace(c, leader=c.leader and named(c.leader)) for c in renamed(a.couplings, "follower")),
        loops=renamed(a.loops, "name", links=("link_a", "link_b")),
        tendons=tuple(_renamed_tendon(tendon, named) for tendon in a.tendons),
        tendon_couplings=tuple(
            replace(c, leader=c.leader and named(c.leader)) for c in renamed(a.tendon_couplings, "name", "follower")
        ),
        wrap_geoms=renamed(a.wrap_geoms, "name", links=("link",)),
        actuators=tuple(_renamed_actuator(actuator, named, link_named) for actuator in a.actuators),
        sites=renamed(a.sites, "name", links=("link",)),
        contact_pairs=renamed(a.contact_pairs, "geom_a", "geom_b", "name"),
        no_contact=tuple((link_named(first), link_named(second)) for first, second in a.no_contact),
        sensors=tuple(_renamed_sensor(sensor, named, link_named) for sensor in a.sensors),
        keyframes=renamed(a.keyframes, "name"),
    )


Rename = Callable[[str], str]
_BODIES = ("body", "xbody")


def _renamed_link(link: Link, named: Rename) -> Link:
    geoms = tuple(replace(geom, name=named(geom.name)) for geom in link.geoms)
    return replace(link, name=named(link.name), geoms=geoms)


def _renamed_tendon(tendon: Tendon, named: Rename) -> Tendon:
    path = tuple(replace(point, name=named(point.name), side_site=named(point.side_site)) for point in tendon.path)
    return replace(tendon, name=named(tendon.name), path=path)


def _renamed_actuator(actuator: Actuator, named: Rename, link_named: Rename) -> Actuator:
    target = (link_named if actuator.transmission == "body" else named)(actuator.target)
    return replace(actuator, name=named(actuator.name), target=target, reference=named(actuator.reference))


def _renamed_sensor(sensor: Sensor, named: Rename, link_named: Rename) -> Sensor:
    on, of = (link_named if kind in _BODIES else named for kind in (sensor.object_kind, sensor.reference_kind))
    return replace(sensor, name=named(sensor.name), object=on(sensor.object), reference=of(sensor.reference))


# ------------------------------------------------------------------ all of them


def merge(models: Sequence[SceneModel]) -> Articulation:
    """The scene of these models, in their order; an option of the whole run comes from the first model that sets it.

    Links of `world` bodies keep their place in the models. Names are under `<name>/`; joints of roots have the name
    `root`.
    """
    parts = [_part(model) for model in models]
    first = parts[0]
    notes = [note for part in parts for note in part.notes]
    together: dict[str, Any] = {
        name: tuple(item for part in parts for item in getattr(part, name))
        for name in (
            "links joints couplings loops tendons tendon_couplings wrap_geoms actuators sites contact_pairs no_contact "
            "sensors ignored"
        ).split()
    }
    options = _options(models, notes)
    alone = len(models) == 1
    return Articulation(
        name=", ".join(model.name or model.articulation.name for model in models),
        format=first.format if alone else "scene",
        conventions=first.conventions if alone else CONVENTIONS,
        **together,
        keyframes=first.keyframes if alone else _keyframes(parts),
        options=options,
        notes=tuple(notes),
        text=_scene_text(models),
        path=", ".join(part.path for part in parts),
        self_collide=alone and first.self_collide,
        parts=() if alone else tuple(_named_part(model) for model in models),
    )


def _named_part(model: SceneModel) -> Part:
    robot = model.articulation
    assert robot.format != "scene"
    return Part(model.name, robot.format, len(robot.links), robot.self_collide, robot.conventions)


def _part(model: SceneModel) -> Articulation:
    """The model placed and renamed, without actuators that turn no control into a force."""
    robot = placed(model.articulation, model.place)
    robot = replace(robot, actuators=tuple(actuator for actuator in robot.actuators if actuator.acts))
    return prefixed(robot, f"{model.name}/") if model.name else robot


def _options(models: Sequence[SceneModel], notes: list[Note]) -> FileOptions:
    """The simulation options of the first model that sets them; a note names the models with different ones."""
    values: dict[str, Any] = {}
    plain = FileOptions()
    for item in fields(FileOptions):
        setting = [
            (model, getattr(model.articulation.options, item.name))
            for model in models
            if getattr(model.articulation.options, item.name) != getattr(plain, item.name)
        ]
        if not setting:
            continue
        chosen, value = setting[0]
        values[item.name] = value
        for model, other in setting[1:]:
            if other != value:
                what = f"{item.name} is {_shown(value)}, as in {chosen.name!r}, not {_shown(other)}"
                notes.append(Note(model.articulation.source, what))
    return replace(plain, **values)


def _shown(value: object) -> str:
    return " ".join(f"{x:g}" for x in value) if isinstance(value, tuple) else str(value)


def _keyframes(parts: Sequence[Articulation]) -> tuple[Keyframe, ...]:
    """Each part's keyframes, with the other parts in their initial state."""
    if not any(part.keyframes for part in parts):
        return ()
    starts = [_start(part) for part in parts]
    keys: list[Keyframe] = []
    for n, part in enumerate(parts):
        for key in part.keyframes:
            states = [*starts[:n], _filled(key, starts[n]), *starts[n + 1 :]]
            columns = {
                name: tuple(x for state in states for x in getattr(state, name))
                for name in ("qpos", "qvel", "control", "activation")
            }
            keys.append(Keyframe(key.name, **columns))
    return tuple(keys)


def _filled(key: Keyframe, start: Keyframe) -> Keyframe:
    """The keyframe, with the values it leaves out taken from `start`."""
    names = ("qpos", "qvel", "control", "activation")
    return replace(start, **{name: getattr(key, name) or getattr(start, name) for name in names})


def _start(part: Articulation) -> Keyframe:
    """The initial state of a part without a keyframe."""
    from artsim.sim.articulation.compile_model import compile_model
    from artsim.sim.equipment.build_actuators import idle_controls
    from artsim.sim.equipment.equip import labels_of
    from artsim.sim.runs.start import initial_qpos

    compiled, labels = compile_model(part, locks=True), labels_of(part)
    qpos = initial_qpos(compiled, {}, [])
    rest, still = ((0.0,) * len(names) for names in (compiled.labels.dofs, labels.activations))
    return Keyframe("", tuple(qpos.tolist()), rest, idle_controls(part), still)


# ------------------------------------------------------------------ its text


def _scene_text(models: Sequence[SceneModel]) -> str:
    """The scene's text, JSON, which is enough to read the scene again."""
    content = [
        {
            "name": model.name,
            "file": str(Path(path).absolute()) if Path(path := model.articulation.path).is_file() else path,
            "base": model.articulation.base,
            "place": [*model.place.position, *model.place.rotation],
            "text": model.articulation.text,
            "srdf": model.srdf,
            "srdf_file": model.srdf_file,
            **({"loops": model.loops, "loops_file": model.loops_file} if model.loops else {}),
        }
        for model in models
    ]
    return f'{MARK} "models": {json.dumps(content, ensure_ascii=False)}}}\n'


def parse_scene(text: str, name: str) -> list[StoredModel]:
    """The models of a scene's text. Raises ModelError for a text that is no scene."""
    try:
        content = json.loads(text)["models"]
        models = [_stored(entry) for entry in content]
        names = [model.name for model in models]
        if not models or len(set(names)) < len(names) or ("" in names and len(names) > 1):
            raise ValueError("names")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ModelError(f"{name}: not the text of a scene") from None
    return models


def _stored(entry: dict[str, Any]) -> StoredModel:
    texts = [entry[key] for key in ("name", "file", "text", "srdf", "srdf_file")]
    texts += [entry.get(key, "") for key in ("loops", "loops_file")]
    numbers = [float(x) for x in entry["place"]]
    length = math.hypot(*numbers[3:])
    if not all(isinstance(text, str) for text in texts) or entry["base"] not in ("fixed", "floating"):
        raise TypeError("text")
    if len(numbers) != 7 or not all(map(math.isfinite, numbers)) or abs(length - 1.0) > 1e-9:
        raise ValueError("place")
    x, y, z, w, i, j, k = numbers
    name, file, text, *beside = texts
    return StoredModel(name, file, text, entry["base"], Pose((x, y, z), (w, i, j, k)), *beside)
