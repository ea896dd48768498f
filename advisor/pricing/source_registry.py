"""The registered price sources in order of trust: what each knows, holds and lacks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import cast

from advisor.config.settings import PriceSettings
from advisor.core.errors import AdvisorError, CatalogError, ConfigError
from advisor.core.findings.about_spending import PricesImplausible
from advisor.core.iterables import grouped
from advisor.core.plugins import error_in_words, held_back, load, registered
from advisor.pricing.answers import Answer, answer_of, machine_of, providers_of
from advisor.pricing.price_checks import has_possible_prices, named
from advisor.pricing.sources import protocol
from advisor.store.handle import Store

# Own rates are meant to be believed, and an account's own answer goes before what is published for everybody;
# a dated file is what is left when no other source knows.
_FIRST, _LAST = ("custom", "aws", "gcp"), ("gpuhunt", "snapshot")
_PARTS = ("offers", "freshness", "credentials")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Sources in order of trust, and why others that are registered cannot be used."""

    sources: tuple[protocol.PriceSource, ...]
    warnings: tuple[str, ...]


def sources_of(settings: PriceSettings) -> Sources:
    """The sources of the settings, or all that are registered.

    Raises ConfigError: a source that the settings name, or one of ours, is not there or refuses its options.
    """
    for name in settings.options:
        if name not in registered(protocol.GROUP):
            load(protocol.GROUP, name)
    sources, warnings = [], []
    there = registered(protocol.GROUP)
    foreign = [name for name in there if name not in (*_FIRST, *_LAST)]
    usual = [name for name in (*_FIRST, *foreign, *_LAST) if name in there]
    for name in usual if settings.sources is None else settings.sources:
        try:
            sources.append(_source(name, settings.options))
        except ConfigError as error:
            if settings.sources is not None or name not in foreign:
                raise
            warnings.append(str(error))
    return Sources(sources=tuple(sources), warnings=tuple(warnings))


def _source(name: str, options: Mapping[str, Mapping[str, object]]) -> protocol.PriceSource:
    factory = cast("Callable[[Mapping[str, object]], protocol.PriceSource]", load(protocol.GROUP, name))
    try:
        with held_back():
            source = factory(options.get(name, {}))
            lacks = [part for part in _PARTS if not callable(getattr(source, part, None))]
            if not isinstance(getattr(source, "capabilities", None), protocol.Capabilities):
                lacks.append("capabilities")
            if getattr(source, "name", None) != name:
                lacks.append(f"the name {name!r}")
            if lacks:
                kind = type(source).__name__
                raise TypeError(f"it is no price source but {kind}, without {', '.join(lacks)}")
            return source
    except AdvisorError:
        raise
    except Exception as error:
        raise ConfigError(
            f"the price source {name!r} cannot be made: {error_in_words(error)}."
            f" Check prices.options.{name}, or update the plug-in."
        ) from error


def answers_of(
    sources: Sequence[protocol.PriceSource], query: protocol.OfferQuery, store: Store | None
) -> list[Answer]:
    """What each source knows now: live ones what the store holds of their last refresh.

    Raises CatalogError, StoreError: a source's own data, or the database, cannot be read.
    """
    answers = []
    for source in sources:
        if not source.capabilities.is_live:
            answers.append(_possible(_own_answer(source, query)))
        elif store is not None:
            answers.append(_possible(_held_answer(source, query, store)))
    return answers


def _possible(answer: Answer) -> Answer:
    """Without prices that no such machine can have, which count as unknown; own rates stay. Both warn."""
    wrong = [offer for offer in answer.offers if not has_possible_prices(offer)]
    if not wrong:
        return answer
    # An owner knows what own machines cost, however little: the word is kept.
    is_kept = answer.source == "custom"
    warning = PricesImplausible(
        num_prices=len(wrong), source=answer.source, examples=named(wrong), is_kept=is_kept
    )
    answer = replace(answer, warnings=(*answer.warnings, warning))
    if is_kept:
        return answer
    offers = tuple(offer for offer in answer.offers if has_possible_prices(offer))
    return replace(answer, offers=offers, unpriced=answer.unpriced | set(map(machine_of, wrong)))


def _own_answer(source: protocol.PriceSource, query: protocol.OfferQuery) -> Answer:
    try:
        with held_back():
            return answer_of(source, query)
    except AdvisorError:
        raise
    except Exception as error:
        raise CatalogError(
            f"the price source {source.name!r} failed: {error_in_words(error)}."
            " Update the plug-in, or leave it out with prices.sources."
        ) from error


def _held_answer(source: protocol.PriceSource, query: protocol.OfferQuery, store: Store) -> Answer:
    from advisor.store.pulls import covered_places, current_offers, pulls

    able = source.capabilities
    held = current_offers(store, source.name, providers=query.providers, gpus=query.gpus)
    whole = [(pull.place, pull) for pull in pulls(store, source.name) if pull.place is not None]
    covered = covered_places(store, source.name) | {place for place, _ in whole}
    asked = [(place, pull.succeeded_at) for place, pull in whole if pull.succeeded_at is not None]
    # What it no longer answers for was pulled under other options, and would never be pulled anew.
    sold = (offer for offer in held if offer.market in able.markets)
    return Answer(
        source=source.name,
        is_live=True,
        offers=tuple(one for one in sold if not able.providers or one.provider in able.providers),
        providers=providers_of(source) if able.knows_all else tuple(sorted({place[0] for place in covered})),
        covers=covered if able.knows_all else frozenset(),
        knows_all=able.knows_all,
        unpriced=frozenset((place, name) for place, pull in whole for name in pull.unpriced),
        asked_at=dict(sorted(asked, key=itemgetter(1))),  # of several scopes in a place the newest stays
    )


def joined(gaps: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Lines ``"SCOPES: REASON: MACHINES"`` in the order of their first gap; nothing is left out.

    A machine is named where a gap begins with it and its scope: ``"a2-highgpu-1g us-central1 spot: late"``.

    Args:
        gaps: scope and gap, in words.

    >>> joined([("a spot", "m1 a spot: no price"), ("a spot", "m2 a spot: no price"), ("b", "late")])
    ('a spot: no price: m1, m2', 'b: late')
    """
    scopes: dict[tuple[str, str], list[str]] = {}
    for scope, gap in dict.fromkeys(gaps):
        machine, is_of_machine, reason = gap.partition(f" {scope}: ")
        key = (reason, machine) if is_of_machine else (gap, "")
        scopes.setdefault(key, []).append(scope)
    alike = grouped(scopes, lambda key: (key[0], tuple(scopes[key])))
    return tuple(
        ": ".join(filter(None, (", ".join(where), reason, ", ".join(filter(None, (key[1] for key in keys))))))
        for (reason, where), keys in alike.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """One source as ``advisor prices sources`` tells of it."""

    name: str
    is_live: bool
    providers: tuple[str, ...]
    num_offers: int
    oldest: datetime | None
    """Of the offers held; None without any."""
    newest: datetime | None
    gaps: tuple[str, ...]
    """What is missing, a line for each reason, and parts that could not be refreshed."""
    credentials: protocol.Credentials


def state_of(source: protocol.PriceSource, store: Store | None) -> SourceState:
    """What a source holds: a live one what the store kept of its last refreshes. Raises: as `answers_of`."""
    credentials, fault = protocol.credentials_of(source)
    held: Sequence[protocol.Freshness] = ()
    gaps: tuple[str, ...] = ("never refreshed",)
    if not source.capabilities.is_live:
        try:
            with held_back():
                held, gaps = source.freshness(), ()
        except AdvisorError:
            raise
        except Exception as error:  # noqa: BLE001 - that a plug-in cannot tell is a gap of it alone
            gaps = (f"it cannot tell what it holds: {error_in_words(error)}",)
    elif store is not None:
        from advisor.store.pulls import current_offers

        held, gaps = protocol.freshness_of(current_offers(store, source.name)), _gaps(source.name, store)
    return SourceState(
        name=source.name,
        is_live=source.capabilities.is_live,
        providers=source.capabilities.providers or tuple(one.provider for one in held),
        num_offers=sum(one.num_offers for one in held),
        oldest=min((one.oldest for one in held), default=None),
        newest=max((one.newest for one in held), default=None),
        gaps=gaps if fault is None else (*gaps, fault),
        credentials=credentials,
    )


def _gaps(name: str, store: Store) -> tuple[str, ...]:
    from advisor.pricing.refresh import ASKED, LONGEST_S
    from advisor.store.pulls import pulls

    every = pulls(store, name)
    whole = [pull for pull in every if not pull.scope.startswith(ASKED)] or every
    gaps = [*joined((pull.scope, gap) for pull in whole for gap in pull.gaps)]
    newest = max((pull.succeeded_at for pull in whole if pull.succeeded_at is not None), default=None)
    # What once failed as a whole, for want of credentials say, is over once anything was pulled since.
    over = datetime.min.replace(tzinfo=UTC) if newest is None else newest - timedelta(seconds=LONGEST_S)
    gaps += [
        f"{pull.scope}: not refreshed on {pull.failed_at:%Y-%m-%d %H:%M}: {pull.failure}"
        for pull in whole
        if pull.failed_at is not None and (pull.succeeded_at is not None or pull.failed_at >= over)
    ]
    return tuple(gaps) if whole else ("never refreshed",)
