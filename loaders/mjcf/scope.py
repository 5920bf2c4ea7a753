"""Scope: the settings and classes by which the elements of an attached model are meant, not the whole's."""

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
        """The settings that an element of this model, or of one attached to it, is meant by."""
        inner = self.reading.scope_of(element)
        return inner.compiler if isinstance(inner, Scope) else self.compiler

    def prefixed(self, prefix: str, kinds: Collection[str]) -> Scope:
        """The same for elements whose assets got a prefix to their names."""
        return replace(self, defaults=self.defaults.prefixed(prefix, kinds))
