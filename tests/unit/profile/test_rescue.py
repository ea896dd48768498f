"""Shapes of results that depend on values: half of a mask is true, all elements are unique."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from advisor.payload.fake import rescue  # noqa: E402 - needs torch

pytestmark = pytest.mark.torch
FIRST_ERROR = NotImplementedError("no shape rule")
BOOL, BYTE, INT64, HALF = torch.bool, torch.uint8, torch.int64, torch.float16


class Mode:
    """Makes tensors without memory, as HybridMode does on the pretended GPU."""

    def __init__(self) -> None:
        self.unknown_operators: dict[str, str] = {}
        self.assumptions: dict[str, None] = {}

    def empty(self, shape: Any, dtype: Any) -> Any:
        return torch.empty(tuple(shape), dtype=dtype, device="meta")


@pytest.fixture
def mode():
    return Mode()


def tensor(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.empty(shape, dtype=dtype, device="meta")


def result(mode: Mode, name: str, *args: Any, **kwargs: Any) -> Any:
    packet, _, overload = name.partition(".")
    func = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return rescue.result_of(func, args, kwargs, FIRST_ERROR, mode)


def facts(value: Any) -> tuple[list[int], Any]:
    return list(value.shape), value.dtype


@pytest.mark.parametrize(
    ("shape", "rows"), [((8,), 4), ((4, 6), 12), ((3,), 1), ((1,), 1), ((2,), 1), ((5, 1), 2)]
)
def test_half_of_the_elements_are_nonzero_but_at_least_one(mode, shape, rows):
    assert facts(result(mode, "nonzero", tensor(*shape))) == ([rows, len(shape)], INT64)
    assert mode.unknown_operators == {}


@pytest.mark.parametrize(
    ("source", "mask", "expected"),
    [((8,), (8,), 4), ((4, 6), (4, 6), 12), ((4, 6), (6,), 12), ((6,), (4, 1), 12), ((1,), (1,), 1)],
)
def test_a_mask_is_broadcast_and_half_of_it_true(mode, source, mask, expected):
    outcome = result(mode, "masked_select", tensor(*source, dtype=HALF), tensor(*mask, dtype=BOOL))
    assert facts(outcome) == ([expected], HALF)


@pytest.mark.parametrize("dtype", [BOOL, BYTE])
@pytest.mark.parametrize(
    ("shape", "before", "mask", "expected"),
    [
        ((8, 3), 0, (8,), [4, 3]),
        ((5, 8, 3), 1, (8,), [5, 4, 3]),
        ((4, 6, 3), 0, (4, 6), [12, 3]),
        ((5, 4, 6), 1, (4, 6), [5, 12]),
        ((4, 6), 0, (4, 6), [12]),
        ((1, 3), 0, (1,), [1, 3]),
    ],
)
def test_indexing_by_a_mask_folds_its_dimensions(mode, dtype, shape, before, mask, expected):
    indices = [None] * before + [tensor(*mask, dtype=dtype)]
    outcome = result(mode, "index.Tensor", tensor(*shape, dtype=HALF), indices)
    assert facts(outcome) == (expected, HALF)
    assert mode.unknown_operators == {}


@pytest.mark.parametrize(
    "indices",
    [[tensor(3, dtype=BOOL), tensor(3, dtype=BOOL)], [tensor(3, dtype=BOOL), tensor(1, dtype=INT64)]],
)
def test_other_ways_to_index_are_left_to_the_cpu_kernel(mode, indices):
    # On zeros, no element of a mask is true.
    outcome = result(mode, "index.Tensor", tensor(3, 3), indices)
    assert facts(outcome) == ([0], torch.float32)
    assert mode.unknown_operators == {"aten::index": "NotImplementedError"}


def test_an_unknown_operator_is_run_on_zeros_and_named_once(mode):
    for error in (FIRST_ERROR, ValueError("another")):
        outcome: Any = rescue.result_of(
            torch.ops.aten.bincount.default, (tensor(5, dtype=INT64),), {}, error, mode
        )
        # Five zeros: one bin.
        assert facts(outcome) == ([1], INT64)
        assert outcome.device.type == "meta"
    assert mode.unknown_operators == {"aten::bincount": "NotImplementedError"}


def test_results_and_arguments_may_be_nested_plain_or_devices_and_nothing_is_assumed(mode):
    values, places = result(mode, "sort", tensor(2, 3), -1, False)
    assert [facts(values), facts(places)] == [([2, 3], torch.float32), ([2, 3], INT64)]
    assert facts(result(mode, "cat", [tensor(2, 3), tensor(4, 3)])) == ([6, 3], torch.float32)
    made = result(mode, "zeros", [3], device=torch.device("cuda"), dtype=HALF)
    assert facts(made) == ([3], HALF)
    assert result(mode, "equal", tensor(3), tensor(3)) is True
    # Integers alone index as ever.
    indexed = result(mode, "index.Tensor", tensor(3, 5), [tensor(7, dtype=INT64)])
    assert facts(indexed) == ([7, 5], torch.float32)
    assert mode.assumptions == {}


def test_all_elements_are_unique(mode):
    values, inverse, counts = result(mode, "_unique2", tensor(3, 5, dtype=HALF))
    assert [facts(values), facts(inverse), facts(counts)] == [
        ([15], HALF), ([3, 5], INT64), ([15], INT64),
    ]  # fmt: skip


def lengths(*numbers: int) -> Any:
    return torch.tensor(numbers)


@pytest.mark.parametrize("overload", ["_ctc_loss", "_ctc_loss.Tensor"])
@pytest.mark.parametrize(
    ("targets", "target_lengths"), [((4, 12), (10, 7, 6, 5)), ((28,), (10, 7, 6, 5)), ((4, 1), (1, 1, 0, 1))]
)
def test_ctc_loss_has_the_shape_of_the_cpu_kernel(mode, overload, targets, target_lengths):
    """The oracle is torch's own kernel on tensors with values."""
    as_lengths = lengths if overload.endswith("Tensor") else lambda *numbers: list(numbers)
    of_inputs, of_targets = as_lengths(50, 40, 30, 20), as_lengths(*target_lengths)
    loss, alphas = result(
        mode, overload, tensor(50, 4, 20), tensor(*targets, dtype=INT64), of_inputs, of_targets, 0, True
    )
    labels = torch.ones(targets, dtype=INT64)
    true = torch.ops.aten._ctc_loss(torch.randn(50, 4, 20), labels, of_inputs, of_targets, 0, True)
    assert [facts(loss), facts(alphas)] == [facts(tensor) for tensor in true]
    gradient = result(
        mode, overload.replace("loss", "loss_backward"), loss, tensor(50, 4, 20),
        tensor(*targets, dtype=INT64), of_inputs, of_targets, loss, alphas, 0, True,
    )  # fmt: skip
    assert facts(gradient) == facts(tensor(50, 4, 20))
    assert mode.assumptions == {} == mode.unknown_operators


@pytest.mark.parametrize(("targets", "width"), [((4, 12), 25), ((30,), 17)])
def test_ctc_loss_of_unknown_lengths_has_room_for_padded_or_equally_long_targets(mode, targets, width):
    unknown = tensor(4, dtype=INT64)
    _, alphas = result(
        mode, "_ctc_loss.Tensor", tensor(50, 4, 20), tensor(*targets, dtype=INT64), unknown, unknown
    )
    assert facts(alphas) == ([4, 50, width], torch.float32)


@pytest.mark.parametrize(
    ("name", "arguments", "assumption"),
    [
        ("nonzero", (tensor(8),), "half of a mask is true"),
        ("masked_select", (tensor(8), tensor(8, dtype=BOOL)), "half of a mask is true"),
        ("index.Tensor", (tensor(8), [tensor(8, dtype=BOOL)]), "half of a mask is true"),
        ("_unique2", (tensor(8),), "all elements are unique"),
        (
            "_ctc_loss.Tensor",
            (tensor(9, 2, 5), tensor(6, dtype=INT64), *2 * (tensor(2, dtype=INT64),)),
            "targets of a batch are equally long",
        ),
    ],
)
def test_a_size_that_is_guessed_is_told_once(mode, name, arguments, assumption):
    for _ in range(2):
        result(mode, name, *arguments)
    assert list(mode.assumptions) == [assumption]


def test_where_the_cpu_kernel_fails_too_the_first_error_counts(mode):
    with pytest.raises(NotImplementedError) as caught:
        result(mode, "mm", tensor(2, 3), tensor(2, 3))
    assert caught.value is FIRST_ERROR
    assert caught.value.__suppress_context__


def test_a_packed_batch_holds_what_each_step_still_has(mode):
    rule = rescue.SHAPE_RULES[torch.ops.aten._pack_padded_sequence.default]
    lengths = torch.tensor([4, 2, 1])
    packed, sizes = rule(mode, tensor(4, 3, 8, dtype=HALF), lengths, False)
    assert sizes.tolist() == [3, 2, 1, 1]
    assert facts(packed) == ([7, 8], HALF)
    source = torch.zeros(4, 3, 8)
    expected = torch.ops.aten._pack_padded_sequence(source, lengths, False)
    assert [list(packed.shape), sizes.tolist()] == [list(expected[0].shape), expected[1].tolist()]


def test_unpacking_in_the_backward_pass_restores_the_shape(mode):
    rule = rescue.SHAPE_RULES[torch.ops.aten._pack_padded_sequence_backward.default]
    assert facts(rule(mode, tensor(7, 8, dtype=HALF), [4, 3, 8], None, False)) == ([4, 3, 8], HALF)


@pytest.mark.parametrize("has_cell", [True, False])
def test_each_input_of_a_recurrent_layer_gets_its_gradient(mode, has_cell):
    rule = rescue.SHAPE_RULES[torch.ops.aten._cudnn_rnn_backward.default]
    weights = [tensor(16, 8), tensor(16, 4), tensor(16)]
    cell = tensor(1, 3, 5) if has_cell else None
    outcome = rule(mode, tensor(7, 3, 8), weights, 4, tensor(99), tensor(1, 3, 4, dtype=HALF), cell, "rest")
    data, hidden, cell_gradient, weight_gradients = outcome
    assert (facts(data), facts(hidden)) == (([7, 3, 8], torch.float32), ([1, 3, 4], HALF))
    assert cell_gradient is None if cell is None else list(cell_gradient.shape) == [1, 3, 5]
    assert [list(weight.shape) for weight in weight_gradients] == [[16, 8], [16, 4], [16]]


def test_only_what_a_fake_tensor_cannot_know_is_handled():
    assert not any(issubclass(ValueError, kind) for kind in rescue.HANDLED)
    assert NotImplementedError in rescue.HANDLED


EXPERTS = pytest.mark.skipif(not hasattr(torch.ops.aten, "_grouped_mm"), reason="an older torch")


@EXPERTS
@pytest.mark.parametrize("dtype", [torch.float32, HALF, torch.bfloat16])
@pytest.mark.parametrize(
    ("left", "right", "groups", "expected"),
    [
        ((256, 64), (4, 64, 128), 4, (256, 128)),
        ((64, 256), (256, 128), 4, (4, 64, 128)),
        ((4, 32, 64), (64, 256), 4, (32, 256)),
        ((4, 32, 64), (4, 64, 128), 0, (4, 32, 128)),
    ],
)
def test_experts_multiply_in_any_precision(mode, dtype, left, right, groups, expected):
    ends = tensor(groups, dtype=torch.int32) if groups else None
    rule = rescue.SHAPE_RULES[torch.ops.aten._grouped_mm.default]
    product = rule(mode, tensor(*left, dtype=dtype), tensor(*right, dtype=dtype), ends)
    assert facts(product) == (list(expected), dtype)


@EXPERTS
def test_experts_of_another_width_are_refused(mode):
    rule = rescue.SHAPE_RULES[torch.ops.aten._grouped_mm.default]
    with pytest.raises(RuntimeError, match="contraction dimension"):
        rule(mode, tensor(8, 64), tensor(4, 32, 128), tensor(4))
