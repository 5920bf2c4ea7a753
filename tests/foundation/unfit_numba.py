"""Small kernels compiled by a numba that a replacement does not fit; a script of test_sparing.py.

    python -m tests.foundation.unfit_numba FUNCTION …

Each of the named functions of numba does as before but is another, as in a release that changed its source. Printed
are, as JSON, the replacements that stepped aside and the results of kernels in both widths.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from artsim.sim.foundation.compiler import aside
from artsim.sim.foundation.jit import bind
from artsim.sim.foundation.records import WIDTH
from artsim.sim.foundation.replacements import place
from artsim.sim.foundation.sparing import REPLACEMENTS
from tests.foundation.small_entries import Inner, Outer, Table, entry, make_table

KERNELS = "tests.foundation.small_kernels"


def change(function: str) -> None:
    """Put another function in the place of one of numba's."""
    owner, name = place(function)
    original = getattr(owner, name)
    setattr(owner, name, lambda *given, **named: original(*given, **named))


def results() -> list[str]:
    """The bytes of tables after kernels that index arrays, call each other, and ask for members of bundles."""
    tables = [make_table(3, width) for width in (1, WIDTH)]
    for table, width in zip(tables, (1, WIDTH), strict=True):
        table.angle[:].reshape(-1)[:] = range(3 * width)
        bind(entry("sines", KERNELS), width, table)()
    kernel = replace(entry("uses_members", KERNELS), records=(Table, Outer))
    bind(kernel, 1, tables[0], Outer(None, Inner(tables[0], None), tables[0]))()
    return [array.tobytes().hex() for table in tables for array in table]


if __name__ == "__main__":
    for function in sys.argv[1:]:
        change(function)
    print(json.dumps({"aside": [*aside(REPLACEMENTS)], "results": results()}))
