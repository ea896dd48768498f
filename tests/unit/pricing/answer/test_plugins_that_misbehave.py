"""Plug-ins that return nothing, print, or try to end advisor: one line each, and the other sources answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from advisor.config.settings import PriceSettings
from advisor.core import plugins
from advisor.core.errors import CatalogError, ConfigError
from advisor.core.values import Market
from advisor.pricing.answer import known
from advisor.pricing.answer.known import answers_of, sources_of
from advisor.pricing.sources.protocol import Capabilities, Credentials, credentials_of
from advisor.pricing.sources.query import OfferQuery

OURS = plugins.registered(known.GROUP, foreign=False)


class Source:
    """One that is right, but for what a test changes."""

    name = "theirs"
    capabilities = Capabilities(providers=("theirs",), markets=(Market.SPOT,))

    def offers(self, _: OfferQuery) -> object:
        return ()

    def freshness(self) -> object:
        return ()

    def credentials(self) -> Credentials:
        return Credentials.NOT_NEEDED


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The module of a plug-in that is registered as ``theirs``."""
    point = EntryPoint("theirs", "their_module:factory", known.GROUP)
    for module in (known, plugins):
        monkeypatch.setattr(module, "registered", lambda _: {**OURS, "theirs": point})
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "their_module.py"
    sys.modules.pop("their_module", None)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit(3)", "PluginEndedError: it raised SystemExit(3)"),
        ("raise GeneratorExit", "it raised GeneratorExit()"),
        ("class Odd(BaseException): pass\nraise Odd('x')", "it raised Odd(x)"),
        ("factory = None", "'NoneType' object is not callable"),
        ("def factory(options): pass", "no price source but NoneType, without offers, freshness"),
        ("def factory(options): raise SystemExit", "it raised SystemExit()"),
        ("def factory(options): return 'theirs'", "no price source but str"),
        ("class factory:\n def __init__(self, options): pass\n name = 'theirs'", "without offers"),
    ],
)
def test_they_are_one_warning_and_others_answer(plug_in: Path, code: str, words: str) -> None:
    """All but two were a traceback, or ended advisor without a word."""
    plug_in.write_text(code)
    found = sources_of(PriceSettings())
    (warning,) = found.warnings
    assert words in warning
    assert "theirs" in warning
    assert [source.name for source in found.sources] == [*known._FIRST, *known._LAST]
    with pytest.raises(ConfigError, match="theirs"):
        sources_of(PriceSettings(sources=["theirs"]))


def test_what_they_print_is_no_answer(plug_in: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It stood before the JSON."""
    plug_in.write_text("print('loaded')\ndef factory(options):\n print('made')")
    sources_of(PriceSettings())
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "loaded\nmade\n")


def test_ctrl_c_is_passed_on(plug_in: Path) -> None:
    plug_in.write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        sources_of(PriceSettings())


def leave(*_: object) -> None:
    sys.exit(3)


def nothing(*_: object) -> None:
    pass


@pytest.mark.parametrize("offers", [leave, nothing])
def test_one_that_fails_when_asked(monkeypatch: pytest.MonkeyPatch, offers: object) -> None:
    monkeypatch.setattr(Source, "offers", offers)
    with pytest.raises(CatalogError, match="'theirs' failed"):
        answers_of([Source()], OfferQuery(), None)  # type: ignore[list-item]


@pytest.mark.parametrize("credentials", [leave, nothing])
def test_one_that_fails_when_its_credentials_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, credentials: object
) -> None:
    monkeypatch.setattr(Source, "credentials", credentials)
    found, why = credentials_of(Source())  # type: ignore[arg-type]
    assert found is Credentials.MISSING
    assert why is not None
