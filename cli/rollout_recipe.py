"""The recipe of a rollout: its command as text with absolute file names, from which a worker process makes the job."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from artsim.cli.options import STREAMS, is_file
from artsim.cli.run_controller import policy_file, policy_of
from artsim.cli.scene_options import SceneOptions, by_name, load_models, without_arguments
from artsim.io.rollouts.draws import RolloutConfig
from artsim.io.rollouts.driven import Drive
from artsim.io.rollouts.given import given_values, property_file
from artsim.io.rollouts.rollout import drive_of
from artsim.io.rollouts.rollout_job import RolloutJob
from artsim.io.rollouts.sample_inputs import file_controls
from artsim.io.runs.prepare import prepare
from artsim.io.shards.shards import absolute, size_and_sha256
from artsim.loaders.scene import scene_names
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import UsageError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.varied import with_pushes_by_sample


@dataclass(frozen=True)
class Sources:
    """The files from which a rollout is made, beside its settings."""

    models: tuple[str, ...]  # words of the command
    scene: SceneOptions
    controls: tuple[str, ...]  # control files
    start: str | None  # the file of starts
    tables: tuple[str, ...]  # files of properties
    policy: str | None = None  # FILE.py:FUNCTION, or an ONNX file
    hold: int = 1  # steps for which its inputs act


def job_of(plan: Plan, config: RolloutConfig, sources: Sources, **options: Any) -> RolloutJob:
    """The job of a plan; `config` is that without what files give. Raises the errors of reading these."""
    samples = config.samples
    rows = {name: own for file in sources.tables for name, own in property_file(plan, file, samples).items()}
    plan = with_pushes_by_sample(plan, [*config.randomise, *rows])
    given = given_values(plan, samples, sources.start, rows)
    whole = RolloutConfig(**{**asdict(config), "given": given.names})
    controls = file_controls(plan, sources.controls, samples) if sources.controls else ()
    return RolloutJob(plan, whole, controls, given, recipe=lambda: recipe(plan.config, config, sources), **options)


def recipe(run: RunConfig, config: RolloutConfig, sources: Sources) -> str:
    """The text from which another process makes the job. Raises UsageError for standard input."""
    words, arguments = without_arguments(sources.models)
    pairs = scene_names(words, is_file)
    names, scene = [name for name, _ in pairs], sources.scene
    for file in (*(file for _, file in pairs), *sources.controls, sources.start or "", sources.policy or ""):
        if file == "-" or file.startswith(STREAMS):
            raise UsageError("--scheduler: workers cannot read standard input; name the file")
    load: dict[str, Any] = {**scene.load, "packages": _absolute(scene.load.get("packages") or {}), "arguments": {}}
    root = scene.load.get("mesh_root")
    load["mesh_root"] = None if root is None else absolute(root)
    content = {
        "models": [*(_word(name, file) for name, file in pairs), *arguments],
        "load": load,
        "bases": scene.bases,
        "place": scene.place,
        "srdf": [_word(*pair) for pair in by_name("--srdf", scene.srdf, names)],
        "loops": [_word(*pair) for pair in by_name("--loops", scene.loops, names)],
        "controls": [absolute(file) for file in sources.controls],
        "start": None if sources.start is None else absolute(sources.start),
        "tables": [absolute(file) for file in sources.tables],
        "policy": None if sources.policy is None else absolute(sources.policy),
        "hold": sources.hold,
        "run": run.to_json(),
        "rollout": asdict(config),
    }
    return json.dumps(content, sort_keys=True)


def job_of_recipe(text: str) -> RolloutJob:
    """The job of a recipe, in a worker."""
    content = json.loads(text)
    scene = SceneOptions(
        content["load"], content["bases"], *(tuple(content[name]) for name in ("place", "srdf", "loops"))
    )
    sources = Sources(
        tuple(content["models"]),
        scene,
        tuple(content["controls"]),
        content["start"],
        tuple(content["tables"]),
        content["policy"],
        content["hold"],
    )
    plan = prepare(load_models(sources.models, scene), RunConfig.from_json(content["run"]))
    config, strict = RolloutConfig(**content["rollout"]), bool(scene.load.get("strict"))
    drive = drive_by(config, sources, policy_of(sources.policy), in_file=True)
    return job_of(plan, config, sources, drive=drive, strict=strict)


def drive_by(
    config: RolloutConfig, sources: Sources, policy: Callable[..., Any] | str | None, *, in_file: bool
) -> Drive:
    """The treatment of samples between steps, by the policy that was loaded. Raises UsageError, MissingInputError."""
    drive = drive_of(config, policy, sources.hold, in_file=in_file)
    if sources.policy is None:
        return drive
    return drive._replace(source=size_and_sha256(Path(policy_file(sources.policy)))[1])


def _absolute(folders: Mapping[str, Any]) -> dict[str, str]:
    return {name: absolute(folder) for name, folder in folders.items()}


def _word(name: str, file: str) -> str:
    """A model, or a file of one, as a word of the command."""
    return f"{name}={absolute(file)}" if name else absolute(file)
