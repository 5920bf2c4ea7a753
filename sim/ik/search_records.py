"""The records of the inverse kinematics kernel: rows of poses and results, targets, tasks of threads, scratch.

The coordinates that are looked for are those of the n independent dofs on the way to the targets, and on the loops that
these dofs move: the *columns* of the Jacobian. All other coordinates stay as they start.
"""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.articulation.state import RobotBundle
from artsim.sim.equipment.arrays import EquipmentBundle, EquipmentWork
from artsim.sim.foundation.jit import Entry
from artsim.sim.foundation.records import (
    Ints1,
    Ints2,
    Lanes1,
    Lanes2,
    Reals1,
    Reals2,
    Reals3,
    with_lanes,
    with_members,
)

# entries of SearchTask.rows
FIRST_ROW, END_ROW = range(2)
# columns of Search.lane
ROW, ATTEMPT, ITERATIONS, PHASE = range(4)
LANE_NUMBERS = 4
# phases of a lane: without a row; towards targets and posture; towards targets; the nearest to them; loops closed
RESTING, SETTLING, AIMING, POLISHING, CLOSING = range(5)
# entries of Search.number
COST, TRIAL_COST, DAMPING, COUNT, SLOW, MARK, BEST_COST, DONE, AIM, PULL = range(10)
NUMBERS = 10
# entries of errors, columns of Poses.error; the first two also of Targets.weight
POSITION, ROTATION, CLOSURE = range(3)
ERRORS = 3
# entries of Targets.kind
POSE, LOOK, MASS = range(3)
# entries of Poses.status
REACHED, NOT_REACHED, OPEN = range(3)


class Targets(NamedTuple):
    """The nt targets, and the dofs that move them."""

    kind: Ints1  # (nt,) POSE of a link, LOOK of a link's axis to a point, or place of the robot's centre of MASS
    link: Ints1  # (nt,) -1: the centre of mass
    reference: Ints1  # (nt,) the link in whose frame the target is; -1: the world's
    axis: Reals2  # (nt, 3) the direction, in the link's frame, that looks
    weight: Reals2  # (nt, 2) of the position [1/m] and of the rotation [1/rad]; 0: not wanted
    entry: Ints1  # (nt + 1,) first entry of each
    entry_dof: Ints1  # (entries,) the dofs that move the link or the reference
    entry_column: Ints1  # (entries,) the column of the independent dof that moves it
    entry_sign: Reals1  # (entries,) 1: moves the link, -1: the reference
    first: Ints1  # (nt + 2,) first entry of each in `column`; the last are all columns, for constraints
    column: Ints1  # the columns that move a target, ascending


class SearchTask(NamedTuple):
    """The task of a thread: its rows, the columns, and the constraints that hold at a result."""

    rows: Ints1  # (2,) first row, and the one after the last
    offset: Ints1  # (1,) rows before those of the table, from which draws count
    attempts: Ints1  # (1,) number of starts that are tried
    iterations: Ints1  # (1,) number of iterations from each
    tolerance: Reals1  # (3,) of positions [m], rotations [rad] and constraints [m, rad]
    path: Ints1  # (1,) 1: each row starts where the one before it ended
    settles: Ints1  # (1,) 1: a posture is wished for
    body: Ints1  # the bodies to be placed, parents first
    weighs: Ints1  # (1,) 1: a target is the centre of mass
    coord: Ints1  # (n,) coordinate of each column; -1: a rotation of a ball or free joint
    low: Reals1  # (n,) bounds of the coordinates
    high: Reals1  # (n,)
    draw_low: Reals1  # (n,) ends of the ranges of starts that are drawn
    draw_high: Reals1  # (n,)
    most: Reals1  # (n,) largest distance from the row's own start
    period: Reals1  # (n,) 2π where a turn leaves the pose as it is and fits within the bounds, else 0
    posture: Reals1  # (n,) the coordinates wished for
    posture_weight: Reals1  # (n,) 0: none is
    turn_column: Ints1  # first column of each ball's rotations
    turn_coord: Ints1  # and the first entry of its quaternion
    draw: Reals2  # (draws, nq) numbers of 0 … 1, and unit quaternions, from which starts are made
    parent: Ints1  # (n,) the column before: the normal matrix is full
    run: Ints1  # (n,) zeros
    dof_column: Ints1  # (nv,) the column of the independent dof that moves a dof; -1: none
    coupling: Ints1  # couplings that are rows and hold, numbers in Model
    axis: Ints1  # couplings of balls' axes that hold
    loop: Ints1  # loops that hold, numbers in Equipment


class Poses(NamedTuple):
    """A table of N rows: wanted poses, starts and results."""

    start: Reals2  # (N, nq) or (1, nq): the same for all
    position: Reals3  # (N, nt, 3) [m]; of LOOK: the point
    quaternion: Reals3  # (N, nt, 4)
    qpos: Reals2  # (N, nq)
    status: Ints1  # (N,)
    error: Reals2  # (N, 3) largest error of a position [m], of a rotation [rad], of a constraint [m, rad]
    iterations: Ints1  # (N,) from all starts
    attempts: Ints1  # (N,) number of starts that were tried


class Search(NamedTuple):
    """Scratch of the search with lanes: each lane is at a row of its own."""

    lane: Ints2  # (lanes, 4) row, attempt, iterations before this attempt, phase
    number: Lanes1  # (10,) COST …
    target: Lanes2  # (nt, 7) wanted position and quaternion
    low: Lanes1  # (n,) bounds of the row
    high: Lanes1  # (n,)
    place: Lanes1  # (nq,) the best configuration of this attempt; the trial is in State.qpos
    best: Lanes1  # (nq,) the best of the attempts before
    error: Lanes1  # (3,) at `place`
    trial_error: Lanes1  # (3,)
    normal: Lanes2  # (n, n) Jᵀ W J at `place`, lower triangle
    gradient: Lanes1  # (n,) Jᵀ W e there, the way down
    trial_normal: Lanes2  # (n, n)
    trial_gradient: Lanes1  # (n,)
    matrix: Lanes2  # (n, n) the damped matrix, and its factors
    pivot: Lanes1  # (n,)
    move: Lanes1  # (n,) the step
    free: Lanes1  # (n,) 0: the column is at a bound and pushes against it
    columns: Lanes2  # (6, n) Jacobian of a target or a loop
    lines: Lanes2  # (6, nv) in full coordinates, of the centre of mass or a loop
    com: Lanes1  # (3,) the centre of mass [m]


def search_shapes(nq: int, nv: int, n: int, nt: int, width: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the Search fields."""
    return {
        "lane": (width, LANE_NUMBERS),
        "number": (NUMBERS,),
        "target": (nt, 7),
        **dict.fromkeys(("place", "best"), (nq,)),
        **dict.fromkeys(("error", "trial_error"), (ERRORS,)),
        **dict.fromkeys(("normal", "trial_normal", "matrix"), (n, n)),
        **dict.fromkeys(("low", "high", "gradient", "trial_gradient", "pivot", "move", "free"), (n,)),
        "columns": (6, n),
        "lines": (6, nv),
        "com": (3,),
    }


LoopLanes = with_lanes(EquipmentWork, "LoopLanes", ("loop_error", "loop_drift"))
"""The scratch of equipment, of which loops have lanes."""


def search_entry(looped: bool) -> Entry:
    """The kernel, of robots with loops or without."""
    equipment = with_members(EquipmentBundle, data=LoopLanes) if looped else None
    records = (RobotBundle, equipment, Search, SearchTask, Targets, Poses)
    return Entry("pose_search", "artsim.sim.ik.pose_search", records, "_looped" if looped else "")
