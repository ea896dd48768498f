"""What the mode, the recorder and the memory tracker make of a few lines of torch."""

import pytest

pytestmark = pytest.mark.torch


CONVOLUTION = {
    "stride": [2, 2], "padding": [1, 1], "dilation": [1, 1], "transposed": False, "output_padding": [0, 0],
    "groups": 1,
}  # fmt: skip
RULES = "torch._dynamo.trace_rules"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("views", [["aten::fill_", [2, 4]]]),
        ("equal calls", [[5, {"alpha": 2}], [1, {"alpha": 3}]]),
        ("attributes", [CONVOLUTION, {"value": "-inf"}]),  # JSON has no infinity
        ("values", [True, 0, 0.5, False, [1, 1], [1], [1], [3]]),
        # Rounded, shared with views, and freed.
        ("memory is freed", [0, 4096, 4096, 4096, 0]),
        ("memory's statistics", [True, 0, True]),
        # A million weights take 7,813 blocks of 512 bytes, the bias 8.
        ("meta", [True, True, 0, True, (7813 + 8) * 512]),
        # They take room only where written.
        ("large copies to main memory",
         [[0.0, 0.0, False], [0.0, 3.0, 0.0, 0.0], ["torch.float32", "torch.bfloat16"], [2**29, 4], True,
         True]),
        # It asks for no events of CUDA.
        ("a profiler of the script", [[None, True]] * 3),
        ("real dynamo on demand", [True, RULES, "module", True]),
        ("real dynamo for a function", [True, True, "defaultdict", "module"]),
        ("no real dynamo for what models ask", [True, "cuda", False, True, RULES, True, True]),
        ("real dynamo for a name of its tools", ["defaultdict", "module", "module"]),
    ],
)  # fmt: skip
def test_what_is_made_of_a_few_lines(probe, name, expected):
    assert probe(name) == expected


def test_phases(probe):
    phases = dict(probe("phases"))
    assert phases["advisor::h2d_copy"] == "forward"
    assert ["aten::mm", "forward"] in probe("phases")
    assert ["aten::mm", "backward"] in probe("phases")
    assert phases["aten::_foreach_norm"] == "optimizer"
    assert phases["aten::_foreach_add_"] == "optimizer"


def test_copies_between_host_and_device(probe):
    copies, value = probe("copies")
    assert sum(count for name, count in copies if name == "advisor::h2d_copy") == 2
    assert sum(count for name, count in copies if name == "advisor::d2h_copy") == 3
    assert {name for name, _ in copies} == {"advisor::h2d_copy", "advisor::d2h_copy"}
    assert value == 0.5


def test_memory_by_kind(probe):
    usage = probe("memory of a model")
    parameters = 256 * 256 * 4 + 1024
    assert usage["parameter_bytes"] == usage["gradient_bytes"] == parameters
    assert usage["optimizer_bytes"] == 0
    # The peak is in the backward pass: input, loss, its gradient twice (of the sum, expanded).
    assert usage["peak_bytes"] == 2 * parameters + usage["activation_bytes"]
    assert usage["activation_bytes"] == 102_400 + 2 * 512


def test_values_that_follow_from_what_the_script_put_on_the_gpu(probe):
    largest, num_kept, kept, lengths, rows, mean, written, total, repeated = probe(
        "values that follow from the CPU"
    )
    assert (largest, num_kept, kept, lengths) == (5, 10, [10, 4], [3, 5, 2])
    assert (rows, mean, total, repeated) == ([10, 2], pytest.approx(10 / 15), 10, [10, 5, 4])
    assert written == 0  # a mask that was written to is not known any more


def test_values_of_parameters_and_of_what_was_written_to_stay_unknown(probe):
    total, known, added, step, is_all, is_any, _ = probe("values that do not")
    assert (total, known, added, step) == (0.5, 4, 0, 0.5)
    assert (is_all, is_any) == (True, False)


def test_an_unknown_value_is_finite_for_who_asks(probe):
    *_, (is_finite, is_nan, is_no_nan, is_infinite, is_three) = probe("values that do not")
    assert (is_finite, is_nan, is_no_nan, is_infinite, is_three) == (True, False, True, False, False)


def test_inference_runs_the_operators_of_evaluation_without_gradients(probe):
    inference, no_grad = probe("inference mode")
    assert inference == no_grad
    names = {name for name, _ in inference}
    assert names >= {"aten::convolution", "aten::addmm", "aten::bmm"}
    assert names.isdisjoint({"aten::conv2d", "aten::linear", "aten::matmul"})


def test_what_is_one_kernel_stays_whole(probe):
    inference, _ = probe("inference mode")
    assert ["aten::native_batch_norm", 1] in inference
    assert ["aten::_fused_rms_norm", 1] in inference
