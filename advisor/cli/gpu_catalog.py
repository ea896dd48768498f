"""``advisor gpus``: the catalog."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.cli.common import chosen_format
from advisor.cli.completion import gpu_names, vendor_names
from advisor.cli.shared_options import FormatOption, JsonOption
from advisor.report.printing import Format, print_document


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
    from advisor.cli.listening import TERMINAL
    from advisor.core.gpus import resolve_gpu
    from advisor.report.gpu_tables import gpus_document
    from advisor.service.gpu_list import GpusRequest, list_gpus

    request = GpusRequest(names=tuple(names or ()), vendor=vendor, min_memory_gib=min_memory_gib)
    base = resolve_gpu(relative_to) if relative_to else None
    print_document(gpus_document(list_gpus(request, TERMINAL), base), chosen_format(output, as_json))
