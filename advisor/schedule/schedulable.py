"""What may be scheduled, and how: commands that end by themselves, ask nothing, and hold no secret."""

import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import chain, count, pairwise

from advisor.core.errors import InputError, did_you_mean
from advisor.core.redaction import redact, redact_words
from advisor.core.values import DeliverWhen

SCHEDULABLE = (
    "report", "prices refresh", "prices", "prices check", "prices history", "prices sources",
    "prices capacity", "recommend", "predict", "sweep", "queue fit", "queue check", "run list", "doctor",
)  # fmt: skip
"""Commands that may be scheduled."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_MOST_CHARACTERS = 8_000


def schedulable(words: Sequence[str]) -> str:
    """The name of the command that the words call.

    Raises InputError: there is none, or it may not be scheduled.
    """
    if not words:
        raise InputError("no command follows --: write it as after advisor, such as -- prices refresh.")
    for name in (" ".join(words[:2]), words[0]):
        if name in SCHEDULABLE:
            return name
    is_group = any(name.startswith(f"{words[0]} ") for name in SCHEDULABLE)
    called = " ".join(words[: 2 if is_group else 1])
    raise InputError(
        f"{called!r} cannot be scheduled: {', '.join(SCHEDULABLE)} can.{did_you_mean(called, SCHEDULABLE)}"
    )


def check_words(words: Sequence[str]) -> None:
    """Refuse words that hold a secret, which all who list schedules would read, or that no file could hold.

    Raises InputError: names what to do instead.
    """
    # Word by word for options and their values, and as one line for what only the words together tell.
    if redact_words(words, {}) != tuple(words) or redact(line := shlex.join(words)) != line:
        raise InputError(
            "the command holds what looks like a password, a key or an address with a login, and schedules"
            " are stored and listed as they are: put it into the environment or a settings file."
        )
    if not all(word.isprintable() for word in words):
        raise InputError("the command holds a character that does not show: cron and systemd cannot have it.")
    if sum(map(len, words)) > _MOST_CHARACTERS:
        raise InputError(f"the command has more than {_MOST_CHARACTERS:,} characters: put them into a file.")


_OVER = re.compile(r"over-(\d{1,3}(?:\.\d+)?%)")


def when_of(written: str, words: Sequence[str]) -> tuple[DeliverWhen, tuple[str, ...]]:
    """When output is sent, and the command that ends so that this can be told.

    Raises InputError: there is no such time, or the command knows no budget.

    >>> when_of("over-80%", ["report", "--since", "30d"])
    (<DeliverWhen.OVER: 'over'>, ('report', '--since', '30d', '--fail-above', '80%'))
    """
    share = _OVER.fullmatch(written)
    if share is not None:
        if list(words[:1]) != ["report"] or any(word.startswith("--fail-above") for word in words):
            raise InputError(f"--when {written} is for a report that has no --fail-above yet.")
        return DeliverWhen.OVER, (*words, "--fail-above", share[1])
    names = [when for when in DeliverWhen if when is not DeliverWhen.OVER]
    if written.lower() in names:
        return DeliverWhen(written.lower()), tuple(words)
    allowed = f"{', '.join(names)}, over-80%"
    raise InputError(f"--when {written!r} is not one of {allowed}.{did_you_mean(written, names)}")


def channels_in(words: Sequence[str]) -> tuple[str, ...]:
    """The channels to which the command itself sends its answer.

    >>> channels_in(["report", "--to", "mail", "--to=slack"])
    ('mail', 'slack')
    """
    after = [word for before, word in pairwise(words) if before == "--to"]
    return (*after, *(word.removeprefix("--to=") for word in words if word.startswith("--to=")))


def check_name(name: str) -> None:
    """Refuse a name that files and services could not have.

    Raises InputError: it is empty, too long, or holds other characters.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"the name {name!r} cannot be: take up to 63 letters, digits and '_.-', a letter or digit first."
        )


def name_for(command: str, taken: Iterable[str]) -> str:
    """A name for a schedule whose user gave none.

    >>> name_for("prices refresh", {"prices-refresh"})
    'prices-refresh-2'
    """
    names, plain = set(taken), command.replace(" ", "-")
    candidates = chain((plain,), (f"{plain}-{number}" for number in count(2)))
    return next(name for name in candidates if name not in names)
