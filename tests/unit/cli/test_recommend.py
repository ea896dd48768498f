"""What clouds offer on its way to the ranking: GPUs nobody knows must not end it."""

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
def trace(tmp_path, monkeypatch):
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


def test_an_offer_of_an_unknown_gpu_is_left_out_and_named_once(trace, monkeypatch, capsys):
    new = make_offer("aws B400", 0.01, instance_type="p7.48xlarge")
    other = replace(new, gpu="gcp X9", region="us-central1", provider="gcp")
    recommend(monkeypatch, trace, make_offer("T4"), new, replace(new, region="eu-west-1"), other)
    printed = capsys.readouterr()
    assert "1 x T4" in printed.out
    assert "B400" not in printed.out
    assert printed.err.count("aws B400") == printed.err.count("gcp X9") == 1
    assert "prices are old" in printed.err


def test_nothing_but_unknown_gpus_is_nothing_to_choose_from(trace, monkeypatch):
    with pytest.raises(NoOfferError):
        recommend(monkeypatch, trace, make_offer("aws B400"))


def spot(zone: str, usd_per_h: float, p90: float) -> Offer:
    past = Interval(p10=usd_per_h, p50=usd_per_h, p90=p90)
    return make_offer("T4", usd_per_h, zone=zone, market=Market.SPOT, spot_usd_per_h=past)


def test_a_zone_whose_price_rises_does_not_hide_one_that_keeps_the_budget(trace, monkeypatch, capsys):
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


def long_job(
    monkeypatch: pytest.MonkeyPatch,
    trace: Path,
    capsys: pytest.CaptureFixture[str],
    *flags: str,
    on_demand: float = 30.0,
) -> Any:
    """The answer where a spot machine is much cheaper than one on demand, for a job of a day and more."""
    there = spot("use1-az1", 1.0, p90=1.0)
    recommend(
        monkeypatch, trace, make_offer("T4", on_demand), there, flags=["--epochs", "30", "--json", *flags]
    )
    return json.loads(capsys.readouterr().out)


SPOT_ID = "aws/t4.xlarge/use1-az1/spot"


@pytest.mark.parametrize(
    ("flags", "use", "source", "work"),
    [
        ([], "resumes", "assumed", []),
        (["--checkpoints", "resumes"], "resumes", "given", []),
        (["--checkpoints", "SAVES"], "saves", "given", ["checkpoints"]),
        (["--checkpoints", "none"], "none", "given", ["checkpoints"]),
    ],
)
def test_what_a_script_does_with_checkpoints_can_be_said(
    flags, use, source, work, trace, monkeypatch, capsys
):
    answer = long_job(monkeypatch, trace, capsys, *flags)
    known = answer["job"]["checkpoints"]
    assert (known["use"], known["source"]) == (use, source)
    (there,) = [option for option in answer["options"] if option["id"] == SPOT_ID]
    usd, hours = (25.0, 0.5) if work else (0.0, 0.0)
    assert there["work"] == {"kinds": work, "usd": usd, "hours": hours}
    as_it_is = answer["as_it_is"]
    assert as_it_is["work"]["kinds"] == []
    assert (as_it_is["id"] == SPOT_ID) is (not work)


@pytest.mark.parametrize(
    ("setting", "use", "source"),
    [
        ("checkpoint_interval: 20m", "resumes", "given"),
        ("checkpoint_interval: null", "none", "given"),
        ("{checkpoints: saves, checkpoint_interval: 20m}", "saves", "given"),
        ("restart: 5m", "resumes", "assumed"),
    ],
)
def test_an_interval_that_was_set_says_that_scripts_resume(setting, use, source, trace, monkeypatch, capsys):
    folder = trace.parent / "advisor"
    folder.mkdir()
    (folder / "config.yaml").write_text(f"spot: {setting if setting[0] == '{' else '{' + setting + '}'}\n")
    known = long_job(monkeypatch, trace, capsys)["job"]["checkpoints"]
    assert (known["use"], known["source"]) == (use, source)


def test_an_unknown_use_of_checkpoints_is_said_on_the_row(trace, monkeypatch, capsys):
    answer = long_job(monkeypatch, trace, capsys, "--epochs", "3", on_demand=5.6)
    assert answer["recommended"] == SPOT_ID
    (there,) = [option for option in answer["options"] if option["id"] == SPOT_ID]
    (change,) = there["script_changes"]
    assert change.startswith("save a checkpoint every 30 min and resume from it (least is lost at ")
    assert change.endswith("; assumed that train.py does (--checkpoints none if not)")
    assert "if train.py saves no checkpoints (--checkpoints none), " in str(answer["summary"])


def test_where_an_hour_is_worth_nothing_the_cheapest_is_recommended(trace, monkeypatch, capsys):
    offers = [make_offer("T4", 1.0), make_offer("H100-SXM-80GB", 30.0)]
    for value, gpu in (("0", "T4"), ("1000", "H100-SXM-80GB")):
        flags = ["--json", "--epochs", "30", "--value-of-time", value]
        recommend(monkeypatch, trace, *offers, flags=flags)
        answer = json.loads(capsys.readouterr().out)
        assert gpu.split("-")[0].lower() in answer["recommended"]
        if value == "0":
            assert answer["recommended"] == answer["picks"]["cheapest"]
