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


def opt_in_regions(*, num_offers: int, regions: Sequence[str]) -> str:
    """Where an account cannot start anything yet."""
    return (
        f"{num_offers:,} offers are left out, in regions that an account must enable first"
        f" ({', '.join(regions)}): --region NAME or cloud.opt_in_regions lets them in"
    )


LEFT_OUT: Words = {
    Code.CLOUD_WAIT_ASSUMED: (
        "the wait for a machine is assumed for {num_assumed} of {num_rented} rented options, from open"
        " traces: cloud.wait_p50 and cloud.wait_p90 replace it, or spot.history for spot"
    ),
    Code.CLUSTER_WAIT_UNKNOWN: cluster_wait_unknown,
    Code.HOURLY_COST_UNKNOWN: hourly_cost_unknown,
    Code.DATA_PLACE_UNKNOWN: (
        "nobody said where the data set lies: it counts as coming from outside the clouds, and that is not"
        " billed (--data says where)"
    ),
    Code.DATA_REGION_UNKNOWN: (
        "the region of {place} is unknown: it counts as the dearest of {provider} to leave, far from every"
        " machine ({place}@REGION says which it is)"
    ),
    Code.DATA_SIZE_UNKNOWN: (
        "nobody said how large the data set is: to copy, keep and read it counts as nothing (--dataset-gb N;"
        " 0 where nothing is copied)"
    ),
    Code.LOCAL_GPUS_BUSY: "GPUs of this machine are in use: the wait until they are free counts as 0",
    Code.OPT_IN_REGIONS: opt_in_regions,
    Code.RATES_UNKNOWN: (
        "{num_unknown} of {num_options} options pay the dearest known rate of disks or data transfer: that of"
        " their place is unknown (see their notes; rates in the settings replace it)"
    ),
}
