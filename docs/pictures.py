"""Make the pictures of the documentation by artsim itself: `python docs/pictures.py` (needs artsim[video,plot]).

Each is the last frame of a run's video, cropped to what is in it and made small.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
STAND = (
    *("robots/quadruped.urdf", "--base", "floating", "--ground", "--on-ground", "--q0", "*_hip=0.8", "--q0"),
    *("*_knee=-1.6", "--stiffness", "300", "--damping", "10", "--duration", "1"),
)
PICK = (
    *("examples/gantry.xml", "examples/cube.urdf", "--place", "cube=0,0,0.02", "--ground", "--control"),
    *("examples/pick_and_place.csv", "--interpolate", "linear", "--duration", "1.9"),
)
Box = tuple[float, float, float, float]
"""Left, top, right and bottom as shares of an image."""
POSES: dict[str, tuple[str, ...]] = {
    "arm7": ("--q0", "joint_2=40deg", "--q0", "joint_4=-60deg", "--q0", "joint_1=30deg", "--q0", "joint_6=-40deg"),
    "double_pendulum": ("--q0", "joint_1=40deg", "--q0", "joint_2=30deg"),
    "finger": ("--q0", "proximal_joint=0.3", "--q0", "distal_joint=0.5"),
    "two_finger_gripper": ("--q0", "left_driver_joint=0.2"),
    "chain20": tuple(word for k in range(1, 6) for word in ("--q0", f"joint_{k}=0.12")),
    "quadruped": ("--q0", "*_hip=0.8", "--q0", "*_knee=-1.6"),
}
"""Start poses of robots in the gallery, where that of the file is not the best to see."""


TASKS: dict[str, tuple[str, ...]] = {
    "walk": ("--iterations", "40"),
    "lift": ("--iterations", "60", "--reach", "0.08"),
    "turn": ("--iterations", "40", "--reach", "0.1"),
}
"""Tasks of examples/, and the options with which they are learnt."""


def frame(
    arguments: tuple[str, ...], *, forces: str = "none", width: int = 560, part: Box = (0.0, 0.0, 1.0, 1.0)
) -> Image.Image:
    """The last frame of a run's video, or a part of it, without empty margins."""
    with tempfile.TemporaryDirectory() as made:
        run, video = Path(made) / "run.h5", Path(made) / "run.mp4"
        for words in (
            ("run", *arguments, "--quiet", "-o", str(run)),
            ("export", str(run), "--video", str(video), "--forces", forces),
        ):
            subprocess.run([sys.executable, "-m", "artsim", *words], cwd=ROOT, check=True)
        reader = imageio_ffmpeg.read_frames(str(video))
        size = next(reader)["size"]
        for last in reader:
            pixels = np.frombuffer(last, np.uint8).reshape(size[1], size[0], 3)
    left, top, right, bottom = (round(share * size[k % 2]) for k, share in enumerate(part))
    return small(cropped(pixels[top:bottom, left:right]), width)


def cropped(pixels: np.ndarray) -> Image.Image:
    """What differs from the corner's colour, and a margin."""
    away = np.abs(pixels.astype(int) - pixels[4, 4]).max(axis=2) > 24
    rows, columns = np.flatnonzero(away.any(axis=1)), np.flatnonzero(away.any(axis=0))
    top, bottom = max(rows[0] - 20, 0), rows[-1] + 20
    left, right = max(columns[0] - 20, 0), columns[-1] + 20
    return Image.fromarray(pixels[top:bottom, left:right])


def small(image: Image.Image, width: int) -> Image.Image:
    """At most so many pixels wide, and two thirds of that high, in 256 colours."""
    factor = min(width / image.width, 2 * width / 3 / image.height, 1.0)
    size = (round(image.width * factor), round(image.height * factor))
    return image.resize(size, Image.Resampling.LANCZOS).quantize(256, Image.Quantize.MAXCOVERAGE)


def figure(run: Path, image: Path) -> None:
    """What `artsim plot` draws of the parallel gripper that opens under its own weight."""
    robot = ("robots/parallel_gripper.urdf", "--steps", "1000")
    for words in (("run", *robot, "--quiet", "-o", str(run)), ("plot", str(run), "-o", str(image), "--force")):
        subprocess.run([sys.executable, "-m", "artsim", *words], cwd=ROOT, check=True)
    small(Image.open(image).convert("RGB"), 900).save(image, optimize=True)


def load_map(folder: Path, image: Path) -> None:
    """The map by `artsim plot` of the torques that hold the arm over a plane of its workspace."""
    robot, found, held = "robots/arm7.urdf", str(folder / "found.h5"), str(folder / "load.h5")
    grid = ("--grid", "-0.9:0.9:91,0,0:1.3:66", "--q0", "joint_2=1,joint_4=-1.5", "--on-error", "blank")
    forces = ("--compute", "gravity,link_position", "--links", "link_7", "--on-error", "skip")
    for words in (
        ("ik", robot, "--link", "link_7", *grid, "--quiet", "-o", found),
        ("batch", robot, "--input", found, *forces, "--quiet", "-o", held),
        ("plot", held, "-o", str(image), "--force"),
    ):
        subprocess.run([sys.executable, "-m", "artsim", *words], cwd=ROOT, check=True)
    small(Image.open(image).convert("RGB"), 900).save(image, optimize=True)


def curves(folder: Path, image: Path) -> None:
    """Returns of the tasks of examples/ while `examples/learn.py` learns them: minutes for each."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    drawn, axes = pyplot.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
    for (task, options), axis in zip(TASKS.items(), axes, strict=True):
        output = folder / f"{task}.npz"
        words = [sys.executable, "examples/learn.py", f"examples/{task}.toml", *options, "--output", str(output)]
        subprocess.run(words, cwd=ROOT, check=True)
        curve = np.load(output)["curve"]
        axis.plot(1 + np.arange(len(curve)), curve, label=("policy", "changed policies"))
        axis.set(title=task, xlabel="iteration", ylabel="return")
    axes[0].legend(frameon=False)
    drawn.savefig(image, dpi=100)
    small(Image.open(image).convert("RGB"), 900).save(image, optimize=True)


def viewer(run: Path, image: Path) -> None:
    """A browser's picture of the viewer's page; needs chromium."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    subprocess.run([sys.executable, "-m", "artsim", "run", *STAND, "--quiet", "-o", str(run)], cwd=ROOT, check=True)
    served = subprocess.Popen(
        [sys.executable, "-m", "artsim", "replay", str(run), "--port", "8765", "--start", "0.5", "--paused"], cwd=ROOT
    )
    flags = ["--headless", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    try:
        time.sleep(6)
        with sync_playwright() as started:
            browser = started.chromium.launch(executable_path=program, args=flags)
            page = browser.new_context(viewport={"width": 1000, "height": 580}).new_page()
            page.goto("http://127.0.0.1:8765")
            page.wait_for_timeout(8000)
            page.mouse.click(288, 100)  # close the note on rendering without a graphics card
            page.wait_for_timeout(3000)
            page.screenshot(path=str(image))
            browser.close()
    finally:
        served.terminate()
    small(Image.open(image).convert("RGB"), 800).save(image, optimize=True)


def main() -> None:
    (IMAGES / "robots").mkdir(parents=True, exist_ok=True)
    for path in sorted(ROOT.glob("robots/*.urdf")) + sorted(ROOT.glob("robots/*.xml")):
        start = POSES.get(path.stem, ())
        image = frame((str(path), *start, "--no-contacts", "--gravity", "0,0,0", "--steps", "2"), width=420)
        image.save(IMAGES / "robots" / f"{path.stem}.png", optimize=True)
    with tempfile.TemporaryDirectory() as made:
        figure(Path(made) / "gripper.h5", IMAGES / "gripper_plot.png")
        load_map(Path(made), IMAGES / "load_map.png")
        viewer(Path(made) / "stand.h5", IMAGES / "viewer.png")
        curves(Path(made), IMAGES / "learning.png")
    frame(STAND, forces="contacts", width=800).save(IMAGES / "quadruped_forces.png", optimize=True)
    frame(PICK, part=(0.3, 0.02, 0.78, 0.62)).save(IMAGES / "pick_and_place.png", optimize=True)


if __name__ == "__main__":
    main()
