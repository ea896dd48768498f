"""The table of operator families, and what follows from it: which family an operator is of, and its rows.

A new family is one file with one ``Family`` and one row of ``FAMILIES``; all rooms read it from here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from advisor.core.findings import Finding
from advisor.core.findings.about_traces import OperatorUnknown
from advisor.core.values import Op, Phase
from advisor.operators.attention import ATTENTION
from advisor.operators.convolution import CONVOLUTION
from advisor.operators.elementwise import ELEMENTWISE, TRANSFER
from advisor.operators.embedding import EMBEDDING
from advisor.operators.family import Family, Generate, Learned, base_name
from advisor.operators.gemm import GEMM
from advisor.operators.norm import NORM
from advisor.operators.optimizer import OPTIMIZER
from advisor.operators.recurrent import RECURRENT
from advisor.operators.reduction import REDUCTION
from advisor.operators.work import Attributes, Formula, PerElement, Tensors, each_once

FAMILIES: tuple[Family, ...] = (
    GEMM, CONVOLUTION, RECURRENT, ATTENTION, NORM, ELEMENTWISE, REDUCTION, EMBEDDING, OPTIMIZER, TRANSFER,
)  # fmt: skip
# Most operators stream through memory: so does, as far as anybody knows, one that is in no table.
_DEFAULT = ELEMENTWISE
# Namespaces of PyTorch and of this program.
_KNOWN = ("aten::", "advisor::", "prims::", "c10d::", "_c10d_functional::", "fsdp::")
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The families' tables as one of each kind, and each network with its family."""

    families: tuple[Family, ...]
    family: Mapping[str, Family]
    flops: Mapping[str, Formula]
    nominal: Mapping[str, PerElement]
    traffic: Mapping[str, Formula]
    network: Mapping[str, tuple[Family, Learned]]
    networks_of_name: Mapping[str, tuple[Learned, ...]]
    cases: Mapping[str, Generate]


def joined(families: tuple[Family, ...]) -> Rows:
    """The tables of several families. Raises ValueError: two of them claim one name."""
    learned = [(family, network) for family in families for network in family.learned]
    known = {name for family in families for network in family.learned for name in network.names}
    networks = [network for family in families for network in family.learned]
    return Rows(
        families=families,
        family=_table((name, family) for family in families for name in family.names),
        flops=_table(row for family in families for row in family.flops.items()),
        nominal=_table(row for family in families for row in family.nominal.items()),
        traffic=_table(row for family in families for row in family.traffic.items()),
        network=_table((network.name, (family, network)) for family, network in learned),
        networks_of_name={
            name: tuple(network for network in networks if name in network.names) for name in sorted(known)
        },
        cases=_table(row for family in families for row in family.cases.items()),
    )


def _table(pairs: Iterable[tuple[str, Row]]) -> dict[str, Row]:
    table: dict[str, Row] = {}
    for name, row in pairs:
        if name in table:
            raise ValueError(f"{name!r} stands in the tables of two families")
        table[name] = row
    return table


_ROWS = joined(FAMILIES)


def rows() -> Rows:
    """The tables of all families."""
    return _ROWS


def family_of(op: Op) -> Family:
    """The family of an operator; what streams through memory in the optimizer's phase is the optimizer's."""
    return _family(op.name, op.phase)


@cache
def _family(op_name: str, phase: Phase) -> Family:
    family = rows().family.get(base_name(op_name), _DEFAULT)
    return OPTIMIZER if phase is Phase.OPTIMIZER and family.word == _DEFAULT.word else family


def is_known(op: Op) -> bool:
    """False for an operator that no PyTorch release defines: a custom one, whose work is unknown."""
    return op.name.startswith(_KNOWN)


def constants() -> Mapping[str, bool]:
    """The fitted constants of all families, and whether each has one value for each rate."""
    families = rows().families
    return {family.bandwidth: False for family in families} | {
        family.compute.fraction: True for family in families
    }


# FLOPs and bytes of one operator call, from what was recorded; no torch.
#
# Bytes are device-memory traffic if every element were read and written once: a lower bound that good
# kernels reach. Expanded dimensions (stride 0) count once. Copies between host and device
# (``advisor::h2d_copy``, ``advisor::d2h_copy``) cross PCIe: their bytes are those of the GPU's side, and a
# predictor costs them by the link.

# Words in the names of operators that compute in earnest: without a formula their time is unknown.
_HEAVY_WORDS = (
    "conv", "mm", "matmul", "attention", "rnn", "lstm", "gru", "fft", "linalg", "cdist", "einsum",
    "svd", "cholesky", "solve", "inverse", "bilinear",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one call costs."""

    flops: int
    """0 where no formula is known."""
    bytes: int
    warning: Finding | None = None
    """Set if the operator computes and no formula is known."""


def cost_of(name: str, inputs: Tensors, outputs: Tensors, attributes: Attributes) -> Cost:
    """Cost of one call of an operator.

    >>> from advisor.core.values import TensorSpec
    >>> vector = TensorSpec(shape=(1000,), dtype="float32")
    >>> cost_of("aten::add", [vector, vector], [vector], {})
    Cost(flops=1000, bytes=12000, warning=None)
    """
    warning = None
    flops = flops_of(name, inputs, outputs, attributes)
    if flops is None and (
        not name.startswith(("aten::", "fsdp::", "bitsandbytes::"))
        or any(word in name for word in _HEAVY_WORDS)
    ):
        warning = OperatorUnknown(operator=name)
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
