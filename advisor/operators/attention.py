"""Fused attention."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from math import prod

from advisor.core.values import GpuSpec, Op, TensorSpec
from advisor.operators import attention_kernels, case, family
from advisor.operators.case import call
from advisor.operators.family import names


def _attend(query: TensorSpec, key: TensorSpec, value: TensorSpec, products: tuple[int, int]) -> int:
    """``products``: how many products run over the query's and over the value's head size."""
    scores = prod(query.shape[:-1]) * key.shape[-2]
    return 2 * scores * (products[0] * query.shape[-1] + products[1] * value.shape[-1])


def _time(op: Op, roofs: family.Roofs) -> family.RooflineTime:
    """Kernels skip the half that a causal mask hides."""
    is_causal = op.attributes.get("is_causal") is True
    return family.higher_roof(op, roofs, op.flops / 2 if is_causal else op.flops)


# The memory-efficient kernel was not measured. In the plots of the FlashAttention 2 paper (A100) it has
# about half the speed, forward and backward.
_EFFICIENT_SHARE = 0.5
_SIGMA_ASSUMED = 0.3


def _fitted(op: Op) -> family.TimeOnGpu | None:
    call = attention_kernels.attention_call(op)
    rate = None if call is None else family.HALF_RATES.get(call.dtype)
    return None if call is None or rate is None else partial(_fitted_on, call, rate)


def _fitted_on(call: attention_kernels.AttentionCall, rate: str, gpu: GpuSpec) -> family.FittedTime | None:
    if gpu.vendor != "NVIDIA" or rate not in gpu.tensor_flops_per_s:
        return None
    kernel = kernel_of(call, attention_kernels.backend_of(call, gpu))
    if kernel is None:
        return None
    return family.FittedTime(
        time_s=attention_kernels.seconds(
            call, kernel, gpu, attention_kernels.rate_flops_per_s(kernel, gpu, rate)
        ),
        sigma=_sigma(call, kernel, gpu),
    )


def _sigma(
    call: attention_kernels.AttentionCall, kernel: attention_kernels.AttentionKernel, gpu: GpuSpec
) -> float:
    """Neither masks nor dropout were measured, nor short sequences, nor all head sizes."""
    is_short = min(call.queries, call.keys) < attention_kernels.TILE
    is_measured_size = attention_kernels.padded(call.key_size) in kernel.measured_sizes
    if call.has_mask or call.has_dropout or is_short or not is_measured_size:
        return _SIGMA_ASSUMED
    return kernel.sigma if gpu.architecture in kernel.architectures else kernel.sigma_unseen


def kernel_of(
    call: attention_kernels.AttentionCall, backend: attention_kernels.AttentionBackend
) -> attention_kernels.AttentionKernel | None:
    """What the backend's kernel reaches, forward or backward; None where not measured."""
    if backend is not attention_kernels.AttentionBackend.EFFICIENT:
        return attention_kernels.kernels().get((backend, call.is_backward))
    return _efficient_kernel(call.is_backward)


@cache
def _efficient_kernel(is_backward: bool) -> attention_kernels.AttentionKernel:
    flash = attention_kernels.kernels()[attention_kernels.AttentionBackend.FLASH_2, is_backward]
    return replace(
        flash,
        efficiency={size: _EFFICIENT_SHARE * share for size, share in flash.efficiency.items()},
        sigma=_SIGMA_ASSUMED,
        sigma_unseen=_SIGMA_ASSUMED,
    )


def _cases(index: int, caps: case.Caps) -> Iterator[case.Case]:
    for dtype in case.HALF:
        yield from _flash(case.Draw(f"flash {dtype}", index), caps, dtype)
    for dtype in case.FLOATS:
        yield from _efficient(case.Draw(f"efficient {dtype}", index), caps, dtype)


def _flash(draw: case.Draw, caps: case.Caps, dtype: str) -> Iterator[case.Case]:
    query, key, value, gradient = _heads(draw, caps, dtype)
    is_causal = draw.choice((False, True))
    forward = call(
        "_scaled_dot_product_flash_attention", query, key, value, 0.0, is_causal, False,
        results=("out", "sums", "starts_q", "starts_k", "max_q", "max_k", "seed", "offset"),
    )  # fmt: skip
    names = ("out", "sums", "starts_q", "starts_k", "max_q", "max_k")
    backward = call(
        "_scaled_dot_product_flash_attention_backward", gradient, query, key, value,
        *map(case.result, names), 0.0, is_causal, case.result("seed"), case.result("offset"),
    )  # fmt: skip
    yield from case.both_ways("attention", dtype, forward, backward)


def _efficient(draw: case.Draw, caps: case.Caps, dtype: str) -> Iterator[case.Case]:
    query, key, value, gradient = _heads(draw, caps, dtype)
    is_causal = draw.choice((False, True))
    forward = call(
        "_scaled_dot_product_efficient_attention", query, key, value, None, True, 0.0, is_causal,
        results=("out", "sums", "seed", "offset"),
    )  # fmt: skip
    backward = call(
        "_scaled_dot_product_efficient_attention_backward", gradient, query, key, value, None,
        *map(case.result, ("out", "sums", "seed", "offset")), 0.0, [True, True, True, False], is_causal,
    )  # fmt: skip
    yield from case.both_ways("attention", dtype, forward, backward)


def _heads(draw: case.Draw, caps: case.Caps, dtype: str) -> list[case.Argument]:
    """Query, key, value and the output's gradient, [B, H, S, D], which lie as [B, S, H, D]."""
    size = draw.choice((32, 64, 64, 64, 128, 128))
    sizes = draw.size(1, 64), draw.size(2, 32), draw.size(64, 4096, draw.choice((1, 64, 64)))

    def fits(batch: int, heads: int, steps: int) -> bool:
        elements = batch * heads * steps * size
        return caps.allow(8 * elements, dtype, flops=10 * elements * steps)

    batch, heads, steps = case.shrunk(sizes, fits, least=1)
    stride = (steps * heads * size, size, heads * size, 1)
    return [
        case.tensor((batch, heads, steps, size), dtype, stride=stride, name=name)
        for name in ("query", "key", "value", "gradient")
    ]


ATTENTION = family.Family(
    word="attention",
    others=names(
        """_flash_attention_forward _flash_attention_backward _efficient_attention_forward
        _efficient_attention_backward"""
    ),
    flops={
        **family.each(
            """_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention
            _scaled_dot_product_cudnn_attention _scaled_dot_product_flash_attention_for_cpu""",
            lambda inputs, *_: _attend(inputs[0], inputs[1], inputs[2], (1, 1)),
        ),
        # The scores are computed again.
        **family.each(
            """_scaled_dot_product_flash_attention_backward _scaled_dot_product_efficient_attention_backward
            _scaled_dot_product_cudnn_attention_backward
            _scaled_dot_product_flash_attention_for_cpu_backward""",
            lambda inputs, *_: _attend(inputs[1], inputs[2], inputs[3], (3, 2)),
        ),
    },
    compute=family.Compute(fraction="gemm_fraction", tensor_cores=True),
    time=_time,
    fitted=_fitted,
    autocast=family.Autocast(casts_operands=False),
    cases={"attention": _cases},
)
