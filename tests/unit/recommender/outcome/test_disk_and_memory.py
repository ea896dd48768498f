"""Data that was moved lies on a disk with a rate of its own, and stays in a memory that holds it."""

import math
from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings.about_estimates import EditScript
from advisor.core.findings.about_options import Reading
from advisor.core.units import GIB
from advisor.core.values import Option, Plan
from advisor.pricing.instance_types import load_instances
from advisor.pricing.node_counts import network_rate
from advisor.pricing.storage_rates import disk_bytes_per_s
from recommender.outcome import feeding
from tests.findings import said
from tests.unit.recommender.outcome.test_local_disks import codes, option
from tests.unit.recommender.outcome.test_reading import machine

GB = 1e9


def moved(gb: float, instance_type: str, **changes: int) -> Plan:
    gib = gb * GB / GIB
    return replace(machine(instance_type, gib, **changes), transfer_gib=gib)


def test_case_23_the_first_epoch_reads_from_the_disk_and_the_others_from_memory():
    """150 GB at 125 MB/s: 1,200 s once on 2,048 GiB, and 90 times, 30 h, on 16 GiB."""
    once: Option = option(moved(150.0, "p5.48xlarge", num_gpus=8), step_s=0.01)
    assert once.plan.kept_share == 1
    assert once.plan.copied_s == pytest.approx(1200.0)
    assert once.plan.startup_s == pytest.approx(1200.0)
    assert [note.of for note in once.reasons if isinstance(note, Reading)] == ["once"]
    assert EditScript(what="use-nvme") not in codes(once)
    each = feeding.read_s(moved(150.0, "g4dn.xlarge"), 1000)
    assert each is not None
    assert 1000 * each.p50 == pytest.approx(1200.0)
    kept = feeding.kept_in_memory(moved(150.0, "g4dn.xlarge"))
    assert kept is not None
    assert kept.kept_share == pytest.approx(0.75 * 16 * GIB / 150e9, rel=0.05)
    assert 1000 * feeding.read_s(kept, 1000).p50 > 0.99 * 1200.0, (
        "of other files each epoch few are still there"
    )  # type: ignore[union-attr]


def test_what_its_disk_gives_is_said():
    """g6.48xlarge has a network for 6 GB/s; its 768 GiB do not hold 700 GB beside the job."""
    plan = moved(700.0, "g4dn.xlarge")
    assert "125 MB/s, what its disk gives" in said(option(plan, step_s=0.01).reasons)


def test_data_in_place_comes_from_object_storage_and_is_no_file_that_stays():
    plan = machine("p5.48xlarge", 150.0, num_gpus=8)
    assert feeding.kept_in_memory(plan) is None
    rate = 150.0 * GIB / 1000 / feeding.read_s(plan, 1000).p50  # type: ignore[union-attr]
    assert rate == pytest.approx(6.25e9)


@given(st.floats(1, 2000), st.floats(0, 2000))
def test_more_data_never_take_less_and_what_is_kept_is_never_slower(gb, more):
    small, large = (option(moved(each, "g5.12xlarge")) for each in (gb, gb + more))
    assert small.time_s.p90 <= large.time_s.p90 * (1 + 1e-9)


def test_twenty_gigabytes_instead_of_five_cost_minutes_not_hours():
    """Each epoch read them anew, on a machine whose memory holds both: 90 epochs of 15 GB more."""
    five, twenty = (option(moved(gb, "g4dn.2xlarge"), step_s=0.001) for gb in (5.0, 20.0))
    assert twenty.time_s.p50 - five.time_s.p50 == pytest.approx(15e9 / 125e6, rel=1e-6)


@pytest.mark.parametrize("share", [0.999, 0.99, 0.9])
def test_data_that_barely_fit_no_more_cost_barely_more(share):
    """On 16 GiB all was read anew each epoch as soon as 12 did not hold it: 2 min, then 3 h."""
    fits_gb = 0.75 * 16 * GIB / GB
    fits, above = (option(moved(gb, "g4dn.xlarge"), step_s=0.001) for gb in (fits_gb, fits_gb / share))
    missed_s = 90 * fits_gb / share / 0.125 * (1 - share) * (1 - math.log(1 - share))
    assert 0 < above.time_s.p50 - fits.time_s.p50 <= 1.001 * missed_s + (1 / share - 1) * fits_gb / 0.125


def test_memory_keeps_what_a_simulated_cache_of_the_last_files_keeps():
    rng, num_files, room = np.random.default_rng(0), 2000, 1500
    cache: OrderedDict[int, None] = OrderedDict()
    missed = 0
    for epoch in range(6):
        for file in map(int, rng.permutation(num_files)):
            missed += epoch > 0 and file not in cache
            cache[file] = None
            cache.move_to_end(file)
            if len(cache) > room:
                cache.popitem(last=False)
    assert missed / 5 / num_files == pytest.approx(feeding.missed_share(room / num_files), rel=0.02)


def test_each_machine_of_google_reads_at_its_own_network_rate():
    """It was that of AWS's least machine for each vCPU: a fifth of the 24 Gbit/s of a2-highgpu-1g."""
    names = [name for cloud, name in load_instances() if cloud == "gcp"]
    assert len(names) >= 67
    for name in names:
        plan = machine(name, 100.0)
        assert plan.offer is not None
        plan = replace(plan, offer=replace(plan.offer, provider="gcp"))
        known = network_rate("gcp", name)
        assert known is not None, name
        assert feeding.network_bits_per_s(plan) == min(known, feeding.MOST_BITS_PER_S)


def test_disks_by_provider():
    assert disk_bytes_per_s("aws", 10_000) == 125e6
    assert disk_bytes_per_s("gcp", 1000) == pytest.approx(420e6)
    assert disk_bytes_per_s("gcp", 1e6) == 1.2e9
    assert disk_bytes_per_s("somebody", 1e6) == 125e6
