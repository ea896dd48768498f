"""A Trace as versioned JSON, gzipped where the file's name ends in ``.gz``; no pickle."""

from __future__ import annotations

import gzip
import io
import json
import marshal
import reprlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NotRequired, TypedDict, TypeVar, cast

from advisor.core.errors import TraceError
from advisor.core.files import write_atomically
from advisor.core.findings import Finding, Text, quoted
from advisor.core.limits import check_kind
from advisor.core.values import (
    AttributeValue,
    Checkpoints,
    CheckpointUse,
    Collective,
    Flow,
    Kernel,
    Launch,
    MemoryUse,
    Op,
    Phase,
    Precision,
    RankWork,
    RecordedStep,
    TensorSpec,
    Trace,
)
from advisor.formats.foreign_files import first_bytes, open_unpacked, read_members
from advisor.formats.trace_checks import check_trace, known_warning, warning_of

AttributeJson = bool | int | float | str | None | list["AttributeJson"]


class TensorJson(TypedDict):
    """A `TensorSpec`."""

    shape: list[int]
    dtype: str
    stride: list[int] | None


class KernelJson(TypedDict):
    """A `Kernel`."""

    name: str
    grid: tuple[int, int, int]  # a list of three in the file
    block: tuple[int, int, int]
    registers_per_thread: int | None
    shared_bytes: int | None
    duration_s: float


class FlowJson(TypedDict):
    """A `Flow`."""

    id: int
    count: int
    sources: list[int]
    new_parameters: int
    forward: int | None
    is_of_view: bool


class OpJson(TypedDict):
    """An `Op`."""

    name: str
    phase: str
    inputs: list[TensorJson]
    outputs: list[TensorJson]
    attributes: dict[str, AttributeJson]
    flops: int
    bytes: int
    count: int
    measured_s: float | None
    kernels: list[KernelJson]
    flows: NotRequired[list[FlowJson]]


class CollectiveJson(TypedDict):
    """A `Collective`."""

    kind: str
    num_bytes: int | None
    world_size: int | None
    count: int


class PrecisionJson(TypedDict):
    """A `Precision`."""

    amp_dtype: str | None
    tf32_matmul: bool
    tf32_cudnn: bool


class MemoryJson(TypedDict):
    """A `MemoryUse`."""

    parameter_bytes: int | None
    gradient_bytes: int | None
    optimizer_bytes: int | None
    activation_bytes: int | None
    peak_bytes: int | None
    pass_activation_bytes: NotRequired[int | None]
    pass_peak_bytes: NotRequired[int | None]
    most_activation_bytes: NotRequired[int | None]


class RankWorkJson(TypedDict):
    """A `RankWork`."""

    world_size: int
    batch_size: int | None
    accumulation: int
    flops: int


class CheckpointsJson(TypedDict):
    """A `Checkpoints`."""

    use: str
    saves: list[str]
    loads: list[str]


class RecordedStepJson(TypedDict):
    """A `RecordedStep`."""

    work: float
    calls: float


class WarningJson(TypedDict):
    """A warning's `Finding`, which has its sentence at the same place of ``warnings``."""

    code: str
    facts: dict[str, object]


class TraceJson(TypedDict):
    """A `Trace`, its operators read already."""

    schema_version: int
    script: str
    arguments: list[str]
    backend: str
    origin_gpu: str | None
    versions: dict[str, str]
    precision: PrecisionJson
    batch_size: int | None
    samples_per_epoch: int | None
    iterations_per_epoch: int | None
    accumulation: int
    iteration_s: float | None
    data_loading_s: float | None
    num_workers: int | None
    ops: tuple[Op, ...]
    memory: MemoryJson
    collectives: list[CollectiveJson]
    warnings: list[str]
    warning_findings: NotRequired[list[WarningJson]]
    world_size: NotRequired[int | None]
    is_sharded: NotRequired[bool]
    has_sparse_gradients: NotRequired[bool]
    awaits_reductions: NotRequired[bool]
    compile_mode: NotRequired[str | None]
    work_elsewhere: NotRequired[RankWorkJson | None]
    loader_cpu_s_per_sample: NotRequired[float | None]
    launch: NotRequired[str]
    batch_variation: NotRequired[float | None]
    parallel_by: NotRequired[str | None]
    checkpoints: NotRequired[CheckpointsJson | None]
    steps: NotRequired[list[RecordedStepJson]]


T = TypeVar("T")

SCHEMA_VERSION = 1
FORMAT = "advisor-trace"
# The version of marshal in which equal values are equal bytes.
_WITHOUT_REFERENCES = 2
# Of JSON of another form.
_MISSHAPEN = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


def _without_words(warning: Finding) -> str:
    return str(warning.facts["text"]) if isinstance(warning, Text) else warning.code


def write_trace(trace: Trace, path: Path, *, words: Callable[[Finding], str] = _without_words) -> None:
    """Write atomically: the file is whole or not there.

    Args:
        trace: as profiled.
        path: gzipped where it ends in ``.gz``.
        words: what an advisor that does not know a warning's code shows; the code itself if left out.

    Raises:
        TraceError: the folder is missing, not writable, or the disk is full.
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

    Raises:
        InputError: what was handed in is no path.
        TraceError: missing, truncated, not a trace, or from a newer version.
    """
    check_kind("path", path, str | Path, "advisor profile writes such a file")
    path = Path(path)
    try:
        with open_unpacked(path) as file:
            return _read(file, path)
    except FileNotFoundError as error:
        raise TraceError(f"no trace at {str(path)!r}: make one with advisor profile.") from error
    except OSError as error:
        raise TraceError(f"cannot read the trace {str(path)!r}: {error.strerror}.") from error
    except (EOFError, zlib.error, ValueError) as error:
        raise TraceError(
            f"the trace {str(path)!r} is truncated or damaged ({error}): profile the script again."
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
    """Decode the operators as they come: what is no trace is refused at the first of them.

    Raises:
        TraceError: it is no trace, too new or damaged.
        EOFError, zlib.error, ValueError: it is no JSON, or too large.
    """
    members: dict[str, object] = {}
    with io.TextIOWrapper(file, "utf-8-sig") as text:
        for name, value in read_members(text, streamed="ops"):
            members[name] = _ops(value, members, path) if isinstance(value, Iterator) else value
    _check_kind(members, path)
    try:
        trace = _trace(cast("TraceJson", members))
        check_trace(trace)
    except _MISSHAPEN as error:
        raise _damaged(path, error) from error
    return trace


def _ops(entries: Iterator[object], members: Mapping[str, object], path: Path) -> tuple[Op, ...]:
    ops, same = [], dict[bytes, Op]()
    for entry in entries:
        # Thousands of calls are alike: one object for all spares every later step what it knows already.
        key = marshal.dumps(entry, _WITHOUT_REFERENCES)  # type: ignore[arg-type]
        try:
            if key not in same:
                same[key] = op_from_json(cast("OpJson", entry))
            ops.append(same[key])
        except _MISSHAPEN as error:
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
    return TraceError(
        f"the trace {str(path)!r} is damaged: {type(error).__name__} at {error}. Profile the script again."
    )


def _trace(members: TraceJson) -> Trace:
    if not isinstance(members["ops"], tuple):
        raise TypeError("'ops', which is no list")
    return Trace(
        schema_version=members["schema_version"],
        script=members["script"],
        backend=members["backend"],
        origin_gpu=members["origin_gpu"],
        batch_size=members["batch_size"],
        samples_per_epoch=members["samples_per_epoch"],
        iterations_per_epoch=members["iterations_per_epoch"],
        accumulation=members["accumulation"],
        iteration_s=members["iteration_s"],
        data_loading_s=members["data_loading_s"],
        num_workers=members["num_workers"],
        arguments=_tuple(members["arguments"]),
        versions=dict(members["versions"]),
        precision=Precision(**members["precision"]),
        ops=members["ops"],
        memory=MemoryUse(**members["memory"]),
        collectives=tuple(Collective(**entry) for entry in _tuple(members["collectives"])),
        warnings=_warnings(_tuple(members["warnings"]), members.get("warning_findings")),
        # Files written before scripts of several processes could be profiled have none.
        world_size=members.get("world_size"),
        is_sharded=members.get("is_sharded", False),
        awaits_reductions=members.get("awaits_reductions", False),
        has_sparse_gradients=members.get("has_sparse_gradients", False),
        work_elsewhere=None if (work := members.get("work_elsewhere")) is None else RankWork(**work),
        # Nor have those from before CPU seconds were told from other ones.
        loader_cpu_s_per_sample=members.get("loader_cpu_s_per_sample"),
        compile_mode=members.get("compile_mode"),
        launch=Launch(members.get("launch", Launch.EAGER)),
        batch_variation=members.get("batch_variation"),
        parallel_by=members.get("parallel_by"),
        # Nor those from before scripts were read for them.
        checkpoints=checkpoints_from_json(members.get("checkpoints")),
        steps=tuple(RecordedStep(**entry) for entry in _tuple(members.get("steps", []))),
    )


def checkpoints_from_json(entry: CheckpointsJson | None) -> Checkpoints | None:
    """What a script does with checkpoints; None where the file does not say."""
    if entry is None:
        return None
    return Checkpoints(
        use=CheckpointUse(entry["use"]), saves=_tuple(entry["saves"]), loads=_tuple(entry["loads"])
    )


def _warnings(sentences: Sequence[str], findings: list[WarningJson] | None) -> tuple[Finding, ...]:
    """The findings; a sentence stands where there is none (of older files), or of a newer advisor's code."""
    if findings is None:
        return tuple(map(quoted, sentences))
    if len(_tuple(findings)) != len(sentences):
        raise ValueError(f"{len(findings)} findings of {len(sentences)} warnings")
    pairs = zip(sentences, findings, strict=True)
    return tuple(_warning(sentence, one["code"], one["facts"]) for sentence, one in pairs)


def _warning(sentence: str, name: str, facts: Mapping[str, object]) -> Finding:
    kind = known_warning(name)
    return quoted(sentence) if kind is None else warning_of(kind, facts)


def _tuple(value: list[T]) -> tuple[T, ...]:
    """Of a list alone: a text would become its letters."""
    if not isinstance(value, list):
        raise TypeError(f"{reprlib.repr(value)}, which is no list")
    return tuple(value)


def op_from_json(entry: OpJson) -> Op:
    """An operator from its JSON object, which is ``dataclasses.asdict`` of it."""
    return Op(
        name=entry["name"],
        phase=Phase(entry["phase"]),
        inputs=tuple(tensor_from_json(item) for item in _tuple(entry["inputs"])),
        outputs=tuple(tensor_from_json(item) for item in _tuple(entry["outputs"])),
        attributes={name: attribute_from_json(value) for name, value in entry["attributes"].items()},
        flops=entry["flops"],
        bytes=entry["bytes"],
        count=entry["count"],
        measured_s=entry["measured_s"],
        kernels=tuple(_kernel(item) for item in _tuple(entry["kernels"])),
        # Files written before operands were followed have none.
        flows=tuple(flow_from_json(item) for item in _tuple(entry.get("flows", []))),
    )


def flow_from_json(entry: FlowJson) -> Flow:
    """A flow from its JSON object."""
    return Flow(
        id=entry["id"],
        count=entry["count"],
        sources=_tuple(entry["sources"]),
        new_parameters=entry["new_parameters"],
        forward=entry["forward"],
        is_of_view=entry["is_of_view"],
    )


def tensor_from_json(entry: TensorJson) -> TensorSpec:
    """A tensor from its JSON object."""
    stride = entry["stride"]
    return TensorSpec(
        shape=tuple(entry["shape"]),
        dtype=entry["dtype"],
        stride=None if stride is None else tuple(stride),
    )


def attribute_from_json(value: AttributeJson) -> AttributeValue:
    """An operator's argument from JSON, where tuples are lists."""
    return tuple(attribute_from_json(item) for item in value) if isinstance(value, list) else value


def _kernel(entry: KernelJson) -> Kernel:
    whole = {**entry, "grid": tuple(entry["grid"]), "block": tuple(entry["block"])}
    return Kernel(**cast("KernelJson", whole))
