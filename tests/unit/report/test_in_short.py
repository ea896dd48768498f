"""The answer in short: at the top of the text, and in JSON with their facts."""

from dataclasses import replace

import numpy as np
import pytest

from advisor.core.findings.about_answers import Machine, SummaryCostAndTime, SummaryWork
from advisor.core.findings.about_traces import EvaluationSeen
from advisor.core.values import Market, Quantiles, Recommendation, Tier
from advisor.report.recommendation import recommendation_document
from advisor.report.words import sentence, sentences
from tests.builders import HOUR_S, ONE_GPU, make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.findings import sample
from tests.recommending import recommend
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
