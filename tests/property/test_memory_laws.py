"""Laws of memory: a larger batch needs more, more ranks hold less each, and parts add up."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.units import GIB
from advisor.core.values import Fit, Layout, MemoryUse, Phase, Sharding
from advisor.predict.distinct import Blocks
from advisor.predict.footprint import (
    Footprint,
    footprint,
    memory_need,
    need_bytes,
    need_of,
    overheads,
    sharded,
)
from advisor.predict.largest_batch import FittedScript, StepSeconds, changed, largest_batch, remedies
from tests.builders import make_gpu, make_trace
from tests.unit.predict.footprint.scripts import make_transformer

ONE = Layout(gpus_per_node=1)
SIZES = st.integers(0, 64 * GIB)
SHARES = st.floats(1 / 64, 64)
LEVELS = (Sharding.NONE, Sharding.ZERO_1, Sharding.ZERO_2, Sharding.ZERO_3)


@st.composite
def footprints(draw: st.DrawFn) -> Footprint:
    gradients, activations = draw(SIZES), draw(SIZES)
    return Footprint(
        weights=draw(SIZES),
        gradients=gradients,
        optimizer=draw(SIZES),
        gradients_at_peak=draw(st.integers(0, gradients)),
        activations=activations,
        most_activations=activations + draw(SIZES),
        copies=draw(SIZES),
        step_temporary=draw(SIZES),
        kept=draw(SIZES),
        buckets=gradients,
        blocks=Blocks(
            num=draw(st.integers(1, 100)), boundary_bytes=draw(SIZES), outside_share=draw(st.floats(0, 1))
        ),
    )


def version_of(tensors: Footprint, layout: Layout = ONE) -> FittedScript:
    trace, gpu = make_transformer(), make_gpu()
    return FittedScript(
        trace=trace,
        gpu=gpu,
        layout=layout,
        tensors=tensors,
        beside=overheads(trace, gpu, layout),
        seconds=StepSeconds(forward=1.0, backward=2.0, optimizer=0.1, exchange=0.1, rest=0.1),
        timed=lambda _: dict.fromkeys(Phase, 1.0),
        slowdown=0.1,
    )


@given(footprints(), SHARES, SHARES)
def test_memory_is_monotone_in_the_batch(tensors, one, other):
    less, more = sorted((one, other))
    beside = overheads(make_trace(), make_gpu(), ONE)
    small, large = (need_of(tensors, beside, share).need_bytes for share in (less, more))
    assert small.p50 <= large.p50 + 1


@given(footprints(), SHARES)
def test_parts_add_up_to_the_need(tensors, share):
    need = need_of(tensors, overheads(make_trace(), make_gpu(), ONE), share)
    assert sum(need.parts.values()) == need.need_bytes.p50
    assert min(need.parts.values()) >= 0
    assert need.need_bytes.p10 <= need.need_bytes.p50 <= need.need_bytes.p90


@given(footprints(), st.integers(1, 256), st.integers(1, 8), st.sampled_from(LEVELS))
def test_more_ranks_never_hold_more_each(tensors, ranks, factor, level):
    few, many = (
        sum(sharded(tensors, level, Layout(gpus_per_node=count)).parts().values())
        for count in (ranks, ranks * factor)
    )
    if ranks > 1:
        assert many <= few * (1 + 1e-9)


@given(footprints(), st.integers(2, 256))
def test_each_level_of_sharding_holds_no_more_state_than_the_one_before(tensors, ranks):
    layout = Layout(gpus_per_node=ranks)
    parts = [sharded(tensors, level, layout) for level in LEVELS]
    states = [part.weights + part.gradients + part.optimizer for part in parts]
    assert all(after <= before for before, after in itertools.pairwise(states))


@given(footprints(), st.integers(1, 512), st.integers(1, 4), st.integers(GIB, 256 * GIB))
def test_the_largest_batch_fits_and_one_more_does_not(tensors, samples, passes, limit_bytes):
    beside = overheads(make_trace(), make_gpu(), ONE)
    trace = make_trace(batch_size=samples * passes, accumulation=passes)
    largest = largest_batch(trace, lambda share: need_bytes(tensors, beside, share), limit_bytes)
    for most, enough in ((largest.likely, (Fit.LIKELY, Fit.CERTAIN)), (largest.certain, (Fit.CERTAIN,))):
        of_pass = most // passes
        fits = [
            need_of(tensors, beside, size / samples).fit(limit_bytes) in enough
            for size in (of_pass, of_pass + 1)
            if size
        ]
        if of_pass < 1024 * samples:
            assert fits == ([True, False] if of_pass else [False])


@given(footprints())
def test_checkpointing_needs_no_more_memory_and_takes_no_less_time(tensors):
    script = version_of(tensors)
    after = changed(script, ["checkpointing"])
    if after is not None:
        assert after.need_bytes().p50 <= script.need_bytes().p50 + 1
        assert after.seconds.total >= script.seconds.total


@given(footprints(), st.sampled_from(["8-bit-optimizer", "zero-1", "zero-2"]))
def test_what_shrinks_state_alone_takes_no_less_time(tensors, name):
    script = version_of(tensors, Layout(gpus_per_node=8))
    after = changed(script, [name])
    if after is not None:
        assert after.need_bytes().p50 <= script.need_bytes().p50 + 1
        # But for the step itself: a rank that keeps a part of the state updates that part.
        saved_s = script.seconds.optimizer - after.seconds.optimizer
        assert after.seconds.total + saved_s >= script.seconds.total
        assert saved_s in (0.0, pytest.approx(7 / 8 * script.seconds.optimizer))


@settings(max_examples=25)
@given(footprints(), st.integers(GIB, 128 * GIB), st.sampled_from([1, 8]))
def test_remedies_fit(tensors, limit_bytes, num_gpus):
    script = version_of(tensors, Layout(gpus_per_node=num_gpus))
    offered = remedies(script, limit_bytes)
    assert all(one.need_bytes.p50 <= limit_bytes for one in offered)
    assert len({len(one.changes) for one in offered}) <= 1
    assert all(len(set(one.changes)) == len(one.changes) for one in offered)


@given(SIZES, SIZES, st.integers(2, 64))
def test_memory_grows_with_the_peak_and_with_data_parallelism(peak, gradients, num_gpus):
    memory = MemoryUse(
        parameter_bytes=0, gradient_bytes=gradients, optimizer_bytes=0, activation_bytes=peak, peak_bytes=peak
    )
    trace, gpu = make_trace(memory=memory), make_gpu()
    larger = replace(memory, activation_bytes=peak + GIB, peak_bytes=peak + GIB)
    alone, grown = (memory_need(make_trace(memory=one), gpu, ONE) for one in (memory, larger))
    together = memory_need(trace, gpu, Layout(gpus_per_node=num_gpus))
    assert peak < alone.need_bytes.p50 <= grown.need_bytes.p50
    assert together.need_bytes.p50 > alone.need_bytes.p50


@given(SHARES, SHARES)
def test_a_share_of_a_share_is_a_share(one, other):
    tensors = footprint(make_transformer(), ONE)
    scaled = replace(
        tensors, activations=tensors.activations * one, most_activations=tensors.most_activations * one
    )
    held, at_once = (sum(one.values()) for one in (scaled.parts(other), tensors.parts(one * other)))
    assert abs(held - at_once) <= 1e-6 * at_once
