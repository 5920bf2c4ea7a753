"""Help with the options in groups, the common ones first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from artsim.sim.runs.setting import Setting

Groups = Mapping[str, tuple[str, ...]]
"""Names of parameters by the heading under which the help has their options, in its order."""
READING: Groups = {
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


def grouped(settings: Mapping[str, Setting], beside: Groups) -> Groups:
    """Settings by their groups, with other options, each behind the setting for which `beside` has it."""
    groups: dict[str, tuple[str, ...]] = {}
    for name, setting in settings.items():
        option = "compute" if name == "quantities" else name
        groups[setting.group] = (*groups.get(setting.group, ()), option, *beside.get(name, ()))
    return groups


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups; those in none come last."""

    def __init__(self, *args: Any, groups: Groups, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups

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
