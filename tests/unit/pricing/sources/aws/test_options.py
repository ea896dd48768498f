"""Options of the source ``aws``."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from advisor.core.errors import CloudError, ConfigError
from advisor.core.values import Market
from advisor.pricing.sources.aws import aws_source
from advisor.pricing.sources.aws.calls import AwsOptions, read_options
from advisor.pricing.sources.protocol import Credentials, credentials_of


def test_without_options_the_defaults_hold() -> None:
    assert read_options({}) == AwsOptions()


def test_options_are_taken_over() -> None:
    given = {"history_days": 7, "capacity_blocks": True, "max_attempts": 2, "timeout_s": 3}
    assert read_options(given) == AwsOptions(**given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"history_day": 7}, "Did you mean 'history_days'"),
        ({"history_days": 0}, "whole number from 1 to 90"),
        ({"history_days": 91}, "whole number from 1 to 90"),
        ({"history_days": 7.5}, "whole number from 1 to 90"),
        ({"history_days": True}, "whole number from 1 to 90"),
        ({"history_days": "7"}, "whole number from 1 to 90"),
        ({"capacity_blocks": "yes"}, "must be true or false"),
        ({"max_attempts": 21}, "from 1 to 20"),
        ({"timeout_s": 0}, "a number from 0.1 to 300"),
        ({"timeout_s": float("nan")}, "a number from 0.1 to 300"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        aws_source(options)


def test_the_source_says_what_it_can_answer() -> None:
    source = aws_source({})
    assert source.name == "aws"
    assert source.capabilities.is_live
    assert source.capabilities.providers == ("aws",)
    assert source.capabilities.markets == (Market.ON_DEMAND, Market.SPOT)
    assert Market.CAPACITY_BLOCK in aws_source({"capacity_blocks": True}).capabilities.markets
    assert source.freshness() == ()


def test_credentials_are_found_or_not(monkeypatch: pytest.MonkeyPatch, start: Any) -> None:
    start()
    assert aws_source({}).credentials() is Credentials.FOUND
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert aws_source({}).credentials() is Credentials.MISSING
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    source = aws_source({})
    with pytest.raises(CloudError, match="ProfileNotFound"):
        source.credentials()
    credentials, fault = credentials_of(source)
    assert credentials is Credentials.MISSING
    assert "cannot be used (ProfileNotFound)" in (fault or "")


def test_the_page_tells_every_option_and_its_default() -> None:
    page = (Path(__file__).resolve().parents[5] / "docs" / "aws.md").read_text()
    for field in fields(AwsOptions):
        default = str(field.default).lower().removesuffix(".0")
        assert f"| `{field.name}` | {default} |" in page


def test_the_page_lists_every_permission_that_the_source_uses() -> None:
    root = Path(__file__).resolve().parents[5]
    policy = (root / "docs" / "aws.md").read_text().partition("```json\n")[2].partition("```")[0]
    allowed = set(json.loads(policy)["Statement"][0]["Action"])
    sources = (root / "advisor" / "pricing" / "sources" / "aws").glob("*.py")
    code = "".join(path.read_text() for path in sources)
    used = set(re.findall(r'"((?:ec2|pricing|s3|servicequotas):[A-Z]\w+)"', code))
    assert used == allowed
