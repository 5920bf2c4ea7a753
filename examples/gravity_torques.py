"""Gravity torques of an arm for a table of configurations, checked against the slope of the potential energy."""

import numpy as np

import artsim

robot = artsim.load("robots/arm7.urdf")
configurations = np.random.default_rng(0).uniform(-1, 1, (1000, robot.nq))
gravity = robot.compute(configurations, quantities=["gravity"])["gravity"]

step = 1e-6
slope = np.empty_like(gravity)
for j in range(robot.nq):
    ahead, behind = configurations.copy(), configurations.copy()
    ahead[:, j] += step
    behind[:, j] -= step
    energies = [robot.compute(q, quantities=["potential_energy"])["potential_energy"] for q in (ahead, behind)]
    slope[:, j] = (energies[0] - energies[1]) / (2 * step)

print(f"largest torque {abs(gravity).max():.2f} N m at {robot.dofs[abs(gravity).max(axis=0).argmax()]}")
print(f"largest difference from dE/dq {abs(gravity - slope).max():.1e} N m")
assert abs(gravity - slope).max() < 1e-6
