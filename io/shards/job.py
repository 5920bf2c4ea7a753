"""Job, the rows of a batch or the samples of a rollout as shards see them, and the outcome of computing them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, Self

from artsim.io.output_file.batch_file import Content
from artsim.io.readers.batch_recording import BatchRecording
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.sim.foundation.dataclass import dataclass


class Told(Protocol):
    """What is told of rows beside their number, as a tuple of plain data."""

    @property
    def contacts(self) -> int:
        """Number of contacts that are recorded in these rows."""

    @classmethod
    def together(cls, parts: Iterable[Self]) -> Self:
        """What is told of parts that have no row in common."""

    @classmethod
    def from_plain(cls, content: Any) -> Self:
        """What JSON gives back of it."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of computing rows."""

    output: Path
    rows: int  # computed or kept
    seconds: float  # for reading, computing and writing, without loading and compiling
    bytes: int  # size of the file
    failed: int = 0  # rows that could not be computed, samples that stopped early
    failed_rows: tuple[int, ...] = ()  # the first of them, counted from 0 over all rows of the job
    complete: bool = True  # False: stopped
    kept: int = 0  # number of rows that existed before
    notes: tuple[str, ...] = ()  # further messages
    told: Any = None  # of Job.told
    unfit: str = ""  # why the index of shards that are all there is not written


class Job(Protocol):
    """Rows, or samples, that are computed in any parts into files, and always the same bytes."""

    @property
    def recording(self) -> type[BatchRecording] | type[RolloutRecording]:
        """The class that reads its files."""

    @property
    def told(self) -> type[Told]:
        """What is told of rows."""

    @property
    def successes(self) -> tuple[int, ...]:
        """The status of rows without a failure."""

    @property
    def options(self) -> Mapping[str, str]:
        """The facts that determine the bytes, with the option that sets each, in the order in which they are told."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that determines the bytes of the rows, as plain data."""

    @property
    def digest(self) -> str:
        """SHA-256 of the facts; jobs with equal digests have equal rows."""

    def for_workers(self) -> str:
        """The configuration from which another process makes the job. Raises UsageError if it reads a stream."""

    def index_content(self, provenance: Mapping[str, str | int | float], shards: Sequence[Path]) -> Content:
        """The content of the index of all rows, with the digest; `shards`: the files in which they are, without those
        of no rows."""

    def compute(self, first: int, last: int, output: Path, **options: Any) -> Outcome:
        """Compute rows first … last (exclusive) into one complete file, or none.

        `options`: threads, force, signed, provenance, progress, stop, and those of the kind of job.
        """

    def told_of(self, stored: Any) -> Any:
        """What is told of the rows of a finished file; `stored`: of `recording`."""

    def warm(self) -> None:
        """Load the machine code that computes rows."""


def canonical(facts: Mapping[str, Any]) -> str:
    """Plain data as the one text that it has."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def digest_of_model(text: str) -> str:
    """SHA-256 of a model's text; of JSON, the text of one with loops, without where its files are, which may differ
    between hosts."""
    if text.startswith("{"):
        content = json.loads(text)
        for model in content["models"]:
            for key in ("file", "srdf_file", "loops_file"):
                model.pop(key, None)
        text = canonical(content)
    return sha256(text.encode()).hexdigest()
