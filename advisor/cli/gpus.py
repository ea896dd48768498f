"""``advisor gpus``: the catalog."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.common import FormatOption, JsonOption, chosen_format
from advisor.report.rows import Format


def gpus(
    names: Annotated[
        list[str] | None, typer.Argument(help="GPUs or families to compare; default: all.")
    ] = None,
    vendor: Annotated[str | None, typer.Option(help="Only this vendor's: nvidia, amd.")] = None,
    min_memory_gib: Annotated[
        float | None, typer.Option(help="Only GPUs with at least this much memory.")
    ] = None,
    relative_to: Annotated[
        str | None, typer.Option(metavar="GPU", help="Show figures as multiples of this GPU's.")
    ] = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Show, filter and compare the GPUs of the catalog."""
    from advisor.errors import InputError
    from advisor.gpus import load_gpus, resolve_gpu, resolve_gpus
    from advisor.report.gpus import print_gpus
    from advisor.units import GIB

    catalog = load_gpus()
    specs = [spec for name in names for spec in resolve_gpus(name)] if names else catalog.values()
    vendors = {spec.vendor.lower(): spec.vendor for spec in catalog.values()}
    if vendor is not None and vendor.lower() not in vendors:
        raise InputError(
            f"no GPU of vendor {vendor!r} in the catalog: choose of {', '.join(sorted(vendors))}."
        )
    least_bytes = (min_memory_gib or 0) * GIB
    kept = {
        spec.name: spec
        for spec in specs
        if (vendor is None or spec.vendor == vendors[vendor.lower()]) and spec.memory_bytes >= least_bytes
    }
    base = resolve_gpu(relative_to) if relative_to else None
    print_gpus(list(kept.values()), chosen_format(output, as_json), base)
