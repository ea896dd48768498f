"""Recipes beside published fine-tuning runs: which rows count, and what the page says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from research.recipe_runs import Compared, PublishedRun, page, published_runs

PAGE = Path(__file__).parents[2] / "research" / "docs" / "accuracy" / "recipes.md"
COLUMNS = (
    "source,model,method,quantization,gpu,num_gpus,micro_batch,sequence,trainable_params,peak_memory_gb,seconds,"
    "per,tokens_per_s,usd,epochs,oom,note"
)
PASSES = "1,000 iterations of a micro-batch"


def row(**changed: str) -> str:
    values = dict.fromkeys(COLUMNS.split(","), "") | {
        "source": "Lightning-AI/litgpt@2 tutorials", "model": "llama 2 7b", "method": "lora",
        "gpu": "A100-SXM-40GB", "num_gpus": "1", "micro_batch": "1", "peak_memory_gb": "21.3",
        "seconds": "141.6", "per": PASSES,
    }  # fmt: skip
    return ",".join(f'"{value}"' for value in (values | changed).values())


def runs_of(folder: Path, *rows: str) -> list[PublishedRun]:
    (folder / "finetuning.csv").write_text("\n".join((COLUMNS, *rows)))
    return list(published_runs(folder))


def test_a_row_is_a_run_of_a_recipe(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, row())
    assert (run.model, run.method, run.batch, run.memory_gb) == ("llama-2-7b", "lora", 1, 21.3)
    assert run.iteration_s == pytest.approx(0.1416)
    assert not run.is_out_of_memory


def test_weights_of_four_bits_are_qlora_and_a_whole_run_has_no_time_of_a_pass(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, row(quantization="bnb.nf4", per="run with its evaluations"))
    assert (run.method, run.iteration_s) == ("qlora", None)


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "adapter"},
        {"num_gpus": "2"},
        {"model": "falcon 40b"},
        {"source": "pytorch/torchtune"},
        {"num_gpus": "4", "source": "Lightning-AI/litgpt config_hub"},
    ],
)
def test_what_no_recipe_is_stays_out(tmp_path: Path, changed: dict[str, str]) -> None:
    assert runs_of(tmp_path, row(**changed)) == []


def compared(*, memory_gb: float | None, oom: bool = False, method: str = "lora") -> Compared:
    run = PublishedRun(
        model="llama-2-7b", method=method, gpu="A10G", num_gpus=1, batch=1, memory_gb=memory_gb,
        iteration_s=None, is_out_of_memory=oom,
    )  # fmt: skip
    return Compared(
        run=run,
        memory_gb=20.0,
        fits=True,
        step=None,
        weights_gb=13.5,
        thumb_gb=16.2,
        formula_gb=18.0,
        formula_s=1,
    )


def test_the_page_counts_errors_and_verdicts() -> None:
    text = page([compared(memory_gb=25.0), compared(memory_gb=None, oom=True)])
    assert "Mean absolute error: the recipe 20 %, weights x 1.2 35 %" in text
    assert "Right for 1 of 2 runs." in text
    assert "Wrong: llama-2-7b lora, A10G, batch 1." in text


def test_a_peak_below_the_weights_is_of_another_method() -> None:
    text = page([compared(memory_gb=25.0), compared(memory_gb=10.0, method="full")])
    assert "Mean absolute error: the recipe 20 %" in text
    assert "another optimizer must have run: llama-2-7b full, A10G, batch 1 (10.0 GB)" in text


def test_the_published_page_keeps_its_promise() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (error,) = re.findall(r"Mean absolute error: the recipe (\d+) %, weights", text)
    assert int(error) <= 12
    (error,) = re.findall(r"Mean absolute error: the recipe (\d+) %, the formula", text)
    assert int(error) <= 20
    (right, all_) = re.findall(r"Right for (\d+) of (\d+) runs", text)[0]
    assert right == all_
