"""Fused attention: what a trace tells of a call, which kernel runs it where, and its time by hand."""

from dataclasses import replace

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Kernel, Op
from advisor.operators.attention import ATTENTION
from advisor.operators.attention_kernels import (
    AttentionBackend,
    AttentionCall,
    AttentionKernel,
    attention_call,
    backend_of,
    busiest_tiles,
    efficiency_of,
    is_refused,
    kernels,
    rate_flops_per_s,
    seconds,
)
from advisor.operators.family import FittedTime
from tests.attention import make_attention

KERNEL = AttentionKernel(
    efficiency={64: 0.5, 128: 0.7}, uneven=0.9, start_tiles=1.0, tail=0.5, traffic=2.0, is_mma_sync=False,
    sigma=0.1, sigma_unseen=0.2, architectures=frozenset({"Ampere"}), measured_sizes=frozenset({64, 128}),
)  # fmt: skip


def call_of(op: Op) -> AttentionCall:
    call = attention_call(op)
    assert call is not None
    return call


def fitted(op: Op, gpu: str) -> FittedTime:
    time = time_on(op, resolve_gpu(gpu))
    assert time is not None
    return time


def time_on(op: Op, gpu: GpuSpec) -> FittedTime | None:
    formula = ATTENTION.fitted(op)
    return None if formula is None else formula(gpu)


@pytest.mark.parametrize("backward", [False, True])
def test_sizes_are_those_of_query_key_and_value(backward):
    call = call_of(
        make_attention(batch=2, heads=8, key_heads=2, queries=100, keys=300, size=96, backward=backward)
    )
    assert (call.batch_heads, call.queries, call.keys) == (16, 100, 300)
    assert (call.key_size, call.value_size, call.is_backward) == (96, 96, backward)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize(("keys", "size"), [(200, 64), (64, 64), (128, 128)])
def test_a_mask_is_told_from_the_output(backward, mask, keys, size):
    op = make_attention(queries=200, keys=keys, size=size, mask=mask, backward=backward, kernel="efficient")
    assert call_of(op).has_mask is mask


def test_a_forward_pass_that_keeps_no_sums_is_not_trained():
    assert not call_of(make_attention(kernel="efficient", keeps_sums=False)).is_trained
    assert call_of(make_attention(kernel="efficient")).is_trained


def test_what_is_no_attention_of_heads_tells_nothing():
    op = make_attention()
    flat = tuple(replace(tensor, shape=tensor.shape[1:]) for tensor in op.inputs)
    changes = ({"inputs": flat}, {"inputs": ()}, {"name": "aten::_flash_attention_forward"})
    others = [*(replace(op, **change) for change in changes), make_attention(batch=0)]
    assert [attention_call(other) for other in others] == [None] * 4


A100, T4, V100, L40S, H100, B200, RTX_5090, P100 = (
    "A100-SXM-80GB", "T4", "V100-SXM-16GB", "L40S", "H100-SXM-80GB", "B200-SXM-180GB", "RTX-5090",
    "P100-PCIE-16GB",
)  # fmt: skip


EFFICIENT, FLASH, CUDNN, MATH = (
    AttentionBackend.EFFICIENT, AttentionBackend.FLASH_2, AttentionBackend.CUDNN, AttentionBackend.MATH
)  # fmt: skip
# The GPU decides.
BY_GPU = {
    P100: EFFICIENT, V100: EFFICIENT, T4: EFFICIENT, A100: FLASH, L40S: FLASH, RTX_5090: FLASH, H100: CUDNN,
    B200: CUDNN,
}  # fmt: skip
# PyTorch takes the mathematics before cuDNN's kernel but on compute capability 9.0 and 10.0.
BY_SCRIPT = [
    (("flash",), H100, FLASH), (("efficient",), H100, EFFICIENT), (("efficient",), A100, EFFICIENT),
    (("math", "cudnn"), A100, MATH), (("math", "cudnn"), H100, CUDNN), (("cudnn",), A100, CUDNN),
    (("math", "flash"), T4, MATH), (("efficient", "flash"), T4, EFFICIENT),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "gpu", "backend"),
    [
        *((make_attention(dtype="float16"), gpu, backend) for gpu, backend in BY_GPU.items()),
        *((make_attention(dtype="float16", allowed=allowed), *rest) for allowed, *rest in BY_SCRIPT),
        (make_attention(dtype="float32"), H100, EFFICIENT),
        (make_attention(dtype="float64"), H100, MATH),
        (make_attention(dtype="bfloat16"), T4, MATH),
        (make_attention(mask=True, kernel="efficient"), A100, EFFICIENT),
        (make_attention(mask=True, kernel="efficient"), H100, CUDNN),
        (make_attention(size=256), H100, FLASH),
        (make_attention(size=512), H100, EFFICIENT),
        (make_attention(size=100), H100, FLASH),
        (make_attention(size=192, value_size=128), A100, EFFICIENT),
        (make_attention(queries=64, keys=128, is_causal=True), A100, EFFICIENT),
        (make_attention(queries=64, keys=128), A100, FLASH),
        (make_attention(size=256, dropout_p=0.1), L40S, EFFICIENT),
        (make_attention(size=256, dropout_p=0.1), A100, FLASH),
        (make_attention(size=256), L40S, FLASH),
        (make_attention(kernel="cudnn"), A100, FLASH),
    ],
)  # fmt: skip
def test_what_decides_which_kernel_runs(op, gpu, backend):
    call = call_of(op)
    assert backend_of(call, resolve_gpu(gpu)) is backend
    assert not is_refused(call, resolve_gpu(gpu))


def test_flash_attention_3_stays_where_it_was_measured():
    kernel = Kernel(
        name="void cutlass::device_kernel<flash::FlashAttnFwdSm90<...>>", duration_s=1e-3, grid=(1, 1, 1),
        block=(384, 1, 1), registers_per_thread=168, shared_bytes=0,
    )  # fmt: skip
    call = call_of(replace(make_attention(), kernels=(kernel,)))
    assert backend_of(call, resolve_gpu(H100)) is AttentionBackend.FLASH_3
    assert backend_of(call, resolve_gpu(A100)) is AttentionBackend.FLASH_2
    assert backend_of(call, resolve_gpu(B200)) is CUDNN
    forbidden = replace(call, allowed=("cudnn",))
    assert backend_of(forbidden, resolve_gpu(H100)) is CUDNN


def test_the_script_s_own_order_counts_where_it_has_one():
    order = ("efficient", "cudnn", "flash")
    for prefers, backend in ((True, EFFICIENT), (False, AttentionBackend.CUDNN)):
        call = call_of(make_attention(allowed=order, prefers=prefers))
        assert backend_of(call, resolve_gpu(H100)) is backend
    before = call_of(make_attention(allowed=("cudnn", "flash"), prefers=True))
    assert backend_of(before, resolve_gpu(A100)) is CUDNN


@pytest.mark.parametrize(
    ("op", "gpu", "is_allowed"),
    [
        (make_attention(allowed=("flash",)), A100, True),
        (make_attention(dtype="float16", allowed=("flash",)), T4, False),
        (make_attention(dtype="float32", allowed=("flash",)), A100, False),
        (make_attention(allowed=("flash", "math")), T4, True),
        (make_attention(allowed=("cudnn",)), H100, True),
        (make_attention(dtype="float16", allowed=("cudnn",)), V100, False),
        (make_attention(allowed=()), H100, False),
        (make_attention(dtype="float16"), P100, True),
    ],
)
def test_a_call_is_refused_where_nothing_that_is_allowed_can_run_it(op, gpu, is_allowed):
    call, spec = call_of(op), resolve_gpu(gpu)
    assert is_refused(call, spec) is not is_allowed
    if not is_allowed:  # its time is what the GPU could do
        assert backend_of(call, spec) is backend_of(replace(call, allowed=None), spec)


def test_names_of_backends_that_nobody_knows_are_no_backends():
    call = call_of(make_attention(allowed=("overrideable", "efficient")))
    assert backend_of(call, resolve_gpu(H100)) is EFFICIENT
    odd = replace(make_attention(), attributes={"backends": ("flash", 3), "prefers_backends": 1})
    assert call_of(odd).allowed == ("flash",)
    assert not call_of(odd).prefers


def test_tiles_of_the_busiest_sm():
    # 8 heads of 4 blocks of rows are 32 blocks of 4 tiles and a start; a started wave is a whole one.
    call = call_of(make_attention(batch=1, heads=8, queries=512))
    assert [busiest_tiles(call, KERNEL, num_sms) for num_sms in (1, 16, 31, 32, 64)] == [160, 10, 10, 5, 5]
    # Of a short sequence a quarter of a block's start, and two tiles as wide as any.
    call = call_of(make_attention(batch=1, heads=1, queries=30, keys=256))
    assert busiest_tiles(call, KERNEL, 1) == 0.25 + 2
    # Backward, blocks are of keys and walk over the queries: two full ones of one tile.
    assert busiest_tiles(replace(call, is_backward=True), KERNEL, 1) == 2 * (1 + 1)
    forward = call_of(make_attention(batch=1, heads=1, queries=1280, keys=128))
    assert busiest_tiles(forward, KERNEL, 1) == 10 * (1 + 1)
    assert busiest_tiles(replace(forward, is_backward=True), KERNEL, 1) == 10 + 1


def test_a_causal_block_walks_as_far_as_it_sees_and_the_longest_ends_alone():
    call = call_of(make_attention(batch=1, heads=16, queries=512, is_causal=True))
    # Of 16 tiles a head shows 10; 4 blocks start; half of the longest block of 5 is left over at the end.
    assert busiest_tiles(call, KERNEL, 4) == pytest.approx(16 * (10 + 4) / 4 + 2.5)
    # Where every block has an SM of its own, the longest counts.
    assert busiest_tiles(call, KERNEL, 64) == 5


def test_seconds_are_tiles_and_the_bytes_that_nothing_hides():
    gpu = replace(resolve_gpu(A100), num_sms=10, memory_bytes_per_s=1e12)
    call = call_of(make_attention(batch=1, heads=10, queries=128, size=64))
    # One block of two tiles an SM: 2 x 128 x 128 x (64 + 64) FLOPs each, at half of 10 TFLOP/s over ten SMs.
    tiles_s = 2 * (2 * 128 * 128 * 128) / (0.5 * 1e12)
    assert seconds(call, KERNEL, gpu, 1e13) == pytest.approx(tiles_s + 2 * call.num_bytes / 1e12)
    backward = replace(call, is_backward=True)
    products_s = 2 * (2 * 128 * 128 * 5 * 64) / (0.5 * 1e12)
    assert seconds(backward, KERNEL, gpu, 1e13) == pytest.approx(products_s + 2 * call.num_bytes / 1e12)


def test_heads_between_those_measured():
    call = call_of(make_attention(size=64))
    assert [efficiency_of(KERNEL, call, width) for width in (32, 64, 96, 128, 256)] == pytest.approx(
        [0.5, 0.5, 0.6, 0.7, 0.7]
    )
    assert efficiency_of(KERNEL, replace(call, key_size=72), 96) == pytest.approx(0.9 * 0.6)


def test_amperes_instructions_are_the_limit_on_later_gpus():
    ampere = replace(KERNEL, is_mma_sync=True)
    for name in ("RTX-3090", A100):  # whose tensor cores do no more
        gpu = resolve_gpu(name)
        assert rate_flops_per_s(ampere, gpu, "bf16") == pytest.approx(
            gpu.tensor_flops_per_s["bf16"], rel=1e-3
        )
    hopper = resolve_gpu(H100)
    assert rate_flops_per_s(ampere, hopper, "bf16") == 2048 * 132 * 1.98e9
    assert rate_flops_per_s(KERNEL, hopper, "bf16") == hopper.tensor_flops_per_s["bf16"]


def test_a_kernel_that_nobody_measured_is_slower_than_flash_attention_and_wide():
    masked, free = make_attention(mask=True, kernel="efficient"), make_attention()
    assert fitted(masked, A100).time_s > 1.9 * fitted(free, A100).time_s
    assert fitted(masked, A100).sigma > 2 * fitted(free, A100).sigma


def test_sigma_is_wider_for_what_was_not_measured():
    flash = kernels()[AttentionBackend.FLASH_2, True]
    assert fitted(make_attention(backward=True), A100).sigma == flash.sigma
    assert fitted(make_attention(backward=True), L40S).sigma == flash.sigma_unseen > flash.sigma
    assert fitted(make_attention(size=64), H100).sigma > fitted(make_attention(size=128), H100).sigma
    assert fitted(make_attention(dropout_p=0.1), A100).sigma > fitted(make_attention(), A100).sigma


@pytest.mark.parametrize(
    ("op", "gpu"),
    [
        (make_attention(dtype="float32"), A100),
        (make_attention(dtype="bfloat16"), T4),
        (make_attention(dtype="float16"), P100),
        (make_attention(), "MI300X"),
    ],
)
def test_the_roofline_tells_where_no_kernel_in_16_bits_was_measured(op, gpu):
    assert time_on(op, resolve_gpu(gpu)) is None


def test_no_shipped_kernel_exceeds_its_rate():
    for kernel in kernels().values():
        assert max(kernel.efficiency.values()) < 1.0
        assert 0 < kernel.sigma <= kernel.sigma_unseen < 0.3
