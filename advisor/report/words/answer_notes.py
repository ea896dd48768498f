"""What is said of answers and options: in short, picks, notes, risks, prices, and two plans compared."""

import math
from datetime import datetime

from advisor.core.findings import about_answers, about_options, about_spending
from advisor.core.units import HOUR_S, format_duration, format_usd
from advisor.core.values import Layout, Recovery
from advisor.report.words.sentences import effort, in_names, named_work

# Between these odds of being the faster one, predictions do not tell two plans apart.
_UNSURE = (0.1, 0.9)


@in_names.register
def _(it: about_answers.Compared) -> str:
    time = _times(it.times_faster, format_duration(it.less_s), "faster")
    than = "dearer" if it.by == "trade" else "cheaper"
    cost = _times(it.times_in_cost, format_usd(it.cost_differs_by_usd or 0.0), than)
    match it.by:
        case "time-alone":
            known = f"{it.faster} is on average {time} than {it.slower}" if time else "A and B are as fast"
            told = f"{known}; what {' and '.join(it.unpriced)} costs is unknown, so time alone decides"
        case "trade":
            counted = _counted(it.change_usd, it.faster, it.slower)
            told = (
                f"{it.faster} is on average {time} and {cost} than {it.slower}{counted}: worth it where an"
                f" hour until the job is done is worth more than {format_usd(it.even_usd_per_h or 0.0)}. At"
                f" {format_usd(it.value_usd_per_h or 0.0)} (--value-of-time) take {it.take}"
            )
        case _:
            gains = " and ".join(filter(None, (time, cost)))
            counted = _counted(it.change_usd, it.slower, it.faster)
            told = (
                f"{it.faster} is on average {gains} than {it.slower}{counted}: take {it.faster}, whatever an"
                " hour is worth"
            )
    return f"{told}{_sure(it.p_sooner)}"


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


@in_names.register
def _(it: about_answers.CurveStops) -> str:
    machine, is_last = in_names(it.machine), it.next_num_gpus is None
    if it.usd_per_h_saved is None and is_last:
        return f"there is one number alone that does the job: {machine}"
    stops = (
        f"more GPUs pay up to the largest number there is, {machine}: the last step" if is_last
        else f"more GPUs stop paying after {machine}: the step to {it.next_num_gpus} GPUs"
    )  # fmt: skip
    if it.usd_per_h_saved is None:
        return f"{stops} saves no time"
    worth = f"an hour is worth {format_usd(it.value_usd_per_h)} (--value-of-time)"
    return f"{stops} {_price(it.usd_per_h_saved, it.change_usd)}, and {worth}"


def _price(usd_per_h_saved: float, change_usd: float) -> str:
    if usd_per_h_saved <= 0:
        return "saves money as well as time"
    return f"costs {format_usd(usd_per_h_saved)} for each hour that it saves{_counted(max(change_usd, 0.0))}"


def _counted(change_usd: float | None, dearer: str = "", cheaper: str = "") -> str:
    """The work for one of two plans that is in their difference of cost, and stands beside no rent."""
    if not change_usd:
        return ""
    plan = dearer if change_usd > 0 else cheaper
    place = f" for {plan}" if plan else ""
    return f" ({format_usd(abs(change_usd))} to change the script{place} counted)"


@in_names.register
def _(it: about_answers.Machine) -> str:
    gpus = Layout(gpus_per_node=it.num_gpus // it.num_nodes, num_nodes=it.num_nodes).of(it.gpu)
    if it.instance_type is not None:
        machines = it.instance_type if it.num_nodes == 1 else f"{it.num_nodes} x {it.instance_type}"
        return f"{gpus} ({it.provider} {machines} {it.place} {it.market})"
    return f"{gpus} ({'this machine' if it.tier == 'local' else f'cluster {it.provider}'})"


@in_names.register
def _(it: about_answers.SummaryChoice) -> str:
    days = it.price_age_days or 0.0
    age = f" ({days:.0f} d ago)" if days >= 1 else ""
    price = "" if it.priced_on is None else f", priced {it.priced_on}{age}"
    return f"{'Rent' if it.is_rented else 'Use'} {in_names(it.machine)}{price}"


@in_names.register
def _(it: about_answers.SummaryCostAndTime) -> str:
    count, taken = it.num_iterations, format_duration(it.num_iterations * it.iteration_s)
    steps = f"{count:,} step{'' if count == 1 else 's'} in {taken}"
    done, late = format_duration(it.time_p50_s), format_duration(it.time_p90_s)
    cost, most = format_usd(it.cost_p50_usd), format_usd(it.cost_p90_usd)
    # Both limits are at the p90 of their columns.
    price, under = f"Median {cost} (90 %: under {most}) and", f"under {late}"
    if not it.is_cost_known:
        price, under = "Unknown cost (counted as $0.00), median", f"90 %: under {late}"
    less = "" if it.is_whole else ", without what runs between steps (see the warning)"
    again = " and start again from zero when the machine is taken away" if it.restarts else ""
    return f"{price} {done} ({under}): {steps}{again}{less}"


@in_names.register
def _(it: about_answers.SummaryWork) -> str:
    lacking = ""
    if "checkpoints" in it.work:
        lacking = " (it saves some, but never resumes)" if it.saves else " (the script writes none)"
    return f"First: add {named_work(it.work)}{lacking}: {effort(it.work_usd, it.work_s)} (--explain 1)"


def _told_apart(longer_s: float, expected_s: float) -> tuple[str, str]:
    """Both times with so many digits, three at least, that one reads as longer."""
    unit, size = ("ms", 1e3) if longer_s < 1 else ("s", 1.0)
    for digits in range(3, 10):
        longer, expected = (f"{seconds * size:.{digits}g} {unit}" for seconds in (longer_s, expected_s))
        if longer != expected:
            break
    return longer, expected


@in_names.register
def _(it: about_answers.EpochLengthUnknown) -> str:
    why = "its data has no length" if it.has_loader else "it uses no torch DataLoader"
    # What is made up in the place of data has the length that is given for it.
    instead = "; --samples N is the length of --fake-data" if it.has_loader else ""
    if it.is_of_profiler:
        why, instead = "a profile does not show it", ""
    return (
        f"how many iterations an epoch of {it.script!r} has is unknown ({why}): add --iterations-per-epoch N,"
        f" or give --iterations N instead of --epochs{instead}"
    )


@in_names.register
def _(it: about_answers.Tipping) -> str:
    cost = "at a cost that is not configured" if it.cost_usd is None else f"for {format_usd(it.cost_usd)}"
    after = f" after {named_work(it.work)}" if it.work else ""
    condition = _of_checkpoints(it) if it.by == "checkpoints" else _condition(it)
    return f"{condition}, take {in_names(it.instead)}: {format_duration(it.time_s)} {cost}{after}"


def _of_checkpoints(it: about_answers.Tipping) -> str:
    if it.is_known:
        return f"if {it.script} resumed from checkpoints (--checkpoints resumes)"
    return f"if {it.script} saves no checkpoints (--checkpoints none)"


def _condition(it: about_answers.Tipping) -> str:
    usd_per_h, limit = format_usd(it.usd_per_h), format_duration(it.limit_s)
    match it.by:
        case "price":
            counted = format_usd(it.quoted_usd_per_h)
            if usd_per_h == counted:
                usd_per_h, counted = f"${it.usd_per_h:.4f}", f"${it.quoted_usd_per_h:.4f}"
            return f"if it costs more than {usd_per_h} an hour when you rent (counted: {counted})"
        case "quote":
            return f"if a quote for another falls below {usd_per_h} an hour"
        case "value":
            return (
                f"if an hour is worth {'more' if it.is_above else 'less'} than {usd_per_h} (--value-of-time)"
            )
        case "wait":
            wait = "the wait for it" if it.is_known else "its unknown wait"
            return f"if {wait} is longer than {limit} on average"
        case "step":
            longer, expected = _told_apart(it.limit_s, it.expected_s)
            return f"if you measure more than {longer} a step on it (predicted: {expected})"
        case "deadline":
            return f"if it must end within less than {limit}, with a chance of 90 % (--deadline)"
        case "later-deadline":
            return f"if it may take {limit} or longer (--deadline)"
        case "data-place":
            return f"if the data is in {it.data_region} of {it.data_provider} (--data)"
        case _:
            return "if the policy's objective were the best value"


# Below, a difference would read "0 s" or "$0.00".
_LEAST_S, _LEAST_USD = 0.5, 0.005
_MOST_GPUS = 3
_RISKS = {"capacity": "capacity not checked", "none": "none known", "wait": "wait"}


@in_names.register
def _(it: about_options.Alike) -> str:
    times = {"faster": it.faster_s, "slower": it.slower_s}
    parts = [f"up to {format_duration(s)} {than}" for than, s in times.items() if s >= _LEAST_S]
    sums = {"cheaper": it.cheaper_usd, "dearer": it.dearer_usd}
    parts += [f"up to {format_usd(usd)} {than}" for than, usd in sums.items() if usd >= _LEAST_USD]
    text = ", ".join([f"{it.num_options:,} like it", *parts])
    if not it.num_of_other_gpus:
        return text
    unnamed = len(it.other_gpus) - _MOST_GPUS
    names = [*it.other_gpus[:_MOST_GPUS], *([f"{unnamed} more"] if unnamed > 0 else [])]
    return f"{text}; {it.num_of_other_gpus:,} of them on other GPUs: {', '.join(names)}"


@in_names.register
def _(it: about_options.Reading) -> str:
    if it.of == "once":
        return (
            f"{it.gib:,.10g} GiB of data are read once at each start, in {format_duration(it.time_s)}"
            " (assumed): the machine's memory holds them after that"
        )
    if it.of == "local-copy":
        return (
            f"{it.gib:,.10g} GiB of data are copied to the machine's own disks at each start, in"
            f" {format_duration(it.time_s)}, and read there in {format_duration(it.read_s)} per iteration"
            " (assumed): over its network each epoch may take longer"
        )
    if it.by_disk:
        return (
            f"reading {it.gib:,.10g} GiB each epoch takes {format_duration(it.read_s)} per iteration at"
            f" {it.bytes_per_s / 1e6:,.0f} MB/s, what its disk gives unless more is paid for"
        )
    giver = "object storage gives one machine" if it.by_storage else "its network gives"
    return (
        f"reading {it.gib:,.10g} GiB each epoch takes {format_duration(it.read_s)} per iteration at"
        f" {it.bytes_per_s / 1e9:.2g} GB/s, half of the {it.bits_per_s / 1e9:,.3g} Gbit/s that {giver}"
        " (assumed)"
    )


@in_names.register
def _(it: about_options.DataMoved) -> str:
    if not it.gib:
        return f"the data set ({it.place}) is in this region: moving it costs nothing"
    paid = f" for {format_usd(it.usd)}" if it.usd else ""
    return (
        f"{it.gib:,.10g} GiB of data come from {it.place}{paid} in {format_duration(it.time_s)}, once a run"
    )


@in_names.register
def _(it: about_options.GlobalBatchHeld) -> str:
    how = {"given": "as you said", "seen": "as two profiles show"}[it.source]
    batch = (
        "its global batch"
        if it.global_batch_size is None
        else f"its global batch of {it.global_batch_size:,}"
    )
    each = "" if it.batch_size is None else f", {it.batch_size:,} a GPU"
    return f"the script holds {batch}{each}, {how}: its steps do not get fewer"


@in_names.register
def _(it: about_options.LaterStart) -> str:
    start = datetime.fromisoformat(it.start_at)
    return (
        f"a start {it.delay_h} h later ({start:%H:%M} {start.tzname()}) was cheaper over the last"
        f" {it.num_days} days: {format_usd(it.saving_usd)} less than {format_usd(it.usd)} on average, give or"
        f" take {format_usd(it.spread_usd)} from day to day"
    )


@in_names.register
def _(it: about_options.RentOrWait) -> str:
    at, renting = f"at ${it.value_usd_per_h:g}/h", f"instead of {it.own_id}, renting {it.rented_id} pays"
    if it.break_even_wait_s <= 0:
        return f"{renting} even without a wait {at}"
    known = "unknown" if it.mean_wait_s is None else f"{format_duration(it.mean_wait_s)} on average"
    least = format_duration(it.break_even_wait_s)
    return f"{renting} once the wait exceeds {least} {at}; the wait is {known}"


@in_names.register
def _(it: about_options.Tie) -> str:
    return f"tie with {it.plan_id}: within {it.within_share * 100:g} % in time and cost"


def basis(*, num_jobs: int, size: str | None, size_unit: str, walltime: str | None, queue: str | None) -> str:
    """Which jobs a wait was taken from: ``"812 jobs of 4..7 gpus, walltime <=12h"``."""
    parts = [] if size is None else [f"of {size} {size_unit}"]
    parts += [] if walltime is None else [f"walltime {walltime}"]
    parts += [] if queue is None else [f"queue {queue!r}"]
    return f"{num_jobs:,} jobs {', '.join(parts) or 'of any kind'}"


def _amount(what: str, amount: float) -> str:
    if what == "time":
        return format_duration(amount)
    if what == "gpu-time":
        return f"{amount / HOUR_S:,.10g} GPU hours"
    noun = "GPU" if what == "gpus" else what.removesuffix("s")
    return f"{amount:,.10g} {noun}{'' if amount == 1 else 's'}"


@in_names.register
def _(it: about_options.RemovedByQueue) -> str:
    most, asked, split = _amount(it.what, it.most), _amount(it.what, it.asked), ""
    if it.what == "jobs":  # one is more than none alone
        return f"it does not start now: {it.of} takes no jobs ({it.name})"
    if it.what == "time" and it.most > 0:
        split = f"; split it into {math.ceil(it.asked / it.most)} jobs that go on from a checkpoint"
    return f"above a limit of the queue: {it.of} allows {most} ({it.name}), and it asks for {asked}{split}"


@in_names.register
def _(it: about_options.QueueShared) -> str:
    most, asked, in_use = (_amount(it.what, one) for one in (it.most, it.asked, it.in_use))
    return (
        f"{it.of} allows {most} at once ({it.name}), {in_use} {'is' if it.in_use == 1 else 'are'}"
        f" in use, and it asks for {asked}: it waits for jobs that share this limit"
    )


@in_names.register
def _(it: about_options.WaitOfLog) -> str:
    jobs = basis(
        num_jobs=it.num_jobs, size=it.size, size_unit=it.size_unit, walltime=it.walltime, queue=it.queue
    )
    now = "" if it.num_waiting is None else f"; {it.num_waiting:,} jobs waited there within the last hour"
    return f"wait from {jobs}{now}"


@in_names.register
def _(it: about_answers.BestOfTotal) -> str:
    cost, time = format_usd(it.cost_usd), format_duration(it.time_s)
    whole = (
        f"the least expected cost and time at ${it.value_usd_per_h:g}/h, work on the script counted: {cost}"
        f" and {time} on average"
    )
    if it.work:
        whole += f", and {effort(it.change_usd, it.change_s)} for {named_work(it.work)}"
    return whole + (", at the p90 of a price that was never quoted" if it.is_price_derived else "")


@in_names.register
def _(it: about_answers.Cheapest) -> str:
    guess = ", where a price that was never quoted counts at its p90" if it.is_guess_below else ""
    counted = ", work on the script counted" if it.work or it.is_rent_below else ""
    more = f" ({format_usd(it.change_usd)} for {named_work(it.work)})" if it.work else ""
    return f"the least median cost{counted}{more}{guess}{_if_unknown(it.is_cost_known)}"


@in_names.register
def _(it: about_answers.Fastest) -> str:
    return f"the least median time{f', once it has {named_work(it.work)}' if it.work else ''}"


@in_names.register
def _(it: about_answers.Safest) -> str:
    held = f"{' and '.join(it.limits)} met with p {it.p_met:.2f}, " if it.limits else ""
    can = "can be preempted" if it.is_preemptible else "is not preempted"
    least = f"the least cost at p90: {format_usd(it.cost_p90_usd)}{_if_unknown(it.is_cost_known)}"
    return f"{held}{can}, {least}"


def _if_unknown(is_cost_known: bool) -> str:
    return "" if is_cost_known else ", which is unknown and counts as 0"


@in_names.register
def _(it: about_options.Risk) -> str:
    if it.of != "preemption":
        return _RISKS[it.of]
    gang = f" of any of {it.num_nodes} nodes, which stops all" if it.num_nodes > 1 else ""
    times = (
        f", {it.times_of_one:.2g} times (assumed) that of one node, which is" if it.times_of_one > 1 else ""
    )
    dearer = ""
    if it.price_rise is not None:
        dearer = f"; 1 in 10 such prices comes to {it.price_rise:.2f} times the median or more"
    source = "" if it.rate_source is None else in_names(it.rate_source)
    rate = f"preemption{gang}, {it.preemptions_per_h:.3g} per hour{times} {source}{dearer}"
    zones = "the other zone" if it.num_zones == 1 else f"one of {it.num_zones} other zones"
    moves = f"; when preempted, moves to {zones} of the region" if it.num_zones else ""
    on_demand = "; continues on demand where spot would miss the deadline"
    return f"{rate}{moves}{on_demand if Recovery(it.recovery).falls_back else ''}"


@in_names.register
def _(it: about_spending.PricesNotLive) -> str:
    some = "" if it.num_dated == it.num_prices else f"{it.num_dated} of {it.num_prices} "
    spans = "; ".join(
        f"{age['provider']} {_span(age['newest_days'], age['oldest_days'])} days old"
        f" ({_span(age['oldest_on'], age['newest_on'])})"
        for age in it.ages
    )
    way = "; `advisor prices refresh` pulls newer ones and needs no account" if it.is_public else ""
    return f"{some}prices are not live: {spans}{way}"


def _span(low: str | int, high: str | int) -> str:
    return str(low) if low == high else f"{low} to {high}"


@in_names.register
def _(it: about_spending.PricesStale) -> str:
    rest = it.num_machines - len(it.examples)
    named = ", ".join(it.examples) + (f" and {rest} more" if rest else "")
    what = "stand in, of the day that they show" if it.is_kept else "are older than allowed and left out"
    return (
        f"the last pull could not price {named}: {it.num_prices} stale prices of {', '.join(it.sources)}"
        f" {what}; `advisor prices sources` says why"
    )
