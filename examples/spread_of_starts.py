"""Where an arm ends that starts anywhere near its target: 256 runs, 8 at a time in SIMD lanes, by joint."""

import numpy as np

import artsim

robot = artsim.load("robots/arm7.urdf")
many = artsim.rollout(
    robot,
    samples=256,
    steps=500,
    spread=0.3,
    randomise={"mass": (0.8, 1.2), "damping": (0.5, 2.0)},
    q0={"joint_2": 0.5},
    target={"joint_2": 0.5},
    stiffness=400,
    damping=40,
    seed=1,
)
error = many["qpos"][:, -1] - np.array([0, 0.5, 0, 0, 0, 0, 0])
for joint, column in zip(robot.dofs, error.T, strict=True):
    print(f"{joint}: mean {column.mean():+.4f} rad, standard deviation {column.std():.4f} rad")
