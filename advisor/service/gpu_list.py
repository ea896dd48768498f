"""GPUs of the catalog, filtered."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from advisor.core.errors import InputError, NoOfferError
from advisor.core.gpus import load_gpus, parse_gpu_request
from advisor.core.limits import MAX_MEMORY_GIB, check_number
from advisor.core.units import GIB
from advisor.core.values import GpuSpec
from advisor.service.listening import Listener
from advisor.service.prices.query_limits import known_vendors


@dataclass(frozen=True, slots=True, kw_only=True)
class GpusRequest:
    """Which GPUs to list.

    Attributes:
        names: GPUs or families; none for all of the catalog.
        vendor: only this one's.
        min_memory_gib: only GPUs with at least so much memory.
    """

    names: tuple[str, ...] = ()
    vendor: str | None = None
    min_memory_gib: float | None = None


def list_gpus(request: GpusRequest, listener: Listener) -> tuple[GpuSpec, ...]:
    """The GPUs of names and families, each once.

    Raises:
        InputError: a name with a number of GPUs, an unknown vendor, or a size of memory that cannot be.
        UnknownGpuError: a name that no GPU and no family has.
        NoOfferError: none is left; says what there is without the limit that leaves none.
    """
    specs = _named(request.names) if request.names else tuple(load_gpus().values())
    if request.vendor is not None:
        vendors = known_vendors([request.vendor])
        limit = f"{listener.name_of('vendor')} {request.vendor}"
        specs = _left(specs, (spec for spec in specs if spec.vendor in vendors), limit)
    if request.min_memory_gib is not None:
        specs = _with_memory(specs, request.min_memory_gib, listener.name_of("min_memory_gib"))
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


def _with_memory(specs: Sequence[GpuSpec], least_gib: float, name: str) -> tuple[GpuSpec, ...]:
    check_number(name, least_gib, least=0, most=MAX_MEMORY_GIB)
    most_gib = max(spec.memory_bytes for spec in specs) / GIB
    large = (spec for spec in specs if spec.memory_bytes >= least_gib * GIB)
    return _left(specs, large, f"{name} {least_gib:g}", f", the largest with {most_gib:.1f} GiB")


def _left(
    before: Sequence[GpuSpec], after: Iterable[GpuSpec], limit: str, about: str = ""
) -> tuple[GpuSpec, ...]:
    """What a limit leaves; where that is nothing, it is the limit that has to give way."""
    if kept := tuple(after):
        return kept
    names = ", ".join(spec.name for spec in before[:3]) + (", ..." if len(before) > 3 else "")
    raise NoOfferError(f"no GPU is left with {limit}: without it there are {len(before)}{about} ({names}).")
