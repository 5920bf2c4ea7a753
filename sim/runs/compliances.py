"""Compliances and error reduction that a run gives to couplings, tendon equalities and loops by name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from artsim.sim.articulation.description import (
    Articulation,
    Compliance,
    Coupling,
    Loop,
    LoopSpring,
    Softness,
    TendonCoupling,
)
from artsim.sim.equipment.arrays import REFERENCE_K, Equipped
from artsim.sim.foundation.errors import SettingError, UsageError
from artsim.sim.run_data.integration import DEFAULT, INTEGRATORS
from artsim.sim.run_data.registry import MEAN_VELOCITY, SOLVERS
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.patterns import ALL, Names, by_name
from artsim.sim.runs.settings import Value

_SETTINGS = ("compliance", "compliance_damping", "coupling_erp")
_HARD_ONLY = "is coupled with an axis of a ball joint, which only hard rows can hold"


def with_constraint_names(articulation: Articulation, config: RunConfig) -> dict[str, Any]:
    """The settings of constraints with their names in place of patterns; the "*" of coupling_erp, which is the value of
    all rows, stays.

    Raises SettingError: a name that is none, one given twice over, a damping without compliance.
    """
    given = {setting: values for setting in _SETTINGS if isinstance(values := getattr(config, setting), Mapping)}
    if not any(given.values()):
        return {}
    known = tuple(dict.fromkeys(name for name, _ in _constraints(articulation)))
    axes = {c.follower for c in articulation.couplings if c.axis}
    free = tuple(name for name in known if name not in axes)
    soft = Names(known, known, free, free, "a loop, or a joint or tendon that follows another")
    found: dict[str, Any] = {}
    for setting, values in given.items():
        keep = {ALL} if setting == "coupling_erp" else ()
        names = soft._replace(matched=known, all=known) if setting == "coupling_erp" else soft
        found[setting] = by_name(setting, values, names, keep=keep)
    _refuse_contradictions(found, config.coupling_frequency, axes)
    return found


def _refuse_contradictions(found: Mapping[str, Value], frequency: object, axes: set[str]) -> None:
    compliance = found.get("compliance", {})
    for name in compliance:
        if name in axes:
            raise SettingError(f"compliance: {name!r} {_HARD_ONLY}", "compliance", name)
        if isinstance(frequency, Mapping) and name in frequency:
            raise SettingError(f"compliance: {name!r} has a frequency too; give one of them", "compliance", name)
    for name in found.get("coupling_erp", {}):
        if name in compliance:
            told = f"coupling_erp: {name!r} has a compliance; of a hard one, a damping of dt (1 / erp - 1) is that erp"
            raise SettingError(told, "coupling_erp", name)
        if isinstance(frequency, Mapping) and name in frequency:
            raise SettingError(f"coupling_erp: {name!r} has a frequency too; give one of them", "coupling_erp", name)
    for name in found.get("compliance_damping", {}):
        if name not in compliance:
            told = f"compliance_damping: {name!r} has no compliance; give --compliance {name}=…"
            raise SettingError(told, "compliance_damping", name)


def _constraints(articulation: Articulation) -> Iterator[tuple[str, str]]:
    """Names and kinds of the constraints that may have a compliance."""
    yield from ((c.follower, "the coupling of") for c in articulation.couplings)
    yield from ((c.follower, "the equality of tendon") for c in articulation.tendon_couplings)
    yield from ((loop.name, "loop") for loop in articulation.loops if loop.active)


def is_without_effect(name: str, config: RunConfig) -> bool:
    """True if a constraint has an infinite compliance."""
    return config.compliance.get(name, 0.0) == math.inf


def yielding_couplings(couplings: Sequence[Coupling], config: RunConfig) -> tuple[Coupling, ...]:
    """The couplings with the compliance and erp of the configuration, without those of infinite compliance."""
    return tuple(
        replace(c, frequency=None, impedance=None, compliance=_compliance(c.follower, config), erp=erp)
        if (erp := _erp(c.follower, config)) is not None or c.follower in config.compliance
        else c
        for c in couplings
        if not is_without_effect(c.follower, config)
    )


def yielding_tendons(couplings: Sequence[TendonCoupling], config: RunConfig) -> tuple[TendonCoupling, ...]:
    """The tendon equalities with the compliance and erp of the configuration, without those of infinite compliance."""
    return tuple(
        replace(c, frequency=None, softness=Softness(), compliance=_compliance(c.follower, config), erp=erp)
        if (erp := _erp(c.follower, config)) is not None or c.follower in config.compliance
        else c
        for c in couplings
        if not is_without_effect(c.follower, config)
    )


def yielding_loops(loops: Sequence[Loop], config: RunConfig) -> tuple[Loop, ...]:
    """The loops with the compliance and erp of the configuration, without those of infinite compliance."""
    found = []
    for loop in loops:
        erp, compliance = _erp(loop.name, config), _compliance(loop.name, config)
        if is_without_effect(loop.name, config):
            continue
        if erp is not None or compliance is not None:
            spring = None if compliance is None else LoopSpring(compliance=compliance)
            loop = replace(loop, softness=Softness(), spring=spring, erp=erp)
        found.append(loop)
    return tuple(found)


def _compliance(name: str, config: RunConfig) -> Compliance | None:
    if name not in config.compliance:
        return None
    return Compliance(float(config.compliance[name]), float(config.compliance_damping.get(name, 0.0)))


def _erp(name: str, config: RunConfig) -> float | None:
    given = config.coupling_erp.get(name) if isinstance(config.coupling_erp, Mapping) else None
    return None if given is None else float(given)


def common_erp(config: RunConfig) -> float:
    """The erp of all rows without one of their own; 0: none."""
    return config.coupling_erp.get(ALL, 0.0) if isinstance(config.coupling_erp, Mapping) else config.coupling_erp


def told_of_compliances(articulation: Articulation, config: RunConfig) -> list[str]:
    """Notes on constraints that do nothing, and on weights with which stiff ones are unstable."""
    idle = [f"{kind} {name!r}" for name, kind in _constraints(articulation) if is_without_effect(name, config)]
    more = f" and {len(idle) - 4} more" if len(idle) > 4 else ""
    told = [f"of infinite compliance, and without effect: {', '.join(idle[:4])}{more}"] if idle else []
    weights = {"--scheme-alpha": config.scheme_alpha, "--scheme-beta": config.scheme_beta}
    low = [f"{option} {value:g}" for option, value in weights.items() if value is not None and value < 0.5]
    if low and not config.is_maximal:
        told.append(f"{' and '.join(low)} below 1/2: springs and compliances too stiff for the time step are unstable")
    return told


def told_of_open_loops(equipped: Equipped, gaps: Mapping[str, float], erp: float) -> list[str]:
    """Notes on loops that start open [m or rad], and on the closing of those that neither yield nor have an erp."""
    told = []
    for name, gap in gaps.items():
        n = equipped.labels.loops.index(name)
        hard = equipped.arrays.loop_reference[n, REFERENCE_K] < 0 and not erp and equipped.arrays.loop_erp[n] < 0
        how = "; it is closed at half a metre or radian per second" if hard else ""
        told.append(f"loop {name!r} starts open by {gap:.3g} m or rad{how}")
    return told


def needs_implicit_rows(articulation: Articulation, config: RunConfig) -> str:
    """The first option of a run, or coupling or loop of its file, with rows that only the semi-implicit step has, or an
    empty string."""
    given = {
        "--compliance": bool(config.compliance),
        "--coupling-erp": bool(config.coupling_erp),
        "--scheme-alpha": config.scheme_alpha not in (None, 1.0),
        "--scheme-beta": config.scheme_beta not in (None, 1.0),
    }
    if config.coupling not in ("exact", "rows"):
        couplings: tuple[Coupling | TendonCoupling, ...] = (*articulation.couplings, *articulation.tendon_couplings)
        given |= {f"the compliance of {c.follower!r}": c.compliance is not None for c in couplings}
        springs = {loop.name: loop.spring for loop in articulation.loops if loop.active and loop.spring}
        given |= {f"the compliance of loop {name!r}": s.compliance is not None for name, s in springs.items()}
    return next((option for option, is_given in given.items() if is_given), "")


def refuse_unservable_weights(articulation: Articulation, config: RunConfig) -> None:
    """Raise UsageError for weights, compliances and erps that the integrator or the solver does not serve."""
    option = needs_implicit_rows(articulation, config)
    if option and not INTEGRATORS[config.integrator].compliances:
        raise UsageError(f"integrator {config.integrator!r} does not serve {option}; use {DEFAULT.name}")
    weighted = any(value not in (None, 1.0) for value in (config.scheme_alpha, config.scheme_beta))
    if weighted and MEAN_VELOCITY[SOLVERS[config.solver].number]:
        raise UsageError(f"solver {config.solver!r} moves positions on its own, without --scheme-alpha and -beta")
