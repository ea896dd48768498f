"""FLOPs and bytes of one operator call, from what was recorded; no torch.

Bytes are device-memory traffic if every element were read and written once: a lower bound that good
kernels reach. Expanded dimensions (stride 0) count once. Copies between host and device
(``advisor::h2d_copy``, ``advisor::d2h_copy``) cross PCIe: their bytes are those of the GPU's side, and a
predictor costs them by the link.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.findings import Code, Finding, finding
from advisor.operators.registry import rows
from advisor.operators.work import Attributes, Tensors, each_once

# Words in the names of operators that compute in earnest: without a formula their time is unknown.
_HEAVY_WORDS = (
    "conv", "mm", "matmul", "attention", "rnn", "lstm", "gru", "fft", "linalg", "cdist", "einsum",
    "svd", "cholesky", "solve", "inverse", "bilinear",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one call costs.

    Attributes:
        flops: 0 where no formula is known.
        bytes: read and written in device memory.
        warning: set if the operator computes and no formula is known.
    """

    flops: int
    bytes: int
    warning: Finding | None = None


def cost_of(name: str, inputs: Tensors, outputs: Tensors, attributes: Attributes) -> Cost:
    """Cost of one call of an operator.

    >>> from advisor.core.values import TensorSpec
    >>> vector = TensorSpec(shape=(1000,), dtype="float32")
    >>> cost_of("aten::add", [vector, vector], [vector], {})
    Cost(flops=1000, bytes=12000, warning=None)
    """
    warning = None
    flops = flops_of(name, inputs, outputs, attributes)
    if flops is None and _is_heavy(name):
        warning = finding(Code.NO_FLOP_FORMULA, operator=name)
    base, table = name.removeprefix("aten::"), rows().traffic
    traffic = table.get(base) or table.get(base.rstrip("_"), each_once)
    return Cost(flops=flops or 0, bytes=traffic(inputs, outputs, attributes), warning=warning)


def flops_of(name: str, inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int | None:
    """FLOPs of one call; None if no formula is known for the operator.

    >>> from advisor.core.values import TensorSpec
    >>> square = TensorSpec(shape=(4, 4), dtype="float32")
    >>> flops_of("aten::mm", [square, square], [square], {})
    128
    """
    base = name.removeprefix("aten::")
    formula = rows().flops.get(base)
    if formula is not None:
        return formula(inputs, outputs, attributes)
    nominal = rows().nominal.get(base.rstrip("_").removeprefix("_foreach_"))
    if nominal is None:
        return 0 if name.startswith("advisor::") else None
    is_list = base.startswith("_foreach_")
    return nominal.flops(*((inputs, outputs) if is_list else (inputs[:1], outputs[:1])))


def _is_heavy(name: str) -> bool:
    return not name.startswith(("aten::", "fsdp::")) or any(word in name for word in _HEAVY_WORDS)
