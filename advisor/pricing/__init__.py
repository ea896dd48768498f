"""Prices: sources -> offers that match a query, each with its date and where it comes from."""

from advisor.pricing.answers import Answer, Offers, load_offers
from advisor.pricing.sources.protocol import DERIVED, Freshness, OfferQuery, Part, PriceSource

__all__ = ["DERIVED", "Answer", "Freshness", "OfferQuery", "Offers", "Part", "PriceSource", "load_offers"]
