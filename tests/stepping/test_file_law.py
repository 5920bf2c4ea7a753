"""The file's contact law: what an MJCF file makes soft acts as in MuJoCo, all else exactly by Coulomb's law."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import artsim
from artsim.loaders.load import load_articulation
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.contact_laws import count_pairs
from artsim.sim.runs.plan import plan_run

STEPS = 250
SOFT = 'solref=".03 .8" solimp=".8 .97 .002 .4 3"'
PLANE = '<geom name="floor" type="plane" size="5 5 .1" {floor}/>'
# slides alone: here both engines take the same steps (semi-implicit Euler), so that their laws can be compared
PUCK = """
<body name="puck" pos="0 0 .0995"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
<joint name="z" type="slide" axis="0 0 1"/><geom type="sphere" size=".1" mass="2" {geom}/></body>
"""
CART = """
<body pos="0 0 2"><joint name="cart" type="slide" axis="1 0 0" range="-.1 .05" margin="{margin}" {limit}/>
<geom type="sphere" size=".1" mass="1"/>
<body pos="0 0 .5"><joint name="rod" type="slide" axis="1 0 0" frictionloss="1.5" {friction}/>
<geom type="sphere" size=".1" mass=".5"/></body></body>
"""
SPAN = """<tendon><fixed name="span" range="-.3 .06" {tendon}>
<joint joint="cart" coef="1"/><joint joint="rod" coef="1.5"/></fixed></tendon>"""
PUSH = '<actuator><motor joint="cart"/><motor joint="rod"/></actuator>'


def model_of(bodies: str, more: str = "", option: str = "", floor: str = SOFT) -> str:
    return f"""<mujoco><compiler autolimits="true"/><option timestep=".002" {option}/>
<worldbody>{PLANE.format(floor=floor)}{bodies}</worldbody>{more}</mujoco>"""


def mujoco_run(path: Path, v0: dict[str, float], steps: int, force: float = 0.0) -> np.ndarray:
    """MuJoCo's coordinates (steps, nq)."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 0.0, 200, 200
    data = mujoco.MjData(model)
    for name, value in v0.items():
        data.qvel[model.joint(name).dofadr[0]] = value
    found = np.zeros((steps, model.nq))
    for n in range(steps):
        found[n] = data.qpos
        data.ctrl[:] = force * np.sin(0.05 * n)
        mujoco.mj_step(model, data)
    return found


def our_run(path: Path, v0: dict[str, float], steps: int, force: float = 0.0, **settings: object) -> artsim.Run:
    table = path.with_suffix(".npz")
    if force:
        time = np.arange(steps) * 0.002
        np.savez(table, time=time, control=force * np.sin(0.05 * np.arange(steps))[:, None] * np.ones(2))
        settings["controls"] = str(table)
    return artsim.simulate(str(path), steps=steps, v0=v0, integrator="semi-implicit-euler", **settings)


def written(folder: Path, text: str) -> Path:
    path = folder / "model.xml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("impratio", [1, 5])
def test_soft_contacts_slide_as_in_mujoco(cone: str, impratio: int, tmp_path: Path) -> None:
    option = f'cone="{cone}" impratio="{impratio}"'
    path = written(tmp_path, model_of(PUCK.format(geom='friction=".4"'), option=option))
    v0 = {"x": 1.0, "y": 0.3}
    theirs = mujoco_run(path, v0, STEPS)
    assert np.ptp(theirs[:, 2]) > 1e-5  # it lifts as it slides
    np.testing.assert_allclose(our_run(path, v0, STEPS)["qpos"][:STEPS], theirs, rtol=0, atol=1e-10)
    exact = our_run(path, v0, STEPS, contact_law="coulomb")["qpos"][:STEPS]
    assert np.abs(exact - theirs).max() > 1e-4


def test_a_box_tumbles_off_as_in_mujoco_at_first(tmp_path: Path) -> None:
    body = '<body pos="0 0 .0995"><freejoint name="b"/><geom type="box" size=".1 .1 .1" mass="5"/></body>'
    path = written(tmp_path, model_of(body, option='cone="elliptic"', floor='solref=".02 1"'))
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.tolerance = 0.0
    data = mujoco.MjData(model)
    data.qvel[0] = 1.0
    mujoco.mj_step(model, data)
    run = artsim.simulate(str(path), steps=2, v0={"b.vx": 1.0})
    np.testing.assert_allclose(run["qvel"][1], data.qvel, rtol=0, atol=1e-12)
    assert data.qvel[2] > 0.05  # closed form: no hard contact would lift it


@pytest.mark.parametrize("soft", ["limit", "friction", "tendon"])
def test_what_is_soft_acts_as_in_mujoco(soft: str, tmp_path: Path) -> None:
    given = {
        "limit": 'solreflimit=".04 .6" solimplimit="0 .9 .02 .6 1.5"' if soft == "limit" else "",
        "friction": 'solreffriction=".05 1" solimpfriction=".3 .8 .1 .5 2"' if soft == "friction" else "",
        "margin": ".01" if soft == "limit" else "0",
    }
    bodies = CART.format(**given) if soft != "friction" else CART.format(**given).replace('range="-.1 .05"', "")
    more = PUSH + (SPAN.format(tendon='solreflimit=".03 .9" margin=".01"') if soft == "tendon" else "")
    if soft == "tendon":
        bodies = bodies.replace('range="-.1 .05"', "")
    if soft != "friction":
        bodies = bodies.replace('frictionloss="1.5"', "")
    path = written(tmp_path, model_of(bodies, more))
    v0 = {"cart": 0.5, "rod": 0.2}
    theirs = mujoco_run(path, v0, STEPS, force=8.0)
    np.testing.assert_allclose(our_run(path, v0, STEPS, force=8.0)["qpos"][:STEPS], theirs, rtol=0, atol=1e-9)
    exact = our_run(path, v0, STEPS, force=8.0, contact_law="coulomb")["qpos"][:STEPS]
    assert np.abs(exact - theirs).max() > 1e-5


def test_hard_contacts_beside_soft_ones_stay_exact(tmp_path: Path) -> None:
    """The same puck on a soft and on a hard patch: each as if alone, the hard one by the closed form μ g t."""
    other = PUCK.format(geom='friction=".4" solref=".02 1"').replace('"x"', '"X"').replace('"y"', '"Y"')
    other = other.replace('"z"', '"Z"').replace('"puck"', '"soft"').replace('pos="0 0', 'pos="0 1')
    hard = PUCK.format(geom='friction=".4" priority="1"').replace(".0995", ".1")
    option = 'cone="elliptic"'
    path = written(tmp_path, model_of(hard + other, option=option, floor='friction=".4"'))
    run = our_run(path, {"x": 1.0, "X": 1.0}, STEPS)
    v = run["qvel"][:STEPS]
    time = 0.002 * np.arange(STEPS)
    np.testing.assert_allclose(v[:, 0], np.maximum(1.0 - 0.4 * 9.81 * time, 0.0), rtol=0, atol=1e-9)
    assert np.abs(run["qpos"][:STEPS, 2]).max() < 1e-12
    alone = written(tmp_path, model_of(other, option=option, floor='friction=".4"'))
    theirs = mujoco_run(alone, {"X": 1.0}, STEPS)
    np.testing.assert_allclose(run["qpos"][:STEPS, 3:], theirs, rtol=0, atol=1e-10)


def test_lanes_are_single_runs(tmp_path: Path) -> None:
    given = {"limit": 'solreflimit=".04 .6"', "friction": 'solreffriction=".05 1"', "margin": ".01"}
    bodies = CART.format(**given) + PUCK.format(geom='friction=".4"')
    path = written(tmp_path, model_of(bodies, PUSH + SPAN.format(tendon='solreflimit=".03 .9"')))
    v0 = {"cart": 0.5, "rod": 0.2, "x": 1.0}
    many = artsim.rollout(
        str(path), samples=3, spread=0, steps=STEPS, v0=v0, threads=1, integrator="semi-implicit-euler"
    )
    one = our_run(path, v0, STEPS)
    for sample in range(3):
        np.testing.assert_allclose(many["qpos"][sample, :STEPS], one["qpos"][:STEPS], rtol=0, atol=1e-13)


def test_a_start_beyond_a_soft_limit_stays_and_is_no_alarm(tmp_path: Path) -> None:
    body = CART.format(limit='solreflimit=".02 1"', friction="", margin="0").replace('range="-.1', 'range=".02')
    path = written(tmp_path, model_of(body.replace('frictionloss="1.5"', "")))
    run = our_run(path, {}, STEPS)
    np.testing.assert_allclose(run["qpos"][:STEPS], mujoco_run(path, {}, STEPS), rtol=0, atol=1e-9)
    assert run["qpos"][0, 0] == 0.0


def test_solvers_without_it_say_so(tmp_path: Path) -> None:
    given = {"limit": 'solreflimit=".04 .6"', "friction": "", "margin": "0"}
    path = written(tmp_path, model_of(CART.format(**given) + PUCK.format(geom="")))
    articulation = load_articulation(path)
    notes = plan_run(articulation, RunConfig(steps=3, solver="pgs")).notes
    assert any("contacts and limits that the file makes soft act by --contact-law coulomb" in note for note in notes)
    for law in ("file", "coulomb", "convex"):
        assert not any("soft act by" in note for note in plan_run(articulation, RunConfig(contact_law=law)).notes)


def test_pairs_are_counted_by_their_law(tmp_path: Path) -> None:
    other = PUCK.replace('"x"', '"X"').replace('"y"', '"Y"').replace('"z"', '"Z"').replace('"puck"', '"hard"')
    bodies = PUCK.format(geom=SOFT) + other.format(geom='priority="1"').replace("0 0 .", "0 1 .")
    touching = plan_run(load_articulation(written(tmp_path, model_of(bodies, floor=""))), RunConfig()).touching
    assert touching is not None
    assert count_pairs(touching) == (
        2,
        1,
    )  # the hard puck with the floor and the other; the soft one's
