"""Findings of ``advisor doctor``, each on a made-up house."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import advisor.config.layers
import advisor.native
import advisor.profile.environment
from advisor.config.layers import Config, Project
from advisor.config.settings import Settings
from advisor.core import devices
from advisor.core.errors import CatalogError, ConfigError
from advisor.core.gpus import load_gpus
from advisor.predict.knowledge import RECORDED, shipped, write_calibration
from advisor.pricing import answers as pricing
from advisor.pricing.answers import Offers
from advisor.service import health as checks
from advisor.store.database import default_path, open_store
from tests.builders import make_offer


def load() -> Config:
    """The settings, as the doctor reads them."""
    return advisor.config.layers.load_config()


@pytest.fixture
def house(monkeypatch, tmp_path):
    """A user file that may be there, no project file, settings without warnings."""
    facts: dict[str, Any] = {"user": tmp_path / "config.yaml", "project": None, "warnings": ()}
    monkeypatch.setattr(advisor.config.layers, "user_file", lambda: facts["user"])
    monkeypatch.setattr(
        advisor.config.layers,
        "load_config",
        lambda *_, **__: Config(
            settings=Settings(), origins={}, warnings=facts["warnings"], project=facts["project"]
        ),
    )
    return facts


def made(check: Callable[..., checks.Found], *arguments: Any) -> checks.Check:
    return checks._made("it", lambda: check(*arguments))


def with_cards(monkeypatch, *names: str) -> None:
    cards = tuple(
        devices.Device(name=name, memory_bytes=None, used_bytes=None, utilization=None) for name in names
    )
    monkeypatch.setattr(devices, "detect_devices", lambda: cards)


def test_files_of_settings_are_named_in_order_and_their_warnings_are_a_note(house, tmp_path):
    check = made(checks._settings, load(), str)
    assert (check.state, "advisor init" in check.detail) == ("ok", True)
    house["user"].write_text("")
    assert made(checks._settings, load(), str).detail == str(house["user"])
    path = tmp_path / ".advisor.yaml"
    house["project"] = Project(path=path, sha256="", is_trusted=False)
    assert made(checks._settings, load(), str).detail == f"{house['user']}, {path}"
    house["warnings"] = ("first", "second")
    check = made(checks._settings, load(), str)
    assert (check.state, check.detail) == ("note", "first; second")


def test_the_compiled_module_is_ok_and_the_reference_a_note_that_says_why(monkeypatch):
    monkeypatch.setattr(advisor.native, "COMPILED", True)
    assert made(checks._native).state == "ok"
    monkeypatch.setattr(advisor.native, "COMPILED", False)
    monkeypatch.setattr(advisor.native, "WHY_NOT_COMPILED", "no such module")
    check = made(checks._native)
    assert check.state == "note"
    assert "no such module" in check.detail
    assert "compiler" in check.detail


@pytest.mark.parametrize(("warnings", "state"), [((), "ok"), (("old",), "note")])
def test_prices_tell_how_many_and_of_when(warnings, state, monkeypatch):
    offers = tuple(make_offer(retrieved_at=datetime(2026, month, 1, tzinfo=UTC)) for month in (3, 9, 6))
    monkeypatch.setattr(pricing, "load_offers", lambda *_, **__: Offers(offers=offers, warnings=warnings))
    check = made(checks._prices, load().pricing)
    assert check.state == state
    assert check.detail.startswith("3 ")
    assert "2026-09-01" in check.detail


# --- torch ------------------------------------------------------------------------------------------


def with_pythons(monkeypatch, **versions: str | None) -> None:
    monkeypatch.setattr("advisor.profile.environment.candidates", lambda *_: [Path(n) for n in versions])
    monkeypatch.setattr(checks, "_torch_version", lambda python: versions[str(python)])


def test_the_first_interpreter_with_torch_is_named(house, monkeypatch):
    with_pythons(monkeypatch, first=None, second="2.9", third="2.8")
    check = made(checks._torch, load().settings.profile)
    assert (check.state, check.detail) == ("ok", "2.9 in second")


def test_without_torch_all_interpreters_are_named(house, monkeypatch):
    with_pythons(monkeypatch, first=None, second=None)
    check = made(checks._torch, load().settings.profile)
    assert check.state == "note"
    assert "first and second" in check.detail
    assert "profile.python" in check.detail


def test_the_interpreter_is_asked_without_importing_torch(monkeypatch):
    asked: list[tuple[list[str], dict[str, Any]]] = []

    def run(command: list[str], **options: Any) -> Any:
        asked.append((command, options))
        return SimpleNamespace(returncode=0, stdout=b"2.9.1+cpu\n")

    monkeypatch.setattr(subprocess, "run", run)
    assert checks._torch_version(Path("/p/python")) == "2.9.1+cpu"
    ((command, options),) = asked
    assert command[:3] == ["/p/python", "-I", "-c"]
    assert "import torch" not in command[3]
    assert options["timeout"] == checks.TIMEOUT_S


@pytest.mark.parametrize("code", [1, -9, OSError("gone"), subprocess.TimeoutExpired("python", 30)])
def test_an_interpreter_that_fails_or_cannot_be_asked_has_no_torch(code, monkeypatch):
    def run(command: list[str], **options: Any) -> Any:
        if isinstance(code, Exception):
            raise code
        return SimpleNamespace(returncode=code, stdout=b"2.9\n")

    monkeypatch.setattr(subprocess, "run", run)
    assert checks._torch_version(Path("python")) is None


# --- GPUs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cards", "state", "words"),
    [
        ((), "ok", "^none"),
        (("Tesla T4", "NVIDIA A100-SXM4-80GB"), "ok", "^T4, A100-SXM-80GB$"),
        (("Tesla T4", "Voodoo 5", "Voodoo 6"), "note", "^[^4]*Voodoo 5, Voodoo 6"),
    ],
)
def test_gpus_have_the_names_of_the_catalog(monkeypatch, cards, state, words):
    with_cards(monkeypatch, *cards)
    check = made(checks._gpu)
    assert check.state == state
    assert re.search(words, check.detail)


# --- Calibration -------------------------------------------------------------------------------------


@pytest.fixture
def data_home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_without_a_known_gpu_there_is_nothing_to_calibrate(data_home, monkeypatch):
    for cards in ((), ("Voodoo 5",)):
        with_cards(monkeypatch, *cards)
        assert (made(checks._calibration).state, "no GPU" in made(checks._calibration).detail) == ("ok", True)


def test_gpus_without_a_calibration_are_a_note(data_home, monkeypatch):
    with_cards(monkeypatch, "Tesla T4", "NVIDIA L4", "NVIDIA L4")
    write_calibration("T4", "today", {"streaming_fraction": 0.8})
    check = made(checks._calibration)
    assert check.state == "note"
    assert check.detail.startswith("none for L4: advisor calibrate")


def test_calibrations_are_told_with_their_source_be_they_of_gpus_elsewhere(data_home, monkeypatch):
    write_calibration("T4", "2026-11-20", {"streaming_fraction": 0.8})
    ours = "T4 calibrated on this machine, 2026-11-20"
    with_cards(monkeypatch, "Tesla T4")
    check = made(checks._calibration)
    assert (check.state, check.detail) == ("ok", ours)
    with_cards(monkeypatch)
    write_calibration("L4", "2026-11-21", {"streaming_fraction": 0.8}, where=RECORDED)
    check = made(checks._calibration)
    assert (check.state, check.detail) == ("ok", f"L4 calibrated from a recording, 2026-11-21; {ours}")


def test_all_damaged_calibrations_are_told_first_with_what_to_do(data_home, monkeypatch):
    with_cards(monkeypatch, "Tesla T4", "NVIDIA A10G")
    write_calibration("T4", "today", {"streaming_fraction": 7.0})
    write_calibration("H100-SXM-80GB", "today", {"streaming_fraction": 0.0})
    write_calibration("L4", "2026-11-21", {"streaming_fraction": 0.8})
    check = made(checks._calibration)
    assert check.state == "broken"
    first, second, *others = check.detail.split("; ")
    for text, name in ((first, "H100-SXM-80GB.toml"), (second, "T4.toml")):
        assert name in text
        assert "Delete it, and run advisor calibrate again." in text
    assert others == [
        "none for A10G: advisor calibrate takes about a minute", "L4 calibrated on this machine, 2026-11-21"
    ]  # fmt: skip


@pytest.mark.parametrize("networks", [None, "0123456789abcdef"])
def test_a_calibration_with_other_networks_is_a_note(data_home, monkeypatch, networks):
    with_cards(monkeypatch)
    write_calibration("T4", "2026-11-20", {"learned.gemm": 0.8}, networks=networks)
    write_calibration("L4", "2026-11-21", {"learned.gemm": 0.8}, networks=shipped().fingerprint)
    check = made(checks._calibration)
    assert check.state == "note"
    assert check.detail == (
        "T4 calibrated on this machine, 2026-11-20, with networks of another version, so not all"
        " counts: run advisor calibrate again; L4 calibrated on this machine, 2026-11-21"
    )


def test_a_calibration_of_a_gpu_that_left_the_catalog_is_a_note(data_home, monkeypatch):
    with_cards(monkeypatch)
    path = write_calibration("Voodoo-5", "today", {"streaming_fraction": 0.8})
    check = made(checks._calibration)
    assert check.state == "note"
    assert f"{str(path)!r} is not used: delete it" in check.detail


# --- Store -----------------------------------------------------------------------------------------


def test_a_database_is_named_and_a_damaged_one_breaks_the_check_alone(house, data_home):
    def store() -> checks.Check:
        return made(checks._store, load().settings.store)

    assert (store().state, store().detail) == ("ok", "no database yet: advisor prices refresh makes it")
    with open_store(None):
        pass
    assert (store().state, store().detail) == ("ok", f"{default_path()} can be read and written")
    default_path().write_bytes(b"no database" * 1000)
    assert (store().state, "advisor.db" in store().detail) == ("broken", True)


# --- All --------------------------------------------------------------------------------------------


def test_one_broken_check_does_not_hide_the_others(house, monkeypatch):
    def broken(query: Any, **_: Any) -> Any:
        raise CatalogError("the file is damaged")

    monkeypatch.setattr(pricing, "load_offers", broken)
    with_pythons(monkeypatch, ours="2.9")
    with_cards(monkeypatch)
    by_name = {check.name: check for check in checks.run_checks(load, str)}
    names = "python settings native catalog store rates prices rules clusters policies torch gpu calibration"
    assert list(by_name) == names.split()
    assert by_name["python"].detail == f"{sys.version.split()[0]} at {sys.executable}"
    assert by_name["catalog"].detail == f"{len(load_gpus())} GPUs"
    assert (by_name["prices"].state, by_name["prices"].detail) == ("broken", "the file is damaged")
    assert [name for name, check in by_name.items() if check.state == "broken"] == ["prices"]


def test_settings_that_cannot_be_read_break_each_check_that_needs_them(monkeypatch):
    def broken() -> Config:
        raise ConfigError("unknown setting 'x'")

    with_cards(monkeypatch)
    states = {check.name: check.state for check in checks.run_checks(broken, str)}
    needing = {"settings", "store", "rates", "prices", "rules", "clusters", "policies", "torch"}
    assert {name for name, state in states.items() if state == "broken"} == needing


def test_our_own_bugs_are_not_hidden(monkeypatch):
    def broken() -> Any:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        checks._made("broken", broken)
