"""What MkDocs writes into the pages: options from the commands, tables from io/format/schema.py, settings, examples.

A line `{{ options run }}` of a page stands for what a function of `MAKERS` returns: pages cannot differ from the code.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

import artsim
from artsim.cli.main import cli
from artsim.io.format import schema
from artsim.io.format.labels import DIMENSIONS, FIXED_LABELS, NUMBERED
from artsim.sim.foundation import errors as foundation_errors
from artsim.sim.runs.settings import SETTINGS

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
    lines = [head, ["---"] * len(head), *([piped(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def piped(cell: str) -> str:
    """A cell of a table, whose bars are no borders: outside of code they are escaped, within it they need not be."""
    parts = re.split(r"(`[^`]*`)", cell)
    return "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)


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
    parts = [f"```text\n{usage}\n```", escaped(re.sub(r"(?<=\n) +", "", command.help or ""))]
    known = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    records = {option.name: record for option in known if (record := option.get_help_record(context))}
    groups: dict[str, Any] = dict(getattr(command, "groups", {}))
    for title, names in [*groups.items(), ("Options" if not groups else "Other", list(records))]:
        rows = [records.pop(one) for one in names if one in records]
        if rows:
            told = [(f"`{spaced(left)}`", escaped(right)) for left, right in rows]
            parts.append(f"**{title}**\n\n{table(('option', 'meaning'), told)}")
    return "\n\n".join(parts)


def escaped(text: str) -> str:
    """Text in which Markdown finds nothing to mark."""
    return text.replace("*", "\\*").replace("<", "&lt;")


def spaced(choices: str) -> str:
    """Long alternatives with spaces, at which a narrow column breaks."""
    return choices.replace("|", " | ") if len(choices) > 40 else choices


def variables(group: str) -> str:
    """The datasets of a group of an output, from the table that the writer uses."""
    rows = []
    for path, variable in schema.TABLE.items():
        of_run = group == "rollout" and path.removeprefix("rollout/") in schema.RECORDED  # in the table of runs
        if path.startswith(f"{group}/") and not of_run:
            meaning = variable.meaning + (f": {variable.comment}" if variable.comment else "")
            name = f"`{path.removeprefix(f'{group}/')}`" + (" (on request)" if variable.on_request else "")
            rows.append((name, ", ".join(variable.dims) or "–", variable.dtype, f"`{variable.unit}`", meaning))
    assert rows, group
    return table(("variable", "dimensions", "type", "unit", "meaning"), rows)


def dimensions() -> str:
    """The dimensions of all datasets, with their labels where these are fixed."""
    rows = []
    for name, meaning in DIMENSIONS.items():
        labels = ", ".join(FIXED_LABELS[name]) if name in FIXED_LABELS else "of the robot"
        rows.append((f"`{name}`", meaning, labels))
    rows += [(f"`{name}`", what, "numbers") for name, what in NUMBERED.items()]
    return table(("dimension", "what it counts", "labels"), rows)


def settings(kind: str) -> str:
    """The keyword arguments that a TypedDict declares, with their types and comments, or meanings in the table."""
    source = "\n".join((ROOT / path).read_text() for path in ("io/settings.py", "sim/runs/settings.py"))
    body = source.split(f"class {kind}(")[1].split("\n\n\n")[0]
    rows = re.findall(r"^    (\w+): (.+?)(?:  # (.+))?$", body, re.M)
    assert rows, kind
    told = [(f"`{name}`", f"`{type_}`", comment or in_python(SETTINGS[name].meaning)) for name, type_, comment in rows]
    return table(("argument", "type", "meaning"), told)


def in_python(meaning: str) -> str:
    """The meaning of a setting with its options named as keyword arguments are."""
    return escaped(re.sub(r"(?<![\w-])--([a-z][a-z-]+)", lambda found: found[1].replace("-", "_"), meaning))


def api(path: str) -> str:
    """A public name of artsim: a function, or a class with its public members."""
    name = path.removeprefix("artsim.")
    item = getattr(artsim, name)
    if not inspect.isclass(item):
        return described(path, item, "###")
    parts = [described(path, item, "###")]
    for member, raw in inspect.getmembers_static(item):
        value = getattr(raw, "__func__", raw)
        public = not member.startswith("_") and inspect.getdoc(getattr(item, member, None))
        if public and isinstance(value, property):
            annotation = inspect.signature(value.fget).return_annotation if value.fget else ""
            parts.append(f"#### `{member}`\n\n`{annotation}` · {prose(inspect.getdoc(value) or '')}")
        elif public and inspect.isfunction(value):
            parts.append(described(member, value, "####"))
    return "\n\n".join(parts)


def described(name: str, item: Any, mark: str) -> str:
    """Heading, signature and docstring."""
    try:
        told = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(item)))
    except ValueError:
        told = "(…)"
    if len(told) > 90:
        told = re.sub(r", (?=\*|\w+:)", ",\n    ", told)
    short = name.removeprefix("artsim.")
    return f"{mark} `{short}`\n\n```python\n{name}{told}\n```\n\n{prose(inspect.getdoc(item) or '')}"


def prose(doc: str) -> str:
    """A docstring as Markdown: its sections as bold words with lists."""
    lines: list[str] = []
    within = ""
    for line in doc.splitlines():
        if re.fullmatch(r"(Args|Returns|Raises):", line):
            within = line[:-1]
            lines += ["", f"**{within}**", ""]
        elif within == "Returns":
            lines.append(line.strip())
        elif within and re.match(r"    \S", line):
            name, colon, rest = line.strip().partition(":")
            lines.append(f"- `{name}`{colon}{rest}" if colon else f"- {line.strip()}")
        elif within and line.strip():
            lines.append(f"    {line.strip()}")
        else:
            lines.append(line)
    return "\n".join(lines)


def errors() -> str:
    """The errors that artsim raises on purpose."""
    rows = []
    for name, kind in vars(foundation_errors).items():
        if isinstance(kind, type) and issubclass(kind, foundation_errors.ArtsimError):
            above = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
            rows.append((f"`{name}`", str(kind.exit_code), above, (kind.__doc__ or "").splitlines()[0]))
    return table(("error", "exit code", "is also", "meaning"), rows)


def rules() -> str:
    """The rules of the doctor: their codes, their grades, and why they matter."""
    from artsim.loaders.doctor.finding import HINTS, RULES

    rows = [(f"`{code}`", "hint" if code in HINTS else "warning", piped(why)) for code, why in RULES.items()]
    return table(("code", "grade", "why it matters"), rows)


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
    "rules": rules,
    "variables": variables,
    "dimensions": dimensions,
    "settings": settings,
    "api": api,
    "errors": errors,
    "include": include,
    "example": example,
    "notebook": notebook,
}
