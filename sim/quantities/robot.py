"""Robot, the central class of the Python interface: an articulation with its arrays, labels and quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import Compiled, Labels, Model, compile_model
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import WIDTH, Array
from artsim.sim.foundation.spatial import Real

if TYPE_CHECKING:
    from artsim.sim.equipment.arrays import Equipped
    from artsim.sim.quantities.coordinates import LinkStates
    from artsim.sim.quantities.evaluation import Evaluation


@dataclass(frozen=True)
class Robot:
    """A loaded robot. Labels are names: links "finger_1", dofs "joint_1" or "root.vx"."""

    articulation: Articulation
    compiled: Compiled
    loaded_with: Mapping[str, Any] = field(default_factory=dict)  # RunConfig fields that a run of this robot inherits

    def __repr__(self) -> str:
        return f"<Robot {self.articulation.name!r}: nq {self.nq}, nv {self.nv}, {len(self.links)} links>"

    @classmethod
    def of(cls, articulation: Articulation, *, coupling: str = "auto", gravity: Sequence[float] | None = None) -> Robot:
        """Compile an articulation; see compile_model."""
        return cls(articulation, compile_model(articulation, coupling=coupling, gravity=gravity))

    @property
    def model(self) -> Model:
        """The constant arrays of the engine."""
        return self.compiled.model

    @property
    def labels(self) -> Labels:
        """The names of the entries along the arrays' axes."""
        return self.compiled.labels

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return len(self.labels.coords)

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return len(self.labels.dofs)

    @property
    def links(self) -> tuple[str, ...]:
        """Link names, depth first, merged ones included."""
        return self.labels.links

    @property
    def coords(self) -> tuple[str, ...]:
        """Names of the position coordinates."""
        return self.labels.coords

    @property
    def dofs(self) -> tuple[str, ...]:
        """Names of the degrees of freedom."""
        return self.labels.dofs

    @property
    def independent_dofs(self) -> tuple[str, ...]:
        """Names of the dofs that remain when hard couplings are eliminated."""
        return self.labels.independent_dofs

    @cached_property
    def reference(self) -> Real:
        """Coordinates (nq,) of the pose in which the file describes the robot."""
        return self.compiled.reference

    def with_model(self, changes: Mapping[str, Array]) -> Robot:
        """A copy of the robot with some model arrays replaced; the new arrays are made read-only."""
        frozen = {}
        for name, values in changes.items():
            copy = np.array(values)
            copy.setflags(write=False)
            frozen[name] = copy
        return replace(self, compiled=replace(self.compiled, model=self.model._replace(**frozen)))

    def compute(
        self,
        qpos: ArrayLike,
        qvel: ArrayLike | None = None,
        qacc: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        wrench: ArrayLike | None = None,
        *,
        quantities: Sequence[str] = ("mass_matrix", "gravity", "bias", "jacobian"),
        reduced: bool = False,
        at: str = "com",
        links: Sequence[str] | None = None,
        packed: bool = False,
        threads: int | None = None,
    ) -> dict[str, Array]:
        """Compute rigid-body quantities of one configuration or of a table of configurations.

        Args:
            qpos: (nq,) or (N, nq); with `reduced` only its independent entries are used. Quaternions are normalised.
            qvel, qacc, tau: (nv,) or (N, nv), as many rows as qpos; zero if omitted.
            wrench: (nl, 6) or (N, nl, 6) [N, N m] on each of `links` at the point `at`, in world axes; it also enters
                inverse and forward dynamics.
            quantities: names in sim.quantities.QUANTITIES; "link_pose" stands for link_position and link_quaternion.
            reduced: use independent coordinates, M_r = Gᵀ M G and so on; forces are then projected by Gᵀ.
            at: reference point of Jacobians, velocities and wrenches: a link's centre of mass ("com") or frame origin
                ("origin").
            links: names of the links for link quantities; default: all.
            packed: return the lower triangles of symmetric matrices, by rows: (…, n (n + 1) / 2).
            threads: number of threads, by default all cores that the process may use; results do not depend on it.

        Returns:
            name → (N, …), or (…) for a single configuration. A row whose input is not finite, or whose mass matrix is
            singular, holds NaN; the quantity "status" is 0 for valid rows.

        Raises:
            UsageError: an unknown quantity or link, a wrong shape.
        """
        given = {"qpos": qpos, "qvel": qvel, "qacc": qacc, "tau": tau, "wrench": wrench}
        options = {"reduced": reduced, "at": at, "links": links, "packed": packed}
        wanted = quantities if isinstance(quantities, str) else [name for name in quantities if name != "status"]
        call, results = self._prepare(given, wanted, threads, options)
        call()
        status = results.pop("status")
        for values in results.values():
            values[status != 0] = np.nan
        if "status" in quantities:
            results["status"] = status
        return {name: values[0] if np.ndim(qpos) == 1 else values for name, values in results.items()}

    def to_independent(self, qpos: Array, qvel: Array | None = None, *, tolerance: float = 1e-9) -> tuple[Real, Real]:
        """Independent coordinates and velocities (nu,) from full ones (nq,), (nv,), without followers.

        Raises UsageError naming a follower that violates its coupling by more than the tolerance.
        """
        from artsim.sim.quantities.coordinates import to_independent

        return to_independent(self.compiled, *self._state_given(qpos, qvel), tolerance)

    def to_full(self, y: Array, u: Array | None = None) -> tuple[Real, Real]:
        """Full coordinates (nq,) and velocities (nv,) from independent ones: q = g(y), v = G u."""
        from artsim.sim.quantities.coordinates import independent_coordinates, to_full

        sizes = len(independent_coordinates(self.model)), len(self.model.independent_dof)
        return to_full(self.model, _vector("y", y, sizes[0]), _vector("u", u, sizes[1]))

    def to_maximal(self, qpos: Array, qvel: Array | None = None) -> LinkStates:
        """Pose and twist of every link: position (nl, 3), quaternion (nl, 4), twist (nl, 6) at the link frame's origin.

        Twists are linear, then angular, in world axes.
        """
        from artsim.sim.quantities.coordinates import to_maximal

        return to_maximal(self.model, *self._state_given(qpos, qvel))

    def from_maximal(
        self,
        position: Array,
        quaternion: Array,
        twist: Array | None = None,
        *,
        near: Array | None = None,
        tolerance: float = 1e-6,
    ) -> tuple[Real, Real]:
        """Full coordinates (nq,) and velocities (nv,) from links' poses and twists, as `to_maximal` gives them.

        Args:
            near: (nq,) of several solutions the one nearest to it is taken; default: the file's pose.
            tolerance: largest deviation of each link's pose [m, rad] and twist [m/s, rad/s] from what its joint allows.

        Raises:
            UsageError: the link whose joint does not allow its pose or twist, and by how much.
        """
        from artsim.sim.quantities.coordinates import LinkStates, from_maximal

        nl = len(self.links)
        given = {"position": (position, 3), "quaternion": (quaternion, 4), "twist": (twist, 6)}
        tables = {
            name: np.zeros((nl, width)) if values is None else self._table(name, values, (nl, width))
            for name, (values, width) in given.items()
        }
        start = self.reference if near is None else _vector("near", near, self.nq)
        return from_maximal(self.compiled, LinkStates(**tables), start, tolerance)

    def _state_given(self, qpos: Array, qvel: Array | None) -> tuple[Real, Real]:
        return _vector("qpos", qpos, self.nq), _vector("qvel", qvel, self.nv)

    def bound(
        self,
        qpos: Array,
        qvel: Array | None = None,
        qacc: Array | None = None,
        tau: Array | None = None,
        *,
        quantities: Sequence[str],
        threads: int = 1,
        width: int | None = None,
        **options: Any,
    ) -> Callable[[], None]:
        """Prepare `compute` and return a function that computes the same rows at each call, as benchmarks do.

        `width`: 1 for one robot at a time, WIDTH for packs; default: packs if there is more than one row.
        """
        given = {"qpos": qpos, "qvel": qvel, "qacc": qacc, "tau": tau, "wrench": None}
        return self._prepare(given, quantities, threads, options, width)[0]

    def evaluation(self, quantities: Sequence[str], **options: Any) -> Evaluation:
        """Make the Evaluation behind `compute`, for blocks of rows; options are those of Evaluation."""
        from artsim.sim.quantities.evaluation import Evaluation

        return Evaluation(self.model, self.labels, quantities, equipped=self._energetic, **options)

    @cached_property
    def _energetic(self) -> Equipped | None:
        """The equipment if tendons contribute inertia or a spring is not a linear joint spring, else None."""
        from artsim.sim.equipment.build_passive import has_own_spring

        if not (
            any(
                tendon.armature or tendon.stiffness or any(tendon.stiffness_polynomial)
                for tendon in self.articulation.tendons
            )
            or any(has_own_spring(joint) for joint in self.articulation.joints)
        ):
            return None
        from artsim.sim.equipment.equip import equip

        return equip(self.articulation, self.compiled)

    def _prepare(
        self,
        given: Mapping[str, ArrayLike | None],
        quantities: Sequence[str],
        threads: int | None,
        options: Mapping[str, Any],
        width: int | None = None,
    ) -> tuple[Callable[[], None], dict[str, Array]]:
        """The prepared function, and the arrays of its results, including `status`."""
        from artsim.sim.foundation.apart import available_cores
        from artsim.sim.quantities.evaluation import PIECE

        qpos = _numbers("qpos", given["qpos"])
        given = {**given, "qpos": qpos}
        rows = qpos.shape[0] if qpos.ndim > 1 else 1
        if width is None:
            width = 1 if rows < WIDTH else WIDTH
        if threads is None:
            threads = available_cores() if rows > PIECE else 1
        evaluation = self.evaluation(
            quantities, wrench=given["wrench"] is not None, threads=threads, width=width, **options
        )
        inputs, outputs = evaluation.allocate(rows)
        for name in inputs:
            inputs[name][:rows] = self._table(name, given[name], (rows, *evaluation.shapes[name]))
        for name in given:
            if name not in inputs and given[name] is not None:
                self._table(
                    name, given[name], (rows, len(evaluation.links), 6) if name == "wrench" else (rows, self.nv)
                )
        call = evaluation.bound(inputs, outputs)
        return (lambda: call(rows)), {name: values[:rows] for name, values in outputs.items()}

    def _table(self, name: str, values: ArrayLike | None, shape: tuple[int, ...]) -> Array:
        """An input as a table of this shape; zeros if it was omitted."""
        if values is None:
            return np.zeros(shape)
        table = _numbers(name, values)
        if table.shape != shape and (1, *table.shape) != shape:
            one = f" or {shape[1:]}" if shape[0] == 1 else ""
            raise UsageError(f"{name} has shape {table.shape}, want {shape}{one}")
        return table.reshape(shape)


def _vector(name: str, values: Array | None, size: int) -> Real:
    """Values as an array (size,); zeros if omitted."""
    if values is None:
        return np.zeros(size)
    vector = _numbers(name, values)
    if vector.shape != (size,):
        raise UsageError(f"{name} has shape {vector.shape}, want ({size},)")
    return vector


def _numbers(name: str, values: Any) -> Array:
    """Real numbers as float64."""
    try:
        table = np.asarray(values)
        if table.dtype.kind in "cmM":
            raise TypeError
        return np.asarray(table, float)
    except (TypeError, ValueError):
        raise UsageError(f"{name}: is not a table of numbers") from None
