"""Runs as people and programs read them."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from advisor.core.values import CostKind, Interval, Market, RunStatus
from advisor.formats.recording_files import Recording, Skipped
from advisor.predict.calibrating import Calibration, FittedConstant
from advisor.report.catalog_tables import (
    by_family,
    calibration_document,
    reasons,
    recording_document,
    skipped_lines,
)
from advisor.report.printing import Format, text_of
from advisor.report.runs import gpus_of, receipt_document, recorded_document, runs_document
from advisor.service.receipts import Receipt
from advisor.store.ledger import Run
from tests.findings import texts
from tests.recordings import make_header, make_measurement
from tests.unit.report.printed import json_of, on_screen, rows_of
from tests.unit.store.test_ledger import make_entry, make_run

RUNS = (make_run(0, id="a", note="first"), make_run(24, id="b", market=None, provider="lab", project=""))


def test_a_row_a_run_and_their_sum():
    lines = on_screen(runs_document(RUNS), 160).splitlines()
    (first,) = [line for line in lines if "2026-11-01 12:00" in line]
    for text in ("vision", "train.py", "aws on-demand", "8 x A100-SXM-40GB", "1 h", "$21.96", "first"):
        assert text in first
    (second,) = [line for line in lines if "2026-11-02 12:00" in line]
    assert " lab " in second
    assert lines[-1] == "2 runs, $43.92"


def test_an_unknown_cost_or_end_is_no_zero():
    unknown = make_run(48, id="c", cost_usd=None, cost_kind=None, duration_s=None, status=RunStatus.LOST)
    document = runs_document((*RUNS, unknown))
    (row,) = [line for line in on_screen(document, 160).splitlines() if "2026-11-03" in line]
    assert row.count("unknown") == 2
    assert " lost " in row
    assert on_screen(document, 160).splitlines()[-1] == "3 runs, $43.92 and the unknown cost of 1"
    facts = json_of(document)
    assert (facts["total_usd"], facts["num_unknown_costs"]) == (2 * 21.957642, 1)
    assert (facts["runs"][2]["cost_usd"], facts["runs"][2]["duration_s"]) == (None, None)


def test_a_run_that_did_not_finish_says_so_in_a_narrow_terminal():
    timed = make_run(1, status=RunStatus.INTERRUPTED, step_s=Interval(p10=0.1, p50=0.178, p90=0.2))
    out = on_screen(runs_document((RUNS[0], timed)), 80)
    assert (out.count("interrupted"), out.count("finished")) == (1, 0)
    (row,) = [line for line in on_screen(runs_document((timed,)), 160).splitlines() if "13:00" in line]
    assert "178 ms" in row


def test_a_table_holds_in_eighty_columns_with_dates_and_prices_whole():
    lines = on_screen(runs_document(RUNS), 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("$21.96" in line and " 12:00 " in line for line in lines) == 2
    for text in ("8 x A100-SXM-40GB, aws on-demand", "vision", "train.py", "first"):
        assert any(text in line for line in lines), text


def test_a_narrow_table_breaks_no_word_and_says_a_common_project_once():
    script, note = ("train_resnet50_imagenet_large.py", "killed once, resumed from a checkpoint " * 3)
    runs = [make_run(hour, id=str(hour), script=script, note=note) for hour in range(3)]
    out = on_screen(runs_document(runs), 80)
    assert max(map(len, out.splitlines())) <= 80
    assert (out.count(script), out.count("resumed"), out.count("checkpoint")) == (3, 9, 9)
    assert out.count("vision") == 1
    assert "project: vision\n3 runs" in out
    out = on_screen(runs_document([*runs, make_run(9, id="9", project="speech")]), 80)
    assert (out.count("vision"), out.count("speech"), out.count("project:")) == (3, 1, 0)


def test_a_program_reads_every_field():
    document = json_of(runs_document(RUNS))
    assert document["total_usd"] == 2 * 21.957642
    assert document["num_unknown_costs"] == 0
    assert document["runs"][0] == {
        "id": "a",
        "recommendation_id": None,
        "project": "vision",
        "script": "train.py",
        "provider": "aws",
        "gpu": "A100-SXM-40GB",
        "num_gpus": 8,
        "market": "on-demand",
        "started_at": "2026-11-01T12:00:00+00:00",
        "duration_s": 3600.5,
        "cost_usd": 21.957642,
        "note": "first",
        "instance_type": None,
        "region": None,
        "zone": None,
        "user": "",
        "status": "finished",
        "exit_code": None,
        "num_steps": None,
        "step_s": None,
        "cost_kind": "stated",
        "usd_per_h": None,
        "price_retrieved_at": None,
        "num_nodes": None,
        "gpu_busy_share": None,
        "gpu_mean_w": None,
        "gpu_mean_clock_hz": None,
        "gpu_peak_bytes": None,
    }
    assert document["runs"][1]["market"] is None


@pytest.mark.parametrize(("num_nodes", "words"), [(None, "16 x A100"), (1, "16 x A100"), (2, "2 x 8 x A100")])
def test_machines_stand_before_their_gpus(num_nodes, words):
    assert gpus_of(make_run(gpu="A100", num_gpus=16, num_nodes=num_nodes)) == words


def test_csv_has_a_line_a_run_and_no_run_is_one_line():
    assert [row["Where"] for row in rows_of(runs_document(RUNS))] == ["aws on-demand", "lab"]
    for width in (30, 80):
        assert on_screen(runs_document(()), width) == "0 runs, $0.00"


def test_what_was_entered_is_told_with_its_id():
    again = "Nothing changed: it was recorded before as a."
    for is_new, words in ((True, "Recorded as a."), (False, again)):
        assert on_screen(recorded_document(RUNS[0], is_new=is_new), 80) == words
    document = json_of(recorded_document(RUNS[0], is_new=False))
    assert (document["run"]["id"], document["is_new"]) == ("a", False)


PREDICTED = Interval(p10=0.160, p50=0.172, p90=0.205)
RUN = Run(
    id="9018", project="vision", script="train.py", provider="gcp", gpu="L4", num_gpus=1, market=Market.SPOT,
    started_at=datetime(2026, 11, 22, tzinfo=UTC), duration_s=8040.0, cost_usd=0.83,
    instance_type="g2-standard-8", region="us-west4", zone="us-west4-a",
    status=RunStatus.FINISHED, exit_code=0, num_steps=45_000,
    step_s=Interval(p10=0.175, p50=0.178, p90=0.191), cost_kind=CostKind.ESTIMATED, usd_per_h=0.3714,
    price_retrieved_at=datetime(2026, 11, 21, tzinfo=UTC),
)  # fmt: skip
ADVISED = make_entry(gpu="L4", num_gpus=1, iteration_s=PREDICTED)


def lines(advised: Any = ADVISED, *, is_recorded: bool = True, **changes: Any) -> list[str]:
    receipt = Receipt(run=replace(RUN, **changes), advised=advised, is_recorded=is_recorded, exit_code=0)
    return on_screen(receipt_document(receipt), 160).splitlines()


def test_all_of_it():
    assert lines() == [
        "train.py finished, exit code 0",
        "  time       2 h 14 min",
        "  machine    1 x L4, gcp spot, g2-standard-8, us-west4-a",
        "  cost       $0.83, estimated: $0.3714/h x time, price of 2026-11-21",
        "  steps      45,000 of 178 ms each (p10 .. p90: 175 ms .. 191 ms)",
        "  predicted  160 ms .. 172 ms .. 205 ms a step: it held, 3% slower",
        "  recorded   as 9018",
    ]


@pytest.mark.parametrize(
    ("step_s", "words"),
    [
        (0.1721, "it held, as predicted"),
        (0.206, "it did not hold, 20% slower"),
        (0.205, "it held, 19% slower"),
        (0.150, "it did not hold, 13% faster"),
    ],
)
def test_a_prediction_holds_between_its_ends(step_s, words):
    shown = lines(step_s=Interval(p10=step_s, p50=step_s, p90=step_s))
    assert shown[5].endswith(f"a step: {words}")
    assert "p10 .. p90" not in shown[4]


def test_what_nobody_knows_is_unknown():
    shown = lines(
        None, is_recorded=False, duration_s=None, cost_usd=None, cost_kind=None, num_steps=None, step_s=None,
        gpu="", num_gpus=0, provider="", market=None, instance_type=None, region=None, zone=None,
        status=RunStatus.LOST,
    )  # fmt: skip
    assert shown == [
        "train.py was lost, exit code 0",
        "  time       unknown",
        "  machine    no GPU, of an unknown provider",
        "  cost       unknown: the machine's price is not known (give --plan ID, --usd-per-hour or --cost)",
        "  steps      none seen: those of PyTorch optimizers in Python are counted",
    ]


def test_a_cost_that_somebody_states_is_theirs():
    assert lines(cost_kind=CostKind.STATED)[3] == "  cost       $0.83, stated"


def test_other_gpus_than_predicted_say_nothing_of_the_prediction():
    assert lines(gpu="T4")[5] == "  predicted  for 1 x L4 a step, so nothing for this machine"
    assert lines(num_gpus=2)[5].startswith("  predicted  for 1 x L4")
    assert lines(num_steps=1, step_s=None)[5].endswith("a step; none was timed")


def test_names_of_others_move_no_cursor():
    assert "\x1b" not in "".join(lines(script="\x1b[2Jtrain.py", instance_type="\x1b[31mx"))


RECORDING = Recording(
    header=make_header(),
    measurements=(
        make_measurement(time_s=2e-3),
        make_measurement("aten::bmm", time_s=1e-3),
        make_measurement("aten::_softmax", time_s=5e-6),
    ),
    skipped=(
        Skipped(case="a", reason="out of memory"),
        Skipped(case="b", reason="no such thing"),
        Skipped(case="c", reason="out of memory"),
    ),
    references_s=(1.0, 1.1),
)
CALIBRATION = Calibration(
    gpu="L4",
    source="2026-11-21, driver 580",
    constants=(
        FittedConstant(name="gemm_fraction.fp16", before=0.6, after=0.5123, num_kernels=3, spread=0.05),
    ),
    kernels={},
    warnings=texts("it was hot"),
)


def test_families_are_counted_largest_first():
    families = by_family(RECORDING)
    assert list(families) == ["gemm", "norm and softmax"]
    assert families["gemm"] == {
        "kernels": 2, "shortest_s": 1e-3, "longest_s": 2e-3, "median_spread": pytest.approx(0.01)
    }  # fmt: skip


def test_reasons_are_counted_most_frequent_first():
    assert reasons(RECORDING) == [("out of memory", 2), ("no such thing", 1)]
    assert skipped_lines(RECORDING) == ["2 left out: out of memory", "1 left out: no such thing"]


@pytest.mark.parametrize("output", [Format.TABLE, Format.CSV, Format.MARKDOWN])
def test_rows_of_a_recording_and_of_a_calibration(output):
    out = text_of(recording_document(RECORDING, Path("k.jsonl"), []), output)
    for text in ("Median spread", "gemm", "norm and softmax", "5.0 us", "1.0%"):
        assert text in out
    out = text_of(calibration_document(CALIBRATION, Path("L4.toml")), output)
    for text in ("Before", "gemm_fraction.fp16", "0.600", "0.512", "5.0%"):
        assert text in out
    assert ("L4: written to L4.toml" in out) == (output is Format.TABLE)


def test_a_recording_as_json():
    document = json_of(recording_document(RECORDING, Path("k.jsonl"), texts("hot")))
    assert {"schema_version", "families", "recording", "skipped", "warnings", "warning_findings"} == {
        *document
    }
    assert document["recording"]["path"] == "k.jsonl"
    assert document["recording"]["drift"] == pytest.approx(0.1)
    assert document["skipped"] == {"out of memory": 2, "no such thing": 1}
    assert document["warnings"] == ["hot"]
    assert [one["code"] for one in document["warning_findings"]] == ["text"]


def test_a_calibration_as_json():
    document = json_of(calibration_document(CALIBRATION, Path("L4.toml")))
    assert document["calibration"]["constants"][0]["after"] == 0.5123
    assert document["warnings"] == ["it was hot"]
    assert [one["facts"] for one in document["warning_findings"]] == [{"text": "it was hot"}]
    assert "warnings" not in document["calibration"]


def test_the_format_is_documented():
    page = (Path(__file__).parents[3] / "docs" / "methods" / "measuring.md").read_text()
    for field in make_header().__dataclass_fields__:
        assert f"`{field}`" in page, field
    for field in ("case", "op", "precision", "spread", "num_samples", "reason", "reference_s"):
        assert field in page
