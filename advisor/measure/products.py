"""Cases of matrix products, in batches and without."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from advisor.core.values import Phase
from advisor.measure.case import RATES, Caps, Case, call, tensor, transposed
from advisor.measure.draw import Draw, shrunk
from advisor.operators.costs import item_bytes


def products(index: int, caps: Caps) -> Iterator[Case]:
    """Products forward and, with one operand transposed, backward; some sizes fit no tile of a kernel."""
    for (dtype, tf32), phase in product(RATES, (Phase.FORWARD, Phase.BACKWARD)):
        draw = Draw(f"gemm {dtype} {tf32} {phase}", index)
        rows, columns, inner = _product_sizes(draw, caps, (dtype, tf32), batch=1)
        right_stride = transposed(inner, columns)
        left = tensor((rows, inner), dtype)
        right = tensor((inner, columns), dtype, stride=right_stride)
        operation = call("addmm", tensor((columns,), dtype), left, right)
        if phase is Phase.BACKWARD:
            # The input's gradient has no transposed operand, the weight's has the left one.
            is_weight = draw.choice((False, True))
            stride = transposed(rows, inner) if is_weight else (inner, 1)
            left = tensor((rows, inner), dtype, stride=stride)
            operation = call("mm", left, tensor((inner, columns), dtype))
        yield Case(family="gemm", dtype=dtype, tf32=tf32, phase=phase, call=operation)


def batched_products(index: int, caps: Caps) -> Iterator[Case]:
    """Products of attention heads and their like."""
    for dtype, tf32 in RATES:
        draw = Draw(f"bmm {dtype} {tf32}", index)
        batch = draw.size(2, 512)
        rows, columns, inner = _product_sizes(draw, caps, (dtype, tf32), batch=batch)
        stride = draw.choice((None, (inner * columns, *transposed(inner, columns))))
        left = tensor((batch, rows, inner), dtype)
        right = tensor((batch, inner, columns), dtype, stride=stride)
        yield Case(family="bmm", dtype=dtype, tf32=tf32, call=call("bmm", left, right))


def _product_sizes(draw: Draw, caps: Caps, rate: tuple[str, bool], batch: int) -> tuple[int, ...]:
    dtype, tf32 = rate
    multiple = draw.choice((1, 8, 64, 64))
    high = 16384 if batch == 1 else 2048
    sizes = draw.size(16, 2 * high, multiple), draw.size(16, high, multiple), draw.size(16, high, multiple)

    def fits(rows: int, columns: int, inner: int) -> bool:
        elements = rows * inner + inner * columns + rows * columns
        flops = 2 * batch * rows * columns * inner
        return (
            flops <= caps.most_flops(dtype, tf32) and batch * elements * item_bytes(dtype) <= caps.num_bytes
        )

    return shrunk(sizes, fits)
