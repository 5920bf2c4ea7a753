"""Every rigid-body quantity of every public URDF: against Pinocchio, and what it did not store against differences.

The reference files hold, for random configurations, what Pinocchio computes from the same URDF: group /open without
mimics, /float on a free-flyer, /mimic_by_reduction and /mimic in independent coordinates. An error is max|Δ| over
max|reference|. What differs by convention (order of joints, body-frame velocities, links fixed to the world) is
converted here. What has no reference is checked by what has one: forward dynamics undoes inverse dynamics; rates and
velocity forces are differences of eighth order along exact motions.
`python -m pytest tests/quantities/test_oracle.py -q -s` prints the table of worst errors.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest

from artsim.loaders.load import load_articulation
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.jit import disabled
from artsim.sim.foundation.records import WIDTH
from artsim.sim.quantities.robot import Robot
from tests.conftest import corpus_entries
from tests.naive import OFFSETS, WEIGHTS, Twin

Array = np.ndarray[Any, np.dtype[np.float64]]
pytestmark = pytest.mark.corpus

TOLERANCE = 1e-9
TOLERANCES = {"rates": 1e-8}  # differences
CHUNKS = 10  # tests that the models are spread over: a run shows progress, and pytest costs nothing
ENTRIES = [entry for entry in corpus_entries("urdf") if entry.get("oracle") and entry["expect"] == "load"]


class Deviation(NamedTuple):
    """The worst error of one quantity of one model."""

    model: str
    group: str
    quantity: str
    width: str
    error: float


worst: dict[tuple[str, str, str], Deviation] = {}
counted: dict[str, set[str]] = defaultdict(set)
refused: Counter[str] = Counter()
regular: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """The table of worst errors, after all models."""
    yield
    print(f"\n{len(ENTRIES)} models with references, {sum(refused.values())} refused by artsim")
    print("regular mass matrices:", ", ".join(f"{count} {mode}" for mode, count in sorted(regular.items())))
    for (group, quantity, width), deviation in sorted(worst.items()):
        models = len(counted[group])
        print(f"{group:20} {models:4} models {quantity:28} {width:6} {deviation.error:.1e}  {deviation.model}")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_public_models_agree_with_pinocchio(chunk: int) -> None:
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    _judge(deviation for entry in ENTRIES[chunk::CHUNKS] for deviation in _deviations(entry))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_public_models_agree_with_their_derivatives(chunk: int) -> None:
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    _judge(deviation for entry in ENTRIES[chunk::CHUNKS] for deviation in _derived(entry))


def _judge(deviations: Iterable[Deviation]) -> None:
    """Note the worst of each quantity; none may reach its tolerance."""
    found = [*deviations]
    for deviation in found:
        key = (deviation.group, deviation.quantity, deviation.width)
        if key not in worst or not deviation.error <= worst[key].error:
            worst[key] = deviation
        counted[deviation.group].add(deviation.model)
    failures = [deviation for deviation in found if not deviation.error < TOLERANCES.get(deviation.group, TOLERANCE)]
    assert failures == [], "\n".join(map(str, failures))


# ------------------------------------------------------------------ one model


def _deviations(entry: dict[str, Any]) -> Iterator[Deviation]:
    try:
        articulation = load_articulation(entry["path"], meshes=False)
    except ModelError:  # test_corpus_check.py knows which and why
        refused[entry["id"]] += 1
        return
    fixed = Robot.of(articulation)
    with h5py.File(_oracle(entry)) as file:
        groups = {
            "open": lambda: _open(fixed, file),
            "float": lambda: _floating(Robot.of(dataclasses.replace(articulation, base="floating")), file),
            "mimic_by_reduction": lambda: _reduction(fixed, file),
            "mimic": lambda: _mimic(fixed, file),
        }
        for name, compare in groups.items():
            if name in file:
                for quantity, width, error in compare():
                    yield Deviation(entry["id"], name, quantity, width, error)


def _oracle(entry: dict[str, Any]) -> str:
    return str(entry["path"].removesuffix(_relative(entry)) + entry["oracle"])


def _relative(entry: dict[str, Any]) -> str:
    """The part of the absolute path that the index gives."""
    return "files/" + entry["path"].split("/files/", 1)[1]


Errors = Iterator[tuple[str, str, float]]


def _open(robot: Robot, file: h5py.File) -> Errors:
    group = file["open"]
    dofs, qpos = _dofs(robot, _names(group["joint_names"])), _positions(robot, file, group["theta"][()])
    qvel = np.zeros((len(qpos), robot.nv))
    qvel[:, dofs] = group["qd"][()]
    rotors = np.diag(robot.model.armature)
    links = _links(robot, _names(file["link_names"]))
    for width, out in _both_widths(robot, qpos, qvel):
        yield from _compare_poses(out, group, links, width)
        yield from _compare_forces(_chosen(out, dofs), group, qvel[:, dofs], rotors, dofs, width)
        yield from _compare_jacobian(out, dofs, qvel[:, dofs], group, links, width)
        yield from _compare_centroid(robot, _chosen(out, dofs), qvel[:, dofs], group, width)


def _floating(robot: Robot, file: h5py.File) -> Errors:
    """Pinocchio's free-flyer moves with body-frame linear velocity: v_pin = S v, S = diag(Rᵀ, 1, …)."""
    group = file["float"]
    names = _names(group["joint_names"])
    root = robot.labels.joint_dofs["root"]
    assert names[0] == "root_joint"
    dofs = [*range(root.start, root.stop), *_dofs(robot, names[1:])]
    qpos = _positions(robot, file, group["theta"][()])
    base = group["q"][:, :7]
    qpos[:, robot.labels.joint_coords["root"]] = base[:, [0, 1, 2, 6, 3, 4, 5]]
    S = np.array([_block(_rotation(q).T, robot.nv) for q in base[:, [6, 3, 4, 5]]])
    v_pin = group["qd"][()]
    qvel = np.zeros((len(qpos), robot.nv))
    qvel[:, dofs] = np.einsum("kji,kj->ki", S, v_pin)
    drift = np.zeros_like(v_pin)  # s' with v̇_pin = S v̇ + s'
    drift[:, :3] = -np.cross(v_pin[:, 3:6], v_pin[:, :3])
    M_pin = group["M"][()]
    references = {
        "M": np.einsum("kji,kjl,klm->kim", S, M_pin, S),
        "g": np.einsum("kji,kj->ki", S, group["g"][()]),
        "bias": np.einsum("kji,kj->ki", S, group["bias"][()] + np.einsum("kij,kj->ki", M_pin, drift)),
        "Ag": np.einsum("kij,kjl->kil", group["Ag"][()], S),
        "com": group["com"][()],
    }
    rotors = np.diag(robot.model.armature)
    links = _links(robot, _names(group["link_names"] if "link_names" in group else file["link_names"]))
    for width, out in _both_widths(robot, qpos, qvel, jacobian=False):
        yield from _compare_poses(out, group, links, width)
        yield from _compare_forces(_chosen(out, dofs), references, qvel[:, dofs], rotors, dofs, width)
        yield "mass", width, _relative_error(np.array(robot.model.link_mass.sum()), np.array(group.attrs["mass"]))
        if group.attrs["mass"] > 0:
            yield "com", width, _relative_error(out["com"], references["com"])
            mass = float(group.attrs["mass"])
            yield from _compare_momentum(
                _chosen(out, dofs), references["Ag"], qvel[:, dofs], 0 * out["com"], mass, width
            )


def _reduction(robot: Robot, file: h5py.File) -> Errors:
    """GᵀMG and so on, by hand from Pinocchio's open tree."""
    group = file["mimic_by_reduction"]
    names = _names(file["open/joint_names"])
    free = _names(group["free_joints"])
    independent, dofs = _independent(robot, free), _dofs(robot, names)
    qpos = _positions(robot, file, group["theta"][()])
    qvel = np.zeros((len(qpos), robot.nv))
    qvel[:, dofs] = group["qd_open"][()]
    G = group["G"][()]
    rotors = G.T @ np.diag(robot.model.armature[dofs]) @ G
    for width, out in _both_widths(robot, qpos, qvel, reduced=True):
        found = _chosen(out, independent)
        yield from _compare_forces(found, group, qvel[:, _dofs(robot, free)], rotors, _dofs(robot, free), width)
        coupling = out["coupling_matrix"][:, dofs][..., independent]
        yield "coupling_matrix", width, _relative_error(coupling, np.broadcast_to(G, coupling.shape))


def _mimic(robot: Robot, file: h5py.File) -> Errors:
    """Pinocchio's own mimic joints."""
    group = file["mimic"]
    kinds = _names(group["joint_kind"])
    free = [
        (int(index), name)
        for index, name, kind in zip(group["joint_idx_v"][()], _names(group["joint_names"]), kinds, strict=True)
        if "Mimic" not in kind
    ]
    names = [name for _, name in sorted(free)]
    independent, dofs = _independent(robot, names), _dofs(robot, names)
    theta = file["mimic_by_reduction/theta"] if "mimic_by_reduction" in file else file["open/theta"]
    qpos = _positions(robot, file, theta[()])
    qvel = np.zeros((len(qpos), robot.nv))
    qvel[:, dofs] = group["qd"][()]
    G = _coupling_matrix(robot)[:, independent]
    rotors = G.T @ np.diag(robot.model.armature) @ G
    links = _links(robot, _names(group["link_names"] if "link_names" in group else file["link_names"]))
    for width, out in _both_widths(robot, qpos, qvel, reduced=True):
        yield from _compare_poses(out, group, links, width)
        yield from _compare_forces(_chosen(out, independent), group, qvel[:, dofs], rotors, dofs, width)
        yield from _compare_jacobian(out, independent, qvel[:, dofs], group, links, width)
        yield from _compare_centroid(robot, _chosen(out, independent), qvel[:, dofs], group, width)


# ------------------------------------------------------------------ what Pinocchio did not store


def _derived(entry: dict[str, Any]) -> Iterator[Deviation]:
    """Identities and derivatives at one random state: fixed, floating, reduced."""
    try:
        articulation = load_articulation(entry["path"], meshes=False)
    except ModelError:
        return
    floating = dataclasses.replace(articulation, base="floating")
    modes = [(articulation, False), (floating, False)]
    modes += [(articulation, True), (floating, True)] if articulation.couplings else []
    for tree, reduced in modes:
        name = f"{tree.base}{' reduced' if reduced else ''}"
        state = _State.of(tree, reduced, seed=zlib.crc32(entry["id"].encode()))
        for group, errors in (("identity", state.identities()), ("rates", state.rates())):
            for quantity, error in errors:
                yield Deviation(entry["id"], group, f"{quantity}, {name}", "both", error)


@dataclasses.dataclass(frozen=True)
class _State:
    """A robot without springs, and where it is: positions (nq,), velocities and accelerations (nv,)."""

    robot: Robot
    twin: Twin
    reduced: bool
    dofs: list[int]  # that its quantities count
    q: Array
    v: Array
    a: Array

    @classmethod
    def of(cls, tree: Articulation, reduced: bool, seed: int) -> _State:
        robot, twin = Robot.of(tree), Twin(tree)
        robot = robot.with_model({"stiffness": 0 * robot.model.stiffness})  # potential energy: of gravity alone
        rng = np.random.default_rng(seed)
        dofs = [robot.dofs.index(name) for name in robot.independent_dofs] if reduced else [*range(robot.nv)]
        v, a = np.zeros((2, robot.nv))
        v[dofs], a[dofs] = rng.normal(size=(2, len(dofs)))
        return cls(robot, twin, reduced, dofs, twin.random_coordinates(rng), v, a)

    def compute(self, q: Array, *quantities: str, **options: Any) -> dict[str, Array]:
        """At q (…, nq) and constant velocity."""
        table = np.reshape(q, (-1, self.robot.nq)) if q.ndim > 1 else q
        qvel = np.broadcast_to(self.v, (*table.shape[:-1], self.robot.nv))
        out = self.robot.compute(table, qvel, quantities=quantities, reduced=self.reduced, **options)
        return {name: np.reshape(x, (*q.shape[:-1], *x.shape[table.ndim - 1 :])) for name, x in out.items()}

    def identities(self) -> Iterator[tuple[str, float]]:
        """Forward dynamics undoes inverse dynamics, where the mass matrix is regular."""
        tau = self.robot.compute(self.q, self.v, self.a, quantities=["inverse_dynamics"], reduced=self.reduced)
        forces = np.zeros(self.robot.nv)
        forces[self.dofs] = tau["inverse_dynamics"]
        tables = [np.tile(x, (WIDTH, 1)) for x in (self.q, self.v, self.a, forces)]
        wanted = ["forward_dynamics", "inverse_mass_matrix", "status"]
        out = self.robot.compute(*tables, quantities=wanted, reduced=self.reduced)
        M = self.compute(self.q, "mass_matrix")["mass_matrix"]
        scale = 1.0 / np.sqrt(np.maximum(np.diag(M), 1e-300))
        condition = np.linalg.cond(scale[:, None] * M * scale) if M.size else 1.0
        if condition < 1e10:  # regular ones of the corpus are below 1e7, the others above 1e15
            regular[f"{self.robot.articulation.base}{' reduced' if self.reduced else ''}"] += 1
            yield "forward_dynamics", _relative_error(out["forward_dynamics"][0], self.a[self.dofs])
            yield "inverse_mass_matrix", _relative_error(out["inverse_mass_matrix"][0] @ M, np.eye(len(M)))

    def rates(self) -> Iterator[tuple[str, float]]:
        """Along the motion, and by each dof."""
        now = self.compute(self.q, *RATES, "jacobian_dot", "link_acceleration", "centroidal_bias")
        path = np.stack([self.twin.moved(self.q, self.v, time) for time in OFFSETS])
        rate = {name: np.tensordot(WEIGHTS, values, 1) for name, values in self.compute(path, *RATES).items()}
        speed = float(np.abs(self.v).max(initial=1e-3))
        yield "jacobian_dot", _difference(now["jacobian_dot"], rate["jacobian"], speed)
        yield "link_acceleration", _difference(now["link_acceleration"], rate["link_velocity"], speed)
        yield "centroidal_bias", _difference(now["centroidal_bias"], rate["momentum"], speed)
        yield from self._gradients(rate["mass_matrix"])

    def _gradients(self, mass_rate: Array) -> Iterator[tuple[str, float]]:
        now = self.compute(self.q, "gravity", "coriolis", "com_jacobian", "mass_matrix", "potential_energy")
        directions = np.eye(self.robot.nv)[self.dofs]
        around = np.stack([self.twin.moved(self.q, directions, time) for time in OFFSETS])
        out = self.compute(around, "potential_energy", "kinetic_energy", "com")
        slope = {name: np.tensordot(WEIGHTS, values, 1) for name, values in out.items()}
        v = self.v[self.dofs]
        momentum = now["mass_matrix"] @ v
        coriolis = mass_rate @ v - slope["kinetic_energy"]  # Euler and Poincaré
        for triple in self.twin.rotations(self.dofs):
            coriolis[triple] += np.cross(v[triple], momentum[triple])
        unit = 1e-2 * _force_unit(now["mass_matrix"], v)
        energy = 1e-2 * abs(float(now["potential_energy"]))
        yield "gravity", _difference(now["gravity"], slope["potential_energy"], unit + energy)
        yield "coriolis", _difference(now["coriolis"], coriolis, unit)
        yield "com_jacobian", _difference(now["com_jacobian"], slope["com"].T, 1e-2)


RATES = ("jacobian", "link_velocity", "momentum", "mass_matrix")


def _difference(value: Array, reference: Array, unit: float) -> float:
    """max|Δ| over max|reference|, at least `unit`."""
    return float(np.abs(value - reference).max(initial=0.0) / max(np.abs(reference).max(initial=0.0), unit, 1e-300))


# ------------------------------------------------------------------ comparing


def _relative_error(value: Array, reference: Array, unit: float = 0.0) -> float:
    """max|Δ| over max|reference|; over `unit` where the reference is a zero that rounding moved, below 1e-14 units."""
    if not reference.size:
        return 0.0
    size = float(np.abs(reference).max())
    size = unit if size < 1e-14 * unit else size
    difference = float(np.abs(value - reference).max())
    return difference / size if size > 0 else difference


def _force_unit(M: Array, v: Array) -> float:
    """What forces of this model are made of: its largest inertia at 1 g and at these velocities [N or N m]."""
    return float(np.abs(M).max(initial=0.0) * (9.81 + (v**2).max(initial=0.0)))


def _chosen(out: dict[str, Array], dofs: Sequence[int]) -> dict[str, Array]:
    """The results with the dofs in a reference's order."""
    chosen = dict(out)
    for name in ("mass_matrix", "gravity", "coriolis", "bias", "inverse_dynamics"):
        chosen[name] = out[name][:, dofs]
    chosen["mass_matrix"] = chosen["mass_matrix"][..., dofs]
    for name in ("com_jacobian", "centroidal_momentum_matrix"):
        chosen[name] = out[name][..., dofs]
    return chosen


def _compare_forces(
    out: dict[str, Array], stored: Any, v: Array, rotors: Array, dofs: Sequence[int], width: str
) -> Errors:
    """Against M, g, bias and what follows from them. `rotors`: armature, which Pinocchio does not read from a file."""
    M, g, bias = stored["M"][()], stored["g"][()], stored["bias"][()]
    unit = _force_unit(M, v)
    yield "mass_matrix", width, _relative_error(out["mass_matrix"] - rotors, M)
    yield "gravity", width, _relative_error(out["gravity"], g, unit)
    yield "bias", width, _relative_error(out["bias"], bias, unit)
    yield "coriolis", width, _relative_error(out["coriolis"] + g, bias, unit)
    forces = (M + rotors) @ _acceleration(max(dofs, default=0) + 1)[dofs] + bias
    yield "inverse_dynamics", width, _relative_error(out["inverse_dynamics"], forces, unit)
    energy = 0.5 * np.einsum("ki,kij,kj->k", v, M + rotors, v)
    yield "kinetic_energy", width, _relative_error(out["kinetic_energy"], energy)


def _acceleration(nv: int) -> Array:
    """An acceleration (nv,) to compute inverse dynamics at."""
    return np.sin(1.0 + np.arange(nv))


def _compare_poses(out: dict[str, Array], group: h5py.Group, links: Sequence[int], width: str) -> Errors:
    yield "link_position", width, _relative_error(out["link_position"][:, links], group["pos"][()])
    quaternion = out["link_quaternion"][:, links]
    reference = group["quat"][()]
    turned = np.sign(np.einsum("kli,kli->kl", quaternion, reference))[..., None]  # q and -q are one rotation
    yield "link_quaternion", width, _relative_error(quaternion * turned, reference)


def _compare_jacobian(
    out: dict[str, Array], dofs: Sequence[int], v: Array, group: h5py.Group, links: Sequence[int], width: str
) -> Errors:
    if "J" in group:
        reference = group["J"][()]
        rows = len(reference)
        yield "jacobian", width, _relative_error(out["jacobian"][:rows, links][..., dofs], reference)
        twists = np.einsum("klij,kj->kli", reference, v[:rows])
        yield "link_velocity", width, _relative_error(out["link_velocity"][:rows, links], twists)


def _compare_centroid(robot: Robot, out: dict[str, Array], v: Array, group: h5py.Group, width: str) -> Errors:
    """Centre of mass and momentum map of a fixed robot: Pinocchio leaves out the links that cannot move."""
    m = robot.model
    if not group.attrs["mass"]:
        return
    still = m.link_body == 0
    mass = float(m.link_mass.sum())
    moving = float(m.link_mass[~still].sum())
    yield "mass", width, _relative_error(np.array(moving), np.array(group.attrs["mass"]))
    still_moment = np.zeros(3)
    for link in np.flatnonzero(still):
        R, p = m.link_rotation[link], m.link_position[link]
        still_moment += m.link_mass[link] * (p + R @ m.link_com[link])
    com = (mass * out["com"] - still_moment) / moving
    yield "com", width, _relative_error(com, group["com"][()])
    yield from _compare_momentum(out, group["Ag"][()], v, out["com"] - com, mass, width)


def _compare_momentum(out: dict[str, Array], Ag: Array, v: Array, lever: Array, mass: float, width: str) -> Errors:
    """The momentum map, moved by `lever` (K, 3) to the reference's centre of mass; momentum; velocity of the centre."""
    A, h = out["centroidal_momentum_matrix"].copy(), out["momentum"].copy()
    A[:, 3:] += np.cross(lever[:, :, None], A[:, :3], axis=1)
    h[:, 3:] += np.cross(lever, h[:, :3])
    yield "centroidal_momentum_matrix", width, _relative_error(A, Ag)
    yield "momentum", width, _relative_error(h, np.einsum("kij,kj->ki", Ag, v))
    yield "com_jacobian", width, _relative_error(out["com_jacobian"], Ag[:, :3] / mass)


# ------------------------------------------------------------------ running


QUANTITIES = (
    "link_position",
    "link_quaternion",
    "jacobian",
    "link_velocity",
    "com",
    "com_jacobian",
    "momentum",
    "centroidal_momentum_matrix",
    "kinetic_energy",
    "mass_matrix",
    "gravity",
    "coriolis",
    "bias",
    "inverse_dynamics",
    "coupling_matrix",
)


def _both_widths(
    robot: Robot, qpos: Array, qvel: Array, *, reduced: bool = False, jacobian: bool = True
) -> Iterator[tuple[str, dict[str, Array]]]:
    """("scalar", results) row by row, and ("pack", results) of a table that fills a pack."""
    quantities = [name for name in QUANTITIES if jacobian or name != "jacobian"]
    wanted: dict[str, Any] = {"quantities": quantities, "reduced": reduced, "at": "origin"}
    qacc = np.tile(_acceleration(robot.nv), (len(qpos), 1))
    rows = [robot.compute(*row, **wanted) for row in zip(qpos, qvel, qacc, strict=True)]
    yield "scalar", {name: np.array([row[name] for row in rows]) for name in quantities}
    if not disabled():
        filled = np.resize(np.arange(len(qpos)), max(WIDTH, len(qpos)))
        table = robot.compute(qpos[filled], qvel[filled], qacc[filled], **wanted)
        yield "pack", {name: values[: len(qpos)] for name, values in table.items()}


def _names(dataset: h5py.Dataset) -> list[str]:
    return [name.decode() for name in dataset[()]]


def _dofs(robot: Robot, names: Sequence[str]) -> list[int]:
    return [robot.labels.joint_dofs[name].start for name in names]


def _links(robot: Robot, names: Sequence[str]) -> list[int]:
    return [robot.links.index(name) for name in names]


def _independent(robot: Robot, names: Sequence[str]) -> list[int]:
    assert sorted(names) == sorted(robot.independent_dofs)
    return [robot.independent_dofs.index(name) for name in names]


def _positions(robot: Robot, file: h5py.File, theta: Array) -> Array:
    """qpos (K, nq) of plain joint values."""
    qpos = np.tile(robot.reference, (len(theta), 1))
    for column, name in zip(theta.T, _names(file["open/joint_names"]), strict=True):
        qpos[:, robot.labels.joint_coords[name]] = column[:, None]
    return qpos


def _coupling_matrix(robot: Robot) -> Array:
    """G (nv, nu) of linear couplings, by following each joint to what moves it."""
    independent = robot.independent_dofs
    couplings = {c.follower: c for c in robot.articulation.couplings}
    G = np.zeros((robot.nv, len(independent)))
    for row, name in enumerate(robot.dofs):
        current: str | None = name
        gain = 1.0
        while current in couplings:
            gain *= couplings[current].coefficients[1] if couplings[current].leader else 0.0
            current = couplings[current].leader
        if current in independent:
            G[row, independent.index(current)] = gain
    return G


def _rotation(quaternion: Array) -> Array:
    w, x, y, z = quaternion
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + 2 * w * K + 2 * K @ K)


def _block(R: Array, size: int) -> Array:
    S = np.eye(size)
    S[:3, :3] = R
    return S
