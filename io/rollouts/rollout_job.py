"""RolloutJob, a rollout whose samples can be simulated in parts, each in a file: the job of its shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from artsim import __version__
from artsim.io.format import schema
from artsim.io.output_file.batch_file import Content
from artsim.io.readers.open_output import open_output
from artsim.io.readers.rollout_recording import RolloutRecording
from artsim.io.rollouts.content import content_of
from artsim.io.rollouts.draws import Draws, RolloutConfig
from artsim.io.rollouts.driven import Drive
from artsim.io.rollouts.given import NOTHING, Given
from artsim.io.rollouts.roll import roll
from artsim.io.rollouts.sample_inputs import SampleControls
from artsim.io.rollouts.tally import Tally
from artsim.io.runs.prepare import held_controls
from artsim.io.runs.progress import warm
from artsim.io.shards.job import Outcome, canonical, digest_of_model
from artsim.sim.foundation.errors import ModelError, StoppedError
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.packable import kernels
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.settings import SETTINGS


class RolloutJob:
    """The samples of a rollout, whole or in parts.

    Args:
        controls: one for all samples, or one for each; empty: those of the plan.
        given: starts and properties that are not drawn.
        drive: of samples with a policy; None: what the configuration asks for.
        recipe: gives the text from which another process makes the job.
        keep: whether an interrupted file keeps the samples that are done; shards are complete or not there.
        strict: whether a sample that stops early ends the work.
    """

    recording, told, successes = RolloutRecording, Tally, (schema.COMPLETE, schema.ENDED)
    options: Mapping[str, str] = {
        "artsim": "the version of artsim",
        "model": "the text of MODEL",
        "base": "--base",
        "shapes": "the content of meshes",
        "rollout.samples": "--samples",
        **{f"rollout.{name}": f"--{name.replace('_', '-')}" for name in ("start", "velocity_spread", "until", "cost")},
        **{f"run.{name}": f"--{name.replace('_', '-')}" for name in SETTINGS},
        "rollout.spread": "--spread",
        "rollout.randomise": "--randomise",
        "rollout.given": "what --start and --randomise read",
        "controls": "the content of --control",
        "given": "the content of the files of --start and --randomise",
        "policy.name": "--policy",
        "policy.source": "the content of --policy",
        "policy.hold": "--hold",
    }

    def __init__(
        self,
        plan: Plan,
        config: RolloutConfig,
        controls: Sequence[Controls] = (),
        given: Given = NOTHING,
        *,
        drive: Drive | None = None,
        recipe: Callable[[], str] = str,
        keep: bool = False,
        strict: bool = False,
    ) -> None:
        self.plan, self.config, self.given = plan, config, given
        self.controls = controls or [held_controls(plan)]
        self._recipe, self._keep, self._strict = recipe, keep, strict
        self._drive = drive if drive is not None and drive.policy is not None else None

    @property
    def rows(self) -> int:
        """Number of samples."""
        return self.config.samples

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Everything that determines the bytes of the samples, as plain data."""
        run, rolled = json.loads(self.plan.config.to_json()), json.loads(json.dumps(asdict(self.config)))
        return {
            "artsim": __version__,
            "model": digest_of_model(self.plan.robot.articulation.text),
            "base": self.plan.robot.articulation.base,
            "shapes": _digest(self.plan.kept),
            "run": {name: _plain(value) for name, value in run.items()},
            "rollout": {name: _plain(value) for name, value in rolled.items()},
            "controls": _digest(_numbers(self.controls)),
            "given": self.given.digest,
            **self._policy,
        }

    @property
    def _policy(self) -> dict[str, Any]:
        """The facts of the policy; none without one."""
        drive = self._drive
        if drive is None:
            return {}
        return {"policy": {"name": drive.policy_name, "source": drive.source, "hold": drive.hold}}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the facts; jobs with equal digests have equal samples."""
        return sha256(canonical(self.facts).encode()).hexdigest()

    def for_workers(self) -> str:
        """The text from which another process makes the job. Raises UsageError if it reads a stream."""
        return self._recipe()

    def index_content(self, provenance: Mapping[str, str | int | float], shards: Sequence[Path]) -> Content:
        """See Job. Raises ModelError where the policy gave other inputs in some shards than in others."""
        content = self._content(0, self.rows, provenance, self.controls)
        if self._drive is None:
            return content
        shapes = [_input_shapes(path) for path in shards]
        for path, found in zip(shards, shapes, strict=True):
            if found != shapes[0]:
                raise ModelError(f"{path}: holds other inputs of the policy than {shards[0]}")
        each = {name: shape for name, (own, shape) in shapes[0].items() if own}
        with open_output(shards[0]) as stored:
            assert isinstance(stored, RolloutRecording)
            inputs = stored.inputs({*VALUES} - {*each})
        # of the samples' own inputs the index has the shapes alone, and refers to those of the shards
        own = {name: np.broadcast_to(0.0, (self.rows, *shape)) for name, shape in each.items()}
        return content._replace(inputs={"time": inputs["start_step"] * self.plan.dt, **inputs, **own})

    def _content(
        self, first: int, last: int, provenance: Mapping[str, str | int | float], controls: Sequence[Controls]
    ) -> Content:
        """The content of a file of samples first … last, with the digest; `controls`: of all samples, but of these
        where a policy gave them."""
        driven = self._drive is not None
        samples = range(first, last) if driven else range(self.rows)
        draws, signed = Draws(self.plan, self.config, self.given), self._signed(provenance)
        content = content_of(self.plan, self.config, draws, controls, samples, signed, acted=driven)
        inputs = dict(content.inputs)
        if not driven:
            inputs = {name: own[first:last] if own.ndim == 3 else own for name, own in inputs.items()}
        facts = {**content.facts, "first_row": first, "digest": self.digest}
        return content._replace(rows=last - first, inputs=inputs, facts=facts)

    def compute(
        self,
        first: int,
        last: int,
        output: Path,
        *,
        signed: bool = True,
        provenance: Mapping[str, str | int | float] | None = None,
        **options: Any,
    ) -> Outcome:
        """Simulate samples first … last into one file, always with the digest, with options of `roll`.

        Raises StoppedError for a sample that stops early where these are refused and no incomplete file is kept.
        """
        several, driven = len(self.controls) > 1, self._drive is not None

        def content(controls: Sequence[Controls]) -> Content:
            return self._content(first, last, provenance or {}, controls if driven else self.controls)

        found = roll(
            self.plan,
            self.config,
            controls=self.controls[first:last] if several else self.controls,
            given=self.given,
            samples=range(first, last),
            output=output,
            drive=self._drive,
            content=content,
            keep=self._keep,
            strict=self._strict,
            **options,
        )
        tally = found.tally
        if self._strict and tally.stopped and not self._keep:
            raise StoppedError(f"stopped (--strict): {tally.stops[0][1]}")
        size = found.bytes if found.output is not None else 0
        counted = (output, found.samples, found.seconds, size, tally.stopped, tuple(k for k, _ in tally.stops))
        return Outcome(*counted, complete=found.complete, told=tally)

    def told_of(self, stored: RolloutRecording) -> Tally:
        """What the samples of a finished file tell."""
        return Tally.of_file(stored)

    def warm(self) -> None:
        """Load the machine code that takes steps."""
        warm(kernels(self.plan))

    def _signed(self, provenance: Mapping[str, str | int | float]) -> dict[str, str | int | float]:
        return {**provenance, "facts": canonical(self.facts)}


def _input_shapes(path: Path) -> dict[str, tuple[bool, tuple[int, ...]]]:
    """Of each input in a file whether samples have their own, and its shape (rows, n)."""
    with open_output(path) as stored:
        assert isinstance(stored, RolloutRecording)
        return {name: (len(shape) == 3, shape[-2:]) for name, shape in stored.input_shapes.items()}


def _plain(value: Any) -> Any:
    """A value as a fact without parts: mappings as JSON, whose names differ between robots."""
    return canonical(value) if isinstance(value, dict) else value


def _numbers(controls: Sequence[Controls]) -> list[Any]:
    """The numbers of controls, those that all samples share once."""
    if isinstance(controls, SampleControls):
        first = controls.first
        return [first.start_step, *(controls.arrays.get(name, getattr(first, name)) for name in VALUES)]
    return [[one.start_step, *(getattr(one, name) for name in VALUES)] for one in controls]


def _digest(content: Any) -> str:
    """SHA-256 of arrays, numbers and texts in tuples and lists, with their shapes."""
    digest = sha256()
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype} {value.shape}".encode())
            digest.update(np.ascontiguousarray(value).data)
        elif isinstance(value, tuple | list):
            digest.update(f"{len(value)}".encode())
            waiting += value
        else:
            digest.update(repr(value).encode())
    return digest.hexdigest()
