"""``profile_callable``: models in a notebook or a benchmark, without a script.

The function cannot be sent to another interpreter, so this process is forked: the copy gets the fake GPU,
runs the function and ends; nothing of it is left here.
"""

import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, overload

from advisor.core.errors import InputError, ProfileError
from advisor.core.findings.about_traces import LengthUnknown
from advisor.core.values import Trace
from advisor.payload.child import die_with_the_parent, start
from advisor.payload.protocol import ScriptJob, Status
from advisor.profile import attempt
from advisor.profile.environment import TEMPORARY
from advisor.profile.recording import ChildRecording, read_recording, trace_of

State = TypeVar("State")
_POLL_S = 0.01


@overload
def profile_callable(
    step: Callable[[], object], *, setup: None = None, batch_size: int | None = None,
    gpu: attempt.ScriptGpu | None = None, timeout_s: float = attempt.DEFAULT_TIMEOUT_S,
) -> Trace: ...  # fmt: skip


@overload
def profile_callable(
    step: Callable[[State], object], *, setup: Callable[[], State], batch_size: int | None = None,
    gpu: attempt.ScriptGpu | None = None, timeout_s: float = attempt.DEFAULT_TIMEOUT_S,
) -> Trace: ...  # fmt: skip


def profile_callable(
    step: Callable[..., object], *, setup: Callable[[], object] | None = None, batch_size: int | None = None,
    gpu: attempt.ScriptGpu | None = None, timeout_s: float = attempt.DEFAULT_TIMEOUT_S,
) -> Trace:  # fmt: skip
    """The Trace of one call of ``step`` on a GPU that is not there.

    ::

        def build():
            with torch.device("cuda"):  # takes no memory, however large
                return GPT2(config), torch.zeros(8, 1024, dtype=torch.long)

        trace = profile_callable(lambda state: state[0](state[1]), setup=build, batch_size=8)

    Args:
        step: one iteration: training with ``backward`` and an optimizer's step, or inference.
        setup: called once before; what it returns is given to each call of ``step``.
        gpu: which GPU the function believes it has.
        timeout_s: seconds after which it is stopped.

    Raises:
        InputError: this system cannot fork, or the interpreter has no torch.
        ProfileError: the function failed, did nothing on the GPU, or ran into the timeout.
    """
    if not hasattr(os, "fork"):
        raise InputError("profile_callable needs a system that can fork: profile a script instead.")
    name = getattr(step, "__qualname__", type(step).__name__)
    with attempt.job_folder() as folder:
        job = attempt.AttemptJob(script=name, arguments=(), backend="fake", gpu=gpu or attempt.ScriptGpu())
        whole = attempt.written(job, folder, module="run")
        status = _run(lambda: _child(whole, step, setup), timeout_s)
        recording = read_recording(Path(whole["result"]))
    if recording is None or recording["status"] != Status.OK:
        raise _failure(name, recording, status, timeout_s)
    trace = trace_of(recording, name, ())
    warnings = tuple(
        warning
        for warning in trace.warnings
        if not (isinstance(warning, LengthUnknown) and warning.why == "no-loader")
    )
    return replace(trace, batch_size=batch_size or trace.batch_size, warnings=warnings)


def _child(job: ScriptJob, step: Callable[..., object], setup: Callable[[], object] | None) -> None:
    # What the function saves goes with the job, as in a script's environment.
    tempfile.tempdir = str(Path(job["result"]).with_name(attempt.TEMPORARY_NAME))
    os.environ.update(dict.fromkeys(TEMPORARY, tempfile.tempdir))
    start(job, step, setup)


def _run(child: Callable[[], None], timeout_s: float) -> int | None:
    """The exit status of a fork that runs ``child``; None if it was killed at the timeout."""
    # The copy would print what is buffered once more.
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        # Whatever happens, the copy must not go on with what its parent was about to do.
        try:
            os.setsid()
            die_with_the_parent()
            if os.getppid() == parent:
                child()
        finally:
            os._exit(1)
    deadline = time.monotonic() + timeout_s
    ended, status = 0, 0
    try:
        while not ended and time.monotonic() < deadline:
            ended, status = os.waitpid(pid, os.WNOHANG)
            time.sleep(0 if ended else _POLL_S)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        if not ended:
            os.waitpid(pid, 0)
    return status if ended else None


def _failure(
    name: str, recording: ChildRecording | None, status: int | None, timeout_s: float
) -> InputError | ProfileError:
    if status is None:
        return ProfileError(f"{name} took more than {timeout_s:g} s and was stopped: allow more (timeout_s).")
    if recording is None:
        return ProfileError(f"{name} ended its process (status {status}) before it was profiled.")
    if recording["status"] == Status.NO_GPU_WORK:
        return ProfileError(
            f"{name} ran nothing on the GPU: build the model and its inputs on the device 'cuda', in `setup`"
            " or in the function."
        )
    message = recording["message"]
    if message.startswith("ModuleNotFoundError: No module named 'torch'"):
        return InputError("this interpreter has no torch: pip install torch.")
    hint = ""
    if "forked subprocess" in message or "fork-based multiprocessing" in message:
        hint = " A GPU was used before in this process: give models on the CPU, or build them in `setup`."
    frames = recording.get("traceback", "")
    return ProfileError(f"{name} raised {message}.{hint}\n\n{frames}".rstrip())
