"""Tables and charts: errors and no measured times, the same for the same results."""

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import catalog_path
from advisor.core.values import Z90
from advisor.predict.knowledge import CARD
from benchmarks.accuracy.charts import below, two_digits, write_charts
from benchmarks.accuracy.kernels import KernelErrors
from benchmarks.accuracy.knowledge_files import described
from benchmarks.accuracy.model_card import model_card
from benchmarks.accuracy.report import write_report
from benchmarks.accuracy.results import Results
from benchmarks.accuracy.scaling import Scaled
from benchmarks.accuracy.summary import summarise
from benchmarks.accuracy.tables import all_tables, kernel_table, left_out_table, row_table
from research.published import CASES, Score
from research.speedups import SpeedUp
from research.tests.harness.builders import line, make_measured

MEASURED_MS = "1234.5678"


def row(gpu="T4", predicted=1500.0, label="clean", noise=None, **changes):
    text = line(gpu=gpu, measured_ms=MEASURED_MS, other_ms="1100.4321", **changes)
    return text | {"predicted_ms": predicted, "p10_ms": predicted / 1.3, "p90_ms": predicted * 1.3,
                    "by_method": {}, "label": label, "label_noise": noise, "knowledge": "s1"}  # fmt: skip


def results(**changes):
    rows = [row(), row("P4", 900.0, "unknown")]
    summary = summarise(rows)
    parts = {
        "command": "python -m benchmarks.accuracy", "date": "2026-01-02", "left_out": {},
        "hashes": {"s1": {"fitted.toml": "ab" * 32}}, "evaluated": "as shipped",
        "end_to_end": {"rows": rows, "by_knowledge": {"s1": summary}, "summary": summary},
    }  # fmt: skip
    return Results(**(parts | changes))


def kernel_errors(kind="add", gpu="T4", split="test", **changes):
    figures = {
        "rows": 7,
        "floor_s": 2e-5,
        "median": 0.04,
        "mean": 0.05,
        "p90": 0.1,
        "bias": -0.03,
        "coverage": 0.9,
    }
    return KernelErrors(kind=kind, gpu=gpu, split=split, **(figures | changes))


def test_parts_that_were_not_run_have_no_table():
    assert [title for title, _ in all_tables(results())] == ["Iterations", "Rows"]


def test_every_part_has_its_table():
    pair = Scaled(origin="T4", row=make_measured("P4", measured_s=1.0), scaled_s=1.4, direct_s=0.8)
    speed_up = SpeedUp(name="ResNet", precision="AMP", origin="V100", destination="A100", published=2.0,
                       predicted=1.5, fitted=True)  # fmt: skip
    unseen = {"rows": [], "summary": {}, "kernels": []}
    full = results(
        kernels=[kernel_errors("all"), kernel_errors("all", split="train")],
        unseen_dims=[kernel_errors("all", split="train")],
        scaled=[pair],
        left_out={"T4": {"unseen": unseen}},
        speed_ups=[speed_up],
    )
    tables = dict(all_tables(full))
    assert list(tables) == [
        "Iterations", "Rows", "Operators, test split", "Operators, train split",
        "Operators of unseen dimensions", "A GPU left out of training", "Scaled from another GPU",
        "Published speed-ups, V100 to A100",
    ]  # fmt: skip
    assert "| 0.5 | 10.0 / 10.0 / 10 / 10 | - |" in tables["Scaled from another GPU"]
    assert (
        "| ResNet | AMP | V100 | A100 | 2.00 | 1.50 | -25% | fitted |"
        in tables["Published speed-ups, V100 to A100"]
    )
    document = full.to_json()
    assert document["scaling"] == {"all": document["scaling"]["all"]}
    assert document["speed_ups"][0]["error"] == pytest.approx(-0.25)


def test_rows_tell_noise_and_signed_errors():
    noise = {"iteration": -0.121, "forward": -0.36, "backward": 0.104}
    text = row_table([row(label="noisy", noise=noise, mode="train"), row("P4", label="unknown")])
    assert "| T4 | tiny | train | 32 | 2 | noisy | -12.1 (-36.0, +10.4) | +21.5 | -10.9 |" in text
    assert "| P4 | tiny | inf | 32 | 2 | unknown | - | +21.5 | -10.9 |" in text


def test_rows_of_several_seeds_are_one_line():
    text = row_table([row(predicted=1234.5678 * 1.1), row(predicted=1234.5678 * 1.3)])
    assert text.count("| T4 |") == 1
    assert "| +20.0 |" in text


def test_kinds_by_gpu():
    errors = [kernel_errors(), kernel_errors(gpu="P4"), kernel_errors("all"), kernel_errors("all", "P4"),
              kernel_errors("conv", "P4", bias=0.2)]  # fmt: skip
    lines = kernel_table(errors).splitlines()
    assert lines[2:] == [
        "| kind | P4 | T4 |",
        "|---|---|---|",
        "| add | 4.0 / 5 / 10; -3; 90% | 4.0 / 5 / 10; -3; 90% |",
        "| conv | 4.0 / 5 / 10; +20; 90% | - |",
        "| all | 4.0 / 5 / 10; -3; 90% | 4.0 / 5 / 10; -3; 90% |",
        "| calls | 7 | 7 |",
    ]


def test_left_out_gpus_before_and_after_calibration():
    rows = [row(predicted=1234.5678 * 1.1)]
    summary = summarise(rows)
    kernels = [{"kind": "all", "split": "test", "median": 0.1, "mean": 0.12, "p90": 0.3},
               {"kind": "conv", "split": "train", "median": 0.2, "mean": 0.25, "p90": 0.5}]  # fmt: skip
    states = {"unseen": {"rows": [], "summary": {}, "kernels": []},
              "calibrated": {"rows": rows, "summary": summary, "kernels": kernels}}  # fmt: skip
    text = left_out_table({"T4": states})
    assert "| T4 | unseen | - | - | - | - | - |" in text
    assert (
        "| T4 | calibrated | 1 | 10.0 / 10.0 / 10 / 10 | 100% | 10.0 / 12.0 / 30.0 | 20.0 / 25.0 / 50.0 |"
        in text
    )
    assert "| all | unseen | 0 | - | - | - | - |" in text
    assert "| all | calibrated | 1 | 10.0 / 10.0 / 10 / 10 | 100% | - | 20.0 |" in text


def test_the_report_names_command_date_and_hashes_and_no_measured_time(tmp_path):
    write_report(results(), tmp_path / "docs")
    page = (tmp_path / "docs" / "report.md").read_text()
    for words in ("python -m benchmarks.accuracy", "2026-01-02", "ab" * 32, "NeuSight", "MIT"):
        assert words in page
    for image in re.findall(r"!\[.*?\]\((.*?)\)", page):
        assert (tmp_path / "docs" / image).is_file()
    for path in (tmp_path / "docs").iterdir():
        assert "1234.5" not in path.read_text(), path
        assert "1100.4" not in path.read_text(), path


def card_of(**changes) -> list[str]:
    """Labels of the errors on the model card."""
    card = model_card(results(**changes), catalog_path(CARD).parent)
    errors = card.partition("## Errors")[2].partition("## Calls")[0]
    return [row.split(" | ")[0].strip("| ") for row in errors.strip().splitlines()[2:]]


def test_the_card_says_which_knowledge_was_evaluated():
    summary = summarise([row()])
    assert card_of() == ["as shipped, all", "as shipped, clean"]
    two = card_of(evaluated="trained on five GPUs", shipped={"summary": summary})
    assert two == [
        "trained on five GPUs, all", "trained on five GPUs, clean", "as shipped, all", "as shipped, clean"
    ]  # fmt: skip


def test_the_documented_card_names_its_fold(tmp_path):
    (tmp_path / CARD).write_text('{"fold": "five"}')
    label = described({"seed-0": tmp_path})
    assert label == "trained on training-split kernels of five GPUs"
    page = (Path(__file__).parents[3] / "research" / "docs" / "accuracy" / "model-card.md").read_text()
    assert f"| {label}, all |" in page


def test_published_results_have_our_errors_and_no_measured_time(tmp_path):
    rows = [row(), row("P4", 900.0, "unknown")]
    evaluated = {"rows": rows, "by_knowledge": {}, "summary": summarise(rows)}
    states = {"unseen": evaluated | {"kernels": []}}
    write_report(results(shipped=evaluated, left_out={"T4": states}), tmp_path)
    document = json.loads((tmp_path / "results.json").read_text())
    first = document["rows"][0]
    assert (first["gpu"], first["label"], first["knowledge"], first["covered"]) == ("T4", "clean", "s1", True)
    assert first["error"] == pytest.approx(1500 / float(MEASURED_MS) - 1, rel=1e-4)
    assert document["shipped_rows"] == document["left_out"]["T4"]["unseen"]["rows"] == document["rows"]
    assert document["evaluated"] == "as shipped"


def test_knowledge_is_described_by_its_card_or_by_its_name(tmp_path):
    for name, text in {
        "a": '{"fold": "without:T4"}',
        "b": '{"fold": "six"}',
        "c": "[]",
        "d": "no JSON",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / CARD).write_text(text)

    def words(*names: str) -> str:
        return described({name: tmp_path / name for name in names})

    assert words("a") == "trained on training-split kernels without the T4"
    assert words("a", "b") == f"{words('a')} and trained on fold 'six'"
    assert [words(name) for name in "cde"] == ["knowledge 'c'", "knowledge 'd'", "knowledge 'e'"]


def test_equal_results_draw_equal_charts(tmp_path):
    end_to_end = results().end_to_end
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_charts(end_to_end["rows"], end_to_end["summary"], tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
        assert b"<dc:date>" not in path.read_bytes()
        assert path.read_text().startswith("<?xml")


def test_quantiles_of_a_calibrated_prediction_lie_on_the_diagonal():
    sigma = math.log(1.3) / Z90
    # p10, p50 and p90 of a prediction of 100, with as many measurements between them as there should be.
    measured = [100 * math.exp(sigma * z) for z in (-2, -0.8, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.8, 2)]
    rows = [row(predicted=100.0) | {"measured_ms": str(value)} for value in measured]
    assert below(rows, [0.1, 0.5, 0.9]) == pytest.approx([0.1, 0.5, 0.9])


@given(st.lists(st.floats(1, 1e4), min_size=1, max_size=20))
def test_ever_more_lies_below_higher_quantiles(measured):
    rows = [row(predicted=100.0) | {"measured_ms": str(value)} for value in measured]
    parts = below(rows, [0.1, 0.3, 0.5, 0.7, 0.9])
    assert parts == sorted(parts)
    assert all(0 <= part <= 1 for part in parts)


def test_a_prediction_without_spread_is_above_or_below():
    certain = row(predicted=100.0) | {"p10_ms": 100.0, "p90_ms": 100.0}
    rows = [certain | {"measured_ms": text} for text in ("90", "100", "110")]
    assert below(rows, [0.4, 0.5, 0.9]) == pytest.approx([1 / 3, 2 / 3, 2 / 3])


@given(st.floats(1e-3, 1e6))
def test_charts_show_two_digits(value):
    assert two_digits(value) == pytest.approx(value, rel=0.051)


def test_published_figures_are_json():
    pair = SpeedUp(name="ResNet", precision="AMP", origin="V100", destination="A100", published=2.0,
                   predicted=1.5, fitted=True)  # fmt: skip
    scores = [Score(case=case, published=10.0, low=8.0, predicted=11.0, high=14.0) for case in CASES]
    document = json.loads(json.dumps(results(throughput=scores, speed_ups=[pair]).to_json()))
    assert [each["case"]["name"] for each in document["throughput"]] == [case.name for case in CASES]
    assert document["throughput"][0]["error"] == pytest.approx(0.1)
    assert document["speed_ups"][0]["error"] == pytest.approx(-0.25)
