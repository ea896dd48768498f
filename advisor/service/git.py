"""The one place that starts git, so that reading a repository runs and fetches nothing.

A repository brings its own configuration. What it may name there, such as programs that fetch what is
missing, is switched off by what git reads after it: the command line and the environment.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from advisor.core import processes
from advisor.core.errors import InputError

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

    Raises:
        InputError: it is somebody else's whom the user does not trust, or a bare one that nobody named.
    """

    def __init__(self) -> None:
        self._trusted: tuple[str, ...] = ()
        complaint = self.answer("rev-parse", "--git-dir").stderr.decode(errors="replace")
        if _SOMEBODY_ELSES in complaint:
            self._trusted = _trusted_folders()
            complaint = self.answer("rev-parse", "--git-dir").stderr.decode(errors="replace")
        _check(complaint)

    def answer(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """What git answers.

        Raises:
            InputError: git is missing or takes too long.
        """
        try:
            return processes.run(
                self._command(arguments), environment=_environment(os.environ), timeout_s=_LIMIT_S
            )
        except FileNotFoundError:
            raise _missing() from None
        except subprocess.TimeoutExpired:
            raise _too_slow(arguments[0]) from None

    @contextmanager
    def reading(
        self, *arguments: str, stdin: IO[bytes] | int = subprocess.DEVNULL
    ) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
        """Git at work, and what it answers, which may be too much to be kept.

        Raises:
            InputError: it took too long.
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


def _trusted_folders() -> tuple[str, ...]:
    """What the user and the system say in ``safe.directory``; no repository is asked."""
    of_user = {name: os.environ[name] for name in _OF_THE_USER if name in os.environ}
    of_user["PATH"] = processes.program_path()
    folders: list[str] = []
    for scope in ("--system", "--global"):
        command = [*_GIT, "config", scope, "--null", "--get-all", "safe.directory"]
        answer = processes.run(command, environment=of_user, timeout_s=_LIMIT_S)
        folders += os.fsdecode(answer.stdout).split("\0")[:-1]
    return tuple(folders)


def _check(complaint: str) -> None:
    if _SOMEBODY_ELSES in complaint:
        raise InputError(
            "this repository belongs to another user, so git does not read it: work as that user, or trust it"
            " with git config --global --add safe.directory FOLDER."
        )
    if _BARE in complaint:
        raise InputError(
            "this is a bare repository, which may be part of a foreign one: if it is yours, name it with the"
            " variable GIT_DIR, as in: GIT_DIR=. advisor diff ..."
        )


def _missing() -> InputError:
    return InputError("git is not installed: give files instead of revisions.")


def _too_slow(command: str) -> InputError:
    return InputError(f"git {command} took more than {_LIMIT_S:g} s and was stopped.")
