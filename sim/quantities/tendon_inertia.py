"""Adds the inertia of tendons, armature · Jᵀ J, and the energy of springs to the quantities of configurations.

The kernel of `compute` handles the tree only; this file corrects its results. With W = √armature J the mass matrix is
M + Wᵀ W; its inverse follows from Woodbury's identity, in which a tendon is a row on the robot, as it is in a run
(constraints/tendon_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Model
from artsim.sim.articulation.regularity import is_singular
from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.equipment.arrays import EquipmentBundle, Equipped, make_equipment_work
from artsim.sim.foundation.jit import Entry, bind_movable
from artsim.sim.foundation.records import Array, Ints1, Reals1, Reals2, Reals3
from artsim.sim.quantities.catalogue import BAD_RESULT, OK, WITH_INERTIA

_ROWS = 256  # number of rows that are computed at a time
_INVERTED = frozenset({"inverse_mass_matrix", "forward_dynamics"})


class TendonTask(NamedTuple):
    """A table of configurations, and the results of the kernel. n: nv, or nu if reduced; k tendons have armature."""

    rows: Ints1  # (2,) first row, and the one after the last
    reduced: Ints1  # (1,)
    tendon: Ints1  # (k,)
    qpos: Reals2  # (N, nq)
    qvel: Reals2  # (N, nv) or (0, nv): zero
    moment: Reals3  # (rows, k, n) √armature dL/dq
    drift: Reals2  # (rows, k) √armature times the length's second derivative at zero acceleration (reduced: u̇ = 0)
    speed: Reals2  # (rows, k) √armature times the length's first derivative
    stored: Reals1  # (rows,) energy of the springs that the kernel of `compute` leaves out [J]; may be empty


TENDON_INERTIA = Entry(
    "tendon_inertia",
    "artsim.sim.quantities.tendon_moments",
    (RobotBundle, EquipmentBundle, TendonTask),
)


class TendonInertia:
    """Adds tendons with armature, and springs of ball joints, polynomials and tendons, to a table of results.

    Attributes:
        wanted: the requested quantities that it changes.
        needed: further quantities that it needs.
        taken: quantities that it computes alone, since the robot's own M is singular.
    """

    entry = TENDON_INERTIA

    def __init__(
        self, model: Model, equipped: Equipped, quantities: tuple[str, ...], *, reduced: bool, wrench: bool
    ) -> None:
        self._tendons = np.flatnonzero(equipped.arrays.tendon_armature > 0)
        self.wanted = WITH_INERTIA.intersection(quantities if len(self._tendons) else ())
        self._springs = "potential_energy" in quantities
        inverted = self.wanted & _INVERTED
        self.taken = inverted if inverted and is_singular(model) else frozenset[str]()
        if "forward_dynamics" in self.taken:
            needed = {"mass_matrix", "bias"} | ({"external_force"} if wrench else set())
        elif self.taken:
            needed = {"mass_matrix"}
        else:
            needed = {"inverse_mass_matrix"} if inverted else set()
        self.needed = needed.difference(quantities)
        self._model = model
        self._equipped = equipped
        self._reduced = reduced
        self._nv = len(model.independent_dof if reduced else model.dof_body)

    def adder(self, bounds: Array, arrays: Mapping[str, Array]) -> Callable[[], None]:
        """Make a function that adds to rows bounds[0] … bounds[1] of the results in `arrays` for the inputs there, by
        name, as they are when it is called."""
        model, equipped, k = self._model, self._equipped, len(self._tendons)
        task = TendonTask(
            rows=np.zeros(2, np.int64),
            reduced=np.array([self._reduced], np.int64),
            tendon=self._tendons,
            qpos=np.zeros((0, len(model.body_coord))),
            qvel=np.zeros((0, len(model.dof_body))),
            moment=np.zeros((_ROWS, k, self._nv)),
            drift=np.zeros((_ROWS, k)),
            speed=np.zeros((_ROWS, k)),
            stored=np.zeros(_ROWS if self._springs else 0),
        )
        work = make_equipment_work(model, equipped.arrays, equipped.activations)
        robot = RobotBundle(model, make_state(model), make_workspace(model))
        call, put = bind_movable(TENDON_INERTIA, 1, robot, EquipmentBundle(equipped.arrays, work), task)

        def add() -> None:
            for name in {"qpos", "qvel"}.intersection(arrays):
                put(name, arrays[name])
            first, end = (int(bound) for bound in bounds)
            for start in range(first, end, _ROWS):
                task.rows[:] = start, min(start + _ROWS, end)
                call()
                rows = slice(*task.rows)
                n = rows.stop - rows.start
                if self._springs:
                    right = arrays["status"][rows] == OK
                    arrays["potential_energy"][rows][right] += task.stored[:n][right]
                with np.errstate(all="ignore"):  # rows without a result
                    self._add(
                        task.moment[:n],
                        task.drift[:n],
                        task.speed[:n],
                        {name: values[rows] for name, values in arrays.items()},
                    )

        return add

    def _add(self, W: Array, drift: Array, speed: Array, arrays: Mapping[str, Array]) -> None:
        """Add to rows; the arrays are slices of all inputs and results."""
        finite = np.isfinite(W).all(axis=(1, 2)) & np.isfinite(drift).all(axis=1)
        arrays["status"][(arrays["status"] == OK) & ~finite] = BAD_RESULT
        bad = arrays["status"] != OK
        W[bad], drift[bad], speed[bad] = 0.0, 0.0, 0.0  # these rows stay unchanged
        drift = drift[..., None]
        Wt = W.swapaxes(1, 2)
        changed = self.wanted | self.needed
        for name in changed & {"coriolis", "bias", "inverse_dynamics"}:
            rate = drift
            if name == "inverse_dynamics":
                rate = drift + W @ self._column(arrays["qacc"], bad)
            arrays[name][:] += (Wt @ rate)[..., 0]
        if "kinetic_energy" in self.wanted:
            arrays["kinetic_energy"][:] += 0.5 * np.square(speed).sum(axis=1)
        if "mass_matrix" in changed:
            _add_symmetric(arrays["mass_matrix"], Wt @ W)
        if self.taken:
            self._invert(bad, arrays)
        elif "inverse_mass_matrix" in arrays:
            self._add_inverse(W, drift, bad, arrays)

    def _invert(self, bad: Array, arrays: Mapping[str, Array]) -> None:
        """Compute M⁻¹ and M⁻¹ (tau - bias - external force) with the complete M."""
        M = _square(arrays["mass_matrix"], self._nv).copy()
        M[bad] = np.eye(self._nv)
        inverse = np.linalg.inv(M)
        if "inverse_mass_matrix" in self.taken:
            arrays["inverse_mass_matrix"][:] = 0.0
            _add_symmetric(arrays["inverse_mass_matrix"], 0.5 * (inverse + inverse.swapaxes(1, 2)))
            arrays["inverse_mass_matrix"][bad] = np.nan
        if "forward_dynamics" in self.taken:
            balanced = arrays["bias"] + arrays.get("external_force", 0.0)
            right = np.where(bad[:, None], 0.0, arrays["tau"] - balanced)
            arrays["forward_dynamics"][:] = (inverse @ right[..., None])[..., 0]
            arrays["forward_dynamics"][bad] = np.nan

    def _add_inverse(self, W: Array, drift: Array, bad: Array, arrays: Mapping[str, Array]) -> None:
        """Compute M⁻¹ - B S⁻¹ Bᵀ and a - B S⁻¹ (W a + drift), with B = M⁻¹ Wᵀ and S = 1 + W B."""
        inverse = _square(arrays["inverse_mass_matrix"], self._nv)
        B = np.where(bad[:, None, None], 0.0, inverse) @ W.swapaxes(1, 2)
        S = np.eye(W.shape[1]) + W @ B
        if "forward_dynamics" in self.wanted:
            a = np.where(bad[:, None], 0.0, arrays["forward_dynamics"])[..., None]
            arrays["forward_dynamics"][:] -= (B @ np.linalg.solve(S, W @ a + drift))[..., 0]
        if "inverse_mass_matrix" in self.wanted:
            change = B @ np.linalg.solve(S, B.swapaxes(1, 2))
            _add_symmetric(arrays["inverse_mass_matrix"], -0.5 * (change + change.swapaxes(1, 2)))

    def _column(self, qacc: Array, bad: Array) -> Array:
        """Accelerations as columns (rows, n, 1); the independent ones if reduced."""
        values = qacc[:, self._model.independent_dof] if self._reduced else qacc
        column: Array = np.where(bad[:, None], 0.0, values)[..., None]
        return column


def _add_symmetric(out: Array, matrices: Array) -> None:
    """Add matrices (rows, n, n) to as many whole matrices or lower triangles (rows, n (n + 1) / 2)."""
    if out.ndim == 2:
        rows, columns = np.tril_indices(matrices.shape[1])
        out += matrices[:, rows, columns]
    else:
        out += matrices


def _square(stored: Array, n: int) -> Array:
    """Symmetric matrices (rows, n, n) from whole ones or from stored lower triangles."""
    if stored.ndim == 3:
        return stored
    square = np.empty((len(stored), n, n))
    rows, columns = np.tril_indices(n)
    square[:, rows, columns] = square[:, columns, rows] = stored
    return square
