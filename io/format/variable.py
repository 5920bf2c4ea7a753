"""Variable, a line of the schema, and the unit that it has for a robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple  # 5 times as fast to define as a dataclass, and every run imports these


class Variable(NamedTuple):
    """One dataset: the names of its dimensions, unit, meaning and storage type.

    `unit` is a text; where the entries of a dimension may differ, it contains the name of a coordinate variable in
    braces: `{dof_units}` becomes "rad/s" if all dofs agree and "see dof_units" otherwise; text after the brace is kept.
    """

    dims: tuple[str, ...]
    unit: str
    meaning: str
    dtype: str = "f8"  # numpy's name, or "str" (variable-length UTF-8)
    on_request: bool = False  # trajectory only: written if requested by name
    comment: str = ""  # beside the meaning, which must fit on a plot's axis


def line(
    dims: str, unit: str, meaning: str, comment: str = "", *, dtype: str = "f8", on_request: bool = False
) -> Variable:
    """A line of the table, with the names of the dimensions as words."""
    return Variable(tuple(dims.split()), unit, meaning, dtype, on_request, comment)


TIME = Variable(("time",), "s", "time", comment="since the start of the run; row k is step k * every")


def unit_of(variable: Variable, units: Mapping[str, Sequence[str]]) -> str:
    """The `units` attribute: "rad/s" if all entries agree, "see dof_units" otherwise."""
    text = variable.unit
    for name, values in units.items():
        brace = f"{{{name}}}"
        if brace in text:
            text = text.replace(brace, _common(name, values))
    short = _SHORT.get(text.replace("independent_", ""), text)
    return short if short == text or "independent_" not in text else short.replace("dof_units", "independent_dof_units")


def _common(name: str, values: Sequence[str]) -> str:
    return values[0] if len(set(values)) == 1 else f"see {name}"


_SHORT = {
    "rad/s/s": "rad/s^2",
    "m/s/s": "m/s^2",
    "rad/s s": "rad",
    "m/s s": "m",
    "N m s per dof_units": "kg m^2",
    "N s per dof_units": "kg",
    "rad/s/s per force_units": "1/(kg m^2)",
    "m/s/s per force_units": "1/kg",
    "N m per (dof_units s)": "N m/rad",
    "N per (dof_units s)": "N/m",
    "N m per dof_units": "N m s/rad",
    "N per dof_units": "N s/m",
    "rad/s/s per (dof_units s)": "1/s^2",
    "m/s/s per (dof_units s)": "1/s^2",
    "rad/s/s per dof_units": "1/s",
    "m/s/s per dof_units": "1/s",
    "see dof_units/s per (dof_units s)": "see dof_units, per s and (dof_units s)",
    "see dof_units/s per dof_units": "see dof_units, per s and dof_units",
    "see twist_units per (dof_units s)": "see twist_units, per (dof_units s)",
    "see twist_units/s per (dof_units s)": "see twist_units, per s and (dof_units s)",
    "see dof_units/s": "see dof_units, per s",
    "see twist_units/s": "see twist_units, per s",
    "see twist_units/s per dof_units": "see twist_units, per s and dof_units",
    "see dof_units/s per force_units": "see dof_units, per s and force_units",
    "see dof_units s": "see dof_units, times s",
}
