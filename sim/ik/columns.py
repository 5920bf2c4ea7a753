"""The columns of an inverse kinematics: the independent dofs that targets and the constraints tied to them need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import BALL, D_MIN, FREE, Compiled, Model
from artsim.sim.equipment.arrays import RIGID, Equipped
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array


class Constraints(NamedTuple):
    """The constraints that hold at a result, by their numbers: couplings that are rows, couplings of balls' axes,
    loops."""

    couplings: list[int]
    axes: list[int]
    loops: list[int]

    @property
    def any(self) -> bool:
        """True if there are any."""
        return bool(self.couplings or self.axes or self.loops)


def chain_of(model: Model, body: int) -> list[int]:
    """The dofs that move a body, from the root on."""
    found = []
    k = int(model.body_dof[body + 1]) - 1 if body else -1
    while k >= 0:
        found.append(k)
        k = int(model.dof_parent[k])
    return found[::-1]


def moving_dofs(compiled: Compiled, move: Sequence[str] | None) -> Array:
    """True (nv,) for the dofs of the joints that may move, and of their followers. Raises UsageError."""
    model, labels = compiled.model, compiled.labels
    if move is None:
        return model.dof_independent >= 0
    if isinstance(move, str):
        raise UsageError(f"move: want a list of names, not the text {move!r}")
    leaders = set()
    for name in move:
        if name not in labels.joint_dofs:
            raise UsageError(f"joint {name!r} does not exist{nearest(name, labels.joint_dofs)}")
        dofs = range(*labels.joint_dofs[name].indices(len(labels.dofs)))
        if not all(k in model.independent_dof for k in dofs):
            raise UsageError(f"joint {name!r} follows another one; name that one")
        leaders |= {int(model.dof_independent[k]) for k in dofs}
    moving: Array = np.isin(model.dof_independent, sorted(leaders)) & (model.dof_independent >= 0)
    return moving


def tied(
    compiled: Compiled, equipped: Equipped | None, dofs: Iterable[int], moving: Array, *, everything: bool = False
) -> tuple[set[int], Constraints]:
    """The independent dofs, by their numbers among these, that move the dofs and all constraints tied to them; and
    these constraints. `everything`: all constraints of the robot but
    those of tendons.

    Loops and couplings that are springs tie nothing; those that are soft as in MuJoCo do. Raises UsageError for
    equalities of tendons, which the search does not hold.
    """
    model = compiled.model
    movers: list[tuple[str, int, set[int]]] = []
    rigid = (model.row_frequency < 0) & (model.row_compliance < 0)
    for c in np.flatnonzero(rigid | (model.row_impedance[:, D_MIN] >= 0)).tolist():
        pair = (int(model.row_follower[c]), int(model.row_leader[c]))
        movers.append(("couplings", c, {k for k in pair if k >= 0}))
    for c, (turn, dof) in enumerate(zip(model.axis_turn.tolist(), model.axis_dof.tolist(), strict=True)):
        movers.append(("axes", c, {int(turn), int(dof)}))
    if equipped is not None:
        e = equipped.arrays
        for n, bodies in enumerate(e.loop_body.tolist()):
            if e.loop_sprung[n] == RIGID:
                movers.append(("loops", n, {k for body in bodies for k in chain_of(model, body)}))
        for tendons in zip(e.tendon_row_follower.tolist(), e.tendon_row_leader.tolist(), strict=True):
            for t in (t for t in tendons if t >= 0):
                entries = e.tendon_dof[e.tendon_entry[t] : e.tendon_entry[t + 1]].tolist()
                movers.append((f"tendon {equipped.labels.tendons[t]!r}", t, set(map(int, entries))))
    need = {int(model.dof_independent[k]) for k in dofs if moving[k]}
    held: dict[str, list[int]] = {"couplings": [], "axes": [], "loops": []}
    waiting = [(kind, n, {int(model.dof_independent[k]) for k in chain if moving[k]}) for kind, n, chain in movers]
    while ready := [each for each in waiting if each[2] and (everything or each[2] & need)]:
        for kind, n, columns in ready:
            if kind not in held:
                if everything:
                    continue
                raise UsageError(
                    f"{kind} has an equality, which inverse kinematics does not hold; leave its joints out"
                )
            held[kind].append(n)
            need |= columns
        waiting = [each for each in waiting if each not in ready]
    need |= {column for k in _whole_balls(model, need) for column in [int(model.dof_independent[k])]}
    _refuse_limits_of_balls(compiled, need)
    return need, Constraints(*(sorted(found) for found in held.values()))


def _whole_balls(model: Model, columns: set[int]) -> list[int]:
    """The rotations of the ball and free joints of which one is among the columns."""
    found: list[int] = []
    for column in columns:
        body = int(model.dof_body[model.independent_dof[column]])
        if model.joint_type[body] in (BALL, FREE):
            found += range(int(model.body_dof[body]), int(model.body_dof[body + 1]))
    return found


def _refuse_limits_of_balls(compiled: Compiled, columns: set[int]) -> None:
    model, labels = compiled.model, compiled.labels
    for name, dofs in labels.joint_dofs.items():
        first = dofs.stop - 3
        if dofs.stop - dofs.start < 3 or model.dof_coord[dofs.stop - 1] >= 0:
            continue
        if int(model.dof_independent[first]) in columns and (
            model.dof_turn[first] >= 0 or np.isfinite(model.upper[first])
        ):
            raise UsageError(
                f"joint {name!r} is a ball with limits, which inverse kinematics does not keep; name the joints that "
                f"are to move"
            )
