"""A quadruped stands, is pushed from the side, harder and harder, and is put back every time."""

import artsim

robot = artsim.load("robots/quadruped.urdf", base="floating")
pose = {"q0": {"*_hip": 0.8, "*_knee": -1.6}, "stiffness": 300, "damping": 10}
pose["wrench"] = {"trunk": (0, 0, 0)}  # a snapshot holds the links that may be pushed: they are named from the start
with artsim.Simulation(robot, ground=True, on_ground=0.0, **pose) as simulation:
    simulation.step(500)
    stands = simulation.save()
    for impulse in (8.0, 20.0, 40.0):
        simulation.restore(stands)
        simulation.push("trunk", (0.0, impulse, 0.0))
        simulation.step(1000)
        _, y, z = simulation.qpos[:3]
        print(f"{impulse:4.0f} N s: moved by {1000 * y:5.1f} mm, height {z:.3f} m")
