"""Reads an exported profiler trace (Chrome JSON of PyTorch's Kineto) into typed events.

Names of categories and arguments changed between schemas (``Operator`` / ``cpu_op``, ``external id`` /
``External id``), so all are compared in lower case. Times become seconds.
"""

from __future__ import annotations

import bisect
import io
import math
import reprlib
import statistics
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import TypedDict, cast, get_origin, get_type_hints

from advisor.core.errors import TraceError
from advisor.core.values import Kernel, Op, TensorSpec
from advisor.formats.foreign_files import damage_of, open_unpacked, read_members
from advisor.operators.registry import cost_of
from advisor.operators.work import tensor_bytes

JsonObject = Mapping[str, object]
"""Of a file that someone else wrote: each value is made what it should be where it is read."""

Arguments = TypedDict(
    "Arguments",
    {
        "correlation": int,
        "external id": int,
        "fwd thread id": int,
        "sequence number": int,
        "bytes": int,
        "registers per thread": int,
        "shared memory": int,
        "input dims": list[object],
        "input type": list[object],
        "grid": tuple[int, ...],
        "block": tuple[int, ...],
    },
    total=False,
)
"""What is counted with of an event: numbers, lists of anything, and the numbers of a launch."""

NEWEST_SCHEMA = 1
_US = 1e-6
_EVENTS = "traceEvents"
_MOST_CATEGORIES = 20
_LONGEST_FAULT = 200
# Marks, arrows and names of threads are about as many as the events that count.
_MOST_OTHERS = 500_000
_MOST_OTHERS_EACH = 10

_HOST_OPS = {"operator", "cpu_op"}
_MARKS = {"operator", "cpu_op", "user_annotation"}
_LAUNCHES = {"runtime", "cuda_runtime", "cuda_driver", "driver"}
_DEVICE = {"kernel": "kernel", "memcpy": "memcpy", "gpu_memcpy": "memcpy", "memset": "memset",
           "gpu_memset": "memset"}  # fmt: skip
_KINDS = get_type_hints(Arguments)
_MOST = 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvent:
    """An operator, or a mark such as ``ProfilerStep#7``, on a CPU thread."""

    name: str
    thread: str
    begin_s: float
    end_s: float
    args: Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaLaunch:
    """A call of the CUDA runtime; ``correlation`` leads to what it started on the GPU."""

    thread: str
    begin_s: float
    external_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvent:
    """A kernel, copy or fill on the GPU."""

    kind: str
    name: str
    begin_s: float
    duration_s: float
    correlation: int | None
    external_id: int | None
    args: Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class KinetoEvents:
    """All events that matter, in order of time; launches by correlation."""

    operators: tuple[HostEvent, ...]
    marks: tuple[HostEvent, ...]
    launches: Mapping[int, CudaLaunch]
    device_events: tuple[DeviceEvent, ...]
    device_name: str | None


def read_recording(path: Path) -> KinetoEvents:
    """Parse a profiler export, gzipped or not.

    Raises TraceError: missing, truncated, no profiler export, of an unknown schema, or without kernels.
    """
    try:
        with open_unpacked(path) as file:
            recording = _read(file, path)
    except OSError as error:
        raise TraceError(f"cannot read the profile {str(path)!r}: {error.strerror}.") from error
    except (EOFError, zlib.error, ValueError) as error:
        raise TraceError(
            f"the profile {str(path)!r} is truncated or damaged ({damage_of(path, error)}): export it again."
        ) from error
    return recording.recording(path)


@dataclass(slots=True)
class _Found:
    """What has been read so far, in the order of the file."""

    operators: list[HostEvent] = field(default_factory=list)
    marks: list[HostEvent] = field(default_factory=list)
    launches: dict[int, CudaLaunch] = field(default_factory=dict)
    device_events: list[DeviceEvent] = field(default_factory=list)
    categories: set[str] = field(default_factory=set)
    device_name: str | None = None
    num_others: int = 0

    def take(self, event: JsonObject) -> None:
        """Keep an event if it matters.

        Raises KeyError, TypeError, ValueError, OverflowError, AttributeError: it is no event of a profiler.
        """
        # Every event of Chrome's format has a phase; "X" is one with a duration.
        category = str(event.get("cat")) if event["ph"] == "X" else ""
        if category and len(self.categories) < _MOST_CATEGORIES:
            self.categories.add(category[:40])
        category = category.lower()
        if category in _MARKS:
            host = _host(event)
            if category in _HOST_OPS:
                self.operators.append(host)
            if "#" in host.name:
                self.marks.append(host)
        elif category in _LAUNCHES:
            self.launches.update(_launch(event))
        elif category in _DEVICE:
            self.device_events.append(_device(event, _DEVICE[category]))
        else:
            self.num_others += 1
            num_kept = len(self.operators) + len(self.launches) + len(self.device_events)
            if self.num_others > _MOST_OTHERS + _MOST_OTHERS_EACH * num_kept:
                raise ValueError(f"{self.num_others:,} events are neither operators, launches nor kernels")

    def recording(self, path: Path) -> KinetoEvents:
        """All of it in order of time. Raises TraceError: there are no operators or no kernels."""
        kernels = sum(event.kind == "kernel" for event in self.device_events)
        if not self.operators or not kernels:
            raise TraceError(
                f"{str(path)!r} holds {len(self.operators)} operators and {kernels} GPU kernels"
                f" (categories: {', '.join(sorted(self.categories)) or 'none'}). Record with"
                " activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] and export_chrome_trace."
            )
        begin = attrgetter("begin_s")
        return KinetoEvents(
            operators=tuple(sorted(self.operators, key=begin)),
            marks=tuple(sorted(self.marks, key=begin)),
            launches=self.launches,
            device_events=tuple(sorted(self.device_events, key=begin)),
            device_name=self.device_name,
        )


def _read(file: io.BufferedReader, path: Path) -> _Found:
    """Take the events as they come: what is no profile is refused at the first of them."""
    recording = _Found()
    is_export = False
    with io.TextIOWrapper(file, "utf-8-sig") as text:
        for name, value in read_members(text, streamed=_EVENTS):
            if name == "schemaVersion":
                if not isinstance(value, int) or value > NEWEST_SCHEMA:
                    raise TraceError(
                        f"{str(path)!r} has profiler schema {reprlib.repr(value)}, and we know those up to"
                        f" {NEWEST_SCHEMA}: upgrade gpu-advisor, or profile the script itself."
                    )
            elif name == "deviceProperties":
                listed = value if isinstance(value, list) else []
                names = {str(device.get("name")) for device in listed if isinstance(device, dict)}
                recording.device_name = names.pop() if len(names) == 1 else None
            elif isinstance(value, Iterator):
                is_export = True
                for event in value:
                    try:
                        recording.take(event)
                    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
                        fault = f"{type(error).__name__}: {str(error)[:_LONGEST_FAULT]}"
                        raise TraceError(
                            f"{str(path)!r} has an event we cannot read: {fault} in {reprlib.repr(event)}."
                        ) from error
    if not is_export:
        raise TraceError(
            f"{str(path)!r} is neither a trace of advisor profile nor a profiler's export (it has no list"
            " 'traceEvents'). Write one with advisor profile, or with torch.profiler's export_chrome_trace."
        )
    return recording


def _host(event: JsonObject) -> HostEvent:
    begin_s = _seconds(event["ts"])
    return HostEvent(
        name=str(event["name"]), thread=_thread(event), begin_s=begin_s,
        end_s=begin_s + _seconds(event.get("dur", 0)), args=_args(event),
    )  # fmt: skip


def _launch(event: JsonObject) -> dict[int, CudaLaunch]:
    args = _args(event)
    correlation = args.get("correlation")
    if correlation is None:
        return {}
    begin_s = _seconds(event["ts"])
    return {correlation: CudaLaunch(thread=_thread(event), begin_s=begin_s, external_id=_external_id(args))}


def _device(event: JsonObject, kind: str) -> DeviceEvent:
    args = _args(event)
    return DeviceEvent(
        kind=kind, name=str(event["name"]), begin_s=_seconds(event["ts"]),
        duration_s=_seconds(event.get("dur", 0)), correlation=args.get("correlation"),
        external_id=_external_id(args), args=args,
    )  # fmt: skip


def _seconds(microseconds: object) -> float:
    seconds = float(_number(microseconds)) * _US
    if not math.isfinite(seconds):
        raise ValueError(f"a time of {seconds} s")
    return seconds


def _thread(event: JsonObject) -> str:
    return f"{event.get('pid')}/{event.get('tid')}"


def _args(event: JsonObject) -> Arguments:
    given = event.get("args") or {}
    if not isinstance(given, dict):
        raise TypeError(f"arguments that are a {type(given).__name__}")
    values = {str(name).lower(): value for name, value in given.items()}
    args: dict[str, object] = {}
    for name, kind in _KINDS.items():
        value = values.get(name)
        if kind is int and value is not None:
            args[name] = _whole(value)
        elif isinstance(value, list):
            args[name] = value if get_origin(kind) is list else tuple(map(_whole, value[:3]))
    return cast("Arguments", args)


def _number(value: object) -> str | float:
    if not isinstance(value, str | int | float):
        raise TypeError(f"a {type(value).__name__} in place of a number")
    return value


def _whole(value: object) -> int:
    number = int(_number(value))
    if abs(number) >= _MOST:
        raise ValueError(f"a number of {number.bit_length()} bits")
    return number


def _external_id(args: Arguments) -> int | None:
    # 0 stands for "none" where a kernel was launched outside of any operator.
    return args.get("external id") or None


# Kernels of a profiler's timeline as values, and equal launches counted together.


def kernels_of(events: Sequence[DeviceEvent]) -> tuple[Kernel, ...]:
    """The kernels among the events; none if one carries no grid, as launches of CUDA graphs do.

    Such operators are measured, but cannot be scaled by waves.
    """
    kernels = [event for event in events if event.kind == "kernel"]
    if not all(kernel.args.get("grid") and kernel.args.get("block") for kernel in kernels):
        return ()
    return tuple(
        Kernel(
            name=one.name, grid=_three(one.args["grid"]), block=_three(one.args["block"]),
            registers_per_thread=one.args.get("registers per thread"),
            shared_bytes=one.args.get("shared memory"), duration_s=one.duration_s,
        )
        for one in kernels
    )  # fmt: skip


def _three(numbers: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*map(int, numbers), 1, 1)[:3]
    return x, y, z


def merged(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Equal launches become one Op with a count and mean durations, in order of first appearance."""
    groups: dict[object, list[Op]] = {}
    for op in ops:
        launches = tuple(
            (k.name, k.grid, k.block, k.registers_per_thread, k.shared_bytes) for k in op.kernels
        )
        attributes = tuple(sorted(op.attributes.items()))
        key = (op.name, op.phase, op.inputs, op.outputs, attributes, op.flops, op.bytes, launches)
        groups.setdefault(key, []).append(op)
    return tuple(_mean(group) for group in groups.values())


def _mean(group: Sequence[Op]) -> Op:
    kernels = tuple(
        replace(same[0], duration_s=statistics.fmean(kernel.duration_s for kernel in same))
        for same in zip(*(op.kernels for op in group), strict=True)
    )
    measured_s = statistics.fmean(op.measured_s or 0.0 for op in group)
    return replace(group[0], count=len(group), measured_s=measured_s, kernels=kernels)


# Shapes, FLOPs and bytes of profiled operators, as far as a profile shows them.
#
# Profiles record inputs, not outputs. But each autograd node carries the sequence number of the forward
# operator it belongs to, and its input is the gradient of that operator's output, which has its shape.

_DTYPES = {
    "float": "float32", "double": "float64", "c10::half": "float16", "c10::bfloat16": "bfloat16",
    "long int": "int64", "long": "int64", "int": "int32", "short": "int16", "short int": "int16",
    "signed char": "int8", "unsigned char": "uint8", "bool": "bool",
}  # fmt: skip
_MOST_DIMENSIONS = 64
_MOST_SIZE = 2**63
Tensors = tuple[TensorSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Autograd:
    """What ties backward to forward."""

    forward: Mapping[int, HostEvent]
    """By sequence number, the forward operator that made the node."""
    nodes: Mapping[str, Sequence[HostEvent]]
    """By thread, autograd nodes in order of time."""
    output: Mapping[int, TensorSpec]
    """By sequence number, the shape of the forward operator's first output."""

    @classmethod
    def of(cls, operators: Sequence[HostEvent]) -> Autograd:
        """Sort a recording's operators into forward ones and nodes."""
        forward: dict[int, HostEvent] = {}
        nodes: dict[str, list[HostEvent]] = {}
        output: dict[int, TensorSpec] = {}
        for operator in operators:
            sequence = _sequence(operator)
            if sequence is None:
                continue
            if (operator.args.get("fwd thread id") or 0) > 0:
                nodes.setdefault(operator.thread, []).append(operator)
                for tensor in tensors_of(operator)[:1]:
                    output.setdefault(sequence, tensor)
            else:
                # The outermost comes first; the innermost one launches the kernels.
                forward[sequence] = operator
        return cls(forward=forward, nodes=nodes, output=output)

    def node_of(self, operator: HostEvent) -> HostEvent | None:
        """The autograd node that encloses an operator of the backward pass."""
        nodes = self.nodes.get(operator.thread, ())
        place = bisect.bisect_right(nodes, operator.begin_s, key=lambda node: node.begin_s)
        enclosing = (n for n in reversed(nodes[max(place - 4, 0) : place]) if n.end_s >= operator.end_s)
        return next(enclosing, None)


def tensors_of(operator: HostEvent) -> Tensors:
    """Tensor inputs; scalars and lists of numbers are left out. Without dtypes, float32."""
    dims = operator.args.get("input dims", [])
    types = operator.args.get("input type", [])
    tensors = []
    for i, shape in enumerate(dims):
        type_name = str(types[i]).lower() if i < len(types) else ""
        dtype = "float32" if not types else _DTYPES.get(type_name, "")
        # Products of absurd sizes would take for ever.
        if (
            dtype
            and isinstance(shape, list)
            and 0 < len(shape) <= _MOST_DIMENSIONS
            and all(isinstance(size, int) and 0 <= size < _MOST_SIZE for size in shape)
        ):
            tensors.append(TensorSpec(shape=tuple(shape), dtype=dtype))
    return tuple(tensors)


def cost_of_call(operator: HostEvent | None, inputs: Tensors, autograd: Autograd) -> tuple[Tensors, int, int]:
    """Outputs, FLOPs and bytes of one call; 0 where they cannot be known."""
    if operator is None or not inputs:
        return (), 0, 0
    name = operator.name.partition("::")[2].partition(".")[0]
    if "convolution" in name:
        return _convolution(operator, name, inputs, autograd)
    outputs = _outputs(operator, name, inputs, autograd)
    try:
        cost = cost_of(operator.name, inputs, outputs, {})
    except (IndexError, KeyError, ValueError, AssertionError):
        # An operator of an older PyTorch with the same name and other arguments.
        return outputs, 0, sum(map(tensor_bytes, (*inputs, *outputs)))
    return outputs, cost.flops, cost.bytes


def _outputs(operator: HostEvent, name: str, inputs: Tensors, autograd: Autograd) -> Tensors:
    if name.endswith("_"):
        return inputs[:1]
    if name in ("mm", "addmm", "bmm", "baddbmm") and len(inputs) >= 2:
        left, right = inputs[-2:]
        return (TensorSpec(shape=(*left.shape[:-1], right.shape[-1]), dtype=left.dtype),)
    sequence = _sequence(operator)
    if sequence is not None and sequence in autograd.output:
        return (autograd.output[sequence],)
    if name in ("sum", "mean", "nll_loss_forward", "nll_loss_nd"):
        return ()
    return (max(inputs, key=lambda tensor: math.prod(tensor.shape)),)


def _convolution(
    operator: HostEvent, name: str, inputs: Tensors, autograd: Autograd
) -> tuple[Tensors, int, int]:
    """A gradient of a convolution costs as much as the convolution itself; ``_backward`` makes both."""
    if "backward" not in name:
        sequence = _sequence(operator)
        result = autograd.output.get(sequence) if sequence is not None else None
        outputs = (result,) if result else ()
        return outputs, _multiply_adds(result, inputs), sum(map(tensor_bytes, (*inputs, *outputs)))
    node = autograd.node_of(operator)
    sequence = _sequence(node) if node else None
    forward = autograd.forward.get(sequence) if sequence is not None else None
    source = tensors_of(forward)[:2] if forward else ()
    gradient = autograd.output.get(sequence) if sequence is not None else None
    both = 2 if name == "convolution_backward" else 1
    flops = both * _multiply_adds(gradient, source)
    # One of the forward's inputs is not read here: its gradient is written instead.
    return (), flops, sum(map(tensor_bytes, source)) + (tensor_bytes(gradient) if gradient else 0)


def _multiply_adds(result: TensorSpec | None, inputs: Tensors) -> int:
    if result is None or len(inputs) < 2 or len(inputs[1].shape) < 3:
        return 0
    return 2 * math.prod(result.shape) * math.prod(inputs[1].shape[1:])


def _sequence(operator: HostEvent) -> int | None:
    value = operator.args.get("sequence number")
    return value if value is not None and value >= 0 else None
