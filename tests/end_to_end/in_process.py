"""A command run inside this process: the same bytes and the same exit code, without a second's start-up.

What a process would have to itself is lent for the call and given back after it: arguments, folder,
environment, the three standard files and the handlers of signals. What stays is what Python has imported
and what the catalogs' caches hold, which are the same for every command.
"""

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from pathlib import Path
from types import FrameType
from typing import IO

from advisor import __main__ as entry

# A timer of no time at all would never ring.
_SOON_S = 0.001
# Python drops what is raised while it collects garbage: then the next ring is heard.
_AGAIN_S = 10.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StillRunningError(BaseException):
    """No Exception, so that the command cannot take it for one of its own."""


def call(
    arguments: Sequence[str], *, cwd: Path, environ: Mapping[str, str], timeout_s: float
) -> tuple[int, str, str]:
    """``python -m advisor ARGUMENTS``: its exit code, stdout and stderr.

    Args:
        arguments: behind the command's name.
        cwd: the folder to stand in.
        environ: the whole environment.
        timeout_s: after which StillRunningError is raised from wherever the command is.
    """
    with ExitStack() as lent:
        out, err = (lent.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        lent.enter_context(_standard_files(out, err))
        lent.enter_context(_place(cwd, environ))
        lent.enter_context(_as_main(arguments))
        lent.enter_context(_handlers())
        lent.enter_context(_alarm(timeout_s))
        code = _exit_code()
        return code, _text(out), _text(err)


def _exit_code() -> int:
    """What the interpreter would end with, having printed what it would print."""
    try:
        copy_context().run(entry.main)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)  # noqa: T201
        return 1
    except StillRunningError:
        raise
    except BaseException:  # noqa: BLE001 - a crash of ours is an answer that a test judges
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


@contextmanager
def _standard_files(out: IO[bytes], err: IO[bytes]) -> Iterator[None]:
    """The descriptors themselves, since processes that the command starts write to them as well."""
    kept = [os.dup(number) for number in range(3)]
    streams = sys.stdin, sys.stdout, sys.stderr
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        for number, source in enumerate((null, out.fileno(), err.fileno())):
            os.dup2(source, number)
        with (
            open(0, closefd=False) as sys.stdin,
            open(1, "w", closefd=False) as sys.stdout,
            open(2, "w", closefd=False, errors="backslashreplace", buffering=1) as sys.stderr,
        ):
            yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(null)


@contextmanager
def _place(cwd: Path, environ: Mapping[str, str]) -> Iterator[None]:
    before, folder = dict(os.environ), Path.cwd()
    try:
        _set_environment(environ)
        os.chdir(cwd)
        yield
    finally:
        os.chdir(folder)
        _set_environment(before)


def _set_environment(wanted: Mapping[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)


@contextmanager
def _as_main(arguments: Sequence[str]) -> Iterator[None]:
    """Usage lines name the program after its main module."""
    main, argv = sys.modules["__main__"], sys.argv
    sys.modules["__main__"], sys.argv = entry, [str(entry.__file__), *arguments]
    try:
        yield
    finally:
        sys.modules["__main__"], sys.argv = main, argv


@contextmanager
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _alarm(timeout_s: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise StillRunningError(f"the command did not end within {timeout_s} s")

    before = signal.signal(signal.SIGALRM, ring)
    # The timer is the whole test's: what is left of it goes on afterwards.
    of_the_test_s, _ = signal.setitimer(signal.ITIMER_REAL, timeout_s, _AGAIN_S)
    began_s = time.monotonic()
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        left_s = of_the_test_s and max(of_the_test_s - (time.monotonic() - began_s), _SOON_S)
        signal.setitimer(signal.ITIMER_REAL, left_s)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
