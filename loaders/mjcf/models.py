"""A model as one tree, with includes, attached models and copies in place; and the text that outputs store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import field, replace
from pathlib import Path

from lxml import etree

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.asset import name_beside_includes
from artsim.loaders.mjcf.attach import Child, expand_attachments
from artsim.loaders.mjcf.attached_keys import carry_keyframes
from artsim.loaders.mjcf.compiler import read_compiler
from artsim.loaders.mjcf.defaults import Defaults
from artsim.loaders.mjcf.flexcomp import expand_flexcomps, read_point_files
from artsim.loaders.mjcf.include import expand_includes, find, shown
from artsim.loaders.mjcf.mjcf_schema import check_names
from artsim.loaders.mjcf.reading import MjcfReading, describe, weight
from artsim.loaders.mjcf.replicate import expand_replicates
from artsim.loaders.mjcf.scope import Scope
from artsim.loaders.xml import parse
from artsim.sim.foundation.dataclass import dataclass

NUMBER = "number"  # attribute of a mesh while its model is read


@dataclass(frozen=True, slots=True)
class Tree(Child):
    """A model in one tree. `stored` is the model for outputs: as written, but with all other files inside."""

    stored: Element
    several: bool  # True if the model was in more than one file


@dataclass(slots=True)
class Family:
    """The files of one model: paths of the files being read, and trees of the files already read."""

    max_mb: float
    ancestors: list[Path] = field(default_factory=list)
    known: dict[Path, Tree] = field(default_factory=dict)


def expand(reading: MjcfReading, root: Element, family: Family) -> Tree:
    """The model of this root. Raises ModelError with file and line."""
    found = expand_includes(reading, root, family.max_mb)
    check_names(reading, root)
    refuse_deformables(reading, root)
    models = read_models(reading, root, family)
    compiler = read_compiler(reading, root)
    name_beside_includes(reading, root, compiler)
    listed = read_point_files(reading, root, compiler)
    stored = deepcopy(root)
    number_meshes(reading, root, stored)
    embed(reading, stored, models.values())
    expand_flexcomps(reading, root, compiler.angles)
    expand_attachments(reading, root, models)
    expand_replicates(reading, root, compiler.angles)
    scope = Scope(reading, compiler, Defaults(reading, root))
    return Tree(root, scope, stored, found or listed or bool(models))


def refuse_deformables(reading: MjcfReading, root: Element) -> None:
    """Refuse flexes, which are bodies that bend; skins are drawn over bodies and change nothing."""
    for section in root:
        for element in section if tag(section) in ("asset", "deformable") else ():
            if tag(element) == "flex":
                reading.later(element, "a flex")
            elif tag(element) == "skin":
                reading.note(element, f"{describe(element)} changes looks only and is left out", once="skin")


def meshes_of(root: Element) -> list[Element]:
    """The <mesh> elements in <asset>."""
    return [element for section in children(root, "asset") for element in children(section, "mesh")]


def models_of(root: Element) -> list[Element]:
    """The <model> elements in <asset>."""
    return [element for section in children(root, "asset") for element in children(section, "model")]


def read_models(reading: MjcfReading, root: Element, family: Family) -> dict[str, Tree]:
    """Every <model>, by its name or that of its root."""
    models: dict[str, Tree] = {}
    for element in models_of(root):
        tree = read_model(reading, element, family)
        name = str(element.get("name") or tree.root.get("model", "MuJoCo Model"))
        if name in models:
            reading.refuse(element, f"{describe(element)}: model {name!r} is already defined")
        models[name] = tree
    return models


def read_model(reading: MjcfReading, element: Element, family: Family) -> Tree:
    """The tree of one <model>: of the root that it holds (in an output), else of its file, which is read once."""
    for root in children(element, "mujoco"):
        tree = expand(reading, deepcopy(root), family)
        carry_keyframes(tree.scope, tree.root)
        return tree
    path = find(reading, element)
    if path in family.ancestors:
        chain = " -> ".join(map(repr, (*(above.name for above in family.ancestors), path.name)))
        reading.refuse(element, f"{describe(element)}: {path.name!r} holds itself: {chain}")
    if path not in family.known:
        name = shown(reading, path)
        document = parse(path.read_bytes(), file=name, max_mb=family.max_mb)
        if tag(document.root) != "mujoco":
            reading.refuse(element, f"{describe(element)}: root of {path.name!r} is not <mujoco>")
        reading.notes.extend(document.notes)
        family.ancestors.append(path)
        family.known[path] = tree = expand(in_file(reading, name, path.parent), document.root, family)
        carry_keyframes(tree.scope, tree.root)
        family.ancestors.pop()
    return family.known[path]


def in_file(reading: MjcfReading, name: str, folder: Path) -> MjcfReading:
    """The reading of another file: names are relative to its folder; the roots that may be read stay the same."""
    folders, assets = reading.folders, reading.assets
    assert folders is not None
    roots = folders.roots()
    return replace(
        reading,
        file=name,
        lines={},
        folders=replace(folders, folder=folder, base_roots=roots),
        assets=None if assets is None else replace(assets, folder=folder, base_roots=roots),
    )


def embed(reading: MjcfReading, stored: Element, trees: Iterable[Tree]) -> None:
    """Put the models into the elements that named their files."""
    for element, tree in zip(models_of(stored), trees, strict=True):
        reading.claim(element, weight(tree.stored))
        for old in list(element):
            element.remove(old)
        element.append(deepcopy(tree.stored))


def number_meshes(reading: MjcfReading, root: Element, stored: Element) -> None:
    """Give each mesh one number, in the tree (copies keep it) and in the stored tree."""
    for live, kept in zip(meshes_of(root), meshes_of(stored), strict=True):
        number = str(len(reading.meshes))
        reading.meshes[live] = number
        kept.set(NUMBER, number)


def stored_text(tree: Tree, centred: Mapping[str, str]) -> str:
    """The model as one file, with the numbers of mesh files by mesh number (`centred`); '' if it is as written."""
    for element in tree.stored.iter("mesh"):
        number = str(element.attrib.pop(NUMBER, ""))
        if number in centred:
            element.set("centred", centred[number])
    return etree.tostring(tree.stored, encoding="unicode") if tree.several or centred else ""
