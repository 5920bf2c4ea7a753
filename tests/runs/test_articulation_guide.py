"""Statements of PhysX's articulation guide about joints, drives and mimics, each as a run.

The worked examples of inverse dynamics are in tests/quantities/test_guide.py, the finger is in tests/contact.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulation import box_link, simulate

FAR = '<limit lower="-9" upper="9" effort="1e9" velocity="1e9"/>'


def hinge(limit: str, mass: float = 2.0) -> str:
    """A revolute joint about z, as in the guide's setup code."""
    return (
        f'<robot name="r"><link name="base"/>{box_link("b", mass, (0.3, 0, 0))}<joint name="j" type="revolute">'
        f'<parent link="base"/><child link="b"/><axis xyz="0 0 1"/>{limit}</joint></robot>'
    )


QUARTER = f'<limit lower="{-np.pi / 4!r}" upper="{np.pi / 4!r}" effort="1e9" velocity="1e9"/>'
DRIVE = {"stiffness": {"j": 100.0}, "damping": {"j": 10.0}}
FORCES = ("qpos", "qvel", "tau_drive", "tau_limit")


def test_a_drive_beyond_a_limit_of_a_quarter_of_pi() -> None:
    """It rests at the limit, which takes what the drive gives: stiffness (target - π/4)."""
    run = simulate(hinge(QUARTER), steps=3000, dt=1e-3, target={"j": 1.5}, record=FORCES, **DRIVE)
    assert run["qpos"].max() <= np.pi / 4 + 1e-9
    assert run["qpos"][-1, 0] == pytest.approx(np.pi / 4, abs=1e-9)
    assert run["tau_drive"][-1, 0] == pytest.approx(100 * (1.5 - np.pi / 4), rel=1e-9)
    assert run["tau_limit"][-1, 0] == pytest.approx(-100 * (1.5 - np.pi / 4), rel=1e-9)


@pytest.mark.parametrize("kind", ["force", "impulse"])
@pytest.mark.parametrize("mode", ["force", "acceleration"])
def test_a_drive_s_limit_is_a_force_or_an_impulse(kind: str, mode: str) -> None:
    """4 N m, or 4 N m per second and step: it applies to drives of both modes."""
    dt = 0.002
    most = 4.0 if kind == "force" else 4.0 * dt
    run = simulate(
        hinge(FAR),
        steps=20,
        dt=dt,
        target={"j": 1.0},
        drive_limit={"j": most},
        drive_limit_kind=kind,
        drive_mode=mode,
        stiffness={"j": 1e5},
        record=FORCES,
    )
    np.testing.assert_allclose(run["tau_drive"][:, 0], 4.0, rtol=1e-12)


@pytest.mark.parametrize("mass", [0.1, 30.0])
def test_an_acceleration_drive_does_not_know_the_mass(mass: float) -> None:
    """q̈ = 100 (1 - q) - 20 q̇, critically damped: q = 1 - (1 + 10 t) exp(-10 t)."""
    gains = {"stiffness": {"j": 100.0}, "damping": {"j": 20.0}, "drive_mode": "acceleration"}
    dt = 2e-4
    run = simulate(hinge(FAR, mass), steps=5001, dt=dt, target={"j": 1.0}, record=("qpos",), **gains)
    t = dt * np.arange(5001)
    np.testing.assert_allclose(run["qpos"][:, 0], 1 - (1 + 10 * t) * np.exp(-10 * t), rtol=0, atol=2e-3)


def test_a_velocity_drive_has_no_stiffness() -> None:
    """I q̈ = 10 (2 - q̇) at the end of each step, as the guide has it: the error falls by 1 + 10 h / I."""
    run = simulate(hinge(FAR), steps=1500, dt=1e-3, damping={"j": 10.0}, target_velocity={"j": 2.0}, record=FORCES)
    inertia = 2 * (0.3**2 + (0.1**2 + 0.2**2) / 12)
    v = 2 * (1 - (1 + 1e-2 / inertia) ** -np.arange(1500.0))
    np.testing.assert_allclose(run["qvel"][:, 0], v, rtol=0, atol=1e-12)
    assert v[-1] == pytest.approx(2.0, rel=1e-9)


CHAIN = (
    f'<robot name="r"><link name="base"/>{box_link("a", 1.0, (0.2, 0, 0))}{box_link("b", 1.0, (0.2, 0, 0))}'
    f'<joint name="one" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>{FAR}</joint>'
    '<joint name="two" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0.4 0 0"/><axis xyz="0 0 1"/>'
    f'{FAR}<mimic joint="one" multiplier="-1.5" offset="0.1"/></joint></robot>'
)


@pytest.mark.parametrize("coupling", ["exact", "rows"])
def test_a_very_stiff_drive_beside_a_mimic_joint(coupling: str) -> None:
    """The guide's short chain: the drive reaches its target in a few steps and q_A + G q_B + γ = 0 holds throughout."""
    run = simulate(
        CHAIN, steps=100, dt=1 / 240, target={"one": 0.5}, stiffness={"one": 1e9}, coupling=coupling, record=("qpos",)
    )
    q = run["qpos"]
    np.testing.assert_allclose(q[:, 1] + 1.5 * q[:, 0] - 0.1, 0.0, rtol=0, atol=1e-7)
    np.testing.assert_allclose(q[10:, 0], 0.5, rtol=0, atol=1e-6)


def test_a_spherical_joint_of_two_dofs() -> None:
    """Its twist about x locked: a torque about x turns nothing, one about z swings it, as a joint of one dof would."""
    ball = (
        f'<robot name="r"><link name="base"/>{box_link("b", 2.0)}<joint name="j" type="spherical"><parent link="base"/>'
        '<child link="b"/></joint></robot>'
    )
    given = {"twist_limit": {"j": (0.0, 0.0)}, "gravity": (0, 0, 0), "steps": 300, "dt": 1e-3}
    run = simulate(ball, torque={"j.wx": 0.5, "j.wz": 0.02}, record=("qpos", "tau_limit"), **given)
    w, x = run["qpos"][:, 0], run["qpos"][:, 1]
    assert np.abs(2 * np.arctan2(x, w)).max() < 1e-7
    swing = 2 * np.arctan2(run["qpos"][-1, 3], run["qpos"][-1, 0])
    inertia = 2 * (0.1**2 + 0.2**2) / 12
    assert swing == pytest.approx(0.5 * 0.02 / inertia * 0.299**2, rel=0.01)
    np.testing.assert_allclose(run["tau_limit"][1:, 0], -0.5, rtol=0, atol=1e-3)


def test_drives_are_said_axis_by_axis() -> None:
    """A slab of 2 kg: x by force, y by acceleration and y's limit an impulse, each by the name of the axis."""
    slab = (
        f'<robot name="r"><link name="base"/>{box_link("b", 2.0)}<joint name="j" type="planar"><parent link="base"/>'
        '<child link="b"/><axis xyz="0 0 1"/></joint></robot>'
    )
    given = {
        "stiffness": {"j.x": 50.0, "j.y": 50.0, "j.angle": 1e6},
        "drive_mode": {"j.y": "acceleration"},
        "drive_limit": {"j.angle": 3e-5},
        "drive_limit_kind": {"j.angle": "impulse"},
        "target": {"j.x": 0.1, "j.y": 0.1, "j.angle": 1.0},
    }
    run = simulate(slab, steps=1, dt=1e-5, record=("tau_drive",), **given)
    np.testing.assert_allclose(run["tau_drive"][0], [50 * 0.1, 2 * 50 * 0.1, 3.0], rtol=1e-6)
