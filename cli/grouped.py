"""Help with the options in groups, the common ones first."""

from __future__ import annotations

from collections.abc import Mapping

import click

READING: dict[str, tuple[str, ...]] = {
    "Reading the model": (
        "packages",
        "mesh_root",
        "no_meshes",
        "density",
        "balance_inertia",
        "ignore_unsupported",
        "strict",
        "xacro",
        "max_xml_mb",
        "max_faces",
    ),
}
"""Every command's group of the options with which models are read."""

GROUPS: dict[str, tuple[str, ...]] = {
    "Samples": ("samples", "start", "spread", "velocity_spread", "randomise"),
    "Common": (
        "steps",
        "duration",
        "dt",
        "gravity",
        "base",
        "q0",
        "ground",
        "on_ground",
        "torque",
        "target",
        "stiffness",
        "damping",
        "control",
        "controller",
        "record",
        "every",
        "output",
        "force",
        "config",
    ),
    "Start": ("keyframe", "v0", "base_pose", "activation", "place", "seed"),
    "Drives and inputs": (
        "target_velocity",
        "target_acceleration",
        "drive_limit",
        "drive_mode",
        "drive_limit_kind",
        "interpolate",
        "wrench",
        "wrench_at",
        "wrench_frame",
        "push",
    ),
    "Joints and couplings": (
        "joint_friction",
        "armature",
        "lower_limit",
        "upper_limit",
        "limit_stiffness",
        "limit_damping",
        "swing_limit",
        "twist_limit",
        "twist_axis",
        "friction_coefficient",
        "velocity_limits",
        "coupling",
        "coupling_frequency",
        "coupling_damping",
        "compliance",
        "compliance_damping",
        "coupling_ratio",
        "coupling_offset",
        "coupling_erp",
        "loops",
    ),
    "Links": ("link_damping", "link_velocity_limit", "com_velocity_limit", "sleep_threshold", "sleep_time"),
    "Contact": (
        "contacts",
        "self_collide",
        "srdf",
        "ground_height",
        "ground_friction",
        "restitution",
        "cone",
        "continuous",
        "decompose",
        "max_contacts",
    ),
    "Solver": (
        "solver",
        "iterations",
        "velocity_iterations",
        "error_step",
        "relaxation",
        "mass_splitting",
        "integrator",
        "coordinates",
        "scheme",
        "scheme_alpha",
        "scheme_beta",
        "constraint_alpha",
        "constraint_beta",
    ),
    **READING,
    "Output": ("as_json", "quiet", "verbose", "compress", "checkpoint", "resume"),
    "Speed": ("threads",),
}
"""The options of each group by the names of their parameters, in the order of the help: of run, rollout and bench."""


BATCH_GROUPS: dict[str, tuple[str, ...]] = {
    "Common": (
        "compute",
        "samples",
        "input",
        "grid",
        "q0",
        "output",
        "force",
        "base",
        "gravity",
        "links",
        "at",
        "loops",
    ),
    "Drawn rows": ("seed", "distribution", "velocity", "acceleration", "torque", "wrench"),
    "Results": ("reduced", "packed", "float32", "on_error", "as_json", "quiet"),
    "Speed and shards": ("threads", "chunk", "shards", "scheduler", "shard", "resume"),
    **READING,
}
"""Those of `artsim batch`."""

COMPUTE_GROUPS: dict[str, tuple[str, ...]] = {
    "Common": ("q0", "v0", "a0", "torque", "wrench", "base", "base_pose", "keyframe", "gravity"),
    "Links and loops": ("links", "at", "loops"),
    "Results": ("reduced", "as_json", "as_csv", "quiet"),
    **READING,
}
"""Those of `artsim compute`."""


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups; those in none come last."""

    groups: Mapping[str, tuple[str, ...]] = GROUPS

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group that has an option of this command."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {option.name: record for option in options if (record := option.get_help_record(ctx))}
        for title, names in self.groups.items():
            rows = [records.pop(name) for name in names if name in records]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if records:
            with formatter.section("Options"):
                formatter.write_dl(list(records.values()))


class BatchCommand(GroupedCommand):
    """`artsim batch`."""

    groups = BATCH_GROUPS


class ComputeCommand(GroupedCommand):
    """`artsim compute`."""

    groups = COMPUTE_GROUPS
