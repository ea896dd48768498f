"""The fake backend against a real GPU, on scripts of the examples."""

import pytest

from tests.devices import need_torch_and_cuda

pytestmark = [pytest.mark.torch, pytest.mark.gpu]


@pytest.fixture(scope="module", autouse=True)
def gpu():
    need_torch_and_cuda()


@pytest.mark.parametrize("name", ["resnet50", "resnet50-amp", "gpt2-small-bf16", "lstm", "dcgan"])
def test_same_operators_and_nearly_the_same_memory(name):
    from research.fake_vs_cuda import compare

    difference = compare(name)
    assert not difference.missing
    assert not difference.surplus
    assert difference.memory_ratio == pytest.approx(1.0, abs=0.08)


def test_the_iteration_takes_at_least_as_long_as_its_kernels():
    from research.fake_vs_cuda import compare

    trace = compare("dcgan").measured
    kernels_s = sum(op.count * (op.measured_s or 0.0) for op in trace.ops)
    assert 0 < kernels_s <= 1.05 * trace.iteration_s
    assert any(op.kernels for op in trace.ops)
