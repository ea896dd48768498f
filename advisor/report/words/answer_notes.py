"""What is said of a whole answer: in short, two plans compared, what was left out, why there is none."""

from advisor.core.findings import about_answers
from advisor.core.units import format_duration, format_usd
from advisor.core.values import Layout
from advisor.report.words.sentences import effort, in_names, named_work

# Between these odds of being the faster one, predictions do not tell two plans apart.
_UNSURE = (0.1, 0.9)


@in_names.register
def _(it: about_answers.Compared) -> str:
    time = _times(it.times_faster, format_duration(it.less_s), "faster")
    cost = _times(
        it.times_in_cost, format_usd(it.cost_differs_by_usd), "dearer" if it.by == "trade" else "cheaper"
    )
    match it.by:
        case "time-alone":
            than = f"{it.faster} is on average {time} than {it.slower}" if time else "A and B are as fast"
            told = f"{than}; what {' and '.join(it.unpriced)} costs is unknown, so time alone decides"
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


def _counted(change_usd: float, dearer: str = "", cheaper: str = "") -> str:
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
