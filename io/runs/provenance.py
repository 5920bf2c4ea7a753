"""The provenance of an output: command, versions, processor, facts of the run."""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from artsim import __version__
from artsim.io.readers.output import Output
from artsim.sim.foundation.targets import level, processor
from artsim.sim.runs.plan import Plan

_MOST_OVERLAPS = 200  # of pairs of links, which an output names


def facts_of(plan: Plan) -> dict[str, str | int | float]:
    """The attributes of /provenance that a plan determines."""
    config = plan.config
    return {
        "dt": plan.dt,
        "steps": config.steps,
        "every": config.every,
        "integrator": config.integrator,
        "solver": config.solver,
        "coupling": config.coupling,
        "seed": config.seed,
        **overlap_facts(plan),
    }


def overlap_facts(plan: Plan) -> dict[str, str | int | float]:
    """The attributes of /provenance about pairs of shapes that are left out of contact: their number, and their links;
    none if all take part."""
    if not plan.overlaps:
        return {}
    links = [[one.link_a, one.link_b, one.pairs] for one in plan.overlaps[:_MOST_OVERLAPS]]
    return {
        "overlaps_left_out": sum(one.pairs for one in plan.overlaps),
        "overlapping_links": json.dumps(links, ensure_ascii=False),
    }


def provenance(command: str) -> dict[str, str | int | float]:
    """The provenance of a run: command, versions, processor."""
    versions = {name: _version(name) for name in ("numpy", "numba", "llvmlite", "h5py")}
    return {
        "command": command,
        "versions": json.dumps({"artsim": __version__, "python": sys.version.split()[0], **versions}),
        "threads": 1,
        "cpu": processor(),
        "level": level(),
    }


@cache
def _version(package: str) -> str:
    """A package's version without importing it; importlib.metadata alone takes 20 ms."""
    if package in sys.modules:
        return str(sys.modules[package].__version__)
    spec = find_spec(package)
    folder = Path(spec.origin).parents[1] if spec is not None and spec.origin else Path()
    for about in folder.glob(f"{package}-*.dist-info"):
        return about.name.removesuffix(".dist-info").partition("-")[2]
    from importlib import metadata

    return metadata.version(package)


_MATTER = ("artsim", "numpy", "numba", "llvmlite")  # versions that may change numbers


def made_elsewhere(output: Output) -> str:
    """The differences of processor and versions from those here, in words; if empty, numbers must agree bit for bit."""
    here = provenance("")
    there = {"cpu": output.provenance.get("cpu", here["cpu"]), "versions": output.provenance.get("versions", "{}")}
    told = [] if there["cpu"] == here["cpu"] else [f"cpu {there['cpu']}, here {here['cpu']}"]
    try:
        before, now = json.loads(there["versions"]), json.loads(str(here["versions"]))
        told += [
            f"{name} {before[name]}, here {now[name]}" for name in _MATTER if before.get(name, now[name]) != now[name]
        ]
    except (ValueError, AttributeError, TypeError):
        told.append("unknown versions")
    return "; ".join(told)
