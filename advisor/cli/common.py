"""What commands share: options, settings with flags on top, warnings, and a trace from what was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from advisor.cli.completion import backend_names, gpu_names, provider_names, region_names
from advisor.cli.progress import progress
from advisor.core.limits import MAX_SAMPLES, MAX_WORLD
from advisor.core.values import Market
from advisor.report.plain import few, print_message
from advisor.report.printing import Format

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.core.values import Trace

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


# Settings of these names may be there for scripts; as flags they are meant for this one.
_FOR_SCRIPTS = ("backend", "fake_data", "samples", "sandbox", "python", "timeout")


class ScriptCommand(TyperCommand):
    """A command that takes a script: an unknown option is most likely the script's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and say where options of the script belong."""
        try:
            return super().parse_args(ctx, args)
        except Exception as raised:
            # Which package the class comes from depends on typer's version.
            if type(raised).__name__ == "NoSuchOption":
                error: Any = raised
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


def load_settings(flags: Mapping[str, Any] | None = None) -> Config:
    """All layers with flags on top by dotted name; nothing is said."""
    from advisor.config.layers import load_config

    return load_config(flags, trust_project=TRUSTS_PROJECT.get())


def settings_with(**flags: Any) -> Config:
    """All layers with this command's flags on top (``cloud__max_gpus=4``); warns of strays and refusals."""
    config = load_settings({name.replace("__", "."): value for name, value in flags.items()})
    warn(config.warnings)
    warn(refused_in_words(config))
    return config


def refused_in_words(config: Config) -> list[str]:
    """A sentence for each line of the project's file that does not count."""
    if not config.refused:
        return []
    from advisor.report.project import refused_in_words as in_words

    return [in_words(line) for line in config.refused]


def warn(messages: Iterable[str]) -> None:
    """Warnings go to stderr, so that results stay clean; of very many only the first."""
    for message in few(messages):
        print_message("warning", message)


def note(message: str) -> None:
    """What is worth knowing and no warning."""
    print_message("note", message)


def load_trace(
    source: Path,
    arguments: list[str] | None,
    config: Config,
    *,
    origin_gpu: str | None = None,
    world: int | None = None,
) -> Trace:
    """The Trace in a file, of a profiler's export, or of a script that is profiled now.

    Raises:
        InputError: nothing there, or options of profiling for a saved trace.
        TraceError: a damaged trace.
        ProfileError: the script yields no iteration.
    """
    from advisor.core.errors import InputError
    from advisor.formats import trace_files as trace_io

    check_exists(source)
    if not holds_data(source):
        return profile_script(source, arguments, config, world=world)
    if world is not None:
        raise InputError(f"{str(source)!r} is a saved trace: --world was fixed when it was profiled.")
    if arguments:
        raise InputError(
            f"{str(source)!r} is a saved trace: arguments for the script were fixed when it was profiled."
        )
    for name in _FOR_SCRIPTS:
        if config.origins.get(f"profile.{name}") == "flag":
            flag = "--" + name.replace("_", "-")
            raise InputError(f"{str(source)!r} holds a profile: {flag} is for a script to profile.")
    if trace_io.is_trace(source):
        return trace_io.read_trace(source)
    from advisor.kineto.export import read_kineto

    with progress(f"reading the profile {source.name}"):
        return read_kineto(source, origin_gpu=origin_gpu)


def check_exists(source: Path) -> None:
    """Refuse a script or trace that is not there, before anything else is done.

    Raises:
        InputError: says what can be given.
    """
    from advisor.core.errors import InputError

    if not source.exists():
        raise InputError(
            f"there is no file {str(source)!r}. Give a training script (train.py) or a trace"
            " that advisor profile wrote."
        )
    if not (source.is_file() or source.is_dir()):
        raise InputError(f"{str(source)!r} is a pipe or a device: write its contents to a file.")


def holds_data(source: Path) -> bool:
    """By content, whatever the name says: gzip or JSON is a trace, anything else a script."""
    from advisor.formats.foreign_files import open_regular

    if source.is_dir():
        return False
    with open_regular(source) as file:
        start = file.read(64).lstrip()
    return start[:2] == b"\x1f\x8b" or start[:1] == b"{" or source.name.endswith((".json", ".json.gz"))


def profile_script(
    script: Path,
    arguments: list[str] | None,
    config: Config,
    *,
    pretended: str | None = None,
    world: int | None = None,
) -> Trace:
    """Profile, and show where it is; ``pretended`` names the GPU the script sees, as ``world`` ranks.

    Raises:
        InputError: a GPU or a world is pretended on a backend that takes no such thing.
        ProfileError: the script yields no iteration.
    """
    from advisor.core.errors import InputError
    from advisor.profile import pretend, profile
    from advisor.profile.fake_data import parse_fake_data
    from advisor.profile.sandbox import warning_for_root

    settings = config.settings.profile
    wishes = [f"--as {pretended}"] * bool(pretended) + [f"--world {world}"] * bool(world)
    backend = "fake" if wishes and settings.backend == "auto" else settings.backend
    if wishes and backend != "fake":
        raise InputError(f"{' '.join(wishes)} needs the backend fake, not {backend}.")
    warn(warning_for_root(in_sandbox=settings.sandbox))
    with progress(f"profiling {script.name}", limit_s=settings.timeout) as narration:
        narration.update("starting the interpreter")
        return profile(
            script,
            arguments or (),
            python=settings.python,
            timeout_s=settings.timeout,
            backend=backend,
            gpu=pretend(pretended) if pretended else None,
            fake_data=parse_fake_data(settings.fake_data) if settings.fake_data is not None else (),
            num_samples=settings.samples,
            world_size=world,
            sandbox=settings.sandbox,
            progress=narration.follow,
        )
