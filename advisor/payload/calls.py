"""Profiles a function, call by call, in a process that was forked for it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import torch

from .run import found, leave, where, write_result

# The first call allocates what later ones use again; the third is like all that follow.
CALLS = 3


def run(job: dict[str, Any], step: Callable[..., object], setup: Callable[[], object] | None) -> None:
    """Call the function a few times under the fake GPU, write what the last call did, leave the process."""
    try:
        status, result = _profile(job, step, setup)
    except BaseException as error:  # noqa: BLE001 - the parent tells whoever called it
        message = f"{type(error).__name__}: {error}".removesuffix(": ")
        status, result = "crashed", {"message": message, **_frames(error)}
    write_result(job, {"status": status, **result})
    leave()


def _profile(
    job: dict[str, Any], step: Callable[..., object], setup: Callable[[], object] | None
) -> tuple[str, dict[str, Any]]:
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


def _frames(error: BaseException) -> dict[str, Any]:
    try:
        return where(error)
    except Exception:  # noqa: BLE001 - a fault of ours must not hide the script's
        return {"traceback": traceback.format_exc()}
