"""Measures a grid of cases in a child process, and keeps each result in a file as soon as it is there."""

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from advisor.core.devices import device_state
from advisor.core.errors import (
    GpuUnusableError,
    InputError,
    ProfileError,
    RecordingError,
    UnknownGpuError,
    did_you_mean,
)
from advisor.core.gpus import resolve_gpu
from advisor.core.redaction import redact_with
from advisor.core.values import Precision
from advisor.formats import recording_files
from advisor.formats.foreign_files import is_gzip
from advisor.operators.case import Call, Caps, Case, call, tensor
from advisor.operators.registry import rows
from advisor.payload import protocol
from advisor.payload.protocol import Result, Status
from advisor.profile import environment
from advisor.profile.attempt import CHILD, TEMPORARY_NAME, ChildEnding, job_folder, run_child
from advisor.profile.failures import log_tail, torch_problem
from advisor.profile.recording import operators_of
from advisor.profile.recording import read_recording as read_result

# The grid of cases: every family at each point of its sequence, point after point.
#
# A smaller grid is the beginning of a larger one, so what a quick recording holds is not measured again.

# 0.4 TFLOP take 0.1 s on the slowest GPU of the catalog that anybody trains on; 1 GiB leaves room on 4 GB.
_CAPS = {"cuda": Caps(flops=4 * 10**11, num_bytes=2**30), "cpu": Caps(flops=10**7, num_bytes=2**19)}


class Extent(StrEnum):
    """How much is measured."""

    QUICK = "quick"
    DEFAULT = "default"
    FULL = "full"


_NUM_POINTS = {Extent.QUICK: 2, Extent.DEFAULT: 20, Extent.FULL: 90}


def grid(extent: Extent, *, only: Sequence[str] = (), backend: str = "cuda") -> tuple[Case, ...]:
    """All cases, each once.

    Args:
        extent: some 170, 1,700 or 7,800 cases.
        only: families, all if there is none.
        backend: ``cuda``, or ``cpu`` for calls that a CPU does in a moment.

    Raises InputError: no such family.

    >>> len(grid(Extent.QUICK, only=["bmm"]))
    8
    """
    generators = rows().cases
    for family in only:
        if family not in generators:
            raise InputError(
                f"`only` takes no family {family!r}: choose from {', '.join(generators)}."
                + did_you_mean(family, generators)
            )
    caps = _CAPS[backend]
    cases = [
        case
        for index in range(_NUM_POINTS[extent])
        for family, generate in generators.items()
        if not only or family in only
        for case in generate(index, caps)
    ]
    return tuple({case.key: case for case in cases}.values())


def calibration_kernels() -> tuple[Case, ...]:
    """A few large kernels for each constant, for ``advisor calibrate``; a device skips what it cannot do."""
    return tuple(case for family in rows().families for case in family.calibration_cases())


# What the measuring process tells, line by line, into the recording's file.


class Keeper:
    """The file, and which cases it lacks.

    Args:
        path: of the recording; one that is there is continued.
        progress: called after each case with how many are done of how many.

    Raises RecordingError: there is something else at ``path``, or a recording of another kind of device.
    """

    def __init__(
        self, path: Path, cases: Sequence[Case], backend: str, progress: Callable[[int, int], None] | None
    ) -> None:
        self._path = path
        self._backend = backend
        self._progress = progress
        self._total = len(cases)
        existing = _existing(path, backend)
        self._header = existing.header if existing else None
        done = existing.cases if existing else frozenset[str]()
        self.missing = {case.key: case for case in cases}
        """The cases to do by their keys, in order."""
        for key in done & self.missing.keys():
            del self.missing[key]
        if self._header is not None and self.missing and is_gzip(path):
            raise RecordingError(
                f"{str(path)!r} is gzipped and not complete, and nothing can be added to it: gunzip it"
                " first, or choose another file with `out`."
            )
        self.has_device = False
        """The process reported its device, so that it can be used in principle."""
        self._tell()

    def take(self, line: protocol.MeasuringLine) -> None:
        """Keep what one line tells.

        Raises RecordingError: the device is not the recording's, or the file cannot be written.
        """
        if "device" in line:
            self._meet(line["device"])
        elif "reference_s" in line:
            recording_files.append_entry(self._path, line["reference_s"])
        else:
            self._done(line["case"], _entry_of(line))

    def give_up_next(self, reason: str) -> None:
        """Leave out the case that was under way when the process ended, if any was."""
        for key in list(self.missing)[:1]:
            self._done(key, recording_files.Skipped(case=key, reason=reason))

    def _done(self, key: str, entry: recording_files.Entry) -> None:
        recording_files.append_entry(self._path, entry)
        self.missing.pop(key, None)
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._total - len(self.missing), self._total)

    def _meet(self, device: protocol.MeasuringDevice) -> None:
        self.has_device = True
        header = header_of(device, self._backend)
        if self._header is None:
            recording_files.start_recording(self._path, header)
            self._header = header
            return
        _check_same(self._header, header, self._path)
        recording_files.drop_half_line(self._path)


def header_of(device: protocol.MeasuringDevice, backend: str) -> recording_files.Header:
    """What a recording says of a device that reported itself, and nvidia-smi of it."""
    state = device_state(environment.first_visible(os.environ) if backend == "cuda" else "")
    known = None
    with contextlib.suppress(UnknownGpuError):
        known = resolve_gpu(device["name"]).name if backend == "cuda" else None
    return recording_files.Header(
        backend=backend,
        device_name=device["name"],
        gpu=known,
        compute_capability=device["compute_capability"],
        versions={**device["versions"], "driver": state.driver},
        sm_clock_hz=state.sm_clock_hz,
        max_sm_clock_hz=state.max_sm_clock_hz,
        power_limit_w=state.power_limit_w,
        recorded_on=datetime.now(UTC).date().isoformat(),
    )


def _existing(path: Path, backend: str) -> recording_files.Recording | None:
    if not path.exists():
        if not path.parent.is_dir():
            raise RecordingError(f"there is no folder {str(path.parent)!r} for the recording: make it first.")
        if path.suffix == ".gz":
            raise RecordingError(
                f"a recording is written line by line and cannot be zipped meanwhile: name it"
                f" {str(path.with_suffix(''))!r}, and run gzip afterwards; zipped ones can be read."
            )
        return None
    if path.is_dir():
        example = str(path / "kernels.jsonl")
        raise RecordingError(f"{str(path)!r} is a folder: name a file in it with `out`, such as {example!r}.")
    # Devices have no end to read to, and pipes nothing to continue.
    if not path.is_file():
        raise RecordingError(f"{str(path)!r} is no file that can be kept: choose another with `out`.")
    recording = recording_files.read_recording(path)
    if recording.header.backend != backend:
        raise RecordingError(
            f"{str(path)!r} is a recording of the backend {recording.header.backend}, not {backend}:"
            " choose another file with `out`."
        )
    return recording


def _check_same(kept: recording_files.Header, new: recording_files.Header, path: Path) -> None:
    facts: list[tuple[str, str | None, str | None]] = [("device", kept.device_name, new.device_name)]
    facts += [(name, kept.versions.get(name), new.versions[name]) for name in ("torch", "cuda", "cudnn")
              if name in new.versions]  # fmt: skip
    for name, before, now in facts:
        if before != now:
            raise RecordingError(
                f"{str(path)!r} was recorded with {name} {before}, and this is {name} {now}: times of the two"
                " do not belong together. Choose another file with `out`."
            )


def _entry_of(line: protocol.MeasuredLine | protocol.SkippedLine) -> recording_files.Entry:
    if "reason" in line:
        return recording_files.Skipped(case=line["case"], reason=line["reason"])
    (op,), _ = operators_of([line["operator"]])
    return recording_files.Measurement(
        case=line["case"], op=replace(op, measured_s=line["time_s"]),
        precision=Precision(**line["precision"]), spread=line["spread"], num_samples=line["num_samples"],
    )  # fmt: skip


# No case takes as long; a device that hangs does.
STALL_S = 600.0
# So often may a kernel take its process with it.
MOST_LOSSES = 10
_WEEK_S = 7 * 86400.0
_REFERENCE_SIDE = {"cuda": 4096, "cpu": 256}

# Called after each case with how many are done of how many.
Progress = Callable[[int, int], None]


def measure(
    cases: Sequence[Case], path: Path, *, backend: str = "cuda", python: Path | None = None,
    progress: Progress | None = None,
) -> recording_files.Recording:  # fmt: skip
    """Measure what the file at ``path`` does not hold yet, and return all that it holds then.

    Args:
        cases: of ``advisor.measure``.
        path: a recording that is begun or continued; kept whatever happens.
        backend: ``cuda``, or ``cpu`` to try things out.
        python: the interpreter, by default the active virtual environment's, else this one.
        progress: called with how far it is.

    Raises:
        InputError: no such interpreter, or no torch in it.
        RecordingError: the file is another's, of another device, or cannot be written.
        GpuUnusableError: there is no GPU, others work on it, or its memory is full.
        ProfileError: the measuring process failed.
        KeyboardInterrupt: passed on; what was measured is in the file.
    """
    keeper = Keeper(path, cases, backend, progress)
    busy = environment.why_first_is_busy(os.environ) if keeper.missing and backend == "cuda" else None
    if busy is not None:
        raise GpuUnusableError(
            f"{busy}: times would be wrong. Wait until it is free, or choose another with"
            " CUDA_VISIBLE_DEVICES."
        )
    losses = 0
    interpreters = environment.candidates(python, os.environ)
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
        # A case after which the process found the device lost was reported already.
        if result is None:
            keeper.give_up_next(_why_lost(ending))
    return recording_files.read_recording(path)


def _first_with_torch(
    interpreters: Sequence[Path], keeper: Keeper, backend: str
) -> tuple[Result | None, ChildEnding, Path]:
    *others, last = interpreters
    for interpreter in others:
        result, ending = _run(interpreter, keeper, backend)
        if result is None or result["status"] != Status.NO_TORCH:
            return result, ending, interpreter
    return *_run(last, keeper, backend), last


def _run(interpreter: Path, keeper: Keeper, backend: str) -> tuple[Result | None, ChildEnding]:
    with job_folder() as folder:
        progress_path, result_path = folder / "progress.jsonl", folder / "result.json"
        job: protocol.MeasuringJob = {
            "version": protocol.VERSION,
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
            environment=environment.child_environment(os.environ, folder / TEMPORARY_NAME)
            | environment.visible_devices(backend, os.environ),
            progress_path=progress_path,
            timeout_s=_WEEK_S,
            stall_s=STALL_S,
            progress=lambda line: keeper.take(json.loads(line)),
        )
        result = read_result(result_path)
    return result, ChildEnding(returncode=ending.returncode, log=redact_with(ending.log, os.environ))


def described(key: str, case: Case) -> protocol.KernelCase:
    """The case as the measuring process takes it."""
    return {
        "key": key,
        "dtype": case.dtype,
        "tf32": case.tf32,
        "phase": case.phase.value,
        "prepare": [_call(prepared) for prepared in case.prepare],
        "call": _call(case.call),
    }


def _call(described: Call) -> protocol.OperatorCall:
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


def _why_lost(ending: ChildEnding) -> str:
    if ending.returncode is None:
        return f"took longer than {STALL_S:g} s"
    return f"ended its process with code {ending.returncode}"


def _failure(
    result: Result | None, ending: ChildEnding, interpreter: Path, path: Path
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
