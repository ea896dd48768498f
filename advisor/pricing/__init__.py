"""Prices: sources -> offers that match a query, each with its date and where it comes from."""

from advisor.pricing.answer.answering import DERIVED, Offers, load_offers
from advisor.pricing.answer.merge import Answer
from advisor.pricing.sources.protocol import Freshness, Part, PriceSource
from advisor.pricing.sources.query import OfferQuery

__all__ = ["DERIVED", "Answer", "Freshness", "OfferQuery", "Offers", "Part", "PriceSource", "load_offers"]
