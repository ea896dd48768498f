"""What streaming in 16 bits costs: made-up calls whose costs are known, and the published ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from advisor.core.gpus import catalog_path, load_gpus
from advisor.operators.cycles import FILE, parsed
from tests.shared import SHARED, needs_shared
from training import fit_streams
from training.fit_streams import fit_of, fitted, nonnegative, render
from training.stream_tables import MeasuredStream, read_streams

GPUS = ("A100-SXM-80GB", "H200-SXM-141GB", "B200-SXM-180GB")
TRUE = np.array([0.8, 0.3, 200.0])
PUBLISHED = SHARED / "measurements/published"


def made_up(kind: str = "curve", noise: float = 0.0, offset_s: float = 5e-6) -> list[MeasuredStream]:
    rng = np.random.default_rng(0)
    rows = []
    for name in GPUS:
        for columns in (128, 1024, 4096, 8192):
            for num_rows in (2048, 8192, 32768):
                row = MeasuredStream(
                    kind=kind, source="ours", gpu=load_gpus()[name], rows=num_rows, columns=columns,
                    tensors=2, time_s=1.0,
                )  # fmt: skip
                seconds = offset_s + float(np.array(fit_streams._seconds(row)) @ TRUE)
                rows.append(replaced(row, seconds * float(np.exp(noise * rng.standard_normal()))))
    return rows


def replaced(row: MeasuredStream, time_s: float) -> MeasuredStream:
    facts = {name: getattr(row, name) for name in MeasuredStream.__slots__}
    return MeasuredStream(**{**facts, "time_s": time_s})


def test_costs_come_back() -> None:
    fit = fit_of(made_up())
    assert fit.costs == pytest.approx(TRUE, rel=0.05)
    assert fit.offset_s["ours"] == pytest.approx(5e-6, rel=0.1)


def test_one_wild_call_changes_little() -> None:
    rows = made_up()
    wild = [replaced(rows[0], 10 * rows[0].time_s), *rows[1:]]
    assert fit_of(wild).costs == pytest.approx(TRUE, rel=0.15)


def test_calls_that_were_held_out_and_architectures_judge() -> None:
    fit = fitted(made_up(noise=0.1))
    assert set(fit.left_out) == set(GPUS)
    assert sum(map(len, fit.judged.values())) < len(made_up()) / 2
    assert 0.1 <= fit.sigma < 0.25


def test_an_exact_fit_is_as_unsure_as_a_day() -> None:
    assert fitted(made_up()).sigma == 0.1


def test_no_cost_is_negative() -> None:
    design = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert nonnegative(design, np.array([3.0, 2.0, 1.0])) == pytest.approx([2.0, 0.0])
    assert nonnegative(design, np.array([2.0, 3.0, 4.0])) == pytest.approx([1.0, 1.0], abs=1e-3)


def test_what_is_written_is_read() -> None:
    rows = made_up(noise=0.1)
    costs = parsed(render([fitted(rows)], rows))["curve"]
    assert (costs.passes, costs.cycles_per_element) == pytest.approx(fitted(rows).costs[:2], abs=1e-2)
    assert costs.architectures == {"Ampere", "Hopper", "Blackwell"}
    assert costs.unseen_sigma >= costs.sigma


@needs_shared
def test_published_rows_are_those_of_the_shipped_file(tmp_path: Path) -> None:
    """Fitted again they give the shipped costs; held-out shapes are off by at most what the page says."""
    rows = [row for row in read_streams(PUBLISHED) if row.kind in ("arithmetic", "RMS norm backward")]
    assert {row.gpu.name for row in rows} == {"A100-SXM-80GB", "GH200-96GB", "H200-SXM-141GB", "GB200"}
    shipped = tomllib.loads(catalog_path(FILE).read_text())
    for kind, most in (("arithmetic", 0.06), ("RMS norm backward", 0.2)):
        fit = fitted([row for row in rows if row.kind == kind])
        assert fit.costs[:2] == pytest.approx(
            [shipped[kind]["passes"], shipped[kind]["cycles_per_element"]], abs=2e-3
        )
        errors = [np.abs(np.expm1(logs)).mean() for logs in fit.judged.values()]
        assert np.mean(errors) < most


@needs_shared
def test_bytes_are_read_and_written_once() -> None:
    rows = read_streams(PUBLISHED)
    assert min(row.time_s for row in rows) == pytest.approx(2e-5, rel=0.05)
    beyond_l2 = [row for row in rows if row.num_bytes > 2 * row.gpu.l2_bytes]
    share = [row.num_bytes / row.gpu.memory_bytes_per_s / row.time_s for row in beyond_l2]
    assert max(share) < 1.0


def test_a_missing_folder_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--published", str(tmp_path / "nowhere"), "--out", str(tmp_path / "streams.toml")]
    monkeypatch.setattr("sys.argv", ["fit_streams", *arguments])
    with pytest.raises(SystemExit) as caught:
        fit_streams.main()
    assert caught.value.code == 2
    assert "name the folder of published measurements" in capsys.readouterr().err
    assert not (tmp_path / "streams.toml").exists()
