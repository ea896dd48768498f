"""The steps of cuDNN's recurrent layers, which wait for each other.

cuDNN multiplies the inputs of all steps at once. Then each step multiplies its states with the recurrent
weights, reads these again and ends with the element-wise work of the gates; the backward pass takes the same
steps with the weights transposed, and the gradients of all weights at once. Source: Appleyard, Kocisky,
Blunsom, "Optimizing Performance of Recurrent Neural Networks on GPUs", 2016.

Layers and directions are taken one after the other, and weights from device memory: cuDNN may overlap the
former and keep the latter in caches or registers, so small layers can be faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from advisor.core.values import Op
from advisor.operators.families import base_name

LAYERS = ("_cudnn_rnn", "_cudnn_rnn_backward")
# A thread block of a product computes 64 x 64 outputs over a depth of 512. Of the blocks tried it comes
# nearest to NeuSight's FP32 products of few waves (V100, A100: 11 to 20 % off on average for depths from
# 512). Tensor cores were not measured: assumed the same.
_BLOCK_OUTPUTS, _BLOCK_DEPTH = 64 * 64, 512
# cuDNN's numbers of the cells: plain with ReLU or tanh, LSTM, GRU.
_GATES = {0: 1, 1: 1, 2: 4, 3: 3}
_ELEMENT_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The products of a recurrent operator that wait for each other, all of one shape but for the rows.

    Attributes:
        num_by_rows: how many steps have how many sequences, over all layers and directions.
        outputs: columns of a step's product.
        depth: what it sums over.
        weight_bytes: what each step reads again.
        num_kernels: launches of a step.
    """

    num_by_rows: Mapping[int, int]
    outputs: int
    depth: int
    weight_bytes: int
    num_kernels: int

    @property
    def flops(self) -> int:
        """Of all steps; the rest of the operator's FLOPs are products of all steps at once."""
        return 2 * self.outputs * self.depth * sum(rows * num for rows, num in self.num_by_rows.items())

    def time_s(self, *, num_sms: int, flops_per_s: float, bytes_per_s: float, launch_s: float) -> float:
        """Seconds of all steps: of each ``max(waves of blocks, weights / bandwidth) + launches``.

        Args:
            num_sms: of the GPU; a wave is a block on each, and a started wave counts whole.
            flops_per_s: what all of them reach with large products.
            bytes_per_s: what the memory reaches.
            launch_s: of one kernel.
        """
        weights_s = self.weight_bytes / bytes_per_s
        block_s = 2 * _BLOCK_OUTPUTS * min(self.depth, _BLOCK_DEPTH) * num_sms / flops_per_s

        def step_s(rows: int) -> float:
            blocks = ceil(rows * self.outputs / _BLOCK_OUTPUTS) * ceil(self.depth / _BLOCK_DEPTH)
            return max(ceil(blocks / num_sms) * block_s, weights_s) + self.num_kernels * launch_s

        return sum(num * step_s(rows) for rows, num in self.num_by_rows.items())


def steps_of(op: Op) -> Steps | None:
    """The steps of cuDNN's layers; None for single cells, and where the trace does not tell the sizes."""
    numbers = {name: value for name, value in op.attributes.items() if isinstance(value, int)}
    gates = _GATES.get(numbers.get("mode", -1), 0)
    hidden, layers = numbers.get("hidden_size", 0), numbers.get("num_layers", 0)
    num_by_rows = _num_by_rows(op)
    if base_name(op.name) not in LAYERS or min(gates, hidden, layers, len(num_by_rows)) < 1:
        return None
    projected = max(numbers.get("proj_size", 0), 0)
    # A projection multiplies the cell's outputs once more: columns of the same depth cost the same.
    outputs, depth = gates * hidden + (hidden if projected else 0), projected or hidden
    if base_name(op.name).endswith("_backward"):
        outputs, depth = depth, outputs
    passes = layers * (2 if numbers.get("bidirectional") else 1)
    return Steps(
        num_by_rows={rows: passes * num for rows, num in num_by_rows.items()},
        outputs=outputs,
        depth=depth,
        weight_bytes=outputs * depth * _ELEMENT_BYTES.get(op.inputs[0].dtype, 4),
        num_kernels=3 if projected else 2,
    )


def _num_by_rows(op: Op) -> Mapping[int, int]:
    """How many steps have how many sequences; empty where the trace does not tell."""
    packed, shape = op.attributes.get("batch_sizes"), op.inputs[0].shape if op.inputs else ()
    if isinstance(packed, tuple) and packed:
        return Counter(rows for rows in packed if isinstance(rows, int) and rows > 0) if shape else {}
    if len(shape) != 3:
        return {}
    rows, steps = shape[:2] if op.attributes.get("batch_first") else shape[1::-1]
    return {rows: steps} if min(rows, steps) > 0 else {}
