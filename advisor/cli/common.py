"""What commands share: help pages and usage errors, settings with flags on top, formats, times and hints."""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from advisor.cli.listening import TERMINAL
from advisor.core.errors import InputError
from advisor.core.limits import MAX_PLANNED_S
from advisor.core.units import exact_duration, parse_duration_s
from advisor.report.plain import shown

if TYPE_CHECKING:
    from advisor.config.layers import Config


Click = Any  # a value of click, or of typer's own copy of it: which of both depends on typer's version

COMMON_OPTIONS = {
    "recommend": (
        "--recipe", "--model", "--tokens", "--epochs", "--iterations", "--budget", "--deadline", "--gpu",
        "--provider", "--region", "--market", "--max-nodes", "--dataset-gb", "--explain", "--what-if",
        "--offline", "--format", "--json",
    ),
    "compare": (
        "--epochs", "--iterations", "--budget", "--deadline", "--value-of-time", "--provider", "--region",
        "--market", "--max-nodes", "--dataset-gb", "--policy", "--local-gpu", "--offline", "--format",
        "--json",
    ),
    "diff": (
        "--epochs", "--iterations", "--fail-above", "--gpu", "--provider", "--region", "--market",
        "--max-nodes", "--policy", "--python", "--backend", "--fake-data", "--offline", "--format", "--json",
    ),
}  # fmt: skip
"""What ``--help`` shows of commands with more than twenty options; the rest is under ``--help-all``."""

_SHOWS_ALL = "advisor.help_all"


def option(words: str, *names: str, **more: Any) -> Any:
    """An option: what its help says, and its names where they do not follow from its parameter's."""
    return typer.Option(*names, help=words, **more)


class LongCommand(TyperCommand):
    """A command whose help page shows the common options, and all of them with ``--help-all``."""

    def get_params(self, ctx: Click) -> list[Click]:
        """The command's parameters; a long one also has ``--help-all``."""
        params: list[Click] = super().get_params(ctx)
        if self.name in COMMON_OPTIONS:
            help_all = copy(params[-1])
            help_all.name, help_all.opts, help_all.callback = "help_all", ["--help-all"], _show_all
            num_options = sum(param.param_type_name != "argument" for param in params)
            help_all.help = f"Show all {num_options} options and exit."
            params.insert(-1, help_all)
        return params

    def format_options(self, ctx: Click, formatter: Click) -> None:
        """Arguments, then the common options, then the others if they are asked for."""
        for title, params in self._sections(ctx):
            records = [record for param in params if (record := param.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def _sections(self, ctx: Click) -> Iterator[tuple[str, list[Click]]]:
        params = self.get_params(ctx)
        options = [param for param in params if param.param_type_name == "option"]
        names = COMMON_OPTIONS.get(self.name or "")
        always = ("help", "help_all")
        common = [one for one in options if names is None or one.name in always or one.opts[0] in names]
        yield "Arguments", [param for param in params if param.param_type_name == "argument"]
        yield "Options", common
        if ctx.meta.get(_SHOWS_ALL):
            yield "More options", [option for option in options if option not in common]


def _show_all(ctx: Click, _param: Click, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        typer.echo(full_help(ctx.command, ctx), color=ctx.color)
        ctx.exit()


def full_help(command: Click, ctx: Click) -> str:
    """The help page of a command with all of its options, the common ones first."""
    ctx.meta[_SHOWS_ALL] = True
    return str(command.get_help(ctx))


class LazyCommands(UserDict[str, Click]):
    """Commands by name, each made when it is asked for.

    Args:
        sentences: what the page of the group says of each; kept as ``data``.
        load: gives one, or raises KeyError.
    """

    def __init__(self, sentences: Mapping[str, str], load: Callable[[str], Click]) -> None:
        super().__init__(sentences)
        self._load = load

    def __getitem__(self, name: str) -> Click:
        """The command. Raises KeyError: there is none."""
        return self._load(name)


class WholeLines(TyperGroup):
    """A group that shows the first sentence of each command in full, wrapped at the terminal's width."""

    def format_commands(self, ctx: Click, formatter: Click) -> None:  # noqa: ARG002
        """Name and sentence of each command."""
        if isinstance(self.commands, LazyCommands):
            rows = list(self.commands.data.items())
        else:
            rows = [(name, first_sentence(command.help or "")) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def first_sentence(text: str) -> str:
    """The first sentence of a help text.

    >>> first_sentence("Rank where to run: AWS and GCP. Exits with 4.")
    'Rank where to run: AWS and GCP.'
    """
    paragraph = " ".join(text.split("\n\n")[0].split())
    start, stop, _ = paragraph.partition(". ")
    return start + stop.strip()


def group(words: str, kind: type[WholeLines] = WholeLines) -> typer.Typer:
    """Commands below a name; the page of it says these words."""
    return typer.Typer(cls=kind, help=words, no_args_is_help=True, rich_markup_mode=None)


class PlainGroup(WholeLines):
    """Commands whose usage errors are those of our tree."""

    def make_context(self, *args: Click, **extra: Click) -> Click:
        """Parse what stands before the command; ``-h`` is ``--help`` for all of them."""
        with _plain_errors():
            return super().make_context(*args, help_option_names=["--help", "-h"], **extra)

    def resolve_command(self, ctx: Click, args: list[str]) -> Click:
        """The command; ``help COMMAND`` is ``COMMAND --help``."""
        _check_words(args)
        if args[0] == "help" and "help" not in self.commands:
            args = [*args[1:], "--help"]
        if args[0] == "--help":
            typer.echo(self.get_help(ctx))
            ctx.exit()
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Click) -> Click:
        """Parse and run the command."""
        with _plain_errors():
            return super().invoke(ctx)


_WRITTEN = re.compile(r"--(out|html|receipt)(=|$)")


def _check_words(words: list[str]) -> None:
    """Refuse an empty word of ours, as a variable leaves that is not set, and to write over what is read."""
    own = words[: words.index("--")] if "--" in words else words
    if "" in own[1:]:
        before = own[own.index("", 1) - 1]
        raise InputError(f"the word after {before!r} is empty: is a variable not set?")
    names = [word.partition("=")[2] if word.startswith("--") else word for word in own]
    # What another program does with its options is not known: it may write to them.
    names += [word for word in words[len(own) :] if not word.startswith("-")]
    for at, word in enumerate(own):
        if _WRITTEN.match(word):
            target = at if "=" in word else at + 1
            others = names[:target] + names[target + 1 :]
            if any(_is_same(written, other) for written in names[target : target + 1] for other in others):
                raise InputError(f"{word} would replace a file that this command reads: give another name.")


def _is_same(written: str, other: str) -> bool:
    """Whether both name one file, whatever links lead there."""
    # A word may be no path at all, such as a program's text, or one that may not be looked at.
    with suppress(OSError, ValueError):
        return Path(written).is_file() and Path(written).samefile(other)
    return False


@contextmanager
def _plain_errors() -> Iterator[None]:
    try:
        yield
    except Exception as raised:
        # Which package a usage error comes from depends on typer's version.
        error: Click = raised
        is_of_usage = hasattr(error, "format_message") and error.exit_code == InputError.exit_code
        if not is_of_usage or type(error).__name__ == "NoArgsIsHelpError":
            raise
        message = str(shown(" ".join(error.format_message().split())))
        message, _, _ = message.partition(", unable to parse")
        for words, plain in _PLAIN_WORDS.items():
            message = message.replace(words, plain)
        end = "" if message.endswith((".", "?", "!")) else "."
        command = "advisor" if error.ctx is None else error.ctx.command_path
        raise InputError(f"{message}{end} See {command} --help.") from None


_PLAIN_WORDS = {
    "Value error, ": "",
    "Input should": "it must",
    "must be a valid number": "must be a valid number, without a unit or a sign of a currency",
}


def duration_s(flag: str, text: str) -> float:
    """Seconds of a duration with a unit. Raises InputError: it is none."""
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise InputError(f"{flag}: {error}.") from error


def deadline_s(flag: str, text: str | None) -> float | None:
    """Seconds from now.

    Raises InputError: it is no duration, lies in the past, or further ahead than anybody plans.
    """
    if text is None:
        return None
    if text.lstrip().startswith("-"):
        raise InputError(f"{flag} {text!r} lies in the past: give the time from now on, such as 12h.")
    seconds = duration_s(flag, text)
    if seconds > MAX_PLANNED_S:
        raise InputError(f"{flag} must be at most {exact_duration(MAX_PLANNED_S)}, got {text!r}.")
    return seconds


def moment(flag: str, text: str) -> datetime:
    """A moment with a time zone, UTC where none is written. Raises InputError: it is none."""
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InputError(
            f"{flag}: {text!r} is no time: write 2026-11-01 or 2026-11-01T09:30 (both UTC),"
            " or 2026-11-01T09:30+01:00."
        ) from error
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def moment_or_duration_s(flag: str, text: str) -> datetime | float:
    """A moment, or seconds. Raises InputError: it is neither."""
    try:
        return parse_duration_s(text)
    except ValueError:
        return moment(flag, text)


class ScriptCommand(LongCommand):
    """A command that takes a script: an unknown option is most likely the script's."""

    def parse_args(self, ctx: Click, args: list[str]) -> list[str]:
        """Parse, and say where options of the script belong."""
        try:
            left = super().parse_args(ctx, args)
            self._check_subject(ctx)
            return left
        except Exception as raised:
            if type(raised).__name__ == "NoSuchOption":
                error: Click = raised
                error.message = f"{error.format_message()}. {_script_hint(error.option_name)}"
                error.possibilities = None
            raise

    def _check_subject(self, ctx: Click) -> None:
        """A script may be left out for a recipe alone."""
        given = ctx.params.get("recipe", ""), ctx.params.get("source")
        if given == (None, None) and not ctx.resilient_parsing:
            source = copy(next(parameter for parameter in self.params if parameter.name == "source"))
            source.required = True
            try:
                source.process_value(ctx, None)
            except Exception as raised:
                missing: Click = raised
                missing.message = "Give a training script, a saved trace, or --recipe NAME."
                raise


def _script_hint(option: str) -> str:
    if option == "-m":
        return "Give the whole command after --: advisor recommend -- python -m pkg.train ..."
    return f"Arguments of the script follow `--`, such as: train.py -- {option} ..."


TRUSTS_PROJECT: ContextVar[bool] = ContextVar("TRUSTS_PROJECT", default=False)
"""Whether ``--trust-project`` was given: an option of the root command, which no command hands on."""


def load_settings(flags: Mapping[str, object] | None = None) -> Config:
    """All layers with flags on top by dotted name; nothing is said."""
    from advisor.config.layers import load_config

    return load_config(flags, trust_project=TRUSTS_PROJECT.get(), name_of=TERMINAL.name_of)


def settings_with(**flags: object) -> Config:
    """All layers with this command's flags on top (``cloud__max_gpus=4``); warns of strays and refusals."""
    config = load_settings({name.replace("__", "."): value for name, value in flags.items()})
    if config.warnings:
        TERMINAL.warn(config.warnings)
    if config.refused:
        from advisor.report.config_tables import refused_in_words

        TERMINAL.warn(map(refused_in_words, config.refused))
    return config


def sweep_settings(*, offline: bool) -> Config:
    """Those that answers rest on: no command pulls prices meanwhile, which would move them in the middle."""
    return settings_with(prices__refresh="never", **({"prices__offline": True} if offline else {}))
