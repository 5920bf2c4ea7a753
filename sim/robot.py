"""Robot: an articulation with its arrays and labels, and the quantities one can ask of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from artsim.sim.batch import COMPUTE, Batch, Scratch
from artsim.sim.description import Articulation
from artsim.sim.errors import UsageError, nearest
from artsim.sim.jit import bind, disabled
from artsim.sim.model import Compiled, Labels, Model, compile_model
from artsim.sim.records import WIDTH, Array, allocate
from artsim.sim.spatial import Real
from artsim.sim.state import make_state, make_workspace

QUANTITIES = tuple(name for name in Batch._fields if name not in ("options", "qpos", "qvel", "qacc", "tau"))


@dataclass(frozen=True)
class Robot:
    """A loaded robot. Labels are names: links "finger_1", dofs "joint_1" or "root.vx"."""

    articulation: Articulation
    compiled: Compiled
    loaded_with: Mapping[str, Any] = field(default_factory=dict)  # RunConfig fields that a run of it takes over

    @classmethod
    def of(
        cls, articulation: Articulation, *, coupling: str = "exact", gravity: Sequence[float] | None = None
    ) -> Robot:
        """Compile an articulation; see compile_model."""
        return cls(articulation, compile_model(articulation, coupling=coupling, gravity=gravity))

    @property
    def model(self) -> Model:
        """The constant arrays."""
        return self.compiled.model

    @property
    def labels(self) -> Labels:
        """The names of what the arrays' axes count."""
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
        """The dofs left when hard couplings are eliminated."""
        return self.labels.independent_dofs

    @cached_property
    def reference(self) -> Real:
        """Coordinates (nq,) at which the file draws the robot."""
        return self.compiled.reference

    def with_model(self, changes: Mapping[str, Array]) -> Robot:
        """The same robot with some model arrays replaced (made read-only)."""
        frozen = {}
        for name, values in changes.items():
            copy = np.array(values)
            copy.setflags(write=False)
            frozen[name] = copy
        return replace(self, compiled=replace(self.compiled, model=self.model._replace(**frozen)))

    def compute(
        self,
        qpos: Array,
        qvel: Array | None = None,
        qacc: Array | None = None,
        tau: Array | None = None,
        *,
        quantities: Sequence[str] = ("mass_matrix", "gravity", "bias", "jacobian"),
        reduced: bool = False,
        at: str = "com",
    ) -> dict[str, Array]:
        """Rigid-body quantities of one configuration, or of a table of them.

        Args:
            qpos: (nq,) or (N, nq); with `reduced` its independent entries are used.
            qvel, qacc, tau: (nv,) or (N, nv); zero where left out.
            quantities: names of QUANTITIES.
            reduced: in independent coordinates, M_r = Gᵀ M G and so on; forces are then taken through Gᵀ.
            at: Jacobians at each link's centre of mass ("com") or frame origin ("origin").

        Returns:
            name → (N, …), or (…) for a single configuration.

        Raises:
            UsageError: an unknown quantity, a wrong shape.
        """
        inputs = {"qpos": qpos, "qvel": qvel, "qacc": qacc, "tau": tau}
        call, results = self._prepare(inputs, quantities, reduced, at)
        call()
        return {name: values[0] if np.ndim(qpos) == 1 else values for name, values in results.items()}

    def bound(
        self,
        qpos: Array,
        qvel: Array | None = None,
        qacc: Array | None = None,
        tau: Array | None = None,
        *,
        quantities: Sequence[str],
        reduced: bool = False,
        at: str = "com",
    ) -> Callable[[], None]:
        """`compute` without its preparation: a call that works the same rows again (benchmarks time this)."""
        inputs = {"qpos": qpos, "qvel": qvel, "qacc": qacc, "tau": tau}
        return self._prepare(inputs, quantities, reduced, at)[0]

    def _prepare(
        self, given: Mapping[str, Array | None], quantities: Sequence[str], reduced: bool, at: str
    ) -> tuple[Callable[[], None], dict[str, Array]]:
        """The bound call, and where its results will be."""
        single = np.ndim(given["qpos"]) == 1  # type: ignore[arg-type]  # qpos is never left out
        inputs = self._inputs(given)
        for name in quantities:
            if name not in QUANTITIES:
                raise UsageError(f"quantity {name!r} is not known{nearest(name, QUANTITIES)}")
        if at not in ("com", "origin"):
            raise UsageError(f"at={at!r}: want 'com' or 'origin'")
        rows = len(inputs["qpos"])
        width = 1 if single or disabled() or rows < WIDTH else WIDTH
        padded = -(-rows // width) * width
        batch = self._batch(padded, quantities, reduced)
        for name, values in inputs.items():
            target = getattr(batch, name)
            target[:rows] = values
            target[rows:] = values[-1:]  # a pack has no scalar tail: its last rows repeat
        batch.options[:] = (at == "com", reduced)
        model = self.model
        shapes = {"columns": (6, self.nv), "com": (3,), "momentum": (6,), "reduced": (len(model.independent_dof),)}
        scratch = allocate(Scratch, {**dict.fromkeys(Scratch._fields, (self.nv,)), **shapes}, width)
        call = bind(COMPUTE, width, model, make_state(model, width), make_workspace(model, width), scratch, batch)
        return call, {name: getattr(batch, name)[:rows] for name in quantities}

    def _inputs(self, given: Mapping[str, Array | None]) -> dict[str, Array]:
        rows = 1 if given["qpos"] is None else np.atleast_2d(given["qpos"]).shape[0]
        inputs = {}
        for name, values in given.items():
            width = self.nq if name == "qpos" else self.nv
            if values is None:
                inputs[name] = np.zeros((rows, width))
                continue
            table = np.atleast_2d(np.asarray(values, float))
            if table.shape != (rows, width):
                raise UsageError(f"{name} has shape {np.shape(values)}, want ({rows}, {width}) or ({width},)")
            inputs[name] = table
        return inputs

    def _batch(self, rows: int, quantities: Sequence[str], reduced: bool) -> Batch:
        nq, nv, nl = self.nq, self.nv, len(self.links)
        n = len(self.independent_dofs) if reduced else nv
        per_row: dict[str, tuple[int, ...]] = {
            "qpos": (nq,),
            "qvel": (nv,),
            "qacc": (nv,),
            "tau": (nv,),
            "link_position": (nl, 3),
            "link_quaternion": (nl, 4),
            "jacobian": (nl, 6, n),
            "com": (3,),
            "centroidal_momentum_matrix": (6, nv),
            "momentum": (6,),
            "mass_matrix": (n, n),
        }
        wanted = {"qpos", "qvel", "qacc", "tau", *quantities}
        shapes = {name: (rows if name in wanted else 0, *per_row.get(name, (n,))) for name in Batch._fields}
        batch: Batch = allocate(Batch, {**shapes, "options": (2,)})
        return batch
