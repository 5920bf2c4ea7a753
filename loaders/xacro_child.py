"""The child process in which xacro runs: a request in JSON on standard input, the answer in JSON on standard output.

Xacro evaluates Python expressions. Those that can lead out of them (xacro itself looks for `__` in names only) are
refused by what they are made of. Should one get out nevertheless, the process has little to give: limits of time and
memory, no files to write, no processes, no sockets. The limits of the system hold whatever code runs; the audit hook
sees Python's own calls. It is no sandbox for code in C: SECURITY.md.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from typing import Any, NoReturn

_ALLOWED = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Starred),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.keyword, ast.Attribute),
    *(ast.Subscript, ast.Slice, ast.JoinedStr, ast.FormattedValue),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)
# attributes that lead from a value to the interpreter: frames, code, classes
_PREFIXES = ("_", "gi_", "f_", "cr_", "ag_", "tb_", "co_", "func_", "im_", "mro")
_INTERPRETER = ("type", "vars", "issubclass", "isinstance")  # of what xacro offers as `python.`
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = (
    *("socket.", "subprocess.", "ctypes.", "shutil.", "pty.", "signal.", "webbrowser.", "ftplib.", "http.", "urllib."),
    *("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "os.kill", "os.putenv"),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.unlink"),
    *("os.chmod", "os.chown", "os.chflags", "os.utime", "os.setxattr", "os.removexattr", "os.mknod", "os.mkfifo"),
)


class RefusedError(Exception):
    """An expression, or an act, that macros have no use for."""


def check_expression(text: str) -> None:
    """Raise RefusedError unless an expression computes with values only; a SyntaxError is left to xacro."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise RefusedError(f"{text.strip()[:60]!r} holds {type(node).__name__}, which macros may not")
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name.startswith(_PREFIXES if isinstance(node, ast.Attribute) else "__"):
            raise RefusedError(f"{text.strip()[:60]!r} uses {name[:40]!r}, which macros may not")


def limit(cpu_seconds: float, memory: float) -> None:
    """Bound what the process can take and do, for good."""
    import resource

    def bound(name: str, value: int) -> None:
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            return
        try:
            resource.setrlimit(kind, (value, value))
        except (ValueError, OSError):  # the system does not have it, or has a lower one
            return

    bound("CPU", max(1, round(cpu_seconds)))
    bound("AS", round(memory))
    bound("FSIZE", 0)
    bound("CORE", 0)
    bound("NPROC", 0)


def refuse_acts(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: reading files is all that macros need."""
    if event == "open":
        mode, flags = arguments[1], arguments[2]
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & _WRITING):
            raise RefusedError("macros may not write files")
    elif event.startswith(_FORBIDDEN):
        raise RefusedError(f"macros may not call {event}")


def expand(request: dict[str, Any]) -> str:
    """The text after xacro."""
    from pathlib import Path

    import xacro
    from xacro import substitution_args

    from artsim.loaders.assets import Assets

    folder, root = request["folder"], request["mesh_root"]
    packages = {name: Path(place) for name, place in request["packages"].items()}
    assets = Assets(Path(folder) if folder else None, packages, Path(root) if root else None)

    def find(name: str) -> str:
        """`$(find NAME)` looks where package:// looks; xacro itself knows only ROS 2's index."""
        place = assets.package_root(name)
        if place is None:
            raise ValueError(f"package {name!r} not found; give --package {name}=DIR or set ROS_PACKAGE_PATH")
        return str(place)

    evaluate = xacro.safe_eval

    def checked(expression: str, *scopes: Any) -> Any:
        check_expression(expression)
        return evaluate(expression, *scopes)

    substitution_args._eval_find = find
    for name in _INTERPRETER:
        dict.pop(xacro._global_symbols["python"], name, None)
    xacro.safe_eval = checked
    limit(request["seconds"], request["memory"])
    sys.addaudithook(refuse_acts)
    document = xacro.parse(request["text"])
    xacro.init_stacks(request["path"])
    xacro.process_doc(document, mappings=request["arguments"])
    return str(document.toprettyxml(indent="  "))


def answer(words: dict[str, str]) -> NoReturn:
    """Write the answer and end."""
    told, start = json.dumps(words).encode(), 0
    while start < len(told):
        start += os.write(_OUT, told[start : start + 65536])
    os._exit(0)


if __name__ == "__main__":
    _OUT = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what macros print is nobody's answer
    asked = json.loads(sys.stdin.buffer.read())
    sys.path[:] = asked["sys_path"]
    from artsim.sim.foundation.apart import end_with

    end_with(*asked["parent"])
    try:
        answer({"text": expand(asked)})
    except MemoryError:
        answer({"error": "needs more memory than macros may take"})
    except RecursionError:
        answer({"error": "macros are nested too deep"})
    except Exception as error:  # macros are programs: they fail in any way a Python expression can
        inner = getattr(error, "exc", None) or error  # xacro repeats what it wraps
        answer({"error": str(inner) or type(inner).__name__})
