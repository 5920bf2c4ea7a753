"""Help with the options in groups, the common ones first."""

from __future__ import annotations

from collections.abc import Mapping

import click

from artsim.sim.runs.settings import SETTINGS

READING: dict[str, tuple[str, ...]] = {
    "Reading the model": (
        "packages",
        "mesh_root",
        "no_meshes",
        "density",
        "balance_inertia",
        "ignore_unsupported",
        "strict",
        "xacro",
        "max_xml_mb",
        "max_faces",
    ),
}
"""Every command's group of the options with which models are read."""

_BESIDE = {
    "steps": ("duration",),
    "every": ("output", "force", "config"),
    "activation": ("place",),
    "coupling_erp": ("loops",),
    "self_collide": ("srdf",),
}
"""Options that are no settings of a run, by the setting after which the help has them."""


def _groups() -> dict[str, tuple[str, ...]]:
    """The settings of a run by their groups, and the other options of run, rollout and bench."""
    groups: dict[str, tuple[str, ...]] = {"Samples": ("samples", "start", "spread", "velocity_spread", "randomise")}
    for name, setting in SETTINGS.items():
        groups[setting.group] = (*groups.get(setting.group, ()), name, *_BESIDE.get(name, ()))
    others = {"Output": ("as_json", "quiet", "verbose", "compress", "checkpoint", "resume"), "Speed": ("threads",)}
    return {**groups, **READING, **others}


GROUPS = _groups()
"""The options of each group by the names of their parameters, in the order of the help: of run, rollout and bench."""


BATCH_GROUPS: dict[str, tuple[str, ...]] = {
    "Common": (
        "compute",
        "samples",
        "input",
        "grid",
        "q0",
        "output",
        "force",
        "base",
        "gravity",
        "links",
        "at",
        "loops",
    ),
    "Drawn rows": ("seed", "distribution", "velocity", "acceleration", "torque", "wrench"),
    "Results": ("reduced", "packed", "float32", "on_error", "as_json", "quiet"),
    "Speed and shards": ("threads", "chunk", "shards", "scheduler", "shard", "resume"),
    **READING,
}
"""Those of `artsim batch`."""

COMPUTE_GROUPS: dict[str, tuple[str, ...]] = {
    "Common": ("q0", "v0", "a0", "torque", "wrench", "base", "base_pose", "keyframe", "gravity"),
    "Links and loops": ("links", "at", "loops"),
    "Results": ("reduced", "as_json", "as_csv", "quiet"),
    **READING,
}
"""Those of `artsim compute`."""


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups; those in none come last."""

    groups: Mapping[str, tuple[str, ...]] = GROUPS

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group that has an option of this command."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {option.name: record for option in options if (record := option.get_help_record(ctx))}
        for title, names in self.groups.items():
            rows = [records.pop(name) for name in names if name in records]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if records:
            with formatter.section("Options"):
                formatter.write_dl(list(records.values()))


class BatchCommand(GroupedCommand):
    """`artsim batch`."""

    groups = BATCH_GROUPS


class ComputeCommand(GroupedCommand):
    """`artsim compute`."""

    groups = COMPUTE_GROUPS
