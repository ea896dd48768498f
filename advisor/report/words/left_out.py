"""What a recommendation leaves out."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code
from advisor.report.words.table import Words


def hourly_cost_unknown(*, providers: Sequence[str]) -> str:
    """Whose machines count as free."""
    return f"no hourly cost is configured for {', '.join(providers)}: counted as $0, which flatters it"


def cluster_wait_unknown(*, clusters: Sequence[str]) -> str:
    """Whose queues count as empty."""
    names = ", ".join(clusters)
    return f"no wait is configured for {names} (wait_p50, wait_p90 or wait_log): counted as 0"


LEFT_OUT: Words = {
    Code.CLOUD_WAIT_ASSUMED: (
        "the wait for a machine is assumed for {num_assumed} of {num_rented} rented options, from open"
        " traces: cloud.wait_p50 and cloud.wait_p90 replace it, or spot.history for spot"
    ),
    Code.CLUSTER_WAIT_UNKNOWN: cluster_wait_unknown,
    Code.HOURLY_COST_UNKNOWN: hourly_cost_unknown,
    Code.LOCAL_GPUS_BUSY: "GPUs of this machine are in use: the wait until they are free counts as 0",
    Code.RATES_UNKNOWN: (
        "disks or data transfer are not counted for {num_not_counted} of {num_options} options, whose regions"
        " have no known rate (see their notes), which flatters them"
    ),
}
