"""Every line of the bill as a person meets it: disks, data, contracts, and what has no known rate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor.core.units import GIB
from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import Shell, assert_plain_error

JOB = ("recommend", "t.json.gz", "--iterations", "36000", "--json")
ON_DEMAND = ("--market", "on-demand", "--gpu", "A10G:1")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A folder with a saved trace, t.json.gz."""
    folder = tmp_path_factory.mktemp("pays")
    write_trace(make_trace(), folder / "t.json.gz")
    return Shell(folder=folder)


def site(shell: Shell, name: str, settings: str) -> Shell:
    """A folder whose user has these settings, with the trace in it."""
    shell.write(f"{name}/.config/advisor/config.yaml", settings)
    write_trace(make_trace(), shell.folder / name / "t.json.gz")
    return Shell(folder=shell.folder / name)


def options(shell: Shell, *more: str, **environ: str) -> list[dict[str, Any]]:
    answer = shell.run(*JOB, *more, **environ)
    assert answer.code == 0, answer
    found: list[dict[str, Any]] = answer.document["options"]
    return found


def run_h(option: dict[str, Any]) -> float:
    return float(option["time_s"]["p50"]) / 3600


def test_the_boot_disk_is_paid_by_the_hour(shell: Shell) -> None:
    found = options(shell, *ON_DEMAND, "--region", "us-east-1")
    assert found
    for option in found:
        assert option["storage_usd_per_h"] == pytest.approx(100 * 0.08 / 730)
        assert option["cost_breakdown"]["storage"] == pytest.approx(100 * 0.08 / 730 * run_h(option))
        assert option["rates"]["storage"].startswith(
            "100 GiB at 0.08 USD per GiB-month; written down by hand"
        )
        assert "data transfer" not in option["cost_breakdown"]
        billed = option["usd_per_h"] * run_h(option) + option["cost_breakdown"]["storage"]
        assert option["cost_usd"]["p50"] == pytest.approx(billed, abs=option["usd_per_h"] / 3600)


def test_no_boot_disk_is_no_line(shell: Shell) -> None:
    for option in options(shell, *ON_DEMAND, ADVISOR_CLOUD__BOOT_DISK_GB="0"):
        assert option["storage_usd_per_h"] == 0
        assert "storage" not in option["cost_breakdown"]
        assert not any("not counted" in reason for reason in option["reasons"])


def test_a_data_set_takes_time_and_a_disk(shell: Shell) -> None:
    place = (*ON_DEMAND, "--region", "us-central1", "--region", "us-east-1")
    without = {option["id"]: option for option in options(shell, *place)}
    download_s = 200 * GIB * 8 / 1e9
    for option in options(shell, *place, "--dataset-gb", "200"):
        before = without[option["id"]]
        assert option["time_s"]["p50"] == pytest.approx(before["time_s"]["p50"] + download_s)
        assert option["storage_usd_per_h"] == pytest.approx(3 * before["storage_usd_per_h"])
        startup = option["cost_breakdown"]["start-up"] - before["cost_breakdown"]["start-up"]
        assert startup == pytest.approx(option["usd_per_h"] * download_s / 3600)


def test_a_faster_network_shortens_the_download(shell: Shell) -> None:
    place = (*ON_DEMAND, "--region", "us-east-1", "--dataset-gb", "200")
    slow = options(shell, *place)[0]["time_s"]["p50"]
    fast = options(shell, *place, ADVISOR_CLOUD__DOWNLOAD_GBIT_PER_S="10")[0]["time_s"]["p50"]
    assert slow - fast == pytest.approx(0.9 * 200 * GIB * 8 / 1e9)


def test_bringing_the_result_home_is_paid_once(shell: Shell) -> None:
    found = options(shell, "--result-gb", "100", "--region", "us-east-1", "--region", "us-central1")
    usd = {"aws": 9.0, "gcp": 12.0}
    assert {option["provider"] for option in found} == {"aws", "gcp"}
    for option in found:
        assert option["cost_breakdown"]["data transfer"] == pytest.approx(usd[option["provider"]])
        assert option["egress_usd"] == pytest.approx(usd[option["provider"]])


def test_a_region_without_rates_says_so_and_guesses_nothing(shell: Shell) -> None:
    found = options(shell, "--region", "ap-southeast-3", "--result-gb", "5")
    assert found
    for option in found:
        assert "storage not counted: no rate for ap-southeast-3" in option["reasons"]
        assert "data transfer not counted: no rate for ap-southeast-3" in option["reasons"]
        assert (option["storage_usd_per_h"], option["egress_usd"], option["rates"]) == (None, None, {})
        assert not {"storage", "data transfer"} & set(option["cost_breakdown"])


def test_a_large_result_is_brought_home_from_where_that_is_cheap(shell: Shell) -> None:
    """In the region with the least rent egress may cost more than the rent saves: both are shown."""
    command = ("--gpu", "A10G:1", "--market", "on-demand", "--provider", "aws", "--result-gb", "5000")
    by_type: dict[str, list[dict[str, Any]]] = {}
    for option in options(shell, *command, "--region", "ap-south-1", "--region", "eu-central-1"):
        by_type.setdefault(option["instance_type"], []).append(option)
    pair = by_type["g5.xlarge"]
    cheap_rent, cheap_egress = sorted(pair, key=lambda option: float(option["usd_per_h"]))
    assert cheap_rent["egress_usd"] > cheap_egress["egress_usd"]


def test_explain_shows_each_line_with_its_rate(shell: Shell) -> None:
    answer = shell.run(
        *JOB[:-1], *ON_DEMAND, "--region", "us-east-1", "--explain", "1",
        "--dataset-gb", "50", "--result-gb", "10",
    )  # fmt: skip
    for words in (
        "download of the data set",
        "rate of storage             150 GiB at 0.08 USD per GiB-month; written down by hand",
        "rate of data transfer       10 GiB at 0.09 USD per GiB; written down by hand",
        "2025-01-01",
    ):
        assert words in answer.out
    lines = [line.split() for line in answer.out.splitlines()]
    assert ["data", "transfer", "$0.90"] in lines
    assert any(line[:1] == ["storage"] for line in lines)


CONTRACTS = """
contracts:
- {provider: aws, instance_types: ["g5*"], discount: 0.1, commitment_discount: 0.3, coverage: 0.5}
- {provider: aws, discount: 0.5, until: 2020-01-31}
- {provider: gcp, regions: ["us-*"], markets: [on-demand, spot], discount: 0.2}
"""


def test_contracts_lower_what_is_paid_and_leave_the_list_price(shell: Shell) -> None:
    here = site(shell, "contracts", CONTRACTS)
    place = ("--region", "us-east-1", "--region", "us-central1", "--gpu", "A10G", "--gpu", "L4")
    listed = {option["id"]: option for option in options(shell, *place)}
    markets = set()
    for option in options(here, *place):
        before = listed[option["id"]]["list_usd_per_h"]
        markets.add((option["provider"], option["market"], option["instance_type"].startswith("g5.")))
        assert option["list_usd_per_h"] == before
        prices = option["contracted_usd_per_h"], option["effective_usd_per_h"], option["usd_per_h"]
        if option["provider"] == "gcp":
            assert prices == (pytest.approx(0.8 * before), None, pytest.approx(0.8 * before))
        elif option["instance_type"].startswith("g5.") and option["market"] == "on-demand":
            effective = pytest.approx(before * 0.9 * 0.85)
            assert prices == (pytest.approx(0.9 * before), effective, effective)
        else:
            assert prices == (None, None, option["price"]["p50"])
            assert option["market"] == "spot" or option["usd_per_h"] == before
    assert {("aws", "on-demand", True), ("aws", "spot", True), ("aws", "on-demand", False)} <= markets
    assert {("gcp", "on-demand", False), ("gcp", "spot", False)} <= markets


def test_explain_shows_the_three_prices_apart(shell: Shell) -> None:
    here = site(shell, "explained", CONTRACTS)
    command = (
        *JOB[:-1],
        *ON_DEMAND,
        "--region",
        "us-east-1",
        "--explain",
        "aws/g5.xlarge/us-east-1/on-demand",
    )
    text = here.run(*command).out
    for name, usd in (("list price", "$1.01"), ("contracted price", "$0.91"), ("effective price", "$0.77")):
        assert f"{name:<28}{usd} per hour" in text
    assert "list price" not in shell.run(*command).out


def test_a_contract_that_has_ended_is_told_once(shell: Shell) -> None:
    here = site(shell, "ended", CONTRACTS)
    answer = here.run(*JOB)
    assert answer.err.count("aws (until 2020-01-31)") == 1
    assert any("until 2020-01-31" in warning for warning in answer.document["warnings"])
    assert "contracts have ended" not in shell.run(*JOB).err


IDLE = """
contracts:
- {provider: aws, discount: 0.1}
- {provider: aws, instance_types: ["p55*"], discount: 0.2}
- {provider: nobody, discount: 0.2, until: 2020-01-31}
quotas:
- {provider: aws, instance_types: ["p4*"], regions: [us-est-1], vcpus: 0}
"""


def test_a_rule_that_is_about_nothing_is_told_once_and_by_the_doctor(shell: Shell) -> None:
    here = site(shell, "idle", IDLE)
    told = ("contracts, entry 2", "aws p55* in *, on-demand", "quotas, entry 1", "past its regions")
    answer = here.run(*JOB)
    (note,) = [c for c in here.run("doctor", "--json").document["checks"] if c["name"] == "rules"]
    assert note["state"] == "note"
    for words in told:
        assert answer.err.count(words) == 1
        assert words in " ".join(answer.document["warnings"])
        assert words in note["detail"]
    assert "contracts, entry 1" not in answer.err
    assert "contracts, entry 3" not in answer.err, "its end is told already"


def test_a_rule_about_what_was_not_asked_for_is_not_told(shell: Shell) -> None:
    here = site(shell, "elsewhere", "contracts: [{provider: gcp, instance_types: [a2*], discount: 0.1}]\n")
    answer = here.run("prices", "--gpu", "T4", "--provider", "aws", "--json")
    assert answer.document["offers"]
    assert "contracts" not in answer.err


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{provider: aws, discount: 10}", ("contracts.0.discount", "less than 1")),
        ("{provider: aws, discout: 0.1}", ("discout", "Did you mean 'discount'")),
        ("{discount: 0.1}", ("contracts.0.provider", "Field required")),
        ("{provider: aws, until: soon}", ("contracts.0.until",)),
    ],
)
def test_a_contract_that_cannot_be_meant(tmp_path: Path, entry: str, words: tuple[str, ...]) -> None:
    shell = site(Shell(folder=tmp_path), "wrong", f"contracts: [{entry}]\n")
    assert_plain_error(shell.run(*JOB), 2, *words)
