"""Pairs of shapes that no joint parts are left out of contact, and no others.

Truth: spheres, whose distances over a joint's range are known in closed form, or found on a dense grid.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import artsim
from artsim.io.runs.prepare import prepared
from artsim.loaders.load import load_text
from artsim.sim.articulation.poses import body_poses
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.overlaps import CONFIGURATIONS, configurations
from artsim.sim.runs.plan import Plan, plan_run
from tests.runs.cad_exports import cad_arm

INERTIA = '<inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>'


def plan_of(text: str, **config: Any) -> Plan:
    return plan_run(load_text(text, name="robot.xml"), RunConfig(**config))


def left_out(text: str, **config: Any) -> set[str]:
    """The pairs of links that are left out, as "a b"."""
    return {f"{one.link_a} {one.link_b}" for one in plan_of(text, **config).overlaps}


def ball(radius: float, at: str = "0 0 0", more: str = "") -> str:
    return f'<geom type="sphere" size="{radius}" pos="{at}" {more}/>'


def body(name: str, content: str, at: str = "0 0 0") -> str:
    return f'<body name="{name}" pos="{at}">{INERTIA}{content}</body>'


def world(content: str, more: str = "") -> str:
    return f'<mujoco><compiler angle="radian"/><worldbody>{content}</worldbody>{more}</mujoco>'


HINGE = '<joint type="hinge" axis="0 0 1" limited="true" range="{} {}"/>'


def chain(first: str, last: str, *, lower: float = -1.0, upper: float = 2.0, between: str = "1 0 0") -> str:
    """`first` on a, `last` on c; b between them has no shape; hinges at a's origin and, `between` further on, c's."""
    hinge = HINGE.format(lower, upper)
    return world(body("a", first + body("b", hinge + body("c", hinge + last, between))))


# ------------------------------------------------------------------ closed forms


@pytest.mark.small
def test_balls_about_the_ends_of_a_link_stay_where_they_are() -> None:
    """Two balls about the hinges of b are 1 m apart wherever the hinges are: they are left out if that is inside."""
    assert left_out(chain(ball(0.55), ball(0.5))) == {"a c"}
    assert left_out(chain(ball(0.5), ball(0.49))) == set()
    assert left_out(chain(ball(0.5), ball(0.5))) == set()  # they touch
    assert left_out(chain(ball(0.5 + 2e-6), ball(0.5))) == {"a c"}
    assert left_out(chain(ball(0.5 + 4e-7), ball(0.5))) == set()  # rounding


@pytest.mark.small
def test_a_pair_that_a_joint_parts_is_kept() -> None:
    """A ball 0.3 m off the hinge of c, at an angle q to b: |(1, 0) + 0.3 (cos q, sin q)| from that about the first
    hinge, 1.3 m at most where q = 0 is within the limits."""
    at = {"lower": 1.0, "upper": 2.0}
    farthest = float(np.hypot(1 + 0.3 * np.cos(1.0), 0.3 * np.sin(1.0)))
    last = "0.3 0 0"
    assert left_out(chain(ball(0.7), ball(0.61, last))) == {"a c"}
    assert left_out(chain(ball(0.7), ball(0.599, last))) == set()
    # the file's pose, q = 0, is beyond these limits and inside
    assert left_out(chain(ball(0.7), ball(farthest - 0.7 + 0.001, last), **at)) == set()
    assert left_out(chain(ball(0.75), ball(0.56, last), **at)) == {"a c"}
    assert farthest < 1.3


def test_limits_are_those_of_the_run() -> None:
    """A ball that only a turn by more than 1 rad parts from another."""
    text = chain(ball(0.7), ball(0.5, "-0.3 0 0"), lower=-0.5, upper=0.5)
    farthest = np.hypot(1 - 0.3 * np.cos(0.5), 0.3 * np.sin(0.5))
    assert farthest < 1.2 < 1.3
    name = plan_of(text).robot.dofs[1]
    assert left_out(text) == {"a c"}
    assert left_out(text, upper_limit={name: 3.0}) == set()


def test_joints_of_every_type() -> None:
    """A pair that is inside at the pose of the file, and parted only where the joint is far from it."""

    def pair(joint: str, first: float, at: str) -> set[str]:
        return left_out(world(body("a", ball(first) + body("b", joint + ball(0.1, at)))))

    slide = '<joint type="slide" axis="1 0 0" limited="{}" range="0 {}"/>'
    assert pair(slide.format("true", 0.19), 0.1, "0 0 0") == {"a b"}
    assert pair(slide.format("true", 0.21), 0.1, "0 0 0") == set()
    assert pair(slide.format("false", 0.1), 0.1, "0 0 0") == set()
    assert pair('<joint type="hinge" axis="0 0 1"/>', 0.1, "0.1 0 0") == {"a b"}  # about the ball's centre
    assert pair('<joint type="hinge" axis="0 0 1" pos=".1 0 0"/>', 0.1, "-.01 0 0") == set()  # 0.21 m by half a turn
    assert pair('<joint type="ball"/>', 0.1, "0.1 0 0") == {"a b"}
    swing = '<joint type="ball" pos="0 0 .1" limited="true" range="0 {}"/>'
    assert pair(swing.format(3.0), 0.1, "0 0 -0.02") == set()  # 0.22 m by 3 rad about an axis across
    assert pair(swing.format(0.5), 0.1, "0 0 -0.02") == {"a b"}
    both = '<joint type="slide" axis="1 0 0" range="0 .15"/><joint type="slide" axis="0 1 0" range="0 .15"/>'
    assert pair(both.replace("range", 'limited="true" range'), 0.1, "0 0 0") == set()  # in a corner of their range only
    assert pair(both.replace("range", 'limited="true" range').replace(".15", ".14"), 0.1, "0 0 0") == {"a b"}


def test_followers_follow() -> None:
    """Two hinges that cancel: c only shifts, by 0.6 sin q at most; apart, they would carry it to the other side."""
    hinges = HINGE.format(-1.5, 1.5).replace("<joint", '<joint name="{}"')
    text = world(
        body(
            "a",
            ball(0.3, "0 0.3 0")
            + body(
                "b",
                hinges.format("q", "", "") + body("c", hinges.format("p", "", "") + ball(0.45, "0 0.4 0"), "0.3 0 0"),
            ),
        ),
        '<equality><joint joint1="p" joint2="q" polycoef="0 -1 0 0 0"/></equality>',
    )
    free = text.replace("<equality>", "<!--").replace("</equality>", "-->")
    assert left_out(text) == {"a c"}
    assert left_out(text, coupling="rows") == {"a c"}
    assert left_out(free) == set()


def test_a_dense_grid_says_the_same() -> None:
    """Random balls on a and c: pairs that a grid of both hinges parts by 2 mm are kept, those that it never brings
    within 2 mm of that are left out."""
    random = np.random.default_rng(3)
    places = random.uniform(-0.4, 0.4, (2, 40, 3))
    radii = random.uniform(0.1, 0.6, (2, 40))

    def balls(k: int) -> str:
        return "".join(ball(r, " ".join(map(str, p))) for r, p in zip(radii[k], places[k], strict=True))

    plan = plan_of(chain(balls(0), balls(1), lower=-0.6, upper=0.9, between="0.2 0 0"))
    touching, model = plan.touching, plan.robot.model
    assert touching is not None
    angles = np.linspace(-0.6, 0.9, 61)
    rotation, origin = body_poses(model, np.stack(np.meshgrid(angles, angles), axis=-1).reshape(-1, 2))
    g = touching.contacts
    centre = origin[:, g.body] + np.einsum("nsij,sj->nsi", rotation[:, g.body], g.place)
    gap = (
        np.linalg.norm(centre[:, :40, None] - centre[:, None, 40:], axis=-1).max(axis=0)
        - touching.shapes.size[:40, :1]
        - touching.shapes.size[40:, 0]
    )
    kept = g.allowed[:40, 40:] >= 0
    at_rest = np.linalg.norm(places[0][:, None] - places[1] - (0.2, 0, 0), axis=-1) - radii[0][:, None] - radii[1]
    assert kept[gap > 0.002].all()
    assert not kept[gap < -0.002].any()
    assert (at_rest[kept] < -0.002).any()  # also some that overlap in the file's pose
    assert 50 < (~kept).sum() < 1550
    assert sum(one.pairs for one in plan.overlaps) == (~kept).sum()


def test_drawn_configurations_reach_every_corner() -> None:
    robot = artsim.load("arm7")
    model = robot.model
    table = configurations(model, robot.reference, 1.0)
    assert table.shape == (CONFIGURATIONS, robot.nq)
    assert (table >= model.lower).all() and (table <= model.upper).all()
    for one in range(7):
        values = np.unique(table[:, one])
        assert len(values) == CONFIGURATIONS // 2 + 2
        assert np.diff(values).max() <= 1.01 * (model.upper[one] - model.lower[one]) / (CONFIGURATIONS // 2)
        for other in range(one):
            ends = [(model.lower[k], model.upper[k]) for k in (one, other)]
            corners = {(a, b) for a, b in table[:, [one, other]] if a in ends[0] and b in ends[1]}
            assert len(corners) == 4
    for row, bound in enumerate((model.lower, model.upper)):
        np.testing.assert_array_equal(table[row], bound[: robot.nq])


def test_a_telescope_parts_what_it_joins_only_with_all_stages_out() -> None:
    stages = 6
    slide = f'<joint type="slide" axis="1 0 0" range="0 {0.21 / stages}"/>'
    inner = body("last", slide + ball(0.1))
    for k in range(stages - 1):
        inner = body(f"stage{k}", slide + inner)
    base = body("a", '<joint type="hinge" axis="0 0 1"/>' + ball(0.1) + inner)
    assert left_out(world(base)) == set()


# ------------------------------------------------------------------ pairs that stay


def test_pairs_of_other_robots_and_of_the_world_stay() -> None:
    hinge = '<joint type="hinge" axis="0 0 1"/>'
    inside = ball(0.2)
    assert left_out(world(inside + body("a", hinge + inside))) == set()  # a post of the world
    assert left_out(world(body("a", inside + body("b", hinge + inside)))) == {"a b"}
    assert left_out(world(body("a", hinge + inside) + body("b", hinge + inside))) == set()
    assert left_out(world(body("a", "<freejoint/>" + inside) + body("b", hinge + inside))) == set()
    assert left_out(world(body("a", inside)), ground=True) == set()
    urdf = (
        '<robot name="r"><link name="world">{0}</link><link name="a">{0}</link><link name="b">{0}</link>'
        '<joint name="i" type="{1}"><parent link="world"/><child link="a"/></joint>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    shape = f'{inertia}<collision><geometry><sphere radius="0.2"/></geometry></collision>'
    plan = plan_run(load_text(urdf.format(shape, "continuous"), name="r.urdf"), RunConfig(self_collide=True))
    assert plan.overlaps == ()
    assert plan.touching is not None and (plan.touching.contacts.allowed >= 0).sum() == 2  # world and b


def test_pairs_that_the_file_asks_for_stay() -> None:
    """A <pair>, and soft contacts, which yield as their file says."""
    two = world(body("a", '<geom name="p" size=".2"/>' + body("b", '<joint axis="0 0 1"/><geom name="q" size=".2"/>')))
    assert left_out(two) == {"a b"}
    assert left_out(two, keep_overlaps=True) == set()
    pair = '<contact><pair geom1="p" geom2="q"/></contact></mujoco>'
    assert left_out(two.replace("</mujoco>", pair)) == set()
    assert left_out(two.replace('name="q"', 'name="q" solref=".01 1"')) == set()
    assert left_out(two, contacts=False) == set()


def test_neighbours_are_left_out_pair_by_pair() -> None:
    """Of several shapes of two links only those that no joint parts."""
    plan = plan_of(chain(ball(0.55) + ball(0.1, "0 -0.5 0"), ball(0.5) + ball(0.1, "0 0.4 0")))
    assert plan.touching is not None
    assert [tuple(one) for one in plan.overlaps] == [("a", "c", 1)]
    assert (plan.touching.contacts.allowed >= 0).sum() // 2 == 3


# ------------------------------------------------------------------ CAD exports


def test_a_cad_export_has_no_contact_left(tmp_path: Path) -> None:
    """An arm of 59 meshes: housings two joints apart are left out; fins, which bending parts, stay."""
    robot = artsim.load(cad_arm(tmp_path, links=8, fins=3))
    plan, _, _ = prepared(robot, "none", None, {"self_collide": True})
    kept, _, _ = prepared(robot, "none", None, {"self_collide": True, "keep_overlaps": True})
    assert plan.touching is not None and kept.touching is not None
    fewer = (kept.touching.contacts.allowed >= 0).sum() // 2 - (plan.touching.contacts.allowed >= 0).sum() // 2
    assert fewer == sum(one.pairs for one in plan.overlaps) == 45
    assert {(one.link_a, one.link_b) for one in plan.overlaps} == {("l0", "l2"), ("l2", "l4"), ("l4", "l6")}
    assert plan.notes[-1].startswith("45 pairs of shapes overlap in the file's pose and wherever the joints are")
    assert kept.overlaps == () and kept.notes == ()


# ------------------------------------------------------------------ messages

TWO = world(body("base", ball(0.2) + body("tool", '<joint name="j" axis="0 0 1" damping="1"/>' + ball(0.2, "0 0 0.1"))))


def call(*words: object, code: int = 0) -> Any:
    words = (sys.executable, "-m", "artsim", *map(str, words))
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_they_are_told(tmp_path: Path) -> None:
    """On stderr, by --json, in the file and by `info`; --strict refuses, --keep-overlaps keeps."""
    model, output = tmp_path / "two.xml", tmp_path / "run.h5"
    model.write_text(TWO)
    left = "and is left out of contact: 'base' in 'tool'"
    told = f"1 pair of shapes overlaps in the file's pose and wherever the joints are, {left}"
    result = call("run", model, "--steps", "3", "-o", output)
    assert f"warning: {told} (--keep-overlaps keeps it)\n" in result.stderr
    assert "contacts: none" in result.stderr
    summary = json.loads(call("run", model, "--steps", "3", "--json").stdout)
    assert summary["contacts"]["overlaps"] == [{"link_a": "base", "link_b": "tool", "pairs": 1}]
    assert any(told in note for note in summary["warnings"])
    with h5py.File(output) as file:
        facts = dict(file["provenance"].attrs)
    assert facts["overlaps_left_out"] == 1
    assert json.loads(facts["overlapping_links"]) == [["base", "tool", 1]]
    assert "left out of contact, as no joint parts them: 1\n" in call("info", output).stdout
    assert call("replay", output, "--verify").stdout.endswith("every byte equal\n")
    refused = call("run", model, "--steps", "3", "--strict", code=3)
    assert f"not started (--strict): {told}" in refused.stderr
    kept = call("run", model, "--steps", "3", "--keep-overlaps")
    assert "contacts: 1 at once" in kept.stderr and "overlaps" not in kept.stderr


def test_rollouts_tell_them(tmp_path: Path) -> None:
    model, output = tmp_path / "two.xml", tmp_path / "rolled.h5"
    model.write_text(TWO)
    result = call("rollout", model, "--samples", "2", "--steps", "3", "--json", "-o", output)
    assert json.loads(result.stdout)["overlaps"] == [{"link_a": "base", "link_b": "tool", "pairs": 1}]
    with h5py.File(output) as file:
        assert file["provenance"].attrs["overlaps_left_out"] == 1
    call("rollout", model, "--samples", "2", "--steps", "3", "--strict", code=3)
    kept = call("rollout", model, "--samples", "2", "--steps", "3", "--json", "--keep-overlaps")
    assert json.loads(kept.stdout)["overlaps"] == []


def test_python_keeps_them_on_request(tmp_path: Path) -> None:
    model = tmp_path / "two.xml"
    model.write_text(TWO)
    robot = artsim.load(model)
    for keep, count in ((False, 0), (True, 2)):
        run = artsim.simulate(robot, steps=2, keep_overlaps=keep)
        assert len(run.contacts["depth"]) == count
        assert run.attrs.get("overlaps_left_out") == (None if keep else 1)
        with artsim.Simulation(robot, keep_overlaps=keep) as simulation:
            assert [tuple(one) for one in simulation.overlaps] == [("base", "tool", 1)][: 1 - keep]
