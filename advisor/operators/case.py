"""A kernel to measure, as data: the call of an operator, and what has to be called before it.

The arguments are JSON: numbers, texts, lists, and objects of one key for what JSON lacks
(``tensor``, ``result``, ``dtype``). ``advisor/payload/operator_timing.py`` builds them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod

from advisor.core.values import Phase
from advisor.operators.work import item_bytes

Argument = object  # what json.dumps takes
HALF = ("float16", "bfloat16")
FLOATS = ("float32", *HALF)
# The rates of matrix products: dtype, and whether TF32 may replace it.
RATES = (("float32", False), ("float32", True), ("float16", False), ("bfloat16", False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How large one call may be: no GPU shall take long, and small ones must hold it.

    Attributes:
        flops: without tensor cores.
        num_bytes: of all tensors.
    """

    flops: int
    num_bytes: int

    def most_flops(self, dtype: str, tf32: bool = False) -> int:
        """FLOPs that a call may do; with tensor cores four times as many take no longer."""
        return self.flops * (4 if tf32 or dtype in HALF else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an operator.

    Attributes:
        operator: with its overload, such as ``aten::add.Tensor``.
        results: names under which later calls find what it returns.
    """

    operator: str
    arguments: tuple[Argument, ...]
    keywords: Mapping[str, Argument] = field(default_factory=dict)
    results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is measured once.

    Attributes:
        family: the word of ``--only``.
        dtype: of its main operands; decides with ``tf32`` which devices can run it.
        tf32: whether TF32 may replace FP32.
        prepare: calls that are not timed, such as the forward pass of a backward operator.
    """

    family: str
    dtype: str
    call: Call
    prepare: tuple[Call, ...] = ()
    phase: Phase = Phase.FORWARD
    tf32: bool = False

    @property
    def key(self) -> str:
        """The same for the same case, whatever the grid around it."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def call(operator: str, *arguments: Argument, results: Sequence[str] = (), **keywords: Argument) -> Call:
    """A call, written as Python writes it; an operator without an overload means its default."""
    name = operator if "." in operator else f"{operator}.default"
    return Call(operator=f"aten::{name}", arguments=arguments, keywords=keywords, results=tuple(results))


def tensor(
    shape: Sequence[int],
    dtype: str,
    *,
    name: str | None = None,
    stride: Sequence[int] | None = None,
    below: int | None = None,
    on_host: bool = False,
) -> Argument:
    """A tensor of random values.

    Args:
        shape: its sizes.
        dtype: such as ``"float16"``.
        name: two calls that name the same tensor get the same one.
        stride: in elements, contiguous by default.
        below: integers are drawn from 0 up to this, exclusive.
        on_host: in page-locked memory of the host.
    """
    spec = {"shape": list(shape), "dtype": dtype, "name": name, "stride": stride, "below": below}
    return {"tensor": {key: value for key, value in spec.items() if value is not None} | _host(on_host)}


def _host(on_host: bool) -> dict[str, bool]:
    return {"on_host": True} if on_host else {}


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


def transposed(rows: int, columns: int) -> tuple[int, int]:
    """Strides of a matrix [rows, columns] that is the transpose of a contiguous one."""
    assert columns > 0  # noqa: S101 - sizes of the grid are positive
    return 1, rows


def argument_bytes(arguments: Argument) -> int:
    """Bytes of all tensors among arguments, nested ones included; a name that comes twice counts twice."""
    if isinstance(arguments, dict):
        spec = arguments.get("tensor")
        return 0 if spec is None else prod(spec["shape"]) * item_bytes(spec["dtype"])
    return sum(map(argument_bytes, arguments)) if isinstance(arguments, list | tuple) else 0
