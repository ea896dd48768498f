"""Profiles a function, call by call, in a process that was forked for it."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import torch

from .protocol import Details, ScriptJob, Status
from .results import leave, write_result
from .run import Outcome, found, where

# The first call allocates what later ones use again; the third is like all that follow.
CALLS = 3


def run(job: ScriptJob, step: Callable[..., object], setup: Callable[[], object] | None) -> None:
    """Call the function a few times under the fake GPU, write what the last call did, leave the process."""
    try:
        status, details = _profile(job, step, setup)
    except BaseException as error:  # noqa: BLE001 - the parent raises it for its caller
        message = f"{type(error).__name__}: {error}".removesuffix(": ")
        status, details = Status.CRASHED, {"message": message, **_frames(error)}
    write_result(job, status, details)
    leave()


def _profile(job: ScriptJob, step: Callable[..., object], setup: Callable[[], object] | None) -> Outcome:
    from .backend import start_session
    from .recording.iteration import Iterations

    # OpenMP's threads did not come along in the fork: who waits for them waits for ever.
    torch.set_num_threads(1)
    session = start_session(job)
    iterations = Iterations(session, by_call=True)
    iterations.install()
    with session.mode:
        state = () if setup is None else (setup(),)
        iterations.start_span()
        for _ in range(CALLS):
            step(*state)
            iterations.end_call()
    return found(session, iterations, iterations.last or {})


def _frames(error: BaseException) -> Details:
    try:
        return where(error)
    except Exception:  # noqa: BLE001 - a fault of ours must not hide the script's
        return {"traceback": traceback.format_exc()}
