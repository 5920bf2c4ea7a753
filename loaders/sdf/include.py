"""Files of SDFormat as one tree of the newest version: older versions brought up to it, <include>s replaced.

An <include> names a model's file or its folder, on this machine: a path, file://, model:// or package://. The
resolution of these names and the roots that may be read are those of assets.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import field, replace
from pathlib import Path
from urllib.parse import unquote

from lxml import etree

from artsim.loaders.assets import MAX_URI, AssetMissingError, AssetRefusedError, Assets, escapes, listed
from artsim.loaders.elements import Element, child, children, describe, tag
from artsim.loaders.sdf.frames import MODEL, MOST_NESTED, WORLD, read_scope
from artsim.loaders.sdf.reading import Origin, SdfReading, attribute_flag, flag_of, read_pose, text_of
from artsim.loaders.xml import MAX_ELEMENTS, check_size, parse
from artsim.sim.articulation.description import Pose
from artsim.sim.articulation.pose_algebra import compose, inverse
from artsim.sim.foundation.budget import MORE, allowed
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ArtsimError

NEWEST = (1, 12)
OLDEST = (1, 4)
READ = "1.4 to 1.12"
MAX_CONFIG_MB = 1.0
OWN_AXES = (1, 5)  # first version with axes in the joint's frame, unless use_parent_model_frame is set
EXPRESSED = (1, 7)  # first version in which expressed_in and relative_to give the frame
NET = re.compile(r"https?://", re.IGNORECASE)
MERGED = ("link", "model", "joint", "frame")  # parts of a merged model that are taken over
MERGED_INTO_WORLD = ("model", "joint", "frame")
LIGHT, SEEN = "<include> of a light or an actor", "it is only seen"
PLANE = Path("model://ground_plane")  # Gazebo's model, used if there is no file of this name
COPIES = 4  # most elements copied, as a multiple of those that a model may have
HELP = "; --mesh-root DIR and GZ_SIM_RESOURCE_PATH name folders of models"


GAZEBO = re.compile(
    r"(?:model://|https?://fuel\.(?:gazebosim|ignitionrobotics)\.org/(?:1\.0/)?openrobotics/models/)?"
    r"(sun|ground[ _]plane)(?:/(?:\d+|tip|model\.sdf))?/?",
    re.IGNORECASE,
)
GROUND_PLANE = """<sdf version="1.12"><model name="ground_plane"><static>true</static><link name="link">
<collision name="collision"><geometry><plane><normal>0 0 1</normal><size>100 100</size></plane></geometry>
<surface><friction><ode><mu>100</mu><mu2>50</mu2></ode></friction></surface></collision>
<visual name="visual"><geometry><plane><normal>0 0 1</normal><size>100 100</size></plane></geometry></visual>
</link></model></sdf>"""  # the model of Gazebo


@dataclass(slots=True)
class Files:
    """The files of one model: limits of reading [MB, elements], the files being read, and those already read. A file is
    read once, and its elements are copied for each <include>. `elements` counts those of the whole model so far,
    `copies` all that were copied, also into files that are copied in turn.
    """

    max_mb: float
    assets: Assets
    own: tuple[Path, ...] = ()  # the model's own file; none for a text
    ancestors: list[Path] = field(default_factory=list)  # files being read
    megabytes: float = 0.0
    elements: int = 0
    copies: int = 0
    count: int = 0  # of <include>s
    read: dict[Path, Template | None] = field(default_factory=dict)  # None: the file has no moving parts
    found: dict[tuple[str, Path | None], Path] = field(default_factory=dict)  # by uri and folder of the includer


@dataclass(slots=True)
class Template:
    """The model of a file with all that it includes, to be copied: its elements, and the files of some of them."""

    model: Element
    elements: int
    homes: list[tuple[int, Origin]]  # by number in document order


def expand(reading: SdfReading, root: Element, files: Files) -> None:
    """Convert the file of this root to the newest version and replace its <include>s by the included models."""
    upgrade(reading, root)
    for element in list(includes(root)):
        include(reading, element, files)


def upgrade(reading: SdfReading, root: Element) -> None:
    """Convert elements of older versions to those of the newest. Raises ModelError for a version that is not read."""
    version = version_of(reading, root)
    if version < EXPRESSED:
        for pose in root.iter("pose"):
            frame = pose.attrib.pop("frame", "")
            if frame:
                pose.set("relative_to", str(frame))
        for axis in root.iter("axis", "axis2"):
            xyz = child(reading, axis, "xyz")
            if xyz is not None and (version < OWN_AXES or flag_of(reading, axis, "use_parent_model_frame")):
                xyz.set("expressed_in", MODEL)
        for old in list(root.iter("use_parent_model_frame")):
            parent = old.getparent()
            if parent is not None and tag(parent) in ("axis", "axis2"):
                parent.remove(old)
        for model in root.iter("model"):
            tell_apart(reading, model)
    if version < NEWEST:
        root.set("version", ".".join(map(str, NEWEST)))


def tell_apart(reading: SdfReading, model: Element) -> None:
    """Rename joints and frames with the name of another element, which older versions allow, as Gazebo does."""
    taken = {item.get("name", "") for item in model}
    others = {item.get("name") for item in model if tag(item) in ("link", "model")}
    for kind in ("joint", "frame"):
        items = list(children(model, kind))
        for item in (item for item in items if item.get("name") in others):
            name = item.get("name", "")
            made, count = f"{name}_{kind}", 0
            while made in taken:
                made, count = f"{name}_{kind}{count}", count + 1
            reading.note(item, f"{describe(item)} has the name of another element: called {made!r}")
            item.set("name", made)
            taken.add(made)
        others |= {item.get("name") for item in items}


def version_of(reading: SdfReading, root: Element) -> tuple[int, int]:
    """The version in the file, (major, minor)."""
    text = root.get("version")
    if text is None:
        reading.note(root, f"<sdf> has no version: read as {'.'.join(map(str, NEWEST))}", guess=True)
        return NEWEST
    major, _, minor = text.strip().partition(".")
    if not (major.isdecimal() and minor.isdecimal() and major.isascii() and minor.isascii() and len(text) < 9):
        reading.refuse(root, f"<sdf> has version {text[:40]!r}, want {READ}")
    version = (int(major), int(minor))
    if not OLDEST <= version <= NEWEST:
        reading.refuse(root, f"<sdf> has version {text[:40]!r}; {READ} are read")
    return version


def includes(element: Element) -> Iterator[Element]:
    """Every <include> in a world or a model below the element."""
    open_ = [element]
    while open_:
        for item in open_.pop():
            if tag(item) == "include":
                yield item
            elif tag(item) in ("world", "model"):
                open_.append(item)


def include(reading: SdfReading, element: Element, files: Files) -> None:
    """Replace one <include> by the model that it refers to, with the pose, name and attachment it gives."""
    parent = element.getparent()
    assert parent is not None
    if tag(parent) == "sdf":
        reading.refuse(element, "<include> stands in neither a world nor a model")
    model = included(reading, element, files)
    if model is None:
        parent.remove(element)
        return
    files.count += 1
    override(reading, element, model)
    if attribute_flag(reading, element, "merge"):
        put_merged(reading, element, parent, model)
    else:
        parent.replace(element, model)


def included(reading: SdfReading, element: Element, files: Files) -> Element | None:
    """A copy of the model that an <include> refers to; None if it has no moving parts or is left out."""
    origin = reading.origin(element)
    assets = files.assets if origin is None else origin[1]
    uri = text_of(reading, element, "uri")
    key = (uri, assets.folder)
    if key not in files.found:
        path = find(reading, element, uri, assets)
        if path is None:
            return None
        files.found[key] = path
    path = files.found[key]
    if path in files.ancestors or len(files.ancestors) > MOST_NESTED:
        chain = " -> ".join(above.name for above in (*files.ancestors[-6:], path))
        reading.refuse(element, f"<include>: {path.name!r} includes itself ({chain})")
    if path not in files.read:
        files.read[path] = read_included(reading, element, path, assets, files)
    template = files.read[path]
    return None if template is None else copied(reading, element, template, path, files)


def copied(reading: SdfReading, element: Element, template: Template, path: Path, files: Files) -> Element:
    """A copy of the template's model, with the origins of its elements recorded."""
    most = allowed(MAX_ELEMENTS)
    files.copies += template.elements
    if len(files.ancestors) == len(files.own):
        files.elements += template.elements
    if files.elements > most or template.elements > most or files.copies > COPIES * most:
        told = f"<include>: with {path.name!r} beyond the limit of {allowed(MAX_ELEMENTS):.0f} elements; {MORE}"
        reading.refuse(element, told)
    model = deepcopy(template.model)
    places = list(model.iter())
    for number, origin in template.homes:
        reading.origins[places[number]] = origin
    return model


def read_included(reading: SdfReading, element: Element, path: Path, assets: Assets, files: Files) -> Template | None:
    """The model in a file, with all that it includes; None for a light or an actor, which move nothing."""
    builtin = path == PLANE
    files.megabytes += 0.0 if builtin else path.stat().st_size / 1e6
    if files.megabytes > files.max_mb:
        told = f"<include>: with {path.name!r} the files exceed the cap of {files.max_mb:g} MB (--max-xml-mb)"
        reading.refuse(element, told)
    name = str(path) if builtin else shown(assets, path)
    try:
        document = parse(GROUND_PLANE if builtin else path.read_bytes(), file=name, max_mb=files.max_mb)
    except OSError as error:
        reading.refuse(element, f"<include>: {str(path)!r}: {error.strerror}")
    root = document.root
    reading.notes.extend(document.notes)
    reading.origins[root] = (name, in_folder(assets, path.parent))
    if tag(root) != "sdf":
        reading.refuse(root, f"root of the included {path.name!r} is <{tag(root)[:40]}>, want <sdf>")
    files.ancestors.append(path)
    expand(reading, root, files)
    files.ancestors.pop()
    models = list(children(root, "model"))
    if not models and any(tag(item) in ("light", "actor") for item in root):
        reading.silent.setdefault(LIGHT, SEEN)
        return None
    if len(models) != 1:
        reading.refuse(root, f"the included {path.name!r} holds {len(models)} models, want one")
    reading.origins[models[0]] = reading.origins.pop(root)
    places = list(models[0].iter())
    homes = [(number, reading.origins[item]) for number, item in enumerate(places) if item in reading.origins]
    return Template(models[0], len(places), homes)


def override(reading: SdfReading, element: Element, model: Element) -> None:
    """Override name, pose, static and placement_frame of the model by the values in the <include>."""
    for item in element:
        name = tag(item)
        if name == "name":
            model.set("name", text_of(reading, element, "name"))
        elif name in ("pose", "static"):
            for old in list(children(model, name)):
                model.remove(old)
            model.append(at_home(reading, deepcopy(item), item))
        elif name == "placement_frame":
            if child(reading, element, "pose") is None:
                reading.refuse(element, "<include> has a <placement_frame> and no <pose>")
            model.set("placement_frame", text_of(reading, element, "placement_frame"))
        elif name == "experimental:params":
            reading.leave_out(item, "<include>: <experimental:params> changes the included model", "it")
        elif name == "plugin":
            reading.silent.setdefault("<plugin>", "Gazebo's plugins are not run")
        elif name not in ("uri", "namespace") and ":" not in name:
            reading.note(item, f"{describe(item)} is not part of SDFormat; ignored", guess=True)


def at_home(reading: SdfReading, copy: Element, original: Element) -> Element:
    """A copy of an element with the file and line of the original in messages."""
    origin = reading.origin(original)
    reading.origins[copy] = origin or (reading.file, reading.assets or Assets(None))
    return copy


def put_merged(reading: SdfReading, element: Element, parent: Element, model: Element) -> None:
    """Replace the <include> by the parts of its model, with a frame in place of the model's __model__."""
    scope = read_scope(reading, model)
    name = f"_merged__{model.get('name', '')}__model__"
    given = child(reading, model, "pose")
    pose, relative_to = read_pose(reading, given), "" if given is None else given.get("relative_to", "")
    placement = model.get("placement_frame", "")
    if placement:
        pose = compose(pose, inverse(scope.pose_of(placement, element)))
    proxy = etree.Element("frame", name=name, attached_to=scope.canonical())
    pose_element(proxy, pose, relative_to or (WORLD if tag(parent) == "world" else MODEL))
    position = parent.index(element)
    parent.remove(element)
    kept = MERGED_INTO_WORLD if tag(parent) == "world" else MERGED
    origin = reading.origins[model]
    for item in (proxy, *(item for item in list(model) if tag(item) in (*MERGED, "plugin"))):
        if item is not proxy and tag(item) not in (*kept, "plugin"):
            reading.refuse(item, f"{describe(item)} cannot be merged into a world")
        if item is not proxy:
            stand_in(reading, item, name)
        reading.origins.setdefault(item, origin)
        parent.insert(position, item)
        position += 1


def stand_in(reading: SdfReading, item: Element, proxy: str) -> None:
    """Replace references to __model__, explicit or by default, by references to the frame `proxy`."""
    for inner in item.iter("pose") if tag(item) in ("link", "joint") else ():
        if inner.get("relative_to") == MODEL:
            inner.set("relative_to", proxy)
    pose = child(reading, item, "pose")
    if pose is None and tag(item) in ("link", "model"):
        pose = etree.SubElement(item, "pose")
    if pose is not None:
        by_default = tag(item) in ("link", "model") and not pose.get("relative_to")
        if by_default or pose.get("relative_to") == MODEL:
            pose.set("relative_to", proxy)
    if tag(item) == "frame" and item.get("attached_to", "") in ("", MODEL):
        item.set("attached_to", proxy)
    for end in (child(reading, item, "parent"), child(reading, item, "child")) if tag(item) == "joint" else ():
        if end is not None and (end.text or "").strip() == MODEL:
            end.text = proxy
    for xyz in item.iter("xyz") if tag(item) == "joint" else ():
        if xyz.get("expressed_in") == MODEL:
            xyz.set("expressed_in", proxy)


def pose_element(parent: Element, pose: Pose, relative_to: str) -> None:
    """Append a <pose> to the element, with all digits."""
    w, *vector = pose.rotation
    made = etree.SubElement(parent, "pose", relative_to=relative_to, rotation_format="quat_xyzw")
    made.text = " ".join(map(repr, (*pose.position, *vector, w)))


def find(reading: SdfReading, element: Element, uri: str, assets: Assets) -> Path | None:
    """The file that an <include> names; None if none need be read, or if it is left out on request.

    Raises ModelError: missing, outside the allowed roots, not on this machine.
    """
    known = GAZEBO.fullmatch(unquote(uri))
    named = "" if known is None else known[1].lower()
    try:
        path, tried = look_for(reading, element, uri, assets, known=bool(known))
    except ArtsimError:
        if not known:
            raise
        path, tried = None, ""
    if path is not None:
        return path
    if named == "sun":
        reading.silent.setdefault(LIGHT, SEEN)
    elif known:
        return PLANE
    else:
        reading.leave_out(element, f"<include>: {uri[:80]!r}{tried}", "the model")
    return None


def look_for(
    reading: SdfReading, element: Element, uri: str, assets: Assets, *, known: bool
) -> tuple[Path | None, str]:
    """The file, or None and the places searched. Raises ModelError for a file that must not be read."""
    if NET.match(uri):
        told = "includes are files on this machine; fetch the model and name it model://NAME (--package NAME=DIR)"
        return None, f": {uri.partition('://')[0]}:// is not read: {told}"
    if assets.folder is None and not (assets.packages or assets.mesh_root) and not known:
        reading.refuse(element, f"<include>: {uri[:80]!r}: the model is not in a file")
    if len(uri) > MAX_URI:
        reading.refuse(element, f"<include>: the name has {len(uri)} characters; at most {MAX_URI} are read")
    tried: dict[Path, None] = {}
    refused: AssetRefusedError | None = None
    try:
        for candidate, root in places(uri.replace("\\", "/"), assets):
            try:
                return model_file(assets, candidate, root), ""
            except FileNotFoundError:
                tried[candidate] = None
            except AssetRefusedError as error:
                if not tried:
                    refused = refused or error
    except AssetRefusedError as error:
        refused = error
    except AssetMissingError as error:
        if not (tried or refused):
            return None, f" not found: {error}{HELP}"
    except ArtsimError:
        raise
    except ValueError:  # a NUL in the name
        reading.refuse(element, f"<include>: {uri[:80]!r} is no name of a file")
    if refused:
        reading.refuse(element, f"<include>: {uri[:80]!r}: {refused}")
    return None, f" not found: tried {listed(tried)}{HELP}"


def places(uri: str, assets: Assets) -> Iterator[tuple[Path, Path | None]]:
    """Possible paths of a model, best first; a name that is no path is also searched like model://, as in Gazebo."""
    yield from assets.candidates(uri)
    name = uri.removeprefix("file://")
    if "://" not in name and not name.startswith(("/", ".")) and not escapes(name):
        yield from assets.package_candidates(name)


def model_file(assets: Assets, candidate: Path, root: Path | None) -> Path:
    """The file itself, or the file of a model's folder: the newest that its model.config names, else model.sdf."""
    try:
        if not candidate.is_dir():
            return assets.permit(candidate, root, any_format=True)
        name = named_in(assets, candidate / "model.config", root)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise AssetRefusedError(f"{str(candidate)[:200]!r}: {error.strerror}") from None
    return assets.permit(candidate / name, root, any_format=True)


def named_in(assets: Assets, config: Path, root: Path | None) -> str:
    """The name of the file in a model's folder, from its model.config if there is one."""
    try:
        path = assets.permit(config, root, any_format=True)
    except FileNotFoundError:
        return "model.sdf"
    check_size(path.stat().st_size, file=str(config), max_mb=MAX_CONFIG_MB)
    return named_by(parse(path.read_bytes(), file=str(config), max_mb=MAX_CONFIG_MB).root)


def named_by(config: Element) -> str:
    """The file in a model.config with the newest version that is read."""
    best, name = (0, 0), "model.sdf"
    for item in children(config, "sdf"):
        text = (item.text or "").strip()
        major, _, minor = item.get("version", "1.4").strip().partition(".")
        version = (int(major), int(minor)) if (major + minor).isdecimal() and minor and len(major + minor) < 9 else best
        if text and best < version <= NEWEST:
            best, name = version, text
    return name


def in_folder(assets: Assets, folder: Path) -> Assets:
    """The assets of a file in another folder: names are relative to it; the roots that may be read stay the same."""
    return replace(assets, folder=folder, base_roots=assets.roots())


def shown(assets: Assets, path: Path) -> str:
    """The name of an included file in messages, relative to the model's folder if it is in or beside that folder."""
    if assets.folder is None:
        return str(path)
    real = Path(os.path.realpath(assets.folder))
    relative = os.path.relpath(path, real)
    return str(path) if relative.startswith("../../") else os.path.normpath(assets.folder / relative)


def stored_text(reading: SdfReading, root: Element, files: Files) -> str:
    """The model as one text, with included models and computed masses; '' if it is as written."""
    return etree.tostring(root, encoding="unicode") if files.count or reading.written else ""
