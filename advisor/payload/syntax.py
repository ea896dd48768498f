"""A file that is no Python: something else, or Python with a mistake in a line."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from .protocol import Details, Status

_LONGEST = 200
_BINARY = set(range(32)) - set(b"\t\n\v\f\r")


def problem_of(script: Path) -> tuple[Status, Details] | None:
    """Status and details of a script that cannot be compiled; None if it can."""
    source = script.read_bytes()
    try:
        compile(source, str(script), "exec", dont_inherit=True)
    except SyntaxError as error:
        if _is_python(source) and error.lineno and error.text and error.text.strip():
            return Status.SYNTAX_ERROR, details(error)
        return Status.NOT_PYTHON, {"message": str(error)}
    except (ValueError, LookupError, RecursionError, MemoryError) as error:
        return Status.NOT_PYTHON, {"message": str(error) or type(error).__name__}
    return None


def is_of_a_file(error: SyntaxError) -> bool:
    """Whether the mistake is in a file's line, not in text that the script compiled."""
    return bool(error.lineno and error.filename and os.path.isfile(error.filename))


def details(error: SyntaxError) -> Details:
    """Where the mistake is."""
    return {
        "message": error.msg,
        "file": error.filename,
        "line": error.lineno,
        "text": (error.text or "").strip()[:_LONGEST],
    }


def _is_python(source: bytes) -> bool:
    """Whether it is text, and not a program for another interpreter by its first line."""
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
