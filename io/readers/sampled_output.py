"""SampledOutput, the common base of BatchRecording and RolloutRecording: variables are read by samples."""

from __future__ import annotations

from typing import Any, ClassVar

from artsim.io.format.variable import Variable
from artsim.io.gate.values import reading
from artsim.io.readers.labelled_rows import LabelledRows
from artsim.io.readers.output import Output
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import Array


class SampledOutput(Output, LabelledRows):
    """An open output whose variables are in one group, with the samples as their first dimension."""

    group_name: ClassVar[str]
    unlisted: ClassVar[tuple[str, ...]] = ()  # names of the group that can be read but are no variables

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
