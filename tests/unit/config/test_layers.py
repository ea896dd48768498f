"""Layers, origins, and every way a settings file can be wrong."""

from pathlib import Path

import pytest
import yaml

from advisor.config.layers import environment_variable, load_config, project_file, user_file
from advisor.config.settings import Settings, setting_names
from advisor.core.errors import ConfigError
from advisor.report.config_tables import template


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of our own, so that no settings of the machine leak in."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def write_user(text: str) -> Path:
    path = user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_project(folder: Path, text: str) -> Path:
    path = folder / ".advisor.yaml"
    path.write_text(text)
    return path


def test_defaults(tmp_path):
    config = load_config(environ={}, cwd=tmp_path)
    assert config.settings == Settings()
    assert config.settings.cloud.startup == 300
    assert config.origins == {}
    assert config.warnings == ()


def test_a_policy_file_that_is_no_text_is_refused(tmp_path):
    write_project(tmp_path, "policy: {files: [1]}\n")
    with pytest.raises(ConfigError, match=r"policy\.files\.0"):
        load_config(environ={}, cwd=tmp_path)


def test_each_layer_wins_over_the_one_below(tmp_path):
    user = write_user("cloud: {max_gpus: 1, startup: 1m, providers: [aws]}\nlocal: {num_gpus: 1}\n")
    project = write_project(tmp_path, "cloud: {max_gpus: 2, startup: 2m}\nlocal: {num_gpus: 2}\n")
    environ = {"ADVISOR_CLOUD__MAX_GPUS": "3", "ADVISOR_LOCAL__NUM_GPUS": "3"}
    flags = {"local.num_gpus": 4, "local.gpu": None}
    config = load_config(flags, environ=environ, cwd=tmp_path, trust_project=True)
    assert config.settings.local.num_gpus == 4
    assert config.settings.cloud.max_gpus == 3
    assert config.settings.cloud.startup == 120
    assert config.settings.cloud.providers == ("aws",)
    assert config.origins == {
        "cloud.max_gpus": "ADVISOR_CLOUD__MAX_GPUS",
        "cloud.startup": str(project),
        "cloud.providers": str(user),
        "local.num_gpus": "flag",
    }


def test_the_project_file_is_found_from_below(tmp_path):
    path = write_project(tmp_path, "profile: {backend: cpu}")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert project_file(below) == path
    assert load_config(environ={}, cwd=below).settings.profile.backend == "cpu"


def test_lists_and_null_in_the_environment(tmp_path):
    environ = {"ADVISOR_CLOUD__REGIONS": "[us-*, europe-west4]", "ADVISOR_SPOT__CHECKPOINT_INTERVAL": "null"}
    settings = load_config(environ=environ, cwd=tmp_path).settings
    assert settings.cloud.regions == ("us-*", "europe-west4")
    assert settings.spot.checkpoint_interval is None


def test_strange_environment_variables_warn(tmp_path):
    config = load_config(environ={"ADVISOR_CLOUD__MAX_GPU": "3"}, cwd=tmp_path)
    assert len(config.warnings) == 1
    assert "ADVISOR_CLOUD__MAX_GPUS" in config.warnings[0]
    assert config.settings == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cloud: {max_gps: 3}", "Did you mean 'cloud.max_gpus'"),
        ("clod: {max_gpus: 3}", "Did you mean 'cloud'"),
        ("cloud: {max_gpus: three}", "cloud.max_gpus"),
        ("cloud: {max_gpus: 0}", "greater than or equal to 1"),
        ("cloud: {startup: 5}", "has no unit"),
        ("cloud: {startup: 5 parsecs}", "not a duration"),
        ("cloud: {markets: [spott]}", "spott"),
        ("local: {usd_per_gpu_h: -1}", "greater than or equal to 0"),
        ("local: {usd_per_gpu_h: .inf}", "finite"),
        ("clusters: [{name: lab, gpu: T4}]", "Field required"),
        ("clusters: [{name: lab, gpu: T4, num_gpus: 1, wait: 3h}]", "unknown setting"),
        ("clusters: 5", "a list, such as"),
        ("contracts: [{provider: aws, discout: 0.1}]", "Did you mean 'discount'"),
        ("contracts: [{provider: aws, discount: 10}]", "less than 1"),
        ("clusters: [{name: local, gpu: T4, num_gpus: 1}]", "means this machine"),
        ("clusters: [{name: a, gpu: T4, num_gpus: 1}, {name: a, gpu: T4, num_gpus: 2}]", "has T4 twice"),
        ("spot: {checkpoint_interval: 0s}", "greater than 0"),
        ("cloud: 5", "cloud"),
        ("cloud: " + "[" * 5000, "nested too deeply"),
        ("- a\n- b", "by section"),
        ("just text", "by section"),
        ("cloud: {startup: 1m}\ncloud: {}", "stands twice"),
        ("a: &a [1]\nb: *a", "aliases are not allowed"),
        ("cloud: [", "not valid YAML"),
        ("cloud:\n\t- x", "not valid YAML"),
        ("? [1, 2]\n: 3", "not valid YAML"),
        ("!!python/object/apply:os.system [echo]", "not valid YAML"),
    ],
)
def test_wrong_files(tmp_path, text, message):
    path = write_project(tmp_path, text)
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")) as caught:
        load_config(environ={}, cwd=tmp_path)
    assert str(path) in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_section_that_is_no_section_below_a_variable(tmp_path):
    write_project(tmp_path, "local: 5")
    with pytest.raises(ConfigError, match="local"):
        load_config(environ={"ADVISOR_LOCAL__GPU": "T4"}, cwd=tmp_path)


def test_all_faults_at_once(tmp_path):
    write_project(tmp_path, "cloud: {max_gps: 3, startup: 5}\nlocl: {}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(environ={}, cwd=tmp_path)
    assert len(str(caught.value).splitlines()) == 3


def test_the_template_lists_every_setting_and_changes_nothing(tmp_path):
    text = template()
    for name in setting_names():
        assert f"{name.rpartition('.')[2]}:" in text
    write_user(text)
    assert load_config(environ={}, cwd=tmp_path).settings == Settings()


def test_the_uncommented_template_is_valid_and_equals_the_defaults(tmp_path):
    body = "\n".join(
        line.removeprefix("# ")
        for line in template().splitlines()
        if line.startswith("# ") and ":" in line.split("#")[1] and not line[2].isupper()
    )
    document = yaml.safe_load(body)
    assert document["clusters"][0]["name"] == "lab"
    write_user(body)
    settings = load_config(environ={}, cwd=tmp_path).settings
    assert (
        settings.model_copy(update={"clusters": (), "contracts": (), "quotas": (), "rates": ()}) == Settings()
    )


def test_names_and_variables():
    assert "cloud.max_gpus" in setting_names()
    assert environment_variable("cloud.max_gpus") == "ADVISOR_CLOUD__MAX_GPUS"
