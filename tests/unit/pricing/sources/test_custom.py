"""The source of own rates: which files it reads, what it tells, and the examples of its page."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from advisor.config.settings import Settings
from advisor.core.errors import ConfigError
from advisor.pricing.sources.custom import COLUMNS, custom_source
from advisor.pricing.sources.protocol import Credentials, Freshness, OfferQuery
from tests.rates import FULL, RATE, faults_of, offers_of, write_csv, write_yaml

# --- Which files ------------------------------------------------------------------------------------


def test_files_are_found_by_wildcard_home_and_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("b.yaml", "a.yaml", "deep/er/c.yaml"):
        write_yaml(tmp_path / name, RATE | {"instance_type": name})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "deep")
    assert [o.instance_type for o in offers_of("~/*.yaml")] == ["a.yaml", "b.yaml"]
    assert [o.instance_type for o in offers_of("er/c.yaml", "~/a.yaml")] == ["deep/er/c.yaml", "a.yaml"]
    assert len(offers_of("~/**/*.yaml", "~/a.yaml")) == 3


@pytest.mark.parametrize("pattern", ["absent.yaml", "*.nothing", "~nobody-of-this-name/rates.yaml", "."])
def test_a_pattern_that_names_no_file_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"no file of own rates is called {pattern!r} (from {str(tmp_path)!r})" in faults_of(pattern)


@pytest.mark.parametrize("files", ["rates.yaml", 5, [5], {"a": 1}])
def test_the_option_is_a_list_of_texts(files: Any) -> None:
    with pytest.raises(ConfigError, match=r"custom\.files must be a list such as \[rates\.yaml\]"):
        custom_source({"files": files})


def test_without_files_there_are_no_rates() -> None:
    for options in ({}, {"files": []}, {"files": None}):
        source = custom_source(options)
        assert list(source.offers(OfferQuery())) == []
        assert source.freshness() == ()


# --- The source -------------------------------------------------------------------------------------


def test_each_file_is_a_part_and_the_query_counts(tmp_path: Path) -> None:
    one = write_yaml(
        tmp_path / "a.yaml", RATE, RATE | {"gpu": "L4", "instance_type": "x", "as_of": "2026-10-01"}
    )
    two = write_csv(tmp_path / "b.csv", RATE | {"provider": "acme"})
    source = custom_source({"files": [str(one), str(two)]})
    parts = list(source.offers(OfferQuery(gpus=("L4",))))
    assert [(part.scope, len(part.offers)) for part in parts] == [(str(one), 1), (str(two), 0)]
    assert source.freshness() == (
        Freshness(
            provider="acme", num_offers=1, oldest=datetime(2026, 11, 1, tzinfo=UTC),
            newest=datetime(2026, 11, 1, tzinfo=UTC),
        ),
        Freshness(
            provider="lab", num_offers=2, oldest=datetime(2026, 10, 1, tzinfo=UTC),
            newest=datetime(2026, 11, 1, tzinfo=UTC),
        ),
    )  # fmt: skip
    assert source.credentials() is Credentials.NOT_NEEDED
    assert not source.capabilities.is_live


def test_columns_are_listed_once() -> None:
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert set(FULL) < set(COLUMNS)


# --- docs/plugins.md --------------------------------------------------------------------------------


def blocks_of_the_page(language: str) -> list[str]:
    page = Path(__file__).resolve().parents[4] / "docs" / "plugins.md"
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def test_the_rates_of_the_page_are_read_and_agree_in_both_forms(tmp_path: Path) -> None:
    settings, rates = blocks_of_the_page("yaml")
    (table,) = blocks_of_the_page("csv")
    (tmp_path / "rates.yaml").write_text(rates)
    (tmp_path / "rates.csv").write_text(table)
    in_yaml, in_csv = (
        [dataclasses.replace(offer, source="") for offer in offers_of(tmp_path / name)]
        for name in ("rates.yaml", "rates.csv")
    )
    assert in_yaml == in_csv
    assert [offer.usd_per_h for offer in in_yaml] == [pytest.approx(7.2), 41.3]
    options = Settings.model_validate(yaml.safe_load(settings)).prices.options
    assert len(options["custom"]["files"]) == 2
    custom_source(options["custom"])


def test_the_page_names_every_column() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "plugins.md").read_text()
    assert [name for name in COLUMNS if f"`{name}`" not in page] == []
