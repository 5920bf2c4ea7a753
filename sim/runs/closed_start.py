"""Closes loops and couplings before a run starts, by the search of inverse kinematics without targets."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.equipment.arrays import Equipped
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

    `joints`: those that may move, names and patterns with commas between; "*": all but free bases and those whose
    coordinates are `given`.

    Raises SettingError: a name of no joint, nothing to close, or a loop that stays open, with its gap.
    """
    from artsim.sim.ik.solver import PoseSearch

    move = _moved(robot, joints, given)
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


def _moved(robot: Robot, joints: str, given: Collection[str]) -> list[str]:
    """The joints that may move. Raises SettingError for a name or pattern of none."""
    model, labels = robot.model, robot.labels
    free = [name for name, dofs in labels.joint_dofs.items() if _is_free(model, dofs)]
    if joints.strip() == ALL:
        kept = {name for name, coords in labels.joint_coords.items() if {*labels.coords[coords]} & {*given}}
        return [name for name in free if name not in kept and not is_of_base(model, labels.joint_dofs[name].start)]
    found: dict[str, None] = {}
    for word in (word.strip() for word in joints.split(",") if word.strip()):
        matches = meant_by(word, labels.joint_dofs, free)
        if not matches:
            raise SettingError(
                f"--assemble: {word!r} is not a joint of this robot{nearest(word, labels.joint_dofs)}", "assemble", word
            )
        found |= dict.fromkeys(matches)
    return [*found]


def _is_free(model: Model, dofs: slice) -> bool:
    """True for the dofs of a joint that follows none."""
    return all(k in model.independent_dof for k in range(dofs.start, dofs.stop))


def told_of_lock(robot: Robot, equipped: Equipped | None, q: Real) -> list[str]:
    """A note on a mechanism whose loops and couplings leave nothing to move."""
    if not is_locked(robot.compiled, equipped, q):
        return []
    return ["the loops leave nothing to move: this mechanism is locked (artsim check counts its rows)"]
