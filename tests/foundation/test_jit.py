"""Compiled entries: what is kept is run only when it is whole and for this machine; what must not compile does not."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from artsim.cli import warmup
from artsim.loaders.load import load_articulation
from artsim.sim.foundation import jit, object_cache, ownership, sources, targets
from artsim.sim.foundation.apart import available_cores
from artsim.sim.foundation.jit import Entry, bind, disabled, point_at
from artsim.sim.foundation.records import WIDTH, lane_view, of_lane, with_lanes, with_members
from artsim.sim.quantities.catalogue import QUANTITIES
from artsim.sim.quantities.compute_records import COMPUTE
from artsim.sim.quantities.robot import Robot
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.packable import kernels
from artsim.sim.runs.plan import plan_run
from tests.foundation.small_entries import Called, Inner, Outer, Table, entry, make_table
from tests.tree_quantities import TREE_QUANTITIES

Array = np.ndarray[Any, np.dtype[np.float64]]

HERE = Path(__file__).resolve().parent
GRIPPER = HERE.parents[1] / "robots" / "two_finger_gripper.urdf"
PLAIN = not disabled() and os.environ.get("NUMBA_BOUNDSCHECK", "0") in ("", "0")
keeps_objects = pytest.mark.skipif(not PLAIN, reason="kept objects: neither NUMBA_DISABLE_JIT nor NUMBA_BOUNDSCHECK")
COMPILING = "artsim: compiling kernel 'sines', 1 of 1 (first use on this machine)\n"
DONE = re.compile(r"artsim: compiled '\w+' in \d+ s\n")
SINES = [math.sin(x) for x in (0.0, 0.5, 2.0)]


def run(cache: Path, **environment: str) -> tuple[dict[str, Any], str]:
    """What a fresh process that calls the entry `sines` saw, and its stderr but for how long it compiled."""
    done = subprocess.run(
        [sys.executable, str(HERE / "small_entries.py")],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"ARTSIM_CACHE_DIR": str(cache)} | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), DONE.sub("", done.stderr)


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder that holds the entry `sines`, compiled by a process of its own."""
    cache = tmp_path_factory.mktemp("cache") / "artsim"
    seen, messages = run(cache)
    assert messages == COMPILING
    assert seen["sine"] == pytest.approx(SINES, rel=1e-15)
    assert seen["numba"]
    return cache


@pytest.fixture
def kept(pristine: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged."""
    return Path(shutil.copytree(pristine, tmp_path / "cache"))


def the(cache: Path, suffix: str) -> Path:
    (found,) = cache.glob(f"*/*{suffix}")
    return found


# ------------------------------------------------------------------ the cache of objects


@keeps_objects
def test_a_warm_process_neither_compiles_nor_imports_numba(pristine: Path) -> None:
    seen, messages = run(pristine)
    assert messages == ""
    assert not seen["numba"]
    assert seen["sine"] == pytest.approx(SINES, rel=1e-15)


@keeps_objects
@pytest.mark.skipif(available_cores() < 2 or not hasattr(os, "fork"), reason="kernels are compiled one after another")
def test_missing_kernels_are_compiled_side_by_side_by_children(tmp_path: Path) -> None:
    """One of the three does not compile: the process itself says why, and has the two others without numba."""
    code = """
import sys
import numpy as np
from artsim.sim.foundation.jit import bind, warm
from small_entries import entry, make_table
good = [(entry("sines"), 1), (entry("both"), 1)]
warm(good)
table = make_table(1, 1)
for each, width in good:
    bind(each, width, table)()
print(table.sine[0], table.plain[0] - 2 * np.cos(1.0), "numba" in sys.modules)
try:
    warm([(entry("allocates"), 1), (entry("writes_constant"), 1)])
except Exception as error:
    print(type(error).__module__.split(".")[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=HERE,
        env=os.environ | {"ARTSIM_CACHE_DIR": str(tmp_path)},
        check=False,
    )
    sine = np.sin(1.0) + 2 * np.cos(1.0) - 2 * np.cos(1.0)
    assert done.stdout.split() == ["0.0", str(sine), "False", "numba"], done.stderr
    compiled = [line.split("'")[1] for line in done.stderr.splitlines() if "compiling kernel" in line]
    assert sorted(compiled) == ["allocates", "allocates", "both", "sines", "writes_constant"]


@keeps_objects
@pytest.mark.skipif(os.name != "posix", reason="posix permissions")
def test_the_folder_is_the_users_alone(pristine: Path) -> None:
    assert stat.S_IMODE(the(pristine, ".o").parent.stat().st_mode) == 0o700


def _flip_a_byte(cache: Path) -> None:
    code = bytearray(the(cache, ".o").read_bytes())
    code[len(code) // 2] ^= 0xFF
    the(cache, ".o").write_bytes(code)


def _truncate(cache: Path) -> None:
    code = the(cache, ".o").read_bytes()
    the(cache, ".o").write_bytes(code[: len(code) // 2])


def _empty(cache: Path) -> None:
    the(cache, ".o").write_bytes(b"")


def _lose(suffix: str) -> Callable[[Path], None]:
    return lambda cache: the(cache, suffix).unlink()


def _say(**changes: Any) -> Callable[[Path], None]:
    def change(cache: Path) -> None:
        about = json.loads(the(cache, ".json").read_text())
        assert set(changes) <= set(about)
        the(cache, ".json").write_text(json.dumps(about | changes))

    return change


def _write(text: str) -> Callable[[Path], None]:
    return lambda cache: the(cache, ".json").write_text(text) and None


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a byte of the object flipped": _flip_a_byte,
    "the object cut short": _truncate,
    "the object empty": _empty,
    "the object missing": _lose(".o"),
    "the description missing": _lose(".json"),
    "the description cut short": _write('{"symbol": "cfu'),
    "the description a list": _write("[1, 2]"),
    "the description nested too deep": _write("[" * 100_000),
    "another CPU": _say(host="i486"),
    "another symbol": _say(symbol="main"),
    "no external names": _say(needed=[]),
    "a number for external names": _say(needed=7),
}


@keeps_objects
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_noticed_and_mended(kept: Path, damage: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Compiled again, said on stderr, kept whole; the code that was damaged never runs."""
    DAMAGES[damage](kept)
    seen, messages = run(kept)
    assert messages == COMPILING
    assert seen["sine"] == pytest.approx(SINES, rel=1e-15)
    seen, messages = run(kept)
    assert (messages, seen["numba"]) == ("", False)


@keeps_objects
def test_without_a_folder_to_write_it_works_and_says_so_once(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    seen, messages = run(blocked / "cache", **without_temporary_files(tmp_path))
    assert seen["sine"] == pytest.approx(SINES, rel=1e-15)
    warning, compiling = messages.splitlines(keepends=True)
    assert warning.startswith(f"artsim: cannot keep compiled kernels in {blocked}")
    assert "compiling each time" in warning
    assert compiling == COMPILING


def without_temporary_files(tmp_path: Path) -> dict[str, str]:
    """An environment whose temporary folder holds a file where artsim's would be."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    (folder / f"artsim-{os.getuid()}").write_text("")
    return {"TMPDIR": str(folder)}


@keeps_objects
@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_no_error(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o500)
    seen, messages = run(folder, **without_temporary_files(tmp_path))
    assert seen["sine"] == pytest.approx(SINES, rel=1e-15)
    assert messages.count("cannot keep compiled kernels") == 1


@keeps_objects
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a home that nobody can write")
def test_f8_without_a_home_kernels_are_kept_among_temporary_files(tmp_path: Path) -> None:
    """Said once, when there is something to keep; found again by the next process."""
    environment = {"ARTSIM_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": "/proc", "TMPDIR": str(tmp_path)}
    seen, messages = run(tmp_path, **environment)
    warning, compiling = messages.splitlines(keepends=True)
    assert "cannot keep compiled kernels in /proc" in warning
    assert f"kept in {tmp_path}/artsim-{os.getuid()}" in warning
    assert compiling == COMPILING
    assert run(tmp_path, **environment) == (seen | {"numba": False}, "")


@keeps_objects
@pytest.mark.skipif(os.name != "posix", reason="posix permissions")
@pytest.mark.parametrize("how", ["others may write it", "it is a link"])
def test_kernels_are_not_taken_from_a_temporary_folder_of_others(how: str, pristine: Path, tmp_path: Path) -> None:
    theirs = tmp_path / f"artsim-{os.getuid()}"
    if how == "it is a link":
        theirs.symlink_to(shutil.copytree(pristine, tmp_path / "elsewhere"))
    else:
        shutil.copytree(pristine, theirs)
        theirs.chmod(0o777)
    seen, messages = run(Path("/dev/null"), TMPDIR=str(tmp_path))
    assert seen["numba"]
    assert "compiling each time" in messages


@keeps_objects
@pytest.mark.skipif(os.name != "posix", reason="posix permissions")
@pytest.mark.parametrize("how", ["a folder above", "the folder", "a file", "a pipe", "a link"])
def test_kernels_are_not_taken_from_where_others_can_write(how: str, kept: Path, tmp_path: Path) -> None:
    """A shared folder, a home that is somebody else's: machine code from there would be theirs."""
    folder, written = the(kept, ".o").parent, the(kept, ".json")
    if how in ("a folder above", "the folder"):
        (kept if how == "a folder above" else folder).chmod(0o777)
    elif how == "a file":
        the(kept, ".o").chmod(0o666)
    else:
        content = written.read_bytes()
        written.unlink()
        if how == "a pipe":
            os.mkfifo(written)
        else:
            (tmp_path / "elsewhere.json").write_bytes(content)
            written.symlink_to(tmp_path / "elsewhere.json")
    seen, messages = run(kept, TMPDIR=str(tmp_path))
    assert seen["numba"]
    assert seen["sine"] == pytest.approx(SINES, rel=1e-15)
    if how in ("a folder above", "the folder"):
        assert "others than you own" in messages
        assert (tmp_path / f"artsim-{os.getuid()}").is_dir()
        assert len(messages.splitlines()) == 2


@keeps_objects
@pytest.mark.skipif(os.name != "posix", reason="posix permissions")
def test_folders_of_others_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ownership.whose_else(tmp_path / "not" / "there") is None
    if os.geteuid() == 0:
        (tmp_path / "theirs").mkdir()
        os.chown(tmp_path / "theirs", 12345, 12345)
    else:
        monkeypatch.setattr(ownership, "_user", lambda: 12345)
    assert ownership.whose_else(tmp_path / "theirs" / "cache") is not None


def access_list(user: int) -> bytes:
    """A POSIX access control list that lets another user write: owner, that user, group, mask, others."""
    entries = [(0x01, 7, -1), (0x02, 7, user), (0x04, 5, -1), (0x10, 7, -1), (0x20, 0, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


@keeps_objects
@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="POSIX access control lists of Linux")
def test_lists_and_links_of_others_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that a list opens to others, where the group is the owner's own, and every folder on a way of links."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "mine"
    place.mkdir(mode=0o700)
    assert ownership.whose_else(place) is None
    try:
        os.setxattr(place, "system.posix_acl_access", access_list(12345))
    except OSError:
        pytest.skip("no access control lists on this file system")
    os.chown(place, os.geteuid(), os.geteuid()) if os.geteuid() == 0 else None
    assert ownership.whose_else(place / "cache") == place
    (tmp_path / "a").mkdir()
    (tmp_path / "open").mkdir()
    (tmp_path / "c").mkdir()
    (tmp_path / "open" / "second").symlink_to("../c")
    (tmp_path / "a" / "first").symlink_to(tmp_path / "open" / "second")
    assert ownership.whose_else(tmp_path / "a" / "first" / "cache") is None
    (tmp_path / "open").chmod(0o777)  # where anybody could put another link
    assert ownership.whose_else(tmp_path / "a" / "first" / "cache") == tmp_path / "open"
    (tmp_path / "round").symlink_to("round")
    assert ownership.whose_else(tmp_path / "round" / "cache") is None  # is nowhere
    if os.geteuid() == 0:
        (tmp_path / "theirs").symlink_to("c")
        os.lchown(tmp_path / "theirs", 12345, 12345)
        assert ownership.whose_else(tmp_path / "theirs") == tmp_path / "theirs"


@keeps_objects
@pytest.mark.skipif(os.name != "posix", reason="posix permissions")
def test_folders_above_are_made_for_the_user_alone(pristine: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert ownership.make_own(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(place.stat().st_mode) for place in (tmp_path / "a", tmp_path / "a" / "b")} == {0o700}


@keeps_objects
def test_an_object_under_another_name_is_not_run(kept: Path) -> None:
    """That of another entry, variant or width would compute something else in silence."""
    folder = the(kept, ".o").parent
    for suffix in (".o", ".json"):
        (found,) = folder.glob(f"*{suffix}")
        found.rename(found.with_name(f"other-1{suffix}"))
    assert object_cache.read(folder / "other-1", targets.level()) is None


@keeps_objects
def test_kernels_that_are_there_are_used_where_nothing_can_be_written(
    pristine: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As in an image made with `artsim warmup` and run read-only."""
    monkeypatch.setenv("ARTSIM_CACHE_DIR", str(pristine))
    monkeypatch.setattr(jit, "_loaded", {})
    monkeypatch.setattr(object_cache, "_can_write", lambda folder: False)
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setattr(jit, "compiled", lambda *_: pytest.fail("compiles"))
    table = make_table(3, 1)
    bind(entry("sines"), 1, table)()
    assert capfd.readouterr().err == ""


@keeps_objects
def test_f10_one_of_the_processes_that_start_together_compiles(tmp_path: Path) -> None:
    """The others wait for it, and nothing is left beside the objects."""
    command = [sys.executable, str(HERE / "small_entries.py")]
    environment = os.environ | {"ARTSIM_CACHE_DIR": str(tmp_path)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = [subprocess.Popen(command, env=environment, text=True, **pipes) for _ in range(4)]
    told = [process.communicate(timeout=120) for process in started]
    assert all(json.loads(output)["sine"] == pytest.approx(SINES, rel=1e-15) for output, _ in told)
    assert sum(json.loads(output)["numba"] for output, _ in told) == 1
    lines = [line for _, messages in told for line in DONE.sub("", messages).splitlines(keepends=True)]
    assert lines.count(COMPILING) == 1
    assert all("another process compiles kernel 'sines'" in line for line in lines if line != COMPILING)
    assert sorted(path.suffix for path in tmp_path.glob("*/*")) == [".json", ".o"]


@keeps_objects
def test_f10_a_compiling_process_that_is_killed_leaves_the_turn_to_the_next(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "small_entries.py")]
    environment = os.environ | {"ARTSIM_CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None and process.stderr.readline() == COMPILING
    process.kill()
    process.communicate()
    assert list(tmp_path.glob("*/*.lock"))
    seen, messages = run(tmp_path)
    assert (seen["numba"], messages) == (True, COMPILING)


@pytest.mark.parametrize(
    "robot",
    [path for path in sorted((HERE.parents[1] / "robots").iterdir()) if path.suffix in (".urdf", ".xml")],
    ids=lambda path: path.stem,
)
def test_warmup_compiles_what_runs_and_rollouts_of_our_robots_need(
    robot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: set[tuple[str, int]] = set()
    monkeypatch.setattr(
        warmup, "warm", lambda kernels: warmed.update((entry.name + entry.variant, width) for entry, width in kernels)
    )
    assert CliRunner().invoke(warmup.warmup).exit_code == 0
    articulation = load_articulation(robot)
    for ground in (False, True):
        needed = kernels(plan_run(articulation, RunConfig(steps=1, ground=ground)))
        assert {(entry.name + entry.variant, width) for entry, width in needed} <= warmed


def test_another_layout_of_a_record_is_another_kernel() -> None:
    """Records may be declared where the kernel's module does not import them."""
    one = entry("sines", "tests.foundation.small_kernels")
    other = replace(one, records=(with_lanes(Table, "Wide", ("plain",)),))
    assert jit.file_name(one, 1, "v") == jit.file_name(replace(one), 1, "v") != jit.file_name(other, 1, "v")


def test_an_edit_makes_those_kernels_stale_that_can_depend_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "sim/a.py": "from artsim.sim.rooms.b import (\n    x,\n)\n",
        "sim/rooms/b.py": "def late():\n    from artsim.sim.rooms import c\n",
        "sim/rooms/c.py": "x = 1\n",
        "sim/rooms/d.py": "from artsim.sim.a import x\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sources, "_PACKAGE", tmp_path)

    def digests() -> dict[str, str]:
        sources._source.cache_clear()
        return {name: sources.digest_of.__wrapped__(f"artsim.sim.{name}") for name in ("a", "rooms.c", "rooms.d")}

    before = digests()
    assert digests() == before
    (tmp_path / "sim/rooms/d.py").write_text(files["sim/rooms/d.py"] + "# more\n")
    after = digests()
    assert [after[name] == before[name] for name in before] == [True, True, False]
    (tmp_path / "sim/rooms/c.py").write_text("x = 2\n")
    last = digests()
    assert not {*last.values()} & {*after.values()}
    sources._source.cache_clear()


def test_a_kernel_s_digest_covers_all_that_it_can_call() -> None:
    """Every module that the process has imported for an entry, and that has kernels, is among what it depends on."""
    code = """
import sys
from importlib import import_module
from artsim.sim.foundation import jit, sources
seen = []
jit.njit = jit.inlined = lambda function: seen.append(function.__module__) or function
from artsim.sim.run_data.registry import SOLVERS
module = SOLVERS["newton"].module
import_module(module)
covered, to_do = set(), [module]
while to_do:
    module = to_do.pop()
    if module not in covered:
        covered.add(module)
        to_do += sources._source(module)[1]
print(len(set(seen)), *sorted(set(seen) - covered))
"""
    number, *missed = _python(code).stdout.split()
    assert int(number) > 10
    assert missed == []


# ------------------------------------------------------------------ numba stays out of the way


def _python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@keeps_objects
def test_computing_with_warm_objects_imports_no_numba() -> None:
    for width in (1, WIDTH):
        jit.warm([(COMPUTE, width)])
    code = """
import sys
import numpy as np
from artsim.loaders.load import load_articulation
from artsim.sim.quantities.robot import Robot
robot = Robot.of(load_articulation(sys.argv[1]))
robot.compute(robot.reference)
robot.compute(np.tile(robot.reference, (8, 1)))
print(sorted({"numba", "trimesh"} & set(sys.modules)))
"""
    done = _python(code, str(GRIPPER))
    assert (done.stdout, done.stderr) == ("[]\n", "")


@keeps_objects
def test_kernels_as_plain_python_give_the_same_numbers(tmp_path: Path) -> None:
    code = """
import sys
import numpy as np
from artsim.loaders.load import load_articulation
from artsim.sim.runs.plan import plan_run
from artsim.sim.quantities.catalogue import OF_CONSTRAINTS, QUANTITIES
from artsim.sim.quantities.robot import Robot
robot = Robot.of(load_articulation(sys.argv[1]))
q = np.linspace(-0.3, 0.4, robot.nq)
v, a, tau = q + 1, q * 3, q - 2
full = robot.compute(q, v, a, tau, quantities=QUANTITIES)
of_tree = [name for name in QUANTITIES if name not in OF_CONSTRAINTS]
reduced = robot.compute(q, v, a, tau, quantities=of_tree, reduced=True)
np.savez(sys.argv[2], **full, **{name + "_reduced": values for name, values in reduced.items()})
"""
    for name, flag in (("python", "1"), ("compiled", "0")):
        _python(code, str(GRIPPER), str(tmp_path / name), NUMBA_DISABLE_JIT=flag)
    python, compiled = (np.load(tmp_path / f"{name}.npz") for name in ("python", "compiled"))
    assert len(compiled.files) == len(QUANTITIES) + len(TREE_QUANTITIES)
    for name in compiled.files:
        scale = max(1.0, float(np.abs(compiled[name]).max()))
        assert np.abs(python[name] - compiled[name]).max() < 1e-12 * scale, name


@pytest.mark.small
@pytest.mark.skipif(not disabled(), reason="needs NUMBA_DISABLE_JIT")
def test_plain_python_refuses_the_pack_width_and_computes_tables_row_by_row() -> None:
    with pytest.raises(ValueError, match="scalar width only"):
        bind(entry("sines", "tests.foundation.small_kernels"), WIDTH, make_table(3, WIDTH))
    robot = Robot.of(load_articulation(GRIPPER))
    table = robot.compute(np.tile(robot.reference, (WIDTH, 1)), quantities=["mass_matrix"])
    assert np.array_equal(table["mass_matrix"][3], robot.compute(robot.reference)["mass_matrix"])


# ------------------------------------------------------------------ what does not compile


@pytest.mark.small
def test_members_of_bundles_are_reached_and_missing_ones_prune_what_asks_for_them() -> None:
    table = make_table(3, 1)
    table.angle[1] = 3.0
    kernel = replace(entry("uses_members", "tests.foundation.small_kernels"), records=(Table, Outer))
    bind(kernel, 1, table, Outer(None, Inner(table, None), table))()
    assert table.plain[0] == 1.0 * 3.0 + 1.0 + 0.25


@pytest.mark.small
@pytest.mark.skipif(disabled(), reason="packs need compiled kernels")
def test_a_kernel_of_one_robot_works_on_a_lane_in_place() -> None:
    pack, lane = make_table(5, WIDTH), 3
    pack.angle[:] = np.linspace(-2.0, 2.0, 5 * WIDTH).reshape(5, WIDTH)
    View = lane_view(Table, "LaneTable")
    kernel = replace(entry("sines", "tests.foundation.small_kernels"), records=(View,), variant="_in_lane")
    seen = of_lane(View, pack, pack, lane)
    bind(kernel, 1, seen)()
    assert np.abs(pack.sine[:, lane] - np.sin(pack.angle[:, lane])).max() <= 1e-15
    assert np.abs(pack.cosine[:, lane] - np.cos(pack.angle[:, lane])).max() <= 1e-15
    others = np.arange(WIDTH) != lane
    assert not pack.sine[:, others].any()
    with pytest.raises(TypeError, match="sine"):
        bind(kernel, 1, seen._replace(sine=np.zeros(5)))
    with pytest.raises(TypeError, match="LaneTable is not"):
        bind(entry("sines", "tests.foundation.small_kernels"), 1, seen)


@pytest.mark.small
def test_a_bundle_other_than_declared_is_refused() -> None:
    if disabled():
        pytest.skip("Python takes what it gets")
    table = make_table(3, 1)
    kernel = replace(entry("uses_members", "tests.foundation.small_kernels"), records=(Table, Outer))
    with pytest.raises(TypeError, match="uses_members"):
        bind(kernel, 1, table, Outer(table, Inner(table, None), table))
    declared = with_members(Outer, missing=Outer, table=None)
    assert declared.__name__ == "Outer[Outer,Inner,]"


@keeps_objects
@pytest.mark.parametrize("name", ["allocates", "writes_constant"])
@pytest.mark.parametrize("width", [1, WIDTH])
def test_a_kernel_that_breaks_the_rules_does_not_compile(
    name: str, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numba.core.errors import NumbaError

    _use_cache(tmp_path, monkeypatch)
    with pytest.raises(NumbaError):
        bind(entry(name, "tests.foundation.small_kernels"), width, make_table(3, width))
    assert list(tmp_path.iterdir()) == []
    # the compiler is none the worse for it
    bind(entry("sines", "tests.foundation.small_kernels"), width, make_table(3, width))()


def _use_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process's objects come from `folder` for the length of a test."""
    monkeypatch.setenv("ARTSIM_CACHE_DIR", str(folder))
    monkeypatch.setattr(jit, "_loaded", {})
    monkeypatch.setattr(object_cache, "folder", lambda: folder)
    monkeypatch.setattr(object_cache, "_folders", lambda: iter([folder]))


@pytest.mark.small
@pytest.mark.skipif(PLAIN, reason="out-of-range reads are silent without NUMBA_BOUNDSCHECK")
def test_reading_beyond_an_array_is_seen() -> None:
    with pytest.raises(IndexError):
        bind(entry("reads_beyond", "tests.foundation.small_kernels"), 1, make_table(3, 1))()


@pytest.mark.small
def test_an_entry_called_by_a_kernel() -> None:
    table, called = make_table(3, 1), Called(np.zeros(2, np.int64))
    table.angle[:] = 0.5
    kept = point_at(entry("sines", "tests.foundation.small_kernels"), 1, called.pointers, table)
    bind(Entry("calls", "tests.foundation.small_kernels", (Called,)), 1, called)()
    assert np.abs(table.sine - np.sin(0.5)).max() <= 1e-15
    del kept


@pytest.mark.small
@pytest.mark.skipif(PLAIN, reason="out-of-range reads are silent without NUMBA_BOUNDSCHECK")
def test_reading_beyond_in_a_called_entry_is_seen() -> None:
    table, called = make_table(3, 1), Called(np.zeros(2, np.int64))
    kept = point_at(entry("reads_beyond", "tests.foundation.small_kernels"), 1, called.pointers, table)
    with pytest.raises(IndexError):
        bind(Entry("calls", "tests.foundation.small_kernels", (Called,)), 1, called)()
    del kept


# ------------------------------------------------------------------ sincos


def _sincos(angles: Array, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Array, Array]:
    if PLAIN:
        _use_cache(tmp_path, monkeypatch)
    table = make_table(len(angles) // width, width)
    table.angle.reshape(-1)[:] = angles
    bind(entry("sines", "tests.foundation.small_kernels"), width, table)()
    return table.sine.reshape(-1), table.cosine.reshape(-1)


@pytest.mark.small
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no longer float than double here")
@pytest.mark.parametrize(
    "width", [1, pytest.param(WIDTH, marks=pytest.mark.skipif(disabled(), reason="pack width: NUMBA_DISABLE_JIT"))]
)
def test_sincos_is_within_two_ulp(width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over |x| < 1e5, and where it is hardest: beside the multiples of π/4, where a result is next to zero."""
    rng = np.random.default_rng(0)
    octants = np.arange(-127_000, 127_000, 11) * (np.pi / 4)
    angles = np.concatenate(
        [
            rng.uniform(-1e5, 1e5, 20_000),
            rng.uniform(-7, 7, 20_000),
            *(np.nextafter(octants, octants + step) for step in (-1, 0, 1)),
            10.0 ** rng.uniform(-300, 5, 1_000),
            [0.0, -0.0, 5e-324, 99_999.999, -99_999.999],
        ]
    )
    angles = angles[np.abs(angles) < 1e5]
    angles = angles[: len(angles) // WIDTH * WIDTH]
    sine, cosine = _sincos(angles, width, tmp_path, monkeypatch)
    exact = angles.astype(np.longdouble)
    for value, reference in ((sine, np.sin(exact)), (cosine, np.cos(exact))):
        error = np.abs(value - reference) / np.spacing(np.abs(reference.astype(float)))
        worst = int(np.argmax(error))
        assert error[worst] < 2, (angles[worst], float(error[worst]))


@pytest.mark.small
@pytest.mark.skipif(disabled(), reason="pack width: NUMBA_DISABLE_JIT")
def test_sincos_is_the_same_in_both_widths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    angles = np.random.default_rng(1).uniform(-100, 100, 8_000)
    scalar = _sincos(angles, 1, tmp_path, monkeypatch)
    pack = _sincos(angles, WIDTH, tmp_path, monkeypatch)
    for one, eight in zip(scalar, pack, strict=True):
        assert np.array_equal(one, eight)


def test_threads_that_start_together_load_a_kernel_once() -> None:
    """In a process of its own: llvmlite crashed it when two threads linked at the same time."""
    code = """
import threading
from artsim.sim.foundation import jit, object_cache, ownership, sources, targets
from artsim.sim.quantities.compute_records import COMPUTE
linked, link = [], jit._link
jit._link = lambda *kept: linked.append(1) or link(*kept)
started = threading.Barrier(8)
def load():
    started.wait()
    jit.warm([(COMPUTE, 1)])
threads = [threading.Thread(target=load) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert linked == [1], linked
"""
    if jit.disabled() or jit._checked():
        pytest.skip("kernels are not loaded from objects")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
