"""What `compute` keeps between calls changes no result: of other tables, other threads, arrays given for results."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.sim.foundation.errors import UsageError
from artsim.sim.quantities import evaluator
from artsim.sim.quantities.catalogue import BAD_INPUT, OK
from artsim.sim.quantities.evaluation import Evaluation
from artsim.sim.quantities.robot import Robot
from tests.naive import Array
from tests.quantities.test_quantities import case, packs_only
from tests.tree_quantities import TREE_QUANTITIES

ALL = [*TREE_QUANTITIES, "status"]
SIZES = (None, 0, 1, 7, 8, 13, 31, 32, 101)  # None: a configuration that is no table
TENDON = """<mujoco>
  <worldbody>
    <body name="upper"><joint name="shoulder" axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/>
      <body name="lower" pos=".4 0 0"><joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0"/>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="t" armature=".3" stiffness="2"><joint joint="shoulder" coef="1"/><joint joint="elbow" coef="-2"/>
  </fixed></tendon>
</mujoco>"""


def robot_of(name: str, folder: Any) -> Robot:
    """A robot of test_quantities.py, or one whose tendon has inertia."""
    if name != "tendon":
        return case(name).robot
    path = folder / "tendon.xml"
    path.write_text(TENDON)
    return artsim.load(path)


def drawn(robot: Robot, rows: int | None, seed: int = 0) -> dict[str, Array]:
    """Inputs of every kind."""
    rng = np.random.default_rng(seed)
    sizes = {
        "qpos": (robot.nq,),
        **dict.fromkeys(("qvel", "qacc", "tau"), (robot.nv,)),
        "wrench": (len(robot.links), 6),
    }
    table = () if rows is None else (rows,)
    return {name: rng.uniform(-1.0, 1.0, table + size) for name, size in sizes.items()}


def bytes_of(results: Mapping[str, Any]) -> dict[str, bytes]:
    return {name: np.asarray(values).tobytes() for name, values in results.items()}


@pytest.mark.small
@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("name", ["zoo", "rack_and_pinion", "tendon"])
@pytest.mark.parametrize("rows", SIZES)
def test_results_are_written_whole_where_they_are_wanted(
    name: str, rows: int | None, reduced: bool, tmp_path: Any
) -> None:
    """Whatever stood in the arrays before; a quantity without an array gets a new one."""
    robot = robot_of(name, tmp_path)
    given: dict[str, Any] = drawn(robot, rows)
    expected = robot.compute(**given, quantities=ALL, reduced=reduced)
    out = {
        name: np.full_like(values, -1 if name == "status" else np.nan)
        for name, values in expected.items()
        if name != "bias"
    }
    out = {name: np.asarray(values) for name, values in out.items()}
    found = robot.compute(**given, quantities=ALL, reduced=reduced, out=out)
    assert list(found) == list(expected) and bytes_of(found) == bytes_of(expected)
    assert all(found[name] is out[name] for name in out) and "bias" in found
    packed = ["mass_matrix", "inverse_mass_matrix"]
    expected = robot.compute(**given, quantities=packed, packed=True)
    out = {name: np.full_like(values, np.nan) for name, values in expected.items()}
    assert bytes_of(robot.compute(**given, quantities=packed, packed=True, out=out)) == bytes_of(expected)


@packs_only  # and no warnings about what is not finite
@pytest.mark.parametrize("rows", SIZES[1:])
def test_rows_do_not_depend_on_the_calls_before(rows: int) -> None:
    """Other rows, bad ones, inputs that are now left out; and results do not change after they were returned."""
    robot, fresh = Robot.of(case("zoo").robot.articulation), Robot.of(case("zoo").robot.articulation)
    first = drawn(robot, rows)
    before = robot.compute(first["qpos"], first["qvel"], first["qacc"], first["tau"], quantities=ALL)
    kept = bytes_of(before)
    spoilt = drawn(robot, rows, 1)
    spoilt["qpos"][-1:, 0] = np.inf
    bad = robot.compute(**{name: spoilt[name] for name in ("qpos", "qvel", "qacc", "tau")}, quantities=ALL)
    assert [*bad["status"]] == [OK] * (rows - 1) + [BAD_INPUT] * min(rows, 1)
    assert np.isnan(bad["jacobian"][-1:]).all()
    bare = robot.compute(first["qpos"], quantities=ALL)
    assert bytes_of(bare) == bytes_of(fresh.compute(first["qpos"], quantities=ALL))
    assert bytes_of(before) == kept


@pytest.mark.small
@pytest.mark.parametrize("rows", [3, 100])
def test_results_may_take_the_place_of_inputs(rows: int) -> None:
    """Of other rows too, which would be written before they are read."""
    robot = case("zoo").robot
    given = drawn(robot, rows)
    expected = robot.compute(given["qpos"], given["qvel"], given["qacc"], quantities=["inverse_dynamics"])
    memory = np.zeros((rows + 1, robot.nv))
    velocity, out = memory[1:], memory[:-1]
    velocity[:] = given["qvel"]
    robot.compute(
        given["qpos"], velocity, given["qacc"], quantities=["inverse_dynamics"], out={"inverse_dynamics": out}
    )
    assert np.array_equal(out, expected["inverse_dynamics"])


@pytest.mark.small
@pytest.mark.parametrize(
    ("out", "message"),
    [
        ({"gravty": np.zeros(2)}, r"out: 'gravty' is not among the quantities; did you mean 'gravity'\?"),
        ({"gravity": [0.0, 0.0]}, r"out\['gravity'\]: want an array of numpy, not list"),
        ({"gravity": np.zeros(3)}, r"out\['gravity'\] is float64 \(3,\), want float64 \(2,\)"),
        ({"gravity": np.zeros((1, 2))}, r"out\['gravity'\] is float64 \(1, 2\), want float64 \(2,\)"),
        ({"gravity": np.zeros(2, np.float32)}, r"out\['gravity'\] is float32 \(2,\), want float64 \(2,\)"),
        ({"gravity": np.zeros(4)[::2]}, r"out\['gravity'\]: want an array that is C-contiguous"),
        ({"gravity": np.broadcast_to(np.zeros(2), 2)}, r"out\['gravity'\]: want an array that is C-contiguous"),
        ({"status": np.zeros(())}, r"out\['status'\] is float64 \(\), want int64 \(\)"),
    ],
)
def test_arrays_that_cannot_take_a_result_are_refused(out: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        case("double_pendulum").robot.compute(np.zeros(2), quantities=["gravity", "status"], out=out)


@pytest.mark.small
def test_two_results_in_one_place_are_refused() -> None:
    memory = np.zeros(3)
    with pytest.raises(UsageError, match=r"out\['gravity'\] and out\['bias'\] share memory"):
        case("double_pendulum").robot.compute(
            np.zeros(2), quantities=["bias", "gravity"], out={"bias": memory[1:], "gravity": memory[:2]}
        )


@pytest.mark.parametrize("rows", [None, 5, 40])
def test_threads_call_at_once(rows: int | None) -> None:
    """Each gets the bytes that it gets alone, with and without threads of its own."""
    robot = Robot.of(case("zoo").robot.articulation)
    tables = [drawn(robot, rows, seed) for seed in range(4)]
    wanted = ["inverse_dynamics", "jacobian", "mass_matrix"]
    expected = [bytes_of(robot.compute(**given, quantities=wanted)) for given in tables]
    wrong: list[int] = []

    def call(which: int) -> None:
        for _ in range(200):
            if bytes_of(robot.compute(**tables[which], quantities=wanted)) != expected[which]:
                wrong.append(which)

    threads = [threading.Thread(target=call, args=(which,)) for which in range(len(tables))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.small
def test_evaluators_are_kept_and_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One per request, of a bounded number of requests; none of a robot that takes much memory."""
    made: list[int] = []
    init = evaluator.Evaluator.__init__

    def counted(self: Any, *arguments: Any) -> None:
        made.append(1)
        init(self, *arguments)

    monkeypatch.setattr(evaluator.Evaluator, "__init__", counted)
    robot = Robot.of(case("rack_and_pinion").robot.articulation)
    for _ in range(3):
        robot.compute(robot.reference, quantities=["gravity"])
        robot.compute(np.tile(robot.reference, (20, 1)), quantities=("gravity",))
    assert len(made) == 1
    for count in range(evaluator._MOST_REQUESTS):
        robot.compute(robot.reference, quantities=["gravity"], links=robot.links[:1] * count)
    robot.compute(robot.reference, quantities=["gravity"])
    assert len(made) == 2 + evaluator._MOST_REQUESTS
    assert len(robot._evaluators._idle) == evaluator._MOST_REQUESTS
    monkeypatch.setattr(evaluator, "_MOST_MEMORY", 100)
    robot.compute(robot.reference, quantities=["bias"])
    robot.compute(robot.reference, quantities=["bias"])
    assert len(made) == 4 + evaluator._MOST_REQUESTS


@pytest.mark.small
def test_copies_of_a_robot_that_has_computed() -> None:
    robot = Robot.of(case("zoo").robot.articulation)
    q = drawn(robot, None)["qpos"]
    expected = robot.compute(q, quantities=["gravity"])["gravity"]
    for other in (copy.copy(robot), copy.deepcopy(robot), pickle.loads(pickle.dumps(robot))):
        assert np.array_equal(other.compute(q, quantities=["gravity"])["gravity"], expected)


@packs_only
def test_threads_of_a_call_do_not_matter_to_later_ones() -> None:
    robot = Robot.of(case("arm7").robot.articulation)
    given = drawn(robot, 3000)
    expected = bytes_of(robot.compute(**given, quantities=["inverse_dynamics"], threads=1))
    for threads, rows in ((3, 3000), (1, 500), (3, 500), (2, 2900), (None, 3000)):
        some = {name: values[:rows] for name, values in given.items()}
        found = bytes_of(robot.compute(**some, quantities=["inverse_dynamics"], threads=threads))
        assert found["inverse_dynamics"] == expected["inverse_dynamics"][: rows * robot.nv * 8]


def test_a_bound_call_keeps_its_arrays() -> None:
    """The kernel writes into all outputs, also those that the caller has let go."""
    robot = case("arm7").robot
    evaluation = Evaluation(robot.model, robot.labels, ["link_position"])
    inputs, outputs = evaluation.allocate(8)
    call, status = evaluation.bound(inputs, outputs), weakref.ref(outputs["status"])
    del inputs, outputs
    gc.collect()
    assert status() is not None
    call(8)
    assert (status() == OK).all()
