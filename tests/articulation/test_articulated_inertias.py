"""Articulated inertias that are kept where only M̂'s diagonal changes: the same bits as from nothing."""

from __future__ import annotations

import numpy as np
import pytest

from artsim.sim.articulation.state import RobotBundle, make_state, make_workspace
from artsim.sim.foundation.jit import bind
from tests.articulation.articulation_kernels import ENTRY, Loads, LoadsBundle
from tests.articulation.test_dynamics import assert_close, random_case


@pytest.mark.parametrize("seed", range(8))
def test_bodies_beyond_a_changed_entry_keep_their_inertias(seed: int) -> None:
    """For each dof whose entry changes, and for none; M̂ a = torque - bias checks the numbers, by other algorithms."""
    case = random_case(seed)
    model, nv = case.robot.model, case.robot.nv
    state = make_state(model)
    state.qpos[:], state.qvel[:] = case.qpos[0], case.qvel[0]
    rng = np.random.default_rng(seed)
    before = rng.uniform(0.1, 2.0, nv)
    diagonal, kept, anew = before.copy(), np.zeros(nv), np.zeros(nv)
    loads = Loads(before, diagonal, case.tau[0], kept, anew)
    solve = bind(ENTRY, 1, RobotBundle(model, state, make_workspace(model)), LoadsBundle(loads))
    known = case.robot.compute(case.qpos[0], case.qvel[0], quantities=("mass_matrix", "bias"))
    bare = known["mass_matrix"] - np.diag(model.armature)
    for k in range(-1, nv):
        diagonal[:] = before
        if k >= 0:
            diagonal[k] += 3.0
        solve()
        assert np.array_equal(kept, anew)
        assert_close((bare + np.diag(diagonal)) @ kept, case.tau[0] - known["bias"], 1e-9, unit=1.0)
