"""Gaps of many scopes told together: each is still there, and no reason is told twice for one place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.pricing.source_registry import joined


def test_one_reason_of_many_machines_and_regions_is_one_line() -> None:
    scopes = ("us-east1 spot", "us-west1 spot")
    gaps = [(scope, f"{machine} {scope}: no price of L4 GPU") for scope in scopes for machine in ("g2", "g4")]
    assert joined(gaps) == ("us-east1 spot, us-west1 spot: no price of L4 GPU: g2, g4",)


def test_machines_that_lack_it_elsewhere_have_a_line_of_their_own() -> None:
    gaps = [("a", "m1 a: x"), ("a", "m2 a: x"), ("b", "m1 b: x"), ("b", "m3 b: y")]
    assert joined(gaps) == ("a, b: x: m1", "a: x: m2", "b: y: m3")


def test_gaps_without_a_machine_stay_as_they_are() -> None:
    assert joined([("a", "late: 2 types"), ("b", "late: 2 types"), ("b", "lost")]) == (
        "a, b: late: 2 types",
        "b: lost",
    )
    assert joined([("a", "one"), ("a", "one")]) == ("a: one",)
    assert joined([]) == ()


NAMES = st.sampled_from(["r1 spot", "r2 spot", "r10 spot"])
GAPS = st.lists(
    st.tuples(NAMES, st.sampled_from(["m1", "m2", "m3"]), st.sampled_from(["no price", "0: unknown"])),
    max_size=30,
)


@given(GAPS)
def test_every_gap_can_be_read_back_once(gaps: list[tuple[str, str, str]]) -> None:
    lines = joined((scope, f"{machine} {scope}: {reason}") for scope, machine, reason in gaps)
    read = []
    for line in lines:
        scopes, _, rest = line.partition(": ")
        reason, _, machines = rest.rpartition(": ")
        read += [(s, m, reason) for s in scopes.split(", ") for m in machines.split(", ")]
    assert sorted(read) == sorted(set(gaps))
    assert len(lines) <= len(set(gaps))
