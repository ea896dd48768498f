"""Kernels in 16 bits: passes over their bytes, and what an SM does in a clock."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import GpuSpec, Op, Phase
from advisor.operators.cycles import (
    LONG_ROWS,
    LONGEST_ROWS,
    ArchitecturePace,
    StreamCost,
    channel_kind,
    channel_work,
    parsed,
    row_kind,
    row_work,
    scatter_work,
    stream_costs,
)
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.embedding import EMBEDDING
from advisor.operators.norm import NORM
from advisor.operators.registry import family_of
from advisor.predict.constants import constants_for
from advisor.predict.interval import LEFT_IN_A_STEP, SIGMA_LAB
from advisor.predict.iteration import predict
from advisor.predict.knowledge import shipped
from advisor.predict.methods import stream_times
from advisor.predict.roofline import KERNEL_FLOOR_S, op_time, roofs_of, time_under
from tests.builders import make_trace
from tests.unit.predict.learned.values import EXACT, add, layer_norm, make_call, softmax

A100, L40S, V100 = resolve_gpu("A100-SXM-80GB"), resolve_gpu("L40S"), resolve_gpu("V100-SXM-16GB")
SIZES = st.integers(1, 2**14)
GPUS = st.sampled_from(sorted(load_gpus().values(), key=lambda gpu: gpu.name))


def half(op: Op) -> Op:
    inputs, outputs = (
        tuple(replace(tensor, dtype="bfloat16") for tensor in some) for some in (op.inputs, op.outputs)
    )
    return replace(op, inputs=inputs, outputs=outputs, bytes=op.bytes // 2)


def gelu(rows: int, columns: int) -> Op:
    return make_call("gelu", [(rows, columns)], [(rows, columns)])


def rms_norm(rows: int, columns: int) -> Op:
    return make_call("_fused_rms_norm", [(rows, columns), (columns,)], [(rows, columns)])


def seconds(op: Op, gpu: GpuSpec = A100) -> float:
    return op_time(op, gpu, constants_for(gpu), EXACT).time_s


MAKERS = [add, gelu, layer_norm, rms_norm, softmax]


def test_a_gelu_by_hand():
    op, cost = half(gelu(8192, 4096)), stream_costs()["curve"]
    bytes_per_s = constants_for(A100).fractions["streaming_fraction"] * A100.memory_bytes_per_s
    cycles = cost.cycles_per_element * 8192 * 4096
    by_hand = KERNEL_FLOOR_S + cost.pace_on(A100).factor * (
        cost.passes * 2 * 2 * 8192 * 4096 / bytes_per_s + cycles / (A100.num_sms * A100.boost_clock_hz)
    )
    assert seconds(op) == pytest.approx(by_hand, rel=1e-9)


def test_rows_of_a_norm_are_what_is_normalised():
    wide, narrow = half(layer_norm(1024, 4096)), half(layer_norm(4096, 1024))
    cost = stream_costs()["layer norm forward"]
    more_rows_s = 3072 * cost.cycles_per_row / (A100.num_sms * A100.boost_clock_hz)
    bytes_apart_s = (
        cost.passes
        * (wide.bytes - narrow.bytes)
        / roofs_of("bf16", NORM, A100, constants_for(A100)).bytes_per_s
    )
    factor = cost.pace_on(A100).factor
    assert seconds(narrow) - seconds(wide) == pytest.approx(factor * (more_rows_s - bytes_apart_s), rel=1e-6)


@pytest.mark.parametrize("name", ["native_layer_norm", "_fused_rms_norm"])
def test_several_dimensions_may_be_normalised_together(name):
    shaped = half(make_call(name, [(8192, 64, 64), (64, 64)], [(8192, 64, 64)]))
    flat = half(make_call(name, [(8192, 4096), (4096,)], [(8192, 4096)]))
    shaped = replace(shaped, attributes={"normalized_shape": (64, 64)})
    assert seconds(shaped) == seconds(replace(flat, attributes={"normalized_shape": (4096,)}))


def rms_norm_backward(rows: int, columns: int) -> Op:
    sizes = (rows, columns)
    op = make_call("_fused_rms_norm_backward", [sizes, sizes, (rows, 1), (columns,)], [sizes, (columns,)])
    return half(replace(op, phase=Phase.BACKWARD))


def test_gradients_of_a_narrow_norm_leave_most_sms_idle():
    """As measured on an H200: a 32nd of the columns takes a quarter of the time."""
    h200 = resolve_gpu("H200-SXM-141GB")
    narrow, wide = (seconds(rms_norm_backward(*sizes), h200) for sizes in ((16384, 128), (16384, 4096)))
    assert narrow == pytest.approx(51e-6, rel=0.2)
    assert wide == pytest.approx(223e-6, rel=0.2)


def test_gradients_of_a_norm_take_steps_by_waves_of_strips():
    work = row_work("RMS norm backward", 8192, 4096, 0)
    step = StreamCost.__slots__.index("cycles_per_step")
    at_once = work.unit_times_s(A100, 1.0)[step]
    assert at_once == pytest.approx(2 * 8192 / A100.boost_clock_hz)  # 128 strips on 108 SMs
    assert row_work("layer norm forward", 8192, 4096, 0).unit_times_s(A100, 1.0)[step] == 0


def test_a_block_of_a_long_softmax_fills_an_sm_of_1536_threads():
    step = StreamCost.__slots__.index("cycles_per_step")
    work = row_work(row_kind("softmax forward", 4096), 10**6, 4096, 0)
    for gpu, blocks in ((A100, 2), (L40S, 1)):
        waves = math.ceil(10**6 / blocks / gpu.num_sms)
        assert work.unit_times_s(gpu, 1.0)[step] == pytest.approx(waves / gpu.boost_clock_hz)


@pytest.mark.parametrize(
    ("columns", "threads"), [(1536, 128), (2048, 128), (2560, 256), (4096, 256), (5120, 512), (32000, 512)]
)
def test_what_a_long_row_has_beyond_whole_vectors_is_slow(columns, threads):
    work = row_work(row_kind("softmax backward", columns), 3, columns, 0)
    assert work.slow_elements == 3 * (columns % (8 * threads))


@pytest.mark.parametrize("name", ["native_group_norm", "native_group_norm_backward"])
def test_rows_of_a_group_norm_are_groups_of_channels(name):
    shape = (8, 320, 64, 64)
    op = make_call(name, [shape, shape], [shape])
    stream = NORM.stream(half(replace(op, attributes={"group": 32})))
    assert (stream.work.rows, stream.work.elements) == (8 * 32, 8 * 320 * 64 * 64)


@pytest.mark.parametrize(
    ("columns", "item_bytes", "ending"),
    [(1024, 2, ""), (1025, 2, LONG_ROWS), (32768, 2, LONG_ROWS), (16384, 4, LONG_ROWS),
     (32769, 2, LONGEST_ROWS), (32000, 4, LONGEST_ROWS)],
)  # fmt: skip
def test_which_kernel_takes_a_row(columns, item_bytes, ending):
    assert row_kind("softmax forward", columns, item_bytes) == "softmax forward" + ending
    assert row_kind("layer norm forward", columns) == "layer norm forward"


@pytest.mark.parametrize(
    ("name", "measured_s"), [("_log_softmax", 2.647e-3), ("_log_softmax_backward_data", 2.57e-3)]
)
def test_a_vocabulary_in_full_precision_reads_its_scores_three_times(name, measured_s):
    """8,192 tokens of 128,256 classes on a B200, by Liger-Kernel; networks saw no such rows."""
    b200, sizes = resolve_gpu("B200-SXM-180GB"), (8192, 128256)
    num_inputs = 2 if "backward" in name else 1
    op = make_call(name, [sizes] * num_inputs, [sizes], {"dim": 1})
    trace = make_trace(ops=(op,))
    assert predict(trace, b200).iteration_s.p50 == pytest.approx(measured_s, rel=0.1)
    assert {network.features(op) for network in NORM.learned} == {None}


@pytest.mark.parametrize("make", [*MAKERS, lambda rows, columns: embedding(rows, columns, 2 * rows)])
@settings(max_examples=40)
@given(rows=SIZES, columns=st.integers(1, 2**17), gpu=GPUS)
def test_nothing_is_faster_than_the_memory(make, rows, columns, gpu):
    op = half(make(rows, columns))
    assert seconds(op, gpu) >= KERNEL_FLOOR_S + op.bytes / gpu.memory_bytes_per_s


def test_gradients_of_an_embedding_by_hand():
    """16,384 tokens of 4,096 in a table of 8,192 took an A100 1.1 ms beside what else was timed."""
    gradient, table = (16384, 4096), (8192, 4096)
    backward = make_call("embedding_dense_backward", [gradient, (16384,)], [table])
    work = EMBEDDING.stream(backward)
    assert (work.work.rows, work.work.elements) == (16384, 16384 * 4096)
    assert work.work.slow_elements == 8192 * 4096
    assert seconds(backward) == pytest.approx(1.1e-3, rel=0.2)


def test_weights_of_four_bits_take_clocks():
    """bitsandbytes made 6.5 billion weights twice in 171 ms of an A100, of a QLoRA pass of 221."""
    packed, weight = (4096 * 11008 // 2,), (11008, 4096)
    made = half(make_call("bitsandbytes::dequantize_4bit", [packed], [weight]))
    assert seconds(made) == pytest.approx(0.171 * 4096 * 11008 / (2 * 6.476e9), rel=0.2)
    faster = replace(A100, memory_bytes_per_s=2 * A100.memory_bytes_per_s)
    assert seconds(made, faster) == seconds(made)


def test_picks_beyond_the_measured_ones_cost_what_their_sort_moves():
    few, many = (scatter_work(picks, 1000, 64, 10**6) for picks in (16384, 2**20))

    assert few.rows == many.rows == 16384
    assert many.num_bytes - few.num_bytes == 256 * (2**20 - 16384), "8 passes over 16 bytes, read and written"


@pytest.mark.parametrize(
    ("kind", "rows", "columns", "slow"),
    [("layer norm forward", 4, 6144, 0), ("RMS norm forward", 4, 8192, 8192), ("softmax forward", 8, 999, 0)],
)  # fmt: skip
def test_long_rows_of_a_norm_leave_the_cache(kind, rows, columns, slow):
    assert row_work(kind, rows, columns, 0).slow_elements == slow


def embedding(picks: int, width: int, table: int) -> Op:
    op = make_call("embedding", [(table, width), (picks,)], [(picks, width)])
    return replace(op, bytes=8 * picks * (width + 1))


def test_an_embedding_takes_two_clocks_an_element_in_any_dtype():
    """16,384 tokens of 4,096 took an A100 0.86 ms in FP32, whose bytes alone would take 0.30 ms."""
    op = embedding(16384, 4096, 32768)
    assert seconds(op) == pytest.approx(0.86e-3, rel=0.1)
    assert seconds(half(op)) == pytest.approx(seconds(op), rel=0.1)


@pytest.mark.parametrize("make", MAKERS)
def test_half_the_bytes_take_from_a_third_of_the_time_to_all_of_it(make):
    full = predict(make_trace(ops=(make(8192, 4096),)), A100).iteration_s.p50
    halved = predict(make_trace(ops=(half(make(8192, 4096)),)), A100).iteration_s.p50
    assert 0.3 * full < halved < 1.3 * full


@pytest.mark.parametrize("family", [NORM, ELEMENTWISE], ids=lambda family: family.word)
def test_full_precision_is_a_roofline(family):
    op = rms_norm(8192, 4096) if family is NORM else make_call("eq", [(8192, 4096)], [(8192, 4096)])
    assert family_of(op) is family
    roofs = roofs_of("fp32", family, A100, constants_for(A100))
    assert seconds(op) == pytest.approx(roofs.launch_s + op.bytes / roofs.bytes_per_s)
    assert time_under(roofs, op, family).sigma is None
    # And what has no result.
    roofs, nothing = roofs_of("bf16", family, A100, constants_for(A100)), replace(half(op), outputs=())
    assert time_under(roofs, nothing, family).sigma is None


@pytest.mark.parametrize("make", MAKERS)
@settings(max_examples=40)
@given(rows=SIZES, columns=SIZES, gpu=GPUS)
def test_more_rows_or_twice_the_columns_are_never_faster(make, rows, columns, gpu):
    one = seconds(half(make(rows, columns)), gpu)
    assert seconds(half(make(rows + 1, columns)), gpu) >= one
    assert seconds(half(make(2 * rows, 2 * columns)), gpu) >= one


@pytest.mark.parametrize("make", MAKERS)
@settings(max_examples=40)
@given(rows=SIZES, columns=SIZES, more=st.floats(1.0, 8.0), gpu=GPUS)
def test_more_bandwidth_or_sms_are_never_slower(make, rows, columns, more, gpu):
    op = half(make(rows, columns))
    for better in (
        replace(gpu, memory_bytes_per_s=more * gpu.memory_bytes_per_s),
        replace(gpu, num_sms=math.ceil(more * gpu.num_sms)),
        replace(gpu, boost_clock_hz=more * gpu.boost_clock_hz),
    ):
        roofs = roofs_of("bf16", family_of(op), gpu, constants_for(gpu))
        bytes_per_s = roofs.bytes_per_s * better.memory_bytes_per_s / gpu.memory_bytes_per_s
        improved = replace(roofs, gpu=better, bytes_per_s=bytes_per_s)
        before_s = time_under(roofs, op, family_of(op)).time_s
        assert time_under(improved, op, family_of(op)).time_s <= before_s * (1 + 1e-12)


@pytest.mark.parametrize("kind", stream_costs())
def test_a_gpu_of_another_architecture_is_less_sure(kind):
    cost = stream_costs()[kind]
    assert cost.pace_on(resolve_gpu("P4")) == ArchitecturePace(factor=1.0, sigma=cost.unseen_sigma)
    for name, pace in cost.architectures.items():
        measured = next(gpu for gpu in load_gpus().values() if gpu.architecture == name)
        assert cost.pace_on(measured) == pace
        assert 0 < pace.sigma <= cost.unseen_sigma


def test_how_sure_a_call_is_reaches_the_interval():
    def ratio(gpu: GpuSpec) -> float:
        iteration_s = predict(make_trace(ops=(half(gelu(2**16, 2**14)),)), gpu).iteration_s
        return math.log(iteration_s.p90 / iteration_s.p50)

    cost, added = stream_costs()["curve"], shipped().excess["element-wise"]
    for gpu, sigma in ((A100, cost.pace_on(A100).sigma), (V100, cost.unseen_sigma)):
        expected = 1.2816 * math.hypot(LEFT_IN_A_STEP * sigma, added, SIGMA_LAB)
        assert ratio(gpu) == pytest.approx(expected, rel=0.05)


def test_backward_kinds_have_their_own_costs():
    sizes = (8192, 4096)
    backward = make_call("gelu_backward", [sizes, sizes], [sizes])
    assert seconds(half(replace(backward, phase=Phase.BACKWARD))) > seconds(half(gelu(*sizes)))


@pytest.mark.parametrize("text", ["[", '["a"]\npasses = 1.0', '["a"]\narchitectures = 3'])
def test_a_broken_file_is_an_error(text):
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        parsed(text)


@settings(max_examples=40)
@given(
    sizes=st.lists(st.tuples(st.sampled_from(MAKERS), SIZES, SIZES, st.booleans()), min_size=1, max_size=6),
    gpu=GPUS,
)
def test_all_at_once_are_as_one_by_one(sizes, gpu):
    ops = [
        half(make(rows, columns)) if is_half else make(rows, columns)
        for make, rows, columns, is_half in sizes
    ]
    at_once = stream_times(ops, gpu, constants_for(gpu))
    for op, time_s, sigma, (*_, is_half) in zip(
        ops, at_once.time_s.tolist(), at_once.sigma.tolist(), sizes, strict=True
    ):
        alone = op_time(op, gpu, constants_for(gpu), EXACT)
        assert (time_s, sigma) == (alone.time_s, alone.sigma) if is_half else math.isnan(time_s)


def batch_norm(shape: tuple[int, ...], *, is_last: bool = False, training: bool = True) -> Op:
    op = half(make_call("cudnn_batch_norm", [shape, shape[1:2]], [shape]))
    channels, sides = shape[1], shape[2:]
    inner = [math.prod(sides[i + 1 :]) * channels for i in range(len(sides))]
    strides = (math.prod(shape[1:]), 1, *inner)
    source = replace(op.inputs[0], stride=strides) if is_last else op.inputs[0]
    return replace(op, inputs=(source, *op.inputs[1:]), attributes={"training": training})


def test_a_batch_norm_with_channels_first_leaves_sms_idle():
    """As measured on an H100, whose 132 SMs have 64 channels to share: its bytes would take 0.25 ms."""
    h100 = resolve_gpu("H100-SXM-80GB")
    few, many = (seconds(batch_norm(shape), h100) for shape in ((256, 64, 112, 112), (256, 512, 112, 14)))
    assert few == pytest.approx(2.4e-3, rel=0.3)
    assert few > 2 * many
    assert few > 3 * seconds(batch_norm((256, 64, 112, 112), is_last=True), h100)


@pytest.mark.parametrize(
    "op",
    [batch_norm((256, 64)), batch_norm((8, 64, 9, 9), training=False)],
    ids=["of vectors", "in evaluation"],
)
def test_other_batch_norms_stay_a_roofline(op):
    assert NORM.stream(op) is None


@pytest.mark.parametrize(
    ("elements", "item_bytes", "direction", "kind"),
    [
        (65_536, 2, "forward", "channel norm forward"),
        (65_537, 2, "forward", "channel norm forward, long channels"),
        (32_768, 4, "forward", "channel norm forward"),
        (32_769, 2, "backward", "channel norm backward, long channels"),
    ],
)
def test_channels_that_no_block_holds_are_read_twice(elements, item_bytes, direction, kind):
    assert channel_kind(direction, elements, item_bytes) == kind
    once = channel_work(f"channel norm {direction}", 64, elements, item_bytes).num_bytes
    assert (channel_work(kind, 64, elements, item_bytes).num_bytes > once) == ("long" in kind)
