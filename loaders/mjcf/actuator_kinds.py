"""The kinds of actuators, and the shared parameters that each element sets (XML reference, "actuator").

A default class may hold another kind than the actuator that uses it. As in MuJoCo 4.0, a class passes on the parameters
of its last kind to the same kind or, from `general`, to kinds of the same gain; for other kinds the class above counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from artsim.loaders.elements import Element, tag
from artsim.loaders.mjcf.joint import LIMITED
from artsim.loaders.mjcf.reading import Item, MjcfReading, dict_of
from artsim.sim.articulation.description import ActivationDynamics, Bias, Gain
from artsim.sim.foundation.dataclass import dataclass

DYNAMICS: dict[str, ActivationDynamics] = {
    "none": "none",
    "integrator": "integrator",
    "filter": "filter",
    "filterexact": "filterexact",
    "muscle": "muscle",
}
GAINS: dict[str, Gain] = {"fixed": "fixed", "affine": "affine", "muscle": "muscle"}
BIASES: dict[str, Bias] = {"none": "none", "affine": "affine", "muscle": "muscle"}
NOT_YET = ("user", "so3", "pid", "dcmotor")  # in <general>: code, or kinds that have an element of their own
GAIN_OF = {
    "damper": "affine",
    "muscle": "muscle",
    "pid": "pid",
    "dcmotor": "dcmotor",
    "orientation": "rotation",
}  # all others: fixed
_SAME_NUMBER = {"pos": "expmap", "vel": "quat"}  # MuJoCo numbers inputs; these have the numbers of inputs of <pid>
_INPUTS_OF_OTHERS = {"none", "pos", "vel", "ff", "voltage"}  # inputs that MuJoCo accepts of <orientation> in a class
ROTATIONS = {"expmap": ("x", "y", "z"), "quat": ("qw", "qx", "qy", "qz")}  # controls of a servo of rotations
INPUTS = {"pos": "position", "vel": "velocity", "ff": "feedforward", "voltage": "voltage"}
ZEROS = (0.0,) * 10
RANGE_OF = {"position": "ctrlrange", "intvelocity": "actrange", "pid": "ctrlrange"}  # range set by inheritrange
MUSCLE = (0.75, 1.05, -1.0, 200.0, 0.5, 1.6, 1.5, 1.3, 1.2)  # range (2), force, scale, lmin, lmax, vmax, fpmax, fvmax
Parameters = tuple[float, ...]


class Bounds(NamedTuple):
    """A range, and its switch: "true", "false", or "auto" (a range other than 0 0 limits)."""

    range: Parameters = (0.0, 0.0)
    limited: str = "auto"


@dataclass(frozen=True, slots=True)
class Kind:
    """The parameters of dynamics, gain and bias, ten each, and the other settings of the kinds."""

    tag: str = "general"  # the element that set the parameters
    dynamics: ActivationDynamics = "none"
    gain: Gain = "fixed"
    bias: Bias = "none"
    d: Parameters = (1.0, *ZEROS[1:])
    g: Parameters = (1.0, *ZEROS[1:])
    b: Parameters = ZEROS
    inputs: tuple[str, ...] = ("",)
    early: bool = False  # the force uses the activation at the step's end
    inherit: float = 0.0  # the control's range is the target's, this many times as wide
    torque: float = 0.0  # largest torque of a DC motor [N m]; 0: unlimited
    limited: bool = False  # a control range must be given
    control: Bounds = Bounds()
    activation: Bounds = Bounds()
    force: Bounds = Bounds()

    def serves(self, name: str) -> bool:
        """True if an element of that name starts from these parameters."""
        if name in (self.tag, "general"):
            return True
        return self.tag == "general" and self.gain == GAIN_OF.get(name, "fixed")


def read_classes(reading: MjcfReading, classes: Sequence[Sequence[Element]]) -> list[Kind]:
    """The parameters after the elements of each class, which the next class and actuators start from."""
    states: list[Kind] = []
    for elements in classes:
        current = states[-1] if states else Kind()
        for default in elements:
            current = applied(reading, default, [*states, current])
        states.append(current)
    return states


def applied(reading: MjcfReading, element: Element, states: Sequence[Kind]) -> Kind:
    """The parameters after an element, which starts from the last of `states` that serves its tag."""
    name = tag(element)
    own = Item(reading, element, dict_of(element))
    start = next((state for state in reversed(states) if state.serves(name)), Kind())
    made = KINDS[name](own, start)
    if not in_class(own):
        check_inputs(own, made)
    return inheriting(own, bounded(own, made, states[-1] if states else Kind()))


def bounded(own: Item, made: Kind, before: Kind) -> Kind:
    """The parameters with their tag, the ranges given last, by an element of any kind, and those that MuJoCo itself
    sets."""
    name = tag(own.element)
    control, activation, force = (
        Bounds(own.numbers(f"{what}range", 2, 2, last.range), own.word(f"{what}limited", LIMITED, last.limited))
        for what, last in (("ctrl", before.control), ("act", before.activation), ("force", before.force))
    )
    if own.has("posrange"):  # another name of ctrlrange
        control = Bounds(own.numbers("posrange", 2, 2), control.limited)
    if made.limited:
        control = Bounds(control.range, "true")
        if control.range[0] < 0:
            own.refuse(f"ctrlrange begins at {control.range[0]:g}, want at least 0")
    if name != "general":  # alone it has actlimited
        activation = Bounds(activation.range, "false" if name == "dcmotor" else "auto")
    if made.torque > 0:
        force = Bounds((-made.torque, made.torque), "true")
    elif own.has("saturation"):
        force = Bounds()
    inherit = made.inherit if name in RANGE_OF or name == "general" else before.inherit
    return replace(made, tag=name, inherit=inherit, control=control, activation=activation, force=force)


def inheriting(own: Item, made: Kind) -> Kind:
    """The parameters without the range of a class that inheritrange replaces, or without inheritrange.

    Both in one class, or both in the element, are refused. <general> may have both: inheritrange counts.
    """
    plain = RANGE_OF.get(made.tag)
    if plain is None:
        return made
    bounds = made.activation if plain == "actrange" else made.control
    said = own.has(plain) or own.has("posrange")
    if said and not own.has("inheritrange"):
        return replace(made, inherit=0.0)
    if made.inherit <= 0:
        return made
    if said or (any(bounds.range) and not own.has("inheritrange")):
        own.refuse(f"has {plain} and inheritrange, want one of them")
    bounds = Bounds(limited=bounds.limited)
    return replace(made, activation=bounds) if plain == "actrange" else replace(made, control=bounds)


def not_yet(element: Element) -> str:
    """The unsupported part of an element; '' if all of it is supported."""
    if tag(element) == "plugin":
        return "<plugin>"
    for name in ("dyntype", "gaintype", "biastype"):
        if element.get(name, "") in NOT_YET:
            return f"{name} {element.get(name)!r} of <general>"
    return ""


def put(values: Parameters, **at: float) -> Parameters:
    """The parameters with some of them set: put(p, _0=1.0)."""
    new = list(values)
    for name, value in at.items():
        new[int(name[1:])] = value
    return tuple(new)


def general(item: Item, kind: Kind) -> Kind:
    """All parameters under their own names."""
    own_types = any(item.has(name) for name in ("dyntype", "gaintype", "biastype"))
    if "dcmotor" in (kind.dynamics, kind.gain, kind.bias) and own_types and not in_class(item):
        item.refuse("dyntype, gaintype or biastype where a class has a <dcmotor> is not supported yet")
    if item.has("dyntype"):
        kind = replace(kind, dynamics=DYNAMICS[item.word("dyntype", tuple(DYNAMICS), "none")])
    if item.has("gaintype"):
        gain = GAINS[item.word("gaintype", tuple(GAINS), "fixed")]
        kind = replace(kind, gain=gain, inputs=("",))  # <pid> or <dcmotor> of a class may have several
    if item.has("biastype"):
        kind = replace(kind, bias=BIASES[item.word("biastype", tuple(BIASES), "none")])
    kind = replace(kind, inputs=inputs_of_general(item, kind))
    if not in_class(item):
        refuse_mixed(item, kind)
    return replace(
        kind,
        d=item.filled("dynprm", kind.d),
        g=item.filled("gainprm", kind.g),
        b=item.filled("biasprm", kind.b),
        early=item.flag("actearly", kind.early),
        torque=0.0 if item.has("forcerange") or item.has("forcelimited") else kind.torque,
        inherit=item.number("inheritrange", kind.inherit),
        limited=False,
    )


def inputs_of_general(item: Item, kind: Kind) -> tuple[str, ...]:
    """The inputs of a class's <pid> or <dcmotor>, or those in their place; other gains have one without a name."""
    words = item.text("input").split()
    if not words or kind.gain == "rotation":
        return kind.inputs
    inputs = read_inputs(item, tuple(INPUTS), ())
    if kind.gain in ("pid", "dcmotor"):
        return inputs
    if not in_class(item) and (len(words) != 1 or words[0] not in ("pos", "vel", "ff")):
        item.refuse(f"input is {' '.join(words)[:40]!r}, want pos, vel or ff")
    return kind.inputs


def check_inputs(item: Item, kind: Kind) -> None:
    """Refuse inputs that a <pid> does not have, and a controller of a motor without inputs."""
    controlled = set(kind.inputs) - {"voltage"}
    if kind.gain == "pid" and (not kind.inputs or "voltage" in kind.inputs):
        item.refuse("input by its class: a <pid> wants some of pos, vel, ff")
    if kind.gain == "pid" and kind.dynamics == "pid" and "position" not in kind.inputs:
        item.refuse("ki and slewmax need the input pos")
    if kind.gain == "dcmotor" and not controlled and (any(kind.g[4:7]) or kind.d[7] > 0):
        item.refuse("a controller needs one of the inputs pos, vel, ff")
    if kind.gain == "dcmotor" and kind.g[5] > 0 and "position" not in kind.inputs:
        item.refuse("the integral of a controller needs the input pos")


def refuse_mixed(item: Item, kind: Kind) -> None:
    """Refuse a <general> that mixes the types of a class's <pid> with its own."""
    of_servo = kind.gain == "pid" or kind.dynamics == "pid"
    whole = kind.gain == "pid" and kind.bias == "affine" and kind.dynamics in ("none", "pid")
    if of_servo and not whole:
        item.refuse("dyntype, gaintype or biastype beside those of a class's <pid> is not supported yet")


def motor(item: Item, kind: Kind) -> Kind:
    """A force."""
    return Kind()


def damping_of(item: Item, rate: float) -> float:
    """-kv, or dampratio, which is positive and replaced once the inertia is known; `rate` without either."""
    if item.has("kv") and item.has("dampratio"):
        item.refuse("has kv and dampratio, want one of them")
    if item.has("kv"):
        return -item.number("kv", least=0.0)
    return item.number("dampratio", rate, least=0.0) if item.has("dampratio") else rate


def position(item: Item, kind: Kind) -> Kind:
    """A servo: kp (control - length) - kv velocity, the control filtered on request."""
    kp = item.number("kp", kind.g[0])
    time = item.number("timeconst", kind.d[0] if kind.dynamics == "filterexact" else 0.0, least=0.0)
    made = Kind(gain="fixed", bias="affine", g=put(ZEROS, _0=kp), inherit=item.number("inheritrange", kind.inherit))
    made = replace(made, b=put(ZEROS, _1=-kp, _2=damping_of(item, kind.b[2])))
    if time or item.has("timeconst"):
        made = replace(made, d=put(ZEROS, _0=time))
    return replace(made, dynamics="filterexact") if time else made


def intvelocity(item: Item, kind: Kind) -> Kind:
    """A position servo whose setpoint is the integral of the control."""
    return replace(position(item, kind), dynamics="integrator")


def orientation(item: Item, kind: Kind) -> Kind:
    """A servo of a rotation: kp times the rotation vector to the setpoint, less kv times the angular velocity."""
    if kind.gain != "rotation":
        kind = Kind(gain="rotation", g=put(ZEROS, _0=1.0), inputs=ROTATIONS["expmap"])
    kind = replace(kind, bias="affine", dynamics="none")  # a <general> of its class does not change these
    kp = item.number("kp", kind.g[0])
    inputs = kind.inputs
    given = item.text("input")
    if given in _SAME_NUMBER:
        inputs = ROTATIONS[_SAME_NUMBER[given]]
    elif in_class(item) and set(given.split()) & _INPUTS_OF_OTHERS:
        inputs = ()
    elif item.has("input"):
        inputs = ROTATIONS[item.word("input", tuple(ROTATIONS), "expmap")]
    elif not inputs and not in_class(item):
        item.refuse("input is of another kind in its class, want expmap or quat")
    return replace(kind, g=put(ZEROS, _0=kp), b=put(ZEROS, _1=-kp, _2=damping_of(item, kind.b[2])), inputs=inputs)


def velocity(item: Item, kind: Kind) -> Kind:
    """kv (control - velocity)."""
    kv = item.number("kv", kind.g[0])
    return Kind(bias="affine", g=put(ZEROS, _0=kv), b=put(ZEROS, _2=-kv))


def damper(item: Item, kind: Kind) -> Kind:
    """-kv · control · velocity."""
    kv = item.number("kv", -kind.g[2] if kind.gain == "affine" else 0.0, least=0.0)
    if kv < 0:
        item.refuse(f"kv is {kv:g} by its class, want at least 0")
    return Kind(gain="affine", g=put(ZEROS, _2=-kv), limited=True)


def cylinder(item: Item, kind: Kind) -> Kind:
    """area · filtered control + bias."""
    area = item.number("area", kind.g[0])
    if item.has("diameter"):
        area = 0.25 * math.pi * item.number("diameter") ** 2
    time = item.number("timeconst", kind.d[0])
    bias = item.numbers("bias", 3, 3, kind.b[:3]) + ZEROS[3:]
    return Kind(dynamics="filter", bias="affine", d=put(ZEROS, _0=time), g=put(ZEROS, _0=area), b=bias)


def muscle(item: Item, kind: Kind) -> Kind:
    """A muscle; parameters that still have the defaults of <general> get those of a muscle."""
    fresh = (1.0, *ZEROS)
    g = [new if old == blank else old for old, blank, new in zip(kind.g, fresh, MUSCLE, strict=False)]
    d = [kind.d[0] if kind.d[0] != 1.0 else 0.01, kind.d[1] or 0.04, item.number("tausmooth", kind.d[2], least=0.0)]
    times = item.numbers("timeconst", 2, 2, (-1.0, -1.0))
    d[:2] = [new if new >= 0 else old for old, new in zip(d, times, strict=False)]
    given = [*item.numbers("range", 2, 2, (-1.0, -1.0))]
    given += [item.number(name, -1.0) for name in ("force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax")]
    g = [new if new >= 0 else old for old, new in zip(g, given, strict=True)]
    made = replace(kind, dynamics="muscle", gain="muscle", bias="muscle", early=False, torque=0.0)
    return replace(made, d=(*d, *kind.d[3:]), g=(*g, kind.g[9]), b=(*g, kind.b[9]))


def adhesion(item: Item, kind: Kind) -> Kind:
    """A force that pulls at the contacts of a body."""
    return Kind(g=put(ZEROS, _0=item.number("gain", kind.g[0], least=0.0)), limited=True)


def read_inputs(item: Item, known: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
    """The controls that `input` lists, in their order."""
    words = item.text("input").split() or list(default)
    if words == ["none"] and "voltage" in known:
        return ()
    for word in words:
        if word not in known:
            item.refuse(f"input is {word[:40]!r}, want some of {', '.join(known)}")
    if words != sorted(set(words), key=known.index):
        item.refuse(f"inputs must stand in the order {', '.join(known)}")
    return tuple(INPUTS[word] for word in words)


def in_class(item: Item) -> bool:
    """True if the element is in a <default>, whose actuators may name inputs of their own."""
    parent = item.element.getparent()
    return parent is not None and tag(parent) == "default"


def pid(item: Item, kind: Kind) -> Kind:
    """kp (position - length) + kv (velocity setpoint - velocity) + feedforward + ki · integral of the error."""
    fresh = kind.gain != "pid"
    kp = item.number("kp", 1.0 if fresh else -kind.b[1])
    ki = item.number("ki", 0.0 if fresh else kind.g[0])
    slew = item.number("slewmax", 0.0 if fresh else kind.d[1], least=0.0)
    limit = item.number("imax", 0.0 if fresh else kind.d[0], least=0.0)
    inputs = kind.inputs
    if item.has("input") or fresh:
        inputs = read_inputs(item, ("pos", "vel", "ff"), ("pos", "vel"))
    return Kind(
        dynamics="pid" if ki or slew else "none",
        gain="pid",
        bias="affine",
        d=put(ZEROS, _0=limit if ki else 0.0, _1=slew),
        g=put(ZEROS, _0=ki),
        b=put(ZEROS, _1=-kp, _2=damping_of(item, 0.0 if fresh else kind.b[2])),
        inputs=inputs,
        inherit=item.number("inheritrange", kind.inherit),
    )


def dcmotor(item: Item, kind: Kind) -> Kind:
    """A DC motor; its constants may be given in several ways (MuJoCo's technical note, sec. 2.1)."""
    if kind.gain != "dcmotor":
        kind = Kind(d=ZEROS, g=ZEROS, b=ZEROS, inputs=("voltage",))
    K, R = circuit(item, kind)
    kp, ki, kd, slew, limit, most = item.filled("controller", (*kind.g[4:7], kind.d[7], kind.d[8], kind.g[7]))
    torque, current, rate = item.filled("saturation", (0.0, 0.0, kind.d[1]))
    inductance, time = item.filled("inductance", (0.0, kind.d[0]))
    bristle = item.filled("lugre", (*kind.d[5:7], *kind.b[3:6]))
    heat = thermal(item, kind)
    inputs = kind.inputs
    if item.has("input"):
        inputs = read_inputs(item, tuple(INPUTS), ("voltage",))
    return replace(
        kind,
        dynamics="dcmotor",
        gain="dcmotor",
        bias="dcmotor",
        d=(inductance / R if inductance > 0 else time, rate, *heat[:2], heat[2], *bristle[:2], slew, limit, 0.0),
        g=(R, K, *heat[3:], kp, ki, kd, most, 0.0, 0.0),
        b=(*item.filled("cogging", kind.b[:3]), *bristle[2:], *kind.b[6:]),
        inputs=inputs,
        early=True,
        torque=(torque or K * current) if item.has("saturation") else kind.torque,
    )


def circuit(item: Item, kind: Kind) -> tuple[float, float]:
    """Motor constant [N m/A] and resistance [Ohm], given directly or by a nominal operating point."""
    torque_constant, speed_constant = item.filled("motorconst", (kind.g[1], 0.0))
    R = item.number("resistance", kind.g[0])
    volts, stall, free = item.filled("nominal", (0.0, 0.0, 0.0))
    if volts > 0 and free > 0 and speed_constant <= 0:
        speed_constant = unloaded_constant(volts, stall, free, R, item.filled("damping", (0.0, 0.0, 0.0))[0])
    if torque_constant > 0 and speed_constant > 0:
        K = math.sqrt(torque_constant * speed_constant)
    else:
        K = torque_constant if torque_constant > 0 else speed_constant
    if R == 0 and volts > 0 and stall > 0:
        R = K * volts / stall
    if K <= 0 or R <= 0:
        item.refuse("motor constant and resistance must be more than 0; give motorconst and resistance, or nominal")
    return K, R


def unloaded_constant(volts: float, stall: float, free: float, R: float, drag: float) -> float:
    """K of a motor with a viscous drag that runs at `free` rad/s without load: free = V K / (K² + R drag)."""
    if drag > 0 and R > 0:
        square = volts * volts - 4.0 * R * drag * free * free
        if square > 0:
            return (volts + math.sqrt(square)) / (2.0 * free)
    elif drag > 0 and stall > 0 and volts / free > volts * drag / stall:
        return volts / free - volts * drag / stall
    return volts / free


def thermal(item: Item, kind: Kind) -> tuple[float, float, float, float, float]:
    """Thermal resistance [K/W], capacitance [J/K], ambient [°C], temperature coefficient [1/K], reference [°C]."""
    R, C, time, slope, reference, ambient = item.filled(
        "thermal", (kind.d[2], kind.d[3], 0.0, kind.g[2], kind.g[3], kind.d[4])
    )
    if not (R > 0 or C > 0 or time > 0):
        return (0.0, 0.0, 0.0, 0.0, 0.0)
    if time > 0 and R > 0:
        C = time / R
    elif time > 0 and C > 0:
        R = time / C
    if R <= 0 or C <= 0:
        item.refuse("thermal: resistance and capacitance must be more than 0")
    return R, C, ambient, slope, reference


KINDS: dict[str, Callable[[Item, Kind], Kind]] = {
    "general": general,
    "motor": motor,
    "position": position,
    "intvelocity": intvelocity,
    "velocity": velocity,
    "damper": damper,
    "cylinder": cylinder,
    "muscle": muscle,
    "adhesion": adhesion,
    "pid": pid,
    "dcmotor": dcmotor,
    "orientation": orientation,
}
