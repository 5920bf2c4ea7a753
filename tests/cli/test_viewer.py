"""What is drawn, the page that plays offline, and the viewer: in a real browser where there is one."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import gc
import http.client
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click.testing
import h5py
import numpy as np
import pytest

import artsim
from artsim.cli.main import cli
from artsim.cli.stored_robot import stored_robot
from artsim.io.readers.recording import Recording, open_recording
from artsim.io.viewer import plots
from artsim.io.viewer.drawables import pieces_of
from artsim.io.viewer.motion import Motion
from artsim.io.viewer.player import Playback, Player
from artsim.io.viewer.plots import FOLLOWS, Plot, PlottedLine, power_of, with_cursor
from artsim.io.viewer.poser import Poser, viewed
from artsim.io.viewer.server import start_server, stop_server
from artsim.io.viewer.stage import SHORTEST
from artsim.io.viewer.tessellation import AROUND, primitive
from artsim.loaders.load import load_articulation
from artsim.loaders.stored import StoredReader
from artsim.sim.foundation.errors import ModelError, UsageError
from artsim.sim.runs.configuration import RunConfig
from tests.conftest import ROOT
from tests.manifest_cases import long_run, run_file

viser = pytest.importorskip("viser")

ROBOTS = ROOT / "robots"
ARM, CLAMP = ROBOTS / "arm7.urdf", ROBOTS / "clamp.xml"


# --- geometry --------------------------------------------------------------------------------------------------------

VOLUMES = {
    "box": ((1.0, 2.0, 3.0), 48.0),
    "sphere": ((0.5,), np.pi / 6),
    "ellipsoid": ((1.0, 2.0, 3.0), 8 * np.pi),
    "cylinder": ((0.5, 2.0), np.pi),
    "capsule": ((0.5, 1.0), np.pi / 2 + np.pi / 6),
}


@pytest.mark.parametrize("kind", VOLUMES)
def test_triangles_hold_the_volume_of_their_shape(kind: str) -> None:
    """Their signed volume tells that they are closed, look outward and have the right size."""
    size, volume = VOLUMES[kind]
    points, faces = primitive(kind, size)
    a, b, c = (points[faces[:, k]] for k in range(3))
    held = np.einsum("ij,ij->", a, np.cross(b, c)) / 6
    assert held <= volume * (1 + 1e-12)
    assert held > volume * (1 - 40 / AROUND**2)


def test_every_link_with_a_shape_has_a_piece_in_its_frame() -> None:
    notes: list[str] = []
    robot = load_articulation(CLAMP)
    pieces = pieces_of(robot, notes)
    assert not notes
    assert {piece.link for piece in pieces} == {link.name for link in robot.links if link.geoms}
    for piece in pieces:
        assert piece.faces.max() < len(piece.points)
        assert np.isfinite(piece.points).all()


def test_a_mesh_that_is_gone_is_told_and_the_rest_drawn(tmp_path: Path) -> None:
    text = """<robot name="r"><link name="base">
      <visual><geometry><mesh filename="gone.stl"/></geometry></visual>
      <visual><geometry><sphere radius="0.1"/></geometry></visual></link></robot>"""
    (tmp_path / "r.urdf").write_text(text)
    notes: list[str] = []
    pieces = pieces_of(load_articulation(tmp_path / "r.urdf"), notes)
    assert [piece.link for piece in pieces] == ["base"]
    assert len(notes) == 1
    assert "gone.stl" in notes[0]


def test_meshes_of_a_stored_model_come_from_a_file_that_says_the_same(tmp_path: Path) -> None:
    """Not from one that has changed, or that says something else: a file must not choose what is read."""
    robot = load_articulation(CLAMP)
    reader = StoredReader(RunConfig(), {}, None)

    def meshes(path: str) -> set[Path | None]:
        read = reader.read(robot.text, "clamp", path)
        assert [link.name for link in read.links] == [link.name for link in robot.links]
        return {geom.mesh for link in read.links for geom in link.geoms if geom.kind == "mesh"}

    there = {geom.mesh for link in robot.links for geom in link.geoms if geom.kind == "mesh"}
    assert there
    assert None not in there
    assert meshes(str(CLAMP)) == there
    assert meshes(str(ARM)) == meshes("-") == meshes("/dev/stdin") == meshes(str(tmp_path)) == {None}
    changed = tmp_path / "clamp.xml"
    changed.write_text(CLAMP.read_text().replace("<mujoco", "<!-- --><mujoco", 1))
    assert dataclasses.replace(load_articulation(CLAMP), path="") == dataclasses.replace(robot, path="")
    assert meshes(str(changed)) == {None}


def test_links_without_shapes_are_sticks() -> None:
    text = """<mujoco><worldbody><body name="a"><joint type="hinge"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="b" pos="0 0 -0.5"><joint type="hinge"/><geom size="0.1"/></body></body></worldbody></mujoco>"""
    from artsim.loaders.load import load_text

    pieces = {piece.link: piece for piece in pieces_of(load_text(text, name="t"), []) if piece.layer == "visual"}
    assert set(pieces) == {"a", "b"}
    assert pieces["a"].points[:, 2].min() == pytest.approx(-0.52)
    assert pieces["a"].points[:, 2].max() == pytest.approx(0.02)


# --- a run's motion --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def touching(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finger that falls onto the ground and lies there."""
    output = tmp_path_factory.mktemp("viewer") / "finger.h5"
    robot = artsim.load(ROBOTS / "finger.urdf")
    artsim.simulate(robot, steps=400, ground=True, q0={"proximal_joint": 0.3}, output=output).close()
    return output


@pytest.fixture
def recording(touching: Path) -> Iterator[Recording]:
    with artsim.open(touching) as opened:
        assert isinstance(opened, Recording)
        yield opened


def test_contact_forces_of_a_motion_add_up_to_what_the_ground_does(recording: Recording) -> None:
    """World axes: their sum is what the force balance of the whole robot leaves for the ground."""
    robot = load_articulation(ROBOTS / "finger.urdf")
    motion = Motion(recording, robot)
    counts = recording.contacts["contact_count"]
    row = int(np.flatnonzero(counts)[-1])
    found = motion.forces("contacts", row)
    assert len(found.points) == counts[row]
    table = recording.read_contacts(row, row + 1)
    assert np.linalg.norm(found.vectors, axis=1) == pytest.approx(np.linalg.norm(table["force"], axis=1))
    along = np.einsum("nx,nx->n", found.vectors, table["normal"])
    assert along == pytest.approx(table["force"][:, 0])


def test_poses_that_were_not_recorded_are_computed(tmp_path: Path) -> None:
    """From qpos they are those that a run records."""
    robot = artsim.load(ARM)
    with (
        artsim.simulate(robot, steps=5, q0={"joint_2": 0.4}, output=tmp_path / "all.h5") as whole,
        artsim.simulate(robot, steps=5, q0={"joint_2": 0.4}, record=("qpos",), output=tmp_path / "qpos.h5") as bare,
    ):
        assert isinstance(whole, Recording)
        assert isinstance(bare, Recording)
        assert "link_position" not in bare
        for recorded, computed in zip(
            Motion(whole, robot.articulation).poses(4), Motion(bare, robot.articulation).poses(4), strict=True
        ):
            assert computed == pytest.approx(recorded, abs=1e-12)


def test_rows_by_time(recording: Recording) -> None:
    motion = Motion(recording, load_articulation(ROBOTS / "finger.urdf"))
    assert [motion.row_at(t) for t in (-1.0, 0.0, 0.0019, 0.002, 0.7, 1e9)] == [0, 0, 0, 1, 350, 399]


def test_a_run_whose_mesh_files_are_gone_shows_what_they_collided_as(tmp_path: Path) -> None:
    """In both layers; the visual mesh that cannot be drawn is told of."""
    source, output = tmp_path / "model", tmp_path / "out.h5"
    shutil.copytree(ROBOTS / "meshes", source)
    shapes = "".join(
        f'<{role}><geometry><mesh filename="forearm.stl"/></geometry></{role}>' for role in ("visual", "collision")
    )
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (source / "r.urdf").write_text(f'<robot name="r"><link name="base">{inertial}{shapes}</link></robot>')
    robot = artsim.load(source / "r.urdf", base="floating")
    with artsim.simulate(robot, steps=2, ground=True, output=output) as opened:
        assert isinstance(opened, Recording)
        assert opened.kept.pieces
        whole = {(piece.link, piece.layer) for piece in pieces_of(stored_robot(opened, {}, None), [])}
        shutil.rmtree(source)
        gone = stored_robot(opened, {}, None)
        notes: list[str] = []
        assert {geom.mesh for link in gone.links for geom in link.geoms} == {None}
        assert {(piece.link, piece.layer) for piece in pieces_of(gone, notes)} == whole
        assert len(notes) == 1
        assert "forearm.stl" in notes[0]


# --- the server ------------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Any]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        running = start_server("test")
    assert printed.getvalue() == ""
    yield running
    stop_server(running)


def answer(port: int, **headers: str) -> int:
    """The status of a request with these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest("GET", "/", skip_host=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status


def test_only_its_own_page_may_talk_to_the_server(server: Any) -> None:
    port = server.get_port()
    own = f"127.0.0.1:{port}"
    key = base64.b64encode(os.urandom(16)).decode()
    socket = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": key,
        "Sec_WebSocket_Protocol": f"viser-v{viser.__version__}",
    }
    assert answer(port, Host=own, Origin=f"http://{own}", **socket) == 101
    assert answer(port, Host=f"localhost:{port}", Origin=f"http://localhost:{port}", **socket) == 101
    for origin in ("https://example.com", "null", "http://127.0.0.1:1", f"http://127.0.0.1:{port}.example.com"):
        assert answer(port, Host=own, Origin=origin, **socket) == 403, origin
        assert answer(port, Host=own, Origin=origin) == 403, origin
    assert answer(port, Host=own, **socket) == 403
    assert answer(port, Host=own) == 200
    assert answer(port, Host=f"example.com:{port}") == 403  # a name that was made to point here
    assert answer(port) in (400, 403)


def test_messages_that_are_none_take_a_line_each(server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """No traceback, and sliders stay within their bounds."""
    import msgspec
    from websockets.sync.client import connect

    poser = Poser(server, artsim.load(ARM))
    slider = next(iter(server.gui._gui_input_handle_from_uuid))
    update = {"type": "GuiUpdateMessage", "uuid": slider}
    wrong = (b"", b"\xff\xff", "text", b"\x91" * 100_000, msgspec.msgpack.encode({"type": "GuiUpdateMessage"}))
    values = tuple(msgspec.msgpack.encode({**update, "updates": {"value": v}}) for v in ("a", [1], float("nan"), 1e308))
    own = f"127.0.0.1:{server.get_port()}"
    protocol = f"viser-v{viser.__version__}"
    poses = []
    for message in (*wrong, *values):
        with connect(f"ws://{own}/", origin=f"http://{own}", subprotocols=[protocol]) as socket:
            socket.send(message)
            time.sleep(0.2)
        poses.append(poser.pose())
    gc.collect()  # of tasks whose error nobody asked for, asyncio tells then
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(wrong) + 2
    assert all(line.startswith("warning: the viewer leaves a message") and len(line) < 300 for line in lines)
    assert np.isfinite(poses).all() and np.abs(poses).max() <= 3.2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_server_listens_on_loopback_only(server: Any) -> None:
    listening = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            address, _, port = words[1].partition(":")
            if words[3] == "0A" and int(port, 16) == server.get_port():
                listening.add((name, address))
    assert listening == {("tcp", "0100007F")}


def test_nothing_is_shared(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even when a page asks for it, as viser's own button would."""
    from viser import _messages, _viser

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a sharing service was called")

    monkeypatch.setattr(_viser, "ViserTunnel", fail)
    for handler in server._websock_server._incoming_handlers[_messages.ShareUrlRequest]:
        handler(0, _messages.ShareUrlRequest())
    server._thread_executor.shutdown(wait=True)
    assert server.request_share_url() is None


def test_a_port_that_is_taken_is_refused(server: Any) -> None:
    with pytest.raises(UsageError, match="in use"):
        start_server("second", server.get_port())


# --- sliders ---------------------------------------------------------------------------------------------------------


def test_sliders_move_what_couplings_leave_free(server: Any) -> None:
    """Followers are where their leader wants them, and no slider leads beyond any joint's limits."""
    robot = viewed(load_articulation(ROBOTS / "two_finger_gripper.urdf"))
    poser = Poser(server, robot)
    assert [handle.label for handle in poser._handles] == ["left_driver_joint"]
    poser._sliders[0].value = 0.3
    poser.advance()
    q = dict(zip(robot.coords, poser.pose(), strict=True))
    assert q["left_driver_joint"] == q["left_rocker_joint"] == 0.3
    assert q["right_driver_joint"] == q["left_tip_joint"] == -0.3
    assert poser._followers[robot.coords.index("right_tip_joint")].value == 0.3


def test_sliders_respect_the_limits_of_followers(server: Any, tmp_path: Path) -> None:
    joint = """<joint name="{0}" type="revolute"><parent link="base"/><child link="{0}_link"/><axis xyz="0 0 1"/>
      <limit lower="{1}" upper="{2}" effort="1" velocity="1"/>{3}</joint><link name="{0}_link"/>"""
    text = joint.format("leader", -1, 2, "") + joint.format(
        "follower", -0.5, 0.6, '<mimic joint="leader" multiplier="-2" offset="0.1"/>'
    )
    (tmp_path / "r.urdf").write_text(f'<robot name="r"><link name="base"/>{text}</robot>')
    poser = Poser(server, viewed(load_articulation(tmp_path / "r.urdf")))
    (handle,) = poser._handles
    assert (handle.lower, handle.upper) == pytest.approx((-0.25, 0.3), abs=1e-8)
    poser._sliders[0].value = 2.0  # of a page that is not to be trusted
    assert poser.pose()[0] == pytest.approx(0.3)


def test_floating_bases_turn(server: Any) -> None:
    poser = Poser(server, viewed(load_articulation(ROBOTS / "floating_box.urdf")))
    labels = [handle.label for handle in poser._handles]
    assert labels[3:] == ["floating_joint.roll", "floating_joint.pitch", "floating_joint.yaw"]
    poser._sliders[2].value = 0.5
    poser._sliders[5].value = np.pi / 2
    assert poser.pose() == pytest.approx([0, 0, 0.5, np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    poser._sliders[5].value, poser._sliders[3].value = 0.0, np.pi / 2
    assert poser.pose()[3:] == pytest.approx([np.sqrt(0.5), np.sqrt(0.5), 0, 0])


# --- playing ---------------------------------------------------------------------------------------------------------


def test_playing_by_rate_and_by_step(server: Any, recording: Recording) -> None:
    robot = load_articulation(ROBOTS / "finger.urdf")
    run = ("finger", Motion(recording, robot), robot)
    player = Player(server, [run, run], Playback(rate=2.0, start=0.1))
    assert [round(float(stage._offset[1]), 6) > 0 for stage in player._stages] == [False, True]
    player.advance(0.05)
    assert player._slider.value == pytest.approx(0.2)
    player._slider.value = 0.5  # somebody moves it
    player.advance(0.05)
    assert player._slider.value == pytest.approx(0.5)
    player.advance(10.0)
    assert player._slider.value == pytest.approx(0.798)
    assert not player._play.value
    player._plot._variable.value = "qpos"
    player._plot._choose()
    assert len(player._plot._values) == 1 + 2 * 2
    assert len(player._plot._chart.data) == 1 + 2 * 2 + 1
    strokes = [series["stroke"] for series in player._plot._chart.series[1:]]
    assert strokes[0] == strokes[1] != strokes[2] == strokes[3]  # a colour for each entry, dashed for another run
    steps = Player(server, [run], Playback(step=10, loop=True))
    for _ in range(40):
        steps.advance(0.05)
    assert steps._slider.value == pytest.approx(0.0)
    assert steps._play.value


def test_a_plot_has_units_and_a_cursor_that_follows_the_time(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "_PAUSE", -1.0)
    model = ROBOTS / "parallel_gripper.urdf"
    with artsim.simulate(model, steps=50, output=tmp_path / "gripper.h5") as opened:
        assert isinstance(opened, Recording)
        plot = Plot(server, [("run", opened)])
        followers = set(opened.labels.dof) - set(opened.labels.independent_dof)
        plot._variable.value = "tau_drive"
        assert {name for name in plot._entry.options if name.endswith(FOLLOWS)} == {f + FOLLOWS for f in followers}
        plot._variable.value = "qvel"
        assert plot._chart.title == "qvel [m/s]"
        plot.show_time(0.05)
        times, upright = plot._chart.data[0], plot._chart.data[-1]
        (at,) = {round(float(x), 9) for x in times[np.isfinite(upright)]}
        assert at == 0.05
        low, high = plot._chart.scales["y"]["range"]  # a page looks for it in vain where a line begins with NaN
        assert (low, high) == tuple(upright[np.isfinite(upright)]) and low < opened["qvel"].min()
        assert np.all(np.diff(times) >= 0) and len({len(line) for line in plot._chart.data}) == 1
    with artsim.simulate(ROBOTS / "quadruped.urdf", base="floating", steps=5, output=tmp_path / "q.h5") as opened:
        plot = Plot(server, [("run", opened)])  # type: ignore[list-item]
        plot._variable.value = "qvel"
        assert plot._chart.title == "qvel, 12 of 18 lines"
        assert [s["label"] for s in plot._chart.series[1:5]] == [
            "root.vx [m/s]",
            "root.vy [m/s]",
            "root.vz [m/s]",
            "root.wx [rad/s]",
        ]
        assert len({s["stroke"] for s in plot._chart.series[1:13]}) == 12
        plot._entry.value = "root.wx"
        assert plot._chart.title == "qvel [rad/s]" and plot._chart.series[1]["label"] == "root.wx"


def test_joint_forces_are_arrows_with_a_legend_and_the_robot_is_seen_through(server: Any, tmp_path: Path) -> None:
    robot = artsim.load(ARM)
    with artsim.simulate(robot, steps=5, output=tmp_path / "arm.h5") as opened:
        assert isinstance(opened, Recording)
        motion = Motion(opened, robot.articulation)
        player = Player(server, [("run", motion, robot.articulation)], Playback(playing=False))
        (stage,) = player._stages
        assert player._legend.content == "" and {mesh.opacity for mesh, _ in stage._meshes} == {None}
        player._layers["joint forces"].value = True
        player.advance(0.0)
        assert "joint forces, of parents on links: an arrow of 0.1 m is" in player._legend.content
        assert {mesh.opacity for mesh, _ in stage._meshes} == {0.5}
        arrows = stage._added["joint forces arrows"].points
        forces = motion.forces("joint forces", 0)
        shown = np.linalg.norm(arrows[:, 1] - arrows[:, 0], axis=1)
        sizes = np.linalg.norm(forces.vectors, axis=1) * player._length(motion, "joint forces")
        np.testing.assert_allclose(shown, sizes[sizes > SHORTEST * stage._size], rtol=1e-5)
        player._layers["joint forces"].value = False
        player.advance(0.0)
        assert player._legend.content == "" and {mesh.opacity for mesh, _ in stage._meshes} == {None}


def test_tiny_and_huge_values_are_plotted_by_a_power_of_ten() -> None:
    times = np.array([0.0, 1.0])
    for largest, power in ((1.0, 0), (0.01, 0), (9.9e-3, -3), (2e-15, -15), (3e7, 6), (0.0, 0), (np.inf, 0)):
        assert power_of([PlottedLine("x", 0, 0, times, np.array([0.0, -largest]))]) == power


def test_a_plot_of_two_runs_shows_both_of_many_entries(server: Any, tmp_path: Path) -> None:
    robot = artsim.load(ROBOTS / "quadruped.urdf", base="floating")
    with (
        artsim.simulate(robot, steps=5, output=tmp_path / "a.h5") as first,
        artsim.simulate(robot, steps=3, output=tmp_path / "b.h5") as second,
    ):
        assert isinstance(first, Recording) and isinstance(second, Recording)
        plot = Plot(server, [("a", first), ("b", second)])
        plot._variable.value = "qvel"
        assert [s["label"] for s in plot._chart.series[1:4]] == [
            "a: root.vx [m/s]",
            "b: root.vx [m/s]",
            "a: root.vy [m/s]",
        ]


def test_the_cursor_leaves_the_lines_as_they_are() -> None:
    times, line = np.array([0.0, 1.0, 2.0]), np.array([3.0, 5.0, np.nan])
    for at, place in ((-1.0, 0), (0.5, 1), (1.0, 1), (9.0, 3)):
        x, y, now = with_cursor((times, line), at)
        np.testing.assert_array_equal(np.delete(x, [place, place + 1]), times)
        np.testing.assert_array_equal(np.delete(y, [place, place + 1]), line)
        np.testing.assert_allclose(now[place : place + 2], [2.9, 5.1])
        assert np.count_nonzero(np.isfinite(now)) == 2 and np.all(np.diff(x) >= 0)


def test_a_plot_of_what_unpacks_to_far_more_than_is_stored_is_refused_in_its_place(server: Any, tmp_path: Path) -> None:
    path = Path(shutil.copy(run_file(), tmp_path / "long.h5"))
    with h5py.File(path, "r+") as file:
        long_run(file)
    with open_recording(path) as recording:
        plot = Plot(server, [("run", recording)])
        plot._variable.value = "qpos"
        assert "unpacks from" in plot._chart.content
        with pytest.raises(ModelError, match="unpacks from"):
            recording["qpos"]
        assert recording.read("qpos", 5, 7).shape == (2, 7)


def test_a_file_without_anything_to_show_is_refused(tmp_path: Path) -> None:
    with artsim.simulate(ARM, steps=5, record=("qvel",), output=tmp_path / "qvel.h5") as opened:
        assert isinstance(opened, Recording)
        with pytest.raises(UsageError, match="neither"):
            Motion(opened, load_articulation(ARM))


# --- in a browser ----------------------------------------------------------------------------------------------------

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
WAIT = 60.0  # s, on a busy machine


@pytest.fixture
def page() -> Iterator[Any]:
    """A page of a browser that is cut off from everything but this machine's loopback; fails on errors of a page."""
    playwright = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium")
    errors: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=FLAGS)
        opened = browser.new_context(viewport={"width": 640, "height": 480}).new_page()
        opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        opened.on("pageerror", lambda error: errors.append(str(error)))
        yield opened
        browser.close()
    assert errors == []


def pixels(page: Any) -> np.ndarray[Any, Any]:
    """The left half of the page, away from the panel and what floats above it, as (rows, columns, 3)."""
    from PIL import Image

    size = page.viewport_size
    shot = page.screenshot(clip={"x": 0, "y": 140, "width": size["width"] / 2, "height": size["height"] - 190})
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)


def wait_for(page: Any, there: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not there():
        assert time.monotonic() < end
        page.wait_for_timeout(100)


def changed(page: Any, before: np.ndarray[Any, Any]) -> bool:
    return bool((np.abs(pixels(page) - before).max(axis=2) > 60).sum() > 50)


def settled(page: Any) -> np.ndarray[Any, Any]:
    """A picture that stays as it is."""
    before = pixels(page)
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        page.wait_for_timeout(500)
        now = pixels(page)
        if np.array_equal(now, before) and now.std() > 1:
            return now
        before = now
    raise AssertionError("the page does not come to rest")


def test_the_slider_moves_the_robot(server: Any, recording: Recording, page: Any) -> None:
    robot = load_articulation(ROBOTS / "finger.urdf")
    player = Player(server, [("finger", Motion(recording, robot), robot)], Playback(playing=False))
    stop = threading.Event()
    thread = threading.Thread(target=player.run, args=(stop.is_set,))
    thread.start()
    try:
        page.goto(f"http://127.0.0.1:{server.get_port()}")
        slider = page.locator("[role=slider]").first
        slider.wait_for(timeout=1000 * WAIT)
        before = settled(page)
        slider.focus()
        page.keyboard.press("End")
        wait_for(page, lambda: changed(page, before))
        assert player._slider.value == pytest.approx(0.798)
    finally:
        stop.set()
        thread.join()


def test_the_exported_page_plays_without_a_network(touching: Path, tmp_path: Path, page: Any) -> None:
    output = tmp_path / "finger.html"
    done = click.testing.CliRunner().invoke(cli, ["export", str(touching), "--html", str(output)])
    assert done.exit_code == 0, done.output
    assert f"wrote {output}" in done.output
    assert output.stat().st_size < 1.5e6
    assert "<title>artsim: finger.h5</title>" in output.read_text()
    page.set_viewport_size({"width": 400, "height": 340})
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.context.set_offline(True)
    page.goto(output.as_uri())
    slider = page.locator("[role=slider]").first
    slider.wait_for(state="attached", timeout=1000 * WAIT)
    wait_for(page, lambda: pixels(page).std() > 1)
    before = pixels(page)
    wait_for(page, lambda: changed(page, before))
    page.keyboard.press("Space")  # stops it
    page.wait_for_timeout(500)
    bar = page.locator(".mantine-Slider-track").first.bounding_box()
    page.mouse.move(bar["x"] + 0.75 * bar["width"], bar["y"] + bar["height"] / 2)
    page.mouse.down()
    page.wait_for_timeout(100)
    page.mouse.up()
    wait_for(page, lambda: abs(float(slider.get_attribute("aria-valuenow")) - 0.6) < 0.05)
    page.wait_for_timeout(300)
    assert float(slider.get_attribute("aria-valuenow")) == pytest.approx(0.6, abs=0.05)  # whoever moves it holds it
    assert [url for url in requests if not re.match("file:|data:|blob:", url)] == []


# --- commands --------------------------------------------------------------------------------------------------------


def test_a_viewer_runs_until_it_is_interrupted(touching: Path) -> None:
    """Its address is the first line of stdout; the exit code is the signal's."""
    for words in (["view", str(CLAMP)], ["replay", str(touching), str(touching), "--paused"]):
        process = subprocess.Popen([sys.executable, "-m", "artsim", *words], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"viewer at http://127\.0\.0\.1:(\d+), for this machine only; Ctrl-C ends it\n", line)
            assert found, line
            assert answer(int(found[1]), Host=f"127.0.0.1:{found[1]}") == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stdout.read() == ""
        finally:
            process.kill()
            process.stdout.close()


def test_export_refuses_what_it_cannot_write(touching: Path, tmp_path: Path) -> None:
    def code(*words: object) -> int:
        done = subprocess.run([sys.executable, "-m", "artsim", "export", *map(str, words)], capture_output=True)
        assert b"Traceback" not in done.stderr
        return done.returncode

    there = tmp_path / "there.html"
    there.write_text("mine")
    assert code(touching) == 2
    assert code(touching, "--html", there) == 73
    assert code(tmp_path / "none.h5", "--html", tmp_path / "new.html") == 66
    assert code(touching, "--html", touching, "--force") == 2
    assert there.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["there.html"]
