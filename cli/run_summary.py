"""The summary of a run: its figures by name, the sentences on them, and the reasons for which --strict refuses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artsim.cli.depths import describe_depth
from artsim.io.format import schema
from artsim.io.runs.run import Outcome
from artsim.sim.foundation.errors import StoppedError
from artsim.sim.geometry.contacts import first_room
from artsim.sim.run_data.integration import DEFAULT
from artsim.sim.runs.account import SUNK_FAR
from artsim.sim.runs.compliances import is_without_effect
from artsim.sim.runs.contact_laws import count_pairs
from artsim.sim.runs.overlaps import told_of_overlaps
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.settings import CONVEX, COULOMB, FILE
from artsim.sim.runs.simulate import Simulation

_FAR = 1e-3  # m or rad: loops that came open by more are reported
_EXCLUDE = "an SRDF, or <exclude> in MJCF, takes such pairs out"
MORE_EXACT = "a smaller --dt helps, or --iterations where the solver sweeps"
HELD_INSIDE = ("steps", "depth", "link_a", "link_b", "loop")  # of contacts that hard loops hold inside
_SMALLER = "a smaller --dt helps"
_MOTORS = 6  # that are named at their largest force
_NO_ENERGY, _NO_DEPTH = 1e-18, 1e-12  # J, m: less is rounding, told as 0
_ROUNDING = 1e-14  # of an energy: changes below this part of it are told as 0
_RESIDUAL = 1e-6  # rad/s or m/s: larger residuals of the solver are reported


def refused(simulation: Simulation) -> str:
    """Why --strict ends the run (excess energy, contacts that yielded far, unsolved steps), or an empty string."""
    excess, residual = _excess(simulation), simulation.worst_residual
    if excess is not None:
        return _describe_excess(excess)
    held, opened = _held_inside(simulation), _opened(simulation)
    if held is not None:
        return describe_held(held)
    if opened is not None:
        return _describe_opened(opened)
    if _gives_way_far(simulation):
        return _describe_yielding(_yielding(simulation) or {})
    unsolved = f"{describe_residual(residual, simulation.unsolved_steps)}; {MORE_EXACT}"
    return unsolved if not residual <= _RESIDUAL else ""


def _gives_way_far(simulation: Simulation) -> bool:
    """True if a hard contact got deeper by more than SUNK_FAR of a shape's thickness."""
    found = simulation.gave_way
    return found is not None and found[3] > SUNK_FAR


def _yielding(simulation: Simulation) -> dict[str, Any] | None:
    """Where hard contacts got deepest, or None."""
    found = simulation.gave_way
    return None if found is None else dict(zip(("link_a", "link_b", "depth", "share"), found, strict=True))


def _describe_yielding(where: Mapping[str, Any]) -> str:
    depth = describe_depth(where["depth"], where["share"], where["link_a"], where["link_b"])
    return f"hard contacts got deeper than at the start: {depth}"


def describe_motors(motors: Sequence[str], *, whole: bool = False) -> str:
    """A line on motors at their largest force: the first of them, or the `whole` list."""
    shown = motors if whole else motors[:_MOTORS]
    more = f", and {len(motors) - len(shown)} more" if len(motors) > len(shown) else ""
    return "motors at their largest force: " + ", ".join(shown) + more


def describe_residual(residual: float | None, steps: int) -> str:
    return f"the solver left up to {residual or float('inf'):.3g} rad/s or m/s unsolved in {steps} steps"


def summary_of(outcome: Outcome, output: Path | None) -> dict[str, Any]:
    """The figures of a run by name, as --json prints them."""
    simulation, seconds = outcome.simulation, outcome.seconds
    config, articulation = simulation.plan.config, simulation.plan.robot.articulation
    start, end = map(_number, simulation.energy)
    if outcome.status == schema.NON_FINITE:
        end = None
    return {
        "steps": simulation.step,
        "time": simulation.time,
        "seconds": seconds,
        "steps_per_second": simulation.step / seconds if seconds > 0 else 0.0,
        "times_real_time": simulation.time / seconds if seconds > 0 else 0.0,
        "energy": [start, end],
        "energy_excess": _excess(simulation),
        "energy_watched": simulation.watches_energy,
        "coupling": config.coupling,
        "couplings": sum(not is_without_effect(c.follower, config) for c in articulation.couplings),
        "coupling_rows": len(simulation.plan.robot.model.row_follower) + len(simulation.plan.robot.model.axis_dof),
        "worst_coupling_error": simulation.coupling_error,
        "tendon_equalities": sum(not is_without_effect(c.follower, config) for c in articulation.tendon_couplings),
        "worst_tendon_error": simulation.tendon_error,
        "worst_solver_residual": _number(simulation.worst_residual),
        "unsolved_steps": simulation.unsolved_steps,
        "worst_loop_gap": simulation.loop_gap,
        "loops_opened": _opened(simulation),
        "joint_gap": simulation.joint_gap,
        "contacts": _contacts(simulation),
        "course": _course(simulation),
        "limit_steps": simulation.limit_steps,
        "integrator": config.integrator,
        "steps_by_default": simulation.steps_by_default,
        "status": outcome.status,
        "warnings": [*simulation.plan.notes, *map(str, simulation.plan.robot.articulation.notes)],
        "output": None if output is None else str(output),
        "bytes": output.stat().st_size if output is not None and output.exists() else None,
    }


def _course(simulation: Simulation) -> dict[str, Any] | None:
    """The steps that --accuracy chose; None without it."""
    return None if simulation.course is None else simulation.course._asdict()


def describe_course(course: Mapping[str, Any]) -> str:
    """A sentence on the steps that --accuracy chose."""
    sizes = f"{course['smallest'] * 1e3:.3g} to {course['largest'] * 1e3:.3g} ms"
    said = (
        f"by accuracy: {course['taken']} steps of {sizes}, {course['refused']} refused, {course['cut']} cut at events"
    )
    coarse = f", {course['coarse']} of the least length with larger errors" if course["coarse"] else ""
    return f"{said}{coarse}; estimated error {course['estimate']:.2g} rad or m"


def _excess(simulation: Simulation) -> dict[str, Any] | None:
    """Energy that nothing can have given, or None."""
    found = simulation.energy_excess
    return None if found is None else found._asdict()


def _opened(simulation: Simulation) -> dict[str, Any] | None:
    """By how much a hard loop came open, if a user may not overlook it."""
    for (gap, loop), unit in zip(simulation.loops_opened or (), ("m", "rad"), strict=False):
        if gap > _FAR:
            return {"loop": loop, "gap": gap, "unit": unit}
    return None


def _describe_opened(opened: Mapping[str, Any]) -> str:
    """A sentence on it."""
    return f"loop {opened['loop']!r} came open by {opened['gap']:.3g} {opened['unit']} during the run; {_SMALLER}"


def _contacts(simulation: Simulation) -> dict[str, Any] | None:
    """The largest number of contacts in a step, the deepest [m] and the room for contacts; None without contacts."""
    touching = simulation.plan.touching
    if touching is None:
        return None
    most, deepest = simulation.contact_extremes
    hard, soft = count_pairs(touching)
    law = {"law": simulation.plan.config.contact_law, "hard_pairs": hard, "soft_pairs": soft}
    rooms = {"room": simulation.room, "first_room": first_room(touching)}
    steps = {"eased_steps": simulation.eased_steps, "left_inside_steps": simulation.left_inside_steps}
    yielding = {"gave_way": _yielding(simulation), "gave_way_far": _gives_way_far(simulation)}
    yielding |= {"held_inside": _held_inside(simulation)}
    return {
        "most": most,
        "deepest": deepest,
        **law,
        **steps,
        **yielding,
        **rooms,
        "overlaps": overlaps_of(simulation.plan),
    }


def overlaps_of(plan: Plan) -> list[dict[str, Any]]:
    """The links with shapes that are left out of contact since no joint parts them, and the number of these pairs."""
    return [one._asdict() for one in plan.overlaps]


def refuse_overlaps(plan: Plan) -> None:
    """Raise StoppedError if pairs of shapes are left out of contact, for --strict."""
    if plan.overlaps:
        raise StoppedError(f"not started (--strict): {told_of_overlaps(plan.overlaps)}; {_EXCLUDE}")


def _held_inside(simulation: Simulation) -> dict[str, Any] | None:
    """The contacts that hard loops hold inside, or None."""
    found = simulation.held_inside
    return None if found is None else dict(zip(HELD_INSIDE, found, strict=True))


def describe_held(held: Mapping[str, Any]) -> str:
    pair = f"{held['link_a']!r} and {held['link_b']!r} up to {held['depth']:.3g} m inside each other"
    left_out = f"their contact was left out in {held['steps']} steps"
    return f"loop {held['loop']!r} holds {pair}: {left_out}; {_EXCLUDE}"


def _number(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def sentences(summary: Mapping[str, Any], *, verbose: bool) -> list[str]:
    """The lines that `artsim run` prints of a summary."""
    lines = [
        f"{summary['steps']} steps, {summary['time']:.6g} s simulated in {summary['seconds']:.3g} s: "
        f"{summary['steps_per_second']:,.0f} steps/s, {summary['times_real_time']:.3g} times real time"
    ]
    if summary["course"] is not None:
        lines.append(describe_course(summary["course"]))
    start, end = summary["energy"]
    watched = "" if summary["energy_watched"] else ", not watched under the convex law"
    if start is not None and end is not None:
        start, end = (_settled(value, _NO_ENERGY) for value in (start, end))
        change = _settled(end - start, _ROUNDING * max(abs(start), abs(end)))
        lines.append(f"energy {start:.6g} J at the start, {end:.6g} J at the end ({change:+.3g} J){watched}")
    if summary["energy_excess"] is not None:
        lines.append(f"warning: {_describe_excess(summary['energy_excess'])}")
    if summary["couplings"]:
        how = f"{summary['worst_coupling_error']:.3g}" if summary["coupling_rows"] else "exact, by elimination"
        lines.append(f"worst coupling error: {how}")
    if summary["worst_loop_gap"] is not None:
        lines.append("loops open by up to {:.3g} m and {:.3g} rad".format(*summary["worst_loop_gap"]))
    if summary["loops_opened"] is not None:
        lines.append(f"warning: {_describe_opened(summary['loops_opened'])}")
    if summary["tendon_equalities"]:
        lines.append(f"worst error of tendon equalities: {summary['worst_tendon_error']:.3g}")
    residual = summary["worst_solver_residual"]
    if residual is None or residual > _RESIDUAL:
        lines.append(f"warning: {describe_residual(residual, summary['unsolved_steps'])}; {MORE_EXACT}")
    if summary["joint_gap"] is not None:
        lines.append("joints came apart by up to {:.3g} m and {:.3g} rad".format(*summary["joint_gap"]))
    if summary["contacts"] is not None:
        lines += _describe_contacts(summary["contacts"])
    limits = sorted(summary["limit_steps"].items(), key=lambda item: -item[1])
    if limits:
        shown = limits if verbose else limits[:6]
        more = f", and {len(limits) - len(shown)} more" if len(limits) > len(shown) else ""
        lines.append("at a limit: " + ", ".join(f"{name} ({n} steps)" for name, n in shown) + more)
    if summary["steps_by_default"]:
        steps, integrator = summary["steps_by_default"], summary["integrator"]
        lines.append(f"{steps} steps at limits were taken by {DEFAULT.name}: {integrator} has no rows for these")
    if full := summary.get("at_effort"):
        lines.append(describe_motors([f"{name} ({t:.3g} s)" for name, t in full.items()], whole=verbose))
    if summary["bytes"] is not None:
        lines.append(f"wrote {summary['output']} ({summary['bytes'] / 1e6:.3g} MB)")
    lines += [f"wrote {name} ({size / 1e6:.3g} MB)" for name, size in summary.get("pictures", {}).items()]
    if summary["output"] is None and not summary.get("pictures"):
        lines.append("nothing of the run is kept; -o FILE.h5 writes it to a file")
    return lines


def _settled(value: float, least: float) -> float:
    """The value, or 0 for one below `least`, which is rounding."""
    return value if abs(value) >= least else 0.0


def _describe_excess(excess: Mapping[str, Any]) -> str:
    return (
        f"at t = {excess['time']:.6g} s there were {excess['created']:.3g} J of energy more than the "
        f"{excess['available']:.3g} J that inputs, drives, springs and heights can have given: {excess['source']} "
        f"gave it, and joint {excess['joint']!r} moves with most; try a smaller --dt"
    )


_LAWS = {
    CONVEX: f", by the {CONVEX} law",
    FILE: ", {soft_pairs} pairs soft by MuJoCo's law, {hard_pairs} hard by Coulomb's",
    COULOMB: ", {soft_pairs} pairs soft, {hard_pairs} hard, all by Coulomb's law",
}


def _describe_contacts(contacts: Mapping[str, Any]) -> list[str]:
    if not contacts["most"]:
        return ["contacts: none"]
    law = _LAWS[contacts["law"]] if contacts["soft_pairs"] else ""
    law = law.format(**contacts)
    deepest = _settled(max(contacts["deepest"], 0.0), _NO_DEPTH)
    lines = [f"contacts: {contacts['most']} at once, at most {deepest:.3g} m deep{law}"]
    if contacts["eased_steps"]:
        lines.append(f"wedged or crowded contacts gave way in {contacts['eased_steps']} steps")
    if contacts["gave_way_far"]:
        lines.append(f"warning: {_describe_yielding(contacts['gave_way'])}")
    if contacts["left_inside_steps"]:
        stayed = f"penetration was left as it was in {contacts['left_inside_steps']} steps"
        lines.append(f"{stayed}, where removing it would throw bodies or contradict other constraints; {_EXCLUDE}")
    if contacts["held_inside"]:
        lines.append(f"warning: {describe_held(contacts['held_inside'])}")
    if contacts["room"] > contacts["first_room"]:
        lines.append(f"room for contacts was enlarged from {contacts['first_room']} to {contacts['room']}")
    return lines
