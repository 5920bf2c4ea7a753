"""Exports runs as MCAP logs: a topic per variable with messages by entry, frames for Foxglove, contacts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from artsim.io.exports.request import Export
from artsim.io.exports.rows import blocks_of, names_of_entries
from artsim.io.format import schema
from artsim.io.output_file.whole_file import written_whole
from artsim.io.readers.recording import Recording
from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.records import Array

_MOST_SECONDS = 2**32  # largest number of seconds in Foxglove's time stamps
_TRANSFORMS = "foxglove.FrameTransforms"
Messages = Callable[[int, int], Iterator[dict[str, Any]]]


def write_mcap(export: Export) -> list[str]:
    """JSON messages, one per row: `/qpos` {"joint_1": …}, `/tf`, `/contacts`.

    Raises UsageError: mcap is not installed, or times exceed its nanoseconds.
    """
    try:
        from mcap.writer import Writer
    except ImportError:
        raise UsageError('MCAP needs the package mcap: pip install "artsim[mcap]"') from None
    recording = export.recording
    interval = recording.every * recording.dt
    if not recording.n_valid * interval < _MOST_SECONDS:
        raise UsageError(f"{recording.path}: {recording.n_valid} rows, {interval:g} s apart, end beyond MCAP's times")
    with written_whole(export.output, written=export.written) as path, path.open("wb") as stream:
        writer: Any = Writer(stream)
        writer.start(profile="", library="artsim")
        writer.add_metadata("artsim", {key: str(value) for key, value in recording.attrs.items()})
        topics = dict(_topics(recording))
        channels = {topic: _channel(writer, topic, title) for topic, (title, _) in topics.items()}
        for start, stop in blocks_of(recording):
            streams = [(channels[topic], messages(start, stop)) for topic, (_, messages) in topics.items()]
            for row in range(start, stop):
                now = _nanoseconds(recording, row)
                for channel, messages in streams:
                    data = json.dumps(next(messages), separators=(",", ":")).encode()
                    writer.add_message(channel, now, data, now, row)
        writer.finish()
    fine = interval >= 1e-9 or recording.n_valid < 2
    return [] if fine else [f"rows are {interval:.3g} s apart, MCAP's times a nanosecond: several have the same"]


def _nanoseconds(recording: Recording, row: int) -> int:
    return round(row * recording.every * recording.dt * 1e9)


def _channel(writer: Any, topic: str, title: str) -> int:
    layout = {"title": title, "type": "object"}
    schema_id = writer.register_schema(name=title, encoding="jsonschema", data=json.dumps(layout).encode())
    channel: int = writer.register_channel(topic=topic, message_encoding="json", schema_id=schema_id)
    return channel


def _topics(recording: Recording) -> Iterator[tuple[str, tuple[str, Messages]]]:
    """Each topic with the title of its schema and the function that yields its messages of rows start … stop."""
    for name in recording.variables:
        yield f"/{name}", (f"artsim.{name}", _entries(recording, name))
    if {"link_position", "link_quaternion"} <= set(recording.variables):
        yield "/tf", (_TRANSFORMS, lambda start, stop: _transforms(recording, start, stop))
    if recording.has_contacts:
        yield "/contacts", ("artsim.contacts", lambda start, stop: _contacts(recording, start, stop))


def _entries(recording: Recording, name: str) -> Messages:
    entries = [entry or name for entry in names_of_entries(recording, name)]

    def messages(start: int, stop: int) -> Iterator[dict[str, Any]]:
        for values in recording.read_stored(name, start, stop).reshape(stop - start, -1):
            yield dict(zip(entries, _json_numbers(values), strict=True))

    return messages


def _json_numbers(values: Array) -> list[float | None]:
    """Numbers for JSON, with null for NaN and infinity."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _transforms(recording: Recording, start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Frames of all links in the world, in the form of Foxglove's 3D panel."""
    places = recording.read("link_position", start, stop)
    turns = recording.read("link_quaternion", start, stop)[..., [1, 2, 3, 0]]
    for row, place, turn in zip(range(start, stop), places, turns, strict=True):
        second, rest = divmod(_nanoseconds(recording, row), 1_000_000_000)
        yield {
            "transforms": [
                {
                    "timestamp": {"sec": second, "nsec": rest},
                    "parent_frame_id": "world",
                    "child_frame_id": link,
                    "translation": dict(zip("xyz", _json_numbers(p), strict=True)),
                    "rotation": dict(zip("xyzw", _json_numbers(q), strict=True)),
                }
                for link, p, q in zip(recording.labels.link, place, turn, strict=True)
                if link != "world"
            ]
        }


def _contacts(recording: Recording, start: int, stop: int) -> Iterator[dict[str, Any]]:
    found = recording.read_contacts(start, stop)
    ends = np.cumsum(found["contact_count"])
    labels = {"link": recording.labels.touching_link, "geom": recording.labels.geom}
    for first, end in zip(ends - found["contact_count"], ends, strict=True):
        yield {"contacts": [_contact(found, labels, n) for n in range(first, end)]}


def _contact(found: dict[str, Array], labels: dict[str, tuple[str, ...]], n: int) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name in schema.CONTACT_TABLE:
        kind, _, side = name.partition("_")
        value = found[name][n]
        told[name] = labels[kind][value] if side in ("a", "b") else value.tolist()
    return told
