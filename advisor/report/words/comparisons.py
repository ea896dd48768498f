"""What decides between two plans, and where more GPUs of one stop paying."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_usd
from advisor.report.words.table import Words

# Between these odds of being the faster one, predictions do not tell two plans apart.
_UNSURE = (0.1, 0.9)


def better(
    *,
    faster: str,
    slower: str,
    times_faster: float | None,
    less_s: float,
    p_sooner: float,
    times_cheaper: float | None,
    less_usd: float,
    change_usd: float,
) -> str:
    """The one is no worse in either."""
    time = _times(times_faster, format_duration(less_s), "faster")
    cost = _times(times_cheaper, format_usd(less_usd), "cheaper")
    gains = " and ".join(filter(None, (time, cost)))
    counted = _counted(change_usd, slower, faster)
    return (
        f"{faster} is on average {gains} than {slower}{counted}: take {faster}, whatever an hour is worth"
        f"{_sure(p_sooner)}"
    )


def trade(
    *,
    faster: str,
    slower: str,
    times_faster: float | None,
    less_s: float,
    p_sooner: float,
    times_dearer: float | None,
    more_usd: float,
    change_usd: float,
    even_usd_per_h: float,
    value_usd_per_h: float,
    take: str,
) -> str:
    """Time for money."""
    time = _times(times_faster, format_duration(less_s), "faster")
    cost = _times(times_dearer, format_usd(more_usd), "dearer")
    counted = _counted(change_usd, faster, slower)
    return (
        f"{faster} is on average {time} and {cost} than {slower}{counted}: worth it where an hour until the"
        f" job is done is worth more than {format_usd(even_usd_per_h)}. At {format_usd(value_usd_per_h)}"
        f" (--value-of-time) take {take}{_sure(p_sooner)}"
    )


def by_time(
    *,
    faster: str,
    slower: str,
    times_faster: float | None,
    less_s: float,
    p_sooner: float,
    unpriced: Sequence[str],
) -> str:
    """Nobody knows what an hour of one of them costs."""
    time = _times(times_faster, format_duration(less_s), "faster")
    than = f"{faster} is on average {time} than {slower}" if time else "A and B are as fast"
    return f"{than}; what {' and '.join(unpriced)} costs is unknown, so time alone decides{_sure(p_sooner)}"


def one(*, take: str, other: str, why: str | None) -> str:
    """Only one of them does the job."""
    return f"only {take} does the job: {other} does not ({why})"


def neither(*, why_a: str | None, why_b: str | None) -> str:
    """None of them does the job."""
    return f"neither does the job: not A ({why_a}), nor B ({why_b})"


def same(*, usd: float, time_s: float) -> str:
    """Nothing decides."""
    return f"A and B come to the same: {format_usd(usd)} and {format_duration(time_s)}"


def _times(times: float | None, amount: str, than: str) -> str:
    """``2.1 x faster``, ``4 % faster``, ``$12.00 dearer`` beside nothing; empty where both are the same."""
    if times is None:
        return f"{amount} {than}"
    if times >= 1.1:
        return f"{times:.1f} x {than}"
    return f"{times - 1:.1%} {than}" if times >= 1.0005 else ""


def _sure(p_sooner: float) -> str:
    low, high = _UNSURE
    return f" (which is sooner is not sure: p {p_sooner:.2f})" if low < p_sooner < high else ""


# --- Over numbers of GPUs --------------------------------------------------------------------------


def pays(*, machine: str, usd_per_h_saved: float, change_usd: float, value_usd_per_h: float) -> str:
    """The largest number pays."""
    return (
        f"more GPUs pay up to the largest number there is, {machine}: the last step"
        f" {_price(usd_per_h_saved, change_usd)}, and an hour is worth {format_usd(value_usd_per_h)}"
        " (--value-of-time)"
    )


def stops(
    *,
    machine: str,
    next_num_gpus: int,
    usd_per_h_saved: float | None,
    change_usd: float,
    value_usd_per_h: float,
) -> str:
    """A step costs more than what it saves is worth."""
    step = f"the step to {next_num_gpus} GPUs"
    if usd_per_h_saved is None:
        return f"more GPUs stop paying after {machine}: {step} saves no time"
    return (
        f"more GPUs stop paying after {machine}: {step} {_price(usd_per_h_saved, change_usd)}, and an"
        f" hour is worth {format_usd(value_usd_per_h)} (--value-of-time)"
    )


def _price(usd_per_h_saved: float, change_usd: float) -> str:
    if usd_per_h_saved <= 0:
        return "saves money as well as time"
    return f"costs {format_usd(usd_per_h_saved)} for each hour that it saves{_counted(max(change_usd, 0.0))}"


def _counted(change_usd: float, dearer: str = "", cheaper: str = "") -> str:
    """The work for one of two plans that is in their difference of cost, and stands beside no rent."""
    if not change_usd:
        return ""
    plan = dearer if change_usd > 0 else cheaper
    place = f" for {plan}" if plan else ""
    return f" ({format_usd(abs(change_usd))} to change the script{place} counted)"


COMPARISONS: Words = {
    Code.COMPARED_BETTER: better,
    Code.COMPARED_BY_TIME: by_time,
    Code.COMPARED_NEITHER: neither,
    Code.COMPARED_ONE: one,
    Code.COMPARED_SAME: same,
    Code.COMPARED_TRADE: trade,
    Code.CURVE_OF_NONE: "no number of these GPUs does the job",
    Code.CURVE_OF_ONE: "there is one number alone that does the job: {machine}",
    Code.CURVE_PAYS: pays,
    Code.CURVE_STOPS: stops,
    Code.CURVE_UNPRICED: (
        "what an hour of these GPUs costs is unknown, so nobody can tell where more of them stop paying"
    ),
}
