"""Where in a text secrets stand: known formats, and what the words around them tell."""

from __future__ import annotations

import base64
import binascii
import re
import string
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from advisor.core.secret_names import is_secret_name
from advisor.core.secret_rules import Span, lowered_in_place, spans_of_rules
from advisor.core.secret_values import is_harmless, is_random, value_at

# Repetitions are bounded: a script may print one line of many kilobytes.
# Who logs in, whatever the password holds, and the query: keys have many names there. With an @ further on
# even a host and its port are taken for somebody who logs in: nobody loses by hiding too much.
_ADDRESS = re.compile(
    r"""(?<=[a-z0-9+.-])://
    (?:(?P<user>[^\s/?\#"'<>:@]{0,256}:\S{0,1024}(?=@) | [^\s/?\#"'<>]{0,1024}(?=@))@)?
    [^\s?"'<>]*(?:\?(?P<query>[^\s"'<>]+))?""",
    re.VERBOSE | re.IGNORECASE,
)
# The whole line, whatever the scheme: `Digest username="me", response="..."` has several values. A function's
# `authorization: str` is none.
_HEADER = re.compile(  # of the text in small letters, as the next ones: several times as fast as IGNORECASE
    r"""
    authorization\\?["']?\s*:\s*\\?
    (?P<value> "[^"\n]*" | '[^'\n]*'
      | (?= (?:basic|bearer|digest|negotiate|token|bot)\s
          | [\w-]{1,64}[ \t]{1,8}[^\s"']{8} | [^\s"'()\[\]]{12})
        (?: ="[^"\n]*" | =(?!") | [^\n"'=])+ )
    """,
    re.VERBOSE,
)
_COOKIES = re.compile(r"cookie\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?([\w.%-]{1,128}=[^\n\"']*)")
_ASSIGNED = re.compile(
    r"""(?:pass|pwd|pw(?![a-z])|secret|token|key|auth|cred|cookie|jwt|webhook|dsn|otp|pat(?![a-z])|sas(?![a-z])|psk)
    [\w-]{0,40}\\{0,3}["'`]?\]?\s{0,8}(?::=|=>|==?(?!=)|:(?!:))\s{0,8}""",
    re.VERBOSE,
)
_OPTION = re.compile(r"""(?<![\w-])--?([A-Za-z][\w-]{0,60})(?:=|["']?,?\s{1,8})(?=[^\s-])""")
_SAID = re.compile(
    r"""\b(?:passwords?|passphrase|secret|token|(?:api|access|secret|private|auth)[ _-]?key|credentials?
    |bearer|jwt)
    ["'`]?(?:[ ](?:is|was|of|for|from|value|with|used|sent|given)){0,3}[ ]{0,4}[:=]?[ ]{0,4}["'`(<]?
    (?P<value>[\w+/=.~-]{16,512})""",
    re.VERBOSE,
)
_WRAPPED = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_MOST_WRAPPED = 2**16
# What a terminal does not show: colours, titles, invisible letters; also as `repr` and JSON write them.
_UNSEEN = re.compile(
    r"""\x1b\[[0-?]*[ -/]*[@-~] | \x1b\][^\x07\x1b]{0,512}(?:\x07|\x1b\\) | \x1b[ -/]*[0-Z\\^-~]
    | \\(?:x1b|u001b|033|e)\[[0-9;]{0,16}[A-Za-z]
    | [\x00-\x08\x0e-\x1f\x7f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]""",
    re.VERBOSE,
)
_MAY_HIDE = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|\\(?:x1b|u001b|033|e)\["
)
# A line that a terminal or a mail broke: long, and in the midst of what could be a token.
_BROKEN = re.compile(r"(?<=[\w+/=.~-]{8})\\?\r?\n[ \t]{0,8}(?=[\w+/=.~-]{4})")
_LEAST_BROKEN_LINE = 40
_OF_NAMES = string.ascii_letters + string.digits + "_-"


def spans_of_secrets(text: str, *, in_addresses: bool = True) -> list[Span]:
    """Begin and end of each secret, in no order; they may overlap.

    Args:
        text: of anybody.
        in_addresses: who logs in and what is asked for counts, too.
    """
    spans = [*_spans(text, in_addresses=in_addresses), *_in_base64(text)]
    if cuts := [match.span() for match in _UNSEEN.finditer(text)] if _MAY_HIDE.search(text) else []:
        whole = _without(text, cuts)
        spans += _placed(_spans(whole, in_addresses=in_addresses), cuts)
    if cuts := list(_broken_lines(text)):
        whole = _without(text, cuts)
        spans += [
            (first, last)
            for first, last in _placed(spans_of_rules(whole, lowered_in_place(whole)), cuts)
            if "\n" in text[first:last]
        ]
    return spans


def merged(spans: Iterable[Span]) -> list[Span]:
    """In order, those that overlap as one.

    >>> merged([(5, 9), (0, 3), (2, 4)])
    [(0, 4), (5, 9)]
    """
    whole: list[Span] = []
    for first, last in sorted(spans):
        if whole and first < whole[-1][1]:
            whole[-1] = (whole[-1][0], max(last, whole[-1][1]))
        else:
            whole.append((first, last))
    return whole


def _spans(text: str, *, in_addresses: bool) -> Iterator[Span]:
    lowered = lowered_in_place(text)
    yield from spans_of_rules(text, lowered)
    if in_addresses and "://" in text:
        for match in _ADDRESS.finditer(text):
            yield from (match.span(part) for part in ("user", "query") if match[part] is not None)
    if "authorization" in lowered:
        yield from (match.span("value") for match in _HEADER.finditer(lowered))
    if "cookie" in lowered:
        yield from (match.span(1) for match in _COOKIES.finditer(lowered))
    yield from _assigned(text, lowered)
    yield from _options(text)
    spans = (match.span("value") for match in _SAID.finditer(lowered))
    yield from (span for span in spans if is_random(text[slice(*span)]))


def _assigned(text: str, lowered: str) -> Iterator[Span]:
    """``NAME=VALUE``, ``"name": "value"``, ``os.environ['NAME'] = 'value'``."""
    end = 0
    for match in _ASSIGNED.finditer(lowered):
        if match.start() < end:
            continue
        written = text[match.start() : match.end()]
        name = _name_before(text, match.start()) + written.rstrip(" \t\r\n=:>").rstrip("]").rstrip("\"'`\\")
        if is_secret_name(name):
            is_line = written.endswith("=") and _is_line(text, match.end(), len(name) + 1)
            value = value_at(text, match.end(), is_line=is_line)
            if not is_harmless(value, name, written):
                yield value.span
                end = value.span[1]


def _name_before(text: str, start: int) -> str:
    """The part of a name that stands before a word of it."""
    before = text[max(0, start - 64) : start]
    return before[len(before.rstrip(_OF_NAMES)) :]


def _is_line(text: str, end: int, length: int) -> bool:
    """Whether a line begins with this assignment, as in a file of variables."""
    begin = end - length
    line = text[max(text.rfind("\n", max(0, begin - 12), begin) + 1, begin - 12, 0) : begin].strip()
    return line in ("", "export", "set", "ENV", "env")


def _options(text: str) -> Iterator[Span]:
    """``--password VALUE`` and ``'--password', 'VALUE'`` in the midst of a text."""
    for match in _OPTION.finditer(text):
        if is_secret_name(match[1]) or match[1].lower() in ("pass", "pw"):
            value = value_at(text, match.end())
            if not is_harmless(value, match[1], "--"):
                yield value.span


def _in_base64(text: str) -> Iterator[Span]:
    """What is a secret when it is decoded."""
    for match in _WRAPPED.finditer(text):
        decoded = _decoded(match[0][:_MOST_WRAPPED])
        if decoded is not None and any(_spans(decoded, in_addresses=True)):
            yield match.span()


def _decoded(text: str) -> str | None:
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        shown = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return shown if all(letter.isprintable() or letter in "\r\n\t" for letter in shown) else None


def _broken_lines(text: str) -> Iterator[Span]:
    for match in _BROKEN.finditer(text):
        if match.start() - text.rfind("\n", 0, match.start()) > _LEAST_BROKEN_LINE:
            yield match.span()


def _without(text: str, cuts: list[Span]) -> str:
    ends = [0, *(last for _, last in cuts)]
    begins = [*(first for first, _ in cuts), len(text)]
    return "".join(text[end:begin] for end, begin in zip(ends, begins, strict=True))


def _placed(spans: Iterable[Span], cuts: list[Span]) -> Iterator[Span]:
    """Where the spans of a text without the cuts are in the whole one."""
    lost = [0, *accumulate(last - first for first, last in cuts)]
    begins = [first - gone for (first, _), gone in zip(cuts, lost, strict=False)]
    for first, last in spans:
        yield first + lost[bisect_right(begins, first)], last - 1 + lost[bisect_right(begins, last - 1)] + 1
