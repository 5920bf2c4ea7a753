"""Settings and classes of an attached model, which hold for its elements in place of those of the whole model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from artsim.loaders.elements import Element
from artsim.loaders.mjcf.compiler import Compiler
from artsim.loaders.mjcf.defaults import Defaults
from artsim.loaders.mjcf.reading import MjcfReading
from artsim.sim.foundation.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """The reading of one model (its file, its folder), its <compiler> and its <default> classes."""

    reading: MjcfReading
    compiler: Compiler
    defaults: Defaults

    def compiler_at(self, element: Element) -> Compiler:
        """The compiler settings that hold for an element of this model, or of one attached to it."""
        inner = self.reading.scope_of(element)
        return inner.compiler if isinstance(inner, Scope) else self.compiler

    def prefixed(self, prefix: str, kinds: Collection[str]) -> Scope:
        """The scope for elements whose assets have a prefix to their names."""
        return replace(self, defaults=self.defaults.prefixed(prefix, kinds))
