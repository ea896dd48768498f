"""Prices of many clouds without an account, by gpuhunt: https://github.com/dstackai/gpuhunt."""

from __future__ import annotations

import importlib
import logging
import os
import re
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from io import BytesIO
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from advisor.core.deadlines import LateError, completed, within
from advisor.core.errors import ConfigError, did_you_mean
from advisor.core.files import temporary_folder
from advisor.core.globs import is_any
from advisor.core.gpus import load_gpus, normal_form
from advisor.core.iterables import grouped
from advisor.core.plugins import error_in_words
from advisor.core.units import GB, GIB, MB, format_duration
from advisor.core.values import GpuSpec, Market, Offer
from advisor.pricing.instance_types import InstanceType, load_instances
from advisor.pricing.providers import Locations, PriceAccess, Provider, RowKind, known_form, load_providers
from advisor.pricing.sources.http_downloads import Allowance, PublicFileError, download
from advisor.pricing.sources.protocol import (
    ANYWHERE,
    Capabilities,
    Credentials,
    OfferQuery,
    Part,
    check_options,
)

if TYPE_CHECKING:
    from gpuhunt import CatalogItem


_FORMS = ("PCIE", "SXM", "NVL")
# What a process may use is a little less than what is sold; 80 and 94 GB must stay apart.
_TOLERANCE = 0.07
# Quotes have four digits.
_ROUNDING = 1.001
COMMUNITY = "community host"
"""What the source of a price says of a machine that belongs to someone else than the provider."""


class Retrieval(NamedTuple):
    """When a provider's rows were collected, and what to name as their source."""

    at: datetime
    source: str


def offers_of(
    items: Sequence[CatalogItem], provider: Provider, retrieval: Retrieval
) -> tuple[tuple[Offer, ...], tuple[str, ...]]:
    """Offers of a provider's items with GPUs, the cheapest of each machine, place and market; and gaps."""
    gaps: Counter[str] = Counter()
    rentable = [item for item in items if _is_rentable(item, provider, gaps)]
    rentable = _above_floor(rentable, provider, gaps)
    # Numbers of GPUs that go by one name: some providers name the GPU, not the machine.
    counts = grouped(((item.instance_name, item.gpu_count) for item in rentable), itemgetter(0))
    offers: dict[tuple[str, str, Market], Offer] = {}
    for item in sorted(rentable, key=lambda item: item.price):
        try:
            machine = _machine(item, provider, counts, retrieval, gaps)
            offer = None if machine is None else _offer(item, provider, machine, retrieval)
        except Exception:  # noqa: BLE001 - a row fails alone, whatever is in it
            gaps["cannot be read"] += 1
            continue
        if offer is not None:
            offers.setdefault((offer.instance_type, offer.region, offer.market), offer)
    told = [f"{text} ({number} of {len(items)} rows)" for text, number in gaps.items()]
    if offers and not provider.known_minimum_billed_s:
        told.append(
            f"billing terms are not known: at least {format_duration(provider.minimum_billed_s)} in steps of"
            f" {format_duration(provider.billed_step_s)} assumed, the dearest known of others"
        )
    return tuple(offers.values()), tuple(told)


def _is_rentable(item: CatalogItem, provider: Provider, gaps: Counter[str]) -> bool:
    name, data = item.instance_name, item.provider_data
    if not isinstance(item.price, int | float) or not 0 < item.price < inf:
        gaps["no price"] += 1
    elif not (name and isinstance(name, str) and isinstance(item.gpu_count, int) and item.gpu_count >= 1):
        gaps["no name or no number of GPUs"] += 1
    elif not isinstance(item.location, str | None):
        gaps["cannot be read"] += 1
    elif isinstance(data, Mapping) and data.get("pod_counts"):
        gaps["rented only as a cluster of several machines"] += 1
    elif isinstance(data, Mapping) and data.get("is_dws_calendar_mode"):
        gaps["rented only for days booked ahead (calendar mode)"] += 1
    elif is_any(provider.left_out_locations, item.location or ""):
        gaps["in a place that is no region of everybody's"] += 1
    else:
        return True
    return False


def _above_floor(items: Sequence[CatalogItem], provider: Provider, gaps: Counter[str]) -> list[CatalogItem]:
    """Without spot quotes that mean no demand."""
    if provider.spot_floor_share is None:
        return [*items]
    share = provider.spot_floor_share * _ROUNDING
    listed = {(item.instance_name, item.location): item.price for item in items if not item.spot}
    kept = [
        item
        for item in items
        if not item.spot or item.price > share * listed.get((item.instance_name, item.location), 0.0)
    ]
    if len(kept) < len(items):
        floor = f"the floor of {provider.spot_floor_share:.0%} of on-demand (no demand)"
        gaps[f"spot quotes at {floor}"] = len(items) - len(kept)
    return kept


def _machine(
    item: CatalogItem,
    provider: Provider,
    counts: Mapping[str, Sequence[tuple[str, int]]],
    retrieval: Retrieval,
    gaps: Counter[str],
) -> InstanceType | None:
    """The machine of our catalog, else as the row gives it; None where the row is no machine of its own."""
    name = item.instance_name
    # GPUs attached to a host stand in its name: ``n1-standard-8+2xT4``.
    for ours in (name, f"{name}+{item.gpu_count}x{item.gpu_name}"):
        machine = load_instances().get((provider.name, ours))
        if machine is not None and machine.num_gpus == item.gpu_count:
            return machine
    is_one_size = len(set(counts[name])) == 1
    if not is_one_size and provider.locations is Locations.ZONE:
        gaps["GPUs attached to a host that the catalog lacks"] += 1
        return None
    if provider.machines is RowKind.HOSTS:  # a single host goes by its GPUs, which others have, too
        name, is_one_size = item.gpu_name, False
    included = ((item.cpu, "vCPU"), (item.memory, "GB RAM"), (item.disk_size, "GB disk"))
    return InstanceType(
        provider=provider.name,
        instance_type=name if is_one_size else f"{item.gpu_count}x {name}",
        gpu=_gpu(item, provider, gaps),
        num_gpus=item.gpu_count,
        vcpus=item.cpu or None,
        minimum_billed_s=provider.minimum_billed_s,
        includes=tuple(f"{amount:g} {what}" for amount, what in included if amount),
        source=retrieval.source,
        as_of=retrieval.at.date(),
    )


def _offer(item: CatalogItem, provider: Provider, machine: InstanceType, retrieval: Retrieval) -> Offer:
    region = item.location or ANYWHERE
    if provider.locations is Locations.ZONE:
        region = region.rpartition("-")[0] or region
    notes = [retrieval.source]
    if item.spot and provider.spot_is:
        notes.append(provider.spot_is)
    if is_any(provider.community_locations, region):
        notes.append(COMMUNITY)
    offer = machine.offer(
        region=region,
        market=Market.SPOT if item.spot else Market.ON_DEMAND,
        usd_per_h=item.price,
        retrieved_at=retrieval.at,
        source=", ".join(notes),
    )
    return replace(offer, billed_step_s=provider.billed_step_s)


def _gpu(item: CatalogItem, provider: Provider, gaps: Counter[str]) -> str:
    members = matching_gpus(item.gpu_name or "", item.gpu_memory, item.instance_name)
    form = known_form(provider.name, item.instance_name)
    if len(members) > 1 and form is not None:
        members = tuple(gpu for gpu in members if form in gpu.name) or members
    if len(members) == 1:
        return members[0].name
    memory = f" {item.gpu_memory:g} GB" if item.gpu_memory else ""
    own_name = f"{provider.name} {item.gpu_name}{memory}"
    choices = " or ".join(gpu.name for gpu in members)
    what = f"may be {choices}" if members else "is not in the catalog"
    gaps[f"{own_name} {what}, so no time can be predicted"] += 1
    return own_name


@cache
def matching_gpus(name: str, memory_gb: float | None, instance_name: str) -> tuple[GpuSpec, ...]:
    """GPUs of our catalog that a row may mean.

    Args:
        name: gpuhunt's, which has no spaces and no form: ``"A100"``, ``"RTX4090"``, ``"H100NVL"``.
        memory_gb: of one GPU, in GB or GiB as the provider has it; None if unknown.
        instance_name: the provider's, which may tell the form: ``"gpu_8x_h100_sxm5"``.

    >>> [gpu.name for gpu in matching_gpus("A100", 80.0, "gpu_8x_a100_80gb_sxm4")]
    ['A100-SXM-80GB']
    """
    spellings = [name] if memory_gb is None else [name, f"{name} {memory_gb:g}GB"]
    named = {gpu.name: gpu for text in spellings for gpu in _by_squeezed_name().get(_squeezed(text), ())}
    fitting = [
        gpu
        for gpu in named.values()
        if memory_gb is None
        or any(abs(gpu.memory_bytes / unit - memory_gb) <= _TOLERANCE * memory_gb for unit in (GB, GIB))
    ]
    forms = [form for form in _FORMS if form in instance_name.upper()]
    if len(fitting) > 1 and forms:
        fitting = [gpu for gpu in fitting if any(form in gpu.name for form in forms)]
    return tuple(fitting)


def _squeezed(name: str) -> str:
    return normal_form(name).replace("-", "")


@cache
def _by_squeezed_name() -> Mapping[str, tuple[GpuSpec, ...]]:
    names: dict[str, dict[str, GpuSpec]] = defaultdict(dict)
    for gpu in load_gpus().values():
        for name in (gpu.name, *gpu.aliases, *gpu.families):
            names[_squeezed(name)][gpu.name] = gpu
    return {name: tuple(gpus.values()) for name, gpus in names.items()}


CATALOG_URL = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3"
"""gpuhunt's bucket: the default of its own variable, `URL_VARIABLE`."""

URL_VARIABLE = "GPUHUNT_CATALOG_URL"
UNPACKED_BYTES = 128 * MB
"""Most that one catalog may hold: a provider's rows are a few MB."""
_VERSION = re.compile(r"\d{8}(-[\w.-]{1,32})?")
_CHUNK_BYTES = 2**20


def fetch_catalog(provider: str, url: str, folder: Path, allowance: Allowance) -> str:
    """Put a provider's newest catalog, by gpuhunt's name, into a folder; returns its version.

    Raises PublicFileError, OSError: none that can be read, or the folder cannot be written.
    """
    version = download(f"{url}/{provider}/version", allowance).decode("utf-8", "replace").strip()
    try:
        day_of(version)
    except ValueError:
        raise PublicFileError(
            f"its version is {version[:40]!r}, which names no day, so the age of its prices is unknown"
        ) from None
    packed = download(f"{url}/{provider}/{version}/catalog.zip", allowance)
    (folder / f"{provider}.csv").write_bytes(_unpacked(packed, f"{provider}.csv"))
    return version


def day_of(version: str) -> datetime:
    """Midnight of the day of a version such as ``20260720-1``. Raises ValueError: it names none."""
    if not _VERSION.fullmatch(version):
        raise ValueError(f"{version!r} names no day")
    return datetime.strptime(version[:8], "%Y%m%d").replace(tzinfo=UTC)


def _unpacked(packed: bytes, name: str) -> bytes:
    """One file of an archive; its own word of how long it is does not count."""
    content = bytearray()
    try:
        with zipfile.ZipFile(BytesIO(packed)) as archive, archive.open(name) as file:
            while chunk := file.read(_CHUNK_BYTES):
                content += chunk
                if len(content) > UNPACKED_BYTES:
                    raise PublicFileError(f"its archive unpacks to more than {UNPACKED_BYTES // MB} MB")
    except KeyError:
        raise PublicFileError(f"its archive holds no {name}: update gpuhunt and advisor") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError):
        raise PublicFileError(
            "its archive cannot be unpacked: it was cut off, or is none. Try again"
        ) from None
    return bytes(content)


NAME = "gpuhunt"
PROVIDERS = ("aws", "gcp")
"""Whose catalogs are read unless the settings name others."""

CATALOG_DIR = "GPUHUNT_CATALOG_DIR"
ASKED_WITHIN_S = 30.0
"""For one provider that gpuhunt asks itself."""
_NUM_THREADS = 8
_MOST_MESSAGES = 3


class GpuhuntSource:
    """Offers of the published catalogs, or of a folder of them, a part for each provider (our names)."""

    name = NAME

    def __init__(
        self,
        providers: Sequence[str],
        catalog_dir: Path | None = None,
        url: str = CATALOG_URL,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._providers = providers
        self._catalog_dir = catalog_dir
        self._url = url
        self._clock = clock
        self.capabilities = Capabilities(
            providers=tuple(providers), markets=(Market.ON_DEMAND, Market.SPOT), is_live=True, knows_all=False
        )

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        """Offers that match, of all regions; a provider that cannot be read fails alone.

        A catalog is one scope: narrowed to some regions, it would replace what was known of all others.
        """
        query = replace(query, regions=())
        named = [name for name in self._providers if not query.providers or name in query.providers]
        wanted = [load_providers()[name] for name in named]
        published = [provider for provider in wanted if provider.access is PriceAccess.PUBLISHED]
        fetched = published if self._catalog_dir is None else []
        with temporary_folder("prices") as temporary:
            folder, allowance = self._catalog_dir or temporary, Allowance()

            def fetch(provider: Provider) -> tuple[Provider, str, str | None]:
                """With the version of its catalog, or why there is none."""
                whose = f"gpuhunt's catalog of {provider.name}"
                try:
                    return provider, fetch_catalog(provider.gpuhunt_name, self._url, folder, allowance), None
                except PublicFileError as error:
                    return provider, "", f"{whose}: {error}"
                except OSError as error:
                    return provider, "", f"{whose} cannot be kept: {error.strerror}"

            jobs = [partial(fetch, provider) for provider in fetched]
            for provider, catalog, failure in completed(jobs, num_threads=_NUM_THREADS, name=NAME):
                if failure is None:
                    yield self._part(provider, folder, catalog, query)
                else:
                    yield Part(scope=provider.name, failure=failure)
            # Those that gpuhunt asks itself take the longest, and come last.
            for provider in (provider for provider in wanted if provider not in fetched):
                yield self._part(provider, folder, None, query)

    def freshness(self) -> tuple[()]:
        """Nothing is held here."""
        return ()

    def credentials(self) -> Credentials:
        """The published catalogs need none."""
        return Credentials.NOT_NEEDED

    def _part(self, provider: Provider, folder: Path, catalog: str | None, query: OfferQuery) -> Part:
        try:
            with _messages() as messages, _environment(folder):
                items = _items(provider)
            offers, gaps = offers_of(items, provider, self._retrieval(provider, folder, catalog))
        except LateError as error:
            return Part(scope=provider.name, failure=f"{error}: try again later")
        except FileNotFoundError as error:
            where = Path(error.filename)
            return Part(scope=provider.name, failure=f"there is no {where.name} in {str(where.parent)!r}")
        except Exception as error:  # noqa: BLE001 - a provider fails alone, however it does
            return Part(scope=provider.name, failure=error_in_words(error))
        few, more = messages[:_MOST_MESSAGES], len(messages) - _MOST_MESSAGES
        few += [f"... and {more} more messages of gpuhunt"] if more > 0 else []
        if not offers:
            why = "; ".join((*few, *gaps)) or "it names no machine with a GPU"
            return Part(scope=provider.name, failure=f"no price of {provider.name} could be read: {why}")
        return Part(scope=provider.name, offers=tuple(filter(query.matches, offers)), gaps=(*gaps, *few))

    def _retrieval(self, provider: Provider, folder: Path, catalog: str | None) -> Retrieval:
        source = f"gpuhunt {version('gpuhunt')}"
        if catalog is not None:
            return Retrieval(at=day_of(catalog), source=f"{source}, catalog {catalog}")
        if provider.access is PriceAccess.ASKED:
            return Retrieval(at=self._clock(), source=f"{source}, asked directly")
        modified_s = (folder / f"{provider.gpuhunt_name}.csv").stat().st_mtime
        return Retrieval(at=datetime.fromtimestamp(modified_s, UTC), source=source)


def gpuhunt_source(options: Mapping[str, object]) -> GpuhuntSource:
    """The entry point: options ``providers`` (a list), and ``catalog_dir`` or ``url`` of the catalogs.

    Raises ConfigError: another option is given, one of these is of the wrong kind, or a provider is unknown.
    """
    check_options(NAME, options, ("providers", "catalog_dir", "url"))
    folder = _text(options, "catalog_dir", "a folder", os.environ.get(CATALOG_DIR))
    url = _text(options, "url", "an address", os.environ.get(URL_VARIABLE)) or CATALOG_URL
    return GpuhuntSource(
        _provider_names(options.get("providers")),
        Path(os.path.expanduser(folder)) if folder else None,  # noqa: PTH111
        url.rstrip("/"),
    )


def _text(options: Mapping[str, object], name: str, what: str, default: str | None) -> str | None:
    value = options.get(name) or default
    if not isinstance(value, str | None):
        raise ConfigError(f"prices.options.gpuhunt.{name} must be {what}; got {value!r}.")
    return value


def _provider_names(names: object) -> tuple[str, ...]:
    """Our names of providers, each once; gpuhunt's will do."""
    if names is None:
        return PROVIDERS
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"prices.options.gpuhunt.providers must be a list such as [azure]; got {names!r}.")
    known = load_providers()
    ours = {provider.gpuhunt_name: name for name, provider in known.items()} | {name: name for name in known}
    for name in names:
        if name.lower() not in ours:
            raise ConfigError(
                f"gpuhunt has no prices of {name!r} (prices.options.gpuhunt.providers)."
                f"{did_you_mean(name, known)} It has those of {', '.join(known)}."
            )
    return tuple(dict.fromkeys(ours[name.lower()] for name in names))


def _items(provider: Provider) -> list[CatalogItem]:
    """Rows with a GPU of a provider: of the folder that the environment names, or asked for directly."""
    import gpuhunt

    name, catalog = provider.gpuhunt_name, gpuhunt.Catalog(auto_reload=False)
    query: Callable[[], list[CatalogItem]] = partial(catalog.query, provider=name, min_gpu_count=1)
    if provider.access is not PriceAccess.ASKED:
        return query()
    module = importlib.import_module(f"gpuhunt.providers.{name}")
    kinds = [kind for kind in vars(module).values() if getattr(kind, "NAME", "") == name]
    catalog.add_provider(kinds[0].from_env())
    return within(ASKED_WITHIN_S, query)


@contextmanager
def _environment(catalog_dir: Path) -> Iterator[None]:
    """Tells gpuhunt of a folder in the only way there is."""
    before = os.environ.get(CATALOG_DIR)
    os.environ[CATALOG_DIR] = str(catalog_dir)
    try:
        yield
    finally:
        del os.environ[CATALOG_DIR]
        if before is not None:
            os.environ[CATALOG_DIR] = before


@contextmanager
def _messages() -> Iterator[list[str]]:
    """What gpuhunt logs meanwhile; it tells in no other way of rows that it skips."""
    messages: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("gpuhunt")
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
