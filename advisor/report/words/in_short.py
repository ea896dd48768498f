"""The answer in three sentences that need no table."""

from __future__ import annotations

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_usd
from advisor.core.values import Layout
from advisor.report.words.table import Words


def machine(
    *,
    plan_id: str,  # noqa: ARG001
    gpu: str,
    num_gpus: int,
    num_nodes: int,
    tier: str,
    provider: str,
    instance_type: str | None,
    place: str | None,
    market: str | None,
) -> str:
    """How many of which GPU, and where."""
    gpus = Layout(gpus_per_node=num_gpus // num_nodes, num_nodes=num_nodes).of(gpu)
    if instance_type is not None:
        machines = instance_type if num_nodes == 1 else f"{num_nodes} x {instance_type}"
        return f"{gpus} ({provider} {machines} {place} {market})"
    return f"{gpus} ({'this machine' if tier == 'local' else f'cluster {provider}'})"


def choice(
    *, machine: str, is_rented: bool, must_change: bool, num_iterations: int, iteration_s: float
) -> str:
    """What to take and for how many optimizer steps there, and whether the script is ready for it."""
    steps = f"{num_iterations:,} step{'' if num_iterations == 1 else 's'} of {format_duration(iteration_s)}"
    first = ", once the script is changed for it (see below)" if must_change else ""
    return f"{'Rent' if is_rented else 'Use'} {machine} for {steps}{first}"


def cost_and_time(
    *,
    cost_p50_usd: float,
    cost_p90_usd: float,
    time_p50_s: float,
    time_p90_s: float,
    is_cost_known: bool,
    is_whole: bool,
) -> str:
    """What it costs and when it is done, waiting included; both at p50 and p90."""
    done, late = format_duration(time_p50_s), format_duration(time_p90_s)
    time = f"it is done in about {done}, with 9 in 10 odds within {late}"
    less = "" if is_whole else ", not counting what else runs between steps (see the warning)"
    if not is_cost_known:
        return f"What it costs is unknown and counts as $0.00; {time}{less}"
    cost, most = format_usd(cost_p50_usd), format_usd(cost_p90_usd)
    return f"It costs about {cost}, with 9 in 10 odds {most} at most; {time}{less}"


def doubt(*, risk: str, num_nodes: int, tipped_by: str) -> str:
    """What could go wrong, by the code of its risk, and the fact that would change the advice."""
    words = _in_plain_words(risk, num_nodes)
    return f"What could go wrong: {words}. What would change this advice: {tipped_by}"


def _in_plain_words(risk: str, num_nodes: int) -> str:
    match risk:
        case Code.RISK_CAPACITY if num_nodes > 1:
            return f"fewer than {num_nodes} machines are free when you ask for them"
        case Code.RISK_CAPACITY:
            return "no machine is free when you ask for one"
        case Code.RISK_PREEMPTION if num_nodes > 1:
            return (
                f"one of the {num_nodes} machines is taken away, which stops all, and the job goes on later"
            )
        case Code.RISK_PREEMPTION:
            return "the machine is taken away while it trains, and the job goes on later"
        case Code.RISK_WAIT:
            return "the queue takes longer"
        case _:
            return "nothing that is known"


def by_price(*, instead: str, time_s: float, cost_usd: float | None, usd_per_h: float) -> str:
    """The price from which on another is better."""
    return f"a live price: above {format_usd(usd_per_h)} an hour, {_would_be(instead, time_s, cost_usd)}"


def by_quote(*, instead: str, time_s: float, cost_usd: float | None, usd_per_h: float) -> str:
    """The price of another from which on it is better."""
    return (
        f"a quoted price of another: below {format_usd(usd_per_h)} an hour,"
        f" {_would_be(instead, time_s, cost_usd)}"
    )


def by_wait(*, instead: str, time_s: float, cost_usd: float | None, wait_s: float, is_known: bool) -> str:
    """The wait from which on another is better."""
    fact = "the wait for it" if is_known else "its wait, which nobody knows"
    return f"{fact}: above {format_duration(wait_s)} on average, {_would_be(instead, time_s, cost_usd)}"


def by_step(*, instead: str, time_s: float, cost_usd: float | None, step_s: float, expected_s: float) -> str:
    """The time of a step from which on another is better."""
    than = _told_apart(step_s, expected_s)
    return f"a measured step: above {than}, {_would_be(instead, time_s, cost_usd)}"


def _told_apart(longer_s: float, expected_s: float) -> str:
    """The longer time with so many digits, of which three are printed elsewhere, that it reads as longer."""
    unit, size = ("ms", 1e3) if longer_s < 1 else ("s", 1.0)
    for digits in range(3, 10):
        longer, expected = (f"{seconds * size:.{digits}g} {unit}" for seconds in (longer_s, expected_s))
        if longer != expected:
            return longer
    return format_duration(longer_s)


def by_deadline(*, instead: str, time_s: float, cost_usd: float | None, below_s: float) -> str:
    """The time by which it must be done for another to be better."""
    than = format_duration(below_s)
    return f"a deadline (--deadline): below {than}, {_would_be(instead, time_s, cost_usd)}"


def by_data_place(
    *, instead: str, time_s: float, cost_usd: float | None, data_provider: str, data_region: str
) -> str:
    """The region that the data would have to lie in for a machine of it to be better."""
    return (
        f"where the data lies (--data): in {data_region} of {data_provider},"
        f" {_would_be(instead, time_s, cost_usd)}"
    )


def by_value(
    *, instead: str, time_s: float, cost_usd: float | None, value_usd_per_h: float, is_above: bool
) -> str:
    """The worth of an hour from which on another is better."""
    than = f"{'above' if is_above else 'below'} {format_usd(value_usd_per_h)}"
    return f"what an hour is worth (--value-of-time): {than}, {_would_be(instead, time_s, cost_usd)}"


def by_later_deadline(*, instead: str, time_s: float, cost_usd: float | None, from_s: float) -> str:
    """The deadline, later than the given one, from which on another is better."""
    would_be = _would_be(instead, time_s, cost_usd)
    return f"a later deadline (--deadline): from {format_duration(from_s)} on, {would_be}"


def by_objective(*, instead: str, time_s: float, cost_usd: float | None) -> str:
    """What the policy's pick goes before."""
    return f"the policy's objective: for the best value, {_would_be(instead, time_s, cost_usd)}"


def _would_be(instead: str, time_s: float, cost_usd: float | None) -> str:
    cost = "at a cost that nobody configured" if cost_usd is None else f"for {format_usd(cost_usd)}"
    return f"{instead} would be recommended, {format_duration(time_s)} {cost}"


IN_SHORT: Words = {
    Code.MACHINE: machine,
    Code.NOTHING_TIPS: "nothing that is in doubt: no other option comes near",
    Code.SUMMARY_CHOICE: choice,
    Code.SUMMARY_COST_AND_TIME: cost_and_time,
    Code.SUMMARY_DOUBT: doubt,
    Code.TIPPED_BY_DATA_PLACE: by_data_place,
    Code.TIPPED_BY_DEADLINE: by_deadline,
    Code.TIPPED_BY_LATER_DEADLINE: by_later_deadline,
    Code.TIPPED_BY_OBJECTIVE: by_objective,
    Code.TIPPED_BY_PRICE: by_price,
    Code.TIPPED_BY_QUOTE: by_quote,
    Code.TIPPED_BY_STEP: by_step,
    Code.TIPPED_BY_VALUE: by_value,
    Code.TIPPED_BY_WAIT: by_wait,
}
