"""One robot attached to a link of another, as one description of a single robot: a hand to an arm, an arm to a base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from artsim.loaders.scene import prefixed
from artsim.sim.articulation.description import Articulation, FileOptions, Joint, Keyframe, Note, Pose
from artsim.sim.articulation.pose_algebra import compose
from artsim.sim.foundation.errors import UsageError, nearest

_LISTS = (
    *("couplings", "loops", "tendons", "tendon_couplings", "wrap_geoms", "actuators", "sites", "contact_pairs"),
    *("no_contact", "sensors", "ignored", "notes"),
)
_NAMED = ("links", "joints", "tendons", "actuators", "sites", "sensors")
WORLD = "world"
_SHOWN = 4  # names that a refusal lists


def attached(carrier: Articulation, tool: Articulation, at: str, pose: Pose, prefix: str = "") -> Articulation:
    """The carrier with the tool fixed to its link `at`, where the tool's root link has this pose.

    The tool's names get the prefix. Options of the whole run are the carrier's, a note names those of the tool that
    differ; keyframes of the carrier have the tool in its initial state, those of the tool are left out with a note.

    Raises UsageError: a link that the carrier lacks, names that both have, a tool of several trees or a scene.
    """
    if carrier.parts or tool.parts:
        raise UsageError("a scene of several models cannot be attached, and nothing to it")
    names = [link.name for link in carrier.links]
    if at not in names:
        raise UsageError(f"link {at!r} of {carrier.name!r} does not exist{nearest(at, names)}")
    tool, notes = _without_world(tool)
    tool = prefixed(tool, prefix) if prefix else tool
    _refuse_common(carrier, tool)
    children = {joint.child for joint in tool.joints if joint.parent not in ("", WORLD)}
    roots = [link.name for link in tool.links if link.name not in children]
    if len(roots) != 1:
        raise UsageError(f"{tool.name!r} has {len(roots)} root links ({_some(roots)}); one can be attached")
    (root,) = roots
    ties = [joint for joint in tool.joints if joint.child == root]
    if any(joint.kind not in ("fixed", "free") for joint in ties):
        raise UsageError(f"{root!r} of {tool.name!r} moves in the world by joint {ties[0].name!r}; it cannot be fixed")
    if ties and ties[0].kind == "fixed":
        pose = compose(pose, ties[0].pose)
    mount = Joint(f"{prefix}mount", "fixed", at, root, pose, source=tool.links[0].source)
    if mount.name in {joint.name for joint in (*carrier.joints, *tool.joints)}:
        mount = replace(mount, name=f"{root}_on_{at}")
    joints = [joint for joint in tool.joints if joint.child != root]
    end = _end_of(carrier, at)
    within = {link.name for link in carrier.links[:end]}
    place = sum(joint.child in within for joint in carrier.joints)
    together: dict[str, Any] = {name: (*getattr(carrier, name), *getattr(tool, name)) for name in _LISTS}
    made = replace(
        carrier,
        name=f"{carrier.name}_{tool.name}",
        links=(*carrier.links[:end], *tool.links, *carrier.links[end:]),
        joints=(*carrier.joints[:place], mount, *joints, *carrier.joints[place:]),
        **together,
        keyframes=(),
        self_collide=carrier.self_collide or tool.self_collide,
    )
    told = [*made.notes, *notes, *_notes(carrier, tool)]
    return replace(made, keyframes=_keyframes(carrier, tool, made), notes=tuple(told))


def _without_world(tool: Articulation) -> tuple[Articulation, list[Note]]:
    """The tool without the link that is the world in MJCF and SDF files, and a note where that has shapes."""
    world = next((link for link in tool.links if link.name == WORLD), None)
    if world is None or len(tool.links) == 1:
        return tool, []
    links = tuple(link for link in tool.links if link is not world)
    notes = []
    if world.geoms:
        notes.append(Note(tool.source, f"shapes of the world of {tool.name!r} are left out"))
    return replace(tool, links=links, joints=tuple(j for j in tool.joints if j.child != WORLD)), notes


def _refuse_common(carrier: Articulation, tool: Articulation) -> None:
    """Raise UsageError for names that both have."""
    for kind in _NAMED:
        taken = {item.name for item in getattr(carrier, kind) if item.name}
        both = [item.name for item in getattr(tool, kind) if item.name in taken]
        if both:
            raise UsageError(f"{kind} of both are called {_some(both)}; give a prefix for those of {tool.name!r}")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


def _end_of(robot: Articulation, at: str) -> int:
    """The place in robot.links behind the last link that a link carries, in depth-first order."""
    parent = {joint.child: joint.parent for joint in robot.joints}
    last = 0
    for n, link in enumerate(robot.links):
        above = link.name
        while above and above != at:
            above = parent.get(above, "")
        if above == at:
            last = n + 1
    return last


def _notes(carrier: Articulation, tool: Articulation) -> list[Note]:
    """What of the tool does not hold for both: options of the whole run, and keyframes."""
    plain, told = FileOptions(), []
    for item in fields(FileOptions):
        own, other = (getattr(robot.options, item.name) for robot in (carrier, tool))
        if other not in (own, getattr(plain, item.name)):
            told.append(Note(tool.source, f"{item.name} {other} of {tool.name!r} does not act"))
    if tool.keyframes:
        names = _some([key.name for key in tool.keyframes])
        told.append(Note(tool.source, f"keyframes {names} of {tool.name!r} are left out"))
    return told


def _keyframes(carrier: Articulation, tool: Articulation, made: Articulation) -> tuple[Keyframe, ...]:
    """The carrier's keyframes, with the tool in its initial state."""
    if not carrier.keyframes:
        return ()
    from artsim.sim.articulation.compile_model import compile_model
    from artsim.sim.equipment.build_actuators import idle_controls
    from artsim.sim.equipment.equip import labels_of
    from artsim.sim.runs.start import initial_qpos

    compiled = [compile_model(robot, locks=True) for robot in (carrier, made)]
    rest = initial_qpos(compiled[1], {}, []).tolist()
    before, after = (each.labels for each in compiled)
    active = [labels_of(robot).activations for robot in (carrier, made)]

    def spread(values: Sequence[float], old: Sequence[str], new: Sequence[str], idle: Sequence[float]) -> Any:
        """The values by name, in the order of both together."""
        known = dict(zip(old, values, strict=True)) if values else {}
        return tuple(known.get(name, other) for name, other in zip(new, idle, strict=True)) if values else ()

    return tuple(
        replace(
            key,
            qpos=spread(key.qpos, before.coords, after.coords, rest),
            qvel=spread(key.qvel, before.dofs, after.dofs, [0.0] * len(after.dofs)),
            control=(*key.control, *idle_controls(tool)) if key.control else (),
            activation=spread(key.activation, active[0], active[1], [0.0] * len(active[1])),
        )
        for key in carrier.keyframes
    )
