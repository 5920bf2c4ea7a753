"""Scenes that strategies of the newton solver (solvers/strategies.py) are needed for, each failing without its one.

Strategies that other tests need have their scenes there; the docstring of every strategy names the test.
"""

from __future__ import annotations

from tests.contact.test_contact_closed_forms import play
from tests.contact.test_contact_hard import DEEP, DT, FLOOR, free, jointed, mjcf, squeezed


def test_contacts_that_slid_go_on_sliding_in_few_steps() -> None:
    """`_slide_on`: two boxes, one in the other, turn out of each other for 1.5 s; 15 steps each without it."""
    run = play(DEEP["two boxes concentric"], 1.5, record=("solver_iterations", "solver_residual"))
    steps = run["solver_iterations"].mean()
    print(f"\n{steps:.1f} steps", end="")
    assert steps <= 5.0
    assert run["solver_residual"].max() <= 1e-9


def test_balls_that_roll_into_each_other_take_few_steps() -> None:
    """`_slide_on` after sweeps: balls fall between one another and roll apart; without sweeps steps take 3.9 Newton
    steps, and 24 at worst."""
    balls = "".join(
        free(
            'size=".05" mass="1"',
            f"{0.08 * (n % 4) + 0.01 * (n // 16)} {0.12 * (n // 4 % 4)} {0.06 + 0.12 * (n // 16) + 0.06 * (n % 2)}",
            name=f"ball {n}",
        )
        for n in range(32)
    )
    run = play(mjcf(FLOOR + balls), 1.0, record=("solver_iterations", "solver_residual"))
    print(f"\n{run['solver_iterations'].mean():.1f} steps, {run['solver_iterations'].max():.0f} at most", end="")
    assert run["solver_iterations"].mean() <= 3.0
    assert run["solver_iterations"].max() <= 15.0
    assert run["solver_residual"].max() <= 1e-9


def test_what_friction_holds_against_a_limit_gives_way() -> None:
    """`regularise`: a ball between another one and a hinge's limit moves as far as that lets it; without the strategy
    it is left where it was."""
    run = jointed("at a limit", 3)
    print(f"\n{run.simulation.eased_steps} steps gave way, {run.simulation.left_inside_steps} were left", end="")
    assert run.simulation.eased_steps == 1440
    assert run.simulation.left_inside_steps <= 10
    assert run["solver_residual"].max() <= 1e-9


def test_long_sweeps_solve_what_nothing_else_does() -> None:
    """`_sweep_long`: two stiff jaws hit a cube's edges, and press harder than any impulse before; two steps are not
    solved without it."""
    run = squeezed(0.03, 1e-3, record=("solver_residual",))
    print(f"\nresidual {run['solver_residual'].max():.1e}", end="")
    assert run.simulation.unsolved_steps == 0


def test_what_nothing_solves_is_a_compromise() -> None:
    """`_freeze_shifts`: the same with a longer step, of which one is not solved: what is left of its rows is a tenth of
    a millimetre per second, and nothing goes inside."""
    run = squeezed(0.03, DT, record=("solver_residual",))
    print(f"\nresidual {run['solver_residual'].max():.1e}, {run.simulation.contact_extremes[1]:.1e} m deep", end="")
    assert run.simulation.unsolved_steps <= 1
    assert run["solver_residual"].max() <= 1e-3
    assert run.simulation.contact_extremes[1] <= 1e-9
