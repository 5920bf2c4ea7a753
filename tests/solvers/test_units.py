"""Masses in another unit: tolerances are relative to velocities, and none is a number of kilograms or newtons.

A model whose masses, forces and gains are multiplied by a power of 2 makes the same velocities, byte by byte.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from artsim.loaders.load import load_text
from tests.benchmarks.structures import arch
from tests.contact.test_contact_closed_forms import FLOOR, free, mjcf
from tests.contact.test_stuck import finger
from tests.simulation import simulate


def heavier(text: str, scale: float) -> str:
    """A model with all masses, inertias and efforts times `scale`."""
    names = "mass value|mass|density|diaginertia|ixx|iyy|izz|effort"
    given = re.compile(rf'\b({names})="([^"]+)"')
    return given.sub(lambda m: f'{m[1]}="{" ".join(repr(scale * float(value)) for value in m[2].split())}"', text)


def pile() -> str:
    """Boxes that lie one on the other, each turned against the one below."""
    shape = 'type="box" size=".06 .05 .05" mass="1"'
    boxes = [free(shape, f"{0.01 * n} 0 {0.05 + 0.1 * n}", name=f"b{n}", turned=f"0 0 {n}") for n in range(6)]
    return mjcf(FLOOR + "".join(boxes), geom='friction=".5"')


PRESSED = {"stiffness": {"j0": 1e5}, "damping": {"j0": 1e3}}
SCENES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pile": ("pile.xml", pile(), {"v0": {"b2.vx": 1.0}}),
    "finger": ("finger.urdf", finger((0.1, 0.08), 0.5), {**PRESSED, "target": {"j0": 1.5}, "ground": True}),
    "arch": ("arch.xml", arch(7, 0.4, 0.5)[0](0.25), {}),
}


@pytest.mark.parametrize("scale", [2.0**20, 2.0**-20])
@pytest.mark.parametrize("name", SCENES)
def test_masses_in_another_unit_give_the_same_bytes(name: str, scale: float) -> None:
    """Masses, forces and gains times a power of 2: nothing is compared with a number of kilograms."""
    file, text, options = SCENES[name]
    runs = []
    for factor in (1.0, scale):
        gains = {
            key: {joint: factor * value for joint, value in options[key].items()}
            for key in ("stiffness", "damping")
            if key in options
        }
        given: dict[str, Any] = {"contacts": True, "dt": 0.004, "steps": 25, "record": ("qpos", "qvel")}
        runs.append(simulate(load_text(heavier(text, factor), name=file), **{**given, **options, **gains}))
    assert np.ptp(runs[0]["qvel"], axis=0).max() > 1e-12
    assert runs[1].bytes() == runs[0].bytes()
