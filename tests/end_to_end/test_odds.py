"""Odds, picks, spot and time as a person asks for them."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from advisor.core.values import Market, MemoryUse, PricePoint
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
    large = MemoryUse(
        parameter_bytes=10**9, gradient_bytes=10**9, optimizer_bytes=10**9, activation_bytes=27 * 10**9,
        peak_bytes=30 * 10**9,
    )  # fmt: skip
    write_trace(make_trace(memory=large), folder / "large.json.gz")
    (folder / ".advisor.yaml").write_text(f"clusters: [{CLUSTER}]\n")
    return Shell(folder=folder)


def recommend(shell: Shell, *arguments: str, trace: str = "t.json.gz", **environ: str) -> Answer:
    return shell.run("recommend", trace, "--epochs", "1", *arguments, **environ)


def test_every_pick_is_an_option_with_a_reason(shell):
    document = recommend(shell, "--json").document
    by_id = {option["id"]: option for option in document["options"]}
    assert list(document["picks"]) == ["cheapest", "fastest", "best_value", "safest"]
    assert document["picks"]["best_value"] == document["recommended"]
    assert all(by_id[plan_id]["feasible"] for plan_id in document["picks"].values())
    assert all(document["pick_reasons"][name] for name in document["picks"])
    cheapest = by_id[document["picks"]["cheapest"]]
    assert cheapest["cost_usd"]["p50"] == min(o["cost_usd"]["p50"] for o in by_id.values() if o["feasible"])


def test_a_tie_names_an_option_of_the_frontier(shell):
    document = recommend(shell, "--json", "--gpu", "L4", "--gpu", "T4").document
    tied = [option for option in document["options"] if option["tie_with"] is not None]
    for option in tied:
        assert option["tie_with"] in document["frontier"]
        assert any(reason.startswith("tie with") for reason in option["reasons"])


def test_risk_widens_the_frontier(shell):
    strict, wider = (recommend(shell, "--json", *flag).document for flag in ((), ("--risk",)))
    assert set(strict["frontier"]) <= set(wider["frontier"])
    assert (strict["job"]["risk_counts"], wider["job"]["risk_counts"]) == (False, True)
    assert wider["picks"]["safest"] in wider["frontier"]


def test_the_value_of_an_hour_decides(shell):
    documents = [recommend(shell, "--json", "--value-of-time", value).document for value in ("0.01", "1000")]
    times = [next(o["time_s"]["p50"] for o in d["options"] if o["recommended"]) for d in documents]
    assert times[0] > times[1]
    assert "$0.01/h" in documents[0]["rule"]


def test_wait_or_rent_is_told_on_both_rows(shell):
    document = recommend(shell, "--json", "--value-of-time", "0.02").document
    ids = [o["id"] for o in document["options"] if any("once the wait exceeds" in r for r in o["reasons"])]
    own = [plan_id for plan_id in ids if plan_id.startswith("cluster/lab/")]
    assert own
    assert len(ids) == len(own) + 1


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


def test_a_cluster_without_a_gpu_that_fits(shell):
    answer = recommend(shell, "--gpu", "Quadro-P4000", trace="large.json.gz")
    assert_plain_error(answer, 4, "nothing fits in memory. Nearest: lab (cluster): does not fit: needs")


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
