"""SampleContacts: the contacts that samples record, of which a row can have any number."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from artsim.sim.foundation.records import Array
from artsim.sim.run_data.run_records import CONTACT_TABLE


class SampleContacts:
    """Contacts of a block of samples, by field of Block; those of a sample are added row after row."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """`shapes`: of one contact, by field of Block."""
        self._none = {name: np.zeros((0, *shapes[name])) for name in CONTACT_TABLE}
        self._parts: list[Mapping[str, Array]] = []
        self._samples: list[Array] = []

    def clear(self) -> None:
        """Forget all contacts."""
        self._parts, self._samples = [], []

    def add(self, samples: Array, contacts: Mapping[str, Array]) -> None:
        """Add contacts, copies or views of arrays that nobody writes into, with the sample of each (contacts,)."""
        self._parts.append(contacts)
        self._samples.append(samples)

    def in_order(self, ends: Array) -> tuple[Array, dict[str, Array]]:
        """The sample of each contact, and the contacts: sample after sample and row after row, without those in or
        after the step `ends` (samples,) of their sample."""
        samples = np.concatenate([np.zeros(0, np.int64), *self._samples])
        whole = {name: np.concatenate([part[name] for part in (self._none, *self._parts)]) for name in CONTACT_TABLE}
        order = np.argsort(samples, kind="stable")
        order = order[whole["contact_step"][order] < ends[samples[order]]]
        return samples[order], {name: values[order] for name, values in whole.items()}
