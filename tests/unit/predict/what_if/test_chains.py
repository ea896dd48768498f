"""Which streams Inductor joins: by hand on small graphs, and by laws on any."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Flow, Op, Phase, Role, TensorSpec
from advisor.predict.distinct import merged
from advisor.predict.what_if.compiled import CHAIN_OVERHEAD, FUSED, LEFT_SHARE, Chains, Joined, fused
from tests.builders import make_op

SIZE = 4 * 1024 * 1024
BIG = TensorSpec(shape=(1024, 1024), dtype="float32", stride=(1024, 1))
IMAGE = TensorSpec(shape=(1, 1024, 32, 32), dtype="float32", stride=(2**20, 1024, 32, 1))
PIXEL = TensorSpec(shape=(1, 1024, 1, 1), dtype="float32", stride=(1024, 1, 1, 1))
FIRST = max(Role) + 1


def call(
    name: str,
    made: int,
    *sources: int,
    phase: Phase = Phase.FORWARD,
    count: int = 1,
    tensor: TensorSpec = BIG,
    out: TensorSpec | None = None,
    **attributes: object,
) -> Op:
    """Calls of an operator on tensors of one size, of one flow."""
    return replace(
        make_op(f"aten::{name}", num_bytes=SIZE * (len(sources) + 1), phase=phase, count=count),
        inputs=(tensor,) * len(sources),
        outputs=(out or tensor,),
        attributes=attributes,
        flows=(Flow(id=made, count=count, sources=sources),),
    )


def product(made: int, source: int, **changes: object) -> Op:
    return call("mm", made, source, Role.PARAMETER, **changes)  # type: ignore[arg-type]


def parts(*ops: Op) -> list[tuple[float, int]]:
    """Of each stream the tensors that it moves, and the kernels that it is."""
    streams = [i for i, op in enumerate(ops) if op.name not in ("aten::mm", "aten::convolution")]
    joined = Chains(ops, streams).joined()
    return [(part.num_bytes / SIZE, part.kernels) for _, part in sorted(joined.items())]


def test_a_chain_between_products_reads_once_and_writes_once():
    ops = product(3, 0), call("gelu", 4, 3), call("mul", 5, 4, 0), call("_to_copy", 6, 5), product(7, 6)
    assert parts(*ops) == [(1, 0), (1, 0), (1, 1)]


def test_a_stream_alone_reads_and_writes():
    assert parts(product(3, 0), call("gelu", 4, 3), product(5, 4)) == [(2, 1)]
    assert parts(call("gelu", 3, Role.OUTSIDE)) == [(2, 1)]


def test_what_two_kernels_read_is_written_once_and_what_a_call_reads_twice_is_read_once():
    assert parts(product(3, 0), call("gelu", 4, 3), product(5, 4), product(6, 4)) == [(2, 1)]
    assert parts(product(3, 0), call("mul", 4, 3, 3)) == [(2, 1)]


def test_what_skips_a_product_goes_through_memory():
    """x + product(norm(x)), where x is a stream: it is written, and read again by the sum."""
    ops = (
        call("gelu", 3, 0), call("native_layer_norm", 4, 3), product(5, 4), call("add", 6, 3, 5),
    )  # fmt: skip
    assert parts(*ops) == [(2, 1), (1, 1), (3, 1)]


def test_layers_that_a_trace_counts_together_are_joined_as_one_by_one():
    """Twelve blocks: the norm of each is joined with the sum of the block before, the sums are not."""
    norm = replace(
        call("native_layer_norm", 4, 3, count=12),
        flows=(Flow(id=4, count=1, sources=(3,)), Flow(id=4, count=11, sources=(6,))),
    )
    add = replace(
        call("add", 6, 3, 5, count=12),
        flows=(Flow(id=6, count=1, sources=(3, 5)), Flow(id=6, count=11, sources=(6, 5))),
    )
    ops = call("gelu", 3, 0), norm, product(5, 4, count=12), add
    assert parts(*ops) == [(2, 1), (12, 12), (36, 12)]


def test_the_longer_way_round_a_loop_separates_nothing():
    """What scales a block's result is joined with the sum, though the next block's rests on this sum."""
    norm = replace(
        call("native_layer_norm", 4, 3, count=12),
        flows=(Flow(id=4, count=1, sources=(3,)), Flow(id=4, count=11, sources=(7,))),
    )
    add = replace(
        call("add", 7, 3, 6, count=12),
        flows=(Flow(id=7, count=1, sources=(3, 6)), Flow(id=7, count=11, sources=(7, 6))),
    )
    ops = call("gelu", 3, 0), norm, product(5, 4, count=12), call("mul", 6, 5, count=12), add
    assert parts(*ops) == [(2, 1), (12, 12), (12, 0), (24, 12)]


def test_a_sum_over_pixels_reads_its_image_again_unless_nothing_else_does():
    act = call("silu", 3, 0, tensor=IMAGE)
    mean = replace(call("mean", 4, 3, tensor=IMAGE, out=PIXEL))
    gate = replace(product(5, 4), name="aten::convolution")
    scaled = call("mul", 6, 3, 5, tensor=IMAGE)
    small = PIXEL.shape[1] * 4 / SIZE
    assert parts(act, mean, gate, scaled) == [(2, 1), (1 + small, 1), (3, 1)]
    assert parts(act, mean, gate) == [(1, 0), (small, 1)]


@pytest.mark.parametrize(("training", "kernels"), [(True, 3), (False, 1)])
def test_a_batch_norm_looks_at_its_batch_first_but_not_in_inference(training, kernels):
    norm = call("cudnn_batch_norm", 4, 3, tensor=IMAGE, training=training)
    conv = replace(product(3, 0), name="aten::convolution")
    assert parts(conv, norm, product(5, 4)) == [(2, kernels)]
    relu = call("relu", 5, 4, tensor=IMAGE)
    assert parts(conv, norm, relu, product(6, 5)) == [(1, kernels - 1), (1, 1)]


def test_a_backward_stream_computes_again_what_only_it_reads():
    forward = product(3, 0), call("gelu", 4, 3), call("mul", 5, 4, 0), product(6, 5)
    again = call("mul", 7, 6, 4, phase=Phase.BACKWARD)
    kept = product(7, 4, phase=Phase.BACKWARD)
    assert parts(*forward)[0] == (1, 0)
    assert parts(*forward, again)[0] == (1, 0)
    assert parts(*forward, kept)[0] == (2, 1)


def test_passes_are_never_joined():
    ops = call("gelu", 3, 0), call("gelu_backward", 4, 3, phase=Phase.BACKWARD)
    assert parts(*ops)[1] == (2, 1)


def test_compiled_operators_move_what_chains_move():
    ops = product(3, 0), call("gelu", 4, 3), call("mul", 5, 4, 0), product(6, 5)
    made = fused(ops, overhead=1.0)
    assert [op.name for op in made] == ["aten::mm", FUSED, FUSED, "aten::mm"]
    assert [op.bytes for op in made[1:3]] == [SIZE, 2 * SIZE]
    assert sum(op.bytes for op in fused(ops)[1:3]) == pytest.approx(CHAIN_OVERHEAD * 3 * SIZE)


def test_what_is_whole_in_other_kernels_is_gone():
    ops = call("gelu", 3, 0), call("mul", 4, 3), call("relu", 5, 4), product(6, 5)
    assert [op.name for op in fused(ops)] == [FUSED, FUSED, "aten::mm"]


def test_calls_that_only_read_each_other_end_in_a_result():
    ops = (replace(call("add", 3, 3, 0, count=5), flows=(Flow(id=3, count=5, sources=(3, 0)),)),)
    assert parts(*ops) == [(10, 5)]


def test_equal_calls_of_other_operands_are_joined_whether_they_are_counted_together_or_not():
    """relu(conv) twice, once read by a convolution and once by a stream."""
    ops = (
        product(3, 0), call("relu", 4, 3), product(5, 4), product(6, 5), call("relu", 7, 6),
        call("mul", 8, 7, 0), product(9, 8),
    )  # fmt: skip
    together = merged(ops)
    assert len(together) < len(ops)
    assert _bytes(fused(together, overhead=1.0)) == _bytes(fused(ops, overhead=1.0)) == 5 * SIZE


def _bytes(ops: tuple[Op, ...]) -> int:
    return sum(op.bytes * op.count for op in ops if op.name == FUSED)


def test_streams_of_which_nothing_is_known_leave_a_share():
    """As casts that a change of the script adds."""
    unknown = replace(call("_to_copy", 9, 0), flows=())
    (_, known, _, cast) = fused((product(3, 0), call("gelu", 4, 3), product(5, 4), unknown))
    assert known.bytes == 2 * SIZE
    assert cast.bytes == int(LEFT_SHARE * unknown.bytes)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Op, ...]:
    """Operators in order, each of what came before."""
    ops: list[Op] = []
    for made in range(FIRST, FIRST + draw(st.integers(1, 12))):
        known = [int(Role.OUTSIDE), *range(FIRST, made)]
        sources = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        name = draw(st.sampled_from(["gelu", "add", "native_layer_norm", "mm"]))
        ops.append(call(name, made, *sources, count=draw(st.integers(1, 3))))
    return tuple(ops)


@given(graphs())
def test_joining_never_moves_nor_launches_more(ops):
    made = fused(ops)
    assert sum(op.bytes * op.count for op in made) <= sum(op.bytes * op.count for op in ops)
    assert sum(op.count for op in made) <= sum(op.count for op in ops)


@given(graphs())
def test_what_is_not_read_by_a_stream_of_its_pass_is_written(ops):
    streams = [i for i, op in enumerate(ops) if op.name != "aten::mm"]
    joined = Chains(ops, streams).joined()
    for i in streams:
        (flow,) = ops[i].flows
        readers = [op for op in ops if any(flow.id in other.sources for other in op.flows)]
        if not readers or any(op.name == "aten::mm" for op in readers):
            assert joined[i].kernels == ops[i].count
        assert joined[i].num_bytes >= 0


@given(graphs())
def test_the_order_of_operators_says_nothing(ops):
    def by_flow(some: tuple[Op, ...]) -> dict[int, Joined]:
        streams = [i for i, op in enumerate(some) if op.name != "aten::mm"]
        return {some[i].flows[0].id: part for i, part in Chains(some, streams).joined().items()}

    assert by_flow(ops) == by_flow(ops[::-1])


def test_an_unrolled_loop_of_thousands_of_calls_is_looked_at_once():
    """Each step adds a product of the one before: none is joined with the next."""
    number = 3000
    ops = [call("gelu", FIRST, 0)]
    for made in range(FIRST + 1, FIRST + 2 * number, 2):
        ops += [product(made, made - 1), call("add", made + 1, made, made - 1)]
    moved = parts(*ops)
    assert moved == [(2, 1)] + [(3, 1)] * number
