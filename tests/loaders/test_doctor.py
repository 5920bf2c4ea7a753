"""The doctor: seeded faults are found, one by one, and nothing in robots that are sound."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from artsim.cli.main import cli
from artsim.loaders.doctor.finding import HINTS, RULES
from artsim.loaders.doctor.forms import Form, depth_of, distance_to_hull, points_of
from artsim.loaders.load import load_text
from artsim.loaders.writers.mesh_files import as_obj
from artsim.sim.articulation.description import Geom
from tests.conftest import ROOT
from tests.loaders.doctor_faults import FAULTS, FINGER, MJCF, URDF, Fault

BOX = (
    (1, 3, 2, 2, 3, 4),
    (5, 6, 7, 6, 8, 7),
    (1, 2, 5, 2, 6, 5),
    (3, 7, 4, 4, 7, 8),
    (1, 5, 3, 3, 5, 7),
    (2, 4, 6, 4, 8, 6),
)


def box(size: Sequence[float], scale: float = 1.0) -> str:
    corners = [[x * size[0], y * size[1], z * size[2]] for z in (-0.5, 0.5) for y in (-0.5, 0.5) for x in (-0.5, 0.5)]
    return as_obj((scale * np.array(corners)).ravel().tolist(), [k - 1 for two in BOX for k in two])


def hook() -> str:
    """A closed channel of three walls, whose hull is several times as large."""
    profile = [(0, 0), (6, 0), (6, 6), (5.7, 6), (5.7, 0.3), (0.3, 0.3), (0.3, 6), (0, 6)]
    n = len(profile)
    points = [(0.01 * x - 0.03, 0.0025 * y, z) for z in (-0.01, 0.01) for x, y in profile]
    sides = [t for k in range(n) for t in ((k, (k + 1) % n, n + k), ((k + 1) % n, n + (k + 1) % n, n + k))]
    flat = [(0, 1, 4), (0, 4, 5), (1, 2, 3), (1, 3, 4), (0, 5, 6), (0, 6, 7)]
    caps = [(a, c, b) for a, b, c in flat] + [(n + a, n + b, n + c) for a, b, c in flat]
    return as_obj([x for p in points for x in p], [k for t in (*sides, *caps) for k in t])


def written(folder: Path, fault: Fault | None, model: str = "urdf") -> Path:
    """The model with a fault, and its meshes."""
    text = URDF if model == "urdf" else MJCF
    if fault is not None:
        assert fault.before in text, fault.name
        text = text.replace(fault.before, fault.after)
    for name, content in (("finger", box(FINGER)), ("finger_mm", box(FINGER, 1000.0)), ("hook", hook())):
        (folder / f"{name}.obj").write_text(content)
    path = folder / ("seeded.urdf" if model == "urdf" else "seeded.xml")
    path.write_text(text)
    return path


def check(*words: object) -> Result:
    return CliRunner().invoke(cli, ["check", *map(str, words)])


def codes(path: Path) -> list[str]:
    return [finding["code"] for finding in json.loads(check(path, "--json").stdout)["findings"]]


@pytest.mark.small
@pytest.mark.parametrize("model", ["urdf", "mjcf"])
def test_nothing_is_found_in_a_sound_robot(model: str, tmp_path: Path) -> None:
    done = check(written(tmp_path, None, model), "--strict")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.small
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_seeded_fault_is_found(fault: Fault, tmp_path: Path) -> None:
    """With its code, its words and its file; and nothing else is."""
    path = written(tmp_path, fault, fault.model)
    done = check(path, "--json")
    findings = json.loads(done.stdout)["findings"]
    assert {finding["code"] for finding in findings} == {fault.code}, findings
    assert any(fault.words in finding["message"] for finding in findings), findings
    assert all(finding["file"] == str(path) and finding["line"] > 0 for finding in findings)
    assert check(path, "--strict").exit_code in ((0,) if fault.code in HINTS else (1, 65))  # 65: a run refuses it, too
    assert check(path).exit_code == 0


def test_every_rule_has_a_fault() -> None:
    assert {fault.code for fault in FAULTS} == RULES.keys()
    assert len(FAULTS) >= 30


@pytest.mark.small
def test_lines_say_place_reason_and_remedy(tmp_path: Path) -> None:
    fault = next(fault for fault in FAULTS if fault.name == "effort 0")
    path = written(tmp_path, fault)
    line = 1 + next(n for n, text in enumerate(path.read_text().splitlines()) if 'effort="0"' in text)
    assert check(path).stderr.splitlines() == [
        f"warning: {path}:{line}: joint 'shoulder': effort 0 means unlimited (effort-zero)",
        f"  {RULES['effort-zero']}",
        "  mend: artsim edit … --effort shoulder=VALUE",
    ]


@pytest.mark.small
def test_robots_of_our_own_are_sound() -> None:
    for path in sorted((ROOT / "robots").iterdir()):
        if path.suffix in (".urdf", ".xml"):
            dense = ["inertia-density"] if path.name == "chain20.urdf" else []  # 100 kg in 1.4 dm³, on purpose
            assert codes(path) == dense, path.name


@pytest.mark.small
def test_large_meshes_are_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = next(fault for fault in FAULTS if fault.code == "mesh-scale")
    path = written(tmp_path, fault)
    monkeypatch.setattr("artsim.loaders.doctor.forms.MOST_BYTES", 100)
    assert "1 mesh file was not read" in check(path).stderr
    assert "mesh-scale" in check(path, "--meshes").stderr


@pytest.mark.small
def test_the_page_has_findings_and_pictures(tmp_path: Path) -> None:
    fault = next(fault for fault in FAULTS if fault.name == "grams")
    path, page = written(tmp_path, fault), tmp_path / "report.html"
    assert check(path, "--html", page).exit_code == 0
    text = page.read_text()
    assert "inertia-density" in text and RULES["inertia-density"] in text and "--solid" in text
    assert text.count("<svg") == 2 and text.count('class="found"') == 4  # two shapes in two views
    refused = check(path, "--html", page)
    assert refused.exit_code == 73 and "--force" in refused.stderr
    assert check(path, "--html", page, "--force").exit_code == 0


# --- geometry, beside closed forms -----------------------------------------------------------------------------------


def form(kind: str, size: tuple[float, ...], turn: np.ndarray, origin: np.ndarray) -> Form:
    points = points_of(kind, size)
    assert points is not None
    radius = size[0] if kind in ("sphere", "capsule") else 0.0
    return Form(Geom("g", kind, "collision", size), points, radius, np.eye(3), None).moved(turn, origin)  # type: ignore[arg-type]


def test_the_distance_of_a_point_from_a_hull_is_that_of_a_box() -> None:
    random = np.random.default_rng(3)
    points = points_of("box", (0.3, 0.2, 0.1))
    assert points is not None
    for _ in range(200):
        at = random.uniform(-0.6, 0.6, 3)
        want = float(np.linalg.norm(np.maximum(np.abs(at) - (0.3, 0.2, 0.1), 0.0)))
        found = distance_to_hull(points, at, 1e-3)
        assert found <= want + 1e-9
        assert found > 0.9 * want or want < 1.5e-3


def test_depths_are_those_of_spheres_capsules_and_boxes_and_apart_is_apart() -> None:
    random = np.random.default_rng(4)
    for _ in range(200):
        at = random.uniform(-0.5, 0.5, 3)
        turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
        turn *= np.sign(np.linalg.det(turn))
        a, b = form("sphere", (0.2,), np.eye(3), np.zeros(3)), form("sphere", (0.1,), turn, at)
        assert abs(depth_of(a, b) - max(0.0, 0.3 - np.linalg.norm(at))) < 2e-4
        long = form("capsule", (0.1, 0.3), np.eye(3), np.zeros(3))
        gap = np.linalg.norm(at - [0.0, 0.0, np.clip(at[2], -0.3, 0.3)])
        if gap > 0.02:  # beside it a way out along the axis may be shorter
            assert depth_of(long, b) <= max(0.0, 0.2 - gap) + 2e-3
        assert (depth_of(long, b) > 1e-4) == (gap < 0.2 - 1e-4) or abs(gap - 0.2) < 1e-3


# --- what mends it ---------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_what_is_said_to_mend_a_fault_does(fault: Fault, tmp_path: Path) -> None:
    """The edits that findings name, one after the other, until nothing is found; none brings another finding."""
    path = written(tmp_path, fault, fault.model)
    for turn in range(9):
        findings = json.loads(check(path, "--json").stdout)["findings"]
        if not findings:
            return
        words = [word.replace("VALUE", "7") for word in findings[0]["mend"]]
        assert words, findings
        path, before = tmp_path / f"mended_{turn}{path.suffix}", path
        done = CliRunner().invoke(cli, ["edit", str(before), *words, "-o", str(path)])
        assert done.exit_code == 0, (words, done.output)
    raise AssertionError(findings)


def test_a_hand_without_shapes_is_not_judged_by_those_of_its_sensor() -> None:
    from artsim.loaders.doctor.examine import examine
    from artsim.sim.articulation.compile_model import compile_model
    from artsim.sim.geometry.collision_pairs import collision_pairs

    def codes(shape: str) -> set[str]:
        ball = '<visual><geometry><sphere radius="{}"/></geometry></visual>'
        moments = 'ixx="4e-4" ixy="0" ixz="0" iyy="4e-4" iyz="0" izz="4e-4"'
        hand = f'<inertial><mass value="0.6"/><inertia {moments}/></inertial>{ball.format(0.001) if shape else ""}'
        text = f"""<robot name="r"><link name="base"/><link name="hand">{hand}</link>
        <link name="sensor">{ball.format(0.005)}</link>
        <joint name="turn" type="continuous"><parent link="base"/><child link="hand"/></joint>
        <joint name="hold" type="fixed"><parent link="hand"/><child link="sensor"/></joint></robot>"""
        robot = load_text(text, name="r.urdf")
        compiled = compile_model(robot)
        return {finding.code for finding in examine(robot, compiled, collision_pairs(robot, compiled)).findings}

    assert "inertia-density" in codes("ball")
    assert "inertia-density" not in codes("")
