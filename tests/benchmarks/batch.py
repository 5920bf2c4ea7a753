"""`compute` beside Pinocchio's C++ loop, in one process: `python tests/benchmarks/batch.py --models DIR`.

DIR holds ur5.urdf, iiwa.urdf, go2.urdf, talos.urdf, talosfull.urdf, shadow.xml (what is not there is skipped). Rows in
memory to rows in memory, row-major on both sides. The peer, pinocchio_loop.cpp, is compiled once with g++ -O3
-march=native against the headers of the wheels `pin` and `cmeel-eigen`, kept in the user's cache folder and called in
this process; where Pinocchio has several functions for a quantity, the fastest one is taken. Values are compared
first.

One thread: CPU time of the thread. 1 → 2 threads: wall time, over more rows. All are timed in turns, and the first
round, which faults the pages in, does not count. Mass matrices and Jacobians are written to more memory than caches
hold, and set beside what one core can write at all, timed in the same turns. Run it on an idle machine: its load is
printed, and minima stand beside medians.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artsim.loaders.load import load_articulation
from artsim.sim.foundation.records import WIDTH
from artsim.sim.quantities.catalogue import QUANTITIES
from artsim.sim.quantities.robot import Robot

Array = np.ndarray[Any, np.dtype[np.float64]]
Times = Mapping[str, Sequence[float]]

SOURCE = Path(__file__).with_name("pinocchio_loop.cpp")
FLAGS = (
    "-std=c++17 -O3 -march=native -DNDEBUG -w -shared -fPIC "
    # the wheel's own library lives in the same process, compiled for other vectors: no symbol may be shared with it
    "-fvisibility=hidden -fno-gnu-unique -Wl,-Bsymbolic "
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30 -DBOOST_MPL_LIMIT_VECTOR_SIZE=30 "
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS -DBOOST_FUSION_INVOKE_MAX_ARITY=12"
).split()
KINDS = (
    *(f"JointModel{kind}" for kind in ("RX", "RY", "RZ", "PX", "PY", "PZ")),
    *(f"JointModel{kind}" for kind in ("RevoluteUnaligned", "PrismaticUnaligned", "FreeFlyer")),
)  # as the source numbers them
CHECKED = 64  # rows whose values are compared
TOLERANCE = 1e-9
WIDTHS = {"pack": WIDTH, "scalar": 1}


class Case(NamedTuple):
    """A quantity, Pinocchio's ways to it, and the goals: times faster, share of the bandwidth (either is enough)."""

    quantity: str
    ways: tuple[str, ...]
    faster: float | None = None
    share: float | None = None


CASES = (
    Case("gravity", ("computeGeneralizedGravity",), faster=15),
    Case("inverse_dynamics", ("rnea",), faster=10),
    Case("forward_dynamics", ("aba local", "aba world"), faster=10),
    Case("centroidal_momentum_matrix", ("computeCentroidalMap", "ccrba"), faster=8),
    Case("mass_matrix", ("crba local", "crba world", "crba local mirrored"), faster=5, share=0.7),
    Case("jacobian", ("getJointJacobian in place", "getJointJacobian copied"), share=0.7),
)


class UnavailableError(Exception):
    """The peer cannot be built here."""


# ------------------------------------------------------------------ the peer's library


def load_library() -> ctypes.CDLL:
    """The compiled peer, compiled now unless the cache has it.

    Raises:
        UnavailableError: no pin, no Eigen, no compiler, or it fails.
    """
    try:
        import pinocchio
    except ImportError:
        raise UnavailableError("no Pinocchio: pip install pin") from None
    prefix = next((p for p in Path(pinocchio.__file__).parents if p.name == "cmeel.prefix"), None)
    if prefix is None:
        raise UnavailableError("Pinocchio is not the one of the wheel `pin`")
    key = hashlib.sha256(SOURCE.read_bytes())
    key.update(f"{FLAGS} {pinocchio.__version__} {platform.node()}".encode())
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "artsim-benchmarks"
    library = folder / f"pinocchio_loop-{key.hexdigest()[:16]}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _compile([prefix / "include", _eigen(folder)], library)
    return ctypes.CDLL(str(library))


def _eigen(folder: Path) -> Path:
    """Eigen's headers, from the wheel `cmeel-eigen` unpacked into this folder."""
    headers = folder / "eigen" / "cmeel.prefix" / "include" / "eigen3"
    if not headers.exists():
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), "cmeel-eigen"]
        done = subprocess.run(command, capture_output=True, text=True)
        wheel = next(folder.glob("cmeel_eigen-*.whl"), None)
        if wheel is None:
            raise UnavailableError(f"no wheel cmeel-eigen: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "eigen")
    return headers


def _compile(includes: Sequence[Path], library: Path) -> None:
    if shutil.which("g++") is None:
        raise UnavailableError("no compiler: g++ is not installed")
    print(f"compiling {SOURCE.name} with g++: some minutes, once", flush=True)
    unfinished = library.with_suffix(".partial")
    command = ["g++", *FLAGS, *(f"-I{path}" for path in includes), str(SOURCE), "-o", str(unfinished)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise UnavailableError(f"g++: {(done.stderr.strip().splitlines() or ['failed'])[0]}")
    unfinished.replace(library)


def address(array: Any) -> ctypes.c_void_p:
    """Where an array's numbers are."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


class Peer:
    """A robot in Pinocchio's C++, built from the Python model of the same file; armature as ours has it."""

    def __init__(self, library: ctypes.CDLL, model: Any, armature: Mapping[str, float]) -> None:
        """Raises UnavailableError: a joint that the loop does not know."""
        names = [joint.shortname() for joint in model.joints][1:]
        for name in names:
            if name not in KINDS:
                raise UnavailableError(f"{name} is not among the joints of {SOURCE.name}")
        kinds = np.array([KINDS.index(name) for name in names], np.int32)
        parents = np.array(list(model.parents)[1:], np.int32)
        numbers = _joint_numbers(model, armature)
        gravity = np.array(model.gravity.linear)
        library.make_robot.restype = ctypes.c_void_p
        robot = library.make_robot(len(names), *map(address, (kinds, parents, numbers, gravity)))
        self._robot = ctypes.c_void_p(robot)
        self._library = library

    def run(self, way: str, q: Array, v: Array, a: Array, out: Array) -> None:
        """One of a case's ways, over all rows of `out`."""
        rows = len(out)
        sizes = ctypes.c_int64(rows), ctypes.c_int64(out.size // rows)
        assert self._library.run_rows(self._robot, way.encode(), *sizes, *map(address, (q, v, a, out))) == 0

    def close(self) -> None:
        """Give the robot's memory back."""
        self._library.free_robot(self._robot)


def _joint_numbers(model: Any, armature: Mapping[str, float]) -> Array:
    """Per joint what make_robot wants: axis, placement, inertia, armature."""
    import pinocchio as pin

    data = model.createData()
    pin.computeJointJacobians(model, data, pin.neutral(model))
    rows = []
    for i in range(1, model.njoints):
        S = np.asarray(data.joints[i].S)
        axis = S.reshape(2, 3)[np.abs(S).reshape(2, 3).sum(axis=1).argmax()] if S.size == 6 else np.zeros(3)
        at, body = model.jointPlacements[i], model.inertias[i]
        placement = [*axis, *at.rotation.ravel(), *at.translation]
        rows.append([*placement, body.mass, *body.lever, *body.inertia.ravel(), armature[model.names[i]]])
    return np.array(rows)


# ------------------------------------------------------------------ conventions


@dataclass(frozen=True)
class Conventions:
    """What differs: the order of joints; quaternions xyzw; a floating base's linear velocity, in its own axes there."""

    robot: Robot
    model: Any

    @property
    def floating(self) -> bool:
        """Whether the first joint is a free-flyer."""
        return bool(self.model.joints[1].shortname() == "JointModelFreeFlyer")

    @property
    def names(self) -> list[str]:
        """Our names of Pinocchio's joints."""
        return ["root" if name == "root_joint" else name for name in [*self.model.names][1:]]

    @property
    def dofs(self) -> list[int]:
        """Our dofs in Pinocchio's order."""
        slices = [self.robot.labels.joint_dofs[name] for name in self.names]
        return [k for part in slices for k in range(part.start, part.stop)]

    @property
    def links(self) -> list[int]:
        """The link that each joint moves: its frame is the joint's."""
        children = {joint.name: joint.child for joint in self.robot.articulation.joints}
        return [self.robot.links.index(children[name]) for name in self.model.names[1:]]

    def positions(self, qpos: Array) -> Array:
        """qpos as Pinocchio has it."""
        slices = [self.robot.labels.joint_coords[name] for name in self.model.names[1:]]
        order = [k for part in slices for k in range(part.start, part.stop)]
        if self.floating:
            order[3:7] = [*order[4:7], order[3]]
        return np.ascontiguousarray(qpos[:, order])

    def rotations(self, qpos: Array) -> Array:
        """Of the base, (N, 3, 3); identities when it does not float."""
        if not self.floating:
            return np.broadcast_to(np.eye(3), (len(qpos), 3, 3))
        x, y, z, w = self.positions(qpos)[:, 3:7].T
        rows = (
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        )
        return np.moveaxis(np.array(rows), 2, 0)

    def to_base(self, R: Array, values: Array) -> Array:
        """Velocities or forces (N, nv) of ours: v_pin = S v, S = diag(Rᵀ, 1, …)."""
        turned = np.ascontiguousarray(values[:, self.dofs])
        if self.floating:
            turned[:, :3] = np.einsum("kji,kj->ki", R, turned[:, :3])
        return turned

    def to_world(self, R: Array, values: Array) -> Array:
        """Pinocchio's results (N, …, nv) times S."""
        turned = values.copy()
        if self.floating:
            R = R.reshape(len(R), *(1,) * (values.ndim - 3), 3, 3)
            if values.ndim == 2:
                turned[:, :3] = np.einsum("kij,kj->ki", R, values[:, :3])
            else:
                turned[..., :3] = values[..., :3] @ np.swapaxes(R, -1, -2)
        return turned

    def drift(self, v_pin: Array) -> Array:
        """s' with v̇_pin = S v̇ + s'."""
        drift = np.zeros_like(v_pin)
        if self.floating:
            drift[:, :3] = -np.cross(v_pin[:, 3:6], v_pin[:, :3])
        return drift


def peer_inputs(inputs: Mapping[str, Array], c: Conventions) -> tuple[Array, Array, Array]:
    """q, v and a or tau for Pinocchio."""
    qpos = inputs["qpos"]
    R = c.rotations(qpos)
    v, a = (np.zeros((len(qpos), c.robot.nv)) for _ in range(2))
    if "qvel" in inputs:
        v = c.to_base(R, inputs["qvel"])
    if "qacc" in inputs:
        a = c.to_base(R, inputs["qacc"]) + c.drift(v)
    elif "tau" in inputs:
        a = c.to_base(R, inputs["tau"])
    return c.positions(qpos), v, a


def as_ours(case: Case, found: Array, inputs: Mapping[str, Array], c: Conventions) -> Array:
    """Pinocchio's results in our axes, still in its order of joints."""
    R = c.rotations(inputs["qpos"])
    if case.quantity == "forward_dynamics":
        return c.to_world(R, found - c.drift(c.to_base(R, inputs["qvel"])))
    found = c.to_world(R, found)
    if case.quantity == "mass_matrix":
        found = np.swapaxes(c.to_world(R, np.swapaxes(found, 1, 2)), 1, 2)
    elif case.quantity == "centroidal_momentum_matrix":
        found[:, 3:] += np.cross(_centre_offset(inputs["qpos"], c)[:, :, None], found[:, :3], axis=1)
    return found


def _centre_offset(qpos: Array, c: Conventions) -> Array:
    """From our centre of mass to Pinocchio's, which leaves out the links that are fixed to the world."""
    import pinocchio as pin

    data = c.model.createData()
    theirs = [pin.centerOfMass(c.model, data, q).copy() for q in c.positions(qpos)]
    return np.array(theirs) - c.robot.compute(qpos, quantities=["com"])["com"]


def in_their_order(case: Case, values: Array, c: Conventions) -> Array:
    """Our results, of the links and dofs that Pinocchio has, in its order."""
    if case.quantity == "jacobian":
        values = values[:, c.links]
    if case.quantity == "mass_matrix":
        values = values[:, c.dofs]
    return values[..., c.dofs]


# ------------------------------------------------------------------ both sides of one case


class Ours:
    """Tables of one quantity, and the calls that fill them."""

    def __init__(self, robot: Robot, case: Case, rows: int) -> None:
        options: dict[str, Any] = {"at": "origin"}
        evaluations = {name: robot.evaluation([case.quantity], width=w, **options) for name, w in WIDTHS.items()}
        self.inputs, outputs = evaluations["pack"].allocate(rows)
        self.out = outputs[case.quantity]
        self.rows = rows
        _draw(robot, self.inputs)
        self.calls = {name: evaluation.bound(self.inputs, outputs) for name, evaluation in evaluations.items()}
        two = robot.evaluation([case.quantity], width=WIDTHS["pack"], threads=2, **options)
        self.calls["two threads"] = two.bound(self.inputs, outputs)

    def first(self, rows: int) -> dict[str, Array]:
        """The inputs of the first rows."""
        return {name: values[:rows] for name, values in self.inputs.items()}


def _draw(robot: Robot, inputs: Mapping[str, Array]) -> None:
    """Configurations, velocities, accelerations and forces to work on."""
    rng = np.random.default_rng(0)
    for name, values in inputs.items():
        values[:] = rng.uniform(-1.5, 1.5, values.shape) if name == "qpos" else rng.normal(size=values.shape)
    qpos = inputs["qpos"]
    for k, coord in enumerate(robot.coords):
        if coord.endswith(".qw"):
            qpos[:, k : k + 4] /= np.linalg.norm(qpos[:, k : k + 4], axis=1, keepdims=True)


def rows_of(case: Case, robot: Robot, arguments: argparse.Namespace) -> tuple[int, int]:
    """Rows for one thread, and for the comparison of one with two."""
    evaluation = robot.evaluation([case.quantity])
    sizes = {name: 8 * int(np.prod(shape)) for name, shape in evaluation.shapes.items()}
    memory = arguments.megabytes * 10**6
    if case.share is not None:
        rows = max(CHECKED, memory // sizes[case.quantity] // 8 * 8)
        return rows, rows
    many = min(memory // sum(sizes.values()), 25 * arguments.rows) // 8 * 8
    return max(CHECKED, arguments.rows), max(CHECKED, many, arguments.rows)


def compare(case: Case, ours: Ours, peer: Peer, c: Conventions, out: Array) -> None:
    """Both widths against all ways of Pinocchio's; ends the program where they differ."""
    inputs = ours.first(CHECKED)
    for way in case.ways:
        out[:CHECKED] = 0
        peer.run(way, *peer_inputs(inputs, c), out[:CHECKED])
        expected = as_ours(case, out[:CHECKED], inputs, c)
        for name in WIDTHS:
            ours.out[:CHECKED] = np.nan
            ours.calls[name](CHECKED)
            error = np.abs(in_their_order(case, ours.out[:CHECKED], c) - expected).max() / np.abs(expected).max()
            if not error < TOLERANCE:
                raise SystemExit(f"{case.quantity}, {name}: differs from {way} by {error:.1e}")


def faster_way(case: Case, peer: Peer, given: tuple[Array, Array, Array], out: Array) -> str:
    """Pinocchio's fastest way to the quantity, by a short trial."""
    few = out[: max(1, min(len(out), 4000))]
    trial = in_turns({way: partial(peer.run, way, *given, few) for way in case.ways}, 3)
    return min(trial, key=lambda way: min(trial[way]))


def in_turns(
    work: Mapping[str, Callable[[], Any]], rounds: int, clock: Callable[[], float] = time.thread_time
) -> dict[str, list[float]]:
    """Seconds of each in every round but the first, which warms up."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(rounds + 1):
        for name, run in work.items():
            start = clock()
            run()
            if turn:
                taken[name].append(clock() - start)
    return taken


# ------------------------------------------------------------------ what a core can write


class Memory:
    """A buffer that no cache holds, and the ways to fill it."""

    def __init__(self, library: ctypes.CDLL | None, megabytes: int = 256) -> None:
        whole = np.zeros(megabytes * 2**17 + 8)
        start = -whole.ctypes.data % 64 // 8
        self.buffer = whole[start : start + megabytes * 2**17]
        self.ways: dict[str, Callable[[], Any]] = {"numpy fill": lambda: self.buffer.fill(1.0)}
        if library is not None:
            given = address(self.buffer), ctypes.c_int64(self.buffer.nbytes)
            self.ways |= {
                "streaming stores": lambda: library.stream(*given),
                "memset": lambda: library.fill_bytes(*given),
            }
        self.best = "numpy fill"

    def measure(self, rounds: int) -> None:
        """All ways; the fastest is what the rest is set beside."""
        times = in_turns(self.ways, rounds)
        rates = {name: self.rate(values) for name, values in times.items()}
        self.best = max(rates, key=lambda name: rates[name])
        texts = [f"{name} {rate:.1f} (best {self.rate([min(times[name])]):.1f})" for name, rate in rates.items()]
        print(f"one core writes, median of {rounds} [GB/s]: {', '.join(texts)}", flush=True)

    def rate(self, seconds: Sequence[float]) -> float:
        """GB/s at the median."""
        return self.buffer.nbytes / statistics.median(seconds) * 1e-9


# ------------------------------------------------------------------ measuring and reporting


def time_case(
    case: Case, robot: Robot, peer: tuple[Peer, Conventions] | None, memory: Memory, arguments: argparse.Namespace
) -> str:
    """A line of the table."""
    rows, many = rows_of(case, robot, arguments)
    ours = Ours(robot, case, many)
    size = rows * ours.out[0].nbytes
    work: dict[str, Callable[[], Any]] = {name: partial(ours.calls[name], rows) for name in WIDTHS}
    way, peer_size = "", 0
    if peer is not None:
        way, peer_size, work["peer"] = prepare_peer(case, ours, rows, *peer)
    if case.share is not None:
        work["write"] = memory.ways[memory.best]
    times = in_turns(work, arguments.rounds)
    both = {name: partial(ours.calls[name], many) for name in ("pack", "two threads")}
    walls = in_turns(both, arguments.rounds, time.perf_counter)
    line = f"{time_columns(times, rows)} {goal_column(case, times, memory, size):>22s}"
    line += f" {min(walls['pack']) / min(walls['two threads']):5.2f}"
    line += f" {_median(walls, 'pack') / _median(walls, 'two threads'):5.2f}  "
    if case.share is not None:
        line += bytes_column(times, rows, memory, size, peer_size) + "  "
    return line + way


def prepare_peer(case: Case, ours: Ours, rows: int, peer: Peer, c: Conventions) -> tuple[str, int, Callable[[], Any]]:
    """Pinocchio's function, how many bytes it writes, and the call; once the values agree."""
    sizes = {"link": c.model.njoints - 1, "twist": 6, "dof": c.robot.nv, "dof2": c.robot.nv}
    out = np.zeros((rows, *(sizes[dim] for dim in QUANTITIES[case.quantity].dims)))
    compare(case, ours, peer, c, out)
    given = peer_inputs(ours.first(rows), c)
    way = faster_way(case, peer, given, out)
    return way, out.nbytes, partial(peer.run, way, *given, out)


def _median(times: Times, name: str) -> float:
    return statistics.median(times[name])


def time_columns(times: Times, rows: int) -> str:
    """ns per row of both sides, and how many times faster packs are."""

    def pair(name: str) -> str:
        if name not in times:
            return " " * 19
        return f"{min(times[name]) / rows * 1e9:9.1f} {_median(times, name) / rows * 1e9:9.1f}"

    ratio = f"{_median(times, 'peer') / _median(times, 'pack'):6.2f}" if "peer" in times else " " * 6
    return f"{rows:7d} {pair('pack')} {pair('scalar')} {pair('peer')} {ratio}"


def goal_column(case: Case, times: Times, memory: Memory, size: int) -> str:
    """The goal and whether it is met."""
    parts, met = [], False
    if case.faster is not None and "peer" in times:
        parts.append(f"{case.faster:g}x")
        met |= _median(times, "peer") / _median(times, "pack") >= case.faster
    if case.share is not None:
        parts.append(f"{case.share:.0%}")
        met |= size / _median(times, "pack") * 1e-9 >= case.share * memory.rate(times["write"])
    return f"{' or '.join(parts)} {'met' if met else 'MISSED'}" if parts else ""


def bytes_column(times: Times, rows: int, memory: Memory, size: int, peer_size: int) -> str:
    """Written bytes: per row, per second, and as a share of what a core can write."""
    ours, written = size / _median(times, "pack") * 1e-9, memory.rate(times["write"])
    text = f"{size // rows} B/row {ours:.2f} of {written:.2f} GB/s = {ours / written:.0%}"
    if "peer" in times:
        text += f"; peer {peer_size // rows} B/row {peer_size / _median(times, 'peer') * 1e-9:.2f} GB/s"
    return text


HEADER = (
    f"{'robot':9s} {'quantity':26s} {'rows':>7s} {'ours: min, median':>19s} {'scalar':>19s} {'peer':>19s} "
    f"{'ratio':>6s} {'goal':>22s} {'1→2 threads':>11s}  bytes written; Pinocchio's function"
)


def time_robot(path: Path, library: ctypes.CDLL | None, memory: Memory, arguments: argparse.Namespace) -> None:
    """All quantities of one robot."""
    robot = Robot.of(load_articulation(path))
    peer = None
    if library is not None:
        import pinocchio as pin

        model = (pin.buildModelFromMJCF if path.suffix == ".xml" else pin.buildModelFromUrdf)(str(path))
        labels = robot.labels
        armature = {name: float(robot.model.armature[labels.joint_dofs[name].start]) for name in model.names[1:]}
        peer = Peer(library, model, armature), Conventions(robot, model)
        counts = f"{len(robot.links)} links; the peer's are of {model.njoints - 1} joints"
        print(f"{path.stem}: {robot.nv} dofs, Jacobians of {counts}")
    for case in arguments.cases:
        line = time_case(case, robot, peer, memory, arguments)
        print(f"{path.stem:9s} {case.quantity:26s} {line}", flush=True)
    if peer is not None:
        peer[0].close()


def parsed() -> argparse.Namespace:
    """The command line; `cases` are those of --only."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--only", help=", ".join(case.quantity for case in CASES))
    parser.add_argument("--robots", default="ur5,iiwa,go2,talos,talosfull,shadow")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", type=int, default=20000, help="of quantities that are vectors")
    parser.add_argument("--megabytes", type=int, default=200, help="of matrices, and of all rows for two threads")
    arguments = parser.parse_args()
    known = [case.quantity for case in CASES]
    wanted = known if arguments.only is None else arguments.only.split(",")
    if not set(wanted) <= set(known):
        parser.error(f"--only knows {', '.join(known)}")
    arguments.cases = [case for case in CASES if case.quantity in wanted]
    return arguments


def main() -> None:
    """The table."""
    arguments = parsed()
    library = None
    try:
        library = load_library()
    except UnavailableError as error:
        print(f"artsim alone: {error}")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}")
    memory = Memory(library)
    memory.measure(arguments.rounds)
    print(f"[ns/row]\n{HEADER}")
    for name in arguments.robots.split(","):
        for path in (arguments.models / f"{name}.urdf", arguments.models / f"{name}.xml"):
            if path.is_file():
                time_robot(path, library, memory, arguments)
    memory.measure(arguments.rounds)
    print(f"load {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
