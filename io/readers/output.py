"""Output, the common base of all open outputs of artsim."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from artsim.io.format.labels import Labels
from artsim.io.gate.gate import open_gated
from artsim.io.gate.kinds import check_schema
from artsim.io.gate.opening import closing_on_error
from artsim.io.gate.probe import probe
from artsim.io.gate.values import attributes_of, first_line, read_texts, read_whole, reading
from artsim.io.output_file.pieces import read_pieces
from artsim.sim.foundation.errors import ArtsimError, ModelError

if TYPE_CHECKING:
    import h5py

    from artsim.sim.geometry.solids import Kept

_LABELS = tuple(name for name in Labels._fields if not name.startswith(("jacobian", "control")))
O = TypeVar("O", bound="Output")


def opened(path: Path, kind: Callable[[Path, h5py.File, bool], O]) -> O:
    """Open an output after a child process has opened and read it. `kind` takes path, file, whether it is written."""

    def open_it() -> O:
        file, written = open_gated(path)
        with closing_on_error(path, file):
            return kind(path, file, written)

    def look() -> None:
        with open_it() as output, suppress(ArtsimError):  # raised again when the process itself opens it
            _ = output.summary(), output.model_text, output.config

    probe(path, look)
    return open_it()


class Output(ABC):
    """An open output of artsim that has passed the gate. Close it, or use it as a context manager."""

    def __init__(self, path: Path, file: h5py.File, kind: str, groups: Sequence[str]) -> None:
        """`file` must have passed the gate. Raises ModelError unless it is this kind of output, with these groups."""
        check_schema(path, file, kind, groups)
        self.path, self._file = path, file
        self.attrs: dict[str, Any] = attributes_of(file)
        self.provenance: dict[str, Any] = attributes_of(file["provenance"])

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """The content that `artsim info FILE` prints, as plain data."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration of the run. Raises ModelError if it is not a JSON object."""
        try:
            config = json.loads(self.provenance.get("config", "{}"))
        except (ValueError, TypeError, RecursionError) as error:
            raise ModelError(f"{self.path}: /provenance config is no JSON: {first_line(error)}") from None
        if not isinstance(config, dict):
            raise ModelError(f"{self.path}: /provenance config is no JSON object")
        return config

    @property
    def model(self) -> dict[str, Any]:
        """Name, format, path and sha256 of the robot's file."""
        with reading(self.path):
            return {name: value for name, value in attributes_of(self._file["model"]).items() if name != "warnings"}

    @property
    def warnings(self) -> list[str]:
        """The warnings about the robot's file when it was read, as printed by `artsim check`."""
        with reading(self.path):
            text = attributes_of(self._file["model"]).get("warnings", "[]")
        try:
            told = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise ModelError(f"{self.path}: /model warnings are no JSON: {first_line(error)}") from None
        if not isinstance(told, list) or not all(isinstance(line, str) for line in told):
            raise ModelError(f"{self.path}: /model warnings are no list of texts")
        return told

    @property
    def model_text(self) -> str:
        """The text of the robot's file as used, expanded. It is untrusted input: parse it with the same limits."""
        with reading(self.path):
            return read_texts(self.path, self._file["model/source"])[0]

    @cached_property
    def joint_bounds(self) -> dict[str, dict[str, float]]:
        """The limits of every joint by name: lower and upper, effort, velocity; those that a joint lacks are inf. Empty
        for a file without them."""
        group = self._file["model"]
        with reading(self.path):
            if not {"joint", *(f"joint_{name}" for name in _BOUNDS)} <= set(group):
                return {}
            names = read_texts(self.path, group["joint"])
            found = {name: read_whole(self.path, group[f"joint_{name}"]) for name in _BOUNDS}
        if any(len(values) != len(names) for values in found.values()):
            return {}
        return {joint: {name: float(found[name][k]) for name in _BOUNDS} for k, joint in enumerate(names)}

    @property
    def kept(self) -> Kept:
        """The shapes as which meshes and height fields collided (sim/geometry/solids.py: with_pieces).

        Raises ModelError if they are damaged.
        """
        with reading(self.path):
            return read_pieces(self._file["model"], self.path)


_BOUNDS = ("lower", "upper", "effort", "velocity")


def read_labels(path: Path, group: h5py.Group) -> Labels:
    """Read the labels of a group. Raises ModelError for columns of Jacobians of no link or dof."""
    texts = {name: read_texts(path, group[name]) for name in _LABELS if name in group}
    labels = Labels(**texts)  # type: ignore[arg-type]  # the fields that are no texts are not among these
    if "jacobian_link" in group and "jacobian_dof" in group:
        link = _indices(path, group["jacobian_link"], len(labels.link))
        dof = _indices(path, group["jacobian_dof"], len(labels.dof))
        labels = labels._replace(jacobian_link=link, jacobian_dof=dof)
    return labels


def _indices(path: Path, dataset: h5py.Dataset, most: int) -> tuple[int, ...]:
    """Read indices below `most`. Raises ModelError for others."""
    values = read_whole(path, dataset)
    if values.ndim != 1 or values.dtype.kind != "i" or np.any((values < 0) | (values >= most)):
        raise ModelError(f"{path}: {dataset.name} must hold indices below {most}")
    indices: tuple[int, ...] = tuple(values.tolist())
    return indices
