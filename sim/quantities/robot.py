"""Robot, the central class of the Python interface: an articulation with its arrays, labels and quantities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.model import Compiled, Labels, Model
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array
from artsim.sim.foundation.rotations import Real
from artsim.sim.quantities.catalogue import OF_CONSTRAINTS, OF_DYNAMICS, resolve

if TYPE_CHECKING:
    from artsim.sim.equipment.arrays import Equipped
    from artsim.sim.ik.clear_search import Clear
    from artsim.sim.ik.solver import PoseSearch
    from artsim.sim.ik.wanted_poses import Target
    from artsim.sim.quantities.coordinates import LinkStates
    from artsim.sim.quantities.evaluation import Evaluation
    from artsim.sim.quantities.evaluator import Evaluator, KeptScratch
    from artsim.sim.quantities.inverse_dynamics import ContactPoint, InverseDynamics
    from artsim.sim.quantities.pose_constraints import PoseConstraints
    from artsim.sim.quantities.trajectory import Trajectory


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

    @cached_property
    def plans(self) -> list[tuple[Any, Any]]:
        """The settings and plans of the last runs, which io/runs/prepare.py keeps for further ones."""
        return []

    @cached_property
    def on_bases(self) -> dict[str, Robot]:
        """This robot with other bases, which io/runs/prepare.py keeps with their plans."""
        return {}

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
        out: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """Compute rigid-body quantities of one configuration or of a table of configurations.

        Args:
            qpos: (nq,) or (N, nq); with `reduced` only its independent entries are used. Quaternions are normalised.
            qvel, qacc, tau: (nv,) or (N, nv), as many rows as qpos; zero if omitted.
            wrench: (nl, 6) or (N, nl, 6) [N, N m] on each of `links` at the point `at`, in world axes; it also enters
                inverse and forward dynamics and their derivatives.
            quantities: names in sim.quantities.QUANTITIES; "link_pose" stands for link_position and link_quaternion,
                "inverse_dynamics_derivatives" for inverse_dynamics_dq and inverse_dynamics_dv.
            reduced: use independent coordinates, M_r = Gᵀ M G and so on; forces are then projected by Gᵀ.
            at: reference point of Jacobians, velocities and wrenches: a link's centre of mass ("com") or frame origin
                ("origin").
            links: names of the links for link quantities; default: all.
            packed: return the lower triangles of symmetric matrices, by rows: (…, n (n + 1) / 2).
            threads: number of threads, by default all cores that the process may use; results do not depend on it.
            out: arrays for results, by name: float64 (`status` int64) of their shapes, C-contiguous. A quantity without
                one gets a new array.

        Scratch is kept for later calls with these arguments; threads may call at once.

        Returns:
            name → (N, …), or (…) for a single configuration. A row whose input is not finite, or whose mass matrix is
            singular, holds NaN; the quantity "status" is 0 for valid rows. `constraints` names the rows of
            constraint_jacobian (…, m, n) and delassus (…, m, m).

        Raises:
            UsageError: an unknown quantity or link, a wrong shape, an array in `out` that cannot take its quantity.
        """
        given = {"qpos": qpos, "qvel": qvel, "qacc": qacc, "tau": tau, "wrench": wrench}
        names = quantities if isinstance(quantities, str) else tuple(quantities)
        chosen = links if links is None or isinstance(links, str) else tuple(links)
        request = (names, reduced, at, chosen, packed, wrench is not None)
        evaluator = self._evaluators.take(request) or self._evaluator(*request)
        results = evaluator(given, out, threads)
        self._evaluators.give_back(request, evaluator)
        return results

    def inverse_dynamics(
        self,
        qpos: ArrayLike,
        qvel: ArrayLike | None = None,
        qacc: ArrayLike | None = None,
        *,
        actuated: Sequence[str] | None = None,
        contacts: Sequence[ContactPoint | str] = (),
        friction: float | None = None,
        check: bool = True,
    ) -> InverseDynamics:
        """Torques of actuated joints, and forces of constraints and contacts, that produce a motion.

        Args:
            qpos, qvel, qacc: (nq,), (nv,), (nv,), or (N, …); velocities and accelerations are 0 if omitted, those
                of followers follow.
            actuated: names of dofs; default: all independent ones.
            contacts: links, or ContactPoint(link, point, normal, friction), on which the world exerts a force.
            friction: coefficient of contacts without their own; None: their forces may have any direction.
            check: refuse motions that open loops.

        Forces that the motion determines are exact; of others the torques of least norm are taken, then the forces of
        least norm. Springs, dampers and friction of joints are no part of it.

        Returns:
            torque (…, actuated), constraint (…, constraints), contact (…, contacts, 3), and their names.

        Raises:
            UsageError: an unknown name; a motion that opens a loop, that these joints and contacts cannot produce, or
            not within the friction cones.
        """
        from artsim.sim.quantities.inverse_dynamics import inverse_dynamics

        return inverse_dynamics(self, qpos, qvel, qacc, actuated, contacts, friction, check)

    @property
    def has_constraints(self) -> bool:
        """True if constraint rows are left in independent coordinates: loops, equalities of tendons, couplings that
        elimination leaves."""
        return len(self._pose_constraints(reduced=True).names) > 0

    @cached_property
    def _evaluators(self) -> KeptScratch[Evaluator]:
        from artsim.sim.quantities.evaluator import KeptScratch

        return KeptScratch()

    def _evaluator(
        self,
        names: str | tuple[str, ...],
        reduced: bool,
        at: str,
        links: str | tuple[str, ...] | None,
        packed: bool,
        wrench: bool,
    ) -> Evaluator:
        """A new Evaluator; raises UsageError as `compute`."""
        from artsim.sim.quantities.evaluator import Evaluator

        wanted = names if isinstance(names, str) else tuple(name for name in names if name != "status")
        options = {"reduced": reduced, "at": at, "links": links, "packed": packed, "wrench": wrench}
        return Evaluator(lambda width: self.evaluation(wanted, width=width, **options), "status" in names)

    def ik(
        self,
        targets: str | Target | Sequence[Target],
        position: ArrayLike | None = None,
        quaternion: ArrayLike | None = None,
        *,
        start: ArrayLike | None = None,
        move: Sequence[str] | None = None,
        posture: Mapping[str, float] | None = None,
        tolerance: Sequence[float] = (1e-6, 1e-6),
        attempts: int = 100,
        iterations: int = 50,
        seed: int = 0,
        path: bool = False,
        dt: float | None = None,
        clear: Clear | None = None,
        threads: int | None = None,
    ) -> dict[str, Array]:
        """Find configurations in which links have given poses: inverse kinematics, of one pose or of a table of poses.

        Joint limits are kept, those of followers too; loops and couplings hold at every result (1e-10). A row whose
        targets cannot be reached gives the nearest configuration that was found, and how far it is away.

        Args:
            targets: the name of a link, whose `position` and `quaternion` follow; or artsim.Target, or several.
            position: (3,) or (N, 3) of the link's frame in the world [m]; None: any.
            quaternion: (4,) or (N, 4) of its rotation (w, x, y, z), of unit length; None: any.
            start: (nq,) or (N, nq), from which the search begins; default: the file's pose. Joints that the targets do
                not need stay there, and so does what the targets leave open of the others, nearly.
            move: names of the joints that may move; default: all that move a target, or a loop with them.
            posture: coordinates by name that are wished for where the targets leave a choice.
            tolerance: of positions [m] and of rotations [rad].
            attempts: number of starts for each row: the given one, then configurations drawn within the limits.
            iterations: largest number of steps from each.
            seed: of the draws.
            path: rows follow each other in time: each starts where the one before it ended.
            dt: time between a row's start and the row [s]: joints go no farther than their velocity limits allow.
            clear: artsim.Clearance(robot, ground=…, self_collide=…): other starts are tried where shapes are inside
                each other; `depth` tells of what is left [m].
            threads: number of threads, by default all cores that the process may use; results do not depend on it.

        Returns:
            name → (N, …), or (…) for a single pose: `qpos` (…, nq); `status`: 0 reached, 1 not reached, 2 not reached
            with a loop or coupling open; `position_error` [m], `rotation_error` [rad] and `constraint_error` [m or
            rad], the largest of each row, where asked for; `iterations`, `attempts`; of a path the `jump`, the largest
            change of a coordinate since the row before.

        Raises:
            UsageError: an unknown link or joint, a wrong shape, a number that is not finite, a quaternion whose length
                is not 1, a joint whose limits cannot be kept (balls).
        """
        from artsim.sim.ik.wanted_poses import target_list
        from artsim.sim.quantities.reach import find_poses, pose_search

        listed = target_list(targets, position, quaternion)
        options: dict[str, Any] = {"move": move, "posture": posture, "tolerance": tolerance, "attempts": attempts}
        options |= {"iterations": iterations, "seed": seed, "path": path, "dt": dt}
        request = repr([(t.link, t.frame, t.places, t.turns, t.look_at is None, t.axis) for t in listed])
        request += repr([(t.weight, t.rotation_weight) for t in listed]) + repr(options)
        search = self._searches.take(request)
        if search is None:
            search = pose_search(self.articulation, self.compiled, self.equipped, listed, **options)
        results = find_poses(self.compiled, search, listed, start, threads, clear)
        self._searches.give_back(request, search)
        return results

    def trajectory(
        self,
        points: ArrayLike,
        *,
        link: str | None = None,
        quaternion: ArrayLike | None = None,
        start: ArrayLike | None = None,
        from_start: bool = False,
        lines: bool = False,
        blend: float = 0.0,
        max_velocity: Mapping[str, float] | float | None = None,
        max_acceleration: Mapping[str, float] | float | None = None,
        max_torque: Mapping[str, float] | float | None = None,
        max_jerk: Mapping[str, float] | float | None = None,
        timing: str = "topp-ra",
        dt: float = 0.002,
    ) -> Trajectory:
        """A motion from rest to rest through way points, as fast as limits of velocity, acceleration and force allow.

        Args:
            points: (k, nq) configurations, or (k, 3) positions of the origin of `link` [m].
            quaternion: (k, 4) or (4,) rotations of the link (w, x, y, z); None: any.
            start: (nq,) coordinates of joints that do not move, and from which configurations of a link are looked for.
            from_start: begin there, and not at the first of the points.
            lines: straight lines of the joints, or of the link, which stop at each corner, in place of a smooth curve.
            blend: length [m, rad] before and behind a corner within which it is rounded, and passed without a stop.
            max_velocity, max_acceleration, max_torque: limits of joints by name, or one of all that follow no other;
                default: the file's velocities and efforts.
            max_jerk: limits of jerk, for Ruckig.
            timing: topp-ra, the fastest motion along the path; or ruckig, from point to point, at rest at each.
            dt: time from row to row [s].

        Forces are those of motors against inertia, gravity, springs, dampers and friction. Followers follow exactly,
        and their limits hold, too.

        Raises:
            UsageError: an unknown name, a way point beyond its limits, a robot with loops or a floating base.
            StoppedError: a pose or a line out of reach, a joint too weak to hold the robot's weight.
        """
        from artsim.sim.quantities.trajectory import trajectory

        options: Any = {"from_start": from_start, "lines": lines, "blend": blend, "timing": timing, "dt": dt}
        limits = {"velocity": max_velocity, "acceleration": max_acceleration, "torque": max_torque, "jerk": max_jerk}
        return trajectory(self, points, link, quaternion, start, limits, **options)

    @cached_property
    def _searches(self) -> KeptScratch[PoseSearch]:
        from artsim.sim.quantities.evaluator import KeptScratch

        return KeptScratch()

    @cached_property
    def equipped(self) -> Equipped | None:
        """What the robot carries beside its tree: tendons, actuators, loops, sensors; None: nothing."""
        from artsim.sim.equipment.equip import equip

        return equip(self.articulation, self.compiled)

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
            tolerance: largest deviation of a link's pose [m, rad] and twist [m/s, rad/s] from those its joint allows.

        Raises:
            UsageError: the link whose joint does not allow its pose or twist, and the deviation.
        """
        from artsim.sim.quantities.coordinates import LinkStates, from_maximal
        from artsim.sim.quantities.evaluator import table_of

        nl = len(self.links)
        given = {"position": (position, 3), "quaternion": (quaternion, 4), "twist": (twist, 6)}
        tables = {
            name: np.zeros((nl, width)) if values is None else table_of(name, values, (nl, width))
            for name, (values, width) in given.items()
        }
        start = self.reference if near is None else _vector("near", near, self.nq)
        return from_maximal(self.compiled, LinkStates(**tables), start, tolerance)

    def _state_given(self, qpos: Array, qvel: Array | None) -> tuple[Real, Real]:
        return _vector("qpos", qpos, self.nq), _vector("qvel", qvel, self.nv)

    def evaluation(self, quantities: Sequence[str], **options: Any) -> Evaluation:
        """Make the Evaluation behind `compute`, for blocks of rows; options are those of Evaluation."""
        from artsim.sim.quantities.evaluation import Evaluation

        constraints = None
        if not OF_CONSTRAINTS.isdisjoint(quantities):
            constraints = self._pose_constraints(reduced=bool(options.get("reduced")))
            constraints.refuse_none(self.articulation.name)
        inertia = None if OF_DYNAMICS.isdisjoint(resolve(quantities)) else self._tendon_inertia
        return Evaluation(
            self.model,
            self.labels,
            quantities,
            equipped=self._energetic,
            constraints=constraints,
            tendon_inertia=inertia,
            **options,
        )

    def constraints(self, *, reduced: bool = False) -> tuple[str, ...]:
        """Names of the constraint rows of `constraint_jacobian` and `delassus`: `coupling:finger_2`, `loop:crank.x`."""
        return self._pose_constraints(reduced=reduced).names

    def _pose_constraints(self, *, reduced: bool) -> PoseConstraints:
        from artsim.sim.quantities.pose_constraints import PoseConstraints

        found = self.articulation
        equipped = None
        if (
            found.tendon_couplings
            or any(loop.active for loop in found.loops)
            or any(tendon.armature for tendon in found.tendons)
        ):
            equipped = self.equipped
        return PoseConstraints(self.articulation, self.compiled, equipped, reduced=reduced)

    @cached_property
    def _tendon_inertia(self) -> Array | None:
        """Inertia (nv, nv) of fixed tendons, constant; None: no tendon has armature.

        Raises UsageError naming a tendon whose moment arms change, of which there are no derivatives.
        """
        from artsim.sim.articulation.regularity import fixed_moments

        inert = [tendon for tendon in self.articulation.tendons if tendon.armature > 0]
        for tendon in inert:
            if tendon.kind != "fixed":
                raise UsageError(
                    f"tendon {tendon.name!r} has armature and a path through space: derivatives of dynamics are those "
                    f"of joints and of fixed tendons"
                )
        J = fixed_moments(self.compiled, inert)
        return J.T @ J if inert else None

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
        return self.equipped


def _vector(name: str, values: Array | None, size: int) -> Real:
    """Values as an array (size,); zeros if omitted."""
    if values is None:
        return np.zeros(size)
    from artsim.sim.quantities.evaluator import numbers

    vector = numbers(name, values)
    if vector.shape != (size,):
        raise UsageError(f"{name} has shape {vector.shape}, want ({size},)")
    return vector
