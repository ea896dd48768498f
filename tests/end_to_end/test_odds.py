"""Odds, picks, spot and time as a person asks for them."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from advisor.core.values import Market, PricePoint
from advisor.formats.trace_files import write_trace
from advisor.store.database import open_store
from advisor.store.pulls import save_part
from tests.builders import make_trace
from tests.end_to_end.cli import Answer, Shell, assert_plain_error

CLUSTER = "{name: lab, gpu: Quadro-P4000, num_gpus: 2, usd_per_gpu_h: 0.01, wait_p50: 3h, wait_p90: 8h}"


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A folder with a saved trace and a cluster of small GPUs."""
    folder = tmp_path_factory.mktemp("odds")
    write_trace(make_trace(), folder / "t.json.gz")
    (folder / ".advisor.yaml").write_text(f"clusters: [{CLUSTER}]\n")
    return Shell(folder=folder)


def recommend(shell: Shell, *arguments: str, **environ: str) -> Answer:
    return shell.run("recommend", "t.json.gz", "--epochs", "1", *arguments, **environ)


def test_spot_without_checkpoints_is_refused_with_the_number(shell):
    never = {"ADVISOR_SPOT__CHECKPOINT_INTERVAL": "null", "ADVISOR_SPOT__PREEMPTIONS_PER_H": "0.5"}
    flags = ("--gpu", "T4:1", "--market", "spot")
    assert_plain_error(recommend(shell, *flags, **never), 4, "nothing is feasible. Nearest: ", "refused: ")
    answer = recommend(shell, *flags, "--gpu", "Quadro-P4000", "--json", **never)
    assert answer.code == 0  # the cluster is left
    spot = [o for o in answer.document["options"] if o["market"] == "spot"]
    assert spot
    for option in spot:
        assert option["removed_by"] == "spot"
        assert option["reasons"][0].startswith("refused: ")
        assert "0.5 per hour configured" in option["risk"]


def test_an_assumed_rate_says_what_the_provider_publishes(shell):
    document = recommend(shell, "--json", "--provider", "aws", "--market", "spot").document
    risks = {option["risk"] for option in document["options"] if option["market"] == "spot"}
    assert all(re.search(r"0\.\d+ per hour assumed", risk) for risk in risks)
    assert any("% of machines taken back in a month" in risk for risk in risks)


# --- Later starts -----------------------------------------------------------------------------------


def test_a_later_start_is_told_from_the_history_of_prices(shell, tmp_path):
    flags = ("--gpu", "T4:1", "--provider", "aws", "--market", "spot", "--json")
    spot = [o for o in recommend(shell, *flags).document["options"] if o["on_frontier"] and o["market"]]
    assert spot
    url = f"sqlite:///{tmp_path / 'prices.db'}"
    remember(url, spot[0])
    document = recommend(shell, *flags, "--offline", ADVISOR_STORE__URL=url).document
    (option,) = (o for o in document["options"] if o["id"] == spot[0]["id"])
    assert any("h later" in reason and "was cheaper over the last" in reason for reason in option["reasons"])
    others = [o for o in document["options"] if o is not option]
    assert not any("was cheaper over the last" in reason for o in others for reason in o["reasons"])


def test_the_history_of_a_less_trusted_source_does_not_spoil_that_of_the_first(shell, tmp_path):
    flags = ("--gpu", "T4:1", "--provider", "aws", "--market", "spot", "--json")
    spot = [o for o in recommend(shell, *flags).document["options"] if o["on_frontier"] and o["market"]]
    url = f"sqlite:///{tmp_path / 'prices.db'}"
    texts = []
    for source, lag_h in (("aws", 0), ("gcp", 12), ("no source of the settings", 6)):
        remember(url, spot[0], source=source, lag_h=lag_h)
        document = recommend(shell, *flags, "--offline", ADVISOR_STORE__URL=url).document
        (option,) = (o for o in document["options"] if o["id"] == spot[0]["id"])
        texts.append([reason.split(" (")[0] for reason in option["reasons"] if "h later" in reason])
    assert texts[0]
    assert texts == [texts[0]] * 3


def remember(url: str, option: dict[str, object], source: str = "aws", lag_h: int = 0) -> None:
    """30 days in which six hours, half a day and ``lag_h`` from now, cost a fifth, whatever hour it is."""
    now = datetime.now(UTC)
    points = [
        PricePoint(
            provider="aws", instance_type=str(option["instance_type"]), region=str(option["region"]),
            zone=None if option["zone"] is None else str(option["zone"]), market=Market.SPOT,
            usd_per_h=0.1 if 12 <= (-hours_ago - lag_h) % 24 < 18 else 0.5,
            observed_at=now - timedelta(hours=hours_ago),
        )
        for hours_ago in range(30 * 24, -1, -1)
    ]  # fmt: skip
    store = open_store(url)
    assert store is not None
    with store:
        save_part(store, source, "all", [], points, (), now)
