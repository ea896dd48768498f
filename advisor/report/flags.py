"""Arguments and settings as the command line calls them: by flags."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Where a flag is not the argument's name with dashes.
FLAGS: Mapping[str, str] = {
    "budget_usd": "--budget",
    "channel": "--to",
    "cloud.providers": "--provider",
    "cloud.regions": "--region",
    "cloud.markets": "--market",
    "cost_usd": "--cost",
    "deadline_s": "--deadline",
    "duration_s": "--duration",
    "gpus": "--gpu",
    "local.gpu": "--local-gpu",
    "max_usd_per_h": "--max-price",
    "num_gpus": "--gpus",
    "num_nodes": "--nodes",
    "policies": "--policy",
    "pretended_gpu": "--as",
    "run_id": "--id",
    "source": "--from",
    "started_at": "--start",
    "usd_per_h": "--usd-per-hour",
    "value_of_time_usd_per_h": "--value-of-time",
    "vendors": "--allow-vendor",
    "world_size": "--world",
}
NAMED = frozenset({
    "epochs", "force", "iterations", "iterations_per_epoch", "only", "origin_gpu", "out", "prices.max_age",
    "profile.backend", "profile.env", "profile.fake_data", "profile.python", "profile.samples",
    "profile.sandbox", "profile.sandbox_read", "profile.timeout", "source", "world_size",
})  # fmt: skip
"""What messages of the rooms below name, in backquotes."""
_IN_BACKQUOTES = re.compile(f"`({'|'.join(map(re.escape, sorted(NAMED)))})`")


def flag_of(argument: str) -> str:
    """The flag of an argument or a setting.

    >>> flag_of("max_usd_per_h"), flag_of("profile.fake_data")
    ('--max-price', '--fake-data')
    """
    return FLAGS.get(argument) or f"--{argument.rpartition('.')[2].replace('_', '-')}"


def in_flags(text: str) -> str:
    """A text of a room below, with flags in place of the arguments and settings that it names.

    >>> in_flags("Profile without it: `profile.backend` fake.")
    'Profile without it: --backend fake.'
    """
    return _IN_BACKQUOTES.sub(lambda match: flag_of(match[1]), text)
