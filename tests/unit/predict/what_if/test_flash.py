"""Attention that is written out, as one call."""

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.attention_kernels import attention_call
from advisor.predict.what_if.batch import made_op
from advisor.predict.what_if.flash import with_fused_attention
from tests.builders import make_trace

HEADS, LENGTH, SIZE = 96, 512, 64


def tensor(*shape: int) -> TensorSpec:
    return TensorSpec(shape=shape, dtype="float16")


ROWS, SCORES = tensor(HEADS, LENGTH, SIZE), tensor(HEADS, LENGTH, LENGTH)


def op(name: str, inputs: list[TensorSpec], output: TensorSpec, phase: Phase = Phase.FORWARD) -> Op:
    return made_op(f"aten::{name}", phase, tuple(inputs), (output,), {}, 12)


LINEAR = op("mm", [tensor(4096, 768), tensor(768, 768)], tensor(4096, 768))
FORWARD = (
    op("bmm", [ROWS, tensor(HEADS, SIZE, LENGTH)], SCORES),
    op("div", [tensor(8, 12, LENGTH, LENGTH)], tensor(8, 12, LENGTH, LENGTH)),
    op("_softmax", [tensor(8, 12, LENGTH, LENGTH)], tensor(8, 12, LENGTH, LENGTH)),
    op("bmm", [SCORES, ROWS], ROWS),
)
BACKWARD = (
    op("bmm", [ROWS, tensor(HEADS, SIZE, LENGTH)], SCORES, Phase.BACKWARD),
    op("_softmax_backward_data", [SCORES, SCORES], SCORES, Phase.BACKWARD),
    op("bmm", [SCORES, ROWS], ROWS, Phase.BACKWARD),
)
MASK = op("masked_fill", [SCORES, tensor(LENGTH, LENGTH)], SCORES)


def fused(*ops: Op) -> tuple[Op, ...]:
    trace = with_fused_attention(make_trace(ops=(LINEAR, *ops)))
    assert trace.ops[0] is LINEAR
    return trace.ops[1:]


def test_products_and_softmax_become_one_call_each_way():
    forward, backward = fused(*FORWARD, *BACKWARD)
    assert (forward.count, backward.count) == (12, 12)
    call = attention_call(forward)
    assert (call.batch_heads, call.queries, call.keys, call.key_size) == (HEADS, LENGTH, LENGTH, SIZE)
    assert not call.has_mask
    assert forward.flops == FORWARD[0].flops + FORWARD[3].flops
    assert forward.bytes < sum(one.bytes for one in FORWARD) / 4
    assert backward.phase is Phase.BACKWARD


def test_a_mask_is_kept_and_no_backward_is_made_up():
    (forward,) = fused(*FORWARD[:2], MASK, *FORWARD[2:])
    call = attention_call(forward)
    assert call.has_mask


def test_without_a_softmax_between_products_nothing_changes():
    assert with_fused_attention(make_trace(ops=(LINEAR, *FORWARD[:2]))) is None
    assert with_fused_attention(make_trace(ops=(LINEAR, FORWARD[2]))) is None
