"""Limits, friction, damping and drives of a loop joint along and about its free axes, as tendons and actuators.

The coordinate of an axis is the length of a tendon of its own (sim/equipment/loop_axes.py), which has the name of the
loop if the loop has one free axis, else LOOP.AXIS. A drive is an actuator of the same name with the controls
NAME.target and NAME.velocity: force = stiffness (target - coordinate) + damping (velocity - rate), bounded, implicit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from artsim.sim.articulation.description import LOOP_AXES, Actuator, Source, Tendon, TendonPoint
from artsim.sim.foundation.dataclass import dataclass

MODES = ("force", "acceleration")
FREE = {
    "connect": ("rx", "ry", "rz"),
    "weld": (),
    "hinge": ("rz",),
    "slider": ("z",),
    "cylindrical": ("z", "rz"),
    "planar": ("x", "y", "rz"),
}
"""The free axes of loops, by kind, in frame a, whose z axis is the axis of the loop."""


@dataclass(frozen=True, slots=True)
class Drive:
    """A motor towards a target [m or rad] and a velocity [m/s or rad/s], of stiffness [N/m or N m/rad] and damping, or
    of gains that are accelerations [1/s² and 1/s]; `most`: its largest force [N or N m].
    """

    stiffness: float = 0.0
    damping: float = 0.0
    target: float = 0.0
    velocity: float = 0.0
    most: float | None = None
    mode: str = "force"


@dataclass(frozen=True, slots=True)
class Motion:
    """Limits [m or rad], friction [N or N m], damping, a spring that rests at `rest`, and drive along or about a free
    axis; `limit_spring`: stiffness and damping of the limits, None: hard limits.
    """

    lower: float | None = None
    upper: float | None = None
    limit_spring: tuple[float, float] | None = None
    friction: float = 0.0
    damping: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    drive: Drive | None = None

    def flaw(self, axis: str) -> str:
        """The reason why this motion is not possible, and the values allowed; '' for a valid motion."""
        lower = -math.inf if self.lower is None else self.lower
        upper = math.inf if self.upper is None else self.upper
        if lower > upper:
            return f"the lower limit {lower:g} is greater than the upper one {upper:g}"
        given = [x for x in (self.lower, self.upper) if x is not None]
        if axis.startswith("r") and any(abs(x) > math.pi for x in given):
            return f"limits {lower:g} and {upper:g}: want ±pi rad at most, since a loop's angle counts no turns"
        if self.limit_spring is not None and not given:
            return "has a limit's stiffness and no lower or upper"
        return ""


def parts_of(
    name: str, free: Sequence[str], motions: Mapping[str, Motion], source: Source
) -> tuple[list[Tendon], list[Actuator]]:
    """The tendons and actuators of those free axes of a loop that have an entry in `motions`."""
    tendons, actuators = [], []
    for axis in LOOP_AXES:
        if axis not in motions:
            continue
        motion = motions[axis]
        called = name if len(free) == 1 else f"{name}.{axis}"
        tendons.append(
            Tendon(
                called,
                "loop",
                (TendonPoint("loop", name, float(LOOP_AXES.index(axis))),),
                lower=motion.lower,
                upper=motion.upper,
                stiffness=motion.stiffness,
                spring_length=(motion.rest, motion.rest) if motion.stiffness else None,
                damping=motion.damping,
                friction=motion.friction,
                limit_spring=motion.limit_spring,
                source=source,
            )
        )
        if motion.drive is not None:
            actuators.append(actuator_of(called, motion.drive, source))
    return tendons, actuators


def actuator_of(name: str, drive: Drive, source: Source) -> Actuator:
    """A drive as a servo on the tendon of this name."""
    return Actuator(
        name,
        name,
        source=source,
        transmission="tendon",
        gain="pid",
        gain_parameters=(0.0,),
        bias="affine",
        bias_parameters=(0.0, -drive.stiffness, -drive.damping),
        inputs=("target", "velocity"),
        control_ranges=(None, None),
        held_inputs=(drive.target, drive.velocity),
        force_range=None if drive.most is None else (-drive.most, drive.most),
        by_inertia=drive.mode == "acceleration",
    )
