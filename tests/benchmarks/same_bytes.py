"""Whether two trees compute the same bytes: every array of many runs, batches and rollouts hashed and compared.

    python -m tests.benchmarks.same_bytes --write base.json [--only PATTERN …] [--quick] [--arrays FOLDER]
    python -m tests.benchmarks.same_bytes --against base.json [--only PATTERN …] [--quick] [--arrays FOLDER]
    python -m tests.benchmarks.same_bytes --list

--against prints a line for every case that differs, with the arrays, where along their rows they begin to, and by how
much their sums and largest entries do; with the --arrays that the baseline was written with, also the largest
difference. It ends with `N cases, M differ` and fails when any do. A case that raises is recorded by its error, which
has to stay the same too. --only takes names (`run/arm7/*`) or parts of them; --quick takes a few cases that need few
kernels. -v names every case before it runs.

Cases use what `import artsim` offers and the names of recorded variables, nothing of the engine's insides, so that this
file runs with any tree: `PYTHONPATH=other/src python -m tests.benchmarks.same_bytes`. Robots are those of the robots/
beside it; public models those of the folder $ARTSIM_CORPUS, without which their cases are left out.
"""

from __future__ import annotations

import argparse
import faulthandler
import fnmatch
import hashlib
import json
import os
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import artsim

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
Options = Mapping[str, Any]
NONE: Options = MappingProxyType({})

ROOT = Path(__file__).resolve().parents[2]
ROBOTS = ROOT / "robots"
CORPUS = Path(os.environ.get("ARTSIM_CORPUS", ROOT.parent / "shared" / "corpus"))
SOLVERS = ("newton", "pgs", "tgs", "block-gs", "propagation", "direct")
PARTS = 16  # of an array's rows, each with a checksum that says where a difference begins
LARGE = 60  # dofs from which matrices are not recorded

FORCES = tuple(f"tau_{name}" for name in "applied drive passive coupling limit loop tendon contact".split())
RECORD = (
    *("qpos", "qvel", "qacc", *FORCES, "link_position", "link_quaternion"),
    *("incoming_wrench", "contact_wrench", "external_wrench", "activation", "sensors"),
    *("actuator_force", "actuator_length", "actuator_velocity", "tendon_length", "tendon_velocity", "tendon_force"),
    *("gravity", "bias", "com", "momentum", "energy", "solver_iterations", "solver_residual", "asleep", "contacts"),
)
MATRICES = ("jacobian", "mass_matrix")


class Case(NamedTuple):
    """A name and what computes its arrays."""

    name: str
    run: Callable[[], Arrays]
    quick: bool = False


# ------------------------------------------------------------------ models


def model_path(source: str) -> Path:
    """A file of robots/, a model of the corpus by its id, or one of TEXTS, written to a temporary folder."""
    if source in TEXTS:
        path = _folder() / f"{source}.xml"
        path.write_text(f"<mujoco>{TEXTS[source]}</mujoco>")
        return path
    if (ROBOTS / source).is_file():
        return ROBOTS / source
    return CORPUS / _corpus()[source]


@lru_cache(maxsize=4)
def load(source: str, **options: Any) -> artsim.Robot:
    """The robot, without meshes where one is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return artsim.load(model_path(source), **options)
        except artsim.ModelError:
            return artsim.load(model_path(source), meshes=False, **options)


@cache
def _corpus() -> dict[str, str]:
    index = CORPUS / "index.json"
    entries = json.loads(index.read_text()) if index.is_file() else []
    return {entry["id"]: entry["path"] for entry in entries}


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="same_bytes_")


def _folder() -> Path:
    return Path(_temporary().name)


def driven_dofs(robot: artsim.Robot) -> list[str]:
    """Joints of one dof that follow no other."""
    return [name for name in robot.independent_dofs if name in robot.coords]


def actuators(source: str, robot: artsim.Robot) -> list[str]:
    """Names of the actuators of an MJCF model; those that a URDF names are joints' drives."""
    is_urdf = model_path(source).suffix == ".urdf"
    return [] if is_urdf else [actuator.name for actuator in robot.articulation.actuators]


def moving(robot: artsim.Robot, speed: float, seed: int = 1) -> dict[str, float]:
    """Velocities of the independent dofs."""
    values = np.random.default_rng(seed).normal(size=len(robot.independent_dofs)) * speed
    return dict(zip(robot.independent_dofs, values.tolist(), strict=True))


def drives(robot: artsim.Robot, stiffness: float, damping: float, reach: float, seed: int = 2) -> dict[str, Any]:
    """Drives of what can be driven, to targets within `reach` of 0."""
    names = driven_dofs(robot)
    targets = np.random.default_rng(seed).uniform(-reach, reach, len(names))
    return {
        "stiffness": dict.fromkeys(names, stiffness),
        "damping": dict.fromkeys(names, damping),
        "target": dict(zip(names, targets.tolist(), strict=True)),
    }


# ------------------------------------------------------------------ what cases do


def simulate(source: str, loading: Options, settings: Options, speed: float = 0.0, gains: float = 0.0) -> Arrays:
    """A run in memory; from `speed` on independent dofs, `gains` the stiffness of drives."""
    robot = load(source, **loading)
    return of_run(artsim.simulate(robot, check=False, **completed(source, robot, settings, speed, gains)))


def completed(source: str, robot: artsim.Robot, settings: Options, speed: float, gains: float) -> dict[str, Any]:
    """The settings of a run with start, drives, excited actuators, pushed joints and what is recorded."""
    given: dict[str, Any] = {"record": RECORD if robot.nv > LARGE else (*RECORD, *MATRICES)}
    settings = dict(settings)
    rng = np.random.default_rng(3)
    if speed:
        given["v0"] = moving(robot, speed)
    if gains:
        given |= drives(robot, gains, 0.1 * gains, 0.3)
    if push := settings.pop("push", 0.0):
        given["torque"] = {name: push * float(rng.normal()) for name in driven_dofs(robot)}
    if excitation := settings.pop("excitation", 0.0):
        given["control"] = {name: excitation * float(rng.normal()) for name in actuators(source, robot)}
    return given | settings


def of_run(run: Any) -> Arrays:
    """Recorded rows, contacts, the state at the end, how it ended."""
    arrays = {name: np.asarray(run[name]) for name in run.variables}
    arrays |= {f"contacts/{name}": np.asarray(values) for name, values in dict(run.contacts or {}).items()}
    arrays |= {f"final/{name}": np.asarray(values) for name, values in dict(run.final or {}).items()}
    return arrays | {"status": np.asarray(int(run.status))}


def simulate_to_file(source: str, loading: Options, settings: Options) -> Arrays:
    """A run into a file with checkpoints, read from there."""
    robot, path = load(source, **loading), _folder() / "run.h5"
    given = completed(source, robot, settings, 0.3, 50.0)
    with artsim.simulate(robot, output=path, force=True, checkpoint=60, **given) as recording:
        return of_run(recording)


def controlled(source: str, settings: Options) -> Arrays:
    """A run with another input every few steps, of drives, torques and actuators."""
    robot, path = load(source), _folder() / "inputs.npz"
    rng, rows = np.random.default_rng(4), 12
    if names := actuators(source, robot):
        inputs = {"control": rng.normal(size=(rows, len(names)))}
    else:
        inputs = {name: rng.normal(size=(rows, robot.nv)) * 0.3 for name in ("torque", "target", "velocity")}
        settings = {**drives(robot, 40.0, 4.0, 0.0), **settings}
    np.savez(path, time=np.arange(rows) * 0.02, **inputs)
    return of_run(artsim.simulate(robot, controls=path, check=False, record=RECORD, **settings))


def asked(source: str, settings: Options) -> Arrays:
    """A run whose joint forces a Python function gives."""
    robot = load(source)

    def controller(t: float, q: Array, v: Array) -> Array:
        return -20.0 * q[: robot.nv] - 2.0 * v + np.sin(7.0 * t)

    return of_run(artsim.simulate(robot, controller=controller, check=False, record=RECORD, **settings))


def stepped(source: str, loading: Options, settings: Options) -> Arrays:
    """Steps in pieces, with a restart from what was saved in between."""
    robot = load(source, **loading)
    simulation = artsim.Simulation(robot, **completed(source, robot, settings, 0.2, 100.0))
    first = simulation.step(70)
    saved = simulation.save()
    second = simulation.step(50)
    simulation.restore(saved)
    parts = {"first": first, "saved": saved, "second": second, "again": simulation.step(50)}
    return {f"{part}/{name}": np.asarray(values) for part, found in parts.items() for name, values in found.items()}


def compute(source: str, loading: Options, rows: int, options: Options) -> Arrays:
    """All quantities of random configurations; of one as a vector, not a table."""
    robot = load(source, **loading)
    rng = np.random.default_rng(rows)
    qpos = robot.reference + 0.4 * rng.normal(size=(rows, robot.nq))
    others = [rng.normal(size=(rows, robot.nv)) for _ in range(3)]
    links = options.get("links") or robot.links
    given = [qpos, *others, rng.normal(size=(rows, len(links), 6))]
    if rows == 1:
        given = [values[0] for values in given]
    return robot.compute(*given, quantities=(*QUANTITIES, "status"), threads=1, **options)


QUANTITIES = (
    *("gravity", "coriolis", "bias", "mass_matrix", "inverse_mass_matrix", "inverse_dynamics", "forward_dynamics"),
    *("external_force", "jacobian", "jacobian_dot", "link_pose", "link_velocity", "link_acceleration", "com"),
    *("com_jacobian", "momentum", "centroidal_momentum_matrix", "centroidal_bias", "kinetic_energy"),
    *("potential_energy", "coupling_matrix"),
)


def rollout(source: str, loading: Options, settings: Options, varied_inputs: float = 0.0, gains: float = 0.0) -> Arrays:
    """Samples in memory, with how many steps packs gave up; `varied_inputs`: of each sample's own controls."""
    robot = load(source, **loading)
    given = {"threads": 1, "check": False, "record": ("qpos", "qvel"), **settings}
    if gains:
        given = {**drives(robot, gains, 0.1 * gains, 0.3), **given}
    if varied_inputs:
        given["controls"] = _sample_inputs(source, robot, given, varied_inputs)
    made = artsim.rollout(robot, **given)
    outcome = made.outcome  # type: ignore[union-attr]
    alone = getattr(outcome, "steps_alone", 0)  # of trees whose packs give up steps
    counts = np.array([outcome.samples, outcome.steps, outcome.packed, alone, outcome.stopped])
    return {"counts": counts, **{name: np.asarray(made[name]) for name in made.variables}}


def _sample_inputs(source: str, robot: artsim.Robot, settings: Options, reach: float) -> Path:
    path, rows, samples = _folder() / "samples.npz", 4, settings["samples"]
    rng, times = np.random.default_rng(6), np.arange(rows) * settings["steps"] * settings.get("dt", 0.002) / rows
    names = actuators(source, robot)
    kind, width = ("control", len(names)) if names else ("torque", robot.nv)
    np.savez(path, time=times, **{kind: rng.normal(size=(samples, rows, width)) * reach})
    return path


def bench(source: str, *words: str) -> Arrays:
    """What `artsim bench` counts while it times the phases of the same step."""
    from click.testing import CliRunner

    from artsim.cli.main import cli

    done = CliRunner().invoke(cli, ["bench", str(model_path(source)), "--steps", "100", "--json", *words])
    if done.exit_code:
        raise RuntimeError(done.output)
    told = json.loads(done.stdout)
    return {name: np.asarray(told[name]) for name in ("steps", "rows", "contacts", "iterations")}


# ------------------------------------------------------------------ robots/

LEGS = [f"{end}_{side}" for end in ("front", "rear") for side in ("left", "right")]
STANCE = {f"{leg}_{joint}": angle for leg in LEGS for joint, angle in (("hip", 0.8), ("knee", -1.6))}


class Subject(NamedTuple):
    """A robot as cases simulate it: how it is loaded, its settings, its speed at the start, the stiffness of drives."""

    source: str
    loading: Options = NONE
    settings: Options = NONE
    speed: float = 0.3
    gains: float = 50.0

    def case(self, name: str, *, quick: bool = False, **settings: Any) -> Case:
        """A run of 250 steps with more settings, which win; `speed` and `gains` among them."""
        given = {"steps": 250, **self.settings, **settings}
        speed, gains = given.pop("speed", self.speed), given.pop("gains", self.gains)
        return Case(name, partial(simulate, self.source, self.loading, given, speed, gains), quick)


FLOATING = {"base": "floating"}
STANDING = {"ground": True, "q0": {"root.z": 0.3, **STANCE}, "target": STANCE}
SUBJECTS = {
    "arm7": Subject("arm7.urdf", gains=200.0),
    "chain20": Subject("chain20.urdf", gains=5.0),
    "clamp": Subject("clamp.xml", settings={"control": {"grip": 1.0}}, speed=0.0, gains=0.0),
    "double_pendulum": Subject("double_pendulum.urdf", speed=2.0, gains=5.0),
    "finger": Subject("finger.urdf", settings={"ground": True, "ground_friction": 0.5, "dt": 0.004}, gains=300.0),
    "floating_box": Subject("floating_box.urdf", {}, {"ground": True, "q0": {"floating_joint.z": 0.3}}, 1.0, 0.0),
    "leg": Subject("leg.xml", settings={"excitation": 5.0}, gains=0.0),
    "parallel_gripper": Subject("parallel_gripper.urdf", speed=0.05),
    "planar_base": Subject("planar_base.urdf", speed=1.0, gains=3.0),
    "quadruped": Subject("quadruped.urdf", FLOATING, STANDING, speed=0.2, gains=300.0),
    "rack": Subject("rack_and_pinion.urdf", gains=20.0),
    "stiff_chain": Subject("stiff_drive_chain.urdf", gains=1e5),
    "two_finger": Subject("two_finger_gripper.urdf", gains=2.0),
}
QUICK = {("arm7", "newton"), ("two_finger", "newton"), ("leg", "newton"), ("clamp", "newton"), ("arm7", "pgs")}


def robot_cases() -> Iterator[Case]:
    """Every robot by every solver, with drives and without, by RK4, and without contacts."""
    for name, subject in SUBJECTS.items():
        free = {"gains": 0.0, "target": {}}
        for solver in SOLVERS:
            yield subject.case(f"run/{name}/{solver}/driven", solver=solver, quick=(name, solver) in QUICK)
            yield subject.case(f"run/{name}/{solver}/free", solver=solver, steps=150, **free)
        airy = {"contacts": False, "ground": False}
        yield subject.case(f"run/{name}/rk4/driven", integrator="rk4", **airy)
        yield subject.case(f"run/{name}/rk4/free", integrator="rk4", **airy, **free)
        for solver in SOLVERS:
            yield subject.case(f"run/{name}/{solver}/untouched", solver=solver, steps=100, **airy)


# ------------------------------------------------------------------ options

COUPLED = ("parallel_gripper", "two_finger", "rack", "stiff_chain", "leg")
GROUNDED = ("quadruped", "floating_box", "finger", "leg")
FEATURES: dict[str, tuple[tuple[str, ...], Options]] = {
    "joint-friction": (("arm7", "quadruped", "two_finger", "planar_base"), {"friction_coefficient": 0.2}),
    "velocity-limits": (("arm7", "finger", "quadruped"), {"velocity_limits": True, "speed": 6.0}),
    "drive-limit": (("arm7", "quadruped", "two_finger"), {"drive_limit": 3.0}),
    "drive-impulse": (("arm7", "quadruped"), {"drive_limit": 0.02, "drive_limit_kind": "impulse"}),
    "acceleration-drive": (("arm7", "quadruped", "two_finger", "rack"), {"drive_mode": "acceleration"}),
    "coupling-exact": (COUPLED, {"coupling": "exact"}),
    "coupling-rows": (COUPLED, {"coupling": "rows"}),
    "coupling-erp": (COUPLED, {"coupling": "rows", "coupling_erp": 0.2}),
    "coupling-soft": (COUPLED, {"coupling": "compliant", "coupling_frequency": 8.0, "coupling_damping": 0.4}),
    "restitution": (GROUNDED, {"restitution": 0.6, "speed": 1.0}),
    "pyramidal": (GROUNDED, {"cone": "pyramidal", "speed": 1.0}),
    "slippery": (GROUNDED, {"ground_friction": 0.05, "speed": 1.0}),
    "continuous": (GROUNDED, {"continuous": True, "speed": 8.0, "gains": 0.0, "target": {}, "dt": 0.01}),
    "self-collide": (("quadruped", "arm7"), {"self_collide": True, "speed": 3.0, "gains": 0.0, "target": {}}),
    "few-iterations": (("quadruped", "chain20", "clamp"), {"iterations": 2}),
    "large-step": (("quadruped", "arm7", "chain20", "clamp", "leg"), {"dt": 0.02, "steps": 100}),
    "link-damping": (("arm7", "quadruped", "clamp", "leg"), {"link_damping": {"*": (0.5, 0.2)}}),
    "sleep": (("quadruped", "arm7", "finger", "clamp"), {"sleep_threshold": 1e-3, "sleep_time": 0.1, "steps": 500}),
    "gravity": (("arm7", "quadruped"), {"gravity": (1.0, -2.0, -3.0)}),
    "torque": (("double_pendulum", "planar_base", "leg"), {"push": 0.5, "every": 3}),
    "compensated": (("arm7", "two_finger", "chain20"), {"controller": "gravity-compensation", "gains": 0.0}),
    "computed-torque": (("arm7", "chain20", "two_finger"), {"controller": "computed-torque"}),
    "hold": (("arm7", "double_pendulum"), {"controller": "hold", "gains": 0.0}),
    "full": (("quadruped",), {"max_contacts": 2, "speed": 1.0}),
    "breaking": (("chain20",), {"dt": 0.3, "speed": 300.0, "gains": 0.0}),
}
RULES = {"link_velocity_limit": {"*": (0.4, 1.5)}, "com_velocity_limit": (0.3, 2.0), "speed": 1.0}


def option_cases() -> Iterator[Case]:
    """Options of runs, by Newton's method and by sweeps; rules of links by the kernels of all solvers."""
    for feature, (names, settings) in FEATURES.items():
        for name in names:
            for solver in ("newton", "pgs", "block-gs"):
                subject = SUBJECTS[name]
                yield subject.case(f"option/{feature}/{name}/{solver}", **{**settings, "solver": solver})
    airy = {"contacts": False, "ground": False}
    for name in ("arm7", "quadruped", "clamp", "leg", "two_finger"):
        for solver in SOLVERS:
            yield SUBJECTS[name].case(f"option/rules/{name}/{solver}", **RULES, solver=solver)
            yield SUBJECTS[name].case(f"option/rules/{name}/{solver}/untouched", **RULES, **airy, solver=solver)
    for solver in ("propagation", "direct", "tgs"):
        for feature in ("coupling-rows", "joint-friction", "drive-limit", "velocity-limits", "slippery", "large-step"):
            names, settings = FEATURES[feature]
            yield SUBJECTS[names[0]].case(f"option/{feature}/{names[0]}/{solver}", **{**settings, "solver": solver})
    for name in ("arm7", "double_pendulum", "floating_box", "parallel_gripper", "two_finger", "quadruped", "rack"):
        for scheme in ("baumgarte", "implicit"):
            maximal = {"coordinates": "maximal", "scheme": scheme, "steps": 60, "record": ("qpos", "qvel", *FORCES)}
            yield SUBJECTS[name].case(f"option/maximal/{name}/{scheme}", **maximal, **airy, gains=0.0, target={})


def way_cases() -> Iterator[Case]:
    """Other ways into the same steps: files, inputs over time, Python controllers, steps in pieces, `artsim bench`."""
    settings = {"steps": 200, **STANDING}
    yield Case("way/file/arm7", partial(simulate_to_file, "arm7.urdf", {}, {"steps": 200}))
    yield Case("way/file/quadruped", partial(simulate_to_file, "quadruped.urdf", FLOATING, settings))
    yield Case("way/file/clamp", partial(simulate_to_file, "clamp.xml", {}, {"steps": 200}))
    yield Case("way/inputs/arm7", partial(controlled, "arm7.urdf", {"steps": 200}))
    yield Case("way/inputs/arm7/rk4", partial(controlled, "arm7.urdf", {"steps": 200, "integrator": "rk4"}))
    yield Case("way/inputs/leg", partial(controlled, "leg.xml", {"steps": 200}))
    for name in ("arm7", "double_pendulum", "chain20"):
        yield Case(f"way/python/{name}", partial(asked, f"{name}.urdf", {"steps": 100}))
    yield Case("way/pieces/arm7", partial(stepped, "arm7.urdf", {}, {}))
    yield Case("way/pieces/quadruped", partial(stepped, "quadruped.urdf", FLOATING, STANDING))
    yield Case("way/pieces/leg", partial(stepped, "leg.xml", {}, {}))
    yield Case("way/bench/arm7", partial(bench, "arm7.urdf"))
    yield Case("way/bench/box", partial(bench, "floating_box.urdf", "--ground", "--q0", "floating_joint.z=0.1"))


# ------------------------------------------------------------------ models written here

FLOOR = '<geom name="floor" type="plane" size="5 5 .1"/>'
BALL = '<body pos="{}"><freejoint/><geom type="sphere" size="0.1" mass="1" {}/></body>'
ON_FLOOR, NEAR_IT, ABOVE = BALL.format("0 0 .1", ""), BALL.format("1 0 .15", 'condim="6"'), BALL.format("0 0 .299", "")
BOUNCY = BALL.format("0 0 .16", 'solref=".01 .3"')
SLICK = BALL.format("0 0 .12", 'condim="1" priority="1"')
SEEN = BALL.format(".3 0 .5", "")
ARM = """<body name="car"><joint name="x" type="slide" axis="1 0 0"/><geom size="0.1" mass="2" contype="0"/>
<body name="arm" pos="0 0 0.1"><joint name="a" axis="0 1 0" ref="0.2"/>
<geom type="capsule" fromto="0 0 0 0.4 0 0.1" size="0.03" mass="1" contype="0"/><site name="s" pos="0.3 0 0.1"/>
<body name="tip" pos="0.4 0 0.1"><joint name="b" axis="0.3 1 0.2"/>
<geom type="box" size="0.05 0.1 0.02" pos="0.1 0 0" mass="0.5" contype="0"/><site name="t" pos="0.1 0 0"/>
</body></body></body>"""
HILLS = """<asset><hfield name="hills" nrow="4" ncol="5" size=".5 .4 .3 .1"
elevation="0 1 3 1 0  2 5 4 2 1  1 3 6 8 2  0 0 2 1 4"/><mesh name="tent" scale=".3 .2 .4"
vertex="-1 -1 0  1 -1 0  1 1 0  -1 1 0  0 0 1"/></asset>"""
SHAPES = (
    'type="sphere" size=".06"',
    'type="capsule" size=".04 .06"',
    'type="cylinder" size=".05 .04"',
    'type="ellipsoid" size=".05 .06 .08"',
    'type="box" size=".05 .04 .06"',
    'type="mesh" mesh="tent"',
)
HEAP = "".join(
    f'<body pos="{0.11 * (n % 3 - 1)} {0.11 * (n // 3 % 2)} {0.45 + 0.16 * (n // 6)}" euler="{20 * n} {7 * n} 0">'
    f'<freejoint/><geom {SHAPES[n % 6]} mass="0.5" condim="{(3, 4, 6)[n % 3]}" friction=".7 .01 .002"/></body>'
    for n in range(12)
)
ONE_WAY = '<geom type="box" size=".3 .3 .02" pos="0 0 .02" solref="-2000 -50" friction=".3"/>'
TEXTS = {
    "free": """<worldbody><body name="box"><freejoint/>
<inertial pos="0 0 0.1" mass="2" diaginertia="0.3 0.2 0.1"/>
<body name="rod" pos="0 0 0.5"><joint name="hip" type="ball"/>
<inertial pos="0 0 0.2" mass="1" diaginertia="0.1 0.2 0.3"/>
<body name="slider" pos="0 0 0.4"><joint name="slide" type="slide" axis="1 0 0" stiffness="5" damping="0.1"/>
<inertial pos="0 0 0" mass="0.5" diaginertia="0.1 0.1 0.1"/></body></body></body></worldbody>""",
    "servos": """<option timestep="0.004"/><worldbody><body><joint name="a" range="-60 60" armature="0.02"/>
<inertial pos="0 0.1 0.2" mass="2" diaginertia="0.03 0.02 0.01"/><body pos="0 0 0.4">
<joint name="b" axis="0 1 0" range="-90 90" damping="0.1" actuatorfrcrange="-9 9"/>
<inertial pos="0 0 0.2" mass="1" diaginertia="0.01 0.01 0.01"/><body pos="0 0 0.4">
<joint name="c" type="slide" axis="1 0 0"/><inertial pos="0 0 0.1" mass="0.5" diaginertia="0.01 0.01 0.01"/>
</body></body></body></worldbody><actuator><position joint="a" kp="80" kv="6" forcerange="-12 12"/>
<motor name="push" joint="b" gear="3" ctrlrange="-1 1"/><velocity joint="c" kv="4" gear="-2"/>
<general joint="b" gainprm="20" biastype="affine" biasprm="0.5 -20 -1"/></actuator>""",
    "rubbing": """<worldbody><body><joint name="a" frictionloss="1.5" range="-90 90" armature="0.02"/>
<inertial pos="0 0.1 0.2" mass="2" diaginertia="0.03 0.02 0.01"/><body pos="0 0 0.4">
<joint name="b" axis="0 1 0" frictionloss="0.3" damping="0.1"/><inertial pos="0 0 0.2" mass="1"
diaginertia="0.01 0.01 0.01"/></body></body></worldbody>""",
    "tripod": f"""<option timestep="0.002"/><worldbody>{FLOOR}
<body pos="0 0 0.325"><freejoint/><geom type="box" size="0.2 0.1 0.05" mass="5"/>
<body pos="0.15 0.1 0"><joint name="a" axis="0 1 0" frictionloss="8" stiffness="200" damping="5" armature="0.01"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="0.3"/></body>
<body pos="0.15 -0.1 0"><joint name="b" axis="0 1 0" frictionloss="8" stiffness="200" damping="5" armature="0.01"/>
<geom type="sphere" pos="0 0 -0.3" size="0.02" mass="0.3" condim="6" friction="0.8 0.02 0.01" priority="1"
solref="0.01 1" solimp="0.8 0.95 0.01"/></body>
<body pos="-0.15 0 0"><joint name="c" axis="0 1 0" stiffness="200" damping="5" armature="0.01"/>
<geom type="box" pos="0 0 -0.3" size="0.03 0.03 0.02" mass="0.3"/></body>
</body></worldbody>""",
    "sled": """<option gravity="3 0 -9" timestep="0.002"/><worldbody>
<geom type="plane" size="5 5 0.1" friction="0.3"/>
<body pos="0 0 0.05"><freejoint/><geom type="box" size="0.2 0.2 0.05" friction="0.3" mass="3"/></body></worldbody>""",
    "stack": f"<worldbody>{FLOOR}{ON_FLOOR}{ABOVE}</worldbody>",
    "apart": f"<worldbody>{FLOOR}{ON_FLOOR}{NEAR_IT}</worldbody>",
    "heap": f"{HILLS}<worldbody>{FLOOR}{HEAP}</worldbody>",
    "hills": f'{HILLS}<worldbody><geom type="hfield" hfield="hills"/>{HEAP}</worldbody>',
    "soft": f"<worldbody>{FLOOR}{ONE_WAY}{BOUNCY}</worldbody>",
    "frictionless": f"<worldbody>{FLOOR}{SLICK}</worldbody>",
    "propeller": """<option gravity="0 0 0"/><worldbody><geom type="capsule" size=".005 .1" pos="-.15 .1 0" condim="1"/>
<body><joint name="q" axis="0 0 1"/><geom type="box" size=".1 .01 .001" pos=".12 0 0" mass=".02" condim="1"/></body>
</worldbody>""",
    "delays": f"""<option timestep="0.002"/><worldbody>{FLOOR}{ARM}</worldbody><actuator>
<motor name="m" joint="x" delay="0.006" nsample="5"/>
<position name="p" joint="a" kp="3" delay="0.005" nsample="4" interp="linear"/>
<general name="g" joint="b" dyntype="filter" dynprm="0.02" delay="0.0074" nsample="8" interp="cubic"/></actuator>
<sensor><jointpos joint="a" delay="0.004" nsample="4"/><accelerometer site="t" delay="0.003" nsample="4"
interp="linear"/></sensor>""",
    "states": f"""<option timestep="0.002"/><worldbody>{ARM}</worldbody><actuator>
<general name="f" joint="x" dyntype="filter" dynprm="0.05"/><general name="i" joint="a" dyntype="integrator"
actlimited="true" actrange="-1 1"/><general name="e" joint="b" dyntype="filterexact" dynprm="0.01" actearly="true"/>
<damper name="d" joint="b" kv="0.3" ctrlrange="0 1"/><dcmotor name="dc" joint="x" motorconst="0.05" resistance="2"/>
</actuator>""",
    "sensors": f"""<worldbody>{FLOOR}{ARM}{SEEN}</worldbody><sensor>
<rangefinder site="s"/><rangefinder site="t"/><accelerometer site="t"/><gyro site="t"/><velocimeter site="s"/>
<force site="t"/><torque site="s"/><framepos objtype="site" objname="t"/><framequat objtype="site" objname="t"/>
<framelinacc objtype="site" objname="t"/><jointpos joint="a"/><jointvel joint="b"/><subtreecom body="car"/>
<subtreeangmom body="car"/><clock/></sensor>""",
    "armature": f"""<worldbody><site name="u" pos="1 0 1"/><site name="w" pos="-1 .2 1"/>{ARM}</worldbody><tendon>
<spatial name="one" armature="3" stiffness="20" damping="1"><site site="u"/><site site="t"/></spatial>
<spatial name="two" armature=".7" frictionloss=".2" limited="true" range="0 1.6"><site site="w"/><site site="s"/>
</spatial><fixed name="sum" armature=".4"><joint joint="a" coef="2"/><joint joint="b" coef="-.5"/></fixed></tendon>
<actuator><motor tendon="one" gear="3"/></actuator>""",
    "loops": """<worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".1"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".02" mass="1" contype="0"/><body pos=".4 0 0"><joint name="b"
axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .4" size=".02" mass="1" contype="0"/></body></body>
<body name="f" pos="0 0 1"><joint name="c" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .4" size=".02" mass="1"
contype="0"/><body name="h" pos="0 0 .4"><joint name="d" axis="0 1 0" range="-100 100"/><geom type="capsule"
fromto="0 0 0 .4 0 0" size=".02" mass="1" contype="0"/><site name="e" pos=".4 0 0"/></body></body>
<body name="k" pos="1 0 1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1" contype="0"/></body></worldbody>
<equality><joint joint1="a" joint2="c" polycoef="0 1 .2 0 0"/><weld body1="k" body2="h" solref="0.05 1"/></equality>""",
    "wind": """<option density="1.2" viscosity="0.002" wind="1 2 0" integrator="RK4"/><worldbody><body pos="0 0 1">
<freejoint/><geom type="box" size=".1 .05 .01" mass=".1"/></body><body pos="1 0 1"><freejoint/>
<geom type="ellipsoid" size=".1 .05 .02" mass=".1" fluidshape="ellipsoid"/></body></worldbody>""",
    "muscle": """<worldbody><site name="o" pos="0 0 1"/><body pos="0 0 .5"><joint name="q" axis="0 1 0" range="-80 80"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="1"/><site name="i" pos=".2 0 .03"/></body></worldbody>
<tendon><spatial name="t"><site site="o"/><site site="i"/></spatial></tendon><actuator>
<muscle name="m" tendon="t" ctrlrange="0 1" force="50"/></actuator>""",
}


def text_cases() -> Iterator[Case]:
    """Models that have what robots/ has not."""
    moved: dict[str, Options] = {
        "propeller": {"v0": {"q": 400.0}, "dt": 1 / 240, "continuous": True, "restitution": 0.3, "steps": 30},
        "heap": {"steps": 200},
        "hills": {"steps": 200},
    }
    slow = {("heap", "propagation"), ("heap", "direct"), ("hills", "propagation"), ("hills", "direct")}
    for name in TEXTS:
        given = {"steps": 150, "excitation": 0.5, **moved.get(name, {})}
        subject = Subject(name, speed=0.0 if "v0" in given else 0.3, gains=0.0)
        for solver in SOLVERS:
            fewer = {"steps": 110} if (name, solver) in slow else {}
            yield subject.case(f"text/{name}/{solver}", solver=solver, **{**given, **fewer})
        yield subject.case(f"text/{name}/rk4", integrator="rk4", contacts=False, **given)
    for name in ("heap", "stack", "soft", "sled", "tripod"):
        for option in ("restitution", "pyramidal", "continuous"):
            value = {"restitution": 0.5, "pyramidal": "pyramidal", "continuous": True}[option]
            given = {"cone" if option == "pyramidal" else option: value, "steps": 150}
            yield Subject(name, gains=0.0).case(f"text/{name}/{option}", **given)
    for name in ("stack", "heap"):
        yield Subject(name, speed=0.0, gains=0.0).case(f"text/{name}/sleep", sleep_threshold=1e-3, steps=400)


# ------------------------------------------------------------------ public models

MJCF = {
    "mjcf.brax.envs_assets_ant": ("newton", "pgs"),
    "mjcf.brax.test_data_fluid_box": ("newton",),
    "mjcf.dm_control.locomotion_walkers_assets_humanoid_CMU_V2020": ("newton",),
    "mjcf.dm_control.locomotion_walkers_assets_rodent": ("newton",),
    "mjcf.dm_control.mujoco_testing_assets_model_with_ball_joints": ("newton", "direct"),
    "mjcf.dm_control.mujoco_testing_assets_model_with_third_order_actuators": ("newton",),
    "mjcf.gymnasium-robotics.hand_manipulate_block_touch_sensors": ("newton",),
    "mjcf.gymnasium.humanoidstandup": ("newton", "tgs"),
    "mjcf.menagerie-fork.robotiq_2f85_2f85": ("newton", "pgs", "propagation", "direct"),
    "mjcf.menagerie-fork.robotiq_2f85_scene": ("newton", "block-gs"),
    "mjcf.menagerie-fork.wonik_allegro_scene_right": ("newton",),
    "mjcf.mink.shadow_hand_scene_left": ("newton",),
    "mjcf.mink.shadow_hand_scene_right": ("newton",),
    "mjcf.mujoco.actuation_activation": ("newton",),
    "mjcf.mujoco.collision_box_boxbox_bad0": ("newton",),
    "mjcf.mujoco.collision_convex_multiple_objects": ("newton", "pgs"),
    "mjcf.mujoco.collision_convex_stacked_boxes": ("newton",),
    "mjcf.mujoco.core_constraint_jdotv_weld_3d": ("newton", "direct"),
    "mjcf.mujoco.core_constraint_surfacevel_conveyor": ("newton",),
    "mjcf.mujoco.core_smooth_ten_armature_4": ("newton",),
    "mjcf.mujoco.core_smooth_tendon_wrap_sphere": ("newton",),
    "mjcf.mujoco.derivative_tumbling_thin_object_ellipsoid": ("newton",),
    "mjcf.mujoco.island_island_efc": ("newton", "pgs"),
    "mjcf.mujoco.island_tendon_wrap": ("newton",),
    "mjcf.mujoco.mjx_mujoco_mjx_test_data_pendula": ("newton", "propagation"),
    "mjcf.mujoco.mjx_mujoco_mjx_test_data_sensor_sensor": ("newton",),
    "mjcf.mujoco.mjx_mujoco_mjx_test_data_tendon_pulley_fixed_site_wrap": ("newton",),
    "mjcf.mujoco.model_balloons_balloons": ("newton",),
    "mjcf.mujoco.model_humanoid_humanoid": ("newton", "pgs", "block-gs", "propagation", "direct"),
    "mjcf.mujoco.model_replicate_cylinder": ("newton",),
    "mjcf.mujoco.model_replicate_newton_cradle": ("newton",),
    "mjcf.mujoco.model_replicate_particle_free": ("newton",),
    "mjcf.mujoco.passive_poly_stiffness": ("newton",),
    "mjcf.mujoco.sensor_contact_net": ("newton",),
    "mjcf.mujoco.sleep_equality": ("newton",),
    "mjcf.mujoco.test_testdata_model": ("newton",),
    "mjcf.mujoco.vis_interact_boxes": ("newton",),
    "mjcf.mujoco_warp.benchmarks_humanoid_three_humanoids": ("newton",),
    "mjcf.mujoco_warp.mujoco_warp_test_data_actuation_slidercrank": ("newton",),
    "mjcf.mujoco_warp.mujoco_warp_test_data_hfield_hfield": ("newton",),
    "mjcf.myo_sim.basic_myomuscle": ("newton",),
    "mjcf.newton.newton_examples_assets_tabletop": ("newton",),
    "mjcf.pybullet_data.mjcf_thrower": ("newton",),
    "mjcf.unilab.stewart_scene": ("newton", "pgs", "direct"),
}
BARE: Options = MappingProxyType({"base": "floating", "meshes": False})  # whose meshes the corpus has not
FIXED: Options = MappingProxyType({"base": "fixed"})
URDF = {
    "urdf.cassie_description.urdf_cassie_v4": (BARE, -1.0),
    "urdf.dex-urdf.hands_shadow_hand_shadow_hand_right": (FIXED, 0.0),
    "urdf.drake-models.atlas_atlas_minimal_contact": (FLOATING, -1.0),
    "urdf.drake-models.franka_description_urdf_panda_arm_hand": (FIXED, 0.0),
    "urdf.example-parallel-robots.digit_like_robot": (BARE, -0.9),
    "urdf.example-robot-data.anymal_b_simple_description_robots_anymal": (FLOATING, -0.58),
    "urdf.example-robot-data.g1_description_urdf_g1_29dof_rev_1_0": (BARE, -0.82),
    "urdf.example-robot-data.go1_description_urdf_go1": (FLOATING, -0.4),
    "urdf.example-robot-data.go2_description_urdf_go2": (BARE, -0.4),
    "urdf.example-robot-data.talos_data_robots_talos_reduced": (BARE, -1.05),
    "urdf.jaxsim.tests_assets_4_bar_opened": (FIXED, 0.0),
    "urdf.pybullet_data.quadruped_minitaur_v1": (FLOATING, -0.16),
    "urdf.pybullet_data.quadruped_spirit40": (FLOATING, -0.4),
    "urdf.pybullet_data.r2d2": (FLOATING, -0.5),
    "urdf.pybullet_data.racecar_racecar": (FLOATING, -0.06),
    "urdf.robotiq_sim.assets_robotiq_2f_85": (FIXED, 0.0),
    "urdf.toddlerbot.toddlerbot_active_toddlerbot_active": (FLOATING, -0.5),
    "urdf.urdf_files_dataset.ros-industrial_xacro_generated_universal_robots_ur_description_urdf_ur5": (FIXED, 0.0),
}
"""Loading options, and the height of the ground under what floats [m]."""


def corpus_cases() -> Iterator[Case]:
    """Public models: MJCF with random controls, URDF with drives, those that float dropped on the ground."""
    for ident, solvers in MJCF.items():
        for solver in solvers:
            closing = {"steps": 400, "excitation": 200.0} if ident.endswith("2f85_2f85") else {}
            settings = {"steps": 100, "excitation": 0.3, **closing}
            subject = Subject(ident, settings=settings, speed=0.1, gains=0.0)
            quick = solver == "newton" and ident.endswith(
                ("humanoid_humanoid", "2f85_scene", "wonik_allegro_scene_right")
            )
            yield subject.case(f"corpus/{ident}/{solver}", solver=solver, quick=quick)
    for ident, (loading, height) in URDF.items():
        for solver in ("newton", "pgs"):
            settings = {"steps": 150, "solver": solver, "ground": height < 0.0, "ground_height": height}
            speed = 0.0 if "parallel" in ident else 0.1  # of what loops leave free nobody says
            yield Subject(ident, loading, settings, speed).case(f"corpus/{ident}/{solver}")


# ------------------------------------------------------------------ batches and rollouts

COMPUTED = (
    ("arm7.urdf", {}),
    ("chain20.urdf", {}),
    ("two_finger_gripper.urdf", {}),
    ("planar_base.urdf", {}),
    ("quadruped.urdf", FLOATING),
    ("leg.xml", {}),
    ("clamp.xml", {}),
    ("free", {}),
    ("armature", {}),
    ("mjcf.mujoco.model_humanoid_humanoid", {}),
)


def batch_cases() -> Iterator[Case]:
    """All quantities of many configurations, which packs compute, and of one; also reduced, of a few links."""
    for source, loading in COMPUTED:
        for rows in (1003, 1):
            quick = source in ("arm7.urdf", "quadruped.urdf")
            yield Case(f"compute/{source}/{rows}", partial(compute, source, loading, rows, {}), quick)
            reduced = {"reduced": True, "at": "origin", "packed": True}
            yield Case(f"compute/{source}/{rows}/reduced", partial(compute, source, loading, rows, reduced))


VARIED = {"mass": (0.8, 1.2), "damping": (0.5, 1.5), "drive_stiffness": (0.5, 1.5), "drive_damping": (0.9, 1.1)}
RUBBED = {**VARIED, "joint_friction": (0.5, 2.0), "friction": (0.6, 1.4)}


class Rolled(NamedTuple):
    """A rollout: its model, settings, how far samples' own inputs reach, the stiffness of drives."""

    source: str
    settings: Options
    inputs: float = 0.0
    gains: float = 0.0
    loading: Options = NONE


UR5 = next(name for name in URDF if name.endswith("ur5"))
ROLLOUTS = {
    "arm": Rolled("arm7.urdf", {"spread": 0.5, "velocity_spread": 0.5}, 2.0, 200.0),
    "arm/limits": Rolled("arm7.urdf", {"spread": 2.5, "velocity_spread": 4.0, "randomise": VARIED}, 0.0, 30.0),
    "arm/drive-limit": Rolled("arm7.urdf", {"spread": 0.5, "drive_limit": 2.0}, 0.0, 200.0),
    "arm/pgs": Rolled("arm7.urdf", {"spread": 0.5, "solver": "pgs"}, 0.0, 200.0),
    "arm/direct": Rolled("arm7.urdf", {"spread": 0.5, "solver": "direct"}, 0.0, 200.0),
    "arm/rk4": Rolled("arm7.urdf", {"spread": 0.5, "integrator": "rk4"}, 1.0, 20.0),
    "chain": Rolled("chain20.urdf", {"spread": 0.2, "velocity_spread": 0.5}, 1.0),
    "ur5": Rolled(UR5, {"spread": 0.4, "velocity_spread": 0.5, "randomise": {"mass": (0.8, 1.2)}}, 5.0, 300.0),
    "planar": Rolled("planar_base.urdf", {"velocity_spread": 1.0}, 0.5),
    "free/calm": Rolled("free", {"spread": 0.1, "velocity_spread": 0.1}),
    "servos/calm": Rolled("servos", {"velocity_spread": 0.05, "control": [0.1, 0.0, 0.0, 0.1]}),
    "free": Rolled("free", {"spread": 0.3, "velocity_spread": 2.0}, 0.5),
    "servos": Rolled("servos", {"velocity_spread": 1.0}, 1.5),
    "states": Rolled("states", {"velocity_spread": 1.0}, 0.5),
    "rubbing": Rolled("rubbing", {"velocity_spread": 2.0, "randomise": {"joint_friction": (0.5, 2.0)}}, 2.0),
    "gripper": Rolled("two_finger_gripper.urdf", {"spread": 0.05, "velocity_spread": 0.1}, 0.0, 2.0),
    "clamp": Rolled("clamp.xml", {"velocity_spread": 0.1}, 0.5),
    "quadruped": Rolled("quadruped.urdf", {**STANDING, "spread": 0.02, "randomise": RUBBED}, 0.0, 300.0, FLOATING),
    "quadruped/sliding": Rolled(
        "quadruped.urdf", {**STANDING, "ground_friction": 0.4, "velocity_spread": 0.4}, 4.0, 300.0, FLOATING
    ),
    "quadruped/pyramidal": Rolled(
        "quadruped.urdf", {**STANDING, "cone": "pyramidal", "velocity_spread": 0.4}, 0.0, 300.0, FLOATING
    ),
    "box/bouncing": Rolled(
        "floating_box.urdf",
        {"ground": True, "restitution": 0.5, "velocity_spread": 0.5, "q0": {"floating_joint.z": 0.4}},
    ),
    "tripod": Rolled("tripod", {"spread": 0.005, "velocity_spread": 0.2}, 0.0),
    "sled": Rolled("sled", {"randomise": {"friction": (0.5, 1.5)}}),
    "stack": Rolled("stack", {"velocity_spread": 0.02, "steps": 60}),
    "apart": Rolled("apart", {"velocity_spread": 0.3}),
    "ant": Rolled("mjcf.brax.envs_assets_ant", {"spread": 0.1, "velocity_spread": 0.3, "steps": 60}, 0.5),
}


def rollout_cases() -> Iterator[Case]:
    """Samples in packs, some of whose lanes take steps alone, and samples that packs do not take."""
    for name, made in ROLLOUTS.items():
        settings = {"samples": 19, "steps": 150, "seed": 5, **made.settings}
        call = partial(rollout, made.source, made.loading, settings, made.inputs, made.gains)
        yield Case(f"rollout/{name}", call, name in ("quadruped", "quadruped/sliding", "tripod"))


def all_cases() -> list[Case]:
    """Every case that the models at hand allow."""
    makers = (robot_cases, option_cases, way_cases, text_cases, corpus_cases, batch_cases, rollout_cases)
    cases = [case for make in makers for case in make()]
    return [case for case in cases if _corpus() or not _needs_corpus(case)]


def _needs_corpus(case: Case) -> bool:
    return any(isinstance(word, str) and word.startswith(("mjcf.", "urdf.")) for word in case.run.args)  # type: ignore[attr-defined]


def chosen(cases: list[Case], patterns: list[str], quick: bool) -> list[Case]:
    """Cases by names or parts of them, of the quick ones only when `quick`."""

    def fits(name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) or pattern in name for pattern in patterns)

    return [case for case in cases if (case.quick or not quick) and (not patterns or fits(case.name))]


# ------------------------------------------------------------------ what is stored of arrays


def summary(values: Array) -> dict[str, Any]:
    """Hash, shape and type of an array, checksums of parts of its rows, sum and largest entry of what is finite."""
    whole = np.ascontiguousarray(values)
    told: dict[str, Any] = {"type": whole.dtype.str, "shape": list(whole.shape)}
    about = f"{whole.dtype.str} {whole.shape}".encode()
    told["hash"] = hashlib.sha256(about + whole.tobytes()).hexdigest()
    told["parts"] = "".join(f"{zlib.crc32(part.tobytes()):08x}" for part in _parts(whole))
    if whole.dtype.kind in "fiub" and whole.size:
        finite = whole[np.isfinite(whole)].astype(float)
        told |= {"sum": float(finite.sum()), "max": float(np.abs(finite).max(initial=0.0))}
    return told


def _parts(values: Array) -> list[Array]:
    return np.array_split(values, min(PARTS, len(values))) if values.ndim and len(values) else []


def measured(case: Case) -> tuple[dict[str, Any], Arrays]:
    """What is stored of a case, and its arrays; of one that raises the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays = case.run()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {_without_folders(str(error))}"}, {}
    return {"arrays": {name: summary(values) for name, values in arrays.items()}}, arrays


def _without_folders(text: str) -> str:
    for folder, name in ((_temporary().name, "<temporary>"), (str(ROOT), "<root>"), (str(CORPUS), "<corpus>")):
        text = text.replace(folder, name)
    return text


def difference(old: Mapping[str, Any], new: Mapping[str, Any], kept: Arrays, arrays: Arrays) -> str:
    """What differs between two runs of a case; '' when nothing does."""
    if old.get("error") != new.get("error"):
        return f"{old.get('error') or 'no error'} → {new.get('error') or 'no error'}"
    before, after = old.get("arrays", {}), new.get("arrays", {})
    told = [f"{name} is gone" for name in before if name not in after]
    told += [f"{name} is new" for name in after if name not in before]
    for name in before:
        if name in after and before[name]["hash"] != after[name]["hash"]:
            told.append(f"{name} {_sized(before[name], after[name])}{_largest(kept.get(name), arrays.get(name))}")
    return "; ".join(told)


def _sized(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    if (old["type"], old["shape"]) != (new["type"], new["shape"]):
        return f"{old['type']} {old['shape']} → {new['type']} {new['shape']}"
    pairs = zip(*(_words(told["parts"]) for told in (old, new)), strict=True)
    differing = [n for n, (a, b) in enumerate(pairs) if a != b]
    where = ""
    if differing:
        edges = np.cumsum([0] + [len(part) for part in _parts(np.empty(old["shape"][0]))])
        where = f"from row {edges[differing[0]]} … {edges[differing[0] + 1] - 1} of {old['shape'][0]}"
    changes = [f"{name} {old[name]:.9g} {new[name] - old[name]:+.2g}" for name in ("sum", "max") if name in old]
    return f"({', '.join(filter(None, [where, *changes]))})"


def _words(parts: str) -> list[str]:
    return [parts[k : k + 8] for k in range(0, len(parts), 8)]


def _largest(old: Array | None, new: Array | None) -> str:
    """The largest difference of arrays that are at hand."""
    if old is None or new is None or old.shape != new.shape or old.dtype.kind not in "fiub" or not old.size:
        return ""
    apart = np.abs(old.astype(float) - new.astype(float))
    return f" by up to {np.nanmax(apart):.3g}" if np.isfinite(apart).any() else ""


def _kept(folder: Path | None, case: Case) -> Path | None:
    return None if folder is None else folder / f"{case.name.replace('/', ':')}.npz"


# ------------------------------------------------------------------ the tool


def main() -> None:
    """Write hashes, or compare with those written before."""
    words = arguments()
    cases = chosen(all_cases(), words.only, words.quick)
    if words.list:
        print("\n".join(case.name for case in cases))
        return
    if not _corpus():
        print("no public models: set ARTSIM_CORPUS", file=sys.stderr)
    faulthandler.enable()
    if words.write:
        write(words.write, cases, words)
    else:
        sys.exit(1 if compare(words.against, cases, words) else 0)


def arguments() -> argparse.Namespace:
    """The words of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", type=Path, metavar="FILE.json", help="store hashes")
    what.add_argument("--against", type=Path, metavar="FILE.json", help="compare with stored ones")
    what.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="names of cases, or parts of them")
    parser.add_argument("--quick", action="store_true", help="a few cases that need few kernels")
    parser.add_argument("--arrays", type=Path, metavar="FOLDER", help="where arrays are kept, or were")
    parser.add_argument("-v", "--verbose", action="store_true", help="name cases as they run")
    return parser.parse_args()


def run_all(cases: list[Case], verbose: bool) -> Iterator[tuple[Case, dict[str, Any], Arrays]]:
    """The cases one by one."""
    for case in cases:
        if verbose:
            print(f"{case.name} …", end=" ", file=sys.stderr, flush=True)
        began = time.process_time()
        told, arrays = measured(case)
        if verbose:
            print(f"{time.process_time() - began:.2f} s {told.get('error', '')}", file=sys.stderr, flush=True)
        yield case, told, arrays


def write(path: Path, cases: list[Case], words: argparse.Namespace) -> None:
    """The baseline, one line a case."""
    stored = {}
    for case, told, arrays in run_all(cases, words.verbose):
        stored[case.name] = told
        if place := _kept(words.arrays, case):
            place.parent.mkdir(parents=True, exist_ok=True)
            np.savez(place, **{name.replace("/", ":"): values for name, values in arrays.items()})
    lines = [f"{json.dumps(name)}: {json.dumps(told)}" for name, told in stored.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    raised = sum("error" in told for told in stored.values())
    print(f"{len(stored)} cases written, {raised} of which raise")


def compare(path: Path, cases: list[Case], words: argparse.Namespace) -> int:
    """How many cases differ, each told as it is found."""
    stored, differing = json.loads(path.read_text()), 0
    for case, told, arrays in run_all(cases, words.verbose):
        place, kept = _kept(words.arrays, case), {}
        if place is not None and place.is_file():
            with np.load(place) as found:
                kept = {name.replace(":", "/"): found[name] for name in found}
        what = difference(stored[case.name], told, kept, arrays) if case.name in stored else "not in the baseline"
        if what:
            differing += 1
            print(f"{case.name}: {what}", flush=True)
    if not (words.only or words.quick):
        for name in stored.keys() - {case.name for case in cases}:
            differing += 1
            print(f"{name}: in the baseline only")
    print(f"{len(cases)} cases, {differing} differ")
    return differing


if __name__ == "__main__":
    main()
