"""List prices of AWS without an account: the offer files that it publishes, one a region.

A file of EC2 holds some hundred megabytes, mostly of other things than GPUs, and there is no smaller one. It
is read line by line while it comes, and only for regions that somebody names.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice

from advisor.core.deadlines import completed
from advisor.core.errors import ConfigError
from advisor.core.units import MB
from advisor.core.values import Market, Offer
from advisor.pricing.sources.aws.machines import catalog_machines
from advisor.pricing.sources.aws.price_list import ListPrices, possible_prices, settled
from advisor.pricing.sources.aws.wording import counted, listed
from advisor.pricing.sources.protocol import Capabilities, Credentials, Part, check_options
from advisor.pricing.sources.public_files import PublicFileError, lines_of
from advisor.pricing.sources.query import OfferQuery

NAME = "aws-files"
HOST_URL = "https://pricing.us-east-1.amazonaws.com"
FILE_PATH = "/offers/v1.0/aws/AmazonEC2/current/{region}/index.csv"
FILE_BYTES = 4000 * MB
# `prices.refresh_within` ends a refresh earlier; this ends the thread that nobody listens to any more.
FILE_WITHIN_S = 300.0
NO_REGION = (
    "an offer file holds some hundred MB, so only regions that are named are read: name them in"
    " cloud.regions or prices.options.aws-files.regions"
)
_NUM_THREADS = 2
_HEADER_WITHIN = 20
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
# Of a row that is the list price of a machine; beside these lie other software, tenancy and capacity blocks.
_WANTED = {
    "TermType": ("OnDemand",), "Tenancy": ("Shared",), "Operating System": ("Linux",),
    "CapacityStatus": ("Used",), "Unit": ("Hrs",), "Currency": ("USD",), "MarketOption": ("OnDemand",),
    "Pre Installed S/W": ("NA", ""),
}  # fmt: skip
_COLUMNS = (*_WANTED, "Instance Type", "Region Code", "PricePerUnit")
# Nine rows of ten need not be parsed. Every field that is not empty stands in quotes.
_MARKS = (b'"OnDemand"', b'"Shared"', b'"Linux"', b'"Used"', b'"Hrs"')
Clock = Callable[[], datetime]


class AwsFilesSource:
    """On-demand prices of AWS's machines with GPUs, a part for each region that is named.

    Args:
        regions: to read besides those of the query.
        url: of the server with the files.
        clock: tells the time of the call.
    """

    name = NAME
    capabilities = Capabilities(providers=("aws",), markets=(Market.ON_DEMAND,), is_live=True)

    def __init__(
        self,
        regions: Sequence[str] = (),
        url: str = HOST_URL,
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self._regions = regions
        self._url = url
        self._clock = clock

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        """Offers that match; a region whose file cannot be read fails alone."""
        markets = query.markets or (Market.ON_DEMAND,)
        if Market.ON_DEMAND not in markets or (query.providers and "aws" not in query.providers):
            return
        named = [region.lower() for region in (*self._regions, *query.regions)]
        regions = [name for name in dict.fromkeys(named) if _REGION.fullmatch(name) and query.covers(name)]
        if not regions:
            yield Part(scope="regions", gaps=(NO_REGION,))
        jobs = [partial(self._part, region, query) for region in regions]
        yield from completed(jobs, num_threads=_NUM_THREADS, name=NAME)

    def freshness(self) -> tuple[()]:
        """Nothing is held here."""
        return ()

    def credentials(self) -> Credentials:
        """Anybody may read them."""
        return Credentials.NOT_NEEDED

    def _part(self, region: str, query: OfferQuery) -> Part:
        scope, now = f"{region} {Market.ON_DEMAND}", self._clock()
        url = self._url + FILE_PATH.format(region=region)
        try:
            lines = lines_of(url, within_s=FILE_WITHIN_S, most_bytes=FILE_BYTES)
            published, prices = read_offer_file(lines, region)
        except PublicFileError as error:
            return Part(scope=scope, failure=f"AWS's offer file of {region}: {error}")
        except Exception as error:  # noqa: BLE001 - a file of another form may raise anything
            kind = type(error).__name__
            return Part(scope=scope, failure=f"AWS's offer file of {region} cannot be read ({kind})")
        prices = possible_prices(prices, catalog_machines())
        offers = _offers(prices, region, now, f"AWS offer file {published}")
        return Part(
            scope=scope,
            offers=tuple(filter(query.matches, offers)),
            gaps=prices.gaps,
            place=("aws", region, Market.ON_DEMAND),
            unpriced=tuple(sorted(prices.named - prices.usd_per_h.keys())),
        )


def _offers(prices: ListPrices, region: str, at: datetime, source: str) -> Iterator[Offer]:
    machines = catalog_machines()
    for name, usd_per_h in prices.usd_per_h.items():
        yield machines[name].offer(
            region=region, market=Market.ON_DEMAND, usd_per_h=usd_per_h, retrieved_at=at, source=source
        )


def aws_files_source(options: Mapping[str, object]) -> AwsFilesSource:
    """The entry point: options ``regions`` (a list), and ``url`` of a server with the same files.

    Raises:
        ConfigError: another option is given, or one of these is of the wrong kind.
    """
    check_options(NAME, options, ("regions", "url"))
    regions, url = options.get("regions") or (), options.get("url") or HOST_URL
    if not isinstance(regions, list | tuple) or not all(_REGION.fullmatch(str(name)) for name in regions):
        raise ConfigError(
            f"prices.options.{NAME}.regions must be a list such as [us-east-1]; got {regions!r}."
        )
    if not isinstance(url, str):
        raise ConfigError(f"prices.options.{NAME}.url must be an address; got {url!r}.")
    return AwsFilesSource(tuple(map(str, regions)), url.rstrip("/"))


def read_offer_file(lines: Iterator[bytes], region: str) -> tuple[str, ListPrices]:
    """When a file was published, and the Linux list prices that it has of machines of our catalog.

    Raises:
        PublicFileError: it has another form, or names no such machine; or as `lines_of`.
    """
    published, header = _head(lines)
    at = {column: header.index(column) for column in _COLUMNS}
    wanted = catalog_machines()
    prices: defaultdict[str, set[float]] = defaultdict(set)
    num_unread = 0
    for line in lines:
        if not all(mark in line for mark in _MARKS):
            continue
        (row,) = csv.reader([line.decode("utf-8", "replace")])
        if len(row) != len(header):
            num_unread += 1
        elif row[at["Instance Type"]] in wanted and _is_list_price(row, at, region):
            prices[row[at["Instance Type"]]].add(_usd(row[at["PricePerUnit"]]))
    if not prices:
        unread = f" ({counted(num_unread, 'row')} could not be read)" if num_unread else ""
        raise PublicFileError(f"it names no machine with a GPU{unread}: update advisor")
    return published, settled(prices, num_unread)


def _head(lines: Iterator[bytes]) -> tuple[str, list[str]]:
    """The day of publication, and the names of the columns, which follow on lines about the file."""
    published = "of an unknown day"
    for line in islice(lines, _HEADER_WITHIN):
        row = next(csv.reader([line.decode("utf-8", "replace")]), [])
        if row[:1] == ["Publication Date"]:
            published = row[1][:10]
        if "SKU" not in row:
            continue
        if missing := [column for column in _COLUMNS if column not in row]:
            raise PublicFileError(f"it has another form, without {listed(missing)}: update advisor")
        return published, row
    raise PublicFileError("it is no offer file: check the proxy, or update advisor")


def _is_list_price(row: Sequence[str], at: Mapping[str, int], region: str) -> bool:
    return row[at["Region Code"]] == region and all(row[at[name]] in may for name, may in _WANTED.items())


def _usd(text: str) -> float:
    """NaN, which counts as unknown, where it is no number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
