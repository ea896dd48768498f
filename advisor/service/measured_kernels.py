"""Kernels of this machine's GPU: measured, kept, and fitted to."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, RecordingError
from advisor.core.files import temporary_folder
from advisor.core.findings import Finding
from advisor.core.gpus import is_known
from advisor.formats.recording_files import Recording, read_recording
from advisor.service.listening import Listener

if TYPE_CHECKING:
    from advisor.config.layers import TracingSettings
    from advisor.measure import Extent
    from advisor.predict.calibrating import Calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest:
    """Which kernels to measure, and where to keep them."""

    extent: Extent
    out: Path
    """The recording; one that was cut short is continued."""
    families: tuple[str, ...] | None = None
    """These alone; None for all."""
    backend: str = "cuda"
    """``cuda``, or ``cpu`` to try it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A recording, and what makes its times doubtful."""

    recording: Recording
    warnings: tuple[Finding, ...]


def measure_kernels(request: MeasureRequest, python: Path | None, listener: Listener) -> Measured:
    """Measure what the recording does not hold yet.

    Raises:
        InputError: an unknown family, no such interpreter, or no torch in it.
        RecordingError: the file is another's, of another device, or cannot be written.
        GpuUnusableError: there is no GPU, others work on it, or its memory is full.
        ProfileError: the measuring process failed.
    """
    from advisor.measure import grid, measure
    from advisor.predict.calibrating import drift_warnings

    cases = grid(request.extent, only=request.families or (), backend=request.backend)
    with listener.count(f"measuring on {request.backend}") as tell:
        count = _Count(tell)
        try:
            recording = measure(cases, request.out, backend=request.backend, python=python, progress=count)
        except KeyboardInterrupt:
            if count.done:
                kept = f"{count.done} of {count.total} are kept in {request.out}"
                listener.note(f"{kept}; the same command goes on there.")
            raise
    if count.was_complete:
        listener.note(f"{request.out} was complete already.")
    return Measured(recording=recording, warnings=drift_warnings(recording))


class _Count:
    def __init__(self, tell: Callable[[int, int], None]) -> None:
        self._tell = tell
        self.done = self.total = 0
        self.was_complete = False

    def __call__(self, done: int, total: int) -> None:
        self.was_complete = done == total and self.total == 0
        self.done, self.total = done, total
        self._tell(done, total)


def calibrate_gpu(
    source: Path | None, tracing: TracingSettings, listener: Listener
) -> tuple[Calibration, Path]:
    """Fit the constants of a GPU and keep them: of a recording, or of this machine's GPU, measured now.

    Raises:
        InputError: no such interpreter or recording, or an interpreter for a recording.
        RecordingError: the recording is damaged, or of a GPU that the catalog lacks.
        CalibrationError: what was measured makes no sense beside the data sheet.
        ProfileError: the measuring process failed.
    """
    from advisor.predict.calibrating import calibrate
    from advisor.predict.knowledge import HERE, RECORDED, shipped, write_calibration

    if source is not None and tracing.is_given("profile.python"):
        python, instead = listener.name_of("profile.python"), listener.name_of("source")
        raise InputError(
            f"{str(source)!r} was measured already: give {python} to measure here, or {instead}."
        )
    recording = read_recording(source) if source is not None else _measured(tracing.profile.python, listener)
    calibration = calibrate(recording)
    constants = {constant.name: constant.after for constant in calibration.constants}
    path = write_calibration(
        calibration.gpu,
        calibration.source,
        constants,
        kernels=calibration.kernels,
        where=HERE if source is None else RECORDED,
        networks=shipped().fingerprint,
    )
    return calibration, path


def _measured(python: Path | None, listener: Listener) -> Recording:
    from advisor.measure import calibration_kernels, measure

    # Refuse a GPU that the catalog lacks before a minute is spent on it.
    from advisor.predict.calibrating import why_unknown
    from advisor.profile.environment import first_device

    device = first_device(os.environ)
    if device is not None and not is_known(device.name):
        raise RecordingError(why_unknown(device.name))
    with temporary_folder("calibrate") as folder, listener.count("measuring") as tell:
        return measure(calibration_kernels(), folder / "kernels.jsonl", python=python, progress=tell)
