"""Constants of attention and recurrent layers, found again from times that they themselves made."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from advisor.core.gpus import catalog_path, resolve_gpu
from advisor.core.values import Z90
from advisor.operators.attention_kernels import (
    AttentionBackend,
    AttentionCall,
    attention_call,
    kernels,
    rate_flops_per_s,
    seconds,
)
from advisor.operators.recurrent import step_constants
from advisor.predict.roofline import KERNEL_FLOOR_S
from research.training import fit_attention as attention
from research.training import fit_recurrent as recurrent
from research.training.attention_tables import Measured, read_both_ways
from research.training.least_squares import least_squares
from tests.attention import make_attention
from tests.shared import SHARED, needs_shared

MEASUREMENTS = SHARED / "measurements"
KERNELS = Path(__file__).parents[2] / "measured" / "h100_sxm_2026-11" / "kernels.jsonl.gz"
TRUE = replace(
    kernels()[AttentionBackend.FLASH_2, False], start_tiles=0.8, tail=0.5, traffic=0.5, uneven=0.85
)


def call_of(queries: int, heads: int, size: int, is_causal: bool) -> AttentionCall:
    call = attention_call(make_attention(queries=queries, heads=heads, size=size, is_causal=is_causal))
    assert call is not None
    return call


def made(gpu_name: str, added_s: float = 1e-5, source: str = "made") -> list[Measured]:
    """Times that the true kernel would take, all of one source."""
    gpu = resolve_gpu(gpu_name)
    rows = []
    for queries in (256, 512, 1000, 2048, 4096):
        for heads in (3, 16, 40):
            for size in (64, 80, 128):
                call = call_of(queries, heads, size, is_causal=(queries + heads) % 2 == 0)
                own_s = seconds(call, TRUE, gpu, rate_flops_per_s(TRUE, gpu, "bf16"))
                time_s = KERNEL_FLOOR_S + own_s + added_s
                rows.append(
                    Measured(
                        call=call, backend=AttentionBackend.FLASH_2, gpu=gpu, source=source, time_s=time_s
                    )
                )
    return rows


def test_least_squares_finds_a_line_through_outliers() -> None:
    x = np.linspace(0, 1, 50)
    y = 3 * x + 1
    y[::10] += 5
    slope, base = least_squares(lambda p: p[0] * x + p[1] - y, np.zeros(2)).tolist()
    assert (slope, base) == pytest.approx((3, 1), abs=0.05)


def test_constants_are_found_again() -> None:
    fitted = attention.fit(made("A100-SXM-80GB"))
    assert fitted.kernel.efficiency[128] == pytest.approx(TRUE.efficiency[128], rel=0.03)
    assert fitted.kernel.efficiency[64] == pytest.approx(TRUE.efficiency[64], rel=0.03)
    assert fitted.added_s["made"] == pytest.approx(1e-5, rel=0.5)


def test_another_architecture_is_predicted_by_its_data_sheet() -> None:
    rows = [*made("A100-SXM-80GB"), *made("H100-SXM-80GB", 2e-5, "other")]
    judged = attention.held_out(rows, attention.architecture_of)
    assert len(judged.rows) == len(rows)
    assert np.abs(judged.log_errors).mean() < 0.06


def test_twins_are_left_out_together_and_alone_nothing_is_judged() -> None:
    rows = [*made("H100-SXM-80GB"), *made("H200-SXM-141GB")]
    assert not attention.held_out(rows, attention.architecture_of).rows


def test_a_width_holds_four_of_five_and_small_tables_count_as_much() -> None:
    rows = made("A100-SXM-80GB")[:40] + made("L40S")[:10]
    off = np.concatenate([np.linspace(0.01, 0.4, 40), np.full(10, 0.1)])
    judged = attention.Judged(rows=rows, predicted_s=np.array([row.time_s for row in rows]) * np.exp(off))
    assert Z90 * attention.sigma_of(judged, 0.5) == pytest.approx(0.24, abs=0.02)
    assert attention.sigma_of(attention.Judged(rows=[], predicted_s=np.zeros(0)), 0.5) == 0.5


def test_the_catalog_holds_what_is_written() -> None:
    document = tomllib.loads(attention.render(kernels()))
    assert document["kernel"]["flash_2"]["forward"]["efficiency"]["128"] == pytest.approx(
        kernels()[AttentionBackend.FLASH_2, False].efficiency[128], abs=1e-3
    )
    fitted = recurrent.render(step_constants())
    assert fitted == catalog_path("recurrent.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def rows() -> tuple[Measured, ...]:
    return read_both_ways(MEASUREMENTS)


@needs_shared
def test_tables_hold_training_calls_alone(rows: tuple[Measured, ...]) -> None:
    assert len(rows) > 12_000
    assert min(row.call.queries for row in rows) >= 128
    assert {row.gpu.name for row in rows if row.call.is_backward} == {
        "A100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB", "GB200"
    }  # fmt: skip


@needs_shared
@pytest.mark.parametrize("backend", [AttentionBackend.CUDNN, AttentionBackend.FLASH_2])
def test_backward_passes_of_unseen_shapes_are_within_12_percent(
    rows: tuple[Measured, ...], backend: AttentionBackend
) -> None:
    own = [row for row in rows if row.call.is_backward and row.backend is backend]
    judged = attention.held_out(attention.thinned(own), attention.shape_fold)
    assert mean_over_gpus(judged) < 0.12


@needs_shared
def test_steps_of_unseen_recurrent_layers_are_within_15_percent() -> None:
    layers = [
        layer for layer in recurrent.read_layers(MEASUREMENTS) if layer.gpu.architecture == recurrent.FITTED
    ]
    for rate, own in recurrent.by_rate(layers).items():
        errors = np.array(recurrent.unseen(own)) / np.array([layer.time_s for layer in own]) - 1
        assert np.abs(errors).mean() < 0.15, rate


@needs_shared
def test_a_cell_of_today_is_told_by_recorded_layers_alone() -> None:
    newer = list(recurrent.read_recorded(KERNELS))
    assert len(newer) == 8
    fitted = recurrent.fit_steps(recurrent.read_layers(MEASUREMENTS), newer)
    shipped = step_constants()
    assert {key: one.cell_s for key, one in fitted.items()} == {
        key: pytest.approx(one.cell_s, rel=1e-3) for key, one in shipped.items()
    }
    errors = [
        abs(layer.predicted_s(shipped[layer.cores, layer.steps.is_backward]) / layer.time_s - 1)
        for layer in newer
    ]
    assert np.mean(errors) < 0.2


def mean_over_gpus(judged: attention.Judged) -> float:
    gpus = np.array([row.gpu.name for row in judged.rows])
    errors = np.abs(np.expm1(judged.log_errors))
    return float(np.mean([errors[gpus == gpu].mean() for gpu in np.unique(gpus)]))
