"""``python -m advisor`` and the console script: runs a command, turns errors into messages and codes."""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from advisor.core.errors import AdvisorError
from advisor.report.plain import print_error

INTERRUPTED = 130
# An answer makes hundreds of thousands of values and, measured, not a thousand of them are garbage in cycles:
# looking for it more often, as Python does, takes a tenth of the time.
NEW_OBJECTS_BEFORE_COLLECTION = 1_000_000


def _interrupt(number: int, frame: object) -> None:  # noqa: ARG001
    # A closed terminal or a service manager sends both, and the second would cut the cleaning up short.
    _handle(_go_on)
    raise KeyboardInterrupt


def _go_on(number: int, frame: object) -> None:
    pass


def _handle(action: Callable[[int, FrameType | None], None]) -> None:
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # nohup has us started with SIGHUP ignored.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, action)


def _spare_the_collector() -> None:
    gc.set_threshold(NEW_OBJECTS_BEFORE_COLLECTION)
    # At exit Python searches all that is left for cycles and takes it apart, module by module, which is a
    # tenth of the time again. Frozen, it goes with the process. Files and databases are closed where they
    # are used, and what is registered to run at exit still runs.
    atexit.register(gc.freeze)


def main() -> None:
    """Run the command line; never shows a traceback for a user's mistake."""
    _spare_the_collector()
    from advisor.cli import app

    for stream in (sys.stdout, sys.stderr):
        # What a terminal's encoding lacks is shown as an escape: an answer is worth more than a letter.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Whoever ends us politely wants what Ctrl-C does: nothing running and no file behind.
    _handle(_interrupt)
    try:
        app(standalone_mode=True)
    except AdvisorError as error:
        from advisor.report.words import error_text

        sys.stdout.flush()
        print_error(error_text(error))
        sys.exit(error.exit_code)
    except SystemExit as end:
        # What typer makes of Ctrl-C; it says nothing.
        if end.code == INTERRUPTED:
            print("interrupted", file=sys.stderr)
        raise
    except OSError as error:
        # Python would complain again when it flushes what is left at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print_error(f"cannot read or write: {error}")
        sys.exit(1)


if __name__ == "__main__":
    main()
