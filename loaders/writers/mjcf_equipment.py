"""The sections of MJCF beside the bodies: contact, equality, tendon, actuator, sensor and keyframe."""

from __future__ import annotations

import math

from lxml import etree

from artsim.loaders.elements import Element
from artsim.loaders.mjcf.equality import about_zero
from artsim.loaders.writers.elements_out import IDENTITY, add, number, say, trimmed
from artsim.loaders.writers.losses import WHOLE, Losses, Said, name_of
from artsim.sim.articulation.description import (
    Actuator,
    Articulation,
    Coupling,
    Delay,
    Joint,
    Loop,
    Pose,
    Sensor,
    Softness,
    Tendon,
    TendonCoupling,
)
from artsim.sim.articulation.pose_algebra import compose, conjugate

WORLD = "world"
SINGLE = ("revolute", "continuous", "prismatic")
CLOSED = 1e-12  # [m] largest gap of a loop that closes in the file's pose
EQUIPMENT_SAID: Said = {
    "Coupling": frozenset(
        "follower leader coefficients frequency damping_ratio impedance time_constant axis compliance".split()
    ),
    "Loop": frozenset("name kind link_a link_b frame_a frame_b torque_scale active softness spring free".split()),
    "Tendon": frozenset(
        "name kind path lower upper stiffness stiffness_polynomial damping damping_polynomial spring_length friction "
        "armature actuator_range softness limit_margin friction_softness".split()
    ),
    "TendonPoint": frozenset("kind name value side_site".split()),
    "TendonCoupling": frozenset("name follower leader coefficients softness frequency damping_ratio".split()),
    "Actuator": frozenset(
        "name target gear transmission reference crank_length dynamics dynamics_parameters gain gain_parameters bias "
        "bias_parameters inputs control_ranges force_range activation_range activation_size activation_early "
        "length_range length_search disabled frozen delay acts".split()
    ),
    "Delay": frozenset("time samples interpolation period phase".split()),
    "LengthSearch": frozenset("acceleration most_force time_constant time_step duration interval tolerance".split()),
    "Sensor": frozenset(
        "name kind object_kind object reference_kind reference cutoff data slots reduction delay components "
        "noise".split()
    ),
}
TRANSMISSIONS = {"slidercrank": "cranksite"}  # attributes that differ from the transmission's name
WORDS = {"position": "pos", "velocity": "vel", "feedforward": "ff", "voltage": "voltage"}


def write_equipment(robot: Articulation, root: Element, losses: Losses) -> None:
    """All sections beside the bodies."""
    write_contacts(robot, root)
    write_equalities(robot, root, losses)
    section = add(root, "tendon")
    for tendon in robot.tendons:
        write_tendon(tendon, section, losses)
    write_actuators(robot, root, losses)
    section = add(root, "sensor")
    for sensor in robot.sensors:
        write_sensor(sensor, section, losses)
    write_keyframes(robot, root, losses)


def write_contacts(robot: Articulation, root: Element) -> None:
    """<contact>: pairs of geoms that touch, pairs of bodies that do not."""
    section = add(root, "contact")
    for pair in robot.contact_pairs:
        element = add(section, "pair", name=pair.name or None, geom1=pair.geom_a, geom2=pair.geom_b)
        say(element, "condim", None if pair.dimension is None else float(pair.dimension))
        say(element, "friction", pair.friction)
        say(element, "solref", pair.softness.reference)
        say(element, "solimp", pair.softness.impedance)
        say(element, "solreffriction", pair.friction_reference)
        say(element, "margin", pair.margin)
        say(element, "gap", pair.gap)
        say(element, "adhesion", pair.adhesion)
    for first, second in robot.no_contact:
        add(section, "exclude", body1=first, body2=second)


# --- equalities ------------------------------------------------------------------------------------------------------


def write_equalities(robot: Articulation, root: Element, losses: Losses) -> None:
    """<equality>: couplings of joints and tendons, and loops."""
    section = add(root, "equality")
    joints = {joint.name: joint for joint in robot.joints}
    for coupling in robot.couplings:
        write_coupling(coupling, joints, section, losses)
    poses = poses_of(robot)
    for loop in robot.loops:
        write_loop(robot, loop, poses, section, root, losses)
    for equality in robot.tendon_couplings:
        write_tendon_coupling(equality, section, losses)


def write_coupling(coupling: Coupling, joints: dict[str, Joint], section: Element, losses: Losses) -> None:
    """<joint joint1 joint2 polycoef>: the polynomial about the references of both joints."""
    name = name_of(coupling)
    if coupling.axis:
        losses.lost("coupling", name, WHOLE, "couples the twist of a ball joint, which MJCF does not")
        return
    if coupling.compliance is not None:
        losses.lost("coupling", name, "compliance", "its compliance is not said: it is hard")
    element = add(section, "joint", joint1=coupling.follower, joint2=coupling.leader)
    own = joints[coupling.follower].reference
    about: tuple[float, ...] = coupling.coefficients
    if coupling.leader is not None:
        about = about_zero(about, -joints[coupling.leader].reference)
        about = (*about, 0.0, 0.0, 0.0, 0.0)[: max(5, len(about))]
    polynomial = (about[0] - own, *about[1:])
    if coupling.leader is None:
        say(element, "polycoef", (polynomial[0], 0.0, 0.0, 0.0, 0.0))
    else:
        say(element, "polycoef", polynomial, (0.0, 1.0, 0.0, 0.0, 0.0))
    say(element, "solref", reference_of(coupling))
    say(element, "solimp", coupling.impedance)


def reference_of(coupling: Coupling) -> tuple[float, float] | None:
    """The solref from which a coupling has its frequency and damping ratio; None for a hard one."""
    if coupling.frequency is None or coupling.damping_ratio is None:
        return None
    if coupling.time_constant:
        return coupling.time_constant, coupling.damping_ratio
    most = min(max((coupling.impedance or (0.9, 0.95))[1], 1e-4), 0.9999)
    rate = 2.0 * math.pi * coupling.frequency
    return -((rate * most) ** 2), -2.0 * coupling.damping_ratio * rate * most


def poses_of(robot: Articulation) -> dict[str, Pose]:
    """Poses of links in the world, every joint at its reference."""
    poses = {WORLD: Pose()}
    for joint in robot.joints:
        above = poses.get(joint.child) if joint.child in poses and joint.parent != WORLD else None
        base = poses.get(joint.parent, Pose()) if above is None else above
        poses[joint.child] = compose(base, joint.pose)
    return {**{link.name: Pose() for link in robot.links}, **poses}


def write_loop(
    robot: Articulation, loop: Loop, poses: dict[str, Pose], section: Element, root: Element, losses: Losses
) -> None:
    """<connect> or <weld>: by the file's sites, by bodies, or by sites that are added."""
    if loop.kind == "joint":
        losses.lost("loop", loop.name, WHOLE, f"is free along {', '.join(loop.free)}; MJCF has no such loops")
        return
    if loop.spring is not None:
        losses.lost("loop", loop.name, "spring", "its spring is not said: it is hard")
    if loop.kind == "hinge":
        write_hinge(robot, loop, section, root, losses)
        return
    sites = [site_at(robot, link, frame, turned=loop.kind == "weld") for link, frame in ends(loop)]
    element = add(section, loop.kind, name=loop.name)
    say(element, "active", loop.active, True)
    a, b = loop.frame_a, loop.frame_b
    if all(sites):
        say(element, "site1", sites[0])
        say(element, "site2", sites[1])
    elif loop.kind == "weld":
        a = compose(a, Pose(rotation=conjugate(b.rotation)))
        say(element, "body1", loop.link_a)
        say(element, "body2", loop.link_b)
        say(element, "anchor", b.position, (0.0, 0.0, 0.0))
        say(element, "relpose", (*a.position, *a.rotation))
    elif closes(loop, poses):
        say(element, "body1", loop.link_a)
        say(element, "body2", loop.link_b)
        say(element, "anchor", a.position)
    else:
        for attribute, (link, frame), end in zip(("site1", "site2"), ends(loop), "ab", strict=True):
            say(element, attribute, add_site(robot, root, f"{loop.name}_{end}", link, frame, losses))
    say(element, "torquescale", loop.torque_scale, 1.0)
    say(element, "solref", loop.softness.reference)
    say(element, "solimp", loop.softness.impedance)


def ends(loop: Loop) -> tuple[tuple[str, Pose], tuple[str, Pose]]:
    """Link and frame of both ends of a loop."""
    return (loop.link_a, loop.frame_a), (loop.link_b, loop.frame_b)


def closes(loop: Loop, poses: dict[str, Pose]) -> bool:
    """True if the points of a <connect> coincide in the file's pose, which MJCF takes for granted."""
    first, second = (compose(poses[link], frame).position for link, frame in ends(loop))
    return math.dist(first, second) <= CLOSED


def site_at(robot: Articulation, link: str, frame: Pose, *, turned: bool) -> str | None:
    """The name of a site of the robot in this place; None without one."""
    for site in robot.sites:
        same = site.pose == frame if turned else site.pose.position == frame.position
        if site.link == link and same and (turned or site.pose == frame):
            return site.name
    return None


def add_site(robot: Articulation, root: Element, wanted: str, link: str, frame: Pose, losses: Losses) -> str:
    """A new site of the file, with a name that is not taken."""
    name = wanted
    while any(site.name == name for site in robot.sites):
        name += "_"
    bodies = {body.get("name"): body for body in root.iter("body")}
    world = root.find("worldbody")
    assert world is not None
    element = add(bodies.get(link, world), "site", name=name)
    say(element, "pos", frame.position, (0.0, 0.0, 0.0))
    say(element, "quat", frame.rotation, IDENTITY)
    losses.add("added", "site", name, WHOLE, "marks the end of a loop")
    return name


def write_hinge(robot: Articulation, loop: Loop, section: Element, root: Element, losses: Losses) -> None:
    """Two <connect>, at two points of the axis, which hold what a hinge holds."""
    told = "is a hinge: two <connect> on its axis hold the same"
    losses.changed("loop", loop.name, WHOLE, told)
    for number_, height in enumerate((0.0, 1.0)):
        frames = [compose(frame, Pose((0.0, 0.0, height))) for _, frame in ends(loop)]
        name = f"{loop.name}_axis" if number_ else loop.name
        element = add(section, "connect", name=name)
        say(element, "active", loop.active, True)
        for attribute, link, frame, end in zip(
            ("site1", "site2"), (loop.link_a, loop.link_b), frames, "ab", strict=True
        ):
            say(element, attribute, add_site(robot, root, f"{name}_{end}", link, frame, losses))
        say(element, "solref", loop.softness.reference)
        say(element, "solimp", loop.softness.impedance)
        if number_:
            losses.add("added", "loop", name, WHOLE, f"is the second point of hinge {loop.name!r}")


def write_tendon_coupling(equality: TendonCoupling, section: Element, losses: Losses) -> None:
    """<tendon tendon1 tendon2 polycoef>."""
    element = add(section, "tendon", name=equality.name, tendon1=equality.follower, tendon2=equality.leader)
    coefficients = (*equality.coefficients, 0.0, 0.0, 0.0, 0.0)[:5]
    say(element, "polycoef", coefficients, (0.0, 1.0, 0.0, 0.0, 0.0))
    softness = equality.softness
    if equality.frequency is not None:
        losses.lost("tendon coupling", equality.name, "frequency", "its spring is not said: it is hard")
    say(element, "solref", softness.reference)
    say(element, "solimp", softness.impedance)


# --- tendons ---------------------------------------------------------------------------------------------------------


def write_tendon(tendon: Tendon, section: Element, losses: Losses) -> None:
    """<fixed> or <spatial>."""
    if tendon.kind == "loop":
        losses.lost("tendon", tendon.name, WHOLE, "acts along an axis of a loop, which MJCF's do not")
        return
    element = add(section, tendon.kind, name=tendon.name)
    lower, upper = tendon.lower, tendon.upper
    if lower is not None or upper is not None:
        if lower is None or upper is None:
            for field in ("lower", "upper"):
                losses.changed("tendon", tendon.name, field, "is limited on one side: the other limit is 1e10")
            lower, upper = -1e10 if lower is None else lower, 1e10 if upper is None else upper
        say(element, "range", (lower, upper))
        element.set("limited", "true")
    for name, linear, others in (
        ("stiffness", tendon.stiffness, tendon.stiffness_polynomial),
        ("damping", tendon.damping, tendon.damping_polynomial),
    ):
        say(element, name, (linear, *others) if any(others) else linear, 0.0)
    if tendon.spring_length is not None:
        low, high = tendon.spring_length
        say(element, "springlength", low if low == high else (low, high))
    say(element, "frictionloss", tendon.friction, 0.0)
    say(element, "armature", tendon.armature, 0.0)
    say(element, "margin", tendon.limit_margin, 0.0)
    say(element, "actuatorfrcrange", tendon.actuator_range)
    say_soft(element, tendon.softness, "limit")
    say_soft(element, tendon.friction_softness, "friction")
    for point in tendon.path:
        if point.kind == "pulley":
            add(element, "pulley", divisor=point.value)
        elif point.kind == "joint":
            add(element, "joint", joint=point.name, coef=point.value)
        else:
            add(element, point.kind, **{point.kind: point.name}, sidesite=point.side_site or None)


def say_soft(element: Element, softness: Softness, which: str) -> None:
    """solref and solimp of limits or friction."""
    say(element, f"solref{which}", softness.reference)
    say(element, f"solimp{which}", softness.impedance)


# --- actuators -------------------------------------------------------------------------------------------------------


def write_actuators(robot: Articulation, root: Element, losses: Losses) -> None:
    """<actuator>, and the <lengthrange> that finds the ranges of muscles."""
    section = add(root, "actuator")
    tendons = {tendon.name: tendon for tendon in robot.tendons}
    frozen = all(actuator.frozen for actuator in robot.actuators)
    for actuator in robot.actuators:
        target = tendons.get(actuator.target) if actuator.transmission == "tendon" else None
        if not actuator.acts:
            told = "states a reduction and does not act, which no actuator of MJCF does"
            losses.lost("actuator", actuator.name, WHOLE, told, physical=False)
        elif target is not None and target.kind == "loop":
            losses.lost("actuator", actuator.name, WHOLE, "drives an axis of a loop, which MJCF's do not")
        else:
            write_actuator(actuator, section, losses, frozen=frozen)
    searches = {actuator.length_search for actuator in robot.actuators} - {None}
    muscles = [a for a in robot.actuators if "muscle" in (a.gain, a.bias)]
    if not searches:
        if any(muscle.length_range is None for muscle in muscles):
            add(next(root.iter("compiler")), "lengthrange", mode="none")
        return
    search = next(iter(searches))
    assert search is not None
    if len(searches) > 1:
        losses.changed("actuator", "", "length_search", "muscles find their lengths by one search")
    add(
        next(root.iter("compiler")),
        "lengthrange",
        accel=search.acceleration,
        maxforce=search.most_force,
        timeconst=search.time_constant,
        timestep=search.time_step,
        inttotal=search.duration,
        interval=search.interval,
        tolrange=search.tolerance,
    )


def write_actuator(actuator: Actuator, section: Element, losses: Losses, *, frozen: bool) -> None:
    """One actuator: as <motor>, <position> or <velocity> where it is one, else with all its parameters."""
    element = etree.SubElement(section, "general", name=actuator.name)
    say(element, TRANSMISSIONS.get(actuator.transmission, actuator.transmission), actuator.target)
    say(
        element,
        {"site": "refsite", "slidercrank": "slidersite"}.get(actuator.transmission, ""),
        actuator.reference or None,
    )
    if actuator.transmission == "slidercrank":
        say(element, "cranklength", actuator.crank_length)
    elif actuator.crank_length:
        told = "its crank length, which does not act, is not said"
        losses.lost("actuator", actuator.name, "crank_length", told, physical=False)
    if actuator.gain != "rotation":
        say(element, "gear", trimmed(actuator.gear), (1.0,))
    elif trimmed(actuator.gear) != (1.0,):
        losses.lost("actuator", actuator.name, "gear", "its gear, which does not act, is not said", physical=False)
    kind_of = {"pid": say_servo, "dcmotor": say_motor, "rotation": say_rotation}.get(actuator.gain, say_general)
    kind_of(actuator, element)
    if actuator.control_ranges and actuator.gain != "pid":
        say(element, "ctrlrange", actuator.control_ranges[0])
    if element.tag != "dcmotor":
        say(element, "forcerange", actuator.force_range)
    say(element, "actrange", actuator.activation_range)
    say(element, "lengthrange", actuator.length_range if "muscle" in (actuator.gain, actuator.bias) else None)
    if actuator.disabled and not frozen:
        element.set("group", "1")
    say_delay(actuator.delay, element)


def say_general(actuator: Actuator, element: Element) -> None:
    """<motor>, <position>, <velocity>, or <general> with the parameters of dynamics, gain and bias."""
    d, g, b = (
        trimmed(p) if p else ()
        for p in (actuator.dynamics_parameters, actuator.gain_parameters, actuator.bias_parameters)
    )
    plain = (
        actuator.transmission != "body"
        and actuator.dynamics == "none"
        and actuator.gain == "fixed"
        and not actuator.activation_early
    )
    if plain and actuator.bias == "none" and d == (1.0,) and g == (1.0,) and b == (0.0,):
        element.tag = "motor"
        return
    kp, (_, position, velocity) = g[0] if g else 0.0, (*b, 0.0, 0.0, 0.0)[:3]
    servo = plain and actuator.bias == "affine" and len(g) == 1 and len(b) <= 3 and b[0] == 0.0
    if servo and d == (0.0,) and position == -kp and velocity <= 0 and kp > 0:
        element.tag = "position"
        say(element, "kp", kp)
        say(element, "kv", -velocity, 0.0)
        return
    if servo and d == (1.0,) and position == 0.0 and velocity == -kp and kp > 0:
        element.tag = "velocity"
        say(element, "kv", kp)
        return
    say(element, "dyntype", actuator.dynamics, "none")
    say(element, "gaintype", actuator.gain, "fixed")
    say(element, "biastype", actuator.bias, "none")
    say(element, "dynprm", d, (1.0,))
    say(element, "gainprm", g, (1.0,))
    say(element, "biasprm", b, (0.0,))
    say(element, "actearly", actuator.activation_early, False)


def say_servo(actuator: Actuator, element: Element) -> None:
    """<pid>."""
    element.tag = "pid"
    d, g, b = (_filled(p) for p in (actuator.dynamics_parameters, actuator.gain_parameters, actuator.bias_parameters))
    say(element, "kp", -b[1], 1.0)
    if b[2] > 0:
        say(element, "dampratio", b[2])
    else:
        say(element, "kv", -b[2], 0.0)
    say(element, "ki", g[0], 0.0)
    say(element, "imax", d[0], 0.0)
    say(element, "slewmax", d[1], 0.0)
    element.set("input", " ".join(WORDS.get(name, name) for name in actuator.inputs))
    names = {"velocity": "velrange", "feedforward": "ffrange"}
    for name, bounds in zip(actuator.inputs, actuator.control_ranges, strict=True):
        say(element, names.get(name, "ctrlrange"), bounds)


def _filled(parameters: tuple[float, ...]) -> tuple[float, ...]:
    return (*parameters, *(0.0,) * 10)[:10]


def say_motor(actuator: Actuator, element: Element) -> None:
    """<dcmotor>: its constants, electrical, thermal and mechanical."""
    element.tag = "dcmotor"
    d, g, b = (_filled(p) for p in (actuator.dynamics_parameters, actuator.gain_parameters, actuator.bias_parameters))
    say(element, "motorconst", g[1])
    say(element, "resistance", g[0])
    say(element, "inductance", (0.0, d[0]), (0.0, 0.0))
    most = 0.0 if actuator.force_range is None else actuator.force_range[1]
    if most or d[1]:
        say(element, "saturation", (most, 0.0, d[1]))
    if d[2]:
        say(element, "thermal", (d[2], d[3], 0.0, g[2], g[3], d[4]))
    if any((*d[5:7], *b[3:6])):
        say(element, "lugre", (*d[5:7], *b[3:6]))
    if any((*g[4:8], d[7], d[8])):
        say(element, "controller", (*g[4:7], d[7], d[8], g[7]))
    if any(b[:3]):
        say(element, "cogging", b[:3])
    element.set("input", " ".join(WORDS.get(name, name) for name in actuator.inputs) or "none")


def say_rotation(actuator: Actuator, element: Element) -> None:
    """<orientation>."""
    element.tag = "orientation"
    g, b = (_filled(p) for p in (actuator.gain_parameters, actuator.bias_parameters))
    say(element, "kp", g[0])
    if b[2] > 0:
        say(element, "dampratio", b[2])
    else:
        say(element, "kv", -b[2], 0.0)
    element.set("input", "quat" if len(actuator.inputs) == 4 else "expmap")


def say_delay(delay: Delay | None, element: Element) -> None:
    """nsample, delay, interp and interval."""
    if delay is None:
        return
    element.set("nsample", str(delay.samples))
    say(element, "delay", delay.time, 0.0)
    say(element, "interp", delay.interpolation, "zoh")
    if delay.period:
        say(element, "interval", (delay.period, delay.phase))


# --- sensors and keyframes -------------------------------------------------------------------------------------------


def write_sensor(sensor: Sensor, section: Element, losses: Losses) -> None:
    """One sensor, its object in the attribute of its kind."""
    element = add(section, sensor.kind, name=sensor.name)
    if sensor.kind == "contact":
        for kind, name, place in (
            (sensor.object_kind, sensor.object, "1"),
            (sensor.reference_kind, sensor.reference, "2"),
        ):
            if name:
                element.set(kind if kind == "site" else kind + place, name)
        say(element, "num", float(sensor.slots), 1.0)
        say(element, "reduce", sensor.reduction, "none")
    elif sensor.kind.startswith("frame"):
        element.set("objtype", sensor.object_kind)
        element.set("objname", sensor.object)
        if sensor.reference:
            element.set("reftype", sensor.reference_kind)
            element.set("refname", sensor.reference)
    elif sensor.object_kind:
        element.set(sensor.object_kind, sensor.object)
    if sensor.data:
        element.set("data", " ".join(sensor.data))
    say(element, "cutoff", sensor.cutoff, 0.0)
    say(element, "noise", sensor.noise, 0.0)
    say_delay(sensor.delay, element)


def write_keyframes(robot: Articulation, root: Element, losses: Losses) -> None:
    """<keyframe>."""
    section = add(root, "keyframe")
    for key in robot.keyframes:
        element = add(section, "key", name=key.name)
        for name, values in (("qpos", key.qpos), ("qvel", key.qvel), ("ctrl", key.control), ("act", key.activation)):
            if values:
                element.set(name, " ".join(map(number, values)))
