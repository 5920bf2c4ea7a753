"""Exports runs as tables: CSV, Parquet and NumPy archives."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.lib import format as npy

from artsim.io.exports.request import Export
from artsim.io.exports.rows import Column, blocks_of, columns_of, contact_columns, contact_rows, table_rows
from artsim.io.format import schema
from artsim.io.output_file.whole_file import written_whole
from artsim.io.readers.recording import Recording
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array

_WITHOUT_CONTACTS = "contacts are counted in it; --contacts-csv and --contacts-parquet write their table"
_WITHOUT_CONSTRAINTS = "constraint rows and delassus are left out; --npz holds them"


def write_csv(export: Export) -> list[str]:
    """Write a line per row and a column per entry, `time,qpos.joint_1,…`; every number can be read back exactly."""
    recording = export.recording
    with (
        written_whole(export.output, written=export.written) as path,
        path.open("w", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([harmless(column.name) for column in columns_of(recording)])
        for start, stop in blocks_of(recording):
            writer.writerows(table_rows(recording, start, stop).tolist())
    return _left_out(recording)


def _left_out(recording: Recording) -> list[str]:
    """Notes about data that a table of one line per row does not hold."""
    notes = {_WITHOUT_CONTACTS: "contacts", _WITHOUT_CONSTRAINTS: "delassus"}
    return [note for note, name in notes.items() if recording.has_tables(name)]


def write_parquet(export: Export) -> list[str]:
    """Write the columns of the CSV as float64, with units and attributes as metadata. Raises UsageError: no pyarrow."""
    recording = export.recording
    blocks = (list(table_rows(recording, *rows).T) for rows in blocks_of(recording))
    _write_parquet(export, columns_of(recording), blocks)
    return _left_out(recording)


def write_contacts_csv(export: Export) -> list[str]:
    """Write a line per contact: time, step, names of links and geoms, point, normal, … Raises UsageError if none."""
    blocks = _contacts(export.recording)
    with (
        written_whole(export.output, written=export.written) as path,
        path.open("w", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([column.name for column in contact_columns(export.recording)])
        for columns in blocks:
            writer.writerows(zip(*(map(harmless, column.tolist()) for column in columns), strict=True))
    return []


def harmless(value: object) -> object:
    """A name that a spreadsheet shows and does not evaluate: an apostrophe is put before the beginning of a formula
    (OWASP, CSV injection). Numbers are unchanged.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def write_contacts_parquet(export: Export) -> list[str]:
    """Write the columns of the contacts with units as metadata. Raises UsageError: no contacts, no pyarrow."""
    blocks = _contacts(export.recording)
    _write_parquet(export, contact_columns(export.recording), blocks)
    return []


def _contacts(recording: Recording) -> Iterator[list[Array]]:
    if not recording.has_contacts:
        raise UsageError(f"{recording.path}: holds no contacts")
    return (contact_rows(recording, *rows) for rows in blocks_of(recording))


def _write_parquet(export: Export, columns: Sequence[Column], blocks: Iterable[Sequence[Array]]) -> None:
    """Write blocks of columns: numbers of any type, and texts as objects."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError('Parquet needs pyarrow: pip install "artsim[parquet]"') from None
    recording = export.recording
    texts = {"link_a", "link_b", "geom_a", "geom_b"}
    types = {"step": pyarrow.int64(), **dict.fromkeys(texts, pyarrow.string())}
    fields = [
        pyarrow.field(column.name, types.get(column.name, pyarrow.float64()), metadata={"units": column.unit})
        for column in columns
    ]
    about = {"artsim": json.dumps({**recording.attrs, "dt": recording.dt, "every": recording.every})}
    layout = pyarrow.schema(fields, metadata=about)
    with written_whole(export.output, written=export.written) as path, parquet.ParquetWriter(path, layout) as writer:
        for block in blocks:
            arrays = [
                pyarrow.array(np.ascontiguousarray(values), type=field.type)
                for values, field in zip(block, fields, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=layout))


def write_npz(export: Export) -> list[str]:
    """Write an array per variable (Jacobians dense), and `labels/…`, `units/…`, `contact/…`, `controls/…`."""
    recording = export.recording
    with (
        written_whole(export.output, written=export.written) as path,
        zipfile.ZipFile(path, "w", allowZip64=True) as archive,
    ):
        for name in ("time", *recording.variables):
            _add_variable(archive, recording, name)
        for name, array in _smaller_arrays(recording).items():
            with archive.open(f"{name}.npy", "w") as stream:
                npy.write_array(stream, np.asanyarray(array), allow_pickle=False)
    return []


def _add_variable(archive: zipfile.ZipFile, recording: Recording, name: str) -> None:
    """Write one variable, block by block."""
    dims = schema.dense_variable(name).dims
    shape = (recording.n_valid, *(len(recording.names_of(dim)) for dim in dims[1:]))
    dtype = np.dtype(schema.TABLE[f"trajectory/{name}"].dtype)
    head = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
        npy.write_array_header_2_0(stream, head)
        for start, stop in blocks_of(recording, () if name == "time" else (name,)):
            stream.write(np.ascontiguousarray(recording.read(name, start, stop), dtype).tobytes())


def _smaller_arrays(recording: Recording) -> dict[str, Array]:
    """Labels, units, contacts and inputs."""
    labels = {key: of for key, of in recording.labels._asdict().items() if of and not key.startswith("jacobian")}
    arrays = {f"labels/{key}": np.array(of) for key, of in labels.items() if not key.endswith("_units")}
    arrays["labels/touching_link"] = np.array(recording.labels.touching_link)
    arrays |= {f"units/{name}": np.array(recording.meaning(name)["units"]) for name in recording.variables}
    arrays |= {f"units/{key}": np.array(of) for key, of in labels.items() if key.endswith("_units")}
    for group in recording.tables:
        arrays |= {f"{group}/{name}": values for name, values in recording.read_table(group).items()}
    controls = recording.controls
    return arrays | {f"controls/{name}": getattr(controls, name) for name in ("start_step", *schema.CONTROL_VALUES)}
