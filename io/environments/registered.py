"""Registers tasks in gymnasium by being imported, as in gymnasium.make_vec(f"{__name__}:artsim/Task-v0", 8, task=…)."""

from __future__ import annotations

import gymnasium

gymnasium.register("artsim/Task-v0", entry_point="artsim:make_env", vector_entry_point="artsim:make_env")
