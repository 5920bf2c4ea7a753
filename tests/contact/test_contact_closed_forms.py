"""Contact beside closed forms: friction, rolling, bouncing, stacks, walls, belts, adhesion, softness.

All scenes are MJCF, hard where the file sets no solref. No figure here is the engine's own.
"""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_text
from tests.simulation import Array, Run, simulate

DT = 1 / 240
G = 9.81
RECORD = ("qpos", "qvel", "energy", "tau_contact")
FLOOR = '<geom name="floor" type="plane" size="5 5 1"/>'


def mjcf(world: str, *, geom: str = "", more: str = "") -> str:
    """A model of these parts of the world; `geom` are attributes of all geoms."""
    return (
        '<mujoco><compiler angle="radian"/><option cone="elliptic" gravity="0 0 -9.81"/>'
        f"<default><geom {geom}/></default><worldbody>{world}</worldbody>{more}</mujoco>"
    )


def free(geom: str, at: str, *, name: str = "body", turned: str = "", inside: str = "") -> str:
    """A body of one geom that moves freely."""
    pose = f'pos="{at}"' + (f' euler="{turned}"' if turned else "")
    return f'<body name="{name}" {pose}><freejoint name="{name}"/>{inside}<geom name="{name}" {geom}/></body>'


def play(text: str, seconds: float, dt: float = DT, **config: Any) -> Run:
    given: dict[str, Any] = {"dt": dt, "steps": round(seconds / dt), "contacts": True, "record": RECORD}
    return simulate(load_text(text, name="scene.xml"), **(given | config))


def history(run: Run) -> tuple[Array, Array, Array]:
    """Time, qpos and qvel with the end of the last step."""
    q = np.vstack([run["qpos"], run.simulation.qpos])
    v = np.vstack([run["qvel"], run.simulation.qvel])
    return run.plan.dt * np.arange(len(q)), q, v


def along(v: Array, direction: tuple[float, ...]) -> Array:
    speed: Array = v[:, :3] @ np.array(direction)
    return speed


# --- sliding ---------------------------------------------------------------------------------------------------------


def incline(slope: float, geom: str, height: float, friction: float) -> str:
    """A body on a slope about y; `height` is how far its origin is above the surface."""
    place = f"{height * math.sin(slope)!r} 0 {height * math.cos(slope)!r}"
    return mjcf(
        f'<geom type="plane" size="5 5 1" euler="0 {slope!r} 0"/>' + free(geom, place, turned=f"0 {slope!r} 0"),
        geom=f'friction="{friction}"',
    )


@pytest.mark.parametrize("share", [0.9995, 1.0005])
@pytest.mark.parametrize("friction", [0.2, 0.7])
def test_a_box_slips_beyond_the_angle_of_friction(friction: float, share: float) -> None:
    """Within 0.05 % of atan μ on either side; a box as broad as this does not topple."""
    slope = math.atan(share * friction)
    run = play(incline(slope, 'type="box" size=".2 .2 .1" mass="3"', 0.1, friction), 2.0)
    t, _, v = history(run)
    speed = along(v, (math.cos(slope), 0.0, -math.sin(slope)))
    if share < 1:
        assert np.abs(v).max() <= 1e-8
    else:
        pull = G * (math.sin(slope) - friction * math.cos(slope))
        assert speed == pytest.approx(pull * t, abs=1e-8)
    assert along(v, (math.sin(slope), 0.0, math.cos(slope))) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("ground", [FLOOR, '<geom type="box" size="5 5 1" pos="0 0 -1"/>'], ids=["plane", "box"])
def test_a_sliding_box_is_slowed_by_friction_to_rest(ground: str) -> None:
    friction, speed = 0.3, 1.5
    box = free('type="box" size=".2 .15 .05" mass="2"', "0 0 .05")
    run = play(
        mjcf(ground + box, geom=f'friction="{friction}"'), 1.0, v0={"body.vx": 0.8 * speed, "body.vy": 0.6 * speed}
    )
    t, q, v = history(run)
    want = np.maximum(speed - friction * G * t, 0.0)
    assert along(v, (0.8, 0.6, 0.0)) == pytest.approx(want, abs=1e-8)
    assert along(v, (-0.6, 0.8, 0.0)) == pytest.approx(0, abs=1e-8)
    assert v[:, 2:] == pytest.approx(0, abs=1e-7)
    way = np.linalg.norm(q[-1, :2] - q[0, :2])
    assert way == pytest.approx(speed**2 / (2 * friction * G), abs=speed * DT)


MASS, R, LENGTH = 2.0, 0.1, 0.15  # of balls and rollers; half of a roller's straight part
BALL = f'type="sphere" size="{R}" mass="{MASS}"'


def capsule_inertia() -> float:
    """About the axis, over m r²."""
    straight, ends = 2 * LENGTH, 4 / 3 * R
    return (0.5 * straight + 0.4 * ends) / (straight + ends)


ROLLERS = {
    "ball": (BALL, 0.4),
    "cylinder": (f'type="cylinder" size="{R} {LENGTH}" mass="{MASS}" euler="1.5707963267948966 0 0"', 0.5),
    "capsule": (f'type="capsule" size="{R} {LENGTH}" mass="{MASS}" euler="1.5707963267948966 0 0"', capsule_inertia()),
}


@pytest.mark.parametrize("ground", [FLOOR, '<geom type="box" size="5 5 1" pos="0 0 -1"/>'], ids=["plane", "box"])
@pytest.mark.parametrize("kind", ROLLERS)
def test_what_slides_comes_to_roll(kind: str, ground: str) -> None:
    """For I = k m r²: slowed by μ g until v0 / (1 + k), after v0 / (μ g (1 + 1 / k)); balls: 5/7 v0, 2 v0 / (7 μ g)."""
    geom, k = ROLLERS[kind]
    friction, speed = 0.3, 2.0
    run = play(
        mjcf(ground + free(geom, f"-2 0 {R}"), geom=f'friction="{friction}" condim="3"'), 0.8, v0={"body.vx": speed}
    )
    t, q, v = history(run)
    change, rolling = speed / (friction * G * (1 + 1 / k)), speed / (1 + k)
    slides, rolls = t < change, t > change + DT
    assert v[slides, 0] == pytest.approx(speed - friction * G * t[slides], abs=1e-7)
    assert v[rolls, 0] == pytest.approx(rolling, abs=1e-6)
    assert v[rolls, 4] == pytest.approx(rolling / R, abs=1e-5)
    assert q[:, 2] == pytest.approx(R, abs=1e-8)
    assert np.abs(v[:, [1, 2, 3, 5]]).max() <= 1e-6


def test_a_roller_rolls_down_a_slope() -> None:
    """g sin α / (1 + k), as long as tan α ≤ μ (1 + 1 / k)."""
    slope = 0.3
    for geom, k in ROLLERS.values():
        run = play(incline(slope, geom, R, 0.5), 0.5)
        t, _, v = history(run)
        speed = along(v, (math.cos(slope), 0.0, -math.sin(slope)))
        assert speed == pytest.approx(G * math.sin(slope) / (1 + k) * t, abs=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_friction_of_a_pair_differs_along_its_two_tangents(axis: int) -> None:
    """As MuJoCo lays the tangents: the first one along y on level ground."""
    rubs = (0.2, 0.6)
    pair = f'<contact><pair geom1="floor" geom2="body" friction="{rubs[0]} {rubs[1]} .005 .0001 .0001"/></contact>'
    text = mjcf(FLOOR + free('type="box" size=".2 .2 .05" mass="2"', "0 0 .05"), more=pair)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[2] -= 1e-6
    mujoco.mj_forward(model, data)
    first = np.argmax(np.abs(data.contact[0].frame[3:6]))
    t, _, v = history(play(text, 0.1, v0={f"body.v{'xy'[axis]}": 2.0}))
    friction = rubs[0] if axis == first else rubs[1]
    assert v[:, axis] == pytest.approx(2.0 - friction * G * t, abs=1e-7)


def test_an_elliptic_cone_resists_as_maximal_dissipation_says() -> None:
    """Force along -(μ_k² v_k) on the ellipse: from a diagonal velocity the slip turns to where it rubs less."""
    rubs = (0.2, 0.6)
    pair = f'<contact><pair geom1="floor" geom2="body" friction="{rubs[0]} {rubs[1]} .005 .0001 .0001"/></contact>'
    text = mjcf(FLOOR + free('type="box" size=".2 .2 .01" mass="2"', "0 0 .01"), more=pair)
    run = play(text, 0.1, dt=1e-3, v0={"body.vx": 1.0, "body.vy": 1.0})
    _, _, v = history(run)
    mu = np.array([rubs[1], rubs[0]])  # along x, y
    want = np.ones(2)
    for n in range(len(v) - 1):
        assert v[n, :2] == pytest.approx(want, abs=2e-4)
        end = want.copy()
        for _ in range(50):  # implicit, as the step is
            end = want - 1e-3 * G * mu**2 * end / np.linalg.norm(mu * end)
        want = end


# --- torsion, rolling ------------------------------------------------------------------------------------------------


def test_a_spinning_disc_is_stopped_by_torsional_friction() -> None:
    """A disc on a foot of one point: its spin falls by μ_t m g / I, to nothing."""
    friction, inertia, spin = 0.02, 0.01, 10.0
    disc = f"""<body pos="0 0 {R}"><freejoint name="body"/>
      <inertial pos="0 0 0" mass="{MASS}" diaginertia=".006 .006 {inertia}"/>
      <geom type="cylinder" size=".1 .01" contype="0" conaffinity="0"/><geom size="{R}"/></body>"""
    run = play(mjcf(FLOOR + disc, geom=f'condim="4" friction=".5 {friction} .001"'), 0.5, v0={"body.wz": spin})
    t, _, v = history(run)
    want = np.maximum(spin - friction * MASS * G / inertia * t, 0.0)
    assert want[-1] == 0.0
    assert v[:, 5] == pytest.approx(want, abs=1e-6)
    assert np.abs(v[:, :5]).max() <= 1e-7


def test_a_disc_turns_slower_on_its_rim_by_sliding_friction() -> None:
    """Flat on the floor, its weight on the rim: ω̇ = -μ g r / (r² / 2)."""
    friction, spin = 0.3, 20.0
    disc = free(f'type="cylinder" size="{R} .02" mass="{MASS}"', "0 0 .02")
    run = play(mjcf(FLOOR + disc, geom=f'friction="{friction}"'), 0.2, v0={"body.wz": spin})
    t, _, v = history(run)
    assert v[:, 5] == pytest.approx(np.maximum(spin - 2 * friction * G / R * t, 0.0), abs=1e-5)


def test_a_rolling_ball_is_slowed_by_rolling_friction() -> None:
    """v̇ = -T / (m r (1 + k)), T = μ_r m g, less what the one cone leaves for the sliding force."""
    friction, speed = 0.002, 1.0
    run = play(
        mjcf(FLOOR + free(BALL, f"-1 0 {R}"), geom=f'condim="6" friction="1 .005 {friction}"'),
        1.0,
        v0={"body.vx": speed, "body.wy": speed / R},
    )
    t, _, v = history(run)
    slow = friction * G / (1.4 * R)
    assert v[:, 0] == pytest.approx(speed - slow * t, abs=1e-3 * slow)
    assert R * v[:, 4] == pytest.approx(v[:, 0], abs=1e-3 * speed)


def test_a_ball_with_rolling_friction_stands_on_a_gentle_slope() -> None:
    """Until tan α = μ_r / r."""
    friction = 0.01
    for share in (0.99, 1.01):
        slope = math.atan(share * friction / R)
        text = incline(slope, BALL, R, 1).replace('friction="1"', f'condim="6" friction="1 .005 {friction}"')
        _, _, v = history(play(text, 1.0))
        if share < 1:
            assert np.abs(v).max() <= 1e-7
        else:
            assert along(v[-1:], (math.cos(slope), 0.0, -math.sin(slope)))[0] > 1e-3


# --- bouncing --------------------------------------------------------------------------------------------------------


def tops(q: Array, v: Array, dt: float) -> Array:
    """Heights of the parabolas between bounces: of what semi-implicit steps conserve in free flight."""
    level = q[:, 2] - R + v[:, 2] * (v[:, 2] - G * dt) / (2 * G)
    flying = np.abs(np.diff(v[:, 2]) + G * dt) <= 1e-9
    flights = np.split(level[:-1], np.flatnonzero(~flying))
    return np.array([part[len(part) // 2] for part in flights if len(part) > 4])


@pytest.mark.parametrize("dt", [1 / 240, 1e-3])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.9, 1.0])
def test_a_ball_bounces_to_e2_of_its_height(restitution: float, dt: float) -> None:
    height, e = 0.5, restitution
    run = play(mjcf(FLOOR + free(BALL, f"0 0 {R + height}")), 2.5, dt=dt, restitution=restitution)
    _, q, v = history(run)
    found = tops(q, v, dt)
    want = height * e ** (2 * np.arange(len(found)))
    assert len(found) >= (1 if e == 0 else 3)
    seen = want > 0.02
    assert found[seen] == pytest.approx(want[seen], abs=2 * dt * math.sqrt(2 * G * height))
    assert q[:, 2].min() >= R - 1e-9
    energy = run["energy"].sum(axis=1) - run["energy"].sum(axis=1)[0]
    assert energy.max() <= MASS * G * math.sqrt(2 * G * height) * dt  # the step's own ripple


# --- standing --------------------------------------------------------------------------------------------------------


def test_a_stack_of_ten_boxes_stands_for_a_minute() -> None:
    half = 0.1
    boxes = "".join(
        free(f'type="box" size="{half} {half} {half}"', f"0 0 {half * (2 * n + 1)}", name=f"b{n}") for n in range(10)
    )
    run = play(mjcf(FLOOR + boxes), 60.0, every=240)
    _, q, v = history(run)
    assert np.abs(q - q[0]).max() <= 1e-6
    assert np.abs(v).max() <= 1e-6
    assert run.simulation.effort[1] == 40


@pytest.mark.parametrize("masses", [(1.0, 1000.0), (1.0, 1000.0, 1.0, 1000.0), (1000.0, 1.0)])
def test_heavy_on_light(masses: tuple[float, ...]) -> None:
    half = 0.1
    boxes = "".join(
        free(f'type="box" size="{half} {half} {half}" mass="{mass}"', f"0 0 {half * (2 * n + 1)}", name=f"b{n}")
        for n, mass in enumerate(masses)
    )
    run = play(mjcf(FLOOR + boxes), 5.0)
    _, q, v = history(run)
    assert np.abs(q - q[0]).max() <= 1e-6
    assert np.abs(v).max() <= 1e-6
    push = run["tau_contact"][2:, 2::6]  # what contact gives to each is its weight
    assert push == pytest.approx(np.tile(np.array(masses) * G, (len(push), 1)), rel=1e-6)


def test_dominoes_fall_one_after_the_other() -> None:
    thick, high, apart, n = 0.01, 0.05, 0.04, 10
    line = "".join(
        free(f'type="box" size="{thick / 2} .02 {high / 2}" mass=".02"', f"{apart * k} 0 {high / 2}", name=f"d{k}")
        for k in range(n)
    )
    run = play(mjcf(FLOOR + line, geom='friction=".4"'), 1.5, dt=1 / 480, v0={"d0.wy": 4.0, "d0.vx": 0.1})
    t, q, _ = history(run)
    tilt = np.array([2 * np.arcsin(np.clip(np.abs(q[:, 7 * k + 5]), 0, 1)) for k in range(n)])
    assert (tilt[:, -1] > 0.7).all()
    tips = [t[np.argmax(row > 0.1)] for row in tilt]
    assert (np.diff(tips) > 0).all()
    energy = run["energy"].sum(axis=1)
    assert np.diff(energy).max() <= 1e-3 * energy[0]
    assert energy[-1] < 0.7 * energy[0]
    # in line, as far as the shares of a face's four corners, of which there are many that are right, leave it there
    assert np.abs(q[:, 7 * np.arange(n) + 1]).max() <= 1e-3


def test_a_block_between_floor_and_wall() -> None:
    """Gravity leans: the wall carries its one part, the floor the other, and nothing moves."""
    lean = 0.4
    wall = '<geom type="plane" size="5 5 1" pos="-.1 0 0" zaxis="1 0 0" friction="0" priority="1" condim="1"/>'
    text = mjcf(
        FLOOR.replace("/>", ' friction="0" priority="1" condim="1"/>')
        + wall
        + free('type="box" size=".1 .2 .1" mass="3"', "0 0 .1")
    )
    run = play(text, 1.0, gravity=(-G * math.sin(lean), 0.0, -G * math.cos(lean)))
    _, q, v = history(run)
    assert np.abs(q - q[0]).max() <= 1e-8
    assert run["tau_contact"][2:, :3] == pytest.approx(
        np.tile([3 * G * math.sin(lean), 0, 3 * G * math.cos(lean)], (len(v) - 3, 1)), rel=1e-7, abs=1e-7
    )


def test_a_block_slides_down_a_wedge_that_gives_way() -> None:
    """Without friction the wedge goes at m g sin α cos α / (M + m sin² α)."""
    slope, wedge, block = 0.5, 4.0, 1.5
    c, s = math.cos(slope), math.sin(slope)
    world = (
        f'<body><joint name="x" type="slide" axis="1 0 0"/><geom type="box" size="1 .5 .1" '
        f'euler="0 {slope} 0" mass="{wedge}"/></body>'
        + free(f'type="box" size=".1 .1 .1" mass="{block}"', f"{0.2 * s} 0 {0.2 * c}", turned=f"0 {slope} 0")
    )
    run = play(mjcf(world, geom='friction="0" condim="1"'), 0.4)
    t, _, v = history(run)
    back = block * G * s * c / (wedge + block * s * s)
    assert v[:, 0] == pytest.approx(-back * t, abs=1e-6)
    assert v[:, 3] == pytest.approx(G * s * s * (wedge + block) / (wedge + block * s * s) * -t, abs=1e-6)


@pytest.mark.parametrize("share", [0.998, 1.002])
def test_a_ladder_slips_when_the_floor_rubs_too_little(share: float) -> None:
    """Against a smooth wall: F / N = ½ L cos α / (L sin α + r) for ends of radius r."""
    length, r, slope = 2.0, 0.03, 1.1
    c, s = math.cos(slope), math.sin(slope)
    friction = share * 0.5 * length * c / (length * s + r)
    smooth = 'friction="0" priority="1" condim="1"'
    wall = f'<geom type="plane" size="5 5 1" pos="{length * c + r} 0 0" zaxis="-1 0 0" {smooth}/>'
    middle = f"{length * c / 2} 0 {length * s / 2 + r}"
    ladder = f"""<body><freejoint name="body"/><inertial pos="{middle}" mass="5" diaginertia="1.6 1.6 .1"/>
      <geom type="capsule" size="{r}" fromto="0 0 {r} {length * c} 0 {length * s + r}"/></body>"""
    _, q, v = history(play(mjcf(FLOOR + wall + ladder, geom=f'friction="{friction}"'), 1.0))
    if share < 1:
        assert v[-1, 0] < -1e-3
    else:
        assert np.abs(q - q[0]).max() <= 1e-7


# --- soft ------------------------------------------------------------------------------------------------------------


def beside_mujoco(text: str, seconds: float, dt: float) -> Array:
    """qpos over time, of MuJoCo."""
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep = dt
    data = mujoco.MjData(model)
    rows = [data.qpos.copy()]
    for _ in range(round(seconds / dt)):
        mujoco.mj_step(model, data)
        rows.append(data.qpos.copy())
    return np.array(rows)


@pytest.mark.parametrize(
    "soft",
    [
        'solref=".05 1"',
        'solref=".05 .3"',
        'solref="-800 -20"',
        'solref=".05 1" solimp=".5 .9 .02 .5 2"',
        'solimp=".9 .95 .001"',
        'solref=".05 1" margin=".004" gap=".01"',
    ],
)
def test_soft_contact_is_mujoco_s(soft: str) -> None:
    """Depth at rest, and the way there."""
    text = mjcf(FLOOR + free(BALL, f"0 0 {R + 0.02}"), geom=soft)
    dt = 2.5e-4
    want = beside_mujoco(text, 1.0, dt)
    _, q, _ = history(play(text, 1.0, dt=dt))
    surface = R + (0.008 if "margin" in soft else 0.0)  # the margins of both
    deepest = surface - want[:, 2].min()
    assert q[-1, 2] - R == pytest.approx(want[-1, 2] - R, rel=0.02)
    assert np.abs(q[:, 2] - want[:, 2]).max() <= 0.05 * deepest


def test_margin_and_gap() -> None:
    """A hard contact holds at its margin; a gap is where contacts are told and do not act."""
    run = play(mjcf(FLOOR + free(BALL, f"0 0 {R + 0.05}"), geom='margin=".01" gap=".02"'), 1.0)
    _, q, _ = history(run)
    assert q[-1, 2] == pytest.approx(R + 0.02, abs=1e-8)  # margins of the two are added


# --- belts, adhesion -------------------------------------------------------------------------------------------------


def test_a_belt_carries_what_lies_on_it() -> None:
    """At μ g until it has the belt's speed."""
    friction, speed = 0.4, 1.0
    belt = f'<geom type="box" size="5 1 .1" pos="0 0 -.1" surfacevel="{speed} 0 0 0 0 0"/>'
    text = mjcf(belt + free('type="box" size=".2 .2 .05" mass="2"', "0 0 .05"), geom=f'friction="{friction}"')
    t, _, v = history(play(text, 1.0))
    assert v[:, 0] == pytest.approx(np.minimum(friction * G * t, speed), abs=1e-7)
    assert np.abs(v[:, 1:]).max() <= 1e-6


def test_a_surface_moves_in_its_tangent_plane_alone() -> None:
    """A velocity along the normal moves nothing, and a turntable turns what stands on its axis by torsion, whose torque
    is at most its coefficient times the load."""
    torsion, speed = 0.02, 2.0
    belt = f'<geom type="box" size="5 1 .1" pos="0 0 -.1" surfacevel="0 0 .5 0 0 {speed}"/>'
    ball = f'type="sphere" size="{R}" mass="2" condim="4"'
    t, q, v = history(play(mjcf(belt + free(ball, f"0 0 {R}"), geom=f'friction="0.5 {torsion} 0"'), 0.5))
    assert q[:, 2] == pytest.approx(R, abs=1e-9)
    assert v[:, 5] == pytest.approx(np.minimum(torsion * G * t / (0.4 * R * R), speed), abs=1e-6)
    assert np.abs(v[:, :5]).max() <= 1e-9


HUNG = 1.0  # [kg]


def hung(pull: float, how: str) -> str:
    ceiling = '<geom name="ceiling" type="box" size="1 1 .1" pos="0 0 .1"/>'
    box = 'type="box" size=".1 .1 .1" mass="1"'
    if how == "geom":
        return mjcf(ceiling + free(f'{box} adhesion="{pull}"', "0 0 -.1"))
    if how == "both":
        return mjcf(
            ceiling.replace("/>", f' adhesion="{0.6 * pull}"/>') + free(f'{box} adhesion="{0.4 * pull}"', "0 0 -.1")
        )
    pair = f'<contact><pair geom1="ceiling" geom2="body" adhesion="{pull}"/></contact>'
    return mjcf(ceiling + free(box, "0 0 -.1"), more=pair)


@pytest.mark.parametrize("share", [0.99, 1.01])
@pytest.mark.parametrize("how", ["geom", "both", "pair"])
def test_adhesion_holds_what_it_can(how: str, share: float) -> None:
    """Each of the four contacts pulls by as much as the file says."""
    _, q, v = history(play(hung(share * HUNG * G / 4, how), 0.5))
    if share > 1:
        assert np.abs(q - q[0]).max() <= 1e-8
    else:
        assert v[-1, 2] < -0.5


# --- nothing tunnels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [5.0, 50.0])
@pytest.mark.parametrize("angle", [0.0, 0.8])
def test_a_small_ball_does_not_go_through_a_thin_plate(speed: float, angle: float) -> None:
    r = 0.005
    plate = '<geom type="box" size="30 2 .0005"/>'
    text = mjcf(plate + free(f'type="sphere" size="{r}" mass=".01"', "0 0 .303"))
    run = play(text, 0.5, v0={"body.vz": -speed * math.cos(angle), "body.vx": speed * math.sin(angle)})
    _, q, _ = history(run)
    assert q[:, 2].min() >= r + 0.0005 - 1e-6
    assert run.simulation.contact_extremes[0] > 0


@pytest.mark.parametrize("tip", ['type="sphere" size=".02"', 'type="box" size=".02 .02 .02"'])
@pytest.mark.parametrize("kind", ["slide", "hinge"])
def test_a_stiff_drive_does_not_press_a_link_into_a_wall(kind: str, tip: str) -> None:
    """K = 1e6 throws it 0.2 m in a step, a wall stands in between."""
    joint = (
        '<joint name="q" type="slide" axis="1 0 0"/>'
        if kind == "slide"
        else '<joint name="q" axis="0 0 1" pos="0 -.4 0"/>'
    )
    wall = '<geom type="box" size=".01 1 1" pos=".1 0 0"/>'
    text = mjcf(f'{wall}<body>{joint}<geom {tip} mass=".5"/></body>')
    target = 0.4 if kind == "slide" else -1.0
    run = play(text, 0.5, target={"q": target}, stiffness={"q": 1e6}, damping={"q": 1e4})
    _, q, _ = history(run)
    q = q[:, 0]
    if kind == "slide":
        ahead = q + 0.02
    else:  # centre at 0.4 along (-sin, cos) from (0, -0.4)
        x, reach = -0.4 * np.sin(q), 0.02 if "sphere" in tip else 0.02 * (np.abs(np.cos(q)) + np.abs(np.sin(q)))
        ahead = x + reach
    assert ahead.max() <= 0.09 + 1e-6
    assert ahead[-1] == pytest.approx(0.09, abs=1e-6)


@pytest.mark.parametrize("share", [0.99, 1.01])
def test_an_adhesion_actuator_holds_what_it_can(share: float) -> None:
    """Its force is shared by the contacts of its body."""
    text = mjcf(
        '<geom type="box" size="1 1 .1" pos="0 0 .1"/>' + free('type="box" size=".1 .1 .1" mass="1"', "0 0 -.1"),
        more=f'<actuator><adhesion name="suck" body="body" ctrlrange="0 1" gain="{share * HUNG * G}"/></actuator>',
    )
    _, q, v = history(play(text, 0.5, control={"suck": 1.0}))
    if share > 1:
        assert np.abs(q - q[0]).max() <= 1e-8
    else:
        assert v[-1, 2] == pytest.approx(-G * 0.5, rel=0.02)
