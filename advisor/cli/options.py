"""Options that commands share: single ones, groups that a command takes as one value, and completion."""

import csv
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from advisor.cli.common import deadline_s, option
from advisor.core.changes import ALL, CHANGE_NAMES, SPLIT_NAMES, parse_split
from advisor.core.errors import InputError, did_you_mean
from advisor.core.limits import MAX_NODES, MAX_ROWS, MAX_SAMPLES, MAX_WORLD
from advisor.core.values import CheckpointUse, Job, Market, Scaling
from advisor.report.printing import Format


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What a shell completes: names that begin as typed, in any case; none where they cannot be read."""

    def complete(incomplete: str) -> list[str]:
        start, rest = incomplete.lower(), slice(len(incomplete), None)
        try:
            matching = dict.fromkeys(name for name in names() if name.lower().startswith(start))
        except Exception:  # noqa: BLE001 - a shell that completes shows no errors
            return []
        # typer drops what does not begin as it was typed, and any case will do.
        return [incomplete + name[rest] for name in matching]

    return complete


@completing
def gpu_names() -> Iterator[str]:
    """GPUs and families of the catalog."""
    from advisor.core.gpus import family_names, load_gpus

    yield from load_gpus()
    yield from family_names()


@completing
def vendor_names() -> Iterator[str]:
    """Makers of the catalog's GPUs."""
    from advisor.core.gpus import load_gpus

    yield from (spec.vendor.lower() for spec in load_gpus().values())


def region_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Regions with a shipped price, of the clouds that were named before."""
    named = ctx.params.get("provider") or ()
    clouds = {name.lower() for name in ([named] if isinstance(named, str) else named)}
    regions = completing(lambda: (region for cloud, region in _places() if not clouds or cloud in clouds))
    return regions(incomplete)


def _places() -> Iterator[tuple[str, str]]:
    """Provider and region of each shipped price; the parser of prices would check every cell."""
    from advisor.core.gpus import catalog_path

    for path in sorted(catalog_path("prices/aws.csv").parent.glob("*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                yield row["provider"], row["region"]


provider_names = completing(lambda: (provider for provider, _ in _places()))
change_names = completing(lambda: (ALL, *CHANGE_NAMES))
split_names = completing(lambda: (name.removesuffix("N") for name in SPLIT_NAMES))
backend_names = completing(lambda: ("auto", "cuda", "fake", "cpu"))

JsonOption = Annotated[bool, option("Short for --format json.", "--json")]
ArgumentsArgument = Annotated[
    list[str] | None, typer.Argument(help="Arguments of the script, after --.", metavar="-- ARGS")
]
SourceArgument = Annotated[
    Path, typer.Argument(help="A training script or a saved trace.", metavar="SCRIPT_OR_TRACE")
]
GpuOption = Annotated[
    list[str] | None,
    option(
        "GPU or family, with counts: L4, A100:8, H100:1..8. Repeatable.",
        "--gpu",
        "-g",
        metavar="GPU",
        autocompletion=gpu_names,
    ),
]
GpusOption = Annotated[
    list[str] | None,
    option(
        "GPU or family, with counts of all nodes: L4, A100:8, H100:1..8, H100:8x4. Repeatable.",
        "--gpu",
        "-g",
        metavar="GPU",
        autocompletion=gpu_names,
    ),
]
OriginGpuOption = Annotated[
    str | None,
    option(
        "Where a profiler's export was recorded, if it does not say.", metavar="GPU", autocompletion=gpu_names
    ),
]
LocalGpuOption = Annotated[
    str | None,
    option("GPU of this machine; default: what nvidia-smi says.", metavar="GPU", autocompletion=gpu_names),
]
SupposeOption = Annotated[
    list[str] | None,
    option(
        "Suppose a script that divides its model: zero-1, zero-2, zero-3 (FSDP), hybrid, tensor-N,"
        " pipeline-N. Repeatable.",
        "--suppose",
        metavar="SPLIT",
        autocompletion=split_names,
    ),
]
AllowVendorOption = Annotated[
    list[str] | None,
    option("Also GPUs of this vendor (amd). Repeatable.", metavar="NAME", autocompletion=vendor_names),
]
LoaderOption = Annotated[
    float | None,
    option("CPU seconds to load one sample; default: measured, else assumed by kind of sample.", metavar="S"),
]
ProviderOption = Annotated[
    list[str] | None, option("aws, gcp. Repeatable.", metavar="NAME", autocompletion=provider_names)
]
RegionOption = Annotated[
    list[str] | None, option("With wildcards: us-*. Repeatable.", metavar="NAME", autocompletion=region_names)
]
MarketOption = Annotated[
    list[Market] | None, option("on-demand, spot. Repeatable.", metavar="MARKET", case_sensitive=False)
]
MaxAgeOption = Annotated[str | None, option("Refuse older prices, such as 30d.", metavar="DURATION")]
PythonOption = Annotated[
    Path | None,
    option("Interpreter that runs the script; default: the active virtual environment's.", metavar="PATH"),
]
IterationsOption = Annotated[
    int | None, option("Or how many optimizer steps, of as many GPUs as it was profiled for.", metavar="N")
]
IterationsPerEpochOption = Annotated[
    int | None, option("For data without a length; counted the same way.", metavar="N")
]
PolicyOption = Annotated[
    list[Path] | None,
    option("Policy file to obey, besides those of the settings. Repeatable.", metavar="FILE"),
]


Command = Callable[..., None]
_OPTION = "option"


def given(group: object, **read: object) -> dict[str, Any]:
    """The fields of a group by name, some as they were read: for a request whose fields have these names."""
    return {one.name: getattr(group, one.name) for one in fields(group)} | read  # type: ignore[arg-type]


def asked(words: str, *names: str, default: object = None, **more: Any) -> Any:
    """A field of a group: an option as `option` has it, and its default."""
    return field(default=default, metadata={_OPTION: option(words, *names, **more)})


def with_groups(command: Command) -> Command:
    """The command as typer reads it: in place of a parameter that is a dataclass stand its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}

    @wraps(command)
    def flat(**options: object) -> None:
        for name, group in groups.items():
            options[name] = group(**{one.name: options.pop(one.name) for one in fields(group)})
        command(**options)

    parameters = list(_written_out(command, hints))
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(flat)["__signature__"] = inspect.Signature(parameters)
    return flat


def _written_out(command: Command, hints: dict[str, type]) -> Iterator[Parameter]:
    for name, parameter in inspect.signature(command).parameters.items():
        if not is_dataclass(hints[name]):
            yield parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
            continue
        of_fields = get_type_hints(hints[name], include_extras=True)
        for one in fields(hints[name]):
            kind: Any = of_fields[one.name]
            if _OPTION in one.metadata:
                kind = Annotated[kind, one.metadata[_OPTION]]
            yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """How an answer is printed."""

    output: Format = asked(
        "How to print results.", "--format", "-f", case_sensitive=False, default=Format.TABLE
    )
    as_json: JsonOption = False

    @property
    def form(self) -> Format:
        """The one format that both name. Raises InputError: they name two."""
        if self.as_json and self.output not in (Format.TABLE, Format.JSON):
            raise InputError(f"--json and --format {self.output} contradict each other: leave one out.")
        return Format.JSON if self.as_json else self.output


AS_TABLE = OutputOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferOptions:
    """Which offers count."""

    provider: ProviderOption = None
    region: RegionOption = None
    market: MarketOption = None
    nodes: int | None = asked(
        "Exact number of machines that train together.", metavar="N", min=1, max=MAX_NODES
    )
    max_nodes: int | None = asked(
        "Machines that train together at most; default: 1.", metavar="N", min=1, max=MAX_NODES
    )
    max_age: MaxAgeOption = None
    offline: bool | None = asked("Never touch the network.", "--offline", show_default=False)

    def settings(self) -> dict[str, object]:
        """For `settings_with`; the number of nodes is the request's."""
        return {
            "cloud__max_nodes": self.max_nodes,
            "cloud__providers": self.provider,
            "cloud__regions": self.region,
            "cloud__markets": self.market,
            "prices__max_age": self.max_age,
            "prices__offline": self.offline,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptOptions:
    """How a script is profiled."""

    python: PythonOption = None
    timeout: str | None = asked("Give up on profiling after this long, such as 10m.", metavar="DURATION")
    backend: str | None = asked(
        "Measure on this machine's GPU (cuda), without one (fake), or run on the CPU (cpu);"
        " auto, the default, is cuda where there is a free GPU.",
        metavar="auto|cuda|fake|cpu",
        autocompletion=backend_names,
    )
    fake_data: str | None = asked(
        "Feed the script samples of this form instead of its data: 3x224x224:float32,1000:class.",
        metavar="SHAPE",
    )
    samples: int | None = asked(
        "How many fake samples a missing data set has.", metavar="N", min=1, max=MAX_SAMPLES
    )
    world: int | None = asked(
        "Profile a distributed script as one of N processes of one GPU each, as under torchrun.",
        metavar="N",
        min=1,
        max=MAX_WORLD,
    )
    sandbox: bool | None = asked(
        "Profile in bubblewrap: the script can write nothing and has no network.",
        "--sandbox/--no-sandbox",
        show_default=False,
    )
    sandbox_read: list[Path] | None = asked(
        "What the script reads there besides its project, interpreter and caches; may be repeated.",
        metavar="PATH",
        show_default=False,
    )
    env: list[str] | None = asked(
        "Hand on this variable, too: scripts get what training needs (repeatable).",
        metavar="NAME",
        show_default=False,
    )

    def settings(self) -> dict[str, object]:
        """For `settings_with`; the world is the request's."""
        known = given(self, sandbox_read=self.sandbox_read or None)
        return {f"profile__{name}": value for name, value in known.items() if name != "world"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOptions:
    """How much is to be trained, and within which limits."""

    epochs: float | None = asked("How many epochs to train.", metavar="N")
    iterations: IterationsOption = None
    iterations_per_epoch: IterationsPerEpochOption = None
    budget: float | None = asked("For the whole job.", metavar="USD")
    deadline: str | None = asked("Until done, waiting included: 12h, 3d.", metavar="DURATION")
    confidence: float = asked(
        "Probability with which budget and deadline must hold.", metavar="P", default=0.9
    )
    value_of_time: float | None = asked(
        "What finishing an hour earlier is worth; default: 2; 0 recommends the cheapest.", metavar="USD_PER_H"
    )
    suppose: SupposeOption = None
    risk: bool = asked("Keep on the frontier what is slower and dearer, but safer.", "--risk", default=False)

    def job(self) -> Job:
        """The job. Raises InputError: the deadline is no duration, or a model cannot be divided so."""
        return Job(
            epochs=self.epochs,
            iterations=self.iterations,
            iterations_per_epoch=self.iterations_per_epoch,
            budget_usd=self.budget,
            deadline_s=deadline_s("--deadline", self.deadline),
            confidence=self.confidence,
            value_of_time_usd_per_h=self.value_of_time,
            risk_counts=self.risk,
            split=parse_split(self.suppose or (), "--suppose"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """What is read, moved and fed."""

    dataset_gb: float | None = asked(
        "Data set (GiB), copied to the machine unless it is there.", metavar="GIB"
    )
    data: str | None = asked(
        "Where the data set is: s3://BUCKET@REGION, gs://..., REGION or local.", metavar="PLACE"
    )
    scaling: Scaling | None = asked(
        "What the script holds when GPUs are added: the batch of one (weak), of all (strong), or"
        " the whole step (unshared).",
        case_sensitive=False,
        show_default=False,
    )
    checkpoints: CheckpointUse | None = asked(
        "What the script does with checkpoints: saves and resumes from them (resumes), saves them"
        " alone (saves), or neither (none); default: as its text shows.",
        case_sensitive=False,
        show_default=False,
    )
    result_gb: float | None = asked("Result to bring home over the internet.", metavar="GB")
    loader_s_per_sample: LoaderOption = None

    def settings(self) -> dict[str, object]:
        """For `settings_with`."""
        return {
            "cloud__dataset_gb": self.dataset_gb,
            "cloud__data": self.data,
            "profile__scaling": self.scaling,
            "spot__checkpoints": self.checkpoints,
            "cloud__result_gb": self.result_gb,
            "input__loader_s_per_sample": self.loader_s_per_sample,
        }


# Of the ranking, on a page and in a plot.
ROWS_OF_THE_RANKING = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """What is shown of an answer."""

    explain: str | None = asked("Show one option line by line: its id or number.", metavar="ID")
    curve: str | None = asked(
        "Show a machine over its numbers of GPUs, and where more stop paying: L4, 'aws L4 spot'.",
        metavar="PLAN",
    )
    what_if: list[str] | None = asked(
        "What a change of the script would bring: all, bf16, fused, ... Repeatable. By default one"
        " line on the best of them.",
        metavar="CHANGE",
        autocompletion=change_names,
    )
    no_what_if: bool = asked("Not even the line on the best change.", "--no-what-if", default=False)
    patch: bool = asked(
        "Print these changes as a diff of the script; of all, those that surely save time.",
        "--patch",
        default=False,
    )
    top: int | None = asked(
        "Show the first N of the ranking, not those few.", metavar="N", min=1, max=MAX_ROWS
    )
    all_: bool = asked("Show every option.", "--all", default=False)
    assumptions: bool = asked(
        "Show all that the answer rests on, instead of the rows.", "--assumptions", default=False
    )
    plot: bool = asked("Draw time over cost in the terminal, instead of the table.", "--plot", default=False)
    html: Path | None = asked("Write the answer to this page, too, with a chart to point at.", metavar="FILE")
    emit: str | None = asked(
        "Print a file that starts the recommended option, or that of --explain: skypilot, dstack, sbatch,"
        " kubernetes, command; `advisor launch FILE` starts it.",
        metavar="KIND",
    )

    @property
    def changes(self) -> tuple[str, ...] | None:
        """Names of the changes to judge; None for the best of one line.

        Raises InputError: changes are wanted and not.
        """
        if self.no_what_if and self.what_if:
            raise InputError("--what-if and --no-what-if contradict each other: leave one out.")
        return () if self.no_what_if else tuple(self.what_if) if self.what_if else None

    def check(self, output: Format) -> None:
        """Refuse what cannot be shown together, before a script is profiled for it.

        Raises InputError: two things are wanted in the place of the rows, or one in a format without it.
        """
        if self.emit is not None:
            self._check_emit(output)
        part = "--explain" if self.explain is not None else "--curve" if self.curve is not None else None
        if self.patch and (self.explain is not None or self.plot):
            raise InputError("--patch prints a diff alone: leave --explain and --plot out.")
        if self.explain is not None and self.curve is not None:
            raise InputError("--explain shows one option and --curve all numbers of GPUs: give one of them.")
        if self.explain is not None and output in (Format.CSV, Format.MARKDOWN):
            raise InputError("--explain prints text, or JSON with --json: leave --format out.")
        if self.plot and (part is not None or output is not Format.TABLE):
            raise InputError(
                f"--plot draws in the terminal: leave {part or '--explain'}, --format and --json out."
            )

    def _check_emit(self, output: Format) -> None:
        from advisor.service.job_files import KINDS

        if self.emit not in KINDS:
            hint = did_you_mean(str(self.emit), KINDS)
            raise InputError(f"--emit must be one of {', '.join(KINDS)}, got {self.emit!r}.{hint}")
        if (
            self.patch
            or self.plot
            or self.curve is not None
            or self.assumptions
            or output is not Format.TABLE
        ):
            raise InputError(
                "--emit prints a file alone: leave out --patch, --plot, --curve, --assumptions, --format and"
                " --json."
            )

    @property
    def num_rows(self) -> int | None:
        """Rows to show; None for all."""
        return None if self.all_ else self.top or ROWS_OF_THE_RANKING

    @property
    def is_short(self) -> bool:
        """Whether the rows are those that someone could want."""
        return self.top is None and not self.all_
