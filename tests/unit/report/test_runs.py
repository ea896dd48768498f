"""Runs as people and programs read them."""

import pytest

from advisor.core.values import Interval, RunStatus
from advisor.report.runs import gpus_of, recorded_document, runs_document
from tests.unit.report.printed import json_of, on_screen, rows_of
from tests.unit.store.test_ledger import make_run

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
