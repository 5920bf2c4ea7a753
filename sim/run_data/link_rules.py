"""User-set rules of links besides their joints, as arrays: damping of their motion, and limits of their velocities.

The rules are PhysX's linearDamping, angularDamping, maxLinearVelocity and maxAngularVelocity of links, and
setMaxCOMLinearVelocity and setMaxCOMAngularVelocity of articulations. Constants are in LinkRules, results of a step in
LinkRuleWork. This file does not import numba.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Labels, Model
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import ConstInts1, ConstReals1, ConstReals2, Reals1, Reals2, allocate
from artsim.sim.foundation.rotations import Real

WHOLE = -1
Pair = tuple[float | None, float | None]
"""A pair for the linear and the angular velocity; None: no rule."""


class LinkRules(NamedTuple):
    """Damped links, and bounded velocities."""

    damped_link: ConstInts1  # (nd,)
    damping: ConstReals2  # (nd, 2) of the linear and the angular velocity, per mass and per inertia [1/s]
    bound_link: ConstInts1  # (n,) WHOLE: the robot, by its centre of mass
    bound_angular: ConstInts1  # (n,) 0: velocity of the centre of mass, 1: angular velocity
    bound: ConstReals1  # (n,) [m/s or rad/s]


class LinkRuleWork(NamedTuple):
    """The results and scratch of a step's link rules."""

    force: Reals1  # (nv,) joint forces of the damping
    columns: Reals2  # (6, nv) a link's Jacobian
    active: Reals1  # (n,) 1: the velocity is bounded by its row in this step
    direction: Reals2  # (n, 3) direction of the row
    unbound: Reals2  # (n, 3) the velocity at the end of the step without the bounds
    seen: Reals2  # (n, 3) the velocity at the end of the step, in the pose before it, as the rows see it
    ahead: Reals1  # (n,) excess of the velocity at the step's end over the part that the row sees
    speed: Reals1  # (n,) speed in the previous round where it is above the bound; else 0
    share: Reals1  # (n,) share of the previous direction that is kept
    centre: Reals1  # (3,) of mass [m]
    velocity: Reals1  # (3,)
    inertia: Reals1  # (6,) of the robot about its centre of mass


class RuleBundle(NamedTuple):
    """Constants and scratch of link rules; None in a run without any."""

    model: LinkRules
    data: LinkRuleWork


def link_rules(
    model: Model, labels: Labels, damping: Mapping[str, Pair], limits: Mapping[str, Pair], whole: Pair | None
) -> LinkRules | None:
    """Return the rules by link name or pattern: damping [1/s], velocity limits [m/s, rad/s], the whole robot's; or
    None.

    Raises UsageError for an unknown link name, a link that cannot move, or a negative number or NaN.
    """
    coefficients = _by_link(damping, labels, model, "link_damping", 0.0)
    bounds = _by_link(limits, labels, model, "link_velocity_limit", math.inf)
    of_robot = _numbers(whole, "com_velocity_limit", math.inf)
    damped = np.flatnonzero(np.any(coefficients > 0, axis=1))
    link, angular = np.nonzero(np.isfinite(bounds))
    of_whole = np.flatnonzero(np.isfinite(of_robot))
    bound = np.concatenate([bounds[link, angular], of_robot[of_whole]])
    if not len(damped) and not len(bound):
        return None
    arrays = {
        "damped_link": damped.astype(np.int64),
        "damping": coefficients[damped],
        "bound_link": np.concatenate([link, np.full(len(of_whole), WHOLE)]).astype(np.int64),
        "bound_angular": np.concatenate([angular, of_whole]).astype(np.int64),
        "bound": bound,
    }
    for array in arrays.values():
        array.setflags(write=False)
    return LinkRules(**arrays)


def _by_link(given: Mapping[str, Pair], labels: Labels, model: Model, what: str, default: float) -> Real:
    """(nl, 2) values; later patterns override earlier ones."""
    values = np.full((len(labels.links), 2), default)
    for pattern, pair in given.items():
        found = [n for n, name in enumerate(labels.links) if fnmatchcase(name, pattern)]
        if not found:
            raise UsageError(f"{what}: {pattern!r} is no link of this robot{nearest(pattern, labels.links)}")
        values[found] = _numbers(pair, f"{what} {pattern}", default)
    values[model.link_body == 0] = default  # fixed links never move
    return values


def _numbers(pair: Pair | None, what: str, default: float) -> Real:
    values = np.array([default if value is None else value for value in pair or (None, None)], float)
    if not np.all(values >= 0):
        raise UsageError(f"{what} is {values.min()}, want numbers from 0")
    return values


def make_link_rule_work(model: Model, rules: LinkRules) -> LinkRuleWork:
    """Allocate the scratch of a run's rules."""
    n, nv = len(rules.bound), len(model.dof_body)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(LinkRuleWork._fields, (n,))
    shapes |= {"force": (nv,), "columns": (6, nv), "direction": (n, 3), "unbound": (n, 3), "seen": (n, 3)}
    work: LinkRuleWork = allocate(LinkRuleWork, {**shapes, "centre": (3,), "velocity": (3,), "inertia": (6,)})
    return work
