"""A folder of constants and networks: with or without networks, broken, missing, shipped."""

import hashlib

import pytest

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import CONSTANTS, NETWORKS, Knowledge, read_knowledge, shipped, write_networks
from tests.builders import make_gpu
from tests.unit.predict.learned.values import TABLES, make_networks

TEXT = catalog_path(CONSTANTS).read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / CONSTANTS).write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_a_folder_without_networks_has_constants_alone(folder):
    knowledge = read_knowledge(folder)
    assert knowledge.networks == {}
    assert knowledge.corrections == {}
    assert knowledge.tables == TABLES


def test_a_folder_with_networks_has_both(folder):
    write_networks(make_networks(), folder / NETWORKS)
    assert read_knowledge(folder).networks.keys() == make_networks().keys()


def test_the_fingerprint_is_of_the_networks_alone(folder):
    assert read_knowledge(folder).fingerprint is None
    write_networks(make_networks(0), folder / NETWORKS)
    first = read_knowledge(folder).fingerprint
    assert first is not None
    assert first == hashlib.sha256((folder / NETWORKS).read_bytes()).hexdigest()[:16]
    (folder / CONSTANTS).write_text(f"{TEXT}\n# another\n", encoding="utf-8")
    assert read_knowledge(folder).fingerprint == first
    write_networks(make_networks(1), folder / NETWORKS)
    assert read_knowledge(folder).fingerprint != first


def test_constants_of_a_folder_count(folder):
    text = TEXT.replace("streaming_fraction = 0.80", "streaming_fraction = 0.33")
    (folder / CONSTANTS).write_text(text, encoding="utf-8")
    unknown = make_gpu(architecture="Unheard", vendor="Nobody")
    assert constants_for(unknown, read_knowledge(folder)).fractions["streaming_fraction"] == 0.33
    (folder / CONSTANTS).write_text(TEXT, encoding="utf-8")
    assert constants_for(unknown, read_knowledge(folder)).fractions["streaming_fraction"] == 0.8


def test_a_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(CatalogError, match="name a folder that the training wrote") as caught:
        read_knowledge(tmp_path / "nowhere")
    assert repr(str(tmp_path / "nowhere")) in str(caught.value)


def test_a_folder_with_networks_alone_is_refused(tmp_path):
    write_networks(make_networks(), tmp_path / NETWORKS)
    with pytest.raises(CatalogError, match=f"no {CONSTANTS} in"):
        read_knowledge(tmp_path)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CatalogError, match="Not a directory"):
        read_knowledge(tmp_path / "file")


@pytest.mark.parametrize(
    "payload",
    [b"[gpu", b"a = ", b"a = 1\na = 2", b"\xff\xfe", b"\x00", b'[gpu."T4"]\ngemm_fraction.fp32 = high'],
    ids=repr,
)
def test_broken_constants_are_refused_with_their_path(folder, payload):
    (folder / CONSTANTS).write_bytes(payload)
    with pytest.raises(CatalogError) as caught:
        read_knowledge(folder)
    assert repr(str(folder / CONSTANTS)) in str(caught.value)
    assert str(caught.value).endswith("Reinstall gpu-advisor.")


def test_broken_networks_are_refused_with_their_path(folder):
    (folder / NETWORKS).write_bytes(b"no archive")
    with pytest.raises(CatalogError) as caught:
        read_knowledge(folder)
    assert repr(str(folder / NETWORKS)) in str(caught.value)


def test_what_ships_is_read_once():
    assert shipped() is shipped()
    assert isinstance(shipped(), Knowledge)
    assert {"gpu", "assumed"} <= shipped().tables.keys()


@pytest.mark.parametrize("text", ["", "[gpu]", "[assumed.any]", "[gpu]\n[assumed.Ampere]"], ids=repr)
def test_constants_that_lack_tables_are_refused(folder, text):
    (folder / CONSTANTS).write_text(text)
    with pytest.raises(CatalogError):
        constants_for(make_gpu(), read_knowledge(folder))
