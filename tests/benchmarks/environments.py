"""Steps per second of environments on a core: beside gymnasium's own of MuJoCo, and a quadruped with random controls.

    python -m tests.benchmarks.environments                      # Ant-v5 and Hopper-v5, both of gymnasium's files
    python -m tests.benchmarks.environments --quadruped go2.xml  # a quadruped of MuJoCo Menagerie, with a floor

Both engines play the same random actions, observe and reward the same, and begin episodes anew when they have ended.
gymnasium's is a SyncVectorEnv, in one process. Times are those of the processor. artsim's Ant has the torques of
contact forces about links' origins, where MuJoCo has them about the centre of mass.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import artsim

N, SECONDS = 256, 4.0
ANT: dict[str, Any] = {
    "steps": 5,
    "limit": 1000,
    "observations": {"position": "qpos[2:]", "velocity": "qvel"},
    "rewards": {
        "forward": "rate(torso.x)",
        "survive": "0.2 <= torso.z <= 1",
        "control": {"value": "sum(action ** 2)", "weight": -0.5},
    },
    "terminations": {"unhealthy": "not 0.2 <= torso.z <= 1"},
    "reset": {
        "qpos": {"*": 0.1},
        "qvel": {"*": {"normal": 0.1}},
    },
}
FORCES = "clip(contact_wrench[1:], -1, 1)"
ANT_WITH_FORCES: dict[str, Any] = {
    **ANT,
    "observations": {**ANT["observations"], "forces": FORCES},
    "rewards": {**ANT["rewards"], "contact": {"value": f"sum({FORCES} ** 2)", "weight": -5e-4}},
}
HOPPER: dict[str, Any] = {
    "steps": 4,
    "limit": 1000,
    "observations": {"position": "qpos[1:]", "velocity": "clip(qvel, -10, 10)"},
    "rewards": {
        "forward": "rate(rootx)",
        "survive": "rootz > 0.7 and abs(rooty) < 0.2 and all(abs(qpos[2:]) < 100) and all(abs(qvel) < 100)",
        "control": {"value": "sum(action ** 2)", "weight": -1e-3},
    },
    "terminations": {
        "unhealthy": "not (rootz > 0.7 and abs(rooty) < 0.2 and all(abs(qpos[2:]) < 100) and all(abs(qvel) < 100))"
    },
    "reset": {"qpos": {"*": 5e-3}, "qvel": {"*": 5e-3}},
}
QUADRUPED: dict[str, Any] = {
    "steps": 10,
    "limit": 1000,
    "settings": {"keyframe": "k"},
    "action": {"scale": 0.2},
    "observations": {
        "gravity": "unrotate(base.quaternion, (0, 0, -1))",
        "velocity": "unrotate(base.quaternion, base.velocity)",
        "turning": "unrotate(base.quaternion, base.angular_velocity)",
        "joints": "qpos[7:]",
        "rates": "qvel[6:]",
        "last": "action",
    },
    "rewards": {
        "forward": "exp(-4 * (base.vx - 0.5) ** 2)",
        "upright": {"value": "base.z_axis[2]", "weight": 0.2},
        "effort": {"value": "sum(action ** 2)", "weight": -0.01},
        "change": {"value": "sum((action - previous(action)) ** 2)", "weight": -0.01},
    },
    "terminations": {"fallen": "base.z < 0.18 or base.z_axis[2] < 0.3"},
    "reset": {"qpos": {"*_joint": 0.05}},
}
GYMNASIUM = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"


def speed(env: Any, seconds: float, seed: int = 0) -> tuple[float, float]:
    """Steps of environments per second, and the share of steps that ended an episode."""
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    low, high = env.single_action_space.low, env.single_action_space.high
    actions = rng.uniform(low, high, (64, *env.action_space.shape))
    for action in actions[:4]:
        env.step(action)
    began, calls, ends = time.process_time(), 0, 0
    while (spent := time.process_time() - began) < seconds:
        _, _, terminated, truncated, _ = env.step(actions[calls % len(actions)])
        ends += int((terminated | truncated).sum())
        calls += 1
    return calls * env.num_envs / spent, ends / (calls * env.num_envs)


def compare(name: str, task: dict[str, Any], **options: Any) -> None:
    """Print the speeds of gymnasium's environment and of artsim's task, by contact law."""
    theirs = gymnasium.make_vec(name, num_envs=16, vectorization_mode="sync", **options)
    other, share = speed(theirs, SECONDS)
    theirs.close()
    told = " ".join(f"{key}={value}" for key, value in options.items())
    steps = task["steps"]
    print(f"{name} {told}: gymnasium {other:,.0f} env steps/s ({other * steps:,.0f} steps/s; ends {share:.2%})")
    model = str(GYMNASIUM / f"{name.split('-')[0].lower()}.xml")
    for law in ("file", "convex"):
        env: Any = artsim.make_env({**task, "model": model, "settings": {"contact_law": law}}, N, threads=1)
        own, share = speed(env, SECONDS)
        env.close()
        told = f"{own:,.0f} ({own * steps:,.0f} steps/s; {own / other:.1f}x; ends {share:.2%})"
        print(f"  artsim, contact_law {law}: {told}")


def quadruped(model: str) -> None:
    """Print the speed of a quadruped whose controls are drawn anew in every step, up to so far from those of its
    stance."""
    for n, reach in ((64, 0.2), (256, 0.2), (1024, 0.2), (256, 0.5), (256, 1.0)):
        task = {**QUADRUPED, "action": {"scale": reach}, "model": model}
        env: Any = artsim.make_env(task, n, threads=1)
        own, share = speed(env, SECONDS)
        told = f"{own:,.0f} env steps/s, {own * QUADRUPED['steps']:,.0f} steps/s on a core (ends {share:.2%})"
        print(f"quadruped within {reach} rad, n {n}: {told}")
        env.close()


def main() -> None:
    """Print the table that the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quadruped", metavar="XML", help="model of the quadruped; instead of gymnasium's robots")
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if asked.quadruped:
        quadruped(asked.quadruped)
        return
    compare("Hopper-v5", HOPPER)
    compare("Ant-v5", ANT, include_cfrc_ext_in_observation=False, contact_cost_weight=0)
    compare("Ant-v5", ANT_WITH_FORCES)


if __name__ == "__main__":
    main()
