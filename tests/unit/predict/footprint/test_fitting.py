"""Changes after which a script fits: which are offered, what they hold, and what they cost in time."""

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.units import GIB
from advisor.core.values import Fabric, Fit, IterationEstimate, Layout, Link, Precision, Remedy, Trace
from advisor.formats.trace_files import read_trace
from advisor.predict.footprint import footprint, overheads
from advisor.predict.iteration import predict
from advisor.predict.largest_batch import FittedScript, StepSeconds, changed, with_8_bit_optimizer, with_lora
from tests.builders import make_gpu
from tests.unit.predict.footprint.scripts import BLOCKS, MEMORY, make_transformer

ALTERING = {"lora", "qlora", "bf16-weights"}
TRACES = Path(__file__).parents[3] / "memory_traces"
AMPERE = {"tensor_flops_per_s": {"bf16": 100e12, "fp16": 100e12, "tf32": 50e12}}


def estimate_of(memory_gib: float, trace: Trace | None = None, layout: int | Layout = 1) -> IterationEstimate:
    gpu = make_gpu(memory_bytes=round(memory_gib * GIB), **AMPERE)
    return predict(trace or make_transformer(), gpu, layout)


def by_name(estimate: IterationEstimate) -> dict[tuple[str, ...], Remedy]:
    return {remedy.changes: remedy for remedy in estimate.remedies}


def test_what_fits_needs_no_remedy():
    assert estimate_of(40).remedies == ()


def test_every_remedy_fits_and_the_least_slow_comes_first():
    remedies = estimate_of(22).remedies
    assert {one.changes for one in remedies} >= {("checkpointing",), ("accumulation",), ("8-bit-optimizer",)}
    for remedy in remedies:
        assert remedy.need_bytes.p50 <= 22 * GIB
        assert (remedy.fit is Fit.CERTAIN) == (remedy.need_bytes.p90 <= 22 * GIB)
    same = [one.slower.p50 for one in remedies if not set(one.changes) & ALTERING]
    assert same == sorted(same)


def test_what_makes_another_model_comes_last():
    names = [one.changes for one in estimate_of(22).remedies]
    alters = [bool(set(name) & ALTERING) for name in names]
    assert alters == sorted(alters)
    assert any(alters)


def test_checkpointing_keeps_a_stream_for_each_block_and_runs_forward_again():
    estimate = estimate_of(20)
    remedy = by_name(estimate)["checkpointing",]
    # Eight streams of 64 MiB and the activations of one block.
    before, after = 16 * GIB, BLOCKS * 2**26 + 2 * GIB
    assert estimate.memory.need_bytes.p50 - remedy.need_bytes.p50 == pytest.approx(
        1.083 * (before - after), rel=0.01
    )
    # A third of forward and backward once more.
    assert remedy.slower.p50 == pytest.approx(4 / 3, rel=0.02)
    assert remedy.batch_size == 64


def test_accumulation_takes_no_smaller_passes_than_it_must():
    remedy = by_name(estimate_of(20))["accumulation",]
    assert remedy.batch_size == 32
    # 2 * (1/2) ** 0.73, and never faster than before.
    assert remedy.slower.p50 == pytest.approx(2**0.27, rel=0.02)
    assert remedy.slower.p10 == pytest.approx(1.0, abs=0.03)


def test_a_batch_of_one_cannot_be_divided():
    assert ("accumulation",) not in by_name(estimate_of(20, make_transformer(batch_size=1)))
    assert ("accumulation",) not in by_name(estimate_of(20, make_transformer(batch_size=None)))


def test_an_8_bit_optimizer_keeps_a_quarter_of_the_state():
    estimate = estimate_of(22)
    remedy = by_name(estimate)["8-bit-optimizer",]
    saved = estimate.memory.need_bytes.p50 - remedy.need_bytes.p50
    assert saved == pytest.approx(1.083 * 4 * GIB * (3 / 4 - 1 / 256), rel=0.01)
    assert remedy.slower.p50 == 1.0


def test_four_bits_hold_a_quarter_of_the_layers_weights():
    # Of LLaMA-7B 224 matrices of 16 bits; the words, the head and norms stay.
    trace = read_trace(TRACES / "llama-7b-bf16-512.json.gz")
    gpu = make_gpu(memory_bytes=12 * GIB, **AMPERE)
    layout = Layout(gpus_per_node=1)
    tensors = footprint(trace, layout)
    assert tensors is not None
    seconds = StepSeconds(forward=1.0, backward=2.0, optimizer=0.1, exchange=0.0, rest=0.0)
    script = FittedScript(
        trace=trace, gpu=gpu, layout=layout, tensors=tensors, beside=overheads(trace, gpu, layout),
        seconds=seconds, timed=lambda _: {}, slowdown=0.0,
    )  # fmt: skip
    lora, qlora = (changed(script, [name]) for name in ("lora", "qlora"))
    layers = 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    assert lora.tensors.weights - qlora.tensors.weights == pytest.approx(layers * (2 - 4.127 / 8))
    # Forward and backward each make every weight, of which an SM takes about two clocks.
    made_s = layers * 2.0448 / (gpu.num_sms * gpu.boost_clock_hz)
    assert qlora.seconds.total - lora.seconds.total == pytest.approx(2 * made_s)
    assert qlora.sigma > lora.sigma
    assert qlora.alters


def test_a_model_without_layers_has_no_four_bits():
    estimate = estimate_of(0.5, make_transformer(ops=make_transformer().ops[2:]))
    assert not any("qlora" in one.changes for one in estimate.remedies)


def test_without_optimizer_state_there_is_nothing_to_shrink():
    memory = replace(MEMORY, optimizer_bytes=0, peak_bytes=18 * GIB)
    assert not any(
        "8-bit-optimizer" in name for name in by_name(estimate_of(16, make_transformer(memory=memory)))
    )


def test_several_gpus_can_share_the_model():
    remedies = by_name(estimate_of(22.5, layout=8))
    needs = [remedies[level,].need_bytes.p50 for level in ("zero-1", "zero-2", "zero-3")]
    assert needs == sorted(needs, reverse=True)
    assert ("hybrid",) not in remedies
    assert ("zero-1",) not in by_name(estimate_of(22.5))


def test_a_hybrid_is_for_several_nodes():
    fabric = Fabric(link=Link.PCIE, link_bytes_per_s=16e9)
    layout = Layout(gpus_per_node=8, num_nodes=4, fabric=fabric)
    remedies = by_name(estimate_of(22.5, layout=layout))
    assert remedies["hybrid",].need_bytes.p50 > remedies["zero-3",].need_bytes.p50
    # Over a network that nobody knows the whole gather costs more.
    assert remedies["hybrid",].slower.p50 < remedies["zero-3",].slower.p50


def test_changes_are_combined_where_none_is_enough():
    remedies = estimate_of(7.5).remedies
    assert remedies
    assert {len(one.changes) for one in remedies} == {2}
    for changes in (one.changes for one in remedies):
        assert not {"autocast", "bf16-weights"} <= set(changes)


def test_where_nothing_helps_nothing_is_offered():
    assert estimate_of(0.5).remedies == ()


def test_a_script_in_16_bits_has_no_autocast_to_add():
    precision = Precision(amp_dtype="bfloat16", tf32_matmul=False, tf32_cudnn=True)
    names = by_name(estimate_of(22, make_transformer(precision=precision)))
    assert not any("autocast" in name for name in names)
    assert ("bf16-weights",) in names


def test_an_old_gpu_has_no_bf16():
    volta = make_gpu(memory_bytes=20 * GIB)
    names = {one.changes for one in predict(make_transformer(), volta).remedies}
    assert not any("bf16-weights" in name for name in names)


# Adapters of rank 16 beside a matrix of 512 x 512.
TRAINED = 16 * (512 + 512) / 512**2


def version() -> FittedScript:
    trace, gpu, layout = make_transformer(), make_gpu(), Layout(gpus_per_node=1)
    tensors = footprint(trace, layout)
    assert tensors is not None
    return FittedScript(
        trace=trace,
        gpu=gpu,
        layout=layout,
        tensors=replace(tensors, step_temporary=1000.0, buckets=500.0),
        beside=overheads(trace, gpu, layout),
        seconds=StepSeconds(forward=1.0, backward=2.0, optimizer=0.5, exchange=0.0, rest=0.0),
        timed=lambda _: {},
        slowdown=0.0,
    )


def test_adapters_train_their_share_of_the_weights():
    before, after = version(), with_lora(version())
    assert after.alters
    assert after.tensors.weights == pytest.approx(before.tensors.weights * (1 + TRAINED))
    for name in ("gradients", "gradients_at_peak", "optimizer", "step_temporary", "buckets"):
        assert getattr(after.tensors, name) == pytest.approx(getattr(before.tensors, name) * TRAINED), name
    assert after.seconds.optimizer == pytest.approx(0.5 * TRAINED)
    assert after.seconds.forward == 1.0
    assert 1.0 < after.seconds.backward < 2.0


def test_eight_bits_are_a_quarter_and_a_constant_for_256_values():
    before, after = version(), with_8_bit_optimizer(version())
    assert after.tensors.optimizer == pytest.approx(before.tensors.optimizer * (1 / 4 + 1 / 256))
    assert after.tensors.weights == before.tensors.weights
