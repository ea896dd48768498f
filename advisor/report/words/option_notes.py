"""What is said of options: notes, picks, risks and prices."""

from datetime import datetime

from advisor.core.findings import about_answers, about_options, about_spending
from advisor.core.units import format_bytes, format_duration, format_usd
from advisor.core.values import Recovery
from advisor.report.words.sentences import TEXTS, effort, in_names, named_work

# Below, a difference would read "0 s" or "$0.00".
_LEAST_S, _LEAST_USD = 0.5, 0.005
_MOST_GPUS = 3


@in_names.register
def _(it: about_options.QuotaNeeded) -> str:
    amount, quota = f"{it.count} {it.unit}", f"{it.quota} ({it.name})"
    if it.most is None:
        start = "New accounts start with little or none"
        return (
            f"needs a quota of {amount} in {it.region}: {quota}. {start}: request it from {it.provider} first"
        )
    has = f"your account may start {it.most} {it.unit} of these in {it.region} (read {it.read_on})"
    return f"{has}, and this needs {it.count}: request {amount} of {quota} from {it.provider} first"


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
def _(it: about_options.GangAssumed) -> str:
    finds = (
        "" if it.p_at_once is None else f"{100 * it.p_at_once:.0f} % of starts find all of them at once, and "
    )
    return (
        f"{it.num_nodes} nodes must be there at once: assumed that {finds}the wait is {it.times_of_one:.2g}"
        " times that for one"
    )


@in_names.register
def _(it: about_options.RateUnknown) -> str:
    at = f"{it.provider} {it.region}" if it.region else f"an unknown region of {it.provider}"
    return (
        f"no rate of {it.line} is known for {at}: it counts at ${it.usd:g} per {it.unit}, the dearest known"
        f" ({it.dearest_provider} {it.dearest_region})"
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
def _(it: about_options.RestartsFromZero) -> str:
    why = "does not resume from its checkpoints" if it.saves else "saves no checkpoints"
    return f"{it.script} {why}: each preemption starts it again from zero, which time and cost include"


@in_names.register
def _(it: about_options.ScalingAssumed) -> str:
    batch = "its profiled batch (of unknown size)" if it.batch_size is None else f"{it.batch_size:,} samples"
    return (
        f"assumed that each of {it.num_gpus} GPUs takes {batch} a step, which makes steps fewer or more:"
        " set --scaling strong if the script holds its global batch instead"
    )


@in_names.register
def _(it: about_options.GpuInUse) -> str:
    if it.busy_share is not None:
        return f"GPU {it.gpu_index} is in use: {100 * it.busy_share:.0f} % busy"
    used, total = format_bytes(it.used_bytes or 0), format_bytes(it.memory_bytes or 0)
    return f"GPU {it.gpu_index} is in use: {used} of its {total} are taken"


@in_names.register
def _(it: about_options.LaterStart) -> str:
    start = datetime.fromisoformat(it.start_at)
    return (
        f"a start {it.delay_h} h later ({start:%H:%M} {start.tzname()}) was cheaper over the last"
        f" {it.num_days} days: {format_usd(it.saving_usd)} less than {format_usd(it.usd)} on average, give or"
        f" take {format_usd(it.spread_usd)} from day to day"
    )


@in_names.register
def _(it: about_options.NearTie) -> str:
    costs = "costs less" if it.is_on_frontier else "costs no more"
    return f"near tie in time: {it.plan_id} {costs} and is done sooner with probability {it.p_slower:.2f}"


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


@in_names.register
def _(it: about_options.WaitOfLog) -> str:
    jobs = basis(
        num_jobs=it.num_jobs, size=it.size, size_unit=it.size_unit, walltime=it.walltime, queue=it.queue
    )
    now = "" if it.num_waiting is None else f"; {it.num_waiting:,} jobs waited there within the last hour"
    return f"wait from {jobs}{now}"


@in_names.register
def _(it: about_options.PlaceContended) -> str:
    if it.is_taken_back:
        return "AWS takes back more than 20 % of these machines a month here: starts are assumed to be rare"
    return (
        "the quote is near the least that the provider asks, where there may be no machines: starts are"
        " assumed to be rare"
    )


@in_names.register
def _(it: about_options.QueueAssumed) -> str:
    asking = "" if it.walltime is None else f" asking for {it.walltime}"
    return (
        f"wait assumed: that of {it.num_jobs:,} jobs of {it.size} GPUs or nodes{asking} on {it.num_logs}"
        " other clusters; no deadline relies on it (set wait_p50 and wait_p90, or wait_log)"
    )


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
def _(it: about_options.RiskPreemption) -> str:
    gang = f" of any of {it.num_nodes} nodes, which stops all" if it.num_nodes > 1 else ""
    times = (
        f", {it.times_of_one:.2g} times (assumed) that of one node, which is" if it.times_of_one > 1 else ""
    )
    dearer = ""
    if it.price_rise is not None:
        dearer = f"; 1 in 10 such prices comes to {it.price_rise:.2f} times the median or more"
    rate = f"preemption{gang}, {it.preemptions_per_h:.3g} per hour{times} {in_names(it.rate_source)}{dearer}"
    zones = "the other zone" if it.num_zones == 1 else f"one of {it.num_zones} other zones"
    moves = f"; when preempted, moves to {zones} of the region" if it.num_zones else ""
    on_demand = "; continues on demand where spot would miss the deadline"
    return f"{rate}{moves}{on_demand if Recovery(it.recovery).falls_back else ''}"


@in_names.register
def _(it: about_options.RatePublished) -> str:
    return (
        f"{'floor' if it.is_floor else 'assumed'}; {it.source} of {it.as_of}: {it.low_pct} to {it.high_pct} %"
        f" of machines taken back in a month, at least {it.least_preemptions_per_h:.1g} per hour"
    )


@in_names.register
def _(it: about_spending.PricesImplausible) -> str:
    prices = f"{it.num_prices} {'price' if it.num_prices == 1 else 'prices'} of {it.source}"
    if it.is_kept:
        return f"{prices} far from what such machines cost elsewhere, taken as they are: {it.examples}"
    return f"{prices} that no such machine can have left out: {it.examples}"


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


TEXTS[about_options.TimedOnCpu] = (
    "this machine's CPU ({cpu}, {num_vcpus} threads): {num_steps} steps were timed on it"
)
TEXTS[about_options.Unknown] = {
    "hourly-cost": "no hourly cost is configured for {names}: counted as $0, which flatters it",
    "cluster-wait": (
        "no wait is configured for {names}: assumed from job logs of other clusters, and no deadline"
        " relies on it (set wait_p50 and wait_p90, or wait_log)"
    ),
    "gpu": "the catalog does not know {names}: offers with it are left out",
    "price-date": "prices of {names} are dated after today: check the clock",
    "operator": "custom operators, only their bytes are known: {names}",
    "cost": "cost unknown: no hourly cost is configured, so it is counted as $0.00",
    "wait": "wait unknown: neither configured nor measured, so it is counted as 0",
    "memory": "memory unknown: the profile does not show how much the script needs",
    "memory-of-profile": "memory: the profile does not show how much the script needs, so nothing was"
    " excluded",
    "loading": "loading takes less than 1 ms per iteration, too little to time, and is not counted: an"
    " iteration as short as this one may wait for it",
    "gradients": "data parallel: the size of the gradients is unknown and their exchange not counted; record"
    " with record_shapes=True",
    "wave-resources": "wave scaling: registers or shared memory of some kernels are unknown, so they are"
    " taken not to limit occupancy",
    "reading": "how many iterations an epoch has is unknown: what reading the data set takes is not counted",
    "sharing": "no DataLoader shows how several GPUs would share a step: they count as no faster than one."
    " Set --scaling weak if each takes a batch of its own",
    "local-wait": "GPUs of this machine are in use: the wait until they are free counts as 0",
    "data-place": "data set location unknown: assumed to be outside the clouds, from where transfer is not"
    " billed (set --data)",
    "data-size": "data set size unknown: copying, storing and reading it are not included (set --dataset-gb"
    " N; 0 if nothing is copied)",
    "curve-cost": "what an hour of these GPUs costs is unknown, and so is where more of them stop paying",
    "calibration": "calibrated with networks of another version, so not corrected: run advisor calibrate"
    " again",
    "board": "not measured: learned from the boards nearest in power limit and generation, with a wider"
    " interval",
    "price": "no price matches these limits: see `advisor prices`",
}

TEXTS[about_options.WaitUnsure] = {
    "any-size": "the log has fewer than {enough_jobs} jobs of this size: the wait is that of all sizes",
    "other-unit": "the log counts {size_unit}, not GPUs: this is the wait of size {size:g}",
    "surge": "the queue is in a surge: its p90 wait is {times:.2g} times that of before, which counts here;"
    " it may grow or end",
}

TEXTS[about_options.Risk] = {"capacity": "capacity not checked", "none": "none known", "wait": "wait"}

TEXTS |= {
    about_options.CopiedLocally: "{gib:,.10g} GiB of data are copied to the machine's own disks at each"
    " start, in {time_s:duration}, and read there in {read_s:duration} per iteration (assumed): over its"
    " network each epoch may take longer",
    about_options.ReadOnce: "{gib:,.10g} GiB of data are read once at each start, in {time_s:duration}"
    " (assumed): the machine's memory holds them after that",
    about_options.RemovedByHostMemory: "does not fit on its host: loading needs {needed_bytes:bytes} of the"
    " machine's memory (assumed), and it has {available_bytes:bytes}; take a larger machine of these GPUs",
    about_options.HostMemoryTight: "the machine's memory may not do: loading needs {needed_bytes:bytes}, in"
    " one of ten cases {needed_p90_bytes:bytes} (assumed), and it has {available_bytes:bytes}",
    about_options.MemoryTight: "may not fit: needs {needed_bytes:bytes}, in one of ten cases"
    " {needed_p90_bytes:bytes}, and the GPU has {available_bytes:bytes}",
    about_options.WaitAssumed: "wait assumed: {p_at_once:percent} of starts find a machine at once, half of"
    " the others within {later_p50_s:duration}, 9 of 10 of them within {later_p90_s:duration} ({basis} from"
    " {num_traces} {source}, {as_of})",
    about_options.WaitOfStarts: "wait from your log of {watched_h:,.0f} h: {p_at_once:percent} of starts"
    " find a machine at once",
    about_options.ApprovalNeeded: "needs approval by {by}: {detail} ({file})",
    about_options.CommunityHost: "community host: a third party's machine listed on {provider}; speed and"
    " security depend on its owner, so bring no secrets",
    about_options.PriceDerived: "price never quoted, {source}: it counts at its p90",
    about_answers.CostOfPickUnknown: "{rule}; what it costs is unknown",
    about_answers.ObjectiveOfPolicy: "the policy's objective: {reason}",
    about_options.RateAssumed: "assumed ({basis} from {num_traces} {source}, {as_of})",
    about_options.RateConfigured: "configured",
    about_options.RateOfLog: "by your log ({num_preemptions} in {up_h:,.0f} h), as far as it shows",
    about_spending.GpuFamily: "{name} is a family: taken as {gpus}",
    about_spending.PricesComputed: "{num_computed} of {num_prices} prices were never quoted but computed from"
    " others; their source begins with {source_begins!r}",
}
