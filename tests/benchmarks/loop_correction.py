"""How a loop's position error is driven out, compared: a four-bar linkage that swings freely for ten seconds.

Crank 0.2 m, coupler 0.5 m, rocker 0.4 m, ground 0.5 m, rods of 1 kg, no friction; semi-implicit Euler, dense numpy,
nothing of the engine. Prints the largest gap and the largest error of the energy over m g L, L the ground's length.

    python tests/benchmarks/loop_correction.py

Methods, C the gap, J its Jacobian, h the time step, v⁺ and q⁺ at the step's end:
    Baumgarte            J v̇ + J̇ v + 2 a Ċ + a² C = 0, a = 0.1 / h or 0.5 / h  (Baumgarte 1972)
    velocity, erp        J v⁺ = -erp C / h  (notes on mimic joints, eq. 5)
    split impulse        J v⁺ = 0; q⁺ moves by v⁺ + p with J p = -C / h, and p is forgotten  (Catto 2009)
    projection           J v⁺ = 0; then the nearest q⁺ with C = 0 in the metric of M, v⁺ as it is
    implicit             C + h J v⁺ + ½ h² J̇ v = 0: the engine's rows, aimed once
    implicit, aimed twice the same, and once more by how far from closed the q⁺ found would be: what the engine does
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Step = Callable[[Array, Array, float], tuple[Array, Array]]
CRANK, COUPLER, ROCKER, GROUND = 0.2, 0.5, 0.4, 0.5
GRAVITY, WIDTH = 9.81, 0.02
SCALE = GRAVITY * GROUND  # [J] m g L


def closed_start() -> Array:
    """Angles below the horizontal of crank, coupler and rocker, the crank at -1 rad, the linkage closed."""
    base = CRANK * np.array([np.cos(1.0), np.sin(1.0)])  # upwards is positive here
    across = np.array([GROUND, 0.0]) - base
    distance = np.hypot(*across)
    along = (COUPLER**2 - ROCKER**2 + distance**2) / (2 * distance)
    height = np.sqrt(COUPLER**2 - along**2)
    meet = base + (along * across + height * np.array([-across[1], across[0]])) / distance
    coupler, rocker = meet - base, meet - np.array([GROUND, 0.0])
    return -np.array([1.0, np.arctan2(coupler[1], coupler[0]), np.arctan2(rocker[1], rocker[0])])


def mass_matrix(q: Array) -> Array:
    """M (3, 3) of the open linkage in the angles above."""
    own = [length**2 / 4 + (length**2 + WIDTH**2) / 12 for length in (CRANK, COUPLER, ROCKER)]
    M = np.diag([own[0] + CRANK**2, own[1], own[2]])
    M[0, 1] = M[1, 0] = CRANK * COUPLER / 2 * np.cos(q[0] - q[1])
    return M


def force(q: Array, v: Array) -> Array:
    """Gravity and velocity terms (3,)."""
    turning = CRANK * COUPLER / 2 * np.sin(q[0] - q[1])
    weight = GRAVITY * np.array([1.5 * CRANK, COUPLER / 2, ROCKER / 2]) * np.cos(q)
    return weight + np.array([-turning * v[1] ** 2, turning * v[0] ** 2, 0.0])


def energy(q: Array, v: Array) -> float:
    """Kinetic and potential [J]."""
    height = -np.array([1.5 * CRANK, COUPLER / 2, ROCKER / 2]) @ np.sin(q)
    return float(0.5 * v @ mass_matrix(q) @ v + GRAVITY * height)


def gap(q: Array) -> Array:
    """C (2,) [m]."""
    c, s = np.cos(q), np.sin(q)
    lengths = np.array([CRANK, COUPLER, -ROCKER])
    return np.array([lengths @ c - GROUND, -lengths @ s])


def jacobian(q: Array) -> Array:
    """J (2, 3)."""
    lengths = np.array([CRANK, COUPLER, -ROCKER])
    return np.array([-lengths * np.sin(q), -lengths * np.cos(q)])


def bend(q: Array, v: Array) -> Array:
    """J̇ v (2,)."""
    lengths = np.array([CRANK, COUPLER, -ROCKER])
    return np.array([-lengths * np.cos(q) @ v**2, lengths * np.sin(q) @ v**2])


def solve(q: Array, free: Array, wanted: Array) -> Array:
    """The velocities nearest to `free` in the metric of M with J v = wanted."""
    J = jacobian(q)
    W = np.linalg.solve(mass_matrix(q), J.T)
    return np.asarray(free + W @ np.linalg.solve(J @ W, wanted - J @ free))


def free_velocity(q: Array, v: Array, h: float) -> Array:
    """v + h M⁻¹ force."""
    return np.asarray(v + h * np.linalg.solve(mass_matrix(q), force(q, v)))


def baumgarte(strength: float) -> Step:
    """On accelerations, a = strength / h."""

    def step(q: Array, v: Array, h: float) -> tuple[Array, Array]:
        a, rate = strength / h, jacobian(q) @ v
        v = solve(q, free_velocity(q, v, h), rate - h * (bend(q, v) + 2 * a * rate + a * a * gap(q)))
        return q + h * v, v

    return step


def velocity(erp: float) -> Step:
    """On velocities, a share of the gap."""

    def step(q: Array, v: Array, h: float) -> tuple[Array, Array]:
        v = solve(q, free_velocity(q, v, h), -erp * gap(q) / h)
        return q + h * v, v

    return step


def split_impulse(q: Array, v: Array, h: float) -> tuple[Array, Array]:
    """A velocity that closes the gap and is forgotten."""
    v = solve(q, free_velocity(q, v, h), np.zeros(2))
    return q + h * v + h * solve(q, np.zeros(3), -gap(q) / h), v


def projection(q: Array, v: Array, h: float) -> tuple[Array, Array]:
    """Closed exactly, by Newton's method, after a step along J v = 0."""
    v = solve(q, free_velocity(q, v, h), np.zeros(2))
    q = q + h * v
    for _ in range(10):
        q = q + solve(q, np.zeros(3), -gap(q))
    return q, v


def implicit(aims: int) -> Step:
    """Closed at the end of the step: to the second order, or with another aim to the third."""

    def step(q: Array, v: Array, h: float) -> tuple[Array, Array]:
        free = free_velocity(q, v, h)
        wanted = -gap(q) / h - 0.5 * h * bend(q, v)
        found = solve(q, free, wanted)
        for _ in range(aims - 1):
            wanted = wanted - gap(q + h * found) / h
            found = solve(q, free, wanted)
        return q + h * found, found

    return step


METHODS: dict[str, Step] = {
    "Baumgarte, a = 0.1/h": baumgarte(0.1),
    "Baumgarte, a = 0.5/h": baumgarte(0.5),
    "velocity, erp 0": velocity(0.0),
    "velocity, erp 0.2": velocity(0.2),
    "velocity, erp 1": velocity(1.0),
    "split impulse": split_impulse,
    "projection": projection,
    "implicit": implicit(1),
    "implicit, aimed twice": implicit(2),
}


def swing(step: Step, h: float, seconds: float = 10.0) -> tuple[float, float, float]:
    """Largest gap [mm], largest error of the energy over m g L, and the error at the end."""
    q, v = closed_start(), np.zeros(3)
    start, worst, error = energy(q, v), 0.0, 0.0
    last = 0.0
    for _ in range(round(seconds / h)):
        q, v = step(q, v, h)
        worst = max(worst, float(np.linalg.norm(gap(q))))
        last = (energy(q, v) - start) / SCALE
        error = max(error, abs(last))
    return worst * 1e3, error, last


def main() -> None:
    print(
        f"{'':24}{'4 ms: gap [mm]':>16}{'energy max':>12}{'end':>9}{'1 ms: gap [mm]':>18}{'energy max':>12}{'end':>9}"
    )
    for name, step in METHODS.items():
        figures = [swing(step, h) for h in (0.004, 0.001)]
        print(
            f"{name:24}{figures[0][0]:16.2e}{figures[0][1]:12.3f}{figures[0][2]:9.3f}"
            f"{figures[1][0]:18.2e}{figures[1][1]:12.3f}{figures[1][2]:9.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
