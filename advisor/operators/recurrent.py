"""Recurrent layers: their steps wait for each other.

cuDNN multiplies the inputs of all steps at once. Then each step multiplies its states with the recurrent
weights, reads these again and ends with the element-wise work of the gates; the backward pass takes the same
steps with the weights transposed, and the gradients of all weights at once. Source: Appleyard, Kocisky,
Blunsom, "Optimizing Performance of Recurrent Neural Networks on GPUs", 2016.

Layers and directions are taken one after the other: cuDNN may overlap them, so several small layers can be
faster.
"""

import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import cast

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import RatesFrom, RecurrentOfUnknownSize
from advisor.core.gpus import catalog_path
from advisor.core.values import GpuSpec, Op, Phase
from advisor.operators import family
from advisor.operators.case import RATES, Argument, Caps, Case, Draw, call, result, shrunk, tensor
from advisor.operators.work import Attributes, PerElement, Tensors

# Tensor cores take rows by this many.
_ROWS = 32
# Bytes that a gate's element-wise work moves for each of its outputs.
_GATE_BYTES = 16
# The clock that latencies are given for, and how they grow with H: of 1, 1.3 and 1.6
# chosen by the errors of held-out shapes, which therefore judge a little too kindly.
_CLOCK_HZ = 1.5e9
_GROWTH = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentSteps:
    """The products of a recurrent operator that wait for each other, all of one shape but for the rows."""

    num_by_rows: Mapping[int, int]
    """How many steps have how many sequences, over all layers and directions."""
    outputs: int
    """Columns of a step's product."""
    depth: int
    """What it sums over."""
    weight_bytes: int
    """What each step reads again."""
    gates: int
    """G; 1 for a plain cell."""
    hidden: int
    """H."""
    is_backward: bool

    @property
    def flops(self) -> int:
        """Of all steps; the rest of the operator's FLOPs are products of all steps at once."""
        return 2 * self.outputs * self.depth * sum(rows * num for rows, num in self.num_by_rows.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConstants:
    """What the steps of one rate and direction cost."""

    cell_s: Mapping[int, float]
    """By number of gates."""
    latency_s: float
    """Of 1,000 hidden units at 1.5 GHz."""
    compute: float
    """Share of the peak FLOP rate."""
    memory: float
    """Share of the bandwidth at which weights come."""
    traffic: float
    """How often the gates' bytes pass."""


def steps_time_s(
    steps: RecurrentSteps, constants: StepConstants, gpu: GpuSpec, peak_flops_per_s: float
) -> float:
    """Seconds of all steps."""
    latency_s = constants.latency_s * math.pow(steps.hidden / 1000, _GROWTH) * _CLOCK_HZ / gpu.boost_clock_hz
    memory_s = steps.weight_bytes / (constants.memory * gpu.memory_bytes_per_s)
    row_flops = 2 * steps.outputs * steps.depth
    gate_bytes = constants.traffic * _GATE_BYTES * steps.gates * steps.hidden

    def step_s(rows: int) -> float:
        compute_s = -(-rows // _ROWS) * _ROWS * row_flops / (constants.compute * peak_flops_per_s)
        gates_s = rows * gate_bytes / gpu.memory_bytes_per_s
        return constants.cell_s[steps.gates] + latency_s + max(compute_s, memory_s) + gates_s

    return math.fsum(num * step_s(rows) for rows, num in steps.num_by_rows.items())


@cache
def step_constants() -> Mapping[tuple[str, bool], StepConstants]:
    """Those of ``catalogs/recurrent.toml``, by ``"vector"`` or ``"tensor"`` and whether it is backward.

    Raises CatalogError: the file is missing.
    """
    document = tomllib.loads(catalog_path("recurrent.toml").read_text(encoding="utf-8"))
    return {
        (cores, direction == "backward"): StepConstants(
            **table | {"cell_s": {int(gates): seconds for gates, seconds in table["cell_s"].items()}}
        )
        for cores, directions in document["steps"].items()
        for direction, table in directions.items()
    }


_ELEMENT_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
_CUDA_CORES = (".fp32", ".fp64", ".fp16_vector")
_LAYERS = ("_cudnn_rnn", "_cudnn_rnn_backward")
# cuDNN's numbers of the cells: plain with ReLU or tanh, LSTM, GRU.
_LSTM, _GRU = 2, 3
_GATES = {0: 1, 1: 1, _LSTM: 4, _GRU: 3}
# Layers whose sizes were not recorded get this share of the rate of products. Assumed, not measured.
UNKNOWN_SHARE = 0.3
# What is left of it in a step holds 79 % of a translator's on 16 boards (research/docs/accuracy/lambda.md).
_SIGMA = 0.33
STEPWISE = RatesFrom(of="step-by-step")
UNKNOWN_STEPS = RecurrentOfUnknownSize(share_of_rate=UNKNOWN_SHARE)


def _forward(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    def number(name: str) -> int:
        return cast("int", attributes[name])

    data = inputs[0]
    hidden = number("hidden_size")
    state = number("proj_size") or hidden
    directions = 2 if attributes["bidirectional"] else 1
    gates, layers = _GATES[number("mode")], number("num_layers")
    # The first layer's columns are the input's, of the others the states'; each has a state of its own.
    widths = data.shape[-1] + (layers - 1) * state * directions + layers * state
    rows = 2 * prod(data.shape[:-1]) * directions
    return rows * hidden * (gates * widths + layers * number("proj_size"))


def steps_of(op: Op) -> RecurrentSteps | None:
    """The steps of cuDNN's layers; None for single cells, and where the trace does not tell the sizes."""
    numbers = {name: value for name, value in op.attributes.items() if isinstance(value, int)}
    gates = _GATES.get(numbers.get("mode", -1), 0)
    hidden, layers = numbers.get("hidden_size", 0), numbers.get("num_layers", 0)
    num_by_rows = _num_by_rows(op)
    if family.base_name(op.name) not in _LAYERS or min(gates, hidden, layers, len(num_by_rows)) < 1:
        return None
    projected = max(numbers.get("proj_size", 0), 0)
    # A projection multiplies the cell's outputs once more: columns of the same depth cost the same.
    outputs, depth = gates * hidden + (hidden if projected else 0), projected or hidden
    is_backward = family.base_name(op.name).endswith("_backward")
    if is_backward:
        outputs, depth = depth, outputs
    passes = layers * (2 if numbers.get("bidirectional") else 1)
    return RecurrentSteps(
        num_by_rows={rows: passes * num for rows, num in num_by_rows.items()},
        outputs=outputs,
        depth=depth,
        weight_bytes=outputs * depth * _ELEMENT_BYTES.get(op.inputs[0].dtype, 4),
        gates=gates,
        hidden=hidden,
        is_backward=is_backward,
    )


def _num_by_rows(op: Op) -> Mapping[int, int]:
    packed, shape = op.attributes.get("batch_sizes"), op.inputs[0].shape if op.inputs else ()
    if isinstance(packed, tuple) and packed:
        return Counter(rows for rows in packed if isinstance(rows, int) and rows > 0) if shape else {}
    if len(shape) != 3:
        return {}
    rows, steps = shape[:2] if op.attributes.get("batch_first") else shape[1::-1]
    return {rows: steps} if min(rows, steps) > 0 else {}


def _time(op: Op, roofs: family.Roofs) -> family.RooflineTime:
    steps = steps_of(op)
    if steps is None:
        return family.higher_roof(op, roofs)
    flops_per_s, bytes_per_s = roofs.rate.flops_per_s, roofs.bytes_per_s
    at_once_s = max((op.flops - steps.flops) / flops_per_s, op.bytes / bytes_per_s)
    time_s = roofs.launch_s + at_once_s + _steps_s(op, steps, roofs)
    return family.RooflineTime(time_s=time_s, constant=roofs.rate.constant)


def _steps_s(op: Op, steps: RecurrentSteps, roofs: family.Roofs) -> float:
    """Seconds of the steps; TF32 was not measured, and counts where it is the faster."""

    def of_cores(cores: str, peak_flops_per_s: float) -> float:
        constants = step_constants()[cores, steps.is_backward]
        return steps_time_s(steps, constants, roofs.gpu, peak_flops_per_s)

    peak = roofs.rate.peak_flops_per_s
    if roofs.rate.constant.endswith(_CUDA_CORES):
        return of_cores("vector", peak)
    tensor = of_cores("tensor", peak)
    if op.inputs[0].dtype != "float32":
        return tensor
    return min(tensor, of_cores("vector", roofs.gpu.vector_flops_per_s["fp32"]))


def _caveat(op: Op) -> Finding | None:
    if family.base_name(op.name) not in _LAYERS:
        return None
    return STEPWISE if steps_of(op) else UNKNOWN_STEPS


def _cases(index: int, caps: Caps) -> Iterator[Case]:
    """LSTM and GRU layers at one rate, forward and backward; their weights lie in one buffer."""
    draw = Draw("rnn", index)
    dtype, tf32 = draw.choice(RATES)
    mode, layers = draw.choice((_LSTM, _GRU)), draw.choice((1, 1, 2, 3))
    steps, batch, width, hidden = _recurrent_sizes(draw, caps, (dtype, tf32), _GATES[mode], layers)
    data = tensor((steps, batch, width), dtype, name="data")
    state = tensor((layers, batch, hidden), dtype, name="state")
    cell = tensor((layers, batch, hidden), dtype, name="cell") if mode == _LSTM else None
    weights = _weights(width, hidden, layers, _GATES[mode], dtype)
    shape: tuple[Argument, ...] = (mode, hidden, 0, layers, False)
    flatten = call("_cudnn_rnn_flatten_weight", weights, 4, width, *shape, False, results=("buffer",))
    how = (*shape, 0.0, True, False, [], None)
    forward = call(
        "_cudnn_rnn", data, weights, 4, result("buffer"), state, cell, *how,
        results=("output", "last_state", "last_cell", "reserve"),
    )  # fmt: skip
    backward = call(
        "_cudnn_rnn_backward", data, weights, 4, result("buffer"), state, cell, result("output"),
        tensor((steps, batch, hidden), dtype), None, None, *how, result("reserve"),
        [True, False, False, True],
    )  # fmt: skip
    yield Case(family="rnn", dtype=dtype, tf32=tf32, prepare=(flatten,), call=forward)
    yield Case(
        family="rnn", dtype=dtype, tf32=tf32, prepare=(flatten, forward), call=backward,
        phase=Phase.BACKWARD,
    )  # fmt: skip


def _recurrent_sizes(
    draw: Draw, caps: Caps, rate: tuple[str, bool], gates: int, layers: int
) -> tuple[int, ...]:
    dtype, tf32 = rate
    sizes = draw.size(8, 256), draw.size(8, 256), draw.size(64, 1024, 8), draw.size(64, 1024, 8)

    def fits(steps: int, batch: int, width: int, hidden: int) -> bool:
        flops = 2 * layers * steps * batch * gates * hidden * (width + 2 * hidden)
        elements = steps * batch * (width + layers * (gates + 2) * hidden)
        return caps.allow(2 * elements, dtype, flops=2 * flops, tf32=tf32)

    return shrunk(sizes, fits)


def _weights(width: int, hidden: int, layers: int, gates: int, dtype: str) -> list[Argument]:
    """For each layer the weights of input and state, and their biases, as ``torch.nn.LSTM`` has them."""
    rows = gates * hidden
    return [
        tensor(shape, dtype, name=f"weight {layer} {position}")
        for layer in range(layers)
        for position, shape in enumerate(
            ((rows, width if layer == 0 else hidden), (rows, hidden), (rows,), (rows,))
        )
    ]


RECURRENT = family.Family(
    word="recurrent",
    others=family.names("_thnn_fused_lstm_cell_backward_impl _thnn_fused_gru_cell_backward"),
    flops={"_cudnn_rnn": _forward, "_cudnn_rnn_backward": lambda *call: 2 * _forward(*call)},
    nominal=family.each("_thnn_fused_lstm_cell _thnn_fused_gru_cell", PerElement(of_output=10)),
    compute=family.Compute(
        fraction="gemm_fraction",
        tensor_cores=True,
        tf32=family.Tf32Flag.CUDNN,
        share=lambda op: 1.0 if steps_of(op) else UNKNOWN_SHARE,
    ),
    time=_time,
    sigma=_SIGMA,
    caveat=_caveat,
    cases={"rnn": _cases},
)
