"""The steps of recurrent layers: which there are, and what they take; every figure by hand."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Op, TensorSpec
from advisor.operators.recurrent import RecurrentSteps, StepConstants, step_constants, steps_of, steps_time_s
from tests.builders import make_op
from tests.recurrent import GRU, LSTM, RELU, TANH, make_layers


def found(op: Op) -> RecurrentSteps:
    steps = steps_of(op)
    assert steps is not None
    return steps


@pytest.mark.parametrize(("mode", "gates"), [(RELU, 1), (TANH, 1), (LSTM, 4), (GRU, 3)])
def test_each_step_multiplies_states_with_the_weights_of_its_gates(mode, gates):
    assert found(make_layers(mode=mode, steps=7, batch_size=32, hidden=256)) == RecurrentSteps(
        num_by_rows={32: 7},
        outputs=gates * 256,
        depth=256,
        weight_bytes=gates * 256 * 256 * 4,
        gates=gates,
        hidden=256,
        is_backward=False,
    )


def test_the_backward_pass_takes_them_with_transposed_weights():
    forward = found(make_layers(dtype="float16"))
    backward = found(make_layers(dtype="float16", backward=True))
    assert (backward.outputs, backward.depth) == (forward.depth, forward.outputs)
    assert replace(backward, outputs=forward.outputs, depth=forward.depth, is_backward=False) == forward


def test_layers_and_directions_follow_one_another():
    assert found(make_layers(steps=7, batch_size=32, layers=3)).num_by_rows == {32: 21}
    assert found(make_layers(steps=7, batch_size=32, layers=3, bidirectional=True)).num_by_rows == {32: 42}


def test_either_order_of_steps_and_sequences():
    assert found(make_layers(steps=7, batch_size=32, batch_first=False)).num_by_rows == {32: 7}


def test_packed_sequences_thin_out():
    packed = make_layers(batch_sizes=(8, 8, 5, 1), layers=2)
    assert found(packed).num_by_rows == {8: 4, 5: 2, 1: 2}


def test_a_projection_shrinks_the_state_and_is_one_more_product():
    steps = found(make_layers(hidden=512, proj_size=128))
    assert (steps.outputs, steps.depth) == (5 * 512, 128)


@pytest.mark.parametrize("mode", [RELU, TANH, LSTM, GRU])
@pytest.mark.parametrize("proj_size", [0, 64])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_what_is_left_are_the_products_of_the_inputs(mode, proj_size, bidirectional):
    op = make_layers(mode=mode, proj_size=proj_size, bidirectional=bidirectional, width=96, layers=1)
    inputs = op.inputs[1]
    rows, directions = 64 * 10, 2 if bidirectional else 1
    assert op.flops - found(op).flops == 2 * rows * directions * inputs.shape[0] * inputs.shape[1]


def test_backward_leaves_the_gradients_of_inputs_and_of_all_weights():
    forward, backward = make_layers(), make_layers(backward=True)
    assert found(backward).flops == found(forward).flops
    assert backward.flops - found(backward).flops == 2 * forward.flops - found(forward).flops


@pytest.mark.parametrize(("dtype", "num_bytes"), [("float64", 8), ("float32", 4), ("bfloat16", 2)])
def test_weights_have_the_width_of_the_data(dtype, num_bytes):
    assert found(make_layers(hidden=128, dtype=dtype)).weight_bytes == 4 * 128 * 128 * num_bytes


FLAT, NOTHING = (TensorSpec(shape=shape, dtype="float32") for shape in ((640, 512), (0, 10, 512)))


@pytest.mark.parametrize(
    ("attributes", "changes"),
    [
        *(
            (missing, {})
            for missing in (
                {"mode": None}, {"mode": 9}, {"hidden_size": None}, {"hidden_size": 0},
                {"hidden_size": "512"}, {"num_layers": -1}, {"batch_sizes": (0, "x")},
            )
        ),
        *(({}, {"inputs": inputs}) for inputs in ((), (FLAT,), (NOTHING,))),
        ({"batch_sizes": (3, 2)}, {"inputs": ()}),
    ],
)  # fmt: skip
def test_what_is_not_recorded_is_not_made_up(attributes, changes):
    op = make_layers()
    assert steps_of(replace(op, attributes={**op.attributes, **attributes}, **changes)) is None


@pytest.mark.parametrize("name", ["aten::mm", "aten::_thnn_fused_lstm_cell"])
def test_products_and_single_cells_have_no_steps(name):
    assert steps_of(make_op(name)) is None
    assert steps_of(replace(make_layers(), name=name)) is None


CONSTANTS = StepConstants(
    cell_s={1: 1e-5, 3: 2e-5, 4: 3e-5}, latency_s=4e-5, compute=0.5, memory=0.8, traffic=2.0
)


def time_s(op: Op, rows: int = 64, peak_flops_per_s: float = 1e13) -> float:
    gpu = replace(resolve_gpu("V100-SXM-16GB"), boost_clock_hz=3e9, memory_bytes_per_s=1e12)
    return steps_time_s(replace(found(op), num_by_rows={rows: 10}), CONSTANTS, gpu, peak_flops_per_s)


def test_a_step_takes_its_launches_its_latency_the_higher_roof_and_the_gates():
    layer = make_layers(mode=LSTM, hidden=1000)
    gates_s = 2 * 16 * 64 * 4 * 1000 / 1e12
    by_compute_s = 2 * 64 * 4000 * 1000 / 5e12
    assert time_s(layer) == pytest.approx(10 * (3e-5 + 2e-5 + by_compute_s + gates_s))
    by_memory_s = 4 * 4000 * 1000 / 0.8e12
    assert time_s(layer, peak_flops_per_s=1e15) == pytest.approx(10 * (3e-5 + 2e-5 + by_memory_s + gates_s))


def test_rows_are_rounded_up_to_what_a_product_takes():
    layer = make_layers(hidden=1000)
    one, more = time_s(layer, 33), time_s(layer, 64)
    assert more - one == pytest.approx(10 * 2 * 16 * 31 * 4 * 1000 / 1e12)


def test_a_wider_state_waits_longer_than_in_proportion():
    narrow, wide = (time_s(make_layers(mode=RELU, hidden=hidden), 1, 1e18) for hidden in (500, 1000))
    assert wide - 1e-4 > 2 * (narrow - 1e-4)


def test_no_shipped_share_is_above_its_roof():
    assert all(max(one.compute, one.memory) <= 1.0 for one in step_constants().values())


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN")
@pytest.mark.parametrize(("kind", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_a_profile_tells_the_steps_of_packed_sequences(kind, gates):
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
