"""<keyframe>: initial states."""

from __future__ import annotations

from collections.abc import Sequence

from artsim.loaders.elements import Element, children
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.reading import Item, States, describe, dict_of
from artsim.sim.articulation.description import Actuator, Joint, Keyframe

DOFS = {"fixed": 0, "revolute": 1, "prismatic": 1, "ball": 3, "free": 6}


def read_keyframes(bodies: Bodies, root: Element, actuators: Sequence[Actuator]) -> list[Keyframe]:
    """The keyframes of every <key>; their lengths are those of the model."""
    start = tuple(number for joint in bodies.joints for number in reference(joint))
    rest = (0.0,) * sum(DOFS[joint.kind] for joint in bodies.joints)
    controls = (0.0,) * sum(len(actuator.inputs) for actuator in actuators)
    states = (0.0,) * sum(actuator.activation_size for actuator in actuators)
    keys: list[Keyframe] = []
    for section in children(root, "keyframe"):
        for element in section:
            item = Item(bodies.reading, element, dict_of(element))
            name = item.text("name") or bodies.free_name("key", f"key_{len(keys)}")
            qpos, qvel = filled(item, "qpos", start), filled(item, "qvel", rest)
            ctrl, act = filled(item, "ctrl", controls), filled(item, "act", states)
            keys.append(Keyframe(name, qpos, qvel, ctrl, act))
            note_left_out(item)
    return [*keys, *attached_keyframes(bodies, actuators)]


def note_left_out(item: Item) -> None:
    """Warn of parts of a <key> that a run does not use."""
    left_out = [name for name in ("mpos", "mquat", "plastic", "time") if item.text(name, "0").strip() not in ("", "0")]
    if left_out:
        why = "mocap bodies stand still, runs start at 0 s"
        item.reading.note(item.element, f"{describe(item.element)}: {', '.join(left_out)} left out: {why}", once="key")


def attached_keyframes(bodies: Bodies, actuators: Sequence[Actuator]) -> list[Keyframe]:
    """The keyframes of attached models; joints and actuators outside these models have the file's initial state."""
    controls = [(actuator, bodies.actuator_states[actuator.name]) for actuator in actuators]
    joints = [(joint, bodies.states.get(joint.name, {})) for joint in bodies.joints]
    names = dict.fromkeys(key for _, states in (*joints, *controls) for key in states)
    keys: list[Keyframe] = []
    for name in names:
        qpos = [x for joint, states in joints for x in part(states, name, "qpos") or reference(joint)]
        qvel = [x for joint, states in joints for x in part(states, name, "qvel") or (0.0,) * DOFS[joint.kind]]
        ctrl = [x for of, states in controls for x in filled_up(part(states, name, "ctrl"), len(of.inputs))]
        keys.append(Keyframe(name, tuple(qpos), tuple(qvel), tuple(ctrl)))
    return keys


def filled_up(given: tuple[float, ...], count: int) -> tuple[float, ...]:
    """The controls of an actuator: an attached keyframe holds the first one, as in MuJoCo 4.0; the rest are 0."""
    return (given + (0.0,) * count)[:count]


def part(states: States, key: str, attribute: str) -> tuple[float, ...]:
    """The part of a keyframe that belongs to a joint or an actuator; () if there is none."""
    return states.get(key, {}).get(attribute, ())


def reference(joint: Joint) -> tuple[float, ...]:
    """The joint's coordinates in the pose of the file."""
    if joint.kind == "free":
        return (*joint.pose.position, *joint.pose.rotation)
    return {"fixed": (), "ball": (1.0, 0.0, 0.0, 0.0)}.get(joint.kind, (joint.reference,))


def filled(item: Item, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
    """The numbers of an attribute, completed by the last ones of the default; () without numbers."""
    if not item.text(name).strip():
        return ()
    given = item.numbers(name, 0, len(default))
    if len(given) < len(default):
        what = (
            f"{describe(item.element)}: {name} holds {len(given)} of {len(default)} numbers; the rest is as in the file"
        )
        item.reading.note(item.element, what)
    return given + default[len(given) :]
