"""Hiding secrets in texts that others wrote: messages of plug-ins, output of scripts, addresses."""

from __future__ import annotations

import re

HIDDEN = "***"

# Repetitions are bounded: a script may print one line of many kilobytes.
# Who logs in, whatever the password holds, and the query: keys have many names there. With an @ further on
# even a host and its port are taken for somebody who logs in: nobody loses by hiding too much.
_URL = re.compile(
    r"""(?P<scheme>\b[a-z][a-z0-9+.-]{0,16}://)
    (?P<user>[^\s/?\#"'<>:@]{0,256}:\S{0,1024}@ | [^\s/?\#"'<>]{0,1024}@)?
    (?P<place>[^\s?"'<>]*)(?P<query>\?[^\s"'<>]+)?""",
    re.VERBOSE | re.IGNORECASE,
)
# The whole line, whatever the scheme: `Digest username="me", response="..."` has several values. A function's
# `authorization: str` is none.
_HEADER = re.compile(
    r"""
    (?P<assigned>authorization\\?["']?\s*:\s*\\?)
    (?: "[^"\n]*" | '[^'\n]*'
      | (?= (?:basic|bearer|digest|negotiate|token)\s | [\w-]{1,64}[ \t]{1,8}[^\s"']{8} | [^\s"'()\[\]]{12})
        (?: ="[^"\n]*" | =(?!") | [^\n"'=])+ )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SHAPES = re.compile(
    r"""
    (?P<assigned>
        (?:token|secret|password|passwd|(?:api|access|account)[_-]?key|access[_-]?signature)[\w-]{0,64}
        ["']?\s*[=:]\s*["']?)[^\s"',;]{4,}      # password=..., "api_key": "...", AccountKey=...
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b               # AWS key ids
    | \b(?:hf|gh[oprsu]|github_pat|glpat|xox[a-z]|xapp|sk)[_-][A-Za-z0-9_-]{16,}
    | \bnpm_[A-Za-z0-9]{30,}
    | \bdapi[0-9a-f]{24,}(?:-\d+)?                # Databricks
    | \bAIza[\w-]{35}
    | (?<![\w-])(?-i:eyJ)[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}   # JSON web tokens
    | (?:(?<=hooks\.slack\.com/services/) | (?<=hooks\.slack\.com/workflows/)
        | (?<=hooks\.slack\.com/triggers/))[^\s"'<>]+
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
# A script's `sorted(x, key=len)` is none, but in the message of an error nobody loses by hiding too much.
_IN_MESSAGE = re.compile(
    r"""
    (?P<assigned>(?:\b(?:bearer|authorization["']?\s*[=:]\s*["']?(?:basic|bearer|digest|token))\s+
        | (?:key|token|secret|passw(?:or)?d|pwd|passphrase|signature|credential|auth)[\w-]{0,64}["']?\s*=\s*
        | (?:token|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|authorization)["']?\s*:\s*))
    (?:"[^"]*" | '[^']*' | \S*[^\s"',;:)}\]])
    | \?[^\s=]{1,64}=\S+                          # the query of an address without a host
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SECRET_NAME = re.compile(r"(?i)(key|password|secret|token)$")
_PASSWORD_IN_URL = re.compile(r"((?<=://)[^/@:\s]*:).*", re.DOTALL)
# libpq knows password and sslpassword; drivers have names of their own.
_PASSWORD_IN_QUERY = re.compile(
    r"([?&][^=&?]{0,64}(?:passw(?:or)?d|passphrase|pwd|secret|token)=)[^&]*", re.IGNORECASE
)


def redact(text: str) -> str:
    """The text without what looks like a secret: who logs in by URLs, their queries, keys, passwords.

    >>> redact("login with password=hunter22 failed")
    'login with password=*** failed'
    """
    return _SHAPES.sub(_hide, _HEADER.sub(_hide, _URL.sub(_hide_in_url, text)))


def redact_message(text: str) -> str:
    """As `redact`, for messages of errors, where a short value and any ``key=`` count as secret, too.

    >>> redact_message("GET https://bob:p@ss@acme.test/prices?id=7 with Bearer xyz: key=1 refused")
    'GET https://***@acme.test/prices?*** with Bearer ***: key=*** refused'
    """
    return _IN_MESSAGE.sub(_hide, redact(text))


def without_passwords(text: str) -> str:
    """A setting that may be an address: who logs in stays, the password does not.

    >>> without_passwords("postgresql://me:hunter2@db.example/advisor")
    'postgresql://me:***@db.example/advisor'
    """
    # Up to the last @: a password may hold one.
    login, at, place = text.rpartition("@")
    shown = _PASSWORD_IN_URL.sub(rf"\g<1>{HIDDEN}", login) + at + place
    return _PASSWORD_IN_QUERY.sub(rf"\g<1>{HIDDEN}", shown)


def error_in_words(error: BaseException, *, most: int = 300) -> str:
    """Kind and message of an unforeseen error in one line of ``most`` characters, without secrets.

    >>> error_in_words(RuntimeError("token=abc refused"))
    'RuntimeError: token=*** refused'
    """
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - even its message may be broken
        message = ""
    # Cut last: half a secret would not look like one.
    text = " ".join(redact_message(message).split())[:most]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _hide(match: re.Match[str]) -> str:
    return (match["assigned"] or "") + HIDDEN


def _hide_in_url(match: re.Match[str]) -> str:
    user, query = f"{HIDDEN}@" if match["user"] else "", f"?{HIDDEN}" if match["query"] else ""
    return match["scheme"] + user + match["place"] + query


def named_without_secrets(name: str, value: object) -> object:
    """The value of this name: hidden where the name is a secret's, else as `without_secrets`."""
    return HIDDEN if _SECRET_NAME.search(name) else without_secrets(value)


def without_secrets(value: object) -> object:
    """A value without the passwords of its addresses and whatever is named like a secret."""
    if isinstance(value, dict):
        return {key: named_without_secrets(str(key), item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    return without_passwords(value) if isinstance(value, str) else value
