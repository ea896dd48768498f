"""Runs the script as ``__main__`` under the fake GPU and writes what was seen."""

from __future__ import annotations

import contextlib
import gc
import platform
import runpy
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .progress import Position, Teller, leave, unusable_torch, write_result
from .protocol import Details, Iteration, RunPhase, ScriptJob, Status, Warned, notice
from .script import is_library, is_of_a_file, origin_of, own_line, problem_of, raises_itself, syntax_details

if TYPE_CHECKING:
    from .recording.iteration import Iterations
    from .session import Session

Outcome = tuple[Status, Details]


def run(
    job: ScriptJob, step: Callable[..., object] | None = None, setup: Callable[[], object] | None = None
) -> None:
    """Profile the job's script, or a step with its set-up; write the result file, and leave the process."""
    try:
        status, details = _attempt(job) if step is None else _of_function(job, step, setup)
    except BaseException as error:  # noqa: BLE001 - the parent must learn of our own bugs, too
        status = Status.CRASHED
        details = {"message": repr(error), "traceback": traceback.format_exc(), "internal": True}
    write_result(job, status, details)
    leave()


def _attempt(job: ScriptJob) -> Outcome:
    script = Path(job["script"])
    problem = problem_of(script)
    if problem is not None:
        return problem[0], {"is_script": True, **problem[1]}
    teller = Teller(lambda line: _progress(job, line))
    teller.tell({"phase": RunPhase.TORCH})
    unusable = unusable_torch()
    if unusable is not None:
        return unusable
    from .progress import watch
    from .torch_names import MissingNameError

    watch(job)
    try:
        return _profile(job, teller)
    except MissingNameError as error:
        import torch

        return Status.STRANGE_TORCH, {"message": str(error), "torch": str(torch.__version__)}


def _profile(job: ScriptJob, teller: Teller) -> Outcome:
    from .backend import NoCudaError, finished, start_session
    from .real_device import CpuStepClock, SpanMeasurement
    from .recording.iteration import SPANS_WANTED, Iterations

    try:
        session = start_session(job)
    except NoCudaError as error:
        return Status.NO_CUDA, {"message": str(error)}

    def on_span(_: int) -> None:
        span = finished(measurement, iterations, teller.tell)
        if span is None:
            return
        if job["is_timed"]:
            write_result(job, Status.OK, {"step_times_s": span["step_times_s"]})
            session.stopper.stop()
        span = {**span, "loading": session.loading.retimed(span["loading"])}
        write_result(job, *_of_script(job, found(session, iterations, span)))
        session.stopper.stop()

    position = None if session.backend == "cuda" else Position(teller.tell, SPANS_WANTED)
    iterations = Iterations(session, on_span, position=position)
    measurement: CpuStepClock | SpanMeasurement | None = CpuStepClock() if job["is_timed"] else None
    if session.backend == "cuda":
        measurement = SpanMeasurement(session, job["timeline"], iterations.watch_modules)
    iterations.install()
    if session.backend == "fake" and job["shortcuts"]:
        from .fake.repeated_passes import RepeatedPasses

        RepeatedPasses(session, iterations).begin()
    iterations.start_span()
    # Torch's own objects stay: looking through them for garbage over and over is no work of the script's.
    gc.freeze()
    teller.tell({"phase": RunPhase.SCRIPT})
    status, details = _run_script(job, session)
    if session.stopper.stopping:
        leave()
    if job["is_timed"]:
        return Status.NO_ITERATION, details
    return _of_script(job, _ended(status, details, session, iterations))


# The first call allocates what later ones use again; the third is like all that follow.
CALLS = 3


def _of_function(job: ScriptJob, step: Callable[..., object], setup: Callable[[], object] | None) -> Outcome:
    """What the last of a few calls under the fake GPU did, in a process that was forked for it."""
    try:
        import torch

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
    except BaseException as error:  # noqa: BLE001 - the parent raises it for its caller
        details: Details = {"message": f"{type(error).__name__}: {error}".removesuffix(": ")}
        try:
            details |= where(error)
        except Exception:  # noqa: BLE001 - a fault of ours must not hide the script's
            details["traceback"] = traceback.format_exc()
        return Status.CRASHED, details


def _of_script(job: ScriptJob, outcome: Outcome) -> Outcome:
    from .checkpoints import checkpointing_of, line_of_turns

    status, details = outcome
    if status is not Status.OK:
        return outcome
    script = Path(job["script"])
    line = line_of_turns(script)
    turns = [] if line is None else [notice(Warned.ITERATION_SEEN, of="first-turn", num=line)]
    warnings = [*details["warnings"], *turns]
    return status, {**details, "warnings": warnings, "checkpoints": checkpointing_of(script)}


def _ended(status: Status | None, details: Details, session: Session, iterations: Iterations) -> Outcome:
    details = {
        **details,
        "backend": session.backend,
        "num_spans": iterations.num_spans,
        "fed_fake_data": session.fake_data is not None,
        "refused": list(session.refused),
        "withheld": list(session.variables.asked),
        "counted_gpus": session.world.is_counted and session.world.gpus_per_node == 1,
        "num_processes": session.num_processes,
    }
    if status is not None:
        return status, details
    span = iterations.typical()
    if span is None or session.backend == "cuda":
        return Status.NO_ITERATION, details
    if span is iterations.last:
        of = "ended-at-once" if iterations.num_spans == 1 else "ended-early"
        session.warn(Warned.ITERATION_SEEN, of=of, num=iterations.num_spans)
    return found(session, iterations, span)


def _run_script(job: ScriptJob, session: Session) -> tuple[Status | None, Details]:
    from .progress import StopProfiling
    from .recording.random_steps import seed_all
    from .script import start_script
    from .torch_names import MissingNameError

    try:
        sys.argv[:] = [job["script"], *job["arguments"]]
        seed_all()
        # Nothing may slow what is timed.
        is_unwatched = session.backend == "cuda" or job["is_timed"]
        with contextlib.nullcontext() if is_unwatched else session.mode:
            start_script(job["script"], Path(job["script"]).read_bytes())
    except StopProfiling:
        return None, {}
    except MissingNameError:
        raise  # a patch's, not the script's
    except SystemExit as error:
        return None, {"message": f"it called sys.exit({error.code!r})"}
    except ModuleNotFoundError as error:
        return Status.MISSING_MODULE, {"message": error.name or str(error), **where(error)}
    except KeyboardInterrupt:
        return None, {"message": "it raised KeyboardInterrupt"}
    except KeyError as error:
        needs_torchrun = session.world.is_asked_by(error)
        status = Status.NEEDS_TORCHRUN if needs_torchrun else Status.CRASHED
        return status, {"message": f"KeyError: {error}", **_blame(error, session), **where(error)}
    except BaseException as error:  # noqa: BLE001 - whatever the script raises is reported to its owner
        if isinstance(error, SyntaxError) and is_of_a_file(error):
            return Status.SYNTAX_ERROR, {"is_script": False, **where(error), **syntax_details(error)}
        described = f"{type(error).__name__}: {error}".removesuffix(": ")
        return Status.CRASHED, {"message": described, **_blame(error, session), **where(error)}
    return None, {"message": "it came to its end"}


def _blame(error: BaseException, session: Session) -> Details:
    if session.backend != "fake":
        return {}
    checks = raises_itself(error) and session.mode.has_made_up
    return {"origin": origin_of(error), "checks_made_up": checks}


def where(error: BaseException) -> Details:
    """The traceback without our frames and those of runpy and torch."""
    import torch

    folders = (str(Path(file).parent) for file in (__file__, torch.__file__))
    hidden = (*folders, "<frozen", runpy.__file__, threading.__file__)
    shown = traceback.TracebackException.from_exception(error)
    pending = [shown]
    while pending:
        part = pending.pop()
        frames = [frame for frame in part.stack if not frame.filename.startswith(hidden)]
        part.stack = traceback.StackSummary.from_list(frames)
        pending += [other for other in (part.__cause__, part.__context__) if other is not None]
    stack = traceback.extract_tb(error.__traceback__)
    is_foreign = bool(stack) and is_library(stack[-1].filename)
    return {"traceback": "".join(shown.format()), **(own_line(stack) if is_foreign else {})}


def found(session: Session, iterations: Iterations, span: Iteration) -> Outcome:
    """Status and contents of the result for the iteration that was seen."""
    from .backend import tf32_flags
    from .recording.batches import at_nominal_batch

    span, notes = at_nominal_batch(span, iterations.nominal_batch, session.world.used or 1)
    status = Status.OK if span["operators"] else Status.NO_GPU_WORK
    return status, {
        **cast("Details", span),
        "backend": session.backend,
        "versions": {"torch": session.torch_version, "python": platform.python_version()},
        "precision": tf32_flags(),
        "warnings": [*session.all_warnings(), *iterations.warnings, *notes],
        "world_size": session.world.used,
        "is_sharded": session.world.is_sharded,
        "has_sparse_gradients": session.has_sparse_gradients,
    }


def _progress(job: ScriptJob, line: str) -> None:
    with Path(job["progress"]).open("a", encoding="utf-8") as out:
        out.write(line + "\n")
