"""Whether the account of energy tells what is wrong, and nothing else: `python -m tests.benchmarks.energy_account`.

Random robots with springs, dampers, friction, limits, tendons, couplings, loops, contacts, media, actuators, drives and
controllers run without error: none may be told. The same with an error planted in mid-run, whose size MuJoCo measures:
every one above 5 % of the energy there must be told. --show N prints a model.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.runs.account import Excess
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation
from tests.simulation import constant_controls

STEPS = 320
WITHIN = 20  # steps in which the account is compared at least once
FINER = 16  # steps in place of one whose error is found
FEATURES = {  # how often
    "floating": 0.25,
    "weightless": 0.15,
    "springs": 0.5,
    "nonlinear": 0.15,
    "damping": 0.3,
    "friction": 0.15,
    "limits": 0.2,
    "tendons": 0.2,
    "couplings": 0.15,
    "loops": 0.1,
    "contacts": 0.25,
    "medium": 0.15,
    "actuators": 0.3,
    "carried": 0.1,
    "torques": 0.3,
    "drives": 0.25,
    "controller": 0.15,
    "rk4": 0.2,
}
ONE_SIDED = {"friction", "limits", "contacts"}
KEEPING = {"floating", "weightless", "springs", "nonlinear", "tendons"}  # features that keep energy
PLANTED = ("kick", "inertia", "damping", "step")
Rng = np.random.Generator


@dataclass
class Case:
    """A robot, and how it runs."""

    text: str
    features: set[str]
    settings: dict[str, Any] = field(default_factory=dict)


def draw(seed: int, number: int, *, only: set[str] | None = None) -> Case:
    """A random case; `only`: of these features."""
    rng = np.random.default_rng([seed, number])
    features = {name for name, often in FEATURES.items() if rng.random() < often}
    if only is not None:
        features &= only
    if features & ONE_SIDED:
        features.discard("rk4")
    text, names = _model(rng, features)
    settings: dict[str, Any] = {"steps": STEPS, "record": ()} | _start(rng, features, names)
    for name, (inertia, stiffness, damping) in _gains(rng, text, names).items():
        text = text.replace(f"KP_{name}", f"{stiffness:.6g}").replace(f"KD_{name}", f"{damping:.6g}")
        _add_inputs(rng, features, settings, name, inertia, stiffness, damping)
    model = mujoco.MjModel.from_xml_string(text.replace("GROUND", "-9"))
    low = _lowest(model, settings.get("q0", {})) - rng.choice([1e-3, 0.1])
    settings["dt"] = float(min(rng.choice([5e-4, 1e-3, 2e-3, 4e-3]), 0.25 / _fastest(model, settings)))
    return Case(text.replace("GROUND", f"{low:.6g}"), features, settings)


# ------------------------------------------------------------------ models


def _numbers(*values: float) -> str:
    return " ".join(f"{value:.6g}" for value in values)


def _model(rng: Rng, features: set[str]) -> tuple[str, list[str]]:
    """MJCF text, and the names of its joints with one coordinate."""
    n = int(rng.integers(1, 6))
    parents = [-1] + [int(rng.integers(max(0, k - 2), k)) for k in range(1, n)]
    names: list[str] = []
    world = "".join(_body(rng, features, parents, k, names) for k, above in enumerate(parents) if above < 0)
    if "contacts" in features:
        world = f'<geom name="ground" type="plane" size="5 5 1" pos="0 0 GROUND"/>{world}'
    gravity = "0 0 0" if "weightless" in features else "0 0 -9.81"
    medium = ""
    if "medium" in features:
        medium = f'density="{_numbers(rng.choice([1.2, 1000.0]))}" viscosity="{_numbers(rng.choice([0.0, 1e-3, 1.0]))}"'
        if rng.random() < 0.3:
            medium += f' wind="{_numbers(*rng.normal(0, 2, 3))}"'
    text = f'<compiler angle="radian"/><option gravity="{gravity}" {medium}/>'
    text += f"<worldbody>{world}</worldbody>{_relations(rng, features, n, names)}{_actuators(rng, features, names)}"
    return f"<mujoco>{text}</mujoco>", names


def _body(rng: Rng, features: set[str], parents: list[int], k: int, names: list[str]) -> str:
    kinds = ["hinge", "hinge", "slide", "ball"] if parents[k] >= 0 or "floating" not in features else ["free"]
    kind = str(rng.choice(kinds))
    joint = '<freejoint name="root"/>' if kind == "free" else _joint(rng, features, kind, f"j{k}", names)
    mass, at = 10 ** rng.uniform(-0.7, 0.5), rng.uniform(-0.2, 0.2, 3)
    size = {"sphere": ".06", "capsule": ".04 .1", "box": ".05 .08 .1", "ellipsoid": ".05 .07 .1"}
    shape = str(rng.choice(list(size)))
    touch = 'contype="2" conaffinity="1"' if "contacts" in features else 'contype="0" conaffinity="0"'
    fluid = 'fluidshape="ellipsoid"' if "medium" in features and rng.random() < 0.5 else ""
    geom = f'<geom type="{shape}" size="{size[shape]}" pos="{_numbers(*at)}" mass="{_numbers(mass)}" {touch} {fluid}/>'
    carried = f'gravcomp="{_numbers(rng.uniform(0, 1.5))}"' if "carried" in features else ""
    below = "".join(_body(rng, features, parents, c, names) for c, above in enumerate(parents) if above == k)
    site, place = f'<site name="s{k}" pos="{_numbers(*at)}"/>', rng.uniform(-0.3, 0.3, 3)
    return f'<body name="b{k}" pos="{_numbers(*place)}" {carried}>{joint}{geom}{site}{below}</body>'


def _joint(rng: Rng, features: set[str], kind: str, name: str, names: list[str]) -> str:
    words = [f'<joint name="{name}" type="{kind}"']
    if kind != "ball":
        words.append(f'axis="{_numbers(*rng.normal(0, 1, 3))}"')
        names.append(name)
    if "springs" in features and rng.random() < 0.7:
        terms = [10 ** rng.uniform(0, 3)]
        if "nonlinear" in features:
            terms += [*rng.uniform(0, 5, 2)]
        words.append(f'stiffness="{_numbers(*terms)}"')
        if kind != "ball":
            words.append(f'springref="{_numbers(rng.uniform(-0.5, 0.5))}"')
    if "damping" in features:
        words.append(f'damping="{_numbers(10 ** rng.uniform(-2, 1))}"')
    if "friction" in features:
        words.append(f'frictionloss="{_numbers(10 ** rng.uniform(-2, 0.5))}"')
    if "limits" in features and kind != "ball":
        words.append(f'range="{_numbers(rng.uniform(-1, -0.1), rng.uniform(0.1, 1))}" limited="true"')
    words.append(f'armature="{_numbers(rng.choice([0.0, 0.0, 0.01, 0.1]))}"/>')
    return " ".join(words)


def _relations(rng: Rng, features: set[str], n: int, names: list[str]) -> str:
    """Tendons, couplings and loops."""
    tendons, equalities = "", ""
    if "tendons" in features and len(names) >= 2:
        parts = "".join(f'<joint joint="{name}" coef="{_numbers(rng.uniform(-1, 1))}"/>' for name in names)
        damped = f'damping="{_numbers(rng.uniform(0, 1))}"' if "damping" in features else ""
        tendons += f'<fixed stiffness="{_numbers(10 ** rng.uniform(0, 2))}" {damped} springlength="0">{parts}</fixed>'
    if "tendons" in features and n >= 2:
        ends = f'<site site="s0"/><site site="s{n - 1}"/>'
        tendons += f'<spatial stiffness="{_numbers(10 ** rng.uniform(0, 2))}" springlength=".1">{ends}</spatial>'
    if "couplings" in features and len(names) >= 2:
        bend = rng.uniform(-0.3, 0.3) if rng.random() < 0.5 else 0.0
        terms = _numbers(0, rng.uniform(-1.5, 1.5), bend, 0, 0)
        equalities += f'<joint joint1="{names[-1]}" joint2="{names[0]}" polycoef="{terms}"/>'
    if "loops" in features and n >= 2:
        equalities += f'<connect body1="b{n - 1}" body2="b0" anchor="0 0 .05"/>' if rng.random() < 0.5 else ""
        equalities += f'<connect body1="b{n - 1}" body2="world" anchor="0 0 0"/>' if not equalities else ""
    return f"<tendon>{tendons}</tendon><equality>{equalities}</equality>"


def _actuators(rng: Rng, features: set[str], names: list[str]) -> str:
    if "actuators" not in features:
        return ""
    made = ""
    for name in names:
        kind = rng.choice(["motor", "position", "velocity", "damper"])
        words = {
            "motor": f'gear="{_numbers(rng.uniform(0.5, 3))}"',
            "position": f'kp="KP_{name}" kv="KD_{name}"',
            "velocity": f'kv="KD_{name}"',
            "damper": f'kv="KD_{name}" ctrlrange="0 1"',
        }
        made += f'<{kind} name="a_{name}" joint="{name}" {words[str(kind)]}/>'
    return f"<actuator>{made}</actuator>"


def _start(rng: Rng, features: set[str], names: list[str]) -> dict[str, Any]:
    """Coordinates and velocities, the integrator and the controller."""
    settings: dict[str, Any] = {"v0": {name: float(rng.normal(0, 2)) for name in names}}
    if "limits" not in features:
        settings["q0"] = {name: float(rng.uniform(-0.8, 0.8)) for name in names}
    if features & {"couplings", "loops"}:
        settings = {"v0": {names[0]: float(rng.normal(0, 1))}} if names and "loops" not in features else {}
    settings["integrator"] = "rk4" if "rk4" in features else "auto"
    if "controller" in features:
        settings["controller"] = str(rng.choice(["gravity-compensation", "computed-torque"]))
    return settings


def _gains(rng: Rng, text: str, names: list[str]) -> dict[str, tuple[float, float, float]]:
    """Of each joint the inertia that it meets, and gains of a drive of 0.3 to 5 Hz."""
    for name in names:
        text = text.replace(f"KP_{name}", "1").replace(f"KD_{name}", "1")
    model = mujoco.MjModel.from_xml_string(text.replace("GROUND", "-9"))
    data, M = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, M)
    inertia = 1.0 / np.diag(np.linalg.inv(M))
    gains = {}
    for name in names:
        met, rate, ratio = (
            float(inertia[model.joint(name).dofadr[0]]),
            10 ** rng.uniform(0.3, 1.5),
            rng.uniform(0.1, 1.5),
        )
        gains[name] = met, met * rate**2, 2 * ratio * met * rate
    return gains


def _add_inputs(
    rng: Rng, features: set[str], settings: dict[str, Any], name: str, inertia: float, stiffness: float, damping: float
) -> None:
    """Torques, controls, gains and targets of a joint."""
    target = settings.get("q0", {}).get(name, 0.0) + float(rng.normal(0, 0.3))
    if "torques" in features:
        settings.setdefault("torque", {})[name] = inertia * float(rng.normal(0, 20))
    if "actuators" in features:
        settings.setdefault("control", {})[f"a_{name}"] = min(max(target, 0.0), 1.0)
    if "drives" in features:
        settings.setdefault("stiffness", {})[name] = stiffness
        settings.setdefault("damping", {})[name] = damping
    if "drives" in features or settings.get("controller") == "computed-torque":
        settings.setdefault("target", {})[name] = target


def _lowest(model: Any, q0: Any) -> float:
    """A height below all bodies at the start [m]."""
    data = mujoco.MjData(model)
    for name, value in q0.items():
        data.joint(name).qpos[0] = value
    mujoco.mj_forward(model, data)
    below = [data.geom_xpos[g, 2] - model.geom_rbound[g] for g in range(model.ngeom) if model.geom_bodyid[g] > 0]
    return float(min(below))


def _fastest(model: Any, settings: Any) -> float:
    """The fastest rate where the model starts, of springs, tendons, drives and actuators on joints, and of their
    damping [rad/s], at least 1."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    joints = model.dof_jntid
    bent = 20.0 * model.jnt_stiffnesspoly.reshape(model.njnt, -1).max(axis=1)  # at two radians
    stiff, damped = (model.jnt_stiffness + bent)[joints], model.dof_damping.copy()
    for k in range(model.nv):
        name = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, joints[k])
        stiff[k] += settings.get("stiffness", {}).get(name, 0.0)
        damped[k] += settings.get("damping", {}).get(name, 0.0)
        for a in np.flatnonzero(model.actuator_trnid[:, 0] == joints[k]):
            stiff[k] += abs(model.actuator_biasprm[a, 1])
            damped[k] += abs(model.actuator_biasprm[a, 2]) + abs(model.actuator_gainprm[a, 2])
    K, D, J = np.diag(stiff), np.diag(damped), np.zeros((model.ntendon, model.nv))
    if model.ntendon:
        mujoco.mju_sparse2dense(J, data.ten_J.ravel(), model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind)
        K += J.T @ np.diag(model.tendon_stiffness) @ J
        D += J.T @ np.diag(model.tendon_damping) @ J
    rates = [np.linalg.eigvals(np.linalg.solve(M, X)).real.max() for X in (K, D)]
    turning = max(map(abs, settings.get("v0", {}).values()), default=0.0)
    return float(max(np.sqrt(rates[0]), rates[1] if settings["integrator"] == "rk4" else 0.0, turning, 1.0))


# ------------------------------------------------------------------ runs


def simulation_of(case: Case) -> Simulation:
    """A case before its first step. Raises ArtsimError if it is refused."""
    plan = plan_run(load_text(case.text, name="random.xml"), RunConfig(**case.settings))
    return Simulation(plan, constant_controls(plan))


def take(simulation: Simulation, steps: int) -> None:
    """Take steps."""
    for _ in simulation.blocks(steps):
        pass


def told(seed: int, number: int) -> tuple[Case, Excess | None]:
    """A case without error, and what its run tells. Raises ArtsimError if it is refused."""
    case = draw(seed, number)
    simulation = simulation_of(case)
    take(simulation, STEPS)
    return case, simulation.energy_excess


def made_by_steps(seed: int, number: int, found: Excess) -> bool:
    """True if the errors of steps in a row come to more than half of the created energy, or to all that was there.

    The error of a step: the change of MuJoCo's energy, less that of finer steps from the same state over the same time.
    Of steps in a row, since an impact that finer steps meet in the next step has errors of both signs.
    """
    coarse, fine = draw(seed, number), draw(seed, number)
    h = coarse.settings["dt"]
    fine.settings["dt"] = h / FINER
    simulation, measure, finer_measure = simulation_of(coarse), Measure(coarse), Measure(fine)
    error, most, lowest = 0.0, 0.0, np.inf
    for step in range(round(found.time / h) + 1):
        moving, potential = measure(simulation)
        lowest = min(lowest, potential)
        if error > moving + potential - lowest + measure.slack:
            return True
        finer = simulation_of(fine)
        finer._state.qpos[:], finer._state.qvel[:] = simulation.qpos, simulation.qvel
        if step > 0:
            measure.move_to_velocities(finer._state.qpos, finer._state.qvel)
            finer_measure.move_from_velocities(finer._state.qpos, finer._state.qvel)
        for run, energy, steps, sign in ((simulation, measure, 1, 1.0), (finer, finer_measure, FINER, -1.0)):
            before = sum(energy(run))
            take(run, steps)
            error += sign * (sum(energy(run)) - before)
        error = max(error, 0.0)
        most = max(most, error)
    return not most < 0.5 * found.created


# ------------------------------------------------------------------ planted errors


class Measure:
    """Energies by MuJoCo, where the velocities of a step are halfway to the positions but in RK4 [J]."""

    def __init__(self, case: Case, armature: Any = None) -> None:
        self._model = mujoco.MjModel.from_xml_string(case.text)
        if armature is not None:
            self._model.dof_armature[:] = armature
        self._model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        self._data = mujoco.MjData(self._model)
        self._back = 0.0 if case.settings["integrator"] == "rk4" else 0.5 * case.settings["dt"]

    def __call__(self, simulation: Simulation) -> tuple[float, float]:
        """Kinetic and potential energy."""
        self._data.qpos[:], self._data.qvel[:] = simulation.qpos, simulation.qvel
        self.move_to_velocities(self._data.qpos, self._data.qvel)
        mujoco.mj_forward(self._model, self._data)
        potential, kinetic = self._data.energy
        return float(kinetic), float(potential)

    def move_to_velocities(self, q: Any, v: Any) -> None:
        """Move coordinates q (nq,) to the time of the velocities v (nv,) after a step."""
        mujoco.mj_integratePos(self._model, q, v, -self._back)

    def move_from_velocities(self, q: Any, v: Any) -> None:
        """Move coordinates q (nq,) at the time of the velocities v (nv,) to where a step would have them."""
        mujoco.mj_integratePos(self._model, q, v, self._back)

    @property
    def slack(self) -> float:
        """Energy of which nothing is told in any case [J]."""
        return 5e-5 * float(self._model.body_mass.sum())


def share_of(made: float, there: float) -> float:
    """Energy created over that which is there, 0 unless some is."""
    return 0.0 if made <= 0.0 else made / there if there > 0.0 else np.inf


def planted(seed: int, number: int, kind: str) -> tuple[float, Simulation] | None:
    """A case with an error, and the share of the energy there that it made; None where it came to nothing.

    The share is there for WITHIN steps: an error that the next steps take back is none.
    """
    if kind in ("kick", "inertia"):
        return _planted_at_once(seed, number, kind)
    case, rng = draw(seed, number, only=KEEPING | ({"rk4"} if kind == "step" else set())), _rng(seed, number)
    if kind == "step":
        case.settings["dt"] = rng.uniform(1.5, 6) / _fastest(mujoco.MjModel.from_xml_string(case.text), case.settings)
    simulation, measure = simulation_of(case), Measure(case)
    if kind == "damping":
        write(simulation, "damping", rng.integers(simulation.plan.robot.nv), -(10 ** rng.uniform(-2, 0.5)))
    moving, first = measure(simulation)
    start, lowest, shares = moving + first, first, []
    for _ in range(STEPS):
        take(simulation, 1)
        moving, potential = measure(simulation)
        lowest, made = min(lowest, potential), moving + potential - start
        shares.append(share_of(made - measure.slack, start - lowest))
    share = max(min(shares[n : n + WITHIN]) for n in range(STEPS - WITHIN + 1))
    return (share, simulation) if share > 0.06 else None


def _rng(seed: int, number: int) -> Rng:
    return np.random.default_rng([seed, number, 1])


def _planted_at_once(seed: int, number: int, kind: str) -> tuple[float, Simulation] | None:
    """The same of an error in a single step: the share is that of what another run, without it, lacks WITHIN steps
    later, since brakes take it and inputs add to what is there; not more than was planted."""
    rng, case = _rng(seed, number), draw(seed, number)
    simulation, twin, measure = simulation_of(case), simulation_of(draw(seed, number)), Measure(case)
    wanted = float(np.exp(rng.uniform(np.log(0.06), 0)))
    lowest = np.inf
    for n in range(STEPS - WITHIN):
        moving, potential = measure(simulation)
        lowest = min(lowest, potential)
        there = moving + potential - lowest
        if n >= 40 and moving > 0.02 * there and wanted * there > measure.slack:
            break
        take(simulation, 1)
        take(twin, 1)
    else:
        return None
    plant(simulation, kind, wanted * there, moving)
    ruled, share = Measure(case, simulation.plan.robot.model.armature), np.inf
    for _ in range(WITHIN):
        take(simulation, 1)
        take(twin, 1)
        moving, potential = ruled(simulation)
        lowest = min(lowest, potential)
        left = min(moving + potential - sum(measure(twin)), wanted * there)
        share = min(share, share_of(left - measure.slack, moving + potential - lowest))
    take(simulation, STEPS - simulation.step)
    return (share, simulation) if share > 0.06 else None


def plant(simulation: Simulation, kind: str, energy: float, moving: float) -> None:
    """Add energy [J] to that of the motion, by its velocities or by its inertia."""
    if kind == "kick":
        simulation._state.qvel[:] *= np.sqrt(1.0 + energy / moving)
        return
    k = int(np.argmax(np.abs(simulation.qvel)))
    armature = simulation.plan.robot.model.armature[k] + 2.0 * energy / simulation.qvel[k] ** 2
    write(simulation, "armature", k, armature)


def write(simulation: Simulation, name: str, k: int, value: float) -> None:
    """Write an entry of the model, which nothing else may do."""
    values = getattr(simulation.plan.robot.model, name)
    values.setflags(write=True)
    values[k] = value
    values.setflags(write=False)


# ------------------------------------------------------------------ the figures


def without_error(seed: int, numbers: range) -> Counter[str]:
    """Run cases without error, and print those that are told."""
    ran: Counter[str] = Counter()
    for number in numbers:
        try:
            case, found = told(seed, number)
        except ArtsimError as error:
            ran[f"refused: {str(error)[:60]}"] += 1
            continue
        ran.update(["runs", *case.features])
        if found is not None:
            rightly = made_by_steps(seed, number, found)
            ran["told of steps that are too large" if rightly else "told"] += 1
            if not rightly:
                print(number, sorted(case.features), found, flush=True)
    return ran


def with_error(seed: int, numbers: range) -> Counter[str]:
    """Run cases with planted errors, and print those that are not told."""
    ran: Counter[str] = Counter()
    for number in numbers:
        kind = PLANTED[number % len(PLANTED)]
        try:
            made = planted(seed, number, kind)
        except ArtsimError:
            made = None
        if made is None:
            ran[f"no {kind}"] += 1
            continue
        ran[kind] += 1
        if made[1].energy_excess is None and not made[1].stop_reason:
            print(number, kind, f"{made[0]:.3f} missed", flush=True)
            ran["missed"] += 1
    return ran


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="runs without error")
    parser.add_argument("--planted", type=int, default=2000, help="runs with an error, of which some come to nothing")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, metavar="N", help="print a model and its settings")
    options = parser.parse_args()
    if options.show is not None:
        case = draw(options.seed, options.show)
        print(case.text, case.settings, sorted(case.features), sep="\n")
        return
    print(dict(without_error(options.seed, range(options.first, options.first + options.count))))
    print(dict(with_error(options.seed, range(options.first, options.first + options.planted))))


if __name__ == "__main__":
    main()
