"""A setting of a run: its kind, its bounds and its meaning, as the table in settings.py states them.

All else follows from the table: options of commands, keyword arguments, TOML, refusals and pages of the documentation.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, field
from typing import Any, NamedTuple, TypeVar, overload

from artsim.sim.foundation.dataclass import declared_defaults
from artsim.sim.foundation.errors import SettingError, nearest

T = TypeVar("T")
MAX_STEPS = 2**53  # larger step numbers are not exact in float64


class Bounds(NamedTuple):
    """The range of finite numbers, from `least` or, if `open`, above it; `words` state it in refusals."""

    words: str
    least: float = -math.inf
    most: float = math.inf
    open: bool = False
    infinite: bool = False  # inf is allowed, too

    def hold(self, number: float) -> bool:
        """True for a number in the range."""
        above = number > self.least if self.open else number >= self.least
        return above and number <= self.most and (self.infinite or is_finite(number))


FROM_0 = Bounds("a finite number from 0", 0)
SHARE = Bounds("a number from 0 to 1", 0, 1)
METRES = Bounds("a finite number in metres")
COUNT = Bounds(f"1 to {MAX_STEPS}", 1, MAX_STEPS)


class Kind(NamedTuple):
    """A kind of values: `accepts` is true for those of its type, and `plain` makes them from JSON's and TOML's.

    Kinds of one form are given in the same way. `metavar` stands in --help; `of` is the kind of the names for which
    values are given, a key of patterns.names_of.
    """

    form: str
    want: str
    accepts: Callable[[Any], bool]
    plain: Callable[[Any], Any] = lambda value: value
    metavar: str = ""
    of: str = ""
    degrees: bool = False  # of angles, which the suffix deg gives in degrees


def is_number(value: object) -> bool:
    """True for a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """True for a number that is finite as a float."""
    return is_number(value) and abs(value) <= sys.float_info.max


def _entries(value: Any) -> Iterable[Any]:
    """The values by name, or the one value for all."""
    return value.values() if isinstance(value, Mapping) else (value,)


def _numbers_of(value: object) -> list[float]:
    """The numbers of a setting that is one number, numbers by name, or None."""
    return [entry for entry in _entries(value) if isinstance(entry, int | float)]


def _as_tuple(value: Any) -> Any:
    """A list as a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _as_tuples(value: Any) -> Any:
    """Lists by name as tuples by name."""
    return {key: _as_tuple(entry) for key, entry in value.items()} if isinstance(value, Mapping) else value


def _as_places(value: Any) -> Any:
    """Tuples by name; those of the only free body stand under ""."""
    return _as_tuples({"": value} if isinstance(value, list | tuple) else value)


def _all_finite(value: object, *counts: int) -> bool:
    return isinstance(value, tuple) and len(value) in counts and all(map(is_finite, value))


def _is_pair(value: object) -> bool:
    """True for two finite numbers from 0, either of which may be None."""
    pair = isinstance(value, tuple) and len(value) == 2
    return pair and all(x is None or (is_finite(x) and x >= 0) for x in value)  # type: ignore[attr-defined]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _texts(form: str, want: str, metavar: str) -> Kind:
    """A kind of several texts."""
    return Kind(form, want, lambda v: isinstance(v, tuple) and all(map(_is_text, v)), _as_tuple, metavar)


def by_name(form: str, want: str, entry: Callable[[Any], bool], metavar: str = "", of: str = "") -> Kind:
    """A kind of values by name."""
    return Kind(form, want, lambda v: isinstance(v, Mapping) and all(map(entry, v.values())), _as_tuples, metavar, of)


def _one_or_by_name(form: str, want: str, entry: Callable[[Any], bool], of: str = "") -> Kind:
    """A kind of values for all or by name."""
    return Kind(form, want, lambda v: all(map(entry, _entries(v))), of=of)


def _numbers(of: str = "", metavar: str = "", *, degrees: bool = False) -> Kind:
    """A kind of numbers by the names of joints and the like."""
    return by_name("numbers", "numbers by name", is_number, metavar, of)._replace(degrees=degrees)


def _is_place(value: object) -> bool:
    return _all_finite(value, 3, 6)


FLAG = Kind("flag", "true or false", lambda value: isinstance(value, bool))
WHOLE = Kind("whole", "a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool))
NUMBER = Kind("number", "a number", is_number)
TEXT = Kind("text", "a text", _is_text)
GAP = NUMBER._replace(form="gap", metavar="[GAP]")
JOINT_WORDS = TEXT._replace(form="joints", want="names of joints with commas between, or *", metavar="[JOINT,…]")
VECTOR = Kind("vector", "three finite numbers X,Y,Z in m/s²", lambda v: _all_finite(v, 3), _as_tuple, "X,Y,Z")
NAMES = _texts("names", "a list of names", "NAME,…")
PUSHES = _texts("pushes", "a list of LINK=JX,JY,JZ@TIME", "LINK=JX,JY,JZ[,LX,LY,LZ]@TIME")
PAIR = Kind("pair", "two numbers: linear, angular", _is_pair, _as_tuple, "LIN,ANG")
PAIRS = by_name("pairs", "two numbers (linear, angular) by link", _is_pair, "LINK=LIN,ANG")
NUMBERS = _numbers()
COORDS = _numbers("coord", "JOINT=VALUE|FILE", degrees=True)
RATES = _numbers("dof", "JOINT=VALUE|FILE", degrees=True)
AIMS = _numbers("aim", "JOINT=VALUE|FILE", degrees=True)
FORCES = _numbers("dof", "JOINT=VALUE|FILE")
GAINS = _numbers("gain", "[JOINT=]VALUE")
OF_JOINTS = _numbers("joint", "[JOINT=]VALUE")
LIMITS = _numbers("dof", "JOINT=VALUE")
ACTUATORS = _numbers("actuator", "ACTUATOR=VALUE|FILE")
STATES = _numbers("state", "ACTUATOR=VALUE")
CONSTRAINTS = _numbers("constraint", "NAME=VALUE")
OF_FOLLOWERS = by_name("numbers of followers", "numbers by name", is_number)
ONE_OR_OF_FOLLOWERS = _one_or_by_name(OF_FOLLOWERS.form, "a number, or numbers by joint or tendon", is_number)
OF_CONSTRAINTS = by_name("numbers of constraints", "numbers by name", is_number)
TEXT_OR_OF_JOINTS = _one_or_by_name("texts of joints", "a text, or texts by joint", _is_text, "gain")
TEXT_OR_OF_LINKS = _one_or_by_name("texts of links", "a text, or texts by link", _is_text)
PLACES = by_name(
    "places", "X, Y, Z or X, Y, Z, ROLL, PITCH, YAW by joint or link", _is_place, "[NAME=]X,Y,Z[,R,P,Y]"
)._replace(plain=_as_places)
WRENCHES = by_name(
    "wrenches", "finite FX, FY, FZ or FX, FY, FZ, TX, TY, TZ by link", _is_place, "LINK=FX,FY,FZ[,TX,TY,TZ]"
)
ANGLES = by_name("angles", "2 numbers by ball joint", lambda entry: _all_finite(entry, 2), of="turned")
AXES = by_name("angles", "3 numbers by ball joint", lambda entry: _all_finite(entry, 3), of="turned")
_KINDS: dict[type, Kind] = {bool: FLAG, int: WHOLE, float: NUMBER, type(None): NUMBER, str: TEXT}


class Setting(NamedTuple):
    """A line of the table."""

    meaning: str  # with the unit in brackets; the text of --help
    group: str  # heading in --help
    kind: Kind
    default: Any
    bounds: Bounds | None = None
    choices: Collection[str] = ()
    metavar: str = ""  # instead of that of the kind
    changes: bool = False  # it can change between two steps

    def check(self, name: str, value: Any) -> None:
        """Raise SettingError for a value of another type, out of bounds or among no choices (it may be from a file)."""
        if not (self.kind.accepts(value) or (value is None and self.default is None)):
            raise SettingError(f"{name} is {value!r}, want {self.kind.want}", name)
        if self.bounds is not None and not all(map(self.bounds.hold, _numbers_of(value))):
            raise SettingError(f"{name} is {value}, want {self.bounds.words}", name)
        if self.choices:
            for entry, choice in value.items() if isinstance(value, Mapping) else (("", value),):
                if choice not in self.choices:
                    of = f" of {entry!r}" if entry else ""
                    raise SettingError(
                        f"{name}{of} {choice!r} is not known{nearest(choice, self.choices)}", name, entry
                    )

    def field(self) -> Any:
        """The setting as a field of a dataclass, from which `settings_of` finds it."""
        if self.default == {}:
            return field(default_factory=dict, metadata={"setting": self})
        return field(default=self.default, metadata={"setting": self})


def settings_of(declared: type[Any]) -> dict[str, Setting]:
    """The settings that a dataclass declares, by name."""
    fields = declared_defaults(declared).items()
    return {name: default.metadata["setting"] for name, default in fields if isinstance(default, Field)}


class Group(NamedTuple):
    """A group of settings, which the table calls to declare them as fields of a dataclass."""

    title: str

    def setting(self, default: Any, meaning: str, kind: Kind | None = None, **more: Any) -> Setting:
        """A setting of this default, of whose kind it is unless another is given; or one of values by name, of this
        kind, that are none by default. `more` are other parts of a Setting."""
        if isinstance(default, Kind):
            return Setting(meaning, self.title, default, {}, **more)
        return Setting(meaning, self.title, kind or _KINDS[type(default)], default, **more)

    @overload
    def __call__(self, default: Kind, meaning: str, **more: Any) -> Any: ...

    @overload
    def __call__(self, default: T, meaning: str, kind: Kind | None = None, **more: Any) -> T: ...

    def __call__(self, default: Any, meaning: str, kind: Kind | None = None, **more: Any) -> Any:
        """The field of such a setting."""
        return self.setting(default, meaning, kind, **more).field()
