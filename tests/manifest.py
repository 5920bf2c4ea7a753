"""The table of bad inputs as attacks that are made and run: `python -m tests.manifest` prints what came of each.

Every case is a command line in a process of its own, under limits, with every file and socket that Python opens noted
(what C libraries open too, where there is strace and the case asks for it).
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

CPU_SECONDS = 5.0  # of a processor that does `_WORK` in WORK_SECONDS
WORK_SECONDS = 0.44
MEMORY = 1 << 30  # bytes resident
ADDRESSES = 6 << 30  # bytes of address space, so that what asks for too much fails and does not take the machine's
LONGEST = 500  # characters of a message's line

Make = Callable[[Path], Sequence[object]]


class Case(NamedTuple):
    """An attack: its row, what makes it in an empty folder and gives the command's words, and what must come of it."""

    row: str
    make: Make
    code: int = 65
    words: tuple[str, ...] = ()
    traced: bool = False  # by strace, too
    room: float = 1.0  # times the seconds that others may take: large models without a fault


class Result(NamedTuple):
    """What a command did."""

    code: int
    stdout: str
    stderr: str
    seconds: float  # of the processor
    memory: int  # bytes resident at most; 0: not known, it ended without a word
    opened: tuple[str, ...]
    connected: tuple[str, ...]

    @property
    def line(self) -> str:
        """The last line of its messages."""
        return (self.stderr.splitlines() or [""])[-1]


# the command line under an audit hook: what is opened goes to a file of its own
_TRACED = """
import json, os, sys
log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def note(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        os.write(log, json.dumps(["open", os.path.realpath(os.fsdecode(arguments[0]))]).encode() + b"\\n")
    elif event in ("socket.connect", "socket.bind"):
        os.write(log, json.dumps(["socket", repr(arguments[1])]).encode() + b"\\n")
    elif event in ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen"):
        os.write(log, json.dumps(["program", repr(arguments[0])]).encode() + b"\\n")
from artsim.cli.main import main
sys.addaudithook(note)
sys.argv[0] = "artsim"
try:
    main()
finally:
    with open("/proc/self/status") as about:
        peak = next((line.split()[1] for line in about if line.startswith("VmHWM")), "0")
    os.write(log, json.dumps(["peak", peak]).encode() + b"\\n")
"""


def run(words: Sequence[object], folder: Path, *, traced: bool = False, timeout: float = 120.0) -> Result:
    """`artsim words…` in the folder, under limits."""
    log = folder.parent / f"{folder.name}.opened"
    command = [sys.executable, "-P", "-c", _TRACED, str(log), *map(str, words)]
    strace = shutil.which("strace") if traced else None
    seen = folder.parent / f"{folder.name}.strace"
    if strace:
        command = [strace, "-f", "-qq", "-e", "trace=open,openat,connect", "-o", str(seen), *command]

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=limits
        )
        timer = _killed_after(process, timeout)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "backslashreplace"))
    events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    opened = [what for kind, what in events if kind == "open" and what != f"/proc/{process.pid}/status"]
    peaks = [int(what) << 10 for kind, what in events if kind == "peak"]
    if strace and seen.exists():
        opened += _strace_opened(seen.read_text(errors="replace"), folder)
    return Result(
        process.returncode,
        *texts,
        usage.ru_utime + usage.ru_stime,
        max(peaks, default=0),  # ru_maxrss counts what forked it, too
        tuple(opened),
        tuple(what for kind, what in events if kind == "socket"),
    )


def _killed_after(process: subprocess.Popen[bytes], seconds: float) -> Callable[[], None]:
    import threading

    timer = threading.Timer(seconds, process.kill)
    timer.start()
    return timer.cancel


def _strace_opened(text: str, folder: Path) -> Iterator[str]:
    for line in text.splitlines():
        if "open" in line and '"' in line and " = -1 " not in line:
            yield os.path.realpath(folder / line.split('"')[1])


# Objects and strings, as readers make them: a slow or crowded processor takes longer for both alike.
_WORK = """
for _ in range(30):
    rows = [{"name": f"l{k}", "value": float(k)} for k in range(40_000)]
    found = sum(row["value"] for row in rows if row["name"].startswith("l1"))
"""


def slowness() -> float:
    """How many times longer than the machine that the limit was set on this one takes for `_WORK` now; at least 1."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-S", "-c", _WORK], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return max(1.0, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / WORK_SECONDS)


MEANING = {
    0: "accepted, with warnings where something is odd",
    2: "the command line or a configuration is refused",
    3: "stopped: numbers beyond all numbers, or rows that failed",
    65: "the file is refused",
    66: "no such file",
    71: "refused for the memory it would take, with an estimate",
    73: "the output is refused",
    74: "cannot be written",
}
OUTSIDE = ("/etc/passwd", "/etc/hostname", "/etc/shadow")


def wrong_with(case: Case, folder: Path, result: Result) -> list[str]:
    """In words, what of a result must not be; nothing where all is well."""
    wrong = []
    if result.code != case.code:
        wrong.append(f"exit {result.code}, want {case.code}")
    lines = result.stderr.splitlines()
    if "Traceback" in result.stderr or "internal error" in result.stderr:
        wrong.append("a traceback or an internal error")
    if "Warning: " in result.stderr:
        wrong.append("a warning of Python's")
    if case.code not in (0, 2):
        message = [line for line in lines if not line.startswith(_BESIDE)]
        ended = [line for line in message if not _is_summary(line)]
        if len(ended) != 1:
            wrong.append(f"{len(ended)} lines of message")
    if any(len(line) > LONGEST + 20 for line in lines):
        wrong.append(f"a line of {max(map(len, lines))} characters")
    wrong += [f"no {word!r}" for word in case.words if word not in result.stderr and word not in result.stdout]
    most = CPU_SECONDS * case.room
    if result.seconds > most and not case.traced and result.seconds > most * slowness():
        wrong.append(f"{result.seconds:.1f} s")
    if result.memory > MEMORY:
        wrong.append(f"{result.memory / 1e9:.2f} GB")
    wrong += [
        f"opened {name}" for name in result.opened if name in OUTSIDE or "/secret" in name.replace("/secrets.", "/")
    ]
    wrong += [f"connected to {name}" for name in result.connected if "127.0.0.1" not in name and "/" not in name]
    if (folder / "PWNED").exists() or (folder.parent / "PWNED").exists():
        wrong.append("its code ran")
    if case.code == 65 and (folder / "out.h5").exists():
        wrong.append("an output file")
    return wrong


_BESIDE = ("warning: ", "1 warning: ", "artsim: compil", "artsim: another process")
_SUMMARY = (
    *("energy ", "wrote ", "worst ", "at a limit", "the solver left", "contacts: ", "wedged"),
    *("nothing of the run is kept", "motors at "),
)


def _is_summary(line: str) -> bool:
    return line.startswith(_SUMMARY) or (" steps, " in line and " simulated in " in line) or " rows in " in line


def attempt(case: Case, folder: Path) -> tuple[Result, list[str]]:
    """Make a case in an empty folder two levels down, and run it."""
    place = folder / "deeper" / "here"
    place.mkdir(parents=True)
    words = case.make(place)
    result = run(words, place, traced=case.traced)
    return result, wrong_with(case, place, result)


def main() -> None:
    """Run all cases, two at a time, and print a line for each."""
    from tests.manifest_cases import CASES, ELSEWHERE

    def told(case: Case) -> tuple[str, int, bool]:
        with tempfile.TemporaryDirectory() as folder:
            result, wrong = attempt(case, Path(folder))
        what = f"{case.row:28} {result.code:3} {result.seconds:5.2f} s {result.memory >> 20:5} MB  {result.line[:110]}"
        return f"{what}{''.join(f'   WRONG: {words}' for words in wrong)}", result.code, bool(wrong)

    chosen = [case for case in CASES if not sys.argv[1:] or case.row.startswith(tuple(sys.argv[1:]))]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(told, chosen))
    for line, _, _ in results:
        print(line)
    print("\n| exit | what it says | cases |\n|---|---|---|")
    for code, count in sorted(Counter(code for _, code, _ in results).items()):
        print(f"| {code} | {MEANING.get(code, 'nothing that is planned')} | {count} |")
    print("\n| row | shown by |\n|---|---|")
    for row, test in ELSEWHERE.items():
        print(f"| {row} | {test} |")
    failures = sum(wrong for _, _, wrong in results)
    print(f"\n{len(chosen)} cases, {failures} wrong; {len(ELSEWHERE)} rows are shown by the tests above")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
