"""Swing a double pendulum up by model predictive path integral control (Williams, Aldrich and Theodorou 2017).

    python examples/mppi.py --steps 200

All robots of a fleet stand at the present state, which is saved. Each tries torques about the plan for 0.8 s; the
plan becomes their mean, weighted by exp(-cost / temperature). The state is restored, and all take the plan's first
step. The torques are too weak to lift the pendulum at once: it must gather speed. The same seed gives the same bytes,
with any number of threads.
"""

import argparse
import time

import numpy as np

import artsim

WEAK = 4.0  # largest torque [N m]; holding both rods level takes 7.8


def cost(qpos, qvel):
    """The cost of states (n, 2): 0 where both rods stand still, upright."""
    first, second = qpos[:, 0], qpos.sum(axis=1)  # angles of the rods to the vertical, 0 where they hang
    return 2 * (1 + np.cos(first)) + (1 + np.cos(second)) + 0.02 * (qvel**2).sum(axis=1)


def swing_up(steps=100, robots=256, horizon=40, hold=10, width=1.5, temperature=0.1, seed=0, threads=None, told=0):
    """The states (steps, 4), their costs (steps,), and the time that each step of the control took [s].

    Args:
        horizon: steps of the control in a plan; hold: steps of the simulation in each of them.
        width: standard deviation of the torques that are tried [N m].
        told: steps of the control between two lines that are printed; 0: none.
    """
    robot = artsim.load("robots/double_pendulum.urdf")
    fleet = artsim.VectorSimulation(robot, robots, action="torque", threads=threads)
    rng, plan = np.random.default_rng(seed), np.zeros((horizon, robot.nv))
    scale = np.arange(robots) // 2 * 2 / robots  # from the plan as it is to the whole width
    states, costs, times = [], [], []
    for step in range(steps):
        begin = time.perf_counter()
        now = fleet.save()
        noise = width * rng.standard_normal((robots, horizon, robot.nv))
        noise[::2] = noise[::2, ::5].repeat(5, axis=1)[:, :horizon]  # half of them hold their torques for longer
        noise *= scale[:, None, None]
        tried = np.clip(plan + noise, -WEAK, WEAK)
        total = np.zeros(robots)
        for torque in tried.swapaxes(0, 1):
            fleet.step(torque, hold)
            total += cost(fleet.qpos, fleet.qvel)
        weight = np.exp((total.min() - total) / temperature)
        plan = np.einsum("k,kij->ij", weight / weight.sum(), tried)
        fleet.restore(now)
        fleet.step(plan[0], hold)
        plan = np.concatenate([plan[1:], plan[-1:]])
        times.append(time.perf_counter() - begin)
        states.append(np.concatenate([fleet.qpos[0], fleet.qvel[0]]))
        costs.append(float(cost(fleet.qpos[:1], fleet.qvel[:1])[0]))
        if told and (step + 1) % told == 0:
            mean = 1e3 * np.mean(times[-told:])
            print(f"{fleet.time[0]:5.2f} s  cost {costs[-1]:6.3f}  {mean:6.1f} ms per step of the control", flush=True)
    return np.array(states), np.array(costs), np.array(times)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--steps", type=int, default=150, help="steps of the control")
    words.add_argument("--robots", type=int, default=256, help="robots that try torques")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--threads", type=int, help="default: one per core")
    given = vars(words.parse_args())
    swing_up(**given, told=10)


if __name__ == "__main__":
    main()
