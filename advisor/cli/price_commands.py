"""``advisor prices refresh / history / sources / check``."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.common import (
    FormatOption,
    GpuOption,
    JsonOption,
    MarketOption,
    ProviderOption,
    RegionOption,
    chosen_format,
)
from advisor.cli.completion import region_names
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
    """Pull live prices of all clouds that let you in, and remember them.

    What cannot be pulled keeps its old prices and their age. Exits with 1 if nothing could be pulled.
    """
    from advisor.cli.common import settings_with, warn
    from advisor.core.errors import NoOfferError
    from advisor.report.prices import refresh_document
    from advisor.service.live import failures_in_words, live_sources, opened, run_refresh

    config = settings_with(cloud__regions=region)
    asked = live_sources(config, source)
    with opened(config) as store:
        kept = run_refresh(config, asked, store)
    warn(failures_in_words(kept))
    print_document(refresh_document(kept), chosen_format(output, as_json))
    if all(part.failure is not None for part in kept):
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
    from advisor.cli.history import show_history

    config = settings_with(cloud__providers=provider, cloud__regions=region, cloud__markets=market)
    show_history(config, gpu or [], since, plot=plot, output=chosen_format(output, as_json))


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
    """Look for prices that cannot be right: jumps over 30 %, zeros, missing regions, spot above on-demand.

    Exits with 1 if there are any.
    """
    from advisor.cli.common import settings_with
    from advisor.cli.history import doubts
    from advisor.report.prices import findings_document

    found = doubts(settings_with(cloud__providers=provider, cloud__regions=region), gpu or [])
    print_document(findings_document(found), chosen_format(output, as_json))
    if found:
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
    from advisor.cli.capacity import show_capacity
    from advisor.cli.common import settings_with

    show_capacity(settings_with(), instance_types, region, nodes, chosen_format(output, as_json))
