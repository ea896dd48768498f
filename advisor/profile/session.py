"""``profile``: one run of the script in a child process, from its start to the Trace."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from advisor.errors import GpuUnusableError, InputError
from advisor.gpus import resolve_gpu
from advisor.profile.backends import check_backend
from advisor.profile.environment import child_environment, redact, redact_arguments
from advisor.profile.failures import failure
from advisor.profile.fake_data import FakeField
from advisor.profile.interpreter import candidates
from advisor.profile.launch import Ending, Progress, run_child
from advisor.profile.recording import Recording, read_recording, trace_of
from advisor.profile.timeline import Timeline, read_timeline
from advisor.types import Trace

DEFAULT_TIMEOUT_S = 300.0
_CHILD = Path(__file__).with_name("child.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class PretendedGpu:
    """The GPU that the script believes it has; a data-centre GPU that can do all precisions."""

    name: str = "NVIDIA A100-SXM4-80GB"
    compute_capability: str = "8.0"
    num_sms: int = 108
    memory_bytes: int = 85_097_971_712


def pretend(name: str) -> PretendedGpu:
    """The facts of a CUDA GPU of the catalog, as a script asks for them.

    Raises:
        UnknownGpuError: no such GPU, or a family.
        InputError: the GPU is no CUDA device.

    >>> pretend("T4").compute_capability
    '7.5'
    """
    spec = resolve_gpu(name)
    if spec.vendor != "NVIDIA":
        raise InputError(f"{spec.name} is no CUDA GPU: a script can be told only of those.")
    return PretendedGpu(
        name=f"NVIDIA {spec.name}",
        compute_capability=spec.compute_capability,
        num_sms=spec.num_sms,
        memory_bytes=spec.memory_bytes,
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """What the child is to do."""

    script: str
    arguments: tuple[str, ...]
    backend: str
    gpu: PretendedGpu
    fake_data: Mapping[str, object] | None = None
    world_size: int | None = None
    skip_patches: tuple[str, ...] = field(default=())


def profile(
    script: Path,
    arguments: Sequence[str] = (),
    *,
    python: Path | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    backend: str = "fake",
    gpu: PretendedGpu | None = None,
    fake_data: Sequence[FakeField] = (),
    num_samples: int | None = None,
    world_size: int | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Run a training script for a few optimizer steps and describe one iteration.

    Args:
        script: the file that starts the training; it sees ``arguments`` as its own.
        arguments: the script's command line.
        python: the interpreter, by default the active virtual environment's, else this one.
        timeout_s: seconds after which the script is stopped.
        backend: ``fake`` needs no GPU; ``cuda`` measures on this machine's GPU; ``auto`` is ``cuda``
            where it can be used and else ``fake``; ``cpu`` runs everything for real on the CPU.
        gpu: which GPU the script believes it has, for the fake backend.
        fake_data: what one sample looks like, to feed such samples instead of the script's data.
        num_samples: how many a missing data set has.
        world_size: processes, of one GPU each, that the script believes to be rank 0 of, as if torchrun
            had started it; None: by itself, unless it needs torchrun, then 1.
        progress: is told in words how far it is.

    Raises:
        InputError: no such script, backend or interpreter, not Python, or no torch in it.
        GpuUnusableError: ``cuda`` was asked for and cannot be used.
        ProfileError: the script failed or made no optimizer step.
    """
    if not timeout_s > 0:
        raise InputError(f"the timeout must be more than 0 s, not {timeout_s!r}.")
    if world_size is not None and world_size < 1:
        raise InputError(f"the world must have 1 process or more, not {world_size!r}.")
    _check_script(script)
    job = _Job(
        str(script),
        tuple(arguments),
        backend,
        gpu or PretendedGpu(),
        _fed(fake_data, num_samples),
        world_size,
    )
    interpreters = candidates(python, os.environ)
    try:
        check_backend(backend, os.environ)
        return _trace(job, interpreters, timeout_s, progress)
    except GpuUnusableError as error:
        if backend != "auto":
            raise
        trace = _trace(replace(job, backend="fake"), interpreters, timeout_s, progress)
        return replace(trace, warnings=(f"profiled without the GPU: {error}", *trace.warnings))


def _trace(job: _Job, interpreters: Sequence[Path], timeout_s: float, progress: Progress | None) -> Trace:
    recording, timeline = _record(job, interpreters, timeout_s, progress)
    return trace_of(recording, job.script, redact_arguments(job.arguments, os.environ), timeline)


def _fed(fields: Sequence[FakeField], num_samples: int | None) -> Mapping[str, object] | None:
    if not fields:
        if num_samples is not None:
            raise InputError("--samples counts fake samples: give --fake-data as well.")
        return None
    return {"fields": [asdict(field) for field in fields], "num_samples": num_samples}


def _check_script(script: Path) -> None:
    if not script.exists():
        raise InputError(
            f"no script at {str(script)!r}: give the path of the .py file that starts the training."
        )
    if not script.is_file():
        raise InputError(f"{str(script)!r} is a folder: give the .py file that starts the training.")
    if script.suffix == ".ipynb":
        raise InputError(
            f"{str(script)!r} is a notebook, not a script: convert it first with"
            " jupyter nbconvert --to script."
        )
    if not os.access(script, os.R_OK):
        raise InputError(f"cannot read {str(script)!r}: check its permissions.")


def _record(
    job: _Job, interpreters: Sequence[Path], timeout_s: float, progress: Progress | None
) -> tuple[Recording, Timeline | None]:
    """What the first interpreter that has torch recorded."""
    for position, interpreter in enumerate(interpreters):
        if progress is not None:
            progress(f"profiling {job.script} with {interpreter}")
        recording, timeline, ending = _attempt(job, interpreter, timeout_s, progress)
        status = None if recording is None else recording["status"]
        if recording is not None and status == "ok":
            return recording, timeline
        if status == "needs_torchrun":
            return _record(replace(job, world_size=1), [interpreter], timeout_s, progress)
        if status == "no_torch" and position + 1 < len(interpreters):
            continue
        raise failure(
            recording,
            script=job.script,
            python=str(interpreter),
            returncode=ending.returncode,
            log=ending.log,
            timeout_s=timeout_s,
        )
    raise InputError("no Python interpreter was found: name one that has torch with --python.")


def _attempt(
    job: _Job, interpreter: Path, timeout_s: float, progress: Progress | None
) -> tuple[Recording | None, Timeline | None, Ending]:
    with tempfile.TemporaryDirectory(prefix="advisor-profile-") as name:
        folder = Path(name)
        files = {"result": "result.json", "progress": "progress.txt", "timeline": "timeline.json"}
        paths = {key: str(folder / file) for key, file in files.items()}
        job_path = folder / "job.json"
        job_path.write_text(json.dumps({**asdict(job), **paths}), encoding="utf-8")
        ending = run_child(
            [interpreter, _CHILD, job_path],
            environment=child_environment(os.environ, hides_gpus=job.backend == "cpu")
            # Builds that are cut off leave a lock behind, on which the next one waits for ever.
            | {"TORCH_EXTENSIONS_DIR": str(folder / "extensions")},
            log_path=folder / "log.txt",
            progress_path=Path(paths["progress"]),
            timeout_s=timeout_s,
            progress=progress,
        )
        recording = read_recording(Path(paths["result"]))
        has_timeline = recording is not None and "iteration_s" in recording
        timeline = read_timeline(Path(paths["timeline"])) if has_timeline else None
    log = redact(ending.log, os.environ)
    return _without_secrets(recording), timeline, replace(ending, log=log)


def _without_secrets(recording: Recording | None) -> Recording | None:
    if recording is None:
        return None
    shown = {key: redact(recording[key], os.environ) for key in ("message", "traceback")
             if isinstance(recording.get(key), str)}  # fmt: skip
    return {**recording, **shown}
