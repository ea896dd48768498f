"""A user's own rates."""

import dataclasses
import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import yaml

from advisor.config.settings import ContractSettings, Settings
from advisor.core.errors import ConfigError
from advisor.core.values import Market, Offer
from advisor.pricing.contracts import contracted
from advisor.pricing.sources.custom import COLUMNS, MOST_FAULTS, OwnRate, custom_source
from advisor.pricing.sources.protocol import Credentials, Freshness, OfferQuery
from tests.rates import FULL, RATE, WRITERS, faults_of, offers_of, without, write_csv, write_yaml

# --- Which files ------------------------------------------------------------------------------------


def test_files_are_found_by_wildcard_home_and_working_directory(tmp_path, monkeypatch):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("b.yaml", "a.yaml", "deep/er/c.yaml"):
        write_yaml(tmp_path / name, RATE | {"instance_type": name})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "deep")
    assert [o.instance_type for o in offers_of("~/*.yaml")] == ["a.yaml", "b.yaml"]
    assert [o.instance_type for o in offers_of("er/c.yaml", "~/a.yaml")] == ["deep/er/c.yaml", "a.yaml"]
    assert len(offers_of("~/**/*.yaml", "~/a.yaml")) == 3


@pytest.mark.parametrize("pattern", ["absent.yaml", "*.nothing", "~nobody-of-this-name/rates.yaml", "."])
def test_a_pattern_that_names_no_file_is_an_error(tmp_path, monkeypatch, pattern):
    monkeypatch.chdir(tmp_path)
    assert f"no file of own rates is called {pattern!r} (from {str(tmp_path)!r})" in faults_of(pattern)


@pytest.mark.parametrize("files", ["rates.yaml", 5, [5], {"a": 1}])
def test_the_option_is_a_list_of_texts(files):
    with pytest.raises(ConfigError, match=r"custom\.files must be a list such as \[rates\.yaml\]"):
        custom_source({"files": files})


def test_without_files_there_are_no_rates():
    for options in ({}, {"files": []}, {"files": None}):
        source = custom_source(options)
        assert list(source.offers(OfferQuery())) == []
        assert source.freshness() == ()


# --- The source -------------------------------------------------------------------------------------


def test_each_file_is_a_part_and_the_query_counts(tmp_path):
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


def test_columns_are_listed_once():
    assert len(set(COLUMNS)) == len(COLUMNS)
    assert set(FULL) < set(COLUMNS)


# --- docs/plugins.md --------------------------------------------------------------------------------


def blocks_of_the_page(language: str) -> list[str]:
    page = Path(__file__).resolve().parents[4] / "docs" / "plugins.md"
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def test_the_rates_of_the_page_are_read_and_agree_in_both_forms(tmp_path):
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


def test_the_page_names_every_column():
    page = (Path(__file__).resolve().parents[4] / "docs" / "plugins.md").read_text()
    assert [name for name in COLUMNS if f"`{name}`" not in page] == []


# --- What a row becomes -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "place"), [("rates.yaml", "entry 1"), ("rates.csv", "line 2")])
def test_a_row_becomes_an_offer_in_either_form(tmp_path, name, place):
    (offer,) = offers_of(WRITERS[name](tmp_path / name, FULL))
    assert offer == Offer(
        provider="lab",
        instance_type="dgx-2",
        region="basement",
        zone="rack-1",
        gpu="A100-SXM-80GB",
        num_gpus=8,
        market=Market.RESERVED,
        list_usd_per_h=7.2,
        contracted_usd_per_h=7.2,
        includes=("power", "staff"),
        minimum_billed_s=3600.0,
        billed_step_s=60.0,
        retrieved_at=datetime(2026, 11, 1, tzinfo=UTC),
        source=f"own rates, {name}, {place} (sheet of May)",
    )


def test_contracts_do_not_lower_a_rate_again(tmp_path):
    offers = offers_of(write_yaml(tmp_path / "r.yaml", RATE))
    rule = ContractSettings(provider="lab", discount=0.5)
    assert contracted(offers, [rule]) == tuple(offers)


@pytest.mark.parametrize("name", WRITERS)
def test_what_may_be_left_out(tmp_path, name):
    (offer,) = offers_of(WRITERS[name](tmp_path / name, RATE))
    assert (offer.region, offer.zone, offer.market) == ("any", None, Market.ON_DEMAND)
    assert (offer.minimum_billed_s, offer.billed_step_s, offer.includes) == (60.0, 1.0, ())
    assert "(" not in offer.source


def test_the_default_of_billing_is_that_of_every_offer(tmp_path):
    names = {"minimum_billed_s", "billed_step_s"}
    offered = {name: field.default for name, field in Offer.__dataclass_fields__.items() if name in names}
    assert offered == {name: OwnRate.model_fields[name].default for name in names}


@pytest.mark.parametrize("name", WRITERS)
def test_a_rate_of_one_gpu_is_multiplied(tmp_path, name):
    row = without(RATE, "usd_per_h") | {"usd_per_gpu_h": 0.9}
    (offer,) = offers_of(WRITERS[name](tmp_path / name, row))
    assert offer.usd_per_h == pytest.approx(7.2)


@pytest.mark.parametrize(
    ("change", "name", "expected"),
    [
        ({"gpu": "A100-SXM-80GB"}, "gpu", "A100-SXM-80GB"),
        ({"gpu": "a100 sxm4 80gb"}, "gpu", "A100-SXM-80GB"),
        ({"gpu": "NVIDIA A100-SXM4-80GB"}, "gpu", "A100-SXM-80GB"),
        ({"provider": "AWS"}, "provider", "aws"),
        ({"instance_type": "  p5  "}, "instance_type", "p5"),
        ({"includes": ["power"]}, "includes", ("power",)),
        ({"minimum_billed_s": 0}, "minimum_billed_s", 0),
        ({"usd_per_h": 3}, "usd_per_h", 3.0),
        ({"market": "spot"}, "market", Market.SPOT),
        ({"as_of": date(2026, 11, 2)}, "retrieved_at", datetime(2026, 11, 2, tzinfo=UTC)),
    ],
)
def test_values_that_are_taken(tmp_path, change, name, expected):
    (offer,) = offers_of(write_yaml(tmp_path / "r.yaml", RATE | change))
    assert getattr(offer, name) == expected


def test_the_date_may_be_called_as_offers_call_it(tmp_path):
    row = without(RATE, "as_of") | {"retrieved_at": "2026-10-01"}
    for name, write in WRITERS.items():
        assert offers_of(write(tmp_path / name, row))[0].retrieved_at == datetime(2026, 10, 1, tzinfo=UTC)


# --- What is wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpu": "A100"}, "'gpu': 'A100' means several GPUs: choose one of A100-PCIE-40GB"),
        ({"gpu": "A1000"}, "'gpu': no GPU is called 'A1000'. Did you mean 'A100'"),
        ({"num_gpus": 0}, "'num_gpus': it must be greater than or equal to 1"),
        ({"num_gpus": 1.5}, "'num_gpus': it must be a valid integer"),
        ({"num_gpus": 4097}, "'num_gpus': it must be less than or equal to 4096"),
        ({"usd_per_h": 0}, "'usd_per_h': it must be greater than 0; got"),
        ({"usd_per_h": -1}, "'usd_per_h': it must be greater than 0; got"),
        ({"usd_per_h": float("nan")}, "'usd_per_h': it must be"),
        ({"usd_per_h": float("inf")}, "'usd_per_h': it must be"),
        ({"usd_per_h": "three"}, "'usd_per_h': it must be a valid number"),
        ({"usd_per_h": "3,50"}, "'usd_per_h': it must be a valid number"),
        ({"usd_per_h": "$3.50"}, "'usd_per_h': it must be a valid number"),
        ({"usd_per_gpu_h": 0.9}, "give either usd_per_h, of the whole machine, or usd_per_gpu_h."),
        ({"market": "spt"}, "'market': it must be 'on-demand', 'spot',"),
        ({"currency": "EUR"}, "'currency': only USD is understood: convert the price"),
        ({"as_of": "yesterday"}, "'as_of': a day is written 2026-11-21; got 'yesterday'."),
        ({"as_of": "2026-02-30"}, "'as_of': a day is written 2026-11-21; got '2026-02-30'."),
        ({"minimum_billed_s": -1}, "'minimum_billed_s': it must be greater than or equal to 0"),
        ({"billed_step_s": 0}, "'billed_step_s': it must be greater than 0"),
        ({"provider": " "}, "'provider'"),
        ({"usd_per_hour": 3}, "there is no column 'usd_per_hour'. Did you mean 'usd_per_h'"),
        ({"colour": "red"}, "there is no column 'colour'. Columns are provider, instance_type, gpu,"),
    ],
)
def test_a_wrong_row_names_file_place_and_value(tmp_path, name, change, message):
    path = WRITERS[name](tmp_path / name, FULL | change)
    faults = faults_of(path)
    assert faults.startswith(str(path))
    if not (name == "rates.csv" and change == {"provider": " "}):  # an empty cell is a missing one
        assert message in faults


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("missing", ["provider", "instance_type", "gpu", "num_gpus", "as_of"])
def test_nothing_that_matters_has_a_default(tmp_path, name, missing):
    assert f"'{missing}' is missing." in faults_of(WRITERS[name](tmp_path / name, without(RATE, missing)))
    if name == "rates.csv":
        assert f"'{missing}' is missing." in faults_of(write_csv(tmp_path / name, RATE | {missing: ""}))


@pytest.mark.parametrize("name", WRITERS)
def test_a_rate_without_a_price_is_refused(tmp_path, name):
    assert "give either usd_per_h" in faults_of(WRITERS[name](tmp_path / name, without(RATE, "usd_per_h")))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        *(
            (name, value, f"(a number is written without quotes); got '{value}'.")
            for name in ("usd_per_h", "num_gpus", "minimum_billed_s")
            for value in ("7.2", "8")
        ),
        *((name, True, "") for name in ("num_gpus", "usd_per_h")),
        ("instance_type", 5, ""),
        ("as_of", datetime(2026, 11, 1, 3, tzinfo=UTC), "'as_of': it must be a valid date"),
    ],
)
def test_what_yaml_reads_as_something_else_is_refused(tmp_path, name, value, words):
    faults = faults_of(write_yaml(tmp_path / "r.yaml", RATE | {name: value}))
    assert f"'{name}': " in faults
    assert words in faults


def test_all_faults_of_all_files_are_told_at_once(tmp_path):
    one = write_yaml(tmp_path / "a.yaml", RATE, RATE | {"gpu": "A1000", "num_gpus": 0}, 5)
    two = write_csv(tmp_path / "b.csv", RATE | {"usd_per_h": "x"})
    other = tmp_path / "c.yaml"
    other.write_text("a: [")
    lines = faults_of(one, two, other).splitlines()
    assert [line.split(": ")[0] for line in lines[:4]] == [
        f"{one}, entry 2", f"{one}, entry 2", f"{one}, entry 3", f"{two}, line 2",
    ]  # fmt: skip
    assert lines[4].startswith(f"{other}: ")
    assert lines[-1] == "docs/plugins.md shows how rates are written."


def test_many_faults_are_counted(tmp_path):
    rows = [RATE | {"instance_type": str(i), "num_gpus": 0} for i in range(MOST_FAULTS + 5)]
    lines = faults_of(write_csv(tmp_path / "r.csv", *rows)).splitlines()
    assert lines[MOST_FAULTS] == "... and 5 more."
    assert len(lines) == MOST_FAULTS + 2


def test_the_same_machine_twice_is_refused_across_files(tmp_path):
    one = write_yaml(tmp_path / "a.yaml", RATE, RATE | {"market": "spot"})
    two = write_csv(tmp_path / "b.csv", RATE | {"usd_per_h": 9})
    assert f"{two}, line 2: the same machine, place and market as {one}, entry 1." in faults_of(one, two)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.csv", "", "the first line must name the columns"),
        ("r.csv", "provider;gpu\nlab;L4\n", "there is no column 'provider;gpu'"),
        ("r.csv", "provider,gpu,gpu\n", "the column 'gpu' stands twice"),
        ("r.csv", "provider,gpu\nlab\n", "line 2: 1 fields instead of 2"),
        ("r.csv", "provider,gpu\n\nlab,L4,x\n", "line 3: 3 fields instead of 2"),
        ("r.csv", 'provider,gpu\nlab,"L4\n', "line 2: unexpected end of data"),
        ("r.yaml", "rates: []", "the file must be a list of rates"),
        ("r.yaml", "", "the file must be a list of rates"),
        ("r.yaml", "- 5", "entry 1: a rate has columns such as 'gpu: L4'; got 5"),
        ("r.yaml", "- {gpu: L4, gpu: T4}", "the key 'gpu' stands twice"),
        ("r.yaml", "- &a {gpu: L4}\n- *a", "aliases are not allowed"),
        ("r.yaml", "- {5: 6}", "entry 1: "),
        ("r.yml", "- {as_of: 2026-13-01}", "month must be in 1..12"),
        ("r.txt", "gpu", "own rates are read from .yaml, .yml and .csv files"),
    ],
)
def test_files_of_another_form_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    faults = faults_of(tmp_path / name)
    assert message in faults
    assert str(tmp_path / name) in faults


def test_a_table_as_spreadsheets_write_it(tmp_path):
    """A byte order mark, Windows line ends, spaces after commas, blank lines and empty cells."""
    header = "\ufeffprovider, instance_type, gpu, num_gpus, usd_per_h, zone, as_of"
    text = "\r\n".join([header, "", " lab, a, L4, 1, 2.5, , 2026-11-01", ""])
    (tmp_path / "r.CSV").write_text(text, encoding="utf-8", newline="")
    (offer,) = offers_of(tmp_path / "r.CSV")
    assert (offer.gpu, offer.usd_per_h, offer.zone) == ("L4", 2.5, None)


# --- Machines of the catalog --------------------------------------------------------------------------

P4DE = RATE | {"provider": "aws", "instance_type": "p4de.24xlarge"}


@pytest.mark.parametrize("change", [{"num_gpus": 4}, {"gpu": "A100-SXM-40GB"}, {"gpu": "H100-SXM-80GB"}])
@pytest.mark.parametrize(("name", "place"), [("rates.yaml", "entry 2"), ("rates.csv", "line 3")])
def test_a_machine_of_the_catalog_has_the_gpus_that_the_cloud_sells(tmp_path, name, place, change):
    path = WRITERS[name](tmp_path / name, P4DE, P4DE | {"region": "us-east-1"} | change)
    row = P4DE | change
    faults = faults_of(path)
    assert f"{path}, {place}: aws p4de.24xlarge has 8 x A100-SXM-80GB, not" in faults
    assert "entry 1" not in faults
    assert f"not {row['num_gpus']} x" in faults


@pytest.mark.parametrize(
    "row",
    [
        P4DE,
        P4DE | {"provider": "AWS"},
        P4DE | {"provider": "lab", "num_gpus": 4},
        P4DE | {"instance_type": "p99.xlarge", "num_gpus": 4},
        # A GCP machine of any size may have GPUs put in, so its bare name says nothing of them.
        P4DE | {"provider": "gcp", "instance_type": "n1-standard-8", "gpu": "T4", "num_gpus": 2},
    ],
)
def test_machines_that_agree_or_are_not_of_the_catalog_pass(tmp_path, row):
    assert len(offers_of(write_yaml(tmp_path / "r.yaml", row))) == 1
