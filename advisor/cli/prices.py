"""``advisor prices``: offers with age and source, and what is below it."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.help_lines import WholeLines
from advisor.cli.price_commands import capacity, check, history, refresh, sources
from advisor.cli.shared_options import (
    FormatOption,
    GpuOption,
    JsonOption,
    MarketOption,
    MaxAgeOption,
    ProviderOption,
    RegionOption,
)
from advisor.report.printing import Format, print_document
from advisor.service.prices.offers import PriceOrder

app = typer.Typer(
    cls=WholeLines, help="What is for rent, cheapest first; live prices, their history and their age."
)
app.command("refresh")(refresh)
app.command("history")(history)
app.command("sources")(sources)
app.command("check")(check)
app.command("capacity")(capacity)


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
    sort: Annotated[PriceOrder, typer.Option(help="By what.", case_sensitive=False)] = PriceOrder.PRICE,
    all_: Annotated[bool, typer.Option("--all", help="Every zone, not only the cheapest.")] = False,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show what is for rent, cheapest first: live prices where they were pulled, else the dated snapshot."""
    if context.invoked_subcommand is not None:
        return
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL, warn
    from advisor.core.errors import NoOfferError
    from advisor.core.findings import quoted
    from advisor.report.offers import offers_document
    from advisor.report.words import error_text, sentences
    from advisor.service.prices.offers import PricesRequest, list_prices

    request = PricesRequest(gpus=tuple(gpu or ()), max_usd_per_h=max_price, order=sort, every_zone=all_)
    output = chosen_format(output, as_json)
    config = settings_with(
        cloud__providers=provider,
        cloud__regions=region,
        cloud__markets=market,
        prices__max_age=max_age,
    )
    try:
        answer = list_prices(request, config, TERMINAL)
    except NoOfferError as error:
        # A program that reads the answer gets one, whatever the exit code.
        if output is not Format.TABLE:
            print_document(offers_document([], [], [quoted(error_text(error))]), output)
        raise
    warn(sentences(answer.warnings))
    print_document(offers_document(answer.offers, answer.prices, answer.warnings), output)
