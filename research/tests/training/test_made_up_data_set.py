"""A new measured data set is one file and one row: a made-up one, registered here alone, is trained from."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from advisor.core.gpus import resolve_gpu
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import read_knowledge
from advisor.predict.roofline import KERNEL_FLOOR_S
from tests.unit.predict.learned.values import add, mm

pytest.importorskip("torch")
from research.training import __main__ as command
from research.training import data_sets
from research.training.fit import fit
from research.training.overhead import event_shares, floors_of
from research.training.samples import DataSet, Samples

pytestmark = pytest.mark.torch
L4 = resolve_gpu("L4")
REACHED = 0.6


def read_lines(path: Path) -> Samples:
    """Additions and products, a line each: rows, columns, seconds."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return Samples(
        ops=tuple(
            add(line["rows"], line["columns"]) if line["kind"] == "sum" else mm(line["rows"], 64, 64)
            for line in lines
        ),
        gpus=np.full(len(lines), "L4"),
        time_s=np.array([line["time_s"] for line in lines]),
        kinds=np.array([line["kind"] for line in lines]),
        splits=np.full(len(lines), "train"),
        sources=np.full(len(lines), "lines"),
    )


LINES = DataSet(
    name="our laboratory",
    flag="lines",
    metavar="FILE",
    read=read_lines,
    cite=lambda samples: f"{len(samples.ops)} lines of our laboratory",
    is_timed_on_device=True,
    fits={"sum": "streaming_fraction"},
    origin=("Fitted to our laboratory's lines.",),
)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_sets, "DATA_SETS", (*data_sets.DATA_SETS, LINES))


def write_lines(path: Path) -> Path:
    """Additions at six tenths of the L4's bandwidth, and products."""
    lines = []
    for i in range(30):
        rows = 4096 + 64 * i
        seconds = KERNEL_FLOOR_S + add(rows, 4096).bytes / (REACHED * L4.memory_bytes_per_s)
        lines.append({"kind": "sum", "rows": rows, "columns": 4096, "time_s": seconds})
        lines.append({"kind": "product", "rows": rows, "columns": 64, "time_s": 1e-4})
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def train(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(command, "fit", lambda table, **knobs: fit(table, **{**knobs, "steps": 3}))
    monkeypatch.setattr(sys, "argv", ["training", *map(str, arguments)])
    command.main()


@pytest.mark.usefixtures("registered")
def test_its_flag_is_read_fitted_trained_and_cited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(monkeypatch, "--lines", write_lines(tmp_path / "lines.jsonl"), "--out", tmp_path / "out")
    knowledge = read_knowledge(tmp_path / "out")
    assert set(knowledge.networks) == {"gemm", "pointwise"}
    constants = constants_for(L4, knowledge)
    assert constants.fractions["streaming_fraction"] == pytest.approx(REACHED, abs=2e-3)
    assert constants.measured == {"streaming_fraction"}
    text = (tmp_path / "out" / "fitted.toml").read_text()
    assert "# Fitted to our laboratory's lines." in text
    assert 'source = "fitted to our laboratory kernel measurements"' in text
    assert "NeuSight" not in text
    card = json.loads((tmp_path / "out" / "learned.json").read_text())
    assert card["source"] == "60 lines of our laboratory"
    assert card["rows"] == {"L4 product train": 30, "L4 sum train": 30}


@pytest.mark.usefixtures("registered")
def test_its_calls_are_timed_as_it_says(tmp_path: Path) -> None:
    samples = read_lines(write_lines(tmp_path / "lines.jsonl"))
    assert set(floors_of(samples).values()) == {KERNEL_FLOOR_S}
    assert set(event_shares(samples).tolist()) == {1.0}


def test_without_its_row_its_flag_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "lines.jsonl")
    with pytest.raises(SystemExit):
        train(monkeypatch, "--lines", path, "--out", tmp_path / "out")
    assert "--lines" in capsys.readouterr().err


def test_without_any_data_set_there_is_nothing_to_train_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        train(monkeypatch, "--out", tmp_path / "out")
    answer = capsys.readouterr().err
    assert all(f"--{each.flag} {each.metavar}" in answer for each in data_sets.DATA_SETS)
