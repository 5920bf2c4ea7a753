"""`artsim plot`: what is drawn, from which rows, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import artsim
from artsim.cli.main import cli
from artsim.io.exports import figures
from artsim.io.readers.recording import open_recording
from artsim.sim.runs.configuration import RunConfig
from tests.conftest import ROOT

LEG, ARM = ROOT / "robots" / "leg.xml", ROOT / "robots" / "arm7.urdf"


def plot(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["plot", *map(str, arguments)])


@pytest.fixture(scope="module")
def leg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A leg that falls onto the ground."""
    output = tmp_path_factory.mktemp("plot") / "leg.h5"
    record = (*RunConfig().record, "energy")
    artsim.simulate(artsim.load(LEG), steps=300, record=record, output=output).close()  # type: ignore[union-attr]
    return output


def panels(path: Path, *names: str, entries: tuple[str, ...] = ()) -> list[figures.Panel]:
    with open_recording(path) as run:
        return [panel for name in figures._asked([run], names) for panel in figures._panels([run], name, entries, [])]


def test_the_default_figure(leg: Path, tmp_path: Path) -> None:
    told = plot(leg, "-o", tmp_path / "leg.png")
    assert told.exit_code == 0, told.output
    assert (tmp_path / "leg.png").read_bytes().startswith(b"\x89PNG")
    assert plot(leg, "-o", tmp_path / "leg.png").exit_code == 73
    assert plot(leg, leg, "states", "-o", tmp_path / "leg.svg").exit_code == 0
    assert "root.x" not in (tmp_path / "leg.svg").read_text()[:100] and b"<svg" in (tmp_path / "leg.svg").read_bytes()


def test_panels_have_one_unit_and_the_recorded_values(leg: Path) -> None:
    found = {(panel.title, panel.unit): panel for panel in panels(leg)}
    assert {unit for title, unit in found if title == "position"} == {"m", "1", "rad"}
    assert {unit for title, unit in found if title == "velocity"} == {"m/s", "rad/s"}
    with open_recording(leg) as run:
        knee = next(line for line in found["velocity", "rad/s"].lines if line.label == "knee")
        assert knee.values.tolist() == run["qvel"][:, run.labels.dof.index("knee")].tolist()
        assert knee.time.tolist() == pytest.approx(run.time)
        energy = {line.label: line.values for line in found["energy", "J"].lines}
        np.testing.assert_allclose(energy["total"], run["energy"].sum(axis=1))
        on_knee = {line.label: line.values for line in found["forces on knee", "N m"].lines}
        assert on_knee["contact"].tolist() == run["tau_contact"][:, run.labels.dof.index("knee")].tolist()
        table = run.contacts
        load = [table["force"][table["step"] == step, 0].sum() for step in range(300)]
        np.testing.assert_allclose(found["contact force", "N"].lines[0].values, load)


def test_a_default_figure_leaves_followers_and_joints_that_stand_still_out(tmp_path: Path) -> None:
    """Of a gripper with one driver and five followers one line; by name all. Of a run at rest all lines stay."""
    gripper = artsim.load(ROOT / "robots" / "two_finger_gripper.urdf")
    artsim.simulate(gripper, steps=50, output=tmp_path / "grip.h5").close()  # type: ignore[union-attr]
    artsim.simulate(artsim.load(ARM), steps=5, gravity=(0, 0, 0), output=tmp_path / "rest.h5").close()  # type: ignore[union-attr]
    with open_recording(tmp_path / "grip.h5") as run:
        (told,) = figures._panels([run], "qpos", (), [], all_lines=False)
        assert [line.label for line in told.lines] == ["left_driver_joint"]
        assert "5 that follow others or stand still left out" in told.title
        (every,) = figures._panels([run], "qpos", (), [])
        assert len(every.lines) == 6
    with open_recording(tmp_path / "rest.h5") as run:
        (told,) = figures._panels([run], "qpos", (), [], all_lines=False)
        assert len(told.lines) == 7 and told.title == "position"


def test_entries(leg: Path) -> None:
    found = panels(leg, "qpos", "link_position", entries=("knee", "foot"))
    assert [line.label for panel in found for line in panel.lines] == ["knee", "foot x", "foot y", "foot z"]


def test_a_long_run_keeps_its_peaks(leg: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "BINS", 20)
    with open_recording(leg) as run:
        time, values = figures._thinned(run, "qvel")
        assert len(time) == len(values) == 40 and np.all(np.diff(time) > 0)
        assert values.max(axis=0).tolist() == run["qvel"].max(axis=0).tolist()
        assert values.min(axis=0).tolist() == run["qvel"].min(axis=0).tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("qvle",), "did you mean 'qvel'"),
        (("com",), "--record +com"),
        (("qpos", "--entries", "kne"), "did you mean 'knee'"),
        (("-o", "leg.bmp"), ".svg"),
    ],
)
def test_refusals(
    leg: Path, arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = plot(leg, *arguments)
    assert told.exit_code == 2 and words in told.output
    assert plot("qpos").exit_code == 2
    assert not list(tmp_path.iterdir())


def test_a_variable_that_is_zero_throughout_says_so(tmp_path: Path) -> None:
    output = tmp_path / "arm.h5"
    artsim.simulate(ARM, steps=20, output=output).close()
    axes = axes_of(output, "tau_drive")
    assert [text.get_text() for text in axes.texts] == ["zero throughout"]
    assert axes.get_yticks().tolist() == [0.0]


def test_limits_that_lines_come_near_are_drawn(tmp_path: Path) -> None:
    """Of an arm whose second joint is driven into its limit at its largest force: those of this joint."""
    output = tmp_path / "arm.h5"
    drives: dict[str, Any] = {"stiffness": 2000.0, "damping": 100.0, "target": {"joint_2": 1.5}}
    artsim.simulate(artsim.load(ARM), steps=250, output=output, **drives).close()  # type: ignore[union-attr]

    def dashed(name: str) -> list[float]:
        lines = axes_of(output, name).get_lines()
        return sorted(line.get_ydata()[0] for line in lines if len(line.get_ydata()) == 2)

    assert dashed("qpos") == [2.09]
    assert {-1.7, 1.7} <= set(dashed("qvel"))
    assert dashed("tau_drive") == [-300.0, -180.0, 180.0, 300.0]
    assert dashed("tau_limit") == []


def test_decades_have_plain_numbers_and_the_axis_says_where_they_begin() -> None:
    values = np.full(1000, 3.0)
    values[500] = -4000.0
    line = figures.Line(0, "a", np.arange(1000.0), values)
    axes = drawn(figures.Panel("force", "N", (line,)))
    axes.figure.canvas.draw()
    told = [label.get_text() for label in axes.get_yticklabels()]
    assert {"0", "5", "10", "-5", "-10", "-100", "-1000"} <= {word.replace("−", "-") for word in told}
    assert axes.get_ylabel() == "[N], log beyond ±10"
    assert axes.get_yscale() == "symlog"


def axes_of(path: Path, name: str) -> Any:
    """The axes of the one panel of a variable."""
    (panel,) = panels(path, name)
    return drawn(panel)


def drawn(panel: figures.Panel) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure()
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    figures._draw_panel(axes, panel, {})
    return axes


def test_entries_may_be_patterns(leg: Path) -> None:
    found = [line.label for panel in panels(leg, "qvel", entries=("root.v*", "kn?e")) for line in panel.lines]
    assert found == ["root.vx", "root.vy", "root.vz", "knee"]
    told = plot(leg, "qvel", "--entries", "nobody*", "-o", leg.with_suffix(".svg"))
    assert told.exit_code == 2 and "no entry 'nobody*'" in told.output
    told = plot(leg, "qvel", "--entries", "knee,hipp", "-o", leg.with_suffix(".svg"))
    assert told.exit_code == 2 and "no entry 'hipp'; did you mean 'hip" in told.output
