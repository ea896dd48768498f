"""Measures a grid of cases in a child process, and keeps each result in a file as soon as it is there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from advisor.core.errors import GpuUnusableError, InputError, ProfileError
from advisor.core.redaction import redact_with
from advisor.formats.recording_files import Recording, read_recording
from advisor.measure.keeping import Keeper
from advisor.operators.case import Call, Case, call, tensor
from advisor.payload import protocol
from advisor.payload.protocol import VERSION, MeasuringJob, Result, Status
from advisor.profile.attempt import CHILD, TEMPORARY_NAME, job_folder
from advisor.profile.backends import visible_devices, why_first_is_busy
from advisor.profile.environment import child_environment
from advisor.profile.failures import log_tail, torch_problem
from advisor.profile.interpreter import candidates
from advisor.profile.launch import Ending, run_child
from advisor.profile.recording import read_recording as read_result

# No case takes as long; a device that hangs does.
STALL_S = 600.0
# So often may a kernel take its process with it.
MOST_LOSSES = 10
_WEEK_S = 7 * 86400.0
_REFERENCE_SIDE = {"cuda": 4096, "cpu": 256}

# Is told after each case how many are done of how many.
Progress = Callable[[int, int], None]


def measure(
    cases: Sequence[Case],
    path: Path,
    *,
    backend: str = "cuda",
    python: Path | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Measure what the file at ``path`` does not hold yet, and return all that it holds then.

    Args:
        cases: of ``advisor.measure.grid``.
        path: a recording that is begun or continued; kept whatever happens.
        backend: ``cuda``, or ``cpu`` to try things out.
        python: the interpreter, by default the active virtual environment's, else this one.
        progress: is told how far it is.

    Raises:
        InputError: no such interpreter, or no torch in it.
        RecordingError: the file is another's, of another device, or cannot be written.
        GpuUnusableError: there is no GPU, others work on it, or its memory is full.
        ProfileError: the measuring process failed.
        KeyboardInterrupt: passed on; what was measured is in the file.
    """
    keeper = Keeper(path, cases, backend, progress)
    if keeper.missing:
        _check_free(backend)
    losses = 0
    interpreters = candidates(python, os.environ)
    if not interpreters:
        raise InputError("no Python interpreter was found: name one that has torch with `profile.python`.")
    while keeper.missing:
        result, ending, interpreter = _first_with_torch(interpreters, keeper, backend)
        if result is not None and result["status"] == Status.OK:
            break
        lost = result is None or result["status"] == Status.LOST_DEVICE
        if not lost or not keeper.has_device or losses == MOST_LOSSES:
            raise _failure(result, ending, interpreter, path)
        losses += 1
        interpreters = [interpreter]
        # A case after which the process found the device lost was told already.
        if result is None:
            keeper.give_up_next(_why_lost(ending))
    return read_recording(path)


def _check_free(backend: str) -> None:
    reason = why_first_is_busy(os.environ) if backend == "cuda" else None
    if reason is not None:
        raise GpuUnusableError(
            f"{reason}: times would be wrong. Wait until it is free, or choose another with"
            " CUDA_VISIBLE_DEVICES."
        )


def _first_with_torch(
    interpreters: Sequence[Path], keeper: Keeper, backend: str
) -> tuple[Result | None, Ending, Path]:
    *others, last = interpreters
    for interpreter in others:
        result, ending = _run(interpreter, keeper, backend)
        if result is None or result["status"] != Status.NO_TORCH:
            return result, ending, interpreter
    return *_run(last, keeper, backend), last


def _run(interpreter: Path, keeper: Keeper, backend: str) -> tuple[Result | None, Ending]:
    with job_folder() as folder:
        progress_path, result_path = folder / "progress.jsonl", folder / "result.json"
        job: MeasuringJob = {
            "version": VERSION,
            "module": "grid_run",
            "backend": backend,
            "cases": [described(key, case) for key, case in keeper.missing.items()],
            "reference": described("reference", reference(backend)),
            "progress": str(progress_path),
            "result": str(result_path),
        }
        job_path = folder / "job.json"
        job_path.write_text(json.dumps(job), encoding="utf-8")
        ending = run_child(
            [interpreter, CHILD, job_path],
            environment=child_environment(os.environ, folder / TEMPORARY_NAME)
            | visible_devices(backend, os.environ),
            progress_path=progress_path,
            timeout_s=_WEEK_S,
            stall_s=STALL_S,
            progress=lambda line: keeper.take(json.loads(line)),
        )
        result = read_result(result_path)
    return result, Ending(returncode=ending.returncode, log=redact_with(ending.log, os.environ))


def described(key: str, case: Case) -> protocol.Case:
    """The case as the measuring process takes it."""
    return {
        "key": key,
        "dtype": case.dtype,
        "tf32": case.tf32,
        "phase": case.phase.value,
        "prepare": [_call(prepared) for prepared in case.prepare],
        "call": _call(case.call),
    }


def _call(described: Call) -> protocol.Call:
    return {
        "operator": described.operator,
        "arguments": list(described.arguments),
        "keywords": dict(described.keywords),
        "results": list(described.results),
    }


def reference(backend: str) -> Case:
    """The product whose time shows whether the clocks change."""
    dtype = "float16" if backend == "cuda" else "float32"
    square = tensor((_REFERENCE_SIDE[backend],) * 2, dtype)
    return Case(family="gemm", dtype=dtype, call=call("mm", square, square))


def _why_lost(ending: Ending) -> str:
    if ending.returncode is None:
        return f"took longer than {STALL_S:g} s"
    return f"ended its process with code {ending.returncode}"


def _failure(
    result: Result | None, ending: Ending, interpreter: Path, path: Path
) -> InputError | ProfileError:
    if result is None:
        return ProfileError(f"the measuring process ended: it {_why_lost(ending)}.{log_tail(ending.log)}")
    status, message = result["status"], result.get("message", "")
    problem = torch_problem(result, str(interpreter))
    if problem is not None:
        return InputError(problem)
    if status == Status.NO_CUDA:
        return GpuUnusableError(
            f"{message}, so there is nothing to measure. advisor measure --backend cpu tries it out,"
            " without use for predictions; another interpreter is named with `profile.python`."
        )
    if status == Status.FULL_DEVICE:
        return GpuUnusableError(
            f"the device has no memory left for a product of two matrices ({message}): others use it, or it"
            " is too small. End what runs there (nvidia-smi lists it) or choose another GPU with"
            " CUDA_VISIBLE_DEVICES, and repeat the command."
        )
    if status == Status.LOST_DEVICE:
        return GpuUnusableError(
            f"kernels failed {MOST_LOSSES + 1} times in a way that a working GPU does not ({message})."
            f" What was measured is in {str(path)!r}; look at the driver's log (dmesg)."
        )
    return ProfileError(
        f"measuring failed inside advisor: {message}. Please report this.\n\n{result.get('traceback', '')}"
    )
