"""Every row of the tables that are read by the types of their fields (`read_as`)."""

import math
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import pytest

from advisor.core.gpus import catalog_path
from advisor.pricing import providers
from advisor.pricing.expected_prices import RATIO_FILE, Ratio
from advisor.pricing.instance_types import INSTANCE_FILE, InstanceType, read_as
from advisor.pricing.price_checks import BOUNDS_FILE, PriceBounds
from advisor.pricing.spot_odds import (
    INTERRUPTION_FILE,
    SPOT_ODDS_FILE,
    START_ODDS_FILE,
    Interruptions,
    SpotOdds,
    StartOdds,
)
from advisor.pricing.storage_rates import DISKS_FILE, DiskRates
from recommender.queue.waits import WAITS_FILE, PooledWait

TABLES: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    BOUNDS_FILE: (PriceBounds, ("gpu",)),
    DISKS_FILE: (DiskRates, ("provider",)),
    providers.FORM_FILE: (providers.GpuForm, ("provider", "instance_types")),
    INSTANCE_FILE: (InstanceType, ("provider", "instance_type")),
    INTERRUPTION_FILE: (Interruptions, ("instance_type", "region")),
    providers.PROVIDER_FILE: (providers.Provider, ("name",)),
    providers.QUOTAS_FILE: (providers.NamedQuota, ("provider", "quota")),
    RATIO_FILE: (Ratio, ("provider", "gpu")),
    providers.REGION_FILE: (providers.Region, ("name",)),
    SPOT_ODDS_FILE: (SpotOdds, ("size", "age")),
    START_ODDS_FILE: (StartOdds, ("market", "size", "age")),
    WAITS_FILE: (PooledWait, ("size", "walltime")),
}
MAY_BE_0 = {"p10_s", "p25_s", "p50_s", "low_pct", "bytes_per_s_of_a_gib", "is_opt_in", "local_ssd_bytes"}
MAY_BE_EMPTY = {"left_out_locations", "community_locations", "spot_is"}
SHARES = {"p_at_once", "p90"}
ASCENDING = (
    ("low_pct", "high_pct"),
    ("base_bytes_per_s", "most_bytes_per_s"),
    ("lowest_usd_per_gpu_h", "highest_usd_per_gpu_h"),
    ("later_p50_s", "later_p90_s"),
    ("p10", "p50"),
    ("p50", "p90"),
    *pairwise(f"p{name}_s" for name in (10, 25, 50, 75, 90, 95, 99)),
)


@pytest.mark.parametrize(("file", "kind", "key"), [(file, *of) for file, of in TABLES.items()], ids=TABLES)
def test_each_row_is_whole_and_there_once(file, kind, key):
    rows = [asdict(row) for row in read_as(catalog_path(file), kind)]
    assert rows
    assert len({tuple(row[name] for name in key) for row in rows}) == len(rows)
    for row in rows:
        assert all(value not in ("", ()) for name, value in row.items() if name not in MAY_BE_EMPTY), row
        numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
        assert all(math.isfinite(value) and value >= 0 for value in numbers.values()), row
        assert all(value > 0 for name, value in numbers.items() if name not in MAY_BE_0), row
        assert all(row[share] <= 1 for share in SHARES & row.keys()), row
        for low, high in ASCENDING:
            assert low not in row or row[low] <= row[high], row
