"""A recording of kernels that were measured on one device: JSON lines, appended to one by one.

The first line is the header, each other one a measurement, a case that was left out, or the time of the
reference product. A last line without its end is of a process that was killed, and does not count. The
file may be gzipped once it is whole. docs/methods/measuring.md describes the format.
"""

import io
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from advisor.core.errors import RecordingError
from advisor.core.files import write_atomically
from advisor.core.values import ABOVE_0, Bounds, Op, Precision
from advisor.formats.foreign_files import RepeatedNameError, open_unpacked, read_json
from advisor.formats.trace_files import check_op, version_problem
from advisor.formats.typed_json import typed

SCHEMA_VERSION = 1
FORMAT = "advisor-recording"
# The grid has some thousand cases, each in a line of about a kilobyte.
_MOST_LINES = 200_000
_MOST_LINE_BYTES = 2**20
Above0 = Annotated[float, Bounds(ABOVE_0, 1e18)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One operator with its measured time."""

    case: str
    """Key of the case of the grid."""
    op: Op
    """As a trace holds it, with ``measured_s``: median seconds of one call on the device."""
    precision: Precision
    spread: float
    """Median absolute deviation of the samples over their median."""
    num_samples: int

    @property
    def time_s(self) -> float:
        """Seconds of one call."""
        assert self.op.measured_s is not None  # noqa: S101 - checked when it was read or made
        return self.op.measured_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A case that could not be measured, and why in words."""

    case: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The device and the software that a recording is of; None where unknown."""

    backend: str
    """``cuda`` or ``cpu``; times of a CPU say nothing about a GPU."""
    device_name: str
    """As torch says it."""
    gpu: str | None
    """Its name in the catalog, None if it is not there."""
    compute_capability: str | None
    versions: Mapping[str, str | None]
    """Of torch, CUDA, cuDNN and the driver."""
    sm_clock_hz: Above0 | None
    """When the recording began."""
    max_sm_clock_hz: Above0 | None
    power_limit_w: Above0 | None
    recorded_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a file holds."""

    header: Header
    measurements: tuple[Measurement, ...]
    skipped: tuple[Skipped, ...]
    references_s: tuple[float, ...]
    """Seconds of the same product, measured now and then: they drift with the clocks."""

    @property
    def cases(self) -> frozenset[str]:
        """Keys of all cases that are done with."""
        return frozenset(m.case for m in self.measurements) | frozenset(s.case for s in self.skipped)

    @property
    def drift(self) -> float:
        """How much slower the reference product was at its slowest than at its fastest, 0 for equal."""
        return max(self.references_s) / min(self.references_s) - 1 if self.references_s else 0.0


Entry = Measurement | Skipped | float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    reference_s: Above0


def start_recording(path: Path, header: Header) -> None:
    """Write a file that holds the header alone; what was there is replaced.

    Raises RecordingError: the folder is missing, not writable, or the disk is full.
    """
    line = {"format": FORMAT, "schema_version": SCHEMA_VERSION, **asdict(header)}
    with _writing(path):
        write_atomically(path, _line(line))


def append_entry(path: Path, entry: Entry) -> None:
    """Add one line to a recording; a number is the time of the reference product in seconds.

    Raises RecordingError: the file cannot be written, or the disk is full.
    """
    line = {"reference_s": entry} if isinstance(entry, float) else asdict(entry)
    with _writing(path), path.open("ab") as out:
        out.write(_line(line))


def drop_half_line(path: Path) -> None:
    """Take off what a killed process left after the last whole line, before more is appended.

    Raises RecordingError: the file cannot be written.
    """
    with _writing(path), path.open("r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def read_recording(path: Path) -> Recording:
    """Read a recording of any version up to ours, whole or not.

    Raises RecordingError: missing, damaged, not a recording, or from a newer version.
    """
    try:
        with open_unpacked(path) as file:
            return _read(file, path)
    except FileNotFoundError as error:
        raise RecordingError(f"no recording at {str(path)!r}: make one with advisor measure.") from error
    except OSError as error:
        raise RecordingError(f"cannot read the recording {str(path)!r}: {error.strerror}.") from error
    except (EOFError, zlib.error, ValueError) as error:
        raise RecordingError(f"the recording {str(path)!r} is damaged ({error}): measure again.") from error


def _read(file: io.BufferedReader, path: Path) -> Recording:
    if not file.peek(1):
        raise RecordingError(
            f"{str(path)!r} is not a recording of advisor measure but empty: delete it, or choose another."
        )
    lines = _whole_lines(file)
    header = _read_header(next(lines, b""), path)
    entries = [_read_entry(line, number, path) for number, line in enumerate(lines, start=2)]
    return Recording(
        header=header,
        measurements=tuple(entry for entry in entries if isinstance(entry, Measurement)),
        skipped=tuple(entry for entry in entries if isinstance(entry, Skipped)),
        references_s=tuple(entry for entry in entries if isinstance(entry, float)),
    )


def _whole_lines(file: io.BufferedReader) -> Iterator[bytes]:
    """Lines with an end, one at a time: the first damaged one is the last that is read."""
    num_lines = 0
    while (line := file.readline(_MOST_LINE_BYTES)).endswith(b"\n"):
        num_lines += 1
        if num_lines > _MOST_LINES:
            raise ValueError(f"more than {_MOST_LINES:,} lines")
        yield line[:-1]
    if len(line) == _MOST_LINE_BYTES:
        raise ValueError(f"a line of more than {_MOST_LINE_BYTES / 1e6:.0f} MB")


def _line(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RecordingError(
            f"cannot write the recording to {str(path)!r}: {error.strerror}. What is in it is kept: make room"
            " and repeat the command, or choose another place with `out`."
        ) from error


def _read_header(line: bytes, path: Path) -> Header:
    try:
        try:
            document = read_json(line)
        except RepeatedNameError:
            raise
        except ValueError:
            document = None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise RecordingError(
                f'{str(path)!r} is not a recording of advisor measure (expected "format": {FORMAT!r} in its'
                " first line): choose another file."
            )
        if problem := version_problem(document, SCHEMA_VERSION):
            raise RecordingError(f"the recording {str(path)!r} has {problem}, or measure again.")
        return typed(Header, document)
    except ValueError as error:
        raise RecordingError(
            f"the header of the recording {str(path)!r} is damaged: {error}. Measure again."
        ) from error


def _read_entry(line: bytes, number: int, path: Path) -> Entry:
    try:
        document = typed(dict, read_json(line))
        if "reference_s" in document:
            return typed(_Reference, document).reference_s
        if "reason" in document:
            return typed(Skipped, document)
        measurement = typed(Measurement, document)
        check_op(measurement.op)
        if not measurement.op.measured_s:
            raise ValueError(f"measured_s is {measurement.op.measured_s}")
        return measurement
    except ValueError as error:
        raise RecordingError(
            f"line {number} of the recording {str(path)!r} is damaged ({error}):"
            " delete it, and repeat the command that made the file."
        ) from error
