"""Messages of others keep their words and lose their secrets."""

import pytest

from advisor.core.plugins import error_in_words
from advisor.core.redaction import redact, redact_message, redact_with, without_passwords
from tests.cpu_time import at_most


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


def test_a_script_may_print_a_key_function():
    line = "  rows = sorted(rows, key=len)"
    assert redact(line) == line


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
    "line", ["a://b:c" * 9000, "key" * 20000, "?a" * 30000, "key=" * 15000, "auth " * 9000]
)
def test_a_long_line_is_searched_in_no_time(line):
    with at_most(cpu_s=5):
        redact_message(line)


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


@pytest.mark.parametrize(
    "line", ["x" * 65536, "a-" * 32768, "a.b" * 20000, "token" * 13000, "http://" * 9000, "a://x@?" * 9000]
)
def test_a_line_of_64_kilobytes_is_searched_in_no_time(line):
    with at_most(cpu_s=5):
        redact(line)
