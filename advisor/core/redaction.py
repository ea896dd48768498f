"""Hiding secrets in texts that others wrote: messages of plug-ins, output of scripts, command lines.

Everything that is printed, stored or sent and was not written by us goes through `redact`, `redact_message`
or `redact_words`. `spans_of_secrets` knows where secrets stand.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from advisor.core.secrets import Span, is_secret_name, merged, spans_of_secrets

HIDDEN = "***"

# A script's `sorted(x, key=len)` is none, but in the message of an error hiding too much costs nothing.
_IN_MESSAGE = re.compile(
    r"""
    (?P<assigned>(?:\b(?:bearer|authorization["']?\s*[=:]\s*["']?(?:basic|bearer|digest|token))\s+
        | (?P<name>(?:key|token|secret|passw(?:or)?d|pwd|passphrase|signature|credential|auth)[\w-]{0,64})
            ["']?\s*=\s*
        | (?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|authorization)["']?\s*:\s*))
    (?:"[^"]*" | '[^']*' | \S*[^\s"',;:)}\]])
    | \?[^\s=]{1,64}=\S+                          # the query of an address without a host
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OF_TEXT = re.compile(r"(?:tokens|tokenizer|token_type|token_ids|keyword|keyboard|author)", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"((?<=://)[^/@:\s]*:).*", re.DOTALL)
# libpq knows password and sslpassword; drivers have names of their own.
_PASSWORD_IN_QUERY = re.compile(
    r"([?&][^=&?]{0,64}(?:passw(?:or)?d|passphrase|pwd|secret|token|signature|\bsig|(?:api|access)[_-]?key)=)[^&]*",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"://[^/\s:@]{0,256}:[^/\s@]{1,1024}@")
_OPTION = re.compile(r"--?[A-Za-z]")
# As mysql takes it. Letters alone are an option with one dash, such as -precision.
_JOINED_PASSWORD = re.compile(r"-p[A-Za-z_-]*[^A-Za-z_=-]")
# Of options alone: the variable PWD is a folder, and `-p` a port to many.
_PASSWORD_OPTIONS = ("p", "pass")
_LOGIN_OPTIONS = ("-u", "--user", "-U", "--proxy-user")
# Shorter ones would hide ordinary words that happen to be the same.
_LEAST_VALUE = 8


def redact(text: str) -> str:
    """The text without what looks like a secret: who logs in by URLs, their queries, keys, passwords.

    >>> redact("login with password=hunter22 failed")
    'login with password=*** failed'
    """
    return _without(text, spans_of_secrets(text))


def redact_message(text: str) -> str:
    """As `redact`, for messages of errors, where a short value and any ``key=`` count as secret, too.

    >>> redact_message("GET https://bob:p@ss@acme.test/prices?id=7 with Bearer xyz: key=1 refused")
    'GET https://***@acme.test/prices?*** with Bearer ***: key=*** refused'
    """
    return _IN_MESSAGE.sub(_hide, redact(text))


def redact_with(text: str, environment: Mapping[str, str]) -> str:
    """As `redact`, and without the values of the environment's secrets, whatever they look like.

    >>> redact_with("login with 0123456789 failed", {"DB_PASS": "0123456789"})
    'login with *** failed'
    """
    for name, value in environment.items():
        if len(value) >= _LEAST_VALUE and value in text and is_secret_variable(name, value):
            text = text.replace(value, HIDDEN)
    return redact(text)


def redact_words(words: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """A command line without secrets, those in ``--api-key VALUE``, ``-p VALUE`` and ``-pVALUE`` included.

    >>> redact_words(["--lr", "3", "--api-key", "abc", "--token=abc", "-p", "abc"], {})
    ('--lr', '3', '--api-key', '***', '--token=***', '-p', '***')
    """
    return tuple(_word_after(before, word, environment) for before, word in pairwise(("", *words)))


def is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable holds a secret: by its name or, whatever that is, by what it holds.

    >>> is_secret_variable("DB_PASS", "x"), is_secret_variable("WHERE", "redis://:hunter22@cache:6379")
    (True, True)
    >>> is_secret_variable("HF_HOME", "/data/hf")
    False
    """
    # Not each part of an address: a path may hold an @, and who logs in without a password has none to lose.
    return (
        is_secret_name(name)
        or _LOGIN.search(value) is not None
        or bool(spans_of_secrets(value, in_addresses=False))
    )


def without_passwords(text: str) -> str:
    """A setting that may be an address: who logs in stays, the password does not.

    >>> without_passwords("postgresql://me:hunter2@db.example/advisor")
    'postgresql://me:***@db.example/advisor'
    """
    # Up to the last @: a password may hold one.
    login, at, place = text.rpartition("@")
    shown = _PASSWORD_IN_URL.sub(rf"\g<1>{HIDDEN}", login) + at + place
    return _PASSWORD_IN_QUERY.sub(rf"\g<1>{HIDDEN}", shown)


def named_without_secrets(name: str, value: object) -> object:
    """The value of this name: hidden where the name is a secret's, else as `without_secrets`."""
    is_secret = is_secret_name(name) or name.lower().endswith("key")
    return HIDDEN if is_secret else without_secrets(value)


def without_secrets(value: object) -> object:
    """A value without the passwords of its addresses and whatever is named, or looks, like a secret."""
    if isinstance(value, dict):
        return {key: named_without_secrets(str(key), item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    if not isinstance(value, str):
        return value
    shown = without_passwords(value)
    return _without(shown, spans_of_secrets(shown, in_addresses=False))


def _without(text: str, spans: Iterable[Span]) -> str:
    kept, end = [], 0
    for first, last in merged(spans):
        kept += [text[end:first], HIDDEN]
        end = last
    return "".join((*kept, text[end:])) if kept else text


def _hide(match: re.Match[str]) -> str:
    if match["name"] and _OF_TEXT.match(match["name"]):
        return match[0]
    return (match["assigned"] or "") + HIDDEN


def _word_after(before: str, word: str, environment: Mapping[str, str]) -> str:
    flag, equals, value = word.partition("=")
    if _is_secret_option(before) and not _OPTION.match(word):
        return HIDDEN
    if equals and _is_secret_option(flag):
        return f"{flag}={HIDDEN}"
    if _JOINED_PASSWORD.match(word):
        return f"-p{HIDDEN}"
    user, colon, _ = (value if equals and flag in _LOGIN_OPTIONS else word).partition(":")
    if colon and (before in _LOGIN_OPTIONS or (equals and flag in _LOGIN_OPTIONS)) and "/" not in user:
        return f"{flag + equals if equals and flag in _LOGIN_OPTIONS else ''}{user}:{HIDDEN}"
    return redact_with(word, environment)


def _is_secret_option(word: str) -> bool:
    name = word.lstrip("-").replace("-", "_")
    return word.startswith("-") and (name.lower() in _PASSWORD_OPTIONS or is_secret_name(name))
