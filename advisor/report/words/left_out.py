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
    Code.CLOUD_WAIT_UNKNOWN: "the wait for cloud capacity is unknown and counts as 0",
    Code.CLUSTER_WAIT_UNKNOWN: cluster_wait_unknown,
    Code.HOURLY_COST_UNKNOWN: hourly_cost_unknown,
    Code.LOCAL_GPUS_BUSY: "GPUs of this machine are in use: the wait until they are free counts as 0",
    Code.RATES_UNKNOWN: (
        "{num_unknown} of {num_options} options pay the dearest known rate of disks or data transfer: that of"
        " their place is unknown (see their notes; rates in the settings replace it)"
    ),
}
