"""SDFormat to an Articulation: files, frames, links, joints, and the trees and loops of the joint graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from artsim.loaders.assets import Assets
from artsim.loaders.elements import Element, Reading, child, children, describe, named, tag
from artsim.loaders.impossible import judge_inertias
from artsim.loaders.sdf import supported
from artsim.loaders.sdf.closing import close, tendons_of
from artsim.loaders.sdf.frames import WORLD, Kind, Scope, check_frames, own_pose, read_scope, scopes_in
from artsim.loaders.sdf.geometry import rank_friction, read_geoms
from artsim.loaders.sdf.graph import Trees, depth_first, grow
from artsim.loaders.sdf.include import Files, expand, stored_text
from artsim.loaders.sdf.inertial import note_bare, read_inertial
from artsim.loaders.sdf.joint import Hinge, as_joints, note_idle, read_couplings, read_joint
from artsim.loaders.sdf.reading import SdfReading, flag_of, number_of, vector_of
from artsim.loaders.urdf_joint import refuse_mimic_cycles
from artsim.sim.articulation.description import (
    Articulation,
    Conventions,
    FileOptions,
    Ignored,
    Joint,
    JointKind,
    Link,
    Loop,
    Pose,
    Tendon,
)
from artsim.sim.articulation.pose_algebra import compose

CONVENTIONS = Conventions(
    pose_drawn=True,
    base_chosen=False,
    parents="listed",
    how_to_free="a link that no <joint> ties to the world is free, unless its model is <static>",
)
ROOT = "root"  # the joint of a link that no joint of the file holds


class Part(NamedTuple):
    """A link with its element, its scope and its pose in the world."""

    link: Link
    element: Element
    scope: Scope
    pose: Pose


def read_sdf(root: Element, plain: Reading, folders: Assets, *, max_mb: float) -> Articulation:
    """<sdf>: the whole model, or world. Raises ModelError with file and line."""
    reading = SdfReading(
        plain.file,
        assets=plain.assets,
        strict=plain.strict,
        balance_inertia=plain.balance_inertia,
        ignore_unsupported=plain.ignore_unsupported,
        max_faces=plain.max_faces,
        notes=plain.notes,
        lines=plain.lines,
        macros=plain.macros,
    )
    own = () if folders.folder is None else (Path(plain.file).resolve(),)
    files = Files(max_mb, folders, own, list(own))
    expand(reading, root, files)
    supported.tell_unread(reading, root)
    scope, place, options = read_root(reading, root)
    scopes = [(inner, compose(place, pose)) for inner, pose in scopes_in(scope)]
    parts = {part.link.name: part for inner, pose in scopes for part in read_links(reading, inner, pose)}
    if not parts:
        reading.refuse(scope.element, f"{describe(scope.element)} has no links")
    hinges = {hinge.name: hinge for inner, pose in scopes for hinge in read_hinges(reading, inner, pose)}
    refuse_same_names(reading, parts, hinges)
    held = frozenset(name for name, part in parts.items() if part.scope.fixed)
    trees = grow(list(parts), list(hinges.values()), held)
    joints, loops, tendons = put_together(reading, parts, trees, held)
    links = tuple(parts[name].link for name in dict.fromkeys(joint.child for joint in joints))
    links = judge_inertias(reading, {name: part.element for name, part in parts.items()}, links, joints)
    moving = {hinge.name for hinge, _ in trees.above.values() if hinge is not None}
    couplings = read_couplings(reading, hinges, moving)
    refuse_mimic_cycles(reading, couplings)
    note_bare(reading)
    note_idle(reading)
    reading.note_missing_meshes()
    return Articulation(
        name=named(reading, scope.element),
        format="sdf",
        conventions=CONVENTIONS,
        no_contact=tuple((hinge.parent, hinge.child) for hinge in hinges.values() if WORLD not in hinge.ends),
        links=rank_friction(links),
        joints=tuple(joints),
        couplings=tuple(couplings),
        loops=tuple(loops),
        tendons=tuple(tendons),
        options=options,
        notes=tuple(reading.notes),
        ignored=tuple(Ignored(what, why) for what, why in reading.silent.items()),
        text=stored_text(reading, root, files),
        path=reading.file,
    )


# --- the file --------------------------------------------------------------------------------------------------------


def read_root(reading: SdfReading, root: Element) -> tuple[Scope, Pose, FileOptions]:
    """The file's only world or model: its scope, its pose in the world, and the options of a simulation."""
    tops = [item for item in root if tag(item) in ("model", "world")]
    if len(tops) != 1:
        told = ", ".join(describe(item) for item in tops[:8]) or "nothing"
        reading.refuse(root if not tops else tops[1], f"<sdf> holds {told}; want one <model> or one <world>")
    (top,) = tops
    scope = read_scope(reading, top)
    if tag(top) == "model":
        return scope, own_pose(reading, top, scope), FileOptions()
    return scope, Pose(), read_world(reading, top)


def read_world(reading: SdfReading, element: Element) -> FileOptions:
    """<world>: gravity [m/s²], magnetic field [T], time step [s]."""
    for item in children(element, "population"):
        reading.leave_out(item, f"{describe(item)} is not supported", "what it adds")
    if next(children(element, "actor"), None) is not None:
        reading.silent.setdefault("<actor>", supported.LOOKS)
    physics = next(iter(children(element, "physics")), None)
    reading.silent |= {} if physics is None else {"<physics>, but for max_step_size": supported.TUNING}
    options = FileOptions()
    step = number_of(reading, physics, "max_step_size", 0.0, least=0.0)
    if step > 0:
        options = replace(options, timestep=step)
    for holder in (element, physics):  # until version 1.5 in <physics>
        if holder is None:
            continue
        if child(reading, holder, "gravity") is not None and options.gravity is None:
            options = replace(options, gravity=vector_of(reading, holder, "gravity", (0.0, 0.0, -9.8)))
        if child(reading, holder, "magnetic_field") is not None:
            options = replace(options, magnetic=vector_of(reading, holder, "magnetic_field", options.magnetic))
    return options


def refuse_same_names(reading: SdfReading, parts: dict[str, Part], hinges: dict[str, Hinge]) -> None:
    """Refuse two links, or two joints, with one name in the whole model: `a::b` may be a name, or b in a nested a."""
    counts: tuple[tuple[Kind, int], ...] = (("link", len(parts)), ("joint", len(hinges)))
    for kind, count in counts:
        found = elements_in(parts, hinges, kind)
        if len(found) > count:
            reading.refuse(found[-1], f"{describe(found[-1])}: a nested model has a {kind} of the same name")


def elements_in(parts: dict[str, Part], hinges: dict[str, Hinge], kind: Kind) -> list[Element]:
    """The elements of a kind in all scopes."""
    scopes = {id(scope): scope for scope in (*(p.scope for p in parts.values()), *(h.scope for h in hinges.values()))}
    return [item.element for scope in scopes.values() for item in scope.of_kind(kind).values()]


# --- links -----------------------------------------------------------------------------------------------------------


def read_links(reading: SdfReading, scope: Scope, pose: Pose) -> list[Part]:
    """The links of a scope at `pose` in the world; warns of unsupported settings of its model."""
    check_frames(scope)
    refuse_extensions(reading, scope.element)
    collide = flag_of(reading, scope.element, "self_collide")
    return [
        Part(
            read_link(reading, item.element, scope, scope.prefix + name, collide),
            item.element,
            scope,
            compose(pose, scope.pose_of(name, item.element)),
        )
        for name, item in scope.of_kind("link").items()
    ]


def refuse_extensions(reading: SdfReading, element: Element) -> None:
    """Refuse extensions that act on bodies, since their forces would be missing."""
    for item in element:
        if tag(item) in supported.DRAKE:
            reading.leave_out(item, f"{describe(item)} is not supported", "it")


def read_link(reading: SdfReading, element: Element, scope: Scope, name: str, collide: bool) -> Link:
    """The link of a <link>, with `name` in the whole model."""
    refuse_extensions(reading, element)
    decay = child(reading, element, "velocity_decay")
    if any(number_of(reading, decay, part, 0.0) for part in ("linear", "angular")):
        told = f"{describe(element)}: <velocity_decay> is ignored; --link-damping damps links"
        reading.note(element, told, guess=True, once="velocity_decay")
    if flag_of(reading, element, "kinematic"):
        reading.leave_out(element, f"{describe(element)}: <kinematic> is not supported", "it")
    geoms = read_geoms(reading, element, scope, name)
    return Link(
        name=name,
        inertial=read_inertial(reading, element, name, geoms, static=scope.fixed),
        geoms=tuple(geoms),
        self_collide=flag_of(reading, element, "self_collide", collide),
        model=scope.prefix,
        gravity_compensation=0.0 if flag_of(reading, element, "gravity", True) else 1.0,
        source=reading.at(element),
    )


# --- joints ----------------------------------------------------------------------------------------------------------


def read_hinges(reading: SdfReading, scope: Scope, pose: Pose) -> list[Hinge]:
    """The joints of a scope at `pose` in the world."""
    return [read_joint(reading, name, scope, pose) for name in scope.of_kind("joint")]


def put_together(
    reading: SdfReading, parts: dict[str, Part], trees: Trees, held: frozenset[str]
) -> tuple[list[Joint], list[Loop], list[Tendon]]:
    """The joints above the links, parents first, and the loops, with tendons for the forces along their axes."""
    poses = {name: part.pose for name, part in parts.items()}
    above: dict[str, list[Joint]] = {}
    for name in trees.order:
        hinge, turned = trees.above[name]
        if name in held:
            above[name] = [root_joint(parts[name], "fixed")]
        elif hinge is None:
            above[name] = [root_joint(parts[name], "free")]
        else:
            above[name] = as_joints(hinge, poses, reverse=turned)
            if turned and hinge.kind == "ball":
                told = f"joint {hinge.name!r}: its coordinates turn the parent in the child, which is nearer the root"
                reading.note(hinge.element, told)
    still = {WORLD}
    for name in trees.order:
        if all(joint.kind == "fixed" and joint.parent in still for joint in above[name]):
            still.add(name)
    left: list[Hinge] = []
    for hinge in trees.left:
        if {hinge.parent, hinge.child} <= still:
            told = f"{describe(hinge.element)} is between links that stand still and has no effect"
            reading.note(hinge.element, told, once="still")
        else:
            left.append(hinge)
    order = depth_first(trees.order, {name: joints[0].parent for name, joints in above.items()})
    joints = named_apart([joint for name in order for joint in above[name]])
    loops: list[Loop] = []
    tendons: list[Tendon] = []
    for hinge in left:
        loop = close(reading, hinge, poses)
        if loop is not None:
            loops.append(loop)
            tendons += tendons_of(reading, hinge, loop)
    return joints, loops, tendons


def root_joint(part: Part, kind: JointKind) -> Joint:
    """The joint between the world and a link that no joint of the file holds: `root`, in the scope of its model."""
    return Joint(part.scope.prefix + ROOT, kind, WORLD, part.link.name, part.pose, source=part.link.source)


def named_apart(joints: list[Joint]) -> list[Joint]:
    """The joints; a root joint whose name is taken, by a root or another joint, is named after its link."""
    count: dict[str, int] = {}
    for joint in joints:
        count[joint.name] = count.get(joint.name, 0) + 1
    return [
        replace(joint, name=f"{joint.child}_{ROOT}") if joint.parent == WORLD and count[joint.name] > 1 else joint
        for joint in joints
    ]
