"""What a team's report says of savings, of leaks, and of what is unknown."""

from advisor.core.findings import about_spending
from advisor.core.units import format_duration, format_usd
from advisor.report.words.sentences import in_names


def counted(num: int, what: str = "run") -> str:
    """A number of things.

    >>> counted(1), counted(1200, "charge")
    ('1 run', '1,200 charges')
    """
    return f"{num:,} {what}{'' if num == 1 else 's'}"


def at_least(amount: str, num_unknown: int, *, of: int) -> str:
    """What so many runs cost together, the cost of some of them not being known.

    >>> at_least("$4", 0, of=3), at_least("$4", 1, of=3), at_least("$0", 3, of=3)
    ('$4', 'at least $4', 'unknown')
    """
    if 0 < of == num_unknown:
        return "unknown"
    return f"{'at least ' if num_unknown else ''}{amount}"


def _cost(usd: float, num_unknown: int, num_runs: int) -> str:
    cost = at_least(format_usd(usd), num_unknown, of=num_runs)
    return "an unknown amount" if cost == "unknown" else cost


@in_names.register
def _(it: about_spending.SavingFound) -> str:
    whose = f" of {it.project}" if it.project else ""
    machine = f"{it.num_gpus} x {it.gpu}" if it.num_gpus > 1 else it.gpu
    kept = (
        "no deadline is recorded"
        if it.deadline_s is None
        else f"still before its deadline of {format_duration(it.deadline_s)}"
    )
    return (
        f"the {it.rhythm} job {it.script}{whose} is {it.share:.0%} cheaper on {machine} in {it.place}"
        f" ({it.market}): {format_usd(it.usd)} instead of {format_usd(it.now_usd)} a run, within"
        f" {format_duration(it.time_p90_s)} at p90, {kept}"
    )


@in_names.register
def _(it: about_spending.SpendJump) -> str:
    whose = it.project or "what names no project"
    made = f"run {it.maker}" if it.is_run else f"billed for {it.maker}"
    return (
        f"{it.day}: {format_usd(it.usd)} for {whose}, more than twice any of the 28 days before (usually"
        f" {format_usd(it.usual_usd)}); most of it {made}, {format_usd(it.maker_usd)}"
    )


@in_names.register
def _(it: about_spending.LeftOut) -> str:
    num_more = it.num_left_out - len(it.first)
    more = f"; and {num_more:,} more" if num_more else ""
    what, why = (
        ("record", "cannot be true") if it.num_read is None
        else ("row", f"cannot be read, beside {it.num_read:,} that could")
    )  # fmt: skip
    unknown = f", {it.num_unknown:,} of unknown amount" if it.num_unknown else ""
    amount = "" if it.usd is None else f" ({'-' if it.usd < 0 else ''}${abs(it.usd):,.2f} in all{unknown})"
    left_out = counted(it.num_left_out, what)
    return f"{it.where}: {left_out} left out that {why}{amount}: {'; '.join(it.first)}{more}"


@in_names.register
def _(it: about_spending.ChargesDoubtful) -> str:
    match it.why:
        case "overlap":
            return (
                f"{' and '.join(it.bills)} both cover {it.provider} on {counted(it.num_days, 'day')}: unless"
                " they are of different accounts, these charges count twice"
            )
        case "untagged":
            return (
                f"{format_usd(it.usd or 0.0)} of charges name no project, so they count for no team"
                " (report.project_tag)"
            )
        case "other-currency":
            return (
                f"{counted(it.num_charges, 'charge')} in {it.currency}, {it.amount:,.2f} in all,"
                f" {_were(it.num_charges)} not converted and {'is' if it.num_charges == 1 else 'are'} not"
                " included"
            )


@in_names.register
def _(it: about_spending.RunCostsUnknown) -> str:
    num_more = it.num_runs - len(it.runs)
    some = f"{', '.join(it.runs)}{f' and {num_more:,} more' if num_more else ''}"
    return f"the cost of {counted(it.num_runs)} is not known and not included: {some}"


def _were(num: int) -> str:
    return "was" if num == 1 else "were"


@in_names.register
def _(it: about_spending.Leak) -> str:
    runs, cost = counted(it.num_runs), _cost(it.usd, it.num_unknown, it.num_runs)
    mostly = f" (most of it: {', '.join(it.scripts)})" if it.scripts else ""
    match it.of:
        case "idle":
            explained = f"{runs} explain{'s' if it.num_runs == 1 else ''} all but {format_usd(it.usd)}"
            return (
                f"{it.provider} {it.instance_type} cost {format_usd(it.amortised_usd)} (amortised), and"
                f" {explained if it.num_runs else 'no run explains any of it'}: machines that were left on,"
                " or runs that were not recorded"
            )
        case "unused":
            unnamed = it.num_commitments - len(it.commitments)
            more = f" and {unnamed} more" if unnamed else ""
            names = f" ({', '.join(it.commitments)}{more})" if it.commitments else ""
            return (
                f"{format_usd(it.usd)} of commitments was paid and not used, {it.share_of_commitments:.0%} of"
                f" them{names}: move steady jobs onto them, or let them expire"
            )
        case "failed":
            return f"{runs} failed and cost {cost}{mostly}"
        case "interrupted":
            return f"{runs} {_were(it.num_runs)} interrupted and cost {cost}{mostly}"
        case "lost":
            return f"{runs} ended unseen, for {cost}{mostly}"
        case "unadvised":
            advice = "`advisor recommend --record` gives one"
            return f"{runs} for {cost} followed no recommendation{mostly}: {advice}"
        case _:
            return f"{runs} cost more than predicted at p90, by {format_usd(it.usd)}{mostly}"
