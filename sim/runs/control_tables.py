"""The Inputs of a plan, and the controls of one sample or of many as tables over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artsim.sim.foundation.errors import UsageError
from artsim.sim.foundation.rotations import Real
from artsim.sim.run_data.run_records import Inputs
from artsim.sim.runs.controls import VALUES, Controls
from artsim.sim.runs.plan import Plan
from artsim.sim.stepping.packs import PackControls


def make_inputs(plan: Plan, controls: Controls) -> Inputs:
    """Make the Inputs record from the plan's constants and these control rows; missing controls come from the plan.

    Raises UsageError: controls for another number of dofs or actuators, without the first step, or not finite.
    """
    tables = control_tables(plan, [controls])
    return Inputs(
        **{name: np.ascontiguousarray(values) for name, values in plan.inputs.items()},
        start_step=np.ascontiguousarray(controls.start_step, np.int64),
        **{name: values[0] for name, values in tables.items()},
    )


def control_tables(plan: Plan, controls: Sequence[Controls]) -> dict[str, Real]:
    """The controls of n samples over time, by their names in Inputs, each (n, rows, ·); missing ones come from the
    plan. The arrays are copies, into which a Python controller may write. The rows of all samples begin at equal steps.

    Raises UsageError as `make_inputs` does.
    """
    for each in controls:
        _check_shapes(plan, each)
    tables = {name: np.array([getattr(each, name) for each in controls], float, order="C") for name in VALUES[:-1]}
    tables["control"] = np.array([_controls_of_actuators(plan, each) for each in controls], float, order="C")
    for name, values in tables.items():
        if not np.isfinite(values).all():
            raise UsageError(f"controls: {name} has numbers that are not finite")
    return tables


def pack_controls(plan: Plan, controls: Sequence[Controls]) -> PackControls:
    """The inputs of all lanes, or of each lane; all begin at the same steps. Raises UsageError as `make_inputs`."""
    return PackControls(np.array(controls[0].start_step), **control_tables(plan, controls))


def _controls_of_actuators(plan: Plan, controls: Controls) -> Real:
    given: Real = controls.control
    return given if given.shape[1] > 0 else np.tile(plan.control, (len(given), 1))


def _check_shapes(plan: Plan, controls: Controls) -> None:
    """Refuse controls of wrong shape, which kernels do not check."""
    width = controls.control.shape[1]
    if width not in (0, plan.control.size):
        raise UsageError(f"controls: there are {width} for {plan.control.size} actuators")
    if controls.nv != plan.robot.nv:
        raise UsageError(f"controls: there are torques for {controls.nv} of {plan.robot.nv} degrees of freedom")
    if controls.rows == 0 or controls.start_step[0] != 0:
        raise UsageError("controls: no row begins at step 0")
