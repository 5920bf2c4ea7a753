"""The doctor: all rules on a robot, in the order in which an engineer would look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from artsim.loaders.doctor.contacts import scale_findings, shape_findings, world_forms
from artsim.loaders.doctor.finding import Finding
from artsim.loaders.doctor.forms import Form, Meshes, bodies_of
from artsim.loaders.doctor.inertias import inertia_findings
from artsim.loaders.doctor.joints import coded_notes, joint_findings
from artsim.sim.articulation.description import Articulation, Note
from artsim.sim.articulation.model import Compiled
from artsim.sim.geometry.collision_pairs import CollisionPairs


class Examination(NamedTuple):
    """The findings, the warnings of the readers that a rule repeats with their codes, and the forms in the world."""

    findings: list[Finding]
    codes: dict[Note, str]
    unread: int  # mesh files that were left out, as too large
    placed: Mapping[int, tuple[str, Form]]  # link and form in the world, by the id of each geom, where a run starts


def examine(robot: Articulation, compiled: Compiled, pairs: CollisionPairs, *, read_all: bool = False) -> Examination:
    """Apply all rules to a robot. `read_all`: read all its mesh files, however large."""
    from artsim.sim.runs.start import initial_qpos

    meshes = Meshes(robot, read_all=read_all)
    bodies = bodies_of(robot, meshes)
    placed = world_forms(compiled, bodies, initial_qpos(compiled, {}, []))
    scales = [*scale_findings(bodies)]
    odd = {link for finding in scales for link in finding.links}  # nothing can be said of matter in such shapes
    sound = [body._replace(drawn=body.drawn and not odd & {link.name for link in body.links}) for body in bodies]
    findings = [
        *scales,
        *inertia_findings(sound),
        *joint_findings(robot, compiled, bodies),
        *shape_findings(robot, compiled, bodies, pairs, {n: one for n, one in placed.items() if one[0] not in odd}),
    ]
    return Examination(findings, coded_notes(robot), meshes.left_out, placed)
