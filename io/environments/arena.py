"""An arena: n robots at one task, stepped, observed and rewarded together. It knows nothing of gymnasium."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from artsim.io.environments.actions import Actions
from artsim.io.environments.sensing import Sensing
from artsim.io.environments.starts import Starts
from artsim.io.environments.task import Task
from artsim.io.expressions.language import Compiler, Value
from artsim.io.expressions.names import OF_LINKS, Names
from artsim.io.rollouts.vector import VectorSimulation
from artsim.io.runs.named import run_labels
from artsim.io.runs.prepare import prepared
from artsim.io.runs.progress import warm
from artsim.sim.foundation.errors import StoppedError, UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.quantities.program import EVALUATE, ProgramRun
from artsim.sim.quantities.robot import Robot

Generators = Sequence[np.random.Generator]


class Arena:
    """n robots at a task.

    Attributes: `simulation`; `actions` and `sensing`, which tell names and bounds; `names` of the observation's
    entries; `step_time` [s]; `length` (n,) steps since the reset of each robot; and of the last step `observation`
    (n, entries), `reward`, `terms` by name, `terminated`, `ends` by name, `stopped` and `truncated` (n,).
    """

    def __init__(self, robot: Robot, task: Task, n: int, threads: int | None) -> None:
        """Raises UsageError, ModelError: the task does not fit the robot."""
        self.task = task
        settings: dict[str, Any] = {"record": (), **task.settings}
        plan, _, _ = prepared(robot, task.controller, None, {**settings, "steps": 1})
        self.actions, self._starts = Actions(plan, task.action), Starts(plan, task)
        self.step_time = task.steps * plan.dt
        names = Names(run_labels(plan), self.actions.names)
        self._compiler = Compiler(names, {"dt": self.step_time})
        outputs = self._compile()
        recorded = names.recorded()
        self.simulation = VectorSimulation(
            robot,
            n,
            controller=task.controller,
            threads=threads,
            **{**settings, "record": tuple(recorded)},
        )
        simulation = self.simulation
        self._inputs, self._action = self.actions.held(n), np.zeros((n, len(self.actions.names)))
        links = [name for name in OF_LINKS if name in names.used]
        computed, self._find_links = simulation.computed(links) if links else ({}, lambda: None)
        self._recorded = [(simulation[name], columns) for name, columns in recorded.items()]
        self._seen = np.zeros((n, names.recorded_columns if recorded else 0))
        tables = {name: getattr(simulation, name) for name in ("qpos", "qvel", "activation")}
        tables |= {"time": simulation.time.reshape(n, 1), "action": self._action, "recorded": self._seen}
        tables |= {OF_LINKS[name]: values.reshape(n, -1) for name, values in computed.items()}
        warm([(EVALUATE, 1)])
        self._program = ProgramRun(self._compiler.instructions(outputs), tables, n)
        self._all, self.length = np.arange(n), np.zeros(n, np.int64)
        self.observation = np.zeros((n, self.sensing.size))
        self._read(np.zeros(n, bool))

    def _compile(self) -> list[int]:
        """Registers of the outputs: observations, the reward, its terms, and terminations."""
        compiler, task = self._compiler, self.task
        seen: dict[str, Value] = {
            name: compiler.compile(each.value, f"observations.{name}").reshape(-1)
            for name, each in task.observations.items()
        }
        self.sensing = Sensing(task.observations, {name: len(found) for name, found in seen.items()})
        terms = [compiler.number(text, f"rewards.{name}") for name, (text, _) in task.rewards.items()]
        weights = [weight for _, weight in task.rewards.values()]
        total = [compiler.weighted(terms, weights)] if terms else []
        ends = [compiler.number(text, f"terminations.{name}") for name, text in task.terminations.items()]
        self._titles = [
            *(f"observations.{name}" for name, found in seen.items() for _ in found),
            *(["the reward"] if terms else []),
            *(f"rewards.{name}" for name in task.rewards),
            *(f"terminations.{name}" for name in task.terminations),
        ]
        return [int(k) for found in seen.values() for k in found] + total + terms + ends

    # ------------------------------------------------------------------ steps

    def begin(self, robots: Array, generators: Generators) -> None:
        """Begin anew with some robots, each with draws of its generator, and observe them. Nothing of the others
        changes."""
        simulation = self.simulation
        states, varied = self._starts.draw(generators)
        if varied:
            simulation.vary(robots, **varied)
        simulation.reset(robots, **states)
        self.length[robots], self._action[robots], self._inputs[robots] = 0, 0.0, self.actions.held(1)
        simulation.give(self.actions.input, self._inputs)
        self._find_links()
        if self._recorded:
            simulation.forward(robots)
            self._copy_recorded(robots)
        self._program.begin(robots)
        self._check(robots)
        self.sensing.begin(robots, self._program.output, generators)
        self.sensing.write(robots, self.observation)

    def step(self, actions: Array, active: Array, noise: np.random.Generator) -> None:
        """Take a step with actions (n, entries) within their bounds; rewards and ends are those of the `active` robots
        (n,) alone, which are observed."""
        simulation = self.simulation
        if not np.isfinite(actions).all():
            raise UsageError("an action is not finite")
        np.clip(actions, self.actions.low, self.actions.high, out=self._action)
        self.actions.set(self._inputs, self._action)
        simulation.give(self.actions.input, self._inputs)
        simulation.step(steps=self.task.steps)
        self.length += 1
        self._find_links()
        robots = self._all if active.all() else np.flatnonzero(active)
        self._copy_recorded(robots)
        self._program.run(robots)
        self._check(robots)
        self._read(active)
        self.sensing.measure(robots, self._program.output, noise)
        self.sensing.write(robots, self.observation)

    def _copy_recorded(self, robots: Array) -> None:
        for values, columns in self._recorded:
            self._seen[robots, columns] = values[robots].reshape(len(robots), -1)

    def _read(self, active: Array) -> None:
        """Read rewards and ends from the program's results."""
        found, task = self._program.output, self.task
        at = self.sensing.size
        self.reward = np.where(active, found[:, at], 0.0) if task.rewards else np.zeros(len(found))
        at += 1 if task.rewards else 0
        self.terms = {name: found[:, at + k].copy() for k, name in enumerate(task.rewards)}
        at += len(task.rewards)
        self.ends = {name: active & (found[:, at + k] != 0.0) for k, name in enumerate(task.terminations)}
        self.stopped = active & (self.simulation.status != 0)
        self.terminated = self.stopped.copy()
        for end in self.ends.values():
            self.terminated |= end
        self.truncated = active & (self.length >= (task.limit or np.inf))

    def _check(self, robots: Array) -> None:
        """Raise StoppedError where a result is undefined, but for robots that have stopped: theirs are 0 then."""
        output = self._program.output
        undefined = np.isnan(output[robots])
        if not undefined.any():
            return
        stopped = self.simulation.status != 0
        output[stopped] = np.nan_to_num(output[stopped])
        for k, wrong in zip(robots.tolist(), undefined, strict=True):
            if wrong.any() and not stopped[k]:
                number = int(np.flatnonzero(wrong)[0])
                why = self._compiler.reason(self._program.registers(k), self._program.outputs[number])
                time = float(self.simulation.time[k])
                raise StoppedError(f"{self._titles[number]} of robot {k} at t = {time:.6g} s: {why}")

    def close(self) -> None:
        """End the threads."""
        self.simulation.close()
