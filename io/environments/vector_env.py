"""VectorEnvironment, a task of many robots as gymnasium's VectorEnv. Imports gymnasium."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from artsim.io.environments.arena import Arena
from artsim.io.environments.task import Task
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.robot import Robot


class VectorEnvironment(VectorEnv[Array, Array, Array]):
    """n robots at a task, as a gymnasium.vector.VectorEnv.

    Observations and rewards are new float64 arrays of each call. `infos` tells after a step each term of the reward,
    unweighted, by `reward_<name>`, and the reasons of ends by `end_<name>` and `end_stopped`: of a simulation that
    could not go on.

    Args:
        autoreset_mode: NEXT_STEP: a robot whose episode has ended begins anew in the next step, whose action it ignores
            and whose reward is 0; SAME_STEP: at once, and `final_obs` and `final_info` tell how it ended; DISABLED: by
            reset(options={"reset_mask": mask}).

    Attributes:
        observation_names, action_names: of the entries; `arena.sensing.parts` has the entries of each observation.
        simulation: the VectorSimulation.
    """

    def __init__(
        self,
        robot: Robot,
        task: Task,
        n: int,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: int | None = None,
    ) -> None:
        try:
            self._mode = AutoresetMode(autoreset_mode)
        except ValueError:
            known = ", ".join(mode.value for mode in AutoresetMode)
            raise UsageError(f"autoreset_mode {autoreset_mode!r} is not known; known: {known}") from None
        self.arena = arena = Arena(robot, task, n, threads)
        self.num_envs, self.simulation = n, arena.simulation
        self.observation_names, self.action_names = arena.sensing.names, arena.actions.names
        self.metadata = {"autoreset_mode": self._mode, "render_modes": [], "render_fps": 1 / arena.step_time}
        self.single_observation_space, self.single_action_space = spaces(arena)
        self.observation_space = batch_space(self.single_observation_space, n)
        self.action_space = batch_space(self.single_action_space, n)
        self._generators = [np.random.default_rng(seed) for seed in np.random.SeedSequence().spawn(n)]
        self._noise = np.random.default_rng()
        self._ended, self._begun = np.zeros(n, bool), False
        self._everyone = np.ones(n, bool)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin anew with all robots, or those of options["reset_mask"] (n,).

        seed: robot k draws from seed + k, or from seed[k]; None: each goes on with its draws. Noise of steps is drawn
        from all seeds together.

        Raises UsageError for a mask or seeds of a wrong shape.
        """
        chosen = self._chosen(options)
        self.seed_generators(seed, chosen)
        self._begin(chosen)
        self._begun = True
        return self.arena.observation.copy(), {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Take a step with actions (n, entries), which are clipped to their bounds.

        Raises:
            UsageError: before the first reset; actions of a wrong shape, or not finite; with DISABLED, robots that
                have ended and were not reset.
            StoppedError: an expression has no value, such as after a division by 0.
        """
        arena, n = self.arena, self.num_envs
        actions = np.asarray(actions, float)
        if not self._begun:
            raise UsageError("step comes before reset: env.reset(seed=0)")
        if actions.shape != self.action_space.shape:
            raise UsageError(f"actions have shape {actions.shape}, want {self.action_space.shape}")
        if self._mode == AutoresetMode.DISABLED and self._ended.any():
            raise UsageError(
                f"robots {_numbers(self._ended)} have ended: reset(options={{'reset_mask': mask}}) begins anew"
            )
        waiting = self._ended if self._mode == AutoresetMode.NEXT_STEP else np.zeros(n, bool)
        active = ~waiting
        arena.step(actions, active, self._noise)
        reward, terminated, truncated = arena.reward, arena.terminated, arena.truncated
        infos = self._infos(active)
        self._ended = terminated | truncated
        if waiting.any():
            self._begin(waiting)
        elif self._mode == AutoresetMode.SAME_STEP and self._ended.any():
            infos = self._final(infos, self._ended)
            self._begin(self._ended)
        return arena.observation.copy(), reward, terminated, truncated, infos

    def seed_generators(self, seed: int | Sequence[int | None] | None, chosen: Array) -> None:
        """Seed the draws of robots (n,), and the noise of steps if they are all."""
        if seed is None:
            return
        seeds = [seed + k for k in range(self.num_envs)] if isinstance(seed, int | np.integer) else [*seed]
        if len(seeds) != self.num_envs:
            raise UsageError(f"seed has {len(seeds)} numbers, want {self.num_envs}")
        if any(each is not None and each < 0 for each in seeds):
            raise UsageError(f"seed is {seed}, want numbers from 0")
        for k in np.flatnonzero(chosen).tolist():
            if seeds[k] is not None:
                self._generators[k] = np.random.default_rng(seeds[k])
        if chosen.all() and None not in seeds:
            self._noise = np.random.default_rng([*(int(each or 0) for each in seeds), 1])

    def forget_ends(self) -> None:
        """Have robots whose episodes have ended take further steps."""
        self._ended[:] = False

    def close_extras(self, **_: Any) -> None:
        """End the threads."""
        self.arena.close()

    def _begin(self, chosen: Array) -> None:
        robots = np.flatnonzero(chosen)
        self.arena.begin(robots, [self._generators[k] for k in robots])
        self._ended = self._ended & ~chosen if self._mode == AutoresetMode.DISABLED else self._ended

    def _chosen(self, options: dict[str, Any] | None) -> Array:
        """The robots to begin anew with (n,). Raises UsageError."""
        mask = (options or {}).get("reset_mask")
        if mask is None:
            self._ended = np.zeros(self.num_envs, bool)
            return self._everyone
        given = np.asarray(mask)
        if given.dtype != bool or given.shape != (self.num_envs,) or not given.any():
            raise UsageError(f"reset_mask: want booleans ({self.num_envs},), of which one is True at least")
        if not self._begun and not given.all():
            raise UsageError("reset_mask: the first reset is of all robots")
        self._ended = self._ended & ~given
        return given

    def _infos(self, active: Array) -> dict[str, Any]:
        """Terms of the reward, and reasons of ends, each beside the mask of the robots of which it tells."""
        arena = self.arena
        told: dict[str, Array] = {f"reward_{name}": values for name, values in arena.terms.items()}
        told |= {f"end_{name}": values for name, values in arena.ends.items()} | {"end_stopped": arena.stopped}
        return told | {f"_{name}": active for name in told}

    def _final(self, infos: dict[str, Any], ended: Array) -> dict[str, Any]:
        """Infos with the last observations and infos of the robots that have ended, and of these nothing else."""
        last = np.full(self.num_envs, None, dtype=object)
        for k in np.flatnonzero(ended):
            last[k] = self.arena.observation[k].copy()
        final = {name: ended if name.startswith("_") else values for name, values in infos.items()}
        infos = {name: values & ~ended if name.startswith("_") else values for name, values in infos.items()}
        return infos | {"final_obs": last, "_final_obs": ended, "final_info": final, "_final_info": ended}


def spaces(arena: Arena) -> tuple[Box, Box]:
    """The spaces of a single robot's observations and actions."""
    sensing, actions = arena.sensing, arena.actions
    return Box(sensing.low, sensing.high, dtype=np.float64), Box(actions.low, actions.high, dtype=np.float64)


class Environment(gymnasium.Env[Array, Array]):
    """One robot at a task, as a gymnasium.Env: a VectorEnvironment of one. Arguments as there."""

    def __init__(self, robot: Robot, task: Task, *, threads: int | None = 1) -> None:
        self._vector = VectorEnvironment(robot, task, 1, autoreset_mode=AutoresetMode.DISABLED, threads=threads)
        self.arena, self.simulation = self._vector.arena, self._vector.simulation
        self.observation_names, self.action_names = self._vector.observation_names, self._vector.action_names
        self.observation_space, self.action_space = spaces(self.arena)
        self.metadata = {"render_modes": [], "render_fps": 1 / self.arena.step_time}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin anew."""
        super().reset(seed=seed)
        observation, _ = self._vector.reset(seed=seed)
        return observation[0], {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Take a step; after an end as well, as environments of gymnasium do."""
        self._vector.forget_ends()
        observation, reward, terminated, truncated, infos = self._vector.step(np.asarray(action, float)[None])
        told = {name: values[0].item() for name, values in infos.items() if not name.startswith("_")}
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), told

    def close(self) -> None:
        """End the threads."""
        self._vector.close()


def _numbers(chosen: Array) -> str:
    """The first numbers of robots, for a message."""
    first = np.flatnonzero(chosen)
    return ", ".join(map(str, first[:5])) + (", …" if len(first) > 5 else "")
