"""Messages of others keep their words and lose their secrets."""

import base64

import pytest

from advisor.core.addresses import is_link_local, why_no_address
from advisor.core.plugins import error_in_words
from advisor.core.redaction import HIDDEN, redact, redact_message, redact_with, without_passwords
from advisor.core.secrets import rules
from tests.secret_shapes import HARMLESS, SHAPES, split_by_escapes, split_by_lines


@pytest.mark.parametrize(
    "message",
    [
        "GET https://u:S3cr@et@acme.test/prices failed",
        "GET https://u:S3cr/et@acme.test/prices failed",
        "GET https://S3cret@acme.test/prices failed",
        "GET https://acme.test/prices?sig=S3cret failed",
        "GET /prices?x=S3cret&y=et failed",
        "Authorization: Bearer S3cret refused",
        "{'Authorization': 'Basic S3cret'} refused",
        "bearer S3cret refused",
        "password=S3cret refused",
        "password='S3cr et' refused",
        'key = "S3cret" refused',
        "api_key=x,S3cret, refused",
        "X-Api-Key: S3cret",
        '{"token": "S3cret"}',
        "signature=S3cret",
    ],
)
def test_secrets_do_not_survive(message):
    shown = redact_message(message)
    assert "S3cr" not in shown
    assert "et@" not in shown.replace("***", "")
    assert "***" in shown


@pytest.mark.parametrize(
    "message",
    [
        "no offers in us-east-1: HTTP 503",
        "see https://acme.test:8080/a for the key to the columns",
        "the region eu-west-1 is not enabled: ask aws-account@acme.test?",
        "KeyError: 'price'",
    ],
)
def test_ordinary_messages_stay(message):
    assert redact_message(message) == message


def test_an_error_that_cannot_be_told_still_has_a_kind():
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert error_in_words(BrokenError()) == "BrokenError"
    assert error_in_words(OSError("")) == "OSError"


def test_an_error_is_one_line_cut_after_its_secrets_are_hidden():
    text = error_in_words(ValueError("a\n" * 20 + "https://u:" + "p" * 400 + "@host " + "b" * 900), most=80)
    assert "\n" not in text
    assert "pp" not in text
    assert len(text) == len("ValueError: ") + 80


def test_who_logs_in_stays_in_a_setting():
    assert without_passwords("postgresql://me:a@b@db/x") == "postgresql://me:***@db/x"
    assert without_passwords("postgresql://me:pw hunter2@db/x") == "postgresql://me:***@db/x"
    assert without_passwords("postgresql://me:1/2#3@db/x") == "postgresql://me:***@db/x"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("password=hunter22 and more", "hunter22"),
        ('{"api_key": "abcdef123456"}', "abcdef123456"),
        ("key AKIAIOSFODNN7EXAMPLE was refused", "AKIAIOSFODNN7EXAMPLE"),
        ("hf_abcdefghijklmnopqrstuv", "hf_abcdefghijklmnopqrstuv"),
        ("postgresql://user:s3cret@host/db", "s3cret"),
        ("'https://ghp-like-name@host/repo.git'", "ghp-like-name"),
        ("no https://host/w.pt?X-Amz-Signature=abc123&X-Amz-Date=2 in the cache", "abc123"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "abc"),
        ("value of the variable: 0123456789", "0123456789"),
        ("value of the password: correct horse", "correct horse"),
    ],
)
def test_secrets_are_hidden(text, hidden):
    shown = redact_with(text, {"SOME_TOKEN": "0123456789", "DB_PASS": "correct horse"})
    assert hidden not in shown
    assert "***" in shown


def test_of_an_address_the_place_stays():
    text = "not downloaded: 'https://bob:hunter22secret@host:8080/a/w.pt?Signature=abc', kept"
    assert redact(text) == "not downloaded: 'https://***@host:8080/a/w.pt?***', kept"
    plain = "see https://host/a@b/w.pt#part, s3://bucket/key, or mail me@host?"
    assert redact(plain) == plain


def test_ordinary_output_stays():
    """Before: the region of `AWS_DEFAULT_REGION` was hidden wherever it stood."""
    text = 'epoch 3 loss 0.5: tokens per second 1200, in us-east-1, File "train.py", line 3'
    assert (
        redact_with(text, {"HOME": "/home/someone", "A_TOKEN": "3", "AWS_DEFAULT_REGION": "us-east-1"})
        == text
    )


# A group of its own letters is what is secret of these; the rest says whose it is.
PART = 12


def is_gone(secret: str, shown: str) -> bool:
    """Whether no part of it that could be used is left."""
    pieces = [secret[start : start + PART] for start in range(0, max(1, len(secret) - PART), PART)]
    lines = [line for piece in pieces for line in piece.split("\n")]
    return not any(len(line) >= min(PART, 6) and line in shown for line in lines if "-----" not in line)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_hidden(name):
    """Before: 30 to 45 of 63 to 85 shapes were printed and stored as they are."""
    text, secret = SHAPES[name]
    for hide in (redact, redact_message):
        shown = hide(text.format(secret))
        assert HIDDEN in shown, shown
        assert is_gone(secret, shown), shown


def test_there_are_many_of_both():
    assert len(SHAPES) >= 85
    assert len(HARMLESS) >= 60


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_texts_stay(text):
    """Before: counts of tokens, names of tokenizers and the like were hidden."""
    assert redact(text) == text


# They begin with letters of their own, so nothing around them is needed.
ISSUED = [
    "NVIDIA NGC", "Hugging Face", "GitHub", "GitLab", "PyPI", "Vault", "OpenAI", "Anthropic", "Stripe",
    "SendGrid", "Slack bot", "Google API", "AWS id", "JSON web token", "npm",
]  # fmt: skip


@pytest.mark.parametrize("name", ISSUED)
def test_colours_and_broken_lines_do_not_save_them(name):
    """Before: half of the secret was left."""
    _, secret = SHAPES[name]
    for split in (split_by_escapes, split_by_lines):
        shown = redact(f"said {split(secret)} and went on")
        assert secret[-5:] not in shown, shown
        assert secret[-10:-5] not in shown, shown


@pytest.mark.parametrize("name", ISSUED)
def test_base64_does_not_save_them(name):
    """Before: it was printed."""
    wrapped = base64.b64encode(f"x: {SHAPES[name][1]}".encode()).decode()
    assert wrapped[:20] not in redact(f"data: {wrapped}.")


@pytest.mark.parametrize("name", SHAPES)
def test_hiding_twice_is_hiding_once(name):
    text, secret = SHAPES[name]
    once = redact(text.format(secret))
    assert redact(once) == once


def test_every_rule_begins_with_its_anchor():
    """An anchor that no pattern begins with would never be tried."""
    for rule in rules():
        assert rule.anchors, rule.id
        assert all(anchor == anchor.lower() for anchor in rule.anchors), rule.id
        assert rule.pattern.groups or rule.pattern.pattern, rule.id


SERVICES = (
    "169.254.169.254", "169.254.0.1", "169.254.170.2", "2852039166", "0xA9FEA9FE", "0xa9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376", "169.254.43518", "169.16689662", "[fe80::1]", "[fe80::1%25eth0]", "[FEBF::1]",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::169.254.169.254]", "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]", "[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16",
    "metadata.google.internal", "METADATA.google.internal.", "metadata", "instance-data",
    "x.metadata.goog", "\uff11\uff16\uff19.254.169.254", "169\u3002254\u3002169\u3002254",
)  # fmt: skip


@pytest.mark.parametrize("host", SERVICES)
def test_nothing_is_sent_to_a_machines_own_services(host):
    why = why_no_address(f"https://{host}/latest/meta-data")
    assert why is not None
    assert "a machine's own services" in why


@pytest.mark.parametrize(
    "host",
    ["example.org", "127.0.0.1", "localhost", "[::1]", "10.1.2.3", "169.253.1.1", "[fec0::1]", "8.8.8.8",
     "ip-10-0-0-1.ec2.internal", "metadata.example.org"],
)  # fmt: skip
def test_other_addresses_may_be_sent_to(host):
    assert why_no_address(f"https://{host}:8443/hook") is None


@pytest.mark.parametrize(
    "url",
    ["https://a.org/\r\nX: y", "https://a.org/\n", "https://a\t.org/", "https://a.org/ b", "https://a.org/\x00",
     "ftp://a.org/", "https://", "https://a.org:99999/", "https://[::1/", "a.org"],
)  # fmt: skip
def test_what_is_no_address_is_refused(url):
    assert why_no_address(url) is not None


def test_any_text_is_a_host_or_none():
    for text in ("", ".", "\0", "9" * 100_000, "\udcff", "%"):
        assert not is_link_local(text)
