"""``advisor gpus``: the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from advisor.cli.common import FormatOption, JsonOption, chosen_format
from advisor.cli.completion import gpu_names, vendor_names
from advisor.report.rows import Format

if TYPE_CHECKING:
    from advisor.core.values import GpuSpec


def gpus(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="GPUs or families to compare; default: all.", autocompletion=gpu_names),
    ] = None,
    vendor: Annotated[
        str | None, typer.Option(help="Only this vendor's: nvidia, amd.", autocompletion=vendor_names)
    ] = None,
    min_memory_gib: Annotated[
        float | None, typer.Option(help="Only GPUs with at least this much memory.")
    ] = None,
    relative_to: Annotated[
        str | None,
        typer.Option(
            metavar="GPU", help="Show figures as multiples of this GPU's.", autocompletion=gpu_names
        ),
    ] = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show, filter and compare the GPUs of the catalog."""
    from advisor.core.gpus import load_gpus, resolve_gpu
    from advisor.report.gpus import print_gpus
    from advisor.service.limits import known_vendors

    specs = _named(names) if names else tuple(load_gpus().values())
    base = resolve_gpu(relative_to) if relative_to else None
    kept: Sequence[GpuSpec] = specs
    if vendor is not None:
        vendors = known_vendors([vendor])
        kept = _left(kept, (spec for spec in kept if spec.vendor in vendors), f"--vendor {vendor}")
    if min_memory_gib is not None:
        kept = _with_memory(kept, min_memory_gib)
    print_gpus(kept, chosen_format(output, as_json), base)


def _named(names: Iterable[str]) -> tuple[GpuSpec, ...]:
    """The GPUs of names and families, each once."""
    from advisor.core.errors import InputError
    from advisor.core.gpus import parse_gpu_request

    found: dict[str, GpuSpec] = {}
    for request in map(parse_gpu_request, names):
        if request.counts:
            raise InputError(
                f"{request.text!r} asks for a number of GPUs, and the catalog is about one: leave it out."
                " `advisor prices --gpu` takes numbers."
            )
        found |= {spec.name: spec for spec in request.gpus}
    return tuple(found.values())


def _with_memory(specs: Sequence[GpuSpec], least_gib: float) -> Sequence[GpuSpec]:
    from advisor.core.arguments import check_number
    from advisor.core.limits import MAX_MEMORY_GIB
    from advisor.core.units import GIB

    check_number("--min-memory-gib", least_gib, least=0, most=MAX_MEMORY_GIB)
    most_gib = max(spec.memory_bytes for spec in specs) / GIB
    large = (spec for spec in specs if spec.memory_bytes >= least_gib * GIB)
    return _left(specs, large, f"--min-memory-gib {least_gib:g}", f", the largest with {most_gib:.1f} GiB")


def _left(
    before: Sequence[GpuSpec], after: Iterable[GpuSpec], limit: str, about: str = ""
) -> Sequence[GpuSpec]:
    """What a limit leaves; where that is nothing, it is the limit that has to give way.

    Raises:
        NoOfferError: says what there is without it.
    """
    from advisor.core.errors import NoOfferError

    kept = tuple(after)
    if kept:
        return kept
    names = ", ".join(spec.name for spec in before[:3]) + (", ..." if len(before) > 3 else "")
    raise NoOfferError(f"no GPU is left with {limit}: without it there are {len(before)}{about} ({names}).")
