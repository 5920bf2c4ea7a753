"""Builds the row of a coupling between the twist of a ball joint about one of its axes and another joint's coordinate.

C = a t + b q + c for twist t and coordinate q, where either may follow the other (model.py: axis_terms). The twist is
that of the swing-twist decomposition about the axis, on the turn nearest to the value that the coordinate asks for: a
hinge that follows a ball goes round with the ball. Elimination cannot impose this coupling, since no dof of a ball is
the rate of its twist: couplings of axes are hard rows. C is curved; stepping/aims.py aims the rows at the step's end.

At a swing of π the twist is undefined and its gradient without bound: within a degree of π the row acts on the twist
alone, and the error grows.
"""

from __future__ import annotations

from artsim.sim.articulation.kinematics import like
from artsim.sim.articulation.model import BY_PLACE, BY_TURN, CONSTANT, Model
from artsim.sim.articulation.state import RobotBundle, Workspace
from artsim.sim.articulation.swing_twist import nearest_turn, twist_angle, twist_rates
from artsim.sim.constraints.impedance import behind
from artsim.sim.constraints.kinds import AXIS_ROW
from artsim.sim.constraints.row import add_entry, add_row, drift_of, recovery_rate, row_rate
from artsim.sim.foundation.jit import inlined, njit
from artsim.sim.foundation.lanes import absolute, lane_count, lane_of, real, with_lane, zero_like
from artsim.sim.foundation.records import Lanes1, Real, Vec4
from artsim.sim.foundation.scalars import largest
from artsim.sim.run_data.run_records import LASTING_ROWS, Inputs, Rows, RunBundle


@inlined
def has_axes(model: Model) -> bool:
    """True if an axis of a ball is coupled."""
    return model.axis_dof.shape[0] > 0


@njit
def axis_row(robot: RobotBundle, run: RunBundle, rows: Rows, c: int) -> None:
    """Append the row of coupling c: J = a ∂t/∂ω + b e_q. In both widths."""
    model, state, data = robot.model, robot.state, robot.data
    n = add_row(rows, AXIS_ROW, min(model.axis_turn[c], model.axis_dof[c]))
    dofs, slopes = axis_gradient(model, state.qpos, c)
    for e in range(4):
        add_entry(model, data, rows, dofs[e], slopes[e])
    rows.error[n] = axis_error(model, state.qpos, c)
    rows.rate[n] = recovery_rate(run.inputs, absolute(rows.error[n]), model.axis_erp[c])
    speed = row_rate(rows, n, state.qvel)
    rows.bias[n] = rows.rate[n] * (rows.error[n] + behind(run.inputs) * speed)
    rows.bias[n] += run.inputs.time_step[0] * drift_of(data, rows, n)


@inlined
def axis_gradient(model: Model, q: Lanes1, c: int) -> tuple[tuple[int, int, int, int], Vec4]:
    """The dofs (4,) that change C of coupling c, and J's entries of these, in both widths."""
    turn, dof = model.axis_turn[c], model.axis_dof[c]
    first = model.body_dof[model.dof_body[turn]]
    w, x, y, z = _about_axis(model, q, turn)
    across, over = zero_like(w), zero_like(w)
    for lane in range(lane_count(w)):
        one, two = twist_rates(lane_of(w, lane), lane_of(x, lane), lane_of(y, lane), lane_of(z, lane))
        across, over = with_lane(across, lane, one), with_lane(over, lane, two)
    a, b = real(model.axis_terms[c, BY_TURN], w), real(model.axis_terms[c, BY_PLACE], w)
    dofs = (dof, turn, first + (turn - first + 1) % 3, first + (turn - first + 2) % 3)
    return dofs, (b, a, a * across, a * over)


@njit
def axis_error(model: Model, q: Lanes1, c: int) -> Real:
    """C of coupling c at coordinates q [rad or m], in both widths."""
    a, b, constant = model.axis_terms[c, BY_TURN], model.axis_terms[c, BY_PLACE], model.axis_terms[c, CONSTANT]
    w, x, _, _ = _about_axis(model, q, model.axis_turn[c])
    rest = b * q[model.dof_coord[model.axis_dof[c]]] + constant
    if a == 0.0:
        return rest
    return a * _nearest_twist(w, x, -rest / a) + rest


@inlined
def _nearest_twist(w: Real, x: Real, wanted: Real) -> Real:
    """The twist of a rotation on the turn nearest to the wanted angle [rad], of one lane after the other."""
    twist = wanted
    for lane in range(lane_count(wanted)):
        angle = twist_angle(lane_of(w, lane), lane_of(x, lane))
        twist = with_lane(twist, lane, nearest_turn(angle, lane_of(wanted, lane)))
    return twist


@inlined
def _about_axis(model: Model, q: Lanes1, turn: int) -> Vec4:
    """The rotation of the ball of which `turn` is a rotation, in its frame with the axes renamed so that this is x."""
    body = model.dof_body[turn]
    axis = turn - model.body_dof[body]
    n = model.body_coord[body]
    return q[n], q[n + 1 + axis], q[n + 1 + (axis + 1) % 3], q[n + 1 + (axis + 2) % 3]


@njit
def find_axis_misses(model: Model, data: Workspace, inputs: Inputs, q: Lanes1, rows: Rows) -> Real:
    """Set rows.miss of couplings of axes, and return the largest; q are the coordinates at the step's end. In both
    widths."""
    worst = like(0.0, data)
    c = 0
    for n in range(rows.number[LASTING_ROWS]):
        if rows.kind[n] == AXIS_ROW:
            left = rows.error[n] * (1.0 - inputs.time_step[0] * rows.rate[n])
            miss = axis_error(model, q, c) - left
            rows.miss[rows.place[n]] = miss
            worst = largest(worst, absolute(miss))
            c += 1
    return worst
