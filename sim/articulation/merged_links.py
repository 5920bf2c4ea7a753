"""The tree of bodies of an articulation: links joined by fixed joints merged, joints of several dofs spread."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from artsim.sim.articulation.description import Articulation, Joint, Link
from artsim.sim.articulation.model import BALL, FREE, PLANAR, PRISMATIC, REVOLUTE
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.rotations import Real, frame_with_z, point_inertia, rotation_matrix, symmetric, turn_about_z

_TYPES = {
    "revolute": REVOLUTE,
    "continuous": REVOLUTE,
    "prismatic": PRISMATIC,
    "ball": BALL,
    "planar": PLANAR,
    "free": FREE,
}
DOFS = (1, 1, 3, 3, 6)  # by joint type
COORDS = (1, 1, 4, 3, 7)


@dataclass
class Body:
    """A body of the tree, with the inertia of the links merged into it so far."""

    index: int
    parent: int
    joint: Joint | None
    type: int
    dof: int
    coord: int
    rotation: Real  # joint frame in the parent's internal frame
    position: Real
    zero: tuple[Real, Real]  # pose in the parent at which the file draws it
    mass: float = 0.0
    moment: Real = field(default_factory=lambda: np.zeros(3))
    inertia: Real = field(default_factory=lambda: np.zeros((3, 3)))


class Tree:
    """Links in order, each with its body and its pose in it; bodies are ordered parents first."""

    def __init__(self, articulation: Articulation) -> None:
        self.links = articulation.links
        joints: dict[str, list[Joint]] = {}
        for joint in articulation.joints:
            joints.setdefault(joint.child, []).append(joint)
        index = {link.name: i for i, link in enumerate(self.links)}
        self.parent = [index.get(joints[link.name][0].parent, -1) if link.name in joints else -1 for link in self.links]
        world = Body(0, 0, None, REVOLUTE, 0, 0, np.eye(3), np.zeros(3), (np.eye(3), np.zeros(3)))
        self.bodies = [world]
        self.body: list[Body] = []
        self.rotation: list[Real] = []
        self.position: list[Real] = []
        nv = nq = 0
        for i, link in enumerate(self.links):
            above = self.parent[i]
            if above >= i:
                raise ModelError(f"{link.source}: link {link.name!r} stands before its parent")
            body, rotation, position = (
                (world, np.eye(3), np.zeros(3))
                if above < 0
                else (self.body[above], self.rotation[above], self.position[above])
            )
            for joint in joints.get(link.name) or [self._root_joint(articulation, link)]:
                position = position + rotation @ np.array(joint.pose.position)
                rotation = rotation @ rotation_matrix(joint.pose.rotation)
                if joint.kind != "fixed":
                    body, rotation, position = self._new_body(joint, body, rotation, position, nv, nq)
                    nv += DOFS[body.type]
                    nq += COORDS[body.type]
            self.body.append(body)
            self.rotation.append(rotation)
            self.position.append(position)
            _add_inertial(body, link, rotation, position)
        self.nv, self.nq = nv, nq

    @staticmethod
    def _root_joint(articulation: Articulation, link: Link) -> Joint:
        kind = "free" if articulation.base == "floating" else "fixed"
        return Joint("root", kind, "world", link.name, source=link.source)  # type: ignore[arg-type]

    def _new_body(
        self, joint: Joint, parent: Body, rotation: Real, position: Real, nv: int, nq: int
    ) -> tuple[Body, Real, Real]:
        """Append a body at the end of a moving joint; return it with the pose of its link in it.

        A reference (the coordinate's value in the file's pose) is removed from the tree: Rz(q - ref) = Rz(-ref) Rz(q),
        and a slide's frame starts that much behind.
        """
        kind = _TYPES[joint.kind]
        zero = (rotation, position)
        turned = np.eye(3) if kind in (BALL, FREE) else frame_with_z(joint.axis)
        anchor = np.array(joint.anchor)
        if anchor.any():
            position = position + rotation @ anchor
        if kind == FREE and parent.index == 0:
            # a free body's coordinates are its pose in the world, wherever the file draws it
            rotation, position = np.eye(3), np.zeros(3)
        elif kind == FREE:
            zero = (np.eye(3), np.zeros(3))  # under a moving parent: relative to the joint frame
        rotation = rotation @ turned
        if joint.reference and kind == PRISMATIC:
            position = position - joint.reference * rotation[:, 2]
        elif joint.reference:
            rotation = rotation @ turn_about_z(-joint.reference)
        body = Body(len(self.bodies), parent.index, joint, kind, nv, nq, rotation, position, zero)
        self.bodies.append(body)
        return body, turned.T, -turned.T @ anchor if anchor.any() else np.zeros(3)


def _add_inertial(body: Body, link: Link, rotation: Real, position: Real) -> None:
    if link.inertial is None:
        return
    mass, com, inertia = in_link(link)
    centre = position + rotation @ com
    body.mass += mass
    body.moment = body.moment + mass * centre
    body.inertia = body.inertia + rotation @ inertia @ rotation.T + point_inertia(mass, centre)


def in_link(link: Link) -> tuple[float, Real, Real]:
    """Mass, centre of mass and inertia about it (3, 3), in the link's axes."""
    inertial = link.inertial
    if inertial is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    turn = rotation_matrix(inertial.pose.rotation)
    # a massless link's centre of mass is its origin (design.md, section 10)
    com = np.array(inertial.pose.position) if inertial.mass else np.zeros(3)
    return inertial.mass, com, turn @ symmetric(inertial.inertia) @ turn.T
