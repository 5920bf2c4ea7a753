"""<actuator>: elements that turn controls into forces, with their transmissions, ranges and states.

Armature and drag of the rotor are added to the target. The kinds' parameters are in actuator_kinds.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import chain
from typing import Any

from artsim.loaders.elements import Element, children, tag
from artsim.loaders.mjcf.actuator_kinds import Bounds, Kind, applied, not_yet, read_classes
from artsim.loaders.mjcf.body import Bodies
from artsim.loaders.mjcf.delay import read_delay
from artsim.loaders.mjcf.joint import MOVING, SCALAR
from artsim.loaders.mjcf.option import Options
from artsim.loaders.mjcf.pid_plugin import as_servo
from artsim.loaders.mjcf.reading import Item, describe, dict_of
from artsim.sim.articulation.description import Actuator, Joint, LengthSearch, Tendon, Transmission
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import nearest

TRANSMISSIONS: dict[str, Transmission] = {
    "joint": "joint",
    "jointinparent": "jointinparent",
    "tendon": "tendon",
    "site": "site",
    "body": "body",
    "cranksite": "slidercrank",
}
OTHER = {"slidercrank": "slidersite"}  # attribute that a transmission requires beside its target
MOST_STEPS = 1_000_000  # of the simulation that searches for a length range
Range = tuple[float, float]
Classes = tuple[tuple[Element, ...], ...]  # the actuator elements of each default class, outermost class first


@dataclass(frozen=True, slots=True)
class Lengths:
    """<lengthrange>: the sources of a muscle's length range."""

    use_given: bool
    use_limits: bool  # the limits of its target
    search: LengthSearch | None  # for muscles whose range neither source gives


@dataclass(frozen=True, slots=True)
class Targets:
    """Possible targets of actuators, and the sources of muscles' length ranges."""

    bodies: Bodies
    tendons: list[Tendon]
    lengths: Lengths


def read_actuators(bodies: Bodies, tendons: list[Tendon], root: Element) -> list[Actuator]:
    """The actuators of every <actuator>; joints and tendons get the armature and drag of their actuators' rotors."""
    targets = Targets(bodies, tendons, read_lengths(bodies, root))
    actuators: list[Actuator] = []
    known: dict[Classes, list[Kind]] = {}
    for section in children(root, "actuator"):
        for element in list(section):
            if tag(element) == "plugin":
                element = as_servo(bodies.reading, root, element)
            if (target := element.get("joint", element.get("jointinparent"))) in bodies.left_out:
                told = f"{describe(element)} is left out with joint {target!r}, whose body stands still"
                bodies.reading.note(element, told)
                continue
            classes = () if tag(element) == "plugin" else bodies.defaults.actuator_classes(element)
            missing = next((what for what in map(not_yet, (*chain(*classes), element)) if what), "")
            if missing:
                bodies.reading.later(element, missing)
                continue
            if classes not in known:
                known[classes] = read_classes(bodies.reading, classes)
            kind = applied(bodies.reading, element, known[classes])
            if kind.gain == "rotation" and tag(element) == "general":
                bodies.reading.later(element, "<general> in a class of <orientation>")
                continue
            actuator = read_actuator(targets, bodies.defaults.item(element), kind, len(actuators))
            if actuator is not None:
                actuators.append(actuator)
                bodies.actuator_states[actuator.name] = bodies.reading.states.get(element, {})
    return actuators


def read_actuator(targets: Targets, item: Item, kind: Kind, count: int) -> Actuator | None:
    """One actuator of any kind; None if it is left out."""
    options = targets.bodies.options
    transmission, target, reference = read_transmission(targets, item)
    actuator = Actuator(
        name=item.text("name") or targets.bodies.free_name("actuator", f"actuator_{count}"),
        target=target,
        gear=item.filled("gear", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        source=item.reading.at(item.element),
        transmission=transmission,
        reference=reference,
        crank_length=read_crank(item, transmission),
        dynamics=kind.dynamics,
        dynamics_parameters=kind.d,
        gain=kind.gain,
        gain_parameters=kind.g,
        bias=kind.bias,
        bias_parameters=kind.b,
        inputs=kind.inputs,
        activation_early=kind.early,
        disabled="actuation" in options.off or item.whole("group") in options.disabled_groups,
        frozen="actuation" in options.off,
        delay=read_delay(item),
    )
    states, ranges = count_states(item, actuator), read_ranges(targets, item, actuator, kind)
    actuator = replace(actuator, activation_size=states, **ranges)
    if kind.gain == "rotation":
        check_rotation(targets, item, actuator)
    else:
        add_rotor(targets, item, actuator)
    return read_muscle(targets, item, actuator) if "muscle" in (kind.gain, kind.bias) else actuator


def read_transmission(targets: Targets, item: Item) -> tuple[Transmission, str, str]:
    """The actuator's transmission, its target, and the other site if there is one."""
    given = [name for name in TRANSMISSIONS if item.element.get(name) is not None]
    if len(given) != 1:
        item.refuse(f"has {len(given)} transmissions, want one of {', '.join(TRANSMISSIONS)}")
    transmission = TRANSMISSIONS[given[0]]
    bodies = targets.bodies
    known: Collection[str] = bodies.sites
    if transmission in ("joint", "jointinparent"):
        known = bodies.names(*MOVING)
    elif transmission == "tendon":
        known = [tendon.name for tendon in targets.tendons]
    elif transmission == "body":
        known = bodies.poses
    target = one_of(item, given[0], known)
    reference = ""
    for name, owner in (("refsite", "site"), ("slidersite", "slidercrank")):
        if item.has(name) and transmission != owner:
            item.refuse(f"{name} is for a {owner} transmission only")
        if item.has(name) or OTHER.get(transmission) == name:
            reference = one_of(item, name, bodies.sites)
    return transmission, target, reference


def check_rotation(targets: Targets, item: Item, actuator: Actuator) -> None:
    """Refuse an <orientation> whose target has no rotation. Gear and, as in MuJoCo, rotor of its class are ignored."""
    if actuator.transmission == "joint" and actuator.target not in targets.bodies.names("ball"):
        item.refuse(f"joint {actuator.target!r} is no ball joint")
    if actuator.transmission == "site" and not actuator.reference:
        item.refuse("at a site needs a refsite")
    if actuator.force_range is not None and actuator.force_range[0] != 0:
        low, high = actuator.force_range
        item.refuse(f"forcerange is {low:g} to {high:g}: it bounds the norm of the torque, the first must be 0")


def one_of(item: Item, attribute: str, known: Collection[str]) -> str:
    """The name in an attribute, which must be one of `known`."""
    name = item.text(attribute)
    if name not in known:
        item.refuse(f"{attribute} {name[:80]!r} does not exist{nearest(name, sorted(known))}")
    return name


def read_crank(item: Item, transmission: Transmission) -> float:
    """The length [m] of the rod, which is required if there is a crank."""
    rod = item.number("cranklength")
    if transmission == "slidercrank" and rod <= 0:
        item.refuse(f"cranklength is {rod:g} m, want more than 0")
    return rod


def count_states(item: Item, actuator: Actuator) -> int:
    """The number of entries in the activation state. actdim of a <general> must agree with it."""
    size = 0 if actuator.dynamics == "none" else 1
    if actuator.dynamics in ("pid", "dcmotor"):
        size = sum(actuator.states)
    wanted = item.whole("actdim", -1)
    if tag(item.element) == "general" and wanted not in (-1, size):  # other kinds ignore actdim of a class
        item.refuse(f"actdim is {wanted}, want {size} for dyntype {actuator.dynamics}")
    return size


def read_ranges(targets: Targets, item: Item, actuator: Actuator, kind: Kind) -> dict[str, Any]:
    """The ranges to which controls, activation and force are clamped, as fields of the actuator."""
    autolimits = targets.bodies.compiler_at(item.element).autolimits
    servo = kind.gain == "pid" or (kind.gain == "fixed" and kind.g[0] == -kind.b[1])
    if kind.inherit > 0 and actuator.bias == "affine" and servo:
        if kind.dynamics not in ("none", "integrator", "filterexact", "pid"):
            item.refuse(f"inheritrange goes with dyntype none, integrator, filterexact and pid, not {kind.dynamics}")
        inherited = target_range(targets, item, actuator, kind.inherit)
        if kind.dynamics == "integrator":
            kind = replace(kind, activation=kind.activation._replace(range=inherited))
        else:
            kind = replace(kind, control=kind.control._replace(range=inherited))
    control = range_of(item, "ctrl", kind.control, autolimits)
    activation = range_of(item, "act", kind.activation, autolimits)
    if activation is not None and kind.dynamics == "none":
        item.refuse("has an actrange, but no dyntype")
    if activation is not None and kind.dynamics == "dcmotor":
        item.refuse("an actrange that limits where a class has a <dcmotor> is not supported yet")
    ranges = [control] * len(kind.inputs)
    if kind.gain == "pid":
        own = {"velocity": "vel", "feedforward": "ff"}
        ranges = [read_plain(item, own[name]) if name in own else control for name in kind.inputs]
    if "clampctrl" in targets.bodies.options.off:
        ranges = [None] * len(ranges)
    force = range_of(item, "force", kind.force, autolimits)
    return {"control_ranges": tuple(ranges), "activation_range": activation, "force_range": force}


def range_of(item: Item, what: str, bounds: Bounds, autolimits: bool) -> Range | None:
    """ctrlrange, forcerange or actrange (`what` is ctrl, force or act); None if it does not limit."""
    (low, high), limited = bounds
    if limited == "auto" and not autolimits and (low or high):
        item.refuse(f"has a {what}range, but {what}limited is not set and the compiler's autolimits is false")
    if limited == "false" or (limited == "auto" and not (low or high)):
        return None
    if low >= high:
        item.refuse(f"{what}range is {low:g} to {high:g}: the first must be smaller")
    return low, high


def read_plain(item: Item, what: str) -> Range | None:
    """velrange or ffrange (`what` is vel or ff); None unless the first number is smaller than the second."""
    low, high = item.numbers(f"{what}range", 2, 2, (0.0, 0.0))
    return (low, high) if low < high else None


def limits_of(targets: Targets, actuator: Actuator) -> Range | None:
    """The position limits of an actuator's joint or tendon; None if there are none."""
    place = targets.bodies.names(*SCALAR).get(actuator.target)
    target: Joint | Tendon | None = None
    if actuator.transmission in ("joint", "jointinparent") and place is not None:
        target = targets.bodies.joints[place]
    elif actuator.transmission == "tendon":
        target = next(tendon for tendon in targets.tendons if tendon.name == actuator.target)
    if target is None or target.lower is None or target.upper is None:
        return None
    return target.lower, target.upper


def target_range(targets: Targets, item: Item, actuator: Actuator, share: float) -> Range:
    """inheritrange: the target's range, limiting or not, `share` times as wide about its middle."""
    kind = "tendon" if actuator.transmission == "tendon" else "joint"
    limits = targets.bodies.ranges.get((kind, actuator.target))
    if limits is None or actuator.transmission not in ("joint", "jointinparent", "tendon"):
        item.refuse(f"inheritrange: {actuator.transmission} {actuator.target!r} has no range")
    middle, radius = 0.5 * (limits[1] + limits[0]), 0.5 * (limits[1] - limits[0]) * share
    return middle - radius, middle + radius


def add_rotor(targets: Targets, item: Item, actuator: Actuator) -> None:
    """Add armature and damping of the rotor, times gear², to the target: the rotor turns `gear` times as fast."""
    rotor, drag = item.number("armature", least=0.0), item.filled("damping", (0.0, 0.0, 0.0))
    if not rotor and not any(drag):
        return
    square = actuator.gear[0] ** 2
    bodies = targets.bodies
    if actuator.transmission in ("joint", "jointinparent"):
        place = bodies.names(*MOVING)[actuator.target]
        joint = bodies.joints[place]
        bodies.joints[place] = replace(joint, armature=joint.armature + square * rotor)
        bodies.drags.append((place, drag, square))
    elif actuator.transmission == "tendon":
        place = [tendon.name for tendon in targets.tendons].index(actuator.target)
        tendon = targets.tendons[place]
        if rotor and any(point.kind == "geom" for point in tendon.path):
            item.refuse(f"armature does not go with tendon {tendon.name!r}, which wraps around geoms")
        inert = tendon.armature + square * rotor
        targets.tendons[place] = replace(tendon, armature=inert, **dragged(tendon, drag, square))
    else:
        item.refuse(f"armature and damping need a joint or a tendon, not a {actuator.transmission}")


def add_drags(bodies: Bodies) -> None:
    """Add the drag of rotors to the damping of joints, after springdamper has set it."""
    for place, drag, square in bodies.drags:
        joint = bodies.joints[place]
        bodies.joints[place] = replace(joint, **dragged(joint, drag, square))


def dragged(target: Joint | Tendon, drag: tuple[float, ...], square: float) -> dict[str, Any]:
    """The target's damping plus `square` times the drag coefficients of v, |v| v and v³, as fields of the target."""
    second, third = target.damping_polynomial
    return {
        "damping": target.damping + square * drag[0],
        "damping_polynomial": (second + square * drag[1], third + square * drag[2]),
    }


def read_muscle(targets: Targets, item: Item, actuator: Actuator) -> Actuator:
    """The muscle, its parameters checked, with the lengths [m] that its operating range stands for, or their search."""
    for kind, p in ((actuator.gain, actuator.gain_parameters), (actuator.bias, actuator.bias_parameters)):
        if kind == "muscle" and not (p[0] < p[1] and p[4] < 1 < p[5] and min(p[3], *p[6:9]) > 0):
            item.refuse("a muscle wants range[0] < range[1], lmin < 1 < lmax and positive scale, vmax, fpmax, fvmax")
    lengths = targets.lengths
    given = item.numbers("lengthrange", 2, 2, (0.0, 0.0))
    if given[0] < given[1] and (lengths.use_given or lengths.search is None):
        return replace(actuator, length_range=(given[0], given[1]))
    limits = limits_of(targets, actuator) if lengths.use_limits and lengths.search else None
    return replace(actuator, length_range=limits, length_search=None if limits else lengths.search)


def read_lengths(bodies: Bodies, root: Element) -> Lengths:
    """The settings of every <lengthrange> of the root."""
    lengths = Lengths(use_given=True, use_limits=False, search=LengthSearch())
    for compiler in children(root, "compiler"):
        for element in children(compiler, "lengthrange"):
            lengths = read_lengthrange(Item(bodies.reading, element, dict_of(element)), lengths, bodies.options)
    return lengths


def read_lengthrange(item: Item, known: Lengths, options: Options) -> Lengths:
    """The settings of one <lengthrange>; attributes that it leaves out are as in `known`."""
    old = known.search or LengthSearch()
    step = item.number("timestep", old.time_step, least=0.0) or options.file.timestep or 0.002
    search = LengthSearch(
        acceleration=item.number("accel", old.acceleration, least=0.0),
        most_force=item.number("maxforce", old.most_force, least=0.0),
        time_constant=item.number("timeconst", old.time_constant, least=0.0),
        time_step=step,
        duration=item.number("inttotal", old.duration, least=step),
        interval=item.number("interval", old.interval, least=step),
        tolerance=item.number("tolrange", old.tolerance, least=0.0),
    )
    if search.duration > MOST_STEPS * step:
        item.refuse(f"inttotal is {search.duration:g} s, more than {MOST_STEPS} steps of {step:g} s")
    mode = item.word("mode", ("none", "muscle", "muscleuser", "all"), "muscle" if known.search else "none")
    return Lengths(
        use_given=item.flag("useexisting", known.use_given),
        use_limits=item.flag("uselimit", known.use_limits),
        search=None if mode == "none" else search,
    )
