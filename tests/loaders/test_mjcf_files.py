"""Files that MJCF names, found where MuJoCo finds them: the same one of several, and none where it finds none."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import mujoco
import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import ModelError

COMPILERS = {
    "": "",
    "meshdir": '<compiler meshdir="m"/>',
    "assetdir": '<compiler assetdir="m"/>',
    "strippath": '<compiler strippath="true"/>',
    "strippath in m": '<compiler strippath="true" meshdir="m"/>',
    "both": '<compiler meshdir="m" assetdir="n"/>',
    "in two": '<compiler meshdir="m"/><compiler assetdir="n"/>',
    "in the included": "",
}
PLACES = ("", "sub", "m", "sub/m", "n")  # folders that may hold the file


def tetrahedron(size: float) -> bytes:
    """A binary STL."""
    corners = size * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    rows = (struct.pack("<12f", 0, 0, 0, *corners[list(face)].ravel()) + b"\0\0" for face in faces)
    return b"\0" * 80 + struct.pack("<I", 4) + b"".join(rows)


def heights(size: float) -> bytes:
    """MuJoCo's own format."""
    return struct.pack("<2i4f", 2, 2, 0, size, 10, 5)


def written(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / "model.xml"


def theirs(path: Path) -> float | None:
    """MuJoCo's mass of what moves, or the second height; None where it finds no file."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        assert "opening" in str(error), error
        return None
    return float(model.hfield_data[1]) if model.nhfield else float(model.body_mass[1:].sum())


def ours(path: Path) -> float | None:
    try:
        robot = load_articulation(path)
    except ModelError as error:
        assert "not found" in str(error), error
        return None
    geoms = [geom for link in robot.links for geom in link.geoms if geom.kind == "heightfield"]
    if geoms:
        return geoms[0].heights[0][1] / 10 if geoms[0].heights else None
    return sum(link.inertial.mass for link in robot.links if link.inertial is not None)


def mesh_model(compiler: str, inner: str, uri: str) -> dict[str, str | bytes]:
    body = '<body><joint/><geom type="mesh" mesh="a"/></body>'
    return {
        "model.xml": f'<mujoco>{compiler}<include file="sub/i.xml"/><worldbody>{body}</worldbody></mujoco>',
        "sub/i.xml": f'<mujocoinclude>{inner}<asset><mesh name="a" file="{uri}"/></asset></mujocoinclude>',
    }


def field_model(compiler: str, inner: str, uri: str) -> dict[str, str | bytes]:
    body = '<geom type="hfield" hfield="h"/>'
    field = f'<hfield name="h" size="1 1 10 1" file="{uri}"/>'
    return {
        "model.xml": f'<mujoco>{compiler}<include file="sub/i.xml"/><worldbody>{body}</worldbody></mujoco>',
        "sub/i.xml": f"<mujocoinclude>{inner}<asset>{field}</asset></mujocoinclude>",
    }


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("uri", ["a", "x/a"])
@pytest.mark.parametrize(
    ("make", "suffix", "content"), [(mesh_model, ".stl", tetrahedron), (field_model, ".bin", heights)]
)
def test_beside_included(
    make: Callable[[str, str, str], dict[str, str | bytes]],
    suffix: str,
    content: Callable[[float], bytes],
    uri: str,
    compiler: str,
    tmp_path: Path,
) -> None:
    """For every set of places that hold the file, the one that MuJoCo takes. Where it looks in assetdir for a height
    field, and then reads it from meshdir, it finds none where we do.
    """
    inner = '<compiler meshdir="m"/>' if compiler == "in the included" else ""
    found = 0
    for chosen in range(1, 1 << len(PLACES)):
        at = [place for k, place in enumerate(PLACES) if chosen >> k & 1]
        files = {f"{place}/{uri}{suffix}".lstrip("/"): content(k + 1.0) for k, place in enumerate(at)}
        stripped = {f"{place}/a{suffix}".lstrip("/"): content(k + 1.0) for k, place in enumerate(at)}
        path = written(
            tmp_path / str(chosen),
            {**make(COMPILERS[compiler], inner, uri + suffix), **(stripped if "strippath" in compiler else files)},
        )
        truth = theirs(path)
        if truth is not None:
            assert ours(path) == pytest.approx(truth, rel=1e-6), at
            found += 1
        elif make is mesh_model and compiler != "in two":  # read from another folder than it was found in
            assert ours(path) is None, at
    assert found >= 15


@pytest.mark.parametrize("places", [["sub"], ["."], ["sub", "."]])
def test_models_that_included_files_name(places: Sequence[str], tmp_path: Path) -> None:
    """<model>: beside the included file. MuJoCo looks nowhere else; we look in the model's own folder, too."""
    kid = '<mujoco model="c"><worldbody><body name="b"><joint/><geom size="{}"/></body></worldbody></mujoco>'
    attach = '<worldbody><attach model="c" body="b" prefix="p"/></worldbody>'
    path = written(
        tmp_path,
        {
            "model.xml": f'<mujoco><include file="sub/i.xml"/>{attach}</mujoco>',
            "sub/i.xml": '<mujocoinclude><asset><model name="c" file="c.xml"/></asset></mujocoinclude>',
            **{f"{place}/c.xml": kid.format(k + 1) for k, place in enumerate(places)},
        },
    )
    assert ours(path) == pytest.approx(1000 * 4 / 3 * np.pi)
    if "sub" in places:
        assert theirs(path) == pytest.approx(ours(path), rel=1e-6)


def test_flexcomps_of_included_files(tmp_path: Path) -> None:
    """Points beside the included file, whatever meshdir says; a file of the model's own folder counts first, and is
    then read from meshdir."""
    obj = "v 0 0 0\nv {0} 0 0\nv 0 {0} 0\nv 0 0 {0}\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    flex = '<flexcomp name="f" type="mesh" file="a.obj" dim="2" mass="1"><edge equality="true"/></flexcomp>'
    path = written(
        tmp_path,
        {
            "model.xml": '<mujoco><compiler meshdir="m"/><worldbody><include file="sub/i.xml"/></worldbody></mujoco>',
            "sub/i.xml": f'<mujocoinclude><body name="q">{flex}</body></mujocoinclude>',
            "sub/a.obj": obj.format(2),
        },
    )
    mujoco_model = mujoco.MjModel.from_xml_path(str(path))
    assert artsim.load(path).articulation.links[-1].name and mujoco_model.body_pos.max() == 2
    assert max(max(joint.pose.position) for joint in load_articulation(path).joints) == 2


def test_an_output_finds_them_again(tmp_path: Path) -> None:
    """The text that outputs store is one file, and says where the mesh is."""
    path = written(tmp_path, {**mesh_model("", "", "a.stl"), "sub/a.stl": tetrahedron(1)})
    robot = load_articulation(path)
    assert "<include" not in robot.text and 'file="sub/a.stl"' in robot.text
    stored = written(tmp_path, {"model.xml": robot.text, "sub/i.xml": ""})
    assert ours(stored) == ours(path)
    assert robot.links[1].geoms[0].mesh == (tmp_path / "sub" / "a.stl").resolve()
