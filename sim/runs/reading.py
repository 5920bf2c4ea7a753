"""The settings of how a model is read.

They stand apart since commands that simulate nothing take them, too, and read them without numpy."""

from __future__ import annotations

from typing import Literal

from artsim.sim.runs.setting import Bounds, Group, Setting

COMMON = Group("Common")
READING = Group("Reading the model")
Name = Literal["base", "density", "balance_inertia", "ignore_unsupported"]

OF_MODEL: dict[Name, Setting] = {
    "base": COMMON.setting(
        "fixed",
        "How the root link is attached: fixed to the world (default) or floating; by name for a model of a scene.",
        choices=("fixed", "floating"),
    ),
    "density": READING.setting(
        None,
        "Density [kg/m³] from which links of a URDF without inertia get that of their shapes; water has 1000.",
        bounds=Bounds("a positive number in kg/m³", 0, open=True),
    ),
    "balance_inertia": READING.setting(
        False, "Replace inertias that no rigid body can have by the nearest valid ones; warnings state the change."
    ),
    "ignore_unsupported": READING.setting(
        False,
        "Leave out, with a warning, elements of an MJCF or SDF file that artsim does not support, and reversed "
        "limits and mimics of missing joints in a URDF.",
    ),
}
"""By name; a file keeps their values, so that its text is read in the same way again."""
