"""Addresses of arrays, as machine code receives them."""

from __future__ import annotations

import numpy as np
import pytest

from artsim.sim.foundation.records import address_of

pytestmark = pytest.mark.small


def test_address_of_the_first_entry() -> None:
    whole = np.arange(24.0).reshape(2, 3, 4)
    constant = whole.copy()
    constant.setflags(write=False)
    for values in (whole, constant, whole[1], whole[:, 1:, ::2], whole[..., 3], np.zeros((0, 3)), np.array(1)):
        assert address_of(values) == values.__array_interface__["data"][0]
