"""OnnxPolicy: a network in an ONNX file as the policy of a rollout, by onnxruntime."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from artsim.sim.foundation.errors import MissingInputError, ModelError, UsageError
from artsim.sim.foundation.records import Array

_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64}
_NAMED = ("qpos", "qvel", "time")


class OnnxPolicy:
    """A network that gives the action (samples, n) of all samples at once.

    Its inputs are called qpos (samples, nq), qvel (samples, nv) and time (samples, 1), any of them; or it has one input
    (samples, nq + nv) of any name, positions first. Its first output is the action. It runs in one thread, whose
    numbers do not depend on the machine's load. Raises MissingInputError, ModelError, UsageError.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        where = Path(path)
        if not where.is_file():
            raise MissingInputError(f"policy: {where}: no such file")
        try:
            import onnxruntime
        except ImportError:
            raise UsageError("a policy of an ONNX file needs onnxruntime: pip install 'artsim[onnx]'") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # 4: fatal errors alone are logged, since all errors are raised
        try:
            self._session = onnxruntime.InferenceSession(str(where), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise ModelError(f"{where}: no network that onnxruntime reads: {_line(error)}") from None
        self.__qualname__ = where.name
        self._path = str(where)
        self._inputs = {one.name: one for one in self._session.get_inputs()}
        named = {*self._inputs} <= {*_NAMED}
        if not (named or len(self._inputs) == 1) or not self._inputs:
            want = "want qpos, qvel and time, any of them, or one input of positions and velocities"
            raise UsageError(f"{self._path}: its inputs are {', '.join(self._inputs) or 'none'}; {want}")
        for name, one in self._inputs.items():
            if one.type not in _TYPES:
                raise UsageError(f"{self._path}: input {name!r} is {one.type}, want one of {', '.join(_TYPES)}")
        self._named = named

    def __call__(self, qpos: Array, qvel: Array, time: float) -> Array:
        """The action (samples, n) at these states."""
        known = {"qpos": qpos, "qvel": qvel, "time": np.full((len(qpos), 1), time)}
        if not self._named:
            known = dict.fromkeys(self._inputs, np.concatenate([qpos, qvel], axis=1))
        given = {name: known[name].astype(_TYPES[one.type]) for name, one in self._inputs.items()}
        for name, values in given.items():
            shape = self._inputs[name].shape
            if len(shape) != 2 or (isinstance(shape[1], int) and shape[1] != values.shape[1]):
                want = ("samples", values.shape[1])
                raise UsageError(f"{self._path}: input {name!r} has shape {tuple(shape)}, want {want}")
        if any(one.shape[0] == 1 for one in self._inputs.values()) and len(qpos) != 1:
            each = [self._run({name: values[k : k + 1] for name, values in given.items()}) for k in range(len(qpos))]
            return np.concatenate(each)
        return self._run(given)

    def _run(self, given: dict[str, Any]) -> Array:
        try:
            found = self._session.run(None, given)[0]
        except Exception as error:
            raise UsageError(f"{self._path}: {_line(error)}") from None
        return np.asarray(found, float)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
