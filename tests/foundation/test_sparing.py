"""What stands in for parts of numba while kernels compile."""

from __future__ import annotations

from typing import Any

import pytest

from artsim.sim.foundation import jit

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
