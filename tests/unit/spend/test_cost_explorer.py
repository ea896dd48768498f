"""Cost Explorer, answered by moto's server with results that were posted to it."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
import requests
from moto.server import ThreadedMotoServer

from advisor.core.errors import CloudError
from advisor.pricing.sources.aws.aws_calls import AwsOptions
from advisor.spend.charges import Bill, Charge
from advisor.spend.cost_explorer import ask_cost_explorer

SINCE, UNTIL = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 3, tzinfo=UTC)


@pytest.fixture(scope="module")
def moto_url():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def moto(moto_url, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_COST_EXPLORER", moto_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    yield moto_url
    requests.post(f"{moto_url}/moto-api/reset", timeout=60)


def post(url: str, *results: dict[str, Any]) -> None:
    """Results of the calls to come, one after the other."""
    target = f"{url}/moto-api/static/ce/cost-and-usage-results"
    assert requests.post(target, json={"results": results}, timeout=60).status_code == 201


def group(project: str, machine: str, billed: str, effective: str = "0", unit: str = "USD") -> dict[str, Any]:
    amounts = {"UnblendedCost": billed, "AmortizedCost": effective}
    metrics = {name: {"Amount": amount, "Unit": unit} for name, amount in amounts.items()}
    return {"Keys": [f"project${project}", machine], "Metrics": metrics}


def day(number: int, *groups: dict[str, Any]) -> dict[str, Any]:
    span = {"Start": f"2026-11-{number:02}", "End": f"2026-11-{number + 1:02}"}
    return {"TimePeriod": span, "Groups": groups, "Estimated": False, "Total": {}}


def ask() -> Bill:
    return ask_cost_explorer(AwsOptions(max_attempts=1), SINCE, UNTIL, "project")


def test_days_by_tag_and_machine_are_charges(moto):
    post(moto, {"ResultsByTime": [
        day(1, group("resnet", "g5.xlarge", "12.3400000001", "12.0")),
        day(2, group("", "NoInstanceType", "0.5", "0.5"), group("resnet", "g5.xlarge", "0", "0")),
    ]})  # fmt: skip
    bill = ask()
    assert bill.faults == ()
    assert bill.charges == (
        Charge(
            start=SINCE, end=datetime(2026, 11, 2, tzinfo=UTC), provider="aws", service="Amazon Web Services",
            instance_type="g5.xlarge", project="resnet", billed_cost=Decimal("12.3400000001"),
            effective_cost=Decimal("12.0"), currency="USD",
        ),
        Charge(
            start=datetime(2026, 11, 2, tzinfo=UTC), end=UNTIL, provider="aws", service="Amazon Web Services",
            billed_cost=Decimal("0.5"), effective_cost=Decimal("0.5"), currency="USD",
        ),
    )  # fmt: skip


def test_all_pages_are_asked_for_and_money_of_other_countries_keeps_its_currency(moto):
    post(
        moto,
        {"ResultsByTime": [day(1, group("a", "g5.xlarge", "1"))], "NextPageToken": "two"},
        {"ResultsByTime": [day(2, group("a", "g5.xlarge", "2"))], "NextPageToken": "three"},
        {"ResultsByTime": [day(2, group("b", "g5.xlarge", "4", unit="CNY"))]},
    )
    costs = [(charge.billed_cost, charge.currency) for charge in ask().charges]
    assert costs == [(1, "USD"), (2, "USD"), (4, "CNY")]


def test_a_group_that_cannot_be_true_is_left_out(moto):
    torn = group("a", "g5.xlarge", "much")
    halved = {
        "Keys": ["project$a", "g5.xlarge"],
        "Metrics": {"UnblendedCost": {"Amount": "1", "Unit": "USD"}},
    }
    post(moto, {"ResultsByTime": [day(1, torn, group("a", "g5.xlarge", "3"), halved)]})
    bill = ask()
    assert [charge.billed_cost for charge in bill.charges] == [3]
    assert [(fault.line, fault.reason) for fault in bill.faults] == [
        (1, "Amount is 'much', which is no number"),
        (3, "AmortizedCost is missing"),
    ]


def test_nothing_billed_is_an_empty_bill_and_an_endpoint_that_is_away_is_told(moto, monkeypatch):
    assert ask().charges == ()
    monkeypatch.setenv("AWS_ENDPOINT_URL_COST_EXPLORER", "http://127.0.0.1:9")
    with pytest.raises(CloudError, match="ce:GetCostAndUsage cannot be reached"):
        ask()


def test_without_credentials_the_way_to_them_is_named(moto, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(CloudError, match="no AWS credentials were found"):
        ask()
