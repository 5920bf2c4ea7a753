"""Values by joint and by pattern, in degrees, of independent joints alone; poses of bases; what stands on ground."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import artsim
from artsim.cli.main import cli
from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import Plan, plan_run
from tests.conftest import ROOT

ARM, QUADRUPED = str(ROOT / "robots" / "arm7.urdf"), str(ROOT / "robots" / "quadruped.urdf")
GRIPPER = str(ROOT / "robots" / "two_finger_gripper.urdf")


def planned(model: str, base: str = "fixed", **settings: object) -> Plan:
    articulation = load_articulation(model, base=base)  # type: ignore[arg-type]
    return plan_run(articulation, RunConfig.from_mapping({"base": base, **settings}))


def started(output: Path, model: str, *words: str) -> dict[str, float]:
    """The initial coordinates that the command line gives, by name."""
    result = CliRunner().invoke(cli, ["run", model, "--steps", "1", "-o", str(output), *words])
    assert result.exit_code == 0, result.output
    with artsim.open(output) as recording:
        return dict(zip(recording.labels.coord, recording["qpos"][0].tolist(), strict=True))


@pytest.mark.small
def test_a_pattern_stands_for_the_names_that_it_matches() -> None:
    plan = planned(QUADRUPED, "floating", q0={"*_knee": -0.8, "front_left_knee": -1.0, "root.z": 0.5})
    names = plan.robot.coords
    for name, value in zip(names, plan.qpos, strict=True):
        if name.endswith("_knee"):
            assert value == (-1.0 if name.startswith("front_left") else -0.8)
    assert plan.qpos[names.index("root.z")] == 0.5
    assert plan.config.q0["rear_left_knee"] == -0.8  # the output holds names, whose order does not matter


@pytest.mark.small
def test_all_means_the_joints_but_neither_bases_nor_followers() -> None:
    plan = planned(QUADRUPED, "floating", q0={"*": -0.1})
    np.testing.assert_array_equal(plan.qpos[:7], [0, 0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(plan.qpos[7:], -0.1)
    gripper = planned(GRIPPER, q0={"*": 0.01})  # followers follow
    assert np.all(np.isfinite(gripper.qpos))


@pytest.mark.small
@pytest.mark.parametrize(
    ("setting", "of", "told"),
    [
        ("q0", {"*_kneee": 1.0}, "q0: '*_kneee' matches nothing that can be set by a pattern"),
        ("target", {"jiont_1": 1.0}, "target: 'jiont_1' is not a joint of this robot; did you mean 'joint_1'?"),
        ("armature", {"jiont_1": 1.0}, "armature: 'jiont_1' is not a joint of this robot; did you mean 'joint_1'?"),
        ("armature", {"joint_1": -1.0}, "armature: joint_1 is -1.0, want a finite number from 0"),
        ("drive_mode", {"joint_1": "acc"}, "drive_mode of 'joint_1' 'acc' is not known"),
        ("drive_mode", {"jiont_1": "force"}, "drive_mode: 'jiont_1' is not a joint of this robot"),
    ],
)
def test_a_name_that_is_none_is_refused(setting: str, of: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError) as error:
        planned(ARM, **{setting: of})
    assert told in str(error.value)


@pytest.mark.small
def test_actuators_go_by_pattern_too() -> None:
    leg = str(ROOT / "robots" / "leg.xml")
    plan = planned(leg, control={"*": 0.25})
    assert plan.control.size > 1
    np.testing.assert_array_equal(plan.control, 0.25)
    told = CliRunner().invoke(cli, ["run", leg, "--steps", "1", "--control", "k*=0.25", "--control", "nobody*=1"])
    assert told.exit_code == 2 and "--control: 'nobody*' matches nothing" in told.output


@pytest.mark.small
def test_modes_and_limit_kinds_by_joint() -> None:
    plan = planned(
        ARM,
        dt=0.002,
        stiffness={"*": 10.0},
        drive_limit={"*": 0.02},
        drive_mode={"*": "acceleration", "joint_1": "force"},
        drive_limit_kind={"joint_[23]": "impulse"},
    )
    np.testing.assert_array_equal(plan.inputs["drive_acceleration"], [0, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(plan.inputs["drive_limit"], [0.02, 10, 10, 0.02, 0.02, 0.02, 0.02])


@pytest.mark.small
def test_armature_and_friction_replace_those_of_the_file() -> None:
    plan = planned(ARM, armature={"joint_*": 0.25, "joint_2": 0.5}, joint_friction={"joint_3": 1.5})
    plain = planned(ARM)
    index = plan.robot.dofs.index("joint_2")
    np.testing.assert_array_equal(plan.robot.model.armature[index], 0.5)
    assert np.all(np.delete(plan.robot.model.armature, index) == 0.25)
    q = np.full(7, 0.3)
    heavier = plan.robot.compute(q, quantities=["mass_matrix"])["mass_matrix"]
    before = plain.robot.compute(q, quantities=["mass_matrix"])["mass_matrix"]
    added = plan.robot.model.armature - plain.robot.model.armature
    np.testing.assert_allclose(heavier - before, np.diag(added), atol=1e-15)
    assert plan.robot.model.friction[plan.robot.dofs.index("joint_3")] == 1.5


@pytest.mark.small
def test_a_coupling_that_is_named_is_a_spring_and_the_others_stay_exact() -> None:
    couplings = load_articulation(GRIPPER).couplings
    assert len(couplings) > 1
    first = couplings[0].follower
    plan = planned(GRIPPER, coupling="compliant", coupling_frequency={first: 20.0}, coupling_damping={first: 0.5})
    model, dofs = plan.robot.model, plan.robot.dofs
    assert [dofs[k] for k in model.row_follower] == [first]
    assert model.row_frequency.tolist() == [20.0]
    assert {dofs[k] for k in model.coupling_follower} == {c.follower for c in couplings} - {first}
    everyone = planned(GRIPPER, coupling="compliant", coupling_frequency={"*": 20.0})
    alike = planned(GRIPPER, coupling="compliant", coupling_frequency=20.0)
    for name, values in everyone.robot.model._asdict().items():
        np.testing.assert_array_equal(values, getattr(alike.robot.model, name), err_msg=name)
    with pytest.raises(UsageError, match="is not a joint or tendon that follows another"):
        planned(GRIPPER, coupling="compliant", coupling_frequency={"nobody": 20.0})


def test_degrees_by_suffix_where_joints_turn(tmp_path: Path) -> None:
    found = started(tmp_path / "arm.h5", ARM, "--q0", "joint_[12]=30deg", "--q0", "joint_1=-45deg")
    assert found["joint_1"] == np.radians(-45) and found["joint_2"] == np.radians(30)
    planar = started(tmp_path / "planar.h5", str(ROOT / "robots" / "planar_base.urdf"), "--q0", "*=30deg")
    assert planar["arm_joint"] == np.radians(30) and planar["planar_joint.x"] == 0.0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--q0", "planar_joint.x=30deg"], "--q0 planar_joint.x: '30deg' is an angle, want m"),
        (["--torque", "arm_joint=30deg"], "--torque arm_joint: '30deg' is an angle, want a number"),
        (["--gravity", "0,0,9deg"], "--gravity: '9deg' is an angle, want a number"),
        (["--base-pose", "1,2,3deg"], "X,Y,Z are in metres"),
        (["--base-pose", "1,2"], "has 2 numbers, want X,Y,Z or X,Y,Z,ROLL,PITCH,YAW"),
        (["--base-pose", "1,2,3"], "this robot has no free base"),
        (["--on-ground", "--ground"], "--on-ground moves a free base, which this robot has not"),
        (["--q0", "1,2"], "--q0: got 2 numbers, want 4: planar_joint.x"),
        (["--q0", ",".join(["0"] * 11)], "7 more are those of a floating base (--base floating)"),
        (["--drive-mode", "arm_joint=acc"], "--drive-mode: 'acc' is not known"),
    ],
)
def test_words_that_mean_nothing_are_refused(words: list[str], told: str) -> None:
    model = str(ROOT / "robots" / "planar_base.urdf")
    result = CliRunner().invoke(cli, ["run", model, "--steps", "1", *words])
    assert result.exit_code == 2
    assert told in result.output


def test_lists_may_leave_followers_out() -> None:
    robot = artsim.load(GRIPPER)
    free = robot.independent_dofs
    assert len(free) < robot.nv
    values = [0.001 * (k + 1) for k in range(len(free))]
    words = ["--target", ",".join(map(str, values)), "--stiffness", "50"]
    result = CliRunner().invoke(cli, ["run", GRIPPER, "--steps", "1", "-q", *words])
    assert result.exit_code == 0, result.output
    plan = planned(GRIPPER, stiffness={"*": 50.0}, target=dict(zip(free, values, strict=True)))
    recorded = artsim.simulate(robot, steps=2, stiffness=50.0, target=values)
    np.testing.assert_array_equal(recorded["qpos"][0], plan.qpos)


@pytest.mark.small
def test_a_base_starts_at_its_pose() -> None:
    plan = planned(QUADRUPED, "floating", base_pose={"": (1.0, 2.0, 3.0, 0.0, 0.0, np.pi / 2)}, q0={"root.z": 4.0})
    np.testing.assert_allclose(plan.qpos[:7], [1, 2, 4, np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-15)
    assert not plan.config.base_pose  # q0 holds it
    for alone in ([1.0, 2.0, 3.0], (1.0, 2.0, 3.0), {"root": [1.0, 2.0, 3.0]}):  # lists come from TOML
        np.testing.assert_array_equal(planned(QUADRUPED, "floating", base_pose=alone).qpos[:3], [1, 2, 3])
    by_link = planned(QUADRUPED, "floating", base_pose={plan.robot.links[0]: (1.0, 2.0, 3.0)})
    np.testing.assert_array_equal(by_link.qpos[:7], [1, 2, 3, 1, 0, 0, 0])
    with pytest.raises(UsageError, match="is no free body"):
        planned(QUADRUPED, "floating", base_pose={"rot": (1.0, 2.0, 3.0)})


SHAPES = {
    "sphere": ('<sphere radius="0.2"/>', lambda R: 0.2),
    "box": ('<box size="0.2 0.4 0.6"/>', lambda R: np.abs(R[2]) @ [0.1, 0.2, 0.3]),
    "cylinder": (
        '<cylinder radius="0.1" length="0.6"/>',
        lambda R: 0.1 * np.hypot(R[2, 0], R[2, 1]) + 0.3 * abs(R[2, 2]),
    ),
}


@pytest.mark.small
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("tilt", [0.0, 0.4, 1.3])
def test_the_lowest_point_of_a_shape_stands_on_the_ground(kind: str, tilt: float, tmp_path: Path) -> None:
    """The support of each shape in closed form."""
    geometry, support = SHAPES[kind]
    file = tmp_path / "one.urdf"
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    collision = f"<collision><geometry>{geometry}</geometry></collision>"
    file.write_text(f'<robot name="one"><link name="a">{inertial}{collision}</link></robot>')
    place = (0.0, 0.0, 7.0, tilt, 0.2, 0.0)
    settings = {"ground": True, "ground_height": 0.5, "on_ground": 0.03, "base_pose": {"": place}}
    plan = planned(str(file), "floating", **settings)
    w, x, y, z = plan.qpos[3:7]
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    assert plan.qpos[2] == pytest.approx(0.5 + 0.03 + support(R), abs=1e-14)


def test_a_quadruped_on_the_ground_neither_sinks_nor_gains_energy() -> None:
    robot = artsim.load(QUADRUPED, base="floating")
    pose = {"*_hip": 0.7, "*_knee": -1.4}
    run = artsim.simulate(robot, steps=5, ground=True, on_ground=0.0, q0=pose, record=["+energy"])
    assert "energy" in run and "qpos" in run
    deepest = run.contacts["depth"].max() if len(run.contacts["depth"]) else 0.0
    assert abs(deepest) < 1e-3
    energy = run["energy"].sum(axis=1)
    assert energy[-1] - energy[0] < 1e-3


def test_the_gap_may_be_left_out_but_not_before_a_model() -> None:
    words = ["--base", "floating", "--ground", "--steps", "1"]
    for gap in (["--on-ground"], ["--on-ground", "0.1"], ["--on-ground=0"]):
        assert CliRunner().invoke(cli, ["run", QUADRUPED, *gap, *words]).exit_code == 0
    refused = CliRunner().invoke(cli, ["run", *words, "--on-ground", QUADRUPED])
    assert refused.exit_code == 2 and "is no gap in metres; give MODEL first, or --on-ground=0" in refused.output


def test_on_ground_is_stored_as_the_state_it_makes(tmp_path: Path) -> None:
    output = tmp_path / "run.h5"
    words = [
        "run",
        QUADRUPED,
        "--base",
        "floating",
        "--ground",
        "--on-ground",
        "0.01",
        "--steps",
        "3",
        "-o",
        str(output),
    ]
    result = CliRunner().invoke(cli, [*words, "--q0", "*_hip=40deg", "--q0", "*_knee=-80deg"])
    assert result.exit_code == 0, result.output
    verified = CliRunner().invoke(cli, ["replay", "--verify", str(output)])
    assert verified.exit_code == 0, verified.output
    sunk = CliRunner().invoke(cli, ["run", QUADRUPED, "--base", "floating", "--ground", "--steps", "1"])
    assert "--on-ground starts a free base above the ground" in sunk.output


@pytest.mark.small
def test_one_value_for_all_names_what_it_leaves_out() -> None:
    followers = sorted(c.follower for c in load_articulation(GRIPPER).couplings)
    (note,) = (note for note in planned(GRIPPER, stiffness={"*": 1.0}, damping={"*": 1.0}).notes if "one value" in note)
    assert "one value of --stiffness and --damping is for joints of one dof that follow no other, not for" in note
    assert sum(f"{name} (follows another)" in note for name in followers) == min(4, len(followers))
    planar = planned(str(ROOT / "robots" / "planar_base.urdf"), stiffness={"*": 1.0})
    assert any("planar_joint (3 dofs)" in note for note in planar.notes)
    assert not any("one value" in note for note in planned(QUADRUPED, "floating", stiffness={"*": 1.0}).notes)
    named = {"*": 1.0, "planar_joint.x": 0.5, "planar_joint.y": 0.5}
    assert not any("one value" in n for n in planned(str(ROOT / "robots" / "planar_base.urdf"), stiffness=named).notes)


def test_a_run_from_python_reads_its_robot_as_its_settings_ask(tmp_path: Path) -> None:
    """`base` once had no effect on a robot that was given by its file."""
    by_file = artsim.simulate(QUADRUPED, base="floating", steps=2)
    assert by_file.labels.coord[:3] == ("root.x", "root.y", "root.z")
    fixed = artsim.load(QUADRUPED)
    freed = artsim.simulate(fixed, base="floating", steps=2)
    np.testing.assert_array_equal(freed["qpos"], by_file["qpos"])
    assert artsim.rollout(fixed, base="floating", samples=1, steps=2)["qpos"].shape[-1] == 19
    with pytest.raises(UsageError, match="the model's file says itself what is free"):
        artsim.simulate(artsim.load(ROOT / "robots" / "leg.xml"), base="floating", steps=2)
    bare = tmp_path / "bare.urdf"
    bare.write_text(
        '<robot name="d"><link name="a"/><link name="b"><collision><geometry><box size="0.1 0.1 0.3"/></geometry>'
        '</collision></link><joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )
    with pytest.warns(artsim.ModelWarning):
        assert artsim.simulate(bare, density=1000.0, steps=2)["qpos"].shape == (2, 1)
    with pytest.raises(UsageError, match=r"density is an option of artsim\.load: this robot was loaded with None"):
        artsim.simulate(fixed, density=1000.0, steps=2)


@pytest.mark.parametrize(
    ("spread", "code", "told"),
    [
        ("10deg", 0, ""),
        ("joint_[12]=-5deg:5deg,joint_3=0.1", 0, ""),
        ("joint_1=10dg", 2, "'joint_1=10dg' is not X, COORD=X or COORD=LOW:HIGH"),
    ],
)
def test_spreads_in_degrees(spread: str, code: int, told: str, tmp_path: Path) -> None:
    words = ["rollout", ARM, "--samples", "64", "--steps", "1", "--spread", spread, "-o", str(tmp_path / "r.h5")]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == code and told in result.output
    if not code:
        with artsim.open(tmp_path / "r.h5") as rollout:
            reach = np.abs(rollout["qpos"][:, 0]).max(axis=0)
        most = np.radians(10) if spread == "10deg" else np.radians(5)
        assert 0.8 * most < reach[0] <= most


def test_spreads_in_degrees_are_for_joints_that_turn() -> None:
    model = str(ROOT / "robots" / "planar_base.urdf")
    words = ["rollout", model, "--samples", "2", "--steps", "1", "--spread"]
    refused = CliRunner().invoke(cli, [*words, "planar_joint.x=10deg"])
    assert refused.exit_code == 2 and "--spread: planar_joint.x is in m, not in degrees" in refused.output
    assert CliRunner().invoke(cli, [*words, "planar_joint.angle=10deg"]).exit_code == 0


def test_models_are_placed_by_degrees(tmp_path: Path) -> None:
    places = {"deg": "0,0,1,0,0,90deg", "rad": f"0,0,1,0,0,{np.pi / 2!r}"}
    found = []
    for name, place in places.items():
        output = tmp_path / f"{name}.h5"
        words = ["run", ARM, "--steps", "1", "--place", place, "-o", str(output)]
        assert CliRunner().invoke(cli, words).exit_code == 0
        with artsim.open(output) as recording:
            found.append(recording["link_quaternion"][0])
    np.testing.assert_array_equal(*found)
    refused = CliRunner().invoke(cli, ["run", ARM, "--steps", "1", "--place", "0,0,1deg"])
    assert refused.exit_code == 2 and "1deg" in refused.output


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            ARM,
            "--stiffness 200 --damping 5 --target joint_2=20deg --drive-mode acceleration --drive-mode joint_1=force "
            "--drive-limit 3 --drive-limit-kind joint_[45]=impulse --armature 0.1 --joint-friction joint_[1-3]=0.5",
        ),
        (
            GRIPPER,
            "--coupling compliant --coupling-frequency {follower}=15 --coupling-damping {follower}=0.4 --q0 *=0.1",
        ),
        (QUADRUPED, "--base floating --ground --on-ground 0.02 --base-pose 0,0,0,5deg,0,30deg --q0 *_knee=-1"),
    ],
)
@pytest.mark.parametrize("command", ["run", "rollout"])
def test_what_goes_by_joint_is_stored_and_replayed(command: str, model: str, words: str, tmp_path: Path) -> None:
    given = words.format(follower=load_articulation(GRIPPER).couplings[0].follower).split()
    output = tmp_path / "out.h5"
    samples = ["--samples", "3", "--spread", "0.01"] if command == "rollout" else []
    result = CliRunner().invoke(cli, [command, model, "--steps", "20", "-o", str(output), *samples, *given])
    assert result.exit_code == 0, result.output
    verified = CliRunner().invoke(cli, ["replay", "--verify", str(output)])
    assert verified.exit_code == 0 and "every byte equal" in verified.output, verified.output


def test_friction_of_an_option_is_that_of_a_file(tmp_path: Path) -> None:
    """The same motion, bit for bit, as of a file that has it."""
    changed = tmp_path / "arm7.urdf"
    with_friction = r'<dynamics damping="\1" friction="0.75"/>'
    changed.write_text(re.sub(r'<dynamics damping="([\d.]+)"/>', with_friction, Path(ARM).read_text()))
    options = artsim.simulate(ARM, steps=50, joint_friction=0.75, torque={"joint_2": 30.0})
    by_file = artsim.simulate(changed, steps=50, torque={"joint_2": 30.0})
    without = artsim.simulate(ARM, steps=50, torque={"joint_2": 30.0})
    np.testing.assert_array_equal(options["qpos"], by_file["qpos"])
    assert np.abs(options["qpos"] - without["qpos"]).max() > 1e-4


@pytest.mark.parametrize("name", ["arm7", "two_finger_gripper", "quadruped", "floating_box", "parallel_gripper"])
@pytest.mark.parametrize("tilt", [0.0, 0.7])
def test_detection_finds_a_robot_on_the_ground_at_its_gap(name: str, tilt: float) -> None:
    """Contact detection, which knows nothing of how a base was placed, measures the gap; meshes too."""
    robot = artsim.load(ROOT / "robots" / f"{name}.urdf", base="fixed" if name == "floating_box" else "floating")
    settings = {"ground": True, "base_pose": {"": (0, 0, 5, tilt, 0.3 * tilt, 0)}, "steps": 1, "gravity": (0, 0, 0)}
    if artsim.simulate(robot, **{**settings, "ground": False}).contacts:  # touches itself
        pytest.skip("touches itself")
    on = artsim.simulate(robot, on_ground=0.0, **settings)
    assert not len(on.contacts["depth"]) or abs(on.contacts["depth"].max()) < 1e-12
    inside = artsim.simulate(robot, on_ground=-1e-3, **settings)
    assert inside.contacts["depth"].max() == pytest.approx(1e-3, abs=1e-12)
    above = artsim.simulate(robot, on_ground=0.5, **settings)
    assert not len(above.contacts["depth"])


def test_a_place_from_python() -> None:
    robot = artsim.load(QUADRUPED, base="floating")
    alone = artsim.simulate(robot, steps=1, base_pose=np.array([1.0, 2.0, 3.0]))  # type: ignore[arg-type]
    named = artsim.simulate(robot, steps=1, base_pose={"root": (1, 2, 3)})
    np.testing.assert_array_equal(alone["qpos"], named["qpos"])
    with pytest.raises(UsageError, match="base_pose is 3, want numbers"):
        artsim.simulate(robot, steps=1, base_pose=3)  # type: ignore[arg-type]
