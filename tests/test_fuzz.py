"""Readers of strangers' files hold against damage: a result or one line, soon, in little memory (tests/fuzz).

And the engine against robots drawn at random: identities of mechanics, whatever the tree, the couplings and the inputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from artsim.loaders.load import load_text
from artsim.sim.quantities.robot import Robot
from tests.fuzz.fuzzing import fuzz, outcome
from tests.fuzz.readers import READERS, SEEDS

CASES = 1000


@pytest.mark.parametrize("half", [0, 1])
def test_mutated_inputs(half: int, tmp_path: Path) -> None:
    """A thousand, the same ones every time; `python -m tests.fuzz` draws others."""
    names = sorted(READERS)[half::2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done, failures = fuzz(names, 20 + half, tmp_path, count=CASES // 2)
    assert not failures, [(failure.reader, failure.why, failure.data[:200]) for failure in failures]
    assert done.total() == CASES // 2


@pytest.mark.parametrize("path", sorted(SEEDS.glob("*.*")), ids=lambda path: path.name)
def test_inputs_that_once_failed(path: Path, tmp_path: Path) -> None:
    for name, reader in READERS.items():
        if reader.suffix == path.suffix:
            assert not outcome(reader, path.read_bytes(), tmp_path), name


# --- robots drawn at random ------------------------------------------------------------------------------------------

numbers = st.floats(-2.0, 2.0).map(lambda x: round(x, 3))
masses = st.floats(0.05, 5.0).map(lambda x: round(x, 3))


@st.composite
def robots(draw: Callable[[Any], Any]) -> str:
    """A URDF: a tree of 2 to 7 links, joints of one dof, limits, damping, some joints that mimic others."""
    count = draw(st.integers(2, 7))
    parts, movable = [], []
    for n in range(count):
        m, r = draw(masses), draw(st.floats(0.02, 0.5))
        moments = sorted(draw(st.tuples(*[st.floats(0.4, 0.7)] * 3)))  # the largest is below the sum of the others
        x, y, z = (round(m * r * r * moment, 9) for moment in moments)
        place = " ".join(map(str, draw(st.tuples(numbers, numbers, numbers))))
        parts.append(
            f'<link name="l{n}"><inertial><origin xyz="{place}"/><mass value="{m}"/>'
            f'<inertia ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
    for n in range(1, count):
        kind = draw(st.sampled_from(["revolute", "continuous", "prismatic", "fixed"]))
        parent = draw(st.integers(0, n - 1))
        place, turn = (" ".join(map(str, draw(st.tuples(numbers, numbers, numbers)))) for _ in range(2))
        axis = draw(st.sampled_from(["1 0 0", "0 1 0", "0 0 1", "0.6 0 0.8"]))
        inside = f'<origin xyz="{place}" rpy="{turn}"/><axis xyz="{axis}"/>'
        inside += '<limit lower="-3" upper="3" effort="100" velocity="10"/>'
        if kind != "fixed":
            inside += f'<dynamics damping="{abs(draw(numbers))}"/>'
            if movable and draw(st.booleans()):
                multiplier = draw(st.sampled_from([-1.5, -1.0, 0.5, 2.0]))
                leader = draw(st.sampled_from(movable))
                inside += f'<mimic joint="{leader}" multiplier="{multiplier}"/>'
            movable.append(f"j{n}")
        ends = f'<parent link="l{parent}"/><child link="l{n}"/>'
        parts.append(f'<joint name="j{n}" type="{kind}">{ends}{inside}</joint>')
    return f'<robot name="r">{"".join(parts)}</robot>'


PHASES = (Phase.explicit, Phase.generate)  # explaining a failure takes minutes
drawn = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=PHASES
)


def loaded(text: str, *, floating: bool) -> Robot:
    return Robot.of(load_text(text, name="drawn.urdf", base="floating" if floating else "fixed"))


def inputs(robot: Robot, seed: int) -> tuple[Any, Any, Any]:
    """A configuration that the couplings allow, velocities and accelerations that follow, of the independent dofs."""
    rng = np.random.default_rng(seed)
    q = np.array(robot.reference)
    return q, rng.uniform(-1, 1, robot.nv), rng.uniform(-1, 1, robot.nv)


@drawn
@given(robots(), st.booleans(), st.integers(0, 2**31))
def test_mechanics_of_drawn_robots(text: str, floating: bool, seed: int) -> None:
    """M is symmetric and positive definite, reduced is Gᵀ full G, and both widths agree to rounding."""
    robot = loaded(text, floating=floating)
    if robot.nv == 0:
        return
    q, v, _ = inputs(robot, seed)
    full = robot.compute(q, v, quantities=["mass_matrix", "bias"])
    small = robot.compute(q, v, quantities=["mass_matrix", "coupling_matrix"], reduced=True)
    M, G = full["mass_matrix"], small["coupling_matrix"]
    scale = np.abs(M).max()
    assert np.abs(M - M.T).max() <= 1e-12 * scale
    assert np.linalg.eigvalsh(small["mass_matrix"]).min() > 0
    assert np.abs(G.T @ M @ G - small["mass_matrix"]).max() <= 1e-9 * np.abs(G.T @ M @ G).max()
    eight = robot.compute(np.tile(q, (8, 1)), np.tile(v, (8, 1)), quantities=["mass_matrix", "bias"])
    for name, values in full.items():
        size = max(1.0, float(np.abs(values).max()))
        assert np.abs(eight[name] - values).max() <= 1e-11 * size, name


@drawn
@given(robots(), st.booleans(), st.integers(0, 2**31))
def test_inverse_dynamics_undoes_forward_dynamics(text: str, floating: bool, seed: int) -> None:
    """RNEA of what ABA gives are the forces that were put in; both balance M q̈ + bias."""
    robot = loaded(text.replace("<mimic", "<none").replace("mimic>", "none>"), floating=floating)
    if robot.nv == 0:
        return
    q, v, tau = inputs(robot, seed)
    forward = robot.compute(q, v, tau=tau, quantities=["forward_dynamics", "mass_matrix", "bias"])
    acceleration = forward["forward_dynamics"]
    back = robot.compute(q, v, acceleration, quantities=["inverse_dynamics"])["inverse_dynamics"]
    size = 1.0 + np.abs(forward["bias"]).max() + np.abs(forward["mass_matrix"]).max() * np.abs(acceleration).max()
    assert np.abs(back - tau).max() <= 1e-10 * size
    assert np.abs(forward["mass_matrix"] @ acceleration + forward["bias"] - tau).max() <= 1e-10 * size
