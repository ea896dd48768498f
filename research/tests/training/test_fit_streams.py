"""What streaming costs: made-up calls whose costs are known, and the published ones."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.values import Z90
from advisor.operators.cycles import COSTS, FILE, parsed
from research.training import fit_streams
from research.training.batch_norms import batch_norm_rows
from research.training.fit_streams import (
    fit_of,
    fitted,
    fitted_to_runs,
    nonnegative,
    render,
    sigma_of,
    widths_of,
)  # fmt: skip
from research.training.four_bits import made_weights
from research.training.stream_tables import MeasuredStream, counted, read_streams
from tests.shared import SHARED, needs_shared

GPUS = ("A100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB")
TRUE = {
    "curve": np.array([0.8, 0.3, 0.0, 0.0, 0.0]),
    "layer norm forward": np.array([0.8, 0.2, 0.3, 200.0, 0.0]),
    "RMS norm backward": np.array([1.5, 0.1, 0.2, 0.0, 6.0]),
    "softmax backward, long rows": np.array([1.3, 0.2, 0.5, 0.0, 0.0]),
}
MEASUREMENTS = SHARED / "measurements"


def made_up(
    kind: str = "curve", noise: float = 0.0, offset_s: float = 5e-6, slower: float = 1.0
) -> list[MeasuredStream]:
    """Calls that take what ``TRUE`` says, on the A100 ``slower`` times it."""
    rng = np.random.default_rng(0)
    rows = []
    for name in GPUS:
        for columns in (1536, 2048, 5120, 8192, 12288):
            for num_rows in (2048, 8192, 32768):
                row = MeasuredStream(
                    kind=kind, source="ours", gpu=load_gpus()[name], rows=num_rows, columns=columns,
                    tensors=2, time_s=1.0,
                )  # fmt: skip
                seconds = float((fit_streams._units_s([row]) @ TRUE[kind])[0])
                seconds = offset_s + seconds * (slower if name == GPUS[0] else 1.0)
                rows.append(replace(row, time_s=seconds * float(np.exp(noise * rng.standard_normal()))))
    return rows


@pytest.mark.parametrize("kind", TRUE)
def test_times_come_back(kind: str) -> None:
    rows = made_up(kind)
    fit = fit_of(rows)
    assert np.abs(fit.off(rows)).max() < 0.03
    assert fit.pace == pytest.approx(dict.fromkeys(("Ampere", "Hopper", "Blackwell"), 1.0), abs=0.05)


def test_costs_come_back() -> None:
    fit = fit_of(made_up("layer norm forward"))
    assert fit.costs == pytest.approx(TRUE["layer norm forward"], rel=0.1, abs=0.01)
    assert fit.offset_s["ours"] == pytest.approx(5e-6, rel=0.1)


def test_a_slower_architecture_has_a_pace() -> None:
    fit = fit_of(made_up("softmax backward, long rows", slower=1.2))
    assert fit.pace["Ampere"] / fit.pace["Hopper"] == pytest.approx(1.2, rel=0.1)
    assert np.prod(list(fit.pace.values())) == pytest.approx(1.0)


def test_one_wild_call_changes_little() -> None:
    rows = made_up("layer norm forward")
    wild = fit_of([replace(rows[0], time_s=10 * rows[0].time_s), *rows[1:]])
    assert np.abs(wild.off(rows)).max() < 0.1


def test_every_call_is_judged_by_a_fit_that_did_not_see_its_shape() -> None:
    fit = fitted(made_up(noise=0.1))
    assert {gpu: len(logs) for gpu, logs in fit.judged.items()} == dict.fromkeys(GPUS, 15)
    assert set(fit.left_out) == set(GPUS)
    widths = widths_of([fit])["element-wise"]
    assert all(0.05 < sigma <= widths.unseen for sigma in widths.seen.values())


def test_folds_are_by_shape_alone() -> None:
    rows = made_up()
    folds = {(row.rows, row.columns): fit_streams.fold(row) for row in rows}
    assert all(fit_streams.fold(row) == folds[row.rows, row.columns] for row in rows)
    assert set(folds.values()) == {"0", "1", "2", "3"}


def test_a_source_that_is_known_is_not_fitted_again() -> None:
    rows = made_up(offset_s=2e-5)
    assert fit_of(rows, {"ours": 1e-5}).offset_s == {"ours": 1e-5}


def test_a_width_holds_four_fifths_of_each_gpu() -> None:
    many, few = np.linspace(0, 0.1, 1000), np.linspace(0, 1.0, 10)
    assert sigma_of([many]) == pytest.approx(0.08 / Z90, rel=0.01)
    # A GPU with a hundredth of the calls weighs as much.
    assert sigma_of([many, few]) > 3 * sigma_of([many])


def test_no_cost_is_negative() -> None:
    design = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert nonnegative(design, np.array([3.0, 2.0, 1.0])) == pytest.approx([2.0, 0.0])
    assert nonnegative(design, np.array([2.0, 3.0, 4.0])) == pytest.approx([1.0, 1.0], abs=1e-3)


def test_what_is_written_is_read() -> None:
    fit = fitted(made_up(noise=0.1))
    cost = parsed(render([fit]))["curve"]
    assert cost.costs == pytest.approx(fit.fit.costs, abs=1e-3)
    assert set(cost.architectures) == {"Ampere", "Hopper", "Blackwell"}
    assert cost.pace_on(load_gpus()["L40S"]).sigma == cost.unseen_sigma > 0


@needs_shared
@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ("RMS norm backward", 0.07),
        ("RMS norm forward", 0.08),
        ("channel norm forward, long channels", 0.25),
        ("softmax backward", 0.05),
    ],
)
def test_published_rows_are_those_of_the_shipped_file(kind: str, most: float) -> None:
    """Fitted again they give the shipped costs; held-out shapes are off by at most what the page says."""
    shipped = tomllib.loads(catalog_path(FILE).read_text())[kind]
    fit = fitted([row for row in published() if row.kind == kind])
    costs = [shipped[name] for name in COSTS]
    assert fit.fit.costs == pytest.approx(costs, abs=2e-3)
    errors = [np.abs(np.expm1(logs)).mean() for logs in fit.judged.values()]
    assert np.mean(errors) < most


def test_weights_of_four_bits_are_told_by_pairs_of_runs(tmp_path: Path) -> None:
    table = tmp_path / "published" / "finetuning.csv"
    table.parent.mkdir()
    rows = [
        "llama-2-7b,lora,,A10G,1,2,1969.2,4", "llama-2-7b,qlora,nf4,A10G,1,2,2740.2,4",
        "llama-2-7b,qlora,nf4,A10G,1,4,9999,4", "llama-2-7b,qlora,nf4,A10G,4,2,9999,4",
        "tiny-llama,lora,,A10G,1,8,100,3", "tiny-llama,qlora,nf4,A10G,1,8,200,3",
    ]  # fmt: skip
    table.write_text("\n".join(("model,method,quantization,gpu,num_gpus,micro_batch,seconds,epochs", *rows)))
    llama, tiny = made_weights(tmp_path)
    # 8,000 passes forward and backward of the blocks' weights.
    assert llama.weights == 8000 * 32 * (4 * 4096**2 + 3 * 4096 * 11008)
    assert (llama.time_s, tiny.time_s) == (pytest.approx(771.0), 100.0)
    fit = fitted_to_runs([llama, tiny])
    (cycles,) = fit.fit.costs[fit.fit.costs > 0]
    clocks = 871.0 * 80 * load_gpus()["A10G"].boost_clock_hz
    assert cycles == pytest.approx(clocks / (llama.weights + tiny.weights))
    # Nothing judges it on another architecture: it is as wide there as the widest.
    widths = widths_of([fit, fitted(made_up(noise=0.1))])
    assert widths["four bits"].unseen == max(each.unseen for each in widths.values())


@needs_shared
def test_published_pairs_are_those_of_the_shipped_file() -> None:
    shipped = tomllib.loads(catalog_path(FILE).read_text())["four bits"]
    fit = fitted_to_runs(list(made_weights(MEASUREMENTS)))
    assert fit.fit.costs[1] == pytest.approx(shipped["cycles_per_element"], abs=2e-3)


@needs_shared
def test_bytes_are_read_and_written_once() -> None:
    rows = published()
    assert min(row.time_s for row in rows) == pytest.approx(2e-5, rel=0.05)
    beyond_l2 = [row for row in rows if row.num_bytes > 2 * row.gpu.l2_bytes]
    share = [row.num_bytes / row.gpu.memory_bytes_per_s / row.time_s for row in beyond_l2]
    assert max(share) < 1.0


@needs_shared
def test_what_is_no_time_of_the_call_is_left_out() -> None:
    calls = Counter((row.kind, row.gpu.name, row.source) for row in published())
    assert not calls["layer norm backward", "GH200-96GB", "icicle"]
    assert not calls["softmax forward, long rows", "A100-SXM-80GB", "icicle"]
    assert calls["softmax backward, long rows", "GH200-96GB", "icicle"] == 943
    assert calls["softmax forward, long rows", "GH200-96GB", "icicle"] == 580


@cache
def published() -> tuple[MeasuredStream, ...]:
    return (*read_streams(MEASUREMENTS), *counted(batch_norm_rows(SHARED / "kineto")))


def test_a_missing_folder_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--measurements", str(tmp_path / "nowhere"), "--out", str(tmp_path / "streams.toml")]
    monkeypatch.setattr("sys.argv", ["fit_streams", *arguments])
    with pytest.raises(SystemExit) as caught:
        fit_streams.main()
    assert caught.value.code == 2
    assert "name the folder of measurements" in capsys.readouterr().err
    assert not (tmp_path / "streams.toml").exists()
