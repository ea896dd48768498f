"""Copies between host and device, which cross PCIe."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from advisor.core.values import Op
from advisor.operators.case import Call, Caps, Case, tensor
from advisor.operators.draw import Draw
from advisor.operators.family import Family, RooflineTime, Roofs, each
from advisor.operators.work import MOVES, Attributes, Tensors, total_bytes

# Page-locked copies reach this share of the PCIe rate (16 GB/s links deliver about 12 to 13).
PCIE_FRACTION = 0.8
_COPIES = "advisor::h2d_copy advisor::d2h_copy"


def _crosses_link(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    return max(total_bytes(inputs), total_bytes(outputs))


def _time(op: Op, roofs: Roofs) -> RooflineTime:
    link_s = op.bytes / (PCIE_FRACTION * roofs.gpu.pcie_bytes_per_s)
    return RooflineTime(time_s=roofs.launch_s + link_s, constant="")


def _cases(index: int, caps: Caps) -> Iterator[Case]:
    """Copies between page-locked memory of the host and the device."""
    for name in ("h2d_copy", "d2h_copy"):
        draw = Draw(name, index)
        shape = (min(draw.size(2**10, 2**26), caps.num_bytes // 8),)
        on_host, on_device = tensor(shape, "float32", on_host=True), tensor(shape, "float32")
        ends = (on_host, on_device) if name == "h2d_copy" else (on_device, on_host)
        assert prod(shape) > 0  # noqa: S101 - caps are larger than one element
        operation = Call(operator=f"advisor::{name}", arguments=ends)
        yield Case(family="transfer", dtype="float32", call=operation)


TRANSFER = Family(
    word="host transfer",
    nominal=each(_COPIES, MOVES),
    traffic=each(_COPIES, _crosses_link),
    time=_time,
    cases={"transfer": _cases},
)
