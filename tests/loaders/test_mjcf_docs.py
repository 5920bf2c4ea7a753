"""docs/mjcf.md: every element and attribute of MJCF, read, without effect or refused; made from the reader's tables.

`python -m tests.loaders.test_mjcf_docs` writes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import mujoco
import pytest

from artsim.loaders.load import load_text
from artsim.loaders.mjcf.mjcf_schema import MJCF, Kind
from artsim.loaders.mjcf.supported import REFUSED, SENSORS, VALUES, support
from artsim.sim.foundation.errors import ModelError
from tests.loaders.mjcf_attributes import files, what_becomes_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mjcf.md"
OURS = {"centred", "exactmeshinertia"}  # in outputs, and of files older than MuJoCo 4
HEAD = """# MJCF

What artsim makes of every element and attribute of MuJoCo 4.0's MJCF. Made by `python -m tests.loaders.test_mjcf_docs`
from the reader's own tables, which tests compare with MuJoCo's schema and with what the reader does; do not edit.

`artsim check` lists what a file holds that has no effect. What is refused is refused by name; `--ignore-unsupported`
leaves it out, with a warning.

## What is refused

| element | attribute | value | why |
|---|---|---|---|
"""
NEXT = """
## Every element

| element | read | without effect | refused |
|---|---|---|---|
"""


def elements() -> Iterator[tuple[tuple[str, ...], Kind]]:
    """Every element once, with the tags above it."""
    seen: set[int] = set()
    stack: list[tuple[tuple[str, ...], Kind]] = [((), MJCF)]
    while stack:
        path, kind = stack.pop()
        if id(kind) not in seen:
            seen.add(id(kind))
            yield path, kind
            stack += [((*path, name), inner) for name, inner in reversed(kind.children.items())]


def page() -> str:
    """The whole text."""
    rows = [f"| `<{name}>` | all | | {why} |" for name, why in REFUSED.items()]
    rows += [
        f"| `<{path[-1]}>` of `<{path[-2]}>` | `{name}` | | {found.why} |"
        for path, kind in elements()
        for name in sorted(kind.attributes)
        if len(path) > 1
        and "default" not in path
        and not set(path) & REFUSED.keys()
        and (found := support(path, name)).kind == "refused"
        and path[0] != "sensor"
    ]
    rows += [f"| `<{kind}>` of `<sensor>` | all | | {why}; left out with a warning |" for kind, why in SENSORS.items()]
    rows += [f"| `<{element}>` | {attribute} | {values} | {why} |" for element, attribute, values, why in VALUES]
    table: dict[tuple[str, tuple[str, str, str]], list[str]] = {}
    for path, kind in elements():
        if kind.attributes - OURS:
            columns = {"read": "", "without effect": "", "refused": ""}
            for name in sorted(kind.attributes - OURS):
                columns[support(path, name).kind] += f" {name}"
            cells = (columns["read"].strip(), columns["without effect"].strip(), columns["refused"].strip())
            table.setdefault(("/".join(path[:-1]), cells), []).append(path[-1] if path else "mujoco")
    lines = [
        f"| {above + ': ' if above else ''}{', '.join(names)} | {' | '.join(cells)} |"
        for (above, cells), names in table.items()
    ]
    return HEAD + "\n".join(dict.fromkeys(rows)) + "\n" + NEXT + "\n".join(lines) + "\n"


def test_the_page_is_what_the_reader_does() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.loaders.test_mjcf_docs writes docs/mjcf.md"


def schema_of_mujoco() -> Iterator[tuple[int, str, list[str]]]:
    """Depth, tag and attributes of every element that MuJoCo prints."""
    entry: tuple[int, str, list[str]] | None = None
    for line in mujoco.mj_printSchema(False, False).splitlines():
        head = re.match(r"^( *)(?:\(world\))?(\w+) \(.\)(.*)$", line)
        if head:
            if entry:
                yield entry
            entry = (len(head[1]) // 3, head[2], head[3].split())
        elif entry:
            entry[2].extend(line.split())
    if entry:
        yield entry


def test_nothing_of_mujoco_s_schema_is_missing() -> None:
    stack: list[Kind] = []
    missing = []
    for depth, name, attributes in schema_of_mujoco():
        above = stack[depth - 1] if depth else None
        del stack[depth:]
        kind = MJCF if above is None else above.children.get(name)
        if kind is None:
            missing.append(name)
            stack.append(Kind(frozenset()))
            continue
        missing += [f"{name} {attribute}" for attribute in attributes if attribute not in kind.attributes]
        stack.append(kind)
    assert missing == []


BY_OTHERS = {("worldbody/body/frame", "name")}  # read by <attach frame>: test_mjcf_attach.py


def test_what_the_page_says_of_an_attribute_is_what_the_reader_makes_of_it(tmp_path: Path) -> None:
    """Of every attribute of every element that is not refused as a whole: put into models, it does what is said."""
    files(tmp_path)
    wrong = [
        f"{'/'.join(path)} {name}: said to be {said}, is {found}"
        for path, kind in elements()
        for name in sorted(kind.attributes - OURS)
        if not set(path) & REFUSED.keys() and (path[:1] != ("sensor",) or path[-1] not in SENSORS)
        if (said := support(path, name).kind) != (found := what_becomes_of(path, name, kind.attributes, tmp_path))
        and ("/".join(path), name) not in BY_OTHERS
    ]
    assert wrong == []


HINGE = '<worldbody><body><joint name="j"/><geom size="1"/></body></worldbody>'
GRID = 'name="f" count="3 3 3" spacing="1 1 1"'
LEFT_OUT = [
    '<worldbody><body><composite type="cable" count="3 1 1"/></body></worldbody>',
    f'<worldbody><flexcomp type="grid" {GRID}><elasticity young="1"/></flexcomp></worldbody>',
    f'<default><orientation kp="2"/></default>{HINGE}<actuator><general joint="j"/></actuator>',
    f'<worldbody><flexcomp type="grid" dof="trilinear" dim="3" {GRID}/></worldbody>',
    HINGE.replace('name="j"', 'springyield="1"'),
]


@pytest.mark.parametrize("text", LEFT_OUT)
def test_refused_by_name_and_left_out_on_request(text: str) -> None:
    with pytest.raises(ModelError, match=r"is not supported yet \(--ignore-unsupported leaves it out\)"):
        load_text(f"<mujoco>{text}</mujoco>", name="m")
    notes = load_text(f"<mujoco>{text}</mujoco>", name="m", ignore_unsupported=True).notes
    assert any("left out" in note.message for note in notes)


def test_an_actuator_of_a_joint_that_is_left_out_is_left_out_too() -> None:
    """A body whose mass came from a plugin stands still."""
    text = """<mujoco><extension><plugin plugin="mujoco.sdf.gear"><instance name="g"/></plugin></extension>
    <asset><mesh name="m"><plugin instance="g"/></mesh></asset><worldbody><body name="wheel"><joint name="j"/>
    <geom type="sdf" mesh="m"><plugin instance="g"/></geom></body>
    <body><joint name="k"/><geom size="1"/></body></worldbody>
    <actuator><motor name="a" joint="j"/><motor name="b" joint="k"/></actuator></mujoco>"""
    robot = load_text(text, name="m", ignore_unsupported=True)
    assert [actuator.name for actuator in robot.actuators] == ["b"]
    assert any("motor 'a' is left out with joint 'j'" in note.message for note in robot.notes)


def test_expmap_is_an_input_of_one_servo_and_no_rotation() -> None:
    """MuJoCo 4.0 knows the word only there: as an attribute it is refused, or (frames) not looked at."""
    for element in ("body", "geom", "site", "camera", "inertial"):
        inside = f'<{element} expmap="0 0 1"/>'
        world = f"<worldbody>{inside if element != 'inertial' else f'<body>{inside}</body>'}</worldbody>"
        with pytest.raises(ValueError, match="unrecognized attribute: 'expmap'"):
            mujoco.MjModel.from_xml_string(f"<mujoco>{world}</mujoco>")
        with pytest.raises(ModelError, match="expmap"):
            load_text(f"<mujoco>{world}</mujoco>", name="m")
    frame = '<frame expmap="0 0 1"><geom type="box" size="1 1 1"/></frame>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{frame}</worldbody></mujoco>")
    assert model.geom_quat.tolist() == [[1, 0, 0, 0]]
    with pytest.raises(ModelError, match="expmap"):
        load_text(f"<mujoco><worldbody>{frame}</worldbody></mujoco>", name="m")


@pytest.mark.parametrize("kind", SENSORS)
def test_a_sensor_that_is_not_evaluated_is_told_of(kind: str) -> None:
    notes = load_text(f"<mujoco>{HINGE}<sensor><{kind}/></sensor></mujoco>", name="m").notes
    assert [SENSORS[kind] in note.message for note in notes] == [True]


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
