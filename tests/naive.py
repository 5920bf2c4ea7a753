"""The slow obvious twin of the engine: rigid-body dynamics straight from an Articulation, in numpy, loops and 4 × 4s.

Written for reading, independent of the kernels: every quantity is a sum over links of what the textbook says about
one rigid body. Each dof is a screw (6-vector, linear first, at the world's origin) that is fixed either in the frame
before its joint or in the one after it, so its rate is that frame's velocity × screw; this covers all joint types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from artsim.sim.articulation.description import Articulation, Coupling, Joint, Pose, Quaternion

Array = np.ndarray[Any, np.dtype[np.float64]]

COORDS = {"fixed": 0, "revolute": 1, "continuous": 1, "prismatic": 1, "ball": 4, "planar": 3, "free": 7}
DOFS = {"fixed": 0, "revolute": 1, "continuous": 1, "prismatic": 1, "ball": 3, "planar": 3, "free": 6}


STEP = 4e-3  # [s]
OFFSETS = STEP * np.array([-4, -3, -2, -1, 1, 2, 3, 4])
WEIGHTS = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 4 / 5, -1 / 5, 4 / 105, -1 / 280]) / STEP
"""Differences of eighth order: f'(0) = Σ weight · f(offset), to about 1e-13 of f for motions of some rad/s."""


def hat(x: Array) -> Array:
    """x× as a matrix (3, 3)."""
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def rotation_about(axis: Array, angle: float) -> Array:
    """Rodrigues' formula."""
    K = hat(np.asarray(axis))
    return np.asarray(np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K)


def rotation_of(q: Array | Quaternion) -> Array:
    """Rotation matrix of a unit quaternion (w, x, y, z)."""
    K = hat(np.asarray(q[1:]))
    return np.asarray(np.eye(3) + 2 * q[0] * K + 2 * K @ K)


def quaternion_product(a: Array, b: Array) -> Array:
    """a ⊗ b, (…, 4) as (w, x, y, z)."""
    real = a[..., :1] * b[..., :1] - np.sum(a[..., 1:] * b[..., 1:], axis=-1, keepdims=True)
    imaginary = a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])
    return np.concatenate([real, imaginary], -1)


def quaternion_exp(r: Array) -> Array:
    """The unit quaternions (…, 4) of rotation vectors (…, 3) [rad]."""
    half = np.linalg.norm(r, axis=-1, keepdims=True) / 2
    return np.concatenate([np.cos(half), r / 2 * np.sinc(half / np.pi)], -1)


def transform(R: Array, p: Array) -> Array:
    """4 × 4."""
    T = np.eye(4)
    T[:3, :3] = R
    T[:3, 3] = p
    return T


def transform_of(pose: Pose) -> Array:
    """4 × 4 of a pose."""
    return transform(rotation_of(pose.rotation), np.array(pose.position))


def turn_to(axis: Array) -> Array:
    """The rotation of least angle that turns z to `axis`; half a turn about x for -z."""
    z = np.array([0.0, 0.0, 1.0])
    across = np.cross(z, axis)
    sine = float(np.linalg.norm(across))
    if sine < 1e-12:
        return np.eye(3) if axis[2] > 0 else np.diag([1.0, -1.0, -1.0])
    return rotation_about(across / sine, float(np.arctan2(sine, axis[2])))


def screw(linear: Array, angular: Array, point: Array) -> Array:
    """Motion with `linear` velocity at `point` and `angular`, seen at the world's origin."""
    return np.concatenate([linear + np.cross(point, angular), angular])


def cross_motion(v: Array, s: Array) -> Array:
    """v × s: the rate of a screw s fixed in a frame that moves with v."""
    return np.concatenate([np.cross(v[3:], s[:3]) + np.cross(v[:3], s[3:]), np.cross(v[3:], s[3:])])


def cross_force(v: Array, f: Array) -> Array:
    """v ×* f: the same for a wrench (force, torque about the world's origin)."""
    return np.concatenate([np.cross(v[3:], f[:3]), np.cross(v[:3], f[:3]) + np.cross(v[3:], f[3:])])


def symmetric(six: tuple[float, ...]) -> Array:
    """(xx, xy, xz, yy, yz, zz) as a matrix."""
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@dataclass(frozen=True)
class Screw:
    """One dof: its column at the world's origin, and whether it is fixed in the frame after its joint."""

    dof: int
    column: Array
    after: bool


class Twin:
    """Quantities of an articulation in full coordinates; q (nq,), v (nv,) in the engine's order and conventions."""

    def __init__(self, articulation: Articulation, gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)) -> None:
        self.articulation = articulation
        self.gravity = np.array(gravity)
        names = [link.name for link in articulation.links]
        given = {joint.child: joint for joint in articulation.joints}
        root = "free" if articulation.base == "floating" else "fixed"
        self.joints = [given.get(name, Joint("root", root, "world", name)) for name in names]  # type: ignore[arg-type]
        self.parents = [names.index(joint.parent) if joint.parent in names else -1 for joint in self.joints]
        self.coord = np.cumsum([0, *(COORDS[joint.kind] for joint in self.joints)])
        self.dof = np.cumsum([0, *(DOFS[joint.kind] for joint in self.joints)])
        self.nq, self.nv = int(self.coord[-1]), int(self.dof[-1])
        self.links = range(len(names))
        self.first_dof = {joint.name: int(k) for joint, k in zip(self.joints, self.dof, strict=False)}
        self.first_coord = {joint.name: int(k) for joint, k in zip(self.joints, self.coord, strict=False)}

    # -------------------------------------------------------------- where things are

    def poses(self, q: Array) -> list[Array]:
        """4 × 4 of every link in the world."""
        poses: list[Array] = []
        for link in self.links:
            poses.append(self._before(poses, link) @ self._moved(link, q))
        return poses

    def _before(self, poses: list[Array], link: int) -> Array:
        """The frame before a link's joint; the world for a free joint on what cannot move."""
        joint = self.joints[link]
        if joint.kind == "free" and self._stands_still(self.parents[link]):
            return np.eye(4)
        if self.parents[link] < 0:
            return transform_of(joint.pose)
        return np.asarray(poses[self.parents[link]] @ transform_of(joint.pose))

    def _stands_still(self, link: int) -> bool:
        while link >= 0 and self.joints[link].kind == "fixed":
            link = self.parents[link]
        return link < 0

    def _moved(self, link: int, q: Array) -> Array:
        """What the joint's coordinates do."""
        joint = self.joints[link]
        x = q[self.coord[link] : self.coord[link + 1]]
        axis = np.array(joint.axis)
        match joint.kind:
            case "fixed":
                return np.eye(4)
            case "revolute" | "continuous":
                return transform(rotation_about(axis, x[0]), np.zeros(3))
            case "prismatic":
                return transform(np.eye(3), axis * x[0])
            case "ball":
                return transform(rotation_of(x), np.zeros(3))
            case "free":
                return transform(rotation_of(x[3:]), x[:3])
            case "planar":
                return transform(rotation_about(axis, x[2]), turn_to(axis)[:, :2] @ x[:2])
        raise AssertionError(joint.kind)

    def _screws(self, poses: list[Array], link: int) -> list[Screw]:
        """The dofs of a link's joint."""
        joint = self.joints[link]
        before, after = self._before(poses, link), poses[link]
        E, R, p = before[:3, :3], after[:3, :3], after[:3, 3]
        axis, still = E @ np.array(joint.axis), np.zeros(3)
        match joint.kind:
            case "fixed":
                columns = []
            case "revolute" | "continuous":
                columns = [(screw(still, axis, p), True)]
            case "prismatic":
                columns = [(screw(axis, still, p), False)]
            case "ball":
                columns = [(screw(still, R[:, k], p), True) for k in range(3)]
            case "free":
                columns = [(screw(E[:, k], still, p), False) for k in range(3)]
                columns += [(screw(still, R[:, k], p), True) for k in range(3)]
            case "planar":
                plane = E @ turn_to(np.array(joint.axis))
                columns = [(screw(plane[:, k], still, p), False) for k in range(2)]
                columns += [(screw(still, axis, p), True)]
            case _:
                raise AssertionError(joint.kind)
        return [Screw(int(self.dof[link]) + k, column, after) for k, (column, after) in enumerate(columns)]

    def _spatial_jacobian(self, poses: list[Array], link: int) -> Array:
        """(6, nv) of a link, at the world's origin: the screws of all joints above it."""
        J = np.zeros((6, self.nv))
        while link >= 0:
            for s in self._screws(poses, link):
                J[:, s.dof] = s.column
            link = self.parents[link]
        return J

    def com_of_link(self, link: int) -> Array:
        """In the link's frame; the origin of a massless link."""
        inertial = self.articulation.links[link].inertial
        return np.array(inertial.pose.position) if inertial and inertial.mass else np.zeros(3)

    def jacobian(self, q: Array, link: int, *, at: str) -> Array:
        """(6, nv) at the link's centre of mass ("com") or origin ("origin"), world axes."""
        poses = self.poses(q)
        local = self.com_of_link(link) if at == "com" else np.zeros(3)
        point = (poses[link] @ np.append(local, 1))[:3]
        J = self._spatial_jacobian(poses, link)
        J[:3] -= hat(point) @ J[3:]
        return J

    # -------------------------------------------------------------- masses

    def _mass(self, link: int) -> float:
        inertial = self.articulation.links[link].inertial
        return inertial.mass if inertial else 0.0

    def _centre(self, poses: list[Array], link: int) -> Array:
        return np.asarray((poses[link] @ np.append(self.com_of_link(link), 1))[:3])

    def _spatial_inertia(self, poses: list[Array], link: int) -> Array:
        """(6, 6) of one link, at the world's origin: wrench of a spatial acceleration."""
        inertial = self.articulation.links[link].inertial
        if inertial is None:
            return np.zeros((6, 6))
        R = poses[link][:3, :3] @ rotation_of(inertial.pose.rotation)
        c = hat(self._centre(poses, link))
        m = inertial.mass
        angular = R @ symmetric(inertial.inertia) @ R.T - m * c @ c
        return np.block([[m * np.eye(3), -m * c], [m * c, angular]])

    def com(self, q: Array) -> Array:
        """Centre of mass of all links (3,)."""
        poses = self.poses(q)
        moment = sum((self._mass(i) * self._centre(poses, i) for i in self.links), np.zeros(3))
        return np.asarray(moment / sum(self._mass(i) for i in self.links))

    def centroidal_momentum_matrix(self, q: Array) -> Array:
        """(6, nv) about the centre of mass."""
        poses = self.poses(q)
        A = np.zeros((6, self.nv))
        for i in self.links:
            A += self._spatial_inertia(poses, i) @ self._spatial_jacobian(poses, i)
        A[3:] -= hat(self.com(q)) @ A[:3]
        return A

    def mass_matrix(self, q: Array) -> Array:
        """M = Σ Jᵀ I J + armature (nv, nv)."""
        poses = self.poses(q)
        M = np.zeros((self.nv, self.nv))
        for i in self.links:
            J = self._spatial_jacobian(poses, i)
            M += J.T @ self._spatial_inertia(poses, i) @ J
        for i, joint in enumerate(self.joints):
            for k in range(self.dof[i], self.dof[i + 1]):
                M[k, k] += joint.armature
        return M

    def kinetic_energy(self, q: Array, v: Array) -> float:
        """Σ ½ m |ċ|² + ½ ω·Iω [J], without rotors."""
        poses = self.poses(q)
        energy = 0.0
        for i in self.links:
            inertial = self.articulation.links[i].inertial
            if inertial is None:
                continue
            twist = self.jacobian(q, i, at="com") @ v
            R = poses[i][:3, :3] @ rotation_of(inertial.pose.rotation)
            turning = R.T @ twist[3:]
            energy += 0.5 * inertial.mass * float(twist[:3] @ twist[:3])
            energy += 0.5 * float(turning @ symmetric(inertial.inertia) @ turning)
        return energy

    def bias(self, q: Array, v: Array) -> Array:
        """C v + g (nv,): Newton and Euler for every link that falls upwards at -gravity."""
        poses = self.poses(q)
        velocity: list[Array] = []
        acceleration: list[Array] = []
        tau = np.zeros(self.nv)
        for i in self.links:
            above = self.parents[i]
            v_before = velocity[above] if above >= 0 else np.zeros(6)
            a = acceleration[above] if above >= 0 else np.concatenate([-self.gravity, np.zeros(3)])
            screws = self._screws(poses, i)
            v_after = v_before + sum((s.column * v[s.dof] for s in screws), np.zeros(6))
            for s in screws:
                a = a + cross_motion(v_after if s.after else v_before, s.column) * v[s.dof]
            velocity.append(v_after)
            acceleration.append(a)
            Y = self._spatial_inertia(poses, i)
            wrench = Y @ a + cross_force(v_after, Y @ v_after)
            tau += self._spatial_jacobian(poses, i).T @ wrench
        return tau

    def gravity_force(self, q: Array) -> Array:
        """g (nv,) = -Σ m Jᵀ gravity."""
        return -sum(
            (self._mass(i) * self.jacobian(q, i, at="com")[:3].T @ self.gravity for i in self.links), np.zeros(self.nv)
        )

    # -------------------------------------------------------------- coordinates

    def moved(self, q: Array, v: Array, time: float) -> Array:
        """q (…, nq) after `time` at constant v (…, nv): exact, rotations on the group."""
        new = np.broadcast_to(q, (*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.nq)).copy()
        for i, joint in enumerate(self.joints):
            n, k = int(self.coord[i]), int(self.dof[i])
            linear = {"ball": 0, "free": 3}.get(joint.kind, DOFS[joint.kind])
            new[..., n : n + linear] += time * v[..., k : k + linear]
            if joint.kind in ("ball", "free"):
                turn = quaternion_exp(time * v[..., k + linear : k + linear + 3])
                n += linear
                new[..., n : n + 4] = quaternion_product(new[..., n : n + 4], turn)
        return new

    def rotations(self, dofs: Sequence[int]) -> list[list[int]]:
        """Places, in a list of dofs, of the angular velocities in body axes."""
        ends = [int(self.dof[i + 1]) for i, joint in enumerate(self.joints) if joint.kind in ("ball", "free")]
        return [[dofs.index(end - 3 + k) for k in range(3)] for end in ends]

    def random_coordinates(self, rng: np.random.Generator) -> Array:
        """Angles and distances in (-1, 1), uniform rotations."""
        q = rng.uniform(-1, 1, self.nq)
        for i, joint in enumerate(self.joints):
            if joint.kind in ("ball", "free"):
                turn = rng.normal(size=4)
                q[self.coord[i + 1] - 4 : self.coord[i + 1]] = turn / np.linalg.norm(turn)
        return q

    # -------------------------------------------------------------- couplings, as composed polynomials

    def independent(self) -> list[int]:
        """Dofs that follow nothing."""
        followers = {self.first_dof[c.follower] for c in self.articulation.couplings}
        return [k for k in range(self.nv) if k not in followers]

    def _composed(self) -> dict[str, tuple[str | None, Polynomial]]:
        """Follower → what moves it in the end, and by which polynomial."""
        by_follower = {c.follower: c for c in self.articulation.couplings}

        def composed(c: Coupling) -> tuple[str | None, Polynomial]:
            polynomial = Polynomial(c.coefficients)
            leader = c.leader
            while leader in by_follower:
                polynomial = polynomial(Polynomial(by_follower[leader].coefficients))
                leader = by_follower[leader].leader
            return leader, polynomial

        return {name: composed(c) for name, c in by_follower.items()}

    def followed(self, q: Array) -> Array:
        """q with every follower where its leader puts it."""
        new = q.copy()
        for name, (leader, polynomial) in self._composed().items():
            new[self.first_coord[name]] = polynomial(q[self.first_coord[leader]] if leader else 0.0)
        return new

    def coupling_matrix(self, q: Array) -> Array:
        """G (nv, nu): v = G u."""
        independent = self.independent()
        G = np.zeros((self.nv, len(independent)))
        for column, k in enumerate(independent):
            G[k, column] = 1.0
        for name, (leader, polynomial) in self._composed().items():
            if leader:
                slope = polynomial.deriv()(q[self.first_coord[leader]])
                G[self.first_dof[name], independent.index(self.first_dof[leader])] = slope
        return G

    def coupling_drift(self, q: Array, u: Array) -> Array:
        """Ġ u (nv,)."""
        independent = self.independent()
        drift = np.zeros(self.nv)
        for name, (leader, polynomial) in self._composed().items():
            if leader:
                speed = u[independent.index(self.first_dof[leader])]
                drift[self.first_dof[name]] = polynomial.deriv(2)(q[self.first_coord[leader]]) * speed**2
        return drift

    def coupling_rate(self, q: Array, u: Array) -> Array:
        """Ġ (nv, nu)."""
        independent = self.independent()
        rate = np.zeros((self.nv, len(independent)))
        for name, (leader, polynomial) in self._composed().items():
            if leader:
                column = independent.index(self.first_dof[leader])
                bend = polynomial.deriv(2)(q[self.first_coord[leader]])
                rate[self.first_dof[name], column] = bend * u[column]
        return rate
