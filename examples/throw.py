"""A ball thrown at a target by way of the ground: the gradient of its miss passes through the bounce."""

from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import artsim

BALL = """<mujoco><option timestep="0.002"/><worldbody>
<geom type="plane" size="9 9 .1" solref="-3000 -5" friction="0.4"/>
<body name="ball" pos="0 0 1"><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
<joint name="spin" type="hinge" axis="0 1 0"/><geom type="sphere" size=".1" mass="1" solref="-3000 -5" friction="0.4"/>
</body></worldbody></mujoco>"""
STEPS, TARGET = 400, np.array([1.6, 0.05])  # x [m], and z above the start

Path("ball.xml").write_text(BALL)
robot = artsim.load("ball.xml")


def miss(k, qpos, qvel):
    away = qpos[:2] - TARGET
    if k < STEPS:
        return 0.0, np.zeros(3), np.zeros(3)
    return away @ away, np.array([*2.0 * away, 0.0]), np.zeros(3)


def thrown(velocity):
    simulation = artsim.Simulation(robot, v0=[*velocity, 0.0])
    found = artsim.gradient(simulation, miss, STEPS, inputs=[])
    return found.cost, found.by_start[3:5]  # by the velocities along x and z


start = np.array([1.0, -2.0])
print(f"first throw misses by {np.sqrt(thrown(start)[0]):.2f} m")
found = minimize(thrown, start, jac=True, method="BFGS", options={"gtol": 1e-6})
print(f"then by less than a millimetre: {np.sqrt(found.fun) < 1e-3}")
print("velocity [m/s]", found.x.round(2))
assert np.sqrt(found.fun) < 1e-3
