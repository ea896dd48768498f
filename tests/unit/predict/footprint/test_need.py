"""Parts of the need, its width, and the largest batch, by hand."""

from dataclasses import replace

import pytest

from advisor.core.units import GIB, MIB
from advisor.core.values import Fit, Interval, Layout, MemoryEstimate, MemoryPart, Phase
from advisor.predict.footprint import (
    Overheads,
    added,
    footprint,
    fragmentation,
    memory_need,
    need_bytes,
    overheads,
)
from advisor.predict.iteration import predict
from advisor.predict.largest_batch import largest_batch, largest_share
from tests.builders import make_gpu, make_op
from tests.unit.predict.footprint.scripts import MEMORY, make_transformer

ONE = Layout(gpus_per_node=1)
# A stack of 1 KiB for each of 2,048 threads of 80 SMs, and PyTorch's kernels.
CONTEXT = 80 * 2048 * 1024 + 300 * MIB


def test_one_gpu():
    need = memory_need(make_transformer(), make_gpu(), ONE)
    assert need.parts[MemoryPart.CONTEXT] == CONTEXT
    assert need.parts[MemoryPart.WORKSPACE] == 16.25 * MIB
    assert need.parts[MemoryPart.FRAGMENTATION] == pytest.approx((fragmentation().p50 - 1) * 22 * GIB, abs=1)
    assert need.need_bytes.p50 == sum(need.parts.values())
    assert need.need_bytes.p10 < need.need_bytes.p50 < need.need_bytes.p90


def test_each_side_of_the_need_has_the_width_of_its_own_side():
    tensors = footprint(make_transformer(), ONE)
    fixed, lost = Interval(p10=0.0, p50=0.0, p90=0.0), Interval(p10=1.0, p50=1.1, p90=1.5)
    need = need_bytes(tensors, Overheads(parts={}, fixed=fixed, fragmentation=lost))
    total = tensors.peak(1.0).total
    assert need.p50 == round(1.1 * total)
    assert need.p50 - need.p10 == pytest.approx(0.1 * total)
    assert need.p90 - need.p50 == pytest.approx(0.4 * total)


def test_several_gpus_exchange_through_channels_and_buckets():
    need = memory_need(make_transformer(), make_gpu(), Layout(gpus_per_node=8))
    assert need.parts[MemoryPart.COMMUNICATION] == 2 * GIB + 300 * MIB


def test_convolutions_need_scratch_space_and_newer_gpus_more_of_it():
    conv = make_transformer(ops=(*make_transformer().ops, make_op("aten::convolution")))
    old, new = make_gpu(), make_gpu(compute_capability="9.0")

    def space(trace: object, gpu: object) -> float:
        return overheads(trace, gpu, ONE).parts[MemoryPart.WORKSPACE].p50  # type: ignore[arg-type]

    assert space(conv, old) == pytest.approx((16.25 + 192) * MIB)
    assert space(make_transformer(), new) == 64 * MIB
    assert space(make_transformer(), make_gpu(compute_capability="gfx942")) == 16.25 * MIB


def test_what_a_real_allocator_measured_has_scratch_space_in_it():
    parts = overheads(make_transformer(backend="cuda"), make_gpu(), ONE).parts
    assert parts[MemoryPart.WORKSPACE] == Interval(p10=0.0, p50=0.0, p90=0.0)


def test_independent_widths_add_up_in_quadrature():
    three, four = Interval(p10=7.0, p50=10.0, p90=13.0), Interval(p10=6.0, p50=10.0, p90=14.0)
    assert added([three, four]) == Interval(p10=15.0, p50=20.0, p90=25.0)
    assert added([]).p90 == 0.0


def test_it_fits_for_certain_where_nine_of_ten_cases_do():
    need = MemoryEstimate(parts={}, need_bytes=Interval(p10=9.0, p50=10.0, p90=12.0))
    assert [need.fit(limit) for limit in (9.9, 10.0, 11.9, 12.0)] == [
        Fit.NO, Fit.LIKELY, Fit.LIKELY, Fit.CERTAIN
    ]  # fmt: skip


def test_samples_of_all_passes_count():
    gpu = make_gpu(memory_bytes=24 * GIB)
    # 64 samples in four passes of 16, each of which holds 16 GiB.
    largest = predict(make_transformer(accumulation=4), gpu).largest_batch
    whole = predict(make_transformer(batch_size=16), gpu).largest_batch
    assert largest is not None
    assert whole is not None
    assert largest.likely == 4 * (whole.likely or 0)


def test_of_an_unknown_batch_the_share_is_known():
    largest = predict(make_transformer(batch_size=None), make_gpu(memory_bytes=16 * GIB)).largest_batch
    assert 0 < largest.share < 1
    assert (largest.certain, largest.likely) == (None, None)


def test_what_no_batch_needs_may_be_too_much():
    largest = predict(make_transformer(), make_gpu(memory_bytes=4 * GIB)).largest_batch
    assert (largest.share, largest.certain, largest.likely) == (0.0, 0, 0)


def test_a_need_that_does_not_grow_has_an_end():
    need = Interval(p10=1.0, p50=1.0, p90=1.0)
    assert largest_share(lambda _: need, 2.0) == 1024
    assert largest_batch(make_transformer(), lambda _: need, 2.0).likely == 64 * 1024


def test_an_unknown_peak_has_no_largest_batch():
    unknown = replace(MEMORY, activation_bytes=None, peak_bytes=None)
    estimate = predict(make_transformer(memory=unknown), make_gpu())
    assert (estimate.memory, estimate.fit, estimate.largest_batch, estimate.remedies) == (
        None,
        None,
        None,
        (),
    )


def test_inference_has_no_step():
    forward = tuple(op for op in make_transformer().ops if op.phase is Phase.FORWARD)
    memory = replace(MEMORY, gradient_bytes=0, optimizer_bytes=0, peak_bytes=18 * GIB)
    need = memory_need(make_transformer(ops=forward, memory=memory), make_gpu(), ONE)
    assert need.parts[MemoryPart.OPTIMIZER] == need.parts[MemoryPart.GRADIENTS] == 0
