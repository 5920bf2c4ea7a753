"""Export, the request to the writer of a format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from artsim.io.readers.recording import Recording
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError

if TYPE_CHECKING:
    from artsim.io.viewer.motion import Motion


@dataclass(frozen=True)
class Look:
    """The look of a video: the direction from which it is seen, its background, a floor, the link that it follows."""

    azimuth: float = -39.0  # of the camera about z, seen from the middle, from x [deg]
    elevation: float = 20.0  # above the horizon [deg]
    distance: float | None = None  # [m]; None: so that all of the run is in sight
    background: str = ""  # a name or #RRGGBB; "": a pale sky
    floor: bool = False  # drawn also without ground
    follow: str = ""  # link with which the camera moves


@dataclass(frozen=True)
class Export:
    """The request to a writer."""

    recording: Recording
    output: Path
    robot: Callable[[], Articulation]  # the stored robot, with its meshes if available
    fps: float = 30.0  # frame rate [1/s]
    forces: tuple[str, ...] | None = None  # kinds of motion.FORCES that are arrows; None: contacts where recorded
    force_scale: float = 1.0  # of the arrows' usual length
    look: Look = Look()
    written: list[tuple[Path, Path]] | None = None  # of exports that are put in their places together

    def kinds_of_forces(self, motion: Motion) -> tuple[str, ...]:
        """The kinds of forces to draw. Raises UsageError for one that is not in the file."""
        if self.forces is None:
            return tuple(kind for kind in ("contacts",) if not motion.lacks(kind))
        for kind in self.forces:
            if motion.lacks(kind):
                raise UsageError(f"{self.recording.path}: holds {motion.lacks(kind)}")
        return self.forces
