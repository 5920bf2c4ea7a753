"""Every public MJCF model against MuJoCo: poses, masses, forces, Jacobians, momentum, at random configurations.

A model is read and agrees, or is refused by the name of what is not supported; the table says how many of each.
An error is max|Δ| over max|reference|, 0 where both are rounding.
`python -m pytest tests/quantities/test_mjcf_oracle.py -q -s`.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import mujoco
import numpy as np
import pytest

from artsim.loaders.assets import Assets
from artsim.loaders.elements import Reading
from artsim.loaders.mjcf.read import read_mjcf
from artsim.loaders.xml import parse
from artsim.sim.articulation.description import Articulation, Coupling, Loop
from artsim.sim.foundation.errors import ModelError
from artsim.sim.foundation.rotations import rotation_matrix
from artsim.sim.quantities.robot import Robot
from tests.conftest import corpus_entries
from tests.equipment.mujoco_tendons import dropped_inertia

Array = np.ndarray[Any, np.dtype[np.float64]]
pytestmark = pytest.mark.corpus
mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run

TOLERANCE = 1e-9
CHUNKS = 10
LEAST_READ = 245  # models of the public set that are read and agree; only ever more
ENTRIES = [entry for entry in corpus_entries("mjcf") if entry.get("oracle") and entry["expect"] == "load"]
QUANTITIES = "mass_matrix gravity bias jacobian link_position link_quaternion com centroidal_momentum_matrix".split()

worst: dict[str, tuple[float, str]] = {}
refused: Counter[str] = Counter()
agree: set[str] = set()


@pytest.fixture(scope="module", autouse=True)
def report() -> Iterator[None]:
    """The table, after all models."""
    yield
    print(f"\n{len(ENTRIES)} models with references: {len(agree)} agree, {sum(refused.values())} refused")
    for reason, count in refused.most_common():
        print(f"{count:4} {reason}")
    for quantity, (error, model) in worst.items():
        print(f"{quantity:28} {error:.1e}  {model}")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_public_models_agree_with_mujoco(chunk: int) -> None:
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    wrong = []
    for entry in ENTRIES[chunk::CHUNKS]:
        try:
            robot = Robot.of(read(entry["path"]))
        except ModelError as error:
            refused[reason(str(error))] += 1
            assert "not supported yet" in str(error), f"{entry['id']}: {error}"
            continue
        errors = compared(robot, entry)
        wrong += [f"{entry['id']}: {name} {error:.1e}" for name, error in errors.items() if not error < TOLERANCE]
        for name, error in errors.items():
            worst[name] = max(worst.get(name, (-1.0, "")), (error, entry["id"]))
        agree.add(entry["id"])
    assert wrong == []


def test_as_many_are_read_as_before() -> None:
    if not ENTRIES or len(agree) + sum(refused.values()) < len(ENTRIES):
        pytest.skip("not all models were tried")
    assert len(agree) >= LEAST_READ


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_models_without_references_agree_with_mujoco_itself(chunk: int) -> None:
    """What no reference was stored for, mostly for size or because nothing in it moves."""
    entries = [entry for entry in corpus_entries("mjcf") if not entry.get("oracle") and entry["expect"] == "load"]
    for entry in entries[chunk::CHUNKS]:
        try:
            robot = Robot.of(read(entry["path"]))
        except ModelError as error:
            assert "not supported yet" in str(error), f"{entry['id']}: {error}"
            continue
        errors = against_mujoco(robot, entry["path"])
        assert not [name for name, error in errors.items() if not error < TOLERANCE], (entry["id"], errors)


def against_mujoco(robot: Robot, path: str) -> dict[str, float]:
    """As `compared`, by MuJoCo now; mass matrices of up to 1000 dofs."""
    model = mujoco.MjModel.from_xml_path(path)
    data = mujoco.MjData(model)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    errors = {
        "sizes": float((robot.nq, robot.nv, len(robot.links)) != (model.nq, model.nv, model.nbody)),
        "mass": relative(robot.model.link_mass, model.body_mass),
    }
    if not 0 < model.nv <= 1000:
        return errors
    rng = np.random.default_rng(zlib.crc32(Path(path).name.encode()))
    data.qpos[:], data.qvel[:] = model.qpos0 + rng.normal(size=model.nq), rng.normal(size=model.nv)
    mujoco.mj_normalizeQuat(model, data.qpos)
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    out = robot.compute(data.qpos, data.qvel, quantities=["mass_matrix", "bias", "link_position"])
    errors["M"] = relative(out["mass_matrix"], M)
    errors["bias"] = relative(out["bias"], data.qfrc_bias, 1e-6 * np.abs(M).max())
    errors["position"] = relative(out["link_position"], data.xpos)
    return errors


def test_what_mujoco_refuses_is_refused() -> None:
    """But for what is MuJoCo's own limit."""
    limits = {"mjcf.pinocchio.models_simple_humanoid"}  # its STL files are text
    for entry in corpus_entries("mjcf"):
        if entry["expect"] == "reject" and entry["id"] not in limits:
            with pytest.raises(ModelError):
                read(entry["path"])


def read(path: str) -> Articulation:
    """The description of a model."""
    assets = Assets(folder=Path(path).parent)
    document = parse(Path(path).read_bytes(), file=path)
    return read_mjcf(document.root, Reading(path, assets=assets), assets, max_mb=64)


def reason(message: str) -> str:
    """A refusal without place and names."""
    return re.sub(r"'[^']*'", "'…'", message.split(": ", 1)[1])


def compared(robot: Robot, entry: dict[str, Any]) -> dict[str, float]:
    """The error of each quantity."""
    folder = entry["path"].removesuffix("files/" + entry["path"].split("/files/", 1)[1])
    with h5py.File(folder + entry["oracle"]) as file:
        data = {name: file[name][()] for name in file}
        total = float(file.attrs["mass"])
    out = robot.compute(data["q"], data["qd"], quantities=QUANTITIES, at="origin")
    M, full, bias, bare = data["M"], data.get("M_full", data["M"]), data["bias"], out
    if any(tendon.armature for tendon in robot.articulation.tendons):
        full, bias = with_tendons(entry, data)
        bare = Robot.of(without_armature(robot.articulation)).compute(data["q"], quantities=["mass_matrix"])
    force = max(np.abs(data["g"]).max(), 1e-6 * np.abs(M).max())  # below that a force is rounding
    errors = {
        "M with armature": relative(out["mass_matrix"], full),
        "M": relative(bare["mass_matrix"] - np.diag(robot.model.armature), M),
        "g": relative(out["gravity"], data["g"], force),
        "bias": relative(out["bias"], bias, force),
        "position": relative(out["link_position"], data["pos"]),
        "quaternion": relative(aligned(out["link_quaternion"], data["quat"]), data["quat"]),
        "total mass": relative(robot.model.link_mass.sum(), np.array(total)),
        "reference": relative(robot.reference, data["qpos0"]),
        "names": float(not same_names(robot, data["body_names"])),
    }
    if "J" in data:
        errors["J"] = relative(out["jacobian"][: len(data["J"])], data["J"])
    if total > 0:
        errors["com"] = relative(out["com"], data["com"])
        errors["Ag"] = relative(out["centroidal_momentum_matrix"], data["Ag"])
    if "eq_pos" in data:
        errors["equalities"] = equality_error(robot, data, out)
    return errors


def with_tendons(entry: dict[str, Any], data: dict[str, Array]) -> tuple[Array, Array]:
    """M and bias with the tendons' armature (nq rows), which the stored bias lacks, and stored M off the tree."""
    model = mujoco.MjModel.from_xml_path(entry["path"])
    state = mujoco.MjData(model)
    M, bias = data["M_full"].copy(), np.empty_like(data["bias"])
    for row, (q, v) in enumerate(zip(data["q"], data["qd"], strict=True)):
        state.qpos[:], state.qvel[:] = q, v
        mujoco.mj_fwdPosition(model, state)
        mujoco.mj_fwdVelocity(model, state)
        M[row] += dropped_inertia(model, state)
        bias[row] = state.qfrc_bias
    return M, bias


def without_armature(articulation: Articulation) -> Articulation:
    """The same robot with tendons that have no inertia."""
    return replace(articulation, tendons=tuple(replace(tendon, armature=0.0) for tendon in articulation.tendons))


def equality_error(robot: Robot, data: dict[str, Array], out: dict[str, Array]) -> float:
    """Residuals of joint, connect and weld equalities as the description has them, against MuJoCo's [m, rad]."""
    articulation = robot.articulation
    couplings, loops = iter(articulation.couplings), iter(articulation.loops)
    worst_of_all = 0.0
    for number, kind in enumerate(data["eq_type"]):
        rows = [np.flatnonzero(ids == number) for ids in data["eq_id"]]
        found = np.array([data["eq_pos"][k][columns] for k, columns in enumerate(rows)])
        if kind == JOINT and data["eq_active0"][number]:
            residual = coupling_residual(robot, next(couplings), data["q"])
        elif kind in (CONNECT, WELD):
            residual = loop_residual(robot, next(loops), out)
        else:
            continue
        scale = data["eq_data"][number, 10]  # of a weld's rotation, of which only the size is compared
        if kind == WELD and found.size:
            turned = [np.linalg.norm(found[:, 3:], axis=1) / scale] if scale else []
            found = np.column_stack([found[:, :3], *turned])
        if found.size:
            worst_of_all = max(worst_of_all, relative(residual[:, : found.shape[1]], found, 1e-3))
    return worst_of_all


CONNECT, WELD, JOINT = 0, 1, 2


def coupling_residual(robot: Robot, coupling: Coupling, q: Array) -> Array:
    """Follower minus polynomial of its leader."""
    where = robot.labels.joint_coords
    x = q[:, where[coupling.leader].start] if coupling.leader else np.zeros(len(q))
    value = np.polynomial.polynomial.polyval(x, coupling.coefficients)
    return np.asarray((q[:, where[coupling.follower].start] - value)[:, None])


def loop_residual(robot: Robot, loop: Loop, out: dict[str, Array]) -> Array:
    """Distance of the two points, and the sine of half the angle between the frames."""
    points, frames = [], []
    for name, pose in ((loop.link_a, loop.frame_a), (loop.link_b, loop.frame_b)):
        link = robot.links.index(name)
        R = np.array([rotation_matrix(q) for q in out["link_quaternion"][:, link]])
        points.append(out["link_position"][:, link] + R @ np.array(pose.position))
        frames.append(R @ rotation_matrix(pose.rotation))
    between = np.einsum("kji,kjl->kil", *frames)
    cosine = (np.trace(between, axis1=1, axis2=2) - 1) / 2
    return np.column_stack([points[0] - points[1], np.sqrt(np.maximum(0, (1 - cosine) / 2))])


def relative(found: Any, reference: Array, least: float = 1e-9) -> float:
    """max|Δ| / max|reference|; infinite where shapes differ."""
    if np.shape(found) != reference.shape:
        return float("inf")
    if reference.size == 0:
        return 0.0
    return float(np.abs(found - reference).max() / max(np.abs(reference).max(), least))


def aligned(found: Array, reference: Array) -> Array:
    """Quaternions with the reference's sign."""
    if found.shape != reference.shape:
        return found
    aligned: Array = found * np.sign(np.sum(found * reference, axis=-1, keepdims=True))
    return aligned


def same_names(robot: Robot, names: Array) -> bool:
    """Whether the links are MuJoCo's bodies in MuJoCo's order, where those have names."""
    return len(names) == len(robot.links) and all(
        name.decode() in ("", link) for name, link in zip(names, robot.links, strict=True)
    )
