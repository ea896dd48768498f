"""What a run cost: stated, price x time, or unknown; and where it ran."""

from dataclasses import replace

import pytest

from advisor.config.layers import Config, load_config
from advisor.core.devices import Device
from advisor.core.values import CostKind, Market
from advisor.receipt import instance
from advisor.receipt.instance import Instance
from advisor.service.plan_facts import MachineHere, Place
from advisor.service.receipts import RunCost, cost_of, machine_here

NOWHERE = Place(provider=None, gpu=None, num_gpus=None, market=None)
SPOT_L4 = Place(
    provider="aws", gpu="L4", num_gpus=1, market=Market.SPOT, instance_type="g6.xlarge", region="us-east-1"
)
ON_AWS = Instance(
    provider="aws", instance_type="g6.12xlarge", region="us-east-1", zone="use1-az4", market=Market.ON_DEMAND
)


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    lab = {"name": "lab", "gpu": "V100-PCIE-32GB", "num_gpus": 4, "usd_per_gpu_h": 0.5}
    return load_config(
        {"store.url": f"sqlite:///{tmp_path}/a.db", "prices.sources": ["snapshot"], "clusters": [lab],
         "local.gpu": "RTX-3090", "local.usd_per_gpu_h": 0.2}
    )  # fmt: skip


def cost(
    config: Config, place: Place, *, share: float = 1.0, zone: str | None = None, **said: float
) -> RunCost:
    where = MachineHere(place=place, zone=zone, share=share)
    return cost_of(where, 1800.0, config, usd=said.get("usd"), usd_per_h=said.get("usd_per_h"))


def test_what_somebody_says_goes_first(config):
    assert cost(config, SPOT_L4, usd=7.0) == RunCost(usd=7.0, kind=CostKind.STATED)
    said = cost(config, SPOT_L4, usd_per_h=4.0, share=0.25)
    assert (said.usd, said.kind, said.usd_per_h, said.price_retrieved_at) == (
        0.5,
        CostKind.ESTIMATED,
        1.0,
        None,
    )


def test_a_rented_machine_costs_its_price_by_time_and_share(config):
    whole = cost(config, SPOT_L4)
    assert whole.usd_per_h is not None
    assert whole.usd == pytest.approx(whole.usd_per_h / 2)
    assert whole.price_retrieved_at is not None
    assert cost(config, SPOT_L4, share=0.5).usd_per_h == pytest.approx(whole.usd_per_h / 2)
    # A zone without a price of its own has its region's.
    assert cost(config, SPOT_L4, zone="use1-az99") == whole


def test_a_run_on_several_nodes_costs_as_many_machines(config):
    one, four = (cost(config, replace(SPOT_L4, num_gpus=count)) for count in (1, 4))
    assert one == cost(config, SPOT_L4)
    assert four.usd_per_h == pytest.approx(4 * (one.usd_per_h or 0.0))


@pytest.mark.parametrize(
    ("provider", "gpu", "num_gpus", "usd"),
    [("lab", "V100-PCIE-32GB", 2, 0.5), ("local", "RTX-3090", 1, 0.1), ("local", "T4", 1, None)],
)
def test_a_machine_of_ones_own_costs_what_the_settings_say(provider, gpu, num_gpus, usd, config):
    place = Place(provider=provider, gpu=gpu, num_gpus=num_gpus, market=None)
    assert cost(config, place).usd == usd


@pytest.mark.parametrize(
    "place",
    [NOWHERE, Place(provider="aws", gpu="L4", num_gpus=1, market=Market.SPOT),
     Place(provider="aws", gpu="L4", num_gpus=1, market=Market.SPOT, instance_type="x9", region="us-east-1"),
     Place(provider="runpod", gpu="L4", num_gpus=1, market=Market.SPOT, instance_type="L4", region="EU")],
)  # fmt: skip
def test_without_a_price_the_cost_is_unknown_and_not_nothing(place, config):
    assert cost(config, place) == RunCost()


def look(
    monkeypatch: pytest.MonkeyPatch, config: Config, *, seen: Instance | None, num_gpus: int = 4,
    given: Place = NOWHERE, sent_to: Place | None = None, visible: str | None = None,
) -> MachineHere:  # fmt: skip
    card = Device(name="NVIDIA L4", memory_bytes=None, used_bytes=None, utilization=None)
    monkeypatch.setattr("advisor.core.devices.detect_devices", lambda: (card,) * num_gpus)
    monkeypatch.setattr(instance, "this_instance", lambda _: seen)
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return machine_here(given, sent_to, environment, config.settings.run)


def test_the_machine_says_where_it_is(monkeypatch, config):
    where = look(monkeypatch, config, seen=ON_AWS, visible="0", sent_to=SPOT_L4)
    assert where.place == Place(
        provider="aws", gpu="L4", num_gpus=1, market=Market.ON_DEMAND, instance_type="g6.12xlarge",
        region="us-east-1",
    )  # fmt: skip
    assert (where.zone, where.share) == ("use1-az4", 0.25)


def test_what_is_given_wins_and_its_zone_is_not_the_machines(monkeypatch, config):
    given = Place(provider="local", gpu="RTX-3090", num_gpus=2, market=None)
    where = look(monkeypatch, config, seen=ON_AWS, given=given)
    assert (where.place.provider, where.place.gpu, where.place.num_gpus) == ("local", "RTX-3090", 2)


def test_where_nobody_answers_the_recommendation_counts_on_its_own_gpu_alone(monkeypatch, config):
    same = look(monkeypatch, config, seen=None, num_gpus=1, sent_to=SPOT_L4)
    assert same.place == SPOT_L4
    other = Place(provider="gcp", gpu="T4", num_gpus=1, market=Market.SPOT)
    assert look(monkeypatch, config, seen=None, num_gpus=1, sent_to=other).place.provider is None
    # A laptop without a GPU is not the machine that was recommended.
    assert look(monkeypatch, config, seen=None, num_gpus=0, sent_to=SPOT_L4).place == NOWHERE


def test_the_metadata_service_is_asked_unless_switched_off(monkeypatch, config):
    asked: list[str] = []
    monkeypatch.setattr(instance, "this_instance", asked.append)
    monkeypatch.setattr("advisor.core.devices.detect_devices", lambda: ())
    machine_here(NOWHERE, None, {}, config.settings.run)
    assert asked == ["http://169.254.169.254"]
    machine_here(NOWHERE, None, {}, load_config({"run.metadata": False}).settings.run)
    assert len(asked) == 1
