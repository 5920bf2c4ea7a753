"""Evaluates quantities over tables of configurations: blocks of rows, packs of 8, threads over pieces of a block.

Neither rows nor lanes of a pack depend on each other, and the last pack is padded. The bytes of the results therefore
depend neither on the block size nor on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from artsim.sim.articulation.model import Labels, Model
from artsim.sim.articulation.slopes import make_slopes
from artsim.sim.articulation.state import RobotBundle, make_joints, make_state, make_workspace
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.jit import Entry, bind_movable, disabled, point_at
from artsim.sim.foundation.pieces import compute_in_pieces
from artsim.sim.foundation.records import WIDTH, Array, Kind, aligned_zeros, allocate, kinds, zeros
from artsim.sim.quantities.catalogue import (
    DERIVATIVES,
    INPUTS,
    JOINT_FORCES,
    QUANTITIES,
    REDUCED_DIMS,
    SYMMETRIC,
    WITH_INERTIA,
    WITH_WRENCH,
    dims_of,
    needed_inputs,
    resolve,
)
from artsim.sim.quantities.compute_records import (
    COMPUTE,
    DERIVATIVE_ROWS,
    Batch,
    Scratch,
    Task,
    chains,
    matrix_entries,
    scratch_shapes,
    slope_entries,
)

if TYPE_CHECKING:
    from artsim.sim.equipment.arrays import Equipped
    from artsim.sim.quantities.pose_constraints import PoseConstraints
    from artsim.sim.quantities.tendon_inertia import TendonInertia

P = ParamSpec("P")
_MAX_THREADS = 1024
_FIXED = {"xyz": 3, "quat": 4, "twist": 6, "wrench": 6}


class Evaluation:
    """The quantities to compute for a robot's configurations, checked and ready to be evaluated.

    Attributes:
        quantities: names, groups expanded.
        inputs: the inputs they need; also `wrench` if it is given.
        dims: per quantity the dimensions of one row.
        shapes: per quantity and input the shape of one row.
        links: the links of link quantities.
        constraints: names of the constraint rows; empty unless quantities of constraints are asked for.
    """

    def __init__(
        self,
        model: Model,
        labels: Labels,
        quantities: Sequence[str],
        *,
        reduced: bool = False,
        at: str = "com",
        links: Sequence[str] | None = None,
        packed: bool = False,
        wrench: bool = False,
        threads: int = 1,
        width: int = WIDTH,
        equipped: Equipped | None = None,
        constraints: PoseConstraints | None = None,
        tendon_inertia: Array | None = None,
    ) -> None:
        """Check the request. `equipped` is given for a robot whose tendons have armature or springs, `constraints` for
        quantities of constraints, `tendon_inertia` (nv, nv) for derivatives of its dynamics if it has any.

        Raises UsageError: an unknown quantity, link or point; a width other than 1 and WIDTH.
        """
        if at not in ("com", "origin"):
            raise UsageError(f"at={at!r}: want 'com' or 'origin'")
        if width not in (1, WIDTH):
            raise UsageError(f"width={width!r}: want 1 or {WIDTH}")
        self.quantities = resolve(quantities)
        needed = needed_inputs(self.quantities)
        wrench = wrench and not WITH_WRENCH.isdisjoint(self.quantities)
        self.inputs = tuple(name for name in INPUTS if name in needed or (name == "wrench" and wrench))
        if isinstance(links, str):
            raise UsageError(f"links: want a list of names, not the text {links!r}")
        self.links = tuple(labels.links if links is None else links)
        for name in self.links:
            if name not in labels.links:
                raise UsageError(f"link {name!r} does not exist{nearest(name, labels.links)}")
        self.dims = {name: dims_of(name, reduced=reduced, packed=packed) for name in self.quantities}
        self.constraints = () if constraints is None else constraints.names
        self.sizes = _sizes(labels, len(self.links), len(self.constraints))
        self.shapes = {
            name: tuple(self.sizes[dim] for dim in dims)
            for name, dims in ({name: INPUTS[name] for name in self.inputs} | self.dims).items()
        }
        self.width = 1 if disabled() else width
        self.threads = min(max(1, threads), _MAX_THREADS)
        self._model = model
        self._options = {"at_com": at == "com", "reduced": reduced}
        self._packed = packed
        self._tendon_inertia = tendon_inertia
        self._differentiated = not DERIVATIVES.isdisjoint(self.quantities)
        self.adders: list[TendonInertia | PoseConstraints] = []
        if equipped is not None and not (WITH_INERTIA | {"potential_energy"}).isdisjoint(self.quantities):
            from artsim.sim.quantities.tendon_inertia import TendonInertia  # few robots need it

            wrenched = "wrench" in self.inputs
            self.adders.append(TendonInertia(model, equipped, self.quantities, reduced=reduced, wrench=wrenched))
        if constraints is not None:
            self.adders.append(constraints)
        self._link_indices = [labels.links.index(name) for name in self.links]

    @property
    def entries(self) -> list[tuple[Entry, int]]:
        """The kernels that it needs, with their widths."""
        wide = [COMPUTE, DERIVATIVE_ROWS] if self._differentiated else [COMPUTE]
        return [*((entry, self.width) for entry in wide), *((adder.entry, 1) for adder in self.adders)]

    def allocate(self, rows: int) -> tuple[dict[str, Array], dict[str, Array]]:
        """Allocate zeroed inputs and outputs (including `status`) for `rows` rows, rounded up to whole packs."""
        padded = -(-rows // self.width) * self.width
        inputs = {name: np.zeros((padded, *self.shapes[name])) for name in self.inputs}
        outputs = {name: aligned_zeros((padded, *self.shapes[name])) for name in self.quantities}
        return inputs, outputs | {"status": np.zeros(padded, np.int64)}

    def bound(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> Callable[[int], None]:
        """Make a function that computes the first n rows of these arrays at each call.

        The arrays must be C-contiguous float64 (`status` int64) and hold whole packs, as `allocate` makes them. The
        rows that fill up the last pack are overwritten with copies of row n - 1.

        Raises:
            UsageError: an array is missing or of another shape; from the call: more rows than the arrays hold.
        """
        capacity = self._capacity(inputs, outputs)
        workers = Workers(self, self.threads)
        arrays = {**{name: inputs[name] for name in self.inputs}, **outputs}
        workers.point_at(arrays, capacity)
        given = [inputs[name] for name in self.inputs]

        def call(rows: int, keep: Any = arrays) -> None:  # the arrays live as long as the call
            padded = -(-rows // self.width) * self.width
            if not 0 <= padded <= capacity:
                raise UsageError(f"{rows} rows are asked for, the arrays hold {capacity}")
            if padded > rows:
                for values in given:
                    values[rows:padded] = values[rows - 1 : rows]
            workers.run(padded)

        return call

    def _capacity(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> int:
        """The number of rows of these arrays, whose shapes are checked here because the kernel does not check them."""
        arrays = {**inputs, **outputs}
        shapes: dict[str, tuple[int, ...]] = {**self.shapes, "status": ()}
        rows = len(arrays.get("status", ()))
        for name, shape in shapes.items():
            if name not in arrays or arrays[name].shape != (rows, *shape) or rows % self.width:
                found = arrays[name].shape if name in arrays else "none"
                raise UsageError(f"{name}: its array's shape is {found}, want N rows of {shape}, N whole packs")
        return rows

    def needed(self, rows: int) -> dict[str, Array]:
        """Arrays of the quantities that are computed for the sake of others."""
        names = {name for adder in self.adders for name in adder.needed}
        dims = {name: dims_of(name, reduced=bool(self._options["reduced"]), packed=self._packed) for name in names}
        return {name: aligned_zeros([rows, *(self.sizes[dim] for dim in dims[name])]) for name in names}

    def bind(self) -> tuple[Array, Callable[[], None], Callable[[str, Array], None]]:
        """The rows of a worker, the function that computes them, and the function that replaces an array."""
        rows, records = self._records()
        call, put = bind_movable(COMPUTE, self.width, *records)
        if self._differentiated:
            robot, _, *rest = records
            slopes = make_slopes(self._model, self.width)
            more, put_more = bind_movable(DERIVATIVE_ROWS, self.width, robot, slopes, *rest)
            call, put = _both(call, more), _both(put, put_more)
        return rows, call, put

    def connect(self, pointers: Array, arrays: Mapping[str, Array]) -> object:
        """Have kernels compute all rows of these arrays, which are as `allocate` makes them, by `pointers` (2,), while
        the returned object is kept. Not for derivatives, quantities of constraints or of tendons' inertia."""
        rows, (*scratch, batch) = self._records()
        rows[:] = 0, len(arrays["status"])
        return point_at(COMPUTE, self.width, pointers, *scratch, batch._replace(**arrays))

    def _records(self) -> tuple[Array, tuple[Any, ...]]:
        """The rows of a worker, and the records of its kernel, of which the last one has the arrays."""
        model, width = self._model, self.width
        rows = np.zeros(2, np.int64)
        reduced = self._options["reduced"]
        parent = model.independent_parent if reduced else model.dof_parent
        run = model.independent_run if reduced else model.dof_run
        inertia = self._tendon_inertia
        dense = inertia is not None  # tendons tie dofs of any chains
        placeless = JOINT_FORCES | DERIVATIVES  # whose kernel places the bodies itself
        task = Task(
            rows=rows,
            links=np.array(self._link_indices, np.int64),
            chains=chains(model),
            mass_entries=matrix_entries(parent, len(parent), self._packed),
            inverse_entries=matrix_entries(None, len(parent), self._packed),
            slope_entries=slope_entries(parent),
            parent=np.arange(-1, len(parent) - 1) if dense else parent.copy(),
            run=np.zeros(len(run), np.int64) if dense else run.copy(),
            tendon_inertia=np.zeros((0, len(model.dof_body))) if inertia is None else inertia,
            places=np.array([not placeless.issuperset(self.quantities) or "wrench" in self.inputs], np.int64),
            **{name: np.array([value], np.int64) for name, value in self._options.items()},
        )
        nb, nv, nu = len(model.body_parent), self.sizes["dof"], self.sizes["independent_dof"]
        shapes = scratch_shapes(nb, nv, nu, len(self.links), self._options["reduced"], width)
        scratch = allocate(Scratch, shapes, width)
        robot = RobotBundle(model, make_state(model, width), make_workspace(model, width))
        batch = Batch(**{name: zeros((0, *self._empty_shape(name, kind)), kind) for name, kind in kinds(Batch).items()})
        return rows, (robot, make_joints(model, width), scratch, task, batch)

    def _empty_shape(self, name: str, kind: Kind) -> tuple[int, ...]:
        dims = INPUTS[name] if name in INPUTS else QUANTITIES[name].dims if name in QUANTITIES else ()
        return tuple(self.sizes[dim] for dim in dims) if len(dims) + 1 == kind.ndim else (0,) * (kind.ndim - 1)


class Workers:
    """The scratch of threads that compute rows of the same arrays, which `point_at` names before the rows are computed.

    Pointers at arrays do not keep them alive. Two threads never call one Workers at once.
    """

    def __init__(self, evaluation: Evaluation, threads: int) -> None:
        self._evaluation = evaluation
        self._arrays: dict[str, Array] = {}
        bound = [evaluation.bind() for _ in range(threads)]
        self._workers = [(rows, call) for rows, call, _ in bound]
        self._put = [put for _, _, put in bound]
        self._taken = {name for adder in evaluation.adders for name in adder.taken}
        for adder in evaluation.adders:
            self._workers = [_then(worker, adder.adder(worker[0], self._arrays)) for worker in self._workers]

    def point_at(self, arrays: Mapping[str, Array], rows: int) -> None:
        """Compute from and into these arrays of so many rows: all inputs, all quantities, `status`."""
        if self._evaluation.adders:
            arrays = {**arrays, **self._evaluation.needed(rows)}
            self._arrays.update(arrays)
        for name, values in arrays.items():
            if name in self._taken:
                continue
            if values.ndim == 2 and name in SYMMETRIC:  # packed triangles
                values = values.reshape(len(values), 1, values.shape[1])
            for put in self._put:
                put(name, values)

    def release(self) -> None:
        """Forget the arrays, which may then go."""
        self._arrays.clear()

    def run(self, rows: int) -> None:
        """Compute the first `rows` rows, a multiple of the width, in pieces that workers take as they become free."""
        compute_in_pieces(self._workers, rows)


def _sizes(labels: Labels, links: int, constraints: int) -> dict[str, int]:
    """Extents of all dimensions."""
    nv, nu = len(labels.dofs), len(labels.independent_dofs)
    return {
        **_FIXED,
        "coord": len(labels.coords),
        "link": links,
        **dict.fromkeys(REDUCED_DIMS, nv),
        **dict.fromkeys(REDUCED_DIMS.values(), nu),
        "dof_pair": nv * (nv + 1) // 2,
        "independent_pair": nu * (nu + 1) // 2,
        **dict.fromkeys(("constraint", "constraint2"), constraints),
        "constraint_pair": constraints * (constraints + 1) // 2,
    }


def _then(worker: tuple[Array, Callable[[], None]], more: Callable[[], None]) -> tuple[Array, Callable[[], None]]:
    """A worker that calls `more` after each of its calls."""
    rows, call = worker
    return rows, _both(call, more)


def _both(first: Callable[P, None], second: Callable[P, None]) -> Callable[P, None]:
    """A function that calls one, then the other."""

    def call(*args: P.args, **options: P.kwargs) -> None:
        first(*args, **options)
        second(*args, **options)

    return call
