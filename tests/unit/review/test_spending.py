"""What runs cost together and apart; what nobody knows is counted apart."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market
from advisor.review.budgets import spent_of
from advisor.review.spending import OF_CLOUDS, OWN, Share, Spending, spending_of
from advisor.store.ledger import Run
from tests.team import WEEK, at, make_run

RUNS = st.lists(
    st.builds(
        make_run,
        days=st.floats(0, 6.99),
        usd=st.none() | st.decimals(0, 10_000, places=6).map(float),
        project=st.sampled_from(["", "resnet", "bert"]),
        gpu=st.sampled_from(["A10G", "L4"]),
        provider=st.sampled_from(["aws", "gcp", "local"]),
        market=st.sampled_from([None, *Market]),
        duration_s=st.none() | st.floats(0, 1e6),
    )
)


def spent(*runs: Run) -> Spending:
    return spending_of(runs, spent_of(runs, (), WEEK.until), WEEK, lambda run: run.provider == "local")


def test_parts_are_named_and_sorted_by_cost():
    spending = spent(make_run(usd=3.0), make_run(usd=0.1), make_run(usd=7.2, project="bert", gpu="L4"))
    assert [(share.name, share.usd, share.num_runs) for share in spending.by_project] == [
        ("bert", Decimal("7.2"), 1),
        ("resnet", Decimal("3.1"), 2),
    ]
    assert [share.name for share in spending.by_gpu] == ["L4", "A10G"]
    assert spending.all.usd == Decimal("10.3")


def test_ten_dimes_are_a_dollar_and_an_unknown_cost_is_counted_apart():
    assert spent(*(make_run(usd=0.1) for _ in range(10))).all.usd == 1
    share = spent(make_run(usd=None), make_run(usd=2.0)).all
    assert (share.usd, share.num_runs, share.num_unknown) == (2, 2, 1)
    assert spent(make_run(usd=None)).all.is_unknown
    assert not spent(make_run(usd=None), make_run(usd=0.0)).all.is_unknown
    assert not spent().all.is_unknown


def test_hours_of_gpus_are_unknown_where_a_length_is():
    assert spent(make_run(num_gpus=8, duration_s=1800.0)).all.gpu_h == 4
    assert spent(make_run(), make_run(duration_s=None)).all.gpu_h is None


def test_own_machines_have_no_market_and_clouds_may_have_an_unknown_one():
    spending = spent(make_run(provider="local", market=None), make_run(market=None), make_run())
    assert {share.name for share in spending.by_market} == {OWN, OF_CLOUDS, "on-demand"}
    assert [share.name for share in spent(make_run(provider="", market=None)).by_market] == [""]


def test_a_week_without_a_run_is_a_week_of_nothing_and_the_last_moment_belongs_to_its_week():
    nothing = Share(
        name="2026-11-02", usd=Decimal(0), num_runs=0, num_unknown=0, gpu_h=0.0, spent_usd=Decimal(0)
    )
    assert spent().by_week == (nothing,)
    assert spent(make_run(started_at=at(6.9999))).by_week[-1].num_runs == 1


@given(RUNS)
def test_however_it_is_parted_it_is_the_same_money(runs):
    spending = spent(*runs)
    known = [Decimal(str(run.cost_usd)) for run in runs if run.cost_usd is not None]
    assert spending.all.usd == sum(known)
    for parts in (spending.by_project, spending.by_gpu, spending.by_market, spending.by_provider,
                  spending.by_week):  # fmt: skip
        assert sum(part.usd for part in parts) == spending.all.usd
        assert sum(part.num_runs for part in parts) == len(runs)
        assert sum(part.num_unknown for part in parts) == len(runs) - len(known)
