"""Live AWS prices over HTTP against a server that holds the reference data."""

import os
import subprocess
import sys
from collections import Counter

import pytest

from advisor.core.gpus import load_gpus
from advisor.core.plugins import load
from advisor.core.values import Market, Offer
from advisor.pricing.sources.protocol import Part
from tests.clouds.aws_asking import ask
from tests.clouds.aws_server import FakeAws, running
from tests.clouds.aws_world import ordinary_prices, rows_of, shared_world, with_traps
from tests.shared import SHARED, needs_shared

pytestmark = [needs_shared, pytest.mark.shared]
PRICES = SHARED / "prices"
FLOOR = 0.1001


@pytest.fixture(scope="module")
def world():
    return shared_world(PRICES)


@pytest.fixture(scope="module")
def environment():
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        yield patch


def lead(environment: pytest.MonkeyPatch, aws: FakeAws) -> None:
    for name, value in aws.environment().items():
        environment.setenv(name, value)


@pytest.fixture(scope="module")
def refreshed(world, environment):
    """One refresh of everything, and what was called."""
    with running(world) as aws:
        lead(environment, aws)
        return ask(), Counter(name for name, _ in aws.calls)


def offers_of(parts: dict[str, Part], market: Market) -> list[Offer]:
    return [offer for part in parts.values() for offer in part.offers if offer.market is market]


def is_fraction(instance_type: str) -> bool:
    return instance_type.split(".")[0] in {"g6f", "gr6f"}


def test_every_region_answers_for_both_markets(refreshed):
    parts, _ = refreshed
    regions = {region for _, region in ordinary_prices(PRICES)}
    assert len(regions) == 28
    assert parts.keys() == {f"{region} {market}" for region in regions for market in ("on-demand", "spot")}
    assert not [part for part in parts.values() if part.failure]


def test_every_on_demand_price_comes_out_to_the_last_digit(refreshed):
    """Fractions of a GPU are left out; nothing of local zones and government regions comes in."""
    parts, _ = refreshed
    wanted = {key: float(usd) for key, usd in ordinary_prices(PRICES).items() if not is_fraction(key[0])}
    by_place = {(o.instance_type, o.region): o.usd_per_h for o in offers_of(parts, Market.ON_DEMAND)}
    assert len(by_place) == 794
    assert by_place == pytest.approx(wanted, abs=1e-9)
    assert by_place.keys() == wanted.keys()
    assert len(offers_of(parts, Market.ON_DEMAND)) == len(by_place)


def test_fractions_and_gpus_that_the_catalog_lacks_are_told(refreshed):
    parts, _ = refreshed
    for part in parts.values():
        foreign = {offer.gpu for offer in part.offers} - set(load_gpus())
        assert foreign <= {"aws RTX PRO 4500"}
        assert bool(foreign) <= any("aws RTX PRO 4500" in gap for gap in part.gaps)
    with_fractions = {region for name, region in ordinary_prices(PRICES) if is_fraction(name)}
    for region in with_fractions:
        assert any("fraction of a GPU" in gap for gap in parts[f"{region} on-demand"].gaps)


def test_every_spot_quote_comes_out_by_zone_id(refreshed):
    parts, _ = refreshed
    on_demand = {key: float(usd) for key, usd in ordinary_prices(PRICES).items()}
    quoted, at_floor = {}, set()
    for row in rows_of(PRICES / "aws_spot_snapshot_azid.csv"):
        key = (row["instance_type"], row["region"], row["availability_zone_id"])
        usd = float(row["spot_usd_per_hour"] or "nan")
        if usd <= FLOOR * on_demand.get(key[:2], 0.0):
            at_floor.add(key)
        elif usd > 0:
            quoted[key] = usd
    by_place = {(o.instance_type, o.region, o.zone): o.usd_per_h for o in offers_of(parts, Market.SPOT)}
    assert len(at_floor) >= 6
    assert len(by_place) > 330
    assert by_place == quoted
    text = "\n".join(gap for part in parts.values() for gap in part.gaps)
    assert all(f"{instance_type} in {zone}" in text for instance_type, _, zone in at_floor)


def test_spot_offers_have_quantiles_and_history(refreshed):
    """The server's history: the quote since a day, 1.3 times as much for 29 days before."""
    parts, _ = refreshed
    for offer in offers_of(parts, Market.SPOT):
        assert offer.spot_usd_per_h is not None
        assert offer.spot_usd_per_h.p50 == pytest.approx(1.3 * offer.usd_per_h, abs=1e-6)
    for part in parts.values():
        assert {p.market for p in part.history} <= {Market.SPOT}
        newest = {(o.instance_type, o.zone): o.usd_per_h for o in part.offers if o.zone}
        for key, usd in newest.items():
            points = [p for p in part.history if (p.instance_type, p.zone) == key]
            assert max(points, key=lambda p: p.observed_at).usd_per_h == usd


def test_a_refresh_of_everything_takes_few_calls(refreshed):
    """Four a region, one more where there are types that the catalog lacks, and the list of regions."""
    _, calls = refreshed
    assert calls.pop("DescribeInstanceTypes") <= 28
    assert calls == {
        "DescribeRegions": 1, "GetProducts": 28, "DescribeInstanceTypeOfferings": 28,
        "DescribeAvailabilityZones": 28, "DescribeSpotPriceHistory": 28,
    }  # fmt: skip


def test_regions_are_asked_at_the_same_time(world, environment):
    """Each answer waits until all 28 regions have asked: one after the other, none would ever get one."""
    with running(world, meets=28) as aws:
        lead(environment, aws)
        parts = ask(timeout_s=60)
    assert not [part for part in parts.values() if part.failure]


def test_traps_change_no_price(world, environment, refreshed):
    parts, _ = refreshed
    with running(with_traps(world, "g5.xlarge", "us-east-1"), honours_filters=False) as aws:
        lead(environment, aws)
        trapped = ask()
    assert trapped.keys() == parts.keys()
    for scope, part in parts.items():
        new = {offer for offer in trapped[scope].offers if offer.gpu == "aws B400"}
        assert set(trapped[scope].offers) - new == set(part.offers)
        assert len(new) == (scope == "us-east-1 on-demand")


def test_the_entry_point_is_this_source_and_imports_no_sdk():
    program = (
        "import sys; from advisor.core.plugins import load;"
        "load('advisor.price_sources', 'aws')({});"
        "print([name for name in sys.modules if name.split('.')[0] in ('boto3', 'botocore')])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
    assert load("advisor.price_sources", "aws")({}).name == "aws"
