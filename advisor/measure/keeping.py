"""What the measuring process tells, line by line, into the recording's file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from advisor.core.devices import device_state
from advisor.core.errors import RecordingError, UnknownGpuError
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Precision
from advisor.formats.foreign_files import is_gzip
from advisor.formats.recording_files import (
    Entry,
    Header,
    Measurement,
    Recording,
    Skipped,
    append_entry,
    drop_half_line,
    read_recording,
    start_recording,
)
from advisor.operators.case import Case
from advisor.payload.protocol import Device, MeasuredLine, MeasuringLine, SkippedLine
from advisor.profile.backends import first_visible
from advisor.profile.recording import operators_of


class Keeper:
    """The file, and which cases it lacks.

    Args:
        path: of the recording; one that is there is continued.
        cases: all that it shall hold.
        backend: of the device.
        progress: is told after each case how many are done of how many.

    Attributes:
        missing: the cases to do by their keys, in order.
        has_device: the process told of its device, so that it can be used in principle.

    Raises:
        RecordingError: there is something else at ``path``, or a recording of another kind of device.
    """

    def __init__(
        self,
        path: Path,
        cases: Sequence[Case],
        backend: str,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._path = path
        self._backend = backend
        self._progress = progress
        self._total = len(cases)
        existing = _existing(path, backend)
        self._header = existing.header if existing else None
        done = existing.cases if existing else frozenset[str]()
        self.missing = {case.key: case for case in cases}
        for key in done & self.missing.keys():
            del self.missing[key]
        if self._header is not None and self.missing:
            _check_can_grow(path)
        self.has_device = False
        self._tell()

    def take(self, line: MeasuringLine) -> None:
        """Keep what one line tells.

        Raises:
            RecordingError: the device is not the recording's, or the file cannot be written.
        """
        if "device" in line:
            self._meet(line["device"])
        elif "reference_s" in line:
            append_entry(self._path, line["reference_s"])
        else:
            self._done(line["case"], _entry_of(line))

    def give_up_next(self, reason: str) -> None:
        """Leave out the case that was under way when the process ended, if any was."""
        for key in list(self.missing)[:1]:
            self._done(key, Skipped(case=key, reason=reason))

    def _done(self, key: str, entry: Entry) -> None:
        append_entry(self._path, entry)
        self.missing.pop(key, None)
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._total - len(self.missing), self._total)

    def _meet(self, device: Device) -> None:
        self.has_device = True
        header = header_of(device, self._backend)
        if self._header is None:
            start_recording(self._path, header)
            self._header = header
            return
        _check_same(self._header, header, self._path)
        drop_half_line(self._path)


def header_of(device: Device, backend: str) -> Header:
    """What a recording says of a device that told of itself, and nvidia-smi of it."""
    state = device_state(first_visible(os.environ) if backend == "cuda" else "")
    return Header(
        backend=backend,
        device_name=device["name"],
        gpu=_catalog_name(device["name"]) if backend == "cuda" else None,
        compute_capability=device["compute_capability"],
        versions={**device["versions"], "driver": state.driver},
        sm_clock_hz=state.sm_clock_hz,
        max_sm_clock_hz=state.max_sm_clock_hz,
        power_limit_w=state.power_limit_w,
        recorded_on=datetime.now(UTC).date().isoformat(),
    )


def _catalog_name(device_name: str) -> str | None:
    try:
        return resolve_gpu(device_name).name
    except UnknownGpuError:
        return None


def _existing(path: Path, backend: str) -> Recording | None:
    if not path.exists():
        _check_place(path)
        return None
    _check_is_file(path)
    recording = read_recording(path)
    if recording.header.backend != backend:
        raise RecordingError(
            f"{str(path)!r} is a recording of the backend {recording.header.backend}, not {backend}:"
            " choose another file with `out`."
        )
    return recording


def _check_can_grow(path: Path) -> None:
    if is_gzip(path):
        raise RecordingError(
            f"{str(path)!r} is gzipped and not complete, and nothing can be added to it: gunzip it first, or"
            " choose another file with `out`."
        )


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        example = str(path / "kernels.jsonl")
        raise RecordingError(f"{str(path)!r} is a folder: name a file in it with `out`, such as {example!r}.")
    # Devices have no end to read to, and pipes nothing to continue.
    if not path.is_file():
        raise RecordingError(f"{str(path)!r} is no file that can be kept: choose another with `out`.")


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise RecordingError(f"there is no folder {str(path.parent)!r} for the recording: make it first.")
    if path.suffix == ".gz":
        raise RecordingError(
            f"a recording is written line by line and cannot be zipped meanwhile: name it"
            f" {str(path.with_suffix(''))!r}, and run gzip afterwards; zipped ones can be read."
        )


def _check_same(kept: Header, new: Header, path: Path) -> None:
    facts: list[tuple[str, str | None, str | None]] = [("device", kept.device_name, new.device_name)]
    facts += [(name, kept.versions.get(name), new.versions[name]) for name in ("torch", "cuda", "cudnn")
              if name in new.versions]  # fmt: skip
    for name, before, now in facts:
        if before != now:
            raise RecordingError(
                f"{str(path)!r} was recorded with {name} {before}, and this is {name} {now}: times of the two"
                " do not belong together. Choose another file with `out`."
            )


def _entry_of(line: MeasuredLine | SkippedLine) -> Entry:
    if "reason" in line:
        return Skipped(case=line["case"], reason=line["reason"])
    (op,), _ = operators_of([line["operator"]])
    return Measurement(
        case=line["case"],
        op=replace(op, measured_s=line["time_s"]),
        precision=Precision(**line["precision"]),
        spread=line["spread"],
        num_samples=line["num_samples"],
    )
