"""What a source says -> what can be kept: prices that are prices, values of their types, no secrets."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from advisor.core.redaction import error_in_words, redact_message
from advisor.core.values import Offer, PricePoint
from advisor.pricing.catalog.bounds import has_possible_prices, named, possible_points
from advisor.pricing.sources.protocol import Part

if TYPE_CHECKING:
    from pydantic import TypeAdapter


EVERYTHING = "all"
"""Scope of a failure that belongs to no part."""
_ADVICE = "update the plug-in"


def checked(part: object) -> Part:
    """The part as it can be kept; a plug-in may say anything, and what it says wrong fails alone."""
    if not isinstance(part, Part):
        return Part(scope=EVERYTHING, failure=f"it gave no Part but {type(part).__name__!r}: {_ADVICE}")
    scope: object = part.scope
    if not isinstance(scope, str):
        return Part(scope=EVERYTHING, failure=f"it gave a Part whose scope is no text: {_ADVICE}")
    scope = redact_message(scope)
    try:
        return _checked(part, scope)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it is this part's fault
        return Part(scope=scope, failure=f"its values are wrong ({_fault(error)}): {_ADVICE}")


def _checked(answer: Part, scope: str) -> Part:
    if answer.failure is not None:
        return Part(scope=scope, failure=redact_message(str(answer.failure)))
    offers = tuple(offer for offer in answer.offers if not isinstance(offer, Offer) or _has_prices(offer))
    history = tuple(p for p in answer.history if not isinstance(p, PricePoint) or _is_price(p.usd_per_h))
    unpriced = [o.instance_type for o in answer.offers if isinstance(o, Offer) and not _has_prices(o)]
    num_lost = len(answer.offers) + len(answer.history) - len(offers) - len(history)
    lost = [f"{num_lost} prices that are not above 0 left out"] if num_lost else []
    troubles = tuple(redact_message(str(trouble)) for trouble in answer.troubles)
    gaps = dict.fromkeys((*(redact_message(str(gap)) for gap in answer.gaps), *troubles, *lost))
    unpriced += map(redact_message, answer.unpriced)
    known = replace(
        answer,
        scope=scope,
        offers=offers,
        history=history,
        gaps=tuple(gaps),
        unpriced=tuple(dict.fromkeys(unpriced)),
        troubles=troubles,
    )
    part: Part = _possible(_adapter().validate_python((known,))[0])
    times = [offer.retrieved_at for offer in part.offers] + [point.observed_at for point in part.history]
    if any(time.tzinfo is None for time in times):
        return Part(scope=scope, failure=f"its times have no time zone: {_ADVICE}")
    return part


def _possible(part: Part) -> Part:
    """Without prices that no such machine can have: those are unknown, and told."""
    offers = tuple(filter(has_possible_prices, part.offers))
    history = tuple(possible_points(part.history, part.offers))
    if (len(offers), len(history)) == (len(part.offers), len(part.history)):
        return part
    lost = [offer for offer in part.offers if not has_possible_prices(offer)]
    gaps = [f"prices that no such machine can have left out: {redact_message(named(lost))}"] if lost else []
    if num_points := len(part.history) - len(history):
        gaps.append(f"{num_points} earlier prices that no such machine can have had left out")
    unpriced = dict.fromkeys((*part.unpriced, *(offer.instance_type for offer in lost)))
    return replace(
        part,
        offers=offers,
        history=history,
        gaps=(*part.gaps, *gaps),
        troubles=(*part.troubles, *gaps),
        unpriced=tuple(unpriced),
    )


def _has_prices(offer: Offer) -> bool:
    spot = offer.spot_usd_per_h
    quantiles = () if spot is None else (spot.p10, spot.p50, spot.p90)
    discounted = (offer.contracted_usd_per_h, offer.effective_usd_per_h)
    given = [price for price in discounted if price is not None]
    return all(map(_is_price, (offer.list_usd_per_h, *given, *quantiles)))


def _is_price(usd_per_h: object) -> bool:
    is_number = isinstance(usd_per_h, int | float) and not isinstance(usd_per_h, bool)
    return is_number and 0 < usd_per_h < math.inf  # type: ignore[operator]


@cache
def _adapter() -> TypeAdapter[tuple[Part]]:
    """Checks the type of every value; a number in quotes is none."""
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(tuple[Part], config=ConfigDict(strict=True, revalidate_instances="always"))


def _fault(error: Exception) -> str:
    """Where the first wrong value stands; the value itself may be anything, secrets included."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return error_in_words(error)
    first = error.errors(include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}"
