"""What the simulation tests share: a run in one call, and M, bias, forces and couplings that are not the engine's own.

`simulate` runs a model and gives its recorded arrays. `Truth` computes with Pinocchio from the same URDF, mimics taken
out, in artsim's order and velocity convention. `Mimics` reads the couplings from the XML and composes them.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import Plan, plan_run
from artsim.sim.runs.simulate import Simulation
from tests.conftest import ROOT, corpus

Array = np.ndarray[Any, Any]
ROBOTS = ROOT / "robots"
FORCES = ("tau_applied", "tau_drive", "tau_passive", "tau_coupling", "tau_limit")
STATE = ("qpos", "qvel", "qacc")


# ------------------------------------------------------------------ running


@dataclass(frozen=True)
class Run:
    """A finished run: recorded arrays by name, and what they belong to."""

    rows: dict[str, Array]
    simulation: Simulation

    @property
    def plan(self) -> Plan:
        return self.simulation.plan

    @property
    def robot(self) -> Robot:
        return self.plan.robot

    def __getitem__(self, name: str) -> Array:
        return self.rows[name]

    def bytes(self) -> bytes:
        """All recorded bytes, and the final state's."""
        parts = [self.rows[name] for name in sorted(self.rows)]
        return b"".join(part.tobytes() for part in [*parts, self.simulation.qpos, self.simulation.qvel])


def robot_file(name: str) -> Path:
    """A model of robots/."""
    return ROBOTS / f"{name}.urdf"


def source_text(model: str | Path) -> str:
    """The URDF text of a file, or the text itself."""
    return model.read_text() if isinstance(model, Path) else model


def load(model: str | Path | Articulation, base: str = "fixed") -> Articulation:
    """A file, a text or what was loaded already."""
    if isinstance(model, Articulation):
        return dataclasses.replace(model, base=base)
    if isinstance(model, Path):
        return load_articulation(model, base=base, meshes=False)  # type: ignore[arg-type]
    return load_text(model, name="test.urdf", base=base, meshes=False)  # type: ignore[arg-type]


def constant_controls(plan: Plan) -> Controls:
    """The plan's torque and targets from the first step on."""
    return Controls(np.zeros(1, np.int64), plan.torque[None], plan.target[None], plan.target_velocity[None])


def simulate(
    model: str | Path | Articulation,
    *,
    controls: Callable[[Plan], Controls] = constant_controls,
    function: Callable[[float, Array, Array], Array] | None = None,
    block_rows: int | None = None,
    check: bool = True,
    **config: Any,
) -> Run:
    """Run a model from its file or text to the end; `function` is a controller, `config` are fields of RunConfig.

    Without contacts, unless there is a ground or the configuration says so.
    """
    config.setdefault("contacts", "ground" in config)
    plan = plan_run(load(model, config.get("base", "fixed")), RunConfig(**config))
    simulation = Simulation(plan, controls(plan), function, block_rows)
    parts = [{name: values.copy() for name, values in block.rows.items()} for block in simulation.blocks()]
    if check:
        simulation.check()
    names = parts[0] if parts else ()
    return Run({name: np.concatenate([part[name] for part in parts]) for name in names}, simulation)


def relative(error: Array, reference: Array) -> float:
    """max|Δ| / max|reference|."""
    return float(np.max(np.abs(error)) / np.max(np.abs(reference)))


# ------------------------------------------------------------------ small models


def box_link(
    name: str, mass: float, com: tuple[float, ...] = (0, 0, 0), size: tuple[float, ...] = (0.1, 0.2, 0.3)
) -> str:
    """A link that is a solid box, centre at `com`."""
    x, y, z = (s * s * mass / 12 for s in size)
    return (
        f'<link name="{name}"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/><mass value="{mass}"/>'
        f'<inertia ixx="{y + z!r}" iyy="{x + z!r}" izz="{x + y!r}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def joint(
    name: str,
    kind: str,
    parent: str,
    child: str,
    *,
    at: tuple[float, ...] = (0, 0, 0),
    axis: tuple[float, ...] = (0, 1, 0),
    limit: tuple[float, float] = (-1e3, 1e3),
    velocity: float = 1e6,
    damping: float = 0.0,
    friction: float = 0.0,
    mimic: tuple[str, float, float] | None = None,
) -> str:
    """A joint in URDF."""
    follows = f'<mimic joint="{mimic[0]}" multiplier="{mimic[1]!r}" offset="{mimic[2]!r}"/>' if mimic else ""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{at[0]} {at[1]} {at[2]}"/><axis xyz="{axis[0]} {axis[1]} {axis[2]}"/>'
        f'<limit lower="{limit[0]!r}" upper="{limit[1]!r}" effort="1e6" velocity="{velocity!r}"/>'
        f'<dynamics damping="{damping!r}" friction="{friction!r}"/>{follows}</joint>'
    )


def urdf(*parts: str) -> str:
    """A robot of these parts on a link `base` without mass."""
    return f'<robot name="test"><link name="base"/>{"".join(parts)}</robot>'


def slider(mass: float = 2.0, **options: Any) -> str:
    """One mass on a horizontal rail along x, joint `x`."""
    return urdf(box_link("cart", mass), joint("x", "prismatic", "base", "cart", axis=(1, 0, 0), **options))


def corpus_mimics() -> list[dict[str, Any]]:
    """The public URDFs with mimic joints that urdfdom loads."""
    from tests.conftest import corpus_entries

    return [entry for entry in corpus_entries("urdf") if entry["mimic"] and entry["expect"] == "load"]


@cache
def peer_models() -> dict[str, dict[str, Any]]:
    """The six mimic models that the other engines were measured on, by name; empty where they are not at hand."""
    folder = corpus()
    path = folder.parent / "peers" / "behaviour" / "models.py" if folder else Path()
    if not path.is_file():
        return {}
    spec = importlib.util.spec_from_file_location("artsim_peer_models", path)
    assert spec and spec.loader
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.CASES)


# ------------------------------------------------------------------ couplings, from the XML


class Mimics:
    """q = G y + c of a URDF's mimic joints, chains composed; dofs in the robot's order. Only joints of one dof."""

    def __init__(self, model: str | Path, robot: Robot) -> None:
        root = ElementTree.fromstring(source_text(model).encode())
        moving = set(robot.dofs)
        self.of: dict[str, tuple[str, float, float]] = {}
        for element in root.findall("joint"):
            mimic = element.find("mimic")
            if mimic is not None and element.get("name") in moving and mimic.get("joint") in moving:
                numbers = float(mimic.get("multiplier", 1)), float(mimic.get("offset", 0))
                self.of[element.get("name", "")] = (mimic.get("joint", ""), *numbers)
        independent = list(robot.independent_dofs)
        self.G = np.zeros((robot.nv, len(independent)))
        self.offset = np.zeros(robot.nv)
        for row, name in enumerate(robot.dofs):
            gain, offset = 1.0, 0.0
            while name in self.of:
                name, multiplier, shift = self.of[name]
                offset += gain * shift
                gain *= multiplier
            self.offset[row] = offset
            if name in independent:
                self.G[row, independent.index(name)] = gain
        self._index = {name: column for column, name in enumerate(robot.coords)}

    def error(self, qpos: Array) -> float:
        """Worst |q_follower - multiplier q_leader - offset| over rows of coordinates."""
        columns = self._index
        errors = [
            np.abs(qpos[..., columns[name]] - multiplier * qpos[..., columns[leader]] - offset).max()
            for name, (leader, multiplier, offset) in self.of.items()
        ]
        return float(max(errors))


def joint_limits(model: str | Path) -> dict[str, tuple[float, float]]:
    """Position limits of revolute and prismatic joints."""
    limits = {}
    for element in ElementTree.fromstring(source_text(model).encode()).findall("joint"):
        limit = element.find("limit")
        if element.get("type") in ("revolute", "prismatic") and limit is not None:
            limits[element.get("name", "")] = float(limit.get("lower", 0)), float(limit.get("upper", 0))
    return limits


def start_inside(model: str | Path, robot: Robot) -> dict[str, float]:
    """Independent coordinates at 0.7 of the way between all limits that concern them; 0.5 where these are far."""
    mimics = Mimics(model, robot)
    limits = joint_limits(model)
    start = {}
    for column, name in enumerate(robot.independent_dofs):
        low, high = -10.0, 10.0
        for row in np.flatnonzero(mimics.G[:, column]):
            ends = np.array(limits.get(robot.dofs[row], (-np.inf, np.inf)))
            ends = np.sort((ends - mimics.offset[row]) / mimics.G[row, column])
            low, high = max(low, ends[0]), min(high, ends[1])
        start[name] = 0.3 * low + 0.7 * high if high - low < 10 else min(max(0.5, low), high)
    return start


# ------------------------------------------------------------------ Pinocchio


def without(text: str, *tags: str) -> str:
    """The URDF without these elements of its joints and links."""
    root = ElementTree.fromstring(text.encode())
    for parent in [*root.findall("joint"), *root.findall("link")]:
        for tag in tags:
            for element in parent.findall(tag):
                parent.remove(element)
    return ElementTree.tostring(root, encoding="unicode")


class Truth:
    """Pinocchio's M, bias, wrenches and momentum of a URDF, in the order and velocity convention of artsim.

    artsim's free and planar joints have linear velocities in the parent's axes, Pinocchio's in the body's:
    v_pin = S v, so M = Sᵀ M_p S and bias = Sᵀ (bias_p + M_p Ṡ v).
    """

    def __init__(self, model: str | Path, robot: Robot, *, base: str = "fixed", gravity: Array | None = None) -> None:
        text = without(source_text(model), "mimic", "visual", "collision")
        root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
        self.model = pin.buildModelFromXML(text, *root)
        if gravity is not None:
            self.model.gravity.linear = np.asarray(gravity, float)
        self.data = self.model.createData()
        self.robot = robot
        free = {name for name in robot.labels.joint_coords if base == "floating" and name.split("::")[-1] == "root"}
        self.joints = [
            (self.model.getJointId("root_joint" if name in free else name), coords, robot.labels.joint_dofs[name])
            for name, coords in robot.labels.joint_coords.items()
        ]
        assert sum(self.model.joints[i].nv for i, _, _ in self.joints) == self.model.nv

    def convert(self, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        """Pinocchio's q and v, S (nv, nv) and Ṡ v (nv,)."""
        out, S, rate = pin.neutral(self.model), np.zeros((self.model.nv, len(v))), np.zeros(self.model.nv)
        for i, coords, dofs in self.joints:
            item = self.model.joints[i]
            x, y = q[coords], v[dofs]
            rows = slice(item.idx_v, item.idx_v + item.nv)
            block = np.eye(item.nv)
            if item.nv == 6:
                out[item.idx_q : item.idx_q + 7] = [*x[:3], *x[4:], x[3]]
                R = pin.Quaternion(x[3], x[4], x[5], x[6]).matrix()
                block[:3, :3] = R.T
                rate[item.idx_v : item.idx_v + 3] = -np.cross(y[3:], R.T @ y[:3])
            elif item.nv == 3:
                c, s = np.cos(x[2]), np.sin(x[2])
                out[item.idx_q : item.idx_q + 4] = [x[0], x[1], c, s]
                block[:2, :2] = [[c, s], [-s, c]]
                rate[item.idx_v : item.idx_v + 2] = y[2] * np.array([[-s, c], [-c, -s]]) @ y[:2]
            elif item.nq == 2:
                out[item.idx_q : item.idx_q + 2] = np.cos(x[0]), np.sin(x[0])
            else:
                out[item.idx_q] = x[0]
            S[rows, dofs] = block
        return out, S @ v, S, rate

    def mass_matrix(self, q: Array) -> Array:
        """M (nv, nv)."""
        p, _, S, _ = self.convert(q, np.zeros(self.robot.nv))
        M = np.triu(pin.crba(self.model, self.data, p))
        return S.T @ (M + np.triu(M, 1).T) @ S

    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Array:
        """M a + bias; leaves the joints' wrenches in `data.f`."""
        p, w, S, rate = self.convert(q, v)
        return S.T @ pin.rnea(self.model, self.data, p, w, S @ a + rate)

    def bias(self, q: Array, v: Array) -> Array:
        """C v + g."""
        return self.inverse_dynamics(q, v, np.zeros(len(v)))

    def acceleration(self, q: Array, v: Array, tau: Array) -> Array:
        """Forward dynamics of the tree without couplings, by Pinocchio's ABA."""
        p, w, S, rate = self.convert(q, v)
        return np.linalg.solve(S, pin.aba(self.model, self.data, p, w, np.linalg.solve(S.T, tau)) - rate)

    def energy(self, q: Array, v: Array) -> float:
        """Kinetic and potential."""
        p, w, _, _ = self.convert(q, v)
        kinetic = pin.computeKineticEnergy(self.model, self.data, p, w)
        return float(kinetic + pin.computePotentialEnergy(self.model, self.data, p))

    def momentum(self, q: Array, v: Array) -> Array:
        """Linear and angular about the centre of mass, world axes (6,)."""
        p, w, _, _ = self.convert(q, v)
        return np.array(pin.computeCentroidalMomentum(self.model, self.data, p, w).vector)

    def wrenches(self, q: Array, v: Array, a: Array) -> dict[str, Array]:
        """By joint: force and torque that the child receives, at the child frame's origin, world axes."""
        self.inverse_dynamics(q, v, a)
        pin.forwardKinematics(self.model, self.data, self.convert(q, v)[0])
        found = {}
        for i, _, _ in self.joints:
            turn = self.data.oMi[i].rotation
            found[self.model.names[i]] = np.concatenate([turn @ self.data.f[i].linear, turn @ self.data.f[i].angular])
        return found
