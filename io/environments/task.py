"""A task for learning, as a TOML file or a mapping describes it: model, actions, observations, rewards, ends, draws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from artsim.sim.foundation.errors import MissingInputError, UsageError, nearest
from artsim.sim.foundation.toml import read_toml
from artsim.sim.runs.varied import VARIED

_MOST_TOML = 1 << 21  # bytes
START = "start"
Numbers = float | Sequence[float] | None


class Action(NamedTuple):
    """The inputs that actions set: offset + scale · action, for actions from `low` to `high`, which clip them.

    None: as usual for the input (actions.py). Each is a number, or one number per entry.
    """

    input: str | None = None  # "control", "target" or "torque"
    entries: tuple[str, ...] = ("*",)  # names or patterns
    low: Numbers = None
    high: Numbers = None
    scale: Numbers = None
    offset: Numbers | str = None  # START: the inputs at the start


class Observation(NamedTuple):
    """An observed number or vector: clip((value + noise - offset) · scale), where noise comes before delay."""

    value: str
    noise: float = 0.0  # standard deviation
    delay: int = 0  # steps of the environment
    offset: float = 0.0
    scale: float = 1.0
    clip: float = math.inf


class Draw(NamedTuple):
    """The distribution of a number at a reset: even from `low` to `high`, about the start if `about`, or normal."""

    kind: Literal["uniform", "offset", "normal"]
    low: float  # normal: the standard deviation
    high: float = 0.0


class Task(NamedTuple):
    """A task. `steps`: of the simulation in one of the environment; `limit`: steps of the environment until an episode
    is truncated, None: never; `start`: draws by variable and name or pattern; `vary`: draws of properties."""

    model: str
    settings: Mapping[str, Any]
    controller: str = "none"
    steps: int = 1
    limit: int | None = None
    action: Action = Action()
    observations: Mapping[str, Observation] = {}
    rewards: Mapping[str, tuple[str, float]] = {}  # expression and weight
    terminations: Mapping[str, str] = {}
    start: Mapping[str, Mapping[str, Draw]] = {}
    vary: Mapping[str, Draw] = {}


def read_task(source: str | PathLike[str] | Mapping[str, Any]) -> Task:
    """The task of a TOML file, whose model's path is relative to it, or of a mapping of the same keys.

    Raises UsageError, MissingInputError.
    """
    if isinstance(source, Mapping):
        return _task(_Table("task", source))
    path = Path(source)
    try:
        text = path.read_bytes()[:_MOST_TOML].decode()
    except OSError as error:
        raise MissingInputError(f"{path}: cannot read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    try:
        values = read_toml(text)
    except ValueError as error:
        raise UsageError(f"{path}: not TOML: {error}") from None
    task = _task(_Table(str(path), values))
    beside = path.parent / task.model
    return task._replace(model=str(beside)) if beside.is_file() else task


class _Table:
    """A table of the description, whose keys are taken one by one. Errors name the place of each."""

    def __init__(self, title: str, values: object) -> None:
        if not isinstance(values, Mapping):
            raise UsageError(f"{title}: want a table, got {values!r}")
        self.title, self.values, self._known = title, dict(values), list[str]()

    def take(self, key: str, kinds: type | tuple[type, ...], default: Any) -> Any:
        """The value of a key. Raises UsageError for one of another type."""
        self._known.append(key)
        value = self.values.pop(key, default)
        if value is default:
            return value
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise UsageError(f"{self.title}: {key} is {value!r}, want {_WANTED[kinds]}")
        return value

    def number(self, key: str, default: float, *, least: float = -math.inf) -> float:
        """A finite number of at least `least`."""
        value = float(self.take(key, (int, float), default))
        if value != default and not (math.isfinite(value) and value >= least):
            raise UsageError(f"{self.title}: {key} is {value}, want a finite number{_from(least)}")
        return value

    def count(self, key: str, default: int | None, least: int) -> int | None:
        """A whole number of at least `least`."""
        value: int | None = self.take(key, int, default)
        if value is not None and value < least:
            raise UsageError(f"{self.title}: {key} is {value}, want a whole number from {least}")
        return value

    def table(self, key: str) -> _Table:
        """The table of a key, empty if there is none."""
        return _Table(f"{self.title}: {key}", self.take(key, Mapping, {}))

    def items(self) -> Iterator[tuple[str, Any]]:
        """All keys and values."""
        while self.values:
            key = next(iter(self.values))
            yield key, self.values.pop(key)

    def end(self) -> None:
        """Raise UsageError for a key that has no meaning."""
        for key in self.values:
            raise UsageError(f"{self.title}: {key!r} has no meaning{nearest(key, self._known)}")


_WANTED: Mapping[Any, str] = {
    str: "a text",
    (str, PathLike): "a text or a path",
    int: "a whole number",
    (int, float): "a number",
    Mapping: "a table",
    (int, float, list, tuple): "a number or a list of numbers",
    (str, list, tuple): "a text or a list of texts",
}


def _from(least: float) -> str:
    return "" if least == -math.inf else f" from {least:g}"


def _task(table: _Table) -> Task:
    model = table.take("model", (str, PathLike), "")
    if not model:
        raise UsageError(f"{table.title}: model is not given")
    steps, limit = table.count("steps", 1, 1), table.count("limit", None, 1)
    assert steps is not None
    start = table.table("reset")
    task = Task(
        model=str(model),
        settings=dict(table.table("settings").values),
        controller=table.take("controller", str, "none"),
        steps=steps,
        limit=limit,
        action=_action(table.table("action")),
        observations={
            name: _observation(f"{table.title}: observations.{name}", value)
            for name, value in table.table("observations").items()
        },
        rewards={
            name: _reward(f"{table.title}: rewards.{name}", value) for name, value in table.table("rewards").items()
        },
        terminations={
            name: _text(f"{table.title}: terminations.{name}", value)
            for name, value in table.table("terminations").items()
        },
        start={name: _draws(start.table(name)) for name in ("qpos", "qvel", "activation")},
        vary=_varied(table.table("vary")),
    )
    start.end()
    table.end()
    if not task.observations:
        raise UsageError(f"{table.title}: there are no observations")
    return task


def _action(table: _Table) -> Action:
    entries = table.take("entries", (str, list, tuple), ("*",))
    numbers: dict[str, Any] = {key: _numbers(table, key) for key in ("low", "high", "scale")}
    from_start = table.values.get("offset") == START
    numbers["offset"] = table.take("offset", str, None) if from_start else _numbers(table, "offset")
    names = (entries,) if isinstance(entries, str) else tuple(map(str, entries))
    made = Action(input=table.take("input", str, None), entries=names, **numbers)
    table.end()
    return made


def _numbers(table: _Table, key: str) -> Numbers:
    """A number, or a tuple of some."""
    value = table.take(key, (int, float, list, tuple), None)
    if value is None:
        return None
    for each in value if isinstance(value, list | tuple) else (value,):
        if isinstance(each, bool) or not isinstance(each, int | float) or not math.isfinite(each):
            raise UsageError(f"{table.title}: {key} is {value!r}, want finite numbers")
    return tuple(map(float, value)) if isinstance(value, list | tuple) else float(value)


def _observation(title: str, given: object) -> Observation:
    if isinstance(given, str):
        return Observation(given)
    table = _Table(title, given)
    delay = table.count("delay", 0, 0)
    assert delay is not None
    made = Observation(
        value=_text(f"{title}.value", table.take("value", str, None)),
        noise=table.number("noise", 0.0, least=0.0),
        delay=delay,
        offset=table.number("offset", 0.0),
        scale=table.number("scale", 1.0),
        clip=table.number("clip", math.inf, least=0.0),
    )
    table.end()
    return made


def _reward(title: str, given: object) -> tuple[str, float]:
    if isinstance(given, str):
        return given, 1.0
    table = _Table(title, given)
    made = _text(f"{title}.value", table.take("value", str, None)), table.number("weight", 1.0)
    table.end()
    return made


def _text(title: str, value: object) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{title}: want an expression as text, got {value!r}")
    return value


def _draws(table: _Table) -> dict[str, Draw]:
    return {name: _draw(f"{table.title}.{name}", given) for name, given in table.items()}


def _draw(title: str, given: object) -> Draw:
    """A draw: a number s for ± s about the start, [low, high], or a table of one kind."""
    if isinstance(given, Mapping) and len(given) == 1:
        ((kind, value),) = given.items()
        if kind in ("uniform", "offset"):
            return Draw(kind, *_ends(title, value))
        if kind == "normal":
            return Draw("normal", _ends(title, [0, value])[1])
    elif isinstance(given, list | tuple):
        return Draw("uniform", *_ends(title, given))
    elif isinstance(given, int | float):
        low, high = _ends(title, [-given, given])
        return Draw("offset", low, high)
    raise UsageError(f"{title} is {given!r}, want a number, [low, high], or one of uniform, offset, normal")


def _ends(title: str, given: object) -> tuple[float, float]:
    """The ends of a range. Raises UsageError."""
    if isinstance(given, list | tuple) and len(given) == 2 and all(isinstance(end, int | float) for end in given):
        low, high = map(float, given)
        if -math.inf < low <= high < math.inf:
            return low, high
    raise UsageError(f"{title} is {given!r}, want two finite numbers, the smaller first")


def _varied(table: _Table) -> dict[str, Draw]:
    """Draws of properties: factors, that of gravity too, offsets of centres of mass and heights of the ground [m], and
    delays of controls [s]. Raises UsageError."""
    known, made = (*VARIED, "centre", "gravity", "ground_height", "delay"), dict[str, Draw]()
    for name, given in table.items():
        if name not in known:
            raise UsageError(f"{table.title}: {name!r} is not known{nearest(name, known)}")
        draw = _draw(f"{table.title}.{name}", given)
        if draw.kind != "uniform":
            raise UsageError(f"{table.title}.{name}: want [low, high]")
        made[name] = draw
    return made
