"""Typed words as values of settings: numbers by name, patterns, lists and files, by the kinds of the table."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from artsim.cli.numbers import number_of
from artsim.cli.options import STREAMS, is_file, read_input
from artsim.io.inputs.output_inputs import variables_named
from artsim.sim.articulation.compile_model import compile_model
from artsim.sim.articulation.description import Articulation
from artsim.sim.articulation.pose_algebra import quaternion_from_rpy
from artsim.sim.equipment.equip import labels_of
from artsim.sim.foundation.angles import DEGREES, angle_or_number
from artsim.sim.foundation.errors import ArtsimError, SettingError, UsageError, nearest
from artsim.sim.foundation.records import Array
from artsim.sim.run_data.run_records import RECORDED
from artsim.sim.runs.configuration import read_angles, record_names
from artsim.sim.runs.patterns import ALL, KINDS, Names, by_name, matching, matching_links, names_of, unmatched
from artsim.sim.runs.setting import COORDS, GAINS, RATES, Kind
from artsim.sim.runs.settings import DEFAULT_RECORD, SETTINGS

_MOST_NUMBERS = 1 << 26  # bytes read at most from a file of numbers
MOTION_LIMITS = ("max_velocity", "max_acceleration", "max_torque", "max_jerk")
CONTROL_SUFFIXES = (".csv", ".npz", ".h5", ".hdf5")
AllNames = Callable[[], Mapping[str, Names]]
"""Gives the names of a robot by kind, as names_for does, once they are needed."""


def names_for(articulation: Articulation) -> dict[str, Names]:
    """The names after which values of this robot are given, by kind."""
    compiled = compile_model(articulation)
    return names_of(articulation, compiled.model, compiled.labels, labels_of(articulation))


def stored_by_name(name: str, value: Any, names: AllNames) -> Any:
    """A setting of a configuration file: one gain becomes that of all joints, texts with a unit become numbers."""
    form, of = SETTINGS[name].kind.form, SETTINGS[name].kind.of
    if of in ("gain", "joint") and isinstance(value, int | float) and not isinstance(value, bool):
        return {ALL: float(value)}
    if isinstance(value, Mapping) and form == "angles":
        return {key: read_angles(name, entry) for key, entry in value.items()}
    if not isinstance(value, Mapping) or form != "numbers":
        return value
    found = dict(value)
    for entry, number in value.items():
        if isinstance(number, str):
            del found[entry]
            try:
                found |= _read_named(name, (f"{entry}={number}",), names()[of])
            except UsageError as error:
                raise SettingError(f"configuration: {str(error).removeprefix('--')}", name, entry) from None
    return found


def _kind_of(option: str) -> Kind:
    """The kind of a setting, or of what one command alone takes: accelerations (compute), a posture (ik), way points
    and limits (trajectory)."""
    own = {"a0": RATES, "posture": COORDS, "via": COORDS} | dict.fromkeys(MOTION_LIMITS, GAINS)
    return own.get(option) or SETTINGS[option].kind


def _read_numbers(name: str, words: tuple[str, ...], stored: Any, names: AllNames) -> dict[str, float]:
    """Numbers by name, which join the stored ones."""
    if not isinstance({} if stored is None else stored, Mapping):
        raise SettingError(f"{name} is {stored!r}, want numbers by name", name)
    return {**(stored or {}), **_read_named(name, words, names()[KINDS[name]])}


def _read_turning(option: str, words: Sequence[str], names: AllNames) -> dict[str, tuple[float, ...]]:
    """Read JOINT=… words about swing and twist by the joints' names."""
    flag, given = f"--{option.replace('_', '-')}", {}
    for word in words:
        name, equals, text = word.rpartition("=")
        if not equals:
            raise UsageError(f"{flag}: got {word!r}, want {SETTINGS[option].metavar}")
        given[name] = read_angles(option, text, f"{flag} {name}")
    return by_name(option, given, names()[KINDS[option]])


def _read_record(name: str, text: str, stored: Sequence[str] | None, names: AllNames) -> tuple[str, ...]:
    """Read NAME,NAME,…, of which +NAME adds to the stored or else the default variables."""
    variables = record_names([word.strip() for word in text.split(",") if word.strip()], stored or DEFAULT_RECORD)
    for variable in variables:
        if variable not in RECORDED:
            raise UsageError(f"--record: {variable!r} is not known{nearest(variable, RECORDED)}")
    return variables


def _read_choices(option: str, words: Sequence[str], stored: Any, names: AllNames) -> Any:
    """Read [JOINT=]CHOICE words: one choice for all, or choices by joint."""
    flag = f"--{option.replace('_', '-')}"
    known, alone = SETTINGS[option].choices, [word for word in words if "=" not in word]
    chosen = dict(word.rpartition("=")[::2] for word in words if "=" in word)
    for choice in (*alone, *chosen.values()):
        if choice not in known:
            raise UsageError(f"{flag}: {choice!r} is not known{nearest(choice, known)}")
    if not chosen:
        return alone[-1]
    before = stored if isinstance(stored, Mapping) else {} if stored is None else {ALL: stored}
    by_joint = by_name(option, chosen, names()[KINDS[option]], keep={ALL})
    return {**before, **({ALL: alone[-1]} if alone else {}), **by_joint}


def _read_by_follower(option: str, words: Sequence[str], stored: Any, names: AllNames) -> float | dict[str, float]:
    """Read [JOINT=]NUMBER words: one number for all, or numbers by follower."""
    flag = f"--{option.replace('_', '-')}"
    pairs = [word.rpartition("=") for word in words]
    numbers = {name or ALL: number_of(number, f"{flag} {name}".rstrip()) for name, _, number in pairs}
    if numbers.keys() == {ALL}:
        return numbers[ALL]
    before = {ALL: stored} if option == "coupling_erp" and isinstance(stored, int | float) else stored
    return {**(before if isinstance(before, Mapping) else {}), **numbers}


def _read_compliances(option: str, words: Sequence[str], names: AllNames) -> dict[str, float]:
    """Read NAME=NUMBER words; a compliance may be inf."""
    flag, found = f"--{option.replace('_', '-')}", {}
    for word in (pair for given in words for pair in pairs_of(given)):
        name, equals, number = word.rpartition("=")
        if not equals:
            raise UsageError(f"{flag}: got {word!r}, want NAME={number}")
        without = option == "compliance" and number.strip() == "inf"
        found[name] = math.inf if without else number_of(number, f"{flag} {name}")
    return found


def read_by_name(option: str, words: tuple[str, ...], articulation: Articulation) -> dict[str, float]:
    """Read JOINT=VALUE words, lists or files of one option for this robot. Raises UsageError."""
    return _read_named(option, words, names_for(articulation)[_kind_of(option).of]) if words else {}


def read_wrenches(words: Sequence[str], links: Sequence[str]) -> Array:
    """Read LINK=FX,FY,FZ[,TX,TY,TZ] words as (links, 6) [N, N m]; those of a link add up, those of a pattern act on
    each that it matches. Raises UsageError."""
    import numpy as np

    wrenches = np.zeros((len(links), 6))
    for name, numbers in map(_read_wrench, words):
        for link in matching_links([name], links, "--wrench"):
            wrenches[links.index(link), : len(numbers)] += numbers
    return wrenches


def _read_wrench(word: str) -> tuple[str, tuple[float, ...]]:
    """Read LINK=FX,FY,FZ[,TX,TY,TZ]."""
    name, _, text = word.rpartition("=")
    parts = text.split(",")
    if not name or len(parts) not in (3, 6):
        raise UsageError(f"--wrench: got {word!r}, want LINK=FX,FY,FZ or LINK=FX,FY,FZ,TX,TY,TZ")
    return name, tuple(number_of(part, f"--wrench {name}") for part in parts)


def _read_texts(name: str, words: Sequence[str], stored: Any, names: AllNames) -> str | dict[str, str]:
    """Read [LINK=]TEXT words: one for all links, or texts by link and, as "", that of all others."""
    found = {link: text for link, _, text in (word.rpartition("=") for word in words)}
    if found.keys() == {""}:
        return found[""]
    return {**(stored if isinstance(stored, Mapping) else {} if stored is None else {"": stored}), **found}


def read_base_pose(word: str) -> tuple[str, tuple[float, ...]]:
    """Read [NAME=]X,Y,Z[,R,P,Y], angles in rad or with the suffix deg."""
    name, _, text = word.rpartition("=")
    return name, read_pose("--base-pose", text)


def read_tool_pose(option: str, word: str) -> tuple[float, ...]:
    """Read X,Y,Z, then a quaternion QW,QX,QY,QZ or roll, pitch, yaw, which becomes one."""
    parts = word.split(",")
    if len(parts) != 7:
        pose = read_pose(option, word)
        return pose if len(pose) == 3 else (*pose[:3], *quaternion_from_rpy(*pose[3:]))
    return tuple(number_of(part, option) for part in parts)


def read_pose(option: str, text: str) -> tuple[float, ...]:
    """Read X,Y,Z[,R,P,Y], angles in rad or with the suffix deg."""
    parts = text.split(",")
    if len(parts) not in (3, 6):
        raise UsageError(f"{option}: {text!r} has {len(parts)} numbers, want X,Y,Z or X,Y,Z,ROLL,PITCH,YAW")
    if any(part.strip().endswith(DEGREES) for part in parts[:3]):
        raise UsageError(f"{option}: {text!r}: X,Y,Z are in metres")
    return tuple(number_of(part, option, "rad") for part in parts)


def control_file(words: Sequence[str]) -> str | None:
    """The value of --control that is a file, or None. Raises UsageError for more than one."""
    files = control_files(words)
    if len(files) > 1:
        raise UsageError(f"--control: {len(files)} files, want one")
    return files[0] if files else None


def control_files(words: Sequence[str]) -> list[str]:
    """The values of --control that are files, patterns of names expanded, with numbers in the order of their values."""
    return [
        file
        for word in words
        if Path(word).suffix.lower() in CONTROL_SUFFIXES
        or word == "-"
        or word.startswith(STREAMS)
        or is_file(word)
        or variables_named(word) is not None
        for file in _expanded(word)
    ]


def _expanded(word: str) -> list[str]:
    """The files that a pattern matches, or the word itself."""
    if is_file(word) or not set(word) & set("*?["):
        return [word]
    parts = re.compile("([0-9]+)")
    folder = Path(word).parent
    found = [str(folder / path.name) for path in folder.glob(Path(word).name)] if folder.is_dir() else []
    return sorted(found, key=lambda name: [(int(x), "") if x.isdigit() else (0, x) for x in parts.split(name)]) or [
        word
    ]


def _read_named(option: str, words: tuple[str, ...], names: Names) -> dict[str, float]:
    """Read JOINT=VALUE, where JOINT may be a pattern, a list or file of numbers, or (gains) one number for all.

    Later words override earlier ones, names override patterns. The "*" of gains stays.
    """
    flag, one_for_all = f"--{option.replace('_', '-')}", _kind_of(option).of in ("gain", "joint")
    if option == "control":
        words = tuple(word for word in words if not control_files([word]))
    exact: dict[str, float] = {}
    by_pattern: dict[str, float] = {}
    for word in (pair for given in words for pair in pairs_of(given, names.known)):
        name, equals, number = word.rpartition("=")
        if equals and name in names.known:
            exact[name] = number_of(number, f"{flag} {name}", _units(option, names).get(name, ""))
        elif equals and one_for_all and name == ALL:
            by_pattern[ALL] = number_of(number, flag)
        elif equals:
            by_pattern |= _read_pattern(flag, name, number, names._replace(units=_units(option, names)))
        elif one_for_all and "," not in word and not is_file(word):
            by_pattern[ALL] = number_of(word, flag)
        else:
            exact |= _read_vector(flag, word, option, names)
    return {**by_pattern, **exact}


def pairs_of(word: str, known: Collection[str] = ()) -> list[str]:
    """The JOINT=VALUE words of JOINT=VALUE,JOINT=VALUE,…; any other word, or one whose name is known, as it is."""
    parts = word.split(",")
    several = len(parts) > 1 and all("=" in part for part in parts)
    return parts if several and word.rpartition("=")[0] not in known else [word]


def _read_pattern(flag: str, pattern: str, number: str, names: Names) -> dict[str, float]:
    """The value by the names that a pattern matches; of a value in degrees, by the joints among them that turn."""
    matches = matching(pattern, names)
    if number.endswith(DEGREES) and matches:
        matches = [name for name in matches if "rad" in names.units.get(name, "")]
        if not matches:
            raise UsageError(f"{flag}: {pattern!r} matches no joint that turns, for {number}")
    if not matches:
        raise UsageError(f"{flag}: {unmatched(pattern, names)}")
    return dict.fromkeys(matches, number_of(number, f"{flag} {pattern}", "rad"))


def _read_pairs(option: str, words: Sequence[str], names: AllNames) -> dict[str, tuple[float | None, ...]]:
    """Read LINK=LIN,ANG words; later ones override earlier ones."""
    flag = f"--{option.replace('_', '-')}"
    pairs = {}
    for word in words:
        name, equals, numbers = word.rpartition("=")
        if not equals:
            raise UsageError(f"{flag}: got {word!r}, want LINK=LIN,ANG")
        pairs[name] = _read_pair(f"{flag} {name}", numbers)
    return pairs


def _read_pair(what: str, text: str) -> tuple[float | None, ...]:
    """Read LIN,ANG; either may be left out."""
    parts = text.split(",")
    if len(parts) != 2:
        raise UsageError(f"{what}: got {text!r}, want two numbers LIN,ANG")
    return tuple(number_of(part, what) if part.strip() else None for part in parts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _is_number(text: str) -> bool:
    try:
        angle_or_number(text)
    except ValueError:
        return False
    return True


def _read_vector(flag: str, word: str, option: str, names: Names) -> dict[str, float]:
    """A list or file of numbers by name, in the model's order: of all names, or of those that follow no other."""
    numbers, known = _numbers_of(flag, word), names.known
    if len(numbers) != len(known):
        if len(numbers) != len(names.independent):
            for text in numbers:
                if not _is_number(text):
                    raise UsageError(f"{flag}: {text[:80]!r} is neither NAME=VALUE, nor a number or a file")
            count = "1 number" if len(numbers) == 1 else f"{len(numbers)} numbers"
            raise UsageError(f"{flag}: got {count}, want {_wanted(len(numbers), option, names)}")
        known = names.independent
    units = _units(option, names)
    pairs = zip(known, numbers, strict=True)
    return {name: number_of(text, f"{flag} {name}", units.get(name, "")) for name, text in pairs}


def _units(option: str, names: Names) -> Mapping[str, str]:
    """The units of coordinates and velocities by name; other values are in no unit that can be chosen."""
    return names.units if _kind_of(option).degrees else {}


def _wanted(given: int, option: str, names: Names) -> str:
    """The number and kind of entries of a list, and a likely correction."""
    known, free = names.known, names.independent
    counts = f"{len(known)}" if len(known) == len(free) else f"{len(known)} (or {len(free)} without followers)"
    hint = ""
    of_base = {"q0": 7, "via": 7}.get(option, 6)
    if names.noun == "a joint" and given == len(known) + of_base:
        hint = f"; {of_base} more are those of a floating base (--base floating)"
    elif names.noun == "a joint" and option != "q0" and given == len(known) + 1:
        hint = "; velocities and forces of a floating base are 6, its coordinates 7"
    return f"{counts}: {_listed(known)}{hint}"


def _numbers_of(flag: str, word: str) -> list[str]:
    path = Path(word)
    if not is_file(word):
        if path.suffix in (".npy", ".csv", ".txt"):
            raise UsageError(f"{flag}: file {word!r} does not exist")
        return word.split(",")
    if path.suffix == ".npy":
        import numpy as np

        try:
            vector = np.load(io.BytesIO(read_input(path, _MOST_NUMBERS)), allow_pickle=False)
            if vector.dtype.kind not in "fiu":
                raise TypeError(f"{vector.dtype}")
            return [repr(float(x)) for x in vector.ravel()]
        except ArtsimError:
            raise
        except (ValueError, TypeError, OSError) as error:
            raise UsageError(f"{flag}: {word}: not a .npy file of numbers ({error})") from None
    try:
        text = read_input(path, _MOST_NUMBERS).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{flag}: cannot read {word}: {error}") from None
    return text.replace(",", " ").split()


Reader = Callable[[str, Any, Any, AllNames], Any]
"""read(setting, typed words, stored value or None, names)"""


def _joining(read: Callable[[str, Any, AllNames], dict[str, Any]]) -> Reader:
    """The reader of values by name, which join the stored ones."""
    return lambda name, words, stored, names: {
        **(stored if isinstance(stored, Mapping) else {}),
        **read(name, words, names),
    }


READERS: Mapping[str, Reader] = {
    "numbers": _read_numbers,
    "texts of joints": _read_choices,
    "texts of links": _read_texts,
    "numbers of followers": _read_by_follower,
    "numbers of constraints": _joining(_read_compliances),
    "angles": _joining(_read_turning),
    "wrenches": _joining(lambda name, words, names: dict(map(_read_wrench, words))),
    "places": _joining(lambda name, words, names: dict(map(read_base_pose, words))),
    "pairs": _joining(_read_pairs),
    "pushes": lambda name, words, stored, names: tuple(words),
    "pair": lambda name, words, stored, names: _read_pair(f"--{name.replace('_', '-')}", words),
    "names": _read_record,
}
"""Values of settings from typed words, by the form of their kind; click reads values of other forms."""
