"""Every line of the bill as a person meets it: disks, data, contracts, and what has no known rate."""

from dataclasses import replace
from typing import Any

import pytest

from advisor.core.units import GIB
from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import ALL_REGIONS, Shell, assert_plain_error

JOB = ("recommend", "t.json.gz", "--iterations", "36000", "--json")
# The wait is told, so that the rest of the time is what is paid.
SURE = {"ADVISOR_CLOUD__WAIT_P50": "0s", "ADVISOR_CLOUD__WAIT_P90": "0s"}
ON_DEMAND = ("--market", "on-demand", "--gpu", "A10G:1")


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
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
    answer = shell.run(*JOB, *more, **SURE, **environ)
    assert answer.code == 0, answer
    rows: list[dict[str, Any]] = answer.document["options"]
    return rows


def run_h(option: dict[str, Any]) -> float:
    return float(option["time_s"]["p50"]) / 3600


def test_the_boot_disk_is_paid_by_the_hour(shell):
    rows = options(shell, *ON_DEMAND, "--region", "us-east-1")
    assert rows
    for option in rows:
        assert option["storage_usd_per_h"] == pytest.approx(100 * 0.08 / 730)
        assert option["cost_breakdown"]["storage"] == pytest.approx(100 * 0.08 / 730 * run_h(option))
        assert option["rates"]["storage"].startswith(
            "100 GiB at 0.08 USD per GiB-month; written down by hand"
        )
        assert "data transfer" not in option["cost_breakdown"]
        billed = option["usd_per_h"] * run_h(option) + option["cost_breakdown"]["storage"]
        assert option["cost_usd"]["p50"] == pytest.approx(billed, abs=option["usd_per_h"] / 3600)


def test_a_data_set_takes_time_and_a_disk(shell):
    place = (*ON_DEMAND, "--region", "us-central1", "--region", "us-east-1")
    without = {option["id"]: option for option in options(shell, *place)}
    download_s = 200 * GIB * 8 / 1e9
    for option in options(shell, *place, "--dataset-gb", "200"):
        before = without[option["id"]]
        assert option["time_s"]["p50"] == pytest.approx(before["time_s"]["p50"] + download_s)
        assert option["storage_usd_per_h"] == pytest.approx(3 * before["storage_usd_per_h"])
        startup = option["cost_breakdown"]["start-up"] - before["cost_breakdown"]["start-up"]
        assert startup == pytest.approx(option["usd_per_h"] * download_s / 3600)


def test_a_faster_network_shortens_the_download(shell):
    place = (*ON_DEMAND, "--region", "us-east-1", "--dataset-gb", "200")
    slow = options(shell, *place)[0]["time_s"]["p50"]
    fast = options(shell, *place, ADVISOR_CLOUD__DOWNLOAD_GBIT_PER_S="10")[0]["time_s"]["p50"]
    assert slow - fast == pytest.approx(0.9 * 200 * GIB * 8 / 1e9)


def test_a_region_without_rates_pays_the_dearest_of_its_cloud_and_says_so(shell):
    rows = options(shell, "--region", "ap-southeast-3", "--result-gb", "5")
    assert rows
    for option in rows:
        reasons = " ".join(option["reasons"])
        assert "no rate of storage is known for aws ap-southeast-3" in reasons
        assert "it counts at $0.152 per GiB-month, the dearest known (aws sa-east-1)" in reasons
        assert option["storage_usd_per_h"] == pytest.approx(100 * 0.152 / 730)
        assert option["egress_usd"] == option["cost_breakdown"]["data transfer"] == pytest.approx(5 * 0.15)


REGIONS = ("us-east-1", "eu-central-1", "us-central1")
FAR = (*ON_DEMAND, "--gpu", "L4:1", *(word for region in REGIONS for word in ("--region", region)))


def test_data_is_moved_to_where_it_is_not(shell):
    answer = shell.run(*JOB, *FAR, "--dataset-gb", "3000", "--data", "s3://photos@eu-central-1")
    place = {"name": "s3://photos", "provider": "aws", "region": "eu-central-1"}
    assert answer.document["job"]["data"] == {"gib": 3000, "place": place}
    usd = {"eu-central-1": 0.0, "us-east-1": 3000 * 0.02, "us-central1": 3000 * 0.09}
    rows = answer.document["options"]
    assert {option["region"] for option in rows} == set(usd)
    for option in rows:
        moved, codes = option["transfer"], {reason["code"] for reason in option["reason_findings"]}
        assert moved["usd"] == pytest.approx(usd[option["region"]])
        assert option["cost_breakdown"].get("moving the data", 0.0) == moved["usd"]
        if option["region"] == "eu-central-1":
            assert (moved["gib"], moved["time_s"]) == (0, 0)
            assert option["storage_usd_per_h"] == pytest.approx(100 * 0.0952 / 730)
            assert "data-moved" in codes
            assert any("moving it costs nothing" in reason for reason in option["reasons"])
        else:
            assert (moved["gib"], moved["time_s"]) == (3000, pytest.approx(3000 * GIB * 8 / 1e9))
            assert "data-moved" in codes
    chosen = next(option for option in rows if option["recommended"])
    assert chosen["region"] == "eu-central-1"


def test_a_data_set_without_a_place_is_told_and_one_at_home_is_not(shell):
    unknown = shell.run(*JOB, *FAR, "--dataset-gb", "10")
    assert "data set location unknown" in " ".join(unknown.document["warnings"])
    home = shell.run(*JOB, *FAR, "--dataset-gb", "10", "--data", "local")
    assert "data set location unknown" not in " ".join(home.document["warnings"])
    for answer in (unknown, home):
        assert {option["transfer"]["usd"] for option in answer.document["options"]} == {0}
        assert {option["transfer"]["gib"] for option in answer.document["options"]} == {10}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--data", "us-est-1", "--dataset-gb", "5"), ("--data is 'us-est-1'", "Did you mean")),
        (("--data", "us-east-1"), ("--data", "--dataset-gb")),
    ],
)
def test_a_place_that_cannot_be_meant(shell, more, words):
    assert_plain_error(shell.run(*JOB, *more), 2, *words)


def test_own_rates_replace_those_that_ship(shell):
    rates = "rates:\n- {provider: aws, kind: block-storage, usd: 0}\n"
    rates += "- {provider: aws, kind: egress-region, to_region: us-east-1, usd: 0.005}\n"
    here = site(shell, "rates", rates)
    for option in options(here, *FAR, "--provider", "aws", "--dataset-gb", "100", "--data", "eu-central-1"):
        assert option["storage_usd_per_h"] == 0
        assert option["transfer"]["usd"] == pytest.approx(0.5 if option["region"] == "us-east-1" else 0)


def test_regions_to_enable_first_are_left_out_unless_named(shell):
    shell = replace(shell, regions=ALL_REGIONS)
    everywhere = shell.run(*JOB, "--gpu", "A10G:1", "--provider", "aws")
    assert "in regions that an account must enable first" in " ".join(everywhere.document["warnings"])
    assert not {option["region"] for option in everywhere.document["options"]} & {
        "ap-southeast-3",
        "eu-south-2",
    }
    named = options(shell, "--gpu", "A10G:1", "--region", "ap-southeast-3")
    assert {option["region"] for option in named} == {"ap-southeast-3"}
    allowed = options(shell, "--gpu", "A10G:1", ADVISOR_CLOUD__OPT_IN_REGIONS='["ap-*"]')
    assert "ap-southeast-3" in {option["region"] for option in allowed}


CONTRACTS = """
contracts:
- {provider: aws, instance_types: ["g5*"], discount: 0.1, commitment_discount: 0.3, coverage: 0.5}
- {provider: aws, discount: 0.5, until: 2020-01-31}
- {provider: gcp, regions: ["us-*"], markets: [on-demand, spot], discount: 0.2}
"""


def test_contracts_lower_what_is_paid_and_leave_the_list_price(shell):
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


IDLE = """
contracts:
- {provider: aws, discount: 0.1}
- {provider: aws, instance_types: ["p55*"], discount: 0.2}
- {provider: nobody, discount: 0.2, until: 2020-01-31}
quotas:
- {provider: aws, instance_types: ["p4*"], regions: [us-est-1], vcpus: 0}
"""


def test_a_rule_that_is_about_nothing_is_told_once_and_by_the_doctor(shell):
    here = site(shell, "idle", IDLE)
    expected = ("contracts, entry 2", "aws p55* in *, on-demand", "quotas, entry 1", "past its regions")
    answer = here.run(*JOB)
    (note,) = [c for c in here.run("doctor", "--json").document["checks"] if c["name"] == "rules"]
    assert note["state"] == "note"
    told = " ".join(answer.document["warnings"])
    assert len(answer.err.splitlines()) == 4
    for words in expected:
        assert told.count(words) == 1
        assert words in note["detail"]
    assert "contracts, entry 1" not in told
    assert "contracts, entry 3" not in told, "its end is told already"
    assert answer.err.count("contracts have ended and do not count: nobody (until 2020-01-31)") == 1


def test_a_rule_about_what_was_not_asked_for_is_not_told(shell):
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
def test_a_contract_that_cannot_be_meant(tmp_path, entry, words):
    shell = site(Shell(folder=tmp_path), "wrong", f"contracts: [{entry}]\n")
    assert_plain_error(shell.run(*JOB), 2, *words)
