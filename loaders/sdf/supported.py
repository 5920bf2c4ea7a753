"""The elements of SDFormat 1.4 to 1.12 that are read, and those that move nothing here, with the reason."""

from __future__ import annotations

LOOKS = "looks"
SENSORS = "Gazebo's sensors; every variable can be recorded anyway"
CODE = "Gazebo's plugins are not run"
TUNING = "tuning of Gazebo's solvers; artsim has its own"
SLEEP = "how Gazebo saves time"
PLACE = "where on Earth the world is"

ROOT = frozenset(("world", "model"))
WORLD = frozenset(("model", "frame", "joint", "gravity", "magnetic_field", "physics", "actor", "population"))
WORLD_SILENT = {
    **dict.fromkeys(("light", "scene", "gui", "audio", "road"), LOOKS),
    **dict.fromkeys(("atmosphere", "wind"), "nothing but Gazebo's plugins uses it"),
    "plugin": CODE,
    "spherical_coordinates": PLACE,
    "state": "a saved state of Gazebo; --keyframe and --q0 say where a run starts",
}
MODEL = frozenset(("pose", "static", "self_collide", "frame", "link", "joint", "model"))
MODEL_SILENT = {
    **dict.fromkeys(("plugin", "gripper"), CODE),
    "enable_wind": "nothing but Gazebo's plugins blows",
    "allow_auto_disable": SLEEP,
}
FRAME = frozenset(("pose",))
LINK = frozenset(("pose", "inertial", "collision", "visual", "gravity", "self_collide", "kinematic", "velocity_decay"))
LINK_SILENT = {
    "sensor": SENSORS,
    **dict.fromkeys(("light", "projector", "particle_emitter"), LOOKS),
    **dict.fromkeys(("audio_sink", "audio_source"), "sound"),
    "battery": "nothing but Gazebo's plugins drains it",
    "enable_wind": "nothing but Gazebo's plugins blows",
    "must_be_base_link": "tuning of Simbody",
}
INERTIAL = frozenset(("mass", "pose", "inertia", "density", "auto_inertia_params", "fluid_added_mass"))
SHAPE = frozenset(("pose", "geometry", "surface", "material"))
SHAPE_SILENT = {
    **dict.fromkeys(("cast_shadows", "laser_retro", "transparency", "visibility_flags", "meta", "plugin"), LOOKS),
    "max_contacts": "contacts are bounded for the whole run (--max-contacts)",
    **dict.fromkeys(("density", "auto_inertia_params"), "it only says how heavy an inertial with auto=true is"),
}
SURFACE = frozenset(("friction", "bounce", "contact", "soft_contact"))
JOINT = frozenset(
    (
        *("pose", "parent", "child", "axis", "axis2", "screw_thread_pitch", "thread_pitch"),
        *("gearbox_ratio", "gearbox_reference_body", "physics"),
        *("drake:mimic", "drake:rotor_inertia", "drake:gear_ratio"),
    )
)
JOINT_SILENT = {"sensor": SENSORS}
AXIS = frozenset(("xyz", "limit", "dynamics", "mimic", "use_parent_model_frame"))
AXIS_SILENT = {"initial_position": "where a run starts is said by --q0"}
LIMIT = frozenset(("lower", "upper", "effort", "velocity"))
LIMIT_SILENT = dict.fromkeys(("stiffness", "dissipation"), "limits of joints are rigid")
DYNAMICS = frozenset(("damping", "friction", "spring_reference", "spring_stiffness"))

DRAKE = frozenset(
    f"drake:{name}"
    for name in (
        *("joint", "linear_bushing_rpy", "linear_spring_damper", "ball_constraint", "distance_constraint"),
        *("tendon_constraint", "deformable_properties", "wall_boundary_condition", "surface_velocity_axis"),
    )
)
"""Extensions of Drake that act on bodies and are not read."""
