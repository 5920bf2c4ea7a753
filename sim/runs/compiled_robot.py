"""A robot compiled with its couplings, loops and tendon equalities as hard or soft as a run asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation, Coupling, Softness, TendonCoupling
from artsim.sim.foundation.errors import SettingError
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.compliances import yielding_couplings, yielding_loops, yielding_tendons
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.settings import Value


def compiled_robot(articulation: Articulation, config: RunConfig, *, locks: bool = True) -> Robot:
    """Compile the articulation with couplings and gravity as configured; see compile_model."""
    soft, coupling = articulation, config.coupling
    if coupling == "compliant":
        soft = replace(articulation, couplings=tuple(_softened(c, config) for c in articulation.couplings))
        if isinstance(config.coupling_frequency, Mapping):
            coupling = "auto"  # those without a frequency are eliminated, not hard rows
    elif coupling in ("exact", "rows"):
        soft = replace(articulation, couplings=tuple(replace(c, compliance=None) for c in articulation.couplings))
    soft = replace(soft, couplings=yielding_couplings(soft.couplings, config))
    return Robot(articulation, compile_model(soft, coupling=coupling, locks=locks, gravity=config.gravity))


def tied(articulation: Articulation, config: RunConfig) -> Articulation:
    """Make loops hard, and tendon equalities hard or soft, as the configuration asks."""
    loops, tendons = articulation.loops, articulation.tendon_couplings
    if config.coupling in ("exact", "rows"):
        loops = tuple(replace(loop, softness=Softness(), spring=None) for loop in loops)
        tendons = tuple(replace(c, softness=Softness(), compliance=None) for c in tendons)
    elif config.coupling == "compliant":
        tendons = tuple(_softened_tendons(c, config) for c in tendons)
    loops, tendons = yielding_loops(loops, config), yielding_tendons(tendons, config)
    return replace(articulation, loops=loops, tendon_couplings=tendons)


def _softened(coupling: Coupling, config: RunConfig) -> Coupling:
    soft = coupling.frequency is not None or coupling.compliance is not None
    if soft and not _by_name(coupling.follower, config.coupling_frequency):
        return coupling
    frequency, ratio = _softness(coupling.follower, config)
    return (
        coupling if frequency is None else replace(coupling, frequency=frequency, damping_ratio=ratio, compliance=None)
    )


def _softened_tendons(coupling: TendonCoupling, config: RunConfig) -> TendonCoupling:
    soft = coupling.softness.reference is not None or coupling.compliance is not None
    if soft and not _by_name(coupling.follower, config.coupling_frequency):
        return coupling
    frequency, ratio = _softness(coupling.follower, config)
    return (
        coupling if frequency is None else replace(coupling, frequency=frequency, damping_ratio=ratio, compliance=None)
    )


def hard_axes(articulation: Articulation, config: RunConfig) -> list[str]:
    """A note on couplings of axes of balls, which stay hard where --coupling compliant is for all. Raises SettingError
    where one is named."""
    if config.coupling != "compliant":
        return []
    followers = [c.follower for c in articulation.couplings if c.axis]
    for name in followers:
        if _by_name(name, config.coupling_frequency):
            told = (
                f"coupling_frequency: {name!r} is coupled with an axis of a ball joint, which only hard rows can hold"
            )
            raise SettingError(told, "coupling_frequency", name)
    if not followers or isinstance(config.coupling_frequency, Mapping):
        return []
    more = f" and {len(followers) - 3} more" if len(followers) > 3 else ""
    return [f"couplings with axes of ball joints stay hard: {', '.join(followers[:3])}{more}"]


def _by_name(follower: str, given: float | Value | None) -> bool:
    return isinstance(given, Mapping) and follower in given


def _softness(follower: str, config: RunConfig) -> tuple[float | None, float]:
    """The frequency [Hz] and damping ratio of the coupling of a joint or tendon; None: the coupling stays as it is."""
    frequency, ratio = config.coupling_frequency, config.coupling_damping
    if isinstance(frequency, Mapping):
        frequency = frequency.get(follower)
    return frequency, ratio.get(follower, 1.0) if isinstance(ratio, Mapping) else ratio
