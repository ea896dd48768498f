"""What could be rented or used: counts, rates, ids and the cheapest place of each machine."""

import math
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from advisor.core import values
from advisor.core.findings.about_options import (
    GpuInUse,
    PlaceContended,
    QueueAssumed,
    RateUnknown,
    WaitAssumed,
    WaitOfLog,
)
from advisor.pricing.answers import cheapest_places
from advisor.pricing.node_counts import useful_counts
from advisor.pricing.spot_odds import rarest_start, start_odds
from advisor.pricing.storage_rates import RateKind, StorageRate
from recommender.plans.candidates import (
    OwnMachine,
    cheapest_plans,
    plans_of_machine,
    plans_of_offers,
    with_elsewhere,
    with_known_gpu,
)
from recommender.plans.extras import CloudTerms
from recommender.queue.waits import assumed_wait
from tests.builders import make_offer, make_plan, make_price
from tests.findings import said, sample

WAIT = values.Quantiles(p50=3600.0, p90=7200.0)
NOTHING = CloudTerms(startup_s=0.0)
DISK = StorageRate(
    provider="aws",
    region="us-*",
    kind=RateKind.BLOCK_STORAGE,
    up_to_gib=float("inf"),
    usd=0.073,
    source="a test",
    as_of=date(2025, 1, 1),
)
EGRESS = replace(DISK, kind=RateKind.EGRESS_INTERNET, usd=0.09)


def make_machine(**changes: Any) -> OwnMachine:
    facts: dict[str, Any] = {
        "tier": values.Tier.CLUSTER,
        "name": "lab",
        "gpu": "X",
        "num_gpus": 4,
        "usd_per_gpu_h": 0.5,
        "wait_s": WAIT,
    }
    return OwnMachine(**(facts | changes))


@pytest.mark.parametrize(
    ("num_gpus", "counts"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (7, [1, 2, 4, 7]), (8, [1, 2, 4, 8])],
)
def test_useful_counts_are_powers_of_two_and_all(num_gpus, counts):
    assert useful_counts(num_gpus) == counts


def test_a_cluster_charges_for_each_gpu_used():
    plans = plans_of_machine(make_machine())
    assert [plan.num_gpus for plan in plans] == [1, 2, 4]
    assert [plan.usd_per_h for plan in plans] == [0.5, 1.0, 2.0]


def test_a_cluster_keeps_its_name_and_wait():
    plan = plans_of_machine(make_machine())[-1]
    assert plan.id == "cluster/lab/4xX"
    assert (plan.tier, plan.provider, plan.wait_s) == (values.Tier.CLUSTER, "lab", WAIT)
    assert plan.offer is None
    assert (plan.startup_s, plan.minimum_billed_s) == (0, 0)


def test_an_unknown_rate_stays_unknown_and_an_unknown_wait_is_that_of_other_clusters():
    """Nothing unknown counts as nothing; what owners charge is theirs to decide."""
    machine = make_machine(usd_per_gpu_h=None, wait_s=None)
    for plan in plans_of_machine(machine):
        assumed_s, note = assumed_wait(plan.num_gpus, None)
        assert plan.usd_per_h is None
        assert (plan.wait_s, plan.notes) == (assumed_s, (note,))
        assert isinstance(note, QueueAssumed)
    asked = plans_of_machine(replace(machine, walltime_s=3600.0))[0]
    assert asked.wait_s == assumed_wait(1, 3600.0)[0]


def test_a_spot_machine_at_the_least_price_or_often_taken_back_starts_as_the_rarest_class():
    usual = values.Price(
        usd_per_h=values.Interval(p10=1.0, p50=1.0, p90=1.0), kind=values.QuoteKind.LIVE, age_days=0.0
    )
    offer = make_offer("T4", 1.0, provider="gcp", market=values.Market.SPOT)
    plans = [
        plans_of_offers([offer], terms=NOTHING, prices=[replace(usual, is_near_floor=near)])[0]
        for near in (False, True)
    ]
    rarest = rarest_start(values.Market.SPOT).wait_s
    assert plans[0].wait_s == start_odds("T4", 1, values.Market.SPOT).wait_s
    assert plans[1].wait_s == rarest
    assert rarest.p_at_once < start_odds("T4", 1, values.Market.SPOT).wait_s.p_at_once
    assert [any(isinstance(note, PlaceContended) for note in plan.notes) for plan in plans] == [False, True]
    taken = make_offer(
        "T4", 1.0, instance_type="g4ad.2xlarge", region="eu-central-1", market=values.Market.SPOT
    )
    assert plans_of_offers([taken], terms=NOTHING)[0].wait_s == rarest


def test_a_machine_that_costs_nothing_is_not_one_of_unknown_cost():
    assert [plan.usd_per_h for plan in plans_of_machine(make_machine(usd_per_gpu_h=0.0))] == [0, 0, 0]


def test_this_machine_never_waits():
    plan = plans_of_machine(make_machine(tier=values.Tier.LOCAL, name="desk", wait_s=None, num_gpus=1))[0]
    assert plan.wait_s == values.Quantiles(p50=0.0, p90=0.0)
    assert (plan.id, plan.provider) == ("local/1xX", "local")


@pytest.mark.parametrize(
    ("num_gpus", "num_busy", "counts"),
    [
        (1, 0, [1]), (1, 1, [1]), (2, 1, [1]), (2, 2, [1, 2]), (4, 1, [1, 2, 3]), (8, 1, [1, 2, 4, 7]),
        (8, 6, [1, 2]), (4, 4, [1, 2, 4]),
    ],
)  # fmt: skip
def test_free_gpus_are_planned_with(num_gpus, num_busy, counts):
    busy = (sample(GpuInUse),) * num_busy
    plans = plans_of_machine(make_machine(tier=values.Tier.LOCAL, num_gpus=num_gpus, in_use=busy))
    assert [plan.num_gpus for plan in plans] == counts
    none = values.Quantiles(p50=0.0, p90=0.0)
    for plan in plans:
        assert plan.notes == busy
        assert plan.wait_s == (none if plan.num_gpus <= num_gpus - num_busy else None)


@pytest.mark.parametrize(
    ("asked", "counts"), [((), [1, 2, 3]), ({4}, [1, 2, 3, 4]), ({1, 2}, [1, 2, 3]), ({8}, [1, 2, 3])]
)
def test_gpus_in_use_are_planned_with_where_they_are_asked_for(asked, counts):
    machine = make_machine(tier=values.Tier.LOCAL, num_gpus=4, in_use=(sample(GpuInUse),))
    assert [plan.num_gpus for plan in plans_of_machine(machine, asked=asked)] == counts


def test_a_logged_wait_goes_before_a_configured_one():
    logged = (values.Quantiles(p50=1.0, p90=2.0), (sample(WaitOfLog),))
    one, two, _ = plans_of_machine(make_machine(waits={2: logged}))
    assert (one.wait_s, one.notes) == (WAIT, ())
    assert (two.wait_s, two.notes) == logged


def test_what_a_cost_was_made_of_is_told():
    (plan,) = plans_of_machine(make_machine(num_gpus=1, cost_source="electricity"))
    assert plan.rates == {"training": "electricity"}
    assert plans_of_machine(make_machine())[0].rates == {}


def test_two_clusters_with_the_same_gpu_have_distinct_ids():
    plans = [*plans_of_machine(make_machine()), *plans_of_machine(make_machine(name="other"))]
    assert len({plan.id for plan in plans}) == len(plans) == 6


def test_an_offer_becomes_the_whole_machine():
    offer = make_offer(num_gpus=8, usd_per_h=32.0, minimum_billed_s=60.0)
    plan = plans_of_offers([offer], terms=CloudTerms(startup_s=300.0))[0]
    assert (plan.num_gpus, plan.num_nodes, plan.usd_per_h) == (8, 1, 32.0)
    assert (plan.startup_s, plan.minimum_billed_s) == (300.0, 60.0)
    assert plan.offer is offer
    assert plan.wait_s == start_odds(offer.gpu, 8, offer.market).wait_s
    assert [type(note) for note in plan.notes] == [WaitAssumed]


def test_an_offer_is_paid_at_the_contracted_price():
    offer = make_offer(usd_per_h=32.0, contracted_usd_per_h=20.0)
    assert plans_of_offers([offer], terms=NOTHING)[0].usd_per_h == 20.0


def test_an_offer_is_billed_by_its_own_step():
    offer = make_offer(billed_step_s=3600.0)
    assert plans_of_offers([offer], terms=NOTHING)[0].billed_step_s == 3600.0


def test_what_is_kept_and_moved_is_part_of_the_plan():
    terms = CloudTerms(startup_s=300.0, boot_disk_gib=20.0, dataset_gib=80.0, result_gib=5.0)
    offers = [make_offer(), make_offer(region="eu-west-1")]
    known, unknown = plans_of_offers(offers, terms=terms, catalog=(DISK, EGRESS))
    assert known.storage_usd_per_h == pytest.approx(100 * 0.073 / 730)
    assert known.egress_usd == pytest.approx(5 * 0.09)
    assert set(known.rates) == {"storage", "data transfer"}
    assert (unknown.storage_usd_per_h, unknown.egress_usd) == (known.storage_usd_per_h, known.egress_usd)
    assert [type(note) for note in unknown.notes] == [WaitAssumed, *[RateUnknown] * 2]
    for plan in (known, unknown):
        assert plan.download_s == terms.download_s(80.0) > 0
        assert plan.startup_s == 300.0 + plan.download_s


def test_an_own_machine_pays_no_cloud():
    for plan in plans_of_machine(make_machine()):
        assert (plan.storage_usd_per_h, plan.egress_usd, plan.download_s, plan.billed_step_s) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("region", "zone", "place"),
    [
        ("us-east-1", None, "us-east-1"),
        ("us-east-1", "use1-az4", "use1-az4"),
        ("us-west-2", "usw2-lax1-az1", "usw2-lax1-az1"),
        ("ap-southeast-2", "apse2-az1", "apse2-az1"),
        ("us-east-1", "use1-wl1-bos-wlz1", "use1-wl1-bos-wlz1"),
        ("us-central1", "us-central1-a", "us-central1-a"),
        ("berlin", "b", "berlin:b"),
        ("paris", "b", "paris:b"),
    ],
)
def test_the_id_of_an_offer_tells_its_region(region, zone, place):
    (plan,) = plans_of_offers([make_offer(region=region, zone=zone)], terms=NOTHING)
    assert plan.id.split("/")[2] == place


def test_the_id_of_an_offer_tells_zone_and_market_apart():
    offers = [
        make_offer(),
        make_offer(market=values.Market.SPOT),
        make_offer(market=values.Market.SPOT, zone="use1-az1"),
        make_offer(market=values.Market.SPOT, zone="use1-az2"),
        make_offer(provider="gcp"),
    ]
    ids = [plan.id for plan in plans_of_offers(offers, terms=NOTHING)]
    assert ids[0] == "aws/x.xlarge/us-east-1/on-demand"
    assert ids[2] == "aws/x.xlarge/use1-az1/spot"
    assert len(set(ids)) == 5


def cheapest_of(offers: list[values.Offer]) -> list[values.Offer]:
    """The cheapest places at exact prices."""
    return [offer for offer, _ in cheapest_places((offer, make_price(offer.usd_per_h)) for offer in offers)]


def test_only_the_cheapest_place_of_a_machine_stays():
    dear, cheap = make_offer(usd_per_h=3.0), make_offer(usd_per_h=2.0, region="eu-north-1")
    assert cheapest_of([dear, cheap]) == [cheap]
    assert cheapest_of([cheap, dear]) == [cheap]


def test_markets_types_and_providers_do_not_compete_for_a_place():
    offers = [
        make_offer(usd_per_h=3.0),
        make_offer(usd_per_h=1.0, market=values.Market.SPOT),
        make_offer(usd_per_h=2.0, provider="gcp"),
        make_offer(usd_per_h=4.0, instance_type="x.2xlarge"),
    ]
    assert cheapest_of(offers) == offers


def test_a_guessed_price_decides_by_its_p90_which_place_is_cheapest():
    quoted, derived = make_offer(usd_per_h=2.0), make_offer(usd_per_h=1.5, region="eu-north-1")
    guess = make_price(1.6, 2.1, values.QuoteKind.DERIVED)
    assert cheapest_places([(quoted, make_price(2.0)), (derived, guess)]) == [(quoted, make_price(2.0))]


def test_the_contracted_price_decides_which_place_is_cheapest():
    listed = make_offer(usd_per_h=2.0)
    contracted = make_offer(usd_per_h=3.0, contracted_usd_per_h=1.0, region="eu-north-1")
    assert cheapest_of([listed, contracted]) == [contracted]


def test_equal_prices_are_decided_by_the_name_of_the_place():
    places = [
        make_offer(region="us-east-1", zone="use1-az2"),
        make_offer(region="us-east-1", zone="use1-az1"),
        make_offer(region="ap-south-1", zone="zzz"),
    ]
    assert cheapest_of(places) == cheapest_of(places[::-1]) == [places[2]]
    assert cheapest_of(places[:2]) == cheapest_of(places[1::-1]) == [places[1]]


def test_nothing_offered_is_nothing_to_rent():
    assert cheapest_places([]) == plans_of_offers([], terms=NOTHING) == cheapest_plans([]) == []


def place(region: str, usd_per_h: float, **changes: Any) -> values.Plan:
    offer = make_offer(usd_per_h=usd_per_h, region=region)
    return make_plan(offer=offer, usd_per_h=usd_per_h, id=region, **changes)


def zone(name: str, usd_per_h: float, p90: float | None = None, **changes: Any) -> values.Plan:
    offer = make_offer(usd_per_h=usd_per_h, zone=name, market=values.Market.SPOT)
    changes = {"price": make_price(usd_per_h, p90)} | changes
    return make_plan(offer=offer, usd_per_h=usd_per_h, id=name, **changes)


DERIVED = values.QuoteKind.DERIVED
WORTH_SHOWING = {
    "the cheapest place": ([place("a", 2.0), place("b", 2.0), place("c", 3.0)], 1),
    "dear disks": ([place("b", 3.0, storage_usd_per_h=0.1), place("a", 2.0, storage_usd_per_h=1.5)], 1),
    "a few cents of disks": (
        [zone("az1", 2.0, storage_usd_per_h=0.02), zone("az2", 5.0, storage_usd_per_h=0.01)], 1),
    "cheaper egress beside cheaper rent": (
        [place("a", 2.0, egress_usd=10.0), place("b", 3.0, egress_usd=1.0),
         place("c", 3.5, egress_usd=5.0)], 2),
    "beside the data and cheaper far from it": (
        [place("b", 1.9, startup_s=900.0), place("a", 2.0),
         place("c", 1.9, startup_s=900.0, transfer_usd=5.0)], 2),
    "a steady price beside a lower one that rises": (
        [zone("az1", 20.0, p90=60.0), zone("az2", 20.01, p90=20.01), zone("az3", 20.02, p90=20.02)], 2),
    "a steeper rise beyond its p90": ([zone("az1", 1.0, p90=10.0), zone("az2", 9.0, p90=10.8)], 2),
    "what is quoted": ([zone("az1", 2.0, price=None), zone("az2", 2.1, p90=2.1)], 1),
    # By numpy's AVX-512 and AVX2 logarithms: $4.47 both times.
    "the last digits, which differ by processor": (
        [zone("az2", 3.1, price=make_price(3.1, 4.47, DERIVED)),
         zone("az1", 3.0, price=make_price(3.0, math.nextafter(4.47, 0.0), DERIVED))], 1),
}  # fmt: skip


@pytest.mark.parametrize(("plans", "num_kept"), WORTH_SHOWING.values(), ids=WORTH_SHOWING)
def test_the_first_are_kept_in_this_order(plans, num_kept):
    assert cheapest_plans(plans) == cheapest_plans(plans[::-1]) == plans[:num_kept]


def test_data_from_a_cloud_comes_to_an_own_machine_first():
    data = values.DataPlace(name="us-east-1", provider="aws", region="us-east-1")
    terms = CloudTerms(startup_s=300.0, dataset_gib=80.0, data=data)
    for plan in plans_of_machine(make_machine(), terms=terms, catalog=(DISK, EGRESS)):
        assert plan.transfer_usd == pytest.approx(80 * 0.09)
        assert plan.startup_s == plan.download_s == terms.download_s(80.0)
        assert set(plan.rates) == {"moving the data"}


def test_machines_and_markets_do_not_compete_for_a_place_with_extras_either():
    offers = [make_offer(), make_offer(market=values.Market.SPOT), make_offer(instance_type="y")]
    plans = plans_of_offers(offers, terms=NOTHING)
    assert cheapest_plans(plans) == plans


def test_a_derived_price_hides_a_quoted_one_only_where_its_p90_is_lower():
    quoted = zone("az1", 4.0)
    derived = zone("az2", 3.03, price=make_price(3.03, 4.47, values.QuoteKind.DERIVED))
    assert cheapest_plans([derived, quoted]) == [quoted]
    surer = zone("az3", 3.03, price=make_price(3.03, 3.1, values.QuoteKind.DERIVED))
    assert surer in cheapest_plans([surer, quoted])


def test_a_plan_costs_the_median_of_what_its_offer_will_likely_cost():
    price = make_price(3.0, 4.0)
    (plan,) = plans_of_offers([make_offer(usd_per_h=2.0)], terms=NOTHING, prices=[price])
    assert (plan.usd_per_h, plan.price) == (3.0, price)
    assert plans_of_offers([make_offer(usd_per_h=2.0)], terms=NOTHING)[0].usd_per_h == 2.0


def test_offers_of_unknown_gpus_are_left_out_with_one_warning():
    offers = [make_offer("T4"), make_offer("aws B400"), make_offer("gcp X1"), make_offer("aws B400")]
    kept, warnings = with_known_gpu(offers, {"T4", "L4"})
    assert kept == offers[:1]
    assert len(warnings) == 1
    assert "aws B400, gcp X1" in said(warnings)


def test_known_gpus_need_no_warning():
    offers = [make_offer("T4"), make_offer("L4")]
    assert with_known_gpu(offers, {"T4", "L4"}) == (offers, ())


def spot_in(
    region: str, at: str | None, usd_per_h: float, market: values.Market = values.Market.SPOT
) -> values.Plan:
    offer = make_offer(usd_per_h=usd_per_h, region=region, zone=at, market=market)
    return make_plan(offer=offer, usd_per_h=usd_per_h, id=f"{region}/{at}/{market}")


def test_a_spot_job_may_go_to_zones_of_its_region_that_cost_no_more_than_a_tenth_more_and_on_demand():
    on_demand = spot_in("r", None, 3.0, values.Market.ON_DEMAND)
    others = [
        spot_in("r", "b", 1.05),
        spot_in("r", "c", 0.95),
        spot_in("r", "d", 1.2),
        spot_in("q", "e", 1.0),
    ]
    plans = [spot_in("r", "a", 1.0), *others, on_demand]
    first, *_, last, again = with_elsewhere(plans, among=plans)
    assert first.elsewhere == values.Elsewhere(
        num_zones=2, usd_per_h=pytest.approx(1.025), on_demand=on_demand
    )
    assert (first.elsewhere.on_demand_usd_per_h, first.elsewhere.on_demand_wait_s) == (3.0, on_demand.wait_s)
    assert (last.elsewhere, again) == (None, on_demand)


def test_a_guess_elsewhere_counts_at_its_p90():
    guess = replace(spot_in("r", "b", 0.3), price=make_price(0.3, p90=1.05, kind=values.QuoteKind.DERIVED))
    plans = [spot_in("r", "a", 1.0), guess]
    first, _ = with_elsewhere(plans, among=plans)
    assert first.elsewhere is not None
    assert first.elsewhere.usd_per_h == pytest.approx(1.05)


def test_of_a_price_for_the_whole_region_no_other_zone_is_known():
    plans = [spot_in("r", None, 1.0), spot_in("r", "a", 1.0)]
    (whole, zoned) = with_elsewhere(plans, among=plans)
    assert whole.elsewhere is None
    assert zoned.elsewhere is None
