"""Options that belong together: a command takes them as one value, and typer sees each of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import Annotated, get_type_hints

import typer

from advisor.cli.completion import backend_names
from advisor.cli.shared_options import MarketOption, MaxAgeOption, ProviderOption, PythonOption, RegionOption
from advisor.core.limits import MAX_NODES, MAX_SAMPLES, MAX_WORLD

Command = Callable[..., None]


def with_groups(command: Command) -> Command:
    """The command as typer reads it: in place of a parameter that is a dataclass stand its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}

    @wraps(command)
    def flat(**options: object) -> None:
        for name, group in groups.items():
            options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
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
        for field in fields(hints[name]):
            yield Parameter(
                field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=of_fields[field.name]
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferOptions:
    """Which offers count."""

    provider: ProviderOption = None
    region: RegionOption = None
    market: MarketOption = None
    nodes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=MAX_NODES, help="Machines that train together, exactly so many."
        ),
    ] = None
    max_nodes: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=MAX_NODES, help="Machines that train together at most; default: 1."
        ),
    ] = None
    max_age: MaxAgeOption = None
    offline: Annotated[
        bool | None, typer.Option("--offline", help="Never touch the network.", show_default=False)
    ] = None

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
    timeout: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Give up on profiling after this long, such as 10m."),
    ] = None
    backend: Annotated[
        str | None,
        typer.Option(
            metavar="auto|cuda|fake|cpu",
            autocompletion=backend_names,
            help="Measure on this machine's GPU (cuda), without one (fake), or run on the CPU (cpu);"
            " auto, the default, is cuda where there is a free GPU.",
        ),
    ] = None
    fake_data: Annotated[
        str | None,
        typer.Option(
            metavar="SHAPE",
            help="Feed the script samples of this form instead of its data: 3x224x224:float32,1000:class.",
        ),
    ] = None
    samples: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=MAX_SAMPLES, help="How many fake samples a missing data set has."
        ),
    ] = None
    world: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=MAX_WORLD,
            help="Profile a distributed script as one of N processes of one GPU each, as under torchrun.",
        ),
    ] = None
    sandbox: Annotated[
        bool | None,
        typer.Option(
            "--sandbox/--no-sandbox",
            help="Profile in bubblewrap: the script can write nothing and has no network.",
            show_default=False,
        ),
    ] = None
    sandbox_read: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="What the script reads there besides its project, interpreter and caches; may be repeated.",
            show_default=False,
        ),
    ] = None
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Hand on this variable, too: scripts get what training needs (repeatable).",
            show_default=False,
        ),
    ] = None

    def settings(self) -> dict[str, object]:
        """For `settings_with`; the world is the request's."""
        return {
            "profile__python": self.python,
            "profile__timeout": self.timeout,
            "profile__backend": self.backend,
            "profile__fake_data": self.fake_data,
            "profile__samples": self.samples,
            "profile__sandbox": self.sandbox,
            "profile__sandbox_read": self.sandbox_read or None,
            "profile__env": self.env,
        }
