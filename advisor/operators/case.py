"""Kernels to measure, as data: the call of an operator, what is called before it, and sizes to draw.

The arguments are JSON: numbers, texts, lists, and objects of one key for what JSON lacks
(``tensor``, ``result``, ``dtype``). ``advisor/payload/operator_timing.py`` builds them.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import prod
from typing import TypeVar

from advisor.core.values import Phase
from advisor.operators.work import item_bytes

# Sizes of the grid: a low-discrepancy sequence, so that few cases cover much and more cases only add.
#
# Source: Halton, "On the efficiency of certain quasi-random sequences of points in evaluating
# multi-dimensional integrals", Numerische Mathematik 2, 1960; each sequence is shifted by a constant of its
# own (Cranley and Patterson, "Randomization of number theoretic methods for multiple integration", 1976),
# so that operators do not all get the same sizes.

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
T = TypeVar("T")


def radical_inverse(index: int, base: int) -> float:
    """The digits of ``index`` mirrored behind the point, 0..1.

    >>> [radical_inverse(i, 2) for i in range(4)]
    [0.0, 0.5, 0.25, 0.75]
    """
    inverse, digit_value = 0.0, 1.0 / base
    while index:
        index, digit = divmod(index, base)
        inverse += digit * digit_value
        digit_value /= base
    return inverse


class Draw:
    """The sizes of one case: each call takes the next dimension of the point."""

    def __init__(self, name: str, index: int) -> None:
        self._name = name
        self._index = index
        self._dimension = 0

    def fraction(self) -> float:
        """A number in [0, 1)."""
        dimension = self._dimension
        self._dimension += 1
        shift = zlib.crc32(f"{self._name} {dimension}".encode()) / 2**32
        return (radical_inverse(self._index + 1, _PRIMES[dimension]) + shift) % 1.0

    def choice(self, options: Sequence[T]) -> T:
        """One of the options, all equally often."""
        return options[int(self.fraction() * len(options))]

    def size(self, low: int, high: int, multiple: int = 1) -> int:
        """A multiple of ``multiple`` in ``low..high``, equally often in each octave (log-uniform)."""
        drawn: float = low * (high / low) ** self.fraction()
        return max(multiple, round(drawn / multiple) * multiple)


def shrunk(sizes: tuple[int, ...], fits: Callable[..., bool], least: int = 8) -> tuple[int, ...]:
    """The sizes, the largest halved until ``fits(*sizes)`` or none is above ``least``.

    >>> shrunk((64, 8), lambda rows, columns: rows * columns <= 128)
    (16, 8)
    """
    while not fits(*sizes) and max(sizes) > least:
        largest = sizes.index(max(sizes))
        sizes = (*sizes[:largest], max(least, sizes[largest] // 2), *sizes[largest + 1 :])
    return sizes


Argument = object  # what json.dumps takes
HALF = ("float16", "bfloat16")
FLOATS = ("float32", *HALF)
# The rates of matrix products: dtype, and whether TF32 may replace it.
RATES = (("float32", False), ("float32", True), ("float16", False), ("bfloat16", False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How large one call may be: no GPU shall take long, and small ones must hold it."""

    flops: int
    """Without tensor cores."""
    num_bytes: int
    """Of all tensors."""

    def allow(self, elements: int, dtype: str, *, flops: int = 0, tf32: bool = False) -> bool:
        """Whether so many elements and FLOPs are few enough; tensor cores do four times as many."""
        most_flops = self.flops * (4 if tf32 or dtype in HALF else 1)
        return flops <= most_flops and elements * item_bytes(dtype) <= self.num_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an operator."""

    operator: str
    """With its overload, such as ``aten::add.Tensor``."""
    arguments: tuple[Argument, ...]
    keywords: Mapping[str, Argument] = field(default_factory=dict)
    results: tuple[str, ...] = ()
    """Names under which later calls find what it returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is measured once."""

    family: str
    """The word of ``--only``."""
    dtype: str
    """Of its main operands; decides with ``tf32`` which devices can run it."""
    call: Call
    prepare: tuple[Call, ...] = ()
    """Calls that are not timed, such as the forward pass of a backward operator."""
    phase: Phase = Phase.FORWARD
    tf32: bool = False
    """Whether TF32 may replace FP32."""

    @property
    def key(self) -> str:
        """The same for the same case, whatever the grid around it."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def call(operator: str, *arguments: Argument, results: Sequence[str] = (), **keywords: Argument) -> Call:
    """A call, written as Python writes it; an operator without an overload means its default."""
    name = operator if "." in operator else f"{operator}.default"
    return Call(operator=f"aten::{name}", arguments=arguments, keywords=keywords, results=tuple(results))


def tensor(
    shape: Sequence[int], dtype: str, *, name: str | None = None, stride: Sequence[int] | None = None,
    below: int | None = None, on_host: bool = False,
) -> Argument:  # fmt: skip
    """A tensor of random values.

    Args:
        dtype: such as ``"float16"``.
        name: two calls that name the same tensor get the same one.
        stride: in elements, contiguous by default.
        below: integers are drawn from 0 up to this, exclusive.
    """
    spec = {"shape": list(shape), "dtype": dtype, "name": name, "stride": stride, "below": below}
    spec["on_host"] = on_host or None
    return {"tensor": {key: value for key, value in spec.items() if value is not None}}


def result(name: str) -> Argument:
    """What a call before returned under this name."""
    return {"result": name}


def dtype_argument(dtype: str) -> Argument:
    """A dtype where an operator takes one."""
    return {"dtype": dtype}


def channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a tensor [N, C, H, W] that lies in memory as [N, H, W, C].

    >>> channels_last((2, 3, 4, 5))
    (60, 1, 15, 3)
    """
    _, channels, height, width = shape
    return channels * height * width, 1, channels * width, channels


def argument_bytes(arguments: Argument) -> int:
    """Bytes of all tensors among arguments, nested ones included; a name that comes twice counts twice."""
    if isinstance(arguments, dict):
        spec = arguments.get("tensor")
        return 0 if spec is None else prod(spec["shape"]) * item_bytes(spec["dtype"])
    return sum(map(argument_bytes, arguments)) if isinstance(arguments, list | tuple) else 0


def both_ways(family: str, dtype: str, forward: Call, backward: Call) -> Iterator[Case]:
    """An operator, and its backward one after it."""
    yield Case(family=family, dtype=dtype, call=forward)
    yield Case(family=family, dtype=dtype, prepare=(forward,), call=backward, phase=Phase.BACKWARD)


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
