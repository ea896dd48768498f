"""``profile``: one run of the script in a child process, from its start to the Trace."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from advisor.errors import InputError
from advisor.gpus import resolve_gpu
from advisor.profile.environment import child_environment, redact, redact_arguments
from advisor.profile.failures import failure
from advisor.profile.interpreter import candidates
from advisor.profile.launch import Ending, Progress, run_child
from advisor.profile.recording import Recording, read_recording, trace_of
from advisor.profile.sandbox import check_sandbox, sandboxed, signalled
from advisor.types import Trace

DEFAULT_TIMEOUT_S = 300.0
# A pipe that broke, say, has nothing to do with the folder.
_UNUSABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOENT)
# A result needs no more.
_ROOM_BYTES = 2**20
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What the child is to do."""

    script: str
    arguments: tuple[str, ...]
    gpu: PretendedGpu
    skip_patches: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """How the child is held."""

    timeout_s: float
    sandbox: bool


def profile(
    script: Path,
    arguments: Sequence[str] = (),
    *,
    python: Path | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    backend: str = "fake",
    gpu: PretendedGpu | None = None,
    progress: Progress | None = None,
    sandbox: bool = False,
) -> Trace:
    """Run a training script up to its third optimizer step and describe one iteration.

    Args:
        script: the file that starts the training; it sees ``arguments`` as its own.
        arguments: the script's command line.
        python: the interpreter, by default the active virtual environment's, else this one.
        timeout_s: seconds after which the script is stopped.
        backend: ``fake`` needs no GPU.
        gpu: which GPU the script believes it has.
        progress: is told in words how far it is.
        sandbox: run the script in bubblewrap, where it can write nothing and has no network.

    Raises:
        InputError: no such script, not Python, no such interpreter, no torch in it, or no sandbox.
        ProfileError: the script failed or made no optimizer step.
    """
    if backend != "fake":
        raise InputError(f"unknown profiling backend {backend!r}: 'fake' is the one there is.")
    if not timeout_s > 0:
        raise InputError(f"the timeout must be more than 0 s, not {timeout_s!r}.")
    _check_script(script)
    if sandbox:
        check_sandbox()
    job = _Job(script=str(script), arguments=tuple(arguments), gpu=gpu or PretendedGpu())
    limits = _Limits(timeout_s=timeout_s, sandbox=sandbox)
    recording = _record(job, candidates(python, os.environ), limits, progress)
    return trace_of(recording, str(script), redact_arguments(arguments, os.environ))


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


def _record(job: _Job, interpreters: Sequence[Path], limits: _Limits, progress: Progress | None) -> Recording:
    """The recording by the first interpreter that has torch."""
    for position, interpreter in enumerate(interpreters):
        if progress is not None:
            progress(f"profiling {job.script} with {interpreter}")
        recording, ending = _attempt(job, interpreter, limits, progress)
        status = None if recording is None else recording["status"]
        if recording is not None and status == "ok":
            return recording
        if status == "no_torch" and position + 1 < len(interpreters):
            continue
        raise failure(
            recording,
            script=job.script,
            python=str(interpreter),
            returncode=ending.returncode,
            log=ending.log,
            timeout_s=limits.timeout_s,
        )
    raise InputError("no Python interpreter was found: name one that has torch with --python.")


def _attempt(
    job: _Job, interpreter: Path, limits: _Limits, progress: Progress | None
) -> tuple[Recording | None, Ending]:
    with _job_folder() as name:
        folder = Path(name)
        paths = {"result": str(folder / "result.json"), "progress": str(folder / "progress.txt")}
        temporary = folder / "tmp"
        temporary.mkdir()
        job_path = folder / "job.json"
        job_path.write_text(json.dumps({**asdict(job), **paths}), encoding="utf-8")
        command: list[str | Path] = [interpreter, _CHILD, job_path]
        ending = run_child(
            sandboxed(command, folder) if limits.sandbox else command,
            environment=child_environment(os.environ, temporary),
            log_path=folder / "log.txt",
            progress_path=Path(paths["progress"]),
            timeout_s=limits.timeout_s,
            progress=progress,
        )
        recording = read_recording(Path(paths["result"]))
        if recording is None and shutil.disk_usage(folder).free < _ROOM_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
    returncode = signalled(ending.returncode) if limits.sandbox else ending.returncode
    return _without_secrets(recording), Ending(returncode=returncode, log=redact(ending.log, os.environ))


@contextlib.contextmanager
def _job_folder() -> Iterator[str]:
    """A folder for everything of one run, removed after it."""
    try:
        with tempfile.TemporaryDirectory(prefix="advisor-profile-", ignore_cleanup_errors=True) as name:
            yield name
    except OSError as error:
        if error.errno not in _UNUSABLE:
            raise
        raise InputError(
            f"cannot use the temporary folder: {error}. Make room there, or name another one with the"
            " variable TMPDIR."
        ) from error


def _without_secrets(recording: Recording | None) -> Recording | None:
    if recording is None:
        return None
    shown = {key: redact(recording[key], os.environ) for key in ("message", "traceback")
             if isinstance(recording.get(key), str)}  # fmt: skip
    return {**recording, **shown}
