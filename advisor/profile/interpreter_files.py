"""Where a Python interpreter and its packages are, read from their files: nothing of it is run."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

_SITES = ("lib*/python3*/site-packages", "lib*/python3*/dist-packages", "lib/python3/dist-packages")
_SYSTEM = (Path("/usr"), Path("/usr/local"))
# Paths in the lines of a .pth file that are code.
_QUOTED_PATH = re.compile(r"""['"](/[^'"\n]+)['"]""")
_MOST_LINKS = 40
_MOST_BYTES = 2**20


def interpreter_files(program: Path, home: Path) -> list[Path]:
    """Folders and files that an interpreter is made of: environment, base, packages that are elsewhere.

    Args:
        program: as it is called; beside it and beside what it links to are the libraries.
        home: of the user, where packages may be, too.
    """
    found = dict.fromkeys(part for path in _links(program) for part in _parts(path))
    prefixes = [*found, *_SYSTEM, home / ".local"]
    sites = [site for prefix in prefixes for pattern in _SITES for site in prefix.glob(pattern)]
    of_user = (home / ".local").glob("lib*/python3*")
    return [*found, *of_user, *(path for site in sites for path in _elsewhere(site))]


def _links(program: Path) -> Iterator[Path]:
    """The program and what it links to, link by link, since each may lie in another environment."""
    path = program.absolute()
    for _ in range(_MOST_LINKS):
        yield path
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
    yield program.resolve()


def _parts(path: Path) -> Iterator[Path]:
    """Where the program of an environment, an installation, or a version manager has its files."""
    prefix = path.parent.parent
    settings = prefix / "pyvenv.cfg"
    if settings.is_file():
        yield prefix
        for line in _text(settings).splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home" and value.strip():
                base = Path(value.strip())
                yield from (base.parent, base.resolve().parent)
    elif path.parent.name == "shims" or any(prefix.glob("lib/python3*")):
        yield prefix
    yield path


def _elsewhere(site: Path) -> Iterator[Path]:
    """What the packages of a folder have outside of it."""
    for file in site.glob("*.pth"):
        for line in _text(file).splitlines():
            if line.startswith(("import ", "import\t")):
                yield from map(Path, _QUOTED_PATH.findall(line))
            elif line.strip() and not line.startswith("#"):
                yield site / line.strip()
    yield from _editable(site.glob("*.dist-info/direct_url.json"))


def _editable(files: Iterable[Path]) -> Iterator[Path]:
    for file in files:
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            described = json.loads(_text(file))
            url = urlsplit(described.get("url", ""))
            if url.scheme == "file" and described.get("dir_info", {}).get("editable"):
                yield Path(unquote(url.path))


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""
