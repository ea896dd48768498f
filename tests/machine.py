"""Programs of the system that some tests need, one Debian package each; without it such a test is skipped.

    @needs("chromium")
    def test_a_page_is_drawn(): ...

`pytest --programs asked` hides all of them from the tests that do not say so, as CI does: then no other test
needs them. `--programs none` hides them from all.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.profile.sandbox import check_sandbox

PROGRAMS = {
    "bubblewrap": ("bwrap",),
    "chromium": ("chromium",),
    "g++": ("g++", "c++", "clang++", "gcc", "cc", "clang"),
    "postgresql": ("initdb", "pg_ctl", "postgres", "psql"),
    "mariadb-server": ("mariadbd",),
    "slurm-wlm": ("slurmctld", "slurmd"),
    "slurmdbd": ("slurmdbd",),
    "slurm-client": ("sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun"),
    "systemd": ("systemd-analyze", "journalctl", "systemctl", "systemd-run"),
    "universal-ctags": ("ctags",),
    "util-linux": ("setpriv",),
}
OPTION = "--programs"
# Debian keeps the programs of a PostgreSQL server out of the path, and an ordinary user's has no daemons.
_MORE_FOLDERS = [*sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True), "/usr/sbin"]
_PATH = os.environ.get("PATH", os.defpath)
# Of the run's processes: one that is ended before its time removes nothing itself.
_FOLDER, _KEEPER = "PYTEST_SHARED_FOLDER", "PYTEST_SHARED_FOLDERS_PROCESS"
_hidden_from_all = False


def folder() -> str:
    """What servers and other users read: pytest's own is root's alone, and too long for a socket's path."""
    return os.environ[_FOLDER]


def keeper() -> str:
    """The process that removes it: what serves all others ends with that one."""
    return os.environ[_KEEPER]


@contextmanager
def shared_folder() -> Iterator[None]:
    """Makes that folder in the process that starts all others, and removes it when they are gone."""
    if _FOLDER in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="advisor-tests-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        os.environ |= {_FOLDER: name, _KEEPER: str(os.getpid())}
        try:
            yield
        finally:
            del os.environ[_FOLDER], os.environ[_KEEPER]


def needs(package: str) -> pytest.MarkDecorator:
    """Skips a test, with the reason, where the package is missing."""
    assert package in PROGRAMS, f"add {package} to tests/machine.py"
    return pytest.mark.program(package)


def find(package: str) -> Path | None:
    """The first program of the package; also where it is hidden from the test that asks."""
    if _hidden_from_all:
        return None
    found = map(path_of, PROGRAMS[package])
    return next((Path(program) for program in found if program), None)


def path_of(program: str) -> str | None:
    """Where a program is, also where it is hidden from the tests."""
    return shutil.which(program, path=os.pathsep.join((_PATH, *_MORE_FOLDERS)))


@lru_cache
def why_not(package: str) -> str | None:
    """Why a test that needs it cannot run here."""
    if find(package) is None:
        return f"needs {PROGRAMS[package][0]}: apt install {package}"
    if package == "bubblewrap":
        try:
            check_sandbox()
        except InputError as error:
            return str(error)
    return None


def add_option(parser: pytest.Parser) -> None:
    """`--programs`."""
    parser.addoption(
        OPTION,
        choices=("all", "asked", "none"),
        default="all",
        help="programs of the system that tests see: all, those that a test asks for by needs(), or none",
    )


def show_programs(item: pytest.Item) -> None:
    """Skips the test, or gives it a path with the programs that it may see."""
    global _hidden_from_all
    shown = item.config.getoption(OPTION)
    _hidden_from_all = shown == "none"
    packages = [package for mark in item.iter_markers("program") for package in mark.args]
    os.environ["PATH"] = _PATH if shown == "all" or (shown == "asked" and packages) else bare_path()
    for package in packages:
        if reason := why_not(package):
            pytest.skip(reason)


@lru_cache
def bare_path() -> str:
    """The path without the programs that are hidden; made once a process."""
    hidden = {program for programs in PROGRAMS.values() for program in programs}
    return os.pathsep.join(_without(place, hidden) for place in _PATH.split(os.pathsep))


def _without(place: str, hidden: set[str]) -> str:
    """The folder, or one of links to all else that is in it."""
    there = {path.name: path for path in Path(place).iterdir()} if Path(place).is_dir() else {}
    # clang++-19 and g++-12 are compilers, too.
    left_out = {name for name in there if name in hidden or name.rsplit("-", 1)[0] in hidden}
    if not left_out:
        return place
    links = Path(tempfile.mkdtemp(prefix="path-", dir=folder()))
    links.chmod(0o755)
    for name in there.keys() - left_out:
        (links / name).symlink_to(there[name])
    return str(links)
