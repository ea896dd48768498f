"""Clouds that drip, hang, never end or lie: a line for each part, in time, and the others go on."""

import dataclasses
import re
import threading
from time import monotonic

import pytest

from advisor.core.errors import CloudError
from advisor.pricing.sources.aws import aws_calls as calls
from advisor.pricing.sources.aws.aws_calls import AwsOptions, Clients, items_of
from advisor.pricing.sources.gcp.client import ENDPOINT_VARIABLE, ApiPatience
from advisor.pricing.sources.gcp.gcp_source import GcpSource
from advisor.pricing.sources.protocol import OfferQuery
from advisor.store.database import open_store
from advisor.store.pulls import save_part
from tests.builders import make_offer
from tests.clouds import hostile_server as hostile
from tests.clouds.aws_asking import ask, usd_per_h
from tests.clouds.aws_server import BROKEN, DENIED, DRIPPING, FakeAws, Fault, running
from tests.clouds.aws_world import World, product, small_world
from tests.clouds.hostile_server import Attack, attacking
from tests.end_to_end.cli import ALL_REGIONS, Shell
from tests.unit.pricing.sources.aws.conftest import Start, start  # noqa: F401 - a fixture

# Attacks go on for ever, and so did the calls. However busy a machine is, this is far above their limits.
SOON_S = 600.0
# Only whoever is to lose patience has little of it: a busy suite can hold any answer up for half a second.
SHORT_S, LONG_S = 0.5, 120.0
HURRIED = {hostile.dripping_body, hostile.dripping_head, hostile.silent}


def patience_s(attack: Attack) -> float:
    return SHORT_S if attack in HURRIED else LONG_S


def aws_failure(call_s: float) -> str:
    parts = ask(timeout_s=call_s)
    assert parts.keys() == {"regions"}
    failure = parts["regions"].failure
    assert failure is not None
    assert "\n" not in failure
    return failure


def gcp_failure(call_s: float) -> str:
    # What is tried again costs little patience, or more than there is.
    wait_s = 0.1 if call_s == SHORT_S else 1e9
    patience = ApiPatience(call_s=call_s, first_wait_s=wait_s, longest_wait_s=wait_s, total_s=2 * call_s)
    (part,) = GcpSource(patience).offers(OfferQuery())
    assert part.failure is not None
    assert "\n" not in part.failure
    return part.failure


@pytest.fixture
def few_retries(monkeypatch):
    monkeypatch.setattr(calls, "RETRIES_S", 1.0)


@pytest.mark.usefixtures("few_retries", "start")
@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (hostile.dripping_body, "did not answer"),
        (hostile.dripping_head, "did not answer ec2:DescribeRegions within 1.5 s, retries included"),
        (hostile.silent, "did not answer"),
        (hostile.closing, "cut off"),
        (hostile.endless_body, "more than 32 MB"),
        (hostile.zip_bomb, "garbled"),
        (hostile.redirecting, "sends calls to another address"),
        (hostile.web_page, "garbled"),
        (hostile.image, "garbled"),
        (hostile.cut_off, "garbled"),
        (hostile.deep, "garbled"),
        (hostile.entities, "garbled"),
        (hostile.throttling, "throttled"),
    ],
)
def test_aws_gives_one_line_in_time(attack, words, monkeypatch):
    """A drip held each call for ever, and an endless body filled the memory."""
    begun_s = monotonic()
    with attacking(attack) as url:
        for name, value in FakeAws(world=small_world(), url=url).environment().items():
            monkeypatch.setenv(name, value)
        assert words in aws_failure(patience_s(attack))
    assert monotonic() - begun_s < SOON_S


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (hostile.dripping_body, "did not answer in time"),
        (hostile.dripping_head, "given up after 1 s, retries included"),
        (hostile.silent, "did not answer in time"),
        (hostile.closing, "cannot reach"),
        (hostile.endless_body, "more than 32 MB"),
        (hostile.zip_bomb, "more than 32 MB"),
        (hostile.redirecting, "cut off or cannot be read"),
        (hostile.web_page, "cut off or cannot be read"),
        (hostile.image, "cut off or cannot be read"),
        (hostile.cut_off, "cut off or cannot be read"),
        (hostile.deep, "cut off or cannot be read"),
        (hostile.throttling, "too many requests"),
        (hostile.endless_pages, "cut off or cannot be read"),
        (hostile.pages_in_a_ring, "cut off or cannot be read"),
    ],
)
def test_gcp_gives_one_line_in_time(attack, words, monkeypatch):
    """A drip held a page for ever; a redirect was followed; a zip bomb was unpacked to its end."""
    begun_s = monotonic()
    with attacking(attack) as url:
        monkeypatch.setenv(ENDPOINT_VARIABLE, url)
        assert words in gcp_failure(patience_s(attack))
    assert monotonic() - begun_s < SOON_S


@pytest.mark.parametrize("attack", [hostile.endless_pages, hostile.pages_in_a_ring])
def test_lists_without_an_end_are_given_up(
    attack,
    start,  # noqa: F811
    monkeypatch,
):
    """botocore knows a page again only right after itself, and counts none."""
    monkeypatch.setattr(calls, "MAX_PAGES", 20)
    start()
    with attacking(attack) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", url)
        client = Clients(AwsOptions(max_attempts=1)).client("ec2", "us-east-1")
        with pytest.raises(CloudError, match="does not end or comes again"):
            items_of(client, "ec2:DescribeSpotPriceHistory", "SpotPriceHistory")


def test_one_region_that_drips_leaves_the_others_alone(
    start,  # noqa: F811
    monkeypatch,
):
    """The region's thread never ended, and with it neither did the refresh nor the process."""
    monkeypatch.setattr(calls, "RETRIES_S", 0.5)
    aws = start()
    aws.fail("DescribeSpotPriceHistory", DRIPPING, region="us-east-1")
    parts = ask(timeout_s=8.0)
    assert "did not answer" in (parts["us-east-1 spot"].failure or "")
    assert {scope for scope, part in parts.items() if part.failure} == {"us-east-1 spot"}
    assert not [t for t in threading.enumerate() if t.name.startswith("aws") and not t.daemon]


# --- As a person types it ----------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path):
    return Shell(folder=tmp_path, regions=ALL_REGIONS)


@pytest.fixture
def aws():
    with running(small_world()) as server:
        yield server


STRANGER = dict.fromkeys((ENDPOINT_VARIABLE, "CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS"), "")


def refresh(shell: Shell, url: str, **environ: str) -> tuple[int, str, float]:
    """Exit code, stderr, and seconds that the whole process took."""
    there = FakeAws(world=small_world(), url=url).environment()
    begun_s = monotonic()
    answer = shell.run("prices", "refresh", "--source", "aws", **STRANGER | there | environ)
    assert "Traceback" not in answer.err
    return answer.code, answer.err, monotonic() - begun_s


def offers(shell: Shell) -> list[dict[str, object]]:
    """Live ones of us-east-1."""
    answer = shell.run("prices", "--provider", "aws", "--region", "us-east-1", "--json", **STRANGER)
    assert answer.code == 0, answer.err
    return [
        o for o in answer.document["offers"] if o["source"] in ("AWS price list", "AWS spot price history")
    ]


def test_a_refresh_ends_when_it_says_and_names_what_stays_old(shell, aws):
    """It went on for 318 s: 300 s of patience, and threads that the end of the process waited for."""
    assert refresh(shell, aws.url)[0] == 0
    before = offers(shell)
    assert len(before) == 3
    for operation in ("GetProducts", "DescribeSpotPriceHistory", "DescribeAvailabilityZones"):
        aws.fail(operation, DRIPPING, region="us-east-1")
    code, err, took_s = refresh(shell, aws.url, ADVISOR_PRICES__REFRESH_WITHIN="12s")
    assert took_s < SOON_S
    line = next(line for line in err.splitlines() if "us-east-1" in line)
    assert re.search(r"aws: us-east-1 on-demand, us-east-1 spot not refreshed, older prices are kept", line)
    assert "gave no answer within 12 s (prices.refresh_within)" in line
    assert (code, offers(shell)) == (0, before), "eu-west-1 came in time"


def test_a_server_that_drips_from_the_start_ends_the_refresh_in_time(shell):
    with attacking(hostile.dripping_head) as url:
        code, err, took_s = refresh(shell, url, ADVISOR_PRICES__REFRESH_WITHIN="2s")
    assert (code, took_s < SOON_S) == (1, True)
    assert "aws: all not refreshed" in err
    assert "gave no answer within 2 s" in err


@pytest.mark.parametrize(
    ("operation", "fault", "words"),
    [
        ("DescribeInstanceTypeOfferings", DENIED, "allow the IAM action ec2:DescribeInstanceTypeOfferings"),
        (
            "DescribeInstanceTypeOfferings",
            BROKEN,
            "whether the region offers these types could not be checked",
        ),
        ("DescribeInstanceTypes", BROKEN, "types newer than the catalog are left out (g9.new)"),
        ("GetProducts", Fault(status=400, code="AccessDeniedException"), "allow the IAM action pricing:"),
    ],
)
def test_a_call_that_fails_beside_the_prices_is_told(shell, operation, fault, words):
    """The prices came, and only `advisor prices sources` knew that a call had failed."""
    world = small_world()
    new = product("g9.new", "us-east-1", "1.5")
    with running(dataclasses.replace(world, products=(*world.products, new))) as aws:
        aws.fail(operation, fault)
        code, err, _ = refresh(shell, aws.url)
    assert code == 0
    assert words in err
    assert len(err.splitlines()) < 10, err


# --- Prices that cannot be ---------------------------------------------------------------------------

ABSURD = ("0.0000000010", "0.0000100000", "1000000000.0000000000", "NaN", "Infinity", "1e999", "-1", "0")


def with_absurd_prices(usd: str) -> World:
    """The p5 costs so much on demand, and so does the g6 in one zone now."""
    world = small_world()
    spot = [
        dataclasses.replace(price, usd_per_h=usd if price.zone_name == "us-east-1b" else price.usd_per_h)
        for price in world.spot
    ]
    others = [p for p in world.products if p["product"]["attributes"]["instanceType"] != "p5.48xlarge"]
    return dataclasses.replace(
        world, spot=tuple(spot), products=(*others, product("p5.48xlarge", "us-east-1", usd))
    )


@pytest.mark.parametrize("usd", ABSURD)
def test_an_absurd_price_is_a_gap(usd, start):  # noqa: F811
    """1e-9, 0.00001 and 1e9 were offers, and made quantiles of spot prices; the others are gaps as before."""
    start(with_absurd_prices(usd))
    parts = ask()
    on_demand, spot = parts["us-east-1 on-demand"], parts["us-east-1 spot"]
    assert usd_per_h(on_demand) == {("g6.xlarge", None): 0.8048}
    assert on_demand.unpriced == ("p5.48xlarge",)
    assert any("p5.48xlarge" in gap for gap in on_demand.gaps)
    assert usd_per_h(spot) == {("g6.xlarge", "use1-az2"): 0.4}
    assert {point.zone for point in spot.history} == {"use1-az2"}
    assert any("g6.xlarge in use1-az1" in gap for gap in spot.gaps)


def test_an_absurd_price_is_told_and_never_offered(shell):
    """A machine for 0.00001 USD/h won every ranking."""
    with running(with_absurd_prices("0.0000100000")) as aws:
        assert refresh(shell, aws.url)[0] == 0
    assert {(o["instance_type"], o["usd_per_h"]) for o in offers(shell)} == {
        ("g6.xlarge", 0.8048), ("g6.xlarge", 0.4),
    }  # fmt: skip
    assert "e-0" not in shell.run("prices", "history", "--json", **STRANGER).out


def test_an_absurd_price_that_was_kept_before_is_left_out(shell):
    """Prices in the database of an older version, or that somebody else wrote there, were believed."""
    url = f"sqlite:///{shell.folder / 'prices.db'}"
    cheap = make_offer("H100-SXM-80GB", 0.00001, instance_type="p5.48xlarge", num_gpus=8, source="AWS x")
    with open_store(url) as store:
        save_part(store, "aws", "us-east-1 on-demand", (cheap,), (), (), cheap.retrieved_at)
    answer = shell.run("prices", "--gpu", "H100", "--json", ADVISOR_STORE__URL=url, **STRANGER)
    assert min(offer["usd_per_h"] for offer in answer.document["offers"]) > 0.1
    (absurd,) = [warning for warning in answer.document["warnings"] if "no such machine can have" in warning]
    assert absurd.startswith("1 price of aws that no such machine can have left out: p5.48xlarge us-east-1")


def test_an_owners_absurd_rate_is_taken_with_a_warning(shell):
    """It was taken without a word, also where the decimal point was wrong."""
    shell.write(
        "rates.yaml",
        "[{provider: lab, instance_type: dgx, gpu: H100-SXM-80GB, num_gpus: 8, usd_per_gpu_h: 0.01,"
        " as_of: 2026-11-01}]",
    )
    shell.write(
        ".config/advisor/config.yaml",
        f"prices: {{options: {{custom: {{files: [{shell.folder}/rates.yaml]}}}}}}",
    )
    answer = shell.run("prices", "--provider", "lab", "--json", **STRANGER)
    assert [offer["usd_per_h"] for offer in answer.document["offers"]] == [0.08]
    assert any("1 price of custom far from what such machines cost" in w for w in answer.document["warnings"])
