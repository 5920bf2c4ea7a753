"""Quantities of `compute`: identities, derivatives along exact paths, other engines, bad rows, tables of any size.

Derivatives are differences of eighth order along the exact motion of constant velocities (rotations on the group), so
they hold to about 1e-12 and see every term: couplings are polynomials in chains, whose G changes with the position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Articulation, Coupling, Inertial, Joint, Link, Pose
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.jit import disabled
from artsim.sim.foundation.records import WIDTH
from artsim.sim.quantities.catalogue import BAD_INPUT, BAD_RESULT, OK, needed_inputs
from artsim.sim.quantities.robot import Robot
from tests.articulation.test_dynamics import (
    ROWS,
    both_widths,
    random_couplings,
    random_inertial,
    random_joint,
    random_tree,
)
from tests.conftest import ROOT, corpus_entries
from tests.naive import OFFSETS, WEIGHTS, Array, Twin
from tests.tree_quantities import TREE_QUANTITIES

Table = Mapping[str, Array]

FILES = (
    "arm7",
    "quadruped floating",
    "two_finger_gripper",
    "two_finger_gripper floating",
    "parallel_gripper",
    "rack_and_pinion floating",
    "double_pendulum",
    "stiff_drive_chain",
    "planar_base",
    "floating_box",
)
SMALL = ("rack_and_pinion", "zoo", "tree 2")
NAMES = [
    *(pytest.param(name, marks=pytest.mark.small) for name in SMALL),
    *FILES,
    "zoo floating",
    "tree 5",
    *(f"tree {seed}" for seed in range(100, 110)),
]
every_robot = pytest.mark.parametrize("name", NAMES)
full_and_reduced = pytest.mark.parametrize("mode", ["full", "reduced"])
packs_only = pytest.mark.skipif(disabled(), reason="pack width: NUMBA_DISABLE_JIT runs the scalar width only")


# ------------------------------------------------------------------ robots and states


class Case(NamedTuple):
    """A robot, its twin, and a table of states whose followers are anywhere."""

    robot: Robot
    twin: Twin
    given: dict[str, Array]

    @property
    def independent(self) -> list[int]:
        """The independent dofs among all."""
        return self.twin.independent()


@cache
def case(name: str) -> Case:
    """A robot by name: "zoo", "tree <seed>" or a file of robots/; "floating" frees its root."""
    seed = sum(map(ord, name))
    rng = np.random.default_rng(seed)
    first, *rest = name.split()
    if first == "tree":
        rng = np.random.default_rng(int(rest[0]))
        articulation = random_tree(rng, int(rng.integers(3, 6 if int(rest[0]) < 100 else 11)))
        articulation = replace(articulation, couplings=random_couplings(rng, articulation))
    else:
        articulation = zoo(rng) if first == "zoo" else load_articulation(str(ROOT / "robots" / f"{first}.urdf"))
        articulation = replace(articulation, base="floating" if rest else "fixed")
    robot, twin = Robot.of(articulation), Twin(articulation)
    assert [robot.dofs[k] for k in twin.independent()] == list(robot.independent_dofs)
    qpos = np.array([twin.random_coordinates(rng) for _ in range(ROWS)])
    qvel, qacc, tau = rng.normal(size=(3, ROWS, twin.nv))
    wrench = rng.normal(size=(ROWS, len(robot.links), 6))
    return Case(robot, twin, {"qpos": qpos, "qvel": qvel, "qacc": qacc, "tau": tau, "wrench": wrench})


def zoo(rng: np.random.Generator) -> Articulation:
    """Every kind of joint, and a chain of couplings c = f(a), d = g(c), e = h(d) across subtrees, f held constant."""
    tree = {
        "slide": ("prismatic", "base", "l1"),
        "a": ("revolute", "l1", "l2"),
        "ball": ("ball", "l2", "l3"),
        "weld": ("fixed", "l3", "l4"),
        "c": ("revolute", "l4", "l5"),
        "free": ("free", "l2", "l6"),
        "plane": ("planar", "base", "l7"),
        "d": ("continuous", "l7", "l8"),
        "e": ("prismatic", "l8", "l9"),
        "f": ("revolute", "l8", "l10"),
    }
    joints = tuple(random_joint(rng, name, *place) for name, place in tree.items())  # type: ignore[arg-type]
    joints = tuple(replace(joint, armature=0.3) if joint.name in ("a", "c", "ball") else joint for joint in joints)
    links = (Link("base", random_inertial(rng)), *(Link(place[2], random_inertial(rng)) for place in tree.values()))
    couplings = (
        Coupling("e", "d", (0.1, -0.4)),
        Coupling("d", "c", (0.2, 0.6, -0.5)),
        Coupling("c", "a", (-0.1, 0.7, 0.2, -0.3, 0.25)),
        Coupling("f", None, (0.4,)),
    )
    return Articulation("zoo", "urdf", links, joints, couplings=couplings)


def followed(case: Case) -> Case:
    """The same states with followers where and as fast as their leaders put them; qacc at the same independent one."""
    twin, given = case.twin, dict(case.given)
    given["qpos"] = np.array([twin.followed(q) for q in given["qpos"]])
    u, rate = given["qvel"][:, case.independent], given["qacc"][:, case.independent]
    G = np.array([twin.coupling_matrix(q) for q in given["qpos"]])
    drift = np.array([twin.coupling_drift(q, x) for q, x in zip(given["qpos"], u, strict=True)])
    given["qvel"] = times(G, u)
    given["qacc"] = times(G, rate) + drift
    return case._replace(given=given)


def evaluate(robot: Robot, width: str, given: Table, *names: str, **options: Any) -> dict[str, Array]:
    """Quantities of a table in one width; no row of it may be bad."""
    out = with_status(robot, width, given, *names, **options)
    assert np.all(out.pop("status") == OK)
    return out


def with_status(robot: Robot, width: str, given: Table, *names: str, **options: Any) -> dict[str, Array]:
    """Quantities of a table in one width, and "status"."""
    rows = len(given["qpos"])
    if width == "pack":
        assert rows >= WIDTH
        return robot.compute(**given, quantities=[*names, "status"], **options)
    evaluation = robot.evaluation(names, width=1, wrench="wrench" in given, **options)
    inputs, outputs = evaluation.allocate(rows)
    for name in inputs:
        inputs[name][:] = given.get(name, 0.0)
    evaluation.bound(inputs, outputs)(rows)
    return outputs


@cache
def results(name: str, width: str, mode: str, at: str = "com") -> dict[str, Array]:
    """All quantities without wrenches. Modes: "full", "reduced", and "followed": full, of states that are coupled."""
    chosen = followed(case(name)) if mode == "followed" else case(name)
    given = {key: values for key, values in chosen.given.items() if key != "wrench"}
    return evaluate(chosen.robot, width, given, *TREE_QUANTITIES, reduced=mode == "reduced", at=at)


def dofs_of(name: str, mode: str) -> list[int]:
    """The dofs that a mode's quantities count."""
    return case(name).independent if mode == "reduced" else [*range(case(name).robot.nv)]


def states(name: str, mode: str) -> tuple[Array, Array]:
    """Velocity and acceleration in a mode's dofs."""
    given = (followed(case(name)) if mode == "followed" else case(name)).given
    dofs = dofs_of(name, mode)
    return given["qvel"][:, dofs], given["qacc"][:, dofs]


def times(A: Array, x: Array) -> Array:
    """Row by row, A (…, m, n) x (n)."""
    return np.asarray(np.einsum("n...j,nj->n...", A, x))


def close(value: Array, reference: Array, tolerance: float, unit: float = 0.0) -> None:
    """max|Δ| ≤ tolerance · max|reference| (at least `unit`)."""
    assert value.shape == reference.shape
    error = np.abs(value - reference).max(initial=0.0) / max(np.abs(reference).max(initial=0.0), unit, 1e-300)
    assert error <= tolerance, error


# ------------------------------------------------------------------ derivatives

DIFFERENTIATED = (
    "potential_energy",
    "com",
    "link_position",
    "mass_matrix",
    "jacobian",
    "com_jacobian",
    "centroidal_momentum_matrix",
    "coupling_matrix",
)
STATES = 3  # of a case's rows, that are differentiated


def moved(case: Case, rows: int, directions: Array) -> Array:
    """Coordinates (rows, directions, offsets, nq) along motions of constant velocity; directions: (rows, n, nv)."""
    start = case.given["qpos"][:rows, None]
    return np.stack([case.twin.moved(start, directions, time) for time in OFFSETS], axis=2)


def full_width(case: Case, mode: str, values: Array) -> Array:
    """Velocities (…, n) of a mode's dofs among all (…, nv); followers' entries do not matter."""
    full = np.zeros((*values.shape[:-1], case.robot.nv))
    full[..., case.independent if mode == "reduced" else slice(None)] = values
    return full


@cache
def gradients(name: str, width: str, mode: str, at: str) -> dict[str, Array]:
    """Per quantity its derivatives (STATES, …, n) by the dofs; the link quantities' points as `at` says."""
    chosen = case(name)
    n = len(dofs_of(name, mode))
    directions = full_width(chosen, mode, np.broadcast_to(np.eye(n), (STATES, n, n)))
    qpos = moved(chosen, STATES, directions)
    table = {"qpos": qpos.reshape(-1, chosen.robot.nq)}
    out = evaluate(chosen.robot, width, table, *DIFFERENTIATED, reduced=mode == "reduced", at=at)
    found = {}
    for key, values in out.items():
        grid = values.reshape(*qpos.shape[:3], *values.shape[1:])
        found[key] = np.moveaxis(np.einsum("rkt...,t->rk...", grid, WEIGHTS), 1, -1)
    return found


@cache
def rates(name: str, width: str, mode: str, at: str) -> dict[str, Array]:
    """Time derivatives (STATES, …) of what depends on velocity, while it is constant."""
    chosen = case(name)
    qvel = full_width(chosen, mode, states(name, mode)[0][:STATES, None])
    qpos = moved(chosen, STATES, qvel)
    table = {"qpos": qpos.reshape(-1, chosen.robot.nq), "qvel": np.repeat(qvel[:, 0], len(OFFSETS), axis=0)}
    wanted = ("momentum", "link_velocity", "kinetic_energy")
    out = evaluate(chosen.robot, width, table, *wanted, reduced=mode == "reduced", at=at)
    return {
        key: np.einsum("rt...,t->r...", values.reshape(STATES, len(OFFSETS), *values.shape[1:]), WEIGHTS)
        for key, values in out.items()
    }


@every_robot
@both_widths
@full_and_reduced
@pytest.mark.parametrize("at", ["com", "origin"])
def test_rates_of_jacobians(name: str, width: str, mode: str, at: str) -> None:
    """dJ/dt is jacobian_dot (with G's rate when reduced), and velocities' rates are accelerations at qacc = 0."""
    out, slope = results(name, width, mode, at), gradients(name, width, mode, at)
    v, a = (values[:STATES] for values in states(name, mode))
    J, rate = out["jacobian"][:STATES], out["jacobian_dot"][:STATES]
    close(rate, times(slope["jacobian"], v), 1e-10, 1.0)
    free = out["link_acceleration"][:STATES] - times(J, a)
    close(free, rates(name, width, mode, at)["link_velocity"], 1e-10, 1.0)
    if at == "origin":
        close(J[:, :, :3], slope["link_position"], 1e-10, 1.0)


@every_robot
@both_widths
@full_and_reduced
def test_rates_of_the_whole_robot(name: str, width: str, mode: str) -> None:
    out, slope = results(name, width, mode), gradients(name, width, mode, "com")
    rate = rates(name, width, mode, "com")
    v = states(name, mode)[0][:STATES]
    close(out["com_jacobian"][:STATES], slope["com"], 1e-10, 1.0)
    close(out["centroidal_bias"][:STATES], rate["momentum"], 1e-10, 1.0)
    close(out["centroidal_bias"][:STATES], times(times(slope["centroidal_momentum_matrix"], v), v), 1e-10, 1.0)
    close(out["gravity"][:STATES], slope["potential_energy"], 1e-10, 1.0)
    close(np.einsum("nk,nk->n", out["coriolis"][:STATES], v), rate["kinetic_energy"], 1e-10, 1.0)


@every_robot
@both_widths
@full_and_reduced
def test_coriolis_forces_come_from_the_mass_matrix(name: str, width: str, mode: str) -> None:
    """Euler and Poincaré: C v = Ṁ v + ω × ∂T/∂ω - ½ ∂(vᵀ M v), the second term for rotations in body axes."""
    out, slope = results(name, width, mode), gradients(name, width, mode, "com")["mass_matrix"]
    v = states(name, mode)[0][:STATES]
    momentum = times(out["mass_matrix"][:STATES], v)
    expected = times(times(slope, v), v) - 0.5 * np.einsum("ni,nijk,nj->nk", v, slope, v)
    for triple in case(name).twin.rotations(dofs_of(name, mode)):
        expected[:, triple] += np.cross(v[:, triple], momentum[:, triple])
    close(out["coriolis"][:STATES], expected, 1e-10, 1.0)


# ------------------------------------------------------------------ identities


@every_robot
@both_widths
@full_and_reduced
@pytest.mark.parametrize("at", ["com", "origin"])
def test_links_move_by_their_jacobians(name: str, width: str, mode: str, at: str) -> None:
    out = results(name, width, mode, at)
    v, a = states(name, mode)
    close(out["link_velocity"], times(out["jacobian"], v), 1e-13, 1.0)
    close(out["link_acceleration"], times(out["jacobian_dot"], v) + times(out["jacobian"], a), 1e-12, 1.0)


@every_robot
@both_widths
@full_and_reduced
def test_momentum_and_energy(name: str, width: str, mode: str) -> None:
    out = results(name, width, mode)
    v, _ = states(name, mode)
    mass = case(name).robot.model.link_mass.sum()
    A = out["centroidal_momentum_matrix"]
    unit = float(np.abs(A).max())
    close(out["momentum"], times(A, v), 1e-13, unit)
    close(out["com_jacobian"], A[:, :3] / mass, 1e-13, 1.0)
    close(times(out["com_jacobian"], v), out["momentum"][:, :3] / mass, 1e-13, 1.0)
    close(out["kinetic_energy"], 0.5 * np.einsum("ni,nij,nj->n", v, out["mass_matrix"], v), 1e-12)


@every_robot
@both_widths
@full_and_reduced
def test_forces(name: str, width: str, mode: str) -> None:
    out = results(name, width, mode)
    _, a = states(name, mode)
    M, inverse = out["mass_matrix"], out["inverse_mass_matrix"]
    unit = float(np.abs(M).max())
    condition = max((float(np.linalg.cond(m)) for m in M if m.size), default=1.0)
    close(out["coriolis"], out["bias"] - out["gravity"], 1e-12, 9.81 * unit)
    close(out["inverse_dynamics"], times(M, a) + out["bias"], 1e-12, 9.81 * unit)
    assert np.array_equal(M, M.swapaxes(1, 2)) and np.array_equal(inverse, inverse.swapaxes(1, 2))
    close(M @ inverse, np.broadcast_to(np.eye(M.shape[1]), M.shape), 1e-14 * condition + 1e-13, 1.0)
    tau = case(name).given["tau"]
    given = times(out["coupling_matrix"].swapaxes(1, 2), tau) if mode == "reduced" else tau
    close(out["forward_dynamics"], times(inverse, given - out["bias"]), 1e-14 * condition + 1e-12)


@every_robot
@both_widths
@full_and_reduced
def test_forward_dynamics_undoes_inverse_dynamics(name: str, width: str, mode: str) -> None:
    """In independent coordinates a follower's force acts through G; here the leaders alone push."""
    chosen = case(name)
    reduced = mode == "reduced"
    given = {key: chosen.given[key] for key in ("qpos", "qvel", "qacc", "wrench")}
    forces = evaluate(chosen.robot, width, given, "inverse_dynamics", reduced=reduced)["inverse_dynamics"]
    given |= {"tau": full_width(chosen, mode, forces)}
    out = evaluate(chosen.robot, width, given, "forward_dynamics", reduced=reduced)["forward_dynamics"]
    close(out, chosen.given["qacc"][:, dofs_of(name, mode)], 1e-9)


@every_robot
@both_widths
def test_reduced_quantities_are_the_full_ones_through_the_coupling_matrix(name: str, width: str) -> None:
    """With G and Ġ from the twin's composed polynomials; the full ones at the states that followers have there."""
    chosen = followed(case(name))
    twin, qpos, u = chosen.twin, chosen.given["qpos"], chosen.given["qvel"][:, chosen.independent]
    G = np.array([twin.coupling_matrix(q) for q in qpos])
    rate = np.array([twin.coupling_rate(q, x) for q, x in zip(qpos, u, strict=True)])
    drift = times(rate, u)
    full, reduced = results(name, width, "followed"), results(name, width, "reduced")
    push = times(full["mass_matrix"], drift)
    expected = {key: full[key] for key in UNCHANGED}
    expected |= {key: times(G.swapaxes(1, 2), full[key]) for key in ("gravity", "inverse_dynamics")}
    expected |= {key: times(G.swapaxes(1, 2), full[key] + push) for key in ("bias", "coriolis")}
    expected |= {key: full[key] @ G for key in ("com_jacobian", "centroidal_momentum_matrix")}
    expected["jacobian"] = full["jacobian"] @ G[:, None]
    expected["jacobian_dot"] = full["jacobian_dot"] @ G[:, None] + full["jacobian"] @ rate[:, None]
    expected["mass_matrix"] = G.swapaxes(1, 2) @ full["mass_matrix"] @ G
    expected["centroidal_bias"] = full["centroidal_bias"] + times(full["centroidal_momentum_matrix"], drift)
    expected["coupling_matrix"] = G
    unit = 9.81 * float(np.abs(full["mass_matrix"]).max())
    for key, values in expected.items():
        close(reduced[key], values, 1e-12, unit)


UNCHANGED = (
    "link_position",
    "link_quaternion",
    "link_velocity",
    "link_acceleration",
    "com",
    "momentum",
    "kinetic_energy",
    "potential_energy",
)


@every_robot
@both_widths
@full_and_reduced
@pytest.mark.parametrize("at", ["com", "origin"])
def test_wrenches_act_through_jacobians(name: str, width: str, mode: str, at: str) -> None:
    """-Jᵀ f in external_force and inverse dynamics, Jᵀ f among the forces of forward dynamics; of some links too."""
    chosen = case(name)
    links = chosen.robot.links[::-2]
    places = [chosen.robot.links.index(link) for link in links]
    wrench = chosen.given["wrench"][:, places]
    options: dict[str, Any] = {"reduced": mode == "reduced", "at": at}
    wanted = ("external_force", "inverse_dynamics", "forward_dynamics")
    out = evaluate(chosen.robot, width, chosen.given | {"wrench": wrench}, *wanted, links=links, **options)
    bare = results(name, width, mode, at)
    J = bare["jacobian"][:, places]
    pulled = np.einsum("nlij,nli->nj", J, wrench)
    close(out["external_force"], -pulled, 1e-13, 1.0)
    unit = float(np.abs(bare["inverse_dynamics"]).max())
    close(out["inverse_dynamics"], bare["inverse_dynamics"] - pulled, 1e-12, unit)
    condition = max((float(np.linalg.cond(M)) for M in bare["mass_matrix"] if M.size), default=1.0)
    answer = times(bare["inverse_mass_matrix"], pulled)
    close(out["forward_dynamics"], bare["forward_dynamics"] + answer, 1e-14 * condition + 1e-12)


# ------------------------------------------------------------------ other engines

PLAIN = ("arm7", "chain20", "double_pendulum", "finger", "quadruped", "stiff_drive_chain", "two_finger_gripper")
"""Fixed robots of joints with one dof, couplings open: there Pinocchio's coordinates are ours but for their order."""


class Reference(NamedTuple):
    """A case, Pinocchio's model of the same file, and where its dofs are among ours."""

    case: Case
    model: Any
    dofs: list[int]

    def row(self, index: int) -> tuple[Array, Array, Array, Array]:
        """q, v, a, tau of one row in Pinocchio's order."""
        given = self.case.given
        return tuple(given[key][index, self.dofs] for key in ("qpos", "qvel", "qacc", "tau"))  # type: ignore[return-value]

    def moving(self) -> tuple[float, Array]:
        """Mass of the links that move, and the first moment (3,) of those that do not: Pinocchio leaves them out."""
        m = self.case.robot.model
        still = np.flatnonzero(m.link_body == 0)
        places = [m.link_position[i] + m.link_rotation[i] @ m.link_com[i] for i in still]
        moment = sum((m.link_mass[i] * p for i, p in zip(still, places, strict=True)), np.zeros(3))
        return float(m.link_mass.sum() - m.link_mass[still].sum()), moment


def reference(name: str) -> tuple[Any, Reference]:
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(ROOT / "robots" / f"{name}.urdf"))
    dofs = [case(name).robot.dofs.index(joint) for joint in model.names[1:]]
    return pin, Reference(case(name), model, dofs)


plain_robots = pytest.mark.parametrize("name", PLAIN)


@plain_robots
@both_widths
def test_links_move_as_in_pinocchio(name: str, width: str) -> None:
    """At frame origins in world axes. The rate of J at a moving point from the one at the world's origin, where
    Pinocchio's is a plain derivative: its LOCAL_WORLD_ALIGNED one leaves out the point's own velocity."""
    pin, ours = reference(name)
    out = results(name, width, "full", "origin")
    model, data = ours.model, ours.model.createData()
    frames = [model.getFrameId(link) for link in ours.case.robot.links]
    for row in range(ROWS):
        q, v, a, _ = ours.row(row)
        pin.forwardKinematics(model, data, q, v, a)
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        pin.updateFramePlacements(model, data)
        for link, frame in enumerate(frames):
            p = data.oMf[frame].translation
            aligned = pin.LOCAL_WORLD_ALIGNED
            velocity = pin.getFrameVelocity(model, data, frame, aligned).vector
            J = np.reshape(pin.getFrameJacobian(model, data, frame, pin.WORLD), (6, -1))
            rate = np.array(np.reshape(pin.getFrameJacobianTimeVariation(model, data, frame, pin.WORLD), (6, -1)))
            rate[:3] += np.cross(rate[3:], p, axis=0) + np.cross(J[3:], velocity[:3], axis=0)
            close(out["jacobian_dot"][row, link][:, ours.dofs], rate, 1e-12, 1.0)
            close(out["link_velocity"][row, link], velocity, 1e-12, 1.0)
            acceleration = pin.getFrameClassicalAcceleration(model, data, frame, aligned).vector
            close(out["link_acceleration"][row, link], acceleration, 1e-12, 1.0)


@plain_robots
@both_widths
def test_the_whole_robot_as_in_pinocchio(name: str, width: str) -> None:
    pin, ours = reference(name)
    out = results(name, width, "full")
    model, data = ours.model, ours.model.createData()
    mass, still = ours.moving()
    total = float(ours.case.robot.model.link_mass.sum())
    for row in range(ROWS):
        q, v, _, _ = ours.row(row)
        com = np.array(pin.centerOfMass(model, data, q))
        close(out["com"][row], (mass * com + still) / total, 1e-13, 1.0)
        J = np.array(np.reshape(pin.jacobianCenterOfMass(model, data, q), (3, -1)))
        close(out["com_jacobian"][row][:, ours.dofs], J * mass / total, 1e-13, 1.0)
        bias = np.array(pin.computeCentroidalMomentumTimeVariation(model, data, q, v, 0 * v).vector)
        momentum = np.array(pin.computeCentroidalMomentum(model, data, q, v).vector)
        for vector in (bias, momentum):
            vector[3:] += np.cross(com - out["com"][row], vector[:3])
        close(out["centroidal_bias"][row], bias, 1e-12, 1.0)
        close(out["momentum"][row], momentum, 1e-13, 1.0)
        close(out["kinetic_energy"][row], np.array(pin.computeKineticEnergy(model, data, q, v)), 1e-13, 1.0)
        potential = pin.computePotentialEnergy(model, data, q) + 9.81 * still[2]
        close(out["potential_energy"][row], np.array(potential), 1e-13, 1.0)


@plain_robots
@both_widths
def test_forces_as_in_pinocchio(name: str, width: str) -> None:
    pin, ours = reference(name)
    chosen, links = ours.case, ours.case.robot.links
    out = evaluate(chosen.robot, width, chosen.given, *TREE_QUANTITIES, at="com")
    bare = results(name, width, "full")
    model, data = ours.model, ours.model.createData()
    unit = 9.81 * float(np.abs(bare["mass_matrix"]).max())
    for row in range(ROWS):
        q, v, a, tau = ours.row(row)
        M = np.reshape(pin.crba(model, data, q), (len(q), -1))
        M = np.triu(M) + np.triu(M, 1).T
        condition = 1e-14 * float(np.linalg.cond(M)) + 1e-12
        inverse = np.reshape(pin.computeMinverse(model, model.createData(), q), (len(q), -1))
        close(out["mass_matrix"][row][np.ix_(ours.dofs, ours.dofs)], M, 1e-13)
        inverse = np.triu(inverse) + np.triu(inverse, 1).T
        close(out["inverse_mass_matrix"][row][np.ix_(ours.dofs, ours.dofs)], inverse, condition)
        gravity = np.array(pin.computeGeneralizedGravity(model, data, q))
        close(out["gravity"][row, ours.dofs], gravity, 1e-12, unit)
        coriolis = np.reshape(pin.computeCoriolisMatrix(model, data, q, v), M.shape) @ v
        close(out["coriolis"][row, ours.dofs], coriolis, 1e-12, unit)
        pushed = _joint_wrenches(pin, ours, q, chosen.given["wrench"][row], links)
        close(out["inverse_dynamics"][row, ours.dofs], pin.rnea(model, data, q, v, a, pushed), 1e-12, unit)
        close(out["forward_dynamics"][row, ours.dofs], pin.aba(model, data, q, v, tau, pushed), condition)
        close(bare["forward_dynamics"][row, ours.dofs], pin.aba(model, data, q, v, tau), condition)


def _joint_wrenches(pin: Any, ours: Reference, q: Array, wrench: Array, links: tuple[str, ...]) -> Any:
    """World wrenches at the links' centres as Pinocchio wants them: per joint, in its axes, about its origin."""
    data = ours.model.createData()
    pin.framesForwardKinematics(ours.model, data, q)
    forces = pin.StdVec_Force()
    forces.extend([pin.Force.Zero() for _ in range(ours.model.njoints)])
    for i, link in enumerate(links):
        frame = ours.model.getFrameId(link)
        joint = ours.model.frames[frame].parentJoint
        point = data.oMf[frame].act(ours.case.robot.model.link_com[i])
        about_origin = np.concatenate([wrench[i, :3], wrench[i, 3:] + np.cross(point, wrench[i, :3])])
        forces[joint] = forces[joint] + data.oMi[joint].actInv(pin.Force(about_origin))
    return forces


@pytest.mark.parametrize("name", [*PLAIN, "quadruped floating", "floating_box", "planar_base", "rack_and_pinion"])
@both_widths
def test_jacobian_rates_as_in_mujoco(name: str, width: str) -> None:
    """At centres of mass; where MuJoCo's coordinates are ours entry for entry."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco_model(mujoco, name)
    out, given = results(name, width, "full"), case(name).given
    data = mujoco.MjData(model)
    linear, angular = np.zeros((2, 3, model.nv))
    bodies = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, link) for link in case(name).robot.links]
    assert sum(body > 0 for body in bodies) >= model.nbody - 2
    for row in range(ROWS):
        data.qpos[:], data.qvel[:] = given["qpos"][row], given["qvel"][row]
        mujoco.mj_forward(model, data)
        for link, body in enumerate(bodies):
            if body > 0:
                point = data.xpos[body] + data.xmat[body].reshape(3, 3) @ case(name).robot.model.link_com[link]
                mujoco.mj_jacDot(model, data, linear, angular, point, body)
                close(out["jacobian_dot"][row, link], np.vstack([linear, angular]), 1e-12, 1.0)


def mujoco_model(mujoco: Any, name: str) -> Any:
    """Of a file in robots/, every link a body; "floating" gives the root a free joint."""
    first, *rest = name.split()
    assets = {mesh.name: mesh.read_bytes() for mesh in (ROOT / "robots" / "meshes").iterdir()}
    spec = mujoco.MjSpec.from_string((ROOT / "robots" / f"{first}.urdf").read_text(), assets=assets)
    spec.compiler.fusestatic = False
    if rest:
        spec.worldbody.first_body().add_freejoint()
    return spec.compile()


# ------------------------------------------------------------------ what is asked for


@every_robot
@both_widths
@full_and_reduced
def test_alone_or_together(name: str, width: str, mode: str) -> None:
    """A quantity does not depend on what else is asked for, but for rounding: shared sums may be in another order."""
    chosen = case(name)
    together = evaluate(chosen.robot, width, chosen.given, *TREE_QUANTITIES, reduced=mode == "reduced")
    condition = max((float(np.linalg.cond(M)) for M in together["mass_matrix"] if M.size), default=1.0)
    for key, values in together.items():
        alone = evaluate(chosen.robot, width, chosen.given, key, reduced=mode == "reduced")[key]
        close(alone, values, 1e-14 * condition, 1e-3)


@every_robot
@both_widths
@full_and_reduced
def test_packed_triangles_and_chosen_links(name: str, width: str, mode: str) -> None:
    chosen, out = case(name), results(name, width, mode)
    given = {key: values for key, values in chosen.given.items() if key != "wrench"}
    places = [*range(len(chosen.robot.links))[::-2], 0]
    links = [chosen.robot.links[k] for k in places]
    options: dict[str, Any] = {"reduced": mode == "reduced", "links": links, "packed": True}
    some = evaluate(chosen.robot, width, given, *TREE_QUANTITIES, **options)
    rows, columns = np.tril_indices(len(dofs_of(name, mode)))
    for key, values in some.items():
        if key in ("mass_matrix", "inverse_mass_matrix"):
            assert np.array_equal(values, out[key][:, rows, columns]), key
        else:
            of_links = "link" in TREE_QUANTITIES[key].dims
            assert np.array_equal(values, out[key][:, places] if of_links else out[key]), key


@pytest.mark.small
@both_widths
def test_link_pose_is_position_and_quaternion(width: str) -> None:
    chosen = case("zoo")
    out = evaluate(chosen.robot, width, chosen.given, "link_pose")
    assert [*out] == ["link_position", "link_quaternion"]
    for key, values in out.items():
        assert np.array_equal(values, results("zoo", width, "full")[key])


# ------------------------------------------------------------------ bad rows

BAD = 3  # the row


@both_widths
@full_and_reduced
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e200])
@pytest.mark.parametrize("key", ["qpos", "qvel", "qacc", "tau", "wrench"])
def test_a_bad_row_is_told_and_touches_no_other(width: str, mode: str, value: float, key: str) -> None:
    """In every entry of the row in turn; the other lanes of its pack keep their bytes."""
    chosen = case("zoo floating")
    clean = _all(chosen.robot, width, chosen.given, mode)
    entries = np.ndindex(chosen.given[key].shape[1:])
    for entry in [place for place in entries if _matters(chosen, mode, key, place)][:: 1 if key == "qpos" else 5]:
        values = chosen.given[key].copy()
        values[(BAD, *entry)] = value
        out = _all(chosen.robot, width, chosen.given | {key: values}, mode)
        assert [*np.flatnonzero(out["status"])] == [BAD] and out["status"][BAD] == BAD_INPUT, entry
        for name, found in out.items():
            assert np.array_equal(np.delete(found, BAD, 0), np.delete(clean[name], BAD, 0)), (entry, name)


def _all(robot: Robot, width: str, given: Table, mode: str) -> dict[str, Array]:
    return with_status(robot, width, given, *TREE_QUANTITIES, reduced=mode == "reduced")


def _matters(case: Case, mode: str, key: str, entry: tuple[int, ...]) -> bool:
    """Whether an input's entry is looked at: followers' entries are not, when reduced, but for forces on them."""
    followers = [k for k in range(case.robot.nv) if k not in case.independent]
    if mode == "full" or key in ("tau", "wrench"):
        return True
    unseen = [int(case.robot.model.dof_coord[k]) for k in followers] if key == "qpos" else followers
    return entry[0] not in unseen


@both_widths
@full_and_reduced
@pytest.mark.parametrize("quantity", TREE_QUANTITIES)
def test_a_bad_row_of_a_quantity_alone(width: str, mode: str, quantity: str) -> None:
    """Forces alone take a path of their own; every input that a quantity needs is looked at, and no other."""
    chosen, reduced = case("zoo floating"), mode == "reduced"
    needed = needed_inputs([quantity])
    given = {key: values for key, values in chosen.given.items() if key != "wrench" or key in needed}
    clean = with_status(chosen.robot, width, given, quantity, reduced=reduced)
    for key, values in given.items():
        for value in (np.nan, -np.inf, 1e200):
            spoilt = values.copy()
            spoilt[(BAD, *np.zeros(values.ndim - 1, int))] = value
            out = with_status(chosen.robot, width, given | {key: spoilt}, quantity, reduced=reduced)
            assert [*out["status"]] == [BAD_INPUT if row == BAD and key in needed else OK for row in range(ROWS)], key
            kept = [row for row in range(ROWS) if row != BAD or key not in needed]
            assert out[quantity][kept].tobytes() == clean[quantity][kept].tobytes(), key


def test_no_rows_and_no_links() -> None:
    robot = case("zoo").robot
    none = robot.compute(np.zeros((0, robot.nq)), quantities=[*TREE_QUANTITIES, "status"])
    assert {name: values.shape[0] for name, values in none.items()} == dict.fromkeys([*TREE_QUANTITIES, "status"], 0)
    given = {key: values for key, values in case("zoo").given.items() if key != "wrench"}
    out = robot.compute(**given, quantities=["jacobian", "gravity", "mass_matrix"], links=[])
    assert out["jacobian"].shape == (ROWS, 0, 6, robot.nv)
    for name in ("gravity", "mass_matrix"):
        assert np.array_equal(out[name], robot.compute(**given, quantities=[name])[name])


@pytest.mark.small
@both_widths
def test_followers_entries_are_not_looked_at_when_reduced(width: str) -> None:
    chosen = case("zoo floating")
    clean = _all(chosen.robot, width, chosen.given, "reduced")
    followers = [k for k in range(chosen.robot.nv) if k not in chosen.independent]
    spoilt = {key: chosen.given[key].copy() for key in chosen.given}
    spoilt["qpos"][:, [int(chosen.robot.model.dof_coord[k]) for k in followers]] = np.nan
    spoilt["qvel"][:, followers] = np.inf
    spoilt["qacc"][:, followers] = 1e300
    out = _all(chosen.robot, width, spoilt, "reduced")
    for name, values in clean.items():
        assert np.array_equal(out[name], values), name


@both_widths
def test_quaternions_of_any_length(width: str) -> None:
    """Normalised; one of length 0 is a bad input."""
    chosen = case("zoo floating")
    clean = _all(chosen.robot, width, chosen.given, "full")
    for joint, kind in ((joint.name, joint.kind) for joint in chosen.twin.joints):
        if kind not in ("ball", "free"):
            continue
        end = chosen.twin.first_coord[joint] + (4 if kind == "ball" else 7)
        qpos = chosen.given["qpos"].copy()
        qpos[:, end - 4 : end] *= np.geomspace(1e-9, 1e9, ROWS)[:, None]
        out = _all(chosen.robot, width, chosen.given | {"qpos": qpos}, "full")
        for name, values in clean.items():
            close(out[name], values, 1e-11)
        qpos[BAD, end - 4 : end] = 0.0
        out = _all(chosen.robot, width, chosen.given | {"qpos": qpos}, "full")
        assert [*np.flatnonzero(out["status"])] == [BAD] and out["status"][BAD] == BAD_INPUT


@both_widths
def test_angles_beyond_all_digits_are_bad_inputs(width: str) -> None:
    """Above 1e16 neighbouring numbers are turns apart: no sine is right, and what is reported must be a rotation."""
    robot = case("double_pendulum").robot
    for angle in (1e3, -1e5, 1e17, -1e25, 1e50):
        qpos = np.full((WIDTH, 2), [angle, 0.3])
        out = with_status(robot, width, {"qpos": qpos}, "link_position")
        if abs(angle) < 1e15:
            x = 0.4 * np.array([-np.sin(angle), 0.0, -np.cos(angle)])
            close(out["link_position"][0, -1], x, 1e-14)
        else:
            assert np.all(out["status"] == BAD_INPUT), angle


def hanging(tip_mass: float) -> Robot:
    """Two rods, the second without inertia but for a mass at its end."""
    tip = Inertial(tip_mass, Pose((0.0, 0.0, -0.5)))
    links = (Link("base"), Link("rod", Inertial(1.0, Pose((0, 0, -0.5)), (0.1, 0, 0, 0.1, 0, 0.01))), Link("tip", tip))
    joints = (
        Joint("shoulder", "revolute", "base", "rod", axis=(0.0, 1.0, 0.0)),
        Joint("elbow", "revolute", "rod", "tip", Pose((0.0, 0.0, -1.0)), axis=(0.0, 1.0, 0.0)),
    )
    return Robot.of(Articulation("hanging", "urdf", links, joints))


@both_widths
@full_and_reduced
def test_singular_mass_matrices_are_told(width: str, mode: str) -> None:
    """Of a massless tip; what needs no inverse is right nevertheless."""
    given = {"qpos": np.linspace(-1, 1, 2 * ROWS).reshape(ROWS, 2), "qvel": np.ones((ROWS, 2))}
    for name in ("forward_dynamics", "inverse_mass_matrix"):
        out = with_status(hanging(0.0), width, given, name, "bias", reduced=mode == "reduced")
        assert np.all(out["status"] == BAD_RESULT), name
        assert np.all(evaluate(hanging(0.1), width, given, name, reduced=mode == "reduced")[name] < 1e3)
    assert np.all(with_status(hanging(0.0), width, given, "bias", "mass_matrix", "momentum")["status"] == OK)


SINGULAR_FILES = ("stiff_drive_chain", "double_pendulum")  # floating, their massless roots turn about a joint's axis
SINGULAR_PUBLIC = ("dex-urdf.arms_rm75_rm75_glb", "pybullet_data.pendulum5", "pybullet_data.cartpole")


@packs_only
@pytest.mark.parametrize("model", [*SINGULAR_FILES, *SINGULAR_PUBLIC, "newton.newton_examples_assets_cartpole"])
def test_mass_matrices_that_are_singular_up_to_rounding_are_told(model: str) -> None:
    """Rounding leaves small pivots of either sign there, and forward dynamics would be wrong by any factor."""
    paths = {entry["id"]: entry["path"] for entry in corpus_entries("urdf")}
    path = ROOT / "robots" / f"{model}.urdf" if model in SINGULAR_FILES else paths.get(f"urdf.{model}")
    if path is None:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    robot = Robot.of(replace(load_articulation(str(path), meshes=False), base="floating"))
    qpos = np.random.default_rng(5).uniform(-1.0, 1.0, (64, robot.nq))
    for quantity in ("forward_dynamics", "inverse_mass_matrix"):
        assert np.all(robot.compute(qpos, quantities=[quantity, "status"])["status"] == BAD_RESULT), quantity
    assert np.all(robot.compute(qpos, quantities=["mass_matrix", "bias", "status"])["status"] == OK)


@both_widths
@full_and_reduced
def test_very_light_links_are_not_singular(width: str, mode: str) -> None:
    """A milligram at the root and at a fingertip of 50 kg: digits are lost, not all of them."""
    light = Inertial(1e-6, Pose(), (1e-9, 0, 0, 1e-9, 0, 1e-9))
    body = Inertial(50.0, Pose((0.1, 0.2, 0.3)), (1.0, 0, 0, 1.2, 0, 1.5))
    links = (Link("root", light), Link("body", body), Link("finger", light))
    joints = (
        Joint("waist", "revolute", "root", "body", Pose((0.0, 0.1, 0.0)), axis=(0.0, 0.0, 1.0)),
        Joint("tip", "revolute", "body", "finger", Pose((1.0, 0.0, 0.0)), axis=(1.0, 0.0, 0.0)),
    )
    robot = Robot.of(Articulation("light", "urdf", links, joints, base="floating"))
    qpos = np.random.default_rng(0).uniform(-1.0, 1.0, (ROWS, robot.nq))
    qacc = np.random.default_rng(1).normal(size=(ROWS, robot.nv))
    reduced = mode == "reduced"
    tau = evaluate(robot, width, {"qpos": qpos, "qacc": qacc}, "inverse_dynamics", reduced=reduced)["inverse_dynamics"]
    out = evaluate(robot, width, {"qpos": qpos, "tau": tau}, "forward_dynamics", "inverse_mass_matrix", reduced=reduced)
    close(out["forward_dynamics"], qacc, 1e-4)


def test_bad_rows_hold_nan() -> None:
    chosen = case("zoo floating")
    qpos = chosen.given["qpos"].copy()
    qpos[BAD, 0] = np.nan
    out = chosen.robot.compute(**chosen.given | {"qpos": qpos}, quantities=[*TREE_QUANTITIES, "status"])
    assert [*out["status"]] == [BAD_INPUT if row == BAD else OK for row in range(ROWS)]
    for name in TREE_QUANTITIES:
        bad = np.isnan(out[name]).reshape(ROWS, -1)
        assert bad[BAD].all() and not np.delete(bad, BAD, 0).any(), name
    one = chosen.robot.compute(qpos[BAD], quantities=["gravity", "status"])
    assert one["status"] == BAD_INPUT and np.isnan(one["gravity"]).all()


# ------------------------------------------------------------------ what is given


def test_arrays_that_do_not_fit_are_refused() -> None:
    """Kernels write where they are told: no width, shape or number of rows but the right one reaches them."""
    robot = case("zoo").robot
    for width in (0, 2, 16):
        with pytest.raises(UsageError, match="width"):
            robot.evaluation(["gravity"], width=width)
    evaluation = robot.evaluation(["mass_matrix"], packed=True, width=1)
    inputs, outputs = evaluation.allocate(8)
    for key, values in (inputs | outputs).items():
        for wrong in (values[:5], values.reshape(4, -1)):
            arrays = inputs | outputs | {key: wrong}
            with pytest.raises(UsageError, match="shape is"):
                evaluation.bound(arrays, arrays)
    with pytest.raises(UsageError, match="shape is none"):
        evaluation.bound(inputs, {"status": outputs["status"]})
    for rows in (-1, 9):
        with pytest.raises(UsageError, match="the arrays hold 8"):
            evaluation.bound(inputs, outputs)(rows)


@pytest.mark.parametrize(
    "wrong", [None, 0.3, [[1.0, 2.0], [3.0]], np.array([1j, 0.2]), ["a", "b"], np.zeros(2, "M8[s]")]
)
def test_what_is_no_table_of_real_numbers_is_refused(wrong: Any) -> None:
    robot = case("double_pendulum").robot
    with pytest.raises(UsageError, match="qpos"):
        robot.compute(wrong, quantities=["gravity"])
    if wrong is not None:
        with pytest.raises(UsageError, match="qvel"):
            robot.compute(np.zeros(2), wrong, quantities=["gravity"])


def test_a_wrong_shape_is_told_what_would_do() -> None:
    """One velocity for a table of positions is not: it is not spread over the rows."""
    robot = case("double_pendulum").robot
    with pytest.raises(UsageError, match=r"qvel has shape \(2,\), want \(3, 2\)$"):
        robot.compute(np.zeros((3, 2)), np.zeros(2), quantities=["bias"])
    with pytest.raises(UsageError, match=r"qvel has shape \(3, 2\), want \(1, 2\) or \(2,\)$"):
        robot.compute(np.zeros(2), np.zeros((3, 2)), quantities=["bias"])


def test_inputs_of_any_layout_give_the_same_bytes() -> None:
    robot, qpos = case("arm7").robot, case("arm7").given["qpos"]
    expected = robot.compute(qpos, quantities=["gravity"])["gravity"].tobytes()
    unaligned = np.frombuffer(bytearray(b"1234" + qpos.tobytes()), np.uint8)[4:].view(float).reshape(qpos.shape)
    frozen = qpos.copy()
    frozen.setflags(write=False)
    for other in (np.repeat(qpos, 2, 0)[::2], np.asfortranarray(qpos), qpos.astype(">f8"), unaligned, frozen):
        assert robot.compute(other, quantities=["gravity"])["gravity"].tobytes() == expected


# ------------------------------------------------------------------ tables of any size

LARGE = 5000


@cache
def large() -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs and results of a table of LARGE rows of "zoo", in one thread."""
    chosen = case("zoo")
    rng = np.random.default_rng(4)
    given = {key: rng.normal(size=(LARGE, *values.shape[1:])) for key, values in chosen.given.items()}
    return given, chosen.robot.compute(**given, quantities=[*TREE_QUANTITIES], threads=1)


@packs_only
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [8, 9, 15, 16, 1023, 1024, 1025, LARGE])
def test_rows_are_the_same_bytes_in_any_table(rows: int, threads: int) -> None:
    """From any start, so that rows meet other neighbours, pieces and paddings."""
    given, expected = large()
    for start in {0, 3, LARGE - rows} if rows + 3 <= LARGE else {0}:
        some = {key: values[start : start + rows] for key, values in given.items()}
        out = case("zoo").robot.compute(**some, quantities=[*TREE_QUANTITIES], threads=threads)
        for name, values in out.items():
            assert values.tobytes() == expected[name][start : start + rows].tobytes(), name


@packs_only
@pytest.mark.parametrize("rows", [1, 7])
def test_the_width_changes_rounding_only(rows: int) -> None:
    """Tables of less than a pack are computed one by one, as is a single configuration."""
    given, expected = large()
    robot = case("zoo").robot
    out = robot.compute(**{key: values[:rows] for key, values in given.items()}, quantities=[*TREE_QUANTITIES])
    one = robot.compute(**{key: values[rows - 1] for key, values in given.items()}, quantities=[*TREE_QUANTITIES])
    for name, values in out.items():
        assert values[-1].tobytes() == one[name].tobytes(), name
        close(values, expected[name][:rows], 1e-12)


@packs_only
@every_robot
@full_and_reduced
def test_both_widths_agree(name: str, mode: str) -> None:
    pack, scalar = results(name, "pack", mode), results(name, "scalar", mode)
    condition = max((float(np.linalg.cond(M)) for M in scalar["mass_matrix"] if M.size), default=1.0)
    for key, values in pack.items():
        inverted = key in ("forward_dynamics", "inverse_mass_matrix")
        close(values, scalar[key], 1e-15 * condition + 1e-12 if inverted else 1e-12, 1e-3)


@pytest.mark.small
def test_a_wrench_that_nothing_needs_is_not_looked_at() -> None:
    robot = case("double_pendulum").robot
    wrench = np.full((len(robot.links), 6), np.nan)
    out = robot.compute(np.zeros(2), wrench=wrench, quantities=["gravity", "status"])
    assert out["status"] == OK
    assert robot.compute(np.zeros(2), wrench=wrench, quantities=["external_force", "status"])["status"] == BAD_INPUT


@pytest.mark.small
def test_a_text_is_no_list_of_names() -> None:
    robot = case("double_pendulum").robot
    with pytest.raises(UsageError, match="want a list of names"):
        robot.compute(np.zeros(2), quantities="gravity")
    with pytest.raises(UsageError, match="want a list of names"):
        robot.compute(np.zeros(2), quantities=["jacobian"], links="base")
