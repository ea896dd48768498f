"""The answer in short: at the top of the text, and in JSON with their facts."""

from dataclasses import replace

import numpy as np
import pytest

from advisor.core.changes import parse_split
from advisor.core.findings import Finding
from advisor.core.findings.about_answers import Machine, SummaryCostAndTime, SummaryWork
from advisor.core.findings.about_estimates import DivideLayers, NoGain, ShardModel
from advisor.core.findings.about_traces import EvaluationSeen
from advisor.core.values import WHOLE, ChangeGain, Interval, Market, Quantiles, Recommendation, Tier
from advisor.report.document import Document, Tone
from advisor.report.printing import Format, text_of
from advisor.report.recommendation import gain_json, gains_table, recommendation_document
from advisor.report.words import sentence, sentences
from recommender.ranking.what_ifs import WhatIfGain
from tests.builders import HOUR_S, ONE_GPU, make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.findings import sample
from tests.recommendations import make_option, many_options
from tests.recommending import make_script, recommend
from tests.unit.report.printed import json_of, on_screen


def answer(**limits: float) -> Recommendation:
    """1 h for 10 USD on a cluster after 1 h of waiting; 1.5 h for 12 USD rented, 30 min for 30 USD."""
    wait_s = Quantiles(p50=HOUR_S, p90=HOUR_S)
    plans = [
        make_plan("LAB", 10.0, tier=Tier.CLUSTER, wait_s=wait_s),
        make_plan("SLOW", 8.0, market=Market.SPOT),
        make_plan("FAST", 60.0),
    ]
    seconds = {"LAB": 3.6, "SLOW": 5.4, "FAST": 1.8}
    return recommend(
        make_trace(),
        {(name, ONE_GPU): make_estimate(name, s) for name, s in seconds.items()},
        {name: make_gpu(name) for name in seconds},
        plans,
        make_job(iterations=1000, **limits),
        rng=np.random.default_rng(0),
    )


def test_sentences_say_what_to_take_what_it_takes_and_what_may_change():
    taken, figures, doubt = sentences(answer().summary)
    assert taken == "Use 1 x LAB (cluster lab)"
    assert figures == "Median $10.00 (90 %: under $10.00) and 2 h (under 2 h): 1,000 steps in 1 h"
    assert doubt.startswith("What would change this advice: ")
    assert doubt.endswith("(aws fast.xlarge us-east-1 on-demand): 30 min for $30.00")


@pytest.mark.parametrize(
    ("work", "saves", "words"),
    [
        (
            ["checkpoints"],
            False,
            "First: add checkpoints (the script writes none): $50.00 and 1 h (--explain 1)",
        ),
        (["checkpoints"], True, "add checkpoints (it saves some, but never resumes): "),
        (["ddp", "learning-rate", "nodes"], False, "First: add DDP: $"),
        (
            ["fsdp", "checkpoints", "software"],
            False,
            "add FSDP, checkpoints and other packages (the script writes",
        ),
        (["learning-rate"], False, "First: add a new learning rate: $"),
    ],
)
def test_each_kind_of_work_is_named(work, saves, words):
    facts = {**sample(SummaryWork).facts, "work": work, "saves": saves}
    assert words in sentence(SummaryWork(**facts))


def test_steps_that_start_again_are_said_to():
    for restarts in (False, True):
        facts = {**sample(SummaryCostAndTime).facts, "restarts": restarts}
        text = sentence(SummaryCostAndTime(**facts))
        assert ("start again from zero" in text) is restarts


def test_a_rented_machine_has_the_date_of_its_price():
    taken, *_ = sentences(answer(deadline_s=HOUR_S).summary)
    priced_on = answer().options[-1].plan.offer.retrieved_at.date()
    assert taken == f"Rent 1 x FAST (aws fast.xlarge us-east-1 on-demand), priced {priced_on}"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_they_come_first_and_no_line_of_the_whole_answer_is_wider_than_the_terminal(width):
    text = on_screen(recommendation_document(answer(), top=15), width)
    head, _, table = text.partition("Status" if width >= 80 else "#")
    assert " ".join(head.split()).startswith("Use 1 x LAB (cluster lab). Median $10.00 (90 %: under $10.00)")
    assert "recommended" in table
    assert max(map(len, text.splitlines())) <= width


def test_a_program_reads_sentences_and_findings():
    recommendation = answer()
    document = json_of(recommendation_document(recommendation, top=15))
    assert document["summary"] == sentences(recommendation.summary)
    codes = [item["code"] for item in document["summary_findings"]]
    assert codes == ["summary-choice", "summary-cost-and-time", "summary-doubt"]
    tip = document["summary_findings"][2]["facts"]["tipped_by"]
    assert tip["code"].startswith("tipping")
    assert tip["facts"]["instead"]["facts"]["plan_id"] in {o["id"] for o in document["options"]}


def test_an_unknown_cost_is_said():
    recommendation = answer()
    option = recommendation.options[0]
    free = [replace(option.plan, usd_per_h=None)]
    alone = recommend(
        make_trace(), {("LAB", ONE_GPU): option.estimate}, {"LAB": make_gpu("LAB")}, free,
        make_job(iterations=1000), rng=np.random.default_rng(0),
    )  # fmt: skip
    assert sentences(alone.summary)[1].startswith("Unknown cost (counted as $0.00), median ")


@pytest.mark.parametrize("where", ["rollouts", "left-out", "between"])
def test_what_a_job_does_besides_its_steps_is_missing_from_the_headline(where):
    recommendation = answer()
    more = make_trace(warnings=(sample(EvaluationSeen, where=where),))
    estimates = {("LAB", ONE_GPU): recommendation.options[0].estimate}
    plans = [option.plan for option in recommendation.options[:1]]
    said = {}
    for trace in (make_trace(), more):
        given = recommend(
            trace, estimates, {"LAB": make_gpu("LAB")}, plans, make_job(iterations=1000),
            rng=np.random.default_rng(0),
        )  # fmt: skip
        said[trace.warnings] = sentences(given.summary)[1]
    whole, part = said.values()
    assert part == whole + ", without what runs between steps (see the warning)"


def test_nothing_feasible_has_no_summary():
    recommendation = answer(budget_usd=1.0)
    assert recommendation.summary == ()
    assert json_of(recommendation_document(recommendation, top=15))["summary"] == []


def test_several_nodes_of_a_machine_are_counted():
    rented = sample(Machine)
    two = Machine(**{**rented.facts, "num_gpus": 16, "num_nodes": 2})
    assert sentence(two) == "2 x 8 x L4 (aws 2 x g6.xlarge us-east-1 spot)"
    own = {"tier": "cluster", "provider": "lab", "instance_type": None}
    assert sentence(Machine(**{**two.facts, **own})) == "2 x 8 x L4 (cluster lab)"


def document_of(name: str, *changes: type[Finding]) -> Document:
    # Plans of a divided model are those that ask for changes here.
    estimate = make_estimate("H100", split=parse_split(name.split("+")) if changes else WHOLE)
    must = tuple(map(sample, changes))
    option = make_option("H100", 1, 20, what_if=name, estimate=estimate, script_changes=must)
    nothing = replace(many_options(3), recommended=None, frontier=())
    what_if = WhatIfGain(change=name, same=None, instead=option)
    return recommendation_document(nothing, top=5, what_if=what_if)


def printed(name: str, *changes: type[Finding]) -> str:
    return " ".join(on_screen(document_of(name, *changes), 80).split())


def test_it_names_machine_time_price_and_how_to_rank_such_plans():
    text = printed("zero-3", ShardModel)
    assert "It would fit if the script divided its model (zero-3): " in text
    assert "1 h for $20.00. For that, wrap blocks and model in FSDP" in text
    assert text.endswith("All such plans: --suppose zero-3.")


def test_a_split_of_two_kinds_is_asked_for_twice():
    text = printed("tensor-8+pipeline-2", DivideLayers)
    assert "--suppose tensor-8 --suppose pipeline-2." in text
    assert "divide each layer among 8 GPUs of a node and divide the layers into 2 stages" in text


def test_a_program_reads_the_plan():
    divided = json_of(document_of("zero-3", ShardModel))["divided"]
    assert (divided["what_if"], divided["gpu"]) == ("zero-3", "H100")
    # A change of one line is no plan of its own.
    assert json_of(document_of("bf16"))["divided"] is None


OPTION = make_option("A", 5.0, 10.0)
SURE = ChangeGain(
    change="bf16",
    option=OPTION,
    saved_s=3600.0,
    saved_usd=2.5,
    saved_share=Interval(p10=0.2, p50=0.3, p90=0.4),
    p_faster=0.99,
)
UNSURE = ChangeGain(
    change="fused",
    option=OPTION,
    instead=make_option("B", 4.0, 8.0),
    saved_s=-30.0,
    saved_share=Interval(p10=-0.1, p50=0.0, p90=0.1),
    p_faster=0.5,
)
NONE = ChangeGain(change="flash", why_not=NoGain(why="nothing", lacking="attention"))


def recommendation(*gains: ChangeGain) -> Recommendation:
    return Recommendation(
        script=make_script(),
        job=make_job(),
        options=(OPTION,),
        frontier=("A",),
        recommended="A",
        rule=None,
        warnings=(),
        gains=gains,
    )


def test_a_row_says_what_changes_and_how_surely():
    table = gains_table(recommendation(SURE, UNSURE, NONE))
    assert [row.tone for row in table.rows] == [Tone.GOOD, Tone.PLAIN]
    texts = [[getattr(cell, "text", cell) for cell in row.cells] for row in table.rows]
    assert texts == [
        ["bf16", "1 h less", "$2.50 less", "30 % less (20 .. 40)", "99%"],
        ["fused", "30 s more", None, "0 % less (-10 .. 10)", "50%"],
    ]


@pytest.mark.parametrize("columns", ["80", "100"])
def test_what_has_no_figures_is_told_in_whole_lines(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    unlike = replace(NONE, change="packed")
    slower = replace(UNSURE, change="tf32", saved_share=Interval(p10=-0.3, p50=-0.2, p90=-0.1))
    asked = recommendation_document(recommendation(SURE, UNSURE, NONE, unlike, slower), top=None)
    text = text_of(asked, Format.TABLE)
    assert "20 % more (10 .. 30)" in text
    assert "\n  fused: aws " in text
    assert "  flash, packed: the script has no attention\n" in f"{text}\n"


def test_facts_are_null_where_a_change_brings_nothing():
    facts = gain_json(NONE)
    assert [name for name, value in facts.items() if value is not None] == [
        "change",
        "why_not",
        "why_not_finding",
    ]
    assert gain_json(SURE)["option"] == OPTION.plan.id
    assert gain_json(SURE)["saved_share"] == {"p10": 0.2, "p50": 0.3, "p90": 0.4}


def test_the_table_stands_below_an_answer_that_was_asked_for_it():
    asked = recommendation_document(recommendation(SURE), top=None)
    assert "30 % less (20 .. 40)" in text_of(asked, Format.TABLE)
    assert "30 % less (20 .. 40)" in text_of(asked, Format.HTML)
    plain = recommendation_document(recommendation(), top=None)
    assert "Odds" not in text_of(plain, Format.TABLE)
