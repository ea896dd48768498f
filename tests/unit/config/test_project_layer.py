"""What a project may do: every setting says so, and the rules hold for settings and lists."""

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.config.layers import Config, load_config, user_file
from advisor.config.project_layer import Why, value_of, why_refused, with_added
from advisor.config.setting_kinds import ProjectMay
from advisor.config.settings import Settings, project_may, setting_field, setting_names
from advisor.core.errors import ConfigError
from advisor.report.config_tables import refused_in_words
from tests.cpu_time import at_most
from tests.end_to_end.cli import Shell

CLUSTER = {"name": "lab", "gpu": "T4", "num_gpus": 4}
QUOTA = {"provider": "aws", "vcpus": 8}
RATE = {"provider": "aws", "kind": "egress-internet", "usd": 0}
FOLDER = Path("/project")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def settings_of(name: str, value: Any) -> Settings:
    section, _, key = name.partition(".")
    return Settings.model_validate({section: {key: value} if key else value})


def verdict(name: str, old: Any, new: Any, folder: Path = FOLDER) -> Why | None:
    return why_refused(name, settings_of(name, old), settings_of(name, new), folder)


def layered(home: Path, user: str, project: str) -> Config:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(user)
    (home / "repository").mkdir(exist_ok=True)
    (home / "repository" / ".advisor.yaml").write_text(project)
    return load_config(environ={}, cwd=home / "repository")


def test_every_setting_declares_what_a_project_may():
    assert {type(project_may(name)) for name in setting_names()} == {ProjectMay}


def test_what_does_not_declare_it_is_an_error(monkeypatch):
    monkeypatch.setattr(setting_field("store.url"), "json_schema_extra", None)
    with pytest.raises(LookupError, match=r"store\.url"):
        project_may("store.url")


def test_what_reaches_elsewhere_is_not_for_projects():
    nothing = {name for name in setting_names() if project_may(name) is ProjectMay.NOTHING}
    assert {name for name in setting_names() if name.startswith(("store.", "local.", "delivery."))} <= nothing
    assert {"run.metadata_url", "profile.python", "prices.sources", "prices.options", "contracts"} <= nothing


@pytest.mark.parametrize(
    ("name", "old", "new", "is_allowed"),
    [
        ("profile.sandbox", False, True, True),
        ("profile.sandbox", True, False, False),
        ("profile.env", [], ["DB_PASS"], False),
        ("profile.env", ["A"], [], False),
        ("profile.timeout", "5m", "1m", True),
        ("profile.timeout", "5m", "301s", False),
        ("profile.timeout", "5m", "300s", True),
        ("profile.backend", "fake", "cpu", True),
        ("cloud.max_gpus", 8, 4, True),
        ("cloud.max_gpus", 8, 9, False),
        ("prices.max_age", None, "900d", True),
        ("prices.max_age", "30d", "10d", True),
        ("prices.max_age", "30d", "31d", False),
        ("prices.max_age", "30d", None, False),
        ("prices.offline", False, True, True),
        ("prices.offline", True, False, False),
        ("cloud.markets", ["on-demand"], ["spot"], False),
        ("cloud.markets", ["on-demand", "spot"], ["spot"], True),
        ("cloud.providers", ["*"], ["aws"], True),
        ("cloud.providers", ["aws"], ["*"], False),
        ("cloud.providers", ["aws"], ["AWS"], True),
        ("cloud.providers", ["aws"], [], True),
        ("cloud.regions", ["eu-*"], ["eu-west-*", "eu-north-1"], True),
        ("cloud.regions", ["eu-*"], ["eu-west-1", "us-east-1"], False),
        ("cloud.regions", ["us-?"], ["us-*"], False),
        ("cloud.regions", ["*-a*"], ["[x-a]b"], False),
        ("store.url", None, "sqlite:///x", False),
        ("store.url", "sqlite:///x", "sqlite:///x", True),
        ("contracts", [], [{"provider": "aws", "discount": 0.99}], False),
        ("local.usd_per_gpu_h", None, 0, False),
        ("quotas", [QUOTA], [QUOTA | {"vcpus": 0}], True),
        ("quotas", [QUOTA], [], False),
        ("rates", [], [RATE], False),
        ("cloud.opt_in_regions", (), ("me-south-1",), False),
        ("cloud.data", None, "us-east-1", True),
        ("profile.scaling", None, "strong", True),
        ("clusters", [], [CLUSTER], True),
        ("clusters", [CLUSTER], [CLUSTER | {"name": "new"}], True),
        ("policy.files", [], [], True),
        ("policy.files", ["/etc/org.yaml"], [], False),
    ],
)
def test_rules(name, old, new, is_allowed):
    assert verdict(name, old, new) is (None if is_allowed else Why.NOT_ALLOWED)


def test_an_entry_of_the_users_name_stays_as_it_is():
    for changed in (CLUSTER | {"usd_per_gpu_h": 0}, CLUSTER | {"gpu": "L4"}):
        assert verdict("clusters", [CLUSTER], [changed]) is Why.CHANGES_AN_ENTRY


GLOBS = st.text(alphabet="ab*?[]!-", min_size=1, max_size=5)
NAMES = st.text(alphabet="ab-", max_size=4)


@given(wide=GLOBS, narrow=GLOBS, name=NAMES)
def test_what_passes_as_narrower_means_no_name_more(wide, narrow, name):
    if verdict("cloud.regions", [wide], [narrow]) is None and fnmatchcase(name, narrow):
        assert fnmatchcase(name, wide)


@pytest.mark.parametrize("key", ["policy.files", "clusters"])
def test_files_that_a_project_names_lie_in_its_folder(key, home):
    inside = home / "repository"
    inside.mkdir()
    (inside / "plain").write_text("")
    (inside / "link").symlink_to("/etc/hostname")
    (inside / "loop").symlink_to("loop")
    (inside / "folder").mkdir()
    os.mkfifo(inside / "pipe")

    def of(path: str) -> Why | None:
        value = [path] if key == "policy.files" else [CLUSTER | {"wait_log": path}]
        return verdict(key, [], value, inside)

    for path in ("plain", "folder/missing", "folder/../plain", "loop/x"):
        assert of(str(inside / path)) is None, path
    elsewhere = ("link", "pipe", "../x", "folder", "folder/../../x", "a\0b")
    for path in (*(str(inside / name) for name in elsewhere), "/etc/hostname", "/dev/stdin", "~/x"):
        assert of(path) is Why.NAMES_A_FILE_ELSEWHERE, path


def test_lists_are_put_behind_the_users_and_both_files_are_named(home):
    config = layered(
        home,
        "quotas: [{provider: aws, vcpus: 8}]\n"
        "clusters: [{name: a, gpu: T4, num_gpus: 1, wait_p50: 3h, wait_p90: 3h}]\n",
        "quotas: [{provider: aws, vcpus: 8}, {provider: gcp, vcpus: 1}]\n"
        "clusters: [{name: a, gpu: T4, num_gpus: 1, wait_p50: 180m, wait_p90: 180m},"
        " {name: b, gpu: T4, num_gpus: 1}]\n",
    )
    assert [quota.provider for quota in config.settings.quotas] == ["aws", "gcp"]
    assert [cluster.name for cluster in config.settings.clusters] == ["a", "b"]
    origin = f"{user_file()} and {home}/repository/.advisor.yaml"
    assert (config.origins["quotas"], config.refused) == (origin, ())


def test_refused_lines_are_values_with_their_place(home):
    config = layered(
        home, "", "# a\nprices:\n  options:\n    acme: {api_key: hunter2}\nstore.url: sqlite:///x\n"
    )
    assert [(line.setting, line.line, line.why) for line in config.refused] == [
        ("prices.options", 3, Why.NOT_ALLOWED),
        ("store.url", 5, Why.NOT_ALLOWED),
    ]
    assert config.refused[1].value == "sqlite:///x"
    assert config.settings == Settings()
    assert config.origins == {}
    assert "hunter2" not in refused_in_words(config.refused[0])


def test_flags_and_variables_are_the_users_own(home):
    layered(home, "cloud: {max_gpus: 2}\n", "cloud: {max_gpus: 1}\n")
    environ = {"ADVISOR_CLOUD__MAX_GPUS": "16"}
    assert load_config(environ=environ, cwd=home / "repository").settings.cloud.max_gpus == 16
    flags = {"cloud.max_gpus": 32}
    assert load_config(flags, environ={}, cwd=home / "repository").settings.cloud.max_gpus == 32


def test_a_project_in_the_home_folder_is_one(home):
    (home / ".advisor.yaml").write_text("store: {url: sqlite:///x}\n")
    config = load_config(environ={}, cwd=home)
    assert [line.setting for line in config.refused] == ["store.url"]


SCALARS = st.none() | st.booleans() | st.integers(0, 20) | st.sampled_from(["1m", "9h", "aws", "*", "cpu"])
VALUES = SCALARS | st.lists(SCALARS, max_size=2)


@given(name=st.sampled_from([name for name in setting_names() if "." in name]), old=VALUES, new=VALUES)
def test_whatever_both_files_say_the_rule_decides(name, old, new):
    try:
        before, after = settings_of(name, old), settings_of(name, new)
    except ValueError:
        return
    why = why_refused(name, before, after, FOLDER)
    if value_of(before, name) == value_of(after, name):
        assert why is None
    elif project_may(name) is ProjectMay.NOTHING:
        assert why is Why.NOT_ALLOWED


def test_long_lists_are_compared_without_their_square():
    before = [Path(f"/policies/{i}.yaml") for i in range(20_000)]
    after = [*before, Path("/project/own.yaml")]
    with at_most(5):
        assert with_added(before, after, map(str, after)) == ["/project/own.yaml"]
        assert verdict("policy.files", before, after) is None


def test_a_thousand_clusters_are_told_apart_without_their_square():
    clusters = [{**CLUSTER, "name": f"lab{i}"} for i in range(10_000)]
    with at_most(5):
        assert len(settings_of("clusters", clusters).clusters) == len(clusters)


# --- Variables obey the rules of files ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("&a [*a]", "aliases are not allowed"),
        ("[us-*, *x]", "aliases are not allowed"),
        ("{a: 1, a: 2}", "stands twice"),
        ("[" * 5000, "nested too deeply"),
        ("!!python/object/apply:os.system [echo]", "not valid YAML"),
    ],
)
def test_variables_are_read_as_strictly_as_files(text, words, tmp_path):
    with pytest.raises(ConfigError, match=words) as caught:
        load_config(environ={"ADVISOR_CLOUD__REGIONS": text}, cwd=tmp_path)
    assert "the environment variable ADVISOR_CLOUD__REGIONS" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_malformed_variable_is_not_quoted(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load_config(environ={"ADVISOR_STORE__URL": "'postgresql://me:hunter2@db"}, cwd=tmp_path)
    assert "ADVISOR_STORE__URL" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_bad_variable_is_one_line_at_the_terminal(tmp_path):
    answer = Shell(folder=tmp_path).run("config", "show", ADVISOR_CLOUD__REGIONS="&a [*a]")
    assert (answer.code, len(answer.err.splitlines())) == (2, 1)
