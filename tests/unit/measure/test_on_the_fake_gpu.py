"""Every case is a call that a GPU would take, and is recorded as the profiler records it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def report():
    pytest.importorskip("torch")
    program = Path(__file__).with_name("grid_on_fake_gpu.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


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
