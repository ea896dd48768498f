"""Runs a command of advisor as a process of its own, with a time limit, and keeps its output."""

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import BinaryIO

from advisor.config.layers import DELIVERY_KEY_VARIABLE
from advisor.core import processes
from advisor.core.files import temporary_folder
from advisor.core.processes import ANSWER_FILE_VARIABLE
from advisor.core.redaction import redact

MOST_KEPT_BYTES = 64_000
_HEAD_BYTES = 48_000
_POLL_S = 0.5
# What a command that was asked to end takes to remove what it made.
_LAST_WORDS_S = 10.0
_COLUMNS = "120"
_MAY_BE_SENT_LATER = ("busy", "failed")


class Ending(Enum):
    """Why a command is no longer running."""

    BY_ITSELF = auto()
    TIMED_OUT = auto()
    STOPPED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that has ended."""

    ending: Ending
    exit_code: int | None
    """None if it was ended."""
    output: str
    """What it wrote to stdout, then to stderr, without secrets and perhaps without its middle."""
    output_sha256: str
    """Of stdout, all of it."""
    recommended: str | None = None
    """Id of the option that it recommends; None if it recommends nothing."""
    undelivered: str = ""
    """The channels that it could not reach, and why; "" if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is to run."""

    words: Sequence[str]
    """What follows ``advisor``."""
    folder: str
    key: str
    """Under which an answer is sent once, however often the command runs."""
    timeout_s: float


def run_command(command: Command, may_go_on: Callable[[], bool]) -> Ran:
    """Run a command to its end.

    Args:
        may_go_on: asked twice a second; when it says no the command is ended.

    Raises OSError: it cannot be started, such as in a folder that is not there any more.
    """
    with (
        temporary_folder("schedule") as folder,
        (folder / "out").open("w+b") as out,
        (folder / "err").open("w+b") as err,
    ):
        child = _start(command, out, err, folder / "answer.json")
        try:
            ending = _wait(child, command.timeout_s, may_go_on)
        finally:
            # End the command and whatever it started, politely first.
            if child.poll() is None:
                _signal(child, signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    child.wait(timeout=_LAST_WORDS_S)
            _signal(child, signal.SIGKILL)
            child.wait()
        facts = _facts(folder / "answer.json")
        recommended = facts.get("recommended")
        deliveries = facts.get("deliveries")
        lost = [
            f"{one.get('channel')}: {one.get('error') or one['outcome']}"
            for one in (deliveries if isinstance(deliveries, list) else ())
            if isinstance(one, dict) and one.get("outcome") in _MAY_BE_SENT_LATER
        ]
        output = "\n".join(filter(None, (_kept(out), _kept(err))))
        out.seek(0)
        return Ran(
            ending=ending,
            exit_code=child.returncode if ending is Ending.BY_ITSELF else None,
            output=output,
            output_sha256=hashlib.file_digest(out, "sha256").hexdigest(),
            recommended=recommended if isinstance(recommended, str) else None,
            undelivered="; ".join(lost),
        )


def _start(command: Command, out: BinaryIO, err: BinaryIO, answer: Path) -> subprocess.Popen[bytes]:
    beside = {DELIVERY_KEY_VARIABLE: command.key, ANSWER_FILE_VARIABLE: str(answer), "COLUMNS": _COLUMNS}
    return processes.start(
        [*processes.ADVISOR, *command.words],
        cwd=command.folder,
        environment=os.environ | processes.search_path(os.environ) | beside,
        stdout=out,
        stderr=err,
        # Ctrl-C at the service's terminal is for the service: it lets its commands end.
        start_new_session=True,
    )


def _wait(child: subprocess.Popen[bytes], timeout_s: float, may_go_on: Callable[[], bool]) -> Ending:
    end = time.monotonic() + timeout_s
    while True:
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=_POLL_S)
            return Ending.BY_ITSELF
        if time.monotonic() > end:
            return Ending.TIMED_OUT
        if not may_go_on():
            return Ending.STOPPED


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _kept(written: BinaryIO) -> str:
    """Beginning and end, without secrets."""
    size = written.seek(0, os.SEEK_END)
    written.seek(0)
    if size <= MOST_KEPT_BYTES:
        return redact(written.read().decode(errors="replace")).rstrip()
    head = written.read(_HEAD_BYTES).decode(errors="replace")
    written.seek(size - (MOST_KEPT_BYTES - _HEAD_BYTES))
    tail = written.read().decode(errors="replace")
    # Whole lines: half a secret would not look like one.
    begin, end = head.rpartition("\n")[0], tail.partition("\n")[2]
    left_out = size - len(begin.encode()) - len(end.encode())
    return redact(f"{begin}\n[... {left_out:,} bytes are left out ...]\n{end}").rstrip()


def _facts(answer: Path) -> Mapping[str, object]:
    with suppress(OSError, ValueError):
        facts = json.loads(answer.read_bytes())
        if isinstance(facts, dict):
            return facts
    return {}
