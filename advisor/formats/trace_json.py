"""A trace as JSON holds it; whether a file does is known once `check_trace` has seen the values."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from advisor.core.values import Op

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
