"""Copies of attention's results, which flash attention makes needless."""

from dataclasses import replace

import pytest

from advisor.core.values import Op, TensorSpec
from advisor.predict.what_if.flash import in_flash_layout
from tests.unit.predict.what_if.following import OUTSIDE, backward, flow, followed, tensor

NAME = "_scaled_dot_product_efficient_attention"
BATCH, HEADS, LENGTH, WIDTH = 2, 3, 5, 7
SHAPE = (BATCH, HEADS, LENGTH, WIDTH)


def strided(order: str, shape: tuple[int, ...] = SHAPE) -> TensorSpec:
    """Dimensions b, h, s and d as they lie in memory, outermost first."""
    steps, step = {}, 1
    for name in reversed(order):
        steps[name] = step
        step *= SHAPE["bhsd".index(name)]
    return TensorSpec(shape=shape, dtype="float32", stride=tuple(steps[name] for name in "bhsd"))


def attention(query: TensorSpec, *mask: TensorSpec) -> Op:
    operands = [query, query, query, *mask]
    return followed(NAME, operands, [strided("bshd")], flow(3, *[OUTSIDE] * len(operands)))


def copy_of(view: str) -> Op:
    """Of the result, seen in this order of dimensions."""
    result = strided("bshd")
    assert result.stride is not None
    places = ["bhsd".index(name) for name in view]
    seen = TensorSpec(
        shape=tuple(SHAPE[i] for i in places), dtype="float32", stride=tuple(result.stride[i] for i in places)
    )
    return followed("clone", [seen], [tensor(*seen.shape)], flow(4, 3))


USE = followed("mm", [tensor(30, 7), tensor(7, 7)], [tensor(30, 7)], flow(5, 4, OUTSIDE))


def test_a_result_that_lies_as_its_query_needs_no_copy():
    """Sequence first, as in ``nn.MultiheadAttention``; what read the copy reads the result."""
    kept = in_flash_layout([attention(strided("sbhd")), copy_of("sbhd"), USE])
    assert [op.name for op in kept] == [f"aten::{NAME}", "aten::mm"]
    assert kept[1].flows[0].sources == (3, OUTSIDE)


@pytest.mark.parametrize(
    ("order", "view", "masks"), [("bhsd", "sbhd", 0), ("sbhd", "shbd", 0), ("sbhd", "sbhd", 1)]
)
def test_other_copies_stay(order, view, masks):
    """Of a result that lies in another order, and of a kernel that takes a mask."""
    ops = [attention(strided(order), *[tensor(5, 5)] * masks), copy_of(view), USE]
    assert in_flash_layout(ops) == ops


@pytest.mark.parametrize("masks", [0, 1])
def test_gradients_go_back_through_views(masks):
    operands = [strided("bshd")] * 4
    back = backward(f"{NAME}_backward", operands, operands[:3], flow(6, *[OUTSIDE] * 4, of=3))
    first = backward("clone", [strided("bshd")], [tensor(*SHAPE)], flow(7, 6, of=3, is_of_view=True))
    second = backward("clone", [tensor(*SHAPE)], [tensor(*SHAPE)], flow(8, 7, of=3, is_of_view=True))
    ops = [attention(strided("sbhd"), *[tensor(5, 5)] * masks), back, first, second]
    assert in_flash_layout(ops) == (ops if masks else ops[:2])


def test_of_equal_copies_those_of_something_else_stay():
    both = replace(copy_of("sbhd"), flows=(flow(4, 3), flow(9, OUTSIDE, count=2)), count=3)
    _, copies = in_flash_layout([attention(strided("sbhd")), both])
    assert (copies.count, copies.flows) == (2, (flow(9, OUTSIDE, count=2),))


def test_without_flows_nothing_is_known():
    ops = [replace(op, flows=(), count=1) for op in (attention(strided("sbhd")), copy_of("sbhd"))]
    assert in_flash_layout(ops) == ops
