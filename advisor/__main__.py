"""``python -m advisor`` and the console script: runs a command, turns errors into messages and codes."""

from __future__ import annotations

import os
import signal
import sys

from advisor.errors import AdvisorError

INTERRUPTED = 130


def _interrupt(number: int, frame: object) -> None:  # noqa: ARG001
    raise KeyboardInterrupt


def main() -> None:
    """Run the command line; never shows a traceback for a user's mistake."""
    from advisor.cli import app

    # Whoever ends us politely wants what Ctrl-C does: nothing running and no file behind.
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _interrupt)
    try:
        app(standalone_mode=True)
    except AdvisorError as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except SystemExit as end:
        # What typer makes of Ctrl-C; it says nothing.
        if end.code == INTERRUPTED:
            print("interrupted: there is no result", file=sys.stderr)
        raise
    except OSError as error:
        # Python would complain again when it flushes what is left at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"error: cannot read or write: {error}", file=sys.stderr)
            sys.exit(1)
        # The reader (head, less) has seen enough.
        sys.exit(0)


if __name__ == "__main__":
    main()
