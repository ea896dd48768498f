"""Which names are those of secrets: of variables, options, settings, keys of JSON."""

from __future__ import annotations

import re

# Anything that ends so is a secret, whatever stands before it: PGPASSWORD, clientSecret, SSHPASS.
_ENDINGS = (
    "apikey", "authkey", "passphrase", "passwd", "password", "passwort", "pwd", "secret", "secretkey",
    "sshpass", "token", "webhook",
)  # fmt: skip
_WORDS = frozenset({
    "auth", "authorization", "cookie", "cookies", "cred", "credential", "credentials", "creds", "dsn", "jwt",
    "kubeconfig", "netrc", "otp", "passcode", "passwords", "pat", "psk", "pw", "sas", "secrets", "totp",
})  # fmt: skip
# What may follow without another meaning: AWS_ACCESS_KEY_ID, TOKEN_1, PASSWORD_BASE64, SLACK_WEBHOOK_URL.
_DECORATIONS = frozenset({"b64", "base64", "id", "json", "str", "string", "url", "value"})
# Tokens of texts and of tokenizers, not of accounts.
_OF_TEXT = frozenset({
    "added", "additional", "audio", "avg", "begin", "blank", "bos", "class", "cls", "context", "count", "cur",
    "current", "decoder", "drop", "each", "encoder", "end", "eos", "eot", "expected", "extra", "fim", "first",
    "has", "image", "img", "input", "invalid", "is", "last", "mask", "max", "mem", "min", "n", "new", "next",
    "num", "output", "pad", "padding", "per", "placeholder", "pos", "prefix", "prev", "prompt", "reg",
    "register", "sep", "skip", "special", "start", "stop", "suffix", "syntax", "text", "this", "time",
    "total", "trigger", "unexpected", "unk", "unknown", "use", "video", "with", "word",
})  # fmt: skip
# Several of them are counted, unless they are these.
_OF_ACCOUNTS = frozenset({"access", "api", "auth", "bearer", "hf", "hub", "refresh", "security", "session"})
# Passes of a network.
_OF_PASSES = frozenset({
    "a", "backward", "bwd", "by", "each", "eval", "first", "forward", "fwd", "last", "n", "num", "one", "per",
    "second", "single", "the", "train",
})  # fmt: skip
# Keys that open something; of others, a program that prints `key=len` has many.
_OF_LOCKS = frozenset({
    "access", "account", "admin", "aes", "api", "app", "application", "auth", "client", "consumer",
    "customer", "deploy", "encryption", "fernet", "gpg", "hmac", "ingest", "ingestion", "jwt", "kaggle",
    "license", "master", "pgp", "private", "read", "root", "rsa", "secret", "service", "session", "shared",
    "signing", "ssh", "ssl", "storage", "subscription", "tls", "wandb", "webhook", "write",
})  # fmt: skip
_OF_TABLES = frozenset({
    "cache", "column", "dict", "foreign", "group", "index", "join", "map", "partition", "primary", "public",
    "shard", "sort", "state", "unique",
})  # fmt: skip
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*|\d+")
_MOST_CHARACTERS = 200


def is_secret_name(name: str) -> bool:
    """Whether what has this name is a secret, as far as the name tells.

    >>> [is_secret_name(name) for name in ("HF_TOKEN", "dbPassword", "SLACK_WEBHOOK", "AWS_ACCESS_KEY_ID")]
    [True, True, True, True]
    >>> [is_secret_name(name) for name in ("num_tokens", "pad_token", "tokenizer", "sort_key", "compass")]
    [False, False, False, False, False]
    """
    words = _words(name)
    return bool(words) and _is_secret(words, is_variable=name.isupper())


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _PARTS.findall(name[-_MOST_CHARACTERS:])]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _DECORATIONS):
        words.pop()
    return words


def _is_secret(words: list[str], *, is_variable: bool) -> bool:
    last, before = words[-1].rstrip("0123456789") or words[-1], words[-2] if len(words) > 1 else ""
    if last in ("token", "tokens"):
        return before in _OF_ACCOUNTS if last == "tokens" else not before or before not in _OF_TEXT
    if last in ("key", "keys"):
        return before in _OF_LOCKS or (is_variable and bool(before) and before not in _OF_TABLES)
    if last == "pass":
        return bool(before) and before not in _OF_PASSES
    return last in _WORDS or last.endswith(_ENDINGS)
