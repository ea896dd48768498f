"""One iteration of a script: operators, kernels, memory."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from statistics import fmean
from typing import Annotated, NamedTuple

from advisor.core.findings import Finding
from advisor.core.notebook import html_of

AttributeValue = bool | int | float | str | None | tuple["AttributeValue", ...]


class Bounds(NamedTuple):
    """The least and the most that a number of a file may be (``formats/typed_json.py`` holds it to that)."""

    least: float = 0
    most: float = 2**63 - 1


class Depth(NamedTuple):
    """How deep lists of a file may lie in each other; what they hold may be any number or text."""

    most: int


ABOVE_0 = math.ulp(0.0)

Positive = Annotated[int, Bounds(1)]
Calls = Annotated[int, Bounds(0, 10**7)]
"""Of an iteration: some are listed one by one, and no file may fill our memory with them."""
SomeCalls = Annotated[int, Bounds(1, 10**7)]
Above0 = Annotated[float, Bounds(ABOVE_0, 1e9)]
InLaunch = Annotated[int, Bounds(0, 2**31 - 1)]
InGrid = Annotated[int, Bounds(1, 2**31 - 1)]


class Phase(StrEnum):
    """The part of an iteration an operator runs in."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


class Launch(StrEnum):
    """How the host launches the kernels of forward and backward passes."""

    EAGER = "eager"
    COMPILED = "compiled"
    GRAPH = "graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """Shape and dtype of a tensor; ``stride`` in elements (0 where a dimension is expanded)."""

    shape: tuple[int, ...]
    dtype: str
    stride: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One GPU kernel as a profiler saw it; None where it did not say."""

    name: str
    grid: tuple[InGrid, InGrid, InGrid]
    block: tuple[InGrid, InGrid, InGrid]
    registers_per_thread: InLaunch | None
    shared_bytes: InLaunch | None
    duration_s: float


class Role(IntEnum):
    """What an operand is that no call of the iteration made; other sources are numbers of flows."""

    OUTSIDE = 0
    PARAMETER = 1
    GRADIENT = 2  # of a parameter, as accumulated


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Calls of an operator whose operands come from the same flows."""

    id: Annotated[int, Bounds(len(Role))]
    """Of calls whose operands come from the same operators; several flows may share it."""
    count: SomeCalls
    sources: tuple[int, ...]
    """Of each operand the id of the flow that made or changed it last, or its `Role`."""
    new_parameters: Calls = 0
    """That the calls read, and none of the operator before them."""
    forward: int | None = None
    """Of a backward call the id of the flow whose gradient it computes; None if unknown."""
    is_of_view: bool = False
    """It computes the gradient of a view of what ``forward`` made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """An operator of one iteration; ``count`` equal calls are one entry."""

    name: str
    phase: Phase
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    attributes: Annotated[Mapping[str, AttributeValue], Depth(8)]
    flops: int
    """Floating-point operations of one call (a multiply-add is two)."""
    bytes: int
    """Bytes one call reads and writes in device memory."""
    count: SomeCalls
    measured_s: float | None = None
    """Device time of one call on the trace's origin GPU, None if not measured."""
    kernels: tuple[Kernel, ...] = ()
    flows: tuple[Flow, ...] = ()
    """Where operands of the calls come from, as recorded; empty if they were not followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Which shortcuts the script allows: autocast's dtype and where TF32 may replace FP32."""

    amp_dtype: str | None
    tf32_matmul: bool
    tf32_cudnn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Device memory of the steady state, as the allocator would count it (512-byte blocks).

    A profiler's trace tells the gradients at most; what it leaves out is None.
    """

    parameter_bytes: int | None
    gradient_bytes: int | None
    optimizer_bytes: int | None
    activation_bytes: int | None
    """What is alive at the peak besides parameters, gradients and optimizer state."""
    peak_bytes: int | None
    pass_activation_bytes: int | None = None
    """The same at the peak of forward and backward passes, which the optimizer's step may exceed."""
    pass_peak_bytes: int | None = None
    """The peak of those passes."""
    most_activation_bytes: int | None = None
    """The most that activations take in them, whatever else is there by then."""

    @property
    def state_bytes(self) -> int:
        """Parameters, gradients and optimizer state, as far as they are known."""
        return sum(part or 0 for part in (self.parameter_bytes, self.gradient_bytes, self.optimizer_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One communication the script does per iteration, such as the all-reduce of a DDP bucket.

    A profiler's trace tells that there is one, not how large it is.
    """

    kind: str
    num_bytes: int | None
    """Of the whole: what a gather gives, a scatter takes, a reduction works on."""
    world_size: Positive | None
    """Processes of its group, which may be a part of all."""
    count: Calls


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWork:
    """What one process takes of an optimizer step in a world of some size."""

    world_size: Positive
    batch_size: Positive | None
    """Samples, accumulation included; None if unknown."""
    accumulation: Positive
    """Forward-backward passes."""
    flops: int
    """Floating-point operations."""


class CheckpointUse(StrEnum):
    """What a script does with checkpoints."""

    RESUMES = "resumes"  # it saves them while it trains, and goes on from the last one
    SAVES = "saves"  # it saves them, and cannot go on from one
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """What a script's text does with checkpoints, and the lines that show it."""

    use: CheckpointUse
    saves: tuple[str, ...] = ()
    """Where it saves while it trains: ``train.py:41 torch.save``."""
    loads: tuple[str, ...] = ()
    """Where it reads such a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """What one of several recorded steps did, over what the trace's operators do."""

    work: Above0
    """Time on a GPU, by its FLOPs and bytes."""
    calls: Above0
    """Of operators, which the host launches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One steady iteration (one optimizer step) of a training script, and what an epoch holds."""

    schema_version: int
    script: str
    arguments: tuple[str, ...]
    backend: str
    origin_gpu: str | None
    versions: Mapping[str, str]
    precision: Precision
    batch_size: Positive | None
    """Samples one GPU processes per iteration, accumulation included; None if unknown."""
    samples_per_epoch: int | None
    """None if the script's data has no length."""
    iterations_per_epoch: int | None
    """Optimizer steps per epoch on one GPU; None if unknown."""
    accumulation: Positive
    """Forward-backward passes per optimizer step."""
    ops: tuple[Op, ...]
    iteration_s: Above0 | None
    """Measured without a profiler beside it, None from a fake backend."""
    data_loading_s: float | None
    """Seconds in which one process loads one iteration's samples: its CPU's and those of disks and networks,
    not those in which other work has the cores."""
    num_workers: int | None
    """Data-loading processes the script asks for; 0 of a script that makes its samples itself."""
    memory: MemoryUse
    collectives: tuple[Collective, ...]
    warnings: tuple[Finding, ...]
    world_size: Positive | None = None
    """Processes of which the traced one was rank 0; None where the script made no group."""
    is_sharded: bool = False
    """The traced process was seen to hold a part of each of some parameters; alone, all parts."""
    has_sparse_gradients: bool = False
    """A gradient on the GPU was a sparse tensor; False where the profiler cannot tell."""
    work_elsewhere: RankWork | None = None
    """Of the script in a world of another size, which shows what it does with its batch when GPUs are added;
    None if it was profiled in one world."""
    loader_cpu_s_per_sample: float | None = None
    """CPU seconds to load one sample, all threads and children; None if nobody measured them."""
    compile_mode: str | None = None
    """Of torch.compile, under which most of the forward pass runs; operators are those of eager mode. None
    where it does not."""
    launch: Launch = Launch.EAGER
    """Of the kernels of forward and backward passes."""
    batch_variation: float | None = None
    """Standard deviation over the mean of what batches of one process hold (padded tokens, pixels), 0 where
    all are alike; None if unknown."""
    parallel_by: str | None = None
    """The library that steps the optimizer and makes it data parallel by itself, such as "transformers"; None
    of a script that does so itself, or not at all."""
    awaits_reductions: bool = False
    """Work stopped until gradients were reduced, piece by piece; False where the profiler cannot tell."""
    checkpoints: Checkpoints | None = None
    """What the script's text does with them; None where not looked at, or where a library that we do not know
    has the loop."""
    steps: tuple[RecordedStep, ...] = ()
    """Recorded ones, where they differ (layerdrop, sequences of any length); ``ops`` are of the one nearest
    to their mean. Empty where all are alike or unknown."""

    @property
    def flops(self) -> int:
        """Floating-point operations of the iteration."""
        return round(sum(op.flops * op.count for op in self.ops) * self.mean_step.work)

    @property
    def mean_step(self) -> RecordedStep:
        """Of the steps, over what the trace's operators do."""
        if not self.steps:
            return RecordedStep(work=1.0, calls=1.0)
        return RecordedStep(
            work=fmean(step.work for step in self.steps), calls=fmean(step.calls for step in self.steps)
        )

    def _repr_html_(self) -> str | None:
        """A table in a notebook."""
        return html_of(self)
