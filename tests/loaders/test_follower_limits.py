"""Limits of followers that restrict their drive, beside a search over the drive's positions."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from artsim.loaders.follower_limits import common, follower_notes, is_in, preimage
from artsim.loaders.load import SceneEntry, load_articulation, load_scene, load_text
from artsim.sim.articulation.description import Articulation

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def urdf(*joints: tuple[str, str, str, str], kind: str = "revolute") -> Articulation:
    """Joints on one base: name, lower, upper, what is in its <mimic>."""
    text = '<link name="base"/>'
    for name, lower, upper, mimic in joints:
        limit = f'<limit lower="{lower}" upper="{upper}" effort="1" velocity="1"/>'
        text += f'<link name="l_{name}">{INERTIAL}</link><joint name="{name}" type="{kind}"><parent link="base"/>'
        text += f'<child link="l_{name}"/>{limit}{f"<mimic {mimic}/>" if mimic else ""}</joint>'
    return load_text(f'<robot name="r">{text}</robot>', name="r.urdf")


def mjcf(ranges: dict[str, str], equalities: str) -> Articulation:
    limits = {name: f'range="{span}"' if span else "" for name, span in ranges.items()}
    bodies = "".join(
        f'<body><joint name="{name}" type="slide" {limit}/><geom size="1"/></body>' for name, limit in limits.items()
    )
    return load_text(
        f"<mujoco><compiler angle='radian'/><worldbody>{bodies}</worldbody><equality>{equalities}</equality></mujoco>",
        name="m.xml",
    )


def told(robot: Articulation) -> list[str]:
    return [note.message for note in robot.notes if "follower" in note.message or "is held at" in note.message]


@pytest.mark.parametrize(
    ("lower", "upper", "mimic", "left"),
    [
        ("0", "0.8", 'multiplier="-1"', "0 … 0 rad of its 0 … 0.8"),
        ("-0.4", "0", 'multiplier="-1"', "0 … 0.4 rad of its 0 … 0.8"),
        ("0", "0.8", 'offset="0.2"', "0 … 0.6 rad of its 0 … 0.8"),
        ("0", "0.8", 'multiplier="-2" offset="1.2"', "0.2 … 0.6 rad of its 0 … 0.8"),
        ("1", "2", "", "no position"),
        ("0", "0.8", "", ""),
        ("-0.8", "0", 'multiplier="-1"', ""),
        ("-0.7999", "0", 'multiplier="-1"', ""),  # rounded digits
        ("-9", "9", 'multiplier="3" offset="1"', ""),
        ("0.5", "0.5", 'multiplier="0" offset="0.5"', ""),
    ],
)
def test_one_follower(lower: str, upper: str, mimic: str, left: str) -> None:
    found = told(urdf(("drive", "0", "0.8", ""), ("follow", lower, upper, f'joint="drive" {mimic}')))
    if left.startswith("no"):
        assert found == ["limits of follower 'follow' leave joint 'drive' no position"]
    else:
        assert found == ([f"limits of follower 'follow' leave joint 'drive' only {left}"] if left else [])


def test_the_unit_is_that_of_the_drive() -> None:
    found = told(urdf(("d", "0", "1", ""), ("f", "0", "0.25", 'joint="d" multiplier="0.5"'), kind="prismatic"))
    assert found == ["limits of follower 'f' leave joint 'd' only 0 … 0.5 m of its 0 … 1"]


def test_chains_name_the_joint_that_restricts() -> None:
    """c follows b follows a: c's limits hold a; b's own do not."""
    chain = urdf(
        ("a", "-1", "1", ""),
        ("b", "-3", "3", 'joint="a" multiplier="2"'),
        ("c", "-0.5", "3", 'joint="b" multiplier="-0.5" offset="0.1"'),
    )
    assert told(chain) == ["limits of follower 'c' leave joint 'a' only -1 … 0.6 rad of its -1 … 1"]
    both = urdf(("a", "-1", "1", ""), ("b", "-1", "3", 'joint="a" multiplier="2"'), ("c", "-1", "0.5", 'joint="b"'))
    assert told(both) == ["limits of followers 'b', 'c' leave joint 'a' only -0.5 … 0.25 rad of its -1 … 1"]


def test_a_drive_without_limits() -> None:
    robot = mjcf({"a": "", "b": "-1 1", "c": ""}, '<joint joint1="b" joint2="a" polycoef="0 2 0 0 0"/>')
    assert told(robot) == ["limits of follower 'b' leave joint 'a' only -0.5 … 0.5 m"]
    assert not told(mjcf({"a": "", "b": ""}, '<joint joint1="b" joint2="a"/>'))


def test_curved_couplings_may_leave_several_ranges() -> None:
    """b = a² - 1/4 in 0 … 2: |a| in 1/2 … 3/2; b = a² in -1 … 0: only a = 0."""
    equality = '<joint joint1="b" joint2="a" polycoef="{} 0 1 0 0"/>'
    two = mjcf({"a": "-2 1", "b": "0 2"}, equality.format(-0.25))
    assert told(two) == ["limits of follower 'b' leave joint 'a' only -1.5 … -0.5 or 0.5 … 1 m of its -2 … 1"]
    point = mjcf({"a": "-2 1", "b": "-1 0"}, equality.format(0))
    assert told(point) == ["limits of follower 'b' leave joint 'a' only 0 … 0 m of its -2 … 1"]


def test_joints_that_are_held() -> None:
    held = '<joint joint1="b" polycoef="0.5 0 0 0 0"/>'
    assert told(mjcf({"b": "0 0.2"}, held)) == ["joint 'b' is held at 0.5 m, beyond its limits 0 … 0.2"]
    assert not told(mjcf({"b": "0 0.5"}, held))


def test_equalities_in_a_circle_are_passed_over() -> None:
    circle = '<joint joint1="b" joint2="a"/><joint joint1="a" joint2="b"/>'
    mjcf({"a": "-1 1", "b": "0 0.1"}, circle)


def test_files_of_loops(tmp_path: Path) -> None:
    """Couplings that a file of loops adds are looked at as those of the model."""
    path = tmp_path / "r.urdf"
    path.write_text(urdf(("drive", "0", "0.8", ""), ("follow", "0", "0.8", "")).text)
    loops = tmp_path / "l.toml"
    loops.write_text('[[loop]]\nkind = "gear"\nfollower = "follow"\nleader = "drive"\nratio = -1.0\n')
    robot = load_scene([SceneEntry("", str(path), loops=str(loops))])
    assert "limits of follower" in "".join(told(robot)) and not told(load_articulation(path))


@pytest.mark.parametrize("seed", range(60))
def test_the_preimage_is_where_the_polynomial_is_wanted(seed: int) -> None:
    """Against positions on a grid, for polynomials of degree 1 to 4, monotone or not."""
    random = np.random.default_rng(seed)
    coefficients = random.normal(size=random.integers(2, 6)).tolist()
    ends = np.sort(random.normal(size=4) * 2).reshape(2, 2).tolist()
    wanted = [(low, high) for low, high in ends]
    found = common(preimage(coefficients, wanted), (-3.0, 3.0))
    grid = np.linspace(-3, 3, 3001)
    values = np.polynomial.polynomial.polyval(grid, coefficients)
    truth = np.array([any(low <= y <= high for low, high in wanted) for y in values])
    ours = np.array([is_in(x, found) for x in grid])
    edges = np.array([min(abs(y - end) for pair in wanted for end in pair) for y in values]) < 1e-6
    assert (truth == ours)[~edges].all()


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_of_followers(seed: int) -> None:
    """All positions of the drive in which no joint is beyond its limits, by trying them."""
    random = np.random.default_rng(seed)
    joints, count = [("j0", "-1", "1", "")], int(random.integers(2, 6))
    leaders, lines = [0], [(1.0, 0.0)]
    for k in range(1, count):
        leader = int(random.integers(0, k))
        factor, offset = random.uniform(-2, 2), random.uniform(-0.3, 0.3)
        lower, upper = -random.uniform(0.2, 3), random.uniform(0.2, 3)
        lines.append((factor * lines[leader][0], factor * lines[leader][1] + offset))
        leaders.append(leader)
        mimic = f'joint="j{leader}" multiplier="{factor!r}" offset="{offset!r}"'
        joints.append((f"j{k}", repr(lower), repr(upper), mimic))
    grid = np.linspace(-1, 1, 4001)
    inside = np.ones(len(grid), bool)
    for (_, lower, upper, _), (factor, offset) in zip(joints, lines, strict=True):
        inside &= (factor * grid + offset >= float(lower)) & (factor * grid + offset <= float(upper))
    found = told(urdf(*joints))
    if inside.mean() > 0.9995:
        assert not found
    elif not inside.any():
        assert "no position" in found[0]
    elif inside.mean() < 0.998:
        low, high = map(float, re.findall(r"only (\S+) … (\S+) rad", found[0])[0])
        assert (low, high) == pytest.approx((grid[inside][0], grid[inside][-1]), abs=1e-3)


def test_a_long_chain_is_quick_to_judge() -> None:
    joints = [("j0", "-1", "1", "")] + [(f"j{k}", "-1", "1", f'joint="j{k - 1}"') for k in range(1, 3000)]
    assert not follower_notes(urdf(*joints))
