"""Whether a machine reads its data set over the network each epoch, or copies it to its own disks once.

Both take time alone, which is billed by the same hour: the faster way is the cheaper one, too. A spot
machine that comes back has empty disks, and copies again. Each node copies all of the data, since shuffled
samples may fall to any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from advisor.core.units import GIB, HOUR_S
from advisor.core.values import Plan
from recommender.outcome.reading import EITHER_SIDE, MEDIAN_SHARE, local_disks_bytes, network_bits_per_s
from recommender.outcome.spot import SpotTerms, is_spot

# Of their capacity, written in a second. Google names 350 MB/s for one local SSD of 375 GB, and 195 for each
# of 16 (https://cloud.google.com/compute/docs/disks/local-ssd, from memory, 2026-11-23).
_WRITES_PER_S = 0.5e-3


def copied_locally(plan: Plan) -> Plan | None:
    """The plan that copies its data set before training; None where its own disks do not hold it."""
    disks_bytes, data_bytes = local_disks_bytes(plan), plan.read_gib * GIB
    if plan.copied_s or not 0 < data_bytes <= disks_bytes:
        return None
    copied_s = data_bytes / min(network_bits_per_s(plan) * MEDIAN_SHARE / 8, disks_bytes * _WRITES_PER_S)
    return replace(
        plan,
        copied_s=copied_s,
        download_s=plan.download_s + copied_s,
        startup_s=plan.startup_s + copied_s,
    )


def surer_read(plan: Plan, p90_s: Callable[[Plan], float], terms_of: Callable[[Plan], SpotTerms]) -> Plan:
    """The plan, or the one that copies first: whichever is done earlier at p90.

    Where reading hides in the median, a network that gives less may still make the job twice as long.

    Args:
        plan: that reads over the network, or has copied already.
        p90_s: of a plan's training without preemptions.
        terms_of: how often a plan is preempted.
    """
    copying = copied_locally(plan)
    if copying is None:
        return plan
    work_s = p90_s(copying)
    again = terms_of(plan).preemptions_per_h * work_s / HOUR_S if is_spot(plan) else 0.0
    copied_s = copying.copied_s * EITHER_SIDE * (1 + again)
    return copying if work_s + copied_s < p90_s(plan) else plan
