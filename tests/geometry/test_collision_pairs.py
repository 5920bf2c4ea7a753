"""Which geoms may touch and how, against MuJoCo's compiled model and its contacts; what is said of URDFs."""

from __future__ import annotations

import itertools
from typing import Any

import mujoco
import numpy as np
import pytest

from artsim.loaders.load import load_articulation, load_text
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation, Geom
from artsim.sim.foundation.errors import ModelError
from artsim.sim.geometry.collision_pairs import CollisionPairs, ContactParameters, collision_pairs, contact_parameters
from tests.conftest import corpus_entries

mujoco.set_mju_user_warning(lambda _: None)  # else it writes a log file where the tests are run

Pairs = set[tuple[int, int]]
OPEN = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD)
CHUNKS = 8
ENTRIES = [entry for entry in corpus_entries("mjcf") if entry["expect"] == "load"]


def table(articulation: Articulation, **options: Any) -> CollisionPairs:
    return collision_pairs(articulation, compile_model(articulation), **options)


def geom_ids(articulation: Articulation, pairs: CollisionPairs) -> list[int]:
    """The number of each tangible geom among all geoms of the articulation, which is MuJoCo's."""
    number = {id(geom): n for n, geom in enumerate(geom for link in articulation.links for geom in link.geoms)}
    return [number[id(geom)] for _, geom in pairs.geoms]


def ours(articulation: Articulation, pairs: CollisionPairs) -> Pairs:
    ids = np.array(geom_ids(articulation, pairs), int)
    assert np.array_equal(pairs.allowed, pairs.allowed.T)
    return {(int(min(a, b)), int(max(a, b))) for a, b in ids[np.argwhere(pairs.allowed)]}


def mujoco_s(model: mujoco.MjModel) -> Pairs:
    """By brute force over the compiled model, as mj_collision judges geoms near each other."""
    if model.opt.disableflags & (mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT):
        return set()
    body = model.geom_bodyid
    weld = model.body_weldid[body]
    parent = model.body_weldid[model.body_parentid[weld]]
    dofs = model.body_dofnum[weld]
    kind, affinity = model.geom_contype, model.geom_conaffinity
    far = np.isin(model.geom_type, OPEN)
    may = (kind[:, None] & affinity) | (affinity[:, None] & kind) != 0
    may &= (weld[:, None] != weld) & ((dofs[:, None] != 0) | (dofs != 0)) & ~(far[:, None] & far)
    if not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT:
        related = (weld[:, None] == parent) | (parent[:, None] == weld)
        may &= ~(related & (weld[:, None] != 0) & (weld != 0))
    low, high = np.minimum(body[:, None], body), np.maximum(body[:, None], body)
    may &= ~np.isin((low.astype(np.int64) << 16) + high, model.exclude_signature)
    for a, b in zip(model.pair_geom1, model.pair_geom2, strict=True):
        acts = weld[a] != weld[b] and (dofs[a] or dofs[b]) and not (far[a] and far[b])
        may[a, b] = may[b, a] = acts
    return {(int(a), int(b)) for a, b in np.argwhere(np.triu(may, 1))}


def parameters_of(pairs: CollisionPairs, a: int, b: int) -> ContactParameters:
    """Those of a <pair>, else those of the geoms."""
    e = pairs.explicit
    for n, (first, second) in enumerate(e.geoms.tolist()):
        if {a, b} == {first, second}:
            return ContactParameters(*(getattr(e, name)[n] for name in ContactParameters._fields))
    return contact_parameters(pairs.surfaces, a, b)


def assert_contacts_agree(articulation: Articulation, model: mujoco.MjModel, data: mujoco.MjData) -> int:
    """Every contact that MuJoCo finds is of an allowed pair and has our figures; returns how many it finds."""
    pairs = table(articulation)
    number = {geom: n for n, geom in enumerate(geom_ids(articulation, pairs))}
    for contact in data.contact:
        if min(contact.geom) < 0:  # of a flex
            continue
        a, b = number[int(contact.geom[0])], number[int(contact.geom[1])]
        assert pairs.allowed[a, b]
        made = parameters_of(pairs, a, b)
        far = made.adhesion and contact.dist >= contact.includemargin
        assert contact.dim == (1 if far else made.dimension)
        np.testing.assert_allclose(contact.friction, made.friction, rtol=1e-12)
        np.testing.assert_allclose(contact.solref, made.reference, rtol=1e-12)
        np.testing.assert_allclose(contact.solimp, made.impedance, rtol=1e-12)
        along = contact.solreffriction if any(contact.solreffriction) else contact.solref
        want = made.friction_reference if any(made.friction_reference) else made.reference
        np.testing.assert_allclose(along, want, rtol=1e-12)
        np.testing.assert_allclose(contact.includemargin, made.margin, rtol=1e-12)
        np.testing.assert_allclose(contact.adhesion, made.adhesion, rtol=1e-12)
    return int(data.ncon)


# --- the table -------------------------------------------------------------------------------------------------------

ARM = """
  <geom name="floor" type="plane" size="1 1 1"/><geom name="wall" type="box" size="1 1 1"/>
  <geom name="picture" size="1" contype="0" conaffinity="0"/>
  <body name="base"><geom name="base" size=".1"/>
    <body name="welded"><geom name="welded" size=".1"/>
      <body name="upper"><joint name="shoulder"/><joint name="shoulder2" axis="0 1 0"/><geom name="upper" size=".1"/>
        <body name="cuff"><geom name="cuff" size=".1"/>
          <body name="fore"><joint name="elbow"/><geom name="fore" size=".1"/><geom name="fore2" size=".1"/>
            <body name="hand"><joint name="wrist"/><geom name="hand" size=".1"/></body></body></body></body></body>
  </body>
  <body name="ball"><freejoint/><geom name="ball" size=".1" {ball}/></body>
  <body name="shy"><freejoint/><geom name="shy" size=".1" contype="2" conaffinity="4"/></body>
"""


def arm(more: str = "", ball: str = "") -> str:
    return f"<mujoco>{more}<worldbody>{ARM.format(ball=ball)}</worldbody></mujoco>"


TABLES = {
    "bare": arm(),
    "bits": arm(ball='contype="6" conaffinity="3"'),
    "all bits": arm(ball='contype="-1" conaffinity="0"'),
    "parents too": arm('<option><flag filterparent="disable"/></option>'),
    "excluded": arm('<contact><exclude body1="hand" body2="upper"/><exclude body1="world" body2="ball"/></contact>'),
    "exclusion of a welded body": arm('<contact><exclude body1="cuff" body2="ball"/></contact>'),
    "pair of parent and child": arm('<contact><pair geom1="fore" geom2="hand"/></contact>'),
    "pair of what is only seen": arm('<contact><pair geom1="picture" geom2="hand"/></contact>'),
    "pair beats exclusion": arm(
        '<contact><pair geom1="hand" geom2="ball"/><exclude body1="hand" body2="ball"/></contact>'
    ),
    "pairs that do nothing": arm(
        '<contact><pair geom1="base" geom2="floor"/><pair geom1="upper" geom2="cuff"/></contact>'
    ),
    "no contact": arm('<option><flag contact="disable"/></option><contact><pair geom1="hand" geom2="ball"/></contact>'),
    "no constraint": arm('<option><flag constraint="disable"/></option>'),
    "switched on again": arm(
        '<option><flag contact="disable"/></option><option><flag contact="enable" filterparent="enable"/></option>'
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_what_may_touch_is_mujoco_s(name: str) -> None:
    articulation = load_text(TABLES[name], name="model.xml")
    pairs = ours(articulation, table(articulation))
    assert pairs == mujoco_s(mujoco.MjModel.from_xml_string(TABLES[name]))
    assert bool(pairs) == (not name.startswith("no "))


def test_a_ground_touches_what_moves() -> None:
    articulation = load_text(arm(), name="model.xml")
    pairs = table(articulation, world=[Geom("ground", "plane", "collision")])
    touched = {pairs.geoms[n].geom.name for n in np.flatnonzero(pairs.allowed[-1])}
    assert touched == {"upper", "cuff", "fore", "fore2", "hand", "ball"}
    assert pairs.geoms[-1].link == -1


def test_a_pair_of_an_unknown_geom_is_refused() -> None:
    with pytest.raises(ModelError, match=r"model.xml:1: .*'hnad'.*did you mean 'hand'"):
        load_text(arm('<contact><pair geom1="hnad" geom2="ball"/></contact>'), name="model.xml")


@pytest.mark.corpus
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_may_touch_in_public_models(chunk: int) -> None:
    if not ENTRIES:
        pytest.skip("no corpus; set ARTSIM_CORPUS")
    compared = 0
    for entry in ENTRIES[chunk::CHUNKS]:
        both = read_twice(entry["path"])
        if both is None:
            continue
        articulation, model = both
        assert ours(articulation, table(articulation)) == mujoco_s(model), entry["id"]
        data = mujoco.MjData(model)
        for key in range(max(1, min(model.nkey, 3))):
            if model.nkey:
                mujoco.mj_resetDataKeyframe(model, data, key)
            mujoco.mj_forward(model, data)
            assert_contacts_agree(articulation, model, data)
        compared += 1
    assert compared >= 35


def read_twice(path: str) -> tuple[Articulation, mujoco.MjModel] | None:
    """By artsim and by MuJoCo; None where artsim refuses it."""
    try:
        articulation = load_articulation(path)
    except ModelError:
        return None
    model = mujoco.MjModel.from_xml_path(path)
    assert [len(link.geoms) for link in articulation.links] == model.body_geomnum.tolist()
    return articulation, model


# --- figures of contacts ---------------------------------------------------------------------------------------------

GEOMS = (
    "",
    'condim="4" friction=".5 .01 .002" margin=".01" gap=".003"',
    'condim="1" friction="0 0 0" solmix="3" solref=".01 .7" solimp=".8 .9 .002 .4 3"',
    'priority="1" condim="6" friction=".3 .2 .1" solref="-1000 -10" adhesion=".5"',
    'solref="-500 -20" solmix="0" adhesion=".2"',
    'priority="1" solmix="0" solref=".03 1"',
)
TWO = list(itertools.combinations_with_replacement(range(len(GEOMS)), 2))
OVERRIDE = (
    '<option o_margin=".02" o_solref=".05 .8" o_solimp=".7 .8 .003" o_friction=".4 .3 .2 .1">'
    '<flag override="{}"/></option>'
)
PAIR = {
    "open": "",
    "closed": 'condim="4" friction=".1 .2 .3 .4 .5" solref=".04 2" solimp=".5 .6 .004" margin=".03" gap=".01" '
    'solreffriction=".06 .5" adhesion=".9"',
    "partly": 'friction=".7" solimp=".6"',
}


def overlapping(first: str, second: str, more: str = "") -> str:
    body = '<body><freejoint/><geom name="{0}" size=".1" {1}/></body>'
    return f"<mujoco>{more}<worldbody>{body.format('a', first)}{body.format('b', second)}</worldbody></mujoco>"


def assert_figures_agree(text: str) -> None:
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[2] = 0.19
    mujoco.mj_forward(model, data)
    assert assert_contacts_agree(load_text(text, name="model.xml"), model, data) == 1


@pytest.mark.parametrize("first,second", TWO)
def test_figures_of_two_geoms(first: int, second: int) -> None:
    assert_figures_agree(overlapping(GEOMS[first], GEOMS[second]))
    assert_figures_agree(overlapping(GEOMS[second], GEOMS[first], OVERRIDE.format("enable")))


@pytest.mark.parametrize("kind", PAIR)
@pytest.mark.parametrize("first,second", TWO)
def test_figures_of_a_pair(first: int, second: int, kind: str) -> None:
    pair = f'<contact><pair geom1="b" geom2="a" {PAIR[kind]}/></contact>'
    assert_figures_agree(overlapping(GEOMS[first], GEOMS[second], pair))
    assert_figures_agree(overlapping(GEOMS[first], GEOMS[second], pair + OVERRIDE.format("enable")))


def test_an_override_counts_only_where_it_is_enabled() -> None:
    assert_figures_agree(overlapping(GEOMS[1], GEOMS[2], OVERRIDE.format("disable")))
    with pytest.raises(ModelError, match=r"model.xml:1: .*override is 'on'"):
        load_text(overlapping("", "", OVERRIDE.format("on")), name="model.xml")


def test_contacts_are_hard_unless_the_file_says_how_soft() -> None:
    def soft(first: str, second: str) -> bool:
        return parameters_of(table(load_text(overlapping(first, second), name="model.xml")), 0, 1).soft

    assert not soft("", "")
    assert soft("", 'solref=".02 1"') and soft('solimp=".9"', "")
    assert not soft('solmix="0" solref=".02 1"', "")
    assert not soft('solref=".02 1"', 'priority="1"')


# --- URDF ------------------------------------------------------------------------------------------------------------


def link(name: str, more: str = "") -> str:
    shape = '<geometry><sphere radius="0.1"/></geometry>'
    mass = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    touch = f'<gazebo reference="{name}">{more}</gazebo>' if more else ""
    return f'<link name="{name}">{mass}<visual>{shape}</visual><collision>{shape}</collision></link>{touch}'


def joint(parent: str, child: str, kind: str = "continuous") -> str:
    return f'<joint name="{child}" type="{kind}"><parent link="{parent}"/><child link="{child}"/></joint>'


def chain(**more: str) -> str:
    """base - upper - fore - cuff (fixed) - hand."""
    links = "".join(link(name, more.get(name, "")) for name in ("base", "upper", "fore", "cuff", "hand"))
    joints = [joint("base", "upper"), joint("upper", "fore"), joint("fore", "cuff", "fixed"), joint("cuff", "hand")]
    return f'<robot name="r">{links}{"".join(joints)}{more.get("robot", "")}</robot>'


def touching(text: str, base: Any = "fixed", **options: Any) -> set[str]:
    articulation = load_text(text, name="r.urdf", base=base)
    pairs = table(articulation, **options)
    names = [articulation.links[n].name if n >= 0 else "ground" for n, _ in pairs.geoms]
    return {f"{names[a]} {names[b]}" for a, b in np.argwhere(np.triu(pairs.allowed))}


def test_a_urdf_touches_itself_on_request_only() -> None:
    everything = {"base fore", "base cuff", "base hand", "upper hand"}  # fore and cuff move as one
    assert touching(chain()) == set()
    assert touching(chain(), self_collide=True) == everything
    assert touching(chain(), base="floating", self_collide=True) == everything
    assert touching(chain(hand="<selfCollide>true</selfCollide>")) == {"base hand", "upper hand"}
    assert touching(chain(hand="<selfCollide>false</selfCollide>")) == set()
    assert touching(chain(robot="<gazebo><self_collide>1</self_collide></gazebo>")) == everything


def test_a_urdf_touches_the_ground_with_what_moves() -> None:
    ground = [Geom("ground", "plane", "collision")]
    assert touching(chain(), world=ground) == {f"{name} ground" for name in ("upper", "fore", "cuff", "hand")}
    floating = touching(chain(), base="floating", world=ground)
    assert floating == {f"{name} ground" for name in ("base", "upper", "fore", "cuff", "hand")}


def test_a_link_called_world_holds_nothing_together() -> None:
    """What a URDF fixes to its link `world` stands there side by side: an arm touches the table beside it, not the
    link by which it hangs. Where the world is free, all move as one.
    """
    shape = '<collision><geometry><sphere radius="1"/></geometry></collision>'
    mass = '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    links = "".join(
        f'<link name="{name}"><inertial>{mass}</inertial>{shape}</link>' for name in ("table", "plate", "base", "arm")
    )
    ends = (("world", "table"), ("table", "plate"), ("world", "base"), ("base", "arm"))
    joints = "".join(
        f'<joint name="{child}_joint" type="{"continuous" if child == "arm" else "fixed"}"><parent link="{parent}"/>'
        f'<child link="{child}"/></joint>'
        for parent, child in ends
    )
    text = f'<robot name="r"><link name="{{}}"/>{links}{joints}</robot>'
    assert touching(text.format("world"), self_collide=True) == {"table arm", "plate arm"}
    assert touching(text.format("world"), base="floating", self_collide=True) == set()
    assert touching(text.format("cell").replace('"world"', '"cell"'), self_collide=True) == set()


def test_seen_geoms_of_a_urdf_touch_nothing() -> None:
    articulation = load_text(chain(), name="r.urdf")
    assert [geom.role for _, geom in table(articulation).geoms] == ["collision"] * 5


def test_restitution_of_a_urdf() -> None:
    bounce = "<restitution_coefficient>{}</restitution_coefficient>"
    robot = load_text(chain(hand=bounce.format(0.7)), name="r.urdf")
    assert [geom.surface.restitution for _, geom in table(robot).geoms] == [0, 0, 0, 0, 0.7]
    with pytest.raises(ModelError, match=r"r.urdf:1: .*restitution 1.5 is not between 0 and 1"):
        load_text(chain(hand=bounce.format(1.5)), name="r.urdf")
