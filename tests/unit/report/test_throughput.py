"""Samples a second and model FLOPs utilization, where there is room for them."""

import pytest

from advisor.core.values import StepWork
from advisor.report.document import Fact
from advisor.report.estimates import estimates_document, throughput_facts
from advisor.report.explain import iteration
from tests.builders import make_estimate, make_trace
from tests.recommendations import make_option
from tests.unit.report.printed import on_screen

WORK = StepWork(num_samples=256.0, model_flops=5e12, peak_flops_per_s=100e12)
FOUR = make_estimate(iteration=0.2, num_gpus=4, work=WORK)
FACTS = [
    Fact("samples per second", "1,280", "of all 4 GPUs"),
    Fact("MFU", "25.0%", "model FLOPs utilization, of 100 TFLOP/s a GPU"),
]


def test_both_are_told():
    assert list(throughput_facts(FOUR)) == FACTS


def test_what_is_unknown_is_not_told():
    assert list(throughput_facts(make_estimate())) == []
    slow = make_estimate(iteration=2.0, work=StepWork(num_samples=3.0))
    assert list(throughput_facts(slow)) == [Fact("samples per second", "1.5")]


def test_an_option_in_full_tells_them():
    assert list(iteration(make_option("X", 1, 20, estimate=FOUR)))[-2:] == FACTS


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(("estimates", "is_told"), [([FOUR], True), ([FOUR, FOUR], False)])
def test_a_prediction_tells_them_of_one_gpu_that_is_asked_about(estimates, is_told, width):
    text = on_screen(estimates_document(make_trace(), estimates), width)
    assert ("1,280" in text) is ("25.0%" in text) is is_told
    assert max(map(len, text.splitlines())) <= width
