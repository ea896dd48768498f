"""The answer in three sentences: at the top of the text, and in JSON with their facts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor.core.findings import Finding
from advisor.core.findings.about_answers import Machine, NothingTips, SummaryChoice, SummaryDoubt
from advisor.core.findings.about_options import Risk, RiskPreemption
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


def test_three_sentences_say_what_to_take_what_it_takes_and_what_may_change() -> None:
    taken, figures, doubt = sentences(answer().summary)
    assert taken == "Use 1 x LAB (cluster lab) for 1,000 steps of 3.6 s"
    assert figures == (
        "It costs about $10.00 (90 % chance of at most $10.00); it is done in about 2 h"
        " (90 % chance within 2 h)"
    )
    assert doubt.startswith("What could go wrong: the queue takes longer. What would change this advice: ")
    assert doubt.endswith("(aws fast.xlarge us-east-1 on-demand) would be recommended, 30 min for $30.00")


def test_what_must_be_changed_first_is_said() -> None:
    assert sentence(sample(SummaryChoice)) == (
        "Rent 1 x L4 (aws g6.xlarge us-east-1 spot) for 12,500 steps of 508 ms, once the script is"
        " changed for it (see below)"
    )


def test_a_deadline_changes_them() -> None:
    taken, *_ = sentences(answer(deadline_s=HOUR_S).summary)
    assert taken == "Rent 1 x FAST (aws fast.xlarge us-east-1 on-demand) for 1,000 steps of 1.8 s"


def test_they_come_first_and_keep_to_the_width() -> None:
    text = on_screen(recommendation_document(answer(), top=15), 80)
    head, _, table = text.partition("Status")
    assert head.startswith("Use 1 x LAB (cluster lab) for 1,000 steps of 3.6 s.\nIt costs about $10.00 (90 %")
    assert "recommended" in table
    assert max(map(len, text.splitlines())) <= 80


def test_a_program_reads_sentences_and_findings() -> None:
    recommendation = answer()
    document = json_of(recommendation_document(recommendation, top=15))
    assert document["summary"] == sentences(recommendation.summary)
    codes = [item["code"] for item in document["summary_findings"]]
    assert codes == ["summary-choice", "summary-cost-and-time", "summary-doubt"]
    tip = document["summary_findings"][2]["facts"]["tipped_by"]
    assert tip["code"].startswith("tipping")
    assert tip["facts"]["instead"]["facts"]["plan_id"] in {o["id"] for o in document["options"]}


def test_an_unknown_cost_is_said() -> None:
    recommendation = answer()
    option = recommendation.options[0]
    free = [replace(option.plan, usd_per_h=None)]
    alone = recommend(
        make_trace(), {("LAB", ONE_GPU): option.estimate}, {"LAB": make_gpu("LAB")}, free,
        make_job(iterations=1000), rng=np.random.default_rng(0),
    )  # fmt: skip
    assert sentences(alone.summary)[1].startswith("The cost is unknown and counted as $0.00; it is done")


@pytest.mark.parametrize("where", ["rollouts", "left-out", "between"])
def test_what_a_job_does_besides_its_steps_is_missing_from_the_headline(where: str) -> None:
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
    assert part == whole + ", not counting what else runs between steps (see the warning)"


def test_nothing_feasible_has_no_summary() -> None:
    recommendation = answer(budget_usd=1.0)
    assert recommendation.summary == ()
    assert json_of(recommendation_document(recommendation, top=15))["summary"] == []


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_of_the_whole_answer_is_wider_than_the_terminal(width: int) -> None:
    text = on_screen(recommendation_document(answer(), top=15), width)
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize(
    ("risk", "one", "two"),
    [
        (Risk(of="capacity"), "no machine is free", "fewer than 2 machines are free when you ask for them"),
        (
            sample(RiskPreemption),
            "the machine is taken away",
            "one of the 2 machines is taken away, which stops",
        ),
        (Risk(of="wait"), "the queue takes longer", "the queue takes longer"),
    ],
)
def test_what_could_go_wrong_with_several_nodes(risk: Finding, one: str, two: str) -> None:
    for num_nodes, words in ((1, one), (2, two)):
        doubt = SummaryDoubt(risk=risk, num_nodes=num_nodes, tipped_by=NothingTips())
        assert f"What could go wrong: {words}" in sentences([doubt])[0]


def test_several_nodes_of_a_machine_are_counted() -> None:
    rented = sample(Machine)
    two = Machine(**{**rented.facts, "num_gpus": 16, "num_nodes": 2})
    assert sentence(two) == "2 x 8 x L4 (aws 2 x g6.xlarge us-east-1 spot)"
    own = {"tier": "cluster", "provider": "lab", "instance_type": None}
    assert sentence(Machine(**{**two.facts, **own})) == "2 x 8 x L4 (cluster lab)"
