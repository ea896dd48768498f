"""What ``show`` prints, what it leaves out, and how it ends when nothing is feasible."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from advisor.cli.answer import show
from advisor.cli.options import ViewOptions
from advisor.core.errors import InputError, NothingFeasibleError
from advisor.core.findings import quoted
from advisor.core.findings.about_answers import OptInRegions
from advisor.core.findings.about_options import (
    InputAssumed,
    RemovedByAttention,
    RemovedByBudget,
    RemovedByDeadline,
    RemovedByMemory,
    RemovedBySharding,
    RemovedBySoftware,
    Unknown,
)
from advisor.core.values import Option, Pick, PickName, Recommendation
from advisor.report.printing import Format, print_document
from advisor.service.recommend.recommending import RecommendAnswer
from recommender.ranking.choice import nearest_rows, shortlist
from recommender.ranking.what_ifs import WhatIfGain
from tests.builders import GIB, HOUR_S, make_estimate, make_job
from tests.findings import FACTS, sample, texts
from tests.recommendations import make_option as made_up
from tests.recommendations import removed
from tests.recommending import make_script


def make_option(gpu: str, hours: float, usd: float, **changes: Any) -> Option:
    """An option that meets no limit surely."""
    return made_up(gpu, hours, usd, **({"p_within_budget": 0.0, "p_within_deadline": 0.0} | changes))


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    """No sentence is broken."""
    monkeypatch.setenv("COLUMNS", "200")


FAST, MIDDLE, CHEAP = make_option("FAST", 1, 30), make_option("MIDDLE", 2, 20), make_option("CHEAP", 4, 10)
MIDDLE = replace(MIDDLE, script_changes=texts("change this"), reasons=texts("for this reason"))


def answer(*options: Option, recommended: str | None = "MIDDLE", **changes: Any) -> Recommendation:
    options = options or (FAST, MIDDLE, CHEAP)
    picked = {PickName.CHEAPEST: options[-1], PickName.FASTEST: options[0], PickName.SAFEST: options[-1]}
    facts: dict[str, Any] = {
        "script": make_script(),
        "job": make_job(),
        "options": options,
        "frontier": tuple(option.plan.id for option in options) if recommended else (),
        "recommended": recommended,
        "rule": quoted("the best rule") if recommended else None,
        "warnings": texts("keep in mind"),
        "picks": tuple(
            Pick(name=name, plan_id=option.plan.id, reason=quoted(f"why {name}"))
            for name, option in picked.items()
        ),
    }
    facts |= changes
    if recommended:
        ready = min(facts["options"], key=lambda option: option.expected.cost_usd)
        rows = shortlist(facts["options"], facts["picks"], facts["job"], best_id=recommended, as_it_is=ready)
    else:
        rows = nearest_rows(facts["options"], facts["job"])
    return Recommendation(**({"shortlist": rows} | facts))


def shown(
    capsys,
    recommendation: Recommendation,
    *,
    output: Format = Format.TABLE,
    best: WhatIfGain | None = None,
    **view: Any,
) -> tuple[str, str]:
    given = RecommendAnswer(recommendation=recommendation, best_what_if=best, entry_id=None)
    view = {"all_": view.get("top") is None, **view}
    show(given, ViewOptions(**view), partial(print_document, output=output))
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_what_it_rests_on_tells_changes_reasons_and_picks(capsys):
    out, err = shown(capsys, answer(), assumptions=True)
    assert out.splitlines() == [
        "Recommended: aws middle.xlarge us-east-1 on-demand, the best rule.",
        "  change this",
        "  for this reason",
        "Cheapest: aws cheap.xlarge us-east-1 on-demand, 4 h for $10.00 (why cheapest).",
        "Fastest: aws fast.xlarge us-east-1 on-demand, 1 h for $30.00 (why fastest).",
        "Safest: aws cheap.xlarge us-east-1 on-demand, 4 h for $10.00 (why safest).",
        "Assumed, left out or uncertain:",
        "  keep in mind",
    ]
    assert err == "warning: keep in mind\n"


def test_one_screen_names_why_each_row_is_there(capsys):
    out, _ = shown(capsys, answer(), all_=False)
    rows = [line.partition(" 1 x ")[0].split() for line in out.splitlines() if " 1 x " in line]
    assert rows == [["recommended", "1"], ["as", "it", "is,", "cheapest", "2"], ["fastest", "3"]]
    assert "like it" not in out


def test_each_row_shows_what_the_ranking_compares(capsys):
    """Its average cost, two dollars an hour, and the work: 25 dollars and half an hour."""
    out, _ = shown(capsys, answer(), all_=False)
    totals = [line.split()[-1] for line in out.splitlines() if " 1 x " in line]
    options = [row.option for row in answer().shortlist]
    expected = [
        one.expected.counted_usd + 2.0 * one.expected.time_s / 3600 + 26.0 * bool(one.work) for one in options
    ]
    assert "Total" in out
    assert totals == [f"${usd:.2f}" for usd in expected]


def test_at_most_three_lines_of_warnings_stand_beside_an_answer(capsys):
    _, err = shown(capsys, answer(warnings=texts("a", "b", "c")))
    assert err == "warning: a\nwarning: b\nwarning: c\n"
    _, err = shown(capsys, answer(warnings=texts("a", "b", "c", "d")))
    assert err.splitlines()[2] == "warning: 2 more: --assumptions shows all warnings"
    assert len(err.splitlines()) == 3


def test_what_is_named_as_assumed_is_no_warning(capsys):
    unknown = [Unknown(what=what) for what in ("data-size", "data-place")]
    out, err = shown(capsys, answer(warnings=(*unknown, sample(OptInRegions))))
    assert err == ""
    assert "Assumed: no data set to copy and 2 more facts (--assumptions)." in out


@pytest.mark.parametrize(
    ("recommended", "named"),
    [("FAST", ["Cheapest", "Safest"]), ("CHEAP", ["Fastest"]), ("MIDDLE", ["Cheapest", "Fastest", "Safest"])],
)
def test_what_is_recommended_is_not_named_again(recommended, named, capsys):
    out, _ = shown(capsys, answer(recommended=recommended), assumptions=True)
    assert [word for word in ("Cheapest", "Fastest", "Safest") if f"{word}:" in out] == named


def test_another_row_says_that_it_is_a_near_tie(capsys):
    also = make_option("ALSO", 2.05, 20.5, tie_with="MIDDLE")
    out, _ = shown(capsys, answer(FAST, MIDDLE, CHEAP, also, frontier=("FAST", "MIDDLE", "CHEAP")))
    assert "near tie" in out


def test_a_pick_that_the_recommended_row_speaks_for_has_no_row(capsys):
    alike = replace(FAST, folded_into="MIDDLE")
    out, _ = shown(capsys, answer(alike, MIDDLE, CHEAP), all_=False)
    assert "fastest" not in out
    assert "cheapest" in out


def test_picks_are_in_the_json_with_their_reasons(capsys):
    body = json.loads(shown(capsys, answer(), output=Format.JSON)[0])
    assert body["picks"] == {"cheapest": "CHEAP", "fastest": "FAST", "safest": "CHEAP"}
    assert body["pick_reasons"]["fastest"] == "why fastest"
    assert [option["tie_with"] for option in body["options"]] == [None] * 3


@pytest.mark.parametrize(("top", "hidden"), [(None, 0), (1, 1), (2, 1), (3, 0), (9, 0)])
def test_hidden_rows_are_counted(top, hidden, capsys):
    # The recommended one and one more of the frontier are always shown.
    out, _ = shown(capsys, answer(), top=top)
    assert (f"Not shown: {hidden} options" in out) is (hidden > 0)
    assert ("--all" in out) is (hidden > 0)


def test_rows_alone_are_rows_of_all_options(capsys):
    out, err = shown(capsys, answer(), output=Format.CSV, top=1)
    assert len(out.splitlines()) == 4
    assert "--all" not in out
    assert "keep in mind" in err


def test_json_is_nothing_but_json(capsys):
    out, err = shown(capsys, answer(), output=Format.JSON)
    body = json.loads(out)
    assert [option["id"] for option in body["options"]] == ["MIDDLE", "CHEAP", "FAST"]
    assert body["recommended"] == "MIDDLE"
    assert "keep in mind" in err


@pytest.mark.parametrize("wanted", ["CHEAP", "2", "#2"])
def test_a_row_in_full_by_id_or_number(wanted, capsys):
    out, err = shown(capsys, answer(), explain=wanted)
    assert out.startswith("CHEAP\n")
    assert "Recommended:" not in out
    assert "keep in mind" in err


def test_a_row_in_full_as_json(capsys):
    out, _ = shown(capsys, answer(), explain="CHEAP", output=Format.JSON)
    assert json.loads(out)["option"]["id"] == "CHEAP"


@pytest.mark.parametrize(("wanted", "hint"), [("CHEEP", "Did you mean 'CHEAP'"), ("0", ""), ("4", "")])
def test_an_unknown_row_is_refused_with_what_is_near(wanted, hint, capsys):
    with pytest.raises(InputError, match=f"'{wanted}'.*{hint}"):
        shown(capsys, answer(), explain=wanted)


def test_a_plot_stands_in_for_the_table_and_the_words_stay(capsys):
    out, err = shown(capsys, answer(), plot=True, top=1)
    assert "Status" not in out
    assert "#1  2.0 h  $20.00, recommended" in out
    assert "keep in mind" in err


@pytest.mark.parametrize(
    ("view", "output", "words"),
    [
        ({"plot": True}, Format.JSON, "--plot"),
        ({"plot": True}, Format.CSV, "--plot"),
        ({"plot": True, "explain": "CHEAP"}, Format.TABLE, "--plot"),
        ({"explain": "CHEAP"}, Format.CSV, "--explain prints text"),
        ({"explain": "CHEAP"}, Format.MARKDOWN, "--explain prints text"),
    ],
)
def test_what_has_no_place_in_an_answer_is_refused_before_there_is_one(view, output, words):
    with pytest.raises(InputError, match=words):
        ViewOptions(**view).check(output)


# --- Nothing is feasible ----------------------------------------------------------------------------


def ending(capsys, *options: Option, **job: Any) -> str:
    recommendation = answer(*options, recommended=None, job=make_job(**job))
    with pytest.raises(NothingFeasibleError) as caught:
        shown(capsys, recommendation)
    captured = capsys.readouterr()
    # Rows and warnings come before the error.
    assert options[0].plan.gpu in captured.out
    assert "keep in mind" in captured.err
    assert "Recommended" not in captured.out
    return str(caught.value)


def sized(option: Option, needs: int, has: int) -> Option:
    estimate = make_estimate(memory_bytes=needs * GIB, memory_limit_bytes=has * GIB)
    facts = FACTS[RemovedByMemory] | {"needed_bytes": needs * GIB, "available_bytes": has * GIB}
    return replace(option, estimate=estimate, reasons=(sample(InputAssumed), RemovedByMemory(**facts)))


ALL = (FAST, MIDDLE, CHEAP)
OLD = removed(FAST, RemovedBySoftware)
ENDINGS: dict[str, tuple[list[Option], dict[str, float], list[str], list[str]]] = {
    "too dear": (
        [removed(one, RemovedByBudget) for one in ALL], {"budget_usd": 7.5},
        ["cheap.xlarge", "$2.50 over the budget in the median ($12.50 at p90)"], ["late", "fast.xlarge"]),
    "too late": (
        [removed(one, RemovedByDeadline) for one in ALL], {"deadline_s": 0.5 * HOUR_S},
        ["fast.xlarge", "30 min late in the median (1 h 30 min at p90)"], ["budget"]),
    "both": (
        [removed(CHEAP, RemovedByBudget, RemovedByDeadline)], {"budget_usd": 6.0, "deadline_s": HOUR_S},
        ["$4.00 over the budget in the median ($14.00 at p90) and 3 h late in the median"], []),
    "only unsure": (
        [removed(CHEAP, RemovedByBudget, p_within_budget=0.81, p_within_deadline=0.625)],
        {"budget_usd": 11.0},
        ["--confidence 0.62"], ["0.81", "over the budget"]),
    "odds that nobody asked for": (
        [removed(CHEAP, RemovedByBudget, p_within_budget=0.81, p_within_deadline=None)], {"budget_usd": 11.0},
        ["--confidence 0.81"], []),
    "ranks that share a model": (
        [removed(replace(CHEAP, reasons=(sample(InputAssumed),)), RemovedBySharding), OLD], {},
        ["profile with --world 1"], ["pipeline"]),
    "kernels that a script forbids": (
        [removed(replace(CHEAP, reasons=(sample(RemovedByAttention),)), RemovedByAttention), OLD], {},
        ["flash alone"], ["PyTorch no longer runs"]),
    # They lack 10, 4 and 6 GiB; the second is neither the largest nor the smallest.
    "no memory": (
        [sized(FAST, 20, 10), sized(MIDDLE, 20, 16), sized(CHEAP, 18, 12)], {},
        ["memory", "middle.xlarge", "does not fit: needs 20 GiB, the GPU has 16 GiB"], []),
}  # fmt: skip


@pytest.mark.parametrize(("options", "limits", "words", "absent"), ENDINGS.values(), ids=ENDINGS)
def test_the_nearest_is_named_with_what_is_missing(capsys, options, limits, words, absent):
    text = ending(capsys, *options, **limits)
    assert [word for word in words if word not in text] == [word for word in absent if word in text] == []


def test_each_limit_has_its_nearest(capsys):
    options = [removed(FAST, RemovedByBudget), removed(CHEAP, RemovedByDeadline)]
    text = ending(capsys, *options, budget_usd=25.0, deadline_s=3 * HOUR_S)
    assert "$5.00 over the budget" in text
    assert "1 h late" in text
    assert text.count(";") == 1


def test_what_runs_nowhere_is_no_row_where_money_or_time_would_do():
    late, old = removed(CHEAP, RemovedByDeadline), removed(FAST, RemovedBySoftware)
    alone = removed(MIDDLE, RemovedByMemory)
    assert [row.option for row in nearest_rows([old, late, alone], make_job(deadline_s=HOUR_S))] == [late]
    # Where neither would, each reason has one.
    rows = [row.option for row in nearest_rows([old, alone], make_job())]
    assert len(rows) == 2
    assert old in rows
    assert alone in rows


# --- What if ----------------------------------------------------------------------------------------


CHANGED = replace(make_option("MIDDLE", 1, 8), plan=replace(MIDDLE.plan, id="MIDDLE+bf16"), what_if="bf16")
ELSEWHERE = replace(make_option("CHEAP", 2, 1), plan=replace(CHEAP.plan, id="CHEAP+bf16"), what_if="bf16")


def what_if(same: Option | None = CHANGED, instead: Option | None = None) -> WhatIfGain:
    return WhatIfGain(change="bf16", same=same, instead=instead)


def lines_of(capsys, recommendation: Recommendation, what_if: WhatIfGain) -> list[str]:
    out, _ = shown(capsys, recommendation, best=what_if)
    return [line for line in out.splitlines() if line.startswith(("What if ", "Then "))]


def test_one_line_says_what_the_change_would_save_on_the_same_machine(capsys):
    (line,) = lines_of(capsys, answer(), what_if())
    assert line == (
        "What if bf16: aws middle.xlarge us-east-1 on-demand, 1 h for $8.00 instead of 2 h for $20.00:"
        " $12.00 and 1 h less (--what-if all)."
    )


def test_on_one_screen_the_line_is_short(capsys):
    out, _ = shown(capsys, answer(), best=what_if(instead=ELSEWHERE), all_=False)
    assert "What if bf16: 1 h for $8.00, $12.00 and 1 h less (--what-if all)." in out
    assert "Then " not in out


def test_that_another_would_then_be_recommended_is_a_second_sentence(capsys):
    lines = lines_of(capsys, answer(), what_if(instead=ELSEWHERE))
    assert lines[1:] == ["Then aws cheap.xlarge us-east-1 on-demand, 2 h for $1.00, would be recommended."]


def test_an_unknown_cost_saves_time_alone(capsys):
    free = replace(MIDDLE, plan=replace(MIDDLE.plan, usd_per_h=None))
    (line,) = lines_of(capsys, answer(FAST, free, CHEAP), what_if())
    assert line.endswith("instead of 2 h for $20.00: 1 h less (--what-if all).")


def test_what_costs_more_is_not_called_less(capsys):
    slower = replace(make_option("MIDDLE", 3, 8), plan=replace(MIDDLE.plan, id="MIDDLE+bf16"), what_if="bf16")
    (line,) = lines_of(capsys, answer(), what_if(same=slower))
    assert line.endswith("3 h for $8.00 instead of 2 h for $20.00: $12.00 less and 1 h more (--what-if all).")


def test_what_the_same_machine_does_not_gain_is_not_made_up(capsys):
    assert lines_of(capsys, answer(), what_if(same=None, instead=ELSEWHERE)) == [
        (
            "What if bf16: aws cheap.xlarge us-east-1 on-demand, 2 h for $1.00, would be recommended"
            " (--what-if all)."
        )
    ]


def test_beside_its_row_the_line_says_how_to_see_it_in_full(capsys):
    (line,) = lines_of(capsys, answer(what_ifs=(CHANGED,)), what_if())
    assert line.endswith("(--explain MIDDLE+bf16).")


def test_without_a_recommendation_there_is_nothing_to_compare_with(capsys):
    late = removed(MIDDLE, RemovedByDeadline)
    recommendation = answer(late, recommended=None, job=make_job(deadline_s=HOUR_S))
    with pytest.raises(NothingFeasibleError):
        shown(capsys, recommendation, best=what_if(same=None, instead=CHANGED))
    assert "What if bf16: aws middle.xlarge us-east-1 on-demand, 1 h for $8.00 (--what-if all)." in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize("output", [Format.CSV, Format.JSON])
def test_the_line_goes_with_the_table_alone(output, capsys):
    assert "What if bf16" not in shown(capsys, answer(), output=output, best=what_if())[0]


def test_hidden_what_ifs_are_counted(capsys):
    out, _ = shown(capsys, answer(what_ifs=(CHANGED,)), top=3)
    assert "Not shown: 1 options" in out


# --- a page ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{}, {"output": Format.JSON}, {"explain": "CHEAP"}, {"plot": True}])
def test_the_page_holds_the_whole_answer_whatever_else_is_shown(capsys, tmp_path, change):
    without, err = shown(capsys, answer(), **change)
    path = tmp_path / "answer.html"
    assert shown(capsys, answer(), html=path, **change) == (without, err)
    html = path.read_text("utf-8")
    assert "<caption>Options</caption>" in html
    assert "Cheapest: aws cheap.xlarge us-east-1" in html
    assert "keep in mind" in html
    assert 'class="chart"' in html


def test_a_page_is_written_where_nothing_is_feasible_too(capsys, tmp_path):
    path = tmp_path / "answer.html"
    with pytest.raises(NothingFeasibleError):
        shown(capsys, answer(recommended=None), html=path)
    assert "<h1>Where to run" in path.read_text("utf-8")


def test_one_option_is_a_page_too(capsys):
    out, _ = shown(capsys, answer(), explain="CHEAP", output=Format.HTML)
    assert "<h1>aws cheap.xlarge us-east-1 on-demand</h1>" in out
    assert "<h2>" in out
