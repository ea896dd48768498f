"""Laws of a divided model: what more GPUs, more network or more parts must do to time and memory."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.units import GIB
from advisor.core.values import Fabric, IterationEstimate, Layout, Link, Network, Sharding, Split, Trace
from advisor.predict.exchange.collective_time import ScalingConstants
from advisor.predict.iteration import predict
from advisor.predict.step_time import OTHERS, STAGES
from tests.builders import make_gpu
from tests.unit.predict.split.transformers import transformer

GPU = make_gpu(memory_bytes=80 * GIB, nvlink_bytes_per_s=300e9)
POWERS = st.sampled_from([1, 2, 4, 8])
EXACT = 1 + 1e-9
SHARDINGS = st.sampled_from(Sharding)


@st.composite
def transformers(draw: st.DrawFn) -> Trace:
    return transformer(
        layers=draw(st.integers(8, 24)),
        heads=draw(st.sampled_from([8, 16])),
        length=draw(st.sampled_from([64, 256])),
        batch=draw(st.sampled_from([1, 4, 16])),
        words=draw(st.integers(100, 4_000)),
    )


def layout_of(split: Split, network_bytes_per_s: float = 50e9, copies: int = 1) -> Layout:
    fabric = Fabric(
        link=Link.NVSWITCH, link_bytes_per_s=300e9, network=Network.INFINIBAND,
        network_bytes_per_s=network_bytes_per_s,
    )  # fmt: skip
    return Layout(gpus_per_node=split.tensor * copies, num_nodes=split.pipeline, fabric=fabric)


def estimate_of(trace: Trace, split: Split, layout: Layout) -> IterationEstimate:
    return predict(trace, GPU, layout, split=split)


def need_of(estimate: IterationEstimate) -> float:
    return estimate.memory.need_bytes.p50


@given(transformers(), POWERS, POWERS)
def test_a_divided_model_is_never_faster_than_its_gpus_are_many(trace, tensor, pipeline):
    split = Split(tensor=tensor, pipeline=pipeline)
    alone = predict(trace, GPU).iteration_s.p50
    assert estimate_of(trace, split, layout_of(split)).iteration_s.p50 * split.gpus_per_copy * EXACT >= alone


@settings(max_examples=20)
@given(transformers(), SHARDINGS, POWERS, st.sampled_from([2, 4]), st.floats(1e9, 1e11), st.floats(1, 50))
def test_more_network_is_never_slower(trace, sharding, tensor, pipeline, network, more):
    split = Split(sharding=sharding, tensor=tensor, pipeline=pipeline)
    slow, fast = (estimate_of(trace, split, layout_of(split, rate, 2)) for rate in (network, network * more))
    assert fast.iteration_s.p50 <= slow.iteration_s.p50 * EXACT


@settings(max_examples=20)
@given(transformers(), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_more_parts_hold_no_more_each(trace, tensor, pipeline):
    split, finer = Split(tensor=tensor, pipeline=pipeline), Split(tensor=2 * tensor, pipeline=pipeline)
    need, less = (
        need_of(estimate_of(trace, one, Layout(gpus_per_node=32, num_nodes=4))) for one in (split, finer)
    )
    assert less <= need * EXACT


@settings(max_examples=20)
@given(transformers(), SHARDINGS, st.sampled_from([2, 4, 8]))
def test_sharding_copies_holds_no_more_each(trace, sharding, tensor):
    layout = Layout(gpus_per_node=16, num_nodes=2)
    plain, shared = (
        need_of(estimate_of(trace, Split(tensor=tensor, sharding=one), layout))
        for one in (Sharding.NONE, sharding)
    )
    assert shared <= plain * EXACT


@settings(max_examples=20)
@given(transformers(), POWERS, POWERS)
def test_parts_of_the_time_add_up(trace, tensor, pipeline):
    split = Split(tensor=tensor, pipeline=pipeline)
    estimate = estimate_of(trace, split, layout_of(split))
    parts = sum(estimate.by_family.values()) + estimate.communication_s
    assert estimate.device_s.p50 == pytest.approx(parts)
    assert sum(estimate.by_bound.values()) == pytest.approx(estimate.device_s.p50)


@settings(max_examples=20)
@given(transformers(), POWERS, st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4, 8]))
def test_stages_wait_for_the_slowest_no_longer_than_as_many_copies_would(
    trace, pipeline, copies, micro_batches
):
    split = Split(pipeline=pipeline, micro_batches=micro_batches)
    estimate = predict(trace, GPU, pipeline * copies, split=split)
    of_all = estimate.by_family
    waits = of_all.get(OTHERS, 0.0)
    own_s = predict(trace, GPU, pipeline, split=split).by_family
    computing_s = sum(seconds for name, seconds in own_s.items() if name not in (OTHERS, STAGES))
    # DDP's copies of gradients are a rank's own kernels, and stand with the exchange or the host's launches.
    alone_s = sum(seconds for name, seconds in of_all.items() if name not in (OTHERS, STAGES))
    most_s = max(alone_s, computing_s) + estimate.communication_s
    # GPUs of one node that hold the whole model wait once a step.
    scaling = (
        ScalingConstants() if pipeline > 1 else ScalingConstants(spread=ScalingConstants().spread_of_steps)
    )
    assert waits <= scaling.waiting(pipeline * copies) * most_s * EXACT
    evened_s = scaling.waiting(copies) / math.sqrt(micro_batches) * computing_s
    assert evened_s <= waits * EXACT
