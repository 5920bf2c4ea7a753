"""The simulation of a plan, in the coordinates of its configuration."""

from __future__ import annotations

from artsim.sim.runs.controls import Controls
from artsim.sim.runs.limit_choice import leaves_limits
from artsim.sim.runs.plan import Plan
from artsim.sim.runs.simulate import ControllerFunction, Simulation


def simulation_of(
    plan: Plan, controls: Controls, controller: ControllerFunction | None = None, threads: int = 1
) -> Simulation:
    """Make the simulation of a plan; `threads`: see Simulation."""
    if plan.config.is_maximal:
        from artsim.sim.runs.maximal_simulation import MaximalSimulation  # other runs do not need it

        return MaximalSimulation(plan, controls, controller)
    if plan.config.accuracy is not None:
        from artsim.sim.runs.accurate_simulation import AccurateSimulation

        return AccurateSimulation(plan, controls, controller, threads=threads)
    if leaves_limits(plan.config, plan.robot.model, plan.equipped):
        from artsim.sim.runs.limited_simulation import LimitedSimulation

        return LimitedSimulation(plan, controls, controller, threads=threads)
    return Simulation(plan, controls, controller, threads=threads)
