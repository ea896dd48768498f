"""Operators that arrive whole at a dispatch mode are recorded by their parts."""

import pytest

pytestmark = pytest.mark.torch


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
