"""Cases of prices, and of data that lie elsewhere: their arithmetic is written out by hand."""

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import ClassVar

import pytest

from advisor.core.units import GIB
from advisor.core.values import DataPlace, Interval, Market, Offer, Quantiles, QuoteKind, Recommendation
from advisor.pricing.expected_prices import PriceModel, likely_prices
from advisor.pricing.storage_rates import RateKind, StorageRate
from recommender.outcome.spot import SpotTerms
from recommender.plans.candidates import plans_of_offers
from recommender.plans.extras import CloudTerms
from tests.builders import make_estimate, make_job, make_offer, make_trace
from tests.unit.decisions import TOLERANCE, cost_usd, decide, reasons, time_h


class TestCase10TheMinimumOfNoisyPrices:
    NOW = datetime(2026, 11, 22, tzinfo=UTC)
    ON_DEMAND: ClassVar = {("aws", "x.xlarge", place): 10.0 for place in ("a", "b")}
    MODEL = PriceModel(
        ratios={("aws", "X"): Interval(p10=0.25, p50=0.40, p90=0.65)}, most_weight={QuoteKind.DERIVED: 0.2}
    )

    def quoted(self, place: str, usd_per_h: float) -> Offer:
        return make_offer(
            "X", usd_per_h, region=place, market=Market.SPOT, retrieved_at=self.NOW, minimum_billed_s=0.0
        )

    def derived(self, usd_per_h: float = 1.0) -> Offer:
        then = self.NOW - timedelta(days=500)
        return replace(self.quoted("b", usd_per_h), retrieved_at=then, source="derived from savings")

    def decide(self, *offers: Offer) -> Recommendation:
        prices = likely_prices(offers, now=self.NOW, on_demand=self.ON_DEMAND, model=self.MODEL)
        plans = plans_of_offers(offers, terms=CloudTerms(startup_s=0.0), prices=prices)
        calm = SpotTerms(preemptions_per_h=0.0, checkpoint_h=0.0)
        return decide(plans, [make_estimate("X", 0.36)], make_job(), spot=calm)

    def test_the_derived_price_is_shrunk_towards_its_family(self):
        (price,) = likely_prices([self.derived()], now=self.NOW, on_demand=self.ON_DEMAND, model=self.MODEL)
        assert price.usd_per_h.p50 == pytest.approx(3.0314, abs=TOLERANCE)
        assert price.usd_per_h.p90 == pytest.approx(4.4703, abs=TOLERANCE)

    def test_the_quoted_one_is_recommended_and_the_derived_one_stays_visible(self):
        answer = self.decide(self.quoted("a", 4.0), self.derived())
        assert answer.recommended == "aws/x.xlarge/a/spot"
        costs = {option.plan.id: option.cost_usd for option in answer.options}
        assert costs["aws/x.xlarge/a/spot"].p50 == pytest.approx(40.00)
        derived = costs["aws/x.xlarge/b/spot"]
        assert derived.p50 == pytest.approx(30.31, abs=0.01)
        assert derived.p90 == pytest.approx(44.70, abs=0.01)
        assert "never quoted" in reasons(answer, "aws/x.xlarge/b/spot")

    def test_quoted_today_at_the_same_price_it_would_be_recommended(self):
        answer = self.decide(self.quoted("a", 4.0), self.quoted("b", 1.0))
        assert answer.recommended == "aws/x.xlarge/b/spot"
        assert cost_usd(answer, "aws/x.xlarge/b/spot") == pytest.approx(10.00)


def rate(kind: RateKind, usd: float, region: str) -> StorageRate:
    return StorageRate(
        provider="aws",
        region=region,
        kind=kind,
        up_to_gib=math.inf,
        usd=usd,
        source="the case",
        as_of=date(2026, 11, 1),
    )


class TestCase13FarFromTheData:
    # The case's GB of sizes, speeds and prices are one unit; ours is 2^30 bytes.
    TERMS = CloudTerms(
        startup_s=0.0,
        dataset_gib=3000.0,
        download_bits_per_s=5 * GIB,
        data=DataPlace(name="us-east-1", provider="aws", region="us-east-1"),
    )
    RATES = (rate(RateKind.EGRESS_REGION, 0.02, "us-east-1"), rate(RateKind.BLOCK_STORAGE, 0.0, "*"))

    def decide(self) -> Recommendation:
        offers = [make_offer("M", 1.0, region="ap-south-1"), make_offer("N", 3.0)]
        plans = plans_of_offers(offers, terms=self.TERMS, catalog=self.RATES)
        plans = [replace(p, id=p.gpu, wait_s=Quantiles(p50=0.0, p90=0.0)) for p in plans]
        # The case's 20 h are one epoch: what reads over the network meanwhile hides.
        trace = replace(make_trace(), iterations_per_epoch=100_000)
        return decide(plans, [make_estimate(name, 0.72) for name in "MN"], make_job(), trace)

    def test_moving_takes_time_and_money(self):
        answer = self.decide()
        assert [time_h(answer, name).p50 for name in "MN"] == pytest.approx([21.3333, 20.0], abs=TOLERANCE)
        assert [cost_usd(answer, name) for name in "MN"] == pytest.approx([81.3333, 60.0], abs=TOLERANCE)
        far = answer.options[0]
        assert far.cost_breakdown_usd["moving the data"] == pytest.approx(60.0)
        assert "3,000 GiB of data come from us-east-1 for $60.00 in 1 h 20 min" in reasons(answer, "M")

    def test_n_is_recommended(self):
        assert self.decide().recommended == "N"


class TestCase14ADiskWithoutARate:
    RATES = tuple(
        rate(RateKind.BLOCK_STORAGE, usd, region) for usd, region in ((0.08, "a"), (0.10, "b"), (0.18, "c"))
    )

    def test_it_costs_the_dearest_of_the_provider_and_says_so(self):
        terms = CloudTerms(startup_s=0.0, boot_disk_gib=500.0)
        (plan,) = plans_of_offers([make_offer(region="d")], terms=terms, catalog=self.RATES)
        plan = replace(plan, wait_s=Quantiles(p50=0.0, p90=0.0))
        answer = decide([plan], [make_estimate("X", 0.864)], make_job())
        assert time_h(answer, plan.id).p50 == pytest.approx(24.0)
        storage_usd = answer.options[0].cost_breakdown_usd["storage"]
        assert storage_usd == pytest.approx(2.9589, abs=TOLERANCE)
        assert "the dearest known (aws c)" in reasons(answer, plan.id)
