"""Published steps of a Llama: which attention is put in for which, and how errors are told."""

import csv
from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.operators.attention_kernels import AttentionBackend
from advisor.predict.iteration import predict
from research.llama_steps import BATCHES, FILE, LlamaStep, forced, llama_steps, page
from tests.builders import make_trace
from tests.published import recorded_llama
from tests.shared import SHARED, needs_shared

H200 = resolve_gpu("H200-SXM-141GB")
PAGE = Path(__file__).parents[2] / "research" / "docs" / "accuracy" / "llama.md"
COLUMNS = ("gpu", "sdpa_backend", "batch_per_gpu", "sequence_length", "step_ms")


@pytest.fixture
def folder(tmp_path):
    rows = [("H200", f"{kind}_ATTENTION", 12, 1024, 240) for kind in ("CUDNN", "FLASH", "EFFICIENT")]
    with (tmp_path / FILE).open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    return tmp_path


def step(error, *, backend=AttentionBackend.CUDNN, is_inside=True):
    return LlamaStep(
        gpu="X", backend=backend, sequences=1, length=2, measured_s=1.0, predicted_s=1 + error,
        is_inside=is_inside,
    )  # fmt: skip


def test_pytorchs_own_choice_is_predicted_as_it_is(folder):
    cudnn, _, _ = llama_steps(folder, recorded_llama)
    assert cudnn.predicted_s == predict(recorded_llama(12, 1024), H200).iteration_s.p50


def test_another_backend_takes_the_place_of_that_choice(folder):
    cudnn, flash, efficient = llama_steps(folder, recorded_llama)
    assert cudnn.predicted_s < flash.predicted_s < efficient.predicted_s


def test_all_layers_attend_forward_and_backward_by_the_backend():
    trace = forced(recorded_llama(12, 1024), AttentionBackend.EFFICIENT)
    calls = {op.name: op.count for op in trace.ops if op.attributes.get("backends") == ("efficient",)}
    assert sorted(calls.values()) == [16, 16]
    assert all("scaled_dot_product" in name for name in calls)
    assert forced(make_trace(), AttentionBackend.EFFICIENT) == make_trace()


def test_errors_are_signed_and_averaged_without_their_signs():
    steps = [step(0.1), step(-0.3, is_inside=False), step(0.05, backend=AttentionBackend.FLASH_2)]
    text = page(steps)
    assert "| cudnn | 20.0% | 30% | 1 of 2 |" in text
    assert "| flash_2 | 5.0% | 5% | 1 of 1 |" in text
    assert "| all | 15.0% | 30% | 2 of 3 |" in text
    assert "| X | cudnn | 1 x 2 | 1000 ms | 700 ms | -30% |" in text


def test_a_missing_table(tmp_path):
    with pytest.raises(FileNotFoundError, match=FILE):
        next(llama_steps(tmp_path, recorded_llama))


@pytest.mark.shared
@needs_shared
def test_the_page_is_what_is_predicted_today():
    steps = list(llama_steps(SHARED / "measurements" / "published", recorded_llama))
    assert {(step.sequences, step.length) for step in steps} == set(BATCHES)
    assert page(steps) == PAGE.read_text()
    errors = [abs(step.error) for step in steps]
    assert sum(errors) / len(errors) < 0.12
