"""The doctor reads what the settings name, and tells what is wrong with each file."""

import re
from pathlib import Path

import pytest

from advisor.config.layers import load_config
from advisor.service.health import Check, run_checks
from tests.rates import RATE, write_csv, write_yaml

LOG = "submit,start,gpus\n" + "".join(
    f"2026-11-{day:02}T10:00:00,2026-11-{day:02}T11:{day:02}:00,4\n" for day in range(1, 21)
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("ADVISOR_TRUST_PROJECT", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checks_of(home: Path, settings: str) -> dict[str, Check]:
    (home / ".advisor.yaml").write_text(settings)
    return {check.name: check for check in run_checks(load_config, str)}


def test_without_settings_nothing_is_wrong(home):
    checks = checks_of(home, "")
    assert {checks[name].state for name in ("rates", "clusters", "policies")} == {"ok"}
    assert checks["clusters"].detail == checks["policies"].detail == "none in the settings"


def test_files_in_order_are_named(home):
    write_yaml(home / "a.yaml", RATE)
    write_csv(home / "b.csv", RATE | {"provider": "acme"}, RATE | {"provider": "other"})
    (home / "jobs.csv").write_text(LOG)
    (home / "org.yaml").write_text("version: 1\nname: acme\nlayer: organisation\n")
    checks = checks_of(
        home,
        "prices: {options: {custom: {files: [a.yaml, b.csv]}}}\npolicy: {files: [org.yaml]}\n"
        "clusters:\n- {name: lab, gpu: T4, num_gpus: 4, wait_log: jobs.csv}\n"
        "- {name: new, gpu: L4, num_gpus: 8}\n",
    )
    assert checks["rates"].detail == f"1 in {home}/a.yaml, 2 in {home}/b.csv"
    assert checks["clusters"].detail == f"lab: 4 x T4, waits from {home}/jobs.csv\nnew: 8 x L4"
    assert checks["policies"].detail == f"{home}/org.yaml"
    assert {checks[name].state for name in ("rates", "clusters", "policies", "prices")} == {"ok", "note"}


def test_each_fault_is_told_with_its_file(home):
    write_yaml(home / "a.yaml", RATE | {"usd_per_h": -1})
    (home / "org.yaml").write_text("version: 1\nname: acme\nlayer: organisation\nlimits: {usd_per_jb: 5}\n")
    (home / "team.yaml").write_text("version: 1\nname: [\n")
    by_name = checks_of(
        home,
        "prices: {options: {custom: {files: [a.yaml]}}}\npolicy: {files: [org.yaml, team.yaml, gone.yaml]}\n"
        "clusters:\n- {name: lab, gpu: T4, num_gpus: 4, wait_log: gone.csv}\n"
        "- {name: new, gpu: L44, num_gpus: 8}\n"
        "- {name: fine, gpu: L4, num_gpus: 8}\n",
    )
    wrong = {"rates", "prices", "clusters", "policies"}
    assert {
        name for name in (*wrong, "settings", "store", "torch") if by_name[name].state == "broken"
    } == wrong
    assert f"{home}/a.yaml, entry 1: 'usd_per_h'" in by_name["rates"].detail
    policy = by_name["policies"].detail
    for words in ("org.yaml:4", "usd_per_jb", "team.yaml", "gone.yaml"):
        assert words in policy
    lab, new = by_name["clusters"].detail.splitlines()
    assert ("'lab'" in lab, "gone.csv" in lab) == (True, True)
    assert ("'new'" in new, "'L44'" in new) == (True, True)


def test_a_pattern_that_names_no_file_is_broken(home):
    check = checks_of(home, "prices: {options: {custom: {files: [no-*.yaml]}}}")["rates"]
    assert check.state == "broken"
    assert re.search(r"no file of own rates is called '.*no-\*\.yaml'", check.detail)
