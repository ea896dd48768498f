"""A model that copies of a script would share: memory and time by what each level of ZeRO exchanges."""

from dataclasses import replace

import pytest

from advisor.core.errors import InputError
from advisor.core.findings.about_estimates import Supposed
from advisor.core.units import GIB
from advisor.core.values import WHOLE, Collective, IterationEstimate, Layout, Sharding, Split, Trace
from advisor.predict.exchange.collective_time import collective_time
from advisor.predict.iteration import predict
from tests.builders import make_gpu
from tests.unit.predict.footprint.scripts import make_transformer

EIGHT = Layout(gpus_per_node=8)
GPU = make_gpu(memory_bytes=80 * GIB, nvlink_bytes_per_s=300e9)
ZERO = [Split(sharding=one) for one in (Sharding.ZERO_1, Sharding.ZERO_2, Sharding.ZERO_3)]


def estimate_of(split: Split, layout: Layout = EIGHT, trace: Trace | None = None) -> IterationEstimate:
    return predict(trace or make_transformer(), GPU, layout, split=split)


def need_of(estimate: IterationEstimate) -> float:
    return estimate.memory.need_bytes.p50


def test_each_level_holds_less():
    needs = [need_of(estimate_of(split)) for split in (WHOLE, *ZERO)]
    assert needs == sorted(needs, reverse=True)
    # 2 GiB of weights and 4 of optimizer state; the pass is the peak, with no gradients yet.
    assert needs[0] - needs[1] == pytest.approx(1.083 * (4 * 7 / 8 * GIB + 2 * GIB - 50 * 2**20), rel=0.01)


def test_zero_1_gathers_the_weights_after_the_step():
    plain, shared = estimate_of(WHOLE), estimate_of(ZERO[0])
    gather = collective_time("all_gather", 2 * GIB, EIGHT, GPU)
    assert shared.communication_s - plain.communication_s == pytest.approx(gather.seconds)
    assert shared.by_family["optimizer"] == pytest.approx(plain.by_family["optimizer"] / 8)


@pytest.mark.parametrize("split", ZERO)
def test_a_remedy_and_a_supposition_say_the_same(split):
    small = make_gpu(memory_bytes=22 * GIB, nvlink_bytes_per_s=300e9)
    plain, shared = (predict(make_transformer(), small, EIGHT, split=one) for one in (WHOLE, split))
    remedy = {one.changes: one for one in plain.remedies}[split.name,]
    assert remedy.need_bytes == shared.memory.need_bytes if shared.memory else None
    expected = remedy.slower.p50 * plain.device_s.p50
    # All wait for the slowest: a share of what the optimizer takes.
    assert shared.device_s.p50 == pytest.approx(expected, rel=0.01)


def test_one_gpu_has_nothing_to_share():
    plain, shared = (estimate_of(split, Layout(gpus_per_node=1)) for split in (WHOLE, ZERO[2]))
    assert (shared.iteration_s, shared.memory) == (plain.iteration_s, plain.memory)


def test_what_was_not_profiled_is_less_sure_and_says_so():
    plain, shared = estimate_of(WHOLE), estimate_of(ZERO[2])
    assert shared.iteration_s.p90 / shared.iteration_s.p50 > plain.iteration_s.p90 / plain.iteration_s.p50
    assert shared.split == ZERO[2]
    assert Supposed in [type(note) for note in shared.assumptions]
    assert Supposed not in [type(note) for note in plain.assumptions]


def test_a_script_that_shards_already_is_refused():
    scatter = Collective(kind="reduce_scatter", num_bytes=2 * GIB, world_size=8, count=1)
    trace = make_transformer(world_size=8, is_sharded=True, collectives=(scatter,))
    with pytest.raises(InputError, match="divides its model itself, among 8 ranks"):
        estimate_of(ZERO[2], trace=trace)


def test_a_script_that_shards_already_is_not_told_to_shard():
    model = make_transformer()
    whole = 8 * (model.memory.gradient_bytes or 0)
    exchanges = [
        Collective(kind=kind, num_bytes=whole, world_size=8, count=1)
        for kind in ("all_gather", "reduce_scatter")
    ]
    trace = replace(model, world_size=8, is_sharded=True, collectives=tuple(exchanges))
    remedies = predict(trace, make_gpu(memory_bytes=8 * GIB), EIGHT).remedies
    assert remedies
    assert not {name for one in remedies for name in one.changes} & {one.value for one in Sharding}


def test_gpus_that_hold_no_whole_copies_are_refused():
    with pytest.raises(InputError, match="a multiple of 16 GPUs, in nodes of a multiple of 16"):
        estimate_of(Split(tensor=16), Layout(gpus_per_node=8, num_nodes=2))


def test_a_shared_model_is_not_offered_to_be_shared_again():
    tiny = make_gpu(memory_bytes=8 * GIB)
    remedies = predict(make_transformer(), tiny, EIGHT, split=ZERO[0]).remedies
    assert remedies
    assert not {name for one in remedies for name in one.changes} & {one.value for one in Sharding}
