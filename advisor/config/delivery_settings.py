"""Settings of the channels that answers are sent to. Secrets are named here and lie elsewhere."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, field_validator, model_validator

from advisor.config.setting_kinds import NOTHING, PositiveDuration, SettingsSection, UserPath, setting
from advisor.core.addresses import LINK_LOCAL, is_link_local, why_no_address

SECRET_FORMS = ("env:", "file:")
SUFFIXES = (".html", ".md", ".csv", ".json", ".txt")
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# What a token in the path of an address looks like: long, with letters and digits mixed.
_TOKEN = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])[\w-]{16,}")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HOW = "write env:NAME and export NAME, or file:PATH of a file that only you can read (chmod 600)"


def _reference(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has a line break or another control character: write one line")
    kind, colon, name = text.partition(":")
    if f"{kind}{colon}" not in SECRET_FORMS or not name:
        raise ValueError(f"a secret must not stand in a settings file, which is copied and shared: {_HOW}")
    if kind == "env" and not _VARIABLE.fullmatch(name):
        raise ValueError("env: is followed by the name of a variable, such as env:SMTP_PASSWORD")
    return text


def _address_of_server(text: str) -> str:
    if text.startswith(SECRET_FORMS):
        return _reference(text)
    from advisor.core.redaction import redact

    why = why_no_address(text)
    if why is not None:
        raise ValueError(f"{why}: write https://HOST/PATH, or env:NAME where it holds a token")
    parts = urlsplit(text)
    tokens = any(map(_TOKEN.fullmatch, parts.path.split("/")))
    if "@" in parts.netloc or parts.query or parts.fragment or tokens or redact(text) != text:
        raise ValueError(f"this address may hold a token, which must not stand in a settings file: {_HOW}")
    return text


def _host(text: str) -> str:
    if not text.isprintable() or " " in text:
        raise ValueError("a host has no spaces, line breaks or other control characters")
    if is_link_local(text):
        raise ValueError(LINK_LOCAL)
    return text


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has a line break or another control character: write one line")
    return text


def _mailbox(text: str) -> str:
    from email.policy import SMTP

    try:
        # A line break would end the header.
        header = SMTP.header_factory("To", text if text.isprintable() else "")
        (group,) = header.groups
        (mailbox,) = group.addresses
        is_one = group.display_name is None and mailbox.domain and mailbox.addr_spec.isascii()
    except (ValueError, IndexError):  # IndexError: Python's own parser at "ann@"
        is_one = False
    if not is_one or header.defects:
        raise ValueError("write one mail address, such as 'Ann Lee <ann@example.org>' or ann@example.org")
    return text


def _check_name(text: str) -> None:
    """Refuse a name of a file with an unknown ending or placeholder."""
    if PurePath(text).suffix not in SUFFIXES:
        raise ValueError(f"its ending says what is written: {', '.join(SUFFIXES)}")
    if set("{}") & set(text.replace("{date}", "").replace("{key}", "")):
        raise ValueError("only {date} (2026-11-23, in UTC) and {key} may stand in braces")


def _path(path: UserPath) -> UserPath:
    _check_name(str(path))
    return path


def _bucket_url(scheme: str) -> AfterValidator:
    def check(text: str) -> str:
        parts = urlsplit(text)
        is_one_line = text.isprintable()
        if not is_one_line or parts.scheme != scheme or not parts.netloc or not parts.path.strip("/"):
            raise ValueError(f"write {scheme}://BUCKET/FOLDER/{{date}}.html")
        _check_name(text)
        return text

    return AfterValidator(check)


Secret = Annotated[str, AfterValidator(_reference)]
ServerAddress = Annotated[str, AfterValidator(_address_of_server)]
Mailbox = Annotated[str, AfterValidator(_mailbox)]
Rendition = Literal["html", "md", "csv", "json", "txt"]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class FileChannel(SettingsSection):
    """A file of this machine; what was there before is replaced."""

    kind: Literal["file"]
    path: Annotated[UserPath, AfterValidator(_path)] = Field(
        description="such as ~/reports/{date}.html; the ending says what is written"
    )


class StdoutChannel(SettingsSection):
    """Standard output."""

    kind: Literal["stdout"]
    format: Rendition = Field("txt", description="what is printed")


class SmtpChannel(SettingsSection):
    """Mail: HTML with its charts inside, and plain text beside it."""

    model_config = ConfigDict(populate_by_name=True)

    kind: Literal["smtp"]
    host: Annotated[str, AfterValidator(_host)] = Field(
        min_length=1, description="the server that takes your mail"
    )
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        None, description="null: 587 for starttls, 465 for tls, 25 for none"
    )
    security: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="how the connection is encrypted; none sends what all can read"
    )
    ca_file: UserPath | None = Field(None, description="certificates to trust; null: those of this machine")
    user: Annotated[str, AfterValidator(_one_line)] | None = Field(
        None, min_length=1, description="who logs in; null: without a login"
    )
    password: Secret | None = Field(None, description="env:NAME or file:PATH")
    sender: Mailbox = Field(alias="from", description="who it comes from")
    to: Annotated[tuple[Mailbox, ...], Field(min_length=1)] = Field(description="who gets it")
    cc: tuple[Mailbox, ...] = Field((), description="who gets a copy")
    attach: tuple[Rendition, ...] = Field((), description="the answer as files beside the mail")

    @model_validator(mode="after")
    def _whole_login(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("give both user and password, or neither")
        if self.password and self.security == "none" and self.host not in _LOOPBACK:
            raise ValueError("a password is only sent where security is starttls or tls")
        return self


class SlackChannel(SettingsSection):
    """A channel of Slack, by an incoming webhook."""

    kind: Literal["slack"]
    url: Secret = Field(description="env:NAME or file:PATH of the webhook's address, which is a secret")


class WebhookChannel(SettingsSection):
    """Any server that takes JSON by POST."""

    kind: Literal["webhook"]
    url: ServerAddress = Field(description="env:NAME, file:PATH, or an address without any token")
    secret: Secret | None = Field(None, description="signs the body: HMAC-SHA256; null: no signature")
    knows_repeats: bool = Field(
        True,
        description="whether it drops what comes twice with one Idempotency-Key; else nothing is repeated",
    )


class S3Channel(SettingsSection):
    """An object in a bucket of AWS, or of what speaks S3 (AWS_ENDPOINT_URL_S3); written once."""

    kind: Literal["s3"]
    url: Annotated[str, _bucket_url("s3")] = Field(description="such as s3://BUCKET/reports/{date}.html")
    region: str | None = Field(None, min_length=1, description="of the bucket; null: as AWS is configured")


class GcsChannel(SettingsSection):
    """An object in a bucket of Google Cloud; written once."""

    kind: Literal["gcs"]
    url: Annotated[str, _bucket_url("gs")] = Field(description="such as gs://BUCKET/reports/{date}.html")


ChannelSettings = (
    FileChannel | StdoutChannel | SmtpChannel | SlackChannel | WebhookChannel | S3Channel | GcsChannel
)
CHANNEL_KINDS: Mapping[str, type[SettingsSection]] = {
    "smtp": SmtpChannel,
    "slack": SlackChannel,
    "webhook": WebhookChannel,
    "file": FileChannel,
    "s3": S3Channel,
    "gcs": GcsChannel,
    "stdout": StdoutChannel,
}
"""What ``kind`` may be, and what it holds then."""


class DeliverySettings(SettingsSection):
    """Where answers are sent with --to."""

    channels: Mapping[Name, Annotated[ChannelSettings, Field(discriminator="kind")]] = setting(
        NOTHING, {}, "by name: team-mail: {kind: smtp, ...} (docs/delivery.md)"
    )
    give_up_after: PositiveDuration = setting(
        NOTHING, "5m", "how long a channel is tried that is down or busy, 1h at most", le=3600
    )

    @field_validator("channels", mode="before")
    @classmethod
    def _have_kinds(cls, channels: object) -> object:
        """Before pydantic looks for the kind: its own words name tags and discriminators."""
        entries = channels.items() if isinstance(channels, Mapping) else ()
        for name, entry in entries:
            kind = entry.get("kind") if isinstance(entry, Mapping) else getattr(entry, "kind", None)
            if kind not in CHANNEL_KINDS:
                raise ValueError(f"{name} needs a kind, one of {', '.join(CHANNEL_KINDS)}")
        return channels
