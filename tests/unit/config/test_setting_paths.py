"""Relative paths of settings: from the file that names them, or from where the command is typed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.config.layers import beside, environment_variable, load_config, user_file
from advisor.config.settings import Settings
from advisor.core.errors import ConfigError
from advisor.pricing.sources.custom import custom_source
from advisor.pricing.sources.protocol import OfferQuery
from tests.end_to_end.cli import Shell
from tests.rates import RATE, write_yaml

CLUSTER = {"name": "lab", "gpu": "T4", "num_gpus": 4}


MAIL = {"kind": "smtp", "user": "me", "password": "env:P", "host": "h", "from": "a@b.org", "to": ["c@d.org"]}


def channel(settings: Settings) -> Any:
    return settings.delivery.channels["a"]


def option(settings: Settings, source: str, name: str) -> str:
    value = settings.prices.options[source][name]
    return str(value[0] if isinstance(value, list) else value)


# Each setting with a path, as a settings file writes it, and how to find that path again.
PATHS: list[tuple[str, Any, Any]] = [
    ("profile.python", "{}", lambda s: s.profile.python),
    ("profile.sandbox_read", ["{}"], lambda s: s.profile.sandbox_read[0]),
    ("clusters", [CLUSTER | {"wait_log": "{}"}], lambda s: s.clusters[0].wait_log),
    ("prices.options", {"custom": {"files": ["{}"]}}, lambda s: option(s, "custom", "files")),
    ("prices.options", {"snapshot": {"folder": "{}"}}, lambda s: option(s, "snapshot", "folder")),
    ("prices.options", {"gpuhunt": {"catalog_dir": "{}"}}, lambda s: option(s, "gpuhunt", "catalog_dir")),
    ("spot.history", "{}", lambda s: s.spot.history),
    ("store.url", "sqlite:///{}", lambda s: s.store.url.removeprefix("sqlite:///")),
    ("policy.files", ["{}"], lambda s: s.policy.files[0]),
    ("delivery.channels", {"a": {"kind": "file", "path": "{}.md"}}, lambda s: str(channel(s).path)[:-3]),
    ("delivery.channels", {"a": MAIL | {"ca_file": "{}"}}, lambda s: channel(s).ca_file),
    ("delivery.channels", {"a": MAIL | {"password": "file:{}"}}, lambda s: channel(s).password[5:]),
    ("delivery.channels", {"a": {"kind": "slack", "url": "file:{}"}}, lambda s: channel(s).url[5:]),
    (
        "delivery.channels", {"a": {"kind": "webhook", "url": "https://a.org", "secret": "file:{}"}},
        lambda s: channel(s).secret[5:],
    ),
    ("report.bills", ["{}"], lambda s: s.report.bills[0]),
]  # fmt: skip
each_path = pytest.mark.parametrize(("name", "value", "place"), PATHS, ids=[str(v) for _, v, _ in PATHS])


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def written(value: Any, path: str) -> Any:
    """The value of a setting with a path in it."""
    return json.loads(json.dumps(value).replace("{}", path))


def settings_in(file: Path, name: str, value: Any, *, cwd: Path) -> Settings:
    section, _, key = name.partition(".")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({section: {key: value} if key else value}))
    return load_config(environ={}, cwd=cwd, trust_project=True).settings


@each_path
def test_a_relative_path_counts_from_its_file(name, value, place, tmp_path):
    inner = tmp_path / "project" / "src"
    inner.mkdir(parents=True)
    for file, cwd in ((tmp_path / "project" / ".advisor.yaml", inner), (user_file(), Path("/"))):
        settings = settings_in(file, name, written(value, "a/b.c"), cwd=cwd)
        assert str(place(settings)) == str(file.parent / "a" / "b.c")
        above = settings_in(file, name, written(value, "../b.c"), cwd=cwd)
        assert Path(os.path.normpath(place(above))) == file.parent.parent / "b.c"


@each_path
def test_an_absolute_path_stays(name, value, place, tmp_path):
    settings = settings_in(tmp_path / ".advisor.yaml", name, written(value, "/etc/a"), cwd=tmp_path)
    assert str(place(settings)) == "/etc/a"


@each_path
def test_home_is_nowhere_beside_the_file(name, value, place, tmp_path, home):
    settings = settings_in(tmp_path / ".advisor.yaml", name, written(value, "~/a"), cwd=tmp_path)
    assert str(place(settings)) in ("~/a", str(home / "a"))


@each_path
def test_a_variable_and_a_flag_count_from_the_working_directory(name, value, place, tmp_path):
    text = json.dumps(written(value, "a.b"))
    assert str(place(load_config(environ={environment_variable(name): text}, cwd=tmp_path).settings)) == "a.b"
    assert str(place(load_config({name: written(value, "a.b")}, environ={}, cwd=tmp_path).settings)) == "a.b"


@pytest.mark.parametrize("name", ["profile.python", "policy.files"])
def test_paths_of_settings_expand_home(name, home, tmp_path):
    flags = {name: "~/x" if name == "profile.python" else ["~/x"]}
    settings = load_config(flags, environ={}, cwd=tmp_path).settings
    assert home / "x" in (settings.profile.python, *settings.policy.files)


def test_the_home_of_nobody_stays_as_it_is_written(tmp_path):
    settings = load_config({"policy.files": ["~nobody-of-this-name/x"]}, environ={}, cwd=tmp_path).settings
    assert settings.policy.files == (Path("~nobody-of-this-name/x"),)


def test_no_setting_with_a_path_is_forgotten():
    """Every setting of type Path counts from its file: who adds one sees it here."""
    schema = json.dumps(Settings.model_json_schema())
    assert schema.count('"format": "path"') == 8, "add it to layers.py and to PATHS above"


@pytest.mark.parametrize("folder", ["plain", "[ab]", "a*", "wh?t"])
def test_wildcards_of_a_folders_name_are_none(folder, tmp_path):
    project = tmp_path / folder
    project.mkdir()
    write_yaml(project / "one.yaml", RATE)
    (tmp_path / "ab").mkdir()
    write_yaml(tmp_path / "ab" / "other.yaml", RATE)
    value = {"custom": {"files": ["*.yaml"]}}
    options = settings_in(project / ".advisor.yaml", "prices.options", value, cwd=project).prices.options
    parts = list(custom_source(options["custom"]).offers(OfferQuery()))
    # The settings file itself begins with a dot, which * does not mean.
    assert [part.scope for part in parts] == [str(project / "one.yaml")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy.files", [1]), ("policy.files", 5), ("clusters", "lab"), ("clusters", [5]),
        ("prices.options", []), ("store.url", 5), ("profile.python", [1]),
    ],
)  # fmt: skip
def test_what_is_malformed_is_still_told(name, value, tmp_path):
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        settings_in(tmp_path / ".advisor.yaml", name, value, cwd=tmp_path)


@pytest.mark.parametrize("url", ["postgresql://me@host/a", "sqlite:///", "advisor.db"])
def test_a_url_without_a_path_stays(url):
    assert beside(Path("/project"), {"store.url": url}) == {"store.url": url}


YAML = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["custom", "files", "wait_log", "folder", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([name for name, *_ in PATHS] + ["cloud.regions"]), YAML, max_size=3))
def test_whatever_a_file_holds_keeps_its_form_and_absolute_paths_stay(values):
    once = beside(Path("/project"), values)
    assert list(once) == list(values)
    assert once.get("cloud.regions") == values.get("cloud.regions")
    assert beside(Path("/other"), once) == once


def test_from_another_folder_the_command_finds_what_the_project_names(tmp_path):
    (tmp_path / "src").mkdir()
    write_yaml(tmp_path / "rates.yaml", RATE)
    (tmp_path / ".advisor.yaml").write_text("prices: {options: {custom: {files: [rates.yaml]}}}")
    inner = Shell(folder=tmp_path / "src")
    answer = inner.run("--trust-project", "prices", "--provider", "lab", "--json")
    assert [offer["instance_type"] for offer in answer.document["offers"]] == ["dgx-2"], answer.err
