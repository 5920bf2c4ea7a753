"""Findings of the doctor: each with the code of its rule, its place in the file, and the edit that mends it."""

from __future__ import annotations

from typing import NamedTuple

from artsim.sim.articulation.description import Source


class Finding(NamedTuple):
    """An oddity of a robot: code of the rule, place in the file, sentence, words of `artsim edit` that mend it, and the
    links that have it."""

    code: str
    source: Source
    told: str
    mend: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """The reason why it matters."""
        return RULES[self.code]

    @property
    def is_hint(self) -> bool:
        """True for an oddity that the author may well intend; --strict lets it pass."""
        return self.code in HINTS

    @property
    def grade(self) -> str:
        """`hint` or `warning`."""
        return "hint" if self.is_hint else "warning"

    def __str__(self) -> str:
        return f"{self.source}: {self.told} ({self.code})"


RULES = {
    "inertia-density": "a mass that does not fit its shapes is a slip of a digit or a unit, and forces grow with it",
    "inertia-centre": "gravity turns the link about a point at which the link has no matter",
    "inertia-axes": "axes that are exchanged give the wrong inertia about the joint",
    "inertia-frame": "the inertia is meant about the centre of mass, in the axes of <inertial>",
    "inertia-unit": "no matter within the shapes has this inertia; a digit, a unit or a placeholder",
    "inertia-small": "a link of nearly no inertia makes the equations stiff, and they shake at usual steps",
    "mass-neighbours": "a heavy body on a very light one needs very small steps and many iterations",
    "effort-zero": "programs that take the bound as it stands let this motor do nothing; artsim takes it as unlimited",
    "velocity-zero": "programs that take the bound as it stands let this joint not move; artsim takes it as unlimited",
    "limits-exclude-zero": "robots start at 0 in most programs: beyond the limit, with a jolt",
    "limits-empty": "no position satisfies all limits at once",
    "mimic-unreachable": "the follower's limits stop the leader within its own range",
    "neighbours-collide": "links that overlap at rest push each other apart, or are left out of contacts",
    "gains-shake": "explicit integrators, as MuJoCo's Euler and RK4, answer gains above this with growing oscillations",
    "wheel-friction": "friction this high lets no wheel slip sideways, so that a robot that turns on the spot wedges",
    "duplicate-name": "SDFormat, and so Gazebo, refuses two things of one name in a model",
    "mesh-scale": "meshes drawn in mm, and read as m, are 1000 times too large",
    "mesh-hull": "moving meshes collide as their convex hulls: hollows are filled, and contacts begin too early",
    "joint-idle": "the joint costs time and conditioning, and nothing depends on it",
    "base-in-air": "the robot falls before it does anything else",
}
"""Why it matters, by the stable code of each rule."""
HINTS = frozenset(("limits-exclude-zero", "mesh-hull", "duplicate-name", "base-in-air"))
"""The rules that also meet robots with nothing wrong, of which users yet want to know."""
