"""Which sources there are, plug-ins that misbehave, and what each source lacks."""

import dataclasses
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.config.settings import PriceSettings
from advisor.core import plugins
from advisor.core.errors import CatalogError, ConfigError
from advisor.core.plugins import load, registered
from advisor.core.values import Interval, Market, Offer, PricePoint
from advisor.pricing import source_registry
from advisor.pricing.refresh import ANSWER_WITHIN_S, LONGEST_S, parts_of, refresh, with_credentials
from advisor.pricing.source_registry import answers_of, joined, sources_of, state_of
from advisor.pricing.sources.protocol import (
    GROUP,
    Capabilities,
    Credentials,
    Freshness,
    OfferQuery,
    Part,
    PriceSource,
    check_options,
    credentials_of,
    freshness_of,
)
from advisor.store.database import open_store
from advisor.store.pulls import pulls
from tests.builders import make_offer
from tests.unit.pricing.test_refresh import NOON, FakeSource, offer, part, pulled, usd

OURS = plugins.registered(GROUP, foreign=False)


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
def plug_in(tmp_path, monkeypatch):
    """The module of a plug-in that is registered as ``theirs``."""
    point = EntryPoint("theirs", "their_module:factory", GROUP)
    for module in (source_registry, plugins):
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
def test_they_are_one_warning_and_others_answer(plug_in, code, words):
    """All but two were a traceback, or ended advisor without a word."""
    plug_in.write_text(code)
    found = sources_of(PriceSettings())
    (warning,) = found.warnings
    assert words in warning
    assert "theirs" in warning
    assert [source.name for source in found.sources] == [*source_registry._FIRST, *source_registry._LAST]
    with pytest.raises(ConfigError, match="theirs"):
        sources_of(PriceSettings(sources=["theirs"]))


def test_what_they_print_is_no_answer(plug_in, capsys):
    """It stood before the JSON."""
    plug_in.write_text("print('loaded')\ndef factory(options):\n print('made')")
    sources_of(PriceSettings())
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "loaded\nmade\n")


def test_ctrl_c_is_passed_on(plug_in):
    plug_in.write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        sources_of(PriceSettings())


def leave(*_: object) -> None:
    sys.exit(3)


def nothing(*_: object) -> None:
    pass


@pytest.mark.parametrize("offers", [leave, nothing])
def test_one_that_fails_when_asked(monkeypatch, offers):
    monkeypatch.setattr(Source, "offers", offers)
    with pytest.raises(CatalogError, match="'theirs' failed"):
        answers_of([Source()], OfferQuery(), None)  # type: ignore[list-item]


@pytest.mark.parametrize("credentials", [leave, nothing])
def test_one_that_fails_when_its_credentials_are_looked_for(monkeypatch, credentials):
    monkeypatch.setattr(Source, "credentials", credentials)
    found, why = credentials_of(Source())  # type: ignore[arg-type]
    assert found is Credentials.MISSING
    assert why is not None


@pytest.fixture
def store(tmp_path):
    with open_store(f"sqlite:///{tmp_path / 'prices.db'}") as opened:
        yield opened


NO_PRICES = [None, 0.0, -1.0, float("nan"), float("inf"), "1.0", True]


def quantiles(p50: object) -> Interval:
    """Quantiles that no check has seen, as an object of a plug-in may be."""
    made = object.__new__(Interval)
    for name, value in {"p10": 0.1, "p50": p50, "p90": 0.9}.items():
        object.__setattr__(made, name, value)
    return made


@pytest.mark.parametrize("price", NO_PRICES)
@pytest.mark.parametrize(
    "field", ["list_usd_per_h", "contracted_usd_per_h", "effective_usd_per_h", "spot_usd_per_h"]
)
def test_every_price_of_an_offer_must_be_one(store, field, price):
    if price is None and field in ("contracted_usd_per_h", "effective_usd_per_h"):
        price = 0
    value = quantiles(price) if field == "spot_usd_per_h" else price
    bad = replace(offer(1.0, instance_type="broken"), **{field: value})
    kept = pulled(store, FakeSource(part(offer(1.0), bad)), FakeSource(part(offer(5.0)), name="other"))
    (mine,) = [one for one in kept if one.source == "fake"]
    assert mine.gaps == ("1 prices that are not above 0 left out",)
    assert (usd(store), usd(store, "other")) == ([1.0], [5.0])


@pytest.mark.parametrize("price", NO_PRICES)
def test_every_earlier_price_must_be_one(store, price):
    (kept,) = pulled(store, FakeSource(part(offer(1.0), history=(point(usd_per_h=price),))))
    assert (kept.gaps, kept.num_points) == (("1 prices that are not above 0 left out",), 0)


def point(**changes: object) -> PricePoint:
    facts: dict[str, object] = {
        "provider": "aws", "instance_type": "l4.xlarge", "region": "us-east-1", "zone": None,
        "market": Market.SPOT, "usd_per_h": 1.0, "observed_at": NOON,
    }  # fmt: skip
    return PricePoint(**(facts | changes))


@pytest.mark.parametrize(
    ("wrong", "failure"),
    [
        (part(offer(num_gpus="4")), "offers.0.num_gpus"),
        (part(offer(region=None)), "offers.0.region"),
        (part(offer(market="spot")), "offers.0.market"),
        (part(offer(retrieved_at="today")), "offers.0.retrieved_at"),
        (part(offer(), "an offer"), "offers.1"),
        (part(history=(point(), None)), "history.1"),
        (part(history=(point(observed_at=NOON.replace(tzinfo=None)),)), "no time zone"),
        (replace(part(offer()), offers=None), "TypeError"),
        (part(offer(num_vcpus=2**70)), "cannot be kept"),
        (None, "it gave no Part but 'NoneType'"),
        ([offer()], "it gave no Part but 'list'"),
        (part(offer(), scope=None), "scope"),
    ],
)
def test_a_wrong_part_fails_alone(store, wrong, failure):
    kept = pulled(
        store, FakeSource(wrong, part(offer(2.0), scope="eu")), FakeSource(part(offer(5.0)), name="other")
    )
    (failed,) = [one for one in kept if one.failure is not None]
    assert failure in failed.failure
    assert (failed.num_offers, failed.num_points) == (0, 0)
    assert (usd(store), usd(store, "other")) == ([2.0], [5.0])


def test_what_a_plug_in_says_is_kept_without_its_secrets(store):
    secret_text = "GET https://u:p@ss@acme.test/?key=1 with Bearer xyz and password=abc"
    shown = "GET https://***@acme.test/?*** with Bearer *** and password=***"
    parts = [part(offer(), gaps=(secret_text,)), Part(scope="eu", failure=secret_text)]
    by_scope = {one.scope: (one.gaps, one.failure) for one in pulled(store, FakeSource(*parts))}
    assert by_scope == {"us-east-1": ((shown,), None), "eu": ((), shown)}
    noted = {pull.scope: (pull.gaps, pull.failure) for pull in pulls(store)}
    assert {scope: noted[scope] for scope in by_scope} == by_scope


class Clock:
    """Stands still unless somebody moves it."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class HangingSource(FakeSource):
    """Gives its parts, then says nothing until it is released."""

    def __init__(self, *parts: Part, name: str = "hanging") -> None:
        super().__init__(*parts, name=name)
        self.released = Event()

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        yield from super().offers(query)
        self.released.wait()


def test_a_source_that_hangs_fails_and_its_prices_stay(store):
    pulled(store, FakeSource(part(offer(1.0)), name="hanging"))
    hanging = HangingSource()
    try:
        (kept,) = refresh([hanging], OfferQuery(), store, now=lambda: NOON, within_s=0.0)
    finally:
        hanging.released.set()
    assert (kept.scope, kept.failure) == ("all", "gave no answer within 0 ms (prices.refresh_within)")
    assert usd(store, "hanging") == [1.0]


def test_what_came_before_patience_ends_is_kept():
    hanging = HangingSource(part(offer(1.0)))
    other = FakeSource(part(offer(5.0)), name="other")
    clock = Clock()
    came: list[tuple[str, Any]] = []
    try:
        for reply in parts_of([hanging, other], OfferQuery(), within_s=300.0, clock=clock):
            came.append(reply)
            clock.now_s = 301.0 if len(came) == 2 else 0.0
    finally:
        hanging.released.set()
    assert {name: reply.offers for name, reply in came[:2]} == {
        "hanging": (offer(1.0),),
        "other": (offer(5.0),),
    }
    late = "gave no answer within 5 min (prices.refresh_within)"
    assert came[2:] == [("hanging", Part(scope="all", failure=late))]


def test_what_a_source_says_too_late_does_not_count():
    """One that never stops kept a refresh going for as long as it liked."""
    clock = Clock()

    class Endless(FakeSource):
        def offers(self, query: OfferQuery) -> Iterator[Part]:
            while True:
                yield from super().offers(query)
                clock.now_s += 100.0

    came: list[tuple[str, Any]] = list(
        parts_of([Endless(part(offer(1.0)))], OfferQuery(), within_s=300.0, clock=clock)
    )
    late = "gave no answer within 5 min (prices.refresh_within)"
    assert [reply.failure for _, reply in came] == [None, None, None, None, late]


def test_no_source_is_waited_for_longer_than_a_refresh_takes():
    assert ANSWER_WITHIN_S < LONGEST_S


class LockedSource(FakeSource):
    """A plug-in that fails where it should tell."""

    def credentials(self) -> Credentials:
        raise RuntimeError("vault refused token=abc")

    def freshness(self) -> tuple[()]:
        raise RuntimeError("no file")


def test_who_cannot_tell_of_credentials_has_none(store):
    open_ = FakeSource(name="open")
    reason = "its credentials cannot be looked for: RuntimeError: vault refused token=***"
    assert with_credentials([LockedSource(), open_], store, NOON) == (open_,)
    assert pulls(store, "fake")[0].failure == reason
    state = state_of(LockedSource(), None)
    assert (state.credentials, state.gaps) == (Credentials.MISSING, ("never refreshed", reason))


def test_who_cannot_tell_what_it_holds_has_a_gap():
    state = state_of(LockedSource(is_live=False), None)
    assert state.num_offers == 0
    assert "it cannot tell what it holds: RuntimeError: no file" in state.gaps


@pytest.mark.parametrize(
    ("gaps", "lines"),
    [
        # One reason of many machines and regions is one line; machines that lack it elsewhere have their own.
        (
            [(at, f"{of} {at}: lost") for at in ("a b", "c b") for of in ("g2", "g4")],
            ("a b, c b: lost: g2, g4",),
        ),
        (
            [("a", "m1 a: x"), ("a", "m2 a: x"), ("b", "m1 b: x"), ("b", "m3 b: y")],
            ("a, b: x: m1", "a: x: m2", "b: y: m3"),
        ),
        # Without a machine they stay as they are.
        ([("a", "late: 2"), ("b", "late: 2"), ("b", "lost")], ("a, b: late: 2", "b: lost")),
        ([("a", "one"), ("a", "one")], ("a: one",)),
        ([], ()),
    ],
)
def test_gaps_alike_are_one_line(gaps, lines):
    assert joined(gaps) == lines


NAMES = st.sampled_from(["r1 spot", "r2 spot", "r10 spot"])
GAPS = st.lists(
    st.tuples(NAMES, st.sampled_from(["m1", "m2", "m3"]), st.sampled_from(["no price", "0: unknown"])),
    max_size=30,
)


@given(GAPS)
def test_every_gap_can_be_read_back_once(gaps):
    lines = joined((scope, f"{machine} {scope}: {reason}") for scope, machine, reason in gaps)
    read = []
    for line in lines:
        scopes, _, rest = line.partition(": ")
        reason, _, machines = rest.rpartition(": ")
        read += [(s, m, reason) for s in scopes.split(", ") for m in machines.split(", ")]
    assert sorted(read) == sorted(set(gaps))
    assert len(lines) <= len(set(gaps))


def at(day: int) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC)


def test_ages_are_told_by_provider_in_alphabetical_order():
    days = [("gcp", 5), ("aws", 9), ("aws", 3), ("aws", 7)]
    offers = [make_offer(provider=provider, retrieved_at=at(day)) for provider, day in days]
    assert freshness_of(offers) == (
        Freshness(provider="aws", num_offers=3, oldest=at(3), newest=at(9)),
        Freshness(provider="gcp", num_offers=1, oldest=at(5), newest=at(5)),
    )

    assert freshness_of([]) == ()


def test_options_that_exist_pass():
    check_options("acme", {}, ())
    check_options("acme", {"url": "x"}, ("url", "token"))


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (
            ("url", "token"),
            r"'acme' has no option 'ulr'\. Did you mean 'url'\? .*acme may hold: url, token\.",
        ),
        ((), r"has no option 'ulr'\. prices\.options\.acme may hold: none\."),
    ],
)
def test_another_option_is_refused_with_a_near_one(allowed, message):
    with pytest.raises(ConfigError, match=message):
        check_options("acme", {"ulr": "x"}, allowed)


@pytest.mark.parametrize("name", ["snapshot", "custom", "gpuhunt"])
def test_a_source_has_the_name_of_its_entry_point_and_keeps_the_protocol(name):
    source: PriceSource = load(GROUP, name)({})
    assert source.name == name
    assert name in registered(GROUP, foreign=False)
    assert source.credentials() in set(Credentials)
    assert isinstance(source.capabilities.is_live, bool)
    assert not source.capabilities.is_live or source.freshness() == ()
    with pytest.raises(ConfigError, match=f"the price source '{name}' has no option 'no_such_option'"):
        load(GROUP, name)({"no_such_option": 1})


OFFER = Offer(
    provider="aws",
    instance_type="p4d.24xlarge",
    region="us-east-1",
    zone=None,
    gpu="A100-SXM-40GB",
    num_gpus=8,
    market=Market.ON_DEMAND,
    list_usd_per_h=21.957642,
    retrieved_at=datetime(2026, 7, 20, tzinfo=UTC),
    source="test",
)


@pytest.mark.parametrize(
    ("limits", "is_within"),
    [
        ({}, True),
        ({"providers": ("gcp", "aws")}, True),
        ({"providers": ("gcp",)}, False),
        ({"regions": ("eu-*", "us-*")}, True),
        ({"regions": ("US-East-1",)}, True),
        ({"regions": ("us-east",)}, False),
        ({"regions": ("us-east-?0",)}, False),
        ({"gpus": ("A100-SXM-40GB",)}, True),
        ({"gpus": ("A100-SXM-80GB",)}, False),
        ({"num_gpus": (4, 8)}, True),
        ({"num_gpus": (1,)}, False),
        ({"markets": (Market.ON_DEMAND,)}, True),
        ({"markets": (Market.SPOT,)}, False),
        ({"max_usd_per_h": 21.957642}, True),
        ({"max_usd_per_h": 21.95}, False),
        ({"providers": ("aws",), "regions": ("eu-*",)}, False),
    ],
)
def test_all_limits_hold(limits, is_within):
    assert OfferQuery(**limits).matches(OFFER) is is_within


def test_the_price_limit_is_on_what_is_paid():
    negotiated = dataclasses.replace(OFFER, contracted_usd_per_h=15.0)
    assert OfferQuery(max_usd_per_h=16.0).matches(negotiated)
