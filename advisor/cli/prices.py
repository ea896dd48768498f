"""``advisor prices``: offers with age and source, and what is below it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli import price_commands
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
from advisor.cli.help_lines import WholeLines
from advisor.report.printing import Format, print_document

if TYPE_CHECKING:
    from advisor.core.values import Offer

app = typer.Typer(
    cls=WholeLines, help="What is for rent, cheapest first; live prices, their history and their age."
)
app.command("refresh")(price_commands.refresh)
app.command("history")(price_commands.history)
app.command("sources")(price_commands.sources)
app.command("check")(price_commands.check)
app.command("capacity")(price_commands.capacity)


class Sort(StrEnum):
    """What ``--sort`` takes."""

    PRICE = "price"
    GPU_PRICE = "gpu-price"
    AGE = "age"
    PLACE = "place"


@app.callback(invoke_without_command=True)
def prices(
    context: typer.Context,
    gpu: GpuOption = None,
    provider: ProviderOption = None,
    region: RegionOption = None,
    market: MarketOption = None,
    max_price: Annotated[
        float | None, typer.Option(metavar="USD", help="Per hour, of the whole machine.")
    ] = None,
    max_age: MaxAgeOption = None,
    sort: Annotated[Sort, typer.Option(help="By what.", case_sensitive=False)] = Sort.PRICE,
    all_: Annotated[bool, typer.Option("--all", help="Every zone, not only the cheapest.")] = False,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show what is for rent, cheapest first: live prices where they were pulled, else the dated snapshot."""
    if context.invoked_subcommand is not None:
        return
    from advisor.cli.common import settings_with, warn
    from advisor.cli.filters import Asked
    from advisor.core.arguments import check_number
    from advisor.core.errors import NoOfferError
    from advisor.core.findings import quoted
    from advisor.core.limits import MAX_USD_PER_H
    from advisor.pricing.answer.places import cheapest_places
    from advisor.report.offers import offers_document
    from advisor.report.words import sentences
    from advisor.service.offers import query_offers, wanted_counts

    if max_price is not None:
        check_number("--max-price", max_price, above=0, most=MAX_USD_PER_H)
    output = chosen_format(output, as_json)
    config = settings_with(
        cloud__providers=provider,
        cloud__regions=region,
        cloud__markets=market,
        prices__max_age=max_age,
    )
    asked = Asked(gpus=gpu or (), wanted=wanted_counts(gpu or ()), max_usd_per_h=max_price)
    try:
        found = query_offers(config, asked)
    except NoOfferError as error:
        # A program that reads the answer gets one, whatever the exit code.
        if output is not Format.TABLE:
            print_document(offers_document([], [quoted(str(error))]), output)
        raise
    offers = list(found.offers) if all_ else cheapest_places(found.offers)
    warn(sentences(found.warnings))
    print_document(offers_document(_sorted(offers, sort), found.warnings), output)


def _sorted(offers: list[Offer], sort: Sort) -> list[Offer]:
    """By the key asked for, then by price and place, so that the order is always the same."""

    def key(offer: Offer) -> tuple[object, ...]:
        place = (offer.provider, offer.region, offer.zone or "", offer.instance_type)
        first: dict[Sort, tuple[object, ...]] = {
            Sort.PRICE: (),
            Sort.GPU_PRICE: (offer.usd_per_h / offer.num_gpus,),
            Sort.AGE: (-offer.retrieved_at.timestamp(),),
            Sort.PLACE: place,
        }
        return (*first[sort], offer.usd_per_h, *place)

    return sorted(offers, key=key)
