"""SDF worlds: what may touch what (as in Drake), masks, friction, includes that are absent, what is not read, and how
much work hostile files make.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.loaders.load import SceneEntry, load_articulation, load_scene, load_text
from artsim.loaders.sdf import include
from artsim.loaders.sdf.frames import Scope
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation, Geom
from artsim.sim.foundation.errors import ModelError
from artsim.sim.geometry.collision_pairs import collision_pairs, contact_parameters
from tests.loaders.sdf_models import inertial

pytestmark = pytest.mark.small

ROUND = "<inertial><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.01</iyy><izz>0.01</izz></inertia></inertial>"


def box(name: str, place: str = "0 0 0", size: str = "1 1 1", surface: str = "", more: str = "") -> str:
    """A link that is a box."""
    return (
        f'<link name="{name}"><pose>{place} 0 0 0</pose>{ROUND}{more}<collision name="c"><geometry><box>'
        f"<size>{size}</size></box></geometry>{surface and f'<surface>{surface}</surface>'}</collision></link>"
    )


def joint(name: str, kind: str, parent: str, child: str) -> str:
    """A joint about z."""
    axis = "" if kind == "fixed" else "<axis><xyz>0 0 1</xyz></axis>"
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{axis}</joint>'


def model(name: str, *parts: str, static: bool = False) -> str:
    """A model of a world."""
    return f'<model name="{name}">{"<static>1</static>" * static}{"".join(parts)}</model>'


def world(*parts: str, version: str = "1.11") -> str:
    """A world of these."""
    return f'<sdf version="{version}"><world name="w">{"".join(parts)}</world></sdf>'


def read(text: str, **options: Any) -> Articulation:
    """The text of a file w.sdf."""
    return load_text(text, name="w.sdf", **options)


def touching(robot: Articulation, *, self_collide: bool = False) -> set[str]:
    """Pairs of links that may touch, in alphabetical order."""
    pairs = collision_pairs(robot, compile_model(robot), self_collide=self_collide)
    names = [robot.links[n].name for n, _ in pairs.geoms]
    return {" ".join(sorted((names[a], names[b]))) for a, b in np.argwhere(np.triu(pairs.allowed))}


def messages(robot: Articulation) -> list[str]:
    """The warnings."""
    return [note.message for note in robot.notes]


# --- what may touch --------------------------------------------------------------------------------------------------

SHOP = (
    model("ground", box("slab"), static=True),
    model("wall", box("a"), box("b"), static=True),
    model(
        "arm",
        box("base") + box("cover") + box("one") + box("two"),
        joint("held", "fixed", "world", "base") + joint("on", "fixed", "base", "cover"),
        joint("j", "revolute", "base", "one") + joint("k", "revolute", "one", "two"),
    ),
    model("bench", box("top"), joint("held", "fixed", "world", "top")),
    model("crate", box("body")),
    model("door", box("leaf"), joint("hinge", "revolute", "world", "leaf")),
)
STILL = ("ground::slab", "wall::a", "wall::b", "bench::top", "arm::base", "arm::cover")
MOVING = ("arm::one", "arm::two", "crate::body", "door::leaf")


def test_what_hangs_on_the_world_touches_what_stands_there() -> None:
    """With self_collide as Drake has it, which knows no models that do not: a link does not touch those that a joint of
    its own connects it with, and whatever stands does not touch what stands.
    """
    every = {" ".join(sorted((one, other))) for one in MOVING for other in (*STILL, *MOVING) if one != other}
    drakes = every - {"arm::base arm::one", "arm::one arm::two"}
    robot = read(world(*SHOP))
    assert touching(robot, self_collide=True) == drakes
    assert touching(robot) == {pair for pair in drakes if pair.count("arm::") < 2}


def test_links_that_a_joint_connects_never_touch() -> None:
    """Also where it closes a loop, and where it is a joint of the world; those fixed to them do."""
    loop = joint("j", "revolute", "a", "b") + joint("k", "revolute", "b", "c") + joint("l", "revolute", "a", "c")
    on = joint("on", "fixed", "c", "d")
    ring = model("ring", "<self_collide>1</self_collide>", *map(box, "abcd"), loop, on)
    robot = read(world(ring, model("m", box("e")), joint("between", "revolute", "ring::a", "m::e")))
    assert touching(robot) == {"ring::a ring::d", "ring::b ring::d", *(f"m::e ring::{name}" for name in "bcd")}


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_nested_models_are_models_of_their_own(outer: bool, inner: bool, alone: bool) -> None:
    """By the tests of Gazebo's engines (NestedModelSelfCollide): links of a model touch by its own self_collide, those
    of a model and of one nested in it touch always.
    """
    flag = ("", "<self_collide>1</self_collide>")
    nested = model("n", box("c"), box("d"), flag[inner])
    whole = model("m", box("a"), box("b"), flag[outer], nested)
    robot = read(f'<sdf version="1.11">{whole}</sdf>' if alone else world(whole))
    across = {f"{one} n::{other}" for one in "ab" for other in "cd"}
    expected = across | ({"a b"} if outer else set()) | ({"n::c n::d"} if inner else set())
    found = {pair.replace("m::", "") for pair in touching(robot)}
    assert found == expected


@pytest.mark.parametrize(
    "support",
    [
        model("m", box("slab", "0 0 -0.5", "9 9 1"), static=True),
        model("m", '<link name="p"><collision name="c"><geometry><plane/></geometry></collision></link>', static=True),
        model("m", box("slab", "0 0 -0.5", "9 9 1"), joint("j", "fixed", "world", "slab")),
        model("m", model("n", box("slab", "0 0 -0.5", "9 9 1")), static=True),
        '<frame name="f"/>' + model("m", box("slab", "0 0 -0.5", "9 9 1")) + joint("j", "fixed", "f", "m::slab"),
        "<include><uri>model://ground_plane</uri></include>",
    ],
)
def test_bodies_rest_on_what_stands_in_their_world(support: str, tmp_path: Path) -> None:
    path = tmp_path / "w.sdf"
    path.write_text(world(support, model("crate", box("body", "0 0 0.1", "0.2 0.2 0.2"))))
    run = artsim.simulate(path, steps=10)
    assert run.final["qpos"][-7:][2] == pytest.approx(0.1, abs=1e-6)


def test_robots_of_other_files_touch_a_world_and_its_models(tmp_path: Path) -> None:
    mass = '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    inside = f'<inertial>{mass}</inertial><collision><geometry><sphere radius="1"/></geometry></collision>'
    links = "".join(f'<link name="{name}">{inside}</link>' for name in "ab")
    hinge = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{links}{hinge}</robot>')
    (tmp_path / "w.sdf").write_text(world(*SHOP))
    scene = load_scene([SceneEntry("w", str(tmp_path / "w.sdf")), SceneEntry("r", str(tmp_path / "r.urdf"))])
    names = {" ".join(sorted(name.removeprefix("w/") for name in pair.split())) for pair in touching(scene)}
    reached = [(name, "r/b") for name in (*STILL, *MOVING)] + [(name, "r/a") for name in MOVING]
    assert names >= {" ".join(sorted(pair)) for pair in reached}
    assert {pair for pair in names if "r/" not in pair} == touching(read(world(*SHOP)))


# --- masks -----------------------------------------------------------------------------------------------------------


def bits(category: str = "", collide: str = "", more: str = "") -> str:
    """<contact> with masks."""
    masks = (f"<category_bitmask>{category}</category_bitmask>" if category else "") + (
        f"<collide_bitmask>{collide}</collide_bitmask>" if collide else ""
    )
    return f"<contact>{masks}{more}</contact>"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("1", "2"), ("1", "2")),
        (("1", "2"), ("2", "1")),
        (("1", "2"), ("2", "4")),
        (("4", "0"), ("2", "1")),
        (("4", "0"), ("", "4")),
        (("", "1"), ("", "2")),
        (("", "0x6"), ("2", "")),
        (("1", ""), ("2", "4")),
        (("0", "0"), ("", "")),
        (("0x10000", "0x10000"), ("", "")),
        (("", ""), ("", "")),
    ],
)
def test_categories_and_masks_are_the_specifications(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Two touch if (category₁ & collide₂) | (category₂ & collide₁), of 16 bits; a category that is not given is as the
    mask, a mask that is not given has all bits. A ground has all of both.
    """

    def numbers(pair: tuple[str, str]) -> tuple[int, int]:
        collide = int(pair[1] or "0xffff", 0) & 0xFFFF
        return (int(pair[0], 0) & 0xFFFF if pair[0] else collide), collide

    (a, b), (c, d) = numbers(one), numbers(other)
    robot = read(world(model("m", box("x", surface=bits(*one))), model("n", box("x", surface=bits(*other)))))
    assert bool(touching(robot)) is bool(a & d | b & c)
    ground = [Geom("ground", "plane", "collision")]
    pairs = collision_pairs(robot, compile_model(robot), world=ground)
    assert pairs.allowed[2, :2].tolist() == [bool(a | b), bool(c | d)]


def test_what_contact_says_and_is_not_done_is_told() -> None:
    ghost = bits(more="<collide_without_contact>true</collide_without_contact>")
    robot = read(world(model("m", box("x", surface=ghost)), model("n", box("x"))))
    assert touching(robot) == set()
    assert [text for text in messages(robot) if "<collide_without_contact>: the shape touches nothing" in text]
    wide = read(world(model("m", box("x", surface=bits("", "0x1ffff")), box("y", surface=bits("", "0x10001")))))
    assert messages(wide) == [
        "<contact> of <surface> of <collision> of link 'y': collide_bitmask '0x10001': 16 bits count, 0x0001"
    ]
    told = messages(read(world(model("m", box("x", surface=bits(more="<elastic_modulus>1e6</elastic_modulus>"))))))
    assert ["<elastic_modulus> is ignored" in text for text in told] == [True]


# --- surfaces --------------------------------------------------------------------------------------------------------


def slides(coefficient: str) -> str:
    """ODE's friction."""
    return f"<friction><ode><mu>{coefficient}</mu><mu2>{coefficient}</mu2></ode></friction>"


def test_the_smaller_friction_of_two_counts() -> None:
    """As in Gazebo: wheels on its ground_plane, whose coefficient is 100, slide by their own."""
    names = ("100", "0.3", "", "0.8")
    robot = read(world(*(model(f"m{n}", box("x", surface=name and slides(name))) for n, name in enumerate(names))))
    pairs = collision_pairs(robot, compile_model(robot))
    values = [float(name or 1) for name in names]
    for a in range(4):
        for b in range(4):
            assert contact_parameters(pairs.surfaces, a, b).friction[0] == min(values[a], values[b])


def test_friction_without_bound() -> None:
    robot = read(world(model("m", box("x", surface=slides("-1")))))
    assert robot.links[0].geoms[0].friction == (100.0, 0.0, 0.0)
    assert ["is without bound in Gazebo; 100 here" in text for text in messages(robot)] == [True]


# --- frames of their own ---------------------------------------------------------------------------------------------


def test_what_stands_in_a_link_may_name_it() -> None:
    """As exporters of CAD programs write: relative_to the link itself, to the last bit where it stands."""

    def text(frame: str) -> str:
        shapes = "".join(
            f'<{role} name="s"><pose{frame}>0.1 0.2 0.3 0.4 0.5 0.6</pose><geometry><sphere/></geometry></{role}>'
            for role in ("visual", "collision")
        )
        mass = ROUND.replace("<mass>", f"<pose{frame}>0.1 0 0.2 0.3 0 0</pose><mass>")
        tip = f'<frame name="f" attached_to="a"><pose{frame}>1 0 0 0 0 0</pose></frame>'
        inner = f'<link name="a"><pose>3 2 1 0.1 0.2 0.3</pose>{mass}{shapes}</link>{tip}'
        return f'<sdf version="1.9"><model name="m">{inner}</model></sdf>'

    (one,), (other,) = (read(text(frame)).links for frame in ("", ' relative_to="a"'))
    assert one.inertial == other.inertial
    assert one.geoms == other.geoms
    away = text("").replace("<inertial><pose>", '<inertial><pose relative_to="f">')
    with pytest.raises(ModelError, match="is relative_to 'f'; SDFormat has inertials in their links alone"):
        read(away)
    assert read(away, ignore_unsupported=True).links[0].inertial == one.inertial


# --- what is not read ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("<mass>1</mass>", "<maas>1</maas>", "<maas> of <inertial> of link 'b' is not part of SDFormat"),
        ("<ixx>", "<ixxx>3</ixxx><ixx>", "<ixxx> of <inertia>"),
        ("<size>1", '<size unit="mm">1', "attribute 'unit' is not part of SDFormat"),
        ("<geometry>", '<pose relativ_to="b">0 0 0 0 0 0</pose><geometry>', "'relativ_to' is not part of SDFormat"),
        ("<geometry>", '<pose frame="b">0 0 0 0 0 0</pose><geometry>', "attribute 'frame' is not part of SDFormat"),
        ("<box>", "<box><radius>1</radius>", "<radius> of <box> of <collision> of link 'b'"),
        ("</collision>", "<contact/></collision>", "<contact> of <collision> of link 'b'"),
        ("</link>", '<inertia mass="2"/></link>', "<inertia> of link 'b' is not part of SDFormat"),
        ("</axis>", "<damping>3</damping></axis>", "<damping> of <axis> of joint 'j'"),
        ("<limit>", "<limit><efort>3</efort>", "<efort> of <limit> of <axis> of joint 'j'"),
        ("<limit>", '<limit effort="3">', "attribute 'effort' is not part of SDFormat; ignored"),
        ("<mu>", "<mu3>2</mu3><mu>", "<mu3> of <ode> of <friction>"),
        ("<axis>", "<axis><use_parent_model_frame>1</use_parent_model_frame>", "<use_parent_model_frame> of <axis>"),
        ("<world ", '<world gravity="0" ', "attribute 'gravity'"),
        ("</world>", "<gravty>0 0 0</gravty></world>", "<gravty> of world 'w' is not part of SDFormat"),
        ('type="revolute"', 'type="revolute" parent="x"', "joint 'j': attribute 'parent'"),
    ],
)
def test_words_that_are_written_wrong_are_told(before: str, after: str, told: str) -> None:
    """By name, with the line; --strict refuses them."""
    inner = "<axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis>"
    hinge = joint("j", "revolute", "world", "b").replace("<axis><xyz>0 0 1</xyz></axis>", inner)
    text = world(model("m", "\n" + box("b", surface=slides("0.5")), hinge))
    assert messages(read(text)) == []
    wrong = text.replace(before, after, 1)
    assert wrong != text
    notes = [note for note in read(wrong).notes if told in note.message]
    assert len(notes) == 1
    assert notes[0].source.line == text[: text.index(before)].count("\n") + 1
    with pytest.raises(ModelError, match="--strict"):
        read(wrong, strict=True)


def test_what_gazebo_writes_into_files_is_no_cause_for_warnings() -> None:
    """All of its solvers' settings, its looks, its sensors and names of other programs."""
    ode = "<max_vel>0.1</max_vel><min_depth>0.001</min_depth><soft_cfm>0</soft_cfm><soft_erp>0.2</soft_erp>"
    bullet = (
        "<split_impulse>1</split_impulse><split_impulse_penetration_threshold>0</split_impulse_penetration_threshold>"
    )
    friction = (
        "<friction><ode><mu>1</mu><mu2>1</mu2><fdir1>0 0 0</fdir1><slip1>0</slip1><slip2>0</slip2></ode><bullet>"
        "<friction>1</friction><friction2>1</friction2><rolling_friction>1</rolling_friction></bullet><torsional>"
        "<coefficient>1</coefficient><use_patch_radius>0</use_patch_radius><patch_radius>0</patch_radius>"
        "<surface_radius>0</surface_radius><ode><slip>0</slip></ode></torsional></friction>"
        "<bounce><restitution_coefficient>0</restitution_coefficient><threshold>1e5</threshold></bounce>"
    )
    surface = friction + (
        f"<contact><collide_without_contact>0</collide_without_contact><collide_without_contact_bitmask>1"
        f"</collide_without_contact_bitmask><collide_bitmask>65535</collide_bitmask><poissons_ratio>0.3</poissons_ratio>"
        f"<elastic_modulus>-1</elastic_modulus><ode>{ode}</ode><bullet>{bullet}</bullet></contact>"
    )
    look = "<material><ambient>1 1 1 1</ambient><script><uri>x</uri></script><pbr><metal/></pbr></material>"
    seen = f'<visual name="v"><geometry><sphere/></geometry>{look}<transparency>0</transparency></visual>'
    link = box(
        "a", surface=surface, more=seen + '<sensor name="s" type="imu"><noise/></sensor><enable_wind>0</enable_wind>'
    )
    physics = (
        '<physics name="p" default="0" type="ode"><max_step_size>0.001</max_step_size><real_time_factor>1'
        "</real_time_factor><ode><solver><type>quick</type></solver></ode></physics><wind/><scene><grid>0</grid></scene>"
    )
    robot = read(
        world(physics, model("m", link, '<plugin name="p" filename="x"><any/></plugin>'), '<gui fullscreen="0"/>')
    )
    assert messages(robot) == []
    assert {"<plugin>", "<sensor>", "<gui>", "<wind>"} <= {item.what for item in robot.ignored}


def test_older_versions_may_give_one_name_twice() -> None:
    """A joint with the name of its link is called anew, as Gazebo does; later versions refuse."""
    text = model("m", box("a") + box("b") + box("b_joint"), joint("b", "revolute", "a", "b"))
    robot = read(world(text, version="1.6"))
    assert "m::b_joint0" in [item.name for item in robot.joints]
    assert ["called 'b_joint0'" in told for told in messages(robot)] == [True]
    with pytest.raises(ModelError, match="joint 'b' has the name of a link"):
        read(world(text, version="1.7"))


# --- includes --------------------------------------------------------------------------------------------------------

FUEL = "https://fuel.gazebosim.org/1.0/OpenRobotics/models/"
OLD_FUEL = "https://fuel.ignitionrobotics.org/1.0/openrobotics/models/"


def including(uri: str, more: str = "") -> str:
    """A world with a crate and this <include>, on the second line."""
    return world(model("crate", box("body")), f"\n<include><uri>{uri}</uri>{more}</include>")


@pytest.mark.parametrize(
    "uri",
    [
        "model://ground_plane",
        "ground_plane",
        FUEL + "Ground Plane",
        FUEL + "Ground%20Plane/2",
        OLD_FUEL + "ground plane/tip",
    ],
)
@pytest.mark.parametrize("at_hand", [False, True])
def test_gazebos_ground_plane_is_known(uri: str, at_hand: bool, tmp_path: Path) -> None:
    """A static plane with the friction of Gazebo's, unless a model of this name is at hand."""
    if at_hand:
        (tmp_path / "ground_plane").mkdir()
        text = f'<sdf version="1.9">{model("mine", box("own"), static=True)}</sdf>'
        (tmp_path / "ground_plane" / "model.sdf").write_text(text)
    (tmp_path / "w.sdf").write_text(including(uri))
    robot = load_articulation(tmp_path / "w.sdf")
    if at_hand and "fuel" not in uri:
        assert {link.name for link in robot.links} == {"crate::body", "mine::own"}
        return
    assert [link.name for link in robot.links] == ["ground_plane::link", "crate::body"]
    (geom,) = (geom for geom in robot.links[0].geoms if geom.role == "collision")
    assert (geom.kind, geom.friction) == ("plane", (100.0, 0.0, 0.0))
    assert touching(robot) == {"crate::body ground_plane::link"}
    assert messages(robot) == []
    assert messages(read(robot.text)) == [], "what outputs hold is read again without it"
    assert len(read(including(uri)).links) == 2, "a text, too"


@pytest.mark.parametrize("uri", ["model://sun", FUEL + "Sun", OLD_FUEL + "Sun/1"])
def test_gazebos_sun_moves_nothing(uri: str) -> None:
    robot = read(including(uri))
    assert [link.name for link in robot.links] == ["crate::body"]
    assert messages(robot) == []
    assert "<include> of a light or an actor" in {item.what for item in robot.ignored}


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("model://shelf", ("'model://shelf' not found: tried", "shelf'", "--mesh-root DIR", "GZ_SIM_RESOURCE_PATH")),
        ("shelf", ("'shelf' not found: tried", "--mesh-root DIR")),
        ("model://sunflower", ("not found",)),
        (FUEL + "Shelf", ("https:// is not read", "--package NAME=DIR")),
        ("https://fuel.gazebosim.org/1.0/someone/models/Ground Plane", ("https:// is not read",)),
    ],
)
def test_absent_models_are_told_in_a_line_or_left_out(uri: str, words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "w.sdf"
    path.write_text(including(uri))
    with pytest.raises(ModelError) as caught:
        load_articulation(path)
    told = str(caught.value)
    assert told.startswith(f"{path}:2: <include>: {uri[:80]!r}")
    assert all(word in told for word in (*words, "(--ignore-unsupported leaves the model out)"))
    assert "\n" not in told
    robot = load_articulation(path, ignore_unsupported=True)
    assert [link.name for link in robot.links] == ["crate::body"]
    assert [note.source.line for note in robot.notes if uri[:40] in note.message] == [2]


def test_merged_models_keep_what_names_their_own_frame(tmp_path: Path) -> None:
    """Shapes and joints of a merged model that stand in its __model__."""
    shape = (
        '<collision name="c"><pose relative_to="__model__">0 0 1 0 0 0</pose><geometry><sphere/></geometry></collision>'
    )
    inner = f'<link name="b"><pose>0 2 0 0 0 0</pose>{inertial(1.0)}{shape}</link>'
    (tmp_path / "n.sdf").write_text(f'<sdf version="1.9"><model name="n">{inner}</model></sdf>')
    place = "<pose>5 0 0 0 0 1</pose>"
    text = f'<sdf version="1.9"><model name="m">{box("a")}<include{{}}><uri>n.sdf</uri>{place}</include></model></sdf>'
    found = []
    for merge in ("", ' merge="true"'):
        (tmp_path / "m.sdf").write_text(text.format(merge))
        found.append(load_articulation(tmp_path / "m.sdf").links[1].geoms[0].pose.position)
    np.testing.assert_allclose(*found, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found[0], (0, -2, 1), rtol=0, atol=1e-15)


# --- hostile files ---------------------------------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """A list with one number, how often the function was called."""
    calls, function = [0], getattr(owner, name)

    def wrapper(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        return function(*args, **options)

    monkeypatch.setattr(owner, name, wrapper)
    return calls


def test_each_file_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ten files that include the next twice, and one that is included 300 times, in one model's folder."""
    for n in range(10):
        more = "".join(f"<include><uri>m{n + 1}.sdf</uri><name>{name}</name></include>" for name in "xy" if n < 9)
        (tmp_path / f"m{n}.sdf").write_text(f'<sdf version="1.9"><model name="m"><link name="a"/>{more}</model></sdf>')
    row = "".join(f"<include><uri>m9.sdf</uri><name>n{n}</name></include>" for n in range(300))
    (tmp_path / "row.sdf").write_text(f'<sdf version="1.9"><model name="m"><link name="a"/>{row}</model></sdf>')
    read_files = counted(monkeypatch, include, "parse")
    looked_for = counted(monkeypatch, include, "look_for")
    assert len(load_articulation(tmp_path / "m0.sdf").links) == 1023
    assert (read_files[0], looked_for[0]) == (9, 9)
    assert len(load_articulation(tmp_path / "row.sdf").links) == 301
    assert (read_files[0], looked_for[0]) == (10, 10)
    robot = load_articulation(tmp_path / "row.sdf")
    assert {link.source.file for link in robot.links[1:]} == {str(tmp_path / "m9.sdf")}, "every copy knows its file"


def chain(kind: str, count: int) -> str:
    """So many elements, each in the next one's frame."""
    if kind == "models":  # nested ones, joined at their own frames
        parts = "".join(
            f'<model name="m{n}"><pose relative_to="m{n + 1}"/><link name="a"/></model>'
            f'<joint name="j{n}" type="fixed"><parent>m{n + 1}</parent><child>m{n}</child></joint>'
            for n in range(count)
        )
        return parts + f'<model name="m{count}"><link name="a"/></model>'
    if kind == "joints":
        return "<link name='l0'/>" + "".join(
            f'<link name="l{n + 1}"><pose relative_to="j{n}"/></link><joint name="j{n}" type="fixed">'
            f'<pose relative_to="l{n}"/><parent>{"j" if n else "l"}{max(n - 1, 0)}</parent>'
            f"<child>l{n + 1}</child></joint>"
            for n in range(count)
        )
    ends = [*(f"f{n + 1}" for n in range(count - 1)), "a"]
    one = {
        "attached": '<frame name="f{}" attached_to="{}"/>',
        "in": '<frame name="f{}"><pose relative_to="{}"/></frame>',
    }
    made = one.get(kind, '<frame name="f{}" attached_to="__model__"/>')
    return "".join(made.format(n, end) for n, end in enumerate(ends)) + '<link name="a"/>'


@pytest.mark.parametrize("kind", ["attached", "in", "own", "models", "joints"])
def test_chains_of_frames_take_linear_work(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names looked up for 400 elements are at most four times those for 100, and few for each."""
    looked_up, firsts = counted(monkeypatch, Scope, "split"), counted(monkeypatch, Scope, "of_kind")
    found = []
    for count in (100, 400):
        before = looked_up[0], firsts[0]
        read(f'<sdf version="1.9"><model name="m">{chain(kind, count)}</model></sdf>')
        found.append((looked_up[0] - before[0], firsts[0] - before[1]))
    assert found[1][0] <= 4 * found[0][0] + 40
    assert found[1][0] <= 16 * 400
    assert found[1][1] <= 4 * found[0][1] + 40


# --- what is only seen -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("", "has no <geometry>: not drawn"),
        ("<geometry><box/><sphere/></geometry>", "holds 2 shapes"),
        (
            "<geometry><polyline/><polyline/></geometry>",
            "<polyline> of <visual> of link 'a' is not supported: not drawn",
        ),
        ("<geometry><mesh><uri>https://x.org/a.dae</uri></mesh></geometry>", "is not drawn: https:// is not read"),
    ],
)
def test_visuals_that_cannot_be_drawn_are_told(inside: str, told: str, tmp_path: Path) -> None:
    """They move nothing; the same shape in a collision is refused, and left out on request."""
    path = tmp_path / "w.sdf"
    path.write_text(world(model("m", box("a", more=f'<visual name="v">{inside}</visual>'))))
    (note,) = load_articulation(path).notes
    assert told in note.message
    path.write_text(world(model("m", box("a", more=f'<collision name="v">{inside}</collision>'))))
    with pytest.raises(ModelError):
        load_articulation(path)
    if "mesh" in inside or "polyline" in inside:
        assert len(load_articulation(path, ignore_unsupported=True).links[0].geoms) == 1
