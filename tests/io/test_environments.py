"""Environments for learning: beside gymnasium's SyncVectorEnv of single robots, byte for byte, and by themselves."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import artsim
from artsim.sim.foundation.errors import MissingInputError, StoppedError, UsageError
from artsim.sim.runs.packable import pack_width

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import SyncVectorEnv  # noqa: E402

pytestmark = pytest.mark.small

CART = """<mujoco><option timestep="0.01"/><worldbody><body name="cart"><joint name="rail" type="slide" axis="1 0 0"/>
<geom type="box" size=".1 .1 .1" mass="1"/><body name="pole" pos="0 0 .1"><joint name="hinge" axis="0 1 0"/>
<geom name="rod" type="capsule" fromto="0 0 0 0 0 .5" size=".02" mass=".2"/></body></body></worldbody>
<actuator><motor name="push" joint="rail" gear="20" ctrllimited="true" ctrlrange="-2 2"/></actuator></mujoco>"""
TASK: dict[str, Any] = {
    "steps": 2,
    "limit": 7,
    "observations": {"joints": "qpos", "rates": "qvel", "tip": "pole.x_axis", "last": "action"},
    "rewards": {"upright": "cos(hinge)", "motion": {"value": "abs(rate(rail))", "weight": -0.5}},
    "terminations": {"fallen": "abs(hinge) > 0.25", "away": "abs(rail) > 0.06"},
    "reset": {"qpos": {"hinge": 0.2}, "qvel": {"rail": {"normal": 0.3}}},
    "vary": {"mass": [0.8, 1.2]},
}
N = 2 * pack_width() + 1
MODES = ("NextStep", "SameStep", "Disabled")
Env = Any


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cart") / "cart.xml"
    path.write_text(CART)
    return path


def made(path: Path, n: int | None = N, /, mode: str = "NextStep", threads: int = 1, **changes: Any) -> Env:
    return artsim.make_env({**TASK, "model": str(path), **changes}, n, autoreset_mode=mode, threads=threads)


def actions(steps: int, n: int = N) -> Any:
    return np.random.default_rng(3).uniform(-1, 1, (steps, n, 1))


def played(env: Env, steps: int = 12) -> bytes:
    """All that an environment tells in some steps."""
    told = [env.reset(seed=5)[0].tobytes()]
    for action in actions(steps, env.num_envs):
        observation, reward, terminated, truncated, _ = env.step(action)
        told += [each.tobytes() for each in (observation, reward, terminated, truncated)]
    return b"".join(told)


@pytest.mark.parametrize("mode", MODES)
def test_each_autoreset_mode_is_that_of_single_environments(model: Path, mode: str) -> None:
    """Bytes of gymnasium's own loop over environments of one robot."""
    ours = made(model, mode=mode)
    theirs = SyncVectorEnv([lambda: made(model, None)] * N, autoreset_mode=mode)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert np.array_equal(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])
    ends = np.zeros(2, int)
    for action in actions(20):
        one, other = ours.step(action), theirs.step(action)
        for a, b in zip(one[:4], other[:4], strict=True):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()
        same_infos(one[4], other[4])
        ends += one[2].sum(), one[3].sum()
        ended = one[2] | one[3]
        if mode == "Disabled" and ended.any():
            with pytest.raises(UsageError, match="have ended: reset"):
                ours.step(action)
            first, second = (env.reset(options={"reset_mask": ended})[0] for env in (ours, theirs))
            assert first.tobytes() == second.tobytes()
    assert ends.min() > 2


def same_infos(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Where masks of the second say so, the first tells the same."""
    assert {name for name in one if name.startswith("_") and one[name].any()} == {k for k in other if k[0] == "_"}
    for name, values in other.items():
        if name == "final_info":
            same_infos(one[name], values)
        elif not name.startswith("_"):
            mask = other[f"_{name}"]
            assert np.array_equal(one[f"_{name}"], mask), name
            for k in np.flatnonzero(mask):
                assert np.array_equal(one[name][k], values[k]), name


def test_a_single_environment_passes_the_checker(model: Path) -> None:
    noisy = {"joints": {"value": "qpos", "noise": 0.1, "delay": 2, "clip": 3.0}, "rates": "qvel"}
    check_env(made(model, None, observations=noisy), skip_render_check=True)


NOISY = {
    "joints": {"value": "qpos", "noise": 0.1, "delay": 2, "scale": 2.0, "offset": 0.5},
    "forces": "tau_drive",
    "rates": "qvel",
}


def test_bytes_depend_on_the_seed_alone(model: Path) -> None:
    whole = played(made(model, observations=NOISY))
    assert played(made(model, observations=NOISY, threads=2)) == whole
    env = made(model, observations=NOISY)
    played(env, 3)
    assert played(env) == whole
    env.reset(seed=6)
    assert env.reset(seed=5)[0].tobytes() != env.reset()[0].tobytes()


def test_a_reset_leaves_the_bytes_of_the_others(model: Path) -> None:
    plain, other = (made(model, mode="Disabled", observations=NOISY, terminations={}, limit=99) for _ in range(2))
    first, second = plain.reset(seed=5)[0], other.reset(seed=5)[0]
    rest = np.arange(N) != 1
    for k, action in enumerate(actions(6)):
        if k == 3:
            again = other.reset(options={"reset_mask": ~rest})[0]
            assert again[rest].tobytes() == second[rest].tobytes()
            assert again[1].tobytes() != second[1].tobytes()
        first, second = plain.step(action)[0], other.step(action)[0]
        assert first[rest].tobytes() == second[rest].tobytes()
    assert plain.arena.length.tolist() == [6] * N
    assert other.arena.length[1] == 3


def test_observations_are_late_noisy_and_scaled(model: Path) -> None:
    def seen(**changes: Any) -> Any:
        env = made(model, mode="Disabled", terminations={}, observations={"joints": {"value": "qpos", **changes}})
        return np.array([env.reset(seed=1)[0], *(env.step(action)[0] for action in actions(6))])

    exact = seen()
    assert np.array_equal(seen(delay=2)[2:], exact[:-2])
    assert (seen(delay=2)[:3] == exact[0]).all()
    assert np.array_equal(seen(offset=0.5, scale=2.0), (exact - 0.5) * 2.0)
    assert np.array_equal(seen(clip=0.01), np.clip(exact, -0.01, 0.01))
    noise = seen(noise=0.1) - exact
    assert 0.05 < noise.std() < 0.2
    assert len(np.unique(noise)) == noise.size


def test_recorded_variables_are_those_of_the_simulation(model: Path) -> None:
    env = made(model, mode="Disabled", terminations={}, observations={"f": "tau_drive.rail", "a": "actuator_force"})
    observation, _ = env.reset(seed=1)
    env.simulation.forward()
    assert np.array_equal(observation[:, 0], env.simulation["tau_drive"][:, 0])
    observation, *_ = env.step(np.full((N, 1), 0.5))
    assert np.array_equal(observation[:, 1], env.simulation["actuator_force"][:, 0])
    assert np.allclose(observation, [10.0, 0.5])


def test_starts_and_properties_are_drawn_as_described(model: Path) -> None:
    draws = {"qpos": {"*": [0.1, 0.2], "rail": {"offset": [-0.3, -0.2]}}, "qvel": {"hinge": {"normal": 2.0}}}
    env = made(model, 200, mode="Disabled", reset=draws, vary={"mass": [0.5, 2.0], "damping": [1, 1]})
    env.reset(seed=0)
    qpos, qvel = env.simulation.qpos, env.simulation.qvel
    assert -0.3 <= qpos[:, 0].min() < -0.28 < -0.22 < qpos[:, 0].max() <= -0.2
    assert 0.1 <= qpos[:, 1].min() < 0.12 < 0.18 < qpos[:, 1].max() <= 0.2
    assert (qvel[:, 0] == 0).all()
    assert 1.7 < qvel[:, 1].std() < 2.3
    env.step(np.full((200, 1), 2.0))
    assert len(np.unique((env.simulation.qvel[:, 0]).round(12))) == 200


def test_gravity_and_delays_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "fall.xml"
    path.write_text(
        '<mujoco><option timestep="0.01"/><worldbody><body><joint name="z" type="slide" axis="0 0 1"/>'
        '<geom size=".1" mass="2"/></body><body pos="1 0 0"><joint name="x" type="slide" axis="1 0 0"/>'
        '<geom size=".1" mass="2"/></body></worldbody>'
        '<actuator><motor joint="x" delay="0.05" nsample="10" ctrlrange="-1 1"/></actuator></mujoco>'
    )
    env = made(
        path,
        50,
        settings={"contacts": False},
        reset={},
        observations={"q": "qpos"},
        rewards={},
        terminations={},
        limit=None,
        steps=1,
        vary={"gravity": [0.5, 1.5], "delay": [0.01, 0.05]},
    )
    env.reset(seed=0)
    env.step(np.ones((50, 1)))
    time = env.simulation.time[0]
    factors = env.simulation.qvel[:, 0] / (-9.81 * time)
    assert 0.5 <= factors.min() < 0.6 < 1.4 < factors.max() <= 1.5
    for _ in range(9):
        env.step(np.ones((50, 1)))
    acted = env.simulation.qvel[:, 1] / 0.5  # [s] for which 1 N has acted on 2 kg
    delays = env.simulation.time - acted
    assert delays.min() >= 0.01 - 1e-12 and delays.max() <= 0.05 + 0.01
    assert len(np.unique(delays.round(9))) > 3


def test_targets_and_torques_are_scaled_actions(model: Path) -> None:
    drives = {"stiffness": {"hinge": 5.0}, "damping": 1.0, "q0": {"hinge": 0.1}}
    action = {"input": "target", "entries": "hinge", "scale": 0.2}
    env = made(model, 1, settings=drives, action=action, reset={}, vary={})
    assert env.action_names == ("hinge",)
    env.reset(seed=0)
    for _ in range(3):
        observation, *_ = env.step(np.array([[2.0]]))  # beyond the bound
    assert observation[0, -1] == 1.0
    by_hand = artsim.VectorSimulation(artsim.load(model), 1, action="target", **drives)
    by_hand.step({"hinge": 0.1 + 0.2}, 6)
    assert np.array_equal(env.simulation.qpos, by_hand.qpos)
    torque = made(model, 1, action={"input": "torque", "low": -3, "high": 3, "scale": 2, "offset": [1, 0]})
    assert torque.action_names == ("rail", "hinge")
    assert torque.action_space.high.tolist() == [[3.0, 3.0]]


def test_controls_without_a_range_are_about_the_start(tmp_path: Path) -> None:
    key = '<keyframe><key name="k" ctrl="0.5" qpos="0.01 0.02"/></keyframe></mujoco>'
    path = tmp_path / "free.xml"
    path.write_text(CART.replace('ctrllimited="true" ctrlrange="-2 2"', "").replace("</mujoco>", key))
    env = made(path, 1, settings={"keyframe": "k"}, reset={}, vary={}, observations={"force": "actuator_force"})
    env.reset()
    assert env.action_space.high == 1.0
    assert env.step(np.array([[0.25]]))[0] == 0.75
    own = made(path, 1, settings={"keyframe": "k"}, action={"offset": "start", "scale": 2, "low": -3, "high": 3})
    own.reset()
    own.step(np.array([[3.0]]))
    plain = made(path, 1, settings={"keyframe": "k"}, action={"offset": 0, "scale": 1, "low": -9, "high": 9})
    plain.reset(seed=0)
    own.reset(seed=0)
    assert np.array_equal(own.step(np.array([[3.0]]))[0][:, :-1], plain.step(np.array([[6.5]]))[0][:, :-1])
    with pytest.raises(UsageError, match="offset is 'begin', want a number"):
        made(path, 1, action={"offset": "begin"})


def test_robots_that_stop_end(model: Path) -> None:
    wild = {"input": "torque", "scale": 1e200, "entries": ["rail"]}
    observed = {"q": "qpos", "inverse": "1 / (1 - tau_applied.rail + tau_applied.rail)"}
    env = made(model, action=wild, terminations={}, observations=observed)
    env.reset(seed=0)
    action = np.zeros((N, 1))
    action[2] = 1.0
    with np.errstate(all="ignore"):  # for kernels that run as Python
        _, reward, terminated, _, infos = env.step(action)
    assert np.flatnonzero(terminated).tolist() == [2] == np.flatnonzero(infos["end_stopped"]).tolist()
    assert "not finite" in env.simulation.why_stopped(2)
    assert np.isfinite(reward).all()
    observation, reward, terminated, _, _ = env.step(action * 0)
    assert reward[2] == 0
    assert not terminated.any()
    assert np.isfinite(observation).all()


def test_undefined_values_are_errors(model: Path) -> None:
    env = made(model, rewards={"speed": "1 / (time - 0.04)"}, terminations={})
    env.reset(seed=0)
    env.step(np.zeros((N, 1)))
    with pytest.raises(
        StoppedError, match=r"reward of robot 0 at t = 0\.04 s: division by 0 in '1 / \(time - 0\.04\)'"
    ):
        env.step(np.zeros((N, 1)))


def test_gymnasium_makes_them(model: Path) -> None:
    task = {**TASK, "model": str(model)}
    several = gymnasium.make_vec("artsim.io.environments.registered:artsim/Task-v0", num_envs=3, task=task)
    assert several.reset(seed=0)[0].shape == (3, 8)
    single = gymnasium.make("artsim/Task-v0", task=task)
    assert single.reset(seed=0)[0].shape == (8,)
    assert single.step(np.zeros(1))[4]["reward_upright"] > 0.9


def test_a_file_names_its_model_beside_it(model: Path) -> None:
    file = model.parent / "task.toml"
    file.write_text('model = "cart.xml"\n[observations]\nq = "qpos"\n[action]\nlow = -1\n')
    env = artsim.make_env(file, 2)
    assert env.observation_names == ("q[0]", "q[1]")
    assert env.action_space.low.tolist() == [[-1.0]] * 2
    assert env.action_space.high.tolist() == [[2.0]] * 2
    assert (env.reset()[0] == 0).all()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": ""}, "model is not given"),
    ({"model": 3}, "model is 3, want a text"),
    ({"reward": {}}, "'reward' has no meaning; did you mean 'rewards'?"),
    ({"observations": {}}, "there are no observations"),
    ({"observations": []}, "observations is \\[\\], want a table"),
    ({"observations": {"a": "hing"}}, "observations.a: 'hing' is not known; did you mean 'hinge'"),
    ({"observations": {"a": {"value": "hinge", "delay": -1}}}, "delay is -1, want a whole number from 0"),
    ({"observations": {"a": {"value": "hinge", "nois": 1}}}, "'nois' has no meaning; did you mean 'noise'"),
    ({"observations": {"a": {"noise": 1}}}, "observations.a.value: want an expression as text, got None"),
    ({"rewards": {"a": "qpos"}}, "rewards.a: 'qpos' is a vector of 2, want a number"),
    ({"rewards": {"a": {"value": "1", "weight": True}}}, "weight is True, want a number"),
    ({"terminations": {"a": 1}}, "terminations.a: want an expression as text, got 1"),
    ({"steps": 0}, "steps is 0, want a whole number from 1"),
    ({"limit": 1.5}, "limit is 1.5, want a whole number"),
    ({"reset": {"qpos": {"hing": 0.1}}}, "reset.qpos: 'hing' is not known; did you mean 'hinge'"),
    ({"reset": {"qpos": {"hinge": [1, 0]}}}, "want two finite numbers, the smaller first"),
    ({"reset": {"qpos": {"hinge": {"even": 1}}}}, "want a number, \\[low, high\\], or one of uniform, offset, normal"),
    ({"reset": {"qacc": {}}}, "'qacc' has no meaning"),
    ({"vary": {"mas": [1, 2]}}, "vary: 'mas' is not known; did you mean 'mass'"),
    ({"vary": {"mass": 0.1}}, "vary.mass: want \\[low, high\\]"),
    ({"action": {"input": "force"}}, "action: input 'force' is not known"),
    ({"action": {"entries": ["pusch"]}}, "no actuator is called 'pusch'; did you mean 'push'"),
    ({"action": {"input": "target"}}, "no joint with a drive is called '\\*'"),
    ({"action": {"scale": [1, 2, 3]}}, "scale has 3 numbers, want 1: push"),
    ({"action": {"low": 3}}, "low is larger than high"),
    ({"action": {"low": "a"}}, "low is 'a', want a number or a list of numbers"),
    ({"settings": {"stif": 1}}, "stif"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG, ids=[words[:30] for _, words in WRONG])
def test_wrong_tasks_are_told(model: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        made(model, 1, **changes)


def test_wrong_calls_are_told(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = made(model, 2, mode="Disabled")
    with pytest.raises(UsageError, match="step comes before reset"):
        env.step(np.zeros((2, 1)))
    with pytest.raises(UsageError, match="first reset is of all"):
        env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(UsageError, match="seed has 3 numbers, want 2"):
        env.reset(seed=[1, 2, 3])
    with pytest.raises(UsageError, match="seed is -1, want numbers from 0"):
        env.reset(seed=-1)
    env.reset(seed=[1, None])
    for mask in (np.zeros(2, bool), np.ones(3, bool), [1, 0]):
        with pytest.raises(UsageError, match="reset_mask: want booleans"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(UsageError, match=r"actions have shape \(2,\), want \(2, 1\)"):
        env.step(np.zeros(2))
    with pytest.raises(UsageError, match="an action is not finite"):
        env.step(np.full((2, 1), np.nan))
    with pytest.raises(UsageError, match="autoreset_mode 'never' is not known; known: NextStep"):
        made(model, 2, mode="never")
    with pytest.raises(UsageError, match="n is 0"):
        made(model, 0)
    with pytest.raises(MissingInputError, match="cannot read"):
        artsim.make_env(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = ")
    with pytest.raises(UsageError, match="not TOML"):
        artsim.make_env(tmp_path / "bad.toml")
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(UsageError, match=r'pip install "artsim\[gym\]"'):
        made(model, 2)
