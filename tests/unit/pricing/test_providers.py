"""Providers and their regions."""

from collections.abc import Callable

import pytest

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.pricing import providers
from advisor.pricing.instance_types import columns_of, load_instances
from advisor.pricing.providers import (
    GpuForm,
    PriceAccess,
    Provider,
    is_community_host,
    known_form,
    load_providers,
    load_regions,
)
from advisor.pricing.sources.snapshot import PRICE_FILES, read_offers

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes the rows of both files, which are then read in place of ours."""
    monkeypatch.setattr(providers, "catalog_path", lambda name: tmp_path / name)

    def put(*rows: str, forms: tuple[str, ...] = ()) -> None:
        (tmp_path / providers.PROVIDER_FILE).write_text(
            "\n".join((",".join(columns_of(Provider)), *rows)) + "\n"
        )
        (tmp_path / providers.FORM_FILE).write_text("\n".join((",".join(columns_of(GpuForm)), *forms)) + "\n")
        load_providers.cache_clear()
        providers.load_forms.cache_clear()

    yield put
    load_providers.cache_clear()
    providers.load_forms.cache_clear()


def line(provider: str = "a", terms: str = "60,1", community: str = "", source: str = "a test") -> str:
    return (
        f"{provider},hunt-{provider},published,region,x-* y,named,{community},,,{terms},{source},2026-11-01"
    )


def test_a_row_is_a_provider(write):
    write(line())
    (provider,) = load_providers().values()
    assert (provider.name, provider.gpuhunt_name, provider.access) == ("a", "hunt-a", PriceAccess.PUBLISHED)
    assert provider.left_out_locations == ("x-*", "y")
    assert (provider.minimum_billed_s, provider.billed_step_s, provider.known_billed_step_s) == (60, 1, 1)


def test_unknown_terms_are_the_longest_known_of_each_kind(write):
    write(line("a", "60,600"), line("b", "3600,1"), line("c", ","))
    unknown = load_providers()["c"]
    assert (unknown.minimum_billed_s, unknown.billed_step_s, unknown.known_billed_step_s) == (3600, 600, None)


def test_places_where_hosts_are_of_others(write):
    write(line("a", community="?? eu-*"), line("b"))
    assert is_community_host("a", "CA")
    assert is_community_host("a", "eu-west")
    assert not is_community_host("a", "us-west")
    assert not is_community_host("b", "CA")
    assert not is_community_host("nobody", "CA")


def test_the_first_form_that_matches_counts(write):
    write(line(), forms=("a,ND*,SXM,a test,2026-11-01", "a,N*,PCIE,a test,2026-11-01"))
    assert [known_form("a", name) for name in ("ND96", "NC24", "X1")] == ["SXM", "PCIE", None]
    assert known_form("b", "ND96") is None


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ((line(terms="much,1"),), "line 2"),
        ((line().replace("published", "guessed"),), "guessed"),
        ((line().replace("2026-11-01", "soon"),), "soon"),
    ],
)
def test_a_broken_row_is_refused_with_its_line(write, rows, fault):
    write(*rows)
    with pytest.raises(CatalogError, match=fault):
        load_providers()


def test_every_region_with_a_price_is_known_and_its_clouds():
    instances, regions = load_instances(), load_regions()
    offers = [offer for name in PRICE_FILES for offer in read_offers(catalog_path(name), instances)]
    assert {(o.provider, o.region) for o in offers} <= {(r.provider, r.name) for r in regions.values()}


def test_aws_asks_and_google_does_not():
    opt_in = {region.name for region in load_regions().values() if region.is_opt_in}
    assert {load_regions()[name].provider for name in opt_in} == {"aws"}
    assert {"af-south-1", "ap-east-1", "eu-south-2", "il-central-1", "mx-central-1"} <= opt_in
    assert not {"us-east-1", "eu-west-3", "ap-northeast-3", "ap-south-1"} & opt_in
