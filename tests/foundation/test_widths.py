"""Packs of other widths than WIDTH, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from artsim.sim.foundation.jit import disabled

CODE = """
import re
import sys
from importlib import util
from pathlib import Path
spec = util.find_spec("artsim.sim.foundation.records")
sys.modules[spec.name] = module = util.module_from_spec(spec)
text = re.sub(r"^WIDTH = 8\\b", f"WIDTH = {sys.argv[1]}", Path(spec.origin).read_text(), flags=re.MULTILINE)
exec(compile(text, spec.origin, "exec"), vars(module))
from tests.foundation.body_kernels import main
main()
"""


@pytest.mark.skipif(disabled(), reason="pack width: NUMBA_DISABLE_JIT")
@pytest.mark.parametrize("width", [4, 8, 16])
def test_rows_of_bodies_are_turned_to_strips_and_back(width: int, tmp_path: Path) -> None:
    """Eight numbers of each body, of as many bodies as a pack is wide."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(width)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"ARTSIM_CACHE_DIR": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sides, before, after, sums = map(np.array, json.loads(done.stdout))
    assert sides.shape == (width, 3) and before.shape == (4 * width, max(width, 8))
    taken, given = sides[:, 1], sides[:, 2]
    np.testing.assert_allclose(sums, before[taken].sum(1), rtol=1e-13, atol=1e-13)
    before[given] = before[taken]
    assert np.array_equal(after, before)
