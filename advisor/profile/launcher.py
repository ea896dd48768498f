"""What stands between advisor and a script: ``python -I -S launcher.py ADVISOR REPORT COMMAND...``.

A script finds its parent's environment in ``/proc``, and what a program was started with stays there,
whatever it clears afterwards. This process was started without a credential. It waits, and in the end it
kills what the script left: on Linux all of that becomes its child, whatever session or environment it has.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
# Processes that fork as fast as they are killed are given up.
_MOST_S = 5.0
# Python ignores them, and what it starts would inherit that.
_IGNORED = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]


def main() -> None:
    """Run the command and end as it ends; its errno goes to the file descriptor REPORT if it cannot start."""
    advisor, report, *command = sys.argv[1:]
    os.set_inheritable(int(report), False)
    signal.signal(signal.SIGTERM, lambda number, _: _end_like(-number))
    _tie_to(int(advisor))
    # A crash leaves no core: to Linux, 1 means neither a core file nor a program that collects it.
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    least = 0 if most == 0 or sys.platform != "linux" else 1
    resource.setrlimit(resource.RLIMIT_CORE, (least, least))
    try:
        pid = os.posix_spawnp(command[0], command, os.environ, setsigdef=_IGNORED)
    except OSError as error:
        os.write(int(report), str(error.errno).encode())
        os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    _end_like(code)


def _tie_to(advisor: int) -> None:
    """End with advisor, and let the script look into this process no more than root can."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    libc.prctl(_PR_SET_DUMPABLE, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # Before that line there would have been no signal.
    if os.getppid() != advisor:
        os._exit(1)


def _end_like(code: int) -> None:
    """End as a process that gave this code did, after all that is left of it.

    All children are killed; the children of each are ours then. Nothing is where the system lists none.
    """
    deadline_s = time.monotonic() + _MOST_S
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline_s:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123
                pids = [int(pid) for pid in file.read().split()]
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            # One that ended may have been the last, and does not wait for others that live.
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    if code < 0:
        # SIGKILL takes no handler and needs none.
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
