"""What a trace does not show of what its row says."""

import math
from collections import Counter
from collections.abc import Iterator

from advisor.core.errors import AdvisorError
from advisor.core.values import Trace
from tests.compatibility.row import Row
from tests.findings import named

_BLOCK_BYTES, _FP32_BYTES = 512, 4
_PRODUCTS = ("aten::addmm", "aten::mm", "aten::bmm")


def problems(row: Row, outcome: Trace | AdvisorError) -> list[str]:
    """Each difference in words; none if the row holds."""
    if isinstance(outcome, AdvisorError):
        return [str(outcome)]
    return [
        f"{what}: {problem!r} instead of {expected!r}"
        for what, problem, expected in _compared(row, outcome)
        if problem != expected
    ]


def _compared(row: Row, trace: Trace) -> Iterator[tuple[str, object, object]]:
    if not (isinstance(row.batch, range) and trace.batch_size in row.batch):
        yield "batch", trace.batch_size, row.batch
    yield "samples", trace.samples_per_epoch, row.samples
    yield "iterations", trace.iterations_per_epoch, row.iterations
    yield "accumulation", trace.accumulation, row.accumulation
    yield "parallel_by", trace.parallel_by, row.parallel_by
    yield "amp", trace.precision.amp_dtype, row.amp
    counts: Counter[str] = Counter()
    for op in trace.ops:
        counts[op.name] += op.count
    for name, expected in row.calls.items():
        yield name, counts[_full(name)], expected
    if row.parameters:
        yield "parameter bytes", trace.memory.parameter_bytes, _parameter_bytes(row)
    if row.product_flops is not None:
        total = sum(op.flops * op.count for op in trace.ops if op.name in _PRODUCTS)
        yield "FLOPs of products", total, row.product_flops
    if row.loading_s is not None:
        yield f"loads for {row.loading_s} s", (trace.data_loading_s or 0.0) >= row.loading_s, True
    yield from _communication(row, trace)
    yield from _warnings(row, trace)


def _communication(row: Row, trace: Trace) -> Iterator[tuple[str, object, object]]:
    sent: Counter[str] = Counter()
    for collective in trace.collectives:
        sent[collective.kind] += (collective.num_bytes or 0) * collective.count
    yield "bytes of collectives", dict(sent), row.collectives
    worlds = {collective.world_size for collective in trace.collectives}
    sizes = set(row.groups) or {row.world or 1}
    yield "world sizes", worlds, sizes if row.collectives else set()


def _warnings(row: Row, trace: Trace) -> Iterator[tuple[str, object, object]]:
    if row.warning is not None:
        is_warned = any(row.warning in warning for warning in named(trace.warnings))
        yield f"warns of {row.warning!r}", is_warned, True
    unknown = [warning for warning in named(trace.warnings) if "no shape rule" in warning]
    yield "operators without a shape rule", unknown, []
    assumed = [warning for warning in named(trace.warnings) if "are assumed" in warning]
    untold = [warning for warning in assumed if row.warning is None or row.warning not in warning]
    yield "assumed sizes", untold, []


def _full(name: str) -> str:
    return name if "::" in name else f"aten::{name}"


def _parameter_bytes(row: Row) -> int:
    """FP32, each tensor rounded as the caching allocator does."""
    sizes = (_FP32_BYTES * math.prod(shape) for shape in row.parameters)
    return sum(-(-size // _BLOCK_BYTES) * _BLOCK_BYTES for size in sizes)
