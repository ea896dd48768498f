"""Which rows speak for others, and what they say of them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.findings.about_estimates import EditScript
from advisor.core.findings.about_options import Alike
from advisor.core.values import Layout, Market, Means, Option, PricePoint, Quantiles, Tier
from advisor.report.words import sentence
from recommender.outcome.spot import SpotTerms
from recommender.ranking.frontier import with_folded
from recommender.ranking.later_starts import cheapest_start, with_shifts
from recommender.ranking.value import Worth
from tests.builders import HOUR_S, ONE_GPU, make_estimate, make_gpu, make_job, make_plan, make_trace
from tests.recommendations import make_option
from tests.recommending import recommend


def minutes(name: str, time_min: float, usd: float, **changes: object) -> Option:
    return make_option(name, time_min / 60, usd, **changes)


def folded(*options: Option, best: str, value: float = 2.0) -> dict[str, str | None]:
    return {o.plan.id: o.folded_into for o in with_folded(options, best, Worth(hour_usd=value))}


def row(*options: Option, best: str) -> str:
    """What the row of the best says of others."""
    row_shown = next(option for option in with_folded(options, best, Worth()) if option.plan.id == best)
    return ", ".join(sentence(reason) for reason in row_shown.reasons if isinstance(reason, Alike))


R = minutes("R", 10.3, 0.05)


@pytest.mark.parametrize(
    ("other", "is_like"),
    [
        # Saves little time, and is dearer.
        (minutes("P", 10.0, 9.53), True),
        (minutes("P", 9.4, 0.06), True),
        (minutes("P", 9.2, 0.06), False),
        # Takes as long, and is a little cheaper, or much.
        (minutes("P", 10.3, 0.0480), True),
        (minutes("P", 10.3, 0.0470), False),
        # Slower, and saves little money for it: near it, or far away.
        (minutes("P", 12.0, 0.0480), True),
        (minutes("P", 12.0, 0.0470), False),
        (minutes("P", 100.0, 0.0480), False),
        # Slower and dearer: a like one is folded, another machine is not.
        (minutes("P", 11.2, 0.0599), True),
        (minutes("P", 11.2, 9.53), True),
        (minutes("P", 100.0, 0.0505), False),
    ],
)
def test_what_gains_little_and_is_near(other, is_like):
    assert folded(R, other, best="R")["P"] == ("R" if is_like else None)


def test_of_hours_a_row_speaks_within_a_fifth_of_its_time_and_cost():
    hours = {"P": (10.0, 20.0), "Q": (11.5, 22.0), "S": (30.0, 5.0), "T": (10.0, 24.5), "U": (12.5, 20.0)}
    options = [make_option(name, time_h, usd) for name, (time_h, usd) in hours.items()]
    with_ddp = make_option("R", 10.5, 20.5, script_changes=(EditScript(what="wrap-in-ddp"),))
    groups = folded(*options, with_ddp, best="P")
    assert groups == {"P": None, "Q": "P", "S": None, "T": None, "U": None, "R": None}


@pytest.mark.parametrize(
    ("own", "others", "is_like"),
    [
        ((), ("wrap-in-ddp",), False),
        # Both are edits, one of a line.
        (("install-for-cuda-12",), ("install-aarch64",), False),
        ((), ("install-for-cuda-12",), True),
    ],
)
def test_other_work_on_the_script_keeps_its_row(own, others, is_like):
    row_shown, other = (
        minutes(name, 10.3, 0.05, script_changes=tuple(EditScript(what=what) for what in edits))
        for name, edits in (("R", own), ("P", others))
    )
    assert folded(row_shown, other, best="R")["P"] == ("R" if is_like else None)


def test_of_long_jobs_a_share_counts_and_of_short_ones_a_minute():
    day = minutes("R", 1440, 50)
    assert folded(day, minutes("P", 1370, 60), best="R")["P"] == "R"
    assert folded(day, minutes("P", 1365, 60), best="R")["P"] is None


def test_a_row_speaks_for_its_own_market_alone():
    spot = make_plan("S", market=Market.SPOT)
    assert folded(R, minutes("S", 10.3, 0.05, plan=spot), best="R") == {"R": None, "S": None}


def test_own_machines_speak_for_the_same_owner_alone():
    lab = [make_plan("X", 1.0, tier=Tier.CLUSTER, id=f"lab-{i}", provider="lab") for i in (1, 2)]
    other = make_plan("X", 1.0, tier=Tier.CLUSTER, id="other", provider="other")
    groups = folded(R, *(minutes("X", 10.3, 0.05, plan=plan) for plan in (*lab, other)), best="R")
    assert groups == {"R": None, "lab-1": None, "lab-2": "lab-1", "other": None}


def test_free_machines_that_take_longer_keep_their_rows():
    """Their cost is unknown: fewer of them may well be cheaper."""
    plans = [make_plan("X", None, tier=Tier.CLUSTER, num_gpus=n) for n in (1, 8)]
    one, eight = (minutes("X", time, 0.0, plan=plan) for time, plan in zip((80, 10), plans, strict=True))
    assert set(folded(one, eight, best="8xX").values()) == {None}


def test_the_preferred_one_speaks_whichever_comes_first():
    alike = minutes("Q", 10.3, 0.06)
    for options in ((R, alike), (alike, R)):
        assert folded(*options, best="R") == {"R": None, "Q": "R"}


def test_what_is_recommended_keeps_its_row_though_another_is_preferred():
    """A policy may ask for another pick than the best value."""
    assert folded(R, minutes("P", 10.0, 0.058), best="P") == {"R": None, "P": None}
    assert folded(R, minutes("Q", 10.3, 0.0505), best="Q") == {"R": "Q", "Q": None}


def test_nothing_is_folded_into_what_is_folded_itself():
    """Each saves little on the next one, the first much on the last."""
    chain = [minutes(f"{i}", 100 * 0.97**i, 10 + i) for i in range(9)]
    under = folded(*chain, best="0")
    assert {into for into in under.values() if into} <= {name for name, into in under.items() if into is None}
    assert under["1"] == "0"
    assert under["8"] is None


def test_what_never_ends_keeps_its_row():
    inf = float("inf")
    endless = replace(
        R,
        plan=make_plan("E"),
        time_s=Quantiles(p50=inf, p90=inf),
        cost_usd=Quantiles(p50=inf, p90=inf),
        expected=Means(wait_s=0.0, time_s=inf, cost_usd=inf, counted_usd=inf),
    )
    assert folded(R, endless, best="R") == {"R": None, "E": None}


def of_r(name: str, time_min: float, usd: float) -> Option:
    """An option elsewhere, on the GPU of R."""
    option = minutes(name, time_min, usd)
    return replace(option, plan=replace(option.plan, gpu="R"))


def test_a_row_says_which_of_the_others_are_of_other_gpus():
    several = minutes("S", 10.3, 0.05)
    eight = replace(several, plan=replace(several.plan, gpu="R", layout=Layout(gpus_per_node=8)))
    assert row(R, of_r("Q", 10.3, 0.05), minutes("P", 10.3, 0.05), eight, best="R") == (
        "3 like it; 2 of them on other GPUs: 1 x P, 8 x R"
    )
    many = [minutes(name, 10.3, 0.05) for name in ("A", "B", "C", "D", "E")]
    assert row(R, *many, best="R").endswith("5 of them on other GPUs: 1 x A, 1 x B, 1 x C, 2 more")


def test_a_row_says_how_far_the_others_lie():
    dear = minutes("R", 10.3, 50.0)
    assert row(dear, of_r("P", 10.0, 59.48), best="R") == "1 like it, up to 18 s faster, up to $9.48 dearer"
    slower = row(dear, of_r("P", 12.0, 48.0), of_r("Q", 10.3, 51.0), best="R")
    assert slower == "2 like it, up to 2 min slower, up to $2.00 cheaper, up to $1.00 dearer"
    assert row(R, of_r("Q", 10.3, 0.05), best="R") == "1 like it"
    assert row(R, best="R") == ""


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def history(price: Callable[[datetime], float], days: int = 30, step_h: int = 1) -> list[PricePoint]:
    """A point each ``step_h`` hours of the last days."""
    times = [NOW - timedelta(hours=h) for h in range(days * 24, -1, -step_h)]
    return [
        PricePoint(
            provider="aws", instance_type="x.xlarge", region="us-east-1", zone=None, market=Market.SPOT,
            usd_per_h=price(time), observed_at=time,
        )
        for time in times
    ]  # fmt: skip


def night(time: datetime) -> float:
    """2 dollars by day, 1 from 20:00 to 04:00."""
    return 1.0 if time.hour >= 20 or time.hour < 4 else 2.0


def test_a_job_of_four_hours_waits_for_the_night():
    shift = cheapest_start(history(night), run_s=4 * HOUR_S, now=NOW)
    assert shift is not None
    assert shift.delay_h == 8  # from 12:00 to 20:00, the first of five equally cheap hours
    assert shift.start_at == "2026-11-21T20:00:00+00:00"
    assert shift.saving_usd == pytest.approx(4.0)
    assert shift.usd == pytest.approx(8.0)
    assert shift.spread_usd == pytest.approx(0.0, abs=1e-9)
    assert shift.num_days == 29


def test_what_is_longer_than_the_night_saves_less():
    shift = cheapest_start(history(night), run_s=12 * HOUR_S, now=NOW)
    assert shift is not None
    # At once: 8 h by day and 4 by night, 20 dollars; from 16:00 or later the whole night: 16.
    assert (shift.usd, shift.saving_usd) == (pytest.approx(20.0), pytest.approx(4.0))


@pytest.mark.parametrize("run_h", [24, 48])
def test_whole_days_cost_the_same_whenever_they_begin(run_h):
    assert cheapest_start(history(night), run_s=run_h * HOUR_S, now=NOW) is None


def test_by_night_there_is_nothing_to_wait_for():
    at_night = NOW - timedelta(hours=14)
    assert cheapest_start(history(night), run_s=4 * HOUR_S, now=at_night) is None


def test_a_constant_price_says_nothing():
    assert cheapest_start(history(lambda _: 2.0), run_s=HOUR_S, now=NOW) is None


def test_less_than_a_hundredth_says_nothing():
    slightly = history(lambda time: 2.0 - 0.015 * (night(time) == 1.0))
    assert cheapest_start(slightly, run_s=HOUR_S, now=NOW) is None


def test_two_weeks_are_the_least():
    assert cheapest_start(history(night, days=13), run_s=HOUR_S, now=NOW) is None
    assert cheapest_start(history(night, days=15), run_s=HOUR_S, now=NOW) is not None
    # Fourteen days to compare: a run of three days leaves none of them for the last three.
    assert cheapest_start(history(night, days=15), run_s=60 * HOUR_S, now=NOW) is None
    assert cheapest_start([], run_s=HOUR_S, now=NOW) is None


def test_two_prices_a_fortnight_apart_are_no_pattern():
    assert cheapest_start(history(night, days=20, step_h=20 * 24), run_s=HOUR_S, now=NOW) is None


def test_a_saving_that_comes_and_goes_says_nothing():
    """Cheap nights every fourth day alone: 0.25 dollars on average, 0.44 from day to day."""

    def price(time: datetime) -> float:
        return night(time) if (time + timedelta(hours=8)).toordinal() % 4 == 0 else 2.0

    assert cheapest_start(history(price), run_s=4 * HOUR_S, now=NOW) is None


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.floats(0.5, 30))
def test_what_is_told_is_true_of_the_mean_of_days(seed, run_h):
    draw = np.random.default_rng(seed)
    by_hour = draw.uniform(1, 3, 24)
    points = history(lambda time: float(by_hour[time.hour] * draw.uniform(0.8, 1.2)), days=20)
    shift = cheapest_start(points, run_s=run_h * HOUR_S, now=NOW)
    if shift is None:
        return
    assert 0 < shift.delay_h < 24
    assert shift.saving_usd > shift.spread_usd >= 0
    assert shift.saving_usd < shift.usd
    shuffled = [points[i] for i in draw.permutation(len(points))]
    assert cheapest_start(shuffled, run_s=run_h * HOUR_S, now=NOW) == shift


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_noise_alone_is_hardly_ever_a_pattern(seed):
    """The best of 24 means of 29 days stays far below the standard deviation of a day."""
    draw = np.random.default_rng(seed)
    points = history(lambda _: float(draw.uniform(1, 2)), days=30)
    assert cheapest_start(points, run_s=HOUR_S, now=NOW) is None


def test_a_run_takes_some_time():
    with pytest.raises(ValueError, match="more than 0 s"):
        cheapest_start(history(night), run_s=0.0, now=NOW)


def test_a_later_start_saves_on_every_node():
    def saved_usd(num_nodes: int) -> float:
        layout = Layout(gpus_per_node=1, num_nodes=num_nodes)
        plan = make_plan("A", 2.0 * num_nodes, market=Market.SPOT, layout=layout)
        estimate = make_estimate("A", 0.1 * num_nodes, layout=layout)
        options = recommend(
            make_trace(), {("A", layout): estimate}, {"A": make_gpu("A")}, [plan], make_job(),
            spot=SpotTerms(preemptions_per_h=0.0),
        )  # fmt: skip
        (option,) = with_shifts(options, {"A": history(night)}, NOW).options
        return float(str(option.reasons[-1].facts["saving_usd"]))

    assert saved_usd(2) == pytest.approx(2 * saved_usd(1), rel=1e-6)


def test_the_option_says_so_and_the_others_do_not():
    plans = [make_plan("A", 2.0, market=Market.SPOT), make_plan("B", 2.0)]
    recommendation = recommend(
        make_trace(),
        {(name, ONE_GPU): make_estimate(name, 0.1) for name in "AB"},
        {name: make_gpu(name) for name in "AB"},
        plans,
        make_job(),
    )
    a, b = with_shifts(recommendation, {"A": history(night)}, NOW).options
    assert b == recommendation.options[1]
    assert a.reasons[:-1] == recommendation.options[0].reasons
    assert sentence(a.reasons[-1]).startswith(
        "a start 8 h later (20:00 UTC) was cheaper over the last 29 days: $"
    )
