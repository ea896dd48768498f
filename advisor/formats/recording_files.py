"""A recording of kernels that were measured on one device: JSON lines, appended to one by one.

The first line is the header, each other one a measurement, a case that was left out, or the time of the
reference product. A last line without its end is of a process that was killed, and does not count. The
file may be gzipped once it is whole. docs/methods/measuring.md describes the format.
"""

from __future__ import annotations

import io
import json
import reprlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from advisor.core.errors import RecordingError
from advisor.core.files import write_atomically
from advisor.core.values import Op, Precision
from advisor.formats.foreign_files import open_unpacked
from advisor.formats.trace_checks import check_count, check_op, check_precision, check_type
from advisor.formats.trace_files import OpJson, PrecisionJson, op_from_json, version_problem

SCHEMA_VERSION = 1
FORMAT = "advisor-recording"
# The grid has some thousand cases, each in a line of about a kilobyte.
_MOST_LINES = 200_000
_MOST_LINE_BYTES = 2**20
_MOST = 1e18


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One operator with its measured time.

    Attributes:
        case: key of the case of the grid.
        op: as a trace holds it, with ``measured_s``: median seconds of one call on the device.
        spread: median absolute deviation of the samples over their median.
        num_samples: how many there were.
    """

    case: str
    op: Op
    precision: Precision
    spread: float
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


class EntryJson(TypedDict):
    """A line: a measurement, a case that was skipped, or the reference beside the ones that follow."""

    case: str
    op: OpJson
    precision: PrecisionJson
    spread: float
    num_samples: int
    reason: NotRequired[str]
    reference_s: NotRequired[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The device and the software that a recording is of; None where nobody knows.

    Attributes:
        backend: ``cuda`` or ``cpu``; times of a CPU say nothing about a GPU.
        device_name: as torch says it.
        gpu: its name in the catalog, None if it is not there.
        versions: of torch, CUDA, cuDNN and the driver.
        sm_clock_hz: when the recording began.
        recorded_on: ISO date.
    """

    backend: str
    device_name: str
    gpu: str | None
    compute_capability: str | None
    versions: Mapping[str, str | None]
    sm_clock_hz: float | None
    max_sm_clock_hz: float | None
    power_limit_w: float | None
    recorded_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a file holds.

    Attributes:
        references_s: seconds of the same product, measured now and then: they drift with the clocks.
    """

    header: Header
    measurements: tuple[Measurement, ...]
    skipped: tuple[Skipped, ...]
    references_s: tuple[float, ...]

    @property
    def cases(self) -> frozenset[str]:
        """Keys of all cases that are done with."""
        return frozenset(m.case for m in self.measurements) | frozenset(s.case for s in self.skipped)

    @property
    def drift(self) -> float:
        """How much slower the reference product was at its slowest than at its fastest, 0 for equal."""
        return max(self.references_s) / min(self.references_s) - 1 if self.references_s else 0.0


Entry = Measurement | Skipped | float


def start_recording(path: Path, header: Header) -> None:
    """Write a file that holds the header alone; what was there is replaced.

    Raises:
        RecordingError: the folder is missing, not writable, or the disk is full.
    """
    line = {"format": FORMAT, "schema_version": SCHEMA_VERSION, **asdict(header)}
    try:
        write_atomically(path, _line(line))
    except OSError as error:
        raise _unwritable(path, error) from error


def append_entry(path: Path, entry: Entry) -> None:
    """Add one line to a recording; a number is the time of the reference product in seconds.

    Raises:
        RecordingError: the file cannot be written, or the disk is full.
    """
    line = {"reference_s": entry} if isinstance(entry, float) else asdict(entry)
    try:
        with path.open("ab") as out:
            out.write(_line(line))
    except OSError as error:
        raise _unwritable(path, error) from error


def drop_half_line(path: Path) -> None:
    """Take off what a killed process left after the last whole line, before more is appended.

    Raises:
        RecordingError: the file cannot be written.
    """
    try:
        with path.open("r+b") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
    except OSError as error:
        raise _unwritable(path, error) from error


def read_recording(path: Path) -> Recording:
    """Read a recording of any version up to ours, whole or not.

    Raises:
        RecordingError: missing, damaged, not a recording, or from a newer version.
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
    """Lines with an end, one at a time: the first damaged one is the last that is read.

    Raises:
        ValueError: too many, or one is too long.
    """
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


def _unwritable(path: Path, error: OSError) -> RecordingError:
    return RecordingError(
        f"cannot write the recording to {str(path)!r}: {error.strerror}. What is in it is kept: make room"
        " and repeat the command, or choose another place with `out`."
    )


def _read_header(line: bytes, path: Path) -> Header:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RecordingError(
            f'{str(path)!r} is not a recording of advisor measure (expected "format": {FORMAT!r} in its'
            " first line): choose another file."
        )
    problem = version_problem(document, SCHEMA_VERSION)
    if problem:
        raise RecordingError(f"the recording {str(path)!r} has {problem}, or measure again.")
    try:
        header = Header(**{name: document[name] for name in Header.__dataclass_fields__})
        _check_header(header)
    except KeyError as error:
        raise RecordingError(f"the header of the recording {str(path)!r} lacks {error}.") from error
    except ValueError as error:
        raise RecordingError(
            f"the header of the recording {str(path)!r} is damaged: {error}. Measure again."
        ) from error
    return header


def _check_header(header: Header) -> None:
    versions = header.versions if isinstance(header.versions, Mapping) else {"": header.versions}
    texts = {
        "backend": (header.backend, str),
        "device_name": (header.device_name, str),
        "gpu": (header.gpu, str | None),
        "compute_capability": (header.compute_capability, str | None),
        "recorded_on": (header.recorded_on, str),
        **{f"versions.{name}": (version, str | None) for name, version in versions.items()},
    }
    for name, (value, kind) in texts.items():
        check_type(name, value, kind)
    for name in ("sm_clock_hz", "max_sm_clock_hz", "power_limit_w"):
        number = getattr(header, name)
        if number is not None:
            _positive(number, name)


def _read_entry(line: bytes, number: int, path: Path) -> Entry:
    try:
        return _entry(json.loads(line))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise RecordingError(
            f"line {number} of the recording {str(path)!r} is damaged ({type(error).__name__}: {error}):"
            " delete it, and repeat the command that made the file."
        ) from error


def _entry(document: EntryJson) -> Entry:
    if "reference_s" in document:
        return _positive(document["reference_s"], "reference_s")
    check_type("case", document["case"], str)
    if "reason" in document:
        check_type("reason", document["reason"], str)
        return Skipped(case=document["case"], reason=document["reason"])
    op = op_from_json(document["op"])
    check_op(op)
    _positive(op.measured_s, "measured_s")
    precision = Precision(**document["precision"])
    check_precision(precision)
    check_count("num_samples", document["num_samples"])
    return Measurement(
        case=document["case"],
        op=op,
        precision=precision,
        spread=_finite(document["spread"], "spread"),
        num_samples=document["num_samples"],
    )


def _positive(number: object, name: str) -> float:
    if not number:
        raise ValueError(f"{name} is {reprlib.repr(number)}")
    return _finite(number, name)


def _finite(number: object, name: str) -> float:
    if not isinstance(number, float | int) or isinstance(number, bool) or not 0 <= number <= _MOST:
        raise ValueError(f"{name} is {reprlib.repr(number)}")
    return float(number)
