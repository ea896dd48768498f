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
    from . import lazy_dynamo, patches
    from .gpu import PretendedGpu
    from .iteration import SPANS_WANTED, Iterations

    lazy_dynamo.install()
    from .session import Session

    session = Session(PretendedGpu.from_job(job["gpu"]))
    patches.install(session, skip=frozenset(job.get("skip_patches", ())))

    def on_span(count: int) -> None:
        _progress(job, f"step {count} of {SPANS_WANTED}")
        if iterations.is_steady:
            _write(job, {"status": "ok", **_result(session, iterations)})
            session.stopper.stop()

    iterations = Iterations(session, on_span)
    iterations.install()
    iterations.start_span()
    _progress(job, "script started")
    status, details = _run_script(job, session)
    if session.stopper.stopping:
        _leave()
    details["refused"] = list(session.refused)
    if status == "ended" and iterations.last is not None:
        session.warn(
            f"the script made only {iterations.num_spans} optimizer step(s): the trace is of the"
            " last one, set-up work included"
        )
        return "ok", _result(session, iterations)
    return ("no_iteration" if status == "ended" else status), details


def _run_script(job: dict[str, Any], session: Any) -> tuple[str, dict[str, Any]]:
    from .stop import StopProfiling

    try:
        with session.mode, _as_main(job):
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


def _result(session: Any, iterations: Any) -> dict[str, Any]:
    import torch

    return {
        **iterations.last,
        "versions": {"torch": str(torch.__version__), "python": platform.python_version()},
        "precision": _precision(torch),
        "warnings": session.all_warnings(),
        "collectives": [],
    }


def _precision(torch: Any) -> dict[str, Any]:
    return {
        "tf32_matmul": _tf32_matmul(torch),
        "tf32_cudnn": bool(torch.backends.cudnn.allow_tf32),
    }


def _tf32_matmul(torch: Any) -> bool:
    return bool(torch.get_float32_matmul_precision() != "highest")


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
