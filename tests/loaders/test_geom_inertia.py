"""Mass and inertia of geoms and meshes: closed forms, and MuJoCo's compiler on generated models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import trimesh
from numpy.typing import NDArray

from artsim.loaders.load import load_text
from artsim.loaders.mjcf.geom_inertia import MeshShape, body_inertia, fromto_geom, geom_inertia, principal_axes
from artsim.loaders.mjcf.mesh_inertia import MESH_INERTIAS, fit_to_mesh, mesh_geom_pose, mesh_shape, read_mesh_shape
from artsim.sim.articulation.description import Pose
from artsim.sim.foundation.rotations import rotation_matrix
from tests.conftest import corpus

SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
Vector = NDArray[np.float64]


def text(values: Any) -> str:
    """Numbers as an attribute, all their digits."""
    return " ".join(repr(float(value)) for value in np.ravel(values))


def tensor(rotation: Any, moments: Any) -> Vector:
    """Inertia in the body's axes."""
    R = rotation_matrix(tuple(rotation))
    found: Vector = R @ np.diag(moments) @ R.T
    return found


def close(ours: Any, theirs: Any, what: str = "", scale: float = 0.0) -> None:
    """Equal to 1e-9 of the largest entry (or of `scale`)."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert np.abs(ours - theirs).max() <= 1e-9 * max(np.abs(theirs).max(), scale), f"{what}: {ours} {theirs}"


def quaternions(rng: np.random.Generator) -> tuple[float, float, float, float]:
    """A random rotation."""
    w, x, y, z = (q := rng.normal(size=4)) / np.linalg.norm(q)
    return (float(w), float(x), float(y), float(z))


# --- primitives ------------------------------------------------------------------------------------------------------


def random_geom(rng: np.random.Generator) -> tuple[str, Any]:
    """A <geom> and what we make of it."""
    kind = str(rng.choice(list(SIZES)))
    scale = 10 ** rng.uniform(-3, 1)
    size = tuple(rng.uniform(0.1, 1, SIZES[kind]) * scale)
    shell, density = bool(rng.integers(2)), rng.uniform(100, 2000)
    mass = rng.uniform(0.1, 3) if rng.integers(2) else None
    words = f'type="{kind}" shellinertia="{str(shell).lower()}" density="{text(density)}"'
    words += f' mass="{text(mass)}"' if mass is not None else ""
    if rng.integers(3) == 0 and kind != "sphere":
        ends = rng.normal(size=6) * scale
        if rng.integers(4) == 0:
            ends[3:5] = ends[:2]  # along z, up or down
        words += f' fromto="{text(ends)}" size="{text(size[0])}"'
        size, pose = fromto_geom(kind, size, ends)  # type: ignore[assignment]
    else:
        x, y, z = rng.normal(size=3) * scale
        pose = Pose((x, y, z), quaternions(rng))
        words += f' pos="{text(pose.position)}" quat="{text(pose.rotation)}" size="{text(size)}"'
    return f"<geom {words}/>", (geom_inertia(kind, size, mass=mass, density=density, shell=shell), pose)


@pytest.mark.parametrize("seed", range(150))
def test_bodies_of_primitives(seed: int) -> None:
    """One to three geoms: mass, centre of mass and inertia of the body, and the moments in MuJoCo's order."""
    rng = np.random.default_rng(seed)
    geoms = [random_geom(rng) for _ in range(rng.integers(1, 4))]
    body = "".join(xml for xml, _ in geoms)
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody><body><freejoint/>{body}</body></worldbody></mujoco>")
    found = body_inertia([part for _, part in geoms])
    assert found is not None
    close(found.mass, model.body_mass[1], "mass")
    close(found.pose.position, model.body_ipos[1], "centre")
    close(found.moments, model.body_inertia[1], "moments")
    close(tensor(found.pose.rotation, found.moments), tensor(model.body_iquat[1], model.body_inertia[1]), "tensor")


def test_solids_by_integration() -> None:
    """The closed forms against sums over fine meshes."""
    for kind, size, mesh in (
        ("sphere", (0.3,), trimesh.creation.icosphere(5, radius=0.3)),
        ("capsule", (0.2, 0.35), trimesh.creation.capsule(height=0.7, radius=0.2, count=[200, 200])),
        ("cylinder", (0.2, 0.35), trimesh.creation.cylinder(radius=0.2, height=0.7, sections=400)),
        ("box", (0.1, 0.2, 0.3), trimesh.creation.box(extents=(0.2, 0.4, 0.6))),
    ):
        found = geom_inertia(kind, size, density=1.0)
        assert found.mass == pytest.approx(mesh.volume, rel=2e-3)
        assert found.moments == pytest.approx(np.diag(mesh.moment_inertia), rel=4e-3)


def test_two_halves_are_a_box() -> None:
    whole = geom_inertia("box", (0.2, 0.3, 0.1), mass=4.0)
    half = geom_inertia("box", (0.1, 0.3, 0.1), mass=2.0)
    found = body_inertia([(half, Pose((0.1, 1.0, 2.0))), (half, Pose((0.3, 1.0, 2.0)))])
    assert found is not None
    close(found.pose.position, (0.2, 1.0, 2.0))
    close(tensor(found.pose.rotation, found.moments), np.diag(whole.moments))


def test_without_mass_there_is_no_inertia() -> None:
    plane, nothing = geom_inertia("plane", (1, 1, 1)), geom_inertia("sphere", (0.1,), mass=0.0)
    assert plane.mass == nothing.mass == 0.0
    assert body_inertia([(plane, Pose()), (nothing, Pose())]) is None


@pytest.mark.parametrize(
    ("kind", "options"),
    [("sphere", {"mass": -1.0}), ("sphere", {"density": -1.0}), ("blob", {}), ("mesh", {})],
)
def test_what_is_refused(kind: str, options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"negative|inertia of geom type|needs its mesh"):
        geom_inertia(kind, (0.1,), **options)  # type: ignore[arg-type]


def test_fromto_without_length_is_refused() -> None:
    with pytest.raises(ValueError, match="coincide"):
        fromto_geom("capsule", (0.1,), (1, 2, 3, 1, 2, 3))
    with pytest.raises(ValueError, match="not sphere"):
        fromto_geom("sphere", (0.1,), (1, 2, 3, 1, 2, 4))


def test_axes_of_nearly_equal_moments_stay() -> None:
    """Which axes a body gets must not hang on rounding: MuJoCo leaves those alone that differ by less than 1e-12."""
    noise = 1e-15
    moments, rotation = principal_axes([[1.0, noise, 0.0], [noise, 1.0 + noise, 0.0], [0.0, 0.0, 0.5]])
    assert rotation == (1.0, 0.0, 0.0, 0.0)
    assert moments == pytest.approx((1.0, 1.0, 0.5))


# --- meshes ----------------------------------------------------------------------------------------------------------


def random_mesh(rng: np.random.Generator) -> trimesh.Trimesh:
    """A closed surface far from any symmetry; some are of two pieces or have a hole through them."""
    which = rng.integers(4)
    if which == 0:
        mesh = trimesh.creation.icosphere(2)
        mesh.vertices += 0.05 * rng.normal(size=mesh.vertices.shape)
    elif which == 1:
        mesh = trimesh.creation.box()
    elif which == 2:
        mesh = trimesh.creation.torus(1, 0.3, 12, 8)
    else:
        mesh = trimesh.creation.box() + trimesh.creation.cylinder(0.3, 1.2)
        mesh.vertices[8:] += rng.uniform(-1, 1, 3)
    mesh.vertices *= rng.uniform(0.3, 1, 3)
    mesh.apply_transform(trimesh.transformations.random_rotation_matrix(rng.uniform(size=3)))
    mesh.vertices += rng.normal(size=3) * rng.choice([0, 0.1, 2])
    mesh.vertices *= 10 ** rng.uniform(-3, 1)
    return mesh


def as_obj(mesh: trimesh.Trimesh) -> str:
    """OBJ with every digit: float32 to MuJoCo, and so to us."""
    lines = [f"v {text(point)}" for point in mesh.vertices]
    return "\n".join([*lines, *("f " + " ".join(str(i + 1) for i in face) for face in mesh.faces)])


def compare(model: Any, pose: Pose, found: Any, shape: MeshShape) -> None:
    """A compiled body of one geom, and what we say of it."""
    extent = float(np.abs(shape.upper).max())
    close(found.mass, model.body_mass[1], "mass")
    close(found.pose.position, model.body_ipos[1], "centre", scale=extent)
    close(found.moments, model.body_inertia[1], "moments")
    close(tensor(found.pose.rotation, found.moments), tensor(model.body_iquat[1], model.body_inertia[1]), "tensor")
    close(pose.position, model.geom_pos[0], "pos of the geom", scale=extent)
    a, b, c = sorted(shape.box)
    if min(b - a, c - b) > 1e-3 * c:  # else the axes are anybody's choice
        sign = np.sign(np.dot(pose.rotation, model.geom_quat[0]))
        close(sign * np.array(pose.rotation), model.geom_quat[0], "quat of the geom")


@pytest.mark.parametrize("seed", range(100))
def test_meshes_and_what_is_fitted_to_them(seed: int, tmp_path: Path) -> None:
    """All kinds of inertia, scale (mirroring too), refpos, refquat, STL and OBJ, fitting by box and by bounds."""
    rng = np.random.default_rng(seed)
    mesh = random_mesh(rng)
    path = tmp_path / f"mesh_{seed}.{rng.choice(['stl', 'obj'])}"
    path.write_text(as_obj(mesh)) if path.suffix == ".obj" else mesh.export(path)
    options: dict[str, Any] = {"kind": str(rng.choice(MESH_INERTIAS))}
    words = f'inertia="{options["kind"]}"'
    if rng.integers(4):
        options["scale"] = rng.uniform(0.2, 3, 3) * rng.choice([1, 1, -1], 3)
        words += f' scale="{text(options["scale"])}"'
    if rng.integers(2):
        options["refpos"], options["refquat"] = rng.normal(size=3) * mesh.scale, rng.normal(size=4)
        words += f' refpos="{text(options["refpos"])}" refquat="{text(options["refquat"])}"'
    kind, aabb, fitscale = str(rng.choice(["mesh", "mesh", *SIZES])), bool(rng.integers(2)), rng.uniform(0.5, 2)
    x, y, z = rng.normal(size=3)
    pose = Pose((x, y, z), quaternions(rng))
    model_text = f"""<mujoco><compiler fitaabb="{str(aabb).lower()}"/>
        <asset><mesh name="m" file="{path}" {words}/></asset><worldbody><body><freejoint/>
        <geom type="{kind}" mesh="m" density="750" fitscale="{text(fitscale)}" pos="{text(pose.position)}"
        quat="{text(pose.rotation)}"/></body></worldbody></mujoco>"""
    shape = read_mesh_shape(path, **options)
    size, centre = ((), (0.0, 0.0, 0.0)) if kind == "mesh" else fit_to_mesh(kind, shape, aabb=aabb, scale=fitscale)
    if kind != "mesh" and min(size[: SIZES[kind]]) <= 0:
        return  # a capsule by bounds that are wider than long: MuJoCo refuses it, and so does the reader
    model = mujoco.MjModel.from_xml_string(model_text)
    pose = mesh_geom_pose(pose, shape, centre)
    found = body_inertia([(geom_inertia(kind, size, density=750.0, mesh=shape), pose)])
    compare(model, pose, found, shape)
    if kind != "mesh":
        close(size[: SIZES[kind]], model.geom_size[0][: SIZES[kind]], "size")


def compiled(attributes: str) -> Any:
    """A body with one mesh geom that nothing collides with."""
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><mesh name="m" {attributes}/></asset><worldbody><body><freejoint/>'
        '<geom type="mesh" mesh="m" contype="0" conaffinity="0"/></body></worldbody></mujoco>'
    )


def check_points(points: Vector, faces: Any, options: dict[str, Any]) -> None:
    """A mesh written into the model."""
    words = " ".join(f'{"inertia" if name == "kind" else name}="{value}"' for name, value in options.items())
    shown = f'face="{" ".join(map(str, np.ravel(faces)))}"' if len(faces) else ""
    model = compiled(f'vertex="{text(points)}" {shown} {words}')
    shape = mesh_shape(np.ravel(points).tolist(), np.ravel(faces).tolist(), **options)
    pose = mesh_geom_pose(Pose(), shape)
    compare(model, pose, body_inertia([(geom_inertia("mesh", (), mesh=shape), pose)]), shape)


@pytest.mark.parametrize("kind", MESH_INERTIAS)
def test_points_without_faces_mean_their_hull(kind: str) -> None:
    check_points(np.random.default_rng(1).normal(size=(40, 3)), [], {"kind": kind})


@pytest.mark.parametrize("most", [4, 8, 20])
def test_hulls_of_few_vertices(most: int) -> None:
    check_points(np.random.default_rng(2).normal(size=(60, 3)), [], {"kind": "convex", "maxhullvert": most})


@pytest.mark.parametrize("kind", MESH_INERTIAS)
def test_open_surfaces(kind: str) -> None:
    """A box without its first face."""
    box = trimesh.creation.box(extents=(1, 2, 3))
    check_points(box.vertices, box.faces[2:], {"kind": kind})


def test_faces_that_disagree() -> None:
    box = trimesh.creation.box(extents=(1, 2, 3))
    faces = box.faces.copy()
    faces[0] = faces[0][::-1]
    check_points(box.vertices, faces, {"kind": "legacy"})  # absolute volumes forgive it
    with pytest.raises(ValueError, match="same direction"):
        mesh_shape(box.vertices, faces, kind="exact")
    with pytest.raises(ValueError, match="inconsistent orientation"):
        compiled(f'inertia="exact" vertex="{text(box.vertices)}" face="{" ".join(map(str, np.ravel(faces)))}"')


@pytest.mark.parametrize(
    ("change", "kind", "reason"),
    [
        (lambda points, faces: (points, faces[:, ::-1]), "exact", "inside out"),
        (lambda points, faces: (points * (1, 1, 0), faces), "legacy", "no volume"),
        (lambda points, faces: (points * (1, 1, 0), faces), "convex", "lie in a plane"),
        (lambda points, faces: (points * 1e-6, faces), "exact", "no volume"),
        (lambda points, faces: (points * 0, faces), "shell", "no surface"),
    ],
)
def test_meshes_without_inertia(change: Any, kind: str, reason: str) -> None:
    """What no inertia can be had of is refused, and by MuJoCo too."""
    box = trimesh.creation.box(extents=(1, 2, 3))
    points, faces = change(box.vertices, box.faces)
    with pytest.raises(ValueError, match=reason):
        mesh_shape(points, faces, kind=kind)
    with pytest.raises(ValueError, match="mesh"):
        compiled(f'inertia="{kind}" vertex="{text(points)}" face="{" ".join(map(str, np.ravel(faces)))}"')


@pytest.mark.parametrize(
    ("vertices", "faces", "scale", "reason"),
    [
        ([0.0] * 9, [], (1, 1, 1), "four vertices"),
        ([0.0] * 13, [], (1, 1, 1), "threes"),
        ([0.0] * 12, [0, 1], (1, 1, 1), "threes"),
        ([0.0] * 12, [0, 1, 4], (1, 1, 1), "does not exist; there are 4"),
        ([0.0] * 12, [0, 1, -1], (1, 1, 1), "does not exist"),
        ([0.0] * 12, [0, 1, 2], (1, 0, 1), "flattens"),
    ],
)
def test_numbers_that_make_no_mesh(vertices: Any, faces: Any, scale: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        mesh_shape(vertices, faces, scale=scale, kind="shell")


def test_boxes_of_nearly_equal_sides_keep_their_axes() -> None:
    """Meshes are float32 to MuJoCo: moments that differ by 1e-7 of themselves are equal to it."""
    box = trimesh.creation.box(extents=(2, 2, 2))
    for stretch in (1e-9, 3e-8, 1e-6):
        model = compiled(
            f'inertia="exact" scale="{1 + stretch!r} 1 2" vertex="{text(box.vertices)}" '
            f'face="{" ".join(map(str, np.ravel(box.faces)))}"'
        )
        shape = mesh_shape(box.vertices, box.faces, kind="exact", scale=(1 + stretch, 1, 2))
        close(shape.pose.rotation, model.geom_quat[0])


def test_of_an_obj_the_first_object_counts(tmp_path: Path) -> None:
    """With the vertices of all: the hull is that of every object."""
    near, far = trimesh.creation.box(), trimesh.creation.box(extents=(1, 2, 3))
    far.vertices += 5
    lines = [f"v {text(point)}" for point in (*near.vertices, *far.vertices)]
    lines += ["o near", *("f " + " ".join(str(i + 1) for i in face) for face in near.faces)]
    lines += ["o far", *("f " + " ".join(str(i + 9) for i in face) for face in far.faces)]
    path = tmp_path / "two.obj"
    path.write_text("\n".join(lines))
    for kind in MESH_INERTIAS:
        model, shape = compiled(f'file="{path}" inertia="{kind}"'), read_mesh_shape(path, kind=kind)
        pose = mesh_geom_pose(Pose(), shape)
        compare(model, pose, body_inertia([(geom_inertia("mesh", (), mesh=shape), pose)]), shape)


def test_a_bad_file_is_a_value_error_too(tmp_path: Path) -> None:
    (tmp_path / "a.stl").write_bytes(b"")
    with pytest.raises(ValueError, match=r"'a.stl': empty file"):
        read_mesh_shape(tmp_path / "a.stl")


@pytest.mark.corpus
@pytest.mark.skipif(corpus() is None, reason="no corpus; set ARTSIM_CORPUS")
@pytest.mark.parametrize("kind", MESH_INERTIAS)
def test_public_meshes(kind: str) -> None:
    """Every STL, OBJ and MSH of the corpus that MuJoCo compiles; what it refuses we refuse, but for STL in text."""
    folder = corpus()
    assert folder is not None
    agreed = 0
    paths = sorted(Path(root) / name for root, _, names in os.walk(folder / "files") for name in names)
    for path in {path.read_bytes(): path for path in paths if path.suffix.lower() in (".stl", ".obj", ".msh")}.values():
        try:
            model = compiled(f'file="{path}" inertia="{kind}"')
        except ValueError as error:
            if "ASCII" not in str(error):
                with pytest.raises(ValueError):
                    read_mesh_shape(path, kind=kind)
            continue
        shape = read_mesh_shape(path, kind=kind)
        pose = mesh_geom_pose(Pose(), shape)
        compare(model, pose, body_inertia([(geom_inertia("mesh", (), mesh=shape), pose)]), shape)
        agreed += 1
    assert agreed > 200


@pytest.mark.parametrize("shape", ["box' size='1e-6 1e-6 1e-6", "sphere' size='1e-6", "capsule' size='1e-7 1e-3"])
def test_a_tiny_geom_keeps_its_mass(shape: str) -> None:
    """MuJoCo leaves the mass of the file out; a hundred times as large it does not, and agrees."""
    geoms = "<geom type='{}' mass='2'/><geom size='0.1' mass='1' pos='1 0 0'/>"
    text = f"<mujoco><worldbody><body><joint/>{geoms}</body></worldbody></mujoco>"
    robot = load_text(text.format(shape), name="m.xml")
    inertial = robot.links[1].inertial
    assert inertial is not None and inertial.mass == 3
    assert inertial.pose.position == pytest.approx((1 / 3, 0, 0))
    assert [note.message for note in robot.notes] == [
        "<geom> of <body>: keeps its mass of 2 kg; MuJoCo gives none to so small a geom"
    ]
    assert mujoco.MjModel.from_xml_string(text.format(shape)).body_mass[1] == 1
    larger = text.format(shape.replace("e-6", "e-4").replace("e-7", "e-5"))
    theirs, ours = mujoco.MjModel.from_xml_string(larger), load_text(larger, name="m.xml")
    inertial = ours.links[1].inertial
    assert inertial is not None and not ours.notes
    assert (inertial.mass, inertial.pose.position[0]) == pytest.approx((theirs.body_mass[1], theirs.body_ipos[1][0]))
