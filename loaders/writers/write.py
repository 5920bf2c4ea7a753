"""A robot to a file: the format by the suffix, the losses, the meshes, and the proof that the file says the robot."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from artsim.loaders.load import load_articulation, load_text
from artsim.loaders.writers.losses import WHOLE, Losses, geom_name, name_of
from artsim.loaders.writers.mesh_files import MeshFiles, Placing
from artsim.loaders.writers.proof import Proof, prove, with_own_names
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError, OutputError, UsageError, nearest
from artsim.sim.geometry.collision_pairs import collision_pairs

SUFFIXES = {".xml": "mjcf", ".mjcf": "mjcf", ".urdf": "urdf", ".sdf": "sdf", ".usda": "usd", ".usd": "usd"}
MOST_TOLD = 6  # losses that a refusal lists
Writer = Callable[[Articulation, Losses, MeshFiles], str]


class Written(NamedTuple):
    """The result of a writing: the files, what the format did not say, and the proof (None: not asked for)."""

    path: Path
    files: list[str]
    losses: Losses
    proof: Proof | None


def write_articulation(
    robot: Articulation,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    strict: bool = False,
    meshes: Placing = "copy",
    proof: bool = True,
) -> Written:
    """Write a robot to a file of the format that the suffix names, load the file and compare.

    Args:
        robot: the description of a single robot or world.
        path: .xml or .mjcf for MJCF, .urdf, .sdf, .usda or .usd as text.
        force: replace a file that exists.
        strict: refuse what the format does not say.
        meshes: "copy" puts them in a folder meshes beside the file, "path" names them where they are.
        proof: load the file and compare it.

    Raises:
        UsageError: a suffix that names no format, a robot that the format cannot say; with `strict` any loss.
        OutputError: the file exists, or cannot be written.
    """
    place = Path(path)
    refuse_place(place, force=force)
    format_ = format_of(place)
    robot = alone(robot)
    losses = Losses()
    if format_ == "usd":
        return write_usd(robot, place, losses, strict=strict, proof=proof)
    files = MeshFiles(place.parent, meshes, formats_of(format_))
    write = writer_of(format_)
    if format_ == "mjcf" and robot.format != "mjcf":
        text = write(with_excluded(robot, place, write, files, losses), losses, files)
    else:
        text = write(robot, losses, files)
    after = read_back(text, place, robot)
    tell_contacts(robot, after, losses)
    tell_solids(robot, after, losses)
    if strict and losses.physical:
        refuse_losses(place, losses)
    try:
        made = files.save()
        put_whole(place, text)
    except OSError as error:
        raise OutputError(f"{place}: {os.strerror(error.errno or 0)}") from None
    anywhere = meshes == "path"
    return Written(place, made, losses, check_written(robot, place, losses, anywhere=anywhere) if proof else None)


def write_usd(robot: Articulation, place: Path, losses: Losses, *, strict: bool, proof: bool) -> Written:
    """Write a robot as the text of a stage of USD, with its meshes in it."""
    from artsim.loaders.writers.usd_proof import prove_usd
    from artsim.loaders.writers.usd_stage import usd_stage

    stage = usd_stage(robot, losses, touching_links(robot))
    if strict and losses.physical:
        refuse_losses(place, losses)
    try:
        put_whole(place, stage.GetRootLayer().ExportToString())
    except OSError as error:
        raise OutputError(f"{place}: {os.strerror(error.errno or 0)}") from None
    return Written(place, [], losses, prove_usd(robot, place, losses) if proof else None)


def check_written(robot: Articulation, place: Path, losses: Losses, *, anywhere: bool = False) -> Proof:
    """The proof of a file that was written: load it, with meshes from anywhere or from its own folder, and compare."""
    root = Path(place.resolve().anchor) if anywhere else None
    after = load_articulation(place, base=base_in(place, robot), mesh_root=root, max_faces=robot.max_faces)
    return prove(robot, after, losses)


def alone(robot: Articulation) -> Articulation:
    """The robot, of a scene of one (a model with a file of loops) its model. Raises UsageError for other scenes."""
    if len(robot.parts) > 1:
        raise UsageError(f"{robot.name!r} is a scene of {len(robot.parts)} models; a file holds one: convert each")
    if not robot.parts:
        return robot
    (part,) = robot.parts
    return replace(
        robot, format=part.format, self_collide=part.self_collide, conventions=part.conventions, text="", parts=()
    )


def base_in(place: Path, robot: Articulation) -> Literal["fixed", "floating"]:
    """The base with which a file is read: MJCF and SDF say it themselves."""
    return robot.base if place.suffix.lower() == ".urdf" else "fixed"


def with_excluded(robot: Articulation, place: Path, write: Writer, files: MeshFiles, losses: Losses) -> Articulation:
    """The robot with the pairs of links that do not touch by its own rules and would by those of MJCF."""
    plain = replace(robot, no_contact=())
    excluded = sorted(touching_links(read_back(write(plain, Losses(), files), place, robot)) - touching_links(robot))
    known = {frozenset(pair) for pair in robot.no_contact}
    for pair in excluded:
        if frozenset(pair) not in known:
            losses.add("added", "excluded pair", name_of(pair), WHOLE, "do not touch, which other rules say in MJCF")
    needed = {frozenset(pair) for pair in excluded}
    for pair in robot.no_contact:
        if frozenset(pair) not in needed:
            losses.lost("excluded pair", name_of(pair), WHOLE, "would not touch in MJCF anyway", physical=False)
    return replace(robot, no_contact=tuple(excluded))


def read_back(text: str, place: Path, robot: Articulation) -> Articulation:
    """The robot that a text says, without its meshes, before there is a file. Raises UsageError if it says none."""
    try:
        return load_text(text, name=str(place), path=place, base=base_in(place, robot), meshes=False)
    except ModelError as error:
        raise UsageError(f"{robot.name!r} was not written, since the file would not be read: {error}") from None


def tell_contacts(before: Articulation, after: Articulation, losses: Losses) -> None:
    """Tell of links that touch by the rules of one format and not by those of the other."""
    first, second = touching_links(before), touching_links(with_own_names(after, losses))
    for pair in sorted(first - second):
        losses.lost("contact", name_of(pair), WHOLE, "touch no longer, by the rules of this format")
    for pair in sorted(second - first):
        losses.changed("contact", name_of(pair), WHOLE, "touch, by the rules of this format")


def tell_solids(before: Articulation, after: Articulation, losses: Losses) -> None:
    """Tell of meshes on links that are fixed to the world: by the rules of one format they collide as they are, by
    those of the other as their hulls. It affects contacts of the robot itself, or only those with other things."""
    if before.conventions.surfaces == after.conventions.surfaces:
        return
    try:
        compiled = compile_model(before)
    except ModelError:
        return
    table = collision_pairs(before, compiled)
    touching = {id(geom) for (_, geom), allowed in zip(table.geoms, table.allowed, strict=True) if allowed.any()}
    how = "as it is, its inside empty" if after.conventions.surfaces else "as its convex hull"
    for link, body in zip(before.links, compiled.model.link_body.tolist(), strict=True):
        for count, geom in enumerate(link.geoms if body == 0 else ()):
            called = geom_name(link.name, geom, count)
            if geom.kind == "mesh" and geom.role == "collision" and (geom.mesh is not None or geom.vertices):
                told = f"its mesh is fixed to the world and collides {how}, by the rules of this format"
                losses.changed("geom", called, "solid", told, physical=id(geom) in touching)


def touching_links(robot: Articulation) -> set[tuple[str, str]]:
    """The pairs of links of which any geoms may touch."""
    try:
        table = collision_pairs(robot, compile_model(robot))
    except ModelError:  # which a run refuses, too
        return set()
    names = [robot.links[link].name for link, _ in table.geoms]
    found = ((names[a], names[b]) for a, b in np.argwhere(np.triu(table.allowed)).tolist())
    return {(min(pair), max(pair)) for pair in found}


def format_of(path: Path) -> str:
    """The format of a suffix."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise UsageError(f"{path}: suffix {suffix!r} names no format; formats: {known}{nearest(suffix, SUFFIXES)}")
    return SUFFIXES[suffix]


def formats_of(format_: str) -> tuple[str, ...]:
    """The suffixes of meshes that readers of a format read."""
    from artsim.loaders.writers import mjcf_text, sdf_text, urdf_text

    return {"mjcf": mjcf_text.FORMATS, "urdf": urdf_text.FORMATS, "sdf": sdf_text.FORMATS}[format_]


def writer_of(format_: str) -> Writer:
    """The writer of a format."""
    from artsim.loaders.writers.mjcf_text import mjcf_text
    from artsim.loaders.writers.sdf_text import sdf_text
    from artsim.loaders.writers.urdf_text import urdf_text

    return {"mjcf": mjcf_text, "urdf": urdf_text, "sdf": sdf_text}[format_]


def refuse_place(place: Path, *, force: bool) -> None:
    """Refuse a place that is taken, or that has no folder."""
    if place.is_dir():
        raise OutputError(f"{place}: is a folder, want a file")
    if place.is_symlink() or (place.exists() and not force):
        what = "is a link" if place.is_symlink() else "exists"
        raise OutputError(
            f"{place}: {what}; " + ("name the file itself" if place.is_symlink() else "--force replaces it")
        )
    if not place.parent.is_dir():
        raise OutputError(f"{place}: no such folder {str(place.parent)!r}")


def refuse_losses(place: Path, losses: Losses) -> None:
    """Refuse to write what the format cannot say."""
    told = "; ".join(map(str, losses.physical[:MOST_TOLD]))
    more = f"; and {len(losses.physical) - MOST_TOLD} more" if len(losses.physical) > MOST_TOLD else ""
    raise UsageError(f"{place}: not written, since the format does not say all (--strict): {told}{more}")


def put_whole(place: Path, text: str) -> None:
    """Write a file beside its place and move it there, so that it is whole or not there."""
    part = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        with part.open("x", encoding="utf-8") as stream:
            stream.write(text)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
