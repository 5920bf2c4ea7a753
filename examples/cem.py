"""Reach round a post with an arm by the cross-entropy method (Rubinstein and Kroese 2004), replanned on the way.

    python examples/cem.py --steps 25

A rollout in memory simulates, from the present state, targets of the drives that are drawn about a mean, and sums what
each costs; mean and width become those of the best, four times over. The arm then takes the first part of the mean, and
the rest is where the next plan begins. The same seed gives the same bytes, with any number of threads.
"""

import argparse
import time

import numpy as np

import artsim

START = {"joint_1": -0.8, "joint_2": 1.0, "joint_4": -0.6}  # [rad]
GOAL, POST = (0.6, 0.6, 0.5), (0.85, 0.0)  # the point for the tool; the post's place on the ground [m]
DISTANCE = f"norm(tool0.position - {GOAL})"
CLEARANCE = f"norm((tool0.x, tool0.y) - {POST})"
COST = f"{DISTANCE} + 20 * max(0, 0.15 - {CLEARANCE}) + 0.002 * dot(qvel, qvel)"
DRIVES = {"stiffness": 400, "damping": 40}


def reach(steps=25, samples=64, parts=4, hold=25, turns=4, best=8, width=0.4, seed=0, threads=None, told=0):
    """The states (steps, 14), the mean cost of the best plans per step of the simulation (steps,), the least clearance
    from the post (steps,) [m], and the time that each step of the control took [s].

    Args:
        parts: parts of a plan, in each of which a target holds for `hold` steps of the simulation.
        turns: how often samples are drawn about the best ones; best: their number.
        width: standard deviation of the targets at the first turn [rad].
        told: steps of the control between two lines that are printed; 0: none.
    """
    robot = artsim.load("robots/arm7.urdf")
    mean = np.tile([START.get(name, 0.0) for name in robot.dofs], (parts, 1))
    rng = np.random.default_rng(seed)
    tool = robot.links.index("tool0")
    states, costs, clear, times = [], [], [], []
    with artsim.Simulation(robot, record=["link_position"], q0=START, **DRIVES) as arm:
        for step in range(steps):
            begin = time.perf_counter()
            start, spread = {"qpos": arm.qpos, "qvel": arm.qvel}, np.full(mean.shape, width)
            for _ in range(turns):
                tried = mean + spread * rng.standard_normal((samples, *mean.shape))
                tried[0] = mean
                made = artsim.rollout(
                    robot,
                    samples=samples,
                    steps=parts * hold,
                    start=start,
                    target=tried,
                    cost=COST,
                    record="none",
                    threads=threads,
                    **DRIVES,
                )
                chosen = np.argsort(made["cost"], kind="stable")[:best]
                mean, spread = tried[chosen].mean(axis=0), tried[chosen].std(axis=0)
            places = arm.step(hold, target=mean[0])["link_position"][:, tool]
            mean = np.concatenate([mean[1:], mean[-1:]])
            times.append(time.perf_counter() - begin)
            states.append(np.concatenate([arm.qpos, arm.qvel]))
            costs.append(float(made["cost"][chosen].mean()) / (parts * hold))
            clear.append(float(np.linalg.norm(places[:, :2] - POST, axis=1).min()))
            if told and (step + 1) % told == 0:
                away, mean_time = np.linalg.norm(places[-1] - GOAL), 1e3 * np.mean(times[-told:])
                print(
                    f"{arm.time:5.2f} s  cost {costs[-1]:6.3f}  {100 * away:5.1f} cm from the goal, "
                    f"{100 * clear[-1]:5.1f} cm from the post  {mean_time:6.1f} ms per step of the control",
                    flush=True,
                )
    return np.array(states), np.array(costs), np.array(clear), np.array(times)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--steps", type=int, default=25, help="steps of the control")
    words.add_argument("--samples", type=int, default=64, help="plans that are tried at once")
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--threads", type=int, help="default: one per core")
    given = vars(words.parse_args())
    reach(**given, told=5)


if __name__ == "__main__":
    main()
