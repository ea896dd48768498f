"""Rows of gpuhunt's catalogs -> offers under our GPU names, and what is missing from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from math import inf
from typing import TYPE_CHECKING

from advisor.core.gpus import load_gpus, normal_form
from advisor.core.units import GB, GIB
from advisor.core.values import GpuSpec, Market, Offer
from advisor.pricing.catalog.instance_types import InstanceType
from advisor.pricing.sources.protocol import ANYWHERE

if TYPE_CHECKING:
    from gpuhunt import CatalogItem


_FORMS = ("PCIE", "SXM", "NVL")
# What a process may use is a little less than what is sold; 80 and 94 GB must stay apart.
_TOLERANCE = 0.07


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """When a provider's rows were collected, and what to name as their source."""

    at: datetime
    source: str


def offers_of(
    items: Sequence[CatalogItem], retrieval: Retrieval
) -> tuple[tuple[Offer, ...], tuple[str, ...]]:
    """Offers of one provider, the cheapest of each machine, place and market, and gaps in words.

    Args:
        items: gpuhunt's ``CatalogItem``s with at least one GPU.
        retrieval: date and source of all of them.
    """
    gaps: Counter[str] = Counter()
    rentable = [item for item in items if _is_rentable(item, gaps)]
    counts = _counts_by_name(rentable)
    offers: dict[tuple[str, str, Market], Offer] = {}
    for item in sorted(rentable, key=lambda item: item.price):
        name = item.instance_name
        instance_type = name if len(counts[name]) == 1 else f"{item.gpu_count}x {name}"
        try:
            machine = _machine(item, instance_type, _gpu(item, gaps), retrieval)
            offer = machine.offer(
                region=item.location or ANYWHERE,
                market=Market.SPOT if item.spot else Market.ON_DEMAND,
                usd_per_h=item.price,
                retrieved_at=retrieval.at,
                source=retrieval.source,
            )
            offers.setdefault((offer.instance_type, offer.region, offer.market), offer)
        except Exception:  # noqa: BLE001 - a row fails alone, whatever is in it
            gaps["cannot be read"] += 1
    told = tuple(f"{text} ({number} of {len(items)} rows)" for text, number in gaps.items())
    return tuple(offers.values()), told


def _is_rentable(item: CatalogItem, gaps: Counter[str]) -> bool:
    name, data = item.instance_name, item.provider_data
    if not isinstance(item.price, int | float) or not 0 < item.price < inf:
        gaps["no price"] += 1
    elif not (name and isinstance(name, str) and isinstance(item.gpu_count, int) and item.gpu_count >= 1):
        gaps["no name or no number of GPUs"] += 1
    elif isinstance(data, Mapping) and data.get("pod_counts"):
        gaps["rented only as a cluster of several machines"] += 1
    else:
        return True
    return False


def _counts_by_name(items: Sequence[CatalogItem]) -> Mapping[str, set[int]]:
    """Numbers of GPUs that go by one name: some providers name the GPU, not the machine."""
    counts: dict[str, set[int]] = {}
    for item in items:
        counts.setdefault(item.instance_name, set()).add(item.gpu_count)
    return counts


def _machine(item: CatalogItem, instance_type: str, gpu: str, retrieval: Retrieval) -> InstanceType:
    included = ((item.cpu, "vCPU"), (item.memory, "GB RAM"), (item.disk_size, "GB disk"))
    return InstanceType(
        provider=item.provider,
        instance_type=instance_type,
        gpu=gpu,
        num_gpus=item.gpu_count,
        vcpus=item.cpu or None,
        includes=tuple(f"{amount:g} {what}" for amount, what in included if amount),
        source=retrieval.source,
        as_of=retrieval.at.date(),
    )


def _gpu(item: CatalogItem, gaps: Counter[str]) -> str:
    members = matching_gpus(item.gpu_name or "", item.gpu_memory, item.instance_name)
    if len(members) == 1:
        return members[0].name
    memory = f" {item.gpu_memory:g} GB" if item.gpu_memory else ""
    own_name = f"{item.provider} {item.gpu_name}{memory}"
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
    found = [gpu for gpu in named.values() if _fits(gpu, memory_gb)]
    told = [form for form in _FORMS if form in instance_name.upper()]
    if len(found) > 1 and told:
        found = [gpu for gpu in found if any(form in gpu.name for form in told)]
    return tuple(found)


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
