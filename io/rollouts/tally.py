"""Tally: what is told of the samples of a rollout, counted block by block, or from a file of some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from artsim.io.format import schema
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.runs.effort_tally import at_largest
from artsim.io.runs.starts import DEEP
from artsim.sim.foundation.records import Array
from artsim.sim.run_data.run_records import HELD_DEPTH, HELD_STEPS
from artsim.sim.runs.account import SUNK_FAR
from artsim.sim.runs.plan import Plan

NAMED = 5  # number of stopped samples that are named
_BLOCK_SAMPLES = 1 << 16
UNKNOWN = -2  # a link, in what a file tells of its samples


class Tally(NamedTuple):
    """Counts over the samples of a rollout, and the sample with most of each; samples are counted from 0 over all."""

    steps: int = 0  # taken now, of all samples, without those after a sample's end
    solved_alone: int = 0  # steps of samples whose rows the solver of a single robot solved
    stopped: int = 0  # number of samples that stopped early
    stops: tuple[tuple[int, str], ...] = ()  # the first of these, each with the reason in words
    inside: int = 0  # number of samples that start with something more than 1 mm inside something
    deepest: tuple[int, float] = (0, 0.0)  # the sample that is deepest inside at its start, and the depth [m]
    sunk: int = 0  # number of samples in which a hard contact got deeper by more than SUNK_FAR of a shape's thickness
    # the sample that did most; share, depth [m] and the numbers of two links
    most_sunk: tuple[int, float, float, int, int] = (0, 0.0, 0.0, -1, -1)
    unsolved: int = 0  # number of samples in which the solver left rows unsolved
    most_unsolved: tuple[int, float, int] = (0, 0.0, 0)  # the sample; residual [rad/s or m/s], steps
    held: int = 0  # number of samples in which hard loops held contacts inside, which were then left out
    most_held: tuple[int, tuple[float, ...]] = (0, (0.0,) * 5)  # the sample with the deepest of these; see Step.held
    ended: int = 0  # number of samples that ended where they were to
    contacts: int = 0  # number of recorded contacts
    # dofs whose motors gave their largest force in recorded rows: the dof, number of rows, number of samples
    at_effort: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def together(cls, parts: Iterable[Tally]) -> Tally:
        """Those of parts that have no sample in common. The order of the parts does not matter."""
        whole = cls()
        for part in parts:
            whole = cls(
                steps=whole.steps + part.steps,
                solved_alone=whole.solved_alone + part.solved_alone,
                stopped=whole.stopped + part.stopped,
                stops=tuple(sorted((*whole.stops, *part.stops))[:NAMED]),
                inside=whole.inside + part.inside,
                deepest=_most(whole.deepest, part.deepest, 1),
                sunk=whole.sunk + part.sunk,
                most_sunk=_most(whole.most_sunk, part.most_sunk, 1),
                unsolved=whole.unsolved + part.unsolved,
                most_unsolved=_most(whole.most_unsolved, part.most_unsolved, 1),
                held=whole.held + part.held,
                ended=whole.ended + part.ended,
                contacts=whole.contacts + part.contacts,
                at_effort=_added(whole.at_effort, part.at_effort),
                most_held=max(whole.most_held, part.most_held, key=lambda one: (one[1][HELD_DEPTH], -one[0])),
            )
        return whole

    @classmethod
    def from_plain(cls, content: Any) -> Tally:
        """The tally of plain data: itself as JSON gives it back."""
        plain: Any = cls(*content)
        named = {name: tuple(getattr(plain, name)) for name in ("deepest", "most_sunk", "most_unsolved")}
        stops = tuple((int(sample), str(text)) for sample, text in plain.stops)
        held = plain.most_held[0], tuple(plain.most_held[1])
        made: Tally = plain._replace(**named, stops=stops, most_held=held, at_effort=_added(plain.at_effort, ()))
        return made

    @classmethod
    def of_block(cls, first: int, block: Mapping[str, Array], steps: int) -> Tally:
        """The tally of samples from `first` on, from the arrays of Results; `steps`: of a sample that goes on."""
        depth, sunk, held, stopped = block["start_depth"], block["sunk"], block["held"], block["stopped"]
        unsolved, residual, ended = block["unsolved"], block["residual"], block["ended"]
        deep, far, left = int(depth.argmax()), int(sunk[:, 0].argmax()), int(residual.argmax())
        most = int(held[:, HELD_DEPTH].argmax())
        share, depth_there, *links = sunk[far].tolist()
        return cls(
            steps=int(np.where(stopped >= 0, stopped, np.where(ended >= 0, ended, steps)).sum()),
            stopped=int(np.count_nonzero(stopped >= 0)),
            inside=int(np.count_nonzero(depth > DEEP)),
            deepest=(first + deep, float(depth[deep])),
            sunk=int(np.count_nonzero(sunk[:, 0] > SUNK_FAR)),
            most_sunk=(first + far, share, depth_there, int(links[0]), int(links[1])),
            unsolved=int(np.count_nonzero(unsolved)),
            most_unsolved=(first + left, float(residual[left]), int(unsolved[left])),
            held=int(np.count_nonzero(held[:, HELD_STEPS])),
            most_held=(first + most, tuple(held[most].tolist())),
            ended=int(np.count_nonzero(ended >= 0)),
        )

    @classmethod
    def of_file(cls, stored: RolloutRecording) -> Tally:
        """The tally of the samples of a file, none of whose steps are taken now: without links and reasons."""
        found = cls.together(
            _of_rows(stored, start, min(start + _BLOCK_SAMPLES, stored.samples))
            for start in range(0, stored.samples, _BLOCK_SAMPLES)
        )
        return found._replace(contacts=stored.contact_total)


def _of_rows(stored: RolloutRecording, start: int, stop: int) -> Tally:
    """The tally of samples start … stop of a file."""

    def column(name: str) -> Array:
        return stored.read(name, start, stop) if name in stored else np.zeros(stop - start)

    first, count = stored.first_row + start, stop - start
    held, sunk = np.full((count, 5), float(UNKNOWN)), np.full((count, 4), float(UNKNOWN))
    held[:, HELD_STEPS], held[:, HELD_DEPTH] = column("held_steps"), column("held_depth")
    sunk[:, 0], sunk[:, 1] = column("sunk_share"), column("sunk")
    early = np.isin(column("status"), (schema.NON_FINITE, schema.INTERRUPTED))
    block = {
        "start_depth": column("start_depth"),
        "sunk": sunk,
        "held": held,
        "stopped": np.where(early, 0, -1),
        "unsolved": column("unsolved_steps"),
        "residual": column("worst_residual"),
        "ended": np.where(column("status") == schema.ENDED, 0, -1),
    }
    stops = tuple((first + int(k), f"sample {first + k} stopped early") for k in np.flatnonzero(early)[:NAMED])
    return Tally.of_block(first, block, 0)._replace(steps=0, stops=stops)


def _added(a: Iterable[Sequence[int]], b: Iterable[Sequence[int]]) -> tuple[tuple[int, int, int], ...]:
    """The sums of rows and of samples by dof."""
    sums: dict[int, tuple[int, int]] = {}
    for dof, rows, samples in (*a, *b):
        before = sums.get(dof, (0, 0))
        sums[dof] = before[0] + rows, before[1] + samples
    return tuple((dof, *counts) for dof, counts in sorted(sums.items()))


def efforts_of(plan: Plan, block: Mapping[str, Array]) -> tuple[tuple[int, int, int], ...]:
    """Tally.at_effort of the samples of a block, from their recorded rows (samples, rows, nv), NaN after their ends."""
    reached = at_largest(plan, block)
    if reached is None:
        return ()
    rows, samples = reached.sum(axis=(0, 1)), reached.any(axis=1).sum(axis=0)
    return tuple((int(k), int(rows[k]), int(samples[k])) for k in np.flatnonzero(rows))


def _most(a: Any, b: Any, entry: int) -> Any:
    """The one of two with the larger entry, or the lower sample."""
    return max(a, b, key=lambda one: (one[entry], -one[0]))
