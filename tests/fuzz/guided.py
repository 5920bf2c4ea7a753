"""`python -m tests.fuzz.guided READER --hours 1`: inputs guided by coverage, for readers that are written in Python.

Needs Atheris (`pip install atheris`), which has packages for Linux and few versions of Python: for this tool only, and
no requirement of the tests. What libraries in C read (XML, HDF5, COLLADA) it cannot see into; there `tests.fuzz` does
as well. An input that fails ends the run and is kept in the folder where the command was typed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path


def main() -> None:
    """Import what is to be seen into, then let Atheris make inputs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided")
    parser.add_argument("reader")
    parser.add_argument("--hours", type=float, default=1.0)
    given = parser.parse_args()
    import atheris  # type: ignore[import-not-found,unused-ignore]

    warnings.simplefilter("ignore")
    with atheris.instrument_imports(include=["artsim.collision", "artsim.io", "artsim.loaders"]):
        import artsim.collision.gmsh
        import artsim.io.inputs.configurations
        import artsim.io.inputs.control_files
        import artsim.loaders.load
        import artsim.loaders.mjcf.elevation  # noqa: F401
        from tests.fuzz.readers import READERS
    from artsim.sim.foundation.errors import ArtsimError

    reader = READERS[given.reader]
    folder = Path(tempfile.mkdtemp(prefix="artsim-guided-"))
    seeds = folder / "seeds"
    seeds.mkdir()
    for n, seed in enumerate(reader.seeds()):
        (seeds / str(n)).write_bytes(seed)
    path = folder / f"input{reader.suffix}"

    def look(data: bytes) -> None:
        path.write_bytes(data)
        try:
            reader.read(path)
        except ArtsimError as error:
            assert "\n" not in str(error)

    seconds = max(1, round(3600 * given.hours))
    limits = ["-max_len=65536", "-timeout=5", "-rss_limit_mb=2048", f"-max_total_time={seconds}"]
    atheris.Setup([sys.argv[0], *limits, str(seeds)], look)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
