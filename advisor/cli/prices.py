"""``advisor prices``: offers with age and source."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.common import (
    FormatOption,
    GpuOption,
    JsonOption,
    MarketOption,
    MaxAgeOption,
    ProviderOption,
    RegionOption,
    chosen_format,
)
from advisor.report.rows import Format


def prices(
    gpu: GpuOption = None,
    provider: ProviderOption = None,
    region: RegionOption = None,
    market: MarketOption = None,
    max_price: Annotated[
        float | None, typer.Option(metavar="USD", help="Per hour, of the whole machine.")
    ] = None,
    max_age: MaxAgeOption = None,
    all_: Annotated[bool, typer.Option("--all", help="Every zone, not only the cheapest.")] = False,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show what is for rent, cheapest first, from the dated snapshot."""
    from advisor.cli.common import settings_with, warn
    from advisor.cli.offers import query_offers, wanted_counts
    from advisor.errors import InputError
    from advisor.report.offers import print_offers
    from recommender.candidates import cheapest_places

    if max_price is not None and max_price <= 0:
        raise InputError(f"--max-price must be above 0, got {max_price:g}.")
    config = settings_with(
        cloud__providers=provider,
        cloud__regions=region,
        cloud__markets=market,
        prices__max_age=max_age,
    )
    found = query_offers(config, wanted_counts(gpu or ()), max_usd_per_h=max_price, max_gpus=None)
    offers = list(found.offers) if all_ else cheapest_places(found.offers)
    offers.sort(key=lambda o: (o.usd_per_h, o.provider, o.instance_type, o.region, o.zone or ""))
    warn(found.warnings)
    print_offers(offers, found.warnings, chosen_format(output, as_json))
