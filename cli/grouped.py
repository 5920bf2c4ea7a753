"""Help with the options in groups, the common ones first."""

from __future__ import annotations

import click

GROUPS: dict[str, tuple[str, ...]] = {
    "Samples": ("samples", "start", "spread", "velocity_spread", "randomise", "threads"),
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
        "swing_limit",
        "twist_limit",
        "twist_axis",
        "friction_coefficient",
        "velocity_limits",
        "coupling",
        "coupling_frequency",
        "coupling_damping",
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
        "relaxation",
        "mass_splitting",
        "integrator",
        "coordinates",
        "scheme",
        "scheme_alpha",
        "scheme_beta",
    ),
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
    "Output": ("as_json", "quiet", "verbose", "compress", "checkpoint", "resume"),
}
"""The options of each group by the names of their parameters, in the order of the help."""


class GroupedCommand(click.Command):
    """A command whose help shows its options in GROUPS; those in none come last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group that has an option of this command."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {option.name: record for option in options if (record := option.get_help_record(ctx))}
        for title, names in GROUPS.items():
            rows = [records.pop(name) for name in names if name in records]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if records:
            with formatter.section("Options"):
                formatter.write_dl(list(records.values()))
