"""Several models in one scene: against MuJoCo's own attaching, against the models alone, and from the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.io.runs.prepare import prepare
from artsim.io.runs.replay import verify
from artsim.io.runs.run import run as simulate_into
from artsim.loaders.load import SceneEntry, load_articulation, load_scene, load_text
from artsim.loaders.scene import scene_names
from artsim.loaders.stored import load_stored
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation, Pose
from artsim.sim.articulation.pose_algebra import quaternion_from_rpy
from artsim.sim.foundation.errors import MissingInputError, ModelError, UsageError
from artsim.sim.geometry.collision_pairs import collision_pairs
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from tests.cli.test_cli_run import good, refused
from tests.conftest import ROOT
from tests.loaders.test_srdf import APART, URDF

ROBOTS = ROOT / "robots"
TURNED = Pose((1.0, -2.0, 0.5), quaternion_from_rpy(0.3, -0.4, 2.0))
BALL = """<mujoco model="ball"><option gravity="0 0 -3"/><worldbody>
  <geom name="mat" type="box" size="1 1 .1"/><site name="mark" pos="1 0 0"/>
  <body name="ball" pos="0 0 1"><freejoint name="ball"/><geom name="ball" size=".1"/></body>
  <body name="flap" pos=".5 0 0"><joint name="flap" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
</worldbody>
<contact><exclude body1="flap" body2="world"/></contact>
<actuator><motor name="push" joint="flap"/></actuator>
<sensor><framepos name="where" objtype="body" objname="ball" reftype="site" refname="mark"/></sensor>
<keyframe><key name="up" qpos="0 0 2 1 0 0 0 .3" qvel="1 2 3 .1 .2 .3 0" ctrl=".5"/></keyframe></mujoco>"""
LEG = (ROBOTS / "leg.xml").read_text()
BOX = (
    '<robot name="box"><link name="box"><inertial><mass value="{}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" '
    'izz="1"/></inertial><collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>'
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "ball.xml").write_text(BALL)
    (tmp_path / "leg.xml").write_text(LEG)
    (tmp_path / "arm.urdf").write_text(URDF)
    (tmp_path / "box.urdf").write_text(BOX.format(2))
    (tmp_path / "table.urdf").write_text(BOX.format(0))
    (tmp_path / "arm.srdf").write_text(
        '<robot name="arm"><disable_collisions link1="base" link2="hand" reason="Never"/></robot>'
    )
    return tmp_path


def scene(folder: Path, *entries: tuple[Any, ...], **options: Any) -> Articulation:
    """(name, file, base, place, srdf) of each model."""
    made = [SceneEntry(entry[0], str(folder / entry[1]), *entry[2:]) for entry in entries]
    return load_scene(made, **options)


def touching(articulation: Articulation, **options: Any) -> set[str]:
    pairs = collision_pairs(articulation, compile_model(articulation), **options)
    names = [articulation.links[n].name for n, _ in pairs.geoms]
    return {f"{names[a]} {names[b]}" for a, b in np.argwhere(np.triu(pairs.allowed))}


# --- what a scene is -------------------------------------------------------------------------------------------------


def test_two_models_are_as_mujoco_attaches_them(files: Path) -> None:
    robot = Robot.of(scene(files, ("a", "ball.xml", None, TURNED), ("b", "leg.xml")))
    spec = mujoco.MjSpec()
    spec.option.gravity = [0, 0, -3]
    for prefix, text, place in (("a/", BALL, TURNED), ("b/", LEG, Pose())):
        frame = spec.worldbody.add_frame(pos=place.position, quat=place.rotation)
        spec.attach(mujoco.MjSpec.from_string(text), prefix=prefix, frame=frame)
    model = spec.compile()
    data = mujoco.MjData(model)
    assert (robot.nq, robot.nv) == (model.nq, model.nv)
    np.testing.assert_allclose(robot.reference, model.qpos0, atol=1e-12)
    rng = np.random.default_rng(5)
    links = [n for n, name in enumerate(robot.links) if not name.endswith("/world")]
    assert [robot.links[n] for n in links] == [model.body(n).name for n in range(1, model.nbody)]
    for _ in range(3):
        q, v = model.qpos0 + rng.normal(size=model.nq), rng.normal(size=model.nv)
        mujoco.mj_normalizeQuat(model, q)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        out = robot.compute(q, v, quantities=["mass_matrix", "bias", "link_position"])
        np.testing.assert_allclose(out["link_position"][links], data.xpos[1:], atol=1e-12)
        np.testing.assert_allclose(out["mass_matrix"], M, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(out["bias"], data.qfrc_bias, rtol=1e-10, atol=1e-10)


def test_every_name_is_under_its_model_s(files: Path) -> None:
    both = scene(files, ("a", "ball.xml"), ("b", "ball.xml"))
    names = [
        *(item.name for part in (both.links, both.joints, both.sites, both.actuators, both.sensors) for item in part),
        *(key.name for key in both.keyframes),
        *(geom.name for link in both.links for geom in link.geoms if geom.name),
        *(name for pair in both.no_contact for name in pair),
        *(name for sensor in both.sensors for name in (sensor.object, sensor.reference)),
        *(actuator.target for actuator in both.actuators),
    ]
    assert all(name.startswith(("a/", "b/")) for name in names), names
    assert [(part.name, part.format, part.links) for part in both.parts] == [("a", "mjcf", 3), ("b", "mjcf", 3)]


def test_what_is_in_a_scene_moves_as_it_does_alone(files: Path) -> None:
    """The two do not touch; what a placed robot does in its own frame is what it does alone (gravity along z)."""
    turn = Pose((3.0, 1.0, 0.0), quaternion_from_rpy(0.0, 0.0, 1.2))
    places = (Pose(), turn)
    clamp, arm = ROBOTS / "clamp.xml", files / "arm.urdf"
    both = scene(files, ("clamp", clamp, None, places[0]), ("arm", arm, None, places[1]))
    settings: dict[str, Any] = {"steps": 200, "dt": 0.002, "record": ["qpos", "qvel", "tau_tendon", "actuator_force"]}
    start = {"upper": 0.4, "fore": -0.3, "hand": 0.1}
    run = artsim.simulate(
        Robot.of(both),
        v0={f"arm/{name}": value for name, value in start.items()},
        control={"clamp/grip": 1},
        **settings,
    )
    for name, file, given in (("clamp", clamp, {"control": {"grip": 1}}), ("arm", arm, {"v0": start})):
        alone = artsim.simulate(artsim.load(file), **given, **settings)
        columns = [run.labels.coord.index(f"{name}/{coord}") for coord in alone.labels.coord]
        assert np.ptp(alone["qpos"], axis=0).min() > 1e-3
        np.testing.assert_allclose(run["qpos"][:, columns], alone["qpos"], atol=1e-9)


def test_free_bodies_and_keyframes_move_with_their_model(files: Path) -> None:
    both = scene(files, ("arm", "arm.urdf"), ("a", "ball.xml", None, TURNED))
    alone = load_articulation(files / "ball.xml")
    key, own = both.keyframes[0], alone.keyframes[0]
    assert key.name == "a/up" and key.control == own.control
    robot = Robot.of(both)
    frame = np.array(artsim_rotation(TURNED))
    for articulation, state in ((alone, own), (both, key)):
        found = link_positions(articulation, state.qpos)
        if articulation is alone:
            want = {name: frame @ position + TURNED.position for name, position in found.items()}
        else:
            for name, position in want.items():
                np.testing.assert_allclose(found[f"a/{name}"], position, atol=1e-12)
    start = robot.labels.joint_dofs["a/ball"].start
    np.testing.assert_allclose(key.qvel[start : start + 3], frame @ own.qvel[:3], atol=1e-12)
    assert key.qvel[start + 3 : start + 6] == own.qvel[3:6]


def link_positions(articulation: Articulation, qpos: tuple[float, ...]) -> dict[str, Any]:
    robot = Robot.of(articulation)
    positions = robot.compute(np.array(qpos), quantities=["link_position"])["link_position"]
    return dict(zip(robot.links, positions, strict=True))


def artsim_rotation(pose: Pose) -> list[list[float]]:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, pose.rotation)
    rows: list[list[float]] = matrix.reshape(3, 3).tolist()
    return rows


def test_objects_are_free_and_robots_stand(files: Path) -> None:
    def nv(*entries: tuple[Any, ...], **options: Any) -> int:
        return int(Robot.of(scene(files, *entries, **options)).nv)

    box, table, arm = ("box", "box.urdf"), ("table", "table.urdf"), ("arm", "arm.urdf")
    assert nv(arm, box, table) == 3 + 6 + 0
    assert nv(arm, (*box, "fixed")) == 3
    assert nv((*arm, "floating"), box) == 9 + 6
    assert nv(arm, box, default_base="floating") == 9 + 6
    assert nv(arm, box, default_base="fixed") == 3
    assert nv(("", "box.urdf", None, TURNED)) == 0  # alone: as without a place
    assert nv(("", "box.urdf", "floating", TURNED)) == 6
    free = Robot.of(scene(files, arm, (*box, None, TURNED)))
    np.testing.assert_allclose(free.reference[3:], [*TURNED.position, *TURNED.rotation])


def test_a_root_called_world_can_be_placed(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(URDF.replace('"base"', '"world"'))
    for name in ("", "r"):
        robot = scene(tmp_path, (name, "r.urdf", None, TURNED))
        for position in link_positions(robot, (0.0, 0.0, 0.0)).values():
            np.testing.assert_allclose(position, TURNED.position, atol=1e-12)


def test_of_options_the_first_model_s_count(files: Path) -> None:
    (files / "moon.xml").write_text('<mujoco><option gravity="0 0 -1.6" timestep=".004"/></mujoco>')
    both = scene(files, ("arm", "arm.urdf"), ("ball", "ball.xml"), ("moon", "moon.xml"))
    assert both.options.gravity == (0, 0, -3) and both.options.timestep == 0.004
    assert [str(note) for note in both.notes if "gravity" in str(note)] == [
        f"{files / 'moon.xml'}: gravity is 0 0 -3, as in 'ball', not 0 0 -1.6"
    ]


# --- what may touch --------------------------------------------------------------------------------------------------


def test_robots_touch_each_other_and_not_themselves(files: Path) -> None:
    both = scene(files, ("a", "arm.urdf"), ("b", "arm.urdf"))
    moving = ("upper", "fore", "hand")
    others = {f"a/{first} b/{second}" for first in moving for second in moving}
    others |= {f"a/base b/{name}" for name in moving} | {f"a/{name} b/base" for name in moving}
    assert touching(both) == others
    own = {" ".join(f"{name}/{link}" for link in pair.split()) for name in "ab" for pair in APART}
    assert touching(both, self_collide=True) == others | own
    with_file = scene(files, ("a", "arm.urdf", None, Pose(), str(files / "arm.srdf")), ("b", "arm.urdf"))
    assert touching(with_file) == others | {"a/base a/fore", "a/upper a/hand"}


def test_an_mjcf_file_keeps_its_rules_in_a_scene(files: Path) -> None:
    alone = touching(load_articulation(files / "ball.xml"))
    both = touching(scene(files, ("a", "ball.xml"), ("b", "ball.xml")))
    for name in "ab":
        inside = {pair for pair in both if pair.count(f"{name}/") == 2}
        assert {pair.replace(f"{name}/", "") for pair in inside} == alone
    assert "a/flap b/world" in both and "a/world a/flap" not in both and "a/world b/world" not in both


# --- names -----------------------------------------------------------------------------------------------------------


def names_of(*words: str) -> list[tuple[str, str]]:
    return scene_names(words, lambda word: "=" not in word)


def test_names_of_models() -> None:
    assert names_of("x/arm.urdf") == [("", "x/arm.urdf")]
    assert names_of("left=x/arm.urdf") == [("left", "x/arm.urdf")]
    names = [name for name, _ in names_of("arm.urdf", "arm.xml", "arm_2=b.xml", "-", "r.urdf.xacro", ".urdf")]
    assert names == ["arm", "arm_3", "arm_2", "stdin", "r", "model"]
    for wrong in ("=a.urdf", "a=", "a/b=c.urdf", "*=c.urdf"):
        with pytest.raises(UsageError, match="neither a file nor NAME=FILE"):
            names_of(wrong)
    with pytest.raises(UsageError, match="two models are called 'a'"):
        names_of("a=x", "a=y")


# --- stored ----------------------------------------------------------------------------------------------------------


def test_a_scene_is_read_again_from_its_text(files: Path) -> None:
    srdf = str(files / "arm.srdf")
    first = scene(
        files, ("a", "arm.urdf", "floating", TURNED, srdf), ("ball", "ball.xml", None, TURNED), ("box", "box.urdf")
    )
    again = load_text(first.text, name="stored")
    assert again.text == first.text
    for name in ("links", "joints", "no_contact", "parts", "options", "format"):
        one, other = (strip(getattr(articulation, name)) for articulation in (first, again))
        assert one == other, name
    assert first.no_contact == (("a/base", "a/hand"), ("ball/flap", "ball/world"))


def strip(value: Any) -> str:
    """As text, without the places in files, which have other names."""
    import re

    return re.sub(r"Source\([^)]*\)", "", str(value))


@pytest.mark.parametrize(
    "change",
    [
        ('"base": "fixed"', '"base": "flying"'),
        ('"name": "b"', '"name": "a"'),
        ('"name": "b"', '"name": ""'),
        ('"name": "b"', '"name": 3'),
        ("0.0, 1.0", "0.0, 2.0"),
        ("0.0, 1.0", "1e999, 1.0"),
        ('"text"', '"txet"'),
        ('"models": [', '"models": [[],'),
        ("]}", "]"),
        ('"models"', '"modles"'),
    ],
    ids=str,
)
def test_a_text_that_is_no_scene_is_refused(files: Path, change: tuple[str, str]) -> None:
    text = scene(files, ("a", "arm.urdf"), ("b", "box.urdf")).text
    assert change[0] in text
    with pytest.raises(ModelError, match=r"^stored: not the text of a scene$"):
        load_text(text.replace(*change), name="stored")


def test_scenes_do_not_nest_and_have_limits(files: Path) -> None:
    import json

    first = scene(files, ("a", "arm.urdf"), ("b", "box.urdf"))
    content = json.loads(first.text)
    content["models"][0]["text"] = first.text
    nested = '{"artsim_scene": 1, "models": ' + json.dumps(content["models"]) + "}"
    with pytest.raises(ModelError, match="a scene within a scene"):
        load_text(nested, name="stored")
    with pytest.raises(ModelError, match="above the cap"):
        load_text(first.text, name="stored", max_xml_mb=0.001)


def test_replay_of_a_scene(files: Path) -> None:
    srdf = str(files / "arm.srdf")
    for entries in (
        (("arm", "arm.urdf", None, TURNED, srdf), ("ball", "ball.xml"), ("box", "box.urdf")),
        (("", "arm.urdf", "floating", TURNED, srdf),),
        (("", "ball.xml", None, TURNED),),
    ):
        output = files / "out.h5"
        plan = prepare(scene(files, *entries), RunConfig(steps=20))
        simulate_into(plan, output=output, force=True)
        assert verify(output, load_stored) is None


# --- command line ----------------------------------------------------------------------------------------------------


def test_command_line(files: Path) -> None:
    out, again = files / "out.h5", files / "again.h5"
    words = (files / "arm.urdf", files / "box.urdf", f"ball={files / 'ball.xml'}", files / "arm.urdf")
    places = ("--place", "box=1,0,2", "--place", f"arm_2=0,3,0,0,0,{math.pi / 2}")
    more = ("--base", "arm_2=floating", "--srdf", f"arm={files / 'arm.srdf'}", "--q0", "arm/upper=0.3")
    done = good("run", *words, *places, *more, "--control", "ball/push=1", "--steps", "20", "-o", out)
    assert "wrote" in done.stderr
    with artsim.open(out) as recording:
        coords = list(recording.labels.coord)
        assert recording["qpos"][0, coords.index("arm/upper")] == 0.3
        assert recording["qpos"][0, coords.index("box/root.z")] == 2.0
        assert recording["qpos"][0, coords.index("arm_2/root.y")] == 3.0
        rows = recording["qpos"][:]
    good("replay", "--verify", out)
    good("run", "--config", out, "-o", again)
    with artsim.open(again) as recording:
        assert np.array_equal(recording["qpos"][:], rows)
    assert "scene robot 'arm, box, ball, arm_2'" in good("info", out).stdout


def test_commands_that_simulate_take_scenes(files: Path) -> None:
    """An arm whose links touch themselves as its SRDF says, over a free box, in every command alike."""
    words = (files / "arm.urdf", files / "box.urdf", "--srdf", f"arm={files / 'arm.srdf'}", "--place", "box=0,3,2")
    told = good("check", *words).stdout
    rows = [line.split() for line in told.splitlines()]
    assert ["arm/base", "arm/root", "fixed", "1", "kg"] in rows and ["box/box", "box/root", "free", "2", "kg"] in rows
    assert "scene 'arm, box': 5 links, 5 joints (1 fixed, 3 continuous, 1 free)" in told
    assert "6 pairs may touch, 4 the ground" in told  # two of the arm with itself
    plain = {"NUMBA_DISABLE_JIT": "1"}  # nothing is compiled
    few = ("--steps", "2", "--ground", "--self-collide", "--velocity-limits")
    push = files / "push.csv"
    push.write_text("time,arm/upper.torque\n0,1\n")
    timed = good("bench", *words, *few, "--pieces", 1, "--control", push, "--json", **plain)
    assert json.loads(timed.stdout)["steps"] == 2
    output = files / "rollout.h5"
    made = good("rollout", *words, *few, "--samples", 2, "-o", output, **plain)
    assert "2 samples, 4 steps" in made.stderr
    with artsim.open(output) as recording:
        coords = list(recording.labels.coord)
        assert recording["qpos"][:, 0, coords.index("box/root.y")].tolist() == [3.0, 3.0]
    good("replay", "--verify", output, **plain)


def test_a_model_is_not_overwritten_by_its_output(files: Path) -> None:
    arm, box, srdf = (files / name for name in ("arm.urdf", "box.urdf", "arm.srdf"))
    for file in (arm, srdf):
        words = (f"a={arm}", box, "--srdf", f"a={srdf}", "--force", "-o", file)
        refused(2, "run", *words, words=("is the input itself",))


def test_a_single_link_alone_is_fixed_and_told_of(files: Path) -> None:
    words = ("check", files / "box.urdf", "--place", "0,0,1")
    assert "URDF robot 'box', fixed base: 1 links" in good(*words).stdout
    assert "URDF robot 'box', floating base: 1 links" in good(*words, "--base", "floating").stdout


def test_wrong_scenes(files: Path) -> None:
    arm, box = files / "arm.urdf", files / "box.urdf"
    refused(2, "run", arm, box, "--place", "bxo=1,0,0", words=("'bxo'", "did you mean 'box'"))
    refused(2, "run", arm, box, "--place", "1,0,0", words=("of which model", "arm, box"))
    refused(2, "run", arm, "--place", "x=1,0,0", words=("one model",))
    refused(2, "run", arm, "--place", "1,0", words=("2 numbers", "X,Y,Z"))
    refused(2, "run", arm, "--place", "1,0,nan", words=("nan",))
    refused(2, "run", arm, box, "--base", "bxo=floating", words=("did you mean 'box'",))
    refused(2, "check", arm, "--base", "arm=floating", words=("one model",))
    refused(2, "info", arm, "--base", "arm=floating", words=("one model",))
    refused(65, "run", arm, files / "ball.xml", "--base", "ball=floating", words=("freejoint",))
    refused(66, "run", arm, files / "none.urdf", words=("none.urdf: no such file",))
    refused(66, "run", arm, "--srdf", files / "none.srdf", words=("none.srdf: no such file",))


def test_a_missing_model_or_srdf_is_named(files: Path) -> None:
    for entry in (("a", "none.urdf"), ("a", "arm.urdf", None, Pose(), str(files / "none.srdf"))):
        with pytest.raises(MissingInputError, match="none"):
            scene(files, entry)
