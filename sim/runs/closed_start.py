"""Closes loops and couplings before a run starts, by the search of inverse kinematics without targets."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import RIGID, Equipped
from artsim.sim.equipment.build_loops import open_loops
from artsim.sim.foundation.errors import SettingError, UsageError, nearest
from artsim.sim.foundation.rotations import Real
from artsim.sim.ik.loop_freedom import is_locked
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.patterns import ALL, is_of_base, meant_by

CLOSED = 1e-12  # [m or rad]
_ITERATIONS = 200
_ATTEMPTS = 64


def assembled(robot: Robot, equipped: Equipped | None, joints: str, given: Collection[str], q: Real) -> Real:
    """Coordinates (nq,) at which all loops and couplings hold to 1e-12, near q (nq,) and within the limits.

    `joints`: those that may move, names and patterns with commas between; "*": all but those whose coordinates are
    `given` and free bases that no loop ties to the world or to another tree.

    Raises SettingError: a name of no joint, nothing to close, or a loop that stays open, with its gap.
    """
    from artsim.sim.ik.solver import PoseSearch

    move = _moved(robot, equipped, joints, given)
    try:
        search = PoseSearch(
            robot.compiled,
            equipped,
            [],
            move=move,
            closed=CLOSED,
            attempts=_ATTEMPTS,
            iterations=_ITERATIONS,
            path=True,  # further attempts begin near q first
        )
    except UsageError as error:
        raise SettingError(f"--assemble: {error}", "assemble") from None
    none = np.zeros((1, 0, 3)), np.zeros((1, 0, 4))
    found = search.solve(*none, q[None])
    if found["status"][0] == 0:
        closed: Real = found["qpos"][0]
        return closed
    gap = float(found["constraint_error"][0])
    left = {} if equipped is None else open_loops(robot.model, equipped, found["qpos"][0], CLOSED)
    which = f"loop {max(left, key=left.__getitem__)!r} stays" if left else "a coupling stays"
    how = "" if joints != ALL else "; --assemble NAME,… moves joints that --q0 gives, too" if given else ""
    raise SettingError(f"--assemble: {which} open by {max(gap, *left.values(), 0.0):.3g} m or rad{how}", "assemble")


def _moved(robot: Robot, equipped: Equipped | None, joints: str, given: Collection[str]) -> list[str]:
    """The joints that may move. Raises SettingError for a name or pattern of none."""
    model, labels = robot.model, robot.labels
    free = [name for name, dofs in labels.joint_dofs.items() if _is_free(model, dofs)]
    if joints.strip() == ALL:
        kept = {name for name, coords in labels.joint_coords.items() if {*labels.coords[coords]} & {*given}}
        tied = _tied_trees(model, equipped)
        first = {name: labels.joint_dofs[name].start for name in free if name not in kept}
        return [name for name, k in first.items() if not is_of_base(model, k) or int(model.dof_body[k]) in tied]
    found: dict[str, None] = {}
    for word in (word.strip() for word in joints.split(",") if word.strip()):
        matches = meant_by(word, labels.joint_dofs, free)
        if not matches:
            raise SettingError(
                f"--assemble: {word!r} is not a joint of this robot{nearest(word, labels.joint_dofs)}", "assemble", word
            )
        found |= dict.fromkeys(matches)
    return [*found]


def _tied_trees(model: Model, equipped: Equipped | None) -> set[int]:
    """The first bodies of trees that a loop ties to the world or to another tree."""

    def root(body: int) -> int:
        while model.body_parent[body] > 0:
            body = int(model.body_parent[body])
        return body

    loops = () if equipped is None else equipped.arrays.loop_body[equipped.arrays.loop_sprung == RIGID].tolist()
    pairs = [{root(body) for body in bodies} for bodies in loops]
    return {body for pair in pairs if len(pair) > 1 for body in pair}


def _is_free(model: Model, dofs: slice) -> bool:
    """True for the dofs of a joint that follows none."""
    return all(k in model.independent_dof for k in range(dofs.start, dofs.stop))


def told_of_lock(robot: Robot, equipped: Equipped | None, q: Real) -> list[str]:
    """A note on a mechanism whose loops and couplings leave nothing to move."""
    if not is_locked(robot.compiled, equipped, q):
        return []
    return ["the loops leave nothing to move: this mechanism is locked (artsim check counts its rows)"]
