"""What is said of a whole answer: in short, two plans compared, what was left out, why there is none."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code
from advisor.core.units import format_duration, format_usd
from advisor.core.values import Layout
from advisor.report.words.table import Words


def hourly_cost_unknown(*, providers: Sequence[str]) -> str:
    """Whose machines count as free."""
    return f"no hourly cost is configured for {', '.join(providers)}: counted as $0, which flatters it"


def cluster_wait_unknown(*, clusters: Sequence[str]) -> str:
    """Whose queues are taken for those of others."""
    names = ", ".join(clusters)
    return (
        f"no wait is configured for {names}: assumed from job logs of other clusters, and no deadline"
        " relies on it (set wait_p50 and wait_p90, or wait_log)"
    )


def opt_in_regions(*, num_offers: int, regions: Sequence[str]) -> str:
    """Where an account cannot start anything yet."""
    return (
        f"{num_offers:,} offers are left out, in regions that an account must enable first"
        f" ({', '.join(regions)}): include them with --region NAME or cloud.opt_in_regions"
    )


LEFT_OUT: Words = {
    Code.CLOUD_WAIT_ASSUMED: (
        "the wait for a machine is assumed for {num_assumed} of {num_rented} rented options, from open"
        " traces: cloud.wait_p50 and cloud.wait_p90 replace it, or spot.history for spot"
    ),
    Code.CLUSTER_WAIT_UNKNOWN: cluster_wait_unknown,
    Code.HOURLY_COST_UNKNOWN: hourly_cost_unknown,
    Code.DATA_PLACE_UNKNOWN: (
        "data set location unknown: assumed to be outside the clouds, from where transfer is not billed"
        " (set --data)"
    ),
    Code.DATA_REGION_UNKNOWN: (
        "region of {place} unknown: assumed to be the one of {provider} that costs most to leave, far from"
        " every machine (write {place}@REGION)"
    ),
    Code.DATA_SIZE_UNKNOWN: (
        "data set size unknown: copying, storing and reading it are not included (set --dataset-gb N; 0 if"
        " nothing is copied)"
    ),
    Code.LOCAL_GPUS_BUSY: "GPUs of this machine are in use: the wait until they are free counts as 0",
    Code.OPT_IN_REGIONS: opt_in_regions,
    Code.RATES_UNKNOWN: (
        "{num_unknown} of {num_options} options pay the dearest known rate of disks or data transfer: that of"
        " their place is unknown (see their notes; rates in the settings replace it)"
    ),
}


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
        "what an hour of these GPUs costs is unknown, and so is where more of them stop paying"
    ),
}


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
    time = f"it is done in about {done} (90 % chance within {late})"
    less = "" if is_whole else ", not counting what else runs between steps (see the warning)"
    if not is_cost_known:
        return f"The cost is unknown and counted as $0.00; {time}{less}"
    cost, most = format_usd(cost_p50_usd), format_usd(cost_p90_usd)
    return f"It costs about {cost} (90 % chance of at most {most}); {time}{less}"


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
    would_be = _would_be(instead, time_s, cost_usd)
    return f"if it costs more than {format_usd(usd_per_h)} an hour when you ask, {would_be}"


def by_quote(*, instead: str, time_s: float, cost_usd: float | None, usd_per_h: float) -> str:
    """The price of another from which on it is better."""
    return (
        f"if a quote for another falls below {format_usd(usd_per_h)} an hour,"
        f" {_would_be(instead, time_s, cost_usd)}"
    )


def by_wait(*, instead: str, time_s: float, cost_usd: float | None, wait_s: float, is_known: bool) -> str:
    """The wait from which on another is better."""
    wait = "the wait for it" if is_known else "its unknown wait"
    would_be = _would_be(instead, time_s, cost_usd)
    return f"if {wait} is longer than {format_duration(wait_s)} on average, {would_be}"


def by_step(*, instead: str, time_s: float, cost_usd: float | None, step_s: float, expected_s: float) -> str:
    """The time of a step from which on another is better."""
    than = _told_apart(step_s, expected_s)
    return f"if you measure more than {than} a step, {_would_be(instead, time_s, cost_usd)}"


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
    return f"with a deadline below {than} (--deadline), {_would_be(instead, time_s, cost_usd)}"


def by_data_place(
    *, instead: str, time_s: float, cost_usd: float | None, data_provider: str, data_region: str
) -> str:
    """The region that the data would have to lie in for a machine of it to be better."""
    return (
        f"if the data is in {data_region} of {data_provider} (--data), {_would_be(instead, time_s, cost_usd)}"
    )


def by_value(
    *, instead: str, time_s: float, cost_usd: float | None, value_usd_per_h: float, is_above: bool
) -> str:
    """The worth of an hour from which on another is better."""
    than = f"{'more' if is_above else 'less'} than {format_usd(value_usd_per_h)}"
    return f"if an hour is worth {than} (--value-of-time), {_would_be(instead, time_s, cost_usd)}"


def by_later_deadline(*, instead: str, time_s: float, cost_usd: float | None, from_s: float) -> str:
    """The deadline, later than the given one, from which on another is better."""
    would_be = _would_be(instead, time_s, cost_usd)
    return f"with a deadline of {format_duration(from_s)} or later (--deadline), {would_be}"


def by_objective(*, instead: str, time_s: float, cost_usd: float | None) -> str:
    """What the policy's pick goes before."""
    return f"if the policy's objective were the best value, {_would_be(instead, time_s, cost_usd)}"


def _would_be(instead: str, time_s: float, cost_usd: float | None) -> str:
    cost = "at a cost that is not configured" if cost_usd is None else f"for {format_usd(cost_usd)}"
    return f"{instead} would be recommended, {format_duration(time_s)} {cost}"


IN_SHORT: Words = {
    Code.MACHINE: machine,
    Code.NOTHING_TIPS: "nothing that is in doubt: no other option comes close",
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


def epoch_length_unknown(*, script: str, is_of_profiler: bool, has_loader: bool) -> str:
    """Why the length of an epoch is unknown, and what to give instead."""
    why = "its data has no length" if has_loader else "it uses no torch DataLoader"
    # What is made up in the place of data has the length that is given for it.
    instead = "; --samples N is the length of --fake-data" if has_loader else ""
    if is_of_profiler:
        why, instead = "a profile does not show it", ""
    return (
        f"how many iterations an epoch of {script!r} has is unknown ({why}): add --iterations-per-epoch N, or"
        f" give --iterations N instead of --epochs{instead}"
    )


ERRORS: Words = {
    Code.EPOCH_LENGTH_UNKNOWN: epoch_length_unknown,
    Code.NOTHING_TO_CHOOSE_FROM: (
        "there is nothing to choose from: no local GPU, no cluster and no offer matches. Widen --gpu,"
        " --provider, --region or --market, or give --local-gpu NAME"
    ),
    Code.TOO_MANY_EPOCHS: (
        "{epochs:,g} epochs of {iterations_per_epoch:,} iterations are more than {most_iterations:,}"
        " iterations: give fewer --epochs, or --iterations-per-epoch N where the epoch has no real end"
    ),
}
