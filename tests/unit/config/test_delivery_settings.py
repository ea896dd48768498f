"""Channels: what each kind may hold, and that no secret stands in a settings file or in an error."""

from pathlib import Path
from typing import Any

import pytest

from advisor.config.delivery_settings import CHANNEL_KINDS, SUFFIXES
from advisor.config.layers import load_config
from advisor.config.settings import Settings
from advisor.core.errors import ConfigError
from tests.delivery.parts import MAIL

SECRET = "hunter2-very-secret"
EACH: dict[str, dict[str, Any]] = {
    "smtp": MAIL,
    "slack": {"kind": "slack", "url": "env:SLACK"},
    "webhook": {"kind": "webhook", "url": "https://example.org/in"},
    "file": {"kind": "file", "path": "a/{date}.html"},
    "s3": {"kind": "s3", "url": "s3://team/{date}-{key}.json"},
    "gcs": {"kind": "gcs", "url": "gs://team/reports/a.md"},
    "stdout": {"kind": "stdout"},
}


def load(tmp_path: Path, **channel: Any) -> Any:
    config = load_config({"delivery.channels": {"team": channel}}, environ={}, cwd=tmp_path)
    return config.settings.delivery.channels["team"]


def refused(tmp_path: Path, channel: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, **channel)
    assert SECRET not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    return str(caught.value)


def test_there_is_an_example_of_each_kind():
    assert set(EACH) == set(CHANNEL_KINDS)


@pytest.mark.parametrize("kind", EACH)
def test_each_kind_is_read_and_survives_a_round_trip(kind):
    settings = Settings.model_validate({"delivery": {"channels": {"team": EACH[kind]}}})
    assert settings.delivery.channels["team"].kind == kind
    for by_alias in (True, False):
        assert Settings.model_validate(settings.model_dump(mode="json", by_alias=by_alias)) == settings


def test_defaults_are_the_safe_ones(tmp_path):
    mail = load(tmp_path, **MAIL)
    assert (mail.security, mail.attach, mail.cc) == ("starttls", (), ())
    assert load(tmp_path, **EACH["webhook"]).knows_repeats is True
    assert Settings().delivery.give_up_after == 300


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (MAIL | {"user": "me", "password": SECRET}, "a secret must not stand in a settings file"),
        (MAIL | {"user": "me", "password": f"ENV:{SECRET}"}, "write env:NAME and export NAME"),
        (MAIL | {"user": "me", "password": "env:a b"}, "the name of a variable"),
        (MAIL | {"user": "me", "password": "file:"}, "or file:PATH"),
        (MAIL | {"pasword": SECRET}, "Did you mean 'password'?"),
        (MAIL | {"fromm": "x"}, "Did you mean 'from'?"),
        ({"kind": "slack", "url": f"https://hooks.slack.com/services/T0/B0/{SECRET}"}, "must not stand"),
        ({"kind": "webhook", "url": f"https://me:{SECRET}@example.org/"}, "may hold a token"),
        ({"kind": "webhook", "url": f"https://example.org/?token={SECRET}"}, "may hold a token"),
        (
            {"kind": "webhook", "url": "https://discord.test/api/webhooks/1/hunter2abcdefghijk"},
            "may hold a token",
        ),
        ({"kind": "webhook", "url": "https://example.org/in", "secret": SECRET}, "must not stand"),
        ({"kind": "webhook", "url": "example.org"}, "this is no address"),
        ({"kind": "webhook", "url": "http://169.254.169.254/latest"}, "a machine's own services"),
        ({"kind": "webhook", "url": "http://2852039166/latest"}, "a machine's own services"),
        ({"kind": "webhook", "url": "http://[fe80::1]/"}, "a machine's own services"),
        ({"kind": "webhook", "url": "http://metadata.google.internal/"}, "a machine's own services"),
        ({"kind": "webhook", "url": "https://example.org/\r\nX-Key: 1"}, "it has a line break"),
        ({"kind": "webhook", "url": "https://example.org/\n"}, "it has a line break"),
        ({"kind": "webhook", "url": "env:HOOK\n"}, "it has a line break"),
        ({"kind": "slack", "url": "file:/a\r\nb"}, "it has a line break"),
        ({"kind": "webhook", "url": "https://example.org/in", "secret": "file:a\nb"}, "it has a line break"),
        (MAIL | {"host": "mail.example.org\r\nRCPT TO: x"}, "a host has no spaces, line breaks"),
        (MAIL | {"host": "169.254.169.254"}, "a machine's own services"),
        (MAIL | {"user": "me\r\nX", "password": "env:P"}, "it has a line break"),
        ({"kind": "s3", "url": "s3://bucket/a\n{date}.html"}, "write s3://BUCKET"),
        ({"kind": "smpt", "password": SECRET}, "team needs a kind, one of smtp, slack, webhook"),
        ({"password": SECRET}, "team needs a kind"),
    ],
)
def test_what_is_refused_and_how_to_mend_it(tmp_path, change, words):
    assert words in refused(tmp_path, change)


@pytest.mark.parametrize(
    "address",
    [
        "ann", "ann@", "@example.org", "ann@example.org, bob@example.org", "",
        "ann@example.org\nBcc: eve@x.org",
        "Ann\r\n <ann@example.org>", "änn@example.org", "Team: ann@example.org;", "ann@example.org\0",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["from", "to", "cc"])
def test_what_is_no_mail_address_never_reaches_a_header(tmp_path, place, address):
    value = address if place == "from" else [address]
    assert "write one mail address" in refused(tmp_path, MAIL | {place: value})


@pytest.mark.parametrize("address", ["ann@example.org", "Änn Lee <ann@example.org>", '"Lee, Ann" <a@b.co>'])
def test_mail_addresses_may_have_names(tmp_path, address):
    assert load(tmp_path, **MAIL | {"to": [address]}).to == (address,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"user": "me"}, "give both user and password"),
        ({"password": "env:P"}, "give both user and password"),
        (
            {"user": "me", "password": "env:P", "security": "none", "host": "mail.example.org"},
            "only sent where",
        ),
        ({"to": []}, "at least 1 item"),
        ({"port": 0}, "greater than or equal to 1"),
        ({"security": "ssl"}, "'starttls', 'tls' or 'none'"),
    ],
)
def test_mail_that_cannot_be_meant(tmp_path, change, words):
    assert words in refused(tmp_path, MAIL | change)


@pytest.mark.parametrize(
    "name", ["a", "a.pdf", "{time}.md", "{date:%Y}.md", "{date.year}.md", "{}.md", "{date.md", "{{key}}.md"]
)
def test_names_of_files_that_are_refused(tmp_path, name):
    for channel in (
        {"kind": "file", "path": name},
        {"kind": "s3", "url": f"s3://b/{name}"},
        {"kind": "gcs", "url": f"gs://b/{name}"},
    ):
        words = refused(tmp_path, channel)
        assert "its ending says" in words or "only {date}" in words


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_of_files_that_are_taken(tmp_path, suffix):
    assert load(tmp_path, kind="file", path="~/{date}/{key}" + suffix).path.suffix == suffix


@pytest.mark.parametrize("url", ["s3://", "s3://b", "s3://b/", "gs://b/a.md", "https://b/a.md"])
def test_places_in_no_bucket(tmp_path, url):
    assert "write s3://BUCKET/FOLDER/{date}.html" in refused(tmp_path, {"kind": "s3", "url": url})


@pytest.mark.parametrize("name", ["a b", "", "-a", "a/b", "a\n", "ä", "x" * 65])
def test_names_of_channels(tmp_path, name):
    with pytest.raises(ConfigError):
        load_config({"delivery.channels": {name: {"kind": "stdout"}}}, environ={}, cwd=tmp_path)


def test_the_key_of_a_scheduler_is_no_stray_variable(tmp_path):
    config = load_config(environ={"ADVISOR_DELIVERY_KEY": "x", "ADVISOR_DELIVERY_KAY": "x"}, cwd=tmp_path)
    (warning,) = config.warnings
    assert "ADVISOR_DELIVERY_KAY" in warning
