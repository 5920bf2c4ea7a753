"""What a user sets for links besides their joints: damping of their motion, and limits of their velocities, as arrays.

The PhysX guide's linearDamping, angularDamping, maxLinearVelocity, maxAngularVelocity of links, and
setMaxCOMLinearVelocity, setMaxCOMAngularVelocity of articulations. Constants are in LinkRules, what a step finds in
LinkRuleWork. No numba here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from artsim.sim.articulation.model import Labels, Model
from artsim.sim.foundation.errors import UsageError, nearest
from artsim.sim.foundation.records import ConstInts1, ConstReals1, ConstReals2, Ints1, Reals1, Reals2, allocate
from artsim.sim.foundation.spatial import Real

WHOLE = -1
Pair = tuple[float | None, float | None]
"""Of the linear and of the angular velocity; None: none."""


class LinkRules(NamedTuple):
    """Damped links, and velocities that have a bound."""

    damped_link: ConstInts1  # (nd,)
    damping: ConstReals2  # (nd, 2) of the linear and the angular velocity, per mass and per inertia [1/s]
    bound_link: ConstInts1  # (n,) WHOLE: the robot, by its centre of mass
    bound_angular: ConstInts1  # (n,) 0: of the centre of mass' velocity, 1: of the angular velocity
    bound: ConstReals1  # (n,) [m/s or rad/s]


class LinkRuleWork(NamedTuple):
    """What a step knows of them."""

    force: Reals1  # (nv,) joint forces of the damping
    columns: Reals2  # (6, nv) a link's Jacobian
    active: Ints1  # (n,) 1: the velocity is held to its bound in this step
    direction: Reals2  # (n, 3) in which it is
    unbound: Reals2  # (n, 3) the velocity at the end of the step without the bounds
    seen: Reals2  # (n, 3) the velocity at the end of the step, in the pose before it: what rows know of
    ahead: Reals1  # (n,) by how much the velocity at the step's end is above what the row sees of it
    speed: Reals1  # (n,) in the round before, where it is above the bound; else 0
    share: Reals1  # (n,) how much of the direction before is kept
    centre: Reals1  # (3,) of mass [m]
    velocity: Reals1  # (3,)
    inertia: Reals1  # (6,) of the robot about its centre of mass


class RuleBundle(NamedTuple):
    """Both; None in a run without."""

    model: LinkRules
    data: LinkRuleWork


def link_rules(
    model: Model, labels: Labels, damping: Mapping[str, Pair], limits: Mapping[str, Pair], whole: Pair | None
) -> LinkRules | None:
    """Rules by link name or pattern: damping [1/s], velocity limits [m/s, rad/s], those of the whole robot; or None.

    Raises UsageError: no link of such a name, a link that cannot move, numbers that are not from 0.
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
    """(nl, 2) values; later patterns win over earlier ones."""
    values = np.full((len(labels.links), 2), default)
    for pattern, pair in given.items():
        found = [n for n, name in enumerate(labels.links) if fnmatchcase(name, pattern)]
        if not found:
            raise UsageError(f"{what}: {pattern!r} is no link of this robot{nearest(pattern, labels.links)}")
        values[found] = _numbers(pair, f"{what} {pattern}", default)
    values[model.link_body == 0] = default  # they never move
    return values


def _numbers(pair: Pair | None, what: str, default: float) -> Real:
    values = np.array([default if value is None else value for value in pair or (None, None)], float)
    if not np.all(values >= 0):
        raise UsageError(f"{what} is {values.min()}, want numbers from 0")
    return values


def make_link_rule_work(model: Model, rules: LinkRules) -> LinkRuleWork:
    """The scratch of a run's rules."""
    n, nv = len(rules.bound), len(model.dof_body)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(LinkRuleWork._fields, (n,))
    shapes |= {"force": (nv,), "columns": (6, nv), "direction": (n, 3), "unbound": (n, 3), "seen": (n, 3)}
    work: LinkRuleWork = allocate(LinkRuleWork, {**shapes, "centre": (3,), "velocity": (3,), "inertia": (6,)})
    return work
