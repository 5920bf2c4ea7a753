"""Time per step over the length of a chain, for the solvers that are exact: `python tests/benchmarks/solvers.py`.

The chain hangs, hinge by hinge in turns about x and y. Every joint has both limits and a bounded drive; two thirds of
the drives press their joint against a limit, as far as their force goes, the others hold it. CPU time of one thread,
least of several rounds taken in turns, MuJoCo's C step of the same chain in the same process. Needs mujoco (the extra
`test`).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from speed import cpu, in_turns

from artsim.sim.articulation.description import Articulation, Inertial, Joint, Link, Pose
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.setting import MAX_STEPS
from artsim.sim.runs.simulate import Simulation

SOLVERS = ("propagation", "direct", "newton")
SIZES = (10, 30, 100, 300, 1000)
DT, STIFFNESS, DAMPING, FORCE, LIMIT = 0.001, 20.0, 0.2, 3.0, 0.05
MASS, INERTIA, ARMATURE, FRICTION = 0.2, (6e-5, 0.0, 0.0, 6e-5, 0.0, 2e-5), 1e-4, 1e-3
SETTLED = 200  # steps before the clock starts


def target(k: int) -> float:
    """Of drive k [rad]: to either side of the limits, or within."""
    return (0.3, -0.3, 0.02)[k % 3]


def chain(n: int) -> Articulation:
    """n links of 5 cm and 0.2 kg."""
    links, joints = [Link("base")], []
    for k in range(n):
        links.append(Link(f"b{k}", Inertial(MASS, Pose((0.0, 0.0, -0.025)), INERTIA)))
        joints.append(
            Joint(
                f"j{k}",
                "revolute",
                links[k].name,
                f"b{k}",
                pose=Pose((0.0, 0.0, -0.05 if k else 0.0)),
                axis=(float(k % 2), float(1 - k % 2), 0.0),
                lower=-LIMIT,
                upper=LIMIT,
                armature=ARMATURE,
                damping=FRICTION,
            )
        )
    return Articulation("chain", "urdf", tuple(links), tuple(joints))


class Ours:
    """A chain under one solver, settled."""

    def __init__(self, n: int, solver: str, steps: int) -> None:
        config = RunConfig(
            steps=MAX_STEPS,
            every=steps,
            dt=DT,
            solver=solver,
            stiffness={"*": STIFFNESS},
            damping={"*": DAMPING},
            drive_limit={"*": FORCE},
            target={f"j{k}": target(k) for k in range(n)},
            record=("solver_iterations",),
        )
        plan = plan_run(chain(n), config)
        held = Controls.held(torque=plan.torque, target=plan.target, target_velocity=plan.target_velocity)
        self.simulation = Simulation(plan, held, block_rows=1)
        self.blocks = self.simulation.blocks()
        while self.simulation.step < SETTLED:
            next(self.blocks)
        self.iterations = 0.0

    def __call__(self) -> float:
        """CPU seconds of the next steps."""
        return cpu(self._take)

    def _take(self) -> None:
        self.iterations = float(next(self.blocks).rows["solver_iterations"][0])

    @property
    def held(self) -> int:
        """Joints at a limit."""
        return int(np.sum(np.abs(np.abs(self.simulation.qpos) - LIMIT) < 1e-9))


def mujoco_chain(n: int, steps: int) -> Callable[[], float]:
    """CPU seconds of `steps` of MuJoCo's steps in C, settled as ours."""
    import mujoco
    from mujoco import rollout

    spec = mujoco.MjSpec()  # a file may not be nested so deep
    spec.option.timestep = DT
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    body = spec.worldbody
    for k in range(n):
        body = body.add_body(name=f"b{k}", pos=[0, 0, -0.05 if k else 0], mass=MASS, ipos=[0, 0, -0.025])
        body.inertia = [INERTIA[0], INERTIA[3], INERTIA[5]]
        body.explicitinertial = True
        hinge = body.add_joint(name=f"j{k}", axis=[k % 2, 1 - k % 2, 0], armature=ARMATURE, damping=FRICTION)
        hinge.limited, hinge.range = 1, [-LIMIT, LIMIT]
        drive = spec.add_actuator(trntype=mujoco.mjtTrn.mjTRN_JOINT, target=f"j{k}")
        drive.set_to_position(kp=STIFFNESS, kv=DAMPING)
        drive.forcelimited, drive.forcerange = 1, [-FORCE, FORCE]
    spec.compiler.degree = False
    model = spec.compile()
    data = mujoco.MjData(model)
    data.ctrl[:] = [target(k) for k in range(n)]
    for _ in range(SETTLED):
        mujoco.mj_step(model, data)
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    control = np.tile(data.ctrl, (1, steps, 1))
    warm = data.qacc_warmstart[None].copy()
    return lambda: cpu(lambda: rollout.rollout(model, data, state[None], control, nstep=steps, initial_warmstart=warm))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--solvers", nargs="+", default=SOLVERS)
    options = parser.parse_args()
    before: dict[str, float] = {}
    for number, n in enumerate(options.sizes):
        steps = max(10, min(500, 20000 // n))
        ours = {solver: Ours(n, solver, steps) for solver in options.solvers}
        times = in_turns({**ours, "mujoco": mujoco_chain(n, steps)})
        print(f"n = {n}: {ours[options.solvers[0]].held} joints at a limit")
        for name, (least, _) in times.items():
            micro = least / steps * 1e6
            slope = ""
            if number:
                power = math.log(micro / before[name]) / math.log(n / options.sizes[number - 1])
                slope = f"   n^{power:.2f}"
            rounds = f"   {ours[name].iterations:.0f} Newton steps" if name in ours else ""
            print(f"    {name:12s} {micro:10.1f} µs/step  {micro / n:8.3f} µs/dof{slope}{rounds}", flush=True)
            before[name] = micro


if __name__ == "__main__":
    main()
