"""What parent and child exchange: jobs, what was recorded and timed, and notices.

The child needs nothing but the standard library to load it; the parent checks results against these types.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal, NamedTuple, TypedDict, final

if sys.version_info >= (3, 11):
    from enum import StrEnum as StrEnum
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """Texts that are members of an enumeration."""

        __str__ = str.__str__


class LengthLimit(NamedTuple):
    """How long a text or a list may be."""

    least: int
    most: int


Name = Annotated[str, LengthLimit(0, 1000)]
Shape = Annotated[list[int], LengthLimit(0, 100)]
OperatorPhase = Literal["forward", "backward", "optimizer"]
CheckpointUse = Literal["resumes", "saves", "none"]
Origin = Literal["script", "pretended"]


class Status(StrEnum):
    """How a child ended."""

    OK = "ok"
    CRASHED = "crashed"
    NO_ITERATION = "no_iteration"
    NO_GPU_WORK = "no_gpu_work"
    NO_CUDA = "no_cuda"
    NEEDS_TORCHRUN = "needs_torchrun"
    MISSING_MODULE = "missing_module"
    NOT_PYTHON = "not_python"
    SYNTAX_ERROR = "syntax_error"
    OLD_PYTHON = "old_python"
    NO_TORCH = "no_torch"
    BROKEN_TORCH = "broken_torch"
    OLD_TORCH = "old_torch"
    STRANGE_TORCH = "strange_torch"
    FULL_MEMORY = "full_memory"
    LOST_DEVICE = "lost_device"
    FULL_DEVICE = "full_device"


# What a child tells while it runs: warnings, and how far it is.


class RunPhase(StrEnum):
    """What a run does at a time."""

    TORCH = "torch"
    SCRIPT = "script"
    EVALUATION = "evaluation"
    TRAINING = "training"
    MEASURING = "measuring"


class Warned(StrEnum):
    """What a child warns of: codes of ``core/findings/about_traces.py``, which the parent has words for."""

    OPERATOR_UNKNOWN = "operator-unknown"
    FAKE_DATA = "fake-data"
    COMPILE_SEEN = "compile-seen"
    ITERATION_SEEN = "iteration-seen"
    EVALUATION_SEEN = "evaluation-seen"
    PROFILE_LACKS = "profile-lacks"
    WORLD = "world"
    NOT_DONE = "not-done"
    BATCHES_WARM_UP = "batches-warm-up"
    OFFLOAD_UNCOUNTED = "offload-uncounted"
    TORCH_UNTESTED = "torch-untested"
    VARIABLES_WITHHELD = "variables-withheld"


Fact = str | int | float | bool | list[str] | None


class Notice(TypedDict):
    """A warning: which, and the facts of its words."""

    code: Name
    facts: dict[str, object]


def notice(code: Warned, **facts: Fact) -> Notice:
    """A warning with these facts."""
    return {"code": code, "facts": dict(facts)}


class Counts(TypedDict, total=False):
    """How far a run is; what is not known is None or left out.

    ``step`` is the optimizer step that is under way or, in an evaluation, was made last, of ``num_steps``;
    ``done`` are evaluated batches, or micro-steps of this optimizer step, of ``total``.
    """

    step: int | None
    num_steps: int | None
    done: int | None
    total: int | None


class ProgressLine(Counts):
    """A line of progress."""

    phase: RunPhase


# What the child writes of a script: its iteration, or what went wrong.


class Tensor(TypedDict):
    """A tensor by its form; a sparse COO one is two, indices and values. Other sparse ones have no stride."""

    shape: Shape
    dtype: Name
    stride: Shape | None


# The roles of operands that no call of the iteration made; flows are numbered from NUM_ROLES on.
OUTSIDE, PARAMETER, GRADIENT, NUM_ROLES = 0, 1, 2, 3


class OperatorFlow(TypedDict):
    """Calls whose operands come from calls of the same flows; those of one ``id`` from the same operators."""

    id: int
    count: int
    sources: list[int]  # of each operand the flow that made it, or its role
    new_parameters: int  # read by no earlier call of the operator
    forward: int | None  # whose gradient a backward call computes
    is_of_view: bool  # the gradient of a view of what that one made


class Operator(TypedDict):
    """Equal calls of one operator."""

    name: Name
    phase: OperatorPhase
    inputs: list[Tensor]
    outputs: list[Tensor]
    attributes: dict[str, object]
    count: int


class Memory(TypedDict):
    """Bytes by what they hold; those of passes alone are not known of a real GPU."""

    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    activation_bytes: int
    peak_bytes: int
    pass_activation_bytes: int | None
    pass_peak_bytes: int | None
    most_activation_bytes: int | None


class Communication(TypedDict):
    """Equal collectives."""

    kind: Name
    num_bytes: int | None
    world_size: int | None
    count: int


class Loading(TypedDict):
    """What the DataLoader that drives the training gave in the iteration, and what it holds."""

    fetches: int
    samples: int | None
    seconds: float | None
    cpu_seconds: float | None
    num_workers: int | None
    num_batches: int | None
    num_samples: int | None
    batch_sizes: Annotated[list[int], LengthLimit(2, 2)] | None
    is_dynamic: bool
    batch_variation: float | None
    rivals: list[int | None]


class Checkpointing(TypedDict):
    """What a script's text does with checkpoints, and where: ``train.py:41 torch.save``."""

    use: CheckpointUse
    saves: list[Name]
    loads: list[Name]


class Flags(TypedDict):
    """Where TF32 may replace FP32."""

    tf32_matmul: bool
    tf32_cudnn: bool


class Iteration(TypedDict, total=False):
    """What was recorded of one iteration."""

    operators: list[Operator]
    calls: list[list[int]]  # the numbers of each operator's calls
    flows: list[list[OperatorFlow]]  # of each operator; none of the optimizer's
    memory: Memory
    collectives: list[Communication]
    loading: Loading | None
    making_s: float | None  # of what the script copies to the GPU; None if not measured
    num_backward_passes: int
    num_optimizers: int
    most_steps: int
    amp_dtype: Name | None
    compile_mode: Name | None
    parallel_by: Name | None
    awaits_reductions: bool
    # Where steps differ: all operators of several, how often each step calls each, which one is recorded.
    step_operators: list[Operator]
    step_counts: list[list[int]]
    typical_step: int
    step_times_s: list[float]  # of a run whose steps are timed on the CPU, and nothing else
    # A real GPU adds them.
    iteration_s: float
    device_name: Name


class Details(Iteration, total=False):
    """All that a result may hold; which of it is there depends on the status."""

    backend: Name
    warnings: list[Notice]
    # Beside an iteration.
    precision: Flags
    versions: dict[str, str]
    world_size: int | None
    is_sharded: bool
    has_sparse_gradients: bool
    checkpoints: Checkpointing | None
    # Of what went wrong.
    message: str
    traceback: str
    internal: bool
    origin: Origin
    checks_made_up: bool
    torch: Name
    refused: list[str]
    withheld: list[str]
    counted_gpus: bool  # the script's own code asked how many there are, and got one
    fed_fake_data: bool
    num_spans: int
    num_processes: int
    # Of a syntax error, and of the script's own line in what else went wrong.
    is_script: bool
    file: str | None
    line: int | None
    text: str


class _Versioned(TypedDict):
    format_version: int
    status: Status


class Result(_Versioned, Details):
    """The result file."""


# What the child writes of kernels, a line each.


class KernelPrecision(Flags):
    """What a kernel was measured in."""

    amp_dtype: str | None


class MeasuringDevice(TypedDict):
    """What measures."""

    name: str
    compute_capability: str | None
    versions: dict[str, str | None]


@final
class DeviceLine(TypedDict):
    """The first line of a measuring process."""

    device: MeasuringDevice


@final
class ReferenceLine(TypedDict):
    """The reference product was measured."""

    reference_s: float


@final
class SkippedLine(TypedDict):
    """A case could not be measured."""

    case: str
    reason: str


class Timing(TypedDict):
    """A kernel's time."""

    operator: Operator
    precision: KernelPrecision
    time_s: float
    spread: float
    num_samples: int


@final
class MeasuredLine(Timing):
    """A case was measured."""

    case: str


MeasuringLine = DeviceLine | ReferenceLine | SkippedLine | MeasuredLine


# What the parent writes: what a child is to do.


class ChildJob(TypedDict):
    """What each job has, whatever is to be done."""

    version: int
    module: str  # of the payload, whose ``run`` takes the job
    result: str


class Gpu(TypedDict):
    """The GPU that the script believes it has."""

    name: str
    compute_capability: str
    num_sms: int
    memory_bytes: int


class SampleField(TypedDict):
    """A field of a fake sample: ``class`` of ``shape[0]`` classes, or a tensor of this dtype."""

    name: str | None
    shape: list[int]
    kind: str


class FakeSamples(TypedDict):
    """What takes the place of the script's data."""

    fields: list[SampleField]
    num_samples: int | None


class ScriptJob(ChildJob):
    """A script, or a function that is named like one."""

    script: str
    arguments: list[str]
    backend: str
    is_timed: bool  # on the CPU, steps are timed and nothing is recorded
    gpu: Gpu
    fake_data: FakeSamples | None
    world_size: int | None
    withheld: list[str]  # names of the user's variables that the script does not get
    memory_bytes: int | None  # of main memory that it may hold; None for no limit
    skip_patches: list[str]
    shortcuts: bool
    progress: str
    timeline: str


class OperatorCall(TypedDict):
    """One call of an operator, as ``advisor/operators/case.py`` describes its arguments."""

    operator: str
    arguments: list[object]
    keywords: dict[str, object]
    results: list[str]


class KernelCase(TypedDict):
    """A kernel to measure."""

    key: str
    dtype: str
    tf32: bool
    phase: OperatorPhase
    prepare: list[OperatorCall]
    call: OperatorCall


class MeasuringJob(ChildJob):
    """A grid of kernels."""

    backend: str
    cases: list[KernelCase]
    reference: KernelCase
    progress: str


# Of all that is written here; a job or a result of another version is not read.
VERSION = 11
# Begins the names of the marks that a watched call leaves in a profiler's timeline: "advisor#12".
MARK = "advisor#"
