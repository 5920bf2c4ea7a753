"""What MkDocs writes into the pages: options from the commands, tables from io/schema.py, settings, examples.

A line `{{ options run }}` of a page stands for what a function of `MAKERS` returns: pages cannot differ from the code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from artsim.cli.main import cli
from artsim.io import schema

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(r"^\{\{ (\w+)(?: ([^}]+))? \}\}$", re.M)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    return filled(markdown)


def filled(markdown: str) -> str:
    """The text of a page with everything that is generated in its place."""
    return PLACE.sub(lambda found: MAKERS[found[1]](*(found[2] or "").split()), markdown)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def commands() -> str:
    """Every command and what it does."""
    context = click.Context(cli)
    rows = []
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        rows.append((f"[`artsim {name}`](#artsim-{name})", command.get_short_help_str(200)))
    return table(("command", "what it does"), rows)


def options(name: str) -> str:
    """The help of a command: its usage, its text, and a table of options for each group."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    context = click.Context(command, info_name=f"artsim {name}")
    usage = f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    parts = [f"```text\n{usage}\n```", re.sub(r"(?<=\n) +", "", command.help or "")]
    known = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    records = {option.name: record for option in known if (record := option.get_help_record(context))}
    groups: dict[str, Any] = {title: names for title, names in getattr(command, "groups", {}).items()}
    for title, names in [*groups.items(), ("Options" if not groups else "Other", list(records))]:
        rows = [records.pop(one) for one in names if one in records]
        if rows:
            told = [(f"`{left}`", right.replace("*", "\\*").replace("<", "&lt;")) for left, right in rows]
            parts.append(f"**{title}**\n\n{table(('option', 'meaning'), told)}")
    return "\n\n".join(parts)


def variables(group: str) -> str:
    """The datasets of a group of an output, from the table that the writer uses."""
    rows = []
    for path, variable in schema.TABLE.items():
        if path.startswith(f"{group}/"):
            meaning = variable.meaning + (f": {variable.comment}" if variable.comment else "")
            name = f"`{path.removeprefix(f'{group}/')}`" + (" (on request)" if variable.on_request else "")
            rows.append((name, ", ".join(variable.dims) or "–", variable.dtype, f"`{variable.unit}`", meaning))
    assert rows, group
    return table(("variable", "dimensions", "type", "unit", "meaning"), rows)


def dimensions() -> str:
    """The dimensions of all datasets, with their labels where these are fixed."""
    rows = []
    for name, dimension in schema.DIMENSIONS.items():
        labels = "of the robot" if dimension.labels is None else ", ".join(dimension.labels)
        rows.append((f"`{name}`", dimension.meaning, labels))
    rows += [(f"`{name}`", what, "numbers") for name, what in schema.NUMBERED.items()]
    return table(("dimension", "what it counts", "labels"), rows)


def settings(kind: str) -> str:
    """The keyword arguments that a TypedDict of io/settings.py declares, with their types and comments."""
    source = (ROOT / "io" / "settings.py").read_text()
    body = source.split(f"class {kind}(")[1].split("\nclass ")[0]
    rows = re.findall(r"^    (\w+): (.+?)  # (.+)$", body, re.M)
    assert rows, kind
    return table(("argument", "type", "meaning"), [(f"`{name}`", f"`{type_}`", what) for name, type_, what in rows])


def include(path: str, deeper: str = "") -> str:
    """Another document of the repository; its headings a level deeper if the page has one of its own."""
    text = (ROOT / path).read_text()
    return re.sub(r"^#", "##", text, flags=re.M) if deeper else text


def example(path: str) -> str:
    """A script of examples/: the words at its head, then its code."""
    head, _, code = (ROOT / path).read_text().removeprefix('"""').partition('"""')
    return f"{head.strip()}\n\n```python\n{code.strip()}\n```\n\n<small>`{path}`</small>"


def notebook(path: str) -> str:
    """A notebook of examples/ as it was executed: texts, code, what the code printed and drew."""
    parts = []
    for cell in json.loads((ROOT / path).read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"^#", "##", source, flags=re.M))
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f"![](data:image/png;base64,{data['image/png'].strip()})")
            elif text := "".join(output.get("text") or data.get("text/plain", "")).strip():
                parts.append(f"```text\n{text}\n```")
    return "\n\n".join([*parts, f"<small>`{path}`</small>"])


MAKERS: dict[str, Callable[..., str]] = {
    "commands": commands,
    "options": options,
    "variables": variables,
    "dimensions": dimensions,
    "settings": settings,
    "include": include,
    "example": example,
    "notebook": notebook,
}
