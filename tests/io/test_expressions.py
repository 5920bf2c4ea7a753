"""Expressions over names: programs beside numpy's answers, undefined values, and errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from artsim.io.expressions.language import FUNCTIONS, Compiler
from artsim.io.expressions.names import Names
from artsim.io.format.labels import Labels
from artsim.sim.foundation.errors import UsageError
from artsim.sim.quantities.program import TILE, ProgramRun

pytestmark = pytest.mark.small

LABELS = Labels(
    coord=("root.x", "root.y", "root.z", "root.qw", "root.qx", "root.qy", "root.qz", "left.hip", "knee", "arm"),
    dof=("root.vx", "root.vy", "root.vz", "root.wx", "root.wy", "root.wz", "left.hip", "knee", "arm"),
    link=("trunk", "left/foot", "arm"),
    independent_dof=("knee",),
    coord_units=("m",) * 10,
    dof_units=("m/s",) * 9,
    force_units=("N",) * 9,
    sensor=("gyro.x", "gyro.y"),
)
N = TILE + 5
RNG = np.random.default_rng(0)
SIZES = {"qpos": 10, "qvel": 9, "action": 2, "time": 1, "position": 9, "quaternion": 12, "velocity": 18}


def tables(names: Names) -> dict[str, Any]:
    made = {name: RNG.normal(size=(N, size)) for name, size in SIZES.items()}
    made["quaternion"] /= np.repeat(np.linalg.norm(made["quaternion"].reshape(N, 3, 4), axis=2), 4, axis=1)
    return made | {"recorded": RNG.normal(size=(N, names.recorded_columns))}


NAMES = Names(LABELS, ("left", "right"))
TABLES = tables(NAMES)
q, v, a, t = (TABLES[name].T for name in ("qpos", "qvel", "action", "time"))
place, turn, speed = (
    TABLES[name].reshape(N, 3, -1).transpose(1, 2, 0) for name in ("position", "quaternion", "velocity")
)


def recorded(name: str, *index: Any) -> Any:
    """Columns of a recorded variable, robots last."""
    variable = NAMES.variable(name)
    assert variable is not None
    return TABLES["recorded"].T[variable.columns[index]]


def matrix(quaternion: Any) -> Any:
    """Rotation matrices (n, 3, 3)."""
    w, x, y, z = quaternion
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.array(rows).transpose(2, 0, 1)


def run(*texts: str) -> Any:
    """The values (n, texts) of expressions that are numbers."""
    compiler = Compiler(NAMES, {"dt": 0.02})
    program = ProgramRun(compiler.instructions([compiler.number(text, "it") for text in texts]), TABLES, N)
    program.begin(np.arange(N))
    return program.output.copy()


CASES: dict[str, Any] = {
    "1 + 2 * 3 - -4 / 5": np.full(N, 7.8),
    "root.x": q[0],
    "root.vx": v[0],
    "left.hip": q[7],
    "left.hip.velocity": v[6],
    "left.hip.position": q[7],
    "knee.velocity": v[7],
    "qpos.knee + qvel.knee": q[8] + v[7],
    "qpos['knee']": q[8],
    "qpos[-1]": q[9],
    "sum(qpos[7:])": q[7:].sum(axis=0),
    "sum(qpos['*e*'])": q[7] + q[8],
    "norm(qvel)": np.sqrt((v**2).sum(axis=0)),
    "trunk.z": place[0, 2],
    "trunk.qw": turn[0, 0],
    "trunk.vy": speed[0, 1],
    "trunk.wz": speed[0, 5],
    "link['left/foot'].x": place[1, 0],
    "link['arm'].velocity[1]": speed[2, 1],
    "max(link_position[:, 'z'])": place[:, 2].max(axis=0),
    "link_velocity['trunk', 3]": speed[0, 3],
    "trunk.z_axis[0]": matrix(turn[0])[:, 0, 2],
    "dot(trunk.x_axis, (1, 2, 3))": matrix(turn[0])[:, :, 0] @ [1, 2, 3],
    "rotate(trunk.quaternion, trunk.velocity)[1]": np.einsum("nij,jn->ni", matrix(turn[0]), speed[0, :3])[:, 1],
    "unrotate(trunk.quaternion, (0, 0, -1))[0]": -matrix(turn[0])[:, 2, 0],
    "cross((1, 0, 0), (0, 1, 0))[2]": np.ones(N),
    "tau_drive.knee": recorded("tau_drive", 7),
    "tau_contact['left.hip']": recorded("tau_contact", 6),
    "contact_wrench.trunk.fz": recorded("contact_wrench", 0, 2),
    "contact_wrench['left/foot'][2]": recorded("contact_wrench", 1, 2),
    "sensors.gyro.y": recorded("sensors", 1),
    "action[1] * action.left": a[1] * a[0],
    "sum(action ** 2)": (a**2).sum(axis=0),
    "time / dt": t[0] / 0.02,
    "abs(knee) + floor(knee)": np.abs(q[8]) + np.floor(q[8]),
    "exp(-knee) + sin(knee) * cos(arm)": np.exp(-q[8]) + np.sin(q[8]) * np.cos(q[9]),
    "sqrt(abs(knee)) + log(abs(knee))": np.sqrt(np.abs(q[8])) + np.log(np.abs(q[8])),
    "tanh(3 * knee)": np.tanh(3 * q[8]),
    "arctan2(knee, arm)": np.arctan2(q[8], q[9]),
    "abs(knee) ** 1.7": np.abs(q[8]) ** 1.7,
    "knee ** 3 + knee ** -1 + knee ** 0": q[8] ** 3 + 1 / q[8] + 1,
    "2 ** knee": 2 ** q[8],
    "knee % 0.3": q[8] % 0.3,
    "clip(knee, -0.1, 0.2)": np.clip(q[8], -0.1, 0.2),
    "min(knee, arm, 0)": np.minimum(np.minimum(q[8], q[9]), 0),
    "max(qpos) - min(qpos)": q.max(axis=0) - q.min(axis=0),
    "mean(qpos)": q.mean(axis=0),
    "knee if arm > 0 else -knee": np.where(q[9] > 0, q[8], -q[8]),
    "1 / knee if knee != 0 else 0": 1 / q[8],
    "0 if knee == knee else 1 / 0": np.zeros(N),
    "-1 < knee <= 0.5": ((q[8] > -1) & (q[8] <= 0.5)).astype(float),
    "not knee > 0 or arm >= 0 and knee < arm": (~(q[8] > 0) | ((q[9] >= 0) & (q[8] < q[9]))).astype(float),
    "any(qpos > 1.5) + all(qpos < 1.5)": np.ones(N),
    "sum((1, 2, 3) * (knee, arm, 1))": q[8] + 2 * q[9] + 3,
    "previous(knee) + rate(knee)": q[8],
    "pi": np.full(N, np.pi),
    "True + False": np.ones(N),
}


def test_expressions_are_those_of_numpy() -> None:
    found = run(*CASES)
    for k, (text, wanted) in enumerate(CASES.items()):
        np.testing.assert_allclose(found[:, k], wanted, rtol=1e-14, atol=1e-15, err_msg=text)
    assert {name for name in FUNCTIONS if not any(f"{name}(" in text for text in CASES)} == set()


UNDEFINED = {
    "1 / (knee - knee)": "division by 0 in '1 / (knee - knee)'",
    "1 + 2 * sqrt(-1 - knee ** 2)": "square root of a negative number in 'sqrt(-1 - knee ** 2)'",
    "log(0 * knee)": "no finite value in 'log(0 * knee)'",
    "(-1 - abs(knee)) ** 0.5": "no finite value in '(-1 - abs(knee)) ** 0.5'",
    "exp(1000 + knee)": "no finite value in 'exp(1000 + knee)'",
    "1e300 * 1e300": "no finite value in '1e+300 * 1e+300'",
    "1 / (1 / (knee - knee))": "division by 0 in '1 / (knee - knee)'",
    "1 / (knee - knee) > 3": "division by 0 in '1 / (knee - knee)'",
    "not 1 / 0": "division by 0 in '1 / 0'",
    "min(1 / 0, knee)": "division by 0 in '1 / 0'",
    "max(knee, 1 / 0)": "division by 0 in '1 / 0'",
    "knee if 1 / 0 else arm": "division by 0 in '1 / 0'",
    "knee > -99 and 1 / 0": "division by 0 in '1 / 0'",
}


def test_undefined_values_are_not_numbers_and_told() -> None:
    compiler = Compiler(NAMES, {})
    outputs = [compiler.number(text, "it") for text in UNDEFINED]
    program = ProgramRun(compiler.instructions(outputs), TABLES, N)
    program.run(np.arange(N))
    assert np.isnan(program.output).all()
    for register, (text, reason) in zip(program.outputs, UNDEFINED.items(), strict=True):
        assert compiler.reason(program.registers(3), register) == reason, text
    assert run("knee < -99 and 1 / 0", "knee > -99 or 1 / 0").tolist() == [[0.0, 1.0]] * N


def test_programs_recall_robot_by_robot() -> None:
    compiler = Compiler(NAMES, {"dt": 0.5})
    texts = ("rate(knee)", "previous(sum(action * 2))", "previous(knee) + previous(knee)", "1 / previous(arm)")
    own = {**TABLES, "qpos": TABLES["qpos"].copy()}
    program = ProgramRun(compiler.instructions([compiler.number(text, "it") for text in texts]), own, N)
    program.begin(np.arange(N))
    assert (program.output[:, 0] == 0).all()
    before = own["qpos"].copy()
    own["qpos"] += 1.0
    some = np.array([N - 1, 3])
    program.run(some)
    assert np.allclose(program.output[some, 0], 2.0)
    assert np.allclose(program.output[some, 2], 2 * before[some, 8])
    assert (np.delete(program.output[:, 0], some) == 0).all()
    program.run(np.arange(N))
    assert np.allclose(program.output[:, 0], np.where(np.isin(np.arange(N), some), 0.0, 2.0))


def test_bytes_depend_on_no_other_robot() -> None:
    compiler = Compiler(NAMES, {"dt": 0.5})
    instructions = compiler.instructions([compiler.number(text, "it") for text in CASES])
    whole, single = ProgramRun(instructions, TABLES, N), ProgramRun(instructions, TABLES, N)
    whole.begin(np.arange(N))
    for k in np.random.default_rng(1).permutation(N):
        single.begin(np.array([k]))
    assert whole.output.tobytes() == single.output.tobytes()


WRONG = {
    "trnk.z": "'trnk.z' is not known; did you mean 'trunk.z'?",
    "nothing_like_it": "'nothing_like_it' is not known; known: root.x, ",
    "trunk": "'trunk' is a link: want a part of it, trunk.z",
    "arm.velocity": "'arm.velocity' is of a link and of a joint: write link['arm'].velocity or qvel['arm']",
    "link['foot'].x": "there is no link 'foot'; did you mean 'left/foot'?",
    "link['trunk'].up": "a link has no 'up'; known: x, y, z, qw",
    "qpos['kne']": "'qpos' has no 'kne'; did you mean 'knee'?",
    "tau_drive.kne": "'tau_drive' has no 'kne'; did you mean 'knee'?",
    "qvel[9]": "'qvel' has 9 entries, there is no number 9",
    "qvel[0, 0]": "'qvel' has 1 axes, not 2",
    "(1, 2)[5]": "'(1, 2)' has 2 entries, there is no 5",
    "qpos": "'qpos' is a vector of 10, want a number",
    "qpos + qvel": "vectors of 10 and 9 entries do not go together in 'qpos + qvel'",
    "sum(": "'sum(' is no expression: '(' was never closed",
    "": "'' is no expression: invalid syntax",
    "wurzel(2)": "function 'wurzel' is not known; known: abs, ",
    "clip(knee, 1)": "'clip(knee, 1)': clip takes a value, the least and the largest one",
    "sin(1, 2)": "'sin(1, 2)': sin takes one argument",
    "previous(rate(knee))": "'rate(knee)': previous and rate cannot stand in each other",
    "rotate(qpos, qpos)": "want a quaternion of 4 entries and a vector of 3",
    "knee // 2": "'knee // 2': this operator has no meaning here",
    "knee is arm": "this comparison has no meaning here",
    "~knee": "'~knee' has no meaning here",
    "'knee'": "\"'knee'\" has no meaning here",
    "[x for x in qpos]": "'[x for x in qpos]' has no meaning here",
    "(lambda: 1)()": "has no meaning here",
    "knee.__class__": "'knee.__class__' is not known",
    "qpos[knee]": "'knee' is no index: want a name, a pattern, a number or a slice",
    "1e999": "inf is not finite",
    "(" * 500 + "1" + ")" * 500: "is no expression",
    "1+" * 9000 + "1": "more than 10000 characters",
    "-" * 9000 + "1": "is no expression: nested too deep",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:20])
def test_what_is_wrong_is_told(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        with pytest.raises(UsageError) as raised:
            Compiler(NAMES, {}).number(text, "rewards.x")
    assert str(raised.value).startswith("rewards.x: ")
    assert WRONG[text] in str(raised.value)
