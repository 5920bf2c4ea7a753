"""Help in groups: the common options by default, one group or all of them when asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from artsim.sim.foundation.errors import nearest
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

COMMON = "Common"
_FEW = 30  # options of a command whose help shows all of them
_ALL = "all"
_CLAUSE = re.compile(r"[.;](?=\s|$)")  # the end of the clause that the short help has of an option


def grouped(settings: Mapping[str, Setting], beside: Groups) -> Groups:
    """Settings by their groups, with other options, each behind the setting for which `beside` has it."""
    groups: dict[str, tuple[str, ...]] = {}
    for name, setting in settings.items():
        option = "compute" if name == "quantities" else name
        groups[setting.group] = (*groups.get(setting.group, ()), option, *beside.get(name, ()))
    return groups


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups; those in none come last.

    Of a command with many options, `--help` shows the common ones in short, `--help GROUP` those of a group, and
    `--help-all` all of them.
    """

    def __init__(self, *args: Any, groups: Groups, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option --help [GROUP], of which --help-all is another name for `--help all`."""
        if not self._is_long():
            return super().get_help_option(ctx)
        return click.Option(
            ["-h", "--help", "_help"],
            is_flag=False,
            flag_value="",
            metavar="[GROUP]",
            is_eager=True,
            expose_value=False,
            callback=self._show,
            help=f"Show the common options, those of a GROUP ({', '.join(self._words())}), or with --help-all all.",
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read --help-all as `--help all`, or as --help of a command that has no more."""
        if "--help-all" in args:
            place = args.index("--help-all")
            args = [*args[:place], f"--help={_ALL}" if self._is_long() else "--help", *args[place + 1 :]]
        return super().parse_args(ctx, args)

    def _is_long(self) -> bool:
        return COMMON in self._words().values() and sum(isinstance(param, click.Option) for param in self.params) > _FEW

    def _words(self) -> dict[str, str]:
        """The groups that have options of this command by the word that asks for them: their first one."""
        here = {param.name for param in self.params}
        return {title.split()[0].lower(): title for title, names in self.groups.items() if title and {*names} & here}

    def _show(self, ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        """Print the help that was asked for, and end."""
        if value is None or ctx.resilient_parsing:
            return
        words = self._words()
        found = [word for word in words if value and word.startswith(value.lower())]
        if value and value != _ALL and not found:
            raise click.BadParameter(f"{value!r} is no group{nearest(value, words)}")
        ctx.meta["artsim.help"] = words[found[0]] if found else value
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group that is shown and has an option of this command."""
        wanted = ctx.meta.get("artsim.help", "") if self._is_long() else _ALL
        for title, rows in self._sections(ctx):
            if wanted in (_ALL, title):
                with formatter.section(title):
                    formatter.write_dl(rows)
            elif not wanted and title == COMMON:
                with formatter.section(title):
                    formatter.write_dl([(name, _in_short(text)) for name, text in rows])
        if not wanted:
            self._point_on(ctx, formatter)

    def _sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """The options of each group, then those in none."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {option.name: record for option in options if (record := option.get_help_record(ctx))}
        for title, names in self.groups.items():
            rows = [records.pop(name) for name in names if name in records]
            if rows:
                yield title, rows
        if records:
            yield "Options", list(records.values())

    def _point_on(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say where the other options are."""
        others = [word for word, title in self._words().items() if title != COMMON]
        count = sum(isinstance(param, click.Option) for param in self.params)
        formatter.write_paragraph()
        formatter.write_text(
            f"{ctx.command_path} --help GROUP shows further options: {', '.join(others)}. --help-all shows all {count}."
        )


def _in_short(text: str) -> str:
    """The first clause of an option's help."""
    return _CLAUSE.split(text, maxsplit=1)[0].split("  [")[0]
