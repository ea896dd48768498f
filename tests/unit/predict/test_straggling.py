"""Batches that differ from one to the next: what the slowest GPU is late by, and how sure that is."""

import math
from dataclasses import replace

import numpy as np
import pytest

from advisor.core.findings.about_estimates import BatchVariation
from advisor.core.values import Z90, Collective, IterationEstimate, Phase, Trace
from advisor.predict.exchange.collective_time import ScalingConstants, batch_variation, slowest
from advisor.predict.iteration import predict_counts
from advisor.predict.step_time import OTHERS
from tests.builders import make_gpu, make_op, make_trace

GPU = make_gpu(nvlink_bytes_per_s=300e9)
VARIATION = 0.4


def varied(variation: float | None = VARIATION, **changes: object) -> Trace:
    return make_trace(batch_variation=variation, **changes)


def estimate(trace: Trace, num_gpus: int) -> IterationEstimate:
    return predict_counts(trace, GPU, [num_gpus])[0]


@pytest.mark.parametrize("num_gpus", [2, 8, 32])
def test_the_wait_is_that_of_ranks_that_draw_sentences(num_gpus):
    """Each rank pads 16 sentences to the longest of them; log-normal lengths, cut at 512 tokens.

    The longest sentences are skewed, so the slowest of many ranks is later than of a normal distribution.
    """
    rng = np.random.default_rng(0)
    lengths = np.minimum(np.exp(rng.normal(3.3, 0.6, size=(4000, num_gpus, 16))), 512)
    held = lengths.max(axis=2)
    late = held.max(axis=1).mean() / held.mean() - 1
    variation = float(held.std() / held.mean())
    assert variation * slowest(num_gpus) == pytest.approx(late, rel=0.2 if num_gpus <= 8 else 0.35)


def test_the_longest_of_many_sentences_hardly_varies():
    """GNMT's batches: 128 sentences of 50 tokens at most, at random or of a bucket of ten lengths."""
    rng = np.random.default_rng(0)
    lengths = np.exp(rng.normal(3.2, 0.55, size=1_500_000))
    lengths = lengths[lengths <= 50]
    for low, high, most in ((0, 50, 0.025), (20, 30, 0.005), (40, 50, 0.005)):
        inside = lengths[(lengths > low) & (lengths <= high)]
        held = inside[: len(inside) // 1024 * 1024].reshape(-1, 8, 128).max(axis=2)
        assert 0 < held.max(axis=1).mean() / held.mean() - 1 < most
        assert float(held.std() / held.mean()) * slowest(8) < 2 * most


def test_passes_even_out():
    assert batch_variation(varied(accumulation=4)) == VARIATION / 2
    assert batch_variation(varied(None)) == 0


@pytest.mark.parametrize(("gathers", "evens"), [(False, True), (True, False)])
def test_what_gpus_differ_by_evens_out_over_passes_unless_each_exchanges(gathers, evens):
    """The slowest of N GPUs that take k passes each is late by a k-th of the variance."""
    trace = replace(varied(None), accumulation=16)
    if gathers:
        gather = Collective(kind="all_gather", num_bytes=10**6, world_size=8, count=32)
        trace = replace(trace, collectives=(gather,), world_size=8, is_sharded=True)
    families = estimate(trace, 8).by_family
    own_s = sum(seconds for family, seconds in families.items() if family != OTHERS)
    spread = ScalingConstants().spread if gathers else ScalingConstants().spread_of_steps
    share = spread * slowest(8) / (4 if evens else 1)
    assert families[OTHERS] == pytest.approx(share * own_s)


def test_gpus_wait_for_the_largest_batch_and_not_in_the_optimizer():
    trace = varied()
    one, eight = estimate(trace, 1), estimate(trace, 8)
    alone_s = one.iteration_s.p50
    passes_s = alone_s - one.by_family["optimizer"]
    share = math.hypot(ScalingConstants().spread_of_steps, VARIATION * passes_s / alone_s) * slowest(8)
    assert OTHERS not in one.by_family
    assert eight.by_family[OTHERS] == pytest.approx(share * alone_s)
    assert eight.by_family[OTHERS] > 5 * estimate(varied(0.0), 8).by_family[OTHERS]


def test_one_recorded_batch_stands_for_all_and_is_that_unsure():
    plain, other = estimate(varied(0.0), 1).iteration_s, estimate(varied(), 1).iteration_s
    assert plain.p50 == other.p50
    added = math.log(other.p90 / other.p50) ** 2 - math.log(plain.p90 / plain.p50) ** 2
    assert math.sqrt(added) / Z90 == pytest.approx(VARIATION, rel=0.05)


def test_where_ranks_may_draw_alike_the_interval_reaches_down_to_no_wait():
    alike, apart = estimate(varied(0.0), 8).iteration_s, estimate(varied(), 8).iteration_s
    assert apart.p10 < alike.p50 < apart.p50


def test_what_was_measured_is_the_median_of_many_batches():
    ops = (make_op(measured_s=0.1), make_op(phase=Phase.BACKWARD, measured_s=0.2))
    measured = varied(origin_gpu=GPU.name, backend="cuda", iteration_s=0.35, ops=ops)
    plain = estimate(replace(measured, batch_variation=0.0), 1).iteration_s
    assert estimate(measured, 1).iteration_s == plain


@pytest.mark.parametrize("variation", [None, 0.0, 0.004, VARIATION])
@pytest.mark.parametrize("num_gpus", [1, 8])
def test_a_note_says_so_where_it_reads_as_more_than_nothing(variation, num_gpus):
    notes = estimate(varied(variation), num_gpus).assumptions
    facts = [note.facts for note in notes if isinstance(note, BatchVariation)]
    assert facts == ([{"variation": VARIATION, "waits": num_gpus > 1}] if variation == VARIATION else [])
