"""The independent check finds each fault that an answer could have."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.job_checks import faults

Row = dict[str, Any]


def option(name: str, usd: float, hours: float, **changes: Any) -> Row:
    quantiles = {"p50": usd, "p90": usd}
    return {
        "id": name, "feasible": True, "folded_into": None, "iterations": 100,
        "cost_usd": quantiles, "time_s": {"p50": hours * 3600, "p90": hours * 3600},
        "iteration_s": {"p50": 0.5}, "p_within_budget": 0.95, "p_within_deadline": None,
        "expected": {"counted_usd": usd, "time_s": hours * 3600},
        "work": {"kinds": [], "usd": 0.0, "hours": 0.0},
    } | changes  # fmt: skip


DDP = {"kinds": ["ddp"], "usd": 25.0, "hours": 0.5}


def answer() -> Row:
    """A is recommended at 2 USD an hour: 10 + 20; B is 8 + 40, C 2 + 2 + 25 of work + half an hour."""
    options = [
        option("A", 10.0, 10.0),
        option("B", 8.0, 20.0),
        option("C", 4.0, 1.0, work=DDP),
        option("D", 10.5, 11.0, folded_into="A"),
    ]
    chosen = {
        "cost_p50_usd": 10.0, "cost_p90_usd": 10.0, "time_p50_s": 36000.0, "time_p90_s": 36000.0,
        "num_iterations": 100, "iteration_s": 0.5,
    }  # fmt: skip
    return {
        "recommended": "A",
        "job": {"value_of_time_usd_per_h": 2.0, "pick": None, "budget_usd": 20, "deadline_s": None,
                "confidence": 0.9},
        "options": options,
        "shortlist": [{"id": "A"}, {"id": "B"}, {"id": "C"}],
        "summary_findings": [
            {"code": "summary-choice", "facts": {"machine": {"facts": {"plan_id": "A"}}}},
            {"code": "summary-cost-and-time", "facts": chosen},
        ],
    }  # fmt: skip


def found(change: Callable[[Row], object], screen: str = "a\nb\n", warnings: str = "") -> list[str]:
    document = copy.deepcopy(answer())
    change(document)
    return faults(document, screen, warnings)


def test_an_answer_that_holds_has_no_fault():
    assert found(lambda _: None) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["options"][2]["work"].update(usd=10.0), "C has a smaller total"),
        (lambda d: d["options"][1]["expected"].update(time_s=3600.0), "B is cheaper, faster"),
        (lambda d: d["summary_findings"][1]["facts"].update(iteration_s=0.4), "summary's step is 0.4"),
        (lambda d: d["summary_findings"][0]["facts"]["machine"]["facts"].update(plan_id="B"), "machine is B"),
        (lambda d: d["options"][0].update(p_within_budget=0.5), "budget_usd holds in 50%"),
        (lambda d: d["options"][3].update(work=DDP), "D is folded into A"),
        (lambda d: d["options"][3].update(cost_usd={"p50": 13.0}), "D is folded into A"),
        (lambda d: d["options"][3].update(time_s={"p50": 50000.0}), "D is folded into A"),
    ],
)
def test_each_fault_is_named(change, words):
    assert any(words in fault for fault in found(change))


def test_in_a_job_of_minutes_a_dearer_row_that_gains_no_minute_is_like():
    def minutes(document: Row) -> None:
        document["options"][0]["time_s"] = {"p50": 600.0, "p90": 600.0}
        document["summary_findings"][1]["facts"].update(time_p50_s=600.0, time_p90_s=600.0)
        document["options"][3].update(cost_usd={"p50": 90.0}, time_s={"p50": 550.0})

    assert found(minutes) == []


@pytest.mark.parametrize(
    ("screen", "warnings", "words"),
    [
        ("line\n" * 25, "", ["25 lines"]),
        ("x" * 101, "", ["a line of 101 characters"]),
        ("line", "warning: a\n" * 4, ["4 warnings"]),
        ("line\n" * 24, "warning: a\nnote: b\n", []),
    ],
)
def test_a_screen_has_24_lines_and_three_warnings(screen, warnings, words):
    assert found(lambda _: None, screen, warnings) == words
