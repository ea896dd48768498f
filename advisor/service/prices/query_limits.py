"""Limits of a query: names that no offer has are refused; else, which limit has to give way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, NoOfferError, did_you_mean
from advisor.core.globs import is_any, same_name
from advisor.core.gpus import GpuRequest, load_gpus, parse_gpu_request
from advisor.core.iterables import grouped
from advisor.core.limits import MAX_MEMORY_GIB, check_number
from advisor.core.units import GIB
from advisor.core.values import GpuSpec, Offer
from advisor.pricing.node_counts import ALONE, NodeCounts, NodeLimits, node_counts
from advisor.service.listening import Listener
from advisor.service.prices.book import ANY
from advisor.service.prices.live import why_not_refreshed

if TYPE_CHECKING:
    from advisor.config.layers import PricingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least that a machine must have."""

    argument: str
    """What its caller names, such as ``min_vcpus``."""
    least: float
    """In the argument's unit."""
    of: Callable[[Offer], float | None]
    """What an offer has, in the same unit; None where that is unknown, which is not enough."""

    def keeps(self, offer: Offer) -> bool:
        """Whether the offer is known to have as much."""
        has = self.of(offer)
        return has is not None and has >= self.least


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferFilter:
    """What a caller limits offers to, besides the settings."""

    gpus: Sequence[str] = ()
    """As they were asked for, such as ``A100:8``."""
    wanted: Mapping[str, set[int]]
    """The GPUs that they mean, each with the counts asked for; an empty set is any count."""
    max_usd_per_h: float | None = None
    """Most that a machine may cost."""
    floors: tuple[Floor, ...] = ()
    """The least that a machine must have."""
    max_gpus: int | None = None
    """Most GPUs that a machine may have."""
    nodes: NodeLimits = ALONE
    """How many machines may be taken together; each alone by default."""
    opens: Callable[[Offer], bool] | None = None
    """Whether an offer's region is open to the account; None where that does not matter."""
    own: Collection[tuple[str, int]] = ()
    """GPU and count of machines of one's own, which ``gpus`` may mean as well."""

    def node_counts(self, offers: Sequence[Offer]) -> NodeCounts:
        """How many machines of each of these offers make what is asked for."""
        beyond: dict[str, set[int]] = {}
        sizes = {(offer.gpu, offer.num_gpus) for offer in offers}
        for request in self.counted() if self.nodes.most is None else ():
            if not sizes_of(request, sizes) & {*request.counts}:
                for spec in request.gpus:
                    beyond.setdefault(spec.name, set()).update(request.counts)
        return node_counts(offers, self.nodes, self.wanted, beyond)

    def counted(self) -> list[GpuRequest]:
        """What names numbers of GPUs."""
        return [request for request in map(parse_gpu_request, self.gpus) if request.counts]


def is_wanted(wanted: Mapping[str, set[int]], gpu: str, num_gpus: int) -> bool:
    """Whether a machine is among those asked for; nothing asked for means any."""
    return not wanted or (gpu in wanted and (not wanted[gpu] or num_gpus in wanted[gpu]))


def sizes_of(request: GpuRequest, machines: Collection[tuple[str, int]]) -> set[int]:
    """Numbers of GPUs of those machines, each a GPU and its number, that the request may mean."""
    names = {spec.name for spec in request.gpus}
    return {count for gpu, count in machines if gpu in names}


def check_counts(
    asked: OfferFilter, known: Callable[[], Iterable[Offer]], offers: Iterable[Offer] = ()
) -> None:
    """Refuse numbers of GPUs that nothing has, wherever it is; of several numbers one will do.

    Args:
        known: all offers there are; asked only for numbers that ``offers`` lacks.

    Raises InputError: names those there are.
    """
    requests = asked.counted()
    at_hand = {*asked.own, *_sizes_there(asked, offers)}
    strange = [request for request in requests if not sizes_of(request, at_hand) & {*request.counts}]
    if not strange:
        return
    everything = tuple(known())
    machines = {*asked.own, *_sizes_there(asked, everything)}
    single = {(offer.gpu, offer.num_gpus) for offer in everything}
    for request in strange:
        sizes = sizes_of(request, machines)
        if sizes_of(request, single) and not sizes & {*request.counts}:
            raise InputError(_no_such_number(request.text, asked.nodes, sizes_of(request, single), sizes))


def _sizes_there(asked: OfferFilter, offers: Iterable[Offer]) -> Iterator[tuple[str, int]]:
    """GPU and number of GPUs, of all nodes, of what may be taken, whatever number is asked for."""
    offers = tuple(offers)
    counts = asked.node_counts(offers)
    return ((offer.gpu, number * offer.num_gpus) for offer in offers for number in counts.possible(offer))


def _no_such_number(text: str, nodes: NodeLimits, single: Collection[int], sizes: Collection[int]) -> str:
    if nodes.exactly not in (None, 1) and sizes:
        together = _listed(sorted(sizes))
        return f"{text!r} counts the GPUs of all nodes, and {nodes.exactly} nodes have {together} of them."
    return (
        f"no machine has as many GPUs as {text!r} asks for{_nor_nodes(nodes)}: there are machines with"
        f" {_listed(sorted(single))} of them."
    )


def _nor_nodes(nodes: NodeLimits) -> str:
    if nodes.exactly is not None:
        return ""
    most = "" if nodes.most is None else f" up to {nodes.most}"
    return "" if nodes.most == 1 else f", nor do{most} whole ones together"


def _listed(numbers: Sequence[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} or {last}" if first else last


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit of a query."""

    name: str
    """What a person leaves out to be rid of it, such as ``"--region"``."""
    text: str
    keeps: Callable[[Offer], bool]
    is_default: bool = False
    is_subject: bool = False
    """It says what is looked for rather than where or at what price, so it gives way last."""


def way_out(limits: Sequence[Limit], offers: Iterable[Offer]) -> tuple[tuple[Limit, ...], tuple[Offer, ...]]:
    """What has to give way, and what is left without: few limits, of those the ones that let in the fewest.

    The fewest, since they are what comes nearest to what was asked. Of equally many limits those without a
    subject go first: who asks for a GPU in Europe wants to know where it is rather than what else is there.

    Raises ValueError: there is no offer at all.
    """
    by_failed = grouped(offers, lambda offer: tuple(limit for limit in limits if not limit.keeps(offer)))
    if not by_failed:
        raise ValueError("there is no offer at all, so no limit is in the way")

    def rank(failed: tuple[Limit, ...]) -> tuple[int, bool, int]:
        return len(failed), any(limit.is_subject for limit in failed), len(by_failed[failed])

    failed = min(by_failed, key=rank)
    return failed, tuple(by_failed[failed])


# What people call them; for hints alone.
_CALLED = {"amazon": "aws", "ec2": "aws", "google": "gcp", "gce": "gcp", "google-cloud": "gcp"}
# What callers give by a name of their own; other settings are known by theirs.
_ARGUMENTS = ("cloud.providers", "cloud.regions", "cloud.markets", "cloud.max_nodes")


def setting_in_words(pricing: PricingSettings, name: str, listener: Listener) -> str:
    """What a person leaves out or changes: the caller's argument, else the setting and who set it."""
    origin = pricing.origins.get(name, "default")
    if _is_argument(pricing, name):
        return listener.name_of(name)
    return f"{name} (the default)" if origin == "default" else f"{name} (set by {origin})"


def _is_argument(pricing: PricingSettings, name: str) -> bool:
    return name in _ARGUMENTS and pricing.is_given(name)


def check_providers(pricing: PricingSettings, known: Collection[str], listener: Listener) -> None:
    """Refuse a provider without any price, limits aside.

    One whose prices could be pulled is a warning where others were named, too.

    Raises InputError: names those there are.
    """
    from advisor.pricing.providers import load_providers

    wanted = pricing.cloud.providers
    strange = [name for name in wanted if name != ANY and not any(same_name(name, one) for one in known)]
    for provider in strange:
        where = _unless_given(pricing, "cloud.providers", listener)
        problem = f"there are no prices of provider {provider!r}{where}{_way_to(pricing, provider, known)}"
        if provider.lower() not in load_providers() or len(strange) == len(wanted):
            raise InputError(problem)
        listener.warn([problem])


def _way_to(pricing: PricingSettings, provider: str, known: Collection[str]) -> str:
    """How to get prices of a provider that has none, or whom else may be meant."""
    from advisor.pricing.providers import load_providers

    providers = load_providers()
    if provider.lower() in providers:
        if not pricing.may_add_providers:
            return ": a project that you do not trust adds no provider. Name it in your own settings."
        if (why := why_not_refreshed(pricing.store, provider.lower())) is not None:
            return f" yet, and they could not be pulled: {why}. Try again with `advisor prices refresh`."
        return (
            " yet: name it in the setting cloud.providers, and `advisor prices refresh` pulls them; most need"
            " no account."
        )
    ours = {provider.gpuhunt_name: name for name, provider in providers.items()}
    hint = did_you_mean((_CALLED | ours).get(provider.lower(), provider), [*known, *providers])
    others = ", ".join(sorted(providers.keys() - {*known}))
    return f".{hint} Known are {', '.join(sorted(known))}; by name also {others}."


def check_regions(
    pricing: PricingSettings,
    known: Callable[[], Iterable[str]],
    listener: Listener,
    at_hand: Collection[str] = (),
) -> None:
    """Refuse a region, or a pattern of regions, that no offer is in, whatever else is asked for.

    Args:
        known: all regions there are; asked only for patterns that ``at_hand`` does not match.

    Raises InputError: with near matches.
    """
    strange = [p for p in pricing.cloud.regions if not any(is_any([p], name) for name in at_hand)]
    regions = sorted({*known()}) if strange else []
    for pattern in strange:
        if pattern == ANY or any(is_any([pattern], name) for name in regions):
            continue
        where = _unless_given(pricing, "cloud.regions", listener)
        begin = ", ".join(dict.fromkeys(name.split("-")[0] for name in regions))
        hint = did_you_mean(pattern.replace("*", ""), regions)
        verb = "matches" if {"*", "?"} & {*pattern} else "is called"
        raise InputError(
            f"no region with a known price {verb} {pattern!r}{where}.{hint} Regions begin with {begin};"
            " `advisor prices --sort place` shows them."
        )


def known_vendors(names: Iterable[str]) -> set[str]:
    """Vendors of the catalog as it spells them, letter case aside.

    Raises InputError: the catalog has no GPU of one.
    """
    vendors = {spec.vendor.lower(): spec.vendor for spec in load_gpus().values()}
    for name in names:
        if name.lower() not in vendors:
            choices = ", ".join(sorted(vendors))
            hint = did_you_mean(name, vendors)
            raise InputError(f"no GPU of vendor {name!r} in the catalog.{hint} Choose of {choices}.")
    return {vendors[name.lower()] for name in names}


def _unless_given(pricing: PricingSettings, name: str, listener: Listener) -> str:
    return "" if _is_argument(pricing, name) else f" in {setting_in_words(pricing, name, listener)}"


def nothing_left(
    pricing: PricingSettings, asked: OfferFilter, offers: Sequence[Offer], listener: Listener
) -> NoOfferError:
    """Why no offer is left, and which limit would have to give way.

    Args:
        offers: all that are known, at the prices of the organisation's contracts.
    """
    if not offers:
        return NoOfferError("no source knows a price: `advisor prices sources` says why.")
    if asked.wanted and not any(offer.gpu in asked.wanted for offer in offers):
        return NoOfferError(
            f"no known price is of {', '.join(asked.wanted)}: `advisor prices` shows what is for rent."
        )
    limits = _limits(pricing, asked, offers, listener)
    in_the_way, left = way_out(limits, offers)
    # A default is worth a word only where it is in the way.
    worth = [limit.text for limit in limits if limit in in_the_way or not limit.is_default]
    best = min(left, key=lambda offer: (offer.usd_per_h, offer.region, offer.zone or ""))
    names = " and ".join(dict.fromkeys(limit.name for limit in in_the_way))
    there_are = "is 1" if len(left) == 1 else f"are {len(left):,}, the cheapest"
    where = f"{best.provider} {best.instance_type} in {best.region}"
    return NoOfferError(
        f"no offer with {', '.join(dict.fromkeys(worth))}. Without {names} there {there_are}: {where},"
        f" {best.market}, {best.usd_per_h:,.2f} USD/h."
    )


def _limits(
    pricing: PricingSettings, asked: OfferFilter, offers: Sequence[Offer], listener: Listener
) -> list[Limit]:
    from advisor.pricing.sources.protocol import OfferQuery

    counts = asked.node_counts(
        [offer for offer in offers if asked.max_gpus is None or offer.num_gpus <= asked.max_gpus]
    )
    limits = [*_limits_of_settings(pricing, listener), *_limits_of_gpus(asked, counts, listener)]
    if (exactly := asked.nodes.exactly) is not None:
        name = listener.name_of("num_nodes")
        limits.append(
            Limit(name=name, text=f"{name} {exactly}", keeps=lambda offer: bool(counts.possible(offer)))
        )
    if (most_usd := asked.max_usd_per_h) is not None:
        keeps = OfferQuery(max_usd_per_h=most_usd).matches
        name = listener.name_of("max_usd_per_h")
        limits.append(Limit(name=name, text=f"{name} {most_usd:g}", keeps=keeps))
    for floor in asked.floors:
        name = listener.name_of(floor.argument)
        limits.append(Limit(name=name, text=f"{name} {floor.least:g}", keeps=floor.keeps))
    if (most := asked.max_gpus) is not None:
        limits.append(
            _setting(pricing, "cloud.max_gpus", str(most), lambda offer: offer.num_gpus <= most, listener)
        )
    if (opens := asked.opens) is not None:
        text = "regions open to any account"
        limits.append(_setting(pricing, "cloud.opt_in_regions", text, opens, listener))
    return limits


def _limits_of_settings(pricing: PricingSettings, listener: Listener) -> Iterator[Limit]:
    from advisor.pricing.sources.protocol import OfferQuery

    cloud = pricing.cloud
    named = {
        "cloud.providers": (cloud.providers, OfferQuery(providers=cloud.providers)),
        "cloud.regions": (cloud.regions, OfferQuery(regions=cloud.regions)),
        "cloud.markets": (cloud.markets, OfferQuery(markets=cloud.markets)),
    }
    for name, (values, query) in named.items():
        if values and ANY not in values:
            yield _setting(pricing, name, ", ".join(values), query.matches, listener)


def _limits_of_gpus(asked: OfferFilter, counts: NodeCounts, listener: Listener) -> Iterator[Limit]:
    """Which GPU, and how many of it: two limits, since the number may give way alone."""
    if not (wanted := asked.wanted):
        return
    name = listener.name_of("gpus")
    text = " ".join(f"{name} {one}" for one in asked.gpus)

    def is_as_many(offer: Offer) -> bool:
        numbers = wanted.get(offer.gpu)
        possible = counts.possible(offer) or (1,)
        return not numbers or any(number * offer.num_gpus in numbers for number in possible)

    yield Limit(name=name, text=text, keeps=lambda offer: offer.gpu in wanted, is_subject=True)
    yield Limit(name=f"the number in {name}", text=text, keeps=is_as_many)


def _setting(
    pricing: PricingSettings, name: str, value: str, keeps: Callable[[Offer], bool], listener: Listener
) -> Limit:

    words, is_argument = setting_in_words(pricing, name, listener), _is_argument(pricing, name)
    text = f"{words} {value}" if is_argument else words.replace(name, f"{name}: {value}", 1)
    return Limit(
        name=words if is_argument else name, text=text, keeps=keeps, is_default=name not in pricing.origins
    )


def list_gpus(
    names: Sequence[str],
    listener: Listener,
    *,
    vendor: str | None = None,
    min_memory_gib: float | None = None,
) -> tuple[GpuSpec, ...]:
    """The GPUs of names and families, each once, all of the catalog without any: of a vendor, with memory.

    Raises:
        InputError: a name with a number of GPUs, an unknown vendor, or a size of memory that cannot be.
        UnknownGpuError: a name that no GPU and no family has.
        NoOfferError: none is left; says what there is without the limit that leaves none.
    """
    specs = _named(names) if names else tuple(load_gpus().values())
    if vendor is not None:
        vendors = known_vendors([vendor])
        limit = f"{listener.name_of('vendor')} {vendor}"
        specs = _left(specs, (spec for spec in specs if spec.vendor in vendors), limit)
    if min_memory_gib is not None:
        name = listener.name_of("min_memory_gib")
        check_number(name, min_memory_gib, least=0, most=MAX_MEMORY_GIB)
        most_gib = max(spec.memory_bytes for spec in specs) / GIB
        large = (spec for spec in specs if spec.memory_bytes >= min_memory_gib * GIB)
        specs = _left(specs, large, f"{name} {min_memory_gib:g}", f", the largest with {most_gib:.1f} GiB")
    return specs


def _named(names: Iterable[str]) -> tuple[GpuSpec, ...]:
    specs: dict[str, GpuSpec] = {}
    for request in map(parse_gpu_request, names):
        if request.counts:
            raise InputError(
                f"{request.text!r} asks for a number of GPUs, and the catalog is about one: leave it out."
                " `advisor prices --gpu` takes numbers."
            )
        specs |= {spec.name: spec for spec in request.gpus}
    return tuple(specs.values())


def _left(
    before: Sequence[GpuSpec], after: Iterable[GpuSpec], limit: str, about: str = ""
) -> tuple[GpuSpec, ...]:
    """What a limit leaves; where that is nothing, it is the limit that has to give way."""
    if kept := tuple(after):
        return kept
    names = ", ".join(spec.name for spec in before[:3]) + (", ..." if len(before) > 3 else "")
    raise NoOfferError(f"no GPU is left with {limit}: without it there are {len(before)}{about} ({names}).")
