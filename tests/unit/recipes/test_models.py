"""Shapes of models: the catalog, files, and the Hub."""

import json
import tomllib
from pathlib import Path

import pytest
import requests

from advisor.core.errors import InputError
from advisor.core.gpus import catalog_path
from advisor.recipes.models import find_model, known_models

TABLES = tomllib.loads(catalog_path("models.toml").read_text(encoding="utf-8"))


def answering(monkeypatch: pytest.MonkeyPatch, status: int, text: str = "") -> list[str]:
    asked: list[str] = []

    def get(url: str, timeout: float) -> requests.Response:
        asked.append(url)
        reply = requests.Response()
        reply.status_code, reply._content = status, text.encode()
        return reply

    monkeypatch.setattr(requests, "get", get)
    return asked


@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("resnet-50", "sd-1.5")])
def test_parameters_counted_from_shapes_are_those_that_the_publisher_states(name):
    stated = TABLES[name]["params_billion"] * 1e9
    assert known_models()[name].counted_params == pytest.approx(stated, rel=0.05)


def test_there_are_the_models_of_the_table_each_with_its_source():
    assert len(TABLES) == 35
    assert all("/" in model.source for model in known_models().values())


@pytest.mark.parametrize("name", ["llama-3.1-8b", "Llama-3.1-8B", "meta-llama/Llama-3.1-8B"])
def test_a_model_of_the_catalog_is_found_by_name_and_by_id_without_network(name):
    assert find_model(name, offline=True) is known_models()["llama-3.1-8b"]


def test_an_unknown_name_gets_the_nearest_ones():
    with pytest.raises(InputError, match=r"Did you mean 'llama-3.1-8b'"):
        find_model("llama3.1-8b", offline=True)


@pytest.mark.parametrize("given", ["config.json", "."])
def test_a_configuration_is_read_from_a_file_or_its_folder(tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    config = {"model_type": "llama", "hidden_size": 64, "vocab_size": 100, "torch_dtype": "bfloat16"}
    Path("config.json").write_text(json.dumps(config))
    assert find_model(given, offline=True).config == {
        "model_type": "llama", "hidden_size": 64, "vocab_size": 100,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"hidden_size": 64}', "does not say its architecture"),
        ("[]", "does not say its architecture"),
        ("{", "is not JSON"),
    ],
)
def test_a_configuration_without_an_architecture_is_refused(tmp_path, text, words):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=words):
        find_model(str(tmp_path / "config.json"), offline=True)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        find_model(str(tmp_path / "config.json"), offline=True)


def test_an_id_is_fetched_from_the_hub(monkeypatch):
    asked = answering(monkeypatch, 200, '{"model_type": "olmo2", "hidden_size": 8}')
    assert find_model("allenai/OLMo-2", offline=False).kind == "olmo2"
    assert asked == ["https://huggingface.co/allenai/OLMo-2/resolve/main/config.json"]


def test_offline_nothing_is_asked(monkeypatch):
    asked = answering(monkeypatch, 200, "{}")
    with pytest.raises(InputError, match=r"the network is off.*config\.json"):
        find_model("allenai/OLMo-2", offline=True)
    assert asked == []


@pytest.mark.parametrize(
    ("status", "words"), [(401, "gated"), (403, "gated"), (404, "has no config.json"), (503, "answered 503")]
)
def test_what_the_hub_does_not_give_is_asked_for_as_a_file(monkeypatch, status, words):
    answering(monkeypatch, status)
    with pytest.raises(InputError, match=rf"{words}.*Download its config\.json"):
        find_model("meta-llama/Llama-9", offline=False)


def test_a_hub_that_cannot_be_reached_is_no_traceback(monkeypatch):
    def get(url: str, timeout: float) -> requests.Response:
        raise requests.ConnectionError

    monkeypatch.setattr(requests, "get", get)
    with pytest.raises(InputError, match=r"cannot be reached.*config\.json"):
        find_model("allenai/OLMo-2", offline=False)
