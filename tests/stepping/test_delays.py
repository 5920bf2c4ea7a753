"""Delayed controls and sensors, against MuJoCo; and that what is kept goes through snapshots and files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import artsim
from artsim.cli.replay import load_stored
from artsim.io.runs.recovery import recover
from artsim.io.runs.replay import verify
from artsim.io.runs.resume import resume
from artsim.loaders.load import load_text
from artsim.sim.foundation.errors import ModelError
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.controls import Controls
from artsim.sim.runs.plan import plan_run
from artsim.sim.runs.simulate import Simulation
from tests.io import test_resume
from tests.io.test_resume import differences

Array = np.ndarray[Any, Any]
DT = 1.0 / 512.0  # of which MuJoCo's sums are exact; of others the sample is, beyond a second, sometimes its neighbour
RECORD = ("qpos", "qvel", "actuator_force", "sensors")
DELAYS = (0.0, 0.3, 1.0, 1.5, 2.0, 2.5, 3.7, 5.0)  # steps
METHODS = ("zoh", "linear", "cubic")
KINDS = (
    'motor joint="{j}"',
    'position joint="{j}" kp="3"',
    'general joint="{j}" dyntype="filter" dynprm="0.02" ctrlrange="-0.5 0.5"',
    'general joint="{j}" dyntype="integrator" actearly="true"',
    'general joint="{j}" dyntype="filterexact" dynprm="0.01"',
    'pid joint="{j}" kp="3" ki="2" kv="0.1" input="pos vel"',
    'dcmotor joint="{j}" motorconst="0.05" resistance="2"',
)


def model(actuators: str = "", sensors: str = "", integrator: str = "Euler", more: str = "") -> str:
    """A slide and, on it, a pendulum and a swinging double pendulum, in vacuum."""
    return f"""<mujoco><option timestep="{DT!r}" integrator="{integrator}"/>
    <worldbody><body name="car"><joint name="x" type="slide" axis="1 0 0"/><geom size="0.1" mass="2" contype="0"/>
      <body name="arm" pos="0 0 0.1"><joint name="a" axis="0 1 0" ref="0.2"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0.1" size="0.03" mass="1" contype="0"/>
        <site name="s" pos="0.3 0 0.1" euler="10 20 30"/>
        <body name="tip" pos="0.4 0 0.1"><joint name="b" axis="0.3 1 0.2"/>
          <geom type="box" size="0.05 0.1 0.02" pos="0.1 0 0" mass="0.5" contype="0"/><site name="t" pos="0.1 0 0"/>
    </body></body></body></worldbody>
    <actuator>{actuators}</actuator><sensor>{sensors}</sensor>{more}</mujoco>"""


def controls_of(plan: Any, seed: int, steps: int) -> Controls:
    """Another control in every step."""
    rng = np.random.default_rng(seed)
    zero = np.zeros((steps, plan.robot.nv))
    return Controls(np.arange(steps), zero, zero, zero, rng.normal(size=(steps, plan.control.size)))


def simulated(text: str, steps: int, seed: int = 0, **config: Any) -> tuple[dict[str, Array], Controls]:
    """Recorded rows and the controls that acted."""
    plan = plan_run(load_text(text, name="m"), RunConfig(steps=steps, record=RECORD, **config))
    assert plan.delayed is not None
    controls = controls_of(plan, seed, steps)
    simulation = Simulation(plan, controls)
    parts = [{name: values.copy() for name, values in block.rows.items()} for block in simulation.blocks()]
    simulation.check()
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, controls


def mujoco_s(text: str, controls: Controls) -> dict[str, Array]:
    """The same by MuJoCo: the state before each step, forces and sensors in it."""
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    rows: dict[str, list[Array]] = {name: [] for name in RECORD}
    for control in controls.control:
        d.ctrl[:] = control
        rows["qpos"].append(d.qpos.copy())
        rows["qvel"].append(d.qvel.copy())
        mujoco.mj_forward(m, d)
        rows["actuator_force"].append(d.actuator_force.copy())
        rows["sensors"].append(d.sensordata.copy())
        mujoco.mj_step(m, d)
    return {name: np.array(values) for name, values in rows.items()}


def check(text: str, steps: int = 60, bound: float = 1e-12, **config: Any) -> dict[str, Array]:
    """Equal to MuJoCo's in every step; what differs by more than rounding is named."""
    config.setdefault("integrator", "rk4" if 'integrator="RK4"' in text else "semi-implicit-euler")
    rows, controls = simulated(text, steps, **config)
    theirs = mujoco_s(text, controls)
    for name in rows:
        error = np.abs(rows[name] - theirs[name]) / np.maximum(1.0, np.abs(theirs[name]).max(axis=0))
        assert error.max() <= bound, (name, np.unravel_index(error.argmax(), error.shape), error.max())
    return rows


def actuators(kinds: tuple[str, ...], samples: int = 6) -> str:
    """One of each kind for every delay and way of reading, in turn."""
    made = []
    for n, delay in enumerate(DELAYS):
        for k, kind in enumerate(kinds):
            history = f'delay="{delay * DT!r}" nsample="{samples}" interp="{METHODS[(n + k) % 3]}"'
            made.append(f"<{kind.format(j='xab'[(n + k) % 3])} {history}/>")
    return "".join(made)


@pytest.mark.parametrize("kind", KINDS)
def test_controls_by_runge_and_kutta(kind: str) -> None:
    """Of every kind of actuator; the stages read between the samples. Implicit servos are compared by RK4 alone."""
    check(model(actuators((kind,)), integrator="RK4"), integrator="rk4")


def test_controls_by_euler() -> None:
    """Forces that do not depend on the state are the same in both."""
    rows = check(model(actuators((KINDS[0], *KINDS[2:5]))))
    assert np.ptp(rows["actuator_force"][:, 4:], axis=0).min() > 1e-3


def test_the_delay_is_the_one_asked_for() -> None:
    """What acts is the control of three steps ago; before there was one, none."""
    text = model(f'<motor joint="x" delay="{3 * DT!r}" nsample="3"/>')
    rows, controls = simulated(text, 20)
    np.testing.assert_array_equal(rows["actuator_force"][3:], controls.control[:-3])
    assert not rows["actuator_force"][:3].any()


@pytest.mark.parametrize("steps", [5000])
def test_long_runs_do_not_jitter(steps: int) -> None:
    """At a time step whose sums are not exact, a delay of so many steps stays one of so many."""
    text = model('<motor joint="x" gear="1e-3" delay="0.006" nsample="3"/>').replace(repr(DT), "0.002")
    rows, controls = simulated(text, steps)
    np.testing.assert_allclose(rows["actuator_force"][3:], controls.control[:-3], rtol=0)


MEASURED = (
    '<jointpos joint="a"',
    '<jointvel joint="b"',
    '<framepos objtype="site" objname="t"',
    '<framequat objtype="xbody" objname="tip"',
    '<accelerometer site="s"',
    '<gyro site="t" cutoff="0.4"',
    '<subtreecom body="arm"',
    '<actuatorfrc actuator="m"',
    "<clock",
)
LATER = (
    "",
    'nsample="4"',
    'delay="{2}" nsample="4"',
    'delay="{2.5}" nsample="4" interp="linear"',
    'delay="{3.7}" nsample="8" interp="cubic"',
    'interval="{3}" nsample="2"',
    'interval="{4} -{1}" nsample="2"',
    'interval="{2.5}" nsample="3" delay="{3.2}" interp="linear"',
    'interval="{3.5} -{1.3}" nsample="5" delay="{7.1}" interp="cubic"',
    'interval="{3}"',
)


def sensors(measured: tuple[str, ...] = MEASURED) -> str:
    """Each kind in each way."""
    made = "".join(f"{what} {later}/>" for what in measured for later in LATER)
    parts = made.split("{")
    return parts[0] + "".join(
        f"{float(number) * DT!r}{rest}" for number, _, rest in (part.partition("}") for part in parts[1:])
    )


def test_sensors_by_euler() -> None:
    check(model('<motor name="m" joint="x"/>', sensors()), steps=100)


def test_sensors_by_runge_and_kutta() -> None:
    """Of those that MuJoCo keeps at the step's start: positions and velocities of joints."""
    check(model('<motor name="m" joint="x"/>', sensors(MEASURED[:2]), "RK4"), steps=100, integrator="rk4")


def test_a_delayed_sensor_is_the_sensor_of_before() -> None:
    """By all integrators, of every kind: the row that an undelayed one had so many steps ago."""
    later = "".join(f'{what} delay="{3 * DT!r}" nsample="3"/>' for what in MEASURED)
    text = model('<motor name="m" joint="x"/>', "".join(f"{what}/>" for what in MEASURED) + later)
    for integrator in ("midpoint", "semi-implicit-euler", "rk4"):
        rows, _ = simulated(text, 30, integrator=integrator)
        now, then = np.split(rows["sensors"], 2, axis=1)
        np.testing.assert_array_equal(then[3:], now[:-3])


def test_rows_that_are_recorded_seldom_have_the_same_sensors() -> None:
    text = model(actuators(KINDS[:3]) + '<motor name="m" joint="x"/>', sensors())
    plan = plan_run(load_text(text, name="m"), RunConfig(steps=60, record=RECORD))
    controls = controls_of(plan, 1, 60)
    every = Simulation(plan, controls)
    some = Simulation(dataclasses.replace(plan, config=dataclasses.replace(plan.config, every=7)), controls)
    all_rows = np.concatenate([block.rows["sensors"].copy() for block in every.blocks()])
    rows = np.concatenate([block.rows["sensors"].copy() for block in some.blocks()])
    np.testing.assert_array_equal(rows, all_rows[::7])


@pytest.mark.parametrize("integrator", ["midpoint", "semi-implicit-euler", "rk4"])
def test_snapshots_hold_what_is_kept(integrator: str) -> None:
    """A run that goes on from a snapshot has the bytes of one that was never stopped."""
    text = model(actuators(KINDS[:3]) + '<motor name="m" joint="x"/>', sensors())
    plan = plan_run(load_text(text, name="m"), RunConfig(steps=50, record=RECORD, integrator=integrator))
    whole, first, second = (Simulation(plan, controls_of(plan, 2, 50)) for _ in range(3))
    rows = [{name: values.copy() for name, values in block.rows.items()} for block in whole.blocks()]
    for _ in first.blocks(23):
        pass
    second.restore(first.save())
    rest = [{name: values.copy() for name, values in block.rows.items()} for block in second.blocks()]
    for name in RECORD:
        after = np.concatenate([part[name] for part in rest])
        assert after.tobytes() == np.concatenate([part[name] for part in rows])[23:].tobytes(), name
    assert second.save().keys() == whole.save().keys()
    assert all(np.array_equal(values, whole.save()[name]) for name, values in second.save().items())


def test_files_hold_what_is_kept(tmp_path: Path) -> None:
    """Resumed: the bytes of a run that was not stopped; replayed: the same."""
    path = tmp_path / "m.xml"
    path.write_text(model(actuators(KINDS[:3]) + '<motor name="m" joint="x"/>', sensors()))
    robot = artsim.load(path)
    command: Callable[..., Any] = artsim.simulate
    names = {f"actuator_{n}": 0.1 * n for n in range(3)}
    long, short = tmp_path / "long.h5", tmp_path / "short.h5"
    command(robot, steps=70, control=names, output=long, checkpoint=20)
    command(robot, steps=41, control=names, output=short, checkpoint=20)
    assert resume(short, load_stored, steps=70) is not None
    assert list(differences(long, short)) == []
    assert verify(long, load_stored) is None


@pytest.mark.parametrize("clean", [False, True])
def test_a_killed_run_goes_on(clean: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints hold what is kept, and so does what `recover` makes of the file."""
    path = tmp_path / "m.xml"
    path.write_text(model(actuators(KINDS[:3]) + '<motor name="m" joint="x"/>', sensors()))
    controls = {"control": {f"actuator_{n}": 0.1 * n for n in range(3)}, "record": ("qpos", "sensors")}
    monkeypatch.setitem(test_resume.VARIANTS, "delays", (str(path), controls))
    whole, dead, other = (tmp_path / f"{name}.h5" for name in ("whole", "dead", "other"))
    test_resume.run(whole, "delays", test_resume.STEPS)
    test_resume.broken_off(dead, "delays", monkeypatch)
    if clean:
        recover(dead)
    assert resume(dead, load_stored, output=other) is not None
    assert list(differences(whole, other)) == []


def test_samples_of_a_rollout_are_runs(tmp_path: Path) -> None:
    """Whatever the number of threads."""
    path = tmp_path / "m.xml"
    path.write_text(model(actuators(KINDS[:3])))
    robot, control = artsim.load(path), {f"actuator_{n}": 0.1 * n for n in range(3)}
    one, two = (artsim.rollout(robot, samples=3, steps=30, control=control, threads=n) for n in (1, 2))
    run = artsim.simulate(robot, steps=30, control=control, record=("qpos",))
    assert one["qpos"].tobytes() == two["qpos"].tobytes()
    for sample in one["qpos"]:
        assert sample.tobytes() == run["qpos"].tobytes()


TOUCHED = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="2 2 1"/>
  <body pos="0 0 0.3"><freejoint/><geom name="ball" size="0.1" mass="1"/><site name="s" size="0.2"/></body>
  <body pos="0.4 0 0.25"><freejoint/><geom type="box" size="0.1 0.1 0.1"/><site name="f" zaxis="0 0 -1"/></body>
  <body pos="0.4 0 0.55" euler="20 10 0"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
  </worldbody><sensor>{}</sensor></mujoco>"""
TOUCHING = ('<touch site="s"', '<contact geom1="ball" data="found force"', '<rangefinder site="f"', '<force site="s"')


def test_sensors_of_contact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delayed, they are what they were; also where a step is taken again for want of room for its contacts."""
    monkeypatch.setattr("artsim.sim.runs.simulate.first_room", lambda touching: 1)
    later = "".join(f'{what} delay="0.008" nsample="4"/>' for what in TOUCHING)
    text = TOUCHED.format("".join(f"{what}/>" for what in TOUCHING) + later)
    plan = plan_run(load_text(text, name="m"), RunConfig(steps=300, record=("sensors",)))
    simulation = Simulation(plan, controls_of(plan, 0, 300))
    rows = np.concatenate([block.rows["sensors"].copy() for block in simulation.blocks()])
    simulation.check()
    assert simulation.room > 1
    now, then = np.split(rows, 2, axis=1)
    np.testing.assert_array_equal(then[4:], now[:-4])
    assert not then[:4].any()
    assert np.ptp(now, axis=0).max() > 1


def test_a_robot_stays_awake_for_a_control_that_is_still_to_act() -> None:
    text = """<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody><body><joint name="x" type="slide"
    damping="5"/><geom size="0.1" mass="1"/></body></worldbody>
    <actuator><motor joint="x" delay="0.4" nsample="200"/></actuator></mujoco>"""
    config = RunConfig(steps=700, record=("qpos", "asleep"), sleep_threshold=1e-4, sleep_time=0.05)
    plan = plan_run(load_text(text, name="m"), config)
    zero = np.zeros((3, 1))
    simulation = Simulation(plan, Controls(np.array([0, 100, 101]), zero, zero, zero, np.array([[0.0], [50.0], [0.0]])))
    rows = [{name: values.copy() for name, values in block.rows.items()} for block in simulation.blocks()]
    qpos = np.concatenate([part["qpos"] for part in rows])[:, 0]
    asleep = np.concatenate([part["asleep"] for part in rows])
    assert asleep[60] and not asleep[101:300].any() and asleep[-1]
    assert not qpos[:301].any() and qpos[302] > 0


def test_a_delay_that_its_samples_do_not_hold_is_told() -> None:
    text = model(
        '<motor name="m" joint="x" delay="0.1" nsample="5"/>', '<jointpos joint="a" delay="0.01" nsample="5"/>'
    )
    notes = plan_run(load_text(text, name="m"), RunConfig(steps=1, record=RECORD)).notes
    assert len(notes) == 2 and "delay of actuator 'm', 0.1 s, is longer than its 5 samples last" in notes[0]
    check(text)
    longer = text.replace('nsample="5"', 'nsample="60"')
    assert plan_run(load_text(longer, name="m"), RunConfig(steps=1, record=RECORD)).notes == ()


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ('delay="0.1"', "delay is 0.1 s, but there is no nsample"),
        ('delay="0.1" nsample="1.5"', "nsample is 1.5, want a whole number"),
        ('delay="0.1" nsample="3" interp="spline"', "interp is 'spline'"),
        ('delay="0.1" nsample="20000000"', "nsample is 20000000, want at most 1000000"),
        ('delay="nan" nsample="2"', "delay"),
    ],
)
def test_what_is_wrong_is_refused(attributes: str, told: str) -> None:
    for text in (model(f'<motor joint="x" {attributes}/>'), model(sensors=f'<jointpos joint="a" {attributes}/>')):
        with pytest.raises(ModelError, match=r"m:\d+: .*") as error:
            load_text(text, name="m")
        assert told in str(error.value)


@pytest.mark.parametrize("attributes", ['delay="-0.1"', 'delay="-0.1" nsample="3"'])
def test_numbers_below_zero_are_what_mujoco_makes_of_them(attributes: str) -> None:
    """With samples a control's delay is one step, the least there is; without them, and of a sensor, none."""
    kinds = (KINDS[0], *KINDS[2:5])
    acting = "".join(f"<{kind.format(j='xab'[k % 3])} {attributes}/>" for k, kind in enumerate(kinds))
    late = f'delay="{2 * DT!r}" nsample="3"'
    text = model(
        f'{acting}<motor joint="x" {late}/>', f'<jointpos joint="a" {attributes}/><jointvel joint="a" {late}/>'
    )
    check(text)
    check(text.replace('"Euler"', '"RK4"'), integrator="rk4")
    told = [note.message for note in load_text(text, name="m").notes]
    assert len(told) == len(kinds) + 1 and all("as in MuJoCo" in line for line in told)
    with pytest.raises(ModelError, match="below 0"):
        load_text(text, name="m", strict=True)


def test_fewer_samples_than_none_are_none() -> None:
    """In MuJoCo, too, where nothing else is delayed; else their number is taken off what it keeps of the others."""
    text = model('<motor joint="x" nsample="-2"/>')
    robot = load_text(text, name="m")
    assert robot.actuators[0].delay is None and "nsample is -2" in robot.notes[0].message
    zero = np.zeros((20, 3))
    controls = Controls(np.arange(20), zero, zero, zero, np.random.default_rng(0).normal(size=(20, 1)))
    theirs = (mujoco_s(text, controls), mujoco_s(text.replace('nsample="-2"', ""), controls))
    np.testing.assert_array_equal(theirs[0]["qpos"], theirs[1]["qpos"])


def test_samples_that_do_not_exist_are_not_read() -> None:
    """MuJoCo's controls are then whatever its memory holds."""
    with pytest.raises(ModelError, match=r"delay is -0\.1 s and nsample -2: MuJoCo reads samples that do not exist"):
        load_text(model('<motor joint="x" delay="-0.1" nsample="-2"/>'), name="m")


def test_an_interval_without_samples_has_no_effect() -> None:
    text = model(sensors=f'<jointpos joint="a" interval="0.1"/><jointvel joint="a" delay="{DT!r}" nsample="3"/>')
    check(text)
    assert "interval 0.1 s has no effect" in load_text(text, name="m").notes[0].message


@pytest.mark.parametrize("interval", ["-0.1", "0.1 0.05", "0.1 -0.1", "0.1 0 0"])
def test_intervals_that_are_none(interval: str) -> None:
    text = model(sensors=f'<jointpos joint="a" interval="{interval}" nsample="3"/>')
    with pytest.raises(ModelError, match=r"jointpos.*interval"):
        load_text(text, name="m")
    with pytest.raises(ValueError, match=r"interval|phase"):
        mujoco.MjModel.from_xml_string(text)
