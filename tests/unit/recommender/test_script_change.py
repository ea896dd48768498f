"""Two recommendations beside each other: the price of a change, what it rules out, where it moves the job."""

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from advisor.core.findings.about_answers import ChangeCosts, ChangeMoves, ChangeRulesOut
from advisor.core.findings.about_options import RemovedByMemory
from advisor.core.values import Recommendation
from advisor.report.words import sentences
from recommender.comparison import Measure, change_findings, script_change
from tests.builders import make_estimate, make_job, make_plan
from tests.recommendations import make_option, removed
from tests.recommending import make_script


def answer(*options, recommended="first"):
    chosen = next((o.plan.id for o in options if o.feasible), None) if recommended == "first" else recommended
    return Recommendation(
        script=make_script(),
        job=make_job(),
        options=options,
        frontier=(),
        recommended=chosen,
        rule=None,
        warnings=(),
    )


def with_memory(option, needed_bytes, fits):
    changed = make_estimate(
        option.plan.gpu, memory_bytes=needed_bytes, memory_limit_bytes=needed_bytes if fits else 1
    )
    return replace(option, estimate=changed)


def texts(change):
    return "\n".join(sentences(change_findings(change)))


def test_the_same_machine_is_compared():
    change = script_change(
        answer(make_option("A", 10, 100), make_option("B", 10, 50), recommended="A"),
        answer(make_option("A", 12, 123), make_option("B", 10, 20), recommended="B"),
    )
    assert (change.now.plan.id, change.measure) == ("A", Measure.COST)
    assert change.relative == pytest.approx(0.23)
    assert [type(one) for one in change_findings(change)] == [ChangeCosts, ChangeMoves]
    assert "+$23.00 (+23 %) per run" in texts(change)
    assert "$100.00 in 10 h -> $123.00 in 12 h" in texts(change)


def test_a_machine_that_no_longer_does_it_is_replaced_and_the_reason_is_named():
    too_large = removed(make_option("A", 12, 80), RemovedByMemory)
    change = script_change(
        answer(make_option("A", 10, 100), make_option("B", 10, 150), recommended="A"),
        answer(too_large, make_option("B", 10, 160), recommended="B"),
    )
    assert change.now.plan.id == "B"
    assert change.relative == pytest.approx(0.6)
    assert isinstance(next(change_findings(change)), ChangeRulesOut)
    assert "no longer does the job (does not fit: needs 20 GiB" in texts(change)


def test_nothing_does_it_any_more():
    change = script_change(
        answer(make_option("A", 1, 1)), answer(removed(make_option("A", 1, 1), RemovedByMemory))
    )
    assert (change.head, change.relative) == (None, None)
    assert "after the change no machine does the job; before," in texts(change)


def test_nothing_did_it_before():
    change = script_change(
        answer(removed(make_option("A", 1, 1), RemovedByMemory)), answer(make_option("A", 1, 1))
    )
    assert (change.base, change.same, change.relative) == (None, None, None)
    assert "before the change no machine did the job; now" in texts(change)


def test_nothing_before_and_nothing_after():
    none = answer(removed(make_option("A", 1, 1), RemovedByMemory))
    assert "no machine did the job before either" in texts(script_change(none, none))


def test_without_a_price_time_is_compared():
    own = make_plan("A", None)
    change = script_change(
        answer(make_option("A", 10, 0, plan=own)), answer(make_option("A", 15, 0, plan=own))
    )
    assert (change.measure, change.relative) == (Measure.TIME, pytest.approx(0.5))
    assert "+5 h 0 min (+50 %)" in texts(change) or "+5 h (+50 %)" in texts(change)
    assert "at an unknown cost" in texts(change)


def test_memory_says_which_gpus_it_rules_out_and_in():
    base = [make_option("A", 1, 1), make_option("B", 1, 2), removed(make_option("C", 1, 3), RemovedByMemory)]
    head = [make_option("A", 1, 1), removed(make_option("B", 1, 2), RemovedByMemory), make_option("C", 1, 3)]
    needs = zip(base, head, [(True, True), (True, False), (False, True)], strict=True)
    pairs = [(with_memory(b, 10 * 2**30, x), with_memory(h, 12 * 2**30, y)) for b, h, (x, y) in needs]
    change = script_change(answer(*(b for b, _ in pairs)), answer(*(h for _, h in pairs)))
    assert texts(change).splitlines()[1] == "memory of a GPU 10 GiB -> 12 GiB: no longer fits B; now fits C"


def test_machines_the_chosen_first_then_those_ruled_out_then_by_cost():
    head = [make_option(name, 1, usd) for name, usd in (("A", 9), ("B", 1), ("C", 3))]
    base = [head[0], head[1], removed(head[2], RemovedByMemory)]
    change = script_change(answer(*base, recommended="A"), answer(*head, recommended="A"))
    assert [machine.gpu for machine in change.machines] == ["A", "C", "B"]


def test_a_gpu_has_one_row_unless_it_is_chosen_twice():
    plans = {n: make_plan("A", num_gpus=n, id=f"A{n}") for n in (1, 2, 4, 8)}
    options = [make_option("A", 1, n, plan=plan) for n, plan in plans.items()]
    change = script_change(answer(*options, recommended="A8"), answer(*options, recommended="A4"))
    assert [machine.num_gpus for machine in change.machines] == [4, 8]


def test_every_gpu_that_it_rules_out_is_named():
    base = [with_memory(make_option(f"G{i:02}", 1, i + 1), 2**30, True) for i in range(20)]
    head = [
        with_memory(removed(make_option(f"G{i:02}", 1, i + 1), RemovedByMemory), 2**31, False)
        for i in range(20)
    ]
    text = texts(script_change(answer(*base), answer(*head)))
    assert all(f"G{i:02}" in text for i in range(20))


def test_what_costs_nothing_is_no_unknown_cost():
    own = make_plan("A", 0.0)
    change = script_change(
        answer(make_option("A", 10, 0, plan=own)), answer(make_option("A", 15, 0, plan=own))
    )
    assert change.measure is Measure.TIME
    assert "$0.00 in 10 h" in texts(change)
    assert "unknown" not in texts(change)


usd = st.floats(0.01, 1e6)


@given(before=usd, after=usd)
def test_there_and_back_again_is_no_change(before, after):
    forth = script_change(answer(make_option("A", 1, before)), answer(make_option("A", 1, after))).relative
    back = script_change(answer(make_option("A", 1, after)), answer(make_option("A", 1, before))).relative
    assert (1 + forth) * (1 + back) == pytest.approx(1)


@given(costs=st.lists(usd, min_size=1, max_size=5))
def test_no_change_costs_nothing(costs):
    same = answer(*(make_option(f"G{i}", 1, cost) for i, cost in enumerate(costs)))
    change = script_change(same, same)
    assert change.relative == 0
    assert "(+0.0 %)" in texts(change)
