"""The variables of a run: its rows, contacts, constraint rows, inputs and states."""

from __future__ import annotations

from artsim.io.format.variable import TIME, Variable, line

RUN: dict[str, Variable] = {
    # the run, row by row
    "trajectory/time": TIME,
    "trajectory/qpos": line(
        "time coord", "{coord_units}", "position", "coordinates before the step, in the model's order"
    ),
    "trajectory/qvel": line("time dof", "{dof_units}", "velocity", "before the step"),
    "trajectory/qacc": line("time dof", "{dof_units}/s", "acceleration", "over the step"),
    "trajectory/tau_applied": line(
        "time dof", "{force_units}", "applied joint force", "of controllers and external wrenches, acting over the step"
    ),
    "trajectory/tau_drive": line(
        "time dof",
        "{force_units}",
        "drive force",
        "of drives and actuators, acting over the step: weighted between its start and end",
    ),
    "trajectory/tau_passive": line(
        "time dof",
        "{force_units}",
        "passive joint force",
        "of damping, springs and friction, acting over the step; where a step is evaluated again (spin, taut "
        "bodies), including the difference of its inertial forces from M qacc + bias at the start",
    ),
    "trajectory/tau_coupling": line(
        "time dof", "{force_units}", "coupling force", "of mimic joints and joint equalities, acting over the step"
    ),
    "trajectory/tau_limit": line(
        "time dof", "{force_units}", "limit force", "of position and velocity limits, acting over the step"
    ),
    "trajectory/tau_loop": line(
        "time dof", "{force_units}", "loop force", "of joints that close loops, acting over the step"
    ),
    "trajectory/tau_tendon": line(
        "time dof",
        "{force_units}",
        "tendon force",
        "of tendons' springs, dampers, friction, limits and equalities, acting over the step",
    ),
    "trajectory/tau_contact": line(
        "time dof", "{force_units}", "contact force", "of contacts, friction too, acting over the step"
    ),
    "trajectory/link_position": line(
        "time link xyz", "m", "link position", "origin of the link's frame in the world, before the step"
    ),
    "trajectory/link_quaternion": line(
        "time link quat", "1", "link rotation", "of the link's frame to the world (w, x, y, z), before the step"
    ),
    "trajectory/incoming_wrench": line(
        "time link wrench",
        "{wrench_units}",
        "incoming joint wrench",
        "of the parent on the link through its joint, at the link frame's origin, world axes; it "
        "excludes wrenches of contacts, loop joints, spatial tendons and actuators at sites",
    ),
    "trajectory/contact_wrench": line(
        "time link wrench",
        "{wrench_units}",
        "contact wrench",
        "of all contacts on the link, acting over the step, at the link frame's origin, world axes",
        on_request=True,
    ),
    "trajectory/external_wrench": line(
        "time link wrench",
        "{wrench_units}",
        "external wrench",
        "of contacts, loop joints, spatial tendons and actuators at sites on the link, acting over the step, "
        "at the link frame's origin, world axes; the link accelerates under it, its joints' wrenches and its weight",
        on_request=True,
    ),
    "trajectory/activation": line(
        "time actuator_state", "1", "activation", "states of actuators with dynamics, before the step"
    ),
    "trajectory/actuator_force": line("time actuator", "N or N m", "actuator force", "acting over the step"),
    "trajectory/actuator_length": line(
        "time actuator", "m or rad", "actuator length", "before the step", on_request=True
    ),
    "trajectory/actuator_velocity": line(
        "time actuator", "m/s or rad/s", "actuator velocity", "before the step", on_request=True
    ),
    "trajectory/tendon_length": line("time tendon", "m or rad", "tendon length", "before the step", on_request=True),
    "trajectory/tendon_velocity": line(
        "time tendon", "m/s or rad/s", "tendon velocity", "before the step", on_request=True
    ),
    "trajectory/tendon_force": line(
        "time tendon",
        "N or N m",
        "tendon force",
        "of springs, dampers, actuators, limits, friction and inertia along the tendon, acting over the step; "
        "positive: lengthening",
        on_request=True,
    ),
    "trajectory/loop_wrench": line(
        "time loop wrench",
        "{wrench_units}",
        "wrench of loop joint",
        "on the first link of the loop, at its point there, world axes, acting over the step; the second link "
        "receives the opposite; forces along and about its free axes are in tendon_force",
        on_request=True,
    ),
    "trajectory/sensors": line(
        "time sensor",
        "{sensor_units}",
        "sensors",
        "outputs of the file's sensors, for the state before the step and the acceleration over it",
        on_request=True,
    ),
    "trajectory/jacobian": line(
        "time jacobian_column twist",
        "{twist_units} per dof_units",
        "link Jacobian",
        "velocity of the link per joint velocity, at its centre of mass, world axes; only the dofs that move "
        "the link: dense[:, jacobian_link, :, jacobian_dof] = jacobian.swapaxes(0, 1)",
        on_request=True,
    ),
    "trajectory/gravity": line(
        "time dof",
        "{force_units}",
        "gravity compensation",
        "joint forces that hold the robot against gravity",
        on_request=True,
    ),
    "trajectory/mass_matrix": line(
        "time dof dof2",
        "{force_units} s per dof_units",
        "mass matrix",
        "joint-space inertia with armature, full coordinates",
        on_request=True,
    ),
    "trajectory/bias": line(
        "time dof", "{force_units}", "bias force", "Coriolis, centrifugal and gravity joint forces", on_request=True
    ),
    "trajectory/com": line("time xyz", "m", "centre of mass", "of all links in the world", on_request=True),
    "trajectory/momentum": line(
        "time twist",
        "kg m/s (linear), kg m^2/s (angular)",
        "momentum",
        "linear, then angular about the centre of mass, world axes",
        on_request=True,
    ),
    "trajectory/energy": line(
        "time energy_kind",
        "J",
        "energy",
        "kinetic, and potential of gravity and springs, before the step",
        on_request=True,
    ),
    "trajectory/solver_iterations": line(
        "time",
        "1",
        "solver iterations",
        "sweeps or solves of the constraint solver in the step",
        dtype="i4",
        on_request=True,
    ),
    "trajectory/solver_residual": line(
        "time",
        "1",
        "solver residual",
        "largest velocity residual of the constraint solver [rad/s or m/s]",
        on_request=True,
    ),
    "trajectory/asleep": line("time", "1", "asleep", "1: the robot sleeps", dtype="i1", on_request=True),
    "trajectory/friction_constant": line(
        "time dof",
        "{force_units}",
        "load-independent joint friction",
        "its share of tau_passive; sticking friction is divided in the ratio of the two bounds",
        on_request=True,
    ),
    "trajectory/friction_by_load": line(
        "time dof",
        "{force_units}",
        "load-dependent joint friction",
        "its share of tau_passive: at most friction_coefficient times the load of the previous step",
        on_request=True,
    ),
    "trajectory/coord_units": line("coord", "1", "unit of each position coordinate", dtype="str"),
    "trajectory/dof_units": line("dof", "1", "unit of each degree of freedom's velocity", dtype="str"),
    "trajectory/force_units": line("dof", "1", "unit of each degree of freedom's force", dtype="str"),
    "trajectory/sensor_units": line("sensor", "1", "unit of each output of a sensor", dtype="str"),
    "trajectory/twist_units": line("twist", "1", "unit of each entry of a twist", dtype="str"),
    "trajectory/wrench_units": line("wrench", "1", "unit of each entry of a wrench", dtype="str"),
    "trajectory/jacobian_link": line("jacobian_column", "1", "link of each column", "index into link", dtype="i4"),
    "trajectory/jacobian_dof": line(
        "jacobian_column", "1", "degree of freedom of each column", "index into dof", dtype="i4"
    ),
    "trajectory/n_valid": line("", "1", "rows written in full; later rows are undefined", dtype="i8"),
    "trajectory/status": line(
        "", "1", "0 running (or killed), 1 complete, 2 stopped at a non-finite state, 3 interrupted", dtype="i1"
    ),
    # the contacts of the recorded rows, one after the other; link and geom are indices into these labels
    "contact/time": TIME,
    "contact/contact_count": line(
        "time", "1", "contacts in the step", "their rows follow those of earlier steps", dtype="i8"
    ),
    "contact/step": line("row", "1", "step of the contact", dtype="i8"),
    "contact/link_a": line("row", "1", "first link", "index into link", dtype="i4"),
    "contact/link_b": line("row", "1", "second link", "index into link", dtype="i4"),
    "contact/geom_a": line("row", "1", "first geometry", "index into geom", dtype="i4"),
    "contact/geom_b": line("row", "1", "second geometry", "index into geom", dtype="i4"),
    "contact/point": line("row xyz", "m", "point", "half way between the surfaces, in the world, before the step"),
    "contact/normal": line("row xyz", "1", "normal", "from a to b, world axes"),
    "contact/tangent": line("row xyz", "1", "first tangent", "world axes; the second is normal x first tangent"),
    "contact/depth": line(
        "row", "m", "depth", "before the step; negative: a gap, within a margin or closed by the step"
    ),
    "contact/force": line(
        "row direction", "N", "contact force", "on b, acting over the step, along normal and tangents"
    ),
    "contact/torque": line("row direction", "N m", "contact torque", "on b at the point, about normal and tangents"),
    "contact/n_valid": line("", "1", "rows of contacts written in full", dtype="i8"),
    "contact/sample": line(
        "row", "1", "sample of the contact", "in rollouts, whose samples follow each other", dtype="i8"
    ),
    # the constraint rows of the recorded steps, one after the other, and the lower triangles of their K
    "constraint/time": TIME,
    "constraint/constraint_count": line(
        "time", "1", "constraint rows in the step", "their rows follow those of earlier steps", dtype="i8"
    ),
    "constraint/step": line("row", "1", "step of the constraint row", dtype="i8"),
    "constraint/name": line("row", "1", "name of the row", "index into constraint", dtype="i4"),
    "constraint/contact": line(
        "row", "1", "contact of the row", "its number in the step; -1: the row is not a contact's", dtype="i4"
    ),
    "constraint/cfm": line(
        "row",
        "1/kg or 1/(kg m^2)",
        "compliance of the row",
        "velocity per impulse by which it gives way; with tgs that of a sub-step",
    ),
    "constraint/impulse": line("row", "N s or N m s", "impulse of the row", "over the step"),
    "constraint/n_valid": line("", "1", "rows written in full", dtype="i8"),
    "delassus/time": TIME,
    "delassus/entry_count": line(
        "time", "1", "entries in the step", "their rows follow those of earlier steps", dtype="i8"
    ),
    "delassus/step": line("row", "1", "step of the entry", dtype="i8"),
    "delassus/row_a": line("row", "1", "constraint row of the entry", "its number in the step, from 0", dtype="i4"),
    "delassus/row_b": line(
        "row", "1", "constraint column of the entry", "its number in the step, at most row_a", dtype="i4"
    ),
    "delassus/value": line(
        "row",
        "1/kg or 1/(kg m^2)",
        "entry of K = J M^-1 J^T + cfm",
        "velocity of row a per impulse of row b; M with armature, implicit springs, dampers and drives; K is "
        "symmetric, of which the lower triangle is stored, without zeros off the diagonal",
    ),
    "delassus/n_valid": line("", "1", "rows written in full", dtype="i8"),
    # the inputs as applied: each row holds until the next takes effect
    "controls/time": line("time", "s", "when the row takes effect"),
    "controls/start_step": line("time", "1", "first step of the row; it holds until the next row's", dtype="i8"),
    "controls/torque": line("time dof", "{force_units}", "joint forces applied by the controller"),
    "controls/target": line("time dof", "{dof_units} s", "position targets of the drives"),
    "controls/target_velocity": line("time dof", "{dof_units}", "velocity targets of the drives"),
    "controls/target_acceleration": line("time dof", "{dof_units}/s", "accelerations for computed torque"),
    "controls/control": line(
        "time actuator",
        "1",
        "controls of the actuators",
        "a servo or motor with several has one entry each; LINK.fx … LINK.tz: wrenches on links [N, N m]",
    ),
    "controls/changes": line(
        "changes",
        "1",
        "changes of state and settings between steps, as text",
        "UTF-8; a line of JSON each: the step that they precede, settings as in /provenance, state",
        dtype="i1",
    ),
    "controls/dof_units": line("dof", "1", "unit of each degree of freedom's velocity", dtype="str"),
    "controls/force_units": line("dof", "1", "unit of each degree of freedom's force", dtype="str"),
    "controls/n_valid": line("", "1", "rows written in full", dtype="i8"),
    # the whole state after the last step, and (checkpoint/…) every so many steps: to resume a run or to continue it
    "final/qpos": line("coord", "{coord_units}", "position coordinates"),
    "final/qvel": line("dof", "{dof_units}", "velocities"),
    "final/activation": line("actuator_state", "1", "states of actuators with dynamics"),
    "final/history": line(
        "kept",
        "1",
        "samples of delayed controls and sensors",
        "of each delayed one: slot of the newest, ticks so far, steps of its samples, the samples",
    ),
    "final/impulse": line(
        "row", "N s or N m s", "impulses of the constraint rows in the last step", "warm start of the solver"
    ),
    "final/load": line(
        "dof",
        "{force_units}",
        "load in the joints in the last step",
        "|F| of the force through slides, √(|F|² + |T|²) of force and torque through hinges; bounds "
        "load-dependent friction",
    ),
    "final/change": line(
        "dof",
        "{dof_units}",
        "change of the velocities in the last step",
        "the next step expects it to go on, unless the step before had a smaller one",
    ),
    "final/earlier_change": line("dof", "{dof_units}", "change of the velocities in the step before the last"),
    "final/drive_held": line(
        "dof", "1", "drives at their largest force at the end of the last step", "-1: backwards, 1: forwards, 0: within"
    ),
    "final/still": line("", "1", "steps that the robot has been at rest, as sleeping counts them", dtype="i8"),
    "final/last_input": line(
        "input",
        "N or N m, m or rad, m/s or rad/s, 1",
        "inputs of the last step",
        "torque, target, target velocity of every dof, controls of the actuators; a change wakes the robot",
    ),
    "final/body_centre": line("body xyz", "m", "centres of mass of the bodies (maximal coordinates)"),
    "final/body_turn": line("body quat", "1", "rotations of the bodies"),
    "final/body_velocity": line("body twist", "{twist_units}", "velocities of the bodies"),
    "final/limit_steps": line("dof", "1", "steps at a limit since the start"),
    "final/extremes": line(
        "extreme", "J (energy), 1 (contacts), m or rad, m/s or rad/s", "figures of the run's summary"
    ),
    "final/course": line(
        "course_entry",
        "1 (counts, shares), s (steps), rad or m (estimate)",
        "steps that --accuracy chose, and what the next one depends on",
    ),
    "final/step": line("", "1", "steps taken", dtype="i8"),
    "final/time": line("", "s", "time after these steps"),
    "final/contact": line(
        "contact_row contact_entry",
        "1 (shapes, feature), N s (normal, tangents), N m s",
        "contacts of the last step",
        "warm start of the solver",
    ),
    "final/coord_units": line("coord", "1", "unit of each position coordinate", dtype="str"),
    "final/force_units": line("dof", "1", "unit of each degree of freedom's force", dtype="str"),
    "final/dof_units": line("dof", "1", "unit of each degree of freedom's velocity", dtype="str"),
    "final/twist_units": line("twist", "1", "unit of each entry of a twist", dtype="str"),
}
