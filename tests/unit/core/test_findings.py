"""Findings as values: a severity that follows from the code, and what removes an option."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings import REMOVALS, Code, Finding, Severity, finding, quoted, removals
from tests.findings import sample

CODES = st.lists(st.sampled_from(list(Code)))


def test_a_code_is_read_back_from_its_value() -> None:
    assert all(Code(code.value) is code for code in Code)
    assert len({code.value for code in Code}) == len(Code)


def test_the_severity_follows_from_the_code() -> None:
    assert finding(Code.BUDGET).severity is Severity.REMOVAL
    assert finding(Code.WAIT_UNKNOWN).severity is Severity.WARNING
    assert finding(Code.TIE).severity is Severity.NOTE


def test_what_removes_is_named_as_ever() -> None:
    """Programs know these names since the first schema, and in this order."""
    assert [code.value for code in REMOVALS] == [
        "memory", "sharding", "software", "attention", "quota", "spot", "budget", "deadline", "policy",
    ]  # fmt: skip


@given(CODES)
def test_removals_are_those_of_the_findings_each_once_and_in_order(codes: list[Code]) -> None:
    kept = removals(map(sample, codes))
    assert set(kept) == {code for code in codes if code.severity is Severity.REMOVAL}
    assert list(kept) == [code for code in REMOVALS if code in kept]
    assert kept == removals(map(sample, reversed(codes)))


@given(CODES)
def test_equal_findings_are_one_in_a_set_though_facts_hold_lists(codes: list[Code]) -> None:
    same = [sample(code) for code in codes]
    assert len({*same, *map(sample, codes)}) == len(set(codes))


def test_facts_tell_findings_apart() -> None:
    assert quoted("one") != quoted("other")
    assert quoted("one") == Finding(Code.TEXT, {"text": "one"})
