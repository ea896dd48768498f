"""Kernels that the open questions are about, recorded as ``advisor measure`` records its grid.

The recording lies beside the day's file as ``kernels.jsonl``; training and ``advisor calibrate`` read it.
Families take turns, so that a day that ends early has some of each.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.values import Phase
from advisor.operators.case import (
    HALF,
    RATES,
    Argument,
    Case,
    call,
    channels_last,
    dtype_argument,
    result,
    tensor,
)

from .lines import KERNELS, Lines, read_lines, recording_of

if TYPE_CHECKING:
    from advisor.payload.protocol import MeasuringLine

_RNN_CASES = 8

# Channels in and out, side, filter, stride, groups; 64 images.
_CONVOLUTIONS = (
    (64, 64, 56, 3, 1, 1), (64, 256, 56, 1, 1, 1), (256, 64, 56, 1, 1, 1), (128, 128, 28, 3, 1, 1),
    (256, 256, 14, 3, 1, 1), (512, 512, 7, 3, 1, 1), (3, 64, 224, 7, 2, 1), (256, 512, 56, 1, 2, 1),
    (128, 128, 56, 3, 2, 1), (1024, 2048, 14, 1, 2, 1),
    (128, 128, 56, 3, 1, 32), (256, 256, 28, 3, 1, 32), (512, 512, 14, 3, 1, 32),
    (96, 96, 112, 3, 2, 96), (384, 384, 28, 3, 1, 384), (960, 960, 7, 5, 1, 960), (96, 96, 56, 7, 1, 96),
)  # fmt: skip
# Channels in and out, side, filter, stride; 2 volumes.
_VOLUMES = (
    (4, 32, 128, 3, 1), (32, 32, 128, 3, 1), (32, 64, 128, 3, 2), (64, 64, 64, 3, 1), (128, 128, 32, 3, 1),
    (256, 256, 16, 3, 1), (320, 320, 8, 3, 1), (64, 32, 128, 3, 1), (64, 64, 64, 1, 1),
)  # fmt: skip
_PRODUCTS = (
    (4096, 4096, 4096), (8192, 8192, 8192), (6144, 1024, 1024), (6144, 4096, 1024), (6144, 1024, 4096),
    (8192, 50_264, 768), (128, 4096, 4096), (16, 4096, 4096), (1, 4096, 4096), (16_384, 512, 512),
    (1000, 1000, 1000), (2048, 1000, 256), (512, 512, 65_536),
)  # fmt: skip
_BATCHED = ((256, 384, 64, 384), (256, 384, 384, 64), (96, 1024, 64, 1024), (16_384, 27, 128, 27))
# Sequences, heads, tokens, width of a head, causal.
_ATTENTIONS = ((16, 16, 384, 64, False), (8, 12, 1024, 64, True), (2, 32, 2048, 64, True),
               (1, 32, 8192, 128, True))  # fmt: skip


def cases(tiny: bool = False, backend: str = "cuda") -> tuple[Case, ...]:
    """All kernels, each once: those of every constant of ``calibrate``, ours, a quick grid."""
    from advisor.measure import Extent, calibration_kernels, grid

    sizes = _Sizes(tiny)
    ours = [sizes.convolutions(), sizes.volumes(), sizes.products(), sizes.attention(), sizes.others(),
            sizes.layouts()]  # fmt: skip
    quick = grid(Extent.QUICK, backend="cpu" if tiny else backend)
    recurrent = grid(Extent.DEFAULT, only=["rnn"], backend="cpu" if tiny else backend)[:_RNN_CASES]
    if tiny:
        groups: list[Sequence[Case]] = [_kinds(own) for own in (*ours, quick, recurrent)]
    else:
        # Whatever is cut off at the end is drawn by chance.
        groups = [calibration_kernels(), *map(_shuffled, ours), _shuffled(quick), recurrent]
    turns = (case for turn in zip_longest(*groups) for case in turn if case is not None)
    return tuple({case.key: case for case in turns}.values())


def _kinds(chosen: Iterable[Case]) -> Sequence[Case]:
    """The first call of each operator in each dtype."""
    first: dict[tuple[str, str, bool], Case] = {}
    for case in chosen:
        first.setdefault((case.call.operator, case.dtype, case.tf32), case)
    return tuple(first.values())


def _shuffled(chosen: Iterable[Case]) -> Sequence[Case]:
    cases = list(chosen)
    random.Random(0).shuffle(cases)  # noqa: S311 - an order, no secret
    return cases


def time_kernels(lines: Lines, backend: str, tiny: bool, folder: Path) -> None:
    """Record the cases until the time is over.

    They are measured in this very process, as the child of ``advisor measure`` does: that command needs
    packages which the machine of the GPU may lack.
    """
    from advisor.measure.measuring import Keeper, described, reference
    from advisor.payload.grid_run import device_of
    from advisor.payload.operator_timing import clock_of, measure_all

    known = {key for other in lines.recorded for key in _known(other)}
    chosen = [case for case in cases(tiny, backend) if case.key not in known]
    keeper = Keeper(folder / KERNELS, chosen, backend, None)
    if any("num_cases" in line for line in read_lines(folder, lines.part)):
        keeper.give_up_next("ended its process")
    lines.write(num_cases=len(chosen), file=KERNELS)

    def take(line: MeasuringLine) -> None:
        keeper.take(line)
        if time.time() > lines.until_s:
            raise _TimeOverError

    take({"device": device_of(backend)})
    wanted = [described(key, case) for key, case in keeper.missing.items()]
    with contextlib.suppress(_TimeOverError):
        measure_all(wanted, clock_of(backend), described("reference", reference(backend)), take)
    lines.write(num_left=len(keeper.missing))


def _known(folder: Path) -> frozenset[str]:
    """Cases of another day, measured or skipped; none if it has no recording."""
    from advisor.formats.recording_files import read_recording

    path = recording_of(folder)
    return read_recording(path).cases if path else frozenset()


class _TimeOverError(Exception):
    """No case is begun any more."""


class _Sizes:
    """The cases at full size, or at one that a CPU does in a moment."""

    def __init__(self, tiny: bool) -> None:
        self._tiny = tiny

    def _of(self, size: int) -> int:
        return min(size, 8 + size % 8) if self._tiny else size

    def convolutions(self) -> Iterator[Case]:
        """2-D, whole, grouped and depthwise, in both layouts; gradients of input and weight apart."""
        for dtype, tf32, is_last in (("float16", False, False), ("float16", False, True),
                                     ("float32", True, False)):  # fmt: skip
            for channels_in, out, side, size, stride, groups in _CONVOLUTIONS:
                if self._tiny:
                    channels_in, out, side, groups = 8, 8, 16, min(groups, 8)
                yield from _convolution(
                    (2 if self._tiny else 64, channels_in, side, side),
                    (out, channels_in // groups, size, size),
                    (stride, groups), dtype, tf32=tf32, is_last=is_last,
                )  # fmt: skip

    def volumes(self) -> Iterator[Case]:
        """3-D, in both layouts."""
        for dtype, tf32, is_last in (("float16", False, False), ("float16", False, True),
                                     ("float32", True, False)):  # fmt: skip
            for channels_in, out, side, size, stride in _VOLUMES:
                if self._tiny:
                    channels_in, out, side = 4, 4, 8
                yield from _convolution(
                    (2, channels_in, *[side] * 3), (out, channels_in, *[size] * 3), (stride, 1), dtype,
                    tf32=tf32, is_last=is_last,
                )  # fmt: skip

    def products(self) -> Iterator[Case]:
        """Matrices at each rate, as linear layers lay them out, and batches of them."""
        for rows, columns, depth in _PRODUCTS:
            rows, columns, depth = map(self._of, (rows, columns, depth))
            for dtype, tf32 in RATES:
                left = tensor((rows, depth), dtype)
                right = tensor((depth, columns), dtype, stride=(1, depth))
                yield Case(family="gemm", dtype=dtype, tf32=tf32, call=call("mm", left, right))
        for rows, columns, depth in _PRODUCTS[2:6]:
            rows, columns, depth = map(self._of, (rows, columns, depth))
            gradient = tensor((columns, rows), "bfloat16", stride=(1, columns))
            product = call("mm", gradient, tensor((rows, depth), "bfloat16"))
            yield Case(family="gemm", dtype="bfloat16", phase=Phase.BACKWARD, call=product)
        for batch, rows, depth, columns in _BATCHED:
            batch, rows, depth, columns = map(self._of, (batch, rows, depth, columns))
            for dtype, tf32 in RATES[1:]:
                product = call(
                    "bmm", tensor((batch, rows, depth), dtype), tensor((batch, depth, columns), dtype)
                )
                yield Case(family="bmm", dtype=dtype, tf32=tf32, call=product)

    def attention(self) -> Iterator[Case]:
        """Flash attention, cuDNN's, and the memory-efficient kernel, forward and backward."""
        for sequences, heads, tokens, width, is_causal in _ATTENTIONS:
            shape = (min(sequences, 2), 2, 16, 16) if self._tiny else (sequences, heads, tokens, width)
            for dtype in HALF:
                query, key, value, gradient = (tensor(shape, dtype, name=name) for name in "qkvg")
                both = (query, key, value)
                yield from _both_ways(
                    call("_scaled_dot_product_flash_attention", *both, 0.0, is_causal, False,
                         results=("out", "sums", "starts_q", "starts_k", "max_q", "max_k", "seed", "offset")),
                    call("_scaled_dot_product_flash_attention_backward", gradient, *both,
                         *map(result, ("out", "sums", "starts_q", "starts_k", "max_q", "max_k")), 0.0,
                         is_causal, result("seed"), result("offset")),
                    dtype,
                )  # fmt: skip
                yield from _both_ways(
                    call("_scaled_dot_product_cudnn_attention", *both, None, True, 0.0, is_causal, False,
                         results=("out", "sums", "starts_q", "starts_k", "max_q", "max_k", "seed", "offset")),
                    call("_scaled_dot_product_cudnn_attention_backward", gradient, *both,
                         *map(result, ("out", "sums", "seed", "offset")), None,
                         *map(result, ("starts_q", "starts_k", "max_q", "max_k")), 0.0, is_causal),
                    dtype,
                )  # fmt: skip

    def layouts(self) -> Iterator[Case]:
        """Copies from one layout to the other, and from one dtype to the other."""
        for shape in (
            (64, 64, 112, 112),
            (64, 256, 56, 56),
            (64, 1024, 14, 14),
            (64, 2048, 7, 7),
            (256, 3, 224, 224),
        ):
            sizes = tuple(map(self._of, shape))
            for dtype in ("float16", "float32"):
                flat, last = tensor(sizes, dtype), tensor(sizes, dtype, stride=channels_last(sizes))
                for target, source in ((last, flat), (flat, last), (flat, flat)):
                    yield Case(family="layout", dtype=dtype, call=call("copy_", target, source))
            cast = call("_to_copy", tensor(sizes, "float32"), dtype=dtype_argument("float16"))
            yield Case(family="layout", dtype="float32", call=cast)

    def others(self) -> Iterator[Case]:
        """Norms of half tensors, losses, CTC, sparse products, dropout, pooling, pointwise chains."""
        yield from self._batch_norms()
        yield from self._ctc()
        yield from self._sparse()
        for elements in (2**20, 2**24, 2**27):
            for dtype in ("float16", "float32"):
                one, two = (tensor((self._of(elements),), dtype) for _ in range(2))
                for name, arguments in {
                    "add.Tensor": (one, two), "mul.Tensor": (one, two), "relu": (one,), "gelu": (one,),
                    "silu": (one,), "native_dropout": (one, 0.1, True), "sum": (one,), "clone": (one,),
                }.items():  # fmt: skip
                    yield Case(family="elementwise", dtype=dtype, call=call(name, *arguments))
        for rows, columns in ((8192, 50_264), (4096, 128_256), (8192, 1000)):
            rows, columns = self._of(rows), self._of(columns)
            for dtype in ("float32", "bfloat16"):
                logits = tensor((rows, columns), dtype)
                labels = tensor((rows,), "int64", below=columns)
                softmax = call("_log_softmax", logits, 1, False)
                yield Case(family="softmax", dtype=dtype, call=softmax)
                yield Case(family="softmax", dtype=dtype, phase=Phase.BACKWARD, call=call(
                    "_log_softmax_backward_data", logits, logits, 1, dtype_argument(dtype)))  # fmt: skip
                yield Case(
                    family="loss", dtype=dtype, call=call("nll_loss_forward", logits, labels, None, 1, -100)
                )

    def _batch_norms(self) -> Iterator[Case]:
        for shape in ((64, 64, 112, 112), (64, 256, 56, 56), (64, 2048, 7, 7)):
            sizes = tuple(map(self._of, shape))
            for stride in (None, channels_last(sizes)):
                for operator in ("native_batch_norm", "cudnn_batch_norm"):
                    of_channel = [tensor((sizes[1],), "float32") for _ in range(4)]
                    norm = call(
                        operator, tensor(sizes, "float16", stride=stride), *of_channel, True, 0.1, 1e-5
                    )
                    yield Case(family="norm", dtype="float16", call=norm)
        for volume in ((2, 32, 128, 128, 128), (2, 320, 8, 8, 8)):
            # An instance norm is a batch norm of a reshaped tensor.
            _, channels, *sides = map(self._of, volume)
            source = tensor((1, 2 * channels, *sides), "float16")
            of_channel = [tensor((2 * channels,), "float32") for _ in range(2)]
            norm = call("native_batch_norm", source, *of_channel, None, None, True, 0.1, 1e-5)
            yield Case(family="norm", dtype="float16", call=norm)

    def _ctc(self) -> Iterator[Case]:
        for steps, sentences, letters, text in ((400, 32, 29, 120), (1000, 16, 29, 200), (400, 32, 1024, 60)):
            if self._tiny:
                steps, sentences, text = 12, 2, 4
            chances = tensor((steps, sentences, letters), "float32", name="chances")
            spelt = tensor((sentences, text), "int64", below=letters, name="spelt")
            lengths = ([steps] * sentences, [text] * sentences)
            forward = call("_ctc_loss", chances, spelt, *lengths, 0, False, results=("loss", "alpha"))
            backward = call("_ctc_loss_backward", tensor((sentences,), "float32"), chances, spelt, *lengths,
                            result("loss"), result("alpha"), 0, False)  # fmt: skip
            yield Case(family="ctc", dtype="float32", call=forward)
            yield Case(family="ctc", dtype="float32", prepare=(forward,), phase=Phase.BACKWARD, call=backward)

    def _sparse(self) -> Iterator[Case]:
        for rows, stored, width in ((16_384, 2**20, 64), (16_384, 2**20, 256), (65_536, 2**18, 128)):
            if self._tiny:
                rows, stored, width = 16, 32, 8
            places = tensor((2, stored), "int64", below=rows)
            made = call("sparse_coo_tensor.indices_size", places, tensor((stored,), "float32"), [rows, rows],
                        results=("sparse",))  # fmt: skip
            whole = call("_coalesce", result("sparse"), results=("whole",))
            product = call("mm", result("whole"), tensor((rows, width), "float32"))
            yield Case(family="sparse", dtype="float32", prepare=(made, whole), call=product)
            yield Case(
                family="sparse", dtype="float32", prepare=(made,), call=call("_coalesce", result("sparse"))
            )


def _convolution(
    source: tuple[int, ...], weight: tuple[int, ...], how: tuple[int, int], dtype: str,
    *, tf32: bool, is_last: bool,
) -> Iterator[Case]:  # fmt: skip
    """Forward, gradient of the input, gradient of the weight; ``how``: stride and groups."""
    stride, groups = how
    dimensions, size = len(source) - 2, weight[-1]
    side = (source[-1] + 2 * (size // 2) - size) // stride + 1
    out = (source[0], weight[0], *[side] * dimensions)
    data, filters, gradient = (
        tensor(shape, dtype, stride=_last(shape) if is_last else None) for shape in (source, weight, out)
    )
    ones: Argument = [1] * dimensions
    how_all = ([stride] * dimensions, [size // 2] * dimensions, ones, False, [0] * dimensions, groups)
    forward = call("convolution", data, filters, None, *how_all)
    yield Case(family="conv", dtype=dtype, tf32=tf32, call=forward)
    for wanted in ([True, False, False], [False, True, False]):
        backward = call("convolution_backward", gradient, data, filters, None, *how_all, wanted)
        yield Case(family="conv", dtype=dtype, tf32=tf32, phase=Phase.BACKWARD, call=backward)


def _last(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides with the channels last, of two or three dimensions."""
    channels, sides = shape[1], shape[2:]
    strides = [channels]
    for side in reversed(sides):
        strides.insert(0, strides[0] * side)
    return strides[0], 1, *strides[1:]


def _both_ways(forward: object, backward: object, dtype: str) -> Iterator[Case]:
    yield Case(family="attention", dtype=dtype, call=forward)
    yield Case(family="attention", dtype=dtype, phase=Phase.BACKWARD, prepare=(forward,), call=backward)
