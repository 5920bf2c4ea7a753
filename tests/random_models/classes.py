"""An actuator below three classes that hold elements of several kinds: what each leaves to the next and to it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, tostring

import mujoco
import numpy as np

from artsim.loaders.load import load_text
from artsim.loaders.mjcf.mjcf_schema import MJCF
from artsim.sim.articulation.description import Actuator
from tests.random_models.model_settings import difference
from tests.random_models.random_mjcf import Maker
from tests.random_models.values import drawn

KINDS = tuple("general motor position velocity intvelocity damper cylinder muscle adhesion pid dcmotor".split())
CLASSES = ("main", "b", "c")
UNLIKELY = {"dyntype", "gaintype", "biastype", "actdim"}  # of many combinations MuJoCo takes few
LEFT_OUT = {"delay", "nsample", "interp", "user", "group", "armature", "damping"}  # no class treats them in its own way
NEEDED = {"dcmotor": {"motorconst": "0.3", "resistance": "2"}, "adhesion": {"ctrlrange": "0 1"}}
MODEL = """<mujoco><default>{}<default class="b">{}<default class="c">{}</default></default></default><worldbody>
<body name="b"><joint name="j" range="-50 70" limited="true"/><geom size=".1"/></body></worldbody>
<actuator>{}</actuator></mujoco>"""


def random_classes(seed: int, number: int) -> str:
    """A model."""
    maker = Maker(np.random.default_rng([seed, number, 4]))
    classes = [
        "".join(element(maker, str(kind), {}) for kind in maker.rng.permutation(KINDS)[:most] if maker.chance(0.6))
        for most in (3, 2, 2)
    ]
    kind = maker.pick(KINDS)
    own = {"body": "b"} if kind == "adhesion" else {"joint": "j"}
    if "lengthrange" in MJCF.children["actuator"].children[kind].attributes:
        own["lengthrange"] = "-1 2"
    return MODEL.format(*classes, element(maker, kind, own | {"class": maker.pick(CLASSES)}))


def element(maker: Maker, kind: str, own: dict[str, str]) -> str:
    """An actuator, or what a class says of that kind."""
    names = sorted(MJCF.children["default"].children[kind].attributes - LEFT_OUT)
    said = {name: drawn(maker, kind, name)[0] for name in names if maker.chance(0.05 if name in UNLIKELY else 0.25)}
    if "kv" in said:
        said.pop("dampratio", None)
    return tostring(Element(kind, NEEDED.get(kind, {}) | said | own), encoding="unicode")


def compare_actuator(text: str, model: Any) -> dict[str, float]:
    """The largest difference of each part. Raises ArtsimError."""
    (actuator,) = load_text(text, name="model.xml", meshes=False).actuators
    return {"parameters": max(map(difference, parameters(actuator, model))), "ranges": ranges(actuator, model)}


def parameters(actuator: Actuator, model: Any) -> Iterator[tuple[Any, Any]]:
    """Ours and MuJoCo's; but for dampratio, which it has turned into a damping."""
    dynamics = mujoco.mjtDyn(model.actuator_dyntype[0]).name.removeprefix("mjDYN_").lower()
    yield float(actuator.dynamics != dynamics), 0.0
    yield float(actuator.activation_early), float(model.actuator_actearly[0])
    if dynamics != "none":
        yield filled(actuator.dynamics_parameters), model.actuator_dynprm[0]
    yield filled(actuator.gain_parameters), model.actuator_gainprm[0]
    bias, theirs = filled(actuator.bias_parameters), np.array(model.actuator_biasprm[0])
    if bias[2] > 0 and actuator.bias != "muscle":
        bias[2] = theirs[2] = 0.0
    yield bias, theirs
    yield actuator.gear, model.actuator_gear[0]


def filled(numbers: tuple[float, ...]) -> Any:
    """Ten of them."""
    return np.array(list(itertools.islice(itertools.chain(numbers, itertools.repeat(0.0)), 10)))


def ranges(actuator: Actuator, model: Any) -> float:
    """The largest difference of the ranges of controls, activation and force; infinite where one limits alone."""
    ours = [*actuator.control_ranges, actuator.activation_range, actuator.force_range]
    limited = [*model.actuator_ctrllimited.ravel(), model.actuator_actlimited[0], model.actuator_forcelimited[0]]
    theirs = [*model.actuator_ctrlrange.reshape(-1, 2), model.actuator_actrange[0], model.actuator_forcerange[0]]
    if len(ours) != len(theirs):
        return np.inf
    if actuator.dynamics == "none":
        limited[-2] = False
    pairs = [(one, two if limits else None) for one, two, limits in zip(ours, theirs, limited, strict=True)]
    if any((one is None) != (two is None) for one, two in pairs):
        return np.inf
    return max((difference(pair) for pair in pairs if pair[0] is not None), default=0.0)
