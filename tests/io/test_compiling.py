"""The progress of compiling kernels, by a clock of its own."""

from __future__ import annotations

import threading

import pytest

from artsim.io.runs import compiling as progress
from artsim.io.runs.compiling import Compilation, compiling
from artsim.sim.foundation.jit import Amount

pytestmark = pytest.mark.small

KERNELS = [Amount("small", 1.0), Amount("middle", 2.0), Amount("large", 5.0)]


class Clock:
    """A clock that a test sets [s]."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_time_to_go_follows_the_kernels_that_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once; 3 s a unit of work, as thought and as the first took: the largest alone takes 15 s, longer than half
    of all."""
    monkeypatch.setattr(progress, "_PACE", 3.0)
    clock = Clock()
    seen = Compilation(KERNELS, clock)
    seen.tell(0, False)
    seen.tell(1, False)
    assert str(seen) == "0 of 3 kernels ready after 0 s, about 15 s to go; now small, middle"
    clock.now += 3.0
    seen.tell(0, True)
    seen.tell(2, False)
    assert seen.remaining == pytest.approx(15.0)
    assert str(seen) == "1 of 3 kernels ready after 3 s, about 15 s to go; now middle, large"
    clock.now += 3.0
    seen.tell(1, True)
    assert seen.remaining == pytest.approx(12.0)
    clock.now += 94.0  # far longer than thought
    assert seen.remaining == pytest.approx(0.2 * 97.0)
    seen.tell(2, True)
    seen.tell(2, True)  # the parent loads what a child has compiled, and tells again
    assert (seen.ready, seen.remaining) == (3, 0.0)


def test_kernels_that_are_ready_correct_the_pace() -> None:
    """A first kernel that took 11 s for one unit of eight, beside two units and two thirds for which almost none were
    thought: 3 s for each."""
    clock = Clock()
    seen = Compilation(KERNELS, clock)
    seen.tell(0, False)
    clock.now += 11.0
    seen.tell(0, True)
    assert seen.remaining == pytest.approx(21.0)


def test_lines_name_the_kernels_and_end_with_the_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_AFTER", 0.01)
    told = threading.Event()
    say = progress._say
    monkeypatch.setattr(progress, "_say", lambda words: (say(words), "; now" in words and told.set()))
    with compiling(KERNELS) as tell:
        tell(0, False)
        assert told.wait(10.0)
        for number in range(3):
            tell(number, True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "artsim: compiling 3 kernels, once on this machine"
    assert any("compiling, 0 of 3 kernels ready after 0 s" in line and line.endswith("; now small") for line in lines)
    assert lines[-1].startswith("artsim: compiled 3 kernels in ")


@pytest.mark.parametrize("watched", [False, True])
def test_no_thread_is_there_before_a_kernel_is_begun(watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with threads does not fork, and would compile on one core."""
    monkeypatch.setattr(progress, "is_watched", lambda: watched)
    before = threading.active_count()
    with compiling(KERNELS) as tell:
        assert threading.active_count() == before
        tell(0, False)
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
