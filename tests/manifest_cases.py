"""The rows of the table of bad inputs, and the attacks that once got through, as cases of tests/manifest.py."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from artsim.io.format import schema
from tests.cli.test_bad_inputs import (
    ACCEPT,
    GOOD,
    LIMIT,
    REJECT,
    chain,
    inertial,
    joint,
    link,
    mimics,
    robot,
    shape,
    two_links,
)
from tests.cli.test_bad_mjcf import ROWS, TETRAHEDRON, mjcf, stl, urdf, world
from tests.conftest import ROOT
from tests.manifest import Case, Make

ARM = ROOT / "robots" / "arm7.urdf"
XACRO = '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">\n'
MASS = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'


# --- how cases are made ----------------------------------------------------------------------------------------------


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def model(text: str | bytes, *more: object, name: str = "robot.urdf", command: str = "check") -> Make:
    """A model file, and a command with it."""
    return lambda folder: [command, written(folder, name, text), *more]


def xml(text: str, *more: object, command: str = "check") -> Make:
    return model(text, *more, name="model.xml", command=command)


def beside(text: str, *files: tuple[str, bytes | str], more: Sequence[object] = (), name: str = "model.xml") -> Make:
    """A model and files beside it."""

    def make(folder: Path) -> Sequence[object]:
        for called, content in files:
            written(folder, called, content)
        return ["check", written(folder, name, text), *more]

    return make


def placed(text: str, put: Callable[[Path], object], *more: object, name: str = "robot.urdf") -> Make:
    """A model beside which `put` lays something."""

    def make(folder: Path) -> Sequence[object]:
        put(folder)
        return ["check", written(folder, name, text), *more]

    return make


def typed(*words: object, command: str = "run") -> Make:
    """A good model, and words beside it."""
    return lambda folder: [command, written(folder, "good.urdf", GOOD), *words]


@functools.cache
def run_file() -> Path:
    """A short run of the arm, written once."""
    import artsim

    path = Path(tempfile.mkdtemp(prefix="artsim-manifest-")) / "run.h5"
    artsim.simulate(artsim.load(ARM), steps=20, output=path).close()  # type: ignore[union-attr]
    return path


def output(change: Callable[[object], object] | None = None, *words: object, name: str = "gift.h5") -> Make:
    """A run's file that was changed, and a command with it (`FILE` stands for it)."""

    def make(folder: Path) -> Sequence[object]:
        import h5py

        path = Path(shutil.copy(run_file(), folder / name))
        if change is not None:
            with h5py.File(path, "r+") as file:
                change(file)
        return [str(word).replace("FILE", str(path)) for word in (words or ("info", "FILE"))]

    return make


def replaced(place: str, **how: object) -> Callable[[object], object]:
    """Another dataset in the place of one."""

    def change(file: object) -> None:
        del file[place]  # type: ignore[attr-defined]
        file.create_dataset(place, **how)  # type: ignore[attr-defined]

    return change


def crafted(make_file: Callable[[object], object], *words: object) -> Make:
    """A file of HDF5 made anew."""

    def make(folder: Path) -> Sequence[object]:
        import h5py

        path = folder / "gift.h5"
        with h5py.File(path, "w") as file:
            make_file(file)
        return [str(word).replace("FILE", str(path)) for word in (words or ("info", "FILE"))]

    return make


def huge(folder: Path) -> Sequence[object]:
    path = written(folder, "r.urdf", b"")
    os.truncate(path, 2 * 10**9)
    return ["check", path]


def truncated(folder: Path) -> Sequence[object]:
    data = run_file().read_bytes()
    return ["info", written(folder, "gift.h5", data[: len(data) // 2])]


def flipped(folder: Path) -> Sequence[object]:
    data = bytearray(run_file().read_bytes())
    data[len(data) // 3 & ~7] ^= 0xFF
    data[60] ^= 0xFF
    return ["info", written(folder, "gift.h5", bytes(data))]


def stepping(total: int) -> Callable[[object], object]:
    return lambda file: file["trajectory"].attrs.modify("steps_total", total)  # type: ignore[index]


def unlike(file: object) -> None:
    del file["provenance"].attrs["config"]  # type: ignore[index]


def configured(**changes: object) -> Callable[[object], object]:
    """Another configuration in a file."""

    def change(file: object) -> None:
        provenance = file["provenance"]  # type: ignore[index]
        provenance.attrs["config"] = json.dumps(json.loads(provenance.attrs["config"]) | changes)

    return change


EVIL = "open(__file__.rpartition('/')[0] + '/PWNED', 'w').write('x')\ndef f(t, q, v):\n    return 0 * v\n"


def evil(*words: object, toml: bool = False) -> Make:
    """A controller beside a configuration that names it."""

    def make(folder: Path) -> Sequence[object]:
        code = written(folder, "evil.py", EVIL)
        if toml:
            return ["run", ARM, "--config", written(folder, "gift.toml", f'controller = "{code}:f"\n'), "--steps", 2]
        made = output(configured(controller=f"{code}:f"))(folder)
        return ["run", "--config", made[1], *words]

    return make


def batch(save: Callable[[Path], object], *words: object, name: str = "q.npy") -> Make:
    """Configurations in a file."""

    def make(folder: Path) -> Sequence[object]:
        save(folder / name)
        return ["batch", ARM, "--input", folder / name, "--compute", "gravity", "-o", folder / "result.h5", *words]

    return make


def saved(array: object) -> Callable[[Path], object]:
    return lambda path: np.save(path, array)  # type: ignore[arg-type]


def with_nan(rows: int) -> object:
    values = np.zeros((rows, 7))
    values[3, 2] = np.nan
    return values


def lies(triangles: int) -> bytes:
    return stl(triangles, TETRAHEDRON)


def dae(vcount: str = "3", instances: int = 1, positions: str = "0 0 0 1 0 0 0 1 0") -> str:
    instance = '<instance_geometry url="#g"/>' * instances
    return (
        '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset/><library_geometries>'
        '<geometry id="g"><mesh><source id="p"><float_array id="f" count="9">'
        f'{positions}</float_array><technique_common><accessor count="3" source="#f" stride="3"><param name="X" '
        'type="float"/><param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common>'
        '</source><vertices id="v"><input semantic="POSITION" source="#p"/></vertices><polylist count="1"><input '
        f'offset="0" semantic="VERTEX" source="#v"/><vcount>{vcount}</vcount><p>0 1 2</p></polylist></mesh></geometry>'
        f'</library_geometries><library_visual_scenes><visual_scene id="s"><node>{instance}</node></visual_scene>'
        '</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>'
    )


def gltf(**changes: object) -> str:
    accessor = {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [1, 1, 1]}
    header = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [accessor],
        "bufferViews": [{"buffer": 0, "byteLength": 36}],
        "buffers": [{"byteLength": 36, "uri": "data:application/octet-stream;base64," + "AAAA" * 12}],
    }
    return json.dumps(header | changes)


def read_mesh(content: str | bytes, name: str) -> Make:
    """A mesh that `check --meshes` reads."""
    return beside(urdf(name), (name, content), more=("--meshes",), name="robot.urdf")


def zipped(name: str) -> Callable[[Path], object]:
    def put(folder: Path) -> None:
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("doc.dae", bytes(30_000_000))

    return put


def replicated(count: int, inside: str, **attributes: str) -> str:
    more = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return world(f'<replicate count="{count}" {more}>{inside}</replicate>')


def attached(folder: Path) -> Sequence[object]:
    materials = "".join(f'<material name="m{n}"/>' for n in range(20_000))
    child = f'<asset>{materials}</asset><worldbody><body name="b"><geom size="1"/></body></worldbody>'
    written(folder, "child.xml", f'<mujoco model="c">{child}</mujoco>')
    uses = "".join(f'<attach model="c" body="b" prefix="p{n}_"/>' for n in range(2000))
    asset = '<asset><model name="c" file="child.xml"/></asset>'
    return ["check", written(folder, "model.xml", f"<mujoco>{asset}<worldbody>{uses}</worldbody></mujoco>")]


def embedded(folder: Path) -> Sequence[object]:
    """Models that name the next one ten times each."""
    for n in range(8):
        models = "".join(f'<model name="m{k}" file="{n + 1}.xml"/>' for k in range(10))
        written(folder, f"{n}.xml", f"<mujoco><asset>{models}</asset></mujoco>")
    written(folder, "8.xml", "<mujoco/>")
    return ["check", folder / "0.xml"]


def polynomial() -> str:
    one = '<body><joint name="{}" axis="0 1 0"/><geom size=".1" pos=".5 0 0"/></body>'
    curve = '<equality><joint joint1="a" joint2="b" polycoef="1e30 1e30 1e30 1e30 1e30"/></equality>'
    return world(one.format("a") + one.format("b"), curve)


def heavy() -> str:
    parts = link("a"), link("b", inertial("1e308").split("\n")[2].split(">", 1)[1].removesuffix("</link>")), link("c")
    return robot(*parts, joint("f", "fixed", "a", "b", '<origin xyz="1 0 0"/>'), joint("j", child="c"))


def linked(suffix: str, words: Callable[[Path], Sequence[object]]) -> Make:
    """A link to something precious where a temporary file will be; the case fails when that is touched."""

    def make(folder: Path) -> Sequence[object]:
        precious = written(folder, "precious", "keep me")
        precious.chmod(0o600)
        (folder / f"out.h5{suffix}").symlink_to(precious)
        return words(folder)

    return make


def secret_package(folder: Path) -> Sequence[object]:
    place = folder / "alice"
    (place / ".secret").mkdir(parents=True)
    written(place / ".secret", "part.stl", lies(4))
    (place / "robots" / "one").mkdir(parents=True)
    text = shape('<mesh filename="package://alice/.secret/part.stl"/>')
    return ["check", written(place / "robots" / "one", "robot.urdf", text), "--meshes"]


def muscles(count: int) -> str:
    bodies = "".join(f'<body><joint name="j{n}" range="-1 1"/><geom size=".1"/></body>' for n in range(count))
    pulls = "".join(f'<muscle name="m{n}" joint="j{n}"/>' for n in range(count))
    return world(bodies, f"<actuator>{pulls}</actuator>")


def waiting(folder: Path) -> Sequence[object]:
    os.mkfifo(folder / "p.toml")
    return ["run", ARM, "--config", folder / "p.toml"]


def paced(dt: float) -> Callable[[object], object]:
    """Another time step."""
    return lambda file: file["trajectory"].attrs.modify("dt", dt)  # type: ignore[index]


def image(rows: int, columns: int, pieces: Sequence[bytes]) -> Make:
    """A height field from a PNG in so many pieces."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return len(content).to_bytes(4, "big") + kind + content + check.to_bytes(4, "big")

    head = chunk(b"IHDR", columns.to_bytes(4, "big") + rows.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0]))
    data = b"\x89PNG\r\n\x1a\n" + head + b"".join(chunk(b"IDAT", piece) for piece in pieces)
    text = world('<geom type="hfield" hfield="h"/>', '<asset><hfield name="h" file="h.png" size="1 1 1 1"/></asset>')
    return beside(text, ("h.png", data))


def pieces(folder: Path) -> Sequence[object]:
    """Two million of one byte, which were once copied for each other."""
    return image(16, 16, [b"x"] * 2_000_000)(folder)


def lines(folder: Path) -> Sequence[object]:
    """Two million of two points, each filtered by its neighbours."""
    return image(2_000_000, 2, [zlib.compress(b"\4\1\2" * 2_000_000)])(folder)


def npz_without_npy(folder: Path) -> Sequence[object]:
    with zipfile.ZipFile(folder / "c.npz", "w") as archive:
        archive.writestr("time", b"x")
    return ["run", ARM, "--control", folder / "c.npz", "--steps", 1]


SDF = '<sdf version="1.9"><model name="m"><link name="a"/>{}</model></sdf>'


def sdf(uri: str) -> Make:
    """An SDF model that includes what this names."""
    return model(SDF.format(f"<include><uri>{uri}</uri></include>"), name="model.sdf")


def doubled(folder: Path) -> Sequence[object]:
    """Twelve SDF files, each of which includes the next twice."""
    for n in range(12):
        more = "".join(f"<include><uri>m{n + 1}.sdf</uri><name>{name}</name></include>" for name in "xy" if n < 11)
        written(folder, f"m{n}.sdf", SDF.format(more))
    return ["check", folder / "m0.sdf"]


def frames(count: int, form: str) -> Make:
    """A chain of SDF frames, each in or on the next."""
    ends = [*(f"f{n + 1}" for n in range(count - 1)), "a"]
    return model(SDF.format("".join(form.format(n, end) for n, end in enumerate(ends))), name="model.sdf")


def beside_loops(text: str) -> Make:
    """The arm with a file of loops."""
    return lambda folder: ["check", ARM, "--loops", written(folder, "l.toml", text)]


def waiting_loops(folder: Path) -> Sequence[object]:
    os.mkfifo(folder / "l.toml")
    return ["check", ARM, "--loops", folder / "l.toml"]


def toml(text: str, option: str = "--config") -> Make:
    """A model, and an option that reads TOML."""
    return lambda folder: ["run", ARM, option, written(folder, "c.toml", text)]


def commented(file: object) -> None:
    """A source with another comment."""
    source = file["model/source"]  # type: ignore[index]
    source[()] = source[()] + b"<!-- safe -->"


def linked_configurations(folder: Path) -> Sequence[object]:
    (folder / "q.csv").symlink_to(SYSTEMS)
    return ["batch", ARM, "--input", folder / "q.csv", "--compute", "gravity", "-o", folder / "out.h5"]


# --- the rows --------------------------------------------------------------------------------------------------------

PINS = '<flexcomp name="f" type="grid" count="4 4 1" spacing=".1 .1 .1" dim="1"><pin range="0 1e9"/></flexcomp>'
SENSORS = "<sensor>" + '<framepos objtype="site" objname="s"/>' * 100 + "</sensor>"
FIELDS = "".join(f'<hfield name="h{n}" nrow="4000" ncol="4000" size="1 1 1 1"/>' for n in range(16))
GENERATOR = (
    "${[g:=((g.gi_frame.f_back.f_back.f_back.f_back.f_builtins['__import__']('os').system('touch PWNED')) "
    "for _ in [1]), list(g)][1]}"
)
DOTS = ".".join("a" * 100_000)
VERIFY = ("replay", "--verify", "FILE")
RESUME = ("run", "--resume", "FILE", "--steps", 30)
SYSTEMS = "/proc/self/mounts"  # tells no size, as /proc/kmsg, which never ends
ENDLESS: list[tuple[str, Sequence[object], int, tuple[str, ...]]] = [
    ("model", ["check", SYSTEMS], 65, ("empty",)),
    ("info", ["info", SYSTEMS], 65, ("empty",)),
    ("config", ["run", "--config", SYSTEMS], 2, ("MODEL",)),
    ("resume", ["run", "--resume", SYSTEMS], 65, ("empty",)),
    ("q0", ["run", ARM, "--q0", SYSTEMS], 2, ("q0",)),
    ("srdf", ["run", ARM, "--srdf", SYSTEMS], 65, ("empty",)),
    ("loops", ["run", ARM, "--loops", SYSTEMS], 65, ("loop",)),
    ("replay", ["replay", "--verify", SYSTEMS], 65, ("empty",)),
    ("plot", ["plot", SYSTEMS], 2, ("no output",)),
    ("export", ["export", SYSTEMS, "--csv", "x.csv"], 65, ("empty",)),
    ("recover", ["recover", SYSTEMS], 65, ("empty",)),
    ("into", ["warmup", "--level", "x86-64-v2", "--into", "/dev/null"], 73, ("/dev/null",)),
]
if os.access("/proc/kmsg", os.R_OK):
    ENDLESS += [
        ("kmsg", ["run", "--config", "/proc/kmsg"], 2, ("MODEL",)),
        ("kmsg_model", ["check", "/proc/kmsg"], 65, ()),
    ]
BOMB = {"compression": "gzip", "chunks": (1 << 20,), "fillvalue": 0.0}


def bomb(place: str) -> Callable[[object], object]:
    """A gigabyte of zeros, in a megabyte."""

    def change(file: object) -> None:
        del file[place]  # type: ignore[attr-defined]
        data = file.create_dataset(place, (1 << 27,), "f8", chunks=(1 << 22,), compression="gzip")  # type: ignore[attr-defined]
        block = gzip_zeros(8 << 22)
        for n in range(1 << 5):
            data.id.write_direct_chunk((n << 22,), block)

    return change


def long_run(file: object) -> None:
    """Two gigabytes of rows, all zeros, in two megabytes; of the variables only positions are left."""
    group, rows, chunk = file["trajectory"], 40_000_000, 1_000_000  # type: ignore[index]
    for name in [name for name in schema.RECORDED if name in group] + ["time"]:
        width = group[name].shape[1:]
        del group[name]
        if name in ("qpos", "time"):
            data = group.create_dataset(name, (rows, *width), "f8", chunks=(chunk, *width), compression="gzip")
            block = gzip_zeros(8 * chunk * int(np.prod(width)))
            for n in range(0, rows, chunk):
                data.id.write_direct_chunk((n, *(0,) * len(width)), block)
    group["n_valid"][()] = rows


@functools.cache
def gzip_zeros(size: int) -> bytes:
    return zlib.compress(bytes(size), 1)


def below(text: str) -> Make:
    """A model two folders down, and what it includes."""

    def make(folder: Path) -> Sequence[object]:
        written(folder, "x.xml", "<mujocoinclude/>")
        (folder / "a" / "b").mkdir(parents=True)
        return ["check", written(folder / "a" / "b", "model.xml", text)]

    return make


def two_up(role: str) -> Make:
    """A model whose mesh is in a folder beside the one above its own."""
    text = robot(f'<link name="a"><{role}><geometry><mesh filename="../../meshes/a.stl"/></geometry></{role}></link>')

    def make(folder: Path) -> Sequence[object]:
        (folder / "meshes").mkdir()
        written(folder / "meshes", "a.stl", lies(4))
        (folder / "robot" / "urdf").mkdir(parents=True)
        return ["check", written(folder / "robot" / "urdf", "r.urdf", text)]

    return make


def glb(more: int) -> bytes:
    """A triangle in one file, whose head declares `more` bytes than there are."""
    header = gltf(buffers=[{"byteLength": 36}]).encode()
    header += b" " * (-len(header) % 4)
    chunks = len(header).to_bytes(4, "little") + b"JSON" + header + (36).to_bytes(4, "little") + b"BIN\0" + bytes(36)
    return b"glTF" + b"".join(n.to_bytes(4, "little") for n in (2, 12 + len(chunks) + more)) + chunks


def crowd(count: int, excluded: int) -> str:
    """Free bodies, of which many pairs do not touch."""
    bodies = "".join(f'<body name="b{k}" pos="{k} 0 1"><freejoint/><geom size="0.1"/></body>' for k in range(count))
    pairs = itertools.islice(((i, (i + gap) % count) for gap in itertools.count(1) for i in range(count)), excluded)
    excludes = "".join(f'<exclude body1="b{i}" body2="b{j}"/>' for i, j in pairs)
    return f"<mujoco><worldbody>{bodies}</worldbody><contact>{excludes}</contact></mujoco>"


MANY = " ".join(f'a{k}="1"' for k in range(40_000))
MANY_ATTRIBUTES = {
    "r.urdf": '<robot><link name="a" {}/></robot>',
    "m.xml": '<mujoco><geom size="1" {}/></mujoco>',
    "m.sdf": '<sdf version="1.9"><model name="a" {}/></sdf>',
}
PLY = """ply
format ascii 1.0
element vertex 3
property float x
property float y
property float z
element face 1
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
0 1 0
3 0 {} 1
"""
TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"
BAD_INDICES: dict[str, list[str | bytes]] = {  # negative, beyond the vertices, beyond any integer
    "a.dae": [dae().replace("<p>0 1 2", f"<p>0 {k} 1") for k in ("-2", "3", "99999999999999999999")],
    "a.ply": [PLY.format(k) for k in ("-2", "3", "99999999999999999999")],
    "a.obj": [f"{TRIANGLE}f 1 {k} 2\n" for k in ("-4", "4", "99999999999999999999")],
    "a.gltf": [
        gltf(nodes=[{"mesh": -1}]),
        gltf(nodes=[{"mesh": 1}]),
        gltf(bufferViews=[{"buffer": -1, "byteLength": 36}]),
    ],
}


POLYNOMIAL = ("--steps", 50, "--record", "+mass_matrix,+energy", "--coupling", "exact", "--v0", "b=1")
CASES: list[Case] = [
    *(Case(row.name, model(row.text), 65, row.words, row.name[:2] in ("08", "09")) for row in REJECT),
    *(Case(odd.name, model(odd.text), 0, odd.words) for odd in ACCEPT),
    *(Case(f"{odd.name}_strict", model(odd.text, "--strict"), 65) for odd in ACCEPT if odd.strict),
    *(Case(row, xml(text), 65, words) for row, (text, _, words) in ROWS.items()),
    Case("10_xxe_http", model("<!DOCTYPE r SYSTEM 'http://127.0.0.1:1/x.dtd'><robot/>"), 65, ("DOCTYPE",), True),
    Case("12_deep_mjcf_400", xml(f"<mujoco><worldbody>{'<body>' * 400}{'</body>' * 400}</worldbody></mujoco>"), 0),
    Case(
        "14_huge_file",
        huge,
        65,
        ("--max-xml-mb",),
    ),
    Case("17_utf16", model(robot(link("a")).encode("utf-16")), 0),
    Case("18_bom_crlf", model(robot(link("a")).replace("\n", "\r\n").encode("utf-8-sig")), 0),
    Case("19_gz_input", model(gzip.compress(robot(link("a")).encode())), 65, ("gzip",)),
    Case("41_mass_zero_run", model(next(o.text for o in ACCEPT if o.name == "41_mass_zero"), command="run"), 65),
    Case("49_no_inertial_run", model(next(o.text for o in ACCEPT if o.name == "49_no_inertial"), command="run"), 65),
    Case("55_mesh_missing_used", model(shape('<mesh filename="no.stl"/>'), "--self-collide", "--ground", "--base",
                                       "floating", "--steps", 1, command="run"), 65, ("tried",)),
    Case("57_mesh_abs_root", model(shape('<mesh filename="/etc/passwd"/>'), "--mesh-root", "/etc"), 65, ("format",)),
    Case("58_mesh_symlink_out", placed(shape('<mesh filename="link.stl"/>'),
                                       lambda f: (f / "link.stl").symlink_to("/etc/passwd")), 65, ("outside",)),
    Case("62_mesh_dir", placed(urdf("d.stl"), lambda f: (f / "d.stl").mkdir()), 65, ("not a regular file",)),
    Case("63_mesh_fifo", placed(urdf("p.stl"), lambda f: os.mkfifo(f / "p.stl")), 65, ("not a regular file",)),
    Case("64_mesh_devzero", placed(urdf("z.stl"), lambda f: (f / "z.stl").symlink_to("/dev/zero")), 65, ("outside",)),
    Case("65_mesh_stl_lies", read_mesh(lies(4_000_000_000), "a.stl"), 65, ("4000000000",)),
    Case("66_mesh_stl_empty", read_mesh(stl(0, []), "a.stl"), 65, ("no triangles",)),
    Case("67_mesh_stl_nan", read_mesh(stl(1, [[float("nan")] * 3] * 3), "a.stl"), 65, ("not finite",)),
    Case("68_mesh_dae_laughs", read_mesh("<!DOCTYPE r [<!ENTITY a 'ha'>]>\n<COLLADA>&a;</COLLADA>", "a.dae"), 65,
         ("DOCTYPE",)),
    Case("sdf_include_outside", sdf("../../../../../../etc/passwd"), 65, ("outside the allowed roots",)),
    Case("sdf_include_link", beside(SDF.format("<include><uri>link.sdf</uri></include>"), name="model.sdf"), 65,
         ("not found",)),
    Case("sdf_include_net", sdf("http://127.0.0.1:1/model.sdf"), 65, ("http:// is not read",)),
    Case("sdf_include_itself", sdf("model.sdf"), 65, ("includes itself",)),
    Case("sdf_include_fifo", placed(SDF.format("<include><uri>p.sdf</uri></include>"),
                                    lambda f: os.mkfifo(f / "p.sdf"), name="model.sdf"), 65, ("not a regular file",)),
    Case("sdf_include_doctype", beside(SDF.format("<include><uri>b.sdf</uri></include>"),
                                       ("b.sdf", "<!DOCTYPE r [<!ENTITY a 'x'>]><sdf/>"), name="model.sdf"), 65,
         ("DOCTYPE",)),
    Case("sdf_includes_doubled", doubled, 0, ("4095 links",)),
    Case("sdf_includes_doubled_beyond", beside(
        SDF.format("".join(f"<include><uri>big.sdf</uri><name>n{n}</name></include>" for n in range(200))),
        ("big.sdf", SDF.format("".join(f'<frame name="f{n}"/>' for n in range(2000)))),
        name="model.sdf"), 65, ("beyond the limit of 250000 elements",)),
    Case("sdf_includes_in_a_row", beside(
        SDF.format("".join(f"<include><uri>b.sdf</uri><name>n{n}</name></include>" for n in range(2000))),
        ("b.sdf", SDF.format("")), name="model.sdf"), 0, ("2001 links",)),
    Case("sdf_frames_attached", frames(4000, '<frame name="f{}" attached_to="{}"/>'), 0, ("1 link",)),
    Case("sdf_frames_in_frames", frames(4000, '<frame name="f{}"><pose relative_to="{}"/></frame>'), 0, ("1 link",)),
    Case("sdf_deep", model('<sdf version="1.9">' + '<model name="m">' * 900 + "</model>" * 900 + "</sdf>"), 65,
         ("nest deeper",)),
    Case("loops_deep", beside_loops("a = " + "[" * 100_000), 65, ("not TOML",)),
    Case("loops_fifo", waiting_loops, 65, ("not a regular file",)),
    Case("loops_of_nothing", beside_loops('[[loop]]\nkind = "weld"\nlink_a = "x"\nlink_b = "world"'), 65,
         ("link_a is 'x', which is no link",)),
    Case("69_mesh_zae_bomb", placed(urdf("a.zae"), zipped("a.zae"), "--meshes"), 65, ("'.zae'",)),
    Case("70_mesh_3mf_bomb", placed(urdf("a.3mf"), zipped("a.3mf"), "--meshes"), 65, ("'.3mf'",)),
    Case("71_mesh_obj_badidx", read_mesh("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99\n", "a.obj"), 65, ("vertex 99",)),
    Case("72_mesh_obj_mtl_traversal", read_mesh("mtllib ../../../../etc/passwd\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
                                                "a.obj"), 0, (), True),
    Case("73_mesh_gltf_uri", read_mesh(gltf(buffers=[{"byteLength": 36, "uri": "../../secret"}]), "a.gltf"), 65,
         ("outside its folder",)),
    Case("74_mesh_scale_zero", beside(urdf("a.stl", "0 0 0"), ("a.stl", lies(4)), name="robot.urdf"), 65),
    Case("75_mesh_scale_neg", beside(urdf("a.stl", "-1 1 1"), ("a.stl", lies(4)), name="robot.urdf"), 0),
    Case("76_mesh_not_watertight", beside(mjcf('file="a.stl"'), ("a.stl", stl(3, TETRAHEDRON[:9]))), 0, ("closed",)),
    Case("77_mesh_10M_faces", beside(urdf("a.stl"), ("a.stl", lies(4)), more=("--meshes", "--max-faces", 3),
                                     name="robot.urdf"), 65, ("--max-faces",)),
    Case("88_xacro_code", model(f'{XACRO}<link name="${{1}}"/></robot>', name="r.xacro"), 65, ("--xacro",)),
    Case("89_chain_5000", model(chain(5000, "continuous", lambda i: f"l{i}")), 0),
    Case("90_star_20000", model(chain(20_000, "fixed", lambda i: "l0"), "--json"), 0, room=2.0),
    Case("91_m_include_self", xml(world('<include file="model.xml"/>')), 65, ("already included",)),
    Case("102_m_memory", xml(world("", '<size memory="900G"/>')), 0),
    *(Case(f"103_steps_{n}", typed("--steps", n), 2, ("--steps",)) for n in ("0", "-1", "1e30", "nan", "abc")),
    *(Case(f"104_q0_{q}", typed("--q0", q), 2, ("q0",)) for q in ("0,0", "nan", "j=nan", "k=0")),
    Case("105_out_is_model", typed("-o", "good.urdf", "--force"), 2, ("input itself",)),
    Case("105_out_is_folder", typed("-o", "."), 73),
    Case("105_out_is_full", typed("-o", "/dev/full"), 73),
    Case("106_out_exists", lambda folder: [*typed("-o", written(folder, "o.h5", "x"))(folder)], 73, ("--force",)),
    Case("107_batch_nan_q", batch(saved(with_nan(10))), 3, ("1 of 10 rows", "3")),
    Case("107_batch_nan_q_skip", batch(saved(with_nan(10)), "--on-error", "skip"), 0, ("1 of 10 rows",)),
    Case("108_batch_badshape", batch(saved(np.zeros((5, 6)))), 65),
    Case("108_batch_objects", batch(lambda path: np.save(path, np.array([{}]), allow_pickle=True)), 65),
    Case("109_batch_empty", batch(saved(np.zeros((0, 7)))), 0),
    Case("110_h5_not_hdf5", model("time,x\n", name="r.h5", command="replay"), 65, ("not an HDF5 file",)),
    Case("111_h5_truncated", truncated),
    Case("111_h5_bitflip", flipped),
    Case("112_h5_external_raw",
         output(lambda f: f.create_dataset("x", (16,), "u1", external=[("/etc/passwd", 0, 16)])),  # type: ignore[attr-defined]
         65, ("another file",), True),
    Case("113_h5_external_link", output(lambda f: f.__setitem__("x", external("/etc/hostname"))), 65, ("link",), True),  # type: ignore[attr-defined]
    Case("114_h5_vds_out", output(lambda f: f.create_virtual_dataset("x", virtual())), 65, ("virtual",), True),  # type: ignore[attr-defined]
    Case("115_h5_huge", output(lambda f: f.create_dataset("x", (10**12,), "f8", chunks=(1000,))), 65, ("declares",)),  # type: ignore[attr-defined]
    Case("116_h5_softlink_loop", output(lambda f: f.__setitem__("x", soft("/x"))), 65, ("soft link",)),  # type: ignore[attr-defined]
    Case("116_h5_hardlink_cycle", output(lambda f: f["model"].__setitem__("self", f["model"])), 65, ("circle",)),  # type: ignore[index]
    Case("118_h5_wrong_schema", output(lambda f: f.attrs.__setitem__("artsim_schema", "99.0")), 65, ("99.0",)),  # type: ignore[attr-defined]
    Case("118_h5_robomimic", crafted(lambda f: f.create_group("data/demo_0") and f.create_group("mask")), 65,  # type: ignore[attr-defined]
         ("robomimic",)),
    Case("119_h5_model_mismatch", output(None, "replay", "FILE", "--verify", "--model",
                                         ROOT / "robots" / "quadruped.urdf"), 65, ("another model",)),
    Case("120_h5_embedded_bad", output(lambda f: f["model/source"].__setitem__((), REJECT[6].text), "run", "--config",  # type: ignore[index]
                                       "FILE"), 65),
    # --- attacks that once got through
    *(Case(f"H1_{'_'.join(map(str, w))}", evil(*w), 2, ("only when typed",)) for w in (
        ("--torque", "joint_1=0.1"), ("--v0", "joint_1=0.1", "--target", "joint_1=1", "--stiffness", 1))),
    Case("H1_toml", evil(toml=True), 2, ("only when typed",)),
    Case("H2_generator", model(f'{XACRO}<link name="{GENERATOR}"/></robot>', "--xacro"), 65, ("xacro",)),
    Case("H2_vars", model(f'{XACRO}<link name="${{python.vars(python.type)}}"/></robot>', "--xacro"), 65, ("xacro",)),
    Case("H2_power", model(f'{XACRO}<link name="${{9**9**9}}"/></robot>', "--xacro"), 65, ("xacro",)),
    Case("H5_mass", model(heavy(), "--steps", 5, "-o", "result.h5", command="run"), 3, ("incoming_wrench",)),
    Case("H5_limit", model(two_links(LIMIT.replace("-1", "-1e308"), "prismatic"), command="run"), 65, ("beyond",)),
    Case("H5_polycoef", xml(polynomial(), *POLYNOMIAL, command="run"), 3, ("not finite",)),
    Case("H6_sensors", xml(world('<replicate count="1000"><site name="s"/></replicate>', SENSORS)), 65, ("limit",)),
    Case("H6_spheres", xml(replicated(40_000, '<geom size="1"/>', offset="3 0 0"), command="run"), 65, ("limit",)),
    Case("H6_pairs", xml(replicated(9_000, '<geom size="1"/>', offset="3 0 0"), command="run"), 71, ("GB",)),
    Case("H6_pin", xml(world(PINS)), 65, ("pin",)),
    Case("H6_names", xml(replicated(50_000, '<geom name="a" size="1"/>', sep="x" * 100_000)), 65, ("sep",)),
    Case("H6_heights", xml(world("", f"<asset>{FIELDS}</asset>")), 65, ("heights",)),
    Case("H6_materials", attached, 65, ("limit",)),
    Case("H6_models", embedded, 65, ("limit",)),
    Case("H6_muscles", xml(muscles(500), command="run"), 65, ("lengthrange",)),
    Case("H6_joints", xml(replicated(60_000, f"<body><joint/>{MASS}</body>", offset="1 0 0")), 65, ("limit",)),
    Case("H6_joints_of_one", xml(world(f'<body><joint/>{MASS}<replicate count="6000" offset="1 0 0">'  # one matrix
                                       f"<body><joint/>{MASS}</body></replicate></body>"), command="run"), 71, ("GB",)),
    Case("H7_final", output(bomb("final/qpos"), "run", "--resume", "FILE", "--steps", 30), 65, ("final/qpos",)),
    Case("H7_controls", output(bomb("controls/torque"), "run", "--config", "FILE"), 65, ("controls/torque",)),
    Case("H7_rows", output(long_run, "plot", "FILE", "-o", "run.png"), 65, ("trajectory/qpos unpacks",)),
    Case("H8_vcount", read_mesh(dae("3 3 999999999 3"), "a.dae"), 65, ("corners",)),
    Case("H8_instances", read_mesh(dae(instances=300_000), "a.dae"), 65, ("nodes",)),
    Case("H8_roots", read_mesh(gltf(scenes=[{"nodes": list(range(400_000))}], nodes=[{}] * 400_000), "a.gltf"), 65,
         ("nodes",)),
    Case("H9_part", linked(".part", lambda folder: ["run", ARM, "--steps", 1, "-o", folder / "out.h5"]), 73),
    Case("H9_recovering", linked(".recovering", lambda folder: ["recover", run_file(), "-o", folder / "out.h5"]), 73),
    Case("H11_dt", output(lambda f: f["trajectory"].attrs.modify("dt", -0.002), "replay", "--verify", "FILE"), 65,  # type: ignore[index]
         ("dt",)),
    Case("H11_dt_other", output(lambda f: f["trajectory"].attrs.modify("dt", 0.003), "replay", "--verify", "FILE"), 3,  # type: ignore[index]
         ("dt",)),
    Case("H11_status", output(lambda f: f["trajectory/status"].__setitem__((), 2), "replay", "--verify", "FILE"), 3),  # type: ignore[index]
    Case("H11_total", output(stepping(99), "replay", "--verify", "FILE"), 3,
         ("steps_total",)),
    Case("H13_no_configuration", output(unlike, "run", "--config", "FILE"), 65, ("no configuration",)),
    Case("H14_iterations", typed("--solver", "pgs", "--iterations", 9007199254740992), 2, ("iterations",)),
    Case("H14_iterations_stored", output(configured(iterations=9007199254740992), "run", "--config", "FILE"), 2,
         ("iterations",)),
    Case("H15_package", secret_package, 0, ("no package 'alice'",)),
    Case("H16_zero", lambda folder: ["run", ARM, "--config", "/dev/zero"], 2, ("neither a file nor a pipe",)),
    Case("H16_pipe", waiting, 2, ("named pipe",)),
    Case("H17_components", model(shape(f'<mesh filename="{"a/" * 10_000_000}x.stl"/>')), 65, ("characters",)),
    Case("H17_elements", model(f"<robot>{'<x/>' * 5_000_000}</robot>"), 65, ("elements",)),
    Case("H17_numbers", model(two_links(f'<origin xyz="{"1 " * 20_000_000}"/>{LIMIT}')), 65, ("more than 3 numbers",)),
    Case("H17_numbers_mjcf", xml(world(f'<geom size="{"1 " * 20_000_000}"/>')), 65, ("more than",)),
    Case("H18_dt", typed("--dt", "1e-320"), 2, ("dt",)),
    Case("H18_max_xml", typed("--max-xml-mb", "1e308", command="check"), 2, ("1e+308",)),
    Case("H18_contype", xml(world('<geom size="1" contype="1e29"/>')), 65, ("contype",)),
    Case("H18_toml", lambda f: ["run", ARM, "--config", written(f, "c.toml", "a = " + "[" * 100_000)], 2, ("TOML",)),
    Case("H18_npz", npz_without_npy),
    Case("H18_no_source", output(lambda f: f["model"].__delitem__("source"), "run", "--config", "FILE")),  # type: ignore[index]
    Case("H18_no_time", output(lambda f: f["final"].__delitem__("time"), "run", "--resume", "FILE", "--steps", 30)),  # type: ignore[index]
    Case("H18_step", output(lambda f: f["final/step"].__setitem__((), -5), "run", "--resume", "FILE", "--steps", 30)),  # type: ignore[index]
    Case("H18_text", output(replaced("final/qpos", data=b"text"), "run", "--resume", "FILE", "--steps", 30)),
    Case("H18_seed", typed("--seed", 2**70), 2, ("64 bits",)),
    Case("H6_png", pieces, 65, ("hfield",)),
    Case("H6_png_lines", lines, 65, ("lines",)),
    Case("H18_mcap", output(paced(1e300), "export", "FILE", "--mcap", "run.mcap"), 2, ("MCAP",)),
    Case("H18_mcap_fine", output(paced(1e-320), "export", "FILE", "--mcap", "run.mcap"), 0, ("nanosecond",)),
    Case("H18_plot_name", output(None, "plot", "FILE", "-o", "run.png", name="\udcff.h5"), 0),
    Case("H18_resume_name", output(None, "run", "--resume", "FILE", "--steps", 30, name="\udcff.h5"), 0),
    Case("H18_html_name", output(None, "export", "FILE", "--html", "run.html", name="\udcff.h5"), 0),
    Case("H19_long_line", model(robot(f'<link name="a" {"y" * 900}="1"><visual><geometry><{"z" * 900}/></geometry>'
                                      "</visual></link>")), 65),
    Case("H20_field", xml(world("", '<asset><hfield name="h" nrow="2" ncol="2" size="1 -1 1 1"/></asset>')), 65,
         ("size",)),
    Case("H20_dae_nan", read_mesh(dae(positions="0 0 nan 1 0 0 0 1 0"), "a.dae"), 65, ("not finite",)),
    Case("H20_sparse", read_mesh(gltf(accessors=[{"componentType": 5126, "count": 3, "type": "VEC3", "sparse": {}}]),
                                 "a.gltf"), 65, ("sparse",)),
    Case("H20_obj", read_mesh("v 0 0 0\nv 1_0 0 0\nv 0 1 0\nf 1 2 3\n", "a.obj"), 65, ("1_0",)),
    Case("H20_srdf", typed("--srdf", ""), 2, ("srdf",)),
    *(Case(f"H26_attributes_{name}", model(text.format(MANY), name=name), 65, ("40001 attributes", "cap of 250"))
      for name, text in MANY_ATTRIBUTES.items()),
    *(Case(f"H27_index_{k}_{name}", read_mesh(text, name), 65)
      for name, texts in BAD_INDICES.items() for k, text in enumerate(texts)),
    *(Case(f"H33_two_up_{place}", two_up(text), code, ("--mesh-root", "allows it"))
      for place, text, code in (("visual", "visual", 0), ("collision", "collision", 65))),
    Case("H33_include_two_up", below(world('<include file="../../x.xml"/>')), 65, ("outside the allowed roots",)),
    Case("H35_glb_length", read_mesh(glb(8), "a.glb"), 65, ("declares",)),
    Case("H35_glb_short", read_mesh(glb(-4), "a.glb"), 65, ("declares",)),
    *(Case(f"H35_tiny_{name}", model(text, name=f"m.{name}"), 65, ("is below 1e-12",)) for name, text in (
        ("urdf", shape('<cylinder radius="1e-320" length="1"/>')), ("xml", world('<geom size="1e-320"/>')),
        ("sdf", SDF.format('<link name="b"><collision name="c"><geometry><box><size>1 1 1e-310</size></box></geometry>'
                           "</collision></link>").replace('<link name="a"/>', "")))),
    Case("H35_tiny_scale", beside(urdf("a.stl", "1 1e-300 1"), ("a.stl", lies(4)), name="robot.urdf"), 65, ("scale",)),
    Case("H35_crowd", xml(crowd(3_000, 45_000), "--steps", 1, command="run"), 71, ("18000 x 18000 takes 2.59 GB",)),
    Case("H36_mimic_chain_5000", model(mimics(5000, lambda i: f"l{i}")), 0),
    Case("H36_star_of_hinges", model(chain(10_000, "continuous", lambda i: "l0"), "--json"), 0, room=2.0),
    Case("H23_config", toml(f"{DOTS} = 1"), 2, ("parts",)),
    Case("H23_config_header", toml(f"[{DOTS}]"), 2, ("parts",)),
    Case("H23_config_hidden", toml(f'x = """a"""""\n{DOTS} = 1'), 2, ("parts",)),
    Case("H23_config_lines", toml("\n".join(f"[a.b.c.d.e.f.g.k{n}]" for n in range(50_000))), 2, ("not known",)),
    Case("H23_loops", toml(f"[[loop]]\n{DOTS} = 1", "--loops"), 65, ("parts",)),
    Case("H23_loops_inline", toml(f"loop = [{{ {DOTS} = 1 }}]", "--loops"), 65, ("parts",)),
    Case("H23_digits", toml(f"seed = {'9' * 5000}"), 2, ("64 bits",)),
    Case("H23_hexadecimal", toml(f"seed = 0x{'f' * 5000}"), 2, ("64 bits",)),
    Case("H28_mass", output(lambda f: f["model/link_mass"].__setitem__(..., 7.0), *VERIFY), 3, ("model/link_mass",)),  # type: ignore[index]
    Case("H28_limit", output(lambda f: f["model/joint_upper"].__setitem__(..., 7.0), *VERIFY), 3, ("joint_upper",)),  # type: ignore[index]
    Case("H28_unit", output(lambda f: f["trajectory/qpos"].attrs.modify("units", "deg"), *VERIFY), 3, ("units",)),  # type: ignore[index]
    Case("H28_source", output(commented, *VERIFY), 3, ("sha256",)),
    Case("H28_foreign", output(lambda f: f.create_dataset("model/mine", (3,)), *VERIFY), 0, ("no seal",)),  # type: ignore[attr-defined]
    Case("H28_command", output(lambda f: f["provenance"].attrs.modify("command", "x"), *VERIFY), 0, ("no seal",)),  # type: ignore[index]
    Case("H29_push", typed("--push", "b=1,0,0@1e400"), 2, ("push",)),
    Case("H29_checkpoint", typed("--checkpoint", 2**63), 2, ("64 bits",)),
    Case("H29_seed", typed("--samples", 1, "--compute", "gravity", "--seed", 2**63, command="batch"), 2, ("64 bits",)),
    Case("H29_sleep", typed("--sleep-time", "1e300"), 0),
    Case("H29_fps", output(None, "export", "FILE", "--html", "x.html", "--fps", "1e-320"), 2, ("range",)),
    Case("H29_shard", typed("--samples", 1, "--compute", "gravity", "--shard", "1/999999999", "-o", "o.h5",
                            command="batch"), 2, ("shards",)),
    Case("H29_name", toml('[[loop]]\nname = "a\\u0000b"\nkind = "weld"', "--loops"), 65, ("name",)),
    Case("H31_wrench", typed("--wrench", "b=1_0,0,0"), 2, ("1_0",)),
    Case("H31_digits", typed("--q0", "j=\u0661"), 2, ("number",)),
    Case("H31_steps", typed("--steps", "1_0"), 2, ("1_0",)),
    Case("H31_steps_digits", typed("--steps", "\uff11"), 2, ("whole number",)),
    Case("H31_push", typed("--push", "b=1_0,0,0@0"), 2, ("push",)),
    Case("H31_at", typed("--wrench", "b=1,0,0", "--wrench-at", "b=1_0,0,0"), 2, ("1_0",)),
    Case("H32_row", output(lambda f: f["trajectory/qvel"].__setitem__((3, 0), np.inf), *RESUME), 65, ("qvel",)),  # type: ignore[index]
    Case("H32_late_row", output(lambda f: f["trajectory/qpos"].__setitem__((19, 0), np.nan), *RESUME), 65, ("qpos",)),  # type: ignore[index]
    Case("H32_state", output(lambda f: f["final/qvel"].__setitem__(0, np.inf), *RESUME), 65, ("qvel",)),  # type: ignore[index]
    *(Case(f"H35_{name}", lambda folder, words=words: words, code, told) for name, words, code, told in ENDLESS),
    Case("H35_link", linked_configurations, 65, ("empty",)),
    Case("H35_output", typed("-o", "/proc/x.h5"), 74 if os.geteuid() == 0 else 73, ("/proc/x.h5",)),
    Case("H35_rows", output(long_run, "export", "FILE", "--csv", "run.csv"), 65, ("unpack",)),
    Case("H35_rows_npz", output(long_run, "export", "FILE", "--npz", "run.npz"), 65, ("unpack",)),
    Case("H35_rows_verified", output(long_run, "replay", "--verify", "FILE"), 65, ("unpack",)),
]  # fmt: skip


def external(path: str) -> object:
    import h5py

    return h5py.ExternalLink(path, "/x")


def soft(path: str) -> object:
    import h5py

    return h5py.SoftLink(path)


def virtual() -> object:
    import h5py

    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", (4,))
    return layout


# rows whose attack is no command with a file: the test that shows each
ELSEWHERE = {
    "39": "test_bad_inputs.py::test_39_numbers_do_not_depend_on_the_locale",
    "117": "test_io.py::test_the_gate_refuses",
    "F1": "test_recover.py",
    "F2": "test_cli_run.py::test_f2_signals",
    "F3": "test_io.py",
    "F4": "test_cli_run.py",
    "F5": "test_cli_run.py::test_f5_folder_without_permission",
    "F6": "test_cli_batch.py::test_f6_no_memory",
    "F7": "test_faults.py::test_f7_a_file_that_is_being_written_is_read_and_written_by_nobody_else",
    "F8": "test_jit.py::test_f8_without_a_home_kernels_are_kept_among_temporary_files",
    "F9": "test_jit.py::test_damage_is_noticed_and_mended",
    "F10": "test_jit.py::test_f10_one_of_the_processes_that_start_together_compiles",
    "F11": "test_jit.py::test_threads_that_start_together_load_a_kernel_once",
    "F12": "test_faults.py::test_f12_a_child_forked_while_a_thread_loads_kernels_can_load_its_own",
    "F13": "test_shards.py::test_f13_a_killed_worker_s_shard_is_done_again",
    "F14": "test_shards.py::test_f14_a_shard_that_does_not_fit_is_named",
    "F15": "test_shards.py::test_f15_resume_computes_what_is_missing_only",
    "F16": "test_faults.py::test_f16_nobody_reads_the_output",
    "F17": "test_faults.py::test_f17_neither_place_nor_clock_changes_a_number",
    "F18": "test_viewer.py",
    "F19": "test_viewer.py",
    "F20": "test_cli_run.py::test_f20_unstable_gains",
    "F21": "test_verify.py",
    "H3": "test_jit.py::test_kernels_are_not_taken_from_where_others_can_write",
    "H4": "test_shards.py::test_f13_a_killed_worker_s_shard_is_done_again",
    "H10": "test_jit.py::test_an_object_under_another_name_is_not_run",
    "H22": "test_apart.py::test_children_end_with_their_parent",
    "H28": "test_verify.py::test_facts_beside_rows_are_compared_or_told",
    "H29": "test_numbers.py::test_odd_numbers_end_in_a_line",
    "H30": "test_exports.py::test_every_file_is_on_the_disk_before_it_has_its_name",
    "H34": "test_jit.py::test_lists_and_links_of_others_are_told",
    "H35": "test_exports.py::test_exports_are_all_written_or_none",
    "H19": "test_viewer.py::test_messages_that_are_none_take_a_line_each",
    "H12": "test_resume.py::test_a_run_that_cannot_go_on_stays_as_it_was",
    "H21": "test_exports.py::test_names_in_csv_are_no_formulas",
}
"""By row: a file of tests, and the test in it where one alone shows the row."""
