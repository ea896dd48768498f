"""Who rents GPUs, read from a file: what is not known is taken from the dearest that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advisor.core.errors import CatalogError
from advisor.pricing import providers
from advisor.pricing.providers import (
    FORM_COLUMNS,
    RENTER_COLUMNS,
    Access,
    is_community_host,
    known_form,
    load_renters,
)

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the rows of both files, which are then read in place of ours."""
    monkeypatch.setattr(providers, "catalog_path", lambda name: tmp_path / name)

    def put(*rows: str, forms: tuple[str, ...] = ()) -> None:
        (tmp_path / providers.RENTER_FILE).write_text("\n".join((",".join(RENTER_COLUMNS), *rows)) + "\n")
        (tmp_path / providers.FORM_FILE).write_text("\n".join((",".join(FORM_COLUMNS), *forms)) + "\n")
        load_renters.cache_clear()
        providers._forms.cache_clear()

    yield put
    load_renters.cache_clear()
    providers._forms.cache_clear()


def line(provider: str = "a", terms: str = "60,1", community: str = "", source: str = "a test") -> str:
    return (
        f"{provider},hunt-{provider},published,region,x-* y,named,{community},,,{terms},{source},2026-11-01"
    )


def test_a_row_is_a_provider(write: Write) -> None:
    write(line())
    (renter,) = load_renters().values()
    assert (renter.provider, renter.gpuhunt_name, renter.access) == ("a", "hunt-a", Access.PUBLISHED)
    assert renter.left_out_locations == ("x-*", "y")
    assert (renter.minimum_billed_s, renter.billed_step_s, renter.are_terms_known) == (60.0, 1.0, True)


def test_unknown_terms_are_the_longest_known_of_each_kind(write: Write) -> None:
    write(line("a", "60,600"), line("b", "3600,1"), line("c", ","))
    unknown = load_renters()["c"]
    assert (unknown.minimum_billed_s, unknown.billed_step_s, unknown.are_terms_known) == (3600, 600, False)


def test_places_where_hosts_are_of_others(write: Write) -> None:
    write(line("a", community="?? eu-*"), line("b"))
    assert is_community_host("a", "CA")
    assert is_community_host("a", "eu-west")
    assert not is_community_host("a", "us-west")
    assert not is_community_host("b", "CA")
    assert not is_community_host("nobody", "CA")


def test_the_first_form_that_matches_counts(write: Write) -> None:
    write(line(), forms=("a,ND*,SXM,a test,2026-11-01", "a,N*,PCIE,a test,2026-11-01"))
    assert [known_form("a", name) for name in ("ND96", "NC24", "X1")] == ["SXM", "PCIE", None]
    assert known_form("b", "ND96") is None


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ((line(), line()), "line 3: 'a' is listed twice"),
        ((line(terms="60,"),), "only one of the billing terms"),
        ((line(terms="0,1"),), "minimum_billed_s is 0"),
        ((line(terms="much,1"),), "line 2"),
        ((line(source=""),), "source is empty"),
        ((line().replace("published", "guessed"),), "guessed"),
        ((line().replace("2026-11-01", "soon"),), "soon"),
    ],
)
def test_a_broken_row_is_refused_with_its_line(write: Write, rows: tuple[str, ...], fault: str) -> None:
    write(*rows)
    with pytest.raises(CatalogError, match=fault):
        load_renters()


def test_a_form_without_a_source_is_refused(write: Write) -> None:
    write(line(), forms=("a,ND*,SXM,,2026-11-01",))
    with pytest.raises(CatalogError, match="a field is empty"):
        known_form("a", "ND96")
