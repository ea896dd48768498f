"""``main:train.py``: a file of a git revision, laid out with all that the revision holds beside it."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.core.errors import InputError

# Longer than any repository takes that a person waits for.
_LIMIT_S = 300.0
# Neither hooks nor a watcher that the repository names: its files are to be read and nothing of it run.
_GIT = ("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


@contextmanager
def laid_out(text: str) -> Iterator[Path]:
    """The path that ``text`` names; a revision's lies in a folder that is gone in the end.

    Args:
        text: a path, or ``REVISION:PATH`` with the path from the repository's root, as git writes it. A file
            that has such a name comes first.

    Raises:
        InputError: git is missing, this is no repository, or there is no such revision or file.
    """
    revision, colon, file = text.partition(":")
    if not colon or not revision or Path(text).exists():
        yield Path(text)
        return
    commit = _commit(revision, text)
    with tempfile.TemporaryDirectory(prefix="advisor-revision-") as folder:
        _extract(commit, Path(folder))
        path = Path(folder, file)
        if not file or not path.resolve().is_relative_to(Path(folder).resolve()) or not path.exists():
            raise InputError(
                f"{text!r}: revision {revision} ({commit[:10]}) has no file {file!r}. Give its path from the"
                " root of the repository."
            )
        yield path


def _commit(revision: str, text: str) -> str:
    done = _answer_of_git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if done.returncode:
        raise InputError(
            f"there is no file {text!r}, and {revision!r} is no revision of a git repository here. Give a"
            " script, a trace, or REVISION:PATH such as main:train.py."
        )
    return done.stdout.decode().strip()


def _extract(commit: str, folder: Path) -> None:
    """All files of the commit; a script needs the modules beside it."""
    root = _answer_of_git("rev-parse", "--show-toplevel")
    archive = _answer_of_git("-C", root.stdout.decode().strip() or ".", "archive", commit)
    if archive.returncode:
        raise InputError(
            f"git archive {commit[:10]} failed: {archive.stderr.decode(errors='replace').strip()}"
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")


def _answer_of_git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [*_GIT, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=_LIMIT_S, check=False
        )
    except FileNotFoundError:
        raise InputError("git is not installed: give files instead of revisions.") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"git {arguments[0]} took more than {_LIMIT_S:g} s and was stopped.") from None
