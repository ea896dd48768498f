"""A Jupyter notebook as the script that its code cells are."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.files import temporary_folder
from advisor.formats.foreign_files import read_plain

_MAX_BYTES = 64 * 2**20
# Cells of another language or with a command of the shell; %%time and its like only look at Python.
_OF_PYTHON = re.compile(r"%%(time|timeit|capture|prun)\b.*\n")
_MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[\w.]+\?)$", re.MULTILINE)
# What a notebook has without an import.
_PRELUDE = "display = print\n"


@contextmanager
def notebook_script(path: Path) -> Iterator[Path]:
    """The notebook's code in a file, as long as it is needed.

    Raises InputError: it cannot be read, or is no notebook with code in Python.
    """
    text = _PRELUDE + "\n".join(code_cells(path))
    with temporary_folder("notebook") as folder:
        script = folder / f"{path.stem}.py"
        script.write_text(text, encoding="utf-8")
        yield script


def code_cells(path: Path) -> list[str]:
    """The code of each cell, without magics and commands of the shell.

    Raises InputError: it cannot be read, or is no notebook with code in Python.
    """
    try:
        content = read_plain(path, most_bytes=_MAX_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(
            f"{str(path)!r} is larger than {_MAX_BYTES >> 20} MiB: clear its outputs first."
        ) from error
    try:
        cells = json.loads(content)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{str(path)!r} is no Jupyter notebook (version 4): give a .py or .ipynb file."
        ) from error
    python = [_OF_PYTHON.sub("", source, count=1) for source in sources]
    found = [_MAGIC.sub(r"\1pass", source) for source in python if not source.startswith("%%")]
    if not found:
        raise InputError(f"{str(path)!r} has no cells with Python code.")
    return found
