"""``advisor prices refresh / history / sources / check``."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.completion import region_names
from advisor.cli.shared_options import (
    FormatOption,
    GpuOption,
    JsonOption,
    MarketOption,
    ProviderOption,
    RegionOption,
)
from advisor.core.limits import MAX_MACHINES
from advisor.report.printing import Format, print_document

SourceOption = Annotated[
    list[str] | None, typer.Option("--source", metavar="NAME", help="Only this source. Repeatable.")
]
SinceOption = Annotated[str, typer.Option(metavar="DURATION", help="How far back, such as 30d.")]


def refresh(
    source: SourceOption = None,
    region: RegionOption = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Pull prices by your accounts and what is published for everybody, and remember them.

    It needs no account. AWS's own files are read of regions that you name in full.

    What cannot be pulled keeps its old prices and their age. Exits with 1 if nothing could be pulled.
    """
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL
    from advisor.core.errors import NoOfferError
    from advisor.report.prices import refresh_document
    from advisor.service.live import refresh_prices

    kept = refresh_prices(source or (), settings_with(cloud__regions=region), TERMINAL)
    print_document(refresh_document(kept), chosen_format(output, as_json))
    failed = [part for part in kept if part.failure is not None]
    if not any(part.num_offers for part in kept) and (failed or not kept):
        raise NoOfferError(
            "no price could be pulled. What was known stays as it was; `advisor prices sources` says who"
            " lacks what."
        )


def history(
    gpu: GpuOption = None,
    provider: ProviderOption = None,
    region: RegionOption = None,
    market: MarketOption = None,
    since: SinceOption = "90d",
    plot: Annotated[bool, typer.Option("--plot", help="Draw the prices in the terminal.")] = False,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show how prices changed: first, last, lowest, median and highest of each machine and place."""
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL
    from advisor.cli.times import duration_s
    from advisor.core.errors import InputError
    from advisor.report.history import history_document
    from advisor.service.live import now
    from advisor.service.price_history import HistoryRequest, price_history

    output = chosen_format(output, as_json)
    if plot and output is not Format.TABLE:
        raise InputError("--plot draws in the terminal: leave --format and --json out.")
    request = HistoryRequest(gpus=tuple(gpu or ()), since_s=duration_s("--since", since))
    config = settings_with(cloud__providers=provider, cloud__regions=region, cloud__markets=market)
    series = price_history(request, config, TERMINAL)
    print_document(history_document(series, now(), plot=plot), output)


def sources(output: FormatOption = Format.TABLE, as_json: JsonOption = False) -> None:
    """Show where prices come from: how many, how old, what is missing, and who would let us in."""
    from advisor.cli.common import settings_with
    from advisor.report.prices import sources_document
    from advisor.service.live import source_states

    states, warnings = source_states(settings_with())
    print_document(sources_document(states, warnings), chosen_format(output, as_json))


def check(
    gpu: GpuOption = None,
    provider: ProviderOption = None,
    region: RegionOption = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Look for prices that cannot be right: jumps over 30 %, zeros, missing regions, spot too high or low.

    Exits with 1 if there are any.
    """
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL
    from advisor.report.prices import findings_document
    from advisor.service.price_history import doubtful_prices

    config = settings_with(cloud__providers=provider, cloud__regions=region)
    doubts = doubtful_prices(gpu or (), config, TERMINAL)
    print_document(findings_document(doubts), chosen_format(output, as_json))
    if doubts:
        raise typer.Exit(1)


def capacity(
    instance_types: Annotated[
        list[str], typer.Argument(help="Such as p5.48xlarge; any of them will do.", metavar="TYPES...")
    ],
    region: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Of AWS, in full. Repeatable.", autocompletion=region_names),
    ],
    nodes: Annotated[
        int, typer.Option(metavar="N", help="How many machines at once.", min=1, max=MAX_MACHINES)
    ] = 1,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Ask AWS whether it would start machines: spot placement scores (1 to 10) and the account's quotas.

    What the credentials do not allow is said, and the rest is shown.
    """
    from advisor.cli.common import settings_with
    from advisor.cli.listening import TERMINAL, warn
    from advisor.report.capacity import capacity_document
    from advisor.report.words import sentences
    from advisor.service.capacity import CapacityRequest, ask_capacity

    request = CapacityRequest(instance_types=tuple(instance_types), regions=tuple(region), num_nodes=nodes)
    answer = ask_capacity(request, settings_with().settings.prices, TERMINAL)
    warn(sentences(answer.warnings))
    document = capacity_document(answer.scores, answer.quotas, answer.warnings)
    print_document(document, chosen_format(output, as_json))
