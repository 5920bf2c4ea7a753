"""Drawn configurations: which numbers they are, that any range of rows gives the same, limits, moments, couplings."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.inputs.sampling import BLOCK, Samples, open_samples
from artsim.sim.foundation.errors import UsageError
from artsim.sim.quantities.robot import Robot
from tests.conftest import ROOT
from tests.simulation import load

Array = np.ndarray[Any, Any]
ARM = ROOT / "robots" / "arm7.urdf"
SCALES = {"velocity": 2.0, "acceleration": 3.0, "torque": 5.0, "wrench": 7.0}
NEEDED = ("qpos", "qvel", "qacc", "tau", "wrench")


def samples(robot: Robot, rows: int, seed: int = 1, needed: tuple[str, ...] = ("qpos",), **options: Any) -> Samples:
    return open_samples(robot.model, robot.labels, needed, robot.links, rows=rows, seed=seed, **options)


def room(robot: Robot, source: Samples, rows: int) -> dict[str, Array]:
    widths = {"qpos": (robot.nq,), "wrench": (len(robot.links), 6)}
    return {name: np.full((rows, *widths.get(name, (robot.nv,))), np.nan) for name in source.inputs}


def drawn(robot: Robot, rows: int, **options: Any) -> dict[str, Array]:
    source = samples(robot, rows, **options)
    out = room(robot, source, rows)
    source.read(0, rows, out)
    return out


def one_joint(kind: str, limit: str, rest: str = "") -> Robot:
    return made(joint("j", kind, "a", "b", limit, rest), links="ab")


def joint(name: str, kind: str, parent: str, child: str, limit: str = "", rest: str = "") -> str:
    inside = f'<parent link="{parent}"/><child link="{child}"/><axis xyz="0 0 1"/>{rest}'
    return f'<joint name="{name}" type="{kind}">{inside}{limit and f"<limit {limit}/>"}</joint>'


def made(*joints: str, links: str) -> Robot:
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    parts = [f'<link name="{name}">{inertial}</link>' for name in links]
    return Robot.of(load(f'<robot name="test">{"".join(parts)}{"".join(joints)}</robot>'))


# ---- the stream


def test_the_numbers_are_numpys_philox() -> None:
    """Key (seed, block), counter (0, 0, 0, input): qpos is input 0, qvel 1, tau 3."""
    robot = artsim.load(ARM)
    rows = BLOCK + 1000
    out = drawn(robot, rows, seed=9, needed=("qvel", "tau"), velocity=2.0, torque=0.5)
    for name, number in (("qpos", 0), ("qvel", 1), ("tau", 3)):
        for block in (0, 1):
            bits = np.random.Philox(key=np.array([9, block], np.uint64), counter=np.array([0, 0, 0, number], np.uint64))
            unit = np.random.Generator(bits).random((BLOCK, 7))
            low, high = {
                "qpos": (robot.model.lower, robot.model.upper),
                "qvel": (-2.0, 2.0),
                "tau": (-0.5, 0.5),
            }[name]
            want = (low + (high - low) * unit)[: rows - block * BLOCK]
            got = out[name][block * BLOCK : (block + 1) * BLOCK]
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-15 * np.max(high))


@pytest.mark.parametrize("distribution", ["uniform-limits", "normal"])
def test_any_range_of_rows_has_the_same_bytes(distribution: str) -> None:
    robot = artsim.load(ROOT / "robots" / "quadruped.urdf", base="floating")
    rows = 3 * BLOCK + 17
    whole = drawn(robot, rows, needed=NEEDED, distribution=distribution, **SCALES)
    for chunk in (8, 1000, BLOCK, BLOCK + 8):
        source = samples(robot, rows, needed=NEEDED, distribution=distribution, **SCALES)
        out = room(robot, source, chunk)
        for start in range(0, rows, chunk) if chunk > 8 else (0, BLOCK - 3, 2 * BLOCK, 5):
            stop = min(start + chunk, rows)
            source.read(start, stop, out)
            for name, values in whole.items():
                assert out[name][: stop - start].tobytes() == values[start:stop].tobytes(), (name, start)


def test_an_input_does_not_depend_on_the_others() -> None:
    robot = artsim.load(ARM)
    alone = drawn(robot, 100)
    together = drawn(robot, 100, needed=NEEDED, **SCALES)
    assert set(alone) == {"qpos"}
    assert set(together) == set(NEEDED)
    assert alone["qpos"].tobytes() == together["qpos"].tobytes()
    assert drawn(robot, 100, torque=5.0)["tau"].tobytes() == together["tau"].tobytes()


def test_seeds_blocks_and_inputs_differ() -> None:
    robot = artsim.load(ARM)
    out = drawn(robot, 2 * BLOCK, needed=("qvel", "qacc"), velocity=1.0, acceleration=1.0)
    other = drawn(robot, 2 * BLOCK, seed=2)
    tables = [out["qpos"][:BLOCK], out["qpos"][BLOCK:], other["qpos"][:BLOCK], out["qvel"][:BLOCK], out["qacc"][:BLOCK]]
    flat = [((table - table.mean(0)) / table.std(0)).reshape(-1) for table in tables]
    correlation = np.corrcoef(flat) - np.eye(len(flat))
    assert np.abs(correlation).max() < 5 / math.sqrt(flat[0].size)


def test_identity_is_what_decides_the_numbers() -> None:
    robot = artsim.load(ARM)
    identity = samples(robot, 5, seed=2**64 - 1, velocity=1.5).identity
    assert json.loads(json.dumps(identity)) == {
        "kind": "samples",
        "rows": 5,
        "seed": 2**64 - 1,
        "distribution": "uniform-limits",
        "scales": {"qvel": 1.5},
        "inputs": ["qpos", "qvel"],
    }


# ---- the distributions


def within(values: Array, mean: float, deviation: float, kurtosis: float) -> None:
    """Mean and variance of a sample are those of the distribution, to 5 of their standard errors."""
    if deviation == 0:
        assert (values == mean).all()
        return
    n = len(values)
    assert abs(values.mean() - mean) < 5 * deviation / math.sqrt(n)
    assert abs(values.var() - deviation**2) < 5 * deviation**2 * math.sqrt((kurtosis - 1) / n)


CASES = [
    ("revolute", 'lower="-0.5" upper="2" effort="1" velocity="1"', -0.5, 2.0),
    ("prismatic", 'lower="0.1" upper="0.3" effort="1" velocity="1"', 0.1, 0.3),
    ("continuous", "", -math.pi, math.pi),
    ("revolute", 'lower="0.7" upper="0.7" effort="1" velocity="1"', 0.7, 0.7),
]


@pytest.mark.parametrize(("kind", "limit", "low", "high"), CASES)
def test_uniform_within_limits(kind: str, limit: str, low: float, high: float) -> None:
    values = drawn(one_joint(kind, limit), 50_000)["qpos"][:, 0]
    assert low <= values.min()
    assert values.max() <= high
    within(values, (low + high) / 2, (high - low) / math.sqrt(12), 1.8)


@pytest.mark.parametrize(("kind", "limit", "low", "high"), CASES)
def test_normal_about_the_middle(kind: str, limit: str, low: float, high: float) -> None:
    """A sixth of the range as deviation; three deviations beyond the middle it is cut, which 0.27 % reach.

    What is left of the deviation: 0.9975 = √E[min(z², 9)].
    """
    values = drawn(one_joint(kind, limit), 50_000, distribution="normal")["qpos"][:, 0]
    assert low <= values.min()
    assert values.max() <= high
    within(values, (low + high) / 2, (high - low) / 6 * 0.9975, 3)
    if high > low:
        cut = np.mean((values == low) | (values == high))
        assert abs(cut - 0.0027) < 5 * math.sqrt(0.0027 / values.size)


@pytest.mark.parametrize(
    ("lower", "upper", "want"), [(-math.inf, 2.0, (2 - math.pi, 2.0)), (-1.0, math.inf, (-1.0, math.pi - 1))]
)
def test_a_limit_at_one_side(lower: float, upper: float, want: tuple[float, float]) -> None:
    robot = one_joint("continuous", "")
    model = robot.model._replace(lower=np.array([lower]), upper=np.array([upper]))
    out = {"qpos": np.empty((50_000, 1))}
    open_samples(model, robot.labels, (), (), rows=50_000, seed=0).read(0, 50_000, out)
    assert want[0] <= out["qpos"].min() < want[0] + 1e-3
    assert want[1] - 1e-3 < out["qpos"].max() <= want[1]


def test_a_floating_base() -> None:
    """Positions ±1 m; rotations uniform: E[w²] = 1/4 and E[R] = 0, and for each column of R a variance of 1/3."""
    robot = artsim.load(ROOT / "robots" / "floating_box.urdf", base="floating")
    q = drawn(robot, 50_000)["qpos"]
    assert np.abs(q[:, :3]).max() <= 1
    for column in q[:, :3].T:
        within(column, 0, 1 / math.sqrt(3), 1.8)
    w, x, y, z = q[:, 3:7].T
    assert w.min() >= 0
    np.testing.assert_allclose(w**2 + x**2 + y**2 + z**2, 1, atol=1e-15)
    for entry in (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), 1 - 2 * (x * x + y * y)):
        within(entry, 0, 1 / math.sqrt(3), 1.8)  # an entry of a random rotation is uniform in ±1 (Archimedes)


def test_planar() -> None:
    q = drawn(one_joint("planar", ""), 50_000)["qpos"]
    for column, end in zip(q.T, (1, 1, math.pi), strict=True):
        assert np.abs(column).max() <= end
        within(column, 0, end / math.sqrt(3), 1.8)


@pytest.mark.parametrize("distribution", ["uniform-limits", "normal"])
def test_scales(distribution: str) -> None:
    robot = artsim.load(ARM)
    out = drawn(robot, 20_000, needed=NEEDED, distribution=distribution, **SCALES)
    uniform = distribution == "uniform-limits"
    for name, scale in zip(NEEDED[1:], SCALES.values(), strict=True):
        assert out[name].shape[1:] == ((len(robot.links), 6) if name == "wrench" else (7,))
        within(out[name].reshape(-1), 0, scale / math.sqrt(3) if uniform else scale, 1.8 if uniform else 3)
        assert (np.abs(out[name]).max() <= scale) == uniform


def test_what_has_no_scale_is_zero() -> None:
    out = drawn(artsim.load(ARM), 10, needed=("qvel", "qacc"))
    assert not out["qvel"].any()
    assert not out["qacc"].any()
    assert not np.isnan(out["qvel"]).any()


# ---- couplings


@pytest.mark.parametrize("distribution", ["uniform-limits", "normal"])
def test_followers_are_where_their_leaders_put_them(distribution: str) -> None:
    """A chain with its leader last: c = -2 b + 0.1, b = 0.5 a; all keep their limits, c's are the tightest."""
    limit = 'lower="-1" upper="1" effort="1" velocity="1"'
    robot = made(
        joint("c", "revolute", "k", "l", limit, '<mimic joint="b" multiplier="-2" offset="0.1"/>'),
        joint("b", "revolute", "k", "m", limit, '<mimic joint="a" multiplier="0.5" offset="0"/>'),
        joint("a", "revolute", "k", "n", 'lower="-3" upper="3" effort="1" velocity="1"'),
        links="klmn",
    )
    c, b, a = drawn(robot, 20_000, distribution=distribution)["qpos"].T
    np.testing.assert_allclose(b, 0.5 * a, atol=1e-15)
    np.testing.assert_allclose(c, 0.1 - 2 * b, atol=1e-15)
    assert np.abs(c).max() <= 1 + 1e-15
    assert a.min() >= -0.9 - 1e-15  # c = 1 at a = -0.9, c = -1 at a = 1.1
    assert a.max() <= 1.1 + 1e-15
    assert a.min() < -0.89 or distribution == "normal"
    assert a.max() > 1.09 or distribution == "normal"


def test_followers_that_cannot_keep_their_limits() -> None:
    """Then the leader has its own range."""
    robot = made(
        joint("a", "revolute", "k", "l", 'lower="0" upper="1" effort="1" velocity="1"'),
        joint("b", "revolute", "l", "m", 'lower="5" upper="6" effort="1" velocity="1"', '<mimic joint="a"/>'),
        links="klm",
    )
    a, b = drawn(robot, 5000)["qpos"].T
    assert (a == b).all()
    assert 0 <= a.min() < 0.01
    assert 0.99 < a.max() <= 1


@pytest.mark.parametrize("name", ["parallel_gripper", "rack_and_pinion", "two_finger_gripper", "stiff_drive_chain"])
def test_robots_with_couplings(name: str) -> None:
    robot = artsim.load(ROOT / "robots" / f"{name}.urdf")
    q, m = drawn(robot, 1000)["qpos"], robot.model
    assert len(m.coupling_follower)
    for f, l, p in zip(m.coupling_follower, m.coupling_leader, m.coupling_polynomial, strict=True):
        want = np.polynomial.polynomial.polyval(q[:, m.dof_coord[l]], p)
        np.testing.assert_allclose(q[:, m.dof_coord[f]], want, atol=1e-14)


def test_a_polynomial_coupling() -> None:
    robot = artsim.load(ROOT / "robots" / "rack_and_pinion.urdf")
    polynomial = np.array([[0.1, 0.2, -0.3, 0.4, 0.05]])
    model = robot.model._replace(coupling_polynomial=polynomial)
    out = {"qpos": np.empty((100, robot.nq))}
    open_samples(model, robot.labels, (), (), rows=100, seed=0).read(0, 100, out)
    leader, follower = out["qpos"][:, model.coupling_leader[0]], out["qpos"][:, model.coupling_follower[0]]
    np.testing.assert_allclose(follower, np.polynomial.polynomial.polyval(leader, polynomial[0]), atol=1e-13)


# ---- the door


def test_no_rows() -> None:
    assert drawn(artsim.load(ARM), 0)["qpos"].shape == (0, 7)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"distribution": "uniform"}, "did you mean 'uniform-limits'"),
        ({"rows": -1}, "-1 samples"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 2**64}, "seed"),
        ({"velocity": -1.0}, "scale -1.0 of qvel"),
        ({"torque": math.nan}, "scale nan of tau"),
        ({"wrench": math.inf}, "scale inf of wrench"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        samples(artsim.load(ARM), **{"rows": 1, **options})
