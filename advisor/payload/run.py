"""Runs the script as ``__main__`` under the fake GPU and writes what was seen."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import runpy
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from .checking import unusable_torch
from .origin import origin_of, raises_itself
from .progress import SCRIPT, TORCH, Position, Teller
from .syntax import details as syntax_details
from .syntax import is_of_a_file, problem_of

FORMAT_VERSION = 1
# Room for the parent to take out secrets before it cuts as short as a person wants it.
_WORDS = ("message", "traceback", "warnings", "refused")
_MOST_CHARACTERS = 65_536
_MOST_TEXTS = 200


def run(job: dict[str, Any]) -> None:
    """Profile the job's script, write its result file, and leave the process."""
    status = "crashed"
    details: dict[str, Any] = {}
    try:
        status, details = _attempt(job)
    except BaseException as error:  # noqa: BLE001 - the parent must learn of our own bugs, too
        details = {"message": repr(error), "traceback": traceback.format_exc(), "internal": True}
    write_result(job, {"status": status, **details})
    leave()


def _attempt(job: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    script = Path(job["script"])
    problem = problem_of(script)
    if problem is not None:
        return problem[0], {"is_script": True, **problem[1]}
    teller = Teller(lambda line: _progress(job, line))
    teller.tell(TORCH)
    unusable = unusable_torch()
    if unusable is not None:
        return unusable
    from .torch_names import MissingNameError

    try:
        return _profile(job, teller)
    except MissingNameError as error:
        import torch

        return "strange_torch", {"message": str(error), "torch": str(torch.__version__)}


def _profile(job: dict[str, Any], teller: Teller) -> tuple[str, dict[str, Any]]:
    from .backend import End, NoCudaError, start_session
    from .real.measurement import Measurement
    from .recording.iteration import SPANS_WANTED, Iterations

    try:
        session = start_session(job)
    except NoCudaError as error:
        return "no_cuda", {"message": str(error)}

    def finish(span: dict[str, Any]) -> None:
        status, result = found(session, iterations, span)
        write_result(job, {"status": status, **result})
        session.stopper.stop()

    position = None if session.backend == "cuda" else Position(teller.tell, SPANS_WANTED)
    iterations = Iterations(session, lambda _: end.on_span(iterations), position=position)
    measurement = None
    if session.backend == "cuda":
        measurement = Measurement(session, job["timeline"], iterations.watch_modules)
    end = End(measurement, teller.tell, finish)
    iterations.install()
    iterations.start_span()
    teller.tell(SCRIPT)
    status, details = _run_script(job, session)
    if session.stopper.stopping:
        leave()
    return _ended(status, details, session, iterations)


def _ended(status: str, details: dict[str, Any], session: Any, iterations: Any) -> tuple[str, dict[str, Any]]:
    """What remains of a script that came to its end before enough was seen."""
    details = {
        **details,
        "backend": session.backend,
        "num_spans": iterations.num_spans,
        "fed_fake_data": session.fake_data is not None,
        "refused": list(session.refused),
        "num_processes": session.num_processes,
    }
    if status != "ended":
        return status, details
    if iterations.last is None or session.backend == "cuda":
        return "no_iteration", details
    first = ", set-up work included" if iterations.num_spans == 1 else ""
    session.warn(
        f"the script ended after {iterations.num_spans} iteration(s): the trace is of the last one{first}"
    )
    return found(session, iterations, iterations.last)


def _run_script(job: dict[str, Any], session: Any) -> tuple[str, dict[str, Any]]:
    from . import entry
    from .backend import watched
    from .stop import StopProfiling
    from .torch_names import MissingNameError

    try:
        sys.argv[:] = [job["script"], *job["arguments"]]
        with watched(session):
            entry.start(job["script"], Path(job["script"]).read_bytes())
    except StopProfiling:
        return "ended", {}
    except MissingNameError:
        raise  # a patch's, not the script's
    except SystemExit as error:
        return "ended", {"message": f"it called sys.exit({error.code!r})"}
    except ModuleNotFoundError as error:
        return "missing_module", {"message": error.name or str(error), **where(error)}
    except KeyboardInterrupt:
        return "ended", {"message": "it raised KeyboardInterrupt"}
    except KeyError as error:
        needs_torchrun = session.world.is_asked_by(error)
        status = "needs_torchrun" if needs_torchrun else "crashed"
        return status, {"message": f"KeyError: {error}", **_blame(error, session), **where(error)}
    except BaseException as error:  # noqa: BLE001 - whatever the script raises is told to its owner
        if isinstance(error, SyntaxError) and is_of_a_file(error):
            return "syntax_error", {"is_script": False, **syntax_details(error), **where(error)}
        described = f"{type(error).__name__}: {error}".removesuffix(": ")
        return "crashed", {"message": described, **_blame(error, session), **where(error)}
    return "ended", {"message": "it came to its end"}


def _blame(error: BaseException, session: Any) -> dict[str, Any]:
    if session.backend != "fake":
        return {}
    checks = raises_itself(error) and session.mode.has_made_up
    return {"origin": origin_of(error), "checks_made_up": checks}


def where(error: BaseException) -> dict[str, Any]:
    """The traceback without our frames and those of runpy and torch."""
    import torch

    hidden = (
        str(Path(__file__).parent),
        str(Path(torch.__file__).parent),
        "<frozen",
        runpy.__file__,
        threading.__file__,
    )
    shown = traceback.TracebackException.from_exception(error)
    pending: list[Any] = [shown]
    while pending:
        part = pending.pop()
        frames = [frame for frame in part.stack if not frame.filename.startswith(hidden)]
        part.stack = traceback.StackSummary.from_list(frames)
        pending += [other for other in (part.__cause__, part.__context__) if other is not None]
    return {"traceback": "".join(shown.format())}


def found(session: Any, iterations: Any, span: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Status and contents of the result for the iteration that was seen."""
    from .recording.nominal import at_nominal_batch
    from .recording.precision import tf32_flags

    span, notes = at_nominal_batch(span, iterations.nominal_batch, session.world.used or 1)
    status = "ok" if span["operators"] else "no_gpu_work"
    return status, {
        **span,
        "backend": session.backend,
        "versions": {"torch": session.torch_version, "python": platform.python_version()},
        "precision": tf32_flags(),
        "warnings": [*session.all_warnings(), *iterations.warnings, *notes],
        "world_size": session.world.used,
        "is_sharded": session.world.is_sharded,
    }


def _progress(job: dict[str, Any], line: str) -> None:
    with Path(job["progress"]).open("a", encoding="utf-8") as out:
        out.write(line + "\n")


def write_result(job: dict[str, Any], result: dict[str, Any]) -> None:
    """Put the result in its place whole or not at all."""
    target = Path(job["result"])
    temporary = target.with_suffix(".part")
    words = {key: _cut(result[key]) for key in _WORDS if result.get(key)}
    document = {"format_version": FORMAT_VERSION, **result, **words}
    temporary.write_text(json.dumps(document), encoding="utf-8")
    temporary.replace(target)


def _cut(words: Any) -> Any:
    """Both ends of a text: an exception's can be as long as a data set."""
    if isinstance(words, list):
        return [_cut(text) for text in words[:_MOST_TEXTS]]
    if len(words) <= _MOST_CHARACTERS:
        return words
    half = _MOST_CHARACTERS // 2
    return f"{words[:half]} [... cut ...] {words[-half:]}"


def leave() -> None:
    """End the process."""
    # Not sys.exit: exit handlers of the script would upload, save or wait.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)
