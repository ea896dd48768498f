"""Secrets in messages, settings and stored command lines are hidden; ordinary words are not."""

import pytest

from advisor.core.redaction import redact, redact_message, redact_words, without_passwords
from advisor.core.secrets import rules
from tests.cpu_time import at_most

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
SECRETS = {
    "github": ("cloning with github_pat_11ABCDE0Y0{}_x failed", "aB3dE5fG7hI9jK1lM3nO5pQ7"),
    "a web token": ("got {} back", JWT),
    "a web token in a header": ("X-Amz-Token-Id {}", JWT),
    "a header": ("> Authorization: Bearer {}", "short-7"),
    "a header without a scheme": ("authorization: {}", "0123456789abcdef"),
    "a header with an own scheme": ("Authorization: Acme {}", "0123456789"),
    "a header of several values": (
        'Authorization: Digest username="me", response="{}", qop=auth',
        "6629fae49",
    ),
    "a signed header": ("Authorization: AWS4-HMAC-SHA256 Credential=a/b, Signature={}", "fe5f80f77d5fa3"),
    "headers in Python": ("{{'Authorization': 'Basic {}', 'Accept': '*'}}", "bWU6cGFzcw=="),
    "headers in a string of JSON": ('"{{\\"Authorization\\": \\"Bearer {}\\"}}"', "bWU6cGFzcw"),
    "a header of curl": ("curl -H 'Authorization: token {}' https://api.acme.test", "bWU6cGFzcw"),
    "Slack": ("POST https://hooks.slack.com/services/{} failed", "T00000000/B00000000/XXXXXXXXXXXXXXXX"),
    "a workflow of Slack": ("POST https://hooks.slack.com/workflows/{} failed", "T0/A0/1/xyz"),
    "npm": ("//registry.npmjs.org/:_auth npm_{}", "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"),
    "Databricks": ("host and dapi{} given", "0123456789abcdef0123456789abcdef"),
    "Azure": ("AccountName=me;AccountKey={};EndpointSuffix=core.windows.net", "abc/def+ghi=="),
    "Azure's signature": ("SharedAccessSignature={}", "sv2019ss"),
    "a certificate": ("host=db sslpassword={} user=me", "hunter2"),
}


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_of_every_shape_are_hidden(name):
    text, secret = SECRETS[name]
    for hide in (redact, redact_message):
        shown = hide(text.format(secret))
        assert secret not in shown
        assert "***" in shown


def test_what_stands_beside_a_secret_stays():
    assert (
        redact("AccountName=me;AccountKey=abcdef==;Suffix=net") == "AccountName=me;AccountKey=***;Suffix=net"
    )
    curl = "curl -H 'Authorization: token abc' https://api.acme.test"
    assert redact(curl) == "curl -H 'Authorization: ***' https://api.acme.test"
    assert redact("POST https://hooks.slack.com/services/T0/B0/x 404") == (
        "POST https://hooks.slack.com/services/*** 404"
    )


@pytest.mark.parametrize(
    "line",
    [
        "    rows = sorted(rows, key=len)",
        "def check(authorization: str) -> None:",
        "authorization: str = None",
        "python train.py --padding 3 -p 8080",
        "Eyjafjallajokull.observations.nc was opened",
        "npm_config_registry=https://registry.npmjs.org/",
        "see https://slack.com/services/overview",
        "dapi.connect() took 3 s",
        "github_path=/home/me/src",
    ],
)
def test_ordinary_lines_stay(line):
    assert redact(line) == line


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me@db/x?sslpassword={}",
        "postgresql://me@db/x?sslmode=require&sslpassword={}&connect_timeout=3",
        "postgresql://me@db/x?passwd={}",
        "postgresql://me@db/x?X-Amz-Signature={}",
        "postgresql://me@db/x?a=1&sig={}&b=2",
        "postgresql://me@db/x?api_key={}",
        "postgresql://me:{}@db/x",
        "postgresql://me:a@{}@db/x?sslmode=require",
    ],
)
def test_a_setting_shows_no_password(address):
    shown = without_passwords(address.format("hunter2"))
    assert "hunter2" not in shown
    assert shown.startswith("postgresql://me")
    assert without_passwords("postgresql://me@db/x?sslmode=require") == "postgresql://me@db/x?sslmode=require"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-p", "hunter2", "--lr", "3"], ["-p", "***", "--lr", "3"]),
        (["-phunter2"], ["-p***"]),
        (["-p=hunter2"], ["-p=***"]),
        (["--pw", "hunter2"], ["--pw", "***"]),
        (["--pw=hunter2"], ["--pw=***"]),
        (["--db-pwd", "x"], ["--db-pwd", "***"]),
        (["--password", "x", "y"], ["--password", "***", "y"]),
        (["--passwd=x"], ["--passwd=***"]),
        (["--pass", "-123"], ["--pass", "***"]),
        (["-password", "x"], ["-password", "***"]),
        (["--header", "Authorization: Bearer x7"], ["--header", "Authorization: ***"]),
        (["--password", "--verbose", "yes"], ["--password", "--verbose", "yes"]),
    ],
)
def test_passwords_are_not_stored_with_a_trace(arguments, expected):
    assert list(redact_words(arguments, {})) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["--padding", "3"],
        ["-precision", "16-mixed"],
        ["-patience=3"],
        ["--bypass", "3"],
        ["--np", "8"],
        ["p", "train"],
        ["--lr", "-3"],
    ],
)
def test_ordinary_arguments_are_stored_as_they_are(arguments):
    assert list(redact_words(arguments, {})) == arguments


HOSTILE = [
    "a.b", "x", "key", "auth ", "a://x@?", "http://", "a-", "token", "password ", "eyJ-", "eyJabcdefgh.",
    "a://b:c", "://a:", "a://b:c@", "?a", "key=",
    "&password", 'authorization: basic ="', "authorization: ", "-----BEGIN ", "hooks.slack.com/services/",
    "bearer  ", "-p", "a", "ey", "password=", "token: ", "--token ", "curl -u a", "mysql ",
    "machine a login b ",
    "\x1b]", "\x1b[0m", "QUJD", "QUJDREVGR0hJSktMTU5PUFFSU1RV ", "aws_secret", "cookie: a=", "\\n",
    "x" * 50 + "\n",
    '\\"password\\":\\"', "password: {{", "password: <",
]  # fmt: skip


@pytest.mark.parametrize("piece", [*HOSTILE, "authorization" + " " * 1000])
def test_a_long_line_is_searched_in_linear_time(piece):
    line = "@" + piece * (10**5 // len(piece))
    with at_most(cpu_s=2):
        redact(line)
        redact_message(line)
        without_passwords(line)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_no_rule_is_slow(rule):
    """Each is tried on 25 kB of its own beginnings, whose time would grow with their square.

    It takes 6 ms; what takes all of the bound would take 4 s for 100 kB.
    """
    for anchor in rule.anchors:
        for piece in (anchor, anchor + "a", anchor + " ", anchor.upper() + "0"):
            line = piece * (25_000 // len(piece))
            with at_most(cpu_s=0.25):
                list(rule.spans(line, line.lower()))


def test_a_megabyte_of_a_log_takes_half_a_second():
    """It takes 0.4 s; the bound leaves room for a busy machine."""
    line = "epoch 3 loss 0.5 tokens/s 1200 key metric path /home/me/pattern.py author\n" * 13_000
    with at_most(cpu_s=2):
        assert redact(line) == line
