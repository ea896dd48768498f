"""FLOPs against torch's counter and against arithmetic done by hand."""

import pytest

from advisor.core.values import TensorSpec
from advisor.operators.registry import flops_of, rows
from tests.unit.profile.probes import FLOP_MODELS


def spec(*shape, dtype="float32", stride=None):
    return TensorSpec(shape=shape, dtype=dtype, stride=stride)


def flops_of_entry(entry):
    inputs, outputs = (
        [TensorSpec(shape=tuple(t["shape"]), dtype=t["dtype"]) for t in entry[side]]
        for side in ("inputs", "outputs")
    )
    attributes = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in entry["attributes"].items()
    }
    return flops_of(entry["name"], inputs, outputs, attributes)


@pytest.mark.torch
@pytest.mark.parametrize("name", FLOP_MODELS)
def test_agrees_with_torchs_counter(name, probe):
    counted, operators = probe("flops of " + name)
    # torch counts products, convolutions and attention alone.
    ours = sum(
        flops_of_entry(entry) * entry["count"]
        for entry in operators
        if entry["name"].removeprefix("aten::") in rows().flops
    )
    assert ours == counted > 0


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "attributes", "expected"),
    [
        # 12 tokens of 4 experts: forward, the gradients of the tokens, and those of the experts' weights.
        ("_grouped_mm", [spec(12, 5), spec(4, 5, 7), spec(4)], [spec(12, 7)], {}, 2 * 12 * 5 * 7),
        ("_grouped_mm", [spec(12, 7), spec(4, 7, 5), spec(4)], [spec(12, 5)], {}, 2 * 12 * 5 * 7),
        ("_grouped_mm", [spec(5, 12), spec(12, 7), spec(4)], [spec(4, 5, 7)], {}, 2 * 12 * 5 * 7),
        # Columns in groups, and a plain batch.
        ("_grouped_mm", [spec(4, 3, 5), spec(5, 12), spec(4)], [spec(3, 12)], {}, 2 * 3 * 5 * 12),
        ("_scaled_grouped_mm", [spec(4, 3, 5), spec(4, 5, 7)], [spec(4, 3, 7)], {}, 4 * 2 * 3 * 5 * 7),
        ("dot", [spec(5), spec(5)], [spec()], {}, 10),
        # Each output of a grouped convolution meets 4 / 2 input channels and 9 taps.
        ("convolution", [spec(2, 4, 8, 8), spec(6, 2, 3, 3)], [spec(2, 6, 8, 8)],
         {"transposed": False, "groups": 2}, 2 * (2 * 6 * 8 * 8) * 2 * 9),
        # A transposed one: each input meets every weight of its channel.
        ("convolution", [spec(2, 4, 8, 8), spec(4, 6, 4, 4)], [spec(2, 6, 16, 16)],
         {"transposed": True, "groups": 1}, 2 * (2 * 4 * 8 * 8) * 6 * 16),
        ("add", [spec(4, 5), spec(4, 5)], [spec(4, 5)], {}, 20),
        ("relu_", [spec(4, 5)], [spec(4, 5)], {}, 20),
        ("sum", [spec(4, 5)], [spec()], {}, 20),
        ("native_layer_norm", [spec(4, 5)], [spec(4, 5), spec(4, 1), spec(4, 1)], {}, 100),
        ("_foreach_add_", [spec(4), spec(6), spec(4), spec(6)], [spec(4), spec(6)], {}, 10),
        ("copy_", [spec(4), spec(4)], [spec(4)], {}, 0),
    ],
)  # fmt: skip
def test_by_hand(name, inputs, outputs, attributes, expected):
    assert flops_of("aten::" + name, inputs, outputs, attributes) == expected


def test_an_unknown_operator_has_no_formula():
    assert flops_of("aten::_fft_r2c", [spec(4)], [spec(4)], {}) is None
    assert flops_of("mine::conv", [spec(4)], [spec(4)], {}) is None
