"""How a script is started, why it cannot be, and whose error ended it."""

from __future__ import annotations

import ast
import importlib.util
import opcode
import os
import runpy
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

from .protocol import Details, Origin, Status

# How a script is started: as ``python train.py`` or, inside a package, as ``python -m pkg.train``.
#
# A file with relative imports works only as a module of its package, so it is started as one; and so is one
# that imports a package that does not lie beside it, but beside its own.


def start_script(script: str, source: bytes) -> None:
    """Run the script as ``__main__``."""
    path = Path(script).resolve()
    root = _package_root(path) if _needs_package(path, source) else None
    if root is None:
        sys.path.insert(0, str(path.parent))
        runpy.run_path(script, run_name="__main__")
        return
    sys.path.insert(0, str(root))
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _needs_package(path: Path, source: bytes) -> bool:
    """Whether what the script imports is found only where its package lies."""
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    if any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in imports):
        return True
    root = _package_root(path)
    if root is None:
        return False
    names = [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in imports if isinstance(node, ast.ImportFrom)]
    whole = {name.partition(".")[0] for name in names}
    return any(_lies_in(root, name) and not _lies_in(path.parent, name) for name in whole)


def _lies_in(folder: Path, name: str) -> bool:
    return (folder / name).is_dir() or (folder / f"{name}.py").is_file()


def _package_root(path: Path) -> Path | None:
    """The folder that holds the outermost package; None if the names on the way are no modules."""
    root = path.parent
    while (root / "__init__.py").exists():
        root = root.parent
    if root == path.parent and Path.cwd() in root.parents:
        # A package may do without __init__.py; then `python -m` is called from its parent.
        root = Path.cwd()
    parts = path.relative_to(root).with_suffix("").parts
    return root if len(parts) > 1 and all(part.isidentifier() for part in parts) else None


# A file that is no Python: something else, or Python with a mistake in a line.

_LONGEST = 200


def problem_of(script: Path) -> tuple[Status, Details] | None:
    """Status and details of a script that cannot be compiled; None if it can."""
    source = script.read_bytes()
    try:
        compile(source, str(script), "exec", dont_inherit=True)
    except SyntaxError as error:
        if _is_python(source) and error.lineno and error.text and error.text.strip():
            return Status.SYNTAX_ERROR, syntax_details(error)
        return Status.NOT_PYTHON, {"message": str(error)}
    except (ValueError, LookupError, RecursionError, MemoryError) as error:
        return Status.NOT_PYTHON, {"message": str(error) or type(error).__name__}
    return None


def is_of_a_file(error: SyntaxError) -> bool:
    """Whether the mistake is in a file's line, not in text that the script compiled."""
    return bool(error.lineno and error.filename and os.path.isfile(error.filename))


def syntax_details(error: SyntaxError) -> Details:
    """Where the mistake is."""
    return {
        "message": error.msg,
        "file": error.filename,
        "line": error.lineno,
        "text": (error.text or "").strip()[:_LONGEST],
    }


def _is_python(source: bytes) -> bool:
    first = source.split(b"\n", 1)[0]
    if any(byte < 32 and byte not in b"\t\n\v\f\r" for byte in source) or (
        first.startswith(b"#!") and b"python" not in first
    ):
        return False
    try:
        importlib.util.decode_source(source)
    except (SyntaxError, UnicodeError, LookupError):  # the last for rot13, say: no encoding of text
        return False
    return True


# Whose code raised the error that ended a script, as far as its traceback shows.
#
# Blame needs evidence: a line of the script (or of a library) that raises. What torch raises may be the
# script's fault or that of the GPU that is only pretended, and is not to be distinguished from here.

_RAISES = ("RAISE_VARARGS", "RERAISE")
# Operators in C++ raise them at the line that calls.
_OF_OPERATORS = (RuntimeError, NotImplementedError)
_MOST_CAUSES = 10
_PAYLOAD = str(Path(__file__).parent)


def origin_of(error: BaseException) -> Origin:
    """``script``, or ``pretended`` where torch or a patch of ours raised it or what led to it.

    What the operating system answers is the script's, whatever asked: no GPU is in a folder that exists.
    """
    return "script" if all(_is_scripts_own(cause) for cause in _chain(error)) else "pretended"


def raises_itself(error: BaseException) -> bool:
    """Whether the line that it came from is a ``raise`` or an ``assert``."""
    steps = list(_steps(error))
    return bool(steps) and _opcode(steps[-1]) in _RAISES


def _chain(error: BaseException) -> Iterator[BaseException]:
    for _ in range(_MOST_CAUSES):
        yield error
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None:
            return
        error = cause


def _is_scripts_own(error: BaseException) -> bool:
    steps = list(_steps(error))
    if not steps:
        return True
    hidden = _PAYLOAD, str(Path(str(sys.modules["torch"].__file__)).parent)
    if steps[-1].tb_frame.f_code.co_filename.startswith(hidden):
        return isinstance(error, OSError) and error.errno is not None and _opcode(steps[-1]) not in _RAISES
    if _opcode(steps[-1]) in _RAISES:
        return True
    is_of_operator = isinstance(error, _OF_OPERATORS) and not isinstance(error, RecursionError)
    return not is_of_operator and "FakeTensor" not in str(error)


def _steps(error: BaseException) -> Iterator[TracebackType]:
    step = error.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


def _opcode(step: TracebackType) -> str:
    return opcode.opname[step.tb_frame.f_code.co_code[step.tb_lasti]]


# Which line of a stack is the script's own, and not a library's.

_OWN_FOLDERS = (_PAYLOAD, sysconfig.get_paths()["stdlib"], "<frozen")
_PACKAGES = ("site-packages", "dist-packages")


def is_library(file: str) -> bool:
    """Whether neither the script nor a module of its project is in this file."""
    return file.startswith(_OWN_FOLDERS) or any(name in file for name in _PACKAGES)


def own_line(stack: Iterable[traceback.FrameSummary]) -> Details:
    """Where in the script's own code a stack is, outermost frame first; nothing if nowhere."""
    own = [frame for frame in stack if not is_library(frame.filename)]
    if not own:
        return {}
    return {"file": own[-1].filename, "line": own[-1].lineno, "text": (own[-1].line or "")[:_LONGEST]}
