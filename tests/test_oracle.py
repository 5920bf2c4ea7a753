"""Every rigid-body quantity of every public URDF against Pinocchio, in both widths, fixed, floating and with mimics.

The reference files hold, for random configurations, what Pinocchio computes from the same URDF: group /open without
mimics, /float on a free-flyer, /mimic_by_reduction and /mimic in independent coordinates. An error is max|Δ| over
max|reference|. What differs by convention (order of joints, body-frame velocities, links fixed to the world) is
converted here. `python -m pytest tests/test_oracle.py -q -s` prints the table of worst errors.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest

from artsim.loaders.load import load_articulation
from artsim.sim.errors import ModelError
from artsim.sim.jit import disabled
from artsim.sim.records import WIDTH
from artsim.sim.robot import Robot
from tests.conftest import corpus_entries

Array = np.ndarray[Any, np.dtype[np.float64]]
pytestmark = pytest.mark.corpus

TOLERANCE = 1e-9
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


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """The table of worst errors, after all models."""
    yield
    print(f"\n{len(ENTRIES)} models with references, {sum(refused.values())} refused by artsim")
    for (group, quantity, width), deviation in sorted(worst.items()):
        models = len(counted[group])
        print(f"{group:20} {models:4} models {quantity:28} {width:6} {deviation.error:.1e}  {deviation.model}")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_public_models_agree_with_pinocchio(chunk: int) -> None:
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    found = [deviation for entry in ENTRIES[chunk::CHUNKS] for deviation in _deviations(entry)]
    for deviation in found:
        key = (deviation.group, deviation.quantity, deviation.width)
        if key not in worst or not deviation.error <= worst[key].error:
            worst[key] = deviation
        counted[deviation.group].add(deviation.model)
    failures = [deviation for deviation in found if not deviation.error < TOLERANCE]
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
    rows = len(qpos)
    qvel = np.zeros((rows, robot.nv))
    qvel[:, dofs] = group["qd"][()]
    links = _links(robot, _names(file["link_names"]))
    for width, out in _both_widths(robot, qpos, qvel):
        yield from _compare_poses(out, group, links, width)
        yield "mass_matrix", width, _relative_error(_bare(robot, out)[:, dofs][:, :, dofs], group["M"][()])
        yield "gravity", width, _relative_error(out["gravity"][:, dofs], group["g"][()], _force_unit(group))
        yield "bias", width, _relative_error(out["bias"][:, dofs], group["bias"][()], _force_unit(group))
        yield from _compare_jacobian(out["jacobian"][..., dofs], group, links, width)
        yield from _compare_centroid(robot, out, out["centroidal_momentum_matrix"][..., dofs], group, width)


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
    rotations = [_rotation(q) for q in base[:, [6, 3, 4, 5]]]
    S = np.array([_block(R.T, robot.nv) for R in rotations])
    v_pin = group["qd"][()]
    qvel = np.zeros((len(qpos), robot.nv))
    qvel[:, dofs] = np.einsum("kji,kj->ki", S, v_pin)
    drift = np.zeros_like(v_pin)  # s' with v̇_pin = S v̇ + s'
    drift[:, :3] = -np.cross(v_pin[:, 3:6], v_pin[:, :3])
    M_pin = group["M"][()]
    M = np.einsum("kji,kjl,klm->kim", S, M_pin, S)
    gravity = np.einsum("kji,kj->ki", S, group["g"][()])
    bias = np.einsum("kji,kj->ki", S, group["bias"][()] + np.einsum("kij,kj->ki", M_pin, drift))
    Ag = np.einsum("kij,kjl->kil", group["Ag"][()], S)
    links = _links(robot, _names(group["link_names"] if "link_names" in group else file["link_names"]))
    for width, out in _both_widths(robot, qpos, qvel, jacobian=False):
        yield from _compare_poses(out, group, links, width)
        yield "mass_matrix", width, _relative_error(_bare(robot, out)[:, dofs][:, :, dofs], M)
        yield "gravity", width, _relative_error(out["gravity"][:, dofs], gravity, _force_unit(group))
        yield "bias", width, _relative_error(out["bias"][:, dofs], bias, _force_unit(group))
        if group.attrs["mass"] > 0:
            yield "com", width, _relative_error(out["com"], group["com"][()])
            A = out["centroidal_momentum_matrix"][..., dofs]
            yield "centroidal_momentum_matrix", width, _relative_error(A, Ag)


def _reduction(robot: Robot, file: h5py.File) -> Errors:
    """GᵀMG and so on, by hand from Pinocchio's open tree."""
    group = file["mimic_by_reduction"]
    names = _names(file["open/joint_names"])
    independent = _independent(robot, _names(group["free_joints"]))
    qpos = _positions(robot, file, group["theta"][()])
    qvel = np.zeros((len(qpos), robot.nv))
    qvel[:, _dofs(robot, names)] = group["qd_open"][()]
    G = _coupling_matrix(robot)
    for width, out in _both_widths(robot, qpos, qvel, reduced=True):
        M = (out["mass_matrix"] - G.T @ np.diag(robot.model.armature) @ G)[:, independent][:, :, independent]
        yield "mass_matrix", width, _relative_error(M, group["M"][()])
        yield "gravity", width, _relative_error(out["gravity"][:, independent], group["g"][()], _force_unit(group))
        yield "bias", width, _relative_error(out["bias"][:, independent], group["bias"][()], _force_unit(group))


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
    independent = _independent(robot, names)
    theta = file["mimic_by_reduction/theta"] if "mimic_by_reduction" in file else file["open/theta"]
    qpos = _positions(robot, file, theta[()])
    qvel = np.zeros((len(qpos), robot.nv))
    qvel[:, _dofs(robot, names)] = group["qd"][()]
    G = _coupling_matrix(robot)
    links = _links(robot, _names(group["link_names"] if "link_names" in group else file["link_names"]))
    for width, out in _both_widths(robot, qpos, qvel, reduced=True):
        yield from _compare_poses(out, group, links, width)
        M = (out["mass_matrix"] - G.T @ np.diag(robot.model.armature) @ G)[:, independent][:, :, independent]
        yield "mass_matrix", width, _relative_error(M, group["M"][()])
        yield "gravity", width, _relative_error(out["gravity"][:, independent], group["g"][()], _force_unit(group))
        yield "bias", width, _relative_error(out["bias"][:, independent], group["bias"][()], _force_unit(group))
        yield from _compare_jacobian(out["jacobian"][..., independent], group, links, width)
        yield from _compare_centroid(
            robot, out, (out["centroidal_momentum_matrix"] @ G)[..., independent], group, width
        )


# ------------------------------------------------------------------ comparing


def _relative_error(value: Array, reference: Array, unit: float = 0.0) -> float:
    """max|Δ| over max|reference|; over `unit` where the reference is a zero that rounding moved, below 1e-14 units."""
    if not reference.size:
        return 0.0
    size = float(np.abs(reference).max())
    size = unit if size < 1e-14 * unit else size
    difference = float(np.abs(value - reference).max())
    return difference / size if size > 0 else difference


def _force_unit(group: h5py.Group) -> float:
    """What forces of this model are made of: its largest inertia at 1 g and at these velocities [N or N m]."""
    return float(np.abs(group["M"][()]).max() * (9.81 + (group["qd"][()] ** 2).max() if "qd" in group else 9.81))


def _bare(robot: Robot, out: dict[str, Array]) -> Array:
    """M without armature, which Pinocchio does not read from a file."""
    return np.asarray(out["mass_matrix"] - np.diag(robot.model.armature))


def _compare_poses(out: dict[str, Array], group: h5py.Group, links: Sequence[int], width: str) -> Errors:
    yield "link_position", width, _relative_error(out["link_position"][:, links], group["pos"][()])
    quaternion = out["link_quaternion"][:, links]
    reference = group["quat"][()]
    turned = np.sign(np.einsum("kli,kli->kl", quaternion, reference))[..., None]  # q and -q are one rotation
    yield "link_quaternion", width, _relative_error(quaternion * turned, reference)


def _compare_jacobian(J: Array, group: h5py.Group, links: Sequence[int], width: str) -> Errors:
    if "J" in group:
        reference = group["J"][()]
        yield "jacobian", width, _relative_error(J[: len(reference), links], reference)


def _compare_centroid(robot: Robot, out: dict[str, Array], A: Array, group: h5py.Group, width: str) -> Errors:
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
    shifted = A.copy()
    shifted[:, 3:] += np.cross((out["com"] - com)[:, :, None], A[:, :3], axis=1)
    yield "centroidal_momentum_matrix", width, _relative_error(shifted, group["Ag"][()])


# ------------------------------------------------------------------ running


QUANTITIES = (
    "link_position",
    "link_quaternion",
    "jacobian",
    "com",
    "centroidal_momentum_matrix",
    "mass_matrix",
    "gravity",
    "bias",
)


def _both_widths(
    robot: Robot, qpos: Array, qvel: Array, *, reduced: bool = False, jacobian: bool = True
) -> Iterator[tuple[str, dict[str, Array]]]:
    """("scalar", results) row by row, and ("pack", results) of a table that fills a pack."""
    quantities = [name for name in QUANTITIES if jacobian or name != "jacobian"]
    wanted: dict[str, Any] = {"quantities": quantities, "reduced": reduced, "at": "origin"}
    rows = [robot.compute(q, v, **wanted) for q, v in zip(qpos, qvel, strict=True)]
    yield "scalar", {name: np.array([row[name] for row in rows]) for name in quantities}
    if not disabled():
        filled = np.resize(np.arange(len(qpos)), max(WIDTH, len(qpos)))
        table = robot.compute(qpos[filled], qvel[filled], **wanted)
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
