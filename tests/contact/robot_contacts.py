"""Robots in contact, for tests and benchmarks: what a run's contacts say, scenes, the same run by MuJoCo."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

import artsim
from artsim.sim.equipment.equip import labels_of
from artsim.sim.runs.controls import Controls
from tests.simulation import ROBOTS, Array

G = np.array([0.0, 0.0, -9.81])
RECORD = ("qpos", "qvel", "qacc", "tau_contact", "link_position", "link_quaternion", "com", "energy", "contacts")
RECORD = (*RECORD, "solver_residual")

# ------------------------------------------------------------------ reading a run


def forces_on(recording: Any, *links: str) -> Array:
    """What the table of contacts says that others do to these links together (rows, 3) [N], world axes."""
    c = recording.contacts
    frame = np.stack([c["normal"], c["tangent"], np.cross(c["normal"], c["tangent"])], axis=1)
    force = np.einsum("nkx,nk->nx", frame, c["force"])
    row = np.repeat(np.arange(len(recording["qpos"])), c["contact_count"].astype(int))
    names = recording.labels.touching_link
    mine = [k for k, name in enumerate(names) if name in links]
    total = np.zeros((len(recording["qpos"]), 3))
    for side, sign in (("link_a", -1), ("link_b", 1)):
        here = np.isin(c[side], mine)
        np.add.at(total, row[here], sign * force[here])
    return total


def carried(recording: Any) -> Array:
    """What the world does to all links together (rows, 3) [N]."""
    return forces_on(recording, *(name for name in recording.labels.link if name != "world"))


def yaw(quaternions: Array) -> Array:
    """Heading of (w, x, y, z) [rad]."""
    w, x, y, z = np.moveaxis(quaternions, -1, 0)
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def turned_back(quaternions: Array, vectors: Array) -> Array:
    """World vectors (rows, 3) in the axes of frames (rows, 4)."""
    w, v = quaternions[:, :1], -quaternions[:, 1:]
    return vectors + 2 * np.cross(v, np.cross(v, vectors) + w * vectors)


def growth(energy: Array) -> float:
    """How far a total energy (rows,) ever rises above what it was before [J]."""
    return float(np.max(energy - np.minimum.accumulate(energy)))


def check_forces(contacts: Any, friction: float = 1.0) -> None:
    """In every recorded step contacts push, and friction stays within its cone."""
    force = contacts["force"]
    small = 1e-6 + 2e-8 * float(np.abs(force).max())
    assert force[:, 0].min() >= -small
    assert (np.hypot(force[:, 1], force[:, 2]) - friction * force[:, 0]).max() <= small


# ------------------------------------------------------------------ standing


class Standing(NamedTuple):
    """How still something stands, after it has settled."""

    drift: float  # of the base [m/s]
    turning: float  # of its heading [rad/s]
    sinking: float  # of the base's height [m/s]
    fastest: float  # |qvel| of any dof [rad/s or m/s]


def standing(times: Array, poses: Array, velocities: Array, after: float) -> Standing:
    """poses: (rows, 7) of the free base."""
    rows = times >= after
    time = times[rows][-1] - times[rows][0]
    moved = (poses[rows][-1] - poses[rows][0])[:3]
    heading = np.unwrap(yaw(poses[rows][:, 3:7]))
    turned = heading[-1] - heading[0]
    return Standing(
        float(np.hypot(*moved[:2]) / time),
        float(abs(turned) / time),
        float(abs(moved[2]) / time),
        float(np.abs(velocities[rows]).max()),
    )


STANCE = {"hip": 0.8, "knee": -1.6}


def quadruped_options() -> dict[str, Any]:
    """The quadruped of robots/ a hand above the ground, in the pose that its drives hold."""
    names = [f"{end}_{side}" for end in ("front", "rear") for side in ("left", "right")]
    pose = {f"{leg}_{joint}": angle for leg in names for joint, angle in STANCE.items()}
    return {
        "ground": True,
        "stiffness": 300.0,
        "damping": 10.0,
        "target": pose,
        "q0": {"root.z": 0.31, **pose},
    }


def quadruped() -> artsim.Robot:
    return artsim.load(ROBOTS / "quadruped.urdf", base="floating")


# ------------------------------------------------------------------ lifting

LIFT = """<mujoco model="lift"><option timestep="0.002" cone="elliptic" impratio="10"/>
  <asset><model name="gripper" file="2f85.xml"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="carrier" pos="0 0 .185" quat="0 1 0 0">
      <joint name="lift" type="slide" axis="0 0 -1"/>
      <inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>
      <attach model="gripper" body="base_mount" prefix="g_"/>
    </body>
    <body name="box" pos="0 0 .02"><freejoint name="box"/>
      <geom name="box" type="box" size=".02 .02 .02" mass=".5"/></body>
  </worldbody>
  <actuator><position name="lift" joint="lift" kp="20000" kv="1000"/></actuator>
</mujoco>"""
SOFT_PADS = 'solimp="0.95 0.99 0.001" solref="0.004 1"'

JAWS = """<mujoco model="jaws"><option timestep="0.002" cone="elliptic" impratio="10"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="carrier" pos="0 0 .15">
      <joint name="lift" type="slide" axis="0 0 1"/>
      <geom type="box" size=".08 .03 .02" mass="1"/>
      <body name="left" pos=".05 0 -.1"><joint name="left" type="slide" axis="-1 0 0" range="-.01 .05" damping="5"/>
        <geom name="left" type="box" size=".01 .02 .05" mass=".2" friction=".7"/></body>
      <body name="right" pos="-.05 0 -.1"><joint name="right" type="slide" axis="1 0 0" range="-.01 .05" damping="5"/>
        <geom name="right" type="box" size=".01 .02 .05" mass=".2" friction=".7"/></body>
    </body>
    <body name="box" pos="0 0 .02"><freejoint name="box"/>
      <geom name="box" type="box" size=".02 .02 .02" mass=".5" friction=".5"/></body>
  </worldbody>
  <equality><joint joint1="left" joint2="right"/></equality>
  <actuator>
    <motor name="grip" joint="right" ctrlrange="0 1" gear="40"/>
    <position name="lift" joint="lift" kp="20000" kv="1000"/>
  </actuator>
</mujoco>"""
BOX_MASS = 0.5
HEIGHT = 0.2  # [m] it is lifted by


def robotiq(corpus: Path, folder: Path, *, hard: bool) -> Path:
    """The public 2F-85 on a slide above a box; hard: without what its file says of soft pads."""
    source = corpus / "files" / "menagerie-fork" / "robotiq_2f85"
    shutil.copytree(source, folder, dirs_exist_ok=True)
    path = folder / "2f85.xml"
    text = path.read_text()
    path.chmod(0o644)
    if hard:
        assert text.count(SOFT_PADS) == 2
        text = text.replace(SOFT_PADS, "")
    path.write_text(text)
    (folder / "lift.xml").write_text(LIFT)
    return folder / "lift.xml"


def lifting(grip: float, hold: float, dt: float = 0.002) -> tuple[Array, Array, int]:
    """Close for a second, lift for another, hold: first steps and controls (rows, 2: grip, lift); steps."""
    every = 10
    first = np.concatenate([[0], np.arange(round(1 / dt), round(2 / dt) + 1, every)])
    rise = np.clip((first * dt - 1.0), 0.0, 1.0)
    height = HEIGHT * rise * rise * (3 - 2 * rise)
    return first, np.stack([np.full(len(first), grip), height], axis=1), round((2 + hold) / dt)


def run_lift(path: Path | artsim.Robot, grip: float, hold: float) -> Any:
    """The lift, simulated."""
    robot = path if isinstance(path, artsim.Robot) else artsim.load(path)
    first, control, steps = lifting(grip, hold)
    rows = [artsim_order(robot, values) for values in control]
    still = np.zeros((len(first), robot.nv))
    controls = Controls(first.astype(np.int64), still, still, still, np.array(rows))
    return artsim.simulate(robot, steps=steps, controls=controls, record=RECORD)


def artsim_order(robot: artsim.Robot, values: Array) -> Array:
    """Grip and lift in the order of the robot's actuators."""
    names = labels_of(robot.articulation).controls
    return np.array([values[1] if name == "lift" else values[0] for name in names])


def slip(box: Array, pads: Array, quaternions: Array, times: Array, after: float) -> float:
    """How fast the box moves in a pad's axes [m/s], all of it: from `after` to the end."""
    rows = times >= after
    held = turned_back(quaternions[rows], box[rows] - pads[rows])
    return float(np.linalg.norm(held[-1] - held[0]) / (times[rows][-1] - times[rows][0]))


def mujoco_lift(path: str, pad: str, grip: float, hold: float, text: str = "") -> tuple[Array, Array, Array, Array]:
    """The same by MuJoCo: times, positions of the box and of a pad, orientations of the pad."""
    model = mujoco.MjModel.from_xml_string(text) if text else mujoco.MjModel.from_xml_path(path)
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    data = mujoco.MjData(model)
    first, control, steps = lifting(grip, hold)
    names = [model.actuator(k).name for k in range(model.nu)]
    boxes, pads, turns = np.zeros((steps, 3)), np.zeros((steps, 3)), np.zeros((steps, 4))
    for step in range(steps):
        at = control[np.searchsorted(first, step, side="right") - 1]
        data.ctrl[:] = [at[1] if name == "lift" else at[0] for name in names]
        mujoco.mj_step(model, data)
        boxes[step], pads[step], turns[step] = data.body("box").xpos, data.body(pad).xpos, data.body(pad).xquat
    return np.arange(steps) * model.opt.timestep, boxes, pads, turns


# ------------------------------------------------------------------ falling

# what its file makes soft: its skin, and limits of joints, springs that give their energy back
HUMANOID_SOFT = ('solref="0.015" solimp="0.9 0.99 0.003"', 'solimplimit="0 0.99 0.01"')


def hard_humanoid(corpus: Path, folder: Path) -> Path:
    """MuJoCo's humanoid without what its file says of soft skin and soft limits."""
    text = (corpus.parent / "peers" / "bench" / "models" / "step_humanoid.xml").read_text()
    for soft in HUMANOID_SOFT:
        assert text.count(soft) == 1
        text = text.replace(soft, "")
    path = folder / "humanoid.xml"
    path.write_text(text)
    return path


def thrown(robot: artsim.Robot, limits: dict[str, tuple[float, float]], seed: int) -> dict[str, Any]:
    """Options of a run that begins 1.2 m up, turned at random, moving, joints anywhere within their limits."""
    rng = np.random.default_rng(seed)
    free = [name for name in robot.independent_dofs if name in limits]
    start = {name: float(rng.uniform(max(limits[name][0], -2), min(limits[name][1], 2))) for name in free}
    quaternion = rng.normal(size=4)
    quaternion /= np.linalg.norm(quaternion)
    root = [name for name in robot.coords if name.startswith("root")]
    start |= dict(zip(root, map(float, [0, 0, 1.2, *quaternion]), strict=True))
    speeds = {name: float(rng.normal()) for name in [*free, *(dof for dof in robot.dofs if dof.startswith("root"))]}
    return {"ground": True, "q0": start, "v0": speeds}


def total_energy(recording: Any) -> Array:
    """Kinetic plus potential (rows,) [J]."""
    energy: Array = recording["energy"].sum(axis=1)
    return energy


# ------------------------------------------------------------------ sticking


def run_adhesion(corpus: Path, adhesion: float) -> Any:
    """MuJoCo's example: an arm goes down to a box, sticks to it with so much of its 5 N, and goes up."""
    robot = artsim.load(corpus / "files" / "mujoco" / "model" / "adhesion" / "active_adhesion.xml")
    names = labels_of(robot.articulation).controls
    first = np.arange(0, 3000, 10)
    time = first * 0.002
    arm = np.where(time < 2, 0.4, 0.4 - 0.9 * np.minimum((time - 2) / 2, 1))
    control = np.zeros((len(first), len(names)))
    control[:, names.index("arm")] = arm
    control[:, names.index("adhere_arm")] = adhesion * (time > 1)
    still = np.zeros((len(first), robot.nv))
    controls = Controls(first.astype(np.int64), still, still, still, control)
    return artsim.simulate(robot, steps=3000, controls=controls, record=RECORD)
