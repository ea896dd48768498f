"""Any server that takes JSON by POST; it can tell repeats by the Idempotency-Key."""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape

from advisor.config.delivery_settings import SECRET_FORMS, SlackChannel, WebhookChannel
from advisor.core.addresses import why_no_address
from advisor.core.redaction import HIDDEN
from advisor.delivery.channel import JSON_TYPE, Parcel, SecretError, Secrets
from advisor.delivery.channels.http_calls import USER_AGENT, post

SIGNATURE = "X-Advisor-Signature-256"
# In the order in which requests sends them.
_HEADERS: Mapping[str, str] = {"User-Agent": USER_AGENT, "Content-Type": JSON_TYPE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address that takes answers as JSON."""

    settings: WebhookChannel
    secrets: Secrets = field(repr=False)

    @property
    def target(self) -> str:
        """The address, or where it is kept."""
        return self.settings.url

    @property
    def drops_repeats(self) -> bool:
        """As the settings say of the server."""
        return self.settings.knows_repeats

    def preview(self, parcel: Parcel) -> str:
        """Address, our headers and the body."""
        headers = {**_HEADERS, "Idempotency-Key": parcel.key}
        if self.settings.secret is not None:
            headers[SIGNATURE] = f"sha256={HIDDEN}"
        return request_text(self.target, headers, body_of(parcel))

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> None:
        """POST it."""
        body, headers = body_of(parcel), {**_HEADERS, "Idempotency-Key": parcel.key}
        if self.settings.secret is not None:
            secret = self.secrets.read(self.settings.secret).encode()
            headers[SIGNATURE] = f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"
        url = address(self.settings.url, self.secrets)
        post(url, body, headers, begin=begin, drops_repeats=self.drops_repeats)


def body_of(parcel: Parcel) -> bytes:
    """Key, time, subject and text, and the facts of the answer."""
    message = parcel.message
    body = {
        "key": parcel.key,
        "at": parcel.at.isoformat(),
        "subject": message.subject,
        "text": message.text,
        "facts": message.facts,
    }
    return json.dumps(body, indent=2).encode("ascii")


def address(url: str, secrets: Secrets) -> str:
    """The address itself, read if it is a secret.

    Raises SecretError: what is kept there is no address, or one of a machine's own services.
    """
    if not url.startswith(SECRET_FORMS):
        return url
    kept = secrets.read(url)
    why = why_no_address(kept)
    if why is not None:
        raise SecretError(f"what {url} holds cannot be sent to: {why}. Write https://HOST/PATH")
    return kept


def request_text(url: str, headers: Mapping[str, str], body: bytes) -> str:
    """A request as a person reads it."""
    lines = [f"POST {url}", *(f"{name}: {value}" for name, value in headers.items()), ""]
    return "\n".join([*lines, body.decode("ascii")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """A channel of Slack."""

    settings: SlackChannel
    secrets: Secrets = field(repr=False)
    drops_repeats: bool = field(default=False, init=False)

    @property
    def target(self) -> str:
        """Where the address is kept."""
        return self.settings.url

    def preview(self, parcel: Parcel) -> str:
        """Our headers and the body."""
        return request_text(self.target, _HEADERS, _body(parcel))

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> None:
        """POST it."""
        url = self.secrets.read(self.settings.url)
        post(url, _body(parcel), _HEADERS, begin=begin, drops_repeats=False)


def _body(parcel: Parcel) -> bytes:
    body = {"text": escape(parcel.message.subject, quote=False), "blocks": parcel.message.blocks}
    return json.dumps(body, indent=2).encode("ascii")
