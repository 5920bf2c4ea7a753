"""Public models converted to other formats and back: which are equal, what formats do not say, what others load.

    ARTSIM_CORPUS=folder python -m tests.benchmarks.conversions [--ways urdf-mjcf mjcf-urdf-mjcf …] [--only PART]
        [--check-with mujoco pinocchio drake] [--every N] [--most-links N] [--json FILE]

A way is a source and the formats that a model is written in, one after the other; the last file is compared with the
source. `mjcf-usd`, `urdf-usd` end a way: USD is read back by usd-core, and equal up to its 32 bits. `mjcf-saver`,
`urdf-saver` have MuJoCo's mj_saveLastXML write the file, `urdf-urdf2mjcf` that package. A model counts as equal if
every row of the proof is (names and looks do not count; of USD, if nothing physical was lost, too), as told if all
that differs was told; `sayable` are models of which every format on the way says all that affects motion, forces or
contacts. Tables say what differs, and what was told, by kind and field.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from artsim.loaders.load import load_articulation
from artsim.loaders.writers.losses import Loss, Losses
from artsim.loaders.writers.proof import Proof, prove
from artsim.loaders.writers.write import write_articulation
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.errors import ArtsimError

SUFFIXES = {"mjcf": ".xml", "urdf": ".urdf", "sdf": ".sdf", "usd": ".usda", "saver": ".xml", "urdf2mjcf": ".xml"}
FOREIGN = ("saver", "urdf2mjcf")  # files of other programs
WAYS = tuple(f"{a}-{b}" for a in ("urdf", "mjcf") for b in SUFFIXES if b not in (a, "usd", *FOREIGN))
SLOW = 10.0  # [s] of a model's way from which on it is named
CORE = ("mass matrix", "gravity forces", "bias forces", "link positions", "link rotations")  # motion without contacts


class Outcome(NamedTuple):
    """The end of a model's way: a word, the reasons of differences, the losses, and the last file."""

    word: str
    reasons: list[str]
    losses: list[Loss]
    core: bool


def convert(before: Articulation, formats: Sequence[str], folder: Path) -> Outcome:
    """Write a robot in one format after the other, and compare each file with the one before and with the first."""
    robot, losses, told = before, Losses(), True
    steps: list[Proof] = []
    for count, format_ in enumerate(formats):
        path = folder / f"step_{count}{SUFFIXES[format_]}"
        try:
            written = write_articulation(robot, path, meshes="path")
        except ArtsimError as error:
            return Outcome("refused", [reason(str(error))], losses.entries, False)
        assert written.proof is not None
        steps.append(written.proof)
        losses.then(written.losses)
        if format_ == "usd":
            break
        robot = load_articulation(path, base=robot.base, mesh_root="/")
    proof = steps[0] if len(steps) == 1 else prove(before, robot, losses)
    told = all(step.holds for step in steps)
    worst = proof if told else next(step for step in steps if not step.holds)
    word = word_of(proof, losses, usd=formats[-1] == "usd") if told else "not told"
    return Outcome(word, [*reasons_of(worst)], losses.entries, core_of(proof))


def saved(before: Articulation, program: str, folder: Path) -> Outcome:
    """The file that MuJoCo's own saver, or urdf2mjcf, makes of a model, compared with it; nothing is told of it."""
    path = folder / f"step_0{SUFFIXES['mjcf']}"
    try:
        if program == "saver":
            import mujoco

            mujoco.mj_saveLastXML(str(path), mujoco.MjModel.from_xml_path(before.path))
        else:
            from urdf2mjcf.convert import convert_urdf_to_mjcf

            convert_urdf_to_mjcf(before.path, path)
        robot = load_articulation(path, base=before.base, mesh_root=Path(before.path).parent)
    except Exception as error:  # whatever the program raises
        return Outcome("refused", [re.sub(r"'[^']*'|\d+", "…", str(error))[:90]], [], False)
    losses = Losses()
    proof = prove(before, robot, losses)
    return Outcome(word_of(proof, losses) if proof.holds else "not told", [*reasons_of(proof)], [], core_of(proof))


def word_of(proof: Proof, losses: Losses, *, usd: bool = False) -> str:
    """Equal (names and looks do not count), equal but for meshes that are absent, or told. `usd`: the proof compares
    fewer items than the format loses, so that a loss counts as a difference."""
    physical = [d for d in proof.differences if d.physical]
    if usd and losses.physical:
        return "told"
    if all(row.equal for row in proof.rows) and not physical:
        return "equal"
    of_mesh = [loss for d in physical if (loss := losses.of(d.kind, d.name, d.field)) and "at hand" in loss.told]
    rows = all(row.equal or row.subject == "geoms" for row in proof.rows)
    return "equal but absent meshes" if rows and len(of_mesh) == len(physical) else "told"


def core_of(proof: Proof) -> bool:
    """True if all quantities of motion are equal."""
    return all(row.equal for row in proof.rows if row.subject in CORE) and any(
        row.subject in CORE for row in proof.rows
    )


def reasons_of(proof: Proof) -> Iterator[str]:
    """What differs, without names."""
    for difference in proof.differences:
        if not difference.physical:
            continue
        told = "told" if difference.told else "NOT TOLD"
        yield f"{told}: {difference.kind} {difference.field}"
    for row in proof.rows:
        if not row.equal and row.verdict != "told":
            yield f"row {row.subject}: {row.verdict if len(row.verdict) < 60 else row.verdict[:60]}"


def reason(message: str) -> str:
    """The message without its file and with names cut out, so that equal reasons count as one."""
    return re.sub(r"'[^']*'", "'…'", message.partition(": ")[2])[:110]


def reads(program: str, format_: str) -> bool:
    """True if a program reads files of a format."""
    return {"mujoco": format_ not in ("sdf", "usd"), "pinocchio": format_ == "urdf", "drake": format_ == "sdf"}[program]


def foreign(program: str, path: Path) -> str:
    """'' if a program loads the file, else its reason."""
    try:
        if program == "mujoco":
            import mujoco

            mujoco.MjModel.from_xml_path(str(path))
        elif program == "drake":
            from pydrake.multibody.parsing import Parser
            from pydrake.multibody.plant import MultibodyPlant

            plant = MultibodyPlant(0.001)
            Parser(plant).AddModels(str(path))
            plant.Finalize()
        else:
            import pinocchio

            pinocchio.buildModelFromUrdf(str(path))
    except Exception as error:
        return re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|\d+", "…", str(error))[:90]
    return ""


def main() -> None:
    """Go through the corpus and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    parser.add_argument("--only", default="", help="part of the ids")
    parser.add_argument("--every", type=int, default=1, help="one of so many models")
    parser.add_argument("--check-with", nargs="*", default=[], choices=("mujoco", "pinocchio", "drake"))
    parser.add_argument("--most-links", type=int, default=10**9, help="larger models are left out")
    parser.add_argument("--json", type=Path, help="a line for each model and way")
    parser.add_argument("--show", type=int, default=12, help="lines of each table of reasons")
    words = parser.parse_args()
    corpus = Path(os.environ["ARTSIM_CORPUS"])
    entries = [e for e in json.loads((corpus / "index.json").read_text()) if words.only in e["id"]][:: words.every]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    told: dict[str, Counter[str]] = defaultdict(Counter)
    lines = []
    for entry in entries:
        ways = [way for way in words.ways if way.partition("-")[0] == entry["format"]]
        try:
            before = load_articulation(corpus / entry["path"]) if ways else None
        except ArtsimError:
            continue
        if before is not None and len(before.links) > words.most_links:
            counts["left out"]["larger models"] += 1
            continue
        for way in ways:
            assert before is not None
            formats, began = way.split("-")[1:], time.perf_counter()
            with tempfile.TemporaryDirectory() as name:
                try:
                    outcome = (
                        saved(before, formats[0], Path(name))
                        if formats[0] in FOREIGN
                        else convert(before, formats, Path(name))
                    )
                except Exception:
                    outcome = Outcome("crashed", [traceback.format_exc().strip().splitlines()[-1][:110]], [], False)
                counts[way][outcome.word] += 1
                counts[way]["motion equal"] += outcome.core
                if not any(loss.physical for loss in outcome.losses):
                    counts[way]["sayable"] += 1
                    counts[way]["sayable and equal"] += outcome.word == "equal"
                for why in set(outcome.reasons):
                    reasons[way][why].append(entry["id"])
                told[way].update({f"{loss.outcome} {loss.kind} {loss.field}" for loss in outcome.losses})
                last = Path(name) / f"step_{len(formats) - 1}{SUFFIXES[formats[-1]]}"
                for program in words.check_with:
                    if last.exists() and reads(program, formats[-1]):
                        why = foreign(program, last)
                        counts[way][f"{program} loads" if not why else f"{program} refuses"] += 1
                        if why:
                            reasons[way][f"{program}: {why}"].append(entry["id"])
            took = time.perf_counter() - began
            if took > SLOW:
                print(f"{entry['id']} {way}: {took:.0f} s", file=sys.stderr, flush=True)
            lines.append(json.dumps([entry["id"], way, outcome.word, sorted(set(outcome.reasons))]))
    for way, row in counts.items():
        total = sum(
            row[word]
            for word in ("equal", "equal but absent meshes", "told", "not told", "refused", "not read", "crashed")
        )
        print(f"== {way}: {total} models; " + ", ".join(f"{n} {word}" for word, n in row.most_common()))
        for why, models in sorted(reasons[way].items(), key=lambda pair: -len(pair[1]))[: words.show]:
            print(f"  {len(models):4} {why}   ({models[0]})")
        for loss, count in told[way].most_common(words.show):
            print(f"  {count:4} models: {loss}")
    if words.json:
        words.json.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
