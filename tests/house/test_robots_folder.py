"""The models in robots/: sound, what their heads and their README say, and read by other engines without ado."""

import importlib.util
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

ROBOTS = Path(__file__).resolve().parents[2] / "robots"
FILES = sorted(ROBOTS.glob("*.urdf"))
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)

# follower: (leader, multiplier, offset), as the heads of the files document them
MIMICS = {
    "parallel_gripper": {"right_finger_joint": ("left_finger_joint", 1, 0)},
    "two_finger_gripper": {
        "left_rocker_joint": ("left_driver_joint", 1, 0),
        "left_tip_joint": ("left_driver_joint", -1, 0),
        "right_driver_joint": ("left_driver_joint", -1, 0),
        "right_tip_joint": ("right_rocker_joint", -1, 0),
        "right_rocker_joint": ("right_driver_joint", 1, 0),
    },
    "rack_and_pinion": {"rack_joint": ("pinion_joint", 0.02, 0)},
    "stiff_drive_chain": {"joint_2": ("joint_1", 1, 0)},
}


def parse(path):
    """The root element, comments included."""
    builder = ElementTree.TreeBuilder(insert_comments=True)
    return ElementTree.parse(path, ElementTree.XMLParser(target=builder)).getroot()


def floats(text):
    return [float(word) for word in text.split()]


def inertia_of(inertial):
    """Rotational inertia about the centre of mass, shape (3, 3) [kg m²]."""
    i = {k: float(v) for k, v in inertial.find("inertia").attrib.items()}
    return np.array(
        [[i["ixx"], i["ixy"], i["ixz"]], [i["ixy"], i["iyy"], i["iyz"]], [i["ixz"], i["iyz"], i["izz"]]],
    )


def solid(description, mass):
    """Diagonal inertia of the solid that a comment names: 'solid box 0.1 x 0.2 x 0.3', 'solid sphere radius 0.1' ..."""
    kind = description.split()[1]
    size = [float(number) for number in re.findall(r"[\d.]+", description)]
    if kind == "box":
        x, y, z = (s * s for s in size)
        return mass / 12 * np.array([y + z, x + z, x + y])
    if kind == "cylinder":
        radius, length = size
        across = mass * (3 * radius**2 + length**2) / 12
        return np.array([across, across, mass * radius**2 / 2])
    assert kind == "sphere"
    return np.full(3, 0.4 * mass * size[0] ** 2)


def mimics_of(root):
    return {
        joint.get("name"): (m.get("joint"), float(m.get("multiplier")), float(m.get("offset")))
        for joint in root.findall("joint")
        if (m := joint.find("mimic")) is not None
    }


def coupling_matrix(path, model):
    """G of q = G y, shape (nv, independent dofs); the models have 1-dof joints and no offsets."""
    mimics = mimics_of(parse(path))
    names = list(model.names)[1:]
    leaders = [name for name in names if name not in mimics]
    G = np.zeros((model.nv, len(leaders)))
    for name in names:
        leader, factor = name, 1.0
        while leader in mimics:
            leader, multiplier, _ = mimics[leader]
            factor *= multiplier
        G[model.joints[model.getJointId(name)].idx_v, leaders.index(leader)] = factor
    return G


@pytest.fixture
def pin():
    return pytest.importorskip("pinocchio")


def test_readme_lists_the_files_their_dofs_and_a_command_each(pin):
    rows = re.findall(r"^\| `(\S+\.urdf)` \|.*\| ([^|]+) \| `([^`]+)` \|$", (ROBOTS / "README.md").read_text(), re.M)
    assert sorted(name for name, _, _ in rows) == [path.name for path in FILES]
    for name, dofs, command in rows:
        model = pin.buildModelFromUrdf(str(ROBOTS / name))
        followers = len(mimics_of(parse(ROBOTS / name)))
        want = str(model.nv)
        if followers:
            want += f" ({model.nv - followers} independent)"
        if "--base floating" in command:
            want += f" ({model.nv + 6} with a floating base)"
        assert dofs == want, name
        assert re.match(rf"artsim (run|info) robots/{re.escape(name)}( |$)", command)


@each_file
def test_pinocchio_reads_the_masses_that_the_file_states(path, pin):
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())  # keeps the root's mass too
    root = parse(path)
    assert root.get("name") == path.stem == model.name
    stated = sum(float(mass.get("value")) for mass in root.iter("mass"))
    assert sum(inertia.mass for inertia in model.inertias) == pytest.approx(stated, rel=1e-12)
    lines = path.read_text().splitlines()
    assert max(map(len, lines)) <= 120


@each_file
def test_mass_matrix_is_well_conditioned_enough_to_run(path, pin):
    model = pin.buildModelFromUrdf(str(path))
    M = pin.crba(model, model.createData(), pin.neutral(model))
    M = np.triu(M) + np.triu(M, 1).T
    assert np.linalg.eigvalsh(M).min() > 1e-8


@each_file
def test_mujoco_reads_the_same_dofs_and_sees_no_contact_at_zero(path):
    mujoco = pytest.importorskip("mujoco")
    assets = {mesh.name: mesh.read_bytes() for mesh in (ROBOTS / "meshes").iterdir()}
    model = mujoco.MjModel.from_xml_string(path.read_text(), assets)
    joints = [joint.get("type") for joint in parse(path).findall("joint")]
    dofs = {"fixed": 0, "revolute": 1, "prismatic": 1, "planar": 3, "floating": 6}
    assert model.nv == sum(dofs[kind] for kind in joints)
    assert model.neq == len(mimics_of(parse(path)))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 0


@each_file
def test_inertias_are_those_of_the_solids_named(path):
    root = parse(path)
    inertials = list(root.iter("inertial"))
    assert inertials
    for inertial in inertials:
        mass = float(inertial.find("mass").get("value"))
        assert mass > 0
        inertia = inertia_of(inertial)
        a, b, c = sorted(np.linalg.eigvalsh(inertia))
        assert a > 0 and c <= a + b
        (comment,) = [str(child.text).strip() for child in inertial if child.tag is ElementTree.Comment]
        np.testing.assert_allclose(inertia, np.diag(solid(comment, mass)), rtol=1e-12, atol=0)


@each_file
def test_joints_are_complete(path):
    for joint in parse(path).findall("joint"):
        kind, name = joint.get("type"), joint.get("name")
        if joint.find("axis") is not None:
            assert math.hypot(*floats(joint.find("axis").get("xyz"))) == 1, name
        if kind in ("revolute", "prismatic"):
            limit = {key: float(value) for key, value in joint.find("limit").attrib.items()}
            assert limit["lower"] <= 0 <= limit["upper"] and limit["lower"] < limit["upper"], name
            assert limit["effort"] > 0 and limit["velocity"] > 0, name
        dynamics = joint.find("dynamics")
        assert dynamics is None or (list(dynamics.attrib) == ["damping"] and float(dynamics.get("damping")) > 0), name


@each_file
def test_every_link_has_shapes_and_every_mesh_exists(path):
    root = parse(path)
    for mesh in root.iter("mesh"):
        name = Path(mesh.get("filename"))
        assert not name.is_absolute() and ".." not in name.parts
        assert (ROBOTS / name).stat().st_size < 20_000
    for link in root.findall("link"):
        assert link.find("inertial") is None or link.find("visual") is not None, link.get("name")
    materials = {material.get("name") for material in root.findall("material")}
    used = {material.get("name") for visual in root.iter("visual") for material in visual.findall("material")}
    assert used == materials


@each_file
def test_mimics_are_as_documented_and_limits_agree_with_them(path):
    root = parse(path)
    mimics = mimics_of(root)
    assert mimics == MIMICS.get(path.stem, {})
    limits = {
        joint.get("name"): (float(limit.get("lower")), float(limit.get("upper")))
        for joint in root.findall("joint")
        if (limit := joint.find("limit")) is not None
    }
    for follower, (leader, multiplier, offset) in mimics.items():
        image = sorted(multiplier * end + offset for end in limits[leader])
        np.testing.assert_allclose(image, limits[follower], rtol=1e-12)


def test_the_arm_shows_and_collides_with_a_mesh():
    root = parse(ROBOTS / "arm7.urdf")
    for tag in ("visual", "collision"):
        assert [mesh.get("filename") for mesh in root.findall(f"link/{tag}//mesh")] == ["meshes/forearm.stl"]


def test_meshes_are_what_the_script_writes_closed_and_as_large_as_said():
    spec = importlib.util.spec_from_file_location("make_meshes", ROBOTS / "make_meshes.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    written = script.meshes()
    assert {mesh.name: mesh.read_bytes() for mesh in (ROBOTS / "meshes").iterdir()} == written
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("spare", "<u2")])
    triangles = np.frombuffer(written["forearm.stl"], record, offset=84)["corners"].astype(float)
    edges = {(tuple(t[i]), tuple(t[(i + 1) % 3])) for t in triangles for i in range(3)}
    assert len(edges) == 3 * len(triangles)  # no edge twice in one direction ...
    assert {(b, a) for a, b in edges} == edges  # ... and each once in either: closed, one orientation
    volume = np.linalg.det(triangles).sum() / 6
    frustums = zip(script.FOREARM, script.FOREARM[1:], strict=False)
    exact = sum(math.pi / 3 * (h2 - h1) * (r1 * r1 + r1 * r2 + r2 * r2) for (r1, h1), (r2, h2) in frustums)
    assert exact * 0.99 < volume < exact  # 32 sides, outwards: 0.6 % less than the round one


def test_parallel_gripper_opens_under_its_own_weight(pin):
    path = ROBOTS / "parallel_gripper.urdf"
    model = pin.buildModelFromUrdf(str(path))
    gravity = pin.computeGeneralizedGravity(model, model.createData(), np.zeros(2))
    np.testing.assert_allclose(-coupling_matrix(path, model).T @ gravity, [(0.30 - 0.18) * 9.81], rtol=1e-9)


def test_rack_falls_with_the_acceleration_of_its_head(pin):
    path = ROBOTS / "rack_and_pinion.urdf"
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    G = coupling_matrix(path, model)
    M = G.T @ pin.crba(model, data, np.zeros(2)) @ G
    gravity = G.T @ pin.computeGeneralizedGravity(model, data, np.zeros(2))
    np.testing.assert_allclose(0.02 * np.linalg.solve(M, gravity), [9.81 / 76], rtol=1e-9)


def frame(model, data, name):
    """Rotation and position of a link in the world."""
    placement = data.oMf[model.getFrameId(name)]
    return placement.rotation, placement.translation


@pytest.mark.parametrize("opening", [0.0, 0.2, 0.45, 0.7])
def test_two_finger_gripper_closes_its_parallelograms(pin, opening):
    path = ROBOTS / "two_finger_gripper.urdf"
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    pin.framesForwardKinematics(model, data, coupling_matrix(path, model) @ [opening])
    palm, _ = frame(model, data, "palm")
    inner = {}
    for side, sign in (("left", 1), ("right", -1)):
        R, p = frame(model, data, f"{side}_tip")
        R_rocker, p_rocker = frame(model, data, f"{side}_rocker")
        np.testing.assert_allclose(R, palm, atol=1e-12)
        pivot = p + R @ [0, -0.012 * sign, 0.012]
        np.testing.assert_allclose(pivot, p_rocker + R_rocker @ [0, 0.03 * sign, 0.04], atol=1e-12)
        inner[side] = palm.T @ (p + R @ [0, -0.0162 * sign, 0])  # the pad's face
    gap = inner["left"][1] - inner["right"][1]
    np.testing.assert_allclose(gap, 2 * (0.0038 + 0.05 * math.sin(math.atan(0.75) - opening)), atol=1e-12)
    assert inner["left"][2] == pytest.approx(inner["right"][2], abs=1e-12)


def test_quadruped_stands_as_high_as_its_head_says(pin):
    model = pin.buildModelFromUrdf(str(ROBOTS / "quadruped.urdf"), pin.JointModelFreeFlyer())
    data = model.createData()
    q = pin.neutral(model)
    legs = [f"{end}_{side}" for end in ("front", "rear") for side in ("left", "right")]
    pin.framesForwardKinematics(model, data, q)
    for leg in legs:
        assert frame(model, data, f"{leg}_foot")[1][2] == pytest.approx(-0.4)
        q[model.joints[model.getJointId(f"{leg}_hip")].idx_q] = 0.8
        q[model.joints[model.getJointId(f"{leg}_knee")].idx_q] = -1.6
    pin.framesForwardKinematics(model, data, q)
    for leg in legs:
        x, y, z = frame(model, data, f"{leg}_foot")[1]
        assert (abs(x), abs(y), round(0.02 - z, 3)) == (pytest.approx(0.19), pytest.approx(0.185), 0.299)
        assert (x > 0, y > 0) == (leg.startswith("front"), leg.endswith("left"))


@pytest.mark.parametrize("name", ["stiff_drive_chain", "double_pendulum"])
def test_hanging_rods_are_two_equal_ones(pin, name):
    model = pin.buildModelFromUrdf(str(ROBOTS / f"{name}.urdf"))
    data = model.createData()
    M = pin.crba(model, data, np.zeros(2))
    i = 1 * (0.4**2 + 0.04**2) / 12 + 0.2**2  # about a rod's upper end
    np.testing.assert_allclose(M[0, 0], 2 * i + 0.4**2 + 2 * 0.4 * 0.2, rtol=1e-12)
    np.testing.assert_allclose([M[0, 1], M[1, 1]], [i + 0.4 * 0.2, i], rtol=1e-12)
    level = pin.computeGeneralizedGravity(model, data, np.array([math.pi / 2, 0.0]))
    np.testing.assert_allclose(level, [9.81 * 0.8, 9.81 * 0.2], rtol=1e-9)


def test_chain_carries_a_thousand_times_a_rod(pin):
    model = pin.buildModelFromUrdf(str(ROBOTS / "chain20.urdf"))
    rod, last = model.inertias[1], model.inertias[20]
    assert (model.nv, rod.mass, last.mass) == (20, 0.1, pytest.approx(100.1))
    data = model.createData()
    pin.framesForwardKinematics(model, data, np.zeros(20))
    assert frame(model, data, "weight")[1] == pytest.approx([0, 0, -2])


def test_finger_is_the_one_of_the_guide(pin):
    model = pin.buildModelFromUrdf(str(ROBOTS / "finger.urdf"))
    data = model.createData()
    assert (model.lowerPositionLimit[1], model.upperPositionLimit[1]) == (0, 3)
    np.testing.assert_allclose(np.diag(model.inertias[1].inertia), [1e-5 / 6, 0.1 * 0.0101 / 12, 0.1 * 0.0101 / 12])
    pin.framesForwardKinematics(model, data, np.array([0.3, 0.4]))
    x, z = 0.1 * math.cos(0.3) + 0.1 * math.cos(0.7), 0.1 - 0.1 * math.sin(0.3) - 0.1 * math.sin(0.7)
    np.testing.assert_allclose(frame(model, data, "tip")[1], [x, 0, z], atol=1e-15)
    (sphere,) = parse(ROBOTS / "finger.urdf").findall("link/collision/geometry/sphere")
    assert sphere.get("radius") == "0.01"
