"""100 boxes and 100 spheres that fall into heaps and come to rest, beside MuJoCo and SAPIEN (PhysX on the CPU):
`python tests/benchmarks/piles.py [--steps N] [--dt SECONDS]`.

The same start, time step, friction (1) and density for all, one thread, CPU time of stepping alone. SAPIEN: as it is
(TGS, 10 position iterations), and 50 of them; bodies never sleep. Depth: how deep the deepest contact is in any state
looked at (every tenth step), by MuJoCo's collision of the same states for all three. Left: kinetic energy at the end.

Needs mujoco (the extra `test`), and sapien (pip install sapien), without which its lines are left out.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import mujoco
import numpy as np

from artsim.loaders.load import load_text
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation

EVERY, SIZE, DENSITY = 10, 0.05, 1000.0
FALLING = 0.4  # [s] until all have landed
Array = np.ndarray[Any, Any]


class Result(NamedTuple):
    """States (n, 7 bodies), seconds until so many steps were taken, velocities at the end (bodies, 6)."""

    states: Array
    clock: list[float]
    velocity: Array


def places() -> list[tuple[float, float, float]]:
    """25 uneven towers of 4, close to each other."""
    return [
        (0.14 * x + 0.01 * (z % 3), 0.14 * y + 0.01 * (z % 2), 0.06 + 0.12 * z)
        for z in range(4)
        for x in range(5)
        for y in range(5)
    ]


def model_text(kind: str, dt: float) -> str:
    """The scene as MJCF."""
    size = f"{SIZE} {SIZE} {SIZE}" if kind == "box" else f"{SIZE}"
    bodies = "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><geom type="{kind}" size="{size}" density="{DENSITY}"/></body>'
        for x, y, z in places()
    )
    option = f'<option timestep="{dt}" cone="elliptic"/>'
    return f'<mujoco>{option}<worldbody><geom type="plane" size="0 0 1"/>{bodies}</worldbody></mujoco>'


def ours(kind: str, dt: float, steps: int) -> Result:
    """artsim with its defaults: hard contacts."""
    record = ("qpos", "qvel")
    plan = plan_run(
        load_text(model_text(kind, dt), name="pile.xml"), RunConfig(steps=steps, dt=dt, every=EVERY, record=record)
    )
    held = Controls(np.zeros(1, np.int64), plan.torque[None], plan.target[None], plan.target_velocity[None])
    simulation = Simulation(plan, held)
    states, clock, start = [], [], time.process_time()
    for _ in range(steps // EVERY):
        states += [block.rows["qpos"] for block in simulation.blocks(EVERY)]
        clock.append(time.process_time() - start)
    return Result(np.concatenate(states), clock, simulation.qvel.reshape(-1, 6))


def mujoco_s(kind: str, dt: float, steps: int) -> Result:
    """MuJoCo with its defaults: soft contacts."""
    model = mujoco.MjModel.from_xml_string(model_text(kind, dt))
    data = mujoco.MjData(model)
    states, clock, start = [], [], time.process_time()
    for _ in range(steps // EVERY):
        states.append(data.qpos.copy())
        mujoco.mj_step(model, data, EVERY)
        clock.append(time.process_time() - start)
    return Result(np.array(states), clock, data.qvel.reshape(-1, 6).copy())


def sapien_s(kind: str, dt: float, steps: int, iterations: int) -> Result:
    """PhysX with so many position iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has a Vulkan of its own, which nothing here needs
        import sapien
        from sapien import physx
    physx.set_body_config(solver_position_iterations=iterations, sleep_threshold=0.0)
    system = physx.PhysxCpuSystem()
    scene = sapien.Scene([system])
    scene.set_timestep(dt)
    rough = physx.PhysxMaterial(1.0, 1.0, 0.0)
    ground = sapien.Entity()
    plane = physx.PhysxRigidStaticComponent()
    plane.attach(physx.PhysxCollisionShapePlane(rough))
    ground.add_component(plane)
    ground.set_pose(sapien.Pose(q=[0.5**0.5, 0, -(0.5**0.5), 0]))  # its normal is x
    scene.add_entity(ground)
    bodies = []
    for place in places():
        builder = scene.create_actor_builder()
        if kind == "box":
            builder.add_box_collision(half_size=[SIZE] * 3, material=rough, density=DENSITY)
        else:
            builder.add_sphere_collision(radius=SIZE, material=rough, density=DENSITY)
        builder.initial_pose = sapien.Pose(list(place))
        bodies.append(builder.build().find_component_by_type(physx.PhysxRigidDynamicComponent))
    states, clock, taken = [], [], 0.0
    for _ in range(steps // EVERY):
        states.append(np.concatenate([[*body.entity.pose.p, *body.entity.pose.q] for body in bodies]))
        start = time.process_time()
        for _ in range(EVERY):
            system.step()
        taken += time.process_time() - start
        clock.append(taken)
    velocity = np.array([[*body.linear_velocity, *body.angular_velocity] for body in bodies])
    return Result(np.array(states, float), clock, velocity)


def deepest(kind: str, dt: float, states: Array) -> tuple[float, float]:
    """Depth [m] of the deepest contact of all states, and of the last one."""
    model = mujoco.MjModel.from_xml_string(model_text(kind, dt))
    data = mujoco.MjData(model)
    depths = []
    for state in states:
        data.qpos[:] = state
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        depths.append(max((-float(contact.dist) for contact in data.contact), default=0.0))
    return max(depths), depths[-1]


def report(name: str, kind: str, dt: float, run: Callable[[], Result]) -> None:
    """A line of the table."""
    result = run()
    steps = EVERY * len(result.clock)
    landed = min(int(FALLING / dt) // EVERY, len(result.clock) - 1)
    falling = result.clock[landed] / (landed + 1) / EVERY
    resting = (result.clock[-1] - result.clock[landed]) / (steps - EVERY * (landed + 1))
    mass = DENSITY * SIZE**3 * (8.0 if kind == "box" else 4 / 3 * np.pi)
    left = 0.5 * mass * float(np.sum(result.velocity[:, :3] ** 2))
    most, last = deepest(kind, dt, result.states)
    print(
        f"{name:12s} {1e6 * falling:9.0f} us a step until {FALLING} s {1e6 * resting:9.0f} after   "
        f"depth {1e3 * most:8.4f} mm at most {1e3 * last:8.4f} at last   left {left:.1e} J",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--dt", type=float, default=0.002)
    options = parser.parse_args()
    dt, steps = options.dt, options.steps
    for kind in ("box", "sphere"):
        print(f"100 of kind {kind}, {steps} steps of {dt:g} s")
        ours(kind, dt, EVERY)  # kernels compiled and loaded
        report("artsim", kind, dt, lambda kind=kind: ours(kind, dt, steps))
        report("MuJoCo", kind, dt, lambda kind=kind: mujoco_s(kind, dt, steps))
        try:
            for n in (10, 50):
                report(f"SAPIEN {n}", kind, dt, lambda kind=kind, n=n: sapien_s(kind, dt, steps, n))
        except ImportError as error:
            print(f"SAPIEN: {error}")


if __name__ == "__main__":
    main()
