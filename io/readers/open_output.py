"""Any output of artsim, opened as the class of its kind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from artsim.io.readers.batch_recording import BatchRecording
from artsim.io.readers.ik_recording import IkRecording
from artsim.io.readers.output import opened
from artsim.io.readers.recording import Recording
from artsim.io.readers.rollout_recording import RolloutRecording

if TYPE_CHECKING:
    import h5py


def open_output(path: str | os.PathLike[str]) -> Recording | BatchRecording | IkRecording | RolloutRecording:
    """Open any output of artsim through the gate. Raises the errors of open_recording."""

    def kind(
        where: Path, file: h5py.File, written: bool
    ) -> Recording | BatchRecording | IkRecording | RolloutRecording:
        if "rollout" in file:
            return RolloutRecording(where, file)
        if "ik" in file:
            return IkRecording(where, file)
        return BatchRecording(where, file) if "batch" in file else Recording(where, file, written)

    return opened(Path(path), kind)
