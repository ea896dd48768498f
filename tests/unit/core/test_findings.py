"""Findings as values: a severity that follows from the code, and what removes an option."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings import Removal, Severity, Text, quoted, removals
from advisor.core.findings.about_options import PriceDerived, RemovedByBudget, Tie, Unknown
from tests.findings import sample
from tools.build_docs import finding_kinds

KINDS = tuple(finding_kinds())
SOME = st.lists(st.sampled_from(KINDS))


def test_programs_tell_all_of_them_apart():
    assert len({kind.code for kind in KINDS}) == len(KINDS)
    assert PriceDerived.code == "price-derived"


def test_the_severity_follows_from_the_code():
    assert RemovedByBudget.severity is Severity.REMOVAL
    assert Unknown.severity is Severity.WARNING
    assert Tie.severity is Severity.NOTE


def test_what_removes_is_named_as_ever():
    """Programs know these names since the first schema, and in this order."""
    assert [kind.code for kind in Removal.__subclasses__()] == [
        "memory", "host-memory", "sharding", "software", "attention", "quota", "spot", "budget", "deadline",
        "policy", "queue",
    ]  # fmt: skip


@given(SOME)
def test_removals_are_those_of_the_findings_each_once_and_in_order(kinds):
    kept = removals(map(sample, kinds))
    assert set(kept) == {kind.code for kind in kinds if kind.severity is Severity.REMOVAL}
    assert list(kept) == [kind.code for kind in Removal.__subclasses__() if kind.code in kept]
    assert kept == removals(map(sample, reversed(kinds)))


@given(SOME)
def test_equal_findings_are_one_in_a_set_though_facts_hold_lists(kinds):
    same = [sample(kind) for kind in kinds]
    assert len({*same, *map(sample, kinds)}) == len(set(kinds))


def test_facts_tell_findings_apart():
    assert quoted("one") != quoted("other")
    assert quoted("one") == Text(text="one")


def test_a_finding_has_its_facts_and_keeps_them():
    with pytest.raises(TypeError, match="lacks within_share"):
        Tie(plan_id="A")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="has no usd"):
        Tie(plan_id="A", within_share=0.05, usd=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="cannot be changed"):
        sample(Tie).plan_id = "B"
