"""Options that several commands have, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.completion import gpu_names, provider_names, region_names, split_names, vendor_names
from advisor.core.values import Market
from advisor.report.printing import Format

FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="How to print results.", case_sensitive=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
ArgumentsArgument = Annotated[
    list[str] | None, typer.Argument(help="Arguments of the script, after --.", metavar="-- ARGS")
]
SourceArgument = Annotated[
    Path, typer.Argument(help="A training script or a saved trace.", metavar="SCRIPT_OR_TRACE")
]
GpuOption = Annotated[
    list[str] | None,
    typer.Option(
        "--gpu",
        "-g",
        metavar="GPU",
        help="GPU or family, with counts: L4, A100:8, H100:1..8. Repeatable.",
        autocompletion=gpu_names,
    ),
]
GpusOption = Annotated[
    list[str] | None,
    typer.Option(
        "--gpu",
        "-g",
        metavar="GPU",
        help="GPU or family, with counts of all nodes: L4, A100:8, H100:1..8, H100:8x4. Repeatable.",
        autocompletion=gpu_names,
    ),
]
OriginGpuOption = Annotated[
    str | None,
    typer.Option(
        metavar="GPU",
        help="Where a profiler's export was recorded, if it does not say.",
        autocompletion=gpu_names,
    ),
]
LocalGpuOption = Annotated[
    str | None,
    typer.Option(
        metavar="GPU", help="GPU of this machine; default: what nvidia-smi says.", autocompletion=gpu_names
    ),
]
SupposeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--suppose",
        metavar="SPLIT",
        help="Suppose a script that divides its model: zero-1, zero-2, zero-3 (FSDP), hybrid, tensor-N,"
        " pipeline-N. Repeatable.",
        autocompletion=split_names,
    ),
]
AllowVendorOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Also GPUs of this vendor (amd). Repeatable.", autocompletion=vendor_names
    ),
]
LoaderOption = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="CPU seconds to load one sample; default: measured, else assumed by kind of sample.",
    ),
]
ProviderOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="aws, gcp. Repeatable.", autocompletion=provider_names),
]
RegionOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="With wildcards: us-*. Repeatable.", autocompletion=region_names),
]
MarketOption = Annotated[
    list[Market] | None,
    typer.Option(metavar="MARKET", help="on-demand, spot. Repeatable.", case_sensitive=False),
]
MaxAgeOption = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Refuse older prices, such as 30d.")
]
PythonOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Interpreter that runs the script; default: the active virtual environment's.",
    ),
]
IterationsOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Or how many optimizer steps, of as many GPUs as it was profiled for."),
]
IterationsPerEpochOption = Annotated[
    int | None, typer.Option(metavar="N", help="For data that does not know its length; counted likewise.")
]
PolicyOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Policy file to obey, besides those of the settings. Repeatable."),
]
