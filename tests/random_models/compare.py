"""One random model by artsim and by MuJoCo or Pinocchio: the largest difference of each quantity, relative."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

import artsim
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.foundation.rotations import rotation_matrix
from tests.equipment.mujoco_tendons import dropped_inertia
from tests.equipment.wrench_balance import RECORD, imbalance
from tests.random_models.classes import compare_actuator, random_classes
from tests.random_models.model_settings import compare_settings, off
from tests.random_models.random_mjcf import Drawn, random_mjcf
from tests.random_models.random_sdf import Drawn as DrawnSdf
from tests.random_models.random_sdf import random_sdf
from tests.random_models.random_urdf import random_urdf
from tests.random_models.silent import compare_refused, compare_stripped

Array = npt.NDArray[Any]
LIMIT = 1e-7  # relative, of any quantity
LIMITS = {"sight of meshes": 1e-5}  # and of height fields: MuJoCo keeps corners and heights in single precision
QUANTITIES = ("mass_matrix", "bias", "com", "kinetic_energy", "potential_energy")
_RECORD = (*RECORD, "sensors", "actuator_force", "tendon_length", "energy", "activation")


class Skipped(Exception):  # noqa: N818 - says nothing of an error
    """The model says nothing: the other one does not take it, or it moves without inertia."""


def relative(ours: Array, theirs: Array) -> float:
    """max|Δ| / max(1, max|theirs|); NaN counts as infinite."""
    if not np.size(theirs):
        return 0.0
    if np.shape(ours) != np.shape(theirs):
        return np.inf
    with np.errstate(all="ignore"):
        worst = float(np.max(np.abs(np.asarray(ours) - theirs)) / max(1.0, float(np.max(np.abs(theirs)))))
    return worst if np.isfinite(worst) else np.inf


# ------------------------------------------------------------------ MJCF


def compare_mjcf(seed: int, number: int, folder: Path) -> dict[str, float]:
    """Quantity → difference. Raises Skipped; ArtsimError of a model that MuJoCo takes."""
    return compare_model(random_mjcf(seed, number), [seed, number, 2], folder)


def compare_model(drawn: Drawn, seeds: list[int], folder: Path) -> dict[str, float]:
    """The same of a model at hand; its state is drawn from the seeds."""
    path = drawn.write(folder)
    model = taken_by_mujoco(drawn)
    try:
        robot = artsim.load(path)
    except ArtsimError as error:
        if "not supported yet" in str(error):
            raise Skipped(str(error)) from None
        raise
    found = compare_settings(robot.articulation, model)
    rng = np.random.default_rng(seeds)
    data = mujoco.MjData(model)
    q = np.array(model.qpos0)
    mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 0.3)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, rng.normal(size=model.nv), rng.normal(size=model.nu)
    v, control = np.array(data.qvel), np.array(data.ctrl)
    try:
        mujoco.mj_forward(model, data)
    except mujoco.FatalError as error:
        raise Skipped(str(error)) from None
    if not np.isfinite(data.qacc).all() or np.abs(data.qacc).max(initial=0.0) > 1e8:
        raise Skipped("singular")
    found |= compare_quantities(robot, model, data, q, v)
    if "settotalmass" in drawn.text and 'fusestatic="true"' in drawn.text:
        return {name: value for name, value in found.items() if "settings" in name}  # scaled by what MuJoCo fuses
    if len(robot.links) != model.nbody:  # fusestatic: MuJoCo drops what stands still, and its energy
        found.pop("potential_energy", None)
        return found
    exact = bool(model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_DIAGEXACT)
    if holds_hard(robot.articulation) or (exact and model.neq) or half_weights(model):
        return found  # MuJoCo gives way, or otherwise, which is told
    if heavy_tendons(model):
        return found  # MuJoCo leaves out some of what that does (tests/equipment/mujoco_tendons.py)
    if near_a_limit(model, data) or held_by_rounding(model, data) or without_compensation(model):
        return found
    options: dict[str, Any] = {"control": control} if model.nu else {}
    record = [name for name in _RECORD if name != "sensors" or model.nsensor]
    try:
        run = artsim.simulate(robot, steps=1, q0=q, v0=v, integrator="rk4", record=record, **options)
    except ArtsimError as error:
        if any(what in str(error) for what in ("no inequality rows", "cannot hold the equality", "rk4 has no rows")):
            return found
        mujoco.mj_step(model, data)
        explodes = "not finite" in str(error) and np.abs(data.qvel).max() > 1e8  # there too
        if explodes or "without any inertia" in str(error):
            raise Skipped(str(error)) from None
        raise
    found |= compare_forces(model, data, run, drawn.pushes)
    if 'useexisting="false"' in drawn.text:  # muscles' lengths are found by pushing at limits, which give way in MuJoCo
        found.pop("actuator force", None)
    if 'discardvisual="true"' in drawn.text and mujoco.mjtSensor.mjSENS_RANGEFINDER in model.sensor_type:
        found.pop("sensors", None)  # rays meet geoms that MuJoCo discards, which is told
        found.pop("sight of meshes", None)
    mujoco.mj_step(model, data)
    step = model.opt.timestep
    if max(np.abs(data.qvel).max(), np.abs(data.qacc).max() * step) * step > 0.1:
        return found  # the step is too long for the model: its stages are nothing to compare
    found["RK4 position"] = relative(run.final["qpos"], np.array(data.qpos))
    found["RK4 velocity"] = relative(run.final["qvel"], np.array(data.qvel))
    if model.na:
        found["RK4 activation"] = relative(run.final["activation"], np.array(data.act))
    return found


def taken_by_mujoco(drawn: Drawn) -> Any:
    """MuJoCo's model, watched for energy, computing as exactly as it can. Raises Skipped."""
    try:
        model = with_empty_bodies_in_place(drawn, mujoco.MjModel.from_xml_string(drawn.text, drawn.files))
    except (ValueError, RuntimeError) as error:
        raise Skipped(str(error)) from None
    if model.nv == 0:
        raise Skipped("nothing moves")
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    to_the_last_digit(model)
    return model


def with_empty_bodies_in_place(drawn: Drawn, model: Any) -> Any:
    """The model with the least mass (boundmass) of bodies without any of their own at their origins.

    MuJoCo takes the place of such a body in its parent for the place of its centre of mass in its own frame ("ipos
    undefined: copy body frame into inertial", user_objects.cc): a body at p weighs at 2 p. Nothing in its file or
    reference says so, and the inertia of a body about its own joint depends on where its parent has it.
    """
    if "bound" not in drawn.text:
        return model
    spec = mujoco.MjSpec.from_string(drawn.text, include=drawn.files, assets=drawn.files)
    if len(spec.bodies) != model.nbody:  # fusestatic
        return model
    moved = [
        body
        for body, place in zip(spec.bodies, model.body_ipos, strict=True)
        if np.isnan(body.ipos[0]) and np.any(body.pos) and np.array_equal(body.pos, place)
    ]
    for body in moved:
        body.ipos, body.iquat = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    return spec.compile() if moved else model


def to_the_last_digit(model: Any) -> None:
    """No tolerance of its solver, and no frames taken for their body's that differ from it by less than 1e-6.

    A CG solver that ends at its tolerance of 1e-8 leaves accelerations off by 1e-6 of themselves, Newton's does not. A
    site turned by 2.5e-6 rad does not turn at all in MuJoCo (kFrameEps, user_objects.cc) unless it computes its frame.
    """
    model.opt.solver, model.opt.tolerance, model.opt.iterations = mujoco.mjtSolver.mjSOL_NEWTON, 0.0, 100
    for frames in (model.body_sameframe, model.geom_sameframe, model.site_sameframe):
        frames[:] = mujoco.mjtSameFrame.mjSAMEFRAME_NONE


def compare_quantities(robot: Any, model: Any, data: Any, q: Array, v: Array) -> dict[str, float]:
    """M, bias, energies, centre of mass."""
    ours = robot.compute(q, v, quantities=list(QUANTITIES))
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    heavy = heavy_tendons(model)
    if heavy and model.ntendon:
        M += dropped_inertia(model, data)
    theirs = {
        "mass_matrix": M,
        "bias": np.array(data.qfrc_bias),
        "kinetic_energy": np.array(data.energy[1]),
        "potential_energy": np.array(data.energy[0]),
    }
    if heavy:
        del theirs["potential_energy"]  # of springdamper, which follows from M
        del theirs["bias"], theirs["kinetic_energy"]  # MuJoCo leaves out what it drops of M, and how moments change
    if (model.actuator_armature > 0).any() and heavy:
        del theirs["mass_matrix"]
    found = {name: relative(ours[name], theirs[name]) for name in theirs}
    if robot.constraints() and not model.nflex:
        J = robot.compute(q, quantities=["constraint_jacobian"])["constraint_jacobian"]
        want = equality_jacobian(model, data)
        found["constraint_jacobian"] = relative(J.T @ J, want.T @ want)  # whatever the order and the signs of rows
    return found


def equality_jacobian(model: Any, data: Any) -> Array:
    """J (ne, nv) of MuJoCo's equalities."""
    if data.nefc == 0 or not mujoco.mj_isSparse(model):
        return np.array(data.efc_J).reshape(-1, model.nv)[: data.ne]
    J = np.zeros((data.nefc, model.nv))
    mujoco.mju_sparse2dense(J, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    return J[: data.ne]


def holds_hard(robot: Articulation) -> bool:
    """Whether an equality has no solref: artsim then lets nothing give."""
    soft = [loop.softness for loop in robot.loops if loop.active] + [one.softness for one in robot.tendon_couplings]
    hard = any(one.frequency is None and one.impedance is None for one in robot.couplings)
    return hard or any(one.reference is None for one in soft)


def half_weights(model: Any) -> bool:
    """Whether MuJoCo weighs held edges by half of J M⁻¹ Jᵀ, as it does between points that only slide.

    For all other edges, and for tendons along the same lines, it takes the whole (flexedge_invweight0 in its
    engine_setconst.c: the mean of 1/m in place of the sum).
    """
    held = mujoco.mjtEq.mjEQ_FLEX in model.eq_type
    return held and int((model.body_simple[model.flex_vertbodyid] == 2).sum()) > 1


def near_a_limit(model: Any, data: Any) -> bool:
    """True if a joint or tendon is within the margin of its limit: MuJoCo pushes there, artsim at the limit."""
    kinds = (mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT, mujoco.mjtConstraint.mjCNSTR_LIMIT_TENDON)
    return bool((np.isin(data.efc_type, kinds) & (data.efc_pos > 0.0)).any())


def rows_at_rest(model: Any, data: Any) -> tuple[Array, Array]:
    """The Jacobian of equality rows that no dof moves, but by rounding, and their forces.

    MuJoCo weighs such a row by the least number that it knows, so that its force is an error times 1e15.
    """
    J = equality_jacobian(model, data)
    still = np.abs(J).max(axis=1, initial=0.0) < 1e-12
    return J[still], np.array(data.efc_force)[: data.ne][still]


def held_by_rounding(model: Any, data: Any) -> bool:
    """True if rows that no dof moves push dofs by their rounding."""
    J, force = rows_at_rest(model, data)
    return bool(np.abs(J.T @ force).max(initial=0.0) > 1e-12)


def without_compensation(model: Any) -> bool:
    """True if MuJoCo leaves out gravity compensation that counts as an actuator's, for want of an actuator."""
    return bool(model.nu == 0 and model.ngravcomp and model.jnt_actgravcomp.any())


def heavy_tendons(model: Any) -> bool:
    """Whether tendons have inertia, their own or a rotor's."""
    on_tendon = model.actuator_trntype == mujoco.mjtTrn.mjTRN_TENDON
    return bool(model.tendon_armature.any() or (model.actuator_armature * on_tendon).any())


def compare_forces(model: Any, data: Any, run: Any, pushes: bool) -> dict[str, float]:
    """What the first stage has: accelerations, forces, sensors, and the balance of every link."""
    found = {
        "acceleration": relative(run["qacc"][0], np.array(data.qacc)),
        "energy": relative(run["energy"][0], np.array(data.energy)[::-1]),
        "link balance": imbalance(model, run, 0) if same_frames(model, run) else 0.0,
    }
    if model.nu:
        found["actuator force"] = relative(run["actuator_force"][0], np.array(data.actuator_force))
    if model.ntendon:
        found["tendon length"] = relative(run["tendon_length"][0][: model.ntendon], np.array(data.ten_length))
    if model.nsensor:
        found |= compare_sensors(model, data, np.asarray(run["sensors"][0]), pushes)
    return found


def same_frames(model: Any, run: Any) -> bool:
    """Whether links are MuJoCo's bodies, one for one."""
    return len(run["incoming_wrench"][0]) == model.nbody


def compare_sensors(model: Any, data: Any, ours: Array, pushes: bool) -> dict[str, float]:
    """Largest difference. Wrenches only where no actuator pushes at a site: MuJoCo has those act in the joints."""
    worst = {"sensors": 0.0, "sight of meshes": 0.0}
    if off(model, "SENSOR"):
        return worst
    _, pushed = rows_at_rest(model, data)
    arbitrary = bool(pushed.any())  # sensors of wrenches hold these forces
    wrenches = (int(mujoco.mjtSensor.mjSENS_FORCE), int(mujoco.mjtSensor.mjSENS_TORQUE))
    for n in range(model.nsensor):
        part = slice(model.sensor_adr[n], model.sensor_adr[n] + model.sensor_dim[n])
        if int(model.sensor_type[n]) == int(mujoco.mjtSensor.mjSENS_ACTUATORVEL) and off(model, "ACTUATION"):
            continue  # 0 there
        if int(model.sensor_type[n]) in wrenches and (pushes or arbitrary or (model.ntendon and merged(model))):
            continue
        theirs, mine = np.array(data.sensordata[part]), ours[part]
        if model.sensor_dim[n] == 4 and mine @ theirs < 0:
            mine = -mine
        sees = int(model.sensor_type[n]) == int(mujoco.mjtSensor.mjSENS_RANGEFINDER) and model.nmesh + model.nhfield
        name = "sight of meshes" if sees else "sensors"
        worst[name] = max(worst[name], relative(mine, theirs))
    return worst


def merged(model: Any) -> bool:
    """Whether bodies stand on others without a joint: MuJoCo leaves out tendons between such."""
    return bool(np.any(model.body_weldid[1:] != np.arange(1, model.nbody)))


# ------------------------------------------------------------------ URDF


def compare_urdf(seed: int, number: int, folder: Path) -> dict[str, float]:
    """M, bias, wrenches, energy and accelerations by Pinocchio."""
    from tests.simulation import Mimics, Truth

    text = random_urdf(seed, number)
    path = folder / "model.urdf"
    path.write_text(text)
    robot = artsim.load(path)
    if robot.nv == 0:
        raise Skipped("nothing moves")
    rng = np.random.default_rng([seed, number, 3])
    truth = Truth(text, robot)
    q, v, a = random_state(robot, rng)
    ours = robot.compute(q, v, a, quantities=["mass_matrix", "bias", "inverse_dynamics", "kinetic_energy"])
    found = {
        "mass_matrix": relative(ours["mass_matrix"], truth.mass_matrix(q)),
        "bias": relative(ours["bias"], truth.bias(q, v)),
        "inverse_dynamics": relative(ours["inverse_dynamics"], truth.inverse_dynamics(q, v, a)),
    }
    mimics = Mimics(text, robot)
    if not mimics.of:
        run = artsim.simulate(robot, steps=1, q0=q, v0=v, integrator="rk4", record=["qacc", "tau_passive", "energy"])
        free = truth.acceleration(q, v, np.asarray(run["tau_passive"][0]))
        found["acceleration"] = relative(run["qacc"][0], free)
        moving = truth.energy(q, v) - truth.energy(q, 0.0 * v)  # Pinocchio's weight leaves out what stands still
        found["kinetic energy"] = relative(run["energy"][0][0], np.array(moving))
    return found


# ------------------------------------------------------------------ SDF


def compare_sdf(seed: int, number: int, folder: Path) -> dict[str, float]:
    """M, bias, wrenches and where links are by Pinocchio from the same robot as a URDF, which artsim reads alike;
    shapes, limits and settings of joints as drawn; mimics as in that URDF.
    """
    import pinocchio as pin

    from tests.simulation import Mimics, Truth

    drawn = random_sdf(seed, number)
    place = folder / f"{number}"
    place.mkdir()
    for name, text in drawn.files.items():
        (place / name).write_text(text)
    robot = artsim.load(place / "model.sdf")
    if robot.nv == 0:
        raise Skipped("nothing moves")
    base = "floating" if drawn.floating else "fixed"
    truth = Truth(drawn.urdf, robot, base=base, gravity=np.array(drawn.gravity))
    q, v, a = random_state(robot, np.random.default_rng([seed, number, 6]))
    names = ["mass_matrix", "bias", "inverse_dynamics", "link_position", "link_quaternion"]
    ours = robot.compute(q, v, a, quantities=names)
    found = {
        "mass_matrix": relative(ours["mass_matrix"], truth.mass_matrix(q)),
        "bias": relative(ours["bias"], truth.bias(q, v)),
        "inverse_dynamics": relative(ours["inverse_dynamics"], truth.inverse_dynamics(q, v, a)),
        "unlike drawn": float(unlike(robot.articulation, drawn, Mimics(drawn.urdf, robot))),
    }
    pin.framesForwardKinematics(truth.model, truth.data, truth.convert(q, v)[0])
    for n, name in enumerate(robot.links):
        frame = truth.data.oMf[truth.model.getFrameId(name)].homogeneous @ drawn.offsets[name]
        mine = np.append(rotation_matrix(ours["link_quaternion"][n]), ours["link_position"][n][:, None], axis=1)
        found["link poses"] = max(found.get("link poses", 0.0), relative(mine, frame[:3]))
    return found


def unlike(robot: Articulation, drawn: DrawnSdf, mimics: Any) -> int:
    """How many shapes, settings of joints and couplings are not as they were drawn."""
    count = 0
    geoms = {geom.name: geom.pose for link in robot.links for geom in link.geoms}
    for name, wanted in drawn.geoms.items():
        pose = geoms.pop(name)
        count += relative(rotation_matrix(np.array(pose.rotation)), wanted[:3, :3]) > 1e-12
        count += relative(np.array(pose.position), wanted[:3, 3]) > 1e-12
    joints = {joint.name: joint for joint in robot.joints}
    for name, settings in drawn.joints.items():
        count += any(getattr(joints[name], field) != value for field, value in settings.items())
    read = {c.follower: (c.leader, c.coefficients[1], c.coefficients[0]) for c in robot.couplings}
    count += set(read) != set(mimics.of)
    for follower, (leader, *numbers) in mimics.of.items():
        name, *mine = read.get(follower, ("", 0.0, 0.0))
        count += name != leader or relative(np.array(mine), np.array(numbers)) > 1e-12
    return count + len(geoms)


def random_state(robot: Any, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Coordinates, velocities and accelerations; quaternions are unit ones."""
    q = rng.normal(size=robot.nq)
    for start in (k for k, name in enumerate(robot.coords) if name.endswith(".qw")):
        q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
    return q, rng.normal(size=robot.nv), rng.normal(size=robot.nv)


# ------------------------------------------------------------------ taken up again


def touching(drawn: Drawn, folder: Path) -> Drawn:
    """The same model with contacts, in its file. Raises Skipped."""
    text = drawn.text.replace(' contact="disable"', "").replace('integrator="RK4" ', "")
    found = drawn._replace(text=text)
    taken_by_mujoco(found)
    found.write(folder)
    return found


def compare_restored(seed: int, number: int, folder: Path) -> dict[str, float]:
    """A run of 20 steps with contacts, and the same saved after 10 and restored in another: bytes that differ."""
    from artsim.io.runs.prepare import held_controls, prepare
    from artsim.loaders.load import load_articulation
    from artsim.sim.runs.configuration import RunConfig
    from artsim.sim.runs.simulate import Simulation

    touching(random_mjcf(seed, number), folder)
    try:
        config = RunConfig(steps=20, sleep_threshold=5e-3 * (number % 2), sleep_time=0.02)
        plan = prepare(load_articulation(folder / "model.xml"), config)
    except ArtsimError as error:
        raise Skipped(str(error)) from None
    whole = Simulation(plan, held_controls(plan))
    first = rows_of(whole, 10)
    saved = whole.save()
    rest = rows_of(whole, 10)
    again = Simulation(plan, held_controls(plan))
    again.restore(saved)
    if whole.stop_reason or not first:
        raise Skipped("it stops")
    repeated = rows_of(again, 10)
    return {"restored": float(sum(rest[name] != repeated[name] for name in rest))}


def compare_resumed(seed: int, number: int, folder: Path) -> dict[str, float]:
    """A file of 20 steps with contacts, one of 10 that goes on, and the first computed again: datasets that differ."""
    from artsim.cli.replay import load_stored
    from artsim.io.runs.replay import verify
    from artsim.io.runs.resume import resume
    from tests.io.test_resume import differences

    path, whole, parts = folder / "model.xml", folder / "whole.h5", folder / "parts.h5"
    touching(random_mjcf(seed, number), folder)
    settings: dict[str, Any] = {"sleep_threshold": 5e-3 * (number % 2), "sleep_time": 0.02, "checkpoint": 5}
    try:
        robot = artsim.load(path)
        for output, steps in ((whole, 20), (parts, 10)):
            artsim.simulate(robot, steps=steps, output=output, force=True, **settings).close()
    except ArtsimError as error:
        raise Skipped(str(error)) from None
    resume(parts, load_stored, steps=20)
    return {
        "resumed": float(len(list(differences(whole, parts)))),
        "replayed": float(verify(whole, load_stored) is not None),
    }


def rows_of(simulation: Any, steps: int) -> dict[str, bytes]:
    """The bytes of the rows of so many steps, contacts included."""
    found: dict[str, bytes] = {}
    for block in simulation.blocks(steps):
        for name, values in {**block.rows, **block.tables}.items():
            found[name] = found.get(name, b"") + values.tobytes()
    return found


def compare_still(seed: int, number: int, folder: Path) -> dict[str, float]:
    """The model without what has no effect."""
    drawn = random_mjcf(seed, number)
    taken_by_mujoco(drawn)
    try:
        return compare_stripped(drawn, folder)
    except ArtsimError as error:
        raise Skipped(str(error)) from None


def compare_refusal(seed: int, number: int, folder: Path) -> dict[str, float]:
    """The model with something that is refused."""
    drawn = random_mjcf(seed, number)
    taken_by_mujoco(drawn)
    return compare_refused(drawn, number, folder)


def compare_class(seed: int, number: int, folder: Path) -> dict[str, float]:
    """An actuator of classes."""
    text = random_classes(seed, number)
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except (ValueError, RuntimeError) as error:
        raise Skipped(str(error)) from None
    try:
        return compare_actuator(text, model)
    except ArtsimError as error:
        if "not supported yet" in str(error):
            raise Skipped(str(error)) from None
        raise


COMPARISONS = {
    "classes": compare_class,
    "still": compare_still,
    "refused": compare_refusal,
    "mjcf": compare_mjcf,
    "urdf": compare_urdf,
    "sdf": compare_sdf,
    "restore": compare_restored,
    "resume": compare_resumed,
}

# ------------------------------------------------------------------ many


class Table:
    """The largest difference of each quantity, and the models that are beyond the limit, fail or say nothing."""

    def __init__(self) -> None:
        self.worst: dict[str, tuple[float, int]] = {}
        self.beyond: list[str] = []
        self.compared = self.skipped = 0

    def take(self, kind: str, seed: int, number: int, folder: Path) -> None:
        """Compare one more model."""
        compare = COMPARISONS[kind]
        with contextlib.suppress(Skipped):
            try:
                found = compare(seed, number, folder)
            except ArtsimError as error:
                self.beyond.append(f"{kind} {seed} {number}: {str(error)[:160]}")
                return
            self.compared += 1
            for name, value in found.items():
                if value > self.worst.get(name, (-1.0, 0))[0]:
                    self.worst[name] = (value, number)
                if value > LIMITS.get(name, LIMIT):
                    self.beyond.append(f"{kind} {seed} {number}: {name} differs by {value:.3g}")
            return
        self.skipped += 1
