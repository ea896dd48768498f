"""AWS's published offer files, from a real server on this machine."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from advisor.core.errors import ConfigError
from advisor.core.units import MB
from advisor.core.values import Market
from advisor.pricing.sources import aws_files, public_files
from advisor.pricing.sources.aws_files import NO_REGION, AwsFilesSource, aws_files_source, read_offer_file
from advisor.pricing.sources.protocol import Credentials, Part
from advisor.pricing.sources.public_files import PublicFileError
from advisor.pricing.sources.query import OfferQuery
from tests.clouds import hostile_server as hostile
from tests.clouds.aws_offer_files import COLUMNS, offer_file, publish, row
from tests.clouds.hostile_server import Attack, Handler, attacking
from tests.shared import SHARED, needs_shared
from tests.web import served

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and where it is served as AWS's."""
    with served(tmp_path) as url:
        yield tmp_path, url


def asked(url: str, *regions: str, query: OfferQuery | None = None) -> dict[str, Part]:
    source = AwsFilesSource(regions, url, clock=lambda: NOW)
    return {part.scope: part for part in source.offers(query or OfferQuery())}


def failure_of(url: str) -> str:
    (part,) = asked(url, "us-east-1").values()
    assert part.failure is not None
    assert "\n" not in part.failure
    assert part.failure.startswith("AWS's offer file of us-east-1")
    return part.failure


def prices(part: Part) -> dict[str, float]:
    return {offer.instance_type: offer.usd_per_h for offer in part.offers}


# --- What a file holds ------------------------------------------------------------------------------


def test_a_list_price_is_an_offer_of_aws_itself(server: tuple[Path, str]) -> None:
    root, url = server
    publish(root, "us-east-1", offer_file(row(), row("g5.xlarge", "1.0060000000", GPU="1")))
    (part,) = asked(url, "us-east-1").values()
    assert prices(part) == {"g5.xlarge": 1.006, "p5.48xlarge": 55.04}
    offer = part.offers[-1]
    assert (offer.provider, offer.region, offer.zone, offer.market) == (
        "aws", "us-east-1", None, Market.ON_DEMAND,
    )  # fmt: skip
    assert (offer.gpu, offer.num_gpus, offer.retrieved_at) == ("H100-SXM-80GB", 8, NOW)
    assert offer.source == "AWS offer file 2026-11-20"
    assert (part.scope, part.place, part.gaps) == (
        "us-east-1 on-demand", ("aws", "us-east-1", Market.ON_DEMAND), (),
    )  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"TermType": "Reserved"},
        {"Tenancy": "Dedicated"},
        {"Operating_System": "Windows"},
        {"CapacityStatus": "AllocatedCapacityReservation"},
        {"Unit": "Quantity"},
        {"Currency": "CNY"},
        {"MarketOption": "CapacityBlock"},
        {"Pre_Installed_S/W": "SQL Web"},
        {"Region_Code": "us-east-1-bos-1"},
        {"Instance_Type": "m5.large"},
    ],
)
def test_what_lies_beside_the_list_prices_is_none(changes: dict[str, str]) -> None:
    lines = offer_file(row("g5.xlarge", "1.006"), row("p5.48xlarge", "31.46", **changes)).encode()
    _, offers = read_offer_file(iter(lines.splitlines()), "us-east-1")
    assert offers.usd_per_h == {"g5.xlarge": 1.006}


@pytest.mark.parametrize(
    ("others", "gap"),
    [
        ([row(usd="0.0000000000")], "not above 0 USD an hour count as unknown: p5.48xlarge"),
        ([row(usd="much")], "not above 0 USD an hour count as unknown: p5.48xlarge"),
        ([row(usd="nan")], "not above 0 USD an hour count as unknown: p5.48xlarge"),
        ([row(usd="55.04"), row(usd="98.32")], "lists different prices for one type, so none is taken"),
        ([row(usd="0.0001")], "that no such machine can have count as unknown: p5.48xlarge"),
        ([row(usd="99999")], "that no such machine can have count as unknown: p5.48xlarge"),
    ],
)
def test_a_price_that_is_none_is_a_gap(
    server: tuple[Path, str], others: list[dict[str, str]], gap: str
) -> None:
    root, url = server
    publish(root, "us-east-1", offer_file(row("g5.xlarge", "1.006"), *others))
    (part,) = asked(url, "us-east-1").values()
    assert (prices(part), part.unpriced) == ({"g5.xlarge": 1.006}, ("p5.48xlarge",))
    assert any(gap in one for one in part.gaps), part.gaps


def test_columns_may_come_in_another_order_and_rows_may_be_cut() -> None:
    text = offer_file(row("g5.xlarge", "1.006"), row(), columns=COLUMNS[::-1])
    broken = text.splitlines()[-1].replace(",", "")
    _, offers = read_offer_file(iter(f"{text}{broken}\n".encode().splitlines()), "us-east-1")
    assert offers.usd_per_h == {"g5.xlarge": 1.006, "p5.48xlarge": 55.04}
    assert offers.gaps == ("1 row of the price list could not be read",)


@needs_shared
def test_the_columns_are_the_attributes_of_the_published_json() -> None:
    """The one offer file at hand is of the same prices as JSON: names without blanks, small at the start."""
    path = SHARED / "prices/samples/aws_bulk_offer_file_excerpt_us-east-2.json"
    products = json.loads(path.read_text())["products"].values()
    machines = [p["attributes"] for p in products if p["productFamily"] == "Compute Instance"]
    names = ("Tenancy", "Operating System", "CapacityStatus", "MarketOption", "Instance Type", "Region Code")
    for attributes in machines:
        squeezed = {name.lower(): value for name, value in attributes.items()}
        assert all(squeezed[name.replace(" ", "").lower()] for name in names)
    assert {machine["instanceType"] for machine in machines} == {"m5.large", "p3.8xlarge"}


# --- Which regions ----------------------------------------------------------------------------------


def test_only_regions_that_are_named_are_read(server: tuple[Path, str]) -> None:
    """All of them are gigabytes."""
    root, url = server
    for region in ("us-east-1", "eu-west-1"):
        publish(root, region, offer_file(row("g5.xlarge", "1.006", Region_Code=region)))
    assert asked(url)["regions"].gaps == (NO_REGION,)
    assert asked(url, query=OfferQuery(regions=("us-*",))).keys() == {"regions"}
    parts = asked(url, "EU-west-1", query=OfferQuery(regions=("us-east-1", "eu-*", "us-central1")))
    assert parts.keys() == {"us-east-1 on-demand", "eu-west-1 on-demand"}
    assert asked(url, "eu-west-1", query=OfferQuery(regions=("us-east-1",))).keys() == {"us-east-1 on-demand"}


def test_whoever_asks_for_something_else_gets_nothing(server: tuple[Path, str]) -> None:
    _, url = server
    assert asked(url, "us-east-1", query=OfferQuery(providers=("gcp",))) == {}
    assert asked(url, "us-east-1", query=OfferQuery(markets=(Market.SPOT,))) == {}


def test_a_region_fails_alone(server: tuple[Path, str]) -> None:
    root, url = server
    publish(root, "us-east-1", offer_file(row()))
    parts = asked(url, "us-east-1", "eu-west-9")
    assert prices(parts["us-east-1 on-demand"])
    assert "127.0.0.1 has no such file (404)" in (parts["eu-west-9 on-demand"].failure or "")


# --- Files and servers that are none ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is no offer file"),
        ("<html>Please log in</html>\n", "it is no offer file"),
        (
            offer_file(row(), columns=tuple(c for c in COLUMNS if c not in ("Tenancy", "MarketOption"))),
            "it has another form, without MarketOption, Tenancy: update advisor",
        ),
        (offer_file(), "it names no machine with a GPU"),
        (offer_file(row(Region_Code="eu-west-1")), "it names no machine with a GPU"),
        (offer_file(row()) + '"cut off in the mid', "was cut off on its way"),
        (b"\xff\xfe\x00" * 1000 + b"\n", "it is no offer file"),
        ("x" * (2 * MB), "sent more than 1 MB"),
    ],
)
def test_a_file_that_is_none_is_one_line(server: tuple[Path, str], text: str | bytes, words: str) -> None:
    root, url = server
    publish(root, "us-east-1", text)
    assert words in failure_of(url)


def short(call: Handler) -> None:
    """Less than was promised, up to the end of a line."""
    body = offer_file(row()).encode()
    call.head(Content_Length=str(len(body) + 1000))
    call.wfile.write(body)


def endless_rows(call: Handler) -> None:
    call.head(Transfer_Encoding="chunked")
    chunk = b'"x","y"\n' * 2**17
    while not call.server.stopped.is_set():
        call.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (hostile.dripping_body, "did not send the file within 1 s"),
        (hostile.dripping_head, "did not send the file within 1 s"),
        (hostile.silent, "did not send the file within 1 s"),
        (hostile.closing, "cannot reach 127.0.0.1"),
        (hostile.endless_body, "more than 1 MB"),
        (endless_rows, "it is no offer file"),
        (short, "was cut off on its way"),
        (hostile.zip_bomb, "more than 1 MB"),
        (hostile.redirecting, "which is not followed"),
        (hostile.web_page, "was cut off on its way"),
        (hostile.throttling, "answered with the error 429"),
    ],
)
def test_a_server_that_misbehaves_is_one_line_in_time(
    attack: Attack, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if attack in hostile.SLOW:
        monkeypatch.setattr(aws_files, "FILE_WITHIN_S", 1.0)
    with attacking(attack) as url:
        assert words in failure_of(url)


def test_a_file_that_never_ends_is_given_up_and_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_files, "FILE_BYTES", 60 * MB)

    def endless(call: Handler) -> None:
        call.head(Transfer_Encoding="chunked")
        head, more = offer_file(row()).encode(), (b'"Shared"' + b',"x"' * 500 + b"\n") * 200
        call.wfile.write(b"%x\r\n%s\r\n" % (len(head), head))
        while not call.server.stopped.is_set():
            call.wfile.write(b"%x\r\n%s\r\n" % (len(more), more))

    with attacking(endless) as url:
        tracemalloc.start()
        try:
            assert "more than 60 MB" in failure_of(url)
            assert tracemalloc.get_traced_memory()[1] < 20 * MB
        finally:
            tracemalloc.stop()


def test_a_packed_file_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    def packed(call: Handler) -> None:
        call.reply(gzip.compress(offer_file(row()).encode()), Content_Encoding="gzip")

    with attacking(packed) as url:
        (part,) = asked(url, "us-east-1").values()
    assert prices(part) == {"p5.48xlarge": 55.04}


def test_lines_come_whole_wherever_the_network_cuts_them(
    server: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, url = server
    text = offer_file(*(row("g5.xlarge", "1.006") for _ in range(50)))
    path = publish(root, "us-east-1", text)
    for size in (1, 7, 4096):
        monkeypatch.setattr(public_files, "_CHUNK_BYTES", size)
        address = f"{url}/{path.relative_to(root)}"
        lines = list(public_files.lines_of(address, within_s=60, most_bytes=MB))
        assert lines == text.encode().splitlines()


# --- The source -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regions": "us-east-1"}, r"regions must be a list such as \[us-east-1\]; got 'us-east-1'"),
        ({"regions": ["us-*"]}, "regions must be a list"),
        ({"regions": ["../../x"]}, "regions must be a list"),
        ({"regions": [5]}, "regions must be a list"),
        ({"url": 5}, "url must be an address; got 5"),
        ({"region": []}, "Did you mean 'regions'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        aws_files_source(options)


def test_options(server: tuple[Path, str]) -> None:
    root, url = server
    publish(root, "us-east-1", offer_file(row()))
    source = aws_files_source({"regions": ["us-east-1"], "url": f"{url}/"})
    assert [prices(part) for part in source.offers(OfferQuery())] == [{"p5.48xlarge": 55.04}]


def test_it_is_live_wants_no_account_and_knows_list_prices_alone() -> None:
    source = aws_files_source({})
    assert (source.capabilities.is_live, source.capabilities.markets) == (True, (Market.ON_DEMAND,))
    assert (source.freshness(), source.credentials()) == ((), Credentials.NOT_NEEDED)


def test_a_file_without_a_day_says_so() -> None:
    text = "\n".join(line for line in offer_file(row()).splitlines() if "Publication" not in line)
    published, _ = read_offer_file(iter(text.encode().splitlines()), "us-east-1")
    assert published == "of an unknown day"


def test_what_is_no_file_is_an_error_of_its_own() -> None:
    with pytest.raises(PublicFileError, match="no offer file"):
        read_offer_file(iter([b'"FormatVersion","v1.0"'] * 100), "us-east-1")
