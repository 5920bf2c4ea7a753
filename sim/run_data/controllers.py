"""The built-in controllers by their names in --controller."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.run_data.run_records import COMPUTED_TORQUE, GRAVITY_COMPENSATION, NO_CONTROLLER


class Controller(NamedTuple):
    """A built-in controller: its law, and how it uses targets."""

    law: int  # Inputs.controller
    follows: bool = False  # it moves joints to targets without drives
    holds: bool = False  # it holds the initial position and takes no targets


CONTROLLERS = {
    "none": Controller(NO_CONTROLLER),
    "hold": Controller(COMPUTED_TORQUE, holds=True),
    "gravity-compensation": Controller(GRAVITY_COMPENSATION),
    "computed-torque": Controller(COMPUTED_TORQUE, follows=True),
}
