"""Rows of gpuhunt's catalogs -> offers under our GPU names, and what is missing from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from math import inf
from typing import TYPE_CHECKING

from advisor.core.globs import is_any
from advisor.core.gpus import load_gpus, normal_form
from advisor.core.units import GB, GIB, format_duration
from advisor.core.values import GpuSpec, Market, Offer
from advisor.pricing.instance_types import InstanceType, load_instances
from advisor.pricing.providers import Locations, Machines, Provider, known_form
from advisor.pricing.sources.protocol import ANYWHERE

if TYPE_CHECKING:
    from gpuhunt import CatalogItem


_FORMS = ("PCIE", "SXM", "NVL")
# What a process may use is a little less than what is sold; 80 and 94 GB must stay apart.
_TOLERANCE = 0.07
# Quotes have four digits.
_ROUNDING = 1.001
COMMUNITY = "community host"
"""What the source of a price says of a machine that belongs to somebody else than the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """When a provider's rows were collected, and what to name as their source."""

    at: datetime
    source: str


def offers_of(
    items: Sequence[CatalogItem], provider: Provider, retrieval: Retrieval
) -> tuple[tuple[Offer, ...], tuple[str, ...]]:
    """Offers of one provider, the cheapest of each machine, place and market, and gaps in words.

    Args:
        items: gpuhunt's ``CatalogItem``s with at least one GPU.
        provider: whose they are.
        retrieval: date and source of all of them.
    """
    gaps: Counter[str] = Counter()
    rentable = [item for item in items if _is_rentable(item, provider, gaps)]
    rentable = _above_floor(rentable, provider, gaps)
    counts = _counts_by_name(rentable)
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
    counted = [f"{text} ({number} of {len(items)} rows)" for text, number in gaps.items()]
    return tuple(offers.values()), (*counted, *(_terms(provider) if offers else ()))


def _terms(provider: Provider) -> Iterator[str]:
    if not provider.are_terms_known:
        yield (
            f"billing terms are not known: at least {format_duration(provider.minimum_billed_s)} in steps of"
            f" {format_duration(provider.billed_step_s)} assumed, the dearest known of others"
        )


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
    """Without spot quotes that nobody bids at."""
    if provider.spot_floor_share is None:
        return [*items]
    share = provider.spot_floor_share * _ROUNDING
    listed = {(item.instance_name, item.location): item.price for item in items if not item.spot}
    kept = [
        item
        for item in items
        if not item.spot or item.price > share * listed.get((item.instance_name, item.location), 0.0)
    ]
    if num_floor := len(items) - len(kept):
        gaps[f"spot quotes at the floor of {provider.spot_floor_share:.0%} of on-demand (no demand)"] = (
            num_floor
        )
    return kept


def _counts_by_name(items: Sequence[CatalogItem]) -> Mapping[str, set[int]]:
    """Numbers of GPUs that go by one name: some providers name the GPU, not the machine."""
    counts: dict[str, set[int]] = {}
    for item in items:
        counts.setdefault(item.instance_name, set()).add(item.gpu_count)
    return counts


def _machine(
    item: CatalogItem,
    provider: Provider,
    counts: Mapping[str, set[int]],
    retrieval: Retrieval,
    gaps: Counter[str],
) -> InstanceType | None:
    """The machine of our catalog, else as the row tells it; None where the row is no machine of its own."""
    if (known := _known_machine(item, provider)) is not None:
        return known
    is_one_size = len(counts[item.instance_name]) == 1
    if not is_one_size and provider.locations is Locations.ZONE:
        gaps["GPUs attached to a host that the catalog lacks"] += 1
        return None
    return _told_machine(item, provider, is_one_size, retrieval, gaps)


def _told_machine(
    item: CatalogItem, provider: Provider, is_one_size: bool, retrieval: Retrieval, gaps: Counter[str]
) -> InstanceType:
    """The machine as its row tells it; a single host goes by its GPUs, which others have, too."""
    name = item.instance_name
    if provider.machines is Machines.HOSTS:
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


def _known_machine(item: CatalogItem, provider: Provider) -> InstanceType | None:
    """GPUs attached to a host stand in its name: ``n1-standard-8+2xT4``."""
    for name in (item.instance_name, f"{item.instance_name}+{item.gpu_count}x{item.gpu_name}"):
        machine = load_instances().get((provider.name, name))
        if machine is not None and machine.num_gpus == item.gpu_count:
            return machine
    return None


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
    fitting = [gpu for gpu in named.values() if _fits(gpu, memory_gb)]
    forms = [form for form in _FORMS if form in instance_name.upper()]
    if len(fitting) > 1 and forms:
        fitting = [gpu for gpu in fitting if any(form in gpu.name for form in forms)]
    return tuple(fitting)


def _fits(gpu: GpuSpec, memory_gb: float | None) -> bool:
    return memory_gb is None or any(
        abs(gpu.memory_bytes / unit - memory_gb) <= _TOLERANCE * memory_gb for unit in (GB, GIB)
    )


def _squeezed(name: str) -> str:
    return normal_form(name).replace("-", "")


@cache
def _by_squeezed_name() -> Mapping[str, tuple[GpuSpec, ...]]:
    names: dict[str, dict[str, GpuSpec]] = {}
    for gpu in load_gpus().values():
        for name in (gpu.name, *gpu.aliases, *gpu.families):
            names.setdefault(_squeezed(name), {})[gpu.name] = gpu
    return {name: tuple(gpus.values()) for name, gpus in names.items()}
