"""What a profiling process may write as its result: checked in form before anything else looks at it.

A script can write such a file, too. The parser stops at 200 levels, and at the first fault in a list;
``trace_checks`` looks at the numbers.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, Required, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter
from typing_extensions import TypedDict

# Those of payload/run.py, payload/syntax.py, payload/checking.py and payload/measuring/run.py.
Status = Literal[
    "ok", "crashed", "no_iteration", "no_gpu_work", "no_cuda", "needs_torchrun", "missing_module",
    "not_python", "syntax_error", "no_torch", "broken_torch", "old_torch", "strange_torch",
    "lost_device", "full_device",
]  # fmt: skip
Item = TypeVar("Item")
# One fault is enough: a million would take gigabytes to tell.
Listed = Annotated[list[Item], Field(fail_fast=True)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=1000)]
Shape = Annotated[list[Count], Field(max_length=100, fail_fast=True)]
# Of mappings too each value would be a fault of its own; ``trace_checks`` stops at the first.
Unchecked = dict[str, Any]

# A million unknown fields would be a million faults; nobody looks at them.
_STRICT = ConfigDict(strict=True, extra="allow")


class Tensor(TypedDict):
    """A tensor as ``trace_io.tensor_from_json`` takes it."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    shape: Shape
    dtype: Name
    stride: Shape | None


class Operator(TypedDict):
    """Equal calls of one operator."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    name: Name
    phase: Literal["forward", "backward", "optimizer"]
    inputs: Listed[Tensor]
    outputs: Listed[Tensor]
    attributes: Unchecked
    count: Count


class Memory(TypedDict):
    """The arguments of ``MemoryUse``."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    parameter_bytes: Count
    gradient_bytes: Count
    optimizer_bytes: Count
    activation_bytes: Count
    peak_bytes: Count


class Communication(TypedDict):
    """The arguments of ``Collective``."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    kind: Name
    num_bytes: Count | None
    world_size: Count | None
    count: Count


class Loading(TypedDict):
    """What the DataLoader gave; ``epoch.py`` reads it."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    fetches: Count
    samples: Count | None
    seconds: Seconds | None
    num_workers: Count | None
    num_batches: Count | None
    num_samples: Count | None
    batch_sizes: Annotated[list[Count], Field(min_length=2, max_length=2)] | None
    is_dynamic: bool
    rivals: Listed[Count | None]


class Flags(TypedDict):
    """Where TF32 may replace FP32."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    tf32_matmul: bool
    tf32_cudnn: bool


class Result(TypedDict, total=False):
    """All that a result may hold; which of it must be there depends on the status."""

    __pydantic_config__ = _STRICT  # type: ignore[misc]
    format_version: Required[int]
    status: Required[Status]
    backend: Name
    # Of what went wrong.
    message: str
    traceback: str
    internal: bool
    origin: Literal["script", "pretended"]
    checks_made_up: bool
    torch: Name
    refused: Listed[str]
    fed_fake_data: bool
    num_spans: Count
    num_processes: Count
    # Of a syntax error.
    is_script: bool
    file: str | None
    line: Count | None
    text: str
    # Of an iteration.
    operators: Listed[Operator]
    calls: Listed[Listed[Count]]
    memory: Memory
    collectives: Listed[Communication]
    loading: Loading | None
    num_backward_passes: Count
    num_optimizers: Count
    most_steps: Count
    amp_dtype: Name | None
    precision: Flags
    versions: Unchecked
    warnings: Listed[str]
    world_size: Count | None
    is_sharded: bool
    # Of a real GPU.
    iteration_s: Seconds
    device_name: Name


@cache
def result_adapter() -> TypeAdapter[Result]:
    """Made once; that takes some milliseconds."""
    return TypeAdapter(Result)
