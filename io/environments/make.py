"""Environments made from tasks and robots, if gymnasium is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artsim.io.environments.task import Task
from artsim.sim.foundation.errors import UsageError
from artsim.sim.quantities.robot import Robot

if TYPE_CHECKING:
    from artsim.io.environments.vector_env import Environment, VectorEnvironment


def vector_environment(
    robot: Robot, task: Task, n: int, *, autoreset_mode: str = "NextStep", threads: int | None = None
) -> VectorEnvironment:
    """n robots at a task. Raises UsageError without gymnasium."""
    _need_gymnasium()
    from artsim.io.environments.vector_env import VectorEnvironment

    return VectorEnvironment(robot, task, n, autoreset_mode=autoreset_mode, threads=threads)


def environment(robot: Robot, task: Task) -> Environment:
    """One robot at a task. Raises UsageError without gymnasium."""
    _need_gymnasium()
    from artsim.io.environments.vector_env import Environment

    return Environment(robot, task)


def _need_gymnasium() -> None:
    try:
        import gymnasium  # noqa: F401
    except ImportError:
        raise UsageError('environments need gymnasium: pip install "artsim[gym]"') from None
