"""Who spent it and what of it is shared, what runs cost together, and which days a period holds."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.config.settings import ReportSettings
from advisor.core.values import Market, RunStatus
from advisor.report.review_tables import jump_finding
from advisor.report.words import sentence
from advisor.review.budgets import Period, Scope, monday_of, month_of, spent_of
from advisor.review.spending import OF_CLOUDS, OWN, Share, Spending, spending_of
from advisor.review.who_spent import Sharing, Showback, before, parts_of, showback_of, unit_costs_of
from advisor.spend.charges import Charge
from advisor.spend.outlays import Outlay
from advisor.store.ledger import Run
from tests.team import MONDAY, WEEK, at, make_charge, make_entry, make_run

TEAMS = {"vision": ("resnet",), "language": ("bert",)}


def shown(
    *runs: Run,
    charges: Sequence[Charge] = (),
    scope: Scope = Scope(),  # noqa: B008
    **division: Any,
) -> Showback:
    return showback_of(
        spent_of(runs, charges, WEEK.until),
        charges,
        [run for run in runs if WEEK.holds(run.started_at)],
        advised={},
        period=WEEK,
        scope=scope,
        division=ReportSettings(**({"teams": TEAMS} | division)),
    )


def parts(showback: Showback) -> dict[str, tuple[float, float]]:
    return {part.name: (float(part.usd), float(part.shared_usd)) for part in showback.by_team}


@pytest.mark.parametrize(
    ("key", "shares"), [("spend", (7.5, 2.5)), ("evenly", (5.0, 5.0)), ("gpu-hours", (2.0, 8.0))]
)
def test_what_is_shared_is_split_by_the_stated_key(key, shares):
    runs = [
        make_run(usd=30.0, duration_s=3600.0),
        make_run(usd=10.0, project="bert", duration_s=14_400.0),
        make_run(usd=10.0, project="platform"),
        make_run(usd=3.0, project=""),
    ]
    found = shown(*runs, shared=("platform",), shared_by=key)
    assert parts(found) == {"vision": (30, shares[0]), "language": (10, shares[1]), "": (3, 0)}
    assert (found.usd, found.unallocated_usd) == (53, 3)


def test_what_nobody_can_share_stays_where_it_was_spent():
    assert parts(shown(make_run(usd=5.0, project="platform"), shared=("platform",))) == {"(no team)": (5, 0)}


def test_the_change_is_known_where_bills_reach_back_as_well():
    now, then = make_charge(2, "12"), make_charge(-2, "10")
    assert shown(charges=[now]).before_usd is None
    found = shown(charges=[now, then])
    assert found.before_usd == 10
    assert found.by_project[0].change == pytest.approx(0.2)
    assert before(WEEK).until == WEEK.since


def test_tags_divide_a_bill():
    charges = [
        make_charge(usd="4", tags={"cost-center": "7"}),
        make_charge(usd="2", effective_cost=Decimal(3)),
        make_charge(usd="9", tags={"cost-center": "7"}, currency="EUR"),
    ]
    assert shown(charges=charges, tags=("cost-center",)).by_tag == {"cost-center": {"7": 4, "": 3}}


def test_a_day_that_stands_out_is_named_with_its_maker():
    usual = [make_run(-day, usd=20.0 + day % 3, id=f"r{day}") for day in range(1, 15)]
    big = make_run(3, usd=400.0, id="big")
    (jump,) = shown(*usual, big, make_run(3, usd=5.0, id="small"), make_run(1, usd=40.0)).jumps
    assert (f"{jump.day}", jump.usd, jump.usual_usd) == ("2026-11-05", 405, 21)
    words = sentence(jump_finding(jump))
    assert words.startswith("2026-11-05: $405.00 for resnet, more than twice any of the 28 days before")
    assert words.endswith("most of it run big, $400.00")
    billed = [make_charge(-day, "20", instance_type="p5.48xlarge", project=None) for day in range(1, 9)]
    (jump,) = shown(charges=[*billed, make_charge(2, "99", project=None)]).jumps
    assert "most of it billed for aws g5.xlarge, $99.00" in sentence(jump_finding(jump))


def test_a_young_project_has_no_unusual_days():
    assert shown(make_run(-1, usd=1.0), make_run(3, usd=400.0)).jumps == ()


def test_a_run_an_epoch_and_a_million_tokens_have_a_price():
    entry = make_entry(num_iterations=1000, command="advisor recommend train.py --epochs 10 -- --epochs 3")
    whole = make_run(usd=30.0, recommendation_id="entry")
    half = make_run(usd=10.0, recommendation_id="entry", num_steps=500, status=RunStatus.FAILED)
    alone = make_run(usd=5.0)
    (cost,) = unit_costs_of([whole, half, alone], {"entry": entry}, {"train.py": 2000})
    assert (cost.num_runs, cost.per_run_usd) == (3, 15)
    assert float(cost.per_epoch_usd or 0) == pytest.approx(40 / 15)
    assert float(cost.per_million_tokens_usd or 0) == pytest.approx(40 / 3)
    (bare,) = unit_costs_of([alone], {}, {})
    assert bare.per_epoch_usd is bare.per_million_tokens_usd is None


OUTLAYS = st.lists(
    st.builds(
        Outlay,
        at=st.just(MONDAY),
        usd=st.decimals(-50, 500, places=4),
        provider=st.just("aws"),
        project=st.sampled_from(["", "a", "b", "c", "platform"]),
        what=st.just("g5.xlarge"),
    ),
    max_size=20,
)


@given(OUTLAYS, st.none() | OUTLAYS)
def test_parts_add_up_to_the_whole(spent, earlier):
    def evenly(own: Mapping[str, Decimal]) -> Mapping[str, Decimal]:
        return dict.fromkeys(own, Decimal(1))

    found = parts_of(spent, earlier, lambda name: name, Sharing(projects={"platform"}, weights=evenly))
    whole = sum((one.usd for one in spent), Decimal(0))
    assert abs(sum((part.total_usd for part in found), Decimal(0)) - whole) < Decimal("1e-15")
    if earlier is not None:
        then = sum((part.before_usd or Decimal(0) for part in found), Decimal(0))
        assert abs(then - sum((one.usd for one in earlier), Decimal(0))) < Decimal("1e-15")
    own = {part.name: part.usd for part in found if part.name != "platform"}
    for name in ("a", "b", ""):
        direct = sum((one.usd for one in spent if one.project == name), Decimal(0))
        assert own.get(name, 0) == direct


def test_a_team_sees_its_own_part():
    scope = Scope(team="vision", projects=frozenset({"resnet"}))
    runs = [make_run(usd=30.0), make_run(usd=10.0, project="platform"), make_run(usd=10.0, project="bert")]
    found = shown(*runs, scope=scope, shared=("platform",))
    assert parts(found) == {"vision": (30, 7.5)}


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


def test_the_end_does_not_belong_to_a_period():
    assert WEEK.holds(WEEK.since)
    assert not WEEK.holds(WEEK.until)
    assert WEEK.holds(WEEK.until - timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("since", "until", "mondays"),
    [(0.0, 7.0, [2]), (0.0, 7.001, [2, 9]), (-0.001, 7.0, [-5, 2]), (6.9, 14.0, [2, 9])],
)
def test_weeks_begin_on_mondays_and_none_is_left_out(since, until, mondays):
    period = Period(since=MONDAY + timedelta(days=since), until=MONDAY + timedelta(days=until))
    assert list(period.weeks()) == [date(2026, 11, 1) + timedelta(days=day - 1) for day in mondays]


def test_a_week_is_that_of_utc():
    here = timezone(timedelta(hours=2))
    assert monday_of(datetime(2026, 11, 2, 1, tzinfo=here)) == date(2026, 10, 26)


@pytest.mark.parametrize(
    ("moment", "first"),
    [
        (datetime(2026, 11, 1, 0, 0, 1, tzinfo=UTC), date(2026, 11, 1)),
        (datetime(2026, 12, 1, tzinfo=UTC), date(2026, 11, 1)),
        (datetime(2027, 1, 31, 12, tzinfo=UTC), date(2027, 1, 1)),
        (datetime(2024, 2, 29, 12, tzinfo=UTC), date(2024, 2, 1)),
    ],
)
def test_a_month_ends_where_the_next_begins(moment, first):
    month = month_of(moment)
    assert month.since.date() == first
    assert month.until.day == 1
    assert 28 <= month.days <= 31


def test_a_team_is_its_projects():
    assert Scope().holds("anything")
    assert Scope().holds(None)
    vision = Scope(team="vision", projects=frozenset({"resnet"}))
    assert vision.holds("resnet")
    assert not vision.holds("bert")
    assert not vision.holds(None)
