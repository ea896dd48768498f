"""What clouds offer on its way to the ranking: GPUs nobody knows must not end it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.cli import app
from advisor.core.errors import NoOfferError
from advisor.core.values import Interval, Market, Offer
from advisor.formats.trace_files import write_trace
from advisor.pricing.answers import Offers
from advisor.service.prices import offers as cli_offers
from tests.builders import make_offer, make_trace
from tests.findings import texts


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "t.json.gz"
    write_trace(make_trace(), path)
    return path


def recommend(
    monkeypatch: pytest.MonkeyPatch, trace: Path, *offers: Offer, flags: Sequence[str] = ()
) -> None:
    def query(*_: Any, **__: Any) -> Offers:
        return Offers(offers=offers, warnings=texts("prices are old"))

    monkeypatch.setattr(cli_offers, "query_offers", query)
    app(["recommend", str(trace), "--epochs", "1", *flags], standalone_mode=False)


def test_an_offer_of_an_unknown_gpu_is_left_out_and_named_once(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new = make_offer("aws B400", 0.01, instance_type="p7.48xlarge")
    other = replace(new, gpu="gcp X9", region="us-central1", provider="gcp")
    recommend(monkeypatch, trace, make_offer("T4"), new, replace(new, region="eu-west-1"), other)
    printed = capsys.readouterr()
    assert "1 x T4" in printed.out
    assert "B400" not in printed.out
    assert printed.err.count("aws B400") == printed.err.count("gcp X9") == 1
    assert "prices are old" in printed.err


def test_nothing_but_unknown_gpus_is_nothing_to_choose_from(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoOfferError):
        recommend(monkeypatch, trace, make_offer("aws B400"))


def spot(zone: str, usd_per_h: float, p90: float) -> Offer:
    past = Interval(p10=usd_per_h, p50=usd_per_h, p90=p90)
    return make_offer("T4", usd_per_h, zone=zone, market=Market.SPOT, spot_usd_per_h=past)


def test_a_zone_whose_price_rises_does_not_hide_one_that_keeps_the_budget(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rises, steady = spot("use1-az1", 20.0, p90=60.0), spot("use1-az2", 20.01, p90=20.01)
    recommend(monkeypatch, trace, rises, steady, flags=["--json"])
    options = {o["id"].split("/")[2]: o for o in json.loads(capsys.readouterr().out)["options"]}
    assert set(options) == {"use1-az1", "use1-az2"}
    budget_usd = options["use1-az2"]["cost_usd"]["p90"] * 1.001
    assert options["use1-az1"]["cost_usd"]["p90"] > budget_usd
    recommend(monkeypatch, trace, rises, steady, flags=["--json", "--budget", f"{budget_usd:.2f}"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["recommended"] == "aws/t4.xlarge/use1-az2/spot"
    (lost,) = [o for o in answer["options"] if o["id"] == "aws/t4.xlarge/use1-az1/spot"]
    assert lost["removed_by"] == "budget"
