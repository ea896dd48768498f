"""What commands share: settings with flags on top, formats, times, and hints for options of scripts."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from copy import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from advisor.cli.help import Click, LongCommand
from advisor.cli.listening import TERMINAL, warn
from advisor.core.errors import InputError
from advisor.core.limits import MAX_PLANNED_S
from advisor.core.units import exact_duration, parse_duration_s
from advisor.report.printing import Format

if TYPE_CHECKING:
    from advisor.config.layers import Config


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


def chosen_format(output: Format, as_json: bool) -> Format:
    """The one format that both name. Raises InputError: they name two."""
    if as_json and output not in (Format.TABLE, Format.JSON):
        raise InputError(f"--json and --format {output} contradict each other: leave one out.")
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
        from advisor.report.config_tables import refused_in_words

        warn(map(refused_in_words, config.refused))
    return config


def sweep_settings(*, offline: bool) -> Config:
    """Those that answers rest on: no command pulls prices meanwhile, which would move them in the middle."""
    return settings_with(prices__refresh="never", **({"prices__offline": True} if offline else {}))
