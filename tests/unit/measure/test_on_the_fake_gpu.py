"""Every case is a call that a GPU would take, and is recorded as the profiler records it."""

import json

import pytest

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def report(warm_module):
    return json.loads(warm_module("tests.unit.measure.grid_on_fake_gpu"))


def test_no_call_is_refused(report):
    assert report["refused"] == {}


def test_what_is_stored_is_what_the_profiler_records(report):
    assert report["different"] == []


def test_phases_are_those_of_the_cases(report):
    assert report["wrong_phases"] == []


def test_every_operator_has_a_cost(report):
    assert report["without_cost"] == []


def test_all_families_were_tried(report):
    assert report["num_cases"] > 200
    assert "aten::_cudnn_rnn_backward" in report["operators"]
    assert "aten::_scaled_dot_product_flash_attention_backward" in report["operators"]
    assert "advisor::h2d_copy" in report["operators"]
