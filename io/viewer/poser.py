"""Poses a robot in the viewer with a slider per independent coordinate; couplings and limits are respected."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artsim.io.viewer.drawables import pieces_of
from artsim.io.viewer.player import FRAMES, plain
from artsim.io.viewer.stage import RobotStage, add_grid, look_at
from artsim.sim.articulation.description import Articulation, Joint
from artsim.sim.foundation.rotations import quaternion, rotation_matrix, turn_about_z
from artsim.sim.quantities.coordinates import independent_coordinates
from artsim.sim.quantities.robot import Robot

if TYPE_CHECKING:
    import viser

Real = NDArray[np.float64]

UNLIMITED = {"prismatic": 1.0, "planar": 2.0, "free": 2.0}  # half range of a slider without limits [m]
TURN = float(np.pi)  # half range of an angle without limits [rad]
SAMPLES = 201  # samples of a slider's range at which the followers' limits are tested
INSIDE = 1e-9  # tolerance of a follower's limit


class Handle(NamedTuple):
    """The target of a slider: a coordinate, or an angle (`turn` 0, 1, 2: roll, pitch, yaw) of the quaternion there."""

    label: str
    coordinate: int
    lower: float
    upper: float
    turn: int = -1


class Poser:
    """Sliders and the robot that follows them. Only `advance` changes the scene."""

    def __init__(self, server: viser.ViserServer, robot: Robot) -> None:
        self.notes: list[str] = []
        self._server, self._robot = server, robot
        self._handles = list(handles(robot))
        self._independent = independent_coordinates(robot.model)
        self._start = start_of(robot, self._handles)
        self._base = self._start.copy()
        self._wanted: Real | None = None
        self._stage = self._build()
        self._sliders = self._add_sliders()
        self._followers = self._add_followers()
        self._add_rest()
        self._shown: Any = None

    def _build(self) -> RobotStage:
        robot = self._robot
        stage = RobotStage(self._server, "robot", robot.links, pieces_of(robot.articulation, self.notes), np.zeros(3))
        first = robot.to_maximal(self._start)
        poses = first.position, first.quaternion
        stage.build(*poses, layers=["visual", "collision", "frames"])
        extent = stage.extent(*poses)
        look_at(self._server, [extent])
        add_grid(self._server, 0.0, extent.size, solid=False)
        return stage

    # the panel

    def _add_sliders(self) -> list[Any]:
        gui = self._server.gui
        sliders = []
        with gui.add_folder("Joints"):
            for handle in self._handles:
                value = 0.0 if handle.turn >= 0 else float(self._start[handle.coordinate])
                step = (handle.upper - handle.lower) / 2000
                sliders.append(gui.add_slider(handle.label, handle.lower, handle.upper, step, value))
        return sliders

    def _add_followers(self) -> dict[int, Any]:
        """Add read-only numbers for the coordinates that couplings determine."""
        chosen = set(self._independent.tolist())
        coordinates = [k for k in range(self._robot.nq) if k not in chosen]
        gui, shown = self._server.gui, {}
        if coordinates:
            with gui.add_folder("Followers"):
                for k in coordinates:
                    name = self._robot.coords[k]
                    shown[k] = gui.add_number(name, float(self._start[k]), disabled=True, step=1e-6)
        return shown

    def _add_rest(self) -> None:
        gui, articulation = self._server.gui, self._robot.articulation
        with gui.add_folder("Pose"):
            keys = {key.name: np.array(key.qpos) for key in articulation.keyframes if len(key.qpos) == self._robot.nq}
            names = gui.add_dropdown("keyframe", ("(start)", *keys)) if keys else None
            back = gui.add_button("start pose")
        with gui.add_folder("Show"):
            layers = ("visual", "collision", "frames")
            self._layers = {name: gui.add_checkbox(name, name == "visual") for name in layers}
        back.on_click(lambda _: self._take(self._start))
        if names is not None:
            names.on_update(lambda _: self._take(keys.get(str(names.value), self._start)))
        loops = sum(loop.active for loop in articulation.loops)
        if loops:
            self.notes.append(f"{loops} loop joints are left open: sliders move the tree")
        for note in self.notes:
            gui.add_markdown(f"**Note:** {plain(note)}")

    def _take(self, q: Real) -> None:
        """Request a pose, which `advance` applies in its own thread."""
        self._wanted = q

    # moving

    def pose(self) -> Real:
        """Coordinates (nq,) set by the sliders, with followers computed from their leaders."""
        q = self._base.copy()
        for handle, slider in zip(self._handles, self._sliders, strict=True):
            if handle.turn < 0:
                q[handle.coordinate] = _within(float(slider.value), handle)
        for first, turns in self._turns().items():
            q[first : first + 4] = quaternion(rotation_matrix(tuple(self._base[first : first + 4])) @ turned(turns))
        full, _ = self._robot.to_full(q[self._independent])
        return full

    def _turns(self) -> dict[int, list[float]]:
        """Roll, pitch and yaw of every quaternion, by the index of its first entry."""
        found: dict[int, list[float]] = {}
        for handle, slider in zip(self._handles, self._sliders, strict=True):
            if handle.turn >= 0:
                found.setdefault(handle.coordinate, []).append(_within(float(slider.value), handle))
        return found

    def advance(self) -> None:
        """Show the pose and the layers that the panel asks for."""
        if self._wanted is not None:
            self._base, self._wanted = self._wanted, None
            for handle, slider in zip(self._handles, self._sliders, strict=True):
                at = 0.0 if handle.turn >= 0 else float(self._base[handle.coordinate])
                slider.value = min(max(at, handle.lower), handle.upper)
        visible = {name: bool(box.value) for name, box in self._layers.items()}
        q = self.pose()
        state = (q.tolist(), visible)
        if state == self._shown:
            return
        self._shown = state
        states = self._robot.to_maximal(q)
        with self._server.atomic():
            self._stage.show(visible)
            self._stage.pose(states.position, states.quaternion)
            for k, number in self._followers.items():
                number.value = round(float(q[k]), 6)

    def run(self, stop: Callable[[], bool]) -> None:
        """Follow the sliders until `stop` returns True."""
        while not stop():
            time.sleep(1.0 / FRAMES)
            self.advance()


def _within(value: float, handle: Handle) -> float:
    """A value sent by a page, clamped to the slider's range; the lower bound for NaN."""
    return min(value, handle.upper) if value > handle.lower else handle.lower


def viewed(articulation: Articulation) -> Robot:
    """The robot with exact couplings, even where the file makes them soft, unless they contradict each other."""
    from artsim.sim.foundation.errors import ModelError

    try:
        return Robot.of(articulation, coupling="exact")
    except ModelError:
        return Robot.of(articulation)


def turned(turns: list[float]) -> Real:
    """The rotation (3, 3) by roll, pitch, yaw [rad] about the fixed axes x, y, z."""
    about_z = [turn_about_z(angle) for angle in turns]
    cycle = np.roll(np.eye(3), 1, axis=0)  # x to y, y to z, z to x
    roll, pitch, yaw = cycle @ about_z[0] @ cycle.T, cycle.T @ about_z[1] @ cycle, about_z[2]
    return yaw @ pitch @ roll


# ------------------------------------------------------------------ coordinates with sliders


def handles(robot: Robot) -> Iterator[Handle]:
    """One handle per independent coordinate that is not locked; three angles per quaternion."""
    independent = set(independent_coordinates(robot.model).tolist())
    for joint in robot.articulation.joints:
        if joint.name not in robot.labels.joint_coords:
            continue
        where = robot.labels.joint_coords[joint.name]
        coordinates = list(range(robot.nq))[where]
        if not coordinates or coordinates[0] not in independent:
            continue
        yield from _of_joint(robot, joint, coordinates)


def _of_joint(robot: Robot, joint: Joint, coordinates: list[int]) -> Iterator[Handle]:
    if joint.kind in ("free", "ball"):
        half = UNLIMITED["free"]
        for k in coordinates[:-4]:
            yield Handle(robot.coords[k], k, robot.reference[k] - half, robot.reference[k] + half)
        for turn, name in enumerate(("roll", "pitch", "yaw")):
            yield Handle(f"{joint.name}.{name}", coordinates[-4], -TURN, TURN, turn)
        return
    if joint.kind == "planar":
        for n, k in enumerate(coordinates):
            half = TURN if n == 2 else UNLIMITED["planar"]
            yield Handle(robot.coords[k], k, -half, half)
        return
    lower, upper = allowed(robot, joint, coordinates[0])
    if lower < upper:
        yield Handle(robot.coords[coordinates[0]], coordinates[0], lower, upper)


def allowed(robot: Robot, joint: Joint, coordinate: int) -> tuple[float, float]:
    """The range of a joint that respects its own limits and those of its followers."""
    half = UNLIMITED.get(joint.kind, TURN)
    reference = float(robot.reference[coordinate])
    lower = joint.lower if joint.lower is not None else min(reference, joint.upper or 0.0) - half
    upper = joint.upper if joint.upper is not None else max(reference, lower) + half
    leaders = {int(robot.model.dof_coord[k]) for k in robot.model.coupling_leader if k >= 0}
    if coordinate not in leaders:
        return lower, upper
    low, high = bounds_of(robot)
    independent = independent_coordinates(robot.model)
    place = int(np.flatnonzero(independent == coordinate)[0])
    y = robot.reference[independent].copy()

    def full(value: float) -> Real:
        y[place] = value
        return robot.to_full(y)[0]

    moved = (full(lower) != full(upper)) | (full(lower) != full((lower + upper) / 2))

    def fits(value: float) -> bool:
        q = full(value)
        return bool(np.all((q >= low - INSIDE) & (q <= high + INSIDE) | ~moved))

    return narrowed(fits, lower, upper, min(max(reference, lower), upper))


def narrowed(fits: Callable[[float], bool], lower: float, upper: float, start: float) -> tuple[float, float]:
    """The interval around `start`, or around the nearest value that fits, in which all values fit; if none fits, or
    all do, the whole range."""
    values = np.unique([start, *np.linspace(lower, upper, SAMPLES)])
    good = np.array([fits(float(value)) for value in values])
    if good.all() or not good.any():
        return lower, upper
    at = int(np.argmin(np.where(good, np.abs(values - start), np.inf)))
    ends = []
    for towards in (-1, 1):
        k = at
        while 0 <= k + towards < len(values) and good[k + towards]:
            k += towards
        inside = float(values[k])
        if 0 <= k + towards < len(values):
            outside = float(values[k + towards])
            for _ in range(50):
                middle = (inside + outside) / 2
                inside, outside = (middle, outside) if fits(middle) else (inside, middle)
        ends.append(inside)
    return ends[0], ends[1]


def bounds_of(robot: Robot) -> tuple[Real, Real]:
    """Lower and upper limits (nq,) of all coordinates; infinite where there are none."""
    lower, upper = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)
    for joint in robot.articulation.joints:
        where = robot.labels.joint_coords.get(joint.name)
        if where is not None and joint.kind in ("revolute", "continuous", "prismatic"):
            lower[where] = -np.inf if joint.lower is None else joint.lower
            upper[where] = np.inf if joint.upper is None else joint.upper
    return lower, upper


def start_of(robot: Robot, found: list[Handle]) -> Real:
    """The file's pose (nq,), moved into the ranges of the sliders."""
    q = robot.reference.copy()
    for handle in found:
        if handle.turn < 0:
            q[handle.coordinate] = min(max(float(q[handle.coordinate]), handle.lower), handle.upper)
    full, _ = robot.to_full(q[independent_coordinates(robot.model)])
    return full
