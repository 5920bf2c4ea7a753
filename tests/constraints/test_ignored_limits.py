"""Limits of followers, left out on request: a leader then moves within its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import artsim

LINKS = "".join(
    f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    "</inertial></link>"
    for name in ("one", "two")
)
JOINT = (
    '<joint name="{}" type="prismatic"><parent link="base"/><child link="{}"/><axis xyz="1 0 0"/>'
    '<limit lower="0" upper="{}" effort="100" velocity="9"/>{}</joint>'
)


@pytest.fixture
def robot(tmp_path: Path) -> artsim.Robot:
    """A slide that may move by 1 m, and one that follows it and may move by 0.2 m."""
    joints = JOINT.format("leader", "one", 1, "") + JOINT.format("follower", "two", 0.2, '<mimic joint="leader"/>')
    path = tmp_path / "slides.urdf"
    path.write_text(f'<robot name="slides"><link name="base"/>{LINKS}{joints}</robot>')
    with pytest.warns(artsim.ModelWarning, match="limits of follower"):
        return artsim.load(path)


@pytest.mark.parametrize("coupling", ["exact", "rows"])
@pytest.mark.parametrize(("settings", "end"), [({}, 1.0), ({"upper_limit": {"follower": 0.4}}, 0.4)])
def test_a_leader_moves_to_its_own_limit(
    robot: artsim.Robot, coupling: str, settings: dict[str, object], end: float
) -> None:
    """With the option to the end of the leader's range, or to a limit that the follower is given; without, not."""
    common = {"steps": 1000, "torque": {"leader": 20.0}, "coupling": coupling}
    assert artsim.simulate(robot, **common)["qpos"][-1] == pytest.approx([0.2, 0.2], abs=1e-9)
    run = artsim.simulate(robot, ignore_follower_limits=True, **common, **settings)
    assert run["qpos"][-1] == pytest.approx([end, end], abs=1e-9)
    many = artsim.rollout(robot, samples=3, ignore_follower_limits=True, **common, **settings)
    assert many["qpos"][:, -1] == pytest.approx(end, abs=1e-9)
