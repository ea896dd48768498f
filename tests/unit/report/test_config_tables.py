"""Settings as a table, and the first file that a user edits."""

from datetime import date
from typing import Any

import pytest
import yaml

from advisor.config.layers import Config, environment_variable
from advisor.config.settings import LIST_SECTIONS, Settings, setting_names
from advisor.core.gpus import load_gpus
from advisor.core.units import GIB
from advisor.core.values import Market
from advisor.report.catalog_tables import COLUMNS, gpus_document
from advisor.report.config_tables import checks_document, settings_document, template
from advisor.report.printing import Format, text_of
from advisor.service.health import Check
from tests.builders import make_gpu
from tests.unit.report.printed import json_of, on_screen, rows_of

LAB = {"name": "lab", "gpu": "T4", "num_gpus": 8}


def config_of(origins: dict[str, str] | None = None, **values: Any) -> Config:
    return Config(settings=Settings.model_validate(values), origins=origins or {}, warnings=("mind this",))


def rows(config: Config) -> dict[str, tuple[str, str]]:
    return {row["Setting"]: (row["Value"], row["Set by"]) for row in rows_of(settings_document(config))}


def test_every_setting_has_a_row_with_its_value_in_words():
    lines = rows(config_of())
    assert list(lines) == setting_names()
    assert {origin for _, origin in lines.values()} == {"default"}
    by_name = {name: value for name, (value, _) in lines.items()}
    assert {by_name[name] for name in ("clusters", "contracts", "prices.options")} == {"none"}
    assert (by_name["local.gpu"], by_name["cloud.markets"]) == ("-", "on-demand, spot")
    assert (by_name["cloud.max_gpus"], by_name["cloud.startup"]) == ("8", "5m")
    assert (by_name["cloud.providers"], by_name["cloud.regions"]) == ("*", "*")
    contract = {"provider": "aws", "instance_types": ["p5*", "p4d*"], "discount": 0.1}
    options = {"custom": {"files": ["a.csv", "b.yaml"]}, "gpuhunt": {"catalog_dir": None}}
    lines = rows(config_of(prices={"options": options}, contracts=[contract]))
    assert lines["prices.options"][0] == "custom: files: a.csv, b.yaml; gpuhunt: catalog_dir: -"
    assert lines["contracts"][0] == "aws p5* p4d*"


@pytest.mark.parametrize("output", [Format.TABLE, Format.CSV, Format.JSON])
@pytest.mark.parametrize(
    "values",
    [
        {"store": {"url": "postgresql://me:hunter2@db.example/advisor"}},
        {"store": {"url": "postgresql://:hunter2@/advisor"}},
        {"store": {"url": "postgresql://me:not/escaped@hunter2@db/advisor"}},
        {"store": {"url": "postgresql://db/advisor?user=me&password=hunter2&sslmode=require"}},
        {"prices": {"options": {"acme": {"api_key": "hunter2", "url": "https://me:hunter2@acme.example"}}}},
        {"prices": {"options": {"acme": {"regions": [{"name": "a", "Token": "hunter2"}]}}}},
    ],
)
def test_secrets_are_never_shown(values, output):
    printed = text_of(settings_document(config_of(**values)), output)
    assert "hunter2" not in printed
    assert "***" in printed.replace("\n", "")


@pytest.mark.parametrize(
    "url", ["postgresql://db.example:5432/advisor", "postgresql://me@db:5432/a", "sqlite:///a"]
)
def test_a_url_without_a_password_is_shown_as_it_is(url):
    assert rows(config_of(store={"url": url}))["store.url"][0] == url


def test_a_setting_names_the_layer_it_came_from():
    config = config_of(
        {"cloud.max_gpus": "flag", "clusters": "a file"}, cloud={"max_gpus": 2}, clusters=[LAB]
    )
    lines = rows(config)
    assert lines["cloud.max_gpus"] == ("2", "flag")
    assert lines["clusters"] == ("lab (8 x T4)", "a file")
    assert lines["cloud.startup"][1] == "default"


def test_json_has_value_origin_and_warnings():
    document = json_of(settings_document(config_of({"local.num_gpus": "flag"}, local={"num_gpus": 3})))
    assert document["settings"]["local.num_gpus"] == {"value": 3, "origin": "flag"}
    assert document["settings"]["local.gpu"] == {"value": None, "origin": "default"}
    assert document["warnings"] == ["mind this"]


def uncommented() -> Any:
    """The template with its first comment sign taken away, prose left out."""
    lines = [line.removeprefix("# ") for line in template().splitlines()[2:]]
    return yaml.safe_load("\n".join(line for line in lines if line.startswith(" ") or line.endswith(":")))


def test_the_template_changes_nothing():
    assert yaml.safe_load(template()) is None


def test_every_default_of_the_template_is_the_default():
    values = uncommented()
    entries = {section: values.pop(section) for section in LIST_SECTIONS}
    assert Settings.model_validate(values) == Settings()
    names = [f"{section}.{name}" for section, items in values.items() for name in items]
    assert sorted([*names, *entries]) == sorted(setting_names())
    for section, (entry,) in entries.items():
        assert set(entry) == set(LIST_SECTIONS[section].model_fields)


def test_the_example_cluster_and_contract_are_such():
    (lab,) = Settings.model_validate({"clusters": uncommented()["clusters"]}).clusters
    assert (lab.num_nodes, lab.network) == (4, "infiniband 8x200 Gbit")
    assert (lab.num_gpus, lab.usd_per_gpu_h, lab.wait_p50, lab.wait_p90) == (8, 0.5, 3 * 3600, 8 * 3600)
    (rule,) = Settings.model_validate({"contracts": uncommented()["contracts"]}).contracts
    assert (rule.provider, rule.instance_types, rule.regions) == ("aws", ("p5*",), ("us-*",))
    assert (rule.discount, rule.commitment_discount, rule.coverage) == (0.05, 0.27, 0.8)
    assert (rule.markets, rule.until) == ((Market.ON_DEMAND,), date(2027, 6, 30))


@pytest.mark.parametrize(
    ("name", "variable"), [("cloud.max_gpus", "ADVISOR_CLOUD__MAX_GPUS"), ("clusters", "ADVISOR_CLUSTERS")]
)
def test_variables_of_the_environment(name, variable):
    assert environment_variable(name) == variable


CHECKS = [
    Check(name="python", state="ok", detail="3.12"),
    Check(name="native", state="note", detail="slow"),
    Check(name="catalog", state="broken", detail="missing [bold]file[/bold]"),
]
FACTS = [("python", "ok", "3.12"), ("native", "note", "slow"), ("catalog", "broken", CHECKS[2].detail)]


def test_rows():
    assert [(row["Check"], row["State"], row["Detail"]) for row in rows_of(checks_document(CHECKS))] == FACTS


def test_json():
    checks = json_of(checks_document(CHECKS))["checks"]
    assert [(check["name"], check["state"], check["detail"]) for check in checks] == FACTS


def test_the_table_shows_every_state_and_takes_no_markup():
    out = on_screen(checks_document(CHECKS), 120)
    assert all(text in out for fact in FACTS for text in fact)


def test_no_findings_are_an_empty_list():
    assert json_of(checks_document([]))["checks"] == []


BASE = make_gpu(tensor_flops_per_s={"tf32": 50e12, "fp16": 100e12, "bf16": 200e12}, nvlink_bytes_per_s=300e9)
PLAIN = make_gpu("PLAIN", tensor_flops_per_s={}, num_sms=40, memory_bytes=8 * GIB, memory_bytes_per_s=2.5e12)


def test_units_of_every_column():
    (row,) = rows_of(gpus_document([BASE]))
    figures = ["80", "16", "1,000", "10", "50", "100", "200", "300"]
    assert list(row.values()) == ["TEST-1", "Volta", "7.0", *figures]


def test_what_a_gpu_lacks_is_empty():
    (row,) = rows_of(gpus_document([PLAIN]))
    assert [row[c] for c in ("FP32", "TF32", "FP16", "BF16", "NVLink GB/s")] == ["10", "", "", "", ""]


def test_multiples_of_another_gpu():
    plain, itself = rows_of(gpus_document([PLAIN, BASE], base=BASE))
    multiples = ["0.50 x", "0.50 x", "2.50 x", "1.00 x", "", "", "", ""]
    assert list(plain.values()) == ["PLAIN", "Volta", "7.0", *multiples]
    assert {itself[column] for column in (column.name for column in COLUMNS[3:])} == {"1.00 x"}


def test_a_multiple_of_nothing_is_empty():
    (row,) = rows_of(gpus_document([BASE], base=PLAIN))
    assert [row[c] for c in ("SMs", "TF32", "FP16", "BF16", "NVLink GB/s")] == ["2.00 x", "", "", "", ""]


def test_json_carries_the_facts_whatever_the_base():
    plain, amd = json_of(gpus_document([PLAIN, make_gpu("AMD", occupancy=None)], base=BASE))["gpus"]
    assert (plain["name"], plain["num_sms"], plain["memory_bytes"]) == ("PLAIN", 40, 8 * GIB)
    assert plain["memory_bytes_per_s"] == 2.5e12
    assert plain["vector_flops_per_s"]["fp32"] == 10e12
    assert (plain["occupancy"]["max_threads"], amd["occupancy"]) == (2048, None)
    assert plain["source_date"] == "2026-01-01"


def test_the_whole_catalog_prints():
    specs = list(load_gpus().values())
    assert [gpu["name"] for gpu in json_of(gpus_document(specs))["gpus"]] == [spec.name for spec in specs]
    assert len(text_of(gpus_document(specs), Format.MARKDOWN).splitlines()) == len(specs) + 2
    names = [line.split()[0] for line in text_of(gpus_document(specs), Format.TABLE).splitlines()[4:-1]]
    assert [name for name in names if name in load_gpus()] == [spec.name for spec in specs]
