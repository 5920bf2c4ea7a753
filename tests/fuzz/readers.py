"""What reads files of strangers, each by its own entry point, with seeds and words of the format: `read(path)` must end
in a result or in an ArtsimError of one line.
"""

from __future__ import annotations

import functools
import io
import re
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from artsim.sim.foundation.errors import ModelError
from tests.conftest import ROOT
from tests.loaders.mjcf_attributes import every_element

SEEDS = Path(__file__).with_name("seeds")


class Reader(NamedTuple):
    """A reader, the suffix of its files, seeds to begin with, words of the format, and how many cases it gets for each
    one of the others: slow ones get fewer.
    """

    suffix: str
    read: Callable[[Path], object]
    seeds: Callable[[], list[bytes]]
    words: tuple[bytes, ...] = ()
    share: float = 1.0


class NotFiniteError(Exception):
    """A reader took numbers that are none."""


def finite(arrays: Mapping[str, Any]) -> None:
    """Raise NotFiniteError where an array, or one in a table of several, holds a number that is none."""
    for name, values in arrays.items():
        if isinstance(values, Mapping):
            finite(values)
        elif values.dtype.kind == "f" and not np.isfinite(values).all():
            raise NotFiniteError(name)


def read_model(path: Path) -> None:
    """As `artsim run` for four steps."""
    from artsim.io.runs.prepare import prepare
    from artsim.io.runs.run import run
    from artsim.loaders.load import load_articulation
    from artsim.sim.runs.configuration import RunConfig

    plan = prepare(load_articulation(path), RunConfig(steps=4))
    checked(lambda keep: run(plan, on_block=keep))


def checked(start: Callable[[Callable[[dict[str, Any], dict[str, Any]], None]], Any]) -> None:
    """A run whose rows are finite, or which says that it is not."""
    rows: list[dict[str, Any]] = []
    outcome = start(lambda block, contacts: rows.extend(({k: v.copy() for k, v in block.items()}, contacts)))
    outcome.simulation.check()
    for block in rows:
        finite(block)


def read_loops(path: Path) -> None:
    """A file of loops beside the arm."""
    from artsim.loaders.loops import with_loops
    from artsim.sim.runs.configuration import RunConfig
    from artsim.sim.runs.plan import plan_run

    plan_run(with_loops(arm().articulation, path.read_bytes(), file=str(path)), RunConfig())


def read_srdf(path: Path) -> None:
    from artsim.loaders.srdf import with_srdf

    with_srdf(arm().articulation, path.read_bytes(), file=str(path))


def read_mesh(path: Path) -> None:
    from artsim.collision import mesh

    kind = path.suffix
    try:
        finite(mesh.parse(kind, path.read_bytes(), {}, 20_000)._asdict())
    except (mesh.ModelError, MemoryError, NotFiniteError):
        raise
    except Exception as error:  # what read_mesh itself turns into a line
        raise mesh.MeshError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def read_gmsh(path: Path) -> None:
    from artsim.collision import gmsh, mesh

    try:
        finite(gmsh.read_gmsh(path, 20_000)._asdict())
    except (mesh.ModelError, MemoryError, NotFiniteError):
        raise
    except (ValueError, IndexError) as error:  # what <flexcomp> turns into a line
        raise mesh.MeshError(str(error)) from error


def read_elevation(path: Path) -> None:
    from artsim.loaders.mjcf.elevation import read_elevation as read

    try:
        _, _, heights = read(path, 20_000)
    except ValueError as error:  # what <hfield> turns into a line
        raise ModelError(str(error)) from error
    finite({"heights": np.array(heights)})


def read_run(path: Path) -> None:
    """As `artsim info`, with all that a run again would read."""
    from artsim.io.readers.open_output import open_output
    from artsim.io.readers.recording import Recording
    from artsim.io.readers.rollout_recording import RolloutRecording

    with open_output(path) as output:
        _ = output.summary(), output.model_text, output.config, output.kept
        if isinstance(output, Recording):
            _ = output.controls, output.final
            for name in output.variables:
                output.read(name, 0, 100)
            output.read_contacts(0, 100)
        if isinstance(output, RolloutRecording):
            _ = output.controls, output.read_contacts(0, 100)


def read_resumed(path: Path) -> None:
    """As `artsim run --resume` for three steps more."""
    from artsim.io.readers.recording import open_recording
    from artsim.io.runs.resume import resume
    from artsim.loaders.stored import load_stored

    target = path.with_name("resumed.h5")
    outcome = resume(path, load_stored, steps=9, output=target, force=True)
    if outcome is not None:
        outcome.simulation.check()
        with open_recording(target) as recording:
            finite({name: recording.read(name, 6, recording.n_valid) for name in recording.variables})


def read_recovered(path: Path) -> None:
    """As `artsim recover`."""
    from artsim.io.runs.recovery import recover

    target = path.with_name("recovered.h5")
    target.unlink(missing_ok=True)
    recover(path, target)


def read_controls(path: Path) -> None:
    from artsim.io.inputs.control_files import read_controls as read
    from artsim.sim.runs.controls import VALUES

    zero = np.zeros(2)
    held = dict.fromkeys(("torque", "target", "target_velocity"), zero)
    controls = read(path, ("a", "b"), 0.002, actuators=("m",), control=np.zeros(1), **held)
    finite({name: getattr(controls, name) for name in VALUES})


def read_configurations(path: Path) -> None:
    from artsim.io.inputs.configurations import open_input

    source = open_input(str(path), arm().labels, ("qpos",), ())
    try:
        rows = {name: np.zeros((min(source.rows, 64), 7)) for name in source.inputs if name in ("qpos", "qvel")}
        source.read(0, min(source.rows, 64), rows)
    finally:
        source.close()


@functools.cache
def arm() -> Any:
    import artsim

    return artsim.load(ROOT / "robots" / "arm7.urdf")


def read_configuration(path: Path) -> None:
    """A TOML, as `artsim run --config` takes it."""
    from artsim.sim.foundation.errors import UsageError
    from artsim.sim.runs.configuration import RunConfig
    from artsim.sim.runs.plan import plan_run

    try:
        content = tomllib.loads(path.read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"not TOML: {type(error).__name__}") from None
    plan_run(arm().articulation, RunConfig.from_mapping(content))


# --- seeds -----------------------------------------------------------------------------------------------------------


def kept(suffix: str) -> list[bytes]:
    """Inputs that once failed."""
    return [path.read_bytes() for path in sorted(SEEDS.glob(f"*{suffix}"))]


def robots(suffix: str) -> Callable[[], list[bytes]]:
    return lambda: [path.read_bytes() for path in sorted((ROOT / "robots").glob(f"*{suffix}"))] + kept(suffix)


def mjcf() -> list[bytes]:
    """Robots, and a small model with each element of MJCF."""
    return [*robots(".xml")(), *(text.encode() for text in every_element())]


def sdf() -> list[bytes]:
    """Models with every rule of frames and every kind of joint, and one with shapes and what moves nothing."""
    from tests.loaders.sdf_models import MODELS, SHAPES, SURFACES

    return [*(text.encode() for text in (*MODELS.values(), SHAPES, SURFACES)), *kept(".sdf")]


def words_of(*texts: bytes) -> tuple[bytes, ...]:
    found = {word for text in texts for word in re.findall(rb"</?[\w:]+|\s[\w:]+=\"[^\"]{0,20}\"", text)}
    more = b'<include file="model.xml"/>', b'<replicate count="99999">', b"<!DOCTYPE r>", b"&a;", b"<!--"
    return (*sorted(found), *more)


def tetrahedron(kind: str) -> Callable[[], list[bytes]]:
    def make() -> list[bytes]:
        import trimesh

        shapes = trimesh.creation.box(), trimesh.creation.icosphere(1)
        return [*(_exported(shape, kind) for shape in shapes), *kept(f".{kind}")]

    return make


def _exported(shape: object, kind: str) -> bytes:
    data = shape.export(file_type=kind)  # type: ignore[attr-defined]
    if isinstance(data, dict):
        data = next(value for name, value in data.items() if name.endswith(".gltf"))
    return data.encode() if isinstance(data, str) else bytes(data)


def run_seed() -> list[bytes]:
    import artsim

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        model = ROOT / "robots" / "two_finger_gripper.urdf"
        artsim.simulate(artsim.load(model), steps=6, output=path, checkpoint=3).close()  # type: ignore[union-attr]
        many = Path(folder) / "rollout.h5"
        balls = ROOT / "robots" / "floating_box.urdf"
        touching = {
            "ground": True,
            "push": ["box=1,0,0@0.002"],
            "randomise": {"push": (0, 1)},
            "record": ("+contacts",),
        }
        artsim.rollout(artsim.load(balls), samples=3, steps=4, output=many, **touching).close()  # type: ignore[union-attr, arg-type]
        return [path.read_bytes(), many.read_bytes(), *kept(".h5")]


def lattices() -> list[bytes]:
    """Points and elements of every kind in Gmsh's versions, as text and in binary."""
    from tests.loaders.test_gmsh import KINDS, WRITERS

    return [write(kind) for write in WRITERS.values() for kind in KINDS] + kept(".msh")


def heights(kind: str) -> Callable[[], list[bytes]]:
    """Height fields in MuJoCo's format, and as images."""

    def make() -> list[bytes]:
        from tests.loaders.test_elevation import png

        if kind == ".bin":
            return [np.array([3, 4], "<i4").tobytes() + np.arange(12, dtype="<f4").tobytes(), *kept(kind)]
        points = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
        return [png(points, 2), png(points[:, :, :1], 0), *kept(kind)]

    return make


def msh() -> list[bytes]:
    """A tetrahedron in MuJoCo's format."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "<f4")
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], "<i4")
    bare, full = np.array([4, 0, 0, 4], "<i4"), np.array([4, 4, 4, 4], "<i4")
    more = points.tobytes() + np.zeros((4, 2), "<f4").tobytes()
    corners = points.tobytes()
    return [bare.tobytes() + corners + faces.tobytes(), full.tobytes() + corners + more + faces.tobytes()]


def arrays(suffix: str) -> Callable[[], list[bytes]]:
    def make() -> list[bytes]:
        stream = io.BytesIO()
        if suffix == ".npy":
            np.save(stream, np.zeros((5, 7)))
        else:
            np.savez(stream, qpos=np.zeros((5, 7)), time=np.arange(5.0), joints=np.array(["a", "b"]))
        return [stream.getvalue(), *kept(suffix)]

    return make


TABLE = b"time,a.torque,b.target,m\n0,1,2,3\n0.01,1e3,-2,0\n"
ROWS = (f"joint_{n}" for n in range(1, 8))
CONFIGURATIONS = ",".join(ROWS).encode() + b"\n" + b"0,0.1,0,0,0,0,0\n" * 4
TOML = (
    b'duration = 1\nstiffness = 200\ncontroller = "hold"\nq0 = { joint_2 = 0.5 }\n'
    b'gravity = [0, 0, -9.81]\nrecord = ["qpos"]\n'
)
LOOPS = b"""[[loop]]
kind = "hinge"
link_a = "link_7"
link_b = "world"
axis_a = [0, 1, 0]
frequency = 20.0
[[loop]]
kind = "distance"
link_a = "link_3"
link_b = "world"
length = 0.5
k = 100.0
d = 1.0
[[loop]]
kind = "gear"
follower = "joint_2"
leader = "joint_4"
ratio = -2.0
[[loop]]
kind = "weld"
link_a = "link_5"
link_b = "link_2"
rpy_a = [0.1, 0, 0]
k = 1e4
k_rotation = 10.0
"""
SRDF = b'<robot name="arm7"><disable_collisions link1="link_1" link2="link_2" reason="Adjacent"/></robot>'

READERS: dict[str, Reader] = {
    "urdf": Reader(".urdf", read_model, robots(".urdf"), words_of((ROOT / "robots" / "arm7.urdf").read_bytes())),
    "mjcf": Reader(".xml", read_model, mjcf, words_of(*mjcf())),
    "sdf": Reader(".sdf", read_model, sdf, words_of(*sdf())),
    "loops": Reader(".toml", read_loops, lambda: [LOOPS], tuple(LOOPS.split())),
    "srdf": Reader(".srdf", read_srdf, lambda: [SRDF, *kept(".srdf")], words_of(SRDF)),
    **{kind: Reader(f".{kind}", read_mesh, tetrahedron(kind)) for kind in ("stl", "obj", "ply", "glb", "dae", "gltf")},
    "msh": Reader(".msh", read_mesh, msh),
    "gmsh": Reader(".msh", read_gmsh, lattices, (b"$Nodes", b"$Elements", b"$EndNodes", b"\n")),
    "hfield": Reader(".bin", read_elevation, heights(".bin")),
    "png": Reader(".png", read_elevation, heights(".png"), (b"IDAT", b"IHDR")),
    "h5": Reader(".h5", read_run, run_seed, share=1 / 4),
    "resume": Reader(".h5", read_resumed, run_seed, share=1 / 64),
    "recover": Reader(".h5", read_recovered, run_seed, share=1 / 16),
    "control_h5": Reader(".h5", read_controls, run_seed, share=1 / 8),
    "rows_h5": Reader(".h5", read_configurations, run_seed, share=1 / 8),
    "npy": Reader(".npy", read_configurations, arrays(".npy")),
    "npz": Reader(".npz", read_configurations, arrays(".npz")),
    "control_csv": Reader(".csv", read_controls, lambda: [TABLE, *kept(".csv")], (b",", b"\n", b'"', b"time")),
    "control_npz": Reader(".npz", read_controls, arrays(".npz")),
    "csv": Reader(".csv", read_configurations, lambda: [CONFIGURATIONS, *kept(".csv")], (b",", b"\n", b'"')),
    "toml": Reader(".toml", read_configuration, lambda: [TOML, *kept(".toml")], tuple(TOML.split())),
}
