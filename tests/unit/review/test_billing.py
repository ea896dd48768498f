"""What clouds billed, and what runs explain of it."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.report.words import sentence
from advisor.review.budgets import Scope
from advisor.review.spending import Billing, billing_of, leaks_of
from advisor.spend.charges import Bill, Charge, ChargeCategory
from advisor.store.ledger import Run
from tests.team import WEEK, at, make_bill, make_charge, make_run

RESNET = Scope(projects=frozenset({"resnet"}))


def billed(*charges: Charge, runs: tuple[Run, ...] = (), scope: Scope = Scope()) -> Billing:  # noqa: B008
    return billing_of([make_bill(*charges)], runs, WEEK, scope)


def test_what_no_run_of_this_cloud_explains_is_idle():
    runs = (make_run(usd=4.0), make_run(usd=1.5), make_run(usd=99.0, instance_type="g6.xlarge"))
    other = make_run(provider="gcp")
    (machine,) = billed(make_charge(usd="7.00"), make_charge(usd="0.25"), runs=(*runs, other)).machines
    assert (machine.billed_usd, machine.explained_usd, machine.idle_usd) == (
        Decimal("7.25"), Decimal("5.5"), Decimal("1.75"),
    )  # fmt: skip
    assert machine.num_runs == 2


def test_charges_without_a_machine_stand_below_their_service():
    billing = billed(make_charge(), make_charge(usd="2", instance_type=None, service="S3"))
    assert [(share.name, share.usd) for share in billing.by_service] == [("S3", 2)]


def test_a_charge_counts_where_its_period_begins_and_is_long_from_a_day():
    month = make_charge(1, end=at(30))
    billing = billed(make_charge(-0.01), make_charge(7), month)
    assert billing.charges == (month,)
    assert billing.num_long == 1
    assert billed(make_charge(0, end=at(1))).num_long == 0
    assert billed(make_charge(0, end=at(1) + timedelta(seconds=1))).num_long == 1


def test_tax_and_other_money_are_told_apart_and_credits_count():
    billing = billed(
        make_charge(usd="10"),
        make_charge(usd="-3", category=ChargeCategory.CREDIT),
        make_charge(usd="0.81", category=ChargeCategory.TAX),
        make_charge(usd="3", currency="EUR"),
        make_charge(usd="4", currency="EUR"),
        make_charge(usd="900", currency="JPY"),
    )
    assert (billing.usd, billing.tax_usd) == (7, Decimal("0.81"))
    assert billing.other_currencies == {"EUR": (7, 2), "JPY": (900, 1)}


def test_a_team_sees_its_own_charges_and_hears_of_those_without_a_project():
    charges = make_charge(), make_charge(project="bert"), make_charge(usd="5", project=None)
    billing = billed(*charges, scope=RESNET)
    assert billing.charges == charges[:1]
    assert billing.untagged_usd == 5
    assert billed(*charges).usd == 7


def test_two_bills_of_the_same_days_are_noticed():
    bills: list[Bill] = [
        make_bill(make_charge(0), make_charge(1), name="a"),
        make_bill(make_charge(1), make_charge(2, provider="gcp"), name="b"),
        make_bill(make_charge(3), name="c"),
    ]
    (overlap,) = billing_of(bills, (), WEEK, Scope()).overlaps
    assert (overlap.provider, overlap.bills, overlap.days) == ("aws", ("a", "b"), 1)


def test_runs_without_a_machine_are_counted_where_their_cloud_billed():
    runs = make_run(instance_type=None), make_run(instance_type=None, provider="gcp"), make_run()
    assert billed(make_charge(), runs=runs).num_without_machine == 1


@given(
    st.lists(
        st.builds(
            make_charge,
            days=st.floats(-1, 8),
            usd=st.decimals(-100, 10_000, places=10).map(str),
            provider=st.sampled_from(["aws", "gcp"]),
            project=st.sampled_from([None, "resnet", "bert"]),
            instance_type=st.sampled_from([None, "g5.xlarge"]),
            currency=st.sampled_from(["USD", "EUR"]),
            category=st.sampled_from(list(ChargeCategory)),
        )
    )
)
def test_every_charge_is_somewhere_once(charges):
    billing = billed(*charges)
    for parts in (billing.by_provider, billing.by_project, billing.by_week):
        assert sum(part.usd for part in parts) == billing.usd
    machines = sum(machine.billed_usd for machine in billing.machines)
    assert machines + sum(share.usd for share in billing.by_service) == billing.usd
    inside = [charge for charge in charges if WEEK.holds(charge.start)]
    dollars = [charge.billed_cost for charge in inside if charge.currency == "USD"]
    assert billing.usd + billing.tax_usd == sum(dollars)


def plan(status: str, usd: str, **changes: object) -> Charge:
    """An hour that a savings plan paid, or that nobody used of it."""
    told = {"CommitmentDiscountId": "sp-1", "CommitmentDiscountName": "ml plan"}
    told |= {"CommitmentDiscountStatus": status} if status else {}
    return make_charge(usd="0", effective_cost=Decimal(usd), details=told, **changes)


def test_a_commitment_that_was_used_is_no_zero_and_one_that_was_not_leaks():
    bought = make_charge(
        usd="8000", effective_cost=Decimal(0), category=ChargeCategory.PURCHASE, instance_type="p5.48xlarge",
        details={"CommitmentDiscountId": "sp-1"},
    )  # fmt: skip
    used = plan("Used", "1392", contracted_cost=Decimal(2000))
    rent = make_charge(usd="500", effective_cost=Decimal(500), contracted_cost=Decimal(500))
    unused = plan("Unused", "6583", project=None, instance_type=None)
    billing = billed(bought, used, rent, unused, runs=(make_run(usd=710.0),))
    assert (billing.usd, billing.amortised_usd) == (8500, 8475)
    (machine,) = billing.machines
    assert (machine.billed_usd, machine.amortised_usd, machine.idle_usd) == (500, 1892, 1182)
    (one,) = billing.commitments
    assert (one.name, one.used_usd, one.unused_usd) == ("ml plan", 1392, 6583)
    assert one.utilisation == pytest.approx(1392 / 7975)
    assert billing.coverage == pytest.approx(2000 / 2500)
    leak = next(iter(leaks_of((), (), billing, lambda _: True)))
    assert leak.facts["usd"] == 6583
    assert "$6,583 of commitments was paid and not used, 83% of them (ml plan)" in sentence(leak)
    team = billed(bought, used, rent, unused, scope=RESNET)
    assert team.amortised_usd == 1892


def test_spot_cannot_be_covered():
    spot = make_charge(details={"PricingCategory": "Dynamic"})
    assert billed(spot).coverage is None
