"""Recovery policies replayed on zones that were watched at the same time, against what was predicted.

``python -m research.spot_policies --shared DIR --out research/docs/methods/spot_policies.json``. Each zone of
a region is a job's own in turn, and the others are where it may move to. All zones start at the second half
of their common time, which begins anew where it ends; predictions know the first half, or the other
collections alone, which the first half judges, too. Spot costs 1 USD an hour everywhere, on demand 2.5.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np

from advisor.core.files import write_atomically
from advisor.core.limits import VALUE_OF_TIME_USD_PER_H
from advisor.core.units import HOUR_S
from advisor.core.values import Elsewhere, Job, Layout, Market, Offer, Plan, Recovery, StartWait, Tier
from advisor.pricing.spot_odds import Age, Size
from recommender.outcome.draws import Array
from recommender.outcome.outcomes import costs_of, runs_of
from recommender.outcome.spot import SpotTerms, under
from recommender.outcome.spot_history import Stretch, start_with_history, watched, with_history
from research.spot_fit import Fit, fit
from research.spot_replay import DRAWS, LENGTHS_H, NUM_STARTS, ring_of, rounded, terms_of
from research.spot_traces import Trace, read_traces

ON_DEMAND_USD = 2.5
# The deadline, over the work without a preemption.
DEADLINE_TIMES = 1.5
_CLOSE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Zones:
    """Traces of one machine in the zones of one region, watched together; each [zones]."""

    collection: str
    region: str
    num_gpus: int
    traces: tuple[Trace, ...]

    def half(self, which: int) -> tuple[Trace, ...]:
        """The first (0) or second (1) half of the common time."""
        return tuple(trace.half(which) for trace in self.traces)


def regions_of(traces: Sequence[Trace]) -> list[Zones]:
    """Those with two zones or more, cut to their common time."""
    groups: dict[tuple[str, str, str, int], list[Trace]] = {}
    for trace in traces:
        zone, device, _ = trace.place.split()
        if trace.stretches:
            key = (trace.collection, zone[:-1].rstrip("-"), device, trace.num_gpus)
            groups.setdefault(key, []).append(trace)
    return [
        Zones(collection=key[0], region=f"{key[1]} {key[2]}", num_gpus=key[3], traces=_in_common(group))
        for key, group in groups.items()
        if len(group) > 1
    ]


def _in_common(traces: Sequence[Trace]) -> tuple[Trace, ...]:
    low = max(trace.stretches[0].start_h for trace in traces)
    high = min(trace.stretches[-1].end_h for trace in traces)
    return tuple(_cut(trace, low, high) for trace in traces)


def _cut(trace: Trace, low: float, high: float) -> Trace:
    kept = tuple(
        Stretch(
            start_h=max(s.start_h, low) - low, hours=min(s.end_h, high) - max(s.start_h, low), is_up=s.is_up
        )
        for s in trace.stretches
        if s.end_h > low and s.start_h < high
    )
    return replace(trace, stretches=kept, sums=watched(kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRun:
    """One job: hours until done, and dollars."""

    time_h: float
    usd: float


class Clock:
    """When each of several zones has a machine; their common time repeats for ever."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self.period_h = traces[0].stretches[-1].end_h - traces[0].stretches[0].start_h
        self._zones = [
            ([s.end_h for s in trace.stretches], [s.is_up for s in trace.stretches]) for trace in traces
        ]

    def state(self, zone: int, at_h: float) -> tuple[bool, float]:
        """Whether there is a machine, and until when that stays so within this turn."""
        turn, within = divmod(at_h, self.period_h)
        ends_h, states = self._zones[zone]
        i = bisect_right(ends_h, within + 1e-9)
        if i == len(states):
            turn, i = turn + 1, 0
        return states[i], turn * self.period_h + ends_h[i]

    def next_up(self, zones: Sequence[int], at_h: float) -> tuple[int, float]:
        """The first of these zones to have a machine, and when; the earlier named of equals."""
        return min(((zone, self._up_from(zone, at_h)) for zone in zones), key=lambda pair: pair[1])

    def _up_from(self, zone: int, at_h: float) -> float:
        for _ in range(10_000):
            is_up, until_h = self.state(zone, at_h)
            if is_up:
                return at_h
            at_h = until_h
        return math.inf

    def up_until(self, zone: int, at_h: float, most_h: float) -> float:
        """When the machine that is there goes away, or ``most_h``."""
        while at_h < most_h:
            is_up, until_h = self.state(zone, at_h)
            if not is_up:
                return at_h
            at_h = until_h
        return most_h


def replay(
    clock: Clock, zones: Sequence[int], start_h: float, work_h: float, terms: SpotTerms, policy: Recovery
) -> PolicyRun:
    """A job that waits for its own zone at first, and then does as the policy says; step by step.

    One that falls back leaves spot before a step that, lost, would leave too little time on demand.

    Args:
        clock: when which zone has a machine.
        zones: the job's own, then those it may move to.
        start_h: on that clock.
        work_h: without a preemption.
        terms: how often it saves, and what that and a restart take.
        policy: what to do after a preemption.
    """
    due_h = start_h + DEADLINE_TIMES * work_h if policy.falls_back else math.inf
    interval_h = min(work_h, terms.checkpoint_interval_h or work_h)
    step_h = interval_h + (terms.checkpoint_h if work_h > interval_h else 0.0)
    left = math.ceil(work_h / interval_h - 1e-9)
    now_h, billed_h, restart_h, choice = start_h, 0.0, 0.0, zones[:1]
    while True:
        # The last moment for a step on spot: if it is lost, what is not saved still ends in time on demand.
        last_h = due_h - left * interval_h - restart_h - step_h
        zone, up_h = clock.next_up(choice, now_h)
        now_h = max(min(up_h, last_h), now_h)
        if up_h > last_h + 1e-9:
            left_h = left * interval_h
            return PolicyRun(time_h=now_h + left_h - start_h, usd=billed_h + ON_DEMAND_USD * left_h)
        needed_h = restart_h + step_h
        down_h = clock.up_until(zone, now_h, now_h + needed_h)
        billed_h += down_h - now_h
        if down_h - now_h < needed_h - 1e-9:
            restart_h, choice = terms.restart_h, zones if policy.moves else [zone]
        else:
            left, restart_h, choice = left - 1, 0.0, [zone]
        now_h = down_h
        if not left:
            return PolicyRun(time_h=now_h - start_h, usd=billed_h)


def predicted(
    work_h: float, terms: SpotTerms, wait_s: StartWait, policy: Recovery, num_zones: int
) -> tuple[Array, Array]:
    """Draws of hours until done and of dollars, by the recommender."""
    offer = Offer(
        provider="aws", instance_type="any", region="any", zone="any", gpu="any", num_gpus=1,
        market=Market.SPOT, list_usd_per_h=1.0, source="replay",
        retrieved_at=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    plan = Plan(
        id="replay", tier=Tier.CLOUD, provider="aws", gpu="any", layout=Layout(gpus_per_node=1), offer=offer,
        usd_per_h=1.0, wait_s=wait_s, startup_s=0.0, minimum_billed_s=0.0,
    )  # fmt: skip
    on_demand = replace(plan, usd_per_h=ON_DEMAND_USD, wait_s=None)
    there = Elsewhere(num_zones=num_zones - 1, usd_per_h=1.0, on_demand=on_demand)
    plan = replace(plan, elsewhere=there)
    job = Job(iterations=1, deadline_s=DEADLINE_TIMES * work_h * HOUR_S)
    given = under(policy, job, lambda _: terms)(plan)
    runs = runs_of([plan], [np.full_like(DRAWS.wait, work_h * HOUR_S)], [given], DRAWS)
    return runs[0].time_s / HOUR_S, costs_of([plan], runs, DRAWS).usd[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One policy, zone and length: means of the replay and of the prediction, and what its p90 covers."""

    collection: str
    zone: str
    basis: str
    policy: str
    work_h: float
    usd: float
    time_h: float
    in_time: float
    predicted_usd: float
    predicted_h: float
    bill_error: float
    bill_covered: float
    time_covered: float

    def score(self, by: str, *, is_predicted: bool) -> float:
        """What policies are ranked by: mean bill, mean time, or both together as `recommend` weighs them."""
        usd, hours = (self.predicted_usd, self.predicted_h) if is_predicted else (self.usd, self.time_h)
        return {"bill": usd, "time": hours, "total": usd + VALUE_OF_TIME_USD_PER_H * hours}[by]


def cases(
    traces: Sequence[Trace], *, lengths_h: Sequence[float] = LENGTHS_H, num_starts: int = NUM_STARTS
) -> Iterator[Case]:
    """All regions, zones, lengths, policies and bases."""
    regions = regions_of(traces)
    fitted = {
        name: fit([trace for trace in traces if trace.collection != name])
        for name in {region.collection for region in regions}
    }
    for region, half in product(regions, (1, 0)):
        clock = Clock(region.half(half))
        starts = [(i + 0.5) / num_starts * clock.period_h for i in range(num_starts)]
        for home, work_h, policy in product(range(len(region.traces)), lengths_h, Recovery):
            if not ring_of(region.traces[home].half(half).stretches):
                continue
            zones = [home, *(zone for zone in range(len(region.traces)) if zone != home)]
            runs = [replay(clock, zones, at, work_h, SpotTerms(), policy) for at in starts]
            for basis, (terms, wait_s) in _bases(
                region.traces[home], fitted[region.collection], half
            ).items():
                draws = predicted(work_h, terms, wait_s, policy, len(zones))
                yield _case(region.traces[home], basis, policy, work_h, runs, draws)


def _bases(trace: Trace, fitted: Fit, half: int) -> Mapping[str, tuple[SpotTerms, StartWait]]:
    """What may be known of this half."""
    which = Size.ONE if trace.num_gpus == 1 else Size.SEVERAL, Age.KNOWN
    odds, wait_s = fitted.spot[which], fitted.start[which].wait_s
    if not half:
        return {"defaults, the first half": (terms_of(odds), wait_s)}
    seen, then = trace.half(0).sums, trace.half(1).sums
    rate_per_h = then.num_losses / then.up_h
    return {
        "defaults": (terms_of(odds), wait_s),
        "rate known": (replace(terms_of(odds), preemptions_per_h=rate_per_h, sigma_rate=0.0), wait_s),
        "first half": (terms_of(with_history(odds, seen)), start_with_history(wait_s, odds, seen)),
    }


def _case(
    trace: Trace,
    basis: str,
    policy: Recovery,
    work_h: float,
    runs: Sequence[PolicyRun],
    draws: tuple[Array, Array],
) -> Case:
    time_h, usd = (np.sort(values) for values in draws)
    p50, p90 = len(usd) // 2, int(0.9 * (len(usd) + 1)) - 1
    bills, times = [run.usd for run in runs], [run.time_h for run in runs]
    return Case(
        collection=trace.collection,
        zone=f"{trace.place} x{trace.num_gpus}",
        basis=basis,
        policy=policy,
        work_h=work_h,
        usd=statistics.fmean(bills),
        time_h=statistics.fmean(times),
        in_time=statistics.fmean(hours <= DEADLINE_TIMES * work_h + _CLOSE for hours in times),
        predicted_usd=float(usd.mean()),
        predicted_h=float(time_h.mean()),
        bill_error=float(usd[p50]) / statistics.median(bills) - 1,
        bill_covered=statistics.fmean(bill <= usd[p90] + _CLOSE for bill in bills),
        time_covered=statistics.fmean(hours <= time_h[p90] + _CLOSE for hours in times),
    )


def agreement(cases: Sequence[Case], by: str, *, least: float = 0.01) -> dict[str, float]:
    """Of pairs of policies that the replay tells apart, the share that is predicted to rank alike."""
    places: dict[tuple[str, str, float], list[Case]] = {}
    for case in cases:
        places.setdefault((case.collection, case.zone, case.work_h), []).append(case)
    alike = []
    for one, other in (pair for group in places.values() for pair in combinations(group, 2)):
        replayed, expected = (
            one.score(by, is_predicted=each) / other.score(by, is_predicted=each) - 1
            for each in (False, True)
        )
        if abs(replayed) > least:
            alike.append(replayed * expected > 0)
    return {"pairs": len(alike), "alike": statistics.fmean(alike)}


def summary(cases: Sequence[Case]) -> dict[str, float]:
    """Means over zones and lengths; ratios are of predicted over replayed means."""
    means = {
        name: statistics.fmean(getattr(case, name) for case in cases)
        for name in ("usd", "time_h", "in_time", "bill_covered", "time_covered")
    }
    return means | {
        "bill_error_median": statistics.median(abs(case.bill_error) for case in cases),
        "mean_bill_ratio": statistics.fmean(c.predicted_usd for c in cases) / means["usd"],
        "mean_time_ratio": statistics.fmean(c.predicted_h for c in cases) / means["time_h"],
    }


def brier_by_hour(trace: Trace) -> tuple[float, float]:
    """Mean squared error of the odds of a machine in the second half, by one share and by 24 of the first.

    The hourly shares are shrunk to the one by the days they rest on (a day is one draw of each).
    """
    first, second = (_hourly(trace.half(which)) for which in (0, 1))
    share = float(np.mean(first))
    hours, num_days = np.arange(len(first)) % 24, len(first) / 24
    means = np.array([first[hours == hour].mean() for hour in range(24)])
    between = max(float(means.var()) - share * (1 - share) / num_days, 0.0)
    weight = between / (between + share * (1 - share) / num_days) if between else 0.0
    # The second half goes on with the clock of the first.
    at = (np.arange(len(second)) + len(first)) % 24
    by_hour = share + weight * (means[at] - share)
    return float(np.mean((second - share) ** 2)), float(np.mean((second - by_hour) ** 2))


def _hourly(trace: Trace) -> Array:
    """The share of each whole hour in which there was a machine."""
    end_h = int(trace.stretches[-1].end_h)
    up_h = np.zeros(end_h)
    for stretch in trace.stretches:
        for hour in range(int(stretch.start_h), min(int(stretch.end_h) + 1, end_h)) if stretch.is_up else ():
            up_h[hour] += max(min(stretch.end_h, hour + 1) - max(stretch.start_h, hour), 0.0)
    return up_h


def lost_together(region: Zones, within_h: float = 0.25) -> tuple[int, int, float]:
    """Losses while another zone had a machine, those that it lost with it, and how many would by chance."""
    num = together = 0
    expected = 0.0
    for one, other in permutations(region.traces, 2):
        losses, others = ([s.end_h for s in t.stretches[:-1] if s.is_up] for t in (one, other))
        clock = Clock([other])
        up = [at for at in losses if clock.state(0, max(at - within_h, 0.0))[0]]
        num += len(up)
        together += sum(any(abs(at - b) <= within_h for b in others) for at in up)
        expected += len(up) * -math.expm1(-2 * within_h * len(others) / max(other.sums.up_h, 1e-9))
    return num, together, expected


def what_moving_leaves(regions: Sequence[Zones], which: int) -> dict[str, dict[str, float]]:
    """By number of zones: hours away for each hour up of endless jobs that wait and that move, and the ratio.

    Sums over zones with ten losses or more in one half, each followed from ten moments.
    """
    away: dict[int, list[tuple[float, float]]] = {}
    for region in regions:
        clock, num_zones = Clock(region.half(which)), len(region.traces)
        for home, trace in enumerate(region.half(which)):
            if trace.sums.num_losses >= 10:
                zones = [home, *(zone for zone in range(num_zones) if zone != home)]
                pair = [_away(clock, zones, choice) for choice in (zones[:1], zones)]
                away.setdefault(num_zones, []).append((pair[0], pair[1]))
    return {
        str(num_zones): {
            "waiting": (waiting := sum(one for one, _ in pairs)),
            "moving": (moving := sum(other for _, other in pairs)),
            "left": moving / waiting,
            "most_moving": max(other for _, other in pairs),
        }
        for num_zones, pairs in sorted(away.items())
    }


def _away(clock: Clock, zones: Sequence[int], choice: Sequence[int]) -> float:
    """Hours away for each hour up, over one turn of the clock from each of ten moments."""
    up_h = down_h = 0.0
    for start_h in ((i + 0.5) / 10 * clock.period_h for i in range(10)):
        zone, now_h = clock.next_up(zones[:1], start_h)
        end_h = now_h + clock.period_h
        while now_h < end_h:
            lost_h = clock.up_until(zone, now_h, end_h)
            zone, next_h = clock.next_up(choice, lost_h)
            up_h, down_h, now_h = up_h + lost_h - now_h, down_h + min(next_h, end_h) - lost_h, next_h
    return down_h / up_h


def document(traces: Sequence[Trace], judged: Sequence[Case]) -> dict[str, object]:
    """All that is published."""
    body: dict[str, object] = {}
    for basis in dict.fromkeys(case.basis for case in judged):
        of_basis = [case for case in judged if case.basis == basis]
        body[basis] = {
            policy: summary([case for case in of_basis if case.policy == policy]) for policy in Recovery
        } | {f"ranked by {by}": agreement(of_basis, by) for by in ("bill", "time", "total")}
    hourly = [
        brier_by_hour(t)
        for t in traces
        if t.stretches and t.stretches[-1].end_h - t.stretches[0].start_h > 24 * 7
    ]
    waves = [lost_together(region) for region in regions_of(traces)]
    num, together, expected = (sum(column) for column in zip(*waves, strict=True))
    body["hour of the day"] = {
        "zones": len(hourly),
        "brier_of_one_share": statistics.fmean(one for one, _ in hourly),
        "brier_by_hour": statistics.fmean(by_hour for _, by_hour in hourly),
        "zones_better": sum(by_hour < one for one, by_hour in hourly),
    }
    body["hours away for each hour up"] = {
        half: what_moving_leaves(regions_of(traces), which)
        for which, half in enumerate(("first half", "second half"))
    }
    body["zones lost together"] = {"losses": num, "together": together, "by_chance": expected}
    return body


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Replay recovery policies on zones watched together.")
    parser.add_argument("--shared", type=Path, required=True, help="folder that holds traces/ and prices/")
    parser.add_argument("--out", type=Path, help="where to keep the results as JSON")
    options = parser.parse_args(arguments)
    traces = read_traces(options.shared)
    text = json.dumps(rounded(document(traces, list(cases(traces)))), indent=1)
    if options.out is not None:
        write_atomically(options.out, f"{text}\n".encode())
    print(text)


if __name__ == "__main__":
    main()
