"""The steps of recurrent layers: which there are, and what they take; every figure by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Op, Phase, Precision, TensorSpec
from advisor.operators.recurrent import Steps, steps_of
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import shipped
from advisor.predict.learned.times import learned_times
from tests.builders import make_op
from tests.recurrent import GRU, LSTM, RELU, TANH, make_layers

EXACT = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)


def found(op: Op) -> Steps:
    steps = steps_of(op)
    assert steps is not None
    return steps


# --- which steps there are -------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "gates"), [(RELU, 1), (TANH, 1), (LSTM, 4), (GRU, 3)])
def test_each_step_multiplies_states_with_the_weights_of_its_gates(mode: int, gates: int) -> None:
    assert found(make_layers(mode=mode, steps=7, batch_size=32, hidden=256)) == Steps(
        num_by_rows={32: 7}, outputs=gates * 256, depth=256, weight_bytes=gates * 256 * 256 * 4, num_kernels=2
    )


def test_the_backward_pass_takes_them_with_transposed_weights() -> None:
    forward = found(make_layers(dtype="float16"))
    backward = found(make_layers(dtype="float16", backward=True))
    assert (backward.outputs, backward.depth) == (forward.depth, forward.outputs)
    assert replace(backward, outputs=forward.outputs, depth=forward.depth) == forward


def test_layers_and_directions_follow_one_another() -> None:
    assert found(make_layers(steps=7, batch_size=32, layers=3)).num_by_rows == {32: 21}
    assert found(make_layers(steps=7, batch_size=32, layers=3, bidirectional=True)).num_by_rows == {32: 42}


def test_either_order_of_steps_and_sequences() -> None:
    assert found(make_layers(steps=7, batch_size=32, batch_first=False)).num_by_rows == {32: 7}


def test_packed_sequences_thin_out() -> None:
    packed = make_layers(batch_sizes=(8, 8, 5, 1), layers=2)
    assert found(packed).num_by_rows == {8: 4, 5: 2, 1: 2}


def test_a_projection_shrinks_the_state_and_is_one_more_product() -> None:
    steps = found(make_layers(hidden=512, proj_size=128))
    assert (steps.outputs, steps.depth, steps.num_kernels) == (5 * 512, 128, 3)


@pytest.mark.parametrize("mode", [RELU, TANH, LSTM, GRU])
@pytest.mark.parametrize("proj_size", [0, 64])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_what_is_left_are_the_products_of_the_inputs(mode: int, proj_size: int, bidirectional: bool) -> None:
    op = make_layers(mode=mode, proj_size=proj_size, bidirectional=bidirectional, width=96, layers=1)
    inputs = op.inputs[1]
    rows, directions = 64 * 10, 2 if bidirectional else 1
    assert op.flops - found(op).flops == 2 * rows * directions * inputs.shape[0] * inputs.shape[1]


def test_backward_leaves_the_gradients_of_inputs_and_of_all_weights() -> None:
    forward, backward = make_layers(), make_layers(backward=True)
    assert found(backward).flops == found(forward).flops
    assert backward.flops - found(backward).flops == 2 * forward.flops - found(forward).flops


@pytest.mark.parametrize(("dtype", "num_bytes"), [("float64", 8), ("float32", 4), ("bfloat16", 2)])
def test_weights_have_the_width_of_the_data(dtype: str, num_bytes: int) -> None:
    assert found(make_layers(hidden=128, dtype=dtype)).weight_bytes == 4 * 128 * 128 * num_bytes


@pytest.mark.parametrize(
    "missing",
    [
        {"mode": None},
        {"mode": 9},
        {"hidden_size": None},
        {"hidden_size": 0},
        {"hidden_size": "512"},
        {"num_layers": -1},
        {"batch_sizes": (0, "x")},
    ],
)
def test_what_is_not_recorded_is_not_made_up(missing: Mapping[str, Any]) -> None:
    op = make_layers()
    assert steps_of(replace(op, attributes={**op.attributes, **missing})) is None


def test_shapes_that_are_not_recorded() -> None:
    op = make_layers()
    flat = TensorSpec(shape=(640, 512), dtype="float32")
    empty = TensorSpec(shape=(0, 10, 512), dtype="float32")
    assert steps_of(replace(op, inputs=())) is None
    assert steps_of(replace(op, inputs=(flat,))) is None
    assert steps_of(replace(op, inputs=(empty,))) is None
    assert steps_of(replace(make_layers(batch_sizes=(3, 2)), inputs=())) is None


@pytest.mark.parametrize("name", ["aten::mm", "aten::_thnn_fused_lstm_cell"])
def test_products_and_single_cells_have_no_steps(name: str) -> None:
    assert steps_of(make_op(name)) is None
    assert steps_of(replace(make_layers(), name=name)) is None


# --- what they take --------------------------------------------------------------------------------

ROUND = {"num_sms": 100, "flops_per_s": 1e12, "bytes_per_s": 1e9, "launch_s": 1e-6}


def steps(rows: int, *, outputs: int = 64, depth: int = 512, weight_bytes: int = 0) -> Steps:
    return Steps(
        num_by_rows={rows: 10}, outputs=outputs, depth=depth, weight_bytes=weight_bytes, num_kernels=2
    )


def test_a_step_takes_whole_waves_of_blocks_and_its_launches() -> None:
    # A block of 64 x 64 x 512 is 4.194304 MFLOP; a hundred SMs at 10 GFLOP/s each take 419.4304 us for one.
    wave_s = 4_194_304 / 1e10
    for rows, waves in ((1, 1), (64, 1), (6400, 1), (6401, 2), (12_800, 2)):
        assert steps(rows).time_s(**ROUND) == pytest.approx(10 * (waves * wave_s + 2e-6)), rows


def test_depth_is_split_among_blocks() -> None:
    wave_s = 4_194_304 / 1e10
    assert steps(3200, depth=1024).time_s(**ROUND) == pytest.approx(10 * (wave_s + 2e-6))
    assert steps(3264, depth=1024).time_s(**ROUND) == pytest.approx(10 * (2 * wave_s + 2e-6))
    assert steps(64, depth=256).time_s(**ROUND) == pytest.approx(10 * (wave_s / 2 + 2e-6))


def test_a_step_takes_at_least_the_reading_of_its_weights() -> None:
    assert steps(1, weight_bytes=10**7).time_s(**ROUND) == pytest.approx(10 * (0.01 + 2e-6))


# The steps of an LSTM of 512 to 2048 units. Batches below 64 and 512 units are off by up to a factor of two.
@pytest.mark.parametrize("gpu", ["V100-PCIE-32GB", "A100-PCIE-40GB"])
@pytest.mark.parametrize("batch_size", [64, 128, 256])
@pytest.mark.parametrize("hidden", [1024, 2048])
@pytest.mark.parametrize("backward", [False, True])
def test_small_fp32_products_take_what_was_learned_from_measurements(
    gpu: str, batch_size: int, hidden: int, backward: bool
) -> None:
    """Within about a third: what the networks say was learned from measured products of the same GPU."""
    spec = resolve_gpu(gpu)
    constants = constants_for(spec)
    one = replace(
        found(make_layers(hidden=hidden, backward=backward)), num_by_rows={batch_size: 1}, num_kernels=1
    )
    modelled_s = one.time_s(
        num_sms=spec.num_sms,
        flops_per_s=constants.fractions["gemm_fraction.fp32"] * spec.vector_flops_per_s["fp32"],
        bytes_per_s=constants.fractions["streaming_fraction"] * spec.memory_bytes_per_s,
        launch_s=2e-6,
    )
    learned = learned_times([product(batch_size, one)], spec, constants, EXACT, shipped())
    assert modelled_s == pytest.approx(learned.time_s[0], rel=0.35)


def product(rows: int, steps: Steps) -> Op:
    shapes = ((rows, steps.depth), (steps.depth, steps.outputs), (rows, steps.outputs))
    left, right, result = (TensorSpec(shape=shape, dtype="float32") for shape in shapes)
    elements = sum(a * b for a, b in shapes)
    return Op(
        name="aten::mm", phase=Phase.FORWARD, inputs=(left, right), outputs=(result,), attributes={},
        flops=2 * rows * steps.depth * steps.outputs, bytes=4 * elements, count=1,
    )  # fmt: skip


# --- what a profile records ------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN")
@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_a_profile_tells_the_steps_of_packed_sequences(kind: str, gates: int) -> None:
    torch = pytest.importorskip("torch")
    from advisor.profile import profile_callable

    def build() -> Any:
        with torch.device("cuda"):
            return getattr(torch.nn, kind)(16, 32, num_layers=2), torch.rand(3, 2, 16)

    def step(state: Any) -> None:
        layers, data = state
        packed = torch.nn.utils.rnn.pack_padded_sequence(data, torch.tensor([3, 1]))
        layers(packed)[0].data.sum().backward()

    trace = profile_callable(step, setup=build)
    steps = {op.name: found(op) for op in trace.ops if "_cudnn_rnn" in op.name}
    assert [each.num_by_rows for each in steps.values()] == [{2: 2, 1: 4}] * 2
    assert steps["aten::_cudnn_rnn"].outputs == steps["aten::_cudnn_rnn_backward"].depth == gates * 32
