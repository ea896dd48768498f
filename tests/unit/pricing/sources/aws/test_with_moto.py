"""The calls that moto knows, answered by moto: its regions, zones, offerings and instance types."""

import dataclasses

import pytest
from moto.server import ThreadedMotoServer

from advisor.core.values import Market
from advisor.pricing.sources.protocol import OfferQuery
from tests.clouds.aws_asking import ask, the_offer, usd_per_h
from tests.clouds.aws_world import product, small_world

ON_DEMAND = OfferQuery(regions=("us-east-1", "eu-west-1"), markets=(Market.ON_DEMAND,))


@pytest.fixture(scope="module")
def moto_url():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def moto(moto_url, start, monkeypatch):
    """EC2 is moto's; the price list, which moto lacks, is the fake's, with a new and two odd types."""
    new = {"g7.2xlarge": "1.5", "g6f.large": "0.2", "trn1.2xlarge": "1.3", "m5.large": "0.096"}
    products = (product(name, "us-east-1", usd) for name, usd in new.items())
    start(dataclasses.replace(small_world(), products=(*small_world().products, *products)))
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", moto_url)


@pytest.mark.usefixtures("moto")
def test_list_prices_meet_motos_offerings_and_descriptions():
    parts = ask(ON_DEMAND)
    assert parts.keys() == {"us-east-1 on-demand", "eu-west-1 on-demand"}
    part = parts["us-east-1 on-demand"]
    assert part.failure is None
    prices = usd_per_h(part)
    assert prices["g6.xlarge", None] == 0.8048
    assert prices["p5.48xlarge", None] == 55.04
    text = "\n".join(part.gaps)
    assert "types with a fraction of a GPU are left out: g6f.large" in text
    assert "types without GPUs of NVIDIA or AMD are left out: m5.large, trn1.2xlarge" in text


@pytest.mark.usefixtures("moto")
def test_a_new_type_is_what_moto_describes():
    offer = the_offer(ask(ON_DEMAND)["us-east-1 on-demand"], "g7.2xlarge")
    assert (offer.gpu, offer.num_gpus, offer.num_vcpus) == ("aws RTX PRO 4500", 1, 8)
    assert offer.includes[:2] == ("8 vCPU", "32 GiB RAM")


@pytest.mark.usefixtures("moto")
def test_spot_of_another_product_is_no_spot_price():
    """moto quotes a constant of 2006 for ``Linux/UNIX (Amazon VPC)``."""
    query = dataclasses.replace(ON_DEMAND, markets=(Market.SPOT,))
    part = ask(query)["us-east-1 spot"]
    assert part.failure is None
    assert part.offers == part.history == ()
