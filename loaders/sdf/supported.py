"""The elements and attributes of SDFormat 1.4 to 1.12 that are read or have no effect here, with the reasons.

`tell_unread` goes through a whole model: a name in neither list is a warning with its line, since a misspelt element
would otherwise become a default silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from artsim.loaders.elements import Element, describe, tag
from artsim.loaders.sdf.reading import SdfReading
from artsim.sim.foundation.errors import nearest

LOOKS = "looks"
SENSORS = "Gazebo's sensors; every variable can be recorded anyway"
CODE = "Gazebo's plugins are not run"
TUNING = "tuning of Gazebo's solvers; artsim has its own"
SLEEP = "how Gazebo saves time"
PLACE = "where on Earth the world is"
WIND = "nothing but Gazebo's plugins blows"
AUTO = "it only says how heavy an inertial with auto=true is"


class Known(NamedTuple):
    """The known contents of an element: children that are read, children that move nothing, and attributes."""

    read: frozenset[str] = frozenset()
    silent: Mapping[str, str] = {}
    attributes: frozenset[str] = frozenset()


def known(read: str = "", attributes: str = "", **silent: str) -> Known:
    """The contents from names separated by spaces; `silent` has the children that move nothing, by reason."""
    reasons = {name: why for why, names in silent.items() for name in names.split()}
    return Known(
        frozenset(read.split()), {name: REASONS[why] for name, why in reasons.items()}, frozenset(attributes.split())
    )


REASONS = {
    "looks": LOOKS,
    "sensors": SENSORS,
    "code": CODE,
    "tuning": TUNING,
    "sleep": SLEEP,
    "place": PLACE,
    "wind": WIND,
    "auto": AUTO,
    "air": "nothing but Gazebo's plugins uses it",
    "state": "a saved state of Gazebo; --keyframe and --q0 say where a run starts",
    "sound": "sound",
    "battery": "nothing but Gazebo's plugins drains it",
    "simbody": "tuning of Simbody",
    "bounded": "contacts are bounded for the whole run (--max-contacts)",
    "rigid": "limits of joints are rigid",
    "start": "where a run starts is said by --q0",
    "name": "a name for Gazebo's topics",
    "bullet": "only Bullet has it, which is none of Gazebo's usual engines",
    "direction": "one coefficient counts in all directions",
}
SHAPES = "box sphere cylinder capsule ellipsoid plane mesh heightmap image polyline cone empty"
AXIS = known("xyz limit dynamics mimic", start="initial_position")
TABLE: dict[str, Known] = {
    "sdf": known("world model", "version", looks="actor light"),
    "world": known(
        "model frame joint gravity magnetic_field physics actor population",
        "name",
        looks="light scene gui audio road",
        air="atmosphere wind",
        code="plugin",
        place="spherical_coordinates",
        state="state",
    ),
    "world/physics": known(
        "max_step_size gravity magnetic_field",
        "name default type",
        tuning="real_time_factor real_time_update_rate update_rate max_contacts ode bullet simbody dart profile",
    ),
    "model": known(
        "pose static self_collide frame link joint model",
        "name canonical_link placement_frame namespace",
        code="plugin gripper",
        wind="enable_wind",
        sleep="allow_auto_disable",
    ),
    "frame": known("pose", "name attached_to"),
    "link": known(
        "pose inertial collision visual gravity self_collide kinematic velocity_decay",
        "name",
        sensors="sensor",
        looks="light projector particle_emitter",
        sound="audio_sink audio_source",
        battery="battery",
        wind="enable_wind",
        simbody="must_be_base_link",
    ),
    "velocity_decay": known("linear angular"),
    "pose": known("", "relative_to rotation_format degrees"),
    "inertial": known("mass pose inertia fluid_added_mass", "auto", auto="density auto_inertia_params"),
    "inertia": known("ixx ixy ixz iyy iyz izz"),
    "collision": known(
        "pose geometry surface",
        "name",
        looks="laser_retro material",
        bounded="max_contacts",
        auto="density auto_inertia_params",
    ),
    "visual": known(
        "pose geometry material", "name", looks="cast_shadows laser_retro transparency visibility_flags meta plugin"
    ),
    "geometry": known(f"{SHAPES} drake:capsule drake:ellipsoid"),
    "box": known("size"),
    "sphere": known("radius"),
    **dict.fromkeys(("cylinder", "capsule", "drake:capsule"), known("radius length")),
    "ellipsoid": known("radii"),
    "plane": known("normal size"),
    "mesh": known("uri scale submesh", "optimization", looks="convex_decomposition"),
    "surface": known("friction bounce contact soft_contact"),
    "bounce": known("restitution_coefficient threshold"),
    "friction": known("ode bullet torsional"),
    "friction/ode": known("mu mu2 slip1 slip2", direction="fdir1"),
    "friction/bullet": known("friction friction2", direction="fdir1", bullet="rolling_friction"),
    "torsional": known("coefficient use_patch_radius patch_radius surface_radius ode"),
    "torsional/ode": known("slip"),
    "contact": known(
        "collide_bitmask category_bitmask collide_without_contact collide_without_contact_bitmask ode bullet"
        " elastic_modulus poissons_ratio"
    ),
    "contact/ode": known("kp kd", tuning="soft_cfm soft_erp max_vel min_depth"),
    "contact/bullet": known("kp kd", tuning="soft_cfm soft_erp split_impulse split_impulse_penetration_threshold"),
    "joint": known(
        "pose parent child axis axis2 screw_thread_pitch thread_pitch gearbox_ratio gearbox_reference_body physics"
        " drake:mimic drake:rotor_inertia drake:gear_ratio",
        "name type",
        sensors="sensor",
    ),
    "axis": AXIS,
    "axis2": AXIS,
    "xyz": known("", "expressed_in"),
    "limit": known("lower upper effort velocity", rigid="stiffness dissipation"),
    "dynamics": known("damping friction spring_reference spring_stiffness"),
    "mimic": known("multiplier offset reference", "joint axis"),
    "drake:mimic": known("", "joint multiplier offset"),
}
"""Contents by tag, or by the tags of parent and child if a tag has several meanings. An element that is not listed
holds only a value.
"""
CLOSED = frozenset(
    (
        *("actor", "population", "joint/physics", "soft_contact", "fluid_added_mass", "submesh", "heightmap", "image"),
        *("polyline", "cone", "empty", "drake:ellipsoid", "material"),
    )
)
"""Elements whose contents their readers check, or that need no check."""


def tell_unread(reading: SdfReading, root: Element) -> None:
    """Report unread parts of a model: parts without effect to `check`, parts unknown to SDFormat as warnings."""
    open_: list[tuple[Element, str]] = [(root, "sdf")]
    while open_:
        element, key = open_.pop()
        here = TABLE.get(key, Known())
        for attribute in element.attrib:
            tell_attribute(reading, element, str(attribute), here)
        below = [(item, tag(item)) for item in element]
        for item, name in below:
            if name not in here.read:
                tell_child(reading, element, item, name, here)
        for item, name in reversed(below):
            inner = f"{tag(element)}/{name}" if f"{tag(element)}/{name}" in TABLE else name
            if name in here.read and not {name, f"{tag(element)}/{name}"} & CLOSED:
                open_.append((item, inner))


def tell_child(reading: SdfReading, element: Element, item: Element, name: str, here: Known) -> None:
    """Report that a child is not read."""
    if name in here.silent:
        reading.silent.setdefault(f"<{name}>", here.silent[name])
    elif ":" in name:
        reading.silent.setdefault(f"<{name[:40]}>", "an extension of other programs")
    else:
        hint = nearest(name[:80], sorted((*here.read, *here.silent))) if here.read else ""
        told = f"{describe(item)} is not part of SDFormat{hint}"
        reading.note(item, f"{told}; ignored", guess=True, once=f"<{tag(element)}><{name}>")


def tell_attribute(reading: SdfReading, element: Element, name: str, here: Known) -> None:
    """Report that an attribute is not read."""
    if name in here.attributes:
        return
    if ":" in name or "}" in name:
        reading.silent.setdefault(f"{name.rpartition('}')[2][:40]}=", "an extension of other programs")
    else:
        hint = nearest(name[:80], sorted(here.attributes)) if here.attributes else ""
        told = f"{describe(element)}: attribute {name[:80]!r} is not part of SDFormat{hint}"
        reading.note(element, f"{told}; ignored", guess=True, once=f"<{tag(element)} {name}>")


DRAKE = frozenset(
    f"drake:{name}"
    for name in (
        *("joint", "linear_bushing_rpy", "linear_spring_damper", "ball_constraint", "distance_constraint"),
        *("tendon_constraint", "deformable_properties", "wall_boundary_condition", "surface_velocity_axis"),
    )
)
"""Extensions of Drake that act on bodies and are not read."""
