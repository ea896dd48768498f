"""Hints at credentials: any of them makes the SDK look, none keeps it from loading."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from advisor.pricing.sources.aws import aws_source, calls
from advisor.pricing.sources.aws.calls import may_have_credentials
from advisor.pricing.sources.protocol import Credentials


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine of nobody's, a home without anything in it."""
    for name in (*calls._VARIABLES, *calls._FILES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(calls, "VENDOR", tmp_path / "sys_vendor")


def test_without_any_hint_there_are_none() -> None:
    assert not may_have_credentials()
    assert aws_source({}).credentials() is Credentials.MISSING


@pytest.mark.parametrize("name", calls._VARIABLES)
def test_every_variable_is_a_hint(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "x")
    assert may_have_credentials()


@pytest.mark.parametrize("usual", [".aws/credentials", ".aws/config"])
def test_files_of_the_sdk_are_hints(tmp_path: Path, usual: str) -> None:
    path = tmp_path / usual
    path.parent.mkdir()
    path.write_text("")
    assert may_have_credentials()


def test_a_file_elsewhere_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "mine"))
    assert not may_have_credentials()
    (tmp_path / "mine").write_text("")
    assert may_have_credentials()


def test_a_machine_of_amazons_is_one(tmp_path: Path) -> None:
    (tmp_path / "sys_vendor").write_text("Amazon EC2\n")
    assert may_have_credentials()
    (tmp_path / "sys_vendor").write_text("ACME\n")
    assert not may_have_credentials()


def test_looking_for_hints_loads_no_sdk() -> None:
    code = (
        "import sys; from advisor.pricing.sources.aws import aws_source; aws_source({}).credentials();"
        " print('boto3' in sys.modules)"
    )
    home = {"HOME": "/nonexistent", "PATH": "/usr/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=home, check=True)
    assert done.stdout.strip() in ("False", "True" if calls._is_amazons() else "False")
