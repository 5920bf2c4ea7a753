"""The worked examples of the texts that artsim follows: our figure beside the text's, or beside the closed form.

    python -m tests.benchmarks.theory

docs/theory-coverage.md says which text each belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, pi, sin
from typing import Any

import numpy as np

import artsim
from artsim.loaders.load import load_text
from artsim.sim.quantities.robot import Robot
from tests.quantities.test_guide import DOWN, WEIGHTLESS, after_one_step, compute, double_pendulum, pendulum
from tests.simulation import Truth, robot_file

Example = tuple[str, Any, Any]
"""What it is, our figure, the text's."""


def guide() -> Iterator[Example]:
    """The inverse-dynamics examples of PhysX's guide on articulations."""
    hanging, upright = pendulum(direction=-1.0), pendulum()
    yield "holding torque [N m]", compute(hanging, [pi / 2])["gravity"], 10.0
    after = after_one_step(hanging.articulation, {"pivot": pi / 2}, {}, {"pivot": 10.0})
    yield "velocity after a step under it [rad/s]", after, 0.0
    robot = Robot.of(double_pendulum(), gravity=DOWN)
    found = compute(robot, [0.7, pi / 2], qvel=[1.0, 0.0])
    yield "Coriolis and centrifugal torques [N m]", found["coriolis"], (0.0, 2.0)
    torque = dict(zip(robot.dofs, map(float, found["bias"]), strict=True))
    start = dict(zip(robot.coords, (0.7, pi / 2), strict=True))
    after = after_one_step(double_pendulum(), start, {"first": 1.0}, torque)
    yield "velocities after a step [rad/s]", after, (1.0, 0.0)
    J = compute(upright, [pi / 4])["jacobian"][upright.links.index("rod")]
    yield "counter torque of a wrench [N m]", -J.T @ np.array([1.0, 0, 0, 0, 0, 1]), cos(pi / 4) - 1.0
    yield "acceleration by gravity [rad/s²]", compute(upright, [pi / 2], tau=[0.0])["forward_dynamics"], 7.5
    yield "acceleration when held [rad/s²]", compute(upright, [pi / 2], tau=[-10.0])["forward_dynamics"], 0.0
    yield "torque for 1 rad/s² [N m]", compute(pendulum(WEIGHTLESS), [1.1], qacc=[1.0])["inverse_dynamics"], 4 / 3
    yield "centre of mass [m]", compute(upright, [pi / 4])["com"], (-sin(pi / 4), cos(pi / 4), 0.0)
    J = compute(upright, [pi / 2])["jacobian"][upright.links.index("rod")]
    yield "Jacobian of the pendulum", J[:, 0], (0.0, -1.0, 0.0, 0.0, 0.0, 1.0)
    yield "mass matrix [kg m²]", compute(upright, [pi / 2])["mass_matrix"][0], 4 / 3


def mimic_joints() -> Iterator[Example]:
    """The notes on mimic joints: eq. 15, eq. 5, eq. 18 to 29."""
    robot = artsim.load(robot_file("stiff_drive_chain"))
    held: dict[str, Any] = {"coupling": "rows", "gravity": (0.0, 0.0, 0.0)}
    run = artsim.simulate(robot, steps=1, q0={"joint_1": 0.4}, record=("qpos", "delassus"), **held)
    r = np.linalg.inv(Truth(robot_file("stiff_drive_chain"), robot).mass_matrix(run["qpos"][0]))
    mobility = r[1, 1] - (r[0, 1] + r[1, 0]) + r[0, 0]
    yield "r = J M⁻¹ Jᵀ, eq. 15 [1/(kg m²)]", run.delassus(0).matrix[0], mobility
    for erp in (0.2, 0.5, 1.0):
        run = artsim.simulate(robot, steps=2, coupling_erp=erp, q0={"joint_1": 0.1, "joint_2": 0.2}, **held)
        error = run.final["qpos"][1] - run.final["qpos"][0]
        yield f"error after two steps, erp {erp}, eq. 5 [rad]", error, 0.1 * (1 - erp) ** 2
    h, frequency, ratio = 0.002, 5.0, 0.3
    soft = {"coupling": "compliant", "coupling_frequency": frequency, "coupling_damping": ratio, "scheme_alpha": 1.0}
    start = {"joint_1": 0.1, "joint_2": 0.2}
    run = artsim.simulate(robot, steps=1, dt=h, q0=start, record=("delassus",), **held | soft)
    mu = 2 * pi * frequency
    at = Truth(robot_file("stiff_drive_chain"), robot).mass_matrix(np.array([0.1, 0.2]))
    r = np.linalg.inv(at)
    mobility = r[1, 1] - (r[0, 1] + r[1, 0]) + r[0, 0]
    stiffness, damping = mu**2 / mobility, 2 * ratio * mu / mobility
    yield "cfm of a compliant one, eq. 28 [1/(kg m²)]", run.delassus(0).cfm, 1 / (h * (h * stiffness + damping))


def constraint_matrix() -> Iterator[Example]:
    """Recoil Notes 1.2: the nodes of a box held at a point."""
    box = (
        '<mujoco><worldbody><body name="b"><freejoint/><geom type="box" size=".3 .2 .1" mass="4"/></body></worldbody>'
        '<equality><connect body1="b" anchor=".3 0 0"/></equality></mujoco>'
    )
    robot = Robot.of(load_text(box, name="box.xml"))
    run = artsim.simulate(robot, steps=1, record=("delassus",))
    inertia = 4 / 12 * np.array([0.4**2 + 0.2**2, 0.6**2 + 0.2**2, 0.6**2 + 0.4**2])
    K = np.eye(3) / 4 + np.diag([0.0, 0.3**2 / inertia[2], 0.3**2 / inertia[1]])
    found = run.delassus(0)
    yield "node 1/m - r× I⁻¹ r× of a point held [1/kg]", np.diag(found.matrix) - found.cfm, np.diag(K)


def maximal_coordinates() -> Iterator[Example]:
    """The scribe notes' and Faure's schemes: what energy a double pendulum loses."""
    robot = artsim.load(robot_file("double_pendulum"))
    start: dict[str, Any] = {"q0": {"joint_1": 1.0}, "v0": {"joint_1": 3.0}, "coordinates": "maximal"}
    for scheme in ("baumgarte", "implicit"):
        run = artsim.simulate(robot, steps=500, dt=0.002, scheme=scheme, record=("energy",), **start)
        energy = run["energy"].sum(axis=1)
        yield f"energy lost in 1 s, {scheme} [J]", np.abs(energy - energy[0]).max(), 0.0


def features() -> Iterator[Example]:
    """Features of the guide on robots of this package; energies and momenta drift with the step."""
    run = artsim.simulate(artsim.load(robot_file("rack_and_pinion")), steps=2)
    yield "acceleration of the rack, g/76 [m/s²]", run["qacc"][1].min() / -50, 9.81 / 76
    chain = artsim.load(robot_file("chain20"))
    run = artsim.simulate(chain, steps=100, dt=0.001, v0={"joint_1": 0.5}, record=("energy",))
    energy = run["energy"].sum(axis=1)
    yield "energy of 1:1000 in 0.1 s, relative", np.abs(energy - energy[0]).max() / run["energy"][:, 0].max(), 0.0
    legs = artsim.load(robot_file("quadruped"), base="floating")
    start = {"root.wx": 0.5, "root.vx": 0.5}
    run = artsim.simulate(legs, steps=200, gravity=(0, 0, 0), v0=start, record=("momentum",), contacts=False)
    drift = np.abs(run["momentum"] - run["momentum"][0]).max() / np.abs(run["momentum"][0]).max()
    yield "momentum in free flight (not energy), relative", drift, 0.0
    arm = artsim.load(robot_file("double_pendulum"))
    pulled: dict[str, Any] = {"stiffness": {"joint_1": 1e6}, "damping": {"joint_1": 1e3}, "target": {"joint_1": 1.0}}
    pulled |= {"drive_limit": {"joint_1": 3.0}, "steps": 1, "dt": 0.002, "record": ("tau_drive",)}
    yield "drive at its limit [N m]", artsim.simulate(arm, **pulled)["tau_drive"][0, 0], 3.0
    by_impulse = artsim.simulate(arm, drive_limit_kind="impulse", **pulled)
    yield "drive at its limit as an impulse [N m]", by_impulse["tau_drive"][0, 0], 1500.0
    run = artsim.simulate(arm, steps=300, joint_friction=50.0, q0={"joint_1": 1.0}, record=("qpos",))
    yield "motion that friction holds [rad]", np.ptp(run["qpos"][:, 0]), 0.0
    box = artsim.load(robot_file("floating_box"))
    run = artsim.simulate(box, steps=500, dt=0.002, link_velocity_limit={"*": (2.0, None)})
    yield "speed at a link's bound [m/s]", np.abs(run.final["qvel"]).max(), 2.0
    run = artsim.simulate(box, steps=500, dt=0.002, link_damping={"*": (2.0, 0.0)})
    yield "damped fall after 1 s [m/s]", np.abs(run.final["qvel"]).max(), 9.81 / 2 * (1 - (1 / 1.004) ** 500)


def main() -> None:
    """Print a line per example."""
    worst = 0.0
    for examples in (guide, mimic_joints, constraint_matrix, maximal_coordinates, features):
        print(f"\n{examples.__doc__}")
        for name, ours, text in examples():
            apart = float(np.abs(np.asarray(ours) - np.asarray(text)).max())
            if "energy" not in name:  # those drift with the step
                worst = max(worst, apart)
            shown = np.array2string(np.asarray(ours, float).reshape(-1), precision=9, suppress_small=True)
            print(f"  {name:48} {shown:44} text {np.round(text, 9)}  apart {apart:.1e}")
    print(f"\nworst of all but the energies: {worst:.1e}")
    assert worst <= 1e-9


if __name__ == "__main__":
    main()
