"""How a rented machine gets its data: each epoch anew, copied once to its disks, or kept in its memory."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from advisor.core.findings import Finding
from advisor.core.findings.about_options import Reading, Unknown
from advisor.core.input_time import ASSUMED_VCPUS_PER_GPU
from advisor.core.units import GIB, HOUR_S
from advisor.core.values import Interval, IterationEstimate, Plan
from advisor.pricing.instance_types import InstanceType, load_instances
from advisor.pricing.node_counts import network_rate
from advisor.pricing.storage_rates import disk_bytes_per_s
from recommender.outcome.spot import SpotTerms, is_spot

# Data in the machine's region comes from object storage, other data from the network disk that it was copied
# to, whose own rate is a limit as well (catalogs/disks.csv). Either goes through the machine's network. Reads
# get half of its rate, between a quarter and all of it. Memory keeps what it holds of files from a disk. A
# plan may copy the data to the machine's own disks first.

# What object storage gives one machine at most: "up to 100 Gb/s on a single instance", Amazon S3's guidelines
# for performance (https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html), from
# memory, 2026-11-22. The terabits of the largest machines are for traffic between GPUs.
MOST_BITS_PER_S = 100e9
# Of the network's rate: it was not measured for any machine, so that a factor of two to either side is left.
MEDIAN_SHARE = 0.5
# Of their capacity, read in a second from a machine's own disks. Google names 660 MB/s for one local SSD of
# 375 GB, and 390 for each of 16 (https://cloud.google.com/compute/docs/disks/local-ssd), Amazon 16 GB/s for
# the 8 TB of p4d; from memory, 2026-11-23. Others were not measured: a factor of two here as well.
_DISK_READS_PER_S = 1e-3
# Of the host's memory, left for files beside what the processes hold: judged.
_MEMORY_SHARE = 0.75
# What p10 and p90 of a rate are of its median.
EITHER_SIDE = 2.0


def vcpus_per_gpu(plan: Plan) -> float:
    """Number of vCPUs for each GPU; an assumed one where it is unknown."""
    return plan.vcpus_per_gpu or ASSUMED_VCPUS_PER_GPU


def read_s(plan: Plan, iterations_per_epoch: int | None) -> Interval | None:
    """Seconds to read what one iteration takes of the data set; None without one, or without epochs.

    Each node reads the samples of its own GPUs over its own network, or from its own disks.
    """
    read_gib = plan.read_gib * missed_share(plan.kept_share)
    if not read_gib or iterations_per_epoch is None:
        return None
    median_s = read_gib * GIB / iterations_per_epoch / plan.num_nodes / _bytes_per_s(plan)
    return Interval(p10=median_s / EITHER_SIDE, p50=median_s, p90=median_s * EITHER_SIDE)


def missed_share(kept_share: float) -> float:
    """What each epoch reads anew of data of which memory keeps a share, the files that were used last.

    In another order each epoch, a sample is still there if fewer others than fit were read since. The places
    that it has in two epochs are independent and uniform: a = 1 - share is missed at a (1 - ln a).

    >>> [round(missed_share(share), 3) for share in (0, 0.5, 0.9, 0.99, 1)]
    [1.0, 0.847, 0.33, 0.056, 0.0]
    """
    rest = 1 - kept_share
    return rest * (1 - math.log(rest)) if rest > 0 else 0.0


def _bytes_per_s(plan: Plan) -> float:
    if plan.copied_s and not plan.kept_share:  # to its own disks
        return local_disks_bytes(plan) * _DISK_READS_PER_S
    return _source_bytes_per_s(plan)


def _source_bytes_per_s(plan: Plan) -> float:
    """Of what each epoch reads from: object storage, or the network disk that the data was moved to."""
    network = network_bits_per_s(plan) * MEDIAN_SHARE / 8
    return min(network, disk_bytes_per_s(plan.provider, plan.read_gib)) if plan.transfer_gib else network


def instance_of(plan: Plan) -> InstanceType | None:
    """The catalog's entry of the machine; None of one's own, and where it is not there."""
    offer = plan.offer
    return None if offer is None else load_instances().get((offer.provider, offer.instance_type))


def local_disks_bytes(plan: Plan) -> int:
    """Of the disks that the price of one machine includes; 0 where none are known."""
    known = instance_of(plan)
    return (known and known.local_ssd_bytes) or 0


def network_bits_per_s(plan: Plan) -> float:
    """Of one machine as far as it serves reads; an unknown one has the least of any known for each vCPU."""
    offer = plan.offer
    known = None if offer is None else network_rate(offer.provider, offer.instance_type)
    if known is not None:
        return min(known, MOST_BITS_PER_S)
    vcpus = vcpus_per_gpu(plan) * plan.layout.gpus_per_node
    return min(_least_bits_per_s_of_a_vcpu() * vcpus, MOST_BITS_PER_S)


@cache
def _least_bits_per_s_of_a_vcpu() -> float:
    return min(
        known.network_bits_per_s / known.vcpus
        for known in load_instances().values()
        if known.network_bits_per_s is not None and known.vcpus
    )


def reading_note(plan: Plan, estimate: IterationEstimate, each_s: Interval | None) -> Finding | None:
    """What reading takes, or copying once; None where there is no data set, or reading hides for sure."""
    if not plan.read_gib or plan.offer is None:
        return None
    if plan.kept_share == 1:
        return Reading(of="once", gib=plan.read_gib, time_s=plan.copied_s)
    if each_s is None:
        return Unknown(what="reading")
    if plan.copied_s and not plan.kept_share:
        return Reading(of="local-copy", gib=plan.read_gib, time_s=plan.copied_s, read_s=each_s.p50)
    if each_s.p90 <= estimate.device_s.p50:
        return None
    bits_per_s = network_bits_per_s(plan)
    return Reading(
        of="each-epoch",
        gib=plan.read_gib * missed_share(plan.kept_share),
        read_s=each_s.p50,
        bytes_per_s=_bytes_per_s(plan),
        bits_per_s=bits_per_s,
        by_storage=bits_per_s >= MOST_BITS_PER_S,
        by_disk=_bytes_per_s(plan) < bits_per_s * MEDIAN_SHARE / 8,
    )


# Both take time alone, which is billed by the same hour: the faster way is the cheaper one, too. A spot
# machine that comes back has empty disks, and copies again. Each node copies all of the data, since shuffled
# samples may fall to any of them.

# Of their capacity, written in a second. Google names 350 MB/s for one local SSD of 375 GB, and 195 for each
# of 16 (https://cloud.google.com/compute/docs/disks/local-ssd, from memory, 2026-11-23).
_WRITES_PER_S = 0.5e-3


def copied_locally(plan: Plan) -> Plan | None:
    """The plan that copies its data set before training; None where its own disks do not hold it."""
    disks_bytes, data_bytes = local_disks_bytes(plan), plan.read_gib * GIB
    if plan.copied_s or not 0 < data_bytes <= disks_bytes:
        return None
    return _having_read(plan, data_bytes / min(_source_bytes_per_s(plan), disks_bytes * _WRITES_PER_S))


def kept_in_memory(plan: Plan) -> Plan | None:
    """The plan whose memory keeps what it holds of the data on its network disk; None where it holds none.

    A script has nothing to do for it: the system keeps the files that were read. What comes from object
    storage is no file. The first reading is billed before training: that it may hide some is not counted.
    """
    known, data_bytes = instance_of(plan), plan.read_gib * GIB
    memory_bytes = (known and known.memory_bytes) or 0
    if plan.copied_s or not plan.transfer_gib or not data_bytes or not memory_bytes:
        return None
    kept_share = min(_MEMORY_SHARE * memory_bytes / data_bytes, 1.0)
    return replace(_having_read(plan, data_bytes / _source_bytes_per_s(plan)), kept_share=kept_share)


def _having_read(plan: Plan, copied_s: float) -> Plan:
    return replace(
        plan, copied_s=copied_s, download_s=plan.download_s + copied_s, startup_s=plan.startup_s + copied_s
    )


def surer_read(plan: Plan, p90_s: Callable[[Plan], float], terms_of: Callable[[Plan], SpotTerms]) -> Plan:
    """The plan, the one that copies first, or the one that reads once: whichever is done earlier at p90.

    Where reading hides in the median, a network that gives less may still make the job twice as long.
    ``p90_s`` is of a plan's training without preemptions.
    """

    def done_s(asked: Plan) -> float:
        work_s = p90_s(asked)
        again = terms_of(plan).preemptions_per_h * work_s / HOUR_S if is_spot(plan) else 0.0
        return work_s + asked.copied_s * EITHER_SIDE * (1 + again)

    ways = [way for way in (kept_in_memory(plan), copied_locally(plan)) if way is not None]
    return min((plan, *ways), key=done_s) if ways else plan
