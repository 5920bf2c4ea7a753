"""SampledOutput, the common base of BatchRecording and RolloutRecording: variables are read by samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from artsim.io.format.variable import Variable
from artsim.io.gate.shard_table import read_entries
from artsim.io.gate.values import attributes_of, reading
from artsim.io.readers.labelled_rows import LabelledRows
from artsim.io.readers.output import Output
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array

if TYPE_CHECKING:
    import h5py


class SampledOutput(Output, LabelledRows):
    """An open output whose variables are in one group, with the samples as their first dimension."""

    group_name: ClassVar[str]
    unlisted: ClassVar[tuple[str, ...]] = ()  # names of the group that can be read but are no variables

    def __init__(self, path: Path, file: h5py.File, groups: Sequence[str]) -> None:
        """`file` must have passed the gate. Raises ModelError unless it is this kind of output, with these groups.

        `first_row`, `rows_of_job`: the first of the file's samples, and the number of all, of which a shard has a part.
        `shards` is the table of an index, empty for a file with rows of its own. `digest` identifies the job, if it is
        stored.
        """
        super().__init__(path, file, self.group_name, groups)
        self.facts = attributes_of(file[self.group_name])
        self.first_row = int(self.facts.get("first_row", 0))
        self.rows_of_job = int(self.facts.get("rows_of_job", file[self.group_name]["status"].shape[0]))
        self.digest: str | None = self.facts.get("digest")
        self.shards = read_entries(path, file)

    @property
    def interrupted(self) -> bool:
        """True if samples are missing."""
        return False

    @abstractmethod
    def __len__(self) -> int:
        """Number of samples."""

    @property
    def _bytes(self) -> int:
        """The size of the file, and of its shards."""
        return self.path.stat().st_size + sum(shard.bytes for shard in self.shards)

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __getitem__(self, name: str) -> Array:
        """Every sample of a variable."""
        return self.read(name)

    def read(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Read samples start … stop of a variable. Raises UsageError for a variable that the file lacks."""
        return self.read_stored(name, start, stop)

    def read_stored(self, name: str, start: int = 0, stop: int | None = None) -> Array:
        """Read samples as stored."""
        if name not in (*self.variables, *self.unlisted):
            raise UsageError(f"{self.path}: has no {name!r}{nearest(name, self.variables)}")
        with reading(self.path):
            values: Array = self._file[self.group_name][name][start:stop]
        return values

    def stored_variable(self, name: str) -> Variable:
        """The schema's entry of a variable as stored."""
        return self.variable(name)

    def _variables_told(self) -> dict[str, Any]:
        """The part of `summary` about the variables."""
        group = self._file[self.group_name]
        return {
            name: {
                "dims": list(self.stored_variable(name).dims),
                "shape": list(group[name].shape),
                **self.meaning(name),
            }
            for name in self.variables
        }
