"""What the child writes of a script: its iteration, or what went wrong."""

from __future__ import annotations

from typing import Annotated, TypedDict

from .kinds import Length, Name, OperatorPhase, Origin, Shape, Status
from .notices import Notice


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
    batch_sizes: Annotated[list[int], Length(2, 2)] | None
    is_dynamic: bool
    batch_variation: float | None
    rivals: list[int | None]


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
    # Of what went wrong.
    message: str
    traceback: str
    internal: bool
    origin: Origin
    checks_made_up: bool
    torch: Name
    refused: list[str]
    withheld: list[str]
    fed_fake_data: bool
    num_spans: int
    num_processes: int
    # Of a syntax error.
    is_script: bool
    file: str | None
    line: int | None
    text: str


class _Versioned(TypedDict):
    format_version: int
    status: Status


class Result(_Versioned, Details):
    """The result file."""
