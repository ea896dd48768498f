"""What commands share: formats, and settings with flags on top."""

from collections.abc import Callable
from typing import Any

from advisor.cli.common import settings_with
from advisor.cli.listening import TERMINAL
from advisor.config import layers as config_module
from advisor.config.layers import Config
from advisor.config.settings import Settings


def test_warnings_and_notes_leave_stdout_clean(capsys):
    TERMINAL.warn(["first", "second"])
    TERMINAL.note("third")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["warning: first", "warning: second", "note: third"]


def test_flags_are_dotted_names_and_warnings_are_told(monkeypatch, capsys):
    seen = []

    def load_config(flags: Any, *, trust_project: bool, name_of: Callable[[str], str]) -> Config:
        assert name_of("cloud.providers") == "--provider"
        seen.append(flags)
        return Config(settings=Settings(), origins={}, warnings=("a stray",))

    monkeypatch.setattr(config_module, "load_config", load_config)
    assert settings_with(cloud__max_gpus=4, prices__max_age=None).warnings == ("a stray",)
    assert seen == [{"cloud.max_gpus": 4, "prices.max_age": None}]
    assert capsys.readouterr().err == "warning: a stray\n"
