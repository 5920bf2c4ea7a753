"""Derivatives of a step: closed forms, kinks on both sides, and differences of the run itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import artsim
from artsim.sim.articulation.tangent import difference, moved
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.jit import disabled
from artsim.sim.runs.one_sided_slopes import settled
from tests.benchmarks.step_derivatives import ENOUGH, _moving, compared, models
from tests.conftest import ROOT, corpus
from tests.naive import Twin, quaternion_exp, quaternion_product

SLIDER = """<robot name="slider"><link name="base"/><link name="cart"><inertial><mass value="2"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="base"/><child link="cart"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="1000" velocity="10"/></joint></robot>"""
BLOCK = """<mujoco><worldbody><geom type="plane" size="9 9 .1" friction=".5"/>
<body pos="0 0 .1"><freejoint name="root"/>
<geom type="box" size=".3 .3 .1" mass="2" friction=".5"/></body></worldbody></mujoco>"""
BALL = """<mujoco><worldbody><body><freejoint/><geom type="sphere" size=".1"/></body></worldbody></mujoco>"""
H = 0.01
CHUNKS = 8


def slider(folder: Path, **settings: Any) -> artsim.Simulation:
    (folder / "slider.urdf").write_text(SLIDER)
    return artsim.Simulation(artsim.load(folder / "slider.urdf"), dt=H, **settings)


def block(folder: Path, **settings: Any) -> artsim.Simulation:
    (folder / "block.xml").write_text(BLOCK)
    return artsim.Simulation(artsim.load(folder / "block.xml"), dt=H, contact_law="coulomb", **settings)


# ------------------------------------------------------------------ closed forms


@pytest.mark.small
def test_a_damped_cart(tmp_path: Path) -> None:
    """v⁺ = (m v + h (τ + d w)) / (m + h d), q⁺ = q + h v⁺, with a target w of the velocity."""
    m, d, v, w, tau = 2.0, 3.0, 0.1, 0.4, 5.0
    simulation = slider(tmp_path, damping=d, v0={"slide": v}, target_velocity={"slide": w}, torque={"slide": tau})
    found = simulation.derivatives(["torque", "target_velocity"], ["mass", "drive_damping"])
    after = (m * v + H * (tau + d * w)) / (m + H * d)
    by = np.array([0.0, m, H, H * d, v - after, H * w - H * after]) / (m + H * d)
    np.testing.assert_allclose(found.forward[1], by, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(found.forward[0], [1.0, *H * by[1:]], rtol=1e-7, atol=1e-11)
    assert found.states + found.inputs == ("q:slide", "v:slide", "torque:slide", "target_velocity:slide")
    assert found.parameters == ("mass:cart", "drive_damping:slide")
    assert not found.side.any() and found.active == () and found.dt == H
    np.testing.assert_array_equal(found.dv_du, found.B[1:])
    np.testing.assert_array_equal(found.dq_dp, found.P[:1])


@pytest.mark.small
def test_a_cart_at_its_limit(tmp_path: Path) -> None:
    """Resting there: a push inward moves it, one outward is taken by the limit; both slopes are told."""
    found = slider(tmp_path, q0={"slide": 1.0}).derivatives("torque")
    assert list(found.side) == [-1, -1, -1]
    np.testing.assert_allclose(found.backward[1], [0.0, 1.0, H / 2.0], atol=1e-8)
    np.testing.assert_allclose(found.forward[1, 1:], 0.0, atol=1e-8)
    np.testing.assert_array_equal(found.A, found.backward[:, :2])
    assert found.kinks["v:slide"] == (("limit:slide.upper holds",), ())
    pressed = slider(tmp_path, q0={"slide": 1.0}, torque={"slide": 100.0}).derivatives("torque")
    assert pressed.active == ("limit:slide.upper holds",)
    assert list(pressed.side) == [1, 0, 0]  # a limit that is passed pushes back faster than one is reached
    np.testing.assert_allclose(pressed.forward[1, 1:], 0.0, atol=1e-8)


@pytest.mark.small
def test_a_block_that_slides_and_one_that_sticks(tmp_path: Path) -> None:
    """Sliding: v⁺ = v - μ g h along the velocity, whose direction turns with v; sticking: v⁺ = 0."""
    sliding = block(tmp_path, v0={"root.vx": 1.0}).derivatives([], ["friction", "gravity"])
    row, slope = sliding.states.index("v:root.vx"), 0.5 * 9.81 * H
    by = dict(zip(sliding.columns, sliding.forward[row], strict=True))
    assert by["v:root.vx"] == pytest.approx(1.0, abs=1e-7)
    assert by["friction"] == pytest.approx(-slope, abs=1e-7)
    assert by["gravity.z"] == pytest.approx(0.5 * H, abs=1e-7)
    across = sliding.states.index("v:root.vy")
    assert sliding.A[across, across] == pytest.approx(1.0 - slope, abs=1e-6)
    assert all(state.endswith("slides") for state in sliding.active)
    sticking = block(tmp_path).derivatives([], ["friction"])
    np.testing.assert_allclose(sticking.A[row, [row, across]], 0.0, atol=1e-8)
    np.testing.assert_allclose(sticking.P, 0.0, atol=1e-8)
    assert len(sticking.active) == 4 and all(state.endswith("holds") for state in sticking.active)


@pytest.mark.small
def test_states_of_contacts_in_pyramids(tmp_path: Path) -> None:
    """One edge of a pyramid presses where the block slides along an axis, all where it sticks."""
    sliding = block(tmp_path, cone="pyramidal", v0={"root.vx": 1.0}).derivatives([])
    sticking = block(tmp_path, cone="pyramidal").derivatives([])
    assert len(sliding.active) == len(sticking.active) == 4
    assert all(state.endswith("slides") for state in sliding.active)
    assert all(state.endswith("holds") for state in sticking.active)


@pytest.mark.small
def test_a_body_that_turns_freely(tmp_path: Path) -> None:
    """Without gravity a sphere keeps ω: q⁺ = q exp(h ω), so that ∂q⁺/∂q = exp(-h ω) in body axes."""
    path = tmp_path / "ball.xml"
    path.write_text(BALL)
    robot = artsim.load(path)
    w = np.array([0.5, -2.0, 1.0])
    simulation = artsim.Simulation(robot, dt=H, gravity=(0, 0, 0), v0=[0, 0, 0, *w])
    found = simulation.derivatives([])
    x, y, z = H * w
    hat = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = np.linalg.norm(H * w)
    turn = np.eye(3) - np.sin(angle) / angle * hat + (1 - np.cos(angle)) / angle**2 * hat @ hat
    np.testing.assert_allclose(found.dq_dq[3:, 3:], turn, atol=1e-9)
    right = np.eye(3) - (1 - np.cos(angle)) / angle**2 * hat + (angle - np.sin(angle)) / angle**3 * hat @ hat
    np.testing.assert_allclose(found.dq_dv[3:, 3:], H * right, atol=1e-9)
    np.testing.assert_allclose(found.dv_dv[3:, 3:], np.eye(3), atol=1e-9)


@pytest.mark.small
def test_moves_along_the_tangent_and_back() -> None:
    robot = artsim.load(ROOT / "robots" / "floating_box.urdf")
    rng = np.random.default_rng(0)
    twin = Twin(robot.articulation)
    q = twin.random_coordinates(rng)
    steps = rng.uniform(-1.5, 1.5, size=(50, robot.nv))
    there = moved(robot.model, q, steps)
    np.testing.assert_allclose(there, twin.moved(q, steps, 1.0), atol=1e-14)
    np.testing.assert_allclose(difference(robot.model, there, q), steps, atol=1e-13)
    turned = quaternion_product(q[3:], quaternion_exp(np.array([1e-12, 0, 0])))
    np.testing.assert_allclose(difference(robot.model, np.array([*q[:3], *-turned]), q)[3:], [1e-12, 0, 0], atol=1e-15)


# ------------------------------------------------------------------ couplings, inputs and parameters


def test_followers_have_no_columns_of_their_own() -> None:
    robot = artsim.load(ROOT / "robots" / "two_finger_gripper.urdf")
    simulation = artsim.Simulation(robot, v0={"left_driver_joint": 0.4})
    simulation.step(20)
    full, reduced = simulation.derivatives(), simulation.derivatives(reduced=True)
    kept = [robot.dofs.index(name) for name in robot.independent_dofs]
    others = [k for k in range(robot.nv) if k not in kept]
    assert others
    assert not full.dq_dq[:, others].any() and not full.dv_dv[:, others].any()
    np.testing.assert_array_equal(full.dv_dv[np.ix_(kept, kept)], reduced.dv_dv)
    G = robot.compute(simulation.qpos, quantities=["coupling_matrix"])["coupling_matrix"]
    np.testing.assert_allclose(full.dv_dv[:, kept], G @ reduced.dv_dv, atol=1e-9)
    assert reduced.states == tuple(f"{x}:{name}" for x in "qv" for name in robot.independent_dofs)


def _differenced(simulation: artsim.Simulation, change: Any, h: float) -> np.ndarray[Any, Any]:
    """The derivative of the end of the step by what `change` sets, by Richardson."""
    snapshot = simulation.save()

    def end(x: float) -> np.ndarray[Any, Any]:
        simulation.restore(snapshot)
        change(x)
        simulation.step()
        return np.concatenate([simulation.qpos, simulation.qvel])

    wide, near = (end(h) - end(-h)) / (2 * h), (end(h / 2) - end(-h / 2)) / h
    simulation.restore(snapshot)
    return (4 * near - wide) / 3


def test_parameters_and_inputs_as_changes_of_the_run() -> None:
    robot = artsim.load(ROOT / "robots" / "arm7.urdf")
    simulation = artsim.Simulation(robot, stiffness=80.0, damping=4.0, target={"joint_2": 0.5}, gravity=(0, 0, -9.81))
    simulation.step(30)
    found = simulation.derivatives(["target", "torque"], ["drive_stiffness:joint_2", "drive_damping", "gravity"])
    by = dict(zip(found.columns, found.forward.T, strict=True))

    def close(column: str, want: np.ndarray[Any, Any]) -> None:
        np.testing.assert_allclose(by[column], want, atol=1e-6 * max(1e-3, np.abs(want).max()), err_msg=column)

    set_stiffness = lambda x: simulation.set_drive("joint_2", stiffness=80.0 + x)  # noqa: E731
    set_damping = lambda x: simulation.set_drive("joint_3", damping=4.0 + x)  # noqa: E731
    close("drive_stiffness:joint_2", _differenced(simulation, set_stiffness, 0.5))
    close("drive_damping:joint_3", _differenced(simulation, set_damping, 0.05))
    close("gravity.x", _differenced(simulation, lambda x: simulation.set_gravity((x, 0, -9.81)), 0.01))
    held = simulation._simulation.acting("target").copy()
    aim = lambda x: simulation.give("target", {"joint_4": held[3] + x})  # noqa: E731
    close("target:joint_4", _differenced(simulation, aim, 0.01))
    simulation.give("target", held)
    close("torque:joint_4", _differenced(simulation, lambda x: simulation.give("torque", {"joint_4": x}), 1.0))


def test_masses_as_of_another_robot(tmp_path: Path) -> None:
    """The mass of a link in the file, with its inertia in proportion."""
    path = ROOT / "robots" / "double_pendulum.urdf"
    started: dict[str, Any] = {"q0": [0.4, -0.8], "v0": [0.5, -1.0]}
    found = artsim.Simulation(artsim.load(path), **started).derivatives([], ["mass"])

    def end(link: str, change: float) -> np.ndarray[Any, Any]:
        tree = ElementTree.parse(path)
        inertial = next(each for each in tree.iter("link") if each.get("name") == link).find("inertial")
        assert inertial is not None
        mass, inertia = inertial.find("mass"), inertial.find("inertia")
        assert mass is not None and inertia is not None
        before = float(mass.get("value", ""))
        mass.set("value", repr(before + change))
        for name in ("ixx", "iyy", "izz"):
            inertia.set(name, repr(float(inertia.get(name, "")) * (before + change) / before))
        tree.write(tmp_path / "heavier.urdf")
        simulation = artsim.Simulation(artsim.load(tmp_path / "heavier.urdf"), **started)
        simulation.step()
        return np.concatenate([simulation.qpos, simulation.qvel])

    for name, column in zip(found.parameters, found.P.T, strict=True):
        link = name.partition(":")[2]
        wide, near = ((end(link, h) - end(link, -h)) / (2 * h) for h in (2e-3, 1e-3))
        np.testing.assert_allclose(column, (4 * near - wide) / 3, atol=1e-8)
    assert found.P.any()


@pytest.mark.small
def test_nothing_of_the_run_changes(tmp_path: Path) -> None:
    simulation = block(tmp_path, v0={"root.vx": 1.0, "root.wz": 0.4})
    simulation.step(3)
    before = simulation.save()
    simulation.derivatives([], ["mass", "friction", "ground_height"])
    after = simulation.save()
    assert before.keys() == after.keys()
    for name, values in before.items():
        np.testing.assert_array_equal(values, after[name], err_msg=name)


@pytest.mark.small
def test_refusals(tmp_path: Path) -> None:
    simulation = slider(tmp_path)
    with pytest.raises(UsageError, match=r"inputs: 'torqe' is not known.*torque"):
        simulation.derivatives(["torqe"])
    with pytest.raises(UsageError, match=r"parameters: 'weight' is not known"):
        simulation.derivatives(parameters=["weight"])
    with pytest.raises(UsageError, match=r"parameters: 'mass:cat' has nothing to vary.*cart"):
        simulation.derivatives(parameters=["mass:cat"])
    with pytest.raises(UsageError, match=r"'damping:slide' has nothing to vary: its value there is 0"):
        simulation.derivatives(parameters=["damping:slide"])
    with pytest.raises(UsageError, match="friction is that of contacts, nothing may touch"):
        simulation.derivatives(parameters=["friction"])
    with pytest.raises(UsageError, match="step is 0"):
        simulation.derivatives(step=0)


# ------------------------------------------------------------------ many robots


@pytest.mark.small
@pytest.mark.parametrize("name", ["parallel_gripper.urdf", "floating_box.urdf", "leg.xml"])
def test_robots_of_packs_have_those_of_single_ones(name: str) -> None:
    robot = artsim.load(ROOT / "robots" / name)
    many = artsim.VectorSimulation(robot, 3, ground=True, threads=1)
    one = artsim.Simulation(robot, ground=True)
    many.step(steps=4)
    one.step(4)
    before = many.save()
    first, last = many.derivatives([0, 2], ["torque:*"], ["mass"])
    want = one.derivatives(["torque:*"], ["mass"])
    assert first.columns == want.columns and first.active == want.active
    np.testing.assert_array_equal(first.A, last.A)
    for got, wanted in ((first.A, want.A), (first.B, want.B), (first.P, want.P)):
        np.testing.assert_allclose(got, wanted, atol=1e-6 * max(1.0, np.abs(wanted).max()))
    np.testing.assert_array_equal(first.side, want.side)
    for place, values in before.items():
        np.testing.assert_array_equal(values, many.save()[place], err_msg=place)


@pytest.mark.small
def test_robots_differ_and_may_be_varied(tmp_path: Path) -> None:
    (tmp_path / "slider.urdf").write_text(SLIDER)
    many = artsim.VectorSimulation(artsim.load(tmp_path / "slider.urdf"), 3, dt=H, damping=3.0)
    many.reset(qvel=[[0.1], [0.2], [0.0]])
    many.vary([1], mass=2.0)
    each = many.derivatives(inputs=["torque"])
    masses = (2.0, 4.0, 2.0)
    for found, m in zip(each, masses, strict=True):
        np.testing.assert_allclose(found.dv_dv, m / (m + H * 3.0), rtol=1e-7)
        np.testing.assert_allclose(found.dv_du, H / (m + H * 3.0), rtol=1e-7)
    with pytest.raises(UsageError, match="'mass' was varied"):
        many.derivatives(parameters=["mass"])
    by_damping = many.derivatives([0], [], ["drive_damping"])[0].dv_dp[0, 0]
    assert by_damping == pytest.approx(-H * 2.0 * 0.1 / (2.0 + H * 3.0) ** 2, rel=1e-6)
    many.close()


# ------------------------------------------------------------------ slopes


def _pairs(f: Any, levels: int, h: float = 1e-2) -> list[Any]:
    at = [h / 8**k for k in range(levels)]
    return [((f(x) - f(0.0)) / x * np.ones(1), (f(0.0) - f(-x)) / x * np.ones(1)) for x in at]


@pytest.mark.small
def test_slopes_of_functions_with_kinks() -> None:
    def found(f: Any) -> Any:
        return next(slopes for n in range(2, 5) if (slopes := settled(_pairs(f, n), 1e-13, last=n == 4)))

    curved = found(lambda x: np.sin(x + 0.3))
    assert not curved.kinked and curved.forward == pytest.approx(np.cos(0.3), abs=1e-4)
    kink = found(lambda x: abs(x) + np.sin(x))
    assert kink.kinked and kink.error < 1e-6
    assert (kink.forward, kink.backward) == (pytest.approx(2.0, abs=5e-6), pytest.approx(0.0, abs=5e-6))
    beside = found(lambda x: max(x - 3e-3, 0.0) + 5 * x)
    assert not beside.kinked and beside.forward == pytest.approx(5.0, abs=1e-9)


# ------------------------------------------------------------------ differences of runs


@pytest.mark.skipif(disabled(), reason="hundreds of steps of every robot")
@pytest.mark.parametrize("name", [path.name for path in sorted((ROOT / "robots").glob("*.[ux][rm][dl]*"))])
def test_columns_are_differences_of_the_run(name: str) -> None:
    row = compared(name, _moving(ROOT / "robots" / name, ground=True))
    assert row.columns > 0 and row.worst <= 4 * ENOUGH, row
    assert row.skipped + row.doubtful <= 0.2 * row.columns, row


@pytest.mark.corpus
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_columns_of_public_models(chunk: int) -> None:
    if corpus() is None:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    of_corpus = [*models(45)][len([*models(0)]) :]
    wrong, columns, left_out = [], 0, 0
    for name, make in of_corpus[chunk::CHUNKS]:
        try:
            row = compared(name, make())
        except artsim.ArtsimError as error:
            assert "plugin" in str(error)
            continue
        columns, left_out = columns + row.columns, left_out + row.skipped + row.doubtful
        if row.worst > 10 * ENOUGH:  # aims of many loops settle to 1e-10
            wrong.append(row)
    assert wrong == [] and left_out <= 0.2 * columns
