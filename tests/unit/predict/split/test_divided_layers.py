"""Layers divided among GPUs and in stages: what each runs, holds and waits for."""

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.core.findings.about_estimates import DataParallel
from advisor.core.units import GIB
from advisor.core.values import WHOLE, IterationEstimate, Layout, Op, Phase, Split, Trace
from advisor.formats.trace_files import read_trace
from advisor.operators.work import tensor_bytes
from advisor.predict.batch_share import BatchShare
from advisor.predict.exchange.collective_time import ScalingConstants, collective_time
from advisor.predict.iteration import predict
from advisor.predict.split import divided_ops, in_micro_batches, rank_of, widths_of
from advisor.predict.step_time import OTHERS, STAGES
from tests.builders import make_gpu, make_op, make_trace
from tests.unit.predict.split.transformers import transformer

GPU = make_gpu(memory_bytes=80 * GIB, nvlink_bytes_per_s=300e9)
TRACES = Path(__file__).parents[3] / "memory_traces"
# Of GPT-2 XL: 25 heads of 64, 48 layers.
RANKS = 5


def traced(name: str) -> Trace:
    return read_trace(TRACES / f"{name}.json.gz")


def divided(trace: Trace, ranks: int) -> tuple[Op, ...]:
    widths = widths_of(trace.ops)
    assert widths is not None
    return divided_ops(trace.ops, widths, ranks)


def pass_flops(ops: tuple[Op, ...], names: tuple[str, ...]) -> int:
    return sum(op.count * op.flops for op in ops if op.name.removeprefix("aten::") in names)


@pytest.mark.parametrize(("name", "ranks"), [("gpt2-xl-fp16-1024", RANKS), ("llama3-8b-bf16-2048", 8)])
def test_products_and_attention_are_divided_whatever_wrote_them(name, ranks):
    trace = traced(name)
    products = (
        "mm", "addmm", "bmm", "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_backward", "_softmax", "silu", "tanh",
    )  # fmt: skip
    whole, part = (pass_flops(ops, products) for ops in (trace.ops, divided(trace, ranks)))
    # The vocabulary of 50,257 words is rounded up.
    assert part == pytest.approx(whole / ranks, rel=1e-3)


def test_the_gradient_of_a_square_weight_is_divided_by_its_rows():
    ops = divided(transformer(length=256), 4)
    (gradient,) = [op for op in ops if op.phase is Phase.BACKWARD and op.outputs[0].shape == (128, 512)]
    assert [tensor.shape for tensor in gradient.inputs] == [(128, 1024), (1024, 512)]


def test_what_works_on_the_stream_stays_whole():
    trace = traced("gpt2-xl-fp16-1024")
    norms = ("native_layer_norm", "native_layer_norm_backward")
    assert pass_flops(divided(trace, RANKS), norms) == pass_flops(trace.ops, norms)


def test_weights_are_divided_but_for_those_of_norms():
    trace = traced("llama3-8b-bf16-2048")
    memory = rank_of(trace, Split(tensor=8)).trace.memory
    assert memory.parameter_bytes == pytest.approx((trace.memory.parameter_bytes or 0) / 8, rel=1e-3)
    assert (memory.pass_activation_bytes or 0) < 0.6 * (trace.memory.pass_activation_bytes or 0)


def test_a_stage_has_its_layers_and_the_head():
    trace = transformer(layers=8)
    stage = rank_of(trace, Split(pipeline=4)).trace
    before, after = ({(op.name, op.inputs): op.count for op in one.ops} for one in (trace, stage))
    head = next(op for op in trace.ops if op.outputs[0].shape[-1] == 2_000)
    assert after[head.name, head.inputs] == 1
    kept = [after[key] / before[key] for key in before if before[key] >= 8 and key in after]
    assert set(kept) == {1 / 4}
    step = next(op for op in stage.ops if op.phase is Phase.OPTIMIZER)
    # Three lists of a quarter of the layers' parameters and of the words.
    assert len(step.inputs) == 3 * (2 * 4 + 2 * 2 + 1)
    assert stage.memory.parameter_bytes == sum(map(tensor_bytes, step.outputs))


def test_layers_that_do_not_divide_are_rounded_up():
    stage = rank_of(transformer(layers=9), Split(pipeline=4))
    assert stage.num_layers == 3


def test_reductions_of_the_stream_are_not_hidden():
    trace, layout = transformer(), Layout(gpus_per_node=4)
    estimate = predict(trace, GPU, layout, split=Split(tensor=4))
    stream_bytes = 4 * 128 * 512 * 2
    of_one = collective_time("all_reduce", stream_bytes, layout, GPU).seconds
    assert estimate.communication_s == pytest.approx((4 * 8 + 2) * of_one)


def idle_share(estimate: IterationEstimate) -> float:
    return estimate.by_family[STAGES] / (estimate.device_s.p50 - estimate.by_family[STAGES])


def test_stages_wait_for_the_first_micro_batch():
    # Without a head, P - 1 of M + P - 1 turns are lost.
    trace = transformer(words=1, layers=64)
    estimates = [
        predict(trace, GPU, 4, split=Split(pipeline=4, micro_batches=number)) for number in (1, 2, 4)
    ]
    for number, estimate in zip((1, 2, 4), estimates, strict=True):
        assert idle_share(estimate) == pytest.approx(3 / number, rel=0.15)


def late(trace: Trace, num_gpus: int, split: Split) -> float:
    """By which share of its own step a GPU waits for the slowest."""
    families = predict(trace, GPU, num_gpus, split=split).by_family
    own_s = sum(seconds for name, seconds in families.items() if name not in (OTHERS, STAGES))
    return families.get(OTHERS, 0.0) / own_s


def test_in_a_pipeline_only_passes_behind_the_first_wait_for_the_slowest_stage():
    trace, waiting = transformer(batch=8), ScalingConstants().waiting
    assert late(trace, 4, Split(pipeline=4, micro_batches=1)) == 0
    of_four = late(trace, 4, Split(pipeline=4, micro_batches=4))
    assert of_four == pytest.approx(3 / 4 * waiting(4))
    # Two copies wait for each other with their first pass, too.
    of_copies = late(trace, 8, Split(pipeline=4, micro_batches=1))
    assert of_copies == pytest.approx(waiting(2))
    assert late(trace, 4, Split(tensor=4)) == pytest.approx(waiting(4))


def test_without_a_number_the_fastest_micro_batches_are_taken():
    trace = transformer(batch=64)
    chosen = predict(trace, GPU, 4, split=Split(pipeline=4)).device_s.p50
    numbers = (2**n for n in range(7))
    given = [
        predict(trace, GPU, 4, split=Split(pipeline=4, micro_batches=number)).device_s.p50
        for number in numbers
    ]
    assert chosen == pytest.approx(min(given), rel=0.02)


def test_a_batch_of_unknown_size_is_not_divided():
    trace = transformer(batch_size=None)
    assert in_micro_batches(BatchShare(), trace, Split(pipeline=4)) == BatchShare()


def test_a_stage_holds_the_activations_of_as_many_passes_as_there_are_stages():
    def activations(number: int) -> float:
        estimate = predict(transformer(), GPU, 2, split=Split(pipeline=2, micro_batches=number))
        return estimate.memory.parts["activations"]  # type: ignore[index]

    # Both halves of a batch in two micro-batches; a half of it in four.
    assert activations(2) == pytest.approx(activations(1), rel=0.01)
    assert activations(4) == pytest.approx(activations(1) / 2, rel=0.01)


def test_copies_of_the_same_part_exchange_gradients():
    alone = predict(transformer(), GPU, 4, split=Split(tensor=4))
    copies = predict(transformer(), GPU, 8, split=Split(tensor=4))
    assert copies.communication_s > alone.communication_s


@pytest.mark.parametrize(("tensor", "spread"), [(1, 0.01), (2, 0.06), (8, None)])
def test_the_note_on_copies_tells_what_counted_and_none_where_there_is_one(tensor, spread):
    told = predict(transformer(), GPU, 8, split=Split(tensor=tensor)).assumptions
    notes = [(note.slowdown, note.spread) for note in told if isinstance(note, DataParallel)]
    assert notes == ([] if spread is None else [(0.8, spread)])


def test_one_stage_and_one_part_are_no_change():
    trace = transformer()
    assert rank_of(trace, WHOLE).trace is trace
    assert predict(trace, GPU, 4, split=Split(tensor=1, pipeline=1)) == predict(trace, GPU, 4)


def test_a_model_without_layers_is_refused():
    trace = make_trace(ops=(make_op(), make_op(phase=Phase.BACKWARD)))
    with pytest.raises(InputError, match="no layers that repeat as often"):
        predict(trace, GPU, 4, split=Split(pipeline=4))


def test_more_stages_than_layers_are_refused():
    with pytest.raises(InputError, match="no layers that repeat as often"):
        predict(transformer(layers=8), GPU, 16, split=Split(pipeline=16))


def test_measured_times_of_whole_operators_are_dropped():
    ops = tuple(replace(op, measured_s=1.0) for op in transformer().ops)
    rank = rank_of(transformer(ops=ops), Split(tensor=4))
    assert {op.measured_s for op in rank.trace.ops if op.name == "aten::addmm"} == {None}
    # The whole step bounds that of a part, so that it is computed, too.
    steps = [op for op in rank.undivided.ops if op.phase is Phase.OPTIMIZER]
    assert {op.measured_s for op in steps} == {None}
