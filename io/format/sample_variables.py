"""The variables of batches and rollouts, and of the index of a batch in several files."""

from __future__ import annotations

from artsim.io.format.variable import TIME, Variable

SAMPLES: dict[str, Variable] = {
    # many configurations: inputs, results and status; `batch_variable` tells how a line reads when results are reduced
    # or packed
    "batch/qpos": Variable(("sample", "coord"), "{coord_units}", "position", comment="given"),
    "batch/qvel": Variable(("sample", "dof"), "{dof_units}", "velocity", comment="given"),
    "batch/qacc": Variable(("sample", "dof"), "{dof_units}/s", "acceleration", comment="given"),
    "batch/tau": Variable(("sample", "dof"), "{force_units}", "joint force", comment="given"),
    "batch/wrench": Variable(
        ("sample", "link", "wrench_entry"),
        "N (force), N m (torque)",
        "external wrench",
        comment="given; on the link, at the point named by the group's attribute `at`, world axes",
    ),
    "batch/gravity": Variable(
        ("sample", "dof"),
        "{force_units}",
        "gravity compensation",
        comment="joint forces that hold the robot against gravity",
    ),
    "batch/coriolis": Variable(
        ("sample", "dof"), "{force_units}", "Coriolis force", comment="Coriolis and centrifugal joint forces C(q, v) v"
    ),
    "batch/bias": Variable(
        ("sample", "dof"), "{force_units}", "bias force", comment="Coriolis, centrifugal and gravity joint forces"
    ),
    "batch/mass_matrix": Variable(
        ("sample", "dof", "dof2"),
        "{force_units} s per dof_units",
        "mass matrix",
        comment="joint-space inertia with armature",
    ),
    "batch/inverse_mass_matrix": Variable(
        ("sample", "dof", "dof2"), "{dof_units}/s per force_units", "inverse mass matrix"
    ),
    "batch/inverse_dynamics": Variable(
        ("sample", "dof"), "{force_units}", "inverse dynamics", comment="joint forces for the acceleration qacc"
    ),
    "batch/forward_dynamics": Variable(
        ("sample", "dof"), "{dof_units}/s", "forward dynamics", comment="acceleration under the joint forces tau"
    ),
    "batch/external_force": Variable(
        ("sample", "dof"), "{force_units}", "external force compensation", comment="joint forces that balance `wrench`"
    ),
    "batch/jacobian": Variable(
        ("sample", "link", "twist", "dof"),
        "{twist_units} per dof_units",
        "link Jacobian",
        comment="velocity of the link per joint velocity, at the point that `at` names, world axes",
    ),
    "batch/jacobian_dot": Variable(
        ("sample", "link", "twist", "dof"),
        "{twist_units}/s per dof_units",
        "rate of the link Jacobian",
        comment="its time derivative at the velocity qvel",
    ),
    "batch/link_position": Variable(
        ("sample", "link", "xyz"), "m", "link position", comment="origin of the link's frame in the world"
    ),
    "batch/link_quaternion": Variable(
        ("sample", "link", "quat"), "1", "link rotation", comment="of the link's frame to the world (w, x, y, z)"
    ),
    "batch/link_velocity": Variable(
        ("sample", "link", "twist"),
        "{twist_units}",
        "link velocity",
        comment="linear, angular, at the point that `at` names, world axes",
    ),
    "batch/link_acceleration": Variable(
        ("sample", "link", "twist"),
        "{twist_units}/s",
        "link acceleration",
        comment="linear, angular, at the point that `at` names, world axes; gravity is not included",
    ),
    "batch/com": Variable(("sample", "xyz"), "m", "centre of mass", comment="of all links in the world"),
    "batch/com_jacobian": Variable(
        ("sample", "xyz", "dof"),
        "m/s per dof_units",
        "centre of mass Jacobian",
        comment="velocity of the centre of mass per joint velocity",
    ),
    "batch/momentum": Variable(
        ("sample", "twist"),
        "kg m/s (linear), kg m^2/s (angular)",
        "momentum",
        comment="linear, then angular about the centre of mass, world axes",
    ),
    "batch/centroidal_momentum_matrix": Variable(
        ("sample", "twist", "dof"),
        "kg m/s (linear), kg m^2/s (angular), per dof_units",
        "centroidal momentum matrix",
        comment="momentum per joint velocity",
    ),
    "batch/centroidal_bias": Variable(
        ("sample", "twist"),
        "N (linear), N m (angular)",
        "centroidal bias",
        comment="rate of the momentum at zero joint acceleration",
    ),
    "batch/kinetic_energy": Variable(("sample",), "J", "kinetic energy", comment="armature included"),
    "batch/potential_energy": Variable(
        ("sample",), "J", "potential energy", comment="of gravity (0 at the origin) and springs"
    ),
    "batch/coupling_matrix": Variable(
        ("sample", "dof", "independent_dof"),
        "{dof_units} per independent_dof_units",
        "coupling matrix",
        comment="velocity of each degree of freedom per independent one",
    ),
    "batch/constraint_jacobian": Variable(
        ("sample", "constraint", "dof"),
        "m/s or rad/s, per dof_units",
        "constraint Jacobian",
        comment="velocity of each constraint row per joint velocity: couplings, loop joints, equalities of tendons, "
        "hard ones and ones that give way; rotations of welds in their torque scale (m per rad)",
    ),
    "batch/delassus": Variable(
        ("sample", "constraint", "constraint2"),
        "1/kg or 1/(kg m^2)",
        "Delassus matrix",
        comment="K = J M^-1 J^T: velocity of a constraint row per impulse of another; J is constraint_jacobian, M "
        "mass_matrix; the compliance (cfm) of rows that give way is not included, other than in /delassus of runs",
    ),
    "batch/status": Variable(
        ("sample",),
        "1",
        "whether the row could be computed",
        "i1",
        comment="0 computed, 1 an input is invalid, 2 a result is not finite or M is singular, -1 shard missing; "
        "results are NaN where it is not 0",
    ),
    "batch/coord_units": Variable(("coord",), "1", "unit of each position coordinate", "str"),
    "batch/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "batch/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    "batch/twist_units": Variable(("twist",), "1", "unit of each entry of a twist", "str"),
    "batch/independent_dof_units": Variable(
        ("independent_dof",), "1", "unit of each independent degree of freedom's velocity", "str"
    ),
    "batch/independent_force_units": Variable(
        ("independent_dof",), "1", "unit of each independent degree of freedom's force", "str"
    ),
    # many runs of one robot that differ in their start, inputs or parameters
    "rollout/time": TIME,
    "rollout/qpos": Variable(
        ("sample", "time", "coord"),
        "{coord_units}",
        "position",
        comment="coordinates before the step; NaN from row n_valid of a sample on",
    ),
    "rollout/qvel": Variable(
        ("sample", "time", "dof"),
        "{dof_units}",
        "velocity",
        comment="before the step; NaN from row n_valid of a sample on",
    ),
    "rollout/final_qpos": Variable(("sample", "coord"), "{coord_units}", "position after the last step"),
    "rollout/final_qvel": Variable(("sample", "dof"), "{dof_units}", "velocity after the last step"),
    "rollout/mass_factor": Variable(("sample", "link"), "1", "factor of the link's mass and inertia"),
    "rollout/armature_factor": Variable(("sample", "dof"), "1", "factor of the armature"),
    "rollout/damping_factor": Variable(("sample", "dof"), "1", "factor of the joint's damping"),
    "rollout/stiffness_factor": Variable(("sample", "dof"), "1", "factor of the joint's spring stiffness"),
    "rollout/joint_friction_factor": Variable(("sample", "dof"), "1", "factor of the joint's friction"),
    "rollout/friction_factor": Variable(("sample",), "1", "factor of the friction of contacts"),
    "rollout/drive_stiffness_factor": Variable(("sample", "dof"), "1", "factor of the drive's stiffness"),
    "rollout/drive_damping_factor": Variable(("sample", "dof"), "1", "factor of the drive's damping"),
    "rollout/start_depth": Variable(
        ("sample",), "m", "depth of the deepest contact at the start; 0: nothing is inside anything", "f8"
    ),
    "rollout/sunk": Variable(
        ("sample",), "m", "depth beside that at the start of the hard contact that got deepest, for its shapes", "f8"
    ),
    "rollout/n_valid": Variable(("sample",), "1", "rows before the sample ended", "i8"),
    "rollout/status": Variable(("sample",), "1", "1 complete, 2 stopped at a non-finite state, 3 stopped", "i1"),
    "rollout/coord_units": Variable(("coord",), "1", "unit of each position coordinate", "str"),
    "rollout/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "rollout/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    # the index of a batch in several files: row k of each is row first_row + k of the whole
    "shards/name": Variable(("shard",), "1", "file, in the folder of the index", "str"),
    "shards/first_row": Variable(("shard",), "1", "first row of the batch in the file", "i8"),
    "shards/rows": Variable(("shard",), "1", "rows in the file", "i8"),
    "shards/bytes": Variable(("shard",), "1", "size of the file", "i8"),
    "shards/sha256": Variable(("shard",), "1", "SHA-256 of the file", "str"),
    "shards/failed": Variable(("shard",), "1", "rows in the file whose status is not 0", "i8"),
}
