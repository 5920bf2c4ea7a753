"""`artsim attach`: two robots as one, against both by themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.transform import Rotation

import artsim
from artsim.cli.main import cli
from artsim.loaders.attach import attached
from artsim.loaders.load import load_articulation
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Pose
from artsim.sim.foundation.errors import UsageError

ROBOTS = Path(artsim.__file__).parents[2] / "robots"
ARM, HAND = ROBOTS / "arm7.urdf", ROBOTS / "two_finger_gripper.urdf"
KEYED = """<mujoco model="rod"><worldbody><geom type="plane" size="1 1 .1"/><body name="rod" pos=".1 0 0">
<geom size=".05" mass="1"/><body name="tip" pos="0 0 .3"><joint name="bend" axis="0 1 0"/><geom size=".02" mass=".2"/>
</body></body></worldbody><actuator><motor name="m" joint="bend"/></actuator>
<keyframe><key name="bent" qpos=".3" ctrl=".5"/></keyframe></mujoco>"""


def places(robot: artsim.Robot, q: np.ndarray) -> dict[str, tuple[np.ndarray, Rotation]]:
    found = robot.compute(q, quantities=["link_position", "link_quaternion"])
    turns = Rotation.from_quat(found["link_quaternion"], scalar_first=True)
    return {name: (found["link_position"][k], turns[k]) for k, name in enumerate(robot.links)}


@pytest.mark.small
@pytest.mark.parametrize("suffix", ["urdf", "xml", "sdf"])
def test_links_are_where_both_robots_have_them(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"both.{suffix}"
    words = ["attach", str(HAND), str(ARM), "--at", "tool0", "--pose", "0.01,0.02,0.05,30deg,0,90deg", "--prefix", "g_"]
    done = CliRunner().invoke(cli, [*words, "-o", str(path)])
    assert done.exit_code == 0, done.output
    arm, hand, both = artsim.load(ARM), artsim.load(HAND), artsim.load(path)
    rng = np.random.default_rng(1)
    q = dict(zip(arm.labels.coords, rng.uniform(-1, 1, arm.nq), strict=True))
    leaders = [name for name in hand.labels.coords if name in hand.independent_dofs]
    q |= {f"g_{name}": 0.01 * rng.uniform() for name in leaders}
    at = _configuration(both, q)
    own = _configuration(hand, {name.removeprefix("g_"): value for name, value in q.items() if name.startswith("g_")})
    whole, carrier, tool = places(both, at), places(arm, _configuration(arm, q)), places(hand, own)
    turn = carrier["tool0"][1] * Rotation.from_euler("xyz", [np.deg2rad(30), 0, np.deg2rad(90)])
    point = carrier["tool0"][0] + carrier["tool0"][1].apply([0.01, 0.02, 0.05])
    for name, (position, rotation) in tool.items():
        found = whole[f"g_{name}"]
        np.testing.assert_allclose(found[0], point + turn.apply(position), atol=1e-12)
        assert (found[1].inv() * turn * rotation).magnitude() < 1e-9
    for name, (position, _) in carrier.items():
        np.testing.assert_allclose(whole[name][0], position, atol=1e-12)
    mass = sum(float(robot.model.body_mass.sum()) for robot in (arm, hand))
    assert float(both.model.body_mass.sum()) == pytest.approx(mass, rel=1e-12)


def _configuration(robot: artsim.Robot, q: dict[str, float]) -> np.ndarray:
    """qpos with these coordinates, followers by a run's start."""
    simulation = artsim.Simulation(robot, contacts=False)
    simulation.qpos = {name: value for name, value in q.items() if name in robot.independent_dofs}
    return np.array(simulation.qpos)


@pytest.mark.small
def test_keyframes_of_the_carrier_hold_the_tool_at_its_start(tmp_path: Path) -> None:
    (tmp_path / "rod.xml").write_text(KEYED)
    rod = load_articulation(tmp_path / "rod.xml")
    both = attached(rod, load_articulation(HAND), "tip", Pose())
    (key,) = both.keyframes
    labels = compile_model(both).labels
    assert dict(zip(labels.coords, key.qpos, strict=True))["bend"] == 0.3
    assert key.control == (0.5,)
    other = attached(load_articulation(ARM), rod, "tool0", Pose(), "r_")
    assert "world" not in {link.name for link in other.links}
    told = [note.message if hasattr(note, "message") else str(note) for note in other.notes]
    assert any("keyframes 'r_bent' of 'rod' are left out" in line for line in told)
    assert any("shapes of the world" in line for line in told)
    mount = next(joint for joint in other.joints if joint.name == "r_mount")
    assert mount.pose.position == (0.1, 0.0, 0.0)  # as the file has it in its world


@pytest.mark.small
def test_what_cannot_be_attached_is_refused(tmp_path: Path) -> None:
    arm = load_articulation(ARM)
    with pytest.raises(UsageError, match="did you mean 'tool0'"):
        attached(arm, load_articulation(HAND), "tool1", Pose())
    with pytest.raises(UsageError, match=r"links of both are called 'link_0', .* give a prefix"):
        attached(arm, arm, "tool0", Pose())
    twice = attached(arm, arm, "tool0", Pose(), "second_")
    assert len(twice.links) == 2 * len(arm.links)
    words = ["attach", str(ARM), str(ARM), "--at", "tool0", "--prefix", "b_", "-o", str(tmp_path / "x.urdf")]
    for pose, said in (("1,2", "has 2 numbers, want"), ("0,0,0,x,0,0", "is not a number"), ("1deg,0,0", "in metres")):
        refused = CliRunner().invoke(cli, [*words, "--pose", pose])
        assert refused.exit_code == 2
        assert said in refused.output
    assert not (tmp_path / "x.urdf").exists()
