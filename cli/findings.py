"""Findings of the doctor as lines and as data: each with file and line, why it matters, and the edit that mends it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from artsim.sim.foundation.errors import printable

if TYPE_CHECKING:
    from artsim.loaders.doctor.examine import Examination
    from artsim.loaders.doctor.finding import Finding
    from artsim.sim.articulation.description import Note

MOST = 3  # findings of one code that are printed


def finding_lines(examination: Examination) -> Iterator[str]:
    """The findings by their codes: the first of each, then why it matters and how to mend it."""
    groups: dict[str, list[Finding]] = {}
    for finding in examination.findings:
        groups.setdefault(finding.code, []).append(finding)
    for code, found in groups.items():
        for finding in found[:MOST]:
            yield printable(f"{finding.grade}: {finding}")
        if len(found) > MOST:
            yield f"  {len(found) - MOST} more of {code}; --json lists all"
        yield f"  {found[0].why}"
        mended = [finding for finding in found if finding.mend]
        if mended:
            yield printable(f"  mend: artsim edit … {shlex.join(mended[0].mend)}")
    if examination.unread:
        files = "1 mesh file was" if examination.unread == 1 else f"{examination.unread} mesh files were"
        yield f"hint: {files} not read, being large: rules on shapes leave them out (--meshes reads all)"


def findings_object(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings for --json."""
    return [
        {
            "code": finding.code,
            "grade": finding.grade,
            "file": finding.source.file,
            "line": finding.source.line,
            "message": finding.told,
            "why": finding.why,
            "mend": list(finding.mend),
            "links": list(finding.links),
        }
        for finding in findings
    ]


def untold(notes: Sequence[Note], examination: Examination) -> list[Note]:
    """The warnings of the readers that no finding repeats."""
    return [note for note in notes if note not in examination.codes]
