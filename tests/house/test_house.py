"""The house rules: layers, light imports, and documents that cannot lie."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import h5py
import pytest

import artsim
from artsim.cli.main import COMMANDS, cli
from artsim.io.format import schema
from artsim.io.format.labels import DIMENSIONS, NUMBERED, PIECE_DIMENSIONS
from artsim.io.gate.walk import BARE_DIMENSION
from artsim.sim.foundation import errors
from artsim.sim.run_data.run_records import RECORDED
from artsim.sim.runs.configuration import RunConfig
from artsim.sim.runs.settings import DEFAULT_RECORD
from tests.conftest import ROOT
from tests.house.pages import PAGES, blocks

FOLDERS = ("cli", "collision", "io", "loaders", "sim")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
PUBLIC = [ROOT / "src" / "artsim" / "__init__.py", ROOT / "src" / "artsim" / "__main__.py"]
DOCUMENTS = (
    *("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "robots/README.md"),
    *(page.relative_to(ROOT).as_posix() for page in PAGES),
)

ALLOWED = {
    "cli": {"cli", "loaders", "io", "sim"},
    "loaders": {"loaders", "sim", "collision"},
    "io": {"io", "sim"},
    "sim": {"sim", "collision"},
    "collision": {"collision", "sim"},  # of sim the floor only
}
FLOOR = "foundation"
ROOMS: dict[str, set[str]] = {
    "foundation": set(),
    "articulation": {"foundation"},
    "run_data": {"foundation", "articulation"},
    "geometry": {"foundation", "articulation", "run_data"},
    "equipment": {"foundation", "articulation", "run_data", "geometry"},
    "constraints": {"foundation", "articulation", "run_data", "geometry", "equipment"},
    "solvers": {"foundation", "articulation", "run_data", "constraints"},
    "contact": {"foundation", "articulation", "run_data", "geometry", "equipment", "constraints", "solvers"},
    "stepping": {
        "foundation",
        "articulation",
        "run_data",
        "geometry",
        "equipment",
        "constraints",
        "solvers",
        "contact",
    },
    "maximal": {"foundation", "articulation", "run_data", "geometry", "equipment"},
    "ik": {"foundation", "articulation", "equipment", "constraints"},
    "trajectories": {"foundation", "articulation"},
    "quantities": {"foundation", "articulation", "equipment", "constraints", "maximal", "ik", "trajectories"},
    "runs": {
        "foundation",
        "articulation",
        "run_data",
        "geometry",
        "equipment",
        "constraints",
        "contact",
        "stepping",
        "maximal",
        "ik",
        "trajectories",
        "quantities",
    },
}
"""The rooms of sim from the floor up, and which rooms each may import besides itself."""

IO_ROOMS: dict[str, set[str]] = {
    "format": set(),
    "gate": {"format"},
    "output_file": {"format", "gate"},
    "readers": {"format", "gate", "output_file"},
    "viewer": {"format", "readers"},
    "exports": {"format", "output_file", "readers", "viewer"},
    "inputs": {"format", "gate", "readers"},
    "runs": {"format", "gate", "output_file", "readers", "exports", "inputs"},
    "expressions": {"format"},
    "shards": {"format", "gate", "output_file", "readers", "inputs", "runs"},
    "rollouts": {"format", "output_file", "readers", "inputs", "runs", "expressions", "shards"},
    "environments": {"format", "inputs", "runs", "expressions", "rollouts"},
    "batches": {"format", "gate", "output_file", "readers", "exports", "inputs", "runs", "shards"},
}
"""The rooms of io, likewise; settings.py, beside them, imports no other file of io."""
SCIPY = {
    "io/exports/figures.py",
    "io/exports/maps.py",
    "io/inputs/interpolation.py",
    "io/readers/labelled_rows.py",
    "collision/mesh.py",
    "io/runs/linear_models.py",
    "sim/maximal/scheme.py",
    "sim/runs/linear_system.py",
    "sim/runs/linearization.py",
    "sim/trajectories/curves.py",
    "sim/trajectories/tool_lines.py",
}
"""The files that import scipy, matplotlib or xarray."""
_NUMBA = "jit compiler replacements sparing lanes recordtype strips body_strips atomic"
RICH = ("io/runs/progress.py", "io/runs/compiling.py")
NUMBA = {f"sim/foundation/{name}.py" for name in _NUMBA.split()}

each_source = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())


def imported(path: Path) -> Iterator[str]:
    """Every module a file imports, also inside functions and for type checking."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# --- layers ----------------------------------------------------------------------------------------------------------


@each_source
def test_imports_point_down(path: Path) -> None:
    folder = path.relative_to(ROOT).parts[0]
    for name in imported(path):
        words = name.split(".")
        if words[0] == "artsim" and words[1:] != ["__version__"]:
            assert words[1] in ALLOWED[folder], f"{path} imports {name}"
            assert folder != "collision" or words[1] == folder or words[2] == FLOOR, f"{path} imports {name}"


def test_the_floor_stands_on_nothing() -> None:
    for path in (ROOT / "sim" / FLOOR).glob("*.py"):
        for module in imported(path):
            words = module.split(".")
            assert words[0] != "artsim" or words[1:3] == ["sim", FLOOR], f"{path} imports {module}"


@pytest.mark.parametrize(("part", "rooms"), [("sim", ROOMS), ("io", IO_ROOMS)])
def test_a_room_imports_rooms_below_it_only(part: str, rooms: dict[str, set[str]]) -> None:
    below: set[str] = set()
    for room, others in rooms.items():
        assert others <= below, f"{room} may not import a room that stands above it"
        below.add(room)
        for path in (ROOT / part / room).rglob("*.py"):
            for module in imported(path):
                words = module.split(".")
                if words[:2] == ["artsim", part] and words[2:3] != ["settings"]:
                    assert words[2] in others | {room}, f"{path} imports {module}"


def test_every_file_of_sim_and_io_is_in_a_room() -> None:
    assert {path.relative_to(ROOT / "sim").parts[0] for path in (ROOT / "sim").rglob("*.py")} == set(ROOMS)
    in_io = {path.relative_to(ROOT / "io").parts[0] for path in (ROOT / "io").rglob("*.py")}
    assert in_io == {*IO_ROOMS, "settings.py"}
    assert not [name for name in imported(ROOT / "io" / "settings.py") if name.startswith("artsim.io.")]


def test_no_file_s_name_occurs_twice_in_the_engine() -> None:
    names = Counter(path.name for path in SOURCES if path.relative_to(ROOT).parts[0] in ("sim", "collision"))
    assert [name for name, count in names.items() if count > 1] == []
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


@each_source
def test_heavy_packages_stay_where_they_belong(path: Path) -> None:
    where = path.relative_to(ROOT).as_posix()
    packages = {name.split(".")[0] for name in imported(path)}
    assert "numba" not in packages or where in NUMBA
    assert not packages & {"scipy", "matplotlib", "xarray"} or where in SCIPY
    assert "trimesh" not in packages or where == "collision/mesh.py"
    assert "h5py" not in packages or where.startswith("io/")
    assert "gymnasium" not in packages or where.startswith("io/environments/")
    assert "rich" not in packages or where.startswith("cli/") or where in RICH
    assert "click" not in packages or where.startswith("cli/")
    assert not packages & {"viser", "websockets"} or where.startswith("io/viewer/")


def loaded_by(*arguments: object) -> set[str]:
    """Top-level packages that a command of its own process has imported when it ends."""
    code = (
        "import sys, atexit; atexit.register(lambda: print(*{m.split('.')[0] for m in sys.modules}, file=sys.stderr))\n"
    )
    code += "from artsim.cli.main import main\nmain()\n"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


def test_light_commands_import_nothing_heavy(run_file: Path) -> None:
    model = ROOT / "robots" / "arm7.urdf"
    heavy = {"numba", "trimesh", "scipy", "rich", "collada", "xarray", "viser"}
    for arguments in (["--help"], ["run", "--help"], ["check", model], ["info", model], ["info", run_file]):
        assert not loaded_by(*arguments) & heavy, arguments
    assert "numpy" not in loaded_by("--help")
    assert not loaded_by("info", model) & {"numpy", "h5py", "llvmlite"}


def test_a_run_with_warm_kernels_does_not_import_numba(run_file: Path, tmp_path: Path) -> None:
    if os.environ.get("NUMBA_BOUNDSCHECK") or os.environ.get("NUMBA_DISABLE_JIT"):
        pytest.skip("kernels are not loaded from objects")
    artsim.simulate(ROOT / "robots" / "arm7.urdf", steps=1)
    loaded = loaded_by("run", ROOT / "robots" / "arm7.urdf", "--steps", 5, "--quiet", "-o", tmp_path / "out.h5")
    assert not loaded & {"numba", "trimesh", "scipy", "rich"}
    assert "h5py" in loaded


def test_importing_artsim_imports_nothing() -> None:
    code = "import sys; before = set(sys.modules); import artsim; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name != "__future__"] == ["artsim"]


def test_packages_are_the_folders() -> None:
    """A package that pyproject.toml forgets is missing from the wheel."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {path.parent.relative_to(ROOT).as_posix() for path in SOURCES}
    assert set(setup["packages"]) == {
        "artsim",
        "artsim.robots",
        *(f"artsim.{name.replace('/', '.')}" for name in folders),
    }
    links = {path.name for path in (ROOT / "src" / "artsim").iterdir() if path.is_symlink()}
    assert links == {*FOLDERS, "robots"}
    assert not [path for path in SOURCES if path.name == "__init__.py"]


# --- kernels ---------------------------------------------------------------------------------------------------------


@each_source
def test_signatures_of_kernels_name_their_types(path: Path) -> None:
    """T has a name, too: Real. AnyContacts and the like stand for records of both widths."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and {"njit", "inlined"} & {ast.unparse(d) for d in node.decorator_list}:
            annotations = {a.arg: a.annotation for a in node.args.args} | {"return": node.returns}
            for name, annotation in annotations.items():
                assert annotation is not None, f"{path}: {node.name}: {name}"
                assert not re.search(r"\bAny\b", ast.unparse(annotation)), f"{path}: {node.name}: {name}"


# --- words -----------------------------------------------------------------------------------------------------------


def test_nothing_is_left_for_later() -> None:
    words = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3 + r"\b", r"raise NotImplemented" + "Error")))
    texts = [
        *SOURCES,
        *PUBLIC,
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / name for name in DOCUMENTS),
        ROOT / ".ci" / "run",
    ]
    for path in texts:
        found = words.search(path.read_text())
        assert found is None, f"{path}: {found}"


# --- the file format -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with everything recorded, of a robot with a mesh, tendons, loops, sensors and an actuator with a state."""
    output = tmp_path_factory.mktemp("house") / "run.h5"
    artsim.simulate(ROOT / "robots" / "clamp.xml", steps=5, record=RECORDED, checkpoint=2, output=output).close()
    return output


MESHES_TOUCH = """<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
  <hfield name="f" nrow="2" ncol="2" size="1 1 1 1"/></asset><worldbody><geom type="hfield" hfield="f"/>
  <body><freejoint/><geom type="mesh" mesh="m"/><site name="s"/></body></worldbody>
  <sensor><rangefinder site="s" delay="0.01" nsample="6"/></sensor></mujoco>"""


def test_the_table_is_what_a_file_holds(run_file: Path, tmp_path: Path) -> None:
    """Every dataset is in the table with these dimensions, unit and meaning, and every line of the table is there."""
    found: set[str] = set()
    touching = tmp_path / "touching.h5"
    (tmp_path / "scene.xml").write_text(MESHES_TOUCH)
    scene = artsim.load(tmp_path / "scene.xml")
    artsim.simulate(scene, steps=5, record=RECORDED, checkpoint=2, output=touching).close()
    maximal = tmp_path / "maximal.h5"
    gripper = ROOT / "robots" / "parallel_gripper.urdf"
    artsim.simulate(gripper, steps=5, coordinates="maximal", record=("qpos",), checkpoint=2, output=maximal).close()
    stepped = tmp_path / "stepped.h5"
    with artsim.Simulation(artsim.load(gripper), record=("qpos",), output=stepped) as simulation:
        simulation.step(2)
        simulation.set_gravity((0, 0, -1))
        simulation.step(2)
    chosen = tmp_path / "chosen.h5"
    artsim.simulate(gripper, steps=5, accuracy=1e-3, record=("qpos",), checkpoint=2, output=chosen).close()
    for path in (run_file, touching, maximal, stepped, chosen):
        found |= checked_datasets(path)
    rolled = tmp_path / "rolled.h5"
    artsim.rollout(scene, samples=2, steps=5, record=("contacts",), output=rolled)
    found |= checked_datasets(rolled, "contact/")
    assert found == {path for path in schema.TABLE if not path.startswith(("batch/", "ik/", "rollout/", "shards/"))}


def checked_datasets(output: Path, under: str = "") -> set[str]:
    """The paths of the table that a file holds, each found as the table has it; `under`: the beginning of these."""
    found = set()
    with h5py.File(output) as file:

        def visit(path: str, item: h5py.Dataset | h5py.Group) -> None:
            if not isinstance(item, h5py.Dataset) or not path.startswith(under):
                return
            group, _, name = path.rpartition("/")
            if name in PIECE_DIMENSIONS or item.attrs.get("NAME", b"").startswith(BARE_DIMENSION):
                return
            assert item.attrs["units"]
            assert item.attrs["long_name"]
            if name in (*DIMENSIONS, *NUMBERED):
                assert path not in schema.TABLE
                return
            variable = schema.TABLE[path]
            found.add(path)
            assert item.attrs["long_name"] == variable.meaning
            own = name in ("time", "changes") and group != "checkpoint" and item.ndim
            dims = (name,) if own else tuple(Path(item.dims[i][0].name).name for i in range(item.ndim))
            assert dims == variable.dims, path
            wanted = "O" if variable.dtype == "str" else variable.dtype
            assert item.dtype == h5py.string_dtype() if wanted == "O" else item.dtype == wanted, path
            assert "/" not in name
            assert group in {"trajectory", *schema.RAGGED, "controls", "final", "checkpoint", "model"}

        file.visititems(visit)
    return found


def test_what_the_engine_records_is_what_the_table_knows() -> None:
    assert set(RECORDED) == {*schema.RECORDED, *schema.RAGGED_BY_NAME}
    assert set(DEFAULT_RECORD) == {*schema.DEFAULT_RECORDED, "contacts"}


def test_the_page_about_files_names_every_recorded_variable() -> None:
    page = (ROOT / "docs" / "reference" / "files.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| `/trajectory`"))
    assert set(re.findall(r"`(\w+)`", row)) == {*schema.RECORDED, "time", "n_valid", "status"}
    groups = {path.split("/")[0] for path in schema.TABLE}
    assert set(re.findall(r"^\| `/(\w+)`", page, re.M)) == {*groups, "provenance"}
    assert set(re.findall(r"^\{\{ variables (\w+) \}\}", page, re.M)) == groups


# --- documents -------------------------------------------------------------------------------------------------------

SHELL = [
    line
    for page in PAGES
    for block in blocks(page)
    if block.kind == "sh"
    for line in block.text.replace("\\\n", " ").splitlines()
]
SET_UP = (
    "pip install . && artsim run robots/parallel_gripper.urdf --steps 1000 -o gripper.h5",
    'pip install -e ".[test]" && pytest',
)


def test_the_two_commands_to_set_up() -> None:
    lines = [line for block in blocks(ROOT / "README.md") for line in block.text.splitlines() if "pip install" in line]
    assert lines == list(SET_UP)
    script = (ROOT / ".ci" / "run").read_text()
    assert "artsim run robots/parallel_gripper.urdf --steps 1000 -o gripper.h5" in script
    assert 'pip install --quiet -e ".[test]" && pytest' in script
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_commands_of_robots_readme_run(tmp_path: Path) -> None:
    commands = re.findall(r"`(artsim [^`]+)`", (ROOT / "robots" / "README.md").read_text())
    assert len(commands) > 5
    for command in commands:
        words = [*shlex.split(command), *(["--steps", "5"] if " run " in command else [])]
        done = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def commands() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def options_of(command: click.Command) -> dict[str, click.Option]:
    found = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return {name: option for option in found for name in (*option.opts, *option.secondary_opts)}


def test_options_that_documents_mention_exist() -> None:
    known = {name for command in commands().values() for name in options_of(command)} | {
        "--debug",
        "--help",
        "--help-all",
        "--version",
    }
    others = re.compile(
        r"^(pip|pytest|python (?:-m|examples)|ruff|mypy|NUMBA|\.ci|#SBATCH|srun|sbatch|g\+\+).*$"
        r"|`(?:sbatch|python) [^`]*`",
        re.M,
    )
    for name in DOCUMENTS:
        text = others.sub("", (ROOT / name).read_text())
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", text):
            assert option in known, f"{name} mentions {option}"
    for line in (line.strip() for line in SHELL):
        if not line.startswith("artsim "):
            continue
        words = shlex.split(re.split(r" (?:\|\|?|&&|>) |;", line)[0])
        of_command = options_of(commands()[words[1]])
        for word in words[2:]:
            if word.startswith("-") and word != "-" and not re.match(r"-?[\d.]", word[1:]):
                assert word in of_command, line


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_and_option_explains_itself(name: str) -> None:
    command = commands()[name]
    assert command.help
    assert command.get_short_help_str(200).rstrip(".") == COMMANDS[name].rstrip(".")
    for option in options_of(command).values():
        assert option.help or isinstance(option.type, click.Choice), option.opts
        assert all(opt == opt.lower() and "_" not in opt for opt in option.opts)


def test_the_page_of_options_has_every_command() -> None:
    page = (ROOT / "docs" / "reference" / "options.md").read_text()
    assert set(re.findall(r"^\{\{ options (\w+) \}\}", page, re.M)) == set(commands())
    assert set(re.findall(r"^## artsim (\w+)", page, re.M)) == set(commands())


def test_every_exit_code_is_in_its_page() -> None:
    codes = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)}
    table = (ROOT / "docs" / "reference" / "exit_codes.md").read_text()
    told = {int(code) for row in re.findall(r"^\| ([\d /]+) \|", table, re.M) for code in row.split(" / ")}
    assert codes <= told


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_names_a_constant_once(path: Path) -> None:
    """The second of two indices of one name would silently stand for the first."""
    names = Counter(
        name.id
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(name, ast.Name) and name.id.isupper()
    )
    assert not [name for name, count in names.items() if count > 1]


@each_source
def test_a_file_s_first_line_says_what_it_holds(path: Path) -> None:
    """The list of files (tests/house/files.py) shows the first line alone: whole sentences, then an empty line."""
    lines = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")
    assert re.fullmatch(r".{15,}[.]", lines[0]), f"{path}: {lines[0]}"
    assert not "".join(lines[1:2]), f"{path}: no empty line after the first of the docstring"


@pytest.mark.parametrize(("part", "rooms"), [("sim", ROOMS), ("io", IO_ROOMS)])
def test_the_picture_of_the_rooms_is_that_of_the_tables(part: str, rooms: dict[str, set[str]]) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    picture = re.split(rf"\n    {part} +holds +does not import\n", text)[1].split("\n\n")[0].splitlines()
    shown = {line[4:19].strip(): set(line[77:].split()) for line in picture[1:]}
    assert list(shown) == [*rooms][::-1]
    below: set[str] = set()
    for room, others in rooms.items():
        assert shown[room] == below - others, room
        below.add(room)


def test_the_map_leads_to_files_that_exist() -> None:
    """`sim/runs/plan.py` or `plan.py`, `sim/constraints/kinds.py: KINDS`: the file is there, and has the name."""
    for document in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        named = re.findall(r"`([\w/.]+[^_]\.py)(?::\s(\w+))?`", (ROOT / document).read_text())
        assert len(named) > 15
        for file, name in named:
            places = [path for path in (ROOT / file, *SOURCES) if path.is_file() and path.match(file)]
            assert places, f"{document}: {file}"
            assert not name or re.search(rf"\b{name}\b", places[0].read_text()), f"{document}: {file}: {name}"


def test_the_configuration_s_fields_are_options() -> None:
    """What a TOML file can say, the command line can say, under the same name."""
    known = {option.name for option in options_of(commands()["run"]).values()}
    assert {field.name for field in fields(RunConfig)} <= known


def test_json_of_info(run_file: Path) -> None:
    def told(*arguments: object) -> dict[str, object]:
        words = [sys.executable, "-m", "artsim", "info", *map(str, arguments), "--json"]
        content = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        assert isinstance(content, dict)
        return content

    model = told(ROOT / "robots" / "two_finger_gripper.urdf")
    assert (model["kind"], model["format"], len(model["joints"])) == ("model", "urdf", 7)  # type: ignore[arg-type]
    run = told(run_file)
    assert (run["kind"], run["state"], run["rows"], run["dt"]) == ("run", "complete", 5, 0.002)
    tables = {f"{group}/{name}" for group, of in schema.RAGGED.items() for name in (of.counted_by, *of.table)}
    assert set(run["variables"]) == {*schema.RECORDED} | tables  # type: ignore[call-overload]
