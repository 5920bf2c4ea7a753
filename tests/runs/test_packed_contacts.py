"""The list of a pack's contacts: every lane is the single run, whatever touches what, and whatever the others touch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.io.rollouts.rollout import MemoryRollout
from artsim.io.runs.prepare import held_controls, prepare
from artsim.sim.foundation.jit import disabled
from artsim.sim.geometry.contacts import CONTACTS
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.make_simulation import simulation_of
from artsim.sim.runs.pack import PacksInTurn
from artsim.sim.runs.sampled_runs import PackRoller, Results
from artsim.sim.runs.varied import Variations

STEPS = 80
WORLD = """<mujoco><option timestep="0.002"/><default><geom friction=".6" {soft}/></default>
<worldbody>{world}</worldbody>{rest}</mujoco>"""
BOX = '<body pos="{at}" euler="{turn}"><freejoint name="{name}"/><geom type="box" size=".1 .1 .05" mass="1"/></body>'
GROUND = '<geom type="plane" size="9 9 .1"/>'


def box(name: str, at: str, turn: str = "0 0 0") -> str:
    """A free box."""
    return BOX.format(name=name, at=at, turn=turn)


TILES = "".join(
    f'<geom type="box" size=".05 .05 .05" pos="{0.1 * (k % 30) - 1.5:.2f} {0.1 * (k // 30) - 1:.2f} -.05"/>'
    for k in range(600)
)
MAGNETS = """<geom type="box" size="1 1 .1" pos="0 0 1.1"/><geom type="plane" size="9 9 .1"/>
<body name="cup" pos="0 0 .96"><freejoint name="a"/><geom size=".03" mass=".1" margin=".02" gap=".02"/></body>
<body name="lid" pos=".3 0 .94"><freejoint name="b"/>
<geom type="box" size=".05 .05 .05" mass=".1" margin=".02" gap=".02"/></body>"""
TRIPOD = """<body pos="0 0 .052"><freejoint name="a"/><geom type="box" size=".1 .1 .02" mass="1"/>
<geom size=".05" pos=".1 0 0" mass=".1"/><geom size=".05" pos="-.05 .1 0" mass=".1"/>
<geom size=".05" pos="-.05 -.1 0" mass=".1"/></body>"""
LINKS = """<geom size=".1" pos="0 0 .012"/><body><joint axis="0 1 0" range="-40 40" damping=".1"/>
<geom size=".08" pos=".01 0 0" mass="1"/><body pos="0 0 -.3"><joint axis="0 1 0" range="-100 20" damping=".1"/>
<geom type="capsule" size=".05" fromto="0 0 .25 0 0 -.3" mass="2"/></body></body>"""
"""A link overlaps a ball where it is hinged: where the other link is at its limit, parting them would throw both."""
PULLED = """<body pos="0 0 .2"><joint type="slide" axis="0 0 1" stiffness="300" damping=".5"/>
<geom type="box" size=".05 .05 .05" mass="1" friction="99"/></body>
<body pos="0 0 .302" euler="0 0 45"><joint type="slide" axis="0 0 1"/>
<joint type="slide" axis="1 0 0" stiffness="100" springref="1.2" damping="1000"/>
<geom type="box" size=".05 .05 .05" mass=".5" friction="99"/></body>"""
"""A spring pulls a box along another one's face, so hard that only a large coefficient of friction holds it."""
MODELS = {
    "pulled": WORLD.format(soft="", world=PULLED, rest=""),
    "pulled over edges": WORLD.format(soft="", world=PULLED, rest=""),
    "links": WORLD.format(soft='condim="1"', world=LINKS, rest=""),
    "belt": WORLD.format(
        soft="",
        world='<geom type="box" size="5 1 .1" pos="0 0 -.1" surfacevel=".7 0 0 0 0 .4"/>' + TRIPOD,
        rest="",
    ),
    "tower": WORLD.format(
        soft="",
        world=GROUND + box("a", "0 0 .052") + box("b", "0 0 .156", "0 0 45") + box("c", ".03 0 .26", "0 0 20"),
        rest="",
    ),
    "tiles": WORLD.format(soft="", world=TILES + box("a", "0 0 .06") + box("b", ".5 .3 .2", "10 0 0"), rest=""),
    "magnets": WORLD.format(
        soft='solref=".02 1"',
        world=MAGNETS,
        rest="""<actuator><adhesion name="hold" body="cup" ctrlrange="0 1" gain="4"/>
        <adhesion name="keep" body="lid" ctrlrange="0 1" gain="4"/></actuator>""",
    ),
}
SHAKEN = {"velocity_spread": 0.4, "randomise": {"mass": (0.7, 1.4), "friction": (0.5, 1.5)}}
CASES: dict[str, dict[str, Any]] = {
    "pulled": SHAKEN,
    "pulled over edges": SHAKEN | {"cone": "pyramidal"},
    "links": SHAKEN,
    "belt": SHAKEN,
    "tower": SHAKEN,
    "tiles": SHAKEN,
    "magnets": {"velocity_spread": 0.1, "control": {"hold": 1.0, "keep": 0.7}},
}


NEAR = {
    "pulled": 1e-10,
    "pulled over edges": 1e-10,
    "links": 1e-10,
    "belt": 1e-10,
    "magnets": 1e-10,
    "tiles": 1e-6,
    "tower": 2e-3,
}
"""[m] by which lanes may differ from single runs: where faces lie on faces, Coulomb's law has several solutions."""
ALONE = {"links": 0.0, "tiles": 0.8, "tower": 0.8}
"""Largest share of steps that lanes take alone: contacts of faces that yield, and lanes of more than MOST_OF_LANE rows,
are left to single robots."""


def load(name: str, folder: Path) -> artsim.Robot:
    """The robot of a model."""
    path = folder / f"{name}.xml"
    path.write_text(MODELS[name])
    return artsim.load(path)


def drawn(name: str, folder: Path, samples: int = 9) -> MemoryRollout:
    """A rollout of samples that differ."""
    given = {"samples": samples, "steps": STEPS, "seed": 3, "check": False}
    made = artsim.rollout(load(name, folder), **{**given, **CASES[name]})
    assert isinstance(made, MemoryRollout)
    return made


@pytest.mark.parametrize("name", CASES)
def test_every_lane_is_the_single_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = drawn(name, tmp_path)
    assert made.outcome.packed
    assert made.outcome.solved_alone <= ALONE.get(name, 0.05) * made.outcome.steps
    monkeypatch.setattr("artsim.sim.runs.sampled_runs.reason_against_packs", lambda plan: "no reason")
    single = drawn(name, tmp_path)
    assert np.abs(made["qpos"] - single["qpos"]).max() < NEAR[name]
    assert np.abs(single["qpos"] - single["qpos"][:, :1]).max() > 0.01


@pytest.mark.parametrize("name", ["tower", "tiles"])
def test_bytes_depend_on_nobody_else(name: str, tmp_path: Path) -> None:
    whole, part = drawn(name, tmp_path, 9), drawn(name, tmp_path, 3)
    for variable in ("qpos", "qvel"):
        assert whole[variable][:3].tobytes() == part[variable].tobytes()


@pytest.mark.small
@pytest.mark.parametrize("name", ["belt", "tower"])
def test_a_lone_lane_lists_what_the_single_robot_has(name: str, tmp_path: Path) -> None:
    """As many contacts of the same shapes, step by step."""
    plan = prepare(load(name, tmp_path).articulation, RunConfig(steps=30, record=()))
    single, found = simulation_of(plan, held_controls(plan)), list[Any]()
    for _ in range(30):
        list(single.blocks(1))
        found.append(_shapes(single._contact.data, single._contact.data.dimension))
    roller, listed = PackRoller(plan, held_controls(plan), Results.of(plan, 1)), list[Any]()

    def look() -> bool:
        assert roller.pack.contact is not None
        listed.append(_shapes(roller.pack.contact.data, roller.pack.contact.data.dimension))
        return False

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("artsim.sim.runs.sampled_runs._STEPS_PER_CALL", 1)
        assert roller.run(Variations(plan.qpos[None], plan.qvel[None]), look)
    assert max(len(each) for each in found) >= 3
    assert listed[1:] == found[:-1]  # a single run detects contacts at its last state, too


def _shapes(data: Any, dimension: Any) -> list[tuple[int, ...]]:
    """The shapes and the dimension of the contacts that act, sorted."""
    count = int(data.number[CONTACTS])
    return sorted((*data.shape[n].tolist(), int(dimension[n])) for n in range(count) if dimension[n] > 0)


@pytest.mark.small
def test_the_list_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps whose contacts exceed the room of the list are taken again, to the same bytes."""
    wide = drawn("tower", tmp_path, 2 if disabled() else 9)
    rooms: list[int] = []
    make_room = PacksInTurn.make_room

    def note(turns: PacksInTurn, *, listed: bool) -> None:
        make_room(turns, listed=listed)
        rooms.append(turns.scratch.listed)

    monkeypatch.setattr(PacksInTurn, "make_room", note)
    monkeypatch.setattr("artsim.sim.runs.simulate.first_room", lambda touching: 3)
    narrow = drawn("tower", tmp_path, 2 if disabled() else 9)
    assert rooms
    assert narrow["qvel"].tobytes() == wide["qvel"].tobytes()
