"""solref and solimp: the softness of a constraint."""

from __future__ import annotations

from artsim.loaders.mjcf.reading import Item, describe
from artsim.sim.articulation.description import REFERENCE, Softness


def read_softness(item: Item, reference: str, impedance: str) -> Softness:
    """The softness from solref and solimp, under the given names; missing numbers are MuJoCo's defaults."""
    solref: tuple[float, float] | None = None
    solimp: tuple[float, float, float, float, float] | None = None
    if item.has(reference):
        first, second = item.filled(reference, (0.02, 1.0))
        solref = (first, second)
        if (first > 0) != (second > 0):  # MuJoCo checks the signs when it runs
            what = f"{describe(item.element)}: {reference} {first:g} {second:g} has mixed signs"
            item.reading.note(item.element, f"{what}: MuJoCo's default is used", guess=True)
            solref = None if reference == "solreffriction" else REFERENCE
        elif first == 0 and reference != "solreffriction":  # sliding has no position to return to
            item.refuse(f"{reference} is {first:g} {second:g}, want two positive or two negative numbers")
    if item.has(impedance):
        d0, dwidth, width, midpoint, power = item.filled(impedance, (0.9, 0.95, 0.001, 0.5, 2.0))
        solimp = (d0, dwidth, width, midpoint, power)
    return Softness(solref, solimp)
