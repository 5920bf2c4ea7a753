"""The variables of a run: its rows, contacts, constraint rows, inputs and states."""

from __future__ import annotations

from artsim.io.format.variable import TIME, Variable

RUN: dict[str, Variable] = {
    # the run, row by row
    "trajectory/time": TIME,
    "trajectory/qpos": Variable(
        ("time", "coord"), "{coord_units}", "position", comment="coordinates before the step, in the model's order"
    ),
    "trajectory/qvel": Variable(("time", "dof"), "{dof_units}", "velocity", comment="before the step"),
    "trajectory/qacc": Variable(("time", "dof"), "{dof_units}/s", "acceleration", comment="over the step"),
    "trajectory/tau_applied": Variable(
        ("time", "dof"),
        "{force_units}",
        "applied joint force",
        comment="of controllers and external wrenches, acting over the step",
    ),
    "trajectory/tau_drive": Variable(
        ("time", "dof"),
        "{force_units}",
        "drive force",
        comment="of drives and actuators, acting over the step: weighted between its start and end",
    ),
    "trajectory/tau_passive": Variable(
        ("time", "dof"),
        "{force_units}",
        "passive joint force",
        comment="of damping, springs and friction, acting over the step; where a step is evaluated again (spin, taut "
        "bodies), including the difference of its inertial forces from M qacc + bias at the start",
    ),
    "trajectory/tau_coupling": Variable(
        ("time", "dof"),
        "{force_units}",
        "coupling force",
        comment="of mimic joints and joint equalities, acting over the step",
    ),
    "trajectory/tau_limit": Variable(
        ("time", "dof"), "{force_units}", "limit force", comment="of position and velocity limits, acting over the step"
    ),
    "trajectory/tau_loop": Variable(
        ("time", "dof"),
        "{force_units}",
        "loop force",
        comment="of joints that close loops, acting over the step",
    ),
    "trajectory/tau_tendon": Variable(
        ("time", "dof"),
        "{force_units}",
        "tendon force",
        comment="of tendons' springs, dampers, friction, limits and equalities, acting over the step",
    ),
    "trajectory/tau_contact": Variable(
        ("time", "dof"), "{force_units}", "contact force", comment="of contacts, friction too, acting over the step"
    ),
    "trajectory/link_position": Variable(
        ("time", "link", "xyz"),
        "m",
        "link position",
        comment="origin of the link's frame in the world, before the step",
    ),
    "trajectory/link_quaternion": Variable(
        ("time", "link", "quat"),
        "1",
        "link rotation",
        comment="of the link's frame to the world (w, x, y, z), before the step",
    ),
    "trajectory/incoming_wrench": Variable(
        ("time", "link", "wrench"),
        "{wrench_units}",
        "incoming joint wrench",
        comment="of the parent on the link through its joint, at the link frame's origin, world axes; it "
        "excludes wrenches of contacts, loop joints, spatial tendons and actuators at sites",
    ),
    "trajectory/contact_wrench": Variable(
        ("time", "link", "wrench"),
        "{wrench_units}",
        "contact wrench",
        on_request=True,
        comment="of all contacts on the link, acting over the step, at the link frame's origin, world axes",
    ),
    "trajectory/external_wrench": Variable(
        ("time", "link", "wrench"),
        "{wrench_units}",
        "external wrench",
        on_request=True,
        comment="of contacts, loop joints, spatial tendons and actuators at sites on the link, acting over the step, "
        "at the link frame's origin, world axes; the link accelerates under it, its joints' wrenches and its weight",
    ),
    "trajectory/activation": Variable(
        ("time", "actuator_state"), "1", "activation", comment="states of actuators with dynamics, before the step"
    ),
    "trajectory/actuator_force": Variable(
        ("time", "actuator"), "N or N m", "actuator force", comment="acting over the step"
    ),
    "trajectory/actuator_length": Variable(
        ("time", "actuator"), "m or rad", "actuator length", on_request=True, comment="before the step"
    ),
    "trajectory/actuator_velocity": Variable(
        ("time", "actuator"), "m/s or rad/s", "actuator velocity", on_request=True, comment="before the step"
    ),
    "trajectory/tendon_length": Variable(
        ("time", "tendon"), "m or rad", "tendon length", on_request=True, comment="before the step"
    ),
    "trajectory/tendon_velocity": Variable(
        ("time", "tendon"), "m/s or rad/s", "tendon velocity", on_request=True, comment="before the step"
    ),
    "trajectory/tendon_force": Variable(
        ("time", "tendon"),
        "N or N m",
        "tendon force",
        on_request=True,
        comment="of springs, dampers, actuators, limits, friction and inertia along the tendon, acting over the step; "
        "positive: lengthening",
    ),
    "trajectory/loop_wrench": Variable(
        ("time", "loop", "wrench"),
        "{wrench_units}",
        "wrench of loop joint",
        on_request=True,
        comment="on the first link of the loop, at its point there, world axes, acting over the step; the second link "
        "receives the opposite; forces along and about its free axes are in tendon_force",
    ),
    "trajectory/sensors": Variable(
        ("time", "sensor"),
        "{sensor_units}",
        "sensors",
        on_request=True,
        comment="outputs of the file's sensors, for the state before the step and the acceleration over it",
    ),
    "trajectory/jacobian": Variable(
        ("time", "jacobian_column", "twist"),
        "{twist_units} per dof_units",
        "link Jacobian",
        on_request=True,
        comment="velocity of the link per joint velocity, at its centre of mass, world axes; only the dofs that move "
        "the link: dense[:, jacobian_link, :, jacobian_dof] = jacobian.swapaxes(0, 1)",
    ),
    "trajectory/gravity": Variable(
        ("time", "dof"),
        "{force_units}",
        "gravity compensation",
        on_request=True,
        comment="joint forces that hold the robot against gravity",
    ),
    "trajectory/mass_matrix": Variable(
        ("time", "dof", "dof2"),
        "{force_units} s per dof_units",
        "mass matrix",
        on_request=True,
        comment="joint-space inertia with armature, full coordinates",
    ),
    "trajectory/bias": Variable(
        ("time", "dof"),
        "{force_units}",
        "bias force",
        on_request=True,
        comment="Coriolis, centrifugal and gravity joint forces",
    ),
    "trajectory/com": Variable(
        ("time", "xyz"), "m", "centre of mass", on_request=True, comment="of all links in the world"
    ),
    "trajectory/momentum": Variable(
        ("time", "twist"),
        "kg m/s (linear), kg m^2/s (angular)",
        "momentum",
        on_request=True,
        comment="linear, then angular about the centre of mass, world axes",
    ),
    "trajectory/energy": Variable(
        ("time", "energy_kind"),
        "J",
        "energy",
        on_request=True,
        comment="kinetic, and potential of gravity and springs, before the step",
    ),
    "trajectory/solver_iterations": Variable(
        ("time",),
        "1",
        "solver iterations",
        "i4",
        on_request=True,
        comment="sweeps or solves of the constraint solver in the step",
    ),
    "trajectory/solver_residual": Variable(
        ("time",),
        "1",
        "solver residual",
        on_request=True,
        comment="largest velocity residual of the constraint solver [rad/s or m/s]",
    ),
    "trajectory/asleep": Variable(("time",), "1", "asleep", "i1", on_request=True, comment="1: the robot sleeps"),
    "trajectory/friction_constant": Variable(
        ("time", "dof"),
        "{force_units}",
        "load-independent joint friction",
        on_request=True,
        comment="its share of tau_passive; sticking friction is divided in the ratio of the two bounds",
    ),
    "trajectory/friction_by_load": Variable(
        ("time", "dof"),
        "{force_units}",
        "load-dependent joint friction",
        on_request=True,
        comment="its share of tau_passive: at most friction_coefficient times the load of the previous step",
    ),
    "trajectory/coord_units": Variable(("coord",), "1", "unit of each position coordinate", "str"),
    "trajectory/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "trajectory/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    "trajectory/sensor_units": Variable(("sensor",), "1", "unit of each output of a sensor", "str"),
    "trajectory/twist_units": Variable(("twist",), "1", "unit of each entry of a twist", "str"),
    "trajectory/wrench_units": Variable(("wrench",), "1", "unit of each entry of a wrench", "str"),
    "trajectory/jacobian_link": Variable(
        ("jacobian_column",), "1", "link of each column", "i4", comment="index into link"
    ),
    "trajectory/jacobian_dof": Variable(
        ("jacobian_column",), "1", "degree of freedom of each column", "i4", comment="index into dof"
    ),
    "trajectory/n_valid": Variable((), "1", "rows written in full; later rows are undefined", "i8"),
    "trajectory/status": Variable(
        (), "1", "0 running (or killed), 1 complete, 2 stopped at a non-finite state, 3 interrupted", "i1"
    ),
    # the contacts of the recorded rows, one after the other; link and geom are indices into these labels
    "contact/time": TIME,
    "contact/contact_count": Variable(
        ("time",), "1", "contacts in the step", "i8", comment="their rows follow those of earlier steps"
    ),
    "contact/step": Variable(("row",), "1", "step of the contact", "i8"),
    "contact/link_a": Variable(("row",), "1", "first link", "i4", comment="index into link"),
    "contact/link_b": Variable(("row",), "1", "second link", "i4", comment="index into link"),
    "contact/geom_a": Variable(("row",), "1", "first geometry", "i4", comment="index into geom"),
    "contact/geom_b": Variable(("row",), "1", "second geometry", "i4", comment="index into geom"),
    "contact/point": Variable(
        ("row", "xyz"), "m", "point", comment="half way between the surfaces, in the world, before the step"
    ),
    "contact/normal": Variable(("row", "xyz"), "1", "normal", comment="from a to b, world axes"),
    "contact/tangent": Variable(
        ("row", "xyz"), "1", "first tangent", comment="world axes; the second is normal x first tangent"
    ),
    "contact/depth": Variable(
        ("row",), "m", "depth", comment="before the step; negative: a gap, within a margin or closed by the step"
    ),
    "contact/force": Variable(
        ("row", "direction"), "N", "contact force", comment="on b, acting over the step, along normal and tangents"
    ),
    "contact/torque": Variable(
        ("row", "direction"), "N m", "contact torque", comment="on b at the point, about normal and tangents"
    ),
    "contact/n_valid": Variable((), "1", "rows of contacts written in full", "i8"),
    # the constraint rows of the recorded steps, one after the other, and the lower triangles of their K
    "constraint/time": TIME,
    "constraint/constraint_count": Variable(
        ("time",), "1", "constraint rows in the step", "i8", comment="their rows follow those of earlier steps"
    ),
    "constraint/step": Variable(("row",), "1", "step of the constraint row", "i8"),
    "constraint/name": Variable(("row",), "1", "name of the row", "i4", comment="index into constraint"),
    "constraint/contact": Variable(
        ("row",), "1", "contact of the row", "i4", comment="its number in the step; -1: the row is not a contact's"
    ),
    "constraint/cfm": Variable(
        ("row",),
        "1/kg or 1/(kg m^2)",
        "compliance of the row",
        comment="velocity per impulse by which it gives way; with tgs that of a sub-step",
    ),
    "constraint/impulse": Variable(("row",), "N s or N m s", "impulse of the row", comment="over the step"),
    "constraint/n_valid": Variable((), "1", "rows written in full", "i8"),
    "delassus/time": TIME,
    "delassus/entry_count": Variable(
        ("time",), "1", "entries in the step", "i8", comment="their rows follow those of earlier steps"
    ),
    "delassus/step": Variable(("row",), "1", "step of the entry", "i8"),
    "delassus/row_a": Variable(
        ("row",), "1", "constraint row of the entry", "i4", comment="its number in the step, from 0"
    ),
    "delassus/row_b": Variable(
        ("row",), "1", "constraint column of the entry", "i4", comment="its number in the step, at most row_a"
    ),
    "delassus/value": Variable(
        ("row",),
        "1/kg or 1/(kg m^2)",
        "entry of K = J M^-1 J^T + cfm",
        comment="velocity of row a per impulse of row b; M with armature, implicit springs, dampers and drives; K is "
        "symmetric, of which the lower triangle is stored, without zeros off the diagonal",
    ),
    "delassus/n_valid": Variable((), "1", "rows written in full", "i8"),
    # the inputs as applied: each row holds until the next takes effect
    "controls/time": Variable(("time",), "s", "when the row takes effect"),
    "controls/start_step": Variable(("time",), "1", "first step of the row; it holds until the next row's", "i8"),
    "controls/torque": Variable(("time", "dof"), "{force_units}", "joint forces applied by the controller"),
    "controls/target": Variable(("time", "dof"), "{dof_units} s", "position targets of the drives"),
    "controls/target_velocity": Variable(("time", "dof"), "{dof_units}", "velocity targets of the drives"),
    "controls/target_acceleration": Variable(("time", "dof"), "{dof_units}/s", "accelerations for computed torque"),
    "controls/control": Variable(
        ("time", "actuator"),
        "1",
        "controls of the actuators",
        comment="a servo or motor with several has one entry each; LINK.fx … LINK.tz: wrenches on links [N, N m]",
    ),
    "controls/changes": Variable(
        ("changes",),
        "1",
        "changes of state and settings between steps, as text",
        "i1",
        comment="UTF-8; a line of JSON each: the step that they precede, settings as in /provenance, state",
    ),
    "controls/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "controls/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    "controls/n_valid": Variable((), "1", "rows written in full", "i8"),
    # the whole state after the last step, and (checkpoint/…) every so many steps: to resume a run or to continue it
    "final/qpos": Variable(("coord",), "{coord_units}", "position coordinates"),
    "final/qvel": Variable(("dof",), "{dof_units}", "velocities"),
    "final/activation": Variable(("actuator_state",), "1", "states of actuators with dynamics"),
    "final/history": Variable(
        ("kept",),
        "1",
        "samples of delayed controls and sensors",
        comment="of each delayed one: slot of the newest, ticks so far, steps of its samples, the samples",
    ),
    "final/impulse": Variable(
        ("row",), "N s or N m s", "impulses of the constraint rows in the last step", comment="warm start of the solver"
    ),
    "final/load": Variable(
        ("dof",),
        "{force_units}",
        "load in the joints in the last step",
        comment="|F| of the force through slides, √(|F|² + |T|²) of force and torque through hinges; bounds "
        "load-dependent friction",
    ),
    "final/change": Variable(
        ("dof",),
        "{dof_units}",
        "change of the velocities in the last step",
        comment="the next step expects it to go on, unless the step before had a smaller one",
    ),
    "final/earlier_change": Variable(("dof",), "{dof_units}", "change of the velocities in the step before the last"),
    "final/still": Variable((), "1", "steps that the robot has been at rest, as sleeping counts them", "i8"),
    "final/last_input": Variable(
        ("input",),
        "N or N m, m or rad, m/s or rad/s, 1",
        "inputs of the last step",
        comment="torque, target, target velocity of every dof, controls of the actuators; a change wakes the robot",
    ),
    "final/body_centre": Variable(("body", "xyz"), "m", "centres of mass of the bodies (maximal coordinates)"),
    "final/body_turn": Variable(("body", "quat"), "1", "rotations of the bodies"),
    "final/body_velocity": Variable(("body", "twist"), "{twist_units}", "velocities of the bodies"),
    "final/limit_steps": Variable(("dof",), "1", "steps at a limit since the start"),
    "final/extremes": Variable(
        ("extreme",), "J (energy), 1 (contacts), m or rad, m/s or rad/s", "figures of the run's summary"
    ),
    "final/step": Variable((), "1", "steps taken", "i8"),
    "final/time": Variable((), "s", "time after these steps"),
    "final/contact": Variable(
        ("contact_row", "contact_entry"),
        "1 (shapes, feature), N s (normal, tangents), N m s",
        "contacts of the last step",
        comment="warm start of the solver",
    ),
    "final/coord_units": Variable(("coord",), "1", "unit of each position coordinate", "str"),
    "final/force_units": Variable(("dof",), "1", "unit of each degree of freedom's force", "str"),
    "final/dof_units": Variable(("dof",), "1", "unit of each degree of freedom's velocity", "str"),
    "final/twist_units": Variable(("twist",), "1", "unit of each entry of a twist", "str"),
}
