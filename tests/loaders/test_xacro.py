"""Xacro: its own words about what is wrong, and lines of the sources, for its errors and for those of our readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from artsim.loaders.load import load_articulation
from artsim.sim.foundation.errors import ModelError

pytest.importorskip("xacro")
HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">\n'
LEG = """<xacro:macro name="leg" params="n *extra">
  <link name="${n}">
    <inertial>
      <mass value="${mass}"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
    <xacro:insert_block name="extra"/>
  </link>
  <joint name="${n}_j" type="revolute"><parent link="base"/><child link="${n}"/>
    <limit
       lower="${low}" upper="1" effort="1" velocity="1"/>
  </joint>
</xacro:macro>
"""
CALL = '<xacro:leg n="{}"><visual><geometry>{}</geometry></visual></xacro:leg>\n'
SPHERE = '<sphere radius="1"/>'


def robot(
    tmp_path: Path, *, inner: str = LEG, mass: str = "1", low: str = "-1", shape: str = SPHERE, more: str = ""
) -> Path:
    """A model whose macro stands in a file of its own; the calls stand in lines 6 and 7."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "leg.xacro").write_text(f"{HEAD}{inner}</robot>")
    path = tmp_path / "robot.urdf.xacro"
    values = f'<xacro:property name="mass" value="{mass}"/>\n<xacro:property name="low" value="{low}"/>\n'
    calls = CALL.format("a", SPHERE) + CALL.format("b", shape)
    text = f'{HEAD}<xacro:include filename="parts/leg.xacro"/>\n{values}<link name="base"/>\n{calls}{more}</robot>'
    path.write_text(text)
    return path


def refused(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_articulation(path, xacro=True)
    return str(caught.value)


def test_all_is_well(tmp_path: Path) -> None:
    """Sources of links are lines of the macro; no mark is left in the text that is stored."""
    path = robot(tmp_path)
    found = load_articulation(path, xacro=True)
    assert [(Path(link.source.file).name, link.source.line) for link in found.links] == [
        ("robot.urdf.xacro", 5),
        ("leg.xacro", 3),
        ("leg.xacro", 3),
    ]
    assert "artsim-place" not in found.text and not found.notes


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        ({"low": "2"}, "parts/leg.xacro:11: ", "lower 2 is greater than upper 1"),  # of our reader, in a macro
        ({"mass": "-1"}, "parts/leg.xacro:5: ", "mass -1 kg is negative"),
        ({"shape": "<sphere/>"}, "robot.urdf.xacro:7: ", "has no 'radius' attribute"),  # in a block that is handed in
        ({"more": '<link name="base"/>'}, "robot.urdf.xacro:8: ", "link 'base' is already defined"),
        ({"more": "<link/>"}, "robot.urdf.xacro:8: ", "<link> has no name"),
        ({"mass": "${1/0}"}, "parts/leg.xacro:5: ", "xacro: division by zero when evaluating expression '1/0'"),
        ({"shape": "${nothing}"}, "robot.urdf.xacro:7: ", "xacro: name 'nothing' is not defined"),
        ({"more": '<xacro:arm n="c"/>'}, "robot.urdf.xacro:8: ", "xacro: unknown macro name: xacro:arm"),
        ({"more": '<xacro:leg n="c"/>'}, "robot.urdf.xacro:8: ", "xacro: Not enough blocks"),
        ({"more": '<xacro:leg m="c"/>'}, "robot.urdf.xacro:8: ", 'xacro: Invalid parameter "m"'),
        ({"more": '<link name="$(arg no)"/>'}, "robot.urdf.xacro:8: ", "xacro: Undefined substitution argument no"),
        ({"more": '<xacro:if value="maybe"/>'}, "robot.urdf.xacro:8: ", "xacro: "),
        ({"more": '<xacro:include filename="no.xacro"/>'}, "robot.urdf.xacro:8: ", "no.xacro"),
        (
            {"more": '<xacro:include filename="$(find nowhere)/no.xacro"/>'},
            "robot.urdf.xacro:8: ",
            "xacro: package 'nowhere' not found; give",  # once, without the name of Python's exception
        ),
        ({"inner": "<link>\n"}, "parts/leg.xacro:3: ", "xacro: not well-formed XML: mismatched tag"),
    ],
)
def test_errors(change: dict[str, str], place: str, words: str, tmp_path: Path) -> None:
    told = refused(robot(tmp_path, **change))
    assert told.startswith(f"{tmp_path}/{place}"), told
    assert words in told
    assert ("(in macro 'leg')" in told) == (":11:" in place or ":5:" in place), told
    assert "\n" not in told


def test_macros_in_macros(tmp_path: Path) -> None:
    """The innermost macro, by its own line, whatever calls it."""
    outer = '<xacro:macro name="outer" params="n">\n<xacro:inner n="${n}" m="${n}_"/>\n</xacro:macro>\n'
    inner = '<xacro:macro name="inner" params="n m">\n<link name="${n}"/>\n<link name="${q}"/>\n</xacro:macro>\n'
    path = tmp_path / "r.xacro"
    path.write_text(f'{HEAD}{outer}{inner}<xacro:outer n="x"/></robot>')
    told = refused(path)
    assert told.startswith(f"{path}:7: xacro: name 'q' is not defined when evaluating") and "macro 'inner'" in told


def test_warnings_have_lines_of_the_sources(tmp_path: Path) -> None:
    notes = load_articulation(robot(tmp_path, more="\n<bogus/>\n"), xacro=True).notes
    assert [str(note) for note in notes] == [
        f"{tmp_path}/robot.urdf.xacro:9: <bogus> is not part of URDF and is ignored"
    ]


@pytest.mark.parametrize(
    "text",
    [
        '<mujoco xmlns:xacro="x">\n<worldbody><xacro:macro name="b" params="r">\n<body><joint/>'
        '<geom size="${r}"/></body></xacro:macro><xacro:b r="-1"/></worldbody></mujoco>',
        '<sdf version="1.9" xmlns:xacro="x">\n<xacro:macro name="b" params="r"><model name="m"><link name="l">\n'
        "<collision name='c'><geometry><sphere><radius>${r}</radius></sphere></geometry></collision></link></model>"
        '</xacro:macro><xacro:b r="-1"/></sdf>',
    ],
)
def test_other_formats(text: str, tmp_path: Path) -> None:
    path = tmp_path / "m.xacro"
    path.write_text(text)
    told = refused(path)
    assert told.startswith(f"{path}:3: ") and told.endswith("(in macro 'b')"), told
