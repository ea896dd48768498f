"""Runs the script as ``__main__`` under the fake GPU and writes what was seen."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import runpy
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMAT_VERSION = 1


def run(job: dict[str, Any]) -> None:
    """Profile the job's script, write its result file, and leave the process."""
    status = "crashed"
    details: dict[str, Any] = {}
    try:
        status, details = _attempt(job)
    except BaseException as error:  # noqa: BLE001 - the parent must learn of our own bugs, too
        details = {"message": repr(error), "traceback": traceback.format_exc(), "internal": True}
    _write(job, {"status": status, **details})
    _leave()


def _attempt(job: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    script = Path(job["script"])
    try:
        compile(script.read_bytes(), str(script), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return "not_python", {"message": str(error)}
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name == "torch":
            return "no_torch", {"message": str(error)}
        return "broken_torch", {"message": str(error)}
    except Exception as error:  # noqa: BLE001 - a broken installation can raise anything
        return "broken_torch", {"message": f"{type(error).__name__}: {error}"}
    if not hasattr(torch, "accelerator"):
        return "old_torch", {"message": str(torch.__version__)}
    return _profile(job)


def _profile(job: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    backend = _backend(job["backend"])
    if backend is None:
        return "no_cuda", {"message": _why_no_cuda()}
    if backend == "fake":
        from . import lazy_dynamo

        lazy_dynamo.install()
    from . import patches
    from .gpu import PretendedGpu
    from .iteration import Iterations
    from .precision import watch_autocast
    from .session import Session

    session = Session(PretendedGpu.from_job(job["gpu"]), backend)
    patches.install(session, skip=frozenset(job.get("skip_patches", ())))
    if backend != "fake":
        watch_autocast(session)
    end = _End(job, session)
    iterations = Iterations(session, lambda _: end.on_span(iterations))
    iterations.install()
    iterations.start_span()
    _progress(job, "script started")
    status, details = _run_script(job, session)
    if session.stopper.stopping:
        _leave()
    if status == "ended" and iterations.last is not None and backend != "cuda":
        session.warn(
            f"the script made only {iterations.num_spans} optimizer step(s): the trace is of the"
            " last one, set-up work included"
        )
        return "ok", _result(session, iterations.last)
    details = {**details, "num_spans": iterations.num_spans, "backend": backend}
    return ("no_iteration" if status == "ended" else status), details


def _backend(wanted: str) -> str | None:
    """What to run on; None if CUDA is wanted and not there."""
    import torch

    has_cuda = wanted in ("cuda", "auto") and torch.cuda.is_available()
    if wanted == "auto":
        return "cuda" if has_cuda else "fake"
    return wanted if wanted != "cuda" or has_cuda else None


def _why_no_cuda() -> str:
    import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} is a build without CUDA"
    return f"torch {torch.__version__} finds no CUDA device"


class _End:
    """Ends the run as soon as what the backend needs is known."""

    def __init__(self, job: dict[str, Any], session: Any) -> None:
        from .iteration import SPANS_WANTED
        from .real_gpu import Measurement

        self._job = job
        self._session = session
        self._measurement = Measurement(session, job["timeline"]) if session.backend == "cuda" else None
        self._wanted = SPANS_WANTED if self._measurement is None else self._measurement.num_spans

    def on_span(self, iterations: Any) -> None:
        """Called at the end of each span."""
        measurement = self._measurement
        _progress(self._job, f"step {iterations.num_spans} of {self._wanted}")
        if measurement is not None:
            measurement.end_span(iterations.num_spans, iterations.last)
            if measurement.result is not None:
                self._stop({**iterations.last, **measurement.result})
        elif iterations.is_steady:
            self._stop(iterations.last)

    def _stop(self, span: dict[str, Any]) -> None:
        _write(self._job, {"status": "ok", **_result(self._session, span)})
        self._session.stopper.stop()


def _run_script(job: dict[str, Any], session: Any) -> tuple[str, dict[str, Any]]:
    from .stop import StopProfiling

    try:
        with _watched(session), _as_main(job):
            runpy.run_path(job["script"], run_name="__main__")
    except StopProfiling:
        return "ended", {}
    except SystemExit as error:
        return "ended", {"message": f"it called sys.exit({error.code!r})"}
    except ModuleNotFoundError as error:
        return "missing_module", {"message": error.name or str(error), **_where(error)}
    except KeyboardInterrupt:
        return "ended", {"message": "it raised KeyboardInterrupt"}
    except BaseException as error:  # noqa: BLE001 - whatever the script raises is told to its owner
        return "crashed", {"message": f"{type(error).__name__}: {error}", **_where(error)}
    return "ended", {"message": "it came to its end"}


def _watched(session: Any) -> contextlib.AbstractContextManager[Any]:
    # On a real GPU only one span is watched: until then nothing may slow the script.
    return contextlib.nullcontext() if session.backend == "cuda" else session.mode


@contextlib.contextmanager
def _as_main(job: dict[str, Any]) -> Iterator[None]:
    sys.argv[:] = [job["script"], *job["arguments"]]
    sys.path.insert(0, str(Path(job["script"]).resolve().parent))
    yield


def _where(error: BaseException) -> dict[str, Any]:
    """The traceback without our frames and those of runpy and torch."""
    import torch

    hidden = (
        str(Path(__file__).parent),
        str(Path(torch.__file__).parent),
        "<frozen",
        runpy.__file__,
    )
    shown = traceback.TracebackException.from_exception(error)
    pending: list[Any] = [shown]
    while pending:
        part = pending.pop()
        frames = [frame for frame in part.stack if not frame.filename.startswith(hidden)]
        part.stack = traceback.StackSummary.from_list(frames)
        pending += [other for other in (part.__cause__, part.__context__) if other is not None]
    return {"traceback": "".join(shown.format())}


def _result(session: Any, span: dict[str, Any]) -> dict[str, Any]:
    import torch

    from .precision import tf32_flags

    return {
        **span,
        "backend": session.backend,
        "versions": {"torch": str(torch.__version__), "python": platform.python_version()},
        "precision": tf32_flags(),
        "warnings": session.all_warnings(),
        "collectives": [],
    }


def _progress(job: dict[str, Any], line: str) -> None:
    with Path(job["progress"]).open("a", encoding="utf-8") as out:
        out.write(line + "\n")


def _write(job: dict[str, Any], result: dict[str, Any]) -> None:
    target = Path(job["result"])
    temporary = target.with_suffix(".part")
    temporary.write_text(json.dumps({"format_version": FORMAT_VERSION, **result}), encoding="utf-8")
    temporary.replace(target)


def _leave() -> None:
    # Not sys.exit: exit handlers of the script would upload, save or wait.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)
