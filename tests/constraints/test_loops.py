"""Loops: connect and weld beside MuJoCo's, a four-bar linkage beside its closed form, forces that add up, grippers."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

import h5py
import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.description import Articulation, Softness
from artsim.sim.constraints.kinds import LOOP_ROW
from artsim.sim.foundation.errors import ModelError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import plan_run
from tests.conftest import ROOT, corpus_entries
from tests.equipment.equipment_kernels import Bench
from tests.simulation import FORCES, Run, simulate

Array = np.ndarray[Any, Any]
ALL_FORCES = (*FORCES, "tau_loop", "tau_tendon")
RECORD = ("qpos", "qvel", "qacc", "mass_matrix", "bias", "energy", *ALL_FORCES)
BAR = '<geom type="capsule" fromto="0 0 0 {x} 0 {z}" size=".02" density="1000"/>'


def bar(x: float, z: float) -> str:
    return BAR.format(x=x, z=z)


def four_bar(equality: str, tilt: str = "0 0 0") -> str:
    """Crank 0.2 on the left, coupler 0.5, rocker 0.4 on the right 0.5 away; the crank starts upright, all closed."""
    # where coupler and rocker meet: 0.5 from (0, 0.2) and 0.4 from (0.5, 0)
    base, top = np.array([0.0, 0.2]), np.array([0.5, 0.0])
    across = top - base
    distance = np.linalg.norm(across)
    along = (0.5**2 - 0.4**2 + distance**2) / (2 * distance)
    normal = np.array([-across[1], across[0]]) / distance
    meet = base + along * across / distance + math.sqrt(0.5**2 - along**2) * normal
    coupler, rocker = meet - base, meet - top
    return f"""<mujoco><compiler angle="radian"/><worldbody><frame euler="{tilt}">
      <body name="crank"><joint name="crank" axis="0 1 0"/>{bar(0, 0.2)}
        <body name="coupler" pos="0 0 .2"><joint name="coupler" axis="0 1 0"/>{bar(*coupler)}
          <site name="end" pos="{coupler[0]} 0 {coupler[1]}"/></body></body>
      <body name="rocker" pos=".5 0 0"><joint name="rocker" axis="0 1 0"/>{bar(*rocker)}
        <site name="top" pos="{rocker[0]} 0 {rocker[1]}"/></body></frame>
    </worldbody><equality>{equality.format(x=coupler[0], z=coupler[1])}</equality></mujoco>"""


CONNECT = '<connect name="loop" body1="coupler" body2="rocker" anchor="{x} 0 {z}"/>'
HELD = {"gravity": (0.0, 0.0, 0.0), "record": RECORD}


def gap(text: str, qpos: Array) -> float:
    """Worst equality error over rows of coordinates, by MuJoCo."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    worst = 0.0
    for q in qpos:
        data.qpos[:] = q
        mujoco.mj_fwdPosition(model, data)
        worst = max(worst, float(np.abs(data.efc_pos[: data.ne]).max()))
    return worst


def imbalance(run: Run) -> float:
    """M qacc + bias - Σ tau over the largest of these, worst row."""
    left = np.einsum("tij,tj->ti", run["mass_matrix"], run["qacc"]) + run["bias"]
    right = sum(run[name] for name in ALL_FORCES if name in run.rows)
    return float(np.max(np.abs(left - right)) / np.max(np.abs(run["tau_loop"])))


# --- values and Jacobians --------------------------------------------------------------------------------------------

TWO = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="a" pos=".1 .2 .3" euler=".3 .4 .5"><joint axis="1 2 3" ref=".2"/><geom size=".1"/>
    <site name="sa" pos=".1 0 .2" euler=".5 0 0"/>
    <body name="b" pos="0 .3 0"><joint type="ball"/><geom size=".1"/>
      <site name="sb" pos="0 .1 0" euler="0 .7 0"/></body>
  </body>
  <body name="c" pos="1 0 0"><freejoint/><geom size=".1"/><site name="sc" pos="0 .1 0" euler="0 .1 .7"/></body>
</worldbody><equality>{}</equality></mujoco>"""
KINDS = {
    "connect": '<connect body1="a" body2="c" anchor=".1 .2 .3"/>',
    "connect to the world": '<connect body1="c" anchor=".1 .2 .3"/>',
    "connect along the tree": '<connect body1="a" body2="b" anchor=".1 .2 .3"/>',
    "connect sites": '<connect site1="sb" site2="sc"/>',
    "weld": '<weld body1="a" body2="c"/>',
    "weld at an anchor": '<weld body1="b" body2="c" anchor=".1 .2 .3" torquescale=".3"/>',
    "weld with relpose": '<weld body1="b" body2="c" anchor=".1 .2 .3" relpose="1 2 3 1 .5 0 0"/>',
    "weld to the world": '<weld body1="world" body2="c" relpose="1 2 3 1 .5 0 0"/>',
    "weld sites": '<weld site1="sc" site2="sb" torquescale="2"/>',
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_jacobians_are_mujocos(kind: str) -> None:
    text = TWO.format(KINDS[kind])
    bench = Bench(plan_run(load_text(text, name="model.xml"), RunConfig()))
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    for _ in range(4):
        data.qpos[:] = rng.normal(size=model.nq)
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_fwdPosition(model, data)
        assert_same_loops(bench, data.qpos, data.efc_pos[: data.ne], data.efc_J.reshape(-1, model.nv)[: data.ne])


def assert_same_loops(bench: Bench, q: Array, position: Array, jacobian: Array | None) -> None:
    """C and J of all active loops at q, up to the sign of a weld's rotation, to 1e-9 of the largest entry."""
    bench.evaluate(q)
    lines = bench.jacobian(LOOP_ROW)
    assert len(lines) == len(position)
    row = 0
    for n, kind in enumerate(bench.plan.equipped.arrays.loop_kind):  # type: ignore[union-attr]
        count = 6 if kind else 3
        part = slice(row, row + count)
        mine, want = bench.equipment.loop_error[n, :count], position[part]
        sign = np.ones(count)
        if count == 6 and mine[3:] @ want[3:] < 0:
            sign[3:] = -1
        np.testing.assert_allclose(sign * mine, want, rtol=0, atol=1e-9 * max(np.abs(want).max(), 1e-6))
        if jacobian is not None:
            scale = max(np.abs(jacobian[part]).max(), 1e-6)
            np.testing.assert_allclose(sign[:, None] * lines[part], jacobian[part], rtol=0, atol=1e-9 * scale)
        row += count


LOOPED = [
    entry
    for entry in corpus_entries("mjcf")
    if {"connect", "weld"} & set(entry.get("equality", {})) and entry.get("oracle")
]


@pytest.mark.corpus
@pytest.mark.parametrize("entry", LOOPED, ids=[entry["id"] for entry in LOOPED])
def test_public_loops_are_mujocos(entry: dict[str, Any]) -> None:
    folder = Path(entry["path"].split("/files/", 1)[0])
    with h5py.File(folder / entry["oracle"]) as file:
        if "eq_pos" not in file:
            pytest.skip("no reference of its equalities is stored")
        data = {name: file[name][()] for name in file}
    loops = [eq for eq in range(len(data["eq_type"])) if data["eq_type"][eq] in (0, 1) and data["eq_active0"][eq]]
    if not loops:
        pytest.skip("no loop is active")
    try:
        articulation = load_articulation(entry["path"])
    except ModelError as error:
        assert "not supported yet" in str(error)
        pytest.skip(str(error).split(": ", 1)[1])
    bench = Bench(plan_run(passive_only(articulation), RunConfig(coupling="rows")))
    for k, q in enumerate(data["q"]):
        rows = [row for eq in loops for row in np.flatnonzero(data["eq_id"][k] == eq)]
        J = data["eq_J"][k][rows] if "eq_J" in data else None
        assert_same_loops(bench, q, data["eq_pos"][k][rows], J)


def passive_only(articulation: Articulation) -> Articulation:
    """The articulation without actuators and tendons."""
    return dataclasses.replace(articulation, actuators=(), tendons=(), tendon_couplings=(), sensors=())


# --- motion ----------------------------------------------------------------------------------------------------------


def crank_truth(angle: Array, rate: Array) -> tuple[Array, Array]:
    """Rocker's angle from the vertical start and its rate, of the crank's, in closed form (loop equation)."""
    base = np.array([0.2 * np.sin(angle), 0.2 * np.cos(angle)])
    across = np.array([[0.5], [0.0]]) - base
    distance = np.hypot(*across)
    along = (0.5**2 - 0.4**2 + distance**2) / (2 * distance)
    height = np.sqrt(0.5**2 - along**2)
    meet = base + (along * across + height * np.array([-across[1], across[0]])) / distance
    rocker = np.arctan2(meet[0] - 0.5, meet[1])
    # the coupler keeps its length: its ends' velocities along it are the same
    coupler = meet - base
    crank_velocity = rate * 0.2 * np.array([np.cos(angle), -np.sin(angle)])
    tangent = 0.4 * np.array([np.cos(rocker), -np.sin(rocker)])
    return rocker, (coupler * crank_velocity).sum(0) / (coupler * tangent).sum(0)


@pytest.mark.parametrize("solver", ["newton", "propagation", "direct", "pgs"])
@pytest.mark.parametrize("tilt", ["0 0 0", "0.3 0 0.7"])
def test_four_bar_follows_its_closed_form(solver: str, tilt: str) -> None:
    """Driven round by its crank for ten seconds; the loop has a redundant row, which a tilt mixes into all three."""
    run = simulate(
        load_text(four_bar(CONNECT, tilt), name="model.xml"),
        steps=5000,
        damping={"crank": 50.0},
        target_velocity={"crank": 2.0},
        solver=solver,
        iterations=200,
        **HELD,
    )
    q = run["qpos"]
    assert q[-1, 0] > 15
    rocker, _ = crank_truth(q[:, 0], run["qvel"][:, 0])
    error = np.abs(np.sin(q[:, 2] + crank_truth(np.zeros(1), np.zeros(1))[0] - rocker)).max()
    closed = gap(four_bar(CONNECT, tilt), q)
    print(f"{solver} {tilt}: rocker {error:.1e} rad, loop {closed:.1e} m, balance {imbalance(run):.1e}")
    assert closed < 1e-6
    assert error < 5e-6
    assert imbalance(run) < 1e-9


def test_four_bar_swings_freely_in_rk4() -> None:
    """Under gravity, tilted: energy and loop are kept to the order of the method."""
    text = four_bar(CONNECT, "0.3 0 0.7")
    run = simulate(load_text(text, name="model.xml"), steps=2000, integrator="rk4", v0={"crank": 3.0}, record=RECORD)
    energy = run["energy"].sum(axis=1)
    travel = np.ptp(run["energy"][:, 0])
    closed = gap(text, run["qpos"])
    print(f"energy {np.ptp(energy[200:]) / travel:.1e}, loop {closed:.1e} m")
    assert np.ptp(run["qpos"][:, 0]) > 1.0
    assert np.ptp(energy[200:]) < 1e-6 * travel  # the start's velocities do not fit the loop; that is settled by then
    assert gap(text, run["qpos"][200:]) < 1e-7
    assert imbalance(run) < 1e-9


@pytest.mark.parametrize("closed", [True, False])
def test_the_order_of_rk4(closed: bool) -> None:
    """Of fourth order, with a loop and without: differences of ends at steps that are halved."""
    text = four_bar(CONNECT, "0.3 0 0.7") if closed else four_bar("", "0.3 0 0.7")
    model = load_text(text, name="model.xml")
    ends = []
    for count in (25, 50, 100, 200):
        run = simulate(model, steps=count + 1, dt=0.4 / count, integrator="rk4")
        ends.append(run["qpos"][-1])
    steps = [np.abs(one - other).max() for one, other in itertools.pairwise(ends)]
    orders = [np.log2(one / other) for one, other in itertools.pairwise(steps)]
    assert all(3.4 < order < 4.4 for order in orders), orders


def test_euler_comes_near_rk4() -> None:
    """Half the step, half the difference, gravity and a weld: the free end is held by nothing else."""
    weld = '<weld body1="coupler" body2="rocker" torquescale="0"/>'
    model = load_text(four_bar(weld), name="model.xml")
    truth = simulate(model, steps=2000, dt=0.0005, integrator="rk4")["qpos"][-1]
    errors = []
    for halves in (1, 2):
        run = simulate(model, steps=500 * halves + 1, dt=0.002 / halves)
        errors.append(np.abs(run["qpos"][-1] - truth).max())
    assert errors[0] < 0.02
    assert errors[1] < 0.7 * errors[0]


@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
def test_what_starts_open_closes_without_a_kick(integrator: str) -> None:
    text = """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/></body></worldbody><equality>
        <weld name="here" body1="a" body2="world" relpose="1 0 0 1 1 0 0"/></equality></mujoco>"""
    run = simulate(load_text(text, name="model.xml"), steps=3000, integrator=integrator, **HELD)
    assert any("'here' starts open by 1.57" in note for note in run.plan.notes)
    assert np.abs(run["qvel"][:, :3]).max() < 0.55
    assert np.abs(run["qvel"][:, 3:]).max() < 0.75
    assert np.abs(run["qvel"][-1]).max() < 1e-3
    assert gap(text, run["qpos"][-1:]) < 1e-3
    closed = simulate(load_text(text, name="model.xml"), steps=1, q0={"a.x": -1, "a.qw": 1, "a.qx": -1})
    assert closed.plan.notes == ()


SOFT = ('solref=".05 .8"', 'solref="-300 -8" solimp=".8 .9 .5 .3 3"', 'solref=".1 2" solimp=".95 .99 2 .5 1"')


@pytest.mark.parametrize("solref", SOFT)
@pytest.mark.parametrize("kind", KINDS)
def test_soft_loops_are_mujocos(kind: str, solref: str) -> None:
    """Accelerations at random states, by both integrators' rows: Euler's in the limit of short steps."""
    text = TWO.format(KINDS[kind].replace("/>", f" {solref}/>"))
    articulation = load_text(text, name="model.xml")
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.opt.tolerance, model.opt.iterations = 0, 100
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    for scale in (0.1, 1.0):
        data.qpos[:] = model.qpos0 + scale * rng.normal(size=model.nq)
        data.qvel[:] = rng.normal(size=model.nv)
        mujoco.mj_normalizeQuat(model, data.qpos)
        mujoco.mj_forward(model, data)
        names = plan_run(articulation, RunConfig()).robot
        start = {
            "q0": dict(zip(names.coords, data.qpos.tolist(), strict=True)),
            "v0": dict(zip(names.dofs, data.qvel.tolist(), strict=True)),
        }
        largest = np.abs(data.qacc).max()
        for integrator, dt, error in (("rk4", 1e-3, 1e-6), ("semi-implicit-euler", 1e-7, 1e-4)):
            run = simulate(articulation, steps=1, dt=dt, integrator=integrator, record=RECORD, **start)
            np.testing.assert_allclose(run["qacc"][0], data.qacc, rtol=0, atol=error * largest)
            assert integrator != "rk4" or imbalance(run) < 1e-9


def test_a_soft_loop_sags_as_mujocos() -> None:
    """A ball that hangs by its centre, in the end: the loop carries the weight, at any step."""
    text = """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/></body></worldbody>
        <equality><connect body1="a" anchor="0 0 0" solref=".1 .5"/></equality></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 3000)
    for dt in (1e-3, 0.05):
        run = simulate(load_text(text, name="model.xml"), steps=3000, dt=dt)
        assert run["qpos"][-1, 2] == pytest.approx(data.qpos[2], rel=1e-6)


def test_a_loop_of_two_welds_more_than_it_needs() -> None:
    """Rows that say the same thing twice: every solver holds both, and the forces stay finite."""
    twice = CONNECT + CONNECT.replace('name="loop"', 'name="again"')
    for solver in ("newton", "propagation", "direct", "pgs"):
        run = simulate(load_text(four_bar(twice), name="model.xml"), steps=500, solver=solver, record=RECORD)
        assert gap(four_bar(CONNECT), run["qpos"]) < 5e-6  # it falls fast: 20 rad/s
        assert np.abs(run["tau_loop"]).max() < 100
        assert imbalance(run) < 1e-9


# --- grippers --------------------------------------------------------------------------------------------------------


def corpus_model(name: str) -> str:
    """Path of a public model, or the test is skipped."""
    found = [entry["path"] for entry in corpus_entries("mjcf") if entry["id"] == name]
    if not found:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    return str(found[0])


def worst_equality(path: str, qpos: Array) -> float:
    """Largest error of any equality over rows of coordinates, by MuJoCo [m or rad]."""
    model = mujoco.MjModel.from_xml_path(path)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    worst = 0.0
    for q in qpos:
        data.qpos[:] = q
        mujoco.mj_fwdPosition(model, data)
        worst = max(worst, float(np.abs(data.efc_pos[: data.ne]).max()))
    return worst


@pytest.mark.corpus
def test_robotiq_gripper_opens_and_closes() -> None:
    """Its actuator drives it shut and open again within its range; its soft loops give way no more than MuJoCo's."""
    path = corpus_model("mjcf.menagerie-fork.robotiq_2f85_2f85")
    articulation = load_articulation(path)
    start: dict[str, float] = {}
    for control, end in ((255.0, 0.8), (0.0, 0.0)):
        command = {"fingers_actuator": control}
        run = simulate(articulation, steps=1500, dt=0.002, control=command, q0=start, record=RECORD)
        q = run["qpos"]
        start = dict(zip(run.robot.coords, q[-1].tolist(), strict=True))
        assert q[-1, 0] == pytest.approx(end, abs=0.01)
        assert np.abs(q[:, 0] - q[:, 4]).max() < 1e-6, "both fingers alike"
        worst = worst_equality(path, q[::10])
        print(f"control {control}: equalities held to {worst:.1e} m or rad, balance {imbalance(run):.1e}")
        assert worst < 2e-4
        assert imbalance(run) < 1e-9


@pytest.mark.corpus
def test_robotiq_gripper_with_hard_loops() -> None:
    """The same without the file's softness: ten times tighter and more, though limits leave the loops to the sweeps."""
    path = corpus_model("mjcf.menagerie-fork.robotiq_2f85_2f85")
    articulation = load_articulation(path)
    loops = tuple(dataclasses.replace(loop, softness=Softness()) for loop in articulation.loops)
    articulation = dataclasses.replace(articulation, loops=loops)
    run = simulate(articulation, steps=1500, dt=0.002, coupling="exact", control={"fingers_actuator": 255.0})
    worst = worst_equality(path, run["qpos"][::10])
    print(f"hard: {worst:.1e}, solver left {run.simulation.worst_residual:.1e}")
    assert run["qpos"][-1, 0] == pytest.approx(0.8, abs=0.01)
    assert worst < 1e-3


@pytest.mark.corpus
def test_stewart_platform_rises_and_falls() -> None:
    """Six legs, six loops: commanded up and down alike, the platform stays level and the loops closed."""
    path = corpus_model("mjcf.unilab.stewart_scene")
    articulation = load_articulation(path)
    names = [actuator.name for actuator in articulation.actuators]
    heights = []
    for control in (0.0, 0.05):
        run = simulate(articulation, steps=1000, dt=0.002, control=dict.fromkeys(names, control))
        worst, theirs = (
            worst_equality(path, run["qpos"][::10]),
            worst_equality(path, _mujocos(path, control, 1000, 0.002)),
        )
        print(f"legs {control}: loops held to {worst:.1e} m, in MuJoCo to {theirs:.1e} m")
        heights.append(run["qpos"][-1])
        assert worst < 1.05 * theirs
    assert np.abs(heights[1] - heights[0]).max() > 0.02


def _mujocos(path: Path, control: float, steps: int, dt: float) -> Array:
    """MuJoCo's coordinates at every tenth step."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = dt
    data = mujoco.MjData(model)
    data.ctrl[:] = control
    rows = []
    for _ in range(steps):
        rows.append(data.qpos.copy())
        mujoco.mj_step(model, data)
    return np.array(rows[::10])


def test_our_clamp_closes_and_opens_with_parallel_fingers() -> None:
    """Its fingers hang on parallelograms: whatever the cranks do, they do not turn."""
    path = str(ROOT / "robots" / "clamp.xml")
    articulation = load_articulation(path)
    start: dict[str, float] = {}
    for control, crank in ((1.0, 0.4), (0.0, 0.0722)):  # against its limit; where the band and the servo balance
        run = simulate(articulation, steps=1000, dt=0.002, control={"grip": control}, q0=start, record=RECORD)
        q = dict(zip(run.robot.coords, run["qpos"].T, strict=True))
        start = {name: float(values[-1]) for name, values in q.items()}
        for side in ("left", "right"):
            assert q[f"crank_{side}"][-1] == pytest.approx(crank, abs=5e-4)
            assert np.abs(q[f"crank_{side}"] + q[f"finger_{side}"]).max() < 1e-5
        assert worst_equality(path, run["qpos"]) < 1e-6
        assert imbalance(run) < 1e-9


# --- beside exact couplings and tendons with inertia -----------------------------------------------------------------

FOLLOWED = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="a"><joint name="a" axis="0 1 0"/>{bar}<site name="s"/>
    <body name="b" pos=".3 0 0"><joint name="b" axis="0 1 0"/>{bar}<site name="t" pos=".3 .1 0"/></body></body>
  <body name="c" pos="0 1 0"><joint name="c" axis="0 0 1"/>{bar}</body>
</worldbody><tendon><spatial name="k" armature="{armature}"><site site="s"/><site site="t"/></spatial></tendon>
<equality>{coupling}<connect body1="b" body2="c" anchor=".3 .1 0"/></equality></mujoco>"""


def at_loop(armature: float, coupling: str) -> tuple[list[float], Array]:
    """Biases of the loop's rows and its mobilities, both joints of the coupling moving."""
    text = FOLLOWED.format(bar=bar(0.3, 0), armature=armature, coupling=coupling)
    bench = Bench(plan_run(load_text(text, name="model.xml"), RunConfig()))
    bench.evaluate(np.array([0.3, 0.222, 0.1]), np.array([2.0, 1.96, 0.3]))
    r = bench.rows
    return [float(r.bias[n]) for n in range(r.number[0]) if r.kind[n] == LOOP_ROW], bench.equipment.loop_mobility[0]


def test_a_tendons_inertia_leaves_what_a_coupling_does_to_a_loop() -> None:
    coupling = '<joint joint1="b" joint2="a" polycoef="0 0.5 0.8 0 0"/>'
    assert at_loop(0.2, coupling)[0] == at_loop(0.0, coupling)[0]
    assert at_loop(0.0, coupling)[0] != at_loop(0.0, "")[0]


def test_a_loops_mobility_is_that_of_the_tree_without_couplings() -> None:
    """As MuJoCo's, which knows no exact ones: so a soft loop gives way alike however couplings are held."""
    _, coupled = at_loop(0.0, '<joint joint1="b" joint2="a" polycoef="0 0.5 0 0 0"/>')
    _, alone = at_loop(0.0, "")
    assert coupled == pytest.approx(alone, rel=1e-12)
