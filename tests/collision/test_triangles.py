"""Triangle meshes and height fields against convex shapes. Truths: coal's distance to the triangles, closed forms of a
plane, MuJoCo's contacts.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import trimesh
from numpy.typing import NDArray
from scipy.spatial import Delaunay
from scipy.spatial.transform import Rotation

from artsim.collision.build import Solid
from artsim.sim.foundation.jit import disabled
from tests.collision.triangle_kernels import deepest, found, solid, touch

Real = NDArray[np.float64]
SIZES: dict[str, tuple[float, ...]] = {
    "sphere": (0.3,),
    "capsule": (0.1, 0.3),
    "ellipsoid": (0.1, 0.2, 0.3),
    "cylinder": (0.2, 0.3),
    "box": (0.2, 0.3, 0.1),
    "convex": (),
}
POINTS = np.random.default_rng(0).normal(size=(40, 3)) * 0.2
POINTS -= (POINTS.max(axis=0) + POINTS.min(axis=0)) / 2
MANY = 5 if disabled() else 150
shapes = pytest.mark.parametrize("name", SIZES)


def moving(name: str) -> Solid:
    return solid(name, points=POINTS) if name == "convex" else solid(name, size=SIZES[name])


def lowest(name: str, rotation: Real) -> Any:
    """The least z of a shape at the origin."""
    down, size = -rotation[2], np.array(SIZES[name])
    if name == "convex":
        return -(POINTS @ down).max()
    return -{
        "sphere": lambda: size[0],
        "capsule": lambda: size[0] + size[1] * abs(down[2]),
        "ellipsoid": lambda: np.linalg.norm(size * down),
        "cylinder": lambda: size[0] * np.hypot(down[0], down[1]) + size[1] * abs(down[2]),
        "box": lambda: np.abs(size * down).sum(),
    }[name]()


def floor() -> Solid:
    """A level floor of 130 triangles of all forms, 4 m wide."""
    corners = np.concatenate([np.random.default_rng(1).uniform(-2, 2, (60, 2)), [[-2, -2], [2, -2], [2, 2], [-2, 2]]])
    faces = Delaunay(corners).simplices
    points = np.column_stack([corners, np.zeros(len(corners))])
    a, b, c = (points[faces[:, k]] for k in range(3))
    below = np.cross(b - a, c - a)[:, 2] < 0
    faces[below] = faces[below][:, ::-1]
    return solid("triangles", points=points, faces=faces)


def bumpy(level: int = 2) -> trimesh.Trimesh:
    """A ball with bumps and hollows."""
    mesh = trimesh.creation.icosphere(level)
    mesh.vertices *= 1 + 0.25 * np.random.default_rng(2).uniform(-1, 1, (len(mesh.vertices), 1))
    return mesh


def static(mesh: trimesh.Trimesh) -> Solid:
    return solid("triangles", points=np.asarray(mesh.vertices), faces=np.asarray(mesh.faces))


# --- a floor of triangles is a plane ---------------------------------------------------------------------------------


@shapes
@pytest.mark.parametrize("depth", [0.01, 1e-4, 0.0, -1e-3])
def test_a_tessellated_floor_feels_like_a_plane(name: str, depth: float) -> None:
    rng = np.random.default_rng(3)
    turns = Rotation.random(MANY, random_state=4).as_matrix()
    turns[: MANY // 2] = Rotation.from_euler("z", rng.uniform(0, 6, (MANY // 2, 1))).as_matrix()  # lying flat
    heights = [-depth - lowest(name, turn) for turn in turns]
    places = touch(floor(), moving(name), np.column_stack([rng.uniform(-1, 1, (MANY, 2)), heights]), turns, 0.005)
    assert np.abs(deepest(places) + depth).max() < 1e-6
    for i in range(MANY):
        contacts = found(places, i)
        assert 1 <= len(contacts) <= 16
        assert np.abs(contacts[:, 4:] - [0, 0, 1]).max() < 5e-5
        gaps = np.linalg.norm(contacts[:, None, 1:4] - contacts[None, :, 1:4], axis=2) + np.eye(len(contacts))
        assert gaps.min() > 1e-6  # one contact per place


def test_a_box_on_triangles_stands_on_its_corners() -> None:
    places = touch(floor(), moving("box"), [0.1, -0.2, 0.0999], Rotation.from_euler("z", 0.4).as_matrix(), 0.001)
    contacts = found(places)
    corners = np.array([[x, y, 0] for x in (-0.2, 0.2) for y in (-0.3, 0.3)])
    corners = corners @ Rotation.from_euler("z", 0.4).as_matrix().T + [0.1, -0.2, -5e-5]
    away = np.linalg.norm(corners[:, None] - contacts[None, :, 1:4], axis=2)
    assert away.min(axis=1).max() < 1e-9
    again = touch(floor(), moving("box"), [0.1, -0.2, 0.09991], Rotation.from_euler("z", 0.4).as_matrix(), 0.001)
    assert np.array_equal(places.feature[0], again.feature[0])


# --- distances -------------------------------------------------------------------------------------------------------


def coal_shape(name: str) -> Any:
    coal = pytest.importorskip("coal")
    size = SIZES[name]
    if name == "convex":
        hull = trimesh.convex.convex_hull(POINTS)
        points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for point in hull.vertices:
            points.append(point)
        for face in hull.faces:
            faces.append(coal.Triangle(*map(int, face)))
        return coal.Convex(points, faces)
    if name in ("capsule", "cylinder"):
        return getattr(coal, name.title())(size[0], 2 * size[1])
    return coal.Box(*(2 * np.array(size))) if name == "box" else getattr(coal, name.title())(*size)


def coal_distance(triangles: Real, name: str, positions: Real, turns: Real) -> Real:
    """The distance of a shape to triangles (m, 3, 3)."""
    coal = pytest.importorskip("coal")
    mesh = coal.BVHModelOBBRSS()
    mesh.beginModel(len(triangles), 3)
    for corners in triangles:
        mesh.addTriangle(*corners)
    mesh.endModel()
    request, shape = coal.DistanceRequest(), coal_shape(name)
    request.gjk_tolerance, request.gjk_max_iterations = 1e-9, 500
    here = coal.Transform3s(np.eye(3), np.zeros(3))
    return np.array(
        [
            coal.distance(mesh, here, shape, coal.Transform3s(turn, position), request, coal.DistanceResult())
            for position, turn in zip(positions, turns, strict=True)
        ]
    )


@shapes
@pytest.mark.parametrize("form", ["bumpy", "torus", "box"])
def test_distances_to_closed_meshes(form: str, name: str) -> None:
    mesh = {
        "bumpy": bumpy,
        "torus": lambda: trimesh.creation.torus(1, 0.35, major_sections=24, minor_sections=12),
        "box": lambda: trimesh.creation.box((2, 1.4, 0.6)),
    }[form]()
    rng = np.random.default_rng(5)
    turns = Rotation.random(MANY, random_state=6).as_matrix()
    positions = rng.normal(size=(MANY, 3))
    positions *= rng.uniform(0.8, 2.2, (MANY, 1)) / np.linalg.norm(positions, axis=1)[:, None]
    outside = ~mesh.contains(positions)
    mine = deepest(touch(static(mesh), moving(name), positions, turns, 0.5))
    true = coal_distance(np.asarray(mesh.triangles), name, positions, turns)
    apart = outside & (true > 1e-6) & (true < 0.49)
    assert np.abs(mine - true)[apart].max(initial=0) < 5e-6 and not np.isfinite(mine[true > 0.51]).any()
    assert (mine[true <= 0] < 1e-9).all()
    assert (mine[~outside] < 0).all()  # a middle inside: pushed out


def test_deep_inside_is_pushed_through_the_nearest_face() -> None:
    mesh = trimesh.creation.box((2, 2, 2)).subdivide()
    for name in SIZES:
        contacts = found(touch(static(mesh), moving(name), [0.95, 0.1, 0.2]))
        depth = 0.05 - lowest(name, Rotation.from_euler("y", -90, degrees=True).as_matrix())
        assert np.allclose(contacts[np.argmin(contacts[:, 0]), 4:], [1, 0, 0]), name
        assert contacts[:, 0].min() == pytest.approx(-depth, abs=1e-6)
    sheet = solid(
        "triangles", points=np.array([[-9, -9, 0], [9, -9, 0], [0, 9, 0]], float), faces=np.array([[0, 1, 2]])
    )
    assert len(found(touch(sheet, moving("sphere"), [0, 0, 0.29]))) == 1
    assert len(found(touch(sheet, moving("sphere"), [0, 0, -0.31]))) == 0


def test_an_edge_holds_a_beam_at_two_points() -> None:
    ridge = [[-1, 0, 0], [1, 0, 0], [0, -1, -1], [0, 1, -1]]
    mesh = solid("triangles", points=np.array(ridge, float), faces=np.array([[0, 2, 1], [0, 1, 3]]))
    contacts = found(touch(mesh, moving("box"), [0, 0, 0.0999], np.eye(3)))
    assert np.allclose(contacts[:, 4:], [0, 0, 1], atol=1e-6) and np.allclose(contacts[:, 0], -1e-4)
    assert sorted(contacts[:, 1].round(6)) == [-0.2, 0.2]


# --- height fields ---------------------------------------------------------------------------------------------------

ROWS, COLUMNS, SIZE = 12, 15, (1.5, 1.2, 0.3, 0.2)
SMALL = {"sphere": (0.12,), "capsule": (0.05, 0.15), "ellipsoid": (0.05, 0.1, 0.15), "box": (0.1, 0.15, 0.07)}


def terrain() -> tuple[Solid, str]:
    """A random height field, and what MJCF calls it."""
    heights = np.random.default_rng(7).uniform(0, 1, (ROWS, COLUMNS))
    heights = (heights - heights.min()) / np.ptp(heights)
    text = " ".join(map(str, heights[::-1].ravel()))
    size = " ".join(map(str, SIZE))
    field = f'<hfield name="h" nrow="{ROWS}" ncol="{COLUMNS}" size="{size}" elevation="{text}"/>'
    return solid("heightfield", size=(SIZE[0], SIZE[1], SIZE[3]), heights=SIZE[2] * heights), field


def surface(field: Solid) -> Real:
    """Its triangles (m, 3, 3), as MuJoCo cuts the cells."""
    assert field.heights is not None
    x, y = np.linspace(-SIZE[0], SIZE[0], COLUMNS), np.linspace(-SIZE[1], SIZE[1], ROWS)
    points = np.stack([*np.meshgrid(x, y), field.heights], axis=2)
    a, b, c, d = points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]
    return np.concatenate([np.stack([a, b, c], axis=2), np.stack([a, c, d], axis=2)]).reshape(-1, 3, 3)


@pytest.mark.skipif(disabled(), reason="many places")
@pytest.mark.parametrize("name", SMALL)
def test_terrain_is_mujocos(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, size in SMALL.items():
        monkeypatch.setitem(SIZES, kind, size)
    field, text = terrain()
    rng = np.random.default_rng(8)
    turns = Rotation.random(MANY, random_state=9)
    positions = np.column_stack([rng.uniform(-1.2, 1.2, MANY), rng.uniform(-1, 1, MANY), np.full(MANY, 0.9)])
    for _ in range(3):  # lowered onto it, but for a rest
        positions[:, 2] -= 0.95 * coal_distance(surface(field), name, positions, turns.as_matrix())
    true = coal_distance(surface(field), name, positions, turns.as_matrix())
    mine = deepest(touch(field, moving(name), positions, turns.as_matrix(), 0.05))
    assert np.abs(mine - true).max() < 1e-6
    positions[:, 2] -= true + 1e-4
    size = " ".join(map(str, SIZES[name]))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset>{text}</asset><worldbody><geom type="hfield" hfield="h"/><body><freejoint/>'
        f'<geom type="{name}" size="{size}"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    places = touch(field, moving(name), positions, turns.as_matrix())
    off, lean = np.zeros(MANY), np.zeros(MANY)
    for i, quaternion in enumerate(turns.as_quat()):
        data.qpos[:] = [*positions[i], *np.roll(quaternion, 1)]
        mujoco.mj_fwdPosition(model, data)
        contacts = found(places, i)
        assert (len(contacts) > 0) == (data.ncon > 0)
        if len(contacts):
            first, second = contacts[np.argmin(contacts[:, 0])], int(np.argmin(data.contact.dist))
            off[i] = abs(first[0] - data.contact.dist[second])
            lean[i] = 1 - first[4:] @ data.contact.frame[second, :3]
    # where an edge is touched MuJoCo takes the normal of least depth, whatever lies beside the triangle
    assert np.quantile(off, 0.95) < 2e-6 and off.max() < 2e-4
    assert np.quantile(lean, 0.9) < 1e-3


@pytest.mark.parametrize(
    ("position", "normal"),
    [
        ((1.7, 0.1, 0), (1, 0, 0)),
        ((-1.7, 0.1, 0), (-1, 0, 0)),
        ((0.1, 1.4, 0), (0, 1, 0)),
        ((0.1, -1.4, 0), (0, -1, 0)),
    ],
)
def test_walls_and_underside_of_a_field(position: Any, normal: Any) -> None:
    field = solid("heightfield", size=(1.5, 1.2, 0.5), heights=np.ones((4, 5)))
    contacts = found(touch(field, moving("sphere"), position, margin=0.01))
    assert np.allclose(contacts[:, 4:], normal) and contacts[0, 0] == pytest.approx(-0.1)
    below = found(touch(field, moving("box"), (0.3, 0.2, -0.55)))
    assert np.allclose(below[:, 4:], [0, 0, -1]) and np.allclose(below[:, 0], -0.05) and len(below) >= 4
    above = found(touch(field, moving("box"), (0.3, 0.2, 1.05)))
    assert np.allclose(above[:, 4:], [0, 0, 1]) and np.allclose(above[:, 0], -0.05)
    deep = found(touch(field, moving("sphere"), (0.3, 0.2, 0.9)))
    assert np.allclose(deep[0, 4:], [0, 0, 1]) and deep[0, 0] == pytest.approx(-0.4)
