"""What reads files of strangers, each by its own entry point, with seeds and words of the format: `read(path)` must end
in a result or in an ArtsimError of one line.
"""

from __future__ import annotations

import functools
import io
import re
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.conftest import ROOT

SEEDS = Path(__file__).with_name("seeds")


class Reader(NamedTuple):
    """A reader, the suffix of its files, seeds to begin with, and words of the format."""

    suffix: str
    read: Callable[[Path], object]
    seeds: Callable[[], list[bytes]]
    words: tuple[bytes, ...] = ()


def read_model(path: Path) -> None:
    """As `artsim check`, and as far as a plan of a run."""
    from artsim.io.runs import prepare
    from artsim.loaders.load import load_articulation
    from artsim.sim.configuration import RunConfig

    prepare(load_articulation(path), RunConfig(steps=1))


def read_srdf(path: Path) -> None:
    from artsim.loaders.load import SceneEntry, load_scene

    load_scene([SceneEntry("", str(ROOT / "robots" / "arm7.urdf"), srdf=str(path))])


def read_mesh(path: Path) -> None:
    from artsim.collision import mesh

    kind = path.suffix
    try:
        mesh.parse(kind, path.read_bytes(), {}, 20_000)
    except (mesh.ModelError, MemoryError):
        raise
    except Exception as error:  # what read_mesh itself turns into a line
        raise mesh.MeshError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def read_run(path: Path) -> None:
    """As `artsim info`, with all that a run again would read."""
    from artsim.io.batch_reader import open_output
    from artsim.io.reader import Recording

    with open_output(path) as output:
        _ = output.summary(), output.model_text, output.config, output.kept
        if isinstance(output, Recording):
            _ = output.controls, output.final
            for name in output.variables:
                output.read(name, 0, 100)
            output.read_contacts(0, 100)


def read_controls(path: Path) -> None:
    from artsim.io.controls import read_controls as read

    zero = np.zeros(2)
    held = dict.fromkeys(("torque", "target", "target_velocity"), zero)
    read(path, ("a", "b"), 0.002, actuators=("m",), control=np.zeros(1), **held)


def read_configurations(path: Path) -> None:
    from artsim.io.configurations import open_input

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
    from artsim.sim.configuration import RunConfig
    from artsim.sim.errors import UsageError

    try:
        content = tomllib.loads(path.read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"not TOML: {type(error).__name__}") from None
    RunConfig.from_mapping(content)


# --- seeds -----------------------------------------------------------------------------------------------------------


def kept(suffix: str) -> list[bytes]:
    """Inputs that once failed."""
    return [path.read_bytes() for path in sorted(SEEDS.glob(f"*{suffix}"))]


def robots(suffix: str) -> Callable[[], list[bytes]]:
    return lambda: [path.read_bytes() for path in sorted((ROOT / "robots").glob(f"*{suffix}"))] + kept(suffix)


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
        return [path.read_bytes(), *kept(".h5")]


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
SRDF = b'<robot name="arm7"><disable_collisions link1="link_1" link2="link_2" reason="Adjacent"/></robot>'

READERS: dict[str, Reader] = {
    "urdf": Reader(".urdf", read_model, robots(".urdf"), words_of((ROOT / "robots" / "arm7.urdf").read_bytes())),
    "mjcf": Reader(".xml", read_model, robots(".xml"), words_of(*robots(".xml")())),
    "srdf": Reader(".srdf", read_srdf, lambda: [SRDF, *kept(".srdf")], words_of(SRDF)),
    **{kind: Reader(f".{kind}", read_mesh, tetrahedron(kind)) for kind in ("stl", "obj", "ply", "glb", "dae", "gltf")},
    "h5": Reader(".h5", read_run, run_seed),
    "npy": Reader(".npy", read_configurations, arrays(".npy")),
    "npz": Reader(".npz", read_configurations, arrays(".npz")),
    "control_csv": Reader(".csv", read_controls, lambda: [TABLE, *kept(".csv")], (b",", b"\n", b'"', b"time")),
    "control_npz": Reader(".npz", read_controls, arrays(".npz")),
    "csv": Reader(".csv", read_configurations, lambda: [CONFIGURATIONS, *kept(".csv")], (b",", b"\n", b'"')),
    "toml": Reader(".toml", read_configuration, lambda: [TOML, *kept(".toml")], tuple(TOML.split())),
}
