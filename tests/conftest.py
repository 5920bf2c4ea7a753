"""What the tests share: where the public models are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest

hypothesis.settings.register_profile("any machine", deadline=None)  # no test fails for its speed
hypothesis.settings.load_profile("any machine")
ROOT = Path(__file__).resolve().parents[1]


def corpus() -> Path | None:
    """The folder of public models: $ARTSIM_CORPUS, else ../shared/corpus beside the repository, else None."""
    folder = Path(os.environ.get("ARTSIM_CORPUS", ROOT.parent / "shared" / "corpus"))
    return folder if (folder / "index.json").is_file() else None


def corpus_entries(format_: str) -> list[dict[str, Any]]:
    """The index's entries of one format; `path` made absolute."""
    folder = corpus()
    if folder is None:
        return []
    entries = json.loads((folder / "index.json").read_text())
    return [entry | {"path": str(folder / entry["path"])} for entry in entries if entry["format"] == format_]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with an argument `corpus_urdf` or `corpus_mjcf` runs once for every model, or is skipped without them."""
    for name, format_ in (("corpus_urdf", "urdf"), ("corpus_mjcf", "mjcf")):
        if name in metafunc.fixturenames:
            entries = corpus_entries(format_)
            parameters = [pytest.param(entry, id=entry["id"]) for entry in entries] or [
                pytest.param(None, id="none", marks=pytest.mark.skip(reason="no corpus; set ARTSIM_CORPUS"))
            ]
            metafunc.parametrize(name, parameters)
