"""Regions that an account must enable first: left out, with a note, unless somebody says otherwise."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from advisor.config.layers import Config
from advisor.config.settings import CloudSettings, Settings
from advisor.core.errors import NoOfferError
from advisor.core.findings import Code
from advisor.core.values import Market
from advisor.pricing.answer.merge import Answer
from advisor.service import live
from advisor.service.listening import Silence
from advisor.service.offer_filters import OfferFilter
from advisor.service.offers import query_offers
from advisor.service.opt_in import is_open
from tests.builders import make_offer

CLOSED, OPEN = make_offer("L4", region="me-south-1"), make_offer("L4")


@pytest.mark.parametrize(
    ("cloud", "opens"),
    [
        ({}, False),
        ({"regions": ("me-*",)}, False),
        ({"regions": ("ME-south-1",)}, True),
        ({"opt_in_regions": ("me-south-1",)}, True),
        ({"opt_in_regions": ("me-*",)}, True),
        ({"opt_in_regions": ("ap-*",)}, False),
    ],
)
def test_a_closed_region_is_opened_by_name(cloud: dict[str, Any], opens: bool) -> None:
    is_opened = is_open(CloudSettings(**cloud))
    assert (is_opened(CLOSED), is_opened(OPEN)) == (opens, True)


@pytest.mark.parametrize(
    ("source", "is_live", "opens"), [("aws", True, True), ("aws", False, False), ("gpuhunt", True, False)]
)
def test_what_the_account_was_asked_in_is_enabled(source: str, is_live: bool, opens: bool) -> None:
    asked_at = {("aws", "me-south-1", Market.SPOT): datetime(2026, 11, 1, tzinfo=UTC)}
    answer = Answer(source=source, is_live=is_live, offers=(), asked_at=asked_at)
    assert is_open(CloudSettings(), [answer])(CLOSED) is opens


def test_a_region_of_the_same_name_elsewhere_is_another() -> None:
    assert is_open(CloudSettings())(make_offer("L4", region="me-south-1", provider="lab"))


def query(*, only_open: bool, offers: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> Any:
    answer = Answer(source="a test", is_live=False, offers=offers, providers=("aws",))
    monkeypatch.setattr(live, "current_answers", lambda *_, **__: [answer])
    monkeypatch.setattr(live, "known_answers", lambda *_, **__: [answer])
    config = Config(settings=Settings(), origins={}, warnings=())
    return query_offers(config, OfferFilter(wanted={}), Silence(), only_open=only_open)


def test_what_is_left_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = query(only_open=True, offers=(CLOSED, OPEN), monkeypatch=monkeypatch)
    assert answered.offers == (OPEN,)
    (note,) = (warning for warning in answered.warnings if warning.code is Code.OPT_IN_REGIONS)
    assert note.facts == {"num_offers": 1, "regions": ["me-south-1"]}
    every = query(only_open=False, offers=(CLOSED, OPEN), monkeypatch=monkeypatch)
    assert set(every.offers) == {CLOSED, OPEN}
    assert Code.OPT_IN_REGIONS not in {warning.code for warning in every.warnings}


def test_where_nothing_else_is_left_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    words = r"Without cloud\.opt_in_regions there is 1: aws l4.xlarge in me-south-1"
    with pytest.raises(NoOfferError, match=words):
        query(only_open=True, offers=(CLOSED,), monkeypatch=monkeypatch)
