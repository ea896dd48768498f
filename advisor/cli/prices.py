"""``advisor prices``, ``catalog`` and ``gpus``."""

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli import options
from advisor.cli.common import WholeLines, duration_s, option, settings_with
from advisor.cli.listening import TERMINAL
from advisor.core.errors import InputError, NoOfferError
from advisor.core.findings import quoted
from advisor.core.limits import MAX_MACHINES
from advisor.core.values import PriceOrder
from advisor.report.printing import Format, print_document

SourceOption = Annotated[
    list[str] | None, option("Only this source. Repeatable.", "--source", metavar="NAME")
]
SinceOption = Annotated[str, option("How far back, such as 30d.", metavar="DURATION")]


def refresh(
    source: SourceOption = None,
    provider: options.ProviderOption = None,
    region: options.RegionOption = None,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Pull prices with your accounts' credentials and from public catalogs, and store them.

    It needs no account.

    What cannot be pulled keeps its old prices and their age. Exits with 1 if nothing could be pulled.
    """
    from advisor.report.prices import refresh_document
    from advisor.service.prices.live import refresh_prices

    pricing = settings_with(cloud__regions=region, cloud__providers=provider).pricing
    kept = refresh_prices(source or (), pricing, TERMINAL, providers=tuple(provider or ()))
    print_document(refresh_document(kept), output.form)
    failed = [part for part in kept if part.failure is not None]
    if not any(part.num_offers for part in kept) and (failed or not kept):
        raise NoOfferError(
            "no price could be pulled, and stored prices are unchanged: `advisor prices sources` shows what"
            " each source lacks."
        )


def history(
    gpu: options.GpuOption = None,
    provider: options.ProviderOption = None,
    region: options.RegionOption = None,
    market: options.MarketOption = None,
    since: SinceOption = "90d",
    plot: Annotated[bool, option("Draw the prices in the terminal.", "--plot")] = False,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Show how prices changed: first, last, lowest, median and highest of each machine and place."""
    from advisor.report.prices import history_document
    from advisor.service.prices.live import now
    from advisor.service.prices.offers import price_history

    form = output.form
    if plot and form is not Format.TABLE:
        raise InputError("--plot draws in the terminal: leave --format and --json out.")
    since_s = duration_s("--since", since)
    config = settings_with(cloud__providers=provider, cloud__regions=region, cloud__markets=market)
    series = price_history(gpu or (), since_s, config.pricing, TERMINAL)
    print_document(history_document(series, now(), plot=plot), form)


def sources(output: options.OutputOptions = options.AS_TABLE) -> None:
    """Show where prices come from: how many, how old, what is missing, and which have credentials."""
    from advisor.report.prices import sources_document
    from advisor.service.prices.live import source_states

    states, warnings = source_states(settings_with().pricing)
    print_document(sources_document(states, warnings), output.form)


def check(
    gpu: options.GpuOption = None,
    provider: options.ProviderOption = None,
    region: options.RegionOption = None,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Look for prices that cannot be right: jumps over 30 %, zeros, missing regions, spot too high or low.

    Exits with 1 if there are any.
    """
    from advisor.report.prices import findings_document
    from advisor.service.prices.offers import doubtful_prices

    config = settings_with(cloud__providers=provider, cloud__regions=region)
    doubts = doubtful_prices(gpu or (), config.pricing, TERMINAL)
    print_document(findings_document(doubts), output.form)
    if doubts:
        raise typer.Exit(1)


def capacity(
    instance_types: Annotated[
        list[str], typer.Argument(help="Such as p5.48xlarge; any of them will do.", metavar="TYPES...")
    ],
    region: Annotated[
        list[str], option("Of AWS, in full. Repeatable.", metavar="NAME", autocompletion=options.region_names)
    ],
    nodes: Annotated[int, option("How many machines at once.", metavar="N", min=1, max=MAX_MACHINES)] = 1,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Ask AWS whether it would start machines: spot placement scores (1 to 10) and the account's quotas.

    What the credentials do not allow is said, and the rest is shown.
    """
    from advisor.report.prices import capacity_document
    from advisor.service.prices.account_quotas import ask_capacity

    prices = settings_with().settings.prices
    answer = ask_capacity(tuple(instance_types), tuple(region), prices, TERMINAL, num_nodes=nodes)
    TERMINAL.warn(answer.warnings)
    document = capacity_document(answer.scores, answer.quotas, answer.warnings)
    print_document(document, output.form)


prices_app = typer.Typer(
    cls=WholeLines, help="What is for rent, cheapest first; live prices, their history and their age."
)
prices_app.command("refresh")(refresh)
prices_app.command("history")(history)
prices_app.command("sources")(sources)
prices_app.command("check")(check)
prices_app.command("capacity")(capacity)


@prices_app.callback(invoke_without_command=True)
def prices(
    context: typer.Context,
    gpu: options.GpuOption = None,
    provider: options.ProviderOption = None,
    region: options.RegionOption = None,
    market: options.MarketOption = None,
    max_price: Annotated[float | None, option("Per hour, of the whole machine.", metavar="USD")] = None,
    min_memory_gib: Annotated[
        float | None, option("Only GPUs with at least this much memory.", metavar="GIB")
    ] = None,
    min_vcpus: Annotated[
        int | None, option("Only machines with at least so many vCPUs.", metavar="N")
    ] = None,
    min_host_memory_gib: Annotated[
        float | None, option("Only machines with at least this much memory beside their GPUs.", metavar="GIB")
    ] = None,
    max_age: options.MaxAgeOption = None,
    sort: Annotated[PriceOrder, option("By what.", case_sensitive=False)] = PriceOrder.PRICE,
    all_: Annotated[bool, option("Every zone, not only the cheapest.", "--all")] = False,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Show what is for rent, cheapest first: live prices where they were pulled, else the dated snapshot."""
    if context.invoked_subcommand is not None:
        return
    from advisor.report.prices import offers_document
    from advisor.report.words import error_text
    from advisor.service.prices.offers import PricesRequest, list_prices

    request = PricesRequest(
        gpus=tuple(gpu or ()),
        max_usd_per_h=max_price,
        min_memory_gib=min_memory_gib,
        min_vcpus=min_vcpus,
        min_host_memory_gib=min_host_memory_gib,
        order=sort,
        every_zone=all_,
    )
    form = output.form
    config = settings_with(
        cloud__providers=provider, cloud__regions=region, cloud__markets=market, prices__max_age=max_age
    )
    try:
        answer = list_prices(request, config.pricing, TERMINAL)
    except NoOfferError as error:
        # A program that reads the answer gets one, whatever the exit code.
        if form is not Format.TABLE:
            print_document(offers_document([], [], [quoted(error_text(error))]), form)
        raise
    TERMINAL.warn(answer.warnings)
    print_document(offers_document(answer.offers, answer.prices, answer.warnings), form)


catalog_app = typer.Typer(cls=WholeLines, help="Dated snapshots of prices.")


@catalog_app.callback()
def _catalog() -> None:
    pass


@catalog_app.command("build")
def build(
    out: Annotated[Path, option("Where the snapshot goes.", metavar="FOLDER")],
    force: Annotated[
        bool, option("Replace a snapshot although the new one looks wrong beside it.", "--force")
    ] = False,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Write the live prices that were pulled last as a snapshot, for machines without a network.

    It is checked against the snapshot in the folder before it takes its place.
    """
    from advisor.report.prices import built_document
    from advisor.service.prices.live import write_snapshot

    built = write_snapshot(out, settings_with().pricing, TERMINAL, is_forced=force)
    print_document(built_document(built), output.form)


def gpus(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="GPUs or families to compare; default: all.", autocompletion=options.gpu_names),
    ] = None,
    vendor: Annotated[
        str | None, option("Only this vendor's: nvidia, amd.", autocompletion=options.vendor_names)
    ] = None,
    min_memory_gib: Annotated[float | None, option("Only GPUs with at least this much memory.")] = None,
    relative_to: Annotated[
        str | None,
        option("Show figures as multiples of this GPU's.", metavar="GPU", autocompletion=options.gpu_names),
    ] = None,
    output: options.OutputOptions = options.AS_TABLE,
) -> None:
    """Show, filter and compare the GPUs of the catalog."""
    from advisor.core.gpus import resolve_gpu
    from advisor.report.catalog_tables import gpus_document
    from advisor.service.prices.query_limits import list_gpus

    base = resolve_gpu(relative_to) if relative_to else None
    chosen = list_gpus(names or (), TERMINAL, vendor=vendor, min_memory_gib=min_memory_gib)
    print_document(gpus_document(chosen, base), output.form)
