"""Bad inputs through the command line: the exit code, one line with file, line and name, never a traceback.

The numbers are the rows of the project's table of bad inputs: 1 to 62 (robot files), 78 to 90 (shapes, names, xacro,
sizes), 103 to 106 (the command line). A row that depends on the environment (a pipe, a link, a locale) has a test of
its own.
"""

from __future__ import annotations

import contextlib
import json
import locale
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest
from click.testing import CliRunner, Result

from artsim.cli.main import cli
from artsim.loaders.xml import parse

HEAD = '<robot name="r">\n'
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'


def artsim(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=stdin)


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>\n'


def joint(
    name: str = "j",
    kind: str = "revolute",
    parent: str = "a",
    child: str = "b",
    inside: str = LIMIT,
    attributes: str = "",
) -> str:
    return (
        f'<joint name="{name}" type="{kind}" {attributes}><parent link="{parent}"/><child link="{child}"/>'
        f"{inside}</joint>\n"
    )


def robot(*parts: str) -> str:
    """The parts start on line 2, one line each."""
    return HEAD + "".join(parts) + "</robot>\n"


def two_links(inside: str, kind: str = "revolute") -> str:
    """Links a (line 2) and b (line 3), and a joint with `inside` on line 4."""
    return robot(link("a"), link("b"), joint(kind=kind, inside=inside))


def inertial(mass: str = "1", inertia: str = 'ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"') -> str:
    """Link b (line 3) moves and has this inertial."""
    inside = f'<inertial><mass value="{mass}"/><inertia {inertia}/></inertial>'
    return robot(link("a"), link("b", inside), joint())


def shape(geometry: str, role: str = "collision") -> str:
    """A link (line 2) with this geometry."""
    return robot(link("a", f"<{role}><geometry>{geometry}</geometry></{role}>"))


def three_links(*mimics: str) -> str:
    """Joints j, k, l (lines 6, 7, 8) from link a to b, c, d, each with its <mimic>."""
    joints = [
        joint(name, child=child, inside=LIMIT + mimic)
        for name, child, mimic in zip("jkl", "bcd", [*mimics, "", "", ""], strict=False)
    ]
    return robot(link("a"), link("b"), link("c"), link("d"), *joints)


def mimic(leader: str, rest: str = "") -> str:
    return f'<mimic joint="{leader}" {rest}/>'


def xacro(macro: str) -> str:
    """A link, and a macro that was not expanded, on line 2."""
    return f'<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">\n{macro}{link("a")}</robot>'


TILTED = '<inertial><mass value=".1"/><inertia ixx="-0.1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/></inertial>'


class Row(NamedTuple):
    """An input and what the line on stderr must hold; `line` 0: the file as a whole."""

    name: str
    text: str | bytes
    line: int
    words: tuple[str, ...]


REJECT = [
    Row("01_empty", b"", 0, ("empty file",)),
    Row("02_not_xml", "hello\n", 1, ("not well-formed XML",)),
    Row("03_truncated", '<robot name="r">\n<link na', 2, ("not well-formed XML",)),
    Row("04_wrong_root", "<model/>", 1, ("root is <model>, want <robot>, <mujoco> or <sdf>",)),
    Row("04_mjcf", "<mujoco><boddy/></mujoco>", 1, ("<boddy>", "did you mean 'body'")),
    Row("05_no_links", '<robot name="r"/>', 1, ("no links",)),
    Row(
        "06_billion_laughs",
        "<!DOCTYPE r [<!ENTITY a 'ha'>"
        + "".join(f"<!ENTITY {b} '{f'&{a};' * 10}'>" for a, b in zip("abcdefghi", "bcdefghij", strict=True))
        + "]>\n<robot name='&j;'/>",
        1,
        ("DOCTYPE not allowed",),
    ),
    Row(
        "07_quadratic_blowup",
        f"<!DOCTYPE r [<!ENTITY a '{'a' * 200_000}'>]><robot name='r'>{'&a;' * 5000}</robot>",
        1,
        ("DOCTYPE not allowed",),
    ),
    Row(
        "08_xxe_file",
        "<?xml version='1.0'?>\n<!-- hi -->\n<!DOCTYPE r [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><robot name='&x;'/>",
        3,
        ("DOCTYPE not allowed",),
    ),
    Row("09_xxe_param", "<!DOCTYPE r [<!ENTITY % x SYSTEM 'file:///etc/passwd'>%x;]><robot/>", 1, ("DOCTYPE",)),
    Row("11_deep_nest", "<a>" * 100_000 + "</a>" * 100_000, 1, ("nesting > 2000",)),
    Row("11_deep_by_one", "<robot>" + "<a>" * 2000 + "</a>" * 2000 + "</robot>", 1, ("nesting > 2000",)),
    Row("13_huge_name", robot(link("x" * 20_000_000)), 2, ("name > 1024 chars",)),
    Row("15_nul_byte", b'<robot name="r">\n<link name="a\0b"/></robot>', 2, ("NUL",)),
    Row("16_bad_utf8", b'<robot name="r">\n<link name="a\xff"/></robot>', 2, ("not valid UTF-8",)),
    Row("20_dup_link", robot(link("a"), link("a")), 3, ("link 'a'", "line 2")),
    Row(
        "21_dup_joint",
        robot(link("a"), link("b"), link("c"), joint("j", child="b"), joint("j", child="c")),
        6,
        ("joint 'j'", "line 5"),
    ),
    Row(
        "22_missing_parent",
        robot(link("base_link"), link("b"), joint(parent="base_lnk")),
        4,
        ("joint 'j'", "parent link 'base_lnk', which does not exist; did you mean 'base_link'?"),
    ),
    Row("23_missing_child", robot(link("a"), joint(child="b")), 3, ("joint 'j'", "child link 'b'")),
    Row(
        "24_cycle",
        robot(link("a"), link("b"), joint("j"), joint("k", parent="b", child="a")),
        5,
        ("cycle", "'a' -> 'b' -> 'a'"),
    ),
    Row(
        "24_cycle_beside_a_tree",
        robot(link("r"), link("a"), link("b"), joint("j"), joint("k", parent="b", child="a")),
        6,
        ("cycle", "'a' -> 'b' -> 'a'"),
    ),
    Row("25_self_joint", robot(link("a"), joint(child="a")), 3, ("joint 'j' connects link 'a' to itself",)),
    Row(
        "26_two_parents",
        robot(link("a"), link("b"), link("c"), joint("j", child="c"), joint("k", parent="b", child="c")),
        6,
        ("link 'c' has two parent joints, 'j' (line 5) and 'k'", "closed loop", "<loop_joint>"),
    ),
    Row("27_two_roots", robot(link("a"), link("b")), 3, ("2 root links ('a', 'b')",)),
    Row("28_unknown_joint_type", two_links("", kind="wibble"), 4, ("joint 'j'", "'wibble'", "fixed, revolute")),
    Row(
        "29_no_joint_type",
        robot(link("a"), link("b"), '<joint name="j"><parent link="a"/><child link="b"/></joint>'),
        4,
        ("joint 'j' has no type", "revolute"),
    ),
    Row("30_no_limit_prismatic", two_links("", kind="prismatic"), 4, ("joint 'j'", "<limit>")),
    Row("30_limit_without_effort", two_links('<limit lower="0" upper="1"/>'), 4, ("joint 'j'", "'effort'")),
    Row(
        "31_limit_reversed",
        two_links('<limit lower="1" upper="-1" effort="1" velocity="1"/>'),
        4,
        ("joint 'j'", "lower 1"),
    ),
    Row(
        "32_limit_neg_effort",
        two_links('<limit lower="0" upper="1" effort="-2" velocity="1"/>'),
        4,
        ("'j'", "effort -2"),
    ),
    Row("33_axis_zero", two_links('<axis xyz="0 0 0"/>' + LIMIT), 4, ("<axis> of joint 'j' is zero",)),
    Row(
        "33_axis_too_long",
        two_links('<axis xyz="1.7e308 1.7e308 0"/>' + LIMIT),
        4,
        ("<axis> of joint 'j'", "beyond 1e+30"),
    ),
    Row("35_axis_nan", two_links('<axis xyz="0 nan 0"/>' + LIMIT), 4, ("joint 'j'", "not a finite number")),
    Row("36_axis_2num", two_links('<axis xyz="0 1"/>' + LIMIT), 4, ("joint 'j'", "holds 2 numbers, want 3")),
    Row("37_axis_text", two_links('<axis xyz="x y z"/>' + LIMIT), 4, ("joint 'j'", "'x' is not a number")),
    Row("38_origin_inf", two_links('<origin xyz="inf 0 0"/>' + LIMIT), 4, ("joint 'j'", "not a finite number")),
    Row("38_origin_1e999", two_links('<origin xyz="1e999 0 0"/>' + LIMIT), 4, ("joint 'j'", "too large")),
    Row("39_comma_decimal", two_links('<origin xyz="0,5 0 0"/>' + LIMIT), 4, ("joint 'j'", "'0,5'", "use a dot")),
    Row("39_comma_list", two_links('<origin xyz="1, 2, 3"/>' + LIMIT), 4, ("joint 'j'", "spaces between")),
    Row("40_trailing_junk", two_links('<origin xyz="1.0abc 0 0"/>' + LIMIT), 4, ("joint 'j'", "'1.0abc'")),
    Row("40_underscore", two_links('<origin xyz="1_0 0 0"/>' + LIMIT), 4, ("joint 'j'", "'1_0'")),
    Row("40_foreign_digits", two_links('<origin xyz="\u0663 0 0"/>' + LIMIT), 4, ("joint 'j'", "not a number")),
    Row("42_mass_neg", inertial(mass="-1"), 3, ("link 'b'", "negative")),
    Row("43_mass_nan", inertial(mass="nan"), 3, ("link 'b'", "not a finite number")),
    Row("44_mass_inf", inertial(mass="inf"), 3, ("link 'b'", "not a finite number")),
    Row(
        "46_inertia_nonpd",
        inertial(inertia='ixx="-0.1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"'),
        3,
        ("link 'b'", "negative"),
    ),
    Row(
        "46_inertia_nonpd_off_diagonal",
        inertial(inertia='ixx="1" ixy="2" ixz="0" iyy="1" iyz="0" izz="1"'),
        3,
        ("link 'b'", "negative"),
    ),
    Row(
        "46_inertia_nonpd_lumped",
        robot(link("a"), link("b", ""), link("c", TILTED), joint(), joint("k", "fixed", "b", "c", "")),
        4,
        ("link 'c'", "negative", "--balance-inertia"),
    ),
    Row("48_inertia_missing_attr", inertial(inertia='ixx="1"'), 3, ("link 'b'", "'ixy'")),
    Row("50_mimic_missing", three_links(mimic("jj")), 6, ("joint 'j' mimics 'jj', which does not exist",)),
    Row("51_mimic_self", three_links(mimic("j")), 6, ("joint 'j' mimics 'j'", "itself")),
    Row("52_mimic_cycle", three_links(mimic("k"), mimic("j")), 6, ("cycle: 'j' -> 'k' -> 'j'",)),
    Row("52_mimic_cycle_of_3", three_links(mimic("k"), mimic("l"), mimic("j")), 6, ("'j' -> 'k' -> 'l' -> 'j'",)),
    Row("53_mimic_planar", two_links(mimic("j"), kind="planar").replace('joint="j"', 'joint="k"'), 4, ("'k'",)),
    Row(
        "56_mesh_traversal",
        shape('<mesh filename="../../../etc/passwd"/>'),
        2,
        ("link 'a'", "outside the allowed roots"),
    ),
    Row("56_mesh_traversal_stl", shape('<mesh filename="../../../x.stl"/>'), 2, ("outside the allowed roots",)),
    Row(
        "57_mesh_abs",
        shape('<mesh filename="/etc/passwd"/>'),
        2,
        ("link 'a'", "outside the allowed roots", "--mesh-root"),
    ),
    Row("57_mesh_file_uri", shape('<mesh filename="file:///etc/passwd"/>'), 2, ("outside the allowed roots",)),
    Row("59_mesh_http", shape('<mesh filename="http://127.0.0.1/x.stl"/>'), 2, ("link 'a'", "http:// is not read")),
    Row("61_mesh_pkg_traversal", shape('<mesh filename="package://r/../../etc/x.stl"/>'), 2, ("outside the allowed",)),
    Row("61_mesh_pkg_is_etc", shape('<mesh filename="package://../etc/x.stl"/>'), 2, ("outside the allowed",)),
    Row("62_mesh_dir", shape('<mesh filename="/tmp"/>'), 2, ("link 'a'",)),
    Row("78_box_neg", shape('<box size="1 -1 1"/>'), 2, ("<box>", "link 'a'", "size -1 m")),
    Row("78_box_neg_visual", shape('<box size="1 -1 1"/>', "visual"), 2, ("<box>", "link 'a'", "size -1 m")),
    Row("79_sphere_neg", shape('<sphere radius="-1"/>'), 2, ("<sphere>", "link 'a'", "size -1 m")),
    Row("80_cyl_missing", shape('<cylinder radius="1"/>'), 2, ("<cylinder>", "link 'a'", "'length'")),
    Row("81_empty_geom", shape(""), 2, ("<geometry>", "link 'a'", "<box>")),
    Row("81_unknown_geom", shape("<teapot/>"), 2, ("<teapot>", "link 'a'", "<box>")),
    Row("81_no_geom", robot(link("a", "<visual/>")), 2, ("<visual> of link 'a'", "<geometry>")),
    Row("82_name_empty_link", robot(link("")), 2, ("<link> has an empty name",)),
    Row("82_name_empty_joint", robot(link("a"), link("b"), joint("")), 4, ("<joint> has an empty name",)),
    Row("82_name_empty_robot", '<robot name=""><link name="a"/></robot>', 1, ("<robot> has an empty name",)),
    Row("82_name_missing", robot("<link/>"), 2, ("<link> has no name",)),
    Row(
        "87_unexpanded_xacro",
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">\n<xacro:include filename="x"/></robot>',
        2,
        ("<xacro:include>", "run xacro first", "artsim[xacro]"),
    ),
    Row("87_macro_for_links", xacro('<xacro:finger name="f"/>'), 2, ("<xacro:finger>", "run xacro first")),
    Row("87_sensor_expression", xacro('<xacro:imu_sensor name="${n}"/>'), 2, ("'${n}'", "run xacro first")),
    Row(
        "reduction_that_counts",
        two_links(LIMIT).replace(
            "</robot>",
            '<transmission name="t"><joint name="j"/><actuator name="m"><motorInertia>1</motorInertia>'
            "<mechanicalReduction>fast</mechanicalReduction></actuator></transmission></robot>",
        ),
        5,
        ("'fast' is not a number",),
    ),
    Row(
        "87_expression",
        robot('<link name="a"><inertial><mass value="${m}"/></inertial></link>'),
        2,
        ("'${m}'", "xacro"),
    ),
    Row(
        "x_end_missing",
        robot(link("a"), link("b"), '<joint name="j" type="fixed"><parent link="a"/></joint>'),
        4,
        ("<child>",),
    ),
    Row("x_undefined_entity", '<robot name="r">\n&boom;</robot>', 2, ("not well-formed XML",)),
    Row("x_encoding", b'<?xml version="1.0" encoding="zlib"?><robot/>', 1, ("encoding 'zlib'",)),
    Row("x_comment_before_declaration", '<!-- --><?xml version="1.0"?><robot/>', 1, ("not well-formed XML",)),
    Row("x_declaration_inside", '<robot>\n<?xml version="1.0"?></robot>', 2, ("XML declaration allowed only",)),
    Row("85_escape_character", robot('<link name="\x1b[2J"/>'), 2, ("not well-formed XML",)),
]


@pytest.mark.parametrize("row", REJECT, ids=lambda row: row.name)
def test_refused_with_one_line(row: Row, tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "robot.urdf"
    path.parent.mkdir()
    path.write_bytes(row.text if isinstance(row.text, bytes) else row.text.encode())
    began = time.process_time()  # not the wall's: the machine may be busy
    result = artsim("check", path)
    assert time.process_time() - began < 5.0
    assert_refused(result, f"{path}:{row.line}: " if row.line else f"{path}: ", *row.words)


def assert_refused(result: Result, *words: str) -> None:
    """Exit 65, nothing on stdout, one printable line that holds the words."""
    assert result.exit_code == 65, result.output
    assert result.stdout == ""
    line = result.stderr.removesuffix("\n")
    assert line.isprintable()
    for word in words:
        assert word in line
    assert len(line) < 1000


class Odd(NamedTuple):
    """An input that is accepted, the warnings' words (none: silent), and whether --strict refuses it."""

    name: str
    text: str
    words: tuple[str, ...] = ()
    strict: bool = False


PLATE = 'ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="5"'
ACCEPT = [
    Odd("30_no_limit", two_links('<axis xyz="0 0 1"/>'), ("joint 'j'", "no <limit>: unlimited"), strict=True),
    Odd("34_axis_nonunit", two_links('<axis xyz="0 0 7"/>' + LIMIT), ("joint 'j'", "length 7: normalised")),
    Odd("45_mass_1e300", inertial(mass="1e300"), ("link 'b'", "1e+300 kg is implausible")),
    Odd("47_inertia_triangle", inertial(inertia=PLATE), ("link 'b'", "triangle", "--balance-inertia"), strict=True),
    Odd(
        "41_mass_zero",
        inertial(mass="0", inertia=PLATE.replace("1", "0").replace("5", "0")),
        ("link 'b'", "run"),
        strict=True,
    ),
    Odd("49_no_inertial", robot(link("a"), link("b", ""), joint()), ("link 'b'", "run"), strict=True),
    Odd(
        "53_mimic_fixed",
        robot(
            link("a"),
            link("b"),
            link("c"),
            joint("f", "fixed", inside=""),
            joint("j", child="c", inside=LIMIT + mimic("f")),
        ),
        ("joint 'j' mimics 'f', which is fixed: held at 0",),
    ),
    Odd("54_mimic_chain", three_links(mimic("k", 'multiplier="2"'), mimic("l", 'multiplier="0.5"'))),
    Odd(
        "55_mesh_missing",
        shape('<mesh filename="meshes/no.stl"/>'),
        ("link 'a'", "'meshes/no.stl' not found: tried '/"),
    ),
    Odd(
        "60_mesh_pkg_unknown",
        shape('<mesh filename="package://none/x.stl"/>', "visual"),
        ("link 'a'", "no package 'none'", "--package none=DIR", "ROS_PACKAGE_PATH"),
    ),
    Odd(
        "46_rounding",
        robot(
            link("a"),
            link("b", INERTIAL + "<!-- -->"),
            link("c", INERTIAL.replace('"1"', '"0"').replace('ixx="0"', 'ixx="-2e-35"')),
            joint(),
            joint("k", "fixed", "b", "c", ""),
        ),
    ),
    Odd(
        "46_lumped",
        robot(link("a"), link("b"), link("c", TILTED), joint(), joint("k", "fixed", "b", "c", "")),
        ("link 'c'", "-0.1", "together with 'b'"),
        strict=True,
    ),
    Odd(
        "57_visual_outside", shape('<mesh filename="/etc/passwd"/>', "visual"), ("link 'a'", "not opened"), strict=True
    ),
    Odd(
        "57_visual_traversal",
        shape('<mesh filename="package://a/../../x.stl"/>', "visual"),
        ("link 'a'", "not opened", "outside the allowed roots"),
        strict=True,
    ),
    Odd("78_box_zero_collision", shape('<box size="1 0 1"/>'), ("<box>", "link 'a'", "size 0 m"), strict=True),
    Odd("79_sphere_zero", shape('<sphere radius="0"/>'), ("<sphere>", "link 'a'", "size 0 m"), strict=True),
    Odd("87_sensor_macro", xacro("<xacro:v1_pelvis_sensors_usb port='x'/>"), ("v1_pelvis_sensors_usb",), strict=True),
    Odd(
        "87_below_sensor",
        xacro('<gazebo reference="a"><sensor name="s"><xacro:noise k="1"/></sensor></gazebo>'),
        ("<xacro:noise>",),
        strict=True,
    ),
    Odd("87_property_without_use", xacro('<xacro:property name="k" value="1"/>'), ("<xacro:property>",), strict=True),
    Odd(
        "transmission_text",
        two_links(LIMIT).replace(
            "</robot>",
            '<transmission name="t"><joint name="j"/><actuator name="m"><mechanicalReduction>one hundred'
            "</mechanicalReduction></actuator></transmission></robot>",
        ),
        ("<mechanicalReduction>", "'one'"),
        strict=True,
    ),
    Odd("78_box_zero_visual", shape('<box size="1 0 1"/>', "visual"), ("<box>", "link 'a'", "size 0")),
    Odd("83_name_slash", robot(link("../../x"), link("a/b"), joint(parent="../../x", child="a/b"))),
    Odd("84_name_unicode", robot(link("a\u202eb"), link("\U0001f916"), joint(parent="a\u202eb", child="\U0001f916"))),
    Odd("85_name_control", robot(link("\x9b2J"), link("b"), joint(parent="\x9b2J"))),
    Odd("86_name_dot", robot(link("."), link("b"), joint(parent="."))),
    Odd("87_xacro_namespace_only", '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">' + link("a") + "</robot>"),
    Odd("xml_version_2", '<?xml version="2.0"?>\n' + robot(link("a")), ("version '2.0'",)),
    Odd("blank_before_declaration", '\n \n<?xml version="1.0"?>\n' + robot(link("a")), (":3: an XML declaration",)),
    Odd("space_before_declaration", ' <?xml version="1.0"?>' + robot(link("a")), (":1: an XML declaration",)),
    Odd(
        "two_declarations",
        '<?xml version="1.0"?>\n<?xml version="1.0"?>' + robot(link("a")),
        (":2: an XML declaration",),
    ),
    Odd("xml_version_0", '<?xml version="0.0" ?>\n' + robot(link("a")), ("version '0.0'",)),
    Odd(
        "namespace_undeclared",
        robot(link("a"), '<gazebo reference="a"><sensor:camera name="c"/></gazebo>'),
        ("Namespace prefix sensor",),
    ),
    Odd(
        "effort_zero",
        two_links('<limit lower="0" upper="1" effort="0" velocity="1"/>'),
        ("'j'", "effort 0 means unlimited"),
    ),
    Odd("locked", two_links('<limit lower="0.5" upper="0.5" effort="1" velocity="1"/>'), ("'j'", "locked")),
    Odd("no_robot_name", "<robot>" + link("a") + "</robot>", ("<robot> has no name",)),
]


@pytest.mark.parametrize("odd", ACCEPT, ids=lambda odd: odd.name)
def test_accepted_with_a_warning_or_silently(odd: Odd, tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(odd.text, encoding="utf-8")
    result = artsim("check", path)
    assert result.exit_code == 0, result.output
    assert all(line.isprintable() for line in result.output.splitlines())
    assert bool(result.stderr) == bool(odd.words)
    for word in odd.words:
        assert word in result.stderr
    found = json.loads(artsim("check", path, "--json").stdout)
    told = {
        (one["line"], one["message"].removeprefix("<limit> of ")) for one in (*found["warnings"], *found["findings"])
    }
    lines = [line for line in result.stderr.splitlines() if not line.startswith("  ")]  # reasons and edits are indented
    assert len(lines) == len(told)
    fails = any(finding["grade"] == "warning" for finding in found["findings"])
    assert artsim("check", path, "--strict").exit_code == (65 if odd.strict else int(fails))


@pytest.mark.parametrize("name", ["31_limit_reversed", "50_mimic_missing"])
def test_left_out_on_request(name: str, tmp_path: Path) -> None:
    """Pinocchio reads both: the refusal names the option that goes on, which leaves out no more than it says."""
    from artsim.loaders.load import load_articulation

    path, row = tmp_path / "robot.urdf", next(row for row in REJECT if row.name == name)
    assert isinstance(row.text, str)
    path.write_text(row.text)
    part = "the range" if name.startswith("31") else "the mimic"
    assert_refused(artsim("check", path), f"(--ignore-unsupported leaves {part} out)")
    told = artsim("check", path, "--ignore-unsupported")
    assert told.exit_code == 0
    assert f"{part} is left out" in told.stderr
    assert_refused(artsim("check", path, "--ignore-unsupported", "--strict"), f"{part} is left out (--strict)")
    robot = load_articulation(path, ignore_unsupported=True)
    joint = robot.joints[0]
    assert (joint.effort, robot.couplings) == (1.0 if name.startswith("31") else 5.0, ())
    assert (joint.lower is None) == name.startswith("31")


@pytest.mark.parametrize("name", ["41_mass_zero", "49_no_inertial"])
def test_run_refuses_what_check_warns_of(name: str, tmp_path: Path) -> None:
    path, output = tmp_path / "robot.urdf", tmp_path / "out.h5"
    path.write_text(next(odd.text for odd in ACCEPT if odd.name == name))
    result = artsim("run", path, "--steps", "1", "--quiet", "-o", output)
    assert_refused(result, f"{path}:3: ", "link 'b'")
    assert not output.exists()


def test_10_no_socket_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        for text in (f"<!DOCTYPE r SYSTEM '{url}/x.dtd'><robot/>", shape(f'<mesh filename="{url}/x.stl"/>')):
            path = tmp_path / "robot.urdf"
            path.write_text(text)
            assert_refused(artsim("check", path))
            with pytest.raises(BlockingIOError):
                server.accept()


def test_12_a_rope_of_400_bodies_is_not_too_deep() -> None:
    text = "<mujoco><worldbody>" + "<body>" * 400 + "</body>" * 400 + "</worldbody></mujoco>"
    assert parse(text.encode(), file="rope.xml").root.tag == "mujoco"


def test_14_a_huge_file_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    with path.open("wb") as file:
        file.truncate(2_000_000_000)
    assert_refused(artsim("check", path), f"{path}: ", "2000 MB", "64 MB", "--max-xml-mb")
    small = tmp_path / "small.urdf"
    small.write_text(robot(link("a")))
    assert_refused(artsim("check", small, "--max-xml-mb", "0.0001"), "--max-xml-mb")
    assert_refused(
        artsim("check", "-", "--max-xml-mb", "0.0001", stdin=small.read_bytes()), "<stdin>: ", "--max-xml-mb"
    )


def test_58_a_link_out_of_the_folder_is_followed_before_it_is_judged(tmp_path: Path) -> None:
    path, mesh = tmp_path / "robot.urdf", tmp_path / "link.stl"
    path.write_text(shape('<mesh filename="link.stl"/>'))
    mesh.symlink_to("/etc/passwd")
    assert_refused(artsim("check", path), f"{path}:2: ", "link 'a'", "outside the allowed roots")
    assert_refused(artsim("run", path, "--steps", "1"), "outside the allowed roots")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "iso-8859-1", "utf-16-declared"])
def test_17_18_other_encodings(encoding: str, tmp_path: Path) -> None:
    name = encoding.removesuffix("-declared")
    head = f'<?xml version="1.0" encoding="{name}"?>\n' if encoding in ("iso-8859-1", "utf-16-declared") else ""
    path = tmp_path / "robot.urdf"
    path.write_bytes((head + robot(link("größe"))).replace("\n", "\r\n").encode(name))
    result = artsim("check", path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "größe" in result.stdout


def test_19_gzip_is_not_unpacked(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "robot.urdf"
    path.write_bytes(gzip.compress(robot(link("a")).encode()))
    assert_refused(artsim("check", path), f"{path}: ", "gzip")


def test_39_numbers_do_not_depend_on_the_locale(tmp_path: Path) -> None:
    names = ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "es_ES.UTF-8")
    before = locale.setlocale(locale.LC_NUMERIC)
    good, bad = tmp_path / "good.urdf", tmp_path / "bad.urdf"
    good.write_text(two_links('<origin xyz="0.5 0 0"/>' + LIMIT))
    bad.write_text(two_links('<origin xyz="0,5 0 0"/>' + LIMIT))
    try:
        for name in names:
            with contextlib.suppress(locale.Error):
                locale.setlocale(locale.LC_NUMERIC, name)
                break
        else:
            pytest.skip("no locale with a decimal comma is installed")
        assert artsim("check", good).exit_code == 0
        assert_refused(artsim("check", bad), "use a dot")
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


def test_47_balance_inertia_makes_the_triangle_hold(tmp_path: Path) -> None:
    from artsim.loaders.load import load_articulation

    path = tmp_path / "robot.urdf"
    path.write_text(inertial(inertia=PLATE))
    told = artsim("check", path, "--balance-inertia", "--strict").stderr
    assert "1, 1, 5 replaced by the nearest possible ones, 2, 2, 4: 1.73 kg m², 0.33 of the whole" in told
    inertial_of_b = load_articulation(path, balance_inertia=True).links[1].inertial
    assert inertial_of_b is not None
    assert inertial_of_b.inertia == pytest.approx((2, 0, 0, 2, 0, 4), rel=1e-15)


def test_46_balance_inertia_repairs_what_is_refused_without(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    for row in REJECT:
        if row.name.startswith("46"):
            assert isinstance(row.text, str)
            path.write_text(row.text)
            assert "nearest possible" in artsim("check", path, "--balance-inertia").stderr


def test_57_a_visual_outside_the_roots_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "models" / "robot"
    folder.mkdir(parents=True)
    secret, path = tmp_path / "secret.stl", folder / "robot.urdf"
    secret.write_text("solid")
    path.write_text(shape(f'<mesh filename="{secret}"/>', "visual"))
    opened: list[str] = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" and args else None)
    assert artsim("check", path, "--meshes").exit_code == 0
    assert str(path) in opened
    assert str(secret) not in opened


def test_54_the_chain_is_kept_for_the_engine_to_compose(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(next(odd.text for odd in ACCEPT if odd.name == "54_mimic_chain"))
    tree = json.loads(artsim("check", path, "--json").stdout)["tree"]
    found = {joint["name"]: joint["mimic"] for entry in tree for joint in entry["joints"]}
    assert found["j"] == {"leader": "k", "coefficients": [0.0, 2.0]}
    assert found["k"] == {"leader": "l", "coefficients": [0.0, 0.5]}
    assert found["l"] is None


CODE = ["${__import__('os').system('touch HERE')}", "${().__class__}", "${open('/etc/hostname').read()}"]


@pytest.mark.parametrize("code", CODE)
def test_88_xacro_code_runs_neither_unasked_nor_asked(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "robot.urdf.xacro"
    path.write_text(f'<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">\n<link name="{code}"/></robot>')
    assert_refused(artsim("check", path), f"{path}: ", "--xacro")
    plain = tmp_path / "robot.urdf"
    plain.write_text(path.read_text())
    assert_refused(artsim("check", plain), f"{plain}:2: ", "run xacro first")
    pytest.importorskip("xacro")
    assert_refused(artsim("check", path, "--xacro"), f"{path}:", "xacro: ")
    assert not (tmp_path / "HERE").exists()


def test_88_load_yaml_needs_the_option(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    secret = tmp_path / "secret.yaml"
    secret.write_text("name: hush")
    path = tmp_path / "robot.urdf"
    path.write_text(
        '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">\n'
        f'<xacro:property name="y" value="${{xacro.load_yaml(\'{secret}\')}}"/><link name="${{y[\'name\']}}"/></robot>'
    )
    result = artsim("check", path)
    assert_refused(result, f"{path}:2: ", "run xacro first", "where you trust the file")
    assert "hush" not in result.output
    assert "hush" in artsim("check", path, "--xacro").stdout


ESCAPES = {
    "a frame": "${[g:=((g.gi_frame.f_back.f_back.f_back.f_back.f_builtins['__import__']('os').system('touch HERE')) "
    "for _ in [1]), list(g)][1]}",
    "a walrus": "${(a:=1)}",
    "a lambda": "${(lambda: 1)()}",
    "a comprehension": "${[x for x in (1, 2)]}",
    "a class": "${python.vars(python.type)}",
    "a class of a value": "${python.type(1).mro()}",
    "time": "${9**9**9}",
    "memory": "${len('x' * 10**11)}",
    "macros": '<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>',
    "a device": "${xacro.load_yaml('/dev/zero')}",
    "an include of its own": '<xacro:include filename="robot.urdf.xacro"/>',
}


@pytest.mark.parametrize("how", ESCAPES)
def test_88_macros_stay_in_their_process(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, soon, and nothing done: xacro alone lets the first run any program."""
    pytest.importorskip("xacro")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "robot.urdf.xacro"
    inner = ESCAPES[how] if ESCAPES[how].startswith("<") else f'<link name="{ESCAPES[how]}"/>'
    path.write_text(f'<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">\n{inner}</robot>')
    began = time.monotonic()
    assert_refused(artsim("check", path, "--xacro"), f"{path}:", "xacro: ")
    assert time.monotonic() - began < 20
    assert not (tmp_path / "HERE").exists()


ACTS = {
    "writes": "open('HERE', 'w')",
    "os.open": "__import__('os').open('HERE', 65)",
    "starts": "__import__('os').system('touch HERE')",
    "subprocess": "__import__('subprocess').run(['touch', 'HERE'])",
    "connects": "__import__('socket').socket()",
    "removes": "__import__('os').remove('robot.urdf.xacro')",
}


@pytest.mark.parametrize("act", ACTS)
def test_88_code_that_got_out_could_do_little(act: str, tmp_path: Path) -> None:
    """The child's limits by themselves, without the refusal of expressions."""
    (tmp_path / "robot.urdf.xacro").write_text("<robot/>")
    code = (
        "import sys, time\nfrom artsim.loaders import xacro_child as child\n"
        f"child.limit(5, 2**30)\nsys.addaudithook(child.refuse_acts)\n{ACTS[act]}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "RefusedError" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["robot.urdf.xacro"]


def test_xacro_expands_macros_and_finds_packages(tmp_path: Path) -> None:
    pytest.importorskip("xacro")
    package = tmp_path / "arm_description"
    package.mkdir()
    (package / "arm.xacro").write_text(
        '<robot xmlns:xacro="http://ros.org/wiki/xacro"><xacro:macro name="arm" params="n">'
        '<link name="arm_${n * 2}"/></xacro:macro></robot>'
    )
    path = tmp_path / "robot.urdf.xacro"
    path.write_text(
        '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">\n'
        '<xacro:include filename="$(find arm_description)/arm.xacro"/><xacro:arm n="21"/></robot>'
    )
    assert "arm_42" in artsim("check", path, "--xacro", "--package", f"arm_description={package}").stdout
    assert_refused(artsim("check", path, "--xacro"), "arm_description")
    laughs = tmp_path / "laughs.xacro"
    laughs.write_text("<!DOCTYPE r [<!ENTITY a 'ha'>]><robot name='&a;'/>")
    assert_refused(artsim("check", laughs, "--xacro"), "DOCTYPE")


def chain(count: int, kind: str, parent: Any) -> str:
    links = [link(f"l{i}") for i in range(count + 1)]
    joints = [joint(f"j{i}", kind, parent(i), f"l{i + 1}", "") for i in range(count)]
    return robot(*links, *joints)


def lines_of(work: Callable[[], object]) -> int:
    """The lines of Python that it runs: its work, whatever the machine."""
    count = 0

    def trace(_: object, event: str, __: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def mimics(count: int, parent: Any) -> str:
    """Joints that each follow the one before."""
    joints = [
        joint(f"j{i}", "continuous", parent(i), f"l{i + 1}", mimic(f"j{i - 1}") if i else "") for i in range(count)
    ]
    return robot(*(link(f"l{i}") for i in range(count + 1)), *joints)


LARGE = {
    "89_chain": lambda n: chain(n, "continuous", lambda i: f"l{i}"),
    "90_star": lambda n: chain(n, "fixed", lambda i: "l0"),
    "star of hinges": lambda n: chain(n, "continuous", lambda i: "l0"),
    "chain of mimics": lambda n: mimics(n, lambda i: f"l{i}"),
    "star of mimics": lambda n: mimics(n, lambda i: "l0"),
    "unknown elements": lambda n: robot(link("a"), *(f"<x{i}/>" for i in range(n))),
}


@pytest.mark.parametrize("name", LARGE)
def test_89_90_large_robots_are_checked_with_linear_work(name: str, tmp_path: Path) -> None:
    """Four times the joints take four times the lines of Python, not sixteen times."""
    lines = []
    for count in (700, 2800):  # more dofs than are looked at in dense matrices
        path = tmp_path / f"{count}.urdf"
        path.write_text(LARGE[name](count))
        lines.append(lines_of(lambda path=path: artsim("check", path)))  # type: ignore[misc]
        result = artsim("check", path)
        assert result.exit_code == 0 and len(result.stdout) < 2_000_000
    assert lines[1] < 4.4 * lines[0]


@pytest.mark.parametrize(("count", "name"), [(5000, "89_chain"), (20_000, "90_star")])
def test_a_loop_in_a_large_robot_is_found(count: int, name: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    text = LARGE[name](count)
    path.write_text(text.replace("</robot>", joint("back", "fixed", f"l{count}", "l0", "") + "</robot>"))
    assert_refused(artsim("check", path), "cycle")


def test_a_mimic_cycle_of_5000_is_found_without_recursion(tmp_path: Path) -> None:
    count = 5000
    joints = [
        joint(f"j{i}", child=f"l{i}", parent="a", inside=LIMIT + mimic(f"j{(i + 1) % count}")) for i in range(count)
    ]
    path = tmp_path / "robot.urdf"
    path.write_text(robot(link("a"), *(link(f"l{i}") for i in range(count)), *joints))
    assert_refused(artsim("check", path), "cycle: 'j0' -> 'j1' -> ")


# --- the command line ------------------------------------------------------------------------------------------------

GOOD = robot(link("a"), link("b"), joint(inside='<axis xyz="0 0 1"/>' + LIMIT))


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.urdf"
    path.write_text(GOOD)
    return path


@pytest.mark.parametrize("steps", ["0", "-1", "1e30", "nan", "abc"])
def test_103_steps(steps: str, good: Path, tmp_path: Path) -> None:
    result = artsim("run", good, "--steps", steps, "-o", tmp_path / "out.h5")
    assert result.exit_code == 2
    assert "--steps" in result.stderr
    assert not (tmp_path / "out.h5").exists()


@pytest.mark.parametrize(
    ("value", "words"), [("0,0", ("1", "2")), ("nan", ()), ("j=nan", ("j",)), ("k=0", ("'k'",)), ("j=x", ("x",))]
)
def test_104_start_positions(value: str, words: tuple[str, ...], good: Path, tmp_path: Path) -> None:
    result = artsim("run", good, "--q0", value, "-o", tmp_path / "out.h5")
    assert result.exit_code == 2
    for word in words:
        assert word in result.stderr
    assert not (tmp_path / "out.h5").exists()


def test_105_output_that_cannot_be(good: Path, tmp_path: Path) -> None:
    assert artsim("run", good, "-o", good).exit_code in (2, 73)
    assert artsim("run", good, "-o", good, "--force").exit_code == 2
    assert good.read_text() == GOOD
    assert artsim("run", good, "-o", tmp_path).exit_code in (2, 73)
    assert artsim("run", good, "-o", "/dev/full").exit_code == 73
    assert artsim("run", good, "-o", tmp_path / "no" / "out.h5").exit_code == 73


def test_106_an_output_is_kept_unless_forced(good: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.h5"
    output.write_bytes(b"precious")
    assert artsim("run", good, "--steps", "1", "-o", output).exit_code == 73
    assert output.read_bytes() == b"precious"


def test_a_missing_file_is_exit_66(tmp_path: Path) -> None:
    for path in (tmp_path / "no.urdf", tmp_path, tmp_path / "x\x1b[2J.urdf"):
        result = artsim("check", path)
        assert result.exit_code == 66
        assert len(result.stderr.splitlines()) == 1
        assert result.stderr.strip().isprintable()


def test_standard_input(good: Path) -> None:
    assert artsim("check", "-", stdin=good.read_bytes()).stdout == artsim("check", good).stdout
    assert_refused(artsim("check", "-", stdin=b"<model/>"), "<stdin>:1: root is <model>")


def test_a_pipe_without_writer_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    os.mkfifo(path)
    assert_refused(artsim("check", path), "not a regular file")


def test_an_internal_error_is_one_line_and_exit_70(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise ZeroDivisionError("boom\nbang")

    from artsim.cli import check

    monkeypatch.setattr(check, "load_models", fail)
    result = artsim("check", good)
    assert (result.exit_code, len(result.stderr.splitlines())) == (70, 1)
    assert "Traceback" in artsim("--debug", "check", good).stderr


def command(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    """The command line, in a process of its own."""
    words = [sys.executable, "-m", "artsim", *map(str, arguments)]
    return subprocess.Popen(words, stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, **options)


def test_closed_and_full_output(good: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    for output, code in ((write, 141), (os.open("/dev/full", os.O_WRONLY), 74)):
        process = command("check", good, stdout=output)
        assert process.wait(30) == code
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
        os.close(output)


def test_check_and_help_import_nothing_heavy(good: Path) -> None:
    script = (
        "import sys\nfrom artsim.cli.main import main\nsys.argv = ['artsim', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "print(sorted({'numba', 'llvmlite', 'trimesh', 'scipy', 'h5py', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    for arguments in (["check", str(good)], ["--help"]):
        done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, check=True, text=True)
        assert done.stderr == "[]\n"
