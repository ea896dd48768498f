"""What is said of options: notes, picks, risks and prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from advisor.core.findings import Code
from advisor.core.units import format_bytes, format_duration, format_usd
from advisor.report.words.table import Words

# Below, a difference would read "0 s" or "$0.00".
_LEAST_S, _LEAST_USD = 0.5, 0.005
_MOST_GPUS = 3


def alike(
    *,
    num_options: int,
    num_of_other_gpus: int,
    other_gpus: Sequence[str],
    faster_s: float,
    slower_s: float,
    cheaper_usd: float,
    dearer_usd: float,
) -> str:
    """How far the options that a row speaks for lie from it, and which are of other GPUs."""
    times = {"faster": faster_s, "slower": slower_s}
    parts = [f"up to {format_duration(s)} {than}" for than, s in times.items() if s >= _LEAST_S]
    sums = {"cheaper": cheaper_usd, "dearer": dearer_usd}
    parts += [f"up to {format_usd(usd)} {than}" for than, usd in sums.items() if usd >= _LEAST_USD]
    text = ", ".join([f"{num_options:,} like it", *parts])
    if not num_of_other_gpus:
        return text
    unnamed = len(other_gpus) - _MOST_GPUS
    names = [*other_gpus[:_MOST_GPUS], *([f"{unnamed} more"] if unnamed > 0 else [])]
    return f"{text}; {num_of_other_gpus:,} of them on other GPUs: {', '.join(names)}"


def reading(
    *, gib: float, read_s: float, bytes_per_s: float, bits_per_s: float, by_storage: bool, by_disk: bool
) -> str:
    """What reading the data set over the network takes, by the disk's rate or an assumed share of another."""
    if by_disk:
        return (
            f"reading {gib:,.10g} GiB each epoch takes {format_duration(read_s)} per iteration at"
            f" {bytes_per_s / 1e6:,.0f} MB/s, what its disk gives unless more is paid for"
        )
    giver = "object storage gives one machine" if by_storage else "its network gives"
    return (
        f"reading {gib:,.10g} GiB each epoch takes {format_duration(read_s)} per iteration at"
        f" {bytes_per_s / 1e9:.2g} GB/s, half of the {bits_per_s / 1e9:,.3g} Gbit/s that {giver} (assumed)"
    )


def copied_locally(*, gib: float, time_s: float, read_s: float) -> str:
    """What is done before training and what reading takes from then on, by assumed rates."""
    return (
        f"{gib:,.10g} GiB of data are copied to the machine's own disks at each start, in"
        f" {format_duration(time_s)}, and read there in {format_duration(read_s)} per iteration (assumed):"
        " over its network each epoch may take longer"
    )


def read_once(*, gib: float, time_s: float) -> str:
    """What the machine's memory keeps."""
    return (
        f"{gib:,.10g} GiB of data are read once at each start, in {format_duration(time_s)} (assumed): the"
        " machine's memory holds them after that"
    )


def data_moved(*, place: str, gib: float, usd: float, time_s: float) -> str:
    """Once a run: the disk is kept while a spot machine is away."""
    paid = f" for {format_usd(usd)}" if usd else ""
    return f"{gib:,.10g} GiB of data come from {place}{paid} in {format_duration(time_s)}, once a run"


def gang_assumed(*, num_nodes: int, p_at_once: float | None, times_of_one: float) -> str:
    """What nobody logged: how machines that must all be there hang together."""
    finds = "" if p_at_once is None else f"{100 * p_at_once:.0f} % of starts find all of them at once, and "
    return (
        f"{num_nodes} nodes must be there at once: assumed that {finds}the wait is {times_of_one:.2g} times"
        " that for one"
    )


def rate_unknown(
    *,
    line: str,
    provider: str,
    region: str | None,
    usd: float,
    unit: str,
    dearest_provider: str,
    dearest_region: str,
) -> str:
    """What stands in for a rate that nobody knows."""
    at = f"{provider} {region}" if region else f"an unknown region of {provider}"
    return (
        f"no rate of {line} is known for {at}: it counts at ${usd:g} per {unit}, the dearest known"
        f" ({dearest_provider} {dearest_region})"
    )


def global_batch_held(*, source: str, global_batch_size: int | None, batch_size: int | None) -> str:
    """Steps stay as they are, whatever the number of GPUs."""
    how = {"given": "as you said", "seen": "as two profiles show"}[source]
    batch = "its global batch" if global_batch_size is None else f"its global batch of {global_batch_size:,}"
    each = "" if batch_size is None else f", {batch_size:,} a GPU"
    return f"the script holds {batch}{each}, {how}: its steps do not get fewer"


def scaling_assumed(*, batch_size: int | None, num_gpus: int) -> str:
    """What the number of steps rests on."""
    batch = "its profiled batch (of unknown size)" if batch_size is None else f"{batch_size:,} samples"
    return (
        f"assumed that each of {num_gpus} GPUs takes {batch} a step, which makes steps fewer or more:"
        " set --scaling strong if the script holds its global batch instead"
    )


def gpu_busy(*, gpu_index: int, busy_share: float) -> str:
    """Somebody computes on it."""
    return f"GPU {gpu_index} is in use: {100 * busy_share:.0f} % busy"


def memory_tight(*, needed_bytes: float, needed_p90_bytes: float, available_bytes: float) -> str:
    """By how much it may not fit after all."""
    need, most, has = map(format_bytes, (needed_bytes, needed_p90_bytes, available_bytes))
    return f"may not fit: needs {need}, in one of ten cases {most}, and the GPU has {has}"


def gpu_memory_taken(*, gpu_index: int, used_bytes: float, memory_bytes: float) -> str:
    """Somebody's data is on it."""
    used, total = format_bytes(used_bytes), format_bytes(memory_bytes)
    return f"GPU {gpu_index} is in use: {used} of its {total} are taken"


def later_start(
    *, delay_h: int, start_at: str, saving_usd: float, spread_usd: float, usd: float, num_days: int
) -> str:
    """Prices of the past promise nothing: it says what they were."""
    start = datetime.fromisoformat(start_at)
    return (
        f"a start {delay_h} h later ({start:%H:%M} {start.tzname()}) was cheaper over the last {num_days}"
        f" days: {format_usd(saving_usd)} less than {format_usd(usd)} on average, give or take"
        f" {format_usd(spread_usd)} from day to day"
    )


def near_tie(*, plan_id: str, p_slower: float, is_on_frontier: bool) -> str:
    """Predictions do not tell two options apart; on the frontier, the other one is the next cheaper one."""
    costs = "costs less" if is_on_frontier else "costs no more"
    return f"near tie in time: {plan_id} {costs} and is done sooner with probability {p_slower:.2f}"


def rent_or_wait(
    *,
    own_id: str,
    rented_id: str,
    value_usd_per_h: float,
    break_even_wait_s: float,
    mean_wait_s: float | None,
) -> str:
    """From which wait on renting pays."""
    at, renting = f"at ${value_usd_per_h:g}/h", f"instead of {own_id}, renting {rented_id} pays"
    if break_even_wait_s <= 0:
        return f"{renting} even without a wait {at}"
    known = "unknown" if mean_wait_s is None else f"{format_duration(mean_wait_s)} on average"
    least = format_duration(break_even_wait_s)
    return f"{renting} once the wait exceeds {least} {at}; the wait is {known}"


def tie(*, plan_id: str, within_share: float) -> str:
    """Nearly equal on both axes."""
    return f"tie with {plan_id}: within {within_share * 100:g} % in time and cost"


def basis(*, num_jobs: int, size: str | None, size_unit: str, walltime: str | None, queue: str | None) -> str:
    """Which jobs a wait was taken from: ``"812 jobs of 4..7 gpus, walltime <=12h"``."""
    parts = [] if size is None else [f"of {size} {size_unit}"]
    parts += [] if walltime is None else [f"walltime {walltime}"]
    parts += [] if queue is None else [f"queue {queue!r}"]
    return f"{num_jobs:,} jobs {', '.join(parts) or 'of any kind'}"


def wait_of_log(
    *, num_jobs: int, size: str | None, size_unit: str, walltime: str | None, queue: str | None
) -> str:
    """Which jobs waited so long."""
    jobs = basis(num_jobs=num_jobs, size=size, size_unit=size_unit, walltime=walltime, queue=queue)
    return f"wait from {jobs}"


def wait_assumed(
    *,
    p_at_once: float,
    later_p50_s: float,
    later_p90_s: float,
    basis: str,
    num_traces: int,
    source: str,
    as_of: str,
) -> str:
    """How long the start of a machine of this class waits."""
    half, most = format_duration(later_p50_s), format_duration(later_p90_s)
    return (
        f"wait assumed: {100 * p_at_once:.0f} % of starts find a machine at once, half of the others within"
        f" {half}, 9 of 10 of them within {most} ({basis} from {num_traces} {source}, {as_of})"
    )


def place_contended(*, is_taken_back: bool) -> str:
    """Why a place is assumed to have a machine less often."""
    if is_taken_back:
        return "AWS takes back more than 20 % of these machines a month here: starts are assumed to be rare"
    return (
        "the quote is near the least that the provider asks, where there may be no machines: starts are"
        " assumed to be rare"
    )


def queue_assumed(*, num_jobs: int, num_logs: int, size: str, walltime: str | None) -> str:
    """What an unknown wait in a cluster's queue is taken to be."""
    asking = "" if walltime is None else f" asking for {walltime}"
    return (
        f"wait assumed: that of {num_jobs:,} jobs of {size} GPUs or nodes{asking} on {num_logs} other"
        " clusters; no deadline relies on it (set wait_p50 and wait_p90, or wait_log)"
    )


def wait_of_starts(*, p_at_once: float, watched_h: float) -> str:
    """What one's own log tells of starts, as far as it shows."""
    return (
        f"wait from your log of {watched_h:,.0f} h: {100 * p_at_once:.0f} % of starts find a machine at once"
    )


OPTIONS: Words = {
    Code.ALIKE: alike,
    Code.APPROVAL_NEEDED: "needs approval by {by}: {detail} ({file})",
    Code.COMMUNITY_HOST: (
        "community host: a third party's machine listed on {provider}; speed and security depend on its"
        " owner, so bring no secrets"
    ),
    Code.COST_UNKNOWN: "cost unknown: no hourly cost is configured, so it is counted as $0.00",
    Code.DATA_IN_PLACE: "the data set ({place}) is in this region: moving it costs nothing",
    Code.COPIED_LOCALLY: copied_locally,
    Code.QUOTA_NEEDED: (
        "needs a quota of {count} {unit} in {region}: {quota} ({name}). New accounts start with little or"
        " none: request it from {provider} first"
    ),
    Code.READ_ONCE: read_once,
    Code.READING: reading,
    Code.READING_UNKNOWN: (
        "how many iterations an epoch has is unknown: what reading the data set takes is not counted"
    ),
    Code.DATA_MOVED: data_moved,
    Code.GANG_ASSUMED: gang_assumed,
    Code.GLOBAL_BATCH_HELD: global_batch_held,
    Code.GPU_BUSY: gpu_busy,
    Code.GPU_MEMORY_TAKEN: gpu_memory_taken,
    Code.LATER_START: later_start,
    Code.MEMORY_TIGHT: memory_tight,
    Code.MEMORY_UNKNOWN: "memory unknown: the profile does not show how much the script needs",
    Code.NEAR_TIE: near_tie,
    Code.PRICE_DERIVED: "price never quoted, {source}: it counts at its p90",
    Code.PLACE_CONTENDED: place_contended,
    Code.QUEUE_ASSUMED: queue_assumed,
    Code.RATE_UNKNOWN: rate_unknown,
    Code.RENT_OR_WAIT: rent_or_wait,
    Code.SCALING_ASSUMED: scaling_assumed,
    Code.SHARING_UNKNOWN: (
        "no DataLoader shows how several GPUs would share a step: they count as no faster than one."
        " Set --scaling weak if each takes a batch of its own"
    ),
    Code.TIE: tie,
    Code.WAIT_ASSUMED: wait_assumed,
    Code.WAIT_OF_ANY_SIZE: (
        "the log has fewer than {enough_jobs} jobs of this size: the wait is that of jobs of any size"
    ),
    Code.WAIT_OF_LOG: wait_of_log,
    Code.WAIT_OF_OTHER_UNIT: "the log counts {size_unit}, not GPUs: this is the wait of size {size:g}",
    Code.WAIT_OF_STARTS: wait_of_starts,
    Code.WAIT_UNKNOWN: "wait unknown: neither configured nor measured, so it is counted as 0",
}


def best_of_total(
    *,
    value_usd_per_h: float,
    cost_usd: float,
    time_s: float,
    change_s: float,
    change_usd: float,
    is_price_derived: bool,
) -> str:
    """Expected cost and the worth of the expected time, and what else was counted."""
    cost, time = format_usd(cost_usd), format_duration(time_s)
    whole = f"the least expected cost and time at ${value_usd_per_h:g}/h: {cost} and {time} on average"
    if change_s:
        whole += f", and {format_usd(change_usd)} and {format_duration(change_s)} to change the script"
    return whole + (", at the p90 of a price that was never quoted" if is_price_derived else "")


def cheapest(*, is_cost_known: bool, is_guess_below: bool) -> str:
    """What it is the least of."""
    guess = ", where a price that was never quoted counts at its p90" if is_guess_below else ""
    return f"the least median cost{guess}{_if_unknown(is_cost_known)}"


def safest(
    *, limits: Sequence[str], p_met: float, is_preemptible: bool, cost_p90_usd: float, is_cost_known: bool
) -> str:
    """How sure it is to go well."""
    held = f"{' and '.join(limits)} met with p {p_met:.2f}, " if limits else ""
    can = "can be preempted" if is_preemptible else "is not preempted"
    least = f"the least cost at p90: {format_usd(cost_p90_usd)}{_if_unknown(is_cost_known)}"
    return f"{held}{can}, {least}"


def _if_unknown(is_cost_known: bool) -> str:
    return "" if is_cost_known else ", which is unknown and counts as 0"


PICKS: Words = {
    Code.BEST_OF_TOTAL: best_of_total,
    Code.CHEAPEST: cheapest,
    Code.COST_OF_PICK_UNKNOWN: "{rule}; what it costs is unknown",
    Code.FASTEST: "the least median time",
    Code.OBJECTIVE_OF_POLICY: "the policy's objective: {reason}",
    Code.SAFEST: safest,
}


def preemption(
    *,
    num_nodes: int,
    preemptions_per_h: float,
    times_of_one: float,
    rate_source: str,
    price_rise: float | None,
) -> str:
    """How often it is taken away, and how dear it may get."""
    gang = f" of any of {num_nodes} nodes, which stops all" if num_nodes > 1 else ""
    times = f", {times_of_one:.2g} times (assumed) that of one node, which is" if times_of_one > 1 else ""
    dearer = ""
    if price_rise is not None:
        dearer = f"; 1 in 10 such prices comes to {price_rise:.2f} times the median or more"
    return f"preemption{gang}, {preemptions_per_h:.3g} per hour{times} {rate_source}{dearer}"


def published_rate(
    *,
    is_floor: bool,
    source: str,
    as_of: str,
    low_pct: int,
    high_pct: int,
    least_preemptions_per_h: float,
) -> str:
    """What the provider publishes; either the rate is its floor, or what was assumed is above that."""
    return (
        f"{'floor' if is_floor else 'assumed'}; {source} of {as_of}: {low_pct} to {high_pct} % of machines"
        f" taken back in a month, at least {least_preemptions_per_h:.1g} per hour"
    )


RISKS: Words = {
    Code.RATE_ASSUMED: "assumed ({basis} from {num_traces} {source}, {as_of})",
    Code.RATE_CONFIGURED: "configured",
    Code.RATE_OF_LOG: "by your log ({num_preemptions} in {up_h:,.0f} h), as far as it shows",
    Code.RATE_PUBLISHED: published_rate,
    Code.RISK_CAPACITY: "capacity not checked",
    Code.RISK_NONE: "none known",
    Code.RISK_PREEMPTION: preemption,
    Code.RISK_WAIT: "wait",
}


def gpu_family(*, name: str, gpus: Sequence[str]) -> str:
    """Which GPUs a name stands for."""
    return f"{name} is a family: taken as {', '.join(gpus)}"


def gpus_not_in_catalog(*, gpus: Sequence[str]) -> str:
    """Whose times cannot be predicted."""
    return f"the catalog does not know {', '.join(gpus)}: offers with it are left out"


def prices_ahead(*, providers: Sequence[str]) -> str:
    """Prices of tomorrow."""
    return f"prices of {', '.join(providers)} are dated after today: check the clock"


def prices_computed(*, num_computed: int, num_prices: int, source_begins: str) -> str:
    """Prices that nobody quoted."""
    return (
        f"{num_computed} of {num_prices} prices were never quoted but computed from others; their source"
        f" begins with {source_begins!r}"
    )


def prices_implausible(*, num_prices: int, source: str, examples: str, is_kept: bool) -> str:
    """Prices far from those of such machines: own ones stay, others are left out."""
    prices = f"{num_prices} {'price' if num_prices == 1 else 'prices'} of {source}"
    if is_kept:
        return f"{prices} far from what such machines cost elsewhere, taken as they are: {examples}"
    return f"{prices} that no such machine can have left out: {examples}"


def prices_not_live(
    *, num_dated: int, num_prices: int, ages: Sequence[Mapping[str, str | int]], is_public: bool
) -> str:
    """How old they are: ``aws 124 to 511 days old (2025-06-28 to 2026-07-20)`` for each provider."""
    some = "" if num_dated == num_prices else f"{num_dated} of {num_prices} "
    spans = "; ".join(
        f"{age['provider']} {_span(age['newest_days'], age['oldest_days'])} days old"
        f" ({_span(age['oldest_on'], age['newest_on'])})"
        for age in ages
    )
    way = "; `advisor prices refresh` pulls newer ones and needs no account" if is_public else ""
    return f"{some}prices are not live: {spans}{way}"


def _span(low: str | int, high: str | int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def prices_stale(
    *, examples: Sequence[str], num_machines: int, num_prices: int, sources: Sequence[str], is_kept: bool
) -> str:
    """Machines of which the last pull got no price."""
    rest = num_machines - len(examples)
    named = ", ".join(examples) + (f" and {rest} more" if rest else "")
    what = "stand in, of the day that they show" if is_kept else "are older than allowed and left out"
    return (
        f"the last pull could not price {named}: {num_prices} stale prices of {', '.join(sources)} {what};"
        " `advisor prices sources` says why"
    )


PRICES: Words = {
    Code.GPU_FAMILY: gpu_family,
    Code.GPUS_NOT_IN_CATALOG: gpus_not_in_catalog,
    Code.NO_PRICE_MATCHES: "no price matches these limits: see `advisor prices`",
    Code.PRICES_AHEAD: prices_ahead,
    Code.PRICES_COMPUTED: prices_computed,
    Code.PRICES_IMPLAUSIBLE: prices_implausible,
    Code.PRICES_NOT_LIVE: prices_not_live,
    Code.PRICES_STALE: prices_stale,
}
