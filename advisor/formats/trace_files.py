"""A Trace as versioned JSON, gzipped where the file's name ends in ``.gz``; no pickle."""

import gzip
import io
import json
import marshal
import reprlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import get_type_hints

from advisor.core.errors import TraceError
from advisor.core.files import write_atomically
from advisor.core.findings import Finding, Text, TraceWarning, about_traces, quoted  # noqa: F401 (its classes are what a trace warns of)
from advisor.core.values import Kernel, Op, Trace
from advisor.formats.foreign_files import damage_of, first_bytes, open_unpacked, read_members
from advisor.formats.typed_json import WrongValueError, reader_of, typed

SCHEMA_VERSION = 1
FORMAT = "advisor-trace"
# The version of marshal in which equal values are equal bytes.
_WITHOUT_REFERENCES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Warning:
    """A warning's `Finding`, which has its sentence at the same place of ``warnings``."""

    code: str
    facts: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Warnings:
    warnings: tuple[str, ...]
    warning_findings: tuple[_Warning, ...] | None = None


def _without_words(warning: Finding) -> str:
    return str(warning.facts["text"]) if isinstance(warning, Text) else warning.code


def write_trace(trace: Trace, path: Path, *, words: Callable[[Finding], str] = _without_words) -> None:
    """Write atomically, gzipped where the path ends in ``.gz``: the file is whole or not there.

    ``words`` are what an advisor that does not know a warning's code shows; the code itself if left out.

    Raises TraceError: the folder is missing, not writable, or the disk is full.
    """
    members = asdict(trace)
    members["warning_findings"] = [{"code": one.code, "facts": one.facts} for one in trace.warnings]
    members["warnings"] = list(map(words, trace.warnings))
    body = json.dumps({"format": FORMAT, **members}, separators=(",", ":")).encode()
    # mtime 0 makes equal traces equal files.
    payload = gzip.compress(body, mtime=0) if path.suffix == ".gz" else body
    try:
        write_atomically(path, payload)
    except OSError as error:
        raise TraceError(
            f"cannot write the trace to {str(path)!r}: {error.strerror}. Choose another place with `out`."
        ) from error


def read_trace(path: str | Path) -> Trace:
    """Read a trace of any version up to ours.

    Raises TraceError: missing, truncated, not a trace, or from a newer version.
    """
    path = Path(path)
    try:
        with open_unpacked(path) as file:
            return _read(file, path)
    except FileNotFoundError as error:
        raise TraceError(f"no trace at {str(path)!r}: make one with advisor profile.") from error
    except OSError as error:
        raise TraceError(f"cannot read the trace {str(path)!r}: {error.strerror}.") from error
    except (EOFError, zlib.error, ValueError) as error:
        found = damage_of(path, error)
        raise TraceError(
            f"the trace {str(path)!r} is truncated or damaged ({found}): profile the script again."
        ) from error


def version_problem(document: Mapping[str, object], newest: int) -> str | None:
    """What is wrong with a file's ``schema_version``, and what to do; None if we can read it."""
    version = document.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        return "no valid schema_version: take a whole file"
    if version > newest:
        return f"schema version {version}, newer than the {newest} this advisor reads: upgrade gpu-advisor"
    return None


def is_trace(path: Path) -> bool:
    """Whether a file begins as our traces do, zipped or not; one that cannot be read does not."""
    return FORMAT.encode() in first_bytes(path, 64)


def _read(file: io.BufferedReader, path: Path) -> Trace:
    """Decode the operators as they come: what is no trace is refused at the first of them."""
    members: dict[str, object] = {}
    with io.TextIOWrapper(file, "utf-8-sig") as text:
        for name, value in read_members(text, streamed="ops"):
            members[name] = _ops(value, members, path) if isinstance(value, Iterator) else value
    _check_kind(members, path)
    try:
        if not isinstance(ops := members["ops"], tuple):
            raise ValueError("'ops', which is no list")
        warnings = _warnings(typed(_Warnings, members))
        # Operators are typed already.
        trace = replace(typed(Trace, {**members, "ops": (), "warnings": warnings}), ops=ops)
        check_trace(trace)
    except (KeyError, ValueError) as error:
        raise _damaged(path, error) from error
    return trace


def _ops(entries: Iterator[object], members: Mapping[str, object], path: Path) -> tuple[Op, ...]:
    ops, same = [], dict[bytes, Op]()
    for entry in entries:
        # Thousands of calls are alike: one object for all spares every later step what it knows already.
        key = marshal.dumps(entry, _WITHOUT_REFERENCES)  # type: ignore[arg-type]
        try:
            if key not in same:
                same[key] = typed(Op, entry)
            ops.append(same[key])
        except (KeyError, ValueError) as error:
            _check_kind(members, path)
            raise _damaged(path, error) from error
    return tuple(ops)


def _check_kind(members: Mapping[str, object], path: Path) -> None:
    if members.get("format") != FORMAT:
        raise TraceError(
            f"{str(path)!r} is not a trace of advisor profile"
            f' (expected "format": {FORMAT!r}). A profiler\'s own export is another format.'
        )
    if problem := version_problem(members, SCHEMA_VERSION):
        raise TraceError(f"the trace {str(path)!r} has {problem}, or profile the script again.")


def _damaged(path: Path, error: Exception) -> TraceError:
    why = f"{error} is missing" if isinstance(error, KeyError) else error
    return TraceError(f"the trace {str(path)!r} is damaged: {why}. Profile the script again.")


def _warnings(told: _Warnings) -> tuple[Finding, ...]:
    """The findings; a sentence stands where there is none (of older files), or of a newer advisor's code."""
    if told.warning_findings is None:
        return tuple(map(quoted, told.warnings))
    if len(told.warning_findings) != len(told.warnings):
        raise ValueError(f"{len(told.warning_findings)} findings of {len(told.warnings)} warnings")
    both = zip(told.warnings, told.warning_findings, strict=True)
    return tuple(
        quoted(sentence) if (kind := known_warning(one.code)) is None else warning_of(kind, one.facts)
        for sentence, one in both
    )


# What arithmetic relies on in a trace, beyond the types of its fields: JSON can hold anything.


_WARNINGS: tuple[type[Finding], ...] = (Text, *TraceWarning.__subclasses__())
_KINDS = {kind.code: kind for kind in _WARNINGS}
_MOST = 2**63 - 1
_MOST_CALLS = 10**7
_MOST_PLACES = 1000
_MOST_IN_BLOCK = 2**31 - 1
# Half of 64 bits: how often something fits is rounded up.
_MOST_BLOCKS = 2**62
# PyTorch's own limit.
_MOST_DIMENSIONS = 64


def known_warning(code: object) -> type[Finding] | None:
    """What a trace of ours can warn of; None for a newer advisor's codes."""
    return _KINDS.get(code) if isinstance(code, str) else None


def warning_of(kind: type[Finding], facts: object) -> Finding:
    """The warning with these facts. Raises ValueError: they are not the facts of this warning."""
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name in kind.fact_names}
    needed = {name for name in hints if not hasattr(kind, name)}
    if not isinstance(facts, dict) or not needed <= facts.keys() <= hints.keys():
        raise ValueError(f"the facts of {kind.code} are {reprlib.repr(facts)}")
    for name, fact in facts.items():
        try:
            reader_of(hints[name])(fact)
        except WrongValueError as wrong:
            raise wrong.of(name).of(kind.code) from None
    return kind(**facts)


def check_trace(trace: Trace) -> None:
    """Refuse what no profile can hold. Raises ValueError: names the field and its value."""
    if not trace.ops:
        raise ValueError("no operators")
    for op in {id(op): op for op in trace.ops}.values():
        check_op(op)
    for what, counted in (("calls", trace.ops), ("collectives", trace.collectives)):
        if (number := sum(one.count for one in counted)) > _MOST_CALLS:
            raise ValueError(f"the number of all {what} is {number}")
    for warning in trace.warnings:
        warning_of(type(warning), dict(warning.facts))
    places = () if trace.checkpoints is None else (*trace.checkpoints.saves, *trace.checkpoints.loads)
    if len(places) > _MOST_PLACES:
        raise ValueError(f"checkpoints has {len(places):,} places")
    for place in places:
        _check_printable("a place of checkpoints", place)


def check_op(op: Op) -> None:
    """The same of one operator. Raises ValueError: names the field and its value."""
    _check_printable("the name of an operator", op.name)
    for tensor in (*op.inputs, *op.outputs):
        for numbers in (tensor.shape, tensor.stride or ()):
            if len(numbers) > _MOST_DIMENSIONS:
                raise ValueError(f"a tensor of {op.name} has {len(numbers):,} dimensions")
        if tensor.stride is not None and len(tensor.stride) != len(tensor.shape):
            strides, sizes = len(tensor.stride), len(tensor.shape)
            raise ValueError(f"a tensor of {op.name} has {strides} strides and {sizes} dimensions")
        if prod(tensor.shape) > _MOST:
            raise ValueError(f"the shape of a tensor of {op.name} is {reprlib.repr(tensor.shape)}")
    for kernel in op.kernels:
        _check_kernel(kernel, op.name)
    for sources in (flow.sources for flow in op.flows):
        if len(sources) != len(op.inputs):
            raise ValueError(f"a flow of {op.name} has {len(sources)} sources of {len(op.inputs)} operands")
    if op.flows and sum(flow.count for flow in op.flows) != op.count:
        raise ValueError(f"the flows of {op.name} are not of its {op.count:,} calls")


def _check_kernel(kernel: Kernel, owner: str) -> None:
    for name, size, most in (("grid", kernel.grid, _MOST_BLOCKS), ("block", kernel.block, _MOST_IN_BLOCK)):
        if prod(size) > most:
            raise ValueError(f"{name} of a kernel of {owner} is {reprlib.repr(size)}")


def _check_printable(what: str, text: str) -> None:
    # It goes to the terminal.
    if not text.isprintable():
        raise ValueError(f"{what} is {reprlib.repr(text)}")
