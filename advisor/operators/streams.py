"""Cases of operators that stream matrices through memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from advisor.core.values import Phase
from advisor.operators.case import FLOATS, Argument, Call, Caps, Case, argument_bytes, call, tensor
from advisor.operators.draw import Draw, shrunk

Shape = tuple[int, ...]
Make = Callable[[Shape, str], Call]


def mapped(operator: str, num_tensors: int, *others: Argument, **keywords: Argument) -> Make:
    """A call whose first arguments are tensors of one shape and dtype."""

    def make(shape: Shape, dtype: str) -> Call:
        tensors = [tensor(shape, dtype) for _ in range(num_tensors)]
        return replace(call(operator, *tensors, *others), keywords=keywords)

    return make


def streams(family: str, makers: Mapping[str, Make], phase: Phase, index: int, caps: Caps) -> Iterator[Case]:
    """One call of each maker, with a size and dtype of its own."""
    for name, make in makers.items():
        draw = Draw(name, index)
        dtype = draw.choice(FLOATS)
        sizes = draw.size(16, 65536), draw.size(16, 16384, draw.choice((1, 8, 64)))

        def fits(rows: int, columns: int, make: Make = make, dtype: str = dtype) -> bool:
            return 2 * argument_bytes(make((rows, columns), dtype).arguments) <= caps.num_bytes

        operation = make(shrunk(sizes, fits), dtype)
        yield Case(family=family, dtype=dtype, phase=phase, call=operation)
