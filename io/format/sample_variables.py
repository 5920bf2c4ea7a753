"""The variables of batches and rollouts, and of the index of a batch in several files."""

from __future__ import annotations

from artsim.io.format.run_variables import RUN
from artsim.io.format.variable import TIME, Variable, line


def _by_sample(variable: Variable) -> Variable:
    """A recorded variable of a run as samples have it."""
    after = ("NaN" if variable.dtype == "f8" else "-1") + " from row n_valid of a sample on"
    comment = f"{variable.comment}; {after}" if variable.comment else after
    return variable._replace(dims=("sample", *variable.dims), comment=comment)


_OF_ENTRIES = ("sensor_units", "twist_units", "wrench_units", "jacobian_link", "jacobian_dof")
_RECORDED = {
    path.replace("trajectory/", "rollout/"): _by_sample(variable)
    for path, variable in RUN.items()
    if path.startswith("trajectory/") and variable.dims[:1] == ("time",) and path != "trajectory/time"
}

SAMPLES: dict[str, Variable] = {
    # many configurations: inputs, results and status; `batch_variable` tells how a line reads when results are reduced
    # or packed
    "batch/qpos": line("sample coord", "{coord_units}", "position", "given"),
    "batch/qvel": line("sample dof", "{dof_units}", "velocity", "given"),
    "batch/qacc": line("sample dof", "{dof_units}/s", "acceleration", "given"),
    "batch/tau": line("sample dof", "{force_units}", "joint force", "given"),
    "batch/wrench": line(
        "sample link wrench_entry",
        "N (force), N m (torque)",
        "external wrench",
        "given; on the link, at the point named by the group's attribute `at`, world axes",
    ),
    "batch/gravity": line(
        "sample dof", "{force_units}", "gravity compensation", "joint forces that hold the robot against gravity"
    ),
    "batch/coriolis": line(
        "sample dof", "{force_units}", "Coriolis force", "Coriolis and centrifugal joint forces C(q, v) v"
    ),
    "batch/bias": line("sample dof", "{force_units}", "bias force", "Coriolis, centrifugal and gravity joint forces"),
    "batch/mass_matrix": line(
        "sample dof dof2", "{force_units} s per dof_units", "mass matrix", "joint-space inertia with armature"
    ),
    "batch/inverse_mass_matrix": line("sample dof dof2", "{dof_units}/s per force_units", "inverse mass matrix"),
    "batch/inverse_dynamics": line(
        "sample dof", "{force_units}", "inverse dynamics", "joint forces for the acceleration qacc"
    ),
    "batch/forward_dynamics": line(
        "sample dof", "{dof_units}/s", "forward dynamics", "acceleration under the joint forces tau"
    ),
    "batch/external_force": line(
        "sample dof", "{force_units}", "external force compensation", "joint forces that balance `wrench`"
    ),
    "batch/jacobian": line(
        "sample link twist dof",
        "{twist_units} per dof_units",
        "link Jacobian",
        "velocity of the link per joint velocity, at the point that `at` names, world axes",
    ),
    "batch/jacobian_dot": line(
        "sample link twist dof",
        "{twist_units}/s per dof_units",
        "rate of the link Jacobian",
        "its time derivative at the velocity qvel",
    ),
    "batch/link_position": line("sample link xyz", "m", "link position", "origin of the link's frame in the world"),
    "batch/link_quaternion": line(
        "sample link quat", "1", "link rotation", "of the link's frame to the world (w, x, y, z)"
    ),
    "batch/link_velocity": line(
        "sample link twist",
        "{twist_units}",
        "link velocity",
        "linear, angular, at the point that `at` names, world axes",
    ),
    "batch/link_acceleration": line(
        "sample link twist",
        "{twist_units}/s",
        "link acceleration",
        "linear, angular, at the point that `at` names, world axes; gravity is not included",
    ),
    "batch/com": line("sample xyz", "m", "centre of mass", "of all links in the world"),
    "batch/com_jacobian": line(
        "sample xyz dof",
        "m/s per dof_units",
        "centre of mass Jacobian",
        "velocity of the centre of mass per joint velocity",
    ),
    "batch/momentum": line(
        "sample twist",
        "kg m/s (linear), kg m^2/s (angular)",
        "momentum",
        "linear, then angular about the centre of mass, world axes",
    ),
    "batch/centroidal_momentum_matrix": line(
        "sample twist dof",
        "kg m/s (linear), kg m^2/s (angular), per dof_units",
        "centroidal momentum matrix",
        "momentum per joint velocity",
    ),
    "batch/centroidal_bias": line(
        "sample twist",
        "N (linear), N m (angular)",
        "centroidal bias",
        "rate of the momentum at zero joint acceleration",
    ),
    "batch/kinetic_energy": line("sample", "J", "kinetic energy", "armature included"),
    "batch/potential_energy": line("sample", "J", "potential energy", "of gravity (0 at the origin) and springs"),
    "batch/coupling_matrix": line(
        "sample dof independent_dof",
        "{dof_units} per independent_dof_units",
        "coupling matrix",
        "velocity of each degree of freedom per independent one",
    ),
    "batch/constraint_jacobian": line(
        "sample constraint dof",
        "m/s or rad/s, per dof_units",
        "constraint Jacobian",
        "velocity of each constraint row per joint velocity: couplings, loop joints, equalities of tendons, "
        "hard ones and ones that give way; rotations of welds in their torque scale (m per rad)",
    ),
    "batch/delassus": line(
        "sample constraint constraint2",
        "1/kg or 1/(kg m^2)",
        "Delassus matrix",
        "K = J M^-1 J^T: velocity of a constraint row per impulse of another; J is constraint_jacobian, M "
        "mass_matrix; the compliance (cfm) of rows that give way is not included, other than in /delassus of runs",
    ),
    "batch/gravity_derivative": line(
        "sample dof dof2",
        "{force_units} per (dof_units s)",
        "derivative of gravity",
        "of the joint forces `gravity` (first index) by the position (second index); as in all that follow, along unit "
        "velocity of a degree of freedom",
    ),
    "batch/inverse_dynamics_dq": line(
        "sample dof dof2",
        "{force_units} per (dof_units s)",
        "derivative of inverse dynamics by position",
        "of `inverse_dynamics` at constant qvel, qacc and wrench",
    ),
    "batch/inverse_dynamics_dv": line(
        "sample dof dof2",
        "{force_units} per dof_units",
        "derivative of inverse dynamics by velocity",
        "of `inverse_dynamics`; the one by qacc is mass_matrix",
    ),
    "batch/forward_dynamics_dq": line(
        "sample dof dof2",
        "{dof_units}/s per (dof_units s)",
        "derivative of forward dynamics by position",
        "of `forward_dynamics` at constant qvel, tau and wrench",
    ),
    "batch/forward_dynamics_dv": line(
        "sample dof dof2",
        "{dof_units}/s per dof_units",
        "derivative of forward dynamics by velocity",
        "of `forward_dynamics`",
    ),
    "batch/forward_dynamics_dtau": line(
        "sample dof dof2",
        "{dof_units}/s per force_units",
        "derivative of forward dynamics by force",
        "of `forward_dynamics` by tau: inverse_mass_matrix",
    ),
    "batch/link_velocity_dq": line(
        "sample link twist dof",
        "{twist_units} per (dof_units s)",
        "derivative of the link velocity by position",
        "of `link_velocity` at constant qvel; the one by qvel is jacobian",
    ),
    "batch/link_acceleration_dq": line(
        "sample link twist dof",
        "{twist_units}/s per (dof_units s)",
        "derivative of the link acceleration by position",
        "of `link_acceleration` at constant qvel and qacc",
    ),
    "batch/link_acceleration_dv": line(
        "sample link twist dof",
        "{twist_units}/s per dof_units",
        "derivative of the link acceleration by velocity",
        "of `link_acceleration`; the one by qacc is jacobian",
    ),
    "batch/momentum_dq": line(
        "sample twist dof",
        "kg m/s (linear), kg m^2/s (angular), per (dof_units s)",
        "derivative of the momentum by position",
        "of `momentum` at constant qvel; the one by qvel is centroidal_momentum_matrix",
    ),
    "batch/momentum_rate_dq": line(
        "sample twist dof",
        "N (linear), N m (angular), per (dof_units s)",
        "derivative of the momentum's rate by position",
        "of centroidal_momentum_matrix qacc + centroidal_bias",
    ),
    "batch/momentum_rate_dv": line(
        "sample twist dof",
        "N (linear), N m (angular), per dof_units",
        "derivative of the momentum's rate by velocity",
        "of centroidal_momentum_matrix qacc + centroidal_bias",
    ),
    "batch/status": line(
        "sample",
        "1",
        "whether the row could be computed",
        "0 computed, 1 an input is invalid, 2 a result is not finite or M is singular, -1 shard missing; "
        "results are NaN where it is not 0",
        dtype="i1",
    ),
    "batch/coord_units": line("coord", "1", "unit of each position coordinate", dtype="str"),
    "batch/dof_units": line("dof", "1", "unit of each degree of freedom's velocity", dtype="str"),
    "batch/force_units": line("dof", "1", "unit of each degree of freedom's force", dtype="str"),
    "batch/twist_units": line("twist", "1", "unit of each entry of a twist", dtype="str"),
    "batch/independent_dof_units": line(
        "independent_dof", "1", "unit of each independent degree of freedom's velocity", dtype="str"
    ),
    "batch/independent_force_units": line(
        "independent_dof", "1", "unit of each independent degree of freedom's force", dtype="str"
    ),
    # configurations for poses of links
    "ik/target_position": line(
        "sample target_link xyz", "m", "wanted position", "of the target's frame, in the frame that the attribute names"
    ),
    "ik/target_quaternion": line(
        "sample target_link quat", "1", "wanted rotation", "of the target's frame (w, x, y, z), likewise"
    ),
    "ik/target_point": line(
        "sample point_target xyz",
        "m",
        "wanted point",
        "at which the link looks, in the frame that the attribute names, or of the centre of mass in the world",
    ),
    "ik/qpos": line(
        "sample coord",
        "{coord_units}",
        "position",
        "the configuration that was found; NaN: not reached, and left blank",
    ),
    "ik/status": line(
        "sample",
        "1",
        "whether the targets are reached",
        "0 reached, 1 not reached: the nearest configuration that was found, 2 not reached and a loop or coupling open",
        dtype="i1",
    ),
    "ik/position_error": line("sample", "m", "distance from the wanted position", "the largest of the targets"),
    "ik/rotation_error": line("sample", "rad", "angle from the wanted rotation", "the largest of the targets"),
    "ik/constraint_error": line("sample", "m or rad", "opening of loops and couplings", "the largest of them"),
    "ik/depth": line(
        "sample", "m", "depth of the deepest overlap of shapes", "0: none is inside another, or the ground; of --clear"
    ),
    "ik/iterations": line("sample", "1", "iterations from all starts", dtype="i8"),
    "ik/attempts": line("sample", "1", "starts that were tried", dtype="i8"),
    "ik/jump": line(
        "sample",
        "rad or m",
        "largest change of a coordinate since the row before",
        "of paths; of the first row: the start",
    ),
    "ik/coord_units": line("coord", "1", "unit of each position coordinate", dtype="str"),
    "ik/dof_units": line("dof", "1", "unit of each degree of freedom's velocity", dtype="str"),
    "ik/force_units": line("dof", "1", "unit of each degree of freedom's force", dtype="str"),
    "ik/independent_dof_units": line(
        "independent_dof", "1", "unit of each independent degree of freedom's velocity", dtype="str"
    ),
    "ik/independent_force_units": line(
        "independent_dof", "1", "unit of each independent degree of freedom's force", dtype="str"
    ),
    # many runs of one robot that differ in their start, inputs or parameters
    "rollout/time": TIME,
    **_RECORDED,
    "rollout/contact_count": line(
        "sample time", "1", "contacts in the step", "those of /contact; -1 from row n_valid of a sample on", dtype="i8"
    ),
    "rollout/final_qpos": line("sample coord", "{coord_units}", "position after the last step"),
    "rollout/final_qvel": line("sample dof", "{dof_units}", "velocity after the last step"),
    "rollout/start_qpos": line("sample coord", "{coord_units}", "position given for the start"),
    "rollout/start_qvel": line("sample dof", "{dof_units}", "velocity given for the start"),
    "rollout/mass_factor": line("sample link", "1", "factor of the link's mass and inertia"),
    "rollout/armature_factor": line("sample dof", "1", "factor of the armature"),
    "rollout/damping_factor": line("sample dof", "1", "factor of the joint's damping"),
    "rollout/stiffness_factor": line("sample dof", "1", "factor of the joint's spring stiffness"),
    "rollout/joint_friction_factor": line("sample dof", "1", "factor of the joint's friction"),
    "rollout/friction_factor": line("sample", "1", "factor of the friction of contacts"),
    "rollout/drive_stiffness_factor": line("sample dof", "1", "factor of the drive's stiffness"),
    "rollout/drive_damping_factor": line("sample dof", "1", "factor of the drive's damping"),
    "rollout/gravity_vector": line("sample xyz", "m/s^2", "gravitational acceleration", "of the sample"),
    "rollout/centre_offset": line(
        "sample link xyz", "m", "offset of the link's centre of mass", "beside the model's, along the link's axes"
    ),
    "rollout/ground_height": line("sample", "m", "height of the ground", "by how much planes of the world are raised"),
    "rollout/delay": line("sample delayed_control", "s", "delay of the control"),
    "rollout/push_impulse": line(
        "sample push wrench_entry",
        "N s (force), N m s (torque)",
        "impulse of the push",
        "at the point and along the axes that --wrench-at and --wrench-frame say",
    ),
    "rollout/push_time": line("sample push", "s", "time of the push", "which acts in the first step from then on"),
    "rollout/start_depth": line(
        "sample", "m", "depth of the deepest contact at the start; 0: nothing is inside anything", dtype="f8"
    ),
    "rollout/sunk": line(
        "sample", "m", "depth beside that at the start of the hard contact that got deepest, for its shapes", dtype="f8"
    ),
    "rollout/sunk_share": line("sample", "1", "the same as a share of the thickness of the thinner shape", dtype="f8"),
    "rollout/held_steps": line(
        "sample", "1", "steps in which hard loops held links inside each other, whose contact was left out", dtype="i8"
    ),
    "rollout/held_depth": line("sample", "m", "depth of the deepest of these contacts", dtype="f8"),
    "rollout/unsolved_steps": line("sample", "1", "steps in which the solver left rows unsolved", dtype="i8"),
    "rollout/worst_residual": line(
        "sample", "m/s or rad/s", "largest velocity that the solver left in a row of any step", dtype="f8"
    ),
    "rollout/cost": line("sample", "1", "cost", "sum over the steps of --cost at the state before each", dtype="f8"),
    "rollout/n_valid": line("sample", "1", "rows before the sample ended", dtype="i8"),
    "rollout/status": line(
        "sample",
        "1",
        "state of the sample",
        "0 not simulated, since the rollout was interrupted; 1 complete, 2 stopped at a non-finite state, 3 stopped, "
        "4 ended where it was to",
        dtype="i1",
    ),
    "rollout/coord_units": line("coord", "1", "unit of each position coordinate", dtype="str"),
    "rollout/dof_units": line("dof", "1", "unit of each degree of freedom's velocity", dtype="str"),
    "rollout/force_units": line("dof", "1", "unit of each degree of freedom's force", dtype="str"),
    **{f"rollout/{name}": RUN[f"trajectory/{name}"] for name in _OF_ENTRIES},
    # the index of a batch in several files: row k of each is row first_row + k of the whole
    "shards/name": line("shard", "1", "file, in the folder of the index", dtype="str"),
    "shards/first_row": line("shard", "1", "first row of the batch in the file", dtype="i8"),
    "shards/rows": line("shard", "1", "rows in the file", dtype="i8"),
    "shards/bytes": line("shard", "1", "size of the file", dtype="i8"),
    "shards/sha256": line("shard", "1", "SHA-256 of the file", dtype="str"),
    "shards/failed": line("shard", "1", "rows in the file whose status is not 0", dtype="i8"),
    "shards/contacts": line("shard", "1", "contacts recorded in the file", dtype="i8"),
}
