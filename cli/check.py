"""`artsim check`: read a robot file, print its content and report oddities, each with what mends it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from artsim.cli.findings import finding_lines, findings_object, untold
from artsim.cli.scene_options import SceneOptions, load_models, models_argument, scene_options
from artsim.io.runs.progress import progress_bar
from artsim.loaders.mesh_contents import MeshContent, mesh_files, read_contents
from artsim.sim.articulation.description import Articulation, Coupling, Joint, Link, Note
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ModelError, printable

if TYPE_CHECKING:
    from artsim.sim.articulation.model import Compiled
    from artsim.sim.geometry.collision_pairs import CollisionPairs
    from artsim.sim.ik.loop_freedom import Freedom

DOFS = {"fixed": 0, "revolute": 1, "continuous": 1, "prismatic": 1, "ball": 3, "free": 6, "planar": 3}
MAX_INDENT = 24  # levels; a chain of 5000 joints would otherwise print 50 MB of indentation
MAX_COLUMN = 48  # characters
MAX_WARNINGS = 40  # lines


@click.command(short_help="Validate a robot file and print its tree.")
@models_argument()
@scene_options
@click.option("--meshes", "read_meshes", is_flag=True, help="Read the mesh files too, instead of only locating them.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object instead of text.")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the findings to a page, too, with pictures of the links that have them.",
)
@click.option("--force", is_flag=True, help="Overwrite the page of --html.")
def check(
    models: tuple[str, ...], as_json: bool, read_meshes: bool, html: Path | None, force: bool, scene: SceneOptions
) -> None:
    """Validate MODEL (a file, or - for standard input) and print its tree; or several as one scene, as `artsim run`.

    Findings go to stderr, each with file, line and code, why it matters, and the option of `artsim edit` that mends it:
    warnings, for which --strict exits with 1, and hints. A refused file is one line with file, line and name, and 65.
    """
    articulation = load_models(models, scene)
    contents = read_with_progress(articulation, scene.load["max_faces"]) if read_meshes else None
    from artsim.sim.articulation.compile_model import compile_model  # imports numpy, only for a valid file

    compiled = compile_model(articulation)
    pairs = PairTables.of(articulation, compiled)
    absent = absent_notes(pairs, {"": pairs.alone.allowed.any(axis=1)})
    refused = [*dynamics_notes(articulation, compiled), *absent]
    if refused and scene.load["strict"]:
        raise ModelError(f"{refused[0]} (--strict)")
    left = freedom_of(articulation, compiled)
    from artsim.loaders.doctor.examine import examine

    examination = examine(articulation, compiled, pairs.alone, read_all=read_meshes)
    fails = scene.load["strict"] and any(not finding.is_hint for finding in examination.findings)
    if html is not None:
        from artsim.loaders.doctor.page import write_page

        write_page(articulation, examination, html, force=force)
    notes = [
        *articulation.notes,
        *refused,
        *locked_notes(articulation, left),
        *(() if absent else absent_notes(pairs, pairs.by_option)),
    ]
    if as_json:
        found = as_object(articulation, pairs, notes, contents) | {"freedom": freedom_object(left)}
        found["findings"] = findings_object(examination.findings)
        click.echo(json.dumps(found, allow_nan=False))
        raise click.exceptions.Exit(int(fails))
    for line in describe_tree(articulation):
        click.echo(line)
    click.echo()
    told = (*describe_totals(articulation), *describe_freedom(left), *describe_contacts(contacts_object(pairs)))
    for line in told:
        click.echo(line)
    if contents is not None:
        files = "1 mesh file" if len(contents) == 1 else f"{len(contents)} mesh files"
        click.echo(f"{files} read: {sum(mesh.triangles for mesh in contents)} triangles")
    notes = untold(notes, examination)
    for note in notes[:MAX_WARNINGS]:
        click.echo(f"warning: {printable(str(note))}", err=True)
    if len(notes) > MAX_WARNINGS:
        click.echo(f"warning: {len(notes) - MAX_WARNINGS} more; --json lists all", err=True)
    for line in finding_lines(examination):
        click.echo(line, err=True)
    raise click.exceptions.Exit(int(fails))


def read_with_progress(articulation: Articulation, max_faces: int | None) -> list[MeshContent]:
    """Read the content of every mesh file, with a progress bar on a terminal."""
    found: list[MeshContent] = []
    with progress_bar("reading meshes", len(mesh_files(articulation)), unit="files", show=True) as advance:
        for mesh in read_contents(articulation, max_faces):
            found.append(mesh)
            advance(len(found))
    return found


def dynamics_notes(articulation: Articulation, compiled: Compiled) -> list[Note]:
    """One warning for all links that move without inertia, which `run` refuses but kinematics allows."""
    from artsim.sim.articulation.regularity import singular_links

    links = singular_links(compiled, articulation.tendons)
    if not links:
        return []
    from artsim.io.runs.remedy import density_helps

    first = next(link for link in articulation.links if link.name == links[0])
    names = ", ".join(map(repr, links[:8])) + (", …" if len(links) > 8 else "")
    what = f"link {names} moves" if len(links) == 1 else f"{len(links)} links ({names}) move"
    more = density_helps(articulation, links)
    told = f"{what} without any inertia, that of the links beyond included; run refuses this"
    return [Note(first.source, f"{told} ({more})" if more else told)]


def freedom_of(articulation: Articulation, compiled: Compiled) -> Freedom | None:
    """The freedom that loops and couplings leave near the start; None for a robot that has none, or very many."""
    model = compiled.model
    if not (any(loop.active for loop in articulation.loops) or len(model.row_follower) or len(model.axis_dof)):
        return None
    from artsim.sim.equipment.equip import equip
    from artsim.sim.ik.loop_freedom import freedom
    from artsim.sim.runs.start import initial_qpos

    return freedom(compiled, equip(articulation, compiled), initial_qpos(compiled, {}, []))


def locked_notes(articulation: Articulation, left: Freedom | None) -> list[Note]:
    """A warning for a mechanism whose loops leave nothing to move, unless all are welds, which are to hold it."""
    if left is None or left.left or all(all(loop.held) for loop in articulation.loops if loop.active):
        return []
    source = next((loop.source for loop in articulation.loops if loop.active), articulation.links[0].source)
    return [Note(source, "the loops leave nothing to move: this mechanism is locked")]


def describe_freedom(left: Freedom | None) -> list[str]:
    """The line that counts rows of loops and couplings, and the dofs that they leave."""
    if left is None:
        return []
    rows = f"{left.rows} row{'s' * (left.rows > 1)} of loops and couplings, {left.independent_rows} independent"
    moved = f"{left.left} of {left.dofs} independent dofs {'is' if left.left == 1 else 'are'} left to move"
    names = ", ".join(map(printable, left.redundant[:8])) + (", …" if len(left.redundant) > 8 else "")
    repeated = f"; repeated by others: {names}" if left.redundant else ""
    gap = f"; found open by {left.gap:.3g} m or rad, which the joints do not close" if left.gap > 1e-6 else ""
    return [f"{rows}: {moved}{repeated}{gap}"]


def freedom_object(left: Freedom | None) -> dict[str, object] | None:
    """The freedom for --json."""
    return None if left is None else {**left._asdict(), "left": left.left}


@dataclass(frozen=True, slots=True)
class PairTables:
    """Which geoms may touch: by default, with --self-collide, with --ground."""

    alone: CollisionPairs
    crowded: CollisionPairs
    grounded: CollisionPairs

    @property
    def by_option(self) -> dict[str, Any]:
        """Which geoms touch something only with an option."""
        return {
            " with --ground": self.grounded.allowed[-1],
            " with --self-collide": self.crowded.allowed.any(axis=1),
        }

    @staticmethod
    def of(articulation: Articulation, compiled: Compiled) -> PairTables:
        """Those of a model."""
        from artsim.sim.articulation.description import Geom
        from artsim.sim.geometry.collision_pairs import collision_pairs

        ground = Geom("ground", "plane", "collision")
        return PairTables(
            collision_pairs(articulation, compiled),
            collision_pairs(articulation, compiled, self_collide=True),
            collision_pairs(articulation, compiled, world=[ground]),
        )


def absent_notes(pairs: PairTables, ways: Mapping[str, Any]) -> list[Note]:
    """One warning for all meshes that are absent and may touch something, in one of the ways to run the model: `run`
    refuses them.
    """
    absent = [k for k, (_, geom) in enumerate(pairs.alone.geoms) if geom.kind == "mesh" and geom.mesh_absent]
    for when, touches in ways.items():
        found = [pairs.alone.geoms[k][1] for k in absent if touches[k]]
        if found:
            first, others = found[0], len(dict.fromkeys(geom.mesh_uri for geom in found)) - 1
            what = f"mesh {first.mesh_uri!r}" + (f" and {others} more" if others else "")
            told = f"{what} absent, used for collision; run refuses this{when} (--no-meshes: goes on without)"
            return [Note(first.source, told)]
    return []


# --- the tree --------------------------------------------------------------------------------------------------------


def describe_tree(articulation: Articulation) -> list[str]:
    """The tree as a table: each link with its mass and the type, range and bounds of the joint above it."""
    couplings = {coupling.follower: coupling for coupling in articulation.couplings}
    guides = branch_guides(articulation)
    above = joints_above(articulation)
    rows: list[tuple[str, ...]] = [("LINK", "JOINT", "TYPE", "RANGE", "EFFORT", "VELOCITY", "MASS")]
    for link in articulation.links:
        joints = above.get(link.name, [])
        mass = "" if link.inertial is None else f"{link.inertial.mass:.6g} kg"
        name, further = guides[link.name]
        first = describe_joint(joints[0] if joints else None, couplings)
        rows.append((name + printable(link.name), *first, mass))
        rows += [(further, *describe_joint(joint, couplings), "") for joint in joints[1:]]
    return align(rows)


def joints_above(articulation: Articulation) -> Mapping[str, list[Joint]]:
    """The joints between each link and its parent, in order."""
    above: dict[str, list[Joint]] = {}
    for joint in articulation.joints:
        above.setdefault(joint.child, []).append(joint)
    return above


def branch_guides(articulation: Articulation) -> Mapping[str, tuple[str, str]]:
    """The lines drawn in front of each link's name, and in front of the further rows of the same link."""
    children: dict[str, list[str]] = {}
    for joint in articulation.joints:
        children.setdefault(joint.parent, []).append(joint.child)
    guides = {link.name: "" for link in articulation.links}  # empty for roots, of which a scene has several
    below = dict(guides)  # the prefix of a link's children
    for link in articulation.links:  # parents come before children
        names = children.get(link.name, [])
        for name in names:
            last = name == names[-1]
            guides[name] = below[link.name] + ("└ " if last else "├ ")
            deeper = below[link.name] + ("  " if last else "│ ")
            below[name] = deeper if len(deeper) <= 2 * MAX_INDENT else below[link.name]
    return {name: (guide, below[name] + ("│" if name in children else "")) for name, guide in guides.items()}


def describe_joint(joint: Joint | None, couplings: Mapping[str, Coupling]) -> tuple[str, str, str, str, str]:
    """Name, type, range or coupling, effort limit and velocity limit of the joint above a link."""
    if joint is None:
        return ("", "", "", "", "")
    unit = "m" if joint.kind == "prismatic" else "rad"
    force = "N" if joint.kind == "prismatic" else "N m"
    coupling = couplings.get(joint.name)
    return (
        printable(joint.name),
        joint.kind,
        describe_range(joint, unit)
        if coupling is None
        else _with_range(describe_coupling(coupling, joint.kind), joint),
        "" if joint.effort is None else f"{joint.effort:.6g} {force}",
        "" if joint.velocity is None else f"{joint.velocity:.6g} {unit}/s",
    )


def _with_range(coupling: str, joint: Joint) -> str:
    """A coupling, and the limits that a ball has beside it."""
    limits = describe_turning(joint, "rad") if joint.kind == "ball" else ""
    return f"{coupling}; {limits}" if limits else coupling


def describe_range(joint: Joint, unit: str) -> str:
    """The position limits of a joint as text."""
    if joint.kind in ("ball", "free"):
        return describe_turning(joint, unit)
    if joint.kind not in ("revolute", "prismatic"):
        return ""
    if joint.lower is None and joint.upper is None:
        return "unlimited"
    if joint.lower == joint.upper:
        return f"locked at {joint.lower:.6g} {unit}"
    low = "-inf" if joint.lower is None else f"{joint.lower:.6g}"
    high = "inf" if joint.upper is None else f"{joint.upper:.6g}"
    return f"{low} … {high} {unit}"


def describe_turning(joint: Joint, unit: str) -> str:
    """The limits of a ball's or free joint's angle, swing and twist as text."""
    swing, twist = joint.turning.swing, joint.turning.twist
    axis = "".join(name for name, part in zip("xyz", joint.turning.axis, strict=True) if part == 1.0)
    told = [f"angle to {joint.upper:.6g} {unit}"] if joint.upper is not None else []
    told += [f"swing to {swing[0]:.6g}, {swing[1]:.6g} {unit}"] if swing is not None else []
    told += [f"twist {twist[0]:.6g} … {twist[1]:.6g} {unit}"] if twist is not None else []
    if joint.turning.given and axis != "x":
        told.append(f"twist axis {axis or ', '.join(f'{part:.6g}' for part in joint.turning.axis)}")
    return "; ".join(told)


def describe_coupling(coupling: Coupling, kind: str = "") -> str:
    """A coupling as text, for example `= 2 finger + 0.1`."""
    offset, *factors = coupling.coefficients
    terms = [f"{offset:.6g}"] if offset or not any(factors) else []
    for power, factor in enumerate(factors, start=1):
        if factor:
            name = printable(coupling.leader or "")
            if coupling.axis and kind != "ball":
                name += f" about {coupling.axis}"
            terms.append(f"{factor:.6g} {name}" + (f"^{power}" if power > 1 else ""))
    about = f"about {coupling.axis} " if coupling.axis and kind == "ball" else ""
    return about + "= " + " + ".join(reversed(terms))


def align(rows: list[tuple[str, ...]]) -> list[str]:
    """Pad each column to its longest entry; a much longer name displaces its own row only."""
    widths = [min(max(map(len, column)), MAX_COLUMN) for column in zip(*rows, strict=True)]
    kept = [index for index, width in enumerate(widths) if any(row[index] for row in rows[1:])]
    return ["  ".join(row[index].ljust(widths[index]) for index in kept).rstrip() for row in rows]


# --- totals ----------------------------------------------------------------------------------------------------------


def describe_totals(articulation: Articulation) -> list[str]:
    """The lines that count the parts of the model."""
    numbers = counts(articulation)
    kinds = ", ".join(f"{count} {kind}" for kind, count in joint_kinds(articulation).items())
    name, base = printable(repr(articulation.name)), base_of(articulation)
    what = f"{articulation.format.upper()} robot {name}, {base} base" if base else f"scene {name}"
    lines = [
        f"{what}: {numbers['links']} links, {numbers['joints']} joints{f' ({kinds})' if kinds else ''}",
        f"{numbers['dofs']} dofs, {numbers['independent_dofs']} independent; mass {total_mass(articulation):.6g} kg",
    ]
    others = [
        f"{numbers[key]} {key if numbers[key] > 1 else key[:-1]}"
        for key in ("couplings", "loops", "tendons", "actuators", "sensors", "keyframes", "visuals", "collisions")
        if numbers[key]
    ]
    return [*lines, *([", ".join(others)] if others else []), *describe_ignored(articulation)]


def base_of(articulation: Articulation) -> str | None:
    """The base, fixed or floating; None for a scene of several models."""
    if articulation.parts:
        return None
    root = articulation.links[0].name  # the root has a joint if the model is placed or has an SRDF
    free = any(joint.child == root and joint.kind == "free" for joint in articulation.joints)
    return "floating" if free else articulation.base


def contacts_object(pairs: PairTables) -> dict[str, Any]:
    """Geoms of each kind, and the number of pairs that may collide under each of the options of `run`."""
    return {
        "geoms": dict(Counter(geom.kind for _, geom in pairs.alone.geoms)),
        "pairs": int(pairs.alone.allowed.sum()) // 2,
        "pairs_with_self_collide": int(pairs.crowded.allowed.sum()) // 2,
        "touch_ground": int(pairs.grounded.allowed[-1].sum()),
    }


def describe_contacts(contacts: Mapping[str, Any]) -> list[str]:
    """The line that counts geoms and the pairs of them that may collide."""
    if not contacts["geoms"]:
        return []
    kinds = ", ".join(f"{count} {kind}" for kind, count in contacts["geoms"].items())
    pairs, crowded = contacts["pairs"], contacts["pairs_with_self_collide"]
    more = f" ({crowded} with --self-collide)" if crowded > pairs else ""
    noun = "pair" if pairs == 1 and not more else "pairs"
    return [f"contact: {kinds}; {pairs} {noun} may touch{more}, {contacts['touch_ground']} the ground (--ground)"]


def describe_ignored(articulation: Articulation) -> list[str]:
    """The elements of the file that artsim ignores, one line per reason."""
    reasons: dict[str, list[str]] = {}
    for part in articulation.ignored:
        reasons.setdefault(part.why, []).append(part.what)
    return [f"ignored ({why}): {', '.join(parts)}" for why, parts in reasons.items()]


def _is_exact(coupling: Coupling) -> bool:
    """True if a coupling is eliminated by default."""
    return coupling.frequency is None and coupling.compliance is None and not coupling.axis


def counts(articulation: Articulation) -> dict[str, int]:
    """The number of links, joints, dofs and all other parts."""
    dofs = sum(DOFS[joint.kind] for joint in articulation.joints) + (6 if articulation.base == "floating" else 0)
    roles = Counter(geom.role for link in articulation.links for geom in link.geoms)
    hard = len({coupling.follower for coupling in articulation.couplings if _is_exact(coupling)})
    return {
        "links": len(articulation.links),
        "joints": len(articulation.joints),
        "dofs": dofs,
        "independent_dofs": dofs - hard,
        "couplings": len(articulation.couplings),
        "loops": len(articulation.loops),
        "tendons": len(articulation.tendons),
        "actuators": len(articulation.actuators),
        "sensors": len(articulation.sensors),
        "keyframes": len(articulation.keyframes),
        "visuals": roles["visual"],
        "collisions": roles["collision"],
        "meshes_missing": sum(
            geom.kind == "mesh" and geom.mesh is None for link in articulation.links for geom in link.geoms
        ),
    }


def joint_kinds(articulation: Articulation) -> Counter[str]:
    """The number of joints of each type."""
    return Counter(joint.kind for joint in articulation.joints)


def total_mass(articulation: Articulation) -> float:
    """The mass of all links [kg]."""
    return sum(link.inertial.mass for link in articulation.links if link.inertial is not None)


def as_object(
    articulation: Articulation, pairs: PairTables, notes: list[Note], contents: list[MeshContent] | None = None
) -> dict[str, object]:
    """Everything for --json. The tree is a flat list, parents first: parsers refuse the nested JSON of a long chain."""
    couplings = {coupling.follower: coupling for coupling in articulation.couplings}
    above = joints_above(articulation)
    return {
        "file": articulation.path,
        "name": articulation.name,
        "format": articulation.format,
        "base": base_of(articulation),
        "counts": counts(articulation) | {"joint_types": joint_kinds(articulation)},
        "mass": total_mass(articulation),
        "tree": [link_object(link, above.get(link.name, []), couplings) for link in articulation.links],
        "contact": contacts_object(pairs),
        "ignored": [{"what": part.what, "why": part.why} for part in articulation.ignored],
        "meshes": None
        if contents is None
        else [{"file": str(mesh.path), "triangles": mesh.triangles} for mesh in contents],
        "warnings": [{"file": note.source.file, "line": note.source.line, "message": note.message} for note in notes],
    }


def link_object(link: Link, joints: list[Joint], couplings: Mapping[str, Coupling]) -> dict[str, object]:
    """A link and the joints above it for --json; MJCF allows several joints per link."""
    return {
        "link": link.name,
        "line": link.source.line,
        "mass": None if link.inertial is None else link.inertial.mass,
        "parent": joints[0].parent if joints else None,
        "joints": [joint_object(joint, couplings.get(joint.name)) for joint in joints],
    }


def joint_object(joint: Joint, coupling: Coupling | None) -> dict[str, object]:
    """A joint and its coupling for --json, in rad, m, N m and N."""
    return {
        "name": joint.name,
        "type": joint.kind,
        "line": joint.source.line,
        "axis": joint.axis,
        "lower": joint.lower,
        "upper": joint.upper,
        "swing": joint.turning.swing,
        "twist": joint.turning.twist,
        "twist_axis": joint.turning.axis,
        "effort": joint.effort,
        "velocity": joint.velocity,
        "mimic": None if coupling is None else coupling_object(coupling),
    }


def coupling_object(coupling: Coupling) -> dict[str, object]:
    """A coupling for --json; `axis` is that of the ball joint among the two."""
    about = {"axis": coupling.axis} if coupling.axis else {}
    return {"leader": coupling.leader, "coefficients": coupling.coefficients, **about}
