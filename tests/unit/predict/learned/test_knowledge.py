"""A folder of constants and networks: with or without networks, broken, missing, shipped."""

import hashlib

import numpy as np
import pytest

from advisor.core.errors import CatalogError
from advisor.core.findings import Finding
from advisor.core.findings.about_options import Unknown
from advisor.core.gpus import catalog_path, resolve_gpu
from advisor.predict.constants import constants_for
from advisor.predict.iteration import predict
from advisor.predict.knowledge import (
    CONSTANTS,
    NETWORKS,
    Knowledge,
    read_knowledge,
    shipped,
    write_calibration,
    write_networks,
)
from advisor.predict.learned import learned_times
from advisor.predict.roofline import KERNEL_FLOOR_S
from tests.builders import make_gpu, make_trace
from tests.unit.predict.learned.values import EXACT, TABLES, make_knowledge, make_networks, mm, softmax

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


T4 = resolve_gpu("T4")
OPS = (mm(512, 256, 128), softmax(64, 1000))
THESE = "fedcba9876543210"
KNOWLEDGE = make_knowledge(fingerprint=THESE, is_calibrated_here=True)
CORRECTED = {"learned.gemm": 0.5, "streaming_fraction": 0.5}


@pytest.fixture(autouse=True)
def nothing_calibrated(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def work_s() -> np.ndarray:
    times = learned_times(OPS, T4, constants_for(T4, KNOWLEDGE), EXACT, KNOWLEDGE)
    return times.time_s - KERNEL_FLOOR_S


def assumptions() -> tuple[Finding, ...]:
    return predict(make_trace(ops=OPS), T4, knowledge=KNOWLEDGE).assumptions


@pytest.mark.parametrize("networks", [None, "0123456789abcdef"])
def test_corrections_of_other_networks_do_not_count_and_are_told(networks):
    before = work_s()
    write_calibration("T4", "today", CORRECTED, networks=networks)
    assert work_s() == pytest.approx(before)
    constants = constants_for(T4, KNOWLEDGE)
    assert (constants.learned_share, constants.fractions["streaming_fraction"]) == ({}, 0.5)
    assert Unknown(what="calibration") in assumptions()


def test_corrections_of_these_networks_count():
    before = work_s()
    write_calibration("T4", "today", CORRECTED, networks=THESE)
    assert work_s() == pytest.approx(before / [0.5, 1])
    assert Unknown(what="calibration") not in assumptions()


def test_a_calibration_without_corrections_needs_no_networks():
    write_calibration("T4", "today", {"streaming_fraction": 0.5})
    assert Unknown(what="calibration") not in assumptions()
