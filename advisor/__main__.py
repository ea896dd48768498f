"""``python -m advisor`` and the console script: runs a command, turns errors into messages and codes.

Nothing of ours is imported before `main` says what a signal does, so that Ctrl-C is no traceback.
"""

import atexit
import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 130
# As a shell has it: a signal's number goes on top.
_SIGNALLED = 128
# An answer makes hundreds of thousands of values and, measured, not a thousand of them are garbage in cycles:
# looking for it more often, as Python does, takes a tenth of the time.
NEW_OBJECTS_BEFORE_COLLECTION = 1_000_000
_Handler = Callable[[int, FrameType | None], None]
_heard: list[int] = []


def _leave(number: int, frame: object) -> None:  # noqa: ARG001
    """Before a command runs nothing has to be cleaned up, and an import may swallow any exception."""
    if number == signal.SIGINT:
        os.write(2, b"interrupted\n")
    os._exit(_SIGNALLED + number)


def _interrupt(number: int, frame: object) -> None:  # noqa: ARG001
    # A closed terminal or a service manager sends both, and the second would cut the cleaning up short.
    _handle(_go_on, "SIGTERM", "SIGHUP")
    _heard.append(number)
    raise KeyboardInterrupt


def _go_on(number: int, frame: object) -> None:
    pass


def _handle(action: _Handler, *names: str) -> None:
    for name in names:
        number = getattr(signal, name, None)
        # nohup has us started with SIGHUP ignored, a shell's background job with SIGINT.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, action)


def _open_streams() -> None:
    """What the caller closed is taken; else the next file that is opened would be printed to.

    An answer that cannot be printed is an error: what stands for a closed stdout takes none. Notes may go.
    """
    while (number := os.open(os.devnull, os.O_RDONLY)) < 2:
        os.set_inheritable(number, True)
    os.close(number)
    if sys.stderr is None:
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for number, name in enumerate(("stdout", "stderr"), start=1):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
        stream = getattr(sys, name)
        # What a terminal's encoding lacks is shown as an escape: an answer is worth more than a letter.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _spare_the_collector() -> None:
    gc.set_threshold(NEW_OBJECTS_BEFORE_COLLECTION)
    # At exit Python searches all that is left for cycles and takes it apart, module by module, which is a
    # tenth of the time again. Frozen, it goes with the process. Files and databases are closed where they
    # are used, and what is registered to run at exit still runs.
    atexit.register(gc.freeze)


def main() -> None:
    """Run the command line; never shows a traceback for a user's mistake."""
    _handle(_leave, "SIGINT", "SIGTERM", "SIGHUP")
    _open_streams()
    _spare_the_collector()
    from advisor.cli import app
    from advisor.core.errors import AdvisorError
    from advisor.report.plain import print_error

    try:
        # Anyone who ends us politely wants what Ctrl-C does: nothing running and no file behind.
        _handle(_interrupt, "SIGTERM", "SIGHUP")
        _handle(signal.default_int_handler, "SIGINT")
        try:
            app(standalone_mode=True)
        finally:
            sys.stdout.flush()
    except AdvisorError as error:
        from advisor.report.words import error_text

        print_error(error_text(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _exit_interrupted()
    except SystemExit as end:
        # What typer makes of Ctrl-C; it says nothing.
        if end.code == INTERRUPTED:
            _exit_interrupted()
        raise
    except OSError as error:
        # Python would complain again when it flushes what is left at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # Anyone who reads no further, such as head, has seen enough.
        if error.errno != errno.EPIPE:
            is_closed = error.errno == errno.EBADF
            print_error(f"cannot read or write: {'standard output is closed' if is_closed else error}")
        sys.exit(1)


def _exit_interrupted() -> None:
    print("interrupted", file=sys.stderr)
    sys.exit(_SIGNALLED + _heard[0] if _heard else INTERRUPTED)


if __name__ == "__main__":
    main()
