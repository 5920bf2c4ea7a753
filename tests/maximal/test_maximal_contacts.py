"""Contacts in maximal coordinates: closed forms, statics, conservation laws, and the reduced engine's step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artsim.io.runs.prepare import held_controls
from artsim.loaders.load import load_text
from artsim.sim.articulation.description import Articulation
from artsim.sim.maximal.complementarity import solve_cones
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation
from tests.simulation import Run

Array = np.ndarray[Any, Any]
SCHEMES = ("baumgarte", "implicit")
G = 9.81

FLOOR = '<geom name="floor" type="plane" size="9 9 1" friction="0 0 0" condim="{condim}"/>'
WORLD = "<mujoco><worldbody>{floor}{bodies}</worldbody></mujoco>"
BLOCK = """<body name="{name}" pos="{pos}"><freejoint name="{name}"/>
  <geom type="{shape}" size="{size}" mass="{mass}" friction="{mu} 0 0" condim="{condim}"{more}/></body>"""


def block(
    name: str = "b",
    pos: str = "0 0 .1",
    shape: str = "box",
    size: str = ".1 .1 .1",
    mass: float = 2.0,
    mu: float = 0.5,
    condim: int = 3,
    more: str = "",
) -> str:
    return BLOCK.format(name=name, pos=pos, shape=shape, size=size, mass=mass, mu=mu, condim=condim, more=more)


def world(*bodies: str, floor: bool = True, condim: int = 1) -> Articulation:
    text = WORLD.format(floor=FLOOR.format(condim=condim) if floor else "", bodies="".join(bodies))
    return load_text(text, name="test.xml", meshes=False)


def run(articulation: Articulation, **config: Any) -> Run:
    """A run of either engine with contacts, its rows in memory."""
    plan = plan_run(articulation, RunConfig(base=articulation.base, **config))
    return rows_of(simulation_of(plan, held_controls(plan)))


def rows_of(simulation: Simulation) -> Run:
    """All rows of a simulation, in memory."""
    parts, touches = [], []
    for part in simulation.blocks():
        parts.append({name: values.copy() for name, values in part.rows.items()})
        touches.append({name: values.copy() for name, values in part.tables.items()})
    simulation.check()
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Run(rows | {name: np.concatenate([part[name] for part in touches]) for name in touches[0]}, simulation)


def maximal(articulation: Articulation, scheme: str = "implicit", **config: Any) -> Run:
    return run(articulation, coordinates="maximal", scheme=scheme, **config)


def slope(degrees: float) -> tuple[float, float, float]:
    """Gravity over a floor that stands for a slope, down along x."""
    angle = np.radians(degrees)
    return (G * float(np.sin(angle)), 0.0, -G * float(np.cos(angle)))


# ------------------------------------------------------------------ friction


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_block_on_a_slope_sticks_up_to_the_angle_of_friction(scheme: str) -> None:
    below, above = np.degrees(np.arctan(0.5)) - 0.1, np.degrees(np.arctan(0.5)) + 0.1
    config = {"steps": 100, "dt": 1e-3, "record": ("qpos", "qvel", "tau_contact")}
    still = maximal(world(block()), scheme, gravity=slope(below), **config)
    assert np.max(np.abs(still["qpos"] - still["qpos"][0])) < 1e-12
    assert np.allclose(still["tau_contact"][5:, :3], -2.0 * np.array(slope(below)), rtol=0, atol=1e-8)
    sliding = maximal(world(block()), scheme, gravity=slope(above), **config)
    pull = np.radians(above)
    rate = G * (np.sin(pull) - 0.5 * np.cos(pull))
    assert rate > 0.01
    assert np.allclose(sliding["qvel"][:, 0], np.arange(100) * 1e-3 * rate, rtol=1e-9, atol=1e-11)
    assert np.allclose(sliding["tau_contact"][5:, 0], -0.5 * sliding["tau_contact"][5:, 2], rtol=1e-9)


def test_without_friction_nothing_brakes() -> None:
    found = maximal(world(block(mu=0.0)), steps=50, dt=1e-3, gravity=slope(20), record=("qvel", "tau_contact"))
    assert np.allclose(found["qvel"][:, 0], np.arange(50) * 1e-3 * slope(20)[0], rtol=1e-12)
    assert np.max(np.abs(found["tau_contact"][:, :2])) < 1e-10


@pytest.mark.parametrize(("mu", "rolls"), [(0.4, True), (0.05, False)])
def test_a_ball_rolls_or_slips_down_a_slope(mu: float, rolls: bool) -> None:
    """5/7 g sin a where it rolls, which takes a friction of 2/7 tan a; g (sin a - μ cos a) where it slips."""
    angle = np.radians(30.0)
    ball = block(shape="sphere", size=".1", mu=mu)
    found = maximal(world(ball), steps=100, dt=1e-3, gravity=slope(30.0), record=("qvel",))
    rate = 5 / 7 * G * np.sin(angle) if rolls else G * (np.sin(angle) - mu * np.cos(angle))
    spin = rate / 0.1 if rolls else 2.5 * mu * G * np.cos(angle) / 0.1
    assert np.allclose(found["qvel"][-1, [0, 4]], 99e-3 * np.array([rate, spin]), rtol=1e-9)


def test_spin_is_braked_by_torsional_friction() -> None:
    """A ball spins down at the rate μ_t N / I."""
    ball = block(shape="sphere", size=".1", condim=4).replace('friction="0.5 0 0"', 'friction=".5 .01 0"')
    found = maximal(world(ball, condim=4), steps=50, dt=1e-3, v0={"b.wz": 10.0}, record=("qvel",))
    rate = 0.01 * 2.0 * G / (0.4 * 2.0 * 0.1**2)
    assert np.allclose(found["qvel"][:, 5], 10.0 - np.arange(50) * 1e-3 * rate, rtol=1e-9)


# ------------------------------------------------------------------ impacts


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_ball_falls_and_stays(scheme: str) -> None:
    h, height = 1e-3, 0.2
    ball = block(shape="sphere", size=".1", pos=f"0 0 {0.1 + height}")
    found = maximal(world(ball), scheme, steps=400, dt=h, record=("qpos", "qvel", "tau_contact"))
    z = found["qpos"][:, 2]
    met = int(np.argmax(z < 0.1 + 1e-6))
    assert met * h == pytest.approx(np.sqrt(2 * height / G), abs=2 * h)
    assert np.min(z) > 0.1 - 1e-12  # it stops at the surface and not beyond it
    assert np.allclose(z[met + 2 :], 0.1, rtol=0, atol=1e-12)
    assert found["tau_contact"][-1, 2] == pytest.approx(2.0 * G, rel=1e-9)


@pytest.mark.parametrize("e", [0.5, 1.0])
def test_a_ball_bounces_to_the_square_of_its_restitution(e: float) -> None:
    height = 0.2
    ball = block(shape="sphere", size=".1", pos=f"0 0 {0.1 + height}")
    found = maximal(world(ball), steps=600, dt=1e-3, restitution=e, record=("qpos",))
    z = found["qpos"][:, 2] - 0.1
    met = int(np.argmin(z[:300]))
    assert np.max(z[met:]) == pytest.approx(e**2 * height, rel=0.02)


def test_balls_that_meet_keep_their_momentum_and_lose_what_the_law_says() -> None:
    """Head on and off centre, in free space; e = 0: the energy of the approach along the normal is lost."""
    balls = [
        block("a", "0 0 0", "sphere", ".1", 2.0, mu=0.0),
        block("b", ".4 .05 0", "sphere", ".1", 1.0, mu=0.0),
    ]
    config = {"steps": 300, "dt": 1e-3, "gravity": (0.0, 0.0, 0.0), "v0": {"a.vx": 1.0, "a.wz": 2.0}}
    for e in (0.0, 1.0):
        found = maximal(world(*balls, floor=False), restitution=e, record=("qpos", "momentum", "energy"), **config)
        assert np.allclose(found["momentum"], found["momentum"][0], rtol=0, atol=1e-12)
        kinetic = found["energy"][:, 0]
        apart = found["qpos"][:, 7:10] - found["qpos"][:, :3]
        met = int(np.argmin(np.linalg.norm(apart, axis=1)))
        normal = apart[met] / np.linalg.norm(apart[met])
        lost = 0.5 * (1 - e**2) * (2.0 / 3.0) * normal[0] ** 2
        assert kinetic[0] - kinetic[-1] == pytest.approx(lost, rel=0.02, abs=1e-10)  # rows yield by 1e-11


# ------------------------------------------------------------------ statics


def test_three_feet_carry_what_statics_says() -> None:
    """Normal forces under a table with three feet and its weight off the middle; no engine is asked."""
    feet = np.array([[0.3, 0.0], [-0.2, 0.25], [-0.1, -0.3]])
    geoms = "".join(f'<geom type="sphere" size=".05" pos="{x} {y} 0" mass="0"/>' for x, y in feet)
    body = f"""<body name="t" pos="0 0 .05"><freejoint name="t"/>
      <inertial pos=".04 -.02 .2" mass="3" diaginertia=".1 .1 .1"/>{geoms}</body>"""
    found = maximal(world(body), steps=20, dt=1e-3, record=("contacts",))
    first = int(found["contact_count"][:-1].sum())
    points, force = found["contact_point"][first:], found["contact_force"][first:, 0]
    assert len(force) == 3
    balance = np.vstack([np.ones(3), points[:, 0], points[:, 1]])
    wanted = np.linalg.solve(balance, 3 * G * np.array([1.0, 0.04, -0.02]))
    assert np.allclose(force, wanted, rtol=1e-7)


def test_a_stack_carries_the_weights_above() -> None:
    bodies = [block(f"b{n}", f"0 0 {0.1 + 0.2 * n}", mass=1.0 + n) for n in range(3)]
    found = maximal(world(*bodies), steps=10, dt=1e-3, record=("qpos", "contact_wrench", "contacts"))
    assert np.max(np.abs(found["qpos"] - found["qpos"][0])) < 1e-9
    assert np.allclose(found["contact_wrench"][-1, -3:, 2], G * np.array([1.0, 2.0, 3.0]), rtol=1e-6)
    first = int(found["contact_count"][:-1].sum())
    height = found["contact_point"][first:, 2]
    for n, above in enumerate((6.0, 5.0, 3.0)):
        at = np.abs(height - 0.2 * n) < 1e-6
        assert np.sum(found["contact_force"][first:, 0][at]) == pytest.approx(above * G, rel=1e-6)


def test_a_soft_contact_rests_where_its_law_balances_the_weight() -> None:
    """R f = -d K C with R = (1 - d) / d / m: a depth of g (1 - d) / (d² K), K = 1 / (d τ ζ)²."""
    d, time, ratio = 0.8, 0.02, 1.0
    more = f' solref="{time} {ratio}" solimp="{d} {d} .001"'
    ball = block(shape="sphere", size=".1", more=more, condim=1, mu=0.0)
    text = WORLD.format(floor=FLOOR.format(condim=1).replace("/>", more + "/>"), bodies=ball)
    found = maximal(load_text(text, name="test.xml", meshes=False), steps=600, dt=1e-3, record=("qpos", "tau_contact"))
    K = 1.0 / (d * time * ratio) ** 2
    assert 0.1 - found["qpos"][-1, 2] == pytest.approx(G * (1 - d) / (d**2 * K), rel=1e-6)
    assert found["tau_contact"][-1, 2] == pytest.approx(2.0 * G, rel=1e-6)


# ------------------------------------------------------------------ the two engines

PUSHER = """<mujoco><worldbody>{floor}
  <body name="arm" pos="0 0 .35"><joint name="j1" axis="0 1 0" damping=".2"/><geom type="capsule" fromto="0 0 0 .3 0 0"
    size=".03" mass="1" contype="0" conaffinity="0"/>
    <body name="hand" pos=".3 0 0"><joint name="j2" axis="0 1 0" damping=".2"/>
      <geom type="capsule" fromto="0 0 0 .25 0 0" size=".04" mass=".5" friction=".4 0 0" condim="3"/></body></body>
  <body name="ball" pos=".5 .02 .1"><freejoint name="ball"/>
    <geom type="sphere" size=".1" mass=".4" friction=".4 0 0" condim="3"{soft}/></body>
  </worldbody></mujoco>"""


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("soft", ["", ' solref=".03 1"'], ids=["hard", "soft"])
def test_an_arm_that_falls_on_a_ball_parts_from_the_reduced_engine_by_the_order_of_the_step(
    soft: str, cone: str
) -> None:
    text = PUSHER.format(floor=FLOOR.format(condim=3), soft=soft)
    articulation = load_text(text, name="test.xml", meshes=False)
    apart = []
    for h in (2e-3, 5e-4):
        config = {"steps": round(0.3 / h), "dt": h, "record": ("qpos",), "cone": cone}
        one, other = run(articulation, **config), maximal(articulation, **config)
        assert other.simulation.contact_extremes[0] >= 2
        apart.append(float(np.max(np.abs(one["qpos"] - other["qpos"]))))
    assert 1e-6 < apart[0] < 0.01
    assert apart[1] < 0.45 * apart[0]


def test_both_engines_record_the_same_contacts() -> None:
    config = {
        "steps": 20,
        "dt": 1e-3,
        "gravity": slope(30.0),
        "record": ("contacts", "contact_wrench", "incoming_wrench"),
    }
    one, other = run(world(block()), **config), maximal(world(block()), **config)
    assert np.array_equal(one["contact_count"], other["contact_count"])
    for name in ("contact_point", "contact_normal", "contact_tangent", "contact_depth", "contact_shapes"):
        assert np.allclose(one[name], other[name], rtol=0, atol=1e-12), name
    for name in ("contact_wrench", "incoming_wrench"):
        assert np.allclose(one[name], other[name], rtol=0, atol=1e-8), name


# ------------------------------------------------------------------ the solver


def test_impulses_in_cones_are_complementary() -> None:
    """On random problems, half of them with more rows than freedoms: bounds, cones, slips that friction opposes."""
    rng = np.random.default_rng(4)
    for trial in range(60):
        contacts, more = int(rng.integers(1, 10)), int(rng.integers(0, 5))
        n = 3 * contacts + more
        A = rng.normal(size=(n, n + 2 if trial % 2 else max(3, n // 2 + 1)))
        W = A @ A.T
        W += 1e-10 * np.diag(np.diag(W))
        s = A @ rng.normal(size=A.shape[1])  # velocities that bodies can have: a solution exists
        cone, slope_of = np.zeros(n, np.int64), np.zeros(n)
        lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
        first = 3 * np.arange(contacts)
        cone[first], cone[first + 1], cone[first + 2] = 3, -1, -1
        slope_of[first] = rng.uniform(0.0, 1.0, contacts)
        lower[3 * contacts :] = 0.0
        value, _, residual = solve_cones(W, s, lower, upper, cone, slope_of, np.zeros(n))
        rate = W @ value + s
        assert residual < 1e-10
        for a in first:
            tangent, slip = value[a + 1 : a + 3], rate[a + 1 : a + 3]
            assert value[a] >= 0 and rate[a] > -1e-9 and abs(value[a] * rate[a]) < 1e-8
            rim = slope_of[a] * value[a]
            assert np.linalg.norm(tangent) <= rim + 1e-12
            if np.linalg.norm(slip) > 1e-6:
                assert np.allclose(tangent, -rim * slip / np.linalg.norm(slip), rtol=0, atol=1e-6)
        assert np.all(value[3 * contacts :] >= 0) and np.all(rate[3 * contacts :] > -1e-9)
