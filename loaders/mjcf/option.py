"""<option>: settings of the simulation, and switches of its <flag>."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TypeVar

from artsim.loaders.elements import Element, children
from artsim.loaders.mjcf.reading import Item, MjcfReading, dict_of
from artsim.loaders.mjcf.softness import read_softness
from artsim.sim.articulation.description import ContactOverride, FileOptions, Joint, Tendon
from artsim.sim.foundation.dataclass import dataclass

Part = TypeVar("Part", Joint, Tendon)

WORDS = ("enable", "disable")
INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")
# settings of MuJoCo's solver: only their words are checked
TUNING = {
    "solver": ("PGS", "CG", "Newton"),
    "cone": ("pyramidal", "elliptic"),
    "jacobian": ("dense", "sparse", "auto"),
}
# switches with a meaning here; the other flags tune MuJoCo's own solver and collision phases
SWITCHES = tuple(
    "gravity limit frictionloss spring damper equality actuation clampctrl contact constraint filterparent "
    "eulerdamp".split()
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options that the file sets, and the names of the switches that it turns off."""

    file: FileOptions = field(default_factory=FileOptions)
    off: frozenset[str] = frozenset()
    override: bool = False  # True if the contact settings o_margin and so on count
    contact: ContactOverride = field(default_factory=ContactOverride)  # o_margin and so on
    disabled_groups: frozenset[int] = frozenset()  # of actuators

    @property
    def passive_off(self) -> bool:
        """True if both springs and dampers are off: MuJoCo then leaves out all passive forces."""
        return {"spring", "damper"} <= self.off


def read_options(reading: MjcfReading, root: Element) -> Options:
    """The options of every <option> of the root; later elements override earlier ones."""
    options = Options()
    for element in children(root, "option"):
        item = Item(reading, element, dict_of(element))
        options = replace(options, file=read_option(item, options.file), contact=read_override(item, options.contact))
        if item.has("actuatorgroupdisable"):
            options = replace(options, disabled_groups=read_groups(item))
        for flag in children(element, "flag"):
            options = replace(options, off=read_flag(reading, flag, options.off))
            if flag.get("override") is not None:
                words = Item(reading, flag, {"override": str(flag.get("override"))})
                options = replace(options, override=words.word("override", WORDS, "disable") == "enable")
    contact = replace(
        options.file,
        contact=not options.off & {"contact", "constraint"},
        filter_parent="filterparent" not in options.off,
        euler_damping="eulerdamp" not in options.off,
        contact_override=options.contact if options.override else None,
    )
    options = replace(options, file=contact)
    if "gravity" in options.off:
        options = replace(options, file=replace(options.file, gravity=(0.0, 0.0, 0.0)))
    if options.passive_off:
        options = replace(options, file=replace(options.file, density=0.0, viscosity=0.0))
    return options


def read_option(item: Item, known: FileOptions) -> FileOptions:
    """The options with timestep, gravity, integrator and medium; artsim has its own solver settings."""
    step = item.number("timestep", 0.0)
    if item.has("timestep") and step <= 0:
        item.refuse(f"timestep is {step:g} s, want more than 0")
    if 0 <= item.number("impratio", 1.0) < 1:
        item.reading.note(item.element, "<option>: impratio below 1 counts as 1: friction as soft as the normal")
    for name, words in TUNING.items():
        item.word(name, words, words[0])
    return replace(
        known,
        timestep=step if item.has("timestep") else known.timestep,
        gravity=item.vector("gravity") if item.has("gravity") else known.gravity,
        integrator=item.word("integrator", INTEGRATORS, "Euler") if item.has("integrator") else known.integrator,
        magnetic=item.vector("magnetic") if item.has("magnetic") else known.magnetic,
        density=item.number("density", known.density, least=0.0),
        viscosity=item.number("viscosity", known.viscosity, least=0.0),
        wind=item.vector("wind", known.wind),
        cone=item.word("cone", TUNING["cone"], "pyramidal") if item.has("cone") else known.cone,
        friction_stiffness=item.number("impratio", known.friction_stiffness, least=0.0),
    )


def read_override(item: Item, known: ContactOverride) -> ContactOverride:
    """o_margin, o_solref, o_solimp, o_friction: settings of every contact if the flag `override` is set."""
    softness = read_softness(item, "o_solref", "o_solimp")
    first, second, torsion, roll, other_roll = item.filled("o_friction", known.friction)
    return ContactOverride(
        margin=item.number("o_margin", known.margin),
        reference=softness.reference or known.reference,
        impedance=softness.impedance or known.impedance,
        friction=(first, second, torsion, roll, other_roll),
    )


def read_groups(item: Item) -> frozenset[int]:
    """actuatorgroupdisable: the groups of disabled actuators."""
    groups = item.numbers("actuatorgroupdisable", 0, 31)
    if any(group != int(group) or not 0 <= group <= 30 for group in groups):
        item.refuse("actuatorgroupdisable: want whole numbers from 0 to 30")
    return frozenset(int(group) for group in groups)


def read_flag(reading: MjcfReading, element: Element, off: frozenset[str]) -> frozenset[str]:
    """<flag>: the switches that are set to disable."""
    item = Item(reading, element, dict_of(element))
    for name in item.attributes:
        disabled = item.word(name, WORDS, "enable") == "disable"
        if name in SWITCHES:
            off = off | {name} if disabled else off - {name}
    if item.word("diagexact", WORDS, "disable") == "enable":
        what = "<flag> diagexact is ignored: soft constraints are weighed by the inertias in the file's pose"
        reading.note(element, what, once="diagexact")
    if item.word("refsafe", WORDS, "enable") == "disable":
        what = "<flag> refsafe is not switched off: time constants of solref are at least two steps"
        reading.note(element, what, once="refsafe")
    return off


def switched(part: Part, off: frozenset[str]) -> Part:
    """A joint or tendon without the properties that flags switch off."""
    if "limit" in off or "constraint" in off:
        part = replace(part, lower=None, upper=None)
    if "frictionloss" in off or "constraint" in off:
        part = replace(part, friction=0.0)
    if "spring" in off:
        part = replace(part, stiffness=0.0, stiffness_polynomial=(0.0, 0.0))
    if "damper" in off:
        part = replace(part, damping=0.0, damping_polynomial=(0.0, 0.0))
    if isinstance(part, Joint) and "actuation" in off and part.actuator_gravity_compensation:
        part = replace(part, actuator_range=(0.0, 0.0))  # no motor can carry the weight
    return part
