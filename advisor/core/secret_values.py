"""What stands behind a secret's name: whether it is one, or code, a count, a placeholder."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

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
_KINDS = [
    "any",
    "none",
    "null",
    "nil",
    "true",
    "false",
    "undefined",
    "str",
    "string",
    "int",
    "integer",
    "float",
    "bool",
    "boolean",
    "bytes",
    "list",
    "dict",
    "tuple",
    "optional",
    "text",
    "secretstr",
    "unset",
    "empty",
    "missing",
    "required",
    "hidden",
    "redacted",
    "masked",
    "yes",
    "no",
]
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
_OF_PROSE = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "before",
        "but",
        "by",
        "can",
        "cannot",
        "could",
        "do",
        "does",
        "for",
        "from",
        "has",
        "have",
        "if",
        "in",
        "instead",
        "is",
        "it",
        "may",
        "must",
        "need",
        "needs",
        "not",
        "of",
        "on",
        "option",
        "or",
        "set",
        "so",
        "than",
        "that",
        "the",
        "then",
        "this",
        "to",
        "was",
        "when",
        "where",
        "which",
        "while",
        "will",
        "with",
    ]
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
        value: what stands there.
        name: before it.
        written: the name as it is written, with what stands between it and the value.
    """
    text = value.text
    if not text or _PLACEHOLDER.fullmatch(text) or text.lower() in _KINDS or text.lower() == name.lower():
        return True
    if written == "--":
        return text.lower() in _OF_PROSE or (
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
    """Of a name that much else has, too."""
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
    return _entropy(text) >= 3.2


def _entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
