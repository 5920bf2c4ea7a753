"""Our `dataclass` beside the standard one: the same classes, made by both."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from artsim.sim.articulation.description import Geom, Pose
from artsim.sim.foundation import dataclass as ours

pytestmark = pytest.mark.small


def made_by(dataclass: Callable[..., Any], **options: Any) -> tuple[Any, Any]:
    """A class and one that inherits from it."""

    @dataclass(**options)
    class Point:
        x: float
        y: float = 2.0
        names: list[str] = dataclasses.field(default_factory=list, repr=False)

        @property
        def total(self) -> float:
            return self.x + self.y

    @dataclass(**options)
    class Named(Point):
        """With a name."""

        name: str = dataclasses.field(default="nameless")

        def __post_init__(self) -> None:
            object.__setattr__(self, "names", [*self.names, self.name])

    return Point, Named


OPTIONS = [{"frozen": frozen, "eq": eq, "slots": slots} for frozen in (0, 1) for eq in (0, 1) for slots in (0, 1)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_made_by_both(options: dict[str, bool]) -> None:
    seen = []
    for dataclass in (ours.dataclass, dataclasses.dataclass):
        Point, Named = made_by(dataclass, **options)
        a, b = Point(1.0), Named(1.0, 3.0, name="b")
        texts = [repr(a).split(".")[-1], repr(b).split(".")[-1], str(inspect.signature(Named)), Named.__doc__]
        facts: list[Any] = [a.x, a.y, a.names, a.total, b.names, b.name, a == Point(1.0), a == b, a != Point(2.0)]
        facts += [f.name for f in dataclasses.fields(Named)]
        facts += [dataclasses.asdict(b), dataclasses.replace(b, x=7.0).total, Named.__match_args__]
        facts += [hasattr(a, "__dict__"), Point.__hash__ is None, copy.deepcopy(b).name, dataclasses.is_dataclass(a)]
        seen.append((texts, facts))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_refuse_alike(options: dict[str, bool]) -> None:
    for dataclass in (ours.dataclass, dataclasses.dataclass):
        Point, Named = made_by(dataclass, **options)
        for wrong in (
            lambda: Point(),  # noqa: B023
            lambda: Point(1.0, x=2.0),  # noqa: B023
            lambda: Point(1.0, z=2.0),  # noqa: B023
            lambda: Named(1.0, 2.0, [], "a", "b"),  # noqa: B023
        ):
            with pytest.raises(TypeError):
                wrong()
        point = Point(1.0)
        if options["frozen"]:
            with pytest.raises(dataclasses.FrozenInstanceError):
                point.x = 3.0
            with pytest.raises(dataclasses.FrozenInstanceError):
                del point.x
        else:
            point.x = 3.0
            assert point.total == 5.0


def test_a_list_for_each() -> None:
    Point, _ = made_by(ours.dataclass)
    assert Point(1.0).names is not Point(1.0).names


def test_frozen_ones_are_keys_and_can_be_pickled() -> None:
    ball = Geom("ball", "sphere", "collision", (0.1,), pose=Pose((1.0, 0.0, 0.0)))
    assert {ball: 1}[Geom("ball", "sphere", "collision", (0.1,), pose=Pose((1.0, 0.0, 0.0)))] == 1
    assert pickle.loads(pickle.dumps(ball)) == ball


def test_a_type_error_says_what_there_is() -> None:
    with pytest.raises(TypeError, match=r"Pose\(\) does not take 'place'; its fields: position, rotation"):
        Pose(place=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Geom\(\) needs 'role'"):
        Geom("ball", "sphere")  # type: ignore[call-arg]
