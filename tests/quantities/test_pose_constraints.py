"""J and K = J M⁻¹ Jᵀ of poses against MuJoCo, Pinocchio, closed forms, identities and runs; tables, files, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import mujoco
import numpy as np
import pinocchio as pin
import pytest

import artsim
from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import ModelError, UsageError
from artsim.sim.quantities.catalogue import BAD_INPUT, BAD_RESULT, OK
from artsim.sim.quantities.robot import Robot
from tests.cli.test_cli_run import good, refused
from tests.conftest import corpus_entries
from tests.constraints.test_axis_couplings import follows, leads, twist_about
from tests.constraints.test_turn_limits import gradient, matrix, random_rotation
from tests.simulation import ROBOTS, Array, Mimics, Truth

BOTH = ("constraint_jacobian", "delassus")
MECHANISM = """<mujoco><option timestep="0.002"/><default><geom contype="0" conaffinity="0" density="800"/></default>
<worldbody>
  <body name="a"><joint name="a" axis="0 1 0" armature=".01"/><geom type="capsule" fromto="0 0 0 .2 0 .4" size=".02"/>
    <site name="a" pos=".1 0 .2"/>
    <body name="b" pos=".2 0 .4"><joint name="b" axis="0 1 .2"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".02"/>
      <site name="b" pos=".2 .05 0"/>
      <body name="c" pos=".5 0 0"><joint name="c" axis=".1 1 0"/>
        <geom type="capsule" fromto="0 0 0 .1 0 -.4" size=".02"/><site name="c" pos="0 0 -.1"/></body></body></body>
  <body name="ball" pos="0 1 0"><joint name="ball" type="ball"/><geom type="box" size=".1 .2 .1" pos="0 .1 -.3"/>
    <body name="slide" pos=".1 0 -.5"><joint name="slide" type="slide" axis="0 .3 1"/><geom size=".1"/></body></body>
  <body name="free" pos="1 0 1"><freejoint/><geom type="box" size=".1 .05 .2"/>
    <body name="arm" pos=".1 0 0"><joint name="arm" axis="0 0 1"/>
      <geom type="capsule" fromto="0 0 0 .2 0 .1" size=".03"/></body></body>
</worldbody>
<tendon>
  <spatial name="rope"><site site="a"/><site site="b"/><site site="c"/></spatial>
  <fixed name="sum"><joint joint="a" coef=".7"/><joint joint="slide" coef="-1.5"/></fixed>
  <fixed name="belt"{armature}><joint joint="b" coef="1"/><joint joint="a" coef=".4"/></fixed>
</tendon>
<equality>
  <connect body1="c" body2="ball" anchor=".1 0 -.4"/>
  <joint joint1="b" joint2="a" polycoef=".1 .5 .3 -.2 .1"/>
  <weld body1="slide" body2="arm" torquescale=".7"/>
  <tendon tendon1="rope" tendon2="sum" polycoef="0 .4 -.3 .2 .1"/>
  <joint joint1="arm" polycoef=".2"/>
  <tendon tendon1="belt"/>
  <joint joint1="slide" joint2="arm" polycoef="0 -2 0 0 0"/>
  <weld body1="free" relpose="1 0 1 1 0 0 0"/>
</equality></mujoco>"""
STIFF, HEAVY = MECHANISM.format(armature=""), MECHANISM.format(armature=' armature=".3"')


def relative(error: Array, of: Array) -> float:
    return float(np.abs(error).max() / max(np.abs(of).max(), 1e-300))


def of_text(text: str) -> Robot:
    return Robot.of(load_text(text, name="model.xml"))


class Peer:
    """MuJoCo's J, and K and compliances by its dual solver, of a model's equalities in artsim's order of rows."""

    def __init__(self, model: mujoco.MjModel) -> None:
        model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        model.opt.solver = mujoco.mjtSolver.mjSOL_PGS
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT)
        self.model, self.data = model, mujoco.MjData(model)
        self.order = sorted(range(model.neq), key=self._place)

    def _place(self, eq: int) -> tuple[int, int, int]:
        m, kind = self.model, self.model.eq_type[eq]
        if kind == mujoco.mjtEq.mjEQ_JOINT:
            joints = [j for j in (m.eq_obj1id[eq], m.eq_obj2id[eq]) if j >= 0]
            return 0, int(min(m.jnt_dofadr[joints])), eq
        return (1 if kind == mujoco.mjtEq.mjEQ_TENDON else 2), 0, eq

    def at(self, q: Array) -> tuple[Array, Array, Array]:
        """J (m, nv), K (m, m) and M (nv, nv)."""
        m, d = self.model, self.data
        d.qpos[:] = q
        d.qvel[:] = 0.0
        mujoco.mj_forward(m, d)
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        rows = [row for eq in self.order for row in np.flatnonzero(d.efc_id[: d.ne] == eq)]
        K = d.efc_AR.reshape(d.nefc, d.nefc) - np.diag(d.efc_R)
        return d.efc_J.reshape(-1, m.nv)[rows], K[np.ix_(rows, rows)], M

    def random(self, rng: np.random.Generator, scale: float = 1.0) -> Array:
        """A configuration about the file's."""
        q = self.model.qpos0 + rng.normal(0, scale, self.model.nq)
        mujoco.mj_normalizeQuat(self.model, q)
        return q


def signs(mine: Array, want: Array) -> Array:
    """The sign of each row: MuJoCo takes the other of two quaternions for the rotation of some welds."""
    return np.where((mine * want).sum(axis=1) < 0, -1.0, 1.0)


# --- against MuJoCo --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [STIFF, HEAVY], ids=["", "tendon armature"])
def test_couplings_loops_and_tendon_equalities_are_mujocos(text: str) -> None:
    """J, and K that MuJoCo's solver forms by its own factors, at random poses far from closed."""
    robot, peer = of_text(text), Peer(mujoco.MjModel.from_xml_string(text))
    rng = np.random.default_rng(0)
    q = np.array([peer.random(rng) for _ in range(11)])
    found = robot.compute(q, quantities=[*BOTH, "mass_matrix", "status"])
    assert np.all(found["status"] == OK)
    for row in range(len(q)):
        J, K, M = peer.at(q[row])
        s = signs(found["constraint_jacobian"][row], J)
        assert relative(s[:, None] * found["constraint_jacobian"][row] - J, J) <= 1e-10
        want = J @ np.linalg.solve(M, J.T)
        assert relative(found["mass_matrix"][row] - M, M) <= 1e-10
        for truth in (want, K):
            assert relative(s[:, None] * s * found["delassus"][row] - truth, truth) <= 1e-10
        assert np.array_equal(found["delassus"][row], found["delassus"][row].T)
    assert robot.constraints()[:3] == ("coupling:b", "coupling:slide", "coupling:arm")
    assert robot.constraints()[3:5] == ("tendon:rope.equality", "tendon:belt.equality")
    lines = ("x", "y", "z", "turn_x", "turn_y", "turn_z")
    loops = [name.partition(":")[2].rpartition(".") for name in robot.constraints()[5:]]
    assert [line for _, _, line in loops] == [*lines[:3], *lines, *lines]


EQUAL = [entry for entry in corpus_entries("mjcf") if entry.get("equality") and "flex" not in entry["equality"]]


@pytest.mark.corpus
@pytest.mark.parametrize("entry", EQUAL, ids=[entry["id"] for entry in EQUAL])
def test_public_models_are_mujocos(entry: dict[str, Any]) -> None:
    try:
        robot = artsim.load(entry["path"])
    except ModelError as error:
        pytest.skip(str(error).split(": ", 1)[1])
    peer = Peer(mujoco.MjModel.from_xml_path(entry["path"]))
    active = [eq for eq in range(peer.model.neq) if peer.data.eq_active[eq]]
    if not active or peer.model.nv > 300:
        pytest.skip("no equality is active, or there are more than 300 dofs")
    rng = np.random.default_rng(1)
    for scale in (0.0, 0.3, 1.0):
        q = peer.random(rng, scale)
        J, _, M = peer.at(q)
        found = robot.compute(q, quantities=BOTH)
        s = signs(found["constraint_jacobian"], J)
        assert relative(s[:, None] * found["constraint_jacobian"] - J, J) <= 1e-9
        want = J @ np.linalg.solve(M, J.T)
        assert relative(s[:, None] * s * found["delassus"] - want, want) <= 1e-16 * max(1e6, np.linalg.cond(M))


# --- against Pinocchio -----------------------------------------------------------------------------------------------

ARMS = """<robot name="arms"><link name="base"/>
<link name="a1"><inertial><origin xyz=".1 0 .2"/><mass value="1.2"/>
  <inertia ixx=".02" ixy=".001" ixz="0" iyy=".025" iyz="0" izz=".012"/></inertial></link>
<link name="a2"><inertial><origin xyz=".15 .05 0"/><mass value=".8"/>
  <inertia ixx=".01" ixy="0" ixz=".001" iyy=".02" iyz="0" izz=".02"/></inertial></link>
<link name="a3"><inertial><origin xyz=".1 0 0"/><mass value=".5"/>
  <inertia ixx=".005" ixy="0" ixz="0" iyy=".006" iyz="0" izz=".006"/></inertial></link>
<link name="b1"><inertial><origin xyz="0 .1 .1"/><mass value="1"/>
  <inertia ixx=".02" ixy="0" ixz="0" iyy=".02" iyz=".002" izz=".02"/></inertial></link>
<link name="b2"><inertial><origin xyz="0 0 .1"/><mass value=".7"/>
  <inertia ixx=".01" ixy="0" ixz="0" iyy=".01" iyz="0" izz=".01"/></inertial></link>
<joint name="a1" type="continuous"><parent link="base"/><child link="a1"/><axis xyz="0 1 0"/></joint>
<joint name="a2" type="continuous"><parent link="a1"/><child link="a2"/><origin xyz=".2 0 .4" rpy=".3 .1 .2"/>
  <axis xyz="0 .6 .8"/></joint>
<joint name="a3" type="prismatic"><parent link="a2"/><child link="a3"/><origin xyz=".3 0 0"/><axis xyz="1 0 0"/>
  <limit lower="-3" upper="3" effort="9" velocity="9"/></joint>
<joint name="b1" type="continuous"><parent link="base"/><child link="b1"/><origin xyz=".8 0 0"/>
  <axis xyz="1 0 0"/></joint>
<joint name="b2" type="continuous"><parent link="b1"/><child link="b2"/><origin xyz="0 .1 .3"/>
  <axis xyz="0 1 0"/></joint></robot>"""
CLOSED = """
[[loop]]
name = "pin"
kind = "connect"
link_a = "a3"
link_b = "b2"
point_a = [0.2, 0.01, 0.0]
point_b = [0.0, 0.0, 0.25]
[[loop]]
name = "glue"
kind = "weld"
link_a = "a3"
link_b = "b1"
"""


@pytest.fixture
def arms(tmp_path: Path) -> tuple[Path, Robot]:
    """Two arms with a connect that is open, and a weld that is closed in the file's pose."""
    (tmp_path / "arms.urdf").write_text(ARMS)
    (tmp_path / "loops.toml").write_text(CLOSED)
    return tmp_path / "arms.urdf", artsim.load(tmp_path / "arms.urdf", loops=tmp_path / "loops.toml")


def rigid(truth: Truth, robot: Robot, q: Array, number: int, kind: Any) -> tuple[Any, Any, Any]:
    """Pinocchio's model and data of a loop at q, and the data of the robot."""
    loop = robot.articulation.loops[number]
    places = [pin.SE3(pin.Quaternion(*f.rotation).matrix(), np.array(f.position)) for f in (loop.frame_a, loop.frame_b)]
    bodies = [truth.model.frames[truth.model.getBodyId(name)] for name in (loop.link_a, loop.link_b)]
    ends = [(body.parentJoint, body.placement * place) for body, place in zip(bodies, places, strict=True)]
    model = pin.RigidConstraintModel(kind, truth.model, *ends[0], *ends[1], pin.ReferenceFrame.LOCAL)
    data, of_robot = model.createData(), truth.model.createData()
    pin.crba(truth.model, of_robot, truth.convert(q, np.zeros(robot.nv))[0])
    pin.computeJointJacobians(truth.model, of_robot, truth.convert(q, np.zeros(robot.nv))[0])
    model.calc(truth.model, of_robot, data)
    return model, data, of_robot


def test_loops_are_pinocchio_s(arms: tuple[Path, Robot]) -> None:
    """A connect at random poses, K by Pinocchio's Cholesky factors; a weld where it is closed, J by Pinocchio."""
    path, robot = arms
    truth = Truth(path, robot)
    for seed in range(5):
        q = np.random.default_rng(seed).normal(size=robot.nq)
        model, data, of_robot = rigid(truth, robot, q, 0, pin.ContactType.CONTACT_3D)
        models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        models.append(model)
        datas.append(data)
        factors = pin.ContactCholeskyDecomposition(truth.model, of_robot, models, datas)
        factors.compute(truth.model, of_robot, models, datas, 0.0)
        R = of_robot.oMi[model.joint1_id].rotation @ model.joint1_placement.rotation
        J = R @ pin.getConstraintJacobian(truth.model, of_robot, model, data)
        K = R @ factors.getInverseOperationalSpaceInertiaMatrix() @ R.T
        found = robot.compute(q, quantities=BOTH)
        assert relative(found["constraint_jacobian"][:3] - J, J) <= 1e-12
        assert relative(found["delassus"][:3, :3] - K, K) <= 1e-12
    q = np.zeros(robot.nq)
    model, data, of_robot = rigid(truth, robot, q, 1, pin.ContactType.CONTACT_6D)
    turns = np.kron(np.eye(2), of_robot.oMi[model.joint1_id].rotation @ model.joint1_placement.rotation)
    turns[3:, 3:] = 0.5 * np.eye(3)  # the vector part of a quaternion, in the loop's axes
    J = turns @ pin.getConstraintJacobian(truth.model, of_robot, model, data)
    K = J @ np.linalg.solve(truth.mass_matrix(q), J.T)
    found = robot.compute(q, quantities=BOTH)
    assert relative(found["constraint_jacobian"][3:] - J, J) <= 1e-12
    assert relative(found["delassus"][3:, 3:] - K, K) <= 1e-12


JOINTS = {
    "hinge": 'kind = "hinge"\naxis_a = [0.6, 0, 0.8]',
    "slider": 'kind = "slider"\naxis_a = [0, 0.6, 0.8]',
    "cylindrical": 'kind = "cylindrical"\naxis_a = [0, 0.6, 0.8]',
    "planar": 'kind = "planar"\naxis_a = [1, 0, 0]',
    "joint": 'kind = "joint"\nfree = ["y", "rx", "rz"]',
}


@pytest.mark.parametrize("kind", JOINTS)
def test_joints_that_close_loops_are_rates_of_their_coordinates(kind: str, tmp_path: Path) -> None:
    """J by differences of R_aᵀ (p_a - p_b), or p_a - p_b of a hinge, and of the vector part of conj(q_b) q_a."""
    (tmp_path / "arms.urdf").write_text(ARMS)
    text = f'[[loop]]\nname = "it"\n{JOINTS[kind]}\nlink_a = "a3"\nlink_b = "b2"\npoint_a = [0.2, 0.01, 0]\n'
    (tmp_path / "loops.toml").write_text(text)
    robot = artsim.load(tmp_path / "arms.urdf", loops=tmp_path / "loops.toml")
    (loop,) = robot.articulation.loops
    lines = ("x", "y", "z", "turn_x", "turn_y", "turn_z")
    assert robot.constraints() == tuple(f"loop:it.{line}" for line, held in zip(lines, loop.held, strict=True) if held)
    rng, h = np.random.default_rng(3), 1e-5
    for _ in range(3):
        q = rng.normal(0, 0.5, robot.nq)
        steps = q + h * np.concatenate([np.eye(robot.nq), -np.eye(robot.nq)])
        C = np.array([coordinates(robot, step) for step in steps])[:, np.array(loop.held)]
        want = (C[: robot.nq] - C[robot.nq :]).T / (2 * h)
        found = robot.compute(q, quantities=["constraint_jacobian"])["constraint_jacobian"]
        assert relative(found - want, want) <= 1e-8


def coordinates(robot: Robot, q: Array) -> Array:
    """C (6,) of the robot's only loop, from the links' poses."""
    (loop,) = robot.articulation.loops
    found = robot.compute(q, quantities=["link_pose"])
    frames = []
    for link, frame in ((loop.link_a, loop.frame_a), (loop.link_b, loop.frame_b)):
        n = robot.links.index(link)
        R = matrix(found["link_quaternion"][n])
        frames.append((found["link_position"][n] + R @ frame.position, R @ matrix(np.array(frame.rotation))))
    (a, A), (b, B) = frames
    turn = pin.Quaternion(B.T @ A)
    vector = np.sign(turn.w) * loop.torque_scale * turn.vec()
    return np.concatenate([a - b if loop.kind == "hinge" else A.T @ (a - b), vector])


@pytest.mark.small
@pytest.mark.parametrize("name", ["two_finger_gripper", "parallel_gripper", "rack_and_pinion"])
def test_mimics_have_the_rows_of_their_file(name: str) -> None:
    """J from the URDF's numbers, M from Pinocchio."""
    path = ROBOTS / f"{name}.urdf"
    robot = artsim.load(path)
    truth, mimics = Truth(path, robot), Mimics(path, robot)
    assert {text.partition(":")[2] for text in robot.constraints()} == set(mimics.of)
    J = np.zeros((len(mimics.of), robot.nv))
    for line, text in zip(J, robot.constraints(), strict=True):
        leader, multiplier, _ = mimics.of[text.partition(":")[2]]
        line[robot.dofs.index(text.partition(":")[2])] = 1.0
        line[robot.dofs.index(leader)] -= multiplier
    q = np.random.default_rng(2).uniform(-0.5, 0.5, (3, robot.nq))
    found = robot.compute(q, quantities=BOTH)
    for row in range(3):
        want = J @ np.linalg.solve(truth.mass_matrix(q[row]), J.T)
        assert np.array_equal(found["constraint_jacobian"][row], J)
        assert relative(found["delassus"][row] - want, want) <= 1e-12


# --- closed forms ----------------------------------------------------------------------------------------------------


@pytest.mark.small
def test_rack_and_pinion_and_differential_in_closed_form() -> None:
    """1/m + r²/I of a rack and pinion; 1/(4 I₁) + 1/(4 I₂) + 1/I₃ of a differential, as an equality of its tendon."""
    found = artsim.load(ROBOTS / "rack_and_pinion.urdf").compute([0.3, -0.1], quantities=["delassus"])
    assert abs(found["delassus"][0, 0] / (1 / 0.25 + 0.02**2 / 0.0075) - 1) <= 1e-14
    body = '<body name="{0}"><joint name="{0}"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 {1}"/></body>'
    I = 0.02, 0.03, 0.7
    bodies = "".join(body.format(name, about) for name, about in zip("abc", I, strict=True))
    robot = of_text(
        f'<mujoco><worldbody>{bodies}</worldbody><tendon><fixed name="differential"><joint joint="a" coef=".5"/>'
        '<joint joint="b" coef=".5"/><joint joint="c" coef="-1"/></fixed></tendon>'
        '<equality><tendon tendon1="differential"/></equality></mujoco>'
    )
    found = robot.compute([0.1, 0.2, 0.3], quantities=BOTH)
    assert found["constraint_jacobian"].tolist() == [[0.5, 0.5, -1.0]]
    assert abs(found["delassus"][0, 0] / (0.25 / I[0] + 0.25 / I[1] + 1 / I[2]) - 1) <= 1e-14


LENGTHS, MASSES, INERTIAS = (0.4, 0.7, 0.5), (1.0, 1.7, 0.6), (0.01, 0.04, 0.02)
ROD = (
    '<body name="{n}" pos="{at} 0 0"><joint name="{n}" axis="0 1 0"/>'
    '<inertial pos="{c} 0 0" mass="{m}" diaginertia="{I} {I} {I}"/>{below}</body>'
)


@pytest.mark.small
def test_four_bar_in_closed_form() -> None:
    """Rods about y that lie along x, their ends joined: J by their angles, M of the double pendulum and a rod."""
    (L1, L2, L3), (m1, m2, m3), (I1, I2, I3) = LENGTHS, MASSES, INERTIAS
    coupler = ROD.format(n="coupler", at=L1, c=L2 / 2, m=m2, I=I2, below="")
    bodies = ROD.format(n="crank", at=0, c=L1 / 2, m=m1, I=I1, below=coupler)
    bodies += ROD.format(n="rocker", at=0.6, c=L3 / 2, m=m3, I=I3, below="")
    robot = of_text(
        f"<mujoco><worldbody>{bodies}</worldbody><equality><connect name='end' body1='coupler' body2='rocker' "
        f"anchor='{L2} 0 0'/></equality></mujoco>"
    )
    loop = robot.articulation.loops[0]
    moved = loop.frame_b.position[0]  # where the anchor is in the rocker in the file's pose
    rng = np.random.default_rng(4)
    for _ in range(5):
        a, b, c = q = rng.uniform(-3, 3, 3)
        J = np.array(
            [
                [-L1 * np.sin(a) - L2 * np.sin(a + b), -L2 * np.sin(a + b), moved * np.sin(c)],
                [0.0, 0.0, 0.0],
                [-L1 * np.cos(a) - L2 * np.cos(a + b), -L2 * np.cos(a + b), moved * np.cos(c)],
            ]
        )
        second = I2 + m2 * L2**2 / 4
        mixed = second + m2 * L1 * L2 / 2 * np.cos(b)
        first = I1 + m1 * L1**2 / 4 + second + m2 * (L1**2 + L1 * L2 * np.cos(b))
        M = np.array([[first, mixed, 0], [mixed, second, 0], [0, 0, I3 + m3 * L3**2 / 4]])
        found = robot.compute(q, quantities=BOTH)
        want = J @ np.linalg.solve(M, J.T)
        assert relative(found["constraint_jacobian"] - J, J) <= 1e-13
        assert relative(found["delassus"] - want, want) <= 1e-12
    assert robot.constraints() == ("loop:end.x", "loop:end.y", "loop:end.z")


@pytest.mark.small
@pytest.mark.parametrize("axis", "xyz")
@pytest.mark.parametrize("ball_leads", [True, False])
def test_couplings_of_a_ball_s_axis_are_gradients(axis: str, ball_leads: bool) -> None:
    """J by differences of rotation matrices; of couplings that elimination cannot impose, reduced too."""
    robot = of_text(leads(axis) if ball_leads else follows(axis))
    rng = np.random.default_rng(6)
    for _ in range(4):
        turn = random_rotation(rng, float(rng.uniform(0.1, 2.5)), float(rng.uniform(-3, 3)))
        slope = gradient(lambda R: twist_about(axis, R), turn)
        want = np.array([*(-2.0 * slope), 1.0]) if ball_leads else np.array([*slope, -0.5])
        for reduced in (False, True):
            found = robot.compute([*turn, 0.4], quantities=["constraint_jacobian"], reduced=reduced)
            assert relative(found["constraint_jacobian"][0] - want, want) <= 1e-7
    assert [name.partition(":")[0] for name in robot.constraints(reduced=True)] == ["axis"]


# --- identities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [STIFF, HEAVY], ids=["", "tendon armature"])
def test_reduced_is_the_schur_complement_of_full(text: str) -> None:
    """Eliminated couplings are rows with no compliance: K_r = K_aa - K_ab K_bb⁻¹ K_ba, and J_r = J G."""
    text = text.replace('joint1="a" coef', 'joint1="arm" coef')
    robot = of_text(text)
    names, left = robot.constraints(), robot.constraints(reduced=True)
    a = [n for n, name in enumerate(names) if name in left]
    b = [n for n, name in enumerate(names) if name not in left]
    assert tuple(names[n] for n in a) == left
    assert len(b) == robot.nv - len(robot.independent_dofs) == 3
    rng = np.random.default_rng(7)
    for _ in range(5):
        q = rng.normal(size=robot.nq)
        q, _ = robot.to_full(robot.to_independent(q, tolerance=np.inf)[0])
        full, reduced = (robot.compute(q, quantities=BOTH, reduced=given) for given in (False, True))
        G = robot.compute(q, quantities=["coupling_matrix"])["coupling_matrix"]
        K, J = full["delassus"], full["constraint_jacobian"]
        want = K[np.ix_(a, a)] - K[np.ix_(a, b)] @ np.linalg.solve(K[np.ix_(b, b)], K[np.ix_(b, a)])
        assert relative(reduced["delassus"] - want, want) <= 1e-10
        assert relative(reduced["constraint_jacobian"] - J[a] @ G, J) <= 1e-13
        assert relative(J[b] @ G, J) <= 1e-13


def test_tendons_with_armature_between_trees_count_in_m() -> None:
    """Their M is dense, which MuJoCo's is not: K = J M⁻¹ Jᵀ with mass_matrix, full and reduced."""
    robot = of_text(HEAVY.replace('joint="a" coef=".4"', 'joint="arm" coef=".4"'))
    q = np.random.default_rng(8).normal(size=(5, robot.nq))
    for reduced in (False, True):
        found = robot.compute(q, quantities=[*BOTH, "mass_matrix", "inverse_mass_matrix"], reduced=reduced)
        J, M = found["constraint_jacobian"], found["mass_matrix"]
        want = J @ np.linalg.solve(M, J.swapaxes(1, 2))
        assert relative(found["delassus"] - want, want) <= 1e-10
        want = J @ found["inverse_mass_matrix"] @ J.swapaxes(1, 2)
        assert relative(found["delassus"] - want, want) <= 1e-10


def test_a_run_records_the_same_rows(tmp_path: Path) -> None:
    """K of a run's first step without its cfm, its names and their order, with couplings as rows and eliminated."""
    path = tmp_path / "mechanism.xml"
    path.write_text(STIFF)
    robot = artsim.load(path)
    q = Peer(mujoco.MjModel.from_xml_path(str(path))).random(np.random.default_rng(9), 0.3)
    q0 = dict(zip(robot.coords, robot.to_full(robot.to_independent(q, tolerance=np.inf)[0])[0], strict=True))
    for coupling, reduced in (("rows", False), ("auto", True)):
        # newton evaluates steps again at their middle, which is far away where a robot starts open
        options = {"steps": 1, "q0": q0, "record": ["qpos", "delassus"], "contacts": False, "solver": "pgs"}
        run = artsim.simulate(robot, **options, coupling=coupling)
        found, K = run.delassus(0), robot.compute(run["qpos"][0], quantities=["delassus"], reduced=reduced)["delassus"]
        assert found.names == robot.constraints(reduced=reduced)
        assert relative(K - (found.matrix - np.diag(found.cfm)), K) <= 1e-10


# --- tables, files, refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduced", [False, True])
def test_bytes_depend_on_neither_threads_nor_the_size_of_the_table(reduced: bool) -> None:
    robot = of_text(HEAVY)
    q = np.random.default_rng(10).normal(size=(3000, robot.nq))
    options: dict[str, Any] = {"quantities": [*BOTH, "gravity", "status"], "reduced": reduced}
    whole = robot.compute(q, threads=1, **options)
    assert np.all(whole["status"] == OK)
    for some, threads in ((slice(0, 3000), 3), (slice(5, 18), 1), (slice(7, 8), 1), (slice(100, 1300), 2)):
        part = robot.compute(q[some], threads=threads, **options)
        for name, values in part.items():
            assert values.tobytes() == whole[name][some].tobytes(), name
    assert robot.compute(q[3], **options)["delassus"].tobytes() == whole["delassus"][3].tobytes()
    packed = robot.compute(q[:40], quantities=["delassus"], reduced=reduced, packed=True)["delassus"]
    rows, columns = np.tril_indices(whole["delassus"].shape[1])
    assert packed.tobytes() == whole["delassus"][:40, rows, columns].tobytes()
    out = np.zeros((40, *whole["delassus"].shape[1:]))
    robot.compute(q[:40], quantities=["delassus"], reduced=reduced, out={"delassus": out})
    assert out.tobytes() == whole["delassus"][:40].tobytes()


def test_rows_that_cannot_be_computed_say_so() -> None:
    robot = artsim.load(ROBOTS / "rack_and_pinion.urdf")
    q = np.array([[0.1, 0.2], [np.nan, 0.0], [1e30, 0.0], [0.3, 0.1]])
    found = robot.compute(q, quantities=[*BOTH, "status"])
    assert found["status"].tolist() == [OK, BAD_INPUT, BAD_INPUT, OK]
    assert np.isnan(found["delassus"][1:3]).all() and np.isfinite(found["delassus"][[0, 3]]).all()
    massless = robot.with_model({"body_mass": 0 * robot.model.body_mass, "body_inertia": 0 * robot.model.body_inertia})
    massless = massless.with_model({"body_moment": 0 * robot.model.body_moment})
    massless = massless.with_model({"carried_mass": 0 * robot.model.carried_mass})
    assert massless.compute(q[0], quantities=["delassus", "status"])["status"] == BAD_RESULT
    assert massless.compute(q[0], quantities=["constraint_jacobian", "status"])["status"] == OK


@pytest.mark.small
def test_robots_without_rows_are_refused() -> None:
    for name in BOTH:
        with pytest.raises(UsageError, match="'double_pendulum' has no coupling, loop or tendon equality; rows of"):
            artsim.load(ROBOTS / "double_pendulum.urdf").compute([0, 0], quantities=[name])
    gears = artsim.load(ROBOTS / "rack_and_pinion.urdf")
    with pytest.raises(UsageError, match="no coupling, loop or tendon equality left in independent coordinates"):
        gears.compute([0, 0], quantities=["delassus"], reduced=True)
    assert gears.constraints() == ("coupling:rack_joint",)
    assert gears.constraints(reduced=True) == ()


@pytest.mark.small
def test_two_rows_of_one_name_are_told_apart() -> None:
    body = '<body><joint name="{0}"/><inertial pos=".1 0 0" mass="1" diaginertia="1 1 1"/></body>'
    robot = of_text(
        f"<mujoco><worldbody>{''.join(body.format(name) for name in 'abc')}</worldbody><equality>"
        '<joint joint1="a" joint2="b"/><joint joint1="a" joint2="c" polycoef="0 2 0 0 0"/></equality></mujoco>'
    )
    assert robot.constraints() == ("coupling:a", "coupling:a.2")
    found = robot.compute(np.zeros(3), quantities=["constraint_jacobian"])["constraint_jacobian"]
    assert found.tolist() == [[1.0, -1.0, 0.0], [1.0, 0.0, -2.0]]


@pytest.fixture(scope="module")
def clamp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch of K and J."""
    path = tmp_path_factory.mktemp("batch") / "k.h5"
    samples = ("--samples", 200, "--compute", "constraint_jacobian,delassus")
    good("batch", ROBOTS / "clamp.xml", *samples, "-o", path)
    return path


def test_files_hold_it_with_names(clamp: Path, tmp_path: Path) -> None:
    robot = artsim.load(ROBOTS / "clamp.xml")
    names = robot.constraints()
    assert names == tuple(f"loop:{side}.{axis}" for side in ("left", "right") for axis in "xyz")
    with artsim.open(clamp) as batch:
        assert batch.labels.constraint == batch.names_of("constraint2") == names
        want = robot.compute(batch["qpos"], quantities=BOTH)
        for name in BOTH:
            assert batch[name].tobytes() == want[name].tobytes()
        dataset = batch.to_xarray()
        assert dataset["delassus"].dims == ("sample", "constraint", "constraint2")
        one = dataset["delassus"].sel(constraint="loop:left.x", constraint2="loop:left.z")
        assert np.array_equal(one.values, want["delassus"][:, 0, 2])
        assert batch.meaning("delassus")["units"] == "1/kg or 1/(kg m^2)"
    with h5py.File(clamp) as file:
        assert file["batch/constraint"].asstr()[:].tolist() == list(names)
    good("replay", clamp, "--verify")
    packed = tmp_path / "packed.npz"
    options = ("--samples", 200, "--compute", "delassus", "--packed", "--threads", 2, "--chunk", 17)
    good("batch", ROBOTS / "clamp.xml", *options, "-o", packed)
    rows, columns = np.tril_indices(len(names))
    with np.load(packed) as archive:
        assert archive["constraint"].tolist() == list(names)
        assert archive["constraint_pair"][1] == f"{names[1]},{names[0]}"
        assert archive["delassus"].tobytes() == want["delassus"][:, rows, columns].tobytes()


def test_the_commands_name_rows(tmp_path: Path) -> None:
    rack = ROBOTS / "rack_and_pinion.urdf"
    done = good("compute", rack, "delassus", "constraint_jacobian")
    assert "coupling:rack_joint" in done.stdout
    assert "left open" not in good("compute", ROBOTS / "clamp.xml", "delassus").stderr
    assert "left open" in good("compute", ROBOTS / "clamp.xml", "delassus", "mass_matrix").stderr
    done = good("batch", rack, "--samples", 2, "--compute", "delassus", "-o", "-", "--quiet")
    column = "delassus.coupling:rack_joint.coupling:rack_joint"
    assert done.stdout.splitlines()[0] == f"qpos.pinion_joint,qpos.rack_joint,{column},status"
    words = ("'double_pendulum' has no coupling", "--record +delassus")
    refused(2, "compute", ROBOTS / "double_pendulum.urdf", "delassus", words=words)
    output = tmp_path / "none.h5"
    options = ("--samples", 2, "--compute", "delassus", "-o", output)
    refused(2, "batch", ROBOTS / "double_pendulum.urdf", *options, words=words)
    assert not list(tmp_path.iterdir())
