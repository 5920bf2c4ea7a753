"""Derivatives of dynamics: differences of our own functions along exact motions, Pinocchio, identities, a closed form.

Differences are of eighth order (naive.py), in every direction of the tangent, with wrenches on all links; reduced ones
see couplings that are polynomials in chains. Pinocchio's derivatives are taken to our tangent, where a free or planar
joint translates along the axes of its parent: v_pin = S(q) v gives τ = Sᵀ τ_pin(q, S v, S a + Ṡ v), and the product
rule the rest.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Articulation, Inertial, Joint, Link, Pose, Tendon, TendonPoint
from artsim.sim.articulation.regularity import singular_links
from artsim.sim.foundation.errors import ModelError, UsageError
from artsim.sim.foundation.jit import disabled
from artsim.sim.foundation.records import WIDTH
from artsim.sim.quantities.catalogue import DERIVATIVES
from artsim.sim.quantities.robot import Robot
from tests.articulation.test_dynamics import ROWS, both_widths
from tests.conftest import ROOT, corpus_entries
from tests.naive import OFFSETS, WEIGHTS, Array, Twin, hat, rotation_of, symmetric, turn_to
from tests.quantities.test_quantities import (
    Case,
    case,
    close,
    dofs_of,
    evaluate,
    every_robot,
    followed,
    full_and_reduced,
    times,
)

Derived = Mapping[str, tuple[str, str]]
DERIVED: Derived = {
    "gravity_derivative": ("gravity", "qpos"),
    "inverse_dynamics_dq": ("inverse_dynamics", "qpos"),
    "inverse_dynamics_dv": ("inverse_dynamics", "qvel"),
    "forward_dynamics_dq": ("forward_dynamics", "qpos"),
    "forward_dynamics_dv": ("forward_dynamics", "qvel"),
    "forward_dynamics_dtau": ("forward_dynamics", "tau"),
    "link_velocity_dq": ("link_velocity", "qpos"),
    "link_acceleration_dq": ("link_acceleration", "qpos"),
    "link_acceleration_dv": ("link_acceleration", "qvel"),
    "momentum_dq": ("momentum", "qpos"),
    "momentum_rate_dq": ("momentum_rate", "qpos"),
    "momentum_rate_dv": ("momentum_rate", "qvel"),
}
"""Derivatives: of which function by which input."""
RATE = ("centroidal_momentum_matrix", "centroidal_bias")  # of the momentum: A q̈ + bias
TOLERANCE = 1e-8  # of differences
CHUNKS = 8  # tests that the corpus is spread over


# ------------------------------------------------------------------ differences


def test_every_derivative_is_checked() -> None:
    assert DERIVED.keys() == DERIVATIVES


@every_robot
@both_widths
@full_and_reduced
@pytest.mark.parametrize("at", ["com", "origin"])
def test_differences_along_every_direction(name: str, width: str, mode: str, at: str) -> None:
    _check_differences(case(name), width, mode, at)


def _check_differences(chosen: Case, width: str, mode: str, at: str, *, regular: bool = True) -> None:
    """Of all derivatives but, unless M is regular, those of forward dynamics, at two rows of a table."""
    options: dict[str, Any] = {"reduced": mode == "reduced", "at": at}
    chosen = followed(chosen) if mode == "reduced" else chosen
    derived = {name: of for name, of in DERIVED.items() if regular or not name.startswith("forward")}
    out = evaluate(chosen.robot, width, chosen.given, *derived, **options)
    dofs = chosen.independent if mode == "reduced" else [*range(chosen.robot.nv)]
    for row in (0, WIDTH):
        for variable in ("qpos", "qvel", "tau"):
            around, slopes = _differences(chosen, row, variable, dofs, derived, options)
            for derivative, (function, by) in derived.items():
                if by == variable:
                    rounding = float(np.abs(around[function]).max(initial=1e-3))  # of the functions' differences
                    close(out[derivative][row], slopes[function], TOLERANCE, 0.03 * rounding)


def _differences(
    chosen: Case, row: int, variable: str, dofs: list[int], derived: Derived, options: dict[str, Any]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The functions (8, n, …) around a row of the table, and their derivatives (…, n) by a variable along dofs."""
    one = {key: values[row] for key, values in chosen.given.items()}
    n, directions = len(dofs), np.eye(chosen.robot.nv)[dofs]
    around = {key: np.broadcast_to(value, (len(OFFSETS), n, *value.shape)).copy() for key, value in one.items()}
    for place, time in enumerate(OFFSETS):
        if variable == "qpos":
            around["qpos"][place] = chosen.twin.moved(one["qpos"], directions, time)
        else:
            around[variable][place] += time * directions
    tables = {key: values.reshape(len(OFFSETS) * n, *values.shape[2:]) for key, values in around.items()}
    functions = {function for function, _ in derived.values()} - {"momentum_rate"} | {*RATE}
    out = chosen.robot.compute(**tables, quantities=sorted(functions), **options)
    out["momentum_rate"] = times(out[RATE[0]], tables["qacc"][:, dofs]) + out[RATE[1]]
    out = {key: values.reshape(len(OFFSETS), n, *values.shape[1:]) for key, values in out.items()}
    return out, {key: np.moveaxis(np.tensordot(WEIGHTS, values, 1), 0, -1) for key, values in out.items()}


# ------------------------------------------------------------------ identities and a closed form


@every_robot
@both_widths
@full_and_reduced
def test_velocity_forces_are_quadratic(name: str, width: str, mode: str) -> None:
    """∂τ/∂v v = 2 C v (Euler); ∂q̈/∂τ is the inverse mass matrix; ∂q̈/∂v = -M⁻¹ ∂τ/∂v."""
    reduced = mode == "reduced"
    chosen = followed(case(name))
    quantities = ("inverse_dynamics_dv", "coriolis", "forward_dynamics_dv", "forward_dynamics_dtau", "mass_matrix")
    out = evaluate(chosen.robot, width, chosen.given, *quantities, reduced=reduced)
    v = chosen.given["qvel"][:, dofs_of(name, mode)]
    close(
        times(out["inverse_dynamics_dv"], v),
        2 * out["coriolis"],
        1e-12,
        float(np.abs(out["mass_matrix"]).max(initial=1e-3)),
    )
    M, inverse = out["mass_matrix"], out["forward_dynamics_dtau"]
    condition = max(float(np.linalg.cond(each)) for each in M)
    close(M @ inverse, np.broadcast_to(np.eye(M.shape[1]), M.shape), 1e-15 * condition + 1e-12)
    close(M @ out["forward_dynamics_dv"], -out["inverse_dynamics_dv"], 1e-14 * condition, 1.0)


@pytest.mark.small
@both_widths
def test_a_pendulum(width: str) -> None:
    """τ = (m l² + armature) q̈ + m g l sin q."""
    bob = Inertial(2.0, Pose((0.0, 0.0, -0.5)), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    hinge = Joint("hinge", "revolute", "base", "bob", axis=(0.0, 1.0, 0.0), armature=0.3)
    robot = Robot.of(Articulation("pendulum", "urdf", (Link("base"), Link("bob", bob)), (hinge,)))
    q = np.linspace(-3, 3, ROWS)[:, None]
    given = {"qpos": q, "qvel": 0 * q + 2.0, "qacc": 0 * q + 5.0, "tau": 0 * q + 1.0}
    out = evaluate(robot, width, given, *DERIVATIVES)
    slope, inertia = 2.0 * 9.81 * 0.5 * np.cos(q)[..., None], 2.0 * 0.25 + 0.1 + 0.3
    close(out["gravity_derivative"], slope, 1e-14)
    close(out["inverse_dynamics_dq"], slope, 1e-14)
    close(out["inverse_dynamics_dv"], 0 * slope, 1e-14, 1.0)
    close(out["forward_dynamics_dq"], -slope / inertia, 1e-14)
    close(out["forward_dynamics_dtau"], 0 * slope + 1 / inertia, 1e-14)


@pytest.mark.small
def test_groups_name_their_parts() -> None:
    chosen = case("zoo")
    out = evaluate(chosen.robot, "scalar", chosen.given, "inverse_dynamics_derivatives", "forward_dynamics_derivatives")
    parts = [*(f"inverse_dynamics_{part}" for part in ("dq", "dv"))]
    assert [*out] == [*parts, *(f"forward_dynamics_{part}" for part in ("dq", "dv", "dtau"))]


@both_widths
@full_and_reduced
def test_fixed_tendons_with_inertia(width: str, mode: str) -> None:
    """They tie dofs of several chains, followers of polynomials among them."""
    zoo = case("zoo")
    cables = {"long": ("slide", "a", "c", "e"), "short": ("d", "f", "slide")}
    tendons = tuple(
        Tendon(
            name, "fixed", tuple(TendonPoint("joint", joint, 0.7 - n) for n, joint in enumerate(joints)), armature=0.8
        )
        for name, joints in cables.items()
    )
    tied = zoo._replace(robot=Robot.of(replace(zoo.robot.articulation, tendons=tendons)))
    _check_differences(tied, width, mode, "com")
    out = [evaluate(each.robot, width, zoo.given, "forward_dynamics_dq") for each in (zoo, tied)]
    assert np.abs(out[0]["forward_dynamics_dq"] - out[1]["forward_dynamics_dq"]).max() > 1e-3


def test_spatial_tendons_with_inertia_are_refused() -> None:
    chosen = case("two_finger_gripper")
    tendon = Tendon("cable", "spatial", (), armature=0.1)
    robot = Robot.of(replace(chosen.robot.articulation, tendons=(tendon,)))
    with pytest.raises(UsageError, match="tendon 'cable' has armature and a path through space"):
        robot.compute(robot.reference, quantities=["forward_dynamics_derivatives"])


# ------------------------------------------------------------------ Pinocchio


class Reference(NamedTuple):
    """Pinocchio's model of a robot, without armature, and where its dofs are among ours."""

    pin: Any
    robot: Robot
    model: Any
    dofs: list[int]

    @classmethod
    def of(cls, robot: Robot, path: str) -> Reference:
        pin = pytest.importorskip("pinocchio")
        floating = robot.articulation.base == "floating"
        model = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer()) if floating else pin.buildModelFromUrdf(path)
        return cls.to(robot, pin, model)

    @classmethod
    def built(cls, robot: Robot) -> Reference:
        """Joint by joint, for joints that URDF has not."""
        pin = pytest.importorskip("pinocchio")
        tree, model = robot.articulation, pin.Model()
        joints = {joint.child: joint for joint in tree.joints}
        places = {"world": (0, pin.SE3.Identity())}
        for link in robot.links:
            floats = link not in joints and tree.base == "floating"
            joint = joints.get(link) or Joint("root_joint", "free" if floats else "fixed", "world", link)
            number, place = places[joint.parent]
            place = place * pin.SE3(rotation_of(joint.pose.rotation), np.array(joint.pose.position))
            if joint.kind != "fixed":
                turn = pin.SE3(turn_to(np.array(joint.axis)) if joint.kind == "planar" else np.eye(3), np.zeros(3))
                number = model.addJoint(number, _pinocchios(pin, joint), place * turn, joint.name)
                place = turn.inverse()
            model.addBodyFrame(link, number, place, 0)
            places[link] = number, place
            body = next(each for each in tree.links if each.name == link).inertial
            if body is not None:
                R = rotation_of(body.pose.rotation)
                inertia = R @ symmetric(body.inertia) @ R.T
                model.appendBodyToJoint(number, pin.Inertia(body.mass, np.array(body.pose.position), inertia), place)
        return cls.to(robot, pin, model)

    @classmethod
    def to(cls, robot: Robot, pin: Any, model: Any) -> Reference:
        labels = robot.labels.joint_dofs
        names = ["root" if name == "root_joint" else name for name in [*model.names][1:]]
        dofs = [k for name in names for k in range(labels[name].start, labels[name].stop)]
        return cls(pin, robot, model, dofs)

    def positions(self, qpos: Array) -> Array:
        """A configuration (nq,) as Pinocchio has it: x, y, z, w; cosine and sine of what turns without end."""
        q = self.pin.neutral(self.model)
        for name, joint in zip([*self.model.names][1:], [*self.model.joints][1:], strict=True):
            x = qpos[self.robot.labels.joint_coords["root" if name == "root_joint" else name]]
            if len(x) in (4, 7):
                x = np.array([*x[:-4], *x[-3:], x[-4]])
            elif joint.nq > joint.nv:
                x = np.array([*x[:-1], np.cos(x[-1]), np.sin(x[-1])])
            q[joint.idx_q : joint.idx_q + joint.nq] = x
        return np.asarray(q)

    def turns(self, qpos: Array) -> Iterator[tuple[list[int], list[int], Array]]:
        """Of joints whose linear velocity Pinocchio has in the child's axes: dofs of translation and of rotation among
        Pinocchio's, and the rotation (3, 3)."""
        for name, joint in zip([*self.model.names][1:], [*self.model.joints][1:], strict=True):
            k = joint.idx_v
            x = qpos[self.robot.labels.joint_coords["root" if name == "root_joint" else name]]
            if len(x) == 7:
                yield [k, k + 1, k + 2], [k + 3, k + 4, k + 5], rotation_of(x[3:])
            elif len(x) == 3:
                c, s = np.cos(x[2]), np.sin(x[2])
                yield [k, k + 1], [k + 2], np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


class Tangent(NamedTuple):
    """Pinocchio's velocities and accelerations at a state of ours, S v and S a + Ṡ v, and their derivatives."""

    q: Array  # its configuration
    v: Array
    a: Array
    S: Array  # (nv, nv)
    turned: Array  # (nv, nv, nv) ∂S/∂q_j by j
    v_dq: Array  # (nv, nv) of S v by q, as the next
    a_dq: Array
    a_dv: Array

    @classmethod
    def at(cls, ours: Reference, qpos: Array, v: Array, a: Array) -> Tangent:
        """At a configuration of ours, and velocities and accelerations of ours in Pinocchio's order."""
        nv = ours.model.nv
        S, rate, a_dv, swing = np.eye(nv), *np.zeros((3, nv, nv))
        turned = np.zeros((nv, nv, nv))
        for linear, angular, R in ours.turns(qpos):
            axes, n = np.eye(3)[:, 3 - len(angular) :], len(linear)
            here, w = np.ix_(linear, linear), axes @ v[angular]
            u = R.T[:, :n] @ v[linear]
            S[here], rate[here] = R.T[:n, :n], (-hat(w) @ R.T)[:n, :n]
            for j, axis in zip(angular, axes.T, strict=True):
                turned[j][here] = (-hat(axis) @ R.T)[:n, :n]
                swing[linear, j] = (hat(w) @ hat(axis) @ u)[:n]
                a_dv[linear, j] = (-hat(axis) @ u)[:n]
        v_dq, a_dq = (np.einsum("jik,k->ij", turned, x) for x in (v, a))
        return cls(ours.positions(qpos), S @ v, S @ a + rate @ v, S, turned, v_dq, a_dq + swing, a_dv + rate)

    def dq(self, by_q: Array, by_v: Array, by_a: Array) -> Array:
        """The derivative by our position of a function of q, v, a from Pinocchio's by its own."""
        return np.asarray(by_q @ self.S + by_v @ self.v_dq + by_a @ self.a_dq)

    def dv(self, by_v: Array, by_a: Array) -> Array:
        """The derivative by our velocity."""
        return np.asarray(by_v @ self.S + by_a @ self.a_dv)


class Slopes(NamedTuple):
    """Pinocchio's derivatives of joint forces at a state, in our tangent and its order of dofs."""

    tau: Array  # (nv,)
    dq: Array  # (nv, nv)
    dv: Array
    M: Array


def _slopes(ours: Reference, qpos: Array, v: Array, a: Array) -> Slopes:
    """Of inverse dynamics; v, a (nv,) ours in Pinocchio's order."""
    pin, model, t = ours.pin, ours.model, Tangent.at(ours, qpos, v, a)
    data = model.createData()
    P, V, M = (np.array(each) for each in pin.computeRNEADerivatives(model, data, t.q, t.v, t.a))
    M = np.triu(M) + np.triu(M, 1).T
    tau = np.array(pin.rnea(model, data, t.q, t.v, t.a))
    dq = t.S.T @ t.dq(P, V, M) + np.einsum("jki,k->ij", t.turned, tau)
    armature = ours.robot.model.armature[ours.dofs]  # whose force is that of v̇ in our axes, not of v̇_pin
    return Slopes(t.S.T @ tau + armature * a, dq, t.S.T @ t.dv(V, M), t.S.T @ M @ t.S + np.diag(armature))


def _pinocchios(pin: Any, joint: Joint) -> Any:
    """A joint of Pinocchio's, planar ones in the plane of x and y."""
    axis = np.array(joint.axis)
    match joint.kind:
        case "revolute" | "continuous":
            return pin.JointModelRevoluteUnaligned(axis)
        case "prismatic":
            return pin.JointModelPrismaticUnaligned(axis)
        case "ball":
            return pin.JointModelSpherical()
        case "planar":
            return pin.JointModelPlanar()
    return pin.JointModelFreeFlyer()


PIN = (
    "arm7",
    "chain20",
    "double_pendulum",
    "finger",
    "quadruped floating",
    "two_finger_gripper floating",
    "planar_base",
)


@pytest.mark.parametrize("name", [*PIN, "zoo", "zoo floating", "tree 105"])
@both_widths
def test_derivatives_as_in_pinocchio(name: str, width: str) -> None:
    """Without wrenches: Pinocchio's turn with the bodies."""
    chosen = case(name)
    given = {key: values for key, values in chosen.given.items() if key != "wrench"}
    path = ROOT / "robots" / f"{name.split()[0]}.urdf"
    ours = Reference.of(chosen.robot, str(path)) if path.exists() else Reference.built(chosen.robot)
    out = evaluate(chosen.robot, width, given, *DERIVATIVES)
    of_origins = evaluate(chosen.robot, width, given, *MOTION, at="origin")
    for row in range(0, ROWS, 3):
        _compare_inverse(ours, given, out, row)
        assert _compare_forward(ours, given, out, row)
        _compare_motion(ours, given, of_origins, row)


def _compare_inverse(ours: Reference, given: Mapping[str, Array], out: Mapping[str, Array], row: int) -> None:
    """A row of our derivatives of gravity and inverse dynamics with Pinocchio's."""
    here = np.ix_(ours.dofs, ours.dofs)
    v, a = (given[key][row, ours.dofs] for key in ("qvel", "qacc"))
    at = _slopes(ours, given["qpos"][row], v, a)
    unit = float(np.abs(at.M).max(initial=1e-3))
    close(out["inverse_dynamics_dq"][row][here], at.dq, 1e-9, unit)
    close(out["inverse_dynamics_dv"][row][here], at.dv, 1e-9, unit)
    close(out["gravity_derivative"][row][here], _slopes(ours, given["qpos"][row], 0 * v, 0 * v).dq, 1e-9, unit)


MOTION = [name for name in DERIVED if name.startswith(("link", "momentum"))]


def _compare_motion(ours: Reference, given: Mapping[str, Array], out: Mapping[str, Array], row: int) -> None:
    """A row of our derivatives of the motion of links, at their origins, and of the momentum with Pinocchio's.

    Pinocchio's accelerations are spatial: d²p/dt² is that of the point and ω × ṗ. Pinocchio's derivatives are those of
    components in the link's axes, which turn: the LOCAL_WORLD_ALIGNED ones are not the derivatives of its velocities in
    these axes. Pinocchio's centre of mass leaves out links that do not move, so that momenta are compared on free
    bases.
    """
    pin, model, data = ours.pin, ours.model, ours.model.createData()
    v, a = (given[key][row, ours.dofs] for key in ("qvel", "qacc"))
    t = Tangent.at(ours, given["qpos"][row], v, a)
    pin.computeForwardKinematicsDerivatives(model, data, t.q, t.v, t.a)
    pin.updateFramePlacements(model, data)
    aligned = pin.LOCAL_WORLD_ALIGNED
    for n, link in enumerate(ours.robot.links):
        frame = model.getFrameId(link, pin.BODY)
        if ours.robot.model.link_body[n] == 0:  # where Pinocchio's are of no frame
            assert not out["link_velocity_dq"][row, n].any()
            continue
        velocity = np.array(pin.getFrameVelocity(model, data, frame, aligned).vector)
        acceleration = np.array(pin.getFrameAcceleration(model, data, frame, aligned).vector)
        turn = np.kron(np.eye(2), data.oMf[frame].rotation)
        P, J = (turn @ np.reshape(x, (6, -1)) for x in pin.getFrameVelocityDerivatives(model, data, frame, pin.LOCAL))
        _, AP, AV, AA = (
            turn @ np.reshape(x, (6, -1)) for x in pin.getFrameAccelerationDerivatives(model, data, frame, pin.LOCAL)
        )
        for part in (slice(0, 3), slice(3, 6)):
            P[part] -= hat(velocity[part]) @ J[3:]
            AP[part] -= hat(acceleration[part]) @ J[3:]
        u, w = np.split(velocity, 2)
        AP[:3] += hat(w) @ P[:3] - hat(u) @ P[3:]
        AV[:3] += hat(w) @ J[:3] - hat(u) @ J[3:]
        close(out["link_velocity_dq"][row, n][:, ours.dofs], t.dq(P, J, 0 * J), 1e-9, 1.0)
        close(out["link_acceleration_dq"][row, n][:, ours.dofs], t.dq(AP, AV, AA), 1e-9, 1.0)
        close(out["link_acceleration_dv"][row, n][:, ours.dofs], t.dv(AV, AA), 1e-9, 1.0)
    if (ours.robot.model.link_body > 0).all() and ours.robot.model.link_mass.any():
        P, RP, RV, A = (
            np.reshape(x, (6, -1)) for x in pin.computeCentroidalDynamicsDerivatives(model, data, t.q, t.v, t.a)
        )
        close(out["momentum_dq"][row][:, ours.dofs], t.dq(P, A, 0 * A), 1e-9, 1.0)
        close(out["momentum_rate_dq"][row][:, ours.dofs], t.dq(RP, RV, A), 1e-9, 1.0)
        close(out["momentum_rate_dv"][row][:, ours.dofs], t.dv(RV, A), 1e-9, 1.0)


def _compare_forward(ours: Reference, given: Mapping[str, Array], out: Mapping[str, Array], row: int) -> bool:
    """The same of forward dynamics, by Carpentier and Mansard's identity; False: the mass matrix is singular."""
    here = np.ix_(ours.dofs, ours.dofs)
    q, v, tau = given["qpos"][row], given["qvel"][row, ours.dofs], given["tau"][row, ours.dofs]
    M = _slopes(ours, q, v, 0 * v).M
    scale = 1.0 / np.sqrt(np.maximum(np.diag(M), 1e-300))
    condition = float(np.linalg.cond(scale[:, None] * M * scale)) if M.size else 1.0
    if condition > 1e10:
        return False
    at = _slopes(ours, q, v, np.linalg.solve(M, tau - _slopes(ours, q, v, 0 * v).tau) if M.size else v)
    tolerance = 1e-9 + 1e-14 * condition
    for name, expected in (("dq", -np.linalg.solve(M, at.dq)), ("dv", -np.linalg.solve(M, at.dv))):
        close(out[f"forward_dynamics_{name}"][row][here], expected, tolerance, 1.0)
    close(out["forward_dynamics_dtau"][row][here], np.linalg.inv(M), tolerance)
    return True


ENTRIES = [entry for entry in corpus_entries("urdf") if entry.get("oracle") and entry["expect"] == "load"]


@pytest.mark.corpus
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_derivatives_of_public_models_as_in_pinocchio(chunk: int) -> None:
    """Fixed and on a free base, in packs and alone, where Pinocchio takes the file."""
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    compared = 0
    for entry in ENTRIES[chunk::CHUNKS]:
        for base in ("fixed", "floating"):
            compared += _compare_public(entry, base)
    assert compared >= 40


def _compare_public(entry: Mapping[str, Any], base: str) -> int:
    """The number of robots compared: 0 or 1."""
    try:
        articulation = replace(load_articulation(entry["path"], meshes=False), base=base)  # type: ignore[arg-type]
        ours = Reference.of(Robot.of(articulation), entry["path"])
    except (ModelError, ValueError):  # that either refuses
        return 0
    robot = ours.robot
    rng = np.random.default_rng(zlib.crc32(entry["id"].encode()))
    qpos = robot.reference + rng.uniform(-1.5, 1.5, (ROWS, robot.nq))
    qvel, qacc, tau = rng.normal(size=(3, ROWS, robot.nv))
    given = {"qpos": _normalised(robot, qpos), "qvel": qvel, "qacc": qacc, "tau": tau}
    forward = [name for name in DERIVATIVES if name.startswith("forward")]
    for rows in (1, ROWS):  # one by one, and in packs
        some = {key: values[:rows] for key, values in given.items()}
        out = robot.compute(**some, quantities=sorted(DERIVATIVES.difference(forward)))
        _compare_inverse(ours, given, out, rows - 1)
        _compare_forward(ours, given, robot.compute(**some, quantities=forward), rows - 1)
        _compare_motion(ours, given, robot.compute(**some, quantities=MOTION, at="origin"), rows - 1)
    return 1


def _normalised(robot: Robot, qpos: Array) -> Array:
    """The table with quaternions of unit length."""
    for k, coord in enumerate(robot.coords):
        if coord.endswith(".qw"):
            qpos[:, k : k + 4] /= np.linalg.norm(qpos[:, k : k + 4], axis=1, keepdims=True)
    return qpos


@pytest.mark.corpus
def test_differences_of_public_mimic_robots() -> None:
    """Reduced ones of all public models with followers."""
    coupled = [entry for entry in ENTRIES if entry.get("mimic")]
    if not coupled:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    compared = 0
    for entry in coupled:
        try:
            articulation = load_articulation(entry["path"], meshes=False)
        except ModelError:
            continue
        robot, twin = Robot.of(articulation), Twin(articulation)
        rng = np.random.default_rng(zlib.crc32(entry["id"].encode()))
        given = dict(zip(("qvel", "qacc", "tau"), rng.normal(size=(3, ROWS, twin.nv)), strict=True))
        given["qpos"] = np.array([twin.random_coordinates(rng) for _ in range(ROWS)])
        given["wrench"] = rng.normal(size=(ROWS, len(robot.links), 6))
        regular = not singular_links(robot.compiled)
        chosen = Case(robot, twin, given)
        _check_differences(chosen, "scalar" if disabled() else "pack", "reduced", "com", regular=regular)
        compared += 1
    assert compared >= 20
