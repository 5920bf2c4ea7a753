"""What stands in for parts of numba while kernels compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artsim.sim.foundation import jit
from artsim.sim.foundation.errors import ArtsimError
from artsim.sim.foundation.replacements import aside, digest, place

ROOT = Path(__file__).resolve().parents[2]

llvm = pytest.importorskip("llvmlite.binding")
pytestmark = pytest.mark.skipif(jit.disabled(), reason="nothing is compiled")


class Library:
    """A function `name` of the engine that calls others, as numba keeps it: with the libraries that it met, called or
    not."""

    def __init__(self, name: str, calls: list[str], *met: Library) -> None:
        declared = "\n".join(f"declare double @{_symbol(each)}(double)" for each in calls)
        lines = [f"  %{n + 1} = call double @{_symbol(each)}(double %{n})" for n, each in enumerate(calls)]
        body = "\n".join([*lines, f"  ret double %{len(calls)}"])
        text = f"{declared}\ndefine double @{_symbol(name)}(double %0) {{\nentry:\n{body}\n}}"
        self._final_module = llvm.parse_assembly(text)
        self._linking_libraries = list(met)


def _symbol(name: str) -> str:
    return f"_ZN6artsim{name}"


def _defined(module: Any) -> set[str]:
    return {function.name for function in module.functions if not function.is_declaration}


def test_what_is_first_met_where_nobody_calls_is_linked() -> None:
    from artsim.sim.foundation.sparing import linked

    shared = Library("shared", [])
    unused, used = Library("unused", ["shared"], shared), Library("used", ["shared"], shared)
    module = linked(Library("entry", ["used"], unused, used))
    assert {_symbol(name) for name in ("entry", "used", "shared")} <= _defined(module)
    kept = {function.name for function in module.functions if function.linkage.name == "external"}
    assert kept == {_symbol("entry")}


def test_a_missing_function_stops_the_compiler() -> None:
    from artsim.sim.foundation.sparing import linked

    with pytest.raises(RuntimeError, match="not linked: _ZN6artsimmissing"):
        linked(Library("entry", ["missing"]))


# ------------------------------------------------------------------ each replacement only where it fits


def replacements() -> Any:
    from artsim.sim.foundation.sparing import REPLACEMENTS

    return REPLACEMENTS


def names() -> list[str]:
    return [] if jit.disabled() else [each.name for each in replacements() if not each.needed]


def functions() -> list[str]:
    found = [] if jit.disabled() else [function for each in replacements() for function in each.sources]
    return [*dict.fromkeys(found)]


def test_every_replacement_fits_the_numba_at_hand() -> None:
    """Where this fails: read what changed in numba; where the replacement still holds, add the digest to its table."""
    found = aside.__wrapped__(replacements())
    assert not found, {function: digest(function) for differing in found.values() for function in differing}


def test_what_is_replaced_is_among_the_sources_looked_at() -> None:
    for each in replacements():
        assert set(each.functions) <= set(each.sources), each.name


@pytest.mark.parametrize("how", ["another", "gone", "without a source"])
@pytest.mark.parametrize("function", functions())
def test_a_replacement_steps_aside_where_a_function_differs(
    function: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name = place(function)
    others = {"another": lambda a: a, "gone": None, "without a source": eval("lambda a: a")}
    monkeypatch.setattr(owner, name, others[how])
    relying = [each for each in replacements() if function in each.sources]
    assert relying
    if any(each.needed for each in relying):
        with pytest.raises(ArtsimError, match=rf"numba \S+ cannot compile kernels: {function} has changed"):
            aside.__wrapped__(replacements())
    else:
        assert aside.__wrapped__(replacements()) == {each.name: [function] for each in relying}


def compiled_with(cache: Path, *changed: str) -> dict[str, Any]:
    """The output of unfit_numba.py, in a process of its own."""
    command = [sys.executable, "-m", "tests.foundation.unfit_numba", *changed]
    environment = os.environ | {"ARTSIM_CACHE_DIR": str(cache), "TMPDIR": str(cache.parent)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert all(name in done.stderr for name in told["aside"])
    return told


@pytest.fixture(scope="module")
def as_always(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    told = compiled_with(tmp_path_factory.mktemp("cache") / "artsim")
    assert told["aside"] == []
    assert np.frombuffer(bytes.fromhex(told["results"][2])) == pytest.approx(np.sin([0.0, 1.0, 2.0]), rel=1e-15)
    return told


@pytest.mark.parametrize("name", [*names(), "all"])
def test_kernels_give_the_same_without_a_replacement(name: str, as_always: dict[str, Any], tmp_path: Path) -> None:
    chosen = [each for each in replacements() if name in (each.name, "all") and not each.needed]
    told = compiled_with(tmp_path / "artsim", *(function for each in chosen for function in each.functions))
    assert set(told["aside"]) >= {each.name for each in chosen}
    assert told["results"] == as_always["results"]
