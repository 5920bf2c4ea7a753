"""Models stored in outputs: read from their text, with the meshes of the original file if it still exists."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from artsim.loaders.load import is_scene, load_articulation, load_stored_scene, load_text
from artsim.loaders.scene import StoredModel
from artsim.sim.articulation.description import Articulation
from artsim.sim.foundation.dataclass import dataclass
from artsim.sim.foundation.errors import ArtsimError, MissingInputError
from artsim.sim.runs.configuration import RunConfig

Base = Literal["fixed", "floating"]


@dataclass(frozen=True)
class StoredReader:
    """Reader of stored models for viewing. Meshes come from the folder of the model's file, if the file still has the
    same text: an output from anywhere must not choose which files are read here. Otherwise `packages` and `mesh_root`
    are searched.
    """

    config: RunConfig
    packages: Mapping[str, Path]
    mesh_root: Path | None

    def read(self, text: str, name: str, path: str) -> Articulation:
        """The model, or scene, of this text, with its name in messages and the path of its file. Raises ModelError."""
        if not is_scene(text):
            return self._one(text, f"<model {name!r}>", path, self.config.base)  # type: ignore[arg-type]
        return load_stored_scene(text, f"<scene {name!r}>", self._of_scene)

    def _of_scene(self, stored: StoredModel, called: str) -> Articulation:
        return self._one(stored.text, called, stored.file, stored.base)

    def _one(self, text: str, name: str, path: str, base: Base) -> Articulation:
        balance, ignore = self.config.balance_inertia, self.config.ignore_unsupported
        try:
            if not Path(path).is_file():  # standard input and pipes, too
                raise MissingInputError(f"{path}: no such file")
            found = load_articulation(
                path,
                base=base,
                packages=self.packages,
                mesh_root=self.mesh_root,
                balance_inertia=balance,
                ignore_unsupported=ignore,
                density=self.config.density,
            )
            if found.text == text:
                return found
        except (ArtsimError, OSError, ValueError):
            pass
        return load_text(
            text,
            name=name,
            base=base,
            packages=self.packages,
            mesh_root=self.mesh_root,
            balance_inertia=balance,
            ignore_unsupported=ignore,
            meshes=bool(self.packages or self.mesh_root),
        )


def load_stored(text: str, name: str, config: RunConfig) -> Articulation:
    """A model stored in a file, under the limits of any other input."""
    return load_text(
        text,
        name=f"<model {name!r}>",
        base=config.base,  # type: ignore[arg-type]
        balance_inertia=config.balance_inertia,
        ignore_unsupported=config.ignore_unsupported,
        meshes=False,
    )
