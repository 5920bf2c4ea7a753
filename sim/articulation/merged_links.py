"""The tree of bodies of an articulation: links joined by fixed joints merged, joints of several dofs spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artsim.sim.articulation.description import Articulation, Inertial, Joint, Link
from artsim.sim.articulation.model import BALL, FREE, PLANAR, PRISMATIC, REVOLUTE
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.rotations import Real, frame_with_z, rotation_matrix, turn_about_z

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
SYMMETRIC = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])  # entries of (xx, xy, xz, yy, yz, zz) in the whole matrix


@dataclass
class Body:
    """A body of the tree."""

    index: int
    parent: int
    joint: Joint | None
    type: int
    dof: int
    coord: int
    rotation: Real  # joint frame in the parent's internal frame
    position: Real
    zero: tuple[Real, Real]  # pose in the parent at which the file draws it


class Tree:
    """Links in order, each with its body, its pose in it and its inertia; bodies are ordered parents first, each with
    the inertia of the links merged into it."""

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
        self.nv, self.nq = nv, nq
        self.link_mass, self.link_com, self.link_inertia = _inertials(self.links)
        self.mass, self.moment, self.inertia = _merged(self)

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


def _inertials(links: Sequence[Link]) -> tuple[Real, Real, Real]:
    """Masses (n,), centres of mass (n, 3) and inertias about them (n, 3, 3) of links, in their axes; 0 without one."""
    inertials = [link.inertial or Inertial(0.0) for link in links]
    # a massless link's centre of mass is its origin (design.md, section 10)
    centres = [inertial.pose.position if inertial.mass else (0.0, 0.0, 0.0) for inertial in inertials]
    turns = np.array([inertial.pose.rotation for inertial in inertials]).reshape(-1, 4)
    turn = rotation_matrix(turns.T).copy()
    about = np.array([inertial.inertia for inertial in inertials]).reshape(-1, 6)[:, SYMMETRIC]
    mass = np.array([inertial.mass for inertial in inertials])
    return mass, np.array(centres).reshape(-1, 3), turn @ about @ turn.swapaxes(1, 2)


def _merged(tree: Tree) -> tuple[Real, Real, Real]:
    """Masses (nb,), moments (nb, 3) and inertias about the origin (nb, 3, 3) of bodies, of all links merged in each."""
    n, nb = len(tree.links), len(tree.bodies)
    mass, moment, inertia = np.zeros(nb), np.zeros((nb, 3)), np.zeros((nb, 3, 3))
    turn, m = np.array(tree.rotation).reshape(n, 3, 3), tree.link_mass[:, None]
    placed = zip(tree.position, tree.rotation, tree.link_com, strict=True)
    centre = np.array([position + rotation @ com for position, rotation, com in placed]).reshape(n, 3)
    square = centre[:, None, :] @ centre[:, :, None]
    of_points = m[:, :, None] * (square * np.eye(3) - centre[:, :, None] * centre[:, None, :])
    body = [body.index for body in tree.body]
    np.add.at(mass, body, tree.link_mass)
    np.add.at(moment, body, m * centre)
    own = turn @ tree.link_inertia @ turn.swapaxes(1, 2)
    np.add.at(inertia, np.repeat(body, 2), np.stack([own, of_points], axis=1).reshape(-1, 3, 3))
    return mass, moment, inertia
