"""The convex contact law beside MuJoCo: whole steps, forces and lanes, to rounding."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import artsim
from artsim.sim.foundation.errors import UsageError

SAME = 1e-9  # [rad or m] after hundreds of steps whose motion is not chaotic
GROUND = '<geom name="floor" type="plane" size="5 5 .1" {floor}/>'
BOX = """
<body pos="0 0 .12" euler="10 5 0"><freejoint/><geom name="box" type="box" size=".1 .1 .1" {geom}/></body>
"""
BALLS = """
<body pos="0 0 .2"><freejoint/><geom type="sphere" size=".1" {geom}/></body>
<body pos=".05 0 .45"><freejoint/><geom type="sphere" size=".1" friction=".5 .02 .01" condim="6"/></body>
<body pos="-.1 .4 .3" euler="80 0 0"><freejoint/><geom type="capsule" size=".05 .2" condim="4" priority="1"/></body>
"""
TABLE = """
<geom type="box" size="1 1 .1" pos="0 0 .2" surfacevel=".2 -.1 .3 .4 .2 3"/>
<body pos=".3 .2 .399"><freejoint/><geom type="sphere" size=".1" condim="6" friction=".8 .1 .05"/></body>
<body pos="-.3 .2 .395"><freejoint/><geom type="sphere" size=".1" condim="4" friction=".5 .1 .05"/></body>
"""
ARM = """
<body pos="0 0 1"><joint name="a" axis="0 1 0" range="-20 30" damping=".1" {joint}/>
  <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
  <body pos=".4 0 0"><joint name="b" axis="0 1 0" range="-10 5" armature=".01" frictionloss=".5" {joint}/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/><site name="tip" pos=".4 0 0"/>
    <body pos=".4 0 0"><joint name="c" type="ball" range="0 20" {joint}/>
      <geom type="capsule" fromto="0 0 0 .2 0 .1" size=".03"/></body></body></body>
"""
MOTORS = """<actuator><position joint="a" kp="40" kv="3" forcerange="-5 5"/><velocity joint="b" kv="2"/></actuator>"""
TENDONS = """<tendon>
<fixed name="both" range="-.3 .1" frictionloss=".2" {tendon}><joint joint="a" coef="1"/><joint joint="b" coef="-.5"/>
</fixed></tendon>"""
TIED = """<equality><joint joint1="b" joint2="a" polycoef=".1 -.5 .3 0 0" {equality}/></equality>"""
HELD = """<equality><connect name="pin" body1="last" body2="world" anchor="0 0 -.3" {equality}/></equality>"""
CHAIN = """
<body pos="0 0 1"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
  <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/>
    <body name="last" pos="0 0 -.3"><joint type="ball"/><geom type="capsule" fromto="0 0 0 -.3 0 0" size=".03"/>
</body></body></body>
"""
SOFT = 'solref=".05 .7" solimp=".8 .99 .01 .4 3"'

SCENES = {
    "a box that tumbles": (BOX, ""),
    "stiff by numbers": (BOX.format(geom='solref="-3000 -40"'), ""),
    "a margin": (BOX.format(geom='margin=".02" gap=".005"'), ""),
    "frictions of their own": (BALLS.format(geom='friction=".3 .01 .001" condim="6"'), ""),
    "a turntable": (TABLE, ""),
    "limits, friction, motors": (ARM.format(joint=""), MOTORS),
    "soft limits": (
        ARM.format(
            joint='margin=".05" solreflimit=".05 .5" solimplimit="0 .9 .1 .6 1.5" solreffriction=".1 1" '
            'solimpfriction=".3 .8 .1 .5 2"'
        ),
        MOTORS,
    ),
    "tendons": (
        ARM.format(joint=""),
        TENDONS.format(tendon='solreflimit=".03 .9" solreffriction=".05 1" margin=".02"'),
    ),
    "an equality": (ARM.format(joint=""), TIED.format(equality="")),
    "a soft equality": (ARM.format(joint=""), TIED.format(equality=SOFT)),
    "a loop": (CHAIN, HELD.format(equality="")),
    "a soft loop": (CHAIN, HELD.format(equality=SOFT)),
}
OPTIONS = {
    "elliptic": 'cone="elliptic" impratio="4"',
    "pyramidal": 'impratio="2"',
    "implicitfast": 'integrator="implicitfast" cone="elliptic"',
    "rk4": 'integrator="RK4"',
}


def model_of(body: str, more: str, option: str = "", flag: str = "") -> str:
    """An MJCF text with a floor."""
    flags = f"<flag {flag}/>" if flag else ""
    floor = GROUND.format(floor='friction=".8"')
    body = body.replace("{geom}", "")
    return f"""<mujoco><compiler autolimits="true"/><option timestep=".004" {option}>{flags}</option>
<worldbody>{floor}{body}</worldbody>{more}</mujoco>"""


def controls_of(model: mujoco.MjModel, steps: int, folder: Path) -> tuple[np.ndarray, dict[str, str]]:
    """Controls that change every 20 steps (steps, nu), and the settings by which a run has them."""
    u = np.repeat(np.random.default_rng(3).uniform(-1, 1, (-(-steps // 20), model.nu)), 20, axis=0)[:steps]
    if not model.nu:
        return u, {}
    path = folder / "controls.npz"
    np.savez(path, time=np.arange(steps) * model.opt.timestep, control=u)
    return u, {"controls": str(path)}


def both(text: str, folder: Path, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (steps, nq) of MuJoCo and of the convex law."""
    path = folder / "model.xml"
    path.write_text(text)
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.tolerance, model.opt.iterations, model.opt.ls_iterations = 0.0, 200, 200
    data = mujoco.MjData(model)
    u, given = controls_of(model, steps, folder)
    theirs = np.zeros((steps, model.nq))
    for n in range(steps):
        theirs[n], data.ctrl[:] = data.qpos, u[n]
        mujoco.mj_step(model, data)
    ours = artsim.rollout(str(path), samples=1, spread=0, steps=steps, contact_law="convex", threads=1, **given)
    return theirs, np.asarray(ours["qpos"])[0, :steps]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("scene", SCENES)
def test_steps_are_those_of_mujoco(scene: str, option: str, tmp_path: Path) -> None:
    body, more = SCENES[scene]
    theirs, ours = both(model_of(body, more, OPTIONS[option]), tmp_path, 150)
    assert np.abs(theirs[-1] - theirs[0]).max() > 0.01  # something moves
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SAME)


def test_eulerdamp_is_read(tmp_path: Path) -> None:
    theirs, ours = both(model_of(ARM.format(joint=""), MOTORS, flag='eulerdamp="disable"'), tmp_path, 100)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SAME)


def test_forces_of_contacts_are_those_of_mujoco(tmp_path: Path) -> None:
    path, steps = tmp_path / "model.xml", 80
    path.write_text(model_of(BOX, "", OPTIONS["elliptic"]))
    run = artsim.simulate(str(path), steps=steps, contact_law="convex")
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.tolerance, model.opt.iterations = 0.0, 200
    data = mujoco.MjData(model)
    theirs = np.zeros((steps, 6))
    for n in range(steps):
        data.qpos[:], data.qvel[:] = run["qpos"][n], run["qvel"][n]
        mujoco.mj_forward(model, data)
        theirs[n] = data.qfrc_constraint
    ours = np.asarray(run["tau_contact"])[:steps]
    assert np.abs(theirs).max() > 1.0
    frames = np.abs(ours[:, :3] - theirs[:, :3]).max()  # linear parts are in world axes in both
    assert frames < 1e-8 * np.abs(theirs).max()


def test_lanes_are_single_runs(tmp_path: Path) -> None:
    path, steps = tmp_path / "model.xml", 120
    path.write_text(model_of(BALLS, "", OPTIONS["elliptic"]))
    given = {"steps": steps, "contact_law": "convex", "seed": 2, "spread": 0.05}
    together = artsim.rollout(str(path), samples=8, **given)
    for sample in (0, 5):
        start = np.asarray(together["qpos"])[sample, 0]
        alone = artsim.simulate(str(path), steps=steps, contact_law="convex", q0=start)
        np.testing.assert_allclose(np.asarray(together["qpos"])[sample, :steps], alone["qpos"][:steps], atol=1e-10)


def test_what_slides_opens(tmp_path: Path) -> None:
    """The minimum of the convex problem makes a sliding contact lift at up to mu times its speed, Coulomb's law not."""
    path = tmp_path / "model.xml"
    body = '<body pos="0 0 .1"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>{}</body>'
    geom = '<geom type="sphere" size=".1" condim="3" friction=".8"/>'
    path.write_text(model_of(body.format(geom), "", 'cone="elliptic"'))
    heights = {}
    for law in ("coulomb", "convex"):
        run = artsim.simulate(str(path), steps=30, contact_law=law, v0=[2.0, 0.0])
        heights[law] = float(np.max(np.asarray(run["qpos"])[:, 1]))
    assert heights["coulomb"] < 1e-9
    assert heights["convex"] > 1e-4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"integrator": "midpoint"}, "euler, implicitfast and runge-kutta"),
        ({"solver": "pgs"}, "--solver newton"),
        ({"coordinates": "maximal"}, "--coordinates reduced"),
        ({"velocity_limits": True}, "velocity-limits"),
        ({"contact_law": "coulomb", "integrator": "euler"}, "--contact-law convex"),
    ],
)
def test_what_the_law_does_not_serve_is_refused(settings: dict[str, object], words: str, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(model_of(BOX, ""))
    with pytest.raises(UsageError, match=words):
        artsim.simulate(str(path), **({"steps": 3, "contact_law": "convex"} | settings))
