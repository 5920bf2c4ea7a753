"""A contact as three rows: the gap, which must not close, and two slips, which friction holds within its cone.

The gap's row keeps the end of the step open: gap + h J v⁺ + ½ h² drift ≥ 0, so that a body that would arrive within
the step is stopped at the surface and not beyond it. Of the second order only what closes the gap counts: it is known
for the velocity before the step, and a body that is stopped in the step has none of what would have lifted it. What is
inside already is brought back over a tenth of a second, as with limits.

All contacts have their rows in every step; those that are far away carry nothing.
"""

from __future__ import annotations

from typing import Any

from artsim.sim.constraints.row import add_entry, add_row, drift_of, one_sided
from artsim.sim.jit import njit
from artsim.sim.kinematics import add_jacobian, cross, link_frame
from artsim.sim.run import CONTACT_ROW


@njit
def contact_rows(m: Any, w: Any, i: Any, r: Any, f: Any, g: Any, t: Any) -> None:
    """Three rows per contact: velocity of b's material point against a's, along the normal and the two tangents.

    Needs motion columns (as the mass matrix leaves them) and the contacts of this step.
    """
    h = i.time_step[0]
    J = f.columns
    for n in range(t.gap.shape[0]):
        for line in range(3):
            for k in range(J.shape[1]):
                J[line, k] = 0.0
        for end in range(2):
            body = t.body[n, end]
            x = t.arm[n, end]
            add_jacobian(m, w, body, w.arm[body, 0] + x[0], w.arm[body, 1] + x[1], w.arm[body, 2] + x[2], _sign(end), J)
        for axis in range(3):
            row = _contact_row(m, w, r, n, t.frame[n, axis], J)
            r.bias[row] = h * drift_of(w, r, row)
            r.cone[row] = -1
            r.static[row] = 1 if t.body[n, 0] == 0 or t.body[n, 1] == 0 else 0
            if axis == 0:
                one_sided(r, i, row, t.gap[n])
                r.bias[row] += 0.5 * h * min(t.drift[n], 0.0)
                r.cone[row] = 3
                r.slope[row] = g.friction[n]


@njit
def _sign(end: Any) -> Any:
    return -1.0 if end == 0 else 1.0


@njit
def _contact_row(m: Any, w: Any, r: Any, n: Any, axis: Any, J: Any) -> Any:
    """A row with axisᵀ J, of J's linear lines (3, nv)."""
    row = add_row(r, CONTACT_ROW, n)
    for k in range(J.shape[1]):
        value = axis[0] * J[0, k] + axis[1] * J[1, k] + axis[2] * J[2, k]
        if value != 0.0:
            add_entry(m, w, r, k, value)
    return row


@njit
def note_contact_forces(r: Any, t: Any, scale: Any) -> None:
    """t.force = λ `scale` of the contacts' rows; a contact's rows stand together, in order."""
    axis = 0
    for row in range(r.number[0]):
        if r.kind[row] == CONTACT_ROW:
            axis = 0 if r.cone[row] > 0 else axis + 1
            t.force[r.dof[row], axis] = r.impulse[row] * scale


@njit
def take_off_contacts(m: Any, w: Any, f: Any, t: Any) -> None:
    """Subtract from f.link_force and f.link_torque (about the links' origins) what contacts do to their links."""
    for n in range(t.gap.shape[0]):
        F = t.force[n]
        R = t.frame[n]
        f0 = R[0, 0] * F[0] + R[1, 0] * F[1] + R[2, 0] * F[2]
        f1 = R[0, 1] * F[0] + R[1, 1] * F[1] + R[2, 1] * F[2]
        f2 = R[0, 2] * F[0] + R[1, 2] * F[1] + R[2, 2] * F[2]
        for end in range(2):
            link = t.link[n, end]
            if link >= 0:
                sign = _sign(end)
                _, o = link_frame(m, w, link)
                x = t.arm[n, end]
                c0, c1, c2 = cross(x[0] - o[0], x[1] - o[1], x[2] - o[2], f0, f1, f2)
                f.link_force[link, 0] -= sign * f0
                f.link_force[link, 1] -= sign * f1
                f.link_force[link, 2] -= sign * f2
                f.link_torque[link, 0] -= sign * c0
                f.link_torque[link, 1] -= sign * c1
                f.link_torque[link, 2] -= sign * c2
