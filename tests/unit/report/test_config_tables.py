"""Settings as a table, and the first file that a user edits."""

from datetime import date
from typing import Any

import pytest
import yaml

from advisor.config.layers import Config, environment_variable
from advisor.config.settings import LIST_SECTIONS, Settings, setting_names
from advisor.core.values import Market
from advisor.report.config_tables import settings_document, template
from advisor.report.printing import Format, text_of
from tests.unit.report.printed import json_of, rows_of

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
