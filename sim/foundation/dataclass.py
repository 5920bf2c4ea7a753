"""A `dataclass` with the standard library's behaviour whose classes are created quickly.

The standard `dataclass` writes and compiles up to seven functions for every class, 0.8 ms at every start, and `artsim
run` imports 70 dataclasses. Classes made here share their functions, which look up the fields when called.
Standard-library functions that inspect a class (replace, fields, asdict, inspect.signature) get their usual answer,
built on demand.
"""

from __future__ import annotations

from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError, fields, make_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # type checkers take them for the same

else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, slots=False):
        """Give a class its fields and the methods that follow from them; options are those of the standard `dataclass`.

        A field may be `dataclasses.field(default=…, default_factory=…, repr=…)`.
        """
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, slots=slots)
        own = {name: vars(cls).get(name, MISSING) for name in _annotations(cls)}
        defaults = {**getattr(cls, "_defaults", {}), **own}
        members = {**_SHARED, "_defaults": defaults, "__match_args__": tuple(defaults)}
        if eq:
            members |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
        if frozen:
            members |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if slots:
            kept = {name: member for name, member in vars(cls).items() if name not in (*own, "__dict__", "__weakref__")}
            return type(cls)(cls.__name__, cls.__bases__, {**members, **kept, "__slots__": tuple(own)})
        for name, member in members.items():
            if name not in vars(cls):
                setattr(cls, name, member)
        for name, default in own.items():
            if isinstance(default, Field):
                delattr(cls, name) if default.default is MISSING else setattr(cls, name, default.default)
        return cls


def declared_defaults(cls: type[Any]) -> dict[str, Any]:
    """The fields of such a class with what their declarations assign: a value, a `Field` or MISSING."""
    return {**vars(cls)["_defaults"]}


def _annotations(cls: type[Any]) -> dict[str, Any]:
    return dict(vars(cls).get("__annotations__", {}))


def _init(self: Any, /, *values: Any, **named: Any) -> None:
    put = object.__setattr__  # also for frozen classes
    given = dict(zip(self._defaults, values, strict=False))
    for name, default in self._defaults.items():
        if name in given:
            put(self, name, given[name])
        elif name in named:
            put(self, name, named.pop(name))
        else:
            put(self, name, default if type(default) not in _SPECIAL else _special(self, name, default))
    if named or len(values) > len(given):
        odd = f"{next(iter(named))!r}" if named else f"{len(values)} values"
        raise TypeError(f"{type(self).__name__}() does not take {odd}; its fields: {', '.join(self._defaults)}")
    if hasattr(self, "__post_init__"):
        self.__post_init__()


_SPECIAL = (Field, type(MISSING))


def _special(self: Any, name: str, default: Any) -> Any:
    """The default of a field that has a factory, or none."""
    if isinstance(default, Field):
        default = default.default if default.default_factory is MISSING else default.default_factory()
    if default is MISSING:
        raise TypeError(f"{type(self).__name__}() needs {name!r}")
    return default


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self._defaults])


def _repr(self: Any) -> str:
    shown = [name for name, default in self._defaults.items() if not isinstance(default, Field) or default.repr]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _equal(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _refuse(self: Any, name: str, *value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__name__}")


def _reduce(self: Any) -> tuple[type[Any], tuple[Any, ...]]:
    return type(self), _values(self)


class _Fields:
    """The fields as replace, fields and asdict read them, created on demand."""

    def __get__(self, instance: object, cls: Any) -> Any:
        if "_fields" not in vars(cls):
            types = _types(cls)
            cls._fields = {name: _standard_field(name, types[name], default) for name, default in cls._defaults.items()}
        return cls._fields


def _standard_field(name: str, kind: Any, default: Any) -> Any:
    made = copy(_any_field())
    made.name, made.type, made.default = name, kind, default
    if isinstance(default, Field):
        made.default, made.default_factory, made.repr = default.default, default.default_factory, default.repr
    return made


@cache
def _any_field() -> Any:
    """A field created by the standard library, by whose type it recognises fields."""
    return fields(make_dataclass("_", ["any"]))[0]


class _Signature:
    """The signature of a class, for inspect.signature, help and the like."""

    def __get__(self, instance: object, cls: Any) -> Any:
        from inspect import signature

        types = _types(cls)
        known = [(name, types[name], *([] if d is MISSING else [d])) for name, d in cls._defaults.items()]
        return signature(make_dataclass(cls.__name__, known))


def _types(cls: Any) -> dict[str, Any]:
    return {name: kind for base in reversed(cls.__mro__) for name, kind in _annotations(base).items()}


_SHARED: dict[str, object] = {"__init__": _init, "__repr__": _repr, "__reduce__": _reduce}
_SHARED |= {"__dataclass_fields__": _Fields(), "__signature__": _Signature()}
