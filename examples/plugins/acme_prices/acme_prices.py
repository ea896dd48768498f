"""A price source for advisor: a cloud that publishes one JSON document for each region."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from advisor.core.gpus import is_known, resolve_gpu
from advisor.core.values import Market, Offer
from advisor.pricing.sources.protocol import Capabilities, Credentials, OfferQuery, Part, check_options

URL = "https://prices.acme.example/v1"
REGIONS = ("north", "south")


def acme_source(options: Mapping[str, Any]) -> AcmeSource:
    check_options("acme", options, ("url", "regions"))
    return AcmeSource(options.get("url", URL), tuple(options.get("regions", REGIONS)))


class AcmeSource:
    name = "acme"
    capabilities = Capabilities(providers=("acme",), markets=(Market.ON_DEMAND, Market.SPOT), is_live=True)

    def __init__(self, url: str, regions: tuple[str, ...]) -> None:
        self._url, self._regions = url, regions

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        """A part for each region, so that one that cannot be reached fails alone."""
        for region in self._regions:
            try:
                with urllib.request.urlopen(f"{self._url}/{region}.json", timeout=30) as answer:  # noqa: S310
                    document = json.load(answer)
                offers = [offer for row in document["machines"] for offer in _offers(row, region, document)]
            except (OSError, ValueError, KeyError, TypeError) as error:
                yield Part(scope=region, failure=f"no prices of {region}: {type(error).__name__}: {error}")
                continue
            unknown = sorted({offer.gpu for offer in offers if not is_known(offer.gpu)})
            gaps = tuple(f"{gpu} is not in advisor's catalog" for gpu in unknown)
            yield Part(scope=region, offers=tuple(filter(query.matches, offers)), gaps=gaps)

    def freshness(self) -> tuple[()]:
        return ()  # a live source holds nothing

    def credentials(self) -> Credentials:
        return Credentials.NOT_NEEDED


def _offers(row: Mapping[str, Any], region: str, document: Mapping[str, Any]) -> Iterator[Offer]:
    for market, price in ((Market.ON_DEMAND, row["usd_per_h"]), (Market.SPOT, row.get("spot_usd_per_h"))):
        if price:
            yield Offer(
                provider="acme",
                instance_type=row["name"],
                region=region,
                zone=None,
                gpu=resolve_gpu(row["gpu"]).name if is_known(row["gpu"]) else row["gpu"],
                num_gpus=int(row["gpus"]),
                market=market,
                list_usd_per_h=float(price),
                includes=("network", "support"),
                minimum_billed_s=60.0,
                retrieved_at=datetime.fromisoformat(document["as_of"]),  # with a time zone
                source="prices.acme.example",
            )
