"""What to know of prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.core.findings import Code
from advisor.report.words.table import Words


def gpu_family(*, name: str, gpus: Sequence[str]) -> str:
    """Which GPUs a name stands for."""
    return f"{name} is a family: taken as {', '.join(gpus)}"


def gpus_not_in_catalog(*, gpus: Sequence[str]) -> str:
    """Whose times cannot be predicted."""
    return f"the catalog does not know {', '.join(gpus)}: offers with it are left out"


def prices_ahead(*, providers: Sequence[str]) -> str:
    """Prices of tomorrow."""
    return f"prices of {', '.join(providers)} are dated after today: check the clock"


def prices_computed(*, num_computed: int, num_prices: int, source_begins: str) -> str:
    """Prices that nobody quoted."""
    return (
        f"{num_computed} of {num_prices} prices were never quoted but computed from others; their source"
        f" begins with {source_begins!r}"
    )


def prices_implausible(*, num_prices: int, source: str, examples: str, is_kept: bool) -> str:
    """Prices far from those of such machines: own ones stay, others are left out."""
    prices = f"{num_prices} {'price' if num_prices == 1 else 'prices'} of {source}"
    if is_kept:
        return f"{prices} far from what such machines cost elsewhere, taken as they are: {examples}"
    return f"{prices} that no such machine can have left out: {examples}"


def prices_not_live(
    *, num_dated: int, num_prices: int, ages: Sequence[Mapping[str, str | int]], is_public: bool
) -> str:
    """How old they are: ``aws 124 to 511 days old (2025-06-28 to 2026-07-20)`` for each provider."""
    some = "" if num_dated == num_prices else f"{num_dated} of {num_prices} "
    spans = "; ".join(
        f"{age['provider']} {_span(age['newest_days'], age['oldest_days'])} days old"
        f" ({_span(age['oldest_on'], age['newest_on'])})"
        for age in ages
    )
    way = "; `advisor prices refresh` pulls newer ones and needs no account" if is_public else ""
    return f"{some}prices are not live: {spans}{way}"


def _span(low: str | int, high: str | int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def prices_stale(
    *, examples: Sequence[str], num_machines: int, num_prices: int, sources: Sequence[str], is_kept: bool
) -> str:
    """Machines of which the last pull got no price."""
    rest = num_machines - len(examples)
    named = ", ".join(examples) + (f" and {rest} more" if rest else "")
    what = "stand in, of the day that they show" if is_kept else "are older than allowed and left out"
    return (
        f"the last pull could not price {named}: {num_prices} stale prices of {', '.join(sources)} {what};"
        " `advisor prices sources` says why"
    )


PRICES: Words = {
    Code.GPU_FAMILY: gpu_family,
    Code.GPUS_NOT_IN_CATALOG: gpus_not_in_catalog,
    Code.NO_PRICE_MATCHES: "no price matches these limits: see `advisor prices`",
    Code.PRICES_AHEAD: prices_ahead,
    Code.PRICES_COMPUTED: prices_computed,
    Code.PRICES_IMPLAUSIBLE: prices_implausible,
    Code.PRICES_NOT_LIVE: prices_not_live,
    Code.PRICES_STALE: prices_stale,
}
