"""Whom a command asks that is about something else than prices."""

from __future__ import annotations

import pytest

from advisor.config.settings import PriceSettings
from advisor.pricing.answer.known import is_pulled_unasked


@pytest.mark.parametrize("name", ["aws-files", "gpuhunt"])
def test_who_needs_no_account_is_asked_only_if_the_settings_name_it(name: str) -> None:
    assert not is_pulled_unasked(name, PriceSettings())
    assert not is_pulled_unasked(name, PriceSettings(sources=["aws"]))
    assert is_pulled_unasked(name, PriceSettings(sources=["aws", name]))
    assert is_pulled_unasked(name, PriceSettings(options={name: {}}))


def test_an_account_is_there_to_be_asked() -> None:
    assert is_pulled_unasked("aws", PriceSettings())
