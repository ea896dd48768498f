"""What stands between advisor and a script: ``python -I -S launcher.py ADVISOR REPORT COMMAND...``.

A script finds its parent's environment in ``/proc``, and what a program was started with stays there,
whatever it clears afterwards. This process was started without a credential and does nothing but wait.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
# Python ignores them, and what it starts would inherit that.
_IGNORED = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]


def main() -> None:
    """Run the command and end as it ends; its errno goes to the file descriptor REPORT if it cannot start."""
    advisor, report, *command = sys.argv[1:]
    os.set_inheritable(int(report), False)
    _tie_to(int(advisor))
    try:
        pid = os.posix_spawnp(command[0], command, os.environ, setsigdef=_IGNORED)
    except OSError as error:
        os.write(int(report), str(error.errno).encode())
        os._exit(1)
    _end_like(os.waitpid(pid, 0)[1])


def _tie_to(advisor: int) -> None:
    """End with advisor, and let the script look into this process no more than root can."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_DUMPABLE, 0)
    # Before that line nobody would have told us.
    if os.getppid() != advisor:
        os._exit(1)


def _end_like(status: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        # SIGKILL takes no handler and needs none.
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
