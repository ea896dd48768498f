"""How far a price can be trusted, beside the price and in JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from advisor.core.values import Plan, Price, QuoteKind

# Of these the age says nothing.
_TIMELESS = (QuoteKind.AGREED, QuoteKind.LIVE)


def quote_text(price: Price) -> str:
    """``dated, 111 d``: the kind of the quote and its age."""
    return price.kind if price.kind in _TIMELESS else f"{price.kind}, {price.age_days:.0f} d"


def rent_text(plan: Plan) -> str:
    """``3.67, 111 d``; ``~1.20, 512 d`` for a guess; empty where nobody knows what is paid."""
    if plan.usd_per_h is None:
        return ""
    usd = f"{plan.usd_per_h:,.2f}"
    if plan.price is None:
        return usd
    trust = plan.price.kind if plan.price.kind in _TIMELESS else f"{plan.price.age_days:.0f} d"
    return f"{'~' if plan.price.is_guess else ''}{usd}, {trust}"


def price_json(price: Price | None) -> Mapping[str, object] | None:
    """Quantiles of USD per hour, with the kind of the quote and its age."""
    if price is None:
        return None
    return {**asdict(price.usd_per_h), "kind": price.kind, "age_days": price.age_days}
