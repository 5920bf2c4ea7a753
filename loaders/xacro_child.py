"""The child process in which xacro runs: a request in JSON on standard input, the answer in JSON on standard output.

Xacro evaluates Python expressions. Expressions that could reach the interpreter are refused by their syntax (xacro
itself only searches names for `__`). An expression that escapes nevertheless finds a limited process: time and memory
are bounded, and it has no files to write, no processes and no sockets. The limits of the operating system hold for all
code; the audit hook sees Python's own calls only. The process is no sandbox for code in C: SECURITY.md.
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
_INTERPRETER = ("type", "vars", "issubclass", "isinstance")  # among the names that xacro offers as `python.`
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = (
    *("socket.", "subprocess.", "ctypes.", "shutil.", "pty.", "signal.", "webbrowser.", "ftplib.", "http.", "urllib."),
    *("os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "os.kill", "os.putenv"),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.unlink"),
    *("os.chmod", "os.chown", "os.chflags", "os.utime", "os.setxattr", "os.removexattr", "os.mknod", "os.mkfifo"),
)


class RefusedError(Exception):
    """An expression, or a call, that macros do not need."""


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
    """Bound the time, memory, files and processes of this process, irrevocably."""
    import resource

    def bound(name: str, value: int) -> None:
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            return
        try:
            resource.setrlimit(kind, (value, value))
        except (ValueError, OSError):  # the system does not have this limit, or has a lower one
            return

    bound("CPU", max(1, round(cpu_seconds)))
    bound("AS", round(memory))
    bound("FSIZE", 0)
    bound("CORE", 0)
    bound("NPROC", 0)


def refuse_acts(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook that refuses all but reading files, which is all that macros need."""
    if event == "open":
        mode, flags = arguments[1], arguments[2]
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & _WRITING):
            raise RefusedError("macros may not write files")
    elif event.startswith(_FORBIDDEN):
        raise RefusedError(f"macros may not call {event}")


class Places:
    """Lines of the sources. Every element carries an attribute, which xacro copies: the number of its file, its line,
    and the macro whose definition holds it.
    """

    MARK = "artsim-place"

    def __init__(self) -> None:
        self.files: list[str] = []
        self.known: list[tuple[int, int, str]] = []
        self.calls: list[tuple[Any, str]] = []  # calls of macros, whose attributes are parameters, and their numbers

    def watch(self, xacro: Any) -> None:
        """Make xacro's parser number elements, and hide the numbers from its macros."""
        from xml.dom import expatbuilder

        start, parse, call = expatbuilder.Namespaces.start_element_handler, xacro.parse, xacro.handle_macro_call

        def numbered(builder: Any, name: str, attributes: Any) -> None:
            start(builder, name, attributes)
            node = above = builder.curNode
            while above is not None and getattr(above, "tagName", "") != "xacro:macro":
                above = above.parentNode
            macro = "" if above is None or above is node else above.getAttribute("name")
            node.setAttribute(self.MARK, str(len(self.known)))
            self.known.append((len(self.files) - 1, builder.getParser().CurrentLineNumber, macro))

        def of_file(text: Any, name: Any = None) -> Any:
            self.files.append(str(name or ""))  # '': the model's own
            return parse(text, name)

        def unnumbered(node: Any, *tables: Any) -> Any:
            if node.tagName.startswith("xacro:") and node.hasAttribute(self.MARK):
                self.calls.append((node, node.getAttribute(self.MARK)))
                node.removeAttribute(self.MARK)
            return call(node, *tables)

        expatbuilder.Namespaces.start_element_handler = numbered  # type: ignore[assignment]
        xacro.parse, xacro.handle_macro_call = of_file, unnumbered

    def of(self, node: Any) -> tuple[str, int, str] | None:
        """The file, line and macro of an element."""
        text = node.getAttribute(self.MARK) or next((text for call, text in self.calls if call is node), "")
        if not text.isdecimal():
            return None
        file, line, macro = self.known[int(text)]
        return self.files[file], line, macro

    def of_error(self, error: BaseException, file: str) -> tuple[str, int, str] | None:
        """The place of the innermost element that xacro, whose code is in `file`, was processing at an error."""
        from xml.dom.minidom import Element

        if hasattr(error, "lineno") and self.files:  # of expat
            return self.files[-1], int(error.lineno), ""
        found, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == file:
                names = trace.tb_frame.f_locals
                nodes = [names[name] for name in ("elt", "node") if isinstance(names.get(name), Element)]
                found = next((place for place in map(self.of, nodes) if place), found)
            trace = trace.tb_next
        return found

    def taken_from(self, document: Any) -> list[tuple[str, int, str] | None]:
        """The places of all elements in document order; the attributes with their numbers are removed."""
        places = []
        for element in document.getElementsByTagName("*"):
            places.append(self.of(element))
            if element.hasAttribute(self.MARK):
                element.removeAttribute(self.MARK)
        return places


def words_of(error: BaseException) -> str:
    """Xacro's own message, without expat's position, which is reported separately."""
    if hasattr(error, "lineno"):
        return f"not well-formed XML: {str(error).partition(': line ')[0]}"
    cause = getattr(error, "exc", None)
    told = str(error)
    if cause is not None and told.startswith(f"{type(cause)}: {cause} "):  # told twice: unknown to xacro
        return str(cause)
    return told or type(error).__name__


def expand(request: dict[str, Any]) -> dict[str, Any]:
    """The text after xacro and the places of its elements, or an error and its place."""
    from pathlib import Path

    import xacro
    from xacro import substitution_args

    from artsim.loaders.assets import Assets

    folder, root = request["folder"], request["mesh_root"]
    packages = {name: Path(place) for name, place in request["packages"].items()}
    assets = Assets(Path(folder) if folder else None, packages, Path(root) if root else None)

    def find(name: str) -> str:
        """The folder of `$(find NAME)`, searched like package://; xacro itself knows only ROS 2's index."""
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
    places = Places()
    places.watch(xacro)
    limit(request["seconds"], request["memory"])
    sys.addaudithook(refuse_acts)
    try:
        document = xacro.parse(request["text"])
        xacro.init_stacks(request["path"])
        xacro.process_doc(document, mappings=request["arguments"], verbosity=0)
        listed = places.taken_from(document)
        return {"text": str(document.toprettyxml(indent="  ")), "places": listed}
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # macros are programs: they fail in any way a Python expression can
        return {"error": words_of(error), "place": places.of_error(error, xacro.__file__)}


def answer(words: dict[str, Any]) -> NoReturn:
    """Write the answer and end."""
    told, start = json.dumps(words).encode(), 0
    while start < len(told):
        start += os.write(_OUT, told[start : start + 65536])
    os._exit(0)


if __name__ == "__main__":
    _OUT = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # output printed by macros is not part of the answer
    asked = json.loads(sys.stdin.buffer.read())
    sys.path[:] = asked["sys_path"]
    from artsim.sim.foundation.apart import end_with

    end_with(*asked["parent"])
    try:
        answer(expand(asked))
    except MemoryError:
        answer({"error": "needs more memory than macros may take"})
    except RecursionError:
        answer({"error": "macros are nested too deep"})
    except Exception as error:
        answer({"error": str(error) or type(error).__name__})
