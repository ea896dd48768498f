"""A team's report as a document: what it shows, what it leaves out, and figures that add up."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.config.settings import ReportSettings
from advisor.core.values import Market, RunStatus
from advisor.report.document import Chart, Document, Table
from advisor.report.printing import Format, text_of
from advisor.report.review import first_document, review_document
from advisor.report.review_tables import command_of, heading, in_cents
from advisor.report.writers.mail import message_of
from advisor.review.budgets import Budget, Owner, Period, Scope
from advisor.review.savings import recurring_jobs, savings_of
from advisor.review.team_review import Records, TeamReview, Violation, review
from advisor.spend.charges import ChargeCategory
from advisor.store.ledger import Run
from tests.team import (
    WEEK,
    at,
    make_alternative,
    make_bill,
    make_charge,
    make_entry,
    make_market,
    make_point,
    make_rent,
    make_run,
)
from tests.unit.report.printed import json_of, on_screen

ENTRY = make_entry(
    at=WEEK.since,
    alternatives=(make_alternative("L4", 2.0),),
    command="advisor recommend train.py --epochs 3 -- --lr 1",
)
RUNS = (
    *(make_run(day, recommendation_id="entry") for day in range(4)),
    make_run(5, usd=2.0, status=RunStatus.FAILED, project="bert", market=Market.SPOT),
)


def whole(*runs: Run, scope: Scope = Scope(), **changes: Any) -> TeamReview:  # noqa: B008
    runs = runs or RUNS
    facts = {
        "period": WEEK,
        "scope": scope,
        "bills": (make_bill(make_charge(usd="60")),),
        "budgets": (),
        "violations": (Violation(rule="limits.usd_per_job: 5 (team.yaml:4)", run=runs[0]),),
        "jobs": recurring_jobs(runs, {"entry": ENTRY}),
        "market": make_market(make_rent("L4", 2.0)),
        "is_own": lambda _: False,
    }
    records = Records(
        runs=runs,
        recommendations=(ENTRY,),
        advised={"entry": ENTRY},
        prices={"A10G": (make_point(0, 1.0), make_point(3, 1.5))},
    )
    return review(records, **(facts | changes))


def captions(document: Document) -> list[str]:
    assert document.page is not None
    return [block.caption for block in document.page() if isinstance(block, Table)]


def test_all_that_is_known_has_a_table_and_what_has_nothing_to_show_is_left_out():
    assert captions(review_document(whole())) == [
        "In short", "What to do", "The month and its budgets", "Where money leaks",
        "Rules that runs did not keep", "Who spent it: projects", "What a unit costs", "Spending by week",
        "Runs by GPU", "Runs by market", "Spending by provider",
        "Billed by clouds, and what runs explain of it", "Predicted and actual",
        "Prices of what the team uses, USD per hour", "Not known",
    ]  # fmt: skip
    bare = whole(make_run(market=None, provider="local"), bills=(), violations=(), jobs=())
    shown = captions(review_document(bare))
    assert not {"What to do", "Where money leaks", "Predicted and actual"} & set(shown)
    assert "Spending by week" in shown


def test_what_was_spent_stands_beside_what_runs_cost_and_adds_up_to_the_headline():
    tagged = make_charge(usd="5", instance_type=None, service="Amazon S3", tags={"user": "eve"})
    runs = (make_run(0, user="ada"), make_run(1, provider="lambda", user="ada"), make_run(2, user="bob"))
    found = whole(*runs, bills=(make_bill(make_charge(usd="60", project=None), tagged),),
                  division=ReportSettings(user_tag="user"))  # fmt: skip
    assert found.showback.usd == 60 + 5 + 10 + 10
    shares = {share.name: share.spent_usd for share in found.spending.by_user}
    assert shares == {"": 50, "ada": 20, "bob": 10, "eve": 5}
    assert {share.name: share.spent_usd for share in found.spending.by_provider} == {"aws": 75, "lambda": 10}
    text = on_screen(review_document(found), 200)
    _, _, weeks = text.partition("Spending by week\n")
    assert re.search(r"2026-11-02 +3 +6.0 +\$30.00 +\$85.00 +100", weeks)


def test_a_limit_of_nothing_is_a_limit():
    none = Budget(rule="org.yaml:3", owner=Owner.EVERYBODY, most_usd=0.0)
    text = text_of(review_document(whole(budgets=(none,))), Format.HTML)
    assert "of $0.00" in text
    assert "no limit" not in text


def test_a_page_has_a_chart_of_weeks_the_month_predictions_and_prices():
    document = review_document(whole())
    assert document.page is not None
    charts = [block for block in document.page() if isinstance(block, Chart)]
    assert [chart.title for chart in charts] == [
        "November 2026, everybody",
        "Spending by week",
        "Predicted and actual time (bars: p50 to p90)",
        "Prices of A10G (bands: p10 to p90)",
    ]
    weeks = charts[1]
    assert weeks.bars == ("2026-11-02",)
    # What was billed beyond the runs stands on what they cost.
    assert [series.points for series in weeks.series] == [((0.0, 42.0),), ((0.0, 50.0),)]
    predicted = charts[2].series[0]
    assert predicted.details[0].x_range == (7200.0, 10_800.0)


def test_a_saving_is_told_with_the_command_that_shows_it():
    found = whole()
    (saving,) = found.savings
    assert command_of(saving) == (
        "advisor recommend train.py --epochs 3 --gpu L4:1 --provider aws --region us-west4 --market on-demand"
        " -- --lr 1"
    )
    text = on_screen(review_document(found), 200)
    assert text.index("November, everybody") < text.index("Could have been saved")
    assert text.index("Could have been saved") < text.index("Within the predicted p90")
    assert "daily job train.py of resnet is 60% cheaper on L4 in aws us-west4 (on-demand): $4.00" in text
    # A command is a line of its own, in one piece.
    assert f"\n    {command_of(saving)}\n" in on_screen(review_document(found), 60)


def test_without_a_recorded_command_the_price_is_shown():
    entry = make_entry(alternatives=(make_alternative("L4", 2.0),))
    jobs = recurring_jobs(RUNS, {"entry": entry})
    (saving,), _ = savings_of(jobs, make_market(make_rent("L4", 2.0)))
    assert command_of(saving).startswith("advisor prices --gpu L4:1 --provider aws --region us-west4")


def test_a_heading_names_whom_it_is_about():
    resnet = frozenset({"resnet"})
    assert heading(Scope(), WEEK) == "Report of everybody, 2026-11-02 00:00 to 2026-11-09 00:00 UTC"
    assert heading(Scope(projects=resnet), WEEK).startswith("Report of resnet, ")
    vision = Scope(team="vision", projects=frozenset({"resnet", "detr"}))
    assert heading(vision, WEEK).startswith("Report of vision, ")
    assert heading(Scope(team="vision", projects=resnet), WEEK).startswith("Report of resnet (vision), ")


def test_programs_read_the_same_figures():
    facts = json_of(review_document(whole()))
    assert facts["is_first"] is False
    assert facts["spending"]["usd"] == 42.0
    assert facts["billing"]["machines"][0]["idle_usd"] == 18.0
    assert facts["accuracy"]["time"] == {
        "num": 4, "num_within_p90": 4, "num_within_p50": 4, "median_ratio": 1.0, "expected_within_p90": 3.6,
    }  # fmt: skip
    assert facts["savings"][0]["finding"]["code"] == "saving"
    assert [one["facts"]["of"] for one in facts["leak_findings"]] == [
        "idle", "failed", "unadvised",
    ]  # fmt: skip
    assert len(facts["warnings"]) == len(facts["warning_findings"])


def test_programs_read_null_where_no_cost_is_known_and_the_sum_where_some_are():
    runs = (
        make_run(1, project="bert", usd=None),
        make_run(2, project="detr", usd=None),
        make_run(3, project="detr", usd=2.0),
    )
    spending = json_of(review_document(whole(*runs)))["spending"]
    assert {one["name"]: (one["usd"], one["num_unknown"]) for one in spending["by_project"]} == {
        "bert": (None, 1),
        "detr": (2.0, 1),
        "resnet": (0.0, 0),  # billed, and without a run
    }
    assert spending["usd"] == 2.0
    assert json_of(review_document(whole(*runs[:2])))["spending"]["usd"] is None


def test_one_thing_is_told_as_one_and_tax_once():
    text = on_screen(review_document(whole(*RUNS[:1])), 200)
    assert "1 run " in text
    assert "1 recommendation, at p50" in text
    assert "1 charge, before tax" in text
    tax = make_charge(usd="0.81", category=ChargeCategory.TAX)
    # "before tax" of what was billed, and what it is in what was not included
    assert on_screen(review_document(whole(bills=(make_bill(tax, make_charge()),))), 200).count("tax") == 2


def test_a_cost_that_nobody_knows_makes_a_sum_a_least():
    text = on_screen(review_document(whole(*RUNS, make_run(6, usd=None))), 200)
    assert "at least $42.00" in text
    assert "1 of unknown cost" in text
    assert "Cost unknown" in text


def test_a_cost_that_nobody_knows_at_all_is_no_sum_of_nothing():
    lost = make_run(usd=None, status=RunStatus.FAILED)
    text = on_screen(review_document(whole(lost, bills=(), violations=(), jobs=())), 200)
    assert re.search(r"Spent +unknown +1 run, 1 of unknown cost", text)
    assert "1 run failed and cost an unknown amount" in text
    assert re.search(r"A10G +1 +2\.0 +- +- +1", text)
    assert re.search(r"November, everybody +at least \$0\.00", text)


def test_two_reports_of_the_same_records_are_one_answer():
    def identity(*runs: Run, days: float) -> str:
        period = Period(since=at(2 + days), until=at(6 + days))
        document = review_document(whole(*runs, period=period))
        return message_of(document, document.title).sha256

    run, other = make_run(4), make_run(5)
    assert identity(run, days=0.0) == identity(run, days=0.01) != identity(run, other, days=0.01)


@pytest.mark.parametrize("width", [70, 80, 120, 200])
def test_tables_fit_a_terminal_without_breaking_words(width):
    budgets = (Budget(rule="policies/organisation.yaml:12", owner=Owner.EVERYBODY, most_usd=5000.0),)
    old = tuple(make_run(-day, usd=3.0) for day in range(1, 60))
    text = on_screen(review_document(whole(*old, *RUNS, budgets=budgets)), width)
    lines = [line for line in text.splitlines() if not line.startswith("    advisor recommend")]
    assert max(map(len, lines)) <= width
    for word in ("everybody", "$5,000.00", "Forecast", "A10G", "us-east-1", "g5.xlarge"):
        assert word in text, word
    assert re.search(r"\$[\d,]+\.\d\d +\d+\.\d%", text), "the forecast's p90, whole"


def test_each_format_has_its_text_and_a_mail_its_figure_in_the_subject():
    document = review_document(whole())
    assert text_of(document, Format.MARKDOWN).startswith("### Report of everybody, 2026-11-02")
    assert text_of(document, Format.CSV).count("\n") == len(RUNS)
    page = text_of(review_document(whole(*RUNS, make_run(script="<script>alert(1)</script>"))), Format.HTML)
    assert "<h1>Report of everybody" in page
    assert "<script>alert" not in page
    document = review_document(whole(bills=(), organisation="Acme"))
    assert document.subject == "Acme: $42.00 spent, 02 Nov to 09 Nov 2026"
    unknown = review_document(whole(make_run(usd=None), bills=(), jobs=()))
    assert unknown.subject.startswith("everybody: unknown")


def test_the_first_report_says_what_to_do():
    document = first_document()
    assert "advisor run -- python train.py" in on_screen(document, 120)
    assert json.loads(text_of(document, Format.JSON))["is_first"] is True


@given(st.lists(st.decimals(-10_000, 1_000_000, places=6), max_size=30))
def test_cents_of_parts_add_up_to_the_cents_of_the_whole(parts):
    cents = [round(usd * 100) for usd in in_cents(parts)]
    assert abs(sum(cents) - float(sum(parts)) * 100) <= 0.5 + 1e-4
    assert all(abs(one - float(part) * 100) < 1.001 for one, part in zip(cents, parts, strict=True))
