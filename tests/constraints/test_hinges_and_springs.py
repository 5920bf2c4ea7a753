"""Hinges among loops, and loops that are springs: against joints of the tree, MuJoCo's rows and closed forms."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.cli.replay import load_stored
from artsim.io.runs.replay import verify
from artsim.io.runs.run import run as run_into
from artsim.loaders.load import load_text
from artsim.loaders.loops import with_loops
from artsim.sim.articulation.description import Articulation, Loop, LoopSpring, Pose
from artsim.sim.constraints.kinds import LOOP_ROW
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from tests.cli.test_cli_run import good, refused
from tests.equipment.equipment_kernels import Bench
from tests.simulation import simulate

G = 9.81
RECORD = ("qpos", "qvel", "qacc", "tau_loop", "loop_wrench", "link_position", "mass_matrix", "bias")
HELD = ("qpos", "loop_wrench")
BODY = (
    '<link name="{}"><inertial><origin xyz="{}"/><mass value="2"/>'
    '<inertia ixx="0.02" ixy="0.001" ixz="0.002" iyy="0.03" iyz="-0.001" izz="0.025"/></inertial></link>'
)


def free(*loops: str, joints: str = "", links: str = "") -> Articulation:
    """A free body with loops."""
    robot = load_text(
        f'<robot name="r">{BODY.format("body", "0.3 0.1 0.2")}{links}{joints}</robot>', name="r.urdf", base="floating"
    )
    return with_loops(robot, "\n".join(loops), file="loops.toml")


def loop(kind: str, **keys: Any) -> str:
    """A [[loop]] between the body and the world."""
    values = {"kind": kind, "link_a": "body", "link_b": "world"} | keys
    return "\n".join(["[[loop]]", *(f"{k} = {v!r}".replace("'", '"') for k, v in values.items()), ""])


# --- rows ------------------------------------------------------------------------------------------------------------

TWO = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="a" pos=".1 .2 .3" euler=".3 .4 .5"><joint axis="1 2 3"/><geom size=".1"/></body>
  <body name="c" pos="1 0 0"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


def bench_of(kind: str) -> Bench:
    frames = Pose((0.1, 0.2, 0.3), (0.5, 0.5, 0.5, 0.5)), Pose((0.0, 0.1, 0.0), (0.8, 0.0, 0.6, 0.0))
    robot = load_text(TWO, name="two.xml")
    robot = replace(robot, loops=(Loop("l", kind, "a", "c", *frames, torque_scale=0.7),))  # type: ignore[arg-type]
    return Bench(plan_run(robot, RunConfig()))


def test_a_hinge_is_a_weld_that_may_turn_about_z() -> None:
    hinge, weld = bench_of("hinge"), bench_of("weld")
    rng = np.random.default_rng(2)
    for _ in range(4):
        q = rng.normal(size=8)
        q[4:] /= np.linalg.norm(q[4:])
        lines = []
        for bench in (hinge, weld):
            bench.evaluate(q)
            lines.append((bench.jacobian(LOOP_ROW).copy(), bench.equipment.loop_error[0].copy()))
        assert lines[0][0].shape == (5, 7)
        np.testing.assert_array_equal(lines[0][0], lines[1][0][:5])
        np.testing.assert_array_equal(lines[0][1], [*lines[1][1][:5], 0.0])


# --- hinges ----------------------------------------------------------------------------------------------------------


def test_a_body_on_a_hinge_swings_as_on_a_joint() -> None:
    """The axis is skew and the body asymmetric: 5 rows against the tree's joint, over a turn and more."""
    axis = "0.6 0 0.8"
    text = (
        f'<robot name="r"><link name="base"/>{BODY.format("body", "0.3 0.1 0.2")}<joint name="j" type="continuous">'
        f'<parent link="base"/><child link="body"/><axis xyz="{axis}"/></joint></robot>'
    )
    joint = simulate(text, steps=1500, dt=0.001, v0={"j": 14.0}, record=("qpos", "incoming_wrench"))
    spin = {f"root.w{name}": 14.0 * float(part) for name, part in zip("xyz", axis.split(), strict=True)}
    held = free(loop("hinge", axis_a=[0.6, 0.0, 0.8]))
    run = simulate(held, base="floating", steps=1500, dt=0.001, v0=spin, record=RECORD)
    turned = 2 * np.arctan2(run["qpos"][:, 4:] @ [0.6, 0.0, 0.8], run["qpos"][:, 3])
    np.testing.assert_allclose(np.unwrap(turned, period=2 * np.pi), joint["qpos"][:, 0], rtol=0, atol=2e-3)
    assert np.ptp(joint["qpos"]) > 2 * np.pi
    assert np.abs(run["qpos"][:, :3]).max() < 1e-6
    wrench, wanted = run["loop_wrench"][:, 0], joint["incoming_wrench"][:, 1]
    np.testing.assert_allclose(wrench[0], wanted[0], rtol=0, atol=1e-3 * np.abs(wanted).max())
    np.testing.assert_allclose(wrench, wanted, rtol=0, atol=0.02 * np.abs(wanted).max())


def test_maximal_coordinates_record_the_same_wrench() -> None:
    runs = [
        simulate(free(loop("weld")), base="floating", steps=3, coordinates=name, record=HELD)
        for name in ("reduced", "maximal")
    ]
    np.testing.assert_allclose(runs[1]["loop_wrench"][-1], runs[0]["loop_wrench"][-1], rtol=0, atol=1e-3)


@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
@pytest.mark.parametrize("kind", ["hinge", "weld"])
def test_the_wrench_of_a_loop_at_rest_is_the_weight(kind: str, integrator: str) -> None:
    """A hinge along the vertical, and a weld, carry m g at its lever; the world's end receives the opposite."""
    axis = {"axis_a": [0, 0, 1]} if kind == "hinge" else {}
    robot = free(loop(kind, **axis))
    run = simulate(robot, base="floating", steps=50, integrator=integrator, record=RECORD)
    weight = np.array([0, 0, -2 * G])
    carried = np.concatenate([-weight, -np.cross([0.3, 0.1, 0.2], weight)])
    np.testing.assert_allclose(run["loop_wrench"][-1, 0], carried, rtol=0, atol=1e-3)
    imbalance = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"]) + run["bias"] - run["tau_loop"]
    assert np.abs(imbalance).max() < 1e-9


FOUR_BAR = (
    '<robot name="bars"><link name="base"/>'
    + "".join(BODY.format(name, "0.15 0 0") for name in ("crank", "rod", "rocker"))
    + '<joint name="j1" type="continuous"><parent link="base"/><child link="crank"/><axis xyz="0 1 0"/></joint>'
    '<joint name="j2" type="continuous"><parent link="crank"/><child link="rod"/><origin xyz="0.2 0 0" rpy="0 -0.9 0"/>'
    '<axis xyz="0 1 0"/></joint>'
    '<joint name="j3" type="continuous"><parent link="base"/><child link="rocker"/><origin xyz="0.5 0 0" '
    'rpy="0 -1.7 0"/><axis xyz="0 1 0"/></joint>{}</robot>'
)


def test_a_four_bar_on_a_hinge_is_one_on_a_connect() -> None:
    """In a plane the hinge's two further rows are redundant: they change nothing and carry next to nothing."""

    def swing(kind: str, **more: Any) -> Any:
        text = loop(kind, link_a="rod", link_b="rocker", point_a=[0.4, 0, 0], **more)
        robot = with_loops(load_text(FOUR_BAR.format(""), name="bars.urdf"), text, file="l.toml")
        return simulate(robot, steps=1000, dt=0.001, record=RECORD)

    hinge, connect = swing("hinge", axis_a=[0, 1, 0]), swing("connect")
    np.testing.assert_allclose(hinge["qpos"], connect["qpos"], rtol=0, atol=1e-5)
    assert np.ptp(connect["qpos"][:, 0]) > 0.3


INERTIAL = '<inertial pos=".15 0 0" mass="2" fullinertia=".02 .03 .025 .001 .002 -.001"/>'
SAME_BARS = f"""<mujoco><compiler angle="radian"/><worldbody>
  <body name="crank"><joint name="j1" axis="0 1 0"/>{INERTIAL}
    <body name="rod" pos=".2 0 0" euler="0 -.9 0"><joint name="j2" axis="0 1 0"/>{INERTIAL}</body></body>
  <body name="rocker" pos=".5 0 0" euler="0 -1.7 0"><joint name="j3" axis="0 1 0"/>{INERTIAL}</body>
  </worldbody><equality>{{}}</equality></mujoco>"""


@pytest.mark.parametrize("kind", ["connect", "weld"])
def test_a_urdf_with_loops_runs_as_the_same_mjcf(kind: str) -> None:
    """Bars that swing (connect), or of which two hold each other (weld), with the forces of the loop."""
    first, anchor = ("rod", 'anchor=".4 0 0"') if kind == "connect" else ("crank", "")
    mjcf = load_text(SAME_BARS.format(f'<{kind} body1="{first}" body2="rocker" {anchor}/>'), name="bars.xml")
    point = {"point_a": [0.4, 0, 0]} if kind == "connect" else {}
    text = loop(kind, link_a=first, link_b="rocker", **point)
    urdf = with_loops(load_text(FOUR_BAR.format(""), name="bars.urdf"), text, file="l.toml")
    ours, theirs = (simulate(robot, steps=400, dt=0.001, record=("qpos", "qvel", "tau_loop")) for robot in (urdf, mjcf))
    for name, scale in (("qpos", 1.0), ("qvel", 10.0), ("tau_loop", np.abs(theirs["tau_loop"]).max())):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=1e-9 * scale)
    assert np.abs(theirs["tau_loop"]).max() > 0.5


def test_a_loop_joint_of_a_urdf_is_a_loop_of_a_file() -> None:
    """The frames are those that the file of loops finds, to a digit of rounding."""
    point = (
        with_loops(
            load_text(FOUR_BAR.format(""), name="b"),
            loop("connect", link_a="rod", link_b="rocker", point_a=[0.4, 0, 0]),
            file="l.toml",
        )
        .loops[0]
        .frame_b.position
    )
    ends = f'<link1 link="rod" xyz="0.4 0 0"/><link2 link="rocker" xyz="{" ".join(map(repr, point))}"/>'
    element = f'<loop_joint name="l" type="spherical">{ends}</loop_joint>'
    run = simulate(FOUR_BAR.format(element), steps=300, record=RECORD)
    text = loop("connect", link_a="rod", link_b="rocker", point_a=[0.4, 0, 0])
    other = simulate(
        with_loops(load_text(FOUR_BAR.format(""), name="b"), text, file="l.toml"), steps=300, record=RECORD
    )
    np.testing.assert_array_equal(run["qpos"], other["qpos"])


# --- springs ---------------------------------------------------------------------------------------------------------


def test_a_spring_by_stiffness_gives_way_by_its_law() -> None:
    """At rest C = m g / k, and the wrench is the weight; on the way there f = -k (C + ¼ h (Ċ⁺ - Ċ)) - d Ċ⁺."""
    body = BODY.format("body", "0 0 0")
    robot = load_text(f'<robot name="r">{body}</robot>', name="r", base="floating")
    robot = with_loops(robot, loop("connect", k=500.0, d=50.0), file="l")
    run = simulate(robot, base="floating", steps=4000, dt=0.001, record=RECORD)
    z = run["qpos"][:, 2]
    assert z[-1] == pytest.approx(-2 * G / 500, rel=1e-6)
    assert run["loop_wrench"][-1, 0] == pytest.approx([0, 0, 2 * G, 0, 0, 0], abs=1e-5)
    v = run["qvel"][:, 2]  # rows hold the state before the step
    force = -500 * (z[:-1] + 0.25e-3 * np.diff(v)) - 50 * v[1:]
    np.testing.assert_allclose(run["loop_wrench"][:-1, 0, 2], force, rtol=0, atol=1e-9)


@pytest.mark.parametrize("ratio", [0.0, 0.3])
def test_a_spring_by_frequency_swings_with_it(ratio: float) -> None:
    """A body on a spring at its centre of mass: 3 Hz and the damping ratio, in short steps."""
    body = BODY.format("body", "0 0 0")
    robot = load_text(f'<robot name="r">{body}</robot>', name="r", base="floating")
    robot = with_loops(robot, loop("connect", frequency=3.0, damping_ratio=ratio), file="l")
    h = 1e-4
    run = simulate(
        robot,
        base="floating",
        gravity=(0, 0, 0),
        steps=10000,
        dt=h,
        v0={"root.vx": 1.0},
        record=("qpos", "loop_wrench"),
    )
    mu = 2 * np.pi * 3.0
    t = h * np.arange(10000)
    damped = mu * np.sqrt(1 - ratio**2)
    x = np.exp(-ratio * mu * t) * np.sin(damped * t) / damped
    np.testing.assert_allclose(run["qpos"][:, 0], x, rtol=0, atol=0.02 / mu)
    assert run.simulation.plan.notes == ()


def test_a_weld_by_stiffness_turns_by_its_law() -> None:
    """A torque of the weight at a lever, against k_rotation: small half-angle sines are angles."""
    robot = load_text(f'<robot name="r">{BODY.format("body", "0.001 0 0")}</robot>', name="r", base="floating")
    robot = with_loops(robot, loop("weld", k=1e5, d=1e4, k_rotation=40.0, d_rotation=4.0), file="l")
    run = simulate(robot, base="floating", steps=4000, dt=0.001, record=RECORD)
    angle = 2 * np.arcsin(run["qpos"][-1, 5])
    assert angle == pytest.approx(2 * G * 0.001 / 40.0, rel=1e-5)
    assert run["loop_wrench"][-1, 0, 4] == pytest.approx(-2 * G * 0.001, rel=1e-4)


def test_a_stretched_spring_is_no_energy_from_nowhere() -> None:
    """What it holds at the start is energy that the run may have: nothing is reported."""
    robot = load_text(f'<robot name="r">{BODY.format("body", "0 0 0")}</robot>', name="r", base="floating")
    robot = with_loops(robot, loop("connect", k=2000.0), file="l")
    start = {"root.x": 0.5}
    run = simulate(robot, base="floating", gravity=(0, 0, 0), steps=2000, dt=5e-4, q0=start, record=("qpos", "qvel"))
    fastest = np.abs(run["qvel"][:, 0]).max()
    assert fastest == pytest.approx(0.5 * np.sqrt(2000 / 2), rel=0.02)


def test_a_spring_where_nothing_can_turn() -> None:
    """A hinge's tilt in a plane, which no joint allows: its rows mean nothing, its energy is none."""
    text = loop("hinge", link_a="rod", link_b="rocker", point_a=[0.4, 0, 0], axis_a=[0, 1, 0], frequency=25.0)
    robot = with_loops(load_text(FOUR_BAR.format(""), name="bars"), text, file="l")
    run = simulate(robot, steps=400, dt=0.001, record=("qpos", "loop_wrench", "energy"))
    connect = loop("connect", link_a="rod", link_b="rocker", point_a=[0.4, 0, 0], frequency=25.0)
    other = simulate(with_loops(load_text(FOUR_BAR.format(""), name="bars"), connect, file="l"), steps=400, dt=0.001)
    np.testing.assert_allclose(run["qpos"], other["qpos"], rtol=0, atol=1e-9)
    assert np.isfinite(run["loop_wrench"]).all()
    assert run.simulation.energy_excess is None


def test_rk4_swings_a_spring_to_fourth_order() -> None:
    """x = exp(-ζ μ t) (cos w t + ζ μ / w sin w t) x₀, of a body on a damped spring; its wrench is -k x - d v."""
    robot = load_text(f'<robot name="r">{BODY.format("body", "0 0 0")}</robot>', name="r", base="floating")
    robot = with_loops(robot, loop("connect", k=200.0, d=2.0), file="l")
    rate, errors = 2.0 / 2 / 2, []  # ζ μ = d / (2 m) [1/s]
    w = np.sqrt(200.0 / 2 - rate**2)
    for steps in (200, 400):
        given: dict[str, Any] = {"q0": {"root.x": 0.5}, "gravity": (0, 0, 0), "record": (*RECORD, "energy")}
        run = simulate(robot, base="floating", steps=steps + 1, dt=2.0 / steps, integrator="rk4", **given)
        t = np.linspace(0.0, 2.0, steps + 1)
        x = 0.5 * np.exp(-rate * t) * (np.cos(w * t) + rate / w * np.sin(w * t))
        errors.append(np.abs(run["qpos"][:, 0] - x).max())
        wrench = -200.0 * run["qpos"][:, 0] - 2.0 * run["qvel"][:, 0]
        np.testing.assert_allclose(run["loop_wrench"][:, 0, 0], wrench, rtol=0, atol=1e-12 * 100)
        np.testing.assert_allclose(run["tau_loop"][:, 0], wrench, rtol=0, atol=1e-12 * 100)
        assert run.simulation.energy_excess is None
        assert not any("order" in note for note in run.plan.notes)
    assert errors[0] < 1e-4 and np.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.2)


@pytest.mark.parametrize("keys", [{"frequency": 2.0, "damping_ratio": 0.0}, {"k": 300.0, "k_rotation": 20.0}])
def test_rk4_keeps_the_energy_of_springs_that_turn(keys: dict[str, float]) -> None:
    """A weld by springs at a lever keeps the energy, and midpoint comes nearer the smaller its steps are."""
    robot = free(loop("weld", **keys))
    given: dict[str, Any] = {"base": "floating", "gravity": (0, 0, 0), "q0": {"root.x": 0.05}, "v0": {"root.wx": 1.0}}
    run = simulate(robot, steps=1001, dt=1e-3, integrator="rk4", record=("qpos",), **given)
    before, after = run.simulation.energy
    assert before > 0.06 and after == pytest.approx(before, rel=1e-7)
    near = [simulate(robot, steps=n + 1, dt=1.0 / n, record=("qpos",), **given)["qpos"][-1] for n in (1000, 2000)]
    apart = [np.abs(each - run["qpos"][-1]).max() for each in near]
    assert apart[0] < 0.01 and apart[1] < 0.7 * apart[0]


def test_rk4_has_no_compliance_of_a_loop() -> None:
    robot = free(loop("connect", compliance=1e-3))
    with pytest.raises(UsageError, match="integrator 'rk4' does not serve the compliance of loop 'loop_0'"):
        plan_run(robot, RunConfig(integrator="rk4", contacts=False))


def test_couplings_that_are_rows_make_a_spring_rigid() -> None:
    robot = free(loop("connect", k=1.0))
    rigid = plan_run(robot, RunConfig(coupling="rows"))
    assert rigid.equipped is not None
    assert rigid.equipped.arrays.loop_sprung.tolist() == [0]
    assert LoopSpring() == LoopSpring(None, 1.0)


# --- gears and distances ---------------------------------------------------------------------------------------------

WHEELS = (
    '<robot name="r"><link name="base"/>'
    + "".join(BODY.format(name, "0.1 0 0") for name in ("one", "two"))
    + "".join(
        f'<joint name="{name}" type="continuous"><parent link="base"/><child link="{name}"/>'
        '<axis xyz="0 1 0"/>{}</joint>'
        for name in ("one", "two")
    )
    + "</robot>"
)


def test_a_gear_is_a_mimic() -> None:
    text = '[[loop]]\nkind = "gear"\nfollower = "two"\nleader = "one"\nratio = -2.0\noffset = 0.1'
    geared = with_loops(load_text(WHEELS.format("", ""), name="w"), text, file="l")
    mimic = '<mimic joint="one" multiplier="-2" offset="0.1"/>'
    runs = [simulate(model, steps=200, record=("qpos", "tau_coupling")) for model in (geared, WHEELS.format("", mimic))]
    for name in ("qpos", "tau_coupling"):
        np.testing.assert_array_equal(runs[0][name], runs[1][name])
    assert np.abs(runs[0]["tau_coupling"]).max() > 0.1


def test_a_sprung_gear_pulls_by_its_law() -> None:
    text = '[[loop]]\nkind = "gear"\nname = "g"\nfollower = "two"\nleader = "one"\nratio = 3.0\nk = 7.0\nd = 0.2'
    robot = with_loops(load_text(WHEELS.format("", ""), name="w"), text, file="l")
    run = simulate(robot, steps=100, dt=1e-5, q0={"two": 0.4}, v0={"one": 1.0}, record=("tau_tendon", "tendon_force"))
    force = -7.0 * 0.4 - 0.2 * (0.0 - 3.0)
    assert run["tau_tendon"][0] == pytest.approx([-3 * force, force], rel=1e-3)
    assert run["tendon_force"][0] == pytest.approx([force], rel=1e-3)


def test_a_body_at_a_distance_is_a_pendulum() -> None:
    """A point mass, almost, that hangs by a rod of 0.5 m swings as one on a joint."""
    tiny = 'ixx="1e-9" ixy="0" ixz="0" iyy="1e-9" iyz="0" izz="1e-9"'
    point = f'<link name="body"><inertial><mass value="2"/><inertia {tiny}/></inertial></link>'
    robot = load_text(f'<robot name="r">{point}</robot>', name="r", base="floating")
    held = with_loops(robot, loop("distance", point_b=[0.3, 0.0, 0.4]), file="l")
    run = simulate(held, base="floating", steps=1000, dt=0.001, record=("qpos", "qvel", "tendon_force", "tau_tendon"))
    away = run["qpos"][:, :3] - [0.3, 0, 0.4]
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), 0.5, rtol=0, atol=1e-5)
    angle = np.arctan2(-away[:, 0], -away[:, 2])
    speed = np.linalg.norm(run["qvel"][:, :3], axis=1)
    fallen = G * (np.cos(angle) - np.cos(angle[0])) * 0.5
    np.testing.assert_allclose(0.5 * speed**2, fallen, rtol=0, atol=0.02 * fallen.max())
    pull = 2 * (G * np.cos(angle) + speed**2 / 0.5)
    np.testing.assert_allclose(-run["tendon_force"][:, 0], pull, rtol=0, atol=0.02 * pull.max())


# --- outputs ---------------------------------------------------------------------------------------------------------


def test_command_line(tmp_path: Any) -> None:
    """A run with --loops, replayed without the files; the recorded wrenches by the loops' names."""
    model, loops, output = tmp_path / "bars.urdf", tmp_path / "loops.toml", tmp_path / "run.h5"
    model.write_text(FOUR_BAR.format(""))
    loops.write_text(loop("hinge", name="shut", link_a="rod", link_b="rocker", point_a=[0.4, 0, 0], axis_a=[0, 1, 0]))
    for command in ("check", "view --help", "rollout --help"):
        assert "loop" in good(*command.split(), *((model, "--loops", loops) if command == "check" else ())).stdout
    good("run", model, "--loops", loops, "--steps", "20", "--record", "+loop_wrench", "-o", output)
    loops.unlink()
    assert "every byte equal" in good("replay", "--verify", output).stdout
    with artsim.open(output) as recording:
        assert recording.labels.loop == ("shut",)
    assert "loops.toml: no such file" in refused(66, "check", model, "--loops", loops)
    loops.write_text("[[loop]]")
    assert "--loops: the model has two" in refused(2, "check", model, "--loops", loops, "--loops", loops)


def test_a_batch_says_that_loops_are_left_open(tmp_path: Any) -> None:
    model, output = tmp_path / "bars.urdf", tmp_path / "batch.h5"
    ends = '<link1 link="rod" xyz="0.4 0 0"/><link2 link="rocker" xyz="0.3 0 0"/>'
    model.write_text(FOUR_BAR.format(f'<loop_joint name="shut" type="spherical">{ends}</loop_joint>'))
    done = good("batch", model, "--samples", "3", "--compute", "mass_matrix", "-o", output)
    assert "loop 'shut' is left open: quantities are those of the tree" in done.stderr


def test_commands_of_one_model_take_a_file_of_loops(tmp_path: Any) -> None:
    """A gear is one of the quantities' couplings, a hinge is left open and said to be; workers read the same file."""
    model, loops, output = tmp_path / "bars.urdf", tmp_path / "loops.toml", tmp_path / "batch.h5"
    model.write_text(FOUR_BAR.format(""))
    gear = '[[loop]]\nkind = "gear"\nfollower = "j3"\nleader = "j1"\nratio = -2.0\n'
    loops.write_text(loop("hinge", name="shut", link_a="rod", link_b="rocker", point_a=[0.4, 0, 0], axis_a=[0, 1, 0]))
    loops.write_text(loops.read_text() + gear)
    said = "loop 'shut' is left open: quantities are those of the tree"
    assert "1 coupling, 1 loop" in good("info", model, "--loops", loops).stdout
    done = good("compute", model, "mass_matrix", "--reduced", "--json", "--loops", loops)
    assert said in done.stderr
    assert json.loads(done.stdout)["mass_matrix"]["labels"]["independent_dof"] == ["j1", "j2"]
    draw = ("batch", model, "--samples", "20", "--compute", "mass_matrix", "--reduced")
    near = os.path.relpath(loops)  # of which workers get the full name: rows are the same
    done = good(*draw, "--loops", near, "--scheduler", "local:2", "--shards", "2", "-o", output)
    assert said in done.stderr
    with artsim.open(output) as found:
        j1, j3 = map(found.labels.coord.index, ("j1", "j3"))
        np.testing.assert_allclose(found["qpos"][:, j3], -2 * found["qpos"][:, j1], rtol=1e-15)
        assert found["mass_matrix"].shape[1:] == (2, 2)
    assert "every byte equal" in good("replay", "--verify", output).stdout
    assert "no such file" in refused(66, "info", model, "--loops", tmp_path / "none.toml")
    loops.rename(own := tmp_path / "loops.csv")
    own_input = ("--loops", own, "--samples", "2", "--compute", "gravity", "-o", own, "--force")
    assert "is the input itself" in refused(2, "batch", model, *own_input)


def test_a_run_with_loops_of_a_file_is_made_again(tmp_path: Any) -> None:
    from artsim.loaders.load import SceneEntry, load_scene

    (tmp_path / "bars.urdf").write_text(FOUR_BAR.format(""))
    parts = [
        loop("hinge", link_a="rod", link_b="rocker", point_a=[0.4, 0, 0], axis_a=[0, 1, 0], frequency=30.0),
        loop("distance", name="tie", link_a="crank", point_b=[0.0, 0.0, 0.5], k=5.0, d=0.1),
    ]
    (tmp_path / "loops.toml").write_text("\n".join(parts))
    entry = SceneEntry("", str(tmp_path / "bars.urdf"), loops=str(tmp_path / "loops.toml"))
    plan = plan_run(load_scene([entry]), RunConfig(steps=40, record=RECORD, contacts=False))
    output = tmp_path / "run.h5"
    run_into(plan, output=output)
    (tmp_path / "loops.toml").unlink()
    (tmp_path / "bars.urdf").unlink()
    assert verify(output, load_stored) is None
    with artsim.open(output) as recording:
        assert recording["loop_wrench"].shape == (40, 1, 6)
