"""``main:train.py``: a file of a git revision, laid out with all that the revision holds beside it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from advisor.core.errors import InputError
from advisor.core.temporary import temporary_folder

# Longer than any repository takes that a person waits for.
_LIMIT_S = 300.0
# More than any repository of scripts holds: trees that name each other may list billions of files.
_MOST_BYTES = 4 * 2**30
_MOST_LISTED_BYTES = 64 * 2**20
# Neither hooks nor a watcher that the repository names: its files are to be read and nothing of it run.
_GIT = ("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
_LINK, _PROGRAM = "120000", "100755"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A script or trace.

    Attributes:
        folder: where it runs, so that what it opens by a relative path is of its version, too.
    """

    path: Path
    folder: Path


class _Entry(NamedTuple):
    mode: str
    blob: str
    size_bytes: int
    name: str


@contextmanager
def laid_out(text: str) -> Iterator[Version]:
    """What ``text`` names; a revision's lies in a folder that is gone in the end.

    Args:
        text: a path, or ``REVISION:PATH`` as git writes it: the path is from the repository's root, or from
            here if it begins with ``./``. A file that has such a name comes first.

    Raises:
        InputError: git is missing, this is no repository, there is no such revision or file, or it cannot be
            laid out.
    """
    revision, colon, name = text.partition(":")
    if not colon or not revision or Path(text).exists():
        yield Version(path=Path(text), folder=Path.cwd())
        return
    commit = _commit(revision, text)
    with temporary_folder("revision") as temporary:
        root = temporary.resolve()
        try:
            _lay_out(commit, root)
        except OSError as error:
            raise InputError(f"{text!r} cannot be laid out in {temporary}: {error.strerror}.") from None
        here = root / _below_root()
        path = Path(os.path.normpath((here if name.startswith(("./", "../")) else root) / name))
        if not name or not path.exists() or not path.resolve().is_relative_to(root):
            raise InputError(
                f"{text!r}: revision {revision} ({commit[:10]}) has no file {name!r}. Give its path from the"
                " root of the repository, or from here with ./ before it. Submodules are not laid out."
            )
        yield Version(path=path, folder=here if here.is_dir() else root)


def _commit(revision: str, text: str) -> str:
    done = _answer_of_git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode:
        raise InputError(
            f"there is no file {text!r}, and {revision!r} is no revision of a git repository here. Give a"
            " script, a trace, or REVISION:PATH such as main:train.py."
        )
    return done.stdout.decode().strip()


def _below_root() -> str:
    """The working folder as the repository has it."""
    return os.fsdecode(_answer_of_git("rev-parse", "--show-prefix").stdout).removesuffix("\n")


def _lay_out(commit: str, root: Path) -> None:
    """All files of the commit, as git keeps them: a script needs the modules beside it.

    ``git archive`` would leave out files that have an attribute, and run filters of the configuration.
    """
    entries = _entries(commit)
    if sum(entry.size_bytes for entry in entries) > _MOST_BYTES:
        raise _too_large(commit)
    # Links last: no file is written through one.
    entries.sort(key=lambda entry: entry.mode == _LINK)
    for entry, contents in zip(entries, _contents(entries), strict=True):
        _write(root, entry, contents)


def _entries(commit: str) -> list[_Entry]:
    """Files and links; a submodule's are in another repository."""
    with _git("ls-tree", "-r", "-z", "--long", "--full-tree", commit) as (git, answer):
        listing = answer.read(_MOST_LISTED_BYTES)
        if answer.read(1):
            raise _too_large(commit)
        if git.wait():
            raise InputError(f"the repository lacks folders of revision {commit[:10]}: fetch them.")
    lines = (line.partition(b"\t") for line in listing.split(b"\0")[:-1])
    facts = ((*kind.decode().split(), os.fsdecode(name)) for kind, _, name in lines)
    # Git writes no number where it lacks the contents; they are missed when they are read.
    return [
        _Entry(mode, blob, int(size) if size.isdigit() else 0, name)
        for mode, kind, blob, size, name in facts
        if kind == "blob"
    ]


def _too_large(commit: str) -> InputError:
    return InputError(
        f"revision {commit[:10]} holds more than is laid out ({_MOST_BYTES >> 30} GiB): profile its script"
        " where it is checked out, and compare the traces."
    )


def _contents(entries: Sequence[_Entry]) -> Iterator[bytes]:
    """Of each entry, one after the other."""
    with tempfile.TemporaryFile() as wanted:
        wanted.writelines(f"{entry.blob}\n".encode() for entry in entries)
        wanted.seek(0)
        with _git("cat-file", "--batch", stdin=wanted) as (_, answer):
            for entry in entries:
                if answer.readline().split()[1:] != [b"blob", b"%d" % entry.size_bytes]:
                    raise InputError(f"the repository lacks the contents of {entry.name!r}: fetch them.")
                contents = answer.read(entry.size_bytes)
                answer.read(1)
                yield contents


def _write(root: Path, entry: _Entry, contents: bytes) -> None:
    name = PurePosixPath(entry.name)
    if name.is_absolute() or ".." in name.parts:
        raise InputError(f"the revision names a file {entry.name!r}, which lies outside of it.")
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.mode == _LINK:
        path.symlink_to(os.fsdecode(contents))
        return
    path.write_bytes(contents)
    if entry.mode == _PROGRAM:
        path.chmod(0o755)


def _answer_of_git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [*_GIT, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=_LIMIT_S, check=False
        )
    except FileNotFoundError:
        raise InputError("git is not installed: give files instead of revisions.") from None
    except subprocess.TimeoutExpired:
        raise _too_slow(arguments[0]) from None


@contextmanager
def _git(
    *arguments: str, stdin: IO[bytes] | int = subprocess.DEVNULL
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """Git at work, and what it answers, which may be too much to be kept.

    Raises:
        InputError: it took too long.
    """
    with subprocess.Popen(
        [*_GIT, *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
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


def _too_slow(command: str) -> InputError:
    return InputError(f"git {command} took more than {_LIMIT_S:g} s and was stopped.")
