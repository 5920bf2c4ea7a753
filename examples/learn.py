"""Learn a task by augmented random search (Mania, Guy and Recht 2018): a linear policy, and numpy alone.

    python examples/learn.py examples/walk.toml --iterations 40 --output walk.npz

Robots in pairs try the policy with a change and with its opposite, from the same start; the policy moves along the
changes that made a difference. Further robots try it as it is. The same seed gives the same bytes, with any number of
threads.
"""

import argparse

import numpy as np

import artsim


def play(env, policies, seeds):
    """The return (n,) of an episode of each robot under its own policy (n, actions, observations and 1)."""
    observations, _ = env.reset(seed=seeds)
    returns, alive = np.zeros(env.num_envs), np.ones(env.num_envs, bool)
    while alive.any():
        seen = np.concatenate([observations, np.ones((env.num_envs, 1))], axis=1)
        actions = np.tanh(np.einsum("nij,nj->ni", policies, seen))
        observations, rewards, terminated, truncated, _ = env.step(actions)
        returns += np.where(alive, rewards, 0.0)
        alive &= ~(terminated | truncated)
    return returns


def learn(task, pairs=60, as_it_is=16, iterations=5, reach=0.05, rate=0.1, best=16, seed=0, threads=None):
    """The policy, and for each iteration the mean return of the policy and that of all changed ones."""
    env = artsim.make_env(task, 2 * pairs + as_it_is, threads=threads)
    rng = np.random.default_rng(seed)
    policy = np.zeros((env.single_action_space.shape[0], env.single_observation_space.shape[0] + 1))
    curve = []
    for iteration in range(iterations):
        changes = rng.standard_normal((pairs, *policy.shape))
        tried = policy + reach * np.concatenate([changes, -changes, np.zeros((as_it_is, *policy.shape))])
        starts = rng.integers(1 << 32, size=pairs + as_it_is).tolist()
        returns = play(env, tried, [*starts[:pairs], *starts])
        up, down = returns[:pairs], returns[pairs : 2 * pairs]
        chosen = np.argsort(-np.maximum(up, down), kind="stable")[:best]
        spread = np.concatenate([up[chosen], down[chosen]]).std() + 1e-9
        policy = policy + rate / (best * spread) * np.einsum("k,kij->ij", (up - down)[chosen], changes[chosen])
        curve.append((returns[2 * pairs :].mean(), returns[: 2 * pairs].mean()))
        print(f"{iteration + 1:4d}  policy {curve[-1][0]:9.2f}  changed {curve[-1][1]:9.2f}", flush=True)
    env.close()
    return policy, np.array(curve)


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("task", nargs="?", default="examples/walk.toml")
    words.add_argument("--output")
    for name, usual in (("pairs", 60), ("iterations", 5), ("best", 16), ("seed", 0), ("threads", None)):
        words.add_argument(f"--{name}", type=int, default=usual)
    for name, usual in (("reach", 0.05), ("rate", 0.1)):
        words.add_argument(f"--{name}", type=float, default=usual)
    asked = vars(words.parse_args())
    output = asked.pop("output")
    policy, curve = learn(**asked)
    if output:
        np.savez(output, policy=policy, curve=curve)
