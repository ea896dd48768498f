"""``main:train.py``: a file of a git revision, laid out with all that the revision holds beside it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from advisor.core import processes
from advisor.core.errors import InputError
from advisor.core.files import temporary_folder

# More than any repository of scripts holds: trees that name each other may list billions of files.
_MOST_BYTES = 4 * 2**30
_MOST_LISTED_BYTES = 64 * 2**20
_PART_BYTES = 2**20
_LONGEST_LINK_BYTES = 4096
_FORMS = "Give a script, a trace, or REVISION:PATH such as main:train.py."
_LINK, _PROGRAM = "120000", "100755"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptOrTrace:
    """A script or trace."""

    path: Path
    folder: Path
    """Where it runs, so that what it opens by a relative path is of its version, too."""


class _Entry(NamedTuple):
    mode: str
    blob: str
    size_bytes: int
    name: str


@contextmanager
def laid_out(text: str) -> Iterator[ScriptOrTrace]:
    """What ``text`` names; a revision's lies in a folder that is gone in the end.

    Args:
        text: a path, or ``REVISION:PATH`` as git writes it: the path is from the repository's root, or from
            here if it begins with ``./``. A file that has such a name comes first.

    Raises InputError: git is missing, this is no repository, there is no such revision or file, or it cannot
    be laid out.
    """
    revision, colon, name = text.partition(":")
    if Path(text).exists():
        yield ScriptOrTrace(path=Path(text), folder=Path.cwd())
        return
    if not colon or not revision:
        raise InputError(f"there is no file {text!r}. {_FORMS}")
    repository = Repository()
    commit = _commit(repository, revision, text)
    with temporary_folder("revision") as temporary:
        root = temporary.resolve()
        try:
            _lay_out(repository, commit, root)
        except OSError as error:
            raise InputError(f"{text!r} cannot be laid out in {temporary}: {error.strerror}.") from None
        here = _inside(root, repository)
        path = Path(os.path.normpath((here if name.startswith(("./", "../")) else root) / name))
        if not name or not path.exists() or not path.resolve().is_relative_to(root):
            raise InputError(
                f"{text!r}: revision {revision} ({commit[:10]}) has no file {name!r}. Give its path from the"
                " root of the repository, or from here with ./ before it. Submodules are not laid out."
            )
        yield ScriptOrTrace(path=path, folder=here)


def _commit(repository: Repository, revision: str, text: str) -> str:
    done = repository.answer("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode:
        raise InputError(
            f"there is no file {text!r}, and {revision!r} is no revision of a git repository here. {_FORMS}"
        )
    return done.stdout.decode().strip()


def _inside(root: Path, repository: Repository) -> Path:
    """The working folder as the revision has it; its root where it has none, or a link that leads outside."""
    below = os.fsdecode(repository.answer("rev-parse", "--show-prefix").stdout).removesuffix("\n")
    here = root / below
    return here if here.is_dir() and here.resolve().is_relative_to(root) else root


def _lay_out(repository: Repository, commit: str, root: Path) -> None:
    """All files of the commit, as git keeps them: a script needs the modules beside it.

    ``git archive`` would leave out files that have an attribute, and run filters of the configuration.
    """
    with repository.reading("ls-tree", "-r", "-z", "--long", "--full-tree", commit) as (git, answer):
        listing = answer.read(_MOST_LISTED_BYTES)
        if answer.read(1):
            raise _too_large(commit)
        if git.wait():
            raise InputError(f"the repository lacks folders of revision {commit[:10]}: fetch them.")
    lines = (line.partition(b"\t") for line in listing.split(b"\0")[:-1])
    facts = ((*kind.decode().split(), os.fsdecode(name)) for kind, _, name in lines)
    # Git writes no number where it lacks the contents; they are missed when they are read.
    entries = [
        _Entry(mode, blob, int(size) if size.isdigit() else 0, name)
        for mode, kind, blob, size, name in facts
        if kind == "blob"
    ]
    if sum(entry.size_bytes for entry in entries) > _MOST_BYTES:
        raise _too_large(commit)
    # Links last: no file is written through one.
    entries.sort(key=lambda entry: entry.mode == _LINK)
    for entry, contents in zip(entries, _contents(repository, entries), strict=True):
        _write(root, entry, contents)


def _too_large(commit: str) -> InputError:
    return InputError(
        f"revision {commit[:10]} holds more than is laid out ({_MOST_BYTES >> 30} GiB): profile its script"
        " where it is checked out, and compare the traces."
    )


def _contents(repository: Repository, entries: Sequence[_Entry]) -> Iterator[Iterator[bytes]]:
    """Of each entry, one after the other, in parts: a few kilobytes unpack to gigabytes. All must be read."""
    with tempfile.TemporaryFile() as wanted:
        wanted.writelines(f"{entry.blob}\n".encode() for entry in entries)
        wanted.seek(0)
        with repository.reading("cat-file", "--batch", stdin=wanted) as (_, answer):
            for entry in entries:
                if answer.readline().split()[1:] != [b"blob", b"%d" % entry.size_bytes]:
                    raise InputError(f"the repository lacks the contents of {entry.name!r}: fetch them.")
                yield _parts(answer, entry.size_bytes)
                answer.read(1)


def _parts(file: IO[bytes], size_bytes: int) -> Iterator[bytes]:
    for start in range(0, size_bytes, _PART_BYTES):
        yield file.read(min(_PART_BYTES, size_bytes - start))


def _write(root: Path, entry: _Entry, contents: Iterator[bytes]) -> None:
    name = PurePosixPath(entry.name)
    path = root / name
    # Only a made-up tree has these: a link and a folder of one name, a repository within.
    is_inside = ".." not in name.parts and path.parent.resolve().is_relative_to(root)
    if not is_inside or ".git" in (part.lower() for part in name.parts):
        raise InputError(
            f"the revision names a file {entry.name!r}, which lies outside of it: do not use this repository."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.mode == _LINK:
        target = b"" if entry.size_bytes > _LONGEST_LINK_BYTES else b"".join(contents)
        if not target or b"\0" in target:
            raise InputError(f"the link {entry.name!r} of the revision leads to no path: do not use it.")
        path.symlink_to(os.fsdecode(target))
        return
    with path.open("wb") as file:
        file.writelines(contents)
    if entry.mode == _PROGRAM:
        path.chmod(0o755)


# Longer than any repository takes that a person waits for.
_LIMIT_S = 300.0
_GIT = ("git", "--no-pager", "--no-replace-objects", "--literal-pathspecs")
# The command line comes after the repository's own settings and counts more. Of safe.* git believes nothing
# that a repository says.
_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "core.askPass=",
    "core.sshCommand=false", "core.gitProxy=false", "credential.helper=", "protocol.allow=never",
    "safe.bareRepository=explicit",
)  # fmt: skip
# Where the caller's own variables say which repository is meant, as in a hook, and how far to look for one.
_KEPT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "SUDO_UID")
_FIXED = {
    # What a partial clone lacks is not fetched: git 2.45 has a switch, and older ones have no way to.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
# What the user's own settings are read with: where they are.
_OF_THE_USER = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
_SOMEBODY_ELSES, _BARE = "dubious ownership", "safe.bareRepository"


class Repository:
    """The repository of the working folder.

    Raises InputError: it is someone else's whom the user does not trust, or a bare one that was not named.
    """

    def __init__(self) -> None:
        self._trusted: tuple[str, ...] = ()
        complaint = self.answer("rev-parse", "--git-dir").stderr.decode(errors="replace")
        if _SOMEBODY_ELSES in complaint:
            # What the user and the system say in ``safe.directory``; no repository is asked.
            of_user = {name: os.environ[name] for name in _OF_THE_USER if name in os.environ}
            of_user["PATH"] = processes.program_path()
            folders: list[str] = []
            for scope in ("--system", "--global"):
                command = [*_GIT, "config", scope, "--null", "--get-all", "safe.directory"]
                answer = processes.run(command, environment=of_user, timeout_s=_LIMIT_S)
                folders += os.fsdecode(answer.stdout).split("\0")[:-1]
            self._trusted = tuple(folders)
            complaint = self.answer("rev-parse", "--git-dir").stderr.decode(errors="replace")
        if _SOMEBODY_ELSES in complaint:
            raise InputError(
                "this repository belongs to another user, so git does not read it: work as that user, or"
                " trust it with git config --global --add safe.directory FOLDER."
            )
        if _BARE in complaint:
            raise InputError(
                "this is a bare repository, which may be part of a foreign one: if it is yours, name it with"
                " the variable GIT_DIR, as in: GIT_DIR=. advisor diff ..."
            )

    def answer(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """What git answers. Raises InputError: git is missing or takes too long."""
        try:
            return processes.run(
                self._command(arguments), environment=_environment(os.environ), timeout_s=_LIMIT_S
            )
        except FileNotFoundError:
            raise InputError("git is not installed: give files instead of revisions.") from None
        except subprocess.TimeoutExpired:
            raise _too_slow(arguments[0]) from None

    @contextmanager
    def reading(
        self, *arguments: str, stdin: IO[bytes] | int = subprocess.DEVNULL
    ) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
        """Git at work, and what it answers, which may be too much to be kept.

        Raises InputError: it took too long.
        """
        with processes.start(
            self._command(arguments),
            stdin=stdin,
            environment=_environment(os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as git:
            assert git.stdout is not None, "asked for"  # noqa: S101
            is_late = threading.Event()

            def stop() -> None:
                is_late.set()
                git.kill()

            limit = threading.Timer(_LIMIT_S, stop)
            limit.start()
            try:
                yield git, git.stdout
            finally:
                limit.cancel()
                if is_late.is_set():  # what was read is not all, whatever came of it
                    raise _too_slow(arguments[0])

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        trusted = (f"safe.directory={folder}" for folder in self._trusted)
        settings = (part for setting in (*_SETTINGS, *trusted) for part in ("-c", setting))
        return [*_GIT, *settings, *arguments]


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the user's that git or a program of its could obey but what is named here."""
    kept = {name: environment[name] for name in _KEPT if name in environment}
    return {**kept, **_FIXED, "PATH": processes.program_path()}


def _too_slow(command: str) -> InputError:
    return InputError(f"git {command} took more than {_LIMIT_S:g} s and was stopped.")
