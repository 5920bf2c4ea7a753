"""What a load on one finger of a coupled gripper does to its motor, by three ways of enforcing the couplings."""

import math

import numpy as np

import artsim

LOAD, LENGTH, STIFFNESS = 10.0, 0.05, 50.0  # N, m, N m/rad
q = 0.35
for _ in range(50):  # the drive gives way until it balances the load: 50 (0.35 - q) = torque
    q = 0.35 - LOAD * LENGTH * math.cos(math.atan(0.75) - q) / STIFFNESS
print(f"{'closed form':24} leader at {q:.6f} rad")

for name, ways in {
    "exact": {"coupling": "exact"},
    "rows": {"coupling": "rows"},
    "compliant, 500 Hz": {"coupling": "compliant", "coupling_frequency": 500.0},
}.items():
    robot = artsim.load("robots/two_finger_gripper.urdf", **ways)
    run = artsim.simulate(
        robot,
        steps=1000,
        dt=0.001,
        gravity=(0, 0, 0),
        q0={"left_driver_joint": q},
        target={"left_driver_joint": 0.35},
        stiffness={"left_driver_joint": STIFFNESS},
        damping={"left_driver_joint": 1.0},
        wrench={"right_tip": (0.0, -LOAD, 0.0)},
        **ways,
    )
    last = run["qpos"][-1]
    leader, follower = (last[run.labels.coord.index(f"{side}_driver_joint")] for side in ("left", "right"))
    error = abs(follower + leader)
    print(f"{name:24} leader at {leader:.6f} rad, far finger off by {error:.1e} rad")
    assert np.isclose(leader, q, atol=2e-3)
