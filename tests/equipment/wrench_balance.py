"""Newton and Euler for every link of a recorded run, with MuJoCo's accelerations of the bodies."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

import artsim

Array = npt.NDArray[Any]

RECORD = ("qpos", "qvel", "qacc", "incoming_wrench", "external_wrench", "link_position")


def imbalance(model: Any, run: Any, row: int) -> float:
    """Largest miss of m a = Σ forces and its moments over all links, relative to the largest wrench.

    On each link act its incoming wrench, the reactions of those of its children, the external wrench and the weight.
    """
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = run["qpos"][row], run["qvel"][row]
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    data.qacc[:] = run["qacc"][row]
    mujoco.mj_rnePostConstraint(model, data)
    place = np.array(run["link_position"][row])
    wrench = np.array(run["incoming_wrench"][row]) + run["external_wrench"][row]
    for body in range(model.nbody - 1, 0, -1):
        above = int(model.body_parentid[body])
        own = run["incoming_wrench"][row][body]
        wrench[above] -= moved(own, place[body] - place[above])
    worst = max(float(np.abs(wrench[body] - need(model, data, body, place[body])).max()) for body in bodies(model))
    scale = max(1.0, float(np.abs(run["incoming_wrench"][row]).max()), float(np.abs(run["external_wrench"][row]).max()))
    return worst / scale


def driven(model: Any, path: str) -> Any:
    """Ten steps of a model's file, every control at a fifth of its range (0.2 where it has none).

    Raises ArtsimError of a model that is refused.
    """
    options: dict[str, Any] = {}
    if model.nu:
        low, high = np.array(model.actuator_ctrlrange).T
        options["control"] = np.where(model.actuator_ctrllimited, low + 0.2 * (high - low), 0.2)
    return artsim.simulate(artsim.load(path), steps=10, record=[*RECORD, "contacts"], **options)


def bodies(model: Any) -> range:
    """All but the world."""
    return range(1, model.nbody)


def moved(wrench: Array, arm: Array) -> Array:
    """The same wrench about another point: `arm` goes from there to where it was."""
    return np.concatenate([wrench[:3], wrench[3:] + np.cross(arm, wrench[:3])])


def need(model: Any, data: Any, body: int, about: Array) -> Array:
    """The rate of a body's momentum, less its weight: force and moment about a point, world axes."""
    spatial = np.zeros(6)
    mujoco.mj_objectAcceleration(model, data, mujoco.mjtObj.mjOBJ_BODY, body, spatial, 0)  # gravity is in it
    turning, force = spatial[:3].copy(), model.body_mass[body] * spatial[3:]
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, body, spatial, 0)
    spin = spatial[:3]
    axes = data.ximat[body].reshape(3, 3)
    inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
    torque = inertia @ turning + np.cross(spin, inertia @ spin)
    return moved(np.concatenate([force, torque]), data.xipos[body] - about)
