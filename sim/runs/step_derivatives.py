"""Derivatives of a step: differences of the engine's own steps of copies of a run, in the tangent space.

The step maps the state x = (q, v, activation), the inputs u and properties p to the state at its end. It is smooth
within one set of constraint rows (which press, stick, slide) and one branch of each law, such as that of the error of a
contact that is open or inside. Every column is the difference of two steps, one on either side. Where their slopes
differ by more than curvature explains, as a second pair of steps tells that lie nearer, the step has a kink there: both
one-sided slopes are then found from two steps on their side, with errors of second order as well, and the one along
which the rows keep their states is the column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.runs.controls import VALUES
from artsim.sim.runs.copied_steps import Ends
from artsim.sim.runs.directions import EXPECTED, Column, Copies, Directions
from artsim.sim.runs.implicit_slopes import RefusedError, Slopes, implicit_slopes, reason_against
from artsim.sim.runs.one_sided_slopes import NEARER, Pair, first_settled, settled
from artsim.sim.runs.patterns import is_of_base
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.row_states import RowNames
from artsim.sim.runs.varied import PLACED, VARIED, components_of, part_labels, refuse_fixed, shape_of

STEP = 1e-5  # [rad, m, rad/s, m/s] of differences: steps are solved to some 1e-12
_LEVELS = 4  # the most pairs of steps of a column, each nearer than the one before
_ROUNDING = 1e-14  # of a state at the end of a step, as a share of its largest entry
_RESPONSE = 0.1  # share of STEP by which the end of a step should move
_MOST_ENLARGED = 100.0
_AXES = "xyz"
CENTRAL, FORWARD, BACKWARD = 0, 1, -1
IMPLICIT, DIFFERENCES = METHODS = "implicit", "differences"


@dataclass(frozen=True)
class StepDerivatives:
    """Derivatives of one step. Rows are the state at the end of the step, (q, v, activation) in the tangent space: nv
    dofs twice, then activations; columns are the state before it in `A`, inputs in `B`, and properties in `P`.

    Followers of eliminated couplings have rows and no columns of their own (zeros), unless `reduced`, which leaves
    dofs that follow out of both.
    """

    A: Real  # (nx, nx)
    B: Real  # (nx, nu)
    P: Real  # (nx, np)
    E: Real  # (nx, nv) by the changes of velocities that the step expects; (nx, 0) unless asked for
    C: Real  # (ny, nx) of outputs, which a linear model has
    D: Real  # (ny, nu)
    states: tuple[str, ...]  # names of the rows, and of the columns of A: "q:elbow", "v:elbow", "a:biceps"
    inputs: tuple[str, ...]  # of the columns of B: "torque:elbow"
    parameters: tuple[str, ...]  # of the columns of P: "mass:forearm"
    outputs: tuple[str, ...]  # of the rows of C and D: names of sensors' values
    # (nx, nx + nu + np) slopes on either side, along the columns of A, B and P; without a kink those of these
    forward: Real
    backward: Real
    side: Array  # (nx + nu + np,) 0: no kink; 1 forward, -1 backward: the side of which A, B, P hold the slope
    error: Real  # (nx + nu + np,) the most by which estimates of an entry of the column differ
    active: tuple[str, ...]  # rows and contacts that exert forces in the step, with their states
    # by column with a kink: the rows whose states differ forward, and backward
    kinks: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    dofs: int
    dt: float  # [s]
    method: str  # IMPLICIT or DIFFERENCES
    reason: str  # why differences; empty for IMPLICIT
    differenced: tuple[str, ...]  # columns that are differences all the same, since equations of rows have kinks there

    @property
    def dq_dq(self) -> Real:
        """∂q⁺/∂q (nv, nv)."""
        return self.A[: self.dofs, : self.dofs]

    @property
    def dq_dv(self) -> Real:
        """∂q⁺/∂v (nv, nv) [s]."""
        return self.A[: self.dofs, self.dofs : 2 * self.dofs]

    @property
    def dv_dq(self) -> Real:
        """∂v⁺/∂q (nv, nv) [1/s]."""
        return self.A[self.dofs : 2 * self.dofs, : self.dofs]

    @property
    def dv_dv(self) -> Real:
        """∂v⁺/∂v (nv, nv)."""
        return self.A[self.dofs : 2 * self.dofs, self.dofs : 2 * self.dofs]

    @property
    def dq_du(self) -> Real:
        """∂q⁺/∂u (nv, nu)."""
        return self.B[: self.dofs]

    @property
    def dv_du(self) -> Real:
        """∂v⁺/∂u (nv, nu)."""
        return self.B[self.dofs : 2 * self.dofs]

    @property
    def dq_dp(self) -> Real:
        """∂q⁺/∂p (nv, np)."""
        return self.P[: self.dofs]

    @property
    def dv_dp(self) -> Real:
        """∂v⁺/∂p (nv, np)."""
        return self.P[self.dofs : 2 * self.dofs]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of A, B and P, one after the other, as in `side`, `forward` and `backward`."""
        return self.states + self.inputs + self.parameters

    def __repr__(self) -> str:
        told = f", {len(self.kinks)} one-sided" if self.kinks else ""
        return f"<StepDerivatives: A {self.A.shape}, B {self.B.shape}, P {self.P.shape}{told}>"


def step_derivatives(
    copies: Copies,
    inputs: Sequence[str],
    parameters: Sequence[str],
    *,
    reduced: bool,
    step: float,
    method: str | None = None,
    expected: bool = False,
) -> StepDerivatives:
    """The derivatives of the step that a run would take next.

    Args:
        inputs: names of VALUES, or of their entries: "torque", "torque:*_knee".
        parameters: names of VARIED and PLACED, or one part's: "mass", "mass:forearm".
        step: of differences [rad, m, rad/s, m/s].
        method: IMPLICIT or DIFFERENCES; None: the first where the step follows its equations.
        expected: also by the changes of velocities that the step expects, of which the midpoint integrator makes use.

    Raises:
        UsageError: an unknown input, parameter or method, a step that is not positive, or one that does not follow its
            equations; StoppedError: the step stops.
    """
    if method is not None and method not in METHODS:
        raise UsageError(
            f"derivatives: method {method!r} is not known{nearest(method, METHODS)}; known: {', '.join(METHODS)}"
        )
    if not 0.0 < step < 1e-2:
        raise UsageError(f"derivatives: step is {step}, want a number above 0 and below 0.01")
    plan = copies.plan
    kept, names = _state_columns(plan, reduced=reduced)
    of_inputs = input_columns(plan, inputs, reduced=reduced)
    of_parameters = parameter_columns(plan, parameters)
    of_changes = [Column(EXPECTED, (k,), f"expected:{plan.robot.dofs[k]}") for k in range(plan.robot.nv * expected)]
    columns = [column for column in kept if column is not None] + of_inputs + of_parameters + of_changes
    work = _found(copies, columns, step, method)
    rows = _rows(plan, reduced=reduced)
    there = [column is not None for column in kept]
    whole = np.array(there + [True] * (len(of_inputs) + len(of_parameters) + len(of_changes)), bool)
    slopes = np.zeros((3, len(rows) + len(copies.outputs), len(whole)))
    told = [*rows, *range(2 * plan.robot.nv + len(plan.activation), len(work.slopes[0]))]
    slopes[:, :, whole] = np.stack(work.slopes)[:, told]
    side = np.zeros(len(whole), np.int64)
    side[whole] = work.side
    error = np.zeros(len(whole))
    error[whole] = work.error
    nx, nu = len(names), len(of_inputs)
    told_columns = nx + nu + len(of_parameters)
    slopes, outputs = slopes[:, :nx], slopes[0, nx:]
    return StepDerivatives(
        A=slopes[0, :, :nx],
        B=slopes[0, :, nx : nx + nu],
        P=slopes[0, :, nx + nu : nx + nu + len(of_parameters)],
        E=slopes[0, :, nx + nu + len(of_parameters) :],
        C=outputs[:, :nx],
        D=outputs[:, nx : nx + nu],
        states=names,
        inputs=tuple(column.name for column in of_inputs),
        parameters=tuple(column.name for column in of_parameters),
        forward=slopes[1, :, :told_columns],
        backward=slopes[2, :, :told_columns],
        side=side[:told_columns],
        error=error[:told_columns],
        outputs=copies.outputs,
        active=work.active,
        kinks=work.kinks,
        dofs=len(plan.robot.model.independent_dof) if reduced else plan.robot.nv,
        dt=plan.dt,
        method=work.method,
        reason=work.reason,
        differenced=work.differenced,
    )


# ------------------------------------------------------------------ columns


def _rows(plan: Plan, *, reduced: bool) -> list[int]:
    """The rows of the full state (2 nv + nact) that are told."""
    nv, activations = plan.robot.nv, len(plan.activation)
    dofs = plan.robot.model.independent_dof.tolist() if reduced else [*range(nv)]
    return dofs + [nv + k for k in dofs] + [*range(2 * nv, 2 * nv + activations)]


def _state_columns(plan: Plan, *, reduced: bool) -> tuple[list[Column | None], tuple[str, ...]]:
    """The columns of the state, None for followers, and the names of all."""
    independent = set(plan.robot.model.independent_dof.tolist())
    shown = [k for k in range(plan.robot.nv) if k in independent or not reduced]
    activations = () if plan.equipped is None else plan.equipped.labels.activations
    names, columns = list[str](), list[Column | None]()
    for letter, of in (("q", "qpos"), ("v", "qvel")):
        for k in shown:
            names.append(f"{letter}:{plan.robot.dofs[k]}")
            columns.append(Column(of, (k,), names[-1]) if k in independent else None)
    for k, name in enumerate(activations):
        names.append(f"a:{name}")
        columns.append(Column("activation", (k,), names[-1]))
    return columns, tuple(names)


def input_columns(plan: Plan, inputs: Sequence[str], *, reduced: bool) -> list[Column]:
    """The columns of inputs: "torque", "target:elbow", "torque:*_knee"; a name of VALUES alone is all of its entries,
    but for those of a base. Raises UsageError."""
    if isinstance(inputs, str):
        inputs = (inputs,)
    columns: dict[str, Column] = {}
    model, robot = plan.robot.model, plan.robot
    for asked in inputs:
        name, _, wanted = asked.partition(":")
        if name not in VALUES:
            raise UsageError(f"inputs: {asked!r} is not known{nearest(name, VALUES)}; known: {', '.join(VALUES)}")
        actuated = len(plan.control) - len(plan.pushed.held)
        names = robot.dofs if name != "control" else plan.equipped.labels.controls[:actuated] if plan.equipped else ()
        entries = range(len(names)) if name == "control" or not reduced else model.independent_dof.tolist()
        if wanted:
            found = [k for k in entries if fnmatchcase(names[k], wanted) or names[k] == wanted]
            if not found:
                raise UsageError(f"inputs: {asked!r} is no {name} of this robot{nearest(wanted, names)}")
        else:
            found = [k for k in entries if name == "control" or not is_of_base(model, k)]
        for k in found:
            mobility = plan.inputs["mobility"][k] if name == "torque" else 0.0
            size = 1.0 / (plan.dt * mobility) if mobility > 0.0 else 1.0
            columns[f"{name}:{names[k]}"] = Column(name, (k,), f"{name}:{names[k]}", size)
    return [*columns.values()]


def parameter_columns(plan: Plan, parameters: Sequence[str]) -> list[Column]:
    """The columns of properties: of each part whose value is not 0, or of the one named. Raises UsageError."""
    if isinstance(parameters, str):
        parameters = (parameters,)
    columns = []
    for asked in parameters:
        name, _, part = asked.partition(":")
        known = [*VARIED, *(placed for placed in PLACED if placed in ("centre", "gravity", "ground_height"))]
        if name not in known:
            raise UsageError(f"parameters: {asked!r} is not known{nearest(name, known)}; known: {', '.join(known)}")
        refuse_fixed(plan, [name])
        found = [column for column in _columns_of(plan, name) if not part or _is_of(column.name, asked)]
        if part and not found:
            there = part_labels(plan, name) or ()
            why = f": its value there is 0 [{name}]" if part in there else nearest(part, [*there])
            raise UsageError(f"parameters: {asked!r} has nothing to vary{why}")
        columns += found
    return columns


def _is_of(name: str, asked: str) -> bool:
    return name == asked or (name.startswith(f"{asked}.") and name[len(asked) + 1 :] in _AXES)


def _columns_of(plan: Plan, name: str) -> list[Column]:
    """The columns of one property."""
    labels, axes = part_labels(plan, name), components_of(name)
    values = _values(plan, name)
    columns = []
    for entry in np.ndindex(shape_of(plan, name) or (1,)):
        told = f"{name}:{labels[entry[0]]}" if labels is not None else name
        told += f".{_AXES[entry[-1]]}" if axes else ""
        value = float(values[entry]) if values is not None else 1.0
        if value:
            columns.append(Column(name, entry, told, 1.0, value))
    return columns


def _values(plan: Plan, name: str) -> Array | None:
    """The values by which factors are multiplied; None: the column is by the property itself."""
    model = plan.robot.model
    if name == "mass":
        return model.link_mass
    if name == "joint_friction":
        return np.where(model.friction > 0.0, model.friction, model.friction_coefficient)
    if name in ("drive_stiffness", "drive_damping"):
        return plan.inputs[name]
    return getattr(model, name) if name in ("armature", "damping", "stiffness") else None


# ------------------------------------------------------------------ methods


class _Found(NamedTuple):
    """Derivatives along columns, as in StepDerivatives."""

    slopes: tuple[Real, Real, Real]
    side: Array
    error: Real
    active: tuple[str, ...]
    kinks: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    method: str
    reason: str
    differenced: tuple[str, ...] = ()


def _found(copies: Copies, columns: Sequence[Column], step: float, method: str | None) -> _Found:
    """The derivatives by the implicit function theorem, or else by differences."""
    reason, implicit = "", None
    if method != DIFFERENCES:
        try:
            implicit = _implicit(copies, columns, step)
        except RefusedError as refused:
            reason = str(refused)
    if implicit is None:
        if method == IMPLICIT:
            raise UsageError(f"derivatives: the step does not follow its equations, because of {reason}")
        work = _Differences(copies, columns, step)
        active = work.names.of(work.states)
        return _Found(work.slopes, work.side, work.error, active, work.kinks, DIFFERENCES, reason or "asked for")
    assert copies.equations is not None
    active = RowNames(copies.plan).of(copies.equations.states)
    bent = np.flatnonzero(implicit.bent).tolist()
    if not bent:
        side = np.zeros(len(columns), np.int64)
        return _Found((implicit.slopes,) * 3, side, implicit.error, active, {}, IMPLICIT, "")
    work = _Differences(copies, [columns[n] for n in bent], step)
    slopes = tuple(implicit.slopes.copy() for _ in range(3))
    side, error = np.zeros(len(columns), np.int64), implicit.error
    for place, values in zip(slopes, work.slopes, strict=True):
        place[:, bent] = values
    side[bent], error[bent] = work.side, work.error
    differenced = tuple(columns[n].name for n in bent)
    return _Found((slopes[0], slopes[1], slopes[2]), side, error, active, work.kinks, IMPLICIT, "", differenced)


def _implicit(copies: Copies, columns: Sequence[Column], step: float) -> Slopes:
    """The derivatives by the implicit function theorem, by value. Raises RefusedError."""
    if copies.equations is None:
        raise RefusedError("features that packs lack")
    if reason := reason_against(copies.plan):
        raise RefusedError(reason)
    sizes = step * np.array([column.size for column in columns])
    found = implicit_slopes(copies.equations, Directions(copies, columns), sizes)
    values = np.array([column.value if column.of in VARIED else 1.0 for column in columns])
    return found._replace(slopes=found.slopes / values, error=found.error / values)


# ------------------------------------------------------------------ differences


class _Differences:
    """The slopes (2 nv + nact, columns) of a step: chosen, forward and backward."""

    def __init__(self, copies: Copies, columns: Sequence[Column], step: float) -> None:
        self._copies, self._columns = copies, columns
        self._starts = Directions(copies, columns).starts
        self._sizes = step * np.array([column.size for column in columns])
        every = np.arange(len(columns))
        ends = copies.step(self._starts([None, *every, *every], np.array([0.0, *self._sizes, *-self._sizes])))
        self._end = Ends(*(values[0] for values in ends))
        self.states = copies.told(self._starts([None], np.zeros(1)))[0]
        self.names = RowNames(copies.plan)
        self.side, self.error = np.zeros(len(columns), np.int64), np.zeros(len(columns))
        self.kinks: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._pairs: list[list[Pair]] = []
        changes = self._from_end(ends)
        self.slopes: tuple[Real, Real, Real] = (np.zeros((len(changes), 0)),) * 3
        if columns:
            up, down = changes[:, 1 : len(columns) + 1], changes[:, len(columns) + 1 :]
            self._enlarge(up, down, step)
            self.slopes = self._settled((up / self._sizes).T, (-down / self._sizes).T)

    def _settled(self, plus: Real, minus: Real) -> tuple[Real, Real, Real]:
        """The slopes chosen, forward and backward, by value, of as many pairs of steps as each column needs. plus,
        minus: of the first pairs (columns, 2 nv + nact)."""
        self._pairs = [[pair] for pair in zip(plus, minus, strict=True)]
        largest = max(1.0, *(float(np.abs(values).max(initial=0.0)) for values in self._end))
        rounding = _ROUNDING * largest / self._sizes
        found = first_settled(plus, minus, rounding)
        for level in range(1, _LEVELS):
            open_ones = np.array([n for n, slopes in enumerate(found) if slopes is None], np.int64)
            if not len(open_ones):
                break
            self._look_nearer(open_ones, NEARER**level)
            for n in open_ones:
                last = level == _LEVELS - 1
                found[n] = settled(self._pairs[n], rounding[n] / NEARER**level, last=last)
        slopes = [each for each in found if each is not None]
        values = [column.value if column.of in VARIED else 1.0 for column in self._columns]
        self._choose_sides([n for n, each in enumerate(slopes) if each.kinked])
        self.error = np.array([each.error for each in slopes]) / values
        forward = np.stack([each.forward for each in slopes], axis=1) / values
        backward = np.stack([each.backward for each in slopes], axis=1) / values
        return np.where(self.side == BACKWARD, backward, forward), forward, backward

    def _look_nearer(self, chosen: Array, share: float) -> None:
        """Take a further pair of steps along some columns, by a share of their sizes."""
        sizes = share * self._sizes[chosen]
        up, down = self._changes(chosen, share)
        for n, pair in zip(chosen, zip((up / sizes).T, (-down / sizes).T, strict=True), strict=True):
            self._pairs[n].append(pair)

    def _choose_sides(self, kinked: list[int]) -> None:
        """Set the side of columns with kinks to that along which the rows keep their states, forward where both do or
        neither, and note the rows that change."""
        if not kinked:
            return
        near = [self._sizes[n] * NEARER ** (len(self._pairs[n]) - 1) for n in kinked]
        starts = self._starts([*kinked, *kinked], np.array(near + [-size for size in near]))
        states = self._copies.told(starts)
        for n, up, down in zip(kinked, states[: len(kinked)], states[len(kinked) :], strict=True):
            forward, backward = up ^ self.states, down ^ self.states
            self.kinks[self._columns[n].name] = self.names.of(forward), self.names.of(backward)
            self.side[n] = BACKWARD if forward and not backward else FORWARD

    def _enlarge(self, up: Real, down: Real, step: float) -> None:
        """Take larger steps along inputs and properties of which the first were lost in rounding."""
        weak = []
        for n, column in enumerate(self._columns):
            response = float(np.abs(up[:, n]).max(initial=0.0))
            if column.of in ("qpos", "qvel", "activation") or not 0.0 < response < _RESPONSE * step:
                continue
            self._sizes[n] *= min(_RESPONSE * step / response, _MOST_ENLARGED)
            weak.append(n)
        if weak:
            up[:, weak], down[:, weak] = self._changes(np.array(weak), 1.0)

    def _changes(self, chosen: Array, share: float) -> tuple[Real, Real]:
        """The changes (2 nv + nact + ny, n) of the end of the step, by shares of the sizes of columns forward and
        backward."""
        sizes = share * self._sizes[chosen]
        ends = self._copies.step(self._starts([*chosen, *chosen], np.concatenate([sizes, -sizes])))
        changes = self._from_end(ends)
        return changes[:, : len(chosen)], changes[:, len(chosen) :]

    def _from_end(self, ends: Ends) -> Real:
        others = [getattr(ends, name) - getattr(self._end, name) for name in Ends._fields[1:]]
        return np.concatenate([self._copies.tangent.difference(ends.qpos, self._end.qpos), *others], axis=1).T
