"""<include>: the children of another file's root take its place, in the whole tree, before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

from artsim.loaders.assets import MAX_URI, is_below
from artsim.loaders.elements import Element, required, tag
from artsim.loaders.mjcf.reading import MjcfReading, describe
from artsim.loaders.xml import parse


def expand_includes(reading: MjcfReading, root: Element, max_mb: float) -> bool:
    """Put the named files in place of every <include>; True if there were any.

    As in MuJoCo, names are relative to the model's own folder, and no file comes twice (which excludes cycles).
    Raises ModelError: a file that is missing, outside the allowed roots, no MJCF, or already included.
    """
    seen: set[Path] = set() if reading.folders is None or reading.folders.folder is None else {real(Path(reading.file))}
    budget = max_mb
    found = False
    while (element := next(root.iter("include"), None)) is not None:
        path = find(reading, element)
        if path in seen:
            chain = " -> ".join((*chain_to(reading, element), shown(reading, path)))
            reading.refuse(element, f"<include>: {path.name!r} is already included ({chain})")
        seen.add(path)
        budget -= path.stat().st_size / 1e6
        if budget < 0:
            reading.refuse(
                element, f"<include>: with {path.name!r} the files exceed the cap of {max_mb:g} MB (--max-xml-mb)"
            )
        put_in_place(reading, element, path, max_mb)
        found = True
    return found


def put_in_place(reading: MjcfReading, element: Element, path: Path, max_mb: float) -> None:
    """Replace one <include> by the children of that file's root."""
    parent = element.getparent()
    if parent is None:
        reading.refuse(element, "root is <include>, want <mujoco>")
    if len(element):
        reading.refuse(element, "<include> holds elements; it must be empty")
    name = shown(reading, path)
    try:
        document = parse(path.read_bytes(), file=name, max_mb=max_mb)
    except OSError as error:
        reading.refuse(element, f"<include>: {str(path)!r}: {error.strerror}")
    reading.notes.extend(document.notes)
    position = parent.index(element)
    parent.remove(element)
    for offset, item in enumerate(list(document.root)):
        parent.insert(position + offset, item)
        reading.included[item] = name


def find(reading: MjcfReading, element: Element) -> Path:
    """The file that an <include> or a <model> names. As in MuJoCo, an <include> is searched below the model's folder,
    then below that of the file that holds it; a <model> in the reverse order.
    """
    name = required(reading, element, "file").strip().replace("\\", "/")
    folders = reading.folders
    if folders is None or folders.folder is None:
        reading.refuse(element, f"{describe(element)}: {name!r}: the model is not in a file")
    if not name or "\0" in name or len(name) > MAX_URI:
        reading.refuse(element, f"{describe(element)}: the file name is empty or too long")
    beside = reading.folder_of(element)
    tried = [folders.folder / name, *([] if beside is None else [beside / name])]
    if tag(element) == "model":
        tried.reverse()
    for candidate in tried:
        path = real(candidate)
        if not any(is_below(path, root) for root in folders.roots()):
            reading.refuse(
                element, f"{describe(element)}: {str(path)!r} is outside the allowed roots; --mesh-root DIR allows more"
            )
        if path.is_file():
            return path
    listed = ", ".join(repr(str(path)) for path in dict.fromkeys(tried))
    return reading.refuse(element, f"{describe(element)}: {name!r} not found: tried {listed}")


def chain_to(reading: MjcfReading, element: Element) -> list[str]:
    """The chain of files that include one another, down to the file that holds the element."""
    chain = [reading.file]
    for node in reversed(list(element.iterancestors())):
        file = reading.included.get(node, chain[-1])
        if file != chain[-1]:
            chain.append(file)
    file = reading.at(element).file
    return chain if file == chain[-1] else [*chain, file]


def real(path: Path) -> Path:
    """The path after symbolic links."""
    return Path(os.path.realpath(path))


def shown(reading: MjcfReading, path: Path) -> str:
    """The name of an included file in messages, relative or absolute as the model's own path."""
    folder = reading.folders.folder if reading.folders else None
    if folder is None:
        return str(path)
    try:
        return str(folder / path.relative_to(real(folder)))
    except ValueError:
        return str(path)
