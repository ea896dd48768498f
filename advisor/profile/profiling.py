"""``profile``: a script, from its path to the Trace; ``profile_callable``: a function of this process.

A function cannot be sent to another interpreter, so this process is forked: the copy gets the fake GPU, runs
the function and ends; nothing of it is left here.
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, overload

from advisor.core.errors import GpuUnusableError, InputError, ProfileError, UnknownGpuError
from advisor.core.findings.about_traces import LengthUnknown, ProfiledWithoutGpu
from advisor.core.gpus import resolve_gpu
from advisor.core.limits import MAX_SAMPLES, MAX_WORLD, check_count
from advisor.core.redaction import redact_words
from advisor.core.values import Trace
from advisor.payload.child import die_with_the_parent, start
from advisor.payload.protocol import Counts, FakeSamples, RunPhase, SampleField, ScriptJob, Status
from advisor.profile.attempt import (
    DEFAULT_TIMEOUT_S,
    TEMPORARY_NAME,
    AttemptJob,
    ChildLimits,
    Progress,
    ScriptGpu,
    job_folder,
    record,
    written,
)
from advisor.profile.environment import TEMPORARY, candidates, check_backend
from advisor.profile.epoch import FakeField
from advisor.profile.failures import WITHOUT_IT
from advisor.profile.recording import ChildRecording, read_recording, trace_of
from advisor.profile.sandbox import check_sandbox

# Where a profiling run is, as the child process gives it.
#
# The child runs foreign code, which can write to the same place: what is not one of our own short lines is
# ignored.

_MOST_CHARACTERS = 200
_MOST = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressEvent:
    """One message of the child."""

    phase: RunPhase
    step: int | None = None
    """The optimizer step that is under way or, in an evaluation, was made last."""
    num_steps: int | None = None
    """How many it is going to make."""
    done: int | None = None
    """Evaluated batches, or micro-steps of this optimizer step."""
    total: int | None = None
    """Of how many, if known."""


_COUNTS = tuple(Counts.__annotations__)


def parse_event(line: str) -> ProgressEvent | None:
    """The event that a line tells, None for any other line.

    >>> parse_event('{"phase": "evaluation", "done": 120}')
    ProgressEvent(phase=<RunPhase.EVALUATION: 'evaluation'>, step=None, num_steps=None, done=120, total=None)
    >>> parse_event('{"phase": "mining", "done": 120}') is None
    True
    """
    if len(line) > _MOST_CHARACTERS:
        return None
    try:
        message = json.loads(line)
        phase = RunPhase(message["phase"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    counts = {name: message[name] for name in _COUNTS if name in message}
    if not all(type(count) is int and 0 < count <= _MOST for count in counts.values()):
        return None
    return ProgressEvent(phase=phase, **counts)


# Some of them run as Python without an error, and do nothing.
_MOST_SCRIPT_BYTES = 16 * 2**20
_NO_SCRIPTS = (
    ".bin", ".cfg", ".ckpt", ".csv", ".gz", ".h5", ".html", ".ini", ".json", ".jsonl", ".log", ".md", ".npy",
    ".npz", ".onnx", ".parquet", ".pkl", ".pt", ".pth", ".rst", ".safetensors", ".sh", ".tar", ".toml",
    ".tsv", ".txt", ".xml", ".yaml", ".yml", ".zip",
)  # fmt: skip


def pretend(name: str) -> ScriptGpu:
    """The facts of a CUDA GPU of the catalog, as a script asks for them.

    Raises:
        UnknownGpuError: no such GPU, or a family.
        InputError: the GPU is no CUDA device.

    >>> pretend("T4").compute_capability
    '7.5'
    """
    spec = resolve_gpu(name)
    if spec.vendor != "NVIDIA":
        raise InputError(f"{spec.name} is no CUDA GPU: a script can see only those.")
    return ScriptGpu(
        name=f"NVIDIA {spec.name}",
        compute_capability=spec.compute_capability,
        num_sms=spec.num_sms,
        memory_bytes=spec.memory_bytes,
    )


def profile(
    script: str | Path, arguments: Sequence[str] = (), *, python: str | Path | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S, backend: str = "fake", gpu: ScriptGpu | None = None,
    fake_data: Sequence[FakeField] = (), num_samples: int | None = None, world_size: int | None = None,
    sandbox: bool = False, sandbox_read: Sequence[Path] = (), env: Sequence[str] = (),
    variables: Mapping[str, str] | None = None, memory_bytes: int | None = None,
    progress: Progress | None = None,
) -> Trace:  # fmt: skip
    """Run a training script for a few optimizer steps and describe one iteration.

    Args:
        script: the file that starts the training; it sees ``arguments`` as its own.
        python: the interpreter, by default the active virtual environment's, else this one.
        timeout_s: seconds after which the script is stopped.
        backend: ``fake`` needs no GPU; ``cuda`` measures on this machine's GPU; ``auto`` is ``cuda``
            where it can be used and else ``fake``; ``cpu`` runs everything for real on the CPU.
        gpu: which GPU the script believes it has, for the fake backend.
        fake_data: what one sample looks like, to feed such samples instead of the script's data.
        num_samples: how many a missing data set has.
        world_size: processes, of one GPU each, that the script believes to be rank 0 of, as if torchrun
            had started it; None: by itself, unless it needs torchrun, then 1. For the fake backend.
        sandbox: run the script in bubblewrap, where it can write nothing and has no network.
        sandbox_read: files and folders that it reads there besides what every script does (docs/sandbox.md).
        env: names of variables that the script gets beside those that training needs; secrets only so.
        variables: of the environment, which the command that starts the script sets.
        memory_bytes: of main memory that the script may hold, by default 80 % of what is free.
        progress: gets each line that the run tells; ``advisor.profile.profiling.parse_event`` reads it.

    Raises:
        InputError: no such script, backend or interpreter, not Python, no torch in it, or no sandbox.
        GpuUnusableError: ``cuda`` was asked for and cannot be used.
        ProfileError: the script failed or made no optimizer step.
    """
    counts = ("num_samples", num_samples, MAX_SAMPLES), ("world_size", world_size, MAX_WORLD)
    for name, count, most in counts:
        if count is not None:
            check_count(name, count, most=most)
    script, python = Path(script), None if python is None else Path(python)
    _check_script(script)
    if sandbox:
        check_sandbox()
    job = AttemptJob(
        script=str(script),
        arguments=tuple(arguments),
        backend=backend,
        gpu=gpu or ScriptGpu(),
        fake_data=_fed(fake_data, num_samples),
        world_size=world_size,
        handed_on=tuple(env),
        variables=variables or {},
        memory_bytes=memory_bytes,
    )
    limits = ChildLimits(timeout_s=timeout_s, sandbox=sandbox, sandbox_read=tuple(sandbox_read))
    return _trace_somewhere(job, candidates(python, os.environ), limits, progress)


# Importing and set-up, and the seconds in which steps are timed.
MOST_CPU_S = 60.0


def time_on_cpu(
    script: Path, arguments: Sequence[str], *, python: Path | None, timeout_s: float,
    fake_data: Sequence[FakeField], num_samples: int | None, sandbox: bool, sandbox_read: Sequence[Path],
    env: Sequence[str], variables: Mapping[str, str],
) -> tuple[float, ...]:  # fmt: skip
    """Seconds of some steps of a script that sees no GPU; arguments as of :func:`profile`.

    Raises InputError, ProfileError: it does not run so, or no step ends within a minute.
    """
    job = AttemptJob(
        script=str(script), arguments=tuple(arguments), backend="cpu", is_timed=True, gpu=ScriptGpu(),
        fake_data=_fed(fake_data, num_samples), handed_on=tuple(env), variables=variables,
    )  # fmt: skip
    limits = ChildLimits(
        timeout_s=min(timeout_s, MOST_CPU_S), sandbox=sandbox, sandbox_read=tuple(sandbox_read)
    )
    recording, _ = record(job, candidates(python, os.environ), limits, None)
    times_s = tuple(recording["step_times_s"])
    if not times_s or not all(time_s > 0 for time_s in times_s):
        raise ProfileError(f"no step of {str(script)!r} was timed on the CPU")
    return times_s


def _trace_somewhere(
    job: AttemptJob, interpreters: Sequence[Path], limits: ChildLimits, progress: Progress | None
) -> Trace:
    """On the backend that is asked for; by ``auto`` without a GPU where there is none to use."""
    try:
        check_backend(job.backend, os.environ)
        return _trace(job, interpreters, limits, progress)
    except GpuUnusableError as error:
        if job.backend != "auto":
            raise
        trace = _trace(replace(job, backend="fake"), interpreters, limits, progress)
        reason = str(error.args[0]).partition("\n")[0]
        return replace(trace, warnings=(ProfiledWithoutGpu(reason=reason), *trace.warnings))


def _trace(
    job: AttemptJob, interpreters: Sequence[Path], limits: ChildLimits, progress: Progress | None
) -> Trace:
    recording, timeline = record(job, interpreters, limits, progress)
    arguments = redact_words(job.arguments, os.environ)
    try:
        return trace_of(recording, job.script, arguments, timeline)
    except UnknownGpuError as error:
        raise GpuUnusableError(str(error), WITHOUT_IT) from error


def _fed(fields: Sequence[FakeField], num_samples: int | None) -> FakeSamples | None:
    if not fields:
        if num_samples is not None:
            raise InputError("`profile.samples` counts fake samples: give `profile.fake_data` as well.")
        return None
    described: list[SampleField] = [
        {"name": field.name, "shape": list(field.shape), "kind": field.kind} for field in fields
    ]
    return {"fields": described, "num_samples": num_samples}


def _check_script(script: Path) -> None:
    if not script.exists():
        raise InputError(
            f"no script at {str(script)!r}: give the path of the .py file that starts the training."
        )
    if not script.is_file():
        what = "a folder" if script.is_dir() else "a pipe or a device"
        raise InputError(f"{str(script)!r} is {what}: give the .py file that starts the training.")
    if script.stat().st_size > _MOST_SCRIPT_BYTES:
        raise InputError(
            f"{str(script)!r} is larger than {_MOST_SCRIPT_BYTES >> 20} MiB: give the .py file that starts"
            " the training."
        )
    if script.suffix == ".ipynb":
        raise InputError(
            f"{str(script)!r} is a notebook: the command line takes it as it is (advisor recommend"
            " notebook.ipynb); here, convert it first with jupyter nbconvert --to script."
        )
    if script.suffix.lower() in _NO_SCRIPTS:
        raise InputError(
            f"{str(script)!r} is not a Python script by its name: give the .py file that starts the training."
        )
    if not os.access(script, os.R_OK):
        raise InputError(f"cannot read {str(script)!r}: check its permissions.")


State = TypeVar("State")
_POLL_S = 0.01


@overload
def profile_callable(
    step: Callable[[], object], *, setup: None = None, batch_size: int | None = None,
    gpu: ScriptGpu | None = None, timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Trace: ...  # fmt: skip


@overload
def profile_callable(
    step: Callable[[State], object], *, setup: Callable[[], State], batch_size: int | None = None,
    gpu: ScriptGpu | None = None, timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Trace: ...  # fmt: skip


def profile_callable(
    step: Callable[..., object], *, setup: Callable[[], object] | None = None, batch_size: int | None = None,
    gpu: ScriptGpu | None = None, timeout_s: float = DEFAULT_TIMEOUT_S,
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
    with job_folder() as folder:
        job = AttemptJob(script=name, arguments=(), backend="fake", gpu=gpu or ScriptGpu())
        whole = written(job, folder, module="run")
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
    tempfile.tempdir = str(Path(job["result"]).with_name(TEMPORARY_NAME))
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
