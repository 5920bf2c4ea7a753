"""Speed beside the peers, in one process run: `python tests/benchmarks/speed.py [--models DIR]`.

CPU time of one thread, the minimum and median of several repetitions taken in turns, so that a drifting clock meets
both sides alike. --models: a folder with iiwa.urdf, ur5.urdf, go2.urdf, talos.urdf, talosfull.urdf and the step_*.xml
scenes; without it only what robots/ holds is timed. Needs mujoco and pin (the extra `test`).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation

ROBOTS = Path(__file__).parents[2] / "robots"
ARM_TARGET = [0.3, 0.5, -0.2, -1.0, 0.4, 0.7, 0.1]
ROUNDS = 7


def in_turns(work: dict[str, Callable[[], float]]) -> dict[str, tuple[float, float]]:
    """Minimum and median over ROUNDS of each; every callable returns its own CPU seconds."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, run in work.items():
            taken[name].append(run())
    return {name: (min(times), statistics.median(times)) for name, times in taken.items()}


def cpu(function: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def report(title: str, times: dict[str, tuple[float, float]], count: int, unit: str, scale: float) -> None:
    """A line: ours, the peer's, their ratio."""
    names = list(times)
    values = "   ".join(
        f"{n} {lo / count * scale:8.3f} (median {md / count * scale:8.3f})" for n, (lo, md) in times.items()
    )
    ratio = times[names[0]][0] / times[names[1]][0] if len(names) > 1 else float("nan")
    print(f"{title:28s} {values} {unit}   ratio {ratio:.3f} = 1/{1 / ratio:.1f}", flush=True)


# ------------------------------------------------------------------ one robot per step


def unbounded(articulation: Articulation) -> Articulation:
    """Without limits and efforts, as the peers' scenes have them."""
    joints = tuple(replace(joint, lower=None, upper=None, effort=None) for joint in articulation.joints)
    return replace(articulation, joints=joints)


def our_steps(articulation: Articulation, steps: int, **config: Any) -> Callable[[], float]:
    """CPU seconds of `steps` steps, state only."""
    plan = plan_run(articulation, RunConfig(steps=steps, every=steps, record=("qpos",), **config))
    held = Controls(np.zeros(1, np.int64), plan.torque[None], plan.target[None], plan.target_velocity[None])

    def run() -> float:
        simulation = Simulation(plan, held)
        return cpu(lambda: list(simulation.blocks()))

    return run


def mujoco_steps(model: Any, steps: int) -> Callable[[], float]:
    """CPU seconds of mujoco.rollout (a loop in C) over `steps` steps."""
    import mujoco
    from mujoco import rollout

    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    control = np.tile(data.ctrl, (1, steps, 1)) if model.nu else None
    return lambda: cpu(lambda: rollout.rollout(model, data, state[None], control, nstep=steps))


def time_steps(models: Path | None) -> None:
    """Arm of 7 with PD, chain of 100, Robotiq-like gripper."""
    import mujoco

    print("one robot per step, state only [µs/step]")
    gripper = (ROBOTS / "two_finger_gripper.urdf").read_text()
    plain = mujoco.MjModel.from_xml_string(_without_geometry(gripper))
    plain.opt.timestep = 0.002
    works = {
        "two_finger_gripper": (our_steps(load_articulation(ROBOTS / "two_finger_gripper.urdf"), 2000), plain, 2000)
    }
    if models is not None:
        names = [f"lbr_iiwa_joint_{i}" for i in range(1, 8)]
        arm = our_steps(
            unbounded(load_articulation(models / "iiwa.urdf")),
            2000,
            target=dict(zip(names, ARM_TARGET, strict=True)),
            stiffness={"*": 400.0},
            damping={"*": 40.0},
        )
        chain = our_steps(unbounded(load_articulation(models / "step_chain100.urdf")), 500)
        works = {
            "arm7 with PD": (arm, mujoco.MjModel.from_xml_path(str(models / "step_arm.xml")), 2000),
            "chain100": (chain, mujoco.MjModel.from_xml_path(str(models / "step_chain100.xml")), 500),
            **works,
            "(MuJoCo's own 2F-85)": (
                works["two_finger_gripper"][0],
                mujoco.MjModel.from_xml_path(str(models / "step_gripper.xml")),
                2000,
            ),
        }
    for title, (ours, model, steps) in works.items():
        report(title, in_turns({"artsim": ours, "mujoco": mujoco_steps(model, steps)}), steps, "µs", 1e6)


def _without_geometry(urdf: str) -> str:
    from lxml import etree

    root = etree.fromstring(urdf.encode())
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for element in link.findall(tag):
                link.remove(element)
    return etree.tostring(root).decode()


# ------------------------------------------------------------------ packs


def time_packs(models: Path) -> None:
    """RNEA, ABA and CRBA in packs, rows in memory to rows in memory, one thread."""
    import pinocchio as pin

    print("packs, one thread [ns/configuration]")
    for name in ("ur5", "iiwa", "go2", "talos", "talosfull"):
        _time_packs_of(name, models, pin)


def _time_packs_of(name: str, models: Path, pin: Any) -> None:
    """One robot; the peer gets configurations of its own of the same file, so the same cost."""
    count = 16000
    robot = Robot.of(load_articulation(models / f"{name}.urdf"))
    model = pin.buildModelFromUrdf(str(models / f"{name}.urdf"))
    rng = np.random.default_rng(0)
    q = rng.uniform(-1, 1, (count, robot.nq))
    v, a = rng.normal(size=(2, count, robot.nv))
    for k, coord in enumerate(robot.coords):
        if coord.endswith(".qw"):
            q[:, k : k + 4] /= np.linalg.norm(q[:, k : k + 4], axis=1, keepdims=True)
    pool = pin.ModelPool(model, 1)
    Q = np.asfortranarray(np.array([pin.randomConfiguration(_bounded(model)) for _ in range(count)]).T)
    V, A = np.asfortranarray(v.T), np.asfortranarray(a.T)
    out = np.empty_like(V, order="F")
    data = model.createData()
    work: tuple[tuple[str, tuple[Any, ...], Callable[[], Any]], ...] = (
        ("inverse_dynamics", (q, v, a), lambda: pin.rneaInParallel(1, pool, Q, V, A, out)),
        ("forward_dynamics", (q, v, None, a), lambda: pin.abaInParallel(1, pool, Q, V, A, out)),
        ("mass_matrix", (q,), lambda: [pin.crba(model, data, x) for x in Q.T]),
    )
    for quantity, inputs, peer in work:
        results = robot.compute(*inputs, quantities=[quantity])
        ours = partial(robot.compute, *inputs, quantities=[quantity], threads=1, out=results)
        times = in_turns({"artsim": timed(ours), "pinocchio": timed(peer)})
        note = " (peer: Python loop)" if quantity == "mass_matrix" else ""
        report(f"{name} {quantity}{note}", times, count, "ns", 1e9)


def timed(function: Callable[[], Any]) -> Callable[[], float]:
    """The function, returning its CPU seconds."""
    return lambda: cpu(function)


def _bounded(model: Any) -> Any:
    model.lowerPositionLimit = np.full(model.nq, -1.0)
    model.upperPositionLimit = np.full(model.nq, 1.0)
    return model


# ------------------------------------------------------------------ growth


def chain(n: int) -> str:
    """A URDF chain of n rods."""
    rod = (
        '<link name="l{i}"><inertial><origin xyz="0.05 0 0"/><mass value="0.1"/>'
        '<inertia ixx="1e-4" iyy="2e-4" izz="2e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j{i}" type="continuous"><parent link="{p}"/><child link="l{i}"/>'
        '<origin xyz="0.1 0 0"/><axis xyz="{a}"/></joint>'
    )
    parts = [rod.format(i=i, p=f"l{i - 1}" if i else "base", a="0 1 0" if i % 2 == 0 else "0 0 1") for i in range(n)]
    return f'<robot name="chain"><link name="base"/>{"".join(parts)}</robot>'


def time_growth() -> None:
    """Cost over the number of links of a chain: O(n) without rows, O(n d²) = O(n³) with a row in every step."""
    print("chain of n links [µs/step]: free (O(n)); with joint friction, matrix path (O(n d²))")
    for n in (10, 30, 100, 300, 1000):
        articulation = load_text(chain(n), name="chain")
        steps = max(3, 20000 // n)
        free = in_turns({"free": our_steps(articulation, steps, dt=1e-4)})["free"][0] / steps * 1e6
        rubbing = replace(
            articulation,
            joints=tuple(replace(j, friction=1e-6 if j.name == "j0" else 0.0) for j in articulation.joints),
        )
        steps = max(2, 20000 // n if n < 300 else 2)
        matrix = our_steps(rubbing, steps, dt=1e-4)
        best = min(matrix() for _ in range(3)) / steps * 1e6
        print(f"  n = {n:5d}   free {free:10.2f}   matrix {best:12.2f}", flush=True)


def main() -> None:
    """Everything there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=None)
    arguments = parser.parse_args()
    time_steps(arguments.models)
    time_growth()
    if arguments.models is not None:
        time_packs(arguments.models)


if __name__ == "__main__":
    main()
