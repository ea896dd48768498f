r"""Text of others on its way to a person: nothing in it moves the cursor, hides, or turns letters around.

Scripts, traces, clouds and settings name things as they like. Whatever is printed passes through here:
control and format characters (escape sequences, bidirectional overrides, zero-width letters) become visible
escapes such as ``\x1b`` and ``\u202e``, and what is too long to read loses its middle. JSON needs none of
this: `to_json` escapes what is not ASCII, so that programs read back what was there.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TextIO

from advisor.core.files import as_text

if TYPE_CHECKING:
    from rich.text import Text


# Characters of one text, and how many of them are its beginning; the same of lines; messages of one kind.
MOST, HEAD = 8_000, 6_000
MOST_LINES, HEAD_LINES = 200, 150
MOST_MESSAGES = 100

_SUSPECT = re.compile(r"[^ -~]")
_SUSPECT_IN_LINES = re.compile(r"[^\n -~]")
# Python calls no space printable but that of ASCII. These show as what they are.
_SPACES = frozenset("\u00a0\u1680\u202f\u205f\u3000").union(map(chr, range(0x2000, 0x200B)))
# Letters and marks to Unicode, nothing to the eye: fillers, joiners, and selectors that can spell a hidden
# message. Those of emoji (U+FE0F) stay.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0").union(
    map(chr, range(0x180B, 0x1810)), map(chr, range(0xE0100, 0xE01F0))
)


class Shown(str):
    """Text that is safe to print; its line breaks are meant."""

    __slots__ = ()


def shown(text: str) -> Shown:
    r"""A text as one printable line, without its middle where it is longer than ``MOST``.

    >>> print(shown("lab\x1b[2J\u202e\nb"))
    lab\x1b[2J\u202e\nb
    """
    return text if isinstance(text, Shown) else Shown(_without_middle(text, _one_line))


def shown_lines(text: str) -> Shown:
    r"""The same of a text that may have several lines, such as a traceback.

    >>> print(shown_lines("if x:\r\n\tprint('\x07')"))
    if x:
            print('\x07')
    """
    if isinstance(text, Shown):
        return text
    lines = _without_middle(text, _lines).split("\n")
    left_out = len(lines) - MOST_LINES
    if left_out > 0:
        middle = f"[... {left_out:,} lines are left out ...]"
        lines = [*lines[:HEAD_LINES], middle, *lines[HEAD_LINES - MOST_LINES :]]
    return Shown("\n".join(lines))


def shown_code(text: str) -> Shown:
    r"""The same of a line of code, whose tabs are meant.

    >>> shown_code("\tprint('\x07')") == "\tprint('\\x07')"
    True
    """
    return Shown("\t".join(map(shown, text.split("\t"))))


def stacked(*lines: str) -> Shown:
    """Lines of one cell of a table."""
    return Shown("\n".join(map(shown, lines)))


def few(messages: Iterable[str]) -> list[str]:
    """The first ``MOST_MESSAGES``, and how many more there are."""
    lines = list(messages)
    left_out = len(lines) - MOST_MESSAGES
    return [*lines[:MOST_MESSAGES], f"and {left_out:,} more"] if left_out > 0 else lines


def status_text(message: str) -> Text:
    """A line beside a spinner; rich would read colours, links and emoji into a str."""
    from rich.text import Text

    return Text(shown(message))


def print_lines(*lines: str) -> None:
    """Each text as one line to stdout."""
    for line in lines:
        _print(shown(line), sys.stdout)


def print_text(text: str) -> None:
    """Lines that were put together from shown parts, however many, to stdout."""
    _print(text if isinstance(text, Shown) else _SUSPECT_IN_LINES.sub(_escape, text), sys.stdout)


def print_aside(text: Shown) -> None:
    """What is no result, such as a receipt, to stderr: stdout is a command's own."""
    _print(text, sys.stderr)


def print_message(kind: str, message: str) -> None:
    """``KIND: ...`` to stderr, its further lines indented: none can pass for a message of its own."""
    lines = shown_lines(message).split("\n")
    _print("\n  ".join([f"{kind}: {lines[0]}", *lines[1:]]), sys.stderr)


def print_progress(line: str) -> None:
    """Where long work is, to stderr."""
    _print(shown(line), sys.stderr)


def print_error(message: str) -> None:
    """``error: ...`` to stderr, its lines as they are: a traceback may be among them."""
    _print(f"error: {shown_lines(message)}", sys.stderr)


def _print(text: str, stream: TextIO | None) -> None:
    if stream is None:  # it was closed before we started; print would take standard output instead
        return
    if stream is sys.stderr:
        # Late, since most commands say nothing there. Messages quote settings, servers and scripts.
        from advisor.core.redaction import redact

        text = redact(text)
    # At once, so that a reader who has seen enough (head, less) is noticed here. What else was asked for, a
    # page or an exit code, does not depend on that reader: the rest of the text goes nowhere. Nor does it
    # depend on messages, for which there is no other place when standard error is full or gone.
    try:
        print(text, file=stream, flush=True)
    except OSError as error:
        if stream is not sys.stderr and not isinstance(error, BrokenPipeError):
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _without_middle(text: str, plain: Callable[[str], str]) -> str:
    # Cut before anything is escaped: a text may have fifty million characters.
    pieces = [text] if len(text) <= MOST else [text[:HEAD], text[HEAD - MOST :]]
    pieces = [plain(piece) for piece in pieces]
    if len(pieces) == 1 and len(pieces[0]) <= MOST:
        return pieces[0]
    begin, end = pieces[0][:HEAD], pieces[-1][HEAD - MOST :]
    left_out = max(len(text), sum(map(len, pieces))) - len(begin) - len(end)
    return f"{begin} [... {left_out:,} characters are left out ...] {end}"


def _one_line(text: str) -> str:
    return _SUSPECT.sub(_escape, text)


def _lines(text: str) -> str:
    return _SUSPECT_IN_LINES.sub(_escape, text.replace("\r\n", "\n").expandtabs())


def _escape(match: re.Match[str]) -> str:
    letter = match[0]
    if (letter.isprintable() or letter in _SPACES) and letter not in _INVISIBLE:
        return letter
    if "\udc80" <= letter <= "\udcff":  # a byte of a name that is no UTF-8
        return as_text(letter)
    return letter.encode("unicode_escape").decode("ascii")


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
    "max_s": "--max-time",
    "max_usd": "--max-cost",
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
    "add", "capacity", "size", "slurm_conf", "submit_at", "walltime",
    "epochs", "force", "iterations", "iterations_per_epoch", "model", "name", "only",
    "origin_gpu", "out", "port",
    "prices.max_age", "profile.backend", "profile.env", "profile.fake_data", "profile.python",
    "profile.samples", "profile.sandbox", "profile.sandbox_read", "profile.timeout", "proxy", "samples",
    "sequence", "source", "token", "tokens", "user_header", "world_size",
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
