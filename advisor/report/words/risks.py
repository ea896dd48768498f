"""What can go wrong with an option, and where the rate of preemptions comes from."""

from __future__ import annotations

from advisor.core.findings import Code
from advisor.report.words.table import Words


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
    Code.RATE_OF_LOG: "by your log ({num_preemptions} in {up_h:,.0f} h), as far as it tells",
    Code.RATE_PUBLISHED: published_rate,
    Code.RISK_CAPACITY: "capacity not checked",
    Code.RISK_NONE: "none known",
    Code.RISK_PREEMPTION: preemption,
    Code.RISK_WAIT: "wait",
}
