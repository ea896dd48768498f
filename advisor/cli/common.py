"""What commands share: settings with flags on top, the chosen format, and hints for options of scripts."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING

from advisor.cli.help_lines import Click, LongCommand
from advisor.cli.listening import TERMINAL, warn
from advisor.report.printing import Format

if TYPE_CHECKING:
    from advisor.config.layers import Config


class ScriptCommand(LongCommand):
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
