"""What commands share: options, settings with flags on top, warnings, and a trace from what was given."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from advisor.cli.completion import backend_names, gpu_names, provider_names, region_names
from advisor.cli.help_lines import Click
from advisor.cli.listening import TERMINAL, warn
from advisor.core.limits import MAX_SAMPLES, MAX_WORLD
from advisor.core.values import Market
from advisor.report.printing import Format

if TYPE_CHECKING:
    from advisor.config.layers import Config

FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="How to print results.", case_sensitive=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
PythonOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Interpreter that runs the script; default: the active virtual environment's.",
    ),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Give up on profiling after this long, such as 10m."),
]
BackendOption = Annotated[
    str | None,
    typer.Option(
        metavar="auto|cuda|fake|cpu",
        autocompletion=backend_names,
        help="Measure on this machine's GPU (cuda), without one (fake), or run on the CPU (cpu);"
        " auto, the default, is cuda where there is a free GPU.",
    ),
]
FakeDataOption = Annotated[
    str | None,
    typer.Option(
        metavar="SHAPE",
        help="Feed the script samples of this form instead of its data: 3x224x224:float32,1000:class.",
    ),
]
SamplesOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, max=MAX_SAMPLES, help="How many fake samples a missing data set has."),
]
WorldOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=MAX_WORLD,
        help="Profile a distributed script as one of N processes of one GPU each, as under torchrun.",
    ),
]
SandboxOption = Annotated[
    bool | None,
    typer.Option(
        "--sandbox/--no-sandbox",
        help="Profile in bubblewrap: the script can write nothing and has no network.",
        show_default=False,
    ),
]
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
OriginGpuOption = Annotated[
    str | None,
    typer.Option(
        metavar="GPU",
        help="Where a profiler's export was recorded, if it does not say.",
        autocompletion=gpu_names,
    ),
]
ProviderOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="aws, gcp. Repeatable.", autocompletion=provider_names),
]
OfflineOption = Annotated[
    bool | None, typer.Option("--offline", help="Never touch the network.", show_default=False)
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


LoaderOption = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="CPU seconds to load one sample; default: measured, else assumed by kind of sample.",
    ),
]


class ScriptCommand(TyperCommand):
    """A command that takes a script: an unknown option is most likely the script's."""

    def parse_args(self, ctx: Click, args: list[str]) -> list[str]:
        """Parse, and say where options of the script belong."""
        try:
            return super().parse_args(ctx, args)
        except Exception as raised:
            if type(raised).__name__ == "NoSuchOption":
                error: Click = raised
                error.message = f"{error.format_message()}. {_script_hint(error.option_name)}"
                error.possibilities = None
            raise


def _script_hint(option: str) -> str:
    if option == "-m":
        return "Give the path of the module's file, such as pkg/train.py: relative imports work."
    return f"Arguments of the script follow `--`, such as: train.py -- {option} ..."


def chosen_format(output: Format, as_json: bool) -> Format:
    """``--json`` wins over the default of ``--format``."""
    return Format.JSON if as_json else output


TRUSTS_PROJECT: ContextVar[bool] = ContextVar("TRUSTS_PROJECT", default=False)
"""Whether ``--trust-project`` was given: an option of the root command, which no command hands on."""


def load_settings(flags: Mapping[str, object] | None = None) -> Config:
    """All layers with flags on top by dotted name; nothing is said."""
    from advisor.config.layers import load_config

    return load_config(flags, trust_project=TRUSTS_PROJECT.get(), name_of=TERMINAL.name_of)


def settings_with(**flags: object) -> Config:
    """All layers with this command's flags on top (``cloud__max_gpus=4``); warns of strays and refusals."""
    config = load_settings({name.replace("__", "."): value for name, value in flags.items()})
    warn(config.warnings)
    if config.refused:
        from advisor.report.project import refused_in_words

        warn(map(refused_in_words, config.refused))
    return config


def script_settings(
    python: Path | None,
    timeout: str | None,
    backend: str | None,
    fake_data: str | None,
    samples: int | None,
    sandbox: bool | None,
) -> dict[str, object]:
    """How a script is profiled, for `settings_with`."""
    return {
        "profile__python": python,
        "profile__timeout": timeout,
        "profile__backend": backend,
        "profile__fake_data": fake_data,
        "profile__samples": samples,
        "profile__sandbox": sandbox,
    }
