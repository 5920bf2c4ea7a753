"""The sweeping solvers: where they lead if they may sweep on, and where they stop, as the PhysX guide tells it.

Velocities after a step are unique, M̂ being positive definite and all rows satisfiable, whatever the impulses are. A
solver's line in SOLVERS says what it is given and which rows it is meant to solve as `newton` does.
`python -m pytest tests/solvers/test_sweeps.py -s` prints the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from artsim.sim.constraints.kinds import CONTACT_ROW, DRIVE_ROW, POSITION_ROW, VELOCITY_ROW
from artsim.sim.foundation.errors import UsageError
from tests.contact.test_finger import finger, height
from tests.simulation import Array, box_link, joint, robot_file, simulate, slider, urdf

ROWS = ("limits", "drives", "friction", "couplings", "speeds")


@dataclass(frozen=True)
class Solver:
    """How a solver is asked, and for what."""

    config: Mapping[str, Any]
    rows: tuple[str, ...] = ROWS


SOLVERS = {
    "pgs": Solver({"iterations": 20000}),
    # its positions move within the step: what follows them ends elsewhere
    "tgs": Solver({"iterations": 20000}, ("friction", "speeds")),
    "block-gs": Solver({"iterations": 20000}),
}
DT = 0.002


def random_tree(seed: int, rows: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    """A tree of revolute and prismatic joints in motion, near their limits, and a configuration that drives it.

    None is so far beyond its speed that bringing it back would pull the links taut (sim/stepping/midpoint.py).
    """
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 9))
    links, joints = [], []
    config: dict[str, Any] = {name: {} for name in ("q0", "v0", "stiffness", "damping", "target", "drive_limit")}
    free: list[int] = []
    for n in range(count):
        name = f"j{n}"
        q = float(rng.uniform(-1, 1))
        speed = float(rng.normal(0, 0.5))
        follows = "couplings" in rows and bool(free) and rng.random() < 0.3
        mimic = None
        if follows:
            leader, factor = int(rng.choice(free)), float(rng.uniform(-2, 2))
            q = float(rng.uniform(-0.5, 0.5))
            mimic = f"j{leader}", factor, q - factor * config["q0"][f"j{leader}"]
            speed = factor * config["v0"][f"j{leader}"]
        near = "limits" in rows and rng.random() < 0.5
        limit = (q - float(rng.uniform(0, 2e-3)), q + float(rng.uniform(0, 2e-3))) if near else (-50.0, 50.0)
        links.append(box_link(f"l{n}", float(rng.uniform(0.2, 2)), _numbers(rng, 0.2), (0.1, 0.2, 0.3)))
        parent = int(rng.integers(-1, n)) if n else -1
        kind = "revolute" if rng.random() < 0.7 else "prismatic"
        joints.append(
            joint(
                name,
                kind,
                "base" if parent < 0 else f"l{parent}",
                f"l{n}",
                at=_numbers(rng, 0.3),
                axis=_numbers(rng, 1.0),
                limit=limit,
                velocity=max(0.1, float(rng.uniform(0.97, 1.3)) * abs(speed)),
                friction=float(rng.uniform(0, 3)) if "friction" in rows and rng.random() < 0.5 else 0.0,
                mimic=mimic,
            )
        )
        if follows:
            continue
        free.append(n)
        config["q0"][name] = q
        config["v0"][name] = speed
        if "drives" in rows and rng.random() < 0.6:
            config["stiffness"][name] = 10 ** float(rng.uniform(0, 4))
            config["damping"][name] = 10 ** float(rng.uniform(-1, 2))
            config["target"][name] = q + float(rng.normal(0, 0.3))
            config["drive_limit"][name] = 10 ** float(rng.uniform(0, 3))
    return urdf(*links, *joints), {**config, "velocity_limits": "speeds" in rows, "coupling": "rows"}


def _numbers(rng: np.random.Generator, most: float) -> tuple[float, ...]:
    return tuple(rng.uniform(-most, most, 3).tolist())


def after_a_step(model: str, solver: str, config: Mapping[str, Any]) -> Array:
    given: dict[str, Any] = {"steps": 1, "dt": DT, "record": ("qvel",), **config, "solver": solver}
    velocities: Array = simulate(model, **given).simulation.qvel
    return velocities


def by_dampers(config: Mapping[str, Any]) -> dict[str, Any]:
    """The drives as dampers: for one step of implicit Euler, which theirs is, a spring is hK and a rate to aim at.

    K (target - q - h v) - D v = (D + h K) (rate - v) with rate = K (target - q) / (D + h K).
    """
    damping = {name: config["damping"][name] + DT * K for name, K in config["stiffness"].items()}
    way = {name: config["target"][name] - config["q0"][name] for name in damping}
    rate = {name: K * way[name] / damping[name] for name, K in config["stiffness"].items()}
    return {**config, "stiffness": {}, "target": {}, "damping": damping, "target_velocity": rate}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("solver", SOLVERS)
def test_random_trees(solver: str, seed: int) -> None:
    """As newton, whose springs are weighed otherwise (sim/equipment/actuation.py): its drives are dampers that do the
    same."""
    asked = SOLVERS[solver]
    model, config = random_tree(seed, asked.rows)
    want = after_a_step(model, "newton", by_dampers(config))
    got = after_a_step(model, solver, {**config, **asked.config})
    print(f"\n{solver:8} {seed:2} nv {len(want)}  differs by {np.abs(got - want).max():.0e}", end="")
    assert np.abs(got - want).max() <= 1e-8


@pytest.mark.parametrize("seed", range(60))
def test_brute_validates_newton_and_direct(seed: int) -> None:
    """The dense matrix of all rows gives the velocities of newton and of direct on random robots, couplings as rows or
    eliminated."""
    model, config = random_tree(seed, ROWS)
    config["coupling"] = ("exact", "rows")[seed % 2]
    want = after_a_step(model, "brute", config)
    for other in ("newton", "direct"):
        assert np.abs(after_a_step(model, other, config) - want).max() <= 1e-10 * max(1.0, np.abs(want).max())


@pytest.mark.parametrize("seed", range(12))
def test_jacobi_goes_where_newton_is(seed: int) -> None:
    """With mass splitting: there after 100,000 iterations, or nearer than after 10,000 where stiff drives slow it."""
    model, config = random_tree(seed, ROWS)
    want = after_a_step(model, "newton", by_dampers(config))
    errors = [np.abs(after_a_step(model, "jacobi", {**config, "iterations": n}) - want).max() for n in (10000, 100000)]
    print(f"\njacobi {seed}: 10,000 iterations {errors[0]:.0e}, 100,000 {errors[1]:.0e}", end="")
    assert errors[1] <= max(1e-8, 0.5 * errors[0])


def test_jacobi_ends_as_pgs() -> None:
    """The finger's limit is broken less from count to count, and where the drive yields at the end as far as by pgs."""
    for drive in ("K 10", "K 1e4"):
        broken = [-last_second("jacobi", drive, sweeps, 0.5)[:, 1].min() for sweeps in (4, 64, 4000)]
        assert broken[0] > broken[1] > broken[2]
        if drive == "K 10":
            assert broken[2] == pytest.approx(-last_second("pgs", drive, 2000, 0.5)[:, 1].min(), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_relaxed_jacobi_ends_as_with_shards(seed: int) -> None:
    """Relaxation and mass splitting lead to the same velocities."""
    model, config = random_tree(seed, ROWS)
    given = {**config, "iterations": 100000}
    split = after_a_step(model, "jacobi", given)
    relaxed = after_a_step(model, "jacobi", {**given, "mass_splitting": False, "relaxation": 0.1})
    assert np.abs(relaxed - split).max() <= 1e-8


@pytest.mark.parametrize("seed", [0, 2, 8])
def test_temporal_sweeps_come_nearer_in_proportion(seed: int) -> None:
    """What the first sub-steps leave of a coupling is pulled back over a step: the error goes with 1 / sweeps."""
    model, config = random_tree(seed, ("friction", "couplings", "speeds"))
    want = after_a_step(model, "newton", config)
    errors = [np.abs(after_a_step(model, "tgs", {**config, "iterations": n}) - want).max() for n in (1000, 10000)]
    print(f"\ntgs {seed}: 1000 sweeps {errors[0]:.1e}, 10000 {errors[1]:.1e}", end="")
    assert errors[0] == pytest.approx(10 * errors[1], rel=0.1)


@pytest.mark.parametrize("solver", [name for name, asked in SOLVERS.items() if "limits" in asked.rows])
def test_friction_cone(solver: str) -> None:
    """The finger's tip hits the ground with sideways speed: sliding, and with more friction sticking."""
    text = robot_file("finger").read_text()
    config = {"ground": True, "q0": {"proximal_joint": 0.466, "distal_joint": 0.0}, "v0": {"proximal_joint": 2.0}}
    for friction in (0.0, 0.05, 5.0):
        model = text.replace("<mu1>0.5</mu1>", f"<mu1>{friction}</mu1>")
        case = {**config, "ground_friction": friction}
        want = after_a_step(model, "newton", case)
        got = after_a_step(model, solver, {**case, **SOLVERS[solver].config})
        assert np.abs(got - want).max() <= 1e-8


# ------------------------------------------------------------------ the finger of the PhysX guide


@pytest.mark.small
def test_turns_are_the_guide_s() -> None:
    """From root to tip, of each link drive, position limits, velocity limits, and last what touches the ground."""
    both = {"proximal_joint": 10.0, "distal_joint": 10.0}
    run = finger("K 10", "near", 1 / 240, 0.5, solver="pgs", stiffness=both, velocity_limits=True, steps=2)
    rows = run.simulation._rows
    work = run.simulation._scratch.sweeps
    assert work is not None
    joint_rows = [DRIVE_ROW, POSITION_ROW, POSITION_ROW, VELOCITY_ROW, VELOCITY_ROW]
    order = work.order[: rows.number[0]]
    assert rows.kind[order].tolist() == [*joint_rows, *joint_rows, CONTACT_ROW, CONTACT_ROW, CONTACT_ROW]
    assert rows.dof[order][:10].tolist() == [0] * 5 + [1] * 5
    assert rows.cone[order][-3:].tolist() == [3, -1, -1]


# without friction, started near: min q2 of a plain Gauss-Seidel in the guide's order, by sweeps, measured on the peers
PLAIN = {
    "K 10": {1: -6.04e-2, 4: -4.07e-2, 16: -1.34e-2, 64: -4.05e-4, 255: -7.23e-10},
    "K 1e4, 10 N m": {1: -4.61e-1, 4: -4.18e-2, 16: -3.38e-5, 64: 0.0, 255: 0.0},
    "K 1e4": {1: -4.61e-1, 4: -4.55e-1, 16: -4.48e-1, 64: -4.25e-1, 255: -3.52e-1},
    "K 1e6": {1: -4.61e-1, 4: -4.57e-1, 16: -4.56e-1, 64: -4.56e-1, 255: -4.55e-1},
}


def last_second(solver: str, drive: str, sweeps: int, friction: float) -> Array:
    """q of the finger (240, 2)."""
    run = finger(drive, "near", 1 / 240, friction, solver=solver, iterations=sweeps)
    q: Array = run["qpos"][-240:]
    broken, depth = q[:, 1].min(), max(0.0, -height(q).min())
    print(
        f"\n{drive:13} mu {friction} {solver:8} {sweeps:3}: min q2 {broken:9.2e} rad  penetration {1e3 * depth:.0e} mm "
        f" peak to peak {np.ptp(q[:, 1]):.0e} rad",
        end="",
    )
    return q


@pytest.mark.parametrize("drive", PLAIN)
def test_finger_by_plain_sweeps(drive: str) -> None:
    for sweeps, want in PLAIN[drive].items():
        q = last_second("pgs", drive, sweeps, 0.0)
        assert q[:, 1].min() == pytest.approx(want, rel=5e-3, abs=1e-12)
        assert np.ptp(q[:, 1]) <= 1e-9


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("drive", PLAIN)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_guide_s_story(solver: str, drive: str, friction: float) -> None:
    """Steady with a broken limit. More sweeps help where the drive yields, hardly at all where nothing does."""
    broken = {}
    for sweeps in (4, 16, 64, 255):
        q = last_second(solver, drive, sweeps, friction)
        broken[sweeps] = -q[:, 1].min()
        assert np.ptp(q[:, 1]) <= 1e-3
        assert -height(q).min() <= 1e-3
    if drive in ("K 10", "K 1e4, 10 N m"):
        assert broken[255] <= 2e-3
        assert broken[4] >= 0.02
    else:
        assert broken[255] >= 0.25
        assert broken[4] <= 0.6


# ------------------------------------------------------------------ velocity iterations, and what errors are divided by


@pytest.mark.small
@pytest.mark.parametrize("solver", ["pgs", "tgs"])
def test_velocity_iterations_leave_no_velocity_of_the_correction(solver: str) -> None:
    """A slider 1 mm beyond its limit moves back within a step; only without velocity iterations does it fly on."""
    text = slider(limit=(0.0, 1.0))
    start = {"q0": {"x": -1e-3}, "steps": 1, "dt": DT, "record": ("qpos",), "solver": solver, "iterations": 8}
    plain = simulate(text, **start).simulation
    after = simulate(text, **start, velocity_iterations=4).simulation
    assert plain.qpos[0] == pytest.approx(after.qpos[0], abs=1e-15)
    assert after.qvel[0] == pytest.approx(0.0, abs=1e-12)
    assert plain.qvel[0] > 0.1
    if solver == "pgs":
        assert after.qpos[0] == pytest.approx(0.0, abs=1e-15)
        assert plain.qvel[0] == pytest.approx(1e-3 / DT)


def test_velocity_iterations_end_as_newton_in_contact() -> None:
    """Where nothing has an error, sweeps for velocities are sweeps like others."""
    model, config = random_tree(1, ("friction", "speeds"))
    want = after_a_step(model, "newton", config)
    got = after_a_step(model, "pgs", {**config, "iterations": 1, "velocity_iterations": 20000})
    assert np.abs(got - want).max() <= 1e-8


def test_errors_corrected_over_the_sub_step_hold_the_finger() -> None:
    """With both readings of eq. 5: the limit breaks by 0.6 rad over the sweeps, or hardly less for more sweeps."""
    broken = {}
    for reading in ("step", "sub-step"):
        for sweeps in (4, 16, 64):
            run = finger("K 1e6", "near", 1 / 240, 0.5, solver="tgs", iterations=sweeps, error_step=reading)
            broken[reading, sweeps] = -run["qpos"][-240:, 1].min()
    print(f"\n{broken}", end="")
    for sweeps in (4, 16, 64):
        assert broken["sub-step", sweeps] == pytest.approx(0.6 / sweeps, rel=0.1)
        assert broken["step", sweeps] > 0.4


def test_settings_of_other_solvers_are_refused() -> None:
    for given in ({"velocity_iterations": 1}, {"error_step": "sub-step"}, {"solver": "pgs", "error_step": "sub-step"}):
        with pytest.raises(UsageError, match="is for --solver"):
            simulate(slider(), steps=1, **given)
