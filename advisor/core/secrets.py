"""Which names are those of secrets: of variables, options, settings, keys of JSON."""

import base64
import binascii
import math
import re
import string
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate

from advisor.core.gpus import catalog_path

# Anything that ends so is a secret, whatever stands before it: PGPASSWORD, clientSecret, SSHPASS.
_ENDINGS = (
    "apikey", "authkey", "passphrase", "passwd", "password", "passwort", "pwd", "secret", "secretkey",
    "sshpass", "token", "webhook",
)  # fmt: skip
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*|\d+")
_MOST_CHARACTERS = 200


def is_secret_name(name: str) -> bool:
    """Whether what has this name is a secret, as far as the name shows.

    >>> [is_secret_name(name) for name in ("HF_TOKEN", "dbPassword", "SLACK_WEBHOOK", "AWS_ACCESS_KEY_ID")]
    [True, True, True, True]
    >>> [is_secret_name(name) for name in ("num_tokens", "pad_token", "tokenizer", "sort_key", "compass")]
    [False, False, False, False, False]
    """
    words = _words(name)
    return bool(words) and _is_secret(words, is_variable=name.isupper())


@cache
def _names(kind: str) -> frozenset[str]:
    table = tomllib.loads(catalog_path("secret_names.toml").read_text(encoding="utf-8"))
    return frozenset(table[kind])


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _PARTS.findall(name[-_MOST_CHARACTERS:])]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _names("decorations")):
        words.pop()
    return words


def _is_secret(words: list[str], *, is_variable: bool) -> bool:
    last, before = words[-1].rstrip("0123456789") or words[-1], words[-2] if len(words) > 1 else ""
    if last == "tokens":
        return before in _names("of_accounts")
    if last == "token":
        return before not in _names("of_text")
    if last in ("key", "keys") and before in _names("of_locks"):
        return True
    if last in ("key", "keys"):
        return is_variable and bool(before) and before not in _names("of_tables")
    if last == "pass":
        return bool(before) and before not in _names("of_passes")
    return last in _names("words") or last.endswith(_ENDINGS)


# The formats of issuers' secrets: catalogs/secrets.toml, searched for by the words that they begin with.

Span = tuple[int, int]
# An escape that a letter or digit ends: `\nghp_...` in JSON, `%20ghp_...` in an address.
_ESCAPE_BEFORE = re.compile(r"(?:\\[nrt]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2})\Z")
_ASCII_LOWER = {ord(big): ord(big.lower()) for big in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True)
class SecretFormat:
    """One format."""

    id: str
    anchors: tuple[str, ...]
    """Words, one of which it begins with, in small letters."""
    written: str
    """The pattern; its groups are what is hidden, or all of it."""
    is_word: bool
    """No letter or digit may stand before it."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when an anchor is seen first: most texts have none."""
        return re.compile(self.written)

    def spans(self, text: str, lowered: str) -> Iterator[Span]:
        """Where it is, in order of its anchors."""
        for anchor in self.anchors:
            start = lowered.find(anchor)
            while start >= 0:
                match = self._match(text, start)
                if match is not None:
                    groups = [group for group in range(1, match.re.groups + 1) if match[group]]
                    yield from map(match.span, groups or [0])
                start = lowered.find(anchor, start + 1 if match is None else max(match.end(), start + 1))

    def _match(self, text: str, start: int) -> re.Match[str] | None:
        return None if self.is_word and _is_inside_of_a_word(text, start) else self.pattern.match(text, start)


@cache
def rules() -> tuple[SecretFormat, ...]:
    """All formats, as the catalog has them."""
    entries = tomllib.loads(catalog_path("secrets.toml").read_text(encoding="utf-8"))["rules"]
    return tuple(
        SecretFormat(entry["id"], tuple(entry["anchors"]), entry["pattern"], entry.get("is_word", False))
        for entry in entries
    )


@cache
def _anchored() -> tuple[tuple[str, SecretFormat], ...]:
    return tuple((anchor, rule) for rule in rules() for anchor in rule.anchors)


def spans_of_rules(text: str, lowered: str) -> Iterator[Span]:
    """Where a secret of a known format stands in a text, which comes in small letters as well."""
    # Most texts have the anchors of no rule or two, and a rule that is asked takes far longer than a look.
    for rule in dict.fromkeys([rule for anchor, rule in _anchored() if anchor in lowered]):
        yield from rule.spans(text, lowered)


def lowered_in_place(text: str) -> str:
    """In small letters, each where it was: some letters are two when they are small."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)


def _is_inside_of_a_word(text: str, start: int) -> bool:
    before = text[start - 1 : start]
    if not (before.isalnum() or before == "-"):
        return False
    return _ESCAPE_BEFORE.search(text, max(0, start - 6), start) is None


# What stands behind a secret's name: whether it is one, or code, a count, a placeholder.

_MOST = 4096
_QUOTE = re.compile(r"(?:[bBrRuUfF]{1,2}(?=\\{0,7}[\"'`]))?(\\{0,7}[\"'`])")
_QUOTED = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.){{0,{_MOST}}}") for quote in "\"'`"}
_BARE = re.compile(rf"""[^\s"',;]{{1,{_MOST}}}""")
# What stands for a value may hold blanks: ${{ secrets.X }}, <your password>.
_STAND_IN = re.compile(r"\$?\{\{[^{}\n]{0,200}\}\}|<[\w -]{1,60}>")
_WHOLE = re.compile(rf"\S{{1,{_MOST}}}")
_PLACEHOLDER = re.compile(
    r"\*{2,}|<[\w .|/-]*>|\[[A-Z_ ]+\]|[$%]?\{\{?[^{}]*\}\}?|\$\w+|%\(?\w+\)?s?|x{3,}|\.{3}|\[UNUSED\d+\]"
)
_CODE = re.compile(
    r"(?:os|sys|self|cls|args|opts?|options|cfg|conf|config|settings|params|kwargs|env|environ|request|req|getpass"
    r"|input|getenv|lambda|await|secrets|torch|np|tokens?|tokenizer|batch|model)\b[.(\[:, ]"
    r"|[A-Za-z_][\w.]{0,80}[(\[]"
)
_NUMBER = re.compile(r"[-+]?\d[\d_.,]*(?:e[-+]?\d+)?[kKmM]?\]?\)?")
_STRONG = re.compile(
    r"(?:pass(?:wor[dt]|wd|phrase|code)?|pwd|secret|api_?-?key|private_?-?key|credentials?)s?\d*\Z",
    re.IGNORECASE,
)
_LEAST_WEAK = 8


@dataclass(frozen=True, slots=True)
class Value:
    """What a name is given, without its quotes."""

    text: str
    span: tuple[int, int]
    is_quoted: bool
    is_line: bool
    after: str


def value_at(text: str, start: int, *, is_line: bool = False) -> Value:
    """The value that begins here; of a line of its own all of it, commas included."""
    quote = _QUOTE.match(text, start)
    if quote is not None:
        begin, end = quote.end(), _end_of_quoted(text, quote)
    else:
        stand_in = _STAND_IN.match(text, start)
        match = stand_in or (_WHOLE if is_line else _BARE).match(text, start)
        begin, end = (start, start) if match is None else match.span()
        if not (stand_in or is_line):
            end = begin + len(text[begin:end].rstrip(")]}>"))
    return Value(
        text=text[begin:end],
        span=(begin, end),
        is_quoted=quote is not None,
        is_line=is_line,
        after=text[end : end + 3],
    )


def _end_of_quoted(text: str, quote: re.Match[str]) -> int:
    begin, mark = quote.end(), quote[1]
    if len(mark) == 1:
        match = _QUOTED[mark].match(text, begin)
        return begin if match is None else match.end()
    end = text.find(mark, begin, begin + _MOST)
    return min(len(text), begin + _MOST) if end < 0 else end


def is_harmless(value: Value, name: str, written: str) -> bool:
    """Whether it is no secret although its name is one's.

    Args:
        name: before it.
        written: the name as it is written, with what stands between it and the value.
    """
    text = value.text
    if (
        not text
        or _PLACEHOLDER.fullmatch(text)
        or text.lower() in _names("stand_ins")
        or text.lower() == name.lower()
    ):
        return True
    if written == "--":
        return text.lower() in _names("of_prose") or (
            text.isupper() and text.lower() in (*name.lower().split("-"), "text", "str")
        )
    is_strong = _STRONG.search(name) is not None
    if not value.is_quoted and _is_code(value, name):
        return True
    is_said = written.rstrip().endswith(":") and not value.is_quoted
    if is_said and text.isalpha() and (value.after[:1] == " " and value.after[1:2].isalnum()):
        return True
    return not is_strong and _is_weak(value, is_said=is_said)


def _is_code(value: Value, name: str) -> bool:
    # What has the same name, or nearly: token=hub_token, api_key=args.api_key.
    is_name = value.text.replace(".", "").isidentifier()
    if is_name and value.text.lower().endswith(name.lower().rpartition("_")[2]):
        return True
    if value.is_line:
        return value.text.startswith(("$(", "${", "`"))
    return _CODE.match(value.text + value.after) is not None


def _is_weak(value: Value, *, is_said: bool) -> bool:
    text = value.text
    if _NUMBER.fullmatch(text) or (text.startswith(("<", "[", "{")) and not text[1:2].isalnum()):
        return True
    has_digit = any(letter.isdigit() for letter in text)
    if is_said:
        return len(text) < _LEAST_WEAK or not has_digit
    return len(text) < _LEAST_WEAK and not (has_digit and any(map(str.isalpha, text)) and len(text) >= 4)


def is_random(text: str) -> bool:
    """Whether a word is none of a language, a path or a number.

    >>> is_random("q7Hw3kPz90LmVx2TnB"), is_random("transformer_h_0_attn_weight")
    (True, False)
    """
    letters = sum(map(str.isalpha, text))
    digits = sum(map(str.isdigit, text))
    if digits < 3 or letters < 3 or text.count("/") > 1 or _NUMBER.fullmatch(text):
        return False
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts) >= 3.2


# Where in a text secrets stand: known formats, and what the words around them tell.

# Repetitions are bounded: a script may print one line of many kilobytes.
# Who logs in, whatever the password holds, and the query: keys have many names there. With an @ further on
# even a host and its port are taken for someone who logs in: hiding too much costs nothing.
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
    broken = (match.span() for match in _BROKEN.finditer(text))
    if cuts := [cut for cut in broken if cut[0] - text.rfind("\n", 0, cut[0]) > _LEAST_BROKEN_LINE]:
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
